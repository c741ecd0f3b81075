// Records as their consumers see them: what each type holds, what its schema refuses, what a reader tolerates, and two
// golden logs byte for byte. Expected values are written out.
#include "support/contract_kit.h"

// ---- a story in both vocabularies

// All three ways to end, one after the other.
static void tell_ends(struct story *story, const char *failed, const char *actor)
{
    struct run_counts counts = {.total = 3, .completed = 2, .skipped = 1};
    tell(story, (struct moment){.kind = MOMENT_RUN_COMPLETED, .counts = counts, .duration_ms = 1000});
    tell(story, (struct moment){.kind = MOMENT_RUN_FAILED,
                                .counts = counts,
                                .duration_ms = 1000,
                                .reason = str_from(failed),
                                .fault = exit_fault()});
    tell(story, (struct moment){.kind = MOMENT_RUN_CANCELLED,
                                .counts = counts,
                                .duration_ms = 1000,
                                .signal_id = SIGNAL_ID,
                                .signal_type = STR("CANCEL"),
                                .reason = STR("enough"),
                                .actor = str_from(actor)});
}

static void golden_log_of_a_plan_RE_1_1a_RE_2_1g_RE_2_1h(void)
{
    struct story story;
    story_open(&story, VOCABULARY_RUN);
    struct start_facts start = story_start("plan");
    tell(&story, (struct moment){.kind = MOMENT_RUN_QUEUED, .start = &start});
    tell(&story, (struct moment){.kind = MOMENT_RUN_APPROVED, .actor = STR("bob"), .reason = STR("change 42")});
    tell(&story, (struct moment){.kind = MOMENT_RUN_STARTED, .start = &start});
    tell(&story, (struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("load")});
    tell(&story, (struct moment){.kind = MOMENT_STEP_REDISPATCHED, .step = STR("load"), .engine = 2});
    tell(&story, (struct moment){.kind = MOMENT_ATTEMPT_FAILED,
                                 .step = STR("load"),
                                 .engine = 2,
                                 .fault = exit_fault(),
                                 .duration_ms = 412});
    tell(&story,
         (struct moment){.kind = MOMENT_STEP_DELAYED, .step = STR("load"), .logical = 2, .due_ms = 1770829260000});
    tell(&story, (struct moment){.kind = MOMENT_SIGNAL_ACCEPTED,
                                 .signal_id = SIGNAL_ID,
                                 .signal_type = STR("PAUSE"),
                                 .actor = STR("ada"),
                                 .role = STR("Operator"),
                                 .decision_id = STR("d1")});
    tell(&story,
         (struct moment){
             .kind = MOMENT_RUN_PAUSED, .signal_id = SIGNAL_ID, .signal_type = STR("PAUSE"), .reason = STR("lunch")});
    tell(&story, (struct moment){.kind = MOMENT_SIGNAL_REJECTED,
                                 .signal_id = SIGNAL_ID,
                                 .signal_type = STR("SKIP_STEP"),
                                 .actor = STR("eve"),
                                 .role = STR("Operator"),
                                 .decision_id = STR("d2"),
                                 .signal_step = STR("load"),
                                 .fault = {.code = STR("AUTHZ_DENIED"), .message = STR("needs Engineer")}});
    tell(&story, (struct moment){.kind = MOMENT_RUN_RESUMED, .signal_id = SIGNAL_ID, .signal_type = STR("RESUME")});
    tell(&story,
         (struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("load"), .logical = 2, .due_ms = 1770829270000});
    tell(&story, (struct moment){.kind = MOMENT_STEP_COMPLETED,
                                 .step = STR("load"),
                                 .logical = 2,
                                 .value = json_int(7),
                                 .duration_ms = 20,
                                 .artifacts = one_artifact()});
    tell(&story, (struct moment){.kind = MOMENT_STEP_COMPLETED,
                                 .step = STR("big"),
                                 .has_blob = true,
                                 .blob = sha256(STR("hello\n")),
                                 .blob_size = 6,
                                 .run_ref = STR("run-000"),
                                 .duration_ms = 1});
    tell(&story, (struct moment){.kind = MOMENT_STEP_SKIPPED,
                                 .step = STR("report"),
                                 .reason = STR(SKIP_CONDITION_FALSE),
                                 .detail = STR("$load.output == '8'")});
    tell(&story,
         (struct moment){.kind = MOMENT_STEP_FAILED, .step = STR("last"), .fault = exit_fault(), .duration_ms = 3});
    tell_ends(&story, "last", "ada");
    test_golden("records-run.jsonl", buf_str(&story.text));
    buf_release(&story.text);
}

static void golden_log_of_a_workflow_EL_2a_C_63(void)
{
    struct story story;
    story_open(&story, VOCABULARY_NODES);
    struct start_facts start = story_start("nodes");
    start.arguments = STR("all of it");
    start.parent_run = STR("run-000");
    start.parent_step = STR("child");
    tell(&story, (struct moment){.kind = MOMENT_RUN_STARTED, .start = &start});
    tell(&story, (struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("build"), .due_ms = 1770829260000});
    tell(&story, (struct moment){.kind = MOMENT_STEP_REDISPATCHED, .step = STR("build"), .engine = 2});
    tell(&story, (struct moment){.kind = MOMENT_STEP_COMPLETED,
                                 .step = STR("build"),
                                 .engine = 2,
                                 .value = json_string(STR("ok\n")),
                                 .duration_ms = 20,
                                 .artifacts = one_artifact()});
    tell(&story, (struct moment){.kind = MOMENT_STEP_COMPLETED,
                                 .step = STR("poll[2].fetch"),
                                 .logical = 3,
                                 .has_blob = true,
                                 .blob = sha256(STR("hello\n")),
                                 .blob_size = 6,
                                 .duration_ms = 1});
    tell(&story,
         (struct moment){
             .kind = MOMENT_STEP_FAILED, .step = STR("test"), .logical = 3, .fault = exit_fault(), .duration_ms = 3});
    tell(&story, (struct moment){.kind = MOMENT_STEP_SKIPPED,
                                 .step = STR("deploy"),
                                 .reason = STR(SKIP_TRIGGER_RULE),
                                 .detail = STR("all_success: build success, test failed")});
    tell(&story, (struct moment){.kind = MOMENT_STEP_SKIPPED,
                                 .step = STR("notify"),
                                 .reason = STR(SKIP_CONDITION_FALSE),
                                 .detail = STR("$build.output == 'no'")});
    tell_ends(&story, "test", "");
    test_golden("records-nodes.jsonl", buf_str(&story.text));
    buf_release(&story.text);
}

static void every_record_names_its_predecessor_I7(void)
{
    struct story story;
    story_open(&story, VOCABULARY_RUN);
    struct start_facts start = story_start("plan");
    tell(&story, (struct moment){.kind = MOMENT_RUN_STARTED, .start = &start});
    struct str first = story.last.bytes;
    tell(&story, (struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("load")});
    struct json record;
    CHECK_OK(json_parse(first, &json_limits_default, &arena, &record, &err), &err);
    CHECK_STR(json_text(json_key(&record, "prevHash")),
              STR("0000000000000000000000000000000000000000000000000000000000000000"));
    CHECK_OK(json_parse(story.last.bytes, &json_limits_default, &arena, &record, &err), &err);
    struct digest named, actual = sha256(first);
    CHECK(digest_parse(json_text(json_key(&record, "prevHash")), &named));
    CHECK(digest_eq(&named, &actual));
    buf_release(&story.text);
}

// ---- schemas

static void schemas_of_all_types_are_shipped_and_loaded_ES_A2b_ES_A0(void)
{
    open_contract();
    struct schema_set *set;
    CHECK_OK(schema_set_embedded(&arena, &set, &err), &err);
    const struct schema *schema;
    char uri[64];
    for (size_t i = 0; i < ARRAY_COUNT(run_words); i++) {
        snprintf(uri, sizeof(uri), "run-events/%s.json", run_words[i]);
        CHECK(schema_embedded(uri).len > 0);
        CHECK_OK(schema_compile(set, str_from(uri), &schema, &err), &err);
    }
    for (size_t i = 0; i < ARRAY_COUNT(node_words); i++) {
        snprintf(uri, sizeof(uri), "node-events/%s.json", node_words[i]);
        CHECK_OK(schema_compile(set, str_from(uri), &schema, &err), &err);
    }
    CHECK_OK(schema_compile(set, STR("decision.json"), &schema, &err), &err);
    CHECK_OK(schema_compile(set, STR("run-snapshot.json"), &schema, &err), &err);
}

static void catalogue_has_these_words_ES_A2a_C_06(void)
{
    size_t words = 0, node_kinds = 0;
    for (size_t kind = 1; kind < MOMENT_COUNT; kind++) {
        const char *word = moment_word((enum moment_kind)kind, VOCABULARY_RUN);
        words += word != NULL;
        bool known = !word;
        for (size_t i = 0; i < ARRAY_COUNT(run_words); i++) known = known || str_is(str_from(word), run_words[i]);
        CHECK(known);
        node_kinds += moment_word((enum moment_kind)kind, VOCABULARY_NODES) != NULL;
    }
    CHECK_INT(words, ARRAY_COUNT(run_words) + 1);       // StepFailed is told by two moments
    CHECK_INT(node_kinds, ARRAY_COUNT(node_words) + 1); // node_started too
}

static void names_are_PascalCase_without_on_RE_1_2a_WE_2_2b(void)
{
    for (size_t kind = 1; kind < MOMENT_COUNT; kind++) {
        const char *word = moment_word((enum moment_kind)kind, VOCABULARY_RUN);
        if (!word) continue;
        CHECK(word[0] >= 'A' && word[0] <= 'Z');
        for (const char *c = word; *c; c++) CHECK((*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z'));
    }
}

static void names_with_on_are_refused_RE_1_2a_WE_5c(void)
{
    struct json record = record_of(VOCABULARY_RUN, (struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a")});
    CHECK_OK(contract_check(contract, VOCABULARY_RUN, &record, &err), &err);
    record = with_member(&record, "eventType", json_string(STR("onRunStarted")));
    check_refused(VOCABULARY_RUN, &record, "onRunStarted");
}

static void a_ninth_type_is_refused_C_05_EL_2a(void)
{
    struct json record = record_of(VOCABULARY_NODES, (struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a")});
    CHECK_OK(contract_check(contract, VOCABULARY_NODES, &record, &err), &err);
    record = with_member(&record, "event_type", json_string(STR("node_paused")));
    check_refused(VOCABULARY_NODES, &record, "node_paused");
    CHECK(moment_word(MOMENT_RUN_PAUSED, VOCABULARY_NODES) == NULL);
    CHECK(moment_word(MOMENT_ATTEMPT_FAILED, VOCABULARY_NODES) == NULL);
}

static void check_required(const char *key)
{
    struct json record = record_of(VOCABULARY_RUN, (struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a")});
    record = with_member(&record, key, (struct json){0});
    check_refused(VOCABULARY_RUN, &record, key);
}

static void runId_is_required_RE_2_1a(void)
{
    check_required("runId");
}

static void planId_is_required_RE_2_1c(void)
{
    check_required("planId");
}

static void planVersion_is_required_RE_2_1d(void)
{
    check_required("planVersion");
}

static void attempts_are_required_RE_2_1e_RE_2_1f_ES_1_3a_C_04(void)
{
    check_required("engineAttemptId");
    check_required("logicalAttemptId");
    struct json record = record_of(VOCABULARY_RUN, (struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a")});
    struct json text = with_member(&record, "engineAttemptId", json_string(STR("1")));
    check_refused(VOCABULARY_RUN, &text, "engineAttemptId");
    struct json zero = with_member(&record, "logicalAttemptId", json_int(0));
    check_refused(VOCABULARY_RUN, &zero, "logicalAttemptId");
}

static void sequence_and_key_are_required_RE_2_1g_RE_2_1h(void)
{
    check_required("runSeq");
    check_required("idempotencyKey");
    struct json record = record_of(VOCABULARY_RUN, (struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a")});
    struct json upper =
        with_member(&record, "idempotencyKey",
                    json_string(STR("6C99484DF8A52A1DC3F2533B796F7257C11F57149D3FE3277D4C7AB98433D033")));
    check_refused(VOCABULARY_RUN, &upper, "idempotencyKey");
    struct json zero = with_member(&record, "runSeq", json_int(0));
    check_refused(VOCABULARY_RUN, &zero, "runSeq");
}

static void tenant_project_environment_are_required_RE_2_1i_WE_1f(void)
{
    check_required("tenantId");
    check_required("projectId");
    check_required("environmentId");
}

static void event_id_and_times_are_required_ES_A1a_C_26_WE_5a(void)
{
    check_required("eventId");
    check_required("emittedAt");
    check_required("emittedBy");
    check_required("persistedAt");
    struct json record = record_of(VOCABULARY_RUN, (struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a")});
    struct json other = with_member(&record, "emittedBy", json_string(STR("somebody")));
    check_refused(VOCABULARY_RUN, &other, "emittedBy");
}

static void stepId_is_on_step_events_only_RE_2_1b(void)
{
    check_required("stepId");
    struct json record = record_of(VOCABULARY_RUN, (struct moment){.kind = MOMENT_RUN_COMPLETED});
    record = with_member(&record, "stepId", json_string(STR("a")));
    check_refused(VOCABULARY_RUN, &record, "stepId");
}

static void foreign_members_of_an_envelope_are_refused_those_of_a_payload_kept_RE_4_3a(void)
{
    struct json record = record_of(VOCABULARY_RUN, (struct moment){.kind = MOMENT_RUN_COMPLETED});
    struct json foreign = with_member(&record, "colour", json_string(STR("blue")));
    check_refused(VOCABULARY_RUN, &foreign, "colour");
    struct json payload = *json_key(&record, "payload");
    payload = with_member(&payload, "colour", json_string(STR("blue")));
    struct json open = with_member(&record, "payload", payload);
    CHECK_OK(contract_check(contract, VOCABULARY_RUN, &open, &err), &err);
}

static void invalid_events_are_not_encoded_ES_A2c_ES_A2d(void)
{
    open_contract();
    struct seal seal = {.seq = 1, .event_id = "00000000-0000-4000-8000-000000000001"};
    struct encoded encoded;
    struct moment moment = {.kind = MOMENT_STEP_STARTED, .by = EMITTER_WORKER, .step = STR("load"), .engine = 1};
    struct error why = {0};
    CHECK_INT(contract_encode(contract, VOCABULARY_RUN, &test_ids, &moment, &seal, &arena, &encoded, &why), E_SCHEMA);
    CHECK(strstr(why.message, "SCHEMA_VALIDATION_FAILED: StepStarted: /logicalAttemptId") != NULL);
    CHECK(encoded.bytes.ptr == NULL);
    moment.logical = 1;
    moment.step = STR("a|b");
    CHECK_INT(contract_encode(contract, VOCABULARY_RUN, &test_ids, &moment, &seal, &arena, &encoded, &err), E_SCHEMA);
    moment.step = STR("");
    CHECK_INT(contract_encode(contract, VOCABULARY_RUN, &test_ids, &moment, &seal, &arena, &encoded, &err), E_SCHEMA);
    moment.step = STR("load");
    struct run_ids ids = test_ids;
    ids.tenant = STR("");
    CHECK_INT(contract_encode(contract, VOCABULARY_RUN, &ids, &moment, &seal, &arena, &encoded, &err), E_SCHEMA);
    ids = test_ids;
    ids.run = STR("../etc");
    CHECK_INT(contract_encode(contract, VOCABULARY_RUN, &ids, &moment, &seal, &arena, &encoded, &err), E_SCHEMA);
    CHECK_INT(contract_encode(contract, VOCABULARY_NODES, &ids, &moment, &seal, &arena, &encoded, &err), E_SCHEMA);
    seal.seq = 0;
    CHECK_INT(contract_encode(contract, VOCABULARY_RUN, &test_ids, &moment, &seal, &arena, &encoded, &err), E_SCHEMA);
    moment = (struct moment){
        .kind = MOMENT_STEP_SKIPPED, .step = STR("a"), .logical = 1, .engine = 1, .reason = STR("BORED")};
    seal.seq = 1;
    CHECK_INT(contract_encode(contract, VOCABULARY_NODES, &test_ids, &moment, &seal, &arena, &encoded, &err), E_SCHEMA);
}

static void records_have_a_largest_size_ES_2e(void)
{
    open_contract();
    struct seal seal = {.seq = 1, .event_id = "00000000-0000-4000-8000-000000000001"};
    struct encoded encoded;
    struct moment moment = {
        .kind = MOMENT_STEP_COMPLETED, .by = EMITTER_WORKER, .step = STR("load"), .logical = 1, .engine = 1};
    char *text = arena_alloc(&arena, RECORD_SIZE_MAX);
    CHECK(text);
    memset(text, 'x', RECORD_SIZE_MAX);
    moment.value = json_string((struct str){text, RECORD_SIZE_MAX - 1024});
    CHECK_OK(contract_encode(contract, VOCABULARY_RUN, &test_ids, &moment, &seal, &arena, &encoded, &err), &err);
    moment.value = json_string((struct str){text, RECORD_SIZE_MAX});
    struct error why = {0};
    CHECK_INT(contract_encode(contract, VOCABULARY_RUN, &test_ids, &moment, &seal, &arena, &encoded, &why), E_LIMIT);
    CHECK_INT(contract_encode(contract, VOCABULARY_NODES, &test_ids, &moment, &seal, &arena, &encoded, &why), E_LIMIT);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(golden_log_of_a_plan_RE_1_1a_RE_2_1g_RE_2_1h),
        TEST(golden_log_of_a_workflow_EL_2a_C_63),
        TEST(every_record_names_its_predecessor_I7),
        TEST(schemas_of_all_types_are_shipped_and_loaded_ES_A2b_ES_A0),
        TEST(catalogue_has_these_words_ES_A2a_C_06),
        TEST(names_are_PascalCase_without_on_RE_1_2a_WE_2_2b),
        TEST(names_with_on_are_refused_RE_1_2a_WE_5c),
        TEST(a_ninth_type_is_refused_C_05_EL_2a),
        TEST(runId_is_required_RE_2_1a),
        TEST(planId_is_required_RE_2_1c),
        TEST(planVersion_is_required_RE_2_1d),
        TEST(attempts_are_required_RE_2_1e_RE_2_1f_ES_1_3a_C_04),
        TEST(sequence_and_key_are_required_RE_2_1g_RE_2_1h),
        TEST(tenant_project_environment_are_required_RE_2_1i_WE_1f),
        TEST(event_id_and_times_are_required_ES_A1a_C_26_WE_5a),
        TEST(stepId_is_on_step_events_only_RE_2_1b),
        TEST(foreign_members_of_an_envelope_are_refused_those_of_a_payload_kept_RE_4_3a),
        TEST(invalid_events_are_not_encoded_ES_A2c_ES_A2d),
        TEST(records_have_a_largest_size_ES_2e),
    };
    return test_main("contract_events", tests, ARRAY_COUNT(tests), argc, argv);
}
