// A stored run, folded up to a moment by what explains: for `why` and `diff`.
#ifndef CAIRN_CLI_TALE_H
#define CAIRN_CLI_TALE_H

#include "cli/session.h"
#include "explain/explain.h"

struct tale {
    struct run_head head; // as it is now, whatever moment is told
    struct program *program;
    struct explain *explain;
};

// EXIT_OK, or what was reported; tale_release in both cases. The session must stay open while the tale is used.
int tale_load(struct session *session, const struct run_head *head, uint64_t at, struct tale *out);
void tale_release(struct tale *tale);

#endif
