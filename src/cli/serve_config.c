#include "cli/serve_config.h"
#include "doc/doc.h"
#include "term/text.h"

static void fault(struct serve_config *out, const char *text, const char *hint)
{
    if (out->fault_count < ARRAY_COUNT(out->faults)) out->faults[out->fault_count++] = (struct serve_fault){text, hint};
}

static const char *nearest_member(struct cli *cli, struct str name)
{
    const char *names[64];
    size_t count = 0;
    while (count < ARRAY_COUNT(names) && service_setting_name(count)) {
        names[count] = service_setting_name(count);
        count++;
    }
    const char *near = nearest_name(name, names, count);
    return near ? cli_format(cli, "did you mean %s?", near) : "docs/format/serve.md lists what may stand there";
}

static const char *how_written(struct cli *cli, struct str name)
{
    const char *value = "";
    for (size_t i = 0; service_setting_name(i); i++)
        if (str_is(name, service_setting_name(i))) value = service_setting_value(i);
    return cli_format(cli, "%.*s: %s (docs/format/serve.md)", STR_ARG(name), value);
}

static bool take_member(struct cli *cli, struct serve_config *out, const char *path, const struct json_member *m)
{
    struct error err = {0};
    if (json_get(&out->table, m->key)) return true; // a stronger one is there
    if (out->table.count < ARRAY_COUNT(out->origins))
        out->origins[out->table.count] = cli_format(cli, "%s:%u", path, m->line);
    if (!json_put(&cli->io.arena, &out->table, m->key, m->value)) return false;
    enum code rc = service_setting(m->key, &m->value, &cli->io.arena, &out->settings, &err);
    if (rc == E_NOMEM) return false;
    if (!rc) return true;
    unsigned line = err.line ? err.line : m->line, column = err.line ? err.column : m->column;
    fault(out, cli_format(cli, "%s:%u:%u: %s", path, line, column, err.message),
          rc == E_NOT_FOUND ? nearest_member(cli, m->key) : how_written(cli, m->key));
    return true;
}

static bool take_table(struct cli *cli, struct serve_config *out, const char *path, const struct json *table)
{
    if (!table) return true;
    if (!json_is(table, JSON_OBJECT)) {
        fault(out, cli_format(cli, "%s:%u:%u: serve must be a table", path, table->line, (unsigned)table->column),
              "[serve], and its members on lines below it");
        return true;
    }
    for (uint32_t i = 0; i < table->count; i++)
        if (!take_member(cli, out, path, &table->members[i])) return false;
    return true;
}

// Where the text stops being one that can be read, and why. The lines are not shown: they may hold secrets.
static void tell_unreadable(struct cli *cli, struct serve_config *out, const struct diagnostics *diagnostics)
{
    for (size_t i = 0; i < diagnostics->count; i++) {
        const struct diagnostic *d = &diagnostics->items[i];
        if (d->severity != SEVERITY_ERROR) continue;
        fault(out, cli_format(cli, "%.*s:%u:%u: %.*s", STR_ARG(d->file), d->line, d->column, STR_ARG(d->message)),
              d->hint.len ? cli_format(cli, "%.*s", STR_ARG(d->hint)) : NULL);
    }
}

// --settings: a table as [serve] is one, as JSON or YAML.
static bool take_file(struct cli *cli, struct serve_config *out)
{
    struct error err = {0};
    struct diagnostics diagnostics;
    struct json table = {0};
    struct str text, file = args_text(&cli->args, FLAG_SETTINGS, "");
    if (file.len == 0) return true;
    if (os_read_file(file.ptr, doc_limits_default.size_max, &cli->io.arena, &text, &err)) {
        fault(out, cli_format(cli, "--settings: %s", err.message), NULL);
        return true;
    }
    diagnostics_init(&diagnostics, &cli->io.arena);
    enum code rc = doc_tree(text, file, &doc_limits_default, &cli->io.arena, &table, &diagnostics);
    if (rc == E_NOMEM) return false;
    if (!rc && json_is(&table, JSON_OBJECT)) return take_table(cli, out, file.ptr, &table);
    tell_unreadable(cli, out, &diagnostics);
    fault(out, cli_format(cli, "--settings %.*s: it is no JSON or YAML table of settings", STR_ARG(file)),
          "docs/format/serve.md lists what may stand there");
    return true;
}

bool serve_config_read(struct cli *cli, struct serve_config *out)
{
    const struct config *config = cli->config;
    *out = (struct serve_config){.table = json_object(), .settings = {.local_steps = true, .drain_ms = -1}};
    if (!take_file(cli, out)) return false;
    for (size_t i = 0; config && i < CONFIG_LEVELS; i++) {
        const struct config_file *file = &config->files[i];
        const struct json *profile = json_get(json_key(&file->root, "profile"), config->profile);
        if (!take_table(cli, out, file->path, json_key(profile, "serve")) ||
            !take_table(cli, out, file->path, json_key(&file->root, "serve")))
            return false;
    }
    return true;
}

int serve_config_report(struct cli *cli, const struct serve_config *config)
{
    for (size_t i = 0; i < config->fault_count; i++) {
        cli_fail(cli, EXIT_USAGE, "%s", config->faults[i].text);
        if (config->faults[i].hint) cli_hint(cli, "%s", config->faults[i].hint);
    }
    return config->fault_count ? EXIT_USAGE : EXIT_OK;
}
