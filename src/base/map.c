// Open addressing with linear probing, at most three quarters full. A slot is empty when its hash
// is 0; hash_of never gives that.
#include "base/map.h"

enum { CAPACITY_MIN = 16 };

void map_init(struct map *map, struct arena *arena)
{
    *map = (struct map){.arena = arena};
}

static uint32_t hash_of(struct str key)
{
    return (uint32_t)(str_hash(key) >> 32) | 1;
}

// The slot that holds `key` or the empty one where it belongs.
static struct map_slot *find(const struct map *map, struct str key, uint32_t hash)
{
    INVARIANT(map->count < map->capacity);
    size_t mask = map->capacity - 1;
    // The lowest bit is always set, so it must not choose the slot.
    size_t i = (hash >> 1) & mask;
    while (map->slots[i].hash) {
        if (map->slots[i].hash == hash && str_eq(map->slots[i].key, key)) break;
        i = (i + 1) & mask;
    }
    return &map->slots[i];
}

static bool grow(struct map *map)
{
    size_t capacity = map->capacity ? map->capacity * 2 : CAPACITY_MIN;
    struct map bigger = {.arena = map->arena, .capacity = capacity};
    bigger.slots = ARENA_ARRAY(map->arena, capacity, struct map_slot);
    if (!bigger.slots) return false;
    for (size_t i = 0; i < map->capacity; i++) {
        const struct map_slot *slot = &map->slots[i];
        if (!slot->hash) continue;
        *find(&bigger, slot->key, slot->hash) = *slot;
        bigger.count++;
    }
    INVARIANT(bigger.count == map->count);
    *map = bigger;
    return true;
}

bool map_put(struct map *map, struct str key, uint32_t value, uint32_t *existing)
{
    INVARIANT(value != MAP_NONE);
    if (existing) *existing = MAP_NONE;
    uint32_t hash = hash_of(key);
    if (map->capacity) {
        const struct map_slot *slot = find(map, key, hash);
        if (slot->hash) {
            if (existing) *existing = slot->value;
            return true;
        }
    }
    if (map->count + 1 > map->capacity / 4 * 3 && !grow(map)) return false;
    *find(map, key, hash) = (struct map_slot){.key = key, .value = value, .hash = hash};
    map->count++;
    return true;
}

uint32_t map_get(const struct map *map, struct str key)
{
    if (!map->capacity) return MAP_NONE;
    const struct map_slot *slot = find(map, key, hash_of(key));
    return slot->hash ? slot->value : MAP_NONE;
}
