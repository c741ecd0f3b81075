#include "contract/internal.h"

#include "json/make.h"

#define INVALID "SIGNAL_INVALID_PAYLOAD: "

enum { SIGNAL_SIZE_MAX = 64 * 1024 };

static const struct signal_rule rules[SIGNAL_COUNT] = {[SIGNAL_NONE] = {"NONE", "Admin", false, false, false},
#define X(name, role, destructive, apart, recorded) [SIGNAL_##name] = {#name, role, destructive, apart, recorded},
                                                       SIGNAL_LIST(X)
#undef X
};

const struct signal_rule *signal_rule(enum signal_type type)
{
    INVARIANT(type <= SIGNAL_LAST);
    return &rules[type];
}

const char *signal_name(enum signal_type type)
{
    return signal_rule(type)->name;
}

enum signal_type signal_parse(struct str text)
{
    for (size_t i = SIGNAL_NONE + 1; i < SIGNAL_COUNT; i++) {
        if (str_is(text, rules[i].name)) return (enum signal_type)i;
    }
    return SIGNAL_NONE;
}

static enum code check(const struct schema *schema, const char *what, const struct json *value, struct error *err)
{
    struct schema_fault fault;
    if (schema_valid(schema, value, &fault)) return OK;
    return error_set(err, E_INVALID, INVALID "%s%s %s", what, fault.pointer, fault.message);
}

// C-40: `stepId` and `reason` may stand beside the payload instead of in it.
static enum code take_aliases(const struct json *request, enum signal_type type, struct arena *arena,
                              struct json *payload, struct error *err)
{
    static const struct str aliases[] = {{"reason", 6}, {"stepId", 6}};
    const struct json *given = json_get(request, STR("payload"));
    *payload = json_joined(arena, given, NULL);
    for (size_t i = 0; json_ok(payload) && i < ARRAY_COUNT(aliases); i++) {
        const struct json *value = json_get(request, aliases[i]);
        if (!value || (i == 0 && rules[type].reason_apart)) continue;
        if (json_get(payload, aliases[i]))
            return error_set(err, E_INVALID, INVALID "%.*s is given twice", STR_ARG(aliases[i]));
        json_set(arena, payload, aliases[i], *value);
    }
    return json_made(payload, err);
}

// Type and payload are there.
static void read_members(const struct json *request, struct signal *signal)
{
    signal->id = json_text(json_get(request, STR("signalId")));
    signal->actor = json_text(json_get(request, STR("actorId")));
    signal->role = json_text(json_get(request, STR("actorRole")));
    signal->source_ip = json_text(json_get(request, STR("sourceIp")));
    signal->policy_decision_id = json_text(json_get(request, STR("policyDecisionId")));
    signal->requires_approval = json_true(json_key(request, "requiresApproval"));
    signal->denied = json_text(json_get(request, STR("denied")));
    signal->if_seq = (uint64_t)json_integer(json_get(request, STR("ifSeq")), 0);
    signal->step = json_text(json_get(&signal->payload, STR("stepId")));
    signal->approves = json_text(json_get(&signal->payload, STR("signalId")));
    bool apart = rules[signal->type].reason_apart;
    signal->reason = json_text(json_get(apart ? request : &signal->payload, STR("reason")));
    signal->force =
        json_true(json_key(&signal->payload, "force")) || json_true(json_key(&signal->payload, "forceKill"));
}

static enum code read_type(const struct json *request, enum signal_type *out, struct error *err)
{
    const struct json *type = json_get(request, STR("signalType"));
    const struct json *alias = json_get(request, STR("type"));
    if (type && alias && !json_equal(type, alias))
        return error_set(err, E_INVALID, INVALID "signalType and type differ");
    struct str name = json_text(type ? type : alias);
    *out = signal_parse(name);
    if (*out == SIGNAL_NONE) return error_set(err, E_INVALID, INVALID "there is no signal \"%.*s\"", STR_ARG(name));
    return OK;
}

enum code signal_decode(const struct contract *contract, struct str bytes, struct arena *arena, struct signal *out,
                        struct error *err)
{
    *out = (struct signal){0};
    if (bytes.len > SIGNAL_SIZE_MAX) return error_set(err, E_INVALID, INVALID "larger than %d bytes", SIGNAL_SIZE_MAX);
    struct error inner = {0};
    struct json request;
    enum code rc = json_parse(bytes, &json_limits_default, arena, &request, &inner);
    if (rc == E_NOMEM) return error_nomem(err);
    if (rc) return error_set(err, E_INVALID, INVALID "%s", inner.message);
    struct signal signal = {0};
    rc = check(contract->request, "", &request, err);
    if (!rc) rc = read_type(&request, &signal.type, err);
    if (!rc) rc = take_aliases(&request, signal.type, arena, &signal.payload, err);
    if (!rc) rc = check(contract->signals[signal.type], "payload", &signal.payload, err);
    if (rc) return rc;
    read_members(&request, &signal);
    *out = signal;
    return OK;
}

bool signal_read(const struct json *request, struct signal *out)
{
    *out = (struct signal){.type = signal_parse(json_text(json_get(request, STR("signalType"))))};
    const struct json *payload = json_get(request, STR("payload"));
    out->payload = json_is(payload, JSON_OBJECT) ? *payload : json_object();
    read_members(request, out);
    return out->type != SIGNAL_NONE && out->id.len > 0;
}

// The payload as given, and what the struct says beside it.
static bool build_payload(const struct signal *signal, struct arena *arena, struct json *out)
{
    const char *force = signal->type == SIGNAL_EMERGENCY_STOP ? "forceKill" : "force";
    struct json own = JSON_OF(
        arena, {force, json_flag(signal->force)},
        {"reason", json_when(!rules[signal->type].reason_apart, json_some(signal->reason))},
        {"signalId", json_some(signal->approves)}, {"stepId", json_some(signal->step)});
    *out = json_joined(arena, &signal->payload, &own);
    return json_ok(&own) && json_ok(out);
}

bool signal_write(const struct signal *signal, struct arena *arena, struct json *out)
{
    INVARIANT(signal->type > SIGNAL_NONE && signal->type <= SIGNAL_LAST);
    struct json payload;
    if (!build_payload(signal, arena, &payload)) return false;
    *out = JSON_OF(arena, {"payload", payload}, {"requiresApproval", json_flag(signal->requires_approval)},
                   {"actorId", json_some(signal->actor)}, {"actorRole", json_some(signal->role)},
                   {"denied", json_some(signal->denied)},
                   {"ifSeq", json_when(signal->if_seq > 0, json_count(signal->if_seq))},
                   {"policyDecisionId", json_some(signal->policy_decision_id)},
                   {"reason", json_when(rules[signal->type].reason_apart, json_some(signal->reason))},
                   {"signalId", json_some(signal->id)}, {"signalType", json_word(signal_name(signal->type))},
                   {"sourceIp", json_some(signal->source_ip)});
    return json_ok(out);
}

enum code signal_encode(const struct signal *signal, struct arena *arena, struct str *out, struct error *err)
{
    struct json request;
    if (!signal_write(signal, arena, &request)) return error_nomem(err);
    return record_write(&request, arena, out, err);
}
