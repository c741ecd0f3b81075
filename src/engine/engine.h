// Where kernel, store and tools meet. One thread owns all run state; everything else talks to it through the mailbox.
//
//   engine_turn: drain the mailbox and due timers, step each input, append ONE batch, dispatch effects, answer.
//   Nothing is dispatched or answered before it is durable (E1, E2).
//
// A failed append: E_FULL, E_NOMEM: the touched runs are folded again from the store and the inputs tried again later;
// E_CONFLICT: another process owns the run now, it is dropped here; when the store has fenced this engine (store_fenced), all are,
// and starts that wait are refused with E_LOCKED; E_IO: the process ends (I8).
#ifndef CAIRN_ENGINE_ENGINE_H
#define CAIRN_ENGINE_ENGINE_H

#include "kernel/kernel.h"
#include "os/os.h"
#include "store/store.h"
#include "task/task.h"

struct engine;

#define REPORT_PREFIX "event/" // an event that a worker reported is in the ledger under this and its event_id

// Seen by the observer after it is durable, on the engine thread. `path` strings live during the call.
struct engine_event {
    struct str run;          // run id
    const struct run *state; // read only, after the fold of all that was stored together
    uint64_t last_seq;       // of that state
    const struct program *program;
    const struct moment *moment;
    bool past;                      // recorded again from another run: it did not happen now
    const struct append_item *item; // number, id, time, bytes as stored
};

struct engine_decision {
    struct str tenant, run;
    struct str signal_id;
    enum signal_type type;
    bool accepted, duplicate;
    bool deferred; // REVISION_REQUIRED: it waits for an approval
    struct str decision_id;
    struct str error_code, error_message;
    uint64_t seq;       // of the last event that it caused, 0 = none
    struct str new_run; // RETRY_RUN
};

// The start of a run could not be stored (E_EXISTS: its id was taken meanwhile; E_CONFLICT: one of its notes does not fit; E_LOCKED: this
// engine was taken for dead): there is no such run here.
struct engine_refusal {
    struct str tenant, run;
    struct str parent; // of a child run, whose step fails or takes up what another process started; else empty
    const struct error *why;
};

// Starts of a run that went on without their store (ADR 0036).
enum outbox_news {
    OUTBOX_WRITTEN = 1, // `moments` are durable in the outbox, and are carried out
    OUTBOX_LOGGED,      // all of the run's are in its log now
    OUTBOX_LOST         // they never will be: the run's log went on without them, under another owner. `moments` may be NULL
};
struct engine_outbox {
    enum outbox_news what;
    struct str tenant, run;
    const struct moment *moments;
    size_t count;
};

struct engine_observer {
    void *context;
    void (*event)(void *context, const struct engine_event *event);          // may be NULL
    void (*decision)(void *context, const struct engine_decision *decision); // may be NULL
    void (*output)(void *context, struct str run, struct str step, bool is_stderr,
                   struct str line); // live lines; may be NULL
    void (*refused)(void *context, const struct engine_refusal *refusal); // may be NULL
    // A run that has not ended is not driven here any more (engine_let_go, or the store has fenced us). May be NULL.
    void (*left)(void *context, const struct run *run);
    // A batch was given to the store: what came of it, how long it took, how many events it held. May be NULL.
    void (*appended)(void *context, enum code rc, int64_t micros, size_t events);
    void (*outbox)(void *context, const struct engine_outbox *news); // may be NULL
};

struct engine_limits {
    uint32_t inputs_per_turn_max; // 4096
    uint32_t process_max;         // child processes at once
    size_t output_max;            // bytes of a step's output kept (1 MiB)
    size_t log_max;               // bytes of a step's log kept per attempt (16 MiB)
    size_t inline_max;            // larger outputs become blobs (64 KiB)
    // Of one run, beyond which it fails (engine_limits_parse): events in its log, 0 = 50,000 times program_scale, of a playbook 20 times
    // that; bytes of its records and results, 0 = 1 GiB; iterations of one loop, 0 = KERNEL_ITERATIONS_MAX. 
    uint64_t events_per_run_max, bytes_per_run_max;
    // Where the profile rotates, those two do not end a run: at them, or at segment_*, it goes on in a new segment (ADR 0035). 0 = as those
    // above say, and where they do not, 50,000 events and 50 MiB. It fails when it has filled segments_max of them (100), 0 = never.
    uint64_t segment_events_max, segment_bytes_max, segments_max;
    uint32_t iterations_max;
    uint32_t children_max;        // child runs of one tenant that have not ended; the next one is not started. 0 = 50,000
    uint32_t steps_max;           // of documents that runs name when they need them; 0 = PROGRAM_STEPS
    // How long a result may wait for the store (ADR 0019): then its attempt fails with STATE_STORE_WRITE_BUDGET_EXCEEDED,
    // retryable, unless it turns out to be stored. 0 (default): as long as it takes.
    int64_t write_budget_ms;
    // Starts of attempts that have waited that long go on, with their events in the outbox, until the store takes them (ADR 0036).
    bool starts_fail_open;
};
extern const struct engine_limits engine_limits_default;

// "limits" of a service's configuration, or of a command line: {"events":N,"bytes":N,"segmentEvents":N,"segmentBytes":N,
// "segments":N,"iterations":N,"sqlBytes":N}; what is missing stays as it is. `sql_bytes` (may be NULL): what a task's SQL may take
// (task/task.h). E_INVALID.
enum code engine_limits_parse(const struct json *config, struct arena *arena, struct engine_limits *out,
                              uint64_t *sql_bytes, struct error *err) MUST_CHECK;
// How long artifacts are kept, by kind: what a step leaves says when its time is over (expiresAt), and then it is not read any more
// (reading/reading.h) and removed (archive_expire in archive/archive.h).
struct retention_rule {
    struct str kind; // "default": of kinds that no rule names
    int64_t ms;      // 0: for ever
};
struct retention {
    const struct retention_rule *rules;
    size_t count;
};
// {"KIND":"7d","default":"30d","report":"never"}. E_INVALID. In `arena`.
enum code retention_parse(const struct json *config, struct arena *arena, struct retention *out,
                          struct error *err) MUST_CHECK;
int64_t retention_of(const struct retention *retention, struct str kind); // 0: for ever

// "stateStore" of a service's configuration: {"writeLatencyBudgetMs":3000,"failOpenForEventClass":["StepStarted"],
// "neverFailOpen":["StepCompleted","StepFailed"]}, which are the defaults (`config` may be NULL). StepStarted is the one class that may
// fail open; others are refused with the reason. E_INVALID.
enum code engine_write_budget_parse(const struct json *config, struct engine_limits *out, struct error *err) MUST_CHECK;

// Functions of the program around the engine: steps of kind HOST.
struct engine_host {
    struct tools *tools; // executes tool_request.function; delivers with engine_deliver. NULL: there are none
    void *context;
    bool (*knows)(void *context, struct str function); // a run that needs others is not taken up
};

struct engine_options {
    struct store *store; // opened for writing; borrowed
    bool plans_apart;    // a document that store_plan_keep has, and that came from elsewhere, is not stored with its run
    const struct contract *contract;
    struct entropy *entropy;
    struct tools *tools;                        // NULL: the engine opens its own process tools
    const struct tool_confinement *confinement; // of those; both as in tool_options, and live as long as the engine
    const struct tool_secrets *secrets;
    void (*arrived)(void *context); // any thread: something is in the mailbox or engine_wake was called; may be NULL
    void *arrived_context;
    bool no_processes; // it never does: runs that need them are refused (E_UNSUPPORTED)
    struct adapters adapters; // texts live as long as the engine
    struct engine_host host;
    // The same for the tasks of playbooks; tools NULL: the engine opens its own (task/task.h), with `task` beside confinement and
    // secrets. It lives as long as the engine; NULL: as at a command line.
    struct engine_host tasks;
    const struct task_options *task;
    // Where attempts wait for workers, and which ones do (executor/executor.h). They live as long as the engine. NULL: there are none.
    struct tools *pools;
    // An attempt that was given to them outlives this engine: the next one claims it, by starting the same (run, step, logical,
    // engine) again, which the tools understand as that. So taking a run up names no new engine attempts (ADR 0039).
    bool pools_apart;
    struct executor_routes routes;
    struct engine_limits limits;
    struct disk *outbox_disk; // tests: has the files of the outbox. NULL: a directory beside the store
    struct engine_observer observer;
    // Asked right before an attempt is given to a tool: false when too much time has passed since the store was last heard of
    // (I29); the attempt then runs later, under the next engine attempt. NULL: always.
    bool (*may_start)(void *context);
    void *may_start_context;
    // Asked when a run ends, before that is stored: up to two notes that are stored with the end (S3), with texts in `arena`. Perhaps more
    // than once for one end. How many; NULL: none. Their puts must fit whatever is there.
    size_t (*ending)(void *context, struct str tenant, struct str run, struct arena *arena, struct note_put *out);
    void *ending_context;
    struct retention retention; // of artifacts; lives as long as the engine
    bool private_files; // the log does not say where artifacts are on this machine, only whose they are
    bool
        no_files; // a playbook that a task names when it runs is one that the run holds: none is looked for among files
    bool only_signals; // a run that RETRY_RUN makes stays as it is until engine_adopt: nothing of it starts
    int64_t drain_timeout_ms;    // of pauses, where neither the start nor the document says; 0 = 5 minutes
    enum pause_wish cancel_on_pause;
};

enum code engine_open(const struct engine_options *options, struct engine **out, struct error *err) MUST_CHECK;
// Releases leases, kills and reaps what is in flight. Runs that have not ended go on with the next engine_adopt.
void engine_close(struct engine *engine);

// START: at once. QUEUE: recorded, and nothing more until engine_admit. DELAY: it starts, its steps not before not_before_ms.
enum start_mode { MODE_START = 0, MODE_QUEUE, MODE_DELAY };

struct start_request {
    const struct program *program; // retained by the engine while the run is resident
    struct str tenant, project, environment;
    struct str run;     // empty: a new UUID; the id is in *run_out
    bool fresh;         // `run` was made of random bytes just now: the store is not asked whether it is there
    struct json inputs; // object; defaults of the program are added
    struct str arguments, work_dir, triggered_by, trigger_source;
    struct str original_run;  // RETRY_RUN
    struct str plan_uri;      // where the document came from; empty: from the caller
    struct str plan_sha256;   // what its reference says; empty, or the document's own: nothing else than the document
    struct str artifacts_dir; // empty: the run's own
    const struct reuse *reuse;
    uint32_t reuse_count;
    struct str parent_run, parent_step;
    const struct note_put *notes; // stored with the first batch of the run, or the start is refused (observer.refused)
    size_t note_count;
    enum start_mode mode;
    int64_t not_before_ms; // DELAY, wall clock
    struct str queue;      // a fact of the start; keeping it is the caller's
    // Behaviour (C-07): "cairn", "temporal", "conductor", "mock"; empty: what the document says, else cairn's own.
    struct str target_adapter;
    // How it pauses: as it is said here, else in the document, else in engine_options.
    enum pause_wish cancel_on_pause; // temporal: PAUSE stops what is in flight
    int64_t drain_timeout_ms;    // 0 = not said; 5 minutes where nothing is
    // The plan that was meant was refused (contract.h): the run is queued and fails. `program` is a plan that stands for it.
    const struct json *refusal;
};

// The plan is held against the capabilities of its adapter (contract/profile.h): errors refuse the start (E_INVALID,
// "PlanValidationError: CODE: ..."), warnings go into RunStarted, with a reference to the whole report, a blob of the run.
// Checks and queues the start; it happens in the next turn. E_EXISTS, E_INVALID, E_UNSUPPORTED (engine_supports). run_out needs 129 bytes.
enum code engine_start(struct engine *engine, const struct start_request *request, char run_out[129],
                       struct error *err) MUST_CHECK;
// A run that was started with MODE_QUEUE begins, in the next turn; also one that nobody owned, which is taken over for it.
// Once is enough, twice does no harm: a run that has begun is left alone (ES-3e). E_CONFLICT: it waits for its approval first;
// otherwise as engine_adopt.
enum code engine_admit(struct engine *engine, struct str tenant, struct str run, struct error *err) MUST_CHECK;
// Takes over a run that no living process owns: kills its orphans, folds it, goes on in the next turn. Signals that were
// posted to it while nobody owned it are decided before it goes on.
// E_NOT_FOUND, E_LOCKED, E_TERMINAL (it has ended; nothing to do), E_CORRUPT, E_UNSUPPORTED (it stays as it is).
enum code engine_adopt(struct engine *engine, struct str tenant, struct str run, struct error *err) MUST_CHECK;
// The same of one that the store has just listed: its head is not asked for again.
enum code engine_adopt_listed(struct engine *engine, const struct run_head *head, struct error *err) MUST_CHECK;
// A signal for a run of this engine, for an ended run, or for one that nobody owns. Decided in the next turn; the answer
// goes to the observer. A run that nobody owned becomes resident but stays idle: the decision is recorded, nothing of the run
// starts before engine_adopt (only CANCEL and EMERGENCY_STOP bring it to its end by themselves). E_NOT_FOUND, E_LOCKED,
// E_CORRUPT.
enum code engine_signal(struct engine *engine, struct str tenant, struct str run, const struct signal *signal,
                        struct error *err) MUST_CHECK;

// Takes back what engine_start, engine_fork or engine_signal has queued last, in the same pause between two turns: nothing of it happens.
void engine_take_back(struct engine *engine);

// The newest decision record (schemas/decision.json) of a run with this signalId, policyDecisionId or signalDecisionId, in
// `arena`. `seq` (may be NULL): the last event that names the signal, 0 = none. E_NOT_FOUND.
enum code engine_find_decision(struct store *store, struct str tenant, struct str run, struct str id,
                               struct arena *arena, struct json *out, uint64_t *seq, struct error *err) MUST_CHECK;
// Whether that record is of this very request. An id that comes again with another one is a mistake of the sender (I22).
bool engine_same_signal(const struct signal *signal, const struct json *record);

// Notes (S15), copied; they ride in the batch of the next turn. `done` (may be NULL) is called on the engine thread when they are
// durable (OK), or will never be: E_CONFLICT, E_DENIED, E_INVALID, E_LIMIT, E_UNSUPPORTED; E_CANCELLED: the engine was closed before;
// E_IO: nobody knows. Either all of one call are stored or none. Runs of the same turn are not touched by any of that.
enum code engine_put(struct engine *engine, const struct note_put *notes, size_t count,
                     void (*done)(void *context, enum code rc, const struct error *why), void *context,
                     struct error *err) MUST_CHECK;

// ---- runs that take over from another one: fork, rerun, retry of a step and all below it (ADR 0015)
struct fork_output {
    struct str step; // of the top scope
    struct json value;
};

struct fork_request {
    struct str tenant, source;
    uint64_t at;                       // the source right after this event; 0 = before the first, UINT64_MAX = the last
    bool results_only;                 // not the life of the source up to there, only results of steps that succeeded
    const struct program *program;     // NULL: the source's own
    struct json inputs;                // instead of those of the same name; type 0 = none
    const struct fork_output *outputs; // instead of what these steps gave, or will give
    size_t output_count;
    const struct str *from; // these steps run again, and all that hang on them
    size_t from_count;
    int64_t now_ms;
};

// What a new run would take over and what would run. Nothing has happened yet.
struct fork {
    struct run_head head; // of the source, as it is now
    uint64_t at;          // 0 .. head.last_seq
    bool results_only;
    const struct program *before, *program; // of the source, of the new run
    const struct run *source;               // as it was at `at`; what belonged to it alone is left out (kernel_past)
    const struct run *run;                  // the new run as its first turn will leave it
    struct start_facts facts;               // of the source
    struct json inputs;                     // of the new run
    struct json changed;                    // names of the inputs that differ, an array
    const struct step_fate *fates;          // by step of the top scope of `program`
    struct fork_private *private;
};

// Reads the source and decides. E_NOT_FOUND: no such run, or a step in `from` or `outputs` that the program does not
// have; E_INVALID: no such event, another kind of document, or an input that the document does not take; E_CONFLICT:
// an output is given for a step that cannot have ended there, or a gate before the start does not allow it.
enum code fork_open(struct store *store, const struct fork_request *request, struct fork **out,
                    struct error *err) MUST_CHECK;
void fork_close(struct fork *fork);

struct fork_start {
    struct str run; // empty: a new UUID
    struct str triggered_by, reason;
    struct str plan_uri; // of another document than the source's: where it came from; empty: from the caller
    struct str plan_sha256; // of that reference
    const char *how; // "fork", "rerun", "retry": for the record in the ledger
    bool idle;       // recorded, but nothing starts before engine_adopt
};
// Queues the new run; it is recorded whole in the next turn, in one batch, and goes on from there. The store must be the one
// that the fork was opened over. E_EXISTS, E_INVALID as engine_start. Once for each fork.
enum code engine_fork(struct engine *engine, struct fork *fork, const struct fork_start *start, char run_out[129],
                      struct error *err) MUST_CHECK;

struct engine_activity {
    size_t resident;      // runs that have not ended
    size_t parked;        // of these: paused, held or waiting for a person, nothing in flight in this process
    size_t in_flight;     // attempts dispatched by this process
    size_t stopping;      // of these: asked to stop
    size_t queued;        // inputs that wait for the next turn
    uint64_t slow_writes; // appends that took longer than limits.write_budget_ms, so far
    size_t outboxed;      // runs whose starts are in the outbox and not in their log yet
    int64_t stalled_ms;   // so long has the store taken nothing of what is to be stored (no space); 0 = it does
};
struct engine_activity engine_activity(const struct engine *engine); // looks at every resident run
size_t engine_resident(const struct engine *engine);                 // how many there are, at no cost
// The engine has a write budget, and the server of its store is away (store_away): what would be read or stored waits.
bool engine_away(struct engine *engine);
int64_t engine_stalled(const struct engine *engine, size_t *outboxed); // two of those, likewise
const struct run *engine_run(const struct engine *engine, struct str tenant, struct str run); // NULL: not resident
// Of a run that was taken over, and of which nothing is decided yet: RECOVERING. "" of one that is not resident.
const char *engine_substatus(const struct engine *engine, struct str tenant, struct str run);

// Every resident run that is driven and waits for an event from outside (kernel_await). False: a visit said so. Engine thread.
bool engine_awaiting(const struct engine *engine, bool (*visit)(void *context, const struct run *run), void *context) MUST_CHECK;
// Whether the engine has taken a run up and all that was in flight is with its tools. Engine thread.
bool engine_is_driven(const struct engine *engine, struct str tenant, struct str run);
// The shard of a run that is resident; 0: it has none, or is not here. Engine thread.
uint32_t engine_shard(const struct engine *engine, struct str tenant, struct str run);
// What a run waits for by the clock. In `arena`; false: out of memory. None when it is not resident. Engine thread.
struct engine_timer {
    struct str step; // path; empty: the run itself
    uint32_t logical;
    enum timer_kind kind;
    int64_t due_ms; // by the wall clock
};
bool engine_timers(const struct engine *engine, struct str tenant, struct str run, struct arena *arena,
                   struct engine_timer **out, size_t *count) MUST_CHECK;

// One turn. *worked: something was decided or delivered. Call again at once while it is true.
enum code engine_turn(struct engine *engine, struct moment_in_time now, bool *worked, struct error *err) MUST_CHECK;
// Monotonic ms at which the next timer is due; INT64_MAX when there is none.
int64_t engine_deadline(const struct engine *engine);
// Blocks until a result arrives, engine_wake is called, or until_mono_ms.
void engine_wait(struct engine *engine, int64_t until_mono_ms);
void engine_wake(struct engine *engine); // any thread
// For tools that the caller brought: hands in the result of a ticket. Takes over its memory. Any thread.
void engine_deliver(struct engine *engine, struct tool_result *result);
// The same for a caller that delivers under a lock of its own. The artifacts that the step declared are opened and hashed by
// declared_files_look, which takes its time and needs no engine: before the lock. A result that is too long becomes one of them, where
// its step asks for it. NULL: it declares none. Any thread.
struct declared_files;
struct declared_files *engine_declared(struct engine *engine, uint64_t ticket); // until the result is delivered they are the caller's
void declared_files_look(struct declared_files *files, struct tool_result *result);
void declared_files_free(struct declared_files *files); // NULL: nothing
void engine_deliver_looked(struct engine *engine, struct tool_result *result, struct declared_files *files); // takes over both
void engine_line(struct engine *engine, uint64_t ticket, bool is_stderr, struct str line); // a live line; any thread
// From now on no attempt is given to a tool. One that would have been is like one whose process died: the engine that takes the run
// up next runs it, under the next engine attempt.
void engine_hold(struct engine *engine);
// ---- several engines on one store (S17)
// Where the attempts are that are outside: which of them wait for a slot or a worker, which have one. Any thread, from engine_open to
// engine_close; the visit must not call back.
void engine_places(const struct engine *engine, tool_place_visit visit, void *context);
// The same of attempts that have a place under a limit of steps, as this engine knows of them: its own, and those of others that it met.
#define ENGINE_LIMIT_SPACE STR("step-limit") // notes: what a service says of a limit, key TENANT|NAME
#define ENGINE_PERMIT_SPACE STR("permit")    // and who has its places, key TENANT|NAME|...: engine/permits.c
void engine_limit_holders(const struct engine *engine, tool_place_visit visit, void *context);
// Shards (bit n - 1 for shard n) that have runs here with an attempt in flight, or with something in the queue. Attempts of pools_apart
// do not count: the next owner claims them.
uint64_t engine_busy(const struct engine *engine);
// Lets go of the runs of these shards; what is in flight of them is killed, but for attempts of pools_apart. UINT64_MAX: of all
// runs, of a shard or not.
// Between two turns.
void engine_let_go(struct engine *engine, uint64_t shards);
// Whether something waits to be decided about this run; what is queued now comes after it. Between two turns.
bool engine_pending(const struct engine *engine, struct str tenant, struct str run);
// Takes signals that other processes posted from the store's inbox into the queue. engine_loop does this by itself.
enum code engine_poll(struct engine *engine, struct error *err) MUST_CHECK;
// Turns until *stop is set, no run is resident, or (exit_on_park) every resident run is parked.
// Looks into the store's inbox at least every `poll_ms`.
struct engine_loop {
    volatile bool *stop; // may be NULL
    bool exit_on_park;
    int64_t poll_ms; // 0 = 50
    void (*tick)(void *context, struct engine *engine,
                 struct moment_in_time now); // each round, at least every tick_ms; may be NULL
    void *context;
    int64_t tick_ms;
};
enum code engine_loop(struct engine *engine, const struct engine_loop *loop, struct error *err) MUST_CHECK;

// Whether a run of that tenant and environment has an executor for every step (of a playbook: for those that it cannot miss):
// E_UNSUPPORTED names the first that has none, with what is missing. Any thread.
enum code engine_supports(const struct engine *engine, const struct run_ids *ids, const struct program *program,
                          struct error *err) MUST_CHECK;

// Child documents: the name as a path beside the document, also with .yaml, .yml or .json, then in .archon/workflows and
// .cairn/workflows of the document's directory, of the current one, and up their trees. Scripts: the name, also with the
// extensions of its runtime, beside the document and in scripts, .archon/scripts and .cairn/scripts, likewise.
// The search upward ends at the root of the repository.
// E_NOT_FOUND: err lists the places. It is the `load` of a program_loader, and needs no context.
enum code engine_find_part(void *context, struct program_part *part, struct arena *arena, struct error *err) MUST_CHECK;

// kernel_reusable, with what only the log of the run tells: artifacts, and whether an output was cut. Values borrow `source`,
// artifacts live in `arena`.
enum code engine_reusable(struct store *store, const struct run *source, struct arena *arena, struct reuse **out,
                          uint32_t *count, struct error *err) MUST_CHECK;

// What marks the processes of this store's runs (CAIRN_MARK): the UUID of the store. Where it has none and cannot be given one, 32 hex
// digits: of the file that it is, by whatever path it was opened, or of its URL.
struct engine_mark {
    char store[UUID_SIZE];
    char file[33]; // as engines before marked their processes
    char url[33];  // and as those before them did
};
// `make`: a store without a UUID gets one.
void engine_mark(struct store *store, bool make, struct engine_mark *out);
// What lists show of a run: the summary that is kept with its head.
void engine_summary(const struct run *run, struct run_summary *out);
// The program of a stored run, from the bytes it was started with (I20). Functions of a host are taken as they are.
enum code engine_program(struct store *store, const struct run_head *head, struct program **out,
                         struct error *err) MUST_CHECK;

#endif
