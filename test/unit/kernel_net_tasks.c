// Tasks of playbooks in the kernel: their policies, what they expect and return, retries and jumps.
#include "unit/support/playbook_kit.h"

static void decisions_without_a_policy_are_told_unless_they_are_not_wanted_C_28(void)
{
    static const char *const wanted[] = {"[policy.task.evaluated]", "[step.done]"};
    for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
        struct story s;
        char text[512];
        (void)snprintf(text, sizeof(text),
                       NET_HEAD "workflow:\n  - {step: start, spec: {policy: {emit: {events: %s}}}, tool: " NET_SHELL "}\n",
                       wanted[i]);
        story_open(&s, text);
        story_start(&s);
        buf_clear(&s.told);
        net_ok(&s, "start/start_task", "7");
        buf_byte(&s.told, '\0');
        CHECK((strstr(s.told.ptr, "TASK_DECIDED") != NULL) == (i == 0));
        story_close(&s);
    }
}

static void a_retry_is_attempts_and_policy_decisions_NX_0C_NX_3_4N1_C_46(void)
{
    struct story s;
    story_open(&s, NET_HEAD
               "workflow:\n  - step: start\n    tool:\n      kind: shell\n      cmds: x\n      spec: {policy: {rules: "
               "[{when: \"{{ output.error.retryable }}\", then: {do: retry, attempts: 3, backoff: exponential, "
               "delay: 2}}]}}\n");
    story_start(&s);
    buf_clear(&s.told);
    net_bad(&s, "start/start_task", "timeout", true);
    story_expect(&s,
                 "[0] ATTEMPT_FAILED start/start_task 1.1 timeout\n[0] TASK_DECIDED start/start_task 1.1 due 2000\n");
    story_timer(&s, "start/start_task");
    net_bad(&s, "start/start_task", "timeout", true);
    story_expect(&s, "[2000] ATTEMPT_STARTED start/start_task 2.1\n[2000] ATTEMPT_FAILED start/start_task 2.1 timeout\n"
                     "[2000] TASK_DECIDED start/start_task 2.1 due 6000\n");
    story_timer(&s, "start/start_task");
    net_bad(&s, "start/start_task", "timeout", true); // the third of three
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    CHECK_STR(s.run->failed_step, STR("start"));
    story_close(&s);
}

// `tool` of one step, started.
static void open_with(struct story *s, const char *tool)
{
    char text[1024];
    (void)snprintf(text, sizeof(text), NET_HEAD "workflow:\n  - step: start\n    tool: %s\n", tool);
    story_open(s, text);
    story_start(s);
}

static void a_task_without_the_inputs_that_it_expects_does_not_begin_C_47(void)
{
    static const struct {
        const char *tool;
        bool begins;
    } cases[] = {
        {"{kind: python, code: x, input: {a: null}, assert: {expects: [a]}}", true}, // a null is there
        {"{kind: python, code: x, input: {b: 1}, assert: {expects: [a, b, c]}}", false},
        {"{kind: python, code: x, assert: {expects: [a]}}", false},
        {"{kind: noop, assert: {expects: [a]}}", false},
        {"{kind: wait, seconds: 5, assert: {expects: [a]}}", false},
        {"{kind: wait, seconds: 5, assert: {expects: [seconds]}}", true},
        {"{kind: playbook, path: p, assert: {expects: [a]}}", false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct story s;
        open_with(&s, cases[i].tool);
        CHECK_INT(s.run->status, cases[i].begins ? RUN_STATUS_RUNNING : RUN_STATUS_FAILED);
        CHECK_INT(told_count(&s, "ASSERT_EXPECTS") > 0, !cases[i].begins);
        story_close(&s);
    }
    struct story s;
    open_with(&s, cases[1].tool);
    CHECK_STR(s.run->failed_step, STR("start"));
    CHECK_STR(s.run->fault.message,
              STR("the task expects inputs that it was not given: a, c; its inputs are: b"));
    story_close(&s);
}

static void a_result_without_what_the_task_returns_is_an_error_C_47(void)
{
    static const struct {
        const char *result;
        bool fits;
    } cases[] = {
        {"{\"a\":null,\"b\":{\"c\":1}}", true},
        {"{\"data\":{\"a\":1,\"b\":{\"c\":1}},\"headers\":{},\"status_code\":200}", true},
        {"[{\"a\":1,\"b\":{\"c\":2}}]", true},
        {"{\"a\":1,\"b\":{}}", false},
        {"[]", false},
        {"null", false},
        {"\"a\"", false},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct story s;
        open_with(&s, "{kind: shell, cmds: x, assert: {returns: [a, b.c]}}");
        net_ok(&s, "start/start_task", cases[i].result);
        CHECK_INT(s.run->status, cases[i].fits ? RUN_STATUS_COMPLETED : RUN_STATUS_FAILED);
        CHECK_INT(told_count(&s, "ASSERT_RETURNS") > 0, !cases[i].fits);
        story_close(&s);
    }
    // Rules see it, with the result beside it; by itself it is not tried again.
    struct story s;
    open_with(&s, "{kind: shell, cmds: x, assert: {returns: b}, spec: {policy: {rules: [{when: \"{{ "
                  "output.error.retryable }}\", then: {do: retry, attempts: 9}}, {when: \"{{ output.error.code == "
                  "'ASSERT_RETURNS' and output.error.kind == 'schema' and output.data.n < 2 }}\", then: {do: retry, "
                  "attempts: 3}}]}}}");
    net_ok(&s, "start/start_task", "{\"n\":1}");
    story_timer(&s, "start/start_task");
    net_ok(&s, "start/start_task", "{\"b\":1,\"n\":2}");
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    CHECK_INT(told_count(&s, "ATTEMPT_STARTED"), 2);
    story_close(&s);
}

static void numbers_that_are_templates_are_rendered_where_they_apply_C_46(void)
{
    struct story s;
    open_with(&s,
              "{kind: shell, cmds: x, spec: {policy: {rules: [{when: \"{{ output.status == 'error' }}\", then: {do: "
              "retry, attempts: \"{{ 1 + (output.error.kind == 'timeout') }}\", delay: \"{{ output.error.message | "
              "length + 0.5 }}\"}}]}}}");
    buf_clear(&s.told);
    net_bad(&s, "start/start_task", "timeout", true);
    story_expect(&s,
                 "[0] ATTEMPT_FAILED start/start_task 1.1 timeout\n[0] TASK_DECIDED start/start_task 1.1 due 2500\n");
    story_timer(&s, "start/start_task");
    net_bad(&s, "start/start_task", "timeout", true);
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    story_close(&s);
    // What is none fails the task and says what it is; what is nothing is as if it was not given.
    static const struct {
        const char *attempts, *why;
    } cases[] = {{"{{ 'many' }}", "\"attempts\" must be a whole number from 1 to 10000, and it is \"many\""},
                 {"{{ 0 }}", "\"attempts\" must be a whole number from 1 to 10000, and it is 0"},
                 {"{{ ctx.none }}", NULL}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char tool[256];
        (void)snprintf(tool, sizeof(tool),
                       "{kind: shell, cmds: x, spec: {policy: {rules: [{then: {do: retry, attempts: \"%s\"}}]}}}",
                       cases[i].attempts);
        open_with(&s, tool);
        net_bad(&s, "start/start_task", "timeout", true);
        CHECK_INT(s.run->status, cases[i].why ? RUN_STATUS_FAILED : RUN_STATUS_RUNNING);
        if (cases[i].why) CHECK_STR(s.run->fault.message, str_from(cases[i].why));
        story_close(&s);
    }
    // A timeout of a task that is none fails it before it begins; one of a step fails that.
    open_with(&s, "{kind: shell, cmds: x, timeout: \"{{ 'soon' }}\"}");
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    CHECK_INT(told_count(&s, "TEMPLATE_ERROR") > 0, true);
    story_close(&s);
    story_open(&s,
               NET_HEAD "workload: {t: 3}\nworkflow:\n  - {step: start, spec: {policy: {lifecycle: {timeout_s: '{{ t * 2 "
                    "}}', deadline_s: '{{ none }}'}}}, tool: " NET_SHELL "}\n");
    story_start(&s);
    CHECK_INT(story_take(&s, EFFECT_TIMER, "start").due_ms, 6000);
    story_close(&s);
}

static void a_policy_without_a_match_continues_unless_told_otherwise_C_46(void)
{
    for (int strict = 0; strict < 2; strict++) {
        struct story s;
        char text[1024];
        snprintf(
            text, sizeof(text),
            NET_HEAD
            "workflow:\n  - step: start\n    tool:\n      - {name: a, kind: shell, cmds: x, spec: {policy: {%srules: "
            "[{when: \"{{ false }}\", then: {do: break}}]}}}\n      - {name: b, kind: shell, cmds: x}\n",
            strict ? "on_unmatched: fail, " : "");
        story_open(&s, text);
        story_start(&s);
        net_bad(&s, "start/a", "unknown", false);
        CHECK_INT(s.run->status, strict ? RUN_STATUS_FAILED : RUN_STATUS_RUNNING);
        CHECK(story_waits(&s, EFFECT_EXECUTE, "start/b") == !strict);
        story_close(&s);
    }
}

static void jumps_go_round_until_a_break_and_a_task_has_one_outcome_per_run_NX_0E(void)
{
    struct story s;
    story_open(
        &s,
        NET_HEAD "workflow:\n  - step: pages\n    tool:\n      - {name: page, kind: shell, cmds: x, spec: {policy: {rules: "
             "[{else: {then: {do: continue, set: {iter.more: \"{{ output.data.more }}\", ctx.n: \"{{ (ctx.n | "
             "default(0)) + 1 }}\"}}}}]}}}\n      - {name: again, kind: noop, spec: {policy: {rules: [{when: \"{{ "
             "iter.more }}\", then: {do: jump, to: page}}, {else: {then: {do: break}}}]}}}\n");
    story_start(&s);
    net_ok(&s, "pages/page", "{\"more\":true}");
    net_ok(&s, "pages/page:run:2", "{\"more\":true}");
    story_crash(&s);
    net_ok(&s, "pages/page:run:3", "{\"more\":false}");
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    CHECK_INT(net_ctx(&s, "n"), 3);
    CHECK_INT(told_count(&s, "TASK_DONE pages/page"), 3);
    CHECK_INT(told_count(&s, "TASK_DONE pages/again"), 3);
    story_close(&s);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(decisions_without_a_policy_are_told_unless_they_are_not_wanted_C_28),
        TEST(a_retry_is_attempts_and_policy_decisions_NX_0C_NX_3_4N1_C_46),
        TEST(a_task_without_the_inputs_that_it_expects_does_not_begin_C_47),
        TEST(a_result_without_what_the_task_returns_is_an_error_C_47),
        TEST(numbers_that_are_templates_are_rendered_where_they_apply_C_46),
        TEST(a_policy_without_a_match_continues_unless_told_otherwise_C_46),
        TEST(jumps_go_round_until_a_break_and_a_task_has_one_outcome_per_run_NX_0E),
    };
    return test_main("kernel_net_tasks", tests, ARRAY_COUNT(tests), argc, argv);
}
