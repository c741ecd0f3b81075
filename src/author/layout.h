// Private to author/: where the boxes of a layered graph stand. Knows nothing of steps: items have sizes, edges join items.
//
// Every item with edges has one net: a chain of dummy nodes through the layers below it, from which each of its targets
// branches off in the layer above the target. So a step that a hundred others need is one line, not a hundred.
#ifndef CAIRN_AUTHOR_LAYOUT_H
#define CAIRN_AUTHOR_LAYOUT_H

#include "base/arena.h"
#include "base/error.h"

#define LAYOUT_DUMMY UINT32_MAX

struct lay_item {
    int32_t w, h;
};

struct lay_edge {
    uint32_t from, to; // items; acyclic
};

struct lay_node {
    uint32_t item; // LAYOUT_DUMMY: a line that passes
    int32_t w, h, x, y;
    uint32_t layer, order;
    const uint32_t *up, *down; // nodes of the neighbouring layers
    uint32_t up_count, down_count;
};

struct lay_row {
    uint32_t *nodes; // from left to right
    uint32_t count;
    int32_t h;
};

struct layout {
    struct lay_node *nodes; // the items first, in their order
    uint32_t node_count;
    struct lay_row *rows;
    uint32_t row_count;
    int32_t w;
};

struct lay_request {
    const struct lay_item *items;
    uint32_t item_count;
    const struct lay_edge *edges;
    uint32_t edge_count;
    int32_t gap;       // between neighbours
    int32_t width_max; // rows are broken into further layers to stay below; 0 = as wide as it gets
};

// Sets x, w, h and rows; y is the caller's. E_LIMIT: does not fit width_max, or too many dummies. E_NOMEM.
enum code layout_make(const struct lay_request *request, struct arena *arena, struct layout *out) MUST_CHECK;

#endif
