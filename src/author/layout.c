// Layered layout: layers, dummies, order, coordinates. Deterministic: ties keep the order of the items.
#include "author/layout.h"

#include <string.h>

enum { DUMMIES_MAX = 200000, ORDER_SWEEPS = 8, PLACE_SWEEPS = 8, NARROWINGS = 4 };

struct work {
    const struct lay_request *request;
    struct arena *arena;
    uint32_t *layer;        // of an item
    uint32_t *last;         // lowest layer that the net of an item has to reach
    uint32_t *topo;         // items in topological order
    uint32_t *first, *next; // edges of an item as a list: index + 1, 0 ends
    struct layout *out;
};

static bool topological(struct work *w)
{
    const struct lay_request *r = w->request;
    uint32_t *left = ARENA_ARRAY(w->arena, r->item_count + 1, uint32_t);
    w->topo = ARENA_ARRAY(w->arena, r->item_count + 1, uint32_t);
    w->first = ARENA_ARRAY(w->arena, r->item_count + 1, uint32_t);
    w->next = ARENA_ARRAY(w->arena, r->edge_count + 1, uint32_t);
    if (!left || !w->topo || !w->first || !w->next) return false;
    for (uint32_t e = r->edge_count; e > 0; e--) {
        w->next[e - 1] = w->first[r->edges[e - 1].from];
        w->first[r->edges[e - 1].from] = e;
        left[r->edges[e - 1].to]++;
    }
    uint32_t head = 0, tail = 0;
    for (uint32_t i = 0; i < r->item_count; i++)
        if (left[i] == 0) w->topo[tail++] = i;
    while (head < tail)
        for (uint32_t e = w->first[w->topo[head++]]; e; e = w->next[e - 1])
            if (--left[r->edges[e - 1].to] == 0) w->topo[tail++] = r->edges[e - 1].to;
    INVARIANT(tail == r->item_count);
    return true;
}

// Longest path; a layer that is full passes further items to the next one.
static bool find_layers(struct work *w, int32_t width_max, uint32_t *layer_count)
{
    const struct lay_request *r = w->request;
    w->layer = ARENA_ARRAY(w->arena, r->item_count + 1, uint32_t);
    w->last = ARENA_ARRAY(w->arena, r->item_count + 1, uint32_t);
    int32_t *used = ARENA_ARRAY(w->arena, 2 * (size_t)r->item_count + 1, int32_t);
    if (!w->layer || !w->last || !used) return false;
    *layer_count = 0;
    for (uint32_t k = 0; k < r->item_count; k++) {
        uint32_t i = w->topo[k];
        while (width_max > 0 && used[w->layer[i]] > 0 && used[w->layer[i]] + r->items[i].w > width_max) w->layer[i]++;
        used[w->layer[i]] += r->items[i].w + r->gap;
        if (w->layer[i] >= *layer_count) *layer_count = w->layer[i] + 1;
        for (uint32_t e = w->first[i]; e; e = w->next[e - 1]) {
            uint32_t to = r->edges[e - 1].to;
            if (w->layer[to] <= w->layer[i]) w->layer[to] = w->layer[i] + 1;
        }
    }
    for (uint32_t e = 0; e < r->edge_count; e++) {
        uint32_t from = r->edges[e].from, above = w->layer[r->edges[e].to] - 1;
        if (above > w->last[from]) w->last[from] = above;
    }
    return true;
}

struct link {
    uint32_t from, to;
};

static bool set_links(struct work *w, const struct link *links, size_t count)
{
    struct layout *l = w->out;
    uint32_t *down = ARENA_ARRAY(w->arena, count + 1, uint32_t);
    uint32_t *up = ARENA_ARRAY(w->arena, count + 1, uint32_t);
    uint32_t *at = ARENA_ARRAY(w->arena, 2 * (size_t)l->node_count + 2, uint32_t);
    if (!down || !up || !at) return false;
    uint32_t *at_up = at + l->node_count + 1;
    for (size_t i = 0; i < count; i++) {
        l->nodes[links[i].from].down_count++;
        l->nodes[links[i].to].up_count++;
    }
    uint32_t d = 0, u = 0;
    for (uint32_t i = 0; i < l->node_count; i++) {
        at[i] = d;
        at_up[i] = u;
        l->nodes[i].down = down + d;
        l->nodes[i].up = up + u;
        d += l->nodes[i].down_count;
        u += l->nodes[i].up_count;
    }
    for (size_t i = 0; i < count; i++) {
        down[at[links[i].from]++] = links[i].to;
        up[at_up[links[i].to]++] = links[i].from;
    }
    return true;
}

// Nodes, chains of dummies, and the links between neighbouring layers.
static enum code make_nodes(struct work *w, uint32_t layer_count)
{
    const struct lay_request *r = w->request;
    struct layout *l = w->out;
    size_t dummies = 0;
    for (uint32_t i = 0; i < r->item_count; i++) dummies += w->last[i] > w->layer[i] ? w->last[i] - w->layer[i] : 0;
    if (dummies > DUMMIES_MAX) return E_LIMIT;
    l->nodes = ARENA_ARRAY(w->arena, r->item_count + dummies + 1, struct lay_node);
    struct link *links = ARENA_ARRAY(w->arena, r->edge_count + dummies + 1, struct link);
    l->rows = ARENA_ARRAY(w->arena, layer_count + 1, struct lay_row);
    if (!l->nodes || !links || !l->rows) return E_NOMEM;
    size_t link_count = 0;
    l->row_count = layer_count;
    for (uint32_t i = 0; i < r->item_count; i++)
        l->nodes[i] = (struct lay_node){.item = i, .w = r->items[i].w, .h = r->items[i].h, .layer = w->layer[i]};
    l->node_count = r->item_count;
    for (uint32_t i = 0; i < r->item_count; i++) {
        uint32_t chain = l->node_count, above = i;
        for (uint32_t layer = w->layer[i] + 1; layer <= w->last[i]; layer++) {
            l->nodes[l->node_count] = (struct lay_node){.item = LAYOUT_DUMMY, .w = 1, .layer = layer};
            links[link_count++] = (struct link){above, l->node_count};
            above = l->node_count++;
        }
        for (uint32_t e = w->first[i]; e; e = w->next[e - 1]) {
            uint32_t to = r->edges[e - 1].to, layer = w->layer[to] - 1;
            uint32_t from = layer == w->layer[i] ? i : chain + layer - w->layer[i] - 1;
            links[link_count++] = (struct link){from, to};
        }
    }
    return set_links(w, links, link_count) ? OK : E_NOMEM;
}

static bool make_rows(struct work *w)
{
    struct layout *l = w->out;
    for (uint32_t i = 0; i < l->node_count; i++) l->rows[l->nodes[i].layer].count++;
    uint32_t *all = ARENA_ARRAY(w->arena, l->node_count + 1, uint32_t);
    if (!all) return false;
    for (uint32_t k = 0, start = 0; k < l->row_count; k++) {
        l->rows[k].nodes = all + start;
        start += l->rows[k].count;
        l->rows[k].count = 0;
    }
    for (uint32_t i = 0; i < l->node_count; i++) {
        struct lay_row *row = &l->rows[l->nodes[i].layer];
        l->nodes[i].order = row->count;
        row->nodes[row->count++] = i;
        if (l->nodes[i].h > row->h) row->h = l->nodes[i].h;
    }
    return true;
}

// ---- order

struct keyed {
    double key;
    uint32_t node;
};

static void sort_keyed(struct keyed *a, struct keyed *spare, uint32_t count)
{
    for (uint32_t width = 1; width < count; width *= 2) {
        for (uint32_t from = 0; from < count; from += 2 * width) {
            uint32_t mid = from + width < count ? from + width : count;
            uint32_t end = from + 2 * width < count ? from + 2 * width : count;
            for (uint32_t i = from, j = mid, k = from; k < end; k++)
                spare[k] = j >= end || (i < mid && a[i].key <= a[j].key) ? a[i++] : a[j++];
        }
        memcpy(a, spare, count * sizeof(*a));
    }
}

static void sort_row(struct layout *l, struct lay_row *row, bool by_up, struct keyed *a, struct keyed *spare)
{
    for (uint32_t i = 0; i < row->count; i++) {
        const struct lay_node *n = &l->nodes[row->nodes[i]];
        const uint32_t *near = by_up ? n->up : n->down;
        uint32_t count = by_up ? n->up_count : n->down_count;
        double sum = 0;
        for (uint32_t k = 0; k < count; k++) sum += l->nodes[near[k]].order;
        a[i] = (struct keyed){count ? sum / count : n->order, row->nodes[i]};
    }
    sort_keyed(a, spare, row->count);
    for (uint32_t i = 0; i < row->count; i++) {
        row->nodes[i] = a[i].node;
        l->nodes[a[i].node].order = i;
    }
}

// Pairs of links between two rows that cross: inversions, counted with a binary indexed tree.
static uint64_t crossings(const struct layout *l, uint32_t *tree, struct keyed *a, struct keyed *spare)
{
    uint64_t found = 0;
    for (uint32_t k = 0; k + 1 < l->row_count; k++) {
        uint32_t width = l->rows[k + 1].count, links = 0;
        memset(tree, 0, (width + 1) * sizeof(*tree));
        for (uint32_t i = 0; i < l->rows[k].count; i++) {
            const struct lay_node *n = &l->nodes[l->rows[k].nodes[i]];
            for (uint32_t j = 0; j < n->down_count; j++) a[j] = (struct keyed){l->nodes[n->down[j]].order, n->down[j]};
            sort_keyed(a, spare, n->down_count);
            for (uint32_t j = 0; j < n->down_count; j++) {
                uint32_t before = 0;
                for (uint32_t at = l->nodes[a[j].node].order + 1; at > 0; at -= at & -at) before += tree[at];
                found += links - before;
            }
            for (uint32_t j = 0; j < n->down_count; j++, links++)
                for (uint32_t at = l->nodes[a[j].node].order + 1; at <= width; at += at & -at) tree[at]++;
        }
    }
    return found;
}

static void keep(const struct layout *l, uint32_t *order)
{
    for (uint32_t i = 0; i < l->node_count; i++) order[i] = l->nodes[i].order;
}

static void restore(struct layout *l, const uint32_t *order)
{
    for (uint32_t i = 0; i < l->node_count; i++) {
        l->nodes[i].order = order[i];
        l->rows[l->nodes[i].layer].nodes[order[i]] = i;
    }
}

static bool reduce_crossings(struct work *w)
{
    struct layout *l = w->out;
    struct keyed *a = ARENA_ARRAY(w->arena, l->node_count + 1, struct keyed);
    struct keyed *spare = ARENA_ARRAY(w->arena, l->node_count + 1, struct keyed);
    uint32_t *tree = ARENA_ARRAY(w->arena, l->node_count + 2, uint32_t);
    uint32_t *best = ARENA_ARRAY(w->arena, l->node_count + 1, uint32_t);
    if (!a || !spare || !tree || !best) return false;
    uint64_t least = crossings(l, tree, a, spare);
    keep(l, best);
    for (int sweep = 0; sweep < ORDER_SWEEPS && least > 0; sweep++) {
        if (sweep % 2 == 0)
            for (uint32_t k = 1; k < l->row_count; k++) sort_row(l, &l->rows[k], true, a, spare);
        else
            for (uint32_t k = l->row_count - 1; k > 0; k--) sort_row(l, &l->rows[k - 1], false, a, spare);
        uint64_t now = crossings(l, tree, a, spare);
        if (now >= least) continue;
        least = now;
        keep(l, best);
    }
    restore(l, best);
    return true;
}

// ---- coordinates

struct block {
    double sum, weight;
    uint32_t count;
};

static double center(const struct lay_node *n)
{
    return n->x + n->w / 2.0;
}

// Each node as near as can be to the middle of its neighbours, in order and without overlap: with the widths to the left
// taken off, that is a regression on a rising sequence, solved by pooling neighbours that are out of order.
static void place_row(struct layout *l, const struct lay_row *row, bool by_up, int32_t gap, int32_t width,
                      struct block *blocks)
{
    uint32_t block_count = 0;
    double offset = 0;
    for (uint32_t i = 0; i < row->count; i++) {
        const struct lay_node *n = &l->nodes[row->nodes[i]];
        const uint32_t *near = by_up ? n->up : n->down;
        uint32_t count = by_up ? n->up_count : n->down_count;
        double sum = 0;
        for (uint32_t k = 0; k < count; k++) sum += center(&l->nodes[near[k]]);
        double want = (count ? sum / count : center(n)) - n->w / 2.0 - offset;
        double weight = !count ? 0.05 : n->item == LAYOUT_DUMMY ? 4 : 1;
        blocks[block_count++] = (struct block){want * weight, weight, 1};
        while (block_count > 1 && blocks[block_count - 2].sum / blocks[block_count - 2].weight >
                                      blocks[block_count - 1].sum / blocks[block_count - 1].weight) {
            struct block *b = &blocks[block_count - 2];
            b->sum += b[1].sum;
            b->weight += b[1].weight;
            b->count += b[1].count;
            block_count--;
        }
        offset += n->w + gap;
    }
    double room = width - (offset - gap);
    offset = 0;
    for (uint32_t b = 0, i = 0; b < block_count; b++) {
        double y = blocks[b].sum / blocks[b].weight;
        y = y > room ? room : y;
        y = y < 0 ? 0 : y;
        for (uint32_t k = 0; k < blocks[b].count; k++, i++) {
            struct lay_node *n = &l->nodes[row->nodes[i]];
            n->x = (int32_t)(y + 0.5) + (int32_t)offset;
            offset += n->w + gap;
        }
    }
}

static bool place(struct work *w)
{
    struct layout *l = w->out;
    int32_t gap = w->request->gap;
    struct block *blocks = ARENA_ARRAY(w->arena, l->node_count + 1, struct block);
    if (!blocks) return false;
    l->w = 0;
    for (uint32_t k = 0; k < l->row_count; k++) {
        int32_t x = 0;
        for (uint32_t i = 0; i < l->rows[k].count; i++) {
            l->nodes[l->rows[k].nodes[i]].x = x;
            x += l->nodes[l->rows[k].nodes[i]].w + gap;
        }
        if (x - gap > l->w) l->w = x - gap;
    }
    for (int sweep = 0; sweep < PLACE_SWEEPS; sweep++) {
        if (sweep % 2 == 0)
            for (uint32_t k = l->row_count; k > 0; k--) place_row(l, &l->rows[k - 1], false, gap, l->w, blocks);
        else
            for (uint32_t k = 0; k < l->row_count; k++) place_row(l, &l->rows[k], true, gap, l->w, blocks);
    }
    return true;
}

static enum code attempt(struct work *w, int32_t width_max)
{
    uint32_t layer_count = 0;
    *w->out = (struct layout){0};
    if (!find_layers(w, width_max, &layer_count)) return E_NOMEM;
    enum code rc = make_nodes(w, layer_count);
    if (rc) return rc;
    return make_rows(w) && reduce_crossings(w) && place(w) ? OK : E_NOMEM;
}

enum code layout_make(const struct lay_request *request, struct arena *arena, struct layout *out)
{
    struct work w = {.request = request, .arena = arena, .out = out};
    if (!topological(&w)) return E_NOMEM;
    int32_t width = request->width_max;
    // Lines that pass take room too: when they do not fit, the rows are made narrower.
    for (int i = 0; i < NARROWINGS; i++, width = width * 3 / 4) {
        enum code rc = attempt(&w, width);
        if (rc) return rc;
        if (request->width_max == 0 || out->w <= request->width_max) return OK;
    }
    return E_LIMIT;
}
