#include "cli/inputs.h"

#include "doc/doc.h"
#include "os/os.h"
#include "program/net.h"

#include <stdlib.h>

int inputs_put(struct cli *cli, struct json *inputs, struct str key, struct json value)
{
    for (uint32_t i = 0; i < inputs->count; i++)
        if (str_eq(inputs->members[i].key, key)) {
            inputs->members[i].value = value;
            return EXIT_OK;
        }
    return json_put(&cli->io.arena, inputs, key, value) ? EXIT_OK : cli_nomem(cli);
}

// JSON, or YAML that is no JSON.
static enum code read_tree(struct cli *cli, struct str text, struct str file, struct json *out, struct error *err)
{
    struct str head = str_trim(text);
    struct diagnostics found;
    if (head.len == 0 || head.ptr[0] == '{' || head.ptr[0] == '[')
        return json_parse(text, &json_limits_default, &cli->io.arena, out, err);
    diagnostics_init(&found, &cli->io.arena);
    enum code rc = doc_tree(text, file, &doc_limits_default, &cli->io.arena, out, &found);
    for (size_t i = 0; rc && i < found.count; i++) {
        const struct diagnostic *d = &found.items[i];
        if (d->severity == SEVERITY_ERROR)
            return error_at(err, rc, d->line, (uint32_t)d->column, "%.*s", STR_ARG(d->message));
    }
    return rc ? error_set(err, rc, "it cannot be read") : OK;
}

int inputs_file(struct cli *cli, struct json *inputs)
{
    struct error err = {0};
    struct str text;
    *inputs = json_object();
    if (!args_has(&cli->args, FLAG_INPUT)) return EXIT_OK;
    struct str path = args_text(&cli->args, FLAG_INPUT, "");
    const char *file = str_is(path, "-") ? "/dev/stdin" : path.ptr;
    if (os_read_file(file, json_limits_default.size_max, &cli->io.arena, &text, &err)) return cli_error(cli, &err);
    if (read_tree(cli, text, path, inputs, &err)) {
        cli_fail(cli, EXIT_USAGE, "%s:%u:%u: %s", path.ptr, err.line, err.column, err.message);
        return EXIT_USAGE;
    }
    if (!json_is(inputs, JSON_OBJECT))
        return cli_fail(cli, EXIT_USAGE, "%s: inputs are an object, this is %s", path.ptr,
                        json_type_name((enum json_type)inputs->type));
    return EXIT_OK;
}

// VALUE is JSON, or text. What is declared as a string is one, whatever it looks like: --set day=20260101.
static struct json set_value(struct cli *cli, const struct program *program, struct str name, struct str text)
{
    struct error err = {0};
    struct json value;
    if (json_parse(text, &json_limits_default, &cli->io.arena, &value, &err)) return json_string(text);
    bool takes_text = program && str_is(program_input_type(program, name), "string") && value.type != JSON_STRING;
    return takes_text ? json_string(text) : value;
}

int inputs_pair(struct cli *cli, const struct program *program, struct str pair, struct str *key, struct json *value)
{
    struct str text;
    *key = str_cut(pair, '=', &text);
    if (key->len == pair.len || key->len == 0) {
        cli_fail(cli, EXIT_USAGE, "--set takes NAME=VALUE, not %.*s", STR_ARG(pair));
        return EXIT_USAGE;
    }
    *value = set_value(cli, program, *key, text);
    return EXIT_OK;
}

// A name with dots is a value inside of one that the playbook has: --set db.port=5433.
static int put_inside(struct cli *cli, struct json *inputs, const struct json *declared, struct str key,
                      struct json value)
{
    struct str rest, first = str_cut(key, '.', &rest);
    const struct json *own = json_get(declared, first), *given = json_get(inputs, first);
    if (json_get(declared, key) || rest.len == 0 || !json_is(own, JSON_OBJECT))
        return inputs_put(cli, inputs, key, value);
    struct json inner = json_object();
    for (uint32_t i = 0; json_is(given, JSON_OBJECT) && i < given->count; i++)
        if (!json_put(&cli->io.arena, &inner, given->members[i].key, given->members[i].value)) return cli_nomem(cli);
    int code = put_inside(cli, &inner, own, rest, value);
    return code ? code : inputs_put(cli, inputs, first, inner);
}

int inputs_read(struct cli *cli, const struct program *program, struct json *inputs)
{
    struct str pair, key;
    struct json value;
    size_t cursor = 0;
    int code = inputs_file(cli, inputs);
    while (!code && args_next(&cli->args, FLAG_SET, &cursor, &pair)) {
        code = inputs_pair(cli, program, pair, &key, &value);
        if (!code && program->net) code = put_inside(cli, inputs, &program->inputs, key, value);
        if (!code && !program->net) code = inputs_put(cli, inputs, key, value);
    }
    return code;
}

int inputs_env(struct cli *cli, const struct program *program, struct json *inputs)
{
    const struct net_names *names = program->net ? &program->net->env : NULL;
    struct json found = json_object();
    if (!names || names->count == 0 || json_get(inputs, STR("env"))) return EXIT_OK;
    for (uint32_t i = 0; i < names->count; i++) {
        struct str name = arena_copy(&cli->io.arena, names->items[i]); // ends in a NUL byte
        if (!name.ptr) return cli_nomem(cli);
        const char *value = str_starts(name, STR("CAIRN_")) ? NULL : getenv(name.ptr);
        if (value && !str_utf8(str_from(value)))
            return cli_fail(cli, EXIT_USAGE, "the variable %s is no UTF-8 text", name.ptr);
        if (!value) cli_warn(cli, "the document asks for env.%s, which is not set", name.ptr);
        if (value && !json_put(&cli->io.arena, &found, name, json_string(str_from(value)))) return cli_nomem(cli);
    }
    return json_put(&cli->io.arena, inputs, STR("env"), found) ? EXIT_OK : cli_nomem(cli);
}

struct str arguments_read(struct cli *cli)
{
    if (args_has(&cli->args, FLAG_ARGUMENTS)) return args_text(&cli->args, FLAG_ARGUMENTS, "");
    struct buf text = buf_of((size_t)1 << 20);
    for (size_t i = 0; i < cli->args.rest_count; i++) {
        buf_text(&text, i ? " " : "");
        buf_add(&text, cli->args.rest[i]);
    }
    struct str out = buf_keep(&text, &cli->io.arena);
    return out.ptr ? out : STR("");
}

void inputs_warn(struct cli *cli, const struct program *program, const struct json *given)
{
    for (uint32_t i = 0; i < given->count; i++) {
        struct str name = given->members[i].key;
        if (json_get(&program->inputs, name)) continue;
        cli_warn(cli, "input \"%.*s\" is not declared in the document", STR_ARG(name));
    }
}
