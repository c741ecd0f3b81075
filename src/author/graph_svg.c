// A picture that stands alone: no script, no font, no file besides. Colours follow the reader's light or dark setting;
// every state also has its glyph and its word.
#include "author/graph.h"

enum { CHAR_W = 8, LINE_H = 18, PAD = 12, GAP = 28, CHANNEL = 46, CHARS_MAX = 44 };

struct picture {
    const struct graph *g;
    const struct scene *scene;
    struct layout layout;
    struct picture *inner; // of items
    int32_t h;
};

static int32_t characters(struct str text)
{
    int32_t count = 0;
    for (size_t i = 0; i < text.len; i++) count += ((unsigned char)text.ptr[i] & 0xC0) != 0x80;
    return count;
}

static void cut_text(struct buf *out, struct str text)
{
    if (characters(text) <= CHARS_MAX) {
        buf_xml(out, text);
        return;
    }
    size_t end = 0;
    for (int32_t count = 0; end < text.len; end++)
        if (((unsigned char)text.ptr[end] & 0xC0) != 0x80 && ++count == CHARS_MAX) break;
    buf_xml(out, str_slice(text, 0, end));
    buf_text(out, "…");
}

static enum code arrange(const struct graph *g, const struct scene *scene, struct picture *out)
{
    *out = (struct picture){.g = g, .scene = scene};
    struct lay_item *items = ARENA_ARRAY(g->arena, scene->item_count + 1, struct lay_item);
    out->inner = ARENA_ARRAY(g->arena, scene->item_count + 1, struct picture);
    if (!items || !out->inner) return error_nomem(g->err);
    for (uint32_t i = 0; i < scene->item_count; i++) {
        const struct graph_item *item = &scene->items[i];
        int32_t w = 0;
        for (uint32_t k = 0; k < item->line_count; k++) {
            int32_t line = characters(item->lines[k]);
            if (line > w) w = line;
        }
        w = w > CHARS_MAX ? CHARS_MAX : w;
        items[i] = (struct lay_item){w * CHAR_W + 2 * PAD, (int32_t)item->line_count * LINE_H + PAD};
        if (!item->inner) continue;
        enum code rc = arrange(g, item->inner, &out->inner[i]);
        if (rc) return rc;
        if (out->inner[i].layout.w + 2 * PAD > items[i].w) items[i].w = out->inner[i].layout.w + 2 * PAD;
        items[i].h += out->inner[i].h + PAD;
    }
    struct lay_request request = {.items = items,
                                  .item_count = scene->item_count,
                                  .edges = scene->edges,
                                  .edge_count = scene->edge_count,
                                  .gap = GAP};
    enum code rc = layout_make(&request, g->arena, &out->layout);
    if (rc == E_LIMIT)
        return error_set(g->err, rc,
                         "the graph has too many long edges for a picture; use -o dot with a layout program");
    if (rc) return error_nomem(g->err);
    for (uint32_t row = 0; row < out->layout.row_count; row++) {
        for (uint32_t i = 0; i < out->layout.rows[row].count; i++)
            out->layout.nodes[out->layout.rows[row].nodes[i]].y = out->h;
        out->h += out->layout.rows[row].h + (row + 1 < out->layout.row_count ? CHANNEL : 0);
    }
    return OK;
}

static int32_t middle(const struct lay_node *n)
{
    return n->x + n->w / 2;
}

// From the bottom of a node (through the rest of its row) to the top of the next.
static void write_edge(struct buf *out, const struct picture *p, const struct lay_node *from, const struct lay_node *to)
{
    int32_t row_end = p->layout.rows[from->layer].h + from->y;
    int32_t start = from->item == LAYOUT_DUMMY ? from->y : from->y + from->h;
    int32_t bend = (to->y - row_end) / 2;
    buf_printf(out, "<path class=\"e\" d=\"M%d %dV%dC%d %d %d %d %d %d\"%s/>\n", middle(from), start, row_end,
               middle(from), row_end + bend, middle(to), to->y - bend, middle(to), to->y,
               to->item == LAYOUT_DUMMY ? "" : " marker-end=\"url(#a)\"");
}

static void write_picture(struct buf *out, const struct picture *p, int32_t x, int32_t y);

static void write_item(struct buf *out, const struct picture *p, const struct lay_node *n)
{
    const struct graph_item *item = &p->scene->items[n->item];
    struct buf title = buf_of((size_t)1 << 20);
    graph_title(&title, p->g, item->step);
    buf_printf(out, "<g class=\"n %s%s\" transform=\"translate(%d %d)\"><title>",
               item->marked ? item->mark.word : "plain", item->inner ? " loop" : "", n->x, n->y);
    buf_xml(out, buf_str(&title));
    if (!buf_ok(&title)) out->failed = true;
    buf_release(&title);
    buf_printf(out, "</title><rect width=\"%d\" height=\"%d\" rx=\"6\"/>", n->w, n->h);
    for (uint32_t i = 0; i < item->line_count; i++) {
        bool state = item->marked && i == (item->more ? 2u : 1u);
        buf_printf(out, "<text x=\"%d\" y=\"%d\"%s>", PAD, PAD / 2 + LINE_H * ((int32_t)i + 1) - 5,
                   i == 0  ? " class=\"id\""
                   : state ? " class=\"st\""
                           : "");
        cut_text(out, item->lines[i]);
        buf_text(out, "</text>");
    }
    buf_text(out, "\n");
    if (item->inner) {
        const struct picture *inner = &p->inner[n->item];
        write_picture(out, inner, (n->w - inner->layout.w) / 2, (int32_t)item->line_count * LINE_H + PAD);
    }
    buf_text(out, "</g>\n");
}

static void write_picture(struct buf *out, const struct picture *p, int32_t x, int32_t y)
{
    const struct layout *l = &p->layout;
    buf_printf(out, "<g transform=\"translate(%d %d)\">\n", x, y);
    for (uint32_t i = 0; i < l->node_count; i++)
        for (uint32_t k = 0; k < l->nodes[i].down_count; k++)
            write_edge(out, p, &l->nodes[i], &l->nodes[l->nodes[i].down[k]]);
    for (uint32_t i = 0; i < l->node_count; i++)
        if (l->nodes[i].item != LAYOUT_DUMMY) write_item(out, p, &l->nodes[i]);
    buf_text(out, "</g>\n");
}

// Plain colours, and all of them again for dark pages: viewers that are no browsers know no CSS variables.
#define COLOURS(page, text, dim, line, node, good, bad, warn, live)                                                    \
    ".bg{fill:" page "}.n rect{fill:" node ";stroke:" line "}.loop>rect{fill:none}text{fill:" dim "}.id{fill:" text    \
    "}\n.e{stroke:" line "}.m{fill:" line "}.done>rect{stroke:" good "}.done>.st{fill:" good                           \
    "}.running>rect{stroke:" live "}.running>.st{fill:" live "}\n.failed>rect,.held>rect{stroke:" bad                  \
    "}.failed>.st,.held>.st{fill:" bad "}\n.retrying>rect,.approval>rect,.paused>rect,.cancelled>rect{stroke:" warn    \
    "}\n.retrying>.st,.approval>.st,.paused>.st,.cancelled>.st{fill:" warn "}\n"

// Dashes repeat what the colours say, for those who cannot see them.
static const char style[] =
    ".n rect{stroke-width:1.5}.loop>rect{stroke-width:2}text{font:13px ui-monospace,monospace}.id{font-weight:bold}\n"
    ".e{fill:none;stroke-width:1.3}.running>rect,.failed>rect,.held>rect{stroke-width:3}\n"
    ".retrying>rect,.approval>rect,.paused>rect,.cancelled>rect{stroke-width:2}\n"
    ".skipped>rect{stroke-dasharray:5 4}.waiting>rect,.not.run>rect{stroke-dasharray:1 3}\n" COLOURS(
        "#fff", "#1f2328", "#57606a", "#8c959f", "#f6f8fa", "#1a7f37", "#cf222e", "#9a6700",
        "#0969da") "@media (prefers-color-scheme:dark){\n" COLOURS("#0d1117", "#e6edf3", "#9198a1", "#656c76",
                                                                   "#161b22", "#3fb950", "#f85149", "#d29922",
                                                                   "#58a6ff") "}\n";

enum code graph_svg(struct buf *out, const struct graph *g)
{
    struct scene *scene;
    struct picture picture;
    enum code rc = scene_make(g, PROGRAM_TOP, false, &scene);
    if (!rc) rc = arrange(g, scene, &picture);
    if (rc) return rc;
    int32_t w = picture.layout.w + 2 * GAP, h = picture.h + 2 * GAP;
    buf_printf(out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
               "role=\"img\">\n<title>",
               w, h, w, h);
    buf_xml(out, g->program->plan_id);
    buf_printf(out, "</title>\n<style>%s</style>\n", style);
    buf_text(out,
             "<defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" "
             "orient=\"auto\"><path class=\"m\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n");
    buf_printf(out, "<rect class=\"bg\" width=\"%d\" height=\"%d\"/>\n", w, h);
    write_picture(out, &picture, GAP, GAP);
    buf_text(out, "</svg>\n");
    return OK;
}
