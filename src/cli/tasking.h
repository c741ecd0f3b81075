// --tools, --credentials, --containers, --fetch and --limits: the tasks of playbooks in this process.
#ifndef CAIRN_CLI_TASKING_H
#define CAIRN_CLI_TASKING_H

#include "cli/cli.h"
#include "engine/engine.h"
#include "fetch/fetch.h"

// The credentials of --credentials FILE, a JSON or YAML object by name; type 0: none. EXIT_OK, or what was reported.
int credentials_read(struct cli *cli, struct json *out);
// Where tasks may send requests, of --fetch FILE; without it nowhere. EXIT_OK, or what was reported.
int fetch_read(struct cli *cli, struct fetch_policy **out);
// Who runs containers, of --containers FILE; NULL without it. EXIT_OK, or what was reported.
int containers_read(struct cli *cli, const struct container_settings **out);
// What one run may come to, of --limits. `sql_bytes` may be NULL. EXIT_OK, or what was reported.
int limits_read(struct cli *cli, struct engine_limits *out, uint64_t *sql_bytes);
// How long artifacts are kept, of --artifact-retention. EXIT_OK, or what was reported.
int retention_read(struct cli *cli, struct retention *out);
const char *tasking_self(struct cli *cli); // the path of this program; NULL: not known
// What these flags say about the tasks of playbooks. EXIT_OK, or what was reported.
int tasking_read(struct cli *cli, struct task_options *out);

#endif
