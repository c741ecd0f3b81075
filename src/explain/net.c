// Playbooks: which arc led to a step and which did not, what admission and policies said. The kernel is asked again before a
// decision about arcs is folded (kernel_arcs), with the values that it was made on.
#include "explain/inside.h"

enum { NOTES_MAX = 200 }; // of one kind for one step: the first so many are kept

// Whether the next of those that were selected, which are in the order of the arcs, is this one. Arcs may lead to the same step.
static bool is_next(const struct json *selected, uint32_t next, struct str step, bool *merged)
{
    if (!json_is(selected, JSON_ARRAY) || next >= selected->count) return false;
    *merged = json_key(&selected->items[next], "merged") != NULL;
    return str_eq(json_text(json_key(&selected->items[next], "step")), step);
}

static enum code add_arrival(struct explain *e, const struct moment *m, struct log_position at, const struct json *arc,
                             bool taken, bool merged, struct error *err)
{
    struct step_finding *note;
    uint32_t to = program_find(e->program, PROGRAM_TOP, json_text(json_key(arc, "step")));
    // An arc that was taken leads to a visit that is to come; one that was not belongs to the visit that there is.
    enum code rc = visit_note(e, to, kernel_iteration(e->run, to) + (taken ? 1 : 0), &note, err);
    if (rc || note->arrival_count >= NOTES_MAX) return rc;
    if (!ARENA_ROOM(&e->arena, note->arrivals, note->arrival_count, &note->arrival_capacity)) return error_nomem(err);
    struct arrival_finding *arrival = &note->arrivals[note->arrival_count++];
    const struct json *holds = json_key(arc, "holds");
    *arrival = (struct arrival_finding){.from = program_find(e->program, PROGRAM_TOP, m->step),
                                        .visit = m->visit,
                                        .at = at,
                                        .holds = json_true(holds),
                                        .taken = taken,
                                        .merged = merged};
    return json_copy(&e->arena, arc, &arrival->arc) ? OK : error_nomem(err);
}

// The arcs of a step that has ended, asked again: the first that holds, or all, must be those that were taken.
static enum code note_routed(struct explain *e, const struct moment *m, struct step_finding *note,
                             struct log_position at, struct error *err)
{
    struct json arcs, value = m->value;
    arena_reset(&e->scratch);
    if (m->has_blob && value.type == 0) {
        struct str bytes;
        enum code rc = e->env.blob(e->env.context, &m->blob, &e->scratch, &bytes, err);
        if (!rc) rc = json_parse(bytes, &json_limits_result, &e->scratch, &value, err);
        if (rc) return rc;
    }
    enum code rc = kernel_arcs(e->run, note->step, &e->env, &e->scratch, &arcs, err);
    if (rc) return rc;
    const struct json *selected = json_key(&value, "selected");
    bool inclusive = str_is(json_text(json_key(&value, "mode")), "inclusive"), same = true, first = true;
    uint32_t next = 0;
    for (uint32_t i = 0; !rc && i < arcs.count; i++) {
        const struct json *holds = json_key(&arcs.items[i], "holds");
        bool merged = false, expected = holds->boolean && (inclusive || first);
        bool taken = expected && is_next(selected, next, json_text(json_key(&arcs.items[i], "step")), &merged);
        first = first && !holds->boolean;
        next += taken;
        same = same && taken == expected;
        rc = add_arrival(e, m, at, &arcs.items[i], taken, merged, err);
    }
    same = (same && (!json_is(selected, JSON_ARRAY) || next == selected->count)) || json_key(&value, "error");
    e->checked++;
    e->reproduced += same;
    note->checked++;
    note->reproduced += same;
    return rc;
}

static enum code note_rule(struct explain *e, const struct moment *m, struct step_finding *note, struct log_position at,
                           struct error *err)
{
    if (note->rule_count >= NOTES_MAX) return OK;
    const struct net_step *around = &e->program->net->steps[note->step];
    for (uint32_t i = 0; i < around->task_count; i++) // without rules there is nothing to explain
        if (str_eq(around->tasks[i].label, m->task) && !around->tasks[i].has_policy) return OK;
    if (!ARENA_ROOM(&e->arena, note->rules, note->rule_count, &note->rule_capacity)) return error_nomem(err);
    struct rule_finding *rule = &note->rules[note->rule_count++];
    const struct net_step *ns = &e->program->net->steps[note->step];
    *rule = (struct rule_finding){.iteration = m->iteration,
                                  .attempt = m->logical,
                                  .at = at,
                                  .index = (int32_t)json_integer(json_key(&m->value, "matched_rule_index"), -1),
                                  .due_ms = m->due_ms};
    for (uint32_t i = 0; i < ns->task_count; i++)
        if (str_eq(ns->tasks[i].label, m->task)) rule->task = i;
    rule->action = arena_copy(&e->arena, json_text(json_at(&m->value, STR("action.do"))));
    return rule->action.ptr ? OK : error_nomem(err);
}

enum code net_note(struct explain *e, const struct moment *m, struct step_finding *note, struct log_position at,
                   struct error *err)
{
    switch ((int)m->kind) {
    case MOMENT_ROUTED:
        return note_routed(e, m, note, at, err);
    case MOMENT_TASK_DECIDED:
        return note_rule(e, m, note, at, err);
    case MOMENT_ADMIT_EVALUATED: {
        const struct json *allow = json_key(&m->value, "allow");
        note->admitted = at;
        note->allowed = json_true(allow);
        note->admit_rule = (int32_t)json_integer(json_key(&m->value, "matched_rule_index"), -1);
        return OK;
    }
    default:
        return OK;
    }
}

// ---- answers
static struct str step_id(const struct explain *e, uint32_t step)
{
    return e->program->steps[step].id;
}

// `end`: what stands at the other end of the arc, and under which name.
static void put_arrival(struct maker *m, struct json *list, const struct arrival_finding *a, const char *end,
                        uint32_t step)
{
    struct json one = JSON_OF(m->arena, {end, json_some(step_id(m->e, step))},
                              {"visit", json_when(a->visit > 1, json_int(a->visit))}, AT(a->at),
                              {"taken", json_bool(a->taken)}, {"merged", json_flag(a->merged)},
                              {"when", json_some(json_text(json_key(&a->arc, "when")))},
                              {"holds", json_bool(a->holds)});
    const struct json *values = json_key(&a->arc, "values");
    JSON_ADD(m->arena, &one, {"values", values && values->count > 0 ? *values : json_none()});
    json_append(m->arena, list, one);
}

void put_arcs(struct maker *m, struct json *out, const struct view_of_step *v)
{
    const struct explain *e = m->e;
    if (!e->program->net) return;
    struct json list = json_array(), next = json_array();
    for (size_t i = 0; v->note && i < v->note->arrival_count; i++)
        put_arrival(m, &list, &v->note->arrivals[i], "from", v->note->arrivals[i].from);
    JSON_ADD(m->arena, out, {"arcs", list});
    for (size_t i = 0; i < e->note_count; i++)
        for (size_t k = 0; k < e->notes[i]->arrival_count; k++)
            if (e->notes[i]->arrivals[k].from == v->step && (!v->note || e->notes[i]->arrivals[k].visit == v->note->visit))
                put_arrival(m, &next, &e->notes[i]->arrivals[k], "to", e->notes[i]->step);
    JSON_ADD(m->arena, out, {"routes", json_filled(next)});
    if (v->note && v->note->admitted.seq > 0) {
        struct json admission = JSON_OF(m->arena, {"allowed", json_bool(v->note->allowed)},
                                        {"rule", json_when(v->note->admit_rule >= 0, json_int(v->note->admit_rule))},
                                        AT(v->note->admitted));
        const struct net_step *ns = &m->e->program->net->steps[v->step];
        JSON_ADD(m->arena, &admission,
                 {"when", v->note->admit_rule >= 0 && (uint32_t)v->note->admit_rule < ns->admit_count ?
                  json_some(ns->admit[v->note->admit_rule].when.text) : json_none()});
        JSON_ADD(m->arena, out, {"admission", admission});
    }
}

void put_rules(struct maker *m, struct json *out, const struct view_of_step *v)
{
    if (!m->e->program->net || !v->note || v->note->rule_count == 0) return;
    const struct net_step *ns = &m->e->program->net->steps[v->step];
    struct json list = json_array();
    for (size_t i = 0; i < v->note->rule_count; i++) {
        const struct rule_finding *r = &v->note->rules[i];
        const struct net_task *task = &ns->tasks[r->task];
        struct json one = JSON_OF(m->arena, {"task", json_some(task->label)}, {"iteration", json_nonzero(r->iteration)},
                                  {"attempt", json_int(r->attempt)}, AT(r->at), {"action", json_some(r->action)},
                                  {"rule", json_when(r->index >= 0, json_int(r->index))});
        if (r->index >= 0 && (uint32_t)r->index < task->rule_count) {
            const struct net_rule *rule = &task->rules[r->index];
            if (rule->otherwise)
                JSON_ADD(m->arena, &one, {"when", json_word("else")});
            else
                JSON_ADD(m->arena, &one, {"when", json_some(rule->when.text)});
        }
        JSON_ADD(m->arena, &one, {"due", json_time_some(m->arena, r->due_ms)});
        json_append(m->arena, &list, one);
    }
    JSON_ADD(m->arena, out, {"policy", list});
}

static void arrivals_told(struct buf *out, const struct view_of_step *v, bool taken)
{
    const struct explain *e = v->e;
    uint32_t told = 0;
    for (size_t i = 0; v->note && i < v->note->arrival_count; i++) {
        const struct arrival_finding *a = &v->note->arrivals[i];
        if (a->taken != taken || told++ >= 3) continue;
        struct str id = step_id(e, a->from), when = json_text(json_key(&a->arc, "when"));
        buf_text(out, told == 1 ? "" : "; ");
        bool closed = !taken && !a->holds && when.len > 0;
        buf_text(out, closed ? "the arc of " : "");
        part_told(out, PART_STEP, id);
        buf_text(out, taken      ? " led to it"
                      : a->holds ? " went another way first"
                      : closed   ? " needs "
                                 : " failed, and its arc has no condition for that");
        if (closed) part_told(out, PART_EXPR, when);
        buf_printf(out, "%s (event %llu)", closed ? ", which did not hold" : "", (unsigned long long)a->at.seq);
    }
    if (told == 0) buf_text(out, taken ? "it is where the playbook begins" : "no step that has an arc to it has ended");
}

static void waiting_at_barrier(struct buf *out, const struct view_of_step *v)
{
    const struct run *run = v->e->run;
    const uint64_t *upstream = v->e->program->net->steps[v->step].upstream;
    uint32_t told = 0;
    buf_text(out, " waits for ");
    for (uint32_t i = 0; upstream && i < v->e->program->step_count; i++) {
        uint8_t state = kernel_state(run, i);
        if (!(upstream[i / 64] >> (i % 64) & 1) || i == v->step || state != NODE_RUNNING) continue;
        buf_text(out, told++ ? ", " : "");
        part_told(out, PART_STEP, step_id(v->e, i));
    }
    buf_text(out, told ? ", which can still lead to it: " : "its turn: ");
    arrivals_told(out, v, true);
}

// True: written.
bool net_told(struct buf *out, const struct view_of_step *v)
{
    if (!v->e->program->net) return false;
    bool reached = false;
    for (size_t i = 0; v->note && i < v->note->arrival_count; i++) reached = reached || v->note->arrivals[i].taken;
    switch ((int)v->state) {
    case STATE_NOT_RUN:
        buf_text(out, " was never reached: ");
        arrivals_told(out, v, false);
        return true;
    case STATE_WAITING:
        if (run_status_terminal(v->e->run->status) || v->e->run->status != RUN_STATUS_RUNNING) return false;
        if (reached) {
            waiting_at_barrier(out, v);
        } else {
            buf_text(out, " has not been reached: ");
            arrivals_told(out, v, false);
        }
        return true;
    case STATE_SKIPPED:
        buf_text(out, " was refused admission");
        if (v->note && v->note->admit_rule >= 0) buf_printf(out, " by rule %d", v->note->admit_rule);
        buf_text(out, ": ");
        arrivals_told(out, v, true);
        return true;
    default:
        return false;
    }
}
