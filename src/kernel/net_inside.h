// Private to kernel/: playbooks. A place is a step of the net; a lane is one walk through its tasks.
//
//   token --admit--> PENDING --start--> RUNNING: one lane, or lanes of a loop --all over--> ended --arcs--> tokens
//
// Everything that changes here is changed by net_fold from a moment; net_*.c decide and emit. Steps and lanes that something can be
// done about stand in the run's queue of decidable steps, which folding fills, so that a run folded from its log goes on by itself.
#ifndef CAIRN_KERNEL_NET_INSIDE_H
#define CAIRN_KERNEL_NET_INSIDE_H

#include "kernel/container.h"
#include "kernel/route.h"

// Where a walk is: the state of its lane and its place among the tasks say it (lane_phase).
enum lane_phase {
    LANE_FREE = 0,
    LANE_READY,    // task `pc` is to begin
    LANE_FLIGHT,   // its attempt is under way: its lane is RUNNING
    LANE_ANSWERED, // what came out is known, what to do about it is not
    LANE_DELAYED,  // between two tries: its lane is DELAYED
    LANE_OVER,     // there is no task any more
};

struct walk {
    bool taken;                // not FREE
    bool failed;               // OVER
    uint8_t action;            // enum net_do of the last decision about the current task; 0 = none was recorded
    uint32_t target;           // of a jump
    uint32_t place, iteration; // 0 = the visit itself
    uint32_t pc;               // task
    uint32_t attempt;          // of it
    uint32_t last;             // task that ended last, + 1; 0 = none
    uint32_t next_free;
    uint32_t *runs; // of each task
    struct net_value *results;
    struct json iter;   // variables of the iteration
    struct fault fault; // failed
    int64_t started_ms, task_ms;
    struct arena memory;
};

enum place_phase { PLACE_IDLE = 1, PLACE_PENDING, PLACE_RUNNING, PLACE_ENDED /* and not yet routed */ };

struct net_place {
    uint8_t phase;
    bool token;  // one has arrived
    bool looped; // LOOP_STARTED
    bool loop_over;
    bool failed;   // ENDED: how; IDLE: the last visit
    bool skipped;  // the last visit was refused admission
    uint8_t counted; // enum node_state: as what it is in run.counts; 0 = not, or not any more
    bool overdue;  // its time is over: what is in flight is stopped, nothing begins
    uint32_t visit;
    uint32_t lane; // of a visit without a loop; UINT32_MAX = none
    struct json token_args, args;
    struct json given;   // of args: what the arc gave
    struct json written; // parallel loops: what its iterations have set in ctx (C-50)
    struct container loop;   // its iterations
    struct net_value value;  // of the last visit that ended well
    struct net_value *tasks; // its tasks' when there are several; NULL: none
    struct fault fault;
    struct json outcome; // of the task that failed the visit; type 0: none
    int64_t started_ms, due_ms;
    struct arena memory, kept; // of the visit under way; of what `value` holds
    struct arena token_memory;
};

struct net_state {
    struct net_place *places;
    uint64_t *token_at; // bit per place, as `token` of each: those that wait are found without looking at all
    struct walk **walks; // of the lanes, in their order
    uint32_t lane_count, lane_capacity, free_lane;
    uint32_t serial;    // attempts so far
    uint32_t live;      // places PENDING, RUNNING or ENDED
    uint32_t tokens;    // places that one has arrived at
    uint32_t unhandled; // failed steps that no arc has taken further
    uint32_t last;      // place with tasks that ended last; PROGRAM_TOP = none
    struct json workload, ctx;
    struct arena ctx_memory;
    int64_t now_ms;   // of the last event: what now() tells
    size_t ctx_floor; // size of ctx_memory after it was last made anew
};

#define NO_LANE UINT32_MAX
enum { NET_MOMENTS_MAX = 2048 }; // of one input: more comes with the next turn

static inline const struct net *net_of_run(const struct run *run)
{
    return run->program->net;
}

// net_state.c
bool net_make(struct run *run); // false: out of memory
void net_free(struct run *run);
uint32_t lane_of(const struct run *run, const struct moment *m, uint32_t place); // NO_LANE: none
uint32_t lane_take(struct run *run, uint32_t place, uint32_t iteration);         // NO_LANE: out of memory
void lane_give(struct run *run, uint32_t lane);
struct walk *walk_at(const struct run *run, uint32_t lane); // numbered after the steps
enum lane_phase lane_phase(const struct run *run, uint32_t lane);
struct str net_path(const struct run *run, uint32_t step, struct arena *arena);
uint32_t net_find(const struct run *run, struct str path);
struct str net_child_name(struct str run, struct str path, uint32_t serial, struct arena *arena); // of a task that runs another playbook
const char *net_fault(const struct run *run);
enum node_state net_place_state(const struct run *run, uint32_t place);
struct run_attempt net_place_attempt(const struct run *run, uint32_t place);
uint32_t net_visit(const struct run *run, uint32_t step);

// net_fold.c
enum code net_fold(struct run *run, const struct moment *m, uint32_t step, struct error *err) MUST_CHECK;
// Results stay beside the log until they are read; what else is there, the state is made of, and it is fetched.
bool net_is_result(enum moment_kind kind);

// net_scope.c: what templates see
struct net_view {
    const struct run *run;
    const struct kernel_env *env;
    uint32_t place, lane;       // PROGRAM_TOP, NO_LANE: none
    const struct json *ctx;     // instead of the run's; NULL = the run's
    const struct json *args;    // instead of the place's
    const struct json *own;     // the task's input: an object, or NULL; seen before all else
    const struct json *outcome; // rules
    const struct json *event;   // arcs
    bool ended;                 // the step has ended: what it set and its arcs see what came out
    struct json *missing;       // readers: what is not defined stays as written and is noted here (template_tree_known); NULL: no
    bool result;                // `set` of a task: `output` alone is the result, the outcome is read by its members
    struct arena *arena;
};
// `iter` of the view's lane. `parent` in it is that of the iteration that runs this playbook.
bool net_iter(const struct net_view *view, struct json *out);
const struct template_limits *net_limits(const struct run *run);
struct template_scope net_scope(struct net_view *view); // `view` must outlive it
// What the task is given, rendered.
enum code net_with(const struct net_view *view, const struct net_task *task, struct json *out,
                   struct error *err) MUST_CHECK;
// What `executor.spec.no_next_is_error` says of a step whose arcs lead nowhere.
#define NET_NO_NEXT "no arc of the step holds, and the executor says that this is an error (no_next_is_error)"
// What rules and arcs see of an outcome: `result` under its other names too.
enum code net_outcome_seen(struct arena *arena, const struct json *outcome, struct json *out,
                           struct error *err) MUST_CHECK;
// What stops deciding, instead of being decided upon. E_UNREACHABLE: a result that is elsewhere cannot be had now, and what follows from
// it may not be guessed: the same is asked again later.
static inline bool net_is_grave(enum code rc)
{
    return code_is_outage(rc) || rc == E_CORRUPT || rc == E_UNREACHABLE;
}
struct json net_job(const struct run *run, struct arena *arena);
enum code net_now(const struct run *run, struct arena *arena, struct json *out, struct error *err) MUST_CHECK;
// Whether it holds; one that cannot be evaluated does not. What is grave; E_LIMIT: it takes more than it may, and what is to happen then
// is not for it to say; so is E_NOT_FOUND of a playbook that is strict about what is not defined.
enum code net_holds(struct net_view *view, const struct net_when *when, bool *out, struct error *err) MUST_CHECK;
// Patches of `sets` as {ctx: {path: value}, iter: {...}} added to *out; evaluated one after the other over what they have changed.
enum code net_patches(struct net_view *view, const struct net_sets *sets, struct json *out,
                      struct error *err) MUST_CHECK;
// `object` with what the patches of one scope say, in `arena`.
enum code net_patched(struct arena *arena, const struct json *object, const struct json *patches, struct json *out,
                      struct error *err) MUST_CHECK;

// net_value.c
// What `m` carries, fetched when it is beside the log.
enum code net_payload(const struct run *run, const struct moment *m, struct arena *arena, struct json *out,
                      struct error *err) MUST_CHECK;
struct str net_address(const struct run *run, uint32_t place, uint32_t iteration, struct arena *arena); // ptr NULL
// A result that is kept apart, as templates see it: {kind, store, sha256, bytes}.
struct json net_reference(struct arena *arena, const struct digest *blob, uint64_t size, enum result_store store);
// What templates see of a fault: {code, kind, message, retryable}.
struct json net_fault_value(const struct fault *fault, struct arena *arena);
enum code net_place_value(const struct run *run, uint32_t place, const struct kernel_env *env, struct arena *arena,
                          struct json *out, struct error *err) MUST_CHECK;
// `place`, `iteration`: whose it is, for its address; PROGRAM_TOP: a task's.
enum code net_value_get(const struct run *run, const struct net_value *value, uint32_t place, uint32_t iteration,
                        const struct kernel_env *env, struct arena *arena, struct json *out,
                        struct error *err) MUST_CHECK;
// The outcome of a visit that failed: why, and what its task gave all the same.
enum code net_failed_outcome(const struct net_place *p, struct arena *arena, struct json *out,
                             struct error *err) MUST_CHECK;
// What templates see of a result of SQL: beside its statements the rows of the last one, as if it was the only one. Others stay.
enum code net_sql_seen(struct arena *arena, struct json *value, struct error *err) MUST_CHECK;
// What the tasks of a pipeline gave, by their labels; *out stays untouched when the step has none.
enum code net_tasks_value(const struct run *run, uint32_t place, const struct kernel_env *env, struct arena *arena,
                          struct json *out, struct error *err) MUST_CHECK;

// net_task.c
struct moment lane_moment(const struct decide *d, enum moment_kind kind, uint32_t lane);
enum code net_emit(struct decide *d, struct moment *m) MUST_CHECK;
enum code lane_go(struct decide *d, uint32_t lane) MUST_CHECK; // READY: begins its task
enum code lane_answer(struct decide *d, uint32_t lane, const struct json *outcome) MUST_CHECK;
enum code lane_fault(struct decide *d, uint32_t lane, const struct fault *fault) MUST_CHECK;
enum code lane_begin(struct decide *d, uint32_t lane) MUST_CHECK; // the next attempt
enum code lane_done(struct decide *d, uint32_t lane) MUST_CHECK;
enum code lane_wake(struct decide *d, uint32_t lane) MUST_CHECK;
enum code lane_timeout(struct decide *d, uint32_t lane) MUST_CHECK;

// net_amount.c: numbers that are templates. The number stays as it is when there is no template, or it renders to nothing; what
// is none sets *fault.
enum code net_ms(struct net_view *view, const struct template_tree *made, const char *name, int64_t *ms,
                 struct fault *fault, struct error *err) MUST_CHECK;
enum code net_many(struct net_view *view, const struct template_tree *made, const char *name, uint32_t max,
                   uint32_t *count, struct fault *fault, struct error *err) MUST_CHECK;
enum code task_timeout(struct net_view *view, const struct net_task *task, int64_t *ms, struct fault *fault,
                       struct error *err) MUST_CHECK;

bool net_as_seconds(struct arena *arena, int64_t ms, struct json *out) MUST_CHECK; // as seconds; false: no memory

// net_result.c
enum { NET_PART_MAX = 4096 }; // bytes of a part of a result, or of inputs, in the log (NX-2o)
// What was selected of a result that is kept beside the log.
enum code net_extract(struct arena *turn, const struct net_task *task, const struct json *result, struct json *out,
                      struct error *err) MUST_CHECK;
// {bytes, sample, truncated}: the first `max` bytes of its canonical text; nothing when max is 0. False: no memory.
bool net_preview(struct arena *arena, const struct json *result, uint64_t max, struct json *out) MUST_CHECK;

// net_assert.c: *out is the fault of a task that was not given, or did not give, what it says; else it stays as it is.
#define ASSERT_EXPECTS "ASSERT_EXPECTS"
#define ASSERT_RETURNS "ASSERT_RETURNS"
enum code assert_inputs(const struct net_task *task, const struct json *with, struct arena *arena, struct fault *out,
                        struct error *err) MUST_CHECK;
enum code assert_result(const struct net_task *task, const struct json *result, struct arena *arena, struct fault *out,
                        struct error *err) MUST_CHECK;

// net_given.c
// For the reader. What cannot be rendered here fails the attempt when it is executed, with the reason.
enum code net_record_inputs(const struct net_view *view, const struct net_task *task, struct moment *m,
                            struct error *err) MUST_CHECK;
bool net_suppose(struct run *run, uint32_t place, enum node_state state, const struct json *value); // false: no memory

// past_net.c
enum code net_again(struct decide *d, const struct past *past, uint32_t at) MUST_CHECK;

// net_begin.c
enum code net_begin(struct decide *d) MUST_CHECK;
// What RUN_STARTED says of the workload; *fault is why it cannot be made, and the rest is there all the same.
enum code net_workload(struct decide *d, struct json *out, struct fault *fault) MUST_CHECK;
// The same of a run that has not begun; *out borrows its program and its start.
enum code net_workload_of(const struct run *run, struct arena *arena, struct json *out, struct fault *fault,
                          struct error *err) MUST_CHECK;

// route_net.c
// What RUN_FAILED names as the cause when it is no step: the workload cannot be made.
#define NET_WORKLOAD "workload"
enum code lane_over(struct decide *d, uint32_t lane) MUST_CHECK;

#endif
