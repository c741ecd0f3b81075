// Who drives runs and who executes attempts, for people: the engines as the store (S17) last named them, and the hosts.
#include "service/inside.h"

#include "temporal/host.h"

// One that holds no shard is counted, and is in no list: the store tells who owns what.
static bool add_engine(struct arena *arena, struct json *items, uint64_t number, const struct shard_map *map, uint64_t duty)
{
    int64_t shards = 0;
    for (size_t i = 0; i < SHARD_COUNT; i++) shards += map->owner[i] == number && !(map->free >> i & 1);
    struct json engine = JSON_OF(arena, {"number", json_int((int64_t)number)}, {"self", json_bool(number == map->self)},
                                 {"shards", json_int(shards)}, {"duty", json_bool(number == duty)});
    json_append(arena, items, engine);
    return json_ok(items);
}

static bool is_listed(const struct shard_map *map, size_t before, uint64_t number)
{
    if (number == map->self) return true;
    for (size_t i = 0; i < before; i++)
        if (map->owner[i] == number && !(map->free >> i & 1)) return true;
    return false;
}

static struct json engines_json(struct service *service, struct arena *arena)
{
    struct shard_map map = members_map(&service->members);
    struct json items = json_array();
    uint64_t duty = map.free & 1 ? 0 : map.owner[0];
    if (!service->members.several) {
        json_append(arena, &items, JSON_OF(arena, {"self", json_bool(true)}, {"duty", json_bool(true)}));
        return items;
    }
    if (!add_engine(arena, &items, map.self, &map, duty)) return json_failed();
    for (size_t i = 0; i < SHARD_COUNT; i++)
        if (!(map.free >> i & 1) && map.owner[i] && !is_listed(&map, i, map.owner[i]) &&
            !add_engine(arena, &items, map.owner[i], &map, duty))
            return json_failed();
    return items;
}

static struct json pools_json(struct service *service, struct arena *arena)
{
    struct remote_pool *pools;
    size_t count;
    struct json items = json_array();
    if (!remote_pools(service->remote, arena, &pools, &count)) return json_failed();
    for (size_t i = 0; i < count; i++)
        json_append(arena, &items,
                    JSON_OF(arena, {"name", json_copied(arena, pools[i].name)}, {"waiting", json_count(pools[i].waiting)},
                            {"workers", json_count(pools[i].workers)}, {"oldestMs", json_int(pools[i].oldest_ms)}));
    return items;
}

static struct json hosts_json(struct service *service, struct arena *arena)
{
    struct json hosts = json_array();
    const struct temporal_settings *temporal = service->host ? temporal_host_settings(service->host) : NULL;
    struct remote_counts counts = remote_counts(service->remote);
    if (temporal) {
        json_append(arena, &hosts,
                    JSON_OF(arena, {"kind", json_word("temporal")}, {"address", json_copied(arena, temporal->address)},
                            {"namespace", json_copied(arena, temporal->namespace)},
                            {"queue", json_copied(arena, temporal->queue)}));
        return hosts; // nothing is executed elsewhere
    }
    json_append(arena, &hosts, JSON_OF(arena, {"kind", json_word("server")}));
    json_append(arena, &hosts,
                JSON_OF(arena, {"kind", json_word("workers")}, {"workers", json_count(counts.workers)},
                        {"waiting", json_count(counts.waiting)}, {"leased", json_count(counts.leased)},
                        {"pools", pools_json(service, arena)}));
    return hosts;
}

bool service_engines(struct service *service, struct arena *arena, struct json *out)
{
    struct service_health health = service_health(service);
    struct service_projection projection = service_projection(service);
    uint32_t count = __atomic_load_n(&service->members.count, __ATOMIC_RELAXED);
    *out = JSON_OF(arena, {"items", engines_json(service, arena)}, {"nextCursor", json_null()},
                   {"count", json_int(service->members.several ? count : 1)},
                   {"several", json_bool(service->members.several)}, {"startedAt", json_time(arena, service->started_ms)},
                   {"ready", json_bool(health.turns && health.writes && !health.stopping)},
                   {"turnedMs", json_int(health.turned_ms)}, {"storedMs", json_int(health.stored_ms)},
                   {"callsWaiting", json_count(health.waiting)}, {"projectorLagMs", json_int(projection.lag_ms)},
                   {"hosts", hosts_json(service, arena)});
    return json_ok(out);
}
