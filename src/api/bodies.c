// Bodies are held against the description before any handler sees them: a member that is misspelt, read-only or of another type
// is refused, never passed over (reliability §4.3).
#include "api/inside.h"

#include "schema/schema.h"

#include <string.h>

enum code bodies_open(struct api *api, struct error *err)
{
    struct arena *arena = &api->arena;
    struct schema_set *set;
    size_t count = 0;
    while (route_at(count)) count++;
    api->bodies = ARENA_ARRAY(arena, count, const struct schema *);
    if (!api->bodies || schema_set_open(arena, &set)) return error_nomem(err);
    enum code rc = schema_set_components(set, arena, &api->components, err);
    for (size_t i = 0; !rc && i < count; i++) {
        const struct route *route = route_at(i);
        if (!route->body || !(route->flags & ROUTE_BODY)) continue;
        struct str name = arena_format(arena, "openapi.json#/components/schemas/%s", route->body);
        rc = name.ptr ? schema_compile(set, name, &api->bodies[i], err) : error_nomem(err);
    }
    return rc;
}

// A string that is too long, wherever it is.
static bool has_long_string(const struct json *value, size_t max)
{
    bool found = value->type == JSON_STRING && value->text.len > max;
    for (uint32_t i = 0; value->type == JSON_ARRAY && !found && i < value->count; i++)
        found = has_long_string(&value->items[i], max);
    for (uint32_t i = 0; value->type == JSON_OBJECT && !found && i < value->count; i++)
        found = value->members[i].key.len > max || has_long_string(&value->members[i].value, max);
    return found;
}

// Documents are strings of a body, and may be as long as it; nothing else in it may.
static bool strings_fit(const struct json *body, size_t max)
{
    bool fit = true;
    for (uint32_t i = 0; fit && i < body->count; i++) {
        const struct json_member *member = &body->members[i];
        bool parts = str_is(member->key, "parts") && member->value.type == JSON_ARRAY;
        if (str_is(member->key, "document") && member->value.type == JSON_STRING) continue;
        if (!parts) fit = member->key.len <= max && !has_long_string(&member->value, max);
        for (uint32_t j = 0; parts && fit && j < member->value.count; j++) {
            const struct json *part = &member->value.items[j];
            for (uint32_t k = 0; part->type == JSON_OBJECT && fit && k < part->count; k++)
                fit = str_is(part->members[k].key, "text") || !has_long_string(&part->members[k].value, max);
        }
    }
    return fit;
}

bool body_fits(struct ask *ask)
{
    const struct schema *schema = ask->api->bodies[route_index(ask->route)];
    struct schema_fault fault;
    const size_t longest = json_limits_default.string_size_max;
    if (ask->request->body.len > longest && !strings_fit(&ask->body, longest))
        return call_problem(ask->call, 400, "INVALID_REQUEST", "a string that is no document is too long (limit %zu)",
                            longest);
    if (!schema || schema_valid(schema, &ask->body, &fault)) return true;
    struct arena *arena = &ask->call->arena;
    struct json list = json_array();
    json_append(arena, &list, JSON_OF(arena, {"pointer", json_copied_some(arena, str_from(fault.pointer))},
                                      {"message", json_copied_some(arena, str_from(fault.message))}));
    if (json_ok(&list)) ask->call->answer.body = JSON_OF(arena, {"errors", list});
    bool signal = strcmp(ask->route->body, "Signal") == 0;
    return call_problem(ask->call, 400, signal ? "SIGNAL_INVALID_PAYLOAD" : "INVALID_REQUEST", "%s%s%s", fault.pointer,
                        fault.pointer[0] ? " " : "", fault.message);
}

bool body_document(struct ask *ask, struct str *out)
{
    const struct json *value = json_key(&ask->body, "document");
    *out = json_text(value);
    if (!json_is(value, JSON_OBJECT)) return true;
    struct buf text = buf_of((size_t)16 * service_scale(ask->api->service) << 20);
    json_write(&text, value);
    *out = buf_keep(&text, &ask->call->arena);
    if (!out->ptr) call_nomem(ask->call);
    return out->ptr != NULL;
}

bool body_ref(struct ask *ask, struct plan_ref *out)
{
    const struct json *value = json_key(&ask->body, "planRef");
    struct error err = {0};
    if (!value || fetch_plan_ref(value, out, &err) == OK) return true;
    return call_problem(ask->call, 400, "INVALID_REQUEST", "planRef: %s", err.message);
}

bool body_one(struct ask *ask, const char *one, const char *other)
{
    if (!json_key(&ask->body, one) || !json_key(&ask->body, other)) return true;
    return call_problem(ask->call, 400, "INVALID_REQUEST", "%s and %s: one of them", one, other);
}
