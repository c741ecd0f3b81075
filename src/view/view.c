#include "view/internal.h"

#include "base/civil.h"

bool view_keep(struct run_view *view, struct str text, struct str *out)
{
    *out = text;
    return ARENA_KEEP(view->arena, out);
}

bool view_init(struct run_view *view, struct arena *arena, const struct run_ids *ids)
{
    *view = (struct run_view){.arena = arena, .status = RUN_STATUS_PENDING, .ids = *ids};
    map_init(&view->step_index, arena);
    return ids_keep(arena, &view->ids);
}

enum vocabulary view_vocabulary(const struct run_view *view)
{
    return vocabulary_of_document(view->start.document_kind);
}

static const struct program_step *find_in_scope(const struct program *program, uint32_t scope, struct str id)
{
    uint32_t step = program_find(program, scope, id);
    return step == PROGRAM_TOP ? NULL : &program->steps[step];
}

// "loop[2].tick" is the step tick in the scope of loop, whatever the iteration.
const struct program_step *view_declared(const struct program *program, struct str path)
{
    uint32_t scope = PROGRAM_TOP;
    for (;;) {
        size_t bracket = str_find(path, '[', 0);
        struct str name = str_slice(path, 0, bracket);
        const struct program_step *step = find_in_scope(program, scope, name);
        if (!step) step = find_in_scope(program, scope, view_visit_name(name)); // a later visit
        size_t close = str_find(path, ']', bracket);
        if (!step || close + 2 >= path.len) return step;
        scope = (uint32_t)(step - program->steps);
        path = str_slice(path, close + 2, path.len);
    }
}

struct step_view *view_step_make(struct run_view *view, struct str id)
{
    uint32_t at = map_get(&view->step_index, id);
    if (at != MAP_NONE) return &view->steps[at];
    if (!ARENA_ROOM(view->arena, view->steps, view->step_count, &view->step_capacity)) return NULL;
    struct step_view *step = &view->steps[view->step_count];
    *step = (struct step_view){.status = STEP_STATUS_PENDING};
    if (!view_keep(view, id, &step->id) || !map_put(&view->step_index, step->id, (uint32_t)view->step_count, NULL))
        return NULL;
    view->step_count++;
    const struct program_step *declared = view->program ? view_declared(view->program, id) : NULL;
    if (declared) {
        step->gate = declared->kind == STEP_APPROVAL;
        step->event = declared->kind == STEP_EVENT;
        step->cancels = declared->kind == STEP_CANCEL;
        step->around = declared->kind == STEP_LOOP;
        step->holds = declared->on_failure == ON_FAILURE_HOLD;
    }
    return step;
}

bool view_plan(struct run_view *view, const struct program *program)
{
    INVARIANT(view->step_count == 0);
    view->program = program;
    for (uint32_t i = 0; i < program->top_count; i++) {
        if (!view_step_make(view, program->steps[i].id)) return false;
    }
    return true;
}

const struct step_view *view_step(const struct run_view *view, struct str id)
{
    uint32_t at = map_get(&view->step_index, id);
    return at == MAP_NONE ? NULL : &view->steps[at];
}

// Of a playbook the place is that of a task: "load[3]/fetch". One that is executed counts more than one that waits.
static struct step_view *step_at(struct run_view *view, struct str path)
{
    size_t end = 0;
    uint32_t at = map_get(&view->step_index, path);
    while (end < path.len && path.ptr[end] != '[' && path.ptr[end] != '/') end++;
    if (at == MAP_NONE) at = map_get(&view->step_index, str_slice(path, 0, end));
    return at == MAP_NONE ? NULL : &view->steps[at];
}

void view_present(struct run_view *view, const struct json *present)
{
    const struct json *list = json_key(present, "attempts");
    for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->count; i++) {
        const struct json *place = &list->items[i];
        struct step_view *step = step_at(view, json_text(json_key(place, "stepId")));
        bool waits = str_is(json_text(json_key(place, "state")), "QUEUED");
        int64_t since;
        if (!step || step->status != STEP_STATUS_RUNNING || (step->place && (waits || !step->queued))) continue;
        step->place = place;
        step->queued = waits;
        if (waits || !civil_parse(json_text(json_key(place, "since")), &since) || step->attempt_count == 0) continue;
        struct attempt_view *attempt = &step->attempts[step->attempt_count - 1];
        if (since > attempt->started_ms) attempt->began_ms = since;
        if (step->attempt_count == 1) step->began_ms = attempt->began_ms;
    }
}

bool view_non_contiguous(uint64_t last_seq, uint64_t next_seq)
{
    return next_seq > last_seq && next_seq - last_seq > 1;
}

// ---- the run

enum { SEEN_QUEUED = 1, SEEN_APPROVED = 2, SEEN_STARTED = 4 };

static bool first_time(struct run_view *view, uint32_t bit)
{
    bool first = !(view->seen & bit);
    view->seen |= bit;
    return first;
}

static bool keep_start(struct run_view *view, const struct start_facts *start)
{
    if (!start) return true;
    view->start = *start;
    return start_keep(view->arena, &view->start, NULL, 0);
}

static bool fold_queued(struct run_view *view, const struct moment *moment)
{
    if (!first_time(view, SEEN_QUEUED)) return true;
    if (view->status != RUN_STATUS_PENDING) {
        view->inconsistent = true;
        return true;
    }
    view->queued_ms = moment->at_ms;
    return keep_start(view, moment->start);
}

static void fold_approved(struct run_view *view)
{
    if (!first_time(view, SEEN_APPROVED)) return;
    if (view->status == RUN_STATUS_PENDING)
        view->status = RUN_STATUS_APPROVED;
    else
        view->inconsistent = true;
}

static bool fold_started(struct run_view *view, const struct moment *moment)
{
    if (view->seen & SEEN_STARTED) return true;
    bool gated = view->start.requires_approval || (moment->start && moment->start->requires_approval);
    bool allowed = view->status == RUN_STATUS_APPROVED || (view->status == RUN_STATUS_PENDING && !gated);
    if (!allowed) {
        view->inconsistent = true;
        return true;
    }
    view->seen |= SEEN_STARTED;
    view->status = RUN_STATUS_RUNNING;
    view->started_ms = moment->at_ms;
    return keep_start(view, moment->start);
}

// The pause cycle in `logical` tells a second pause from the first one seen again (C-23).
static bool fold_paused(struct run_view *view, const struct moment *moment)
{
    if (moment->logical <= view->pause_cycle) return true;
    if (view->status != RUN_STATUS_RUNNING) {
        view->inconsistent = true;
        return true;
    }
    view->status = RUN_STATUS_PAUSED;
    view->pause_cycle = moment->logical;
    return view_keep(view, moment->reason, &view->pause_reason);
}

static void fold_resumed(struct run_view *view, const struct moment *moment)
{
    if (moment->logical <= view->resume_cycle) return;
    if (view->status != RUN_STATUS_PAUSED) {
        view->inconsistent = true;
        return;
    }
    view->status = RUN_STATUS_RUNNING;
    view->resume_cycle = moment->logical;
    view->pause_reason = STR("");
}

// ES-1.5-3h: what the event says, else the first step that failed for good.
static bool keep_root_cause(struct run_view *view, const struct moment *moment)
{
    const struct step_view *first = NULL;
    for (size_t i = 0; i < view->step_count; i++) {
        const struct step_view *step = &view->steps[i];
        if (step->failed_seq && (!first || step->failed_seq < first->failed_seq)) first = step;
    }
    if (!view_keep(view, moment->reason, &view->failed_step)) return false;
    if (!moment->reason.len && first) view->failed_step = first->id;
    if (!moment->fault.code.len && first) {
        view->fault = first->fault;
        return true;
    }
    view->fault = moment->fault;
    return fault_keep(view->arena, &view->fault);
}

static enum run_status end_status(enum moment_kind kind)
{
    if (kind == MOMENT_RUN_COMPLETED) return RUN_STATUS_COMPLETED;
    return kind == MOMENT_RUN_FAILED ? RUN_STATUS_FAILED : RUN_STATUS_CANCELLED;
}

static bool end_allowed(enum run_status from, enum run_status to)
{
    if (run_status_terminal(from)) return false;
    if (to == RUN_STATUS_CANCELLED || from == RUN_STATUS_RUNNING) return true;
    return to == RUN_STATUS_FAILED && from != RUN_STATUS_PAUSED;
}

static bool fold_ended(struct run_view *view, const struct moment *moment)
{
    enum run_status status = end_status(moment->kind);
    if (view->status == status) return true;
    if (!end_allowed(view->status, status)) {
        view->inconsistent = true;
        return true;
    }
    view->status = status;
    view->ended_ms = moment->at_ms;
    if (status == RUN_STATUS_FAILED) return keep_root_cause(view, moment);
    if (status == RUN_STATUS_CANCELLED) return view_keep(view, moment->reason, &view->cancel_reason);
    return true;
}

static bool fold_accepted(struct run_view *view, const struct moment *moment)
{
    enum signal_type type = signal_parse(moment->signal_type);
    if (type == SIGNAL_PAUSE) return view_keep(view, moment->actor, &view->pause_actor);
    if (type != SIGNAL_CANCEL && type != SIGNAL_EMERGENCY_STOP) return true;
    bool first = !view->cancelling;
    view->cancelling = true;
    return !first || run_status_terminal(view->status) ||
           (view_keep(view, moment->reason, &view->cancel_reason) && view_keep(view, moment->actor, &view->cancel_actor));
}

static void fold_segment(struct run_view *view, const struct moment *moment, uint64_t seq)
{
    bool begins = moment->kind == MOMENT_SEGMENT_STARTED;
    if (moment->logical < view->segment + begins) return; // a record that says it again
    view->rotating = !begins;
    view->segment = moment->logical;
    if (begins) view->segment_seq = seq;
}

static bool fold_moment(struct run_view *view, const struct moment *moment, uint64_t seq)
{
    if (moment_is_step(moment->kind)) return view_fold_step(view, moment, seq);
    if (moment_is_terminal(moment->kind)) return fold_ended(view, moment);
    if (moment->kind == MOMENT_RUN_QUEUED || moment->kind == MOMENT_RUN_REQUESTED) return fold_queued(view, moment);
    if (moment->kind == MOMENT_RUN_STARTED) return fold_started(view, moment);
    if (moment->kind == MOMENT_RUN_PAUSED) return fold_paused(view, moment);
    if (moment->kind == MOMENT_RUN_APPROVED) fold_approved(view);
    if (moment->kind == MOMENT_DRAIN_TIMEOUT) view->drain_over = moment->logical;
    if (moment->kind == MOMENT_SEGMENT_FULL || moment->kind == MOMENT_SEGMENT_STARTED) fold_segment(view, moment, seq);
    if (moment->kind == MOMENT_RUN_RESUMED) fold_resumed(view, moment);
    if (moment->kind == MOMENT_SIGNAL_ACCEPTED) return fold_accepted(view, moment);
    return true; // signals and whatever else has no state of its own
}

bool view_fold(struct run_view *view, const struct moment *moment, uint64_t seq)
{
    // A start tells the vocabulary, so that the very first entry of a ledger is known for what it is.
    enum vocabulary vocabulary =
        moment->start ? vocabulary_of_document(moment->start->document_kind) : view_vocabulary(view);
    bool ledger = moment->kind != MOMENT_UNKNOWN && !moment_word(moment->kind, vocabulary);
    if (seq < view->last_seq || (seq == view->last_seq && !ledger)) return true;
    view->last_seq = seq;
    if (moment->kind == MOMENT_UNKNOWN) return true;
    if (moment->at_ms > view->updated_ms) view->updated_ms = moment->at_ms;
    return fold_moment(view, moment, seq);
}
