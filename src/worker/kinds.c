// Which kinds a worker asks for.
#include "worker/inside.h"

#include <string.h>

static const struct str processes[] = {STR_INIT("shell"), STR_INIT("exec"), STR_INIT("script")};

// What it executes without further options: processes, the functions of its plugins, the tasks that the binary brings. How many; NULL:
// out of memory.
static struct str *all_kinds(const struct worker_options *options, struct arena *arena, size_t *count)
{
    size_t functions = options->functions ? functions_names(options->functions, NULL, 0) : 0, tasks = 0;
    while (task_kind_name(tasks)) tasks++;
    struct str *kinds = ARENA_ARRAY(arena, ARRAY_COUNT(processes) + functions + tasks + 1, struct str);
    if (!kinds) return NULL;
    memcpy(kinds, processes, sizeof(processes));
    *count = ARRAY_COUNT(processes);
    if (functions > 0) functions_names(options->functions, kinds + *count, functions);
    *count += functions;
    for (size_t i = 0; options->task && i < tasks; i++) {
        struct str name = str_from(task_kind_name(i));
        if (!str_is(name, "shell")) kinds[(*count)++] = name; // that one is there already, as a process
    }
    return kinds;
}

static bool is_one_of(const struct str *kinds, size_t count, struct str kind)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq(kinds[i], kind)) return true;
    return false;
}

enum code worker_kinds(struct worker_options *options, struct str wanted, struct arena *arena, struct error *err)
{
    size_t known_count = 0, count = 0;
    struct str *known = all_kinds(options, arena, &known_count);
    struct str *named = ARENA_ARRAY(arena, wanted.len + 1, struct str);
    if (!known || !named) return error_nomem(err);
    bool all = wanted.len == 0;
    while (wanted.len > 0) {
        struct str kind = str_trim(str_cut(wanted, ',', &wanted));
        bool plugin = options->task && task_plugin_known(options->task->plugins, kind);
        if (!plugin && !is_one_of(known, known_count, kind))
            return error_set(err, E_INVALID,
                             "this worker executes shell, exec, script, the functions of its plugins and the tasks of "
                             "playbooks, not \"%.*s\"",
                             STR_ARG(kind));
        named[count++] = kind;
    }
    options->kinds = all ? known : named;
    options->kind_count = all ? known_count : count;
    if (options->kind_count > REMOTE_BATCH_MAX) return error_set(err, E_INVALID, "more than %d kinds", REMOTE_BATCH_MAX);
    return OK;
}
