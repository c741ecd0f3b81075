// Node workflows: every body, what is tolerated with a warning, what needs a language model, names and versions.
#include "program_kit.h"

static struct kit kit;

#define NODE(fields) "name: n\nnodes:\n  - {id: a, " fields "}\n"

static void refuse(const char *text, const char *id, const char *part)
{
    kit_must_refuse(&kit, text, id, "", part);
}

static void bodies(void)
{
    static const struct kit_file files[] = {{"tool", "echo tool\n"}, {NULL, NULL}};
    kit.files = files;
    kit_check_with(&kit, NODE("bash: 'ls | wc'"), STEP_SHELL, "{\"command\":\"ls | wc\"}");
    kit_check_with(&kit, NODE("bash: ls, env: {A: 1}, cwd: /tmp"), STEP_SHELL,
                   "{\"command\":\"ls\",\"env\":{\"A\":\"1\"},\"cwd\":\"/tmp\"}");
    kit_check_with(&kit, NODE("script: 'print(1)', runtime: uv"), STEP_SCRIPT,
                   "{\"runtime\":\"python3\",\"code\":\"print(1)\"}");
    kit_check_with(&kit, NODE("script: 'f(1)', runtime: bun"), STEP_SCRIPT, "{\"runtime\":\"node\",\"code\":\"f(1)\"}");
    kit_check_with(&kit, NODE("script: tool, runtime: sh"), STEP_SCRIPT,
                   "{\"runtime\":\"sh\",\"code\":\"echo tool\\n\",\"file\":\"tool\"}");
    CHECK_INT(kit.program->part_count, 1);
    CHECK_INT(kit.program->parts[0].kind, PART_SCRIPT);
    CHECK_STR(kit.program->parts[0].runtime, STR("sh"));
    kit_check_with(&kit, NODE("approval: go?"), STEP_APPROVAL, "{\"message\":\"go?\",\"onTimeout\":\"fail\"}");
    kit_check_with(&kit, NODE("approval: {message: go?, timeout: 1m, on_timeout: reject}"), STEP_APPROVAL,
                   "{\"message\":\"go?\",\"timeoutMs\":60000,\"onTimeout\":\"reject\"}");
    kit_check_with(&kit, NODE("cancel: no commits"), STEP_CANCEL, "{\"reason\":\"no commits\"}");
    kit_check_with(&kit, NODE("wait: 5s"), STEP_WAIT, "{\"durationMs\":5000}");
    kit_check_with(&kit, NODE("wait: {until: '2026-01-01T00:00:00Z'}"), STEP_WAIT,
                   "{\"until\":\"2026-01-01T00:00:00Z\"}");
    kit_check_with(&kit, NODE("wait: '2026-01-01T00:00:00Z'"), STEP_WAIT, "{\"until\":\"2026-01-01T00:00:00Z\"}");
    kit_check_with(&kit, NODE("noop: true"), STEP_NOOP, "{}");
    kit_check_with(&kit, NODE("echo: {a: 1}"), STEP_ECHO, "{\"message\":{\"a\":1}}");
    kit_check_with(&kit, NODE("exec: [ls, -l]"), STEP_EXEC, "{\"argv\":[\"ls\",\"-l\"]}");
    kit_check_with(&kit, NODE("merge: true"), STEP_MERGE, "{}");
    kit_check_with(&kit, NODE("merge: {message: all}"), STEP_MERGE, "{\"message\":\"all\"}");
}

static void a_node_has_exactly_one_body(void)
{
    refuse(NODE("bash: x, script: 'y z', runtime: sh"), "E0215", "\"bash\" and \"script\"");
    refuse(NODE("when: x"), "E0215", "does nothing");
    refuse(NODE("noop: false"), "E0205", "noop");
    refuse(NODE("bash: 7"), "E0205", "bash");
    refuse(NODE("bash: ''"), "E0206", "no command");
    refuse(NODE("script: 'a b'"), "E0204", "runtime");
    refuse(NODE("script: 'a b', runtime: ruby"), "E0206", "runtime");
    refuse(NODE("script: nowhere, runtime: sh"), "E0218", "not found");
    refuse(NODE("approval: {timeout: 1s}"), "E0204", "message");
    refuse(NODE("exec: ls -l"), "E0205", "\"exec\" must be a list");
    refuse(NODE("workflow: {inputs: {}}"), "E0204", "exactly one of");
    refuse(NODE("merge: 5"), "E0205", "merge");
}

static void nodes_for_a_language_model_are_refused_one_by_one(void)
{
    kit_load(&kit, "t",
             STR("nodes:\n  - {id: a, prompt: write, model: big}\n"
                 "  - {id: b, command: review, depends_on: [a]}\n"
                 "  - {id: c, loop: {prompt: x, until: DONE, max_iterations: 3}}\n"
                 "  - {id: d, agent: {name: x}}\n"
                 "  - {id: e, bash: ls, depends_on: [a, b, c]}\n"));
    CHECK_INT(kit.diagnostics.error_count, 4);
    for (int i = 0; i < 4; i++) {
        CHECK_TEXT(kit.diagnostics.items[i].id, "E0216");
        CHECK(strstr(kit.diagnostics.items[i].message.ptr, "needs an AI provider"));
    }
    CHECK_INT(kit.diagnostics.warning_count, 0);
}

static void nodes_have_no_timeout_but_the_one_they_name(void)
{
    kit_must_be_silent(&kit, "nodes:\n  - {id: a, bash: x}\n  - {id: b, bash: x, timeout: 5000}\n"
                             "  - {id: c, bash: x, timeout: 2m}\n  - {id: d, approval: x}\n");
    CHECK_INT(kit_step(&kit, "a")->timeout_ms, 0);
    CHECK_INT(kit_step(&kit, "b")->timeout_ms, 5000);
    CHECK_INT(kit_step(&kit, "c")->timeout_ms, 120000);
    CHECK_INT(kit_step(&kit, "d")->timeout_ms, 0);
}

static void retry_counts_what_comes_after_the_first_try(void)
{
    kit_must_be_silent(&kit, NODE("bash: x, retry: {max_attempts: 2}"));
    const struct retry_policy *retry = &kit_step(&kit, "a")->retry;
    CHECK_INT(retry->max_attempts, 3);
    CHECK_INT(retry->delay_ms, 3000);
    CHECK_INT(retry->backoff, BACKOFF_EXPONENTIAL);
    CHECK_INT(retry->on, RETRY_TRANSIENT);
    kit_must_be_silent(&kit, NODE("bash: x, retry: {max_attempts: 5, delay_ms: 10, on_error: all, "
                                  "non_retryable: [EXIT_2]}"));
    retry = &kit_step(&kit, "a")->retry;
    CHECK_INT(retry->max_attempts, 6);
    CHECK_INT(retry->delay_ms, 10);
    CHECK_INT(retry->on, RETRY_ALL);
    CHECK_INT(retry->non_retryable_count, 1);
    kit_must_be_silent(&kit, NODE("bash: x"));
    CHECK_INT(kit_step(&kit, "a")->retry.max_attempts, 1);
    refuse(NODE("bash: x, retry: {max_attempts: 6}"), "E0210", "1 to 5");
    refuse(NODE("bash: x, retry: {max_attempts: 1, delay_ms: 60001}"), "E0210", "60000");
    refuse(NODE("bash: x, retry: {max_attempts: 1, on_error: some}"), "E0206", "on_error");
}

static void names_and_versions_C_64(void)
{
    kit_load(&kit, "flows/deploy.prod.yaml", STR("nodes: [{id: a, noop: true}]\n#\n"));
    CHECK_INT(kit.rc, OK);
    CHECK_STR(kit.program->plan_id, STR("deploy.prod"));
    CHECK_INT(kit.program->plan_version.len, 12);
    CHECK(strncmp(kit.program->plan_version.ptr, kit.program->sha256_hex, 12) == 0);
    CHECK_INT(kit.program->kind, DOCUMENT_NODES);
    CHECK_STR(kit.program->schema_version, STR(""));
    kit_must_be_silent(&kit, "name: x\nmetadata: {version: 1.20}\nnodes: [{id: a, noop: true}]\n");
    CHECK_STR(kit.program->plan_id, STR("x"));
    CHECK_STR(kit.program->plan_version, STR("1.20"));
    refuse("name: 'a|b'\nnodes: [{id: a, noop: true}]\n", "E0208", "name");
    refuse("version: 'a|b'\nnodes: [{id: a, noop: true}]\n", "E0208", "version");
}

static void node_ids(void)
{
    static const char *const bad[] = {"RUN", "1a", "a.b", "a b", "a|b", "-a"};
    char text[200];
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        snprintf(text, sizeof(text), "nodes: [{id: '%s', noop: true}]\n#", bad[i]);
        refuse(text, "E0208", "cannot be a node id");
    }
    refuse("nodes: [{noop: true}]\n#", "E0204", "id");
}

static void tolerated_fields(void)
{
    kit_must_be_silent(&kit, "name: n\ndescription: d\nprovider: claude\nmodel: big\n"
                             "interactive: true\nworktree: {enabled: false}\n"
                             "mutates_checkout: false\ntags: [a]\nx-mine: 1\n"
                             "nodes: [{id: a, bash: x, output_type: probe, output_format: {}}]\n");
    kit_must_warn(&kit, "nmae: n\nnodes: [{id: a, noop: true}]\n", "E0203", "nmae");
    CHECK_STR(kit_found(&kit, "E0203")->hint, STR("did you mean \"name\"?"));
    kit_must_warn(&kit, "returns: a\nnodes: [{id: a, noop: true}]\n", "E0219", "returns");
    kit_must_warn(&kit, NODE("bash: x, model: big"), "E0219", "no effect on a bash node");
    kit_must_warn(&kit, NODE("bash: x, runtime: sh"), "E0219", "no effect on a bash node");
    kit_must_warn(&kit, NODE("script: 'a b', runtime: sh, deps: [x]"), "E0219", "deps");
    kit_must_warn(&kit, NODE("approval: {message: x, on_reject: {prompt: y}}"), "E0219", "on_reject");
    refuse(NODE("approval: {message: x, capture_response: 7}"), "E0205", "capture_response");
    kit_must_be_silent(&kit, NODE("wait: {duration_ms: 5000}"));
    CHECK_INT(json_integer(json_key(&kit_step(&kit, "a")->with, "durationMs"), 0), 5000);
    refuse(NODE("bash: x, depend_on: [b]"), "E0203", "depend_on");
    CHECK_STR(kit_found(&kit, "E0203")->hint, STR("did you mean \"depends_on\"?"));
    refuse(NODE("bash: x, fan_out: {}"), "E0217", "for workflow nodes");
    refuse(NODE("workflow: w, fan_out: {}"), "E0204", "items");
    refuse(NODE("workflow: w, fan_out: {items: 7}"), "E0205", "items");
    refuse(NODE("workflow: w, fan_out: {items: [], max_parallel: 0}"), "E0210", "max_parallel");
    refuse(NODE("workflow: w, fan_out: {items: [], join: some}"), "E0206", "join");
    refuse(NODE("workflow: w, fan_out: {item: []}"), "E0203", "item");
}

static void flags_of_nodes(void)
{
    kit_must_be_silent(&kit, NODE("bash: x, always_run: true, trigger_rule: all_done, name: N, "
                                  "secrets: [{name: T, ref: 'env:T'}]"));
    const struct program_step *a = kit_step(&kit, "a");
    CHECK(a->always_run);
    CHECK_INT(a->rule, RULE_ALL_DONE);
    CHECK_STR(a->name, STR("N"));
    CHECK_INT(a->secret_count, 1);
    refuse(NODE("bash: x, trigger_rule: sometimes"), "E0206", "sometimes");
    refuse(NODE("bash: x, depends_on: b"), "E0205", "a list of ids");
    CHECK_STR(kit_found(&kit, "E0205")->hint, STR("write [\"b\"]"));
}

static void a_broken_condition_counts_as_false(void)
{
    kit_must_warn(&kit, NODE("bash: x, when: 'maybe'"), "E0401", "it counts as false");
    CHECK(kit_step(&kit, "a")->when_broken);
    CHECK(!kit_step(&kit, "a")->when);
    refuse(NODE("bash: x, when: \"$b.output == 'x'\""), "E0402", "no node \"b\"");
}

static void references_in_shell_text(void)
{
    kit_must_warn(&kit, NODE("bash: 'echo $other.output'"), "E0404", "$other.output");
    kit_must_be_silent(&kit, NODE("bash: 'echo $HOME $x ${y.output} $ARGUMENTS'"));
    kit_load(&kit, "t",
             STR("nodes:\n  - {id: a, bash: x}\n  - id: b\n    bash: |\n"
                 "      one $a.output\n      two\n      three $a.output.x\n"));
    CHECK_INT(kit.diagnostics.warning_count, 2);
    CHECK_INT(kit.diagnostics.items[0].line, 5);
    CHECK_INT(kit.diagnostics.items[0].column, 11);
    CHECK_INT(kit.diagnostics.items[1].line, 7);
    CHECK_INT(kit.diagnostics.items[1].column, 13);
}

static void loop_bodies_see_what_their_loop_waits_for(void)
{
    kit_must_be_silent(&kit, "nodes:\n  - {id: seed, bash: x}\n  - id: l\n    depends_on: [seed]\n"
                             "    loop_group:\n      max_iterations: 2\n"
                             "      until_bash: test $t.output = 3\n      nodes:\n"
                             "        - {id: t, bash: 'echo $seed.output'}\n");
    kit_must_warn(&kit,
                  "nodes:\n  - {id: seed, bash: x}\n  - id: l\n"
                  "    loop_group:\n      max_iterations: 2\n      nodes:\n"
                  "        - {id: t, bash: 'echo $seed.output'}\n",
                  "E0403", "seed");
}

static void loops(void)
{
    refuse(NODE("loop_group: {nodes: [{id: b, noop: true}]}"), "E0204", "max_iterations");
    refuse(NODE("loop_group: {max_iterations: 0, nodes: [{id: b, noop: true}]}"), "E0210", "1 to");
    refuse(NODE("loop_group: {max_iterations: 2}"), "E0204", "nodes");
    refuse(NODE("loop_group: {max_iterations: 2, nodes: []}"), "E0214", "no nodes");
    refuse(NODE("loop_group: {max_iterations: 2, until: DONE, nodes: [{id: b, noop: true}]}"), "E0216", "until");
    refuse(NODE("loop_group: {max_iterations: 2, nodes: [{id: b, noop: true}]}, "
                "retry: {max_attempts: 1}"),
           "E0217", "retry");
    refuse(NODE("loop_group: {max_iterations: 2, nodes: [{id: b, prompt: x}]}"), "E0216", "AI provider");
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(bodies),
        TEST(a_node_has_exactly_one_body),
        TEST(nodes_for_a_language_model_are_refused_one_by_one),
        TEST(nodes_have_no_timeout_but_the_one_they_name),
        TEST(retry_counts_what_comes_after_the_first_try),
        TEST(names_and_versions_C_64),
        TEST(node_ids),
        TEST(tolerated_fields),
        TEST(flags_of_nodes),
        TEST(a_broken_condition_counts_as_false),
        TEST(references_in_shell_text),
        TEST(loop_bodies_see_what_their_loop_waits_for),
        TEST(loops),
    };
    return test_main("program_nodes", tests, ARRAY_COUNT(tests), argc, argv);
}
