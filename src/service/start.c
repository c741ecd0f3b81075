// startRun: the checks in their order, the document, the start itself.
//
//   caller's thread   allow-list of the reference, schema version, who, the shape of ids      nothing is stored by a refusal
//   reader thread     fetch (or take) the document, hash, compile
//   engine thread     the same request again? audit, start; answered when it is durable
#include "service/starting.h"

#include "contract/profile.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { DOCUMENT_QUICK = 64 * 1024 };

// ---- engine thread

// The problem of the run that failed with it says which.
void start_names(struct call *call, struct str run)
{
    struct json *body = &call->answer.body;
    if (body->type != JSON_OBJECT) *body = json_object();
    struct str copy = arena_copy(&call->arena, run);
    if (copy.ptr && json_put(&call->arena, body, STR("runId"), json_string(copy)))
        call->answer.location = call_text(call, "/v1/runs/%.*s", STR_ARG(run));
}

static bool replay_problem(struct call *call, const struct json *problem, struct str run)
{
    struct str code = arena_copy(&call->arena, json_text(json_key(problem, "code"))); // ends in NUL
    call->answer.replayed = true;
    start_names(call, run);
    return call_problem(call, (int)json_integer(json_key(problem, "status"), 422), code.ptr ? code.ptr : "PLAN_REFUSED",
                        "%.*s", STR_ARG(json_text(json_key(problem, "detail"))));
}

// The answer to a request that was made before: the run as it is now.
static bool replay(struct call *call, const struct json *note)
{
    struct service *service = call->service;
    struct starting *starting = call->state;
    struct run_head head;
    struct error err = {0};
    struct json body;
    char hex[SHA256_HEX + 1];
    call->answer = (struct answer){0}; // whatever became of it this time
    digest_hex(&starting->fingerprint, hex);
    if (!str_is(json_text(json_key(note, "fingerprint")), hex))
        return call_problem(call, 422, "IDEMPOTENCY_KEY_REUSED", "this runRequestId was used for another request");
    struct str run = json_text(json_key(note, "runId"));
    const struct json *problem = json_key(note, "problem");
    if (problem) return replay_problem(call, problem, run);
    enum code rc = store_head(service->store, call->who.tenant, run, &call->arena, &head, &err);
    if (rc) return call_failed(call, &err);
    if (!service_status(service, service->store, &head, &call->arena, &body)) return call_nomem(call);
    call->answer.replayed = true;
    call->answer.caused_seq = head.last_seq;
    call->answer.location = call_text(call, "/v1/runs/%.*s", STR_ARG(run));
    return call_answer(call, head.terminal ? 200 : 202, body);
}

// Whether the request was made before; then it is answered.
bool start_made_before(struct call *call)
{
    struct service *service = call->service;
    const struct starting *starting = call->state;
    struct error err = {0};
    struct note note;
    struct json value;
    char hex[SHA256_HEX + 1];
    if (!starting->keyed) return false;
    digest_hex(&starting->key, hex);
    enum code rc = store_note(service->store, STR("request"), str_from(hex), &call->arena, &note, &err);
    if (rc == E_NOT_FOUND) return false;
    if (!rc) rc = json_parse(note.value, NULL, &call->arena, &value, &err);
    if (rc) {
        call_failed(call, &err);
        return true;
    }
    replay(call, &value);
    return true;
}

bool start_note(struct call *call, struct str run, struct note_put *out)
{
    const struct starting *starting = call->state;
    char key[SHA256_HEX + 1], print[SHA256_HEX + 1];
    digest_hex(&starting->key, key);
    digest_hex(&starting->fingerprint, print);
    struct str k = arena_copy(&call->arena, str_from(key));
    struct json problem = json_none();
    if (call->answer.code) // it is refused, and will be so again
        problem = JSON_OF(&call->arena, {"code", json_word(call->answer.code)},
                          {"detail", json_string(call->answer.detail)}, {"status", json_int(call->answer.status)});
    struct json made = JSON_OF(&call->arena, {"fingerprint", json_word(print)}, {"runId", json_string(run)},
                               {"problem", problem});
    struct str value = json_canon_kept(&call->arena, &made, 4096);
    *out = (struct note_put){.space = STR("request"), .key = k, .value = value, .expect = 0};
    return k.ptr && value.ptr;
}

static bool is_taken(struct call *call, struct str run)
{
    struct run_head head;
    struct error err = {0};
    return run.len > 0 && store_head(call->service->store, call->who.tenant, run, &call->arena, &head, &err) == OK;
}

// A run of this id that the store does not have was asked for before, and its start is still queued.
bool start_failed(struct call *call, const struct error *err)
{
    const struct starting *starting = call->state;
    if (err->code == E_EXISTS && !is_taken(call, starting->given.run)) {
        call->answer = (struct answer){.retryable = true, .retry_after_ms = 1000};
        return call_problem(call, 409, "REQUEST_IN_PROGRESS", "this request is being carried out");
    }
    return call_failed(call, err);
}

// Where several engines share a limit, what it says now is in the store, and a start takes a number of it along (slots.h).
static enum code ask_for_place(struct call *call, enum queue_verdict *verdict, struct error *err)
{
    struct starting *starting = call->state;
    struct service *service = call->service;
    struct str tenant = call->who.tenant, queue = starting->given.queue;
    bool gated = call->program->requires_approval;
    bool shared = slots_apply(service, tenant, queue, &starting->limits);
    enum code rc = shared ? slots_look(service, &starting->limits, err) : OK;
    starting->slots = (struct run_slots){0};
    *verdict = queues_ask(&service->queues, tenant, queue, gated);
    if (!shared || gated || rc) return rc;
    if (*verdict == VERDICT_START && !slots_pick(&starting->limits, &starting->slots))
        *verdict = queues_ask(&service->queues, tenant, queue, gated); // it has none left, and says so
    if (*verdict == VERDICT_DELAY) slots_beside(&starting->limits, &starting->slots);
    return OK;
}

// Whether there is a place for it now (requirements §3.4: the last of the checks). A refusal answers the call.
static bool find_place(struct call *call, struct start_request *request)
{
    const struct starting *starting = call->state;
    const struct start_call *given = &starting->given;
    const struct queues *queues = &call->service->queues;
    struct error err = {0};
    enum queue_verdict verdict;
    if (!call->asked_again && !limits_start(call)) return false;
    request->queue = given->queue;
    if (str_eq(given->queue, QUEUE_DEFAULT)) request->queue = (struct str){0};
    if (ask_for_place(call, &verdict, &err)) return call_failed(call, &err);
    switch (verdict) {
    case VERDICT_START:
        break;
    case VERDICT_QUEUE:
        request->mode = MODE_QUEUE;
        break;
    case VERDICT_DELAY:
        request->mode = MODE_DELAY;
        request->not_before_ms = os_now().wall_ms + queues_config(queues, call->who.tenant, given->queue).delay_ms;
        break;
    case VERDICT_REJECT:
    case VERDICT_FULL:
        if (is_taken(call, given->run))
            call_problem(call, 409, "RUN_ALREADY_EXISTS", "there is a run of this id");
        else
            admission_refuse(call, given->queue, verdict);
        return false;
    }
    return true;
}

// From here on it counts: the next start of the same turn must see it. The log says the same once it is stored.
static enum code take_place(struct call *call, const struct start_request *request, struct error *err)
{
    bool waits = request->program->requires_approval, queued = request->mode == MODE_QUEUE;
    enum queue_state place = waits ? QUEUE_GATED : queued ? QUEUE_WAITING : QUEUE_RUNNING;
    struct queues *queues = &call->service->queues;
    enum code rc = queues_place(queues, request->tenant, request->queue, request->run, place, 0, os_now().wall_ms, err);
    struct run_slots *slots = rc ? NULL : queues_slots(queues, request->tenant, request->run, NULL, NULL);
    if (slots) *slots = ((struct starting *)call->state)->slots;
    return rc;
}

static bool add_slots(struct call *call, struct start_request *request, struct note_put *notes)
{
    const struct starting *starting = call->state;
    const struct run_slots *slots = &starting->slots;
    size_t count =
        slots_notes(&starting->limits, request->run, slots, true, false, &call->arena, &notes[request->note_count]);
    request->notes = notes;
    request->note_count += count;
    return count > 0 || (!slots->of_queue.hold && !slots->of_tenant.hold);
}

static bool queue_is_known(struct call *call)
{
    const struct starting *starting = call->state;
    struct str queue = starting->given.queue;
    if (queues_known(&call->service->queues, call->who.tenant, queue)) return true;
    return call_problem(call, 422, "QUEUE_NOT_FOUND", "there is no queue %.*s", STR_ARG(queue));
}

// Calls come from several threads: each takes a number that is larger than the last one.
static void number_run(struct service *service, char out[UUID_SIZE])
{
    uint64_t bits = entropy_number(os_entropy()), last = atomic_load(&service->last_number), next;
    do
        next = run_number(last, os_now().wall_ms, bits);
    while (!atomic_compare_exchange_weak(&service->last_number, &last, next));
    run_number_format(next, out);
}

bool start_choose(struct call *call, struct start_request *request)
{
    char id[UUID_SIZE];
    if (request->run.len > 0) return true;
    if (request->program && request->program->net)
        number_run(call->service, id);
    else
        entropy_uuid(os_entropy(), id);
    request->run = arena_copy(&call->arena, str_from(id));
    request->fresh = true;
    return request->run.ptr != NULL;
}

struct start_request start_asked(const struct call *call)
{
    const struct starting *starting = call->state;
    const struct start_call *given = &starting->given;
    return (struct start_request){.program = call->program,
                                  .tenant = call->who.tenant,
                                  .project = starting->ids.project,
                                  .environment = starting->ids.environment,
                                  .run = given->run,
                                  .plan_uri = ref_origin(&given->ref, given->parts),
                                  .plan_sha256 = given->ref.sha256,
                                  .triggered_by = given->triggered_by.len ? given->triggered_by : call->who.id,
                                  .trigger_source = given->trigger_source.len ? given->trigger_source : STR("api")};
}

// Where the plan came from, for the audit.
static struct json plan_details(struct call *call)
{
    const struct plan_ref *ref = &((struct starting *)call->state)->given.ref;
    struct str sha = ref->uri.len ? ref->sha256 : str_from(call->program->sha256_hex);
    struct str own = call_text(call, "cairn://plans/%.*s", STR_ARG(sha));
    struct json plan =
        JSON_OF(&call->arena, {"sha256", json_string(sha)}, {"uri", json_string(ref->uri.len ? ref_shown(ref) : own)});
    return JSON_OF(&call->arena, {"inline", json_flag(ref->uri.len == 0)}, {"planRef", plan});
}

// A start that has no place or no record in the audit does not happen: a client that gets an error finds no run later.
static enum code place_and_audit(struct call *call, const struct start_request *request, struct error *err)
{
    struct service *service = call->service;
    enum code rc = take_place(call, request, err);
    call->details = plan_details(call);
    call->engine_attempt = call->logical_attempt = 1;
    if (!rc) rc = audit_call(call, OPERATION_RUN_START, request->run, (struct str){0}, err);
    if (!rc) return OK;
    engine_take_back(service->engine);
    queues_refused(&service->queues, request->tenant, request->run);
    return rc;
}

static bool start_on_engine(struct call *call)
{
    struct service *service = call->service;
    struct starting *starting = call->state;
    struct start_call *given = &starting->given;
    struct error err = {0};
    struct note_put notes[2 + SLOTS_MAX + START_NOTES_MAX];
    if (start_made_before(call)) return false;
    if (service->members.several && service->members.mine == 0) { // it has joined, and others are about to give it some
        call->answer.retryable = true;
        call->answer.retry_after_ms = 500;
        return call_problem(call, 503, "ENGINE_STARTING", "this engine has no shard yet");
    }
    struct start_request request = start_asked(call);
    request.inputs = given->inputs;
    request.arguments = given->arguments;
    request.target_adapter = given->target_adapter;
    request.drain_timeout_ms = given->drain_timeout_ms;
    request.cancel_on_pause = given->cancel_on_pause;
    if (!queue_is_known(call) || !find_place(call, &request)) return false; // answered: the call is gone
    enum code rc = start_choose(call, &request) ? OK : error_nomem(&err);
    if (!rc && starting->keyed) {
        if (start_note(call, request.run, &notes[0])) {
            request.notes = notes;
            request.note_count = 1;
        } else {
            rc = error_nomem(&err);
        }
    }
    if (!rc && !given->parts && definitions_keep(call, request.program, given->document, &notes[request.note_count])) {
        request.notes = notes;
        request.note_count++;
    }
    for (size_t i = 0; !rc && i < given->note_count; i++) {
        request.notes = notes;
        notes[request.note_count++] = given->notes[i];
    }
    if (!rc && !add_slots(call, &request, notes)) rc = error_nomem(&err);
    if (!rc) rc = engine_start(service->engine, &request, starting->run, &err);
    if (!rc) rc = place_and_audit(call, &request, &err);
    if (rc) {
        slots_settled(&starting->limits, &starting->slots, false);
        return start_failed(call, &err);
    }
    int64_t until = os_now().mono_ms + (given->wait_ms > 0 ? given->wait_ms : 30000);
    enum wait_for wait_for = given->wait_ms > 0 ? WAIT_ENDED : WAIT_STORED;
    waits_add(service, call, wait_for, call->who.tenant, str_from(starting->run), until);
    return true;
}

// ---- reader thread

// What the plan requires, held against its adapter (WE-4a). A refusal carries the whole report.
static bool adapter_fits(struct call *call, const struct program *program)
{
    const struct starting *starting = call->state;
    struct capability_report report;
    struct json copy, body = json_object();
    if (!capability_validate(program, starting->given.target_adapter, &call->service->settings.adapters,
                             os_now().wall_ms, &call->arena, &report))
        return call_nomem(call);
    if (!report.refused) return true;
    if (json_copy(&call->arena, &report.json, &copy) && json_put(&call->arena, &body, STR("validationReport"), copy))
        call->answer.body = body;
    call->answer.title = STR("PlanValidationError");
    return call_problem(call, 422, report.code, "%.*s", STR_ARG(report.message));
}

static struct str document_file(const struct start_call *given)
{
    return given->file.len ? given->file : STR("<document>");
}

// F3: the same request of the same plan.
void start_key(struct starting *starting, struct str plan_id, struct str plan_version)
{
    const struct start_call *given = &starting->given;
    struct run_ids ids = starting->ids;
    struct str request = given->request_id.len ? given->request_id : given->run;
    ids.plan_id = plan_id;
    ids.plan_version = plan_version;
    starting->keyed = request.len > 0;
    if (starting->keyed) starting->key = request_key(&ids, request);
}

bool start_compile(struct call *call, struct str text)
{
    struct starting *starting = call->state;
    struct start_call *given = &starting->given;
    struct str file = document_file(given);
    if (given->ref.uri.len > 0 && !documents_unpack(call, &text, &file, &given->parts)) return false;
    if (documents_get(call, text, file, given->parts, &call->program) != DOCUMENT_OK) return false;
    struct program *program = call->program;
    if (given->ref.uri.len > 0 && !ref_fits(call, &given->ref, program)) return false; // answered, and gone
    if (!adapter_fits(call, program)) return false;
    start_key(starting, program->plan_id, program->plan_version);
    if (starting->done) call->done = starting->done;
    call->makes_run = true;
    return service_post(call, start_on_engine);
}

static bool compile_on_reader(struct call *call, struct store *store)
{
    const struct starting *starting = call->state;
    (void)store;
    return start_compile(call, starting->given.document);
}

// ---- of the service itself

bool start_inside(struct call *call, const struct start_call *start)
{
    struct starting *starting = ARENA_NEW(&call->arena, struct starting);
    if (!starting) return call_nomem(call);
    INVARIANT(start->note_count <= START_NOTES_MAX);
    starting->given = *start;
    call->state = starting;
    starting->ids = (struct run_ids){
        .tenant = call->who.tenant, .project = start->project, .environment = start->environment};
    starting->fingerprint = sha256(start->request_id); // one that comes again is the same
    return start_compile(call, start->document);
}

// ---- caller's thread

static bool copy_start(struct call *call, struct starting *starting, const struct start_call *start)
{
    struct start_call *g = &starting->given;
    *g = *start;
    return ARENA_KEEP(&call->arena, &g->document, &g->file, &g->run, &g->request_id, &g->project, &g->environment, &g->arguments,
                      &g->queue, &g->target_adapter, &g->trigger_source, &g->ref.uri, &g->ref.sha256, &g->ref.schema_version,
                      &g->ref.plan_id, &g->ref.plan_version, &g->ref.compression);
}

static struct digest fingerprint_of(const struct start_call *g)
{
    struct buf inputs SCOPED(buf_release) = buf_of((size_t)16 << 20);
    if (g->inputs.type) json_canon(&inputs, &g->inputs);
    struct str pieces[] = {g->document, g->ref.uri, g->ref.sha256, g->arguments, buf_str(&inputs), g->run};
    struct digest digests[ARRAY_COUNT(pieces)];
    for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) digests[i] = sha256(pieces[i]);
    return sha256((struct str){(const char *)digests, sizeof(digests)});
}

// A person approved exactly these bytes. What comes with parts was never approved as a whole.
static bool is_approved(struct call *call, const struct start_call *given)
{
    char hex[SHA256_HEX + 1];
    if (given->parts || !(call->who.roles & ROLE_OPERATOR)) return false; // others are not asked for it
    if (given->ref.uri.len > 0) return definitions_approved(call->service, call->who.tenant, given->ref.sha256);
    struct digest digest = sha256(given->document);
    digest_hex(&digest, hex);
    return definitions_approved(call->service, call->who.tenant, str_from(hex));
}

bool service_start(struct call *call, const struct start_call *start)
{
    struct starting *starting = ARENA_NEW(&call->arena, struct starting);
    if (!starting || !copy_start(call, starting, start)) return call_nomem(call);
    struct start_call *given = &starting->given;
    call->state = starting;
    if (given->ref.uri.len > 0 && !ref_accepted(call, &given->ref)) return false;
    starting->ids = (struct run_ids){.tenant = call->who.tenant,
                                     .project = given->project.len ? given->project : STR("default"),
                                     .environment = given->environment.len ? given->environment : STR("default")};
    struct auth_object object = {.tenant = call->who.tenant,
                                 .project = starting->ids.project,
                                 .environment = starting->ids.environment,
                                 .plan_approved = is_approved(call, given),
                                 .exists = true};
    if (!service_may(call, OPERATION_RUN_START, &object, (struct str){0})) return false;
    if (given->run.len > 0 && !run_id_valid(given->run))
        return call_problem(call, 400, "INVALID_RUN_ID",
                            "a run id has letters, digits, '.', '_', ':' and '-', up to 128, "
                            "beginning with a letter or digit");
    bool adapter = given->target_adapter.len == 0 || run_id_valid(given->target_adapter);
    if (!run_id_valid(starting->ids.project) || !run_id_valid(starting->ids.environment) || !adapter)
        return call_problem(call, 400, "INVALID_REQUEST",
                            "projectId, environmentId and targetAdapter have the form of a run id");
    if (given->document.len == 0 && given->ref.uri.len == 0)
        return call_problem(call, 400, "INVALID_REQUEST", "either document or planRef is needed");
    // What a reference names and brings along in the request is no reference.
    if ((given->ref.uri.len == 0 || given->parts) && !definitions_inline(call)) return false;
    starting->fingerprint = fingerprint_of(given);
    if (given->ref.uri.len > 0) {
        starting->done = call->done;
        call->done = ref_refused;
    }
    // A small document that is known already needs no other thread.
    if (given->ref.uri.len == 0 && given->document.len <= DOCUMENT_QUICK &&
        documents_know(call, given->document, document_file(given), given->parts))
        return start_compile(call, given->document);
    return service_read(call, given->ref.uri.len > 0 ? ref_fetch : compile_on_reader);
}
