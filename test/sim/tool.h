// Tools of the simulator: fake ones (src/trial/fake_tools.h) that remember everything and answer as the choices say.
//
// Every start is shown to the checker (the outside world's memory) before it is accepted. What comes back, and when, is
// picked at the start: at once, later, never before the step's time limit, twice, failed, refused. A cancelled attempt
// still answers: cancelled, or with what it had done before the signal reached it.
// The task of a playbook answers what its command says (workload_net.h); a fate that changes what comes out of it is told to the
// checker, which then expects no particular end of the run.
// owner: one engine of one world.
#ifndef CAIRN_TEST_SIM_TOOL_H
#define CAIRN_TEST_SIM_TOOL_H

#include "sim/checker.h"
#include "sim/choice.h"
#include "trial/fake_tools.h"

struct sim_tool {
    struct fake_tools fake;
    struct choice *choice;
    struct checker *checker;
    struct arena arena;   // answers of tasks
    uint32_t fault_rate;  // once in so many starts something else than "done at once"; 0 = never
    uint32_t faults_left; // starts that may still go wrong
    bool fenced;          // of an engine that lost its leases: it must start nothing (S6)
    void (*started)(void *context, const struct tool_request *request); // after the checker; may be NULL
    void *context;
};

void sim_tool_init(struct sim_tool *tool, struct choice *choice, struct checker *checker, const int64_t *now_ms);
void sim_tool_release(struct sim_tool *tool);

#endif
