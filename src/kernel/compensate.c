// Undoing what was done (ADR 0050). A step with `compensate` has another that undoes it: a step like any, which depends on it alone and
// waits until the run is about to fail or to be cancelled. Then those whose step has succeeded run one after the other, the one whose step
// ended last first, and the run ends. The log needs no word of its own for it: the first of them that begins says that the run undoes.
#include "kernel/route.h"

// Whether it could begin, were it its turn.
static bool waits(const struct run *run, uint32_t step)
{
    return run->lanes[step].state == NODE_WAITING && run->nodes[step].waiting == 0 && run->nodes[step].success > 0;
}

static uint32_t first_undo(const struct run *run)
{
    return run->program->top_count - run->program->undo_count;
}

static uint32_t next_undo(const struct run *run)
{
    uint32_t found = PROGRAM_TOP, ended = 0;
    for (uint32_t i = first_undo(run); i < run->program->top_count; i++) {
        uint32_t of = run->nodes[run->program->steps[i].deps[0]].ended;
        if (!waits(run, i) || of <= ended) continue;
        found = i;
        ended = of;
    }
    return found;
}

bool undo_open(const struct run *run)
{
    if (run->emergency || run->program->undo_count == 0) return false;
    for (uint32_t i = first_undo(run); i < run->program->top_count; i++)
        if (waits(run, i) || run->lanes[i].state == NODE_DELAYED || run->lanes[i].state == NODE_RUNNING) return true;
    return false;
}

bool undo_due(const struct run *run)
{
    if (run->program->undo_count == 0 || run->emergency || run_status_terminal(run->status) || next_undo(run) == PROGRAM_TOP)
        return false;
    if (run->undoing) {
        bool open = run->in_flight > 0 || !run_goes(run);
        for (uint32_t i = first_undo(run); !open && i < run->program->top_count; i++) open = run->lanes[i].state == NODE_DELAYED;
        return !open;
    }
    enum moment_kind end = kernel_end(run);
    return end == MOMENT_RUN_FAILED || end == MOMENT_RUN_CANCELLED;
}

bool kernel_undone(const struct run *run, uint32_t step)
{
    const struct program *program = run->program;
    for (uint32_t k = 0; program->undo_count > 0 && k < program->steps[step].dependent_count; k++) {
        uint32_t by = program->steps[step].dependents[k];
        if (program->steps[by].undo && run->lanes[by].logical > 0 && run->lanes[by].state != NODE_SKIPPED) return true;
    }
    return false;
}

bool kernel_undoes_next(const struct run *run, uint32_t step)
{
    return undo_due(run) && next_undo(run) == step;
}

enum code undo_begin(struct decide *d)
{
    struct run *run = d->run;
    enum code rc = OK;
    if (d->input->idle || run->rotating) return OK; // RECOVER begins it
    if (run->status == RUN_STATUS_PAUSED) {
        struct moment m = moment_of(d, MOMENT_RUN_RESUMED, PROGRAM_TOP);
        m.logical = run->pause_cycle;
        m.signal_id = run->cancel_signal;
        m.reason = run->cancel_reason;
        rc = emit(d, &m, PROGRAM_TOP);
    }
    while (!rc && undo_due(run)) { // more than one: what needs no executor has ended when it has begun
        uint32_t step = next_undo(run);
        rc = start_attempt(d, step, run->lanes[step].logical + 1);
    }
    return rc;
}

void undo_fold(struct run *run)
{
    if (!run->undoing) run->undoing = run->cancelling ? UNDO_CANCELLED : UNDO_FAILED;
    run->cancelling = false;
}

enum code undo_spare(struct decide *d)
{
    enum code rc = OK;
    for (uint32_t i = first_undo(d->run); !rc && i < d->run->program->top_count; i++) {
        if (d->run->lanes[i].state != NODE_WAITING) continue;
        struct moment m = moment_of(d, MOMENT_STEP_SKIPPED, i);
        m.reason = STR(SKIP_NOTHING_TO_UNDO);
        rc = emit(d, &m, i);
    }
    return rc;
}
