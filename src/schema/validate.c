// Applying a compiled schema. No allocation: the way down is a list of frames on the stack (struct step), presence of
// names is a bit set on the stack, and a fault is written only where it decides. Alternatives are first tried without
// telling; only when none fits are they tried again to find the most telling fault.
#include "schema/internal.h"

#include <string.h>

enum { NESTING_MAX = 1000, STEPS_MAX = 20000000 };

static bool check_schema(struct check *c, const struct schema *schema, const struct step *at);

static uint8_t value_type(const struct json *value)
{
    static const uint8_t bits[] = {
        [JSON_NULL] = TYPE_NULL,       [JSON_BOOL] = TYPE_BOOLEAN,  [JSON_INT] = TYPE_INTEGER,
        [JSON_NUMBER] = TYPE_FRACTION, [JSON_STRING] = TYPE_STRING, [JSON_ARRAY] = TYPE_ARRAY,
        [JSON_OBJECT] = TYPE_OBJECT,
    };
    INVARIANT(value->type >= JSON_NULL && value->type <= JSON_OBJECT);
    if (value->type == JSON_NUMBER) {
        char unused[DECIMAL_SCRATCH];
        struct decimal d = decimal_of(value, unused);
        return decimal_integral(&d) ? TYPE_INTEGER : TYPE_FRACTION;
    }
    return bits[value->type];
}

static bool quiet(struct check *c, const struct schema *schema, const struct step *at)
{
    struct schema_fault *fault = c->fault;
    c->fault = NULL;
    bool fits = check_schema(c, schema, at);
    c->fault = fault;
    return fits;
}

// ---- values

static bool same(const struct json *wanted, const struct json *value)
{
    if (wanted->type == JSON_STRING) return value->type == JSON_STRING && str_eq(wanted->text, value->text);
    return json_equal(wanted, value);
}

static bool check_values(struct check *c, const struct schema *schema, const struct step *at)
{
    if (schema->constant && !same(schema->constant, at->value)) return fault_value(c, at, "must be", schema->constant);
    if (!schema->options) return true;
    for (uint32_t i = 0; i < schema->options->count; i++) {
        if (same(&schema->options->items[i], at->value)) return true;
    }
    return fault_value(c, at, "must be one of", schema->options);
}

static int bound_cmp(const struct json *value, const struct bound *bound)
{
    if (value->type == JSON_INT && bound->source->type == JSON_INT)
        return (value->integer > bound->source->integer) - (value->integer < bound->source->integer);
    char scratch[DECIMAL_SCRATCH];
    struct decimal d = decimal_of(value, scratch);
    return decimal_cmp(&d, &bound->value);
}

static bool check_number(struct check *c, const struct number_rules *rules, const struct step *at)
{
    const struct json *value = at->value;
    if (rules->minimum.source && bound_cmp(value, &rules->minimum) < 0)
        return fault_value(c, at, "must be at least", rules->minimum.source);
    if (rules->maximum.source && bound_cmp(value, &rules->maximum) > 0)
        return fault_value(c, at, "must be at most", rules->maximum.source);
    if (rules->exclusive_minimum.source && bound_cmp(value, &rules->exclusive_minimum) <= 0)
        return fault_value(c, at, "must be above", rules->exclusive_minimum.source);
    if (rules->exclusive_maximum.source && bound_cmp(value, &rules->exclusive_maximum) >= 0)
        return fault_value(c, at, "must be below", rules->exclusive_maximum.source);
    if (!rules->multiple_of) return true;
    char scratch[DECIMAL_SCRATCH];
    struct decimal d = decimal_of(value, scratch);
    bool fits = decimal_divides(&rules->divisor, &d);
    if (!fits) fault_value(c, at, "must be a multiple of", rules->multiple_of);
    return fits;
}

static uint64_t length_of(struct str text)
{
    uint64_t length = 0;
    for (size_t i = 0; i < text.len; i++) length += ((unsigned char)text.ptr[i] & 0xC0) != 0x80;
    return length;
}

static bool check_string(struct check *c, const struct schema *schema, const struct step *at)
{
    struct str text = at->value->text;
    // A character has one to four bytes, so most lengths need no counting.
    if (text.len > schema->max_length || text.len / 4 < schema->min_length) {
        uint64_t length = length_of(text);
        if (length < schema->min_length || length > schema->max_length)
            return fault_count(c, at, "must have", " characters, has ",
                               (struct count_range){schema->min_length, schema->max_length}, length);
    }
    if (schema->pattern && !pattern_match(schema->pattern, text)) {
        struct json wanted = json_string(schema->pattern->text);
        return fault_value(c, at, "must match the pattern", &wanted);
    }
    return true;
}

// ---- arrays

static bool check_contains(struct check *c, const struct array_rules *rules, const struct step *at)
{
    const struct json *value = at->value;
    uint64_t found = 0;
    for (uint32_t i = 0; i < value->count; i++) {
        struct step item = {at, {NULL, 0}, i, &value->items[i], at->depth + 1};
        found += quiet(c, rules->contains, &item);
        if (found > rules->max_contains || (found >= rules->min_contains && rules->max_contains == UINT64_MAX)) break;
    }
    if (found >= rules->min_contains && found <= rules->max_contains) return true;
    return fault_count(c, at, "must contain", " items of the wanted kind, has ",
                       (struct count_range){rules->min_contains, rules->max_contains}, found);
}

static bool check_array(struct check *c, const struct array_rules *rules, const struct step *at)
{
    const struct json *value = at->value;
    if (value->count < rules->min_items || value->count > rules->max_items)
        return fault_count(c, at, "must have", " items, has ", (struct count_range){rules->min_items, rules->max_items},
                           value->count);
    uint32_t end = rules->items ? value->count : rules->prefix.count;
    for (uint32_t i = 0; i < end && i < value->count; i++) {
        const struct schema *schema = i < rules->prefix.count ? rules->prefix.at[i] : rules->items;
        struct step item = {at, {NULL, 0}, i, &value->items[i], at->depth + 1};
        if (!check_schema(c, schema, &item)) return false;
    }
    if (rules->contains && !check_contains(c, rules, at)) return false;
    uint32_t first, second;
    if (rules->unique && !values_unique(value, &first, &second))
        return fault_pair(c, at, "items must differ, but ", first, second, " are equal");
    return true;
}

// ---- objects

static bool check_name(struct check *c, const struct schema *schema, const struct step *at, struct str key)
{
    struct json name = json_string(key);
    struct step here = {at, {NULL, 0}, 0, &name, at->depth + 1};
    if (quiet(c, schema, &here)) return true;
    return fault_key(c, at, "has a property whose name is not allowed:", key);
}

static bool check_member(struct check *c, const struct object_rules *rules, const struct step *at,
                         const struct schema *schema)
{
    if (schema && !check_schema(c, schema, at)) return false;
    bool known = schema != NULL;
    for (uint32_t i = 0; i < rules->pattern_count; i++) {
        if (!pattern_match(rules->patterns[i].pattern, at->key)) continue;
        known = true;
        if (!check_schema(c, rules->patterns[i].schema, at)) return false;
    }
    if (known || !rules->additional) return true;
    if (rules->additional->never) {
        fault_unknown(c, at, rules);
        return false;
    }
    return check_schema(c, rules->additional, at);
}

static bool seen(const uint64_t *bits, uint32_t bit)
{
    return bits[bit / 64] >> (bit % 64) & 1;
}

static bool check_required(struct check *c, const struct object_rules *rules, const struct step *at,
                           const uint64_t *bits)
{
    for (uint32_t i = 0; i < rules->required_count; i++) {
        if (!seen(bits, rules->required[i]))
            return fault_key(c, at, "lacks the property", rules->tracked[rules->required[i]]);
    }
    for (uint32_t i = 0; i < rules->dependency_count; i++) {
        const struct dependency *dependency = &rules->dependencies[i];
        if (!seen(bits, dependency->trigger)) continue;
        for (uint32_t j = 0; j < dependency->required_count; j++) {
            if (!seen(bits, dependency->required[j]))
                return fault_key(c, at, "lacks a property that another one asks for:",
                                 rules->tracked[dependency->required[j]]);
        }
        if (dependency->schema && !check_schema(c, dependency->schema, at)) return false;
    }
    return true;
}

static bool check_object(struct check *c, const struct object_rules *rules, const struct step *at)
{
    const struct json *value = at->value;
    if (value->count < rules->min_properties || value->count > rules->max_properties)
        return fault_count(c, at, "must have", " properties, has ",
                           (struct count_range){rules->min_properties, rules->max_properties}, value->count);
    uint64_t bits[TRACKED_NAME_MAX / 64];
    memset(bits, 0, (rules->tracked_count + 63) / 64 * sizeof(bits[0]));
    for (uint32_t i = 0; i < value->count; i++) {
        const struct json_member *member = &value->members[i];
        struct step here = {at, member->key, 0, &member->value, at->depth + 1};
        if (!here.key.ptr) here.key = STR("");
        if (rules->property_names && !check_name(c, rules->property_names, at, member->key)) return false;
        uint32_t index = map_get(&rules->by_name, member->key);
        const struct name_rule *name = index == MAP_NONE ? NULL : &rules->names[index];
        if (name && name->bit >= 0) bits[name->bit / 64] |= UINT64_C(1) << (name->bit % 64);
        if (!check_member(c, rules, &here, name ? name->schema : NULL)) return false;
    }
    return check_required(c, rules, at, bits);
}

// ---- schemas for the same value

// Could this alternative be the one that was meant: right type, and no property that says otherwise?
static bool is_meant(const struct schema *schema, const struct json *value)
{
    while (schema->ref) schema = schema->ref;
    if (schema->never || !(schema->types & value_type(value))) return false;
    for (uint32_t i = 0; schema->object && value->type == JSON_OBJECT && i < schema->object->name_count; i++) {
        const struct name_rule *name = &schema->object->names[i];
        const struct schema *property = name->schema;
        while (property && property->ref) property = property->ref;
        const struct json *found = property && property->constant ? json_get(value, name->key) : NULL;
        if (found && !same(property->constant, found)) return false;
    }
    return true;
}

static void tell_none(struct check *c, const struct schemas *list, const struct step *at)
{
    uint32_t meant = 0;
    uint8_t types = 0;
    const struct schema *only = NULL;
    for (uint32_t i = 0; i < list->count; i++) {
        types |= list->at[i]->never || list->at[i]->ref ? 0 : list->at[i]->types;
        if (is_meant(list->at[i], at->value)) {
            meant++;
            only = list->at[i];
        }
    }
    if (!meant && types && !(types & value_type(at->value))) {
        fault_type(c, at, types);
        return;
    }
    uint32_t before = c->fault_depth;
    for (uint32_t i = 0; i < list->count && !c->stopped; i++) {
        if (meant != 1 || list->at[i] == only) check_schema(c, list->at[i], at);
    }
    bool same_level = c->fault_depth == at->depth + 1 && before < c->fault_depth;
    if (meant != 1 && same_level) fault_none(c, at, list->count);
}

static bool check_any(struct check *c, const struct schemas *list, const struct step *at)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (quiet(c, list->at[i], at)) return !c->stopped;
    }
    if (c->fault && !c->stopped) tell_none(c, list, at);
    return false;
}

static bool check_one(struct check *c, const struct schemas *list, const struct step *at)
{
    uint32_t found = list->count;
    for (uint32_t i = 0; i < list->count; i++) {
        if (!quiet(c, list->at[i], at)) continue;
        if (found < list->count)
            return fault_pair(c, at, "fits more than one of the forms of which it must fit exactly one (",
                              found + (uint64_t)1, i + (uint64_t)1, ")");
        found = i;
    }
    if (found < list->count) return !c->stopped;
    if (c->fault && !c->stopped) tell_none(c, list, at);
    return false;
}

static bool check_in_place(struct check *c, const struct schema *schema, const struct step *at)
{
    if (schema->ref && !check_schema(c, schema->ref, at)) return false;
    for (uint32_t i = 0; i < schema->all_of.count; i++) {
        if (!check_schema(c, schema->all_of.at[i], at)) return false;
    }
    if (schema->any_of.count && !check_any(c, &schema->any_of, at)) return false;
    if (schema->one_of.count && !check_one(c, &schema->one_of, at)) return false;
    if (schema->not_schema && quiet(c, schema->not_schema, at))
        return fault_text(c, at, "fits what is excluded by \"not\"");
    if (!schema->if_schema) return true;
    bool holds = quiet(c, schema->if_schema, at);
    const struct schema *next = holds ? schema->then_schema : schema->else_schema;
    return !next || check_schema(c, next, at);
}

// ---- one schema, one value

static bool check_inside(struct check *c, const struct schema *schema, const struct step *at)
{
    bool fits = true;
    if (schema->object && at->value->type == JSON_OBJECT)
        fits = check_object(c, schema->object, at);
    else if (schema->array && at->value->type == JSON_ARRAY)
        fits = check_array(c, schema->array, at);
    return fits && (!schema->in_place || check_in_place(c, schema, at));
}

static bool stop(struct check *c, const struct step *at)
{
    if (!c->stopped) fault_text(c, at, "takes too long or nests too deep to check");
    c->stopped = true;
    return false;
}

static bool check_schema(struct check *c, const struct schema *schema, const struct step *at)
{
    if (c->stopped || ++c->steps > STEPS_MAX) return stop(c, at);
    if (schema->never) return fault_text(c, at, "nothing is allowed here");
    const struct json *value = at->value;
    if (schema->types != TYPE_ANY && !(schema->types & value_type(value))) {
        fault_type(c, at, schema->types);
        return false;
    }
    if ((schema->constant || schema->options) && !check_values(c, schema, at)) return false;
    if (value->type == JSON_STRING) {
        if (!check_string(c, schema, at)) return false;
    } else if (schema->number && (value->type == JSON_INT || value->type == JSON_NUMBER)) {
        if (!check_number(c, schema->number, at)) return false;
    }
    if (!schema->in_place && !schema->object && !schema->array) return true;
    if (c->nesting == NESTING_MAX) return stop(c, at);
    c->nesting++;
    bool fits = check_inside(c, schema, at);
    c->nesting--;
    return fits && !c->stopped;
}

bool schema_valid(const struct schema *schema, const struct json *value, struct schema_fault *fault)
{
    if (fault) *fault = (struct schema_fault){.value = value};
    struct check c = {.fault = fault};
    struct step root = {.value = value};
    bool fits = check_schema(&c, schema, &root);
    if (!fits && fault && !fault->message[0]) fault_text(&c, &root, "takes too long or nests too deep to check");
    return fits;
}
