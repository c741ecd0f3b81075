// Steps of a run, what they wrote, and why they are as they are.
#include "api/inside.h"

#include <string.h>

static uint64_t moment_of(struct ask *ask, bool *ok)
{
    int64_t at;
    *ok = query_number(ask, "at", 1, INT64_MAX, INT64_MAX, &at);
    return at == INT64_MAX ? READING_NOW : (uint64_t)at;
}

// ---- steps

// The steps of the snapshot: all of them, or the one of params[1].
static void tell_steps(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct folded folded;
    struct error err = {0};
    struct json body, whole;
    bool ok;
    uint64_t at = moment_of(ask, &ok);
    if (!ok) return;
    enum code rc = reading_fold(store, head, at, &call->arena, &folded, &err);
    if (!rc && (!view_json(&folded.view, &call->arena, &body) || !json_copy(&call->arena, &body, &whole)))
        rc = error_set(&err, E_NOMEM, "out of memory");
    folded_release(&folded);
    if (rc) {
        call_failed(call, &err);
        return;
    }
    const struct json *steps = json_key(&whole, "steps");
    if (ask->params[1].len == 0) {
        answer_page(ask, steps ? *steps : json_array(), (struct str){0});
        return;
    }
    for (uint32_t i = 0; steps && i < steps->count; i++) {
        if (!str_eq(json_text(json_key(&steps->items[i], "stepId")), ask->params[1])) continue;
        call_answer(call, 200, steps->items[i]);
        return;
    }
    call_problem(call, 404, "STEP_NOT_FOUND", "the run has no step %.*s", STR_ARG(ask->params[1]));
}

void handle_steps_list(struct ask *ask)
{
    with_run(ask, OPERATION_STEP_OUTPUT, tell_steps);
}

void handle_step_get(struct ask *ask)
{
    with_run(ask, OPERATION_STEP_OUTPUT, tell_steps);
}

// ---- why

static void tell_why(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct tale tale;
    struct error err = {0};
    struct json answer, whole = {0};
    bool ok;
    uint64_t at = moment_of(ask, &ok);
    if (!ok) return;
    int64_t now = at == READING_NOW ? os_now().wall_ms : 0;
    enum code rc = reading_explain(store, head, at, &call->arena, &tale, &err);
    if (!rc && ask->params[1].len > 0)
        rc = explain_step(tale.explain, ask->params[1], now, &call->arena, &answer, &err);
    else if (!rc)
        rc = explain_run(tale.explain, now, &call->arena, &answer, &err);
    if (!rc && !json_copy(&call->arena, &answer, &whole)) rc = error_set(&err, E_NOMEM, "out of memory");
    tale_release(&tale);
    if (rc == E_NOT_FOUND)
        call_problem(call, 404, "STEP_NOT_FOUND", "the run has no step %.*s", STR_ARG(ask->params[1]));
    else if (rc)
        call_failed(call, &err);
    else {
        if (call->decision.payload_redacted) redact(&whole);
        call_answer(call, 200, whole);
    }
}

void handle_run_why(struct ask *ask)
{
    with_run(ask, OPERATION_RUN_WHY, tell_why);
}

void handle_step_why(struct ask *ask)
{
    with_run(ask, OPERATION_RUN_WHY, tell_why);
}

// ---- logs

// {"at","stream","text"}; the end and a cut are lines, too.
static bool line_json(struct ask *ask, const struct tool_log_line *line, struct json *out)
{
    static const char *const names[] = {"", "stdout", "stderr", "cut", "end"};
    *out = json_object();
    return ask_time(ask, out, "at", line->at_ms) && ask_text(ask, out, "stream", str_from(names[line->kind])) &&
           ask_json(ask, out, "text", json_string(line->text)) &&
           (!line->open || ask_json(ask, out, "open", json_bool(true)));
}

static void write_line(struct ask *ask, struct buf *out, const struct tool_log_line *line, bool json)
{
    struct json object;
    if (json) {
        if (!line_json(ask, line, &object)) out->failed = true;
        if (!out->failed) json_write(out, &object);
        buf_byte(out, '\n');
    } else if (line->kind == TOOL_LOG_CUT) {
        buf_text(out, "[the log was cut here]\n");
    } else if (line->kind != TOOL_LOG_END) {
        buf_add(out, line->text);
        if (!line->open) buf_byte(out, '\n');
    }
}

static bool write_lines(struct ask *ask, struct str file, bool json, struct str *out)
{
    struct buf text;
    buf_init(&text, (size_t)64 << 20);
    while (file.len > 0) {
        struct tool_log_line line;
        if (tool_log_parse(str_cut(file, '\n', &file), &line)) write_line(ask, &text, &line, json);
    }
    *out = buf_ok(&text) ? arena_copy(&ask->call->arena, buf_str(&text)) : (struct str){0};
    buf_release(&text);
    return out->ptr != NULL;
}

static void tell_logs(struct ask *ask, struct store *store, const struct run_head *head)
{
    struct call *call = ask->call;
    struct error err = {0};
    struct str dir, bytes, out;
    struct byte_range range;
    char name[TOOL_LOG_NAME_SIZE];
    int64_t attempt, engine;
    bool json = accepts(ask->request, "application/x-ndjson");
    if (!query_number(ask, "attempt", 1, INT32_MAX, 1, &attempt) ||
        !query_number(ask, "engineAttempt", 1, INT32_MAX, 1, &engine))
        return;
    enum code rc = store_logs_dir(store, &head->ids, &call->arena, &dir);
    tool_log_name(ask->params[1], (uint32_t)attempt, (uint32_t)engine, name);
    struct str path = call_text(call, "%.*s/%s", STR_ARG(dir), name);
    if (!rc && dir.len > 0) rc = os_read_file(path.ptr, (size_t)64 << 20, &call->arena, &bytes, &err);
    if (rc == E_NOT_FOUND || dir.len == 0)
        call_problem(call, 404, "LOG_NOT_FOUND", "attempt %lld of step %.*s has written nothing here",
                     (long long)attempt, STR_ARG(ask->params[1]));
    else if (rc)
        call_failed(call, &err);
    else if (!write_lines(ask, bytes, json, &out))
        no_memory(ask);
    else if (range_of(ask, out.len, &range))
        answer_slice(ask, json ? "application/x-ndjson" : "text/plain; charset=utf-8",
                     str_slice(out, range.from, range.from + range.size), &range, (struct str){0});
}

void handle_step_logs(struct ask *ask)
{
    with_run(ask, OPERATION_STEP_LOGS, tell_logs);
}
