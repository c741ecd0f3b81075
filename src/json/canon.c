// RFC 8785, the JSON Canonicalization Scheme: no white space, members in the order of their keys'
// UTF-16 code units, strings and numbers as ECMAScript prints them.
#include "json/internal.h"

#define SAFE_INTEGER (INT64_C(1) << 53)

// UTF-8 sorts like code points. UTF-16 differs in one place: characters beyond U+FFFF (lead bytes
// from F0) are written with surrogates D800 to DFFF and so come before U+E000 to U+FFFF (EE, EF).
int json_key_cmp(struct str a, struct str b)
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

static bool in_order(const struct json_member *members, uint32_t count)
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
    if (in_order(members, count)) return true;
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

static void write_value(struct buf *out, const struct json *value, uint32_t depth);

static void write_member(struct buf *out, const struct json_member *member, uint32_t depth)
{
    json_write_string(out, member->key);
    buf_byte(out, ':');
    write_value(out, &member->value, depth + 1);
}

// A function of its own, so that the common path does not carry the index on its stack.
static __attribute__((noinline)) void write_sorted(struct buf *out, const struct json *object, uint32_t depth)
{
    struct json_order order;
    if (!json_order_init(&order, object->members, object->count)) {
        out->failed = true;
        return;
    }
    for (uint32_t i = 0; i < object->count && buf_ok(out); i++) {
        if (i) buf_byte(out, ',');
        write_member(out, &object->members[order.index ? order.index[i] : i], depth);
    }
    json_order_release(&order);
}

static void write_object(struct buf *out, const struct json *object, uint32_t depth)
{
    buf_byte(out, '{');
    if (in_order(object->members, object->count)) {
        for (uint32_t i = 0; i < object->count && buf_ok(out); i++) {
            if (i) buf_byte(out, ',');
            write_member(out, &object->members[i], depth);
        }
    } else {
        write_sorted(out, object, depth);
    }
    buf_byte(out, '}');
}

static void write_array(struct buf *out, const struct json *array, uint32_t depth)
{
    buf_byte(out, '[');
    for (uint32_t i = 0; i < array->count && buf_ok(out); i++) {
        if (i) buf_byte(out, ',');
        write_value(out, &array->items[i], depth + 1);
    }
    buf_byte(out, ']');
}

static void write_number(struct buf *out, const struct json *number)
{
    double value;
    if (!json_double(number, &value)) {
        out->failed = true; // no double, no canonical form
        return;
    }
    char text[32];
    size_t len = json_double_format(value, text);
    buf_add(out, (struct str){text, len});
}

static void write_value(struct buf *out, const struct json *value, uint32_t depth)
{
    if (depth > JSON_DEPTH_MAX) {
        out->failed = true;
        return;
    }
    switch ((enum json_type)value->type) {
    case JSON_NULL:
        buf_add(out, STR("null"));
        return;
    case JSON_BOOL:
        buf_add(out, value->boolean ? STR("true") : STR("false"));
        return;
    case JSON_INT:
        if (value->integer >= -SAFE_INTEGER && value->integer <= SAFE_INTEGER)
            buf_int(out, value->integer);
        else
            write_number(out, value);
        return;
    case JSON_NUMBER:
        write_number(out, value);
        return;
    case JSON_STRING:
        json_write_string(out, value->text);
        return;
    case JSON_ARRAY:
        write_array(out, value, depth);
        return;
    case JSON_OBJECT:
        write_object(out, value, depth);
        return;
    }
    INVARIANT(value->type >= JSON_NULL && value->type <= JSON_OBJECT);
}

void json_canon(struct buf *out, const struct json *value)
{
    write_value(out, value, 0);
}
