#include "cli/tasking.h"

#include "doc/doc.h"

#include <unistd.h>

// A table in a file that a flag names, and `what` it holds. Type 0: no file is named.
static int table_read(struct cli *cli, enum flag flag, const char *name, const char *what, const char *page, struct json *out)
{
    struct error err = {0};
    struct diagnostics diagnostics;
    struct str text, file = args_text(&cli->args, flag, "");
    *out = (struct json){0};
    if (file.len == 0) return EXIT_OK;
    if (os_read_file(file.ptr, doc_limits_default.size_max, &cli->io.arena, &text, &err))
        return cli_fail(cli, EXIT_NOT_FOUND, "--%s: %s", name, err.message);
    diagnostics_init(&diagnostics, &cli->io.arena);
    enum code rc = doc_tree(text, file, &doc_limits_default, &cli->io.arena, out, &diagnostics);
    if (rc == E_NOMEM) return cli_nomem(cli);
    // What is wrong is not shown: the lines of this file may be secrets.
    if (rc || (!json_is(out, JSON_OBJECT) && !json_is(out, JSON_ARRAY))) {
        int code = cli_fail(cli, EXIT_USAGE, "--%s %.*s: it is no JSON or YAML table of %s", name,
                            STR_ARG(file), what);
        cli_hint(cli, "docs/format/%s shows what such a file holds", page);
        return code;
    }
    return EXIT_OK;
}

int credentials_read(struct cli *cli, struct json *out)
{
    return table_read(cli, FLAG_CREDENTIALS, "credentials", "credentials", "task.md", out);
}

int fetch_read(struct cli *cli, struct fetch_policy **out)
{
    struct json table;
    struct error err = {0};
    int code = table_read(cli, FLAG_FETCH, "fetch", "what may be fetched", "fetch.md", &table);
    if (code) return code;
    if (fetch_policy_parse(table.type ? &table : NULL, &cli->io.arena, out, &err) == OK) return EXIT_OK;
    return cli_fail(cli, EXIT_USAGE, "--fetch: %s", err.message);
}

int containers_read(struct cli *cli, const struct container_settings **out)
{
    struct json table;
    struct error err = {0};
    int code = table_read(cli, FLAG_CONTAINERS, "containers", "who runs containers", "task.md", &table);
    if (code || !table.type) return code;
    struct container_settings *made = ARENA_NEW(&cli->io.arena, struct container_settings);
    if (!made) return cli_nomem(cli);
    *out = made;
    if (container_settings_parse(&table, &cli->io.arena, made, &err) == OK) return EXIT_OK;
    return cli_fail(cli, EXIT_USAGE, "--containers: %s", err.message);
}

int limits_read(struct cli *cli, struct engine_limits *out, uint64_t *sql_bytes)
{
    struct str text = args_text(&cli->args, FLAG_LIMITS, "");
    struct json table = json_object();
    struct error err = {0};
    while (text.len > 0) {
        int64_t number;
        struct str rest, value, item = str_cut(text, ',', &rest), name = str_cut(item, '=', &value);
        text = item.len < text.len ? rest : (struct str){0};
        if (name.len == item.len || !str_int64(value, &number))
            return cli_fail(cli, EXIT_USAGE, "--limits: \"%.*s\" is not like events=50000", STR_ARG(item));
        if (!json_put(&cli->io.arena, &table, str_trim(name), json_int(number))) return cli_nomem(cli);
    }
    if (engine_limits_parse(&table, &cli->io.arena, out, sql_bytes, &err) == OK) return EXIT_OK;
    return cli_fail(cli, EXIT_USAGE, "--limits: %s", err.message);
}

int retention_read(struct cli *cli, struct retention *out)
{
    struct str text = args_text(&cli->args, FLAG_RETENTION, "");
    struct json table = json_object();
    struct error err = {0};
    while (text.len > 0) {
        struct str rest, age, item = str_cut(text, ',', &rest), kind = str_cut(item, '=', &age);
        text = item.len < text.len ? rest : (struct str){0};
        if (kind.len == item.len)
            return cli_fail(cli, EXIT_USAGE, "--artifact-retention: \"%.*s\" is not like report=7d", STR_ARG(item));
        if (!json_put(&cli->io.arena, &table, str_trim(kind), json_string(str_trim(age)))) return cli_nomem(cli);
    }
    if (retention_parse(&table, &cli->io.arena, out, &err) == OK) return EXIT_OK;
    return cli_fail(cli, EXIT_USAGE, "--artifact-retention: %s", err.message);
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
    struct engine_limits limits = {0};
    int code = limits_read(cli, &limits, &out->sql_bytes);
    if (!code) code = containers_read(cli, &out->containers);
    return code ? code : credentials_read(cli, &out->credentials);
}
