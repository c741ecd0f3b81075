// Alerts of the service: folded from what is stored, as it is stored; kept as notes, so that a restart forgets neither them nor
// which people have seen them.
#include "service/inside.h"

enum { ALERTS_MAX = 2000, FLUSH_MAX = 64 };

// ---- kept

static enum code load(void *context, const struct note *note, struct arena *scratch, struct error *err UNUSED)
{
    struct service *service = context;
    struct json one;
    struct error local = {0};
    if (json_parse(note->value, NULL, scratch, &one, &local) || !alerts_restore(&service->alarm.alerts, &one))
        os_log(LOG_WARN, "a kept alert cannot be read key=%.*s", STR_ARG(note->key));
    return OK;
}

enum code alerts_open(struct service *service, struct error *err)
{
    if (!alerts_init(&service->alarm.alerts, &service->arena, ALERTS_MAX)) return error_nomem(err);
    service->alarm.stalled = true; // as far as a process before this one may have said
    return store_each_note(service->store, STR("alert"), STR(""), load, service, err);
}

// Opened or closed since the last time: a line on stderr (those of projectors and stores have theirs) and messages for the sinks, two of
// them where it was both.
static size_t make_news(struct service *service, struct alert *alert, struct arena *arena, struct note_put *puts,
                        size_t max)
{
    size_t count = 0, sinks = service->bus ? bus_sinks(service->bus) : 0;
    bool both = alert->turns - alert->told > 1;
    for (int i = both ? 0 : 1; alert->turns != alert->told && i < 2; i++) {
        bool open = i == 0 ? !alert->open : alert->open;
        struct alert then = *alert; // as it was when that happened
        struct json one;
        then.open = open;
        if (open) then.closed_ms = 0;
        struct bus_alert news = {.id = str_from(alert->id),
                                 .tenant = str_from(alert->tenant),
                                 .open = open,
                                 .count = alert->count,
                                 .at_ms = open ? alert->last_ms : alert->closed_ms,
                                 .alert = &one};
        if (i == 0 && !open) news.at_ms = alert->last_ms; // it closed, and was raised again
        enum alert_name name = alert->name;
        bool has_line = name <= ALERT_INVALID_TRANSITION || name == ALERT_STATE_STORE_WRITE_BUDGET_EXCEEDED;
        if (!has_line)
            os_log(LOG_WARN, "alert alert=%s state=%s tenant=%s run=%s why=\"%s\"", alert_name_text(name),
                   open ? "open" : "closed", alert->tenant, alert->run, alert->text);
        if (sinks > 0 && count < max && alert_json(&then, arena, &one))
            count += bus_alert(service->bus, &news, arena, puts + count, max - count);
    }
    alert->told = alert->turns;
    return count;
}

// The alerts that changed after `since`, as notes, from the oldest change on, while there is room for them. *until: the newest of them.
static size_t gather(struct service *service, uint64_t since, struct arena *arena, struct note_put *puts, size_t max,
                     uint64_t *until)
{
    struct alarm *alarm = &service->alarm;
    size_t count = 0, each = 1 + 2 * (service->bus ? bus_sinks(service->bus) : 0);
    *until = since;
    for (uint64_t change = since + 1; change <= alarm->alerts.changes && count + each <= max; change++) {
        *until = change;
        for (size_t i = 0; i < alarm->alerts.count; i++) {
            struct alert *alert = &alarm->alerts.items[i];
            struct json one;
            if (alert->changed != change) continue;
            struct buf text SCOPED(buf_release) = buf_of(64 * 1024);
            if (alert_json(alert, arena, &one)) json_canon(&text, &one);
            struct str key = arena_copy(arena, str_from(alert->id)), value = arena_copy(arena, buf_str(&text));
            if (key.ptr && value.len > 0)
                puts[count++] =
                    (struct note_put){.space = STR("alert"), .key = key, .value = value, .expect = NOTE_ANY};
            if (value.len > 0) count += make_news(service, alert, arena, puts + count, max - count);
        }
    }
    return count;
}

// What is to be sent is durable.
static void stored(void *context, enum code rc, const struct error *why UNUSED)
{
    struct service *service = context;
    pthread_rwlock_rdlock(&service->bus_lock);
    if (rc == OK && service->bus) bus_news(service->bus);
    pthread_rwlock_unlock(&service->bus_lock);
}

// Engine thread, after each turn. Costs a lock and a comparison when nothing has changed.
void alerts_flush(struct service *service)
{
    struct alarm *alarm = &service->alarm;
    struct error err = {0};
    uint64_t until;
    pthread_mutex_lock(&alarm->mutex);
    if (alarm->alerts.changes == alarm->kept) {
        pthread_mutex_unlock(&alarm->mutex);
        return;
    }
    struct arena arena SCOPED(arena_release) = arena_of(16 * 1024, 16 << 20);
    pthread_mutex_unlock(&alarm->mutex);
    pthread_rwlock_rdlock(&service->bus_lock); // before the other: those who report hold that one alone
    pthread_mutex_lock(&alarm->mutex);
    size_t max = FLUSH_MAX * (1 + 2 * (service->bus ? bus_sinks(service->bus) : 0)), count = 0;
    struct note_put *puts = ARENA_ARRAY(&arena, max, struct note_put);
    until = alarm->kept;
    if (puts) count = gather(service, alarm->kept, &arena, puts, max, &until);
    pthread_mutex_unlock(&alarm->mutex);
    pthread_rwlock_unlock(&service->bus_lock);
    if (count == 0 || engine_put(service->engine, puts, count, stored, service, &err) == OK) alarm->kept = until;
}

// ---- raised

void service_alert(struct service *service, const struct alert_fact *fact)
{
    LOCKED(&service->alarm.mutex);
    alerts_raise(&service->alarm.alerts, fact);
}

// Of the write budget: raised when it is over, said by name on stderr, and closed when the store has everything.
static void raise_store(struct service *service, const struct store_report *report)
{
    struct alerts *alerts = &service->alarm.alerts;
    pthread_mutex_lock(&service->alarm.mutex);
    uint64_t before = alerts->changes;
    alerts_store(alerts, report);
    bool changed = alerts->changes != before;
    pthread_mutex_unlock(&service->alarm.mutex);
    if (changed)
        os_log(LOG_WARN, "write budget alert=STATE_STORE_WRITE_BUDGET_EXCEEDED state=%s tenant=%.*s run=%.*s",
               report->over ? "open" : "closed", STR_ARG(report->tenant), STR_ARG(report->run));
}

void alerts_outbox(struct service *service, const struct engine_outbox *news)
{
    struct store_report report = {.tenant = news->tenant,
                                  .run = news->run,
                                  .starts = news->count,
                                  .over = news->what == OUTBOX_WRITTEN,
                                  .at_ms = os_now().wall_ms};
    if (news->moments && news->count > 0) report.step = news->moments[news->count - 1].step;
    raise_store(service, &report); // what was lost waits no longer either
    report.over = report.lost = true;
    if (news->what == OUTBOX_LOST) raise_store(service, &report);
}

void alerts_tick(struct service *service)
{
    size_t outboxed;
    const struct engine_limits *limits = &service->settings.limits;
    int64_t stalled_ms = engine_stalled(service->engine, &outboxed);
    bool over = stalled_ms > 0 && stalled_ms >= limits->write_budget_ms;
    if (over == service->alarm.stalled || (stalled_ms > 0 && !over)) return;
    service->alarm.stalled = over;
    raise_store(service, &(struct store_report){.over = over,
                                                .waited_ms = stalled_ms,
                                                .open = limits->starts_fail_open,
                                                .at_ms = os_now().wall_ms});
}

// Which level it has is in the decision record, which was stored with the event.
static void escalated(struct service *service, const struct engine_event *event)
{
    const struct run_ids *ids = &event->state->ids;
    struct json decision;
    struct error err = {0};
    struct arena arena SCOPED(arena_release) = arena_of(16 * 1024, 16 << 20);
    if (engine_find_decision(service->store, ids->tenant, ids->run, event->moment->signal_id, &arena, &decision, NULL,
                             &err) == OK) {
        LOCKED(&service->alarm.mutex);
        alerts_decision(&service->alarm.alerts, ids, &decision, event->moment->at_ms);
    } else {
        os_log(LOG_WARN, "an escalation has no record run=%.*s why=\"%s\"", STR_ARG(ids->run), err.message);
    }
}

void alerts_event(struct service *service, const struct engine_event *event)
{
    enum moment_kind kind = event->moment->kind;
    if (event->past) return;
    if (kind == MOMENT_SIGNAL_ACCEPTED && str_is(event->moment->signal_type, "ESCALATE_ALERT"))
        escalated(service, event);
    bool failed = event->moment->fault.code.len > 0;
    if (kind != MOMENT_SIGNAL_ACCEPTED && !failed && kind != MOMENT_DRAIN_TIMEOUT) return;
    LOCKED(&service->alarm.mutex);
    alerts_moment(&service->alarm.alerts, &event->state->ids, event->moment, event->item->seq);
}

bool service_alerts(struct service *service, const struct alert_filter *filter, struct arena *arena, struct json *out)
{
    LOCKED(&service->alarm.mutex);
    return alerts_json(&service->alarm.alerts, filter, arena, out);
}

// ---- acknowledged

// The alert of that id, if it is the tenant's, or the installation's and the caller looks after that.
static const struct alert *find(const struct call *call)
{
    const struct alerts *alerts = &call->service->alarm.alerts;
    for (size_t i = 0; i < alerts->count; i++) {
        const struct alert *alert = &alerts->items[i];
        bool of_none = !alert->tenant[0] && call->who.roles & ROLE_PLATFORM;
        if (str_is(call->resource, alert->id) && (of_none || str_is(call->who.tenant, alert->tenant))) return alert;
    }
    return NULL;
}

// Answered when it is durable, with whatever else the next turn stores.
static void kept(void *context, enum code rc, const struct error *why)
{
    struct call *call = context;
    struct json one;
    if (rc) {
        call_failed(call, why);
        return;
    }
    pthread_mutex_lock(&call->service->alarm.mutex);
    const struct alert *alert = find(call);
    bool ok = alert && alert_json(alert, &call->arena, &one);
    pthread_mutex_unlock(&call->service->alarm.mutex);
    if (ok)
        call_answer(call, 200, one);
    else
        call_problem(call, 404, "NOT_FOUND", "there is no such alert");
}

static bool acknowledge_on_engine(struct call *call)
{
    struct service *service = call->service;
    struct note_put put = {.space = STR("health"), .key = STR("probe"), .value = STR("1"), .expect = NOTE_ANY};
    struct error err = {0};
    enum code rc = audit_call(call, OPERATION_ALERT_ACK, call->resource, (struct str){0}, &err);
    if (!rc) rc = audit_flush(service, &err);
    if (!rc) {
        pthread_mutex_lock(&service->alarm.mutex);
        alerts_acknowledge(&service->alarm.alerts, call->resource, call->who.id, os_now().wall_ms);
        pthread_mutex_unlock(&service->alarm.mutex);
        alerts_flush(service);
        rc = engine_put(service->engine, &put, 1, kept, call, &err); // behind the alert, in the same batch
    }
    if (rc) return call_failed(call, &err);
    return true;
}

static bool look_up(struct call *call, struct store *store)
{
    struct service *service = call->service;
    pthread_mutex_lock(&service->alarm.mutex);
    const struct alert *alert = find(call);
    struct str run = alert ? arena_copy(&call->arena, str_from(alert->run)) : (struct str){0};
    pthread_mutex_unlock(&service->alarm.mutex);
    struct auth_object object = {.tenant = call->who.tenant, .exists = alert && service_sees_run(call, store, run)};
    return service_may(call, OPERATION_ALERT_ACK, &object, (struct str){0}) &&
           service_post(call, acknowledge_on_engine);
}

bool service_acknowledge(struct call *call, struct str id)
{
    call->resource = arena_copy(&call->arena, id);
    if (call->resource.ptr) return service_read(call, look_up);
    return call_nomem(call);
}
