// Steps of a run, how they hang together, and why they are as they are.
#include "api/inside.h"

#include "author/author.h"

// ---- steps

// The steps of the snapshot: all of them, or the one of params[1].
bool tell_steps(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct error err = {0};
    struct json whole, present;
    uint64_t at;
    if (!moment_asked(ask, head, &at) || !present_of(ask, head, at, &present)) return false;
    if (reading_snapshot(store, head, at, &call->arena, &whole, &err)) return call_failed(call, &err);
    present_into(ask, &present, &whole);
    const struct json *steps = json_key(&whole, "steps");
    if (ask->params[1].len == 0) return answer_page(ask, steps ? *steps : json_array(), (struct str){0});
    for (uint32_t i = 0; steps && i < steps->count; i++) {
        if (!str_eq(json_text(json_key(&steps->items[i], "stepId")), ask->params[1])) continue;
        return call_answer(call, 200, steps->items[i]);
    }
    return call_problem(call, 404, "STEP_NOT_FOUND", "the run has no step %.*s", STR_ARG(ask->params[1]));
}

// How the steps are is part of how the run is; what they gave is hidden from those who may not see it.
// ---- why

bool tell_why(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct explained_run explained SCOPED(explained_release) = {0};
    struct error err = {0};
    struct json answer, present, whole = {0};
    uint64_t at;
    if (!moment_asked(ask, head, &at) || !present_of(ask, head, at, &present)) return false;
    int64_t now = at == READING_NOW ? os_now().wall_ms : 0;
    enum code rc = reading_explain(store, head, at, ask->params[1], false, &call->arena, &explained, &err);
    if (!rc) explain_present(explained.explain, present.type ? &present : NULL);
    if (!rc && ask->params[1].len > 0)
        rc = explain_step(explained.explain, ask->params[1], now, &call->arena, &answer, &err);
    else if (!rc)
        rc = explain_run(explained.explain, now, &call->arena, &answer, &err);
    if (!rc && !json_copy(&call->arena, &answer, &whole)) rc = error_nomem(&err);
    if (rc == E_NOT_FOUND)
        return call_problem(call, 404, "STEP_NOT_FOUND", "the run has no step %.*s", STR_ARG(ask->params[1]));
    if (rc) return call_failed(call, &err);
    return call_answer(call, 200, whole);
}

// ---- the graph of its document

bool tell_graph(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct folded folded SCOPED(folded_release) = {0};
    struct error err = {0};
    struct json made, answer = json_none();
    enum code rc = reading_fold(store, head, READING_NOW, &call->arena, &folded, &err);
    bool readable = !rc && folded.program;
    if (readable) rc = graph_json(folded.program, &call->arena, &made, &err);
    if (readable && !rc && !json_copy(&call->arena, &made, &answer)) rc = error_nomem(&err);
    if (!rc && !readable)
        return call_problem(call, 404, "REFERENCE_NOT_AVAILABLE", "the document of the run cannot be read: %s",
                            folded.unreadable.message);
    if (rc) return call_failed(call, &err);
    return call_answer(call, 200, answer);
}
