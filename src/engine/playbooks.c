// Which playbook a task runs, when that is known only when it runs: its path is a template, it runs itself or one that it is run by, or
// it was not there when the document was read.
#include "engine/inside.h"

// Of the run's own document or of one that it holds: by file when it is known, else by the path in its metadata, else by its name.
struct wanted {
    struct str file, path;
};

static bool matches(const struct program *program, const struct wanted *wanted)
{
    if (!program->net) return false;
    if (wanted->file.len > 0) return str_eq(program->file, wanted->file);
    struct str id = program->plan_id;
    if (str_starts(id, STR("/"))) id = str_slice(id, 1, id.len);
    return str_eq(id, wanted->path) || str_eq(program->name, wanted->path);
}

static const struct program *find_below(const struct program *program, const struct wanted *wanted)
{
    if (matches(program, wanted)) return program;
    const struct program *found = NULL;
    for (uint32_t i = 0; program->net && !found && i < program->step_count; i++)
        for (uint32_t k = 0; !found && k < program->net->steps[i].task_count; k++) {
            const struct program *child = program->net->steps[i].tasks[k].child;
            if (child) found = find_below(child, wanted);
        }
    return found;
}

enum code check_depth(struct engine *engine, const struct run *run, struct error *err)
{
    struct arena arena SCOPED(arena_release) = arena_of(4096, (size_t)1 << 20);
    struct str above = run->start.parent_run;
    uint32_t depth = 1;
    enum code rc = OK;
    while (!rc && above.len > 0 && ++depth <= CHILD_DEPTH_MAX) {
        const struct resident *resident = resident_find(engine, run->ids.tenant, above);
        struct run_head head = {0};
        if (resident)
            above = resident->run->start.parent_run;
        else if (!(rc = store_head(engine->store, run->ids.tenant, above, &arena, &head, err)))
            above = head.parent_run;
    }
    if (rc == E_NOT_FOUND) rc = OK; // it was deleted
    if (rc || depth <= CHILD_DEPTH_MAX) return rc;
    return error_set(err, E_LIMIT, "playbooks run playbooks more than %d deep; does one run itself without an end?",
                     CHILD_DEPTH_MAX);
}

static bool any_kind(void *context, struct str kind) // engine_supports asks when it is started
{
    (void)context;
    (void)kind;
    return true;
}

static enum code read_from_files(const struct engine *engine, const struct program *from, struct str path,
                                 struct arena *arena, struct program **out, struct error *err)
{
    struct program_part part = {.kind = PART_DOCUMENT, .from = from->file, .request = path};
    enum code rc = engine_find_part(NULL, &part, arena, err);
    if (rc) return rc;
    struct program_loader loader = {
        .load = engine_find_part, .host_kind = any_kind, .steps_max = engine->options.limits.steps_max};
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, arena);
    rc = program_load(part.text, part.file, &loader, &diagnostics, out, err);
    if (rc != E_INVALID || diagnostics.count == 0) return rc;
    const struct diagnostic *first = &diagnostics.items[0];
    for (size_t i = 0; i < diagnostics.count && first->severity != SEVERITY_ERROR; i++) first = &diagnostics.items[i];
    return error_set(err, E_INVALID, "%.*s:%u: %.*s", STR_ARG(part.file), first->line, STR_ARG(first->message));
}

enum code child_playbook(struct engine *engine, const struct resident *parent, uint32_t step, struct str path,
                         struct program **out, struct error *err)
{
    const struct net_task *task = kernel_task_of(parent->run, step);
    if (str_starts(path, STR("/"))) path = str_slice(path, 1, path.len);
    if (path.len == 0) return error_set(err, E_INVALID, "the path of the playbook is empty");
    struct str known = task->playbook;
    if (str_starts(known, STR("/"))) known = str_slice(known, 1, known.len);
    bool expected = str_eq(path, known);
    const struct program *found = expected ? task->child : NULL;
    struct wanted wanted = {.file = expected ? task->around : (struct str){0}, .path = path};
    struct str above = parent->run->ids.run;
    while (!found && above.len > 0) { // what the run holds, then what those that run it hold
        const struct resident *resident = resident_find(engine, parent->ids.tenant, above);
        if (resident) found = find_below(resident->run->program, &wanted);
        above = resident ? resident->run->start.parent_run : (struct str){0};
    }
    if (found) {
        *out = program_retain(found);
        return OK;
    }
    if (engine->options.no_files)
        return error_set(err, E_NOT_FOUND,
                         "the playbook \"%.*s\" is not among the documents that the run was started with",
                         STR_ARG(path));
    return read_from_files(engine, parent->run->program, path, &engine->turn, out, err);
}
