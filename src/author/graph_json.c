// The graph for programs that draw it themselves, as the page does: every step once, and every way from one to the next.
#include "author/author.h"

#include "json/make.h"
#include "program/net.h"

// Ids are unique in their scope; a step inside of a loop is named by the loops around it: poll.fetch.
static struct str path_of(const struct program *program, uint32_t step, struct arena *arena)
{
    const struct program_step *ps = &program->steps[step];
    if (ps->scope == PROGRAM_TOP) return ps->id;
    struct str outer = path_of(program, ps->scope, arena);
    return outer.ptr ? arena_format(arena, "%.*s.%.*s", STR_ARG(outer), STR_ARG(ps->id)) : outer;
}

static struct json tasks_of(const struct net_step *net, struct arena *arena)
{
    struct json tasks = json_array();
    for (uint32_t i = 0; net && i < net->task_count; i++)
        json_append(arena, &tasks, JSON_OF(arena, {"label", json_string(net->tasks[i].label)},
                                           {"kind", json_string(net->tasks[i].kind)}));
    return json_filled(tasks);
}

static struct json step_of(const struct program *program, uint32_t step, struct arena *arena)
{
    const struct program_step *ps = &program->steps[step];
    const struct net_step *net = program->net ? &program->net->steps[step] : NULL;
    struct str kind = ps->kind == STEP_HOST ? ps->function : str_from(step_kind_name(ps->kind));
    bool rule = ps->dep_count > 0 && ps->rule != RULE_ALL_SUCCESS;
    return JSON_OF(arena, {"stepId", json_text_made(path_of(program, step, arena))},
                   {"name", json_when(!str_eq(ps->name, ps->id), json_string(ps->name))}, {"kind", json_string(kind)},
                   {"parentStepId", ps->scope == PROGRAM_TOP ? json_none()
                                                             : json_text_made(path_of(program, ps->scope, arena))},
                   {"triggerRule", rule ? json_word(rule_name(ps->rule)) : json_none()},
                   {"when", json_some(ps->when_text)},
                   {"maxAttempts", json_when(ps->retry.max_attempts > 1, json_count(ps->retry.max_attempts))},
                   {"maxIterations", json_nonzero(ps->kind == STEP_LOOP ? ps->max_iterations : 0)},
                   {"timeoutMs", json_nonzero(ps->timeout_ms)}, {"loop", json_flag(net && net->has_loop)},
                   {"tasks", tasks_of(net, arena)});
}

// Each way once: pairs of steps of a plan, arcs of a playbook with their conditions.
static void add_arcs(const struct program *program, uint32_t step, struct arena *arena, struct json *arcs)
{
    const struct program_step *ps = &program->steps[step];
    const struct net_step *net = program->net ? &program->net->steps[step] : NULL;
    for (uint32_t k = 0; !net && k < ps->dep_count; k++)
        json_append(arena, arcs, JSON_OF(arena, {"from", json_text_made(path_of(program, ps->deps[k], arena))},
                                         {"to", json_text_made(path_of(program, step, arena))}));
    for (uint32_t k = 0; net && k < net->arc_count; k++)
        json_append(arena, arcs, JSON_OF(arena, {"from", json_string(ps->id)},
                                         {"to", json_string(program->steps[net->arcs[k].step].id)},
                                         {"when", json_some(net->arcs[k].when.text)}));
}

enum code graph_json(const struct program *program, struct arena *arena, struct json *out, struct error *err)
{
    static const char *const kinds[] = {
        [DOCUMENT_PLAN] = "plan", [DOCUMENT_NODES] = "nodes", [DOCUMENT_PLAYBOOK] = "playbook"};
    struct json steps = json_array(), arcs = json_array();
    for (uint32_t i = 0; i < program->step_count; i++) {
        json_append(arena, &steps, step_of(program, i, arena));
        add_arcs(program, i, arena, &arcs);
    }
    *out = JSON_OF(arena, {"planId", json_string(program->plan_id)}, {"planVersion", json_string(program->plan_version)},
                   {"documentKind", json_word(kinds[program->kind])}, {"steps", steps}, {"arcs", arcs});
    return json_made(out, err);
}
