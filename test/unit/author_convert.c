// Conversion: there and back compiles to the same program, runs take the same path, and what cannot be said is refused.
#include "program_kit.h"

#include "author/fmt.h"
#include "support/worlds.h"

static struct kit kit;

static enum code convert(const struct program *program, enum document_kind to, struct arena *arena, struct str *out)
{
    struct diagnostics diagnostics;
    struct error err = {0};
    struct buf text;
    buf_init(&text, 1 << 22);
    diagnostics_init(&diagnostics, arena);
    enum code rc = author_convert(program, to, &diagnostics, arena, &text, &err);
    CHECK(rc == OK || rc == E_UNSUPPORTED);
    CHECK((rc == OK) == (diagnostics.error_count == 0));
    CHECK(rc == OK || text.len == 0);
    *out = arena_copy(arena, rc ? diagnostics.items[0].message : buf_str(&text)); // why not, or the document
    buf_release(&text);
    return rc;
}

static struct program *load_text(struct str text, const struct program_loader *loader, struct arena *arena)
{
    struct diagnostics diagnostics;
    struct program *program = NULL;
    struct error err = {0};
    diagnostics_init(&diagnostics, arena);
    if (program_load(text, STR("t.yaml"), loader, &diagnostics, &program, &err)) {
        struct buf shown;
        buf_init(&shown, 1 << 16);
        for (size_t i = 0; i < diagnostics.count; i++) diagnostic_write(&shown, &diagnostics.items[i], text, false);
        test_fail(__FILE__, __LINE__, "%s\n%s", text.ptr, shown.ptr);
    }
    return program;
}

static void same_program(const struct program *a, const struct program *b)
{
    struct buf x, y;
    struct error err = {0};
    buf_init(&x, 1 << 22);
    buf_init(&y, 1 << 22);
    CHECK_OK(author_meaning(&x, a, &err), &err);
    CHECK_OK(author_meaning(&y, b, &err), &err);
    CHECK_STR(buf_str(&y), buf_str(&x));
    buf_release(&x);
    buf_release(&y);
}

static const struct kit_file files[] = {{"child", "nodes: [{id: a, noop: true}]"}, {"tool.py", "print(1)\n"}, {0}};

static void there_and_back(const char *text)
{
    struct str other, back;
    kit.files = files;
    struct program_loader loader = {.context = &kit, .load = kit_find};
    kit_must_load(&kit, text);
    enum document_kind kind = kit.program->kind;
    if (convert(kit.program, kind == DOCUMENT_PLAN ? DOCUMENT_NODES : DOCUMENT_PLAN, &kit.arena, &other))
        test_fail(__FILE__, __LINE__, "%s\n%s", other.ptr, text);
    struct program *converted = load_text(other, &loader, &kit.arena);
    CHECK(converted->kind != kind);
    if (convert(converted, kind, &kit.arena, &back)) test_fail(__FILE__, __LINE__, "%s\n%s", back.ptr, other.ptr);
    struct program *again = load_text(back, &loader, &kit.arena);
    same_program(kit.program, again);
    program_release(converted);
    program_release(again);
    kit_release(&kit);
}

static void every_kind_there_and_back(void)
{
    there_and_back(
        "name: all\nversion: \"7\"\ndescription: what it is\ntags: [a, b]\n"
        "inputs: { day: { type: string, required: true }, n: 3 }\n"
        "nodes:\n"
        "  - { id: sh, bash: \"a\\nb\\n\", env: { X: \"1\" }, cwd: /tmp, timeout: 5s }\n"
        "  - { id: py, script: \"print(1)\\nprint(2)\", runtime: python3, depends_on: [sh] }\n"
        "  - { id: file, script: tool.py, runtime: python3, depends_on: [py], timeout: 0 }\n"
        "  - { id: ask, approval: { message: \"go: '$sh.output'?\", timeout: 1h, on_timeout: reject }, "
        "depends_on: [file], retry: { max_attempts: 2, on_error: all, non_retryable: [X] } }\n"
        "  - { id: sub, workflow: child, with: { a: [1, { b: null }] }, depends_on: [ask] }\n"
        "  - { id: nap, wait: 90s, depends_on: [sub] }\n"
        "  - { id: until, wait: \"2030-01-01T00:00:00Z\", depends_on: [nap] }\n"
        "  - { id: ex, exec: [printf, \"%s\", \"#x: y\"], depends_on: [until], secrets: [{ name: S, ref: "
        "\"env:S\" }] }\n"
        "  - { id: say, echo: { deep: [true, \"yes\", \"\", 1.50] }, depends_on: [ex], when: \"$ex.output != "
        "''\" }\n"
        "  - { id: both, merge: true, depends_on: [say], name: all of it, description: \"- more\" }\n"
        "  - { id: end, noop: true, depends_on: [both], trigger_rule: all_done }\n");
    there_and_back("metadata: { planId: p, planVersion: 2.10, description: \"a: b\" }\ninputs: { x: 1 }\nsteps:\n"
                   "  - { stepId: a, kind: shell, with: { command: \"x\\n\\n  y\\n\" } }\n"
                   "  - { stepId: b, kind: merge, with: { message: m } }\n"
                   "  - { stepId: c, kind: wait, with: { duration: 1s }, timeout: 5s }\n");
}

static void refuses(const char *text, const char *part)
{
    struct error err = {0};
    struct buf out;
    buf_init(&out, 1 << 20);
    kit_must_load(&kit, text);
    enum document_kind to = kit.program->kind == DOCUMENT_PLAN ? DOCUMENT_NODES : DOCUMENT_PLAN;
    CHECK_INT(author_convert(kit.program, to, &kit.diagnostics, &kit.arena, &out, &err), E_UNSUPPORTED);
    CHECK_INT(out.len, 0);
    const struct diagnostic *d = kit_found(&kit, "E0801");
    if (!d || !d->line || !strstr(kit_shown(&kit, str_from(text)).ptr, part))
        test_fail(__FILE__, __LINE__, "%s: not \"%s\"\n%s", text, part, kit_shown(&kit, str_from(text)).ptr);
    buf_release(&out);
    kit_release(&kit);
}

static void what_cannot_be_said_is_refused(void)
{
    refuses("nodes: [{ id: l, loop_group: { max_iterations: 2, nodes: [{ id: a, noop: true }] } }]", "no loops");
    refuses("nodes: [{ id: c, cancel: x }]", "cancels the run");
    refuses("nodes: [{ id: c, noop: true, always_run: true }]", "always_run");
    refuses("nodes: [{ id: a, bash: x }, { id: b, bash: x, depends_on: [c] }, { id: c, bash: x }]",
            "beside it is still started by a node workflow");
    refuses("nodes: [{ id: a, bash: x, when: \"$INPUTS.x == '1'\" }]", "every step is skipped");
    refuses("planId: p\nplanVersion: 1\nsteps: [{ stepId: 1a, kind: noop }]", "begin with a letter");
    refuses("planId: p\nplanVersion: 1\nonStepFailure: hold\nsteps: [{ stepId: a, kind: noop }]", "do not hold");
    refuses("planId: p\nplanVersion: 1\ntargetAdapter: any\nsteps: [{ stepId: a, kind: noop }]", "targetAdapter");
    refuses("planId: p\nplanVersion: 1\nsteps: [{ stepId: a, kind: noop, simulateError: transient }]", "simulateError");
    refuses("planId: p\nplanVersion: 1\nsteps: [{ stepId: a, kind: shell, with: { command: x }, retry: { maxAttempts: "
            "3 } }]",
            "doubles");
    refuses("planId: p\nplanVersion: 1\nname: Other\nsteps: [{ stepId: a, kind: noop }]", "one name");
}

// Random documents: whatever is converted runs like the original in every world.
static void converted_documents_take_the_same_path(void)
{
    unsigned seed = 5;
    int converted = 0;
    for (int round = 0; round < 1500 && converted < 60; round++) {
        struct buf text;
        struct str other;
        buf_init(&text, 1 << 16);
        random_document(&text, &seed, round % 2 == 0);
        kit_must_load(&kit, text.ptr);
        enum document_kind to = kit.program->kind == DOCUMENT_PLAN ? DOCUMENT_NODES : DOCUMENT_PLAN;
        if (convert(kit.program, to, &kit.arena, &other) == OK) {
            struct program *program = load_text(other, NULL, &kit.arena);
            unsigned world[STEPS_MAX] = {0};
            converted++;
            do
                for (size_t i = 0; i < 2 * value_count; i++) {
                    bool a[STEPS_MAX] = {false}, b[STEPS_MAX] = {false};
                    uint8_t x[STEPS_MAX + 1], y[STEPS_MAX + 1];
                    run_world(kit.program, world, values[i / 2], i % 2, a, x);
                    run_world(program, world, values[i / 2], i % 2, b, y);
                    if (memcmp(a, b, sizeof(a)) != 0 || memcmp(x, y, kit.program->step_count + 1) != 0)
                        test_fail(__FILE__, __LINE__, "another path after conversion\n%s\n%s", text.ptr, other.ptr);
                }
            while (next_world(kit.program, world));
            program_release(program);
        }
        buf_release(&text);
    }
    CHECK(converted >= 40);
    kit_release(&kit);
}

static void texts_of_documents_are_written_so_that_readers_keep_them(void)
{
    struct arena arena;
    struct buf out;
    struct json document;
    struct error err = {0};
    arena_init(&arena, 4096, 1 << 20);
    buf_init(&out, 4096);
    struct str text =
        STR("{\"a\":\"x\\u0085y\",\"b\":\"z\\u2028\",\"c\":\"grün\\nblau\\n\",\"d\":\"No\",\"e\":\"a b\"}");
    CHECK_OK(json_parse(text, &json_limits_default, &arena, &document, &err), &err);
    yaml_document(&out, &document);
    CHECK_STR(buf_str(&out), STR("a: \"x\\u0085y\"\nb: \"z\\u2028\"\nc: |\n  grün\n  blau\nd: \"No\"\ne: a b\n"));
    buf_release(&out);
    arena_release(&arena);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(every_kind_there_and_back),
        TEST(what_cannot_be_said_is_refused),
        TEST(converted_documents_take_the_same_path),
        TEST(texts_of_documents_are_written_so_that_readers_keep_them),
    };
    return test_main("author_convert", tests, ARRAY_COUNT(tests), argc, argv);
}
