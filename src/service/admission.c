// Queues and limits on the engine thread: what is configured (notes), where runs stand (from their events), who goes on next.
#include "service/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECONCILE_MS = 1000, RATE_KEYS = 16384 };

// ---- what is configured

static enum code read_queue(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct service *service = context;
    struct str name, tenant = str_cut(note->key, '|', &name);
    struct queue_config config = queue_config_default;
    struct json value;
    enum code rc = json_parse(note->value, NULL, scratch, &value, err);
    if (!rc) rc = queue_config_read(&value, &config, err);
    return rc ? rc : queues_configure(&service->queues, tenant, name, &config, err);
}

static enum code read_limits(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct service *service = context;
    struct tenant_limits limits = {0};
    struct json value;
    enum code rc = json_parse(note->value, NULL, scratch, &value, err);
    if (rc) return rc;
    struct queue_tenant *tenant = queues_tenant(&service->queues, note->key);
    if (!tenant) return error_nomem(err);
    rc = tenant_limits_read(&value, &limits, err);
    if (!rc) queues_limit(&service->queues, tenant, &limits);
    return rc;
}

enum code admission_reload(struct service *service, struct error *err)
{
    queues_list_begin(&service->queues);
    enum code rc = store_each_note(service->store, STR("queue"), STR(""), read_queue, service, err);
    if (!rc) rc = queues_list_end(&service->queues, err);
    return rc ? rc : store_each_note(service->store, STR("limit"), STR(""), read_limits, service, err);
}

enum code admission_load(struct service *service, struct error *err)
{
    uint8_t seed[16];
    os_entropy()->fill(os_entropy(), seed, sizeof(seed));
    service->queues.running_max = service->settings.runs_max;
    enum code rc = rates_open(&service->arena, RATE_KEYS, seed, &service->rates, err);
    return rc ? rc : admission_reload(service, err);
}

// ---- where runs stand

// A child counts with its parent.
static enum queue_state place_of(const struct run *run)
{
    if (run->start.parent_run.len > 0 || run_status_terminal(run->status)) return QUEUE_NONE;
    if (run->status != RUN_STATUS_PENDING && run->status != RUN_STATUS_APPROVED) return QUEUE_RUNNING;
    return run_queued(run) ? QUEUE_WAITING : QUEUE_GATED;
}

static void put_in_place(struct service *service, const struct run *run, uint64_t order, int64_t at_ms)
{
    struct error err = {0};
    if (queues_place(&service->queues, run->ids.tenant, run->start.queue, run->ids.run, place_of(run), order, at_ms,
                     &err))
        os_log(LOG_ERROR, "run not counted run=%.*s why=\"%s\"", STR_ARG(run->ids.run), err.message);
    else
        queues_confirm(&service->queues, run->ids.tenant, run->ids.run);
}

// Runs that count without having asked are reported to the other engines.
static void started(struct service *service, const struct run *run)
{
    slots_stored(service, run->ids.tenant, run->ids.run, true);
    const struct run_slots *slots = queues_slots(&service->queues, run->ids.tenant, run->ids.run, NULL, NULL);
    if (slots && (!slots->of_queue.hold || !slots->of_tenant.hold))
        slots_unsettled(service, run->ids.tenant, run->start.queue);
}

void admission_found(struct service *service, const struct run_head *head)
{
    const struct run *run = engine_run(service->engine, head->ids.tenant, head->ids.run);
    if (!run) return;
    put_in_place(service, run, head->position + 1, head->summary.created_ms);
    slots_unsettled(service, run->ids.tenant, run->start.queue);
}

void admission_event(struct service *service, const struct engine_event *event)
{
    const enum moment_kind kind = event->moment->kind;
    if (kind == MOMENT_RUN_QUEUED || kind == MOMENT_RUN_APPROVED || kind == MOMENT_RUN_STARTED)
        put_in_place(service, event->state, 0, event->moment->at_ms);
    if (kind == MOMENT_RUN_STARTED && service->members.several) started(service, event->state);
    if (moment_is_terminal(kind)) queues_remove(&service->queues, event->state->ids.tenant, event->state->ids.run);
}

// ---- who goes on

static enum code admit(void *context, struct str tenant, struct str run)
{
    struct service *service = context;
    struct error err = {0};
    enum code rc = slots_admit(service, tenant, run, &err);
    if (rc && err.code && rc != E_CONFLICT && rc != E_TERMINAL)
        os_log(LOG_WARN, "run not started from its queue run=%.*s why=\"%s\"", STR_ARG(run), err.message);
    return rc;
}

// What the passes of the service itself came to is kept until the tenant asks: each run is in one answer.
static void remember(void *context, struct str tenant, struct str run, const char *status)
{
    enum { REMEMBERED_MAX = 1024 };
    struct service *service = context;
    if (!service->told) service->told = calloc(REMEMBERED_MAX, sizeof(*service->told));
    if (!service->told) return; // only a report is lost
    if (service->told_count == REMEMBERED_MAX) {
        service->told_count /= 2;
        memmove(service->told, service->told + service->told_count, service->told_count * sizeof(*service->told));
    }
    struct queue_told *told = &service->told[service->told_count++];
    snprintf(told->tenant, sizeof(told->tenant), "%.*s", STR_ARG(tenant));
    snprintf(told->run, sizeof(told->run), "%.*s", STR_ARG(run));
    told->status = status;
}

void admission_turned(struct service *service, int64_t mono_ms)
{
    slots_before(service, mono_ms);
    if (!service->queues.changed && mono_ms < service->next_pass_ms) return;
    service->next_pass_ms = mono_ms + RECONCILE_MS;
    struct queue_pass pass = {.context = service, .admit = admit, .told = remember};
    if (queues_reconcile(&service->queues, &pass) > 0) engine_wake(service->engine);
    slots_after(service, mono_ms);
}

struct telling {
    struct service *service;
    struct call *call;
    struct json items;
};

static enum code admit_for(void *context, struct str tenant, struct str run)
{
    return admit(((struct telling *)context)->service, tenant, run);
}

// Other tenants' runs go on too, but are not reported.
static void tell_run(void *context, struct str tenant, struct str run, const char *status)
{
    struct telling *telling = context;
    struct arena *arena = &telling->call->arena;
    if (str_eq(tenant, telling->call->who.tenant))
        json_append(arena, &telling->items,
                    JSON_OF(arena, {"runId", json_copied(arena, run)}, {"status", json_word(status)}));
}

struct json admission_pass(struct call *call)
{
    struct telling telling = {.service = call->service, .call = call, .items = json_array()};
    struct queue_pass pass = {.context = &telling, .admit = admit_for, .told = tell_run};
    size_t kept = 0;
    for (size_t i = 0; i < call->service->told_count; i++) {
        struct queue_told *told = &call->service->told[i];
        if (str_is(call->who.tenant, told->tenant))
            tell_run(&telling, call->who.tenant, str_from(told->run), told->status);
        else
            call->service->told[kept++] = *told;
    }
    call->service->told_count = kept;
    slots_before(call->service, os_now().mono_ms);
    queues_reconcile(&call->service->queues, &pass);
    slots_after(call->service, os_now().mono_ms);
    return telling.items;
}

// ---- rates

bool limits_take(struct call *call, const struct rate_rule *rule, struct str key, const char *code)
{
    struct rate_answer answer = rates_take(call->service->rates, rule, key, os_now().wall_ms);
    struct buf text SCOPED(buf_release) = buf_of(256);
    rate_policy_header(rule, &text);
    call->answer.rate_policy = arena_copy(&call->arena, buf_str(&text));
    buf_clear(&text);
    rate_header(rule, &answer, &text);
    call->answer.rate = arena_copy(&call->arena, buf_str(&text));
    if (answer.allowed) return true;
    call->answer.retryable = true;
    call->answer.retry_after_ms = rate_retry_after(&answer) * 1000;
    return call_problem(call, 429, code, "%u in %u s are allowed", rule->quota, rule->window_s);
}

// Each engine lets its part of what a tenant may start through: together they let through no more than that.
static struct rate_rule share_of(const struct service *service, uint32_t per_second)
{
    uint32_t engines = __atomic_load_n(&service->members.count, __ATOMIC_RELAXED);
    struct rate_rule rule = rate_starts;
    if (engines == 0) engines = 1;
    rule.quota = per_second >= engines ? per_second / engines : 1;
    rule.window_s = per_second >= engines ? 1 : (engines + per_second - 1) / per_second;
    return rule;
}

bool limits_start(struct call *call)
{
    enum { RESIDENT_MAX = 100000, HINT_MS = 5000 };
    uint32_t max = call->service->settings.resident_max ? call->service->settings.resident_max : RESIDENT_MAX;
    if (engine_resident(call->service->engine) >= max) {
        call->answer.retryable = true;
        call->answer.retry_after_ms = HINT_MS;
        return call_problem(call, 429, "OVERLOADED", "%u runs have not ended, and no more are kept in memory", max);
    }
    struct rate_rule rule = rate_starts;
    struct queue_tenant *tenant = queues_tenant(&call->service->queues, call->who.tenant);
    if (tenant && tenant->limits.starts_per_second) rule = share_of(call->service, tenant->limits.starts_per_second);
    return limits_take(call, &rule, call->who.tenant, "OVERLOADED");
}

// No place, and the queue does not take it either.
bool admission_refuse(struct call *call, struct str queue, enum queue_verdict verdict)
{
    enum { HINT_MS = 1000 };
    struct queue_config config = queues_config(&call->service->queues, call->who.tenant, queue);
    bool full = verdict == VERDICT_FULL;
    uint32_t quota = full ? config.max_queued : config.max_running;
    if (quota) call->answer.rate_policy = call_text(call, "\"%s\";q=%u", full ? "queued" : "runs", quota);
    if (quota) call->answer.rate = call_text(call, "\"%s\";r=0;t=%d", full ? "queued" : "runs", HINT_MS / 1000);
    call->answer.retryable = true;
    call->answer.retry_after_ms = HINT_MS;
    if (full)
        return call_problem(call, 429, "RUN_QUEUE_FULL", "%u run%s in this queue, and no more may", config.max_queued,
                            config.max_queued == 1 ? " waits" : "s wait");
    return call_problem(call, 429, "OVERLOADED", "as many runs as may be are in flight, or the queue is paused");
}

void admission_release(struct service *service)
{
    slots_release(service);
    queues_release(&service->queues);
    free(service->told);
}
