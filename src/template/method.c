// Methods of values and the global functions. Values never change: what would change one is not known here.
#include "template/internal.h"

#include "schema/pattern.h"

#include <string.h>

static enum code no_method(struct eval *e, const struct function_call *call)
{
    return eval_fault(e, E_NOT_FOUND, "a %s has no method %s", value_type_name(&call->self), call->function->name);
}

static enum code text_self(struct eval *e, const struct function_call *call, struct str *out)
{
    *out = json_text(&call->self);
    if (call->self.type != JSON_STRING) return no_method(e, call);
    return eval_charge(e, out->len / BYTES_PER_STEP);
}

static enum code text_arg(struct eval *e, const struct function_call *call, uint32_t index, struct str *out)
{
    const struct json *arg = call_arg(call, index);
    if (!arg || arg->type != JSON_STRING)
        return eval_fault(e, E_INVALID, "%s: a str must stand here", call->function->name);
    *out = arg->text;
    return OK;
}

// ---- dicts

static enum code run_get(struct eval *e, struct function_call *call, struct json *out)
{
    const struct json *key = &call->args[0], *otherwise = call_arg(call, 1);
    if (call->self.type != JSON_OBJECT) return no_method(e, call);
    const struct json *found = key->type == JSON_STRING ? json_get(&call->self, key->text) : NULL;
    *out = found ? *found : otherwise ? *otherwise : json_null();
    return eval_charge(e, call->self.count / 256);
}

// items, keys, values
static enum code run_members(struct eval *e, struct function_call *call, struct json *out)
{
    char which = call->function->name[0];
    enum code rc = OK;
    if (call->self.type != JSON_OBJECT) return no_method(e, call);
    struct json list = json_array();
    for (uint32_t i = 0; i < call->self.count && !rc; i++) {
        const struct json_member *m = &call->self.members[i];
        struct json item = which == 'i' ? value_tuple() : which == 'k' ? json_string(m->key) : m->value;
        if (which == 'i') rc = value_push(e, &item, json_string(m->key));
        if (which == 'i' && !rc) rc = value_push(e, &item, m->value);
        if (!rc) rc = value_push(e, &list, item);
    }
    *out = list;
    return rc;
}

static enum code run_copy(struct eval *e, struct function_call *call, struct json *out)
{
    if (call->self.type != JSON_OBJECT && call->self.type != JSON_ARRAY) return no_method(e, call);
    *out = call->self;
    return OK;
}

// ---- strings

// split, rsplit
static enum code run_split(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s;
    int64_t max = -1;
    bool from_right = call->function->name[0] == 'r';
    enum code rc = text_self(e, call, &s);
    if (!rc) rc = call_int(e, call, 1, -1, &max);
    return rc ? rc : text_split(e, s, call_arg(call, 0), max < 0 ? -1 : max, from_right, out);
}

static enum code run_splitlines(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s, rest;
    enum code rc = text_self(e, call, &s);
    *out = json_array();
    for (rest = s; rest.len && !rc;) {
        size_t end = 0;
        while (end < rest.len && rest.ptr[end] != '\n' && rest.ptr[end] != '\r') end++;
        rc = value_push(e, out, json_string(str_slice(rest, 0, end)));
        bool two = end + 1 < rest.len && rest.ptr[end] == '\r' && rest.ptr[end + 1] == '\n';
        rest = str_slice(rest, end + 1 + two > rest.len ? rest.len : end + 1 + two, rest.len);
    }
    return rc;
}

// strip, lstrip, rstrip
static enum code run_strip(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s, set = {0};
    char side = call->function->name[0];
    bool spaces = !call_arg(call, 0) || call->args[0].type == JSON_NULL;
    enum code rc = text_self(e, call, &s);
    if (!rc && !spaces) rc = text_arg(e, call, 0, &set);
    if (!rc) rc = eval_charge(e, set.len ? s.len * set.len / BYTES_PER_STEP : 0);
    if (!rc) *out = json_string(text_strip(s, set, spaces, side != 'r', side != 'l'));
    return rc;
}

static enum code run_case(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s;
    const char *name = call->function->name;
    char mode = !strcmp(name, "lower")        ? 'l'
                : !strcmp(name, "upper")      ? 'u'
                : !strcmp(name, "title")      ? 'T'
                : !strcmp(name, "capitalize") ? 'c'
                                              : 's';
    enum code rc = text_self(e, call, &s);
    return rc ? rc : text_case(e, s, mode, out);
}

static enum code run_replace(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s, old = {0}, new = {0};
    int64_t count = -1;
    enum code rc = text_self(e, call, &s);
    if (!rc) rc = text_arg(e, call, 0, &old);
    if (!rc) rc = text_arg(e, call, 1, &new);
    if (!rc) rc = call_int(e, call, 2, -1, &count);
    return rc ? rc : text_replace(e, s, old, new, count, out);
}

static enum code run_edge(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s;
    bool at_start = call->function->name[0] == 's', found = false;
    enum code rc = text_self(e, call, &s);
    const struct json *arg = &call->args[0];
    uint32_t count = arg->type == VALUE_TUPLE ? arg->count : 1;
    for (uint32_t i = 0; i < count && !rc; i++) {
        const struct json *part = arg->type == VALUE_TUPLE ? &arg->items[i] : arg;
        if (part->type != JSON_STRING)
            return eval_fault(e, E_INVALID, "%s: a str must stand here", call->function->name);
        found |= at_start ? str_starts(s, part->text) : str_ends(s, part->text);
    }
    *out = json_bool(found);
    return rc;
}

static enum code run_remove_edge(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s, part = {0};
    enum code rc = text_self(e, call, &s);
    if (!rc) rc = text_arg(e, call, 0, &part);
    if (rc) return rc;
    bool prefix = !strcmp(call->function->name, "removeprefix");
    if (prefix && str_starts(s, part)) s = str_slice(s, part.len, s.len);
    if (!prefix && str_ends(s, part)) s = str_slice(s, 0, s.len - part.len);
    *out = json_string(s);
    return OK;
}

static enum code run_join(struct eval *e, struct function_call *call, struct json *out)
{
    struct str separator;
    struct json items;
    struct buf buf;
    enum code rc = text_self(e, call, &separator);
    if (!rc) rc = value_items(e, &call->args[0], &items);
    if (rc) return rc;
    eval_buf(e, &buf);
    for (uint32_t i = 0; i < items.count && !rc; i++) {
        if (items.items[i].type != JSON_STRING) rc = eval_fault(e, E_INVALID, "join: item %u is not a str", i);
        if (i) buf_add(&buf, separator);
        if (!rc) buf_add(&buf, items.items[i].text);
    }
    return eval_take(e, &buf, rc, out);
}

static enum code run_is(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s;
    const char *kind = call->function->name + 2;
    bool all = true, cased = false;
    enum code rc = text_self(e, call, &s);
    for (size_t at = 0; !rc && at < s.len && all;) {
        uint32_t c = pattern_decode(s, &at);
        bool digit = c >= '0' && c <= '9', letter = code_is_letter(c);
        bool lower = code_upper(c) != c, upper = code_lower(c) != c;
        cased |= lower || upper;
        if (!strcmp(kind, "digit") || !strcmp(kind, "numeric") || !strcmp(kind, "decimal")) all = digit;
        if (!strcmp(kind, "alpha")) all = letter;
        if (!strcmp(kind, "alnum")) all = letter || digit;
        if (!strcmp(kind, "space")) all = code_is_space(c);
        if (!strcmp(kind, "lower")) all = !upper;
        if (!strcmp(kind, "upper")) all = !lower;
    }
    bool by_case = !strcmp(kind, "lower") || !strcmp(kind, "upper");
    *out = json_bool(all && s.len && (!by_case || cased));
    return rc;
}

static size_t find_last(struct str s, struct str part)
{
    for (size_t at = s.len - part.len + 1; part.len <= s.len && at-- > 0;)
        if (!memcmp(s.ptr + at, part.ptr, part.len)) return at;
    return SIZE_MAX;
}

static enum code run_find(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s, part = {0};
    const char *name = call->function->name;
    enum code rc = text_self(e, call, &s);
    if (!rc) rc = text_arg(e, call, 0, &part);
    if (!rc && name[0] == 'r') rc = eval_charge(e, s.len / BYTES_PER_STEP * (1 + part.len));
    if (rc) return rc;
    size_t at = name[0] == 'r' ? find_last(s, part) : text_find(s, part, 0);
    if (at == SIZE_MAX && !strcmp(name, "index")) return eval_fault(e, E_INVALID, "index: there is no such part");
    *out = json_int(at == SIZE_MAX ? -1 : (int64_t)text_count(str_slice(s, 0, at)));
    return OK;
}

static enum code index_of(struct eval *e, struct function_call *call, bool count, struct json *out)
{
    int64_t found = 0;
    enum code rc = OK;
    for (uint32_t i = 0; i < call->self.count && !rc; i++) {
        bool equal = false;
        rc = value_equal(e, &call->self.items[i], &call->args[0], &equal);
        found += equal;
        *out = json_int(count ? found : i);
        if (equal && !count && !rc) return OK;
    }
    if (!rc && !count) return eval_fault(e, E_INVALID, "index: there is no such item");
    *out = json_int(found);
    return rc;
}

static enum code run_index(struct eval *e, struct function_call *call, struct json *out)
{
    return value_is_list(&call->self) ? index_of(e, call, false, out) : run_find(e, call, out);
}

static enum code run_count(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s, part = {0};
    int64_t count = 0;
    if (value_is_list(&call->self)) return index_of(e, call, true, out);
    enum code rc = text_self(e, call, &s);
    if (!rc) rc = text_arg(e, call, 0, &part);
    if (rc) return rc;
    if (!part.len) {
        *out = json_int((int64_t)text_count(s) + 1);
        return OK;
    }
    for (size_t at = 0; (at = text_find(s, part, at)) != SIZE_MAX; at += part.len) count++;
    *out = json_int(count);
    return OK;
}

static enum code run_pad(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s, fill = STR(" ");
    int64_t width = 0;
    const char *name = call->function->name;
    enum code rc = text_self(e, call, &s);
    if (!rc) rc = call_int(e, call, 0, 0, &width);
    if (!rc && call_arg(call, 1)) rc = text_arg(e, call, 1, &fill);
    if (!rc && text_count(fill) != 1) rc = eval_fault(e, E_INVALID, "%s: the fill must be one character", name);
    if (rc) return rc;
    int64_t room = width - (int64_t)text_count(s), left = room;
    bool zeros = name[0] == 'z', sign = zeros && s.len && (s.ptr[0] == '-' || s.ptr[0] == '+');
    struct buf buf;
    eval_buf(e, &buf);
    if (sign) buf_byte(&buf, s.ptr[0]);
    if (!strcmp(name, "ljust")) left = 0;
    if (!strcmp(name, "center")) left = room / 2 + (room & width & 1);
    for (int64_t i = 0; i < left && !buf.failed; i++) buf_add(&buf, zeros ? STR("0") : fill);
    buf_add(&buf, str_slice(s, sign, s.len));
    for (int64_t i = left; i < room && !buf.failed; i++) buf_add(&buf, fill);
    return eval_take(e, &buf, OK, out);
}

static enum code run_cycle(struct eval *e, struct function_call *call, struct json *out)
{
    if (call->self.type != VALUE_LOOP) return no_method(e, call);
    if (!call->count) return eval_fault(e, E_INVALID, "cycle: no values");
    *out = call->args[((const struct loop *)(const void *)call->self.text.ptr)->index % call->count];
    return OK;
}

// ---- times

static enum code run_isoformat(struct eval *e, struct function_call *call, struct json *out)
{
    *out = call->self;
    return call->self.type == JSON_STRING ? OK : eval_fault(e, E_INVALID, "isoformat: this is no time");
}

// ---- functions

static enum code run_range(struct eval *e, struct function_call *call, struct json *out)
{
    int64_t bounds[3] = {0, 0, 1};
    enum code rc = OK;
    for (uint32_t i = 0; i < 3 && call->given[i] && !rc; i++) rc = value_index(e, &call->args[i], "range", &bounds[i]);
    if (rc) return rc;
    if (!call->given[1]) {
        bounds[1] = bounds[0];
        bounds[0] = 0;
    }
    if (!bounds[2]) return eval_fault(e, E_INVALID, "range: a step of zero");
    *out = json_array();
    for (int64_t i = bounds[0]; !rc && (bounds[2] < 0 ? i > bounds[1] : i < bounds[1]);) {
        rc = value_push(e, out, json_int(i));
        if (__builtin_add_overflow(i, bounds[2], &i)) break;
    }
    return rc;
}

enum code run_dict(struct eval *e, struct function_call *call, struct json *out)
{
    enum code rc = OK;
    *out = json_object();
    for (uint32_t i = 0; i < call->count && !rc; i++) {
        if (call->names[i].len) {
            rc = value_put(e, out, call->names[i], call->args[i]);
            continue;
        }
        if (i || call->args[i].type != JSON_OBJECT) return eval_fault(e, E_INVALID, "dict: a dict must stand here");
        for (uint32_t j = 0; j < call->args[i].count && !rc; j++)
            rc = value_put(e, out, call->args[i].members[j].key, call->args[i].members[j].value);
    }
    return rc;
}

static enum code run_format(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s;
    enum code rc = text_self(e, call, &s);
    return rc ? rc : text_format(e, s, call, out);
}

const struct function *function_in(const struct function *table, size_t count, struct str name)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(name, table[i].name)) return &table[i];
    return NULL;
}

const struct function *method_find(struct str name)
{
    static const struct function table[] = {
        {"get", "key,default", 1, run_get},
        {"items", NULL, 0, run_members},
        {"keys", NULL, 0, run_members},
        {"values", NULL, 0, run_members},
        {"copy", NULL, 0, run_copy},
        {"split", "sep,maxsplit", 0, run_split},
        {"rsplit", "sep,maxsplit", 0, run_split},
        {"splitlines", NULL, 0, run_splitlines},
        {"strip", "chars", 0, run_strip},
        {"lstrip", "chars", 0, run_strip},
        {"rstrip", "chars", 0, run_strip},
        {"lower", NULL, 0, run_case},
        {"upper", NULL, 0, run_case},
        {"title", NULL, 0, run_case},
        {"capitalize", NULL, 0, run_case},
        {"swapcase", NULL, 0, run_case},
        {"replace", "old,new,count", 2, run_replace},
        {"startswith", "prefix", 1, run_edge},
        {"endswith", "suffix", 1, run_edge},
        {"removeprefix", "prefix", 1, run_remove_edge},
        {"removesuffix", "suffix", 1, run_remove_edge},
        {"join", "iterable", 1, run_join},
        {"format", "*", 0, run_format},
        {"isdigit", NULL, 0, run_is},
        {"isnumeric", NULL, 0, run_is},
        {"isdecimal", NULL, 0, run_is},
        {"isalpha", NULL, 0, run_is},
        {"isalnum", NULL, 0, run_is},
        {"isspace", NULL, 0, run_is},
        {"islower", NULL, 0, run_is},
        {"isupper", NULL, 0, run_is},
        {"count", "value", 1, run_count},
        {"index", "value", 1, run_index},
        {"find", "sub", 1, run_find},
        {"rfind", "sub", 1, run_find},
        {"zfill", "width", 1, run_pad},
        {"ljust", "width,fill", 1, run_pad},
        {"rjust", "width,fill", 1, run_pad},
        {"center", "width,fill", 1, run_pad},
        {"cycle", "*", 1, run_cycle},
        {"isoformat", NULL, 0, run_isoformat},
        {"strftime", "format", 1, run_strftime},
    };
    return function_in(table, ARRAY_COUNT(table), name);
}

// The time of the scope: nothing here reads a clock.
static enum code run_now(struct eval *e, struct function_call *call, struct json *out)
{
    (void)call;
    *out = value_undefined();
    enum code rc = OK;
    if (e->scope->lookup) rc = e->scope->lookup(e->scope->context, STR(TEMPLATE_NOW), out, e->err);
    if (!rc && out->type == TEMPLATE_UNDEFINED) return eval_fault(e, E_NOT_FOUND, "now: there is no time here");
    return rc;
}

// The token of an entry of the keychain, or of a credential.
static enum code run_token(struct eval *e, struct function_call *call, struct json *out)
{
    struct str name = {0};
    struct buf wanted SCOPED(buf_release) = buf_of(512);
    enum code rc = value_str(e, &call->args[0], &name);
    buf_text(&wanted, TEMPLATE_TOKEN);
    buf_add(&wanted, name);
    *out = value_undefined();
    if (!rc && e->scope->lookup && buf_ok(&wanted))
        rc = e->scope->lookup(e->scope->context, buf_str(&wanted), out, e->err);
    if (!rc && out->type == TEMPLATE_UNDEFINED) return eval_fault(e, E_NOT_FOUND, "token: there are no credentials here");
    return rc;
}

const struct function *global_find(struct str name)
{
    static const struct function table[] = {
        {"range", "start,stop,step", 1, run_range},
        {"dict", "*", 0, run_dict},
        {"namespace", "*", 0, run_namespace},
        {"now", NULL, 0, run_now},
        {"utcnow", NULL, 0, run_now},
        {"token", "name,audience", 1, run_token},
    };
    return function_in(table, ARRAY_COUNT(table), name);
}
