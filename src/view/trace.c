#include "view/trace.h"

#include "json/make.h"

#include <string.h>

enum { KIND_INTERNAL = 1, KIND_SERVER = 2 };
enum { STATUS_UNSET = 0, STATUS_OK = 1, STATUS_ERROR = 2 };

// ---- ids

static void hex_of(const uint8_t *bytes, size_t count, char *hex)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        hex[2 * i] = digits[bytes[i] >> 4];
        hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    hex[2 * count] = '\0';
}

// Decimal digits of a number that is not negative; `text` needs 21 bytes.
static struct str decimal(uint64_t number, char *text)
{
    char reversed[20];
    size_t len = 0;
    do {
        reversed[len++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    for (size_t i = 0; i < len; i++) text[i] = reversed[len - 1 - i];
    text[len] = '\0';
    return (struct str){text, len};
}

void trace_id(struct str run, char hex[TRACE_ID_HEX + 1])
{
    struct digest digest = sha256(run);
    hex_of(digest.b, TRACE_ID_HEX / 2, hex);
}

void trace_run_span(struct str run, char hex[SPAN_ID_HEX + 1])
{
    struct digest digest = sha256(run);
    hex_of(digest.b + TRACE_ID_HEX / 2, SPAN_ID_HEX / 2, hex);
}

void trace_step_span(struct str run, struct str step, uint32_t logical, uint32_t engine, char hex[SPAN_ID_HEX + 1])
{
    char first[21], second[21];
    const struct str bar = STR("|");
    const struct str parts[] = {run, bar, step, bar, decimal(logical, first), bar, decimal(engine, second)};
    struct digest digest = sha256_parts(parts, ARRAY_COUNT(parts));
    hex_of(digest.b, SPAN_ID_HEX / 2, hex);
}

void trace_parent(struct str run, struct str step, uint32_t logical, uint32_t engine, char out[TRACEPARENT_SIZE])
{
    memcpy(out, "00-", sizeof("00-"));
    trace_id(run, out + 3);
    out[3 + TRACE_ID_HEX] = '-';
    trace_step_span(run, step, logical, engine, out + 4 + TRACE_ID_HEX);
    memcpy(out + 4 + TRACE_ID_HEX + SPAN_ID_HEX, "-01", 4);
}

// ---- a span under construction

struct span {
    struct arena *arena;
    struct str run; // of the trace
    struct json object, attributes, links;
};

static struct json number_json(struct arena *arena, uint64_t number)
{
    char text[21]; // 64-bit integers are strings in the JSON form of protocol buffers
    return json_copied(arena, decimal(number, text));
}

// {"key", value}: texts, numbers that are not negative, and what is true.
#define ATTRIBUTES(arena, list, ...) add_attributes((arena), (list), JSON_FIELDS(__VA_ARGS__))
static void add_attributes(struct arena *arena, struct json *list, const struct json_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct json value = fields[i].value;
        const char *type = value.type == JSON_INT ? "intValue" : value.type == JSON_BOOL ? "boolValue" : "stringValue";
        if (!value.type) continue;
        if (value.type == JSON_INT) value = number_json(arena, (uint64_t)value.integer);
        json_append(arena, list, JSON_OF(arena, {"key", json_word(fields[i].key)}, {"value", JSON_OF(arena, {type, value})}));
    }
}

static void add_link(struct span *span, struct str run, const char *span_id, const char *kind, struct str step)
{
    char trace[TRACE_ID_HEX + 1];
    struct arena *arena = span->arena;
    struct json attributes = json_array();
    trace_id(run, trace);
    ATTRIBUTES(arena, &attributes, {"cairn.link", json_word(kind)}, {"cairn.run.id", json_some(run)},
               {"cairn.step.id", json_some(step)});
    json_append(arena, &span->links,
                JSON_OF(arena, {"traceId", json_copied(arena, str_from(trace))},
                        {"spanId", json_copied(arena, str_from(span_id))}, {"attributes", attributes}));
}

static void add_run_link(struct span *span, struct str run, const char *kind, struct str step)
{
    char id[SPAN_ID_HEX + 1];
    if (run.len == 0) return;
    trace_run_span(run, id);
    add_link(span, run, id, kind, step);
}

static struct span span_begin(struct arena *arena, struct str run, const char *id, const char *parent, struct str name,
                              int kind)
{
    char trace[TRACE_ID_HEX + 1];
    trace_id(run, trace);
    return (struct span){.arena = arena,
                         .run = run,
                         .object = JSON_OF(arena, {"traceId", json_copied(arena, str_from(trace))},
                                           {"spanId", json_copied(arena, str_from(id))},
                                           {"parentSpanId", parent ? json_copied(arena, str_from(parent)) : json_none()},
                                           {"name", json_string(name)}, {"kind", json_int(kind)}),
                         .attributes = json_array(),
                         .links = json_array()};
}

static void span_times(struct span *span, int64_t start_ms, int64_t end_ms)
{
    if (start_ms <= 0 || start_ms > end_ms) start_ms = end_ms; // a clock that was set back, or a result without a start
    JSON_ADD(span->arena, &span->object,
             {"startTimeUnixNano", number_json(span->arena, (uint64_t)start_ms * 1000000)},
             {"endTimeUnixNano", number_json(span->arena, (uint64_t)end_ms * 1000000)});
}

static void span_end(struct span *span, int status, struct str message, struct json *spans)
{
    bool told = status == STATUS_ERROR && message.len > 0;
    JSON_ADD(span->arena, &span->object, {"attributes", span->attributes}, {"links", json_filled(span->links)},
             {"status", JSON_OF(span->arena, {"code", json_when(status != STATUS_UNSET, json_int(status))},
                                {"message", json_when(told, json_string(message))})});
    json_append(span->arena, spans, span->object);
}

// ---- outcomes, in the words of the semantic conventions for CI/CD

static const char *result_of(const struct fault *fault)
{
    if (fault->code.len == 0) return "success";
    if (str_is(fault->code, "TIMEOUT") || str_is(fault->category, "timeout")) return "timeout";
    if (str_is(fault->code, "CANCELLED")) return "cancellation";
    return str_is(fault->category, "infrastructure") ? "error" : "failure";
}

static int status_of(const char *result)
{
    if (strcmp(result, "success") == 0) return STATUS_OK;
    return strcmp(result, "cancellation") == 0 || strcmp(result, "skip") == 0 ? STATUS_UNSET : STATUS_ERROR;
}

// ---- the run

static void add_run_links(struct span *span, const struct start_facts *start)
{
    add_run_link(span, start->parent_run, "parent", start->parent_step);
    add_run_link(span, start->original_run, "retry", STR(""));
    if (start->forked) add_run_link(span, start->forked_run, "fork", STR(""));
}

static void run_span(const struct run_view *view, struct arena *arena, struct json *spans)
{
    char id[SPAN_ID_HEX + 1];
    const struct start_facts *start = &view->start;
    if (!run_status_terminal(view->status)) return;
    struct str name = arena_format(arena, "RUN %.*s", STR_ARG(view->ids.plan_id));
    trace_run_span(view->ids.run, id);
    struct span span = span_begin(arena, view->ids.run, id, NULL, name, KIND_SERVER);
    if (!name.ptr) span.object = json_failed();
    span_times(&span, view->started_ms ? view->started_ms : view->queued_ms, view->ended_ms);
    bool cancelled = view->status == RUN_STATUS_CANCELLED;
    const char *result = cancelled ? "cancellation" : result_of(&view->fault);
    if (view->status == RUN_STATUS_FAILED && view->fault.code.len == 0) result = "failure";
    ATTRIBUTES(arena, &span.attributes, {"cicd.pipeline.action.name", json_word("RUN")},
               {"cicd.pipeline.name", json_some(view->ids.plan_id)}, {"cicd.pipeline.run.id", json_some(view->ids.run)},
               {"cicd.pipeline.result", json_word(result)}, {"error.type", json_some(view->fault.code)},
               {"cairn.plan.version", json_some(view->ids.plan_version)},
               {"cairn.document.sha256", json_some(start->document_sha256)},
               {"cairn.run.status", json_word(run_status_name(view->status))},
               {"cairn.run.failed_step", json_some(view->failed_step)},
               {"cairn.run.cancel_reason", json_some(view->cancel_reason)},
               {"cairn.run.events", json_count(view->last_seq)});
    add_run_links(&span, start);
    span_end(&span, status_of(result), view->fault.message, spans);
}

// ---- steps

// "poll[2].fetch" is in "poll" and in its round 2; "" and 0 for a step of the top.
static struct str loop_of(struct str path, uint64_t *round)
{
    size_t open = path.len;
    while (open > 0 && path.ptr[open - 1] != '[') open--;
    *round = 0;
    if (open == 0) return STR("");
    for (size_t i = open; i < path.len && path.ptr[i] >= '0' && path.ptr[i] <= '9'; i++)
        *round = *round * 10 + (uint64_t)(path.ptr[i] - '0');
    return str_slice(path, 0, open - 1);
}

// The span that an attempt at this time is in: that of the loop's attempt which had begun by then, else the run's.
static void parent_of(const struct run_view *view, struct str path, int64_t at_ms, char id[SPAN_ID_HEX + 1])
{
    uint64_t round;
    const struct attempt_view *around = NULL;
    struct str loop = loop_of(path, &round);
    const struct step_view *step = loop.len ? view_step(view, loop) : NULL;
    for (size_t i = 0; step && i < step->attempt_count; i++) {
        if (!around || step->attempts[i].started_ms <= at_ms) around = &step->attempts[i];
    }
    if (around)
        trace_step_span(view->ids.run, loop, around->logical, around->engine, id);
    else
        trace_run_span(view->ids.run, id);
}

static void add_step(struct span *span, const struct step_view *step, const char *result)
{
    uint64_t round;
    struct str loop = loop_of(step->id, &round);
    ATTRIBUTES(span->arena, &span->attributes, {"cicd.pipeline.task.name", json_some(step->id)},
               {"cicd.pipeline.task.run.result", json_word(result)}, {"cairn.run.id", json_some(span->run)},
               {"cairn.loop.id", json_some(loop)}, {"cairn.loop.iteration", json_when(loop.len > 0, json_count(round))});
}

static struct json task_id(const struct span *span, const struct step_view *step, const struct attempt_view *attempt)
{
    struct buf text = buf_of(4096);
    buf_printf(&text, "%.*s/%.*s#%u", STR_ARG(span->run), STR_ARG(step->id), attempt->logical);
    if (attempt->engine > 1) buf_printf(&text, ".%u", attempt->engine);
    return json_text_made(buf_keep(&text, span->arena));
}

// When it ended, or when it was known to be gone; 0: it may still be running.
static int64_t end_of(const struct run_view *view, const struct step_view *step, size_t index, bool *lost)
{
    const struct attempt_view *attempt = &step->attempts[index];
    *lost = !attempt->ended;
    if (attempt->ended) return attempt->ended_ms;
    if (index + 1 < step->attempt_count) return step->attempts[index + 1].started_ms;
    return run_status_terminal(view->status) ? view->ended_ms : 0;
}

static void link_before(struct span *span, const struct step_view *step, size_t index)
{
    char id[SPAN_ID_HEX + 1];
    if (index == 0) return;
    const struct attempt_view *before = &step->attempts[index - 1];
    bool again = before->logical == step->attempts[index].logical;
    trace_step_span(span->run, step->id, before->logical, before->engine, id);
    add_link(span, span->run, id, again ? "redispatch" : "retry", step->id);
}

static void attempt_span(const struct run_view *view, const struct step_view *step, size_t index, struct arena *arena,
                         struct json *spans)
{
    const struct attempt_view *attempt = &step->attempts[index];
    char id[SPAN_ID_HEX + 1], parent[SPAN_ID_HEX + 1];
    bool lost, last = index + 1 == step->attempt_count;
    int64_t ended = end_of(view, step, index, &lost);
    if (ended <= 0) return;
    trace_step_span(view->ids.run, step->id, attempt->logical, attempt->engine, id);
    parent_of(view, step->id, attempt->started_ms ? attempt->started_ms : ended, parent);
    struct span span = span_begin(arena, view->ids.run, id, parent, step->id, KIND_INTERNAL);
    span_times(&span, attempt->began_ms, ended);
    const char *result = !lost ? result_of(&attempt->fault) : last ? "cancellation" : "error";
    add_step(&span, step, result);
    bool exited = attempt->fault.has_exit && attempt->fault.exit_code >= 0;
    ATTRIBUTES(arena, &span.attributes, {"cicd.pipeline.task.run.id", task_id(&span, step, attempt)},
               {"error.type", json_some(attempt->fault.code)}, {"cairn.step.attempt", json_int(attempt->logical)},
               {"cairn.step.engine_attempt", json_int(attempt->engine)},
               {"process.exit.code", json_when(exited, json_int(attempt->fault.exit_code))},
               {"cairn.step.queued_ms", json_nonzero(attempt->began_ms - attempt->started_ms)}, // it waited for a place
               {"cairn.attempt.lost", json_flag(lost)}); // nobody saw how it ended
    link_before(&span, step, index);
    if (last) add_run_link(&span, step->child_run, "child", STR(""));
    if (last) add_run_link(&span, step->reused_from, "reused", step->id);
    span_end(&span, status_of(result), attempt->fault.message, spans);
}

static void skipped_span(const struct run_view *view, const struct step_view *step, struct arena *arena,
                         struct json *spans)
{
    char id[SPAN_ID_HEX + 1], parent[SPAN_ID_HEX + 1];
    trace_step_span(view->ids.run, step->id, 0, 0, id);
    parent_of(view, step->id, step->ended_ms, parent);
    struct span span = span_begin(arena, view->ids.run, id, parent, step->id, KIND_INTERNAL);
    span_times(&span, step->ended_ms, step->ended_ms);
    add_step(&span, step, "skip");
    ATTRIBUTES(arena, &span.attributes, {"cairn.skip.reason", json_some(step->skip_reason)},
               {"cairn.skip.detail", json_some(step->skip_detail)});
    span_end(&span, STATUS_UNSET, STR(""), spans);
}

// ---- tasks of playbooks

static struct trace_task *task_of(const struct trace_tasks *tasks, const struct moment *m)
{
    for (size_t i = tasks->count; i-- > 0;) {
        struct trace_task *t = &tasks->items[i];
        if (t->visit == m->visit && t->iteration == m->iteration && t->task_run == m->task_run &&
            t->attempt == m->logical && str_eq(t->task, m->task) && str_eq(t->step, m->step))
            return t->ended_ms ? NULL : t;
    }
    return NULL;
}

static bool task_begins(struct trace_tasks *tasks, const struct moment *m)
{
    if (!ARENA_ROOM(tasks->arena, tasks->items, tasks->count, &tasks->capacity)) return false;
    struct buf path = buf_of(8192);
    buf_add(&path, m->step);
    if (m->visit > 1) buf_printf(&path, ":run:%u", m->visit);
    if (m->iteration > 0) buf_printf(&path, "[%u]", m->iteration);
    buf_printf(&path, "/%.*s", STR_ARG(m->task));
    if (m->task_run > 1) buf_printf(&path, ":run:%u", m->task_run);
    struct str kept = buf_keep(&path, tasks->arena), task = arena_copy(tasks->arena, m->task);
    if (!kept.ptr || !task.ptr) return false;
    tasks->items[tasks->count] = (struct trace_task){.path = kept,
                                                     .step = str_slice(kept, 0, m->step.len),
                                                     .task = task,
                                                     .visit = m->visit,
                                                     .iteration = m->iteration,
                                                     .task_run = m->task_run,
                                                     .attempt = m->logical,
                                                     .logical = (uint32_t)tasks->count + 1,
                                                     .engine = m->engine,
                                                     .started_ms = m->at_ms};
    tasks->count++;
    return true;
}

bool trace_task_fold(struct trace_tasks *tasks, const struct moment *m)
{
    if (m->task.len == 0 || m->visit == 0) return true;
    if (m->kind == MOMENT_ATTEMPT_STARTED) return task_begins(tasks, m);
    bool over = m->kind == MOMENT_ATTEMPT_DONE || m->kind == MOMENT_ATTEMPT_FAILED;
    struct trace_task *task = over || m->kind == MOMENT_STEP_REDISPATCHED ? task_of(tasks, m) : NULL;
    if (!task) return true;
    if (m->engine > task->engine) task->engine = m->engine;
    if (!over) return true;
    task->ended_ms = m->at_ms;
    int64_t began = m->at_ms - m->duration_ms; // before that it waited for a place
    if (began > task->started_ms) task->started_ms = began;
    task->fault = m->fault;
    return fault_keep(tasks->arena, &task->fault);
}

static void task_span(const struct run_view *view, const struct trace_task *task, struct arena *arena,
                      struct json *spans)
{
    char id[SPAN_ID_HEX + 1], parent[SPAN_ID_HEX + 1];
    size_t end = str_find(task->path, '[', task->step.len), slash = str_find(task->path, '/', task->step.len);
    const struct step_view *step = view_step(view, str_slice(task->path, 0, end < slash ? end : slash));
    trace_run_span(view->ids.run, parent);
    if (step && step->attempt_count > 0)
        trace_step_span(view->ids.run, step->id, step->attempts[0].logical, step->attempts[0].engine, parent);
    trace_step_span(view->ids.run, task->path, task->logical, task->engine, id);
    struct span span = span_begin(arena, view->ids.run, id, parent, task->path, KIND_INTERNAL);
    span_times(&span, task->started_ms, task->ended_ms);
    const char *result = result_of(&task->fault);
    ATTRIBUTES(arena, &span.attributes, {"cicd.pipeline.task.name", json_some(task->path)},
               {"cicd.pipeline.task.run.result", json_word(result)}, {"cairn.run.id", json_some(span.run)},
               {"cairn.task.name", json_some(task->task)}, {"cairn.loop.iteration", json_nonzero(task->iteration)},
               {"cairn.step.attempt", json_int(task->attempt)}, {"cairn.step.engine_attempt", json_int(task->engine)},
               {"error.type", json_some(task->fault.code)});
    span_end(&span, status_of(result), task->fault.message, spans);
}

bool trace_json(const struct run_view *view, const struct trace_tasks *tasks, struct arena *arena, struct json *out)
{
    struct json spans = json_array(), attributes = json_array(), list = json_array(), scopes = json_array();
    run_span(view, arena, &spans);
    for (size_t i = 0; i < view->step_count; i++) {
        const struct step_view *step = &view->steps[i];
        for (size_t k = 0; k < step->attempt_count; k++) attempt_span(view, step, k, arena, &spans);
        if (step->status == STEP_STATUS_SKIPPED) skipped_span(view, step, arena, &spans);
    }
    for (size_t i = 0; tasks && i < tasks->count; i++)
        if (tasks->items[i].ended_ms) task_span(view, &tasks->items[i], arena, &spans);
    ATTRIBUTES(arena, &attributes, {"service.name", json_word("cairn")},
               {"deployment.environment.name", json_some(view->ids.environment)},
               {"cairn.tenant.id", json_some(view->ids.tenant)}, {"cairn.project.id", json_some(view->ids.project)});
    json_append(arena, &scopes,
                JSON_OF(arena, {"scope", JSON_OF(arena, {"name", json_word("cairn.log")})}, {"spans", spans}));
    json_append(arena, &list,
                JSON_OF(arena, {"resource", JSON_OF(arena, {"attributes", attributes})}, {"scopeSpans", scopes}));
    *out = JSON_OF(arena, {"resourceSpans", list});
    return json_ok(out);
}
