// Where two JSON values differ, by path. Paths are those of references: rows.0.name.
#include "explain/inside.h"

enum { CHANGES_MAX = 100, CONTEXT = 40 };

struct comparison {
    struct maker *m;
    struct json *changes;
    int64_t left_out;
    struct buf path;
};

// A value on one line.
static struct str line_of(struct maker *m, const struct json *value)
{
    if (!value) return (struct str){"", 0};
    struct buf text = buf_of((size_t)64 << 20);
    json_write(&text, value);
    return kept(m, &text);
}

// Shortened; of two long texts what they have in common in front is left out, so that the difference can be seen.
static void put_brief(struct maker *m, struct json *out, const char *key, struct str text, size_t common)
{
    size_t from = text.len > TEXT_SHORT && common > CONTEXT ? common - CONTEXT : 0;
    while (from > 0 && from < text.len && ((unsigned char)text.ptr[from] & 0xC0) == 0x80) from--;
    if (from == 0) {
        JSON_ADD(m->arena, out, {key, json_short(m, text, TEXT_SHORT)});
        return;
    }
    struct buf cut = buf_of((size_t)64 << 20);
    buf_text(&cut, "...");
    buf_add(&cut, str_slice(text, from, text.len));
    JSON_ADD(m->arena, out, {key, json_short(m, kept(m, &cut), TEXT_SHORT)});
}

static void add_change(struct comparison *c, const struct json *a, const struct json *b)
{
    if (c->changes->count >= CHANGES_MAX) {
        c->left_out++;
        return;
    }
    struct json path = buf_ok(&c->path) ? json_copied(c->m->arena, buf_str(&c->path)) : json_failed();
    struct json change = JSON_OF(c->m->arena, {"path", path});
    struct str left = line_of(c->m, a), right = line_of(c->m, b);
    size_t common = 0;
    while (common < left.len && common < right.len && left.ptr[common] == right.ptr[common]) common++;
    if (a) put_brief(c->m, &change, "a", left, common);
    if (b) put_brief(c->m, &change, "b", right, common);
    json_append(c->m->arena, c->changes, change);
}

static void compare(struct comparison *c, const struct json *a, const struct json *b, unsigned depth);

static void compare_at(struct comparison *c, struct str key, const struct json *a, const struct json *b, unsigned depth)
{
    size_t before = c->path.len;
    if (before > 0) buf_byte(&c->path, '.');
    buf_add(&c->path, key);
    if (a && b)
        compare(c, a, b, depth + 1);
    else
        add_change(c, a, b);
    if (buf_ok(&c->path)) c->path.ptr[c->path.len = before] = '\0';
}

static void compare_objects(struct comparison *c, const struct json *a, const struct json *b, unsigned depth)
{
    for (uint32_t i = 0; i < a->count; i++)
        compare_at(c, a->members[i].key, &a->members[i].value, json_get(b, a->members[i].key), depth);
    for (uint32_t i = 0; i < b->count; i++)
        if (!json_get(a, b->members[i].key)) compare_at(c, b->members[i].key, NULL, &b->members[i].value, depth);
}

static void compare_arrays(struct comparison *c, const struct json *a, const struct json *b, unsigned depth)
{
    uint32_t count = a->count > b->count ? a->count : b->count;
    for (uint32_t i = 0; i < count; i++) {
        struct buf key SCOPED(buf_release) = buf_of(16);
        buf_int(&key, i);
        compare_at(c, buf_str(&key), i < a->count ? &a->items[i] : NULL, i < b->count ? &b->items[i] : NULL, depth);
    }
}

static void compare(struct comparison *c, const struct json *a, const struct json *b, unsigned depth)
{
    if (json_equal(a, b)) return;
    if (depth < JSON_DEPTH_MAX && a->type == JSON_OBJECT && b->type == JSON_OBJECT)
        compare_objects(c, a, b, depth);
    else if (depth < JSON_DEPTH_MAX && a->type == JSON_ARRAY && b->type == JSON_ARRAY)
        compare_arrays(c, a, b, depth);
    else
        add_change(c, a, b);
}

// Steps print text; when both texts hold JSON, it is the JSON that is compared.
static struct json opened(struct maker *m, const struct json *value)
{
    struct json inner;
    struct str text = str_trim(json_text(value));
    bool holds = text.len > 1 && (text.ptr[0] == '{' || text.ptr[0] == '[');
    if (!holds || json_parse(text, &json_limits_default, m->arena, &inner, NULL)) return *value;
    return inner;
}

int64_t put_changes(struct maker *m, struct json *changes, const struct json *a, const struct json *b)
{
    struct comparison c = {.m = m, .changes = changes};
    struct json inside_a = opened(m, a), inside_b = opened(m, b);
    bool both = inside_a.type != JSON_STRING && inside_b.type != JSON_STRING;
    buf_init(&c.path, (size_t)1 << 20);
    compare(&c, both ? &inside_a : a, both ? &inside_b : b, 0);
    buf_release(&c.path);
    return c.left_out;
}
