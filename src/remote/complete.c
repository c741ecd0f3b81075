// Results of workers: checked, handed to the engine, and answered when what they led to is durable.
#include "remote/inside.h"

#include <stdlib.h>

enum { CODE_MAX = 64, MESSAGE_MAX = 4096, DETAIL_MAX = 8192 };

// One call. Freed with its answer.
struct batch {
    struct remote *remote;
    remote_reply reply;
    void *context;
    atomic_size_t left; // elements that are not decided, and the call itself while it is being read
    size_t count;
    struct remote_answer answers[];
};

// A result on its way through the engine, with its texts.
struct handed {
    struct batch *batch;
    size_t index;
    struct digest name; // of its token
    bool stored;
    struct worker_task *task; // referenced until the result is delivered
    struct tool_result result;
    char text[];
};

static void batch_part(struct batch *batch)
{
    if (atomic_fetch_sub(&batch->left, 1) != 1) return;
    struct buf body = buf_of(1 << 20);
    int status = write_answer(&body, batch->answers, batch->count);
    if (!atomic_load(&batch->remote->mute)) batch->reply(batch->context, buf_ok(&body) ? status : 503, buf_str(&body));
    buf_release(&body);
    free(batch);
}

static void handed_stored(void *memory)
{
    struct handed *handed = memory;
    struct remote *r = handed->batch->remote;
    handed->stored = true;
    handed->batch->answers[handed->index].state = REMOTE_OK;
    pthread_mutex_lock(&r->mutex);
    struct done *done = done_find(r, &handed->name);
    if (done) done->stored = true;
    r->counts.completed++;
    pthread_mutex_unlock(&r->mutex);
}

// Not stored: the run belongs to another engine now, or this server is ending and the next one will ask again.
static void handed_release(void *memory)
{
    struct handed *handed = memory;
    struct remote *r = handed->batch->remote;
    if (!handed->stored) {
        pthread_mutex_lock(&r->mutex);
        struct done *done = done_find(r, &handed->name);
        if (done) done_remove(r, done);
        handed->batch->answers[handed->index].state = r->shut ? REMOTE_AGAIN : REMOTE_STALE;
        pthread_mutex_unlock(&r->mutex);
    }
    batch_part(handed->batch);
    free(handed);
}

// ---- reading
static struct str cut(struct str text, size_t max)
{
    if (text.len <= max) return text;
    text.len = max;
    while (text.len > 0 && !str_utf8(text)) text.len--; // never half a character
    return text;
}

static struct str category_of(struct str given)
{
    static const char *const known[] = {"infrastructure", "business", "validation", "timeout"};
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        if (str_is(given, known[i])) return given;
    return (struct str){"", 0};
}

static bool is_true(const struct json *value)
{
    return json_is(value, JSON_BOOL) && value->boolean;
}

// Texts borrow the call. False: no result.
static bool read_result(const struct json *item, bool must_fail, struct buf *value, struct tool_result *out)
{
    const struct json *error = json_key(item, "error"), *output = json_key(item, "output");
    const struct json *given = json_key(item, "value");
    out->duration_ms = json_integer(json_key(item, "durationMs"), 0);
    if (out->duration_ms < 0) out->duration_ms = 0;
    if (is_true(json_key(item, "lost"))) {
        out->lost = true;
        return true;
    }
    if (error) {
        struct str code = json_text(json_key(error, "code"));
        int64_t exit = json_integer(json_key(error, "exitCode"), INT64_MIN);
        out->fault = (struct fault){.code = code,
                                    .message = cut(json_text(json_key(error, "message")), MESSAGE_MAX),
                                    .category = category_of(json_text(json_key(error, "category"))),
                                    .detail = cut(json_text(json_key(error, "detail")), DETAIL_MAX),
                                    .retryable = is_true(json_key(error, "retryable")),
                                    .has_exit = exit >= INT32_MIN && exit <= INT32_MAX,
                                    .exit_code = exit >= INT32_MIN && exit <= INT32_MAX ? (int32_t)exit : 0};
        return code.len > 0 && code.len <= CODE_MAX;
    }
    if (must_fail || (output && (given || !json_is(output, JSON_STRING)))) return false;
    out->ok = true;
    out->truncated = is_true(json_key(item, "truncated"));
    out->output = json_text(output);
    if (output) return true;
    out->is_json = true;
    if (given) json_canon(value, given);
    out->output = given ? buf_str(value) : STR("null");
    return buf_ok(value);
}

static struct handed *handed_new(struct batch *batch, size_t index, struct worker_task *task,
                                 const struct tool_result *given)
{
    const struct fault *fault = &given->fault;
    size_t size =
        given->output.len + fault->code.len + fault->message.len + fault->category.len + fault->detail.len + 5;
    struct handed *handed = malloc(sizeof(*handed) + size);
    if (!handed) return NULL;
    *handed = (struct handed){.batch = batch, .index = index, .name = task->name, .task = task, .result = *given};
    struct tool_result *result = &handed->result;
    char *at = handed->text;
    result->output = text_put(&at, given->output);
    result->fault.code = text_put(&at, fault->code);
    result->fault.message = text_put(&at, fault->message);
    result->fault.category = text_put(&at, fault->category);
    result->fault.detail = text_put(&at, fault->detail);
    result->ticket = task->ticket;
    result->memory = handed;
    result->release = handed_release;
    result->stored = handed_stored;
    return handed;
}

static struct digest digest_of(const struct json *item)
{
    struct buf bytes = buf_of((size_t)256 << 20);
    json_canon(&bytes, item);
    struct digest digest = sha256(buf_str(&bytes));
    buf_release(&bytes);
    return digest;
}

// ---- with the lock
// A token that no task has: perhaps the same was said before, and the answer was lost on its way.
static enum remote_state repeated(struct remote *r, struct str token, const struct json *item)
{
    struct digest name = token_name(token), result = digest_of(item);
    const struct done *done = done_find(r, &name);
    if (!done || !token_genuine(&r->options.key, token) || !digest_eq(&done->result, &result))
        return token_state(r, token);
    return done->stored ? REMOTE_OK : REMOTE_AGAIN;
}

static enum remote_state take_result(struct remote *r, const struct worker_call *call, const struct json *item,
                                     struct batch *batch, size_t index, struct handed **out)
{
    struct str token = json_text(json_key(item, "token"));
    struct worker_task *task = task_find(r, token);
    if (r->shut) return REMOTE_AGAIN;
    if (!task) return repeated(r, token, item);
    struct remote_caller caller = {.tenant = call->tenant, .pool = call->pool};
    if (task->queue || !task_allowed(task, &caller)) return REMOTE_DENIED;
    if (json_integer(json_key(item, "epoch"), -1) != (int64_t)task->epoch) return REMOTE_STALE;
    struct tool_result result = {0};
    struct buf value = buf_of((size_t)64 << 20);
    bool read = read_result(item, call->kind == REMOTE_FAIL, &value, &result);
    struct handed *handed = read ? handed_new(batch, index, task, &result) : NULL;
    buf_release(&value);
    if (!handed) return read ? REMOTE_AGAIN : REMOTE_INVALID;
    struct digest digest = digest_of(item);
    done_add(r, &task->name, &digest);
    task->references++;
    task_end(r, task);
    *out = handed;
    return REMOTE_AGAIN; // until it is stored
}

// ---- without it
static void end_log(struct remote *r, const struct handed *handed)
{
    struct buf how;
    if (!handed->task->logged) return;
    const struct tool_result *result = &handed->result;
    buf_init(&how, 16384);
    if (result->lost)
        buf_text(&how, "given back");
    else if (result->ok)
        buf_text(&how, result->is_json ? "done" : "exit 0");
    else
        buf_printf(&how, "%.*s: %.*s", STR_ARG(result->fault.code), STR_ARG(result->fault.message));
    pthread_mutex_lock(&r->log_mutex);
    step_log_end(&handed->task->log, buf_str(&how));
    pthread_mutex_unlock(&r->log_mutex);
    buf_release(&how);
}

static void hand_over(struct remote *r, struct handed **all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (all[i]) end_log(r, all[i]);
    pthread_mutex_lock(&r->mutex);
    for (size_t i = 0; i < count; i++) {
        if (!all[i]) continue;
        task_drop(all[i]->task);
        if (!r->engine) continue;
        struct tool_result result = all[i]->result; // its memory is the engine's from here on
        engine_deliver(r->engine, &result);
        all[i] = NULL;
    }
    pthread_mutex_unlock(&r->mutex);
    for (size_t i = 0; i < count; i++)
        if (all[i]) handed_release(all[i]);
}

void serve_results(struct remote *r, const struct worker_call *call)
{
    const struct json *list = json_key(&call->body, "results");
    size_t count = json_is(list, JSON_ARRAY) ? list->count : 0;
    struct handed **all = ARENA_ARRAY(call->arena, count + 1, struct handed *);
    struct batch *batch = calloc(1, sizeof(*batch) + (count + 1) * sizeof(struct remote_answer));
    if (!all || !batch) {
        free(batch);
        call_refuse_nomem(call);
        return;
    }
    *batch = (struct batch){.remote = r, .reply = call->reply, .context = call->context, .count = count};
    atomic_init(&batch->left, 1);
    pthread_mutex_lock(&r->mutex);
    for (size_t i = 0; i < count; i++) {
        batch->answers[i].state = take_result(r, call, &list->items[i], batch, i, &all[i]);
        if (all[i]) atomic_fetch_add(&batch->left, 1);
    }
    pthread_mutex_unlock(&r->mutex);
    hand_over(r, all, count);
    batch_part(batch);
}
