// Definitions: documents kept under the hash of their bytes, and which of them a person has approved.
//
//   note "definition"  TENANT/NAME/SHA256        who brought it, when, who approved it; '|' in place of a slash of NAME
//   note "plan"        TENANT/SHA256             its bytes: what cairn://plans/SHA256 means to this tenant
//   note "approved"    TENANT/NAME/PLANVERSION   the hash that was approved under this version; it never becomes another
//
// A tenant finds only what it has brought itself, whatever the hash: content of others cannot be asked for by guessing.
#include "http/http.h"
#include "service/inside.h"

#include <stdlib.h>

struct defining {
    struct str name, sha256, project, environment, text;
    struct str key, plan_key; // of the notes
    struct json value;        // of the definition
    struct str plan_version;
    uint64_t version; // of the note that is changed
    bool approve;
};

// As it stands in a key: no name has a '|'.
struct str definition_key(struct call *call, struct str name)
{
    if (str_find(name, '/', 0) == name.len) return name;
    char *out = arena_alloc(&call->arena, name.len);
    for (size_t i = 0; out && i < name.len; i++) out[i] = name.ptr[i] == '/' ? '|' : name.ptr[i];
    return (struct str){out, name.len};
}

static struct str key_of(struct call *call, struct str first, struct str second)
{
    first = definition_key(call, first);
    if (!first.ptr) return first;
    if (second.len == 0) return call_text(call, "%.*s/%.*s", STR_ARG(call->who.tenant), STR_ARG(first));
    return call_text(call, "%.*s/%.*s/%.*s", STR_ARG(call->who.tenant), STR_ARG(first), STR_ARG(second));
}

static struct str written(struct call *call, const struct json *value)
{
    struct buf text = buf_of(64 * 1024);
    json_canon(&text, value);
    return buf_keep(&text, &call->arena);
}

// ---- what was approved, in memory: every start of an operator asks

static struct digest approval_of(struct str tenant, struct str sha256_hex)
{
    struct digest pieces[] = {sha256(tenant), sha256(sha256_hex)};
    return sha256((struct str){(const char *)pieces, sizeof(pieces)});
}

static enum code add_approval(struct approvals *approvals, struct str tenant, struct str sha256_hex, struct error *err)
{
    if (!LIST_ROOM(approvals->items, approvals->count, &approvals->capacity)) return error_nomem(err);
    approvals->items[approvals->count++] = approval_of(tenant, sha256_hex);
    return OK;
}

static enum code remember(struct service *service, struct str tenant, struct str sha256_hex, struct error *err)
{
    struct approvals *approvals = &service->approvals;
    pthread_rwlock_wrlock(&approvals->lock);
    enum code rc = add_approval(approvals, tenant, sha256_hex, err);
    pthread_rwlock_unlock(&approvals->lock);
    return rc;
}

bool definitions_approved(struct service *service, struct str tenant, struct str sha256_hex)
{
    struct approvals *approvals = &service->approvals;
    struct digest wanted = approval_of(tenant, sha256_hex);
    bool found = false;
    pthread_rwlock_rdlock(&approvals->lock);
    for (size_t i = 0; !found && i < approvals->count; i++) found = digest_eq(&approvals->items[i], &wanted);
    pthread_rwlock_unlock(&approvals->lock);
    return found;
}

static enum code load_approval(void *context, const struct note *note, struct arena *scratch, struct error *err)
{
    struct json value;
    enum code rc = json_parse(note->value, NULL, scratch, &value, err);
    struct str tenant = rc ? STR("") : json_text(json_key(&value, "tenantId"));
    return rc ? rc : add_approval(context, tenant, json_text(json_key(&value, "sha256")), err);
}

// ---- cairn://plans/SHA256

// Whose plans, read through which handle: set around a fetch, by the thread that fetches.
static _Thread_local const struct {
    struct call *call;
    struct store *store;
} * asking;

static enum code load_plan(void *context, struct str sha256, struct arena *arena, struct str *bytes, struct error *err)
{
    struct note note;
    (void)context;
    if (!asking) return error_set(err, E_NOT_FOUND, "nobody asks");
    struct str key = key_of(asking->call, sha256, (struct str){0});
    enum code rc = store_note(asking->store, STR("plan"), key, arena, &note, err);
    if (!rc) *bytes = note.value;
    return rc;
}

bool definitions_has(struct str uri)
{
    return str_starts(uri, STR("cairn:"));
}

enum code definitions_fetch(struct call *call, struct store *store, const struct plan_ref *ref, struct str *bytes,
                            struct plan_trip *trip, struct error *err)
{
    typeof(*asking) mine = {call, store};
    asking = &mine;
    enum code rc = fetch_plan(call->service->own_plans, ref, &call->arena, bytes, trip, err);
    asking = NULL;
    return rc;
}

enum code definitions_reload(struct service *service, struct error *err)
{
    struct approvals *approvals = &service->approvals, next = {0};
    enum code rc = store_each_note(service->store, STR("approved"), STR(""), load_approval, &next, err);
    if (!rc) { // in place of those of the last time
        pthread_rwlock_wrlock(&approvals->lock);
        struct digest *old = approvals->items;
        approvals->items = next.items;
        approvals->count = next.count;
        approvals->capacity = next.capacity;
        pthread_rwlock_unlock(&approvals->lock);
        next.items = old;
    }
    free(next.items);
    return rc;
}

enum code definitions_open(struct service *service, struct error *err)
{
    struct json *config = ARENA_NEW(&service->arena, struct json), allow = json_array();
    if (!config) return error_nomem(err);
    *config = json_object();
    json_append(&service->arena, &allow, json_string(STR("cairn://plans/")));
    JSON_ADD(&service->arena, config, {"allow", allow});
    if (!json_ok(config)) return error_nomem(err);
    enum code rc = fetch_policy_parse(config, &service->arena, &service->own_plans, err);
    if (rc) return rc;
    fetch_policy_plans(service->own_plans, (struct fetch_plans){.load = load_plan});
    return definitions_reload(service, err);
}

void definitions_close(struct service *service)
{
    free(service->approvals.items);
    service->approvals.items = NULL;
}

// ---- keeping one

static bool answer_definition(struct call *call, int status)
{
    const struct defining *defining = call->state;
    struct buf location SCOPED(buf_release) = buf_of(4096);
    buf_text(&location, "/v1/definitions/");
    http_percent_encode_path(&location, defining->name);
    buf_printf(&location, "/versions/%.*s", STR_ARG(defining->sha256));
    call->answer.location = arena_copy(&call->arena, buf_str(&location));
    call->answer.etag = call_text(call, "\"%.*s\"", STR_ARG(defining->sha256));
    return call_answer(call, status, defining->value);
}

static void kept(void *context, enum code rc, const struct error *why)
{
    struct call *call = context;
    struct defining *defining = call->state;
    struct error err = {0};
    if (rc == E_CONFLICT && defining->approve) {
        call_problem(call, 409, "PLAN_VERSION_TAKEN", "version %.*s of this plan was approved with other content",
                     STR_ARG(defining->plan_version));
        return;
    }
    if (!rc && defining->approve) rc = remember(call->service, call->who.tenant, defining->sha256, &err);
    if (rc)
        call_failed(call, why && why->code ? why : &err);
    else
        answer_definition(call, defining->approve ? 200 : 201);
}

static bool keep_on_engine(struct call *call)
{
    struct service *service = call->service;
    struct defining *defining = call->state;
    struct error err = {0};
    struct note note;
    enum code rc = store_note(service->store, STR("definition"), defining->key, &call->arena, &note, &err);
    if (rc == OK) { // the same bytes under the same name: nothing is left to do
        rc = json_parse(note.value, NULL, &call->arena, &defining->value, &err);
        call->answer.replayed = true;
        if (rc)
            call_failed(call, &err);
        else
            answer_definition(call, 200);
        return false;
    }
    struct str value = written(call, &defining->value);
    struct note_put puts[] = {
        {.space = STR("definition"), .key = defining->key, .value = value, .expect = 0},
        {.space = STR("plan"), .key = defining->plan_key, .value = defining->text, .expect = NOTE_ANY},
    };
    rc = rc == E_NOT_FOUND ? OK : rc;
    if (!rc && !value.ptr) rc = error_nomem(&err);
    if (!rc) rc = audit_call(call, OPERATION_PLAN_REGISTER, call->resource, (struct str){0}, &err);
    if (!rc) rc = engine_put(service->engine, puts, ARRAY_COUNT(puts), kept, call, &err);
    if (rc) return call_failed(call, &err);
    return true;
}

static bool describe(struct call *call)
{
    struct defining *defining = call->state;
    const struct program *program = call->program;
    defining->value = json_object();
    struct arena *arena = &call->arena;
    JSON_ADD(arena, &defining->value, {"tenantId", json_copied_some(arena, call->who.tenant)},
             {"projectId", json_copied_some(arena, defining->project)},
             {"environmentId", json_copied_some(arena, defining->environment)},
             {"name", json_copied_some(arena, defining->name)}, {"sha256", json_copied_some(arena, defining->sha256)},
             {"planId", json_copied_some(arena, program->plan_id)},
             {"planVersion", json_copied_some(arena, program->plan_version)},
             {"schemaVersion", json_copied_some(arena, program->schema_version)},
             {"uri", json_text_made(call_text(call, "cairn://plans/%.*s", STR_ARG(defining->sha256)))},
             {"sizeBytes", json_count(defining->text.len)}, {"createdAt", json_time(arena, os_now().wall_ms)},
             {"createdBy", json_copied_some(arena, call->who.id)});
    return json_ok(&defining->value);
}

// Compiled before it is kept: what cannot run is no definition.
static bool compile_on_reader(struct call *call, struct store *store)
{
    struct defining *defining = call->state;
    struct str text = defining->text, file = defining->name;
    const struct json *parts = NULL;
    (void)store;
    if (!documents_unpack(call, &text, &file, &parts)) return false;
    if (documents_get(call, text, file, parts, &call->program) != DOCUMENT_OK) return false;
    if (!str_eq(call->program->plan_id, defining->name))
        return call_problem(call, 422, "PLAN_REF_MISMATCH", "the document calls itself %.*s",
                            STR_ARG(call->program->plan_id));
    if (describe(call)) return service_post(call, keep_on_engine);
    return call_nomem(call);
}

static struct defining *begin(struct call *call, const struct definition_call *given)
{
    struct defining *defining = ARENA_NEW(&call->arena, struct defining);
    if (!defining) return NULL;
    call->state = defining;
    defining->name = given->name;
    defining->sha256 = given->sha256;
    defining->project = given->project.len ? given->project : STR("default");
    defining->environment = given->environment.len ? given->environment : STR("default");
    defining->text = given->text;
    defining->key = key_of(call, given->name, given->sha256);
    defining->plan_key = key_of(call, given->sha256, (struct str){0});
    call->resource = call_text(call, "%.*s/%.*s/%.*s", STR_ARG(call->who.tenant), STR_ARG(given->name), STR_ARG(given->sha256));
    return call->resource.ptr && defining->key.ptr && defining->plan_key.ptr ? defining : NULL;
}

bool service_definition_put(struct call *call, const struct definition_call *given)
{
    struct digest actual = sha256(given->text), wanted;
    struct auth_object place = {.tenant = call->who.tenant,
                                .project = given->project.len ? given->project : STR("default"),
                                .environment = given->environment.len ? given->environment : STR("default"),
                                .exists = true};
    if (!begin(call, given)) return call_nomem(call);
    if (!service_may(call, OPERATION_PLAN_REGISTER, &place, (struct str){0})) return false;
    if (!digest_parse(given->sha256, &wanted))
        return call_problem(call, 400, "INVALID_REQUEST",
                            "a version is named by the SHA-256 of its bytes, in lower-case hex");
    if (!digest_eq(&actual, &wanted))
        return call_problem(call, 422, "PLAN_INTEGRITY_VALIDATION_FAILED", "these bytes have another SHA-256");
    return service_read(call, compile_on_reader);
}

bool definitions_keep(struct call *call, const struct program *program, struct str text, struct note_put *out)
{
    struct service *service = call->service;
    struct digest mark = approval_of(call->who.tenant, str_from(program->sha256_hex));
    struct digest *known =
        &service->plans_kept[(mark.b[0] | (unsigned)mark.b[1] << 8) % ARRAY_COUNT(service->plans_kept)];
    struct note note;
    struct error err = {0};
    if (text.len == 0 || digest_eq(known, &mark)) return false;
    struct str key = key_of(call, str_from(program->sha256_hex), (struct str){0});
    if (!key.ptr) return false;
    enum code rc = store_note(service->store, STR("plan"), key, &call->arena, &note, &err);
    if (rc == OK) *known = mark;
    *out = (struct note_put){.space = STR("plan"), .key = key, .value = text, .expect = NOTE_ANY};
    return rc == E_NOT_FOUND;
}

static bool is_here(const struct call *call)
{
    return call->unix_socket || str_starts(call->source_ip, STR("127.")) || str_is(call->source_ip, "::1");
}

bool definitions_inline(struct call *call)
{
    enum inline_plans may = call->service->settings.inline_plans;
    if (may == INLINE_ALLOW || (may == INLINE_LOCAL && is_here(call))) return true;
    call->answer.hint = STR("put it as a definition and start it by planRef (cairn://plans/SHA256), or set plans.inline");
    return call_problem(call, 403, "PLAN_INLINE_NOT_ALLOWED", may == INLINE_DENY
                                                                  ? "this service takes references to plans, no documents"
                                                                  : "this service takes documents from its own machine alone");
}

// ---- approving one

static bool approve_on_engine(struct call *call)
{
    struct service *service = call->service;
    struct defining *defining = call->state;
    struct error err = {0};
    struct json approved = json_object();
    if (json_key(&defining->value, "approvedBy")) {
        call->answer.replayed = true;
        return answer_definition(call, 200);
    }
    struct str key = key_of(call, defining->name, defining->plan_version);
    JSON_ADD(&call->arena, &defining->value, {"approvedAt", json_time(&call->arena, os_now().wall_ms)},
             {"approvedBy", json_copied_some(&call->arena, call->who.id)});
    JSON_ADD(&call->arena, &approved, {"sha256", json_string(defining->sha256)},
             {"tenantId", json_string(call->who.tenant)});
    bool ok = json_ok(&defining->value) && json_ok(&approved);
    struct str value = written(call, &defining->value), mark = written(call, &approved);
    struct note_put puts[] = {
        {.space = STR("definition"), .key = defining->key, .value = value, .expect = defining->version},
        {.space = STR("approved"), .key = key, .value = mark, .expect = 0},
    };
    enum code rc = ok && key.ptr && value.ptr && mark.ptr ? OK : error_nomem(&err);
    if (!rc) rc = audit_call(call, OPERATION_PLAN_APPROVE, call->resource, (struct str){0}, &err);
    if (!rc) rc = engine_put(service->engine, puts, ARRAY_COUNT(puts), kept, call, &err);
    if (rc) return call_failed(call, &err);
    return true;
}

enum code definition_read(struct call *call, struct store *store, struct str name, struct str sha256, struct json *out,
                          uint64_t *version, struct error *err)
{
    struct note note;
    struct str key = key_of(call, name, sha256);
    enum code rc = key.ptr ? store_note(store, STR("definition"), key, &call->arena, &note, err) : error_nomem(err);
    if (!rc) rc = json_parse(note.value, NULL, &call->arena, out, err);
    if (!rc) *version = note.version;
    return rc;
}

struct auth_object definition_object(const struct call *call, const struct json *definition)
{
    if (!definition) return (struct auth_object){.tenant = call->who.tenant};
    return (struct auth_object){.tenant = json_text(json_key(definition, "tenantId")),
                                .project = json_text(json_key(definition, "projectId")),
                                .environment = json_text(json_key(definition, "environmentId")),
                                .exists = true};
}

static bool find_on_reader(struct call *call, struct store *store)
{
    struct defining *defining = call->state;
    struct error err = {0};
    enum code rc =
        definition_read(call, store, defining->name, defining->sha256, &defining->value, &defining->version, &err);
    bool absent = rc == E_NOT_FOUND;
    struct auth_object object = definition_object(call, rc ? NULL : &defining->value);
    if (!rc)
        rc = tokens_person(call->service, store, json_text(json_key(&defining->value, "createdBy")), &call->arena,
                           &object.requested_by, &err);
    if (rc && !absent) return call_failed(call, &err);
    if (!service_may(call, OPERATION_PLAN_APPROVE, &object, (struct str){0})) return false;
    defining->plan_version = json_text(json_key(&defining->value, "planVersion"));
    return service_post(call, approve_on_engine);
}

bool service_definition_approve(struct call *call, const struct definition_call *given)
{
    struct defining *defining = begin(call, given);
    if (!defining) return call_nomem(call);
    defining->approve = true;
    return service_read(call, find_on_reader);
}

// ---- the bytes

enum code service_definition_text(struct call *call, struct store *store, struct str sha256, struct str *out,
                                  struct error *err)
{
    struct note note;
    struct str key = key_of(call, sha256, (struct str){0});
    enum code rc = store_note(store, STR("plan"), key, &call->arena, &note, err);
    if (!rc) *out = note.value;
    return rc;
}
