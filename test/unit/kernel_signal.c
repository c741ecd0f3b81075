// Signals in the kernel: decided once, recorded before they act.
#include "support/story.h"

#define PLAN(steps)                                                                                                    \
    "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"steps\":[" steps "]}"
#define THREE                                                                                                          \
    PLAN("{\"stepId\":\"a\",\"kind\":\"noop\"},{\"stepId\":\"b\",\"kind\":\"noop\"},{\"stepId\":\"c\",\"kind\":"       \
         "\"noop\"}")

static void pause_holds_and_resume_goes_on_twice_C_23_I25(void)
{
    struct story s;
    story_open(&s, THREE);
    story_start(&s);
    buf_clear(&s.told);
    story_signal(&s, SIGNAL_PAUSE, NULL);
    story_expect(&s, "[0] SIGNAL_ACCEPTED PAUSE\n[0] RUN_PAUSED cycle 1\n");
    story_close(&s);
}

static void second_pause_cycle_has_its_own_number_C_23_RE_3b_RE_3c(void)
{
    struct story s;
    story_open(&s, THREE);
    story_start(&s);
    for (uint32_t cycle = 1; cycle <= 2; cycle++) {
        story_signal(&s, SIGNAL_PAUSE, NULL);
        CHECK_INT(s.run->status, RUN_STATUS_PAUSED);
        CHECK_INT(s.run->pause_cycle, cycle);
        CHECK_TEXT(run_substatus(s.run), "DRAINING");
        story_done(&s, cycle == 1 ? "a" : "b", NULL);
        CHECK_TEXT(run_substatus(s.run), "");
        CHECK(!story_waits(&s, EFFECT_EXECUTE, cycle == 1 ? "b" : "c"));
        story_signal(&s, SIGNAL_RESUME, NULL);
        CHECK_INT(s.run->status, RUN_STATUS_RUNNING);
        CHECK(story_waits(&s, EFFECT_EXECUTE, cycle == 1 ? "b" : "c"));
    }
    story_done(&s, "c", NULL);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

static void pause_withholds_the_end_of_the_run_C_15(void)
{
    struct story s;
    story_open(&s, PLAN("{\"stepId\":\"a\",\"kind\":\"noop\"}"));
    story_start(&s);
    story_signal(&s, SIGNAL_PAUSE, NULL);
    story_done(&s, "a", NULL);
    CHECK_INT(s.run->status, RUN_STATUS_PAUSED);
    buf_clear(&s.told);
    story_signal(&s, SIGNAL_RESUME, NULL);
    story_expect(&s, "[0] SIGNAL_ACCEPTED RESUME\n[0] RUN_RESUMED cycle 1\n[0] RUN_COMPLETED\n");
    story_close(&s);
}

static void pause_stops_due_retries_I25(void)
{
    struct story s;
    story_open(&s, PLAN("{\"stepId\":\"a\",\"kind\":\"noop\",\"retry\":{\"maxAttempts\":2,\"delay\":\"1s\"}}"));
    story_start(&s);
    story_fail(&s, "a", "X", true);
    story_signal(&s, SIGNAL_PAUSE, NULL);
    buf_clear(&s.told);
    story_timer(&s, "a");
    story_expect(&s, "");
    story_signal(&s, SIGNAL_RESUME, NULL);
    story_expect(&s, "[1000] SIGNAL_ACCEPTED RESUME\n[1000] RUN_RESUMED cycle 1\n[1000] STEP_STARTED a 2.1\n");
    story_close(&s);
}

static void crash_while_paused_starts_nothing_until_resume_I25(void)
{
    struct story s;
    story_open(&s, THREE);
    story_start(&s);
    story_signal(&s, SIGNAL_PAUSE, NULL);
    buf_clear(&s.told);
    story_crash(&s);
    story_expect(&s, "");
    CHECK(!story_waits(&s, EFFECT_EXECUTE, "a"));
    story_signal(&s, SIGNAL_RESUME, NULL);
    story_expect(&s, "[0] SIGNAL_ACCEPTED RESUME\n[0] RUN_RESUMED cycle 1\n[0] STEP_REDISPATCHED a 1.2\n");
    story_close(&s);
}

static void cancel_waits_for_what_is_in_flight_C_58_RE_3f(void)
{
    struct story s;
    story_open(&s, THREE);
    story_start(&s);
    buf_clear(&s.told);
    story_signal(&s, SIGNAL_CANCEL, NULL);
    story_expect(&s, "[0] SIGNAL_ACCEPTED CANCEL\n");
    CHECK(story_waits(&s, EFFECT_CANCEL, "a"));
    story_fail(&s, "a", "CANCELLED", true);
    story_expect(&s, "[0] STEP_FAILED a 1.1 CANCELLED\n[0] RUN_CANCELLED\n");
    story_close(&s);
}

static void cancel_survives_a_crash_and_ends_the_run(void)
{
    struct story s;
    story_open(&s, THREE);
    story_start(&s);
    story_signal(&s, SIGNAL_CANCEL, NULL);
    buf_clear(&s.told);
    story_crash(&s);
    story_expect(&s, "[0] STEP_FAILED a 1.1 CANCELLED\n[0] RUN_CANCELLED\n");
    story_close(&s);
}

static void cancel_of_a_paused_run_ES_1_2_s9(void)
{
    struct story s;
    story_open(&s, PLAN("{\"stepId\":\"w\",\"kind\":\"wait\",\"with\":{\"duration\":\"1h\"}}"));
    story_start(&s);
    story_signal(&s, SIGNAL_PAUSE, NULL);
    buf_clear(&s.told);
    story_signal(&s, SIGNAL_CANCEL, NULL);
    story_expect(&s, "[0] SIGNAL_ACCEPTED CANCEL\n[0] STEP_FAILED w 1.1 CANCELLED\n[0] RUN_CANCELLED\n");
    story_close(&s);
}

static void same_signal_id_is_decided_once_I22(void)
{
    struct story s;
    story_open(&s, THREE);
    story_start(&s);
    story_signal_id(&s, SIGNAL_PAUSE, NULL, "11111111-1111-4111-8111-111111111111");
    buf_clear(&s.told);
    story_signal_id(&s, SIGNAL_PAUSE, NULL, "11111111-1111-4111-8111-111111111111");
    story_expect(&s, "");
    CHECK(s.last_decision.duplicate);
    story_crash(&s);
    story_signal_id(&s, SIGNAL_PAUSE, NULL, "11111111-1111-4111-8111-111111111111");
    story_expect(&s, "");
    CHECK(s.last_decision.duplicate);
    story_close(&s);
}

static void signals_to_an_ended_run_are_refused_C_35(void)
{
    struct story s;
    story_open(&s, PLAN("{\"stepId\":\"a\",\"kind\":\"noop\"}"));
    story_start(&s);
    story_done(&s, "a", NULL);
    buf_clear(&s.told);
    story_signal(&s, SIGNAL_PAUSE, NULL);
    CHECK(!s.last_decision.accepted);
    CHECK_TEXT(s.last_decision.error_code, "RUN_TERMINAL");
    story_expect(&s, ""); // the log is closed; the decision record alone tells it
    story_signal(&s, SIGNAL_RETRY_RUN, NULL);
    CHECK(s.last_decision.accepted);
    story_close(&s);
}

static void wrong_state_is_refused_with_its_code(void)
{
    struct story s;
    story_open(&s, THREE);
    story_start(&s);
    static const struct {
        enum signal_type type;
        const char *step, *code;
    } cases[] = {
        {SIGNAL_RESUME, NULL, "RUN_NOT_PAUSED"},      {SIGNAL_RETRY_STEP, "a", "STEP_NOT_TERMINAL"},
        {SIGNAL_RETRY_STEP, "zzz", "STEP_NOT_FOUND"}, {SIGNAL_SKIP_STEP, "a", "STEP_NOT_TERMINAL"},
        {SIGNAL_APPROVE, "a", "NOT_AN_APPROVAL"},     {SIGNAL_APPROVE, NULL, "NOTHING_TO_ANSWER"},
        {SIGNAL_RETRY_RUN, NULL, "RUN_NOT_TERMINAL"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        story_signal(&s, cases[i].type, cases[i].step);
        CHECK(!s.last_decision.accepted);
        CHECK_TEXT(s.last_decision.error_code, cases[i].code);
    }
    story_done(&s, "a", NULL);
    story_signal(&s, SIGNAL_SKIP_STEP, "a");
    CHECK_TEXT(s.last_decision.error_code, "STEP_TERMINAL");
    story_close(&s);
}

#define GATE                                                                                                           \
    "{\"stepId\":\"gate\",\"kind\":\"approval\",\"with\":{\"message\":\"go?\",\"timeout\":\"10s\",\"onTimeout\":"      \
    "\"approve\"}}"

static void approval_is_answered_by_approve_only(void)
{
    struct story s;
    story_open(&s, PLAN(GATE));
    story_start(&s);
    CHECK_TEXT(run_substatus(s.run), "WAITING_APPROVAL");
    buf_clear(&s.told);
    story_signal(&s, SIGNAL_APPROVE, "gate");
    story_expect(&s, "[0] SIGNAL_ACCEPTED APPROVE\n[0] STEP_COMPLETED gate 1.1\n[0] RUN_COMPLETED\n");
    CHECK(json_key(kernel_value(s.run, 0), "approved")->boolean);
    story_close(&s);
}

static void approval_rejected_fails_the_step(void)
{
    struct story s;
    story_open(&s, PLAN(GATE));
    story_start(&s);
    buf_clear(&s.told);
    story_signal(&s, SIGNAL_REJECT, NULL);
    story_expect(
        &s,
        "[0] SIGNAL_ACCEPTED REJECT\n[0] STEP_FAILED gate 1.1 APPROVAL_REJECTED\n[0] RUN_FAILED APPROVAL_REJECTED\n");
    story_close(&s);
}

static void approval_is_answered_by_its_timeout(void)
{
    struct story s;
    story_open(&s, PLAN(GATE));
    story_start(&s);
    buf_clear(&s.told);
    story_timer(&s, "gate");
    story_expect(&s, "[10000] STEP_COMPLETED gate 1.1\n[10000] RUN_COMPLETED\n");
    story_close(&s);
}

static void run_that_needs_approval_waits_pending_ES_1_2b_ES_1_2_s2_C_15(void)
{
    struct story s;
    story_open(&s, "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\","
                   "\"requiresApproval\":true},\"steps\":[{\"stepId\":\"a\",\"kind\":\"noop\"}]}");
    story_start(&s);
    story_expect(&s, "[0] RUN_QUEUED\n");
    CHECK_INT(s.run->status, RUN_STATUS_PENDING);
    story_crash(&s);
    story_expect(&s, "");
    story_signal(&s, SIGNAL_APPROVE, NULL);
    story_expect(&s, "[0] SIGNAL_ACCEPTED APPROVE\n[0] RUN_APPROVED\n[0] RUN_STARTED\n[0] STEP_STARTED a 1.1\n");
    story_close(&s);
}

static void pending_run_can_be_cancelled_or_rejected_C_15(void)
{
    for (int i = 0; i < 2; i++) {
        struct story s;
        story_open(&s, "{\"metadata\":{\"planId\":\"p\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\","
                       "\"requiresApproval\":true},\"steps\":[{\"stepId\":\"a\",\"kind\":\"noop\"}]}");
        story_start(&s);
        story_signal(&s, i ? SIGNAL_CANCEL : SIGNAL_REJECT, NULL);
        CHECK_INT(s.run->status, RUN_STATUS_CANCELLED);
        story_close(&s);
    }
}

#define GATED_LOOP                                                                                                     \
    "name: t\nnodes:\n  - {id: first, bash: x}\n  - id: go\n    depends_on: [first]\n    loop_group:\n"                \
    "      max_iterations: 3\n      nodes:\n        - {id: gate, approval: {message: m, timeout: 10000}}\n"

static void signal_for_another_iteration_is_refused(void)
{
    struct story s;
    story_open(&s, GATED_LOOP);
    story_start(&s);
    story_signal(&s, SIGNAL_SKIP_STEP, "go[1].gate");
    CHECK_TEXT(s.last_decision.error_code, "STEP_NOT_RUNNING"); // the loop has not begun
    story_signal(&s, SIGNAL_SKIP_STEP, "go[0].gate");
    CHECK_TEXT(s.last_decision.error_code, "STEP_NOT_RUNNING");
    story_done(&s, "first", NULL);
    story_signal(&s, SIGNAL_APPROVE, "go[2].gate");
    CHECK_TEXT(s.last_decision.error_code, "STEP_NOT_RUNNING");
    story_signal(&s, SIGNAL_APPROVE, "go[1].gate");
    CHECK(s.last_decision.accepted);
    story_signal(&s, SIGNAL_APPROVE, "go[1].gate");
    CHECK_TEXT(s.last_decision.error_code, "STEP_TERMINAL"); // it must not answer the second gate
    story_signal(&s, SIGNAL_SKIP_STEP, "go[1].gate");
    CHECK_TEXT(s.last_decision.error_code, "STEP_TERMINAL");
    story_signal(&s, SIGNAL_SKIP_STEP, "go[2].gate");
    CHECK(s.last_decision.accepted);
    story_close(&s);
}

static void timer_of_an_earlier_iteration_is_not_of_this_one(void)
{
    struct story s;
    story_open(&s, GATED_LOOP);
    story_start(&s);
    story_done(&s, "first", NULL);
    s.now = 4000;
    story_signal(&s, SIGNAL_APPROVE, "go[1].gate");
    buf_clear(&s.told);
    story_timer(&s, "gate"); // of go[1].gate, at 10,000
    CHECK_INT(s.now, 10000);
    story_expect(&s, "");
    story_timer(&s, "gate");
    CHECK_INT(s.now, 14000);
    CHECK(strstr(s.told.ptr, "[14000] STEP_FAILED go[2].gate 1.1 APPROVAL_TIMEOUT\n"));
    story_close(&s);
}

static void looking_again_sets_no_second_timer(void)
{
    struct story s;
    story_open(&s, "name: t\nnodes:\n  - {id: gate, approval: {message: m, timeout: 10000}}\n");
    story_start(&s);
    struct input look = {.kind = INPUT_RECOVER, .timer = TIMER_LOOK};
    story_step(&s, &look);
    (void)story_take(&s, EFFECT_TIMER, "gate");
    CHECK(!story_waits(&s, EFFECT_TIMER, "gate"));
    story_close(&s);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(pause_holds_and_resume_goes_on_twice_C_23_I25),
        TEST(second_pause_cycle_has_its_own_number_C_23_RE_3b_RE_3c),
        TEST(pause_withholds_the_end_of_the_run_C_15),
        TEST(pause_stops_due_retries_I25),
        TEST(crash_while_paused_starts_nothing_until_resume_I25),
        TEST(cancel_waits_for_what_is_in_flight_C_58_RE_3f),
        TEST(cancel_survives_a_crash_and_ends_the_run),
        TEST(cancel_of_a_paused_run_ES_1_2_s9),
        TEST(same_signal_id_is_decided_once_I22),
        TEST(signals_to_an_ended_run_are_refused_C_35),
        TEST(wrong_state_is_refused_with_its_code),
        TEST(approval_is_answered_by_approve_only),
        TEST(approval_rejected_fails_the_step),
        TEST(approval_is_answered_by_its_timeout),
        TEST(run_that_needs_approval_waits_pending_ES_1_2b_ES_1_2_s2_C_15),
        TEST(pending_run_can_be_cancelled_or_rejected_C_15),
        TEST(signal_for_another_iteration_is_refused),
        TEST(timer_of_an_earlier_iteration_is_not_of_this_one),
        TEST(looking_again_sets_no_second_timer),
    };
    return test_main("kernel_signal", tests, ARRAY_COUNT(tests), argc, argv);
}
