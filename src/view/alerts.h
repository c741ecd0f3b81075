// Alerts: a fold over what runs, decisions, sinks and projectors say. Alerts are not stored; a reader that reads everything again
// has the same ones, and only who acknowledged them comes from elsewhere.
//
//   A1 The same cause is one alert with a count: its id is a hash of name, tenant, run and subject.
//   A2 Lag, gaps, sinks and stores that take nothing close by themselves; everything else is open until a person acknowledges it.
//   A3 There are at most `max` alerts. Room is made by dropping what matters least: closed before open, low before high
//      priority, old before new.
//
// owner: one thread at a time. Texts are copied, and cut at the size of their field.
#ifndef CAIRN_VIEW_ALERTS_H
#define CAIRN_VIEW_ALERTS_H

#include "view/project.h"

// X(NAME, priority). ALERT_ESCALATED takes the priority of its level: INFO 3, WARNING 2, CRITICAL and P1 1.
#define ALERT_LIST(X)                                                                                                  \
    X(PROJECTOR_LAG_HIGH, 2)                                                                                           \
    X(PROJECTOR_NON_CONTIGUOUS_FETCH_DETECTED, 2)                                                                      \
    X(PROJECTOR_CAUSAL_VIOLATION, 3)                                                                                   \
    X(INVALID_TRANSITION, 2)                                                                                           \
    X(EVENT_BUS_DELIVERY_FAILED, 1)                                                                                    \
    X(PAUSE_DRAIN_TIMEOUT, 2)                                                                                          \
    X(PLAN_INTEGRITY_VALIDATION_FAILED, 1)                                                                             \
    X(STATE_STORE_WRITE_BUDGET_EXCEEDED, 1)                                                                            \
    X(DESTRUCTIVE_SIGNAL, 1)                                                                                           \
    X(ALERT_ESCALATED, 3)

enum alert_name {
    ALERT_NONE = 0,
#define X(name, priority) ALERT_##name,
    ALERT_LIST(X)
#undef X
};
const char *alert_name_text(enum alert_name name);
enum alert_name alert_name_parse(struct str text); // ALERT_NONE when unknown
int alert_priority(enum alert_name name);          // 1 to 3

#define ALERT_ID_SIZE 33

struct alert {
    char id[ALERT_ID_SIZE]; // 32 hex digits
    enum alert_name name;
    int priority;
    char tenant[128], run[128], step[128];
    char subject[128]; // what it is about within the run: an event, a gap "11-13", a signal, a sink
    char text[256];
    uint64_t seq; // evidence: an event of the run; 0 = none
    int64_t first_ms, last_ms, closed_ms;
    uint32_t count;
    bool open;
    char acknowledged_by[128];
    int64_t acknowledged_ms;
    uint64_t changed; // the value of alerts.changes with which it became what it is
    uint32_t turns, told; // how often it was opened or closed here, and of how many of these a caller has made news; restored ones: 0
};

// Something to be alarmed about. Empty strings where there is nothing to say.
struct alert_fact {
    enum alert_name name;
    int priority; // 0 = that of the name
    struct str tenant, run, step, subject, text;
    uint64_t seq;
    int64_t at_ms;
    bool once; // the same cause again is no news
};

struct alerts {
    struct alert *items; // in order of first appearance
    size_t count, max;
    uint64_t dropped, changes;
};

bool alerts_init(struct alerts *alerts, struct arena *arena, size_t max) MUST_CHECK;
void alerts_raise(struct alerts *alerts, const struct alert_fact *fact);
void alerts_close(struct alerts *alerts, enum alert_name name, struct str tenant, struct str run, struct str subject,
                  int64_t at_ms);
// False: there is no such alert. The first to acknowledge stays; an alert that does not close by itself closes with it.
bool alerts_acknowledge(struct alerts *alerts, struct str id, struct str by, int64_t at_ms);

// A signal that changes what runs (UPDATE_PARAMS, INJECT_OVERRIDE, UPDATE_TARGET, EMERGENCY_STOP) or escalates, once accepted;
// a run that failed because its plan is not what it was hashed as.
void alerts_moment(struct alerts *alerts, const struct run_ids *ids, const struct moment *moment, uint64_t seq);
// A decision record (schemas/decision.json): says of an escalation at which level.
void alerts_decision(struct alerts *alerts, const struct run_ids *ids, const struct json *decision, int64_t at_ms);
enum alert_name alert_of_report(enum project_report_kind kind); // ALERT_NONE: a line in the log of the process
void alerts_projector(struct alerts *alerts, const struct project_report *report);

// The write budget (ADR 0036). Of the store itself, which takes nothing for longer than that, and of a run whose starts are in the outbox.
struct store_report {
    struct str tenant, run, step; // empty: of the store
    bool over, lost;              // lost: what the outbox had is in no log
    int64_t waited_ms;            // of the store
    bool open;                    // starts may go on
    size_t starts;                // of the run
    int64_t at_ms;
};
void alerts_store(struct alerts *alerts, const struct store_report *report);

struct sink_report {
    struct str sink, tenant, run, event_id;
    uint64_t seq;
    uint32_t attempts;
    int64_t at_ms;
    struct str why;
};
void alerts_undelivered(struct alerts *alerts, const struct sink_report *report); // an event went to the dead letters
void alerts_delivered(struct alerts *alerts, struct str tenant, struct str sink, int64_t at_ms); // none is left there

struct alert_filter {
    struct str tenant, run; // empty = any
    bool of_none;           // those of no tenant too: of the installation
    bool open;              // open ones only
    int priority;           // 0 = any, else at least as urgent
};
// schemas/alert.json each: open before closed, urgent before others, new before old.
bool alerts_json(const struct alerts *alerts, const struct alert_filter *filter, struct arena *arena,
                 struct json *out) MUST_CHECK;

// For callers that keep them over a restart: one as schemas/alert.json, and put back. False: out of memory; that is none.
bool alert_json(const struct alert *alert, struct arena *arena, struct json *out) MUST_CHECK;
bool alerts_restore(struct alerts *alerts, const struct json *one) MUST_CHECK;

#endif
