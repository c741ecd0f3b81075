// Trials of a user's document: the real engine and kernel in a world whose time, ids, processes and disk are made up.
//
//   test       trial_parse (FILE.test.yaml) -> trial_check (against the document) -> trial_play -> trial_judge
//   record     story_read (a real run) -> story_record: the test file that plays it again
//   crashtest  crash_test: the same world killed at every boundary, recovered to the end, and judged
//
// A *script* says what comes back from steps (mocks), what people answer (gates) and send (signals), and what shall be the
// case in the end (expectations). A *story* is what a run's log tells, with the logs of its child runs. Steps are named by
// path: "load", "loop[2].tick", "sub/load" for a step of the child run that the step `sub` started ("sub#2/load" for the
// child of its second attempt). A task of a playbook is "load/fetch", "each[2]/fetch", "load:run:2/fetch:run:3". In a
// script "[*]" stands for any iteration and "#2" behind a path for the second attempt.
#ifndef CAIRN_TRIAL_TRIAL_H
#define CAIRN_TRIAL_TRIAL_H

#include "doc/doc.h"
#include "engine/engine.h"
#include "program/program.h"
#include "store/store.h"

// ---- scripts

struct trial_mock {
    struct str key; // as written; for a default the name of a kind, or "*"
    bool fails, real, idempotent;
    struct str output; // text as a process would have written it
    bool is_json;      // `output` is the text of a value that is no text: a function gives it as it is
    bool whole;        // `output` is all that a task of a playbook gave, failed or not (docs/format/task.md)
    bool late;         // it does not stop when it is asked to: what it gives comes when it would have come anyway
    uint32_t lost;     // so often its executor is gone before it says what came out; then it does
    struct fault fault;
    int64_t takes_ms;
    uint32_t line, column;
};

struct trial_gate { // the answer to an approval; key "RUN" is the approval of the run itself
    struct str key;
    bool yes;
    struct str by, reason;
    struct json fields; // type 0 = none
    int64_t takes_ms;
    uint32_t line, column;
};

enum trial_occasion { // what a signal comes after
    AFTER_NOTHING = 0,
    AFTER_STARTED,
    AFTER_COMPLETED,
    AFTER_FAILED,
    AFTER_SKIPPED,
    AFTER_DELAYED,
    AFTER_RUN_QUEUED,
    AFTER_RUN_STARTED,
    AFTER_RUN_PAUSED,
    AFTER_RUN_RESUMED,
};

struct trial_signal {
    enum trial_occasion after;
    struct str key;  // of the step that the occasion belongs to
    uint32_t cycle;  // of the pause or resume; 0 = the first that comes
    int64_t wait_ms; // from the occasion, or from the start of the run
    enum signal_type type;
    struct str step, by, reason;
    struct json fields;
    struct str rejected; // code of the refusal that is expected; empty = it is accepted
    uint32_t line, column;
};

struct trial_script {
    struct str file;     // of the test; empty: none was given
    struct str name;     // of the case; empty: the file has only one
    struct str document; // as written
    struct str run;      // id of the run
    struct str golden;   // as written; empty = none
    struct json inputs;  // object
    struct str arguments;
    int64_t at_ms; // wall clock at the start
    uint64_t seed;
    struct trial_mock *mocks, *defaults; // later ones win when they fit equally well
    size_t mock_count, default_count;
    struct trial_gate *gates;
    size_t gate_count;
    struct trial_signal *signals;
    size_t signal_count;
    const struct json
        *expect[2];        // of the case, of the file; NULL = none. A field of the first hides that of the second
    bool lenient;          // a step without a mock succeeds with no output, an approval is answered with yes
    uint32_t line, column; // of the case
    uint32_t golden_line, golden_column, document_line, document_column;
};

struct trial_file {
    struct trial_script *scripts;
    size_t count;
};

#define TRIAL_START_MS 1767225600000 // 2026-01-01T00:00:00Z

// E_INVALID: there is at least one error diagnostic. Values borrow `text`.
enum code trial_parse(struct str text, struct str file, struct arena *arena, struct diagnostics *diagnostics,
                      struct trial_file *out) MUST_CHECK;
// What the script says about steps that the document does not have, or that cannot be mocked.
void trial_check(const struct trial_script *script, const struct program *program, struct diagnostics *diagnostics);
// A script for a document without one: everything succeeds, everybody says yes. Outputs have the fields that other steps
// ask for, each 0.
enum code trial_script_default(const struct program *program, struct arena *arena, struct trial_script *out) MUST_CHECK;

// ---- stories

struct story_attempt {
    uint32_t logical;
    int64_t started_ms, ended_ms;
    bool ended, ok;
    struct json value; // type 0 = none
    struct fault fault;
};

struct story_step {
    struct str path;
    uint32_t run;                    // index of its run in the story
    const struct program_step *step; // NULL: the program does not have it
    bool inner;                      // of a loop or a child run
    enum step_status status;
    uint32_t started;   // place in the order of first starts of its run, from 1; 0 = never
    struct json value;  // type 0 = none
    bool varies;        // crash_test: two undisturbed worlds differ in its value
    struct fault fault; // last one
    struct str skip_reason;
    struct story_attempt *attempts;
    size_t attempt_count, attempt_capacity;
};

struct story_run {
    struct str id, prefix; // prefix of its steps' paths: "", "sub/"
    const struct program *program;
    enum vocabulary vocabulary;
    enum run_status status;
    bool ended;
    int64_t queued_ms, ended_ms;
    struct start_facts start;
    struct fault fault;
    struct str failed_step;
    uint32_t start_count;
};

struct story_event {
    uint32_t run;
    struct moment moment; // strings and values in the story's arena; `start` is NULL
    struct str path;      // with prefix; empty for moments of the run
    uint64_t seq;         // of the log; 0 = of the ledger
};

struct story {
    struct arena *arena;
    struct story_run *runs; // the first is the one that was asked for
    size_t run_count, run_capacity;
    struct story_step *steps; // in order of first appearance, run by run
    size_t step_count, step_capacity;
    struct story_event *events; // run by run
    size_t event_count, event_capacity;
    struct map index; // of steps, by run and path
};

// Everything the log of `run` and those of its child runs tell. `program` is the run's; it must outlive the story.
enum code story_read(struct store *store, struct str tenant, struct str run, const struct program *program,
                     struct arena *arena, struct story *out, struct error *err) MUST_CHECK;
const struct story_step *story_find(const struct story *story, struct str path); // NULL when there is none
struct story_parting {
    const char *rule;  // LOST, PATH or OUTPUT, as of crash tests
    struct str step;   // path; empty: a run
    char message[400];
};
// Whether `now` came to the end that `calm` came to: the same status of every run and step, as many attempts, the same reasons and values.
bool story_same_end(const struct story *calm, const struct story *now, struct story_parting *out);
// One line of JSON per moment, without what differs between two plays of the same script.
bool story_golden(const struct story *story, struct buf *out) MUST_CHECK;

// ---- playing

struct trial_host;

struct trial_order { // attempts in the order in which another play began them
    const struct trial_begun {
        struct str path;
        uint32_t logical;
    } *items;
    size_t count;
};

struct trial_options {
    const struct contract *contract;
    const struct program *program;
    const struct trial_script *script;
    const char *scratch;  // a directory of the caller's: artifacts, and the working directory of real steps
    const char *work_dir; // of real steps; NULL: scratch
    // Where it is played; all of these may be empty.
    struct str store;               // URL of a store instead of one in memory
    bool on_disk;                   // files on a simulated disk, which loses at a kill what was not synced
    const struct trial_host *host;  // instead of an engine in this process
    struct str profile;             // whose behaviour it has (C-07)
    struct str actor;               // who sends all signals, instead of those whom the script names
    const struct trial_order *order; // attempts that begin together are known to have begun in this order
    const uint64_t *kills;          // numbers of points at which it is killed, rising; points count on over kills
    size_t kill_count;
};

struct trial_fault { // one thing that is not as it should be
    uint32_t line, column;
    struct str what;          // "status", "outputs.load"
    struct str expected, got; // one line each; may be empty
    struct str more;          // further lines, e.g. a diff
};

struct trial_result {
    struct story story;
    struct trial_order order; // in which attempts began
    uint64_t points;          // at which it could have been killed
    uint32_t kills;           // how often it was
    struct trial_fault *faults;
    size_t fault_count, fault_capacity;
    struct arena *arena;
    int64_t virtual_ms; // that passed
    uint64_t turns;
};

// Plays the script to its end, or until nothing happens any more. Steps without a mock, signals that were never sent or
// were decided otherwise than expected are faults of the result; the expectations are not looked at.
enum code trial_play(const struct trial_options *options, struct arena *arena, struct trial_result *out,
                     struct error *err) MUST_CHECK;
// The same, and the world stays as it is at the end, so that its store can be read: trial_leave ends it. NULL after an error.
struct trial_world;
enum code trial_stay(const struct trial_options *options, struct arena *arena, struct trial_result *out,
                     struct trial_world **world, struct error *err) MUST_CHECK;
struct store *trial_store(struct trial_world *world);
void trial_leave(struct trial_world *world); // NULL is fine

// A host outside: an engine in another process, whose clock is the player's and whose attempts come to the player. Between two calls of
// `settle` it stands still. All calls are the player's, from one thread.
struct trial_news { // what came of a settle; lives until the next one
    const struct tool_request *requests; // attempts that are to be begun; tickets are the host's
    size_t request_count;
    const uint64_t *stops; // tickets that are asked to stop
    size_t stop_count;
    int64_t deadline_ms; // when its engine wants to work by itself; INT64_MAX: never
};
struct trial_now {
    int64_t mono_ms, wall_ms;
};
struct trial_host {
    void *context;
    // All return when what they asked for is durable.
    enum code (*start)(void *context, const struct start_request *request, struct trial_now now, struct error *err);
    // Whether it was accepted, and what it was refused with; texts in `arena`.
    enum code (*signal)(void *context, struct str run, const struct signal *signal, struct trial_now now, struct arena *arena,
                        struct engine_decision *out, struct error *err);
    void (*deliver)(void *context, const struct tool_result *result, struct trial_now now);
    // Until nothing moves at this time. `held` attempts are with the player, `stopping` of them were asked to stop.
    enum code (*settle)(void *context, struct trial_now now, size_t held, size_t stopping, struct trial_news *out,
                        struct error *err);
    enum code (*kill)(void *context, struct error *err); // as kill -9 would; and brings up what comes after
    struct store *(*store)(void *context);               // its runs, for reading
};

// Adds a fault for every expectation that does not hold.
void trial_judge(const struct trial_script *script, struct trial_result *result);
// `golden` is the text of the golden log, `got` that of story_golden.
void trial_judge_golden(const struct trial_script *script, struct trial_result *result, struct str golden,
                        struct str got);

// ---- recording

struct record_options {
    const char *document; // what the test file shall call the document
    bool redact;
};
// The story as a test file: every result as a mock, every answer and signal at its place, what came out as expectations.
bool story_record(const struct story *story, const struct record_options *options, struct buf *out) MUST_CHECK;

// ---- crashing

// X(name, column of the table, words). What stands between two lives.
#define BOUNDARY_LIST(X)                                                                                               \
    X(APPEND, "append", "before the append of")                                                                        \
    X(LOST, "sync", "before the sync (write lost) of")                                                                 \
    X(TORN, "sync", "before the sync (write torn) of")                                                                 \
    X(KEPT, "sync", "before the sync (write kept) of")                                                                 \
    X(SYNCED, "sync", "after the sync of")                                                                             \
    X(TOLD, "append", "after the append of")                                                                           \
    X(DISPATCH, "dispatch", "before the dispatch of")                                                                  \
    X(DISPATCHED, "dispatch", "after the dispatch of")                                                                 \
    X(ANSWER, "answer", "before the answer of")                                                                        \
    X(ANSWERED, "answer", "after the answer of")                                                                       \
    X(DECISION, "answer", "before the answer to")                                                                      \
    X(DECIDED, "answer", "after the answer to")                                                                        \
    X(RECOVERY, "append", "while the store was recovered by")

enum boundary {
    BOUNDARY_NONE = 0,
#define X(name, column, words) BOUNDARY_##name,
    BOUNDARY_LIST(X)
#undef X
        BOUNDARY_COUNT
};
const char *boundary_column(enum boundary boundary);
const char *boundary_words(enum boundary boundary);

struct crash_point {
    enum boundary boundary;
    struct str step;  // path; empty: the run
    struct str label; // "StepCompleted load, StepStarted check", "load (attempt 1)"
};

struct crash_world {
    uint32_t first, second; // points, from 1; second counts from the restart, 0 = none
    bool ran, failed;
    const char *rule; // what did not hold: LOST, PATH, AGAIN, EARLY, LOG, OUTPUT, STUCK, ABORT
    struct str message;
    uint32_t *twice; // indexes of crash_effect that happened more than once
    size_t twice_count;
    struct str left; // sandbox: what the world left behind otherwise than the undisturbed one
};

struct crash_effect { // one attempt of a step that acts outside
    struct str path;
    uint32_t logical;    // as documents count
    struct str key_step; // CAIRN_IDEMPOTENCY_KEY is <run>:key_step:key_logical
    uint32_t key_logical;
    const struct program_step *step;
    const struct program *program;
    struct str does; // command line
    bool idempotent; // the script says so
    bool keyed;      // its text uses CAIRN_IDEMPOTENCY_KEY
    uint32_t worlds; // in which it happened more than once
    uint32_t most;   // times in one world
    size_t example;  // index of a world
};

struct crash_options {
    const struct contract *contract;
    const struct program *program;
    const struct trial_script *script;
    const char *scratch;
    uint64_t seed;
    size_t max;       // worlds; from more so many are drawn by the seed. 0 = all, SIZE_MAX = as many as is reasonable
    bool twice;       // a second kill during and after recovery
    bool sandbox;     // steps really run, in `scratch`
    uint32_t workers; // processes at once; 0 = as many as there are processors, at most 4
};

struct crash_report {
    struct arena *arena;
    struct trial_result calm; // the undisturbed world
    struct crash_point *points;
    size_t point_count;
    struct crash_world *worlds;
    size_t world_count;
    uint64_t world_total; // that there are
    struct crash_effect *effects;
    size_t effect_count;
    uint32_t failed, pure_steps, external_steps, unguarded; // unguarded: effects repeated that nobody declared safe
    int64_t took_us;
};

enum code crash_test(const struct crash_options *options, struct arena *arena, struct crash_report *out,
                     struct error *err) MUST_CHECK;
// Where a world is killed, and the function that gets what happens in it.
// Ends the processes that play worlds for this one, and waits until they are gone: what they write to is nobody's then. May be called by a
// signal handler.
void crash_stop_players(void);

struct crash_kill {
    uint32_t first;                                // the number of the point
    uint32_t second;                               // and that of one after the restart; 0 = none
    void (*line)(void *context, const char *text); // may be NULL
    void *context;
};
// One world again, with the kill marked. The report has this world only.
enum code crash_replay(const struct crash_options *options, const struct crash_kill *kill, struct arena *arena,
                       struct crash_report *report, struct error *err) MUST_CHECK;

#endif
