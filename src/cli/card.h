// What is read for the cards of runs and steps (term/card.h).
#ifndef CAIRN_CLI_CARD_H
#define CAIRN_CLI_CARD_H

#include "cli/session.h"
#include "term/card.h"

struct explained_run;

// Folds a stored run up to event `at` (TARGET_NOW: all of it). EXIT_OK, or what was reported; card_release in both cases.
int card_load(struct session *session, const struct run_head *head, uint64_t at, struct card *out);
void card_release(struct card *card);
// A stored run, explained: for `why` and `diff`. EXIT_OK, or what was reported; explained_release in both cases. The session must
// stay open while it is used.
// `step`, `whole`: as in reading_explain.
int explained_load(struct session *session, const struct run_head *head, uint64_t at, struct str step, bool whole,
                   struct explained_run *out);
// The step of that path, or for a loop its rounds. False: there is none, reported with the nearest name (exit 5).
bool card_has_step(struct session *session, const struct card *card, struct str step);
// What the card of a step shows beside the view; in the command's arena. `attempt` 0: the last one.
void step_facts_read(struct session *session, const struct card *card, const struct step_view *step, uint32_t attempt,
                     struct step_facts *out);
// The same as data: the step of the snapshot with its kind, needs, rendered inputs and files of logs. False: no memory.
bool step_card_json(struct session *session, const struct card *card, const struct step_view *step, uint32_t attempt,
                    struct json *out);
// The inputs of an attempt with every reference replaced, in the command's arena; as written (*rendered false) when they
// cannot be had yet. NULL: not known.
const struct json *step_inputs(struct session *session, const struct card *card, const struct step_view *step,
                               uint32_t logical, bool *rendered);

#endif
