// A fork that has not happened yet, for programs.
#include "reading/reading.h"

static const struct run_step *before(const struct fork *fork, uint32_t step)
{
    uint32_t found = program_find(fork->before, PROGRAM_TOP, fork->program->steps[step].id);
    return found == PROGRAM_TOP ? NULL : &fork->source->steps[found];
}

static bool put(struct arena *arena, struct json *object, const char *key, struct str text)
{
    return text.len == 0 || json_put(arena, object, str_from(key), json_string(text));
}

static const char *state_name(const struct run_step *step)
{
    if (!step) return "";
    switch ((enum node_state)step->state) {
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

static bool step_json(const struct fork *fork, uint32_t step, struct arena *arena, struct json *out)
{
    const struct step_fate *fate = &fork->fates[step];
    bool again = fate->fate == FORK_AGAIN, hangs = again && fate->why == AGAIN_DEPENDENCY;
    return json_object_with(arena, 6, out) && put(arena, out, "stepId", fork->program->steps[step].id) &&
           put(arena, out, "fate", str_from(fate_name(fate->fate))) &&
           put(arena, out, "why", str_from(fate_why_name(again ? fate->why : AGAIN_NOTHING))) &&
           put(arena, out, "input", again ? fate->input : STR("")) &&
           (!hangs || put(arena, out, "cause", fork->program->steps[fate->cause].id)) &&
           put(arena, out, "sourceStatus", str_from(state_name(before(fork, step))));
}

static bool document_json(const struct fork *fork, struct arena *arena, struct json *out)
{
    bool same = digest_eq(&fork->program->sha256, &fork->before->sha256);
    return json_object_with(arena, 4, out) && json_put(arena, out, STR("changed"), json_bool(!same)) &&
           put(arena, out, "planId", fork->program->plan_id) &&
           put(arena, out, "planVersion", fork->program->plan_version) &&
           put(arena, out, "sha256", str_from(fork->program->sha256_hex));
}

static bool is_gone(const struct fork *fork, uint32_t step)
{
    return program_find(fork->program, PROGRAM_TOP, fork->before->steps[step].id) == PROGRAM_TOP;
}

bool reading_fork(const struct fork *fork, const char *how, struct arena *arena, struct json *out)
{
    struct json steps = json_array(), gone = json_array(), document, source;
    bool ok = true;
    for (uint32_t i = 0; ok && i < fork->program->top_count; i++) {
        struct json step;
        ok = step_json(fork, i, arena, &step) && json_push(arena, &steps, step);
    }
    for (uint32_t i = 0; ok && i < fork->before->top_count; i++)
        if (is_gone(fork, i)) ok = json_push(arena, &gone, json_string(fork->before->steps[i].id));
    ok = ok && document_json(fork, arena, &document) && json_object_with(arena, 2, &source) &&
         put(arena, &source, "runId", fork->head.ids.run) &&
         json_put(arena, &source, STR("runSeq"), json_int((int64_t)fork->at));
    return ok && json_object_with(arena, 7, out) && put(arena, out, "how", str_from(how)) &&
           json_put(arena, out, STR("source"), source) && json_put(arena, out, STR("document"), document) &&
           json_put(arena, out, STR("inputsChanged"), fork->changed) && json_put(arena, out, STR("steps"), steps) &&
           json_put(arena, out, STR("gone"), gone) &&
           json_put(arena, out, STR("endsAtOnce"), json_bool(run_status_terminal(fork->run->status)));
}
