// The words on the wire, for both ends: docs/format/worker.md.
#include "remote/inside.h"

#include "http/http.h"
#include "json/make.h"

#include <stdio.h>

// ---- a task as a worker sees it
static void wire_name(struct buf *out, const char *name)
{
    char last = out->len > 0 ? out->ptr[out->len - 1] : '{';
    if (last != '{' && last != '[') buf_byte(out, ',');
    json_write_string(out, str_from(name));
    buf_byte(out, ':');
}

void wire_text(struct buf *out, const char *name, struct str value)
{
    wire_name(out, name);
    json_write_string(out, value);
}

void wire_number(struct buf *out, const char *name, int64_t value)
{
    wire_name(out, name);
    buf_int(out, value);
}

static void wire_true(struct buf *out, const char *name)
{
    wire_name(out, name);
    buf_text(out, "true");
}

void wire_list(struct buf *out, const char *name)
{
    wire_name(out, name);
    buf_byte(out, '[');
}

static void pair(struct buf *out, bool first, struct str a, struct str b)
{
    buf_text(out, first ? "[" : ",[");
    json_write_string(out, a);
    buf_byte(out, ',');
    json_write_string(out, b);
    buf_byte(out, ']');
}

static void wire_process(struct buf *out, const struct tool_request *request)
{
    wire_list(out, "argv");
    for (size_t i = 0; i < request->argc; i++) {
        if (i > 0) buf_byte(out, ',');
        json_write_string(out, request->argv[i]);
    }
    buf_byte(out, ']');
    if (request->input.len > 0) wire_text(out, "stdin", request->input);
    if (request->cwd.len > 0) wire_text(out, "cwd", request->cwd);
    if (request->home.len > 0) wire_text(out, "home", request->home);
    wire_list(out, "env");
    for (size_t i = 0; i < request->env_count; i++) pair(out, i == 0, request->env[i].name, request->env[i].value);
    buf_byte(out, ']');
    wire_list(out, "secrets"); // where they are, never what they are
    for (size_t i = 0; i < request->secret_count; i++)
        pair(out, i == 0, request->secrets[i].name, request->secrets[i].ref);
    buf_byte(out, ']');
}

static const char *const form_names[] = {[EXECUTOR_NONE] = "",
                                         [EXECUTOR_PROCESS] = "process",
                                         [EXECUTOR_TASK] = "task",
                                         [EXECUTOR_FUNCTION] = "function"};

void remote_task_write(struct buf *out, const struct tool_request *request, struct str token, int64_t lease_ms)
{
    struct buf key SCOPED(buf_release) = buf_of(8192);
    buf_printf(&key, "%.*s:%.*s:%u", STR_ARG(request->run), STR_ARG(request->step), request->logical);
    buf_byte(out, '{');
    wire_text(out, "token", token);
    wire_number(out, "epoch", (int64_t)request->epoch);
    wire_text(out, "tenant", request->tenant);
    wire_text(out, "project", request->project);
    wire_text(out, "environment", request->environment); // with the tenant: whose secrets these are
    wire_text(out, "run", request->run);
    wire_text(out, "step", request->step);
    wire_number(out, "attempt", request->logical);
    wire_number(out, "engineAttempt", request->engine);
    wire_text(out, "idempotencyKey", buf_str(&key));
    wire_text(out, "form", str_from(form_names[request->form]));
    wire_text(out, "kind", request->kind);
    if (request->function.len > 0) {
        wire_name(out, "input");
        buf_add(out, request->input.len > 0 ? request->input : STR("null")); // JSON text already
    } else {
        wire_process(out, request);
    }
    if (request->artifact_count > 0) {
        wire_list(out, "artifacts");
        for (size_t i = 0; i < request->artifact_count; i++) {
            if (i > 0) buf_byte(out, ',');
            json_write_string(out, request->artifacts[i].path);
        }
        buf_byte(out, ']');
    }
    wire_number(out, "timeoutMs", request->timeout_ms);
    wire_number(out, "outputMax", (int64_t)request->output_max);
    static const char *const overflows[] = OVERFLOW_NAMES;
    if (request->overflow) wire_text(out, "onOverflow", str_from(overflows[request->overflow]));
    wire_number(out, "logMax", (int64_t)request->log_max);
    wire_number(out, "leaseMs", lease_ms);
    buf_byte(out, '}');
    out->failed |= !buf_ok(&key);
}

// ---- and back
static enum code bad(struct error *err, const char *what)
{
    return error_set(err, E_INVALID, "the server's answer has %s", what);
}

static enum code pairs(const struct json *list, struct arena *arena, struct str (**out)[2], size_t *count,
                       struct error *err)
{
    *count = 0;
    if (!json_is(list, JSON_ARRAY)) return OK;
    struct str(*all)[2] = arena_array(arena, list->count + 1, sizeof(*all));
    if (!all) return error_nomem(err);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct json *item = &list->items[i];
        if (!json_is(item, JSON_ARRAY) || item->count != 2) return bad(err, "a pair that is none");
        all[i][0] = json_text(&item->items[0]);
        all[i][1] = json_text(&item->items[1]);
    }
    *out = all;
    *count = list->count;
    return OK;
}

static enum code strings(const struct json *list, struct arena *arena, struct str **out, size_t *count,
                         struct error *err)
{
    *count = 0;
    if (!json_is(list, JSON_ARRAY)) return OK;
    *out = ARENA_ARRAY(arena, list->count + 1, struct str);
    if (!*out) return error_nomem(err);
    for (uint32_t i = 0; i < list->count; i++) (*out)[i] = json_text(&list->items[i]);
    *count = list->count;
    return OK;
}

static enum code read_process(const struct json *task, struct arena *arena, struct tool_request *request,
                              struct error *err)
{
    struct str *argv = NULL, (*env)[2] = NULL, (*secrets)[2] = NULL;
    size_t env_count = 0, secret_count = 0;
    enum code rc = strings(json_key(task, "argv"), arena, &argv, &request->argc, err);
    if (!rc && request->argc == 0) rc = bad(err, "a task without argv");
    if (!rc) rc = pairs(json_key(task, "env"), arena, &env, &env_count, err);
    if (!rc) rc = pairs(json_key(task, "secrets"), arena, &secrets, &secret_count, err);
    if (rc) return rc;
    struct tool_env *envs = ARENA_ARRAY(arena, env_count + 1, struct tool_env);
    struct secret_ref *refs = ARENA_ARRAY(arena, secret_count + 1, struct secret_ref);
    if (!envs || !refs) return error_nomem(err);
    for (size_t i = 0; i < env_count; i++) envs[i] = (struct tool_env){env[i][0], env[i][1]};
    for (size_t i = 0; i < secret_count; i++) refs[i] = (struct secret_ref){secrets[i][0], secrets[i][1]};
    request->argv = argv;
    request->env = envs;
    request->env_count = env_count;
    request->secrets = refs;
    request->secret_count = secret_count;
    request->form = EXECUTOR_PROCESS;
    request->input = json_text(json_key(task, "stdin"));
    request->cwd = json_text(json_key(task, "cwd"));
    request->home = json_text(json_key(task, "home"));
    return OK;
}

static enum code read_function(const struct json *input, struct arena *arena, struct tool_request *request,
                               struct error *err)
{
    struct buf text = buf_of((size_t)64 << 20);
    json_canon(&text, input);
    request->input = buf_keep(&text, arena);
    request->function = request->kind;
    return request->input.ptr ? OK : error_nomem(err);
}

// Nothing in them is believed: what is counted with later has a size that can be counted with.
static enum code read_numbers(const struct json *task, struct remote_task *out, struct error *err)
{
    const int64_t day = 86400000, most = (int64_t)1 << 40;
    int64_t epoch, logical, engine, output, log;
    struct tool_request *request = &out->request;
    const struct {
        const char *name;
        int64_t usual, least, most, *out;
    } numbers[] = {{"leaseMs", REMOTE_LEASE_MS, 1, 366 * day, &out->lease_ms}, {"timeoutMs", 0, 0, (int64_t)1 << 60, &request->timeout_ms},
                   {"epoch", 0, 0, INT64_MAX, &epoch},                         {"attempt", 1, 1, UINT32_MAX, &logical},
                   {"engineAttempt", 1, 1, UINT32_MAX, &engine},               {"outputMax", 1 << 20, 0, most, &output},
                   {"logMax", 1 << 24, 0, most, &log}};
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        const struct json *given = json_key(task, numbers[i].name);
        *numbers[i].out = json_integer(given, given ? -1 : numbers[i].usual);
        if (*numbers[i].out < numbers[i].least || *numbers[i].out > numbers[i].most) return bad(err, "a number that is none");
    }
    request->epoch = (uint64_t)epoch;
    request->logical = (uint32_t)logical;
    request->engine = (uint32_t)engine;
    request->output_max = (size_t)output;
    request->log_max = (size_t)log;
    return OK;
}

static enum code read_task(const struct json *task, struct arena *arena, struct remote_task *out, struct error *err)
{
    struct tool_request *request = &out->request;
    *out = (struct remote_task){.token = json_text(json_key(task, "token"))};
    *request = (struct tool_request){.tenant = json_text(json_key(task, "tenant")),
                                     .project = json_text(json_key(task, "project")),
                                     .environment = json_text(json_key(task, "environment")),
                                     .run = json_text(json_key(task, "run")),
                                     .step = json_text(json_key(task, "step")),
                                     .kind = json_text(json_key(task, "kind"))};
    struct str form = json_text(json_key(task, "form"));
    for (size_t i = EXECUTOR_PROCESS; i < ARRAY_COUNT(form_names); i++)
        if (str_is(form, form_names[i])) request->form = (enum executor)i;
    if (out->token.len == 0 || request->run.len == 0 || request->step.len == 0)
        return bad(err, "a task without a token");
    struct str overflow = json_text(json_key(task, "onOverflow"));
    static const char *const overflows[] = OVERFLOW_NAMES;
    for (size_t i = 0; overflows[i]; i++)
        if (str_is(overflow, overflows[i])) request->overflow = (enum overflow)i;
    struct str *paths = NULL;
    enum code rc = read_numbers(task, out, err);
    if (!rc) rc = strings(json_key(task, "artifacts"), arena, &paths, &request->artifact_count, err);
    if (rc) return rc;
    struct artifact_decl *decls = ARENA_ARRAY(arena, request->artifact_count + 1, struct artifact_decl);
    if (!decls) return error_nomem(err);
    for (size_t i = 0; i < request->artifact_count; i++) decls[i].path = paths[i];
    request->artifacts = decls;
    const struct json *input = json_key(task, "input");
    if (input && request->form != EXECUTOR_FUNCTION && request->form != EXECUTOR_TASK)
        return bad(err, "an input for what takes none");
    return input ? read_function(input, arena, request, err) : read_process(task, arena, request, err);
}

enum code remote_task_read(struct str body, struct arena *arena, struct remote_task *task, struct error *err)
{
    struct json value;
    enum code rc = json_parse(body, &json_limits_result, arena, &value, err);
    return rc ? rc : read_task(&value, arena, task, err);
}

enum code remote_tasks_read(struct str body, struct arena *arena, struct remote_task **tasks, size_t *count,
                            struct error *err)
{
    struct json answer;
    *count = 0;
    enum code rc = json_parse(body, &json_limits_result, arena, &answer, err);
    if (rc) return rc;
    const struct json *list = json_key(&answer, "tasks");
    if (!json_is(list, JSON_ARRAY)) return bad(err, "no tasks");
    *tasks = ARENA_ARRAY(arena, list->count + 1, struct remote_task);
    if (!*tasks) return error_nomem(err);
    for (uint32_t i = 0; !rc && i < list->count; i++) {
        rc = read_task(&list->items[i], arena, &(*tasks)[i], err);
        (*tasks)[i].waited_ms = json_integer(json_key(&answer, "waitedMs"), -1);
    }
    if (!rc) *count = list->count;
    return rc;
}

// ---- results
static void write_fault(struct buf *out, const struct fault *fault)
{
    wire_name(out, "error");
    buf_byte(out, '{');
    wire_text(out, "code", fault->code);
    wire_text(out, "message", fault->message);
    if (fault->category.len > 0) wire_text(out, "category", fault->category);
    if (fault->detail.len > 0) wire_text(out, "detail", fault->detail);
    if (fault->retryable) wire_true(out, "retryable");
    if (fault->has_exit) wire_number(out, "exitCode", fault->exit_code);
    buf_byte(out, '}');
}

void remote_result_write(struct buf *out, struct str token, uint64_t epoch, const struct tool_result *result)
{
    buf_byte(out, '{');
    wire_text(out, "token", token);
    wire_number(out, "epoch", (int64_t)epoch);
    if (result->lost) {
        wire_true(out, "lost");
    } else if (!result->ok) {
        write_fault(out, &result->fault);
    } else if (result->is_json) {
        wire_name(out, "value");
        buf_add(out, result->output.len > 0 ? result->output : STR("null"));
    } else {
        wire_text(out, "output", result->output);
        if (result->truncated) wire_true(out, "truncated");
    }
    if (result->ok && result->spilled) wire_true(out, "spilled");
    if (result->ok && result->truncated) wire_number(out, "outputSize", (int64_t)result->output_size);
    wire_number(out, "durationMs", result->duration_ms);
    buf_byte(out, '}');
}

void remote_result_told(struct buf *out, const struct tool_result *result)
{
    if (result->lost)
        buf_text(out, "given back");
    else if (result->ok)
        buf_text(out, result->is_json ? "done" : "exit 0");
    else
        buf_printf(out, "%.*s: %.*s", STR_ARG(result->fault.code), STR_ARG(result->fault.message));
}

enum { MESSAGE_MAX = 4096, DETAIL_MAX = 8192 };

static struct str cut(struct str text, size_t max)
{
    if (text.len <= max) return text;
    text.len = max;
    while (text.len > 0 && !str_utf8(text)) text.len--; // never half a character
    return text;
}

bool result_read(const struct json *item, struct buf *value, struct tool_result *out)
{
    const struct json *error = json_key(item, "error"), *output = json_key(item, "output");
    const struct json *given = json_key(item, "value");
    out->duration_ms = json_integer(json_key(item, "durationMs"), 0);
    out->lost = json_key(item, "lost") != NULL;
    if (error) {
        const struct json *exit = json_key(error, "exitCode");
        out->fault = (struct fault){.code = json_text(json_key(error, "code")),
                                    .message = cut(json_text(json_key(error, "message")), MESSAGE_MAX),
                                    .category = json_text(json_key(error, "category")),
                                    .detail = cut(json_text(json_key(error, "detail")), DETAIL_MAX),
                                    .retryable = json_true(json_key(error, "retryable")),
                                    .has_exit = exit != NULL,
                                    .exit_code = (int32_t)json_integer(exit, 0)};
    }
    if (error || out->lost) return true;
    out->ok = true;
    out->truncated = json_true(json_key(item, "truncated"));
    out->spilled = json_true(json_key(item, "spilled"));
    out->output_size = (uint64_t)json_integer(json_key(item, "outputSize"), 0);
    out->output = json_text(output);
    if (output) return true;
    out->is_json = true;
    json_canon(value, given);
    out->output = buf_str(value);
    return buf_ok(value);
}

enum code remote_result_read(struct str body, struct arena *arena, struct tool_result *out, struct error *err)
{
    struct json item;
    struct buf value SCOPED(buf_release) = buf_of((size_t)64 << 20);
    enum code rc = json_parse(body, &json_limits_result, arena, &item, err);
    *out = (struct tool_result){0};
    const struct json *error = rc ? NULL : json_key(&item, "error");
    bool fits = !rc && (json_is(json_key(&item, "output"), JSON_STRING) || json_key(&item, "value") || json_key(&item, "lost") ||
                        json_text(json_key(error, "code")).len > 0);
    if (!rc && !fits) rc = error_set(err, E_INVALID, "this is no result of a task");
    if (!rc && !result_read(&item, &value, out)) rc = error_nomem(err);
    if (!rc && out->is_json) out->output = arena_copy(arena, out->output);
    if (!rc && out->is_json && !out->output.ptr) rc = error_nomem(err);
    return rc;
}

// ---- answers
static const struct {
    const char *name, *code, *title;
    int status;
} states[] = {
    [REMOTE_OK] = {"ok", NULL, "", 200},
    [REMOTE_CANCEL] = {"cancel", NULL, "", 200},
    [REMOTE_STALE] = {"stale", "STALE_ATTEMPT", "the attempt is over", 409},
    [REMOTE_DENIED] = {"denied", "TASK_TOKEN_INVALID", "not a task token of this server, or not the caller's", 403},
    [REMOTE_INVALID] = {"invalid", "INVALID_RESULT", "the element cannot be read", 400},
    [REMOTE_AGAIN] = {"again", "NOT_STORED_YET", "not durable yet; say it again", 503},
};

const char *state_name(enum remote_state state)
{
    return states[state].name;
}

const char *state_code(enum remote_state state)
{
    return states[state].code;
}

const char *state_title(enum remote_state state)
{
    return states[state].title;
}

int state_status(enum remote_state state)
{
    return states[state].status;
}

void wire_problem(struct buf *out, int status, const char *code, const char *detail)
{
    char type[96];
    snprintf(type, sizeof(type), "urn:cairn:problem:%s", code);
    buf_byte(out, '{');
    wire_text(out, "type", str_from(type));
    wire_text(out, "title", str_from(http_reason(status)));
    wire_number(out, "status", status);
    wire_text(out, "code", str_from(code));
    wire_text(out, "detail", str_from(detail));
}

enum code remote_answers_read(struct str body, struct arena *arena, struct remote_answer **answers, size_t *count,
                              struct error *err)
{
    struct json answer;
    *count = 0;
    enum code rc = json_parse(body, &json_limits_result, arena, &answer, err);
    if (rc) return rc;
    const struct json *list = json_key(&answer, "results");
    if (!json_is(list, JSON_ARRAY)) return bad(err, "no results");
    *answers = ARENA_ARRAY(arena, list->count + 1, struct remote_answer);
    if (!*answers) return error_nomem(err);
    for (uint32_t i = 0; i < list->count; i++) {
        struct str name = json_text(json_key(&list->items[i], "state"));
        for (size_t k = 1; k < ARRAY_COUNT(states); k++)
            if (str_is(name, states[k].name)) (*answers)[i].state = (enum remote_state)k;
        if ((*answers)[i].state == 0) return bad(err, "a state that is not known here");
        (*answers)[i].grace_ms = json_integer(json_key(&list->items[i], "graceMs"), 0);
    }
    *count = list->count;
    return OK;
}
