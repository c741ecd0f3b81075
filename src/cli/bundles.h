// What the commands about bundles share.
#ifndef CAIRN_CLI_BUNDLES_H
#define CAIRN_CLI_BUNDLES_H

#include "archive/archive.h"
#include "cli/cli.h"

// Whether a word means a bundle and not a run: it is a file, or is called like one.
bool bundle_named(struct str word);
// `log verify BUNDLE`.
int bundle_verify(struct cli *cli, struct str word);
// The faults of runs, one a line.
void faults_write(const struct term *term, struct buf *out, const struct verify_report *report);
bool faults_json(struct cli *cli, const struct verify_report *report, struct json *out);

#endif
