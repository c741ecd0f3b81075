// Calls that wait until something is durable: a start, a decision, the end of a run, its next event. Engine thread only.
#include "service/inside.h"

static size_t slot_of(const struct service *service, struct str tenant, struct str run)
{
    return (size_t)(str_hash(tenant) * 31 + str_hash(run)) & (service->waits.size - 1);
}

void waits_add(struct service *service, struct call *call, enum wait_for wait_for, struct str tenant, struct str run,
               int64_t until_mono_ms)
{
    call->wait_tenant = tenant;
    call->wait_run = run;
    call->wait_for = wait_for;
    call->wait_until_ms = until_mono_ms;
    struct call **slot = &service->waits.slots[slot_of(service, tenant, run)];
    call->wait_next = *slot;
    *slot = call;
    service->waits.count++;
}

static struct call *unlink_call(struct service *service, struct call **at)
{
    struct call *call = *at;
    *at = call->wait_next;
    call->wait_next = NULL;
    service->waits.count--;
    return call;
}

// A call that has its problem already waited only for what it caused to be durable.
static bool answer_status(struct call *call, const struct run *run, uint64_t seq)
{
    struct run_summary summary;
    struct json body;
    if (call->answer.code) {
        call->done(call);
        return false;
    }
    engine_summary(run, &summary);
    if (!status_json(&run->ids, &run->start, &summary, seq, &call->arena, &body)) return call_nomem(call);
    call->answer.caused_seq = seq;
    call->answer.location = call_text(call, "/v1/runs/%.*s", STR_ARG(run->ids.run));
    return call_answer(call, run_status_terminal(run->status) ? 200 : 202, body);
}

void waits_event(struct service *service, const struct engine_event *event)
{
    const struct run_ids *ids = &event->state->ids;
    bool ended = run_status_terminal(event->state->status);
    struct call **at = &service->waits.slots[slot_of(service, ids->tenant, ids->run)];
    while (*at) {
        struct call *call = *at;
        bool moved = call->wait_for == WAIT_MOVED && (ended || event->last_seq > call->wait_seq);
        bool met = call->wait_for == WAIT_STORED || moved || (call->wait_for == WAIT_ENDED && ended);
        if (!met || !str_eq(call->wait_run, ids->run) || !str_eq(call->wait_tenant, ids->tenant)) {
            at = &call->wait_next;
            continue;
        }
        unlink_call(service, at);
        if (call->wait_for == WAIT_MOVED)
            service_read(call, call->read);
        else
            answer_status(call, event->state, event->last_seq);
    }
}

// Two tenants may have chosen the same ids, for runs and for signals: each hears of its own alone.
static bool is_of(const struct call *call, struct str tenant, struct str run)
{
    return str_eq(call->wait_run, run) && str_eq(call->wait_tenant, tenant);
}

void waits_decision(struct service *service, const struct engine_decision *decision)
{
    struct call **at = &service->waits.slots[slot_of(service, decision->tenant, decision->run)];
    while (*at) {
        struct call *call = *at;
        if (call->wait_for != WAIT_DECIDED || !is_of(call, decision->tenant, decision->run) ||
            !str_eq(call->wait_signal, decision->signal_id)) {
            at = &call->wait_next;
            continue;
        }
        unlink_call(service, at);
        signal_answer(call, decision);
    }
}

void waits_refused(struct service *service, struct str tenant, struct str run, const struct error *why)
{
    struct call **at = &service->waits.slots[slot_of(service, tenant, run)];
    while (*at) {
        struct call *call = *at;
        bool start = call->wait_for == WAIT_STORED || call->wait_for == WAIT_ENDED;
        if (!start || !is_of(call, tenant, run)) {
            at = &call->wait_next;
            continue;
        }
        unlink_call(service, at);
        // Another call or another engine was faster: with the same request, which is answered with what that one made, or with a place in
        // a queue.
        enum { AGAIN_MAX = 8 };
        bool again = why->code == E_CONFLICT && call->asked_again < AGAIN_MAX;
        call->asked_again++;
        if (again)
            service_post(call, call->work);
        else
            call_failed(call, why);
    }
}

static bool answer_head(struct call *call, const struct run_head *head)
{
    struct json body = {0};
    if (!service_status(call->service, call->service->store, head, &call->arena, &body)) return call_nomem(call);
    call->answer.caused_seq = head->last_seq;
    call->answer.location = call_text(call, "/v1/runs/%.*s", STR_ARG(head->ids.run));
    return call_answer(call, head->terminal ? 200 : 202, body);
}

// The time of a call that waits for a start or an end is over. What the store has is answered: a run that is only in memory is gone when
// the process dies. Its start is still queued, so the same request may be answered with that very run later.
static bool answer_stored(struct call *call)
{
    struct run_head head = {0};
    struct error err = {0};
    enum code rc =
        store_head(call->service->store, call->wait_tenant, call->wait_run, &call->arena, &head, &err);
    if (rc == OK && call->answer.code) {
        call->done(call);
    } else if (rc == OK) {
        answer_head(call, &head);
    } else if (rc != E_NOT_FOUND) {
        call_failed(call, &err);
    } else {
        call->answer = (struct answer){.retryable = true, .retry_after_ms = 1000};
        call_problem(call, 503, "START_NOT_STORED",
                     "the store has not taken the run yet; send the same request again, with the same runRequestId");
    }
    return true;
}

static void time_is_over(struct call *call)
{
    if (call->wait_for == WAIT_MOVED) {
        service_read(call, call->read);
        return;
    }
    if (call->wait_for == WAIT_DECIDED) {
        call->answer.retryable = true;
        call_problem(call, 504, "SIGNAL_NOT_DECIDED", "nobody has decided the signal yet; ask for it by its id");
        return;
    }
    answer_stored(call);
}

void waits_tick(struct service *service, int64_t mono_ms)
{
    for (size_t i = 0; i < service->waits.size && service->waits.count > 0; i++) {
        struct call **at = &service->waits.slots[i];
        while (*at) {
            if ((*at)->wait_until_ms > mono_ms)
                at = &(*at)->wait_next;
            else
                time_is_over(unlink_call(service, at));
        }
    }
}

void waits_end(struct service *service)
{
    for (size_t i = 0; i < service->waits.size; i++)
        while (service->waits.slots[i]) {
            struct call *call = unlink_call(service, &service->waits.slots[i]);
            call_problem(call, 503, "SHUTTING_DOWN", "the service is stopping");
        }
}

// ---- runs that another engine drives: their owner wakes no thread of this engine, so they are looked up

static bool is_met(struct call *call, struct arena *scratch, struct run_head *head, struct json *decision,
                   uint64_t *seq)
{
    struct store *store = call->service->store;
    struct error err = {0};
    if (call->wait_for == WAIT_DECIDED)
        return engine_find_decision(store, call->wait_tenant, call->wait_run, call->wait_signal, scratch, decision, seq,
                                    &err) == OK &&
               signal_is_answered(call, decision);
    if (store_head(store, call->wait_tenant, call->wait_run, scratch, head, &err)) return false;
    return head->terminal || (call->wait_for == WAIT_MOVED && head->last_seq > call->wait_seq);
}

static void meet(struct call *call, const struct run_head *head, const struct json *decision, uint64_t seq)
{
    if (call->wait_for == WAIT_MOVED)
        service_read(call, call->read);
    else if (call->wait_for == WAIT_DECIDED)
        signal_decided(call, decision, seq, false);
    else
        answer_head(call, head);
}

void waits_elsewhere(struct service *service)
{
    enum { LOOKS = 64 };
    size_t looks = 0;
    struct arena scratch SCOPED(arena_release) = arena_of(16 * 1024, (size_t)16 << 20);
    for (size_t i = 0; i < service->waits.size && service->waits.count > 0 && looks < LOOKS; i++)
        for (struct call **at = &service->waits.slots[i]; *at && looks < LOOKS;) {
            struct call *call = *at;
            struct run_head head = {0};
            struct json decision;
            uint64_t seq = 0;
            bool here = engine_run(service->engine, call->wait_tenant, call->wait_run) != NULL;
            arena_reset(&scratch);
            looks += !here;
            if (here || !is_met(call, &scratch, &head, &decision, &seq))
                at = &call->wait_next;
            else
                meet(unlink_call(service, at), &head, &decision, seq);
        }
}

// ---- waiting for a run to move

// What happened between the caller's look and this one has woken no waiting call.
static bool wait_on_engine(struct call *call)
{
    struct service *service = call->service;
    const struct run *run = engine_run(service->engine, call->who.tenant, call->wait_run);
    struct run_head head = {0};
    struct error err = {0};
    enum code rc = store_head(service->store, call->who.tenant, call->wait_run, &call->arena, &head, &err);
    bool rests = !rc && !head.terminal && head.last_seq <= call->wait_seq;
    // Neither here nor with another engine: a process has it that is no engine among others. Looking again must do.
    bool heard = run || service->members.several;
    if (rests && heard)
        waits_add(service, call, WAIT_MOVED, call->who.tenant, call->wait_run, call->wait_until_ms);
    else
        service_read(call, call->read);
    return true;
}

bool service_wait(struct call *call, const struct run_head *seen, uint64_t after, int64_t wait_ms,
                  bool (*then)(struct call *call, struct store *store))
{
    call->wait_run = seen->ids.run;
    call->wait_seq = after > seen->last_seq ? after : seen->last_seq;
    call->wait_until_ms = os_now().mono_ms + wait_ms;
    call->read = then;
    return service_post(call, wait_on_engine);
}
