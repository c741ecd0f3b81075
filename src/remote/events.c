// Events of playbooks that a worker reports in the words of their model (docs/format/noetl-events.md). What the engine writes, it writes
// itself: a report of how an attempt came out is its result, like one of the worker protocol; every other one says that the worker lives.
// Who each event is and when it was by its worker's clock is kept in the ledger of the run, once for each event_id.
#include "remote/inside.h"

#include "base/civil.h"
#include "json/make.h"

#include <stdio.h>

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
    int64_t at;
    struct str time = json_text(json_key(event, "timestamp"));
    if (time.len > 0 && !civil_parse(time, &at))
        return error_set(err, E_INVALID, "%s: /timestamp must be a time that there is", SCHEMA_REFUSAL);
    if (!str_eq(said->execution, call->execution) || !str_eq(said->execution, claim->run))
        return error_set(err, E_DENIED, "EVENT_NOT_ALLOWED: the task is of another execution");
    if (!is_of(claim, said)) return error_set(err, E_DENIED, "EVENT_NOT_ALLOWED: the task is of another step");
    return OK;
}

// "CODE: /pointer message", as check_event says it.
static const struct refusal *refused_as(const struct worker_call *call, size_t index, enum code rc,
                                        const struct error *err)
{
    if (rc == E_NOMEM) return refusal_new(call->arena, 503, "UNAVAILABLE", "", code_text(E_NOMEM));
    struct str rest, code = str_cut(str_from(err->message), ':', &rest), place = {0};
    rest = str_trim(rest);
    if (str_starts(rest, STR("/"))) place = str_cut(rest, ' ', &rest);
    char name[64], pointer[REFUSAL_POINTER_MAX], message[320];
    snprintf(name, sizeof(name), "%.*s", STR_ARG(code));
    snprintf(pointer, sizeof(pointer), "/events/%zu%.*s", index, STR_ARG(place));
    snprintf(message, sizeof(message), "%.*s", STR_ARG(rest));
    return refusal_new(call->arena, rc == E_DENIED ? 403 : 400, name, pointer, message);
}

// The outcome as the result of the attempt: the same said again is the same result, whatever event says it.
static struct json as_result(const struct worker_call *call, const struct json *outcome)
{
    return JSON_OF(call->arena, {"token", *json_key(&call->body, "token")}, {"epoch", *json_key(&call->body, "epoch")},
                   {"value", *outcome});
}

// What the ledger keeps of an event: who it is, when it was, what its worker says about it. What came out is in the log.
static struct json as_report(struct arena *arena, const struct json *event, const struct ingested *said)
{
    struct json kept = json_object();
    bool put = true;
    for (uint32_t i = 0; i < event->count; i++) {
        const struct json_member *member = &event->members[i];
        if (str_is(member->key, "payload") || str_is(member->key, "event_type")) continue;
        put = put && json_put(arena, &kept, member->key, member->value);
    }
    const struct json *given = json_key(event, "event_type"), *meta = json_at(event, STR("payload.meta"));
    put = put && json_put(arena, &kept, STR("event_type"), json_string(said->type));
    if (!str_eq(json_text(given), said->type) && given) put = put && json_put(arena, &kept, STR("reported_as"), *given);
    if (meta) put = put && json_put(arena, &kept, STR("meta"), *meta);
    return put ? kept : json_failed();
}

// What the events of a call come to.
struct reading {
    struct remote_answer *answers;
    struct ingested *said;
    struct json reports, outcome; // outcome: type 0 = the attempt goes on
};

// Events that the run has already are answered like those that are stored now, whatever else they say (NX-2t).
static enum code mark_known(const struct worker_call *call, const struct task_claim *claim, struct reading *reading,
                            size_t count, struct error *err)
{
    struct str *ids = ARENA_ARRAY(call->arena, count + 1, struct str);
    bool *known = ARENA_ARRAY(call->arena, count + 1, bool);
    if (!ids || !known) return error_nomem(err);
    for (size_t i = 0; i < count; i++) ids[i] = !reading->answers[i].refused ? reading->said[i].event_id : (struct str){0};
    const struct remote_caller *caller = call->caller;
    bool own = call->tenant.len == 0 || str_eq(call->tenant, claim->tenant);
    if (caller->noted && own) {
        enum code rc = caller->noted(caller->noted_context, claim->tenant, claim->run, ids, count, known, err);
        if (rc) return rc;
    }
    for (size_t i = 0; i < count; i++) { // and those that come twice in the call: the first counts
        for (size_t k = 0; !known[i] && ids[i].len && k < i; k++) known[i] = str_eq(ids[k], ids[i]);
        if (known[i]) reading->answers[i].state = REMOTE_OK;
    }
    return OK;
}

static enum code read_events(struct remote *r, const struct worker_call *call, const struct task_claim *claim,
                             struct reading *reading, struct error *err)
{
    size_t count;
    const struct json *events = call_elements(call, &count);
    reading->answers = ARENA_ARRAY(call->arena, count + 1, struct remote_answer);
    reading->said = ARENA_ARRAY(call->arena, count + 1, struct ingested);
    if (!reading->answers || !reading->said) return error_nomem(err);
    for (size_t i = 0; i < count; i++) {
        struct error local = {0};
        struct remote_answer *answer = &reading->answers[i];
        answer->refused = element_check(r, call, i);
        enum code rc = answer->refused ? OK : check_event(call, &events[i], claim, &reading->said[i], &local);
        if (rc) answer->refused = refused_as(call, i, rc, &local);
    }
    enum code rc = mark_known(call, claim, reading, count, err);
    reading->reports = json_array();
    bool failed = false;
    for (size_t i = 0; !rc && i < count; i++) {
        struct remote_answer *answer = &reading->answers[i];
        const struct ingested *said = &reading->said[i];
        if (answer->refused || answer->state == REMOTE_OK) continue;
        bool bad = said->ends && str_is(json_text(json_key(&said->outcome, "status")), "error");
        if (said->ends && reading->outcome.type && bad != failed) {
            answer->refused = refusal_new(call->arena, 403, "EVENT_NOT_ALLOWED", "", "the attempt came out otherwise");
            continue;
        }
        if (said->ends) reading->outcome = said->outcome;
        if (said->ends) failed = bad;
        json_append(call->arena, &reading->reports, as_report(call->arena, &events[i], said));
    }
    if (!rc && !json_ok(&reading->reports)) rc = error_nomem(err);
    return rc;
}

void serve_events(struct remote *r, const struct worker_call *call)
{
    struct task_claim claim;
    struct reading reading = {0};
    struct error err = {0};
    size_t count;
    (void)call_elements(call, &count);
    if (auth_task_open(&r->options.key, json_text(json_key(&call->body, "token")), call->arena, &claim, &err)) {
        call_refuse(call->reply, call->context, 403, "TASK_TOKEN_INVALID", "not a token of this server");
        return;
    }
    enum code rc = read_events(r, call, &claim, &reading, &err);
    struct json result = reading.outcome.type ? as_result(call, &reading.outcome) : json_null();
    struct str reports = !rc ? json_canon_kept(call->arena, &reading.reports, (size_t)64 << 20) : (struct str){0};
    if (rc == E_NOMEM || (!rc && (!json_ok(&result) || !reports.ptr)))
        call_refuse_nomem(call);
    else if (rc)
        call_refuse(call->reply, call->context, 503, "STORE_FAILED", err.message);
    else
        serve_reported(r, call, reading.outcome.type ? &result : NULL, reports, reading.answers, count);
}
