// Boxes and lines on a grid of characters. Between two rows of boxes lies a channel: every net that does not go straight
// down has a track in it. Where lines cross without meeting, the vertical one is whole and the other has a gap, so a
// corner or a tee always means a connection.
#include "author/graph.h"

#include <string.h>

enum { UP = 1, DOWN = 2, LEFT = 4, RIGHT = 8, TEXT_WIDTH_MAX = 30, GAP = 2, CELLS_MAX = 4000000 };
enum { PORTS_MAX = TEXT_WIDTH_MAX / 2 }; // lines into a box that have an arrow each; more than that share one

struct cell {
    char bytes[5]; // UTF-8; "" = blank, "\1" = covered by a wide character before it
    uint8_t dirs;
    bool joined;
    const char *paint;
};

struct canvas {
    struct cell *cells;
    int32_t w, h;
};

static struct cell *at(const struct canvas *c, int32_t x, int32_t y)
{
    INVARIANT(x >= 0 && y >= 0 && x < c->w && y < c->h);
    return &c->cells[(size_t)y * (size_t)c->w + (size_t)x];
}

static enum code canvas_make(const struct graph *g, struct canvas *c, int32_t w, int32_t h)
{
    *c = (struct canvas){.w = w, .h = h};
    if ((int64_t)w * h > CELLS_MAX) return E_LIMIT;
    c->cells = ARENA_ARRAY(g->arena, (size_t)w * (size_t)h + 1, struct cell);
    return c->cells ? OK : error_nomem(g->err);
}

static uint32_t code_point(struct str text, size_t i, size_t size)
{
    const unsigned char *p = (const unsigned char *)text.ptr + i;
    uint32_t c = size == 1 ? p[0] : p[0] & (0x7Fu >> size);
    for (size_t k = 1; k < size; k++) c = c << 6 | (p[k] & 0x3Fu);
    return c;
}

// What a character becomes in a cell: control characters and what is not UTF-8 are shown as '?'.
static int32_t glyph(struct str text, size_t *i, bool utf8, struct str *out)
{
    size_t size = str_utf8_size(text, *i);
    uint32_t c = size ? code_point(text, *i, size) : 0;
    bool wide = (c >= 0x1100 && c <= 0x115F) || (c >= 0x2E80 && c <= 0xA4CF) || (c >= 0xAC00 && c <= 0xD7A3) ||
                (c >= 0xF900 && c <= 0xFAFF) || (c >= 0xFE30 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF60) ||
                (c >= 0x1F300 && c <= 0x1FAFF) || c >= 0x20000;
    bool hidden = c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
                  (c >= 0x2066 && c <= 0x2069) || (c >= 0x300 && c <= 0x36F) || c == 0xFEFF || c >= 0xE0000;
    *out = hidden || (!utf8 && c > 0x7E) ? STR("?") : str_slice(text, *i, *i + size);
    *i += size ? size : 1;
    return wide && !hidden && utf8 ? 2 : 1;
}

static int32_t width_of(struct str text, bool utf8)
{
    struct str one;
    int32_t width = 0;
    for (size_t i = 0; i < text.len;) width += glyph(text, &i, utf8, &one);
    return width;
}

static void put(struct canvas *c, int32_t x, int32_t y, struct str one, const char *paint)
{
    struct cell *cell = at(c, x, y);
    memset(cell->bytes, 0, sizeof(cell->bytes));
    memcpy(cell->bytes, one.ptr, one.len < 4 ? one.len : 4);
    cell->dirs = 0;
    cell->paint = paint;
}

static void put_text(struct canvas *c, int32_t x, int32_t y, int32_t room, struct str text, const char *paint,
                     bool utf8)
{
    bool cut = width_of(text, utf8) > room;
    int32_t end = x + room - (cut ? 1 : 0);
    for (size_t i = 0; i < text.len;) {
        struct str one;
        int32_t w = glyph(text, &i, utf8, &one);
        if (x + w > end) break;
        put(c, x, y, one, paint);
        if (w == 2) put(c, x + 1, y, STR("\1"), paint);
        x += w;
    }
    if (cut) put(c, x, y, utf8 ? STR("…") : STR("~"), paint);
}

// ---- lines

static void mark(struct canvas *c, int32_t x, int32_t y, unsigned dirs, bool joined)
{
    struct cell *cell = at(c, x, y);
    cell->dirs |= (uint8_t)dirs;
    cell->joined |= joined;
}

static void vertical(struct canvas *c, int32_t x, int32_t from, int32_t to) // [from, to)
{
    for (int32_t y = from; y < to; y++) mark(c, x, y, UP | DOWN, false);
}

static void horizontal(struct canvas *c, int32_t from, int32_t to, int32_t y)
{
    for (int32_t x = from; x < to; x++) {
        mark(c, x, y, RIGHT, false);
        mark(c, x + 1, y, LEFT, false);
    }
}

static const char *line_glyph(const struct cell *cell, bool utf8)
{
    static const char *const table[16] = {" ", "│", "│", "│", "─", "┘", "┐", "┤",
                                          "─", "└", "┌", "├", "─", "┴", "┬", "┼"};
    unsigned dirs = cell->dirs;
    bool v = dirs & (UP | DOWN), h = dirs & (LEFT | RIGHT);
    if (v && h && !cell->joined) return utf8 ? "│" : "|";
    if (utf8) return table[dirs];
    return v && h ? "+" : v ? "|" : "-";
}

static void box(struct canvas *c, int32_t x, int32_t y, int32_t w, int32_t h, bool heavy, bool utf8)
{
    static const char *const thin[] = {"┌", "┐", "└", "┘", "─", "│"};
    static const char *const round[] = {"╔", "╗", "╚", "╝", "═", "║"};
    static const char *const plain[] = {"+", "+", "+", "+", "-", "|"};
    const char *const *set = !utf8 ? plain : heavy ? round : thin;
    for (int32_t i = 1; i < w - 1; i++) {
        put(c, x + i, y, str_from(set[4]), NULL);
        put(c, x + i, y + h - 1, str_from(set[4]), NULL);
    }
    for (int32_t i = 1; i < h - 1; i++) {
        put(c, x, y + i, str_from(set[5]), NULL);
        put(c, x + w - 1, y + i, str_from(set[5]), NULL);
    }
    put(c, x, y, str_from(set[0]), NULL);
    put(c, x + w - 1, y, str_from(set[1]), NULL);
    put(c, x, y + h - 1, str_from(set[2]), NULL);
    put(c, x + w - 1, y + h - 1, str_from(set[3]), NULL);
}

// ---- channels

struct port {
    uint32_t node; // target
    int32_t x;
};

struct net {
    uint32_t node;
    int32_t x, low, high;
    int32_t track;     // -1: straight, 0: not yet assigned
    int32_t dog_x;     // with dog_track: where it really starts
    int32_t dog_track; // > 0: it first goes aside in this track, to a free column at x
    struct port *ports;
    uint32_t port_count;
};

struct drawing {
    const struct graph *g;
    const struct scene *scene;
    struct layout layout;
    struct canvas *inner; // of items
    struct canvas canvas;
    struct net **nets; // per row
    uint32_t *net_count;
    int32_t *channel; // height below each row
    int32_t *taken;   // per column: 1 + net that begins there
    bool *landed;     // per column: a line of this channel ends there
};

static bool taken_by_other(const struct drawing *d, int32_t x, uint32_t source)
{
    return d->taken[x] != 0 && d->taken[x] != (int32_t)source + 1;
}

// Where the line from `source` arrives at a box: straight below its start when it can, else its share of the top.
static int32_t arrive(const struct drawing *d, const struct lay_node *n, uint32_t source, int32_t source_x, uint32_t k,
                      uint32_t count)
{
    if (n->item == LAYOUT_DUMMY) {
        d->landed[n->x] = true;
        return n->x;
    }
    int32_t room = n->w - 2;
    int32_t x = n->x + 1 + (int32_t)((2 * (int64_t)k + 1) * room / (2 * (int64_t)count));
    if (count == 1 && source_x > n->x && source_x < n->x + n->w - 1) x = source_x;
    if (count > PORTS_MAX) return n->x + n->w / 2;
    for (int32_t shift = 0; shift < room; shift++) {
        int32_t to = x + (shift % 2 ? (shift + 1) / 2 : -(shift / 2));
        if (to > n->x && to < n->x + n->w - 1 && !taken_by_other(d, to, source) && !d->landed[to]) {
            d->landed[to] = true;
            return to;
        }
    }
    return x;
}

static int32_t start_x(const struct lay_node *n)
{
    return n->item == LAYOUT_DUMMY ? n->x : n->x + n->w / 2;
}

static void span(struct net *net)
{
    net->low = net->high = net->x;
    for (uint32_t k = 0; k < net->port_count; k++) {
        if (net->ports[k].x < net->low) net->low = net->ports[k].x;
        if (net->ports[k].x > net->high) net->high = net->ports[k].x;
    }
    net->track = net->low == net->high ? -1 : 0;
}

// A line that comes down in a column has to leave it before another one begins to go down there: its track is higher.
static bool may_follow(const struct drawing *d, const struct net *nets, const struct net *net, int32_t track)
{
    for (uint32_t k = 0; k < net->port_count; k++) {
        int32_t above = d->taken[net->ports[k].x];
        if (above == 0 || &nets[above - 1] == net) continue;
        if (nets[above - 1].track == 0 || nets[above - 1].track >= track) return false;
    }
    return true;
}

// Nets that wait for each other: one of them goes aside to a column where nothing starts or ends. False: there is none.
static bool go_aside(struct drawing *d, struct net *nets, struct net *net, int32_t track)
{
    int32_t best = -1;
    for (int32_t x = 0; x < d->canvas.w; x++) {
        if (d->taken[x] != 0 || d->landed[x]) continue;
        int32_t near = x > net->x ? x - net->x : net->x - x;
        if (best < 0 || near < (best > net->x ? best - net->x : net->x - best)) best = x;
    }
    if (best < 0 || net->dog_track > 0) return false;
    d->taken[net->x] = 0;
    d->taken[best] = (int32_t)(net - nets) + 1;
    net->dog_x = net->x;
    net->dog_track = track;
    net->x = best;
    span(net);
    return true;
}

static struct net *leftmost(const struct drawing *d, struct net *nets, uint32_t count, int32_t after, int32_t track,
                            bool any)
{
    struct net *best = NULL;
    for (uint32_t i = 0; i < count; i++) {
        struct net *net = &nets[i];
        if (net->track != 0 || net->low <= after || (best && net->low >= best->low)) continue;
        if (any || may_follow(d, nets, net, track)) best = net;
    }
    return best;
}

// Left edge first: a track takes the next net that begins after the last one has ended. Tracks count from 1.
static int32_t assign_tracks(struct drawing *d, struct net *nets, uint32_t count)
{
    int32_t track = 1;
    for (;; track++) {
        int32_t end = -1;
        bool none = true;
        for (struct net *net; (net = leftmost(d, nets, count, end, track, false)); none = false) {
            net->track = track;
            end = net->high + 1;
        }
        if (!none) continue;
        struct net *stuck = leftmost(d, nets, count, -1, track, true);
        if (!stuck) return track - 1;
        if (!go_aside(d, nets, stuck, track)) stuck->track = track;
    }
}

static bool row_nets(struct drawing *d, uint32_t row)
{
    struct layout *l = &d->layout;
    const struct lay_row *r = &l->rows[row];
    struct net *nets = ARENA_ARRAY(d->g->arena, r->count + 1, struct net);
    uint32_t count = 0;
    if (!nets) return false;
    memset(d->taken, 0, (size_t)d->canvas.w * sizeof(*d->taken));
    memset(d->landed, 0, (size_t)d->canvas.w * sizeof(*d->landed));
    for (uint32_t i = 0; i < r->count; i++) {
        const struct lay_node *n = &l->nodes[r->nodes[i]];
        if (n->down_count == 0) continue;
        struct net *net = &nets[count++];
        *net = (struct net){.node = r->nodes[i], .x = start_x(n)};
        net->ports = ARENA_ARRAY(d->g->arena, n->down_count, struct port);
        if (!net->ports) return false;
        d->taken[net->x] = (int32_t)count;
    }
    // Targets from left to right, their sources from left to right.
    const struct lay_row *below = &l->rows[row + 1];
    for (uint32_t i = 0; row + 1 < l->row_count && i < below->count; i++) {
        const struct lay_node *n = &l->nodes[below->nodes[i]];
        uint32_t k = 0;
        for (uint32_t s = 0; s < count; s++) {
            bool linked = false;
            for (uint32_t u = 0; u < n->up_count; u++) linked |= n->up[u] == nets[s].node;
            if (!linked) continue;
            int32_t x = arrive(d, n, s, nets[s].x, k++, n->up_count);
            nets[s].ports[nets[s].port_count++] = (struct port){below->nodes[i], x};
        }
    }
    for (uint32_t i = 0; i < count; i++) span(&nets[i]);
    int32_t tracks = assign_tracks(d, nets, count);
    d->nets[row] = nets;
    d->net_count[row] = count;
    d->channel[row] = row + 1 < l->row_count ? (tracks > 0 ? tracks : 1) : 0;
    return true;
}

static void draw_net(struct canvas *c, const struct net *net, int32_t top, int32_t bottom)
{
    if (net->track < 0) {
        vertical(c, net->x, top, bottom);
        return;
    }
    int32_t y = top + net->track - 1, from = top;
    if (net->dog_track > 0) {
        int32_t aside = top + net->dog_track - 1;
        vertical(c, net->dog_x, top, aside);
        mark(c, net->dog_x, aside, UP, true);
        horizontal(c, net->dog_x < net->x ? net->dog_x : net->x, net->dog_x < net->x ? net->x : net->dog_x, aside);
        mark(c, net->x, aside, DOWN, true);
        from = aside + 1;
    }
    vertical(c, net->x, from, y);
    mark(c, net->x, y, UP, true);
    horizontal(c, net->low, net->high, y);
    for (uint32_t k = 0; k < net->port_count; k++) {
        mark(c, net->ports[k].x, y, DOWN, true);
        vertical(c, net->ports[k].x, y + 1, bottom);
    }
}

// ---- scenes

static enum code draw_scene(const struct graph *g, const struct scene *scene, int32_t width, struct canvas *out);

static void paste(struct canvas *to, const struct canvas *from, int32_t x, int32_t y)
{
    for (int32_t j = 0; j < from->h; j++)
        for (int32_t i = 0; i < from->w; i++) *at(to, x + i, y + j) = *at(from, i, j);
}

static void draw_item(struct drawing *d, const struct lay_node *n, int32_t row_bottom)
{
    const struct graph_item *item = &d->scene->items[n->item];
    bool utf8 = d->g->options->utf8;
    struct canvas *c = &d->canvas;
    box(c, n->x, n->y, n->w, n->h, item->inner != NULL, utf8);
    for (uint32_t i = 0; i < item->line_count; i++) {
        bool state = item->marked && i == (item->more ? 2u : 1u);
        const char *paint = state || (i == 0 && item->marked) ? item->mark.paint : NULL;
        put_text(c, n->x + 2, n->y + 1 + (int32_t)i, n->w - 4, item->lines[i], paint, utf8);
    }
    if (item->inner) {
        const struct canvas *inner = &d->inner[n->item];
        paste(c, inner, n->x + (n->w - inner->w) / 2, n->y + 1 + (int32_t)item->line_count);
    }
    if (n->down_count == 0) return;
    put(c, start_x(n), n->y + n->h - 1, utf8 ? (item->inner ? STR("╤") : STR("┬")) : STR("+"), NULL);
    vertical(c, start_x(n), n->y + n->h, row_bottom);
}

static void draw_all(struct drawing *d)
{
    struct layout *l = &d->layout;
    bool utf8 = d->g->options->utf8;
    int32_t y = 0;
    for (uint32_t row = 0; row < l->row_count; row++) {
        int32_t bottom = y + l->rows[row].h;
        for (uint32_t i = 0; i < l->rows[row].count; i++) {
            struct lay_node *n = &l->nodes[l->rows[row].nodes[i]];
            n->y = y;
            if (n->item == LAYOUT_DUMMY)
                vertical(&d->canvas, n->x, y, bottom);
            else
                draw_item(d, n, bottom);
        }
        for (uint32_t k = 0; row > 0 && k < d->net_count[row - 1]; k++) {
            const struct net *net = &d->nets[row - 1][k];
            for (uint32_t p = 0; p < net->port_count; p++)
                if (l->nodes[net->ports[p].node].item != LAYOUT_DUMMY)
                    put(&d->canvas, net->ports[p].x, y, utf8 ? STR("▼") : STR("v"), NULL);
        }
        for (uint32_t k = 0; k < d->net_count[row]; k++)
            draw_net(&d->canvas, &d->nets[row][k], bottom, bottom + d->channel[row]);
        y = bottom + d->channel[row];
    }
}

static enum code measure(struct drawing *d, int32_t width, struct lay_item *items)
{
    bool utf8 = d->g->options->utf8;
    for (uint32_t i = 0; i < d->scene->edge_count; i++) items[d->scene->edges[i].to].h++;
    for (uint32_t i = 0; i < d->scene->item_count; i++) {
        const struct graph_item *item = &d->scene->items[i];
        int32_t w = items[i].h <= PORTS_MAX ? 2 * items[i].h - 1 : 0; // room for its arrows
        for (uint32_t k = 0; k < item->line_count; k++) {
            int32_t line = width_of(item->lines[k], utf8);
            if (line > w) w = line;
        }
        w = w > TEXT_WIDTH_MAX ? TEXT_WIDTH_MAX : w;
        items[i] = (struct lay_item){w + 4, (int32_t)item->line_count + 2};
        if (!item->inner) continue;
        enum code rc = draw_scene(d->g, item->inner, width - 4, &d->inner[i]);
        if (rc) return rc;
        if (d->inner[i].w + 4 > items[i].w) items[i].w = d->inner[i].w + 4;
        items[i].h += d->inner[i].h;
    }
    return OK;
}

static enum code draw_scene(const struct graph *g, const struct scene *scene, int32_t width, struct canvas *out)
{
    struct drawing d = {.g = g, .scene = scene};
    struct lay_item *items = ARENA_ARRAY(g->arena, scene->item_count + 1, struct lay_item);
    d.inner = ARENA_ARRAY(g->arena, scene->item_count + 1, struct canvas);
    if (!items || !d.inner) return error_nomem(g->err);
    enum code rc = measure(&d, width, items);
    if (rc) return rc;
    struct lay_request request = {.items = items,
                                  .item_count = scene->item_count,
                                  .edges = scene->edges,
                                  .edge_count = scene->edge_count,
                                  .gap = GAP,
                                  .width_max = width > 0 ? width : 1};
    rc = layout_make(&request, g->arena, &d.layout);
    if (rc) return rc;
    d.canvas.w = d.layout.w;
    d.nets = ARENA_ARRAY(g->arena, d.layout.row_count + 1, struct net *);
    d.net_count = ARENA_ARRAY(g->arena, d.layout.row_count + 1, uint32_t);
    d.channel = ARENA_ARRAY(g->arena, d.layout.row_count + 1, int32_t);
    d.taken = ARENA_ARRAY(g->arena, (size_t)d.layout.w + 1, int32_t);
    d.landed = ARENA_ARRAY(g->arena, (size_t)d.layout.w + 1, bool);
    if (!d.nets || !d.net_count || !d.channel || !d.taken || !d.landed) return error_nomem(g->err);
    int32_t height = 0;
    for (uint32_t row = 0; row < d.layout.row_count; row++) {
        if (!row_nets(&d, row)) return error_nomem(g->err);
        height += d.layout.rows[row].h + d.channel[row];
    }
    rc = canvas_make(g, &d.canvas, d.layout.w, height);
    if (rc) return rc;
    draw_all(&d);
    *out = d.canvas;
    return OK;
}

static void write_canvas(struct buf *out, const struct canvas *c, bool utf8)
{
    for (int32_t y = 0; y < c->h; y++) {
        int32_t end = c->w;
        while (end > 0 && !at(c, end - 1, y)->bytes[0] && !at(c, end - 1, y)->dirs) end--;
        const char *paint = NULL;
        for (int32_t x = 0; x < end; x++) {
            const struct cell *cell = at(c, x, y);
            if (cell->bytes[0] == '\1') continue;
            if (cell->paint != paint) {
                if (paint) buf_text(out, "\x1b[0m");
                if (cell->paint) buf_text(out, cell->paint);
                paint = cell->paint;
            }
            buf_text(out, cell->bytes[0] ? cell->bytes : cell->dirs ? line_glyph(cell, utf8) : " ");
        }
        if (paint) buf_text(out, "\x1b[0m");
        buf_byte(out, '\n');
    }
}

// ---- the list, when the picture would not fit

static void list_scene(struct buf *out, const struct graph *g, const struct scene *scene, uint32_t depth)
{
    const struct program *p = g->program;
    for (uint32_t i = 0; i < scene->item_count; i++) {
        const struct graph_item *item = &scene->items[i];
        const struct program_step *ps = &p->steps[item->step];
        for (uint32_t k = 0; k < depth; k++) buf_text(out, "  ");
        if (item->marked && item->mark.paint) buf_text(out, item->mark.paint);
        for (uint32_t k = 0; k < item->line_count; k++) {
            for (size_t j = 0; j < item->lines[k].len;) {
                struct str one;
                (void)glyph(item->lines[k], &j, g->options->utf8, &one);
                buf_add(out, one);
            }
            if (k == 0 && item->marked && item->mark.paint) buf_text(out, "\x1b[0m");
            if (k + 1 < item->line_count) buf_text(out, "  ");
        }
        if (ps->dep_count > 0 && !item->more) {
            buf_text(out, "  after");
            for (uint32_t k = 0; k < ps->dep_count && k < 4; k++)
                buf_printf(out, "%s %.*s", k ? "," : "", STR_ARG(p->steps[ps->deps[k]].id));
            if (ps->dep_count > 4) buf_printf(out, " and %u more", ps->dep_count - 4);
        }
        buf_byte(out, '\n');
        if (item->inner) list_scene(out, g, item->inner, depth + 1);
    }
}

enum code graph_text(struct buf *out, const struct graph *g)
{
    struct scene *scene;
    struct canvas canvas;
    enum code rc = scene_make(g, PROGRAM_TOP, !g->options->all, &scene);
    if (rc) return rc;
    int32_t width = g->options->columns > 10000 ? 10000 : (int32_t)g->options->columns;
    rc = draw_scene(g, scene, width, &canvas);
    if (rc == E_LIMIT) {
        list_scene(out, g, scene, 0);
        return OK;
    }
    if (!rc) write_canvas(out, &canvas, g->options->utf8);
    return rc;
}
