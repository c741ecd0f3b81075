// What Python does with values: truth, equality, order, membership, members, items and slices.
#include "template/internal.h"

#include <string.h>

struct json value_undefined(void)
{
    return (struct json){.type = TEMPLATE_UNDEFINED};
}

struct json value_float(double d)
{
    struct json v = {.type = VALUE_FLOAT};
    memcpy(&v.integer, &d, sizeof(d));
    return v;
}

double value_double(const struct json *v)
{
    double d;
    memcpy(&d, &v->integer, sizeof(d));
    return d;
}

struct json value_tuple(void)
{
    return (struct json){.type = VALUE_TUPLE};
}

bool value_is_list(const struct json *v)
{
    return v->type == JSON_ARRAY || v->type == VALUE_TUPLE;
}

bool value_number(const struct json *v, struct number *out)
{
    *out = (struct number){0};
    switch (v->type) {
    case JSON_BOOL:
        out->integer = v->boolean;
        break;
    case JSON_INT:
        out->integer = v->integer;
        break;
    case VALUE_FLOAT:
        out->is_float = true;
        out->real = value_double(v);
        return true;
    case JSON_NUMBER:
        out->is_large = json_is_integer(v);
        out->is_float = !out->is_large;
        if (!json_double(v, &out->real)) out->real = v->text.ptr[0] == '-' ? -__builtin_inf() : __builtin_inf();
        return true;
    default:
        return false;
    }
    out->real = (double)out->integer;
    return true;
}

struct json value_integer(const struct json *v)
{
    return v->type == JSON_BOOL ? json_int(v->boolean) : *v;
}

bool value_truth(const struct json *v)
{
    struct number n;
    switch (v->type) {
    case JSON_STRING:
        return v->text.len > 0;
    case JSON_ARRAY:
    case VALUE_TUPLE:
    case JSON_OBJECT:
        return v->count > 0;
    case VALUE_LOOP:
    case VALUE_NAMESPACE:
    case VALUE_MACRO:
        return true;
    default:
        return value_number(v, &n) && (n.real < 0 || n.real > 0);
    }
}

const char *value_type_name(const struct json *v)
{
    struct number n;
    switch (v->type) {
    case TEMPLATE_UNDEFINED:
        return "Undefined";
    case JSON_NULL:
        return "NoneType";
    case JSON_BOOL:
        return "bool";
    case JSON_STRING:
        return "str";
    case JSON_ARRAY:
        return "list";
    case VALUE_TUPLE:
        return "tuple";
    case JSON_OBJECT:
        return "dict";
    case VALUE_LOOP:
        return "LoopContext";
    case VALUE_NAMESPACE:
        return "Namespace";
    case VALUE_MACRO:
        return "Macro";
    default:
        return value_number(v, &n) && n.is_float ? "float" : "int";
    }
}

enum code value_push(struct eval *e, struct json *list, struct json item)
{
    uint8_t type = list->type;
    enum code rc = eval_charge(e, 1);
    if (rc) return rc;
    list->type = JSON_ARRAY;
    bool ok = json_push(e->arena, list, item);
    list->type = type;
    return ok ? OK : error_nomem(e->err);
}

enum code value_put(struct eval *e, struct json *dict, struct str key, struct json item)
{
    enum code rc = eval_charge(e, 1 + dict->count / 16);
    if (rc) return rc;
    for (uint32_t i = 0; i < dict->count; i++) {
        if (!str_eq(dict->members[i].key, key)) continue;
        dict->members[i].value = item;
        return OK;
    }
    return json_put(e->arena, dict, key, item) ? OK : error_nomem(e->err);
}

// ---- comparison

// A number of which all digits are known. Those of a float are the double's, as in Python, unless it is beyond them.
static struct json exact(const struct json *v, const struct number *n, char text[JSON_WHOLE_SIZE])
{
    if (!n->is_float) return value_integer(v);
    if (!__builtin_isfinite(n->real)) return *v;
    bool whole = __builtin_fabs(n->real) >= 9007199254740992.0;
    size_t len = whole ? json_whole_format(n->real, text) : json_real_format(n->real, text);
    return json_number((struct str){text, len});
}

static int compare_numbers(const struct json *v, const struct number *a, const struct json *w, const struct number *b)
{
    char left[JSON_WHOLE_SIZE], right[JSON_WHOLE_SIZE];
    if (a->is_float && b->is_float && __builtin_isfinite(a->real) && __builtin_isfinite(b->real))
        return (a->real > b->real) - (a->real < b->real);
    struct json x = exact(v, a, left), y = exact(w, b, right);
    return json_number_cmp(&x, &y);
}

static enum code equal_within(struct eval *e, const struct json *a, const struct json *b, uint32_t depth, bool *out);

static enum code equal_items(struct eval *e, const struct json *a, const struct json *b, uint32_t depth, bool *out)
{
    *out = a->count == b->count;
    for (uint32_t i = 0; *out && i < a->count; i++) {
        enum code rc = equal_within(e, &a->items[i], &b->items[i], depth + 1, out);
        if (rc) return rc;
    }
    return OK;
}

static enum code equal_members(struct eval *e, const struct json *a, const struct json *b, uint32_t depth, bool *out)
{
    *out = a->count == b->count;
    for (uint32_t i = 0; *out && i < a->count; i++) {
        const struct json *other = json_get(b, a->members[i].key);
        enum code rc = eval_charge(e, b->count / 16);
        *out = other != NULL;
        if (!rc && other) rc = equal_within(e, &a->members[i].value, other, depth + 1, out);
        if (rc) return rc;
    }
    return OK;
}

static enum code equal_within(struct eval *e, const struct json *a, const struct json *b, uint32_t depth, bool *out)
{
    struct number x, y;
    enum code rc = eval_charge(e, 1);
    if (rc) return rc;
    if (depth > VALUE_DEPTH) return eval_fault(e, E_LIMIT, "values of more than %d levels", VALUE_DEPTH);
    *out = false;
    if (value_number(a, &x) && value_number(b, &y)) {
        *out = compare_numbers(a, &x, b, &y) == 0;
        return OK;
    }
    if (a->type != b->type) return OK;
    switch (a->type) {
    case JSON_STRING:
        *out = str_eq(a->text, b->text);
        return eval_charge(e, a->text.len / BYTES_PER_STEP);
    case JSON_ARRAY:
    case VALUE_TUPLE:
        return equal_items(e, a, b, depth, out);
    case JSON_OBJECT:
        return equal_members(e, a, b, depth, out);
    case VALUE_LOOP:
    case VALUE_NAMESPACE:
    case VALUE_MACRO:
        *out = a->text.ptr == b->text.ptr;
        return OK;
    default: // None and undefined
        *out = true;
        return OK;
    }
}

enum code value_equal(struct eval *e, const struct json *a, const struct json *b, bool *out)
{
    return equal_within(e, a, b, 0, out);
}

static enum code compare_within(struct eval *e, const struct json *a, const struct json *b, uint32_t depth, int *out)
{
    struct number x, y;
    enum code rc = eval_charge(e, 1);
    if (rc) return rc;
    if (depth > VALUE_DEPTH) return eval_fault(e, E_LIMIT, "values of more than %d levels", VALUE_DEPTH);
    if (a->type == TEMPLATE_UNDEFINED || b->type == TEMPLATE_UNDEFINED)
        return eval_undefined(e, "a value that is compared");
    if (value_number(a, &x) && value_number(b, &y)) {
        *out = compare_numbers(a, &x, b, &y);
        return OK;
    }
    if (a->type == JSON_STRING && b->type == JSON_STRING) {
        *out = str_cmp(a->text, b->text); // UTF-8 sorts as its code points do
        return eval_charge(e, a->text.len / BYTES_PER_STEP);
    }
    if (!value_is_list(a) || a->type != b->type)
        return eval_fault(e, E_INVALID, "%s and %s have no order", value_type_name(a), value_type_name(b));
    for (uint32_t i = 0; i < a->count && i < b->count; i++) {
        bool equal;
        rc = equal_within(e, &a->items[i], &b->items[i], depth + 1, &equal);
        if (rc) return rc;
        if (!equal) return compare_within(e, &a->items[i], &b->items[i], depth + 1, out);
    }
    *out = (a->count > b->count) - (a->count < b->count);
    return OK;
}

enum code value_compare(struct eval *e, const struct json *a, const struct json *b, int *out)
{
    return compare_within(e, a, b, 0, out);
}

enum code value_in(struct eval *e, const struct json *item, const struct json *container, bool *out)
{
    enum code rc = OK;
    *out = false;
    switch (container->type) {
    case JSON_STRING:
        if (item->type != JSON_STRING)
            return eval_fault(e, E_INVALID, "a %s cannot be in a str", value_type_name(item));
        rc = eval_charge(e, container->text.len / BYTES_PER_STEP);
        if (!rc) *out = text_find(container->text, item->text, 0) != SIZE_MAX;
        return rc;
    case JSON_OBJECT:
        if (value_is_list(item) || item->type == JSON_OBJECT)
            return eval_fault(e, E_INVALID, "a %s cannot be a key", value_type_name(item));
        *out = item->type == JSON_STRING && json_get(container, item->text);
        return eval_charge(e, container->count / 16);
    case JSON_ARRAY:
    case VALUE_TUPLE:
        for (uint32_t i = 0; i < container->count && !*out && !rc; i++)
            rc = value_equal(e, item, &container->items[i], out);
        return rc;
    case TEMPLATE_UNDEFINED:
        return eval_use(e, container);
    default:
        return eval_fault(e, E_INVALID, "nothing is in a %s", value_type_name(container));
    }
}

// ---- parts

enum code value_index(struct eval *e, const struct json *v, const char *what, int64_t *out)
{
    struct number n;
    if (v->type == TEMPLATE_UNDEFINED) return eval_undefined(e, what);
    if (!value_number(v, &n) || n.is_float)
        return eval_fault(e, E_INVALID, "%s must be an int and is a %s", what, value_type_name(v));
    if (n.is_large) return eval_fault(e, E_LIMIT, "%s is beyond 64 bits", what);
    *out = n.integer;
    return OK;
}

enum code value_length(struct eval *e, const struct json *v, int64_t *out)
{
    enum code rc = eval_use(e, v);
    *out = 0;
    if (rc || v->type == TEMPLATE_UNDEFINED) return rc;
    if (v->type == JSON_STRING) {
        rc = eval_charge(e, v->text.len / BYTES_COUNTED);
        if (!rc) *out = (int64_t)text_count(v->text);
        return rc;
    }
    if (v->type == VALUE_LOOP) {
        *out = ((const struct loop *)(const void *)v->text.ptr)->count;
        return OK;
    }
    if (!value_is_list(v) && v->type != JSON_OBJECT)
        return eval_fault(e, E_INVALID, "a %s has no length", value_type_name(v));
    *out = v->count;
    return OK;
}

static enum code characters(struct eval *e, struct str s, struct json *out)
{
    enum code rc = OK;
    *out = json_array();
    for (size_t at = 0; at < s.len && !rc;) {
        size_t size = str_utf8_size(s, at);
        if (!size) size = 1;
        rc = value_push(e, out, json_string(str_slice(s, at, at + size)));
        at += size;
    }
    return rc;
}

enum code value_items(struct eval *e, const struct json *v, struct json *out)
{
    enum code rc = eval_use(e, v);
    if (rc) return rc;
    switch (v->type) {
    case JSON_ARRAY:
    case VALUE_TUPLE:
        *out = *v;
        out->type = JSON_ARRAY;
        out->capacity = out->count; // an append makes a copy
        return OK;
    case JSON_STRING:
        return characters(e, v->text, out);
    case JSON_OBJECT:
        *out = json_array();
        for (uint32_t i = 0; i < v->count && !rc; i++) rc = value_push(e, out, json_string(v->members[i].key));
        return rc;
    case TEMPLATE_UNDEFINED:
        *out = json_array();
        return OK;
    default:
        return eval_fault(e, E_INVALID, "a %s has no items", value_type_name(v));
    }
}

static enum code loop_member(const struct loop *loop, struct str name, struct json *out)
{
    uint32_t index = loop->index, count = loop->count;
    *out = value_undefined();
    if (str_is(name, "index")) *out = json_int((int64_t)index + 1);
    if (str_is(name, "index0")) *out = json_int(index);
    if (str_is(name, "revindex")) *out = json_int((int64_t)count - index);
    if (str_is(name, "revindex0")) *out = json_int((int64_t)count - index - 1);
    if (str_is(name, "first")) *out = json_bool(index == 0);
    if (str_is(name, "last")) *out = json_bool(index + 1 == count);
    if (str_is(name, "length")) *out = json_int(count);
    if (str_is(name, "previtem") && index) *out = loop->items[index - 1];
    if (str_is(name, "nextitem") && index + 1 < count) *out = loop->items[index + 1];
    return OK;
}

enum code value_member(struct eval *e, const struct json *v, struct str name, struct json *out)
{
    if (v->type == VALUE_LOOP) return loop_member((const struct loop *)(const void *)v->text.ptr, name, out);
    if (v->type == VALUE_NAMESPACE) v = namespace_members(v);
    const struct json *found = json_get(v, name);
    if (v->type == VALUE_TUPLE && v->count == 2) { // groups have names for their two parts
        if (str_is(name, "grouper")) found = &v->items[0];
        if (str_is(name, "list")) found = &v->items[1];
    }
    *out = found ? *found : value_undefined();
    return v->type == JSON_OBJECT ? eval_charge(e, v->count / 256) : OK;
}

enum code value_item(struct eval *e, const struct json *v, const struct json *key, struct json *out)
{
    struct number n;
    if (key->type == JSON_STRING) return value_member(e, v, key->text, out);
    *out = value_undefined();
    if (!value_number(key, &n) || n.is_float || n.is_large) return OK;
    bool text = v->type == JSON_STRING;
    if (!text && !value_is_list(v)) return OK;
    enum code rc = text ? eval_charge(e, v->text.len / (BYTES_COUNTED / 2)) : OK;
    if (rc) return rc;
    int64_t count = text ? (int64_t)text_count(v->text) : v->count;
    int64_t index = n.integer < 0 ? n.integer + count : n.integer;
    if (index < 0 || index >= count) return OK;
    if (!text) {
        *out = v->items[index];
        return OK;
    }
    size_t from = text_offset(v->text, (size_t)index), to = text_offset(v->text, (size_t)index + 1);
    *out = json_string(str_slice(v->text, from, to));
    return OK;
}

// Python's rule for the ends of a slice.
static int64_t clamp(int64_t at, int64_t count, bool backwards)
{
    int64_t low = backwards ? -1 : 0, high = backwards ? count - 1 : count;
    if (at < 0) at = at < -count ? low : at + count;
    return at < low ? low : at > high ? high : at;
}

enum code value_slice(struct eval *e, const struct json *v, const struct json bounds[3], struct json *out)
{
    int64_t step = 1, from, to;
    enum code rc = OK;
    struct json items, part;
    if (v->type == TEMPLATE_UNDEFINED) return eval_undefined(e, "a value that is cut");
    if (v->type != JSON_STRING && !value_is_list(v))
        return eval_fault(e, E_INVALID, "a %s cannot be cut", value_type_name(v));
    if (bounds[2].type != JSON_NULL) rc = value_index(e, &bounds[2], "a step", &step);
    if (!rc && !step) return eval_fault(e, E_INVALID, "a step of zero");
    if (!rc) rc = value_items(e, v, &items);
    if (rc) return rc;
    bool backwards = step < 0;
    from = backwards ? items.count : 0;
    to = backwards ? INT64_MIN : items.count;
    if (bounds[0].type != JSON_NULL) rc = value_index(e, &bounds[0], "a start", &from);
    if (!rc && bounds[1].type != JSON_NULL) rc = value_index(e, &bounds[1], "an end", &to);
    if (rc) return rc;
    from = clamp(from, items.count, backwards);
    to = clamp(to, items.count, backwards);
    if (step > items.count) step = (int64_t)items.count + 1;
    if (step < -(int64_t)items.count) step = -(int64_t)items.count - 1;
    part = v->type == VALUE_TUPLE ? value_tuple() : json_array();
    for (int64_t i = from; !rc && (backwards ? i > to : i < to); i += step) rc = value_push(e, &part, items.items[i]);
    if (rc || v->type != JSON_STRING) {
        *out = part;
        return rc;
    }
    struct buf buf;
    eval_buf(e, &buf);
    for (uint32_t i = 0; i < part.count; i++) buf_add(&buf, part.items[i].text);
    return eval_take(e, &buf, OK, out);
}

// ---- results

static bool is_plain(const struct json *v, uint32_t depth)
{
    if (v->type < JSON_NULL || v->type > JSON_OBJECT) return false;
    if (depth > VALUE_DEPTH) return false;
    if (v->type == JSON_ARRAY) {
        for (uint32_t i = 0; i < v->count; i++)
            if (!is_plain(&v->items[i], depth + 1)) return false;
    }
    if (v->type == JSON_OBJECT) {
        for (uint32_t i = 0; i < v->count; i++)
            if (!is_plain(&v->members[i].value, depth + 1)) return false;
    }
    return true;
}

static enum code plain_within(struct eval *e, const struct json *v, uint32_t depth, struct json *out)
{
    enum code rc = eval_charge(e, 1);
    struct json item;
    if (rc) return rc;
    if (depth > VALUE_DEPTH) return eval_fault(e, E_LIMIT, "values of more than %d levels", VALUE_DEPTH);
    if (value_is_list(v)) {
        *out = json_array();
        for (uint32_t i = 0; i < v->count && !rc; i++) {
            rc = plain_within(e, &v->items[i], depth + 1, &item);
            if (!rc && !json_push(e->arena, out, item)) rc = error_nomem(e->err);
        }
    } else if (v->type == JSON_OBJECT) {
        *out = json_object();
        for (uint32_t i = 0; i < v->count && !rc; i++) {
            rc = plain_within(e, &v->members[i].value, depth + 1, &item);
            if (!rc && !json_put(e->arena, out, v->members[i].key, item)) rc = error_nomem(e->err);
        }
    } else if (v->type == VALUE_FLOAT) {
        struct buf buf;
        eval_buf(e, &buf);
        float_write(&buf, value_double(v));
        rc = eval_take(e, &buf, OK, out);
        if (!rc) out->type = JSON_NUMBER;
    } else if (v->type == TEMPLATE_UNDEFINED) {
        *out = json_null();
    } else if (v->type == VALUE_LOOP || v->type == VALUE_NAMESPACE || v->type == VALUE_MACRO) {
        return eval_fault(e, E_INVALID, "a %s is not a value", value_type_name(v));
    } else {
        *out = *v;
    }
    return rc;
}

enum code value_plain(struct eval *e, const struct json *v, struct json *out)
{
    if (is_plain(v, 0)) {
        *out = *v;
        return OK;
    }
    return plain_within(e, v, 0, out);
}
