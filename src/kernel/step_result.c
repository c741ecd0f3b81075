// What came out of an attempt: completed, tried again, or failed for good. Also the end of an iteration of a loop.
#include "kernel/net_inside.h"

static enum code emit_failure(struct decide *d, enum moment_kind kind, uint32_t step, const struct fault *fault)
{
    struct moment m = moment_of(d, kind, step);
    m.by = EMITTER_WORKER;
    m.fault = *fault;
    bool told = d->input->kind == INPUT_RESULT && d->input->step == step;
    m.duration_ms = told ? d->input->duration_ms : elapsed_ms(d, d->run->steps[step].started_ms);
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
    delayed.logical = d->run->steps[step].logical + 1;
    delayed.engine = 1;
    delayed.due_ms = due_ms;
    enum code rc = emit(d, &delayed, step);
    if (rc || d->input->idle) return rc;
    return step_timer_set(d, step);
}

enum code fail_step(struct decide *d, uint32_t step, const struct fault *fault)
{
    struct run *run = d->run;
    struct run_step *s = &run->steps[step];
    if (kernel_retry(run, step, fault) != RETRY_AGAIN) return fail_for_good(d, step, fault);
    enum code rc = emit_failure(d, MOMENT_ATTEMPT_FAILED, step, fault);
    if (rc) return rc;

    int64_t delay = retry_delay_ms(&run->program->steps[step].retry, s->logical - s->base, d->input->random);
    if (delay == 0 && run->status == RUN_STATUS_RUNNING && !d->input->idle)
        return start_attempt(d, step, s->logical + 1);
    return delay_step(d, step, delay);
}

// A result that is not of the attempt in flight changes nothing and is kept for audit (I14, C-19).
static enum code late(struct decide *d)
{
    struct moment m = moment_of(d, MOMENT_LATE_RESULT, d->input->step);
    m.logical = d->input->logical;
    m.engine = d->input->engine;
    m.fault = d->input->fault;
    m.duration_ms = d->input->duration_ms;
    m.reason = d->input->ok ? STR("completed") : STR("failed");
    return emit(d, &m, d->input->step);
}

enum code step_result(struct decide *d)
{
    const struct input *in = d->input;
    if (d->run->net) return net_result(d);
    INVARIANT(in->step < d->run->program->step_count);
    const struct run_step *s = &d->run->steps[in->step];
    if (s->state != NODE_RUNNING || s->logical != in->logical || s->engine != in->engine ||
        run_status_terminal(d->run->status))
        return late(d);
    if (in->lost) return attempt_lost(d, in->step);
    if (!in->ok) {
        // Stopped by a pause, not failed.
        bool interrupted = s->stopping && !d->run->cancelling && str_is(in->fault.code, "CANCELLED");
        if (interrupted) return attempt_lost(d, in->step);
        if (!d->run->cancelling) return fail_step(d, in->step, &in->fault);
        struct fault fault = in->fault;
        fault.retryable = false;
        return fail_step(d, in->step, &fault);
    }
    struct moment m = moment_of(d, MOMENT_STEP_COMPLETED, in->step);
    m.by = EMITTER_WORKER;
    m.value = in->value;
    m.blob = in->blob;
    m.has_blob = in->has_blob;
    m.blob_size = in->blob_size;
    m.artifacts = in->artifacts;
    m.truncated = in->truncated;
    m.duration_ms = in->duration_ms;
    return emit(d, &m, in->step);
}

// The output of a loop is the output of the last child of its last iteration that completed.
static enum code loop_done(struct decide *d, uint32_t loop)
{
    const struct program_step *ps = &d->run->program->steps[loop];
    struct moment m = moment_of(d, MOMENT_STEP_COMPLETED, loop);
    const struct run_step *last = NULL;
    for (uint32_t i = 0; i < ps->child_count; i++) {
        const struct run_step *child = &d->run->steps[ps->first_child + i];
        if (ps->first_child + i != ps->until && child->state == NODE_SUCCESS) last = child;
    }
    // Copied: an outer loop may begin its next iteration before the moment is stored.
    if (last && last->value && !json_copy(d->out->turn, last->value, &m.value)) return error_nomem(d->err);
    if (last && last->blob) {
        m.has_blob = true;
        m.blob = last->blob->sha256;
        m.blob_size = last->blob->size;
    }
    m.duration_ms = elapsed_ms(d, d->run->steps[loop].started_ms);
    return emit(d, &m, loop);
}

enum code iteration_over(struct decide *d, uint32_t loop)
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
        fault.code = STR("LOOP_EXHAUSTED");
        fault.message = STR("max_iterations reached before the condition held");
        return fail_step(d, loop, &fault);
    case LOOP_BODY_FAILED:
        return fail_step(d, loop, &fault);
    case LOOP_AGAIN:
        break;
    }
    struct moment m = moment_of(d, MOMENT_ITERATION_STARTED, loop);
    m.logical = d->run->steps[loop].iteration + 1;
    return emit(d, &m, loop);
}
