// Private to kernel/: the decision in progress and the pieces that decide.
#ifndef CAIRN_KERNEL_INSIDE_H
#define CAIRN_KERNEL_INSIDE_H

#include "kernel/kernel.h"

enum { CANCEL_GRACE_MS = 5000 };
enum { WAIT_OVER_MS = 1 }; // the earliest end of a wait: 0 in a moment means that it has none

struct seen_signal {
    struct seen_signal *next;
    struct str id;
};

static inline struct run_lane *lane_ref(const struct run *run, uint32_t lane)
{
    INVARIANT(lane >= run->first_lane);
    return &run->lanes[lane - run->first_lane];
}

// Links of the queue of decidable steps: 0 = not in it, 1 = last, else index + 2.
#define READY_OUT 0u
#define READY_LAST 1u
#define READY_LINK(index) ((index) + 2u)

struct decide {
    struct run *run;
    struct run_holds *holds; // NULL: nobody has anything
    const struct input *input;
    const struct kernel_env *env;
    struct outcome *out;
    struct error *err;
};

// A moment of the run (step == PROGRAM_TOP) or of a step, with the ids, attempts and time filled in.
struct moment moment_of(const struct decide *d, enum moment_kind kind, uint32_t step);
// Appends to the outcome and folds. Everything that the kernel decides passes through here.
enum code emit(struct decide *d, struct moment *moment, uint32_t step) MUST_CHECK;
// Time since `since_ms`, for durations in events: 0 when the wall clock was set back meanwhile.
int64_t elapsed_ms(const struct decide *d, int64_t since_ms);
struct effect *effect_add(struct decide *d, enum effect_kind kind, uint32_t step) MUST_CHECK; // NULL: E_NOMEM is in err
// A timer of a step, of a lane or of the run. `since_ms`: when the time that it measures began; TIMER_OF_DAY: due at a moment of the wall
// clock, such as `until`.
#define TIMER_OF_DAY INT64_MIN
enum code timer_add(struct decide *d, uint32_t step, enum timer_kind kind, int64_t due_ms, int64_t since_ms) MUST_CHECK;

// hold.c: of the attempt that a lane has in flight, or of a member of its list; member 0: it has none
bool is_held(const struct decide *d, uint32_t lane, uint32_t member);
bool is_stopping(const struct decide *d, uint32_t lane, uint32_t member);
enum code order(struct decide *d, enum effect_kind kind, uint32_t lane) MUST_CHECK; // an effect, and the hold of who gets it
enum code order_child(struct decide *d, uint32_t lane, uint32_t member) MUST_CHECK; // the same
enum code cancel_child(struct decide *d, uint32_t lane, uint32_t member) MUST_CHECK; // the effect alone
enum code ask_to_stop(struct decide *d, uint32_t lane, uint32_t member) MUST_CHECK; // marks the hold; the effect is another matter
void let_go(struct decide *d, uint32_t lane, uint32_t member);                      // nobody has it any more
void holds_drop_list(struct run_holds *holds, uint32_t lane);                       // of all its members

// The value of a moment, as the log will give it back (K1), in `arena`.
enum code net_canon(struct arena *arena, struct json *value, struct error *err) MUST_CHECK;
size_t net_weight(const struct json *value, size_t max); // at least this many bytes when written; stops counting at `max`
enum code keep_apart(struct decide *d, struct moment *m) MUST_CHECK; // makes m->value a blob, too, which is stored with the moment

// The iterations that a path names, against those that the run is in. A path outside all loops is of now.
enum path_time { PATH_OVER = 1, PATH_NOW, PATH_TO_COME };
uint32_t find_path(const struct run *run, struct str path, enum path_time *time);

void ready_push(struct run *run, uint32_t step);
uint32_t ready_pop(struct run *run); // PROGRAM_TOP: none
// What moments say of the attempts of a lane, whatever document it is of.
void lane_fold_start(struct run *run, uint32_t lane, uint32_t logical, const struct moment *m); // STEP_STARTED, ATTEMPT_STARTED
bool lane_fold_rest(struct run *run, uint32_t lane, const struct moment *m) MUST_CHECK;  // ATTEMPT_RESTS; false: it cannot be
bool lane_fold_again(struct run *run, uint32_t lane, const struct moment *m) MUST_CHECK; // STEP_REDISPATCHED; false: it cannot be
void enter_state(struct run *run, struct run_lane *lane, enum node_state state);
// NODE_DELAYED; `again`: an attempt of it failed before.
void enter_delay(struct run *run, struct run_lane *lane, bool again, const struct moment *m, int64_t due_ms);
enum code fold_facts(struct run *run, const struct start_facts *from, struct error *err) MUST_CHECK;
// What failed first, and how: why the run fails, should it.
enum code keep_root_cause(struct run *run, struct str name, const struct fault *fault, struct error *err) MUST_CHECK;
bool signal_seen(const struct run *run, struct str id);
enum code fold_at(struct run *run, const struct moment *moment, uint32_t step, struct error *err) MUST_CHECK;

enum code decide_step(struct decide *d, uint32_t step) MUST_CHECK; // every dependency is terminal
enum code start_attempt(struct decide *d, uint32_t step, uint32_t logical) MUST_CHECK;
enum code delay_step(struct decide *d, uint32_t step, int64_t delay_ms) MUST_CHECK; // the next attempt, later
enum code fail_step(struct decide *d, uint32_t step,
                    const struct fault *fault) MUST_CHECK; // final or retried, as policy says
enum code fail_for_good(struct decide *d, uint32_t step,
                        const struct fault *fault) MUST_CHECK; // whatever the policy says
enum code drain_timer(struct decide *d) MUST_CHECK; // of a paused run that drains
enum code drain_over(struct decide *d) MUST_CHECK;  // TIMER_DRAIN
enum code reuse_one(struct decide *d, const struct reuse *reuse) MUST_CHECK;
enum code take_up_past(struct decide *d) MUST_CHECK; // START with a past
bool may_begin(const struct run *run);               // approved if it must be; not in the queue
enum code delay_until(struct decide *d, uint32_t step, int64_t due_ms) MUST_CHECK;

// Why a run ends when it is not what its steps came to: what failed and how, or what a person said when.
struct cause {
    struct str name;
    struct fault fault;
    struct str signal;
};
// compensate.c
bool undo_due(const struct run *run);  // it fails or is cancelled, nothing is in flight, and a step is to be undone next
bool undo_open(const struct run *run); // a step is being undone, or is to be
enum code undo_begin(struct decide *d) MUST_CHECK;  // the next
enum code undo_spare(struct decide *d) MUST_CHECK;  // the run has come out well: nothing is undone
void undo_fold(struct run *run);                    // a step that undoes another has begun
enum code run_end(struct decide *d, enum moment_kind kind, const struct cause *cause) MUST_CHECK; // NULL: as the state says
enum code try_end(struct decide *d) MUST_CHECK; // when nothing is left to do; of a cancelled run, stops what is in flight

// Of route_dag, in files of their own.
enum code dag_start(struct decide *d) MUST_CHECK;
enum code dag_again(struct decide *d, const struct past *past, uint32_t at) MUST_CHECK;
enum code dag_open(struct decide *d) MUST_CHECK; // RUN_STARTED and reused steps
enum code dag_wake(struct decide *d, uint32_t step) MUST_CHECK;
enum code dag_fold(struct run *run, const struct moment *m, uint32_t index, struct error *err) MUST_CHECK;
enum code dag_output(const struct run *run, uint32_t step, const struct kernel_env *env, struct arena *arena,
                     struct json *out, struct error *err) MUST_CHECK;

enum code step_start(struct decide *d) MUST_CHECK;
enum code step_signal(struct decide *d) MUST_CHECK;
enum code step_recover(struct decide *d) MUST_CHECK;
enum code step_admit(struct decide *d) MUST_CHECK;
enum code segment_full(struct decide *d) MUST_CHECK; // INPUT_FULL

// Objects are merged, everything else is replaced. False: out of memory.
bool merge_values(struct arena *arena, const struct json *under, const struct json *over, struct json *out) MUST_CHECK;
bool dag_of_day(const struct run *run, uint32_t step);   // its timer is a moment of the wall clock
bool waits_until(const struct run *run, uint32_t step); // `until`: a moment, not a duration
// The condition with the values that it was decided on, for the log.
struct str when_told(struct decide *d, uint32_t step, const struct when_step *trace);

#endif
