// The time of a wait or a gate has come, and the end of the patience with a pause.
#include "json/make.h"
#include "kernel/route.h"

bool waits_until(const struct run *run, uint32_t step)
{
    return run->program->steps[step].kind == STEP_WAIT && kernel_member(run, step, "until");
}

// A timeout counts from the start although the wait itself does not.
static bool cut_by_timeout(const struct run *run, uint32_t step)
{
    const struct run_lane *s = lane_ref(run, step);
    int64_t timeout_ms = run->program->steps[step].timeout_ms;
    return timeout_ms > 0 && s->due_ms == s->started_ms + timeout_ms;
}

bool dag_of_day(const struct run *run, uint32_t step)
{
    return waits_until(run, step) && !cut_by_timeout(run, step);
}

static enum code approval_deadline(struct decide *d, uint32_t step)
{
    struct str what = json_text(kernel_member(d->run, step, "onTimeout"));
    if (str_is(what, "approve")) {
        struct moment m = moment_of(d, MOMENT_STEP_COMPLETED, step);
        m.by = EMITTER_SYSTEM;
        m.actor = STR("timeout");
        m.value = kernel_member(d->run, step, "captureResponse")
                      ? json_string(STR(""))
                      : JSON_OF(d->out->turn, {"approved", json_bool(true)}, {"by", json_word("timeout")});
        if (!json_ok(&m.value)) return error_nomem(d->err);
        m.duration_ms = elapsed_ms(d, lane_ref(d->run, step)->started_ms);
        return emit(d, &m, step);
    }
    struct fault fault = {.code = STR("APPROVAL_TIMEOUT"),
                          .message = STR("nobody answered in time (the field timeout of the approval)"),
                          .category = STR("timeout")};
    if (str_is(what, "reject"))
        fault = (struct fault){
            .code = STR("APPROVAL_REJECTED"), .message = STR("rejected by timeout"), .category = STR("business")};
    return fail_step(d, step, &fault);
}

// The timeout of a wait, when it is shorter than the wait, is what its timer was set to.
static bool wait_cut_short(const struct decide *d, uint32_t step)
{
    return cut_by_timeout(d->run, step) && json_integer(kernel_member(d->run, step, "durationMs"), 0) !=
                                               d->run->program->steps[step].timeout_ms;
}

enum code dag_wake(struct decide *d, uint32_t step)
{
    switch (d->run->program->steps[step].kind) {
    case STEP_WAIT: {
        if (wait_cut_short(d, step)) {
            struct fault fault;
            int64_t ms = d->run->program->steps[step].timeout_ms;
            enum code rc = late_fault(d, "the wait was cut short after %s (its field timeout)", ms, &fault);
            return rc ? rc : fail_step(d, step, &fault);
        }
        struct moment m = moment_of(d, MOMENT_STEP_COMPLETED, step);
        m.duration_ms = elapsed_ms(d, lane_ref(d->run, step)->started_ms);
        return emit(d, &m, step);
    }
    case STEP_APPROVAL:
        return approval_deadline(d, step);
    case STEP_EVENT:
        return await_late(d, step);
    case STEP_SUBRUN:
    case STEP_NOOP:
    case STEP_ECHO:
    case STEP_MERGE:
    case STEP_EXEC:
    case STEP_SHELL:
    case STEP_SCRIPT:
    case STEP_CANCEL:
    case STEP_LOOP:
    case STEP_HOST:
    case STEP_TASKS:
    case STEP_KIND_FIRST_UNUSED:
        return OK;
    }
    return OK;
}

// The pause stays; what is left in flight may still come to its end, and RESUME works (ES-6-6b, ES-6-6c).
enum code drain_over(struct decide *d)
{
    const struct run *run = d->run;
    bool now = run->status == RUN_STATUS_PAUSED && run->pause_cycle == d->input->logical;
    uint32_t left = now && !run->cancelling ? run_draining(run) : 0;
    if (left == 0 || run->drain_over == run->pause_cycle) return OK;
    struct moment m = moment_of(d, MOMENT_DRAIN_TIMEOUT, PROGRAM_TOP);
    m.by = EMITTER_SYSTEM;
    m.logical = run->pause_cycle;
    m.reason = STR("PAUSE_DRAIN_TIMEOUT");
    struct buf told = buf_of(64);
    buf_printf(&told, "%u in flight", left);
    m.detail = buf_keep(&told, d->out->turn);
    if (!m.detail.ptr) return error_nomem(d->err);
    return emit(d, &m, PROGRAM_TOP);
}
