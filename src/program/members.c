// The members of `with` by kind, as program.h lists them: what may be put there after the document was compiled.
#include "program/program.h"

struct member_rule {
    enum step_kind kind;
    enum json_type type; // 0 = any
    const char *name;
};

static const struct member_rule rules[] = {
    {STEP_ECHO, 0, "message"},
    {STEP_MERGE, 0, "message"},
    {STEP_EXEC, JSON_ARRAY, "argv"},
    {STEP_EXEC, JSON_OBJECT, "env"},
    {STEP_EXEC, JSON_STRING, "cwd"},
    {STEP_EXEC, 0, "stdin"},
    {STEP_SHELL, JSON_STRING, "command"},
    {STEP_SHELL, JSON_OBJECT, "env"},
    {STEP_SHELL, JSON_STRING, "cwd"},
    {STEP_SCRIPT, JSON_STRING, "code"},
    {STEP_SCRIPT, JSON_OBJECT, "env"},
    {STEP_SCRIPT, JSON_STRING, "cwd"},
    {STEP_SCRIPT, JSON_ARRAY, "args"},
    {STEP_WAIT, JSON_INT, "durationMs"},
    {STEP_WAIT, JSON_STRING, "until"},
    {STEP_APPROVAL, JSON_STRING, "message"},
    {STEP_APPROVAL, JSON_INT, "timeoutMs"},
    {STEP_APPROVAL, JSON_STRING, "onTimeout"},
    {STEP_EVENT, JSON_STRING, "name"},
    {STEP_EVENT, JSON_STRING, "correlation"},
    {STEP_SUBRUN, JSON_OBJECT, "inputs"},
    {STEP_SUBRUN, JSON_STRING, "arguments"},
    {STEP_CANCEL, JSON_STRING, "reason"},
};

bool step_kind_takes(enum step_kind kind, struct str member, const struct json *value)
{
    if (kind == STEP_HOST) return true;
    for (size_t i = 0; i < ARRAY_COUNT(rules); i++) {
        if (rules[i].kind != kind || !str_is(member, rules[i].name)) continue;
        if (rules[i].type == 0) return true;
        bool empty = rules[i].type == JSON_ARRAY && value->count == 0; // a program has a name
        bool below = rules[i].type == JSON_INT && json_integer(value, -1) < 0;
        return json_is(value, rules[i].type) && !below && !(empty && kind == STEP_EXEC);
    }
    return false;
}
