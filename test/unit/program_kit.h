// What the tests of programs share: loading a text, other files from a table in memory, diagnostics as text.
#ifndef CAIRN_TEST_UNIT_PROGRAM_KIT_H
#define CAIRN_TEST_UNIT_PROGRAM_KIT_H

#include "harness/test.h"
#include "program/internal.h"

#include <stdio.h>
#include <string.h>

struct kit_file {
    const char *name, *text;
};

struct kit {
    struct arena arena;
    struct diagnostics diagnostics;
    struct program *program;
    struct error err;
    enum code rc;
    const struct kit_file *files; // ends with a NULL name
    unsigned load_count;
};

static UNUSED enum code kit_find(void *context, struct program_part *part, struct arena *arena, struct error *err)
{
    struct kit *kit = context;
    kit->load_count++;
    CHECK((part->kind == PART_SCRIPT) == (part->runtime.len > 0));
    for (const struct kit_file *entry = kit->files; entry && entry->name; entry++) {
        if (!str_is(part->request, entry->name)) continue;
        part->file = arena_copy(arena, part->request);
        part->text = arena_copy(arena, str_from(entry->text));
        return part->file.ptr && part->text.ptr ? OK : E_NOMEM;
    }
    return error_set(err, E_NOT_FOUND, "%s \"%.*s\" was not found for %.*s",
                     part->kind == PART_SCRIPT ? "script" : "document", STR_ARG(part->request), STR_ARG(part->from));
}

static UNUSED void kit_release(struct kit *kit)
{
    program_release(kit->program);
    arena_release(&kit->arena);
    *kit = (struct kit){.files = kit->files};
}

static UNUSED void kit_load(struct kit *kit, const char *file, struct str text)
{
    kit_release(kit);
    struct program_loader loader = {.context = kit, .load = kit_find};
    arena_init(&kit->arena, 4096, 64 * 1024 * 1024);
    diagnostics_init(&kit->diagnostics, &kit->arena);
    kit->rc = program_load(text, str_from(file), &loader, &kit->diagnostics, &kit->program, &kit->err);
    CHECK((kit->rc == OK) == (kit->program != NULL));
    CHECK((kit->rc == E_INVALID) == (kit->diagnostics.error_count > 0));
    diagnostics_sort(&kit->diagnostics);
}

// All diagnostics as the user sees them; in the kit's arena.
static UNUSED struct str kit_shown(struct kit *kit, struct str text)
{
    struct buf out;
    buf_init(&out, 1 << 22);
    for (size_t i = 0; i < kit->diagnostics.count; i++) diagnostic_write(&out, &kit->diagnostics.items[i], text, false);
    struct str shown = arena_copy(&kit->arena, buf_str(&out));
    CHECK(buf_ok(&out) && shown.ptr);
    buf_release(&out);
    return shown;
}

static UNUSED void kit_must_load(struct kit *kit, const char *text)
{
    kit_load(kit, "t.yaml", str_from(text));
    if (kit->rc) test_fail(__FILE__, __LINE__, "%s\n%s", kit->err.message, kit_shown(kit, str_from(text)).ptr);
}

static UNUSED const struct diagnostic *kit_found(const struct kit *kit, const char *id)
{
    for (size_t i = 0; i < kit->diagnostics.count; i++)
        if (strcmp(kit->diagnostics.items[i].id, id) == 0) return &kit->diagnostics.items[i];
    return NULL;
}

// The text is refused with this diagnostic and this contract code; `part` is in its message.
static UNUSED void kit_must_refuse(struct kit *kit, const char *text, const char *id, const char *code,
                                   const char *part)
{
    kit_load(kit, "t.yaml", str_from(text));
    const struct diagnostic *d = kit_found(kit, id);
    if (kit->rc != E_INVALID || !d)
        test_fail(__FILE__, __LINE__, "%s: no %s\n%s", text, id, kit_shown(kit, str_from(text)).ptr);
    if (strcmp(d->code, code) != 0 || !strstr(d->message.ptr, part) || d->line == 0)
        test_fail(__FILE__, __LINE__, "%s:\n%s %s %u:%u %s", text, d->id, d->code, d->line, d->column, d->message.ptr);
}

static UNUSED void kit_must_warn(struct kit *kit, const char *text, const char *id, const char *part)
{
    kit_must_load(kit, text);
    const struct diagnostic *d = kit_found(kit, id);
    if (!d || !strstr(d->message.ptr, part))
        test_fail(__FILE__, __LINE__, "%s: no %s with %s\n%s", text, id, part, kit_shown(kit, str_from(text)).ptr);
}

static UNUSED void kit_must_be_silent(struct kit *kit, const char *text)
{
    kit_must_load(kit, text);
    if (kit->diagnostics.count) test_fail(__FILE__, __LINE__, "%s\n%s", text, kit_shown(kit, str_from(text)).ptr);
}

static UNUSED const struct program_step *kit_step(const struct kit *kit, const char *id)
{
    uint32_t index = program_find(kit->program, PROGRAM_TOP, str_from(id));
    if (index == PROGRAM_TOP) test_fail(__FILE__, __LINE__, "no step %s", id);
    return &kit->program->steps[index];
}

static UNUSED void kit_golden(const struct kit *kit, const char *name)
{
    struct buf out;
    buf_init(&out, 1 << 22);
    program_dump(&out, kit->program);
    CHECK(buf_ok(&out));
    test_golden(name, buf_str(&out));
    buf_release(&out);
}

// Step "a" of a document without a word of complaint.
static UNUSED void kit_check_with(struct kit *kit, const char *text, enum step_kind kind, const char *with)
{
    kit_must_be_silent(kit, text);
    const struct program_step *step = kit_step(kit, "a");
    CHECK_INT(step->kind, kind);
    struct buf out;
    buf_init(&out, 1 << 16);
    json_write(&out, &step->with);
    CHECK_STR(buf_str(&out), str_from(with));
    buf_release(&out);
}

#endif
