// What people may know about the workers.
#include "remote/inside.h"

#include "json/make.h"

struct remote_counts remote_counts(struct remote *r)
{
    LOCKED(&r->mutex);
    struct remote_counts counts = r->counts;
    counts.waiting = r->waiting;
    counts.leased = r->tickets.count - r->waiting;
    counts.workers = r->worker_count;
    return counts;
}

static void count_pool(const struct remote *r, int64_t now, struct remote_pool *out)
{
    for (const struct queue_of *queue = r->queues; queue; queue = queue->next) {
        if (!str_eq(queue->pool, out->name)) continue;
        out->waiting += queue->count;
        if (queue->first && now - queue->first->queued_ms > out->oldest_ms)
            out->oldest_ms = now - queue->first->queued_ms;
    }
    for (const struct worker *worker = r->workers; worker; worker = worker->next)
        out->workers += str_eq(worker->pool, out->name);
}

bool remote_pools(struct remote *r, struct arena *arena, struct remote_pool **out, size_t *count)
{
    bool ok = true;
    size_t found = 0;
    *count = 0;
    LOCKED(&r->mutex);
    int64_t now = remote_now(r);
    for (const struct pool *pool = r->pools; pool; pool = pool->next) found++;
    *out = ARENA_ARRAY(arena, found + 1, struct remote_pool);
    ok = *out != NULL;
    for (const struct pool *pool = r->pools; ok && pool; pool = pool->next) {
        struct remote_pool *one = &(*out)[*count];
        *one = (struct remote_pool){.name = arena_copy(arena, pool->name)};
        ok = one->name.ptr != NULL;
        if (ok) count_pool(r, now, one);
        *count += ok;
    }
    return ok;
}

static bool add_worker(const struct worker *worker, int64_t now, struct arena *arena, struct json *list)
{
    json_append(arena, list,
                JSON_OF(arena, {"worker", json_copied(arena, worker->name)},
                        {"tenant", json_copied_or_null(arena, worker->tenant)},
                        {"pool", json_copied(arena, worker->pool)}, {"leases", json_count(worker->leases)},
                        {"slots", json_int(worker->slots)}, {"silentMs", json_int(now - worker->seen_ms)},
                        {"draining", json_bool(worker->draining)}));
    return json_ok(list);
}

bool remote_workers(struct remote *r, struct str tenant, struct arena *arena, struct json *out)
{
    bool ok = true;
    *out = json_array();
    LOCKED(&r->mutex);
    int64_t now = remote_now(r);
    for (const struct worker *worker = r->workers; ok && worker; worker = worker->next)
        if (tenant.len == 0 || str_eq(tenant, worker->tenant)) ok = add_worker(worker, now, arena, out);
    return ok;
}

// ---- where attempts are

enum { WORKER_AWAY_MS = 60000 }; // a poll is held for 30 s at most: who is silent for longer takes nothing

struct pool_of_workers {
    size_t workers, slots;
};

// Those who would take a task of this tenant and pool.
static struct pool_of_workers workers_for(const struct remote *r, const struct worker_task *task, int64_t now)
{
    struct pool_of_workers found = {0};
    for (const struct worker *worker = r->workers; worker; worker = worker->next) {
        bool serves = (worker->tenant.len == 0 || str_eq(worker->tenant, task->tenant)) &&
                      (worker->pool.len == 0 || str_eq(worker->pool, task->pool));
        if (!serves || worker->draining || now - worker->seen_ms > WORKER_AWAY_MS) continue;
        found.workers++;
        found.slots += worker->slots > 0 ? (size_t)worker->slots : 1;
    }
    return found;
}

static void tell_place(const struct remote *r, const struct worker_task *task, struct pool_of_workers pool, size_t position,
                       tool_place_visit visit, void *context)
{
    struct tool_place place = {.among = r,
                               .tenant = task->tenant,
                               .run = task->run,
                               .step = task->step,
                               .pool = task->pool,
                               .worker = task->worker ? task->worker->name : (struct str){0},
                               .logical = task->logical,
                               .engine = task->engine,
                               .waits = position > 0,
                               .position = position,
                               .slots = pool.slots,
                               .workers = pool.workers,
                               .since_ms = position > 0 ? task->queued_ms : task->started_ms};
    visit(context, &place);
}

void remote_places(struct tools *tools, tool_place_visit visit, void *context)
{
    struct remote *r = CONTAINER_OF(tools, struct remote, base);
    LOCKED(&r->mutex);
    int64_t now = remote_now(r);
    for (const struct queue_of *queue = r->queues; queue; queue = queue->next) {
        struct pool_of_workers pool = queue->first ? workers_for(r, queue->first, now) : (struct pool_of_workers){0};
        size_t position = 0;
        for (const struct worker_task *task = queue->first; task; task = task->next)
            tell_place(r, task, pool, ++position, visit, context);
    }
    for (size_t i = 0; i < r->tickets.size; i++)
        for (struct link *link = r->tickets.slots[i]; link; link = link->next) {
            const struct worker_task *task = CONTAINER_OF(link, struct worker_task, by_ticket);
            if (!task->queue) tell_place(r, task, (struct pool_of_workers){0}, 0, visit, context);
        }
}
