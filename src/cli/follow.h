// Waiting for a run that another process drives: looking again with growing pauses, and noticing when its process is gone.
#ifndef CAIRN_CLI_FOLLOW_H
#define CAIRN_CLI_FOLLOW_H

#include "cli/session.h"

struct follow {
    struct session *session;
    int64_t pause_ms; // grows while nothing happens
    unsigned orphan_looks;
    bool told;
};

void follow_init(struct follow *follow, struct session *session);
// Sleeps: a little when something has `moved` since the last time, longer and longer when not, never past `until_mono_ms`.
void follow_sleep(struct follow *follow, bool moved, int64_t until_mono_ms);

// The command that goes on with such a run, or "" when it needs none.
const char *need_command(struct cli *cli, const struct run_head *head);
// Says on stderr, once, that nobody drives the run or that it waits for a person, and what helps. Returns what it needs,
// NEED_OWNER only when it was so at two looks in a row.
enum need follow_need(struct follow *follow, const struct run_head *head);

#endif
