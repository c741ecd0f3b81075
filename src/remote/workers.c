// What people may know about the workers.
#include "remote/inside.h"

#include "json/make.h"

struct remote_counts remote_counts(struct remote *r)
{
    pthread_mutex_lock(&r->mutex);
    struct remote_counts counts = r->counts;
    counts.waiting = r->waiting;
    counts.leased = r->tickets.count - r->waiting;
    counts.workers = r->worker_count;
    pthread_mutex_unlock(&r->mutex);
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
    pthread_mutex_lock(&r->mutex);
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
    pthread_mutex_unlock(&r->mutex);
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
    pthread_mutex_lock(&r->mutex);
    int64_t now = remote_now(r);
    for (const struct worker *worker = r->workers; ok && worker; worker = worker->next)
        if (tenant.len == 0 || str_eq(tenant, worker->tenant)) ok = add_worker(worker, now, arena, out);
    pthread_mutex_unlock(&r->mutex);
    return ok;
}
