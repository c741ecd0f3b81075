#include "auth/internal.h"

#include "base/civil.h"

struct reading auth_reading_of(const struct json *object, struct arena *arena)
{
    return (struct reading){.object = object, .arena = arena, .fits = json_is(object, JSON_OBJECT), .memory = true};
}

bool auth_reading_done(const struct reading *reading)
{
    return reading->fits && reading->used == reading->object->count;
}

const struct json *auth_take(struct reading *reading, const char *key, enum json_type type)
{
    const struct json *value = json_key(reading->object, key);
    if (!value) return NULL;
    reading->used++;
    if (value->type == type) return value;
    reading->fits = false;
    return NULL;
}

struct str auth_take_text(struct reading *reading, const char *key)
{
    const struct json *value = auth_take(reading, key, JSON_STRING);
    if (value && !value->text.len) reading->fits = false;
    return json_text(value);
}

int64_t auth_take_time(struct reading *reading, const char *key)
{
    int64_t ms = 0;
    struct str text = auth_take_text(reading, key);
    if (text.len && (!civil_parse(text, &ms) || !ms)) reading->fits = false;
    return ms;
}

struct digest auth_take_digest(struct reading *reading, const char *key)
{
    struct digest digest = {{0}};
    if (!digest_parse(auth_take_text(reading, key), &digest)) reading->fits = false;
    return digest;
}
