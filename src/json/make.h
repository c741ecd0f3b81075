// JSON values made by expressions. The failure of one part travels in the value, so that it is checked once, at the end:
//
//      *out = JSON_OF(arena, {"runId", json_string(run)}, {"name", json_some(name)}, {"at", json_time(arena, ms)});
//      return json_made(out, err);
//
//  - A value of type 0 is none: the member or element that it would be is left out.
//  - A value of type JSON_FAILED could not be made (no memory). What has a failed part has failed itself; what is written
//    of it fails the buf, and json_put, json_push and json_copy return false.
//  - Texts are borrowed unless the maker is given an arena.
#ifndef CAIRN_JSON_MAKE_H
#define CAIRN_JSON_MAKE_H

#include "base/sha256.h"
#include "base/text.h"
#include "json/json.h"

struct json_field {
    const char *key; // borrowed
    struct json value;
};

#define JSON_FIELDS(...)                                                                                               \
    (const struct json_field[]){__VA_ARGS__}, sizeof((const struct json_field[]){__VA_ARGS__}) / sizeof(struct json_field)
// An object of these members, {"key", value}, in this order.
#define JSON_OF(arena, ...) json_of((arena), JSON_FIELDS(__VA_ARGS__))
// Adds them to an object that is there.
#define JSON_ADD(arena, object, ...) json_add((arena), (object), JSON_FIELDS(__VA_ARGS__))
struct json json_of(struct arena *arena, const struct json_field *fields, size_t count);
void json_add(struct arena *arena, struct json *object, const struct json_field *fields, size_t count);
void json_set(struct arena *arena, struct json *object, struct str key, struct json value); // key borrowed
void json_append(struct arena *arena, struct json *array, struct json value);
// Adds the members of `more` that the object lacks. What is no object, or NULL, has none.
void json_fill(struct arena *arena, struct json *object, const struct json *more);
struct json json_joined(struct arena *arena, const struct json *over, const struct json *under); // of both, `over` first

static inline struct json json_none(void)
{
    return (struct json){0};
}

static inline struct json json_failed(void)
{
    return (struct json){.type = JSON_FAILED};
}

static inline bool json_ok(const struct json *value)
{
    return value->type != JSON_FAILED;
}

enum code json_made(const struct json *value, struct error *err) MUST_CHECK; // OK or E_NOMEM

static inline struct json json_when(bool there, struct json value)
{
    return there ? value : json_none();
}

static inline struct json json_ref(const struct json *value) // NULL: none
{
    return value ? *value : json_none();
}

static inline struct json json_filled(struct json container) // none when it is empty; what failed stays so
{
    return json_when(container.count > 0 || container.type == JSON_FAILED, container);
}

static inline struct json json_count(uint64_t count)
{
    return json_int((int64_t)count);
}

static inline struct json json_nonzero(int64_t number) // none when 0
{
    return json_when(number != 0, json_int(number));
}

static inline struct json json_flag(bool is) // true or none
{
    return json_when(is, json_bool(true));
}

// ---- texts; `made` has no ptr when it could not be made

static inline struct json json_word(const char *text)
{
    return json_string(str_from(text));
}

static inline struct json json_some(struct str text) // none when empty
{
    return json_when(text.len > 0, json_string(text));
}

static inline struct json json_name(const char *text) // none when empty
{
    return json_some(str_from(text));
}

static inline struct json json_or_null(struct str text)
{
    return text.len > 0 ? json_string(text) : json_null();
}

static inline struct json json_text_made(struct str made)
{
    return made.ptr ? json_string(made) : json_failed();
}

struct json json_copied(struct arena *arena, struct str text);
struct json json_copied_some(struct arena *arena, struct str text); // none when empty
struct json json_copied_or_null(struct arena *arena, struct str text);
struct json json_texts(struct arena *arena, const struct str *texts, size_t count);
struct json json_time(struct arena *arena, int64_t ms);      // RFC 3339
struct json json_time_some(struct arena *arena, int64_t ms); // none when 0
struct json json_time_or_null(struct arena *arena, int64_t ms);
struct json json_digest(struct arena *arena, const struct digest *digest); // hex
// The canonical text, kept in the arena. ptr is NULL when the value failed, is longer than `max`, or there is no memory.
struct str json_canon_kept(struct arena *arena, const struct json *value, size_t max);

#endif
