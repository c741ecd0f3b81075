// Playbooks in the kernel: tokens and arcs, admission, barrier, visits, pauses, cancel, crashes.
#include "unit/support/playbook_kit.h"

static void the_events_of_a_minimal_run_in_their_order_NX_5_1_NX_5_2_NX_3_1A_NX_3_1F(void)
{
    struct story s;
    story_open(&s, NET_HEAD "workflow:\n  - {step: start, tool: " NET_SHELL "}\n");
    story_start(&s);
    net_ok(&s, "start/start_task", "7");
    story_expect(&s, "[0] RUN_REQUESTED\n[0] REQUEST_EVALUATED\n[0] RUN_STARTED\n[0] WORKFLOW_STARTED\n"
                     "[0] ADMIT_EVALUATED start 1.1\n[0] STEP_SCHEDULED start 1.1\n[0] STEP_STARTED start 1.1\n"
                     "[0] TASK_STARTED start/start_task 1.1\n[0] ATTEMPT_STARTED start/start_task 1.1\n"
                     "[0] ATTEMPT_DONE start/start_task 1.1\n[0] TASK_DECIDED start/start_task 1.1\n"
                     "[0] TASK_DONE start/start_task 1.1\n[0] STEP_COMPLETED start 1.1\n[0] ROUTED start 1.1\n[0] "
                     "WORKFLOW_FINISHED\n[0] RUN_COMPLETED\n"
                     "[0] RUN_PROCESSED\n");
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

static void the_final_step_runs_when_nothing_else_is_left_whatever_came_out(void)
{
    for (int fails = 0; fails < 2; fails++) {
        struct story s;
        story_open(&s, NET_HEAD "executor: {spec: {final_step: last}}\nworkflow:\n  - {step: start, tool: " NET_SHELL
                            ", next: [mid]}\n  - {step: mid, tool: " NET_SHELL "}\n  - {step: last, tool: " NET_SHELL "}\n");
        story_start(&s);
        net_ok(&s, "start/start_task", "7");
        if (fails)
            net_bad(&s, "mid/mid_task", "unknown", false);
        else
            net_ok(&s, "mid/mid_task", "8");
        CHECK_INT(s.run->status, RUN_STATUS_RUNNING);
        net_ok(&s, "last/last_task", "9");
        CHECK_INT(s.run->status, fails ? RUN_STATUS_FAILED : RUN_STATUS_COMPLETED);
        story_close(&s);
    }
}

static void exclusive_takes_the_first_inclusive_takes_all_NX_0F_NX_7_4(void)
{
    for (int inclusive = 0; inclusive < 2; inclusive++) {
        struct story s;
        char text[1024];
        snprintf(text, sizeof(text),
                 NET_HEAD "workload: {n: 5}\nworkflow:\n  - step: start\n    tool: {kind: noop}\n    next:\n      spec: "
                      "{mode: %s}\n  "
                      "    arcs: [{step: a, when: \"{{ n > 9 }}\"}, {step: b, when: \"{{ n > 1 }}\"}, {step: c}]\n"
                      "  - {step: a, tool: " NET_SHELL "}\n  - {step: b, tool: " NET_SHELL "}\n  - {step: c, tool: " NET_SHELL
                      "}\n",
                 inclusive ? "inclusive" : "exclusive");
        story_open(&s, text);
        story_start(&s);
        CHECK(!story_waits(&s, EFFECT_EXECUTE, "a/a_task"));
        CHECK(story_waits(&s, EFFECT_EXECUTE, "b/b_task"));
        CHECK(story_waits(&s, EFFECT_EXECUTE, "c/c_task") == inclusive);
        story_close(&s);
    }
}

#define FAN                                                                                                            \
    NET_HEAD "workflow:\n  - step: start\n    tool: {kind: noop}\n    next: {spec: {mode: inclusive}, arcs: [{step: a}, "  \
         "{step: b}]}\n  - step: a\n    tool: " NET_SHELL                                                                  \
         "\n    next: {arcs: [{step: join}]}\n  - step: b\n    tool: " NET_SHELL                                           \
         "\n    next: {arcs: [{step: join}]}\n  - {step: join, tool: {kind: noop}}\n"

static void a_fan_in_waits_for_both_and_runs_once_C_48(void)
{
    struct story s;
    story_open(&s, FAN);
    story_start(&s);
    net_ok(&s, "b/b_task", "1");
    CHECK_INT(told_count(&s, "STEP_STARTED join"), 0);
    story_crash(&s);
    CHECK_INT(told_count(&s, "STEP_STARTED join"), 0);
    net_ok(&s, "a/a_task", "1");
    CHECK_INT(told_count(&s, "STEP_STARTED join"), 1);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

static void a_fan_in_does_not_wait_for_a_branch_that_failed_C_48(void)
{
    struct story s;
    story_open(&s, FAN);
    story_start(&s);
    net_ok(&s, "b/b_task", "1");
    net_bad(&s, "a/a_task", "unknown", false);
    CHECK_INT(told_count(&s, "STEP_STARTED join"), 1);
    CHECK_INT(s.run->status, RUN_STATUS_FAILED); // a's failure nobody took care of
    story_close(&s);
}

static void a_failure_is_routed_by_an_arc_that_asks_for_it_C_47(void)
{
    struct story s;
    story_open(
        &s,
        NET_HEAD "workflow:\n  - step: start\n    tool: " NET_SHELL
             "\n    next: {arcs: [{step: good, when: \"{{ event.name == 'call.done' }}\"}, {step: mend, when: \"{{ "
             "event.name == 'call.error' }}\"}]}\n  - {step: good, tool: {kind: noop}}\n  - {step: mend, tool: {kind: "
             "noop}}\n");
    story_start(&s);
    net_bad(&s, "start/start_task", "unknown", false);
    CHECK_INT(told_count(&s, "STEP_STARTED mend"), 1);
    CHECK_INT(told_count(&s, "STEP_STARTED good"), 0);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

static void a_refused_admission_skips_the_step_NX_3_6A(void)
{
    struct story s;
    story_open(
        &s, NET_HEAD
        "workload: {go: false}\nworkflow:\n  - step: start\n    spec: {policy: {admit: {rules: [{when: \"{{ go }}\", "
        "then: {allow: true}}, {else: {then: {allow: false}}}]}}}\n    tool: " NET_SHELL "\n");
    story_start(&s);
    CHECK_INT(told_count(&s, "STEP_SCHEDULED"), 0);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    CHECK_INT(s.run->counts.skipped, 1);
    story_close(&s);
}

// `each` is visited when `start` has counted to 1, 3 and 5, and is let in for the numbers of the list.
static void a_step_counts_once_however_often_it_was_visited_or_refused(void)
{
    static const struct {
        const char *rounds;
        uint32_t completed, skipped;
    } cases[] = {{"[1, 5]", 2, 0}, {"[5]", 2, 0}, {"[1]", 2, 0}, {"[]", 1, 1}, {"[1, 3, 5]", 2, 0}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct story s;
        char text[1024];
        snprintf(text, sizeof(text),
                 NET_HEAD "workflow:\n  - step: start\n    tool: {kind: noop}\n    set: {ctx.n: \"{{ (ctx.n | default(0)) + 1 "
                      "}}\"}\n    next: {spec: {mode: inclusive}, arcs: [{step: start, when: \"{{ ctx.n < 5 }}\"}, {step: "
                      "each}]}\n  - step: each\n    spec: {policy: {admit: {rules: [{when: \"{{ ctx.n in %s }}\", then: "
                      "{allow: true}}, {else: {then: {allow: false}}}]}}}\n    tool: {kind: noop}\n",
                 cases[i].rounds);
        story_open(&s, text);
        story_start(&s);
        CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
        CHECK(told_count(&s, "ADMIT_EVALUATED each") >= 3);
        CHECK_INT(s.run->counts.completed, cases[i].completed);
        CHECK_INT(s.run->counts.skipped, cases[i].skipped);
        story_close(&s);
    }
}

static void a_workload_that_cannot_be_rendered_is_why_the_run_fails(void)
{
    struct story s;
    story_open(&s, NET_HEAD "workload: {a: \"{{ nothing.here.at.all + 1 }}\"}\nworkflow:\n  - {step: start, tool: " NET_SHELL "}\n");
    story_start(&s);
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    CHECK_STR(s.run->failed_step, STR("workload"));
    CHECK_STR(s.run->fault.code, STR("TEMPLATE_ERROR"));
    CHECK_STR(s.run->fault.message, STR("a: template: nothing.here.at.all is undefined"));
    story_crash(&s); // and the log says the same
    CHECK_STR(s.run->failed_step, STR("workload"));
    CHECK_STR(s.run->fault.code, STR("TEMPLATE_ERROR"));
    struct arena arena;
    struct fault again;
    struct error err = {0};
    arena_init(&arena, 4096, 1 << 20);
    CHECK_OK(kernel_workload_fault(s.run, &arena, &again, &err), &err); // asked again
    CHECK_STR(again.message, s.run->fault.message);
    arena_release(&arena);
    story_close(&s);
}

static void a_step_may_be_visited_again_C_65(void)
{
    struct story s;
    story_open(&s, NET_HEAD
               "workflow:\n  - step: start\n    tool: " NET_SHELL
               "\n    set: {ctx.n: \"{{ (ctx.n | default(0)) + start }}\"}\n    next: {arcs: [{step: start, when: \"{{ "
               "ctx.n < 3 }}\"}]}\n");
    story_start(&s);
    net_ok(&s, "start/start_task", "1");
    net_ok(&s, "start:run:2/start_task", "1");
    story_crash(&s);
    net_ok(&s, "start:run:3/start_task", "1");
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    CHECK_INT(net_ctx(&s, "n"), 3);
    CHECK_INT(s.run->counts.completed, 1);
    story_close(&s);
}

static void a_paused_playbook_starts_nothing_and_goes_on_C_27(void)
{
    struct story s;
    story_open(&s, NET_LOOP("mode: sequential"));
    story_start(&s);
    story_signal(&s, SIGNAL_PAUSE, "");
    net_ok(&s, "each[1]/t", "1");
    CHECK(!story_waits(&s, EFFECT_EXECUTE, "each[2]/t"));
    story_crash(&s);
    CHECK(!story_waits(&s, EFFECT_EXECUTE, "each[2]/t"));
    story_signal(&s, SIGNAL_RESUME, "");
    CHECK(story_waits(&s, EFFECT_EXECUTE, "each[2]/t"));
    story_close(&s);
}

static void a_cancelled_playbook_ends_when_nothing_runs_C_27(void)
{
    struct story s;
    story_open(&s, NET_LOOP("mode: parallel, max_in_flight: 3"));
    story_start(&s);
    story_signal(&s, SIGNAL_CANCEL, "");
    CHECK_INT(s.run->status, RUN_STATUS_RUNNING);
    CHECK(story_waits(&s, EFFECT_CANCEL, "each[1]/t"));
    net_ok(&s, "each[1]/t", "1");
    story_crash(&s); // the others are lost with it
    CHECK_INT(s.run->status, RUN_STATUS_CANCELLED);
    CHECK_INT(told_count(&s, "RUN_CANCELLED"), 1);
    story_close(&s);
}

static void a_task_in_flight_at_a_crash_runs_again_under_the_next_engine_attempt_C_34(void)
{
    struct story s;
    story_open(&s, NET_HEAD "workflow:\n  - {step: start, tool: " NET_SHELL "}\n");
    story_start(&s);
    buf_clear(&s.told);
    story_crash(&s);
    story_expect(&s, "[0] STEP_REDISPATCHED start/start_task 1.2\n");
    struct input late = {.kind = INPUT_RESULT, .ok = true, .step = 1, .logical = 1, .engine = 1};
    story_step(&s, &late);
    story_expect(&s, "[0] LATE_RESULT start/start_task 1.1\n");
    net_ok(&s, "start/start_task", "1");
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

static void a_visit_has_a_time_and_waits_have_none_to_lose(void)
{
    struct story s;
    story_open(&s, NET_HEAD
               "workflow:\n  - step: start\n    spec: {policy: {lifecycle: {timeout_s: 5}}}\n    tool: " NET_SHELL
               "\n    next: {arcs: [{step: nap, when: \"{{ event.name == 'step.failed' }}\"}]}\n  - {step: nap, tool: "
               "{kind: wait, seconds: 3}}\n");
    story_start(&s);
    story_timer(&s, "start");
    struct effect stop = story_take(&s, EFFECT_CANCEL, "start/start_task");
    CHECK_INT(stop.logical, 1);
    struct input input = {.fault = {.code = STR("CANCELLED"), .message = STR("stopped")}};
    story_answer(&s, "start/start_task", &input);
    CHECK_INT(told_count(&s, "STEP_FAILED start 1.1 TIMEOUT"), 1);
    story_timer(&s, "nap/nap_task");
    CHECK_INT(s.now, 8000);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

// That the time of a visit is over is in the ledger: an engine that dies of stopping what was in flight does not begin it again.
static void the_end_of_a_visits_time_survives_a_crash_T13(void)
{
    struct story s;
    story_open(&s, NET_HEAD "workflow:\n  - step: start\n    spec: {policy: {lifecycle: {timeout_s: 5}}}\n    tool: " NET_SHELL "\n");
    story_start(&s);
    story_timer(&s, "start");
    CHECK_INT(told_count(&s, "STEP_OVERDUE start"), 1);
    CHECK_INT(s.run->status, RUN_STATUS_RUNNING); // it is being stopped
    story_crash(&s);
    CHECK_INT(told_count(&s, "STEP_REDISPATCHED"), 0);
    CHECK_INT(told_count(&s, "STEP_FAILED start 1.1 TIMEOUT"), 1);
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    story_close(&s);
}

static void a_workload_that_cannot_be_made_is_why_the_run_failed(void)
{
    struct story s;
    story_open(&s, NET_HEAD "workload: {a: \"{{ 1 / 0 }}\"}\nworkflow:\n  - {step: start, tool: " NET_SHELL "}\n");
    story_start(&s); // and the state folded from its log is the same (K1)
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    CHECK_STR(s.run->failed_step, STR("workload"));
    CHECK_STR(s.run->fault.code, STR("TEMPLATE_ERROR"));
    story_close(&s);
}

static void an_input_cannot_ask_for_a_secret(void)
{
    struct story s;
    story_open(
        &s, NET_HEAD
        "keychain: [{name: k, kind: static, map: {x: y}}]\nworkload: {a: b}\nworkflow:\n  - step: start\n    tool: "
        "{kind: shell, cmds: \"{{ workload.a }} {{ keychain.k.x }}\"}\n");
    struct error err = {0};
    CHECK_OK(
        json_parse(STR("{\"a\":\"\\u0001keychain:k.x\\u0001\"}"), &json_limits_default, &s.memory, &s.inputs, &err),
        &err);
    story_start(&s);
    struct effect e = story_take(&s, EFFECT_EXECUTE, "start/start_task");
    struct json task;
    CHECK_OK(kernel_task(s.run, e.step, &story_env, &s.turn, &task, &err), &err);
    CHECK_STR(json_text(json_at(&task, STR("with.cmds"))), STR(" keychain:k.x  \x01keychain:k.x\x01"));
    story_close(&s);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(the_events_of_a_minimal_run_in_their_order_NX_5_1_NX_5_2_NX_3_1A_NX_3_1F),
        TEST(the_final_step_runs_when_nothing_else_is_left_whatever_came_out),
        TEST(exclusive_takes_the_first_inclusive_takes_all_NX_0F_NX_7_4),
        TEST(a_fan_in_waits_for_both_and_runs_once_C_48),
        TEST(a_fan_in_does_not_wait_for_a_branch_that_failed_C_48),
        TEST(a_failure_is_routed_by_an_arc_that_asks_for_it_C_47),
        TEST(a_refused_admission_skips_the_step_NX_3_6A),
        TEST(a_step_counts_once_however_often_it_was_visited_or_refused),
        TEST(a_workload_that_cannot_be_rendered_is_why_the_run_fails),
        TEST(a_step_may_be_visited_again_C_65),
        TEST(a_paused_playbook_starts_nothing_and_goes_on_C_27),
        TEST(a_cancelled_playbook_ends_when_nothing_runs_C_27),
        TEST(a_task_in_flight_at_a_crash_runs_again_under_the_next_engine_attempt_C_34),
        TEST(a_visit_has_a_time_and_waits_have_none_to_lose),
        TEST(the_end_of_a_visits_time_survives_a_crash_T13),
        TEST(a_workload_that_cannot_be_made_is_why_the_run_failed),
        TEST(an_input_cannot_ask_for_a_secret),
    };
    return test_main("kernel_net", tests, ARRAY_COUNT(tests), argc, argv);
}
