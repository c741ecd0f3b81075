// Playbooks: tokens, visits, loops, arcs, and the end of the run.
#include "json/make.h"
#include "kernel/net_inside.h"

static struct moment place_moment(const struct decide *d, enum moment_kind kind, uint32_t place)
{
    return (struct moment){.kind = kind,
                           .by = moment_emitter(kind),
                           .step = d->run->program->steps[place].id,
                           .visit = d->run->net->places[place].visit,
                           .logical = 1,
                           .engine = 1,
                           .at_ms = d->input->now_ms};
}

static struct net_view view_of(const struct decide *d, uint32_t place)
{
    return (struct net_view){.run = d->run, .env = d->env, .place = place, .lane = NO_LANE, .arena = d->out->turn};
}

static enum code net_start(struct decide *d)
{
    struct moment m = moment_of(d, MOMENT_RUN_REQUESTED, PROGRAM_TOP);
    m.start = d->input->start;
    enum code rc = net_emit(d, &m);
    m = moment_of(d, MOMENT_REQUEST_EVALUATED, PROGRAM_TOP);
    if (!rc) rc = net_emit(d, &m);
    bool queued = str_is(d->input->start->admission, "QUEUE");
    return rc || queued || d->input->start->requires_approval ? rc : net_begin(d);
}

// ---- a token at a place
// C-48: a step that can still lead here is under way. When all that is left waits for each other, the first goes.
static bool must_wait(const struct run *run, uint32_t place)
{
    const struct net_state *net = run->net;
    const uint64_t *upstream = net_of_run(run)->steps[place].upstream;
    if (!upstream) return false;
    bool waits = false, live = false;
    uint32_t first = PROGRAM_TOP;
    for (uint32_t i = 0; i < run->program->step_count; i++) {
        bool busy = net->places[i].phase != PLACE_IDLE;
        live = live || busy;
        bool other = net->places[i].token && i != place;
        if (net->places[i].token && first == PROGRAM_TOP) first = i;
        if ((busy || other) && i != place && (upstream[i / 64] >> (i % 64) & 1)) waits = true;
    }
    return waits && (live || first != place);
}

static enum code admit(struct decide *d, uint32_t place, bool *allowed)
{
    const struct net_step *ns = &net_of_run(d->run)->steps[place];
    const struct net_place *p = &d->run->net->places[place];
    struct net_view view = view_of(d, place);
    view.args = &p->token_args;
    uint32_t matched = UINT32_MAX;
    *allowed = ns->admit_count == 0;
    for (uint32_t i = 0; i < ns->admit_count && matched == UINT32_MAX; i++) {
        bool holds;
        struct error local = {0};
        enum code rc = net_holds(&view, &ns->admit[i].when, &holds, &local);
        if (rc == E_LIMIT || rc == E_NOT_FOUND) { // nobody knows what it would have said: not let in
            *allowed = false;
            break;
        }
        if (rc) return error_set(d->err, rc, "%s", local.message);
        if (holds) {
            matched = i;
            *allowed = ns->admit[i].allow;
        }
    }
    struct moment m = place_moment(d, MOMENT_ADMIT_EVALUATED, place);
    m.visit++;
    m.value = JSON_OF(d->out->turn, {"allow", json_bool(*allowed)},
                      {"matched_rule_index", json_when(matched != UINT32_MAX, json_int(matched))});
    return json_ok(&m.value) ? net_emit(d, &m) : error_nomem(d->err);
}

// Of a visit with a deadline.
static enum code place_timer(struct decide *d, uint32_t place)
{
    const struct net_place *p = &d->run->net->places[place];
    enum code rc = timer_add(d, place, TIMER_WAKE, p->due_ms, p->started_ms);
    if (!rc) d->out->effects[d->out->effect_count - 1].logical = p->visit;
    return rc;
}

static enum code schedule(struct decide *d, uint32_t place)
{
    const struct net_step *ns = &net_of_run(d->run)->steps[place];
    struct moment m = place_moment(d, MOMENT_STEP_SCHEDULED, place);
    m.visit++;
    struct json given, args, own = json_object();
    struct net_view view = view_of(d, place);
    struct error local = {0};
    enum code rc = OK;
    // The token's memory is given back when the moment is folded.
    if (!json_copy(d->out->turn, &d->run->net->places[place].token_args, &given)) return error_nomem(d->err);
    view.args = &given;
    struct template_scope scope = net_scope(&view);
    if (ns->args) rc = template_tree_render(ns->args, &scope, net_limits(d->run), d->out->turn, &own, &local);
    if (net_is_grave(rc)) return error_set(d->err, rc, "%s", local.message);
    struct fault fault = {0};
    if (rc) fault = kernel_template_fault(d->out->turn, &local);
    if (!merge_values(d->out->turn, &own, &given, &args)) return error_nomem(d->err);
    rc = net_canon(d->out->turn, &args, d->err);
    if (args.count > 0) m.value = args;
    int64_t timeout_ms = ns->timeout_ms, deadline_ms = ns->deadline_ms;
    view.args = &args;
    if (!rc) rc = net_ms(&view, ns->timeout_of, "timeout_s", &timeout_ms, &fault, d->err);
    if (!rc) rc = net_ms(&view, ns->deadline_of, "deadline_s", &deadline_ms, &fault, d->err);
    if (!rc) rc = net_emit(d, &m);
    if (rc) return rc;
    struct moment started = place_moment(d, MOMENT_STEP_STARTED, place);
    if (timeout_ms > 0) started.due_ms = d->input->now_ms + timeout_ms;
    if (deadline_ms > 0 && (started.due_ms == 0 || d->input->now_ms + deadline_ms < started.due_ms))
        started.due_ms = d->input->now_ms + deadline_ms;
    rc = net_emit(d, &started);
    if (rc) return rc;
    if (fault.code.len > 0) {
        struct moment failed = place_moment(d, MOMENT_STEP_FAILED, place);
        failed.fault = fault;
        return net_emit(d, &failed);
    }
    return started.due_ms == 0 ? OK : place_timer(d, place);
}

// The time of a visit is over: what is in flight is stopped and its results fail; what is between two tries has failed.
static enum code place_due(struct decide *d, uint32_t place)
{
    struct run *run = d->run;
    const struct net_place *p = &run->net->places[place];
    bool now = p->phase == PLACE_RUNNING && p->visit == d->input->logical && p->due_ms == d->input->due_ms;
    if (!now || p->overdue) return OK;
    struct moment m = place_moment(d, MOMENT_STEP_OVERDUE, place);
    m.due_ms = p->due_ms;
    enum code rc = net_emit(d, &m);
    for (uint32_t i = run->first_lane; !rc && i < run_step_count(run); i++) {
        if (walk_at(run, i)->place != place) continue;
        enum lane_phase phase = lane_phase(run, i);
        if (phase == LANE_FLIGHT) rc = attempt_stop(d, i, &timeout_fault);
        if (phase == LANE_DELAYED) rc = lane_timeout(d, i);
    }
    return rc;
}

static enum code places_owed(struct decide *d)
{
    const struct run *run = d->run;
    enum code rc = OK;
    for (uint32_t i = 0; !rc && i < run->program->step_count; i++) {
        const struct net_place *p = &run->net->places[i];
        if (p->phase == PLACE_RUNNING && p->due_ms > 0 && !p->overdue) rc = place_timer(d, i);
    }
    return rc;
}

static bool is_overdue(const struct run *run, uint32_t lane)
{
    return run->net->places[walk_at(run, lane)->place].overdue;
}

static enum code take_token(struct decide *d, uint32_t place)
{
    INVARIANT(d->run->net->places[place].token && d->run->net->places[place].phase == PLACE_IDLE);
    if (must_wait(d->run, place)) return OK;
    bool allowed;
    enum code rc = admit(d, place, &allowed);
    return rc || !allowed ? rc : schedule(d, place);
}

// ---- loops
static enum code fail_place(struct decide *d, uint32_t place, const struct fault *fault)
{
    struct moment m = place_moment(d, MOMENT_STEP_FAILED, place);
    m.fault = *fault;
    m.duration_ms = elapsed_ms(d, d->run->net->places[place].started_ms);
    return net_emit(d, &m);
}

// How many iterations may be under way; a template may change its mind between them.
static enum code at_once(struct decide *d, uint32_t place, uint32_t *most, struct fault *fault)
{
    const struct net_loop *loop = &net_of_run(d->run)->steps[place].loop;
    struct net_view view = view_of(d, place);
    *most = loop->max_in_flight;
    return net_many(&view, loop->max_of, "max_in_flight", NET_IN_FLIGHT_MAX, most, fault, d->err);
}

static enum code begin_loop(struct decide *d, uint32_t place)
{
    const struct net_loop *loop = &net_of_run(d->run)->steps[place].loop;
    struct net_view view = view_of(d, place);
    struct template_scope scope = net_scope(&view);
    struct json value, items;
    struct error local = {0};
    enum code rc = template_tree_render(loop->in, &scope, net_limits(d->run), d->out->turn, &value, &local);
    if (net_is_grave(rc)) return error_set(d->err, rc, "%s", local.message);
    if (rc) {
        struct fault fault = kernel_template_fault(d->out->turn, &local);
        return fail_place(d, place, &fault);
    }
    uint32_t most;
    struct fault fault = {0};
    rc = at_once(d, place, &most, &fault);
    if (rc) return rc;
    if (fault.code.len > 0) return fail_place(d, place, &fault);
    if (!loop_items(d->out->turn, &value, &items)) return error_nomem(d->err);
    if (kernel_too_many(d->env, items.count, d->out->turn, &fault)) return fail_place(d, place, &fault);
    rc = net_canon(d->out->turn, &items, d->err);
    struct moment m = place_moment(d, MOMENT_LOOP_STARTED, place);
    m.value = items;
    m.counts.total = items.count;
    return rc ? rc : net_emit(d, &m);
}

static enum code begin_iteration(struct decide *d, uint32_t place)
{
    INVARIANT(d->run->net->places[place].loop.begun < d->run->net->places[place].loop.total);
    struct moment m = place_moment(d, MOMENT_ITERATION_SCHEDULED, place);
    m.iteration = d->run->net->places[place].loop.begun + 1;
    enum code rc = net_emit(d, &m);
    m.kind = MOMENT_ITERATION_STARTED;
    m.by = moment_emitter(m.kind);
    return rc ? rc : net_emit(d, &m);
}

static struct json part_of(struct arena *turn, const struct run *run, uint32_t place, uint32_t index)
{
    return JSON_OF(turn, {"bytes", json_count(run->net->places[place].loop.results[index].size)},
                   {"index", json_int(index)},
                   {"ref", json_text_made(net_address(run, place, index + 1, turn))});
}

// What a loop gave is in parts beside the log when results of its iterations are: the manifest says where. Parts that do not fit
// into an event are counted all the same.
static enum code record_manifest(struct decide *d, uint32_t place)
{
    enum { PARTS_MAX = 200 };
    const struct net_place *p = &d->run->net->places[place];
    struct arena *turn = d->out->turn;
    struct json parts = json_array();
    uint32_t count = 0;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->loop.begun; i++) {
        if (!p->loop.results[i].has_blob) continue;
        bytes += p->loop.results[i].size;
        if (count++ < PARTS_MAX) json_append(turn, &parts, part_of(turn, d->run, place, i));
    }
    if (count == 0) return OK;
    struct moment m = place_moment(d, MOMENT_MANIFEST_UPDATED, place);
    m.value = JSON_OF(turn, {"kind", json_word("manifest")}, {"parts", parts},
                      {"ref", json_text_made(net_address(d->run, place, 0, turn))}, {"strategy", json_word("append")},
                      {"total_bytes", json_count(bytes)}, {"total_parts", json_int(count)});
    return json_ok(&m.value) ? net_emit(d, &m) : error_nomem(d->err);
}

static enum code end_loop(struct decide *d, uint32_t place)
{
    const struct net_place *p = &d->run->net->places[place];
    const struct net_step *ns = &net_of_run(d->run)->steps[place];
    enum code recorded = record_manifest(d, place);
    INVARIANT(container_open(&p->loop) == 0);
    if (recorded) return recorded;
    struct moment m = place_moment(d, MOMENT_LOOP_DONE, place);
    m.counts = (struct run_counts){.total = p->loop.total, .completed = p->loop.done, .failed = p->loop.failures};
    m.counts.skipped = p->loop.total - p->loop.begun;
    m.duration_ms = elapsed_ms(d, p->started_ms);
    enum code rc = net_emit(d, &m);
    if (rc) return rc;
    if (p->loop.failures > 0 && !ns->best_effort) {
        struct fault fault = p->fault; // copied: folding moves what it points to
        if (!fault_keep(d->out->turn, &fault)) return error_nomem(d->err);
        return fail_place(d, place, &fault);
    }
    m = place_moment(d, MOMENT_STEP_COMPLETED, place);
    m.duration_ms = elapsed_ms(d, p->started_ms);
    return net_emit(d, &m);
}

static enum code go_round(struct decide *d, uint32_t place)
{
    struct net_place *p = &d->run->net->places[place];
    const struct net_step *ns = &net_of_run(d->run)->steps[place];
    if (!p->looped) return begin_loop(d, place);
    bool stop = (p->loop.failures > 0 && !ns->best_effort) || p->overdue;
    uint32_t most = ns->loop.max_in_flight;
    struct fault fault = {0}; // then what is usual holds
    enum code rc = stop || p->loop.begun == p->loop.total ? OK : at_once(d, place, &most, &fault);
    if (rc) return rc;
    enum container_next next = container_next(&p->loop, most, stop);
    if (next == CONTAINER_BEGIN) return begin_iteration(d, place);
    return next == CONTAINER_END ? end_loop(d, place) : OK;
}

// The walk of a lane is over: of an iteration, or of the visit.
enum code lane_over(struct decide *d, uint32_t index)
{
    const struct walk *lane = walk_at(d->run, index);
    uint32_t place = lane->place;
    INVARIANT(lane_phase(d->run, index) == LANE_OVER || lane_phase(d->run, index) == LANE_READY);
    struct moment m = place_moment(d, MOMENT_STEP_COMPLETED, place);
    m.duration_ms = elapsed_ms(d, lane->started_ms);
    m.iteration = lane->iteration;
    struct arena *turn = d->out->turn;
    if (lane->failed) {
        m.fault = lane->fault; // copied: the lane goes
        if (!fault_keep(d->out->turn, &m.fault)) return error_nomem(d->err);
        if (m.fault.code.len == 0) {
            m.fault.code = STR("TASK_FAILED");
            m.fault.message = STR("a task failed");
        }
    }
    if (lane->iteration > 0) {
        m.kind = lane->failed ? MOMENT_ITERATION_FAILED : MOMENT_ITERATION_DONE;
        m.by = moment_emitter(m.kind);
        return net_emit(d, &m);
    }
    m.kind = lane->failed ? MOMENT_STEP_FAILED : MOMENT_STEP_COMPLETED;
    m.by = moment_emitter(m.kind);
    if (!lane->failed && lane->last > 0) {
        const struct net_value *value = &lane->results[lane->last - 1];
        m.has_blob = value->has_blob;
        m.blob = value->blob;
        m.blob_size = value->size;
        m.store = value->store;
        if (value->value.type != 0 && !json_copy(turn, &value->value, &m.value)) return error_nomem(d->err);
        if (value->extracted.type != 0 && !json_copy(turn, &value->extracted, &m.extracted)) return error_nomem(d->err);
    }
    return net_emit(d, &m);
}

// ---- arcs
// An arc without a condition is always taken. Conditions are asked with every name that the event has (C-47).
static enum code arc_holds(struct decide *d, struct net_view *view, const struct net_arc *arc, bool loop, bool *out)
{
    const struct net_place *p = &d->run->net->places[view->place];
    *out = true;
    if (!arc->when.test) return OK;
    const char *names[4];
    size_t count = 0;
    if (!p->failed && loop) names[count++] = "loop.done";
    names[count++] = p->failed ? "step.failed" : "step.done";
    if (p->failed && loop) names[count++] = "loop.done";
    if (arc->when.exit) names[count++] = "step.exit";
    if (!arc->when.event) count = 1;
    *out = false;
    for (size_t i = 0; i < count && !*out; i++) {
        struct arena *turn = d->out->turn;
        struct json *event = ARENA_NEW(turn, struct json); // what is made of the arc sees it too
        if (!event) return error_nomem(d->err);
        *event = JSON_OF(turn, {"name", json_word(names[i])}, {"type", json_word(names[i])},
                         {"step", json_string(d->run->program->steps[view->place].id)},
                         {"status", json_word(p->failed ? "error" : "success")},
                         {"error", p->failed ? net_fault_value(&p->fault, turn) : json_none()});
        if (!json_ok(event)) return error_nomem(d->err);
        view->event = event;
        enum code rc = net_holds(view, &arc->when, out, d->err);
        if (rc) return rc;
    }
    return OK;
}

struct chosen {
    struct json matched, selected, set, ctx;
    bool handled; // one of the arcs that were taken has a condition: it was asked about what happened
};

static enum code follow(struct decide *d, struct net_view *view, const struct net_arc *arc, struct chosen *chosen)
{
    struct arena *turn = d->out->turn;
    const struct net_place *to = &d->run->net->places[arc->step];
    struct json args = {0};
    struct template_scope scope = net_scope(view);
    enum code rc = arc->args ? template_tree_render(arc->args, &scope, net_limits(d->run), turn, &args, d->err) : OK;
    if (!rc && args.type == JSON_STRING && str_trim(args.text).len == 0) args = (struct json){0}; // nothing
    if (!rc && args.type != 0 && args.type != JSON_OBJECT)
        rc = error_set(d->err, E_INVALID, "the arguments of an arc are a mapping, and these are of type %s",
                       json_type_name((enum json_type)args.type));
    if (!rc && args.type != 0) rc = net_canon(turn, &args, d->err);
    if (!rc) rc = net_patches(view, &arc->sets, &chosen->set, d->err);
    if (rc) return rc;
    bool busy = to->phase != PLACE_IDLE && !(arc->step == view->place && to->phase == PLACE_ENDED);
    json_append(turn, &chosen->selected,
                JSON_OF(turn, {"args", args}, {"merged", json_flag(busy)},
                        {"step", json_string(d->run->program->steps[arc->step].id)}));
    return json_made(&chosen->selected, d->err);
}

static enum code ask_arcs(struct decide *d, struct net_view *view, struct chosen *chosen)
{
    const struct net_step *ns = &net_of_run(d->run)->steps[view->place];
    struct arena *turn = d->out->turn;
    for (uint32_t i = 0; i < ns->arc_count; i++) {
        bool holds;
        enum code rc = arc_holds(d, view, &ns->arcs[i], ns->has_loop, &holds);
        if (rc) return rc;
        if (!holds) continue;
        json_append(turn, &chosen->matched,
                    JSON_OF(turn, {"step", json_string(d->run->program->steps[ns->arcs[i].step].id)},
                            {"when", json_some(ns->arcs[i].when.text)}));
        if (!json_ok(&chosen->matched)) return error_nomem(d->err);
        chosen->handled = chosen->handled || ns->arcs[i].when.test;
        rc = follow(d, view, &ns->arcs[i], chosen);
        if (rc || !ns->inclusive) return rc;
    }
    return OK;
}

static enum code route(struct decide *d, uint32_t place)
{
    struct run *run = d->run;
    const struct net_place *p = &run->net->places[place];
    const struct net_step *ns = &net_of_run(run)->steps[place];
    struct arena *turn = d->out->turn;
    struct net_view view = view_of(d, place);
    view.ended = true;
    struct chosen found = {.matched = json_array(), .selected = json_array(), .set = json_object()};
    struct error local = {0};
    enum code rc = p->failed ? OK : net_patches(&view, &ns->sets, &found.set, &local);
    if (!rc) rc = net_patched(turn, &run->net->ctx, json_key(&found.set, "ctx"), &found.ctx, &local);
    view.ctx = &found.ctx; // what the step has set is seen by its arcs
    struct error *err = d->err;
    d->err = &local;
    if (!rc) rc = ask_arcs(d, &view, &found);
    d->err = err;
    if (net_is_grave(rc)) return error_set(d->err, rc, "%s", local.message);
    struct moment m = place_moment(d, MOMENT_ROUTED, place);
    if (rc) {
        // What was to be set or passed on cannot be had: the token stops here, and the run fails for it.
        m.reason = kernel_template_fault(d->out->turn, &local).message;
        found.selected = json_array();
        found.set = json_object();
    }
    bool lost = !rc && !p->failed && ns->arc_count > 0 && found.selected.count == 0;
    if (lost && net_of_run(run)->no_next_is_error) m.reason = STR(NET_NO_NEXT);
    const char *event = p->failed ? "step.failed" : ns->has_loop ? "loop.done" : "step.done";
    // A failure that only went on is one of the run; one that a condition was asked about is taken care of, but for NoETL 4.
    bool goes_on = p->failed && found.selected.count > 0 && (!found.handled || net_of_run(run)->as_noetl);
    m.value = JSON_OF(turn, {"error", json_some(m.reason)}, {"event", json_word(event)}, {"matched", found.matched},
                      {"mode", json_word(ns->inclusive ? "inclusive" : "exclusive")}, {"selected", found.selected},
                      {"set", json_filled(found.set)}, {"unhandled", json_flag(goes_on)});
    return json_ok(&m.value) ? net_emit(d, &m) : error_nomem(d->err);
}

struct values {
    struct net_view *view;
    struct json out;
    enum code rc;
    struct error *err;
};

// What the condition read; what is not there is left out.
static void add_value(void *context, struct str path)
{
    struct values *values = context;
    struct arena *arena = values->view->arena;
    struct template_scope scope = net_scope(values->view);
    struct template_limits limits = *net_limits(values->view->run);
    limits.undefined = TEMPLATE_STRICT;
    struct error ignored = {0};
    const struct template *read;
    struct json value, kept;
    struct str name = arena_copy(arena, path);
    if (values->rc || json_get(&values->out, path)) return;
    if (!name.ptr) values->rc = error_nomem(values->err);
    if (values->rc || template_expression(name, arena, &read, &ignored) != OK ||
        template_render(read, &scope, &limits, arena, &value, &ignored) != OK)
        return;
    if (!json_copy(arena, &value, &kept) || !json_put(arena, &values->out, name, kept))
        values->rc = error_nomem(values->err);
}

enum code kernel_arcs(struct run *run, uint32_t place, const struct kernel_env *env, struct arena *arena,
                      struct json *out, struct error *err)
{
    struct input input = {0};
    struct outcome outcome = {.turn = arena};
    struct decide d = {.run = run, .input = &input, .env = env, .out = &outcome, .err = err};
    const struct net_step *ns = &net_of_run(run)->steps[place];
    struct net_view view = view_of(&d, place);
    view.ended = true;
    struct json set = json_object(), ctx = run->net->ctx;
    struct error local = {0};
    enum code rc = run->net->places[place].failed ? OK : net_patches(&view, &ns->sets, &set, &local);
    if (!rc) rc = net_patched(arena, &run->net->ctx, json_key(&set, "ctx"), &ctx, &local);
    if (net_is_grave(rc)) return error_set(err, rc, "%s", local.message);
    view.ctx = &ctx;
    *out = json_array();
    for (uint32_t i = 0; i < ns->arc_count; i++) {
        const struct net_arc *arc = &ns->arcs[i];
        bool holds;
        rc = arc_holds(&d, &view, arc, ns->has_loop, &holds);
        if (rc == E_NOT_FOUND) holds = false; // strict: the run has failed for it
        if (rc && rc != E_NOT_FOUND) return rc;
        struct values values = {.view = &view, .out = json_object(), .err = err};
        if (arc->when.test) template_paths(arc->when.test, add_value, &values);
        if (values.rc) return values.rc;
        view.event = NULL;
        json_append(arena, out,
                    JSON_OF(arena, {"holds", json_bool(holds)},
                            {"step", json_string(run->program->steps[arc->step].id)}, {"values", values.out},
                            {"when", json_string(arc->when.text)}));
        if (!json_ok(out)) return error_nomem(err);
    }
    return OK;
}

// ---- the end
static enum code net_end(struct decide *d, struct moment *end)
{
    const struct run *run = d->run;
    struct moment finished = moment_of(d, MOMENT_WORKFLOW_FINISHED, PROGRAM_TOP), last = finished;
    bool begun = run->status == RUN_STATUS_RUNNING || run->status == RUN_STATUS_PAUSED;
    if (end->kind == MOMENT_RUN_FAILED && end->fault.code.len == 0)
        end->fault = (struct fault){.code = STR("STEP_FAILED"), .message = STR("a step failed")};
    finished.counts = end->counts;
    finished.duration_ms = end->duration_ms;
    finished.fault = end->fault;
    if (end->kind == MOMENT_RUN_CANCELLED) {
        finished.fault = (struct fault){.code = STR("CANCELLED"), .message = STR("the run was cancelled")};
        end->reason = run->cancel_reason; // of one that was refused its start, the signal in the ledger says it
        end->signal_id = run->cancel_signal;
    }
    end->by = moment_emitter(end->kind);
    last.kind = MOMENT_RUN_PROCESSED;
    enum code rc = begun ? net_emit(d, &finished) : OK;
    if (!rc) rc = net_emit(d, end);
    return rc ? rc : net_emit(d, &last);
}

static enum code look_at(struct decide *d, uint32_t step)
{
    struct run *run = d->run;
    if (step >= run->program->step_count) {
        enum lane_phase phase = lane_phase(run, step);
        if (phase == LANE_OVER) return lane_over(d, step);
        return phase == LANE_READY ? lane_go(d, step) : OK;
    }
    const struct net_place *p = &run->net->places[step];
    if (p->phase == PLACE_IDLE && p->token) return take_token(d, step);
    if (p->phase == PLACE_ENDED) return route(d, step);
    if (p->phase == PLACE_RUNNING && net_of_run(run)->steps[step].has_loop) return go_round(d, step);
    return OK;
}

static enum code look_at_all(struct decide *d)
{
    struct run *run = d->run;
    // What a run took over is a batch of its own: what is decidable then stands in the order of the log, which is all that a reader has.
    if (d->input->kind == INPUT_START && d->input->past && run->ready_head != PROGRAM_TOP)
        return timer_add(d, PROGRAM_TOP, TIMER_LOOK, d->input->now_ms + 1, d->input->now_ms);
    while (run_goes(run) && !run->cancelling && run->ready_head != PROGRAM_TOP) {
        if (d->input->idle) return OK;                 // RECOVER goes on
        if (d->out->moment_count >= NET_MOMENTS_MAX) { // the rest in the next turn
            return timer_add(d, PROGRAM_TOP, TIMER_LOOK, d->input->now_ms, d->input->now_ms);
        }
        uint32_t step = ready_pop(run);
        enum code rc = look_at(d, step);
        if (rc) return rc;
    }
    return OK;
}

static enum code net_advance(struct decide *d)
{
    enum code rc = look_at_all(d);
    return rc ? rc : try_end(d);
}

// ---- what is asked of a route
static enum body net_body(const struct run *run, uint32_t lane)
{
    const struct str kind = kernel_task_of(run, lane)->kind;
    return str_is(kind, "wait")       ? BODY_WAIT
           : str_is(kind, "event")    ? BODY_EVENT
           : str_is(kind, "playbook") ? BODY_CHILD
                                      : BODY_EXECUTED;
}

// `until` is a moment, not a duration.
static bool net_of_day(const struct run *run, uint32_t lane)
{
    const struct net_task *task = kernel_task_of(run, lane);
    return str_is(task->kind, "wait") && json_key(template_tree_source(task->with), "until");
}

static enum code emit_of_lane(struct decide *d, struct moment *moment, uint32_t lane)
{
    (void)lane;
    return net_emit(d, moment);
}

static bool net_is_busy(const struct run *run)
{
    return run->net->live + run->net->tokens > 0;
}

static bool net_has_failed(const struct run *run)
{
    return run->net->unhandled > 0;
}

static bool net_folds(const struct moment *moment)
{
    return moment->kind == MOMENT_RUN_REQUESTED || moment->kind == MOMENT_RUN_STARTED;
}

static uint32_t net_find_path(const struct run *run, struct str path, enum path_time *time)
{
    (void)time;
    return net_find(run, path);
}

static enum code net_output(const struct run *run, uint32_t step, const struct kernel_env *env, struct arena *arena,
                            struct json *out, struct error *err)
{
    return net_place_value(run, kernel_place(run, step), env, arena, out, err);
}

const struct run_route route_net = {
    .body = net_body,
    .moment = lane_moment,
    .emit = emit_of_lane,
    .lane = lane_of,
    .begin = lane_begin,
    .done = lane_done,
    .fail = lane_fault,
    .wake = lane_wake,
    .of_day = net_of_day,
    .overdue = is_overdue,
    .due = place_due,
    .owed = places_owed,
    .lost = "every executor of the task dies of it, again and again",
    .child_late = "the child execution took longer than %s (the field timeout_s or timeout of its task)",
    .start = net_start,
    .open = net_begin,
    .again = net_again,
    .advance = net_advance,
    .is_busy = net_is_busy,
    .has_failed = net_has_failed,
    .end = net_end,
    .fold = net_fold,
    .folds = net_folds,
    .state = net_place_state,
    .visit = net_place_attempt,
    .iteration = net_visit,
    .path = net_path,
    .child = net_child_name,
    .find = net_find_path,
    .output = net_output,
    .make = net_make,
    .suppose = net_suppose,
    .fault = net_fault,
    .release = net_free,
};
