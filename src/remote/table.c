// Tasks, their queues and leases, workers, and the completions that may come again. Everything here has the lock.
#include "remote/inside.h"

#include <stdlib.h>
#include <string.h>

enum { WORKER_MAX = 10000, WORKER_TENANT_MAX = 1000, WORKER_SILENT_MS = 600000, WORKER_GRACE_MS = 5000 };

// ---- index
static size_t slot_of(const struct index *index, uint64_t key)
{
    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & (index->size - 1);
}

static bool index_grow(struct index *index)
{
    size_t size = index->size ? index->size * 2 : 256;
    struct link **slots = calloc(size, sizeof(struct link *));
    if (!slots) return false;
    struct index grown = {.slots = slots, .size = size, .count = index->count};
    for (size_t i = 0; i < index->size; i++) {
        for (struct link *link = index->slots[i], *next; link; link = next) {
            next = link->next;
            struct link **at = &slots[slot_of(&grown, link->key)];
            link->next = *at;
            *at = link;
        }
    }
    free(index->slots);
    *index = grown;
    return true;
}

bool index_add(struct index *index, struct link *link, uint64_t key)
{
    if (index->count >= index->size && !index_grow(index)) return false;
    struct link **at = &index->slots[slot_of(index, key)];
    link->key = key;
    link->next = *at;
    *at = link;
    index->count++;
    return true;
}

void index_remove(struct index *index, struct link *link)
{
    struct link **at = &index->slots[slot_of(index, link->key)];
    while (*at != link) at = &(*at)->next;
    *at = link->next;
    index->count--;
}

struct link *index_first(const struct index *index, uint64_t key)
{
    return index->size ? index->slots[slot_of(index, key)] : NULL;
}

void index_release(struct index *index)
{
    free(index->slots);
    memset(index, 0, sizeof(*index));
}

uint64_t name_key(const struct digest *name)
{
    uint64_t key;
    memcpy(&key, name->b, sizeof(key));
    return key;
}

// ---- tasks
struct worker_task *task_find(const struct remote *r, struct str token)
{
    struct digest name = token_name(token);
    uint64_t key = name_key(&name);
    for (struct link *link = index_first(&r->names, key); link; link = link->next) {
        struct worker_task *task = CONTAINER_OF(link, struct worker_task, by_name);
        if (link->key == key && same_bytes(task->token, token)) return task;
    }
    return NULL;
}

enum remote_state token_state(struct remote *r, struct str token)
{
    r->counts.refused++;
    return token_genuine(&r->options.key, token) ? REMOTE_STALE : REMOTE_DENIED;
}

bool task_allowed(const struct worker_task *task, const struct remote_caller *caller)
{
    return (caller->tenant.len == 0 || str_eq(caller->tenant, task->tenant)) &&
           (caller->pool.len == 0 || str_eq(caller->pool, task->pool));
}

enum remote_state task_leased(struct remote *r, const struct remote_caller *caller, struct str token,
                              struct worker_task **out)
{
    struct worker_task *task = task_find(r, token);
    *out = NULL;
    if (!task) return token_state(r, token);
    if (task->queue || !task_allowed(task, caller)) return REMOTE_DENIED;
    *out = task;
    return REMOTE_OK;
}

static void set_due(struct remote *r, struct worker_task *task)
{
    heap_remove(&r->due, &task->due);
    int64_t due = task->lease_until < task->stop_at ? task->lease_until : task->stop_at;
    INVARIANT(heap_push(&r->due, &task->due, due)); // as losing a result: dying recovers it
    if (heap_peek(&r->due) == &task->due) pthread_cond_signal(&r->changed);
}

void task_renew(struct remote *r, struct worker_task *task)
{
    int64_t now = remote_now(r);
    task->lease_until = now + r->options.lease_ms;
    if (task->worker) task->worker->seen_ms = now;
    set_due(r, task);
}

void task_hurry(struct remote *r, struct worker_task *task)
{
    set_due(r, task);
}

// Tenants name pools and kinds, and each poll walks all queues: only those in which tasks wait are kept.
void queue_drop_empty(struct remote *r, struct queue_of *queue)
{
    struct queue_of **at = &r->queues;
    if (queue->count > 0) return;
    while (*at != queue) at = &(*at)->next;
    *at = queue->next;
    free(queue);
}

static void queue_remove_task(struct remote *r, struct worker_task *task)
{
    struct queue_of *queue = task->queue;
    struct worker_task **at = &queue->first;
    while (*at != task) at = &(*at)->next;
    *at = task->next;
    if (!*at) queue->last = at;
    task->queue = NULL;
    queue->count--;
    r->waiting--;
    queue_drop_empty(r, queue);
}

void task_lease(struct remote *r, struct worker_task *task, struct worker *worker)
{
    queue_remove_task(r, task);
    task->worker = worker;
    if (worker) worker->leases++;
    task->started_ms = remote_now(r);
    // A worker keeps the time itself and has a little more of it than the step, so that its own word comes first.
    task->stop_at = task->timeout_ms > 0 ? task->started_ms + task->timeout_ms + WORKER_GRACE_MS : INT64_MAX;
    task_renew(r, task);
}

void task_told(struct worker_task *task, bool told)
{
    bool known = !task->cancelled || task->told;
    if (task->worker && known != told) task->worker->untold += told ? UINT64_MAX : 1;
    task->cancelled = true;
    task->told = told;
}

void task_drop(struct worker_task *task)
{
    if (--task->references > 0) return;
    step_log_release(&task->log);
    free(task);
}

void task_end(struct remote *r, struct worker_task *task)
{
    if (task->queue) queue_remove_task(r, task);
    heap_remove(&r->due, &task->due);
    index_remove(&r->names, &task->by_name);
    index_remove(&r->tickets, &task->by_ticket);
    if (task->cancelled) task_told(task, true);
    if (task->worker) task->worker->leases--;
    task_drop(task);
}

// ---- queues
static void pool_heard_of(struct remote *r, struct str name)
{
    struct pool **at = &r->pools;
    size_t count = 0;
    for (; *at; at = &(*at)->next, count++)
        if (str_eq((*at)->name, name)) return;
    struct pool *pool = count < POOL_MAX ? calloc(1, sizeof(*pool) + name.len + 1) : NULL;
    if (!pool) return;
    if (name.len > 0) memcpy(pool->text, name.ptr, name.len);
    pool->name = (struct str){pool->text, name.len};
    *at = pool;
}

struct queue_of *queue_for(struct remote *r, struct str tenant, struct str pool, struct str kind)
{
    struct queue_of **at = &r->queues;
    for (; *at; at = &(*at)->next)
        if (str_eq((*at)->tenant, tenant) && str_eq((*at)->pool, pool) && str_eq((*at)->kind, kind)) return *at;
    struct queue_of *queue = calloc(1, sizeof(*queue) + tenant.len + pool.len + kind.len + 1);
    if (!queue) return NULL;
    char *text = queue->text;
    struct str from[] = {tenant, pool, kind}, *to[] = {&queue->tenant, &queue->pool, &queue->kind};
    for (size_t i = 0; i < ARRAY_COUNT(from); i++) {
        if (from[i].len > 0) memcpy(text, from[i].ptr, from[i].len);
        *to[i] = (struct str){text, from[i].len};
        text += from[i].len;
    }
    queue->last = &queue->first;
    pool_heard_of(r, pool);
    return *at = queue;
}

void queue_add_task(struct remote *r, struct queue_of *queue, struct worker_task *task)
{
    task->queue = queue;
    task->queued_ms = remote_now(r);
    task->next = NULL;
    *queue->last = task;
    queue->last = &task->next;
    queue->count++;
    r->waiting++;
    r->dirty = true;
}

// ---- what the engine gets
void remote_news(struct remote *r)
{
    r->news++;
    r->dirty = true;
    pthread_cond_signal(&r->changed);
}

void tell_engine(struct remote *r, struct tool_result *result)
{
    if (r->engine)
        engine_deliver(r->engine, result);
    else
        tool_result_free(result);
}

void tell_fault(struct remote *r, struct worker_task *task, const char *code, const char *category, bool retryable,
                const char *message)
{
    size_t size = strlen(message) + 1;
    char *copy = malloc(size);
    struct tool_result result = {.ticket = task->ticket, .memory = copy, .release = free};
    if (copy) memcpy(copy, message, size);
    result.fault = (struct fault){
        .code = str_from(code), .message = str_from(copy), .category = str_from(category), .retryable = retryable};
    if (task->started_ms > 0) result.duration_ms = remote_now(r) - task->started_ms;
    remote_news(r);
    task_end(r, task);
    tell_engine(r, &result);
}

void tell_lost(struct remote *r, struct worker_task *task)
{
    struct tool_result result = {.ticket = task->ticket, .lost = true};
    os_log(LOG_WARN, "worker lost worker=%.*s step=%.*s", STR_ARG(task->worker ? task->worker->name : STR("?")),
           STR_ARG(task->step));
    r->counts.expired++;
    if (r->options.metrics) metric_add(r->options.metrics, METRIC_LEASES_EXPIRED, &task->pool, 1);
    if (task->worker) task->worker->suspect = true;
    remote_news(r);
    task_end(r, task);
    tell_engine(r, &result);
}

// ---- workers
static void forget_silent(struct remote *r, int64_t now)
{
    for (struct worker **at = &r->workers; *at;) {
        struct worker *worker = *at;
        if (worker->leases > 0 || now - worker->seen_ms < WORKER_SILENT_MS) {
            at = &worker->next;
            continue;
        }
        *at = worker->next;
        r->worker_count--;
        free(worker);
    }
}

// A worker has the name that it says. One that says thousands takes the places of its own tenant, not those of others.
static bool make_room(struct remote *r, struct str tenant)
{
    struct worker **oldest = NULL;
    size_t count = 0;
    for (struct worker **at = &r->workers; *at; at = &(*at)->next) {
        if (!str_eq((*at)->tenant, tenant)) continue;
        count++;
        if ((*at)->leases == 0 && (!oldest || (*at)->seen_ms < (*oldest)->seen_ms)) oldest = at;
    }
    if (count < WORKER_TENANT_MAX || !oldest) return count < WORKER_TENANT_MAX && r->worker_count < WORKER_MAX;
    struct worker *gone = *oldest;
    *oldest = gone->next;
    r->worker_count--;
    free(gone);
    return true;
}

struct worker *worker_find(const struct remote *r, struct str tenant, struct str pool, struct str name)
{
    for (struct worker *worker = r->workers; worker; worker = worker->next)
        if (str_eq(worker->name, name) && str_eq(worker->tenant, tenant) && str_eq(worker->pool, pool)) return worker;
    return NULL;
}

struct worker *worker_seen(struct remote *r, struct str tenant, struct str pool, struct str name)
{
    int64_t now = remote_now(r);
    struct worker *known = worker_find(r, tenant, pool, name);
    if (known) {
        known->seen_ms = now;
        known->suspect = false;
        return known;
    }
    forget_silent(r, now);
    if (!make_room(r, tenant)) return NULL;
    struct worker *worker = calloc(1, sizeof(*worker) + tenant.len + pool.len + name.len + 1);
    if (!worker) return NULL;
    char *text = worker->text;
    struct str from[] = {name, tenant, pool}, *to[] = {&worker->name, &worker->tenant, &worker->pool};
    for (size_t i = 0; i < ARRAY_COUNT(from); i++) {
        if (from[i].len > 0) memcpy(text, from[i].ptr, from[i].len);
        *to[i] = (struct str){text, from[i].len};
        text += from[i].len;
    }
    worker->seen_ms = now;
    worker->next = r->workers;
    r->workers = worker;
    pool_heard_of(r, pool);
    r->worker_count++;
    return worker;
}

// ---- completions that may come again
struct done *done_find(const struct remote *r, const struct digest *name)
{
    uint64_t key = name_key(name);
    for (struct link *link = index_first(&r->done_index, key); link; link = link->next) {
        struct done *done = CONTAINER_OF(link, struct done, link);
        if (link->key == key && digest_eq(&done->name, name)) return done;
    }
    return NULL;
}

void done_remove(struct remote *r, struct done *done)
{
    index_remove(&r->done_index, &done->link);
    done->used = false;
}

void done_add(struct remote *r, const struct digest *name, const struct digest *result)
{
    struct done *done = &r->done[r->done_next];
    r->done_next = (r->done_next + 1) % DONE_MAX;
    if (done->used) done_remove(r, done);
    *done = (struct done){.name = *name, .result = *result, .used = true};
    if (!index_add(&r->done_index, &done->link, name_key(name))) done->used = false; // a repeat will be answered STALE
}
