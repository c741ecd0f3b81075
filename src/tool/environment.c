// The environment of a step: ours without what would change how its programs load or start (of a confined one: the same few
// names for every step), then what the step declares, then its secrets, then who it is. A later name replaces an earlier one.
#include "tool/internal.h"

#include "base/map.h"
#include "view/trace.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

// A final '*' stands for any ending.
static const char *const blocked[] = {
    "LD_*",         "BASH_ENV",  "ENV",      "BASH_FUNC_*", "IFS",     "PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME",
    "NODE_OPTIONS", "NODE_PATH", "PERL5LIB", "PERL5OPT",    "RUBYOPT", "RUBYLIB",       "GIT_*",      "CAIRN_*",
};

struct builder {
    struct map names;
    struct tool_env *entries;
    size_t count, capacity;
    struct arena *arena;
    bool failed;
};

static bool is_blocked(struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(blocked); i++) {
        struct str pattern = str_from(blocked[i]);
        if (str_ends(pattern, STR("*")) ? str_starts(name, str_slice(pattern, 0, pattern.len - 1))
                                        : str_eq(name, pattern))
            return true;
    }
    return false;
}

static void put(struct builder *builder, struct str name, struct str value)
{
    if (builder->failed) return;
    struct tool_env *entries = arena_grow(builder->arena, builder->entries, builder->count, builder->count + 1,
                                          sizeof(*entries), &builder->capacity);
    uint32_t existing = MAP_NONE;
    if (!entries || !map_put(&builder->names, name, (uint32_t)builder->count, &existing)) {
        builder->failed = true;
        return;
    }
    builder->entries = entries;
    if (existing == MAP_NONE)
        entries[builder->count++] = (struct tool_env){name, value};
    else
        entries[existing].value = value;
}

static void put_inherited(struct builder *builder)
{
    for (char **at = environ; at && *at; at++) {
        struct str value;
        struct str entry = str_from(*at);
        struct str name = str_cut(entry, '=', &value);
        if (name.len > 0 && name.len < entry.len && !is_blocked(name)) put(builder, name, value);
    }
}

static void put_clean(struct builder *builder, const struct environment *with)
{
    put(builder, STR("PATH"), with->path);
    put(builder, STR("LANG"), STR("C.UTF-8"));
    put(builder, STR("TZ"), STR("UTC"));
    put(builder, STR("HOME"), with->home);
    put(builder, STR("TMPDIR"), with->home);
}

static void put_number(struct builder *builder, struct str name, uint32_t number)
{
    char text[16];
    snprintf(text, sizeof(text), "%u", number);
    struct str copy = arena_copy(builder->arena, str_from(text));
    if (!copy.ptr) builder->failed = true;
    put(builder, name, copy);
}

// Whatever the step calls belongs below its attempt in the trace of the run.
static void put_trace(struct builder *builder, const struct environment *with)
{
    char text[TRACEPARENT_SIZE];
    trace_parent(with->run, with->step, with->logical, with->engine, text);
    struct str copy = arena_copy(builder->arena, str_from(text));
    if (!copy.ptr) builder->failed = true;
    put(builder, STR("TRACEPARENT"), copy);
}

static void put_identity(struct builder *builder, const struct environment *with)
{
    put(builder, STR("CAIRN_RUN_ID"), with->run);
    put(builder, STR("CAIRN_STEP_ID"), with->step);
    put_number(builder, STR("CAIRN_ATTEMPT"), with->logical);
    put_number(builder, STR("CAIRN_ENGINE_ATTEMPT"), with->engine);
    // The same for every physical attempt: what a receiver needs to tell a repetition from a new request.
    size_t size = with->run.len + with->step.len + 16;
    char *key = arena_alloc(builder->arena, size);
    if (key)
        snprintf(key, size, "%.*s:%.*s:%u", STR_ARG(with->run), STR_ARG(with->step), with->logical);
    else
        builder->failed = true;
    put(builder, STR("CAIRN_IDEMPOTENCY_KEY"), str_from(key));
    put_trace(builder, with);
    put(builder, STR("CAIRN_MARK"), with->mark);
}

static char *join(struct arena *arena, const struct tool_env *entry)
{
    size_t size = entry->name.len + entry->value.len + 2;
    char *text = arena_alloc(arena, size);
    if (!text) return NULL;
    memcpy(text, entry->name.ptr, entry->name.len);
    text[entry->name.len] = '=';
    if (entry->value.len) memcpy(text + entry->name.len + 1, entry->value.ptr, entry->value.len);
    return text;
}

char **environment_build(const struct environment *with, struct arena *arena)
{
    struct builder builder = {.arena = arena};
    map_init(&builder.names, arena);
    if (with->clean)
        put_clean(&builder, with);
    else
        put_inherited(&builder);
    for (size_t i = 0; i < with->env_count; i++) put(&builder, with->env[i].name, with->env[i].value);
    for (size_t i = 0; i < with->secret_count; i++) put(&builder, with->secrets[i].name, with->secrets[i].value);
    put_identity(&builder, with);
    char **list = builder.failed ? NULL : ARENA_ARRAY(arena, builder.count + 1, char *);
    for (size_t i = 0; list && i < builder.count; i++) {
        list[i] = join(arena, &builder.entries[i]);
        if (!list[i]) {
            environment_wipe(list);
            return NULL;
        }
    }
    return list;
}

void environment_wipe(char **environment)
{
    for (char **at = environment; at && *at; at++) explicit_bzero(*at, strlen(*at));
}

const char *environment_get(char *const *environment, const char *name)
{
    size_t len = strlen(name);
    for (char *const *at = environment; *at; at++) {
        if (strncmp(*at, name, len) == 0 && (*at)[len] == '=') return *at + len + 1;
    }
    return NULL;
}
