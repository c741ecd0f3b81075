// Plans and node workflows: steps with joins, which are counters of dependencies. A step is a lane of its own.
#include "kernel/list.h"

#include "base/text.h"
#include "kernel/route.h"

static enum body dag_body(const struct run *run, uint32_t lane)
{
    static const enum body bodies[STEP_TASKS + 1] = {[STEP_WAIT] = BODY_WAIT,      [STEP_APPROVAL] = BODY_GATE,
                                                             [STEP_EVENT] = BODY_EVENT,
                                                             [STEP_SUBRUN] = BODY_CHILD,   [STEP_LOOP] = BODY_LOOP,
                                                             [STEP_CANCEL] = BODY_CANCEL};
    const struct program_step *step = &run->program->steps[lane];
    if (step->kind == STEP_SUBRUN && json_key(&step->with, "fanOut")) return BODY_LIST;
    return bodies[step->kind] ? bodies[step->kind] : BODY_EXECUTED;
}

static uint32_t dag_lane(const struct run *run, const struct moment *moment, uint32_t step)
{
    (void)run, (void)moment;
    return step;
}

static enum code dag_begin(struct decide *d, uint32_t step)
{
    return start_attempt(d, step, d->run->lanes[step].logical + 1);
}

static bool never(const struct run *run, uint32_t lane)
{
    (void)run, (void)lane;
    return false;
}

static enum code none_due(struct decide *d, uint32_t step)
{
    (void)d, (void)step;
    return OK;
}

static enum code none_owed(struct decide *d)
{
    (void)d;
    return OK;
}

// ---- what came out
static enum code emit_failure(struct decide *d, enum moment_kind kind, uint32_t step, const struct fault *fault)
{
    struct moment m = moment_of(d, kind, step);
    m.by = EMITTER_WORKER;
    m.fault = *fault;
    bool told = d->input->kind == INPUT_RESULT && d->input->step == step && d->input->member == 0;
    m.duration_ms = told ? d->input->duration_ms : elapsed_ms(d, d->run->lanes[step].started_ms);
    return emit(d, &m, step);
}

enum code fail_for_good(struct decide *d, uint32_t step, const struct fault *fault)
{
    return emit_failure(d, MOMENT_STEP_FAILED, step, fault);
}

enum code delay_step(struct decide *d, uint32_t step, int64_t delay_ms)
{
    return delay_until(d, step, d->input->now_ms + delay_ms);
}

enum code delay_until(struct decide *d, uint32_t step, int64_t due_ms)
{
    struct moment delayed = moment_of(d, MOMENT_STEP_DELAYED, step);
    delayed.logical = d->run->lanes[step].logical + 1;
    delayed.engine = 1;
    delayed.due_ms = due_ms;
    enum code rc = emit(d, &delayed, step);
    return rc || d->input->idle ? rc : lane_timer(d, step);
}

enum code fail_step(struct decide *d, uint32_t step, const struct fault *why)
{
    struct run *run = d->run;
    const struct run_lane *s = &run->lanes[step];
    struct fault told = *why;
    INVARIANT(s->state == NODE_RUNNING && why->code.len > 0);
    const struct fault *fault = &told;
    if (run->cancelling) told.retryable = false;
    if (kernel_retry(run, step, fault) != RETRY_AGAIN) return fail_for_good(d, step, fault);
    enum code rc = emit_failure(d, MOMENT_ATTEMPT_FAILED, step, fault);
    if (rc) return rc;

    int64_t delay = retry_delay_ms(&run->program->steps[step].retry, s->logical - s->base, d->input->random);
    if (delay == 0 && run_goes(run) && !d->input->idle) {
        COVER(retry_at_once);
        return start_attempt(d, step, s->logical + 1);
    }
    return delay_step(d, step, delay);
}

static enum code dag_done(struct decide *d, uint32_t step)
{
    const struct input *in = d->input;
    struct moment m = moment_of(d, MOMENT_STEP_COMPLETED, step);
    INVARIANT(in->ok && d->run->lanes[step].state == NODE_RUNNING);
    m.by = EMITTER_WORKER;
    m.value = in->value;
    m.blob = in->blob;
    m.has_blob = in->has_blob;
    m.blob_size = in->blob_size;
    m.artifacts = in->artifacts;
    m.truncated = in->truncated;
    m.duration_ms = in->duration_ms;
    return emit(d, &m, step);
}

// ---- loops
// The output of a loop is the output of the last child of its last iteration that completed.
static enum code loop_done(struct decide *d, uint32_t loop)
{
    const struct program_step *ps = &d->run->program->steps[loop];
    struct moment m = moment_of(d, MOMENT_STEP_COMPLETED, loop);
    INVARIANT(ps->kind == STEP_LOOP && d->run->nodes[loop].open_children == 0);
    const struct run_node *last = NULL;
    for (uint32_t i = ps->first_child; i < ps->first_child + ps->child_count; i++)
        if (i != ps->until && d->run->lanes[i].state == NODE_SUCCESS) last = &d->run->nodes[i];
    // Copied: an outer loop may begin its next iteration before the moment is stored.
    if (last && last->value && !json_copy(d->out->turn, last->value, &m.value)) return error_nomem(d->err);
    if (last && last->blob) {
        m.has_blob = true;
        m.blob = last->blob->sha256;
        m.blob_size = last->blob->size;
    }
    m.duration_ms = elapsed_ms(d, d->run->lanes[loop].started_ms);
    return emit(d, &m, loop);
}

static enum code iteration_over(struct decide *d, uint32_t loop)
{
    struct fault fault = {
        .code = STR("LOOP_BODY_FAILED"), .message = STR("a step inside the loop failed"), .category = STR("business")};
    switch (kernel_loop(d->run, loop)) {
    case LOOP_OPEN:
        INVARIANT(false);
        return OK;
    case LOOP_DONE:
        return loop_done(d, loop);
    case LOOP_EXHAUSTED:
        COVER(loop_exhausted);
        fault.code = STR("LOOP_EXHAUSTED");
        fault.message = STR("max_iterations reached before the condition held");
        return fail_step(d, loop, &fault);
    case LOOP_BODY_FAILED:
        return fail_step(d, loop, &fault);
    case LOOP_AGAIN:
        if (kernel_too_many(d->env, d->run->nodes[loop].iteration + UINT64_C(1), d->out->turn, &fault))
            return fail_step(d, loop, &fault);
        break;
    }
    struct moment m = moment_of(d, MOMENT_ITERATION_STARTED, loop);
    m.logical = d->run->nodes[loop].iteration + 1;
    return emit(d, &m, loop);
}

// ---- joins
static enum code skip(struct decide *d, uint32_t step, const char *reason, struct str detail)
{
    struct moment m = moment_of(d, MOMENT_STEP_SKIPPED, step);
    m.reason = str_from(reason);
    INVARIANT(reason && d->run->lanes[step].state == NODE_WAITING);
    m.detail = detail;
    return emit(d, &m, step);
}

// "1 success, 1 failed, 0 skipped of 2; rule all_success"
static struct str parents_told(struct decide *d, uint32_t step)
{
    const struct run_node *node = &d->run->nodes[step];
    struct buf buf = buf_of(256);
    buf_printf(&buf, "%s: %u success, %u failed, %u skipped", rule_name(d->run->program->steps[step].rule), node->success,
               node->failed, node->skipped);
    return buf_keep(&buf, d->out->turn);
}

// Every dependency is terminal: rule, then condition, then start.
enum code decide_step(struct decide *d, uint32_t step)
{
    struct run *run = d->run;
    const struct program_step *ps = &run->program->steps[step];
    const struct run_lane *s = &run->lanes[step];
    const struct run_node *node = &run->nodes[step];
    INVARIANT(node->waiting == 0);
    struct join join;
    enum code rc = kernel_join(run, step, d->env, d->out->turn, &join, d->err);
    if (rc) return rc;
    switch (join.verdict) {
    case JOIN_WAITS:
    case JOIN_UNDO:
    case JOIN_WITHHELD:
        return OK;
    case JOIN_RULE:
        return skip(d, step, join.skip, parents_told(d, step));
    case JOIN_BROKEN:
        return skip(d, step, join.skip, ps->when_text);
    case JOIN_FALSE:
        return skip(d, step, join.skip, when_told(d, step, join.trace));
    case JOIN_START:
        // Accepted under load: it starts, but its steps do not before a given time (ES-3c).
        if (s->logical == 0 && run->start.not_before_ms > d->input->now_ms)
            return delay_until(d, step, run->start.not_before_ms);
        return start_attempt(d, step, s->logical + 1);
    case JOIN_FAULT:
        break;
    }
    // The condition cannot be evaluated: the step fails, it is not skipped in silence (requirements §3.11).
    struct moment started = moment_of(d, MOMENT_STEP_STARTED, step);
    started.logical = s->logical + 1;
    rc = emit(d, &started, step);
    return rc ? rc : fail_for_good(d, step, &join.fault); // another attempt would not ask the condition again
}

static enum code dag_end(struct decide *d, struct moment *m)
{
    enum code rc = m->kind == MOMENT_RUN_COMPLETED ? undo_spare(d) : OK;
    if (rc) return rc;
    const struct json *refusal = &d->run->start.refusal;
    if (m->kind == MOMENT_RUN_FAILED && refusal->type) {
        m->fault = (struct fault){.code = json_text(json_key(refusal, "code")),
                                  .message = json_text(json_key(refusal, "message")),
                                  .category = STR("validation")};
    } else if (m->kind == MOMENT_RUN_FAILED && m->fault.code.len == 0) {
        m->fault.code = STR("NO_STEP_COMPLETED");
        m->fault.message = STR("every step was skipped");
    }
    return emit(d, m, PROGRAM_TOP);
}

// A child of a loop only while the loop runs: after a fold the queue still holds children of an inner loop that an outer one
// has set back since.
static bool decidable(const struct run *run, uint32_t step)
{
    const struct run_lane *s = &run->lanes[step];
    const struct run_node *node = &run->nodes[step];
    uint32_t scope = run->program->steps[step].scope;
    if (s->state != NODE_WAITING || node->waiting > 0) return false;
    return scope == PROGRAM_TOP || run->lanes[scope].state == NODE_RUNNING;
}

// The iteration of a loop.
static bool is_over(const struct run *run, uint32_t step)
{
    const struct run_lane *s = &run->lanes[step];
    const struct run_node *node = &run->nodes[step];
    return s->state == NODE_RUNNING && run->program->steps[step].kind == STEP_LOOP && node->open_children == 0;
}

// Whether the queue holds more than what a fold leaves in it.
static bool any_due(const struct run *run)
{
    for (uint32_t step = run->ready_head; step != PROGRAM_TOP;) {
        if (decidable(run, step) || is_over(run, step)) return true;
        uint32_t link = run->links[step];
        step = link == READY_LAST ? PROGRAM_TOP : link - 2;
    }
    return false;
}

// Starts what can start, ends what has ended. Called once at the end of every input.
static enum code dag_advance(struct decide *d)
{
    struct run *run = d->run;
    if (d->input->idle && !run->cancelling && any_due(run)) return OK; // RECOVER decides them
    while (run_goes(run) && !run->cancelling) {
        uint32_t step = ready_pop(run);
        if (step == PROGRAM_TOP) break;
        enum code rc = OK;
        if (decidable(run, step))
            rc = decide_step(d, step);
        else if (is_over(run, step))
            rc = iteration_over(d, step);
        if (rc) return rc;
    }
    return try_end(d);
}

static bool dag_is_busy(const struct run *run)
{
    (void)run;
    return false;
}

static bool dag_has_failed(const struct run *run)
{
    return run->counts.failed > 0 || (run->program->kind == DOCUMENT_NODES && run->counts.completed == 0);
}

// ---- the state
static bool dag_make(struct run *run)
{
    uint32_t count = run->program->step_count;
    run->nodes = ARENA_ARRAY(&run->arena, count, struct run_node);
    run->lanes = run->nodes ? ARENA_ARRAY(&run->arena, count, struct run_lane) : NULL;
    for (uint32_t i = 0; run->lanes && i < count; i++) {
        run->lanes[i].state = NODE_WAITING;
        run->nodes[i].waiting = run->program->steps[i].dep_count;
        if (run->program->steps[i].scope == PROGRAM_TOP && run->nodes[i].waiting == 0) ready_push(run, i);
    }
    return run->lanes != NULL;
}

static void dag_release(struct run *run)
{
    for (uint32_t i = 0; i < run->program->step_count; i++)
        if (run->nodes[i].outputs) arena_release(run->nodes[i].outputs);
    while (run->lists) list_drop(run, run->lists->step);
}

static uint32_t dag_iteration(const struct run *run, uint32_t step)
{
    return run->nodes[step].iteration;
}

static bool dag_folds(const struct moment *moment)
{
    (void)moment;
    return false;
}

static struct str dag_path(const struct run *run, uint32_t step, struct arena *arena)
{
    INVARIANT(step < run->program->step_count);
    const struct program_step *ps = &run->program->steps[step];
    if (ps->scope == PROGRAM_TOP) return ps->id;
    struct str outer = dag_path(run, ps->scope, arena);
    if (!outer.ptr) return outer;
    struct buf buf = buf_of(4096);
    buf_add(&buf, outer);
    buf_byte(&buf, '[');
    buf_int(&buf, run->nodes[ps->scope].iteration);
    buf_text(&buf, "].");
    buf_add(&buf, ps->id);
    return buf_keep(&buf, arena);
}

static enum path_time time_of(const struct run *run, uint32_t loop, int64_t iteration)
{
    uint8_t state = run->lanes[loop].state;
    int64_t current = run->nodes[loop].iteration;
    if (state == NODE_SUCCESS || state == NODE_FAILED || state == NODE_SKIPPED) return PATH_OVER;
    if (state != NODE_RUNNING || iteration > current) return PATH_TO_COME;
    return iteration < current ? PATH_OVER : PATH_NOW;
}

static uint32_t dag_find(const struct run *run, struct str path, enum path_time *time)
{
    uint32_t scope = PROGRAM_TOP;
    *time = PATH_NOW;
    for (;;) {
        size_t bracket = str_find(path, '[', 0);
        uint32_t step = program_find(run->program, scope, str_slice(path, 0, bracket));
        if (step == PROGRAM_TOP || bracket == path.len) return step;
        size_t close = str_find(path, ']', bracket);
        int64_t iteration;
        if (close + 1 >= path.len || path.ptr[close + 1] != '.') return PROGRAM_TOP;
        if (!str_int64(str_slice(path, bracket + 1, close), &iteration)) return PROGRAM_TOP;
        if (*time == PATH_NOW) *time = time_of(run, step, iteration);
        scope = step;
        path = str_slice(path, close + 2, path.len);
    }
}

static const char *dag_step_fault(const struct run *run, uint32_t i)
{
    const struct run_lane *step = &run->lanes[i];
    const struct run_node *node = &run->nodes[i];
    const struct program_step *ps = &run->program->steps[i];
    bool runs = step->state == NODE_RUNNING;
    if (step->state < NODE_WAITING || step->state > NODE_SKIPPED) return "a step has no state";
    if (node->success + node->failed + node->skipped + node->waiting != ps->dep_count)
        return "a step does not know how its dependencies ended";
    if (runs && node->waiting > 0) return "a step runs before its dependencies have ended"; // K5
    if (runs && (step->logical == 0 || step->engine == 0)) return "a step runs without an attempt";
    if (step->again && step->state != NODE_DELAYED) return "a step is to be tried again and does not wait";
    bool inside = runs && ps->scope != PROGRAM_TOP;
    if (inside && (run->lanes[ps->scope].state != NODE_RUNNING || run->nodes[ps->scope].iteration == 0))
        return "a step runs in a loop that does not";
    return NULL;
}

static const char *dag_fault(const struct run *run)
{
    uint32_t in_flight = 0, gates = 0, events = 0, loops = 0, delayed = 0, retrying = 0, held = 0;
    for (uint32_t i = 0; i < run->program->step_count; i++) {
        const struct run_lane *step = &run->lanes[i];
        enum step_kind kind = run->program->steps[i].kind;
        const char *fault = dag_step_fault(run, i);
        if (fault) return fault;
        in_flight += step->state == NODE_RUNNING;
        gates += step->state == NODE_RUNNING && kind == STEP_APPROVAL;
        events += step->state == NODE_RUNNING && kind == STEP_EVENT;
        loops += step->state == NODE_RUNNING && kind == STEP_LOOP;
        delayed += step->state == NODE_DELAYED;
        retrying += step->again;
        held += step->state == NODE_HELD;
    }
    bool counted = in_flight == run->in_flight && gates == run->gates && events == run->events && loops == run->loops &&
                   delayed == run->delayed && retrying == run->retrying && held == run->held;
    if (!counted) return "steps are not counted as they are";
    if (run->counts.completed + run->counts.failed + run->counts.skipped > run->counts.total)
        return "more steps have ended than there are";
    return NULL;
}

static bool dag_suppose(struct run *run, uint32_t step, enum node_state state, const struct json *value)
{
    run->lanes[step].state = (uint8_t)state;
    run->nodes[step].value = value;
    return true;
}

const struct run_route route_dag = {
    .body = dag_body,
    .moment = moment_of,
    .emit = emit,
    .lane = dag_lane,
    .begin = dag_begin,
    .done = dag_done,
    .fail = fail_step,
    .wake = dag_wake,
    .of_day = dag_of_day,
    .overdue = never,
    .due = none_due,
    .owed = none_owed,
    .lost = "every executor of the step dies of it, again and again",
    .child_late = "the child run took longer than %s (the field timeout of its step)",
    .start = dag_start,
    .open = dag_open,
    .again = dag_again,
    .advance = dag_advance,
    .is_busy = dag_is_busy,
    .has_failed = dag_has_failed,
    .end = dag_end,
    .by_hand = true,
    .fold = dag_fold,
    .folds = dag_folds,
    .iteration = dag_iteration,
    .path = dag_path,
    .child = kernel_child_name,
    .find = dag_find,
    .output = dag_output,
    .make = dag_make,
    .suppose = dag_suppose,
    .fault = dag_fault,
    .release = dag_release,
};
