#include "json/make.h"

#include "base/civil.h"

void json_set(struct arena *arena, struct json *object, struct str key, struct json value)
{
    if (!json_ok(object) || !value.type) return;
    if (!json_put(arena, object, key, value)) *object = json_failed();
}

void json_append(struct arena *arena, struct json *array, struct json value)
{
    if (!json_ok(array) || !value.type) return;
    if (!json_push(arena, array, value)) *array = json_failed();
}

void json_fill(struct arena *arena, struct json *object, const struct json *more)
{
    for (uint32_t i = 0; json_is(more, JSON_OBJECT) && json_ok(object) && i < more->count; i++)
        if (!json_get(object, more->members[i].key))
            json_set(arena, object, more->members[i].key, more->members[i].value);
}

struct json json_joined(struct arena *arena, const struct json *over, const struct json *under)
{
    struct json made;
    uint32_t count = (json_is(over, JSON_OBJECT) ? over->count : 0) + (json_is(under, JSON_OBJECT) ? under->count : 0);
    if (!json_object_with(arena, count, &made)) return json_failed();
    json_fill(arena, &made, over);
    json_fill(arena, &made, under);
    return made;
}

void json_add(struct arena *arena, struct json *object, const struct json_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) json_set(arena, object, str_from(fields[i].key), fields[i].value);
}

struct json json_of(struct arena *arena, const struct json_field *fields, size_t count)
{
    struct json object;
    uint32_t there = 0;
    for (size_t i = 0; i < count; i++) there += fields[i].value.type != 0;
    if (!json_object_with(arena, there, &object)) return json_failed();
    json_add(arena, &object, fields, count);
    return object;
}

enum code json_made(const struct json *value, struct error *err)
{
    return json_ok(value) ? OK : error_nomem(err);
}

struct json json_copied(struct arena *arena, struct str text)
{
    return json_text_made(arena_copy(arena, text));
}

struct json json_copied_some(struct arena *arena, struct str text)
{
    return text.len ? json_copied(arena, text) : json_none();
}

struct json json_copied_or_null(struct arena *arena, struct str text)
{
    return text.len ? json_copied(arena, text) : json_null();
}

struct json json_texts(struct arena *arena, const struct str *texts, size_t count)
{
    struct json list = json_array();
    for (size_t i = 0; i < count; i++) json_append(arena, &list, json_string(texts[i]));
    return list;
}

struct json json_time(struct arena *arena, int64_t ms)
{
    char *text = arena_alloc(arena, CIVIL_SIZE);
    if (!text) return json_failed();
    civil_format(ms, text);
    return json_string((struct str){text, CIVIL_SIZE - 1});
}

struct json json_time_some(struct arena *arena, int64_t ms)
{
    return ms ? json_time(arena, ms) : json_none();
}

struct json json_time_or_null(struct arena *arena, int64_t ms)
{
    return ms ? json_time(arena, ms) : json_null();
}

struct json json_digest(struct arena *arena, const struct digest *digest)
{
    char *hex = arena_alloc(arena, SHA256_HEX + 1);
    if (!hex) return json_failed();
    digest_hex(digest, hex);
    return json_string((struct str){hex, SHA256_HEX});
}

struct str json_canon_kept(struct arena *arena, const struct json *value, size_t max)
{
    struct buf text = buf_of(max);
    json_canon(&text, value);
    return buf_keep(&text, arena);
}
