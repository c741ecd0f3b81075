// What the boxes say, and which steps of a fan-out share one.
#include "author/graph.h"

#include "base/civil.h"
#include "program/net.h"

#include <string.h>

enum { REFINEMENTS = 12, TEXT_SIZE = 4096, NODES_TIMEOUT_MS = 120000 }; // the usual one is not worth a word

// ---- text

static void add_line(const struct graph *g, struct graph_item *item, struct buf *text)
{
    if (item->line_count < LINES_MAX && text->len > 0)
        item->lines[item->line_count++] = arena_copy(g->arena, buf_str(text));
    buf_clear(text);
}

static void add_first_line(struct buf *out, struct str text)
{
    struct str rest;
    text = str_cut(str_trim(text), '\n', &rest);
    buf_add(out, text);
    if (str_trim(rest).len > 0) buf_text(out, " ...");
}

static void add_kind(struct buf *out, const struct graph *g, const struct program_step *ps)
{
    char text[24];
    bool usual = g->program->kind == DOCUMENT_NODES && ps->timeout_ms == NODES_TIMEOUT_MS;
    buf_add(out, ps->kind == STEP_HOST ? ps->function : str_from(step_kind_name(ps->kind)));
    if (ps->kind == STEP_LOOP) buf_printf(out, ", up to %u times", ps->max_iterations);
    if (ps->child) {
        buf_printf(out, " of %.*s, %u step%s", STR_ARG(ps->child->plan_id), ps->child->step_count,
                   ps->child->step_count == 1 ? "" : "s");
    }
    if (ps->retry.max_attempts > 1) buf_printf(out, ", %u tries", ps->retry.max_attempts);
    if (ps->timeout_ms > 0 && !usual) {
        duration_format(ps->timeout_ms, text);
        buf_printf(out, ", max %s", text);
    }
}

static void add_state(struct buf *out, const struct graph_item *item)
{
    if (!item->marked) return;
    buf_printf(out, "%s %s", item->mark.glyph, item->mark.word);
    if (item->mark.note.len > 0) {
        buf_text(out, "  ");
        add_first_line(out, item->mark.note);
    }
}

struct lines {
    const struct graph *g;
    struct graph_item *item;
};

static void add_net_line(void *context, struct buf *line)
{
    const struct lines *lines = context;
    add_line(lines->g, lines->item, line);
}

static void add_title_line(void *context, struct buf *line)
{
    struct buf *out = context;
    buf_byte(out, '\n');
    buf_add(out, buf_str(line));
    buf_clear(line);
}

static void describe(const struct graph *g, struct graph_item *item)
{
    const struct program_step *ps = &g->program->steps[item->step];
    struct buf text SCOPED(buf_release) = buf_of(TEXT_SIZE);
    if (item->more > 0) {
        buf_printf(&text, "%s %u more", g->options->utf8 || g->options->format != GRAPH_TEXT ? "…" : "...", item->more);
        add_line(g, item, &text);
        buf_printf(&text, "like %.*s", STR_ARG(ps->id));
        add_line(g, item, &text);
        if (item->marked) buf_printf(&text, "%s %s", item->mark.glyph, item->mark.word);
        add_line(g, item, &text);
        return;
    }
    buf_add(&text, ps->id);
    add_line(g, item, &text);
    add_state(&text, item);
    add_line(g, item, &text);
    if (ps->kind == STEP_TASKS) {
        net_lines(g, item->step, add_net_line, &(struct lines){g, item});
        return;
    }
    add_kind(&text, g, ps);
    add_line(g, item, &text);
    if (ps->rule != RULE_ALL_SUCCESS && ps->dep_count > 0) buf_text(&text, rule_name(ps->rule));
    add_line(g, item, &text);
    if (ps->when_text.len > 0) {
        buf_text(&text, "if ");
        add_first_line(&text, ps->when_text);
    }
    add_line(g, item, &text);
}

void graph_title(struct buf *out, const struct graph *g, uint32_t step)
{
    const struct program_step *ps = &g->program->steps[step];
    struct graph_item item = {.step = step};
    item.marked = g->options->mark && g->options->mark(g->options->context, step, &item.mark);
    buf_add(out, ps->id);
    if (!str_eq(ps->name, ps->id)) buf_printf(out, " - %.*s", STR_ARG(ps->name));
    if (ps->kind == STEP_TASKS) {
        net_lines(g, step, add_title_line, out);
    } else {
        buf_byte(out, '\n');
        add_kind(out, g, ps);
    }
    if (ps->dep_count > 0 && ps->rule != RULE_ALL_SUCCESS) buf_printf(out, "\nrule %s", rule_name(ps->rule));
    if (ps->when_text.len > 0) buf_printf(out, "\nif %.*s", STR_ARG(ps->when_text));
    if (item.marked) {
        buf_byte(out, '\n');
        add_state(out, &item);
    }
}

// ---- fan-outs: steps are alike when they do the same kind of thing below and above steps that are alike

static uint64_t mix(uint64_t a, uint64_t b)
{
    a ^= b + 0x9E3779B97F4A7C15u + (a << 6) + (a >> 2);
    a *= 0xBF58476D1CE4E5B9u;
    return a ^ a >> 29;
}

static uint64_t first_color(const struct graph *g, uint32_t step)
{
    const struct program_step *ps = &g->program->steps[step];
    struct graph_mark mark;
    if (ps->kind == STEP_LOOP) return mix(step, 77);
    uint64_t color = mix((uint64_t)ps->kind, (uint64_t)ps->rule);
    color = mix(color, ps->when_text.len > 0);
    const struct net_step *net = g->program->net ? &g->program->net->steps[step] : NULL;
    for (uint32_t i = 0; net && i < net->task_count; i++) color = mix(color, str_hash(net->tasks[i].kind));
    if (net) color = mix(color, (uint64_t)net->has_loop + 2 * (uint64_t)net->inclusive + 4 * net->arc_count);
    if (g->options->mark && g->options->mark(g->options->context, step, &mark))
        color = mix(color, str_hash(str_from(mark.word)));
    return color;
}

// Steps that are alike are on one layer: else a long chain would be folded into an item that is its own ancestor.
static bool mix_layers(const struct graph *g, uint32_t first, uint32_t count, uint64_t *colors)
{
    const struct program_step *steps = g->program->steps + first;
    uint32_t *left = ARENA_ARRAY(g->arena, count + 1, uint32_t);
    uint32_t *layer = ARENA_ARRAY(g->arena, count + 1, uint32_t);
    uint32_t *ready = ARENA_ARRAY(g->arena, count + 1, uint32_t);
    uint32_t head = 0, tail = 0;
    if (!left || !layer || !ready) return false;
    for (uint32_t i = 0; i < count; i++) {
        left[i] = steps[i].dep_count;
        if (left[i] == 0) ready[tail++] = i;
    }
    while (head < tail) {
        uint32_t i = ready[head++];
        for (uint32_t k = 0; k < steps[i].dependent_count; k++) {
            uint32_t to = steps[i].dependents[k] - first;
            if (layer[to] <= layer[i]) layer[to] = layer[i] + 1;
            if (--left[to] == 0) ready[tail++] = to;
        }
        colors[i] = mix(colors[i], layer[i]);
    }
    return true;
}

// Sums do not depend on the order in which neighbours are listed.
static void refine(const struct graph *g, uint32_t first, uint32_t count, const uint64_t *from, uint64_t *to)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct program_step *ps = &g->program->steps[first + i];
        uint64_t up = ps->dep_count, down = ps->dependent_count;
        for (uint32_t k = 0; k < ps->dep_count; k++) up += mix(from[ps->deps[k] - first], 3);
        for (uint32_t k = 0; k < ps->dependent_count; k++) down += mix(from[ps->dependents[k] - first], 5);
        to[i] = mix(mix(from[i], up), down);
    }
}

// For every step of the scope the item it belongs to. Steps past the first few of their colour share one item.
static enum code assign_items(const struct graph *g, struct scene *scene, uint32_t first, uint32_t count, bool fold,
                              uint32_t *item_of)
{
    uint64_t *colors = ARENA_ARRAY(g->arena, count + 1, uint64_t);
    uint64_t *other = ARENA_ARRAY(g->arena, count + 1, uint64_t);
    uint32_t *seen = ARENA_ARRAY(g->arena, count + 1, uint32_t);
    uint32_t *total = ARENA_ARRAY(g->arena, count + 1, uint32_t);
    uint32_t *rest = ARENA_ARRAY(g->arena, count + 1, uint32_t);
    struct map classes;
    map_init(&classes, g->arena);
    if (!colors || !other || !seen || !total || !rest) return error_nomem(g->err);
    for (uint32_t i = 0; i < count; i++) colors[i] = first_color(g, first + i);
    if (fold && !mix_layers(g, first, count, colors)) return error_nomem(g->err);
    for (int round = 0; fold && round < REFINEMENTS; round++) {
        refine(g, first, count, colors, other);
        memcpy(colors, other, count * sizeof(*colors));
    }
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < count; i++) {
            struct str key = {(const char *)&colors[i], sizeof(colors[i])};
            uint32_t class;
            if (!map_put(&classes, key, i, &class)) return error_nomem(g->err);
            if (class == MAP_NONE) class = i;
            if (pass == 0) {
                total[class]++;
                continue;
            }
            if (!fold || total[class] <= MANY || seen[class]++ < SHOWN_OF_MANY) {
                item_of[i] = scene->item_count;
                scene->items[scene->item_count++] = (struct graph_item){.step = first + i};
                if (seen[class] == SHOWN_OF_MANY) rest[class] = item_of[i];
            } else if (seen[class] == SHOWN_OF_MANY + 1) {
                uint32_t like = scene->items[rest[class]].step;
                item_of[i] = rest[class] = scene->item_count;
                scene->items[scene->item_count++] = (struct graph_item){.step = like, .more = 1};
            } else {
                item_of[i] = rest[class];
                scene->items[rest[class]].more++;
            }
        }
    return OK;
}

static enum code add_edges(const struct graph *g, struct scene *scene, uint32_t first, uint32_t count,
                           const uint32_t *item_of)
{
    size_t total = 0;
    for (uint32_t i = 0; i < count; i++) total += g->program->steps[first + i].dep_count;
    scene->edges = ARENA_ARRAY(g->arena, total + 1, struct lay_edge);
    uint32_t *stamp = ARENA_ARRAY(g->arena, scene->item_count + 1, uint32_t);
    uint32_t *head = ARENA_ARRAY(g->arena, scene->item_count + 1, uint32_t);
    uint32_t *next = ARENA_ARRAY(g->arena, count + 1, uint32_t);
    if (!scene->edges || !stamp || !head || !next) return error_nomem(g->err);
    for (uint32_t i = count; i > 0; i--) {
        next[i - 1] = head[item_of[i - 1]];
        head[item_of[i - 1]] = i;
    }
    for (uint32_t item = 0; item < scene->item_count; item++)
        for (uint32_t i = head[item]; i; i = next[i - 1]) {
            const struct program_step *ps = &g->program->steps[first + i - 1];
            for (uint32_t k = 0; k < ps->dep_count; k++) {
                uint32_t from = item_of[ps->deps[k] - first];
                if (stamp[from] == item + 1 || from == item) continue;
                stamp[from] = item + 1;
                scene->edges[scene->edge_count++] = (struct lay_edge){from, item};
            }
        }
    return OK;
}

enum code scene_make(const struct graph *g, uint32_t scope, bool fold, struct scene **out)
{
    const struct program *p = g->program;
    uint32_t first;
    uint32_t count = program_scope(p, scope, &first);
    struct scene *scene = ARENA_NEW(g->arena, struct scene);
    uint32_t *item_of = ARENA_ARRAY(g->arena, count + 1, uint32_t);
    if (!scene || !item_of) return error_nomem(g->err);
    scene->items = ARENA_ARRAY(g->arena, count + 1, struct graph_item);
    if (!scene->items) return error_nomem(g->err);
    enum code rc = assign_items(g, scene, first, count, fold, item_of);
    if (!rc) rc = add_edges(g, scene, first, count, item_of);
    for (uint32_t i = 0; !rc && i < scene->item_count; i++) {
        struct graph_item *item = &scene->items[i];
        item->marked = g->options->mark && g->options->mark(g->options->context, item->step, &item->mark);
        describe(g, item);
        for (uint32_t k = 0; k < item->line_count; k++)
            if (!item->lines[k].ptr) return error_nomem(g->err);
        if (p->steps[item->step].kind == STEP_LOOP) rc = scene_make(g, item->step, fold, &item->inner);
    }
    *out = scene;
    return rc;
}

enum code graph_write(struct buf *out, const struct program *program, const struct graph_options *options,
                      struct arena *arena, struct error *err)
{
    struct graph g = {.program = program, .options = options, .arena = arena, .err = err};
    enum code rc = net_unrolled(program, arena, &g.program, err);
    if (rc) return rc;
    switch (options->format) {
    case GRAPH_TEXT:
        rc = graph_text(out, &g);
        break;
    case GRAPH_SVG:
        rc = graph_svg(out, &g);
        break;
    case GRAPH_DOT:
        graph_dot(out, &g);
        break;
    case GRAPH_MERMAID:
        graph_mermaid(out, &g);
        break;
    }
    if (!rc && !buf_ok(out)) return error_nomem(g.err);
    return rc;
}
