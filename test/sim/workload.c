#include "sim/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PLAN(id, more, steps)                                                                                          \
    "{\"metadata\":{\"planId\":\"" id "\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"" more "},\"steps\":[" steps "]}"
#define SHELL(id, deps, more) "{\"stepId\":\"" id "\",\"kind\":\"shell\",\"dependsOn\":[" deps "],\"with\":{\"command\":\"do " id "\"}" more "}"
#define RETRY(n, delay) ",\"retry\":{\"maxAttempts\":" n ",\"delay\":\"" delay "\",\"backoff\":\"exponential\",\"on\":\"transient\"}"

static const char child_text[] = PLAN("child", "", SHELL("c1", "", RETRY("2", "50ms")) "," SHELL("c2", "\"c1\"", ""));

static const char fan_text[] =
    PLAN("fan", "",
         SHELL("f1", "", "") "," SHELL("f2", "", "") "," SHELL("f3", "", "") "," SHELL("f4", "", "") "," SHELL("f5", "", "") "," SHELL(
             "f6", "", "") "," SHELL("f7", "", "") "," SHELL("f8", "", "") "," SHELL("f9", "", "") "," SHELL("f10", "", "") "," SHELL("f11", "", "") "," SHELL("f12", "", "") "," SHELL("f13", "", "") "," SHELL("f14", "", "") "," SHELL("f15", "", "") "," SHELL("f16", "", "") "," SHELL("f17", "", "") "," SHELL("f18", "", "") "," SHELL("f19", "", "") "," SHELL("f20", "", "") ",{\"stepId\":\"join\",\"kind\":\"merge\",\"dependsOn\":[\"f1\",\"f2\",\"f3\",\"f4\",\"f5\",\"f6\",\"f7\",\"f8\",\"f9\",\"f10\",\"f11\",\"f12\",\"f13\",\"f14\",\"f15\",\"f16\",\"f17\",\"f18\",\"f19\",\"f20\"],\"triggerRule\":\"all_done\"}");

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

static const struct workload workloads[WORKLOAD_COUNT] = {
    [WORKLOAD_LINEAR] = {"linear", PLAN("linear", "", SHELL("a", "", "") "," SHELL("b", "\"a\"", "") "," SHELL("c", "\"b\"", "")), true},
    [WORKLOAD_DIAMOND] = {"diamond",
                          PLAN("diamond", "", SHELL("a", "", "") "," SHELL("b", "\"a\"", "") "," SHELL("c", "\"a\"", "") "," SHELL("d", "\"b\",\"c\"", "")), true},
    [WORKLOAD_RETRY] = {"retry", PLAN("retry", "", SHELL("a", "", RETRY("3", "100ms")) "," SHELL("b", "\"a\"", RETRY("2", "0ms"))), true},
    [WORKLOAD_HOLD] = {"hold", PLAN("hold", ",\"onStepFailure\":\"hold\"", SHELL("a", "", "") "," SHELL("b", "\"a\"", RETRY("2", "1s")) "," SHELL("x", "", "")), false},
    [WORKLOAD_WHEN] = {"when",
                       PLAN("when", "",
                            SHELL("ask", "", "") "," SHELL("yes", "\"ask\"", ",\"when\":\"$ask.output == 'yes'\"") "," SHELL("no", "\"ask\"", ",\"when\":\"$ask.output == 'no'\"") "," SHELL(
                                "end", "\"yes\",\"no\"", ",\"triggerRule\":\"none_failed_min_one_success\"")),
                       true},
    [WORKLOAD_RULES] = {"rules",
                        PLAN("rules", "",
                             SHELL("a", "", "") "," SHELL("b", "", "") "," SHELL("both", "\"a\",\"b\"", "") "," SHELL("either", "\"a\",\"b\"", ",\"triggerRule\":\"one_success\"") "," SHELL(
                                 "broken", "\"a\",\"b\"", ",\"triggerRule\":\"one_failed\"") "," SHELL("tidy", "\"both\",\"either\"", ",\"triggerRule\":\"all_done\"")),
                        false},
    [WORKLOAD_WAIT] = {"wait", PLAN("wait", "", SHELL("a", "", "") ",{\"stepId\":\"nap\",\"kind\":\"wait\",\"dependsOn\":[\"a\"],\"with\":{\"duration\":\"5s\"}}," SHELL("b", "\"nap\"", "")), true},
    [WORKLOAD_APPROVAL] = {"approval",
                           PLAN("approval", "",
                                SHELL("a", "", "") ",{\"stepId\":\"gate\",\"kind\":\"approval\",\"dependsOn\":[\"a\"],\"with\":{\"message\":\"ok?\",\"timeout\":\"30s\",\"onTimeout\":\"reject\"}},"
                                                   "{\"stepId\":\"open\",\"kind\":\"approval\",\"dependsOn\":[\"a\"],\"with\":{\"message\":\"ok?\"}}," SHELL("b", "\"gate\",\"open\"", "")),
                           false},
    [WORKLOAD_LOOP] = {"loop", loop_text, false},
    [WORKLOAD_SUBRUN] = {"subrun",
                         PLAN("parent", "",
                              SHELL("a", "", "") ",{\"stepId\":\"sub\",\"kind\":\"subrun\",\"dependsOn\":[\"a\"],\"with\":{\"document\":\"child\"}}," SHELL("b", "\"sub\"", "")),
                         false},
    [WORKLOAD_CANCEL] = {"cancel", cancel_text, false},
    [WORKLOAD_FAN] = {"fan", fan_text, false},
    [WORKLOAD_MIXED] = {"mixed", mixed_text, false},
    [WORKLOAD_GATED] = {"gated", PLAN("gated", ",\"requiresApproval\":true", SHELL("a", "", "") "," SHELL("b", "\"a\"", "")), false},
    [WORKLOAD_TIMEOUT] = {"timeout", PLAN("timeout", "", SHELL("a", "", ",\"timeout\":\"2s\"" RETRY("2", "500ms")) "," SHELL("b", "\"a\"", ",\"timeout\":\"1s\"")), false},
    [WORKLOAD_INSTANT] = {"instant",
                          PLAN("instant", "",
                               "{\"stepId\":\"n\",\"kind\":\"noop\",\"dependsOn\":[]},{\"stepId\":\"e\",\"kind\":\"echo\",\"dependsOn\":[\"n\"],\"with\":{\"message\":\"hi\"}},"
                               "{\"stepId\":\"m\",\"kind\":\"merge\",\"dependsOn\":[\"n\",\"e\"]}," SHELL("s", "\"m\"", "")),
                          true},
    [WORKLOAD_CHILDREN] = {"children",
                           PLAN("children", "",
                                "{\"stepId\":\"one\",\"kind\":\"subrun\",\"dependsOn\":[],\"with\":{\"document\":\"child\"},\"timeout\":\"10s\",\"retry\":{\"maxAttempts\":2,\"delay\":\"0ms\"}},"
                                "{\"stepId\":\"two\",\"kind\":\"subrun\",\"dependsOn\":[],\"with\":{\"document\":\"child\"},\"onStepFailure\":\"hold\"}," SHELL(
                                    "last", "\"one\",\"two\"", ",\"triggerRule\":\"all_done\"")),
                           false},
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

static enum code load_child(void *context, enum part_kind kind, struct str from, struct str request, struct str runtime, struct arena *arena, struct str *file,
                            struct str *text, struct error *err)
{
    (void)context, (void)kind, (void)from, (void)runtime, (void)arena;
    if (!str_is(request, "child")) return error_set(err, E_NOT_FOUND, "no document \"%.*s\"", STR_ARG(request));
    *file = STR("child.json");
    *text = STR(child_text);
    return OK;
}

void workloads_load(void)
{
    struct program_loader loader = {.load = load_child};
    for (int i = 0; i < WORKLOAD_COUNT; i++) {
        struct arena arena;
        arena_init(&arena, 4096, (size_t)16 << 20);
        struct diagnostics diagnostics;
        diagnostics_init(&diagnostics, &arena);
        struct error err = {0};
        enum code rc = program_load(str_from(workloads[i].text), str_from(workloads[i].name), &loader, &diagnostics, &programs[i], &err);
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

const struct program *workload_by_document(const struct digest *sha256)
{
    for (int i = 0; i < WORKLOAD_COUNT; i++) {
        if (digest_eq(&programs[i]->sha256, sha256)) return programs[i];
        for (uint32_t k = 0; k < programs[i]->step_count; k++) {
            const struct program *child = programs[i]->steps[k].child;
            if (child && digest_eq(&child->sha256, sha256)) return child;
        }
    }
    return NULL;
}
