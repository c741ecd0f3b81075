// signal: the body is checked against its schema first, then who sends it, then the run decides (requirements §3.1).
#include "service/inside.h"

#include "reading/reading.h"

enum { DECISION_MS = 10000 };

struct signalling {
    struct str run;
    struct signal signal;
    enum operation operation;
    struct str refused_before; // the decision record of a condition that did not hold when the same signal was sent earlier
};

// What is answered, wherever it was decided.
struct verdict {
    struct str word, decision_id, error_code, error_message, new_run;
    uint64_t seq;
    bool again;
};

// If-Match did not hold where the run is decided: nothing came of the signal, and its id may be used again.
static bool is_moved(struct str error_code)
{
    return str_is(error_code, "RUN_HAS_MOVED");
}

static struct str error_of(const struct json *record)
{
    return json_text(json_at(record, STR("engineResult.errorCode")));
}

// The decision, with what it caused. A refusal is an answer too: the signal was decided, and the record stays.
static bool answer(struct call *call, const struct verdict *verdict)
{
    struct arena *arena = &call->arena;
    const struct signalling *signalling = call->state;
    const struct signal *signal = &signalling->signal;
    struct json body = JSON_OF(arena, {"signalId", json_copied_some(arena, signal->id)},
                               {"signalType", json_name(signal_name(signal->type))},
                               {"decision", json_copied_some(arena, verdict->word)},
                               {"policyDecisionId", json_copied_some(arena, verdict->decision_id)},
                               {"runId", json_copied_some(arena, signalling->run)},
                               {"newRunId", json_copied_some(arena, verdict->new_run)},
                               {"causedSeq", json_count(verdict->seq)});
    if (!json_ok(&body)) return call_nomem(call);
    call->answer.caused_seq = verdict->seq;
    call->answer.replayed = verdict->again;
    call->answer.location =
        call_text(call, "/v1/runs/%.*s/signals/%.*s", STR_ARG(signalling->run), STR_ARG(signal->id));
    if (!str_is(verdict->word, "REJECTED")) return call_answer(call, verdict->again ? 200 : 202, body);
    call->answer.body = body;
    struct str code = arena_copy(arena, verdict->error_code);
    if (signal->denied.len > 0) return service_refuse(call, signalling->operation);
    return call_problem(call, is_moved(code) ? 412 : 409, code.len ? code.ptr : "SIGNAL_REJECTED", "%.*s",
                        STR_ARG(verdict->error_message));
}

// A caller who may not send it does not learn what became of one of the same id that another caller sent.
static bool is_another(const struct call *call, struct str error_code)
{
    const struct signalling *signalling = call->state;
    return signalling->signal.denied.len > 0 && !str_eq(signalling->signal.denied, error_code);
}

bool signal_is_answered(const struct call *call, const struct json *record)
{
    const struct signalling *signalling = call->state;
    struct str id = json_text(json_key(record, "signalDecisionId"));
    return json_key(record, "engineProcessedAt") && !str_eq(id, signalling->refused_before);
}

bool signal_decided(struct call *call, const struct json *record, uint64_t seq, bool again)
{
    const struct signalling *signalling = call->state;
    if (is_another(call, error_of(record))) return service_refuse(call, signalling->operation);
    if (!engine_same_signal(&signalling->signal, record))
        return call_problem(call, 409, "SIGNAL_DUPLICATE", "this signalId was used for another signal");
    return answer(call, &(struct verdict){.word = json_text(json_key(record, "decision")),
                                          .decision_id = json_text(json_key(record, "policyDecisionId")),
                                          .error_code = error_of(record),
                                          .error_message = json_text(json_key(record, "reason")),
                                          .new_run = json_text(json_at(record, STR("engineResult.newRunId"))),
                                          .seq = seq,
                                          .again = again});
}

// It was decided before: what was said then holds, whatever the run is like now.
static enum code answer_again(struct call *call, struct error *err)
{
    const struct signalling *signalling = call->state;
    struct json record;
    uint64_t seq = 0;
    enum code rc = engine_find_decision(call->service->store, call->who.tenant, signalling->run, signalling->signal.id,
                                        &call->arena, &record, &seq, err);
    if (!rc && is_moved(error_of(&record))) return E_NOT_FOUND;
    if (!rc) signal_decided(call, &record, seq, true);
    return rc;
}

bool signal_answer(struct call *call, const struct engine_decision *decision)
{
    struct error err = {0};
    if (decision->duplicate) {
        if (answer_again(call, &err)) return call_failed(call, &err);
        return true;
    }
    if (is_another(call, decision->error_code))
        return service_refuse(call, ((struct signalling *)call->state)->operation);
    struct str word = decision->deferred ? STR("REVISION_REQUIRED") : STR("REJECTED");
    return answer(call, &(struct verdict){.word = decision->accepted ? STR("ACCEPTED") : word,
                                          .decision_id = decision->decision_id,
                                          .error_code = decision->error_code,
                                          .error_message = decision->error_message,
                                          .new_run = decision->new_run,
                                          .seq = decision->seq});
}

// The run is driven by another engine: the signal goes to the inbox, and the ledger tells what came of it.
static enum code post_elsewhere(struct call *call, struct error *err)
{
    struct signalling *signalling = call->state;
    struct store *store = call->service->store;
    struct str bytes, id = signalling->signal.id;
    struct json before;
    *err = (struct error){0};
    enum code rc = engine_find_decision(store, call->who.tenant, signalling->run, id, &call->arena, &before, NULL, err);
    if (!rc && is_moved(error_of(&before))) signalling->refused_before = json_text(json_key(&before, "signalDecisionId"));
    if (rc && rc != E_NOT_FOUND) return rc;
    *err = (struct error){0};
    rc = signal_encode(&signalling->signal, &call->arena, &bytes, err);
    return rc ? rc : store_post(store, call->who.tenant, signalling->run, id, bytes, err);
}

// A refusal of the policy is a decision too, and the run keeps its record; those who may not send signals have a measure of their own, so
// that they do not use up the run's. Where the record cannot be had, the audit has the refusal all the same.
static bool record_refusal(struct call *call)
{
    struct service *service = call->service;
    struct signalling *signalling = call->state;
    struct error err = {0};
    struct str key = call_text(call, "%.*s|%.*s|denied", STR_ARG(call->who.tenant), STR_ARG(signalling->run));
    bool may = rates_take(service->rates, &rate_signals, key, os_now().wall_ms).allowed;
    enum code rc =
        may ? engine_signal(service->engine, call->who.tenant, signalling->run, &signalling->signal, &err) : E_LIMIT;
    bool elsewhere = rc == E_LOCKED || (rc == E_CONFLICT && store_fenced(service->store));
    if (elsewhere && service->members.several) rc = post_elsewhere(call, &err);
    call->wait_signal = signalling->signal.id;
    int64_t until = os_now().mono_ms + DECISION_MS;
    if (rc) return service_refuse(call, signalling->operation);
    waits_add(service, call, WAIT_DECIDED, call->who.tenant, signalling->run, until);
    return true;
}

// If-Match: a run never goes back, so what has moved already is refused at once. The engine that decides compares again.
static bool has_moved(struct call *call)
{
    const struct signalling *signalling = call->state;
    struct error err = {0};
    struct run_head head;
    if (signalling->signal.if_seq == 0) return false;
    enum code rc = store_head(call->service->store, call->who.tenant, signalling->run, &call->arena, &head, &err);
    if (!rc && head.last_seq == signalling->signal.if_seq) return false;
    if (rc)
        call_failed(call, &err);
    else if (answer_again(call, &err)) // it may have moved by this very signal, whose answer was lost
        call_problem(call, 412, "RUN_HAS_MOVED", "the run is at event %llu", (unsigned long long)head.last_seq);
    return true;
}

static bool signal_on_engine(struct call *call)
{
    struct service *service = call->service;
    struct signalling *signalling = call->state;
    struct error err = {0};
    if (has_moved(call)) return false;
    struct str key = call_text(call, "%.*s|%.*s", STR_ARG(call->who.tenant), STR_ARG(signalling->run));
    if (!limits_take(call, &rate_signals, key, "SIGNAL_RATE_LIMITED")) return false;
    enum code rc = engine_signal(service->engine, call->who.tenant, signalling->run, &signalling->signal, &err);
    bool here = !rc;
    bool elsewhere = rc == E_LOCKED || (rc == E_CONFLICT && store_fenced(service->store));
    if (elsewhere && service->members.several) rc = OK;
    if (here) audit_attempts(call, signalling->run, signalling->signal.step);
    // A signal without a record in the audit is not sent: one that was posted cannot be taken back.
    if (!rc) rc = audit_call(call, signalling->operation, signalling->run, signalling->signal.reason, &err);
    if (rc && here) engine_take_back(service->engine);
    if (!rc && !here) rc = post_elsewhere(call, &err);
    if (rc) return call_failed(call, &err);
    call->wait_signal = signalling->signal.id;
    waits_add(service, call, WAIT_DECIDED, call->who.tenant, signalling->run, os_now().mono_ms + DECISION_MS);
    return true;
}

// Who decides an approval must know who asked for it: that may not be the same person (the matrix says for whom). Nobody in
// particular is asked to decide, so everybody is who has the role.
static bool take_asker(struct call *call, struct store *store, const struct run_head *head, struct auth_object *object)
{
    struct start_facts origin;
    struct error err = {0};
    enum code rc = reading_origin(store, head, &call->arena, &origin, &err);
    if (!rc) rc = tokens_person(call->service, store, origin.triggered_by, &call->arena, &object->requested_by, &err);
    if (rc) return call_failed(call, &err);
    object->assigned = true;
    return true;
}

static bool check_run(struct call *call, struct store *store)
{
    struct signalling *signalling = call->state;
    struct signal *signal = &signalling->signal;
    struct run_head head;
    struct error err = {0};
    enum code rc = store_head(store, call->who.tenant, signalling->run, &call->arena, &head, &err);
    if (rc && rc != E_NOT_FOUND) return call_failed(call, &err);
    struct auth_object object = service_object(call, rc ? NULL : &head);
    if (object.exists && signalling->operation == OPERATION_APPROVAL_DECIDE && !take_asker(call, store, &head, &object))
        return false;
    bool may = service_asks(call, signalling->operation, &object, signal->reason);
    const char *code = call->decision.code;
    bool recorded = object.exists && service_sees(call, &head.ids) &&
                    (str_is(str_from(code), "AUTHZ_DENIED") || str_is(str_from(code), "AUTHZ_REASON_REQUIRED"));
    if (!may && !recorded) return service_refuse(call, signalling->operation);
    if (!object.exists) return service_missing(call, signalling->operation); // the rule is of places, not of runs
    signal->role =
        str_from(role_word(may ? call->decision.effective : auth_least(call->service->auth, call->who.roles)));
    signal->requires_approval = may && call->decision.requires_approval;
    if (!may) signal->denied = str_from(code);
    return service_post(call, may ? signal_on_engine : record_refusal);
}

bool service_signal(struct call *call, struct str run, struct str body, uint64_t if_seq)
{
    struct signalling *signalling = ARENA_NEW(&call->arena, struct signalling);
    struct error err = {0};
    struct str copy = arena_copy(&call->arena, body);
    if (!signalling || !copy.ptr || !(signalling->run = arena_copy(&call->arena, run)).ptr) return call_nomem(call);
    call->state = signalling;
    enum code rc = signal_decode(call->service->contract, copy, &call->arena, &signalling->signal, &err);
    if (rc) {
        struct str told, code = str_cut(str_from(err.message), ' ', &told);
        if (!str_is(code, "SIGNAL_INVALID_PAYLOAD:")) told = str_from(err.message);
        return call_problem(call, 400, "SIGNAL_INVALID_PAYLOAD", "%s%.*s",
                            str_starts(told, STR(" ")) ? "the signal" : "", STR_ARG(told));
    }
    signalling->signal.if_seq = if_seq;
    signalling->signal.actor = call->who.id;
    signalling->signal.source_ip = call->source_ip;
    if (!operation_of_signal(str_from(signal_name(signalling->signal.type)), signalling->signal.force,
                             &signalling->operation))
        return call_problem(call, 400, "SIGNAL_INVALID_PAYLOAD", "this signal cannot be sent from outside");
    return service_read(call, check_run);
}
