// (state, input) -> (moments, effects). The kernel decides and never acts; it sees no clock, file or thread: time, ids and
// random numbers come in the input.
//
//   kernel_step   decides what an input means: appends moments to the outcome, folding each into the run as it goes (ADR
//                 0002), and names the effects that may be carried out once those moments are durable.
//   kernel_fold   the only function that changes a run. Live running and recovery share it.
//
// If the append of an outcome fails, the run in memory is ahead of the log: the caller must throw it away and fold it again
// from the store. Nothing outside the engine thread ever sees resident state, so that is safe.
//
// Invariants, checked by run_verify in test builds after every step:
//  K1 fold(moments) equals the live state.
//  K2 every run that has not ended has something in flight, a timer, a held failure, a pause, a gate or a full segment: it can always
//     go on.
//     (After an idle input: or a step that the next RECOVER decides.)
//  K3 a step has at most one outcome per logical attempt, and it belongs to the attempt in flight (I14).
//  K4 nothing is decided after the terminal moment (I15).
//  K5 a step starts only when all its dependencies are terminal and its rule and condition hold.
//  K6 while PAUSED no attempt starts (I25); results are recorded, the end of the run is withheld (C-15).
//  K7 a cancelled run ends when nothing is in flight any more.
//  K8 between SEGMENT_FULL and SEGMENT_STARTED no attempt starts and the run does not end, unless it is cancelled; segments are
//     numbered 1, 2, 3, and only of runs whose profile rotates.
//
//            start                          all settled
//   PENDING ---------> RUNNING ------------------------------> COMPLETED | FAILED
//      |  approve ^      | ^ resume
//      |          |pause v |            cancel, nothing in flight
//      +--cancel--+----> PAUSED ---------------------------------> CANCELLED (from any state that has not ended)
//
// owner: engine thread.
#ifndef CAIRN_KERNEL_KERNEL_H
#define CAIRN_KERNEL_KERNEL_H

#include "contract/profile.h"
#include "contract/standing.h"
#include "program/net.h"

enum node_state {
    NODE_WAITING = 1, // for dependencies, or decidable and not yet decided
    NODE_DELAYED,     // between two attempts
    NODE_RUNNING,
    NODE_HELD, // failed for good, waits for RETRY_STEP or SKIP_STEP
    NODE_SUCCESS,
    NODE_FAILED,
    NODE_SKIPPED,
};

struct run_blob {
    struct digest sha256;
    uint64_t size;
};

struct run_attempt {
    uint32_t logical, engine;
    uint32_t base; // the logical attempt at the last retry by hand: the retry budget counts from here
    int64_t started_ms, due_ms;
};

// What carries out bodies, one after the other: what is known of its attempts. A step of a plan or of a node workflow is one, a visit of a
// playbook has one, or one for each iteration. Written by the fold alone.
struct run_lane {
    uint8_t state; // enum node_state; of a step that is a lane also how it ended
    bool again;    // DELAYED after an attempt that failed; a queue may delay the first one
    uint8_t quick; // times in a row that the attempt was ordered again within a minute
    uint32_t logical, engine;
    uint32_t base; // logical attempt at the last manual retry: the retry budget counts from here
    int64_t started_ms, due_ms;
    int64_t ordered_ms; // the attempt, last: started, or ordered again
};

// What a step of a plan or of a node workflow is to the others: its join, its output, its loop. Written by the fold alone.
struct run_node {
    bool tainted; // failed, or skipped because of a failure
    bool by_hand; // skipped by a person, not by a rule or a condition
    uint32_t ended;                                     // its number in the order in which steps ended, from 1
    uint32_t waiting;                                   // dependencies that are not terminal
    uint32_t success, failed, skipped, tainted_parents; // of the terminal dependencies
    uint32_t iteration;                                 // LOOP: current
    uint32_t open_children;                             // LOOP: not terminal in this iteration
    const struct json *value;                           // output; NULL = none
    const struct run_blob *blob;                        // output kept as a blob
    struct arena *outputs; // LOOP: of its children, in the current iteration; NULL = none yet
};

struct seen_signal;

// What a person changed about a step that has not ended (INJECT_OVERRIDE, UPDATE_TARGET).
struct run_change {
    struct run_change *next;
    uint32_t step;
    uint32_t logical;            // `override` is for this attempt only
    const struct json *override; // members instead of those in the step's `with`; NULL = none
    const struct json *target;   // where it is executed; NULL = where the document says
};

// A signal that waits until another person agrees.
struct deferred_signal {
    struct deferred_signal *next;
    struct signal signal;
    struct str decision_id;
};

struct kernel_env;

// What a step waits for. It counts while that attempt of the lane is in flight.
struct run_await {
    struct run_await *next;
    uint32_t lane, logical;
    struct str name, correlation;
};

struct run_route;
struct run_list;

struct run {
    struct arena arena;
    const struct program *program;
    const struct run_route *route; // what differs between documents
    uint32_t first_lane;       // steps that are lanes themselves: 0; of a playbook the lanes stand behind the steps
    struct run_ids ids;
    struct start_facts start;
    struct str files; // where start.artifacts_dir is here (not from the log)
    enum run_status status;
    bool cancelling; // accepted, waiting until nothing is in flight
    bool emergency;
    enum undoing { UNDO_NOTHING = 0, UNDO_FAILED, UNDO_CANCELLED } undoing; // how it ends once what it did is undone
    bool limited;    // so is it because of its limits: it fails
    bool failing;    // plans: a step failed under fail_run; no unrelated work starts
    bool rotating;   // the segment is full, and the next has not begun (ADR 0035)
    uint32_t segment; // the one that it is in, from 1
    uint32_t pause_cycle;
    uint32_t drain_over; // pause cycle whose time for draining ran out
    int64_t paused_ms;
    uint32_t in_flight;         // RUNNING steps
    uint32_t gates, loops, events; // approvals, loops and waits for events among them
    uint32_t delayed, retrying; // the second: those of the first that are `again`
    uint32_t held;
    struct run_counts counts; // of the top scope
    uint32_t ended_count;
    uint32_t stopped; // of counts.failed: steps that the cancelling of the run ended
    uint32_t ready_head, ready_tail;
    struct str cancel_reason, cancel_signal;
    struct str failed_step;
    struct fault fault; // of the first failed step
    int64_t queued_ms, started_ms, ended_ms;
    struct seen_signal *signals;
    struct json
        params; // UPDATE_PARAMS: inputs instead of those of the start, for whatever is decided later; type 0 = none
    struct run_change *changes;
    struct deferred_signal *deferred;
    struct run_lane *lanes;    // from first_lane on: lane_ref
    struct run_node *nodes;    // by step; NULL: a playbook
    struct run_await *awaits;      // one a lane, kept for its next wait
    struct run_list *lists;        // of child runs, of attempts in flight
    uint32_t *links;       // queue of what can be decided, by step and lane
    struct net_state *net;  // playbooks; NULL otherwise
    const struct kernel_env *env; // who has what is kept beside the log. Set before the first fold; kernel_step sets it too
};

// Playbooks. A lane is one walk through the tasks of a step: of a visit, or of one iteration of its loop. Lanes are numbered after the
// steps, so that an executor of attempts need not know them: `logical` of a lane counts all attempts of the run.
enum vocabulary program_vocabulary(const struct program *program); // in which its runs are written
uint32_t run_step_count(const struct run *run);                    // steps and lanes
uint32_t kernel_place(const struct run *run, uint32_t step);       // the step that a lane belongs to; a step is its own
// What the task of a lane in flight is given, as JSON for task/task.h: {with, keychain, execution_id, step, task, attempt}. Errors as of
// template_render, for which the attempt fails.
enum code kernel_task(const struct run *run, uint32_t lane, const struct kernel_env *env, struct arena *arena,
                      struct json *out, struct error *err) MUST_CHECK;
// How long it may take, 0 = for ever. E_NOMEM, E_IO, E_CORRUPT.
enum code kernel_timeout(const struct run *run, uint32_t lane, const struct kernel_env *env, struct arena *arena,
                         int64_t *ms, struct error *err) MUST_CHECK;
uint32_t kernel_lane(const struct run *run, const struct moment *moment); // that it is about; PROGRAM_TOP: none now
const struct net_task *kernel_task_of(const struct run *run, uint32_t lane); // under way
// The loop of a step in its last visit. False: it has none, or it has not begun.
struct loop_counts {
    uint32_t total, done, failed;
};
bool kernel_items(const struct run *run, uint32_t place, struct loop_counts *out);
// The arcs of a step that has ended and is not yet routed, as they would be decided now: [{step, when, holds, values}], in `arena`.
enum code kernel_arcs(struct run *run, uint32_t place, const struct kernel_env *env, struct arena *arena,
                      struct json *out, struct error *err) MUST_CHECK;
// Which step of its child a task of kind playbook wants the result of; empty: the last one. `index` is a lane.
enum code kernel_return_step(const struct run *run, uint32_t index, const struct kernel_env *env, struct arena *arena,
                             struct str *out, struct error *err) MUST_CHECK;
// What a playbook gives to its caller: the result of `step`, else of the final step, else of the one that ended last.
enum code kernel_net_result(const struct run *run, struct str step, const struct kernel_env *env, struct arena *arena,
                            struct json *out, struct error *err) MUST_CHECK;

const struct json *kernel_ctx(const struct run *run); // the variables of a playbook

struct kernel_env {
    void *context;
    // Content of a blob, by hash. Pure in the sense that matters: the same hash always gives the same bytes. E_NOT_FOUND: it is gone;
    // E_UNREACHABLE: not now, and kernel_step says so, too, having decided nothing.
    enum code (*blob)(void *context, const struct digest *sha256, struct arena *arena, struct str *out,
                      struct error *err);
    size_t inline_max; // bytes of a result in the log: a longer one is a blob. 0: KERNEL_INLINE_MAX
    uint64_t *spent; // steps of templates that were rendered are added here; may be NULL
    struct template_meter *meter; // what the templates of one decision share; kernel_step has one of its own
    uint32_t iterations_max; // of one loop, and items of a list of child runs. 0: KERNEL_ITERATIONS_MAX
};
#define KERNEL_ITERATIONS_MAX 100000
// What a loop fails with that wants more iterations than it may have. The log says how many that were, so a changed setting changes no
// decision that is made. Texts in `arena`.
#define FAULT_ITERATIONS "ITERATION_LIMIT"
bool kernel_too_many(const struct kernel_env *env, uint64_t wanted, struct arena *arena, struct fault *out);
// A run that the engine stops because it has come to its limits fails: the reason of that EMERGENCY_STOP begins with this, and is of
// the actor and role that only the engine has.
#define FAULT_RUN_LIMIT "RUN_LIMIT_EXCEEDED"
#define ENGINE_ACTOR "cairn"
#define ENGINE_ROLE "System"
#define KERNEL_INLINE_MAX ((size_t)64 << 10)

// What a template of a playbook that cannot be rendered fails with. Begins a message: it reads a result whose bytes are gone.
#define KERNEL_GONE "REFERENCE_NOT_AVAILABLE: "
struct fault kernel_template_fault(struct arena *arena, const struct error *why);

// WAKE: a wait's end, an approval's or a child run's deadline. LOOK: the engine's own, comes back as INPUT_RECOVER for that step alone
// (PROGRAM_TOP: for all), and with `logical` for that member of its list.
// DRAIN: of the run (step PROGRAM_TOP, logical = pause cycle), the end of its patience with steps in flight.
enum timer_kind { TIMER_RETRY = 1, TIMER_WAKE, TIMER_LOOK, TIMER_DRAIN };

struct reuse {
    uint32_t step;
    bool skipped; // it was skipped for reasons that have not changed: decided again, in its place among the others
    struct str from_run;
    struct str actor;  // who gave this output, when no run did
    struct json value; // type 0 with has_blob
    struct digest blob;
    bool has_blob;
    uint64_t blob_size;
    struct json artifacts; // type 0 = none; in the log only: engine_reusable
    bool truncated;
};

// What another run recorded up to some event, as far as a new run takes it over (ADR 0015).
struct past {
    const struct moment *moments; // in their order, from RUN_QUEUED or RUN_STARTED on; no terminal one
    const bool *open;             // STEP_STARTED, STEP_DELAYED: what it begins is not over at the end of the list
    uint32_t count;
    int64_t at_ms;       // when the last of them happened: the clock of the new run goes on from here
    struct str from_run; // whose past it is
    size_t taken;        // playbooks: of the list that it was made of, so many
    bool workload;       // playbooks: the inputs differ, and the workload is made anew of them
};

// A step that kills its executors fails (WORKER_LOST): an attempt whose workers or engines were gone within a minute of beginning it, so
// often one after the other, and one that loses a worker later than that and has run so often.
enum { ENGINE_ATTEMPTS_MAX = 20 };

// NOTE: nothing for the run itself; something is to be written into its ledger.
// FULL: its segment has come to a limit. RECOVER begins the next one.
enum input_kind { INPUT_START = 1, INPUT_RESULT, INPUT_TIMER, INPUT_SIGNAL, INPUT_RECOVER, INPUT_ADMIT, INPUT_NOTE, INPUT_FULL };

struct input {
    enum input_kind kind;
    // Nobody drives the run yet: what happened and what was decided is recorded, nothing starts and no timer is set. RECOVER
    // finds all of that in the log (ADR 0013). Only a cancelled run goes on to its end.
    bool idle;
    bool apart; // RECOVER: attempts are executed apart from the driver, by one who knows them by their numbers and gives each to a worker
                // once. What is in flight is claimed there under its number; it is no new attempt
    int64_t now_ms;
    uint64_t random; // for jitter
    uint32_t step;   // RESULT, TIMER
    uint32_t logical, engine;
    uint32_t member;                 // RESULT: of a list of child runs, from 1; 0: of the attempt itself
    const struct start_facts *start; // START
    const struct past *past;         // START: NULL = none
    const struct reuse *reuse;
    uint32_t reuse_count;
    bool ok;           // RESULT
    bool lost;         // RESULT: the executor of the attempt is gone; it runs again as the next engine attempt
    struct json value; // type 0 = none
    struct digest blob;
    bool has_blob;
    enum result_store store; // where the blob is,
    struct str elsewhere;    // and why not where the playbook wanted it; empty: it is
    uint64_t blob_size;
    struct json artifacts;
    bool truncated; // `value` or `blob` is the beginning of the output
    struct fault fault;
    int64_t duration_ms;
    enum timer_kind timer;       // TIMER
    int64_t due_ms;              // TIMER: as in its effect
    const struct signal *signal; // SIGNAL
    struct str decision_id;      // SIGNAL: UUID for the decision record
    uint64_t seq;                // SIGNAL with a condition: the run's last event
    uint64_t events, bytes;      // FULL: of the segment,
    const char *limit;           // and which of them is too many, "events" or "bytes"
};

enum effect_kind {
    EFFECT_EXECUTE = 1,   // run the body of step (logical, engine)
    EFFECT_TIMER,         // come back with INPUT_TIMER at due_ms
    EFFECT_CANCEL,        // stop the attempt in flight; its result is awaited
    EFFECT_SUBRUN,        // start, or attach to, the child run of the step, or one of its list
    EFFECT_SUBRUN_CANCEL, // cancel that child run
    EFFECT_RETRY_RUN,     // accepted RETRY_RUN: make the new run
    EFFECT_DECISION,      // the answer to a signal
    EFFECT_ENDED,         // the run has its terminal moment
    // The segment is full (ADR 0035). Who drives the run ends this execution of it when that suits (attempts in flight may be waited for,
    // none begins meanwhile), takes the run up from its log and gives it INPUT_RECOVER, which begins the next segment.
    EFFECT_CONTINUE_AS_NEW,
};

struct effect {
    enum effect_kind kind;
    uint32_t step, logical, engine;
    uint32_t member; // SUBRUN, SUBRUN_CANCEL: of a list, from 1; 0: the step has one child
    enum timer_kind timer;
    int64_t due_ms;   // TIMER: its name, too; the answer has it again
    int64_t lasts_ms; // TIMER: how long, at most, from now on: a clock that was set back makes no wait longer. 0: `due_ms` is a moment of
                      // the wall clock, wherever that is set to meanwhile
    int64_t grace_ms;
    struct str child; // SUBRUN, SUBRUN_CANCEL: id of the child run
    // DECISION; RETRY_RUN: `signal`
    const struct signal *signal;
    struct str decision_id;
    bool accepted, duplicate;
    bool moved;             // its condition does not hold: nothing is decided, and the same signal may be sent again
    bool deferred;          // neither: it waits for an approval
    bool settled;           // it did, and this is the decision that came of it
    struct str answer;      // who gave that answer
    const char *error_code; // rejected: RUN_TERMINAL, STEP_NOT_TERMINAL, ...
    struct str error_message;
};

// What a moment refers to and the store does not have yet: stored with it.
struct made_blob {
    struct digest sha256;
    struct str bytes;
};

struct outcome {
    struct arena *turn;
    struct moment *moments;
    size_t moment_count, moment_capacity;
    struct effect *effects;
    size_t effect_count, effect_capacity;
    struct made_blob *blobs;
    size_t blob_count, blob_capacity;
};

// A run before its first moment. NULL when memory ran out. The program and the strings of `ids` are borrowed: they must
// outlive the run.
struct run *run_new(const struct program *program, const struct run_ids *ids);
struct str run_artifacts_dir(const struct run *run); // `files` when the engine has set it, else as the start says
void run_free(struct run *run);
void run_verify(const struct run *run);
// What is impossible about a run's state, or NULL: a log that was edited may fold to one that no decision leads to, and is not to be
// gone on with.
const char *run_fault(const struct run *run);

// ---- holds: that an executor has, or is about to get, an attempt. Never of the log and never in a run: its driver has a table of
// them for each run it drives, which a refold does not touch. The kernel puts a hold when it orders an attempt, marks it when it wants
// the attempt stopped, and drops it when the attempt is in flight no more; the driver says what it has carried out of that. An attempt
// in flight without a hold is owed: RECOVER orders it again.
enum hold_state { HOLD_ORDERED = 1, HOLD_OUT }; // OUT: it was carried out
enum hold_stop { STOP_NOT = 0, STOP_ORDERED, STOP_ASKED };
struct run_hold {
    uint32_t lane, logical, engine;
    uint32_t member; // of a list of child runs, from 1; 0: the attempt itself
    uint8_t state;   // enum hold_state; 0: a free place of the table
    uint8_t stop;  // enum hold_stop
};
struct run_holds { // zero: nothing is held
    struct run_hold *items;
    uint32_t count, capacity;
    bool all; // whatever is in flight: of a run that is lived again from its log
    struct arena memory;
};
// `of` names one by its first four members.
struct run_hold *hold_find(const struct run_holds *holds, const struct run_hold *of); // NULL: none
struct run_hold hold_now(const struct run *run, uint32_t lane, uint32_t member);      // names that of the attempt in flight
bool hold_put(struct run_holds *holds, const struct run_hold *hold) MUST_CHECK;       // false: out of memory
void hold_drop(struct run_holds *holds, const struct run_hold *of);                   // harmless when there is none
void holds_undo(struct run_holds *holds); // what was ordered will not be carried out
struct run_hold *holds_copy(const struct run_holds *holds, struct arena *arena, uint32_t *count) MUST_CHECK; // NULL: out of memory
bool holds_restore(struct run_holds *holds, const struct run_hold *copy, uint32_t count) MUST_CHECK;         // false: out of memory
void holds_release(struct run_holds *holds);

// `holds` NULL: nothing is held, and nothing is handed out (previews).
enum code kernel_step(struct run *run, struct run_holds *holds, const struct input *input, const struct kernel_env *env,
                      struct outcome *outcome, struct error *err) MUST_CHECK;
// E_CORRUPT when the moment names a step that the program does not have or a transition that cannot be. E_NOMEM.
enum code kernel_fold(struct run *run, const struct moment *moment, struct error *err) MUST_CHECK;

// A decision record of the log's ledger: its signal is not decided again. Only needed for runs that have ended, whose log
// takes no SIGNAL_ moments any more; harmless otherwise.
enum code kernel_decided(struct run *run, struct str signal_id, struct error *err) MUST_CHECK;

// ---- what is known of a step, or of a lane
enum node_state kernel_state(const struct run *run, uint32_t step);
struct run_attempt kernel_attempt(const struct run *run, uint32_t step);          // in flight, or the last one
uint32_t kernel_iteration(const struct run *run, uint32_t step);              // of a loop; of a playbook's step the visit
const struct json *kernel_value(const struct run *run, uint32_t step);        // its output; NULL: none, or a blob
const struct run_blob *kernel_blob(const struct run *run, uint32_t step);     // its output; NULL: none, or a value
void kernel_assume(struct run *run, uint32_t step, enum node_state state,
                   const struct json *value); // of previews: as if it had ended like that. Borrows the value
struct parents {
    uint32_t waiting, success, failed, skipped; // dependencies: not terminal, and how the others ended
    uint32_t tainted;                           // failed, or skipped because of a failure
};
struct parents kernel_parents(const struct run *run, uint32_t step);

// An input of the run as it is now: of the start, or as UPDATE_PARAMS has it. NULL when there is none.
const struct json *kernel_input(const struct run *run, struct str path);
// A member of a step's `with`, as written or as overridden for the attempt in flight (or the next one, when none is).
const struct json *kernel_member(const struct run *run, uint32_t step, const char *key);
// The queue that UPDATE_TARGET has sent a step to; empty = none.
struct str kernel_queue(const struct run *run, uint32_t step);
// The inputs of a step with every reference replaced (SHELL: `command` is left alone, see kernel_scope). E_NOT_FOUND and
// E_CONFLICT: a reference cannot be had, the step must fail.
enum code kernel_render(const struct run *run, uint32_t step, const struct kernel_env *env, struct arena *arena,
                        struct json *out, struct error *err) MUST_CHECK;
struct kernel_scope {
    const struct run *run;
    uint32_t step;
    const struct kernel_env *env;
    bool strict; // conditions: the output of a failed step is an error, not empty
    // The output that was read last, in the arena that it was read with, and what all of them took: one text may name one thousands of
    // times, and the thread that reads them is everybody's.
    const struct arena *read_in; // NULL: none
    uint32_t read_step;
    struct json read_value;
    uint64_t read_bytes;
};
#define REFERENCES_MAX ((uint64_t)128 << 20) // bytes of outputs that the references of one step or condition read
struct scope kernel_scope(struct kernel_scope *scope); // for subst_shell; `scope` must outlive it
// Value of a step's output for readers (merge, child runs): blobs are fetched. type 0 when there is none.
enum code kernel_output(const struct run *run, uint32_t step, const struct kernel_env *env, struct arena *arena,
                        struct json *out, struct error *err) MUST_CHECK;

// Results larger than this fail their step. kernel_output_fits adds what a step's output weighs when it is fetched.
#define RESULT_MAX ((size_t)32 << 20)
#define RESULT_TOO_LARGE "the result is larger than 32 MiB"
bool kernel_output_fits(const struct run *run, uint32_t step, uint64_t *total) MUST_CHECK;

// ---- decisions as functions of the state. The kernel decides by asking them; who wants to know why asks again, with the
// state as it was, and gets the same answer.
enum join_verdict {
    JOIN_WAITS = 1, // a dependency has not ended
    JOIN_UNDO,      // it waits for the run to fail or to be cancelled
    JOIN_WITHHELD,  // could be decided, but the plan is failing and starts no unrelated work
    JOIN_RULE,      // skip: the trigger rule does not pass
    JOIN_BROKEN,    // skip: the condition cannot be parsed
    JOIN_FALSE,     // skip: the condition is false
    JOIN_FAULT,     // fail: the condition cannot be evaluated
    JOIN_START,
};
struct join {
    enum join_verdict verdict;
    const char *skip;              // RULE, BROKEN, FALSE: reason code
    const struct when_step *trace; // one per atom; NULL: not evaluated. FAULT: atoms that were not reached are zero
    struct fault fault;            // FAULT
};
// What rule and condition of a step that has not started say. Texts and trace in `arena`. E_NOMEM, E_IO, E_CORRUPT.
enum code kernel_join(const struct run *run, uint32_t step, const struct kernel_env *env, struct arena *arena,
                      struct join *out, struct error *err) MUST_CHECK;
enum retry_verdict {
    RETRY_AGAIN = 1,
    RETRY_CANCELLING,    // no: the run is being cancelled
    RETRY_SPENT,         // no: max_attempts reached, counted from the last retry by hand
    RETRY_PERMANENT,     // no: the policy tries transient failures again, and this is none
    RETRY_NON_RETRYABLE, // no: the policy names the code
};
// Whether a running step whose attempt failed like this gets another one.
enum retry_verdict kernel_retry(const struct run *run, uint32_t step, const struct fault *fault);
enum loop_verdict {
    LOOP_OPEN = 1, // the iteration is not over
    LOOP_AGAIN,
    LOOP_DONE,
    LOOP_BODY_FAILED,
    LOOP_EXHAUSTED, // max_iterations reached before the condition held
};
enum loop_verdict kernel_loop(const struct run *run, uint32_t loop); // a running loop
// What an attempt of a kind without a tool (noop, echo, merge) gives, or fails with. The attempt is under way; its result is an input as
// any other. What cannot be read now is a failure as well (kernel_unavailable). Values in `arena`, or the run's. E_NOMEM, E_IO.
struct instant {
    bool ok;
    struct json value;
    struct fault fault; // !ok; its texts too
};
enum code kernel_instant(const struct run *run, uint32_t step, const struct kernel_env *env, struct arena *arena,
                         struct instant *out, struct error *err) MUST_CHECK;
// What a step fails with that needs something which cannot be had, for a reason besides E_NOMEM and E_IO. `message` is borrowed.
struct fault kernel_unavailable(enum code why, struct str message);
// A condition that is a command: its exit is its answer, and what it writes is nothing.
bool kernel_condition(const struct run *run, uint32_t step);
// The moment that ends the run now that nothing else is decidable; MOMENT_UNKNOWN: it goes on.
enum moment_kind kernel_end(const struct run *run);
bool kernel_undone(const struct run *run, uint32_t step); // what undoes it has begun at least
bool kernel_undoes_next(const struct run *run, uint32_t step); // the run fails or is cancelled, and it is its turn to undo
// ---- what tasks of playbooks are given, for readers; values in `arena` or the run's
struct kernel_given {
    uint32_t task, iteration, attempt; // attempt 0: it has not begun
    struct json with;                  // rendered; secrets by name. What could not be rendered, and `missing` has, is as written
    struct json missing;               // [{path, text, why}]: texts that use what is not defined
};
// The step that "each:run:2[3]" names, with its visit and iteration; 0: not said. PROGRAM_TOP: none.
uint32_t kernel_named(const struct run *run, struct str path, uint32_t *visit, uint32_t *iteration);
enum code kernel_given(const struct run *run, uint32_t lane, const struct kernel_env *env, struct arena *arena,
                       struct kernel_given *out, struct error *err) MUST_CHECK; // of the task that the lane is at
// Of one that has not begun, with what is known now.
enum code kernel_given_ahead(const struct run *run, uint32_t place, uint32_t task, const struct kernel_env *env,
                             struct arena *arena, struct kernel_given *out, struct error *err) MUST_CHECK;
// What `in` of a loop uses that is not defined: {path, text, why} each.
enum code kernel_loop_missing(const struct run *run, uint32_t place, const struct kernel_env *env, struct arena *arena,
                              struct json *missing, struct error *err) MUST_CHECK;
// Previews of a playbook: its workload as if it was started with these inputs. E_INVALID: it cannot be made. Borrows.
enum code kernel_suppose(struct run *run, const struct json *inputs, struct arena *arena, struct error *err) MUST_CHECK;

// Why the run of a playbook fails before its first step: its workload cannot be rendered. No code: it can. E_NOMEM, E_IO, E_CORRUPT.
enum code kernel_workload_fault(const struct run *run, struct arena *arena, struct fault *out,
                                struct error *err) MUST_CHECK;

// Path of a step as it stands in events: "load", "loop[2].tick" with the current iterations. ptr NULL: out of memory.
struct str kernel_path(const struct run *run, uint32_t step, struct arena *arena);
// The step that a path names, in whatever iteration; PROGRAM_TOP when there is none.
uint32_t kernel_find(const struct run *run, struct str path);
// Id of the child run of a SUBRUN step's attempt: "<run>.<step>.<logical>", or "sub-<hash>" when that is no valid id. Of a list of child
// runs (fan_out) that of a member: ".<member>" behind it, from 1; 0: the step has one child. ptr NULL: out of memory.
struct str kernel_child(const struct run *run, uint32_t step, uint32_t member, struct arena *arena);
struct str kernel_child_name(struct str run, struct str path, uint32_t logical, struct arena *arena); // of one child
bool kernel_runs_child(const struct run *run, uint32_t lane); // whether what it has in flight is a run of its own, or a list of them
bool kernel_fans_out(const struct run *run, uint32_t step);   // whether it has a list of them
// Which child of the attempt in flight the run of that id is. E_NOT_FOUND: none that it waits for. E_NOMEM.
enum code kernel_is_child(const struct run *run, uint32_t step, struct str child, struct arena *arena,
                          uint32_t *member) MUST_CHECK;
uint32_t kernel_members(const struct run *run, uint32_t step);   // of its list, those that have begun; 0: it has none in flight
uint64_t kernel_list_size(const struct run *run, uint32_t step); // bytes beside the log that they have given
// The item of a member, as it was when the list began, and the input that has it (empty: none). Texts in `arena`, or the run's. E_NOMEM,
// E_IO, E_CORRUPT, E_NOT_FOUND.
enum code kernel_item(const struct run *run, uint32_t step, uint32_t member, const struct kernel_env *env,
                      struct arena *arena, struct json *item, struct str *as, struct error *err) MUST_CHECK;

// ---- a new run that takes over what another one has (ADR 0015)
enum fate_kind {
    FORK_KEPT = 1, // it had ended: its outcome stands
    FORK_GOES_ON,  // it was between beginning and end: an attempt in flight, a delay, a held failure
    FORK_GIVEN,    // its output is given by a person
    FORK_AGAIN,    // it had begun, and begins anew
    FORK_TO_COME,  // it had not begun
    FORK_NEW,      // the source's document does not have it
};
enum fate_why {
    AGAIN_NOTHING = 0,
    AGAIN_ASKED,      // a person wants it to run again
    AGAIN_BODY,       // its definition differs
    AGAIN_INPUT,      // it uses an input that differs: `input`
    AGAIN_DEPENDENCY, // it hangs on, or refers to, a step whose result will be another one: `cause`
    AGAIN_NO_RESULT,  // results_only: it did not succeed
    AGAIN_ALWAYS_RUN, // results_only: its document says so
    AGAIN_UNDONE,     // what it did was undone, or may have been
};
struct step_fate {
    enum fate_kind fate;
    enum fate_why why; // AGAIN; TO_COME: it would be, had it begun
    uint32_t cause;
    struct str input;
};
const char *fate_name(enum fate_kind fate); // "kept", "goes_on", "given", "again", "to_come", "new"
const char *
fate_why_name(enum fate_why why); // "", "asked", "definition", "input", "dependency", "no_result", "always_run", "undone"
struct revision {
    const struct run *source;      // folded up to the moment in question, over its own program
    const struct program *program; // of the new run; perhaps the same
    const struct json *inputs;     // of the new run
    const bool *asked;             // by step of the top scope of `program`; NULL = none
    const bool *given;             // likewise
    const struct json *set;        // inputs that were given for the new run by name; NULL = none
    bool results_only;             // a new beginning that takes over results, not the life of the source (RETRY_RUN)
};
// One fate per step of the program's top scope; a loop and all that is in it share one. A step whose fate is KEPT or
// GOES_ON has only such steps above it, or, when a person skipped it early, also some to come.
enum code kernel_fates(const struct revision *revision, struct arena *arena, struct step_fate **out) MUST_CHECK;
// What a new run begins with when it takes over results only: succeeded or skipped by a rule, in topological order. Values
// borrow the source.
enum code kernel_results(const struct revision *revision, const struct step_fate *fates, struct arena *arena,
                         struct reuse **out, uint32_t *count) MUST_CHECK;
// The same for a new run that differs in nothing (RETRY_RUN): succeeded, not always_run, and every dependency reused, or
// skipped as it will be again.
enum code kernel_reusable(const struct run *source, struct arena *arena, struct reuse **out,
                          uint32_t *count) MUST_CHECK;
// Takes out of what a run recorded (`moments`, whole or cut at any event) what belongs to that run alone: its end and what
// came after, late results, a cancellation and the failures it caused, and starts whose outcome was decided with them but
// is not in the list. *out borrows `moments`; its from_run is not set.
enum code kernel_past(const struct program *program, const struct moment *moments, size_t count, struct arena *arena,
                      struct past *out) MUST_CHECK;
// The same of a playbook: to the end of the last decision in the list. `next` is what followed the list; NULL: nothing, or nobody knows.
enum code kernel_net_past(const struct moment *moments, size_t count, const struct moment *next, struct arena *arena,
                          struct past *out) MUST_CHECK;
// Of a past, what the new run with these fates takes over.
enum code kernel_past_of(const struct past *past, const struct revision *revision, const struct step_fate *fates,
                         struct arena *arena, struct past *out) MUST_CHECK;
// Whether a run that has not started waits for INPUT_ADMIT and nothing else.
bool run_queued(const struct run *run);
// Detail for lists: RECOVERING (taken over, its first turn is to come), DRAINING (paused, steps in flight; not in the profile
// "temporal", and not after the drain timeout), CONTINUE_AS_NEW (its segment is full), RETRYING (an attempt failed
// and the next one follows, or the failure is held), WAITING_APPROVAL (nothing but approvals is open), CANCELLING, "".
const char *run_substatus(const struct run *run);
bool run_stops(const struct run *run); // it was cancelled and has not ended
bool run_goes(const struct run *run); // RUNNING, and its segment is not full: attempts may start
struct standing run_standing(const struct run *run);
struct standing_in run_standing_in(const struct run *run); // what its log alone says
uint32_t run_draining(const struct run *run); // steps in flight that a pause waits for: no approvals, events, loops
// ---- events from outside (ADR 0047)
#define EVENT_CORRELATION_MAX ((size_t)256)
// A wait for an event that is under way, behind `after` (NULL: the first). NULL: there is none.
const struct run_await *kernel_await(const struct run *run, const struct run_await *after);
// Until when an attempt of this step or place rests, because the engines or workers before were gone soon after they began it, and how
// many were; 0: none rests.
int64_t kernel_rests(const struct run *run, uint32_t step, uint32_t *losses);
// delay before retry number n (1, 2, ...), jitter applied from `random`.
int64_t retry_delay_ms(const struct retry_policy *policy, uint32_t n, uint64_t random);

#endif
