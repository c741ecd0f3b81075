// Plans that a start names by reference: what a reference must be, fetching it, and what becomes of one that comes to nothing.
// One that passed the first checks leaves a run that was queued and failed (C-37).
#include "service/starting.h"

#include <stdlib.h>
#include <string.h>

// ---- what it says

static bool schema_version_known(struct str version)
{
    return STR_AMONG(version, "v1.0", "v1.1", "v1.2");
}

// In the order of the contract: allow-list, schema version, then (in service_start) who and ids.
bool ref_accepted(struct call *call, const struct plan_ref *ref)
{
    struct error err = {0};
    struct digest digest;
    const struct service *service = call->service;
    const struct fetch_policy *policy = definitions_has(ref->uri) ? service->own_plans : service->settings.fetch;
    if (!policy || fetch_uri_check(policy, ref->uri, &err))
        return call_problem(call, 422, "PLAN_URI_NOT_ALLOWED", "plans may not be fetched from there");
    if (!schema_version_known(ref->schema_version))
        return call_problem(call, 422, "PLAN_SCHEMA_VERSION_UNKNOWN", "schemaVersion %.*s is none of v1.0, v1.1, v1.2",
                            STR_ARG(ref->schema_version));
    if (!digest_parse(ref->sha256, &digest) || !ref->plan_id.len || !ref->plan_version.len)
        return call_problem(
            call, 400, "INVALID_REQUEST",
            "planRef needs uri, sha256 (64 lower-case hex digits), planId, planVersion and schemaVersion");
    if (!ref->expires_ms || os_now().wall_ms < ref->expires_ms) return true;
    return call_problem(call, 422, "PLAN_REF_EXPIRED", "the reference has expired");
}

// What is behind a question mark may be a signature that opens the place for others.
struct str ref_shown(const struct plan_ref *ref)
{
    return str_slice(ref->uri, 0, str_find(ref->uri, '?', 0));
}

bool ref_fits(struct call *call, const struct plan_ref *ref, const struct program *program)
{
    const char *field = NULL;
    if (!str_eq(ref->plan_id, program->plan_id))
        field = "planId";
    else if (!str_eq(ref->plan_version, program->plan_version))
        field = "planVersion";
    else if (program->schema_version.len > 0 && !str_eq(ref->schema_version, program->schema_version))
        field = "schemaVersion";
    if (!field) return true;
    return call_problem(call, 422, "PLAN_REF_MISMATCH", "%s of the plan is not that of its reference", field);
}

// ---- references that come to nothing

// Both hashes go to the audit alone (WE-3.1l): to a tenant they would tell what stands behind an address.
static enum code audit_refusal(struct call *call, struct error *err)
{
    const struct starting *starting = call->state;
    struct auth_ask ask = {.principal = &call->who, .operation = OPERATION_RUN_START};
    struct audit_record record = audit_of(&ask, &call->decision);
    record.tenant = call->who.tenant;
    record.resource_type = STR("plan");
    record.resource = starting->given.ref.uri;
    record.project = call->project;
    record.environment = call->environment;
    record.outcome = AUDIT_FAILED;
    record.engine_attempt = record.logical_attempt = 1;
    record.code = str_from(call->answer.code);
    record.ip = call->source_ip;
    record.request = call->request_id;
    if (starting->alarm)
        record.details = JSON_OF(&call->arena, {"expectedSha256", json_string(starting->given.ref.sha256)},
                                 {"actualSha256", json_digest(&call->arena, &starting->trip.actual)});
    if (!json_ok(&record.details)) return error_nomem(err);
    return audit_add(call->service, &record, err);
}

static bool refusal_of(struct call *call, struct json *out)
{
    const struct starting *starting = call->state;
    const struct plan_ref *ref = &starting->given.ref;
    struct arena *arena = &call->arena;
    *out = JSON_OF(arena, {"code", json_word(call->answer.code)}, {"message", json_string(call->answer.detail)},
                   {"sha256", json_string(ref->sha256)}, {"uri", json_string(ref_shown(ref))});
    return json_ok(out);
}

static void alarm(struct call *call, const struct plan_ref *ref)
{
    struct alert_fact fact = {.name = ALERT_PLAN_INTEGRITY_VALIDATION_FAILED,
                              .tenant = call->who.tenant,
                              .subject = ref_shown(ref),
                              .text = STR("a plan is not what its reference says"),
                              .at_ms = os_now().wall_ms};
    service_alert(call->service, &fact);
}

// The run of its failure raises the alert; without one it is raised here.
static void alarm_alone(struct call *call)
{
    const struct starting *starting = call->state;
    if (starting->alarm) alarm(call, &starting->given.ref);
}

static enum code store_refusal(struct call *call, struct error *err)
{
    struct service *service = call->service;
    struct starting *starting = call->state;
    struct start_request request = start_asked(call);
    struct note_put note;
    struct json refusal;
    bool ok = start_choose(call, &request) && refusal_of(call, &refusal) &&
              (!starting->keyed || start_note(call, request.run, &note));
    if (!ok) return error_nomem(err);
    request.refusal = &refusal;
    request.notes = &note;
    request.note_count = starting->keyed;
    enum code rc = engine_start(service->engine, &request, starting->run, err);
    if (rc) return rc;
    start_names(call, str_from(starting->run));
    int64_t until = os_now().mono_ms + 30000;
    waits_add(service, call, WAIT_STORED, call->who.tenant, str_from(starting->run), until);
    return OK;
}

static bool refuse_on_engine(struct call *call)
{
    struct error err = {0};
    if (start_made_before(call) || !limits_start(call)) return false; // answered: the call is gone
    enum code rc = audit_refusal(call, &err);
    if (!rc) rc = store_refusal(call, &err);
    if (!rc) return true;
    alarm_alone(call);
    return start_failed(call, &err);
}

// A plan of one step that fails, in the place of the one that was meant: whatever is made of its run comes to nothing, too.
static enum code stand_in(struct call *call, struct program **out, struct error *err)
{
    const struct plan_ref *ref = &((struct starting *)call->state)->given.ref;
    struct arena *arena = &call->arena;
    struct json root = json_object(), metadata = json_object(), steps = json_array(), step = json_object();
    struct diagnostics diagnostics;
    JSON_ADD(arena, &metadata, {"planId", json_string(ref->plan_id)}, {"planVersion", json_string(ref->plan_version)},
             {"schemaVersion", json_string(ref->schema_version)});
    JSON_ADD(arena, &step, {"stepId", json_word("plan")}, {"kind", json_word("noop")},
             {"simulateError", json_word("permanent")});
    json_append(arena, &steps, step);
    JSON_ADD(arena, &root, {"metadata", metadata}, {"steps", steps});
    bool ok = json_ok(&root);
    struct buf text SCOPED(buf_release) = buf_of(64 * 1024);
    if (ok) json_canon(&text, &root);
    diagnostics_init(&diagnostics, arena);
    return ok && buf_ok(&text) ? program_load(buf_str(&text), STR("<refused>"), NULL, &diagnostics, out, err)
                               : error_nomem(err);
}

// Whether the plan was the reason, and not us.
static bool plan_was_refused(const struct answer *answer)
{
    return answer->status == 422 || answer->status == 413;
}

// Reader thread, instead of call->done while a reference is looked after: the answer is there, and waits for its run.
void ref_refused(struct call *call)
{
    struct starting *starting = call->state;
    struct error err = {0};
    call->done = starting->done;
    if (call->program) program_release(call->program);
    call->program = NULL;
    if (!plan_was_refused(&call->answer) || stand_in(call, &call->program, &err)) {
        alarm_alone(call);
        call->done(call);
        return;
    }
    start_key(starting, starting->given.ref.plan_id, starting->given.ref.plan_version);
    service_post(call, refuse_on_engine);
}

// What a server answered decides the code of the problem. Where none answered there is one code, so that no client scans networks with us;
// but for object stores, whose servers no reference names.
static bool tell_not_fetched(struct call *call, const struct plan_ref *ref, const struct plan_trip *trip, enum code rc,
                             const struct error *err)
{
    bool own = definitions_has(ref->uri), silent = trip->status == 0 && trip->object;
    if (rc == E_CORRUPT)
        return call_problem(call, 422, "PLAN_INTEGRITY_VALIDATION_FAILED", "the plan is not what its reference says");
    if (rc == E_NOT_FOUND && own)
        return call_problem(call, 422, "PLAN_NOT_FOUND", "there is no definition with this hash");
    if (rc == E_NOT_FOUND && trip->status)
        return call_problem(call, 422, "PLAN_NOT_FOUND", "the server has no such plan (%d)", trip->status);
    if (rc == E_DENIED && (trip->status == 401 || trip->status == 403))
        return call_problem(call, 422, "PLAN_ACCESS_DENIED", "the server does not hand the plan to this service (%d)",
                            trip->status);
    if (rc == E_UNREACHABLE || (silent && (rc == E_IO || rc == E_TIMEOUT || rc == E_NOT_FOUND))) {
        call->answer = (struct answer){.retryable = true, .retry_after_ms = 1000};
        if (trip->status)
            return call_problem(call, 503, "PLAN_UNAVAILABLE", "the server does not hand out the plan now (%d)",
                                trip->status);
        return call_problem(call, 503, "PLAN_UNAVAILABLE", "%s",
                            rc == E_NOT_FOUND ? "the service lacks a credential for the object store"
                                              : "the object store does not answer");
    }
    if (rc == E_DENIED || rc == E_IO || rc == E_TIMEOUT || rc == E_NOT_FOUND)
        return call_problem(call, 422, "PLAN_URI_NOT_ALLOWED", "the plan cannot be had from there");
    return call_failed(call, err);
}

// Only what the recorded address gives again: without a query (it is not recorded), as it is, and for as long as one likes. One that
// cannot be kept apart is stored with its run.
static void keep_apart(const struct plan_ref *ref, struct str bytes, const struct store *store)
{
    struct error err = {0};
    struct digest sha = sha256(bytes);
    bool again = !definitions_has(ref->uri) && str_find(ref->uri, '?', 0) == ref->uri.len && !ref->expires_ms &&
                 !str_is(ref->compression, "gzip") && !documents_is_set(bytes); // its documents are kept one by one
    if (again && store_plan_keep(store, &sha, bytes, &err))
        os_log(LOG_WARN, "plan not kept apart why=\"%s\"", err.message);
}

static enum code fetch_bytes(struct call *call, struct store *store, const struct plan_ref *ref, struct str *bytes,
                             struct plan_trip *trip, struct error *err)
{
    const struct service_settings *settings = &call->service->settings;
    enum code rc = definitions_has(ref->uri) ? definitions_fetch(call, store, ref, bytes, trip, err)
                                             : fetch_plan(settings->fetch, ref, &call->arena, bytes, trip, err);
    if (rc == OK && !settings->plans_stored) keep_apart(ref, *bytes, store);
    return rc;
}

bool ref_fetch(struct call *call, struct store *store)
{
    struct starting *starting = call->state;
    const struct plan_ref *ref = &starting->given.ref;
    struct error err = {0};
    struct str bytes;
    enum code rc = fetch_bytes(call, store, ref, &bytes, &starting->trip, &err);
    starting->alarm = rc == E_CORRUPT;
    if (rc == OK) return start_compile(call, bytes);
    return tell_not_fetched(call, ref, &starting->trip, rc, &err);
}

bool ref_document(struct call *call, struct store *store, const struct plan_ref *ref, struct str *text, struct str *file,
                  const struct json **parts)
{
    struct plan_trip trip = {0};
    struct error err = {0};
    enum code rc = fetch_bytes(call, store, ref, text, &trip, &err);
    if (rc == E_CORRUPT) alarm(call, ref);
    if (rc) return tell_not_fetched(call, ref, &trip, rc, &err);
    return documents_unpack(call, text, file, parts);
}

// What the run records of where its plan came from; of a document that the store itself has under its own hash, nothing.
struct str ref_origin(const struct plan_ref *ref, const struct json *parts)
{
    struct str uri = ref_shown(ref);
    return !definitions_has(uri) || parts ? uri : (struct str){0};
}
