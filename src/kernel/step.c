// Routes an input, then advances the run as far as it goes: decide every decidable step, start what may start, end what
// has ended.
#include "kernel/net_inside.h"

#include <string.h>

struct moment moment_of(const struct decide *d, enum moment_kind kind, uint32_t step)
{
    struct moment m = {.kind = kind, .by = EMITTER_ENGINE, .logical = 1, .engine = 1, .at_ms = d->input->now_ms};
    if (step == PROGRAM_TOP) return m;
    const struct run_step *s = &d->run->steps[step];
    m.step = kernel_path(d->run, step, d->out->turn);
    m.logical = s->logical > 0 ? s->logical : 1;
    m.engine = s->engine > 0 ? s->engine : 1;
    return m;
}

int64_t elapsed_ms(const struct decide *d, int64_t since_ms)
{
    return d->input->now_ms > since_ms ? d->input->now_ms - since_ms : 0;
}

enum code emit(struct decide *d, struct moment *moment, uint32_t step)
{
    struct outcome *out = d->out;
    if (step != PROGRAM_TOP && !moment->step.ptr) return error_nomem(d->err);
    struct moment *grown = arena_grow(out->turn, out->moments, out->moment_count, out->moment_count + 1, sizeof(*grown),
                                      &out->moment_capacity);
    if (!grown) return error_nomem(d->err);
    out->moments = grown;
    out->moments[out->moment_count++] = *moment;
    return fold_at(d->run, moment, step, d->err);
}

struct effect *effect_add(struct decide *d, enum effect_kind kind, uint32_t step)
{
    struct outcome *out = d->out;
    struct effect *grown = arena_grow(out->turn, out->effects, out->effect_count, out->effect_count + 1, sizeof(*grown),
                                      &out->effect_capacity);
    if (!grown) {
        (void)error_nomem(d->err);
        return NULL;
    }
    out->effects = grown;
    struct effect *effect = &out->effects[out->effect_count++];
    memset(effect, 0, sizeof(*effect));
    effect->kind = kind;
    effect->step = step;
    if (step == PROGRAM_TOP) return effect;
    effect->logical = d->run->steps[step].logical;
    effect->engine = d->run->steps[step].engine;
    return effect;
}

enum code timer_add(struct decide *d, uint32_t step, enum timer_kind kind, int64_t due_ms, int64_t since_ms)
{
    struct effect *timer = effect_add(d, EFFECT_TIMER, step);
    if (!timer) return E_NOMEM;
    timer->timer = kind;
    timer->due_ms = due_ms;
    if (since_ms != TIMER_OF_DAY) timer->lasts_ms = due_ms > since_ms ? due_ms - since_ms : 1;
    return OK;
}

uint32_t ready_pop(struct run *run)
{
    uint32_t step = run->ready_head;
    if (step == PROGRAM_TOP) return step;
    uint32_t link = run->steps[step].next_ready;
    run->ready_head = link == READY_LAST ? PROGRAM_TOP : link - 2;
    if (run->ready_head == PROGRAM_TOP) run->ready_tail = PROGRAM_TOP;
    run->steps[step].next_ready = READY_OUT;
    return step;
}

static enum code skip(struct decide *d, uint32_t step, const char *reason, struct str detail)
{
    struct moment m = moment_of(d, MOMENT_STEP_SKIPPED, step);
    m.reason = str_from(reason);
    m.detail = detail;
    return emit(d, &m, step);
}

// "1 success, 1 failed, 0 skipped of 2; rule all_success"
static struct str parents_told(struct decide *d, uint32_t step)
{
    const struct run_step *s = &d->run->steps[step];
    struct buf buf;
    buf_init(&buf, 256);
    buf_printf(&buf, "%s: %u success, %u failed, %u skipped", rule_name(d->run->program->steps[step].rule), s->success,
               s->failed, s->skipped);
    struct str told = {0};
    if (buf_ok(&buf)) told = arena_copy(d->out->turn, buf_str(&buf));
    buf_release(&buf);
    return told;
}

// Every dependency is terminal: rule, then condition, then start.
enum code decide_step(struct decide *d, uint32_t step)
{
    struct run *run = d->run;
    const struct program_step *ps = &run->program->steps[step];
    const struct run_step *s = &run->steps[step];
    INVARIANT(s->waiting == 0);
    struct join join;
    enum code rc = kernel_join(run, step, d->env, d->out->turn, &join, d->err);
    if (rc) return rc;
    switch (join.verdict) {
    case JOIN_WAITS:
    case JOIN_WITHHELD:
        return OK;
    case JOIN_RULE:
        return skip(d, step, join.skip, parents_told(d, step));
    case JOIN_BROKEN:
        return skip(d, step, join.skip, ps->when_text);
    case JOIN_FALSE:
        return skip(d, step, join.skip, when_told(d, step, join.trace));
    case JOIN_START:
        // Accepted under load: it starts, but its steps do not before a given time (ES-3c).
        if (s->logical == 0 && run->start.not_before_ms > d->input->now_ms)
            return delay_until(d, step, run->start.not_before_ms);
        return start_attempt(d, step, s->logical + 1);
    case JOIN_FAULT:
        break;
    }
    // The condition cannot be evaluated: the step fails, it is not skipped in silence (requirements §3.11).
    struct moment started = moment_of(d, MOMENT_STEP_STARTED, step);
    started.logical = s->logical + 1;
    rc = emit(d, &started, step);
    return rc ? rc : fail_for_good(d, step, &join.fault); // another attempt would not ask the condition again
}

static enum code end_run(struct decide *d, enum moment_kind kind)
{
    struct run *run = d->run;
    struct moment m = moment_of(d, kind, PROGRAM_TOP);
    m.counts = run->counts;
    m.duration_ms = run->started_ms > 0 ? elapsed_ms(d, run->started_ms) : 0;
    if (kind == MOMENT_RUN_CANCELLED) {
        m.counts.failed += run->held; // they have failed, and nobody will try them again
        m.reason = run->cancel_reason;
        m.signal_id = run->cancel_signal;
    } else if (kind == MOMENT_RUN_FAILED) {
        m.fault = run->fault;
        m.reason = run->failed_step;
        if (run->start.refusal.type) {
            m.fault = (struct fault){.code = json_text(json_key(&run->start.refusal, "code")),
                                     .message = json_text(json_key(&run->start.refusal, "message")),
                                     .category = STR("validation")};
        } else if (m.fault.code.len == 0) {
            m.fault.code = STR("NO_STEP_COMPLETED");
            m.fault.message = STR("every step was skipped");
        }
    }
    enum code rc = emit(d, &m, PROGRAM_TOP);
    if (rc) return rc;
    return effect_add(d, EFFECT_ENDED, PROGRAM_TOP) ? OK : E_NOMEM;
}

static enum code try_end(struct decide *d)
{
    struct run *run = d->run;
    if (run_status_terminal(run->status)) return OK;
    if (run->cancelling) {
        enum code rc = cancel_sweep(d);
        if (rc) return rc;
    }
    enum moment_kind end = kernel_end(run);
    if (end == MOMENT_UNKNOWN) return OK;
    return run->net ? net_end(d, end, NULL, (struct str){0}) : end_run(d, end);
}

// A child of a loop only while the loop runs: after a fold the queue still holds children of an inner loop that an outer one
// has set back since.
static bool decidable(const struct run *run, uint32_t step)
{
    const struct run_step *s = &run->steps[step];
    uint32_t scope = run->program->steps[step].scope;
    if (s->state != NODE_WAITING || s->waiting > 0) return false;
    return scope == PROGRAM_TOP || run->steps[scope].state == NODE_RUNNING;
}

// The iteration of a loop.
static bool is_over(const struct run *run, uint32_t step)
{
    const struct run_step *s = &run->steps[step];
    return s->state == NODE_RUNNING && run->program->steps[step].kind == STEP_LOOP && s->open_children == 0;
}

// Whether the queue holds more than what a fold leaves in it.
static bool any_due(const struct run *run)
{
    for (uint32_t step = run->ready_head; step != PROGRAM_TOP;) {
        if (decidable(run, step) || is_over(run, step)) return true;
        uint32_t link = run->steps[step].next_ready;
        step = link == READY_LAST ? PROGRAM_TOP : link - 2;
    }
    return false;
}

// Starts what can start, ends what has ended. Called once at the end of every input.
static enum code advance(struct decide *d)
{
    struct run *run = d->run;
    if (run->net) {
        enum code rc = net_advance(d);
        return rc ? rc : try_end(d);
    }
    if (d->input->idle && !run->cancelling && any_due(run)) return OK; // RECOVER decides them
    while (run->status == RUN_STATUS_RUNNING && !run->cancelling) {
        uint32_t step = ready_pop(run);
        if (step == PROGRAM_TOP) break;
        enum code rc = OK;
        if (decidable(run, step))
            rc = decide_step(d, step);
        else if (is_over(run, step))
            rc = iteration_over(d, step);
        if (rc) return rc;
    }
    return try_end(d);
}

enum code kernel_step(struct run *run, const struct input *input, const struct kernel_env *env, struct outcome *outcome,
                      struct error *err)
{
    struct decide d = {.run = run, .input = input, .env = env, .out = outcome, .err = err};
    enum code rc = OK;
    run->env = env;
    switch (input->kind) {
    case INPUT_START:
        rc = step_start(&d);
        break;
    case INPUT_RESULT:
        rc = step_result(&d);
        break;
    case INPUT_TIMER:
        rc = step_timer(&d);
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
    }
    if (rc) return rc;
    rc = advance(&d);
#ifdef CAIRN_VERIFY
    if (!rc) run_verify(run);
#endif
    return rc;
}
