// What only the present knows of a run: which of its attempts wait for a slot or a worker, where it stands in its queue.
#ifndef CAIRN_CLI_PRESENT_H
#define CAIRN_CLI_PRESENT_H

#include "cli/session.h"

// NULL: the run has ended, or no server can be asked. In the command's arena.
const struct json *run_present(struct session *session, const struct run_head *head);

#endif
