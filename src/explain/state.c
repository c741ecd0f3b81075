// The state of a step in the words that people use, with a code for the reason.
#include "explain/inside.h"

const char *explain_state_name(enum explain_state state)
{
    switch (state) {
    case STATE_FIRST_UNUSED:
        break;
#define X(name, word)                                                                                                  \
    case STATE_##name:                                                                                                 \
        return word;
        STATE_LIST(X)
#undef X
    }
    return "?";
}

const struct attempt_finding *last_attempt(const struct step_finding *note)
{
    return note && note->attempt_count ? &note->attempts[note->attempt_count - 1] : NULL;
}

// ---- paths

// The loop around a path and the iteration that it names: "a[2].b[3].c" gives "a[2].b" and 3. False at the top.
static bool enclosing(struct str path, struct str *loop, int64_t *iteration)
{
    struct str scope = scope_path(path); // "a[2].b[3]."
    if (scope.len == 0) return false;
    size_t open = scope.len;
    while (open > 0 && scope.ptr[open - 1] != '[') open--;
    *loop = str_slice(scope, 0, open - 1);
    struct str digits = str_slice(scope, open, scope.len - 2);
    return digits.len > 0 && digits.ptr[0] != '0' && str_int64(digits, iteration);
}

// A path names iterations from 1 to what the document allows, written without leading zeros.
static bool iterations_fit(const struct explain *e, struct str path)
{
    struct str loop;
    int64_t iteration = 0;
    if (scope_path(path).len == 0) return true;
    if (!enclosing(path, &loop, &iteration)) return false;
    uint32_t step = kernel_find(e->run, loop);
    if (step == PROGRAM_TOP || iteration < 1 || iteration > (int64_t)e->program->steps[step].max_iterations)
        return false;
    return iterations_fit(e, loop);
}

static bool is_current(const struct explain *e, struct str path)
{
    struct str loop;
    int64_t iteration;
    if (!enclosing(path, &loop, &iteration)) return true;
    const struct step_finding *note = note_find(e, loop);
    return note && note->state == NODE_RUNNING && note->iteration == iteration && is_current(e, loop);
}

// The step in the round that its loops are in, or were in last. Empty: an outer loop has not reached it; ptr NULL: no memory.
static struct str latest_path(const struct explain *e, uint32_t step, struct arena *arena)
{
    const struct program_step *ps = &e->program->steps[step];
    if (ps->scope == PROGRAM_TOP) return ps->id;
    struct str loop = kernel_path(e->run, ps->scope, arena);
    uint32_t iteration = kernel_iteration(e->run, ps->scope);
    if (!loop.ptr) return loop;
    struct str copy = arena_format(arena, "%.*s[%u].%.*s", STR_ARG(loop), iteration ? iteration : 1, STR_ARG(ps->id));
    return copy.ptr && !iterations_fit(e, copy) ? STR("") : copy;
}

bool explain_lists(const struct explain *e, struct str path, struct arena *arena)
{
    struct view_of_step v;
    if (!look_at(e, path, &v)) return false;
    return v.note || v.ps->scope == PROGRAM_TOP || str_eq(path, latest_path(e, v.step, arena));
}

struct str explain_path(const struct explain *e, size_t *cursor, struct arena *arena)
{
    for (; *cursor < e->program->step_count; (*cursor)++) {
        struct str path = latest_path(e, (uint32_t)*cursor, arena);
        if (path.ptr && path.len == 0) continue;
        (*cursor)++;
        return path;
    }
    for (; *cursor < e->program->step_count + e->note_count; (*cursor)++) {
        const struct step_finding *note = e->notes[*cursor - e->program->step_count];
        if (note->visit > 0 && note->visit < kernel_iteration(e->run, note->step)) { // by its id it is the last visit
            (*cursor)++;
            return arena_format(arena, "%.*s:run:%u", STR_ARG(e->program->steps[note->step].id), note->visit);
        }
        if (scope_path(note->path).len == 0) continue;
        struct str latest = latest_path(e, note->step, arena);
        if (!latest.ptr) return latest;
        if (str_eq(note->path, latest)) continue;
        (*cursor)++;
        return note->path;
    }
    return (struct str){0};
}

// ---- states

static bool set(struct view_of_step *v, enum explain_state state, const char *reason)
{
    v->state = state;
    v->reason = reason;
    return true;
}

// Nothing has happened to it, and its loop decides.
static bool look_at_scope(struct view_of_step *v)
{
    struct str path;
    int64_t iteration;
    struct view_of_step loop;
    if (!enclosing(v->path, &path, &iteration) || !look_at(v->e, path, &loop)) return false;
    switch (loop.state) {
    case STATE_WAITING:
    case STATE_RETRYING:
    case STATE_HELD:
        return set(v, STATE_WAITING, "LOOP_NOT_STARTED");
    case STATE_RUNNING: {
        uint32_t round = loop.note ? loop.note->iteration : 0;
        if (round == iteration) return false;
        return round < iteration ? set(v, STATE_WAITING, "ITERATION_TO_COME") : set(v, STATE_NOT_RUN, "ITERATION_OVER");
    }
    case STATE_CANCELLED:
        return set(v, STATE_CANCELLED, "RUN_CANCELLED");
    case STATE_FIRST_UNUSED:
    case STATE_QUEUED:
    case STATE_APPROVAL:
    case STATE_DONE:
    case STATE_REUSED:
    case STATE_SKIPPED:
    case STATE_FAILED:
    case STATE_NOT_RUN:
        break;
    }
    return set(v, STATE_NOT_RUN, "LOOP_ENDED");
}

static bool look_without_note(struct view_of_step *v)
{
    const struct run *run = v->e->run;
    struct parents parents = kernel_parents(run, v->step);
    if (v->ps->scope != PROGRAM_TOP && look_at_scope(v)) return true;
    if (run->net && (run->status == RUN_STATUS_COMPLETED || run->status == RUN_STATUS_FAILED))
        return set(v, STATE_NOT_RUN, "NOT_REACHED");
    if (run->net && run->status == RUN_STATUS_RUNNING && !run->cancelling) return set(v, STATE_WAITING, "NOT_REACHED");
    switch (run->status) {
    case RUN_STATUS_CANCELLED:
        return set(v, STATE_CANCELLED, "RUN_CANCELLED");
    case RUN_STATUS_FAILED:
    case RUN_STATUS_COMPLETED:
        return set(v, STATE_NOT_RUN, "RUN_FAILED");
    case RUN_STATUS_PENDING:
    case RUN_STATUS_APPROVED:
        if (run->cancelling) return set(v, STATE_WAITING, "RUN_CANCELLING");
        if (run_queued(run)) return set(v, STATE_WAITING, "RUN_QUEUED");
        return set(v, STATE_WAITING,
                   run->start.requires_approval && run->status == RUN_STATUS_PENDING ? "RUN_NEEDS_APPROVAL"
                                                                                     : "RUN_NOT_STARTED");
    case RUN_STATUS_RUNNING:
    case RUN_STATUS_PAUSED:
        break;
    }
    bool undoes = v->ps->undo && run->undoing;
    if (run_stops(run) && !undoes) return set(v, STATE_WAITING, "RUN_CANCELLING");
    if (parents.waiting > 0) return set(v, STATE_WAITING, "DEPENDENCIES");
    if (run->status == RUN_STATUS_PAUSED) return set(v, STATE_WAITING, "RUN_PAUSED");
    if (run->rotating) return set(v, STATE_WAITING, "CONTINUE_AS_NEW");
    if (v->ps->undo && parents.success > 0) return set(v, STATE_WAITING, run->undoing ? "UNDO_NEXT" : "UNDO");
    if (run->undoing || (run->failing && parents.tainted == 0)) return set(v, STATE_WAITING, "RUN_FAILING");
    return set(v, STATE_WAITING, "DUE");
}

static bool step_cancelled(const struct view_of_step *v)
{
    const struct attempt_finding *attempt = last_attempt(v->note);
    return attempt && attempt->end == ATTEMPT_FAILED && attempt->retry == RETRY_CANCELLING &&
           str_is(attempt->fault.code, "CANCELLED");
}

// Its output was given by a person when the run was forked.
bool step_given(const struct view_of_step *v)
{
    const struct attempt_finding *attempt = last_attempt(v->note);
    return attempt && attempt->cause == START_REUSE && attempt->end == ATTEMPT_DONE && v->note->reused_from.len == 0;
}

static bool look_at_running(struct view_of_step *v)
{
    bool stopping = v->e->run->cancelling;
    const struct attempt_finding *attempt = last_attempt(v->note);
    if (attempt && attempt->cause == START_REUSE) return set(v, STATE_RUNNING, "REUSING");
    static const char *const reasons[STEP_TASKS + 1] = {
        [STEP_APPROVAL] = "GATE", [STEP_EVENT] = "EVENT", [STEP_WAIT] = "TIMER", [STEP_SUBRUN] = "CHILD_RUN", [STEP_LOOP] = "LOOP"};
    const char *reason = reasons[v->ps->kind] ? reasons[v->ps->kind] : "EXECUTING";
    const struct json *place = reasons[v->ps->kind] || stopping ? NULL : place_now(v->e, v);
    if (place_waits(place)) return set(v, STATE_QUEUED, place_reason(place));
    uint32_t losses;
    if (!stopping && v->current && kernel_rests(v->e->run, v->step, &losses) > 0) return set(v, STATE_RUNNING, "RESTS");
    return set(v, v->ps->kind == STEP_APPROVAL ? STATE_APPROVAL : STATE_RUNNING, stopping ? "RUN_CANCELLING" : reason);
}

const char *retry_verdict_name(enum retry_verdict verdict)
{
    static const char *const names[] = {"", "AGAIN", "RUN_CANCELLING", "MAX_ATTEMPTS", "NOT_TRANSIENT", "NON_RETRYABLE"};
    return (size_t)verdict < ARRAY_COUNT(names) ? names[verdict] : "";
}

static const char *failure_reason(const struct attempt_finding *attempt)
{
    bool judged = attempt && attempt->retry && attempt->retry != RETRY_AGAIN;
    return judged ? retry_verdict_name(attempt->retry) : "CONDITION_FAULT";
}

// The codes of the contract, with NUL at the end.
static const char *skip_reason(struct str reason)
{
    static const char *const codes[] = {SKIP_DEPENDENCY_FAILED, SKIP_TRIGGER_RULE, SKIP_CONDITION_FALSE,
                                        SKIP_CONDITION_BROKEN, SKIP_NOTHING_TO_UNDO};
    for (size_t i = 0; i < ARRAY_COUNT(codes); i++)
        if (str_is(reason, codes[i])) return codes[i];
    return SKIP_OPERATOR;
}

static bool look_with_note(struct view_of_step *v)
{
    const struct run *run = v->e->run;
    const struct step_finding *note = v->note;
    bool ended = run_status_terminal(run->status);
    switch ((enum node_state)note->state) {
    case NODE_WAITING:
        return look_without_note(v);
    case NODE_RUNNING:
        return look_at_running(v);
    case NODE_DELAYED:
        if (ended) return set(v, STATE_CANCELLED, "RUN_CANCELLED");
        if (note->attempt_count == 0) return set(v, STATE_WAITING, run->cancelling ? "RUN_CANCELLING" : "NOT_BEFORE");
        if (run->cancelling) return set(v, STATE_RETRYING, "RUN_CANCELLING");
        return set(v, STATE_RETRYING, run->status == RUN_STATUS_PAUSED ? "RUN_PAUSED" : "BACKOFF");
    case NODE_HELD:
        return ended ? set(v, STATE_FAILED, "HELD_TO_THE_END") : set(v, STATE_HELD, "ON_FAILURE_HOLD");
    case NODE_SUCCESS:
        if (note->reused_from.len > 0) return set(v, STATE_REUSED, "REUSED");
        if (step_given(v)) return set(v, STATE_DONE, "GIVEN");
        return set(v, STATE_DONE, v->ps->kind == STEP_APPROVAL ? "APPROVED" : "COMPLETED");
    case NODE_SKIPPED:
        return set(v, STATE_SKIPPED, run->net ? "ADMISSION" : skip_reason(note->skip_reason));
    case NODE_FAILED:
        if (step_cancelled(v)) return set(v, STATE_CANCELLED, "RUN_CANCELLED");
        return set(v, STATE_FAILED, run->net ? "TASK_FAILED" : failure_reason(last_attempt(note)));
    }
    return false;
}

// The visit that a path names: "load:run:1"; without a number the last one.
static bool look_at_visit(struct str path, struct view_of_step *out)
{
    struct str id = out->ps->id, mark = STR(":run:");
    uint32_t known = kernel_iteration(out->e->run, out->step);
    int64_t visit = known > 0 ? known : 1;
    if (path.len > id.len && (!str_starts(str_slice(path, id.len, path.len), mark) ||
                              !str_int64(str_slice(path, id.len + mark.len, path.len), &visit)))
        return false;
    out->visit = (uint32_t)visit;
    out->visits = known;
    out->note = visit > 0 && visit <= UINT32_MAX ? visit_find(out->e, out->step, out->visit) : NULL;
    // A token has arrived, and its visit has not begun.
    if (path.len == id.len && out->note && out->note->state >= NODE_SUCCESS) {
        const struct step_finding *next = visit_find(out->e, out->step, out->visit + 1);
        if (next) out->note = next;
    }
    out->current = visit >= known;
    if (!out->note && visit > 1) return false;
    return out->note ? look_with_note(out) : look_without_note(out);
}

bool look_at(const struct explain *e, struct str path, struct view_of_step *out)
{
    uint32_t step = kernel_find(e->run, path);
    if (step == PROGRAM_TOP || !iterations_fit(e, path)) return false;
    *out = (struct view_of_step){.e = e, .path = path, .step = step, .ps = &e->program->steps[step]};
    if ((out->ps->scope == PROGRAM_TOP) != (scope_path(path).len == 0)) return false;
    if (e->program->net) return look_at_visit(path, out);
    out->note = note_find(e, path);
    out->current = is_current(e, path);
    return out->note ? look_with_note(out) : look_without_note(out);
}

struct log_position state_place(const struct view_of_step *v)
{
    if (v->note) return v->note->at;
    return v->state == STATE_CANCELLED || v->state == STATE_NOT_RUN ? v->e->end : (struct log_position){0};
}
