// Three vocabularies, one list of moments.
//
// The kernel speaks in moments. A run is written in the vocabulary of its document, so that a consumer who knows only that
// contract can read the log without Cairn. MOMENT_LIST has one row per moment and one column per vocabulary; a moment
// without a word in the run's vocabulary is a fact all the same, and goes to the ledger beside the log (same store, same
// transaction), never into the log.
//
//   moment --contract_encode--> record (canonical JSON, RFC 8785, hashed as stored) --contract_decode--> the same moment
//
// Every event record fits its JSON Schema before its bytes exist, or E_SCHEMA, nothing stored: what the encoder writes is known to fit by
// the types of its fields; where that does not say so, the record is held against the schema (contract/internal.h).
// struct contract is immutable after contract_open and may be shared by threads.
#ifndef CAIRN_CONTRACT_CONTRACT_H
#define CAIRN_CONTRACT_CONTRACT_H

#include "base/sha256.h"
#include "base/uuid.h"
#include "json/json.h"

enum vocabulary { VOCABULARY_RUN = 1, VOCABULARY_NOETL, VOCABULARY_NODES };
const char *vocabulary_name(enum vocabulary vocabulary); // "run", "noetl", "nodes"
enum vocabulary vocabulary_parse(struct str text);       // 0 when unknown
enum vocabulary vocabulary_of_document(struct str kind); // of "plan", "nodes", "playbook"; RUN when unknown

// X(NAME, run word, noetl word, nodes word): NULL where the vocabulary has none. See requirements §4.1.
#define MOMENT_LIST(X)                                                                                                 \
    X(RUN_REQUESTED, NULL, "playbook.execution.requested", NULL)                                                       \
    X(REQUEST_EVALUATED, NULL, "playbook.request.evaluated", NULL)                                                     \
    X(RUN_QUEUED, "RunQueued", NULL, NULL)                                                                             \
    X(RUN_APPROVED, "RunApproved", NULL, NULL)                                                                         \
    X(RUN_STARTED, "RunStarted", "playbook.started", "workflow_started")                                               \
    X(WORKFLOW_STARTED, NULL, "workflow.started", NULL)                                                                \
    X(ADMIT_EVALUATED, NULL, "policy.admit.evaluated", NULL)                                                           \
    X(STEP_SCHEDULED, NULL, "step.scheduled", NULL)                                                                    \
    X(STEP_DELAYED, "StepDelayed", NULL, NULL)                                                                         \
    X(STEP_STARTED, "StepStarted", "step.started", "node_started")                                                     \
    X(STEP_REDISPATCHED, "StepRedispatched", NULL, "node_started")                                                     \
    X(TASK_STARTED, NULL, "task.started", NULL)                                                                        \
    X(ATTEMPT_STARTED, NULL, "task.attempt.started", NULL)                                                             \
    X(ATTEMPT_DONE, NULL, "task.attempt.done", NULL)                                                                   \
    X(ATTEMPT_FAILED, "StepFailed", "task.attempt.failed", NULL)                                                       \
    X(TASK_DECIDED, NULL, "policy.task.evaluated", NULL)                                                               \
    X(TASK_DONE, NULL, "task.done", NULL)                                                                              \
    X(TASK_FAILED, NULL, "task.failed", NULL)                                                                          \
    X(LOOP_STARTED, NULL, "loop.started", NULL)                                                                        \
    X(ITERATION_SCHEDULED, NULL, "loop.iteration.scheduled", NULL)                                                     \
    X(ITERATION_STARTED, NULL, "loop.iteration.started", NULL)                                                         \
    X(ITERATION_DONE, NULL, "loop.iteration.done", NULL)                                                               \
    X(ITERATION_FAILED, NULL, "loop.iteration.failed", NULL)                                                           \
    X(LOOP_DONE, NULL, "loop.done", NULL)                                                                              \
    X(RESULT_STORED, NULL, "result.stored", NULL)                                                                      \
    X(MANIFEST_UPDATED, NULL, "result.manifest.updated", NULL)                                                         \
    X(STEP_COMPLETED, "StepCompleted", "step.done", "node_completed")                                                  \
    X(STEP_FAILED, "StepFailed", "step.failed", "node_failed")                                                         \
    X(STEP_SKIPPED, "StepSkipped", NULL, "node_skipped")                                                               \
    X(ROUTED, NULL, "next.evaluated", NULL)                                                                            \
    X(SIGNAL_ACCEPTED, "SignalAccepted", NULL, NULL)                                                                   \
    X(SIGNAL_REJECTED, "SignalRejected", NULL, NULL)                                                                   \
    X(RUN_PAUSED, "RunPaused", "playbook.paused", NULL)                                                                \
    X(RUN_RESUMED, "RunResumed", "playbook.request.evaluated", NULL)                                                   \
    X(WORKFLOW_FINISHED, NULL, "workflow.finished", NULL)                                                              \
    X(RUN_CANCELLED, "RunCancelled", "playbook.finished", "workflow_cancelled")                                        \
    X(RUN_COMPLETED, "RunCompleted", "playbook.finished", "workflow_completed")                                        \
    X(RUN_FAILED, "RunFailed", "playbook.finished", "workflow_failed")                                                 \
    X(RUN_PROCESSED, NULL, "playbook.processed", NULL)                                                                 \
    X(LATE_RESULT, NULL, NULL, NULL)                                                                                   \
    X(SIGNAL_DEFERRED, NULL, NULL, NULL)                                                                               \
    X(SIGNAL_SETTLED, NULL, NULL, NULL)                                                                                \
    X(DRAIN_TIMEOUT, NULL, NULL, NULL)                                                                                 \
    X(STEP_OVERDUE, NULL, NULL, NULL)                                                                                  \
    X(SEGMENT_FULL, NULL, NULL, NULL)                                                                                  \
    X(SEGMENT_STARTED, NULL, NULL, NULL)                                                                               \
    X(LIST_STARTED, NULL, NULL, NULL)                                                                                  \
    X(CHILD_ENDED, NULL, NULL, NULL)                                                                                   \
    X(EVENT_AWAITED, NULL, NULL, NULL)                                                                                 \
    X(ATTEMPT_RESTS, NULL, NULL, NULL)

enum moment_kind {
    MOMENT_UNKNOWN = 0, // a type that this version does not know: it advances the watermark and changes nothing
#define X(name, run, noetl, nodes) MOMENT_##name,
    MOMENT_LIST(X)
#undef X
        MOMENT_COUNT
};

const char *moment_name(enum moment_kind kind);                             // "STEP_STARTED"
const char *moment_word(enum moment_kind kind, enum vocabulary vocabulary); // NULL: goes to the ledger
bool moment_is_terminal(enum moment_kind kind);                             // ends the run
bool moment_is_step(enum moment_kind kind);                                 // has a step
enum moment_kind moment_parse(struct str name); // of moment_name; MOMENT_UNKNOWN when there is none

enum emitter { EMITTER_ENGINE = 1, EMITTER_PLANNER, EMITTER_WORKER, EMITTER_SYSTEM };
const char *emitter_name(enum emitter emitter);     // "activity-worker"
enum emitter emitter_parse(struct str text);        // 0 when unknown
enum emitter moment_emitter(enum moment_kind kind); // who emits it by contract (ES-1.2)

enum run_status {
    RUN_STATUS_PENDING = 1,
    RUN_STATUS_APPROVED,
    RUN_STATUS_RUNNING,
    RUN_STATUS_PAUSED,
    RUN_STATUS_COMPLETED,
    RUN_STATUS_FAILED,
    RUN_STATUS_CANCELLED,
};
enum step_status {
    STEP_STATUS_PENDING = 1,
    STEP_STATUS_RUNNING,
    STEP_STATUS_SUCCESS,
    STEP_STATUS_FAILED,
    STEP_STATUS_SKIPPED
};
const char *run_status_name(enum run_status status); // "PENDING"
enum run_status run_status_parse(struct str text);   // 0 when unknown
const char *step_status_name(enum step_status status);
enum step_status step_status_parse(struct str text);
bool run_status_terminal(enum run_status status);

struct run_ids {
    struct str tenant, project, environment, run, plan_id, plan_version;
};

// Facts of the start of a run (RUN_QUEUED and RUN_STARTED carry them).
struct start_facts {
    struct str document_sha256; // hex
    struct str document_kind;   // "plan", "nodes", "playbook"
    struct str document_file;   // where it was read from, for people
    struct str schema_version, name;
    struct json inputs; // object
    struct str arguments, work_dir, artifacts_dir;
    struct str triggered_by, trigger_source; // trigger_source: manual, schedule, webhook, api
    struct str original_run;                 // RETRY_RUN
    struct str parent_run, parent_step;      // child runs
    bool forked;                             // it began with what another run had recorded up to an event (ADR 0015)
    struct str forked_run;                   // that run
    uint64_t forked_seq;                     // and its event; 0 = before the first
    struct json parts;                       // array of {from, request, file, sha256}; type 0 = none
    struct json reuse; // ids of steps whose results of `original_run` count when the run is approved; type 0 = none
    // Why the plan that was meant was not taken: {code, message, sha256?, uri?}; type 0 = it was. Such a run fails at once (C-37).
    struct json refusal;
    bool requires_approval;
    struct str admission;     // "": starts at once; "QUEUE": when it is admitted; "DELAY": no step before not_before_ms
    int64_t not_before_ms;    // DELAY
    struct str queue;         // in which it counts and waits; "" = the one that every tenant has
    struct str profile;       // behaviour (C-07): "" is cairn's own, else "temporal", "conductor" or "mock"
    bool cancel_on_pause;     // temporal: attempts in flight are stopped by a pause, and run again after it
    int64_t drain_timeout_ms; // 0 = DRAIN_TIMEOUT_MS
    struct json warnings;     // of the validation of capabilities, an array; type 0 = none
    bool degraded;            // some are emulated or missing
    struct str report;        // where the whole report is: "cairn://blobs/<sha256>"
    struct str engine_type;   // as recorded; "": what the profile says. older logs say "cairn" of every profile
    struct str engine_place;  // temporal: namespace, conductor: conductorUrl; "": run_ref_of names it
    struct str plan_uri;      // where the document came from, without its query; "": the store itself, "cairn://plans/<sha256>"
    struct str plan_sha256;   // what its reference said: of a set of documents (ADR 0049) the hash of all; "": document_sha256
};
#define DRAIN_TIMEOUT_MS ((int64_t)300000)
// artifacts_dir is a path, or "run:ID": where the store of the run keeps the files of run ID, whichever machine that is on.
// Artifacts that were left there have the uri "cairn://artifacts/ID/NAME".
#define FILES_OF_RUN "run:"
#define FILES_URI "cairn://artifacts/"
// The name below `dir` (artifacts_dir) of an artifact; false when it is elsewhere.
bool artifact_name(struct str uri, struct str dir, struct str *out);

#define FAULT_LATE "timed out after %s (its field timeout)" // message of TIMEOUT; %s: a duration
bool code_is_ours(struct str code); // one that Cairn gives; any other was chosen by a program, and may say anything
// Bytes that are kept of the output of a step: of the text, or of the JSON that is kept apart.
uint64_t output_kept(const struct json *value, bool has_blob, uint64_t blob_size);
#define OUTPUT_CUT "output cut: %llu bytes of it are kept" // as people read it, with output_kept
#define FAULT_OVERFLOW_WAY "; `output: {on_overflow: artifact}` keeps all of it as a file of the run"
#define FAULT_OVERFLOW "its output has %llu bytes, above the limit of %zu" // message of PAYLOAD_TOO_LARGE
#define FAULT_CANCELLED "CANCELLED" // of what was stopped because its run is being cancelled
#define FAULT_EXIT "EXIT_NONZERO" // a command ended with another exit than 0
struct fault {
    struct str code; // "TIMEOUT", FAULT_EXIT, ...; empty = no fault
    struct str message;
    struct str category; // "", or infrastructure, business, validation, timeout
    struct str detail;   // last lines of stderr
    bool retryable;
    bool has_exit;
    int32_t exit_code;
};

// What these borrow becomes their own, in the arena (ARENA_KEEP). False: no memory.
bool ids_keep(struct arena *arena, struct run_ids *ids) MUST_CHECK;
bool fault_keep(struct arena *arena, struct fault *fault) MUST_CHECK;
// A text that equals one of `shared`, which lives long enough, is not copied.
bool start_keep(struct arena *arena, struct start_facts *start, const struct str *shared, size_t count) MUST_CHECK;

// Why a run failed, in one line: "failed at STEP: CODE MESSAGE"; without a step "failed: CODE MESSAGE".
void failure_told(struct buf *out, struct str step, const struct fault *fault);

struct run_counts {
    uint32_t total, completed, failed, skipped;
};

// Where the bytes of a result are: in the store of the run, or in an object store of NATS (store/keep.h).
enum result_store { RESULT_OBJECT = 0, RESULT_NATS_OBJECT };
struct str result_store_word(enum result_store store); // "object", "nats_object"
bool result_store_parse(struct str word, enum result_store *out);

// One moment. Only the fields that its kind uses are set; everything else is zero. Strings and JSON are borrowed.
struct moment {
    enum moment_kind kind;
    enum emitter by;
    struct str step; // path of the step ("load", "loop[2].tick"); empty for moments of the run
    // Playbooks. `step` is the name alone; what happens inside it is identified by these, and `logical` counts the tries of a task.
    uint32_t visit;           // the how-manyth time that the step is run, >= 1; 0 = not a playbook's
    uint32_t iteration;       // of its loop, from 1; 0 = none. CHILD_ENDED: place in the list, from 1
    struct str task;          // label; empty: the step or the iteration itself
    uint32_t task_run;        // the how-manyth run of that task in this visit and iteration, >= 1
    struct json extracted;    // TASK_DONE, RESULT_STORED: selected parts of a result kept as a blob; type 0 = none
    struct json preview;      // the same: {truncated, bytes, sample}, the beginning of it; type 0 = none
    uint32_t logical, engine; // attempt ids, >= 1. Pause and resume: logical = pause cycle (C-23). Segments: their number;
                              // `engine` of moments of the run is the segment that they are in
    int64_t at_ms;            // emittedAt
    const struct start_facts *start; // RUN_QUEUED, RUN_STARTED
    // STEP_COMPLETED, TASK_DONE: result (type 0 = none, or the value is in `blob`). SIGNAL_ACCEPTED: the payload, of signals that change
    // what the run works with (signal_rule.recorded). SIGNAL_DEFERRED: the whole request, until another person agrees.
    // Playbooks: RUN_STARTED the workload; ADMIT_EVALUATED {allow, matched_rule_index}; STEP_SCHEDULED the token's arguments;
    // LOOP_STARTED the collection (or `blob`); TASK_STARTED the inputs; ATTEMPT_DONE, ATTEMPT_FAILED, TASK_FAILED the outcome without
    // its result; TASK_DECIDED {matched_rule_index, action, set}; ROUTED {mode, event, matched, selected, set}.
    // SEGMENT_FULL: {bytes, events} of the segment, and in `reason` which of them was too many.
    // EVENT_AWAITED: `reason` is the name of the event, `detail` its correlation.
    // Lists of child runs: LIST_STARTED {as, items, join, most}, items perhaps as `blob`; CHILD_ENDED what the child gave.
    struct json value;
    struct digest blob; // STEP_COMPLETED: result kept as a blob when has_blob
    bool has_blob;
    enum result_store store; // where its bytes are; results of playbooks
    uint64_t blob_size;
    bool truncated;        // STEP_COMPLETED: the output was longer than is kept
    struct json artifacts; // STEP_COMPLETED, TASK_DONE: array, type 0 = none
    struct fault fault;    // STEP_FAILED, ATTEMPT_FAILED, RUN_FAILED, LATE_RESULT
    int64_t due_ms;        // STEP_STARTED: wake or approval deadline; STEP_DELAYED: notBefore; ATTEMPT_RESTS: its end; 0 = none
    int64_t duration_ms;   // step and run ends
    struct str
        reason; // STEP_SKIPPED: reason code; pause, resume, cancel: words of the sender; RUN_FAILED: root step id;
                // RESULT_STORED: why it is not where the playbook wanted it
    struct str detail;                              // STEP_SKIPPED: the condition or the parents' states
    struct str signal_id, signal_type, signal_step; // SIGNAL_*, RUN_PAUSED, RUN_RESUMED, RUN_CANCELLED
    struct str actor, role, decision_id; // SIGNAL_*; actor also on STEP_COMPLETED of an approval, RUN_APPROVED
    struct str run_ref;                  // STEP_STARTED, CHILD_ENDED: child run; STEP_COMPLETED: run whose result was reused
    struct run_counts counts;            // run ends
};

// Skip reason codes (C-25): in node workflows they are written trigger_rule, when_condition, when_condition_parse_error.
#define SKIP_DEPENDENCY_FAILED "DEPENDENCY_FAILED"
#define SKIP_TRIGGER_RULE "TRIGGER_RULE"
#define SKIP_NOTHING_TO_UNDO "NOTHING_TO_UNDO" // the run has come out well
#define SKIP_CONDITION_FALSE "CONDITION_FALSE"
#define SKIP_CONDITION_BROKEN "CONDITION_BROKEN"
#define SKIP_OPERATOR "OPERATOR_SKIP"

// What the append authority adds to a moment.
struct seal {
    uint64_t seq;
    int64_t persisted_ms;
    char event_id[UUID_SIZE];
    struct digest previous; // hash of the record before; all zero for the first
};

struct encoded {
    struct str type;    // the word
    struct str bytes;   // the whole record, no newline
    struct str payload; // the part of `bytes` that is the payload value
    struct digest key;  // idempotency key
    struct digest hash; // SHA-256 of `bytes`
};

struct contract;

#define RECORD_SIZE_MAX ((size_t)256 * 1024)

enum code contract_open(struct arena *arena, const struct contract **out, struct error *err) MUST_CHECK;
// Only for moments with a word in `vocabulary` (INVARIANT). Bytes are put in `arena`. E_SCHEMA: does not fit its type;
// E_LIMIT: larger than RECORD_SIZE_MAX; E_INVALID: a value that JSON cannot hold, or a fact that is not there (the visit of a
// playbook's step).
enum code contract_encode(const struct contract *contract, enum vocabulary vocabulary, const struct run_ids *ids,
                          const struct moment *moment, const struct seal *seal, struct arena *arena,
                          struct encoded *out, struct error *err) MUST_CHECK;
// Any vocabulary's record. A type without a row gives MOMENT_UNKNOWN and OK. E_CORRUPT when the bytes are not a record.
// `ids` (may be NULL) gets what the record tells. Values are in `arena` or borrow `bytes`.
enum code contract_decode(enum vocabulary vocabulary, struct str bytes, struct arena *arena, struct moment *out,
                          struct seal *seal, struct run_ids *ids, struct error *err) MUST_CHECK;
// Pieces of a record as they stand in its bytes: the payload, and the idempotency key that it tells. Empty when there is none,
// or when the bytes are not a record.
struct record_parts {
    struct str payload, key;
};
struct record_parts contract_parts(enum vocabulary vocabulary, struct str bytes);
// A moment as a ledger entry: canonical JSON {"moment": NAME, "at": ..., facts}. Any kind can be written this way.
enum code contract_encode_ledger(const struct moment *moment, struct arena *arena, struct str *out,
                                 struct error *err) MUST_CHECK;
enum code contract_decode_ledger(struct str bytes, struct arena *arena, struct moment *out,
                                 struct error *err) MUST_CHECK;
// What a tool says came of a task: an object with a status, and an error and meta that are objects where there are any. One that does not
// fit cannot be in an event; it is refused where it comes in.
bool contract_outcome_fits(const struct json *outcome);
// A record from elsewhere against the schema of its type. E_SCHEMA also for a type that is not in the vocabulary.
enum code contract_check(const struct contract *contract, enum vocabulary vocabulary, const struct json *record,
                         struct error *err) MUST_CHECK;
// The word that contract_show tells a moment with; NULL: it shows nothing. A step that is not run is StepSkipped where there is such a
// word and policy.admit.evaluated, skipped, in playbooks; attempts of a task are not attempts of its step, and are not shown.
const char *contract_word(const struct moment *moment, enum vocabulary to);
// The same moment in another vocabulary (type 0 when it has no word there): for `events --as`. Sequence and time are kept.
// RUN_STARTED of a playbook has the facts of its start when the caller has put them there (they are in RUN_REQUESTED).
enum code contract_show(const struct contract *contract, enum vocabulary to, const struct run_ids *ids,
                        const struct moment *moment, const struct seal *seal, struct arena *arena, struct json *out,
                        struct error *err) MUST_CHECK;

// F1: SHA256(runId|slot|logicalAttemptId|eventType|planVersion). `slot` is the step id, RUN, SIG:<signalId> or <stepId>#<k>.
struct digest event_key(struct str run, struct str slot, uint32_t logical, struct str type, struct str plan_version);
struct digest event_key_v2(struct str run, struct str slot, uint32_t logical, struct str type, struct str plan_id,
                           struct str plan_version);
struct digest request_key(const struct run_ids *ids, struct str request_id); // F3
// The key that contract_encode gives, without encoding: what a store looks up before it numbers anything.
struct digest moment_key(enum vocabulary vocabulary, const struct run_ids *ids, const struct moment *moment);
// The slot of a moment (C-33), put in `arena` when it must be composed. ptr NULL: out of memory.
// Playbooks: RUN, RESUME, or <step>|<visit>|<iteration>|<task>|<task run>, whose parts hold no '|'.
struct str moment_slot(enum vocabulary vocabulary, const struct moment *moment, struct arena *arena);
// The step's id where steps have no visits (C-65): the name alone, or <name>:run:<visit> from the second on. ptr NULL: out of memory.
struct str moment_step_id(const struct moment *moment, struct arena *arena);

// "cairn://local/<planId>/<runId>/<runId>": the engineRunRef of a run in one line, in `arena`. ptr NULL: out of memory.
struct str contract_run_ref(const struct run_ids *ids, const struct start_facts *start, struct arena *arena);

// ---- results of playbooks that are kept as blobs
// noetl://execution/<execution>/step/<step>[/visit/<n>][/iteration/<i>][/task/<task>/run/<n>/attempt/<n>]
// A part in brackets is there when it tells something: visits from the second on, iterations (from 0, as in the records) in loops,
// the task unless it is the result of the step. Names are percent-encoded.
struct result_place {
    struct str execution, step, task;
    uint32_t visit, iteration, task_run, attempt; // as in struct moment
};
struct result_place result_place(struct str execution, const struct moment *moment);
struct str result_ref_format(const struct result_place *place, struct arena *arena); // ptr NULL: out of memory
bool result_ref_parse(struct str ref, struct arena *arena,
                      struct result_place *out); // false: it is none, or out of memory

// ---- events of playbooks from workers of other make
struct ingested {
    struct str event_id, execution;
    struct str type; // as it is called now
    struct str step; // name
    uint32_t visit;  // 0: not given
    struct str task; // label; empty: not given
    bool ends;       // it tells how an attempt came out: `outcome`
    struct json outcome;
};
// What a reported event says. Texts borrow it. Older names are read as the new ones, but not from components of ours (`first_party`).
// E_DENIED: EVENT_NOT_ALLOWED, only the server tells such a thing (workers do not start steps); E_INVALID:
// SCHEMA_VALIDATION_FAILED, EVENT_TYPE_UNKNOWN, LEGACY_EVENT. The code begins the message, then a JSON Pointer where there is one.
enum code noetl_ingest(const struct json *event, bool first_party, struct arena *arena, struct ingested *out,
                       struct error *err) MUST_CHECK;

bool noetl_is_old(const struct json *event); // its type is none of today's

// ---- signals
// X(NAME, least role, destructive, reason apart, payload recorded): requirements §3.1.
//   destructive: needs a reason and raises P1. System is a role of its own: no person has it (C-60).
//   reason apart: the payload has no place for a reason; it stands beside it, for the decision record.
//   recorded: SIGNAL_ACCEPTED carries the payload, because the fold needs it or readers of the log must see it.
#define SIGNAL_LIST(X)                                                                                                 \
    X(PAUSE, "Operator", false, false, false)                                                                          \
    X(RESUME, "Operator", false, true, false)                                                                          \
    X(CANCEL, "Operator", false, false, false)                                                                         \
    X(RETRY_STEP, "Engineer", false, true, false)                                                                      \
    X(SKIP_STEP, "Engineer", false, false, false)                                                                      \
    X(RETRY_RUN, "Engineer", false, false, false)                                                                      \
    X(EMERGENCY_STOP, "Admin", true, false, false)                                                                     \
    X(APPROVE, "Operator", false, false, false)                                                                        \
    X(REJECT, "Operator", false, false, false)                                                                         \
    X(UPDATE_PARAMS, "Admin", true, true, true)                                                                        \
    X(INJECT_OVERRIDE, "Admin", true, true, true)                                                                      \
    X(UPDATE_TARGET, "Admin", true, true, true)                                                                        \
    X(ESCALATE_ALERT, "System", false, true, true)                                                                     \
    X(DELIVER_EVENT, "System", false, true, true)

enum signal_type {
    SIGNAL_NONE = 0,
#define X(name, role, destructive, apart, recorded) SIGNAL_##name,
    SIGNAL_LIST(X)
#undef X
};
#define SIGNAL_LAST SIGNAL_DELIVER_EVENT

struct signal_rule {
    const char *name;
    const char *least_role; // "Operator", "Engineer", "Admin", "System"
    bool destructive, reason_apart, recorded;
};
const struct signal_rule *signal_rule(enum signal_type type);
const char *signal_name(enum signal_type type);
enum signal_type signal_parse(struct str text);

struct signal {
    enum signal_type type;
    struct str id;   // UUID
    struct str step; // RETRY_STEP, SKIP_STEP, INJECT_OVERRIDE, UPDATE_TARGET, APPROVE, REJECT (empty = the run itself)
    struct str approves; // APPROVE, REJECT: id of a signal that waits for this answer
    struct str reason;
    // Filled in by the door through which it came, never by the sender.
    struct str actor, role, source_ip;
    struct str policy_decision_id; // UUID; empty: the policy is "local", its decision that of the engine
    struct str
        denied; // AUTHZ_DENIED or AUTHZ_REASON_REQUIRED: the policy refuses it; recorded as REJECTED and not applied
    bool requires_approval; // recorded as REVISION_REQUIRED and not applied until another person agrees
    uint64_t if_seq;        // the last event that the sender has seen: refused when the run has moved on; 0: no condition
    bool force;
    struct json payload;
};
// Checks {signalId, signalType, payload} (aliases of C-40 accepted) against its schema. E_INVALID with
// SIGNAL_INVALID_PAYLOAD in err.
enum code signal_decode(const struct contract *contract, struct str bytes, struct arena *arena, struct signal *out,
                        struct error *err) MUST_CHECK;
enum code signal_encode(const struct signal *signal, struct arena *arena, struct str *out,
                        struct error *err) MUST_CHECK;
// The same as values, unchecked: what a moment carries. False: out of memory. `out` of signal_read borrows `request`.
bool signal_write(const struct signal *signal, struct arena *arena, struct json *out);
bool signal_read(const struct json *request, struct signal *out); // false: it is none

// Ids of playbooks' runs when nobody names them: positive 64-bit numbers that grow with time, so that documents may write them into SQL
// as they are. 41 bits of milliseconds since 2024, 22 that are random; within one process each is larger than `last`.
uint64_t run_number(uint64_t last, int64_t wall_ms, uint64_t random);
#define RUN_NUMBER_SIZE 21
void run_number_format(uint64_t number, char out[RUN_NUMBER_SIZE]);
// Whether a run's id is such a number: its children have numbers, too.
bool run_number_valid(struct str id);

#endif
