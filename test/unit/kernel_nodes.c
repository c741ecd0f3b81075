// Node workflows in the kernel: everything decidable goes on after a failure, joins, loops, cancel nodes.
#include "support/story.h"

static void failure_does_not_stop_other_nodes_and_fails_the_run_EL_2d(void)
{
    struct story s;
    story_open(&s, "name: t\nnodes:\n  - {id: a, bash: x}\n  - {id: b, bash: x}\n  - {id: c, bash: x, depends_on: "
                   "[b]}\n  - {id: d, bash: x, depends_on: [a], trigger_rule: all_done}\n");
    story_start(&s);
    buf_clear(&s.told);
    story_fail(&s, "a", "EXIT_NONZERO", true);
    story_expect(&s, "[0] STEP_FAILED a 1.1 EXIT_NONZERO\n[0] STEP_STARTED d 1.1\n");
    story_done(&s, "b", NULL);
    story_expect(&s, "[0] STEP_COMPLETED b 1.1\n[0] STEP_STARTED c 1.1\n");
    story_done(&s, "d", NULL);
    story_done(&s, "c", NULL);
    story_expect(&s, "[0] STEP_COMPLETED d 1.1\n[0] STEP_COMPLETED c 1.1\n[0] RUN_FAILED EXIT_NONZERO\n");
    story_close(&s);
}

static void skip_spreads_to_all_success_and_stops_at_joins_that_accept_it_EL_2i(void)
{
    struct story s;
    story_open(
        &s,
        "name: t\nnodes:\n  - {id: a, bash: x}\n  - {id: b, bash: x, depends_on: [a], when: \"$a.output == 'no'\"}\n"
        "  - {id: c, bash: x, depends_on: [b]}\n  - {id: d, bash: x, depends_on: [a, b], trigger_rule: "
        "none_failed_min_one_success}\n");
    story_start(&s);
    buf_clear(&s.told);
    story_done(&s, "a", "\"yes\"");
    story_expect(&s, "[0] STEP_COMPLETED a 1.1\n[0] STEP_SKIPPED b CONDITION_FALSE\n[0] STEP_SKIPPED c "
                     "TRIGGER_RULE\n[0] STEP_STARTED d 1.1\n");
    story_done(&s, "d", NULL);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

static void run_without_a_completed_node_fails(void)
{
    struct story s;
    story_open(&s, "name: t\ninputs: {go: 'no'}\nnodes:\n  - {id: a, bash: x, when: \"$INPUTS.go == 'yes'\"}\n");
    struct error err = {0};
    CHECK_OK(json_parse(STR("{\"go\":\"no\"}"), &json_limits_default, &s.memory, &s.inputs, &err), &err);
    story_start(&s);
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    story_close(&s);
}

#define LOOP                                                                                                           \
    "name: t\nnodes:\n  - id: go\n    loop_group:\n      max_iterations: 3\n      until_bash: test\n      nodes:\n   " \
    "     - {id: tick, bash: x}\n        - {id: tock, bash: x, depends_on: [tick]}\n  - {id: after, bash: x, "         \
    "depends_on: [go]}\n"

static const char *until_id(const struct story *s)
{
    static char id[160];
    struct str name = s->program->steps[s->program->steps[0].until].id;
    memcpy(id, name.ptr, name.len);
    id[name.len] = '\0';
    return id;
}

static void loop_repeats_until_its_condition_holds(void)
{
    struct story s;
    story_open(&s, LOOP);
    story_start(&s);
    story_expect(
        &s,
        "[0] RUN_STARTED\n[0] STEP_STARTED go 1.1\n[0] ITERATION_STARTED go 1.1\n[0] STEP_STARTED go[1].tick 1.1\n");
    story_done(&s, "tick", NULL);
    story_done(&s, "tock", "\"one\"");
    buf_clear(&s.told);
    story_fail(&s, until_id(&s), "EXIT_NONZERO", false);
    CHECK(strstr(s.told.ptr, "[0] ITERATION_STARTED go 2.1\n[0] STEP_STARTED go[2].tick 1.1\n"));
    story_crash(&s);
    story_done(&s, "tick", NULL);
    story_done(&s, "tock", "\"two\"");
    story_done(&s, until_id(&s), "\"what it wrote\"");
    CHECK_INT(kernel_state(s.run, 0), NODE_SUCCESS);
    CHECK_STR(json_text(kernel_value(s.run, 0)), STR("two"));
    story_done(&s, "after", NULL);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    COVERED(condition_answered);
    story_close(&s);
}

static void loop_that_never_holds_fails_after_max_iterations(void)
{
    struct story s;
    story_open(&s, LOOP);
    story_start(&s);
    for (int i = 0; i < 3; i++) {
        story_done(&s, "tick", NULL);
        story_done(&s, "tock", NULL);
        story_fail(&s, until_id(&s), "EXIT_NONZERO", false);
    }
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    CHECK_STR(s.run->fault.code, STR("LOOP_EXHAUSTED"));
    COVERED(loop_exhausted);
    story_close(&s);
}

static void failed_child_fails_the_loop_after_its_siblings(void)
{
    struct story s;
    story_open(&s, LOOP);
    story_start(&s);
    story_fail(&s, "tick", "EXIT_NONZERO", true);
    // the until step still answers: it joins on all_done
    if (story_waits(&s, EFFECT_EXECUTE, until_id(&s))) story_done(&s, until_id(&s), "\"what it wrote\"");
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    story_close(&s);
}

static void cancel_node_cancels_the_run_EL_2e(void)
{
    struct story s;
    story_open(&s, "name: t\nnodes:\n  - {id: a, bash: x}\n  - {id: slow, bash: x}\n  - {id: stop, cancel: enough, "
                   "depends_on: [a]}\n");
    story_start(&s);
    buf_clear(&s.told);
    story_done(&s, "a", NULL);
    story_expect(&s, "[0] STEP_COMPLETED a 1.1\n[0] STEP_STARTED stop 1.1\n[0] STEP_COMPLETED stop 1.1\n");
    CHECK(story_waits(&s, EFFECT_CANCEL, "slow"));
    story_fail(&s, "slow", "CANCELLED", false);
    story_expect(&s, "[0] STEP_FAILED slow 1.1 CANCELLED\n[0] RUN_CANCELLED\n");
    CHECK_STR(s.run->cancel_reason, STR("enough"));
    story_close(&s);
}

static void resume_of_five_nodes_after_three_EL_3a_EL_3b_EL_3c_EL_3d(void)
{
    struct story s;
    story_open(&s, "name: t\nnodes:\n  - {id: n1, bash: x}\n  - {id: n2, bash: x, depends_on: [n1]}\n  - {id: n3, "
                   "bash: x, depends_on: [n2]}\n"
                   "  - {id: n4, bash: x, depends_on: [n3]}\n  - {id: n5, bash: x, depends_on: [n4]}\n");
    story_start(&s);
    story_done(&s, "n1", "\"one\"");
    story_done(&s, "n2", NULL);
    story_done(&s, "n3", NULL);
    buf_clear(&s.told);
    story_crash(&s);
    story_expect(&s, "[0] STEP_REDISPATCHED n4 1.2\n");
    CHECK_STR(json_text(kernel_value(s.run, 0)), STR("one"));
    story_done(&s, "n4", NULL);
    story_done(&s, "n5", NULL);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    story_close(&s);
}

static void reusable_steps_are_those_whose_parents_are_reused_C_22(void)
{
    struct story s;
    story_open(&s,
               "name: t\nnodes:\n  - {id: a, bash: x}\n  - {id: b, bash: x, always_run: true}\n  - {id: c, bash: x, "
               "depends_on: [a]}\n  - {id: d, bash: x, depends_on: [b]}\n  - {id: e, bash: x, depends_on: [c]}\n");
    story_start(&s);
    story_done(&s, "a", "\"A\"");
    story_done(&s, "b", NULL);
    story_done(&s, "c", NULL);
    story_done(&s, "d", NULL);
    story_fail(&s, "e", "X", false);
    CHECK_INT(s.run->status, RUN_STATUS_FAILED);
    struct reuse *reuse;
    uint32_t count;
    CHECK(kernel_reusable(s.run, &s.memory, &reuse, &count) == OK);
    CHECK_INT(count, 2);
    CHECK_STR(s.program->steps[reuse[0].step].id, STR("a"));
    CHECK_STR(s.program->steps[reuse[1].step].id, STR("c"));
    story_close(&s);
}

#define SKIPPED_BRANCH                                                                                                 \
    "name: t\nnodes:\n  - {id: a, bash: x}\n  - {id: b, bash: x, depends_on: [a], when: \"$a.output == 'no'\"}\n"      \
    "  - {id: c, bash: x, depends_on: [a, b], trigger_rule: none_failed_min_one_success}\n"                            \
    "  - {id: d, bash: x, depends_on: [c]}\n"

static void step_below_a_skipped_branch_is_reused_C_22(void)
{
    struct story s;
    story_open(&s, SKIPPED_BRANCH);
    story_start(&s);
    story_done(&s, "a", "\"yes\"");
    story_done(&s, "c", "\"C\"");
    story_fail(&s, "d", "X", false);
    struct reuse *reuse;
    uint32_t count;
    CHECK(kernel_reusable(s.run, &s.memory, &reuse, &count) == OK);
    struct story again;
    story_open(&again, SKIPPED_BRANCH);
    struct start_facts facts = {.document_sha256 = {again.program->sha256_hex, SHA256_HEX},
                                .document_kind = STR("nodes"),
                                .inputs = again.inputs};
    struct input input = {.kind = INPUT_START, .start = &facts, .reuse = reuse, .reuse_count = count};
    story_step(&again, &input);
    story_expect(&again, "[0] RUN_STARTED\n[0] STEP_STARTED a 1.1\n[0] STEP_COMPLETED a 1.1\n"
                         "[0] STEP_SKIPPED b CONDITION_FALSE\n[0] STEP_STARTED c 1.1\n[0] STEP_COMPLETED c 1.1\n"
                         "[0] STEP_STARTED d 1.1\n");
    story_close(&again);
    story_close(&s);
}

static void step_below_one_skipped_by_hand_is_not_reused(void)
{
    struct story s;
    story_open(&s, "name: t\nnodes:\n  - {id: a, wait: 1h}\n  - {id: b, bash: x, depends_on: [a], trigger_rule: "
                   "all_done}\n  - {id: c, bash: x, depends_on: [b]}\n");
    story_start(&s);
    story_signal(&s, SIGNAL_SKIP_STEP, "a");
    story_done(&s, "b", NULL);
    story_fail(&s, "c", "X", false);
    struct reuse *reuse;
    uint32_t count;
    CHECK(kernel_reusable(s.run, &s.memory, &reuse, &count) == OK);
    CHECK_INT(count, 0);
    story_close(&s);
}

static void condition_that_cannot_be_evaluated_is_not_tried_again(void)
{
    struct story s;
    story_open(&s, "name: t\nnodes:\n  - {id: a, bash: x}\n  - {id: b, bash: x, depends_on: [a], trigger_rule: "
                   "all_done, when: \"$a.output == 'x'\", retry: {max_attempts: 2, delay_ms: 1000, on_error: all}}\n");
    story_start(&s);
    buf_clear(&s.told);
    story_fail(&s, "a", "X", false);
    story_expect(&s, "[0] STEP_FAILED a 1.1 X\n[0] STEP_STARTED b 1.1\n"
                     "[0] STEP_FAILED b 1.1 REFERENCE_NOT_AVAILABLE\n[0] RUN_FAILED X\n");
    story_close(&s);
}

#define NESTED                                                                                                         \
    "name: t\nnodes:\n  - id: outer\n    loop_group:\n      max_iterations: 2\n      nodes:\n"                         \
    "        - {id: pre, bash: x}\n        - id: inner\n          depends_on: [pre]\n          loop_group:\n"          \
    "            max_iterations: 1\n            nodes:\n              - {id: x, bash: x}\n"

static void crash_in_an_outer_iteration_does_not_start_the_inner_loop_early(void)
{
    struct story s;
    story_open(&s, NESTED);
    story_start(&s);
    story_done(&s, "pre", NULL);
    story_done(&s, "x", "\"one\"");
    buf_clear(&s.told);
    story_crash(&s);
    story_expect(&s, "[0] STEP_REDISPATCHED outer[2].pre 1.2\n");
    story_done(&s, "pre", NULL);
    buf_clear(&s.told);
    story_done(&s, "x", "\"two\"");
    story_expect(&s, "[0] STEP_COMPLETED outer[2].inner[1].x 1.1\n[0] STEP_COMPLETED outer[2].inner 1.1\n"
                     "[0] STEP_COMPLETED outer 1.1\n[0] RUN_COMPLETED\n");
    CHECK_STR(json_text(kernel_value(s.run, 0)), STR("two"));
    story_close(&s);
}

static void loop_forgets_the_outputs_of_earlier_iterations(void)
{
    enum { SIZE = 60000, ITERATIONS = 100 };
    struct story s;
    story_open(&s, "name: t\nnodes:\n  - id: go\n    loop_group:\n      max_iterations: 101\n      nodes:\n"
                   "        - {id: x, bash: x}\n");
    story_start(&s);
    char *text = malloc(SIZE);
    CHECK(text);
    memset(text, 'x', SIZE);
    size_t first = 0;
    for (int i = 0; i < ITERATIONS; i++) {
        struct input input = {.ok = true, .value = json_string((struct str){text, SIZE})};
        // not story_answer: folding everything again after each iteration takes long
        struct effect e = story_take(&s, EFFECT_EXECUTE, "x");
        input.kind = INPUT_RESULT;
        input.step = e.step;
        input.logical = e.logical;
        input.engine = e.engine;
        arena_reset(&s.turn);
        struct outcome out = {.turn = &s.turn};
        struct error err = {0};
        CHECK_OK(kernel_step(s.run, &s.holds, &input, &story_env, &out, &err), &err);
        for (size_t k = 0; k < out.effect_count; k++) s.effects[s.effect_count++] = out.effects[k];
        size_t size = s.run->arena.size + s.run->nodes[0].outputs->size;
        if (i == 0) first = size;
        CHECK(size <= first + SIZE);
    }
    free(text);
    story_close(&s);
}

static void loop_tells_the_size_of_an_output_kept_as_a_blob(void)
{
    struct story s;
    story_open(&s, "name: t\nnodes:\n  - id: go\n    loop_group: {max_iterations: 1, nodes: [{id: x, bash: x}]}\n");
    story_start(&s);
    struct input input = {.ok = true, .has_blob = true, .blob = sha256(STR("b")), .blob_size = 70000};
    story_answer(&s, "x", &input);
    CHECK_INT(s.run->status, RUN_STATUS_COMPLETED);
    CHECK(kernel_blob(s.run, 0) && digest_eq(&kernel_blob(s.run, 0)->sha256, &input.blob));
    CHECK_INT(kernel_blob(s.run, 0)->size, 70000);
    struct reuse *reuse;
    uint32_t count;
    CHECK(kernel_reusable(s.run, &s.memory, &reuse, &count) == OK);
    CHECK_INT(count, 1);
    CHECK_INT(reuse[0].blob_size, 70000);
    story_close(&s);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(failure_does_not_stop_other_nodes_and_fails_the_run_EL_2d),
        TEST(skip_spreads_to_all_success_and_stops_at_joins_that_accept_it_EL_2i),
        TEST(run_without_a_completed_node_fails),
        TEST(loop_repeats_until_its_condition_holds),
        TEST(loop_that_never_holds_fails_after_max_iterations),
        TEST(failed_child_fails_the_loop_after_its_siblings),
        TEST(cancel_node_cancels_the_run_EL_2e),
        TEST(resume_of_five_nodes_after_three_EL_3a_EL_3b_EL_3c_EL_3d),
        TEST(reusable_steps_are_those_whose_parents_are_reused_C_22),
        TEST(step_below_a_skipped_branch_is_reused_C_22),
        TEST(step_below_one_skipped_by_hand_is_not_reused),
        TEST(condition_that_cannot_be_evaluated_is_not_tried_again),
        TEST(crash_in_an_outer_iteration_does_not_start_the_inner_loop_early),
        TEST(loop_forgets_the_outputs_of_earlier_iterations),
        TEST(loop_tells_the_size_of_an_output_kept_as_a_blob),
    };
    return test_main("kernel_nodes", tests, ARRAY_COUNT(tests), argc, argv);
}
