// EngineRunRef: an object with members by provider, and one line of text.
#include "contract/internal.h"
#include "contract/profile.h"

#define INVALID "ADAPTER_INVALID_RUN_REF: "

enum { NAME_MAX_LEN = 256, URL_MAX_LEN = 2048 };

struct member {
    const char *name;
    size_t offset;
    uint8_t needed; // providers (1 << provider) that need it
    uint8_t taken;  // providers that may have it
};

#define OF(provider) (1u << (provider))
#define ALL (OF(PROVIDER_CAIRN) | OF(PROVIDER_TEMPORAL) | OF(PROVIDER_CONDUCTOR) | OF(PROVIDER_MOCK))

// In canonical order; `provider` stands between namespace and runId.
static const struct member members[] = {
    {"conductorUrl", offsetof(struct run_ref, url), OF(PROVIDER_CONDUCTOR), OF(PROVIDER_CONDUCTOR)},
    {"namespace", offsetof(struct run_ref, space), OF(PROVIDER_TEMPORAL), OF(PROVIDER_TEMPORAL)},
    {"runId", offsetof(struct run_ref, run_id), ALL, ALL},
    {"store", offsetof(struct run_ref, store), 0, OF(PROVIDER_CAIRN)},
    {"taskQueue", offsetof(struct run_ref, task_queue), 0, OF(PROVIDER_TEMPORAL)},
    {"workflowId", offsetof(struct run_ref, workflow_id), ALL, ALL},
};

static struct str *at(struct run_ref *ref, const struct member *member)
{
    return (struct str *)(void *)((char *)ref + member->offset);
}

static const struct member *find(struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(members); i++)
        if (str_is(name, members[i].name)) return &members[i];
    return NULL;
}

static bool is_text(struct str text, size_t max)
{
    if (text.len == 0 || text.len > max || !str_utf8(text)) return false;
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7f || text.ptr[i] == '|') return false;
    return true;
}

static enum code check(struct run_ref *ref, struct error *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(members); i++) {
        struct str text = *at(ref, &members[i]);
        bool url = members[i].offset == offsetof(struct run_ref, url);
        const char *provider = provider_name(ref->provider);
        if (text.len == 0 && (members[i].needed & OF(ref->provider)))
            return error_set(err, E_INVALID, INVALID "a reference of %s needs %s", provider, members[i].name);
        if (text.len > 0 && !(members[i].taken & OF(ref->provider)))
            return error_set(err, E_INVALID, INVALID "a reference of %s has no %s", provider, members[i].name);
        if (text.len > 0 && !is_text(text, url ? URL_MAX_LEN : NAME_MAX_LEN))
            return error_set(err, E_INVALID, INVALID "%s is malformed", members[i].name);
    }
    if (!run_id_valid(ref->run_id)) return error_set(err, E_INVALID, INVALID "runId is malformed");
    return OK;
}

enum code run_ref_read(const struct json *value, struct run_ref *out, struct error *err)
{
    *out = (struct run_ref){0};
    if (!json_is(value, JSON_OBJECT)) return error_set(err, E_INVALID, INVALID "it is not an object");
    struct run_ref ref = {.provider = provider_parse(json_text(json_key(value, "provider")))};
    if (!ref.provider) return error_set(err, E_INVALID, INVALID "provider is missing or unknown");
    for (uint32_t i = 0; i < value->count; i++) {
        struct str name = value->members[i].key;
        if (str_is(name, "provider")) continue;
        const struct member *member = find(name);
        if (!member || value->members[i].value.type != JSON_STRING)
            return error_set(err, E_INVALID, INVALID "\"%.*s\" is unknown, or not a text", STR_ARG(name));
        *at(&ref, member) = value->members[i].value.text;
    }
    enum code rc = check(&ref, err);
    if (!rc) *out = ref;
    return rc;
}

bool run_ref_write(const struct run_ref *ref, struct arena *arena, struct json *out)
{
    struct run_ref copy = *ref;
    bool ok = json_object_with(arena, ARRAY_COUNT(members) + 1, out);
    for (size_t i = 0; ok && i < ARRAY_COUNT(members); i++) {
        if (str_is(STR("runId"), members[i].name))
            ok = json_put(arena, out, STR("provider"), json_string(str_from(provider_name(ref->provider))));
        struct str text = *at(&copy, &members[i]);
        if (ok && text.len > 0) ok = json_put(arena, out, str_from(members[i].name), json_string(text));
    }
    return ok;
}

// ---- of a run

struct run_ref run_ref_of(const struct run_ids *ids, const struct start_facts *start)
{
    struct str told = start->engine_type.len ? start->engine_type : start->profile;
    enum provider provider = provider_parse(told);
    struct run_ref ref = {
        .provider = provider ? provider : PROVIDER_CAIRN, .workflow_id = ids->run, .run_id = ids->run};
    if (ref.provider == PROVIDER_TEMPORAL) {
        ref.space = start->engine_place.len ? start->engine_place : ids->tenant;
        ref.task_queue = start->queue.len ? start->queue : STR("default");
    } else if (ref.provider == PROVIDER_CONDUCTOR) {
        ref.url = start->engine_place.len ? start->engine_place : STR(RUN_REF_URL);
    }
    return ref;
}

static struct str host_of(struct str url);

bool run_ref_names(const struct run_ref *given, const struct run_ref *own)
{
    if (!str_eq(given->run_id, own->run_id) || !str_eq(given->workflow_id, own->workflow_id)) return false;
    if (given->provider == PROVIDER_CAIRN) return given->store.len == 0 || str_is(given->store, "local");
    if (given->provider != own->provider || !str_eq(given->space, own->space)) return false;
    if (given->task_queue.len > 0 && !str_eq(given->task_queue, own->task_queue)) return false;
    bool whole = str_find(given->url, ':', 0) + 3 < given->url.len &&
                 str_starts(str_slice(given->url, str_find(given->url, ':', 0), given->url.len), STR("://"));
    return str_eq(given->url, own->url) || (!whole && str_eq(given->url, host_of(own->url)));
}

bool run_ref_is(struct str text)
{
    size_t colon = str_find(text, ':', 0);
    return str_starts(text, STR("{")) || str_starts(str_slice(text, colon, text.len), STR("://"));
}

enum code run_ref_told(struct str text, struct arena *arena, struct run_ref *out, struct error *err)
{
    struct json value;
    if (!str_starts(text, STR("{"))) return run_ref_parse(text, out, err);
    *out = (struct run_ref){0};
    enum code rc = json_parse(text, NULL, arena, &value, err);
    if (rc == E_NOMEM) return rc;
    return rc ? error_set(err, E_INVALID, INVALID "it is not JSON") : run_ref_read(&value, out, err);
}

// ---- text

static struct str *place_of(struct run_ref *ref)
{
    if (ref->provider == PROVIDER_TEMPORAL) return &ref->space;
    return ref->provider == PROVIDER_CONDUCTOR ? &ref->url : &ref->store;
}

enum code run_ref_parse(struct str text, struct run_ref *out, struct error *err)
{
    *out = (struct run_ref){0};
    const struct str mark = STR("://");
    size_t colon = str_find(text, ':', 0);
    struct run_ref ref = {.provider = provider_parse(str_slice(text, 0, colon))};
    if (!ref.provider || !str_starts(str_slice(text, colon, text.len), mark))
        return error_set(err, E_INVALID, INVALID "it does not begin with a provider");
    struct str parts[4] = {{0}}, rest = str_slice(text, colon + mark.len, text.len);
    size_t count = 0;
    while (count < ARRAY_COUNT(parts)) {
        size_t slash = count + 1 < ARRAY_COUNT(parts) ? str_find(rest, '/', 0) : rest.len;
        parts[count++] = str_slice(rest, 0, slash);
        if (slash == rest.len) break;
        rest = str_slice(rest, slash + 1, rest.len);
    }
    if (count < ARRAY_COUNT(parts) || str_find(parts[3], '/', 0) < parts[3].len)
        return error_set(err, E_INVALID, INVALID "it has four parts: place, type, workflowId, runId");
    if (ref.provider != PROVIDER_MOCK) *place_of(&ref) = parts[0];
    ref.workflow_id = parts[2];
    ref.run_id = parts[3];
    enum code rc = check(&ref, err);
    if (!rc) *out = ref;
    return rc;
}

// The place of Conductor is its host: a reference in one line has no room for a path.
static struct str host_of(struct str url)
{
    size_t colon = str_find(url, ':', 0);
    struct str rest = str_starts(str_slice(url, colon, url.len), STR("://")) ? str_slice(url, colon + 3, url.len) : url;
    return str_slice(rest, 0, str_find(rest, '/', 0));
}

struct str run_ref_format(const struct run_ref *ref, struct str type, struct arena *arena)
{
    struct run_ref copy = *ref;
    struct str place = {0};
    if (ref->provider != PROVIDER_MOCK) place = *place_of(&copy);
    if (ref->provider == PROVIDER_CONDUCTOR) place = host_of(place);
    if (ref->provider == PROVIDER_CAIRN && place.len == 0) place = STR("local");
    const struct str parts[] = {str_from(provider_name(ref->provider)),
                                STR("://"),
                                place,
                                STR("/"),
                                type,
                                STR("/"),
                                ref->workflow_id,
                                STR("/"),
                                ref->run_id};
    return contract_join(arena, parts, ARRAY_COUNT(parts));
}
