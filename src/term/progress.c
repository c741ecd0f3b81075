#include "term/progress.h"
#include "term/text.h"

#include "base/civil.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum progress_mode progress_mode(const struct console *console, struct str how)
{
    if (str_is(how, "tree")) return PROGRESS_TREE;
    if (str_is(how, "plain")) return PROGRESS_PLAIN;
    if (str_is(how, "json")) return PROGRESS_JSON;
    if (str_is(how, "none") || console->quiet) return PROGRESS_NONE;
    const char *ci = getenv("CI"), *still = getenv("CAIRN_NO_ANIMATION"), *term = getenv("TERM");
    bool moves = console->err.tty && !(ci && ci[0]) && !(still && still[0]) && !(term && strcmp(term, "dumb") == 0);
    return moves ? PROGRESS_TREE : PROGRESS_PLAIN;
}

bool progress_open(struct progress *progress, struct console *console, enum progress_mode mode)
{
    *progress = (struct progress){.console = console, .mode = mode};
    buf_init(&progress->line, (size_t)8 << 20);
    arena_init(&progress->scratch, 16 * 1024, (size_t)64 << 20);
    if (mode == PROGRESS_TREE) progress->tree = tree_open(console);
    return mode != PROGRESS_TREE || progress->tree != NULL;
}

void progress_close(struct progress *progress)
{
    if (progress->tree) tree_close(progress->tree);
    progress->tree = NULL;
    buf_release(&progress->line);
    arena_release(&progress->scratch);
}

// What a moment is called in a plain line; NULL: not worth a line.
static const char *word_of(enum moment_kind kind)
{
    static const char *const words[MOMENT_COUNT] = {
        [MOMENT_RUN_QUEUED] = "QUEUED",        [MOMENT_RUN_APPROVED] = "APPROVED",
        [MOMENT_RUN_STARTED] = "RUNNING",      [MOMENT_STEP_DELAYED] = "DELAYED",
        [MOMENT_STEP_STARTED] = "RUNNING",     [MOMENT_STEP_REDISPATCHED] = "REDISPATCHED",
        [MOMENT_ATTEMPT_FAILED] = "FAILED",    [MOMENT_STEP_COMPLETED] = "SUCCESS",
        [MOMENT_STEP_FAILED] = "FAILED",       [MOMENT_STEP_SKIPPED] = "SKIPPED",
        [MOMENT_SIGNAL_ACCEPTED] = "ACCEPTED", [MOMENT_SIGNAL_REJECTED] = "REJECTED",
        [MOMENT_RUN_PAUSED] = "PAUSED",        [MOMENT_RUN_RESUMED] = "RUNNING",
        [MOMENT_RUN_CANCELLED] = "CANCELLED",  [MOMENT_RUN_COMPLETED] = "COMPLETED",
        [MOMENT_RUN_FAILED] = "FAILED",
    };
    return words[kind];
}

static void add_field(struct buf *out, const char *key, struct str value)
{
    if (value.len == 0) return;
    buf_printf(out, " %s=", key);
    bool bare = true;
    for (size_t i = 0; i < value.len && bare; i++)
        bare = isalnum((unsigned char)value.ptr[i]) || strchr("._-:/[]@+", value.ptr[i]);
    if (bare)
        buf_add(out, value);
    else
        json_write_string(out, value);
}

static void add_duration(struct buf *out, const char *key, int64_t ms)
{
    char text[24];
    duration_format(ms, text);
    buf_printf(out, " %s=%s", key, text);
}

static void add_start(struct buf *out, const struct moment *moment)
{
    if (!moment->start) return;
    add_field(out, "name", moment->start->name);
    add_field(out, "parent", moment->start->parent_run);
    add_field(out, "original", moment->start->original_run);
}

static bool is_signal(enum moment_kind kind)
{
    return kind == MOMENT_SIGNAL_ACCEPTED || kind == MOMENT_SIGNAL_REJECTED;
}

static void plain_begin(struct progress *progress, int64_t at_ms, struct str run)
{
    char time[CIVIL_SIZE];
    civil_format(at_ms, time);
    buf_clear(&progress->line);
    buf_printf(&progress->line, "%s ", time);
    text_safe(&progress->line, run);
}

static void plain_end(struct progress *progress)
{
    struct buf safe SCOPED(buf_release) = buf_of((size_t)8 << 20);
    text_safe(&safe, buf_str(&progress->line));
    buf_byte(&safe, '\n');
    console_talk(progress->console, &safe);
}

// What a person has to do before the run goes on; a log of lines is often all that is seen of it.
static void add_next(struct progress *progress, const struct engine_event *event)
{
    const struct moment *m = event->moment;
    const struct run *run = event->state;
    struct console *console = progress->console;
    const char *next = NULL;
    uint32_t step = m->step.len > 0 ? kernel_find(run, m->step) : PROGRAM_TOP;
    bool begins = m->kind == MOMENT_STEP_STARTED || m->kind == MOMENT_STEP_REDISPATCHED;
    if (begins && !progress->approves && step != PROGRAM_TOP && run->program->steps[step].kind == STEP_APPROVAL)
        next = console_command(console, "approve %.*s/%.*s", STR_ARG(event->run), STR_ARG(m->step));
    if (m->kind == MOMENT_STEP_FAILED && step != PROGRAM_TOP && kernel_state(run, step) == NODE_HELD)
        next = console_command(console, "retry %.*s/%.*s", STR_ARG(event->run), STR_ARG(m->step));
    if (m->kind == MOMENT_RUN_QUEUED && run->status == RUN_STATUS_PENDING && run->start.requires_approval)
        next = console_command(console, "approve %.*s", STR_ARG(event->run));
    if (next) add_field(&progress->line, "next", str_from(next));
}

static void plain_event(struct progress *progress, const struct engine_event *event)
{
    const struct moment *m = event->moment;
    const char *word = word_of(m->kind);
    struct buf *out = &progress->line;
    uint32_t place = m->task.len > 0 ? kernel_find(event->state, m->step) : PROGRAM_TOP;
    // The end of a step names the attempt that it ended with.
    bool last =
        m->kind == MOMENT_ATTEMPT_FAILED && place != PROGRAM_TOP && kernel_state(event->state, place) == NODE_FAILED;
    if (!word || last) return;
    plain_begin(progress, m->at_ms, event->run);
    add_field(out, "step", m->step);
    if (m->kind == MOMENT_ATTEMPT_FAILED) add_field(out, "task", m->task);
    add_field(out, "signal", m->signal_type);
    add_field(out, is_signal(m->kind) ? "decision" : "status", str_from(word));
    bool attempts = moment_is_step(m->kind) && m->kind != MOMENT_STEP_SKIPPED && m->logical > 0;
    if (attempts) buf_printf(out, " attempt=%u", m->logical);
    if (attempts && m->engine > 1) buf_printf(out, " redispatch=%u", m->engine - 1);
    if (m->fault.has_exit) buf_printf(out, " exit=%d", m->fault.exit_code);
    add_field(out, "code", m->fault.code);
    if (m->kind == MOMENT_STEP_COMPLETED || m->kind == MOMENT_STEP_FAILED || m->kind == MOMENT_ATTEMPT_FAILED ||
        moment_is_terminal(m->kind))
        add_duration(out, "took", m->duration_ms);
    if (m->due_ms > m->at_ms)
        add_duration(out, m->kind == MOMENT_STEP_DELAYED ? "again_in" : "until", m->due_ms - m->at_ms);
    add_start(out, m);
    if (m->kind == MOMENT_STEP_COMPLETED && m->truncated)
        buf_printf(out, " output_cut_to=%llu", (unsigned long long)output_kept(&m->value, m->has_blob, m->blob_size));
    add_field(out, m->kind == MOMENT_STEP_COMPLETED ? "reused_from" : "child", m->run_ref);
    add_field(out, "by", m->actor);
    add_field(out, m->kind == MOMENT_RUN_FAILED ? "failed_step" : "reason", m->reason);
    add_field(out, "detail", m->detail);
    add_field(out, "message", m->fault.message);
    add_next(progress, event);
    plain_end(progress);
}

// "STEP_STARTED" -> "dev.cairn.step.started.v1"
static struct str event_type(struct arena *arena, enum moment_kind kind)
{
    char text[96];
    int len = snprintf(text, sizeof(text), "dev.cairn.%s.v1", moment_name(kind));
    for (int i = 10; i < len; i++) text[i] = text[i] == '_' ? '.' : (char)tolower((unsigned char)text[i]);
    return arena_copy(arena, str_from(text));
}

static bool put_text(struct arena *arena, struct json *object, const char *key, struct str text)
{
    if (text.len == 0) return true;
    struct str copy = arena_copy(arena, text);
    return copy.ptr && json_put(arena, object, str_from(key), json_string(copy));
}

static bool event_data(struct arena *arena, const struct engine_event *event, struct json *out)
{
    struct error err = {0};
    struct str bytes = event->item->bytes;
    if (bytes.len == 0 && contract_encode_ledger(event->moment, arena, &bytes, &err)) return false;
    return json_parse(bytes, &json_limits_record, arena, out, &err) == OK;
}

static bool event_json(struct arena *arena, const struct engine_event *event, struct json *out)
{
    const struct moment *m = event->moment;
    const struct run_ids *ids = &event->state->ids;
    char id[300], source[600], sequence[32], emitted[CIVIL_SIZE], stored[CIVIL_SIZE];
    struct json data;
    if (event->item->event_id[0])
        snprintf(id, sizeof(id), "%s", event->item->event_id);
    else
        snprintf(id, sizeof(id), "%llu.%s.%.*s.%u.%u", (unsigned long long)event->item->seq, moment_name(m->kind),
                 STR_ARG(m->step), m->logical, m->engine);
    snprintf(source, sizeof(source), "/t/%.*s/p/%.*s/runs/%.*s", STR_ARG(ids->tenant), STR_ARG(ids->project),
             STR_ARG(event->run));
    snprintf(sequence, sizeof(sequence), "%012llu", (unsigned long long)event->item->seq);
    civil_format(m->at_ms, emitted);
    civil_format(event->item->persisted_ms, stored);
    *out = json_object();
    return put_text(arena, out, "specversion", STR("1.0")) && put_text(arena, out, "id", str_from(id)) &&
           put_text(arena, out, "source", str_from(source)) &&
           put_text(arena, out, "type", event_type(arena, m->kind)) && put_text(arena, out, "subject", m->step) &&
           put_text(arena, out, "time", str_from(emitted)) && put_text(arena, out, "recordedtime", str_from(stored)) &&
           put_text(arena, out, "sequence", str_from(sequence)) && put_text(arena, out, "partitionkey", event->run) &&
           put_text(arena, out, "datacontenttype", STR("application/json")) && event_data(arena, event, &data) &&
           json_put(arena, out, STR("data"), data);
}

void progress_event(struct progress *progress, const struct engine_event *event)
{
    struct json json;
    switch (progress->mode) {
    case PROGRESS_NONE:
        break;
    case PROGRESS_PLAIN:
        plain_event(progress, event);
        break;
    case PROGRESS_JSON:
        arena_reset(&progress->scratch);
        if (event_json(&progress->scratch, event, &json)) print_json(progress->console, FORMAT_JSONL, &json);
        break;
    case PROGRESS_TREE:
        tree_event(progress->tree, event);
        break;
    }
}

void progress_attach(struct progress *progress, const struct run *run)
{
    if (progress->mode == PROGRESS_TREE) tree_attach(progress->tree, run);
}

void progress_output(struct progress *progress, struct str run, struct str step, bool is_stderr, struct str line)
{
    if (progress->mode == PROGRESS_TREE) tree_output(progress->tree, run, step, line);
    if (progress->mode != PROGRESS_PLAIN || progress->console->verbose == 0) return;
    plain_begin(progress, os_now().wall_ms, run);
    add_field(&progress->line, "step", step);
    buf_printf(&progress->line, " stream=%s | ", is_stderr ? "stderr" : "stdout");
    buf_add(&progress->line, line);
    plain_end(progress);
}

void progress_tick(struct progress *progress, int64_t now_ms)
{
    if (progress->mode == PROGRESS_TREE) tree_draw(progress->tree, now_ms);
}

void progress_places(struct progress *progress, const struct engine *engine)
{
    if (progress->mode == PROGRESS_TREE) engine_places(engine, tree_place, progress->tree);
}

void progress_say(struct progress *progress, const char *format, ...)
{
    char text[1024];
    if (progress->console->quiet || progress->mode == PROGRESS_NONE) return;
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    if (progress->tree) tree_erase(progress->tree);
    console_note(progress->console, "%s", text);
}
