// Settings: what is in force, where it came from, and changing it without disturbing the rest of a file.
#include "cli/commands.h"
#include "cli/serve_config.h"
#include "term/text.h"

#include "doc/doc.h"
#include "os/os.h"

#include <string.h>

enum { TEXT_FILE_MAX = 1 << 20 };

static const struct column columns[] = {
    {"name", "SETTING", CELL_TEXT, false, 0}, {"value", "VALUE", CELL_TEXT, false, 0},
    {"origin", "FROM", CELL_TEXT, false, 0},  {"variable", "VARIABLE", CELL_TEXT, true, 0},
    {"what", "WHAT", CELL_TEXT, true, 0},
};

static int report_faults(struct cli *cli)
{
    int code = EXIT_OK;
    for (size_t i = 0; i < cli->config->fault_count; i++) {
        const struct config_fault *f = &cli->config->faults[i];
        cli_warn(cli, "%.*s", STR_ARG(f->text));
        if (f->hint) cli_hint(cli, "%s", f->hint);
        if (f->fatal) code = EXIT_USAGE;
    }
    return code;
}

static bool add_row(struct cli *cli, struct json *rows, const char *name, struct str value, const char *origin,
                    const char *variable, const char *what)
{
    json_append(&cli->io.arena, rows,
                JSON_OF(&cli->io.arena, {"name", json_word(name)}, {"value", json_string(value)},
                        {"origin", json_word(origin)}, {"variable", json_word(variable)}, {"what", json_word(what)}));
    return json_ok(rows);
}

static const char *what_of(struct str member)
{
    for (size_t i = 0; service_setting_name(i); i++)
        if (str_is(member, service_setting_name(i))) return service_setting_what(i);
    return "";
}

// Members of [serve] that were set; what they may be is in docs/format/serve.md.
static bool add_serve(struct cli *cli, struct json *rows, struct serve_config *serve)
{
    if (!serve_config_read(cli, serve)) return false;
    for (uint32_t i = 0; i < serve->table.count; i++) {
        const struct json_member *m = &serve->table.members[i];
        struct buf text = buf_of(TEXT_FILE_MAX);
        if (m->value.type == JSON_STRING)
            buf_add(&text, json_text(&m->value));
        else
            json_write(&text, &m->value);
        struct str value = buf_keep(&text, &cli->io.arena);
        const char *origin = i < ARRAY_COUNT(serve->origins) ? serve->origins[i] : "";
        if (!value.ptr ||
            !add_row(cli, rows, cli_format(cli, "serve.%.*s", STR_ARG(m->key)), value, origin, "", what_of(m->key)))
            return false;
    }
    return true;
}

static const char *origin_of(struct cli *cli, const struct setting *setting)
{
    if (args_has(&cli->args, setting->flag)) return cli_format(cli, "--%s", flag_info(setting->flag)->name);
    const char *origin = cli->args.defaults[setting->flag].origin;
    return origin ? origin : "built in";
}

int command_config_list(struct cli *cli)
{
    struct list list;
    struct json rows = json_array();
    const struct config *config = cli->config;
    bool profile = config->profile.len > 0;
    if (!list_open(&list, cli, columns, ARRAY_COUNT(columns), "name")) return EXIT_USAGE;
    bool ok = add_row(cli, &rows, "profile", profile ? config->profile : STR(""),
                      profile ? config->profile_origin : "built in", "CAIRN_PROFILE", "tables [profile.NAME] in force");
    for (size_t i = 0; ok && setting_at(i); i++) {
        const struct setting *s = setting_at(i);
        ok = add_row(cli, &rows, s->name, args_text(&cli->args, s->flag, s->built_in), origin_of(cli, s),
                     setting_variable(cli, s), s->what);
    }
    struct serve_config serve;
    ok = ok && add_serve(cli, &rows, &serve);
    if (ok) list_page(&list, &rows);
    list_close(&list);
    if (!ok) return cli_nomem(cli);
    int code = report_faults(cli), also = serve_config_report(cli, &serve);
    return code ? code : also;
}

static const struct setting *wanted(struct cli *cli)
{
    struct str name = cli->args.words[0];
    const struct setting *setting = setting_find(name);
    const char *names[32];
    size_t count = 0;
    if (setting) return setting;
    for (; setting_at(count) && count < ARRAY_COUNT(names); count++) names[count] = setting_at(count)->name;
    const char *near = nearest_name(name, names, count);
    cli_fail(cli, EXIT_NOT_FOUND, "there is no setting %.*s", STR_ARG(name));
    if (near)
        cli_hint(cli, "did you mean %s?", near);
    else
        cli_next(cli, "config list");
    return NULL;
}

int command_config_get(struct cli *cli)
{
    const struct setting *setting = wanted(cli);
    if (!setting) return EXIT_NOT_FOUND;
    struct buf text SCOPED(buf_release) = buf_of((size_t)1 << 20);
    buf_add(&text, args_text(&cli->args, setting->flag, setting->built_in));
    buf_byte(&text, '\n');
    cli_print(cli, &text);
    return report_faults(cli);
}

int command_config_path(struct cli *cli)
{
    static const char *const names[CONFIG_LEVELS] = {"project", "user", "system"};
    struct buf text SCOPED(buf_release) = buf_of(1 << 16);
    for (size_t i = 0; i < CONFIG_LEVELS; i++) {
        const struct config_file *file = &cli->config->files[i];
        if (file->path) buf_printf(&text, "%-8s %s%s\n", names[i], file->path, file->exists ? "" : "  (not there)");
    }
    cli_print(cli, &text);
    return report_faults(cli);
}

// ---- changing a file: one line of it, everything else stays as it is, comments included
struct edit {
    struct str text;
    const char *name; // NULL: the whole table goes
    struct str table; // "[profile.x]" or empty
    struct str line;  // the new line; empty = take it out
};

static bool is_assignment(struct str line, const char *name)
{
    line = str_trim(line);
    struct str rest;
    struct str key = str_trim(str_cut(line, '=', &rest));
    return str_is(key, name) && key.len < line.len;
}

static struct str table_name(struct str line)
{
    line = str_trim(line);
    return line.len > 1 && line.ptr[0] == '[' ? line : (struct str){0};
}

// Replaces the assignment in its table, or adds one at the end of the table, or table and assignment at the end of the file.
static void rewrite(const struct edit *edit, struct buf *out)
{
    struct str rest = edit->text;
    bool inside = edit->table.len == 0, done = false;
    bool joined = true; // to what stands above: a comment behind a blank line belongs to what follows
    size_t end_of_table = inside ? 0 : SIZE_MAX;
    while (rest.len > 0) {
        struct str line = str_cut(rest, '\n', &rest);
        struct str table = table_name(line);
        if (table.ptr) inside = edit->table.len > 0 && str_starts(table, edit->table);
        if (inside && !edit->name) continue;
        if (inside && is_assignment(line, edit->name)) {
            if (!done && edit->line.len > 0) buf_printf(out, "%.*s\n", STR_ARG(edit->line));
            done = true;
            continue;
        }
        buf_printf(out, "%.*s\n", STR_ARG(line));
        joined = str_trim(line).len > 0 && (joined || table.ptr || str_trim(line).ptr[0] != '#');
        if (inside && joined) end_of_table = out->len;
    }
    if (done || edit->line.len == 0) return;
    struct buf tail SCOPED(buf_release) = buf_of(TEXT_FILE_MAX);
    if (end_of_table == SIZE_MAX) {
        if (out->len > 0) buf_byte(out, '\n');
        buf_printf(out, "%.*s\n%.*s\n", STR_ARG(edit->table), STR_ARG(edit->line));
    } else {
        buf_add(&tail, str_slice(buf_str(out), end_of_table, out->len));
        out->len = end_of_table;
        buf_printf(out, "%.*s\n", STR_ARG(edit->line));
        buf_add(out, buf_str(&tail));
    }
}

static int write_file(struct cli *cli, const char *path, struct str text)
{
    struct error err = {0};
    const char *slash = strrchr(path, '/');
    if (slash > path && os_make_dirs(cli_format(cli, "%.*s", (int)(slash - path), path), &err))
        return cli_error(cli, &err);
    return os_write_file(path, text, 0666, true, &err) ? cli_error(cli, &err) : EXIT_OK;
}

static int change(struct cli *cli, const char *name, struct str profile, struct str line)
{
    struct error err = {0};
    bool local = args_has(&cli->args, FLAG_LOCAL);
    const struct config_file *file = &cli->config->files[local ? CONFIG_PROJECT : CONFIG_USER];
    struct edit edit = {.text = STR(""), .name = name, .line = line};
    if (!file->path) return cli_fail(cli, EXIT_ERROR, "there is no home directory to keep settings in");
    if (file->exists && os_read_file(file->path, TEXT_FILE_MAX, &cli->io.arena, &edit.text, &err))
        return cli_error(cli, &err);
    if (profile.len > 0) edit.table = str_from(cli_format(cli, "[profile.%.*s]", STR_ARG(profile)));
    struct json checked;
    struct buf out SCOPED(buf_release) = buf_of(2 * TEXT_FILE_MAX);
    rewrite(&edit, &out);
    int code = EXIT_OK;
    if (toml_parse(buf_str(&out), &cli->io.arena, &checked, &err))
        code = cli_fail(cli, EXIT_USAGE, "%s:%u:%u: %s; nothing was changed", file->path, err.line, err.column,
                        err.message);
    if (!code) code = write_file(cli, file->path, buf_str(&out));
    if (!code) cli_note(cli, "%s %s in %s", line.len ? "set" : "removed", name ? name : edit.table.ptr, file->path);
    return code;
}

// NAME = VALUE. A JSON string is a TOML string.
static int set_value(struct cli *cli, const char *name, struct str profile, struct str value, bool bare)
{
    struct buf line = buf_of(TEXT_FILE_MAX);
    buf_printf(&line, "%s = ", name);
    if (bare)
        buf_add(&line, value);
    else
        json_write_string(&line, value);
    struct str kept = buf_keep(&line, &cli->io.arena);
    return kept.ptr ? change(cli, name, profile, kept) : cli_nomem(cli);
}

int config_change(struct cli *cli, const char *name, struct str profile, struct str value)
{
    if (value.len == 0) return change(cli, name, profile, STR(""));
    int code = set_value(cli, name, profile, value, false);
    if (code || !cli->config) return code;
    struct config_file *file = &cli->config->files[args_has(&cli->args, FLAG_LOCAL) ? CONFIG_PROJECT : CONFIG_USER];
    file->exists = true; // the next change reads what this one wrote
    return EXIT_OK;
}

int config_drop(struct cli *cli, struct str profile)
{
    return change(cli, NULL, profile, STR(""));
}

int command_config_set(struct cli *cli)
{
    const struct setting *setting = wanted(cli);
    struct str value = cli->args.word_count > 1 ? cli->args.words[1] : STR("");
    bool unset = strcmp(cli->args.command->name, "config unset") == 0;
    if (!setting) return EXIT_NOT_FOUND;
    struct str profile = args_text(&cli->args, FLAG_PROFILE, "");
    if (unset) return change(cli, setting->name, profile, STR(""));
    const char *choices = setting->flag == FLAG_ASCII ? "true|false" : flag_info(setting->flag)->choices;
    if (choices[0] && choice_index(value, choices) == SIZE_MAX) {
        cli_fail(cli, EXIT_USAGE, "%s cannot be %.*s", setting->name, STR_ARG(value));
        return cli_hint(cli, "one of: %s", choices);
    }
    return set_value(cli, setting->name, profile, value, setting->flag == FLAG_ASCII);
}
