// What the tasks of a playbook's step were given, noted while the run is folded: the kernel is asked right after an attempt has begun, with
// the values of that time. Where one step is asked for, of that one alone: it takes as long as rendering its tasks did.
#include "explain/inside.h"

enum { GIVEN_MAX = 200, GIVEN_EACH = 8 }; // attempts: the last so many, of the step that is asked for, or of each

struct given_finding {
    struct arena memory;
    bool loop; // what the loop is over, not an attempt
    uint32_t task, visit, iteration, attempt;
    struct log_position at;
    struct json with, missing; // type 0: none
};

struct given_notes { // of a step
    uint64_t count;  // so far; the last `max` are kept
    uint32_t max;
    struct given_finding *ring;
};

struct given_watch {
    uint32_t step; // PROGRAM_TOP: all of them
    bool whole;
    struct given_notes *notes; // by step
};

enum code explain_watch(struct explain *e, struct str step, bool whole, struct error *err)
{
    uint32_t place = e->program->net && step.len > 0 ? kernel_find(e->run, step) : PROGRAM_TOP;
    INVARIANT(!e->given);
    if (!e->program->net || (place == PROGRAM_TOP && (!whole || step.len > 0))) return OK;
    e->given = ARENA_NEW(&e->arena, struct given_watch);
    struct given_notes *notes = ARENA_ARRAY(&e->arena, e->program->step_count, struct given_notes);
    if (!e->given || !notes) return error_nomem(err);
    *e->given = (struct given_watch){.step = place, .whole = whole, .notes = notes};
    return OK;
}

void given_release(struct explain *e)
{
    for (uint32_t i = 0; e->given && i < e->program->step_count; i++)
        for (uint32_t k = 0; e->given->notes[i].ring && k < e->given->notes[i].max; k++)
            arena_release(&e->given->notes[i].ring[k].memory);
}

static const struct given_notes *notes_of(const struct explain *e, uint32_t step)
{
    static const struct given_notes none = {0};
    return e->given ? &e->given->notes[step] : &none;
}

static struct given_finding *add(struct explain *e, uint32_t step, const struct moment *m, struct log_position at)
{
    struct given_notes *notes = &e->given->notes[step];
    if (!notes->ring) {
        notes->max = e->given->step == PROGRAM_TOP ? GIVEN_EACH : GIVEN_MAX;
        notes->ring = ARENA_ARRAY(&e->arena, notes->max, struct given_finding);
        if (!notes->ring) return NULL;
    }
    struct given_finding *one = &notes->ring[notes->count++ % notes->max];
    arena_release(&one->memory);
    *one = (struct given_finding){.visit = m->visit > 0 ? m->visit : 1, .at = at};
    arena_init(&one->memory, 4096, (size_t)UINT32_MAX);
    return one;
}

// After the moment has been folded.
enum code given_note(struct explain *e, const struct moment *m, uint32_t step, struct log_position at, struct error *err)
{
    const struct given_watch *watch = e->given;
    struct kernel_given given;
    struct json missing;
    bool loop = m->kind == MOMENT_LOOP_STARTED;
    if (!watch || (!loop && m->kind != MOMENT_ATTEMPT_STARTED)) return OK;
    if (step == PROGRAM_TOP || (watch->step != PROGRAM_TOP && step != watch->step)) return OK;
    uint32_t lane = loop ? PROGRAM_TOP : kernel_lane(e->run, m);
    if (!loop && lane == PROGRAM_TOP) return OK;
    arena_reset(&e->scratch);
    enum code rc = loop ? kernel_loop_missing(e->run, step, &e->env, &e->scratch, &missing, err)
                        : kernel_given(e->run, lane, &e->env, &e->scratch, &given, err);
    if (rc) return rc;
    if (!loop) missing = given.missing;
    if (missing.count == 0 && (loop || !watch->whole)) return OK;
    struct given_finding *one = add(e, step, m, at);
    if (!one) return error_nomem(err);
    one->loop = loop;
    if (!loop) one->task = given.task, one->iteration = given.iteration, one->attempt = given.attempt;
    bool kept = missing.count == 0 || json_copy(&one->memory, &missing, &one->missing);
    if (kept && !loop && watch->whole) kept = json_copy(&one->memory, &given.with, &one->with);
    return kept ? OK : error_nomem(err);
}

static const struct given_finding *given_at(const struct given_notes *notes, uint64_t i)
{
    return &notes->ring[i % notes->max];
}

static uint64_t first_of(const struct given_notes *notes)
{
    return notes->count > notes->max ? notes->count - notes->max : 0;
}

static struct json head_of(const struct explain *e, uint32_t step, const struct given_finding *one, struct arena *arena)
{
    const struct net_step *ns = &e->program->net->steps[step];
    return JSON_OF(arena, {"task", one->loop ? json_none() : json_some(ns->tasks[one->task].label)},
                   {"kind", one->loop ? json_none() : json_some(ns->tasks[one->task].kind)},
                   {"visit", json_when(one->visit > 1, json_int(one->visit))}, {"iteration", json_nonzero(one->iteration)},
                   {"attempt", json_nonzero(one->attempt)}, {"seq", json_count(one->at.seq)});
}

void put_undefined(struct maker *m, struct json *out, const struct view_of_step *v)
{
    struct json list = json_array();
    if (!m->e->given || !v->note) return;
    const struct given_notes *notes = notes_of(m->e, v->step);
    for (uint64_t i = first_of(notes); i < notes->count; i++) {
        const struct given_finding *one = given_at(notes, i);
        if (one->visit != v->note->visit) continue;
        for (uint32_t k = 0; k < one->missing.count; k++) {
            struct json told = head_of(m->e, v->step, one, m->arena);
            if (one->loop) JSON_ADD(m->arena, &told, {"path", json_word("loop.in")});
            json_fill(m->arena, &told, &one->missing.items[k]);
            json_append(m->arena, &list, told);
        }
    }
    JSON_ADD(m->arena, out, {"undefined", json_filled(list)});
}

// ---- all of it

struct asked {
    uint32_t place, visit, iteration; // 0: the last visit, all iterations
};

static struct json begun_of(const struct explain *e, const struct asked *asked, bool *begun, struct arena *arena)
{
    const struct given_notes *notes = notes_of(e, asked->place);
    struct json list = json_array();
    for (uint64_t i = first_of(notes); i < notes->count; i++) {
        const struct given_finding *one = given_at(notes, i);
        bool other = asked->iteration > 0 && one->iteration != asked->iteration;
        if (one->loop || one->visit != asked->visit || other) continue;
        begun[one->task] = true;
        struct json told = head_of(e, asked->place, one, arena);
        JSON_ADD(arena, &told, {"with", one->with}, {"undefined", json_filled(one->missing)});
        json_append(arena, &list, told);
    }
    return list;
}

// The tasks that have not begun, as they would be given what is known.
static enum code ahead_of(const struct explain *e, const struct asked *asked, const bool *begun, struct arena *arena,
                          struct json *out, struct error *err)
{
    const struct net_step *ns = &e->program->net->steps[asked->place];
    struct kernel_given given;
    *out = json_array();
    for (uint32_t i = 0; i < ns->task_count; i++) {
        if (begun[i]) continue;
        enum code rc = kernel_given_ahead(e->run, asked->place, i, &e->env, arena, &given, err);
        if (rc) return rc;
        json_append(arena, out, JSON_OF(arena, {"task", json_some(ns->tasks[i].label)}, {"kind", json_some(ns->tasks[i].kind)},
                                        {"with", given.with}, {"unknown", json_filled(given.missing)}));
    }
    return OK;
}

enum code explain_given(const struct explain *e, struct str path, struct arena *arena, struct json *out, struct error *err)
{
    struct asked asked = {0};
    asked.place = e->program->net ? kernel_named(e->run, path, &asked.visit, &asked.iteration) : PROGRAM_TOP;
    if (asked.place == PROGRAM_TOP) return error_set(err, E_NOT_FOUND, "the run has no step \"%.*s\"", STR_ARG(path));
    const struct net_step *ns = &e->program->net->steps[asked.place];
    uint32_t last = kernel_iteration(e->run, asked.place);
    enum node_state state = kernel_state(e->run, asked.place);
    if (asked.visit == 0) asked.visit = last > 0 ? last : 1;
    bool open = asked.visit >= last && state < NODE_SUCCESS;
    bool *begun = ARENA_ARRAY(arena, ns->task_count + 1, bool);
    if (!begun) return error_nomem(err);
    struct json given = begun_of(e, &asked, begun, arena), ahead = json_array();
    enum code rc = open || given.count == 0 ? ahead_of(e, &asked, begun, arena, &ahead, err) : OK;
    if (rc) return rc;
    *out = JSON_OF(arena, {"runId", json_some(e->run->ids.run)}, {"stepId", json_some(e->program->steps[asked.place].id)},
                   {"at", JSON_OF(arena, {"seq", json_count(e->seq)}, {"time", json_time_some(arena, e->at_ms)})},
                   {"visit", json_when(last > 0, json_int(asked.visit))}, {"given", json_filled(given)},
                   {"ahead", json_filled(ahead)},
                   {"leftOut", json_nonzero((int64_t)first_of(notes_of(e, asked.place)))});
    return json_made(out, err);
}
