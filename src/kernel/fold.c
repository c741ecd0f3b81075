// Moments to state. fold_at routes; each case is one small change. It decides nothing: what a moment means for other steps
// (counters, the queue of decidable steps) is bookkeeping, what to do about it is advance()'s business.
#include "json/make.h"
#include "kernel/list.h"
#include "kernel/route.h"

void ready_push(struct run *run, uint32_t step)
{
    if (run->links[step] != READY_OUT) return;
    run->links[step] = READY_LAST;
    if (run->ready_tail == PROGRAM_TOP)
        run->ready_head = step;
    else
        run->links[run->ready_tail] = READY_LINK(step);
    run->ready_tail = step;
}

static enum code keep(struct run *run, struct str *to, struct str from, struct error *err)
{
    if (from.len == 0) {
        *to = from;
        return OK;
    }
    *to = arena_copy(&run->arena, from);
    return to->ptr ? OK : error_set(err, E_NOMEM, "run %.*s: out of memory", STR_ARG(run->ids.run));
}

static enum code out_of_memory(const struct run *run, struct error *err)
{
    return error_set(err, E_NOMEM, "run %.*s: out of memory", STR_ARG(run->ids.run));
}

static enum code impossible(const struct run *run, const struct moment *moment, struct error *err)
{
    return error_set(err, E_CORRUPT, "run %.*s: %s of step \"%.*s\" cannot follow what is in the log",
                     STR_ARG(run->ids.run), moment_name(moment->kind), STR_ARG(moment->step));
}

// A step has become terminal: tell its dependents, its loop and the counters.
static void settle(struct run *run, uint32_t index)
{
    const struct program_step *ps = &run->program->steps[index];
    const struct run_lane *s = &run->lanes[index];
    const struct run_node *node = &run->nodes[index];
    for (uint32_t i = 0; i < ps->dependent_count; i++) {
        INVARIANT(ps->dependents[i] < run->program->step_count);
        struct run_lane *d = &run->lanes[ps->dependents[i]];
        struct run_node *d_node = &run->nodes[ps->dependents[i]];
        INVARIANT(d_node->waiting > 0);
        d_node->waiting--;
        d_node->success += s->state == NODE_SUCCESS;
        d_node->failed += s->state == NODE_FAILED;
        d_node->skipped += s->state == NODE_SKIPPED;
        d_node->tainted_parents += node->tainted;
        if (d_node->waiting == 0 && d->state == NODE_WAITING) ready_push(run, ps->dependents[i]);
    }
    if (ps->scope != PROGRAM_TOP) {
        struct run_node *loop_node = &run->nodes[ps->scope];
        INVARIANT(loop_node->open_children > 0);
        if (--loop_node->open_children == 0) ready_push(run, ps->scope);
        return;
    }
    run->nodes[index].ended = ++run->ended_count;
    run->counts.completed += s->state == NODE_SUCCESS;
    run->counts.failed += s->state == NODE_FAILED;
    run->counts.skipped += s->state == NODE_SKIPPED;
    if (s->state == NODE_FAILED && run->program->kind == DOCUMENT_PLAN) run->failing = true;
}

// Running steps that a pause does not wait for.
static uint32_t *aside(struct run *run, const struct run_lane *s)
{
    enum body body = run->route->body(run, (uint32_t)(s - run->lanes) + run->first_lane);
    return body == BODY_GATE    ? &run->gates
           : body == BODY_EVENT ? &run->events
           : body == BODY_LOOP  ? &run->loops
                                : NULL;
}

static void leave_state(struct run *run, struct run_lane *s)
{
    INVARIANT(run->in_flight > 0 || s->state != NODE_RUNNING);
    INVARIANT(run->delayed > 0 || s->state != NODE_DELAYED);
    INVARIANT(run->held > 0 || s->state != NODE_HELD);
    run->in_flight -= s->state == NODE_RUNNING;
    if (s->state == NODE_RUNNING && aside(run, s)) --*aside(run, s);
    run->delayed -= s->state == NODE_DELAYED;
    run->retrying -= s->again;
    run->held -= s->state == NODE_HELD;
    if (run->lists) list_drop(run, (uint32_t)(s - run->lanes));
    s->again = false;
}

void enter_state(struct run *run, struct run_lane *s, enum node_state state)
{
    leave_state(run, s);
    s->state = (uint8_t)state;
    run->in_flight += state == NODE_RUNNING;
    if (state == NODE_RUNNING && aside(run, s)) ++*aside(run, s);
    run->delayed += state == NODE_DELAYED;
    run->held += state == NODE_HELD;
}

void enter_delay(struct run *run, struct run_lane *s, bool again, const struct moment *m, int64_t due_ms)
{
    enter_state(run, s, NODE_DELAYED);
    s->again = again;
    run->retrying += again;
    s->started_ms = m->at_ms;
    s->due_ms = due_ms;
}

void lane_fold_start(struct run *run, uint32_t lane, uint32_t logical, const struct moment *m)
{
    struct run_lane *s = lane_ref(run, lane);
    INVARIANT(logical > s->logical && s->state != NODE_RUNNING);
    enter_state(run, s, NODE_RUNNING);
    s->logical = logical;
    s->engine = m->engine;
    s->started_ms = s->ordered_ms = m->at_ms;
    s->due_ms = m->due_ms;
    s->quick = 0;
}

bool lane_fold_again(struct run *run, uint32_t lane, const struct moment *m)
{
    struct run_lane *s = lane_ref(run, lane);
    if (s->state != NODE_RUNNING || m->engine <= s->engine) return false;
    int64_t lived_ms = m->at_ms - s->ordered_ms;
    bool quick = lived_ms >= 0 && lived_ms < QUICK_DEATH_MS;
    s->quick = (uint8_t)(quick ? s->quick + (s->quick < UINT8_MAX) : 0);
    s->ordered_ms = m->at_ms;
    s->engine = m->engine;
    if (run->route->body(run, lane) == BODY_EXECUTED) s->due_ms = 0; // its rest is over
    return true;
}

bool lane_fold_rest(struct run *run, uint32_t lane, const struct moment *m)
{
    struct run_lane *s = lane_ref(run, lane);
    if (s->state != NODE_RUNNING || m->engine != s->engine || run->route->body(run, lane) != BODY_EXECUTED) return false;
    s->due_ms = m->due_ms;
    return true;
}

// A child of a loop lives only while the loop runs.
static bool in_scope(const struct run *run, uint32_t index)
{
    uint32_t scope = run->program->steps[index].scope;
    return scope == PROGRAM_TOP || (run->lanes[scope].state == NODE_RUNNING && run->nodes[scope].iteration > 0);
}

// A held failure that is tried again or skipped is not why the run may fail later.
static void forgive(struct run *run, const struct moment *m, const struct run_lane *s)
{
    if (s->state != NODE_HELD || !str_eq(run->failed_step, m->step)) return;
    run->failed_step = (struct str){0};
    run->fault = (struct fault){0};
}

static enum code fold_started(struct run *run, const struct moment *m, uint32_t index, struct error *err)
{
    struct run_lane *s = &run->lanes[index];
    struct run_node *node = &run->nodes[index];
    bool may = (s->state == NODE_WAITING && node->waiting == 0) || s->state == NODE_DELAYED || s->state == NODE_HELD;
    if (!may || !in_scope(run, index) || m->logical <= s->logical) return impossible(run, m, err);
    if (run->program->steps[index].undo) undo_fold(run);
    forgive(run, m, s);
    lane_fold_start(run, index, m->logical, m);
    if (run->program->steps[index].kind == STEP_LOOP) node->open_children = run->program->steps[index].child_count;
    return OK;
}

// Where the output of a step is kept: what a loop's children gave dies with their iteration, so that a loop needs no more
// memory for its last iteration than for its first.
static struct arena *outputs_of(struct run *run, uint32_t scope)
{
    if (scope == PROGRAM_TOP) return &run->arena;
    struct run_node *loop_node = &run->nodes[scope];
    if (!loop_node->outputs) {
        loop_node->outputs = ARENA_NEW(&run->arena, struct arena);
        if (loop_node->outputs) arena_init(loop_node->outputs, 1024, run->arena.limit);
    }
    return loop_node->outputs;
}

static enum code keep_output(struct run *run, const struct moment *m, uint32_t index, struct error *err)
{
    struct run_node *node = &run->nodes[index];
    node->value = NULL;
    node->blob = NULL;
    if (!m->has_blob && (m->value.type == 0 || m->value.type == JSON_NULL)) return OK;
    struct arena *arena = outputs_of(run, run->program->steps[index].scope);
    if (arena && m->has_blob) {
        struct run_blob *blob = ARENA_NEW(arena, struct run_blob);
        if (blob) *blob = (struct run_blob){.sha256 = m->blob, .size = m->blob_size};
        node->blob = blob;
    } else if (arena) {
        struct json *value = ARENA_NEW(arena, struct json);
        if (value && json_copy(arena, &m->value, value)) node->value = value;
    }
    return node->blob || node->value ? OK : out_of_memory(run, err);
}

static enum code fold_completed(struct run *run, const struct moment *m, uint32_t index, struct error *err)
{
    struct run_lane *s = &run->lanes[index];
    if (s->state != NODE_RUNNING || m->logical != s->logical) return impossible(run, m, err);
    const struct program_step *ps = &run->program->steps[index];
    enum code kept = keep_output(run, m, index, err);
    if (kept) return kept;
    s->engine = m->engine;
    enter_state(run, s, NODE_SUCCESS);
    if (ps->kind == STEP_CANCEL) {
        run->cancelling = true;
        enum code rc = keep(run, &run->cancel_reason, json_text(&m->value), err);
        if (rc) return rc;
    }
    settle(run, index);
    return OK;
}

enum code keep_root_cause(struct run *run, struct str name, const struct fault *fault, struct error *err)
{
    bool limit = str_is(fault->code, FAULT_RUN_LIMIT); // then what was stopped for it is not the cause
    if (limit ? !run->limited : run->limited || run->failed_step.len > 0) return OK;
    enum code rc = keep(run, &run->failed_step, name, err);
    run->fault = *fault;
    run->fault.detail = (struct str){0};
    return rc || fault_keep(&run->arena, &run->fault) ? rc : out_of_memory(run, err);
}

static enum code fold_failed(struct run *run, const struct moment *m, uint32_t index, struct error *err)
{
    struct run_lane *s = &run->lanes[index];
    struct run_node *node = &run->nodes[index];
    if (s->state != NODE_RUNNING || m->logical != s->logical) return impossible(run, m, err);
    s->engine = m->engine;
    if (m->kind == MOMENT_ATTEMPT_FAILED) {
        enter_delay(run, s, true, m, m->at_ms);
        return OK;
    }
    enum code rc = keep_root_cause(run, m->step, &m->fault, err);
    if (rc) return rc;
    bool hold = run->program->steps[index].on_failure == ON_FAILURE_HOLD && !run->cancelling;
    enter_state(run, s, hold ? NODE_HELD : NODE_FAILED);
    if (hold) return OK;
    node->tainted = true;
    run->stopped += run->cancelling && run->program->steps[index].scope == PROGRAM_TOP && str_is(m->fault.code, FAULT_CANCELLED);
    settle(run, index);
    return OK;
}

static enum code fold_skipped(struct run *run, const struct moment *m, uint32_t index, struct error *err)
{
    struct run_lane *s = &run->lanes[index];
    struct run_node *node = &run->nodes[index];
    bool may =
        s->state == NODE_WAITING || s->state == NODE_DELAYED || s->state == NODE_HELD || s->state == NODE_RUNNING;
    if (!may || !in_scope(run, index)) return impossible(run, m, err);
    forgive(run, m, s);
    enter_state(run, s, NODE_SKIPPED);
    node->tainted = str_is(m->reason, SKIP_DEPENDENCY_FAILED);
    node->by_hand = str_is(m->reason, SKIP_OPERATOR);
    if (s->logical == 0) s->logical = m->logical;
    settle(run, index);
    return OK;
}

// A child of a loop is a new step in every iteration.
static void drop_changes(struct run *run, uint32_t step)
{
    for (struct run_change **at = &run->changes; *at;) {
        if ((*at)->step == step)
            *at = (*at)->next;
        else
            at = &(*at)->next;
    }
}

static void reset_child(struct run *run, uint32_t index)
{
    const struct program_step *ps = &run->program->steps[index];
    struct run_lane *s = &run->lanes[index];
    struct run_node *node = &run->nodes[index];
    INVARIANT(s->state != NODE_RUNNING);
    enter_state(run, s, NODE_WAITING);
    struct arena *outputs = node->outputs;
    if (run->changes) drop_changes(run, index);
    *s = (struct run_lane){.state = NODE_WAITING};
    *node = (struct run_node){0};
    node->outputs = outputs;
    node->waiting = ps->dep_count;
    if (ps->kind != STEP_LOOP) return;
    for (uint32_t i = 0; i < ps->child_count; i++) reset_child(run, ps->first_child + i);
}

static enum code fold_iteration(struct run *run, const struct moment *m, uint32_t index, struct error *err)
{
    struct run_lane *loop = &run->lanes[index];
    struct run_node *loop_node = &run->nodes[index];
    const struct program_step *ps = &run->program->steps[index];
    if (ps->kind != STEP_LOOP || loop->state != NODE_RUNNING) return impossible(run, m, err);
    bool next = m->logical == loop_node->iteration + 1 && (loop_node->open_children == 0 || loop_node->iteration == 0);
    if (!next) return impossible(run, m, err);
    loop_node->iteration = m->logical;
    loop_node->open_children = ps->child_count;
    for (uint32_t i = 0; i < ps->child_count; i++) reset_child(run, ps->first_child + i);
    if (loop_node->outputs) arena_reset(loop_node->outputs);
    for (uint32_t i = 0; i < ps->child_count; i++)
        if (run->nodes[ps->first_child + i].waiting == 0) ready_push(run, ps->first_child + i);
    return OK;
}

enum code dag_fold(struct run *run, const struct moment *m, uint32_t index, struct error *err)
{
    struct run_lane *s = &run->lanes[index];
    struct run_node *node = &run->nodes[index];
    bool possible = true;
    enum code rc;
    switch ((int)m->kind) {
    case MOMENT_EVENT_AWAITED:
        rc = await_fold(run, m, index, &possible, err);
        return possible ? rc : impossible(run, m, err);
    case MOMENT_LIST_STARTED:
    case MOMENT_CHILD_ENDED:
        rc = list_fold(run, m, index, &possible, err);
        return possible ? rc : impossible(run, m, err);
    case MOMENT_STEP_STARTED:
        return fold_started(run, m, index, err);
    case MOMENT_STEP_COMPLETED:
        return fold_completed(run, m, index, err);
    case MOMENT_ATTEMPT_FAILED:
    case MOMENT_STEP_FAILED:
        return fold_failed(run, m, index, err);
    case MOMENT_STEP_SKIPPED:
        return fold_skipped(run, m, index, err);
    case MOMENT_ITERATION_STARTED:
        return fold_iteration(run, m, index, err);
    case MOMENT_STEP_REDISPATCHED:
        return lane_fold_again(run, index, m) ? OK : impossible(run, m, err);
    case MOMENT_ATTEMPT_RESTS:
        return lane_fold_rest(run, index, m) ? OK : impossible(run, m, err);
    case MOMENT_STEP_DELAYED:
        if (s->state == NODE_WAITING ? node->waiting > 0 || !in_scope(run, index)
                                     : s->state != NODE_DELAYED && s->state != NODE_HELD)
            return impossible(run, m, err);
        forgive(run, m, s); // HELD: tried again as soon as an engine drives the run
        enter_delay(run, s, s->again || s->state == NODE_HELD, m, m->due_ms);
        return OK;
    default:
        return OK; // recorded for readers (NoETL's finer moments, late results): no state hangs on it
    }
}

// Ten thousand parked runs of one document need not hold its name ten thousand times.
enum code fold_facts(struct run *run, const struct start_facts *from, struct error *err)
{
    if (!from || run->start.document_sha256.len > 0) return OK;
    const struct program *program = run->program;
    struct start_facts *to = &run->start;
    *to = *from;
    to->parts = (struct json){0}; // needed to load the program, not to run it
    const struct str shared[] = {{program->sha256_hex, SHA256_HEX}, str_from(document_kind_name(program->kind)),
                                 program->file, program->schema_version, program->name, STR("manual")};
    return start_keep(&run->arena, to, shared, ARRAY_COUNT(shared)) ? OK : out_of_memory(run, err);
}

bool signal_seen(const struct run *run, struct str id)
{
    for (const struct seen_signal *s = run->signals; s; s = s->next)
        if (str_eq(s->id, id)) return true;
    return false;
}

enum code kernel_decided(struct run *run, struct str signal_id, struct error *err)
{
    if (signal_seen(run, signal_id)) return OK;
    struct seen_signal *seen = ARENA_NEW(&run->arena, struct seen_signal);
    if (!seen) return out_of_memory(run, err);
    enum code rc = keep(run, &seen->id, signal_id, err);
    if (rc) return rc;
    seen->next = run->signals;
    run->signals = seen;
    return OK;
}

static enum code keep_json(struct run *run, const struct json *from, const struct json **to, struct error *err)
{
    struct json *copy = ARENA_NEW(&run->arena, struct json);
    if (!copy || !json_copy(&run->arena, from, copy)) return out_of_memory(run, err);
    *to = copy;
    return OK;
}

static enum code fold_params(struct run *run, const struct json *params, struct error *err)
{
    struct json given;
    if (!json_copy(&run->arena, params, &given)) return out_of_memory(run, err);
    struct json merged = json_joined(&run->arena, &given, &run->params);
    if (!json_ok(&merged)) return out_of_memory(run, err);
    run->params = merged;
    return OK;
}

static enum code fold_change(struct run *run, const struct moment *m, enum signal_type type, struct error *err)
{
    uint32_t index = kernel_find(run, m->signal_step);
    if (index == PROGRAM_TOP) return impossible(run, m, err);
    bool overrides = type == SIGNAL_INJECT_OVERRIDE;
    const struct json *value = json_key(&m->value, overrides ? "override" : "newTarget");
    if (!value) return OK; // taken out of a copy of the log
    struct run_change *change = run->changes;
    while (change && change->step != index) change = change->next;
    if (!change) {
        change = ARENA_NEW(&run->arena, struct run_change);
        if (!change) return out_of_memory(run, err);
        *change = (struct run_change){.next = run->changes, .step = index};
        run->changes = change;
    }
    if (overrides) change->logical = run->lanes[index].logical + 1;
    return keep_json(run, value, overrides ? &change->override : &change->target, err);
}

static enum code fold_accepted(struct run *run, const struct moment *m, enum signal_type type, struct error *err)
{
    const struct json *params = json_key(&m->value, "params");
    switch ((int)type) {
    case SIGNAL_RETRY_STEP: {
        uint32_t index = kernel_find(run, m->signal_step);
        if (index == PROGRAM_TOP) return impossible(run, m, err);
        run->lanes[index].base = run->lanes[index].logical;
        return OK;
    }
    case SIGNAL_UPDATE_PARAMS:
        return json_is(params, JSON_OBJECT) ? fold_params(run, params, err) : OK;
    case SIGNAL_INJECT_OVERRIDE:
    case SIGNAL_UPDATE_TARGET:
        return fold_change(run, m, type, err);
    case SIGNAL_CANCEL:
    case SIGNAL_EMERGENCY_STOP:
        break;
    default:
        return OK;
    }
    run->cancelling = true;
    run->emergency = run->emergency || type == SIGNAL_EMERGENCY_STOP;
    if (run->cancel_signal.len > 0) return OK;
    run->limited = type == SIGNAL_EMERGENCY_STOP && str_is(m->actor, ENGINE_ACTOR) && str_is(m->role, ENGINE_ROLE) &&
                   str_starts(m->reason, STR(FAULT_RUN_LIMIT ": "));
    enum code rc = keep(run, &run->cancel_reason, m->reason, err);
    return rc ? rc : keep(run, &run->cancel_signal, m->signal_id, err);
}

static enum code fold_signal(struct run *run, const struct moment *m, struct error *err)
{
    enum code rc = kernel_decided(run, m->signal_id, err);
    if (rc || m->kind == MOMENT_SIGNAL_REJECTED) return rc;
    return fold_accepted(run, m, signal_parse(m->signal_type), err);
}

static enum code fold_deferred(struct run *run, const struct moment *m, struct error *err)
{
    enum code rc = kernel_decided(run, m->signal_id, err);
    const struct json *request = NULL;
    if (!rc) rc = keep_json(run, &m->value, &request, err);
    if (rc) return rc;
    struct deferred_signal *deferred = ARENA_NEW(&run->arena, struct deferred_signal);
    if (!deferred) return out_of_memory(run, err);
    if (!signal_read(request, &deferred->signal)) return OK; // taken out of a copy of the log
    rc = keep(run, &deferred->decision_id, m->decision_id, err);
    deferred->next = run->deferred;
    run->deferred = deferred;
    return rc;
}

static void fold_settled(struct run *run, const struct moment *m)
{
    for (struct deferred_signal **at = &run->deferred; *at; at = &(*at)->next) {
        if (!str_eq((*at)->signal.id, m->signal_id)) continue;
        *at = (*at)->next;
        return;
    }
}

static enum code fold_segment(struct run *run, const struct moment *m, struct error *err)
{
    bool begins = m->kind == MOMENT_SEGMENT_STARTED;
    if (run->rotating != begins || m->logical != run->segment + begins) return impossible(run, m, err);
    run->rotating = !begins;
    run->segment = m->logical;
    lists_begin(run);
    return OK;
}

static enum code fold_run_moment(struct run *run, const struct moment *m, struct error *err)
{
    switch ((int)m->kind) {
    case MOMENT_RUN_QUEUED:
        run->queued_ms = m->at_ms;
        return fold_facts(run, m->start, err);
    case MOMENT_RUN_APPROVED:
        run->status = RUN_STATUS_APPROVED;
        return OK;
    case MOMENT_RUN_STARTED:
        run->status = RUN_STATUS_RUNNING;
        run->started_ms = m->at_ms;
        return fold_facts(run, m->start, err);
    case MOMENT_RUN_PAUSED:
        run->status = RUN_STATUS_PAUSED;
        run->pause_cycle = m->logical;
        run->paused_ms = m->at_ms;
        return OK;
    case MOMENT_DRAIN_TIMEOUT:
        run->drain_over = m->logical;
        return OK;
    case MOMENT_RUN_RESUMED:
        run->status = RUN_STATUS_RUNNING;
        lists_begin(run);
        return OK;
    case MOMENT_SEGMENT_FULL:
    case MOMENT_SEGMENT_STARTED:
        return fold_segment(run, m, err);
    case MOMENT_SIGNAL_ACCEPTED:
    case MOMENT_SIGNAL_REJECTED:
        return fold_signal(run, m, err);
    case MOMENT_SIGNAL_DEFERRED:
        return fold_deferred(run, m, err);
    case MOMENT_SIGNAL_SETTLED:
        fold_settled(run, m);
        return OK;
    case MOMENT_RUN_COMPLETED:
        run->status = RUN_STATUS_COMPLETED;
        run->ended_ms = m->at_ms;
        return OK;
    case MOMENT_RUN_FAILED:
        run->status = RUN_STATUS_FAILED;
        run->ended_ms = m->at_ms;
        return keep_root_cause(run, m->reason, &m->fault, err); // of a run that no step has failed
    case MOMENT_RUN_CANCELLED:
        run->status = RUN_STATUS_CANCELLED;
        run->ended_ms = m->at_ms;
        return OK;
    default:
        return OK;
    }
}

enum code fold_at(struct run *run, const struct moment *moment, uint32_t step, struct error *err)
{
    bool routed = step != PROGRAM_TOP || run->route->folds(moment);
    if (routed) return run_status_terminal(run->status) ? OK : run->route->fold(run, moment, step, err);
    // K4: audit of what came late. A signal may wait even then: for a new run.
    bool waits = moment->kind == MOMENT_SIGNAL_DEFERRED || moment->kind == MOMENT_SIGNAL_SETTLED;
    if (run_status_terminal(run->status) && !waits) return OK;
    return fold_run_moment(run, moment, err);
}

enum code kernel_fold(struct run *run, const struct moment *moment, struct error *err)
{
    uint32_t step = PROGRAM_TOP;
    if (moment_is_step(moment->kind)) {
        step = kernel_find(run, moment->step);
        if (step == PROGRAM_TOP) {
            return error_set(err, E_CORRUPT, "run %.*s: the log names step \"%.*s\", which its document does not have",
                             STR_ARG(run->ids.run), STR_ARG(moment->step));
        }
    }
    return fold_at(run, moment, step, err);
}
