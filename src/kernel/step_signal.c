// Signals: one decision each, recorded before it acts, at most once per signal id (I22, I23).
#include "json/make.h"
#include "kernel/route.h"

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
        if (run->program->steps[i].kind != STEP_APPROVAL || kernel_state(run, i) != NODE_RUNNING) continue;
        *only = i;
        count++;
    }
    return count;
}

static struct verdict judge_retry(const struct run *run, uint32_t step)
{
    if (step == PROGRAM_TOP) return refuse("STEP_NOT_FOUND", "the run has no such step");
    const struct run_lane *s = lane_ref(run, step);
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
    const struct run_lane *s = lane_ref(run, step);
    if (s->state == NODE_SUCCESS || s->state == NODE_FAILED || s->state == NODE_SKIPPED)
        return refuse("STEP_TERMINAL", "the step has ended");
    enum step_kind kind = run->program->steps[step].kind;
    bool idle = kind == STEP_WAIT || kind == STEP_APPROVAL || kind == STEP_EVENT;
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
    if (kernel_state(run, *step) == NODE_WAITING) return refuse("STEP_NOT_RUNNING", "the approval is not waiting yet");
    return kernel_state(run, *step) == NODE_RUNNING ? accepted
                                                   : refuse("STEP_TERMINAL", "the approval has been answered");
}

static const struct deferred_signal *find_deferred(const struct run *run, struct str id)
{
    const struct deferred_signal *deferred = run->deferred;
    while (deferred && !str_eq(deferred->signal.id, id)) deferred = deferred->next;
    return deferred;
}

// APPROVE and REJECT of a signal that waits: by another person than its sender.
static struct verdict judge_consent(const struct run *run, const struct signal *signal)
{
    const struct deferred_signal *deferred = find_deferred(run, signal->approves);
    if (!deferred) return refuse("SIGNAL_NOT_FOUND", "no signal of that id waits for an approval");
    if (signal->type == SIGNAL_APPROVE && str_eq(deferred->signal.actor, signal->actor))
        return refuse("AUTHZ_DENIED", "who asked for it cannot approve it");
    return accepted;
}

static struct verdict judge_params(const struct run *run, const struct signal *signal)
{
    const struct json *params = json_key(&signal->payload, "params");
    for (uint32_t i = 0; json_is(params, JSON_OBJECT) && i < params->count; i++) {
        struct str type = program_input_type(run->program, params->members[i].key);
        if (!input_type_fits(type, &params->members[i].value))
            return refuse("SIGNAL_INVALID_PAYLOAD", "an input is declared with another type");
    }
    return json_is(params, JSON_OBJECT) ? accepted : refuse("SIGNAL_INVALID_PAYLOAD", "there are no params");
}

static struct verdict judge_change(const struct run *run, const struct signal *signal, uint32_t step)
{
    if (step == PROGRAM_TOP) return refuse("STEP_NOT_FOUND", "the run has no such step");
    uint8_t state = kernel_state(run, step);
    if (state == NODE_SUCCESS || state == NODE_FAILED || state == NODE_SKIPPED)
        return refuse("STEP_TERMINAL", "the step has ended");
    if (signal->type == SIGNAL_UPDATE_TARGET) return accepted;
    const struct json *override = json_key(&signal->payload, "override");
    for (uint32_t i = 0; json_is(override, JSON_OBJECT) && i < override->count; i++)
        if (!step_kind_takes(run->program->steps[step].kind, override->members[i].key, &override->members[i].value))
            return refuse("INVALID_STEP_SCHEMA", "a step of this kind has no such member, or takes another type there");
    return json_is(override, JSON_OBJECT) ? accepted : refuse("SIGNAL_INVALID_PAYLOAD", "there is no override");
}

// The wait that an event is for: the step that it names, or the first that waits for it.
static const struct run_await *awaiting(const struct run *run, const struct signal *signal, uint32_t step)
{
    struct str name = json_text(json_key(&signal->payload, "event"));
    struct str correlation = json_text(json_key(&signal->payload, "correlation"));
    for (const struct run_await *a = kernel_await(run, NULL); a; a = kernel_await(run, a))
        if ((signal->step.len == 0 || step == kernel_place(run, a->lane)) && str_eq(a->name, name) &&
            str_eq(a->correlation, correlation))
            return a;
    return NULL;
}

static struct verdict judge_event(const struct run *run, const struct signal *signal, uint32_t step)
{
    if (signal->step.len > 0 && step == PROGRAM_TOP) return refuse("STEP_NOT_FOUND", "the run has no such step");
    return awaiting(run, signal, step) ? accepted : refuse("EVENT_NOT_AWAITED", "nothing there waits for this event");
}

// While what was done is undone, the other steps are as they are.
static struct verdict judge_undoing(const struct run *run, const struct signal *signal, uint32_t step)
{
    if (!run->undoing) return accepted;
    if (signal->type == SIGNAL_CANCEL)
        return refuse("RUN_CANCELLING", "the run undoes what it did, and ends then; EMERGENCY_STOP gives that up");
    bool of_step = signal->type == SIGNAL_RETRY_STEP || signal->type == SIGNAL_SKIP_STEP ||
                   signal->type == SIGNAL_INJECT_OVERRIDE;
    bool other = of_step && step != PROGRAM_TOP && !run->program->steps[step].undo;
    return other ? refuse("RUN_CANCELLING", "the run undoes what it did, and ends then") : accepted;
}

// The door has asked who may; the run records what it said (ES-1.2i).
static struct verdict judge_sender(const struct signal *signal)
{
    if (str_is(signal->denied, "AUTHZ_REASON_REQUIRED")) return refuse("AUTHZ_REASON_REQUIRED", "this needs a reason");
    return refuse("AUTHZ_DENIED", "the sender may not do this");
}

static struct verdict judge(const struct run *run, const struct signal *signal, uint32_t *step, enum path_time time)
{
    bool terminal = run_status_terminal(run->status);
    if (signal->approves.len > 0) return judge_consent(run, signal);
    if (signal->type == SIGNAL_ESCALATE_ALERT) return accepted;
    if (signal->type == SIGNAL_RETRY_RUN)
        return terminal ? accepted : refuse("RUN_NOT_TERMINAL", "the run has not ended");
    if (terminal) return refuse("RUN_TERMINAL", "the run has ended");
    if (signal->type == SIGNAL_EMERGENCY_STOP || (signal->type == SIGNAL_CANCEL && !run->undoing)) return accepted;
    if (run->cancelling) return refuse("RUN_CANCELLING", "the run is being cancelled");
    struct verdict undoing = judge_undoing(run, signal, *step);
    if (undoing.code) return undoing;
    // A child of a loop is a new step in every iteration: what was meant for one must not reach another.
    if (time == PATH_OVER) return refuse("STEP_TERMINAL", "that iteration of the loop is over");
    if (time == PATH_TO_COME) return refuse("STEP_NOT_RUNNING", "the loop has not come to that iteration");
    if (!run->route->by_hand && (signal->type == SIGNAL_RETRY_STEP || signal->type == SIGNAL_SKIP_STEP ||
                     signal->type == SIGNAL_INJECT_OVERRIDE))
        return refuse("SIGNAL_NOT_SUPPORTED",
                      "the steps of a playbook go by its policies and arcs; cancel or retry the run");
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
    case SIGNAL_DELIVER_EVENT:
        return judge_event(run, signal, *step);
    case SIGNAL_UPDATE_PARAMS:
        return judge_params(run, signal);
    case SIGNAL_INJECT_OVERRIDE:
    case SIGNAL_UPDATE_TARGET:
        return judge_change(run, signal, *step);
    case SIGNAL_ESCALATE_ALERT:
    case SIGNAL_CANCEL:
    case SIGNAL_EMERGENCY_STOP:
    case SIGNAL_RETRY_RUN:
    case SIGNAL_NONE:
        break;
    }
    return refuse("SIGNAL_NOT_SUPPORTED", "this signal is not supported");
}

// A signal, who decides it now, and under which id.
struct asked {
    const struct signal *signal;
    struct str decision_id;
    const struct signal *answer; // APPROVE or REJECT of a signal that waited; NULL: it is decided as it comes
};

static struct effect *decision(struct decide *d, const struct asked *asked)
{
    struct effect *effect = effect_add(d, EFFECT_DECISION, PROGRAM_TOP);
    if (!effect) return NULL;
    effect->signal = asked->signal;
    effect->decision_id = asked->decision_id;
    effect->settled = asked->answer != NULL;
    if (asked->answer) effect->answer = asked->answer->actor;
    return effect;
}

static struct moment moment_about(struct decide *d, enum moment_kind kind, const struct asked *asked)
{
    const struct signal *signal = asked->signal;
    struct moment m = moment_of(d, kind, PROGRAM_TOP);
    m.signal_id = signal->id;
    m.signal_type = str_from(signal_name(signal->type));
    m.signal_step = signal->step;
    m.reason = signal->reason;
    m.actor = signal->actor;
    m.role = signal->role;
    m.decision_id = asked->decision_id;
    return m;
}

static enum code record(struct decide *d, const struct asked *asked, const struct verdict *verdict)
{
    struct effect *effect = decision(d, asked);
    if (!effect) return E_NOMEM;
    effect->accepted = verdict->code == NULL;
    effect->error_code = verdict->code;
    effect->error_message = verdict->message;
    // The log is closed; the decision record alone tells it.
    if (run_status_terminal(d->run->status)) return kernel_decided(d->run, asked->signal->id, d->err);
    struct moment m = moment_about(d, verdict->code ? MOMENT_SIGNAL_REJECTED : MOMENT_SIGNAL_ACCEPTED, asked);
    if (verdict->code)
        m.fault = (struct fault){.code = str_from(verdict->code), .message = verdict->message};
    else if (signal_rule(asked->signal->type)->recorded)
        m.value = asked->signal->payload;
    return emit(d, &m, PROGRAM_TOP);
}

static enum code defer(struct decide *d, const struct asked *asked)
{
    struct effect *effect = decision(d, asked);
    if (!effect) return E_NOMEM;
    effect->deferred = true;
    struct moment m = moment_about(d, MOMENT_SIGNAL_DEFERRED, asked);
    struct signal held = *asked->signal;
    held.if_seq = 0; // it has held; what the run is like when another person agrees is for that person to see
    if (!signal_write(&held, d->out->turn, &m.value)) return error_nomem(d->err);
    return emit(d, &m, PROGRAM_TOP);
}

static enum code pause_run(struct decide *d, const struct signal *signal)
{
    INVARIANT(d->run->status == RUN_STATUS_RUNNING);
    struct moment m = moment_of(d, MOMENT_RUN_PAUSED, PROGRAM_TOP);
    m.logical = d->run->pause_cycle + 1;
    m.signal_id = signal->id;
    m.reason = signal->reason;
    enum code rc = emit(d, &m, PROGRAM_TOP);
    if (rc || d->input->idle) return rc;
    const struct run *run = d->run;
    bool interrupts = behaviour_of(run->start.profile)->interrupts && run->start.cancel_on_pause;
    return interrupts ? attempts_interrupt(d) : drain_timer(d);
}

static enum code resume_run(struct decide *d, const struct signal *signal)
{
    struct run *run = d->run;
    struct moment m = moment_of(d, MOMENT_RUN_RESUMED, PROGRAM_TOP);
    INVARIANT(run->status == RUN_STATUS_PAUSED);
    m.logical = run->pause_cycle;
    m.signal_id = signal->id;
    m.reason = signal->reason;
    enum code rc = emit(d, &m, PROGRAM_TOP);
    if (rc || d->input->idle || !run_goes(run)) return rc; // full: what is owed is found when the next segment begins
    return attempts_resume(d);
}

static enum code skip_step(struct decide *d, const struct signal *signal, uint32_t step)
{
    struct moment m = moment_of(d, MOMENT_STEP_SKIPPED, step);
    uint8_t state = kernel_state(d->run, step);
    bool tried = kernel_attempt(d->run, step).logical > 0;
    if (tried && (state == NODE_HELD || state == NODE_DELAYED)) m.logical++; // the last attempt has its outcome (I14)
    m.reason = STR(SKIP_OPERATOR);
    m.detail = signal->reason;
    return emit(d, &m, step);
}

// An object with who agreed and why; with captureResponse the words alone.
static struct json answer_value(struct arena *turn, const struct signal *signal, bool words)
{
    if (words) return json_string(signal->reason);
    return JSON_OF(turn, {"approved", json_bool(true)}, {"by", json_some(signal->actor)},
                   {"fields", json_ref(json_key(&signal->payload, "fields"))}, {"reason", json_some(signal->reason)});
}

static struct json event_value(struct arena *turn, const struct signal *signal)
{
    const struct json *payload = &signal->payload;
    return JSON_OF(turn, {"correlation", json_ref(json_key(payload, "correlation"))},
                   {"data", json_ref(json_key(payload, "data"))}, {"event", json_ref(json_key(payload, "event"))},
                   {"id", json_ref(json_key(payload, "id"))}, {"source", json_ref(json_key(payload, "source"))});
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
    m.value = answer_value(d->out->turn, signal, kernel_member(d->run, step, "captureResponse"));
    if (!json_ok(&m.value)) return error_nomem(d->err);
    m.actor = signal->actor;
    m.duration_ms = elapsed_ms(d, lane_ref(d->run, step)->started_ms);
    return emit(d, &m, step);
}

// What has happened outside is the result of the wait.
static enum code deliver(struct decide *d, const struct signal *signal, uint32_t step)
{
    const struct run_await *wait = awaiting(d->run, signal, step);
    INVARIANT(wait); // judge_event
    const struct run_lane *s = lane_ref(d->run, wait->lane);
    struct input result = *d->input;
    result.kind = INPUT_RESULT;
    result.step = wait->lane;
    result.logical = s->logical;
    result.engine = s->engine;
    result.ok = true;
    result.duration_ms = elapsed_ms(d, s->started_ms);
    result.value = event_value(d->out->turn, signal);
    if (!json_ok(&result.value)) return error_nomem(d->err);
    const struct input *in = d->input;
    d->input = &result;
    enum code rc = d->run->route->done(d, wait->lane);
    d->input = in;
    return rc;
}

static enum code answer_run(struct decide *d, const struct signal *signal)
{
    if (signal->type == SIGNAL_REJECT)
        return run_end(d, MOMENT_RUN_CANCELLED, &(struct cause){.name = signal->reason, .signal = signal->id});
    struct moment m = moment_of(d, MOMENT_RUN_APPROVED, PROGRAM_TOP);
    m.by = EMITTER_PLANNER;
    m.actor = signal->actor;
    m.reason = signal->reason;
    enum code rc = emit(d, &m, PROGRAM_TOP);
    return rc || d->input->idle || !may_begin(d->run) ? rc : d->run->route->open(d);
}

static enum code settle_deferred(struct decide *d, const struct signal *answer);

static enum code apply(struct decide *d, const struct signal *signal, uint32_t step)
{
    switch (signal->type) {
    case SIGNAL_PAUSE:
        return pause_run(d, signal);
    case SIGNAL_RESUME:
        return resume_run(d, signal);
    case SIGNAL_RETRY_STEP:
        return d->input->idle ? delay_step(d, step, 0) : start_attempt(d, step, kernel_attempt(d->run, step).logical + 1);
    case SIGNAL_SKIP_STEP:
        return skip_step(d, signal, step);
    case SIGNAL_APPROVE:
    case SIGNAL_REJECT:
        if (signal->approves.len > 0) return settle_deferred(d, signal);
        return step == PROGRAM_TOP ? answer_run(d, signal) : answer_gate(d, signal, step);
    case SIGNAL_DELIVER_EVENT:
        return deliver(d, signal, step);
    case SIGNAL_RETRY_RUN: {
        struct effect *effect = effect_add(d, EFFECT_RETRY_RUN, PROGRAM_TOP);
        if (effect) effect->signal = signal;
        return effect ? OK : E_NOMEM;
    }
    // Folded by their acceptance; advance() does the rest.
    case SIGNAL_CANCEL:
    case SIGNAL_EMERGENCY_STOP:
    case SIGNAL_UPDATE_PARAMS:
    case SIGNAL_INJECT_OVERRIDE:
    case SIGNAL_UPDATE_TARGET:
    case SIGNAL_ESCALATE_ALERT:
    case SIGNAL_NONE:
        return OK;
    }
    return OK;
}

// The condition is compared here, where nothing can come between it and the decision, whichever engine the signal was sent to.
static enum code refuse_moved(struct decide *d, const struct asked *asked)
{
    struct effect *effect = decision(d, asked);
    if (!effect) return E_NOMEM;
    effect->moved = true;
    effect->error_code = "RUN_HAS_MOVED";
    effect->error_message = arena_format(d->out->turn, "the run is at event %llu", (unsigned long long)d->input->seq);
    return effect->error_message.ptr ? OK : error_nomem(d->err);
}

static enum code decide_signal(struct decide *d, const struct asked *asked)
{
    const struct signal *signal = asked->signal;
    if (signal->denied.len == 0 && signal->if_seq > 0 && signal->if_seq != d->input->seq) return refuse_moved(d, asked);
    enum path_time time = PATH_NOW;
    uint32_t step = signal->step.len > 0 ? find_path(d->run, signal->step, &time) : PROGRAM_TOP;
    struct verdict verdict = signal->denied.len > 0 ? judge_sender(signal) : judge(d->run, signal, &step, time);
    if (!verdict.code && asked->answer && asked->answer->type == SIGNAL_REJECT)
        verdict = refuse("APPROVAL_REJECTED", "the approval was refused");
    if (!verdict.code && signal->requires_approval && !asked->answer) return defer(d, asked);
    enum code rc = record(d, asked, &verdict);
    return rc || verdict.code ? rc : apply(d, signal, step);
}

// It is decided with the run as it is now; the run may have gone on since it was asked.
static enum code settle_deferred(struct decide *d, const struct signal *answer)
{
    const struct deferred_signal *deferred = find_deferred(d->run, answer->approves);
    INVARIANT(deferred); // judge_consent
    struct asked asked = {.signal = &deferred->signal, .decision_id = deferred->decision_id, .answer = answer};
    struct moment m = moment_of(d, MOMENT_SIGNAL_SETTLED, PROGRAM_TOP);
    m.signal_id = deferred->signal.id;
    m.actor = answer->actor;
    m.reason = answer->reason;
    enum code rc = emit(d, &m, PROGRAM_TOP);
    return rc ? rc : decide_signal(d, &asked);
}

enum code step_signal(struct decide *d)
{
    struct asked asked = {.signal = d->input->signal, .decision_id = d->input->decision_id};
    if (!signal_seen(d->run, asked.signal->id)) return decide_signal(d, &asked);
    struct effect *effect = decision(d, &asked);
    if (!effect) return E_NOMEM;
    effect->duplicate = true;
    return OK;
}
