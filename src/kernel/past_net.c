// The past of a playbook's run as another run may have it: cut at an event, and there back to where nothing is half decided. What one
// decision says stands in a row in the log; a row that is cut is taken back as a whole, and decided anew.
#include "kernel/net_inside.h"

#include "base/map.h"
#include "base/text.h"

struct net_cut {
    struct moment *moments;
    bool *open;
    uint32_t count;
    struct arena *arena;
    struct map keys;   // of a visit, or of an iteration, the slot of
    uint32_t *last;    // what it began last, + 1; 0: nothing
    uint32_t key_count;
    size_t key_capacity;
};

static bool cancels(const struct moment *m)
{
    if (m->kind != MOMENT_SIGNAL_ACCEPTED) return false;
    enum signal_type type = signal_parse(m->signal_type);
    return type == SIGNAL_CANCEL || type == SIGNAL_EMERGENCY_STOP;
}

static bool ends(const struct moment *m)
{
    return moment_is_terminal(m->kind) || m->kind == MOMENT_WORKFLOW_FINISHED || cancels(m);
}

static bool is_of_that_run(const struct moment *m)
{
    return m->kind == MOMENT_UNKNOWN || m->kind == MOMENT_LATE_RESULT || m->kind == MOMENT_ATTEMPT_RESTS ||
           m->kind == MOMENT_SIGNAL_DEFERRED || m->kind == MOMENT_SIGNAL_SETTLED ||
           m->kind == MOMENT_SEGMENT_FULL || m->kind == MOMENT_SEGMENT_STARTED;
}

static bool same_lane(const struct moment *a, const struct moment *b)
{
    return b && str_eq(a->step, b->step) && a->visit == b->visit && a->iteration == b->iteration;
}

// Whether the decision that made the last moment goes on behind it. `next` is what followed it; NULL: nothing.
static bool is_half(const struct moment *last, const struct moment *next)
{
    bool at_once = next && same_lane(last, next) && next->at_ms == last->at_ms;
    switch ((int)last->kind) {
    case MOMENT_RUN_REQUESTED:
    case MOMENT_REQUEST_EVALUATED: // before its start there is nothing to take over
    case MOMENT_RUN_STARTED:
    case MOMENT_STEP_SCHEDULED:
    case MOMENT_TASK_STARTED:
    case MOMENT_ATTEMPT_DONE:
    case MOMENT_ITERATION_SCHEDULED:
    case MOMENT_RESULT_STORED:
    case MOMENT_MANIFEST_UPDATED:
    case MOMENT_LOOP_DONE:
        return true;
    case MOMENT_ADMIT_EVALUATED:
        return json_true(json_key(&last->value, "allow"));
    case MOMENT_ATTEMPT_FAILED:
        return true;
    case MOMENT_TASK_DECIDED:
        return !str_is(json_text(json_at(&last->value, STR("action.do"))), "retry");
    case MOMENT_STEP_STARTED:
        return at_once && next->kind == MOMENT_STEP_FAILED;
    case MOMENT_ATTEMPT_STARTED:
        return at_once && (next->kind == MOMENT_ATTEMPT_DONE || next->kind == MOMENT_ATTEMPT_FAILED ||
                           next->kind == MOMENT_EVENT_AWAITED);
    case MOMENT_STEP_OVERDUE:
        return next && str_eq(last->step, next->step) && last->visit == next->visit && next->at_ms == last->at_ms;
    default:
        return false;
    }
}

static uint32_t *last_of(struct net_cut *cut, const struct moment *m, bool visit)
{
    struct str key = arena_format(cut->arena, "%.*s|%u|%s%u", STR_ARG(m->step), m->visit, visit ? "visit" : "", m->iteration);
    uint32_t at = key.ptr ? map_get(&cut->keys, key) : MAP_NONE;
    if (at != MAP_NONE) return &cut->last[at];
    if (!key.ptr || !ARENA_ROOM(cut->arena, cut->last, cut->key_count, &cut->key_capacity) ||
        !map_put(&cut->keys, key, cut->key_count, NULL))
        return NULL;
    cut->last[cut->key_count] = 0;
    return &cut->last[cut->key_count++];
}

// What is under way at the end goes on by the new run's clock.
static bool follow(struct net_cut *cut, uint32_t i)
{
    const struct moment *m = &cut->moments[i];
    bool retry = m->kind == MOMENT_TASK_DECIDED && str_is(json_text(json_at(&m->value, STR("action.do"))), "retry");
    bool visit = m->kind == MOMENT_STEP_STARTED || m->kind == MOMENT_STEP_COMPLETED || m->kind == MOMENT_STEP_FAILED;
    bool begins = m->kind == MOMENT_STEP_STARTED || m->kind == MOMENT_ATTEMPT_STARTED || retry;
    bool over = m->kind == MOMENT_STEP_COMPLETED || m->kind == MOMENT_STEP_FAILED || m->kind == MOMENT_ATTEMPT_DONE ||
                m->kind == MOMENT_ATTEMPT_FAILED || m->kind == MOMENT_ITERATION_FAILED;
    if (!begins && !over) return true;
    uint32_t *last = last_of(cut, m, visit);
    if (!last) return false;
    if (*last > 0) cut->open[*last - 1] = false;
    *last = begins ? i + 1 : 0;
    cut->open[i] = begins;
    return true;
}

enum code kernel_net_past(const struct moment *moments, size_t count, const struct moment *next, struct arena *arena,
                          struct past *out)
{
    struct net_cut cut = {.arena = arena,
                          .moments = ARENA_ARRAY(arena, count + 1, struct moment),
                          .open = ARENA_ARRAY(arena, count + 1, bool)};
    map_init(&cut.keys, arena);
    *out = (struct past){0};
    if (!cut.moments || !cut.open) return E_NOMEM;
    size_t whole = 0;
    while (whole < count && !ends(&moments[whole])) whole++;
    if (whole < count) next = &moments[whole];
    for (; whole > 0 && is_half(&moments[whole - 1], next); whole--) next = &moments[whole - 1];
    for (size_t i = 0; i < whole; i++)
        if (!is_of_that_run(&moments[i])) cut.moments[cut.count++] = moments[i];
    for (uint32_t i = 0; i < cut.count; i++) {
        if (cut.moments[i].at_ms > out->at_ms) out->at_ms = cut.moments[i].at_ms;
        if (!follow(&cut, i)) return E_NOMEM;
    }
    out->moments = cut.moments;
    out->open = cut.open;
    out->count = cut.count;
    out->taken = whole;
    return OK;
}

// ---- recorded again in the new run
// A visit, an attempt or a delay that goes on does so by the clocks and names of the new run.
static enum code set_net_forward(struct decide *d, struct moment *m, uint32_t step, int64_t gap)
{
    const struct run_route *route = d->run->route;
    bool attempt = m->kind == MOMENT_ATTEMPT_STARTED;
    uint32_t lane = attempt ? route->lane(d->run, m, step) : PROGRAM_TOP;
    if (attempt && lane == PROGRAM_TOP) return OK; // folding says what is wrong
    if (attempt && route->of_day(d->run, lane)) return OK;
    if (m->due_ms > 0) m->due_ms += gap;
    if (m->kind == MOMENT_TASK_DECIDED) return OK;
    m->at_ms += gap;
    if (!attempt || route->body(d->run, lane) != BODY_CHILD) return OK;
    struct str path = net_path(d->run, lane, d->out->turn);
    if (path.ptr) m->run_ref = net_child_name(d->run->ids.run, path, d->run->net->serial + 1, d->out->turn);
    return m->run_ref.ptr ? OK : error_nomem(d->err);
}

enum code net_again(struct decide *d, const struct past *past, uint32_t at)
{
    struct moment m = past->moments[at];
    int64_t gap = d->input->now_ms > past->at_ms ? d->input->now_ms - past->at_ms : 0;
    uint32_t step = m.step.len > 0 ? program_find(d->run->program, PROGRAM_TOP, m.step) : PROGRAM_TOP;
    struct fault fault = {0};
    enum code rc = OK;
    if (m.start) {
        m.start = d->input->start;
        m.at_ms = d->input->now_ms;
    }
    if (m.step.len > 0 && step == PROGRAM_TOP)
        return error_set(d->err, E_CORRUPT, "run %.*s: the past names step \"%.*s\", which its document does not have",
                         STR_ARG(d->run->ids.run), STR_ARG(m.step));
    if (past->open[at]) rc = set_net_forward(d, &m, step, gap);
    if (!rc && m.kind == MOMENT_RUN_STARTED && past->workload) {
        m.has_blob = false;
        rc = net_workload(d, &m.value, &fault);
        if (!rc && fault.code.len > 0) rc = error_set(d->err, E_INVALID, "%.*s", STR_ARG(fault.message));
        return rc ? rc : net_emit(d, &m);
    }
    return rc ? rc : emit(d, &m, step);
}
