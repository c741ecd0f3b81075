// How long what steps leave is kept, by its kind.
#include "engine/engine.h"

#include "base/civil.h"
#include "json/form.h"

enum { RULES_MAX = 64, KIND_MAX = 128 };

enum code retention_parse(const struct json *config, struct arena *arena, struct retention *out, struct error *err)
{
    struct form form;
    form_begin(&form, "retention", config, arena, err);
    if (config->count > RULES_MAX) return form_fail(&form, NULL, "has more than 64 kinds");
    struct retention_rule *rules = ARENA_ARRAY(arena, config->count + 1, struct retention_rule);
    if (!rules) return error_nomem(err);
    for (uint32_t i = 0; i < config->count; i++) {
        struct str kind = arena_copy(arena, config->members[i].key), age = {0};
        if (!kind.ptr) return error_nomem(err);
        rules[i].kind = kind;
        form_text(&form, kind.ptr, &age);
        bool never = str_is(age, "never");
        if (kind.len == 0 || kind.len > KIND_MAX) form_fail(&form, NULL, "a kind has 1 to 128 characters");
        if (!form.rc && !never && (!duration_parse(age, &rules[i].ms) || rules[i].ms <= 0))
            form_fail(&form, kind.ptr, "is an age such as 7d or 12h, or never");
    }
    *out = (struct retention){.rules = rules, .count = config->count};
    return form_end(&form);
}

int64_t retention_of(const struct retention *retention, struct str kind)
{
    int64_t usual = 0;
    for (size_t i = 0; i < retention->count; i++) {
        const struct retention_rule *rule = &retention->rules[i];
        if (str_eq(rule->kind, kind)) return rule->ms;
        if (str_is(rule->kind, "default")) usual = rule->ms;
    }
    return usual;
}
