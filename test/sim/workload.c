#include "sim/workload.h"

#include "program/net.h"
#include "sim/workload_net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Plans are written as YAML as well, which the reader takes: one line a step.
#define PLAN(id, more) "metadata: {planId: " id ", planVersion: '1', schemaVersion: v1.2" more "}\nsteps:\n"
#define STEP(id, kind, deps, with, more)                                                                               \
    "  - {stepId: " id ", kind: " kind ", dependsOn: [" deps "], with: {" with "}" more "}\n"
#define SHELL(id, deps, more) STEP(id, "shell", deps, "command: do " id, more)
#define RETRY(n, delay) ", retry: {maxAttempts: " n ", delay: " delay ", backoff: exponential, on: transient}"

// clang-format off
static const char child_text[] = PLAN("child", "") SHELL("c1", "", RETRY("2", "50ms")) SHELL("c2", "c1", "");

static const char linear_text[] = PLAN("linear", "") SHELL("a", "", "") SHELL("b", "a", "") SHELL("c", "b", "");

static const char single_text[] = PLAN("single", "") SHELL("a", "", "");

static const char diamond_text[] = PLAN("diamond", "")
    SHELL("a", "", "") SHELL("b", "a", "") SHELL("c", "a", "") SHELL("d", "b, c", "");

static const char retry_text[] = PLAN("retry", "") SHELL("a", "", RETRY("3", "100ms")) SHELL("b", "a", RETRY("2", "0ms"));

static const char hold_text[] = PLAN("hold", ", onStepFailure: hold")
    SHELL("a", "", "") SHELL("b", "a", RETRY("2", "1s")) SHELL("x", "", "");

static const char when_text[] = PLAN("when", "")
    SHELL("ask", "", "")
    SHELL("yes", "ask", ", when: \"$ask.output == 'yes'\"")
    SHELL("no", "ask", ", when: \"$ask.output == 'no'\"")
    SHELL("end", "yes, no", ", triggerRule: none_failed_min_one_success");

static const char rules_text[] = PLAN("rules", "")
    SHELL("a", "", "")
    SHELL("b", "", "")
    SHELL("both", "a, b", "")
    SHELL("either", "a, b", ", triggerRule: one_success")
    SHELL("broken", "a, b", ", triggerRule: one_failed")
    SHELL("tidy", "both, either", ", triggerRule: all_done");

static const char wait_text[] = PLAN("wait", "")
    SHELL("a", "", "") STEP("nap", "wait", "a", "duration: 5s", "") SHELL("b", "nap", "");

static const char approval_text[] = PLAN("approval", "")
    SHELL("a", "", "")
    STEP("gate", "approval", "a", "message: ok, timeout: 30s, onTimeout: reject", "")
    STEP("open", "approval", "a", "message: ok", "")
    SHELL("b", "gate, open", "");

static const char event_text[] = PLAN("event", "")
    SHELL("a", "", "")
    STEP("paid", "event", "a", "name: payment, correlation: $a.output", "")
    STEP("late", "event", "a", "name: call", ", timeout: 30s")
    SHELL("b", "paid, late", "");

static const char subrun_text[] = PLAN("parent", "")
    SHELL("a", "", "") STEP("sub", "subrun", "a", "document: child", "") SHELL("b", "sub", "");

static const char children_text[] = PLAN("children", "")
    STEP("one", "subrun", "", "document: child", ", timeout: 10s, retry: {maxAttempts: 2, delay: 0ms}")
    STEP("two", "subrun", "", "document: child", ", onStepFailure: hold")
    SHELL("last", "one, two", ", triggerRule: all_done");

static const char gated_text[] = PLAN("gated", ", requiresApproval: true") SHELL("a", "", "") SHELL("b", "a", "");

static const char timeout_text[] = PLAN("timeout", "")
    SHELL("a", "", ", timeout: 2s" RETRY("2", "500ms")) SHELL("b", "a", ", timeout: 1s");

static const char instant_text[] = PLAN("instant", "")
    STEP("n", "noop", "", "", "")
    STEP("e", "echo", "n", "message: hi", "")
    STEP("m", "merge", "n, e", "", "")
    SHELL("s", "m", "");

static const char host_text[] = PLAN("host", "")
    STEP("a", "work", "", "x: 1", RETRY("2", "100ms")) STEP("b", "work", "a", "of: $a.output", ", timeout: 2s") SHELL("c", "b", "");

// Most of its life it waits for the next attempt: pauses, clocks that are set and crashes fall into that time.
static const char patient_text[] = PLAN("patient", "")
    SHELL("p1", "", RETRY("9", "500ms")) SHELL("p2", "", RETRY("9", "1s")) SHELL("p3", "", RETRY("9", "2s"))
    SHELL("p4", "", RETRY("9", "4s")) SHELL("p5", "", RETRY("9", "8s")) SHELL("p6", "", RETRY("9", "16s"))
    SHELL("p7", "", RETRY("9", "500ms")) SHELL("p8", "", RETRY("9", "1s")) SHELL("p9", "", RETRY("9", "2s"));

static const char fan_text[] = PLAN("fan", "")
    SHELL("f1", "", "") SHELL("f2", "", "") SHELL("f3", "", "") SHELL("f4", "", "") SHELL("f5", "", "")
    SHELL("f6", "", "") SHELL("f7", "", "") SHELL("f8", "", "") SHELL("f9", "", "") SHELL("f10", "", "")
    SHELL("f11", "", "") SHELL("f12", "", "") SHELL("f13", "", "") SHELL("f14", "", "") SHELL("f15", "", "")
    SHELL("f16", "", "") SHELL("f17", "", "") SHELL("f18", "", "") SHELL("f19", "", "") SHELL("f20", "", "")
    STEP("join", "merge", "f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19, f20", "",
         ", triggerRule: all_done");
// clang-format on

static const char loop_text[] = "name: looper\n"
                                "nodes:\n"
                                "  - id: before\n"
                                "    bash: do before\n"
                                "  - id: again\n"
                                "    depends_on: [before]\n"
                                "    loop_group:\n"
                                "      max_iterations: 3\n"
                                "      until_bash: test done\n"
                                "      nodes:\n"
                                "        - id: tick\n"
                                "          bash: do tick\n"
                                "        - id: tock\n"
                                "          depends_on: [tick]\n"
                                "          bash: do tock\n"
                                "          retry: {max_attempts: 1, delay_ms: 1000}\n"
                                "  - id: after\n"
                                "    depends_on: [again]\n"
                                "    bash: do after\n";

static const char cancel_text[] = "name: stopper\n"
                                  "nodes:\n"
                                  "  - id: ask\n"
                                  "    bash: do ask\n"
                                  "  - id: slow\n"
                                  "    bash: do slow\n"
                                  "  - id: stop\n"
                                  "    depends_on: [ask]\n"
                                  "    when: \"$ask.output == 'no'\"\n"
                                  "    cancel: not wanted\n"
                                  "  - id: go\n"
                                  "    depends_on: [ask]\n"
                                  "    when: \"$ask.output == 'yes'\"\n"
                                  "    bash: do go\n";

static const char mixed_text[] = "name: mixed\n"
                                 "nodes:\n"
                                 "  - id: ask\n"
                                 "    bash: do ask\n"
                                 "    retry: {max_attempts: 2, delay_ms: 1000}\n"
                                 "  - id: nap\n"
                                 "    wait: 3s\n"
                                 "  - id: gate\n"
                                 "    depends_on: [ask]\n"
                                 "    approval: {message: go on, timeout: 60000, on_timeout: approve}\n"
                                 "  - id: part\n"
                                 "    depends_on: [ask]\n"
                                 "    when: \"$ask.output == 'yes'\"\n"
                                 "    bash: do part\n"
                                 "  - id: spin\n"
                                 "    depends_on: [nap]\n"
                                 "    loop_group:\n"
                                 "      max_iterations: 2\n"
                                 "      nodes:\n"
                                 "        - id: turn\n"
                                 "          bash: do turn\n"
                                 "  - id: all\n"
                                 "    depends_on: [gate, part, spin]\n"
                                 "    trigger_rule: all_done\n"
                                 "    echo: done\n";

static const char nested_text[] = "name: nested\n"
                                  "nodes:\n"
                                  "  - id: outer\n"
                                  "    loop_group:\n"
                                  "      max_iterations: 3\n"
                                  "      until_bash: test all\n"
                                  "      nodes:\n"
                                  "        - id: prepare\n"
                                  "          bash: do prepare\n"
                                  "        - id: inner\n"
                                  "          depends_on: [prepare]\n"
                                  "          loop_group:\n"
                                  "            max_iterations: 2\n"
                                  "            nodes:\n"
                                  "              - id: ask\n"
                                  "                bash: do ask\n"
                                  "                retry: {max_attempts: 2, delay_ms: 500}\n"
                                  "              - id: maybe\n"
                                  "                depends_on: [ask]\n"
                                  "                when: \"$ask.output == 'yes'\"\n"
                                  "                bash: do maybe\n"
                                  "              - id: tidy\n"
                                  "                depends_on: [ask, maybe]\n"
                                  "                trigger_rule: all_done\n"
                                  "                bash: do tidy\n"
                                  "  - id: after\n"
                                  "    depends_on: [outer]\n"
                                  "    trigger_rule: all_done\n"
                                  "    bash: do after\n";

// Lists of child runs, of which any may fail; one list is tried again, one has a time limit.
static const char spread_text[] = "name: spread\n"
                                  "nodes:\n"
                                  "  - id: all\n"
                                  "    workflow: child\n"
                                  "    fan_out: {items: [1, 2, 3], max_parallel: 2, join: all_success}\n"
                                  "    retry: {max_attempts: 1, delay_ms: 1000}\n"
                                  "  - id: some\n"
                                  "    workflow: child\n"
                                  "    fan_out: {items: [1, 2], max_parallel: 1}\n"
                                  "    timeout: 10000\n"
                                  "  - id: last\n"
                                  "    depends_on: [all, some]\n"
                                  "    trigger_rule: all_done\n"
                                  "    bash: do last\n";

// Of all runs, one attempt of these at a time (L4).
static const char limited_text[] = "limits: {one: {concurrency: 1}}\n" PLAN("limited", "")
    SHELL("one_a", "", ", limit: one, timeout: 5s") SHELL("one_b", "", RETRY("2", "50ms") ", limit: one, timeout: 5s")
    SHELL("c", "one_a", "");

static const struct workload workloads[WORKLOAD_COUNT] = {
    [WORKLOAD_LINEAR] = {"linear", linear_text, true},
    [WORKLOAD_DIAMOND] = {"diamond", diamond_text, true},
    [WORKLOAD_RETRY] = {"retry", retry_text, true},
    [WORKLOAD_HOLD] = {"hold", hold_text, false},
    [WORKLOAD_WHEN] = {"when", when_text, true},
    [WORKLOAD_RULES] = {"rules", rules_text, false},
    [WORKLOAD_WAIT] = {"wait", wait_text, true},
    [WORKLOAD_APPROVAL] = {"approval", approval_text, false},
    [WORKLOAD_LOOP] = {"loop", loop_text, false},
    [WORKLOAD_SUBRUN] = {"subrun", subrun_text, false},
    [WORKLOAD_CANCEL] = {"cancel", cancel_text, false},
    [WORKLOAD_FAN] = {"fan", fan_text, false},
    [WORKLOAD_MIXED] = {"mixed", mixed_text, false},
    [WORKLOAD_GATED] = {"gated", gated_text, false},
    [WORKLOAD_TIMEOUT] = {"timeout", timeout_text, false},
    [WORKLOAD_INSTANT] = {"instant", instant_text, true},
    [WORKLOAD_CHILDREN] = {"children", children_text, false},
    [WORKLOAD_NESTED] = {"nested", nested_text, false},
    [WORKLOAD_SINGLE] = {"single", single_text, true},
    [WORKLOAD_HOST] = {"host", host_text, true},
    [WORKLOAD_PATIENT] = {"patient", patient_text, false},
    [WORKLOAD_SPREAD] = {"spread", spread_text, false},
    [WORKLOAD_EVENT] = {"event", event_text, false},
    [WORKLOAD_NET_LINE] = {"net_line", net_line_text, true, true},
    [WORKLOAD_NET_RETRY] = {"net_retry", net_retry_text, true, true},
    [WORKLOAD_NET_BARRIER] = {"net_barrier", net_barrier_text, true, true},
    [WORKLOAD_NET_LOOP] = {"net_loop", net_loop_text, true, true},
    [WORKLOAD_NET_PAGES] = {"net_pages", net_pages_text, true, true},
    [WORKLOAD_NET_ROUNDS] = {"net_rounds", net_rounds_text, true, true},
    [WORKLOAD_NET_FAILURE] = {"net_failure", net_failure_text, false, false}, // good2 may be visited once or twice
    [WORKLOAD_NET_TIMES] = {"net_times", net_times_text, false, false},
    [WORKLOAD_NET_CHILD] = {"net_child", net_calls_text, false, true},
    [WORKLOAD_NET_BIG] = {"net_big", net_big_text, false, true},
    [WORKLOAD_LIMITED] = {"limited", limited_text, false},
};

static struct program *programs[WORKLOAD_COUNT];

const struct workload *workload_at(enum workload_id id)
{
    return &workloads[id];
}

enum workload_id workload_find(struct str name)
{
    for (int i = 0; i < WORKLOAD_COUNT; i++)
        if (str_is(name, workloads[i].name)) return (enum workload_id)i;
    return WORKLOAD_COUNT;
}

static enum code load_child(void *context, struct program_part *part, struct arena *arena, struct error *err)
{
    (void)context, (void)arena;
    bool book = str_is(part->request, "book");
    if (!book && !str_is(part->request, "child"))
        return error_set(err, E_NOT_FOUND, "no document \"%.*s\"", STR_ARG(part->request));
    part->file = book ? STR("child.yaml") : STR("child.json");
    part->text = book ? STR(net_child_text) : STR(child_text);
    return OK;
}

static bool is_work(void *context, struct str kind)
{
    (void)context;
    return str_is(kind, "work");
}

void workloads_load(void)
{
    struct program_loader loader = {.load = load_child, .host_kind = is_work};
    for (int i = 0; i < WORKLOAD_COUNT; i++) {
        struct arena arena;
        arena_init(&arena, 4096, (size_t)16 << 20);
        struct diagnostics diagnostics;
        diagnostics_init(&diagnostics, &arena);
        struct error err = {0};
        enum code rc = program_load(str_from(workloads[i].text), str_from(workloads[i].name), &loader, &diagnostics,
                                    &programs[i], &err);
        if (rc) {
            fprintf(stderr, "sim: workload %s does not compile: %s\n", workloads[i].name, err.message);
            for (size_t k = 0; k < diagnostics.count; k++) {
                const struct diagnostic *d = &diagnostics.items[k];
                fprintf(stderr, "  %u:%u %.*s\n", d->line, d->column, STR_ARG(d->message));
            }
            exit(2);
        }
        arena_release(&arena);
    }
}

void workloads_release(void)
{
    for (int i = 0; i < WORKLOAD_COUNT; i++) program_release(programs[i]);
    memset(programs, 0, sizeof(programs));
}

struct program *workload_program(enum workload_id id)
{
    return programs[id];
}

enum workload_id workload_of(const struct program *program)
{
    for (int i = 0; i < WORKLOAD_COUNT; i++)
        if (programs[i] == program) return (enum workload_id)i;
    return WORKLOAD_COUNT;
}

static const struct program *child_of(const struct program *program, uint32_t step, const struct digest *sha256)
{
    const struct program *child = program->steps[step].child;
    if (child && digest_eq(&child->sha256, sha256)) return child;
    for (uint32_t i = 0; program->net && i < program->net->steps[step].task_count; i++) {
        child = program->net->steps[step].tasks[i].child;
        if (child && digest_eq(&child->sha256, sha256)) return child;
    }
    return NULL;
}

const struct program *workload_by_document(const struct digest *sha256)
{
    for (int i = 0; i < WORKLOAD_COUNT; i++) {
        if (digest_eq(&programs[i]->sha256, sha256)) return programs[i];
        for (uint32_t k = 0; k < programs[i]->step_count; k++) {
            const struct program *child = child_of(programs[i], k, sha256);
            if (child) return child;
        }
    }
    return NULL;
}
