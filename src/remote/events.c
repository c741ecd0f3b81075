// Events of playbooks that a worker reports in the words of their model (docs/format/noetl-events.md). What the engine writes, it writes
// itself: a report of how an attempt came out is its result, like one of the worker protocol; every other one says that the worker lives.
#include "remote/inside.h"

#include "json/make.h"

static void refuse(const struct worker_call *call, size_t index, enum code rc, const struct error *err)
{
    struct str rest, code = str_cut(str_from(err->message), ':', &rest);
    struct buf name, why;
    buf_init(&name, 128);
    buf_init(&why, 4096);
    buf_add(&name, code);
    buf_printf(&why, "event %zu: %.*s", index + 1, STR_ARG(str_trim(rest)));
    if (rc == E_NOMEM)
        call_refuse_nomem(call);
    else
        call_refuse(call->reply, call->context, rc == E_DENIED ? 403 : 400, name.ptr, why.ptr);
    buf_release(&name);
    buf_release(&why);
}

// "each:run:2[3]/fetch:run:2", as steps of playbooks are named to the workers that execute them.
static bool is_of(const struct task_claim *claim, const struct ingested *said)
{
    struct str task, path = str_cut(claim->step, '/', &task);
    if (said->task.len && task.len) {
        bool first = str_eq(task, said->task);
        bool later =
            str_starts(task, said->task) && str_starts(str_slice(task, said->task.len, task.len), STR(":run:"));
        if (!first && !later) return false;
    }
    struct str after = str_slice(path, said->step.len, path.len);
    if (!str_starts(path, said->step)) return false;
    if (str_starts(after, STR(":run:"))) {
        int64_t visit = 0;
        after = str_slice(after, 5, after.len);
        struct str number = str_slice(after, 0, str_find(after, '[', 0));
        return str_int64(number, &visit) && (said->visit == 0 || said->visit == visit);
    }
    return (after.len == 0 || after.ptr[0] == '[') && said->visit <= 1;
}

static enum code check_event(const struct worker_call *call, const struct json *event, const struct task_claim *claim,
                             struct ingested *said, struct error *err)
{
    bool first_party = str_is(json_text(json_key(&call->body, "producer")), "cairn");
    enum code rc = noetl_ingest(event, first_party, call->arena, said, err);
    if (rc) return rc;
    if (!str_eq(said->execution, call->execution) || !str_eq(said->execution, claim->run))
        return error_set(err, E_DENIED, "EVENT_NOT_ALLOWED: the task is of another execution");
    if (!is_of(claim, said)) return error_set(err, E_DENIED, "EVENT_NOT_ALLOWED: the task is of another step");
    return OK;
}

static void renew(struct remote *r, const struct worker_call *call, struct str token)
{
    struct remote_caller caller = {.tenant = call->tenant, .pool = call->pool};
    struct worker_task *task;
    pthread_mutex_lock(&r->mutex);
    struct remote_answer answer = {.state = task_leased(r, &caller, token, &task)};
    if (task) task_renew(r, task);
    if (task && task->cancelled) {
        answer = (struct remote_answer){.state = REMOTE_CANCEL, .grace_ms = task->grace_ms};
        task_told(task, true);
    }
    pthread_mutex_unlock(&r->mutex);
    struct buf body = buf_of(4096);
    int status = write_answer(&body, &answer, 1);
    call->reply(call->context, status, buf_str(&body));
    buf_release(&body);
}

// The outcome as the result of the attempt: the same said again is the same result, whatever event says it.
static bool as_result(const struct worker_call *call, const struct json *outcome, struct worker_call *out)
{
    struct arena *arena = call->arena;
    const struct json *token = json_key(&call->body, "token"), *epoch = json_key(&call->body, "epoch");
    struct json list = json_array();
    json_append(arena, &list, JSON_OF(arena, {"token", *token}, {"epoch", *epoch}, {"value", *outcome}));
    *out = *call;
    out->kind = REMOTE_COMPLETE;
    out->body = JSON_OF(arena, {"results", list});
    return json_ok(&out->body);
}

void serve_events(struct remote *r, const struct worker_call *call)
{
    const struct json *list = json_key(&call->body, "events"), *token = json_key(&call->body, "token");
    struct task_claim claim;
    struct error err = {0};
    if (!json_is(list, JSON_ARRAY) || list->count == 0 || !json_is(json_key(&call->body, "epoch"), JSON_INT)) {
        call_refuse(call->reply, call->context, 400, "INVALID_REQUEST",
                    "\"token\", \"epoch\" and \"events\" are needed");
        return;
    }
    if (auth_task_open(&r->options.key, json_text(token), call->arena, &claim, &err)) {
        call_refuse(call->reply, call->context, 403, "TASK_TOKEN_INVALID", "not a token of this server");
        return;
    }
    struct json outcome = {0};
    for (uint32_t i = 0; i < list->count; i++) { // all of them, before anything is done
        struct ingested said;
        enum code rc = check_event(call, &list->items[i], &claim, &said, &err);
        if (rc) {
            refuse(call, i, rc, &err);
            return;
        }
        if (said.ends) outcome = said.outcome;
    }
    struct worker_call result;
    if (!outcome.type)
        renew(r, call, json_text(token));
    else if (as_result(call, &outcome, &result))
        serve_results(r, &result);
    else
        call_refuse_nomem(call);
}
