// Steps in the fold of a view: their states, attempts, and what they make of the run.
#include "support/view_kit.h"

// ---- states of a step

static void step_started_ES_1_2d_ES_1_5_3c(void)
{
    started();
    tell((struct moment){
        .kind = MOMENT_STEP_STARTED, .step = STR("a"), .due_ms = 1770829260000, .run_ref = STR("run-child")});
    check_step("a", STEP_STATUS_RUNNING);
    CHECK_INT(step("a")->started_ms, 1770829202000);
    CHECK_INT(step("a")->due_ms, 1770829260000);
    CHECK_STR(step("a")->child_run, STR("run-child"));
    CHECK_INT(view.running_count, 1);
    CHECK_INT(step("a")->attempt_count, 1);
}

static void step_completed_ES_1_2e_ES_1_5_3d(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    struct json artifacts = json_array();
    CHECK(json_push(&arena, &artifacts, json_string(STR("x"))));
    tell((struct moment){.kind = MOMENT_STEP_COMPLETED,
                         .step = STR("a"),
                         .value = json_int(7),
                         .artifacts = artifacts,
                         .actor = STR("ada"),
                         .engine = 2});
    check_step("a", STEP_STATUS_SUCCESS);
    CHECK_INT(step("a")->value.integer, 7);
    CHECK_INT(step("a")->artifacts.count, 1);
    CHECK_INT(step("a")->ended_ms, 1770829203000);
    CHECK_INT(step("a")->engine, 2);
    CHECK_STR(step("a")->actor, STR("ada"));
    CHECK(step("a")->attempts[0].ended);
    CHECK_INT(view.success_count, 1);
    CHECK_INT(view.running_count, 0);
}

static void step_failed_ES_1_2f_ES_1_5_3e(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell_step(MOMENT_STEP_FAILED, "a", 1);
    check_step("a", STEP_STATUS_FAILED);
    CHECK_STR(step("a")->fault.code, STR("TIMEOUT"));
    CHECK_STR(step("a")->fault.message, STR("too slow"));
    CHECK(step("a")->fault.retryable);
    CHECK_INT(view.failed_count, 1);
    check_status(RUN_STATUS_RUNNING);
}

static void step_skipped_ES_1_2g_C_06(void)
{
    started();
    tell((struct moment){
        .kind = MOMENT_STEP_SKIPPED, .step = STR("a"), .reason = STR(SKIP_CONDITION_FALSE), .detail = STR("1 > 2")});
    check_step("a", STEP_STATUS_SKIPPED);
    CHECK_STR(step("a")->skip_reason, STR("CONDITION_FALSE"));
    CHECK_STR(step("a")->skip_detail, STR("1 > 2"));
    CHECK_INT(view.skipped_count, 1);
}

static void step_delayed_sets_only_its_time_C_06_ES_3c(void)
{
    started();
    tell((struct moment){.kind = MOMENT_STEP_DELAYED, .step = STR("a"), .due_ms = 1770829260000});
    check_step("a", STEP_STATUS_PENDING);
    CHECK_INT(step("a")->due_ms, 1770829260000);
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    CHECK_INT(step("a")->due_ms, 0);
    tell((struct moment){.kind = MOMENT_STEP_DELAYED, .step = STR("a"), .due_ms = 1770829260000});
    CHECK_INT(step("a")->due_ms, 0);
}

static void attempts_are_listed_RE_5d_ES_1_3f(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell_step(MOMENT_ATTEMPT_FAILED, "a", 1);
    check_step("a", STEP_STATUS_FAILED);
    CHECK(step("a")->retrying);
    CHECK_INT(step("a")->failed_seq, 0);
    tell((struct moment){.kind = MOMENT_STEP_DELAYED, .step = STR("a"), .logical = 2, .due_ms = 1770829260000});
    CHECK_INT(step("a")->due_ms, 1770829260000);
    tell_step(MOMENT_STEP_STARTED, "a", 2);
    check_step("a", STEP_STATUS_RUNNING);
    CHECK(!step("a")->retrying);
    CHECK_INT(step("a")->ended_ms, 0);
    CHECK_INT(step("a")->started_ms, 1770829202000);
    tell_step(MOMENT_STEP_COMPLETED, "a", 2);
    check_step("a", STEP_STATUS_SUCCESS);
    CHECK_INT(step("a")->logical, 2);
    CHECK_INT(step("a")->attempt_count, 2);
    CHECK_STR(step("a")->attempts[0].fault.code, STR("TIMEOUT"));
    CHECK_INT(step("a")->attempts[0].ended_ms, 1770829203000);
    CHECK_INT(step("a")->attempts[1].fault.code.len, 0);
    CHECK_INT(step("a")->fault.code.len, 0);
    CHECK_INT(view.failed_count, 0);
}

static void redispatch_is_a_physical_attempt_of_the_same_logical_one_RE_5c_ES_1_3b_ES_1_3e(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell((struct moment){.kind = MOMENT_STEP_REDISPATCHED, .step = STR("a"), .engine = 2});
    tell((struct moment){.kind = MOMENT_STEP_REDISPATCHED, .step = STR("a"), .engine = 3});
    tell((struct moment){.kind = MOMENT_STEP_REDISPATCHED, .step = STR("a"), .engine = 3});
    check_step("a", STEP_STATUS_RUNNING);
    CHECK_INT(step("a")->logical, 1);
    CHECK_INT(step("a")->engine, 3);
    CHECK_INT(step("a")->attempt_count, 3);
    tell((struct moment){.kind = MOMENT_STEP_COMPLETED, .step = STR("a"), .engine = 3});
    check_step("a", STEP_STATUS_SUCCESS);
    CHECK(!step("a")->attempts[0].ended && step("a")->attempts[2].ended);
}

static void reused_results_need_no_start_C_22(void)
{
    started();
    tell((struct moment){
        .kind = MOMENT_STEP_COMPLETED, .step = STR("a"), .run_ref = STR("run-000"), .value = json_null()});
    check_step("a", STEP_STATUS_SUCCESS);
    CHECK_STR(step("a")->reused_from, STR("run-000"));
    CHECK(json_is(&step("a")->value, JSON_NULL));
}

static void a_settled_step_does_not_go_back_C_18(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell_step(MOMENT_STEP_COMPLETED, "a", 1);
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    check_step("a", STEP_STATUS_SUCCESS);
    check_ignored((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a"), .logical = 2});
    view.inconsistent = false;
    check_ignored((struct moment){.kind = MOMENT_STEP_FAILED, .step = STR("a"), .fault = {.code = STR("X")}});
    view.inconsistent = false;
    check_ignored((struct moment){.kind = MOMENT_STEP_SKIPPED, .step = STR("a")});
}

static void one_outcome_per_attempt_C_34(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell_step(MOMENT_STEP_FAILED, "a", 1);
    check_ignored((struct moment){.kind = MOMENT_STEP_COMPLETED, .step = STR("a")});
    view.inconsistent = false;
    check_ignored((struct moment){.kind = MOMENT_STEP_REDISPATCHED, .step = STR("a"), .engine = 2});
    view.inconsistent = false;
    tell_step(MOMENT_STEP_STARTED, "a", 3);
    check_ignored((struct moment){.kind = MOMENT_STEP_COMPLETED, .step = STR("a"), .logical = 2});
}

static void skipped_by_an_operator_after_a_failure_C_35(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell_step(MOMENT_STEP_FAILED, "a", 1);
    tell((struct moment){.kind = MOMENT_STEP_SKIPPED, .step = STR("a"), .reason = STR(SKIP_OPERATOR)});
    check_step("a", STEP_STATUS_SKIPPED);
    CHECK_INT(view.failed_count, 0);
    check_ignored((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a"), .logical = 2});
}

static void steps_do_not_begin_outside_a_run_C_19(void)
{
    begin();
    check_ignored((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a")});
    started();
    tell_kind(MOMENT_RUN_CANCELLED);
    check_ignored((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a")});
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell_step(MOMENT_STEP_FAILED, "a", 1);
    tell_kind(MOMENT_RUN_FAILED);
    check_ignored((struct moment){.kind = MOMENT_STEP_STARTED, .step = STR("a"), .logical = 2});
}

static void late_results_change_their_step_only_C_19(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell_step(MOMENT_STEP_STARTED, "b", 1);
    tell_step(MOMENT_STEP_STARTED, "c", 1);
    tell_kind(MOMENT_RUN_CANCELLED);
    tell_step(MOMENT_STEP_COMPLETED, "a", 1);
    check_step("a", STEP_STATUS_SUCCESS);
    tell_step(MOMENT_LATE_RESULT, "b", 1);
    check_step("b", STEP_STATUS_SUCCESS);
    tell((struct moment){.kind = MOMENT_LATE_RESULT, .step = STR("c"), .fault = {.code = STR("CANCELLED")}});
    check_step("c", STEP_STATUS_FAILED);
    check_status(RUN_STATUS_CANCELLED);
}

static void late_results_of_older_attempts_change_nothing(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell((struct moment){.kind = MOMENT_STEP_REDISPATCHED, .step = STR("a"), .engine = 2});
    tell_step(MOMENT_LATE_RESULT, "a", 1);
    check_step("a", STEP_STATUS_RUNNING);
    tell_kind(MOMENT_RUN_CANCELLED);
    tell_step(MOMENT_LATE_RESULT, "a", 1);
    check_step("a", STEP_STATUS_RUNNING);
}

static void loops_show_their_iteration_and_their_children_by_path(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "poll", 1);
    tell_step(MOMENT_ITERATION_STARTED, "poll", 1);
    tell_step(MOMENT_STEP_STARTED, "poll[1].fetch", 1);
    tell_step(MOMENT_STEP_COMPLETED, "poll[1].fetch", 1);
    tell_step(MOMENT_ITERATION_STARTED, "poll", 2);
    tell_step(MOMENT_STEP_STARTED, "poll[2].fetch", 1);
    tell_step(MOMENT_ITERATION_STARTED, "poll", 1);
    CHECK_INT(step("poll")->iteration, 2);
    check_step("poll[1].fetch", STEP_STATUS_SUCCESS);
    check_step("poll[2].fetch", STEP_STATUS_RUNNING);
    CHECK_INT(view.step_count, 3);
}

// ---- substatus and plan

static void planned(void)
{
    begin();
    CHECK(view_plan(&view, with_ids(&test_program)));
    tell_kind(MOMENT_RUN_STARTED);
}

static void planned_steps_are_pending(void)
{
    planned();
    CHECK_INT(view.step_count, 3);
    CHECK_STR(view.steps[0].id, STR("load"));
    check_step("poll", STEP_STATUS_PENDING);
    CHECK_TEXT(view_substatus(&view), "");
}

static void paused_with_steps_in_flight_is_draining_ES_6_3a_ES_6_3b_ES_6_5(void)
{
    started();
    tell_step(MOMENT_STEP_STARTED, "a", 1);
    tell_kind(MOMENT_RUN_PAUSED);
    CHECK_TEXT(view_substatus(&view), "DRAINING");
    CHECK_INT(view.running_count, 1);
    tell_step(MOMENT_STEP_COMPLETED, "a", 1);
    CHECK_TEXT(view_substatus(&view), "");
    check_status(RUN_STATUS_PAUSED);
}

static void held_failure_is_retrying_C_35(void)
{
    planned();
    tell_step(MOMENT_STEP_STARTED, "load", 1);
    tell_step(MOMENT_STEP_FAILED, "load", 1);
    CHECK(step("load")->held);
    CHECK_TEXT(view_substatus(&view), "RETRYING");
    tell_step(MOMENT_STEP_STARTED, "load", 2);
    CHECK_TEXT(view_substatus(&view), "");
}

static void open_gate_is_waiting_for_approval(void)
{
    planned();
    tell_step(MOMENT_STEP_STARTED, "gate", 1);
    CHECK_TEXT(view_substatus(&view), "WAITING_APPROVAL");
    tell_step(MOMENT_STEP_COMPLETED, "gate", 1);
    CHECK_TEXT(view_substatus(&view), "");
    tell_step(MOMENT_STEP_STARTED, "poll[12].ask", 1);
    CHECK_TEXT(view_substatus(&view), "WAITING_APPROVAL");
    tell_step(MOMENT_STEP_FAILED, "poll[12].ask", 1);
    CHECK_TEXT(view_substatus(&view), "RETRYING");
    tell_kind(MOMENT_RUN_CANCELLED);
    CHECK_TEXT(view_substatus(&view), "");
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(step_started_ES_1_2d_ES_1_5_3c),
        TEST(step_completed_ES_1_2e_ES_1_5_3d),
        TEST(step_failed_ES_1_2f_ES_1_5_3e),
        TEST(step_skipped_ES_1_2g_C_06),
        TEST(step_delayed_sets_only_its_time_C_06_ES_3c),
        TEST(attempts_are_listed_RE_5d_ES_1_3f),
        TEST(redispatch_is_a_physical_attempt_of_the_same_logical_one_RE_5c_ES_1_3b_ES_1_3e),
        TEST(reused_results_need_no_start_C_22),
        TEST(a_settled_step_does_not_go_back_C_18),
        TEST(one_outcome_per_attempt_C_34),
        TEST(skipped_by_an_operator_after_a_failure_C_35),
        TEST(steps_do_not_begin_outside_a_run_C_19),
        TEST(late_results_change_their_step_only_C_19),
        TEST(late_results_of_older_attempts_change_nothing),
        TEST(loops_show_their_iteration_and_their_children_by_path),
        TEST(planned_steps_are_pending),
        TEST(paused_with_steps_in_flight_is_draining_ES_6_3a_ES_6_3b_ES_6_5),
        TEST(held_failure_is_retrying_C_35),
        TEST(open_gate_is_waiting_for_approval),
    };
    return test_main("view_fold_steps", tests, ARRAY_COUNT(tests), argc, argv);
}
