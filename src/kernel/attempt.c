// Attempts of every document: what comes of one from outside, when it runs again, when it is stopped. A lane carries out bodies one
// after the other; a step of a plan or of a node workflow is a lane itself, a visit of a playbook has one, or one for each iteration.
// What an outcome means for the steps around is the route's business (route.h).
#include "base/civil.h"
#include "base/text.h"
#include "kernel/list.h"
#include "kernel/route.h"

const struct fault cancelled_fault = {
    .code = STR_INIT("CANCELLED"), .message = STR_INIT("the run was cancelled"), .category = STR_INIT("")};

static bool is_executed(enum body body)
{
    return body == BODY_EXECUTED;
}

static bool in_flight(const struct run *run, uint32_t lane)
{
    return lane_ref(run, lane)->state == NODE_RUNNING;
}

// What has begun is handed to its executor, or to its timer.
enum code attempt_order(struct decide *d, uint32_t lane)
{
    enum body body = d->run->route->body(d->run, lane);
    enum code rc = OK;
    INVARIANT(in_flight(d->run, lane));
    if (body == BODY_EXECUTED) rc = order(d, EFFECT_EXECUTE, lane);
    if (body == BODY_CHILD) rc = order_child(d, lane, 0);
    if (body == BODY_LIST) rc = list_start(d, lane);
    return rc || lane_ref(d->run, lane)->due_ms == 0 ? rc : lane_timer(d, lane);
}

// ---- what came out
// A result that is not of the attempt in flight changes nothing and is kept for audit (I14, C-19).
static enum code late(struct decide *d)
{
    const struct input *in = d->input;
    struct moment m = d->run->route->moment(d, MOMENT_LATE_RESULT, in->step);
    m.by = EMITTER_ENGINE;
    m.logical = in->logical;
    m.engine = in->engine;
    m.fault = in->fault;
    m.duration_ms = in->duration_ms;
    m.reason = in->ok ? STR("completed") : STR("failed");
    return d->run->route->emit(d, &m, in->step);
}

static enum code judge_result(struct decide *d)
{
    const struct input *in = d->input;
    const struct run *run = d->run;
    uint32_t lane = in->step;
    const struct run_lane *s = lane_ref(run, lane);
    bool now = in_flight(run, lane) && s->logical == in->logical && s->engine == in->engine;
    if (!now || run_status_terminal(run->status)) {
        COVER(attempt_late);
        return late(d);
    }
    if (in->member > 0) return list_result(d, lane);
    if (in->lost) return attempt_lost(d, lane);
    if (in->ok) return run->route->done(d, lane);
    // Stopped by a pause, not failed.
    bool interrupted = is_stopping(d, lane, 0) && !run->cancelling && !run->route->overdue(run, lane) &&
                       str_is(in->fault.code, "CANCELLED");
    if (!interrupted) return run->route->fail(d, lane, &in->fault);
    COVER(attempt_interrupted);
    return attempt_lost(d, lane);
}

// A condition that is a command and came to its end has answered, by its exit.
static bool has_answered(const struct run *run, const struct input *in)
{
    return kernel_condition(run, in->step) && (in->ok || str_is(in->fault.code, FAULT_EXIT));
}

enum code attempt_result(struct decide *d)
{
    const struct input *in = d->input;
    INVARIANT(in->step >= d->run->first_lane && in->step < run_step_count(d->run));
    if (in->lost || !has_answered(d->run, in)) return judge_result(d);
    COVER(condition_answered);
    struct input answer = *in;
    answer.ok = true;
    answer.value = json_bool(in->ok);
    answer.fault = (struct fault){0};
    d->input = &answer;
    enum code rc = judge_result(d);
    d->input = in;
    return rc;
}

// ---- executors that are gone
// The same logical attempt once more, under the next engine attempt (C-34).
static enum code again_k(struct decide *d, uint32_t lane)
{
    const struct run_route *route = d->run->route;
    struct moment m = route->moment(d, MOMENT_STEP_REDISPATCHED, lane);
    INVARIANT(in_flight(d->run, lane) && !is_held(d, lane, 0)); // nobody else has it
    m.by = EMITTER_ENGINE;
    m.engine = lane_ref(d->run, lane)->engine + 1;
    enum code rc = route->emit(d, &m, lane);
    return rc ? rc : order(d, EFFECT_EXECUTE, lane);
}

// Until when it rests: 0 = it does not. Attempts that were ordered together go on one after the other, for it may be one of them that
// kills the engine. The wait is made of what the log says, so that each engine that takes the run up comes to the same moment.
static int64_t rests_until(const struct decide *d, uint32_t lane)
{
    const struct run_lane *s = lane_ref(d->run, lane);
    if (s->quick < DEATHS_AT_ONCE || d->input->now_ms < s->ordered_ms) return 0; // a clock that was set back measures nothing
    uint32_t doubled = s->quick - DEATHS_AT_ONCE < 5 ? s->quick - DEATHS_AT_ONCE : 5;
    int64_t rest = (int64_t)REST_MS << doubled;
    if (rest > REST_MAX_MS) rest = REST_MAX_MS;
    uint64_t seed = str_hash(d->run->ids.run) + (uint64_t)lane * 0x9e3779b97f4a7c15u + s->quick;
    rest -= (int64_t)(seed % ((uint64_t)rest / 2));
    int64_t until = s->ordered_ms + rest;
    return until > d->input->now_ms ? until : 0;
}

int64_t kernel_rests(const struct run *run, uint32_t step, uint32_t *losses)
{
    bool itself = step >= run->first_lane; // or a place, whose lanes stand behind the steps
    uint32_t end = itself ? step + 1 : run_step_count(run);
    for (uint32_t i = itself ? step : run->first_lane; i < end; i++) {
        const struct run_lane *s = lane_ref(run, i);
        if (s->due_ms == 0 || kernel_place(run, i) != step || !in_flight(run, i) || !is_executed(run->route->body(run, i))) continue;
        *losses = s->quick + 1u;
        return s->due_ms;
    }
    return 0;
}

static enum code again_or_rest(struct decide *d, uint32_t lane)
{
    int64_t until = rests_until(d, lane);
    if (until == 0) return again_k(d, lane);
    COVER(attempt_rests);
    const struct run_route *route = d->run->route;
    enum code rc = OK;
    if (lane_ref(d->run, lane)->due_ms != until) { // an engine that takes it up within its rest has nothing new to say
        struct moment m = route->moment(d, MOMENT_ATTEMPT_RESTS, lane);
        m.by = EMITTER_ENGINE;
        m.due_ms = until;
        rc = route->emit(d, &m, lane);
    }
    return rc ? rc : timer_add(d, lane, TIMER_LOOK, until, d->input->now_ms);
}

static enum code poisoned(struct decide *d, uint32_t lane)
{
    COVER(attempt_poisoned);
    struct fault fault = {.code = STR("WORKER_LOST"),
                          .message = str_from(d->run->route->lost),
                          .category = STR("infrastructure"),
                          .retryable = true};
    return d->run->route->fail(d, lane, &fault);
}

// Whether it is the attempt that its executors die of. Of those that were gone within a minute twenty in a row say so: engines and workers
// that are killed by something else may have raised its number to any height before. One that is gone later is one of that many.
static bool kills_executors(const struct decide *d, uint32_t lane)
{
    const struct run_lane *s = lane_ref(d->run, lane);
    int64_t lived_ms = d->input->now_ms - s->ordered_ms;
    bool soon = lived_ms >= 0 && lived_ms < QUICK_DEATH_MS;
    return soon ? s->quick + 1 >= ENGINE_ATTEMPTS_MAX : s->engine >= ENGINE_ATTEMPTS_MAX;
}

enum code attempt_lost(struct decide *d, uint32_t lane)
{
    struct run *run = d->run;
    let_go(d, lane, 0);
    INVARIANT(in_flight(run, lane));
    if (run->cancelling) return OK; // advance() sweeps: it fails as cancelled
    if (kills_executors(d, lane)) return poisoned(d, lane);
    if (d->input->idle || !run_goes(run)) return OK; // RECOVER or RESUME finds it
    return again_or_rest(d, lane);
}

// Whether its engines die of it: one after the other was gone within a minute of beginning it. One that is restarted in order, however
// often during a long step, is not.
static bool kills_engines(const struct decide *d, uint32_t lane)
{
    const struct run_lane *s = lane_ref(d->run, lane);
    int64_t lived_ms = d->input->now_ms - s->ordered_ms;
    return s->quick + 1 >= ENGINE_ATTEMPTS_MAX && lived_ms >= 0 && lived_ms < QUICK_DEATH_MS;
}

// In flight, and nobody has it.
static enum code owe_one(struct decide *d, uint32_t lane)
{
    struct run *run = d->run;
    if (!is_executed(run->route->body(run, lane))) return OK;
    if (run->route->overdue(run, lane)) return attempt_stop(d, lane, &timeout_fault);
    bool died = d->input->kind == INPUT_RECOVER && d->input->timer != TIMER_LOOK;
    if (died && d->input->apart) { // it goes on there, or has ended, or was never taken
        COVER(attempt_claimed);
        return order(d, EFFECT_EXECUTE, lane);
    }
    if (!died) return again_k(d, lane);
    return kills_engines(d, lane) ? poisoned(d, lane) : again_or_rest(d, lane);
}

// TIMER_LOOK is about one lane, unless it is about the run.
static bool is_looked_at(const struct decide *d, uint32_t lane)
{
    bool one = d->input->kind == INPUT_RECOVER && d->input->timer == TIMER_LOOK && d->input->step != PROGRAM_TOP;
    return !one || d->input->step == lane;
}

static enum code owe_executions(struct decide *d)
{
    enum code rc = OK;
    for (uint32_t i = d->run->first_lane; !rc && i < run_step_count(d->run); i++)
        if (in_flight(d->run, i) && is_looked_at(d, i) && !is_held(d, i, 0)) rc = owe_one(d, i);
    return rc;
}

// A child run that nobody here has is taken up, not begun again; that of a visit whose time is over is ended.
static enum code attach(struct decide *d, uint32_t lane)
{
    const struct run *run = d->run;
    bool look = d->input->kind == INPUT_RECOVER && d->input->timer == TIMER_LOOK && d->input->step != PROGRAM_TOP;
    enum body body = in_flight(run, lane) && is_looked_at(d, lane) ? run->route->body(run, lane) : BODY_EXECUTED;
    if (body == BODY_LIST) return look ? list_look(d, lane, d->input->logical) : list_go_on(d, lane);
    if (body != BODY_CHILD || is_held(d, lane, 0)) return OK;
    return run->route->overdue(run, lane) ? attempt_stop(d, lane, &timeout_fault) : order_child(d, lane, 0);
}

static enum code timer_again(struct decide *d, uint32_t lane)
{
    const struct run_lane *s = lane_ref(d->run, lane);
    enum body body = in_flight(d->run, lane) ? d->run->route->body(d->run, lane) : BODY_EXECUTED;
    // A wait without a time is one that was over when it began: logs from before that was written down have some.
    bool waits = body == BODY_WAIT || (!is_executed(body) && s->due_ms > 0);
    return waits || s->state == NODE_DELAYED ? lane_timer(d, lane) : OK;
}

enum code attempts_owed(struct decide *d)
{
    struct run *run = d->run;
    bool look = d->input->timer == TIMER_LOOK; // timers are set
    INVARIANT(!run->cancelling && !run_status_terminal(run->status));
    enum code rc = look ? OK : run->route->owed(d);
    for (uint32_t i = run->first_lane; !rc && i < run_step_count(run); i++) {
        rc = attach(d, i);
        if (!rc && !look) rc = timer_again(d, i);
    }
    if (!rc && !look) rc = drain_timer(d);
    if (rc || !run_goes(run)) return rc; // K6: PAUSED starts nothing, RESUME does
    return owe_executions(d);
}

enum code attempts_resume(struct decide *d)
{
    struct run *run = d->run;
    INVARIANT(run_goes(run));
    enum code rc = owe_executions(d);
    for (uint32_t i = run->first_lane; !rc && i < run_step_count(run); i++) rc = attach(d, i);
    for (uint32_t i = run->first_lane; !rc && run->delayed > 0 && i < run_step_count(run); i++) {
        if (lane_ref(run, i)->state != NODE_DELAYED || (run->undoing && !run->program->steps[kernel_place(run, i)].undo)) continue;
        // Its timer may have fired during the pause, on a clock that was not set back. Twice is harmless.
        rc = lane_ref(run, i)->due_ms <= d->input->now_ms ? run->route->begin(d, i) : lane_timer(d, i);
    }
    return rc;
}

// ---- stopping
enum code attempt_stop(struct decide *d, uint32_t lane, const struct fault *otherwise)
{
    const struct run *run = d->run;
    bool hurry = run->emergency && d->input->kind == INPUT_SIGNAL;
    INVARIANT(in_flight(run, lane));
    // A child also when nobody here has taken it up yet: it goes on in its log, so it must be ended there.
    enum body body = run->route->body(run, lane);
    bool child = body == BODY_CHILD;
    if (body == BODY_LIST) return list_stop(d, lane, true);
    if (!child && !is_held(d, lane, 0)) return otherwise ? run->route->fail(d, lane, otherwise) : OK;
    if (is_stopping(d, lane, 0) && !hurry) return OK;
    enum code rc = ask_to_stop(d, lane, 0);
    if (rc || child) return rc ? rc : cancel_child(d, lane, 0);
    struct effect *effect = effect_add(d, EFFECT_CANCEL, lane);
    if (!effect) return E_NOMEM;
    effect->grace_ms = run->emergency ? 0 : CANCEL_GRACE_MS;
    return OK;
}

// What is in flight is stopped by a pause. Its result will say so; the attempt runs again after RESUME.
enum code attempts_interrupt(struct decide *d)
{
    enum code rc = OK;
    for (uint32_t i = d->run->first_lane; !rc && i < run_step_count(d->run); i++)
        if (in_flight(d->run, i) && is_executed(d->run->route->body(d->run, i))) rc = attempt_stop(d, i, NULL);
    return rc;
}

enum code attempts_cancel(struct decide *d)
{
    struct run *run = d->run;
    INVARIANT(run->cancelling);
    uint32_t busy = 0;
    for (uint32_t i = run->first_lane; run->in_flight > 0 && i < run_step_count(run); i++) {
        if (!in_flight(run, i) || run->route->body(run, i) == BODY_LOOP) continue;
        enum code rc = attempt_stop(d, i, &cancelled_fault);
        if (rc) return rc;
        busy += in_flight(run, i);
    }
    // A loop is a container: it fails when nothing inside it runs any more, innermost (highest index) first.
    for (uint32_t i = run_step_count(run); busy == 0 && run->in_flight > 0 && i > run->first_lane; i--) {
        enum code rc = in_flight(run, i - 1) ? run->route->fail(d, i - 1, &cancelled_fault) : OK;
        if (rc) return rc;
    }
    return OK;
}

// ---- time
enum code late_fault(struct decide *d, const char *message, int64_t ms, struct fault *out)
{
    char duration[24];
    duration_format(ms, duration);
    struct str text = str_from(message), before = str_cut(text, '%', &text);
    struct str told = arena_format(d->out->turn, "%.*s%s%.*s", STR_ARG(before), duration,
                                   STR_ARG(str_slice(text, 1, text.len))); // behind the s of %s
    *out = (struct fault){.code = STR("TIMEOUT"), .message = told, .category = STR("timeout"), .retryable = true};
    return told.ptr ? OK : error_nomem(d->err);
}

// A timer that the kernel asked for is due. The engine measures durations on the monotonic clock, so its word counts even when the wall
// clock has been set back; an old timer is known by its attempt and by what it was set to (attempts count anew in every iteration of a
// loop).
enum code attempt_timer(struct decide *d)
{
    struct run *run = d->run;
    uint32_t lane = d->input->step;
    if (run_status_terminal(run->status) || run->cancelling) return OK;
    INVARIANT(lane < run_step_count(run));
    if (lane < run->first_lane) return run->route->due(d, lane);
    if (run->undoing && !run->program->steps[kernel_place(run, lane)].undo) return OK; // nothing else begins any more
    const struct run_lane *s = lane_ref(run, lane);
    if (s->logical != d->input->logical || s->due_ms != d->input->due_ms) return OK;
    if (d->input->timer == TIMER_RETRY) // K6: RESUME looks at what is overdue
        return s->state == NODE_DELAYED && run_goes(run) ? run->route->begin(d, lane) : OK;
    if (!in_flight(run, lane)) return OK;
    enum body body = run->route->body(run, lane);
    if (body != BODY_CHILD && body != BODY_LIST) return run->route->wake(d, lane);
    struct fault fault;
    enum code rc = late_fault(d, run->route->child_late, s->due_ms - s->started_ms, &fault);
    if (rc) return rc;
    rc = body == BODY_LIST ? list_stop(d, lane, false) : cancel_child(d, lane, 0);
    return rc ? rc : run->route->fail(d, lane, &fault);
}

enum code lane_timer(struct decide *d, uint32_t lane)
{
    const struct run *run = d->run;
    const struct run_lane *s = lane_ref(run, lane);
    bool delayed = s->state == NODE_DELAYED;
    INVARIANT(delayed || s->state == NODE_RUNNING);
    // The first attempt is delayed to the moment that the start names, each further one by what its policy says.
    bool of_day = delayed ? !s->again : run->route->of_day(run, lane);
    return timer_add(d, lane, delayed ? TIMER_RETRY : TIMER_WAKE, s->due_ms, of_day ? TIMER_OF_DAY : s->started_ms);
}
