// A run that begins with the past of another one: recorded again under its own name, then taken up as after a crash. Time
// that has passed since does not count: what was left of a wait, a deadline or a delay is left of it now.
#include "kernel/route.h"

// What goes on in this run begins, as far as clocks and names are concerned, in this run.
static enum code set_forward(struct decide *d, struct moment *m, uint32_t step, int64_t gap)
{
    const struct program_step *ps = &d->run->program->steps[step];
    if (waits_until(d->run, step)) return OK; // for a moment that everybody shares
    if (m->due_ms > 0) m->due_ms += gap;
    if (m->kind == MOMENT_STEP_DELAYED) return OK;
    m->at_ms += gap;
    if (ps->kind != STEP_SUBRUN || json_key(&ps->with, "fanOut")) return OK;
    m->run_ref = kernel_child_name(d->run->ids.run, m->step, m->logical, d->out->turn);
    return m->run_ref.ptr ? OK : error_nomem(d->err);
}

enum code dag_again(struct decide *d, const struct past *past, uint32_t at)
{
    struct moment m = past->moments[at];
    int64_t gap = d->input->now_ms > past->at_ms ? d->input->now_ms - past->at_ms : 0;
    uint32_t step = PROGRAM_TOP;
    if (m.start) {
        m.start = d->input->start;
        m.at_ms = d->input->now_ms;
    }
    if (moment_is_step(m.kind)) {
        step = kernel_find(d->run, m.step);
        if (step == PROGRAM_TOP)
            return error_set(d->err, E_CORRUPT,
                             "run %.*s: the past names step \"%.*s\", which its document does not have",
                             STR_ARG(d->run->ids.run), STR_ARG(m.step));
        if (m.kind == MOMENT_STEP_COMPLETED && m.run_ref.len == 0) m.run_ref = past->from_run;
        enum code rc = past->open[at] ? set_forward(d, &m, step, gap) : OK;
        if (rc) return rc;
    }
    return emit(d, &m, step);
}

// A pause was of the run that was paused.
static enum code lift_pause(struct decide *d)
{
    struct moment m = moment_of(d, MOMENT_RUN_RESUMED, PROGRAM_TOP);
    m.logical = d->run->pause_cycle;
    m.actor = d->input->start->triggered_by;
    m.reason = STR("forked");
    return emit(d, &m, PROGRAM_TOP);
}

enum code take_up_past(struct decide *d)
{
    const struct past *past = d->input->past;
    enum code rc = OK;
    for (uint32_t i = 0; !rc && i < past->count; i++)
        rc = d->run->route->again(d, past, i);
    if (!rc && d->run->status == RUN_STATUS_PAUSED) rc = lift_pause(d);
    // Before its start a run is given nothing: begin_run does that. Nor after one of its steps has cancelled it.
    bool takes = d->run->started_ms > 0 && !d->run->cancelling;
    for (uint32_t i = 0; !rc && takes && i < d->input->reuse_count; i++) rc = reuse_one(d, &d->input->reuse[i]);
    return rc || d->input->idle ? rc : step_recover(d);
}
