// uniqueItems without allocating: few items are compared pair by pair; many go, a block at a time, into a hash table on
// the stack against which all later items are looked up. Time is O(n * n / BLOCK) look-ups at worst.
#include "schema/internal.h"

#include <string.h>

enum { PAIRWISE_MAX = 16, BLOCK = 2048, TABLE = 4096, HASHED_ITEM_MAX = 8 };

// Equal values have equal hashes; only the first levels and members count.
static uint64_t value_hash(const struct json *value, int depth)
{
    char scratch[DECIMAL_SCRATCH];
    uint64_t hash = value->type;
    switch ((enum json_type)value->type) {
    case JSON_NULL:
        return 1;
    case JSON_BOOL:
        return value->boolean ? 2 : 3;
    case JSON_INT:
    case JSON_NUMBER: {
        struct decimal d = decimal_of(value, scratch);
        hash = (uint64_t)d.exponent * 31 + d.digit_count + d.negative;
        for (size_t i = 0; i < d.digits.len; i++) {
            if (d.digits.ptr[i] != '.') hash = hash * UINT64_C(0x100000001B3) + (unsigned char)d.digits.ptr[i];
        }
        return hash ^ hash >> 29;
    }
    case JSON_STRING:
        return str_hash(value->text);
    case JSON_ARRAY:
        hash += value->count;
        for (uint32_t i = 0; i < value->count && i < HASHED_ITEM_MAX && depth < 3; i++)
            hash = hash * 31 + value_hash(&value->items[i], depth + 1);
        return hash;
    case JSON_OBJECT:
        // The order of members does not count, so all of them do or none.
        hash += value->count;
        for (uint32_t i = 0; i < value->count && value->count <= HASHED_ITEM_MAX && depth < 3; i++) {
            uint64_t key = str_hash(value->members[i].key);
            hash += (key | 1) * (value_hash(&value->members[i].value, depth + 1) + 1);
        }
        return hash;
    }
    return hash;
}

static bool pairwise(const struct json *array, uint32_t *first, uint32_t *second)
{
    for (uint32_t i = 0; i < array->count; i++) {
        for (uint32_t j = i + 1; j < array->count; j++) {
            if (json_equal(&array->items[i], &array->items[j])) {
                *first = i;
                *second = j;
                return false;
            }
        }
    }
    return true;
}

bool values_unique(const struct json *array, uint32_t *first, uint32_t *second)
{
    if (array->count <= PAIRWISE_MAX) return pairwise(array, first, second);
    uint32_t hashes[TABLE];
    uint32_t indexes[TABLE]; // + 1; 0 is free
    for (uint32_t from = 0; from < array->count; from += BLOCK) {
        memset(indexes, 0, sizeof(indexes));
        for (uint32_t i = from; i < array->count; i++) {
            uint64_t wide = value_hash(&array->items[i], 0) * UINT64_C(0x9E3779B97F4A7C15);
            uint32_t hash = (uint32_t)(wide >> 32);
            uint32_t slot = hash & (TABLE - 1);
            for (; indexes[slot]; slot = (slot + 1) & (TABLE - 1)) {
                *first = indexes[slot] - 1;
                *second = i;
                if (hashes[slot] == hash && json_equal(&array->items[*first], &array->items[i])) return false;
            }
            if (i - from < BLOCK) {
                hashes[slot] = hash;
                indexes[slot] = i + 1;
            }
        }
    }
    return true;
}
