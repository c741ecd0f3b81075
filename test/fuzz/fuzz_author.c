// Any document that compiles can be drawn, proved, laid out, planned and rendered; what is laid out or converted compiles again.
#include "author/author.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum code find_part(void *context, struct program_part *part, struct arena *arena, struct error *err)
{
    (void)context, (void)err;
    part->file = arena_copy(arena, part->request);
    part->text =
        arena_copy(arena, part->kind == PART_SCRIPT ? STR("true\n") : STR("nodes:\n  - {id: a, noop: true}\n"));
    return part->file.ptr && part->text.ptr ? OK : E_NOMEM;
}

static const struct program_loader loader = {.load = find_part};

static bool mark(void *context, uint32_t step, struct graph_mark *out)
{
    (void)context;
    *out = (struct graph_mark){.glyph = "*", .word = step % 2 ? "done" : "failed", .note = {"note", 4}};
    return step % 3 != 0;
}

static void draw(const struct program *program, struct arena *arena)
{
    for (int i = 0; i < 8; i++) {
        struct graph_options options = {.format = (enum graph_format)(i % 4 + 1),
                                        .columns = i < 4 ? 80 : 31,
                                        .utf8 = i % 2,
                                        .all = i >= 4,
                                        .mark = i >= 4 ? mark : NULL};
        struct error err = {0};
        struct buf out;
        buf_init(&out, 64 * 1024 * 1024);
        enum code rc = graph_write(&out, program, &options, arena, &err);
        INVARIANT(rc == OK || rc == E_LIMIT);
        INVARIANT(str_utf8(buf_str(&out)));
        buf_release(&out);
    }
}

static void check_text(struct str text, struct arena *arena)
{
    struct diagnostics diagnostics;
    struct program *program;
    struct error err = {0};
    diagnostics_init(&diagnostics, arena);
    INVARIANT(program_load(text, STR("made"), &loader, &diagnostics, &program, &err) == OK);
    program_release(program);
}

static void rewrite(const struct program *program, struct arena *arena)
{
    struct error err = {0};
    struct str text;
    struct buf out;
    struct diagnostics diagnostics;
    enum code rc = author_format(program, &loader, arena, &text, &err);
    INVARIANT(rc == OK || rc == E_UNSUPPORTED);
    if (rc == OK) check_text(text, arena);
    diagnostics_init(&diagnostics, arena);
    buf_init(&out, 16 * 1024 * 1024);
    err = (struct error){0};
    rc = author_convert(program, program->kind == DOCUMENT_PLAN ? DOCUMENT_NODES : DOCUMENT_PLAN, &diagnostics, arena,
                        &out, &err);
    INVARIANT(rc == OK || rc == E_UNSUPPORTED);
    text = arena_copy(arena, buf_str(&out));
    if (rc == OK) check_text(text, arena);
    buf_release(&out);
}

static void look(const struct program *program, struct arena *arena)
{
    struct error err = {0};
    struct json value;
    struct diagnostics diagnostics;
    struct render_facts facts = {.inputs = program->inputs};
    diagnostics_init(&diagnostics, arena);
    INVARIANT(sound_check(program, &diagnostics, &err) == OK);
    INVARIANT(author_plan(program, STR("u"), arena, &value, &err) == OK);
    for (uint32_t i = 0; i < program->step_count && i < 50; i++) {
        enum code rc = author_render(program, i, &facts, arena, &value, &err);
        INVARIANT(!rc || (program->net && rc == E_INVALID)); // a workload that cannot be made
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct arena arena;
    struct diagnostics diagnostics;
    struct program *program;
    struct error err = {0};
    if (size > 16 * 1024) return 0;
    arena_init(&arena, 4096, 512 * 1024 * 1024);
    diagnostics_init(&diagnostics, &arena);
    if (program_load(text, STR("fuzz"), &loader, &diagnostics, &program, &err) == OK) {
        draw(program, &arena);
        look(program, &arena);
        rewrite(program, &arena);
    }
    program_release(program);
    arena_release(&arena);
    return 0;
}
