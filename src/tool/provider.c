// secret://PROVIDER/NAME[@VERSION]. Whose secret it is, is never part of what a plan says: the tenant and environment of the
// run choose the provider or the place within it, so a name cannot reach into another environment (RE-5b).
#include "tool/provider.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { WORD_MAX_SIZE = 128 };

bool provider_word(struct str word)
{
    if (word.len == 0 || word.len > WORD_MAX_SIZE || word.ptr[0] == '.') return false;
    for (size_t i = 0; i < word.len; i++) {
        char c = word.ptr[i];
        bool plain = char_is_alnum(c);
        if (!plain && c != '.' && c != '_' && c != '-') return false;
    }
    return true;
}

bool provider_serves(const struct secret_provider *provider, struct str name, struct str tenant, struct str environment)
{
    if (!str_eq(provider->name, name)) return false;
    return !provider->tenant.len || (str_eq(provider->tenant, tenant) && str_eq(provider->environment, environment));
}

// One that is bound to the run's environment comes before one that gets it as an argument.
static const struct secret_provider *find(const struct secret_scope *scope, struct str name)
{
    const struct secret_provider *found = NULL;
    for (size_t i = 0; i < scope->providers->count; i++) {
        const struct secret_provider *provider = &scope->providers->providers[i];
        if (!provider_serves(provider, name, scope->tenant, scope->environment)) continue;
        if (!found || provider->tenant.len) found = provider;
    }
    return found;
}

// NULL: too long, or memory ran out.
static const char *format(struct arena *arena, const char *pattern, ...) PRINTF_LIKE(2, 3);
static const char *format(struct arena *arena, const char *pattern, ...)
{
    va_list arguments;
    va_start(arguments, pattern);
    char text[4096];
    int used = vsnprintf(text, sizeof(text), pattern, arguments);
    va_end(arguments);
    return used > 0 && (size_t)used < sizeof(text) ? arena_copy(arena, str_from(text)).ptr : NULL;
}

static bool from_variable(const struct secret_provider *provider, const struct secret_ref *ref, struct str id,
                          struct arena *arena, struct str *value, struct error *why)
{
    const char *name = format(arena, "%.*s%.*s", STR_ARG(provider->prefix), STR_ARG(id));
    const char *found = name ? getenv(name) : NULL;
    if (!found) return secret_refuse(why, ref, "is not set");
    *value = arena_copy(arena, str_from(found));
    return value->ptr || secret_refuse(why, ref, "cannot be read: out of memory");
}

static bool from_credentials(const struct secret_provider *provider, const struct secret_ref *ref, struct str id,
                             struct arena *arena, struct str *value, struct error *why)
{
    const char *directory = getenv("CREDENTIALS_DIRECTORY");
    if (!directory || directory[0] != '/') return secret_refuse(why, ref, "cannot be read: there are no credentials");
    const char *path = format(arena, "%s/%.*s%.*s", directory, STR_ARG(provider->prefix), STR_ARG(id));
    if (!path) return secret_refuse(why, ref, "has too long a name");
    return secret_from_file(ref, path, true, arena, value, why);
}

// {"TENANT":{"ENVIRONMENT":{"NAME":"value"}}}
static bool from_table(const struct secret_provider *provider, const struct secret_scope *scope, const struct secret_ref *ref,
                       struct str id, struct arena *arena, struct str *value, struct error *why)
{
    struct str text;
    struct json root;
    struct error broken = {0};
    if (!secret_from_file(ref, provider->path.ptr, true, arena, &text, why)) return false;
    bool whole = json_parse(text, NULL, arena, &root, &broken) == OK;
    const struct json *found = whole ? json_get(&root, scope->tenant) : NULL;
    found = found ? json_get(found, scope->environment) : NULL;
    found = found ? json_get(found, id) : NULL;
    bool there = json_is(found, JSON_STRING);
    if (there) *value = arena_copy(arena, json_text(found));
    secret_wipe(text);
    if (!whole) return secret_refuse(why, ref, "cannot be read: the provider's file is not JSON");
    if (!there) return secret_refuse(why, ref, "does not exist");
    return value->ptr || secret_refuse(why, ref, "cannot be read: out of memory");
}

static bool from_path(const struct secret_provider *provider, const struct secret_scope *scope, const struct secret_ref *ref,
                      struct str id, struct arena *arena, struct str *value, struct error *why)
{
    struct stat stat_of;
    if (stat(provider->path.ptr, &stat_of) == 0 && S_ISREG(stat_of.st_mode))
        return from_table(provider, scope, ref, id, arena, value, why);
    const char *path = format(arena, "%.*s/%.*s/%.*s/%.*s", STR_ARG(provider->path), STR_ARG(scope->tenant),
                              STR_ARG(scope->environment), STR_ARG(id));
    if (!path) return secret_refuse(why, ref, "has too long a name");
    return secret_from_file(ref, path, true, arena, value, why);
}

// Names of secrets may be paths, as clouds have them: projects/p/secrets/s. No part goes up.
static bool is_secret_name(const struct secret_provider *provider, struct str name)
{
    bool paths = provider->type == PROVIDER_FILE || provider->type == PROVIDER_EXEC;
    if (!paths) return provider_word(name);
    struct str rest = name;
    do {
        struct str part = str_cut(rest, '/', &rest);
        if (!provider_word(part) || str_is(part, ".") || str_is(part, "..")) return false;
    } while (rest.len > 0);
    return name.ptr[name.len - 1] != '/';
}

bool provider_read(const struct secret_scope *scope, const struct secret_ref *ref, struct arena *arena,
                   struct str *value, struct error *why)
{
    struct str id, version;
    struct str name = str_cut(str_slice(ref->ref, strlen("secret://"), ref->ref.len), '/', &id);
    struct str word = str_cut(id, '@', &version);
    bool versioned = word.len < id.len;
    if (!provider_word(name) || word.len == 0 || (versioned && !provider_word(version)))
        return secret_refuse(why, ref, "is not secret://PROVIDER/NAME");
    const struct secret_provider *provider = scope->providers ? find(scope, name) : NULL;
    if (!provider) return secret_refuse(why, ref, "has no provider for this tenant and environment");
    if (!is_secret_name(provider, word)) return secret_refuse(why, ref, "is not secret://PROVIDER/NAME");
    if (!provider_word(scope->tenant) || !provider_word(scope->environment))
        return secret_refuse(why, ref, "belongs to a tenant or environment whose id cannot be looked up");
    switch (provider->type) {
    case PROVIDER_ENV:
        if (versioned) return secret_refuse(why, ref, "has no versions: it is a variable");
        return from_variable(provider, ref, id, arena, value, why);
    case PROVIDER_FILE:
        return from_path(provider, scope, ref, id, arena, value, why);
    case PROVIDER_SYSTEMD:
        return from_credentials(provider, ref, id, arena, value, why);
    case PROVIDER_EXEC:
        return provider_exec(provider, scope, ref, word, version, arena, value, why);
    }
    return secret_refuse(why, ref, "has no provider");
}
