// What comes to a playbook's run from outside: results, timers, another beginning, its cancellation.
#include "kernel/net_inside.h"

static enum code late(struct decide *d)
{
    struct moment m = lane_moment(d, MOMENT_LATE_RESULT, d->input->step);
    m.by = EMITTER_ENGINE;
    m.logical = d->input->logical;
    m.engine = d->input->engine;
    m.fault = d->input->fault;
    m.duration_ms = d->input->duration_ms;
    m.reason = d->input->ok ? STR("completed") : STR("failed");
    if (lane_at(d->run, d->input->step)->phase == LANE_FREE) m.visit = 0;
    return net_emit(d, &m);
}

// The attempt in flight is gone without a word.
static enum code lost(struct decide *d, uint32_t lane)
{
    struct run *run = d->run;
    struct run_step *s = &run->steps[lane];
    s->live = s->stopping = false;
    if (run->cancelling) return OK;
    if (s->engine >= ENGINE_ATTEMPTS_MAX) {
        struct fault fault = {.code = STR("WORKER_LOST"),
                              .message = STR("whoever executes the task dies of it, again and again"),
                              .category = STR("infrastructure"),
                              .retryable = true};
        return lane_fault(d, lane, &fault);
    }
    if (d->input->idle || run->status != RUN_STATUS_RUNNING) return OK;
    return lane_redispatch(d, lane);
}

enum code net_result(struct decide *d)
{
    const struct input *in = d->input;
    struct run *run = d->run;
    INVARIANT(in->step >= run->program->step_count && in->step < run_step_count(run));
    const struct run_step *s = &run->steps[in->step];
    if (s->state != NODE_RUNNING || s->logical != in->logical || s->engine != in->engine ||
        run_status_terminal(run->status))
        return late(d);
    if (in->lost) return lost(d, in->step);
    bool place_stops = run->net->places[kernel_place(run, in->step)].stopping;
    bool interrupted =
        !in->ok && s->stopping && !run->cancelling && !place_stops && str_is(in->fault.code, "CANCELLED");
    if (interrupted) return lost(d, in->step);
    if (!in->ok) return lane_fault(d, in->step, &in->fault);
    return lane_answer(d, in->step, &in->value);
}

static enum code stop_lane(struct decide *d, uint32_t lane)
{
    struct run_step *s = &d->run->steps[lane];
    if (s->state != NODE_RUNNING) return OK;
    if (str_is(kernel_task_of(d->run, lane)->kind, "playbook")) {
        s->stopping = true;
        return cancel_child(d, lane);
    }
    if (!s->live) return OK;
    s->stopping = true;
    struct effect *effect = effect_add(d, EFFECT_CANCEL, lane);
    if (!effect) return E_NOMEM;
    effect->grace_ms = CANCEL_GRACE_MS;
    return OK;
}

// The time of a visit is over: what is in flight is stopped, and its results fail.
static enum code place_over(struct decide *d, uint32_t place)
{
    struct net_place *p = &d->run->net->places[place];
    if (p->phase != PLACE_RUNNING || p->stopping) return OK;
    p->stopping = true;
    for (uint32_t i = 0; i < d->run->net->lane_count; i++) {
        uint32_t lane = d->run->program->step_count + i;
        const struct net_lane *l = d->run->net->lanes[i];
        if (l->phase == LANE_FREE || l->place != place) continue;
        struct fault fault = {
            .code = STR("TIMEOUT"), .message = STR("the step took too long"), .category = STR("timeout")};
        enum code rc = OK;
        if (l->phase == LANE_FLIGHT && d->run->steps[lane].live)
            rc = stop_lane(d, lane);
        else if (l->phase == LANE_FLIGHT)
            rc = lane_fault(d, lane, &fault);
        else if (l->phase == LANE_DELAYED)
            rc = lane_timeout(d, lane);
        if (rc) return rc;
    }
    return OK;
}

enum code net_timer(struct decide *d)
{
    struct run *run = d->run;
    uint32_t step = d->input->step;
    if (run_status_terminal(run->status) || run->cancelling) return OK;
    INVARIANT(step < run_step_count(run));
    struct run_step *s = &run->steps[step];
    if (step < run->program->step_count)
        return run->net->places[step].visit == d->input->logical && s->due_ms == d->input->due_ms ? place_over(d, step)
                                                                                                  : OK;
    if (s->logical != d->input->logical || s->due_ms != d->input->due_ms) return OK;
    if (d->input->timer == TIMER_RETRY) {
        if (s->state != NODE_DELAYED || run->status != RUN_STATUS_RUNNING) return OK; // K6: RESUME looks again
        return lane_again(d, step);
    }
    if (s->state != NODE_RUNNING) return OK;
    if (str_is(kernel_task_of(run, step)->kind, "wait")) {
        struct json outcome;
        struct arena *turn = d->out->turn;
        if (!json_object_with(turn, 2, &outcome) || !json_put(turn, &outcome, STR("result"), json_null()) ||
            !json_put(turn, &outcome, STR("status"), json_string(STR("ok"))))
            return error_nomem(d->err);
        return lane_answer(d, step, &outcome);
    }
    enum code rc = cancel_child(d, step);
    struct fault fault = {.code = STR("TIMEOUT"),
                          .message = STR("the child execution took too long"),
                          .category = STR("timeout"),
                          .retryable = true};
    return rc ? rc : lane_fault(d, step, &fault);
}

enum code lane_timer_set(struct decide *d, uint32_t lane)
{
    const struct run_step *s = &d->run->steps[lane];
    const struct net_task *task = kernel_task_of(d->run, lane);
    bool delayed = s->state == NODE_DELAYED;
    bool of_day = !delayed && str_is(task->kind, "wait") && json_key(template_tree_source(task->with), "until");
    return timer_add(d, lane, delayed ? TIMER_RETRY : TIMER_WAKE, s->due_ms, of_day ? TIMER_OF_DAY : s->started_ms);
}

enum code place_timer_set(struct decide *d, uint32_t place)
{
    const struct net_place *p = &d->run->net->places[place];
    enum code rc = timer_add(d, place, TIMER_WAKE, p->due_ms, p->started_ms);
    if (!rc) d->out->effects[d->out->effect_count - 1].logical = p->visit;
    return rc;
}

enum code net_owed(struct decide *d)
{
    struct run *run = d->run;
    bool look = d->input->timer == TIMER_LOOK; // timers are set
    for (uint32_t i = 0; !look && i < run->program->step_count; i++) {
        const struct net_place *p = &run->net->places[i];
        if (p->phase != PLACE_RUNNING || p->due_ms == 0) continue;
        enum code rc = place_timer_set(d, i);
        if (rc) return rc;
    }
    for (uint32_t i = run->program->step_count; i < run_step_count(run); i++) {
        struct run_step *s = &run->steps[i];
        enum code rc = OK;
        bool flight = s->state == NODE_RUNNING; // a wait without a time: see owed_timers
        bool timed = flight && (s->due_ms > 0 || str_is(kernel_task_of(run, i)->kind, "wait"));
        if ((s->state == NODE_DELAYED || timed) && !look) rc = lane_timer_set(d, i);
        if (rc) return rc;
        if (s->state != NODE_RUNNING || s->live || !str_is(kernel_task_of(run, i)->kind, "playbook")) continue;
        if (!effect_add(d, EFFECT_SUBRUN, i)) return E_NOMEM; // taken up, not begun again
        s->live = true;
    }
    if (run->status != RUN_STATUS_RUNNING) return OK;
    for (uint32_t i = run->program->step_count; i < run_step_count(run); i++) {
        const struct run_step *s = &run->steps[i];
        if (s->state != NODE_RUNNING || s->live || str_is(kernel_task_of(run, i)->kind, "wait")) continue;
        enum code rc = lane_redispatch(d, i);
        if (rc) return rc;
    }
    return OK;
}

enum code net_resume(struct decide *d)
{
    struct run *run = d->run;
    for (uint32_t i = run->program->step_count; i < run_step_count(run); i++) {
        const struct run_step *s = &run->steps[i];
        enum code rc = OK;
        if (s->state == NODE_DELAYED && s->due_ms <= d->input->now_ms)
            rc = lane_again(d, i);
        else if (s->state == NODE_DELAYED)
            rc = lane_timer_set(d, i);
        else if (s->state == NODE_RUNNING && !s->live && !str_is(kernel_task_of(run, i)->kind, "wait"))
            rc = lane_redispatch(d, i);
        if (rc) return rc;
    }
    return OK;
}

enum code net_cancel_one(struct decide *d, uint32_t lane)
{
    struct run_step *s = &d->run->steps[lane];
    bool hurry = d->run->emergency && d->input->kind == INPUT_SIGNAL;
    bool child = str_is(kernel_task_of(d->run, lane)->kind, "playbook");
    if (child || s->live) {
        if (s->stopping && !hurry) return OK;
        s->live = s->stopping = true;
        if (child) return cancel_child(d, lane);
        struct effect *effect = effect_add(d, EFFECT_CANCEL, lane);
        if (!effect) return E_NOMEM;
        effect->grace_ms = d->run->emergency ? 0 : CANCEL_GRACE_MS;
        return OK;
    }
    struct fault fault = {.code = STR("CANCELLED"), .message = STR("the run was cancelled"), .category = STR("")};
    return lane_fault(d, lane, &fault);
}
