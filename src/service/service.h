// The engine as a service: the operations that a door (src/api, tests) offers to principals, over one engine on one store.
//
//   call ──▶ checks on the caller's thread ──▶ engine thread: audit + operation, one batch per turn ──▶ done
//        └─▶ a reader thread, with a store handle of its own ─────────────────────────────────────────▶ done
//
// Every call is answered exactly once, on whichever thread has the answer, and never before what the answer says is durable.
// Nothing outside the engine thread writes. Who may do what is decided before anything is looked up (src/auth); a run of another
// tenant answers like one that does not exist.
// Threads: ADR 0017. All functions below may be called from any thread unless they say otherwise.
#ifndef CAIRN_SERVICE_SERVICE_H
#define CAIRN_SERVICE_SERVICE_H

#include "auth/jwt.h"
#include "bus/bus.h"
#include "contract/profile.h"
#include "engine/engine.h"
#include "fetch/fetch.h"
#include "remote/remote.h"
#include "view/alerts.h"
#include "view/metrics.h"

#include <stdatomic.h>

struct temporal_settings;
struct service;

// Where traces of ended runs are posted: {"url", "headers": {NAME: text, {"env"} or {"file"}}, "caFile"}; the path /v1/traces is added.
struct service_otlp {
    struct str url, ca_file;
    const struct json *headers; // object; may be NULL
};

// People of an identity provider (docs/format/sign-in.md).
struct service_oidc {
    struct str issuer, client, scopes;
    struct names audiences;
    uint32_t algorithms; // enum jwt_algorithm
    int64_t skew_ms, max_age_ms;
    int64_t refresh_ms, stale_ms; // of its keys
    int64_t unknown_ms;           // between readings of them because of names that are not known
    bool access_token;            // what clients send: this, or the id_token
    struct fetch_policy *policy;
    const struct claim_grant *grants;
    size_t grant_count;
};

// A worker by its certificate: of a URI in its subjectAltName, or of its common name.
struct service_certificate {
    struct str uri, name;
    struct str tenant, pool;
};

// Whose requests may hold a document (WE-3.2a): everybody's, those over a Unix socket or from this machine, or nobody's.
enum inline_plans { INLINE_LOCAL = 0, INLINE_ALLOW, INLINE_DENY };

// A webhook that comes in (docs/format/incoming.md).
enum signed_how { SIGNED_GITHUB = 0, SIGNED_TIMED, SIGNED_STANDARD };
struct hook {
    struct str name, event;                   // of the path; of what it becomes
    struct str tenant, project, environment;
    struct str correlation, id;               // where in the body they stand: "order.id"; empty: there is none, a new one
    struct str variable, file;                // of its secret
    atomic_bool *unread;                      // the secret could not be read the last time
    enum signed_how way;
};
struct hook_request {
    struct str body;
    struct str hub_signature, timed_signature, webhook_signature, webhook_id, webhook_timestamp; // headers
};

// The engine's clock in the hand of a player, `cairn equiv` (equiv/pace.h). Everything but the engine goes by the clock of the machine.
// Both are called on the engine thread, before and after each pass; `rest`: nothing was done in it.
struct service_clock {
    void *context;
    struct moment_in_time (*now)(void *context);
    void (*passed)(void *context, bool rest, const struct engine *engine);
};

struct service_settings {
    const struct service_clock *clock; // NULL: the machine's
    int64_t events_keep_ms;            // how long events from outside are kept; 0 = 7 days
    uint32_t events_max;               // that a tenant may have and no step has taken; 0 = 10,000
    const struct hook *hooks;
    size_t hook_count;
    struct str store;                  // URL; opened for writing, made when it is missing
    struct keep *keep;                 // results elsewhere (store/keep.h); outlives the service; NULL: none
    struct str token_file;             // where the first start leaves its token; empty: beside the store
    struct fetch_policy *fetch;        // NULL: no plan is fetched from anywhere
    uint32_t readers;                  // threads; 0 = 2
    uint32_t processes;                // of steps at once; 0 = 64
    const struct executor_route *routes; // which steps go to which pools of workers
    size_t route_count;
    int64_t lease_ms;          // of a task that a worker has; 0 = 30 s
    int64_t engine_lease_ms;   // how long other engines of the store wait before they take this one for dead; 0 = 10 s
    int64_t drain_timeout_ms;  // of a pause, where neither the start nor the document says; 0 = 5 minutes
    enum pause_wish cancel_on_pause;
    struct engine_limits limits; // of one run: what engine_limits_parse reads
    uint64_t sql_bytes;          // as in task_options
    const struct json *config; // [serve] of the configuration, as it stands there; may be NULL
    const struct tool_confinement *confinement; // of steps that run here; both as in tool_options, and live as long
    const struct tool_secrets *secrets;
    struct json credentials; // of the tasks of playbooks, by name (docs/format/task.md); type 0 = none
    const char *self;        // as in task_options
    const struct container_settings *containers; // who runs those of playbooks; NULL: nobody
    struct str tools_dir;    // executables that are further tools of playbooks; empty = none
    // What is refused first (OVERLOADED), so that signals still get through, answers stay quick and memory bounded:
    uint32_t starts_max;       // new runs that wait for the engine at once. 0 = 1000
    uint32_t reads_max;        // calls that wait for a reader. 0 = 2000
    uint32_t resident_max;     // new runs when so many have not ended. 0 = 100,000
    uint32_t steps_max;        // of a document. 0 = PROGRAM_STEPS
    uint32_t runs_max;         // in flight at once, of all tenants; more wait in their queues. 0 = no limit
    uint32_t calls_max;        // waiting for the engine at once; more are refused (OVERLOADED). 0 = 10,000
    uint32_t calls_per_tenant; // of calls_max; more are refused (TENANT_OVERLOADED). 0 = as many as calls_max
    // for the door in front of it
    const struct str *listen, *hosts, *origins;
    size_t listen_count, host_count, origin_count;
    const struct os_network *proxies;
    size_t proxy_count;
    bool unix_proxy;
    struct str tls_certificate, tls_key;
    struct str tls_client_ca, tls_client_crl; // PEM files; empty: clients are not asked for certificates
    bool tls_client_required;
    const struct service_certificate *clients;
    size_t client_count;
    const struct service_oidc *oidc;
    size_t oidc_count;
    const struct service_otlp *otlp;   // NULL: traces go nowhere
    enum inline_plans inline_plans;    // documents in requests instead of references
    bool plans_stored;                 // bodies of plans that can be fetched again are stored with their runs all the same
    struct retention retention;        // of artifacts
    int64_t sweep_ms;                  // how often those whose time is over are looked for; 0 = every hour
    struct adapters adapters;          // who runs plans that do not say it, and what references of runs say
    const struct temporal_settings *temporal; // runs are workflows there; NULL: they are not
    const struct json *sinks;          // array (docs/format/bus.md); NULL: none
    int64_t drain_ms;                  // -1: not given
    uint32_t connections, per_address; // 0: what net has
    uint32_t streams_per_token;        // 0 = 16
    bool local_steps;                  // steps without a pool run in this process's children
    bool confinement_said; // in the configuration; without a word the level is auto
    bool insecure;         // no TLS where other machines can reach it
    bool shared_directory; // the store may lie where everybody may write
};

// One member of [serve] (docs/format/serve.md) into the settings; what it points to is in `arena` or borrows `value`.
// E_NOT_FOUND: there is no such member. E_INVALID says what is wrong, with its place when it has one.
enum code service_setting(struct str name, const struct json *value, struct arena *arena, struct service_settings *out,
                          struct error *err) MUST_CHECK;
const char *service_setting_name(size_t index); // NULL past the end
const char *service_setting_value(size_t index); // what it may be
const char *service_setting_what(size_t index);

uint32_t service_scale(const struct service *service); // program_scale of the documents that it takes

// What happened, as it was stored: for streams. On the engine thread, after it is durable; must be quick.
struct service_hooks {
    void *context;
    void (*event)(void *context, const struct engine_event *event); // may be NULL
    void (*turned)(void *context); // after each turn that did something; may be NULL
};

// Opens store and engine, takes up every run that has not ended, starts the threads.
enum code service_open(const struct service_settings *settings, const struct service_hooks *hooks, struct service **out,
                       struct error *err) MUST_CHECK;
// No new runs, and nothing new is started; what runs may finish for `drain_ms`, counted from now, wherever it runs: all other calls are
// taken. Any thread; may be said again.
void service_drain(struct service *service, int64_t drain_ms);
bool service_draining(struct service *service);
bool service_drained(struct service *service); // nothing runs any more, or the time is over
// No new calls; what still runs is cut off as by a crash. The rest of the calls is refused: when this returns every call has been
// answered, and none is answered later.
void service_stop(struct service *service);
void service_close(struct service *service);
// Why the engine ended by itself (a disk that failed), OK while it has not.
enum code service_failed(struct service *service, struct error *err);

// Reads tokens again from the store, on a reader thread. `done` (may be NULL) hears once what came of it, on any thread; a service that
// closes may leave it unsaid.
void service_reload(struct service *service, void (*done)(void *context, enum code rc), void *context);

// How it is. Asking makes sure that the store is written to every few seconds from now on, so that `stored_ms` means something.
struct service_health {
    bool stopping, failed;
    int64_t turned_ms;        // since the engine last turned
    int64_t stored_ms;        // since something was last stored
    bool refused;             // the last thing could not be stored (a full disk)
    size_t waiting;           // calls
    bool turns, writes;       // what follows from it
};
struct service_health service_health(struct service *service);

// How far the projector is (ES-1.5): it reads behind the engine, and no call waits for it.
struct service_projection {
    int64_t lag_ms;     // for how long events wait to be projected; 0 = none waits
    int64_t age_ms;     // for how long it has not moved although some wait
    uint64_t waiting;   // events, about
    size_t runs, stale; // held; of them to be read again
};
struct service_projection service_projection(struct service *service);

// The engines that share the store, and what executes attempts: {items, hosts}. False: out of memory. Any thread.
bool service_engines(struct service *service, struct arena *arena, struct json *out) MUST_CHECK;

// ---- calls

struct answer {
    int status;       // 200, 202, 404, ...
    const char *code; // of the contract, when it is a problem; NULL = it is none
    struct str title, detail, hint;
    bool retryable, replayed;
    int64_t retry_after_ms;
    uint64_t caused_seq;
    struct json body; // of the answer; for a problem more members of it (an object), or type 0
    struct str text;  // instead of body: bytes as they are, of `type`
    const char *type;
    struct str location, etag, next, allow; // headers; next: of Link rel="next"
    struct str cookie;                      // Set-Cookie
    struct str range, disposition;          // Content-Range, Content-Disposition
    bool ranges;                            // parts may be asked for
    struct str rate_policy, rate;           // RateLimit-Policy, RateLimit
};

struct call {
    struct principal who;     // id empty: no principal
    struct decision decision; // of the last question who may
    bool unix_socket;
    struct str source_ip, user_agent, request_id;
    struct str resource;      // what it is about, for the audit
    struct str project, environment; // where that is, as it was last asked who may; empty: the whole tenant
    struct json details;      // of its record in the audit; type 0 = none
    uint32_t engine_attempt, logical_attempt; // for that record, too; 0: none
    struct auth_object place; // of the path, /v1/t/TENANT/p/PROJECT/e/ENVIRONMENT; tenant empty: none was given
    struct arena arena;       // what the call needs until it is answered, and the answer
    struct answer answer;
    void (*done)(struct call *call); // owns the call from here on
    void *context;
    void *state;             // of the operation
    bool makes_run;          // refused before others are
    struct json queue_place; // service_queue_place: where the run waits; null: nowhere, type 0: it was not asked
    struct program *program; // of the operation: let go with the call; may be NULL
    // private to service
    struct service *service;
    struct call *next, *wait_next;
    bool (*work)(struct call *call);
    bool (*read)(struct call *call, struct store *store);
    struct str wait_tenant, wait_run, wait_signal;
    uint64_t wait_seq;     // WAIT_MOVED: beyond which event
    uint8_t asked_again;   // of the engine, after another one was faster: how often
    int64_t wait_until_ms; // monotonic
    int wait_for;
};

// Memory of a call; `limit` bytes at most. NULL: none left.
struct call *call_new(struct service *service, size_t limit);
void call_free(struct call *call);
// What handles a call returns whether all goes well so far: true, it is answered or under way; false, it is refused, and that is answered.
// So does what answers it; a call that is answered is gone.
// Gives the answer: a problem with the code of the contract, or `body`.
bool call_problem(struct call *call, int status, const char *code, const char *format, ...) PRINTF_LIKE(4, 5);
bool call_answer(struct call *call, int status, struct json body); // one that failed (json/make.h): call_nomem
// A problem that this error means.
bool call_failed(struct call *call, const struct error *err);
bool call_nomem(struct call *call); // the one of E_NOMEM
// In the arena of the call, zeroed. NULL: no memory, and that is answered.
#define CALL_NEW(call, type) ((type *)call_alloc((call), sizeof(type)))
void *call_alloc(struct call *call, size_t size) MUST_CHECK;
struct str call_text(struct call *call, const char *format, ...) PRINTF_LIKE(2, 3); // in the arena; empty: no memory

// ---- who
// The principal of a bearer token, made here or by an identity provider; whether it has expired or was revoked says auth_decide. What
// it consists of is in `arena`. E_DENIED: nobody's; the message is for the log, and empty where there is nothing to say. E_TIMEOUT: its
// provider's keys have to be read first, which has begun.
enum code service_authenticate(struct service *service, struct str token, struct arena *arena, struct principal *out,
                               struct error *err) MUST_CHECK;
// ---- sessions of browsers (sessions.c)
struct browser_session {
    struct str id;
    struct str cookie, key; // the two halves: sealed for the browser, and for its page
    int64_t expires_ms;
};
enum code service_session_open(struct service *service, const struct principal *who, struct arena *arena,
                               struct browser_session *out, struct error *err) MUST_CHECK;
bool service_session_begin(struct call *call, struct str id); // records it; then the answer that the call has is given
// As service_authenticate, with both halves of a session that is neither over nor signed out.
enum code service_session_read(struct service *service, struct str cookie, struct str key, struct arena *arena,
                               struct principal *out, struct error *err) MUST_CHECK;
bool service_session_valid(struct service *service, struct str id, int64_t expires_ms);
bool service_session_end(struct call *call); // of call->who; answers 204
// A ticket for a session of `who`: good once, for two minutes, here. Any thread.
enum code service_ticket(struct service *service, const struct principal *who, struct arena *arena, struct str *text,
                         int64_t *expires_ms, struct error *err) MUST_CHECK;
enum code service_ticket_use(struct service *service, struct str text, struct arena *arena, struct principal *out,
                             struct error *err) MUST_CHECK;
// The worker that a verified certificate stands for; false: none. In `arena` or in the settings.
bool service_certificate_grant(const struct service *service, struct str uri, struct str name, int64_t expires_ms,
                               struct arena *arena, struct principal *out);
// One of the roles of the principal allows the operation somewhere.
bool service_could(struct service *service, const struct principal *who, enum operation operation);
struct json service_sign_in(const struct service *service, struct arena *arena); // for everybody: {"methods": [...]}
bool service_token_valid(struct service *service, struct str id); // of one that was made here: still there, neither expired nor revoked
// Records a refusal that was decided outside.
void service_denied(const struct call *from, enum operation operation, struct str resource, const char *code);
// Decides; a refusal is recorded and answers the call.
bool service_may(struct call *call, enum operation operation, const struct auth_object *object, struct str reason);
bool service_may_all(struct call *call, enum operation operation); // of the caller's tenant as a whole

// Of an object that a request names, where the rule of the operation is one of places: what the caller may not see is answered as what is
// absent, and a caller whom no place allows the operation learns neither.
bool service_may_named(struct call *call, enum operation operation, const struct auth_object *object, struct str reason);

// As service_may, but a refusal is not answered: that is for service_refuse.
bool service_asks(struct call *call, enum operation operation, const struct auth_object *object, struct str reason);
bool service_refuse(struct call *call, enum operation operation); // by call->decision
bool service_missing(struct call *call,
                     enum operation operation); // 404, with the name of what was asked for (call->resource)

// The same as service_may, but for what only lacks another person's agreement: *waits, the refusal is recorded and the call not answered.
bool service_may_after(struct call *call, enum operation operation, const struct auth_object *object, struct str reason,
                       bool *waits);

// ---- operations
enum { PAUSE_DRAIN_MAX_MS = 86400000 };
struct start_call {
    struct str document, file; // a document given directly
    const struct json *parts;  // what it names: [{from, request, file, text, kind, runtime}]
    struct plan_ref ref;       // or where it is; uri empty = none
    struct str run, request_id, project, environment, target_adapter;
    struct json inputs; // object
    struct str arguments, queue, trigger_source;
    int64_t drain_timeout_ms; // 0 = not said
    enum pause_wish cancel_on_pause;
    int64_t wait_ms; // answer when the run has ended, at the latest after so long
    // Of the service itself (start_inside): who it is recorded to be from, and what is stored with it or it is not stored.
    struct str triggered_by;
    const struct note_put *notes; // live as long as the call
    size_t note_count;
};
bool service_start(struct call *call, const struct start_call *start);
// As many starts wait for the engine as may: the next one will be refused. Any thread, costs a look.
bool service_is_full(const struct service *service);
// Compiles, and reports the mistakes. Reader thread.
struct validate_call {
    struct str document, file, target_adapter;
    const struct json *parts;
};
bool service_validate(struct call *call, const struct validate_call *given);
// The steps and the ways of a document that has not run. Reader thread.
bool service_draw(struct call *call, const struct validate_call *given);
bool service_signal(struct call *call, struct str run, struct str body, uint64_t if_seq);
// A new run made from another one (ADR 0015). `request.program` comes from the document; tenant, source and time are filled in.
struct fork_call {
    const char *how; // "fork", "rerun", "retry"
    bool preview;    // only tell what would come of it
    struct fork_request request;
    struct str document, file; // instead of the source's own; empty = that
    const struct json *parts;
    struct plan_ref ref; // or where it is; uri empty = none
    struct str run, request_id, reason;
    struct json body; // of the request, for telling the same request from another one
    int64_t wait_ms;  // as in start_call
};
bool service_fork(struct call *call, struct str source, const struct fork_call *fork);
bool service_read(struct call *call, bool (*read)(struct call *call, struct store *store)); // on a reader thread
// Where the attempts of a run are now that are outside: an array, in the memory of the call (docs/format/why.md). Any thread.
struct json service_places(struct call *call, const struct run_ids *ids);
// The place of the run `call->resource` in its queue, into call->queue_place; then reads. A reader thread asks.
bool service_queue_place(struct call *call, bool (*then)(struct call *call, struct store *store));
// Looks again (`then`) when the run has an event that it had not when it was seen and that comes after the number `after`, when it has
// ended, or when the time is over, whichever is first. `seen` is in the memory of the call.
bool service_wait(struct call *call, const struct run_head *seen, uint64_t after, int64_t wait_ms,
                  bool (*then)(struct call *call, struct store *store));

// RunStatusSnapshot (WE-2.1.2) of a head. service_recovers: it has to be taken up first, which its log does not tell.
bool service_recovers(const struct run_head *head);
// `store` is asked what the run was started with, for its reference; NULL: nothing is known of it but its head. `service` knows which runs
// wait for a plan; NULL: none does.
bool service_status(struct service *service, struct store *store, const struct run_head *head, struct arena *arena,
                    struct json *out) MUST_CHECK;
// Within what `who` may see, and within the place of the path.
bool service_sees(const struct call *call, const struct run_ids *ids);
// What is going on with a run of a list (view_headline), from a reader's thread: kept, or worked out from its log
// before `until_ms` (monotonic; service_headlines_until of a list that begins now), else from its summary. False: no memory.
bool service_headline(struct service *service, struct store *store, const struct run_head *head, int64_t until_ms,
                      struct arena *arena, struct json *out) MUST_CHECK;
int64_t service_headlines_until(void);
bool service_is_narrow(const struct call *call); // its token is limited to projects or environments
// The same of a run that is known by its id. What is of no run (empty) is of the whole tenant: not for narrow ones.
bool service_sees_run(struct call *call, struct store *store, struct str run);
void service_keep_seen(struct call *call, struct store *store, struct json *items); // by their "runId"
// Whether `who` may do `operation` with this run; answers the call when not. A run that is absent (NULL) and one of another tenant
// look the same, whatever the rule of the operation is about: true means that the run is there.
bool service_allows(struct call *call, enum operation operation, const struct run_head *head, struct str reason);
struct auth_object service_object(const struct call *call, const struct run_head *head); // what that asks about

// Removes an ended run, the runs it started and their files, once two people have asked for it with a reason.
bool service_remove(struct call *call, struct str run, struct str reason);
// With which bundles and checkpoints are signed: one of this installation. Never NULL.
const struct archive_key *service_bundle_key(const struct service *service);

// ---- definitions: documents under the hash of their bytes
struct definition_call {
    struct str name, sha256, project, environment;
    struct str text;
};
bool service_definition_put(struct call *call, const struct definition_call *definition);
bool service_definition_approve(struct call *call, const struct definition_call *definition);
// Reader thread. E_NOT_FOUND. What is read lives in the call.
enum code definition_read(struct call *call, struct store *store, struct str name, struct str sha256, struct json *out,
                          uint64_t *version, struct error *err) MUST_CHECK;
enum code service_definition_text(struct call *call, struct store *store, struct str sha256, struct str *out,
                                  struct error *err) MUST_CHECK;
struct str definition_key(struct call *call, struct str name); // as it stands in keys of notes; ptr NULL: out of memory
struct auth_object definition_object(const struct call *call, const struct json *definition); // NULL: there is none

// ---- cursors: `place` in `list`, sealed for the tenant of the call. Empty: no memory; false: it was not sealed here.
struct str service_cursor(struct call *call, struct str list, struct str place);
bool service_cursor_open(struct call *call, struct str list, struct str cursor, struct str *place);


bool service_is_strict(const struct service *service); // settings.adapters
enum provider service_usual(const struct service *service);
struct service_carrier { // the server that carries all runs of this service
    enum provider provider;
    struct str space, queue;
};
bool service_carrier(const struct service *service, struct service_carrier *out); // false: the engine does it alone, or workers do
bool service_several(const struct service *service);   // other engines may drive runs of this store, too
struct store *service_reader(struct service *service); // a new handle for reading, for one thread; NULL: logged
// ---- alerts
void service_alert(struct service *service, const struct alert_fact *fact);
bool service_alerts(struct service *service, const struct alert_filter *filter, struct arena *arena,
                    struct json *out) MUST_CHECK;
bool service_acknowledge(struct call *call, struct str id);

// ---- sinks (docs/format/bus.md). Reasons as the matrix wants them
bool service_sinks(struct call *call);
bool service_rewind(struct call *call, struct str sink, const struct bus_place *place, struct str reason);
bool service_dead_letters(struct call *call, struct str sink, struct str after, size_t limit);
enum dead_letter_act { LETTERS_REDRIVE = 1, LETTERS_DROP };
// One by its id, or all that `which` means; of the caller's tenant.
bool service_dead_letters_act(struct call *call, enum dead_letter_act act, const struct dead_letter_choice *which,
                              struct str reason);

// ---- queues and limits of the caller's tenant (docs/format/queues.md)
bool service_queue_list(struct call *call);
bool service_queue_get(struct call *call, struct str name);
bool service_queue_put(struct call *call, struct str name, struct json given); // given: lives with the call
bool service_queue_pause(struct call *call, struct str name, bool paused);
bool service_queue_delete(struct call *call, struct str name);
bool service_queue_reconcile(struct call *call); // dequeueAndStart: [{runId, status}]
bool service_limits_get(struct call *call);
bool service_limits_put(struct call *call, struct json given);
bool service_step_limit_list(struct call *call); // limits of steps (docs/format/limits.md)
bool service_step_limit_get(struct call *call, struct str name);
bool service_step_limit_put(struct call *call, struct str name, struct json given); // given: lives with the call
bool service_step_limit_delete(struct call *call, struct str name);

// ---- events from outside, of the caller's tenant (docs/format/incoming.md)
struct incoming_call {
    struct str id, name, correlation, source, project, environment; // id empty: a new one
    const struct json *data;                                       // NULL: none
    bool trusted; // who sends it was asked elsewhere (the signature of a webhook)
};
bool service_event_send(struct call *call, const struct incoming_call *given);
const struct hook *service_hook(const struct service *service, struct str name); // NULL: there is none
// E_DENIED: the sender does not have its secret. E_NOT_FOUND, E_IO: the secret cannot be read, which is logged once. Any thread.
enum code service_hook_check(const struct hook *hook, const struct hook_request *request, int64_t now_ms,
                             struct arena *arena, struct error *err) MUST_CHECK;
bool service_event_list(struct call *call, struct str name, struct str state, size_t limit);
bool service_event_get(struct call *call, struct str id);

// ---- schedules of the caller's tenant (docs/format/schedule.md)
struct schedule_call {
    struct str name, project, environment;
    struct str document, file, reason;
    struct plan_ref ref;             // or where the document is; uri empty = none
    const struct json *parts, *spec; // spec NULL: as the document says
    const struct json *inputs;       // of one start by hand
    bool paused;
    struct str request_id;
    struct str from, to, order;      // of a backfill
    struct str id;                   // of a backfill that is ended
    uint32_t limit, parallel;
    bool dry_run;
    size_t count;
};
bool service_schedule_put(struct call *call, const struct schedule_call *given);
bool service_schedule_pause(struct call *call, const struct schedule_call *given); // given->paused: or goes on
bool service_schedule_delete(struct call *call, const struct schedule_call *given);
bool service_schedule_trigger(struct call *call, const struct schedule_call *given);
bool service_schedule_list(struct call *call);
bool service_schedule_get(struct call *call, struct str name);
bool service_schedule_next(struct call *call, const struct schedule_call *given);
bool service_schedule_ticks(struct call *call, const struct schedule_call *given);
bool service_schedule_backfill(struct call *call, const struct schedule_call *given);
bool service_schedule_backfills(struct call *call, struct str name);
bool service_schedule_backfill_end(struct call *call, const struct schedule_call *given);

// ---- tokens. The new token's text is in the answer, once; nowhere else.
struct token_call {
    struct str name, tenant, pool, audience;
    struct str replaces; // id of a token that is revoked by the same batch; or empty
    uint32_t roles;
    struct names projects, environments;
    int64_t expires_ms;
};
bool service_token_create(struct call *call, const struct token_call *token);
bool service_token_revoke(struct call *call, struct str id);
// Those of the caller's tenant, without their secrets. Reader thread; in the call.
enum code service_token_list(struct call *call, struct store *store, struct json *items, struct error *err) MUST_CHECK;

// ---- audit: the chain of the caller's tenant, from its first record to its end
bool service_audit_verify(struct call *call);
// Its records behind `cursor`, which is *next of an earlier page; without one behind number `after`; `limit` at most. Of engines that
// share the store each has a chain of its own: they follow one another. Reader thread; in the call.
enum code service_audit_list(struct call *call, struct store *store, struct str cursor, uint64_t after, size_t limit,
                             struct json *items, struct str *next, struct error *err) MUST_CHECK;
// The same with the newest first, over all chains of the tenant.
enum code service_audit_newest(struct call *call, struct store *store, struct str cursor, size_t limit, struct json *items,
                               struct str *next, struct error *err) MUST_CHECK;

const struct auth *service_auth(const struct service *service);
const struct contract *service_contract(const struct service *service);
struct metrics *service_metrics(struct service *service);
void service_look(struct service *service); // puts what is looked up, not counted, into the metrics
struct remote *service_remote(struct service *service);
void service_address(struct service *service, const char *url); // noted beside the store, for `cairn ui` of the same machine
const char *service_token_file(const struct service *service);
// A token of the owner, made without a service by who can write to the store: the way back in when all were lost. `file`: where it is
// put; empty: beside the store, where the first start left its own. *path and *id live in the arena. It is recorded in the audit.
enum code service_token_bootstrap(struct store *store, struct str file, struct arena *arena, struct str *path,
                                  struct str *id, struct error *err) MUST_CHECK;
int64_t service_started_ms(const struct service *service);

#endif
