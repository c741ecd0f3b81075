// Loops of playbooks in the kernel: order, how many at once, failures, what they write.
#include "unit/support/playbook_kit.h"

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
                       NET_HEAD
                       "workload: {k: 2, items: [1, 2, 3]}\nworkflow:\n  - {step: start, loop: {in: '{{ items }}', "
                       "iterator: i, spec: {mode: parallel, max_in_flight: '%s'}}, tool: " NET_SHELL "}\n",
                       cases[i].most);
        story_open(&s, text);
        story_start(&s);
        CHECK_INT(s.run->in_flight, cases[i].open);
        CHECK_INT(s.run->status, cases[i].open ? RUN_STATUS_RUNNING : RUN_STATUS_FAILED);
        story_close(&s);
    }
}

static void a_sequential_loop_keeps_its_order_NX_3_5A_NX_3_5F(void)
{
    struct story s;
    story_open(&s, NET_LOOP("mode: sequential"));
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
        net_ok(&s, path, value);
    }
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    CHECK_INT(net_ctx(&s, "sum"), 100);
    CHECK_INT(told_count(&s, "LOOP_DONE"), 1);
    story_close(&s);
}

static void a_parallel_loop_keeps_within_its_bound_and_survives_crashes_NX_3_5B_NX_2K(void)
{
    struct story s;
    story_open(&s, NET_LOOP("mode: parallel, max_in_flight: 2"));
    story_start(&s);
    CHECK(story_waits(&s, EFFECT_EXECUTE, "each[2]/t") && !story_waits(&s, EFFECT_EXECUTE, "each[3]/t"));
    net_ok(&s, "each[2]/t", "2");
    story_crash(&s);
    CHECK(!story_waits(&s, EFFECT_EXECUTE, "each[2]/t")); // never twice
    net_ok(&s, "each[3]/t", "3");
    net_ok(&s, "each[4]/t", "4");
    net_ok(&s, "each[1]/t", "1");
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    CHECK_INT(net_ctx(&s, "sum"), 10);
    CHECK_INT(told_count(&s, "TASK_DONE each[2]/t"), 1);
    story_close(&s);
}

static void a_failed_iteration_ends_the_loop_or_does_not_NX_3_5E(void)
{
    for (int best = 0; best < 2; best++) {
        struct story s;
        char text[1024];
        snprintf(text, sizeof(text),
                 NET_HEAD "workload: {xs: [1, 2, 3]}\nworkflow:\n  - step: each\n    spec: {policy: {failure: {mode: "
                      "%s}}}\n    loop: {in: "
                      "\"{{ xs }}\", iterator: x}\n    tool: {name: t, kind: shell, cmds: x}\n",
                 best ? "best_effort" : "fail_fast");
        story_open(&s, text);
        story_start(&s);
        net_bad(&s, "each[1]/t", "unknown", false);
        CHECK(story_waits(&s, EFFECT_EXECUTE, "each[2]/t") == best);
        if (best) {
            net_ok(&s, "each[2]/t", "1");
            net_ok(&s, "each[3]/t", "1");
        }
        CHECK_INT(s.run->status, best ? RUN_STATUS_COMPLETED : RUN_STATUS_FAILED);
        story_close(&s);
    }
}

static void ctx_is_written_once_by_a_parallel_loop_C_50(void)
{
    struct story s;
    story_open(
        &s, NET_HEAD
        "workload: {xs: [1, 2]}\nworkflow:\n  - step: each\n    loop: {in: \"{{ xs }}\", iterator: x, spec: {mode: "
        "parallel, max_in_flight: 2}}\n    tool: {name: t, kind: shell, cmds: x, spec: {policy: {rules: [{else: {then: "
        "{do: continue, set: {ctx.who: \"{{ iter.x }}\"}}}}]}}}\n");
    story_start(&s);
    net_ok(&s, "each[1]/t", "1");
    net_ok(&s, "each[2]/t", "1");
    CHECK_INT(told_count(&s, "ITERATION_FAILED each[2] 1.1 ctx_conflict"), 1);
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    CHECK_INT(net_ctx(&s, "who"), 1);
    story_close(&s);
}

static void a_long_loop_yields_between_turns_and_ends(void)
{
    struct story s;
    story_open(&s, NET_HEAD
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
        TEST(as_many_iterations_at_once_as_a_template_says),
        TEST(a_sequential_loop_keeps_its_order_NX_3_5A_NX_3_5F),
        TEST(a_parallel_loop_keeps_within_its_bound_and_survives_crashes_NX_3_5B_NX_2K),
        TEST(a_failed_iteration_ends_the_loop_or_does_not_NX_3_5E),
        TEST(ctx_is_written_once_by_a_parallel_loop_C_50),
        TEST(a_long_loop_yields_between_turns_and_ends),
    };
    return test_main("kernel_net_loops", tests, ARRAY_COUNT(tests), argc, argv);
}
