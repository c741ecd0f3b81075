#include "cli/tasking.h"

#include "doc/doc.h"

#include <unistd.h>

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

const char *tasking_self(struct cli *cli)
{
    char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
    return size > 0 && size < (ssize_t)sizeof(path) ? cli_format(cli, "%.*s", (int)size, path) : NULL;
}

int tasking_read(struct cli *cli, struct task_options *out)
{
    struct str plugins = args_text(&cli->args, FLAG_TOOLS, "");
    *out = (struct task_options){.plugins = plugins.len ? plugins.ptr : NULL, .self = tasking_self(cli)};
    return credentials_read(cli, &out->credentials);
}
