#include "cli/document.h"

#include "lib/functions.h"
#include "task/task.h"

bool sources_add(struct sources *sources, const struct source *source)
{
    if (!ARENA_ROOM(&sources->cli->io.arena, sources->items, sources->count, &sources->capacity)) return false;
    sources->items[sources->count++] = *source;
    return true;
}

static enum code load_part(void *context, struct program_part *part, struct arena *arena, struct error *err)
{
    enum code rc = engine_find_part(NULL, part, arena, err);
    struct source source = {part->file, part->text, arena_copy(arena, part->from), arena_copy(arena, part->request)};
    if (rc == OK && (!source.from.ptr || !source.request.ptr || !sources_add(context, &source))) rc = error_nomem(err);
    return rc;
}

static bool know_function(void *context, struct str name)
{
    const struct cli *cli = ((const struct sources *)context)->cli;
    // A command that never calls them takes functions as they are written, and so does one whose run is a server's: the server knows which
    // its workers have, and refuses the others.
    if (cli->at_server || (cli->args.command && !command_takes(cli->args.command, FLAG_PLUGIN))) return true;
    return cli->functions && functions_know(cli->functions, name);
}

// The tools of playbooks are those of the binary, which the compiler knows, and those of --tools.
static bool know_task(void *context, struct str kind)
{
    const struct cli *cli = ((const struct sources *)context)->cli;
    if (cli->at_server) return true;
    if (!cli->args.command || !command_takes(cli->args.command, FLAG_TOOLS)) return false;
    struct str dir = args_text(&cli->args, FLAG_TOOLS, "");
    return dir.len && task_plugin_known(dir.ptr, kind);
}

static bool know_field(void *context, struct str kind, struct str field)
{
    (void)context;
    return task_field_known(kind, field);
}

int steps_max_read(struct cli *cli, uint32_t *out)
{
    struct str text = args_text(&cli->args, FLAG_MAX_STEPS, "");
    int64_t number = PROGRAM_STEPS;
    bool fits = text.len == 0 || (str_int64(text, &number) && number >= 1 && number <= PROGRAM_STEPS_MAX);
    *out = (uint32_t)number;
    if (fits) return EXIT_OK;
    return cli_fail(cli, EXIT_USAGE, "max-steps cannot be \"%.*s\": it takes a whole number from 1 to %d", STR_ARG(text),
                    PROGRAM_STEPS_MAX);
}

struct program_loader source_loader(struct sources *sources)
{
    return (struct program_loader){.context = sources,
                                   .steps_max = sources->steps_max,
                                   .load = load_part,
                                   .host_kind = know_function,
                                   .task_kind = know_task,
                                   .task_field = know_field};
}
