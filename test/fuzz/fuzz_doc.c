// Any bytes as a document. A program that loads is sound: ids are unique in their scope and found again, dependencies
// stay in their scope and have their reverse, the order is topological, loops own their children, `with` is an object.
// Documents may run each other: "self" is the input itself, every other name a small document or script.
#include "program/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum code find_part(void *context, struct program_part *part, struct arena *arena, struct error *err)
{
    const struct str *self = context;
    if (str_is(part->request, "missing")) return error_set(err, E_NOT_FOUND, "no such file");
    part->file = arena_copy(arena, part->request);
    struct str found = STR("nodes:\n  - {id: a, noop: true}\n");
    if (str_is(part->request, "self"))
        found = *self;
    else if (part->kind == PART_SCRIPT)
        found = STR("true\n");
    part->text = arena_copy(arena, found);
    return part->file.ptr && part->text.ptr ? OK : E_NOMEM;
}

static bool has(const uint32_t *list, uint32_t count, uint32_t wanted)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i] == wanted) return true;
    return false;
}

static void check_edges(const struct program *program, uint32_t index)
{
    const struct program_step *step = &program->steps[index];
    for (uint32_t k = 0; k < step->dep_count; k++) {
        INVARIANT(step->deps[k] < program->step_count);
        INVARIANT(step->deps[k] != index);
        INVARIANT(!has(step->deps, k, step->deps[k]));
        const struct program_step *dep = &program->steps[step->deps[k]];
        INVARIANT(dep->scope == step->scope);
        INVARIANT(has(dep->dependents, dep->dependent_count, index));
    }
    for (uint32_t k = 0; k < step->dependent_count; k++) {
        const struct program_step *dependent = &program->steps[step->dependents[k]];
        INVARIANT(has(dependent->deps, dependent->dep_count, index));
    }
}

static void check_step(const struct program *program, uint32_t index)
{
    const struct program_step *step = &program->steps[index];
    INVARIANT(step_id_valid(step->id));
    INVARIANT(program_find(program, step->scope, step->id) == index);
    INVARIANT(step->kind >= STEP_NOOP && step->kind <= STEP_TASKS);
    INVARIANT(step->rule != RULE_NONE);
    INVARIANT(step->with.type == JSON_OBJECT);
    INVARIANT(step->retry.max_attempts >= 1 && step->retry.delay_ms >= 0);
    INVARIANT(step->retry.jitter >= 0 && step->retry.jitter <= 1);
    INVARIANT(step->timeout_ms >= 0);
    INVARIANT((step->kind == STEP_SUBRUN) == (step->child != NULL));
    if (step->kind == STEP_LOOP) {
        INVARIANT(step->child_count > 0 && step->max_iterations > 0);
        INVARIANT(step->first_child > index);
        INVARIANT(step->first_child + step->child_count <= program->step_count);
        for (uint32_t k = 0; k < step->child_count; k++)
            INVARIANT(program->steps[step->first_child + k].scope == index);
        if (step->until != PROGRAM_TOP) INVARIANT(step->until == step->first_child + step->child_count - 1);
    }
    if (step->scope == PROGRAM_TOP) INVARIANT(index < program->top_count);
    check_edges(program, index);
}

static void check_order(const struct program *program, struct arena *arena)
{
    uint32_t *position = ARENA_ARRAY(arena, program->top_count, uint32_t);
    INVARIANT(position);
    for (uint32_t i = 0; i < program->top_count; i++) {
        INVARIANT(program->order[i] < program->top_count);
        INVARIANT(position[program->order[i]] == 0);
        position[program->order[i]] = i + 1;
    }
    for (uint32_t i = 0; i < program->top_count; i++)
        for (uint32_t k = 0; k < program->steps[i].dep_count; k++)
            INVARIANT(position[program->steps[i].deps[k]] < position[i]);
}

static void check_program(const struct program *program, struct arena *arena)
{
    struct buf dump;
    INVARIANT(program->step_count > 0 && program->top_count > 0);
    INVARIANT(name_valid(program->plan_id) && name_valid(program->plan_version));
    for (uint32_t i = 0; i < program->step_count; i++) check_step(program, i);
    check_order(program, arena);
    buf_init(&dump, 256 * 1024 * 1024);
    program_dump(&dump, program);
    INVARIANT(buf_ok(&dump) && str_utf8(buf_str(&dump)));
    buf_release(&dump);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct program_loader loader = {.context = &text, .load = find_part};
    struct arena arena;
    struct diagnostics diagnostics;
    struct program *program;
    struct error err = {0};
    if (size > 64 * 1024) return 0;
    arena_init(&arena, 4096, 256 * 1024 * 1024);
    diagnostics_init(&diagnostics, &arena);
    enum code rc = program_load(text, STR("fuzz"), &loader, &diagnostics, &program, &err);
    INVARIANT(rc == OK || rc == E_INVALID);
    INVARIANT((rc == OK) == (diagnostics.error_count == 0));
    INVARIANT((rc == OK) == (program != NULL));
    diagnostics_sort(&diagnostics);
    struct buf out;
    buf_init(&out, 16 * 1024 * 1024);
    for (size_t i = 0; i < diagnostics.count; i++) diagnostic_write(&out, &diagnostics.items[i], text, false);
    INVARIANT(buf_ok(&out) && str_utf8(buf_str(&out)));
    buf_release(&out);
    if (program) check_program(program, &arena);
    program_release(program);
    arena_release(&arena);
    return 0;
}
