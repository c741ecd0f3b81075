// Compiling is a work list: a schema that is met gets an empty node at once and is filled in later, so recursive schemas
// and long chains of references need no recursion here.
#include "schema/internal.h"

enum { IN_PLACE_HEIGHT_MAX = 200 };

enum code compile_fault(const struct compile *c, enum code code, const struct json *at, const char *keyword,
                        const char *demand)
{
    return error_at(c->err, code, at->line, at->column, "schema %.*s: \"%s\" %s", STR_ARG(c->resource->uri), keyword,
                    demand);
}

// ---- nodes

static size_t memo_slot(const struct memo *memos, size_t capacity, const struct json *source)
{
    uint64_t hash = (uint64_t)(uintptr_t)source * UINT64_C(0x9E3779B97F4A7C15);
    size_t slot = (size_t)(hash >> 32) & (capacity - 1);
    while (memos[slot].source && memos[slot].source != source) slot = (slot + 1) & (capacity - 1);
    return slot;
}

static bool memo_room(struct schema_set *set)
{
    if (set->memo_count * 2 < set->memo_capacity) return true;
    size_t capacity = set->memo_capacity ? set->memo_capacity * 2 : 64;
    struct memo *memos = ARENA_ARRAY(set->arena, capacity, struct memo);
    if (!memos) return false;
    for (size_t i = 0; i < set->memo_capacity; i++) {
        if (set->memos[i].source) memos[memo_slot(memos, capacity, set->memos[i].source)] = set->memos[i];
    }
    set->memos = memos;
    set->memo_capacity = capacity;
    return true;
}

static bool enqueue(struct schema_set *set, struct memo memo)
{
    if (!ARENA_ROOM(set->arena, set->queue, set->queue_count, &set->queue_capacity)) return false;
    set->queue[set->queue_count++] = memo;
    return true;
}

const struct schema *compile_later(struct schema_set *set, const struct json *source, const struct resource *resource)
{
    if (!memo_room(set)) return NULL;
    size_t slot = memo_slot(set->memos, set->memo_capacity, source);
    if (set->memos[slot].source) return set->memos[slot].schema;
    struct memo memo = {source, resource, ARENA_NEW(set->arena, struct schema)};
    if (!memo.schema || !enqueue(set, memo)) return NULL;
    set->memos[slot] = memo;
    set->memo_count++;
    return memo.schema;
}

// ---- pieces

static enum code compile_at(const struct compile *c, const char *keyword, const struct json *value,
                            const struct schema **out)
{
    if (value->type != JSON_OBJECT && value->type != JSON_BOOL)
        return compile_fault(c, E_INVALID, value, keyword, "must be a schema: an object, true or false");
    *out = compile_later(c->set, value, c->resource);
    return *out ? OK : error_nomem(c->err);
}

enum code compile_child(const struct compile *c, const char *keyword, const struct schema **out)
{
    const struct json *value = json_key(c->source, keyword);
    *out = NULL;
    return value ? compile_at(c, keyword, value, out) : OK;
}

static enum code compile_list(const struct compile *c, const char *keyword, struct schemas *out)
{
    const struct json *value = json_key(c->source, keyword);
    if (!value) return OK;
    if (value->type != JSON_ARRAY || !value->count)
        return compile_fault(c, E_INVALID, value, keyword, "must be an array of schemas, not empty");
    out->at = (const struct schema **)arena_array(c->set->arena, value->count, sizeof(out->at[0]));
    if (!out->at) return error_nomem(c->err);
    enum code rc = OK;
    for (uint32_t i = 0; i < value->count && !rc; i++) rc = compile_at(c, keyword, &value->items[i], &out->at[i]);
    out->count = value->count;
    return rc;
}

enum code compile_count(const struct compile *c, const char *keyword, uint64_t *out)
{
    const struct json *value = json_key(c->source, keyword);
    if (!value) return OK;
    bool number = value->type == JSON_INT || value->type == JSON_NUMBER;
    char scratch[DECIMAL_SCRATCH];
    struct decimal d = number ? decimal_of(value, scratch) : (struct decimal){0};
    double approximate;
    if (!number || d.negative || !decimal_integral(&d))
        return compile_fault(c, E_INVALID, value, keyword, "must be an integer, 0 or more");
    if (value->type == JSON_INT)
        *out = (uint64_t)value->integer;
    else // 2.0 or 1e3; far beyond any count it makes no difference
        *out = json_double(value, &approximate) && approximate < 1e15 ? (uint64_t)approximate : UINT64_MAX;
    return OK;
}

enum code compile_pattern(const struct compile *c, const char *keyword, struct str text, const struct json *at,
                          const struct pattern **out)
{
    struct error err = {0};
    enum code rc = pattern_compile(text, c->set->arena, out, &err);
    if (rc)
        return error_at(c->err, rc, at->line, at->column, "schema %.*s: \"%s\": %s", STR_ARG(c->resource->uri), keyword,
                        err.message);
    return OK;
}

static enum code compile_defs(const struct compile *c)
{
    const struct json *value = json_key(c->source, "$defs");
    if (!value) return OK;
    if (value->type != JSON_OBJECT) return compile_fault(c, E_INVALID, value, "$defs", "must be an object of schemas");
    enum code rc = OK;
    const struct schema *unused;
    for (uint32_t i = 0; i < value->count && !rc; i++) rc = compile_at(c, "$defs", &value->members[i].value, &unused);
    return rc;
}

static enum code compile_ref(const struct compile *c)
{
    const struct json *value = json_key(c->source, "$ref");
    if (!value) return OK;
    if (value->type != JSON_STRING) return compile_fault(c, E_INVALID, value, "$ref", "must be a string");
    const struct json *target;
    const struct resource *resource;
    struct error why = {0};
    enum code rc = set_find(c->set, c->resource, value->text, &target, &resource, &why);
    if (rc)
        return error_at(c->err, rc, value->line, value->column, "schema %.*s: \"$ref\": %s", STR_ARG(c->resource->uri),
                        why.message);
    c->node->ref = compile_later(c->set, target, resource);
    return c->node->ref ? OK : error_nomem(c->err);
}

static bool type_of(struct str name, uint8_t *types)
{
    static const struct {
        const char *name;
        uint8_t bits;
    } names[] = {
        {"null", TYPE_NULL},     {"boolean", TYPE_BOOLEAN}, {"integer", TYPE_INTEGER}, {"number", TYPE_NUMBER},
        {"string", TYPE_STRING}, {"array", TYPE_ARRAY},     {"object", TYPE_OBJECT},
    };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (str_is(name, names[i].name)) {
            *types |= names[i].bits;
            return true;
        }
    }
    return false;
}

static enum code compile_type(const struct compile *c)
{
    const struct json *value = json_key(c->source, "type");
    c->node->types = TYPE_ANY;
    if (!value) return OK;
    uint8_t types = 0;
    bool fine = value->type == JSON_STRING ? type_of(value->text, &types) : value->type == JSON_ARRAY;
    for (uint32_t i = 0; fine && value->type == JSON_ARRAY && i < value->count; i++)
        fine = type_of(json_text(&value->items[i]), &types);
    if (!fine || !types)
        return compile_fault(c, E_INVALID, value, "type",
                             "must be null, boolean, integer, number, string, array, object or a list of these");
    c->node->types = types;
    return OK;
}

static enum code compile_values(const struct compile *c)
{
    c->node->constant = json_key(c->source, "const");
    c->node->options = json_key(c->source, "enum");
    if (c->node->options && c->node->options->type != JSON_ARRAY)
        return compile_fault(c, E_INVALID, c->node->options, "enum", "must be an array");
    return OK;
}

static enum code compile_string(const struct compile *c)
{
    c->node->max_length = UINT64_MAX;
    enum code rc = compile_count(c, "minLength", &c->node->min_length);
    if (!rc) rc = compile_count(c, "maxLength", &c->node->max_length);
    const struct json *pattern = json_key(c->source, "pattern");
    if (rc || !pattern) return rc;
    if (pattern->type != JSON_STRING) return compile_fault(c, E_INVALID, pattern, "pattern", "must be a string");
    return compile_pattern(c, "pattern", pattern->text, pattern, &c->node->pattern);
}

static enum code compile_in_place(const struct compile *c)
{
    struct schema *node = c->node;
    enum code rc = compile_ref(c);
    if (!rc) rc = compile_list(c, "allOf", &node->all_of);
    if (!rc) rc = compile_list(c, "anyOf", &node->any_of);
    if (!rc) rc = compile_list(c, "oneOf", &node->one_of);
    if (!rc) rc = compile_child(c, "not", &node->not_schema);
    if (!rc) rc = compile_child(c, "if", &node->if_schema);
    if (!rc) rc = compile_child(c, "then", &node->then_schema);
    if (!rc) rc = compile_child(c, "else", &node->else_schema);
    node->in_place = node->ref || node->all_of.count || node->any_of.count || node->one_of.count || node->not_schema ||
                     node->if_schema;
    return rc;
}

static enum code check_keywords(const struct compile *c)
{
    for (uint32_t i = 0; i < c->source->count; i++) {
        const struct json_member *member = &c->source->members[i];
        const struct keyword *keyword = keyword_find(member->key);
        if (!keyword || keyword->kind == KEYWORD_REFUSED)
            return error_at(c->err, E_UNSUPPORTED, member->line, member->column,
                            "schema %.*s: the keyword \"%.*s\" is not %s", STR_ARG(c->resource->uri),
                            STR_ARG(member->key), keyword ? "supported" : "known");
    }
    static const char *const texts[] = {"$id", "$anchor", "$schema", "$comment", "format"};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        const struct json *value = json_key(c->source, texts[i]);
        if (value && value->type != JSON_STRING)
            return compile_fault(c, E_INVALID, value, texts[i], "must be a string");
    }
    const struct json *dialect = json_key(c->source, "$schema");
    struct str fragment;
    if (dialect &&
        !str_is(uri_without_fragment(dialect->text, &fragment), "https://json-schema.org/draft/2020-12/schema"))
        return compile_fault(c, E_UNSUPPORTED, dialect, "$schema",
                             "must be https://json-schema.org/draft/2020-12/schema");
    return OK;
}

static enum code compile_object_schema(struct compile *c)
{
    c->resource = set_resource(c->set, c->source, c->resource);
    if (!c->resource) return error_nomem(c->err);
    static enum code (*const parts[])(const struct compile *) = {
        check_keywords, compile_defs, compile_type, compile_values, compile_string, compile_in_place,
    };
    enum code rc = OK;
    for (size_t i = 0; i < ARRAY_COUNT(parts) && !rc; i++) rc = parts[i](c);
    if (!rc) rc = compile_number(c);
    if (!rc) rc = compile_array(c);
    return rc ? rc : compile_object(c);
}

static enum code compile_one(struct schema_set *set, struct memo memo, struct error *err)
{
    struct compile c = {set, memo.resource, memo.source, memo.schema, err};
    memo.schema->source = memo.source;
    memo.schema->types = TYPE_ANY;
    memo.schema->max_length = UINT64_MAX;
    if (memo.source->type == JSON_BOOL) {
        memo.schema->never = !memo.source->boolean;
        return OK;
    }
    if (memo.source->type != JSON_OBJECT)
        return compile_fault(&c, E_INVALID, memo.source, "$ref", "leads to what is not a schema");
    return compile_object_schema(&c);
}

// ---- schemas that apply to the same value as their parent must not come back to it

static enum code measure(struct schema *schema, int depth, struct error *err);

static enum code measure_child(struct schema *parent, const struct schema *child, int depth, struct error *err)
{
    if (!child) return OK;
    // The graph is still ours to write: schemas become immutable when schema_compile returns.
    struct schema *node = (struct schema *)(uintptr_t)child;
    enum code rc = measure(node, depth + 1, err);
    if (!rc && node->height >= parent->height) parent->height = (uint16_t)(node->height + 1);
    return rc;
}

static enum code measure_list(struct schema *parent, const struct schemas *list, int depth, struct error *err)
{
    enum code rc = OK;
    for (uint32_t i = 0; i < list->count && !rc; i++) rc = measure_child(parent, list->at[i], depth, err);
    return rc;
}

static enum code measure(struct schema *schema, int depth, struct error *err)
{
    if (schema->visit == 2) return OK;
    const struct json *source = schema->source;
    if (schema->visit == 1)
        return error_at(err, E_INVALID, source->line, source->column,
                        "a schema refers to itself for the same value, without end");
    if (depth > IN_PLACE_HEIGHT_MAX)
        return error_at(err, E_LIMIT, source->line, source->column,
                        "more than %d schemas apply to one value through each other", IN_PLACE_HEIGHT_MAX);
    schema->visit = 1;
    const struct schema *singles[] = {schema->ref, schema->not_schema, schema->if_schema, schema->then_schema,
                                      schema->else_schema};
    enum code rc = measure_list(schema, &schema->all_of, depth, err);
    if (!rc) rc = measure_list(schema, &schema->any_of, depth, err);
    if (!rc) rc = measure_list(schema, &schema->one_of, depth, err);
    for (size_t i = 0; i < ARRAY_COUNT(singles) && !rc; i++) rc = measure_child(schema, singles[i], depth, err);
    for (uint32_t i = 0; schema->object && i < schema->object->dependency_count && !rc; i++)
        rc = measure_child(schema, schema->object->dependencies[i].schema, depth, err);
    schema->visit = 2;
    if (!rc && schema->height > IN_PLACE_HEIGHT_MAX)
        return error_at(err, E_LIMIT, source->line, source->column,
                        "more than %d schemas apply to one value through each other", IN_PLACE_HEIGHT_MAX);
    return rc;
}

static enum code compile_all(struct schema_set *set, struct error *err)
{
    enum code rc = OK;
    for (size_t i = 0; i < set->queue_count && !rc; i++) rc = compile_one(set, set->queue[i], err);
    for (size_t i = 0; i < set->queue_count && !rc; i++) rc = measure(set->queue[i].schema, 0, err);
    set->queue_count = 0;
    return rc;
}

enum code schema_compile(struct schema_set *set, struct str uri, const struct schema **out, struct error *err)
{
    const struct resource nowhere = {STR(""), NULL};
    const struct json *source;
    const struct resource *resource;
    struct str fragment;
    if (!uri_without_fragment(uri, &fragment).len)
        return error_set(err, E_NOT_FOUND, "a schema must be named by its document");
    enum code rc = set_find(set, &nowhere, uri, &source, &resource, err);
    if (rc) return rc;
    const struct schema *schema = compile_later(set, source, resource);
    rc = schema ? compile_all(set, err) : error_nomem(err);
    if (rc) {
        // Half-made nodes must not be met again; what was compiled before stays as it is.
        set->queue_count = 0;
        set->memo_count = 0;
        set->memo_capacity = 0;
        return rc;
    }
    *out = schema;
    return OK;
}
