// Tools that do nothing: they take every request, and the caller of fake_init decides what comes back and when. No process is
// started. Time is the caller's: an answer waits here until its moment has come and it is delivered.
//
// `decide` is asked once per start; `cancelled` when the engine wants an attempt to stop, which still answers. They belong to
// one engine; closing the engine's tools clears them. owner: engine thread.
#ifndef CAIRN_TRIAL_FAKE_TOOLS_H
#define CAIRN_TRIAL_FAKE_TOOLS_H

#include "engine/engine.h"

struct fake_answer {
    uint64_t ticket;
    int64_t due_ms; // monotonic
    uint64_t order; // among those that are due together, the smallest goes first
    bool ok, twice, cancelled;
    bool lost;         // nobody knows what came out
    bool late;         // it does not stop when it is asked to
    bool is_json;      // the output is a function's
    struct str output; // borrowed until it is handed in
    struct fault fault;
    int64_t duration_ms;
    size_t tag; // the decider's
};

struct fake_tools {
    struct tools base;
    struct engine *engine;
    const int64_t *now_ms; // monotonic
    void *context;
    // Fills in what shall come back: `answer` is due now and has its ticket. An error: the start is refused.
    enum code (*decide)(void *context, const struct tool_request *request, struct fake_answer *answer,
                        struct error *err);
    void (*cancelled)(void *context, struct fake_answer *answer, int64_t grace_ms);
    void (*hand)(void *context, struct tool_result *result); // who gets results instead of the engine; NULL: nobody
    struct fake_answer *answers;
    size_t count, capacity;
    uint64_t start_count;
};

void fake_init(struct fake_tools *fake, const int64_t *now_ms);
void fake_release(struct fake_tools *fake);
int64_t fake_due(const struct fake_tools *fake);  // INT64_MAX when nothing is in flight
size_t fake_first(const struct fake_tools *fake); // index of the answer that goes next; count when there is none
// Hands answer `index` to the engine; the attempt is over then (unless it answers twice).
void fake_deliver(struct fake_tools *fake, size_t index);

#endif
