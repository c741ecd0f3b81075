// Templates are rendered by the thread that decides, within a budget that is counted in steps. One turn renders
// so much: what is left of its inputs then waits for the next one, and there tenants take turns, those last who have just rendered.
// Steps are counted, not time: the same inputs make the same turns.
#include "engine/batch.h"

#include "base/map.h"

enum { HEAVY_STEPS = 10000 };

struct ranks {
    struct map tenants; // to a place in `next`
    uint32_t *next;     // the rank of the tenant's next input
    uint32_t count;
};

static uint32_t *next_rank(struct ranks *ranks, struct str tenant)
{
    uint32_t at = map_get(&ranks->tenants, tenant), existing;
    if (at != MAP_NONE) return &ranks->next[at];
    if (!map_put(&ranks->tenants, tenant, ranks->count, &existing)) return NULL;
    ranks->next[ranks->count] = 0;
    return &ranks->next[ranks->count++];
}

// The n-th input of each tenant before the next of any: the order within a tenant, and so within a run, stays.
static enum code take_turns(struct batch *batch, size_t stepped, struct error *err)
{
    struct arena *arena = &batch->engine->turn;
    struct queue *q = &batch->engine->queue;
    struct ranks ranks = {.next = ARENA_ARRAY(arena, stepped + q->count + 1, uint32_t)};
    uint32_t *rank = ARENA_ARRAY(arena, q->count + 1, uint32_t), *starts = ARENA_ARRAY(arena, q->count + 3, uint32_t);
    struct queued *sorted = ARENA_ARRAY(arena, q->count + 1, struct queued);
    if (!ranks.next || !rank || !starts || !sorted) return error_nomem(err);
    map_init(&ranks.tenants, arena);
    for (size_t i = 0; i < stepped; i++) {
        if (batch->decided[i].spent < HEAVY_STEPS) continue;
        uint32_t *next = next_rank(&ranks, batch->decided[i].queued.resident->ids.tenant);
        if (!next) return error_nomem(err);
        *next = 1;
    }
    for (size_t i = 0; i < q->count; i++) {
        uint32_t *next = next_rank(&ranks, q->items[(q->head + i) & (q->capacity - 1)].resident->ids.tenant);
        if (!next) return error_nomem(err);
        rank[i] = (*next)++;
        starts[rank[i] + 1]++;
    }
    for (size_t i = 1; i < q->count + 3; i++) starts[i] += starts[i - 1];
    for (size_t i = 0; i < q->count; i++) sorted[starts[rank[i]]++] = q->items[(q->head + i) & (q->capacity - 1)];
    for (size_t i = 0; i < q->count; i++) q->items[(q->head + i) & (q->capacity - 1)] = sorted[i];
    return OK;
}

enum code leave_rest(struct batch *batch, size_t from, struct error *err)
{
    struct queue *q = &batch->engine->queue;
    size_t left = batch->taken - from;
    INVARIANT(from >= 1 && from < batch->taken);
    if (!queue_reserve(batch->engine, left)) return error_nomem(err);
    for (size_t i = batch->taken; i > from; i--) {
        struct decided *decided = &batch->decided[i - 1];
        INVARIANT(batch->groups[decided->group].count > 0);
        batch->groups[decided->group].count--;
        if (is_recovery(&decided->queued)) decided->queued.resident->needs_recover = true;
        q->head = (q->head - 1) & (q->capacity - 1);
        q->items[q->head] = decided->queued;
        q->count++;
    }
    for (size_t i = batch->taken; i < batch->count; i++) batch->decided[i - left] = batch->decided[i];
    batch->count -= left;
    batch->taken = from;
    return take_turns(batch, from, err);
}
