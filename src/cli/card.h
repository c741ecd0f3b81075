// One run as people read it: folded from its log, not from anything that remembers.
#ifndef CAIRN_CLI_CARD_H
#define CAIRN_CLI_CARD_H

#include "cli/session.h"
#include "view/view.h"

struct card {
    struct run_head head; // as it is now, whatever moment the view shows
    struct run_view view;
    struct program *program; // of the view; NULL when it cannot be read
};

// Folds a stored run up to event `at` (TARGET_NOW: all of it). EXIT_OK, or what was reported; card_release in both cases.
int card_load(struct session *session, const struct run_head *head, uint64_t at, struct card *out);
void card_release(struct card *card);
// The step of that path, or for a loop its rounds. False: there is none, reported with the nearest name (exit 5).
bool card_has_step(struct session *session, const struct card *card, struct str step);
enum look look_of_step(const struct step_view *step);
// The card of `cairn get`.
void card_write(struct session *session, struct buf *out, const struct term *term, const struct card *card);
// What `cairn run` says at the end: status, counts, duration, the failure, where the log is, what to try next.
void card_summary(struct session *session, const struct card *card);

#endif
