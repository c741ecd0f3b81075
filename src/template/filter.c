// Filters of single values. Lists and encodings have files of their own.
#include "template/internal.h"

#include <string.h>

static enum code run_default(struct eval *e, struct function_call *call, struct json *out)
{
    (void)e;
    bool use = call->self.type == TEMPLATE_UNDEFINED || (call_truth(call, 1) && !value_truth(&call->self));
    *out = !use ? call->self : call->given[0] ? call->args[0] : json_string(STR(""));
    return OK;
}

static enum code run_int(struct eval *e, struct function_call *call, struct json *out)
{
    const struct json *v = &call->self;
    struct number n;
    int64_t base;
    double real;
    enum code rc = call_int(e, call, 1, 10, &base);
    if (rc) return rc;
    *out = call->given[0] ? call->args[0] : json_int(0);
    if (v->type == TEMPLATE_UNDEFINED) return eval_undefined(e, "a value for int");
    if (v->type == JSON_STRING) {
        if (base != 0 && (base < 2 || base > 36)) return OK; // int() refuses such a base, and so the default is taken
        struct json read;
        size_t digits = v->text.len < JSON_NUMBER_SIZE_MAX ? v->text.len : JSON_NUMBER_SIZE_MAX;
        rc = eval_charge(e, v->text.len / BYTES_PER_STEP + digits * digits / 4096);
        if (!rc) rc = text_int(e->arena, v->text, (int)base, &read);
        if (rc == E_INVALID) return text_float(v->text, &real) ? number_to_int(e, real, out) : OK;
        if (!rc) *out = read;
        return number_done(e, rc);
    }
    if (!value_number(v, &n)) return OK;
    if (n.is_float) return number_to_int(e, n.real, out);
    *out = value_integer(v);
    return OK;
}

static enum code run_float(struct eval *e, struct function_call *call, struct json *out)
{
    const struct json *v = &call->self;
    struct number n;
    double real;
    if (v->type == TEMPLATE_UNDEFINED) return eval_undefined(e, "a value for float");
    *out = call->given[0] ? call->args[0] : value_float(0);
    if (v->type == JSON_STRING && text_float(v->text, &real)) *out = value_float(real);
    if (!value_number(v, &n)) return OK;
    *out = value_float(n.real);
    return number_finite(e, &n);
}

static enum code run_string(struct eval *e, struct function_call *call, struct json *out)
{
    struct str text;
    enum code rc = value_str(e, &call->self, &text);
    *out = json_string(text);
    return rc;
}

static enum code run_bool(struct eval *e, struct function_call *call, struct json *out)
{
    static const char *const words[] = {"true", "yes", "on", "y", "t", "1"};
    struct json lower;
    *out = json_bool(value_truth(&call->self));
    if (call->self.type != JSON_STRING) return OK;
    enum code rc = text_case(e, str_trim(call->self.text), 'l', &lower);
    if (rc) return rc;
    *out = json_bool(false);
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (str_is(lower.text, words[i])) *out = json_bool(true);
    return OK;
}

static enum code run_length(struct eval *e, struct function_call *call, struct json *out)
{
    int64_t length;
    enum code rc = value_length(e, &call->self, &length);
    *out = json_int(length);
    return rc;
}

static enum code run_case(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s;
    enum code rc = value_str(e, &call->self, &s);
    return rc ? rc : text_case(e, s, call->function->name[0], out);
}

static enum code run_trim(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s, set = {0};
    const struct json *chars = call_arg(call, 0);
    bool spaces = !chars || chars->type == JSON_NULL;
    enum code rc = value_str(e, &call->self, &s);
    if (!rc && !spaces) rc = value_str(e, chars, &set);
    if (!rc) rc = eval_charge(e, s.len * (set.len + 1) / BYTES_PER_STEP);
    *out = json_string(text_strip(s, set, spaces, true, true));
    return rc;
}

static enum code run_replace(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s, old = {0}, new = {0};
    int64_t count;
    enum code rc = value_str(e, &call->self, &s);
    if (!rc) rc = value_str(e, &call->args[0], &old);
    if (!rc) rc = value_str(e, &call->args[1], &new);
    if (!rc) rc = call_int(e, call, 2, -1, &count);
    return rc ? rc : text_replace(e, s, old, new, count, out);
}

static enum code run_split(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s;
    int64_t max;
    enum code rc = value_str(e, &call->self, &s);
    if (!rc) rc = call_int(e, call, 1, -1, &max);
    return rc ? rc : text_split(e, s, call_arg(call, 0), max < 0 ? -1 : max, false, out);
}

static enum code run_abs(struct eval *e, struct function_call *call, struct json *out)
{
    struct number n;
    if (!value_number(&call->self, &n)) {
        if (call->self.type == TEMPLATE_UNDEFINED) return eval_undefined(e, "a value for abs");
        return eval_fault(e, E_INVALID, "abs does not take a %s", value_type_name(&call->self));
    }
    if (n.is_float ? __builtin_signbit(n.real) : n.real < 0) return number_negate(e, &call->self, out);
    *out = call->self.type == JSON_BOOL ? json_int(n.integer) : call->self;
    return OK;
}

static enum code run_round(struct eval *e, struct function_call *call, struct json *out)
{
    int64_t digits;
    char method = 'c';
    const struct json *name = call_arg(call, 1);
    enum code rc = call_int(e, call, 0, 0, &digits);
    if (rc) return rc;
    if (name) {
        struct str text = json_text(name);
        if (str_is(text, "ceil"))
            method = 'u';
        else if (str_is(text, "floor"))
            method = 'd';
        else if (!str_is(text, "common"))
            return eval_fault(e, E_INVALID, "round: the method is common, ceil or floor");
    }
    return number_round(e, &call->self, digits, method, out);
}

static enum code run_tojson(struct eval *e, struct function_call *call, struct json *out)
{
    struct buf buf;
    int64_t indent;
    enum code rc = call_int(e, call, 0, -1, &indent);
    if (rc) return rc;
    eval_buf(e, &buf);
    rc = value_json(e, &call->self, indent, &buf);
    return eval_take(e, &buf, rc, out);
}

static enum code run_fromjson(struct eval *e, struct function_call *call, struct json *out)
{
    struct str text;
    struct error fault = {0};
    enum code rc = value_str(e, &call->self, &text);
    if (!rc) rc = eval_charge(e, text.len / 16);
    if (rc) return rc;
    rc = json_parse(text, NULL, e->arena, out, &fault);
    return rc ? eval_fault(e, rc, "fromjson: %s", fault.message) : OK;
}

static enum code run_escape(struct eval *e, struct function_call *call, struct json *out)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    struct str s;
    struct buf buf;
    enum code rc = value_str(e, &call->self, &s);
    if (!rc) rc = eval_walk(e, s);
    if (rc) return rc;
    eval_buf(e, &buf);
    for (size_t i = 0; i < s.len; i++) {
        const char *found = s.ptr[i] ? strchr("&<>'\"", s.ptr[i]) : NULL;
        if (found)
            buf_text(&buf, entities[strlen("&<>'\"") - strlen(found)]);
        else
            buf_byte(&buf, s.ptr[i]);
    }
    return eval_take(e, &buf, OK, out);
}

static enum code run_format(struct eval *e, struct function_call *call, struct json *out)
{
    struct str format;
    struct json values = value_tuple();
    enum code rc = value_str(e, &call->self, &format);
    for (uint32_t i = 0; i < call->count && !rc; i++) {
        if (call->names[i].len) return eval_fault(e, E_UNSUPPORTED, "format: values by name");
        rc = value_push(e, &values, call->args[i]);
    }
    return rc ? rc : text_percent(e, format, &values, out);
}

static enum code run_attr(struct eval *e, struct function_call *call, struct json *out)
{
    struct str name;
    enum code rc = value_str(e, &call->args[0], &name);
    if (!rc && call->self.type == TEMPLATE_UNDEFINED) return eval_undefined(e, "a value for attr");
    if (!rc && call->self.type == JSON_OBJECT) { // its keys are no attributes, and methods are nothing without their call
        *out = value_undefined();
        return OK;
    }
    return rc ? rc : value_member(e, &call->self, name, out);
}

const struct function *filter_find(struct str name)
{
    static const struct function table[] = {
        {"default", "default_value,boolean", 0, run_default},
        {"d", "default_value,boolean", 0, run_default},
        {"int", "default,base", 0, run_int},
        {"float", "default", 0, run_float},
        {"string", NULL, 0, run_string},
        {"bool", NULL, 0, run_bool},
        {"length", NULL, 0, run_length},
        {"count", NULL, 0, run_length},
        {"lower", NULL, 0, run_case},
        {"upper", NULL, 0, run_case},
        {"title", NULL, 0, run_case},
        {"capitalize", NULL, 0, run_case},
        {"trim", "chars", 0, run_trim},
        {"replace", "old,new,count", 2, run_replace},
        {"split", "sep,maxsplit", 0, run_split},
        {"abs", NULL, 0, run_abs},
        {"round", "precision,method", 0, run_round},
        {"tojson", "indent", 0, run_tojson},
        {"to_json", "indent", 0, run_tojson},
        {"fromjson", NULL, 0, run_fromjson},
        {"from_json", NULL, 0, run_fromjson},
        {"safe", NULL, 0, run_string},
        {"escape", NULL, 0, run_escape},
        {"e", NULL, 0, run_escape},
        {"format", "*", 0, run_format},
        {"attr", "name", 1, run_attr},
    };
    const struct function *found = function_in(table, ARRAY_COUNT(table), name);
    if (!found) found = filter_list_find(name);
    return found ? found : filter_text_find(name);
}
