// RunSnapshot as JSON, against its schema and against written-out values, and its hash.
#include "contract_moments.h"

#include "base/error.h"
#include "schema/schema.h"
#include "view/view.h"

static struct arena arena;
static struct run_view view;

static void begin(void)
{
    arena_release(&arena);
    arena_init(&arena, 64 * 1024, 64 << 20);
    CHECK(view_init(&view, &arena, &test_ids));
}

static void tell(struct moment moment)
{
    uint64_t seq = view.last_seq + 1;
    moment.logical = moment.logical ? moment.logical : 1;
    moment.engine = moment.engine ? moment.engine : 1;
    moment.at_ms = 1770829200000 + (int64_t)seq * 1000;
    CHECK(view_fold(&view, &moment, seq));
}

static struct json artifacts_of(const char *first, const char *second)
{
    const char *uris[] = {first, second};
    struct json artifacts = json_array();
    for (size_t i = 0; i < ARRAY_COUNT(uris) && uris[i]; i++) {
        struct json artifact = json_object();
        CHECK(json_put(&arena, &artifact, STR("uri"), json_string(str_from(uris[i]))));
        CHECK(json_put(&arena, &artifact, STR("kind"), json_string(STR("log"))));
        CHECK(json_push(&arena, &artifacts, artifact));
    }
    return artifacts;
}

static struct json snapshot(void)
{
    struct json json;
    CHECK(view_json(&view, &arena, &json));
    struct error err = {0};
    struct schema_set *set;
    const struct schema *schema;
    struct schema_fault fault;
    CHECK_OK(schema_set_embedded(&arena, &set, &err), &err);
    CHECK_OK(schema_compile(set, STR("run-snapshot.json"), &schema, &err), &err);
    if (!schema_valid(schema, &json, &fault))
        test_fail(__FILE__, __LINE__, "snapshot%s %s", fault.pointer, fault.message);
    return json;
}

static void check_text(const struct json *json, const char *path, const char *want)
{
    CHECK_STR(json_text(json_at(json, str_from(path))), str_from(want));
}

static void check_number(const struct json *json, const char *path, int64_t want)
{
    CHECK_INT(json_integer(json_at(json, str_from(path)), -1), want);
}

static void new_run_ES_1_4a(void)
{
    begin();
    struct json json = snapshot();
    check_text(&json, "runId", "run-001");
    check_text(&json, "status", "PENDING");
    check_number(&json, "lastEventSeq", 0);
    CHECK_INT(json_key(&json, "steps")->count, 0);
    CHECK_INT(json_key(&json, "artifacts")->count, 0);
    CHECK(!json_key(&json, "startedAt") && !json_key(&json, "engineRunRef") && !json_key(&json, "substatus"));
}

static void tell_story(void)
{
    begin();
    tell((struct moment){.kind = MOMENT_RUN_QUEUED});
    tell((struct moment){.kind = MOMENT_RUN_STARTED});
    tell((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("load")});
    struct fault fault = {
        .code = STR("EXIT_NONZERO"), .message = STR("exit 3"), .retryable = true, .has_exit = true, .exit_code = 3};
    tell((struct moment){.kind = MOMENT_ATTEMPT_FAILED, .step = STR("load"), .fault = fault});
    tell((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("load"), .logical = 2});
    tell((struct moment){.kind = MOMENT_STEP_COMPLETED,
                         .step = STR("load"),
                         .logical = 2,
                         .value = json_int(7),
                         .artifacts = artifacts_of("file:///a", "file:///b")});
    tell((struct moment){.kind = MOMENT_STEP_COMPLETED,
                         .step = STR("big"),
                         .has_blob = true,
                         .blob = sha256(STR("hello\n")),
                         .blob_size = 6,
                         .artifacts = artifacts_of("file:///b", "file:///c"),
                         .run_ref = STR("run-000")});
    tell((struct moment){
        .kind = MOMENT_STEP_SKIPPED, .step = STR("mail"), .reason = STR(SKIP_CONDITION_FALSE), .detail = STR("1 > 2")});
}

static void finished_run_ES_1_4a_ES_1_4b_ES_A1_r2_C_21(void)
{
    tell_story();
    tell((struct moment){.kind = MOMENT_RUN_COMPLETED});
    struct json json = snapshot();
    check_text(&json, "status", "COMPLETED");
    check_text(&json, "engineRunRef", "cairn://local/plan_xyz/run-001/run-001");
    check_text(&json, "startedAt", "2026-02-11T17:00:02.000Z");
    check_text(&json, "completedAt", "2026-02-11T17:00:09.000Z");
    check_number(&json, "totalDurationMs", 7000);
    check_number(&json, "lastEventSeq", 9);
    check_number(&json, "completedSteps", 2);
    check_number(&json, "skippedSteps", 1);
    check_number(&json, "failedSteps", 0);
    check_text(&json, "steps.0.stepId", "load");
    check_text(&json, "steps.0.status", "SUCCESS");
    check_number(&json, "steps.0.logicalAttemptId", 2);
    check_number(&json, "steps.0.engineAttemptId", 1);
    check_number(&json, "steps.0.result", 7);
    check_text(&json, "steps.0.attempts.0.error.code", "EXIT_NONZERO");
    check_number(&json, "steps.0.attempts.0.error.exitCode", 3);
    CHECK_INT(json_at(&json, STR("steps.0.attempts"))->count, 2);
    check_text(&json, "steps.1.resultRef.sha256", "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
    check_text(&json, "steps.1.reusedFrom", "run-000");
    check_text(&json, "steps.2.skipReason", "CONDITION_FALSE");
    check_text(&json, "steps.2.skipDetail", "1 > 2");
    CHECK(!json_at(&json, STR("steps.0.error")));
    CHECK(!json_key(&json, "stale")->boolean);
}

static void artifacts_of_all_steps_are_united_ES_1_5_3g(void)
{
    tell_story();
    tell((struct moment){.kind = MOMENT_RUN_COMPLETED});
    struct json json = snapshot();
    CHECK_INT(json_key(&json, "artifacts")->count, 3);
    check_text(&json, "artifacts.0.uri", "file:///a");
    check_text(&json, "artifacts.1.uri", "file:///b");
    check_text(&json, "artifacts.2.uri", "file:///c");
}

static void failed_run_tells_its_root_cause_ES_1_5_3h_C_12(void)
{
    tell_story();
    tell((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("last")});
    tell((struct moment){.kind = MOMENT_STEP_FAILED,
                         .step = STR("last"),
                         .fault = {.code = STR("TIMEOUT"), .message = STR("5s"), .category = STR("timeout")}});
    tell((struct moment){
        .kind = MOMENT_RUN_FAILED, .reason = STR("last"), .fault = {.code = STR("TIMEOUT"), .message = STR("5s")}});
    struct json json = snapshot();
    check_text(&json, "status", "FAILED");
    check_text(&json, "rootCause.stepId", "last");
    check_text(&json, "rootCause.error.code", "TIMEOUT");
    check_number(&json, "failedSteps", 1);
    check_text(&json, "steps.3.error.category", "timeout");
}

static void draining_and_flags_are_shown_ES_6_5_C_21(void)
{
    begin();
    tell((struct moment){.kind = MOMENT_RUN_STARTED});
    tell((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a"), .due_ms = 1770829260000});
    tell((struct moment){.kind = MOMENT_RUN_PAUSED, .reason = STR("lunch")});
    tell((struct moment){.kind = MOMENT_RUN_COMPLETED});
    view.stale = true;
    struct json json = snapshot();
    check_text(&json, "status", "PAUSED");
    check_text(&json, "substatus", "DRAINING");
    check_text(&json, "pauseReason", "lunch");
    check_text(&json, "steps.0.dueAt", "2026-02-11T17:01:00.000Z");
    check_number(&json, "runningSteps", 1);
    CHECK(json_key(&json, "inconsistent")->boolean);
    CHECK(json_key(&json, "stale")->boolean);
}

// SHA-256 of {"completedAt":"2026-02-11T17:00:09.000Z","paused":false,"runId":"run-001","startedAt":...,"status":"COMPLETED",
// "steps":{"big":{...},"load":{...},"mail":{...}}}: written out, so that the canonical form is pinned too.
static void hash_of_the_logical_state_C_21(void)
{
    tell_story();
    tell((struct moment){.kind = MOMENT_RUN_COMPLETED});
    static const char state[] =
        "{\"completedAt\":\"2026-02-11T17:00:09.000Z\",\"paused\":false,\"runId\":\"run-001\",\"startedAt\":\"2026-02-"
        "11T17:00:02.000Z\","
        "\"status\":\"COMPLETED\",\"steps\":{\"big\":{\"attempts\":1,\"completedAt\":\"2026-02-11T17:00:07.000Z\","
        "\"status\":\"SUCCESS\"},"
        "\"load\":{\"attempts\":2,\"completedAt\":\"2026-02-11T17:00:06.000Z\",\"startedAt\":\"2026-02-11T17:00:03."
        "000Z\",\"status\":"
        "\"SUCCESS\"},"
        "\"mail\":{\"attempts\":0,\"completedAt\":\"2026-02-11T17:00:08.000Z\",\"status\":\"SKIPPED\"}}}";
    struct digest got, want = sha256(STR(state));
    CHECK(view_hash(&view, &arena, &got));
    CHECK(digest_eq(&got, &want));
    char hex[SHA256_HEX + 1];
    digest_hex(&got, hex);
    struct json json = snapshot();
    check_text(&json, "hash", hex);
}

static void snapshot_is_a_value_of_its_own_ES_1_4c(void)
{
    tell_story();
    struct json before = snapshot();
    struct buf first, again;
    buf_init(&first, 1 << 20);
    buf_init(&again, 1 << 20);
    json_canon(&first, &before);
    tell((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("last")});
    tell((struct moment){.kind = MOMENT_RUN_CANCELLED, .reason = STR("enough")});
    json_canon(&again, &before);
    CHECK_STR(buf_str(&again), buf_str(&first));
    buf_release(&first);
    buf_release(&again);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(new_run_ES_1_4a),
        TEST(finished_run_ES_1_4a_ES_1_4b_ES_A1_r2_C_21),
        TEST(artifacts_of_all_steps_are_united_ES_1_5_3g),
        TEST(failed_run_tells_its_root_cause_ES_1_5_3h_C_12),
        TEST(draining_and_flags_are_shown_ES_6_5_C_21),
        TEST(hash_of_the_logical_state_C_21),
        TEST(snapshot_is_a_value_of_its_own_ES_1_4c),
    };
    return test_main("view_snapshot", tests, ARRAY_COUNT(tests), argc, argv);
}
