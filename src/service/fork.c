// Runs made from other runs: fork, rerun, retry from a step on, and what each would be.
//
//   reader thread   the source is there and the caller may; the document, if another is given; a preview ends here
//   engine thread   the same request again? what is taken over is decided over the engine's own handle, recorded, started
//
// The id of a new run follows from the idempotency key, so that a request that is sent twice can make one run only, whenever the
// process died in between.
#include "service/inside.h"

#include "reading/reading.h"

struct forking {
    struct fork_call given;
    struct str key; // of the note; empty = no key was given
    struct digest fingerprint;
    char run[129];
};

// The run was found before: what is missing now is a step, an event or an input.
static bool refuse(struct call *call, const struct error *err)
{
    if (err->code == E_NOT_FOUND) return call_problem(call, 422, "STEP_NOT_FOUND", "%s", err->message);
    if (err->code == E_INVALID) return call_problem(call, 422, "FORK_INVALID", "%s", err->message);
    if (err->code == E_CONFLICT) return call_problem(call, 409, "FORK_CONFLICT", "%s", err->message);
    return call_failed(call, err);
}

// ---- engine thread

static bool answer_made(struct call *call, const struct run_head *head)
{
    struct json body;
    if (!service_status(call->service, call->service->store, head, &call->arena, &body)) return call_nomem(call);
    call->answer.replayed = true;
    call->answer.caused_seq = head->last_seq;
    call->answer.location = call_text(call, "/v1/runs/%.*s", STR_ARG(head->ids.run));
    return call_answer(call, head->terminal ? 200 : 202, body);
}

// Whether the request was made before; then it is answered.
static bool made_before(struct call *call)
{
    struct service *service = call->service;
    struct forking *forking = call->state;
    struct error err = {0};
    struct note note;
    struct json value;
    struct run_head head;
    char print[SHA256_HEX + 1];
    if (forking->key.len == 0) return false;
    enum code rc = store_note(service->store, STR("request"), forking->key, &call->arena, &note, &err);
    if (rc == E_NOT_FOUND && !engine_run(service->engine, call->who.tenant, forking->given.run)) return false;
    if (rc == E_NOT_FOUND) {
        call->answer.retryable = true;
        call_problem(call, 409, "REQUEST_IN_PROGRESS", "this request is being carried out");
        return true;
    }
    if (!rc) rc = json_parse(note.value, NULL, &call->arena, &value, &err);
    digest_hex(&forking->fingerprint, print);
    if (!rc && !str_is(json_text(json_key(&value, "fingerprint")), print)) {
        call_problem(call, 422, "IDEMPOTENCY_KEY_REUSED", "this Idempotency-Key was used for another request");
        return true;
    }
    if (!rc)
        rc = store_head(service->store, call->who.tenant, json_text(json_key(&value, "runId")), &call->arena, &head,
                        &err);
    if (rc)
        call_failed(call, &err);
    else
        answer_made(call, &head);
    return true;
}

// Rides in the batch that stores the run.
static enum code put_request(struct call *call, struct error *err)
{
    const struct forking *forking = call->state;
    struct json made = json_object();
    char print[SHA256_HEX + 1];
    if (forking->key.len == 0) return OK;
    digest_hex(&forking->fingerprint, print);
    JSON_ADD(&call->arena, &made, {"fingerprint", json_word(print)}, {"runId", json_word(forking->run)});
    if (!json_ok(&made)) return error_nomem(err);
    struct buf text SCOPED(buf_release) = buf_of(1024);
    json_canon(&text, &made);
    struct note_put put = {.space = STR("request"), .key = forking->key, .value = buf_str(&text), .expect = 0};
    return engine_put(call->service->engine, &put, 1, NULL, NULL, err);
}

static bool fork_on_engine(struct call *call)
{
    struct service *service = call->service;
    struct forking *forking = call->state;
    const struct fork_call *given = &forking->given;
    struct error err = {0};
    struct fork *fork;
    if (made_before(call) || !limits_start(call)) return false;
    enum code rc = fork_open(service->store, &given->request, &fork, &err);
    if (rc) return refuse(call, &err);
    struct fork_start start = {
        .run = given->run, .triggered_by = call->who.id, .reason = given->reason, .how = given->how,
        .plan_uri = ref_origin(&given->ref, given->parts),
        .plan_sha256 = given->ref.sha256};
    rc = engine_fork(service->engine, fork, &start, forking->run, &err);
    fork_close(fork);
    if (rc == E_INVALID || rc == E_CONFLICT) return refuse(call, &err);
    bool queued = !rc;
    call->engine_attempt = call->logical_attempt = 1;
    if (!rc) rc = audit_call(call, OPERATION_RUN_FORK, str_from(forking->run), given->reason, &err);
    if (!rc) rc = put_request(call, &err);
    if (rc) {
        if (queued) engine_take_back(service->engine);
        return call_failed(call, &err);
    }
    int64_t until = os_now().mono_ms + (given->wait_ms > 0 ? given->wait_ms : 30000);
    enum wait_for wait_for = given->wait_ms > 0 ? WAIT_ENDED : WAIT_STORED;
    waits_add(service, call, wait_for, call->who.tenant, str_from(forking->run), until);
    return true;
}

// ---- reader thread

static bool tell_preview(struct call *call, struct store *store)
{
    struct forking *forking = call->state;
    struct error err = {0};
    struct fork *fork;
    struct json told, whole;
    enum code rc = fork_open(store, &forking->given.request, &fork, &err);
    if (rc) return refuse(call, &err);
    bool ok = reading_fork(fork, forking->given.how, &call->arena, &told) && json_copy(&call->arena, &told, &whole);
    fork_close(fork);
    if (ok) return call_answer(call, 200, whole);
    return call_nomem(call);
}

// (tenant, source, key) says which run it is: the same for ever.
static bool name_run(struct call *call)
{
    struct forking *forking = call->state;
    struct fork_call *given = &forking->given;
    char hex[SHA256_HEX + 1], id[UUID_SIZE];
    if (given->request_id.len == 0) return true;
    const struct str pieces[] = {call->who.tenant, given->request.source, str_from(given->how), given->request_id};
    struct digest digests[ARRAY_COUNT(pieces)];
    for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) digests[i] = sha256(pieces[i]);
    struct digest key = sha256((struct str){(const char *)digests, sizeof(digests)});
    digest_hex(&key, hex);
    forking->key = arena_copy(&call->arena, str_from(hex));
    uuid_format(key.b, id);
    if (given->run.len == 0) given->run = arena_copy(&call->arena, str_from(id));
    struct buf text SCOPED(buf_release) = buf_of((size_t)16 << 20);
    json_canon(&text, &given->body);
    forking->fingerprint = sha256(buf_str(&text));
    return buf_ok(&text) && forking->key.ptr && given->run.ptr;
}

// Another document than that of the source, if one is wanted.
static bool other_document(struct call *call, struct store *store)
{
    struct fork_call *given = &((struct forking *)call->state)->given;
    const struct plan_ref *ref = &given->ref;
    struct str file = given->file.len ? given->file : STR("<document>");
    bool named = ref->uri.len > 0;
    if (!named && given->document.len == 0) return true;
    if (named && !ref_document(call, store, ref, &given->document, &file, &given->parts)) return false;
    if (documents_get(call, given->document, file, given->parts, &call->program) != DOCUMENT_OK) return false;
    return !named || ref_fits(call, ref, call->program);
}

static bool check_source(struct call *call, struct store *store)
{
    struct forking *forking = call->state;
    struct fork_call *given = &forking->given;
    struct run_head head;
    struct error err = {0};
    enum code rc = store_head(store, call->who.tenant, given->request.source, &call->arena, &head, &err);
    if (rc && rc != E_NOT_FOUND) return call_failed(call, &err);
    if (!service_allows(call, OPERATION_RUN_FORK, rc ? NULL : &head, given->reason)) return false;
    if (str_is(str_from(given->how), "retry") && !head.terminal) {
        call->answer.hint = STR("send the signal RETRY_STEP, or fork the run from this step");
        return call_problem(call, 409, "RUN_NOT_TERMINAL", "the run goes on; a step of it is tried again by a signal");
    }
    if (!other_document(call, store)) return false;
    given->request.program = call->program;
    given->request.tenant = call->who.tenant;
    given->request.now_ms = os_now().wall_ms;
    if (given->preview)
        tell_preview(call, store);
    else {
        call->makes_run = true;
        service_post(call, fork_on_engine);
    }
    return true;
}

bool service_fork(struct call *call, struct str source, const struct fork_call *fork)
{
    struct forking *forking = CALL_NEW(call, struct forking);
    if (!forking) return false;
    forking->given = *fork;
    forking->given.request.source = source;
    call->state = forking;
    call->resource = source;
    if (fork->ref.uri.len > 0 && !ref_accepted(call, &fork->ref)) return false;
    if (fork->document.len > 0 && !fork->preview && !definitions_inline(call)) return false;
    if (fork->run.len > 0 && !run_id_valid(fork->run))
        return call_problem(call, 400, "INVALID_RUN_ID", "this cannot be the id of a run");
    if (name_run(call)) return service_read(call, check_source);
    return call_nomem(call);
}
