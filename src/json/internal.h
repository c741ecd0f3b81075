// What the files of json/ share and nobody else sees.
#ifndef CAIRN_JSON_INTERNAL_H
#define CAIRN_JSON_INTERNAL_H

#include "json/json.h"

#include <string.h>

// Eight bytes at a time: the result is 0 when no byte of the word is as asked for. Bytes from 0x80
// up are never "below" or "equal"; which of several bytes matched is not known.
#define WORD_ONES UINT64_C(0x0101010101010101)
#define WORD_HIGHS UINT64_C(0x8080808080808080)

static inline uint64_t word_load(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
    return word;
}

static inline uint64_t word_below(uint64_t word, unsigned char limit)
{
    return (word - WORD_ONES * limit) & ~word & WORD_HIGHS;
}

static inline uint64_t word_equal(uint64_t word, unsigned char c)
{
    return word_below(word ^ WORD_ONES * c, 1);
}

// Bytes before the first one that a mask of the above marks. A borrow may mark more bytes, but only behind that one.
static inline size_t word_first(uint64_t mask)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (size_t)__builtin_ctzll(mask) / 8;
#else
    return 0; // look at each byte
#endif
}

// Length of the JSON number at the start of `text`, 0 when there is none. *integral: no fraction and no exponent.
size_t json_number_scan(struct str text, bool *integral);
bool json_in_order(const struct json_member *members, uint32_t count);
void json_canon_number(struct buf *out, const struct json *number);

// The order of members by key. index is NULL when they already are in order.
struct json_order {
    const uint32_t *index;
    struct buf spill;
    uint32_t local[32];
};
bool json_order_init(struct json_order *order, const struct json_member *members,
                     uint32_t count) MUST_CHECK; // false: out of memory; nothing to release
void json_order_release(struct json_order *order);

#endif
