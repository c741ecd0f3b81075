// What people may know about the workers.
#include "remote/inside.h"

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

static bool add_worker(const struct worker *worker, int64_t now, struct arena *arena, struct json *list)
{
    struct json row;
    struct str name = arena_copy(arena, worker->name), tenant = arena_copy(arena, worker->tenant);
    struct str pool = arena_copy(arena, worker->pool);
    return name.ptr && tenant.ptr && pool.ptr && json_object_with(arena, 7, &row) &&
           json_put(arena, &row, STR("worker"), json_string(name)) &&
           json_put(arena, &row, STR("tenant"), tenant.len > 0 ? json_string(tenant) : json_null()) &&
           json_put(arena, &row, STR("pool"), json_string(pool)) &&
           json_put(arena, &row, STR("leases"), json_int((int64_t)worker->leases)) &&
           json_put(arena, &row, STR("slots"), json_int(worker->slots)) &&
           json_put(arena, &row, STR("silentMs"), json_int(now - worker->seen_ms)) &&
           json_put(arena, &row, STR("draining"), json_bool(worker->draining)) && json_push(arena, list, row);
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
