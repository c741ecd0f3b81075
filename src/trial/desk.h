// Tools that do nothing: a desk takes every request, somebody decides what shall come back and when, and nobody runs a
// process. Time is the caller's: an answer waits at the desk until its moment has come and it is handed in.
//
// `decide` is asked once per start; `cancelled` when the engine wants an attempt to stop, which still answers. One desk
// belongs to one engine; closing the engine's tools clears it. owner: engine thread.
#ifndef CAIRN_TRIAL_DESK_H
#define CAIRN_TRIAL_DESK_H

#include "engine/engine.h"

struct desk_answer {
    uint64_t ticket;
    int64_t due_ms; // monotonic
    uint64_t order; // among those that are due together, the smallest goes first
    bool ok, twice, cancelled;
    bool lost;         // nobody knows what came out
    bool is_json;      // the output is a function's
    struct str output; // borrowed until it is handed in
    struct fault fault;
    int64_t duration_ms;
    size_t tag; // the decider's
};

struct desk {
    struct tools base;
    struct engine *engine;
    const int64_t *now_ms; // monotonic
    void *context;
    // Fills in what shall come back: `answer` is due now and has its ticket. An error: the start is refused.
    enum code (*decide)(void *context, const struct tool_request *request, struct desk_answer *answer,
                        struct error *err);
    void (*cancelled)(void *context, struct desk_answer *answer, int64_t grace_ms);
    struct desk_answer *answers;
    size_t count, capacity;
    uint64_t start_count;
};

void desk_init(struct desk *desk, const int64_t *now_ms);
void desk_release(struct desk *desk);
int64_t desk_due(const struct desk *desk);  // INT64_MAX when nothing is in flight
size_t desk_first(const struct desk *desk); // index of the answer that goes next; count when there is none
// Hands answer `index` to the engine; the attempt is over then (unless it answers twice).
void desk_deliver(struct desk *desk, size_t index);

#endif
