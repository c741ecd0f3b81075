#include "expr/expr.h"

enum trigger_rule rule_parse(struct str text)
{
#define X(name, word)                                                                                                  \
    if (str_is(text, word)) return RULE_##name;
    TRIGGER_RULE_LIST(X)
#undef X
    if (str_is(text, "none_failed_or_skipped")) return RULE_NONE_FAILED_MIN_ONE_SUCCESS;
    if (str_is(text, "dummy")) return RULE_ALWAYS;
    return RULE_NONE;
}

const char *rule_name(enum trigger_rule rule)
{
    switch (rule) {
    case RULE_NONE:
        return "none";
#define X(name, word)                                                                                                  \
    case RULE_##name:                                                                                                  \
        return word;
        TRIGGER_RULE_LIST(X)
#undef X
    }
    return "?";
}

bool rule_passes(enum trigger_rule rule, uint32_t success, uint32_t failed, uint32_t skipped)
{
    if (!success && !failed && !skipped) return true;
    switch (rule) {
    case RULE_NONE:
        return false;
    case RULE_ALL_SUCCESS:
        return !failed && !skipped;
    case RULE_ONE_SUCCESS:
    case RULE_ALL_DONE_MIN_ONE_SUCCESS: // differ only while parents are still running
        return success > 0;
    case RULE_NONE_FAILED_MIN_ONE_SUCCESS:
        return !failed && success > 0;
    case RULE_ALL_FAILED:
        return !success && !skipped;
    case RULE_ONE_FAILED:
        return failed > 0;
    case RULE_NONE_FAILED:
        return !failed;
    case RULE_NONE_SKIPPED:
        return !skipped;
    case RULE_ONE_DONE:
        return success > 0 || failed > 0;
    case RULE_ALL_SKIPPED:
        return !success && !failed;
    case RULE_ALL_DONE:
    case RULE_ALWAYS:
        return true;
    }
    return false;
}
