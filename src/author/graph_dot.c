// The graph for other programs: Graphviz and Mermaid. They lay it out themselves, so every step is there.
#include "author/graph.h"

#include "program/net.h"

#include <string.h>

static void indent(struct buf *out, uint32_t depth)
{
    for (uint32_t i = 0; i <= depth; i++) buf_text(out, "  ");
}

// Inside double quotes, in DOT (newlines as \n) or in Mermaid (as <br/>, with entities).
static void quoted(struct buf *out, struct str text, bool mermaid)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c == '\n')
            buf_text(out, mermaid ? "<br/>" : "\\n");
        else if (c < 0x20 || c == 0x7F)
            buf_byte(out, ' ');
        else if (mermaid && strchr("\"<>&#`", c))
            buf_printf(out, "#%u;", c);
        else if (!mermaid && (c == '"' || c == '\\'))
            buf_printf(out, "\\%c", c);
        else
            buf_byte(out, (char)c);
    }
}

static void label(struct buf *out, const struct graph *g, uint32_t step, bool mermaid)
{
    struct buf text SCOPED(buf_release) = buf_of((size_t)1 << 20);
    graph_title(&text, g, step);
    quoted(out, buf_str(&text), mermaid);
    if (!buf_ok(&text)) out->failed = true;
}

static const char *state_of(const struct graph *g, uint32_t step)
{
    struct graph_mark mark;
    return g->options->mark && g->options->mark(g->options->context, step, &mark) ? mark.word : "";
}

static const struct {
    const char *word, *fill, *line;
} colors[] = {
    {"done", "#d5f0dc", "#1a7f37"},      {"running", "#d6ebfa", "#0969da"},  {"waiting", "#f0f0f0", "#6e7781"},
    {"retrying", "#fff3c4", "#9a6700"},  {"skipped", "#eeeeee", "#8c959f"},  {"failed", "#ffdcd7", "#cf222e"},
    {"held", "#ffdcd7", "#cf222e"},      {"approval", "#fff3c4", "#9a6700"}, {"paused", "#fff3c4", "#9a6700"},
    {"cancelled", "#ffe9d0", "#bc4c00"}, {"not run", "#f0f0f0", "#6e7781"},
};

static void dot_node(struct buf *out, const struct graph *g, uint32_t i, const char *state)
{
    enum step_kind kind = g->program->steps[i].kind;
    buf_printf(out, "n%u [label=\"", i);
    label(out, g, i, false);
    buf_byte(out, '"');
    if (kind == STEP_APPROVAL) buf_text(out, ", shape=octagon");
    if (kind == STEP_SUBRUN) buf_text(out, ", peripheries=2");
    for (size_t k = 0; k < ARRAY_COUNT(colors); k++)
        if (strcmp(colors[k].word, state) == 0)
            buf_printf(out, ", style=\"rounded,filled\", fillcolor=\"%s\", color=\"%s\"", colors[k].fill,
                       colors[k].line);
    buf_text(out, "];\n");
}

// Names of classes have no blanks: "not_run".
static void class_name(struct buf *out, const char *word)
{
    for (; *word; word++) buf_byte(out, *word == ' ' ? '_' : *word);
}

static void mermaid_node(struct buf *out, const struct graph *g, uint32_t i, const char *state)
{
    enum step_kind kind = g->program->steps[i].kind;
    buf_printf(out, "n%u%s", i, kind == STEP_APPROVAL ? "{{\"" : kind == STEP_SUBRUN ? "[[\"" : "[\"");
    label(out, g, i, true);
    buf_text(out, kind == STEP_APPROVAL ? "\"}}" : kind == STEP_SUBRUN ? "\"]]" : "\"]");
    if (state[0]) {
        buf_text(out, ":::");
        class_name(out, state);
    }
    buf_byte(out, '\n');
}

// An edge to or from a loop ends at the border of its cluster, and needs a node inside to aim at.
static uint32_t inside(const struct program *p, uint32_t step)
{
    while (p->steps[step].kind == STEP_LOOP && p->steps[step].child_count > 0) step = p->steps[step].first_child;
    return step;
}

// Arcs of playbooks, each with its condition; numbered where only the first that holds is taken.
static void write_arcs(struct buf *out, const struct graph *g, bool mermaid)
{
    const struct program *p = g->program;
    for (uint32_t i = 0; i < p->step_count; i++) {
        const struct net_step *step = &p->net->steps[i];
        for (uint32_t k = 0; k < step->arc_count; k++) {
            struct buf text SCOPED(buf_release) = buf_of((size_t)1 << 20);
            if (!step->inclusive && step->arc_count > 1) buf_printf(&text, "%u. ", k + 1);
            net_condition(&text, step->arcs[k].when.text);
            struct str said = str_trim(buf_str(&text));
            buf_printf(out, mermaid ? "  n%u -->" : "  n%u -> ", i);
            if (mermaid && said.len) {
                buf_text(out, "|\"");
                quoted(out, said, true);
                buf_text(out, "\"|");
            }
            buf_printf(out, mermaid ? " n%u\n" : "n%u", step->arcs[k].step);
            if (!mermaid) {
                buf_text(out, " [label=\"");
                quoted(out, said, false);
                buf_printf(out, "\"%s];\n", step->inclusive ? ", penwidth=2" : "");
            }
            if (!buf_ok(&text)) out->failed = true;
        }
    }
}

static void write_scope(struct buf *out, const struct graph *g, uint32_t scope, uint32_t depth, bool mermaid);

static void write_loop(struct buf *out, const struct graph *g, uint32_t i, uint32_t depth, bool mermaid)
{
    buf_printf(out, mermaid ? "subgraph n%u [\"" : "subgraph cluster_%u {\n", i);
    if (!mermaid) {
        indent(out, depth + 1);
        buf_text(out, "label=\"");
    }
    label(out, g, i, mermaid);
    buf_text(out, mermaid ? "\"]\n" : "\"; style=rounded;\n");
    write_scope(out, g, i, depth + 1, mermaid);
    indent(out, depth);
    buf_text(out, mermaid ? "end\n" : "}\n");
}

// Mermaid wants the edges of a loop inside it.
static void write_scope(struct buf *out, const struct graph *g, uint32_t scope, uint32_t depth, bool mermaid)
{
    const struct program *p = g->program;
    uint32_t first;
    uint32_t count = program_scope(p, scope, &first);
    for (uint32_t i = first; i < first + count; i++) {
        indent(out, depth);
        if (p->steps[i].kind == STEP_LOOP)
            write_loop(out, g, i, depth, mermaid);
        else
            (mermaid ? mermaid_node : dot_node)(out, g, i, state_of(g, i));
    }
    if (mermaid && p->net) write_arcs(out, g, true);
    for (uint32_t i = first; mermaid && !p->net && i < first + count; i++)
        for (uint32_t k = 0; k < p->steps[i].dep_count; k++) {
            indent(out, depth);
            buf_printf(out, "n%u --> n%u\n", p->steps[i].deps[k], i);
        }
}

void graph_dot(struct buf *out, const struct graph *g)
{
    const struct program *p = g->program;
    buf_text(out, "digraph \"");
    quoted(out, p->plan_id, false);
    buf_text(out, "\" {\n  rankdir=TB; compound=true;\n  node [shape=box, style=rounded, fontname=\"sans-serif\", "
                  "fontsize=11];\n  edge [color=\"#57606a\"];\n");
    write_scope(out, g, PROGRAM_TOP, 0, false);
    if (p->net) write_arcs(out, g, false);
    for (uint32_t i = 0; !p->net && i < p->step_count; i++)
        for (uint32_t k = 0; k < p->steps[i].dep_count; k++) {
            uint32_t from = p->steps[i].deps[k];
            buf_printf(out, "  n%u -> n%u", inside(p, from), inside(p, i));
            if (p->steps[from].kind == STEP_LOOP) buf_printf(out, " [ltail=cluster_%u]", from);
            if (p->steps[i].kind == STEP_LOOP) buf_printf(out, " [lhead=cluster_%u]", i);
            buf_text(out, ";\n");
        }
    buf_text(out, "}\n");
}

void graph_mermaid(struct buf *out, const struct graph *g)
{
    buf_text(out, "flowchart TD\n");
    write_scope(out, g, PROGRAM_TOP, 0, true);
    for (size_t k = 0; g->options->mark && k < ARRAY_COUNT(colors); k++) {
        buf_text(out, "  classDef ");
        class_name(out, colors[k].word);
        buf_printf(out, " fill:%s,stroke:%s,color:#1f2328\n", colors[k].fill, colors[k].line);
    }
}
