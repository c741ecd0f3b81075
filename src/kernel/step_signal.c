// Signals: one decision each, recorded before it acts, at most once per signal id (I22, I23).
#include "kernel/inside.h"

struct verdict {
    const char *code; // NULL: accepted
    struct str message;
};

static const struct verdict accepted;

static struct verdict refuse(const char *code, const char *message)
{
    return (struct verdict){code, str_from(message)};
}

static uint32_t waiting_gates(const struct run *run, uint32_t *only)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < run->program->step_count; i++) {
        if (run->program->steps[i].kind != STEP_APPROVAL || run->steps[i].state != NODE_RUNNING) continue;
        *only = i;
        count++;
    }
    return count;
}

static struct verdict judge_retry(const struct run *run, uint32_t step)
{
    if (step == PROGRAM_TOP) return refuse("STEP_NOT_FOUND", "the run has no such step");
    const struct run_step *s = &run->steps[step];
    if (s->state == NODE_RUNNING || s->state == NODE_WAITING || s->state == NODE_DELAYED)
        return refuse("STEP_NOT_TERMINAL", "the step has not ended");
    if (s->state == NODE_FAILED)
        return refuse("STEP_FAILURE_SETTLED", "the failure has already been passed on to other steps; retry the run "
                                              "when it has ended, or use onStepFailure: hold");
    if (s->state != NODE_HELD) return refuse("STEP_NOT_FAILED", "the step did not fail");
    if (run->status == RUN_STATUS_PAUSED) return refuse("RUN_IS_PAUSED", "resume the run first");
    return accepted;
}

static struct verdict judge_skip(const struct run *run, uint32_t step)
{
    if (step == PROGRAM_TOP) return refuse("STEP_NOT_FOUND", "the run has no such step");
    const struct run_step *s = &run->steps[step];
    if (s->state == NODE_SUCCESS || s->state == NODE_FAILED || s->state == NODE_SKIPPED)
        return refuse("STEP_TERMINAL", "the step has ended");
    enum step_kind kind = run->program->steps[step].kind;
    bool idle = kind == STEP_WAIT || kind == STEP_APPROVAL;
    if (s->state == NODE_RUNNING && !idle)
        return refuse("STEP_NOT_TERMINAL", "the step is running; cancel the run or let it end");
    return accepted;
}

// APPROVE and REJECT: of a gate, or of a run that waits for approval. *step becomes the gate.
static struct verdict judge_answer(const struct run *run, const struct signal *signal, uint32_t *step)
{
    if (run->status == RUN_STATUS_PENDING) {
        if (signal->step.len > 0) return refuse("STEP_NOT_RUNNING", "the run has not started");
        return run->start.requires_approval ? accepted
                                            : refuse("NOTHING_TO_ANSWER", "the run does not wait for an approval");
    }
    if (signal->step.len == 0) {
        uint32_t count = waiting_gates(run, step);
        if (count == 0) return refuse("NOTHING_TO_ANSWER", "no approval is waiting");
        return count == 1 ? accepted : refuse("STEP_REQUIRED", "several approvals are waiting: name one as RUN/STEP");
    }
    if (*step == PROGRAM_TOP) return refuse("STEP_NOT_FOUND", "the run has no such step");
    if (run->program->steps[*step].kind != STEP_APPROVAL)
        return refuse("NOT_AN_APPROVAL", "the step is not an approval");
    if (run->steps[*step].state == NODE_WAITING) return refuse("STEP_NOT_RUNNING", "the approval is not waiting yet");
    return run->steps[*step].state == NODE_RUNNING ? accepted
                                                   : refuse("STEP_TERMINAL", "the approval has been answered");
}

static struct verdict judge(const struct run *run, const struct signal *signal, uint32_t *step, enum path_time time)
{
    bool terminal = run_status_terminal(run->status);
    if (signal->type == SIGNAL_RETRY_RUN)
        return terminal ? accepted : refuse("RUN_NOT_TERMINAL", "the run has not ended");
    if (terminal) return refuse("RUN_TERMINAL", "the run has ended");
    if (signal->type == SIGNAL_CANCEL || signal->type == SIGNAL_EMERGENCY_STOP) return accepted;
    if (run->cancelling) return refuse("RUN_CANCELLING", "the run is being cancelled");
    // A child of a loop is a new step in every iteration: what was meant for one must not reach another.
    if (time == PATH_OVER) return refuse("STEP_TERMINAL", "that iteration of the loop is over");
    if (time == PATH_TO_COME) return refuse("STEP_NOT_RUNNING", "the loop has not come to that iteration");
    switch (signal->type) {
    case SIGNAL_PAUSE:
        if (run->status == RUN_STATUS_PAUSED) return refuse("RUN_ALREADY_PAUSED", "the run is paused");
        return run->status == RUN_STATUS_RUNNING ? accepted : refuse("INVALID_TRANSITION", "the run has not started");
    case SIGNAL_RESUME:
        return run->status == RUN_STATUS_PAUSED ? accepted : refuse("RUN_NOT_PAUSED", "the run is not paused");
    case SIGNAL_RETRY_STEP:
    case SIGNAL_SKIP_STEP:
        if (run->status == RUN_STATUS_PENDING || run->status == RUN_STATUS_APPROVED)
            return refuse("INVALID_TRANSITION", "the run has not started");
        return signal->type == SIGNAL_RETRY_STEP ? judge_retry(run, *step) : judge_skip(run, *step);
    case SIGNAL_APPROVE:
    case SIGNAL_REJECT:
        return judge_answer(run, signal, step);
    case SIGNAL_CANCEL:
    case SIGNAL_EMERGENCY_STOP:
    case SIGNAL_RETRY_RUN:
    case SIGNAL_NONE:
        break;
    }
    return refuse("SIGNAL_NOT_SUPPORTED", "this signal is not supported");
}

static enum code record(struct decide *d, const struct signal *signal, const struct verdict *verdict)
{
    struct effect *effect = effect_add(d, EFFECT_DECISION, PROGRAM_TOP);
    if (!effect) return E_NOMEM;
    effect->signal = signal;
    effect->accepted = verdict->code == NULL;
    effect->error_code = verdict->code;
    effect->error_message = verdict->message;
    // The log is closed; the decision record alone tells it.
    if (run_status_terminal(d->run->status)) return kernel_decided(d->run, signal->id, d->err);
    struct moment m = moment_of(d, verdict->code ? MOMENT_SIGNAL_REJECTED : MOMENT_SIGNAL_ACCEPTED, PROGRAM_TOP);
    m.signal_id = signal->id;
    m.signal_type = str_from(signal_name(signal->type));
    m.signal_step = signal->step;
    m.reason = signal->reason;
    m.actor = signal->actor;
    m.role = signal->role;
    m.decision_id = d->input->decision_id;
    if (verdict->code) m.fault = (struct fault){.code = str_from(verdict->code), .message = verdict->message};
    return emit(d, &m, PROGRAM_TOP);
}

static enum code pause_run(struct decide *d, const struct signal *signal)
{
    struct moment m = moment_of(d, MOMENT_RUN_PAUSED, PROGRAM_TOP);
    m.logical = d->run->pause_cycle + 1;
    m.signal_id = signal->id;
    m.reason = signal->reason;
    return emit(d, &m, PROGRAM_TOP);
}

static enum code resume_run(struct decide *d, const struct signal *signal)
{
    struct run *run = d->run;
    struct moment m = moment_of(d, MOMENT_RUN_RESUMED, PROGRAM_TOP);
    m.logical = run->pause_cycle;
    m.signal_id = signal->id;
    m.reason = signal->reason;
    enum code rc = emit(d, &m, PROGRAM_TOP);
    if (rc || d->input->idle) return rc;
    rc = redispatch_lost(d);
    for (uint32_t i = 0; !rc && run->delayed > 0 && i < run->program->step_count; i++) {
        if (run->steps[i].state != NODE_DELAYED) continue;
        if (run->steps[i].due_ms <= d->input->now_ms) {
            rc = start_attempt(d, i, run->steps[i].logical + 1);
            continue;
        }
        // Its timer may have fired during the pause, on a clock that was not set back. Twice is harmless.
        struct effect *timer = effect_add(d, EFFECT_TIMER, i);
        if (!timer) return E_NOMEM;
        timer->timer = TIMER_RETRY;
        timer->due_ms = run->steps[i].due_ms;
    }
    return rc;
}

static enum code skip_step(struct decide *d, const struct signal *signal, uint32_t step)
{
    struct moment m = moment_of(d, MOMENT_STEP_SKIPPED, step);
    uint8_t state = d->run->steps[step].state;
    if (state == NODE_HELD || state == NODE_DELAYED) m.logical++; // the last attempt has its outcome (I14)
    m.reason = STR(SKIP_OPERATOR);
    m.detail = signal->reason;
    return emit(d, &m, step);
}

static bool answer_value(struct arena *turn, const struct signal *signal, struct json *out)
{
    if (!json_object_with(turn, 4, out)) return false;
    if (!json_put(turn, out, STR("approved"), json_bool(true))) return false;
    if (signal->actor.len > 0 && !json_put(turn, out, STR("by"), json_string(signal->actor))) return false;
    const struct json *fields = json_key(&signal->payload, "fields");
    if (fields && !json_put(turn, out, STR("fields"), *fields)) return false;
    return signal->reason.len == 0 || json_put(turn, out, STR("reason"), json_string(signal->reason));
}

static enum code answer_gate(struct decide *d, const struct signal *signal, uint32_t step)
{
    if (signal->type == SIGNAL_REJECT) {
        struct fault fault = {.code = STR("APPROVAL_REJECTED"),
                              .message = signal->reason.len > 0 ? signal->reason : STR("rejected"),
                              .category = STR("business")};
        return fail_step(d, step, &fault);
    }
    struct moment m = moment_of(d, MOMENT_STEP_COMPLETED, step);
    if (!answer_value(d->out->turn, signal, &m.value))
        return error_set(d->err, E_NOMEM, "out of memory while deciding");
    m.actor = signal->actor;
    m.duration_ms = elapsed_ms(d, d->run->steps[step].started_ms);
    return emit(d, &m, step);
}

static enum code answer_run(struct decide *d, const struct signal *signal)
{
    if (signal->type == SIGNAL_REJECT) {
        struct moment m = moment_of(d, MOMENT_RUN_CANCELLED, PROGRAM_TOP);
        m.reason = signal->reason;
        m.signal_id = signal->id;
        m.counts = d->run->counts;
        enum code rc = emit(d, &m, PROGRAM_TOP);
        if (rc) return rc;
        return effect_add(d, EFFECT_ENDED, PROGRAM_TOP) ? OK : E_NOMEM;
    }
    struct moment m = moment_of(d, MOMENT_RUN_APPROVED, PROGRAM_TOP);
    m.by = EMITTER_PLANNER;
    m.actor = signal->actor;
    m.reason = signal->reason;
    enum code rc = emit(d, &m, PROGRAM_TOP);
    return rc || d->input->idle ? rc : begin_run(d);
}

static enum code apply(struct decide *d, const struct signal *signal, uint32_t step)
{
    switch (signal->type) {
    case SIGNAL_PAUSE:
        return pause_run(d, signal);
    case SIGNAL_RESUME:
        return resume_run(d, signal);
    case SIGNAL_RETRY_STEP:
        return d->input->idle ? delay_step(d, step, 0) : start_attempt(d, step, d->run->steps[step].logical + 1);
    case SIGNAL_SKIP_STEP:
        return skip_step(d, signal, step);
    case SIGNAL_APPROVE:
    case SIGNAL_REJECT:
        return step == PROGRAM_TOP ? answer_run(d, signal) : answer_gate(d, signal, step);
    case SIGNAL_RETRY_RUN:
        return effect_add(d, EFFECT_RETRY_RUN, PROGRAM_TOP) ? OK : E_NOMEM;
    case SIGNAL_CANCEL:
    case SIGNAL_EMERGENCY_STOP: // folded by its acceptance; advance() sweeps
    case SIGNAL_NONE:
        return OK;
    }
    return OK;
}

enum code step_signal(struct decide *d)
{
    const struct signal *signal = d->input->signal;
    if (signal_seen(d->run, signal->id)) {
        struct effect *effect = effect_add(d, EFFECT_DECISION, PROGRAM_TOP);
        if (!effect) return E_NOMEM;
        effect->signal = signal;
        effect->duplicate = true;
        return OK;
    }
    enum path_time time = PATH_NOW;
    uint32_t step = signal->step.len > 0 ? find_path(d->run, signal->step, &time) : PROGRAM_TOP;
    struct verdict verdict = judge(d->run, signal, &step, time);
    enum code rc = record(d, signal, &verdict);
    return rc || verdict.code ? rc : apply(d, signal, step);
}
