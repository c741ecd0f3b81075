// Event records: reading them back, what the eight types hold, showing them in other words, names.
#include "support/contract_kit.h"

// ---- reading

static void occurredAt_is_read_for_emittedAt_and_never_written_C_03_WE_5b(void)
{
    struct json record = record_of(VOCABULARY_RUN, (struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a")});
    CHECK(json_key(&record, "emittedAt") && !json_key(&record, "occurredAt"));
    struct json old = with_member(&record, "emittedAt", (struct json){0});
    old = with_member(&old, "occurredAt", json_string(STR("2026-02-11T18:00:00+01:00")));
    struct buf text;
    buf_init(&text, 1 << 16);
    json_write(&text, &old);
    struct moment moment;
    struct seal seal;
    CHECK_OK(contract_decode(VOCABULARY_RUN, buf_str(&text), &arena, &moment, &seal, NULL, &err), &err);
    CHECK_INT(moment.at_ms, 1770829200000);
    buf_clear(&text);
    old = with_member(&old, "occurredAt", (struct json){0});
    json_write(&text, &old);
    struct error why = {0};
    CHECK_INT(contract_decode(VOCABULARY_RUN, buf_str(&text), &arena, &moment, &seal, NULL, &why), E_CORRUPT);
    CHECK_TEXT(why.message, "record: occurredAt is missing");
    buf_release(&text);
}

static void unknown_types_are_read_ES_1_5_6a_ES_7a(void)
{
    arena_init(&arena, 4096, 1 << 20);
    struct moment moment;
    struct seal seal;
    struct run_ids ids;
    CHECK_OK(
        contract_decode(
            VOCABULARY_RUN,
            STR("{\"eventType\":\"FooBar\",\"runId\":\"r\",\"runSeq\":9,\"engineAttemptId\":1,\"logicalAttemptId\":1,"
                "\"emittedAt\":\"2026-02-11T17:00:00Z\",\"colour\":\"blue\"}"),
            &arena, &moment, &seal, &ids, &err),
        &err);
    CHECK_INT(moment.kind, MOMENT_UNKNOWN);
    CHECK_INT(seal.seq, 9);
    CHECK_STR(ids.run, STR("r"));
    CHECK_OK(contract_decode(VOCABULARY_NODES,
                             STR("{\"event_type\":\"node_sang\",\"run_id\":\"r\",\"sequence\":3,\"timestamp\":\"2026-"
                                 "02-11T17:00:00Z\",\"payload\":{}}"),
                             &arena, &moment, &seal, &ids, &err),
             &err);
    CHECK_INT(moment.kind, MOMENT_UNKNOWN);
    CHECK_INT(seal.seq, 3);
}

static void bytes_that_are_no_record_are_corrupt(void)
{
    static const char *const bad[] = {
        "",
        "nonsense",
        "[]",
        "null",
        "{}",
        "{\"eventType\":7,\"event_type\":7}",
        "{\"eventType\":\"RunPaused\",\"runId\":\"r\",\"runSeq\":1,\"engineAttemptId\":1,\"logicalAttemptId\":1}",
        "{\"eventType\":\"RunPaused\",\"runId\":\"r\",\"runSeq\":-1,\"engineAttemptId\":1,\"logicalAttemptId\":1,"
        "\"emittedAt\":\"2026-02-"
        "11T17:00:00Z\"}",
        "{\"eventType\":\"RunPaused\",\"runId\":\"r\",\"runSeq\":1,\"engineAttemptId\":0,\"logicalAttemptId\":1,"
        "\"emittedAt\":\"2026-02-"
        "11T17:00:00Z\"}",
        "{\"eventType\":\"RunPaused\",\"runId\":\"r\",\"runSeq\":1,\"engineAttemptId\":1,\"logicalAttemptId\":1,"
        "\"emittedAt\":"
        "\"yesterday\"}",
        "{\"eventType\":\"RunPaused\",\"runId\":\"r\",\"runSeq\":1,\"engineAttemptId\":1,\"logicalAttemptId\":1,"
        "\"emittedAt\":\"2026-02-"
        "11T17:00:00Z\",\"payload\":[]}",
        "{\"eventType\":\"RunPaused\",\"runId\":\"r\",\"runSeq\":1,\"engineAttemptId\":1,\"logicalAttemptId\":1,"
        "\"emittedAt\":\"2026-02-"
        "11T17:00:00Z\",\"stepId\":\"a\"}",
        "{\"eventType\":\"StepStarted\",\"runId\":\"r\",\"runSeq\":1,\"engineAttemptId\":1,\"logicalAttemptId\":1,"
        "\"emittedAt\":\"2026-02-"
        "11T17:00:00Z\"}",
        "{\"event_type\":\"node_started\",\"run_id\":\"r\",\"sequence\":1,\"timestamp\":\"2026-02-11T17:00:00Z\","
        "\"payload\":{}}",
        "{\"event_type\":\"node_started\",\"run_id\":\"r\",\"sequence\":1,\"timestamp\":\"2026-02-11T17:00:00Z\","
        "\"payload\":7}",
        "{\"event_type\":\"node_failed\",\"run_id\":\"r\",\"sequence\":1,\"timestamp\":\"2026-02-11T17:00:00Z\","
        "\"payload\":{\"node_id\":"
        "\"a\",\"error\":\"x\"}}",
    };
    arena_init(&arena, 4096, 1 << 20);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct moment moment;
        struct seal seal;
        struct error why = {0};
        CHECK_INT(contract_decode(VOCABULARY_RUN, str_from(bad[i]), &arena, &moment, &seal, NULL, &why), E_CORRUPT);
        CHECK(why.message[0] != '\0');
        CHECK_INT(contract_decode(VOCABULARY_NODES, str_from(bad[i]), &arena, &moment, &seal, NULL, &err), E_CORRUPT);
    }
}

static void stepFailed_without_willRetry_is_final_C_34(void)
{
    struct json record = record_of(
        VOCABULARY_RUN, (struct moment){.kind = MOMENT_ATTEMPT_FAILED, .step = STR("a"), .fault = exit_fault()});
    struct json payload = *json_key(&record, "payload");
    CHECK(json_key(&payload, "willRetry")->boolean);
    payload = with_member(&payload, "willRetry", (struct json){0});
    record = with_member(&record, "payload", payload);
    struct buf text;
    buf_init(&text, 1 << 16);
    json_write(&text, &record);
    struct moment moment;
    struct seal seal;
    CHECK_OK(contract_decode(VOCABULARY_RUN, buf_str(&text), &arena, &moment, &seal, NULL, &err), &err);
    CHECK_INT(moment.kind, MOMENT_STEP_FAILED);
    buf_release(&text);
}

// ---- what the eight types hold

static struct json payload_of(struct moment moment)
{
    struct json record = record_of(VOCABULARY_NODES, moment);
    CHECK_INT(record.count, 6);
    return *json_key(&record, "payload");
}

static void check_member(const struct json *payload, const char *path, struct str want)
{
    CHECK_STR(json_text(json_at(payload, str_from(path))), want);
}

static void workflow_started_says_whose_run_it_is_EL_2b_C_64(void)
{
    open_contract();
    struct start_facts start = story_start("nodes");
    struct json payload = payload_of((struct moment){.kind = MOMENT_RUN_STARTED, .start = &start});
    check_member(&payload, "workflow", STR("orders"));
    check_member(&payload, "tenant_id", STR("tenant_acme"));
    check_member(&payload, "plan_version", STR("1.2.0"));
    check_member(&payload, "document_sha256", str_from(plan_sha));
    check_member(&payload, "inputs.day", STR("2026-02-11"));
}

// Of a set of documents the hash is that of what the reference names: who reads it can fetch the same and compare.
static void a_reference_is_recorded_as_it_was_given_WE_3_1a(void)
{
    open_contract();
    struct start_facts start = story_start("plan");
    start.plan_uri = STR("https://plans.example/orders.json");
    start.plan_sha256 = STR("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08");
    struct json record = record_of(VOCABULARY_RUN, (struct moment){.kind = MOMENT_RUN_STARTED, .start = &start});
    const struct json *payload = json_key(&record, "payload");
    check_member(payload, "planRef.uri", start.plan_uri);
    check_member(payload, "planRef.sha256", start.plan_sha256);
    check_member(payload, "documentSha256", str_from(plan_sha));
    start.plan_sha256 = STR("");
    record = record_of(VOCABULARY_RUN, (struct moment){.kind = MOMENT_RUN_STARTED, .start = &start});
    payload = json_key(&record, "payload");
    check_member(payload, "planRef.sha256", str_from(plan_sha));
    CHECK(!json_key(payload, "documentSha256"));
}

static void workflow_completed_EL_2c(void)
{
    struct json payload =
        payload_of((struct moment){.kind = MOMENT_RUN_COMPLETED, .counts = {.total = 2, .completed = 2}});
    CHECK_INT(json_integer(json_at(&payload, STR("counts.completed")), 0), 2);
}

static void workflow_failed_EL_2d(void)
{
    struct json payload =
        payload_of((struct moment){.kind = MOMENT_RUN_FAILED, .reason = STR("test"), .fault = exit_fault()});
    check_member(&payload, "error.code", STR("EXIT_NONZERO"));
    check_member(&payload, "failed_node", STR("test"));
}

static void workflow_cancelled_EL_2e(void)
{
    struct json payload =
        payload_of((struct moment){.kind = MOMENT_RUN_CANCELLED, .reason = STR("enough"), .signal_id = SIGNAL_ID});
    check_member(&payload, "reason", STR("enough"));
    check_member(&payload, "signal_id", SIGNAL_ID);
}

static void node_started_EL_2f(void)
{
    struct json payload = payload_of((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("build")});
    check_member(&payload, "node_id", STR("build"));
    CHECK_INT(json_integer(json_key(&payload, "attempt"), 0), 1);
    CHECK_INT(json_integer(json_key(&payload, "engine_attempt"), 0), 1);
}

static void node_started_again_after_a_crash_EL_2f_C_22(void)
{
    struct json record = record_of(
        VOCABULARY_NODES, (struct moment){.kind = MOMENT_STEP_REDISPATCHED, .step = STR("build"), .engine = 2});
    CHECK_STR(json_text(json_key(&record, "event_type")), STR("node_started"));
    CHECK_INT(json_integer(json_at(&record, STR("payload.engine_attempt")), 0), 2);
}

static void node_completed_records_the_output_EL_2g(void)
{
    struct json payload = payload_of(
        (struct moment){.kind = MOMENT_STEP_COMPLETED, .step = STR("build"), .value = json_string(STR("ok"))});
    check_member(&payload, "output", STR("ok"));
    payload = payload_of((struct moment){.kind = MOMENT_STEP_COMPLETED, .step = STR("build"), .value = json_null()});
    CHECK(json_is(json_key(&payload, "output"), JSON_NULL));
}

static void node_failed_records_the_error_and_counts_attempts_EL_2h_C_66(void)
{
    struct json payload = payload_of(
        (struct moment){.kind = MOMENT_STEP_FAILED, .step = STR("test"), .logical = 3, .fault = exit_fault()});
    check_member(&payload, "error.message", STR("exit status 3"));
    CHECK_INT(json_integer(json_at(&payload, STR("error.exit_code")), 0), 3);
    CHECK(json_at(&payload, STR("error.retryable"))->boolean);
    CHECK_INT(json_integer(json_key(&payload, "attempts"), 0), 3);
}

// The moment that a node_skipped record with this payload is read as.
static struct moment skip_read_back(const struct json *payload)
{
    struct json record = record_of(
        VOCABULARY_NODES, (struct moment){.kind = MOMENT_STEP_SKIPPED, .step = STR("x"), .reason = STR(SKIP_OPERATOR)});
    record = with_member(&record, "payload", *payload);
    struct buf text;
    struct moment moment;
    struct seal seal;
    buf_init(&text, 1 << 16);
    json_write(&text, &record);
    struct str kept = arena_copy(&arena, buf_str(&text));
    CHECK_OK(contract_decode(VOCABULARY_NODES, kept, &arena, &moment, &seal, NULL, &err), &err);
    buf_release(&text);
    return moment;
}

static void node_skipped_says_why_EL_2i_C_25(void)
{
    static const struct {
        const char *code, *told;                  // the moment
        const char *word, *cause, *expr, *detail; // the record
    } cases[] = {
        {SKIP_TRIGGER_RULE, "all_success: 1 skipped", "trigger_rule", "", "", "all_success: 1 skipped"},
        {SKIP_DEPENDENCY_FAILED, "1 failed", "trigger_rule", "dependency_failed", "", "1 failed"},
        {SKIP_OPERATOR, "not now", "operator_skip", "", "", "not now"},
        {SKIP_CONDITION_BROKEN, "come with me with = ''", "when_condition_parse_error", "", "come with me with = ''",
         ""},
        {SKIP_CONDITION_FALSE, "$a.output == 1", "when_condition", "", "$a.output == 1", ""},
        {SKIP_CONDITION_FALSE, "$a.output == 'b' with $a.output = 'it's with ''", "when_condition", "",
         "$a.output == 'b'", "$a.output = 'it's with ''"},
        {SKIP_CONDITION_FALSE, "$a.output == ' with ' || $b.n > 3 with $a.output = '', $b.n = '2'", "when_condition",
         "", "$a.output == ' with ' || $b.n > 3", "$a.output = '', $b.n = '2'"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct json payload = payload_of((struct moment){.kind = MOMENT_STEP_SKIPPED,
                                                         .step = STR("x"),
                                                         .reason = str_from(cases[i].code),
                                                         .detail = str_from(cases[i].told)});
        check_member(&payload, "reason", str_from(cases[i].word));
        CHECK_STR(json_text(json_key(&payload, "cause")), str_from(cases[i].cause));
        CHECK_STR(json_text(json_key(&payload, "expr")), str_from(cases[i].expr));
        CHECK_STR(json_text(json_key(&payload, "detail")), str_from(cases[i].detail));
        struct moment back = skip_read_back(&payload);
        CHECK_STR(back.reason, str_from(cases[i].code));
        CHECK_STR(back.detail, str_from(cases[i].told));
    }
}

static void node_skipped_of_earlier_versions_is_read(void)
{
    struct json payload = payload_of((struct moment){.kind = MOMENT_STEP_SKIPPED,
                                                     .step = STR("x"),
                                                     .reason = STR(SKIP_DEPENDENCY_FAILED),
                                                     .detail = STR("1 failed")});
    payload = with_member(&payload, "cause", (struct json){0});
    payload = with_member(&payload, "reason", json_string(STR("dependency_failed")));
    struct moment back = skip_read_back(&payload);
    CHECK_STR(back.reason, STR(SKIP_DEPENDENCY_FAILED));
    CHECK_STR(back.detail, STR("1 failed"));
    payload = with_member(&payload, "detail", (struct json){0});
    payload = with_member(&payload, "reason", json_string(STR("when_condition")));
    payload = with_member(&payload, "expr", json_string(STR("$a.output == 1 with $a.output = '2'")));
    back = skip_read_back(&payload);
    CHECK_STR(back.reason, STR(SKIP_CONDITION_FALSE));
    CHECK_STR(back.detail, STR("$a.output == 1 with $a.output = '2'"));
}

// ---- showing

static void one_moment_is_shown_in_the_words_of_another_contract_C_52(void)
{
    open_contract();
    struct moment moment = {
        .kind = MOMENT_STEP_COMPLETED, .by = EMITTER_WORKER, .step = STR("a"), .logical = 1, .engine = 1};
    moment.value = json_int(7);
    moment.at_ms = 1770829200000;
    struct seal seal = {.seq = 12, .persisted_ms = 1770829200001, .event_id = "00000000-0000-4000-8000-000000000001"};
    struct json shown;
    CHECK_OK(contract_show(contract, VOCABULARY_NODES, &test_ids, &moment, &seal, &arena, &shown, &err), &err);
    CHECK_STR(json_text(json_key(&shown, "event_type")), STR("node_completed"));
    CHECK_INT(json_integer(json_key(&shown, "sequence"), 0), 12);
    CHECK_STR(json_text(json_key(&shown, "timestamp")), STR("2026-02-11T17:00:00.001Z"));
    CHECK_OK(contract_show(contract, VOCABULARY_RUN, &test_ids, &moment, &seal, &arena, &shown, &err), &err);
    CHECK_STR(json_text(json_key(&shown, "eventType")), STR("StepCompleted"));
    moment = (struct moment){.kind = MOMENT_ATTEMPT_FAILED, .step = STR("a"), .logical = 1, .engine = 1};
    CHECK_OK(contract_show(contract, VOCABULARY_NODES, &test_ids, &moment, &seal, &arena, &shown, &err), &err);
    CHECK_INT(shown.type, 0);
    moment = (struct moment){.kind = MOMENT_UNKNOWN};
    CHECK_OK(contract_show(contract, VOCABULARY_RUN, &test_ids, &moment, &seal, &arena, &shown, &err), &err);
    CHECK_INT(shown.type, 0);
    moment = (struct moment){.kind = MOMENT_RUN_QUEUED, .logical = 1, .engine = 1};
    CHECK_INT(contract_show(contract, VOCABULARY_RUN, &test_ids, &moment, &seal, &arena, &shown, &err), E_INVALID);
}

// ---- names

static void statuses_have_these_names_RE_3h_ES_1_4b_C_31(void)
{
    static const char *const run[] = {"PENDING", "APPROVED", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"};
    static const char *const step[] = {"PENDING", "RUNNING", "SUCCESS", "FAILED", "SKIPPED"};
    for (size_t i = 0; i < ARRAY_COUNT(run); i++) {
        enum run_status status = (enum run_status)(i + 1);
        CHECK_TEXT(run_status_name(status), run[i]);
        CHECK_INT(run_status_parse(str_from(run[i])), status);
        CHECK_INT(run_status_terminal(status), i >= 4);
    }
    for (size_t i = 0; i < ARRAY_COUNT(step); i++) {
        CHECK_TEXT(step_status_name((enum step_status)(i + 1)), step[i]);
        CHECK_INT(step_status_parse(str_from(step[i])), i + 1);
    }
    CHECK_INT(run_status_parse(STR("SUCCESS")), 0);
    CHECK_INT(step_status_parse(STR("COMPLETED")), 0);
}

static void names_of_moments_vocabularies_and_emitters_ES_1_2b_ES_1_2d(void)
{
    CHECK_TEXT(vocabulary_name(VOCABULARY_NODES), "nodes");
    CHECK_INT(vocabulary_parse(STR("run")), VOCABULARY_RUN);
    CHECK_INT(vocabulary_parse(STR("runs")), 0);
    CHECK_TEXT(moment_name(MOMENT_STEP_STARTED), "STEP_STARTED");
    CHECK_INT(moment_parse(STR("LATE_RESULT")), MOMENT_LATE_RESULT);
    CHECK_INT(moment_parse(STR("UNKNOWN")), MOMENT_UNKNOWN);
    CHECK(moment_is_terminal(MOMENT_RUN_CANCELLED) && !moment_is_terminal(MOMENT_RUN_PAUSED));
    CHECK(moment_is_step(MOMENT_STEP_SKIPPED) && !moment_is_step(MOMENT_SIGNAL_ACCEPTED));
    CHECK_INT(moment_emitter(MOMENT_RUN_APPROVED), EMITTER_PLANNER);
    CHECK_INT(moment_emitter(MOMENT_STEP_STARTED), EMITTER_WORKER);
    CHECK_INT(moment_emitter(MOMENT_RUN_STARTED), EMITTER_ENGINE);
    CHECK_TEXT(emitter_name(EMITTER_WORKER), "activity-worker");
    CHECK_INT(emitter_parse(STR("planner")), EMITTER_PLANNER);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(occurredAt_is_read_for_emittedAt_and_never_written_C_03_WE_5b),
        TEST(unknown_types_are_read_ES_1_5_6a_ES_7a),
        TEST(bytes_that_are_no_record_are_corrupt),
        TEST(stepFailed_without_willRetry_is_final_C_34),
        TEST(workflow_started_says_whose_run_it_is_EL_2b_C_64),
        TEST(a_reference_is_recorded_as_it_was_given_WE_3_1a),
        TEST(workflow_completed_EL_2c),
        TEST(workflow_failed_EL_2d),
        TEST(workflow_cancelled_EL_2e),
        TEST(node_started_EL_2f),
        TEST(node_started_again_after_a_crash_EL_2f_C_22),
        TEST(node_completed_records_the_output_EL_2g),
        TEST(node_failed_records_the_error_and_counts_attempts_EL_2h_C_66),
        TEST(node_skipped_says_why_EL_2i_C_25),
        TEST(node_skipped_of_earlier_versions_is_read),
        TEST(one_moment_is_shown_in_the_words_of_another_contract_C_52),
        TEST(statuses_have_these_names_RE_3h_ES_1_4b_C_31),
        TEST(names_of_moments_vocabularies_and_emitters_ES_1_2b_ES_1_2d),
    };
    return test_main("contract_records", tests, ARRAY_COUNT(tests), argc, argv);
}
