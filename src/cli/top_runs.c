#include "term/text.h"
#include "cli/top.h"

#include "base/civil.h"

#include <stdio.h>
#include <string.h>

enum {
    LOOK_MS = 500,
    LIST_MAX = 500,
    ACTIVE_MASK = 1 << RUN_STATUS_PENDING | 1 << RUN_STATUS_APPROVED | 1 << RUN_STATUS_RUNNING | 1 << RUN_STATUS_PAUSED
};

static bool matches(const struct top_runs *runs, const struct run_head *head)
{
    if (!runs->filter[0]) return true;
    char text[600];
    snprintf(text, sizeof(text), "%.*s %.*s %.*s %s", STR_ARG(head->ids.run), STR_ARG(head->ids.plan_id),
             STR_ARG(head->name), run_status_name(head->summary.status));
    return strcasestr(text, runs->filter) != NULL;
}

// Keeps the cursor on the run it was on, wherever new runs have pushed it.
static void find_selected(struct top_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++)
        if (str_is(runs->heads[i].ids.run, runs->selected_run)) {
            runs->selected = i;
            return;
        }
    if (runs->selected >= runs->count) runs->selected = runs->count ? runs->count - 1 : 0;
}

static void keep_selected(struct top_runs *runs)
{
    runs->selected_run[0] = '\0';
    if (runs->count > 0)
        snprintf(runs->selected_run, sizeof(runs->selected_run), "%.*s", STR_ARG(runs->heads[runs->selected].ids.run));
}

void top_runs_look(struct top *top, int64_t now_ms)
{
    struct top_runs *runs = &top->runs;
    struct error err = {0};
    struct run_heads heads;
    if (!top->session->store || (runs->looked_ms != 0 && now_ms - runs->looked_ms < LOOK_MS)) return;
    runs->looked_ms = now_ms;
    runs->count = 0;
    arena_reset(&runs->arena);
    struct run_filter filter = {
        .tenant = top->session->tenant, .status_mask = runs->status_mask, .roots = true, .limit = LIST_MAX};
    if (store_list(top->session->store, &filter, &runs->arena, &heads, &err)) {
        top_say(top, "%s", err.message);
        return;
    }
    runs->heads = heads.items;
    for (size_t i = 0; i < heads.count; i++)
        if (matches(runs, &heads.items[i])) runs->heads[runs->count++] = heads.items[i];
    find_selected(runs);
}

static void write_took(struct buf *line, const struct run_head *head, int64_t now_ms)
{
    char text[24] = "";
    int64_t from = head->summary.started_ms ? head->summary.started_ms : head->summary.created_ms;
    int64_t until = head->terminal ? head->summary.ended_ms : now_ms;
    if (from > 0 && until >= from) duration_format(until - from, text);
    text_pad(line, strlen(text), 8);
    buf_text(line, text);
}

// What a reader would ask next: why it failed, what it waits for, who drives it.
static void write_what(struct buf *line, const struct run_head *head)
{
    const struct run_summary *summary = &head->summary;
    buf_text(line, "  ");
    if (head_standing(head).need == NEED_OWNER)
        buf_text(line, "nobody drives it: r goes on with it");
    else if (summary->substatus[0])
        buf_text(line, summary->substatus);
    if (summary->cause[0]) {
        buf_text(line, summary->substatus[0] ? "  " : "");
        text_safe(line, str_from(summary->cause));
    }
}

static void add_cell(struct buf *line, const struct term *term, struct str text, size_t width)
{
    size_t from = line->len;
    struct buf safe SCOPED(buf_release) = buf_of(4096);
    text_safe(&safe, text);
    text_cut(line, buf_str(&safe), width, term->utf8);
    text_pad(line, text_width(str_slice(buf_str(line), from, line->len)), width);
}

static size_t id_width(const struct top_runs *runs, size_t columns)
{
    size_t width = 8, most = columns >= 120 ? 36 : columns >= 80 ? 20 : 12;
    for (size_t i = 0; i < runs->count; i++) {
        size_t own = text_width(short_id(runs->heads[i].ids.run));
        if (own > width) width = own;
    }
    return width < most ? width : most;
}

static void write_run(const struct top *top, struct buf *line, const struct run_head *head, size_t width,
                      int64_t now_ms)
{
    const struct term *term = &top->cli->io.out;
    const struct run_counts *counts = &head->summary.counts;
    enum look look = look_of_run(head->summary.status);
    char steps[32];
    tone_begin(line, term, look_tone(look));
    buf_printf(line, "%s ", look_glyph(look, term->utf8));
    tone_end(line, term, look_tone(look));
    add_cell(line, term, short_id(head->ids.run), width);
    buf_text(line, "  ");
    tone_begin(line, term, look_tone(look));
    buf_printf(line, "%-9s", run_status_name(head->summary.status));
    tone_end(line, term, look_tone(look));
    snprintf(steps, sizeof(steps), "%u/%u", counts->completed + counts->failed + counts->skipped, counts->total);
    text_pad(line, strlen(steps), 10);
    buf_text(line, steps);
    write_took(line, head, now_ms);
    buf_text(line, "  ");
    add_cell(line, term, head->name.len ? head->name : head->ids.plan_id, term->columns >= 100 ? 24 : 12);
    write_what(line, head);
}

static void scroll(struct top_runs *runs, size_t room)
{
    if (runs->selected < runs->first) runs->first = runs->selected;
    if (room > 0 && runs->selected >= runs->first + room) runs->first = runs->selected - room + 1;
    if (runs->first > runs->count) runs->first = 0;
}

static void write_title(const struct top *top, struct buf *line)
{
    const struct top_runs *runs = &top->runs;
    size_t active = 0, failed = 0;
    for (size_t i = 0; i < runs->count; i++) {
        active += !runs->heads[i].terminal;
        failed += runs->heads[i].summary.status == RUN_STATUS_FAILED;
    }
    buf_printf(line, " cairn top  %zu run%s, %zu active, %zu failed", runs->count, runs->count == 1 ? "" : "s", active,
               failed);
    if (runs->status_mask) buf_text(line, runs->status_mask == ACTIVE_MASK ? "  [active only]" : "  [failed only]");
    if (runs->filter[0]) {
        buf_text(line, "  /");
        text_safe(line, str_from(runs->filter));
    }
    buf_printf(line, "  %s", top->session->url);
}

void top_runs_draw(struct top *top, struct buf *line, int64_t now_ms)
{
    struct top_runs *runs = &top->runs;
    struct screen *screen = &top->screen;
    size_t width = id_width(runs, top->cli->io.out.columns);
    write_title(top, line);
    screen_bar(screen, buf_str(line), TONE_BOLD);
    buf_clear(line);
    buf_text(line, "    RUN");
    text_pad(line, 7, 4 + width + 2);
    buf_text(line, "STATUS        STEPS    TOOK  PLAN");
    screen_line(screen, buf_str(line));
    size_t room = screen_rows(screen) > 1 ? screen_rows(screen) - 1 : 0;
    scroll(runs, room);
    if (runs->count == 0)
        screen_line(screen, runs->filter[0] || runs->status_mask ? STR("  no run matches")
                                                                 : STR("  no runs yet: cairn run FILE starts one"));
    for (size_t i = runs->first; i < runs->count && room > 0; i++, room--) {
        buf_clear(line);
        buf_text(line, i == runs->selected ? "> " : "  ");
        write_run(top, line, &runs->heads[i], width, now_ms);
        screen_line(screen, buf_str(line));
    }
}

static void set_filter(struct top *top, const char *text)
{
    snprintf(top->runs.filter, sizeof(top->runs.filter), "%s", text);
    top->runs.looked_ms = 0;
}

static void move(struct top_runs *runs, int key, size_t page)
{
    size_t last = runs->count ? runs->count - 1 : 0;
    if (key == KEY_UP && runs->selected > 0) runs->selected--;
    if (key == KEY_DOWN && runs->selected < last) runs->selected++;
    if (key == KEY_PAGE_UP) runs->selected = runs->selected > page ? runs->selected - page : 0;
    if (key == KEY_PAGE_DOWN) runs->selected = runs->selected + page < last ? runs->selected + page : last;
    if (key == KEY_HOME) runs->selected = 0;
    if (key == KEY_END) runs->selected = last;
    keep_selected(runs);
}

void top_runs_key(struct top *top, int key)
{
    struct top_runs *runs = &top->runs;
    const struct run_head *head = runs->count ? &runs->heads[runs->selected] : NULL;
    if (key == 'k') key = KEY_UP;
    if (key == 'j') key = KEY_DOWN;
    if (key >= KEY_UP && key <= KEY_END && key != KEY_LEFT && key != KEY_RIGHT) {
        move(runs, key, top->cli->io.out.rows > 4 ? top->cli->io.out.rows - 4 : 1);
    } else if (key == '/') {
        top_ask(top, set_filter, "show runs with");
    } else if (key == 'f') {
        runs->status_mask = runs->status_mask == 0             ? ACTIVE_MASK
                            : runs->status_mask == ACTIVE_MASK ? 1u << RUN_STATUS_FAILED
                                                               : 0;
        runs->looked_ms = 0;
    } else if (key == KEY_ESCAPE) {
        set_filter(top, "");
    } else if (head && (key == KEY_ENTER || key == KEY_RIGHT)) {
        keep_selected(runs);
        top_run_open(top, head->ids.run);
    } else if (head) {
        keep_selected(runs);
        top_act(top, key, head, STR(""), LOOK_DONE);
    }
}
