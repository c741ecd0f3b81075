// Playbooks as pictures. Their arcs may lead back, which layers cannot show: the writers get the arcs that lead forward, and the box of
// a step says where its other arcs lead.
#include "author/graph.h"

#include "base/civil.h"
#include "program/net.h"

#include <string.h>

enum { KINDS_SHOWN = 5, ARCS_SHOWN = 4, NAMES_SHOWN = 6 };

// ---- arcs that lead forward

struct walk {
    const struct net *net;
    uint32_t *place; // in the order of a depth-first walk that ends last first; arcs to a lower place lead back
    uint32_t *stack, *next;
    bool *seen;
    uint32_t count, done;
};

static void walk_from(struct walk *w, uint32_t start)
{
    uint32_t depth = 0;
    if (w->seen[start]) return;
    w->seen[start] = true;
    w->stack[depth++] = start;
    while (depth > 0) {
        uint32_t at = w->stack[depth - 1];
        const struct net_step *step = &w->net->steps[at];
        if (w->next[at] == step->arc_count) {
            w->place[at] = w->count - ++w->done;
            depth--;
            continue;
        }
        // The last arc first, so that the first one ends up nearest.
        uint32_t to = step->arcs[step->arc_count - ++w->next[at]].step;
        if (w->seen[to]) continue;
        w->seen[to] = true;
        w->stack[depth++] = to;
    }
}

static bool leads_forward(const uint32_t *place, uint32_t from, uint32_t to)
{
    return place[from] < place[to];
}

// Counts the forward arcs of every step, then puts them there: each pair once.
static void join_steps(const struct net *net, const uint32_t *place, struct program_step *steps, uint32_t count,
                       uint32_t *deps, uint32_t *dependents)
{
    for (uint32_t i = 0; i < count; i++) {
        steps[i].dependents = dependents;
        uint32_t made = 0;
        for (uint32_t k = 0; k < net->steps[i].arc_count; k++) {
            uint32_t to = net->steps[i].arcs[k].step;
            bool twice = false;
            for (uint32_t j = 0; j < made; j++) twice = twice || dependents[j] == to;
            if (twice || !leads_forward(place, i, to)) continue;
            dependents[made++] = to;
            steps[to].dep_count++;
        }
        steps[i].dependent_count = made;
        dependents += made;
    }
    for (uint32_t i = 0; i < count; i++) {
        steps[i].deps = deps;
        deps += steps[i].dep_count;
        steps[i].dep_count = 0;
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < steps[i].dependent_count; k++) {
            struct program_step *to = &steps[steps[i].dependents[k]];
            union {
                const uint32_t *given;
                uint32_t *own;
            } list = {to->deps};
            list.own[to->dep_count++] = i;
        }
}

enum code net_unrolled(const struct program *program, struct arena *arena, const struct program **out,
                       struct error *err)
{
    const struct net *net = program->net;
    *out = program;
    if (!net) return OK;
    uint32_t count = program->step_count, arcs = 0;
    for (uint32_t i = 0; i < count; i++) arcs += net->steps[i].arc_count;
    struct walk w = {.net = net, .count = count};
    w.place = ARENA_ARRAY(arena, count, uint32_t);
    w.stack = ARENA_ARRAY(arena, count, uint32_t);
    w.next = ARENA_ARRAY(arena, count, uint32_t);
    w.seen = ARENA_ARRAY(arena, count, bool);
    struct program *made = ARENA_NEW(arena, struct program);
    struct program_step *steps = ARENA_ARRAY(arena, count, struct program_step);
    uint32_t *deps = ARENA_ARRAY(arena, arcs, uint32_t), *dependents = ARENA_ARRAY(arena, arcs, uint32_t);
    uint32_t *order = ARENA_ARRAY(arena, count, uint32_t);
    if (!w.place || !w.stack || !w.next || !w.seen || !made || !steps || !deps || !dependents || !order)
        return error_nomem(err);
    walk_from(&w, net->entry);
    for (uint32_t i = 0; i < count; i++) walk_from(&w, i);
    for (uint32_t i = 0; i < count; i++) order[w.place[i]] = i;
    memcpy(steps, program->steps, count * sizeof(*steps));
    join_steps(net, w.place, steps, count, deps, dependents);
    *made = *program;
    made->steps = steps;
    made->order = order;
    *out = made;
    return OK;
}

// ---- words

void net_condition(struct buf *out, struct str text)
{
    struct str rest;
    text = str_cut(str_trim(text), '\n', &rest);
    if (str_starts(text, STR("{{")) && str_ends(text, STR("}}")) && rest.len == 0)
        text = str_trim(str_slice(text, 2, text.len - 2));
    buf_add(out, text);
    if (str_trim(rest).len > 0) buf_text(out, " ...");
}

static void kinds_line(struct buf *line, const struct graph *g, const struct net_step *step)
{
    const char *then = g->options->utf8 || g->options->format != GRAPH_TEXT ? " → " : " > ";
    for (uint32_t i = 0; i < step->task_count && i < KINDS_SHOWN; i++) {
        const struct net_task *task = &step->tasks[i];
        buf_printf(line, "%s%.*s", i ? then : "", STR_ARG(task->kind));
        if (task->playbook.len) buf_printf(line, " %.*s", STR_ARG(task->playbook));
    }
    if (step->task_count > KINDS_SHOWN) buf_printf(line, "%s%u more", then, step->task_count - KINDS_SHOWN);
    if (step->task_count == 0) buf_text(line, "routes");
    if (step->timeout_ms > 0) {
        char text[24];
        duration_format(step->timeout_ms, text);
        buf_printf(line, ", max %s", text);
    }
}

static void loop_line(struct buf *line, const struct net_step *step)
{
    if (!step->has_loop) return;
    buf_printf(line, "for each %.*s in ", STR_ARG(step->loop.iterator));
    const struct json *in = step->loop.in ? template_tree_source(step->loop.in) : NULL;
    if (json_is(in, JSON_STRING))
        net_condition(line, in->text);
    else if (in)
        buf_printf(line, "a list of %u", in->type == JSON_ARRAY ? in->count : 1);
    if (step->loop.parallel && step->loop.max_of)
        buf_text(line, ", as many at once as a template says");
    else if (step->loop.parallel)
        buf_printf(line, ", %u at once", step->loop.max_in_flight);
}

// Tries and jumps of one task, a line each.
static void policy_lines(struct buf *line, const struct net_step *step, const struct net_task *task,
                         void (*add)(void *context, struct buf *line), void *context)
{
    for (uint32_t k = 0; k < task->rule_count; k++) {
        const struct net_rule *rule = &task->rules[k];
        if (rule->action == NET_RETRY && rule->attempts_of)
            buf_printf(line, "%.*s: tries by a template", STR_ARG(task->label));
        else if (rule->action == NET_RETRY)
            buf_printf(line, "%.*s: up to %u tries", STR_ARG(task->label), rule->attempts);
        else if (rule->action == NET_JUMP && rule->target != PROGRAM_TOP)
            buf_printf(line, "%.*s: jumps to %.*s", STR_ARG(task->label), STR_ARG(step->tasks[rule->target].label));
        else
            continue;
        add(context, line);
    }
}

static void upstream_line(struct buf *line, const struct program *program, const uint64_t *bits)
{
    uint32_t named = 0, more = 0;
    for (uint32_t i = 0; bits && i < program->step_count; i++) {
        if (!(bits[i / 64] >> (i % 64) & 1)) continue;
        if (named == NAMES_SHOWN) {
            more++;
            continue;
        }
        buf_printf(line, "%s%.*s", named++ ? ", " : "waits for ", STR_ARG(program->steps[i].id));
    }
    if (more) buf_printf(line, " and %u more", more);
}

// Whether the drawn line of the arc says all there is.
static bool is_plain(const struct graph *g, uint32_t from, const struct net_arc *arc)
{
    const struct program_step *ps = &g->program->steps[from];
    if (arc->when.test) return false;
    for (uint32_t i = 0; i < ps->dependent_count; i++)
        if (ps->dependents[i] == arc->step) return true;
    return false;
}

static void arc_line(struct buf *line, const struct graph *g, uint32_t from, const struct net_arc *arc)
{
    const struct program_step *ps = &g->program->steps[from];
    bool back = true;
    for (uint32_t i = 0; i < ps->dependent_count; i++) back = back && ps->dependents[i] != arc->step;
    buf_printf(line, "%s %.*s", back ? "back to" : "to", STR_ARG(g->program->steps[arc->step].id));
    if (arc->when.test) buf_text(line, " if ");
    net_condition(line, arc->when.text);
}

void net_lines(const struct graph *g, uint32_t step, void (*add)(void *context, struct buf *line), void *context)
{
    const struct net_step *net = &g->program->net->steps[step];
    bool arcs = g->options->format == GRAPH_TEXT || g->options->format == GRAPH_SVG;
    struct buf line SCOPED(buf_release) = buf_of((size_t)1 << 16);
    kinds_line(&line, g, net);
    add(context, &line);
    loop_line(&line, net);
    if (line.len) add(context, &line);
    for (uint32_t i = 0; i < net->task_count; i++) policy_lines(&line, net, &net->tasks[i], add, context);
    if (net->admit_count) {
        buf_text(&line, net->admit[0].allow ? "admitted if " : "refused if ");
        net_condition(&line, net->admit[0].when.text);
        add(context, &line);
    }
    upstream_line(&line, g->program, net->upstream);
    if (line.len) add(context, &line);
    uint32_t plain = 0, shown = 0;
    for (uint32_t i = 0; i < net->arc_count; i++) plain += is_plain(g, step, &net->arcs[i]);
    if (net->inclusive && net->arc_count > 1) {
        buf_text(&line, plain == net->arc_count ? "all of them" : arcs ? "all that hold:" : "all that hold");
        add(context, &line);
    }
    for (uint32_t i = 0; arcs && i < net->arc_count; i++) {
        if (plain == net->arc_count && (net->inclusive || plain == 1)) break;
        if (shown++ == ARCS_SHOWN) {
            buf_printf(&line, "and %u more", net->arc_count - i);
            add(context, &line);
            break;
        }
        arc_line(&line, g, step, &net->arcs[i]);
        add(context, &line);
    }
}
