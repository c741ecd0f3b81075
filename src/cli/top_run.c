#include "term/text.h"
#include "cli/top.h"
#include "term/tree.h"

#include "base/civil.h"

#include <stdio.h>

enum { PANE_MS = 1000 };

static const struct {
    const char *command, *title;
    char key;
    bool of_step; // it can be asked about one step
} panes[PANE_COUNT] = {
    [PANE_WHY] = {"why", "why", 'w', true},
    [PANE_LOGS] = {"logs", "logs", 'l', true},
    [PANE_EVENTS] = {"events", "events", 'e', false},
    [PANE_GRAPH] = {"graph", "graph", 'g', false},
};

static void on_event(void *context, const struct engine_event *event)
{
    struct top *top = context;
    tree_event(top->run.tree, event);
}

static void on_line(void *context, struct str run, struct str step, bool is_stderr, struct str line)
{
    struct top *top = context;
    (void)is_stderr;
    tree_output(top->run.tree, run, step, line);
}

bool top_run_open(struct top *top, struct str run)
{
    struct top_run *view = &top->run;
    struct error err = {0};
    struct run_head head;
    snprintf(view->id, sizeof(view->id), "%.*s", STR_ARG(run));
    if (store_head(top->session->store, top->session->tenant, str_from(view->id), &top->cli->io.arena, &head, &err)) {
        top_say(top, "%s", err.message);
        return false;
    }
    view->tree = tree_open(&top->cli->io);
    if (!view->tree) return false;
    view->tree->term = &top->cli->io.out;
    mirror_open(&view->mirror, top->session);
    view->mirror.context = top;
    view->mirror.event = on_event;
    if (mirror_add(&view->mirror, &head)) {
        tree_discard(view->tree);
        return false;
    }
    buf_init(&view->text, (size_t)2 << 20);
    view->open = true;
    view->selected = view->first = 0;
    view->pane_first = 0;
    view->pane_ms = 0;
    view->pane = PANE_WHY;
    top->message[0] = '\0';
    return true;
}

void top_run_close(struct top *top)
{
    struct top_run *view = &top->run;
    if (!view->open) return;
    mirror_close(&view->mirror);
    tree_discard(view->tree);
    buf_release(&view->text);
    view->open = false;
    top->runs.looked_ms = 0;
}

static const struct flow *flow_of(const struct top *top)
{
    return tree_flow(top->run.tree, str_from(top->run.id));
}

static struct str selected_step(const struct top *top)
{
    const struct flow *flow = flow_of(top);
    return flow && top->run.selected < flow->row_count ? flow->rows[top->run.selected].id : STR("");
}

static void fill_pane(struct top *top)
{
    struct top_run *view = &top->run;
    struct str step = selected_step(top);
    char target[300];
    buf_clear(&view->text);
    bool of_step = panes[view->pane].of_step && step.len > 0;
    snprintf(target, sizeof(target), "%s%s%.*s", view->id, of_step ? "/" : "", of_step ? (int)step.len : 0, step.ptr);
    const char *words[] = {panes[view->pane].command, target, NULL, NULL};
    if (view->pane == PANE_EVENTS) words[2] = "--output=table";
    top_capture(top, words, &view->text);
}

void top_run_look(struct top *top, int64_t now_ms)
{
    struct top_run *view = &top->run;
    bool changed = false;
    if (mirror_poll(&view->mirror, &changed)) {
        top_run_close(top);
        return;
    }
    mirror_lines(&view->mirror, on_line, top);
    const struct mirrored *root = mirror_find(&view->mirror, str_from(view->id));
    bool stale = now_ms - view->pane_ms >= PANE_MS && !root->head.terminal;
    if (view->pane_ms != 0 && !stale && !changed) return;
    view->pane_ms = now_ms;
    fill_pane(top);
}

static void write_title(const struct top *top, struct buf *line, const struct flow *flow, int64_t now_ms)
{
    uint32_t done = 0;
    char took[24] = "";
    for (uint32_t i = 0; i < flow->row_count; i++) done += flow->rows[i].look == LOOK_DONE;
    int64_t until = flow->ended_ms ? flow->ended_ms : now_ms;
    if (flow->started_ms && until >= flow->started_ms) duration_format(until - flow->started_ms, took);
    buf_text(line, " ");
    text_safe(line, uuid_valid(flow->run) && top->cli->io.out.columns < 100 ? str_slice(flow->run, 0, 8) : flow->run);
    buf_text(line, "  ");
    text_safe(line, flow->name);
    buf_printf(line, "  %s%s%s  %u/%u done  %s", run_status_name(flow->status), flow->substatus[0] ? " " : "",
               flow->substatus, done, flow->row_count, took);
}

static void draw_steps(struct top *top, struct buf *line, const struct flow *flow, int64_t now_ms)
{
    struct top_run *view = &top->run;
    size_t rows = screen_rows(&top->screen), room = rows > 8 ? rows / 2 : rows > 2 ? rows - 2 : 1;
    if (flow->row_count < room) room = flow->row_count;
    if (view->selected < view->first) view->first = view->selected;
    if (view->selected >= view->first + room) view->first = view->selected - (uint32_t)room + 1;
    for (uint32_t i = view->first; i < flow->row_count && room > 0; i++, room--) {
        buf_clear(line);
        buf_clear(&view->tree->work);
        tree_write_row(view->tree, flow, i, 0, now_ms);
        buf_text(line, i == view->selected ? ">" : " ");
        buf_add(line, buf_str(&view->tree->work));
        screen_line(&top->screen, buf_str(line));
    }
    buf_clear(&view->tree->work);
}

static void write_tabs(const struct top *top, struct buf *line)
{
    const struct top_run *view = &top->run;
    for (int i = 0; i < PANE_COUNT; i++) buf_printf(line, i == (int)view->pane ? " [%s]" : "  %s ", panes[i].title);
    struct str step = selected_step(top);
    if (panes[view->pane].of_step && step.len > 0) {
        buf_text(line, "  of ");
        text_safe(line, step);
    }
}

static size_t count_lines(struct str text)
{
    size_t count = 0;
    while (text.len > 0) {
        str_cut(text, '\n', &text);
        count++;
    }
    return count;
}

static void draw_pane(struct top *top)
{
    struct top_run *view = &top->run;
    struct str rest = buf_str(&view->text);
    size_t lines = count_lines(rest), room = screen_rows(&top->screen);
    room = room > 1 ? room - 1 : 0;
    size_t most = lines > room ? lines - room : 0;
    // Logs are read at their end, everything else at its beginning.
    size_t first = view->pane == PANE_LOGS ? (view->pane_first < most ? most - view->pane_first : 0)
                                           : (view->pane_first < most ? view->pane_first : most);
    for (size_t i = 0; rest.len > 0 && room > 0; i++) {
        struct str text = str_cut(rest, '\n', &rest);
        if (i < first) continue;
        screen_line(&top->screen, text);
        room--;
    }
    if (view->pane_first > most) view->pane_first = most;
}

void top_run_draw(struct top *top, struct buf *line, int64_t now_ms)
{
    const struct flow *flow = flow_of(top);
    if (!flow) {
        screen_line(&top->screen, STR(" reading the log"));
        return;
    }
    write_title(top, line, flow, now_ms);
    screen_bar(&top->screen, buf_str(line), look_tone(look_of_run(flow->status)));
    draw_steps(top, line, flow, now_ms);
    buf_clear(line);
    write_tabs(top, line);
    screen_bar(&top->screen, buf_str(line), TONE_DIM);
    draw_pane(top);
}

static void move(struct top_run *view, const struct flow *flow, int key)
{
    uint32_t last = flow->row_count ? flow->row_count - 1 : 0, before = view->selected;
    if (key == KEY_UP && view->selected > 0) view->selected--;
    if (key == KEY_DOWN && view->selected < last) view->selected++;
    if (key == KEY_HOME) view->selected = 0;
    if (key == KEY_END) view->selected = last;
    if (view->selected != before) view->pane_ms = 0;
    if (view->selected != before && panes[view->pane].of_step) view->pane_first = 0;
}

static void scroll_pane(struct top_run *view, int key, size_t page)
{
    bool back = (key == KEY_PAGE_UP) != (view->pane == PANE_LOGS);
    if (back)
        view->pane_first = view->pane_first > page ? view->pane_first - page : 0;
    else
        view->pane_first += page;
}

static bool choose_pane(struct top_run *view, int key)
{
    enum top_pane before = view->pane;
    if (key == '\t') view->pane = (enum top_pane)((view->pane + 1) % PANE_COUNT);
    for (int i = 0; i < PANE_COUNT; i++)
        if (key == panes[i].key || key == '1' + i) view->pane = (enum top_pane)i;
    if (view->pane == before) return false;
    view->pane_ms = 0;
    view->pane_first = 0;
    return true;
}

void top_run_key(struct top *top, int key)
{
    struct top_run *view = &top->run;
    const struct flow *flow = flow_of(top);
    if (key == KEY_ESCAPE || key == KEY_LEFT || key == KEY_BACKSPACE || !flow) {
        top_run_close(top);
        return;
    }
    if (key == 'k') key = KEY_UP;
    if (key == 'j') key = KEY_DOWN;
    if (key == KEY_UP || key == KEY_DOWN || key == KEY_HOME || key == KEY_END) {
        move(view, flow, key);
    } else if (key == KEY_PAGE_UP || key == KEY_PAGE_DOWN) {
        scroll_pane(view, key, top->cli->io.out.rows / 2);
    } else if (!choose_pane(view, key)) {
        const struct mirrored *root = mirror_find(&view->mirror, str_from(view->id));
        enum look look = view->selected < flow->row_count ? flow->rows[view->selected].look : LOOK_DONE;
        top_act(top, key, &root->head, selected_step(top), look);
    }
}
