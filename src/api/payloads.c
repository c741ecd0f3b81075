// What runs were given, what steps gave, how each attempt went.
#include "api/inside.h"

// The run as it is, in the arena of the call. False: answered.
static bool snapshot(struct ask *ask, struct store *store, const struct run_head *head, struct json *out)
{
    struct call *call = ask->call;
    struct folded folded;
    struct error err = {0};
    struct json told;
    enum code rc = reading_fold(store, head, READING_NOW, &call->arena, &folded, &err);
    // It borrows the program's texts: they are copied before it goes.
    if (!rc && (!view_json(&folded.view, &call->arena, &told) || !json_copy(&call->arena, &told, out)))
        rc = error_set(&err, E_NOMEM, "out of memory");
    folded_release(&folded);
    if (rc) call_failed(call, &err);
    return rc == OK;
}

static const struct json *step_of(struct ask *ask, const struct json *whole)
{
    const struct json *steps = json_key(whole, "steps");
    for (uint32_t i = 0; steps && i < steps->count; i++)
        if (str_eq(json_text(json_key(&steps->items[i], "stepId")), ask->params[1])) return &steps->items[i];
    call_problem(ask->call, 404, "STEP_NOT_FOUND", "the run has no step %.*s", STR_ARG(ask->params[1]));
    return NULL;
}

// ---- attempts

static void tell_attempts(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct json whole, found = json_array();
    int64_t wanted = 0;
    bool one = ask->params[2].len > 0;
    if (one && (!str_int64(ask->params[2], &wanted) || wanted < 1)) {
        call_problem(ask->call, 404, "ATTEMPT_NOT_FOUND", "attempts have numbers from 1");
        return;
    }
    if (!snapshot(ask, store, head, &whole)) return;
    const struct json *step = step_of(ask, &whole);
    if (!step) return;
    const struct json *attempts = json_key(step, "attempts");
    for (uint32_t i = 0; attempts && i < attempts->count; i++) {
        if (one && json_integer(json_key(&attempts->items[i], "logicalAttemptId"), 0) != wanted) continue;
        if (!json_push(&ask->call->arena, &found, attempts->items[i])) {
            no_memory(ask);
            return;
        }
    }
    if (!one)
        answer_page(ask, found, (struct str){0});
    else if (found.count == 0)
        call_problem(ask->call, 404, "ATTEMPT_NOT_FOUND", "the step has no attempt %lld", (long long)wanted);
    else
        call_answer(ask->call, 200, found.items[found.count - 1]); // of those of one number, the last one counts
}

void handle_attempt_list(struct ask *ask)
{
    with_run(ask, OPERATION_STEP_OUTPUT, tell_attempts);
}

void handle_attempt_get(struct ask *ask)
{
    with_run(ask, OPERATION_STEP_OUTPUT, tell_attempts);
}

// ---- what a step gave

static void tell_output(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct folded folded;
    struct error err = {0};
    struct json value = {0}, body = json_object();
    struct str bytes = {0};
    enum code rc = reading_fold(store, head, READING_NOW, &call->arena, &folded, &err);
    const struct step_view *step = rc ? NULL : view_step(&folded.view, ask->params[1]);
    bool known = step != NULL, truncated = step && step->truncated;
    if (step && step->has_blob)
        rc = store_blob(store, &step->blob, &call->arena, &bytes, &err);
    else if (step && step->value.type && !json_copy(&call->arena, &step->value, &value))
        rc = error_set(&err, E_NOMEM, "out of memory");
    folded_release(&folded);
    // Large results are kept as the text of what they are.
    if (!rc && bytes.ptr && json_parse(bytes, NULL, &call->arena, &value, &err)) value = json_string(bytes);
    if (rc)
        call_failed(call, &err);
    else if (!known)
        call_problem(call, 404, "STEP_NOT_FOUND", "the run has no step %.*s", STR_ARG(ask->params[1]));
    else if (!value.type)
        call_problem(call, 404, "OUTPUT_NOT_FOUND", "the step has given nothing yet");
    else if (ask_text(ask, &body, "stepId", ask->params[1]) && ask_json(ask, &body, "result", value) &&
             ask_json(ask, &body, "truncated", json_bool(truncated)))
        call_answer(call, 200, body);
    else
        no_memory(ask);
}

void handle_step_output(struct ask *ask)
{
    with_run(ask, OPERATION_STEP_OUTPUT, tell_output);
}

// ---- what a run was given

static void tell_payload(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct folded folded;
    struct error err = {0};
    struct json inputs = json_object(), body = json_object();
    enum code rc = reading_fold(store, head, READING_NOW, &call->arena, &folded, &err);
    if (!rc && folded.view.start.inputs.type && !json_copy(&call->arena, &folded.view.start.inputs, &inputs))
        rc = error_set(&err, E_NOMEM, "out of memory");
    if (!rc && !(ask_text(ask, &body, "runId", head->ids.run) && ask_json(ask, &body, "inputs", inputs) &&
                 ask_text(ask, &body, "arguments", folded.view.start.arguments)))
        rc = error_set(&err, E_NOMEM, "out of memory");
    folded_release(&folded);
    if (rc)
        call_failed(call, &err);
    else
        call_answer(call, 200, body);
}

void handle_run_payload(struct ask *ask)
{
    with_run(ask, OPERATION_RUN_PAYLOAD, tell_payload);
}
