#include "view/alerts.h"

#include "base/civil.h"
#include "json/make.h"
#include "base/sha256.h"

#include <string.h>

static const struct {
    const char *text;
    int priority;
} names[] = {{"", 3},
#define X(name, priority) {#name, priority},
             ALERT_LIST(X)
#undef X
};

const char *alert_name_text(enum alert_name name)
{
    return (size_t)name < ARRAY_COUNT(names) ? names[name].text : "";
}

enum alert_name alert_name_parse(struct str text)
{
    for (size_t i = 1; i < ARRAY_COUNT(names); i++) {
        if (str_is(text, names[i].text)) return (enum alert_name)i;
    }
    return ALERT_NONE;
}

int alert_priority(enum alert_name name)
{
    return (size_t)name < ARRAY_COUNT(names) ? names[name].priority : 3;
}

static bool is_destructive(struct str signal_type)
{
    return STR_AMONG(signal_type, "UPDATE_PARAMS", "INJECT_OVERRIDE", "UPDATE_TARGET", "EMERGENCY_STOP");
}

bool alerts_init(struct alerts *alerts, struct arena *arena, size_t max)
{
    INVARIANT(max > 0);
    *alerts = (struct alerts){.items = ARENA_ARRAY(arena, max, struct alert), .max = max};
    return alerts->items != NULL;
}

static void keep(char *to, size_t size, struct str text)
{
    size_t len = str_head(text, size - 1).len;
    if (text.ptr) memcpy(to, text.ptr, len);
    to[len] = '\0';
}

static void make_id(enum alert_name name, struct str tenant, struct str run, struct str subject, char id[ALERT_ID_SIZE])
{
    const struct str bar = STR("|");
    const struct str parts[] = {str_from(alert_name_text(name)), bar, tenant, bar, run, bar, subject};
    struct digest digest = sha256_parts(parts, ARRAY_COUNT(parts));
    char hex[SHA256_HEX + 1];
    digest_hex(&digest, hex);
    keep(id, ALERT_ID_SIZE, (struct str){hex, ALERT_ID_SIZE - 1});
}

static struct alert *find(struct alerts *alerts, struct str id)
{
    for (size_t i = 0; i < alerts->count; i++) {
        if (str_is(id, alerts->items[i].id)) return &alerts->items[i];
    }
    return NULL;
}

// Whether `a` matters less than `b`.
static bool is_lesser(const struct alert *a, const struct alert *b)
{
    if (a->open != b->open) return b->open;
    if (a->priority != b->priority) return a->priority > b->priority;
    return a->last_ms < b->last_ms;
}

static struct alert *make_room(struct alerts *alerts)
{
    INVARIANT(alerts->items && alerts->max > 0);
    if (alerts->count == alerts->max) {
        size_t least = 0;
        for (size_t i = 1; i < alerts->count; i++) {
            if (is_lesser(&alerts->items[i], &alerts->items[least])) least = i;
        }
        memmove(&alerts->items[least], &alerts->items[least + 1],
                (alerts->count - least - 1) * sizeof(alerts->items[0]));
        alerts->count--;
        alerts->dropped++;
    }
    return &alerts->items[alerts->count++];
}

void alerts_raise(struct alerts *alerts, const struct alert_fact *fact)
{
    char id[ALERT_ID_SIZE];
    make_id(fact->name, fact->tenant, fact->run, fact->subject, id);
    struct alert *alert = find(alerts, str_from(id));
    if (alert && fact->once) return;
    if (!alert) {
        alert = make_room(alerts);
        *alert = (struct alert){.name = fact->name, .first_ms = fact->at_ms};
        memcpy(alert->id, id, sizeof(id));
        keep(alert->tenant, sizeof(alert->tenant), fact->tenant);
        keep(alert->run, sizeof(alert->run), fact->run);
        keep(alert->subject, sizeof(alert->subject), fact->subject);
    }
    if (!alert->open) { // again: nobody has seen this one
        alert->acknowledged_by[0] = '\0';
        alert->acknowledged_ms = 0;
    }
    alert->priority = fact->priority ? fact->priority : alert_priority(fact->name);
    keep(alert->step, sizeof(alert->step), fact->step);
    keep(alert->text, sizeof(alert->text), fact->text);
    alert->seq = fact->seq;
    alert->last_ms = fact->at_ms;
    alert->closed_ms = 0;
    alert->count++;
    alert->turns += !alert->open;
    alert->open = true;
    alert->changed = ++alerts->changes;
}

static void close_alert(struct alerts *alerts, struct alert *alert, int64_t at_ms)
{
    if (!alert->open) return;
    alert->changed = ++alerts->changes;
    alert->open = false;
    alert->turns++;
    alert->closed_ms = at_ms;
}

void alerts_close(struct alerts *alerts, enum alert_name name, struct str tenant, struct str run, struct str subject,
                  int64_t at_ms)
{
    char id[ALERT_ID_SIZE];
    make_id(name, tenant, run, subject, id);
    struct alert *alert = find(alerts, str_from(id));
    if (alert) close_alert(alerts, alert, at_ms);
}

#define OF_STORE STR("store")
#define OF_OUTBOX STR("outbox")

static bool closes_itself(const struct alert *alert)
{
    enum alert_name name = alert->name;
    bool store = name == ALERT_STATE_STORE_WRITE_BUDGET_EXCEEDED &&
                 (str_is(OF_STORE, alert->subject) || str_is(OF_OUTBOX, alert->subject));
    return store || name == ALERT_PROJECTOR_LAG_HIGH || name == ALERT_PROJECTOR_NON_CONTIGUOUS_FETCH_DETECTED ||
           name == ALERT_EVENT_BUS_DELIVERY_FAILED;
}

bool alerts_acknowledge(struct alerts *alerts, struct str id, struct str by, int64_t at_ms)
{
    struct alert *alert = find(alerts, id);
    if (!alert) return false;
    if (!alert->acknowledged_by[0]) {
        keep(alert->acknowledged_by, sizeof(alert->acknowledged_by), by);
        alert->acknowledged_ms = at_ms;
        alert->changed = ++alerts->changes;
    }
    if (!closes_itself(alert)) close_alert(alerts, alert, at_ms);
    return true;
}

// ---- who raises them

static struct alert_fact fact_of(enum alert_name name, const struct run_ids *ids, int64_t at_ms)
{
    return (struct alert_fact){.name = name, .tenant = ids->tenant, .run = ids->run, .at_ms = at_ms};
}

static void raise_signal(struct alerts *alerts, struct alert_fact fact, struct str type, struct str actor,
                         struct str signal_id)
{
    struct error text = {0};
    error_set(&text, E_CONFLICT, "%.*s by %.*s was accepted", STR_ARG(type), STR_ARG(actor));
    fact.subject = signal_id;
    fact.text = str_from(text.message);
    fact.once = true; // the event and the decision record tell of the same signal
    alerts_raise(alerts, &fact);
}

void alerts_moment(struct alerts *alerts, const struct run_ids *ids, const struct moment *moment, uint64_t seq)
{
    if (moment->kind == MOMENT_SIGNAL_ACCEPTED && is_destructive(moment->signal_type)) {
        struct alert_fact fact = fact_of(ALERT_DESTRUCTIVE_SIGNAL, ids, moment->at_ms);
        fact.seq = seq;
        fact.step = moment->signal_step;
        raise_signal(alerts, fact, moment->signal_type, moment->actor, moment->signal_id);
    }
    if (moment->kind == MOMENT_DRAIN_TIMEOUT) {
        struct alert_fact fact = fact_of(ALERT_PAUSE_DRAIN_TIMEOUT, ids, moment->at_ms);
        fact.seq = seq;
        fact.text = moment->detail;
        alerts_raise(alerts, &fact);
    }
    if (moment->kind == MOMENT_RUN_FAILED && str_is(moment->fault.code, "PLAN_INTEGRITY_VALIDATION_FAILED")) {
        struct alert_fact fact = fact_of(ALERT_PLAN_INTEGRITY_VALIDATION_FAILED, ids, moment->at_ms);
        fact.seq = seq;
        fact.text = moment->fault.message;
        fact.once = true;
        alerts_raise(alerts, &fact);
    }
    if (str_is(moment->fault.code, "STATE_STORE_WRITE_BUDGET_EXCEEDED") &&
        (moment->kind == MOMENT_STEP_FAILED || moment->kind == MOMENT_ATTEMPT_FAILED)) {
        struct alert_fact fact = fact_of(ALERT_STATE_STORE_WRITE_BUDGET_EXCEEDED, ids, moment->at_ms);
        fact.seq = seq;
        fact.step = moment->step;
        fact.text = STR("fail closed: a result could not be stored in time, and its attempt failed");
        fact.once = true;
        alerts_raise(alerts, &fact);
    }
}

void alerts_store(struct alerts *alerts, const struct store_report *report)
{
    const enum alert_name name = ALERT_STATE_STORE_WRITE_BUDGET_EXCEEDED;
    struct str subject = report->run.len == 0 ? OF_STORE : report->lost ? STR("outbox-lost") : OF_OUTBOX;
    struct error text = {0};
    if (!report->over) {
        alerts_close(alerts, name, report->tenant, report->run, subject, report->at_ms);
        return;
    }
    if (report->run.len == 0)
        error_set(&text, E_LOCKED, "the store has taken nothing for %lld ms: %sresults that wait longer than the budget fail closed",
                  (long long)report->waited_ms, report->open ? "starts fail open, " : "");
    else if (report->lost)
        error_set(&text, E_CONFLICT, "fail open: %zu starts of the outbox are in no log: the run went on under another owner",
                  report->starts);
    else
        error_set(&text, E_LOCKED, "fail open: %zu starts went on, and are in the outbox until the store takes them",
                  report->starts);
    struct alert_fact fact = {.name = name,
                              .tenant = report->tenant,
                              .run = report->run,
                              .step = report->step,
                              .subject = subject,
                              .text = str_from(text.message),
                              .at_ms = report->at_ms};
    alerts_raise(alerts, &fact);
}

static int level_priority(struct str level)
{
    if (str_is(level, "P1") || str_is(level, "CRITICAL")) return 1;
    return str_is(level, "WARNING") ? 2 : 3;
}

static void raise_escalated(struct alerts *alerts, struct alert_fact fact, const struct json *decision)
{
    struct error text = {0};
    const struct json *payload = json_key(decision, "signalPayload");
    struct str level = json_text(json_key(payload, "level")), note = json_text(json_key(payload, "note"));
    error_set(&text, E_CONFLICT, "%.*s%s%.*s", STR_ARG(level), note.len ? ": " : "", STR_ARG(note));
    fact.name = ALERT_ALERT_ESCALATED;
    fact.priority = level_priority(level);
    fact.subject = json_text(json_key(decision, "signalId"));
    fact.text = str_from(text.message);
    fact.once = true;
    alerts_raise(alerts, &fact);
}

void alerts_decision(struct alerts *alerts, const struct run_ids *ids, const struct json *decision, int64_t at_ms)
{
    if (!str_is(json_text(json_key(decision, "decision")), "ACCEPTED")) return;
    struct str type = json_text(json_key(decision, "signalType"));
    struct alert_fact fact = fact_of(ALERT_DESTRUCTIVE_SIGNAL, ids, at_ms);
    if (str_is(type, "ESCALATE_ALERT")) {
        raise_escalated(alerts, fact, decision);
    } else if (is_destructive(type)) {
        struct str actor = json_text(json_at(decision, STR("audit.actorId")));
        raise_signal(alerts, fact, type, actor, json_text(json_key(decision, "signalId")));
    }
}

enum alert_name alert_of_report(enum project_report_kind kind)
{
    switch (kind) {
    case PROJECT_GAP:
    case PROJECT_GAP_CLOSED:
        return ALERT_PROJECTOR_NON_CONTIGUOUS_FETCH_DETECTED;
    case PROJECT_LAG_HIGH:
    case PROJECT_LAG_NORMAL:
        return ALERT_PROJECTOR_LAG_HIGH;
    case PROJECT_INVALID:
        return ALERT_INVALID_TRANSITION;
    case PROJECT_CAUSAL:
        return ALERT_PROJECTOR_CAUSAL_VIOLATION;
    case PROJECT_UNKNOWN_TYPE:
    case PROJECT_REBUILD:
    case PROJECT_FAILED:
        return ALERT_NONE; // lines in the log of the process
    }
    return ALERT_NONE;
}

void alerts_projector(struct alerts *alerts, const struct project_report *report)
{
    enum alert_name name = alert_of_report(report->kind);
    if (name == ALERT_NONE) return;
    struct alert_fact fact = fact_of(name, report->ids, report->at_ms);
    struct error subject = {0};
    if (name == ALERT_PROJECTOR_NON_CONTIGUOUS_FETCH_DETECTED)
        error_set(&subject, E_CONFLICT, "%llu-%llu", (unsigned long long)report->seq,
                  (unsigned long long)report->until);
    else if (name != ALERT_PROJECTOR_LAG_HIGH)
        error_set(&subject, E_CONFLICT, "%llu %.*s", (unsigned long long)report->seq, STR_ARG(report->event_id));
    fact.subject = str_from(subject.message);
    fact.seq = report->seq;
    fact.step = report->step;
    fact.text = str_from(report->text);
    fact.once = name != ALERT_PROJECTOR_LAG_HIGH; // C-14: per range; C-15: per event
    if (report->kind == PROJECT_GAP_CLOSED || report->kind == PROJECT_LAG_NORMAL)
        alerts_close(alerts, name, fact.tenant, fact.run, fact.subject, fact.at_ms);
    else
        alerts_raise(alerts, &fact);
}

// One per tenant and sink, with a count: an outage is one alert, not one for each event.
void alerts_undelivered(struct alerts *alerts, const struct sink_report *report)
{
    struct error text = {0};
    error_set(&text, E_CONFLICT, "event %llu of run %.*s went to the dead letters of %.*s after %u attempts: %.*s",
              (unsigned long long)report->seq, STR_ARG(report->run), STR_ARG(report->sink), report->attempts,
              STR_ARG(report->why));
    alerts_raise(alerts, &(struct alert_fact){.name = ALERT_EVENT_BUS_DELIVERY_FAILED,
                                              .tenant = report->tenant,
                                              .subject = report->sink,
                                              .text = str_from(text.message),
                                              .seq = report->seq,
                                              .at_ms = report->at_ms});
}

void alerts_delivered(struct alerts *alerts, struct str tenant, struct str sink, int64_t at_ms)
{
    alerts_close(alerts, ALERT_EVENT_BUS_DELIVERY_FAILED, tenant, (struct str){"", 0}, sink, at_ms);
}

// ---- for readers

static struct json copied(struct arena *arena, const char *text)
{
    return json_copied_some(arena, str_from(text));
}

bool alert_json(const struct alert *alert, struct arena *arena, struct json *out)
{
    *out = JSON_OF(arena, {"id", copied(arena, alert->id)}, {"name", json_name(alert_name_text(alert->name))},
                   {"priority", json_text_made(arena_format(arena, "P%d", alert->priority))},
                   {"state", json_word(alert->open ? "open" : "closed")}, {"tenantId", copied(arena, alert->tenant)},
                   {"runId", copied(arena, alert->run)}, {"stepId", copied(arena, alert->step)},
                   {"subject", copied(arena, alert->subject)}, {"text", json_copied(arena, str_from(alert->text))},
                   {"runSeq", json_nonzero((int64_t)alert->seq)}, {"count", json_int(alert->count)},
                   {"firstAt", json_time_some(arena, alert->first_ms)},
                   {"lastAt", json_time_some(arena, alert->last_ms)},
                   {"closedAt", json_time_some(arena, alert->closed_ms)},
                   {"acknowledgedBy", copied(arena, alert->acknowledged_by)},
                   {"acknowledgedAt", json_time_some(arena, alert->acknowledged_ms)});
    return json_ok(out);
}

static bool is_wanted(const struct alert *alert, const struct alert_filter *filter)
{
    bool of_none = filter->of_none && !alert->tenant[0];
    if (filter->tenant.len && !of_none && !str_is(filter->tenant, alert->tenant)) return false;
    if (filter->run.len && !str_is(filter->run, alert->run)) return false;
    if (filter->priority && alert->priority > filter->priority) return false;
    return alert->open || !filter->open;
}

bool alerts_json(const struct alerts *alerts, const struct alert_filter *filter, struct arena *arena, struct json *out)
{
    const struct alert **order = ARENA_ARRAY(arena, alerts->count + 1, const struct alert *);
    size_t count = 0;
    if (!order) return false;
    for (size_t i = 0; i < alerts->count; i++) {
        const struct alert *alert = &alerts->items[i];
        if (!is_wanted(alert, filter)) continue;
        size_t at = count++;
        for (; at > 0 && is_lesser(order[at - 1], alert); at--) order[at] = order[at - 1];
        order[at] = alert;
    }
    *out = json_array();
    for (size_t i = 0; i < count; i++) {
        struct json one;
        if (!alert_json(order[i], arena, &one) || !json_push(arena, out, one)) return false;
    }
    return true;
}

static int64_t time_of(const struct json *one, const char *key)
{
    int64_t ms = 0;
    struct str text = json_text(json_key(one, key));
    return text.len > 0 && civil_parse(text, &ms) ? ms : 0;
}

bool alerts_restore(struct alerts *alerts, const struct json *one)
{
    struct str id = json_text(json_key(one, "id")), priority = json_text(json_key(one, "priority"));
    enum alert_name name = alert_name_parse(json_text(json_key(one, "name")));
    if (name == ALERT_NONE || id.len != ALERT_ID_SIZE - 1 || priority.len != 2 || find(alerts, id)) return false;
    struct alert made = {.name = name,
                         .priority = priority.ptr[1] - '0',
                         .seq = (uint64_t)json_integer(json_key(one, "runSeq"), 0),
                         .count = (uint32_t)json_integer(json_key(one, "count"), 1),
                         .first_ms = time_of(one, "firstAt"),
                         .last_ms = time_of(one, "lastAt"),
                         .closed_ms = time_of(one, "closedAt"),
                         .acknowledged_ms = time_of(one, "acknowledgedAt"),
                         .open = str_is(json_text(json_key(one, "state")), "open")};
    if (made.priority < 1 || made.priority > 3) return false;
    keep(made.id, sizeof(made.id), id);
    keep(made.tenant, sizeof(made.tenant), json_text(json_key(one, "tenantId")));
    keep(made.run, sizeof(made.run), json_text(json_key(one, "runId")));
    keep(made.step, sizeof(made.step), json_text(json_key(one, "stepId")));
    keep(made.subject, sizeof(made.subject), json_text(json_key(one, "subject")));
    keep(made.text, sizeof(made.text), json_text(json_key(one, "text")));
    keep(made.acknowledged_by, sizeof(made.acknowledged_by), json_text(json_key(one, "acknowledgedBy")));
    *make_room(alerts) = made;
    return true;
}
