// One step as people read it: what it was given, what came out, each attempt, the end of its log.
#include "term/card.h"
#include "term/text.h"

#include "author/author.h"
#include "base/civil.h"

enum { VALUE_LINES = 20, VALUE_LINE_MAX = 2000 };

static void write_value(struct buf *out, const struct json *value)
{
    size_t lines = 0;
    struct buf text SCOPED(buf_release) = buf_of(TEXT_MAX);
    if (value->type == JSON_STRING)
        buf_add(&text, value->text);
    else
        yaml_write(&text, value);
    struct str rest = str_trim(buf_str(&text));
    while (rest.len > 0 && lines++ < VALUE_LINES) {
        buf_text(out, "  ");
        struct str line = str_cut(rest, '\n', &rest), shown = str_head(line, VALUE_LINE_MAX);
        text_safe(out, shown);
        if (shown.len < line.len) buf_printf(out, " ... %zu bytes more: -o json", line.len - shown.len);
        buf_byte(out, '\n');
    }
    if (lines == 0) buf_text(out, "  (empty)\n");
    if (rest.len > 0) buf_printf(out, "  ... %zu bytes more: -o json\n", rest.len);
}

static void heading(struct buf *out, const struct term *term, const char *text)
{
    buf_byte(out, '\n');
    tone_text(out, term, TONE_BOLD, text);
    buf_byte(out, '\n');
}

static void write_attempt(struct console *console, struct buf *out, const struct term *term, const struct card *card,
                          const struct step_view *step, const struct attempt_view *attempt)
{
    bool superseded = attempt + 1 < step->attempts + step->attempt_count && attempt[1].logical == attempt->logical;
    enum look look = attempt->fault.code.len ? LOOK_FAILED
                     : attempt->ended        ? LOOK_DONE
                     : superseded            ? LOOK_CANCELLED
                     : step->gate            ? LOOK_APPROVAL
                                             : LOOK_RUNNING;
    char took[24] = "";
    tone_begin(out, term, look_tone(look));
    buf_printf(out, "  %s %-9s", look_glyph(look, term->utf8), superseded ? "lost" : look_word(look));
    tone_end(out, term, look_tone(look));
    buf_printf(out, " #%u", attempt->logical);
    if (attempt->engine > 1) buf_printf(out, ".%u", attempt->engine);
    int64_t until = attempt->ended ? attempt->ended_ms : superseded ? 0 : card->now_ms;
    if (attempt->began_ms > 0 && until >= attempt->began_ms) duration_format(until - attempt->began_ms, took);
    buf_printf(out, "  %6s  ", took);
    if (attempt->started_ms > 0) time_text(out, console, attempt->started_ms);
    if (attempt->fault.code.len) {
        buf_text(out, "  ");
        fault_line(out, &attempt->fault);
    }
    if (superseded) buf_text(out, "  its engine died; it was started again");
    buf_byte(out, '\n');
}

static void write_needs(struct buf *out, const struct term *term, const struct card *card,
                        const struct program_step *declared, struct str path)
{
    size_t last = path.len; // steps that it needs are in its scope: the same path up to the last dot
    while (last > 0 && path.ptr[last - 1] != ']') last--;
    if (declared->dep_count == 0) return;
    card_label(out, term, "needs");
    for (uint32_t i = 0; i < declared->dep_count; i++) {
        struct str id = card->program->steps[declared->deps[i]].id;
        struct buf name SCOPED(buf_release) = buf_of(1024);
        if (last) buf_printf(&name, "%.*s.", (int)last, path.ptr);
        buf_add(&name, id);
        const struct step_view *need = view_step(&card->view, buf_str(&name));
        if (i) buf_text(out, ", ");
        text_safe(out, id);
        buf_printf(out, " (%s)", look_word(need ? look_in_run(&card->view, need) : LOOK_WAITING));
    }
    buf_byte(out, '\n');
}

static void write_state(struct buf *out, const struct term *term, const struct card *card, const struct step_view *step)
{
    enum look look = look_in_run(&card->view, step);
    card_label(out, term, "status");
    tone_begin(out, term, look_tone(look));
    buf_printf(out, "%s %s", look_glyph(look, term->utf8), look_word(look));
    tone_end(out, term, look_tone(look));
    if (look == LOOK_SKIPPED) {
        buf_text(out, "  ");
        text_safe(out, step->skip_reason);
        buf_text(out, step->skip_detail.len ? ": " : "");
        text_safe(out, step->skip_detail);
    }
    if (step->actor.len) {
        buf_text(out, "  by ");
        text_safe(out, step->actor);
    }
    if (step->fault.code.len && look != LOOK_RUNNING && look != LOOK_APPROVAL && look != LOOK_DONE) {
        buf_text(out, "  ");
        fault_line(out, &step->fault);
    }
    buf_byte(out, '\n');
}

static void write_tasks(struct buf *out, const struct term *term, const struct step_view *step)
{
    if (step->visit > 1) {
        card_label(out, term, "visit");
        buf_printf(out, "%u\n", step->visit);
    }
    if (step->loop.known) {
        card_label(out, term, "items");
        buf_printf(out, "%u of %u done, %u failed\n", step->loop.done, step->loop.total, step->loop.failed);
    }
    for (size_t i = 0; i < step->task_count; i++) {
        const struct task_view *task = &step->tasks[i];
        card_label(out, term, i ? "" : "tasks");
        text_safe(out, task->label);
        buf_printf(out, "  %u run%s", task->runs, task->runs == 1 ? "" : "s");
        if (task->attempts > task->runs) buf_printf(out, "  %u attempts", task->attempts);
        if (task->failed) buf_printf(out, "  %u failed", task->failed);
        if (task->fault.code.len) {
            buf_text(out, "  ");
            fault_line(out, &task->fault);
        }
        buf_byte(out, '\n');
    }
}

static void write_refs(struct console *console, struct buf *out, const struct term *term, const struct step_view *step)
{
    if (step->child_run.len) {
        card_label(out, term, "child run");
        buf_printf(out, "%.*s   %s\n", STR_ARG(step->child_run),
                   console_command(console, "get %.*s", STR_ARG(step->child_run)));
    }
    if (step->reused_from.len) {
        card_label(out, term, "reused of");
        text_safe(out, step->reused_from);
        buf_byte(out, '\n');
    }
    if (step->iteration) {
        card_label(out, term, "round");
        buf_printf(out, "%u\n", step->iteration);
    }
    if (step->due_ms) {
        card_label(out, term, step->gate ? "deadline" : "not before");
        time_text(out, console, step->due_ms);
        buf_byte(out, '\n');
    }
}

static void write_next_steps(struct console *console, struct buf *out, const struct card *card,
                             const struct step_view *step, const struct program_step *declared)
{
    enum look look = look_in_run(&card->view, step);
    bool process =
        declared && (declared->kind == STEP_SHELL || declared->kind == STEP_EXEC || declared->kind == STEP_SCRIPT);
    const char *const verbs[] = {look == LOOK_APPROVAL ? "approve"
                                 : look == LOOK_HELD   ? "retry"
                                                       : "",
                                 "why", process && step->attempt_count ? "logs" : "", "events"};
    const char *before = "\n  next: ";
    for (size_t i = 0; i < ARRAY_COUNT(verbs); i++) {
        if (!verbs[i][0] || (i == 0 && card->past)) continue;
        buf_printf(out, "%s%s\n", before,
                   console_command(console, "%s %.*s/%.*s", verbs[i], STR_ARG(card->head.ids.run), STR_ARG(step->id)));
        before = "        ";
    }
}

void step_card_write(struct console *console, struct buf *out, const struct term *term, const struct card *card,
                     const struct step_view *step, uint32_t attempt, const struct step_facts *facts)
{
    const struct program_step *declared = facts->declared;
    const struct json *inputs = facts->inputs;
    card_label(out, term, "step");
    tone_begin(out, term, TONE_BOLD);
    text_safe(out, step->id);
    tone_end(out, term, TONE_BOLD);
    if (declared) buf_printf(out, "  %s", step_kind_name(declared->kind));
    buf_byte(out, '\n');
    card_label(out, term, "run");
    text_safe(out, card->head.ids.run);
    buf_text(out, "  ");
    look_run(out, term, card->view.status);
    buf_byte(out, '\n');
    write_state(out, term, card, step);
    if (card->past) {
        card_label(out, term, "as of");
        card_moment(out, card);
    }
    if (declared) write_needs(out, term, card, declared, step->id);
    write_tasks(out, term, step);
    write_refs(console, out, term, step);
    if (inputs && inputs->type == JSON_OBJECT && inputs->count > 0) {
        heading(out, term, facts->rendered ? "inputs" : "inputs, as written");
        write_value(out, inputs);
    }
    bool last = !attempt || attempt == step->logical;
    if (last && (step->value.type || step->has_blob)) heading(out, term, "output");
    if (last && step->truncated)
        buf_printf(out, "  " OUTPUT_CUT "\n",
                   (unsigned long long)output_kept(&step->value, step->has_blob, step->blob_size));
    if (last && step->value.type) write_value(out, &step->value);
    if (last && step->has_blob)
        buf_printf(out, "  %llu bytes, kept apart: -o json shows the hash\n", (unsigned long long)step->blob_size);
    if (step->artifacts.type == JSON_ARRAY && step->artifacts.count > 0) {
        heading(out, term, "artifacts");
        write_value(out, &step->artifacts);
    }
    if (step->attempt_count > 0) heading(out, term, "attempts");
    for (size_t i = 0; i < step->attempt_count; i++)
        if (!attempt || step->attempts[i].logical == attempt)
            write_attempt(console, out, term, card, step, &step->attempts[i]);
    if (facts->tail_count > 0) heading(out, term, facts->tail_cut ? "log, last lines" : "log");
    for (size_t i = 0; i < facts->tail_count; i++) buf_printf(out, "  %s\n", facts->tail[i]);
    if (term->tty) write_next_steps(console, out, card, step, declared);
}
