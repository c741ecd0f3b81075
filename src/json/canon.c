// The order of RFC 8785, the JSON Canonicalization Scheme: members by their keys' UTF-16 code units. Numbers are in number.c;
// the rest of it is how write.c writes anyway.
#include "json/internal.h"

// RFC 8785 §3.2.3: by UTF-16 code units. UTF-8 sorts like code points. UTF-16 differs in one place: characters beyond U+FFFF (lead bytes
// from F0) are written with surrogates D800 to DFFF and so come before U+E000 to U+FFFF (EE, EF).
static int json_key_cmp(struct str a, struct str b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    for (size_t i = 0; i < common; i++) {
        unsigned char x = (unsigned char)a.ptr[i];
        unsigned char y = (unsigned char)b.ptr[i];
        if (x == y) continue;
        if (x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0)) return x >= 0xF0 ? -1 : 1;
        return x < y ? -1 : 1;
    }
    return (a.len > b.len) - (a.len < b.len);
}

bool json_in_order(const struct json_member *members, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (json_key_cmp(members[i - 1].key, members[i].key) >= 0) return false;
    }
    return true;
}

static void sift(const struct json_member *members, uint32_t *index, uint32_t at, uint32_t count)
{
    uint32_t moving = index[at];
    for (;;) {
        uint64_t child = (uint64_t)at * 2 + 1;
        if (child >= count) break;
        if (child + 1 < count && json_key_cmp(members[index[child]].key, members[index[child + 1]].key) < 0) child++;
        if (json_key_cmp(members[moving].key, members[index[child]].key) >= 0) break;
        index[at] = index[child];
        at = (uint32_t)child;
    }
    index[at] = moving;
}

// Heap sort: in place, and no choice of keys makes it slow.
static void sort(const struct json_member *members, uint32_t *index, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) index[i] = i;
    for (uint32_t i = count / 2; i > 0; i--) sift(members, index, i - 1, count);
    for (uint32_t left = count; left > 1; left--) {
        uint32_t largest = index[0];
        index[0] = index[left - 1];
        index[left - 1] = largest;
        sift(members, index, 0, left - 1);
    }
}

bool json_order_init(struct json_order *order, const struct json_member *members, uint32_t count)
{
    order->index = NULL;
    buf_init(&order->spill, SIZE_MAX / 4);
    if (json_in_order(members, count)) return true;
    uint32_t *index = order->local;
    if (count > ARRAY_COUNT(order->local)) {
        index = (uint32_t *)(void *)buf_reserve(&order->spill, count * sizeof(*index));
        if (!index) return false;
    }
    sort(members, index, count);
    order->index = index;
    return true;
}

void json_order_release(struct json_order *order)
{
    buf_release(&order->spill);
}
