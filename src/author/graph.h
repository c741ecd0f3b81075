// Private to author/: what the writers of pictures share. A scene is one scope with its steps as items, each with its text.
#ifndef CAIRN_AUTHOR_GRAPH_H
#define CAIRN_AUTHOR_GRAPH_H

#include "author/author.h"
#include "author/layout.h"

enum { LINES_MAX = 10, SHOWN_OF_MANY = 3, MANY = 6, NEST_MAX = 16 };

struct graph_item {
    uint32_t step;
    uint32_t more; // > 0: stands for so many steps that are like the one before it
    struct str lines[LINES_MAX];
    uint32_t line_count;
    struct graph_mark mark;
    bool marked;
    struct scene *inner; // of a loop
};

struct scene {
    struct graph_item *items;
    uint32_t item_count;
    struct lay_edge *edges;
    uint32_t edge_count;
};

struct graph {
    const struct program *program;
    const struct graph_options *options;
    struct arena *arena;
    struct error *err;
};

// Items and edges of a scope and of the loops in it; `fold`: fan-outs are shown by their first steps.
enum code scene_make(const struct graph *g, uint32_t scope, bool fold, struct scene **out) MUST_CHECK;
// Everything worth knowing about a step in a few lines, for tooltips.
void graph_title(struct buf *out, const struct graph *g, uint32_t step);

// ---- playbooks (graph_net.c): a net is drawn as the graph of its arcs that lead forward; arcs back are said in words.
// A program with these arcs as dependencies and an order that follows them; the same program when it has no net.
enum code net_unrolled(const struct program *program, struct arena *arena, const struct program **out,
                       struct error *err) MUST_CHECK;
// What the box of a step says besides its name: calls `add` for each line.
void net_lines(const struct graph *g, uint32_t step, void (*add)(void *context, struct buf *line), void *context);
// The condition of an arc, as short as it can be; empty when there is none.
void net_condition(struct buf *out, struct str text);

enum code graph_text(struct buf *out, const struct graph *g) MUST_CHECK;
enum code graph_svg(struct buf *out, const struct graph *g) MUST_CHECK;
void graph_dot(struct buf *out, const struct graph *g);
void graph_mermaid(struct buf *out, const struct graph *g);

#endif
