// Confinement and providers of secrets as they stand in a configuration.
#include "tool/internal.h"
#include "tool/provider.h"

enum { CPU_MAX = 1 << 30 };

static const char *const level_names[] = {[TOOL_LEVEL_NONE] = "none",
                                          [TOOL_LEVEL_BASIC] = "basic",
                                          [TOOL_LEVEL_FILES] = "files",
                                          [TOOL_LEVEL_FULL] = "full",
                                          [TOOL_LEVEL_AUTO] = "auto"};

bool tool_level_parse(struct str name, enum tool_level *out)
{
    for (size_t i = 0; i < ARRAY_COUNT(level_names); i++) {
        if (!str_is(name, level_names[i])) continue;
        *out = (enum tool_level)i;
        return true;
    }
    return false;
}

// One object of a configuration and what has been found wrong with it.
struct form {
    const char *what;
    const struct json *object;
    struct arena *arena;
    struct error *err;
    uint32_t used; // members that were asked for
    bool failed;
};

static void fail(struct form *form, const char *name, const char *why)
{
    if (!form->failed) error_set(form->err, E_INVALID, "%s: \"%s\" %s", form->what, name, why);
    form->failed = true;
}

static const struct json *take(struct form *form, const char *name, enum json_type type)
{
    const struct json *value = json_key(form->object, name);
    if (!value) return NULL;
    form->used++;
    if (value->type == type) return value;
    fail(form, name,
         type == JSON_STRING  ? "must be a text"
         : type == JSON_INT   ? "must be a whole number"
         : type == JSON_ARRAY ? "must be a list"
                              : "must be an object");
    return NULL;
}

static struct str copy(struct form *form, struct str text)
{
    struct str kept = arena_copy(form->arena, text);
    if (!kept.ptr && !form->failed) {
        error_nomem(form->err);
        form->failed = true;
    }
    return kept.ptr ? kept : (struct str){"", 0};
}

static struct str take_text(struct form *form, const char *name)
{
    const struct json *value = take(form, name, JSON_STRING);
    struct str text = json_text(value);
    if (value && (text.len == 0 || str_find(text, '\0', 0) < text.len)) fail(form, name, "is empty or holds a NUL");
    return value ? copy(form, text) : (struct str){"", 0};
}

static void take_number(struct form *form, const char *name, int64_t most, uint64_t *out)
{
    const struct json *value = take(form, name, JSON_INT);
    if (!value) return;
    if (value->integer < 0 || value->integer > most)
        fail(form, name, "is out of range");
    else
        *out = (uint64_t)value->integer;
}

static const struct str *take_list(struct form *form, const char *name, bool paths, size_t *count)
{
    const struct json *value = take(form, name, JSON_ARRAY);
    struct str *list = value ? ARENA_ARRAY(form->arena, value->count + 1, struct str) : NULL;
    *count = 0;
    for (uint32_t i = 0; list && i < value->count; i++) {
        struct str text = json_text(&value->items[i]);
        if (text.len == 0 || (paths && text.ptr[0] != '/') || str_find(text, '\0', 0) < text.len)
            fail(form, name, paths ? "must hold absolute paths" : "must hold texts");
        else
            list[(*count)++] = copy(form, text);
    }
    return list;
}

static enum code finish(struct form *form)
{
    if (!form->failed && form->used < form->object->count) {
        error_set(form->err, E_INVALID, "%s has a member that is not known", form->what);
        form->failed = true;
    }
    return form->failed ? form->err->code : OK;
}

static enum code begin(struct form *form, const char *what, const struct json *object, struct arena *arena,
                       struct error *err)
{
    *form = (struct form){.what = what, .object = object, .arena = arena, .err = err};
    return json_is(object, JSON_OBJECT) ? OK : error_set(err, E_INVALID, "%s must be an object", what);
}

static enum code read_limits(const struct json *config, struct arena *arena, struct tool_limits *out, struct error *err)
{
    struct form form;
    if (!config) return OK;
    enum code rc = begin(&form, "limits of steps", config, arena, err);
    if (rc) return rc;
    take_number(&form, "memoryBytes", INT64_MAX, &out->memory);
    take_number(&form, "addressBytes", INT64_MAX, &out->address);
    take_number(&form, "cpuSeconds", CPU_MAX, &out->cpu);
    take_number(&form, "files", 1 << 20, &out->files);
    take_number(&form, "processes", 1 << 22, &out->processes);
    take_number(&form, "fileBytes", INT64_MAX, &out->file_size);
    take_number(&form, "stackBytes", INT64_MAX, &out->stack);
    return finish(&form);
}

// Root would not be another user.
static enum code read_user(const struct json *config, struct arena *arena, struct tool_confinement *out,
                           struct error *err)
{
    struct form form;
    uint64_t uid = 0, gid = 0;
    if (!config) return OK;
    enum code rc = begin(&form, "runAs", config, arena, err);
    if (rc) return rc;
    take_number(&form, "uid", UINT32_MAX - 1, &uid);
    take_number(&form, "gid", UINT32_MAX - 1, &gid);
    if (uid == 0 || gid == 0) fail(&form, uid == 0 ? "uid" : "gid", "must be given and not be 0");
    out->run_as = true;
    out->uid = (uint32_t)uid;
    out->gid = (uint32_t)gid;
    return finish(&form);
}

enum code tool_confinement_parse(const struct json *config, struct arena *arena, struct tool_confinement *out,
                                 struct error *err)
{
    struct form form;
    *out = (struct tool_confinement){.level = TOOL_LEVEL_AUTO, .limits = tool_limits_default};
    enum code rc = begin(&form, "confinement", config, arena, err);
    if (rc) return rc;
    struct str level = take_text(&form, "level");
    if (level.len && !tool_level_parse(level, &out->level)) fail(&form, "level", "is one of " TOOL_LEVEL_NAMES);
    out->path = take_text(&form, "path");
    out->work_root = take_text(&form, "workRoot");
    if (out->work_root.len && out->work_root.ptr[0] != '/') fail(&form, "workRoot", "must be an absolute path");
    out->read = take_list(&form, "read", true, &out->read_count);
    out->write = take_list(&form, "write", true, &out->write_count);
    const struct json *limits = take(&form, "limits", JSON_OBJECT), *user = take(&form, "runAs", JSON_OBJECT);
    rc = finish(&form);
    if (!rc) rc = read_limits(limits, arena, &out->limits, err);
    if (!rc) rc = read_user(user, arena, out, err);
    return rc;
}

// ---- providers

static bool provider_type(struct str name, enum provider_type *out)
{
    static const char *const names[] = {
        [PROVIDER_ENV] = "env", [PROVIDER_FILE] = "file", [PROVIDER_SYSTEMD] = "systemd", [PROVIDER_EXEC] = "exec"};
    for (size_t i = PROVIDER_ENV; i < ARRAY_COUNT(names); i++) {
        if (!str_is(name, names[i])) continue;
        *out = (enum provider_type)i;
        return true;
    }
    return false;
}

static void check_provider(struct form *form, const struct provider *provider)
{
    bool bound = provider->tenant.len && provider->environment.len;
    if (!provider_word(provider->name)) fail(form, "name", "must be letters, digits, '.', '_' and '-'");
    if ((provider->tenant.len > 0) != (provider->environment.len > 0))
        fail(form, "tenant", "and \"environment\" come together or not at all");
    // Their names are flat: only the configuration can tell whose they are (RE-5b).
    if ((provider->type == PROVIDER_ENV || provider->type == PROVIDER_SYSTEMD) && !bound)
        fail(form, "tenant", "and \"environment\" are needed by this type");
    if (provider->type == PROVIDER_FILE && (provider->path.len == 0 || provider->path.ptr[0] != '/'))
        fail(form, "path", "must be the absolute path of a file or directory");
    if (provider->type == PROVIDER_EXEC && (provider->argc == 0 || provider->argv[0].ptr[0] != '/'))
        fail(form, "argv", "must begin with the absolute path of a program");
}

static enum code read_provider(const struct json *config, struct arena *arena, struct provider *out, struct error *err)
{
    struct form form;
    enum code rc = begin(&form, "a provider of secrets", config, arena, err);
    if (rc) return rc;
    *out = (struct provider){.timeout_ms = PROVIDER_TIMEOUT_MS};
    out->name = take_text(&form, "name");
    struct str type = take_text(&form, "type");
    if (!provider_type(type, &out->type)) fail(&form, "type", "is one of env|file|systemd|exec");
    out->tenant = take_text(&form, "tenant");
    out->environment = take_text(&form, "environment");
    if (out->type == PROVIDER_ENV || out->type == PROVIDER_SYSTEMD) out->prefix = take_text(&form, "prefix");
    if (out->type == PROVIDER_FILE) out->path = take_text(&form, "path");
    if (out->type == PROVIDER_EXEC) {
        out->argv = take_list(&form, "argv", false, &out->argc);
        take_number(&form, "timeoutMs", 60000, &out->timeout_ms);
    }
    check_provider(&form, out);
    return finish(&form);
}

enum code tool_secrets_parse(const struct json *config, struct arena *arena, struct tool_secrets **out,
                             struct error *err)
{
    struct form form;
    enum code rc = begin(&form, "secrets", config, arena, err);
    if (rc) return rc;
    const struct json *list = take(&form, "providers", JSON_ARRAY), *local = take(&form, "local", JSON_BOOL);
    rc = finish(&form);
    if (rc) return rc;
    struct tool_secrets *secrets = ARENA_NEW(arena, struct tool_secrets);
    size_t count = list ? list->count : 0;
    if (secrets) secrets->providers = ARENA_ARRAY(arena, count + 1, struct provider);
    if (!secrets || !secrets->providers) return error_nomem(err);
    for (size_t i = 0; !rc && i < count; i++) {
        struct provider *provider = &secrets->providers[i];
        rc = read_provider(&list->items[i], arena, provider, err);
        for (size_t k = 0; !rc && k < i; k++)
            if (provider_serves(&secrets->providers[k], provider->name, provider->tenant, provider->environment))
                rc = error_set(err, E_INVALID, "two providers of secrets are called %.*s for the same environment",
                               STR_ARG(provider->name));
    }
    secrets->count = count;
    secrets->local = local && local->boolean;
    *out = secrets;
    return rc;
}
