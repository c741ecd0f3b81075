// A run as an OpenTelemetry trace: golden files, ids that follow from the run alone, and nothing about what has not ended.
#include "support/view_kit.h"

#include "view/trace.h"

#include <stdio.h>
#include <string.h>

static struct json trace(void)
{
    struct json json;
    CHECK(trace_json(&view, NULL, &arena, &json));
    return json;
}

static const struct json *spans_of(const struct json *json)
{
    const struct json *spans = json_at(json, STR("resourceSpans.0.scopeSpans.0.spans"));
    CHECK(spans);
    return spans;
}

static void check_golden(const char *name)
{
    struct json json = trace();
    struct buf text;
    buf_init(&text, 1 << 20);
    json_write_pretty(&text, &json);
    buf_byte(&text, '\n');
    CHECK(buf_ok(&text));
    test_golden(name, buf_str(&text));
    buf_release(&text);
}

static struct fault fault_of(const char *code, const char *category)
{
    return (struct fault){.code = str_from(code), .message = STR("why"), .category = str_from(category)};
}

static void retries_a_crash_and_a_skip(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "load", 1);
    struct moment failed = {.kind = MOMENT_ATTEMPT_FAILED,
                            .step = STR("load"),
                            .logical = 1,
                            .fault = {.code = STR("EXIT_NONZERO"),
                                      .message = STR("exit 3"),
                                      .has_exit = true,
                                      .exit_code = 3,
                                      .retryable = true}};
    tell(failed);
    tell_step(MOMENT_STEP_STARTED, "load", 2);
    tell((struct moment){.kind = MOMENT_STEP_REDISPATCHED, .step = STR("load"), .logical = 2, .engine = 2});
    tell((struct moment){.kind = MOMENT_STEP_COMPLETED, .step = STR("load"), .logical = 2, .engine = 2});
    tell((struct moment){
        .kind = MOMENT_STEP_SKIPPED, .step = STR("mail"), .reason = STR(SKIP_CONDITION_FALSE), .detail = STR("1 > 2")});
    tell_kind(MOMENT_RUN_COMPLETED);
    check_golden("trace/retries.json");
}

static void a_loop_a_child_and_a_failure(void)
{
    begin();
    struct start_facts start = {.document_sha256 = STR("ab12"),
                                .parent_run = STR("run-000"),
                                .parent_step = STR("nightly"),
                                .original_run = STR("run-9"),
                                .forked = true,
                                .forked_run = STR("run-8"),
                                .forked_seq = 4};
    tell((struct moment){.kind = MOMENT_RUN_STARTED, .start = &start});
    tell_step(MOMENT_STEP_STARTED, "poll", 1);
    for (uint32_t i = 1; i <= 2; i++) {
        tell((struct moment){.kind = MOMENT_ITERATION_STARTED, .step = STR("poll"), .logical = i});
        tell_step(MOMENT_STEP_STARTED, i == 1 ? "poll[1].fetch" : "poll[2].fetch", 1);
        tell_step(MOMENT_STEP_COMPLETED, i == 1 ? "poll[1].fetch" : "poll[2].fetch", 1);
    }
    tell_step(MOMENT_STEP_COMPLETED, "poll", 1);
    tell((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("child"), .run_ref = STR("run-002")});
    tell((struct moment){.kind = MOMENT_STEP_FAILED, .step = STR("child"), .fault = fault_of("TIMEOUT", "timeout")});
    tell((struct moment){.kind = MOMENT_RUN_FAILED, .reason = STR("child"), .fault = fault_of("TIMEOUT", "timeout")});
    check_golden("trace/loop.json");
}

static void what_has_not_ended_has_no_span(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    struct json json = trace();
    CHECK_INT(spans_of(&json)->count, 0);
    tell_step(MOMENT_STEP_COMPLETED, "a", 1);
    tell_step(MOMENT_STEP_STARTED, "b", 1);
    json = trace();
    CHECK_INT(spans_of(&json)->count, 1);
    tell((struct moment){.kind = MOMENT_RUN_CANCELLED, .reason = STR("enough")});
    json = trace();
    CHECK_INT(spans_of(&json)->count, 3); // the attempt that nobody saw ending, too
    struct buf text;
    buf_init(&text, 1 << 20);
    json_write(&text, &json);
    CHECK(strstr(text.ptr, "cairn.attempt.lost") && strstr(text.ptr, "cancellation"));
    buf_release(&text);
}

// The span of an attempt that waited for a slot begins with the work, as the snapshot and the lists say it.
static void a_wait_for_a_place_is_not_work(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell((struct moment){.kind = MOMENT_STEP_COMPLETED, .step = STR("a"), .logical = 1, .duration_ms = 200});
    const struct step_view *a = step("a");
    CHECK_INT(a->ended_ms - a->began_ms, 200);
    CHECK_INT(a->began_ms - a->started_ms, 800);
    CHECK_INT(a->attempts[0].began_ms, a->began_ms);
    struct json json = trace(), snapshot;
    const struct json *span = &spans_of(&json)->items[0];
    int64_t from, to;
    CHECK(str_int64(json_text(json_key(span, "startTimeUnixNano")), &from));
    CHECK(str_int64(json_text(json_key(span, "endTimeUnixNano")), &to));
    CHECK_INT(to - from, 200 * 1000000);
    CHECK(view_json(&view, &arena, &snapshot));
    CHECK_INT(json_integer(json_at(&snapshot, STR("steps.0.durationMs")), 0), 200);
    CHECK_INT(json_integer(json_at(&snapshot, STR("steps.0.attempts.0.durationMs")), 0), 200);
}

// Each span once, whatever was told before; what was told does not change when more is known.
static void spans_are_told_the_same_later(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell_step(MOMENT_ATTEMPT_FAILED, "a", 1);
    struct json early = trace();
    tell_step(MOMENT_STEP_STARTED, "a", 2);
    tell_step(MOMENT_STEP_COMPLETED, "a", 2);
    tell_kind(MOMENT_RUN_COMPLETED);
    struct json late = trace();
    const struct json *before = spans_of(&early), *after = spans_of(&late);
    CHECK_INT(before->count, 1);
    CHECK_INT(after->count, 3);
    CHECK(json_equal(&before->items[0], &after->items[1]));
}

static void ids_follow_from_the_run(void)
{
    char id[TRACE_ID_HEX + 1], hex[SHA256_HEX + 1], span[SPAN_ID_HEX + 1], other[SPAN_ID_HEX + 1];
    struct digest digest = sha256(STR("run-001"));
    digest_hex(&digest, hex);
    trace_id(STR("run-001"), id);
    CHECK_INT(strlen(id), 32);
    CHECK(memcmp(id, hex, 32) == 0);
    trace_run_span(STR("run-001"), span);
    CHECK_INT(strlen(span), 16);
    CHECK(memcmp(span, hex + 32, 16) == 0);
    digest = sha256(STR("run-001|poll[2].fetch|3|1"));
    digest_hex(&digest, hex);
    trace_step_span(STR("run-001"), STR("poll[2].fetch"), 3, 1, span);
    CHECK(memcmp(span, hex, 16) == 0);
    trace_step_span(STR("run-001"), STR("poll[2].fetch"), 3, 2, other);
    CHECK(strcmp(span, other) != 0);
    char parent[TRACEPARENT_SIZE], want[TRACEPARENT_SIZE + 8];
    trace_parent(STR("run-001"), STR("poll[2].fetch"), 3, 1, parent);
    snprintf(want, sizeof(want), "00-%s-%s-01", id, span);
    CHECK_TEXT(parent, want);
}

static void every_allocation_may_fail(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell_step(MOMENT_STEP_COMPLETED, "a", 1);
    tell_kind(MOMENT_RUN_COMPLETED);
    bool done = false;
    for (int64_t n = 1; !done; n++) {
        struct arena scarce;
        struct json json;
        arena_init(&scarce, 4096, 1 << 20);
        scarce.fail_in = n;
        done = trace_json(&view, NULL, &scarce, &json);
        arena_release(&scarce);
        CHECK(n < 5000);
    }
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(retries_a_crash_and_a_skip),    TEST(a_loop_a_child_and_a_failure), TEST(what_has_not_ended_has_no_span),
        TEST(spans_are_told_the_same_later), TEST(ids_follow_from_the_run),      TEST(every_allocation_may_fail),
        TEST(a_wait_for_a_place_is_not_work),
    };
    return test_main("view_trace", tests, ARRAY_COUNT(tests), argc, argv);
}
