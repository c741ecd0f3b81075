// The live tree: a model of every run that was heard of (flows with rows, children below the step that started them), and
// a picture of it that is drawn over the previous one. A picture is one write(2), so a terminal never shows half of it.
#include "cli/progress.h"
#include "cli/text.h"

#include "base/civil.h"
#include "base/map.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_SIZE = 160, ID_WIDTH_MAX = 32, LINES_MAX = 512, BAR_SIZE = 10, REDRAW_MS = 100 };

struct row_text {
    char first_fault[TEXT_SIZE], note[TEXT_SIZE], output[TEXT_SIZE];
};

struct row {
    struct str id;
    enum look look;
    enum step_kind kind;
    uint32_t attempt, attempt_max, iteration, iteration_max;
    int64_t started_ms, ended_ms, due_ms;
    const uint32_t *deps;
    uint32_t dep_count;
    struct row_text *text; // NULL until there is something to say
};

struct flow {
    struct flow *next;
    struct flow *parent;
    uint32_t parent_row;
    struct str run, name, version;
    struct row *rows;
    uint32_t row_count;
    struct map index;
    enum run_status status;
    char substatus[24];
    int64_t started_ms, ended_ms;
    size_t id_width;
};

struct line {
    struct flow *flow;
    uint32_t row; // ROW_HEAD: the run itself
    uint32_t depth;
    uint8_t priority;
    bool shown;
};
#define ROW_HEAD UINT32_MAX

struct tree {
    struct cli *cli;
    struct arena arena;
    struct flow *flows, **last;
    struct map index;
    struct flow **by_index;
    size_t flow_count, flow_capacity;
    struct line *lines;
    size_t line_count, line_capacity;
    size_t drawn[LINES_MAX]; // widths of the lines on the screen
    size_t drawn_count;
    int64_t drawn_ms;
    struct buf picture, work;
};

struct tree *tree_open(struct cli *cli)
{
    struct tree *tree = ARENA_NEW(&cli->arena, struct tree);
    if (!tree) return NULL;
    tree->cli = cli;
    tree->last = &tree->flows;
    arena_init(&tree->arena, 64 * 1024, (size_t)512 << 20);
    map_init(&tree->index, &tree->arena);
    buf_init(&tree->picture, (size_t)4 << 20);
    buf_init(&tree->work, (size_t)1 << 20);
    return tree;
}

void tree_close(struct tree *tree)
{
    tree_draw(tree, INT64_MAX);
    buf_release(&tree->picture);
    buf_release(&tree->work);
    arena_release(&tree->arena);
}

static struct flow *find_flow(const struct tree *tree, struct str run)
{
    uint32_t at = map_get(&tree->index, run);
    return at == MAP_NONE ? NULL : tree->by_index[at];
}

static bool fill_rows(struct tree *tree, struct flow *flow, const struct program *program)
{
    flow->rows = ARENA_ARRAY(&tree->arena, program->top_count + 1, struct row);
    if (!flow->rows) return false;
    map_init(&flow->index, &tree->arena);
    for (uint32_t i = 0; i < program->top_count; i++) {
        const struct program_step *step = &program->steps[i];
        struct row *row = &flow->rows[i];
        uint32_t *deps = ARENA_ARRAY(&tree->arena, step->dep_count + 1, uint32_t);
        *row = (struct row){.id = arena_copy(&tree->arena, step->id), .look = LOOK_WAITING, .kind = step->kind};
        if (!row->id.ptr || !deps || !map_put(&flow->index, row->id, i, NULL)) return false;
        for (uint32_t d = 0; d < step->dep_count; d++) deps[d] = step->deps[d];
        row->deps = deps;
        row->dep_count = step->dep_count;
        row->attempt_max = step->retry.max_attempts;
        row->iteration_max = step->max_iterations;
        size_t width = text_width(row->id);
        if (width > flow->id_width) flow->id_width = width < ID_WIDTH_MAX ? width : ID_WIDTH_MAX;
        flow->row_count++;
    }
    return true;
}

// Links a child run to the step that started it.
static void link_parent(struct tree *tree, struct flow *flow, const struct start_facts *start)
{
    flow->parent = start->parent_run.len ? find_flow(tree, start->parent_run) : NULL;
    if (!flow->parent) return;
    struct str rest;
    flow->parent_row = map_get(&flow->parent->index, str_cut(start->parent_step, '[', &rest));
    if (flow->parent_row == MAP_NONE) flow->parent = NULL;
}

static struct flow *add_flow(struct tree *tree, const struct run *run)
{
    struct flow *flow = ARENA_NEW(&tree->arena, struct flow);
    struct flow **grown = arena_grow(&tree->arena, tree->by_index, tree->flow_count, tree->flow_count + 1,
                                     sizeof(*grown), &tree->flow_capacity);
    if (!flow || !grown) return NULL;
    tree->by_index = grown;
    flow->run = arena_copy(&tree->arena, run->ids.run);
    flow->name = arena_copy(&tree->arena, run->program->name.len ? run->program->name : run->program->plan_id);
    flow->version = arena_copy(&tree->arena, run->program->plan_version);
    if (!flow->run.ptr || !flow->name.ptr || !flow->version.ptr || !fill_rows(tree, flow, run->program)) return NULL;
    if (!map_put(&tree->index, flow->run, (uint32_t)tree->flow_count, NULL)) return NULL;
    tree->by_index[tree->flow_count++] = flow;
    link_parent(tree, flow, &run->start);
    *tree->last = flow;
    tree->last = &flow->next;
    return flow;
}

static enum look look_of_step(enum step_kind kind, uint8_t state)
{
    switch ((enum node_state)state) {
    case NODE_WAITING:
        return LOOK_WAITING;
    case NODE_DELAYED:
        return LOOK_DELAYED;
    case NODE_RUNNING:
        return kind == STEP_APPROVAL ? LOOK_APPROVAL : LOOK_RUNNING;
    case NODE_HELD:
        return LOOK_HELD;
    case NODE_SUCCESS:
        return LOOK_DONE;
    case NODE_FAILED:
        return LOOK_FAILED;
    case NODE_SKIPPED:
        return LOOK_SKIPPED;
    }
    return LOOK_WAITING;
}

static void sync_row(struct row *row, const struct run_step *step)
{
    row->look = look_of_step(row->kind, step->state);
    row->attempt = step->logical;
    row->iteration = step->iteration;
    row->started_ms = step->started_ms;
    row->due_ms = step->due_ms;
}

static void sync_flow(struct flow *flow, const struct run *run)
{
    flow->status = run->status;
    flow->started_ms = run->started_ms ? run->started_ms : run->queued_ms;
    flow->ended_ms = run->ended_ms;
    snprintf(flow->substatus, sizeof(flow->substatus), "%s", run_substatus(run));
}

void tree_attach(struct tree *tree, const struct run *run)
{
    struct flow *flow = find_flow(tree, run->ids.run);
    if (!flow) flow = add_flow(tree, run);
    if (!flow) return;
    sync_flow(flow, run);
    for (uint32_t i = 0; i < flow->row_count; i++) sync_row(&flow->rows[i], &run->steps[i]);
}

static struct row_text *text_of(struct tree *tree, struct row *row)
{
    if (!row->text) row->text = ARENA_NEW(&tree->arena, struct row_text);
    return row->text;
}

static void keep_text(struct tree *tree, char out[TEXT_SIZE], struct str text)
{
    buf_clear(&tree->work);
    text_safe(&tree->work, str_slice(text, 0, text.len < 4 * TEXT_SIZE ? text.len : 4 * TEXT_SIZE));
    size_t len = tree->work.len < TEXT_SIZE ? tree->work.len : TEXT_SIZE - 1;
    while (len > 0 && len < tree->work.len && ((unsigned char)tree->work.ptr[len] & 0xC0) == 0x80)
        len--; // never half a character
    memcpy(out, tree->work.ptr, len);
    out[len] = '\0';
}

static struct str last_line(struct str text)
{
    text = str_trim(text);
    size_t from = text.len;
    while (from > 0 && text.ptr[from - 1] != '\n') from--;
    return str_slice(text, from, text.len);
}

static void keep_fault(struct tree *tree, char out[TEXT_SIZE], const struct fault *fault)
{
    char text[4 * TEXT_SIZE];
    struct str why = last_line(fault->detail.len ? fault->detail : fault->message);
    size_t len = why.len < 2 * TEXT_SIZE ? why.len : 2 * TEXT_SIZE;
    if (fault->has_exit)
        snprintf(text, sizeof(text), "exit %d%s%.*s", fault->exit_code, fault->detail.len ? ": " : "",
                 fault->detail.len ? (int)len : 0, why.ptr ? why.ptr : "");
    else
        snprintf(text, sizeof(text), "%.*s%s%.*s", (int)(fault->code.len < 64 ? fault->code.len : 64), fault->code.ptr,
                 len ? ": " : "", (int)len, why.ptr ? why.ptr : "");
    keep_text(tree, out, str_from(text));
}

static void note_moment(struct tree *tree, struct row *row, const struct moment *m)
{
    struct row_text *text = text_of(tree, row);
    if (!text) return;
    if (m->fault.code.len > 0) {
        keep_fault(tree, text->note, &m->fault);
        if (!text->first_fault[0]) memcpy(text->first_fault, text->note, sizeof(text->first_fault));
    } else if (m->kind == MOMENT_STEP_SKIPPED) {
        keep_text(tree, text->note, m->detail.len ? m->detail : m->reason);
    } else if (m->kind == MOMENT_STEP_COMPLETED) {
        char words[TEXT_SIZE] = "";
        if (m->actor.len)
            snprintf(words, sizeof(words), "by %.*s", (int)(m->actor.len < 64 ? m->actor.len : 64), m->actor.ptr);
        else if (m->run_ref.len)
            snprintf(words, sizeof(words), "reused from %.*s", (int)(m->run_ref.len < 128 ? m->run_ref.len : 128),
                     m->run_ref.ptr);
        keep_text(tree, text->note, str_from(words));
    }
}

void tree_event(struct tree *tree, const struct engine_event *event)
{
    struct flow *flow = find_flow(tree, event->run);
    if (!flow) {
        tree_attach(tree, event->state);
        flow = find_flow(tree, event->run);
    }
    if (!flow) return;
    const struct moment *m = event->moment;
    sync_flow(flow, event->state);
    if (m->step.len == 0) return;
    struct str inside;
    uint32_t at = map_get(&flow->index, str_cut(m->step, '[', &inside));
    if (at == MAP_NONE) return;
    struct row *row = &flow->rows[at];
    sync_row(row, &event->state->steps[at]);
    if (inside.len > 0) {
        struct row_text *text = text_of(tree, row);
        if (text && m->fault.code.len == 0) keep_text(tree, text->output, m->step);
        return;
    }
    if (row->look == LOOK_DONE || row->look == LOOK_FAILED || row->look == LOOK_SKIPPED || row->look == LOOK_HELD)
        row->ended_ms = m->at_ms;
    note_moment(tree, row, m);
}

void tree_output(struct tree *tree, struct str run, struct str step, struct str line)
{
    struct str rest;
    struct flow *flow = find_flow(tree, run);
    uint32_t at = flow ? map_get(&flow->index, str_cut(step, '[', &rest)) : MAP_NONE;
    struct row_text *text = at == MAP_NONE ? NULL : text_of(tree, &flow->rows[at]);
    if (text && str_trim(line).len > 0) keep_text(tree, text->output, str_trim(line));
}

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
    case LOOK_DELAYED:
        return 2;
    case LOOK_DONE:
        return PRIORITY_DONE;
    case LOOK_WAITING:
        return 5;
    case LOOK_SKIPPED:
    case LOOK_PAUSED:
    case LOOK_CANCELLED:
        return 6;
    }
    return 6;
}

static void add_line(struct tree *tree, struct flow *flow, uint32_t row, uint32_t depth, uint8_t priority)
{
    struct line *grown = arena_grow(&tree->arena, tree->lines, tree->line_count, tree->line_count + 1, sizeof(*grown),
                                    &tree->line_capacity);
    if (!grown) return;
    tree->lines = grown;
    tree->lines[tree->line_count++] = (struct line){flow, row, depth, priority, false};
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
            struct line *line = &tree->lines[backward ? tree->line_count - 1 - i : i];
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
    text_pad(out, strlen(text), 8);
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

// Enough of an id to name the run: UUIDs are known by their first characters.
static struct str short_id(const struct flow *flow)
{
    return uuid_valid(flow->run) ? str_slice(flow->run, 0, 8) : flow->run;
}

static void write_note(struct tree *tree, const struct flow *flow, const struct row *row, int64_t now_ms)
{
    struct buf *out = &tree->work;
    const struct term *term = &tree->cli->err;
    const struct row_text *text = row->text;
    if (row->attempt > 1 && row->look != LOOK_SKIPPED)
        buf_printf(out, "  attempt %u/%u", row->attempt, row->attempt_max);
    if (row->iteration > 0) buf_printf(out, "  round %u/%u", row->iteration, row->iteration_max);
    switch (row->look) {
    case LOOK_WAITING:
        buf_text(out, "  ");
        write_needs(out, flow, row);
        break;
    case LOOK_APPROVAL:
        write_until(out, "  answers itself in ", row->due_ms, now_ms);
        buf_printf(out, "  %s approve %.*s/%.*s%s", tree->cli->self, STR_ARG(short_id(flow)), STR_ARG(row->id),
                   tree->cli->tail);
        break;
    case LOOK_HELD:
        buf_printf(out, "  %s  %s retry %.*s --step %.*s%s", text ? text->note : "", tree->cli->self,
                   STR_ARG(short_id(flow)), STR_ARG(row->id), tree->cli->tail);
        break;
    case LOOK_DELAYED:
        write_until(out, "  again in ", row->due_ms, now_ms);
        buf_printf(out, "  (%s)", text ? text->note : "");
        break;
    case LOOK_RUNNING:
        if (row->kind == STEP_WAIT)
            write_until(out, "  wakes in ", row->due_ms, now_ms);
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
        buf_printf(out, "  %s", text ? text->note : "");
        break;
    }
}

static void write_row(struct tree *tree, const struct line *line, int64_t now_ms)
{
    const struct flow *flow = line->flow;
    const struct row *row = &flow->rows[line->row];
    const struct term *term = &tree->cli->err;
    struct buf *out = &tree->work;
    bool live = row->look == LOOK_RUNNING || row->look == LOOK_APPROVAL;
    enum tone tone = look_tone(row->look);
    text_pad(out, 0, 2 + 2 * (size_t)line->depth);
    tone_begin(out, term, tone);
    buf_printf(out, "%s %-9s", look_glyph(row->look, term->utf8), look_word(row->look));
    tone_end(out, term, tone);
    size_t start = out->len;
    text_safe(out, row->id);
    text_pad(out, text_width(str_slice(buf_str(out), start, out->len)), flow->id_width);
    bool timed = row->look != LOOK_WAITING && row->look != LOOK_SKIPPED;
    add_duration(out, timed ? row->started_ms : 0, live ? now_ms == INT64_MAX ? row->ended_ms : now_ms : row->ended_ms);
    write_note(tree, flow, row, now_ms);
}

static void write_head(struct tree *tree, const struct flow *flow)
{
    const struct term *term = &tree->cli->err;
    struct buf *out = &tree->work;
    buf_text(out, "run ");
    tone_begin(out, term, TONE_BOLD);
    text_safe(out, flow->run);
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

struct totals {
    uint32_t all, done, failed, skipped, running, waiting;
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
            t.running += look == LOOK_RUNNING || look == LOOK_DELAYED;
            t.waiting += look == LOOK_WAITING || look == LOOK_APPROVAL;
        }
        if (t.started_ms == 0 || (flow->started_ms && flow->started_ms < t.started_ms)) t.started_ms = flow->started_ms;
        open = open || flow->ended_ms == 0;
        if (flow->ended_ms > t.ended_ms) t.ended_ms = flow->ended_ms;
    }
    if (open) t.ended_ms = 0;
    return t;
}

static void write_foot(struct tree *tree, int64_t now_ms)
{
    struct totals t = count_rows(tree);
    struct buf *out = &tree->work;
    const char *dot = tree->cli->err.utf8 ? "·" : "|";
    uint32_t ended = t.done + t.failed + t.skipped;
    size_t full = t.all ? (size_t)ended * BAR_SIZE / t.all : 0;
    buf_text(out, "  [");
    for (size_t i = 0; i < BAR_SIZE; i++) buf_byte(out, i < full ? '#' : '-');
    buf_printf(out, "]  %u/%u done", t.done, t.all);
    const struct {
        uint32_t count;
        const char *word;
    } parts[] = {{t.failed, "failed"}, {t.running, "running"}, {t.waiting, "waiting"}, {t.skipped, "skipped"}};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        if (parts[i].count) buf_printf(out, " %s %u %s", dot, parts[i].count, parts[i].word);
    int64_t until = t.ended_ms ? t.ended_ms : now_ms == INT64_MAX ? 0 : now_ms;
    char text[24];
    if (t.started_ms && until >= t.started_ms) {
        duration_format(until - t.started_ms, text);
        buf_printf(out, " %s %s", dot, text);
    }
}

// ---- the picture
static void end_line(struct tree *tree, size_t *count)
{
    struct buf *picture = &tree->picture;
    const struct term *term = &tree->cli->err;
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
        rows += tree->drawn[i] > tree->cli->err.columns ? (tree->drawn[i] - 1) / tree->cli->err.columns + 1 : 1;
    buf_byte(&tree->picture, '\r');
    if (rows > 0) buf_printf(&tree->picture, "\x1b[%zuA", rows);
}

void tree_erase(struct tree *tree)
{
    if (tree->drawn_count == 0) return;
    buf_clear(&tree->picture);
    go_back(tree);
    buf_text(&tree->picture, "\x1b[J");
    cli_talk(tree->cli, &tree->picture);
    tree->drawn_count = 0;
    tree->drawn_ms = 0;
}

void tree_draw(struct tree *tree, int64_t now_ms)
{
    struct term *term = &tree->cli->err;
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
            write_row(tree, &tree->lines[i], now_ms);
        end_line(tree, &count);
    }
    write_foot(tree, now_ms);
    end_line(tree, &count);
    buf_text(&tree->picture, "\x1b[J");
    tree->drawn_count = count;
    tree->drawn_ms = now_ms;
    cli_talk(tree->cli, &tree->picture);
}
