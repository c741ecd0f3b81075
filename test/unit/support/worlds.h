// Small documents and all their worlds: a world gives every step that is executed an outcome, and the kernel does the rest.
// Header-only: each test program includes it once.
#ifndef CAIRN_TEST_UNIT_SUPPORT_WORLDS_H
#define CAIRN_TEST_UNIT_SUPPORT_WORLDS_H

#include "harness/test.h"
#include "kernel/kernel.h"

#include <stdlib.h>

enum { STEPS_MAX = 6 };
// What steps put out and inputs are; a test may take others.
UNUSED static const char *const world_words[] = {"x", "y", "z"};
static const char *const *values = world_words;
static unsigned value_count = 3;

UNUSED static enum code no_blob(void *context, const struct digest *sha256, struct arena *arena, struct str *out,
                                struct error *err)
{
    (void)context, (void)sha256, (void)arena, (void)out;
    return error_set(err, E_NOT_FOUND, "none");
}
UNUSED static const struct kernel_env env = {.blob = no_blob};
UNUSED static const struct run_ids ids = {.tenant = {"t", 1},
                                          .project = {"p", 1},
                                          .environment = {"e", 1},
                                          .run = {"r1", 2},
                                          .plan_id = {"p", 1},
                                          .plan_version = {"1", 1}};

struct pending {
    struct effect effects[64];
    size_t count;
};

// Every outcome of the world. Failures only when nothing else is left to answer: then each step starts that can; or before all
// else. States (may be NULL) gets one of each step and the status of the run.
UNUSED static void run_world(const struct program *program, const unsigned *world, const char *input,
                             bool failures_first, bool *started, uint8_t *states)
{
    struct arena turn;
    struct pending todo = {.count = 0};
    struct run *run = run_new(program, &ids);
    struct run_holds holds = {0};
    CHECK(run);
    arena_init(&turn, 4096, 1 << 24);
    struct json inputs = json_object();
    CHECK(json_put(&turn, &inputs, STR("in"), json_string(str_from(input))));
    struct start_facts facts = {.document_sha256 = {program->sha256_hex, SHA256_HEX},
                                .document_kind = str_from(document_kind_name(program->kind)),
                                .inputs = inputs,
                                .artifacts_dir = STR("/a"),
                                .trigger_source = STR("manual"),
                                .triggered_by = STR("t")};
    struct input next = {.kind = INPUT_START, .start = &facts};
    for (;;) {
        struct outcome out = {.turn = &turn};
        struct error err = {0};
        CHECK_OK(kernel_step(run, &holds, &next, &env, &out, &err), &err);
        for (size_t i = 0; i < out.effect_count; i++) {
            if (out.effects[i].kind != EFFECT_EXECUTE) continue;
            started[out.effects[i].step] = true;
            CHECK(todo.count < 64);
            todo.effects[todo.count++] = out.effects[i];
        }
        if (todo.count == 0) break;
        size_t chosen = 0;
        for (size_t i = todo.count; i > 0; i--)
            if ((world[todo.effects[i - 1].step] < value_count) != failures_first) chosen = i - 1;
        struct effect e = todo.effects[chosen];
        todo.effects[chosen] = todo.effects[--todo.count];
        unsigned come = world[e.step];
        next = (struct input){.kind = INPUT_RESULT, .step = e.step, .logical = e.logical, .engine = e.engine};
        next.ok = come < value_count;
        next.value =
            program->steps[e.step].kind == STEP_NOOP ? json_null() : json_string(str_from(values[come % value_count]));
        next.fault = (struct fault){.code = STR("NO"), .message = STR("no")};
    }
    for (uint32_t i = 0; states && i < program->step_count; i++) states[i] = kernel_state(run, i);
    if (states) states[program->step_count] = (uint8_t)run->status;
    run_free(run);
    holds_release(&holds);
    arena_release(&turn);
}

UNUSED static unsigned pick(unsigned *seed, size_t count)
{
    return (unsigned)rand_r(seed) % (unsigned)count;
}

UNUSED static void add_condition(struct buf *text, unsigned *seed, const int *parents, int parent_count)
{
    static const char *const operators[] = {"==", "!="};
    const char *joint = "";
    if (pick(seed, 2)) return;
    buf_text(text, ", when: \"");
    for (unsigned n = 1 + pick(seed, 2); n > 0; n--) {
        bool input = parent_count == 0 || pick(seed, 2);
        buf_printf(text, "%s", joint);
        if (input)
            buf_text(text, "$INPUTS.in");
        else
            buf_printf(text, "$s%d.output", parents[pick(seed, (size_t)parent_count)]);
        buf_printf(text, " %s '%s'", operators[pick(seed, 2)], values[pick(seed, 2)]);
        joint = pick(seed, 2) ? " && " : " || ";
    }
    buf_byte(text, '"');
}

UNUSED static void random_document(struct buf *text, unsigned *seed, bool plan)
{
    static const char *const rules[] = {"all_success",  "all_success", "one_success", "none_failed_min_one_success",
                                        "all_done",     "all_failed",  "one_failed",  "none_failed",
                                        "none_skipped", "all_skipped", "one_done"};
    int count = 3 + (int)pick(seed, STEPS_MAX - 2);
    buf_printf(text, "%sinputs: { in: x }\n%s:\n", plan ? "planId: p\nplanVersion: 1\n" : "name: n\n",
               plan ? "steps" : "nodes");
    for (int i = 0; i < count; i++) {
        int parents[STEPS_MAX], parent_count = 0;
        bool noop = pick(seed, 4) == 0;
        if (plan)
            buf_printf(text, "  - { stepId: s%d, kind: %s, ", i, noop ? "noop" : "shell, with: { command: x }");
        else
            buf_printf(text, "  - { id: s%d, %s", i, noop ? "noop: true" : "bash: x");
        buf_text(text, plan ? "dependsOn: [" : ", depends_on: [");
        for (int k = 0; k < i; k++) {
            if (pick(seed, 3) == 0 || parent_count > 2) continue;
            buf_printf(text, "%ss%d", parent_count ? ", " : "", k);
            parents[parent_count++] = k;
        }
        buf_printf(text, "], %s: %s", plan ? "triggerRule" : "trigger_rule", rules[pick(seed, ARRAY_COUNT(rules))]);
        add_condition(text, seed, parents, parent_count);
        buf_text(text, " }\n");
    }
}

// The next world; false after the last. Start with all zeros. The number value_count is a failure.
UNUSED static bool next_world(const struct program *program, unsigned *world)
{
    for (uint32_t k = 0; k < program->step_count; k++) {
        if (program->steps[k].kind == STEP_NOOP) continue; // always succeeds
        if (++world[k] <= value_count) return true;
        world[k] = 0;
    }
    return false;
}

#endif
