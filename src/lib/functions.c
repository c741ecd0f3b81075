#include "lib/functions_inside.h"

#include <stdlib.h>
#include <string.h>

#define FOREVER_MS INT64_C(315360000000) // ten years

static struct functions *of(struct tools *tools)
{
    return CONTAINER_OF(tools, struct functions, base);
}

// ---- the tools

static char *put_text(char *at, struct str text, const char **out)
{
    if (text.len > 0) memcpy(at, text.ptr, text.len);
    at[text.len] = '\0';
    *out = at;
    return at + text.len + 1;
}

static struct host_call *task_new(const struct functions *f, const struct tool_request *request,
                                  const struct kind *kind)
{
    struct buf key SCOPED(buf_release) = buf_of(1024);
    buf_printf(&key, "%.*s:%.*s:%u", STR_ARG(request->run), STR_ARG(request->step), request->logical);
    size_t size = request->run.len + request->step.len + request->input.len + request->artifacts_dir.len + key.len +
                  request->log.len + 6;
    struct host_call *task = buf_ok(&key) && !f->closing ? calloc(1, sizeof(*task) + size) : NULL;
    if (task) {
        struct cairn_attempt *attempt = &task->attempt;
        *attempt = (struct cairn_attempt){.size = sizeof(*attempt),
                                          .kind = kind->name,
                                          .input_len = request->input.len,
                                          .logical = request->logical,
                                          .engine = request->engine,
                                          .timeout_ms = request->timeout_ms};
        task->kind = kind;
        task->ticket = request->ticket;
        char *at = put_text(task->text, request->run, &attempt->run);
        at = put_text(at, request->step, &attempt->step);
        at = put_text(at, request->input, &attempt->input);
        at = put_text(at, request->artifacts_dir, &attempt->artifacts_dir);
        at = put_text(at, buf_str(&key), &attempt->key);
        const char *log;
        put_text(at, request->log, &log);
        step_log_init(&task->log, str_from(log), request->log_max);
    }
    return task;
}

static const struct kind *find_kind(const struct functions *f, struct str name)
{
    for (const struct kind *kind = f->kinds; kind; kind = kind->next)
        if (str_is(name, kind->name)) return kind;
    return NULL;
}

static enum code start(struct tools *tools, const struct tool_request *request, struct error *err)
{
    struct functions *f = of(tools);
    LOCKED(&f->mutex);
    const struct kind *kind = find_kind(f, request->function);
    INVARIANT(kind); // engine_supports
    struct host_call *task = task_new(f, request, kind);
    enum code rc = OK;
    if (task && slot_take(f, task)) {
        task_enqueue(f, task);
        if (f->worker_count == 0) {
            task_unqueue(f, task);
            slot_leave(f, task);
            task_free(task);
            rc = error_set(err, E_LIMIT, "no thread can be made for functions");
        }
    } else {
        task_free(task);
        rc = error_nomem(err);
    }
    return rc;
}

static void cancel(struct tools *tools, uint64_t ticket, int64_t grace_ms)
{
    struct functions *f = of(tools);
    LOCKED(&f->mutex);
    struct host_call *task = NULL;
    for (uint32_t i = 0; !task && i < f->slot_count; i++)
        if (f->slots[i].task && f->slots[i].task->ticket == ticket) task = f->slots[i].task;
    if (task) {
        task->cancelled = true;
        if (task->waiting) task_unqueue(f, task);
        if (task->running && grace_ms > 0)
            task_timer(f, task, os_now().mono_ms + grace_ms);
        else
            task_expire(f, task);
    }
}

static void close_tools(struct tools *tools)
{
    functions_attach(of(tools), NULL);
}

static const struct tool_ops ops = {.start = start, .cancel = cancel, .close = close_tools};

// ---- for the owner

enum code functions_open(uint32_t workers, uint32_t eager, struct functions **out, struct error *err)
{
    struct functions *f = calloc(1, sizeof(*f));
    if (!f) return error_nomem(err);
    INVARIANT(pthread_mutex_init(&f->mutex, NULL) == 0);
    os_condition(&f->work);
    os_condition(&f->clock);
    os_condition(&f->idle);
    f->base.ops = &ops;
    f->references = 1;
    f->last = &f->first;
    f->free_slot = UINT32_MAX;
    f->worker_max = workers > 0 ? workers : 4;
    f->eager_max = eager > 0 && eager < f->worker_max ? eager : f->worker_max;
    heap_init(&f->timers);
    plugin_host(f, &f->host);
    *out = f;
    return OK;
}

void functions_connect(struct functions *f, tool_deliver to, tool_output output, void *context)
{
    LOCKED(&f->mutex);
    f->deliver = to;
    f->output = output;
    f->context = context;
}

static void to_engine(void *engine, struct tool_result *result)
{
    engine_deliver(engine, result);
}

static void line_to_engine(void *engine, uint64_t ticket, bool is_stderr, struct str line)
{
    engine_line(engine, ticket, is_stderr, line);
}

void functions_attach(struct functions *f, struct engine *engine)
{
    functions_connect(f, engine ? to_engine : NULL, engine ? line_to_engine : NULL, engine);
}

struct tools *functions_tools(struct functions *f)
{
    return &f->base;
}

const struct cairn_host *functions_host(const struct functions *f)
{
    return &f->host;
}

bool functions_know(void *context, struct str name)
{
    struct functions *f = context;
    LOCKED(&f->mutex);
    return find_kind(f, name) != NULL;
}

size_t functions_names(struct functions *f, struct str *names, size_t max)
{
    size_t count = 0;
    LOCKED(&f->mutex);
    for (const struct kind *kind = f->kinds; kind; kind = kind->next, count++)
        if (count < max) names[count] = str_from(kind->name);
    return count;
}

enum code functions_add(struct functions *f, const struct cairn_kind *given, struct error *err)
{
    struct str name = str_from(given->name);
    if (!host_kind_valid(name))
        return error_set(err, E_INVALID, "\"%.*s\" cannot be the name of a function",
                         (int)(name.len > 64 ? 64 : name.len), name.ptr);
    if (given->size < offsetof(struct cairn_kind, run) + sizeof(given->run) || !given->run)
        return error_set(err, E_INVALID, "the kind \"%s\" has no function", given->name);
    struct kind *kind = calloc(1, sizeof(*kind) + name.len + 1);
    if (!kind) return error_nomem(err);
    memcpy(&kind->given, given, given->size < sizeof(*given) ? given->size : sizeof(*given));
    memcpy(kind->name, name.ptr, name.len);
    pthread_mutex_lock(&f->mutex);
    if (!find_kind(f, name)) {
        kind->next = f->kinds;
        f->kinds = kind;
        pthread_mutex_unlock(&f->mutex);
        return OK;
    }
    pthread_mutex_unlock(&f->mutex);
    free(kind);
    return error_set(err, E_EXISTS, "the kind \"%s\" is registered already", given->name);
}

enum code functions_complete(struct functions *f, uint64_t token, const struct cairn_result *given, struct error *err)
{
    struct cairn_result result = {0};
    if (!given || given->size < offsetof(struct cairn_result, code)) return error_set(err, E_INVALID, "no result");
    memcpy(&result, given, given->size < sizeof(result) ? given->size : sizeof(result));
    pthread_mutex_lock(&f->mutex);
    struct host_call *task = slot_find(f, token);
    enum code rc = task ? task_finish(f, task, &result, err)
                        : error_set(err, E_CONFLICT,
                                    "the attempt is over: completed, timed out, cancelled, or of another process");
    pthread_mutex_unlock(&f->mutex);
    result_release(&result);
    return rc;
}

bool functions_cancelled(struct functions *f, uint64_t token)
{
    LOCKED(&f->mutex);
    const struct host_call *task = slot_find(f, token);
    return !task || task->cancelled || f->closing;
}

void functions_log(struct functions *f, uint64_t token, struct str line)
{
    LOCKED(&f->mutex);
    struct host_call *task = slot_find(f, token);
    if (task && f->output) {
        step_log_take(&task->log, false, line);
        step_log_take(&task->log, false, STR("\n"));
        if (str_utf8(line)) f->output(f->context, task->ticket, false, line);
    }
}

void functions_close(struct functions *f, int64_t timeout_ms)
{
    if (!f) return;
    int64_t until = os_now().mono_ms + (timeout_ms >= 0 && timeout_ms < FOREVER_MS ? timeout_ms : FOREVER_MS);
    LOCKED(&f->mutex);
    f->deliver = NULL;
    f->output = NULL;
    f->closing = true;
    for (uint32_t i = 0; i < f->slot_count; i++) {
        struct host_call *task = f->slots[i].task;
        if (!task) continue;
        heap_remove(&f->timers, &task->timer);
        slot_leave(f, task);
        task->over = true;
        if (!task->running && !task->waiting) task_free(task);
    }
    for (struct host_call *task = f->first; task;) {
        struct host_call *next = task->next;
        task_free(task);
        task = next;
    }
    f->first = NULL;
    f->last = &f->first;
    pthread_cond_broadcast(&f->work);
    pthread_cond_broadcast(&f->clock);
    while (f->running > 0 && os_wait_until(&f->idle, &f->mutex, until)) {
    }
}

void functions_free(struct functions *f, void (*freed)(void *owner), void *owner)
{
    if (!f) return;
    pthread_mutex_lock(&f->mutex);
    f->freed = freed;
    f->owner = owner;
    functions_drop(f);
}
