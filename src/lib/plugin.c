// Plugins: shared objects that register kinds through struct cairn_host, which is all they know of us.
#include "lib/inside.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static struct functions *of(const struct cairn_host *host)
{
    return host->engine;
}

static enum cairn_code add(const struct cairn_host *host, const struct cairn_kind *kind, struct cairn_error *error)
{
    struct error err = {0};
    enum code rc = kind ? functions_add(of(host), kind, &err) : error_set(&err, E_INVALID, "no kind");
    return tell(error, rc, &err, NULL);
}

static enum cairn_code complete(const struct cairn_host *host, uint64_t token, const struct cairn_result *result,
                                struct cairn_error *error)
{
    struct error err = {0};
    enum code rc = functions_complete(of(host), token, result, &err);
    return tell(error, rc, &err, NULL);
}

static int cancelled(const struct cairn_host *host, uint64_t token)
{
    return functions_cancelled(of(host), token);
}

static void say(const struct cairn_host *host, uint64_t token, const char *line)
{
    functions_log(of(host), token, str_from(line));
}

void plugin_host(struct functions *functions, struct cairn_host *out)
{
    *out = (struct cairn_host){.size = sizeof(*out),
                               .abi = CAIRN_PLUGIN_ABI,
                               .version = CAIRN_VERSION,
                               .engine = functions,
                               .add = add,
                               .complete = complete,
                               .cancelled = cancelled,
                               .log = say};
}

// It is never unloaded: a function of it may still be running, or be called again by another engine.
enum code functions_load(struct functions *functions, const char *file, struct error *err)
{
    char path[4096];
    // A bare name is a file here, not one of the system's libraries.
    int len = snprintf(path, sizeof(path), "%s%s", strchr(file, '/') ? "" : "./", file);
    void *object = len > 0 && (size_t)len < sizeof(path) ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!object) return error_set(err, E_NOT_FOUND, "cannot load the plugin %s: %s", file, dlerror());
    union {
        void *found;
        int (*init)(const struct cairn_host *host);
    } entry = {dlsym(object, "cairn_plugin_init")};
    if (!entry.found) {
        dlclose(object);
        return error_set(err, E_INVALID, "%s has no cairn_plugin_init: it is not a plugin", file);
    }
    int refused = entry.init(functions_host(functions));
    if (refused == 0) return OK;
    return error_set(err, E_VERSION, "the plugin %s refused to load into Cairn %s (plugin ABI %d): it said %d", file,
                     CAIRN_VERSION, CAIRN_PLUGIN_ABI, refused);
}
