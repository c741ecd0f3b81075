// Private to service/: the threads, what waits for the engine, documents, tokens, audit.
#ifndef CAIRN_SERVICE_INSIDE_H
#define CAIRN_SERVICE_INSIDE_H

#include "json/form.h"
#include "json/make.h"
#include "service/queue.h"
#include "service/service.h"
#include "task/task.h"

#include <pthread.h>

// ---- calls that wait for something of a run or a signal. owner: engine thread
enum wait_for { WAIT_STORED = 1, WAIT_ENDED, WAIT_DECIDED, WAIT_MOVED };

struct waits {
    struct call **slots; // chains by hash of (tenant, run)
    size_t size, count;
};

// ---- compiled documents by hash, so that a thousand starts of one document compile it once. shared: mutex inside
struct known_document {
    struct digest sha256; // of the text and of everything it names
    struct program *program;
    uint64_t used;
};
#define DOCUMENTS_KEPT 64
struct documents {
    pthread_mutex_t mutex;
    struct known_document items[DOCUMENTS_KEPT];
    size_t count;
    uint64_t clock;
};

// ---- tokens. shared: lock inside
struct token_row {
    struct token token; // strings in `memory`
    struct arena memory;
};
struct tokens {
    pthread_rwlock_t lock;
    struct token_row **rows; // sorted by id
    size_t count, capacity;
};

// ---- audit. owner: engine thread
struct audit_tenant {
    struct str name;
    struct audit_head head;
    bool moved; // since its head was stored
    char bytes[];
};
struct audit {
    struct audit_tenant **tenants;
    size_t count, capacity;
    struct arena pending; // records of this turn
    struct note_put *puts;
    size_t put_count, put_capacity;
    bool broken; // another process writes here: the service does nothing more, because it could not record it
    struct error why;
};

struct approvals { // shared: lock inside
    pthread_rwlock_t lock;
    struct digest *items; // of (tenant, hash)
    size_t count, capacity;
};

struct alarm { // shared: mutex inside
    pthread_mutex_t mutex;
    struct alerts alerts;
    uint64_t kept; // alerts.changes up to which all is stored. Engine thread
    bool stalled;  // the store is said to take nothing. Engine thread
};

// What waits to read, by tenant: tenants take turns, so that one with a thousand calls keeps the others waiting for one.
struct reading_tenant {
    struct reading_tenant *next;
    struct call *first, **last;
    size_t waiting;
    char name[129];
};

struct readers {
    pthread_mutex_t mutex;
    pthread_cond_t arrived;
    pthread_t threads[16];
    uint32_t count;
    struct reading_tenant *first, *last; // in the order of their turns
    size_t waiting;
    bool stop;
};

// ---- signs of life. Atomic: written by the engine thread, read by any
struct health {
    int64_t turned_ms, stored_ms, asked_ms; // monotonic
    int64_t probing_ms; // since then a note is on its way; 0: none is
    bool refused;
};

// ---- what metrics need to know of living runs. owner: engine thread
struct counted {
    uint64_t key;   // hash of tenant and run; 0 = free
    uint8_t status; // enum run_status
};
struct counting {
    struct counted *slots;
    size_t size, count;
};

// ---- events that are stored and not projected. Atomic: see projecting.c
struct backlog {
    uint64_t stored;  // batches so far
    int64_t since_ms; // monotonic: when the first of them was stored; 0 = nothing waits
};

// ---- a thread that reads the feed on its own, and what it shares with the thread that ends it
struct feed_thread {
    struct service *service;
    const char *space, *key; // of the note with its position
    uint64_t kept;           // its thread
    pthread_t thread;
    bool running;
    pthread_mutex_t mutex;
    pthread_cond_t woken;
    bool stop, wanted; // mutex
};

// ---- this engine among others (S17, ADR 0021). owner: engine thread, but for what says otherwise
struct members {
    bool several;              // of the store; does not change
    uint64_t self;             // our number. Atomic
    uint32_t count;            // of engines. Atomic
    uint64_t carrier;          // who has the duty; 0 = no engine just now. Atomic
    uint64_t mine, leaving;    // shards. mine: atomic
    uint64_t adopting, before; // shards whose runs are being taken up, and how far that is
    bool shardless;            // those runs too
    int64_t next_shardless_ms;
    int64_t next_look_ms, next_poll_ms, next_reload_ms; // monotonic
    int64_t safe_until_ms;                              // monotonic: until then no other engine takes us for dead. Atomic
    // The clerk opens and closes the sinks, which go with shard 1. shared: mutex
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t clerk;
    bool clerk_runs, stop, wants_sinks, has_sinks;
    struct shard_map map; // what the store last said. shared: mutex
};

// ---- schedules (schedules.h). owner: engine thread, but for what says otherwise
struct scheduling {
    struct schedule_row *rows;
    struct backfill_row *backfills;
    bool changed;
    int64_t next_reload_ms; // monotonic
    bool had_duty;
    pthread_mutex_t mutex;
    struct call *fired, **fired_last; // shared: mutex. Starts that were answered
};

// ---- events from outside (incoming.h). owner: engine thread
struct incoming {
    struct giving *giving; // promises on their way
    bool look;             // something may fit
    int64_t next_look_ms, next_poll_ms, next_seek_ms, next_sweep_ms; // monotonic
    char passed[NOTE_KEY_MAX], swept[NOTE_KEY_MAX]; // where the last look, the last sweep left off; empty: at the end
    size_t passed_len, swept_len;
};

// ---- limits that all engines share (slots.h). owner: engine thread
struct slotting {
    struct slot_asking *asking, *answered;
    bool limited; // there are any
    int64_t next_walk_ms;
};

struct service_lock {
    struct disk *disk;
    struct file *file;
    int database; // a descriptor; -1: none
};

// Plans that could not be fetched a moment ago are not asked for again at once. shared: its mutex
struct plan_memory {
    pthread_mutex_t mutex;
    struct digest sha256[16];
    int64_t until_ms[16];
    char why[16][256]; // in words
    size_t next;
};

// What the engine needs is fetched by a thread of its own: the engine waits for no address. shared: the mutex of plan_memory
struct wanted_plan;
struct plan_fetcher {
    pthread_t thread;
    bool running, stop;
    pthread_cond_t woken;
    struct wanted_plan *first;
    bool came; // one was kept since the engine looked last
};

// headlines.c
enum { HEADLINES_KEPT = 4096 };
struct kept_headline;
struct headlines {
    struct kept_headline *kept; // by a hash of tenant and run; NULL until there is one. shared: service->headline_mutex
};
void headlines_release(struct headlines *headlines);

struct service {
    _Atomic uint64_t last_number; // of a playbook's run that was named here
    struct service_settings settings;
    struct service_lock lock;
    struct members members;
    struct health health;
    struct counting counting;
    struct service_hooks hooks;
    struct arena arena; // lives as long
    const struct contract *contract;
    struct store *store;
    struct engine *engine;
    struct remote *remote;
    struct temporal_host *host; // NULL: attempts do not go to Temporal
    struct plan_source plan_source, plan_later; // plans.c: of readers; of the engine
    struct missed_run *missed;      // engine thread: not taken up, because their plans were not to be had
    int64_t missed_next_ms;
    struct plan_memory plan_memory;
    struct plan_fetcher plan_fetcher;
    struct task_options task; // of the tasks of playbooks that run here
    struct metrics *metrics;
    struct auth *auth;
    pthread_t thread;
    bool running;
    int64_t started_ms;
    // posted to the engine thread. shared: mutex
    pthread_mutex_t mutex;
    struct call *posted, **posted_last;
    size_t posted_count;
    size_t posted_starts;   // of these: that make runs. Atomic too, for service_is_full
    bool draining, drained; // no new runs, nothing new for tools; drained: nothing is in flight, or the time is over
    bool stopping;
    int64_t stop_at_ms; // monotonic
    enum code failed;
    struct error failure;
    // engine thread
    struct waits waits;
    struct audit audit;
    int64_t next_poll_ms, next_tick_ms;
    struct queues queues;
    struct queue_told *told; // what passes came to that no caller asked for; made when it is needed
    size_t told_count;
    struct slotting slots;
    struct scheduling scheduling;
    struct incoming incoming;
    struct rates *rates;
    int64_t next_pass_ms;
    struct readers readers;
    struct alarm alarm;
    struct otlp *otlp; // NULL: no traces
    struct expiring_thread *expiring; // NULL: artifacts are kept for ever
    struct oidc *oidc; // NULL: no identity providers
    struct projecting *projecting;
    struct backlog backlog;
    pthread_rwlock_t bus_lock;
    struct bus *bus; // NULL: no sinks
    struct documents documents;
    pthread_mutex_t headline_mutex;
    struct headlines headlines;
    struct tokens tokens;
    struct sessions *sessions;
    struct approvals approvals;
    struct fetch_policy *own_plans; // cairn://plans/ alone
    struct digest plans_kept[1024]; // engine thread: some of those that are kept for certain, by their first bytes
    struct task_key cursor_key;
    struct archive_key *bundle_key;
};

// service.c
// Runs call->work on the engine thread. Answers OVERLOADED when too many wait.
bool service_post(struct call *call, bool (*work)(struct call *call));

// lock.c
// E_LOCKED names the process that serves this store.
enum code lock_take(struct service *service, struct error *err) MUST_CHECK;
enum code lock_made(struct service *service, struct error *err) MUST_CHECK; // after the store was opened, which may have made it
void lock_release(struct service *service); // after the store was closed: SQLite's own locks go with it

// count.c, engine thread
void count_append(struct service *service, enum code rc, int64_t micros, size_t events);
void count_event(struct service *service, const struct engine_event *event);
void count_adopted(struct service *service, const struct run_head *head);
void count_left(struct service *service, const struct run *run);
void count_release(struct service *service);

// health.c, engine thread
void health_start(struct service *service);
void health_turned(struct service *service, int64_t mono_ms);
void health_tick(struct service *service, int64_t mono_ms);
void health_stored(struct service *service, enum code rc);

// members.c, engine thread but for members_start and members_stop
enum code members_join(struct service *service, struct error *err) MUST_CHECK;  // before the engine turns
enum code members_start(struct service *service, struct error *err) MUST_CHECK; // sinks, when it is our duty
void members_stop(struct service *service);                                     // while the engine turns
enum code members_tick(struct service *service, int64_t mono_ms, struct error *err) MUST_CHECK;
struct shard_map members_map(struct members *members); // what the store last said. Any thread
bool members_may_start(void *service);                 // I29
bool members_have_duty(const struct service *service); // what is done once for the whole store is done here. Any thread
bool members_are_adopting(const struct service *service);
enum code adopt_page(struct service *service, struct run_filter *filter, size_t *taken, size_t *left,
                     struct error *err) MUST_CHECK; // service.c: one page of runs without an owner

// wait.c, engine thread
void waits_elsewhere(struct service *service); // looks after those who wait for runs of other engines
// Who waits for a decision has put the id of the signal in call->wait_signal. `tenant` and `run` live as long as the call.
void waits_add(struct service *service, struct call *call, enum wait_for wait_for, struct str tenant, struct str run,
               int64_t until_mono_ms);
void waits_event(struct service *service, const struct engine_event *event);
void waits_decision(struct service *service, const struct engine_decision *decision);
void waits_refused(struct service *service, struct str tenant, struct str run, const struct error *why);
void waits_tick(struct service *service, int64_t mono_ms);
void waits_end(struct service *service); // all are refused: the service stops

// signal.c, engine thread
bool signal_answer(struct call *call, const struct engine_decision *decision);
// As it stands in the ledger: decided by another engine, or before (`again`). `seq`: the last event that it caused.
bool signal_is_answered(const struct call *call, const struct json *record); // it is the decision that the call waits for
bool signal_decided(struct call *call, const struct json *record, uint64_t seq, bool again);

// readers.c
enum code readers_start(struct service *service, struct error *err) MUST_CHECK;
void readers_stop(struct service *service);

// documents.c
enum document_result { DOCUMENT_OK = 1, DOCUMENT_INVALID, DOCUMENT_FAILED };
// The program of a document, retained for the caller. INVALID: the answer of the call is the list of mistakes.
// A set is canonical JSON of a document and of the files that it names: {document, file, parts}. What is none stays as it is; false: it
// is wrong, and that is answered. What it gives lives as long as the call.
bool documents_is_set(struct str text);
bool documents_unpack(struct call *call, struct str *text, struct str *file, const struct json **parts) MUST_CHECK;
enum document_result documents_get(struct call *call, struct str text, struct str file, const struct json *parts,
                                   struct program **out);
bool documents_know(struct call *call, struct str text, struct str file, const struct json *parts);
void documents_release(struct documents *documents);

// keys.c
enum code keys_open(struct service *service, struct error *err) MUST_CHECK; // before the engine turns
void keys_close(struct service *service);

// definitions.c
enum code definitions_open(struct service *service, struct error *err) MUST_CHECK;
enum code definitions_reload(struct service *service, struct error *err) MUST_CHECK; // approvals given elsewhere
void definitions_close(struct service *service);
bool definitions_approved(struct service *service, struct str tenant, struct str sha256_hex); // any thread
// A document that came with a start, as a definition without a name: what its run says in planRef can be had again. False: it is
// there already, or has no such place. Engine thread.
bool definitions_keep(struct call *call, const struct program *program, struct str text, struct note_put *out);
bool definitions_has(struct str uri); // one of cairn:
// fetch_plan of such a reference, from what the tenant of the call has brought.
enum code definitions_fetch(struct call *call, struct store *store, const struct plan_ref *ref, struct str *bytes,
                            struct plan_trip *trip, struct error *err) MUST_CHECK;

// start_ref.c: plans that a request names instead of bringing them.
bool ref_accepted(struct call *call, const struct plan_ref *ref); // by what it says. Caller's thread; false: answered
// What it names: fetched, compared, and unpacked when it is a set. Reader thread; false: answered.
bool ref_document(struct call *call, struct store *store, const struct plan_ref *ref, struct str *text, struct str *file,
                  const struct json **parts) MUST_CHECK;
// What came is what it says; false: answered.
bool ref_fits(struct call *call, const struct plan_ref *ref, const struct program *program) MUST_CHECK;
struct str ref_shown(const struct plan_ref *ref); // its address without what may be secret
struct str ref_origin(const struct plan_ref *ref, const struct json *parts); // planUri of a run of it; empty: the store has it

// start.c: a start of the service itself, of a document that it has: nobody is asked who may. Reader thread. What `start` points to lives
// as long as the call.
enum { START_NOTES_MAX = 4 };
bool start_inside(struct call *call, const struct start_call *start);

// hooks.c: [serve.events]
struct form;
enum code service_events_parse(struct form *form, struct service_settings *out) MUST_CHECK;

// incoming.c, engine thread: events from outside reach the steps that wait for them
void incoming_awaited(struct service *service); // a step waits, or an event has come
void incoming_decision(struct service *service, const struct engine_decision *decision);
void incoming_tick(struct service *service, struct moment_in_time now);
void incoming_close(struct service *service);

// schedules.c, engine thread: times that are due become runs
void schedules_open(struct service *service);
void schedules_close(struct service *service);
void schedules_changed(struct service *service); // what is declared: read it again
void schedules_tick(struct service *service, struct moment_in_time now);

// plans.c: bodies that are not here are fetched again, and the runs that wait for one are taken up when it has come (engine thread).
void plans_open(struct service *service);
enum code plans_start(struct service *service, struct error *err) MUST_CHECK;
void plans_end(struct service *service);   // joins; more than once does no harm
void plans_close(struct service *service); // after the last caller
// Whether runs wait for the body of this plan, and why, in words. Any thread.
bool plans_waiting(struct service *service, const struct digest *sha256, char *out, size_t size);
void plans_missed(struct service *service, const struct run_head *head);
void plans_tick(struct service *service, int64_t now_ms);

// tokens.c
enum code tokens_load(struct service *service, struct store *store, struct error *err) MUST_CHECK;
void tokens_release(struct tokens *tokens);
// Who the token of that id stands for now. E_DENIED: there is none.
enum code tokens_principal(struct service *service, struct str id, struct arena *arena, struct principal *out,
                           struct error *err) MUST_CHECK;
// sessions.c
enum code sessions_open(struct service *service, const struct task_key *key, struct error *err) MUST_CHECK;
enum code sessions_load(struct service *service, struct store *store, struct error *err) MUST_CHECK; // what other engines ended
void sessions_close(struct service *service);
enum code tokens_put(struct tokens *tokens, struct str bytes, struct error *err) MUST_CHECK; // as a note holds it
// The person behind an id that was recorded: of a token whose token it is, of all others the id itself. Reader threads.
enum code tokens_person(struct service *service, struct store *store, struct str id, struct arena *arena, struct str *out,
                        struct error *err) MUST_CHECK;
// Makes one when there is none, and leaves it in a file.
enum code tokens_first(struct service *service, struct error *err) MUST_CHECK;

// bootstrap.c
#define FIRST_MAKER "cairn" // createdBy of tokens that were made with the store
struct token_made {
    struct token token;
    struct str value; // as a note holds it
    char text[TOKEN_SIZE + 1];
};
struct str directory_of(struct str path, struct arena *arena);
// A token of the owner: everything, in the tenant "default".
enum code token_make(const char *name, struct arena *arena, struct token_made *out, struct error *err) MUST_CHECK;
// Writes it to the file, then to the store, with further notes.
enum code token_keep(const struct token_made *made, struct store *store, struct str path, const struct note_put *more,
                     size_t more_count, struct arena *arena, struct error *err) MUST_CHECK;


// audit.c, engine thread
enum code audit_load(struct service *service, struct error *err) MUST_CHECK;
void audit_release(struct audit *audit);
// Numbers and chains it; stored with the batch of this turn (audit_flush).
enum code audit_add(struct service *service, struct audit_record *record, struct error *err) MUST_CHECK;
// Of which attempt what a call does is, for its record: of the run, or of a step of it. Engine thread.
void audit_attempts(struct call *call, struct str run, struct str step);
// The same of what a call was allowed (call->decision).
enum code audit_call(struct call *call, enum operation operation, struct str resource, struct str reason,
                     struct error *err) MUST_CHECK;
enum code audit_flush(struct service *service, struct error *err) MUST_CHECK;

// admission.c, engine thread: queues and limits
enum code admission_load(struct service *service, struct error *err) MUST_CHECK;
enum code admission_reload(struct service *service, struct error *err) MUST_CHECK; // what was configured elsewhere
void admission_release(struct service *service);
void admission_found(struct service *service, const struct run_head *head); // a run that was taken up
void admission_event(struct service *service, const struct engine_event *event);
void admission_turned(struct service *service, int64_t mono_ms); // gives places that became free
// dequeueAndStart, with what became of the runs of the caller's tenant.
struct json admission_pass(struct call *call);
bool admission_refuse(struct call *call, struct str queue, enum queue_verdict verdict); // answers the call
// Counts one use. Over the limit: answers 429 with `code` and gives false.
bool limits_take(struct call *call, const struct rate_rule *rule, struct str key, const char *code);
bool limits_start(struct call *call);

// slots_pass.c, engine thread: limits of all engines together; nothing where there is one
void slots_before(struct service *service, int64_t mono_ms); // a pass: what the store says
void slots_after(struct service *service, int64_t mono_ms);  // it: what was asked for, and who waits
// In a pass: the run goes on, at once or when its numbers are stored. E_NOMEM: not now; otherwise as engine_admit.
enum code slots_admit(struct service *service, struct str tenant, struct str run, struct error *err) MUST_CHECK;
void slots_stored(struct service *service, struct str tenant, struct str run, bool stored); // its start
void slots_unsettled(struct service *service, struct str tenant,
                     struct str queue); // runs there may count and not be reported
// Of engine_options.ending: what the run holds goes with its end.
size_t slots_ending(void *service, struct str tenant, struct str run, struct arena *arena, struct note_put *out);
void slots_release(struct service *service);

// alerts.c
enum code alerts_open(struct service *service, struct error *err) MUST_CHECK;
void alerts_event(struct service *service, const struct engine_event *event);
void alerts_flush(struct service *service);
void alerts_outbox(struct service *service, const struct engine_outbox *news);
void alerts_tick(struct service *service); // a store that takes nothing. Engine thread

// feed_thread.c
void feed_thread_init(struct feed_thread *thread, struct service *service, const char *space, const char *key);
void feed_thread_release(struct feed_thread *thread);
// Where it stopped; one that is new here begins at the end. Before the engine's thread.
enum code feed_thread_begin(struct feed_thread *thread, uint64_t *position, struct error *err) MUST_CHECK;
enum code feed_thread_start(struct feed_thread *thread, void *(*run)(void *context), void *context,
                            struct error *err) MUST_CHECK;
void feed_thread_end(struct feed_thread *thread); // joins; while the engine turns. More than once does no harm
bool feed_thread_stopped(struct feed_thread *thread);
void feed_thread_rest(struct feed_thread *thread, int64_t ms); // until woken or ended
void feed_thread_wake(struct feed_thread *thread);             // any thread
void feed_thread_keep(struct feed_thread *thread, uint64_t position);
// Where the engine that had the duty before us was; *position stays as it is when there was none, or it cannot be read.
void feed_thread_again(struct feed_thread *thread, struct store *store, uint64_t *position);

// projecting.c
enum code projecting_open(struct service *service, struct error *err) MUST_CHECK; // before the engine's thread
enum code projecting_start(struct service *service, struct error *err) MUST_CHECK;
void projecting_end(struct service *service);                                    // while the engine turns
void projecting_close(struct service *service);                                  // when it does not any more
void projecting_stored(struct service *service, size_t events, int64_t mono_ms); // engine thread
void projecting_tick(struct service *service, int64_t mono_ms);                  // engine thread

// otlp.c
enum code otlp_open(struct service *service, struct error *err) MUST_CHECK; // before the engine's thread
enum code otlp_start(struct service *service, struct error *err) MUST_CHECK;
void otlp_close(struct service *service); // while the engine turns

// expiring.c
enum code expiring_start(struct service *service, struct error *err) MUST_CHECK;
void expiring_end(struct service *service);

// oidc.c
enum code oidc_open(struct service *service, struct error *err) MUST_CHECK; // and starts its thread
void oidc_stop(struct service *service);
void oidc_close(struct service *service); // after the last caller
// As service_authenticate.
enum code oidc_authenticate(struct service *service, struct str token, struct arena *arena, struct principal *out,
                            struct error *err) MUST_CHECK;

// sign_in_settings.c
enum code service_oidc_parse(const struct json *value, struct arena *arena, struct service_settings *out,
                             struct error *err) MUST_CHECK;
void service_clients_read(struct form *form, struct service_settings *out); // members of [serve.tls]

// sinks.c
// idle: another engine carries; here readers get what the store says of it, and orders are taken.
enum code sinks_open(struct service *service, bool idle, struct error *err) MUST_CHECK;
void sinks_look(struct service *service, struct store *store); // idle: what metrics say is brought up to date
void sinks_close(struct service *service);                     // while the engine turns
void sinks_moved(struct service *service);
// Notes from any thread, copied; `done` is called once, perhaps before this returns (E_CANCELLED: the service stops).
void service_put(struct service *service, const struct note_put *notes, size_t count, bus_done done, void *context);

// Whether the caller may send a document instead of a reference to one; a refusal answers the call.
bool definitions_inline(struct call *call);

// status.c
bool status_json(const struct run_ids *ids, const struct start_facts *start, const struct run_summary *summary,
                 uint64_t seq, struct arena *arena, struct json *out) MUST_CHECK;

#endif
