// A map from strings to indexes, in an arena. Keys are borrowed, never copied. Iteration is the caller's array, so order
// never depends on hashes.
#ifndef CAIRN_BASE_MAP_H
#define CAIRN_BASE_MAP_H

#include "base/arena.h"

#define MAP_NONE UINT32_MAX

struct map_slot {
    struct str key;
    uint32_t value;
    uint32_t hash;
};

struct map {
    struct arena *arena;
    struct map_slot *slots; // capacity is a power of two
    size_t capacity;
    size_t count;
};

void map_init(struct map *map, struct arena *arena);
// False when memory ran out. An existing key keeps its value; *existing (may be NULL) then holds it, else MAP_NONE.
bool map_put(struct map *map, struct str key, uint32_t value, uint32_t *existing) MUST_CHECK;
uint32_t map_get(const struct map *map, struct str key); // MAP_NONE when absent

#endif
