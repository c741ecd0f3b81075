// Once all steps have their numbers: where arcs lead, where the workflow begins, where tokens wait for each other (C-48), and the
// playbooks that tasks run.
#include "program/playbook.h"

#define ARC_WALK_MAX UINT64_C(50000000)

// ---- names of steps

static uint32_t find_step(struct playbook *pb, const struct json *name, const char *what)
{
    struct reader *r = pb->r;
    struct str text;
    if (!read_text(r, name, what, &text)) return PROGRAM_TOP;
    uint32_t found = program_find(r->program, PROGRAM_TOP, text);
    if (found != PROGRAM_TOP) return found;
    struct span at = place_of(r, name);
    struct diagnostic *d = ERROR(r, "E0309", at, "there is no step \"%.*s\"", SHOW(text));
    if (!d) return PROGRAM_TOP;
    struct nearest nearest = nearest_to(text);
    for (uint32_t i = 0; i < r->program->step_count; i++) nearest_try(&nearest, r->program->steps[i].id);
    hint_nearest(r, d, &nearest);
    if (nearest.best.len == 0 && str_is(text, "end"))
        HINT(r, d, "a workflow ends when nothing is left to do: leave the arc out, or add a step end");
    return PROGRAM_TOP;
}

// Who leads to a loop over a cursor leads to the step that asks for its rows; only that one leads to the loop.
static uint32_t before_cursor(const struct playbook *pb, uint32_t step, const struct net_arc *arc)
{
    for (size_t i = 0; step != PROGRAM_TOP && i < pb->cursor_count; i++) {
        if (!str_eq(pb->r->program->steps[step].id, pb->cursors[i].step)) continue;
        uint32_t claim = program_find(pb->r->program, PROGRAM_TOP, pb->cursors[i].claim);
        if (claim != PROGRAM_TOP && pb->steps[claim].arcs != arc) return claim;
    }
    return step;
}

// Arcs that lead nowhere were reported; nothing of the net is asked any further then.
static bool find_arcs(struct playbook *pb)
{
    bool ok = true;
    for (size_t i = 0; i < pb->arc_count; i++) {
        struct net_arc *arc = pb->arcs[i].arc;
        arc->step = before_cursor(pb, find_step(pb, pb->arcs[i].name, "step"), arc);
    }
    for (uint32_t i = 0; i < pb->r->program->step_count; i++)
        for (uint32_t k = 0; k < pb->steps[i].arc_count; k++) ok = ok && pb->steps[i].arcs[k].step != PROGRAM_TOP;
    if (pb->entry) pb->net->entry = before_cursor(pb, find_step(pb, pb->entry, "entry_step"), NULL);
    if (pb->final) pb->net->final = find_step(pb, pb->final, "final_step");
    return ok && pb->net->entry != PROGRAM_TOP;
}

static void find_unreached(struct playbook *pb)
{
    struct reader *r = pb->r;
    uint32_t count = r->program->step_count, head = 0, tail = 0;
    bool *seen = ARENA_ARRAY(r->scratch, count, bool);
    uint32_t *queue = ARENA_ARRAY(r->scratch, count, uint32_t);
    if (!seen || !queue) {
        r->failed = true;
        return;
    }
    uint32_t starts[] = {pb->net->entry, pb->net->final};
    for (size_t i = 0; i < ARRAY_COUNT(starts); i++) {
        if (starts[i] == PROGRAM_TOP || seen[starts[i]]) continue;
        seen[starts[i]] = true;
        queue[tail++] = starts[i];
    }
    while (head < tail) {
        const struct net_step *step = &pb->steps[queue[head++]];
        for (uint32_t k = 0; k < step->arc_count; k++) {
            uint32_t next = step->arcs[k].step;
            if (seen[next]) continue;
            seen[next] = true;
            queue[tail++] = next;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct program_step *step = &r->program->steps[i];
        struct span at = {step->line, step->column, (uint32_t)step->id.len};
        if (!seen[i]) WARNING(r, "E0313", at, "no arc leads to step \"%.*s\": it never runs", SHOW(step->id));
    }
}

// ---- barriers

// Tokens of different arcs of one inclusive step differ by the root they come from. A step that two roots reach is where
// they meet, and the root of everything behind it.
struct weave {
    struct playbook *pb;
    uint32_t count, from; // steps; the inclusive step
    uint32_t *label;      // root by which a step is reached; PROGRAM_TOP: not reached
    bool *root, *joined;
    uint32_t *queue;
    uint32_t *first, *before; // steps that lead to i: before[first[i]] .. before[first[i + 1]]
    bool *ahead, *behind;
    uint64_t walked;
};

static void reach(struct weave *w, bool *changed)
{
    const struct net_step *steps = w->pb->steps;
    uint32_t head = 0, tail = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        w->label[i] = w->root[i] ? i : PROGRAM_TOP;
        if (w->root[i]) w->queue[tail++] = i;
    }
    *changed = false;
    while (head < tail) {
        uint32_t at = w->queue[head++];
        w->walked += steps[at].arc_count + 1;
        for (uint32_t k = 0; k < steps[at].arc_count; k++) {
            uint32_t next = steps[at].arcs[k].step;
            if (next == w->from) continue;
            if (w->label[next] == PROGRAM_TOP) {
                w->label[next] = w->label[at];
                w->queue[tail++] = next;
            } else if (w->label[next] != w->label[at] && !w->joined[next]) {
                w->joined[next] = true;
                *changed = *changed || !w->root[next];
            }
        }
    }
    for (uint32_t i = 0; i < w->count; i++) w->root[i] = w->root[i] || w->joined[i];
}

static void walk(struct weave *w, uint32_t start, bool backward, bool *seen)
{
    const struct net_step *steps = w->pb->steps;
    uint32_t head = 0, tail = 0;
    for (uint32_t i = 0; i < w->count; i++) seen[i] = false;
    w->queue[tail++] = start;
    while (head < tail) {
        uint32_t at = w->queue[head++];
        uint32_t degree = backward ? w->first[at + 1] - w->first[at] : steps[at].arc_count;
        w->walked += degree + 1;
        for (uint32_t k = 0; k < degree; k++) {
            uint32_t next = backward ? w->before[w->first[at] + k] : steps[at].arcs[k].step;
            if (next == w->from || next == start || seen[next] || w->label[next] == PROGRAM_TOP) continue;
            seen[next] = true;
            w->queue[tail++] = next;
        }
    }
}

// Waits for what can still lead here, but never for what it leads to itself: two steps would wait for each other.
static void set_barrier(struct weave *w, uint32_t step)
{
    struct reader *r = w->pb->r;
    walk(w, step, true, w->behind);
    walk(w, step, false, w->ahead);
    uint64_t *bits = NULL;
    union {
        const uint64_t *given;
        uint64_t *own;
    } known = {w->pb->steps[step].upstream};
    bits = known.own;
    for (uint32_t i = 0; i < w->count; i++) {
        if (!w->behind[i] || w->ahead[i]) continue;
        if (!bits) bits = ARENA_ARRAY(r->arena, (w->count + 63) / 64, uint64_t);
        if (!bits) {
            r->failed = true;
            return;
        }
        bits[i / 64] |= UINT64_C(1) << (i % 64);
    }
    w->pb->steps[step].upstream = bits;
}

static void weave_from(struct weave *w, uint32_t from)
{
    const struct net_step *step = &w->pb->steps[from];
    w->from = from;
    for (uint32_t i = 0; i < w->count; i++) w->root[i] = w->joined[i] = false;
    for (uint32_t k = 0; k < step->arc_count; k++)
        if (step->arcs[k].step != from) w->root[step->arcs[k].step] = true;
    bool changed = true;
    while (changed && w->walked < ARC_WALK_MAX) reach(w, &changed);
    for (uint32_t i = 0; i < w->count && w->walked < ARC_WALK_MAX && !w->pb->r->failed; i++)
        if (w->joined[i]) set_barrier(w, i);
}

static bool reverse_arcs(struct weave *w)
{
    struct reader *r = w->pb->r;
    const struct net_step *steps = w->pb->steps;
    w->first = ARENA_ARRAY(r->scratch, w->count + 2, uint32_t);
    w->before = ARENA_ARRAY(r->scratch, w->pb->arc_count, uint32_t);
    if (!w->first || !w->before) return false;
    for (uint32_t i = 0; i < w->count; i++)
        for (uint32_t k = 0; k < steps[i].arc_count; k++) w->first[steps[i].arcs[k].step + 2]++;
    for (uint32_t i = 0; i < w->count; i++) w->first[i + 2] += w->first[i + 1];
    for (uint32_t i = 0; i < w->count; i++)
        for (uint32_t k = 0; k < steps[i].arc_count; k++) w->before[w->first[steps[i].arcs[k].step + 1]++] = i;
    return true;
}

static void find_barriers(struct playbook *pb)
{
    struct reader *r = pb->r;
    uint32_t count = r->program->step_count;
    struct weave w = {.pb = pb, .count = count};
    bool any = false;
    for (uint32_t i = 0; i < count; i++) any = any || (pb->steps[i].inclusive && pb->steps[i].arc_count > 1);
    if (!any) return;
    w.label = ARENA_ARRAY(r->scratch, count, uint32_t);
    w.queue = ARENA_ARRAY(r->scratch, count, uint32_t);
    w.root = ARENA_ARRAY(r->scratch, count, bool);
    w.joined = ARENA_ARRAY(r->scratch, count, bool);
    w.ahead = ARENA_ARRAY(r->scratch, count, bool);
    w.behind = ARENA_ARRAY(r->scratch, count, bool);
    if (!w.label || !w.queue || !w.root || !w.joined || !w.ahead || !w.behind || !reverse_arcs(&w)) {
        r->failed = true;
        return;
    }
    for (uint32_t i = 0; i < count && !r->failed; i++) {
        if (pb->steps[i].inclusive && pb->steps[i].arc_count > 1) weave_from(&w, i);
        if (w.walked < ARC_WALK_MAX) continue;
        const struct program_step *step = &r->program->steps[i];
        struct span at = {step->line, step->column, 1};
        ERROR(r, "E0506", at, "the arcs are too entangled to find out where their tokens meet");
        return;
    }
}

// ---- all of it

void playbook_finish(struct playbook *pb, const struct chain *chain)
{
    struct reader *r = pb->r;
    INVARIANT(r->program->step_count > 0);
    if (find_arcs(pb)) {
        find_unreached(pb);
        find_barriers(pb);
    }
    for (size_t i = 0; i < pb->child_count && !r->failed; i++) {
        struct child_wanted *wanted = &pb->children[i];
        struct str around = {0};
        wanted->task->child = child_of(r, wanted->path, chain, wanted->need, &around);
        wanted->task->around = arena_copy(r->arena, around);
        if (!wanted->task->around.ptr) r->failed = true;
        add_env_of(pb, wanted->task->child);
        struct str back = wanted->task->return_step;
        if (!wanted->task->child || !back.len || program_find(wanted->task->child, PROGRAM_TOP, back) != PROGRAM_TOP)
            continue;
        struct span at = {wanted->task->line, wanted->task->column, 1};
        struct diagnostic *d = WARNING(r, "E0309", at, "the playbook has no step \"%.*s\" (return_step)", SHOW(back));
        HINT(r, d, "what its last step gives is what the task gives");
    }
}
