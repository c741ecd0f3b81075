// libcairn: durable workflows inside your program. docs/library.md tells the same as a story, with a table of threads.
//
// An engine runs documents (plans and node workflows) whose steps may be functions of yours. Everything that happens is
// stored before it has consequences; after a crash the next process goes on where the last one was, and a step that has
// completed is never called again.
//
//  - No global state: everything hangs on `struct cairn`. Several engines live in one process side by side.
//  - No signal handlers. Threads of the library block all signals.
//  - Strings are UTF-8 and end in NUL. What you pass is copied before the call returns; what you get is freed with
//    cairn_free, or lives as long as its comment says.
//  - Structs with `size` are filled in by you: set it to sizeof, zero the rest, and later versions understand you.
//  - A call that fails returns its code and, when `error` is not NULL, tells the story there.
//  - fork: a child must not use an engine of its parent (CAIRN_E_UNSUPPORTED); it may open its own after fork, or exec.
//
// Threads: every function may be called from any thread at any time, except that cairn_close is the last call with its
// handle (cairn_shutdown first when other threads may still use it), that one iterator belongs to one thread at a time, and that functions marked [waits] must not be called from a
// hook (CAIRN_E_CONFLICT). Your step functions are called on worker threads and may call everything but cairn_close.
#ifndef CAIRN_CAIRN_H
#define CAIRN_CAIRN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CAIRN_API __attribute__((visibility("default")))
#else
#define CAIRN_API
#endif

struct cairn;        // an engine on a store
struct cairn_events; // an iterator over the log of a run
struct cairn_runs;   // an iterator over runs

#define CAIRN_VERSION "0.1.0"
#define CAIRN_RUN_SIZE 129 // bytes of a run id with its NUL

CAIRN_API const char *cairn_version(void); // "0.1.0"

// ---- errors

enum cairn_code {
    CAIRN_OK = 0,
    CAIRN_E_NOMEM = 1,
    CAIRN_E_LIMIT = 2,
    CAIRN_E_INVALID = 3, // an argument, a document, a JSON text
    CAIRN_E_NOT_FOUND = 4,
    CAIRN_E_EXISTS = 5,
    CAIRN_E_CONFLICT = 6, // not in this state: from a hook, a dead attempt, closing
    CAIRN_E_LOCKED = 7,   // another process has it
    CAIRN_E_IO = 8,       // the disk failed: the engine is dead, close it, open another
    CAIRN_E_FULL = 9,
    CAIRN_E_CORRUPT = 10,
    CAIRN_E_VERSION = 11,
    CAIRN_E_TIMEOUT = 12,
    CAIRN_E_CANCELLED = 13,
    CAIRN_E_DENIED = 14,
    CAIRN_E_SCHEMA = 15,
    CAIRN_E_TERMINAL = 16,    // the run has ended
    CAIRN_E_UNSUPPORTED = 17, // a function that is not registered, processes when they are off, a forked child
    CAIRN_E_UNREACHABLE = 18, // a server that does not answer
    CAIRN_E_AWAY = 19,        // the server of the store, in the middle of the work; nothing was stored
    CAIRN_END = 100           // an iterator has no more
};

struct cairn_error {       // its layout does not change
    int32_t code;          // enum cairn_code
    uint32_t line, column; // in a document, 1-based; 0 = not known
    char message[468];
    char hint[240]; // what to do about it; may be empty
};

CAIRN_API const char *cairn_code_name(enum cairn_code code); // "NOT_FOUND"
CAIRN_API void cairn_free(void *memory);                     // what a function below gave you; NULL is fine

// ---- the engine

enum cairn_flag {
    CAIRN_NO_THREAD = 1,        // no thread of its own: you call cairn_turn, or wait in cairn_wait, which does
    CAIRN_NO_PROCESS_TOOLS = 2, // never starts processes: documents that need them are refused. Without this flag the
    // first process step makes your process a child subreaper and a SIGCHLD that was ignored
    // is set to its default
    CAIRN_NO_CREATE = 4 // a store that is missing is an error
};

enum cairn_level { CAIRN_LOG_ERROR = 1, CAIRN_LOG_WARN = 2, CAIRN_LOG_INFO = 3, CAIRN_LOG_DEBUG = 4 };

enum cairn_status {
    CAIRN_PENDING_RUN = 1, // waits for an approval before it begins
    CAIRN_APPROVED = 2,
    CAIRN_RUNNING = 3,
    CAIRN_PAUSED = 4,
    CAIRN_COMPLETED = 5,
    CAIRN_FAILED = 6,
    CAIRN_CANCELLED = 7
};
CAIRN_API const char *cairn_status_name(enum cairn_status status); // "COMPLETED"

struct cairn_options {
    size_t size;        // sizeof(struct cairn_options)
    uint32_t flags;     // enum cairn_flag
    uint32_t workers;   // threads that call your functions, made when needed; more attempts wait in order. 0 = 4
    uint32_t processes; // processes of exec, shell and script steps at once. 0 = 64
    uint32_t poll_ms;   // how often to look for signals from other processes. 0 = 50
    const char *tenant; // whose runs; NULL = "default"
    const char *actor;  // who starts and signals, as the log will say; NULL = "library"
    void *context;      // of the hooks below. All may be NULL
    // Clock: since 1970, and one that never goes back. Any thread. Timeouts of functions and processes go by the system's.
    void (*now)(void *context, int64_t *wall_ms, int64_t *mono_ms);
    // Memory of documents, runs and turns, in chunks of at least 256 bytes. Any thread. Not covered: buffers and queues,
    // SQLite, libyaml, libcrypto, thread stacks, what you free with cairn_free.
    void *(*allocate)(void *context, size_t size); // aligned as malloc does
    void (*release)(void *context, void *memory, size_t size);
    // One line of diagnostics. Any thread; must not call functions of this engine. Without it nothing is written.
    void (*log)(void *context, enum cairn_level level, const char *line);
    // A line that a step said (cairn_log, or a process). From the thread that turns the engine, after it was let go.
    void (*output)(void *context, const char *run, const char *step, int is_stderr, const char *line);
    // A run has its last event. From the thread that turns the engine, after it was let go.
    void (*ended)(void *context, const char *run, enum cairn_status status);
    uint32_t max_steps; // that a document may have, up to 100,000. 0 = 10,000
};

// "sqlite:PATH", "files:DIR", "postgres://HOST/DATABASE" or "memory:"; a path without a word before it is sqlite. `options` may be NULL.
// Stored runs are left alone until cairn_recover. CAIRN_E_LOCKED: err names the process that has the store (files:).
CAIRN_API enum cairn_code cairn_open(const char *url, const struct cairn_options *options, struct cairn **out,
                                     struct cairn_error *error);

enum cairn_how {
    CAIRN_NOW = 0,  // cancel what runs, wait for functions at most timeout_ms
    CAIRN_DRAIN = 1 // begin nothing more, let what runs finish and be stored, at most timeout_ms; then as CAIRN_NOW
};
// [waits] Ends the engine; the handle stays. Calls that wait on other threads come back with CAIRN_E_CONFLICT, and so does every
// call afterwards. Runs that have not ended go on with the next cairn_recover. A function that does not return in time keeps
// its thread until it does; its result is dropped. timeout_ms < 0: for ever. Not from a step function.
CAIRN_API enum cairn_code cairn_shutdown(struct cairn *engine, enum cairn_how how, int64_t timeout_ms);
// [waits] The same, and frees the handle: nobody but step functions that are still running may use it any more. NULL is fine.
CAIRN_API void cairn_close(struct cairn *engine, enum cairn_how how, int64_t timeout_ms);

// For your own loop (CAIRN_NO_THREAD): one turn; then call again at once when *wait_ms is 0, else when cairn_fd is readable
// or after *wait_ms (-1: only the descriptor). One thread at a time turns, others wait. Never blocks but for the disk.
CAIRN_API enum cairn_code cairn_turn(struct cairn *engine, int64_t *wait_ms, struct cairn_error *error);
CAIRN_API int cairn_fd(const struct cairn *engine); // for poll; -1 without CAIRN_NO_THREAD

// ---- step functions

struct cairn_attempt { // what a function is called for; lives until it returns
    size_t size;
    const char *kind, *run, *step; // step: its path, "charge" or "loop[2].charge"
    const char *input;             // `with` of the step, references replaced: a JSON object
    size_t input_len;
    const char *key; // "<run>:<step>:<logical>": the same when the attempt is repeated after a crash. Pass it on
    const char *artifacts_dir; // of the run; it exists when the step declares artifacts
    uint32_t logical;          // 1, 2, ... rises when a policy or a person retries
    uint32_t engine;           // 1, 2, ... rises when a process died and the same logical attempt runs again
    int64_t timeout_ms;        // 0 = none. When it is over the attempt is dead and cairn_cancelled says so
    uint64_t token;            // names the attempt for cairn_complete, cairn_cancelled and cairn_log
};

enum cairn_answer {
    CAIRN_DONE = 0,
    CAIRN_FAIL = 1,
    CAIRN_PENDING = 2 // cairn_complete comes later, from whichever thread, or has come already
};

struct cairn_result { // zeroed when a function is called: CAIRN_DONE alone means the output null
    size_t size;
    int32_t answer;      // enum cairn_answer; only for cairn_complete
    int32_t retryable;   // CAIRN_FAIL: trying again may help; the step's retry policy decides
    const char *output;  // JSON text; NULL = null
    size_t output_len;   // 0: output ends in NUL
    const char *code;    // CAIRN_FAIL: a word for programs, "CARD_DECLINED"; NULL = "FUNCTION_FAILED"
    const char *message; // CAIRN_FAIL: for people
    // Called once the texts above were copied; may be NULL.
    void (*release)(void *memory);
    void *memory;
};

struct cairn_kind {
    size_t size;
    const char *name; // [a-z][a-z0-9._-]{0,63}, none of our own
    // On a worker thread, never the engine's. Must not end the thread.
    enum cairn_answer (*run)(void *context, const struct cairn_attempt *attempt, struct cairn_result *result);
    // The attempt was cancelled or timed out while it was CAIRN_PENDING; its token is dead. May be NULL.
    void (*cancelled)(void *context, uint64_t token);
    void *context;
    void (*release)(void *context); // when the engine is closed and nothing of this kind runs any more; may be NULL
};

// Before documents that use it are started or recovered. CAIRN_E_EXISTS, CAIRN_E_INVALID.
CAIRN_API enum cairn_code cairn_register(struct cairn *engine, const struct cairn_kind *kind,
                                         struct cairn_error *error);
// Loads a shared object that registers kinds (cairn/plugin.h). It stays loaded until the process ends.
CAIRN_API enum cairn_code cairn_load_plugin(struct cairn *engine, const char *file, struct cairn_error *error);

// The result of an attempt that answered CAIRN_PENDING: from any thread, once. CAIRN_E_CONFLICT: the attempt is over
// (completed, timed out, cancelled) or was of another process.
CAIRN_API enum cairn_code cairn_complete(struct cairn *engine, uint64_t token, const struct cairn_result *result,
                                         struct cairn_error *error);
CAIRN_API int cairn_cancelled(struct cairn *engine, uint64_t token); // 1: stop, nobody waits for the result
CAIRN_API void cairn_log(struct cairn *engine, uint64_t token,
                         const char *line); // for `cairn logs` and the output hook

// ---- runs

enum cairn_start_flag {
    CAIRN_ATTACH = 1 // a run with this id and the same document is no error: it is taken up when nobody has it
};

struct cairn_start {
    size_t size;
    uint32_t flags;
    const char *document;  // its text; NULL: `file` is read
    size_t document_len;   // 0: document ends in NUL
    const char *file;      // its name in messages, and where it finds what it names; NULL = "<document>"
    const char *inputs;    // JSON object; NULL = {}
    const char *run;       // id; NULL: a new UUID
    const char *arguments; // $ARGUMENTS
    const char *work_dir;  // of processes; NULL = the process's own
};

// [waits] Starts a run: when it returns, the start is stored. `run` (may be NULL) gets the id. CAIRN_E_INVALID: line and
// column of the first mistake; cairn_check tells all of them.
CAIRN_API enum cairn_code cairn_start(struct cairn *engine, const struct cairn_start *start, char run[CAIRN_RUN_SIZE],
                                      struct cairn_error *error);
// Compiles without starting. *report (cairn_free) has every mistake with its place, empty when there is none.
CAIRN_API enum cairn_code cairn_check(struct cairn *engine, const struct cairn_start *start, char **report,
                                      struct cairn_error *error);
// Takes up a stored run, or with NULL every one that has not ended and that nobody else has. *count (may be NULL) says how
// many. One that needs a function which is not registered stays as it is: CAIRN_E_UNSUPPORTED, or a line of the log hook
// with NULL. A run of this engine counts as taken up.
CAIRN_API enum cairn_code cairn_recover(struct cairn *engine, const char *run, size_t *count,
                                        struct cairn_error *error);

// [waits] Until the run has ended, wherever it runs. timeout_ms < 0: for ever; 0: only looks. *status (may be NULL) is set
// also with CAIRN_E_TIMEOUT.
CAIRN_API enum cairn_code cairn_wait(struct cairn *engine, const char *run, int64_t timeout_ms,
                                     enum cairn_status *status, struct cairn_error *error);

struct cairn_signal {
    size_t size;
    const char *type; // PAUSE RESUME CANCEL RETRY_STEP SKIP_STEP RETRY_RUN EMERGENCY_STOP APPROVE REJECT
    const char *id;   // UUID; the same id is decided once. NULL: a new one
    const char *step; // of RETRY_STEP, SKIP_STEP, APPROVE, REJECT
    const char *reason;
    const char *payload; // JSON object or NULL
    int32_t force;
};

struct cairn_decision {
    size_t size;
    int32_t accepted, duplicate;
    uint64_t seq; // last event that it caused; 0 = none
    char code[64];
    char message[256];            // why it was rejected
    char new_run[CAIRN_RUN_SIZE]; // RETRY_RUN
};

// [waits] Sends a signal to a run, in whichever process it is, and waits for the decision, ten seconds at most when another process
// has the run (CAIRN_E_TIMEOUT: it is posted and will be decided). CAIRN_OK also when it is rejected: see `decision`.
// An id that was decided before gives the decision of that time, with `duplicate`; with another signal, CAIRN_E_CONFLICT.
// `run` is an id or an EngineRunRef ("temporal://default/p/r1/r1", or its object as JSON), here and in cairn_view and the other readers of a run.
// For a run that nobody has the decision is stored and nothing else happens before cairn_recover (but a cancelled run ends).
CAIRN_API enum cairn_code cairn_signal(struct cairn *engine, const char *run, const struct cairn_signal *signal,
                                       struct cairn_decision *decision, struct cairn_error *error);

// ---- reading. None of these disturbs the engine, but for memory: stores, where they take turns with it.

// The run as JSON (RunSnapshot, schemas/run-snapshot.json) right after event `at`; 0 = now. cairn_free(*json).
CAIRN_API enum cairn_code cairn_view(struct cairn *engine, const char *run, uint64_t at, char **json, size_t *len,
                                     struct cairn_error *error);
// The output of a step as JSON, however large. CAIRN_E_NOT_FOUND: no such step, or it has none. cairn_free(*json).
CAIRN_API enum cairn_code cairn_output(struct cairn *engine, const char *run, const char *step, char **json,
                                       size_t *len, struct cairn_error *error);
// What the run was given: {runId, inputs, arguments?}. cairn_free(*json).
CAIRN_API enum cairn_code cairn_payload(struct cairn *engine, const char *run, char **json, size_t *len,
                                        struct cairn_error *error);
// Files that its steps left: [{name, stepId, kind, sizeBytes, sha256?, state}], state "ok", "changed" or "missing" by their
// size. cairn_free(*json).
CAIRN_API enum cairn_code cairn_artifacts(struct cairn *engine, const char *run, char **json, size_t *len,
                                          struct cairn_error *error);
// The bytes of one, with a NUL after the end; `step` NULL: of the step that left it last. CAIRN_E_NOT_FOUND: none of that name, or it
// is gone. CAIRN_E_CORRUPT: it is not what the step left. cairn_free(*bytes).
CAIRN_API enum cairn_code cairn_artifact(struct cairn *engine, const char *run, const char *step, const char *name,
                                         char **bytes, size_t *len, struct cairn_error *error);
// Where the chains of its log end, and whether they hold: {checkpoint, verified, faults}. A host that keeps or signs the
// checkpoint can show later that nothing before it was changed. cairn_free(*json).
CAIRN_API enum cairn_code cairn_proof(struct cairn *engine, const char *run, char **json, size_t *len,
                                      struct cairn_error *error);

struct cairn_event {
    size_t size;
    uint64_t seq;
    const char *type;  // "StepCompleted"
    const char *bytes; // the record exactly as stored: canonical JSON. Both live until the next call with the iterator
    size_t len;
};

// Events with a number above `after`. CAIRN_END: no more now; ask again later and it goes on.
CAIRN_API enum cairn_code cairn_events_open(struct cairn *engine, const char *run, uint64_t after,
                                            struct cairn_events **out, struct cairn_error *error);
CAIRN_API enum cairn_code cairn_events_next(struct cairn_events *events, struct cairn_event *out,
                                            struct cairn_error *error);
CAIRN_API void cairn_events_close(struct cairn_events *events); // before its engine

struct cairn_filter {
    size_t size;
    uint32_t statuses;          // 1 << enum cairn_status, or'ed; 0 = all
    int32_t unfinished;         // only runs that have not ended
    int32_t roots;              // only runs that are no child of another
    const char *plan, *prefix;  // plan id; beginning of the run id
    int64_t since_ms, until_ms; // created; 0 = open
};

struct cairn_run {
    size_t size;
    const char *run, *plan, *version, *name, *parent; // live until the next call with the iterator
    const char *substatus, *cause;
    int32_t status; // enum cairn_status
    int32_t owned;  // a living process has it
    uint64_t last_seq;
    int64_t created_ms, started_ms, ended_ms;
    uint32_t steps, completed, failed, skipped, running;
};

// Newest first.
CAIRN_API enum cairn_code cairn_runs_open(struct cairn *engine, const struct cairn_filter *filter,
                                          struct cairn_runs **out, struct cairn_error *error);
CAIRN_API enum cairn_code cairn_runs_next(struct cairn_runs *runs, struct cairn_run *out, struct cairn_error *error);
CAIRN_API void cairn_runs_close(struct cairn_runs *runs); // before its engine

#ifdef __cplusplus
}
#endif

#endif
