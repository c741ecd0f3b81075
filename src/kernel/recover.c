// A run folded from its log goes on: what was in flight when the last owner died is owed, and named in the log before it starts.
#include "json/make.h"
#include "kernel/route.h"

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

// ---- segments (ADR 0035)
static enum code segment_begin(struct decide *d)
{
    struct moment m = moment_of(d, MOMENT_SEGMENT_STARTED, PROGRAM_TOP);
    m.logical = m.engine = d->run->segment + 1;
    return emit(d, &m, PROGRAM_TOP);
}

enum code segment_full(struct decide *d)
{
    const struct run *run = d->run;
    const struct input *in = d->input;
    bool open = run->status == RUN_STATUS_RUNNING || run->status == RUN_STATUS_PAUSED;
    if (!open || run->cancelling || run->rotating || !behaviour_of(run->start.profile)->rotates) return OK;
    struct moment m = moment_of(d, MOMENT_SEGMENT_FULL, PROGRAM_TOP);
    m.logical = run->segment;
    m.reason = str_from(in->limit);
    m.value = JSON_OF(d->out->turn, {"bytes", json_int((int64_t)in->bytes)}, {"events", json_int((int64_t)in->events)});
    if (!json_ok(&m.value)) return error_nomem(d->err);
    enum code rc = emit(d, &m, PROGRAM_TOP);
    return rc ? rc : effect_add(d, EFFECT_CONTINUE_AS_NEW, PROGRAM_TOP) ? OK : E_NOMEM;
}

enum code step_recover(struct decide *d)
{
    struct run *run = d->run;
    if (run_status_terminal(run->status)) return effect_add(d, EFFECT_ENDED, PROGRAM_TOP) ? OK : E_NOMEM;
    if (run->cancelling) {
        if (run->rotating && d->input->timer != TIMER_LOOK && undo_open(run)) return segment_begin(d); // the next undoes
        // advance() sweeps. A child in another process has not ended yet: it is asked again.
        if (d->input->timer == TIMER_LOOK && d->input->step != PROGRAM_TOP) let_go(d, d->input->step, d->input->logical);
        return OK;
    }
    enum code rc = may_begin(run) ? run->route->open(d) : OK;
    if (!rc && run->rotating && d->input->timer != TIMER_LOOK) rc = segment_begin(d);
    return rc ? rc : attempts_owed(d);
}
