// Private to tool/: where secrets come from.
#ifndef CAIRN_TOOL_PROVIDER_H
#define CAIRN_TOOL_PROVIDER_H

#include "tool/internal.h"

#define PROVIDER_TIMEOUT_MS 5000

enum provider_type { PROVIDER_ENV = 1, PROVIDER_FILE, PROVIDER_SYSTEMD, PROVIDER_EXEC };

struct secret_provider {
    struct str name;
    enum provider_type type;
    struct str tenant, environment; // bound to them; both empty: it gets them as arguments
    struct str prefix;              // env, systemd
    struct str path;                // file
    const struct str *argv;         // exec
    size_t argc;
    uint64_t timeout_ms;
};

struct tool_secrets {
    struct secret_provider *providers;
    size_t count;
    bool local; // references env: and file: of documents are read, too
};

// A part of a name: can stand in a path. Letters, digits, '.', '_', '-', not '.' first, at most 128.
bool provider_word(struct str word);
bool provider_serves(const struct secret_provider *provider, struct str name, struct str tenant, struct str environment);
// Runs the command with CAIRN_SECRET_NAME, _VERSION, _TENANT, _ENVIRONMENT; what it prints is the value.
bool provider_exec(const struct secret_provider *provider, const struct secret_scope *scope, const struct secret_ref *ref,
                   struct str name, struct str version, struct arena *arena, struct str *value, struct error *why);

#endif
