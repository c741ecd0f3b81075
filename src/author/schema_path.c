// Finding one's way in the schemas by the names that documents use: steps.retry.backoff, not properties, items and $ref.
//
// A place is a set of schemas, because a field may be described in several (`with` has one for every kind of step). Lists are
// passed through: steps.retry is the retry of an item of steps.
#include "author/author.h"

#include "json/make.h"
#include "schema/schema.h"

enum { PLACES_MAX = 64, DEPTH_MAX = 24, FILES_MAX = 8 };

struct schema_node {
    struct str file;
    const struct json *root, *node;
    bool maybe; // one of several alternatives
};

struct schema_nodes {
    struct schema_node items[PLACES_MAX];
    uint32_t count;
};

struct guide {
    struct arena *arena;
    struct str names[FILES_MAX]; // files read so far
    struct json roots[FILES_MAX];
    uint32_t file_count;
};

static const struct json *root_of(struct guide *g, struct str file)
{
    for (uint32_t i = 0; i < g->file_count; i++)
        if (str_eq(g->names[i], file)) return &g->roots[i];
    struct str name = arena_copy(g->arena, file);
    if (g->file_count == FILES_MAX || !name.ptr) return NULL;
    struct str text = schema_embedded(name.ptr);
    if (text.len == 0 || json_parse(text, NULL, g->arena, &g->roots[g->file_count], NULL)) return NULL;
    g->names[g->file_count] = name;
    return &g->roots[g->file_count++];
}

// "../run-events/common.json" seen from "signals/PAUSE.json".
static struct str resolve_file(struct guide *g, struct str from, struct str to)
{
    size_t end = from.len;
    while (end > 0 && from.ptr[end - 1] != '/') end--;
    struct buf path = buf_of(512);
    while (str_starts(to, STR("../"))) {
        to = str_slice(to, 3, to.len);
        end = end > 0 ? end - 1 : 0;
        while (end > 0 && from.ptr[end - 1] != '/') end--;
    }
    buf_add(&path, str_slice(from, 0, end));
    buf_add(&path, to);
    struct str copy = buf_keep(&path, g->arena);
    return copy.ptr ? copy : STR("");
}

// $ref: "#/$defs/step", "common.json#/$defs/uuid".
static bool follow(struct guide *g, const struct schema_node *from, struct str ref, struct schema_node *out)
{
    struct str pointer;
    struct str file = str_cut(ref, '#', &pointer);
    *out = *from;
    if (file.len > 0) {
        out->file = resolve_file(g, from->file, file);
        out->root = root_of(g, out->file);
    }
    if (!out->root) return false;
    out->node = out->root;
    while (pointer.len > 0) {
        struct str part = str_cut(str_slice(pointer, 1, pointer.len), '/', &pointer);
        if (pointer.len > 0) pointer = (struct str){pointer.ptr - 1, pointer.len + 1};
        out->node = json_get(out->node, part);
        if (!out->node) return false;
    }
    return true;
}

static void add_place(struct schema_nodes *to, struct schema_node place)
{
    for (uint32_t i = 0; i < to->count; i++)
        if (to->items[i].node == place.node) return;
    if (to->count < PLACES_MAX) to->items[to->count++] = place;
}

// A schema with everything that says more about the same value: references, parts and alternatives.
static void spread(struct guide *g, struct schema_node place, struct schema_nodes *out, uint32_t depth)
{
    static const char *const lists[] = {"allOf", "anyOf", "oneOf"};
    static const char *const single[] = {"then", "else"};
    if (depth > DEPTH_MAX || !json_is(place.node, JSON_OBJECT)) return;
    uint32_t before = out->count;
    add_place(out, place);
    if (out->count == before) return;
    struct schema_node next = place;
    const struct json *ref = json_key(place.node, "$ref");
    if (ref && follow(g, &place, json_text(ref), &next)) spread(g, next, out, depth + 1);
    for (size_t i = 0; i < ARRAY_COUNT(lists); i++) {
        const struct json *list = json_key(place.node, lists[i]);
        for (uint32_t k = 0; json_is(list, JSON_ARRAY) && k < list->count; k++) {
            next = place;
            next.node = &list->items[k];
            next.maybe |= i > 0;
            spread(g, next, out, depth + 1);
        }
    }
    for (size_t i = 0; i < ARRAY_COUNT(single); i++) {
        next = place;
        next.node = json_key(place.node, single[i]);
        next.maybe = true;
        if (next.node) spread(g, next, out, depth + 1);
    }
}

static void spread_all(struct guide *g, const struct schema_nodes *from, struct schema_nodes *out)
{
    out->count = 0;
    for (uint32_t i = 0; i < from->count; i++) spread(g, from->items[i], out, 0);
    // Items of lists count as the list: names go through.
    for (uint32_t i = 0; i < out->count; i++) {
        struct schema_node next = out->items[i];
        next.node = json_key(out->items[i].node, "items");
        if (next.node) spread(g, next, out, 0);
    }
}

static bool is_list(const struct schema_nodes *spread_out)
{
    for (uint32_t i = 0; i < spread_out->count; i++)
        if (json_key(spread_out->items[i].node, "items")) return true;
    return false;
}

static void enter(struct guide *g, const struct schema_nodes *from, struct str name, struct schema_nodes *out)
{
    struct schema_nodes all;
    spread_all(g, from, &all);
    out->count = 0;
    for (uint32_t i = 0; i < all.count; i++) {
        struct schema_node next = all.items[i];
        next.node = json_get(json_key(all.items[i].node, "properties"), name);
        if (next.node) add_place(out, next);
    }
    for (uint32_t i = 0; out->count == 0 && i < all.count; i++) {
        struct schema_node next = all.items[i];
        next.node = json_key(all.items[i].node, "additionalProperties");
        if (json_is(next.node, JSON_OBJECT)) add_place(out, next); // a name of the author's
    }
}

// ---- describing

static const struct json *first_of(const struct schema_nodes *all, const char *key)
{
    for (uint32_t i = 0; i < all->count; i++) {
        const struct json *value = json_key(all->items[i].node, key);
        if (value) return value;
    }
    return NULL;
}

static void add_type(struct guide *g, struct json *types, struct str type)
{
    if (str_is(type, "null")) return; // a null counts as not given
    for (uint32_t i = 0; i < types->count; i++)
        if (str_eq(types->items[i].text, type)) return;
    json_append(g->arena, types, json_string(type));
}

// Types of the value itself, not of the items of a list.
static struct json types_of(struct guide *g, const struct schema_nodes *from)
{
    struct schema_nodes all = {.count = 0};
    struct json types = json_array();
    for (uint32_t i = 0; i < from->count; i++) spread(g, from->items[i], &all, 0);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct json *type = json_key(all.items[i].node, "type");
        if (json_is(type, JSON_STRING)) add_type(g, &types, type->text);
        for (uint32_t k = 0; json_is(type, JSON_ARRAY) && k < type->count; k++)
            add_type(g, &types, json_text(&type->items[k]));
    }
    return types;
}

// Values of all enums and consts of the value itself.
static struct json allowed_of(struct guide *g, const struct schema_nodes *from)
{
    struct schema_nodes all = {.count = 0};
    struct json allowed = json_array();
    for (uint32_t i = 0; i < from->count; i++) spread(g, from->items[i], &all, 0);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct json *list = json_key(all.items[i].node, "enum"), *one = json_key(all.items[i].node, "const");
        for (uint32_t k = 0; list && k < list->count; k++)
            if (list->items[k].type != JSON_NULL) json_append(g->arena, &allowed, list->items[k]);
        json_append(g->arena, &allowed, json_ref(one));
    }
    return allowed;
}

static bool requires(const struct json *schema, struct str name)
{
    const struct json *list = json_key(schema, "required");
    for (uint32_t k = 0; json_is(list, JSON_ARRAY) && k < list->count; k++)
        if (str_eq(json_text(&list->items[k]), name)) return true;
    return false;
}

static bool is_required(const struct schema_nodes *all, struct str name)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (!all->items[i].maybe && requires(all->items[i].node, name)) return true;
    return false;
}

// Which alternatives have the field: schemas with a title like "with of shell".
static struct json owners_of(struct guide *g, const struct schema_nodes *all, struct str name)
{
    static const struct str prefix = STR_INIT("with of ");
    struct json owners = json_array();
    for (uint32_t i = 0; i < all->count; i++) {
        struct str title = json_text(json_key(all->items[i].node, "title"));
        if (!str_starts(title, prefix) || !json_get(json_key(all->items[i].node, "properties"), name)) continue;
        json_append(g->arena, &owners, JSON_OF(g->arena, {"kind", json_string(str_slice(title, prefix.len, title.len))},
                                               {"required", json_bool(requires(all->items[i].node, name))}));
    }
    return owners;
}

static void describe(struct guide *g, const struct schema_nodes *from, struct json *out)
{
    static const char *const kept[] = {"title",     "description", "default", "examples", "minimum", "maximum",
                                       "minLength", "maxLength",   "pattern", "minItems", "maxItems"};
    struct schema_nodes all = {.count = 0}, items = {.count = 0};
    for (uint32_t i = 0; i < from->count; i++) spread(g, from->items[i], &all, 0);
    struct json types = types_of(g, from), allowed = allowed_of(g, from);
    JSON_ADD(g->arena, out, {"types", types});
    for (uint32_t i = 0; i < all.count; i++) {
        struct schema_node item = all.items[i];
        item.node = json_key(all.items[i].node, "items");
        if (item.node) add_place(&items, item);
    }
    JSON_ADD(g->arena, out, {"itemTypes", items.count > 0 ? types_of(g, &items) : json_none()});
    if (json_ok(&allowed) && allowed.count == 0 && items.count > 0) allowed = allowed_of(g, &items);
    JSON_ADD(g->arena, out, {"allowed", json_filled(allowed)});
    for (size_t i = 0; i < ARRAY_COUNT(kept); i++) {
        const struct json *value = first_of(&all, kept[i]);
        JSON_ADD(g->arena, out, {kept[i], json_ref(value)});
    }
}

// Another name of a field is listed with it, not as a field.
static bool is_alias(const struct json *schema)
{
    return str_starts(json_text(json_key(schema, "description")), STR("Another name of"));
}

static struct json fields_of(struct guide *g, const struct schema_nodes *from)
{
    struct schema_nodes all;
    struct json fields = json_array();
    spread_all(g, from, &all);
    for (uint32_t i = 0; i < all.count; i++) {
        const struct json *properties = json_key(all.items[i].node, "properties");
        for (uint32_t k = 0; json_is(properties, JSON_OBJECT) && k < properties->count; k++) {
            const struct json_member *m = &properties->members[k];
            bool seen = false;
            for (uint32_t n = 0; n < fields.count; n++)
                seen |= str_eq(json_text(json_key(&fields.items[n], "name")), m->key);
            struct schema_nodes own;
            if (seen || is_alias(&m->value)) continue;
            enter(g, from, m->key, &own);
            struct json field = JSON_OF(g->arena, {"name", json_string(m->key)},
                                        {"required", json_bool(is_required(&all, m->key))});
            struct json owners = owners_of(g, &all, m->key);
            JSON_ADD(g->arena, &field, {"kinds", json_filled(owners)});
            describe(g, &own, &field);
            json_append(g->arena, &fields, field);
        }
    }
    return fields;
}

static const char *nearest_field(struct guide *g, const struct schema_nodes *from, struct str name)
{
    struct json fields = fields_of(g, from);
    const char *best = NULL;
    size_t least = name.len < 4 ? 2 : name.len < 8 ? 3 : 4;
    for (uint32_t i = 0; i < fields.count; i++) {
        struct str other = json_text(json_key(&fields.items[i], "name"));
        size_t distance = str_distance(name, other, least);
        if (distance >= least) continue;
        struct str copy = arena_copy(g->arena, other);
        if (!copy.ptr) continue;
        least = distance;
        best = copy.ptr;
    }
    return best;
}

enum code author_schema(struct str file, struct str path, struct arena *arena, struct json *out, struct json *raw,
                        const char **nearest, struct error *err)
{
    struct guide g = {.arena = arena};
    struct schema_nodes now = {.count = 0}, next;
    *nearest = NULL;
    const struct json *root = root_of(&g, file);
    if (!root) return error_set(err, E_NOT_FOUND, "there is no schema %.*s", STR_ARG(file));
    add_place(&now, (struct schema_node){.file = file, .root = root, .node = root});
    struct buf shown SCOPED(buf_release) = buf_of(1024);
    while (path.len > 0) {
        struct str name = str_cut(path, '.', &path);
        if (str_ends(name, STR("[]"))) name.len -= 2;
        enter(&g, &now, name, &next);
        if (next.count == 0) {
            *nearest = nearest_field(&g, &now, name);
            error_set(err, E_NOT_FOUND, "there is no \"%.*s\" in %s", STR_ARG(name),
                      shown.len ? shown.ptr : "the document");
            return E_NOT_FOUND;
        }
        struct schema_nodes all = {.count = 0};
        for (uint32_t i = 0; i < next.count; i++) spread(&g, next.items[i], &all, 0);
        buf_printf(&shown, "%s%.*s%s", shown.len ? "." : "", STR_ARG(name), is_list(&all) ? "[]" : "");
        now = next;
    }
    *out = JSON_OF(arena, {"path", json_text_made(buf_keep(&shown, arena))});
    describe(&g, &now, out);
    JSON_ADD(g.arena, out, {"fields", fields_of(&g, &now)});
    struct schema_node at = now.items[0];
    for (uint32_t i = 0; i < DEPTH_MAX && json_key(at.node, "$ref"); i++) {
        struct schema_node next_place;
        if (!follow(&g, &at, json_text(json_key(at.node, "$ref")), &next_place)) break;
        at = next_place;
    }
    *raw = *at.node;
    return json_made(out, err);
}
