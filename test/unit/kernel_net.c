// Playbooks in the kernel: tokens and arcs, admission, barrier, tasks and their policies, loops, children, cancel, crashes.
#include "support/story.h"

#include <stdio.h>

#define HEAD "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: t, path: t}\n"
#define SHELL "{kind: shell, cmds: x}"

static void answer(struct story *s, const char *path, const char *outcome)
{
    struct input input = {.ok = true};
    struct error err = {0};
    struct arena arena;
    arena_init(&arena, 1024, 1 << 20);
    CHECK_OK(json_parse(str_from(outcome), &json_limits_default, &arena, &input.value, &err), &err);
    story_answer(s, path, &input);
    arena_release(&arena);
}

static void ok(struct story *s, const char *path, const char *result)
{
    char text[512];
    snprintf(text, sizeof(text), "{\"result\":%s,\"status\":\"ok\"}", result);
    answer(s, path, text);
}

static void bad(struct story *s, const char *path, const char *kind, bool retryable)
{
    char text[512];
    snprintf(text, sizeof(text),
             "{\"error\":{\"kind\":\"%s\",\"message\":\"no\",\"retryable\":%s},\"status\":\"error\"}", kind,
             retryable ? "true" : "false");
    answer(s, path, text);
}

static int64_t ctx(const struct story *s, const char *path)
{
    return json_integer(json_at(kernel_ctx(s->run), str_from(path)), -1);
}

static size_t count(const struct story *s, const char *text)
{
    size_t found = 0;
    struct str told = buf_str(&s->told);
    for (size_t at = 0; at + strlen(text) <= told.len; at++) found += memcmp(told.ptr + at, text, strlen(text)) == 0;
    return found;
}

static void the_events_of_a_minimal_run_in_their_order_NX_5_1_NX_5_2_NX_3_1A_NX_3_1F(void)
{
    struct story s;
    story_open(&s, HEAD "workflow:\n  - {step: start, tool: " SHELL "}\n");
    story_start(&s);
    ok(&s, "start/start_task", "7");
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

static void decisions_without_a_policy_are_told_unless_they_are_not_wanted_C_28(void)
{
    static const char *const wanted[] = {"[policy.task.evaluated]", "[step.done]"};
    for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
        struct story s;
        char text[512];
        (void)snprintf(text, sizeof(text),
                       HEAD "workflow:\n  - {step: start, spec: {policy: {emit: {events: %s}}}, tool: " SHELL "}\n",
                       wanted[i]);
        story_open(&s, text);
        story_start(&s);
        buf_clear(&s.told);
        ok(&s, "start/start_task", "7");
        buf_byte(&s.told, '\0');
        CHECK((strstr(s.told.ptr, "TASK_DECIDED") != NULL) == (i == 0));
        story_close(&s);
    }
}

static void the_final_step_runs_when_nothing_else_is_left_whatever_came_out(void)
{
    for (int fails = 0; fails < 2; fails++) {
        struct story s;
        story_open(&s, HEAD "executor: {spec: {final_step: last}}\nworkflow:\n  - {step: start, tool: " SHELL
                            ", next: [mid]}\n  - {step: mid, tool: " SHELL "}\n  - {step: last, tool: " SHELL "}\n");
        story_start(&s);
        ok(&s, "start/start_task", "7");
        if (fails)
            bad(&s, "mid/mid_task", "unknown", false);
        else
            ok(&s, "mid/mid_task", "8");
        CHECK_INT(s.run->status, RUN_STATUS_RUNNING);
        ok(&s, "last/last_task", "9");
        CHECK_INT(s.run->status, fails ? RUN_STATUS_FAILED : RUN_STATUS_COMPLETED);
        story_close(&s);
    }
}

static void a_retry_is_attempts_and_policy_decisions_NX_0C_NX_3_4N1_C_46(void)
{
    struct story s;
    story_open(&s, HEAD
               "workflow:\n  - step: start\n    tool:\n      kind: shell\n      cmds: x\n      spec: {policy: {rules: "
               "[{when: \"{{ output.error.retryable }}\", then: {do: retry, attempts: 3, backoff: exponential, "
               "delay: 2}}]}}\n");
    story_start(&s);
    buf_clear(&s.told);
    bad(&s, "start/start_task", "timeout", true);
    story_expect(&s,
                 "[0] ATTEMPT_FAILED start/start_task 1.1 timeout\n[0] TASK_DECIDED start/start_task 1.1 due 2000\n");
    story_timer(&s, "start/start_task");
    bad(&s, "start/start_task", "timeout", true);
    story_expect(&s, "[2000] ATTEMPT_STARTED start/start_task 2.1\n[2000] ATTEMPT_FAILED start/start_task 2.1 timeout\n"
                     "[2000] TASK_DECIDED start/start_task 2.1 due 6000\n");
    story_timer(&s, "start/start_task");
    bad(&s, "start/start_task", "timeout", true); // the third of three
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    CHECK_STR(s.run->failed_step, STR("start"));
    story_close(&s);
}

// `tool` of one step, started.
static void open_with(struct story *s, const char *tool)
{
    char text[1024];
    (void)snprintf(text, sizeof(text), HEAD "workflow:\n  - step: start\n    tool: %s\n", tool);
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
        CHECK_INT(count(&s, "ASSERT_EXPECTS") > 0, !cases[i].begins);
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
        ok(&s, "start/start_task", cases[i].result);
        CHECK_INT(s.run->status, cases[i].fits ? RUN_STATUS_COMPLETED : RUN_STATUS_FAILED);
        CHECK_INT(count(&s, "ASSERT_RETURNS") > 0, !cases[i].fits);
        story_close(&s);
    }
    // Rules see it, with the result beside it; by itself it is not tried again.
    struct story s;
    open_with(&s, "{kind: shell, cmds: x, assert: {returns: b}, spec: {policy: {rules: [{when: \"{{ "
                  "output.error.retryable }}\", then: {do: retry, attempts: 9}}, {when: \"{{ output.error.code == "
                  "'ASSERT_RETURNS' and output.error.kind == 'schema' and output.data.n < 2 }}\", then: {do: retry, "
                  "attempts: 3}}]}}}");
    ok(&s, "start/start_task", "{\"n\":1}");
    story_timer(&s, "start/start_task");
    ok(&s, "start/start_task", "{\"b\":1,\"n\":2}");
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    CHECK_INT(count(&s, "ATTEMPT_STARTED"), 2);
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
    bad(&s, "start/start_task", "timeout", true);
    story_expect(&s,
                 "[0] ATTEMPT_FAILED start/start_task 1.1 timeout\n[0] TASK_DECIDED start/start_task 1.1 due 2500\n");
    story_timer(&s, "start/start_task");
    bad(&s, "start/start_task", "timeout", true);
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
        bad(&s, "start/start_task", "timeout", true);
        CHECK_INT(s.run->status, cases[i].why ? RUN_STATUS_FAILED : RUN_STATUS_RUNNING);
        if (cases[i].why) CHECK_STR(s.run->fault.message, str_from(cases[i].why));
        story_close(&s);
    }
    // A timeout of a task that is none fails it before it begins; one of a step fails that.
    open_with(&s, "{kind: shell, cmds: x, timeout: \"{{ 'soon' }}\"}");
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    CHECK_INT(count(&s, "TEMPLATE_ERROR") > 0, true);
    story_close(&s);
    story_open(&s,
               HEAD "workload: {t: 3}\nworkflow:\n  - {step: start, spec: {policy: {lifecycle: {timeout_s: '{{ t * 2 "
                    "}}', deadline_s: '{{ none }}'}}}, tool: " SHELL "}\n");
    story_start(&s);
    CHECK_INT(story_take(&s, EFFECT_TIMER, "start").due_ms, 6000);
    story_close(&s);
}

static void as_many_iterations_at_once_as_a_template_says(void)
{
    static const struct {
        const char *most;
        uint32_t open;
    } cases[] = {{"{{ k }}", 2}, {"{{ items | length }}", 3}, {"{{ ctx.none }}", 3}, {"{{ -1 }}", 0}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct story s;
        char text[512];
        (void)snprintf(text, sizeof(text),
                       HEAD
                       "workload: {k: 2, items: [1, 2, 3]}\nworkflow:\n  - {step: start, loop: {in: '{{ items }}', "
                       "iterator: i, spec: {mode: parallel, max_in_flight: '%s'}}, tool: " SHELL "}\n",
                       cases[i].most);
        story_open(&s, text);
        story_start(&s);
        CHECK_INT(s.run->in_flight, cases[i].open);
        CHECK_INT(s.run->status, cases[i].open ? RUN_STATUS_RUNNING : RUN_STATUS_FAILED);
        story_close(&s);
    }
}

static void a_policy_without_a_match_continues_unless_told_otherwise_C_46(void)
{
    for (int strict = 0; strict < 2; strict++) {
        struct story s;
        char text[1024];
        snprintf(
            text, sizeof(text),
            HEAD
            "workflow:\n  - step: start\n    tool:\n      - {name: a, kind: shell, cmds: x, spec: {policy: {%srules: "
            "[{when: \"{{ false }}\", then: {do: break}}]}}}\n      - {name: b, kind: shell, cmds: x}\n",
            strict ? "on_unmatched: fail, " : "");
        story_open(&s, text);
        story_start(&s);
        bad(&s, "start/a", "unknown", false);
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
        HEAD "workflow:\n  - step: pages\n    tool:\n      - {name: page, kind: shell, cmds: x, spec: {policy: {rules: "
             "[{else: {then: {do: continue, set: {iter.more: \"{{ output.data.more }}\", ctx.n: \"{{ (ctx.n | "
             "default(0)) + 1 }}\"}}}}]}}}\n      - {name: again, kind: noop, spec: {policy: {rules: [{when: \"{{ "
             "iter.more }}\", then: {do: jump, to: page}}, {else: {then: {do: break}}}]}}}\n");
    story_start(&s);
    ok(&s, "pages/page", "{\"more\":true}");
    ok(&s, "pages/page:run:2", "{\"more\":true}");
    story_crash(&s);
    ok(&s, "pages/page:run:3", "{\"more\":false}");
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    CHECK_INT(ctx(&s, "n"), 3);
    CHECK_INT(count(&s, "TASK_DONE pages/page"), 3);
    CHECK_INT(count(&s, "TASK_DONE pages/again"), 3);
    story_close(&s);
}

static void exclusive_takes_the_first_inclusive_takes_all_NX_0F_NX_7_4(void)
{
    for (int inclusive = 0; inclusive < 2; inclusive++) {
        struct story s;
        char text[1024];
        snprintf(text, sizeof(text),
                 HEAD "workload: {n: 5}\nworkflow:\n  - step: start\n    tool: {kind: noop}\n    next:\n      spec: "
                      "{mode: %s}\n  "
                      "    arcs: [{step: a, when: \"{{ n > 9 }}\"}, {step: b, when: \"{{ n > 1 }}\"}, {step: c}]\n"
                      "  - {step: a, tool: " SHELL "}\n  - {step: b, tool: " SHELL "}\n  - {step: c, tool: " SHELL
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
    HEAD "workflow:\n  - step: start\n    tool: {kind: noop}\n    next: {spec: {mode: inclusive}, arcs: [{step: a}, "  \
         "{step: b}]}\n  - step: a\n    tool: " SHELL                                                                  \
         "\n    next: {arcs: [{step: join}]}\n  - step: b\n    tool: " SHELL                                           \
         "\n    next: {arcs: [{step: join}]}\n  - {step: join, tool: {kind: noop}}\n"

static void a_fan_in_waits_for_both_and_runs_once_C_48(void)
{
    struct story s;
    story_open(&s, FAN);
    story_start(&s);
    ok(&s, "b/b_task", "1");
    CHECK_INT(count(&s, "STEP_STARTED join"), 0);
    story_crash(&s);
    CHECK_INT(count(&s, "STEP_STARTED join"), 0);
    ok(&s, "a/a_task", "1");
    CHECK_INT(count(&s, "STEP_STARTED join"), 1);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

static void a_fan_in_does_not_wait_for_a_branch_that_failed_C_48(void)
{
    struct story s;
    story_open(&s, FAN);
    story_start(&s);
    ok(&s, "b/b_task", "1");
    bad(&s, "a/a_task", "unknown", false);
    CHECK_INT(count(&s, "STEP_STARTED join"), 1);
    CHECK_INT(s.run->status, RUN_STATUS_FAILED); // a's failure nobody took care of
    story_close(&s);
}

static void a_failure_is_routed_by_an_arc_that_asks_for_it_C_47(void)
{
    struct story s;
    story_open(
        &s,
        HEAD "workflow:\n  - step: start\n    tool: " SHELL
             "\n    next: {arcs: [{step: good, when: \"{{ event.name == 'call.done' }}\"}, {step: mend, when: \"{{ "
             "event.name == 'call.error' }}\"}]}\n  - {step: good, tool: {kind: noop}}\n  - {step: mend, tool: {kind: "
             "noop}}\n");
    story_start(&s);
    bad(&s, "start/start_task", "unknown", false);
    CHECK_INT(count(&s, "STEP_STARTED mend"), 1);
    CHECK_INT(count(&s, "STEP_STARTED good"), 0);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

static void a_refused_admission_skips_the_step_NX_3_6A(void)
{
    struct story s;
    story_open(
        &s, HEAD
        "workload: {go: false}\nworkflow:\n  - step: start\n    spec: {policy: {admit: {rules: [{when: \"{{ go }}\", "
        "then: {allow: true}}, {else: {then: {allow: false}}}]}}}\n    tool: " SHELL "\n");
    story_start(&s);
    CHECK_INT(count(&s, "STEP_SCHEDULED"), 0);
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
                 HEAD "workflow:\n  - step: start\n    tool: {kind: noop}\n    set: {ctx.n: \"{{ (ctx.n | default(0)) + 1 "
                      "}}\"}\n    next: {spec: {mode: inclusive}, arcs: [{step: start, when: \"{{ ctx.n < 5 }}\"}, {step: "
                      "each}]}\n  - step: each\n    spec: {policy: {admit: {rules: [{when: \"{{ ctx.n in %s }}\", then: "
                      "{allow: true}}, {else: {then: {allow: false}}}]}}}\n    tool: {kind: noop}\n",
                 cases[i].rounds);
        story_open(&s, text);
        story_start(&s);
        CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
        CHECK(count(&s, "ADMIT_EVALUATED each") >= 3);
        CHECK_INT(s.run->counts.completed, cases[i].completed);
        CHECK_INT(s.run->counts.skipped, cases[i].skipped);
        story_close(&s);
    }
}

static void a_workload_that_cannot_be_rendered_is_why_the_run_fails(void)
{
    struct story s;
    story_open(&s, HEAD "workload: {a: \"{{ nothing.here.at.all + 1 }}\"}\nworkflow:\n  - {step: start, tool: " SHELL "}\n");
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
    story_open(&s, HEAD
               "workflow:\n  - step: start\n    tool: " SHELL
               "\n    set: {ctx.n: \"{{ (ctx.n | default(0)) + start }}\"}\n    next: {arcs: [{step: start, when: \"{{ "
               "ctx.n < 3 }}\"}]}\n");
    story_start(&s);
    ok(&s, "start/start_task", "1");
    ok(&s, "start:run:2/start_task", "1");
    story_crash(&s);
    ok(&s, "start:run:3/start_task", "1");
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    CHECK_INT(ctx(&s, "n"), 3);
    CHECK_INT(s.run->counts.completed, 1);
    story_close(&s);
}

#define LOOP(mode)                                                                                                     \
    HEAD "workload: {xs: [1, 2, 3, 4]}\nworkflow:\n  - step: each\n    loop: {in: \"{{ xs }}\", iterator: x, spec: "   \
         "{" mode "}}\n    tool: {name: t, kind: shell, cmds: \"{{ iter.x }}\"}\n    next: {arcs: [{step: end, when: " \
         "\"{{ event.name == "                                                                                         \
         "'loop.done' }}\"}]}\n  - step: end\n    tool: {kind: noop}\n    set: {ctx.sum: \"{{ each.results | sum "     \
         "}}\"}\n"

static void a_sequential_loop_keeps_its_order_NX_3_5A_NX_3_5F(void)
{
    struct story s;
    story_open(&s, LOOP("mode: sequential"));
    story_start(&s);
    char path[32], value[8];
    for (int i = 1; i <= 4; i++) {
        snprintf(path, sizeof(path), "each[%d]/t", i);
        snprintf(value, sizeof(value), "%d", i * 10);
        if (i < 4) {
            char next[32];
            snprintf(next, sizeof(next), "each[%d]/t", i + 1);
            CHECK(!story_waits(&s, EFFECT_EXECUTE, next));
        }
        ok(&s, path, value);
    }
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    CHECK_INT(ctx(&s, "sum"), 100);
    CHECK_INT(count(&s, "LOOP_DONE"), 1);
    story_close(&s);
}

static void a_parallel_loop_keeps_within_its_bound_and_survives_crashes_NX_3_5B_NX_2K(void)
{
    struct story s;
    story_open(&s, LOOP("mode: parallel, max_in_flight: 2"));
    story_start(&s);
    CHECK(story_waits(&s, EFFECT_EXECUTE, "each[2]/t") && !story_waits(&s, EFFECT_EXECUTE, "each[3]/t"));
    ok(&s, "each[2]/t", "2");
    story_crash(&s);
    CHECK(!story_waits(&s, EFFECT_EXECUTE, "each[2]/t")); // never twice
    ok(&s, "each[3]/t", "3");
    ok(&s, "each[4]/t", "4");
    ok(&s, "each[1]/t", "1");
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    CHECK_INT(ctx(&s, "sum"), 10);
    CHECK_INT(count(&s, "TASK_DONE each[2]/t"), 1);
    story_close(&s);
}

static void a_failed_iteration_ends_the_loop_or_does_not_NX_3_5E(void)
{
    for (int best = 0; best < 2; best++) {
        struct story s;
        char text[1024];
        snprintf(text, sizeof(text),
                 HEAD "workload: {xs: [1, 2, 3]}\nworkflow:\n  - step: each\n    spec: {policy: {failure: {mode: "
                      "%s}}}\n    loop: {in: "
                      "\"{{ xs }}\", iterator: x}\n    tool: {name: t, kind: shell, cmds: x}\n",
                 best ? "best_effort" : "fail_fast");
        story_open(&s, text);
        story_start(&s);
        bad(&s, "each[1]/t", "unknown", false);
        CHECK(story_waits(&s, EFFECT_EXECUTE, "each[2]/t") == best);
        if (best) {
            ok(&s, "each[2]/t", "1");
            ok(&s, "each[3]/t", "1");
        }
        CHECK_INT(s.run->status, best ? RUN_STATUS_COMPLETED : RUN_STATUS_FAILED);
        story_close(&s);
    }
}

static void ctx_is_written_once_by_a_parallel_loop_C_50(void)
{
    struct story s;
    story_open(
        &s, HEAD
        "workload: {xs: [1, 2]}\nworkflow:\n  - step: each\n    loop: {in: \"{{ xs }}\", iterator: x, spec: {mode: "
        "parallel, max_in_flight: 2}}\n    tool: {name: t, kind: shell, cmds: x, spec: {policy: {rules: [{else: {then: "
        "{do: continue, set: {ctx.who: \"{{ iter.x }}\"}}}}]}}}\n");
    story_start(&s);
    ok(&s, "each[1]/t", "1");
    ok(&s, "each[2]/t", "1");
    CHECK_INT(count(&s, "ITERATION_FAILED each[2] 1.1 ctx_conflict"), 1);
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    CHECK_INT(ctx(&s, "who"), 1);
    story_close(&s);
}

static void a_paused_playbook_starts_nothing_and_goes_on_C_27(void)
{
    struct story s;
    story_open(&s, LOOP("mode: sequential"));
    story_start(&s);
    story_signal(&s, SIGNAL_PAUSE, "");
    ok(&s, "each[1]/t", "1");
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
    story_open(&s, LOOP("mode: parallel, max_in_flight: 3"));
    story_start(&s);
    story_signal(&s, SIGNAL_CANCEL, "");
    CHECK_INT(s.run->status, RUN_STATUS_RUNNING);
    CHECK(story_waits(&s, EFFECT_CANCEL, "each[1]/t"));
    ok(&s, "each[1]/t", "1");
    story_crash(&s); // the others are lost with it
    CHECK_INT(s.run->status, RUN_STATUS_CANCELLED);
    CHECK_INT(count(&s, "RUN_CANCELLED"), 1);
    story_close(&s);
}

static void a_task_in_flight_at_a_crash_runs_again_under_the_next_engine_attempt_C_34(void)
{
    struct story s;
    story_open(&s, HEAD "workflow:\n  - {step: start, tool: " SHELL "}\n");
    story_start(&s);
    buf_clear(&s.told);
    story_crash(&s);
    story_expect(&s, "[0] STEP_REDISPATCHED start/start_task 1.2\n");
    struct input late = {.kind = INPUT_RESULT, .ok = true, .step = 1, .logical = 1, .engine = 1};
    story_step(&s, &late);
    story_expect(&s, "[0] LATE_RESULT start/start_task 1.1\n");
    ok(&s, "start/start_task", "1");
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

static void a_visit_has_a_time_and_waits_have_none_to_lose(void)
{
    struct story s;
    story_open(&s, HEAD
               "workflow:\n  - step: start\n    spec: {policy: {lifecycle: {timeout_s: 5}}}\n    tool: " SHELL
               "\n    next: {arcs: [{step: nap, when: \"{{ event.name == 'step.failed' }}\"}]}\n  - {step: nap, tool: "
               "{kind: wait, seconds: 3}}\n");
    story_start(&s);
    story_timer(&s, "start");
    struct effect stop = story_take(&s, EFFECT_CANCEL, "start/start_task");
    CHECK_INT(stop.logical, 1);
    struct input input = {.fault = {.code = STR("CANCELLED"), .message = STR("stopped")}};
    story_answer(&s, "start/start_task", &input);
    CHECK_INT(count(&s, "STEP_FAILED start 1.1 TIMEOUT"), 1);
    story_timer(&s, "nap/nap_task");
    CHECK_INT(s.now, 8000);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

// That the time of a visit is over is in the ledger: an engine that dies of stopping what was in flight does not begin it again.
static void the_end_of_a_visits_time_survives_a_crash_T13(void)
{
    struct story s;
    story_open(&s, HEAD "workflow:\n  - step: start\n    spec: {policy: {lifecycle: {timeout_s: 5}}}\n    tool: " SHELL "\n");
    story_start(&s);
    story_timer(&s, "start");
    CHECK_INT(count(&s, "STEP_OVERDUE start"), 1);
    CHECK_INT(s.run->status, RUN_STATUS_RUNNING); // it is being stopped
    story_crash(&s);
    CHECK_INT(count(&s, "STEP_REDISPATCHED"), 0);
    CHECK_INT(count(&s, "STEP_FAILED start 1.1 TIMEOUT"), 1);
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    story_close(&s);
}

static void a_workload_that_cannot_be_made_is_why_the_run_failed(void)
{
    struct story s;
    story_open(&s, HEAD "workload: {a: \"{{ 1 / 0 }}\"}\nworkflow:\n  - {step: start, tool: " SHELL "}\n");
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
        &s, HEAD
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

static void a_long_loop_yields_between_turns_and_ends(void)
{
    struct story s;
    story_open(&s, HEAD
               "workflow:\n  - step: each\n    loop: {in: \"{{ range(2000) | list }}\", iterator: x}\n    tool: {kind: "
               "noop}\n");
    story_start(&s);
    int turns = 1;
    while (s.run->status == RUN_STATUS_RUNNING && turns < 100) {
        CHECK(s.effect_count > 0 && s.effects[0].timer == TIMER_LOOK);
        s.effect_count = 0;
        struct input input = {.kind = INPUT_RECOVER, .timer = TIMER_LOOK, .step = PROGRAM_TOP};
        arena_reset(&s.memory); // the fold is not held against the log in this one
        s.stored = NULL;
        s.stored_count = s.stored_capacity = 0;
        struct outcome out = {.turn = &s.turn};
        struct error err = {0};
        CHECK_OK(kernel_step(s.run, &s.holds, &input, &story_env, &out, &err), &err);
        for (size_t i = 0; i < out.effect_count; i++)
            if (out.effects[i].kind == EFFECT_TIMER) s.effects[s.effect_count++] = out.effects[i];
        turns++;
        arena_reset(&s.turn);
    }
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    CHECK(turns > 5 && turns < 20);
    story_close(&s);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(the_events_of_a_minimal_run_in_their_order_NX_5_1_NX_5_2_NX_3_1A_NX_3_1F),
        TEST(decisions_without_a_policy_are_told_unless_they_are_not_wanted_C_28),
        TEST(the_final_step_runs_when_nothing_else_is_left_whatever_came_out),
        TEST(a_retry_is_attempts_and_policy_decisions_NX_0C_NX_3_4N1_C_46),
        TEST(a_task_without_the_inputs_that_it_expects_does_not_begin_C_47),
        TEST(a_result_without_what_the_task_returns_is_an_error_C_47),
        TEST(numbers_that_are_templates_are_rendered_where_they_apply_C_46),
        TEST(as_many_iterations_at_once_as_a_template_says),
        TEST(a_policy_without_a_match_continues_unless_told_otherwise_C_46),
        TEST(jumps_go_round_until_a_break_and_a_task_has_one_outcome_per_run_NX_0E),
        TEST(exclusive_takes_the_first_inclusive_takes_all_NX_0F_NX_7_4),
        TEST(a_fan_in_waits_for_both_and_runs_once_C_48),
        TEST(a_fan_in_does_not_wait_for_a_branch_that_failed_C_48),
        TEST(a_failure_is_routed_by_an_arc_that_asks_for_it_C_47),
        TEST(a_refused_admission_skips_the_step_NX_3_6A),
        TEST(a_step_counts_once_however_often_it_was_visited_or_refused),
        TEST(a_workload_that_cannot_be_rendered_is_why_the_run_fails),
        TEST(a_step_may_be_visited_again_C_65),
        TEST(a_sequential_loop_keeps_its_order_NX_3_5A_NX_3_5F),
        TEST(a_parallel_loop_keeps_within_its_bound_and_survives_crashes_NX_3_5B_NX_2K),
        TEST(a_failed_iteration_ends_the_loop_or_does_not_NX_3_5E),
        TEST(ctx_is_written_once_by_a_parallel_loop_C_50),
        TEST(a_paused_playbook_starts_nothing_and_goes_on_C_27),
        TEST(a_cancelled_playbook_ends_when_nothing_runs_C_27),
        TEST(a_task_in_flight_at_a_crash_runs_again_under_the_next_engine_attempt_C_34),
        TEST(a_visit_has_a_time_and_waits_have_none_to_lose),
        TEST(the_end_of_a_visits_time_survives_a_crash_T13),
        TEST(a_workload_that_cannot_be_made_is_why_the_run_failed),
        TEST(an_input_cannot_ask_for_a_secret),
        TEST(a_long_loop_yields_between_turns_and_ends),
    };
    return test_main("kernel_net", tests, ARRAY_COUNT(tests), argc, argv);
}
