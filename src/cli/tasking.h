// --tools and --credentials: the tasks of playbooks in this process.
#ifndef CAIRN_CLI_TASKING_H
#define CAIRN_CLI_TASKING_H

#include "cli/cli.h"
#include "task/task.h"

// The credentials of --credentials FILE, a JSON or YAML object by name; type 0: none. EXIT_OK, or what was reported.
int credentials_read(struct cli *cli, struct json *out);
const char *tasking_self(struct cli *cli); // the path of this program; NULL: not known
// What these flags say about the tasks of playbooks. EXIT_OK, or what was reported.
int tasking_read(struct cli *cli, struct task_options *out);

#endif
