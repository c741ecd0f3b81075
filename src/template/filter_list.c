// Filters of lists and dicts. What Jinja gives as a generator is a list here.
#include "template/internal.h"

#include <string.h>

// "a.b.0" of a value, as `attribute=` has it; what is missing is undefined.
static enum code attribute(struct eval *e, const struct json *v, const struct json *path, struct json *out)
{
    struct json value = *v, key, next;
    struct str rest;
    int64_t index;
    enum code rc = OK;
    if (path->type == JSON_INT) return value_item(e, v, path, out);
    if (path->type != JSON_STRING) return eval_fault(e, E_INVALID, "an attribute must be a str");
    for (rest = path->text; rest.len && !rc;) {
        struct str part = str_cut(rest, '.', &rest);
        if (value.type == TEMPLATE_UNDEFINED) {
            if (e->limits.undefined != TEMPLATE_CHAIN) return eval_undefined(e, "a value whose attribute is asked for");
            break;
        }
        bool number = str_int64(part, &index) && index >= 0;
        key = number ? json_int(index) : json_string(part);
        rc = value_item(e, &value, &key, &next);
        value = next;
    }
    *out = value;
    return rc;
}

// What an item is ordered by: its attribute, in lower case unless case counts.
static enum code sort_key(struct eval *e, const struct json *v, const struct json *path, bool keep_case,
                          struct json *out)
{
    enum code rc = OK;
    *out = *v;
    if (path && path->type != JSON_NULL) rc = attribute(e, v, path, out);
    if (rc || keep_case || out->type != JSON_STRING) return rc;
    return text_case(e, out->text, 'l', out);
}

static enum code items_of(struct eval *e, const struct function_call *call, struct json *out)
{
    enum code rc = value_items(e, &call->self, out);
    return rc ? rc : eval_charge(e, out->count);
}

static enum code run_list(struct eval *e, struct function_call *call, struct json *out)
{
    return value_items(e, &call->self, out);
}

static enum code run_items(struct eval *e, struct function_call *call, struct json *out)
{
    struct function_call inner = {.self = call->self};
    if (call->self.type == TEMPLATE_UNDEFINED) {
        *out = json_array();
        return eval_use(e, &call->self);
    }
    if (call->self.type != JSON_OBJECT)
        return eval_fault(e, E_INVALID, "items does not take a %s", value_type_name(&call->self));
    return eval_call(e, method_find(STR("items")), &inner, out);
}

static enum code run_end(struct eval *e, struct function_call *call, struct json *out)
{
    struct json items;
    enum code rc = value_items(e, &call->self, &items);
    *out = value_undefined();
    if (!rc && items.count) *out = items.items[call->function->name[0] == 'f' ? 0 : items.count - 1];
    return rc;
}

static enum code run_join(struct eval *e, struct function_call *call, struct json *out)
{
    struct json items, item;
    struct str separator = STR("");
    struct buf buf;
    enum code rc = items_of(e, call, &items);
    if (!rc && call_arg(call, 0)) rc = value_str(e, &call->args[0], &separator);
    if (rc) return rc;
    eval_buf(e, &buf);
    for (uint32_t i = 0; i < items.count && !rc; i++) {
        item = items.items[i];
        const struct json *path = call_arg(call, 1);
        if (path && path->type != JSON_NULL) rc = attribute(e, &items.items[i], path, &item);
        if (i) buf_add(&buf, separator);
        if (!rc) rc = value_write(e, &item, &buf);
    }
    return eval_take(e, &buf, rc, out);
}

static enum code run_reverse(struct eval *e, struct function_call *call, struct json *out)
{
    struct json minus[3] = {json_null(), json_null(), json_int(-1)}, items;
    if (call->self.type == JSON_STRING) return value_slice(e, &call->self, minus, out);
    enum code rc = value_items(e, &call->self, &items);
    return rc ? rc : value_slice(e, &items, minus, out);
}

// ---- order

struct keyed {
    struct json key, item;
};

// Stable, by merging.
static enum code merge_sort(struct eval *e, struct keyed *list, struct keyed *room, uint32_t count, bool reverse)
{
    for (uint32_t width = 1; width < count; width *= 2) {
        for (uint32_t from = 0; from < count; from += 2 * width) {
            uint32_t middle = from + width < count ? from + width : count;
            uint32_t end = from + 2 * width < count ? from + 2 * width : count;
            for (uint32_t a = from, b = middle, at = from; at < end; at++) {
                int order = 0;
                if (a < middle && b < end) {
                    enum code rc = value_compare(e, &list[a].key, &list[b].key, &order);
                    if (rc) return rc;
                    if (reverse) order = -order;
                }
                room[at] = b == end || (a < middle && order <= 0) ? list[a++] : list[b++];
            }
        }
        memcpy(list, room, count * sizeof(list[0]));
    }
    return OK;
}

// Lists of keys, one for each attribute of "a,b".
static enum code composite_key(struct eval *e, const struct json *item, const struct json *path, bool keep_case,
                               struct json *out)
{
    if (!path || path->type != JSON_STRING || str_find(path->text, ',', 0) == path->text.len)
        return sort_key(e, item, path, keep_case, out);
    struct str rest = path->text;
    struct json keys = json_array(), key;
    enum code rc = OK;
    while (rest.len && !rc) {
        struct json part = json_string(str_cut(rest, ',', &rest));
        rc = sort_key(e, item, &part, keep_case, &key);
        if (!rc) rc = value_push(e, &keys, key);
    }
    *out = keys;
    return rc;
}

static enum code sort_items(struct eval *e, const struct json *items, const struct json *path, bool keep_case,
                            bool reverse, struct json *out)
{
    struct keyed *list = ARENA_ARRAY(e->arena, 2 * (size_t)items->count + 1, struct keyed);
    enum code rc = eval_charge(e, items->count);
    if (!list) return error_nomem(e->err);
    for (uint32_t i = 0; i < items->count && !rc; i++) {
        list[i].item = items->items[i];
        rc = composite_key(e, &list[i].item, path, keep_case, &list[i].key);
    }
    if (!rc) rc = merge_sort(e, list, list + items->count, items->count, reverse);
    *out = json_array();
    for (uint32_t i = 0; i < items->count && !rc; i++) rc = value_push(e, out, list[i].item);
    return rc;
}

static enum code run_sort(struct eval *e, struct function_call *call, struct json *out)
{
    struct json items;
    enum code rc = items_of(e, call, &items);
    return rc ? rc : sort_items(e, &items, call_arg(call, 2), call_truth(call, 1), call_truth(call, 0), out);
}

static enum code run_dictsort(struct eval *e, struct function_call *call, struct json *out)
{
    struct json items, by = json_int(0);
    struct function_call inner = {.self = call->self};
    const struct json *name = call_arg(call, 1);
    if (call->self.type != JSON_OBJECT)
        return eval_fault(e, E_INVALID, "dictsort does not take a %s", value_type_name(&call->self));
    if (name && str_is(json_text(name), "value"))
        by = json_int(1);
    else if (name && !str_is(json_text(name), "key"))
        return eval_fault(e, E_INVALID, "dictsort: by is key or value");
    enum code rc = eval_call(e, method_find(STR("items")), &inner, &items);
    return rc ? rc : sort_items(e, &items, &by, call_truth(call, 0), call_truth(call, 2), out);
}

static enum code run_extreme(struct eval *e, struct function_call *call, struct json *out)
{
    struct json items, best, key;
    bool want_less = !strcmp(call->function->name, "min");
    enum code rc = items_of(e, call, &items);
    *out = value_undefined();
    for (uint32_t i = 0; i < items.count && !rc; i++) {
        int order = 0;
        rc = sort_key(e, &items.items[i], call_arg(call, 1), call_truth(call, 0), &key);
        if (!rc && i) rc = value_compare(e, &key, &best, &order);
        if (i && (want_less ? order >= 0 : order <= 0)) continue;
        best = key;
        *out = items.items[i];
    }
    return rc;
}

static enum code run_unique(struct eval *e, struct function_call *call, struct json *out)
{
    struct json items, keys = json_array(), key;
    enum code rc = items_of(e, call, &items);
    *out = json_array();
    for (uint32_t i = 0; i < items.count && !rc; i++) {
        bool seen = false;
        rc = sort_key(e, &items.items[i], call_arg(call, 1), call_truth(call, 0), &key);
        if (!rc && (value_is_list(&key) || key.type == JSON_OBJECT) && key.type != VALUE_TUPLE)
            return eval_fault(e, E_INVALID, "unique: a %s cannot be a key", value_type_name(&key));
        if (!rc) rc = value_in(e, &key, &keys, &seen);
        if (rc || seen) continue;
        rc = value_push(e, &keys, key);
        if (!rc) rc = value_push(e, out, items.items[i]);
    }
    return rc;
}

static enum code run_sum(struct eval *e, struct function_call *call, struct json *out)
{
    struct json items, item, total = call->given[1] ? call->args[1] : json_int(0);
    const struct json *path = call_arg(call, 0);
    enum code rc = items_of(e, call, &items);
    for (uint32_t i = 0; i < items.count && !rc; i++) {
        item = items.items[i];
        if (path && path->type != JSON_NULL) rc = attribute(e, &items.items[i], path, &item);
        if (!rc) rc = arithmetic(e, OPERATOR_ADD, &total, &item, &total);
    }
    *out = total;
    return rc;
}

// ---- choice

static const struct json *named_arg(const struct function_call *call, const char *name)
{
    for (uint32_t i = 0; i < call->count; i++)
        if (str_is(call->names[i], name)) return &call->args[i];
    return NULL;
}

static enum code run_map(struct eval *e, struct function_call *call, struct json *out)
{
    struct json items, item;
    const struct json *path = named_arg(call, "attribute"), *otherwise = named_arg(call, "default");
    enum code rc = items_of(e, call, &items);
    if (rc) return rc;
    if (!path && (!call->count || call->args[0].type != JSON_STRING))
        return eval_fault(e, E_INVALID, "map needs the name of a filter or attribute=");
    *out = json_array();
    for (uint32_t i = 0; i < items.count && !rc; i++) {
        if (path) {
            rc = attribute(e, &items.items[i], path, &item);
            if (!rc && otherwise && item.type == TEMPLATE_UNDEFINED) item = *otherwise;
        } else {
            rc = eval_named(e, false, call, 1, call->args[0].text, items.items[i], &item);
        }
        if (!rc) rc = value_push(e, out, item);
    }
    return rc;
}

// select, reject, selectattr and rejectattr
static enum code run_select(struct eval *e, struct function_call *call, struct json *out)
{
    struct json items, value, result;
    const char *name = call->function->name;
    bool by_attribute = strlen(name) > 6, wanted = name[0] == 's';
    uint32_t first = by_attribute ? 1 : 0;
    enum code rc = items_of(e, call, &items);
    if (rc) return rc;
    if (by_attribute && !call->count) return eval_fault(e, E_INVALID, "%s needs the name of an attribute", name);
    if (call->count > first && call->args[first].type != JSON_STRING)
        return eval_fault(e, E_INVALID, "%s: the name of a test must be a str", name);
    *out = json_array();
    for (uint32_t i = 0; i < items.count && !rc; i++) {
        value = items.items[i];
        if (by_attribute) rc = attribute(e, &items.items[i], &call->args[0], &value);
        result = value;
        if (!rc && call->count > first)
            rc = eval_named(e, true, call, first + 1, call->args[first].text, value, &result);
        if (!rc && value_truth(&result) == wanted) rc = value_push(e, out, items.items[i]);
    }
    return rc;
}

static enum code run_batch(struct eval *e, struct function_call *call, struct json *out)
{
    struct json items, row = json_array();
    int64_t size;
    enum code rc = value_index(e, &call->args[0], "the size of a batch", &size);
    if (!rc) rc = items_of(e, call, &items);
    if (rc) return rc;
    if (size < 1) return eval_fault(e, E_INVALID, "batch: the size must be at least 1");
    *out = json_array();
    for (uint32_t i = 0; i < items.count && !rc; i++) {
        rc = value_push(e, &row, items.items[i]);
        if (rc || row.count < size) continue;
        rc = value_push(e, out, row);
        row = json_array();
    }
    if (!row.count || rc) return rc;
    const struct json *fill = call_arg(call, 1);
    while (!rc && fill && fill->type != JSON_NULL && row.count < size) rc = value_push(e, &row, *fill);
    return rc ? rc : value_push(e, out, row);
}

// Each item behind what it is grouped by; one that has no such attribute is with the default.
static enum code keyed_items(struct eval *e, struct function_call *call, struct json *out)
{
    struct json items;
    enum code rc = items_of(e, call, &items);
    *out = json_array();
    for (uint32_t i = 0; !rc && i < items.count; i++) {
        struct json key, pair = value_tuple();
        rc = attribute(e, &items.items[i], &call->args[0], &key);
        if (!rc && key.type == TEMPLATE_UNDEFINED && call_arg(call, 1)) key = call->args[1];
        if (!rc) rc = value_push(e, &pair, key);
        if (!rc) rc = value_push(e, &pair, items.items[i]);
        if (!rc) rc = value_push(e, out, pair);
    }
    return rc;
}

static enum code run_groupby(struct eval *e, struct function_call *call, struct json *out)
{
    const struct json first = json_int(0);
    struct json items, sorted, key = json_null(), last = json_null(), group;
    enum code rc = keyed_items(e, call, &items);
    if (!rc) rc = sort_items(e, &items, &first, call_truth(call, 2), false, &sorted);
    if (rc) return rc;
    *out = json_array();
    for (uint32_t i = 0; i < sorted.count && !rc; i++) {
        bool same = false;
        rc = sort_key(e, &sorted.items[i], &first, call_truth(call, 2), &key);
        if (!rc && i) rc = value_equal(e, &key, &last, &same);
        last = key;
        if (!rc && !same) {
            group = value_tuple();
            rc = value_push(e, &group, sorted.items[i].items[0]);
            if (!rc) rc = value_push(e, &group, json_array());
            if (!rc) rc = value_push(e, out, group);
        }
        if (!rc) rc = value_push(e, &out->items[out->count - 1].items[1], sorted.items[i].items[1]);
    }
    return rc;
}

const struct function *filter_list_find(struct str name)
{
    static const struct function table[] = {
        {"list", NULL, 0, run_list},
        {"items", NULL, 0, run_items},
        {"first", NULL, 0, run_end},
        {"last", NULL, 0, run_end},
        {"join", "d,attribute", 0, run_join},
        {"reverse", NULL, 0, run_reverse},
        {"sort", "reverse,case_sensitive,attribute", 0, run_sort},
        {"dictsort", "case_sensitive,by,reverse", 0, run_dictsort},
        {"min", "case_sensitive,attribute", 0, run_extreme},
        {"max", "case_sensitive,attribute", 0, run_extreme},
        {"unique", "case_sensitive,attribute", 0, run_unique},
        {"sum", "attribute,start", 0, run_sum},
        {"map", "*", 0, run_map},
        {"select", "*", 0, run_select},
        {"reject", "*", 0, run_select},
        {"selectattr", "*", 0, run_select},
        {"rejectattr", "*", 0, run_select},
        {"batch", "linecount,fill_with", 1, run_batch},
        {"groupby", "attribute,default,case_sensitive", 1, run_groupby},
    };
    return function_in(table, ARRAY_COUNT(table), name);
}
