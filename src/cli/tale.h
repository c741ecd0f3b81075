// A stored run, explained: for `why` and `diff`.
#ifndef CAIRN_CLI_TALE_H
#define CAIRN_CLI_TALE_H

#include "cli/session.h"
#include "reading/reading.h"

// EXIT_OK, or what was reported; tale_release in both cases. The session must stay open while the tale is used.
int tale_load(struct session *session, const struct run_head *head, uint64_t at, struct tale *out);

#endif
