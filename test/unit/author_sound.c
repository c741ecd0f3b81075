// Soundness: each finding on a document that shows it, and the proof method itself against the kernel: for random small
// documents every world is run, and what ever started must be exactly what is said to be reachable.
#include "program_kit.h"

#include "author/author.h"
#include "support/worlds.h"

static struct kit kit;

static void prove(const char *text)
{
    struct error err = {0};
    kit_must_load(&kit, text);
    CHECK_OK(sound_check(kit.program, &kit.diagnostics, &err), &err);
}

static void finds(const char *text, const char *id, const char *part, const char *in_note)
{
    prove(text);
    for (size_t i = 0; i < kit.diagnostics.count; i++) {
        const struct diagnostic *d = &kit.diagnostics.items[i];
        if (strcmp(d->id, id) == 0 && strstr(d->message.ptr, part) && d->line > 0 && strstr(d->note.ptr, in_note)) {
            kit_release(&kit);
            return;
        }
    }
    test_fail(__FILE__, __LINE__, "no %s \"%s\" (%s) in\n%s\n%s", id, part, in_note, text,
              kit_shown(&kit, str_from(text)).ptr);
}

static void finds_nothing(const char *text)
{
    prove(text);
    if (kit.diagnostics.count) test_fail(__FILE__, __LINE__, "%s\n%s", text, kit_shown(&kit, str_from(text)).ptr);
    kit_release(&kit);
}

#define NODES "name: n\ninputs: { env: test }\nnodes:\n"
#define BRANCHES                                                                                                       \
    NODES "  - { id: a, bash: x, when: \"$INPUTS.env == 'prod'\" }\n"                                                  \
          "  - { id: b, bash: x, when: \"$INPUTS.env == 'test'\" }\n"

static void joins_below_exclusive_branches(void)
{
    finds(BRANCHES "  - { id: j, bash: x, depends_on: [a, b] }\n", "E0602", "\"j\" can never run",
          "when a succeeds ($INPUTS.env = 'prod'), b is skipped");
    finds_nothing(BRANCHES "  - { id: j, bash: x, depends_on: [a, b], trigger_rule: none_failed_min_one_success }\n");
    prove(BRANCHES "  - { id: j, bash: x, depends_on: [a, b] }\n  - { id: k, bash: x, depends_on: [j] }\n");
    CHECK(strstr(kit_found(&kit, "E0602")->hint.ptr, "with the trigger rule none_failed_min_one_success it can run"));
    CHECK(strstr(kit_found(&kit, "E0602")->note.ptr, "so these can never run either: k"));
    kit_release(&kit);
    finds_nothing(BRANCHES "  - { id: k, bash: x, depends_on: [a, b], trigger_rule: all_skipped }\n");
}

static void rules_that_parents_cannot_satisfy(void)
{
    finds(NODES "  - { id: a, noop: true }\n  - { id: h, bash: x, depends_on: [a], trigger_rule: one_failed }\n",
          "E0602", "one_failed", "no assignment of outcomes of a reaches it: a: success");
    finds(NODES "  - { id: a, cancel: no }\n  - { id: h, bash: x, depends_on: [a] }\n", "E0602", "ends the run",
          "a: ends the run");
    finds(NODES "  - { id: a, noop: true }\n  - { id: h, approval: go, depends_on: [a], trigger_rule: all_skipped }\n",
          "E0604", "nobody is ever asked for the approval \"h\"", "a: success");
    finds(NODES "  - { id: a, noop: true }\n  - { id: h, bash: x, depends_on: [a], trigger_rule: one_failed }\n",
          "E0605", "what \"a\" produces reaches nobody: h", "");
}

static void conditions_that_never_hold(void)
{
    finds(NODES
          "  - { id: a, bash: x }\n  - { id: b, bash: x, depends_on: [a], when: \"$a.output > 5 && $a.output < 3\" "
          "}\n",
          "E0603", "its condition is never true", "no value satisfies");
    finds(NODES "  - { id: a, bash: x }\n"
                "  - { id: b, bash: x, depends_on: [a], when: \"$a.output == 'x'\" }\n"
                "  - { id: c, bash: x, depends_on: [b], when: \"$a.output == 'y'\" }\n",
          "E0603", "whenever its trigger rule passes", "when b succeeds ($a.output = 'x'), the condition is false");
    finds(NODES "  - { id: a, echo: { n: 4 } }\n  - { id: b, bash: x, depends_on: [a], when: \"$a.output.n > 4\" }\n",
          "E0603", "never true", "");
    finds_nothing(
        NODES "  - { id: a, echo: { n: 5 } }\n  - { id: b, bash: x, depends_on: [a], when: \"$a.output.n > 4\" }\n");
    finds_nothing(NODES "  - { id: a, bash: x }\n"
                        "  - { id: b, bash: x, depends_on: [a], when: \"$a.output <= 3 && $a.output != '3'\" }\n"
                        "  - { id: c, bash: x, depends_on: [b], when: \"$a.output >= 3\" }\n"); // '3.0'
}

static void what_a_failed_plan_does_not_start(void)
{
    static const char plan[] = "planId: p\nplanVersion: 1\nsteps:\n"
                               "  - { stepId: a, kind: shell, with: { command: x }, dependsOn: [] }\n"
                               "  - { stepId: h, kind: noop, dependsOn: [a], triggerRule: one_failed }\n"
                               "  - { stepId: k, kind: noop, dependsOn: [h] }\n";
    finds(plan, "E0601", "\"k\" can never run: by the time", "");
    finds_nothing(NODES "  - { id: a, bash: x }\n  - { id: h, noop: true, depends_on: [a], trigger_rule: one_failed }\n"
                        "  - { id: k, noop: true, depends_on: [h] }\n");
}

static void retries_timeouts_and_loops(void)
{
    finds(NODES "  - { id: a, echo: hi, retry: { max_attempts: 1 } }\n", "E0606", "it cannot fail", "");
    finds(NODES "  - { id: a, approval: hi, retry: { max_attempts: 1 } }\n", "E0606", "transient", "");
    finds_nothing(NODES "  - { id: a, approval: hi, retry: { max_attempts: 1, on_error: all } }\n");
    finds(NODES "  - { id: a, wait: 2s, timeout: 1s }\n", "E0607", "always fails", "");
    finds(NODES
          "  - id: l\n    loop_group: { max_iterations: 3, until_bash: \"false\", nodes: [{ id: t, noop: true }] }\n",
          "E0608", "can only fail", "");
    finds(NODES
          "  - id: l\n    loop_group: { max_iterations: 3, until_bash: exit 0, nodes: [{ id: t, noop: true }] }\n",
          "E0608", "never repeats", "");
    finds(NODES "  - id: l\n    loop_group:\n      max_iterations: 3\n      nodes:\n        - { id: t, noop: true }\n"
                "        - { id: u, bash: x, depends_on: [t], trigger_rule: all_failed }\n",
          "E0602", "\"u\" can never run", "");
}

// ---- against the kernel

static void brute_force(const struct program *program, bool *started)
{
    unsigned world[STEPS_MAX] = {0};
    do
        for (size_t i = 0; i < value_count; i++) run_world(program, world, values[i], false, started, NULL);
    while (next_world(program, world));
}

static void compare_with_kernel(const char *text, int *dead, int *alive)
{
    bool started[STEPS_MAX] = {false};
    enum sound_answer answers[STEPS_MAX];
    struct error err = {0};
    kit_must_load(&kit, text);
    CHECK_OK(sound_reach(kit.program, &kit.arena, answers, &err), &err);
    brute_force(kit.program, started);
    for (uint32_t i = 0; i < kit.program->step_count; i++) {
        CHECK(answers[i] != SOUND_UNKNOWN);
        if (started[i] != (answers[i] == SOUND_YES))
            test_fail(__FILE__, __LINE__, "s%u %s\n%s", i, started[i] ? "starts in some world" : "never starts", text);
        *dead += !started[i];
        *alive += started[i];
    }
}

// The same with numbers, where more values have to be told apart: below, between, above, and the same in other letters.
static void reachable_by_numbers(void)
{
    static const char *const numbers[] = {"x", "0", "1", "1.0", "1.5", "2", "2.0", "3"};
    static const char *const operators[] = {"==", "!=", "<", ">", "<=", ">="};
    static const char *const constants[] = {"1", "2", "1.0", "'x'"};
    unsigned seed = 3;
    int dead = 0, alive = 0;
    values = numbers;
    value_count = ARRAY_COUNT(numbers);
    for (int round = 0; round < 60; round++) {
        struct buf text;
        buf_init(&text, 4096);
        buf_text(&text, "name: n\ninputs: { in: x }\nnodes:\n  - { id: s0, bash: x }\n");
        for (int i = 1; i < 4; i++) {
            buf_printf(&text, "  - { id: s%d, noop: true, depends_on: [s%d], when: \"", i, i - 1);
            for (unsigned n = 2 + pick(&seed, 2); n > 0; n--)
                buf_printf(&text, "%s %s %s%s", pick(&seed, 3) ? "$s0.output" : "$INPUTS.in", operators[pick(&seed, 6)],
                           constants[pick(&seed, 4)], n > 1 ? (pick(&seed, 4) ? " && " : " || ") : "");
            buf_text(&text, "\" }\n");
        }
        compare_with_kernel(text.ptr, &dead, &alive);
        buf_release(&text);
    }
    CHECK(dead > 20 && alive > 100);
    kit_release(&kit);
}

static void reachable_is_what_the_kernel_starts(void)
{
    unsigned seed = 20;
    int dead = 0, alive = 0;
    for (int round = 0; round < 240; round++) {
        struct buf text;
        buf_init(&text, 1 << 16);
        random_document(&text, &seed, round % 2 == 0);
        compare_with_kernel(text.ptr, &dead, &alive);
        buf_release(&text);
    }
    CHECK(dead > 40 && alive > 400);
    kit_release(&kit);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(joins_below_exclusive_branches), TEST(rules_that_parents_cannot_satisfy),
        TEST(conditions_that_never_hold),     TEST(what_a_failed_plan_does_not_start),
        TEST(retries_timeouts_and_loops),     TEST(reachable_is_what_the_kernel_starts),
        TEST(reachable_by_numbers),
    };
    return test_main("author_sound", tests, ARRAY_COUNT(tests), argc, argv);
}
