// The schemas in the binary, by the names that documents use.
#include "cli/cli.h"
#include "cli/commands.h"
#include "term/text.h"

#include "author/author.h"
#include "schema/schema.h"

#include <string.h>

static void write_json(struct buf *out, const struct json *value)
{
    struct buf text SCOPED(buf_release) = buf_of(TEXT_MAX);
    if (value->type == JSON_STRING)
        buf_add(&text, value->text);
    else
        json_write(&text, value);
    text_safe(out, buf_str(&text));
}

static void write_list(struct buf *out, const struct json *list, const char *between)
{
    for (uint32_t i = 0; i < list->count; i++) {
        buf_text(out, i ? between : "");
        write_json(out, &list->items[i]);
    }
}

// "integer 1..1000", "array of string", "string or integer", "one of none, linear"
static void write_type(struct buf *out, const struct json *what)
{
    const struct json *types = json_key(what, "types"), *items = json_key(what, "itemTypes");
    const struct json *least = json_key(what, "minimum"), *most = json_key(what, "maximum");
    const struct json *allowed = json_key(what, "allowed");
    if (types->count == 0 && !allowed) buf_text(out, "any value");
    if (types->count == 0 && allowed && allowed->count <= 4) {
        buf_text(out, "one of ");
        write_list(out, allowed, ", ");
    } else if (types->count == 0 && allowed) {
        buf_printf(out, "one of %u values", allowed->count);
    }
    write_list(out, types, " or ");
    if (items && items->count > 0) {
        buf_text(out, " of ");
        write_list(out, items, " or ");
    }
    if (types->count == 1 && (least || most)) {
        buf_byte(out, ' ');
        if (least) write_json(out, least);
        buf_text(out, "..");
        if (most) write_json(out, most);
    }
}

static void label(struct cli *cli, struct buf *out, const char *name)
{
    buf_text(out, "  ");
    tone_text(out, &cli->io.out, TONE_DIM, name);
    text_pad(out, strlen(name), 10);
}

static void write_line(struct cli *cli, struct buf *out, const char *name, const struct json *value)
{
    if (!value) return;
    label(cli, out, name);
    write_json(out, value);
    buf_byte(out, '\n');
}

static void write_fields(struct cli *cli, struct buf *out, const struct json *fields)
{
    size_t width = 0;
    struct buf type SCOPED(buf_release) = buf_of(4096);
    for (uint32_t i = 0; i < fields->count; i++) {
        size_t len = json_text(json_key(&fields->items[i], "name")).len;
        width = len > width ? len : width;
    }
    if (fields->count > 0) buf_text(out, "\n");
    for (uint32_t i = 0; i < fields->count; i++) {
        const struct json *field = &fields->items[i], *description = json_key(field, "description");
        struct str name = json_text(json_key(field, "name"));
        buf_text(out, "  ");
        tone_begin(out, &cli->io.out, TONE_BOLD);
        text_safe(out, name);
        tone_end(out, &cli->io.out, TONE_BOLD);
        text_pad(out, name.len, width + 2);
        buf_clear(&type);
        write_type(&type, field);
        const struct json *kinds = json_key(field, "kinds");
        if (json_key(field, "required")->boolean && !kinds) buf_text(&type, ", required");
        for (uint32_t k = 0; kinds && k < kinds->count; k++) {
            buf_text(&type, k ? ", " : "  of ");
            write_json(&type, json_key(&kinds->items[k], "kind"));
            if (json_key(&kinds->items[k], "required")->boolean) buf_text(&type, " (required)");
        }
        buf_add(out, buf_str(&type));
        buf_byte(out, '\n');
        if (description) text_wrap(out, json_text(description), width + 4, cli->io.out.columns);
    }
}

static void write_text(struct cli *cli, struct buf *out, struct str name, const struct json *what)
{
    const struct json *description = json_key(what, "description"), *allowed = json_key(what, "allowed");
    const struct json *examples = json_key(what, "examples");
    struct str path = json_text(json_key(what, "path"));
    tone_begin(out, &cli->io.out, TONE_BOLD);
    text_safe(out, name);
    buf_text(out, path.len ? " " : "");
    text_safe(out, path);
    tone_end(out, &cli->io.out, TONE_BOLD);
    buf_byte(out, '\n');
    if (description) text_wrap(out, json_text(description), 2, cli->io.out.columns);
    if (!allowed || json_key(what, "types")->count > 0) {
        label(cli, out, "type");
        write_type(out, what);
        buf_byte(out, '\n');
    }
    if (allowed) {
        struct buf list SCOPED(buf_release) = buf_of(TEXT_MAX);
        write_list(&list, allowed, ", ");
        label(cli, out, "one of");
        if (list.len + 12 <= cli->io.out.columns) {
            buf_add(out, buf_str(&list));
            buf_byte(out, '\n');
        } else {
            buf_byte(out, '\n');
            text_wrap(out, buf_str(&list), 12, cli->io.out.columns);
        }
    }
    write_line(cli, out, "default", json_key(what, "default"));
    write_line(cli, out, "pattern", json_key(what, "pattern"));
    for (uint32_t i = 0; json_is(examples, JSON_ARRAY) && i < examples->count; i++)
        write_line(cli, out, i ? "" : "example", &examples->items[i]);
    write_fields(cli, out, json_key(what, "fields"));
}

// ---- which schema

static int list_all(struct cli *cli, const char *only)
{
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    for (size_t i = 0; schema_embedded_name(i); i++) {
        struct str file = str_from(schema_embedded_name(i));
        struct str base = str_slice(file, 0, file.len - strlen(".json"));
        bool event = str_starts(file, STR("run-events/")) || str_starts(file, STR("node-events/")) ||
                     str_starts(file, STR("noetl-events/"));
        bool signal = str_starts(file, STR("signals/"));
        const char *word = event ? "event " : signal ? "signal " : "";
        size_t slash = str_find(base, '/', 0);
        if (slash < base.len) base = str_slice(base, slash + 1, base.len);
        if (str_is(base, "common") || str_is(base, "request") || (only && strcmp(word, only) != 0)) continue;
        buf_printf(&out, "%s%.*s\n", word, STR_ARG(base));
    }
    cli_print(cli, &out);
    cli_next(cli, "schema plan steps");
    return EXIT_OK;
}

static const char *find_file(struct cli *cli, const char *const *folders, struct str name)
{
    for (; *folders; folders++) {
        const char *file = cli_format(cli, "%s%.*s.json", *folders, STR_ARG(name));
        if (schema_embedded(file).len > 0) return file;
    }
    return NULL;
}

static const char *nearest_schema(struct cli *cli, const char *const *folders, struct str name)
{
    const char *names[64];
    size_t count = 0;
    for (size_t i = 0; schema_embedded_name(i) && count < ARRAY_COUNT(names); i++)
        for (const char *const *folder = folders; *folder; folder++) {
            struct str file = str_from(schema_embedded_name(i));
            if (!str_starts(file, str_from(*folder)) || (!(*folder)[0] && str_find(file, '/', 0) < file.len)) continue;
            names[count++] = cli_format(cli, "%.*s", (int)(file.len - strlen(*folder) - 5), file.ptr + strlen(*folder));
        }
    return nearest_name(name, names, count);
}

int command_schema(struct cli *cli)
{
    static const char *const event_folders[] = {"run-events/", "node-events/", "noetl-events/", NULL};
    static const char *const signal_folders[] = {"signals/", NULL};
    static const char *const top_folders[] = {"", NULL};
    struct args *args = &cli->args;
    if (args->word_count == 0) return list_all(cli, NULL);
    bool event = str_is(args->words[0], "event"), signal = str_is(args->words[0], "signal");
    if ((event || signal) && args->word_count == 1) return list_all(cli, event ? "event " : "signal ");
    const char *const *folders = event ? event_folders : signal ? signal_folders : top_folders;
    size_t at = event || signal ? 1 : 0;
    const char *file = find_file(cli, folders, args->words[at]);
    if (!file) {
        const char *near = nearest_schema(cli, folders, args->words[at]);
        int code = cli_fail(cli, EXIT_NOT_FOUND, "there is no schema of %s", args->words[at].ptr);
        if (near) cli_hint(cli, "did you mean %s?", near);
        cli_next(cli, "schema");
        return code;
    }
    if (args->word_count > at + 2)
        return cli_fail(cli, EXIT_USAGE, "`cairn schema` cannot use %s", args->words[at + 2].ptr);
    struct str path = args->word_count > at + 1 ? args->words[at + 1] : STR("");
    struct json what, raw;
    struct error err = {0};
    const char *near;
    enum code rc = author_schema(str_from(file), path, &cli->io.arena, &what, &raw, &near, &err);
    if (rc) {
        int code = cli_error(cli, &err);
        if (near) cli_hint(cli, "did you mean %s?", near);
        return code;
    }
    if (format_of(cli, FORMAT_TEXT) == FORMAT_JSON) {
        print_json(&cli->io, FORMAT_JSON, &raw);
        return EXIT_OK;
    }
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    write_text(cli, &out, args->words[at], &what);
    cli_print(cli, &out);
    return EXIT_OK;
}
