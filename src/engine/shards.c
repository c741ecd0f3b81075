// An engine among others (S17, ADR 0021): shards that it gives up, and what happens when it was taken for dead.
#include "engine/inside.h"

static bool is_in(const struct resident *resident, uint64_t shards)
{
    uint32_t shard = run_log_shard(resident->log);
    INVARIANT(shard <= 64); // a bit each
    return shards == UINT64_MAX || (shard > 0 && (shards >> (shard - 1) & 1));
}

uint64_t engine_busy(const struct engine *engine)
{
    uint64_t busy = 0;
    for (size_t i = 0; i < engine->table_size; i++)
        for (const struct resident *r = engine->table[i]; r; r = r->next) {
            uint32_t shard = run_log_shard(r->log);
            bool flies = r->tickets > 0 && !engine->options.pools_apart;
            if (shard > 0 && (flies || r->outbox)) busy |= UINT64_C(1) << (shard - 1);
        }
    for (size_t i = 0; i < engine->queue.count; i++) {
        const struct queued *queued = &engine->queue.items[(engine->queue.head + i) & (engine->queue.capacity - 1)];
        uint32_t shard = run_log_shard(queued->resident->log);
        if (shard > 0) busy |= UINT64_C(1) << (shard - 1);
    }
    const struct aside *at = NULL;
    for (const struct queued *queued = aside_next(engine, &at); queued; queued = aside_next(engine, &at)) {
        uint32_t shard = queued->resident ? run_log_shard(queued->resident->log) : 0;
        if (shard > 0) busy |= UINT64_C(1) << (shard - 1);
    }
    return busy;
}

uint32_t engine_shard(const struct engine *engine, struct str tenant, struct str run)
{
    const struct resident *resident = resident_find(engine, tenant, run);
    return resident ? run_log_shard(resident->log) : 0;
}

static void leave(struct engine *engine, struct resident *resident)
{
    const struct engine_observer *observer = &engine->options.observer;
    if (!resident->gone && !resident->terminal && observer->left) observer->left(observer->context, resident->run);
    resident_gone(engine, resident);
}

void engine_let_go(struct engine *engine, uint64_t shards)
{
    for (size_t i = 0; i < engine->table_size; i++)
        for (struct resident *r = engine->table[i]; r; r = r->next)
            if (is_in(r, shards)) leave(engine, r);
    if (engine->gone) bury(engine);
}

enum code refuse_lost(struct engine *engine, const struct queued *queued, struct error *err)
{
    if (queued->input.kind != INPUT_START) return OK;
    struct error why = {0};
    (void)error_set(&why, E_LOCKED, "this engine was taken for dead before it could store the start");
    tell_refused(engine, queued, &why);
    return err && err->code == E_IO ? E_IO : OK;
}

enum code lose_all(struct engine *engine, struct error *err)
{
    os_log(LOG_WARN, "engine fenced runs=%zu why=\"%s\"", engine->resident_count, err->message);
    *err = (struct error){0};
    enum code rc = OK;
    for (size_t i = 0; !rc && i < engine->queue.count; i++)
        rc = refuse_lost(engine, &engine->queue.items[(engine->queue.head + i) & (engine->queue.capacity - 1)], err);
    engine_let_go(engine, UINT64_MAX);
    return rc;
}
