// What the steps of a run wrote. stdout gets the lines; what there is to know about a log (cut, lost) is said on stderr, or,
// with -o jsonl, in one last object per attempt.
#include "cli/card.h"
#include "cli/commands.h"
#include "cli/drive.h"
#include "cli/follow.h"
#include "cli/logs.h"
#include "term/text.h"

#include <stdlib.h>
#include <string.h>

enum { LABEL_WIDTH_MAX = 32, FLUSH_SIZE = 64 * 1024 };

struct printer {
    struct cli *cli;
    struct logs logs;
    bool jsonl, grouped, labels, stamps;
    bool streams[2]; // stdout, stderr
    int64_t since_ms;
    uint64_t tail; // 0: no limit
    struct buf out;
    struct arena scratch; // of one object
    struct str *ring;     // the last lines, oldest at ring_at
    size_t ring_count, ring_at;
    size_t width;
    const struct log_source *open; // its line has not ended yet
    enum tool_log_kind open_kind;
    uint64_t printed;
};

static void add_label(struct printer *p, struct buf *out, const struct log_source *source, bool is_stderr)
{
    static const char *const colors[] = {"36", "32", "33", "35", "34", "96", "92", "93", "95", "94"};
    const struct term *term = &p->cli->io.out;
    struct buf label SCOPED(buf_release) = buf_of(4096);
    text_safe(&label, str_from(source->label));
    if (term->color) buf_printf(out, "\x1b[%sm", colors[source->number % ARRAY_COUNT(colors)]);
    size_t from = out->len;
    text_cut(out, buf_str(&label), LABEL_WIDTH_MAX, term->utf8);
    text_pad(out, text_width(str_slice(buf_str(out), from, out->len)), p->width);
    // The bar says which stream it was, not colour alone.
    buf_text(out, is_stderr ? " !" : term->utf8 ? " │" : " |");
    if (term->color) buf_text(out, "\x1b[0m");
    buf_byte(out, ' ');
}

static void add_text(struct printer *p, struct buf *out, const struct log_source *source,
                     const struct tool_log_line *line)
{
    bool goes_on = p->open == source && p->open_kind == line->kind;
    if (p->open && !goes_on) buf_byte(out, '\n');
    p->open = NULL;
    if (p->stamps && !goes_on) {
        time_text(out, &p->cli->io, line->at_ms);
        buf_byte(out, ' ');
    }
    if (p->labels) add_label(p, out, source, line->kind == TOOL_LOG_ERR);
    if (p->cli->io.out.tty)
        text_safe_lines(out, line->text);
    else
        buf_add(out, line->text);
    if (line->open && !p->labels && !p->grouped && p->tail == 0) {
        p->open = source; // byte for byte what the step wrote
        p->open_kind = line->kind;
    } else {
        buf_byte(out, '\n');
    }
}

static struct json begin_object(struct printer *p, const struct log_source *source)
{
    arena_reset(&p->scratch);
    return JSON_OF(&p->scratch, {"runId", json_string(source->run)}, {"stepId", json_string(source->step)},
                   {"attempt", json_int(source->logical)}, {"engineAttempt", json_int(source->engine)});
}

static void add_object(struct printer *p, const struct log_source *source, const struct tool_log_line *line)
{
    struct json object = begin_object(p, source);
    JSON_ADD(&p->scratch, &object, {"time", json_time(&p->scratch, line->at_ms)},
             {"stream", json_word(line->kind == TOOL_LOG_ERR ? "stderr" : "stdout")},
             {"text", json_string(line->text)}, {"open", json_flag(line->open)});
    if (json_ok(&object)) json_write(&p->out, &object);
    buf_byte(&p->out, '\n');
}

static void add_state(struct printer *p, const struct log_source *source)
{
    struct json object = begin_object(p, source);
    JSON_ADD(&p->scratch, &object, {"state", json_word(log_state_name(source->state))},
             {"lines", json_count(source->lines)}, {"reason", json_name(source->reason)});
    if (json_ok(&object)) json_write(&p->out, &object);
    buf_byte(&p->out, '\n');
}

static void print_out(struct printer *p)
{
    if (p->jsonl)
        print_data(&p->cli->io, &p->out);
    else
        cli_print(p->cli, &p->out);
}

// With --tail a line waits in the ring until it is known to be one of the last.
static void keep_line(struct printer *p)
{
    struct str *slot = &p->ring[p->ring_at];
    free((char *)(uintptr_t)slot->ptr);
    *slot = (struct str){strndup(p->out.ptr, p->out.len), p->out.len};
    p->ring_at = (p->ring_at + 1) % p->tail;
    if (p->ring_count < p->tail) p->ring_count++;
    buf_clear(&p->out);
}

static void empty_ring(struct printer *p)
{
    for (size_t i = 0; i < p->ring_count; i++) {
        struct str *slot = &p->ring[(p->ring_at + p->tail - p->ring_count + i) % p->tail];
        buf_add(&p->out, slot->ptr ? *slot : STR(""));
        free((char *)(uintptr_t)slot->ptr);
        *slot = (struct str){0};
    }
    p->ring_count = p->ring_at = 0;
    print_out(p);
}

static void measure_labels(struct printer *p)
{
    for (size_t i = 0; i < p->logs.count; i++) {
        if (!p->logs.sources[i]->exists) continue; // it wrote nothing yet
        size_t width = text_width(str_from(p->logs.sources[i]->label));
        if (width > LABEL_WIDTH_MAX) width = LABEL_WIDTH_MAX;
        if (width > p->width) p->width = width;
    }
}

static void take_line(struct printer *p, const struct log_source *source, const struct tool_log_line *line, bool ring)
{
    if (!p->streams[line->kind == TOOL_LOG_ERR] || line->at_ms < p->since_ms) return;
    p->printed++;
    if (p->jsonl)
        add_object(p, source, line);
    else
        add_text(p, &p->out, source, line);
    if (ring)
        keep_line(p);
    else if (p->out.len > FLUSH_SIZE)
        print_out(p);
}

static void drain(struct printer *p, bool ring)
{
    struct log_source *source;
    struct tool_log_line line;
    p->labels = p->logs.step.len == 0 || p->logs.count > 1;
    measure_labels(p);
    while (!p->cli->io.out_closed && logs_next(&p->logs, &source, &line)) take_line(p, source, &line, ring);
    if (ring) empty_ring(p);
    print_out(p);
}

// One attempt after the other, each below a heading.
static void drain_grouped(struct printer *p)
{
    const struct term *term = &p->cli->io.out;
    struct tool_log_line line;
    for (size_t i = 0; i < p->logs.count && !p->cli->io.out_closed; i++) {
        struct log_source *own = p->logs.sources[i];
        bool headed = p->jsonl;
        while (logs_next_of(&p->logs, own, &line)) {
            if (!p->streams[line.kind == TOOL_LOG_ERR] || line.at_ms < p->since_ms) continue;
            if (!headed) {
                if (p->printed > 0) buf_byte(&p->out, '\n');
                tone_begin(&p->out, term, TONE_BOLD);
                buf_text(&p->out, "== ");
                text_safe(&p->out, str_from(own->label));
                tone_end(&p->out, term, TONE_BOLD);
                buf_byte(&p->out, '\n');
                print_out(p);
                headed = true;
            }
            take_line(p, own, &line, p->tail > 0);
        }
        if (p->tail > 0) empty_ring(p);
        print_out(p);
    }
}

// What became of each log, for those who would otherwise take it for whole.
static void tell_states(struct printer *p)
{
    for (size_t i = 0; i < p->logs.count; i++) {
        const struct log_source *source = p->logs.sources[i];
        bool silent = !source->exists && source->state == LOGS_COMPLETE;
        if (p->jsonl) {
            if (!silent) add_state(p, source); // most steps of most runs are
        } else if (source->state == LOGS_CUT) {
            cli_warn(p->cli, "the log of %s was %s", source->label, source->reason);
        } else if (source->state == LOGS_LOST && (source->exists || p->logs.step.len > 0)) {
            cli_warn(p->cli, "the log of %s is not whole: %s", source->label, source->reason);
        }
    }
    print_out(p);
}

static void finish_line(struct printer *p)
{
    // A terminal's prompt belongs on a line of its own; a file gets exactly what the step wrote.
    if (p->open && p->cli->io.out.tty) buf_byte(&p->out, '\n');
    p->open = NULL;
    print_out(p);
}

static int show_now(struct printer *p)
{
    struct run_head head;
    int code = logs_refresh(&p->logs, &head);
    if (code) return code;
    if (p->grouped)
        drain_grouped(p);
    else
        drain(p, p->tail > 0);
    finish_line(p);
    tell_states(p);
    if (p->printed == 0 && !p->jsonl) {
        cli_note(p->cli, "nothing was written");
        if (p->logs.has_children && !p->logs.children)
            cli_hint(p->cli, "child runs have logs of their own: --children");
    }
    return EXIT_OK;
}

// Wide enough for every step that may still write, so that the lines stay aligned.
static void expect_labels(struct printer *p, const struct target *target)
{
    struct card card;
    if (target->step.len == 0 && card_load(p->logs.session, &target->head, TARGET_NOW, &card) == EXIT_OK &&
        card.program)
        for (uint32_t i = 0; i < card.program->step_count; i++) {
            const struct program_step *step = &card.program->steps[i];
            bool writes = step->kind == STEP_SHELL || step->kind == STEP_EXEC || step->kind == STEP_SCRIPT;
            size_t width = text_width(step->id);
            if (writes && step->scope == PROGRAM_TOP && width <= LABEL_WIDTH_MAX && width > p->width) p->width = width;
        }
    if (target->step.len == 0) card_release(&card);
}

static int show_and_follow(struct printer *p)
{
    struct follow follow;
    struct run_head head = {0};
    uint64_t before;
    bool first = true;
    follow_init(&follow, p->logs.session);
    do {
        before = p->printed;
        int code = logs_refresh(&p->logs, &head);
        if (code) return code;
        drain(p, first && p->tail > 0);
        first = false;
        if (head.terminal || p->cli->io.out_closed) break;
        if (follow_need(&follow, &head) != NEED_NOTHING && args_has(&p->cli->args, FLAG_EXIT_ON_WAIT)) break;
        follow_sleep(&follow, p->printed != before, INT64_MAX);
    } while (true);
    finish_line(p);
    tell_states(p);
    return exit_of_status(head.summary.status);
}

static int check_step(struct session *session, const struct target *target)
{
    struct cli *cli = session->cli;
    struct card card SCOPED(card_release) = {0};
    if (target->step.len == 0) return EXIT_OK;
    int code = card_load(session, &target->head, TARGET_NOW, &card);
    if (!code && !card_has_step(session, &card, target->step)) code = EXIT_NOT_FOUND;
    const struct step_view *step = code ? NULL : view_step(&card.view, target->step);
    if (step && target->attempt > step->logical) {
        code = cli_fail(cli, EXIT_NOT_FOUND, "%.*s has no attempt %u", STR_ARG(target->step), target->attempt);
        cli_hint(cli, "it has %u", step->logical);
    }
    return code;
}

static int prepare(struct printer *p, struct cli *cli)
{
    int64_t tail;
    struct str stream = args_text(&cli->args, FLAG_STREAM, "");
    p->jsonl = format_of(cli, FORMAT_TEXT) == FORMAT_JSONL;
    p->grouped = args_has(&cli->args, FLAG_GROUPED);
    p->stamps = args_has(&cli->args, FLAG_TIME);
    p->streams[0] = !str_is(stream, "stderr");
    p->streams[1] = !str_is(stream, "stdout");
    if (p->grouped && args_has(&cli->args, FLAG_FOLLOW)) {
        cli_fail(cli, EXIT_USAGE, "--grouped cannot follow: a group is shown when it is whole");
        return cli_hint(cli, "leave out -f or --grouped");
    }
    if (!args_int(&cli->args, FLAG_TAIL, 1, 1000000, 0, &cli->io.arena, &tail)) return cli_usage(cli);
    if (!time_flag(cli, FLAG_SINCE, &p->since_ms)) return EXIT_USAGE;
    p->tail = (uint64_t)tail;
    p->ring = ARENA_ARRAY(&cli->io.arena, (size_t)tail, struct str);
    return p->ring ? EXIT_OK : cli_nomem(cli);
}

int command_logs(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct target target;
    struct printer p = {.cli = cli};
    int code = session_open(&session, cli, STORE_READ);
    if (!code) code = target_find(&session, cli->args.words[0], TARGET_STEP | TARGET_ATTEMPT, &target);
    if (!code) code = prepare(&p, cli);
    if (!code) code = check_step(&session, &target);
    if (!code) {
        buf_init(&p.out, TEXT_MAX);
        arena_init(&p.scratch, 64 * 1024, 1 << 24);
        code = logs_open(&p.logs, &session, &target, args_has(&cli->args, FLAG_CHILDREN));
        if (!code && args_has(&cli->args, FLAG_FOLLOW)) expect_labels(&p, &target);
        if (!code) code = args_has(&cli->args, FLAG_FOLLOW) ? show_and_follow(&p) : show_now(&p);
        logs_close(&p.logs);
        buf_release(&p.out);
        arena_release(&p.scratch);
    }
    return code;
}
