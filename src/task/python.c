// Kind python: the user's python3, as a process of the tools. A fixed wrapper reads what it has to do from stdin, runs it, and writes an
// outcome to descriptor 3, so that stdout and stderr are the log of the step and nothing else.
#include "task/kind.h"

// python.py compiles code as it is; only when it has a `return` outside of a function it becomes the body of one, as a tree,
// so that no line of it moves. Its inputs are then parameters: assigning to them works as at the top.

static const char *const parameters[] = {"input", "args", "data"};

static bool add_script(struct task_call *call, const struct json *script, struct json *job)
{
    struct script_place place;
    struct str text;
    if (!script_find(call, script, &place) || !call_put(call, job, "file", json_string(place.uri))) return false;
    if (place.web) return script_fetch(call, &place, &text) && call_put(call, job, "code", json_string(text));
    // The process opens files itself: what it may read is its confinement's business.
    struct str uri = place.uri;
    if (str_starts(uri, STR("file://"))) uri = str_slice(uri, 7, uri.len);
    const struct json *document = json_key(&call->input, "document");
    if (document && !call_put(call, job, "document", *document)) return false;
    return call_put(call, job, "open", json_string(uri));
}

static bool job_of(struct task_call *call, struct json *job)
{
    static const char *const scripts[] = {"code", "script"};
    const struct json *code = call_get(call, scripts[0]), *script = call_get(call, scripts[1]);
    // What a mark would be replaced by must not become part of a program.
    const struct json *written = json_at(&call->input, STR("with.code"));
    const struct json *input = NULL, *libs = call_get(call, "libs");
    for (size_t i = 0; !input && i < ARRAY_COUNT(parameters); i++) input = call_get(call, parameters[i]);
    *job = json_object();
    if (json_is(code, JSON_STRING) && code->text.len) {
        if (!call_put(call, job, "code", *written)) return false;
    } else if (script) {
        if (!add_script(call, script, job)) return false;
    } else {
        return call_fail(call, TASK_CLIENT, "CODE_MISSING", "python needs code, or a script");
    }
    const struct json *execution = json_key(&call->input, "execution_id");
    return (!input || call_put(call, job, "input", *input)) && (!libs || call_put(call, job, "libs", *libs)) &&
           (!execution || call_put(call, job, "execution_id", *execution));
}

// ---- what came of it

static enum task_error error_named(struct str word)
{
    for (int error = TASK_CONNECTION; error <= TASK_UNKNOWN; error++)
        if (str_is(word, task_error_word((enum task_error)error))) return (enum task_error)error;
    return TASK_UNKNOWN;
}

static void read_report(struct task_call *call, const struct tool_result *ended)
{
    struct json report;
    struct error err = {0};
    struct str text = arena_copy(call->arena, ended->report);
    if (!text.ptr) {
        call_no_memory(call);
        return;
    }
    if (json_parse(text, &task_limits, call->arena, &report, &err)) {
        call_fail(call, TASK_PARSE, "RESULT_INVALID", "the result cannot be read: %s", err.message);
        return;
    }
    const struct json *ok = json_key(&report, "ok"), *result = json_key(&report, "result"),
                      *again = json_key(&report, "retryable");
    if (json_true(ok)) {
        call_done(call, result ? *result : json_null());
        return;
    }
    struct str code = call_printf(call, "%.*s", STR_ARG(json_text(json_key(&report, "code"))));
    call_fail(call, error_named(json_text(json_key(&report, "kind"))), code.ptr, "%.*s",
              STR_ARG(json_text(json_key(&report, "message"))));
    call->out.retryable = json_true(again);
    call->out.py = json_object();
    (void)(call_put(call, &call->out.py, "exception_type", json_string(json_text(json_key(&report, "type")))) &&
           call_put(call, &call->out.py, "traceback", json_string(json_text(json_key(&report, "traceback")))));
}

static void run(struct task_call *call)
{
    struct json job;
    struct tool_result ended;
    if (!job_of(call, &job)) return;
    struct buf input = buf_of(task_limits.size_max);
    json_write(&input, &job);
    if (!buf_ok(&input)) {
        buf_release(&input);
        call_no_memory(call);
        return;
    }
    const struct str argv[] = {STR("python3"), STR("-c"), task_script("src/task/python.py")};
    struct tool_request request = {.argv = argv, .argc = ARRAY_COUNT(argv), .input = buf_str(&input), .report = 3};
    bool ran = call_process(call, &request, &ended);
    secret_wipe(buf_str(&input));
    buf_release(&input);
    if (!ran) return;
    bool stopped = !ended.ok && !ended.fault.has_exit; // killed, late, never started
    if (ended.report.len && !stopped)
        read_report(call, &ended);
    else
        call_process_failed(call, &ended);
    tool_result_free(&ended);
}

static const char *const fields[] = {"code", "script", "libs", "data", NULL};
const struct task_kind kind_python = {.name = "python", .fields = fields, .run = run, .process = true};
