// Signal requests: the payload rules of each type, the aliases, and the way there and back.
#include "contract/contract.h"
#include "harness/test.h"

#include <stdio.h>
#include <string.h>

static struct arena arena;
static const struct contract *contract;

static void open_contract(void)
{
    struct error err = {0};
    arena_init(&arena, 64 * 1024, 64 << 20);
    CHECK_OK(contract_open(&arena, &contract, &err), &err);
}

#define ID "7c9e6679-7425-40de-944b-e07fc1f90ae7"

// {"signalId": ID, "signalType": type, "payload": payload}
static enum code decode(const char *type, const char *payload, struct signal *out)
{
    struct error err = {0};
    struct buf text;
    buf_init(&text, 1 << 16);
    buf_printf(&text, "{\"signalId\":\"" ID "\",\"signalType\":\"%s\",\"payload\":%s}", type, payload);
    struct str bytes = arena_copy(&arena, buf_str(&text));
    buf_release(&text);
    enum code rc = signal_decode(contract, bytes, &arena, out, &err);
    if (rc) CHECK(strncmp(err.message, "SIGNAL_INVALID_PAYLOAD: ", 24) == 0);
    return rc;
}

struct payload_case {
    const char *type, *payload;
    bool fits;
};

static void payload_rules_C_40(void)
{
    static const struct payload_case cases[] = {
        {"PAUSE", "{}", true},
        {"PAUSE", "{\"reason\":\"lunch\"}", true},
        {"PAUSE", "{\"reason\":7}", false},
        {"PAUSE", "{\"why\":\"lunch\"}", false},
        {"PAUSE", "[]", false},
        {"RESUME", "{}", true},
        {"RESUME", "{\"reason\":\"x\"}", false},
        {"CANCEL", "{\"reason\":\"enough\"}", true},
        {"CANCEL", "{\"forceKill\":true}", false},
        {"RETRY_STEP", "{\"stepId\":\"load\"}", true},
        {"RETRY_STEP", "{\"stepId\":\"load\",\"force\":true}", true},
        {"RETRY_STEP", "{}", false},
        {"RETRY_STEP", "{\"stepId\":\"\"}", false},
        {"RETRY_STEP", "{\"stepId\":\"a|b\"}", false}, // would not fit into the event that tells of it
        {"RETRY_STEP", "{\"stepId\":\"poll[2].fetch\"}", true},
        {"RETRY_STEP", "{\"stepId\":\"load\",\"force\":\"yes\"}", false},
        {"SKIP_STEP", "{\"stepId\":\"load\",\"reason\":\"known\"}", true},
        {"SKIP_STEP", "{\"reason\":\"known\"}", false},
        {"RETRY_RUN", "{\"reason\":\"again\",\"force\":false}", true},
        {"RETRY_RUN", "{\"stepId\":\"load\"}", false},
        {"EMERGENCY_STOP", "{\"reason\":\"fire\",\"forceKill\":true}", true},
        {"EMERGENCY_STOP", "{}", false},
        {"EMERGENCY_STOP", "{\"reason\":\"\"}", false},
        {"APPROVE", "{}", true},
        {"APPROVE", "{\"stepId\":\"gate\",\"reason\":\"ok\",\"fields\":{\"a\":1}}", true},
        {"APPROVE", "{\"fields\":[]}", false},
        {"REJECT", "{\"stepId\":\"gate\"}", true},
        {"UPDATE_PARAMS", "{}", false},
        {"pause", "{}", false},
        {"", "{}", false},
    };
    open_contract();
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct signal signal;
        enum code rc = decode(cases[i].type, cases[i].payload, &signal);
        if (rc != (cases[i].fits ? OK : E_INVALID))
            test_fail(__FILE__, __LINE__, "%s %s: %s", cases[i].type, cases[i].payload, rc ? "refused" : "accepted");
    }
}

static void reasons_have_a_largest_length(void)
{
    open_contract();
    struct signal signal;
    char payload[1200];
    snprintf(payload, sizeof(payload), "{\"reason\":\"%0500d\"}", 0);
    CHECK_INT(decode("PAUSE", payload, &signal), OK);
    snprintf(payload, sizeof(payload), "{\"reason\":\"%0501d\"}", 0);
    CHECK_INT(decode("PAUSE", payload, &signal), E_INVALID);
    snprintf(payload, sizeof(payload), "{\"reason\":\"%01000d\"}", 0);
    CHECK_INT(decode("EMERGENCY_STOP", payload, &signal), OK);
    snprintf(payload, sizeof(payload), "{\"reason\":\"%01001d\"}", 0);
    CHECK_INT(decode("EMERGENCY_STOP", payload, &signal), E_INVALID);
}

static void facts_are_read(void)
{
    open_contract();
    struct signal signal;
    CHECK_INT(decode("SKIP_STEP", "{\"stepId\":\"load\",\"reason\":\"known\"}", &signal), OK);
    CHECK_INT(signal.type, SIGNAL_SKIP_STEP);
    CHECK_STR(signal.id, STR(ID));
    CHECK_STR(signal.step, STR("load"));
    CHECK_STR(signal.reason, STR("known"));
    CHECK(!signal.force);
    CHECK_INT(decode("EMERGENCY_STOP", "{\"reason\":\"fire\",\"forceKill\":true}", &signal), OK);
    CHECK(signal.force);
    CHECK_INT(decode("RETRY_STEP", "{\"stepId\":\"load\",\"force\":true}", &signal), OK);
    CHECK(signal.force);
}

static void check_request(const char *text, enum code want, struct signal *out)
{
    struct error err = {0};
    enum code rc = signal_decode(contract, str_from(text), &arena, out, &err);
    if (rc != want) test_fail(__FILE__, __LINE__, "%s: %s", text, rc ? err.message : "accepted");
}

static void aliases_C_40(void)
{
    open_contract();
    struct signal signal;
    check_request("{\"signalId\":\"" ID
                  "\",\"type\":\"SKIP_STEP\",\"stepId\":\"load\",\"reason\":\"known\",\"requestedAt\":\"now\"}",
                  OK, &signal);
    CHECK_INT(signal.type, SIGNAL_SKIP_STEP);
    CHECK_STR(signal.step, STR("load"));
    CHECK_STR(json_text(json_key(&signal.payload, "reason")), STR("known"));
    check_request("{\"signalId\":\"" ID "\",\"type\":\"PAUSE\"}", OK, &signal);
    check_request("{\"signalId\":\"" ID "\",\"type\":\"PAUSE\",\"signalType\":\"PAUSE\"}", OK, &signal);
    check_request("{\"signalId\":\"" ID "\",\"type\":\"PAUSE\",\"signalType\":\"RESUME\"}", E_INVALID, &signal);
    check_request("{\"signalId\":\"" ID "\",\"type\":\"PAUSE\",\"reason\":\"a\",\"payload\":{\"reason\":\"b\"}}",
                  E_INVALID, &signal);
    CHECK_INT(signal.type, SIGNAL_NONE);
}

static void malformed_requests_are_refused(void)
{
    open_contract();
    struct signal signal;
    check_request("", E_INVALID, &signal);
    check_request("[]", E_INVALID, &signal);
    check_request("{\"signalType\":\"PAUSE\"}", E_INVALID, &signal);
    check_request("{\"signalId\":\"" ID "\"}", E_INVALID, &signal);
    check_request("{\"signalId\":\"not-a-uuid\",\"signalType\":\"PAUSE\"}", E_INVALID, &signal);
    check_request("{\"signalId\":\"" ID "\",\"signalType\":\"PAUSE\",\"colour\":\"blue\"}", E_INVALID, &signal);
    char *huge = arena_alloc(&arena, 70000);
    CHECK(huge);
    memset(huge, ' ', 69999);
    check_request(huge, E_INVALID, &signal);
}

// A payload that every type takes.
static struct json payload_of(int type)
{
    static const char *const texts[SIGNAL_LAST + 1] = {
        [SIGNAL_UPDATE_PARAMS] = "{\"params\":{\"mode\":\"full\"}}",
        [SIGNAL_INJECT_OVERRIDE] = "{\"stepId\":\"load\",\"override\":{\"command\":\"true\"}}",
        [SIGNAL_UPDATE_TARGET] = "{\"stepId\":\"load\",\"newTarget\":{\"queue\":\"big\"}}",
        [SIGNAL_ESCALATE_ALERT] = "{\"level\":\"P1\",\"note\":\"look\"}",
        [SIGNAL_DELIVER_EVENT] = "{\"event\":\"paid\",\"id\":\"e1\"}",
    };
    struct json payload = json_object();
    struct error err = {0};
    if (texts[type]) CHECK_OK(json_parse(str_from(texts[type]), &json_limits_default, &arena, &payload, &err), &err);
    return payload;
}

static bool names_a_step(int type)
{
    return type == SIGNAL_RETRY_STEP || type == SIGNAL_SKIP_STEP || type == SIGNAL_INJECT_OVERRIDE ||
           type == SIGNAL_UPDATE_TARGET;
}

static void there_and_back(void)
{
    open_contract();
    struct error err = {0};
    for (int type = SIGNAL_PAUSE; type <= SIGNAL_LAST; type++) {
        struct signal signal = {
            .type = (enum signal_type)type, .id = STR(ID), .actor = STR("ada \"the\" first"), .role = STR("Admin")};
        signal.payload = payload_of(type);
        signal.source_ip = STR("192.0.2.7");
        signal.policy_decision_id = STR("00000000-0000-4000-8000-00000000000a");
        signal.requires_approval = type % 2 == 0;
        if (type != SIGNAL_RESUME && type != SIGNAL_RETRY_STEP) signal.reason = STR("because\n");
        if (names_a_step(type) || type == SIGNAL_APPROVE) signal.step = STR("load");
        signal.force = type == SIGNAL_EMERGENCY_STOP || type == SIGNAL_RETRY_STEP;
        struct signal back;
        struct str bytes;
        CHECK_OK(signal_encode(&signal, &arena, &bytes, &err), &err);
        CHECK_OK(signal_decode(contract, bytes, &arena, &back, &err), &err);
        CHECK_INT(back.type, signal.type);
        CHECK_STR(back.id, signal.id);
        CHECK_STR(back.step, signal.step);
        CHECK_STR(back.reason, signal.reason);
        CHECK_STR(back.actor, signal.actor);
        CHECK_STR(back.role, signal.role);
        CHECK_INT(back.force, signal.force);
        CHECK_STR(back.source_ip, signal.source_ip);
        CHECK_STR(back.policy_decision_id, signal.policy_decision_id);
        CHECK(back.requires_approval == signal.requires_approval);
        struct str again;
        CHECK_OK(signal_encode(&back, &arena, &again, &err), &err);
        CHECK_STR(again, bytes);
        CHECK_INT(signal_parse(str_from(signal_name(signal.type))), signal.type);
    }
}

static void every_allocation_may_fail(void)
{
    open_contract();
    struct signal signal = {
        .type = SIGNAL_APPROVE, .id = STR(ID), .reason = STR("ok"), .step = STR("gate"), .actor = STR("ada")};
    enum code rc = E_NOMEM;
    for (int64_t n = 1; rc; n++) {
        struct arena scarce;
        struct error err = {0};
        struct str bytes;
        struct signal back;
        arena_init(&scarce, 4096, 1 << 20);
        scarce.fail_in = n;
        rc = signal_encode(&signal, &scarce, &bytes, &err);
        if (!rc) rc = signal_decode(contract, bytes, &scarce, &back, &err);
        CHECK(rc == OK || rc == E_NOMEM);
        arena_release(&scarce);
        CHECK(n < 1000);
    }
}

// RESUME and RETRY_STEP have no reason in their payload; it still reaches the decision record.
static void a_reason_survives_for_every_type_I23(void)
{
    open_contract();
    for (int type = SIGNAL_NONE + 1; type <= SIGNAL_LAST; type++) {
        struct signal given = {
            .type = (enum signal_type)type, .id = STR(ID), .reason = STR("because"), .actor = STR("ann")};
        given.payload = payload_of(type);
        if (names_a_step(type)) given.step = STR("load");
        struct str bytes;
        struct signal back;
        struct error err = {0};
        CHECK_OK(signal_encode(&given, &arena, &bytes, &err), &err);
        CHECK_OK(signal_decode(contract, bytes, &arena, &back, &err), &err);
        CHECK_STR(back.reason, given.reason);
        CHECK_INT(back.type, type);
    }
}

// The table of requirements §3.1; APPROVE and REJECT are ours.
static void catalogue_of_signals_roles_and_destructive_ones_WE_2_3a_C_60(void)
{
    static const struct {
        const char *name, *role;
        bool destructive;
    } rows[] = {
        {"PAUSE", "Operator", false},      {"RESUME", "Operator", false},       {"CANCEL", "Operator", false},
        {"RETRY_STEP", "Engineer", false}, {"RETRY_RUN", "Engineer", false},    {"SKIP_STEP", "Engineer", false},
        {"UPDATE_PARAMS", "Admin", true},  {"INJECT_OVERRIDE", "Admin", true},  {"UPDATE_TARGET", "Admin", true},
        {"EMERGENCY_STOP", "Admin", true}, {"ESCALATE_ALERT", "System", false}, {"APPROVE", "Operator", false},
        {"REJECT", "Operator", false},     {"DELIVER_EVENT", "System", false},
    };
    CHECK_INT(ARRAY_COUNT(rows), SIGNAL_LAST);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        enum signal_type type = signal_parse(str_from(rows[i].name));
        CHECK(type != SIGNAL_NONE);
        CHECK_TEXT(signal_rule(type)->least_role, rows[i].role);
        CHECK(signal_rule(type)->destructive == rows[i].destructive);
    }
}

static void payloads_of_changes_are_closed_WE_2_3a(void)
{
    static const char *const bad[] = {
        "\"UPDATE_PARAMS\",\"payload\":{}",
        "\"UPDATE_PARAMS\",\"payload\":{\"params\":{}}",
        "\"UPDATE_PARAMS\",\"payload\":{\"params\":{\"a\":1},\"more\":1}",
        "\"INJECT_OVERRIDE\",\"payload\":{\"stepId\":\"a\"}",
        "\"INJECT_OVERRIDE\",\"payload\":{\"override\":{\"command\":\"x\"}}",
        "\"UPDATE_TARGET\",\"payload\":{\"stepId\":\"a\",\"newTarget\":{\"url\":\"http://x\"}}",
        "\"ESCALATE_ALERT\",\"payload\":{\"level\":\"P2\"}",
        "\"APPROVE\",\"payload\":{\"stepId\":\"a\",\"signalId\":\"" ID "\"}",
    };
    open_contract();
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct signal signal;
        char text[512];
        snprintf(text, sizeof(text), "{\"signalId\":\"" ID "\",\"signalType\":%s}", bad[i]);
        check_request(text, E_INVALID, &signal);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(catalogue_of_signals_roles_and_destructive_ones_WE_2_3a_C_60),
        TEST(payloads_of_changes_are_closed_WE_2_3a),
        TEST(a_reason_survives_for_every_type_I23),
        TEST(payload_rules_C_40),
        TEST(reasons_have_a_largest_length),
        TEST(facts_are_read),
        TEST(aliases_C_40),
        TEST(malformed_requests_are_refused),
        TEST(there_and_back),
        TEST(every_allocation_may_fail),
    };
    return test_main("contract_signal", tests, ARRAY_COUNT(tests), argc, argv);
}
