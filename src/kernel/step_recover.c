// A run folded from its log goes on: attempts in flight when the last owner died run again under the next engine attempt,
// named in the log before they start; timers are set again. Also what a cancelled run still has to stop.
#include "kernel/net_inside.h"

// The same logical attempt once more, under the next engine attempt (C-34).
static enum code redispatch(struct decide *d, uint32_t step)
{
    struct run_step *s = &d->run->steps[step];
    struct moment m = moment_of(d, MOMENT_STEP_REDISPATCHED, step);
    m.engine = s->engine + 1;
    enum code rc = emit(d, &m, step);
    if (rc) return rc;
    if (!effect_add(d, EFFECT_EXECUTE, step)) return E_NOMEM;
    s->live = true;
    return OK;
}

enum code redispatch_lost(struct decide *d)
{
    struct run *run = d->run;
    for (uint32_t i = 0; i < run->program->step_count; i++) {
        const struct run_step *s = &run->steps[i];
        if (s->state != NODE_RUNNING || s->live || !kind_is_executed(run->program->steps[i].kind)) continue;
        enum code rc = redispatch(d, i);
        if (rc) return rc;
    }
    return OK;
}

enum code attempt_lost(struct decide *d, uint32_t step)
{
    struct run *run = d->run;
    struct run_step *s = &run->steps[step];
    s->live = s->stopping = false;
    if (run->cancelling) return OK; // advance() sweeps: it fails as cancelled
    if (s->engine >= ENGINE_ATTEMPTS_MAX) {
        struct fault fault = {.code = STR("WORKER_LOST"),
                              .message = STR("whoever executes the step dies of it, again and again"),
                              .category = STR("infrastructure"),
                              .retryable = true};
        return fail_step(d, step, &fault);
    }
    if (d->input->idle || run->status != RUN_STATUS_RUNNING) return OK; // RECOVER or RESUME finds it
    return redispatch(d, step);
}

static enum code owed_timers(struct decide *d)
{
    struct run *run = d->run;
    for (uint32_t i = 0; i < run->program->step_count; i++) {
        struct run_step *s = &run->steps[i];
        enum step_kind kind = run->program->steps[i].kind;
        if (s->state == NODE_RUNNING && kind == STEP_SUBRUN && !s->live) {
            if (!effect_add(d, EFFECT_SUBRUN, i)) return E_NOMEM;
            s->live = true;
        }
        // A wait without a time is one that was over when it began: logs from before that was written down have some.
        bool waits = s->state == NODE_RUNNING && !kind_is_executed(kind) && (s->due_ms > 0 || kind == STEP_WAIT);
        if ((!waits && s->state != NODE_DELAYED) || d->input->timer == TIMER_LOOK) continue; // LOOK: they are set
        enum code rc = step_timer_set(d, i);
        if (rc) return rc;
    }
    return OK;
}

enum code drain_timer(struct decide *d)
{
    const struct run *run = d->run;
    bool over = run->drain_over == run->pause_cycle;
    if (run->status != RUN_STATUS_PAUSED || over || !behaviour_of(run->start.profile)->drains || !run_draining(run))
        return OK;
    int64_t patience = run->start.drain_timeout_ms > 0 ? run->start.drain_timeout_ms : DRAIN_TIMEOUT_MS;
    enum code rc = timer_add(d, PROGRAM_TOP, TIMER_DRAIN, run->paused_ms + patience, run->paused_ms);
    if (!rc) d->out->effects[d->out->effect_count - 1].logical = run->pause_cycle;
    return rc;
}

enum code step_recover(struct decide *d)
{
    struct run *run = d->run;
    run->recovering = false;
    if (run_status_terminal(run->status)) return effect_add(d, EFFECT_ENDED, PROGRAM_TOP) ? OK : E_NOMEM;
    if (run->cancelling) {
        // advance() sweeps. A child in another process has not ended yet: it is asked again.
        if (d->input->timer == TIMER_LOOK && d->input->step != PROGRAM_TOP) run->steps[d->input->step].stopping = false;
        return OK;
    }
    if (may_begin(run)) {
        enum code rc = begin_run(d);
        if (rc) return rc;
    }
    if (run->net) {
        enum code rc = net_owed(d);
        return rc || d->input->timer == TIMER_LOOK ? rc : drain_timer(d);
    }
    enum code rc = owed_timers(d);
    if (!rc && d->input->timer != TIMER_LOOK) rc = drain_timer(d);
    if (rc || run->status != RUN_STATUS_RUNNING) return rc; // K6: PAUSED starts nothing, RESUME does
    return redispatch_lost(d);
}

enum code cancel_child(struct decide *d, uint32_t step)
{
    struct str child = kernel_child_id(d->run, step, d->out->turn);
    struct effect *effect = child.ptr ? effect_add(d, EFFECT_SUBRUN_CANCEL, step) : NULL;
    if (!effect) return error_nomem(d->err);
    effect->child = child;
    return OK;
}

static enum code cancel_one(struct decide *d, uint32_t step)
{
    struct run_step *s = &d->run->steps[step];
    enum step_kind kind = d->run->program->steps[step].kind;
    if (kind == STEP_SUBRUN) {
        // Also when nobody here has taken it up yet: the child goes on in the log, so it must be ended there.
        if (s->stopping && !(d->run->emergency && d->input->kind == INPUT_SIGNAL)) return OK;
        s->live = s->stopping = true;
        return cancel_child(d, step);
    }
    if (s->live) {
        bool hurry = d->run->emergency && d->input->kind == INPUT_SIGNAL;
        if (s->stopping && !hurry) return OK;
        s->stopping = true;
        struct effect *effect = effect_add(d, EFFECT_CANCEL, step);
        if (!effect) return E_NOMEM;
        effect->grace_ms = d->run->emergency ? 0 : CANCEL_GRACE_MS;
        return OK;
    }
    struct fault fault = {.code = STR("CANCELLED"), .message = STR("the run was cancelled"), .category = STR("")};
    return fail_step(d, step, &fault);
}

enum code cancel_sweep(struct decide *d)
{
    struct run *run = d->run;
    INVARIANT(run->cancelling);
    for (uint32_t i = run->program->step_count; i < run_step_count(run); i++) { // lanes of a playbook
        if (run->steps[i].state != NODE_RUNNING) continue;
        enum code rc = net_cancel_one(d, i);
        if (rc) return rc;
    }
    if (run->net) return OK;
    uint32_t busy = 0;
    for (uint32_t i = 0; run->in_flight > 0 && i < run->program->step_count; i++) {
        if (run->steps[i].state != NODE_RUNNING || run->program->steps[i].kind == STEP_LOOP) continue;
        enum code rc = cancel_one(d, i);
        if (rc) return rc;
        busy += run->steps[i].state == NODE_RUNNING;
    }
    // A loop is a container: it fails when nothing inside it runs any more, innermost (highest index) first.
    for (uint32_t i = run->program->step_count; busy == 0 && run->in_flight > 0 && i > 0; i--) {
        if (run->steps[i - 1].state != NODE_RUNNING) continue;
        enum code rc = cancel_one(d, i - 1);
        if (rc) return rc;
    }
    return OK;
}
