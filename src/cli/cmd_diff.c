// Two runs, or two moments of one, side by side. What differs is found in src/explain; here it is shown.
#include "cli/card.h"
#include "cli/commands.h"
#include "term/text.h"

#include "base/civil.h"
#include "reading/reading.h"

#include <string.h>

enum { LABEL_WIDTH = 10, NAME_WIDTH_MAX = 32, TIMING_MAX = 15, STEP_MAX = 200 };

struct sheet {
    struct cli *cli;
    struct buf *out;
    const struct term *term;
    const struct json *diff;
    const char *label; // of the next line; "" below it
    size_t line;       // where it began
};

static struct str text_of(const struct json *object, const char *key)
{
    return json_text(json_key(object, key));
}

static int64_t int_of(const struct json *object, const char *key, int64_t otherwise)
{
    return json_integer(json_key(object, key), otherwise);
}

static bool is_same(const struct json *section)
{
    const struct json *same = json_key(section, "same");
    return json_true(same);
}

static const char *arrow(const struct sheet *s)
{
    return s->term->utf8 ? " → " : " -> ";
}

static void begin(struct sheet *s)
{
    s->line = s->out->len;
    tone_text(s->out, s->term, TONE_DIM, s->label);
    text_pad(s->out, strlen(s->label), LABEL_WIDTH);
    s->label = "";
}

// A terminal gets no line that it would have to break.
static void end(struct sheet *s)
{
    text_trim(s->out);
    struct str line = str_slice(buf_str(s->out), s->line, s->out->len);
    if (s->term->tty && buf_ok(s->out) && text_width(line) > s->term->columns) {
        struct str copy = arena_copy(&s->cli->io.arena, line);
        if (copy.ptr) s->out->ptr[s->out->len = s->line] = '\0';
        if (copy.ptr) text_cut(s->out, copy, s->term->columns, s->term->utf8);
    }
    buf_byte(s->out, '\n');
}

// A line for a section in which nothing differs.
static void same_line(struct sheet *s, const char *text)
{
    begin(s);
    tone_text(s->out, s->term, TONE_GOOD, text);
    end(s);
}

static void name(struct sheet *s, struct str text, size_t width)
{
    size_t from = s->out->len;
    text_safe(s->out, text);
    text_pad(s->out, text_width(str_slice(buf_str(s->out), from, s->out->len)), width);
}

static size_t widest(const struct json *list, const char *key)
{
    size_t width = 0;
    for (uint32_t i = 0; list && i < list->count; i++) {
        size_t w = text_width(text_of(&list->items[i], key));
        if (w > width && w <= NAME_WIDTH_MAX) width = w;
    }
    return width + 2;
}

static void duration(struct sheet *s, int64_t ms)
{
    char text[24];
    if (ms < 0) {
        buf_byte(s->out, '-');
        return;
    }
    duration_format(ms, text);
    buf_text(s->out, text);
}

// ---- sections

static void write_side(struct sheet *s, const char *key, const char *label)
{
    const struct json *side = json_key(s->diff, key);
    s->label = label;
    begin(s);
    name(s, text_of(side, "runId"), 0);
    buf_text(s->out, "  ");
    enum run_status status = run_status_parse(text_of(side, "status"));
    if (status) look_run(s->out, s->term, status);
    buf_printf(s->out, "  event %lld", (long long)int_of(side, "seq", 0));
    if (json_key(side, "durationMs")) {
        buf_text(s->out, "  ");
        duration(s, int_of(side, "durationMs", 0));
    }
    end(s);
}

static void write_names(struct sheet *s, const struct json *document, const char *key, const char *sign, enum tone tone)
{
    const struct json *list = json_key(document, key);
    for (uint32_t i = 0; list && i < list->count; i++) {
        begin(s);
        tone_text(s->out, s->term, tone, sign);
        name(s, json_text(&list->items[i]), 0);
        end(s);
    }
}

static void write_document(struct sheet *s)
{
    const struct json *document = json_key(s->diff, "document");
    if (!document) return;
    const struct json *a = json_key(document, "a"), *b = json_key(document, "b");
    s->label = "document";
    if (is_same(document)) {
        same_line(s, "same");
        return;
    }
    begin(s);
    name(s, text_of(a, "planId"), 0);
    buf_text(s->out, " @ ");
    name(s, text_of(a, "planVersion"), 0);
    buf_printf(s->out, " (%.12s)%s", text_of(a, "sha256").ptr, arrow(s));
    name(s, text_of(b, "planId"), 0);
    buf_text(s->out, " @ ");
    name(s, text_of(b, "planVersion"), 0);
    buf_printf(s->out, " (%.12s)", text_of(b, "sha256").ptr);
    end(s);
    const struct json *changed = json_key(document, "changed");
    size_t width = widest(changed, "step");
    for (uint32_t i = 0; changed && i < changed->count; i++) {
        const struct json *fields = json_key(&changed->items[i], "fields");
        begin(s);
        tone_text(s->out, s->term, TONE_WARN, "~ ");
        name(s, text_of(&changed->items[i], "step"), width);
        for (uint32_t k = 0; fields && k < fields->count; k++) {
            buf_text(s->out, k ? ", " : "");
            name(s, json_text(&fields->items[k]), 0);
        }
        end(s);
    }
    write_names(s, document, "added", "+ ", TONE_GOOD);
    write_names(s, document, "removed", "- ", TONE_BAD);
}

static void write_value(struct sheet *s, const struct json *change, const char *side)
{
    name(s, json_key(change, side) ? text_of(change, side) : STR("nothing"), 0);
}

// On one line, or on two when that would not fit.
static void write_change(struct sheet *s, const struct json *change, size_t indent, size_t width)
{
    struct str path = text_of(change, "path");
    begin(s);
    text_pad(s->out, 0, indent);
    if (path.len > 0) name(s, path, width);
    size_t from = s->out->len;
    write_value(s, change, "a");
    buf_text(s->out, arrow(s));
    write_value(s, change, "b");
    size_t wide = text_width(str_slice(buf_str(s->out), s->line, s->out->len));
    if (s->term->tty && buf_ok(s->out) && wide > s->term->columns) {
        s->out->ptr[s->out->len = from] = '\0';
        tone_text(s->out, s->term, TONE_BAD, "- ");
        write_value(s, change, "a");
        end(s);
        begin(s);
        text_pad(s->out, 0, indent + (path.len > 0 ? width : 0));
        tone_text(s->out, s->term, TONE_GOOD, "+ ");
        write_value(s, change, "b");
    }
    end(s);
}

static void write_left_out(struct sheet *s, const struct json *object)
{
    int64_t left_out = int_of(object, "changesLeftOut", 0);
    if (left_out == 0) return;
    begin(s);
    buf_printf(s->out, "  and %lld more", (long long)left_out);
    end(s);
}

static void write_inputs(struct sheet *s)
{
    const struct json *inputs = json_key(s->diff, "inputs");
    if (!inputs) return;
    const struct json *changes = json_key(inputs, "changes");
    size_t width = widest(changes, "path");
    s->label = "inputs";
    if (is_same(inputs)) same_line(s, "same");
    for (uint32_t i = 0; changes && i < changes->count; i++) write_change(s, &changes->items[i], 0, width);
    write_left_out(s, inputs);
}

// "failed EXIT_NONZERO, 3 attempts"
static void write_way(struct sheet *s, const struct json *way)
{
    if (!way) {
        buf_text(s->out, "not there");
        return;
    }
    struct str state = text_of(way, "state"), reason = text_of(way, "reason");
    for (size_t i = 0; i < state.len; i++) buf_byte(s->out, (char)(state.ptr[i] == '_' ? ' ' : state.ptr[i]));
    int64_t attempts = int_of(way, "attempts", 0);
    struct str error = text_of(way, "errorCode");
    if (str_is(state, "skipped")) buf_printf(s->out, " (%.*s)", STR_ARG(reason));
    if (error.len > 0 && !str_is(state, "done") && !str_is(state, "skipped")) {
        buf_byte(s->out, ' ');
        name(s, error, 0);
    }
    if (attempts > 1) buf_printf(s->out, ", %lld attempts", (long long)attempts);
}

static void write_path(struct sheet *s)
{
    const struct json *path = json_key(s->diff, "path");
    if (!path) return;
    const struct json *steps = json_key(path, "steps");
    size_t width = widest(steps, "step");
    s->label = "path";
    if (steps->count == 0) same_line(s, "same");
    for (uint32_t i = 0; i < steps->count && i < STEP_MAX; i++) {
        begin(s);
        name(s, text_of(&steps->items[i], "step"), width);
        write_way(s, json_key(&steps->items[i], "a"));
        buf_text(s->out, arrow(s));
        write_way(s, json_key(&steps->items[i], "b"));
        end(s);
    }
    if (steps->count == 0) return;
    begin(s);
    if (steps->count > STEP_MAX) buf_printf(s->out, "%u more; ", steps->count - STEP_MAX);
    buf_printf(s->out, "%lld others alike", (long long)int_of(path, "sameSteps", 0));
    end(s);
}

static void write_outputs(struct sheet *s)
{
    const struct json *outputs = json_key(s->diff, "outputs");
    if (!outputs) return;
    const struct json *steps = json_key(outputs, "steps");
    s->label = "outputs";
    if (steps->count == 0) same_line(s, "same");
    for (uint32_t i = 0; i < steps->count && i < STEP_MAX; i++) {
        const struct json *step = &steps->items[i], *changes = json_key(step, "changes");
        size_t width = widest(changes, "path");
        begin(s);
        name(s, text_of(step, "step"), 0);
        if (!changes)
            buf_printf(s->out, "  differs: %lld and %lld bytes", (long long)int_of(step, "sizeA", 0),
                       (long long)int_of(step, "sizeB", 0));
        end(s);
        for (uint32_t k = 0; changes && k < changes->count; k++) write_change(s, &changes->items[k], 2, width);
        write_left_out(s, step);
    }
}

static void write_times(struct sheet *s, struct str step, size_t width, const struct json *times)
{
    const struct json *change = json_key(times, "change");
    begin(s);
    name(s, step, width);
    size_t from = s->out->len;
    if (change) {
        int64_t ms = json_integer(change, 0);
        buf_text(s->out, ms == 0 ? "" : ms > 0 ? "+" : "-");
        duration(s, ms < 0 ? -ms : ms);
    }
    text_pad(s->out, s->out->len - from, 10);
    duration(s, int_of(times, "a", -1));
    buf_text(s->out, arrow(s));
    duration(s, int_of(times, "b", -1));
    end(s);
}

static void write_timing(struct sheet *s)
{
    const struct json *timing = json_key(s->diff, "timing");
    if (!timing) return;
    const struct json *steps = json_key(timing, "steps"), *run = json_key(timing, "run");
    size_t width = widest(steps, "step");
    if (width < 10) width = 10;
    s->label = "timing";
    if (is_same(timing)) {
        same_line(s, "same");
        return;
    }
    if (json_key(run, "a") || json_key(run, "b")) write_times(s, STR("(the run)"), width, run);
    for (uint32_t i = 0; i < steps->count && i < TIMING_MAX; i++)
        write_times(s, text_of(&steps->items[i], "step"), width, &steps->items[i]);
    if (steps->count <= TIMING_MAX) return;
    begin(s);
    buf_printf(s->out, "and %u steps with smaller changes", steps->count - TIMING_MAX);
    end(s);
}

static void write_event(struct sheet *s, const struct json *event)
{
    if (!event) {
        buf_text(s->out, "nothing");
        return;
    }
    const struct json *seq = json_key(event, "seq");
    buf_printf(s->out, "%sevent %lld ", seq ? "" : "after ",
               (long long)json_integer(seq ? seq : json_key(event, "afterSeq"), 0));
    name(s, text_of(event, "event"), 0);
    buf_byte(s->out, ' ');
    name(s, text_of(event, "step"), 0);
    text_trim(s->out);
}

static void write_parting(struct sheet *s)
{
    const struct json *parting = json_key(s->diff, "parting");
    if (!parting) return;
    s->label = "part at";
    begin(s);
    write_event(s, json_key(parting, "a"));
    buf_text(s->out, "  |  ");
    write_event(s, json_key(parting, "b"));
    end(s);
}

static void write_result(struct sheet *s)
{
    static const char *const sections[] = {"document", "inputs", "path", "outputs", "timing"};
    bool timing_counts = !json_key(s->diff, "path") && !json_key(s->diff, "outputs"), first = true;
    s->label = "result";
    if (is_same(s->diff)) {
        same_line(s, "same");
        return;
    }
    begin(s);
    buf_text(s->out, "they differ in ");
    for (size_t i = 0; i < ARRAY_COUNT(sections); i++) {
        const struct json *section = json_key(s->diff, sections[i]);
        if (!section || is_same(section) || (i == 4 && !timing_counts)) continue;
        buf_printf(s->out, "%s%s", first ? "" : ", ", sections[i]);
        first = false;
    }
    end(s);
}

static void write_sheet(struct cli *cli, struct buf *out, const struct json *diff)
{
    struct sheet s = {.cli = cli, .out = out, .term = &cli->io.out, .diff = diff, .label = ""};
    write_side(&s, "a", "A");
    write_side(&s, "b", "B");
    write_document(&s);
    write_inputs(&s);
    write_path(&s);
    write_outputs(&s);
    write_timing(&s);
    write_parting(&s);
    write_result(&s);
}

static unsigned parts_of(const struct cli *cli)
{
    unsigned parts = 0;
    if (args_has(&cli->args, FLAG_DIFF_STEPS)) parts |= DIFF_STEPS;
    if (args_has(&cli->args, FLAG_OUTPUTS)) parts |= DIFF_OUTPUTS;
    if (args_has(&cli->args, FLAG_TIMING)) parts |= DIFF_TIMING;
    return parts ? parts : DIFF_STEPS | DIFF_OUTPUTS | DIFF_TIMING;
}

static int show(struct cli *cli, const struct explained_run runs[2])
{
    struct error err = {0};
    struct json diff;
    struct buf text;
    bool same;
    if (explain_diff(runs[0].explain, runs[1].explain, parts_of(cli), &cli->io.arena, &diff, &same, &err))
        return cli_error(cli, &err);
    enum format format = format_of(cli, FORMAT_TEXT);
    if (format != FORMAT_TEXT) {
        print_json(&cli->io, format, &diff);
    } else {
        buf_init(&text, (size_t)64 << 20);
        write_sheet(cli, &text, &diff);
        cli_print(cli, &text);
        buf_release(&text);
    }
    return same ? EXIT_OK : EXIT_DIFFERENCE;
}

int command_diff(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct explained_run runs[2] = {0};
    int code = session_open(&session, cli, STORE_READ);
    for (size_t i = 0; !code && i < 2; i++) {
        struct target target;
        code = target_find(&session, cli->args.words[i], TARGET_MOMENT, &target);
        if (!code) code = explained_load(&session, &target.head, target.at, (struct str){0}, false, &runs[i]);
    }
    if (!code) code = show(cli, runs);
    for (size_t i = 0; i < 2; i++) explained_release(&runs[i]);
    return code;
}
