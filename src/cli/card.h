// One run as people read it: folded from its log, not from anything that remembers.
#ifndef CAIRN_CLI_CARD_H
#define CAIRN_CLI_CARD_H

#include "cli/session.h"
#include "view/view.h"

struct explained_run;

struct card {
    struct run_head head; // as it is now, whatever moment the view shows
    struct run_view view;
    struct program *program; // of the view; NULL when it cannot be read
    bool past;               // the view is of a moment before the end of the log
    int64_t now_ms;          // what durations run until: the moment of the view, or now
};

// Folds a stored run up to event `at` (TARGET_NOW: all of it). EXIT_OK, or what was reported; card_release in both cases.
int card_load(struct session *session, const struct run_head *head, uint64_t at, struct card *out);
void card_release(struct card *card);
// A stored run, explained: for `why` and `diff`. EXIT_OK, or what was reported; explained_release in both cases. The session must
// stay open while it is used.
int explained_load(struct session *session, const struct run_head *head, uint64_t at, struct explained_run *out);
// The step of that path, or for a loop its rounds. False: there is none, reported with the nearest name (exit 5).
bool card_has_step(struct session *session, const struct card *card, struct str step);
enum look look_of_step(const struct step_view *step);
// The same for runs that may have ended. It agrees with `why`.
enum look look_in_run(const struct run_view *view, const struct step_view *step);
// "TIMEOUT: timed out after 5s", "EXIT_NONZERO exit 1", safe for terminals.
void fault_line(struct buf *out, const struct fault *fault);
// "event 12 of 40, 2026-02-11T17:00:00.000Z" and a newline: the moment of the view.
void card_moment(struct buf *out, const struct card *card);
// "name      ", in the column of a card's labels.
void card_label(struct buf *out, const struct term *term, const char *name);
// The card of `cairn get`.
void card_write(struct session *session, struct buf *out, const struct term *term, const struct card *card, bool wide);
// The card of one step; `attempt` 0: all of them.
void step_card_write(struct session *session, struct buf *out, const struct term *term, const struct card *card,
                     const struct step_view *step, uint32_t attempt);
// The same as data: the step of the snapshot with its kind, needs, rendered inputs and files of logs. False: no memory.
bool step_card_json(struct session *session, const struct card *card, const struct step_view *step, uint32_t attempt,
                    struct json *out);
// The inputs of an attempt with every reference replaced, in the command's arena; as written (*rendered false) when they
// cannot be had yet. NULL: not known.
const struct json *step_inputs(struct session *session, const struct card *card, const struct step_view *step,
                               uint32_t logical, bool *rendered);
// What `cairn run` says at the end: status, counts, duration, the failure, where the log is, what to try next.
void card_summary(struct session *session, const struct card *card);

#endif
