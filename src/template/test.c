// Tests: what may stand behind `is`.
#include "template/internal.h"

#include "schema/pattern.h"

#include <string.h>

static enum code answer(struct json *out, bool truth)
{
    *out = json_bool(truth);
    return OK;
}

static enum code run_type(struct eval *e, struct function_call *call, struct json *out)
{
    (void)e;
    const struct json *v = &call->self;
    const char *name = call->function->name;
    struct number n;
    bool number = value_number(v, &n), boolean = v->type == JSON_BOOL;
    bool many = v->type == JSON_STRING || v->type == JSON_OBJECT || value_is_list(v) || v->type == TEMPLATE_UNDEFINED;
    if (!strcmp(name, "defined")) return answer(out, v->type != TEMPLATE_UNDEFINED);
    if (!strcmp(name, "undefined")) return answer(out, v->type == TEMPLATE_UNDEFINED);
    if (!strcmp(name, "none")) return answer(out, v->type == JSON_NULL);
    if (!strcmp(name, "string")) return answer(out, v->type == JSON_STRING);
    if (!strcmp(name, "number")) return answer(out, number);
    if (!strcmp(name, "integer")) return answer(out, number && !boolean && !n.is_float);
    if (!strcmp(name, "float")) return answer(out, number && n.is_float);
    if (!strcmp(name, "boolean")) return answer(out, boolean);
    if (!strcmp(name, "true")) return answer(out, boolean && v->boolean);
    if (!strcmp(name, "false")) return answer(out, boolean && !v->boolean);
    if (!strcmp(name, "mapping")) return answer(out, v->type == JSON_OBJECT);
    return answer(out, many); // iterable, sequence
}

static enum code run_divides(struct eval *e, struct function_call *call, struct json *out)
{
    struct json by = call->given[0] ? call->args[0] : json_int(2), rest, want;
    struct number n;
    bool equal;
    if (call->self.type == JSON_STRING || (call->self.type != TEMPLATE_UNDEFINED && !value_number(&call->self, &n)))
        return eval_fault(e, E_INVALID, "%s does not take a %s", call->function->name, value_type_name(&call->self));
    enum code rc = arithmetic(e, OPERATOR_MOD, &call->self, &by, &rest);
    want = json_int(call->function->name[0] == 'o');
    if (!rc) rc = value_equal(e, &rest, &want, &equal);
    return rc ? rc : answer(out, equal);
}

static enum code run_in(struct eval *e, struct function_call *call, struct json *out)
{
    bool found;
    enum code rc = value_in(e, &call->self, &call->args[0], &found);
    return rc ? rc : answer(out, found);
}

static enum code run_equal(struct eval *e, struct function_call *call, struct json *out)
{
    bool equal, same = !strcmp(call->function->name, "sameas");
    enum code rc = value_equal(e, &call->self, &call->args[0], &equal);
    if (same) equal &= call->self.type == call->args[0].type;
    return rc ? rc : answer(out, equal ^ (call->function->name[0] == 'n' || call->function->name[0] == '!'));
}

static enum code run_order(struct eval *e, struct function_call *call, struct json *out)
{
    int order;
    const char *name = call->function->name;
    enum code rc = value_compare(e, &call->self, &call->args[0], &order);
    if (rc) return rc;
    bool equal_too = !strcmp(name, "le") || !strcmp(name, "ge");
    return answer(out, (order == 0 && equal_too) || (name[0] == 'l' ? order < 0 : order > 0));
}

static enum code run_case(struct eval *e, struct function_call *call, struct json *out)
{
    struct str s;
    bool lower = call->function->name[0] == 'l', cased = false, other = false;
    enum code rc = value_str(e, &call->self, &s);
    for (size_t at = 0; !rc && at < s.len;) {
        uint32_t c = pattern_decode(s, &at);
        bool is_lower = code_upper(c) != c, is_upper = code_lower(c) != c;
        cased |= is_lower || is_upper;
        other |= lower ? is_upper : is_lower;
    }
    return rc ? rc : answer(out, cased && !other);
}

const struct function *test_find(struct str name)
{
    static const struct function table[] = {
        {"defined", NULL, 0, run_type},         {"undefined", NULL, 0, run_type},  {"none", NULL, 0, run_type},
        {"string", NULL, 0, run_type},          {"number", NULL, 0, run_type},     {"integer", NULL, 0, run_type},
        {"float", NULL, 0, run_type},           {"boolean", NULL, 0, run_type},    {"true", NULL, 0, run_type},
        {"false", NULL, 0, run_type},           {"mapping", NULL, 0, run_type},    {"iterable", NULL, 0, run_type},
        {"sequence", NULL, 0, run_type},        {"even", NULL, 0, run_divides},    {"odd", NULL, 0, run_divides},
        {"divisibleby", "num", 1, run_divides}, {"in", "seq", 1, run_in},          {"eq", "other", 1, run_equal},
        {"equalto", "other", 1, run_equal},     {"==", "other", 1, run_equal},     {"ne", "other", 1, run_equal},
        {"!=", "other", 1, run_equal},          {"sameas", "other", 1, run_equal}, {"lt", "other", 1, run_order},
        {"lessthan", "other", 1, run_order},    {"le", "other", 1, run_order},     {"gt", "other", 1, run_order},
        {"greaterthan", "other", 1, run_order}, {"ge", "other", 1, run_order},     {"lower", NULL, 0, run_case},
        {"upper", NULL, 0, run_case},
    };
    return function_in(table, ARRAY_COUNT(table), name);
}
