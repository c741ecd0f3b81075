#include "view/trace.h"

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

// ---- a span under construction; after the first failure nothing more happens and `ok` is false

struct span {
    struct arena *arena;
    struct str run; // of the trace
    struct json object, attributes, links;
    bool ok;
};

static struct json kept(struct span *span, struct str text)
{
    struct str copy = arena_copy(span->arena, text);
    span->ok = span->ok && copy.ptr;
    return json_string(copy);
}

static void put(struct span *span, struct json *object, const char *key, struct json value)
{
    span->ok = span->ok && json_put(span->arena, object, str_from(key), value);
}

static void push(struct span *span, struct json *array, struct json value)
{
    span->ok = span->ok && json_push(span->arena, array, value);
}

static void put_number(struct span *span, struct json *object, const char *key, uint64_t number)
{
    char text[21]; // 64-bit integers are strings in the JSON form of protocol buffers
    put(span, object, key, kept(span, decimal(number, text)));
}

static void add_value(struct span *span, struct json *attributes, const char *key, const char *type, struct json value)
{
    struct json pair = json_object(), typed = json_object();
    put(span, &typed, type, value);
    put(span, &pair, "key", json_string(str_from(key)));
    put(span, &pair, "value", typed);
    push(span, attributes, pair);
}

static void add_text(struct span *span, struct json *attributes, const char *key, struct str text)
{
    if (text.len > 0) add_value(span, attributes, key, "stringValue", json_string(text));
}

static void add_number(struct span *span, const char *key, uint64_t number)
{
    char text[21];
    add_value(span, &span->attributes, key, "intValue", kept(span, decimal(number, text)));
}

static void add_true(struct span *span, const char *key)
{
    add_value(span, &span->attributes, key, "boolValue", json_bool(true));
}

static void add_link(struct span *span, struct str run, const char *span_id, const char *kind, struct str step)
{
    char trace[TRACE_ID_HEX + 1];
    struct json link = json_object(), attributes = json_array();
    trace_id(run, trace);
    add_text(span, &attributes, "cairn.link", str_from(kind));
    add_text(span, &attributes, "cairn.run.id", run);
    add_text(span, &attributes, "cairn.step.id", step);
    put(span, &link, "traceId", kept(span, str_from(trace)));
    put(span, &link, "spanId", kept(span, str_from(span_id)));
    put(span, &link, "attributes", attributes);
    push(span, &span->links, link);
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
    struct span span = {.arena = arena,
                        .run = run,
                        .object = json_object(),
                        .attributes = json_array(),
                        .links = json_array(),
                        .ok = true};
    trace_id(run, trace);
    put(&span, &span.object, "traceId", kept(&span, str_from(trace)));
    put(&span, &span.object, "spanId", kept(&span, str_from(id)));
    if (parent) put(&span, &span.object, "parentSpanId", kept(&span, str_from(parent)));
    put(&span, &span.object, "name", json_string(name));
    put(&span, &span.object, "kind", json_int(kind));
    return span;
}

static void span_times(struct span *span, int64_t start_ms, int64_t end_ms)
{
    if (start_ms <= 0 || start_ms > end_ms) start_ms = end_ms; // a clock that was set back, or a result without a start
    put_number(span, &span->object, "startTimeUnixNano", (uint64_t)start_ms * 1000000);
    put_number(span, &span->object, "endTimeUnixNano", (uint64_t)end_ms * 1000000);
}

static bool span_end(struct span *span, int status, struct str message, struct json *spans)
{
    struct json outcome = json_object();
    if (status != STATUS_UNSET) put(span, &outcome, "code", json_int(status));
    if (status == STATUS_ERROR && message.len > 0) put(span, &outcome, "message", json_string(message));
    put(span, &span->object, "attributes", span->attributes);
    if (span->links.count > 0) put(span, &span->object, "links", span->links);
    put(span, &span->object, "status", outcome);
    push(span, spans, span->object);
    return span->ok;
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

static bool run_span(const struct run_view *view, struct arena *arena, struct json *spans)
{
    char id[SPAN_ID_HEX + 1];
    const struct start_facts *start = &view->start;
    if (!run_status_terminal(view->status)) return true;
    struct str parts[] = {STR("RUN "), view->ids.plan_id};
    char *name = arena_alloc(arena, parts[0].len + parts[1].len + 1);
    if (!name) return false;
    memcpy(name, parts[0].ptr, parts[0].len);
    if (parts[1].len > 0) memcpy(name + parts[0].len, parts[1].ptr, parts[1].len);
    trace_run_span(view->ids.run, id);
    struct span span = span_begin(arena, view->ids.run, id, NULL, str_from(name), KIND_SERVER);
    span_times(&span, view->started_ms ? view->started_ms : view->queued_ms, view->ended_ms);
    bool cancelled = view->status == RUN_STATUS_CANCELLED;
    const char *result = cancelled ? "cancellation" : result_of(&view->fault);
    if (view->status == RUN_STATUS_FAILED && view->fault.code.len == 0) result = "failure";
    add_text(&span, &span.attributes, "cicd.pipeline.action.name", STR("RUN"));
    add_text(&span, &span.attributes, "cicd.pipeline.name", view->ids.plan_id);
    add_text(&span, &span.attributes, "cicd.pipeline.run.id", view->ids.run);
    add_text(&span, &span.attributes, "cicd.pipeline.result", str_from(result));
    add_text(&span, &span.attributes, "error.type", view->fault.code);
    add_text(&span, &span.attributes, "cairn.plan.version", view->ids.plan_version);
    add_text(&span, &span.attributes, "cairn.document.sha256", start->document_sha256);
    add_text(&span, &span.attributes, "cairn.run.status", str_from(run_status_name(view->status)));
    add_text(&span, &span.attributes, "cairn.run.failed_step", view->failed_step);
    add_text(&span, &span.attributes, "cairn.run.cancel_reason", view->cancel_reason);
    add_number(&span, "cairn.run.events", view->last_seq);
    add_run_links(&span, start);
    return span_end(&span, status_of(result), view->fault.message, spans);
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
    add_text(span, &span->attributes, "cicd.pipeline.task.name", step->id);
    add_text(span, &span->attributes, "cicd.pipeline.task.run.result", str_from(result));
    add_text(span, &span->attributes, "cairn.run.id", span->run);
    add_text(span, &span->attributes, "cairn.loop.id", loop);
    if (loop.len > 0) add_number(span, "cairn.loop.iteration", round);
}

static void add_task_id(struct span *span, const struct step_view *step, const struct attempt_view *attempt)
{
    char logical[21], engine[21];
    struct buf text;
    buf_init(&text, 4096);
    buf_add(&text, span->run);
    buf_byte(&text, '/');
    buf_add(&text, step->id);
    buf_byte(&text, '#');
    buf_add(&text, decimal(attempt->logical, logical));
    if (attempt->engine > 1) {
        buf_byte(&text, '.');
        buf_add(&text, decimal(attempt->engine, engine));
    }
    add_value(span, &span->attributes, "cicd.pipeline.task.run.id", "stringValue", kept(span, buf_str(&text)));
    buf_release(&text);
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

static bool attempt_span(const struct run_view *view, const struct step_view *step, size_t index, struct arena *arena,
                         struct json *spans)
{
    const struct attempt_view *attempt = &step->attempts[index];
    char id[SPAN_ID_HEX + 1], parent[SPAN_ID_HEX + 1];
    bool lost, last = index + 1 == step->attempt_count;
    int64_t ended = end_of(view, step, index, &lost);
    if (ended <= 0) return true;
    trace_step_span(view->ids.run, step->id, attempt->logical, attempt->engine, id);
    parent_of(view, step->id, attempt->started_ms ? attempt->started_ms : ended, parent);
    struct span span = span_begin(arena, view->ids.run, id, parent, step->id, KIND_INTERNAL);
    span_times(&span, attempt->started_ms, ended);
    const char *result = !lost ? result_of(&attempt->fault) : last ? "cancellation" : "error";
    add_step(&span, step, result);
    add_task_id(&span, step, attempt);
    add_text(&span, &span.attributes, "error.type", attempt->fault.code);
    add_number(&span, "cairn.step.attempt", attempt->logical);
    add_number(&span, "cairn.step.engine_attempt", attempt->engine);
    if (attempt->fault.has_exit && attempt->fault.exit_code >= 0)
        add_number(&span, "process.exit.code", (uint64_t)attempt->fault.exit_code);
    if (lost) add_true(&span, "cairn.attempt.lost"); // nobody saw how it ended
    link_before(&span, step, index);
    if (last) add_run_link(&span, step->child_run, "child", STR(""));
    if (last) add_run_link(&span, step->reused_from, "reused", step->id);
    return span_end(&span, status_of(result), attempt->fault.message, spans);
}

static bool skipped_span(const struct run_view *view, const struct step_view *step, struct arena *arena,
                         struct json *spans)
{
    char id[SPAN_ID_HEX + 1], parent[SPAN_ID_HEX + 1];
    trace_step_span(view->ids.run, step->id, 0, 0, id);
    parent_of(view, step->id, step->ended_ms, parent);
    struct span span = span_begin(arena, view->ids.run, id, parent, step->id, KIND_INTERNAL);
    span_times(&span, step->ended_ms, step->ended_ms);
    add_step(&span, step, "skip");
    add_text(&span, &span.attributes, "cairn.skip.reason", step->skip_reason);
    add_text(&span, &span.attributes, "cairn.skip.detail", step->skip_detail);
    return span_end(&span, STATUS_UNSET, STR(""), spans);
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
    struct trace_task *grown =
        arena_grow(tasks->arena, tasks->items, tasks->count, tasks->count + 1, sizeof(*grown), &tasks->capacity);
    if (!grown) return false;
    tasks->items = grown;
    char text[21];
    struct buf path;
    buf_init(&path, 8192);
    buf_add(&path, m->step);
    if (m->visit > 1) {
        buf_text(&path, ":run:");
        buf_add(&path, decimal(m->visit, text));
    }
    if (m->iteration > 0) {
        buf_byte(&path, '[');
        buf_add(&path, decimal(m->iteration, text));
        buf_byte(&path, ']');
    }
    buf_byte(&path, '/');
    buf_add(&path, m->task);
    if (m->task_run > 1) {
        buf_text(&path, ":run:");
        buf_add(&path, decimal(m->task_run, text));
    }
    struct str kept = buf_ok(&path) ? arena_copy(tasks->arena, buf_str(&path)) : (struct str){0};
    struct str task = arena_copy(tasks->arena, m->task);
    buf_release(&path);
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
    task->fault = m->fault;
    struct str *texts[] = {&task->fault.code, &task->fault.message, &task->fault.category, &task->fault.detail};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        if (texts[i]->len == 0) continue;
        *texts[i] = arena_copy(tasks->arena, *texts[i]);
        if (!texts[i]->ptr) return false;
    }
    return true;
}

static bool task_span(const struct run_view *view, const struct trace_task *task, struct arena *arena,
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
    add_text(&span, &span.attributes, "cicd.pipeline.task.name", task->path);
    add_text(&span, &span.attributes, "cicd.pipeline.task.run.result", str_from(result));
    add_text(&span, &span.attributes, "cairn.run.id", span.run);
    add_text(&span, &span.attributes, "cairn.task.name", task->task);
    if (task->iteration > 0) add_number(&span, "cairn.loop.iteration", task->iteration);
    add_number(&span, "cairn.step.attempt", task->attempt);
    add_number(&span, "cairn.step.engine_attempt", task->engine);
    add_text(&span, &span.attributes, "error.type", task->fault.code);
    return span_end(&span, status_of(result), task->fault.message, spans);
}

static bool all_spans(const struct run_view *view, struct arena *arena, struct json *spans)
{
    bool ok = run_span(view, arena, spans);
    for (size_t i = 0; ok && i < view->step_count; i++) {
        const struct step_view *step = &view->steps[i];
        for (size_t k = 0; ok && k < step->attempt_count; k++) ok = attempt_span(view, step, k, arena, spans);
        if (ok && step->status == STEP_STATUS_SKIPPED) ok = skipped_span(view, step, arena, spans);
    }
    return ok;
}

bool trace_json(const struct run_view *view, const struct trace_tasks *tasks, struct arena *arena, struct json *out)
{
    struct json spans = json_array(), scope = json_object(), scoped = json_object(), resource = json_object();
    struct json attributes = json_array(), whole = json_object(), list = json_array(), scopes = json_array();
    struct span top = {.arena = arena, .run = view->ids.run, .ok = true};
    if (!all_spans(view, arena, &spans)) return false;
    for (size_t i = 0; tasks && i < tasks->count; i++)
        if (tasks->items[i].ended_ms && !task_span(view, &tasks->items[i], arena, &spans)) return false;
    add_text(&top, &attributes, "service.name", STR("cairn"));
    add_text(&top, &attributes, "deployment.environment.name", view->ids.environment);
    add_text(&top, &attributes, "cairn.tenant.id", view->ids.tenant);
    add_text(&top, &attributes, "cairn.project.id", view->ids.project);
    put(&top, &resource, "attributes", attributes);
    put(&top, &scope, "name", json_string(STR("cairn.log")));
    put(&top, &scoped, "scope", scope);
    put(&top, &scoped, "spans", spans);
    push(&top, &scopes, scoped);
    put(&top, &whole, "resource", resource);
    put(&top, &whole, "scopeSpans", scopes);
    push(&top, &list, whole);
    *out = json_object();
    put(&top, out, "resourceSpans", list);
    return top.ok;
}
