// The keywords for numbers, arrays and objects. Rules of a kind exist only when one of its keywords is there, so that
// validation skips the rest with one test.
#include "schema/internal.h"

static bool has_any(const struct json *source, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (json_key(source, names[i])) return true;
    }
    return false;
}

static enum code number_at(const struct compile *c, const char *keyword, struct bound *out)
{
    const struct json *value = json_key(c->source, keyword);
    if (!value) return OK;
    if (value->type != JSON_INT && value->type != JSON_NUMBER)
        return compile_fault(c, E_INVALID, value, keyword, "must be a number");
    char *scratch = arena_alloc(c->set->arena, DECIMAL_SCRATCH);
    if (!scratch) return error_nomem(c->err);
    *out = (struct bound){value, decimal_of(value, scratch)};
    return OK;
}

enum code compile_number(struct compile *c)
{
    static const char *const names[] = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"};
    if (!has_any(c->source, names, ARRAY_COUNT(names))) return OK;
    struct number_rules *rules = ARENA_NEW(c->set->arena, struct number_rules);
    if (!rules) return error_nomem(c->err);
    struct bound multiple = {0};
    struct bound *const bounds[] = {&rules->minimum, &rules->maximum, &rules->exclusive_minimum,
                                    &rules->exclusive_maximum, &multiple};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        enum code rc = number_at(c, names[i], bounds[i]);
        if (rc) return rc;
    }
    if (multiple.source && !divisor_of(&multiple.value, &rules->divisor))
        return compile_fault(c, E_INVALID, multiple.source, "multipleOf", "must be above 0 and have at most 18 digits");
    rules->multiple_of = multiple.source;
    c->node->number = rules;
    return OK;
}

static enum code compile_prefix(const struct compile *c, struct schemas *out)
{
    const struct json *value = json_key(c->source, "prefixItems");
    if (!value) return OK;
    if (value->type != JSON_ARRAY || !value->count)
        return compile_fault(c, E_INVALID, value, "prefixItems", "must be an array of schemas, not empty");
    out->at = (const struct schema **)arena_array(c->set->arena, value->count, sizeof(out->at[0]));
    if (!out->at) return error_nomem(c->err);
    for (uint32_t i = 0; i < value->count; i++) {
        out->at[i] = compile_later(c->set, &value->items[i], c->resource);
        if (!out->at[i]) return error_nomem(c->err);
    }
    out->count = value->count;
    return OK;
}

enum code compile_array(struct compile *c)
{
    static const char *const names[] = {"items",    "prefixItems", "contains",    "minContains",
                                        "minItems", "maxItems",    "maxContains", "uniqueItems"};
    if (!has_any(c->source, names, ARRAY_COUNT(names))) return OK;
    struct array_rules *rules = ARENA_NEW(c->set->arena, struct array_rules);
    if (!rules) return error_nomem(c->err);
    rules->max_items = UINT64_MAX;
    rules->min_contains = 1;
    rules->max_contains = UINT64_MAX;
    enum code rc = compile_prefix(c, &rules->prefix);
    if (!rc) rc = compile_child(c, "items", &rules->items);
    if (!rc) rc = compile_child(c, "contains", &rules->contains);
    if (!rc) rc = compile_count(c, "minContains", &rules->min_contains);
    if (!rc) rc = compile_count(c, "maxContains", &rules->max_contains);
    if (!rc) rc = compile_count(c, "minItems", &rules->min_items);
    if (!rc) rc = compile_count(c, "maxItems", &rules->max_items);
    const struct json *unique = json_key(c->source, "uniqueItems");
    if (!rc && unique && unique->type != JSON_BOOL)
        rc = compile_fault(c, E_INVALID, unique, "uniqueItems", "must be true or false");
    rules->unique = unique && unique->boolean;
    c->node->array = rules;
    return rc;
}

// ---- objects

struct names {
    struct name_rule *rules;
    struct str *tracked;
    size_t count, capacity, tracked_count;
};

static enum code name_index(const struct compile *c, struct object_rules *rules, struct names *names, struct str key,
                            uint32_t *out)
{
    uint32_t existing;
    if (!map_put(&rules->by_name, key, (uint32_t)names->count, &existing)) return error_nomem(c->err);
    if (existing != MAP_NONE) {
        INVARIANT(names->rules && existing < names->count);
        *out = existing;
        return OK;
    }
    if (!ARENA_ROOM(c->set->arena, names->rules, names->count, &names->capacity)) return error_nomem(c->err);
    *out = (uint32_t)names->count;
    names->rules[names->count++] = (struct name_rule){.key = key, .bit = -1};
    return OK;
}

static enum code name_bit(const struct compile *c, struct object_rules *rules, struct names *names, struct str key,
                          uint32_t *bit)
{
    uint32_t index = 0;
    enum code rc = name_index(c, rules, names, key, &index);
    if (rc) return rc;
    struct name_rule *rule = &names->rules[index];
    if (rule->bit < 0) {
        if (names->tracked_count == TRACKED_NAME_MAX)
            return compile_fault(c, E_LIMIT, c->source, "required", "names too many properties (above 1024)");
        if (!names->tracked) names->tracked = ARENA_ARRAY(c->set->arena, TRACKED_NAME_MAX, struct str);
        if (!names->tracked) return error_nomem(c->err);
        names->tracked[names->tracked_count] = key;
        rule->bit = (int32_t)names->tracked_count++;
    }
    *bit = (uint32_t)rule->bit;
    return OK;
}

static enum code name_list(const struct compile *c, struct object_rules *rules, struct names *names,
                           const char *keyword, const struct json *list, const uint32_t **out, uint32_t *count)
{
    if (list->type != JSON_ARRAY) return compile_fault(c, E_INVALID, list, keyword, "must be an array of strings");
    uint32_t *bits = ARENA_ARRAY(c->set->arena, list->count + (size_t)1, uint32_t);
    if (!bits) return error_nomem(c->err);
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].type != JSON_STRING)
            return compile_fault(c, E_INVALID, &list->items[i], keyword, "must be an array of strings");
        enum code rc = name_bit(c, rules, names, list->items[i].text, &bits[i]);
        if (rc) return rc;
    }
    *out = bits;
    *count = list->count;
    return OK;
}

// A keyword whose value is an object; *out is NULL when it is not there.
static enum code object_at(const struct compile *c, const char *keyword, const struct json **out)
{
    *out = json_key(c->source, keyword);
    if (*out && (*out)->type != JSON_OBJECT) return compile_fault(c, E_INVALID, *out, keyword, "must be an object");
    return OK;
}

static enum code compile_properties(const struct compile *c, struct object_rules *rules, struct names *names)
{
    const struct json *properties;
    enum code rc = object_at(c, "properties", &properties);
    for (uint32_t i = 0; properties && i < properties->count && !rc; i++) {
        const struct json_member *member = &properties->members[i];
        uint32_t index = 0;
        rc = name_index(c, rules, names, member->key, &index);
        if (rc) return rc;
        names->rules[index].schema = compile_later(c->set, &member->value, c->resource);
        if (!names->rules[index].schema) return error_nomem(c->err);
    }
    return rc;
}

static enum code compile_patterns(const struct compile *c, struct object_rules *rules)
{
    const struct json *patterns;
    enum code rc = object_at(c, "patternProperties", &patterns);
    if (rc || !patterns || !patterns->count) return rc;
    struct pattern_rule *out = ARENA_ARRAY(c->set->arena, patterns->count, struct pattern_rule);
    if (!out) return error_nomem(c->err);
    for (uint32_t i = 0; i < patterns->count; i++) {
        const struct json_member *member = &patterns->members[i];
        rc = compile_pattern(c, "patternProperties", member->key, &member->value, &out[i].pattern);
        if (rc) return rc;
        out[i].schema = compile_later(c->set, &member->value, c->resource);
        if (!out[i].schema) return error_nomem(c->err);
    }
    rules->patterns = out;
    rules->pattern_count = patterns->count;
    return OK;
}

static enum code compile_dependencies(const struct compile *c, struct object_rules *rules, struct names *names)
{
    const struct json *lists, *schemas;
    enum code rc = object_at(c, "dependentRequired", &lists);
    if (!rc) rc = object_at(c, "dependentSchemas", &schemas);
    if (rc || (!lists && !schemas)) return rc;
    uint32_t list_count = lists ? lists->count : 0;
    uint32_t total = list_count + (schemas ? schemas->count : 0);
    struct dependency *out = ARENA_ARRAY(c->set->arena, total + (size_t)1, struct dependency);
    if (!out) return error_nomem(c->err);
    for (uint32_t i = 0; i < total && !rc; i++) {
        bool list = i < list_count;
        const struct json_member *member = list ? &lists->members[i] : &schemas->members[i - list_count];
        rc = name_bit(c, rules, names, member->key, &out[i].trigger);
        if (!rc && list)
            rc = name_list(c, rules, names, "dependentRequired", &member->value, &out[i].required,
                           &out[i].required_count);
        if (rc || list) continue;
        out[i].schema = compile_later(c->set, &member->value, c->resource);
        if (!out[i].schema) return error_nomem(c->err);
    }
    rules->dependencies = out;
    rules->dependency_count = total;
    return rc;
}

static enum code compile_members(const struct compile *c, struct object_rules *rules)
{
    struct names names = {0};
    const struct json *required = json_key(c->source, "required");
    enum code rc = compile_properties(c, rules, &names);
    if (!rc && required)
        rc = name_list(c, rules, &names, "required", required, &rules->required, &rules->required_count);
    if (!rc) rc = compile_dependencies(c, rules, &names);
    rules->names = names.rules;
    rules->name_count = (uint32_t)names.count;
    rules->tracked = names.tracked;
    rules->tracked_count = (uint32_t)names.tracked_count;
    return rc;
}

enum code compile_object(struct compile *c)
{
    static const char *const names[] = {"properties",       "patternProperties", "additionalProperties",
                                        "propertyNames",    "required",          "dependentRequired",
                                        "dependentSchemas", "minProperties",     "maxProperties"};
    if (!has_any(c->source, names, ARRAY_COUNT(names))) return OK;
    struct object_rules *rules = ARENA_NEW(c->set->arena, struct object_rules);
    if (!rules) return error_nomem(c->err);
    rules->max_properties = UINT64_MAX;
    map_init(&rules->by_name, c->set->arena);
    enum code rc = compile_members(c, rules);
    if (!rc) rc = compile_patterns(c, rules);
    if (!rc) rc = compile_child(c, "additionalProperties", &rules->additional);
    if (!rc) rc = compile_child(c, "propertyNames", &rules->property_names);
    if (!rc) rc = compile_count(c, "minProperties", &rules->min_properties);
    if (!rc) rc = compile_count(c, "maxProperties", &rules->max_properties);
    c->node->object = rules;
    return rc;
}
