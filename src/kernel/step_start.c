// The start of a run, and of an attempt of a step.
#include "kernel/route.h"

#include "base/civil.h"

static struct fault fault_of(const struct error *err)
{
    return (struct fault){.code = err->code == E_LIMIT ? STR("LIMIT_EXCEEDED") : STR("REFERENCE_NOT_AVAILABLE"),
                          .message = str_from(err->message),
                          .category = STR("validation")};
}

// When a wait ends. The text of `until` may hold references.
static enum code wait_due(struct decide *d, uint32_t step, int64_t *due, struct fault *fault)
{
    struct json with;
    struct error local = {0};
    enum code rc = kernel_render(d->run, step, d->env, d->out->turn, &with, &local);
    if (rc == E_NOMEM) return error_nomem(d->err);
    if (rc) {
        struct str kept = arena_copy(d->out->turn, str_from(local.message));
        *fault = fault_of(&local);
        fault->message = kept.ptr ? kept : STR("a reference cannot be resolved");
        return OK;
    }
    const struct json *until = json_key(&with, "until");
    if (!until) {
        *due = d->input->now_ms + json_integer(kernel_member(d->run, step, "durationMs"), 0);
        return OK;
    }
    if (!civil_parse(str_trim(json_text(until)), due))
        *fault = (struct fault){.code = STR("INVALID_TIME"),
                                .message = STR("\"until\" is not an RFC 3339 time"),
                                .category = STR("validation")};
    else if (*due < WAIT_OVER_MS)
        *due = WAIT_OVER_MS;
    return OK;
}

static enum code start_loop(struct decide *d, uint32_t step)
{
    struct moment m = moment_of(d, MOMENT_ITERATION_STARTED, step);
    m.logical = 1;
    return emit(d, &m, step);
}

static enum code start_event(struct decide *d, uint32_t step)
{
    struct json with;
    struct error local = {0};
    enum code rc = kernel_render(d->run, step, d->env, d->out->turn, &with, &local);
    if (rc == E_NOMEM) return error_nomem(d->err);
    if (!rc) return await_start(d, step, &with);
    struct fault fault = fault_of(&local);
    fault.message = arena_copy(d->out->turn, fault.message);
    return fault.message.ptr ? fail_step(d, step, &fault) : error_nomem(d->err);
}

static enum code start_cancel(struct decide *d, uint32_t step)
{
    struct moment m = moment_of(d, MOMENT_STEP_COMPLETED, step);
    struct json with;
    enum code rc = kernel_render(d->run, step, d->env, d->out->turn, &with, NULL);
    if (rc == E_NOMEM) return error_nomem(d->err);
    const struct json *reason = rc ? kernel_member(d->run, step, "reason") : json_key(&with, "reason");
    if (reason) m.value = *reason;
    return emit(d, &m, step);
}

enum code start_attempt(struct decide *d, uint32_t step, uint32_t logical)
{
    const struct program_step *ps = &d->run->program->steps[step];
    struct moment m = moment_of(d, MOMENT_STEP_STARTED, step);
    m.by = EMITTER_WORKER;
    INVARIANT(logical > d->run->lanes[step].logical && (!d->run->cancelling || ps->undo)); // K3
    INVARIANT(run_goes(d->run));                                              // K6, K8
    m.logical = logical;
    m.engine = 1;
    struct fault fault = {0};
    if (ps->kind == STEP_WAIT) {
        enum code rc = wait_due(d, step, &m.due_ms, &fault);
        if (rc) return rc;
        if (ps->timeout_ms > 0 && m.due_ms > m.at_ms + ps->timeout_ms) m.due_ms = m.at_ms + ps->timeout_ms;
    } else if (ps->kind == STEP_APPROVAL) {
        int64_t timeout = json_integer(kernel_member(d->run, step, "timeoutMs"), ps->timeout_ms);
        if (timeout > 0) m.due_ms = d->input->now_ms + timeout;
    } else if (ps->kind == STEP_EVENT) {
        if (ps->timeout_ms > 0) m.due_ms = d->input->now_ms + ps->timeout_ms;
    } else if (ps->kind == STEP_SUBRUN) {
        struct str path = kernel_path(d->run, step, d->out->turn);
        if (path.ptr) m.run_ref = kernel_child_name(d->run->ids.run, path, logical, d->out->turn);
        if (!m.run_ref.ptr) return error_nomem(d->err);
        if (json_key(&ps->with, "fanOut")) m.run_ref = (struct str){0}; // its children are many
        if (ps->timeout_ms > 0) m.due_ms = d->input->now_ms + ps->timeout_ms;
    }
    enum code rc = emit(d, &m, step);
    if (rc) return rc;
    if (fault.code.len > 0) return fail_step(d, step, &fault);
    if (ps->kind == STEP_LOOP) return start_loop(d, step);
    if (ps->kind == STEP_EVENT) return start_event(d, step);
    if (ps->kind == STEP_CANCEL) return start_cancel(d, step);
    return attempt_order(d, step);
}

enum code reuse_one(struct decide *d, const struct reuse *reuse)
{
    if (d->run->nodes[reuse->step].waiting > 0) return OK; // what it hangs on has not come out as before
    if (reuse->skipped) return decide_step(d, reuse->step);
    struct moment m = moment_of(d, MOMENT_STEP_STARTED, reuse->step);
    enum code rc = emit(d, &m, reuse->step);
    if (rc) return rc;
    m = moment_of(d, MOMENT_STEP_COMPLETED, reuse->step);
    m.value = reuse->value;
    m.blob = reuse->blob;
    m.has_blob = reuse->has_blob;
    m.blob_size = reuse->blob_size;
    m.artifacts = reuse->artifacts;
    m.truncated = reuse->truncated;
    m.run_ref = reuse->from_run;
    m.actor = reuse->actor;
    return emit(d, &m, reuse->step);
}

enum code dag_open(struct decide *d)
{
    struct moment m = moment_of(d, MOMENT_RUN_STARTED, PROGRAM_TOP);
    m.start = d->input->start ? d->input->start : &d->run->start;
    enum code rc = emit(d, &m, PROGRAM_TOP);
    for (uint32_t i = 0; !rc && i < d->input->reuse_count; i++) rc = reuse_one(d, &d->input->reuse[i]);
    return rc;
}

static bool is_approved(const struct run *run)
{
    return run->status == RUN_STATUS_APPROVED || (run->status == RUN_STATUS_PENDING && !run->start.requires_approval);
}

bool run_queued(const struct run *run)
{
    return is_approved(run) && !run->cancelling && str_is(run->start.admission, "QUEUE");
}

bool may_begin(const struct run *run)
{
    return is_approved(run) && !str_is(run->start.admission, "QUEUE");
}

enum code step_start(struct decide *d)
{
    INVARIANT(d->run->started_ms == 0);
    bool takes_up = d->input->past && d->input->past->count > 0;
    return takes_up ? take_up_past(d) : d->run->route->start(d);
}

enum code dag_start(struct decide *d)
{
    // Node workflows have no word for queued and no approval of runs: they begin with their start, unless they wait for it.
    bool queued = str_is(d->input->start->admission, "QUEUE");
    if (queued || d->run->program->kind == DOCUMENT_PLAN) {
        struct moment m = moment_of(d, MOMENT_RUN_QUEUED, PROGRAM_TOP);
        m.start = d->input->start;
        enum code rc = emit(d, &m, PROGRAM_TOP);
        if (rc) return rc;
    }
    bool waits = queued || d->input->start->requires_approval || d->input->start->refusal.type;
    return waits ? OK : dag_open(d);
}

// The owner of the queue says so once or twice; the second time nothing is left to do (ES-3e).
enum code step_admit(struct decide *d)
{
    INVARIANT(d->input->kind == INPUT_ADMIT);
    return run_queued(d->run) && !d->input->idle ? d->run->route->open(d) : OK;
}
