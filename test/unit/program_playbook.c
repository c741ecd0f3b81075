// Playbooks: every shape and dialect gives the same net; what is wrong is said, what is old is refused.
#include "program/net.h"
#include "program_kit.h"

static struct kit kit;

#define HEAD "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: p, path: t/p}\n"
#define STEP(fields) HEAD "workflow:\n  - step: start\n" fields
#define TOOL(fields) STEP("    tool:\n      kind: python\n" fields)

static const struct net_step *net_step(const char *id)
{
    uint32_t index = program_find(kit.program, PROGRAM_TOP, str_from(id));
    if (index == PROGRAM_TOP) test_fail(__FILE__, __LINE__, "no step %s", id);
    return &kit.program->net->steps[index];
}

static void refuse(const char *text, const char *id, const char *part)
{
    kit_must_refuse(&kit, text, id, "", part);
}

static void check_json(const struct json *value, const char *want)
{
    struct buf out;
    buf_init(&out, 1 << 16);
    json_write(&out, value);
    CHECK_STR(buf_str(&out), str_from(want));
    buf_release(&out);
}

static void check_label(const char *text, const char *label)
{
    kit_must_be_silent(&kit, text);
    CHECK_INT(net_step("start")->task_count, 1);
    CHECK_STR(net_step("start")->tasks[0].label, str_from(label));
    CHECK_STR(net_step("start")->tasks[0].kind, STR("shell"));
    check_json(template_tree_source(net_step("start")->tasks[0].with), "{\"cmds\":\"ls\"}");
}

static void four_shapes_of_tasks_NX_0e_C_47(void)
{
    check_label(STEP("    tool: {kind: shell, cmds: ls}\n"), "start_task");
    check_label(STEP("    tool: {name: list, kind: shell, cmds: ls}\n"), "list");
    check_label(STEP("    tool: [{kind: shell, cmds: ls}]\n"), "task_0");
    check_label(STEP("    tool: [{name: list, kind: shell, cmds: ls}]\n"), "list");
    check_label(STEP("    tool: [{list: {kind: shell, cmds: ls}}]\n"), "list");
    check_label(STEP("    tool: {list: {kind: shell, spec: {cmds: ls}}}\n"), "list");
    refuse(STEP("    tool: []\n"), "E0214", "empty list of tasks");
    check_label(STEP("    tool: shell\n    cmds: ls\n"), "start_task");
    refuse(STEP("    tool: 5\n"), "E0205", "\"tool\" must be");
    refuse(STEP("    tool: {code: x}\n"), "E0204", "a task needs \"kind\"");
    refuse(STEP("    tool: [{name: a, kind: noop}, {a: {kind: noop}}]\n"), "E0312", "used twice");
}

#define RULES(text) TOOL("      code: result = 1\n      spec:\n        policy:\n          rules:\n" text)

static void check_else(const char *text)
{
    kit_must_be_silent(&kit, text);
    const struct net_task *task = &net_step("start")->tasks[0];
    CHECK_INT(task->rule_count, 1);
    CHECK(task->rules[0].otherwise && !task->rules[0].when.test);
    CHECK_INT(task->rules[0].action, NET_BREAK);
    CHECK_INT(task->rules[0].sets.count, 1);
    CHECK_INT(task->rules[0].sets.items[0].scope, NET_CTX);
    CHECK_STR(task->rules[0].sets.items[0].path, STR("x"));
}

static void three_shapes_of_else_C_47(void)
{
    check_else(RULES("            - else: {then: {do: break, set: {ctx.x: 1}}}\n"));
    check_else(RULES("            - else: {do: break, set_ctx: {x: 1}}\n"));
    check_else(RULES("            - else:\n              then: {do: break, set: {x: 1}}\n"));
    refuse(RULES("            - {else: , when: a, then: {do: break}}\n"), "E0215", "not both");
}

static void rules_NX_3_6b_C_46(void)
{
    kit_must_be_silent(
        &kit,
        RULES(
            "            - {when: true, then: {do: retry}}\n"
            "            - {when: \"{{ output.ok }}\", then: {do: retry, attempts: 7, delay: 0.25, backoff: linear}}\n"
            "            - {when: a, then: {do: retry, attempts: 2, backoff: fixed, delay: 2m}}\n"
            "            - {when: b, then: fail}\n"
            "            - {then: {set: {ctx.a.b: 1}}}\n"));
    const struct net_task *task = &net_step("start")->tasks[0];
    CHECK(task->has_policy && !task->unmatched_fails);
    CHECK_INT(task->rule_count, 5);
    const struct net_rule *rule = task->rules;
    CHECK(rule[0].action == NET_RETRY && rule[0].attempts == 3 && rule[0].delay_ms == 1000 &&
          rule[0].backoff == BACKOFF_NONE && !rule[0].when.event);
    CHECK(rule[1].attempts == 7 && rule[1].delay_ms == 250 && rule[1].backoff == BACKOFF_LINEAR && rule[1].when.event);
    CHECK(rule[2].attempts == 2 && rule[2].delay_ms == 120000 && rule[2].backoff == BACKOFF_NONE);
    CHECK(rule[3].action == NET_FAIL);
    CHECK(rule[4].action == NET_CONTINUE && !rule[4].otherwise && !rule[4].when.test);
    kit_must_be_silent(
        &kit, TOOL("      code: pass\n      spec: {policy: {on_unmatched: fail, rules: [{else: {do: continue}}]}}\n"));
    CHECK(net_step("start")->tasks[0].unmatched_fails);
    refuse(TOOL("      spec: {policy: {rules: []}}\n"), "E0226", "has no rules");
    refuse(TOOL("      spec: {policy: {}}\n"), "E0226", "has no rules");
    refuse(RULES("            - {when: a}\n"), "E0204", "\"then\"");
    refuse(RULES("            - {when: a, then: {do: jump}}\n"), "E0204", "\"to\"");
    refuse(RULES("            - {expr: a, then: {do: fail}}\n"), "E0222", "\"expr\"");
    refuse(RULES("            - {when: a, then: {do: retry, attempts: 0}}\n"), "E0210", "attempts");
    refuse(RULES("            - {when: [], then: {do: fail}}\n"), "E0205", "\"when\"");
    refuse(RULES("            - {when: a, then: {do: fail, sett: {}}}\n"), "E0203", "\"sett\"");
    kit_must_warn(&kit, RULES("            - {when: a, then: {do: fail, reason: because}}\n"), "E0219", "\"reason\"");
    refuse(RULES("            - {when: '', then: {do: fail}}\n"), "E0401", "empty");
}

static void numbers_may_be_templates(void)
{
    kit_must_be_silent(&kit,
                       HEAD "workload: {n: 4, wait: 0.5}\nworkflow:\n  - step: start\n    loop: {in: [1], iterator: i, "
                            "spec: {mode: parallel, max_in_flight: '{{ n }}'}}\n    tool:\n      kind: noop\n      "
                            "spec:\n        timeout_s: '{{ ctx.t }}'\n        policy: {rules: [{when: a, then: {do: "
                            "retry, attempts: '{{ n + 1 }}', delay: '{{ workload.wait }}'}}]}\n");
    const struct net_step *step = net_step("start");
    const struct net_rule *rule = &step->tasks[0].rules[0];
    CHECK(rule->attempts_of && rule->delay_of && step->loop.max_of && step->tasks[0].timeout_of);
    CHECK_INT(rule->attempts, 5); // as the workload is written
    CHECK_INT(rule->delay_ms, 500);
    CHECK_INT(step->loop.max_in_flight, 4);
    CHECK_INT(step->tasks[0].timeout_ms, 0);
    kit_must_be_silent(&kit, RULES("            - {when: a, then: {do: retry, attempts: '{{ ctx.n }}'}}\n"));
    CHECK_INT(net_step("start")->tasks[0].rules[0].attempts, 3);
    refuse(RULES("            - {when: a, then: {do: retry, attempts: '{{ n '}}\n"), "E0406", "");
    refuse(RULES("            - {when: a, then: {do: retry, attempts: many}}\n"), "E0205", "attempts");
    refuse(RULES("            - {when: a, then: {do: retry, delay: -1}}\n"), "E0210", "delay");
    kit_must_warn(&kit,
                  HEAD "workload: {n: 4}\nworkflow:\n  - step: start\n    tool: {kind: noop, result: "
                       "{inline_max_bytes: '{{ n }}'}}\n",
                  "E0225", "taken from the workload");
}

static void jumps_stay_in_their_step(void)
{
    kit_must_be_silent(&kit, STEP("    tool:\n      - {name: a, kind: noop}\n      - name: b\n        kind: noop\n"
                                  "        spec: {policy: {rules: [{when: x, then: {do: jump, to: a}}, {else: {do: "
                                  "jump, to: previous}}]}}\n"));
    CHECK_INT(net_step("start")->tasks[1].rules[0].target, 0);
    CHECK_INT(net_step("start")->tasks[1].rules[1].target, PROGRAM_TOP);
    refuse(RULES("            - {when: a, then: {do: jump, to: start}}\n"), "E0310", "no task \"start\"");
    refuse(RULES("            - {when: a, then: {do: jump, to: previous}}\n"), "E0310",
           "no task \"previous\""); // it is the first
}

static void aliases_have_one_name_C_47(void)
{
    static const char want[] = "{\"url\":\"http://h\",\"input\":{\"a\":1},\"method\":\"GET\"}";
    kit_must_be_silent(&kit, STEP("    tool: {kind: http, endpoint: http://h, args: {a: 1}, method: GET}\n"));
    check_json(template_tree_source(net_step("start")->tasks[0].with), want);
    kit_must_be_silent(&kit, STEP("    tool: {kind: http, spec: {url: http://h, input: {a: 1}, method: GET}}\n"));
    check_json(template_tree_source(net_step("start")->tasks[0].with), want);
    refuse(STEP("    tool: {kind: http, endpoint: http://h, url: http://i}\n"), "E0207", "another name of");
    // What stands beside `spec` is said more closely.
    kit_must_be_silent(&kit, STEP("    tool: {kind: http, url: u, headers: {a: 1}, spec: {headers: {a: 2, b: 3}}}\n"));
    check_json(template_tree_source(net_step("start")->tasks[0].with), "{\"url\":\"u\",\"headers\":{\"a\":1,\"b\":3}}");
    kit_must_be_silent(&kit, STEP("    tool: {kind: postgres, commands: [a, b]}\n"));
    check_json(template_tree_source(net_step("start")->tasks[0].with), "{\"command\":[\"a\",\"b\"]}");
}

static void check_names(const struct net_names *names, const char *want)
{
    struct buf out;
    buf_init(&out, 1024);
    for (uint32_t i = 0; i < names->count; i++) buf_printf(&out, "%s%.*s", i ? " " : "", STR_ARG(names->items[i]));
    CHECK_STR(buf_str(&out), str_from(want));
    buf_release(&out);
}

#define BOOK                                                                                                           \
    HEAD "workbook:\n  - name: w\n    tool:\n      - {name: a, kind: http, url: '{{ x }}'}\n"                          \
         "      - b: {kind: python, code: y, args: {k: 1, x: 0}, assert: {returns: z}}\nworkflow:\n"

static void a_workbook_entry_may_be_a_pipeline_C_47(void)
{
    kit_must_be_silent(&kit, BOOK "  - step: start\n    tool: {kind: workbook, name: w, input: {x: 5}, assert: "
                                  "{expects: url}, set: {ctx.v: 1}, spec: {timeout: 3}}\n");
    const struct net_step *step = net_step("start");
    CHECK_INT(step->task_count, 2);
    CHECK_STR(step->tasks[0].label, STR("a"));
    CHECK_STR(step->tasks[1].label, STR("b"));
    check_json(template_tree_source(step->args), "{\"x\":5}"); // templates of the entry read it
    check_json(template_tree_source(step->tasks[0].with), "{\"url\":\"{{ x }}\"}");
    check_json(template_tree_source(step->tasks[1].with), "{\"input\":{\"x\":5,\"k\":1},\"code\":\"y\"}");
    check_names(&step->tasks[0].expects, "url");
    check_names(&step->tasks[1].returns, "z");
    CHECK_INT(step->tasks[0].sets.count, 0);
    CHECK_INT(step->tasks[1].sets.count, 1);
    CHECK(step->tasks[0].timeout_ms == 3000 && step->tasks[1].timeout_ms == 3000);
    // Among other tasks its last one has the label that it is given.
    kit_must_be_silent(&kit, BOOK "  - step: start\n    tool: [{kind: noop}, {got: {kind: workbook, task: w}}, {kind: "
                                  "noop}]\n");
    step = net_step("start");
    CHECK_INT(step->task_count, 4);
    CHECK_STR(step->tasks[1].label, STR("a"));
    CHECK_STR(step->tasks[2].label, STR("got"));
    CHECK_STR(step->tasks[3].label, STR("task_3"));
    CHECK(!step->args);
    kit_must_be_silent(&kit, HEAD "workbook: {w: {tasks: {a: {kind: noop}, b: {kind: noop}}}}\nworkflow:\n  - step: "
                                  "start\n    tool: workbook\n    name: w\n");
    CHECK_INT(net_step("start")->task_count, 2);
    refuse(BOOK "  - step: start\n    tool: [{kind: workbook, name: w}, {kind: workbook, name: w}]\n", "E0312",
           "twice");
    refuse(HEAD "workbook: [{name: w, tool: []}]\nworkflow:\n  - {step: start, tool: {kind: noop}}\n", "E0214",
           "empty list");
    refuse(HEAD "workbook: [{name: v, tool: [{kind: noop}, {kind: noop}]}, {name: w, tool: [{kind: noop}, {kind: "
                "workbook, name: v}]}]\nworkflow:\n  - step: start\n    tool: {kind: workbook, name: w}\n",
           "E0311", "not another entry");
}

static void what_a_task_asserts_in_every_shape_C_47(void)
{
    static const char *const shapes[] = {"[a, b]", "{a: int, b: text}", "[{name: a, type: int}, {b: text}]"};
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        char text[512];
        (void)snprintf(text, sizeof(text),
                       STEP("    tool: {kind: python, code: x, assert: {expects: %s, returns: c.d}}\n"), shapes[i]);
        kit_must_be_silent(&kit, text);
        check_names(&net_step("start")->tasks[0].expects, "a b");
        check_names(&net_step("start")->tasks[0].returns, "c.d");
    }
    // Those of the entry and of the task add up.
    kit_must_be_silent(&kit, HEAD "workbook: [{name: w, tool: {kind: python, code: x, assert: {expects: [a]}}}]\n"
                                  "workflow:\n  - step: start\n    tool: {kind: workbook, name: w, assert: {expects: "
                                  "[b, a], returns: null}}\n");
    check_names(&net_step("start")->tasks[0].expects, "b a");
    kit_must_be_silent(&kit,
                       HEAD "workbook: [{name: w, assert: {expects: [a], returns: [c]}, tool: {kind: python, code: "
                            "x}}]\nworkflow:\n  - step: start\n    tool: {kind: workbook, name: w}\n");
    check_names(&net_step("start")->tasks[0].expects, "a");
    check_names(&net_step("start")->tasks[0].returns, "c");
    refuse(TOOL("      code: x\n      assert: {expects: [5]}\n"), "E0205", "names");
    refuse(TOOL("      code: x\n      assert: {expects: ['{{ a }}']}\n"), "E0206", "no template");
    refuse(TOOL("      code: x\n      assert: {expcts: [a]}\n"), "E0203", "unknown field \"expcts\"");
}

static void code_is_never_a_template(void)
{
    kit_must_be_silent(&kit, TOOL("      code: 'x = \"{{ broken\"'\n      input: {a: '{{ b }}'}\n"));
    const struct template_tree *with = net_step("start")->tasks[0].with;
    CHECK(template_tree_dynamic(with));
    struct template_scope scope = {0};
    struct json out;
    CHECK_OK(template_tree_render(with, &scope, NULL, &kit.arena, &out, &kit.err), &kit.err);
    check_json(&out, "{\"code\":\"x = \\\"{{ broken\\\"\",\"input\":{\"a\":\"\"}}");
}

static void input_of_a_step_is_its_tasks_input_too(void)
{
    kit_must_be_silent(&kit, STEP("    input: {a: 1, b: 2}\n    tool: {kind: python, code: x, input: {b: 3}}\n"));
    check_json(template_tree_source(net_step("start")->tasks[0].with), "{\"code\":\"x\",\"input\":{\"b\":3,\"a\":1}}");
    check_json(template_tree_source(net_step("start")->args), "{\"a\":1,\"b\":2}");
    // What reads the item cannot be known when the step is scheduled.
    kit_must_be_silent(
        &kit, STEP("    loop: {in: [1], iterator: n}\n    input: {a: '{{ n }}'}\n    tool: {kind: python, code: x}\n"));
    CHECK(!net_step("start")->args && net_step("start")->item_args);
    check_json(template_tree_source(net_step("start")->tasks[0].with),
               "{\"code\":\"x\",\"input\":{\"a\":\"{{ n }}\"}}");
}

static void patches_have_a_scope(void)
{
    kit_must_be_silent(&kit, STEP("    loop: {in: [1], iterator: n}\n"
                                  "    tool: {kind: noop, set: {a: 1, ctx.b: 2, iter.c.d: 3, step.e: 4, ctx: {f: 5}}, "
                                  "set_ctx: {g: 6}, set_iter: {h: 7}}\n"
                                  "    set: {i: 8}\n"));
    static const struct {
        enum net_scope scope;
        const char *path;
    } want[] = {{NET_ITER, "a"}, {NET_CTX, "b"}, {NET_ITER, "c.d"}, {NET_ITER, "step.e"},
                {NET_CTX, "f"},  {NET_CTX, "g"}, {NET_ITER, "h"}};
    const struct net_sets *sets = &net_step("start")->tasks[0].sets;
    CHECK_INT(sets->count, ARRAY_COUNT(want));
    for (uint32_t i = 0; i < sets->count; i++) {
        CHECK_INT(sets->items[i].scope, want[i].scope);
        CHECK_STR(sets->items[i].path, str_from(want[i].path));
    }
    CHECK_INT(net_step("start")->sets.items[0].scope, NET_CTX);
    kit_must_be_silent(&kit, STEP("    tool: {kind: noop, set: {a: 1}}\n"));
    CHECK_INT(net_step("start")->tasks[0].sets.items[0].scope, NET_CTX);
    refuse(STEP("    tool: {kind: noop, set: {workload.a: 1}}\n"), "E0206", "never changes");
    refuse(STEP("    tool: {kind: noop, set: {ctx.a..b: 1}}\n"), "E0208", "names nothing");
    refuse(STEP("    tool: {kind: noop, spec: {set: {ctx.a: 1}}}\n"), "E0222", "\"set\"");
    refuse(STEP("    spec: {set: {ctx.a: 1}}\n    tool: {kind: noop}\n"), "E0222", "\"set\"");
}

static void shapes_of_next_NX_0f(void)
{
#define END "  - step: end\n    tool: {kind: noop}\n"
    static const char *const same[] = {
        STEP("    next: end\n" END),
        STEP("    next: [end]\n" END),
        STEP("    next: {step: end}\n" END),
        STEP("    next: [{step: end}]\n" END),
        STEP("    next: {arcs: [{step: end}]}\n" END),
        STEP("    next: {spec: {mode: exclusive}, arcs: [end]}\n" END),
    };
    for (size_t i = 0; i < ARRAY_COUNT(same); i++) {
        kit_must_be_silent(&kit, same[i]);
        CHECK_INT(net_step("start")->arc_count, 1);
        CHECK_INT(net_step("start")->arcs[0].step, 1);
        CHECK(!net_step("start")->inclusive && !net_step("start")->arcs[0].when.test);
    }
    refuse(STEP("    next: {arcs: [{step: ende}]}\n" END), "E0309", "no step \"ende\"");
    refuse(STEP("    next: {spec: {}}\n" END), "E0204", "\"arcs\"");
    refuse(STEP("    next: [{when: a}]\n" END), "E0204", "\"step\"");
    kit_must_warn(&kit, STEP("    tool: {kind: noop}\n" END), "E0313", "no arc leads to step \"end\"");
}

static void what_was_written_before_v10_C_47(void)
{
    kit_must_be_silent(&kit, STEP("    tool: {kind: noop}\n    next:\n"
                                  "      - {when: a, then: [{step: end, data: {x: 1}}]}\n"
                                  "      - {when: b, then: start}\n"
                                  "      - {else: [end]}\n" END));
    const struct net_step *step = net_step("start");
    CHECK_INT(step->arc_count, 3);
    CHECK(!step->inclusive && step->arcs[0].when.test && step->arcs[1].when.test && !step->arcs[2].when.test);
    CHECK_INT(step->arcs[1].step, 0);
    check_json(template_tree_source(step->arcs[0].args), "{\"x\":1}");
    refuse(STEP("    next: [{when: a, then: [end, start]}]\n" END), "E0222", "\"then\"");
    kit_must_be_silent(&kit, STEP("    next: [end, also]\n" END "  - step: also\n    tool: noop\n"));
    CHECK(net_step("start")->inclusive);
    CHECK_STR(net_step("also")->tasks[0].kind, STR("noop"));
    kit_must_be_silent(&kit, STEP("    loop: {collection: [1], element: x}\n    tool: python\n    code: result = 1\n"
                                  "    args: {x: '{{ x }}'}\n    vars: {a: 1}\n"));
    CHECK_STR(net_step("start")->loop.iterator, STR("x"));
    CHECK_INT(net_step("start")->sets.items[0].scope, NET_CTX);
    check_json(template_tree_source(net_step("start")->tasks[0].with),
               "{\"code\":\"result = 1\",\"input\":{\"x\":\"{{ x }}\"}}");
    refuse(STEP("    loop: {in: [1], iterator: x, until: y}\n    tool: noop\n"), "E0222", "\"until\"");
    refuse(STEP("    tool: noop\n    type: python\n"), "E0222", "\"type\"");
    kit_must_be_silent(&kit, HEAD "workbook: [{name: w, type: shell, cmds: ls}]\nworkflow:\n  - step: start\n"
                                  "    tool: workbook\n    name: w\n");
    CHECK_STR(net_step("start")->tasks[0].kind, STR("shell"));
}

static void a_cursor_is_a_step_that_asks_and_a_loop_that_leads_back(void)
{
    kit_must_be_silent(&kit, STEP("    tool: {kind: noop}\n    next: [work]\n"
                                  "  - step: work\n    loop:\n      cursor: {auth: pg, claim: select 1}\n"
                                  "      iterator: row\n      spec: {mode: cursor, max_in_flight: 3}\n"
                                  "    tool: {kind: noop}\n    next: {arcs: [{step: end}]}\n" END));
    CHECK_INT(net_step("start")->arcs[0].step, program_find(kit.program, PROGRAM_TOP, STR("work__claim")));
    const struct net_step *claim = net_step("work__claim"), *work = net_step("work");
    CHECK_STR(claim->tasks[0].kind, STR("postgres"));
    check_json(template_tree_source(claim->tasks[0].with), "{\"auth\":\"pg\",\"command\":\"select 1\"}");
    CHECK_INT(claim->arcs[0].step, program_find(kit.program, PROGRAM_TOP, STR("work")));
    CHECK(work->has_loop && work->loop.parallel && work->loop.max_in_flight == 3 && work->arc_count == 2);
    CHECK_INT(work->arcs[0].step, program_find(kit.program, PROGRAM_TOP, STR("work__claim")));
    CHECK(work->arcs[0].when.test && !work->arcs[1].when.test && !work->inclusive);
    // The loop may be where it begins.
    kit_must_be_silent(&kit,
                       STEP("    loop: {cursor: {kind: sqlite, claim: x}, iterator: r}\n    tool: {kind: noop}\n"));
    CHECK_STR(kit.program->steps[kit.program->net->entry].id, STR("start__claim"));
    refuse(STEP("    loop: {cursor: {kind: sqlite}, iterator: r}\n    tool: {kind: noop}\n"), "E0204", "claim");
    refuse(STEP("    loop: {cursor: {claim: x}, iterator: r}\n    tool: {kind: noop}\n"
                "    next: {spec: {mode: inclusive}, arcs: [end]}\n" END),
           "E0215", "exclusive");
    refuse(STEP("    loop: {cursor: 5, iterator: r}\n    tool: {kind: noop}\n"), "E0204", "a loop needs");
}

static const struct net_when *arc_when(const char *text)
{
    kit_must_be_silent(&kit, text);
    return &net_step("start")->arcs[0].when;
}

// Whether the condition holds for an event of that name.
static bool holds(const struct net_when *when, const char *event)
{
    struct json object = json_object();
    bool out;
    CHECK(json_put(&kit.arena, &object, STR("name"), json_string(str_from(event))));
    struct template_local local = {STR("event"), object};
    struct template_scope scope = {.locals = &local, .local_count = 1};
    CHECK_OK(template_condition(when->test, &scope, NULL, &kit.arena, &out, &kit.err), &kit.err);
    return out;
}

static void old_names_of_events_in_arcs_C_47(void)
{
    const struct net_when *when = arc_when(
        STEP("    tool: {kind: noop}\n    next: [{step: end, when: \"{{ event.name == 'call.done' }}\"}]\n" END));
    CHECK(when->event && !when->exit && holds(when, "step.done") && !holds(when, "call.done"));
    CHECK_STR(when->text, STR("{{ event.name == 'call.done' }}"));
    when = arc_when(STEP("    tool: {kind: noop}\n    next: [{step: end, when: event.name == \"call.error\"}]\n" END));
    CHECK(holds(when, "step.failed") && !holds(when, "step.done"));
    when = arc_when(
        STEP("    tool: {kind: noop}\n    next: [{step: end, when: \"{{ event.name in ['step.exit'] }}\"}]\n" END));
    CHECK(when->event && when->exit && holds(when, "step.exit"));
    // A loop ends with loop.done, too; that one also comes when it failed.
    when = arc_when(STEP("    loop: {in: [], iterator: i}\n    tool: {kind: noop}\n"
                         "    next: [{step: end, when: \"{{ event.name == 'call.done' }}\"}]\n" END));
    CHECK(holds(when, "step.done") && !holds(when, "loop.done"));
}

static uint64_t waits(const char *id)
{
    const uint64_t *bits = net_step(id)->upstream;
    return bits ? bits[0] : 0;
}

#define TO(name, next) "  - step: " name "\n    next: " next "\n"
#define LAST(name) "  - step: " name "\n    tool: {kind: noop}\n"

static void tokens_of_one_fan_out_meet_C_48(void)
{
    // 0 s, 1 a, 2 b, 3 j, 4 e
    kit_must_be_silent(&kit, HEAD "workflow:\n" TO("s", "{spec: {mode: inclusive}, arcs: [a, b]}") TO("a", "j")
                                 TO("b", "j") TO("j", "e") LAST("e"));
    CHECK_INT(waits("j"), 1 << 1 | 1 << 2);
    CHECK_INT(waits("e") | waits("a") | waits("b") | waits("s"), 0);
    // The same fan-out, exclusive: one token only.
    kit_must_be_silent(&kit,
                       HEAD "workflow:\n" TO("s", "{arcs: [a, b]}") TO("a", "j") TO("b", "j") TO("j", "e") LAST("e"));
    CHECK_INT(waits("j"), 0);
    // A branch that is a step of the other one; an arc straight to the join.
    kit_must_be_silent(&kit, HEAD "workflow:\n" TO("s", "{spec: {mode: inclusive}, arcs: [a, j]}") TO("a", "b")
                                 TO("b", "j") LAST("j"));
    CHECK_INT(waits("j"), 1 << 1 | 1 << 2);
    // The whole of it repeats: the way back through the fan-out is another round.
    kit_must_be_silent(&kit, HEAD "workflow:\n" TO("s", "{spec: {mode: inclusive}, arcs: [a, b]}") TO("a", "j")
                                 TO("b", "j") TO("j", "[{step: s, when: again}, {step: e}]") LAST("e"));
    CHECK_INT(waits("j"), 1 << 1 | 1 << 2);
    // Two joins that lead to each other do not both wait.
    kit_must_be_silent(&kit, HEAD "workflow:\n" TO("s", "{spec: {mode: inclusive}, arcs: [a, b]}") TO("a", "[b, c]")
                                 TO("b", "[a, c]") LAST("c"));
    CHECK_INT(waits("a") | waits("b"), 0);
    CHECK_INT(waits("c"), 1 << 1 | 1 << 2);
}

static void what_a_step_needs(void)
{
    refuse(STEP("    desc: nothing\n"), "E0227", "\"tool\" is required");
    refuse(STEP("    loop: {in: [], iterator: i}\n    next: start\n"), "E0227", "a \"tool\" is required");
    refuse(HEAD "workflow:\n  - tool: {kind: noop}\n", "E0204", "a step needs \"step\"");
    refuse(HEAD "workflow: []\n", "E0214", "no steps");
    refuse(HEAD "workflow: {start: {}}\n", "E0205", "a list of steps");
    refuse(HEAD, "E0204", "\"workflow\"");
    refuse(STEP("    tool: {kind: noop}\n  - step: start\n    tool: {kind: noop}\n"), "E0301", "used twice");
    refuse(STEP("    tool: {kind: nope}\n"), "E0223", "no tool of kind \"nope\"");
    refuse(STEP("    loop: {in: []}\n    tool: {kind: noop}\n"), "E0204", "\"iterator\"");
    kit_must_warn(&kit, STEP("    tool: {kind: noop}\n    command: x\n"), "E0219", "\"command\" is no field");
}

static void identity_and_version_C_64(void)
{
    kit_must_be_silent(&kit, STEP("    tool: {kind: noop}\n"));
    CHECK_STR(kit.program->plan_id, STR("t/p"));
    CHECK_STR(kit.program->name, STR("p"));
    CHECK_INT(kit.program->plan_version.len, 12);
    CHECK_INT(kit.program->kind, DOCUMENT_PLAYBOOK);
    kit_must_be_silent(
        &kit, "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, version: 1.5}\nworkflow:\n" LAST("a"));
    CHECK_STR(kit.program->plan_id, STR("p"));
    CHECK_STR(kit.program->plan_version, STR("1.5"));
    refuse("apiVersion: noetl.io/v3\nkind: Playbook\nmetadata: {name: p}\nworkflow:\n" LAST("a"), "E0224",
           "noetl.io/v3");
    refuse("kind: Playbook\nmetadata: {name: p}\nworkflow:\n" LAST("a"), "E0204", "apiVersion");
    refuse("apiVersion: noetl.io/v2\nkind: Plan\nmetadata: {name: p}\nworkflow:\n" LAST("a"), "E0206", "Playbook");
}

static void layers_of_spec(void)
{
    kit_must_be_silent(
        &kit, HEAD "executor: {spec: {timeout: 9, policy: {defaults: {timeout_s: 30}}}}\nworkflow:\n"
                   "  - step: a\n    spec: {timeout: 7}\n    loop: {in: [], iterator: i, spec: {timeout: 5}}\n"
                   "    tool: [{kind: noop, timeout: 1}, {kind: noop, spec: {timeout: 3}}, {kind: noop}]\n    next: b\n"
                   "  - step: b\n    spec: {timeout: 7}\n    tool: {kind: noop}\n    next: c\n" LAST("c"));
    CHECK_INT(net_step("a")->tasks[0].timeout_ms, 1000);
    CHECK_INT(net_step("a")->tasks[1].timeout_ms, 3000);
    CHECK_INT(net_step("a")->tasks[2].timeout_ms, 5000);
    CHECK_INT(net_step("b")->tasks[0].timeout_ms, 7000);
    CHECK_INT(net_step("c")->tasks[0].timeout_ms, 9000);
    kit_must_be_silent(&kit,
                       HEAD "executor: {spec: {policy: {defaults: {timeouts: {task_s: 30}}}}}\nworkflow:\n" LAST("a"));
    CHECK_INT(net_step("a")->tasks[0].timeout_ms, 30000);
}

static void rules_around_a_task_are_its_rules(void)
{
    kit_must_be_silent(&kit,
                       STEP("    spec: {policy: {failure: {mode: best_effort}, rules: [{else: {do: break}}]}}\n"
                            "    tool: [{kind: noop}, {kind: noop, spec: {policy: {rules: [{else: {do: fail}}]}}}]\n"));
    CHECK_INT(net_step("start")->tasks[0].rules[0].action, NET_BREAK);
    CHECK_INT(net_step("start")->tasks[1].rules[0].action, NET_FAIL);
    CHECK(net_step("start")->best_effort);
}

static void result_controls_C_62(void)
{
    kit_must_be_silent(&kit, STEP("    tool: {kind: noop}\n"));
    CHECK_INT(net_step("start")->tasks[0].inline_max, 65536);
    CHECK_INT(net_step("start")->tasks[0].preview_max, 1024);
    kit_must_be_silent(&kit,
                       STEP("    output: {output_select: [a, b.c], inline_max_bytes: 5}\n    tool: {kind: noop}\n"));
    const struct net_task *task = &net_step("start")->tasks[0];
    CHECK_INT(task->inline_max, 5);
    CHECK_INT(task->select_count, 2);
    CHECK_STR(task->selects[1].path, STR("b.c"));
    CHECK_STR(task->selects[1].name, STR("c"));
    static const struct {
        const char *text;
        enum net_store store;
    } stores[] = {{"object", NET_STORE_OBJECT},           {"{kind: nats_object}", NET_STORE_OBJECT},
                  {"{driver: object}", NET_STORE_OBJECT}, {"{tier: object, scope: execution}", NET_STORE_OBJECT},
                  {"{kind: auto}", NET_STORE_AUTO},       {"{scope: workflow}", NET_STORE_AUTO}};
    for (size_t i = 0; i < ARRAY_COUNT(stores); i++) {
        char text[300];
        snprintf(text, sizeof(text), STEP("    output: {store: %s}\n    tool: {kind: noop}\n"), stores[i].text);
        kit_must_be_silent(&kit, text);
        CHECK(net_step("start")->tasks[0].store == stores[i].store);
    }
    kit_must_warn(&kit, STEP("    output: {store: {kind: s3}}\n    tool: {kind: noop}\n"), "E0219", "no such place");
    CHECK(net_step("start")->tasks[0].store == NET_STORE_RUN);
    kit_must_warn(&kit, STEP("    output: {store: {kind: object, ttl: 1h}}\n    tool: {kind: noop}\n"), "E0219",
                  "\"ttl\"");
    kit_must_warn(&kit, STEP("    output: {store: {scope: permanent}}\n    tool: {kind: noop}\n"), "E0219",
                  "\"scope\"");
    refuse(STEP("    output: {output_select: ['$']}\n    tool: {kind: noop}\n"), "E0206", "is no path");
}

static void children_are_parts_of_the_program(void)
{
    static const struct kit_file files[] = {{"lib/child", HEAD "workflow:\n" LAST("a")},
                                            {"lib/bad", HEAD "workflow: []\n"},
                                            {"t.yaml", HEAD "workflow:\n" LAST("a")},
                                            {NULL, NULL}};
    kit.files = files;
    kit_must_be_silent(&kit, STEP("    tool: [{kind: playbook, path: lib/child, return_step: a}, {kind: playbook, "
                                  "path: lib/child}, {kind: playbook, path: '{{ p }}'}]\n"));
    const struct net_task *tasks = net_step("start")->tasks;
    CHECK(tasks[0].child && tasks[0].child == tasks[1].child && !tasks[2].child);
    CHECK_STR(tasks[0].playbook, STR("lib/child"));
    CHECK_STR(tasks[0].return_step, STR("a"));
    CHECK_INT(tasks[2].playbook.len, 0);
    CHECK_INT(kit.program->part_count, 1);
    kit_must_warn(&kit, STEP("    tool: {kind: playbook, path: lib/none}\n"), "E0218", "was not found");
    CHECK(!net_step("start")->tasks[0].child);
    kit_must_warn(&kit, STEP("    tool: {kind: playbook, path: lib/bad}\n"), "E0308", "has errors");
    kit_must_be_silent(&kit, STEP("    tool: {kind: playbook, path: t.yaml}\n")); // itself: looked for when it runs
    CHECK(!net_step("start")->tasks[0].child);
    refuse(STEP("    tool: {kind: playbook}\n"), "E0204", "\"path\"");
    kit.files = NULL;
}

static void steps_are_compared_by_what_they_do(void)
{
    struct kit other = {0};
    kit_must_be_silent(&kit, STEP("    tool: {kind: http, url: http://h}\n    next: end\n" END));
    kit_must_be_silent(
        &other, STEP("    tool:\n      kind: http\n      spec: {endpoint: http://h}\n    next: {arcs: [end]}\n" END));
    CHECK(program_same_step(kit.program, 0, other.program, 0, true));
    CHECK(!program_same_step(kit.program, 0, other.program, 1, true));
    kit_must_be_silent(&other, STEP("    tool: {kind: http, url: http://i}\n    next: end\n" END));
    CHECK(!program_same_step(kit.program, 0, other.program, 0, true));
    CHECK(program_same_step(kit.program, 1, other.program, 1, true));
    kit_release(&other);
}

// ---- memory

static void memory_failure_is_an_error_code(void)
{
    static const struct kit_file files[] = {{"child.yaml", HEAD "workflow:\n" LAST("a")}, {NULL, NULL}};
    static const char *const golden[] = {"test/golden/programs/playbook_full.yaml",
                                         "test/golden/programs/playbook_dialects.yaml",
                                         "test/golden/errors/playbook_names.yaml"};
    kit.files = files;
    struct program_loader loader = {.context = &kit, .load = kit_find};
    for (size_t i = 0; i < ARRAY_COUNT(golden); i++) {
        struct str text = test_read_file(golden[i]);
        int64_t n = 1;
        for (enum code rc = E_NOMEM; rc == E_NOMEM; n++) {
            struct load_options options = {.size_max = 1 << 24, .fail_in = n, .fail_sticky = n % 2};
            struct arena arena;
            struct diagnostics diagnostics;
            struct program *program;
            struct error err = {0};
            arena_init(&arena, 4096, 1 << 24);
            diagnostics_init(&diagnostics, &arena);
            rc = program_load_with(text, STR("t"), &loader, &options, &diagnostics, &program, &err);
            CHECK(rc == OK || rc == E_NOMEM || rc == E_INVALID);
            CHECK((rc == OK) == (program != NULL));
            program_release(program);
            arena_release(&arena);
        }
        printf("# %s: %lld allocations\n", golden[i], (long long)n);
        CHECK(n > 60);
    }
    kit.files = NULL;
    kit_release(&kit);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(four_shapes_of_tasks_NX_0e_C_47),
        TEST(three_shapes_of_else_C_47),
        TEST(rules_NX_3_6b_C_46),
        TEST(numbers_may_be_templates),
        TEST(jumps_stay_in_their_step),
        TEST(aliases_have_one_name_C_47),
        TEST(a_workbook_entry_may_be_a_pipeline_C_47),
        TEST(what_a_task_asserts_in_every_shape_C_47),
        TEST(code_is_never_a_template),
        TEST(input_of_a_step_is_its_tasks_input_too),
        TEST(patches_have_a_scope),
        TEST(shapes_of_next_NX_0f),
        TEST(what_was_written_before_v10_C_47),
        TEST(a_cursor_is_a_step_that_asks_and_a_loop_that_leads_back),
        TEST(old_names_of_events_in_arcs_C_47),
        TEST(tokens_of_one_fan_out_meet_C_48),
        TEST(what_a_step_needs),
        TEST(identity_and_version_C_64),
        TEST(layers_of_spec),
        TEST(rules_around_a_task_are_its_rules),
        TEST(result_controls_C_62),
        TEST(children_are_parts_of_the_program),
        TEST(steps_are_compared_by_what_they_do),
        TEST(memory_failure_is_an_error_code),
    };
    return test_main("program_playbook", tests, ARRAY_COUNT(tests), argc, argv);
}
