// Tools of the simulator: they do nothing, remember everything, and answer as the choices say.
//
// Every start is shown to the checker (the outside world's memory) before it is accepted. What comes back, and when, is
// picked at the start: at once, later, never before the step's time limit, twice, failed, refused. A cancelled attempt
// still answers: cancelled, or with what it had done before the signal reached it.
// owner: one engine of one world.
#ifndef CAIRN_TEST_SIM_TOOL_H
#define CAIRN_TEST_SIM_TOOL_H

#include "engine/engine.h"
#include "sim/checker.h"
#include "sim/choice.h"

struct tool_answer {
    uint64_t ticket;
    int64_t due_ms; // monotonic
    bool ok, twice, cancelled;
    const char *code, *output;
    bool retryable;
};

struct sim_tool {
    struct tools base;
    struct choice *choice;
    struct checker *checker;
    struct engine *engine;
    const int64_t *now_ms; // monotonic
    uint32_t fault_rate;   // once in so many starts something else than "done at once"; 0 = never
    uint32_t faults_left;  // starts that may still go wrong
    bool fenced;           // of an engine that lost its leases: it must start nothing (S6)
    struct tool_answer *answers;
    size_t count, capacity;
    uint64_t start_count;
    void (*started)(void *context, const struct tool_request *request); // after the checker; may be NULL
    void *context;
};

void sim_tool_init(struct sim_tool *tool, struct choice *choice, struct checker *checker, const int64_t *now_ms);
void sim_tool_release(struct sim_tool *tool);
int64_t sim_tool_due(const struct sim_tool *tool); // INT64_MAX when nothing is in flight
// Hands answer `index` to the engine; the attempt is over then (unless it answers twice).
void sim_tool_deliver(struct sim_tool *tool, size_t index);

#endif
