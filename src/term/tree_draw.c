// A picture of the live tree, drawn over the previous one. A picture is one write(2), so a terminal never shows half of it.
#include "term/text.h"
#include "term/tree.h"

#include "base/civil.h"

#include <string.h>

enum { BAR_SIZE = 10, REDRAW_MS = 100, STATE_WIDTH = 11, TIME_WIDTH = 8, ID_WIDTH_MIN = 8, ID_WIDTH_FAIR = 16 };

// ---- which lines
#define PRIORITY_DONE 4

static uint8_t priority_of(enum look look)
{
    switch (look) {
    case LOOK_FAILED:
    case LOOK_HELD:
    case LOOK_APPROVAL:
        return 1;
    case LOOK_RUNNING:
    case LOOK_QUEUED:
    case LOOK_DELAYED:
        return 2;
    case LOOK_DONE:
        return PRIORITY_DONE;
    case LOOK_WAITING:
        return 5;
    case LOOK_SKIPPED:
    case LOOK_PAUSED:
    case LOOK_CANCELLED:
    case LOOK_NOT_RUN:
        return 6;
    }
    return 6;
}

static void add_line(struct tree *tree, struct flow *flow, uint32_t row, uint32_t depth, uint8_t priority)
{
    if (!ARENA_ROOM(&tree->arena, tree->lines, tree->line_count, &tree->line_capacity)) return;
    tree->lines[tree->line_count++] = (struct tree_line){flow, row, depth, priority, false};
}

static void add_flow_lines(struct tree *tree, struct flow *flow, uint32_t depth)
{
    for (uint32_t i = 0; i < flow->row_count; i++) {
        add_line(tree, flow, i, depth, priority_of(flow->rows[i].look));
        if (flow->rows[i].kind != STEP_SUBRUN || depth > 8) continue;
        for (struct flow *child = flow->next; child; child = child->next)
            if (child->parent == flow && child->parent_row == i && !run_status_terminal(child->status))
                add_flow_lines(tree, child, depth + 1);
    }
}

// Marks at most `room` lines as shown: by priority, of those that are done the latest.
static void choose_lines(struct tree *tree, size_t room)
{
    for (uint8_t priority = 0; priority <= 7; priority++)
        for (size_t i = 0; i < tree->line_count && room > 0; i++) {
            bool backward = priority == PRIORITY_DONE;
            struct tree_line *line = &tree->lines[backward ? tree->line_count - 1 - i : i];
            if (line->priority != priority) continue;
            line->shown = true;
            room--;
        }
}

// ---- how they look
static void add_duration(struct buf *out, int64_t from_ms, int64_t to_ms)
{
    char text[24] = "";
    if (from_ms > 0 && to_ms >= from_ms) duration_format(to_ms - from_ms, text);
    text_pad(out, strlen(text), TIME_WIDTH);
    buf_text(out, text);
}

static void write_needs(struct buf *out, const struct flow *flow, const struct row *row)
{
    size_t count = 0;
    for (uint32_t i = 0; i < row->dep_count; i++) {
        const struct row *dep = &flow->rows[row->deps[i]];
        if (dep->look == LOOK_DONE || dep->look == LOOK_FAILED || dep->look == LOOK_SKIPPED) continue;
        if (count++ >= 4) {
            buf_text(out, ", ...");
            return;
        }
        buf_text(out, count == 1 ? "needs " : ", ");
        text_safe(out, dep->id);
    }
}

static void write_until(struct buf *out, const char *before, int64_t due_ms, int64_t now_ms)
{
    char text[24];
    if (due_ms == 0 || now_ms == INT64_MAX) return;
    duration_format(due_ms > now_ms ? due_ms - now_ms : 0, text);
    buf_printf(out, "%s%s", before, text);
}

static void write_rounds(struct buf *out, const struct row *row)
{
    if (row->iteration_max > 0 && row->iteration > 0)
        buf_printf(out, "  round %u/%u", row->iteration, row->iteration_max);
    if (row->iteration_max == 0 && row->iteration > 1) buf_printf(out, "  visit %u", row->iteration);
    if (row->loop.total == 0) return;
    buf_printf(out, "  %u of %u items", row->loop.done, row->loop.total);
    if (row->loop.failed > 0) buf_printf(out, ", %u failed", row->loop.failed);
}

static void write_note(struct tree *tree, const struct flow *flow, const struct row *row, int64_t now_ms)
{
    struct buf *out = &tree->work;
    const struct term *term = tree->term;
    const struct row_text *text = row->text;
    if (row->attempt > 1 && row->look != LOOK_SKIPPED)
        buf_printf(out, "  attempt %u/%u", row->attempt, row->attempt_max);
    write_rounds(out, row);
    switch (row->look) {
    case LOOK_WAITING:
        buf_text(out, "  ");
        write_needs(out, flow, row);
        break;
    case LOOK_APPROVAL:
        write_until(out, "  answers itself in ", row->due_ms, now_ms);
        buf_printf(out, "  %s approve %.*s/%.*s%s", tree->console->self, STR_ARG(short_id(flow->run)), STR_ARG(row->id),
                   tree->console->tail);
        break;
    case LOOK_HELD:
        buf_printf(out, "  %s  %s retry %.*s/%.*s%s", text ? text->note : "", tree->console->self,
                   STR_ARG(short_id(flow->run)), STR_ARG(row->id), tree->console->tail);
        break;
    case LOOK_DELAYED:
        write_until(out, "  again in ", row->due_ms, now_ms);
        buf_printf(out, "  (%s)", text ? text->note : "");
        break;
    case LOOK_QUEUED:
        buf_printf(out, "  for %s%s", row->limited ? "limit " : "a slot", row->limited ? text->note : "");
        break;
    case LOOK_RUNNING:
        if (row->kind == STEP_WAIT)
            write_until(out, "  wakes in ", row->due_ms, now_ms);
        else if (row->rests_ms > 0)
            write_until(out, "  rests after losses, again in ", row->rests_ms, now_ms);
        else if (text && text->output[0])
            buf_printf(out, "  %s %s", term->utf8 ? "│" : "|", text->output);
        break;
    case LOOK_DONE:
        if (text && text->note[0]) buf_printf(out, "  %s", text->note);
        if (row->attempt > 1 && text && text->first_fault[0]) buf_printf(out, "  (first: %s)", text->first_fault);
        break;
    case LOOK_SKIPPED:
    case LOOK_FAILED:
    case LOOK_PAUSED:
    case LOOK_CANCELLED:
    case LOOK_NOT_RUN:
        if (!row->stopped || row->look != LOOK_CANCELLED) buf_printf(out, "  %s", text ? text->note : "");
        break;
    }
}

// Narrow terminals get short names, so that the time and the reason still fit: half of what is left is for the reason.
static size_t id_width(const struct tree *tree, const struct flow *flow, uint32_t depth)
{
    size_t around = 2 + 2 * (size_t)depth + STATE_WIDTH + TIME_WIDTH + 1, columns = tree->term->columns;
    size_t room = columns > around + ID_WIDTH_MIN ? columns - around : ID_WIDTH_MIN;
    size_t half = room / 2 < ID_WIDTH_FAIR ? ID_WIDTH_FAIR : room / 2;
    if (room > half) room = half;
    return flow->id_width < room ? flow->id_width : room;
}

static void write_id(struct tree *tree, struct str id, size_t width)
{
    size_t start = tree->work.len;
    struct buf safe SCOPED(buf_release) = buf_of(4096);
    text_safe(&safe, id);
    text_cut(&tree->work, buf_str(&safe), width, tree->term->utf8);
    text_pad(&tree->work, text_width(str_slice(buf_str(&tree->work), start, tree->work.len)), width);
}

void tree_write_row(struct tree *tree, const struct flow *flow, uint32_t index, uint32_t depth, int64_t now_ms)
{
    const struct row *row = &flow->rows[index];
    const struct term *term = tree->term;
    struct buf *out = &tree->work;
    bool live = row->look == LOOK_RUNNING || row->look == LOOK_APPROVAL;
    enum tone tone = look_tone(row->look);
    text_pad(out, 0, 2 + 2 * (size_t)depth);
    tone_begin(out, term, tone);
    buf_printf(out, "%s %-*s", look_glyph(row->look, term->utf8), look_width(flow->status), look_word(row->look));
    tone_end(out, term, tone);
    write_id(tree, row->id, id_width(tree, flow, depth));
    bool timed = row->look != LOOK_WAITING && row->look != LOOK_SKIPPED;
    int64_t from = row->began_ms ? row->began_ms : row->started_ms;
    add_duration(out, timed ? from : 0, live ? now_ms == INT64_MAX ? row->ended_ms : now_ms : row->ended_ms);
    write_note(tree, flow, row, now_ms);
}

static void write_head_of(struct tree *tree, const struct flow *flow, struct str run)
{
    const struct term *term = tree->term;
    struct buf *out = &tree->work;
    buf_text(out, "run ");
    tone_begin(out, term, TONE_BOLD);
    text_safe(out, run);
    tone_end(out, term, TONE_BOLD);
    buf_text(out, "  ");
    text_safe(out, flow->name);
    buf_text(out, " @ ");
    text_safe(out, flow->version);
    if (flow->status == RUN_STATUS_RUNNING && !flow->substatus[0]) return;
    buf_text(out, "  ");
    look_run(out, term, flow->status);
    if (flow->substatus[0]) buf_printf(out, " (%s)", flow->substatus);
}

// Where the whole id leaves no room for the status, the first characters of it, which name the run as well.
static void write_head(struct tree *tree, const struct flow *flow)
{
    write_head_of(tree, flow, flow->run);
    if (text_width(buf_str(&tree->work)) < tree->term->columns) return;
    buf_clear(&tree->work);
    write_head_of(tree, flow, short_id(flow->run));
}

struct totals {
    uint32_t all, done, failed, skipped, running, waiting, cancelled, idle;
    int64_t started_ms, ended_ms;
};

static struct totals count_rows(const struct tree *tree)
{
    struct totals t = {.ended_ms = 0};
    bool open = false;
    for (const struct flow *flow = tree->flows; flow; flow = flow->next) {
        if (flow->parent) continue;
        for (uint32_t i = 0; i < flow->row_count; i++) {
            enum look look = flow->rows[i].look;
            t.all++;
            t.done += look == LOOK_DONE;
            t.failed += look == LOOK_FAILED || look == LOOK_HELD;
            t.skipped += look == LOOK_SKIPPED;
            t.running += look == LOOK_RUNNING || look == LOOK_QUEUED || look == LOOK_DELAYED;
            t.waiting += look == LOOK_WAITING || look == LOOK_APPROVAL;
            t.cancelled += look == LOOK_CANCELLED;
            t.idle += look == LOOK_NOT_RUN;
        }
        if (t.started_ms == 0 || (flow->started_ms && flow->started_ms < t.started_ms)) t.started_ms = flow->started_ms;
        open = open || flow->ended_ms == 0;
        if (flow->ended_ms > t.ended_ms) t.ended_ms = flow->ended_ms;
    }
    if (open) t.ended_ms = 0;
    return t;
}

static void write_foot(struct tree *tree, size_t hidden, int64_t now_ms)
{
    struct totals t = count_rows(tree);
    struct buf *out = &tree->work;
    const char *dot = tree->term->utf8 ? "·" : "|";
    uint32_t ended = t.done + t.failed + t.skipped;
    size_t full = t.all ? (size_t)ended * BAR_SIZE / t.all : 0;
    buf_text(out, "  [");
    for (size_t i = 0; i < BAR_SIZE; i++) buf_byte(out, i < full ? '#' : '-');
    buf_printf(out, "]  %u/%u done", t.done, t.all);
    const struct {
        uint32_t count;
        const char *word;
    } parts[] = {{t.failed, "failed"},   {t.running, "running"},     {t.waiting, "waiting"},
                 {t.skipped, "skipped"}, {t.cancelled, "cancelled"}, {t.idle, "not run"}};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        if (parts[i].count) buf_printf(out, " %s %u %s", dot, parts[i].count, parts[i].word);
    if (hidden > 0) buf_printf(out, " %s %zu not shown", dot, hidden);
    int64_t until = t.ended_ms ? t.ended_ms : now_ms == INT64_MAX ? 0 : now_ms;
    char text[24];
    if (t.started_ms && until >= t.started_ms) {
        duration_format(until - t.started_ms, text);
        buf_printf(out, " %s %s", dot, text);
    }
    if (tree->keys && now_ms != INT64_MAX) buf_printf(out, "      %s", tree->keys);
}

// ---- the picture
static void end_line(struct tree *tree, size_t *count)
{
    struct buf *picture = &tree->picture;
    const struct term *term = tree->term;
    size_t from = picture->len;
    text_cut(picture, buf_str(&tree->work), term->columns > 1 ? term->columns - 1 : 1, term->utf8);
    if (*count < LINES_MAX) tree->drawn[*count] = text_width(str_slice(buf_str(picture), from, picture->len));
    buf_text(picture, "\x1b[K\n");
    buf_clear(&tree->work);
    *count += 1;
}

// Back to the first line of the previous picture. A terminal that became narrower has wrapped its lines.
static void go_back(struct tree *tree)
{
    size_t rows = 0;
    for (size_t i = 0; i < tree->drawn_count; i++)
        rows += tree->drawn[i] > tree->term->columns ? (tree->drawn[i] - 1) / tree->term->columns + 1 : 1;
    buf_byte(&tree->picture, '\r');
    if (rows > 0) buf_printf(&tree->picture, "\x1b[%zuA", rows);
}

void tree_erase(struct tree *tree)
{
    if (tree->drawn_count == 0) return;
    buf_clear(&tree->picture);
    go_back(tree);
    buf_text(&tree->picture, "\x1b[J");
    console_talk(tree->console, &tree->picture);
    tree->drawn_count = 0;
    tree->drawn_ms = 0;
}

void tree_draw(struct tree *tree, int64_t now_ms)
{
    struct term *term = tree->term;
    if (!tree->flows || (now_ms != INT64_MAX && now_ms - tree->drawn_ms < REDRAW_MS && tree->drawn_ms <= now_ms))
        return;
    term_measure(term);
    tree->line_count = 0;
    size_t heads = 0;
    for (struct flow *flow = tree->flows; flow; flow = flow->next) {
        if (flow->parent) continue;
        add_line(tree, flow, ROW_HEAD, 0, heads++ == 0 ? 0 : run_status_terminal(flow->status) ? 7 : 3);
        add_flow_lines(tree, flow, 0);
    }
    size_t room = term->rows > 4 ? term->rows - 2 : 2;
    choose_lines(tree, room < LINES_MAX - 1 ? room : LINES_MAX - 1);
    buf_clear(&tree->picture);
    buf_clear(&tree->work);
    go_back(tree);
    size_t count = 0;
    for (size_t i = 0; i < tree->line_count; i++) {
        if (!tree->lines[i].shown) continue;
        if (tree->lines[i].row == ROW_HEAD)
            write_head(tree, tree->lines[i].flow);
        else
            tree_write_row(tree, tree->lines[i].flow, tree->lines[i].row, tree->lines[i].depth, now_ms);
        end_line(tree, &count);
    }
    write_foot(tree, tree->line_count - count, now_ms);
    end_line(tree, &count);
    buf_text(&tree->picture, "\x1b[J");
    tree->drawn_count = count;
    tree->drawn_ms = now_ms;
    console_talk(tree->console, &tree->picture);
}
