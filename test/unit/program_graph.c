// Dependencies: layers, order, cycles, the upstream error strings, limits, and that all of it is linear.
#include "program_kit.h"

#include <time.h>

static struct kit kit;

#define PLAN(steps) "{\"planId\":\"p\",\"planVersion\":\"1\",\"steps\":[" steps "]}"
#define NOOP(id, deps) "{\"stepId\":\"" id "\",\"kind\":\"noop\",\"dependsOn\":[" deps "]}"

static void check_order(const uint32_t *want, uint32_t count)
{
    CHECK_INT(kit.program->top_count, count);
    for (uint32_t i = 0; i < count; i++) CHECK_INT(kit.program->order[i], want[i]);
}

static void kahn_layers_of_a_diamond_ES_1_2_s11(void)
{
    kit_must_be_silent(&kit,
                       PLAN(NOOP("a", "") "," NOOP("b", "\"a\"") "," NOOP("c", "\"a\"") "," NOOP("d", "\"b\",\"c\"")));
    check_order((const uint32_t[]){0, 1, 2, 3}, 4);
    const struct program_step *a = kit_step(&kit, "a");
    CHECK_INT(a->dependent_count, 2);
    CHECK_INT(a->dependents[0], 1);
    CHECK_INT(a->dependents[1], 2);
    const struct program_step *d = kit_step(&kit, "d");
    CHECK_INT(d->dep_count, 2);
    CHECK_INT(d->deps[0], 1);
    CHECK_INT(d->deps[1], 2);
}

static void declaration_order_inside_a_layer(void)
{
    // Layers: {c, e}, {a, d}, {b}.
    kit_must_be_silent(&kit, PLAN(NOOP("a", "\"e\"") "," NOOP("b", "\"a\",\"d\"") "," NOOP("c", "") "," NOOP(
                                 "d", "\"c\"") "," NOOP("e", "")));
    check_order((const uint32_t[]){2, 4, 0, 3, 1}, 5);
}

static void no_dependencies_anywhere_means_declaration_order(void)
{
    kit_must_be_silent(&kit, PLAN("{\"stepId\":\"a\",\"kind\":\"noop\"},"
                                  "{\"stepId\":\"b\",\"kind\":\"noop\"},"
                                  "{\"stepId\":\"c\",\"kind\":\"noop\"}"));
    CHECK_INT(kit_step(&kit, "a")->dep_count, 0);
    CHECK_INT(kit_step(&kit, "b")->deps[0], 0);
    CHECK_INT(kit_step(&kit, "c")->deps[0], 1);
    CHECK_INT(kit_step(&kit, "a")->dependent_count, 1);
}

static void one_empty_list_of_dependencies_ends_declaration_order(void)
{
    kit_must_be_silent(&kit, PLAN("{\"stepId\":\"a\",\"kind\":\"noop\"},"
                                  "{\"stepId\":\"b\",\"kind\":\"noop\",\"dependencies\":[]}"));
    CHECK_INT(kit_step(&kit, "b")->dep_count, 0);
}

static void nodes_without_dependencies_are_parallel(void)
{
    kit_must_be_silent(&kit, "name: n\nnodes:\n  - {id: a, bash: x}\n  - {id: b, bash: x}\n");
    CHECK_INT(kit_step(&kit, "b")->dep_count, 0);
}

static void upstream_error_strings_of_plans(void)
{
    const char *code = "INVALID_PLAN_SCHEMA";
    kit_must_refuse(&kit, PLAN(NOOP("a", "") "," NOOP("a", "")), "E0301", code, "duplicate_step_id:a");
    kit_must_refuse(&kit, PLAN(NOOP("b", "\"x\"")), "E0302", code,
                    "step \"b\" depends on \"x\", which does not exist (unknown_dependency:b->x)");
    kit_must_refuse(&kit, PLAN(NOOP("a", "\"a\"")), "E0303", code, "self_dependency:a");
    kit_must_refuse(&kit, PLAN(NOOP("a", "7")), "E0305", code, "invalid_dependency_value:a");
    kit_must_refuse(&kit, PLAN(NOOP("a", "\"\"")), "E0305", code, "invalid_dependency_value:a");
    kit_must_refuse(&kit, PLAN(NOOP("a", "\"b\"") "," NOOP("b", "\"a\"")), "E0304", code,
                    "a -> b -> a (cyclic_dependencies_detected)");
}

static void a_duplicate_id_names_the_place_of_the_first(void)
{
    kit_load(&kit, "t",
             STR("nodes:\n  - {id: a, bash: x}\n  - {id: b, bash: x}\n"
                 "  - {id: a, bash: y}\n"));
    const struct diagnostic *d = kit_found(&kit, "E0301");
    CHECK(d);
    CHECK_INT(d->line, 4);
    CHECK_INT(d->column, 10);
    CHECK_STR(d->hint, STR("the first one is on line 2"));
}

static void unknown_dependencies_get_the_nearest_name(void)
{
    kit_load(&kit, "t",
             STR("nodes:\n  - {id: build-all, bash: x}\n"
                 "  - {id: b, bash: x, depends_on: [biuld-all]}\n"));
    const struct diagnostic *d = kit_found(&kit, "E0302");
    CHECK(d);
    CHECK_STR(d->hint, STR("did you mean \"build-all\"?"));
    CHECK_INT(d->width, 9);
}

static void cycles_are_found_each_once(void)
{
    kit_load(&kit, "t",
             STR(PLAN(NOOP("a", "\"c\"") "," NOOP("b", "\"a\"") "," NOOP("c", "\"b\"") "," NOOP("d", "\"c\"") "," NOOP(
                 "e", "\"f\"") "," NOOP("f", "\"e\"") "," NOOP("g", ""))));
    CHECK_INT(kit.rc, E_INVALID);
    CHECK_INT(kit.diagnostics.error_count, 2);
    CHECK(strstr(kit.diagnostics.items[0].message.ptr, "a -> c -> b -> a"));
    CHECK(strstr(kit.diagnostics.items[1].message.ptr, "e -> f -> e"));
}

static void cycles_behind_a_tail_are_found(void)
{
    kit_load(&kit, "t",
             STR("nodes:\n  - {id: t, bash: x, depends_on: [u]}\n"
                 "  - {id: u, bash: x, depends_on: [v]}\n"
                 "  - {id: v, bash: x, depends_on: [u]}\n"));
    const struct diagnostic *d = kit_found(&kit, "E0304");
    CHECK(d);
    CHECK_STR(d->message, STR("dependencies form a cycle: u -> v -> u"));
    CHECK_INT(d->line, 3);
}

static void a_repeated_dependency_is_a_warning(void)
{
    kit_must_warn(&kit, PLAN(NOOP("a", "") "," NOOP("b", "\"a\",\"a\"")), "E0306", "twice");
    CHECK_INT(kit_step(&kit, "b")->dep_count, 1);
    CHECK_INT(kit_step(&kit, "a")->dependent_count, 1);
}

static void all_mistakes_are_listed_at_once(void)
{
    kit_load(&kit, "t",
             STR(PLAN(NOOP("a", "\"q\"") "," NOOP("a", "") "," NOOP("c", "\"c\"") "," NOOP("d", "\"e\"") "," NOOP(
                 "e", "\"d\"") ","
                               "{\"stepId\":\"f\",\"kind\":\"nope\",\"dependsOn\":[]}")));
    CHECK_INT(kit.diagnostics.error_count, 5);
}

static void until_of_a_loop_waits_for_the_whole_body(void)
{
    kit_must_be_silent(&kit, "nodes:\n  - id: l\n    loop_group:\n      max_iterations: 3\n"
                             "      until_bash: test -f x\n      nodes:\n"
                             "        - {id: a, bash: x}\n"
                             "        - {id: b, bash: y, depends_on: [a]}\n"
                             "  - {id: z, noop: true, depends_on: [l]}\n");
    const struct program *p = kit.program;
    CHECK_INT(p->top_count, 2);
    CHECK_INT(p->step_count, 5);
    const struct program_step *loop = &p->steps[0];
    CHECK_INT(loop->first_child, 2);
    CHECK_INT(loop->child_count, 3);
    CHECK_INT(loop->until, 4);
    CHECK_INT(loop->max_iterations, 3);
    CHECK_INT(program_find(p, 0, STR("b")), 3);
    CHECK_INT(program_find(p, PROGRAM_TOP, STR("b")), PROGRAM_TOP);
    CHECK_INT(p->steps[4].dep_count, 2);
    CHECK(p->steps[4].condition);
    CHECK_INT(p->steps[4].rule, RULE_NONE_FAILED);
    CHECK_INT(p->steps[3].scope, 0);
    CHECK_INT(p->steps[3].deps[0], 2);
}

static void ids_are_unique_per_scope_only(void)
{
    kit_must_be_silent(&kit, "nodes:\n  - {id: a, bash: x}\n  - id: l\n    depends_on: [a]\n"
                             "    loop_group: {max_iterations: 1, nodes: [{id: a, bash: y}]}\n");
    CHECK_INT(program_find(kit.program, PROGRAM_TOP, STR("a")), 0);
    CHECK_INT(program_find(kit.program, 1, STR("a")), 2);
    CHECK_INT(kit.program->steps[1].until, PROGRAM_TOP);
}

static void a_loop_body_cannot_depend_on_the_outside(void)
{
    kit_load(&kit, "t",
             STR("nodes:\n  - {id: outer, bash: x}\n  - id: l\n"
                 "    loop_group: {max_iterations: 1, nodes: "
                 "[{id: in, bash: y, depends_on: [outer]}]}\n"));
    const struct diagnostic *d = kit_found(&kit, "E0302");
    CHECK(d);
    CHECK_STR(d->hint, STR("it is outside of the loop; make the loop itself depend on it"));
}

static void loops_nest_sixteen_deep(void)
{
    struct buf text;
    buf_init(&text, 1 << 16);
    for (int depth = 16; depth <= 17; depth++) {
        buf_clear(&text);
        buf_text(&text, "nodes:\n");
        int indent = 0;
        for (int i = 0; i < depth; i++, indent += 4)
            buf_printf(&text, "%*s- id: l\n%*s  loop_group:\n%*s    max_iterations: 1\n%*s    nodes:\n", indent, "",
                       indent, "", indent, "", indent, "");
        buf_printf(&text, "%*s- {id: x, noop: true}\n", indent, "");
        kit_load(&kit, "t", buf_str(&text));
        if (depth == 16)
            CHECK_INT(kit.rc, OK);
        else
            CHECK(kit_found(&kit, "E0507"));
    }
    buf_release(&text);
}

static void step_and_edge_limits(void)
{
    struct buf text;
    buf_init(&text, 1 << 24);
    for (int count = 10000; count <= 10001; count++) {
        buf_clear(&text);
        buf_text(&text, "{\"planId\":\"p\",\"planVersion\":\"1\",\"steps\":[");
        for (int i = 0; i < count; i++) buf_printf(&text, "%s{\"id\":\"s%d\",\"kind\":\"noop\"}", i ? "," : "", i);
        buf_text(&text, "]}");
        kit_load(&kit, "t", buf_str(&text));
        CHECK_INT(kit.rc, count == 10000 ? OK : E_INVALID);
        if (count > 10000) CHECK(kit_found(&kit, "E0505"));
    }
    // 51 steps of which each depends on 1,000: more than 50,000 in all.
    for (int wide = 50; wide <= 51; wide++) {
        buf_clear(&text);
        buf_text(&text, "{\"planId\":\"p\",\"planVersion\":\"1\",\"steps\":[");
        for (int i = 0; i < 1000; i++) buf_printf(&text, "{\"id\":\"s%d\",\"kind\":\"noop\"},", i);
        for (int i = 0; i < wide; i++) {
            buf_printf(&text, "%s{\"id\":\"w%d\",\"kind\":\"noop\",\"dependsOn\":[", i ? "," : "", i);
            for (int k = 0; k < 1000; k++) buf_printf(&text, "%s\"s%d\"", k ? "," : "", k);
            buf_text(&text, "]}");
        }
        buf_text(&text, "]}");
        kit_load(&kit, "t", buf_str(&text));
        CHECK_INT(kit.rc, wide == 50 ? OK : E_INVALID);
        if (wide > 50) CHECK(kit_found(&kit, "E0506"));
    }
    buf_release(&text);
}

// Nodes of loops and the conditions of loops count.
static void node_limit_counts_loops(void)
{
    struct buf text;
    buf_init(&text, 1 << 24);
    for (int inner = 9997; inner <= 9999; inner++) {
        buf_clear(&text);
        buf_text(&text, "nodes:\n  - id: l\n    loop_group:\n      max_iterations: 1\n"
                        "      until_bash: x\n      nodes:\n");
        for (int i = 0; i < inner; i++) buf_printf(&text, "        - {id: n%d, noop: true}\n", i);
        buf_text(&text, "  - {id: last, noop: true}\n");
        kit_load(&kit, "t", buf_str(&text));
        CHECK_INT(kit.rc, inner == 9997 ? OK : E_INVALID);
        CHECK_INT(kit.diagnostics.error_count, inner == 9997 ? 0 : 1);
        if (inner > 9997) CHECK(kit_found(&kit, "E0505"));
    }
    buf_release(&text);
}

static double milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

// A chain, a fan and a cycle of 10,000: times are printed; the ceiling only catches what is not linear.
static void ten_thousand_steps_are_linear(void)
{
    static const char *const shapes[] = {"chain", "fan", "ring", "refs"};
    struct buf text;
    buf_init(&text, 1 << 24);
    for (size_t shape = 0; shape < ARRAY_COUNT(shapes); shape++) {
        buf_clear(&text);
        buf_text(&text, "{\"planId\":\"p\",\"planVersion\":\"1\",\"steps\":[");
        for (int i = 0; i < 10000; i++) {
            int dep = shape == 1 ? 0 : shape == 2 && i == 0 ? 9999 : i - 1;
            if (dep < 0 || dep == i)
                buf_printf(&text, "{\"id\":\"s%d\",\"kind\":\"noop\",\"dependsOn\":[]}", i);
            else if (shape < 3)
                buf_printf(&text, "%s{\"id\":\"s%d\",\"kind\":\"noop\",\"dependsOn\":[\"s%d\"]}", i ? "," : "", i, dep);
            else
                buf_printf(&text,
                           ",{\"id\":\"s%d\",\"kind\":\"noop\",\"dependsOn\":[\"s%d\"],"
                           "\"when\":\"$s0.output == 'x'\"}",
                           i, dep);
        }
        buf_text(&text, "]}");
        double start = milliseconds();
        kit_load(&kit, "t", buf_str(&text));
        double took = milliseconds() - start;
        CHECK_INT(kit.rc, shape == 2 ? E_INVALID : OK);
        printf("# 10,000 steps, %s: %.1f ms, %zu KiB text\n", shapes[shape], took, text.len / 1024);
        CHECK(took < 3000);
    }
    buf_release(&text);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(kahn_layers_of_a_diamond_ES_1_2_s11),
        TEST(declaration_order_inside_a_layer),
        TEST(no_dependencies_anywhere_means_declaration_order),
        TEST(one_empty_list_of_dependencies_ends_declaration_order),
        TEST(nodes_without_dependencies_are_parallel),
        TEST(upstream_error_strings_of_plans),
        TEST(a_duplicate_id_names_the_place_of_the_first),
        TEST(unknown_dependencies_get_the_nearest_name),
        TEST(cycles_are_found_each_once),
        TEST(cycles_behind_a_tail_are_found),
        TEST(a_repeated_dependency_is_a_warning),
        TEST(all_mistakes_are_listed_at_once),
        TEST(until_of_a_loop_waits_for_the_whole_body),
        TEST(ids_are_unique_per_scope_only),
        TEST(a_loop_body_cannot_depend_on_the_outside),
        TEST(loops_nest_sixteen_deep),
        TEST(step_and_edge_limits),
        TEST(node_limit_counts_loops),
        TEST(ten_thousand_steps_are_linear),
    };
    return test_main("program_graph", tests, ARRAY_COUNT(tests), argc, argv);
}
