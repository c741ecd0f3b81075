// Drafts to a program. Every scope (the document, the body of each loop) is a graph of its own:
//
//   1. number the steps: the top scope first, then the bodies of loops in the order of their loops
//   2. ids to indexes, through one map
//   3. dependencies, and the reverse of them in one array cut in pieces
//   4. Kahn: a step's level is one more than the highest of its dependencies; steps of one level keep the order in
//      which they were declared. What is left over lies on cycles or behind them.
//
// All of it is linear in steps and dependencies.
#include "program/internal.h"

enum { WALK_BUDGET = 2000000, CYCLE_SHOWN_MAX = 12 };

struct scope_range {
    uint32_t scope; // enclosing loop or PROGRAM_TOP
    uint32_t first, count;
};

// ---- numbering

static bool number_steps(struct compiler *c, const struct draft_list *list)
{
    struct reader *r = c->r;
    struct program *program = c->program;
    uint32_t total = r->step_count;
    program->steps = ARENA_ARRAY(r->arena, total, struct program_step);
    c->drafts = ARENA_ARRAY(r->scratch, total, struct draft *);
    if (!program->steps || !c->drafts) return false;
    uint32_t count = 0;
    for (size_t i = 0; i < list->count; i++) c->drafts[count++] = &list->items[i];
    program->top_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct draft *draft = c->drafts[i];
        if (draft->step.kind == STEP_LOOP) {
            draft->step.first_child = count;
            draft->step.child_count = draft->child_count;
            for (uint32_t k = 0; k < draft->child_count; k++) {
                struct draft *child = &draft->children[k];
                child->step.scope = i;
                if (child->step.condition) draft->step.until = count;
                c->drafts[count++] = child;
            }
        }
        program->steps[i] = draft->step;
    }
    INVARIANT(count == total);
    program->step_count = count;
    return true;
}

static bool name_steps(struct compiler *c)
{
    struct reader *r = c->r;
    struct program *program = c->program;
    map_init(&program->ids, r->arena);
    for (uint32_t i = 0; i < program->step_count; i++) {
        struct program_step *step = &program->steps[i];
        if (step->id.len == 0) continue;
        char buffer[160];
        struct str key = id_key(step->scope, step->id, buffer);
        if (step->scope == PROGRAM_TOP)
            key = step->id;
        else
            key = arena_copy(r->arena, key);
        uint32_t first;
        if (!key.ptr || !map_put(&program->ids, key, i, &first)) return false;
        if (first == MAP_NONE) continue;
        struct span at = c->drafts[i]->at;
        bool plan = program->kind == DOCUMENT_PLAN;
        struct diagnostic *d =
            ERROR(r, "E0301", at, "the id \"%.*s\" is used twice%s%.*s%s", SHOW(step->id),
                  plan ? " (duplicate_step_id:" : "", plan ? (int)step->id.len : 0, step->id.ptr, plan ? ")" : "");
        HINT(r, d, "the first one is on line %u", program->steps[first].line);
    }
    return true;
}

// ---- dependencies

static void unknown_dep(struct compiler *c, uint32_t step, const struct json *item, const struct scope_range *range)
{
    struct reader *r = c->r;
    struct program *program = c->program;
    struct str name = item->text;
    struct str id = program->steps[step].id;
    struct span at = place_of(r, item);
    bool plan = program->kind == DOCUMENT_PLAN;
    struct diagnostic *d;
    if (plan)
        d = ERROR(r, "E0302", at,
                  "step \"%.*s\" depends on \"%.*s\", which does not exist "
                  "(unknown_dependency:%.*s->%.*s)",
                  SHOW(id), SHOW(name), SHOW(id), SHOW(name));
    else
        d = ERROR(r, "E0302", at, "node \"%.*s\" depends on \"%.*s\", which does not exist%s", SHOW(id), SHOW(name),
                  range->scope == PROGRAM_TOP ? "" : " in this loop");
    if (!d) return;
    struct nearest nearest = nearest_to(name);
    for (uint32_t i = range->first; i < range->first + range->count; i++)
        if (i != step && !program->steps[i].condition) nearest_try(&nearest, program->steps[i].id);
    hint_nearest(r, d, &nearest);
    if (nearest.best.len == 0 && range->scope != PROGRAM_TOP && program_find(program, PROGRAM_TOP, name) != PROGRAM_TOP)
        HINT(r, d, "it is outside of the loop; make the loop itself depend on it");
}

// The index that `item` names, or PROGRAM_TOP when it is of no use (reported).
static uint32_t find_dep(struct compiler *c, uint32_t step, const struct json *item, const struct scope_range *range)
{
    struct reader *r = c->r;
    struct program *program = c->program;
    struct str id = program->steps[step].id;
    bool plan = program->kind == DOCUMENT_PLAN;
    if (item->type != JSON_STRING || item->text.len == 0) {
        struct span at = place_of(r, item);
        ERROR(r, "E0305", at, "a dependency must be the id of a step%s%.*s%s",
              plan ? " (invalid_dependency_value:" : "", plan ? (int)id.len : 0, id.ptr, plan ? ")" : "");
        return PROGRAM_TOP;
    }
    uint32_t found = program_find(program, range->scope, item->text);
    if (found == PROGRAM_TOP || program->steps[found].condition) {
        unknown_dep(c, step, item, range);
        return PROGRAM_TOP;
    }
    if (found == step) {
        struct span at = place_of(r, item);
        ERROR(r, "E0303", at, "\"%.*s\" depends on itself%s%.*s%s", SHOW(id), plan ? " (self_dependency:" : "",
              plan ? (int)id.len : 0, id.ptr, plan ? ")" : "");
        return PROGRAM_TOP;
    }
    if (c->mark[found] == c->stamp) {
        struct span at = place_of(r, item);
        WARNING(r, "E0306", at, "\"%.*s\" is listed twice", SHOW(item->text));
        return PROGRAM_TOP;
    }
    return found;
}

static bool resolve_deps(struct compiler *c, uint32_t index, const struct scope_range *range)
{
    struct reader *r = c->r;
    struct program_step *step = &c->program->steps[index];
    const struct json *deps = c->drafts[index]->deps;
    uint32_t room = deps ? deps->count : step->condition ? range->count - 1 : 1;
    uint32_t *found = ARENA_ARRAY(r->arena, room, uint32_t);
    if (!found) return false;
    uint32_t count = 0;
    c->stamp++;
    if (step->condition) {
        for (uint32_t i = range->first; i < index; i++) found[count++] = i;
    } else if (deps) {
        for (uint32_t i = 0; i < deps->count; i++) {
            uint32_t dep = find_dep(c, index, &deps->items[i], range);
            if (dep == PROGRAM_TOP) continue;
            c->mark[dep] = c->stamp;
            found[count++] = dep;
        }
    } else if (r->implied_order && index > 0) {
        found[count++] = index - 1;
    }
    step->deps = found;
    step->dep_count = count;
    return true;
}

static bool reverse_deps(struct compiler *c, const struct scope_range *range)
{
    struct program_step *steps = c->program->steps;
    uint32_t end = range->first + range->count;
    uint32_t edges = 0;
    for (uint32_t i = range->first; i < end; i++) {
        for (uint32_t k = 0; k < steps[i].dep_count; k++) steps[steps[i].deps[k]].dependent_count++;
        edges += steps[i].dep_count;
    }
    uint32_t *all = ARENA_ARRAY(c->r->arena, edges, uint32_t);
    if (!all) return false;
    uint32_t start = 0;
    for (uint32_t i = range->first; i < end; i++) {
        steps[i].dependents = all + start;
        c->queue[i] = start; // where the next dependent of i goes
        start += steps[i].dependent_count;
    }
    for (uint32_t i = range->first; i < end; i++)
        for (uint32_t k = 0; k < steps[i].dep_count; k++) all[c->queue[steps[i].deps[k]]++] = i;
    return true;
}

// ---- order

static void report_cycle(struct compiler *c, const uint32_t *path, uint32_t count)
{
    struct reader *r = c->r;
    struct program_step *steps = c->program->steps;
    struct buf text SCOPED(buf_release) = buf_of(4096);
    for (uint32_t i = 0; i < count; i++) {
        if (i == CYCLE_SHOWN_MAX && count > CYCLE_SHOWN_MAX + 1) {
            buf_printf(&text, "... %u more -> ", count - CYCLE_SHOWN_MAX);
            break;
        }
        buf_printf(&text, "%.*s -> ", SHOW(steps[path[i]].id));
    }
    buf_printf(&text, "%.*s", SHOW(steps[path[0]].id));
    if (!buf_ok(&text)) r->failed = true;
    struct span at = c->drafts[path[0]]->at;
    struct diagnostic *d = ERROR(r, "E0304", at, "dependencies form a cycle: %s%s", text.ptr,
                                 c->program->kind == DOCUMENT_PLAN ? " (cyclic_dependencies_detected)" : "");
    HINT(r, d, "remove one of these dependencies");
}

// Steps that Kahn left over have a dependency that is left over too; following them ends in a cycle. Each step is walked
// once.
static void find_cycles(struct compiler *c, const struct scope_range *range, const uint32_t *left)
{
    struct program_step *steps = c->program->steps;
    for (uint32_t i = range->first; i < range->first + range->count; i++) {
        if (left[i] == 0 || c->mark[i] > c->stamp) continue;
        // Marks: stamp + 1 finished, stamp + 2 on the present path (its position is in level).
        uint32_t count = 0;
        uint32_t at = i;
        while (c->mark[at] <= c->stamp) {
            c->mark[at] = c->stamp + 2;
            c->level[at] = count;
            c->queue[count++] = at;
            uint32_t next = at;
            for (uint32_t k = 0; k < steps[at].dep_count; k++) {
                if (left[steps[at].deps[k]] > 0) {
                    next = steps[at].deps[k];
                    break;
                }
            }
            INVARIANT(next != at);
            at = next;
        }
        if (c->mark[at] == c->stamp + 2) report_cycle(c, c->queue + c->level[at], count - c->level[at]);
        for (uint32_t k = 0; k < count; k++) c->mark[c->queue[k]] = c->stamp + 1;
    }
    c->stamp += 2;
}

// Levels by Kahn's algorithm. False when there are cycles (reported) or no memory.
static bool find_levels(struct compiler *c, const struct scope_range *range, uint32_t *level_count)
{
    struct program_step *steps = c->program->steps;
    uint32_t *left = ARENA_ARRAY(c->r->scratch, range->first + range->count, uint32_t);
    if (!left) {
        c->r->failed = true;
        return false;
    }
    uint32_t head = 0;
    uint32_t tail = 0;
    for (uint32_t i = range->first; i < range->first + range->count; i++) {
        left[i] = steps[i].dep_count;
        if (left[i] == 0) c->queue[tail++] = i;
    }
    *level_count = 0;
    while (head < tail) {
        uint32_t i = c->queue[head++];
        if (c->level[i] >= *level_count) *level_count = c->level[i] + 1;
        for (uint32_t k = 0; k < steps[i].dependent_count; k++) {
            uint32_t next = steps[i].dependents[k];
            if (c->level[next] < c->level[i] + 1) c->level[next] = c->level[i] + 1;
            if (--left[next] == 0) c->queue[tail++] = next;
        }
    }
    if (tail == range->count) return true;
    find_cycles(c, range, left);
    c->walk_budget = 0; // levels mean nothing now
    return false;
}

// Counting sort by level: stable, so declaration order is kept inside a level.
static bool order_steps(struct compiler *c, const struct scope_range *range, uint32_t level_count)
{
    uint32_t *start = ARENA_ARRAY(c->r->scratch, level_count + 1, uint32_t);
    uint32_t *order = ARENA_ARRAY(c->r->arena, range->count, uint32_t);
    if (!start || !order) return false;
    for (uint32_t i = range->first; i < range->first + range->count; i++) start[c->level[i] + 1]++;
    for (uint32_t level = 0; level < level_count; level++) start[level + 1] += start[level];
    for (uint32_t i = range->first; i < range->first + range->count; i++) order[start[c->level[i]]++] = i;
    c->program->order = order;
    return true;
}

// ---- all of it

static bool compile_scope(struct compiler *c, const struct scope_range *range, uint32_t *edges)
{
    struct reader *r = c->r;
    for (uint32_t i = range->first; i < range->first + range->count; i++) {
        const struct json *deps = c->drafts[i]->deps;
        *edges += deps ? deps->count : 0;
        if (*edges > r->load->edges_max) {
            struct span at = place_of(r, deps);
            ERROR(r, "E0506", at, "the document has more than %u dependencies", r->load->edges_max);
            return false;
        }
        if (!resolve_deps(c, i, range)) {
            r->failed = true;
            return false;
        }
    }
    uint32_t level_count = 0;
    if (!reverse_deps(c, range)) {
        r->failed = true;
        return false;
    }
    if (!find_levels(c, range, &level_count)) return !r->failed;
    if (range->scope == PROGRAM_TOP && !order_steps(c, range, level_count)) {
        r->failed = true;
        return false;
    }
    return true;
}

struct draft **compile(struct reader *r, const struct draft_list *list)
{
    if (r->failed || r->step_count == 0) return NULL;
    if (r->program->kind == DOCUMENT_PLAN) r->code = "INVALID_PLAN_SCHEMA";
    struct compiler c = {.r = r, .program = r->program, .walk_budget = WALK_BUDGET};
    c.level = ARENA_ARRAY(r->scratch, r->step_count, uint32_t);
    c.mark = ARENA_ARRAY(r->scratch, r->step_count, uint32_t);
    c.queue = ARENA_ARRAY(r->scratch, r->step_count, uint32_t);
    if (!c.level || !c.mark || !c.queue || !number_steps(&c, list) || !name_steps(&c)) {
        r->failed = true;
        return NULL;
    }
    uint32_t edges = 0;
    struct scope_range range = {PROGRAM_TOP, 0, c.program->top_count};
    bool ok = compile_scope(&c, &range, &edges);
    for (uint32_t i = 0; ok && i < c.program->step_count; i++) {
        const struct program_step *step = &c.program->steps[i];
        range = (struct scope_range){i, step->first_child, step->child_count};
        if (step->kind == STEP_LOOP && step->child_count > 0) ok = compile_scope(&c, &range, &edges);
    }
    if (r->program->kind == DOCUMENT_PLAN) r->code = "INVALID_STEP_SCHEMA";
    for (uint32_t i = 0; ok && !r->failed && i < c.program->step_count; i++) refs_check(&c, i);
    return r->failed ? NULL : c.drafts;
}
