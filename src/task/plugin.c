// Kinds of one's own: executables in a directory. NAME gets {"kind", "with", "execution_id", "step", "task", "attempt"} on stdin and
// answers on stdout, with an outcome, or with any other JSON, which is then the result. What it says on stderr is the log of the step.
#include "task/kind.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static bool path_of(const char *dir, struct str name, char path[PATH_SIZE])
{
    if (!dir || !name.len || name.ptr[0] == '.') return false;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool word = char_is_word(c) ||
                    c == '-' || c == '.';
        if (!word) return false;
    }
    int used = snprintf(path, PATH_SIZE, "%s/%.*s", dir, STR_ARG(name));
    return used > 0 && used < PATH_SIZE;
}

bool task_plugin_known(const char *dir, struct str name)
{
    char path[PATH_SIZE];
    struct stat stat;
    return path_of(dir, name, path) && lstat(path, &stat) == 0 && !S_ISDIR(stat.st_mode) && access(path, X_OK) == 0;
}

static bool is_outcome(const struct json *value)
{
    struct str status = json_text(json_key(value, "status"));
    bool ok = str_is(status, "ok") && json_key(value, "result");
    return ok || (str_is(status, "error") && json_is(json_key(value, "error"), JSON_OBJECT));
}

void call_take_outcome(struct task_call *call, const struct json *answer)
{
    const struct json *result = json_key(answer, "result"), *error = json_key(answer, "error");
    if (!is_outcome(answer)) {
        call_done(call, *answer);
        return;
    }
    call_done(call, result ? *result : json_null());
    if (!error) return;
    struct str word = json_text(json_key(error, "kind")), code = json_text(json_key(error, "code"));
    enum task_error kind = TASK_UNKNOWN;
    for (int at = TASK_CONNECTION; at <= TASK_UNKNOWN; at++)
        if (str_is(word, task_error_word((enum task_error)at))) kind = (enum task_error)at;
    const struct json *again = json_key(error, "retryable");
    call_fail(call, kind, code.len ? call_printf(call, "%.*s", STR_ARG(code)).ptr : "PLUGIN_FAILED", "%.*s",
              STR_ARG(json_text(json_key(error, "message"))));
    if (json_is(again, JSON_BOOL)) call->out.retryable = again->boolean;
}

static bool request_text(struct task_call *call, struct buf *out)
{
    static const char *const passed[] = {"execution_id", "step", "task", "attempt"};
    struct json whole = json_object();
    bool good = call_put(call, &whole, "kind", json_string(call->name)) && call_put(call, &whole, "with", call->with);
    for (size_t i = 0; good && i < ARRAY_COUNT(passed); i++) {
        const struct json *value = json_key(&call->input, passed[i]);
        if (value) good = call_put(call, &whole, passed[i], *value);
    }
    json_write(out, &whole);
    if (good && !buf_ok(out)) call_no_memory(call);
    return good && buf_ok(out);
}

static void run(struct task_call *call)
{
    char path[PATH_SIZE];
    struct tool_result ended;
    if (!path_of(tasks_options(call->tasks)->plugins, call->name, path)) {
        call_fail(call, TASK_NOT_FOUND, "UNKNOWN_KIND", "the plug-in %.*s is gone", STR_ARG(call->name));
        return;
    }
    struct buf input SCOPED(buf_release) = buf_of(task_limits.size_max);
    const struct str argv[] = {str_from(path)};
    bool ran = request_text(call, &input);
    struct tool_request request = {.argv = argv, .argc = 1, .input = buf_str(&input), .report = 1};
    if (ran) ran = call_process(call, &request, &ended);
    secret_wipe(buf_str(&input));
    if (!ran) return;
    struct str text = arena_copy(call->arena, ended.report);
    struct json answer = text.ptr && str_trim(text).len ? call_parse(call, text, true) : json_null();
    if (ended.ok || is_outcome(&answer))
        call_take_outcome(call, &answer);
    else
        call_process_failed(call, &ended);
    tool_result_free(&ended);
}

const struct task_kind kind_plugin = {.name = "plug-in", .run = run, .process = true};
