// A run folded from its log goes on: what was in flight when the last owner died is owed, and named in the log before it starts.
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

enum code step_recover(struct decide *d)
{
    struct run *run = d->run;
    run->recovering = false;
    if (run_status_terminal(run->status)) return effect_add(d, EFFECT_ENDED, PROGRAM_TOP) ? OK : E_NOMEM;
    if (run->cancelling) {
        // advance() sweeps. A child in another process has not ended yet: it is asked again.
        if (d->input->timer == TIMER_LOOK && d->input->step != PROGRAM_TOP) let_go(d, d->input->step, d->input->logical);
        return OK;
    }
    enum code rc = may_begin(run) ? run->route->open(d) : OK;
    return rc ? rc : attempts_owed(d);
}
