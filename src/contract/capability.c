// Capabilities: the table, and a plan held against it.
#include "contract/profile.h"

#include "base/civil.h"

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

// After the first failure every put does nothing: many puts, one check.
struct making {
    const struct program *program;
    struct arena *arena;
    struct capability_report *out;
    struct json checks, errors;
    bool ok;
};

static void put(struct making *m, struct json *object, const char *key, struct json value)
{
    m->ok = m->ok && json_put(m->arena, object, str_from(key), value);
}

static void put_text(struct making *m, struct json *object, const char *key, struct str text)
{
    if (text.len > 0) put(m, object, key, json_string(text));
}

static void note(struct making *m, struct json *list, const char *code, struct str capability, struct str message)
{
    struct json one = json_object();
    put_text(m, &one, "capability", capability);
    put_text(m, &one, "code", str_from(code));
    put_text(m, &one, "message", message);
    m->ok = m->ok && json_push(m->arena, list, one);
    if (list != &m->errors || m->out->code) return;
    m->out->code = code;
    m->out->message = message;
}

static struct str told(struct making *m, const char *before, struct str name, const char *after)
{
    struct buf text;
    buf_init(&text, 4096);
    buf_printf(&text, "%s%.*s%s", before, STR_ARG(name), after);
    struct str kept = {0};
    if (buf_ok(&text)) kept = arena_copy(m->arena, buf_str(&text));
    buf_release(&text);
    m->ok = m->ok && kept.ptr;
    return kept.ptr ? kept : STR("out of memory");
}

static bool is_open(struct str adapter)
{
    return adapter.len == 0 || str_is(adapter, "any");
}

// Who runs it (WE-2.1g). 0, with an error: nobody, or not the one that the plan was made for.
static enum provider choose(struct making *m, struct str adapter)
{
    struct str planned = m->program->target_adapter;
    const struct str none = {"", 0};
    if (is_open(adapter) && is_open(planned)) return PROVIDER_CAIRN;
    struct str wanted = is_open(adapter) ? planned : adapter;
    enum provider provider = provider_parse(wanted);
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
    struct json one = json_object();
    if (support == SUPPORT_N || emulates || degrades)
        put_text(m, &one, "adapterSupport",
                 support == SUPPORT_N ? STR("native")
                 : emulates           ? STR("emulated")
                                      : STR("degraded"));
    put_text(m, &one, "capability", name);
    if (support == SUPPORT_E && !emulates && !degrades)
        put_text(m, &one, "recommendation", STR("fallbackBehavior: emulate"));
    put(m, &one, "supported", json_bool(support == SUPPORT_N));
    m->ok = m->ok && json_push(m->arena, &m->checks, one);
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

static void put_remediation(struct making *m)
{
    bool emulation = m->out->provider != 0;
    for (uint32_t i = 0; emulation && i < m->program->capability_count; i++) {
        enum capability capability = capability_parse(m->program->capabilities[i]);
        emulation = capability && capability_support(capability, m->out->provider) != SUPPORT_D;
    }
    struct json remedy = json_object();
    if (m->out->provider)
        put_text(m, &remedy, "suggestedFallbackBehavior", emulation ? STR("emulate") : STR("degrade"));
    put_text(m, &remedy, "suggestedTargetAdapter", STR("cairn"));
    put(m, &m->out->json, "remediation", remedy);
}

bool capability_validate(const struct program *program, struct str adapter, int64_t now_ms, struct arena *arena,
                         struct capability_report *out)
{
    *out = (struct capability_report){.json = json_object(), .warnings = json_array()};
    struct making m = {
        .program = program, .arena = arena, .out = out, .checks = json_array(), .errors = json_array(), .ok = true};
    char now[CIVIL_SIZE];
    civil_format(now_ms, now);
    struct str at = arena_copy(arena, str_from(now));
    out->provider = choose(&m, adapter);
    for (uint32_t i = 0; out->provider && i < program->capability_count; i++)
        check(&m, program->capabilities[i], out->provider);
    out->refused = m.errors.count > 0;
    if (out->refused) out->degraded = false;
    struct str target = out->provider ? str_from(provider_name(out->provider)) : STR("auto");
    put(&m, &out->json, "capabilityChecks", m.checks);
    put(&m, &out->json, "errors", m.errors);
    put_text(&m, &out->json, "generatedAt", at);
    put_text(&m, &out->json, "planId", program->plan_id);
    put_text(&m, &out->json, "planVersion", program->plan_version);
    if (out->refused) put_remediation(&m);
    put_text(&m, &out->json, "status",
             out->refused              ? STR("ERRORS")
             : out->warnings.count > 0 ? STR("WARNINGS")
                                       : STR("VALID"));
    put_text(&m, &out->json, "targetAdapter", target);
    put(&m, &out->json, "warnings", out->warnings);
    return m.ok && at.ptr;
}
