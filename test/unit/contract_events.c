// Records as their consumers see them: what each type holds, what its schema refuses, what a reader tolerates, and two
// golden logs byte for byte. Expected values are written out.
#include "contract_moments.h"

#include "base/error.h"
#include "schema/schema.h"

#include <stdio.h>

static struct arena arena;
static const struct contract *contract;
static struct error err;

static void open_contract(void)
{
    if (contract) return;
    arena_init(&arena, 64 * 1024, 64 << 20);
    CHECK_OK(contract_open(&arena, &contract, &err), &err);
}

static const char *const run_words[] = {
    "RunQueued",    "RunApproved",    "RunStarted",     "StepDelayed",      "StepStarted",  "StepCompleted",
    "StepFailed",   "StepSkipped",    "RunPaused",      "RunResumed",       "RunCompleted", "RunFailed",
    "RunCancelled", "SignalAccepted", "SignalRejected", "StepRedispatched",
};

static const char *const node_words[] = {
    "workflow_started", "workflow_completed", "workflow_failed", "workflow_cancelled",
    "node_started",     "node_completed",     "node_failed",     "node_skipped",
};

// ---- a story in both vocabularies

static const char plan_sha[] = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";

static struct start_facts story_start(const char *kind)
{
    struct start_facts start = {.document_sha256 = str_from(plan_sha), .document_kind = str_from(kind)};
    start.document_file = STR("plans/orders.json");
    start.schema_version = STR("v1.2");
    start.name = STR("orders");
    start.triggered_by = STR("ada");
    start.trigger_source = STR("manual");
    start.inputs = json_object();
    CHECK(json_put(&arena, &start.inputs, STR("day"), json_string(STR("2026-02-11"))));
    return start;
}

struct story {
    enum vocabulary vocabulary;
    struct seal seal;
    struct buf text;
    struct encoded last;
};

static void story_open(struct story *story, enum vocabulary vocabulary)
{
    open_contract();
    *story = (struct story){.vocabulary = vocabulary};
    buf_init(&story->text, 1 << 20);
}

static void tell(struct story *story, struct moment moment)
{
    story->seal.seq++;
    story->seal.persisted_ms = 1770829200000 + (int64_t)story->seal.seq * 10 + 5;
    CHECK(snprintf(story->seal.event_id, UUID_SIZE, "00000000-0000-4000-8000-%012d", (int)story->seal.seq) ==
          UUID_SIZE - 1);
    moment.at_ms = 1770829200000 + (int64_t)story->seal.seq * 10;
    moment.by = moment.by ? moment.by : moment_emitter(moment.kind);
    moment.logical = moment.logical ? moment.logical : 1;
    moment.engine = moment.engine ? moment.engine : 1;
    CHECK_OK(contract_encode(contract, story->vocabulary, &test_ids, &moment, &story->seal, &arena, &story->last, &err),
             &err);
    buf_add(&story->text, story->last.bytes);
    buf_byte(&story->text, '\n');
    story->seal.previous = story->last.hash;
}

static struct fault exit_fault(void)
{
    return (struct fault){.code = STR("EXIT_NONZERO"),
                          .message = STR("exit status 3"),
                          .category = STR("business"),
                          .detail = STR("no such table: \xc3\xb6rders\n"),
                          .retryable = true,
                          .has_exit = true,
                          .exit_code = 3};
}

static struct json one_artifact(void)
{
    struct json artifacts = json_array(), artifact = json_object();
    CHECK(json_put(&arena, &artifact, STR("kind"), json_string(STR("log-bundle"))));
    CHECK(json_put(&arena, &artifact, STR("uri"), json_string(STR("file:///var/lib/cairn/a/log.txt"))));
    CHECK(json_push(&arena, &artifacts, artifact));
    return artifacts;
}

#define SIGNAL_ID STR("7c9e6679-7425-40de-944b-e07fc1f90ae7")

static void golden_log_of_a_plan_RE_1_1a_RE_2_1g_RE_2_1h(void)
{
    struct story story;
    story_open(&story, VOCABULARY_RUN);
    struct start_facts start = story_start("plan");
    struct run_counts counts = {.total = 3, .completed = 2, .skipped = 1};
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
    tell(&story, (struct moment){.kind = MOMENT_RUN_COMPLETED, .counts = counts, .duration_ms = 1000});
    tell(&story, (struct moment){.kind = MOMENT_RUN_FAILED,
                                 .counts = counts,
                                 .duration_ms = 1000,
                                 .reason = STR("last"),
                                 .fault = exit_fault()});
    tell(&story, (struct moment){.kind = MOMENT_RUN_CANCELLED,
                                 .counts = counts,
                                 .duration_ms = 1000,
                                 .signal_id = SIGNAL_ID,
                                 .signal_type = STR("CANCEL"),
                                 .reason = STR("enough"),
                                 .actor = STR("ada")});
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
    struct run_counts counts = {.total = 3, .completed = 2, .skipped = 1};
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
    tell(&story, (struct moment){.kind = MOMENT_RUN_COMPLETED, .counts = counts, .duration_ms = 1000});
    tell(&story, (struct moment){.kind = MOMENT_RUN_FAILED,
                                 .counts = counts,
                                 .duration_ms = 1000,
                                 .reason = STR("test"),
                                 .fault = exit_fault()});
    tell(&story, (struct moment){.kind = MOMENT_RUN_CANCELLED,
                                 .counts = counts,
                                 .duration_ms = 1000,
                                 .signal_id = SIGNAL_ID,
                                 .signal_type = STR("CANCEL"),
                                 .reason = STR("enough")});
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

static void names_are_PascalCase_without_on_RE_1_2a(void)
{
    for (size_t kind = 1; kind < MOMENT_COUNT; kind++) {
        const char *word = moment_word((enum moment_kind)kind, VOCABULARY_RUN);
        if (!word) continue;
        CHECK(word[0] >= 'A' && word[0] <= 'Z');
        for (const char *c = word; *c; c++) CHECK((*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z'));
    }
}

// A record with one member replaced (or taken away, when value has type 0).
static struct json with_member(const struct json *record, const char *key, struct json value)
{
    struct json out = json_object();
    for (uint32_t i = 0; i < record->count; i++) {
        if (!str_is(record->members[i].key, key))
            CHECK(json_put(&arena, &out, record->members[i].key, record->members[i].value));
    }
    if (value.type) CHECK(json_put(&arena, &out, str_from(key), value));
    return out;
}

static struct json record_of(enum vocabulary vocabulary, struct moment moment)
{
    struct story story;
    story_open(&story, vocabulary);
    tell(&story, moment);
    buf_release(&story.text);
    struct json record;
    CHECK_OK(json_parse(story.last.bytes, &json_limits_default, &arena, &record, &err), &err);
    return record;
}

static void check_refused(enum vocabulary vocabulary, const struct json *record, const char *word_in_message)
{
    struct error why = {0};
    CHECK_INT(contract_check(contract, vocabulary, record, &why), E_SCHEMA);
    CHECK(strstr(why.message, "SCHEMA_VALIDATION_FAILED") != NULL);
    if (!strstr(why.message, word_in_message))
        test_fail(__FILE__, __LINE__, "\"%s\" does not name %s", why.message, word_in_message);
}

static void names_with_on_are_refused_RE_1_2a(void)
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

static void tenant_project_environment_are_required_RE_2_1i(void)
{
    check_required("tenantId");
    check_required("projectId");
    check_required("environmentId");
}

static void event_id_and_times_are_required_ES_A1a_C_26(void)
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
    moment.value = json_number(STR("1e999"));
    CHECK_INT(contract_encode(contract, VOCABULARY_RUN, &test_ids, &moment, &seal, &arena, &encoded, &why), E_INVALID);
}

static void playbooks_have_words_and_no_codec_yet(void)
{
    open_contract();
    CHECK_TEXT(moment_word(MOMENT_STEP_STARTED, VOCABULARY_NOETL), "step.started");
    struct moment moment = {.kind = MOMENT_STEP_STARTED, .step = STR("a"), .logical = 1, .engine = 1};
    struct seal seal = {.seq = 1};
    struct encoded encoded;
    struct json shown;
    CHECK_INT(contract_encode(contract, VOCABULARY_NOETL, &test_ids, &moment, &seal, &arena, &encoded, &err),
              E_UNSUPPORTED);
    CHECK_INT(contract_decode(VOCABULARY_NOETL, STR("{}"), &arena, &moment, &seal, NULL, &err), E_UNSUPPORTED);
    CHECK_INT(contract_show(contract, VOCABULARY_NOETL, &test_ids, &moment, &seal, &arena, &shown, &err),
              E_UNSUPPORTED);
    CHECK_INT(contract_check(contract, VOCABULARY_NOETL, &shown, &err), E_UNSUPPORTED);
}

// ---- reading

static void occurredAt_is_read_for_emittedAt_C_03(void)
{
    struct json record = record_of(VOCABULARY_RUN, (struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a")});
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

static void node_skipped_says_why_EL_2i_C_25(void)
{
    static const struct {
        const char *code, *word;
    } reasons[] = {
        {SKIP_TRIGGER_RULE, "trigger_rule"},
        {SKIP_CONDITION_FALSE, "when_condition"},
        {SKIP_DEPENDENCY_FAILED, "dependency_failed"},
        {SKIP_CONDITION_BROKEN, "when_condition_parse_error"},
        {SKIP_OPERATOR, "operator_skip"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(reasons); i++) {
        struct json payload = payload_of((struct moment){
            .kind = MOMENT_STEP_SKIPPED, .step = STR("x"), .reason = str_from(reasons[i].code), .detail = STR("why")});
        check_member(&payload, "reason", str_from(reasons[i].word));
        check_member(&payload, strstr(reasons[i].word, "when") ? "expr" : "detail", STR("why"));
    }
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
    moment = (struct moment){.kind = MOMENT_RUN_STARTED, .logical = 1, .engine = 1};
    CHECK_INT(contract_show(contract, VOCABULARY_RUN, &test_ids, &moment, &seal, &arena, &shown, &err), E_INVALID);
    CHECK_INT(contract_show(contract, VOCABULARY_NODES, &test_ids, &moment, &seal, &arena, &shown, &err), E_INVALID);
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
        TEST(golden_log_of_a_plan_RE_1_1a_RE_2_1g_RE_2_1h),
        TEST(golden_log_of_a_workflow_EL_2a_C_63),
        TEST(every_record_names_its_predecessor_I7),
        TEST(schemas_of_all_types_are_shipped_and_loaded_ES_A2b_ES_A0),
        TEST(catalogue_has_these_words_ES_A2a_C_06),
        TEST(names_are_PascalCase_without_on_RE_1_2a),
        TEST(names_with_on_are_refused_RE_1_2a),
        TEST(a_ninth_type_is_refused_C_05_EL_2a),
        TEST(runId_is_required_RE_2_1a),
        TEST(planId_is_required_RE_2_1c),
        TEST(planVersion_is_required_RE_2_1d),
        TEST(attempts_are_required_RE_2_1e_RE_2_1f_ES_1_3a_C_04),
        TEST(sequence_and_key_are_required_RE_2_1g_RE_2_1h),
        TEST(tenant_project_environment_are_required_RE_2_1i),
        TEST(event_id_and_times_are_required_ES_A1a_C_26),
        TEST(stepId_is_on_step_events_only_RE_2_1b),
        TEST(foreign_members_of_an_envelope_are_refused_those_of_a_payload_kept_RE_4_3a),
        TEST(invalid_events_are_not_encoded_ES_A2c_ES_A2d),
        TEST(records_have_a_largest_size_ES_2e),
        TEST(playbooks_have_words_and_no_codec_yet),
        TEST(occurredAt_is_read_for_emittedAt_C_03),
        TEST(unknown_types_are_read_ES_1_5_6a_ES_7a),
        TEST(bytes_that_are_no_record_are_corrupt),
        TEST(stepFailed_without_willRetry_is_final_C_34),
        TEST(workflow_started_says_whose_run_it_is_EL_2b_C_64),
        TEST(workflow_completed_EL_2c),
        TEST(workflow_failed_EL_2d),
        TEST(workflow_cancelled_EL_2e),
        TEST(node_started_EL_2f),
        TEST(node_started_again_after_a_crash_EL_2f_C_22),
        TEST(node_completed_records_the_output_EL_2g),
        TEST(node_failed_records_the_error_and_counts_attempts_EL_2h_C_66),
        TEST(node_skipped_says_why_EL_2i_C_25),
        TEST(one_moment_is_shown_in_the_words_of_another_contract_C_52),
        TEST(statuses_have_these_names_RE_3h_ES_1_4b_C_31),
        TEST(names_of_moments_vocabularies_and_emitters_ES_1_2b_ES_1_2d),
    };
    return test_main("contract_events", tests, ARRAY_COUNT(tests), argc, argv);
}
