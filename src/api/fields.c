// fields=runId,steps.stepId: only these members of an answer; of a page, only these of its items.
#include "api/inside.h"

enum { FIELDS_MAX = 64 };

struct paths {
    struct str at[FIELDS_MAX];
    size_t count;
};

static bool keep(struct ask *ask, const struct paths *paths, const struct json *value, struct json *out);

static bool keep_member(struct ask *ask, const struct paths *paths, const struct json_member *member, struct json *out)
{
    struct paths below = {.count = 0};
    struct json kept;
    for (size_t i = 0; i < paths->count; i++) {
        struct str rest, first = str_cut(paths->at[i], '.', &rest);
        if (!str_eq(first, member->key)) continue;
        if (rest.len == 0) return json_put(&ask->call->arena, out, member->key, member->value);
        below.at[below.count++] = rest;
    }
    if (below.count == 0) return true;
    return keep(ask, &below, &member->value, &kept) && json_put(&ask->call->arena, out, member->key, kept);
}

static bool keep(struct ask *ask, const struct paths *paths, const struct json *value, struct json *out)
{
    bool ok = true;
    *out = *value;
    if (value->type == JSON_OBJECT) {
        *out = json_object();
        for (uint32_t i = 0; ok && i < value->count; i++) ok = keep_member(ask, paths, &value->members[i], out);
    } else if (value->type == JSON_ARRAY) {
        *out = json_array();
        for (uint32_t i = 0; ok && i < value->count; i++) {
            struct json one;
            ok = keep(ask, paths, &value->items[i], &one) && json_push(&ask->call->arena, out, one);
        }
    }
    return ok;
}

// ---- what there is to ask for

static const struct json *named(const struct ask *ask, struct str name)
{
    const struct json *schemas = json_key(json_key(ask->api->components, "components"), "schemas");
    return json_get(schemas, name);
}

// Through references and into the items of lists.
static const struct json *object_of(const struct ask *ask, const struct json *schema)
{
    for (int i = 0; schema && i < 16; i++) {
        struct str ref = json_text(json_key(schema, "$ref")), prefix = STR("#/components/schemas/");
        const struct json *items = json_key(schema, "items");
        if (str_starts(ref, prefix))
            schema = named(ask, str_slice(ref, prefix.len, ref.len));
        else if (items)
            schema = items;
        else
            return schema;
    }
    return schema;
}

static bool is_known(const struct ask *ask, const struct json *schema, struct str path)
{
    while (path.len > 0) {
        const struct json *properties = json_key(object_of(ask, schema), "properties");
        if (!properties) return true; // it says no more about what is in there
        struct str name = str_cut(path, '.', &path);
        schema = json_get(properties, name);
        if (!schema) return false;
    }
    return true;
}

bool fields_read(struct ask *ask)
{
    if (!query_text(ask, "fields", &ask->fields)) return false;
    const struct json *schema = object_of(ask, named(ask, str_from(ask->route->answer)));
    const struct json *properties = json_key(schema, "properties");
    if (json_key(properties, "nextCursor")) schema = json_key(properties, "items");
    size_t count = 0;
    for (struct str rest = ask->fields; rest.len > 0;) {
        struct str path = str_trim(str_cut(rest, ',', &rest));
        if (path.len > 0 && ++count <= FIELDS_MAX && is_known(ask, schema, path)) continue;
        return call_problem(ask->call, 400, "INVALID_REQUEST", "there is no field \"%.*s\"",
                            (int)(path.len < 80 ? path.len : 80), path.ptr);
    }
    return true;
}

bool fields_keep(struct ask *ask, struct json *body)
{
    struct paths paths = {.count = 0};
    struct json kept = json_object();
    struct str rest = ask->fields;
    while (rest.len > 0 && paths.count < FIELDS_MAX) paths.at[paths.count++] = str_trim(str_cut(rest, ',', &rest));
    const struct json *items = json_key(body, "items");
    if (!items || !json_key(body, "nextCursor")) {
        if (!keep(ask, &paths, body, &kept)) return false;
        *body = kept;
        return true;
    }
    for (uint32_t i = 0; i < body->count; i++) {
        struct json value = body->members[i].value;
        if (&body->members[i].value == items && !keep(ask, &paths, items, &value)) return false;
        if (!json_put(&ask->call->arena, &kept, body->members[i].key, value)) return false;
    }
    *body = kept;
    return true;
}
