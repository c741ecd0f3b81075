#include "term/card.h"
#include "term/text.h"

#include "base/civil.h"

#include <stdio.h>
#include <string.h>

enum { ID_WIDTH_MAX = 40, DETAIL_LINES = 8 };

enum look look_of_step(const struct step_view *step)
{
    switch (step->status) {
    case STEP_STATUS_RUNNING:
        return step->gate ? LOOK_APPROVAL : step->queued ? LOOK_QUEUED : LOOK_RUNNING;
    case STEP_STATUS_SUCCESS:
        return LOOK_DONE;
    case STEP_STATUS_FAILED:
        return step->held ? LOOK_HELD : step->retrying ? LOOK_DELAYED : LOOK_FAILED;
    case STEP_STATUS_SKIPPED:
        return LOOK_SKIPPED;
    case STEP_STATUS_PENDING:
        return LOOK_WAITING;
    }
    return LOOK_WAITING;
}

enum look look_in_run(const struct run_view *view, const struct step_view *step)
{
    return look_at_end(look_of_step(step), str_is(step->fault.code, "CANCELLED"), view->status);
}

static void add_duration(struct buf *out, const char *before, int64_t ms)
{
    char text[24];
    duration_format(ms, text);
    buf_printf(out, "%s%s", before, text);
}

void fault_line(struct buf *out, const struct fault *fault)
{
    text_safe(out, fault->code);
    if (fault->has_exit) buf_printf(out, " exit %d", fault->exit_code);
    if (fault->message.len > 0 && !fault->has_exit) {
        buf_text(out, ": ");
        text_safe(out, fault->message);
    }
}

static void write_note(struct buf *out, const struct step_view *step, enum look look)
{
    if (step->logical > 1) buf_printf(out, "  Retry #%u", step->logical - 1); // as the contract words it (ES-1.3g)
    if (step->engine > 1) buf_printf(out, "  redispatched %u time%s", step->engine - 1, step->engine == 2 ? "" : "s");
    if (step->engine > 1 && step->status == STEP_STATUS_RUNNING && step->due_ms > 0 && !step->child_run.len)
        buf_text(out, ", rests"); // cairn why says until when
    if (step->iteration > 0) buf_printf(out, "  round %u", step->iteration);
    if (step->loop.known) buf_printf(out, "  %u of %u items", step->loop.done, step->loop.total);
    if (step->loop.failed > 0) buf_printf(out, ", %u failed", step->loop.failed);
    bool failed = look == LOOK_CANCELLED && step->fault.code.len > 0 && !str_is(step->fault.code, "CANCELLED");
    if (look == LOOK_FAILED || look == LOOK_HELD || look == LOOK_DELAYED || failed) {
        buf_text(out, "  ");
        fault_line(out, &step->fault);
    }
    if (look == LOOK_QUEUED) {
        struct str pool = json_text(json_key(step->place, "pool")), limit = json_text(json_key(step->place, "limit"));
        buf_text(out, limit.len ? "  for limit " : pool.len ? "  for a worker of pool " : "  for a slot");
        text_safe(out, limit.len ? limit : pool);
    }
    if (look == LOOK_SKIPPED) {
        buf_text(out, "  ");
        text_safe(out, step->skip_reason);
        buf_text(out, step->skip_detail.len ? ": " : "");
        text_safe(out, step->skip_detail);
    }
    if (step->actor.len > 0) {
        buf_text(out, "  by ");
        text_safe(out, step->actor);
    }
    if (step->child_run.len > 0) {
        buf_text(out, "  run ");
        text_safe(out, step->child_run);
    }
    if (step->truncated)
        buf_printf(out, "  " OUTPUT_CUT, (unsigned long long)output_kept(&step->value, step->has_blob, step->blob_size));
    if (step->reused_from.len > 0) {
        buf_text(out, "  reused from ");
        text_safe(out, step->reused_from);
    }
}

// With -o wide also when it began and what came out.
static void write_more(struct console *console, struct buf *out, const struct step_view *step)
{
    if (step->started_ms > 0) {
        buf_text(out, "  ");
        time_text(out, console, step->started_ms);
    }
    if (!step->value.type && !step->has_blob) return;
    struct buf value SCOPED(buf_release) = buf_of(TEXT_MAX);
    if (step->value.type)
        json_write(&value, &step->value);
    else
        buf_printf(&value, "(%llu bytes)", (unsigned long long)step->blob_size);
    buf_text(out, "  = ");
    text_safe(out, buf_str(&value));
}

static void write_step(struct console *console, struct buf *out, const struct term *term, const struct card *card,
                       const struct step_view *step, size_t id_width, bool wide)
{
    enum look look = look_in_run(&card->view, step);
    char took[24] = "";
    tone_begin(out, term, look_tone(look));
    buf_printf(out, "  %s %-*s", look_glyph(look, term->utf8), look_width(card->view.status), look_word(look));
    tone_end(out, term, look_tone(look));
    size_t from = out->len;
    text_safe(out, step->id);
    text_pad(out, text_width(str_slice(buf_str(out), from, out->len)), id_width);
    int64_t end = step->ended_ms ? step->ended_ms : look == LOOK_RUNNING || look == LOOK_APPROVAL ? card->now_ms : 0;
    if (step->began_ms > 0 && end >= step->began_ms) duration_format(end - step->began_ms, took);
    text_pad(out, strlen(took), 8);
    buf_text(out, took);
    write_note(out, step, look);
    if (wide) write_more(console, out, step);
    text_trim(out);
    buf_byte(out, '\n');
}

void card_label(struct buf *out, const struct term *term, const char *name)
{
    tone_text(out, term, TONE_DIM, name);
    text_pad(out, strlen(name), 10);
}

// Whether a step of a playbook was visited once more: what counts is its last visit, as in lists and in the log's own counts.
static bool is_left_behind(const struct run_view *view, const struct step_view *step)
{
    struct buf next SCOPED(buf_release) = buf_of(4096);
    char visit[24];
    if (step->visit == 0) return false;
    int own = step->visit > 1 ? snprintf(visit, sizeof(visit), ":run:%u", step->visit) : 0;
    buf_printf(&next, "%.*s:run:%u", (int)step->id.len - own, step->id.ptr, step->visit + 1);
    return buf_ok(&next) && view_step(view, buf_str(&next));
}

// Counted from the view, so that a moment of the past tells its own numbers.
static void write_counts(struct buf *out, const struct run_view *view)
{
    static const enum look order[] = {LOOK_DONE,    LOOK_FAILED,  LOOK_HELD,    LOOK_SKIPPED,   LOOK_APPROVAL,
                                      LOOK_RUNNING, LOOK_QUEUED,  LOOK_DELAYED, LOOK_WAITING, LOOK_CANCELLED, LOOK_NOT_RUN};
    uint32_t counts[LOOK_NOT_RUN + 1] = {0};
    bool first = true;
    size_t steps = 0;
    for (size_t i = 0; i < view->step_count; i++) {
        if (is_left_behind(view, &view->steps[i])) continue;
        counts[look_in_run(view, &view->steps[i])]++;
        steps++;
    }
    for (size_t i = 0; i < ARRAY_COUNT(order); i++) {
        bool idle = order[i] == LOOK_WAITING && first;
        if (counts[order[i]] == 0 || idle) continue;
        buf_printf(out, "%s%u %s", first ? "" : ", ", counts[order[i]], look_word(order[i]));
        first = false;
    }
    if (first)
        buf_printf(out, "none of %zu has started", steps);
    else
        buf_printf(out, " of %zu", steps);
    if (steps < view->step_count) buf_printf(out, ", in %zu visits", view->step_count);
}

static void write_status(struct buf *out, const struct term *term, const struct run_view *view)
{
    const char *detail = view_substatus(view);
    look_run(out, term, view->status);
    if (strcmp(detail, "DRAINING") == 0)
        buf_printf(out, "  DRAINING: %u step%s in flight", view->running_count, view->running_count == 1 ? "" : "s");
    else if (detail[0])
        buf_printf(out, "  %s", detail);
    if (view->segment > 1)
        buf_printf(out, "  segment %u (continued as new after event %llu)", view->segment,
                   (unsigned long long)view->segment_seq);
    if (view->status == RUN_STATUS_PAUSED && view->pause_reason.len > 0) {
        buf_text(out, "  ");
        text_safe(out, view->pause_reason);
    }
    if (view->status == RUN_STATUS_CANCELLED && view->cancel_reason.len > 0) {
        buf_text(out, "  ");
        text_safe(out, view->cancel_reason);
    }
}

static void write_times(struct console *console, struct buf *out, const struct term *term, const struct card *card)
{
    const struct run_view *view = &card->view;
    int64_t from = view->started_ms ? view->started_ms : view->queued_ms;
    int64_t until = view->ended_ms ? view->ended_ms : card->now_ms;
    if (from == 0) return;
    card_label(out, term, "started");
    time_text(out, console, from);
    if (until >= from) add_duration(out, view->ended_ms ? ", took " : ", for ", until - from);
    buf_byte(out, '\n');
}

// The last lines that the failed step wrote to stderr.
static void write_detail(struct buf *out, struct str detail)
{
    detail = str_trim(detail);
    size_t from = detail.len;
    for (size_t lines = 0; from > 0; from--)
        if (detail.ptr[from - 1] == '\n' && ++lines == DETAIL_LINES) break;
    detail = str_slice(detail, from, detail.len);
    while (detail.len > 0) {
        buf_text(out, "            ");
        text_safe(out, str_cut(detail, '\n', &detail));
        buf_byte(out, '\n');
    }
}

static void write_cause(struct buf *out, const struct term *term, const struct run_view *view)
{
    if (view->status != RUN_STATUS_FAILED) return;
    card_label(out, term, view->failed_step.len ? "failed at" : "failed");
    text_safe(out, view->failed_step);
    buf_text(out, view->failed_step.len ? ": " : "");
    fault_line(out, &view->fault);
    buf_byte(out, '\n');
    const struct step_view *step = view_step(view, view->failed_step);
    write_detail(out, step && step->fault.detail.len ? step->fault.detail : view->fault.detail);
}

static void write_owner(struct buf *out, const struct term *term, const struct run_head *head)
{
    if (head->terminal) return;
    card_label(out, term, "owner");
    if (head->owned)
        buf_printf(out, "process %lld\n", (long long)head->owner_pid);
    else if (head->summary.status == RUN_STATUS_PAUSED)
        buf_text(out, "nobody: `cairn resume` goes on with it\n");
    else
        buf_text(out, "nobody: `cairn recover` goes on with it\n");
}

static void next(struct buf *out, bool *first, const char *command)
{
    buf_printf(out, "%s%s\n", *first ? "  next: " : "        ", command);
    *first = false;
}

// The commands that make sense now, ready to paste.
static void write_next(struct console *console, struct buf *out, const struct card *card)
{
    const struct run_view *view = &card->view;
    struct str run = view->ids.run;
    bool first = true;
    if (view->status == RUN_STATUS_PAUSED) next(out, &first, console_command(console, "resume %.*s", STR_ARG(run)));
    if (view->status == RUN_STATUS_FAILED || view->status == RUN_STATUS_CANCELLED)
        next(out, &first, console_command(console, "retry %.*s", STR_ARG(run)));
    if (view->status == RUN_STATUS_FAILED && !card->memory)
        next(out, &first, console_command(console, "why %.*s", STR_ARG(run)));
    if (view->status == RUN_STATUS_FAILED && view->fault.has_exit && view->failed_step.len && !card->memory)
        next(out, &first, console_command(console, "logs %.*s/%.*s", STR_ARG(run), STR_ARG(view->failed_step)));
    for (size_t i = 0; !run_status_terminal(view->status) && i < view->step_count; i++) {
        const struct step_view *step = &view->steps[i];
        enum look look = look_of_step(step);
        if (look == LOOK_HELD) {
            next(out, &first, console_command(console, "retry %.*s/%.*s", STR_ARG(run), STR_ARG(step->id)));
            next(out, &first, console_command(console, "skip %.*s/%.*s --reason WHY", STR_ARG(run), STR_ARG(step->id)));
        }
        if (look == LOOK_APPROVAL) {
            next(out, &first, console_command(console, "approve %.*s/%.*s", STR_ARG(run), STR_ARG(step->id)));
            next(out, &first,
                 console_command(console, "reject %.*s/%.*s --reason WHY", STR_ARG(run), STR_ARG(step->id)));
        }
    }
    for (size_t i = 0; !run_status_terminal(view->status) && i < view->step_count; i++)
        if (view->steps[i].status == STEP_STATUS_RUNNING && view->steps[i].child_run.len > 0)
            next(out, &first, console_command(console, "get %.*s", STR_ARG(view->steps[i].child_run)));
    if (view->status == RUN_STATUS_PENDING && view->start.requires_approval)
        next(out, &first, console_command(console, "approve %.*s", STR_ARG(run)));
}

void card_moment(struct buf *out, const struct card *card)
{
    char time[CIVIL_SIZE];
    civil_format(card->view.updated_ms, time);
    buf_printf(out, "event %llu of %llu, %s\n", (unsigned long long)card->view.last_seq,
               (unsigned long long)card->head.last_seq, card->view.updated_ms ? time : "before anything happened");
}

static void write_log(struct buf *out, const struct card *card)
{
    const struct run_head *head = &card->head;
    buf_printf(out, "%llu event%s in ", (unsigned long long)head->last_seq, head->last_seq == 1 ? "" : "s");
    text_safe(out, str_from(card->url));
}

void card_write(struct console *console, struct buf *out, const struct term *term, const struct card *card, bool wide)
{
    const struct run_head *head = &card->head;
    const struct run_view *view = &card->view;
    size_t id_width = 0;
    card_label(out, term, "run");
    tone_begin(out, term, TONE_BOLD);
    text_safe(out, view->ids.run);
    tone_end(out, term, TONE_BOLD);
    buf_byte(out, '\n');
    card_label(out, term, "document");
    text_safe(out, view->ids.plan_id);
    buf_text(out, " @ ");
    text_safe(out, view->ids.plan_version);
    if (view->start.document_file.len > 0) {
        buf_text(out, "  ");
        text_safe(out, view->start.document_file);
    }
    buf_byte(out, '\n');
    if (head->original_run.len > 0) {
        card_label(out, term, view->start.forked ? "fork of" : "again of");
        text_safe(out, head->original_run);
        if (view->start.forked) buf_printf(out, "@%llu", (unsigned long long)view->start.forked_seq);
        buf_byte(out, '\n');
    }
    card_label(out, term, "status");
    write_status(out, term, view);
    buf_byte(out, '\n');
    write_cause(out, term, view);
    card_label(out, term, "steps");
    write_counts(out, view);
    buf_byte(out, '\n');
    write_times(console, out, term, card);
    if (card->past) {
        card_label(out, term, "as of");
        card_moment(out, card);
    } else {
        write_owner(out, term, head);
    }
    card_label(out, term, "log");
    write_log(out, card);
    buf_text(out, "\n\n");
    for (size_t i = 0; i < view->step_count; i++) {
        size_t width = text_width(view->steps[i].id);
        id_width = width > id_width && width <= ID_WIDTH_MAX ? width : id_width;
    }
    for (size_t i = 0; i < view->step_count; i++) write_step(console, out, term, card, &view->steps[i], id_width, wide);
    if (term->tty && card->past)
        buf_printf(out, "  now:  %s\n", console_command(console, "get %.*s", STR_ARG(view->ids.run)));
    else if (term->tty)
        write_next(console, out, card);
}

void card_summary(struct console *console, const struct card *card)
{
    const struct run_head *head = &card->head;
    const struct run_view *view = &card->view;
    if (console->quiet) return;
    struct buf out SCOPED(buf_release) = buf_of((size_t)4 << 20);
    write_status(&out, &console->err, view);
    buf_text(&out, "  ");
    write_counts(&out, view);
    if (view->ended_ms > 0 && view->started_ms > 0) add_duration(&out, "  in ", view->ended_ms - view->started_ms);
    buf_byte(&out, '\n');
    write_cause(&out, &console->err, view);
    write_next(console, &out, card);
    if (!card->memory) {
        buf_text(&out, "  log:  ");
        write_log(&out, card);
        buf_printf(&out, "\n  look: %s\n", console_command(console, "get %.*s", STR_ARG(head->ids.run)));
    }
    console_talk(console, &out);
}
