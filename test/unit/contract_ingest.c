// Events that workers report: older names, and what is not theirs to tell.
#include "support/contract_kit.h"

static struct json event_of(const char *type, const char *more)
{
    char text[1024];
    struct json event;
    CHECK(snprintf(text, sizeof(text),
                   "{\"event_id\":\"01JH\",\"execution_id\":\"run-001\",\"event_type\":\"%s\","
                   "\"step_run_id\":\"step:fetch:run:2\"%s}",
                   type, more) < (int)sizeof(text));
    struct str kept = arena_copy(&arena, str_from(text));
    CHECK(kept.ptr);
    CHECK_OK(json_parse(kept, &json_limits_default, &arena, &event, &err), &err);
    return event;
}

static struct ingested taken(const char *type, const char *more)
{
    open_contract();
    struct json event = event_of(type, more);
    struct ingested out;
    CHECK_OK(noetl_ingest(&event, false, &arena, &out, &err), &err);
    return out;
}

static void check_type(const char *type, const char *more, const char *want)
{
    CHECK_STR(taken(type, more).type, str_from(want));
}

static void refused(const char *type, const char *more, bool first_party, enum code code, const char *word)
{
    open_contract();
    struct json event = event_of(type, more);
    struct ingested out;
    struct error why = {0};
    CHECK_INT(noetl_ingest(&event, first_party, &arena, &out, &why), code);
    if (!str_starts(str_from(why.message), str_from(word)))
        test_fail(__FILE__, __LINE__, "\"%s\" is not %s", why.message, word);
}

#define OK_STATUS ",\"status\":\"success\",\"payload\":{\"result\":7}"
#define BAD_STATUS ",\"status\":\"error\""

static void tool_started_is_task_started_NX_4a(void)
{
    check_type("tool.started", "", "task.started");
}

static void tool_processed_is_task_done_or_failed_NX_4b(void)
{
    check_type("tool.processed", OK_STATUS, "task.done");
    check_type("tool.processed", BAD_STATUS, "task.failed");
}

static void retry_started_is_attempt_started_NX_4c(void)
{
    check_type("retry.started", "", "task.attempt.started");
}

static void retry_processed_is_attempt_done_or_failed_NX_4d(void)
{
    check_type("retry.processed", OK_STATUS, "task.attempt.done");
    check_type("retry.processed", BAD_STATUS, "task.attempt.failed");
}

// A worker that tells its stored result with the attempt leaves result.stored out: the reference is what came out.
static void a_reference_with_the_attempt_is_its_result_NX_3_7n1(void)
{
    struct json at;
    struct ingested out = taken("task.attempt.done", ",\"payload\":{\"outcome\":{\"status\":\"ok\",\"meta\":{\"rows\":3}},"
                                                     "\"result_ref\":{\"ref\":\"s3://b/k\"}}");
    CHECK_STR(json_text(json_at(&out.outcome, STR("result.ref"))), STR("s3://b/k"));
    CHECK_INT(json_integer(json_at(&out.outcome, STR("meta.rows")), 0), 3);
    out = taken("task.done", ",\"payload\":{\"result_ref\":{\"ref\":\"s3://b/k\"}}"); // as older workers wrote it
    CHECK_STR(json_text(json_at(&out.outcome, STR("result.ref"))), STR("s3://b/k"));
    out = taken("task.done", ",\"payload\":{\"outcome\":{\"status\":\"ok\",\"result\":7},\"result_ref\":{\"ref\":\"s3://b/k\"}}");
    at = *json_key(&out.outcome, "result");
    CHECK_INT(json_integer(&at, 0), 7); // what is here needs no reference
    out = taken("task.failed", BAD_STATUS ",\"payload\":{\"result_ref\":{\"ref\":\"s3://b/k\"}}");
    CHECK(!json_key(&out.outcome, "result"));
}

static void sinks_are_tasks_NX_4e(void)
{
    check_type("sink.started", "", "task.started");
    check_type("sink.done", OK_STATUS, "task.done");
    check_type("sink.processed", BAD_STATUS, "task.failed");
    check_type("sink.error", "", "task.failed");
}

static void cases_are_decisions_NX_4f(void)
{
    check_type("case.evaluated", ",\"payload\":{\"action\":{\"do\":\"retry\"}}", "policy.task.evaluated");
    refused("case.matched", "", false, E_DENIED, "EVENT_NOT_ALLOWED"); // where a token goes is the server's to decide
}

static void older_names_of_the_engine_itself_C_59(void)
{
    check_type("call.done", OK_STATUS, "task.done");
    check_type("call.error", BAD_STATUS, "task.failed");
    check_type("step.enter", "", "step.started");
    check_type("step.exit", OK_STATUS, "step.done");
    check_type("step.exit", BAD_STATUS, "step.failed");
    check_type("command.started", "", "step.started");
    check_type("command.started", ",\"iteration\":3", "loop.iteration.started");
    check_type("command.failed", ",\"iteration\":3", "loop.iteration.failed");
    check_type("loop.item", ",\"iteration\":3", "loop.iteration.started");
    refused("execution.cancelled", "", false, E_DENIED, "EVENT_NOT_ALLOWED");
}

static void our_own_components_must_use_the_new_names_NX_4g(void)
{
    static const char *const old[] = {"tool.started", "retry.started", "sink.done", "call.done", "case.evaluated"};
    for (size_t i = 0; i < ARRAY_COUNT(old); i++) refused(old[i], "", true, E_INVALID, "LEGACY_EVENT");
    struct json event = event_of("task.started", "");
    struct ingested out;
    CHECK_OK(noetl_ingest(&event, true, &arena, &out, &err), &err);
}

static void workers_do_not_start_steps_NX_5_3(void)
{
    refused("step.scheduled", "", false, E_DENIED, "EVENT_NOT_ALLOWED");
    refused("step.scheduled", "", true, E_DENIED, "EVENT_NOT_ALLOWED");
    refused("command.issued", "", false, E_DENIED, "EVENT_NOT_ALLOWED");
    refused("command.issued", ",\"iteration\":1", false, E_DENIED, "EVENT_NOT_ALLOWED");
}

static void what_is_the_servers_is_refused_and_what_is_the_workers_taken_NX_5_1_NX_5_2(void)
{
    static const char *const servers[] = {"playbook.execution.requested",
                                          "playbook.request.evaluated",
                                          "playbook.started",
                                          "playbook.paused",
                                          "playbook.finished",
                                          "playbook.processed",
                                          "workflow.started",
                                          "workflow.finished",
                                          "policy.admit.evaluated",
                                          "next.evaluated",
                                          "loop.started",
                                          "loop.iteration.scheduled",
                                          "loop.done"};
    static const char *const workers[] = {"step.started",
                                          "step.done",
                                          "step.failed",
                                          "task.started",
                                          "task.attempt.started",
                                          "policy.task.evaluated",
                                          "loop.iteration.started",
                                          "loop.iteration.done",
                                          "result.stored"};
    for (size_t i = 0; i < ARRAY_COUNT(servers); i++) refused(servers[i], "", false, E_DENIED, "EVENT_NOT_ALLOWED");
    for (size_t i = 0; i < ARRAY_COUNT(workers); i++) check_type(workers[i], "", workers[i]);
    refused("task.sang", "", false, E_INVALID, "EVENT_TYPE_UNKNOWN");
}

static void an_outcome_ends_an_attempt(void)
{
    struct ingested done = taken("task.done", ",\"payload\":{\"outcome\":{\"status\":\"ok\",\"result\":[1]}}");
    CHECK(done.ends);
    CHECK_STR(done.step, STR("fetch"));
    CHECK_INT(done.visit, 2);
    CHECK_INT(json_integer(json_at(&done.outcome, STR("result.0")), 0), 1);
    struct ingested failed = taken("task.attempt.failed", ",\"payload\":{\"error\":{\"kind\":\"http\"}}");
    CHECK(failed.ends);
    CHECK_STR(json_text(json_at(&failed.outcome, STR("status"))), STR("error"));
    CHECK_STR(json_text(json_at(&failed.outcome, STR("error.kind"))), STR("http"));
    struct ingested bare = taken("call.error", ",\"entity_type\":\"task\",\"entity_id\":\"page\"");
    CHECK_STR(bare.task, STR("page"));
    CHECK_STR(json_text(json_at(&bare.outcome, STR("error.kind"))), STR("unknown"));
    CHECK(!taken("task.started", "").ends);
    refused("task.done", ",\"payload\":{\"outcome\":{\"status\":\"error\"}}", false, E_INVALID, "SCHEMA_VALIDATION_FAILED");
}

static void an_event_must_say_what_it_is_about(void)
{
    open_contract();
    static const char *const bad[] = {
        "{}", "[]", "{\"event_id\":\"a\",\"execution_id\":\"b\"}",
        "{\"event_id\":\"a\",\"event_type\":\"task.started\",\"step_run_id\":\"step:a:run:1\"}",
        "{\"event_id\":\"a\",\"execution_id\":\"b\",\"event_type\":\"task.started\",\"step_run_id\":\"a\"}"};
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct json event;
        struct ingested out;
        struct error why = {0};
        CHECK_OK(json_parse(str_from(bad[i]), &json_limits_default, &arena, &event, &err), &err);
        CHECK_INT(noetl_ingest(&event, false, &arena, &out, &why), E_INVALID);
        CHECK(str_starts(str_from(why.message), STR("SCHEMA_VALIDATION_FAILED")));
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(tool_started_is_task_started_NX_4a),
        TEST(tool_processed_is_task_done_or_failed_NX_4b),
        TEST(retry_started_is_attempt_started_NX_4c),
        TEST(retry_processed_is_attempt_done_or_failed_NX_4d),
        TEST(a_reference_with_the_attempt_is_its_result_NX_3_7n1),
        TEST(sinks_are_tasks_NX_4e),
        TEST(cases_are_decisions_NX_4f),
        TEST(older_names_of_the_engine_itself_C_59),
        TEST(our_own_components_must_use_the_new_names_NX_4g),
        TEST(workers_do_not_start_steps_NX_5_3),
        TEST(what_is_the_servers_is_refused_and_what_is_the_workers_taken_NX_5_1_NX_5_2),
        TEST(an_outcome_ends_an_attempt),
        TEST(an_event_must_say_what_it_is_about),
    };
    return test_main("contract_ingest", tests, ARRAY_COUNT(tests), argc, argv);
}
