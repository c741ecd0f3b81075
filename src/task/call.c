// What every kind needs: its fields, lines for the log, files.
#include "task/kind.h"

#include "reach/reach.h"
#include "schema/embedded.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    return buf_keep(&text, arena);
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
    return STR_AMONG(text, "true", "True", "1", "yes");
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

bool call_argument(struct task_call *call, struct str text)
{
    enum { SECRET_MIN = 4 }; // shorter ones are not masked either
    for (size_t i = 0; i < call->secret_count; i++) {
        struct str secret = call->secrets[i].value;
        if (secret.len >= SECRET_MIN && text.len && memmem(text.ptr, text.len, secret.ptr, secret.len))
            return call_fail(call, TASK_CLIENT, "SECRET_IN_ARGUMENT",
                             "an argument holds a secret, and arguments can be read by everybody on the machine: give it by env");
    }
    return true;
}

// ---- files

bool call_confined(const struct task_call *call)
{
    const struct tool_confinement *cage = tasks_options(call->tasks)->confinement;
    return cage && cage->level != TOOL_LEVEL_NONE;
}

bool call_strict(const struct task_call *call)
{
    return tasks_options(call->tasks)->policy || call_confined(call);
}

// The places that tasks of a confined run may name: its artifacts directory, and what the confinement names.
static bool find_place(struct task_call *call, struct str path, bool writes, int *root, struct str *name)
{
    const struct tool_confinement *cage = tasks_options(call->tasks)->confinement;
    const struct tool_request *request = call_request(call);
    size_t count = 1, max = 1 + cage->write_count + cage->read_count;
    struct reach_place *places = ARENA_ARRAY(call->arena, max, struct reach_place);
    struct error err = {0};
    if (!places) return call_no_memory(call);
    places[0] = (struct reach_place){request->artifacts_dir, true};
    for (size_t i = 0; i < cage->write_count; i++) places[count++] = (struct reach_place){cage->write[i], true};
    for (size_t i = 0; i < cage->read_count; i++) places[count++] = (struct reach_place){cage->read[i], false};
    if (writes && request->artifacts_dir.len) (void)!os_make_dirs(request->artifacts_dir.ptr, &err);
    enum code rc = reach_find(places, count, path, writes, root, name, &err);
    if (rc == E_NOT_FOUND)
        return call_fail(call, TASK_NOT_FOUND, "FILE_NOT_FOUND", "there is no file %.*s", STR_ARG(path));
    if (rc)
        return call_fail(call, TASK_STORAGE_ACCESS, "FILE_NOT_ALLOWED", "%.*s is outside of what a task may %s here",
                         STR_ARG(path), writes ? "write" : "read");
    return true;
}

static bool file_failed(struct task_call *call, enum code rc, const char *code, const struct error *err)
{
    if (rc == E_DENIED) code = "FILE_NOT_ALLOWED";
    return call_fail(call,
                     rc == E_NOT_FOUND ? TASK_NOT_FOUND
                     : rc == E_FULL    ? TASK_STORAGE_QUOTA
                                       : TASK_STORAGE_ACCESS,
                     code, "%s", err->message);
}

// The path of the directory that the kernel found, and the name in it.
static bool confined_path(struct task_call *call, struct str path, struct str *whole)
{
    struct str name = {0};
    struct error err = {0};
    char link[64], real[4096];
    int root = -1, dir = -1;
    if (!find_place(call, path, true, &root, &name)) return false;
    size_t slash = name.len;
    while (slash > 0 && name.ptr[slash - 1] != '/') slash--;
    struct str parent = slash ? str_slice(name, 0, slash) : STR("."), last = str_slice(name, slash, name.len);
    enum code rc = reach_dir(root, parent, &dir, &err);
    snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
    ssize_t size = rc ? -1 : readlink(link, real, sizeof(real));
    if (!rc && size <= 0) rc = os_errno(&err, "read", link);
    if (dir >= 0) close(dir);
    close(root);
    if (rc) return file_failed(call, rc, "FILE_NOT_READABLE", &err);
    *whole = call_printf(call, "%.*s/%.*s", (int)size, real, STR_ARG(last));
    return true;
}

bool call_path(struct task_call *call, struct str path, struct str *whole)
{
    struct str cwd = call_request(call)->cwd;
    if (str_starts(path, STR("file://"))) path = str_slice(path, 7, path.len);
    if (call_confined(call)) return confined_path(call, path, whole);
    if (!path.len || memchr(path.ptr, '\0', path.len))
        return call_fail(call, TASK_NOT_FOUND, "FILE_NOT_FOUND", "there is no file %.*s", STR_ARG(path));
    bool beneath = path.ptr[0] != '/' && cwd.len;
    *whole = call_printf(call, "%.*s%s%.*s", beneath ? (int)cwd.len : 0, cwd.ptr, beneath ? "/" : "", STR_ARG(path));
    const char *slash = strrchr(whole->ptr, '/');
    if (!slash || os_is_dir(call_printf(call, "%.*s", (int)(slash - whole->ptr) + 1, whole->ptr).ptr)) return true;
    return call_fail(call, TASK_NOT_FOUND, "FILE_NOT_FOUND", "there is no file %.*s", STR_ARG(path));
}

bool call_read_file(struct task_call *call, struct str path, struct str *bytes)
{
    struct str name = {0};
    struct error err = {0};
    enum code rc;
    int root = -1;
    if (str_starts(path, STR("file://"))) path = str_slice(path, 7, path.len);
    if (call_confined(call)) {
        if (!find_place(call, path, false, &root, &name)) return false;
        rc = reach_read(root, name, TASK_BODY_MAX, call->arena, bytes, &err);
        close(root);
    } else {
        if (!call_path(call, path, &name)) return false;
        rc = os_read_file(name.ptr, TASK_BODY_MAX, call->arena, bytes, &err);
    }
    return !rc || file_failed(call, rc, "FILE_NOT_READABLE", &err);
}

bool call_write_file(struct task_call *call, struct str path, struct str bytes)
{
    struct str name = {0};
    struct error err = {0};
    enum code rc;
    int root = -1;
    if (str_starts(path, STR("file://"))) path = str_slice(path, 7, path.len);
    if (call_confined(call)) {
        if (!find_place(call, path, true, &root, &name)) return false;
        rc = reach_write(root, name, bytes, &err);
        close(root);
    } else {
        static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; // two tasks may write one file: its new version has one name
        if (!call_path(call, path, &name)) return false;
        LOCKED(&one);
        rc = os_write_file(name.ptr, bytes, 0644, true, &err);
    }
    return !rc || file_failed(call, rc, "FILE_NOT_WRITABLE", &err);
}
