// Routes an input, then advances the run as far as it goes: decide every decidable step, start what may start, end what
// has ended.
#include "kernel/route.h"

#include <string.h>

// Of templates. What one input leads to (arcs, `set`, conditions of a hundred iterations that begin) is decided by the thread of all
// runs, in one go. Beyond it the templates fail, as one fails beyond its own budget: the same on every machine and in a replay.
enum { DECISION_STEPS = 400000 };

struct moment moment_of(const struct decide *d, enum moment_kind kind, uint32_t step)
{
    struct moment m = {.kind = kind, .by = EMITTER_ENGINE, .logical = 1, .engine = 1, .at_ms = d->input->now_ms};
    if (step == PROGRAM_TOP) {
        m.engine = d->run->segment; // RE-5c: a run that continues as new is one execution further
        return m;
    }
    const struct run_lane *s = lane_ref(d->run, step);
    m.step = kernel_path(d->run, step, d->out->turn);
    m.logical = s->logical > 0 ? s->logical : 1;
    m.engine = s->engine > 0 ? s->engine : 1;
    return m;
}

int64_t elapsed_ms(const struct decide *d, int64_t since_ms)
{
    return d->input->now_ms > since_ms ? d->input->now_ms - since_ms : 0;
}

// Zero: none is.
static struct run_attempt in_flight(const struct run *run, uint32_t lane)
{
    bool flies = lane < run_step_count(run) && kernel_state(run, lane) == NODE_RUNNING;
    return flies ? kernel_attempt(run, lane) : (struct run_attempt){0};
}

enum code emit(struct decide *d, struct moment *moment, uint32_t step)
{
    struct outcome *out = d->out;
    if (step != PROGRAM_TOP && !moment->step.ptr) return error_nomem(d->err);
    INVARIANT(moment->kind > MOMENT_UNKNOWN && moment->kind < MOMENT_COUNT);
    INVARIANT(moment->logical >= 1 && moment->engine >= 1 && moment->by);
    if (moment_is_terminal(moment->kind)) INVARIANT(!run_status_terminal(d->run->status)); // I15
    if (!ARENA_ROOM(out->turn, out->moments, out->moment_count, &out->moment_capacity)) return error_nomem(d->err);
    out->moments[out->moment_count++] = *moment;
    uint32_t lane = step == PROGRAM_TOP ? step : d->run->route->lane(d->run, moment, step);
    struct run_attempt before = in_flight(d->run, lane);
    enum code rc = fold_at(d->run, moment, step, d->err);
    struct run_attempt after = in_flight(d->run, lane);
    if (after.logical == before.logical && after.engine == before.engine) return rc;
    hold_drop(d->holds, &(struct run_hold){.lane = lane, .logical = before.logical, .engine = before.engine});
    if (kernel_fans_out(d->run, lane)) holds_drop_list(d->holds, lane);
    return rc;
}

struct effect *effect_add(struct decide *d, enum effect_kind kind, uint32_t step)
{
    struct outcome *out = d->out;
    if (!ARENA_ROOM(out->turn, out->effects, out->effect_count, &out->effect_capacity)) {
        (void)error_nomem(d->err);
        return NULL;
    }
    struct effect *effect = &out->effects[out->effect_count++];
    memset(effect, 0, sizeof(*effect));
    effect->kind = kind;
    effect->step = step;
    if (step == PROGRAM_TOP) return effect;
    struct run_attempt now = kernel_attempt(d->run, step);
    effect->logical = now.logical;
    effect->engine = now.engine;
    return effect;
}

enum code timer_add(struct decide *d, uint32_t step, enum timer_kind kind, int64_t due_ms, int64_t since_ms)
{
    struct effect *timer = effect_add(d, EFFECT_TIMER, step);
    if (!timer) return E_NOMEM;
    INVARIANT(!run_status_terminal(d->run->status));
    timer->timer = kind;
    timer->due_ms = due_ms;
    if (since_ms != TIMER_OF_DAY) timer->lasts_ms = due_ms > since_ms ? due_ms - since_ms : 1;
    return OK;
}

uint32_t ready_pop(struct run *run)
{
    uint32_t step = run->ready_head;
    if (step == PROGRAM_TOP) return step;
    INVARIANT(run->links[step] != READY_OUT && run->ready_tail != PROGRAM_TOP);
    uint32_t link = run->links[step];
    run->ready_head = link == READY_LAST ? PROGRAM_TOP : link - 2;
    if (run->ready_head == PROGRAM_TOP) run->ready_tail = PROGRAM_TOP;
    run->links[step] = READY_OUT;
    return step;
}

enum code run_end(struct decide *d, enum moment_kind kind, const struct cause *cause)
{
    const struct run *run = d->run;
    struct moment m = moment_of(d, kind, PROGRAM_TOP);
    m.counts = run->counts;
    INVARIANT(moment_is_terminal(kind) && !run_status_terminal(run->status));
    INVARIANT(run->in_flight == 0 || cause); // K7, K2
    m.duration_ms = run->started_ms > 0 ? elapsed_ms(d, run->started_ms) : 0;
    if (kind == MOMENT_RUN_CANCELLED) {
        m.counts.failed += run->held; // they have failed, and nobody will try them again
        m.reason = cause ? cause->name : run->cancel_reason;
        m.signal_id = cause ? cause->signal : run->cancel_signal;
    } else if (kind == MOMENT_RUN_FAILED && run->limited) {
        m.counts.failed += run->held;
        m.fault = (struct fault){.code = STR(FAULT_RUN_LIMIT),
                                 .message = str_slice(run->cancel_reason, sizeof(FAULT_RUN_LIMIT ": ") - 1,
                                                      run->cancel_reason.len),
                                 .category = STR("validation")};
    } else if (kind == MOMENT_RUN_FAILED) {
        m.fault = cause ? cause->fault : run->fault;
        m.reason = cause ? cause->name : run->failed_step;
    }
    enum code rc = run->route->end(d, &m);
    if (rc) return rc;
    return effect_add(d, EFFECT_ENDED, PROGRAM_TOP) ? OK : E_NOMEM;
}

enum code try_end(struct decide *d)
{
    struct run *run = d->run;
    if (run_status_terminal(run->status)) return OK;
    if (run->cancelling) {
        enum code rc = attempts_cancel(d);
        if (rc) return rc;
    }
    enum code rc = OK;
    if (undo_due(run)) rc = undo_begin(d);
    enum moment_kind end = kernel_end(run);
    return rc || end == MOMENT_UNKNOWN || undo_due(run) ? rc : run_end(d, end, NULL);
}

enum code kernel_step(struct run *run, struct run_holds *holds, const struct input *input, const struct kernel_env *env,
                      struct outcome *outcome, struct error *err)
{
    struct template_meter meter = {.max = DECISION_STEPS, .of = "one decision"};
    struct kernel_env within = *env;
    struct decide d = {.run = run, .holds = holds, .input = input, .env = &within, .out = outcome, .err = err};
    enum code rc = OK;
    within.meter = &meter;
    run->env = env;
    switch (input->kind) {
    case INPUT_START:
        rc = step_start(&d);
        break;
    case INPUT_RESULT:
        rc = attempt_result(&d);
        break;
    case INPUT_TIMER:
        rc = input->timer == TIMER_DRAIN ? drain_over(&d) : attempt_timer(&d);
        break;
    case INPUT_SIGNAL:
        rc = step_signal(&d);
        break;
    case INPUT_RECOVER:
        rc = step_recover(&d);
        break;
    case INPUT_ADMIT:
        rc = step_admit(&d);
        break;
    case INPUT_FULL:
        rc = segment_full(&d);
        break;
    case INPUT_NOTE:
        return OK;
    }
    if (rc) return rc;
    rc = run->route->advance(&d);
#ifdef CAIRN_VERIFY
    if (!rc) run_verify(run);
#endif
    return rc;
}
