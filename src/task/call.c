// What every kind needs: its fields, lines for the log, files.
#include "task/kind.h"

#include "schema/embedded.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct json_limits task_limits = {
    .size_max = (size_t)256 << 20,
    .depth_max = 128,
    .node_count_max = 20000000,
    .string_size_max = (size_t)128 << 20,
    .key_count_max = 1000000,
};

struct str task_script(const char *path)
{
    for (size_t i = 0; i < embedded_script_count; i++)
        if (strcmp(embedded_scripts[i].name, path) == 0)
            return (struct str){(const char *)embedded_scripts[i].bytes, embedded_scripts[i].size};
    INVARIANT(!"a script that the binary carries");
    return (struct str){0};
}

// ---- fields

static const struct json *given(const struct json *value)
{
    return value && value->type != JSON_NULL ? value : NULL;
}

const struct json *call_get(const struct task_call *call, const char *name)
{
    return given(json_key(&call->with, name));
}

const struct json *call_find(const struct task_call *call, const char *name)
{
    const struct json *value = call_get(call, name);
    return value ? value : given(json_key(json_key(&call->with, "input"), name));
}

struct str json_as_text(const struct json *value, struct arena *arena)
{
    if (!value || value->type == JSON_NULL) return STR("");
    if (value->type == JSON_STRING || value->type == JSON_NUMBER) return value->text;
    struct buf text = buf_of(TASK_BODY_MAX);
    json_write(&text, value);
    struct str copy = buf_keep(&text, arena);
    return copy;
}

struct str call_string(const struct task_call *call, const char *name, const char *otherwise)
{
    const struct json *value = call_find(call, name);
    struct str text = value ? json_as_text(value, call->arena) : str_from(otherwise);
    return text.ptr ? text : STR("");
}

bool call_flag(const struct task_call *call, const char *name, bool otherwise)
{
    const struct json *value = call_find(call, name);
    if (!value) return otherwise;
    if (value->type == JSON_BOOL) return value->boolean;
    if (value->type == JSON_INT) return value->integer != 0;
    struct str text = json_text(value);
    return str_is(text, "true") || str_is(text, "True") || str_is(text, "1") || str_is(text, "yes");
}

int64_t seconds_ms(const struct json *value, int64_t otherwise)
{
    double seconds = 0;
    char copy[64];
    struct str text = json_text(value);
    if (!json_double(value, &seconds)) {
        if (!text.len || text.len >= sizeof(copy)) return otherwise;
        memcpy(copy, text.ptr, text.len);
        copy[text.len] = '\0';
        char *end;
        seconds = strtod(copy, &end);
        if (*end == 's') end++;
        if (*end) return otherwise;
    }
    if (!isfinite(seconds) || seconds <= 0 || seconds > 1e9) return otherwise;
    double ms = ceil(seconds * 1000);
    return (int64_t)ms;
}

struct str call_printf(struct task_call *call, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = size < 0 ? NULL : arena_alloc(call->arena, (size_t)size + 1);
    if (text) vsnprintf(text, (size_t)size + 1, format, again);
    va_end(again);
    return text ? (struct str){text, (size_t)size} : STR("");
}

bool call_put(struct task_call *call, struct json *object, const char *key, struct json value)
{
    if (json_put(call->arena, object, str_from(key), value)) return true;
    return call_no_memory(call);
}

// ---- texts from outside

struct str call_clean(struct task_call *call, struct str bytes)
{
    if (str_utf8(bytes) && (!bytes.len || !memchr(bytes.ptr, '\0', bytes.len))) return bytes;
    struct buf clean = buf_of(SIZE_MAX / 4);
    text_add_clean(&clean, bytes);
    struct str copy = buf_keep(&clean, call->arena);
    return copy.ptr ? copy : STR("");
}

struct json call_parse(struct task_call *call, struct str bytes, bool any)
{
    struct json value;
    struct str text = str_trim(bytes);
    bool looks = text.len && (any || text.ptr[0] == '{' || text.ptr[0] == '[');
    if (looks && json_parse(text, &task_limits, call->arena, &value, NULL) == OK) return value;
    return json_string(call_clean(call, bytes));
}

// ---- lines

void call_log(struct task_call *call, bool is_stderr, const char *format, ...)
{
    va_list arguments;
    char line[1024];
    va_start(arguments, format);
    int used = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (used < 0) return;
    struct str text = {line, (size_t)used < sizeof(line) ? (size_t)used : sizeof(line) - 1};
    text = call_mask(call, call_clean(call, text));
    if (!text.ptr) return;
    call_output(call, is_stderr, text);
    step_log_take(&call->log, is_stderr, text);
    step_log_take(&call->log, is_stderr, STR("\n"));
}

// ---- files

static bool below(const char *path, struct str root)
{
    char real[PATH_MAX], copy[PATH_MAX];
    if (!root.len || root.len >= sizeof(copy)) return false;
    memcpy(copy, root.ptr, root.len);
    copy[root.len] = '\0';
    if (!realpath(copy, real)) return false;
    size_t size = strlen(real);
    if (size > 1 && strncmp(path, real, size) != 0) return false;
    return size == 1 || path[size] == '/' || path[size] == '\0';
}

static bool allowed(const struct task_call *call, const char *path, bool writes)
{
    const struct tool_confinement *cage = tasks_options(call->tasks)->confinement;
    if (!cage || cage->level == TOOL_LEVEL_NONE) return true;
    bool good = below(path, call_request(call)->cwd) || below(path, call_request(call)->artifacts_dir);
    for (size_t i = 0; !good && i < cage->write_count; i++) good = below(path, cage->write[i]);
    for (size_t i = 0; !good && !writes && i < cage->read_count; i++) good = below(path, cage->read[i]);
    return good;
}

// The file need not be there: then its directory counts.
static bool real_path(const char *path, char real[PATH_MAX])
{
    if (realpath(path, real)) return true;
    const char *slash = strrchr(path, '/');
    char parent[PATH_MAX];
    if (errno != ENOENT || !slash || strcmp(slash + 1, "..") == 0 || (size_t)(slash - path) >= sizeof(parent))
        return false;
    memcpy(parent, path, (size_t)(slash - path));
    parent[slash - path] = '\0';
    if (!realpath(parent[0] ? parent : "/", real)) return false;
    size_t used = strlen(real);
    if (used + strlen(slash) >= PATH_MAX) return false;
    memcpy(real + used, slash, strlen(slash) + 1);
    return true;
}

bool call_path(struct task_call *call, struct str path, bool writes, struct str *real)
{
    char resolved[PATH_MAX];
    if (str_starts(path, STR("file://"))) path = str_slice(path, 7, path.len);
    struct str cwd = call_request(call)->cwd;
    bool absolute = path.len && path.ptr[0] == '/';
    struct str whole = call_printf(call, "%.*s%s%.*s", absolute ? 0 : (int)cwd.len, cwd.ptr,
                                   absolute  ? ""
                                   : cwd.len ? "/"
                                             : "./",
                                   STR_ARG(path));
    if (!path.len || memchr(path.ptr, '\0', path.len) || !real_path(whole.ptr, resolved))
        return call_fail(call, TASK_NOT_FOUND, "FILE_NOT_FOUND", "there is no file %.*s", STR_ARG(path));
    if (!allowed(call, resolved, writes))
        return call_fail(call, TASK_STORAGE_ACCESS, "FILE_NOT_ALLOWED", "%.*s is outside of what a task may %s here",
                         STR_ARG(path), writes ? "write" : "read");
    *real = call_printf(call, "%s", resolved);
    return true;
}

bool call_read_file(struct task_call *call, struct str path, struct str *bytes)
{
    struct str real;
    struct error err = {0};
    if (!call_path(call, path, false, &real)) return false;
    enum code rc = os_read_file(real.ptr, TASK_BODY_MAX, call->arena, bytes, &err);
    if (rc)
        call_fail(call, rc == E_NOT_FOUND ? TASK_NOT_FOUND : TASK_STORAGE_ACCESS, "FILE_NOT_READABLE", "%s",
                  err.message);
    return !rc;
}

bool call_write_file(struct task_call *call, struct str path, struct str bytes)
{
    struct str real;
    struct error err = {0};
    if (!call_path(call, path, true, &real)) return false;
    static pthread_mutex_t one =
        PTHREAD_MUTEX_INITIALIZER; // two tasks may write one file: its new version has one name
    pthread_mutex_lock(&one);
    enum code rc = os_write_file(real.ptr, bytes, 0644, true, &err);
    pthread_mutex_unlock(&one);
    if (rc)
        call_fail(call, rc == E_FULL ? TASK_STORAGE_QUOTA : TASK_STORAGE_ACCESS, "FILE_NOT_WRITABLE", "%s",
                  err.message);
    return !rc;
}
