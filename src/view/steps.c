// One step's life, folded. Attempts are identified by their logical number: what is said about one that has ended is either
// the same thing again, which changes nothing, or a contradiction, which is flagged (C-18, C-34).
#include "view/internal.h"

static uint32_t *count_of(struct run_view *view, enum step_status status)
{
    switch (status) {
    case STEP_STATUS_RUNNING:
        return &view->running_count;
    case STEP_STATUS_SUCCESS:
        return &view->success_count;
    case STEP_STATUS_FAILED:
        return &view->failed_count;
    case STEP_STATUS_SKIPPED:
        return &view->skipped_count;
    case STEP_STATUS_PENDING:
        return NULL;
    }
    return NULL;
}

static void set_status(struct run_view *view, struct step_view *step, enum step_status status)
{
    uint32_t *from = count_of(view, step->status);
    uint32_t *to = count_of(view, status);
    if (from) {
        INVARIANT(*from > 0);
        --*from;
    }
    if (to) ++*to;
    step->status = status;
}

static struct attempt_view *find_attempt(struct step_view *step, uint32_t logical)
{
    for (size_t i = step->attempt_count; i > 0; i--) {
        if (step->attempts[i - 1].logical == logical) return &step->attempts[i - 1];
    }
    return NULL;
}

static struct attempt_view *add_attempt(struct run_view *view, struct step_view *step, const struct moment *moment)
{
    if (!ARENA_ROOM(view->arena, step->attempts, step->attempt_count, &step->attempt_capacity)) return NULL;
    struct attempt_view *attempt = &step->attempts[step->attempt_count++];
    *attempt = (struct attempt_view){.logical = moment->logical, .engine = moment->engine};
    return attempt;
}

static bool is_settled(const struct step_view *step)
{
    return step->status == STEP_STATUS_SUCCESS || step->status == STEP_STATUS_SKIPPED;
}

static bool is_active(const struct run_view *view)
{
    return view->status == RUN_STATUS_RUNNING || view->status == RUN_STATUS_PAUSED;
}

static bool flag(struct run_view *view)
{
    view->inconsistent = true;
    return true;
}

static bool fold_started(struct run_view *view, struct step_view *step, const struct moment *moment, uint64_t seq)
{
    (void)seq;
    if (find_attempt(step, moment->logical)) return true;
    if (!is_active(view) || is_settled(step) || moment->logical < step->logical) return flag(view);
    struct attempt_view *attempt = add_attempt(view, step, moment);
    if (!attempt) return false;
    attempt->started_ms = attempt->began_ms = moment->at_ms;
    if (!step->started_ms) step->started_ms = step->began_ms = moment->at_ms;
    step->logical = moment->logical;
    step->engine = moment->engine;
    step->due_ms = moment->due_ms;
    step->ended_ms = 0;
    step->iteration = 0;
    step->held = step->retrying = false;
    step->failed_seq = 0;
    set_status(view, step, STEP_STATUS_RUNNING);
    return !moment->run_ref.len || view_keep(view, moment->run_ref, &step->child_run);
}

static bool fold_redispatched(struct run_view *view, struct step_view *step, const struct moment *moment, uint64_t seq)
{
    const struct attempt_view *last = find_attempt(step, moment->logical);
    if (!last) return fold_started(view, step, moment, seq);
    if (last->engine >= moment->engine) return true;
    if (!is_active(view) || last->ended || step->status != STEP_STATUS_RUNNING) return flag(view);
    struct attempt_view *attempt = add_attempt(view, step, moment);
    if (!attempt) return false;
    attempt->started_ms = attempt->began_ms = moment->at_ms;
    step->engine = moment->engine;
    if (moment->due_ms || !step->child_run.len) step->due_ms = moment->due_ms; // a rest is over
    return !moment->run_ref.len || view_keep(view, moment->run_ref, &step->child_run);
}

// An end says how long the work took. What lies before that is a wait for a place: a slot, or a worker.
static void attempt_worked(struct step_view *step, struct attempt_view *attempt, const struct moment *moment)
{
    int64_t began = moment->at_ms - moment->duration_ms;
    attempt->began_ms = began > attempt->started_ms ? began : attempt->started_ms;
    if (attempt == step->attempts) step->began_ms = attempt->began_ms;
}

// The attempt that an outcome ends, or NULL when there is nothing to end. A result without a start (a reused one, a
// condition that could not be evaluated) makes its attempt.
static struct attempt_view *end_attempt(struct run_view *view, struct step_view *step, const struct moment *moment,
                                        enum step_status outcome, bool *enough_memory)
{
    *enough_memory = true;
    struct attempt_view *attempt = find_attempt(step, moment->logical);
    if (attempt && attempt->ended) {
        bool same = (outcome == STEP_STATUS_FAILED) == (attempt->fault.code.len > 0);
        if (!same) view->inconsistent = true;
        return NULL;
    }
    bool allowed = is_active(view) || (run_status_terminal(view->status) && attempt);
    if (!allowed || is_settled(step) || moment->logical < step->logical) {
        view->inconsistent = true;
        return NULL;
    }
    if (!attempt) {
        attempt = add_attempt(view, step, moment);
        *enough_memory = attempt != NULL;
        if (!attempt) return NULL;
    }
    attempt->engine = moment->engine;
    attempt->ended_ms = moment->at_ms;
    attempt->ended = true;
    attempt_worked(step, attempt, moment);
    step->logical = moment->logical;
    step->engine = moment->engine;
    step->ended_ms = moment->at_ms;
    step->due_ms = 0;
    step->held = step->retrying = false;
    step->failed_seq = 0;
    set_status(view, step, outcome);
    return attempt;
}

static bool fold_completed(struct run_view *view, struct step_view *step, const struct moment *moment, uint64_t seq)
{
    (void)seq;
    bool enough_memory;
    if (!end_attempt(view, step, moment, STEP_STATUS_SUCCESS, &enough_memory)) return enough_memory;
    if (step->cancels) {
        view->cancelling = true;
        if (!view_keep(view, json_text(&moment->value), &view->cancel_reason)) return false;
    }
    step->fault = (struct fault){0};
    step->blob = moment->blob;
    step->has_blob = moment->has_blob;
    step->blob_size = moment->blob_size;
    step->truncated = moment->truncated;
    bool of_tasks = step->task_count > 0 && moment->artifacts.type == 0; // they have recorded their files themselves
    step->value = moment->value;
    if (!of_tasks) step->artifacts = moment->artifacts;
    step->actor = moment->actor;
    step->reused_from = moment->run_ref;
    return json_keep(view->arena, &step->value) && (of_tasks || json_keep(view->arena, &step->artifacts)) &&
           ARENA_KEEP(view->arena, &step->actor, &step->reused_from);
}

static bool fold_failed(struct run_view *view, struct step_view *step, const struct moment *moment, uint64_t seq)
{
    bool enough_memory;
    struct attempt_view *attempt = end_attempt(view, step, moment, STEP_STATUS_FAILED, &enough_memory);
    if (!attempt) return enough_memory;
    step->retrying = moment->kind == MOMENT_ATTEMPT_FAILED;
    step->held = !step->retrying && step->holds;
    step->failed_seq = step->retrying ? 0 : seq;
    step->fault = moment->fault;
    if (!fault_keep(view->arena, &step->fault)) return false;
    if (!step->fault.code.len) step->fault.code = STR("UNKNOWN");
    attempt->fault = step->fault;
    return view_keep(view, moment->actor, &step->actor);
}

bool view_fold_skipped(struct run_view *view, struct step_view *step, const struct moment *moment)
{
    if (step->status == STEP_STATUS_SKIPPED) return true;
    if (!is_active(view) || step->status == STEP_STATUS_SUCCESS) return flag(view);
    set_status(view, step, STEP_STATUS_SKIPPED);
    step->ended_ms = moment->at_ms;
    step->due_ms = 0;
    step->held = step->retrying = false;
    step->failed_seq = 0;
    return view_keep(view, moment->reason, &step->skip_reason) && view_keep(view, moment->detail, &step->skip_detail) &&
           view_keep(view, moment->actor, &step->actor);
}

static bool fold_skipped(struct run_view *view, struct step_view *step, const struct moment *moment, uint64_t seq)
{
    (void)seq;
    return view_fold_skipped(view, step, moment);
}

// C-19: a result that came after the end of the run tells how its step came out and nothing else.
static bool fold_late(struct run_view *view, struct step_view *step, const struct moment *moment, uint64_t seq)
{
    bool awaited =
        step->status == STEP_STATUS_RUNNING && step->logical == moment->logical && step->engine == moment->engine;
    if (!run_status_terminal(view->status) || !awaited) return true;
    if (moment->fault.code.len) return fold_failed(view, step, moment, seq);
    return fold_completed(view, step, moment, seq);
}

static bool fold_delayed(struct run_view *view, struct step_view *step, const struct moment *moment, uint64_t seq)
{
    (void)view, (void)seq;
    if (is_settled(step) || find_attempt(step, moment->logical)) return true;
    step->due_ms = moment->due_ms;
    step->retrying = step->retrying || step->held; // a held step is tried again as soon as an engine drives the run
    step->held = false;
    step->failed_seq = 0;
    return true;
}

static bool fold_iteration(struct run_view *view, struct step_view *step, const struct moment *moment, uint64_t seq)
{
    (void)view, (void)seq;
    if (moment->logical > step->iteration) step->iteration = moment->logical;
    return true;
}

static bool fold_rests(struct run_view *view, struct step_view *step, const struct moment *moment, uint64_t seq)
{
    (void)view, (void)seq;
    if (step->status == STEP_STATUS_RUNNING && step->logical == moment->logical) step->due_ms = moment->due_ms;
    return true;
}

bool view_fold_awaited(struct run_view *view, struct step_view *step, const struct moment *moment)
{
    return view_keep(view, moment->reason, &step->event_name) &&
           view_keep(view, moment->detail, &step->event_correlation);
}

static bool fold_awaited(struct run_view *view, struct step_view *step, const struct moment *moment, uint64_t seq)
{
    (void)seq;
    return view_fold_awaited(view, step, moment);
}

bool view_fold_step(struct run_view *view, const struct moment *moment, uint64_t seq)
{
    typedef bool (*step_fold)(struct run_view *, struct step_view *, const struct moment *, uint64_t);
    static const step_fold folds[MOMENT_COUNT] = {
        [MOMENT_STEP_STARTED] = fold_started,
        [MOMENT_STEP_REDISPATCHED] = fold_redispatched,
        [MOMENT_STEP_COMPLETED] = fold_completed,
        [MOMENT_ATTEMPT_FAILED] = fold_failed,
        [MOMENT_STEP_FAILED] = fold_failed,
        [MOMENT_STEP_SKIPPED] = fold_skipped,
        [MOMENT_LATE_RESULT] = fold_late,
        [MOMENT_STEP_DELAYED] = fold_delayed,
        [MOMENT_ITERATION_STARTED] = fold_iteration,
        [MOMENT_EVENT_AWAITED] = fold_awaited,
        [MOMENT_ATTEMPT_RESTS] = fold_rests,
    };
    step_fold fold = folds[moment->kind];
    if (!fold && !moment->visit) return true;
    char text[VIEW_ID_MAX];
    struct str id = view_visit_id(moment, text);
    // Steps begin while the run is under way: a step that turns up before or after is none.
    if (!id.len || (!is_active(view) && !view_step(view, id))) return flag(view);
    struct step_view *step = view_step_make(view, id);
    if (!step) return false;
    if (moment->visit && !view_fold_playbook(view, step, moment)) return false;
    bool inside = moment->visit && (moment->task.len || moment->iteration); // of a task: nothing about the step itself
    return !fold || inside || fold(view, step, moment, seq);
}
