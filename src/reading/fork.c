// A fork that has not happened yet, for programs.
#include "reading/reading.h"

#include "json/make.h"

// 0: it was not there.
static enum node_state before(const struct fork *fork, uint32_t step)
{
    uint32_t found = program_find(fork->before, PROGRAM_TOP, fork->program->steps[step].id);
    return found == PROGRAM_TOP ? (enum node_state)0 : kernel_state(fork->source, found);
}

static const char *state_name(enum node_state state)
{
    if (!state) return "";
    switch (state) {
    case NODE_SUCCESS:
        return step_status_name(STEP_STATUS_SUCCESS);
    case NODE_FAILED:
    case NODE_HELD:
    case NODE_DELAYED:
        return step_status_name(STEP_STATUS_FAILED);
    case NODE_SKIPPED:
        return step_status_name(STEP_STATUS_SKIPPED);
    case NODE_RUNNING:
        return step_status_name(STEP_STATUS_RUNNING);
    case NODE_WAITING:
        break;
    }
    return step_status_name(STEP_STATUS_PENDING);
}

static struct json step_json(const struct fork *fork, uint32_t step, struct arena *arena)
{
    const struct step_fate *fate = &fork->fates[step];
    bool again = fate->fate == FORK_AGAIN, hangs = again && fate->why == AGAIN_DEPENDENCY;
    return JSON_OF(arena, {"stepId", json_some(fork->program->steps[step].id)},
                   {"fate", json_name(fate_name(fate->fate))},
                   {"why", json_name(fate_why_name(again ? fate->why : AGAIN_NOTHING))},
                   {"input", again ? json_some(fate->input) : json_none()},
                   {"cause", hangs ? json_some(fork->program->steps[fate->cause].id) : json_none()},
                   {"sourceStatus", json_name(state_name(before(fork, step)))});
}

static struct json document_json(const struct fork *fork, struct arena *arena)
{
    bool same = digest_eq(&fork->program->sha256, &fork->before->sha256);
    return JSON_OF(arena, {"changed", json_bool(!same)}, {"planId", json_some(fork->program->plan_id)},
                   {"planVersion", json_some(fork->program->plan_version)},
                   {"sha256", json_name(fork->program->sha256_hex)});
}

static bool is_gone(const struct fork *fork, uint32_t step)
{
    return program_find(fork->program, PROGRAM_TOP, fork->before->steps[step].id) == PROGRAM_TOP;
}

bool reading_fork(const struct fork *fork, const char *how, struct arena *arena, struct json *out)
{
    struct json steps = json_array(), gone = json_array();
    for (uint32_t i = 0; i < fork->program->top_count; i++) json_append(arena, &steps, step_json(fork, i, arena));
    for (uint32_t i = 0; i < fork->before->top_count; i++)
        if (is_gone(fork, i)) json_append(arena, &gone, json_string(fork->before->steps[i].id));
    *out = JSON_OF(arena, {"how", json_name(how)},
                   {"source", JSON_OF(arena, {"runId", json_some(fork->head.ids.run)}, {"runSeq", json_count(fork->at)})},
                   {"document", document_json(fork, arena)}, {"inputsChanged", fork->changed}, {"steps", steps},
                   {"gone", gone}, {"endsAtOnce", json_bool(run_status_terminal(fork->run->status))});
    return json_ok(out);
}
