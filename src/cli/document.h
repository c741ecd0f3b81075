// Documents from files: reading, finding what they name, telling what is wrong with them.
#ifndef CAIRN_CLI_DOCUMENT_H
#define CAIRN_CLI_DOCUMENT_H

#include "cli/cli.h"
#include "cli/inputs.h"
#include "program/program.h"

struct source {
    struct str file, text;
    struct str from, request; // of a part: which document asked for it, and how; empty for the document itself
};

// Everything that was read for a document, so that a diagnostic can show its line whichever file it is in.
struct sources {
    struct cli *cli;
    uint32_t steps_max; // of each document
    struct source *items;
    size_t count, capacity;
};

// --max-steps, or the setting. EXIT_OK, or what was reported.
int steps_max_read(struct cli *cli, uint32_t *out);
// Looks where engine_find_part looks.
struct program_loader source_loader(struct sources *sources);
bool sources_add(struct sources *sources, const struct source *source);

struct document {
    struct sources sources;
    struct diagnostics diagnostics;
    struct program *program; // NULL: invalid
};

// Reads and compiles `path` ("-" is stdin). EXIT_OK (also when it is invalid: see program), or what was reported.
int document_load(struct cli *cli, struct str path, struct document *out);
// Of a word that names a document or a run: it is a document when it is "-", a file that exists, or has the extension
// of one.
bool word_is_document(struct str word);
// "FILE:LINE:COL: error[...] ..." with the source line and the hint, for every diagnostic, on stderr.
void document_report(struct cli *cli, const struct document *document);

#endif
