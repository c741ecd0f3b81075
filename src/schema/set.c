// Documents and the names of their parts: which URI means which schema.
#include "schema/internal.h"

#include <string.h>

enum { SCHEMA_DEPTH_MAX = 128 };

static const struct keyword keywords[] = {
    {"$schema", KEYWORD_PLAIN},
    {"$id", KEYWORD_PLAIN},
    {"$anchor", KEYWORD_PLAIN},
    {"$ref", KEYWORD_PLAIN},
    {"$defs", KEYWORD_SCHEMA_MAP},
    {"type", KEYWORD_PLAIN},
    {"enum", KEYWORD_PLAIN},
    {"const", KEYWORD_PLAIN},
    {"properties", KEYWORD_SCHEMA_MAP},
    {"patternProperties", KEYWORD_SCHEMA_MAP},
    {"additionalProperties", KEYWORD_SCHEMA},
    {"propertyNames", KEYWORD_SCHEMA},
    {"required", KEYWORD_PLAIN},
    {"dependentRequired", KEYWORD_PLAIN},
    {"dependentSchemas", KEYWORD_SCHEMA_MAP},
    {"minProperties", KEYWORD_PLAIN},
    {"maxProperties", KEYWORD_PLAIN},
    {"items", KEYWORD_SCHEMA},
    {"prefixItems", KEYWORD_SCHEMA_ARRAY},
    {"contains", KEYWORD_SCHEMA},
    {"minContains", KEYWORD_PLAIN},
    {"maxContains", KEYWORD_PLAIN},
    {"minItems", KEYWORD_PLAIN},
    {"maxItems", KEYWORD_PLAIN},
    {"uniqueItems", KEYWORD_PLAIN},
    {"minLength", KEYWORD_PLAIN},
    {"maxLength", KEYWORD_PLAIN},
    {"pattern", KEYWORD_PLAIN},
    {"minimum", KEYWORD_PLAIN},
    {"maximum", KEYWORD_PLAIN},
    {"exclusiveMinimum", KEYWORD_PLAIN},
    {"exclusiveMaximum", KEYWORD_PLAIN},
    {"multipleOf", KEYWORD_PLAIN},
    {"allOf", KEYWORD_SCHEMA_ARRAY},
    {"anyOf", KEYWORD_SCHEMA_ARRAY},
    {"oneOf", KEYWORD_SCHEMA_ARRAY},
    {"not", KEYWORD_SCHEMA},
    {"if", KEYWORD_SCHEMA},
    {"then", KEYWORD_SCHEMA},
    {"else", KEYWORD_SCHEMA},
    {"$comment", KEYWORD_ANNOTATION},
    {"title", KEYWORD_ANNOTATION},
    {"description", KEYWORD_ANNOTATION},
    {"default", KEYWORD_ANNOTATION},
    {"examples", KEYWORD_ANNOTATION},
    {"deprecated", KEYWORD_ANNOTATION},
    {"readOnly", KEYWORD_ANNOTATION},
    {"writeOnly", KEYWORD_ANNOTATION},
    {"format", KEYWORD_ANNOTATION},
    {"contentEncoding", KEYWORD_ANNOTATION},
    {"contentMediaType", KEYWORD_ANNOTATION},
    {"contentSchema", KEYWORD_ANNOTATION},
    {"unevaluatedProperties", KEYWORD_REFUSED},
    {"unevaluatedItems", KEYWORD_REFUSED},
    {"$dynamicRef", KEYWORD_REFUSED},
    {"$dynamicAnchor", KEYWORD_REFUSED},
    {"$vocabulary", KEYWORD_REFUSED},
};

const struct keyword *keyword_find(struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(keywords); i++) {
        if (str_is(name, keywords[i].name)) return &keywords[i];
    }
    return NULL;
}

enum code schema_set_open(struct arena *arena, struct schema_set **out)
{
    struct schema_set *set = ARENA_NEW(arena, struct schema_set);
    if (!set) return E_NOMEM;
    set->arena = arena;
    map_init(&set->by_uri, arena);
    *out = set;
    return OK;
}

// `uri` must live in the set's arena or longer.
static enum code name_place(struct schema_set *set, struct str uri, struct schema_site place, struct error *err)
{
    // Room first: a name must not be left without its place.
    if (!ARENA_ROOM(set->arena, set->places, set->place_count, &set->place_capacity)) return error_nomem(err);
    uint32_t existing;
    if (!map_put(&set->by_uri, uri, (uint32_t)set->place_count, &existing)) return error_nomem(err);
    if (existing != MAP_NONE) {
        if (set->places[existing].schema == place.schema) return OK;
        return error_at(err, E_EXISTS, place.schema->line, place.schema->column, "two schemas are called %.*s",
                        STR_ARG(uri));
    }
    set->places[set->place_count++] = place;
    return OK;
}

static struct str join_anchor(struct arena *arena, struct str uri, struct str anchor)
{
    char *out = arena_alloc(arena, uri.len + 1 + anchor.len);
    if (!out) return (struct str){0};
    if (uri.len) memcpy(out, uri.ptr, uri.len);
    out[uri.len] = '#';
    if (anchor.len) memcpy(out + uri.len + 1, anchor.ptr, anchor.len);
    return (struct str){out, uri.len + 1 + anchor.len};
}

static const struct resource *new_resource(struct schema_set *set, struct str uri, const struct json *root)
{
    struct resource *resource = ARENA_NEW(set->arena, struct resource);
    if (resource) *resource = (struct resource){uri, root};
    return resource;
}

static bool has_id(const struct json *schema)
{
    return json_is(json_key(schema, "$id"), JSON_STRING);
}

static const struct resource *open_resource(struct schema_set *set, const struct json *schema,
                                            const struct resource *outer)
{
    struct str uri = uri_resolve(set->arena, outer->uri, json_text(json_key(schema, "$id")));
    return uri.ptr ? new_resource(set, uri, schema) : NULL;
}

const struct resource *set_resource(struct schema_set *set, const struct json *schema, const struct resource *outer)
{
    if (schema == outer->root || !has_id(schema)) return outer;
    return open_resource(set, schema, outer);
}

static enum code scan(struct schema_set *set, const struct json *schema, const struct resource *resource, int depth,
                      struct error *err);

static enum code scan_member(struct schema_set *set, const struct json_member *member, const struct resource *resource,
                             int depth, struct error *err)
{
    const struct keyword *keyword = keyword_find(member->key);
    const struct json *value = &member->value;
    enum code rc = OK;
    if (keyword && keyword->kind == KEYWORD_SCHEMA) rc = scan(set, value, resource, depth, err);
    if (keyword && keyword->kind == KEYWORD_SCHEMA_ARRAY && value->type == JSON_ARRAY) {
        for (uint32_t i = 0; i < value->count && !rc; i++) rc = scan(set, &value->items[i], resource, depth, err);
    }
    if (keyword && keyword->kind == KEYWORD_SCHEMA_MAP && value->type == JSON_OBJECT) {
        for (uint32_t i = 0; i < value->count && !rc; i++)
            rc = scan(set, &value->members[i].value, resource, depth, err);
    }
    return rc;
}

// Names what has a name: $id and $anchor, where schemas can be and nowhere else.
static enum code scan(struct schema_set *set, const struct json *schema, const struct resource *resource, int depth,
                      struct error *err)
{
    if (schema->type != JSON_OBJECT) return OK;
    if (depth > SCHEMA_DEPTH_MAX)
        return error_at(err, E_LIMIT, schema->line, schema->column, "schema nested deeper than %d", SCHEMA_DEPTH_MAX);
    enum code rc = OK;
    if (schema != resource->root && has_id(schema)) {
        resource = open_resource(set, schema, resource);
        if (!resource) return error_nomem(err);
        rc = name_place(set, resource->uri, (struct schema_site){schema, resource}, err);
    }
    const struct json *anchor = json_key(schema, "$anchor");
    if (!rc && json_is(anchor, JSON_STRING)) {
        struct str uri = join_anchor(set->arena, resource->uri, anchor->text);
        if (!uri.ptr) return error_nomem(err);
        rc = name_place(set, uri, (struct schema_site){schema, resource}, err);
    }
    for (uint32_t i = 0; i < schema->count && !rc; i++)
        rc = scan_member(set, &schema->members[i], resource, depth + 1, err);
    return rc;
}

enum code schema_set_add(struct schema_set *set, struct str uri, const struct json *document, struct error *err)
{
    struct str fragment;
    struct str name = arena_copy(set->arena, uri_without_fragment(uri, &fragment));
    if (!name.ptr) return error_nomem(err);
    struct resource given = {name, NULL};
    const struct resource *resource =
        has_id(document) ? open_resource(set, document, &given) : new_resource(set, name, document);
    if (!resource) return error_nomem(err);
    struct schema_site place = {document, resource};
    enum code rc = name_place(set, name, place, err);
    if (!rc) rc = name_place(set, resource->uri, place, err);
    return rc ? rc : scan(set, document, resource, 0, err);
}

// ~1 and ~0 undone while comparing, so that nothing is allocated.
static bool token_is(struct str token, struct str key)
{
    size_t k = 0;
    for (size_t i = 0; i < token.len; i++, k++) {
        char c = token.ptr[i];
        if (c == '~' && i + 1 < token.len && (token.ptr[i + 1] == '0' || token.ptr[i + 1] == '1'))
            c = token.ptr[++i] == '0' ? '~' : '/';
        if (k >= key.len || key.ptr[k] != c) return false;
    }
    return k == key.len;
}

static const struct json *pointer_step(const struct json *at, struct str token)
{
    int64_t index;
    if (at->type == JSON_ARRAY)
        return str_int64(token, &index) && index >= 0 && index < at->count ? &at->items[index] : NULL;
    for (uint32_t i = 0; at->type == JSON_OBJECT && i < at->count; i++) {
        if (token_is(token, at->members[i].key)) return &at->members[i].value;
    }
    return NULL;
}

static enum code find_pointer(struct schema_set *set, struct str pointer, const struct json **schema,
                              const struct resource **resource, struct error *err)
{
    const struct json *at = *schema;
    struct str rest = str_slice(pointer, 1, pointer.len);
    for (bool more = true; more;) {
        size_t end = str_find(rest, '/', 0);
        struct str token = str_slice(rest, 0, end);
        more = end < rest.len;
        rest = more ? str_slice(rest, end + 1, rest.len) : rest;
        at = pointer_step(at, token);
        if (!at) return error_set(err, E_NOT_FOUND, "no schema at %.*s", STR_ARG(pointer));
        *resource = set_resource(set, at, *resource);
        if (!*resource) return error_nomem(err);
    }
    *schema = at;
    return OK;
}

enum code set_find(struct schema_set *set, const struct resource *resource, struct str reference,
                   const struct json **schema, const struct resource **found, struct error *err)
{
    struct str fragment;
    struct str name = uri_without_fragment(reference, &fragment);
    *found = resource;
    if (name.len) {
        struct str uri = uri_resolve(set->arena, resource->uri, name);
        if (!uri.ptr) return error_nomem(err);
        uint32_t place = map_get(&set->by_uri, uri);
        if (place == MAP_NONE) place = map_get(&set->by_uri, name);
        if (place == MAP_NONE) return error_set(err, E_NOT_FOUND, "no schema is called %.*s", STR_ARG(reference));
        *found = set->places[place].resource;
    }
    *schema = (*found)->root;
    fragment = uri_unescape(set->arena, fragment);
    if (!fragment.ptr) return error_nomem(err);
    if (!fragment.len) return OK;
    if (fragment.ptr[0] == '/') return find_pointer(set, fragment, schema, found, err);
    struct str anchored = join_anchor(set->arena, (*found)->uri, fragment);
    if (!anchored.ptr) return error_nomem(err);
    uint32_t place = map_get(&set->by_uri, anchored);
    if (place == MAP_NONE) return error_set(err, E_NOT_FOUND, "no schema has the anchor %.*s", STR_ARG(reference));
    *schema = set->places[place].schema;
    *found = set->places[place].resource;
    return OK;
}
