#include "cli/serve_config.h"
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
          rc == E_NOT_FOUND ? nearest_member(cli, m->key) : "docs/format/serve.md shows how it is written");
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

bool serve_config_read(struct cli *cli, struct serve_config *out)
{
    const struct config *config = cli->config;
    *out = (struct serve_config){.table = json_object(), .settings = {.local_steps = true, .drain_ms = -1}};
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
