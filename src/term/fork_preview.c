#include "term/fork_preview.h"
#include "term/text.h"

#include <string.h>

enum { LABEL_WIDTH = 12, NAMES_MAX = 40, COLUMNS_MAX = 100 };

// How a step stands in the preview. What is kept says FORK_KEPT.
enum row { ROW_DONE = 1, ROW_SKIPPED, ROW_FAILED, ROW_GIVEN, ROW_GOES_ON, ROW_AGAIN, ROW_NEW, ROW_TO_COME, ROW_COUNT };

static const struct {
    const char *label;
    enum tone tone;
    const char *count; // "3 run again"
} rows[ROW_COUNT] = {
    [ROW_DONE] = {"kept", TONE_GOOD, "kept"},        [ROW_SKIPPED] = {"skipped", TONE_DIM, "skipped"},
    [ROW_FAILED] = {"failed", TONE_BAD, "failed"},   [ROW_GIVEN] = {"given", TONE_WARN, "given"},
    [ROW_GOES_ON] = {"goes on", TONE_LIVE, "go on"}, [ROW_AGAIN] = {"again", TONE_LIVE, "run again"},
    [ROW_NEW] = {"new", TONE_LIVE, "new"},           [ROW_TO_COME] = {"to come", TONE_NONE, "to come"},
};

static enum node_state before(const struct fork *fork, uint32_t step)
{
    return kernel_state(fork->source, program_find(fork->before, PROGRAM_TOP, fork->program->steps[step].id));
}

static enum row row_of(const struct fork *fork, uint32_t step)
{
    switch (fork->fates[step].fate) {
    case FORK_KEPT:
        return before(fork, step) == NODE_FAILED    ? ROW_FAILED
               : before(fork, step) == NODE_SKIPPED ? ROW_SKIPPED
                                                    : ROW_DONE;
    case FORK_GOES_ON:
        return ROW_GOES_ON;
    case FORK_GIVEN:
        return ROW_GIVEN;
    case FORK_AGAIN:
        return ROW_AGAIN;
    case FORK_NEW:
        return ROW_NEW;
    case FORK_TO_COME:
        break;
    }
    return ROW_TO_COME;
}

static const char *reason_of(struct console *console, const struct fork *fork, uint32_t step)
{
    const struct step_fate *fate = &fork->fates[step];
    switch (fate->why) {
    case AGAIN_ASKED:
        return "as asked";
    case AGAIN_BODY:
        return "its definition differs";
    case AGAIN_INPUT:
        return console_format(console, "uses the input %.*s, which differs", STR_ARG(fate->input));
    case AGAIN_DEPENDENCY:
        return console_format(console, "hangs on %.*s", STR_ARG(fork->program->steps[fate->cause].id));
    case AGAIN_NO_RESULT:
        return "has no result";
    case AGAIN_UNDONE:
        return "what it did was undone";
    case AGAIN_ALWAYS_RUN:
        return "is to run always";
    case AGAIN_NOTHING:
        break;
    }
    if (fate->fate != FORK_GOES_ON) return "";
    enum node_state state = before(fork, step);
    return state == NODE_HELD ? "is held" : state == NODE_DELAYED ? "between two attempts" : "was in flight";
}

static size_t columns_of(const struct term *term)
{
    return term->columns < COLUMNS_MAX ? term->columns : COLUMNS_MAX;
}

static void label(struct buf *out, const struct term *term, const char *text, enum tone tone)
{
    buf_text(out, "  ");
    tone_text(out, term, tone, text);
    text_pad(out, strlen(text) + 2, LABEL_WIDTH);
}

// The names behind their label, wrapped under each other.
static void write_names(struct buf *out, const struct term *term, const char *text, enum tone tone, struct buf *names)
{
    struct buf wrapped SCOPED(buf_release) = buf_of(TEXT_MAX);
    text_wrap(&wrapped, buf_str(names), LABEL_WIDTH, columns_of(term));
    label(out, term, text, tone);
    buf_add(out, str_slice(buf_str(&wrapped), LABEL_WIDTH, wrapped.len));
}

static void add_name(struct buf *names, size_t *count, struct str name)
{
    if (*count < NAMES_MAX) {
        buf_text(names, *count ? ", " : "");
        text_safe(names, name);
    }
    (*count)++;
}

static void end_names(struct buf *names, size_t count)
{
    if (count > NAMES_MAX) buf_printf(names, " and %zu more", count - NAMES_MAX);
    buf_byte(names, '\n');
}

static void write_row(struct buf *out, const struct term *term, const struct fork *fork, enum row row)
{
    size_t count = 0;
    struct buf names SCOPED(buf_release) = buf_of(TEXT_MAX);
    for (uint32_t i = 0; i < fork->program->top_count; i++)
        if (row_of(fork, i) == row) add_name(&names, &count, fork->program->steps[i].id);
    end_names(&names, count);
    if (count > 0) write_names(out, term, rows[row].label, rows[row].tone, &names);
}

static size_t id_width(const struct fork *fork)
{
    size_t width = 0;
    for (uint32_t i = 0; i < fork->program->top_count; i++) {
        enum row row = row_of(fork, i);
        size_t this = text_width(fork->program->steps[i].id);
        if ((row == ROW_AGAIN || row == ROW_GOES_ON) && this > width && this <= NAMES_MAX) width = this;
    }
    return width;
}

// One line each, with the reason.
static void write_fates(struct console *console, struct buf *out, const struct term *term, const struct fork *fork,
                        enum row row)
{
    size_t width = id_width(fork), count = 0;
    for (uint32_t i = 0; i < fork->program->top_count; i++) {
        if (row_of(fork, i) != row || count++ >= NAMES_MAX) continue;
        label(out, term, rows[row].label, rows[row].tone);
        size_t from = out->len;
        text_safe(out, fork->program->steps[i].id);
        text_pad(out, text_width(str_slice(buf_str(out), from, out->len)), width + 2);
        text_safe(out, str_from(reason_of(console, fork, i)));
        text_trim(out);
        buf_byte(out, '\n');
    }
    if (count <= NAMES_MAX) return;
    label(out, term, rows[row].label, rows[row].tone);
    buf_printf(out, "and %zu more\n", count - NAMES_MAX);
}

static bool is_gone(const struct fork *fork, uint32_t step)
{
    return program_find(fork->program, PROGRAM_TOP, fork->before->steps[step].id) == PROGRAM_TOP;
}

static void write_gone(struct buf *out, const struct term *term, const struct fork *fork)
{
    size_t count = 0;
    struct buf names SCOPED(buf_release) = buf_of(TEXT_MAX);
    for (uint32_t i = 0; i < fork->before->top_count; i++)
        if (is_gone(fork, i)) add_name(&names, &count, fork->before->steps[i].id);
    end_names(&names, count);
    if (count > 0) write_names(out, term, "gone", TONE_DIM, &names);
}

static void write_inputs(struct buf *out, const struct term *term, const struct fork *fork)
{
    size_t count = 0;
    struct buf names SCOPED(buf_release) = buf_of(TEXT_MAX);
    for (uint32_t i = 0; i < fork->changed.count; i++) add_name(&names, &count, json_text(&fork->changed.items[i]));
    end_names(&names, count);
    if (count > 0) write_names(out, term, "inputs", TONE_DIM, &names);
}

static void write_head(struct buf *out, const struct term *term, const struct fork *fork, const char *how)
{
    size_t counts[ROW_COUNT] = {0};
    bool first = true;
    for (uint32_t i = 0; i < fork->program->top_count; i++) counts[row_of(fork, i)]++;
    tone_begin(out, term, TONE_BOLD);
    buf_printf(out, "%s of ", how);
    text_safe(out, fork->head.ids.run);
    if (!fork->results_only) buf_printf(out, "@%llu", (unsigned long long)fork->at);
    tone_end(out, term, TONE_BOLD);
    buf_text(out, ": ");
    for (enum row row = ROW_DONE; row < ROW_COUNT; row++) {
        if (counts[row] == 0) continue;
        buf_printf(out, "%s%zu %s", first ? "" : ", ", counts[row], rows[row].count);
        first = false;
    }
    buf_byte(out, '\n');
    if (fork->program == fork->before) return;
    bool same = digest_eq(&fork->program->sha256, &fork->before->sha256);
    label(out, term, "document", TONE_DIM);
    text_safe(out, fork->program->file);
    buf_printf(out, "%s\n", same ? " (the same)" : "");
}

void preview_write(struct console *console, struct buf *out, const struct term *term, const struct fork *fork,
                   const char *how)
{
    write_head(out, term, fork, how);
    write_inputs(out, term, fork);
    for (enum row row = ROW_DONE; row < ROW_COUNT; row++) {
        if (row == ROW_AGAIN || row == ROW_GOES_ON)
            write_fates(console, out, term, fork, row);
        else
            write_row(out, term, fork, row);
    }
    write_gone(out, term, fork);
}
