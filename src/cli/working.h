// What commands have in common that execute steps of a server: `worker` and `host`.
#ifndef CAIRN_CLI_WORKING_H
#define CAIRN_CLI_WORKING_H

#include "cli/cli.h"
#include "worker/worker.h"

// From the flags. EXIT_OK, or what was reported. `task` lives as long as the worker.
int working_read(struct cli *cli, struct worker_options *options, struct task_options *task);
// Until it is interrupted: the first time it drains, the second time it stops. EXIT_OK, or what was reported.
int working_loop(struct cli *cli, struct worker *worker);

#endif
