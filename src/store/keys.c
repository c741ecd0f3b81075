// Linear probing, at most three quarters full. A slot is 32 bits of the key and the number; those 32 bits are also its
// place, so growing needs no keys. Removal shifts back what follows, so there are no tombstones.
#include "store/backend.h"

#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 8 };

static uint32_t word_at(const struct digest *key, size_t at)
{
    uint32_t word;
    memcpy(&word, key->b + at, sizeof(word));
    return word;
}

static uint32_t fingerprint(const struct digest *key)
{
    return word_at(key, 0) ^ word_at(key, 4) * 0x9e3779b1u;
}

static uint64_t slot_of(const struct digest *key, uint32_t number)
{
    return (uint64_t)fingerprint(key) << 32 | number;
}

static uint32_t home_of(const struct key_set *set, uint64_t slot)
{
    return (uint32_t)(slot >> 32) & (set->capacity - 1);
}

static void put(struct key_set *set, uint64_t slot)
{
    uint32_t at = home_of(set, slot);
    while (set->slots[at]) at = (at + 1) & (set->capacity - 1);
    set->slots[at] = slot;
}

bool key_set_reserve(struct key_set *set, uint32_t more)
{
    uint64_t need = (uint64_t)set->count + more;
    if (need * 4 <= (uint64_t)set->capacity * 3) return true;
    uint64_t capacity = set->capacity ? set->capacity : CAPACITY_MIN;
    while (need * 4 > capacity * 3) capacity *= 2;
    if (capacity > UINT32_MAX / 2) return false;
    INVARIANT((capacity & (capacity - 1)) == 0);
    struct key_set grown = {.capacity = (uint32_t)capacity, .count = set->count};
    grown.slots = calloc(grown.capacity, sizeof(*grown.slots));
    if (!grown.slots) return false;
    for (uint32_t i = 0; i < set->capacity; i++)
        if (set->slots[i]) put(&grown, set->slots[i]);
    free(set->slots);
    *set = grown;
    return true;
}

void key_set_add(struct key_set *set, const struct digest *key, uint32_t number)
{
    INVARIANT(number != 0);
    INVARIANT(set->count < set->capacity);
    put(set, slot_of(key, number));
    set->count++;
}

void key_set_remove(struct key_set *set, const struct digest *key, uint32_t number)
{
    INVARIANT(number != 0);
    INVARIANT(set->count > 0);
    uint64_t slot = slot_of(key, number);
    uint32_t mask = set->capacity - 1;
    uint32_t hole = home_of(set, slot);
    while (set->slots[hole] != slot) {
        INVARIANT(set->slots[hole] != 0);
        hole = (hole + 1) & mask;
    }
    for (uint32_t at = (hole + 1) & mask; set->slots[at]; at = (at + 1) & mask) {
        uint32_t home = home_of(set, set->slots[at]);
        // It may move into the hole unless its home lies behind the hole.
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            set->slots[hole] = set->slots[at];
            hole = at;
        }
    }
    set->slots[hole] = 0;
    set->count--;
}

void key_set_release(struct key_set *set)
{
    free(set->slots);
    *set = (struct key_set){0};
}

uint32_t key_set_next(const struct key_set *set, const struct digest *key, uint32_t *cursor)
{
    if (!set->capacity) return 0;
    uint32_t print = fingerprint(key);
    for (;;) {
        uint64_t slot = set->slots[(print + *cursor) & (set->capacity - 1)];
        if (!slot) return 0;
        (*cursor)++;
        if ((uint32_t)(slot >> 32) == print) return (uint32_t)slot;
    }
}

struct digest signal_key(struct str signal_id)
{
    INVARIANT(signal_id.len > 0);
    struct str parts[] = {STR("signal|"), signal_id};
    return sha256_parts(parts, ARRAY_COUNT(parts));
}

enum code record_key(enum vocabulary vocabulary, const struct run_ids *ids, const struct record *record,
                     struct arena *arena, struct moment *moment, struct seal *seal, struct digest *key,
                     struct error *err)
{
    *moment = (struct moment){0};
    *seal = (struct seal){0};
    enum code rc = contract_decode(vocabulary, record->bytes, arena, moment, seal, NULL, err);
    return rc ? rc : recorded_key(vocabulary, ids, record, moment, arena, key, err);
}

enum code recorded_key(enum vocabulary vocabulary, const struct run_ids *ids, const struct record *record,
                     const struct moment *moment, struct arena *arena, struct digest *key, struct error *err)
{
    struct str slot = moment_slot(vocabulary, moment, arena);
    if (!slot.ptr) return error_nomem(err);
    *key = event_key(ids->run, slot, moment->logical, record->type, ids->plan_version);
    return OK;
}
