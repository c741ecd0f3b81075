#include "contract/internal.h"

#define INVALID "SIGNAL_INVALID_PAYLOAD: "

enum { SIGNAL_SIZE_MAX = 64 * 1024 };

static const char *const names[SIGNAL_COUNT] = {[SIGNAL_NONE] = "NONE",
#define X(name, text) [SIGNAL_##name] = (text),
                                                SIGNAL_LIST(X)
#undef X
};

const char *signal_name(enum signal_type type)
{
    INVARIANT(type <= SIGNAL_REJECT);
    return names[type];
}

enum signal_type signal_parse(struct str text)
{
    for (size_t i = SIGNAL_NONE + 1; i < SIGNAL_COUNT; i++) {
        if (str_is(text, names[i])) return (enum signal_type)i;
    }
    return SIGNAL_NONE;
}

static enum code no_memory(struct error *err)
{
    return error_set(err, E_NOMEM, "out of memory for a signal");
}

static enum code check(const struct schema *schema, const char *what, const struct json *value, struct error *err)
{
    struct schema_fault fault;
    if (schema_valid(schema, value, &fault)) return OK;
    return error_set(err, E_INVALID, INVALID "%s%s %s", what, fault.pointer, fault.message);
}

// The payloads of these have no place for a reason (requirements §3.1): it stands beside them, for the decision record.
static bool reason_is_apart(enum signal_type type)
{
    return type == SIGNAL_RESUME || type == SIGNAL_RETRY_STEP;
}

// C-40: `stepId` and `reason` may stand beside the payload instead of in it.
static enum code take_aliases(const struct json *request, enum signal_type type, struct arena *arena,
                              struct json *payload, struct error *err)
{
    static const struct str aliases[] = {{"reason", 6}, {"stepId", 6}};
    const struct json *given = json_get(request, STR("payload"));
    uint32_t count = given ? given->count : 0;
    if (!json_object_with(arena, count + (uint32_t)ARRAY_COUNT(aliases), payload)) return no_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        if (!json_put(arena, payload, given->members[i].key, given->members[i].value)) return no_memory(err);
    }
    for (size_t i = 0; i < ARRAY_COUNT(aliases); i++) {
        const struct json *value = json_get(request, aliases[i]);
        if (!value || (i == 0 && reason_is_apart(type))) continue;
        if (json_get(payload, aliases[i]))
            return error_set(err, E_INVALID, INVALID "%.*s is given twice", STR_ARG(aliases[i]));
        if (!json_put(arena, payload, aliases[i], *value)) return no_memory(err);
    }
    return OK;
}

static bool flag_of(const struct json *payload, const char *key)
{
    const struct json *value = json_key(payload, key);
    return json_is(value, JSON_BOOL) && value->boolean;
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
    if (rc == E_NOMEM) return no_memory(err);
    if (rc) return error_set(err, E_INVALID, INVALID "%s", inner.message);
    struct signal signal = {0};
    rc = check(contract->request, "", &request, err);
    if (!rc) rc = read_type(&request, &signal.type, err);
    if (!rc) rc = take_aliases(&request, signal.type, arena, &signal.payload, err);
    if (!rc) rc = check(contract->signals[signal.type], "payload", &signal.payload, err);
    if (rc) return rc;
    signal.id = json_text(json_get(&request, STR("signalId")));
    signal.actor = json_text(json_get(&request, STR("actorId")));
    signal.role = json_text(json_get(&request, STR("actorRole")));
    signal.step = json_text(json_get(&signal.payload, STR("stepId")));
    signal.reason = json_text(json_get(reason_is_apart(signal.type) ? &request : &signal.payload, STR("reason")));
    signal.force = flag_of(&signal.payload, "force") || flag_of(&signal.payload, "forceKill");
    *out = signal;
    return OK;
}

static bool put_missing(struct arena *arena, struct json *object, struct str key, struct json value, bool write)
{
    if (!write || json_get(object, key)) return true;
    return json_put(arena, object, key, value);
}

// The payload as given, and what the struct says beside it.
static bool build_payload(const struct signal *signal, struct arena *arena, struct json *out)
{
    enum { OWN_MEMBERS = 3 };
    const struct json *given = signal->payload.type == JSON_OBJECT ? &signal->payload : NULL;
    uint32_t count = given ? given->count : 0;
    if (!json_object_with(arena, count + OWN_MEMBERS, out)) return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!json_put(arena, out, given->members[i].key, given->members[i].value)) return false;
    }
    struct str force = signal->type == SIGNAL_EMERGENCY_STOP ? STR("forceKill") : STR("force");
    return put_missing(arena, out, force, json_bool(true), signal->force) &&
           put_missing(arena, out, STR("reason"), json_string(signal->reason),
                       signal->reason.len > 0 && !reason_is_apart(signal->type)) &&
           put_missing(arena, out, STR("stepId"), json_string(signal->step), signal->step.len > 0);
}

enum code signal_encode(const struct signal *signal, struct arena *arena, struct str *out, struct error *err)
{
    enum { MEMBERS = 6 };
    INVARIANT(signal->type > SIGNAL_NONE && signal->type <= SIGNAL_REJECT);
    struct json request, payload;
    bool built = build_payload(signal, arena, &payload) && json_object_with(arena, MEMBERS, &request) &&
                 put_missing(arena, &request, STR("actorId"), json_string(signal->actor), signal->actor.len > 0) &&
                 put_missing(arena, &request, STR("actorRole"), json_string(signal->role), signal->role.len > 0) &&
                 json_put(arena, &request, STR("payload"), payload) &&
                 put_missing(arena, &request, STR("reason"), json_string(signal->reason),
                             signal->reason.len > 0 && reason_is_apart(signal->type)) &&
                 json_put(arena, &request, STR("signalId"), json_string(signal->id)) &&
                 json_put(arena, &request, STR("signalType"), json_string(str_from(signal_name(signal->type))));
    if (!built) return no_memory(err);
    return record_write(&request, arena, out, err);
}
