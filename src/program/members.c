// The members of `with` by kind, as program.h lists them: what may be put there after the document was compiled.
#include "program/program.h"

struct member_rule {
    enum step_kind kind;
    const char *name;
    enum json_type type; // 0 = any
};

static const struct member_rule rules[] = {
    {STEP_ECHO, "message", 0},
    {STEP_MERGE, "message", 0},
    {STEP_EXEC, "argv", JSON_ARRAY},
    {STEP_EXEC, "env", JSON_OBJECT},
    {STEP_EXEC, "cwd", JSON_STRING},
    {STEP_EXEC, "stdin", 0},
    {STEP_SHELL, "command", JSON_STRING},
    {STEP_SHELL, "env", JSON_OBJECT},
    {STEP_SHELL, "cwd", JSON_STRING},
    {STEP_SCRIPT, "code", JSON_STRING},
    {STEP_SCRIPT, "env", JSON_OBJECT},
    {STEP_SCRIPT, "cwd", JSON_STRING},
    {STEP_SCRIPT, "args", JSON_ARRAY},
    {STEP_WAIT, "durationMs", JSON_INT},
    {STEP_WAIT, "until", JSON_STRING},
    {STEP_APPROVAL, "message", JSON_STRING},
    {STEP_APPROVAL, "timeoutMs", JSON_INT},
    {STEP_APPROVAL, "onTimeout", JSON_STRING},
    {STEP_SUBRUN, "inputs", JSON_OBJECT},
    {STEP_SUBRUN, "arguments", JSON_STRING},
    {STEP_CANCEL, "reason", JSON_STRING},
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
