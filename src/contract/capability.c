// Capabilities: the table, and a plan held against it.
#include "contract/profile.h"

#include "json/make.h"

struct row {
    const char *value;
    uint8_t support[PROVIDER_MOCK + 1];
};

static const struct row rows[CAPABILITY_LAST + 1] = {
#define X(name, value, cairn, temporal, conductor, mock)                                                               \
    [CAPABILITY_##name] = {value, {0, SUPPORT_##cairn, SUPPORT_##temporal, SUPPORT_##conductor, SUPPORT_##mock}},
    CAPABILITY_LIST(X)
#undef X
};

const char *capability_value(enum capability capability)
{
    INVARIANT(capability > CAPABILITY_NONE && capability <= CAPABILITY_LAST);
    return rows[capability].value;
}

enum capability capability_parse(struct str value)
{
    for (size_t i = 1; i <= CAPABILITY_LAST; i++)
        if (str_is(value, rows[i].value)) return (enum capability)i;
    return CAPABILITY_NONE;
}

enum support capability_support(enum capability capability, enum provider provider)
{
    INVARIANT(capability > CAPABILITY_NONE && capability <= CAPABILITY_LAST);
    INVARIANT(provider >= PROVIDER_CAIRN && provider <= PROVIDER_MOCK);
    return (enum support)rows[capability].support[provider];
}

bool capability_carried(enum capability capability, enum provider provider)
{
    static const bool carried[CAPABILITY_LAST + 1][2] = {
#define X(name, temporal, conductor) [CAPABILITY_##name] = {temporal, conductor},
        CARRIED_LIST(X)
#undef X
    };
    INVARIANT(capability > CAPABILITY_NONE && capability <= CAPABILITY_LAST);
    return provider == PROVIDER_TEMPORAL ? carried[capability][0] : provider == PROVIDER_CONDUCTOR && carried[capability][1];
}

struct making {
    const struct program *program;
    const struct adapters *adapters; // may be NULL
    struct arena *arena;
    struct capability_report *out;
    struct json checks, errors;
    bool ok;
};

static void note(struct making *m, struct json *list, const char *code, struct str capability, struct str message)
{
    json_append(m->arena, list, JSON_OF(m->arena, {"capability", json_some(capability)}, {"code", json_word(code)},
                                        {"message", json_some(message)}));
    if (list != &m->errors || m->out->code) return;
    m->out->code = code;
    m->out->message = message;
}

static struct str told(struct making *m, const char *before, struct str name, const char *after)
{
    struct str kept = arena_format(m->arena, "%s%.*s%s", before, STR_ARG(name), after);
    m->ok = m->ok && kept.ptr;
    return kept.ptr ? kept : STR("out of memory");
}

static bool is_open(struct str adapter)
{
    return adapter.len == 0 || str_is(adapter, "any");
}

enum provider adapters_usual(const struct adapters *adapters)
{
    if (!adapters) return PROVIDER_CAIRN;
    enum provider otherwise = adapters->strict ? PROVIDER_TEMPORAL : PROVIDER_CAIRN;
    return adapters->usual ? adapters->usual : otherwise;
}

// Who runs it (WE-2.1g). 0, with an error: nobody, or not the one that the plan was made for.
static enum provider choose(struct making *m, struct str adapter)
{
    struct str planned = m->program->target_adapter;
    const struct str none = {"", 0};
    if (is_open(adapter) && is_open(planned)) return adapters_usual(m->adapters);
    struct str wanted = is_open(adapter) ? planned : adapter;
    enum provider provider = provider_parse(wanted);
    if (provider == PROVIDER_CAIRN && m->adapters && m->adapters->strict) provider = 0;
    if (!provider) {
        note(m, &m->errors, "INVALID_TARGET_ADAPTER", none,
             str_is(wanted, "auto") ? STR("there is no adapter \"auto\": it is chosen before the start")
                                    : told(m, "there is no adapter \"", wanted, "\""));
        return 0;
    }
    bool fits = is_open(planned) || str_is(planned, "auto") || str_eq(planned, wanted);
    if (!fits) note(m, &m->errors, "TARGET_ADAPTER_MISMATCH", none, told(m, "the plan was made for ", planned, ""));
    return provider;
}

static void check(struct making *m, struct str name, enum provider provider)
{
    enum capability capability = capability_parse(name);
    enum support support = capability ? capability_support(capability, provider) : SUPPORT_D;
    bool emulates = str_is(m->program->fallback, "emulate") && support == SUPPORT_E;
    bool degrades = str_is(m->program->fallback, "degrade") && capability;
    const char *how = support == SUPPORT_N ? "native" : emulates ? "emulated" : degrades ? "degraded" : "";
    bool advised = support == SUPPORT_E && !emulates && !degrades;
    json_append(m->arena, &m->checks,
                JSON_OF(m->arena, {"adapterSupport", json_name(how)}, {"capability", json_some(name)},
                        {"recommendation", json_when(advised, json_word("fallbackBehavior: emulate"))},
                        {"supported", json_bool(support == SUPPORT_N)}));
    if (support == SUPPORT_N) return;
    const char *code = !capability ? "CAPABILITY_UNKNOWN"
                       : emulates  ? "CAPABILITY_EMULATED"
                       : degrades  ? "CAPABILITY_DEGRADED"
                                   : "CAPABILITY_NOT_SUPPORTED";
    const char *after = !capability ? " is not a capability"
                        : emulates  ? " is emulated"
                        : degrades  ? " is missing, and the plan runs without it"
                                    : " is not supported";
    bool warns = emulates || degrades;
    m->out->degraded = m->out->degraded || warns;
    note(m, warns ? &m->out->warnings : &m->errors, code, name, told(m, "", name, after));
}

static struct json remediation_json(struct making *m)
{
    bool emulation = m->out->provider != 0;
    for (uint32_t i = 0; emulation && i < m->program->capability_count; i++) {
        enum capability capability = capability_parse(m->program->capabilities[i]);
        emulation = capability && capability_support(capability, m->out->provider) != SUPPORT_D;
    }
    struct json fallback = json_when(m->out->provider, json_word(emulation ? "emulate" : "degrade"));
    return JSON_OF(m->arena, {"suggestedFallbackBehavior", fallback}, 
                   {"suggestedTargetAdapter", json_word(provider_name(adapters_usual(m->adapters)))});
}

bool capability_validate(const struct program *program, struct str adapter, const struct adapters *adapters,
                         int64_t now_ms, struct arena *arena, struct capability_report *out)
{
    *out = (struct capability_report){.json = json_object(), .warnings = json_array()};
    struct making m = {
        .program = program, .adapters = adapters, .arena = arena, .out = out, .checks = json_array(), .errors = json_array(), .ok = true};
    out->provider = choose(&m, adapter);
    for (uint32_t i = 0; out->provider && i < program->capability_count; i++)
        check(&m, program->capabilities[i], out->provider);
    out->refused = m.errors.count > 0;
    if (out->refused) out->degraded = false;
    const char *status = out->refused ? "ERRORS" : out->warnings.count > 0 ? "WARNINGS" : "VALID";
    out->json = JSON_OF(arena, {"capabilityChecks", m.checks}, {"errors", m.errors},
                        {"generatedAt", json_time(arena, now_ms)}, {"planId", json_some(program->plan_id)},
                        {"planVersion", json_some(program->plan_version)},
                        {"remediation", out->refused ? remediation_json(&m) : json_none()},
                        {"status", json_word(status)},
                        {"targetAdapter", json_word(out->provider ? provider_name(out->provider) : "auto")},
                        {"warnings", out->warnings});
    return m.ok && json_ok(&out->json);
}
