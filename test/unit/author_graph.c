// Pictures: goldens of every format, and a tracer that follows the drawn lines of random graphs and must find their edges.
#include "program_kit.h"

#include "author/author.h"

#include <stdlib.h>

static struct kit kit;

static const char joins[] = "name: joins\n"
                            "nodes:\n"
                            "  - id: seed\n"
                            "    bash: echo\n"
                            "  - id: taken\n"
                            "    bash: echo\n"
                            "    depends_on: [seed]\n"
                            "    when: \"$seed.output.rows > 5\"\n"
                            "    retry: { max_attempts: 2 }\n"
                            "  - id: ask\n"
                            "    name: may we?\n"
                            "    approval: \"<go> & \\\"run\\\"?\"\n"
                            "    depends_on: [seed]\n"
                            "  - id: again\n"
                            "    depends_on: [taken, ask]\n"
                            "    trigger_rule: all_done\n"
                            "    loop_group:\n"
                            "      max_iterations: 3\n"
                            "      until_bash: test -e x\n"
                            "      nodes:\n"
                            "        - { id: tick, noop: true }\n"
                            "  - id: last\n"
                            "    noop: true\n"
                            "    depends_on: [again, seed]\n";

static bool mark_all(void *context, uint32_t step, struct graph_mark *out)
{
    static const struct graph_mark marks[] = {
        {"✓", "done", NULL, {"3ms", 3}}, {"✗", "failed", NULL, {"EXIT", 4}}, {"◌", "waiting", NULL, {"", 0}}};
    (void)context;
    *out = marks[step % 3];
    return true;
}

static struct str draw(struct graph_options options)
{
    struct error err = {0};
    struct buf out;
    buf_init(&out, 1 << 24);
    CHECK_OK(graph_write(&out, kit.program, &options, &kit.arena, &err), &err);
    struct str text = arena_copy(&kit.arena, buf_str(&out));
    CHECK(text.ptr);
    buf_release(&out);
    return text;
}

static void goldens_of_every_format(void)
{
    kit_must_load(&kit, joins);
    test_golden("graph/joins.txt", draw((struct graph_options){.format = GRAPH_TEXT, .columns = 80, .utf8 = true}));
    test_golden("graph/joins.ascii", draw((struct graph_options){.format = GRAPH_TEXT, .columns = 80}));
    test_golden("graph/joins.dot", draw((struct graph_options){.format = GRAPH_DOT}));
    test_golden("graph/joins.mermaid", draw((struct graph_options){.format = GRAPH_MERMAID}));
    test_golden("graph/joins.svg", draw((struct graph_options){.format = GRAPH_SVG}));
    test_golden("graph/joins-run.txt",
                draw((struct graph_options){.format = GRAPH_TEXT, .columns = 80, .utf8 = true, .mark = mark_all}));
    test_golden("graph/joins-run.svg", draw((struct graph_options){.format = GRAPH_SVG, .mark = mark_all}));
    kit_release(&kit);
}

static void playbooks_are_drawn_as_nets_C_48(void)
{
    static const char net[] =
        "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: net}\nworkflow:\n"
        "  - step: start\n    next: {spec: {mode: inclusive}, arcs: [fetch, {step: each, when: '{{ names }}'}]}\n"
        "  - step: fetch\n    desc: page after page\n    tool:\n      - {name: page, kind: http, url: x}\n"
        "      - {name: more, kind: noop, spec: {policy: {rules: [{when: '{{ iter.more }}', then: {do: jump, to: "
        "page}}]}}}\n"
        "    next: {arcs: [{step: start, when: \"{{ output.data.again == '<yes>' }}\"}, {step: join}]}\n"
        "  - step: each\n    loop: {in: '{{ names }}', iterator: name, spec: {mode: parallel, max_in_flight: 4}}\n"
        "    tool: {kind: python, code: x, spec: {policy: {rules: [{when: e, then: {do: retry, attempts: 5}}]}}}\n    "
        "next: join\n"
        "  - step: join\n    spec: {policy: {admit: {rules: [{when: '{{ ok }}', then: {allow: true}}]}}}\n    tool: "
        "{kind: shell, cmds: x}\n";
    kit_must_load(&kit, net);
    test_golden("graph/net.txt", draw((struct graph_options){.format = GRAPH_TEXT, .columns = 100, .utf8 = true}));
    test_golden("graph/net.ascii", draw((struct graph_options){.format = GRAPH_TEXT, .columns = 100}));
    test_golden("graph/net.dot", draw((struct graph_options){.format = GRAPH_DOT}));
    test_golden("graph/net.mermaid", draw((struct graph_options){.format = GRAPH_MERMAID}));
    test_golden("graph/net.svg", draw((struct graph_options){.format = GRAPH_SVG}));
    test_golden("graph/net-run.txt",
                draw((struct graph_options){.format = GRAPH_TEXT, .columns = 100, .utf8 = true, .mark = mark_all}));
    kit_release(&kit);
}

// A thousand like steps are four boxes; each of them alone needs a list.
static void fan_outs_share_a_box(void)
{
    struct buf text;
    buf_init(&text, 1 << 22);
    buf_text(&text, "planId: wide\nplanVersion: 1\nsteps:\n  - { stepId: split, kind: noop, dependsOn: [] }\n");
    for (int i = 0; i < 1000; i++) buf_printf(&text, "  - { stepId: load-%d, kind: noop, dependsOn: [split] }\n", i);
    buf_text(&text, "  - stepId: join\n    kind: merge\n    dependsOn: [");
    for (int i = 0; i < 1000; i++) buf_printf(&text, "%sload-%d", i ? ", " : "", i);
    buf_text(&text, "]\n");
    kit_load(&kit, "wide.yaml", buf_str(&text));
    CHECK_OK(kit.rc, &kit.err);
    struct str drawn = draw((struct graph_options){.format = GRAPH_TEXT, .columns = 80});
    CHECK(strstr(drawn.ptr, "... 997 more") && strstr(drawn.ptr, "like load-2"));
    CHECK(drawn.len < 3000);
    drawn = draw((struct graph_options){.format = GRAPH_TEXT, .columns = 80, .all = true});
    CHECK(strstr(drawn.ptr, "load-999  noop  after split"));
    drawn = draw((struct graph_options){.format = GRAPH_SVG});
    CHECK(strstr(drawn.ptr, "load-999"));
    buf_release(&text);
    kit_release(&kit);
}

// Steps in the middle of long chains look alike from near; folded over layers, they would be their own ancestors.
static void long_chains_are_not_folded(void)
{
    struct buf text;
    buf_init(&text, 1 << 22);
    buf_text(&text, "planId: chains\nplanVersion: 1\nsteps:\n");
    for (int i = 0; i < 500; i++) {
        buf_printf(&text, "  - { stepId: s-%d, kind: %s, dependsOn: [", i, i % 50 ? "noop" : "merge");
        if (i >= 7) buf_printf(&text, "s-%d", i - 7);
        buf_text(&text, "] }\n");
    }
    kit_load(&kit, "chains.yaml", buf_str(&text));
    CHECK_OK(kit.rc, &kit.err);
    struct str drawn = draw((struct graph_options){.format = GRAPH_TEXT, .columns = 80});
    CHECK(strstr(drawn.ptr, "s-499") && !strstr(drawn.ptr, "more"));
    buf_release(&text);
    kit_release(&kit);
}

// ---- the tracer

enum { UP = 1, DOWN = 2, LEFT = 4, RIGHT = 8, SIDE = 400, STEPS_MAX = 14 };

struct page {
    char cells[SIDE][SIDE][5];
    int rows, columns;
};

static void read_page(struct page *page, struct str text)
{
    memset(page, 0, sizeof(*page));
    while (text.len > 0) {
        struct str line = str_cut(text, '\n', &text);
        int column = 0;
        CHECK(page->rows < SIDE);
        for (size_t i = 0; i < line.len; column++) {
            size_t size = str_utf8_size(line, i);
            CHECK(size > 0 && column < 80);
            memcpy(page->cells[page->rows][column], line.ptr + i, size);
            i += size;
        }
        page->rows++;
    }
}

static bool is(const struct page *page, int x, int y, const char *glyph)
{
    return x >= 0 && y >= 0 && x < SIDE && y < SIDE && strcmp(page->cells[y][x], glyph) == 0;
}

static int dirs_of(const char *glyph)
{
    static const struct {
        const char *glyph;
        int dirs;
    } table[] = {{"│", UP | DOWN},
                 {"─", LEFT | RIGHT},
                 {"┘", UP | LEFT},
                 {"┐", DOWN | LEFT},
                 {"└", UP | RIGHT},
                 {"┌", DOWN | RIGHT},
                 {"┤", UP | DOWN | LEFT},
                 {"├", UP | DOWN | RIGHT},
                 {"┴", UP | LEFT | RIGHT},
                 {"┬", DOWN | LEFT | RIGHT},
                 {"┼", UP | DOWN | LEFT | RIGHT}};
    for (size_t i = 0; i < ARRAY_COUNT(table); i++)
        if (strcmp(table[i].glyph, glyph) == 0) return table[i].dirs;
    return 0;
}

// Number of the step whose box has a border at (x, y): its id "sN" stands in the line below the top, left.
static int step_at(const struct page *page, int x, int y, int towards)
{
    while (x > 0 && !is(page, x, y, "┌") && !is(page, x, y, "└")) x--;
    if (towards < 0)
        while (y > 0 && !is(page, x, y, "┌")) y--;
    CHECK(is(page, x + 2, y + 1, "s"));
    int number = 0;
    for (int i = x + 3; page->cells[y + 1][i][0] >= '0' && page->cells[y + 1][i][0] <= '9'; i++)
        number = number * 10 + page->cells[y + 1][i][0] - '0';
    return number;
}

static void follow(const struct page *page, int x, int y, int from, bool seen[SIDE][SIDE][2], int source,
                   bool found[STEPS_MAX][STEPS_MAX])
{
    if (is(page, x, y, "▼")) {
        if (from != UP) test_fail(__FILE__, __LINE__, "a line enters %d,%d from the side", x, y);
        found[source][step_at(page, x, y, 1)] = true;
        return;
    }
    int dirs = dirs_of(page->cells[y][x]);
    bool sideways = from == LEFT || from == RIGHT;
    if (dirs == (UP | DOWN) && sideways) dirs = LEFT | RIGHT; // passes below a line that it does not meet
    if (seen[y][x][sideways && dirs == (LEFT | RIGHT)]) return;
    seen[y][x][sideways && dirs == (LEFT | RIGHT)] = true;
    if (!(dirs & from)) test_fail(__FILE__, __LINE__, "a line ends at %d,%d", x, y);
    if (dirs & DOWN && from != DOWN) follow(page, x, y + 1, UP, seen, source, found);
    if (dirs & LEFT && from != LEFT) follow(page, x - 1, y, RIGHT, seen, source, found);
    if (dirs & RIGHT && from != RIGHT) follow(page, x + 1, y, LEFT, seen, source, found);
}

static void check_trace(struct str text, bool edges[STEPS_MAX][STEPS_MAX])
{
    static struct page page;
    static bool seen[SIDE][SIDE][2];
    bool found[STEPS_MAX][STEPS_MAX] = {{false}};
    read_page(&page, text);
    for (int y = 1; y < page.rows; y++)
        for (int x = 1; x < 80; x++) {
            // The start of a net: a tee in a bottom border, so with text or a side of a box above it.
            if (!is(&page, x, y, "┬") || dirs_of(page.cells[y - 1][x]) & DOWN) continue;
            int left = x;
            while (left > 0 && (is(&page, left, y, "─") || is(&page, left, y, "┬"))) left--;
            int right = x;
            while (is(&page, right, y, "─") || is(&page, right, y, "┬")) right++;
            if (!is(&page, right, y, "┘")) continue;
            if (!is(&page, left, y, "└") || !is(&page, left, y - 1, "│") || page.cells[y - 1][left + 1][0] != ' ')
                continue;
            memset(seen, 0, sizeof(seen));
            follow(&page, x, y + 1, UP, seen, step_at(&page, x, y, -1), found);
        }
    for (int i = 0; i < STEPS_MAX; i++)
        for (int k = 0; k < STEPS_MAX; k++)
            if (edges[i][k] != found[i][k])
                test_fail(__FILE__, __LINE__, "edge s%d -> s%d is %s\n%s", i, k, found[i][k] ? "drawn" : "not drawn",
                          text.ptr);
}

static void lines_lead_where_the_edges_do(void)
{
    unsigned seed = 7;
    int drawn = 0;
    for (int round = 0; round < 400; round++) {
        bool edges[STEPS_MAX][STEPS_MAX] = {{false}};
        struct buf text;
        buf_init(&text, 1 << 16);
        int count = 2 + (int)(rand_r(&seed) % (STEPS_MAX - 1));
        buf_text(&text, "planId: p\nplanVersion: 1\nsteps:\n");
        for (int i = 0; i < count; i++) {
            buf_printf(&text, "  - { stepId: s%d, kind: noop, dependsOn: [", i);
            for (int k = 0, n = 0; k < i; k++) {
                edges[k][i] = rand_r(&seed) % 4 == 0;
                if (edges[k][i]) buf_printf(&text, "%ss%d", n++ ? ", " : "", k);
            }
            buf_text(&text, "] }\n");
        }
        kit_load(&kit, "p.yaml", buf_str(&text));
        CHECK_OK(kit.rc, &kit.err);
        struct str picture =
            draw((struct graph_options){.format = GRAPH_TEXT, .columns = 80, .utf8 = true, .all = true});
        if (strstr(picture.ptr, "┌")) {
            check_trace(picture, edges);
            drawn++;
        }
        buf_release(&text);
    }
    CHECK(drawn > 350);
    kit_release(&kit);
}

int main(int argc, char **argv)
{
    static const struct test tests[] = {
        TEST(goldens_of_every_format),    TEST(playbooks_are_drawn_as_nets_C_48), TEST(fan_outs_share_a_box),
        TEST(long_chains_are_not_folded), TEST(lines_lead_where_the_edges_do),
    };
    return test_main("author_graph", tests, ARRAY_COUNT(tests), argc, argv);
}
