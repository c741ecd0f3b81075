// One run, or one step of it, as people read it: folded from its log, not from anything that remembers. What is read for
// it comes from the caller (cli/card.h).
#ifndef CAIRN_TERM_CARD_H
#define CAIRN_TERM_CARD_H

#include "store/store.h"
#include "term/term.h"
#include "view/view.h"

struct card {
    struct run_head head; // as it is now, whatever moment the view shows
    struct run_view view;
    struct program *program; // of the view; NULL when it cannot be read
    const char *url;         // of its store, as people write it
    bool memory;             // the store ends with the process
    bool past;               // the view is of a moment before the end of the log
    int64_t now_ms;          // what durations run until: the moment of the view, or now
};

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
void card_write(struct console *console, struct buf *out, const struct term *term, const struct card *card, bool wide);
// What `cairn run` says at the end: status, counts, duration, the failure, where the log is, what to try next.
void card_summary(struct console *console, const struct card *card);

enum { STEP_TAIL = 10 };
struct step_facts {                      // what the view of a step does not have
    const struct program_step *declared; // NULL: not known
    const struct json *inputs;           // of the attempt that is shown; NULL: not known
    bool rendered;                       // the inputs have every reference replaced
    const char *tail[STEP_TAIL];         // the end of its log, safe for terminals
    size_t tail_count;
    bool tail_cut; // there are lines before them
};
// The card of one step; `attempt` 0: all of them.
void step_card_write(struct console *console, struct buf *out, const struct term *term, const struct card *card,
                     const struct step_view *step, uint32_t attempt, const struct step_facts *facts);

#endif
