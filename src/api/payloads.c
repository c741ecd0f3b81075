// What runs were given, what steps gave, how each attempt went.
#include "api/inside.h"

static const struct json *step_of(struct ask *ask, const struct json *whole)
{
    const struct json *steps = json_key(whole, "steps");
    for (uint32_t i = 0; steps && i < steps->count; i++)
        if (str_eq(json_text(json_key(&steps->items[i], "stepId")), ask->params[1])) return &steps->items[i];
    call_problem(ask->call, 404, "STEP_NOT_FOUND", "the run has no step %.*s", STR_ARG(ask->params[1]));
    return NULL;
}

// ---- attempts

bool tell_attempts(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct error err = {0};
    struct json whole, found = json_array();
    int64_t wanted = 0;
    bool one = ask->params[2].len > 0;
    if (one && (!str_int64(ask->params[2], &wanted) || wanted < 1))
        return call_problem(ask->call, 404, "ATTEMPT_NOT_FOUND", "attempts have numbers from 1");
    if (reading_snapshot(store, head, READING_NOW, &ask->call->arena, &whole, &err))
        return call_failed(ask->call, &err);
    const struct json *step = step_of(ask, &whole);
    if (!step) return false;
    const struct json *attempts = json_key(step, "attempts");
    for (uint32_t i = 0; attempts && i < attempts->count; i++) {
        if (one && json_integer(json_key(&attempts->items[i], "logicalAttemptId"), 0) != wanted) continue;
        json_append(&ask->call->arena, &found, attempts->items[i]);
    }
    if (!one || !json_ok(&found)) return answer_page(ask, found, (struct str){0});
    if (found.count == 0)
        return call_problem(ask->call, 404, "ATTEMPT_NOT_FOUND", "the step has no attempt %lld", (long long)wanted);
    return call_answer(ask->call, 200, found.items[found.count - 1]); // of those of one number, the last one counts
}

// ---- what a step gave

bool tell_output(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct error err = {0};
    struct step_output output;
    enum code rc = reading_output(store, head, ask->params[1], &call->arena, &output, &err);
    // Large results are kept as the text of what they are.
    if (!rc && output.bytes.ptr && json_parse(output.bytes, &json_limits_result, &call->arena, &output.value, &err))
        output.value = json_string(output.bytes);
    if (rc == E_NOT_FOUND || rc == E_UNREACHABLE)
        return call_problem(call, rc == E_NOT_FOUND ? 404 : 503, "REFERENCE_NOT_AVAILABLE", "%s", err.message);
    if (rc) return call_failed(call, &err);
    if (!output.known)
        return call_problem(call, 404, "STEP_NOT_FOUND", "the run has no step %.*s", STR_ARG(ask->params[1]));
    if (!output.value.type) return call_problem(call, 404, "OUTPUT_NOT_FOUND", "the step has given nothing yet");
    return call_answer(call, 200,
                       JSON_OF(&call->arena, {"stepId", json_some(ask->params[1])}, {"result", output.value},
                               {"truncated", json_bool(output.truncated)}));
}

// ---- what a step was given

static bool tell_tasks(struct ask *ask, struct store *store, const struct run_head *head, uint64_t at)
{
    struct call *call = ask->call;
    struct explained_run explained SCOPED(explained_release) = {0};
    struct error err = {0};
    struct json given, whole = {0};
    enum code rc = reading_explain(store, head, at, ask->params[1], true, &call->arena, &explained, &err);
    if (!rc) rc = explain_given(explained.explain, ask->params[1], &call->arena, &given, &err);
    if (!rc && !json_copy(&call->arena, &given, &whole)) rc = error_nomem(&err);
    if (rc == E_NOT_FOUND)
        return call_problem(call, 404, "STEP_NOT_FOUND", "the run has no step %.*s", STR_ARG(ask->params[1]));
    return rc ? call_failed(call, &err) : call_answer(call, 200, whole);
}

bool tell_inputs(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct folded folded SCOPED(folded_release) = {0};
    struct error err = {0};
    struct step_given given;
    struct json source = {0};
    int64_t attempt;
    uint64_t at;
    if (!query_number(ask, "attempt", 1, INT32_MAX, 0, &attempt) || !moment_asked(ask, head, &at)) return false;
    if (reading_fold(store, head, at, &call->arena, &folded, &err)) return call_failed(call, &err);
    if (!folded.program) return call_failed(call, &folded.unreadable);
    if (folded.program->net) return tell_tasks(ask, store, head, at);
    const struct step_view *step = view_step(&folded.view, ask->params[1]);
    struct given_asked asked = {.step = ask->params[1],
                                .logical = attempt ? (uint32_t)attempt : step ? step->logical : 0,
                                .at = reading_event(at),
                                .text = true};
    enum code rc = reading_given(store, head, folded.program, &asked, &call->arena, &given, &err);
    if (rc == E_NOT_FOUND)
        return call_problem(call, 404, "STEP_NOT_FOUND", "the run has no step %.*s", STR_ARG(ask->params[1]));
    if (rc) return call_failed(call, &err);
    if (!json_copy(&call->arena, &given.step->with, &source)) return call_nomem(call);
    struct json rendered = given.with.type ? given.with : json_null();
    struct str why = given.with.type ? (struct str){0} : str_from(given.why.message);
    return call_answer(call, 200,
                       JSON_OF(&call->arena, {"runId", json_some(head->ids.run)}, {"stepId", json_some(ask->params[1])},
                               {"attempt", json_nonzero(asked.logical)}, {"source", source}, {"rendered", rendered},
                               {"env", json_filled(given.env)}, {"why", json_copied_some(&call->arena, why)}));
}

// ---- what a run was given

bool tell_payload(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct error err = {0};
    struct json body;
    if (reading_payload(store, head, &call->arena, &body, &err)) return call_failed(call, &err);
    return call_answer(call, 200, body);
}

