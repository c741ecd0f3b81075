// The side of the engine: attempts come in, results go out. And the thread that answers polls and looks after leases.
#include "base/civil.h"
#include "remote/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDLE_MS = 3600000, STOP_GRACE_MS = 10000 };

static struct remote *of(struct tools *tools)
{
    return CONTAINER_OF(tools, struct remote, base);
}

int64_t remote_now(const struct remote *r)
{
    return r->options.now ? r->options.now(r->options.now_context) : os_now().mono_ms;
}

// ---- time
static void expire(struct remote *r, struct worker_task *task, int64_t now)
{
    char message[96], took[24];
    if (task->cancelled) {
        tell_fault(r, task, "CANCELLED", "", false, "cancelled; its worker did not answer");
    } else if (now >= task->stop_at) {
        duration_format(task->timeout_ms, took);
        snprintf(message, sizeof(message), FAULT_LATE, took);
        tell_fault(r, task, "TIMEOUT", "timeout", true, message);
    } else {
        tell_lost(r, task);
    }
}

static void look(struct remote *r)
{
    int64_t now = remote_now(r);
    for (struct heap_node *node = heap_peek(&r->due); node && node->due <= now; node = heap_peek(&r->due))
        expire(r, CONTAINER_OF(node, struct worker_task, due), now);
    r->dirty = false;
    serve_waiters(r);
}

static int64_t next_look(const struct remote *r)
{
    int64_t until = remote_now(r) + IDLE_MS;
    const struct heap_node *node = heap_peek(&r->due);
    if (node && node->due < until) until = node->due;
    for (const struct waiter *waiter = r->waiters; waiter; waiter = waiter->next)
        if (waiter->until < until) until = waiter->until;
    return until;
}

static void *watch(void *context)
{
    struct remote *r = context;
    pthread_setname_np(pthread_self(), "cairn-remote");
    pthread_mutex_lock(&r->mutex);
    while (!r->shut) {
        look(r);
        unlock_and_answer(r);
        pthread_mutex_lock(&r->mutex);
        if (r->dirty || r->shut) continue;
        os_wait_until(&r->changed, &r->mutex, next_look(r));
    }
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

void remote_tick(struct remote *r)
{
    pthread_mutex_lock(&r->mutex);
    look(r);
    unlock_and_answer(r);
}

// ---- tasks
struct str text_put(char **at, struct str text)
{
    char *to = *at;
    if (text.len > 0) memcpy(to, text.ptr, text.len);
    to[text.len] = '\0';
    *at = to + text.len + 1;
    return (struct str){to, text.len};
}

static struct worker_task *task_new(const struct tool_request *request, struct str token, struct str wire)
{
    struct str texts[] = {token,        wire,          request->tenant, request->pool,         request->kind,
                          request->run, request->step, request->log,    request->artifacts_dir};
    size_t size = request->artifact_count * sizeof(struct str) + 16;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) size += texts[i].len + 1;
    for (size_t i = 0; i < request->artifact_count; i++) size += request->artifacts[i].path.len + 1;
    struct worker_task *task = calloc(1, sizeof(*task) + size);
    if (!task) return NULL;
    task->references = 1;
    task->ticket = request->ticket;
    task->epoch = request->epoch;
    task->logical = request->logical;
    task->engine = request->engine;
    task->timeout_ms = request->timeout_ms;
    task->stop_at = INT64_MAX;
    char *at = task->text;
    if (request->artifact_count > 0) { // pointers first: they are aligned
        at += (16 - (uintptr_t)at % 16) % 16;
        task->artifacts = (struct str *)(void *)at;
        at += request->artifact_count * sizeof(struct str);
    }
    struct str *to[] = {&task->token, &task->wire, &task->tenant,   &task->pool,         &task->kind,
                        &task->run,   &task->step, &task->log_path, &task->artifacts_dir};
    for (size_t i = 0; i < ARRAY_COUNT(to); i++) *to[i] = text_put(&at, texts[i]);
    for (size_t i = 0; i < request->artifact_count; i++) task->artifacts[i] = text_put(&at, request->artifacts[i].path);
    task->artifact_count = request->artifact_count;
    step_log_init(&task->log, task->log_path, request->log_max);
    task->name = token_name(task->token);
    return task;
}

// Encoded here, on the engine thread, without the lock: once for each attempt, however many polls there are.
static struct worker_task *task_of(const struct remote *r, const struct tool_request *request)
{
    struct task_claim claim = {.tenant = request->tenant,
                               .run = request->run,
                               .step = request->step,
                               .logical = request->logical,
                               .engine = request->engine,
                               .epoch = request->epoch};
    struct worker_task *task = NULL;
    struct buf token SCOPED(buf_release) = buf_of(16384);
    struct buf wire SCOPED(buf_release) = buf_of((size_t)256 << 20);
    auth_task_seal(&r->options.key, &claim, &token);
    if (buf_ok(&token)) remote_task_write(&wire, request, buf_str(&token), r->options.lease_ms);
    if (buf_ok(&token) && buf_ok(&wire)) task = task_new(request, buf_str(&token), buf_str(&wire));
    return task;
}

static bool enter(struct remote *r, struct worker_task *task)
{
    struct queue_of *queue = queue_for(r, task->tenant, task->pool, task->kind);
    bool named = queue && index_add(&r->names, &task->by_name, name_key(&task->name));
    if (!named || !index_add(&r->tickets, &task->by_ticket, task->ticket)) {
        if (named) index_remove(&r->names, &task->by_name);
        if (queue) queue_drop_empty(r, queue);
        return false;
    }
    r->counts.started++;
    queue_add_task(r, queue, task);
    return true;
}

static enum code start(struct tools *tools, const struct tool_request *request, struct error *err)
{
    struct remote *r = of(tools);
    INVARIANT(request->pool.len > 0);
    struct worker_task *task = task_of(r, request);
    if (!task) return error_nomem(err);
    enum code rc = OK;
    pthread_mutex_lock(&r->mutex);
    if (r->shut)
        rc = error_set(err, E_CANCELLED, "closing");
    else if (!enter(r, task))
        rc = error_nomem(err);
    pthread_mutex_unlock(&r->mutex);
    if (rc) task_drop(task);
    return rc;
}

static struct worker_task *task_with(const struct remote *r, uint64_t ticket)
{
    for (struct link *link = index_first(&r->tickets, ticket); link; link = link->next)
        if (link->key == ticket) return CONTAINER_OF(link, struct worker_task, by_ticket);
    return NULL;
}

static void cancel_task(struct remote *r, struct worker_task *task, int64_t grace_ms)
{
    if (task->queue) {
        tell_fault(r, task, "CANCELLED", "", false, "cancelled before a worker took it");
        return;
    }
    task_told(task, task->told && task->grace_ms <= grace_ms); // in more of a hurry than before: sent again
    task->grace_ms = grace_ms;
    int64_t stop_at = remote_now(r) + grace_ms + STOP_GRACE_MS;
    if (stop_at < task->stop_at) task->stop_at = stop_at;
    task_hurry(r, task);
    remote_news(r);
}

static void cancel(struct tools *tools, uint64_t ticket, int64_t grace_ms)
{
    struct remote *r = of(tools);
    LOCKED(&r->mutex);
    struct worker_task *task = task_with(r, ticket);
    if (task) cancel_task(r, task, grace_ms);
}

// A worker that waits gets the tasks of a whole turn in one answer, from the thread that made them.
static void flush(struct tools *tools)
{
    struct remote *r = of(tools);
    pthread_mutex_lock(&r->mutex);
    bool wanted = r->dirty && r->waiters && !r->options.now;
    if (wanted) serve_waiters(r);
    if (wanted) r->dirty = false;
    unlock_and_answer(r);
}

static void close_tools(struct tools *tools)
{
    remote_shut(of(tools));
}

static const struct tool_ops ops = {.start = start, .cancel = cancel, .flush = flush, .places = remote_places,
                                    .close = close_tools};

// ---- for the owner
enum code remote_open(const struct remote_options *options, struct remote **out, struct error *err)
{
    struct remote *r = calloc(1, sizeof(*r));
    if (!r) return error_nomem(err);
    r->base.ops = &ops;
    r->options = *options;
    if (r->options.lease_ms <= 0) r->options.lease_ms = REMOTE_LEASE_MS;
    heap_init(&r->due);
    r->last_waiter = &r->waiters;
    r->last_answer = &r->answers;
    INVARIANT(pthread_mutex_init(&r->mutex, NULL) == 0 && pthread_mutex_init(&r->log_mutex, NULL) == 0);
    os_condition(&r->changed);
    r->done = calloc(DONE_MAX, sizeof(*r->done));
    enum code rc = doors_open(r, err);
    if (rc) {
        remote_free(r);
        return rc;
    }
    r->has_thread = r->done && !options->now && os_thread(&r->thread, NULL, watch, r) == 0;
    if (!r->done || (!options->now && !r->has_thread)) {
        remote_free(r);
        return error_set(err, E_NOMEM, "no memory or no thread for the tasks of workers");
    }
    *out = r;
    return OK;
}

struct tools *remote_tools(struct remote *remote)
{
    return &remote->base;
}

void remote_attach(struct remote *r, struct engine *engine)
{
    LOCKED(&r->mutex);
    r->engine = engine;
}

void remote_shut(struct remote *r)
{
    pthread_mutex_lock(&r->mutex);
    bool before = r->shut;
    r->shut = true;
    r->engine = NULL;
    pthread_cond_signal(&r->changed);
    serve_waiters(r);
    unlock_and_answer(r);
    if (before) return;
    if (r->has_thread) pthread_join(r->thread, NULL);
}

void remote_drain(struct remote *r)
{
    pthread_mutex_lock(&r->mutex);
    r->draining = true;
    serve_waiters(r);
    unlock_and_answer(r);
}

void remote_mute(struct remote *r)
{
    atomic_store(&r->mute, true);
}

void remote_free(struct remote *r)
{
    if (!r) return;
    remote_shut(r);
    arena_release(&r->door_memory);
    for (size_t i = 0; i < r->tickets.size; i++)
        while (r->tickets.slots[i]) task_end(r, CONTAINER_OF(r->tickets.slots[i], struct worker_task, by_ticket));
    while (r->pools) {
        struct pool *next = r->pools->next;
        free(r->pools);
        r->pools = next;
    }
    while (r->workers) {
        struct worker *next = r->workers->next;
        free(r->workers);
        r->workers = next;
    }
    index_release(&r->names);
    index_release(&r->tickets);
    index_release(&r->done_index);
    heap_release(&r->due);
    free(r->done);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->log_mutex);
    pthread_mutex_destroy(&r->mutex);
    free(r);
}
