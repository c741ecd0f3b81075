// Several engines (S17): what is the same for every store that can have them.
#include "store/backend.h"

enum code shard_fenced(struct store *store, struct error *err)
{
    __atomic_store_n(&store->fenced, true, __ATOMIC_RELAXED);
    return error_set(err, E_CONFLICT, "engine %llu was taken for dead, and its runs go on elsewhere",
                     (unsigned long long)store->member);
}

static enum code several(const struct store *store, struct error *err)
{
    if (store->options.mode != STORE_WRITE) return error_set(err, E_DENIED, "the store is open for reading only");
    return OK;
}

enum code store_shards(struct store *store, int64_t lease_ms, int64_t now_ms, struct shard_map *out, struct error *err)
{
    *out = (struct shard_map){0};
    enum code rc = several(store, err);
    if (rc) return rc;
    if (store->fenced) { // the old number is gone for good
        __atomic_store_n(&store->fenced, false, __ATOMIC_RELAXED);
        store->member = store->place = 0;
    }
    rc = store->ops->log.shards(store, lease_ms, now_ms, out, err);
    if (!rc) store->member = out->self;
    return rc;
}

enum code store_shards_move(struct store *store, uint64_t take, uint64_t give, int64_t now_ms, struct shard_map *out,
                            struct error *err)
{
    *out = (struct shard_map){0};
    enum code rc = several(store, err);
    if (rc) return rc;
    if (store->fenced) return shard_fenced(store, err);
    INVARIANT(store->member);
    store->place &= ~give;
    return store->ops->log.move(store, take, give, now_ms, out, err);
}

void store_place(struct store *store, uint64_t shards)
{
    store->place = shards;
}

bool store_away(struct store *store)
{
    return store->ops->log.away(store);
}

bool store_fenced(const struct store *store)
{
    return __atomic_load_n(&store->fenced, __ATOMIC_RELAXED);
}

// Some `count` of the bits, beginning at a place of our own, so that two engines that look at once mostly want different ones.
static uint64_t some_of(uint64_t bits, uint32_t count, uint64_t random)
{
    uint64_t some = 0;
    for (uint32_t i = 0; i < SHARD_COUNT && count > 0; i++) {
        uint64_t bit = UINT64_C(1) << ((random + i) % SHARD_COUNT);
        if (!(bits & bit)) continue;
        some |= bit;
        count--;
    }
    return some;
}

struct shard_plan shard_plan(const struct shard_map *map, uint64_t random)
{
    uint32_t members = map->members ? map->members : 1;
    uint32_t share = (SHARD_COUNT + members - 1) / members;
    uint32_t have = (uint32_t)__builtin_popcountll(map->mine);
    struct shard_plan plan = {0};
    if (have < share) plan.take = some_of(map->free, share - have, random);
    if (have > share) plan = (struct shard_plan){.surplus = map->mine, .surplus_count = have - share};
    return plan;
}
