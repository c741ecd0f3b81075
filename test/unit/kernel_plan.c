// Plans in the kernel: order, retries, conditions, failures, holds, recovery.
#include "support/story.h"

#define PLAN(steps)                                                                                                    \
    "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"steps\":[" steps "]}"

static void linear_plan_runs_in_declaration_order_RE_1_1a(void)
{
    struct story s;
    story_open(&s, PLAN("{\"stepId\":\"a\",\"kind\":\"noop\"},{\"stepId\":\"b\",\"kind\":\"noop\"}"));
    story_start(&s);
    story_expect(&s, "[0] RUN_QUEUED\n[0] RUN_STARTED\n[0] STEP_STARTED a 1.1\n");
    s.now = 5;
    story_done(&s, "a", NULL);
    story_expect(&s, "[5] STEP_COMPLETED a 1.1\n[5] STEP_STARTED b 1.1\n");
    story_done(&s, "b", NULL);
    story_expect(&s, "[5] STEP_COMPLETED b 1.1\n[5] RUN_COMPLETED\n");
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

#define DIAMOND                                                                                                        \
    PLAN("{\"stepId\":\"a\",\"kind\":\"noop\"},{\"stepId\":\"b\",\"kind\":\"noop\",\"dependsOn\":[\"a\"]},"            \
         "{\"stepId\":\"c\",\"kind\":\"noop\",\"dependsOn\":[\"a\"]},{\"stepId\":\"d\",\"kind\":\"noop\","             \
         "\"dependsOn\":[\"b\",\"c\"]}")

static void diamond_overlaps_its_middle_ES_1_2_s11_WE_1g(void)
{
    struct story s;
    story_open(&s, DIAMOND);
    story_start(&s);
    story_done(&s, "a", NULL);
    CHECK(story_waits(&s, EFFECT_EXECUTE, "b") && story_waits(&s, EFFECT_EXECUTE, "c"));
    story_done(&s, "c", NULL);
    CHECK(!story_waits(&s, EFFECT_EXECUTE, "d"));
    story_done(&s, "b", NULL);
    story_done(&s, "d", NULL);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

static void failed_step_lets_siblings_finish_then_fails_the_run_C_35_RE_3e(void)
{
    struct story s;
    story_open(&s, DIAMOND);
    story_start(&s);
    story_done(&s, "a", NULL);
    buf_clear(&s.told);
    story_fail(&s, "b", "EXIT_NONZERO", true);
    story_expect(&s, "[0] STEP_FAILED b 1.1 EXIT_NONZERO\n");
    story_done(&s, "c", NULL);
    story_expect(&s, "[0] STEP_COMPLETED c 1.1\n[0] STEP_SKIPPED d DEPENDENCY_FAILED\n[0] RUN_FAILED EXIT_NONZERO\n");
    story_close(&s);
}

static void failing_plan_starts_no_unrelated_work_but_runs_handlers_C_35(void)
{
    struct story s;
    story_open(&s,
               PLAN("{\"stepId\":\"a\",\"kind\":\"noop\",\"dependsOn\":[]},{\"stepId\":\"x\",\"kind\":\"noop\","
                    "\"dependsOn\":[]},"
                    "{\"stepId\":\"y\",\"kind\":\"noop\",\"dependsOn\":[\"x\"]},"
                    "{\"stepId\":\"cleanup\",\"kind\":\"noop\",\"dependsOn\":[\"a\"],\"triggerRule\":\"all_done\"}"));
    story_start(&s);
    buf_clear(&s.told);
    story_fail(&s, "a", "EXIT_NONZERO", true);
    story_expect(&s, "[0] STEP_FAILED a 1.1 EXIT_NONZERO\n[0] STEP_STARTED cleanup 1.1\n");
    story_done(&s, "x", NULL);
    story_expect(&s, "[0] STEP_COMPLETED x 1.1\n");
    story_done(&s, "cleanup", NULL);
    story_expect(&s, "[0] STEP_COMPLETED cleanup 1.1\n[0] RUN_FAILED EXIT_NONZERO\n");
    story_close(&s);
}

static void retry_raises_the_logical_attempt_and_waits_RE_5d_C_33(void)
{
    struct story s;
    story_open(&s, PLAN("{\"stepId\":\"a\",\"kind\":\"shell\",\"with\":{\"command\":\"false\"},\"retry\":{"
                        "\"maxAttempts\":3,\"delay\":\"100ms\",\"backoff\":\"exponential\"}}"));
    story_start(&s);
    buf_clear(&s.told);
    story_fail(&s, "a", "EXIT_NONZERO", true);
    story_expect(&s, "[0] ATTEMPT_FAILED a 1.1 EXIT_NONZERO\n[0] STEP_DELAYED a 2.1 due 100\n");
    story_timer(&s, "a");
    story_expect(&s, "[100] STEP_STARTED a 2.1\n");
    story_fail(&s, "a", "EXIT_NONZERO", true);
    story_expect(&s, "[100] ATTEMPT_FAILED a 2.1 EXIT_NONZERO\n[100] STEP_DELAYED a 3.1 due 300\n");
    story_timer(&s, "a");
    story_done(&s, "a", "\"third\"");
    story_expect(&s, "[300] STEP_STARTED a 3.1\n[300] STEP_COMPLETED a 3.1\n[300] RUN_COMPLETED\n");
    story_close(&s);
}

static void a_step_between_attempts_is_told_whatever_else_is_open_WE_2_1_2c_WE_2_1_2e(void)
{
    struct story s;
    story_open(&s, PLAN("{\"stepId\":\"a\",\"kind\":\"shell\",\"with\":{\"command\":\"false\"},\"dependsOn\":[],"
                        "\"retry\":{\"maxAttempts\":2,\"delay\":\"100ms\"}},"
                        "{\"stepId\":\"b\",\"kind\":\"noop\",\"dependsOn\":[]},"
                        "{\"stepId\":\"g\",\"kind\":\"approval\",\"dependsOn\":[]}"));
    story_start(&s);
    CHECK_TEXT(run_substatus(s.run), ""); // the approval is not all that is open
    story_fail(&s, "a", "EXIT_NONZERO", true);
    CHECK_TEXT(run_substatus(s.run), "RETRYING");
    story_done(&s, "b", NULL);
    CHECK_TEXT(run_substatus(s.run), "RETRYING");
    story_signal(&s, SIGNAL_PAUSE, NULL);
    CHECK_TEXT(run_substatus(s.run), "WAITING_APPROVAL"); // nothing is tried again before it is resumed
    story_signal(&s, SIGNAL_RESUME, NULL);
    CHECK_TEXT(run_substatus(s.run), "RETRYING");
    story_crash(&s);
    story_timer(&s, "a");
    CHECK_TEXT(run_substatus(s.run), "");
    story_done(&s, "a", NULL);
    CHECK_TEXT(run_substatus(s.run), "WAITING_APPROVAL");
    story_close(&s);
}

static void retry_stops_after_the_limit_RE_3e(void)
{
    struct story s;
    story_open(&s, PLAN("{\"stepId\":\"a\",\"kind\":\"noop\",\"retry\":{\"maxAttempts\":2,\"delay\":0}}"));
    story_start(&s);
    buf_clear(&s.told);
    story_fail(&s, "a", "X", true);
    story_fail(&s, "a", "X", true);
    story_expect(&s, "[0] ATTEMPT_FAILED a 1.1 X\n[0] STEP_STARTED a 2.1\n[0] STEP_FAILED a 2.1 X\n[0] RUN_FAILED X\n");
    story_close(&s);
}

static void non_retryable_code_ends_at_once(void)
{
    struct story s;
    story_open(
        &s,
        PLAN("{\"stepId\":\"a\",\"kind\":\"noop\",\"retry\":{\"maxAttempts\":5,\"nonRetryable\":[\"BAD_INPUT\"]}}"));
    story_start(&s);
    buf_clear(&s.told);
    story_fail(&s, "a", "BAD_INPUT", true);
    story_expect(&s, "[0] STEP_FAILED a 1.1 BAD_INPUT\n[0] RUN_FAILED BAD_INPUT\n");
    story_close(&s);
}

static void false_condition_skips_and_the_run_completes_C_24(void)
{
    struct story s;
    story_open(&s, PLAN("{\"stepId\":\"a\",\"kind\":\"echo\",\"with\":{\"message\":\"x\"},\"dependsOn\":[]},{"
                        "\"stepId\":\"b\",\"kind\":\"noop\",\"dependsOn\":[\"a\"],\"when\":\"$a.output == 'yes'\"}"));
    story_start(&s);
    buf_clear(&s.told);
    story_done(&s, "a", "\"no\"");
    story_expect(&s, "[0] STEP_COMPLETED a 1.1\n[0] STEP_SKIPPED b CONDITION_FALSE\n[0] RUN_COMPLETED\n");
    story_close(&s);
}

static void condition_on_a_missing_field_fails_the_step(void)
{
    struct story s;
    story_open(&s, PLAN("{\"stepId\":\"a\",\"kind\":\"noop\",\"dependsOn\":[]},{\"stepId\":\"b\",\"kind\":\"noop\","
                        "\"dependsOn\":[\"a\"],\"when\":\"$a.output.n == '1'\"}"));
    story_start(&s);
    buf_clear(&s.told);
    story_done(&s, "a", "{\"m\":1}");
    story_expect(&s, "[0] STEP_COMPLETED a 1.1\n[0] STEP_STARTED b 1.1\n[0] STEP_FAILED b 1.1 "
                     "REFERENCE_NOT_AVAILABLE\n[0] RUN_FAILED REFERENCE_NOT_AVAILABLE\n");
    story_close(&s);
}

#define HOLD                                                                                                           \
    PLAN("{\"stepId\":\"a\",\"kind\":\"noop\",\"onStepFailure\":\"hold\",\"dependsOn\":[]},{\"stepId\":\"b\","         \
         "\"kind\":\"noop\",\"dependsOn\":[\"a\"]}")

static void held_failure_waits_for_retry_step_C_35_ES_1_3e(void)
{
    struct story s;
    story_open(&s, HOLD);
    story_start(&s);
    buf_clear(&s.told);
    story_fail(&s, "a", "X", true);
    story_expect(&s, "[0] STEP_FAILED a 1.1 X\n");
    CHECK_TEXT(run_substatus(s.run), "RETRYING");
    story_signal(&s, SIGNAL_RETRY_STEP, "a");
    story_expect(&s, "[0] SIGNAL_ACCEPTED RETRY_STEP\n[0] STEP_STARTED a 2.1\n");
    story_done(&s, "a", NULL);
    story_done(&s, "b", NULL);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

static void failure_that_was_made_good_is_not_the_cause_of_a_later_one_RE_3e(void)
{
    struct story s;
    story_open(&s, HOLD);
    story_start(&s);
    story_fail(&s, "a", "X", true);
    story_signal(&s, SIGNAL_RETRY_STEP, "a");
    story_done(&s, "a", NULL);
    story_fail(&s, "b", "Y", false);
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    CHECK_STR(s.run->failed_step, STR("b"));
    CHECK_STR(s.run->fault.code, STR("Y"));
    story_close(&s);
}

static void held_failure_can_be_skipped(void)
{
    struct story s;
    story_open(&s, HOLD);
    story_start(&s);
    story_fail(&s, "a", "X", true);
    buf_clear(&s.told);
    story_signal(&s, SIGNAL_SKIP_STEP, "a");
    story_expect(&s, "[0] SIGNAL_ACCEPTED SKIP_STEP\n[0] STEP_SKIPPED a OPERATOR_SKIP\n[0] STEP_SKIPPED b "
                     "TRIGGER_RULE\n[0] RUN_COMPLETED\n");
    story_close(&s);
}

static void crash_raises_the_engine_attempt_not_the_logical_RE_5c_ES_1_3b_ES_1_3e_WE_1e(void)
{
    struct story s;
    story_open(&s, DIAMOND);
    story_start(&s);
    story_done(&s, "a", NULL);
    buf_clear(&s.told);
    story_crash(&s);
    story_expect(&s, "[0] STEP_REDISPATCHED b 1.2\n[0] STEP_REDISPATCHED c 1.2\n");
    story_crash(&s);
    story_expect(&s, "[0] STEP_REDISPATCHED b 1.3\n[0] STEP_REDISPATCHED c 1.3\n");
    story_done(&s, "b", NULL);
    story_done(&s, "c", NULL);
    story_done(&s, "d", NULL);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

static void result_of_an_older_attempt_changes_nothing_I14(void)
{
    struct story s;
    story_open(&s, PLAN("{\"stepId\":\"a\",\"kind\":\"noop\"}"));
    story_start(&s);
    story_crash(&s);
    buf_clear(&s.told);
    struct input late = {.kind = INPUT_RESULT, .step = 0, .logical = 1, .engine = 1, .ok = true, .value = json_null()};
    story_step(&s, &late);
    story_expect(&s, "[0] LATE_RESULT a 1.1\n");
    story_done(&s, "a", NULL);
    story_expect(&s, "[0] STEP_COMPLETED a 1.2\n[0] RUN_COMPLETED\n");
    story_close(&s);
}

static void crash_between_attempts_keeps_the_count_and_the_delay(void)
{
    struct story s;
    story_open(&s, PLAN("{\"stepId\":\"a\",\"kind\":\"noop\",\"retry\":{\"maxAttempts\":2,\"delay\":\"1s\"}}"));
    story_start(&s);
    story_fail(&s, "a", "X", true);
    story_crash(&s);
    buf_clear(&s.told);
    story_timer(&s, "a");
    story_fail(&s, "a", "X", true);
    story_expect(&s, "[1000] STEP_STARTED a 2.1\n[1000] STEP_FAILED a 2.1 X\n[1000] RUN_FAILED X\n");
    story_close(&s);
}

static void wait_step_ends_by_its_timer_also_after_a_crash_I18(void)
{
    struct story s;
    story_open(&s, PLAN("{\"stepId\":\"w\",\"kind\":\"wait\",\"with\":{\"duration\":\"10s\"}}"));
    story_start(&s);
    story_expect(&s, "[0] RUN_QUEUED\n[0] RUN_STARTED\n[0] STEP_STARTED w 1.1 due 10000\n");
    s.now = 4000;
    story_crash(&s);
    story_timer(&s, "w");
    story_expect(&s, "[10000] STEP_COMPLETED w 1.1\n[10000] RUN_COMPLETED\n");
    story_close(&s);
}

#define WAITS                                                                                                          \
    "{\"schemaVersion\":\"v1.2\",\"planId\":\"p\",\"planVersion\":\"1\",\"steps\":["                                   \
    "{\"stepId\":\"g\",\"kind\":\"approval\",\"timeout\":\"2s\",\"dependsOn\":[],\"with\":{\"onTimeout\":\"approve\"}" \
    "},"                                                                                                               \
    "{\"stepId\":\"same\",\"kind\":\"wait\",\"timeout\":\"3s\",\"dependsOn\":[],\"with\":{\"duration\":\"3s\"}},"      \
    "{\"stepId\":\"cut\",\"kind\":\"wait\",\"timeout\":\"4s\",\"dependsOn\":[],\"with\":{\"duration\":\"1h\"}}]}"

static void timeout_of_a_step_ends_approvals_and_waits_too(void)
{
    struct story s;
    story_open(&s, WAITS);
    story_start(&s);
    buf_clear(&s.told);
    story_timer(&s, "g");
    story_expect(&s, "[2000] STEP_COMPLETED g 1.1\n");
    story_timer(&s, "same");
    story_expect(&s, "[3000] STEP_COMPLETED same 1.1\n");
    story_crash(&s);
    story_timer(&s, "cut");
    story_expect(&s, "[4000] STEP_FAILED cut 1.1 TIMEOUT\n[4000] RUN_FAILED TIMEOUT\n");
    story_close(&s);
}

static void ten_thousand_steps_cost_the_same_each(void)
{
    struct buf text;
    buf_init(&text, (size_t)8 << 20);
    buf_text(&text, "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"steps\":[");
    for (int i = 0; i < 3000; i++) buf_printf(&text, "%s{\"stepId\":\"s%d\",\"kind\":\"noop\"}", i ? "," : "", i);
    buf_text(&text, "]}");
    struct arena arena;
    arena_init(&arena, 4096, (size_t)64 << 20);
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &arena);
    struct program *program;
    struct error err = {0};
    CHECK_OK(program_load(buf_str(&text), STR("big"), NULL, &diagnostics, &program, &err), &err);
    struct run *run = run_new(program, &story_ids);
    struct start_facts facts = {.inputs = json_object()};
    struct input input = {.kind = INPUT_START, .start = &facts};
    struct outcome out = {.turn = &arena};
    struct run_holds holds = {0};
    CHECK_OK(kernel_step(run, &holds, &input, &story_env, &out, &err), &err);
    for (uint32_t i = 0; i < 3000; i++) {
        out = (struct outcome){.turn = &arena};
        input = (struct input){
            .kind = INPUT_RESULT, .step = i, .logical = 1, .engine = 1, .ok = true, .value = json_null()};
        CHECK_OK(kernel_step(run, &holds, &input, &story_env, &out, &err), &err);
        CHECK_INT(out.moment_count, 2);
    }
    CHECK_INT(run->status, RUN_STATUS_COMPLETED);
    run_free(run);
    holds_release(&holds);
    program_release(program);
    arena_release(&arena);
    buf_release(&text);
}

static void backoff_arithmetic_C_46(void)
{
    struct retry_policy policy = {.max_attempts = 9, .delay_ms = 100, .backoff = BACKOFF_NONE};
    CHECK_INT(retry_delay_ms(&policy, 1, 0), 100);
    CHECK_INT(retry_delay_ms(&policy, 7, 0), 100);
    policy.backoff = BACKOFF_LINEAR;
    CHECK_INT(retry_delay_ms(&policy, 3, 0), 300);
    policy.backoff = BACKOFF_EXPONENTIAL;
    CHECK_INT(retry_delay_ms(&policy, 1, 0), 100);
    CHECK_INT(retry_delay_ms(&policy, 4, 0), 800);
    policy.max_delay_ms = 500;
    CHECK_INT(retry_delay_ms(&policy, 4, 0), 500);
    CHECK_INT(retry_delay_ms(&policy, 4000000, 0), 500);
    policy.jitter = 1;
    CHECK_INT(retry_delay_ms(&policy, 4, UINT64_MAX / 2), 251);
    for (uint64_t r = 1; r != 0 && r < UINT64_MAX / 3; r *= 3)
        CHECK(retry_delay_ms(&policy, 4, r) >= 0 && retry_delay_ms(&policy, 4, r) <= 500);
}

// Asked of the state, once and again: the answer is an input as any other.
static void steps_without_a_tool_are_answered_by_the_kernel(void)
{
    struct story s;
    struct instant answer;
    struct error err = {0};
    story_open(&s, PLAN("{\"stepId\":\"a\",\"kind\":\"echo\",\"with\":{\"message\":{\"n\":1}}},"
                        "{\"stepId\":\"m\",\"kind\":\"merge\",\"dependsOn\":[\"a\"]},"
                        "{\"stepId\":\"x\",\"kind\":\"noop\",\"dependsOn\":[\"m\"],\"simulateError\":\"transient\"}"));
    story_start(&s);
    struct arena arena;
    arena_init(&arena, 4096, 1 << 20);
    CHECK_OK(kernel_instant(s.run, kernel_find(s.run, STR("a")), &story_env, &arena, &answer, &err), &err);
    CHECK(answer.ok && json_integer(json_key(&answer.value, "n"), 0) == 1);
    story_done(&s, "a", "{\"n\":1}");
    for (int i = 0; i < 2; i++) {
        CHECK_OK(kernel_instant(s.run, kernel_find(s.run, STR("m")), &story_env, &arena, &answer, &err), &err);
        CHECK(answer.ok && json_integer(json_at(&answer.value, STR("a.n")), 0) == 1);
    }
    story_done(&s, "m", "{\"a\":{\"n\":1}}");
    CHECK_OK(kernel_instant(s.run, kernel_find(s.run, STR("x")), &story_env, &arena, &answer, &err), &err);
    CHECK(!answer.ok && answer.fault.retryable);
    CHECK_STR(answer.fault.code, STR("SIMULATED_ERROR"));
    arena_release(&arena);
    story_close(&s);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(linear_plan_runs_in_declaration_order_RE_1_1a),
        TEST(steps_without_a_tool_are_answered_by_the_kernel),
        TEST(diamond_overlaps_its_middle_ES_1_2_s11_WE_1g),
        TEST(failed_step_lets_siblings_finish_then_fails_the_run_C_35_RE_3e),
        TEST(failing_plan_starts_no_unrelated_work_but_runs_handlers_C_35),
        TEST(retry_raises_the_logical_attempt_and_waits_RE_5d_C_33),
        TEST(a_step_between_attempts_is_told_whatever_else_is_open_WE_2_1_2c_WE_2_1_2e),
        TEST(retry_stops_after_the_limit_RE_3e),
        TEST(non_retryable_code_ends_at_once),
        TEST(false_condition_skips_and_the_run_completes_C_24),
        TEST(condition_on_a_missing_field_fails_the_step),
        TEST(held_failure_waits_for_retry_step_C_35_ES_1_3e),
        TEST(failure_that_was_made_good_is_not_the_cause_of_a_later_one_RE_3e),
        TEST(held_failure_can_be_skipped),
        TEST(crash_raises_the_engine_attempt_not_the_logical_RE_5c_ES_1_3b_ES_1_3e_WE_1e),
        TEST(result_of_an_older_attempt_changes_nothing_I14),
        TEST(crash_between_attempts_keeps_the_count_and_the_delay),
        TEST(wait_step_ends_by_its_timer_also_after_a_crash_I18),
        TEST(timeout_of_a_step_ends_approvals_and_waits_too),
        TEST(ten_thousand_steps_cost_the_same_each),
        TEST(backoff_arithmetic_C_46),
    };
    return test_main("kernel_plan", tests, ARRAY_COUNT(tests), argc, argv);
}
