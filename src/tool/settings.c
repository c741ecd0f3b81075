// Confinement and providers of secrets as they stand in a configuration.
#include "tool/internal.h"
#include "tool/provider.h"

#include "json/form.h"

enum { CPU_MAX = 1 << 30 };

static const char *const level_names[] = {[TOOL_LEVEL_NONE] = "none",
                                          [TOOL_LEVEL_BASIC] = "basic",
                                          [TOOL_LEVEL_FILES] = "files",
                                          [TOOL_LEVEL_FULL] = "full",
                                          [TOOL_LEVEL_AUTO] = "auto",
                                          NULL};

const char *tool_level_name(enum tool_level level)
{
    return level_names[level];
}

bool tool_level_parse(struct str name, enum tool_level *out)
{
    for (size_t i = 0; level_names[i]; i++) {
        if (!str_is(name, level_names[i])) continue;
        *out = (enum tool_level)i;
        return true;
    }
    return false;
}

static void take_size(struct form *form, const char *name, int64_t most, uint64_t *out)
{
    int64_t number = (int64_t)*out;
    form_number(form, name, 0, most, &number);
    *out = (uint64_t)number;
}

static enum code read_limits(struct form *form, struct tool_limits *out)
{
    take_size(form, "memoryBytes", INT64_MAX, &out->memory);
    take_size(form, "addressBytes", INT64_MAX, &out->address);
    take_size(form, "cpuSeconds", CPU_MAX, &out->cpu);
    take_size(form, "files", 1 << 20, &out->files);
    take_size(form, "processes", 1 << 22, &out->processes);
    take_size(form, "fileBytes", INT64_MAX, &out->file_size);
    take_size(form, "stackBytes", INT64_MAX, &out->stack);
    return form_end(form);
}

// Root would not be another user.
static enum code read_user(struct form *form, struct tool_confinement *out)
{
    form_count(form, "uid", 1, UINT32_MAX - 1, &out->uid);
    form_count(form, "gid", 1, UINT32_MAX - 1, &out->gid);
    if (out->uid == 0 || out->gid == 0) form_fail(form, NULL, "needs uid and gid");
    out->run_as = true;
    return form_end(form);
}

enum code tool_confinement_parse(const struct json *config, struct arena *arena, struct tool_confinement *out,
                                 struct error *err)
{
    struct form form, part;
    int level = TOOL_LEVEL_AUTO;
    *out = (struct tool_confinement){.path = STR(""), .work_root = STR(""), .limits = tool_limits_default, .separate = true};
    form_begin(&form, "confinement", config, arena, err);
    form_choice(&form, "level", level_names, &level);
    out->level = (enum tool_level)level;
    form_text(&form, "path", &out->path);
    form_path(&form, "workRoot", &out->work_root);
    form_flag(&form, "unixSockets", &out->unix_sockets);
    form_texts(&form, "read", true, SIZE_MAX, &out->read, &out->read_count);
    form_texts(&form, "write", true, SIZE_MAX, &out->write, &out->write_count);
    if (form_part(&form, "limits", &part)) form.rc = read_limits(&part, &out->limits);
    if (form_part(&form, "runAs", &part)) form.rc = read_user(&part, out);
    return form_end(&form);
}

// ---- providers

static void check_provider(struct form *form, const struct secret_provider *provider)
{
    bool bound = provider->tenant.len && provider->environment.len;
    if (!provider_word(provider->name)) form_fail(form, "name", "must be letters, digits, '.', '_' and '-'");
    if ((provider->tenant.len > 0) != (provider->environment.len > 0))
        form_fail(form, "tenant", "and \"environment\" come together or not at all");
    // Their names are flat: only the configuration can tell whose they are (RE-5b).
    if ((provider->type == PROVIDER_ENV || provider->type == PROVIDER_SYSTEMD) && !bound)
        form_fail(form, "tenant", "and \"environment\" are needed by this type");
    if (provider->type == PROVIDER_FILE && (provider->path.len == 0 || provider->path.ptr[0] != '/'))
        form_fail(form, "path", "must be the absolute path of a file or directory");
    if (provider->type == PROVIDER_EXEC && (provider->argc == 0 || provider->argv[0].ptr[0] != '/'))
        form_fail(form, "argv", "must begin with the absolute path of a program");
}

static enum code read_provider(const struct json *config, struct arena *arena, struct secret_provider *out, struct error *err)
{
    static const char *const types[] = {
        "", [PROVIDER_ENV] = "env", [PROVIDER_FILE] = "file", [PROVIDER_SYSTEMD] = "systemd", [PROVIDER_EXEC] = "exec",
        NULL};
    struct form form;
    int type = 0;
    *out = (struct secret_provider){.name = STR(""),
                             .tenant = STR(""),
                             .environment = STR(""),
                             .prefix = STR(""),
                             .path = STR(""),
                             .timeout_ms = PROVIDER_TIMEOUT_MS};
    form_begin(&form, "secrets.providers", config, arena, err);
    form_text(&form, "name", &out->name);
    form_choice(&form, "type", types, &type);
    if (!type) form_fail(&form, "type", "is needed: env, file, systemd or exec");
    out->type = (enum provider_type)type;
    form_text(&form, "tenant", &out->tenant);
    form_text(&form, "environment", &out->environment);
    if (out->type == PROVIDER_ENV || out->type == PROVIDER_SYSTEMD) form_text(&form, "prefix", &out->prefix);
    if (out->type == PROVIDER_FILE) form_text(&form, "path", &out->path);
    if (out->type == PROVIDER_EXEC) {
        form_texts(&form, "argv", false, SIZE_MAX, &out->argv, &out->argc);
        take_size(&form, "timeoutMs", 60000, &out->timeout_ms);
    }
    check_provider(&form, out);
    return form_end(&form);
}

enum code tool_secrets_parse(const struct json *config, struct arena *arena, struct tool_secrets **out,
                             struct error *err)
{
    struct form form;
    bool local = false;
    form_begin(&form, "secrets", config, arena, err);
    const struct json *list = form_take(&form, "providers", JSON_ARRAY);
    form_flag(&form, "local", &local);
    enum code rc = form_end(&form);
    if (rc) return rc;
    struct tool_secrets *secrets = ARENA_NEW(arena, struct tool_secrets);
    size_t count = list ? list->count : 0;
    if (secrets) secrets->providers = ARENA_ARRAY(arena, count + 1, struct secret_provider);
    if (!secrets || !secrets->providers) return error_nomem(err);
    for (size_t i = 0; !rc && i < count; i++) {
        struct secret_provider *provider = &secrets->providers[i];
        rc = read_provider(&list->items[i], arena, provider, err);
        for (size_t k = 0; !rc && k < i; k++)
            if (provider_serves(&secrets->providers[k], provider->name, provider->tenant, provider->environment))
                rc = error_set(err, E_INVALID, "two providers of secrets are called %.*s for the same environment",
                               STR_ARG(provider->name));
    }
    secrets->count = count;
    secrets->local = local;
    *out = secrets;
    return rc;
}
