#include "cli/tasking.h"

#include "doc/doc.h"

int credentials_read(struct cli *cli, struct json *out)
{
    struct error err = {0};
    struct diagnostics diagnostics;
    struct str text, file = args_text(&cli->args, FLAG_CREDENTIALS, "");
    *out = (struct json){0};
    if (file.len == 0) return EXIT_OK;
    if (os_read_file(file.ptr, doc_limits_default.size_max, &cli->io.arena, &text, &err))
        return cli_fail(cli, EXIT_NOT_FOUND, "--credentials: %s", err.message);
    diagnostics_init(&diagnostics, &cli->io.arena);
    enum code rc = doc_tree(text, file, &doc_limits_default, &cli->io.arena, out, &diagnostics);
    if (rc == E_NOMEM) return cli_nomem(cli);
    // What is wrong is not shown: the lines of this file are secrets.
    if (rc || (!json_is(out, JSON_OBJECT) && !json_is(out, JSON_ARRAY))) {
        int code =
            cli_fail(cli, EXIT_USAGE, "--credentials %.*s: it is no JSON or YAML table of credentials", STR_ARG(file));
        cli_hint(cli, "docs/format/task.md shows what such a file holds");
        return code;
    }
    return EXIT_OK;
}

int tasking_open(struct cli *cli, const struct engine_options *steps, const char *mark, uint32_t process_max,
                 struct tasks **out)
{
    struct error err = {0};
    struct str plugins = args_text(&cli->args, FLAG_TOOLS, "");
    struct str kept = arena_copy(&cli->io.arena, str_from(mark));
    struct task_options options = {.mark = kept.ptr,
                                   .process_max = process_max,
                                   .confinement = steps->confinement,
                                   .secrets = steps->secrets,
                                   .plugins = plugins.len ? plugins.ptr : NULL};
    if (!kept.ptr) return cli_nomem(cli);
    int code = credentials_read(cli, &options.credentials);
    if (code) return code;
    return tasks_open(&options, out, &err) ? cli_error(cli, &err) : EXIT_OK;
}

static void to_engine(void *engine, struct tool_result *result)
{
    engine_deliver(engine, result);
}

static void line_to_engine(void *engine, uint64_t ticket, bool is_stderr, struct str line)
{
    engine_line(engine, ticket, is_stderr, line);
}

void tasking_attach(struct tasks *tasks, struct engine *engine)
{
    tasks_connect(tasks, to_engine, line_to_engine, engine);
    tasks_read_with(tasks, engine_results(engine));
}
