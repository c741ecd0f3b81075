// Alerts: every name and priority of the contracts, what makes one alert of many causes, and what readers get.
#include "unit/contract_moments.h"

#include "base/error.h"
#include "schema/schema.h"
#include "view/alerts.h"

#include <stdio.h>

enum { T0 = 1770829200000 / 1000 };

static struct arena arena;
static struct alerts alerts;

static void begin(size_t max)
{
    arena_release(&arena);
    arena_init(&arena, 64 * 1024, 64 << 20);
    CHECK(alerts_init(&alerts, &arena, max));
}

static const struct alert *only(void)
{
    CHECK_INT(alerts.count, 1);
    return &alerts.items[0];
}

static void check_alert(const struct alert *alert, enum alert_name name, int priority, uint32_t count, bool open)
{
    CHECK_TEXT(alert_name_text(alert->name), alert_name_text(name));
    CHECK_INT(alert->priority, priority);
    CHECK_INT(alert->count, count);
    CHECK_INT(alert->open, open);
}

static struct project_report report_of(enum project_report_kind kind, uint64_t seq, uint64_t until, int64_t at_ms)
{
    return (struct project_report){.kind = kind,
                                   .ids = &test_ids,
                                   .seq = seq,
                                   .until = until,
                                   .event_id = STR("e-1"),
                                   .type = STR("RunFailed"),
                                   .at_ms = at_ms,
                                   .text = "words"};
}

static void tell_projector(enum project_report_kind kind, uint64_t seq, uint64_t until, int64_t at_ms)
{
    struct project_report report = report_of(kind, seq, until, at_ms);
    alerts_projector(&alerts, &report);
}

static void names_and_priorities_C_53(void)
{
    static const struct {
        const char *name;
        int priority;
    } wanted[] = {
        {"PROJECTOR_LAG_HIGH", 2},
        {"PROJECTOR_NON_CONTIGUOUS_FETCH_DETECTED", 2},
        {"PROJECTOR_CAUSAL_VIOLATION", 3},
        {"INVALID_TRANSITION", 2},
        {"EVENT_BUS_DELIVERY_FAILED", 1},
        {"PAUSE_DRAIN_TIMEOUT", 2},
        {"PLAN_INTEGRITY_VALIDATION_FAILED", 1},
        {"STATE_STORE_WRITE_BUDGET_EXCEEDED", 1},
        {"DESTRUCTIVE_SIGNAL", 1},
    };
    for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
        enum alert_name name = alert_name_parse(str_from(wanted[i].name));
        CHECK(name != ALERT_NONE);
        CHECK_TEXT(alert_name_text(name), wanted[i].name);
        CHECK_INT(alert_priority(name), wanted[i].priority);
    }
    CHECK_INT(alert_name_parse(STR("SOMETHING")), ALERT_NONE);
    CHECK_INT(alert_name_parse(STR("")), ALERT_NONE);
}

static void lag_opens_and_closes_ES_1_4e_ES_1_5_5a(void)
{
    begin(8);
    tell_projector(PROJECT_LAG_HIGH, 4, 0, T0);
    check_alert(only(), ALERT_PROJECTOR_LAG_HIGH, 2, 1, true);
    tell_projector(PROJECT_LAG_NORMAL, 9, 0, T0 + 5);
    check_alert(only(), ALERT_PROJECTOR_LAG_HIGH, 2, 1, false);
    CHECK_INT(only()->closed_ms, T0 + 5);
    tell_projector(PROJECT_LAG_HIGH, 12, 0, T0 + 9);
    check_alert(only(), ALERT_PROJECTOR_LAG_HIGH, 2, 2, true);
    CHECK_INT(only()->first_ms, T0);
    CHECK_INT(only()->last_ms, T0 + 9);
}

static void a_gap_is_one_alert_per_range_and_closes_ES_1_5_5b_ES_1_0d(void)
{
    begin(8);
    tell_projector(PROJECT_GAP, 11, 13, T0);
    tell_projector(PROJECT_GAP, 11, 13, T0 + 1);
    check_alert(only(), ALERT_PROJECTOR_NON_CONTIGUOUS_FETCH_DETECTED, 2, 1, true);
    CHECK_TEXT(only()->subject, "11-13");
    tell_projector(PROJECT_GAP, 20, 22, T0 + 2);
    CHECK_INT(alerts.count, 2);
    tell_projector(PROJECT_GAP_CLOSED, 11, 13, T0 + 3);
    CHECK(!alerts.items[0].open && alerts.items[1].open);
}

static void transitions_and_causes_once_per_event_C_15_C_56(void)
{
    begin(8);
    tell_projector(PROJECT_INVALID, 7, 0, T0);
    tell_projector(PROJECT_INVALID, 7, 0, T0 + 1);
    check_alert(only(), ALERT_INVALID_TRANSITION, 2, 1, true);
    CHECK_INT(only()->seq, 7);
    tell_projector(PROJECT_CAUSAL, 7, 0, T0 + 1);
    check_alert(&alerts.items[1], ALERT_PROJECTOR_CAUSAL_VIOLATION, 3, 1, true);
    tell_projector(PROJECT_INVALID, 8, 0, T0 + 1);
    CHECK_INT(alerts.count, 3);
}

static void what_is_only_logged_is_no_alert(void)
{
    begin(8);
    tell_projector(PROJECT_UNKNOWN_TYPE, 7, 0, T0);
    tell_projector(PROJECT_REBUILD, 7, 0, T0);
    tell_projector(PROJECT_FAILED, 7, 0, T0);
    CHECK_INT(alerts.count, 0);
}

static struct moment accepted(const char *type, const char *id)
{
    return (struct moment){.kind = MOMENT_SIGNAL_ACCEPTED,
                           .signal_type = str_from(type),
                           .signal_id = str_from(id),
                           .actor = STR("ada"),
                           .at_ms = T0};
}

static void destructive_signals_are_p1(void)
{
    static const char *const kinds[] = {"UPDATE_PARAMS", "INJECT_OVERRIDE", "UPDATE_TARGET", "EMERGENCY_STOP"};
    static const char *const tame[] = {"PAUSE", "RESUME", "CANCEL", "RETRY_STEP", "SKIP_STEP", "RETRY_RUN", "APPROVE"};
    begin(8);
    for (size_t i = 0; i < ARRAY_COUNT(tame); i++) {
        struct moment moment = accepted(tame[i], "s-0");
        alerts_moment(&alerts, &test_ids, &moment, 3);
    }
    struct moment refused = accepted("EMERGENCY_STOP", "s-9");
    refused.kind = MOMENT_SIGNAL_REJECTED;
    alerts_moment(&alerts, &test_ids, &refused, 3);
    CHECK_INT(alerts.count, 0);
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        struct moment moment = accepted(kinds[i], kinds[i]);
        alerts_moment(&alerts, &test_ids, &moment, 4 + i);
        alerts_moment(&alerts, &test_ids, &moment, 4 + i); // read again
        CHECK_INT(alerts.count, i + 1);
        check_alert(&alerts.items[i], ALERT_DESTRUCTIVE_SIGNAL, 1, 1, true);
        CHECK(strstr(alerts.items[i].text, kinds[i]) && strstr(alerts.items[i].text, "ada"));
    }
}

static struct json decision(const char *type, const char *outcome, const char *level)
{
    char text[512];
    struct json json;
    struct error err = {0};
    snprintf(text, sizeof(text),
             "{\"signalId\":\"s-1\",\"signalType\":\"%s\",\"decision\":\"%s\",\"signalPayload\":{\"level\":\"%s\","
             "\"note\":\"disk\"},\"audit\":{\"actorId\":\"watchdog\"}}",
             type, outcome, level);
    struct str kept = arena_copy(&arena, str_from(text));
    CHECK_OK(json_parse(kept, NULL, &arena, &json, &err), &err);
    return json;
}

static void escalations_take_the_priority_of_their_level(void)
{
    static const struct {
        const char *level;
        int priority;
    } rows[] = {{"INFO", 3}, {"WARNING", 2}, {"CRITICAL", 1}, {"P1", 1}};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        begin(8);
        struct json json = decision("ESCALATE_ALERT", "ACCEPTED", rows[i].level);
        alerts_decision(&alerts, &test_ids, &json, T0);
        check_alert(only(), ALERT_ALERT_ESCALATED, rows[i].priority, 1, true);
        CHECK(strstr(only()->text, "disk"));
        json = decision("ESCALATE_ALERT", "REJECTED", rows[i].level);
        alerts_decision(&alerts, &test_ids, &json, T0);
        CHECK_INT(only()->count, 1);
    }
}

static void event_and_decision_of_one_signal_are_one_alert(void)
{
    begin(8);
    struct moment moment = accepted("EMERGENCY_STOP", "s-1");
    struct json json = decision("EMERGENCY_STOP", "ACCEPTED", "");
    alerts_decision(&alerts, &test_ids, &json, T0);
    alerts_moment(&alerts, &test_ids, &moment, 3);
    check_alert(only(), ALERT_DESTRUCTIVE_SIGNAL, 1, 1, true);
}

static void a_plan_that_is_not_what_it_was_hashed_as_is_p1(void)
{
    begin(8);
    struct moment moment = {
        .kind = MOMENT_RUN_FAILED, .at_ms = T0, .fault = {.code = STR("EXIT_NONZERO"), .message = STR("exit 1")}};
    alerts_moment(&alerts, &test_ids, &moment, 2);
    CHECK_INT(alerts.count, 0);
    moment.fault.code = STR("PLAN_INTEGRITY_VALIDATION_FAILED");
    alerts_moment(&alerts, &test_ids, &moment, 2);
    check_alert(only(), ALERT_PLAN_INTEGRITY_VALIDATION_FAILED, 1, 1, true);
}

static void a_sink_is_one_alert_with_a_count(void)
{
    begin(8);
    struct sink_report report = {.sink = STR("nats"), .tenant = test_ids.tenant, .run = STR("run-1"), .attempts = 10};
    report.why = STR("refused");
    for (uint64_t seq = 1; seq <= 30; seq++) {
        report.seq = seq;
        report.at_ms = T0 + (int64_t)seq;
        alerts_undelivered(&alerts, &report);
    }
    check_alert(only(), ALERT_EVENT_BUS_DELIVERY_FAILED, 1, 30, true);
    CHECK(strstr(only()->text, "after 10 attempts: refused"));
    CHECK(alerts_acknowledge(&alerts, str_from(only()->id), STR("ada"), T0 + 40));
    CHECK(only()->open); // seen, but not over
    alerts_delivered(&alerts, test_ids.tenant, STR("webhook"), T0 + 50);
    CHECK(only()->open);
    alerts_delivered(&alerts, test_ids.tenant, STR("nats"), T0 + 50);
    CHECK(!only()->open);
}

static void acknowledged_by_the_first_and_new_again_when_it_returns(void)
{
    begin(8);
    struct alert_fact fact = {.name = ALERT_PAUSE_DRAIN_TIMEOUT, .tenant = STR("t"), .run = STR("r"), .at_ms = T0};
    alerts_raise(&alerts, &fact);
    check_alert(only(), ALERT_PAUSE_DRAIN_TIMEOUT, 2, 1, true);
    CHECK(alerts_acknowledge(&alerts, str_from(only()->id), STR("ada"), T0 + 1));
    CHECK(alerts_acknowledge(&alerts, str_from(only()->id), STR("bob"), T0 + 2));
    CHECK_TEXT(only()->acknowledged_by, "ada");
    CHECK(!only()->open);
    CHECK(!alerts_acknowledge(&alerts, STR("no such"), STR("ada"), T0));
    alerts_raise(&alerts, &fact);
    CHECK(only()->open);
    CHECK_TEXT(only()->acknowledged_by, "");
}

static void what_matters_least_makes_room(void)
{
    begin(3);
    static const enum alert_name kinds[] = {ALERT_PAUSE_DRAIN_TIMEOUT, ALERT_PROJECTOR_CAUSAL_VIOLATION,
                                            ALERT_DESTRUCTIVE_SIGNAL};
    for (size_t i = 0; i < 3; i++)
        alerts_raise(&alerts, &(struct alert_fact){.name = kinds[i], .run = STR("r"), .at_ms = T0 + (int64_t)i});
    alerts_close(&alerts, ALERT_DESTRUCTIVE_SIGNAL, STR(""), STR("r"), STR(""), T0 + 4);
    alerts_raise(&alerts, &(struct alert_fact){.name = ALERT_INVALID_TRANSITION, .at_ms = T0 + 5});
    CHECK_INT(alerts.count, 3);
    CHECK_INT(alerts.dropped, 1);
    CHECK_INT(alerts.items[0].name, ALERT_PAUSE_DRAIN_TIMEOUT);
    alerts_raise(&alerts, &(struct alert_fact){.name = ALERT_DESTRUCTIVE_SIGNAL, .at_ms = T0 + 6});
    for (size_t i = 0; i < 3; i++) CHECK(alerts.items[i].name != ALERT_PROJECTOR_CAUSAL_VIOLATION);
}

static void long_and_odd_texts_stay_whole_characters(void)
{
    char text[1024];
    begin(2);
    for (size_t i = 0; i < sizeof(text); i += 2) memcpy(text + i, "\xc3\xbc", 2);
    alerts_raise(&alerts, &(struct alert_fact){.name = ALERT_PAUSE_DRAIN_TIMEOUT,
                                               .run = {text, sizeof(text)},
                                               .text = {text + 1, sizeof(text) - 1}});
    CHECK_INT(strlen(only()->run) % 2, 0);
    CHECK(strlen(only()->run) < sizeof(only()->run));
    CHECK(strlen(only()->text) < sizeof(only()->text));
}

static void readers_get_valid_json_in_order(void)
{
    struct error err = {0};
    struct schema_set *set;
    const struct schema *schema;
    struct schema_fault fault;
    struct json list;
    begin(8);
    alerts_raise(&alerts, &(struct alert_fact){.name = ALERT_PROJECTOR_CAUSAL_VIOLATION, .at_ms = T0 + 1});
    tell_projector(PROJECT_GAP, 11, 13, T0 + 2);
    tell_projector(PROJECT_GAP_CLOSED, 11, 13, T0 + 3);
    struct moment moment = accepted("EMERGENCY_STOP", "s-1");
    moment.signal_step = STR("load");
    alerts_moment(&alerts, &test_ids, &moment, 3);
    CHECK_OK(schema_set_embedded(&arena, &set, &err), &err);
    CHECK_OK(schema_compile(set, STR("alert.json"), &schema, &err), &err);
    CHECK(alerts_json(&alerts, &(struct alert_filter){0}, &arena, &list));
    CHECK_INT(list.count, 3);
    static const char *const order[] = {"DESTRUCTIVE_SIGNAL", "PROJECTOR_CAUSAL_VIOLATION",
                                        "PROJECTOR_NON_CONTIGUOUS_FETCH_DETECTED"};
    for (uint32_t i = 0; i < 3; i++) {
        if (!schema_valid(schema, &list.items[i], &fault))
            test_fail(__FILE__, __LINE__, "alert%s %s", fault.pointer, fault.message);
        CHECK_STR(json_text(json_key(&list.items[i], "name")), str_from(order[i]));
    }
    CHECK_STR(json_text(json_key(&list.items[0], "priority")), STR("P1"));
    CHECK(alerts_json(&alerts, &(struct alert_filter){.open = true}, &arena, &list));
    CHECK_INT(list.count, 2);
    CHECK(alerts_json(&alerts, &(struct alert_filter){.tenant = test_ids.tenant}, &arena, &list));
    CHECK_INT(list.count, 2);
    CHECK(alerts_json(&alerts, &(struct alert_filter){.priority = 1}, &arena, &list));
    CHECK_INT(list.count, 1);
}

// What a service keeps of an alert over a restart is what readers get.
static void what_was_kept_comes_back_the_same(void)
{
    struct json before, after;
    begin(8);
    struct alert_fact fact = {.name = ALERT_DESTRUCTIVE_SIGNAL,
                              .tenant = STR("acme"),
                              .run = STR("r-1"),
                              .step = STR("load"),
                              .subject = STR("s-1"),
                              .text = STR("words"),
                              .seq = 7,
                              .at_ms = INT64_C(1770829200123)};
    alerts_raise(&alerts, &fact);
    alerts_raise(&alerts, &fact);
    CHECK(alerts_acknowledge(&alerts, str_from(alerts.items[0].id), STR("ann"), fact.at_ms + 5000));
    CHECK_INT(alerts.items[0].changed, alerts.changes);
    CHECK(alert_json(&alerts.items[0], &arena, &before));
    struct alerts again;
    CHECK(alerts_init(&again, &arena, 8));
    CHECK(alerts_restore(&again, &before));
    CHECK(!alerts_restore(&again, &before)); // it is there
    CHECK(alert_json(&again.items[0], &arena, &after));
    CHECK(json_equal(&before, &after));
    CHECK_INT(again.items[0].changed, 0); // nothing to keep
    alerts_raise(&again, &fact);
    CHECK_INT(again.count, 1);
    check_alert(&again.items[0], ALERT_DESTRUCTIVE_SIGNAL, 1, 3, true);
    CHECK(again.items[0].changed > 0);
    struct json odd = json_object();
    CHECK(!alerts_restore(&again, &odd));
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(names_and_priorities_C_53),
        TEST(lag_opens_and_closes_ES_1_4e_ES_1_5_5a),
        TEST(a_gap_is_one_alert_per_range_and_closes_ES_1_5_5b_ES_1_0d),
        TEST(transitions_and_causes_once_per_event_C_15_C_56),
        TEST(what_is_only_logged_is_no_alert),
        TEST(destructive_signals_are_p1),
        TEST(escalations_take_the_priority_of_their_level),
        TEST(event_and_decision_of_one_signal_are_one_alert),
        TEST(a_plan_that_is_not_what_it_was_hashed_as_is_p1),
        TEST(a_sink_is_one_alert_with_a_count),
        TEST(acknowledged_by_the_first_and_new_again_when_it_returns),
        TEST(what_matters_least_makes_room),
        TEST(long_and_odd_texts_stay_whole_characters),
        TEST(readers_get_valid_json_in_order),
        TEST(what_was_kept_comes_back_the_same),
    };
    return test_main("view_alerts", tests, ARRAY_COUNT(tests), argc, argv);
}
