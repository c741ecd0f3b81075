// Other files: named scripts and child documents, shared, remembered, and never endless; and memory that runs out.
#include "program_kit.h"

static struct kit kit;

#define CALL(id, name) "  - {id: " id ", workflow: " name "}\n"

static void a_child_is_compiled_once_and_shared_I20(void)
{
    static const struct kit_file files[] = {
        {"child", "name: child\nnodes:\n  - {id: x, script: s, runtime: sh}\n"},
        {"s", "echo 1\n"},
        {NULL, NULL},
    };
    kit.files = files;
    kit_must_be_silent(&kit, "name: p\nnodes:\n" CALL("a", "child") CALL("b", "child"));
    const struct program *child = kit_step(&kit, "a")->child;
    CHECK(child && child == kit_step(&kit, "b")->child);
    CHECK_STR(child->plan_id, STR("child"));
    CHECK_INT(kit.load_count, 2);
    CHECK_INT(kit.program->part_count, 2);
    CHECK_STR(kit.program->parts[0].request, STR("child"));
    CHECK_STR(kit.program->parts[0].from, STR("t.yaml"));
    CHECK_STR(kit.program->parts[1].request, STR("s"));
    CHECK_STR(kit.program->parts[1].from, STR("child"));
    struct digest want = sha256(STR("echo 1\n"));
    CHECK(digest_eq(&kit.program->parts[1].sha256, &want));
    // The child outlives its parent while somebody holds it.
    struct program *held = program_retain(child);
    program_release(kit.program);
    kit.program = NULL;
    CHECK_STR(held->steps[0].id, STR("x"));
    program_release(held);
}

static void one_name_is_loaded_once_per_runtime(void)
{
    static const struct kit_file files[] = {{"s", "x\n"}, {NULL, NULL}};
    kit.files = files;
    kit_must_be_silent(&kit, "nodes:\n  - {id: a, script: s, runtime: sh}\n"
                             "  - {id: b, script: s, runtime: sh}\n"
                             "  - {id: c, script: s, runtime: node}\n");
    CHECK_INT(kit.load_count, 2);
    CHECK_INT(kit.program->part_count, 2);
}

static void plans_run_documents_too(void)
{
    static const struct kit_file files[] = {{"c.yaml", "nodes: [{id: x, noop: true}]\n"}, {NULL, NULL}};
    kit.files = files;
    kit_must_be_silent(&kit, "planId: p\nplanVersion: '1'\nsteps:\n  - {id: a, kind: subrun, "
                             "with: {document: c.yaml, inputs: {n: 1}, arguments: hi}}\n");
    CHECK(kit_step(&kit, "a")->child);
    CHECK_STR(kit_step(&kit, "a")->child->plan_id, STR("c"));
}

static void recursion_is_refused_with_its_path(void)
{
    static const struct kit_file files[] = {
        {"b", "nodes:\n" CALL("x", "c")},
        {"c", "nodes:\n" CALL("x", "b")},
        {"t.yaml", "nodes:\n" CALL("x", "t.yaml")},
        {NULL, NULL},
    };
    kit.files = files;
    kit_load(&kit, "t.yaml", STR("nodes:\n" CALL("x", "b")));
    const struct diagnostic *d = kit_found(&kit, "E0307");
    CHECK(d);
    CHECK_STR(d->message, STR("a document runs itself: b -> c -> b"));
    CHECK_STR(d->file, STR("c"));
    CHECK(d->source.ptr && strstr(d->source.ptr, "workflow: b"));
    CHECK(kit_found(&kit, "E0308"));
    kit_load(&kit, "t.yaml", STR("nodes:\n" CALL("x", "t.yaml")));
    CHECK_STR(kit_found(&kit, "E0307")->message, STR("a document runs itself: t.yaml -> t.yaml"));
}

static void errors_of_a_child_are_shown_with_its_text(void)
{
    static const struct kit_file files[] = {{"bad", "nodes:\n  - {id: a, bsh: x}\n"}, {NULL, NULL}};
    kit.files = files;
    struct str text = STR("nodes:\n" CALL("x", "bad") CALL("y", "bad"));
    kit_load(&kit, "t.yaml", text);
    struct str shown = kit_shown(&kit, text);
    CHECK_STR(shown, STR("bad:2:10: error[E0215] the node does nothing\n"
                         "    2 |   - {id: a, bsh: x}\n"
                         "      |          ^\n"
                         "  hint: give it bash, script, approval, event, cancel, workflow, loop_group, wait, "
                         "echo, exec, merge or noop\n"
                         "bad:2:13: error[E0203] unknown field \"bsh\" in a node\n"
                         "    2 |   - {id: a, bsh: x}\n"
                         "      |             ^^^\n"
                         "  hint: did you mean \"bash\"?\n"
                         "t.yaml:2:23: error[E0308] the document bad has errors\n"
                         "    2 |   - {id: x, workflow: bad}\n"
                         "      |                       ^^^\n"
                         "t.yaml:3:23: error[E0308] the document bad has errors\n"
                         "    3 |   - {id: y, workflow: bad}\n"
                         "      |                       ^^^\n"));
}

static void documents_nest_sixteen_deep(void)
{
    static struct kit_file files[20];
    static char names[20][16];
    static char texts[20][64];
    for (int i = 0; i < 17; i++) {
        snprintf(names[i], sizeof(names[i]), "d%d", i);
        snprintf(texts[i], sizeof(texts[i]), "nodes:\n" CALL("x", "d%d") CALL("y", "d%d"), i + 1, i + 1);
        files[i] = (struct kit_file){names[i], texts[i]};
    }
    kit.files = files;
    // Fifteen below the main document: without sharing this would be 2^15 programs.
    snprintf(texts[14], sizeof(texts[14]), "nodes: [{id: x, noop: true}]\n");
    kit_load(&kit, "t.yaml", STR("nodes:\n" CALL("x", "d0")));
    CHECK_INT(kit.rc, OK);
    CHECK_INT(kit.load_count, 15);
    snprintf(texts[14], sizeof(texts[14]), "nodes:\n" CALL("x", "d15"));
    snprintf(texts[15], sizeof(texts[15]), "nodes: [{id: x, noop: true}]\n");
    kit_load(&kit, "t.yaml", STR("nodes:\n" CALL("x", "d0")));
    CHECK(kit_found(&kit, "E0507"));
    // The depth counts even when the deep part was read from nearer the top before.
    kit_load(&kit, "t.yaml", STR("nodes:\n" CALL("w", "d1") CALL("x", "d0")));
    CHECK(kit_found(&kit, "E0507"));
}

static void without_a_loader_other_files_are_refused(void)
{
    struct arena arena;
    struct diagnostics diagnostics;
    struct program *program;
    struct error err = {0};
    arena_init(&arena, 4096, 1 << 20);
    diagnostics_init(&diagnostics, &arena);
    CHECK_INT(program_load(STR("nodes:\n" CALL("x", "b")), STR("t"), NULL, &diagnostics, &program, &err), E_INVALID);
    CHECK_TEXT(diagnostics.items[0].id, "E0218");
    CHECK_TEXT(err.message, "t has 1 error");
    arena_release(&arena);
}

static const char sweep_text[] =
    "name: sweep\ninputs: {n: {type: integer, required: true}, m: 2}\nnodes:\n"
    "  - {id: a, bash: 'echo $b.output $INPUTS.k', env: {A: 1}, secrets: [{name: T, ref: 'env:T'}]}\n"
    "  - {id: b, script: s, runtime: sh, retry: {max_attempts: 2, non_retryable: [x]}}\n"
    "  - {id: c, workflow: child, depends_on: [a, b], when: \"$a.output == 'x' || $b.output != 'y'\"}\n"
    "  - id: l\n    loop_group:\n      max_iterations: 2\n      until_bash: 'false'\n"
    "      nodes: [{id: t, echo: $a.output}]\n";

// Every allocation of the program's and the scratch memory fails once, alone and with all after it.
static void memory_failure_is_an_error_code(void)
{
    static const struct kit_file files[] = {
        {"child", "nodes:\n  - {id: x, noop: true, model: z}\n"}, {"s", "echo\n"}, {NULL, NULL}};
    kit.files = files;
    struct program_loader loader = {.context = &kit, .load = kit_find};
    for (int sticky = 0; sticky < 2; sticky++) {
        int64_t n = 1;
        for (enum code rc = E_NOMEM; rc != OK; n++) {
            struct load_options options = {.size_max = 1 << 24, .fail_in = n, .fail_sticky = sticky};
            struct arena arena;
            struct diagnostics diagnostics;
            struct program *program;
            struct error err = {0};
            arena_init(&arena, 4096, 1 << 24);
            diagnostics_init(&diagnostics, &arena);
            rc = program_load_with(STR(sweep_text), STR("t"), &loader, &options, &diagnostics, &program, &err);
            CHECK(rc == OK || rc == E_NOMEM);
            CHECK((rc == OK) == (program != NULL));
            program_release(program);
            arena_release(&arena);
        }
        printf("# %lld allocations\n", (long long)n);
        CHECK(n > 60);
    }
}

static void memory_failure_of_diagnostics_is_an_error_code(void)
{
    static const struct kit_file files[] = {
        {"child", "nodes:\n  - {id: x, noop: true, model: z}\n"}, {"s", "echo\n"}, {NULL, NULL}};
    kit.files = files;
    struct program_loader loader = {.context = &kit, .load = kit_find};
    int64_t n = 1;
    for (enum code rc = E_NOMEM; rc != OK; n++) {
        struct arena arena;
        struct diagnostics diagnostics;
        struct program *program;
        struct error err = {0};
        arena_init(&arena, 4096, 1 << 24);
        arena.fail_in = n;
        diagnostics_init(&diagnostics, &arena);
        rc = program_load(STR(sweep_text), STR("t"), &loader, &diagnostics, &program, &err);
        CHECK(rc == OK || rc == E_NOMEM);
        program_release(program);
        arena_release(&arena);
    }
    CHECK(n > 5);
}

static void a_ceiling_of_memory_refuses_the_document(void)
{
    struct load_options options = {.size_max = 20000};
    struct arena arena;
    struct diagnostics diagnostics;
    struct program *program;
    struct error err = {0};
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_text(&text, "nodes:\n");
    for (int i = 0; i < 1000; i++) buf_printf(&text, "  - {id: n%d, noop: true}\n", i);
    arena_init(&arena, 4096, 1 << 24);
    diagnostics_init(&diagnostics, &arena);
    CHECK_INT(program_load_with(buf_str(&text), STR("t"), NULL, &options, &diagnostics, &program, &err), E_NOMEM);
    arena_release(&arena);
    buf_release(&text);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(a_child_is_compiled_once_and_shared_I20),
        TEST(one_name_is_loaded_once_per_runtime),
        TEST(plans_run_documents_too),
        TEST(recursion_is_refused_with_its_path),
        TEST(errors_of_a_child_are_shown_with_its_text),
        TEST(documents_nest_sixteen_deep),
        TEST(without_a_loader_other_files_are_refused),
        TEST(memory_failure_is_an_error_code),
        TEST(memory_failure_of_diagnostics_is_an_error_code),
        TEST(a_ceiling_of_memory_refuses_the_document),
    };
    return test_main("program_parts", tests, ARRAY_COUNT(tests), argc, argv);
}
