// What a document will do, without doing it: order, layers, what is needed, whom it asks, how long it may take.
#include "author/graph.h"

#include "json/make.h"
#include "program/net.h"

struct planner {
    const struct program *program;
    struct arena *arena;
    bool failed;
};

// ---- how long it may take

// Upper bound of a step, retries and their delays included. `open`: something in it has no limit.
struct bound {
    int64_t ms;
    bool open;
};

static int64_t add_ms(int64_t a, int64_t b)
{
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int64_t times_ms(int64_t a, int64_t b)
{
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static struct bound scope_bound(struct planner *p, const struct program *program, uint32_t first, uint32_t count,
                                uint32_t *path, uint32_t *path_count);

// A list of child runs takes its time that often one after the other; a list that is not known yet may be as long as any.
static int64_t rounds_of(const struct program_step *ps)
{
    const struct json *how = json_key(&ps->with, "fanOut"), *items = json_key(how, "items");
    int64_t parallel = json_integer(json_key(how, "maxParallel"), 1);
    if (!how) return 1;
    return ((json_is(items, JSON_ARRAY) ? (int64_t)items->count : FAN_OUT_MAX) + parallel - 1) / parallel;
}

static struct bound attempt_bound(struct planner *p, const struct program *program, const struct program_step *ps)
{
    struct bound inner = {.open = true};
    const struct json *duration = json_key(&ps->with, "durationMs");
    const struct json *timeout = json_key(&ps->with, "timeoutMs");
    switch (ps->kind) {
    case STEP_NOOP:
    case STEP_ECHO:
    case STEP_MERGE:
    case STEP_CANCEL:
        return (struct bound){0};
    case STEP_WAIT:
        if (duration) inner = (struct bound){json_integer(duration, 0), false};
        break;
    case STEP_APPROVAL:
        if (timeout) inner = (struct bound){json_integer(timeout, 0), false};
        break;
    case STEP_EVENT:
        if (ps->timeout_ms > 0) inner = (struct bound){ps->timeout_ms, false};
        break;
    case STEP_SUBRUN:
        if (ps->child) inner = scope_bound(p, ps->child, 0, ps->child->top_count, NULL, NULL);
        inner.ms = times_ms(inner.ms, rounds_of(ps));
        break;
    case STEP_TASKS: // it may be visited again
        return inner;
    case STEP_LOOP:
        inner = scope_bound(p, program, ps->first_child, ps->child_count, NULL, NULL);
        inner.ms = times_ms(inner.ms, ps->max_iterations);
        return inner;
    case STEP_EXEC:
    case STEP_SHELL:
    case STEP_SCRIPT:
    case STEP_HOST:
    case STEP_KIND_FIRST_UNUSED:
        break;
    }
    if (ps->timeout_ms > 0 && (inner.open || ps->timeout_ms < inner.ms)) inner = (struct bound){ps->timeout_ms, false};
    return inner;
}

static struct bound step_bound(struct planner *p, const struct program *program, const struct program_step *ps)
{
    struct bound bound = attempt_bound(p, program, ps);
    int64_t delay = ps->retry.delay_ms;
    bound.ms = times_ms(bound.ms, ps->retry.max_attempts);
    for (uint32_t n = 1; n < ps->retry.max_attempts; n++) {
        int64_t wait = ps->retry.backoff == BACKOFF_LINEAR ? times_ms(ps->retry.delay_ms, n) : delay;
        if (ps->retry.max_delay_ms > 0 && wait > ps->retry.max_delay_ms) wait = ps->retry.max_delay_ms;
        bound.ms = add_ms(bound.ms, wait);
        if (ps->retry.backoff == BACKOFF_EXPONENTIAL) delay = times_ms(delay, 2);
    }
    return bound;
}

// The longest way through a scope. `path` (may be NULL) gets its steps.
static struct bound scope_bound(struct planner *p, const struct program *program, uint32_t first, uint32_t count,
                                uint32_t *path, uint32_t *path_count)
{
    struct bound *best = ARENA_ARRAY(p->arena, count + 1, struct bound);
    uint32_t *hops = ARENA_ARRAY(p->arena, count + 1, uint32_t);
    uint32_t *from = ARENA_ARRAY(p->arena, count + 1, uint32_t);
    uint32_t *left = ARENA_ARRAY(p->arena, count + 1, uint32_t);
    uint32_t *queue = ARENA_ARRAY(p->arena, count + 1, uint32_t);
    struct bound whole = {0};
    if (!best || !hops || !from || !left || !queue) {
        p->failed = true;
        return whole;
    }
    uint32_t head = 0, tail = 0, end = PROGRAM_TOP;
    for (uint32_t i = 0; i < count; i++) {
        left[i] = program->steps[first + i].dep_count;
        if (left[i] == 0) queue[tail++] = i;
    }
    while (head < tail) {
        uint32_t i = queue[head++];
        const struct program_step *ps = &program->steps[first + i];
        struct bound own = step_bound(p, program, ps);
        from[i] = PROGRAM_TOP;
        for (uint32_t k = 0; k < ps->dep_count; k++) {
            uint32_t d = ps->deps[k] - first;
            bool longer = from[i] == PROGRAM_TOP || best[d].ms > best[from[i]].ms ||
                          (best[d].ms == best[from[i]].ms && hops[d] > hops[from[i]]);
            if (longer) from[i] = d;
        }
        hops[i] = 1;
        if (from[i] != PROGRAM_TOP) {
            best[i] = best[from[i]];
            hops[i] = hops[from[i]] + 1;
        }
        best[i].ms = add_ms(best[i].ms, own.ms);
        best[i].open |= own.open;
        whole.open |= own.open;
        if (end == PROGRAM_TOP || best[i].ms > best[end].ms || (best[i].ms == best[end].ms && hops[i] > hops[end]))
            end = i;
        for (uint32_t k = 0; k < ps->dependent_count; k++)
            if (--left[ps->dependents[k] - first] == 0) queue[tail++] = ps->dependents[k] - first;
    }
    if (end == PROGRAM_TOP) return whole;
    whole.ms = best[end].ms;
    if (path) *path_count = hops[end];
    for (uint32_t i = end, at = path ? *path_count : 0; path && i != PROGRAM_TOP; i = from[i]) path[--at] = first + i;
    return whole;
}

// ---- parts of the report

static struct json ref_json(struct planner *p, struct str uri)
{
    return JSON_OF(p->arena, {"uri", json_string(uri)},
                   {"sha256", json_string((struct str){p->program->sha256_hex, SHA256_HEX})},
                   {"schemaVersion", json_string(p->program->schema_version)},
                   {"planId", json_string(p->program->plan_id)},
                   {"planVersion", json_string(p->program->plan_version)});
}

static void add_inputs(struct planner *p, struct json *out)
{
    struct json list = json_array();
    for (uint32_t i = 0; i < p->program->inputs.count; i++) {
        const struct json_member *m = &p->program->inputs.members[i];
        bool required = false;
        for (uint32_t k = 0; k < p->program->required_count; k++) required |= str_eq(p->program->required[k], m->key);
        json_append(p->arena, &list, JSON_OF(p->arena, {"name", json_string(m->key)}, {"required", json_bool(required)},
                                             {"default", json_when(!required, m->value)}));
    }
    JSON_ADD(p->arena, out, {"inputs", list});
}

static void add_asks(struct planner *p, struct json *out)
{
    struct json asks = json_array(), secrets = json_array();
    for (uint32_t i = 0; i < p->program->step_count; i++) {
        const struct program_step *ps = &p->program->steps[i];
        struct json one = json_object();
        if (ps->kind == STEP_APPROVAL) {
            JSON_ADD(p->arena, &one, {"stepId", json_string(ps->id)});
            json_fill(p->arena, &one, &ps->with);
            json_append(p->arena, &asks, one);
        }
        for (uint32_t k = 0; k < ps->secret_count; k++) {
            json_append(p->arena, &secrets, JSON_OF(p->arena, {"stepId", json_string(ps->id)},
                                                    {"name", json_string(ps->secrets[k].name)},
                                                    {"ref", json_string(ps->secrets[k].ref)}));
        }
    }
    JSON_ADD(p->arena, out, {"requiresApproval", json_bool(p->program->requires_approval)}, {"approvals", asks},
             {"secrets", secrets});
}

static void add_files(struct planner *p, struct json *out)
{
    struct json list = json_array();
    for (uint32_t i = 0; i < p->program->part_count; i++) {
        const struct program_part *part = &p->program->parts[i];
        json_append(p->arena, &list,
                    JSON_OF(p->arena, {"kind", json_word(part->kind == PART_SCRIPT ? "script" : "document")},
                            {"file", json_string(part->file)}, {"sha256", json_digest(p->arena, &part->sha256)}));
    }
    JSON_ADD(p->arena, out, {"files", list});
}

// Of a step of a playbook: its tasks, and where it may lead.
static void add_net(struct planner *p, uint32_t index, struct json *out)
{
    const struct net_step *step = &p->program->net->steps[index];
    struct json tasks = json_array(), next = json_array();
    for (uint32_t i = 0; i < step->task_count; i++) {
        json_append(p->arena, &tasks, JSON_OF(p->arena, {"label", json_string(step->tasks[i].label)},
                                              {"kind", json_string(step->tasks[i].kind)}));
    }
    for (uint32_t i = 0; i < step->arc_count; i++) {
        struct json arc = JSON_OF(p->arena, {"step", json_string(p->program->steps[step->arcs[i].step].id)},
                                  {"when", step->arcs[i].when.test ? json_string(step->arcs[i].when.text)
                                   : json_none()});
        json_append(p->arena, &next, arc);
    }
    JSON_ADD(p->arena, out, {"tasks", tasks},
             {"loop", json_when(step->has_loop, json_word(step->loop.parallel ? "parallel" : "sequential"))},
             {"mode", json_word(step->inclusive ? "inclusive" : "exclusive")}, {"next", next});
}

static struct json step_json(struct planner *p, uint32_t index, uint32_t layer)
{
    const struct program_step *ps = &p->program->steps[index];
    struct json one = json_object(), deps = json_array();
    for (uint32_t i = 0; i < ps->dep_count; i++)
        json_append(p->arena, &deps, json_string(p->program->steps[ps->deps[i]].id));
    JSON_ADD(p->arena, &one, {"stepId", json_string(ps->id)},
             {"kind", json_string(ps->kind == STEP_HOST ? ps->function : str_from(step_kind_name(ps->kind)))},
             {"layer", json_int(layer)}, {"dependsOn", deps}, {"triggerRule", json_word(rule_name(ps->rule))},
             {"when", json_some(ps->when_text)}, {"maxAttempts", json_int(ps->retry.max_attempts)},
             {"timeoutMs", ps->timeout_ms > 0 ? json_int(ps->timeout_ms) : json_null()},
             {"document", ps->child ? json_string(ps->child->plan_id) : json_none()});
    if (p->program->net) add_net(p, index, &one);
    if (ps->kind != STEP_LOOP) return one;
    struct json children = json_array();
    for (uint32_t i = 0; i < ps->child_count; i++)
        json_append(p->arena, &children, json_string(p->program->steps[ps->first_child + i].id));
    JSON_ADD(p->arena, &one, {"maxIterations", json_int(ps->max_iterations)}, {"children", children});
    return one;
}

static void add_steps(struct planner *p, struct json *out)
{
    const struct program *program = p->program;
    uint32_t *layer = ARENA_ARRAY(p->arena, program->top_count + 1, uint32_t);
    struct json steps = json_array(), first = json_array();
    uint32_t layers = 0;
    if (!layer) {
        p->failed = true;
        return;
    }
    for (uint32_t i = 0; i < program->top_count; i++) {
        const struct program_step *ps = &program->steps[program->order[i]];
        uint32_t own = 1;
        for (uint32_t k = 0; k < ps->dep_count; k++) own = layer[ps->deps[k]] + 1 > own ? layer[ps->deps[k]] + 1 : own;
        layer[program->order[i]] = own;
        layers = own > layers ? own : layers;
        if (own == 1) json_append(p->arena, &first, json_string(ps->id));
        json_append(p->arena, &steps, step_json(p, program->order[i], own));
    }
    JSON_ADD(p->arena, out, {"layers", json_int(layers)}, {"first", first}, {"steps", steps});
}

static void add_critical(struct planner *p, struct json *out)
{
    const struct program *program = p->program;
    uint32_t *path = ARENA_ARRAY(p->arena, program->top_count + 1, uint32_t);
    uint32_t count = 0;
    struct json steps = json_array(), open = json_array();
    if (!path) {
        p->failed = true;
        return;
    }
    struct bound bound = scope_bound(p, program, 0, program->top_count, path, &count);
    for (uint32_t i = 0; i < count; i++) json_append(p->arena, &steps, json_string(program->steps[path[i]].id));
    for (uint32_t i = 0; i < program->top_count; i++)
        if (step_bound(p, program, &program->steps[i]).open)
            json_append(p->arena, &open, json_string(program->steps[i].id));
    JSON_ADD(p->arena, out, {"criticalPath", JSON_OF(p->arena, {"steps", steps}, {"boundMs", json_int(bound.ms)},
                                                     {"unbounded", open})});
}

enum code author_plan(const struct program *program, struct str uri, struct arena *arena, struct json *out,
                      struct error *err)
{
    struct planner p = {.program = program, .arena = arena};
    enum code rc = net_unrolled(program, arena, &p.program, err);
    if (rc) return rc;
    *out = JSON_OF(arena, {"planRef", ref_json(&p, uri)}, {"kind", json_word(document_kind_name(program->kind))},
                   {"name", json_string(program->name)}, {"description", json_some(program->description)});
    add_inputs(&p, out);
    add_asks(&p, out);
    add_files(&p, out);
    add_steps(&p, out);
    add_critical(&p, out);
    return p.failed ? error_nomem(err) : json_made(out, err);
}
