// One step as people read it: what it was given, what came out, each attempt, the end of its log.
#include "cli/card.h"
#include "cli/logs.h"
#include "term/text.h"

#include "author/author.h"
#include "base/civil.h"
#include "engine/engine.h"

#include <string.h>

enum { VALUE_LINES = 20, LOG_LINES = 10 };

// ---- what it was given: the run folded up to the start of the attempt

struct rendering {
    struct session *session;
    struct run *run;
    struct str step;
    uint32_t logical; // 0: it never started
    uint64_t at;
    bool reached;
    struct error err;
};

static enum code fold_until(void *context, const struct record *record, const struct moment *moment,
                            const struct seal *seal)
{
    struct rendering *r = context;
    (void)seal;
    if (!moment || r->reached || record->seq > r->at) return OK;
    r->reached = r->logical && (moment->kind == MOMENT_STEP_STARTED || moment->kind == MOMENT_STEP_REDISPATCHED) &&
                 moment->logical == r->logical && str_eq(moment->step, r->step);
    return kernel_fold(r->run, moment, &r->err);
}

static enum code read_blob(void *context, const struct digest *sha256, struct arena *arena, struct str *out,
                           struct error *err)
{
    return store_blob(((struct session *)context)->store, sha256, arena, out, err);
}

static const struct program_step *find_step(const struct card *card, struct str path, uint32_t *index)
{
    struct run *run = card->program ? run_new(card->program, &card->head.ids) : NULL;
    *index = run ? kernel_find(run, path) : PROGRAM_TOP;
    if (run) run_free(run);
    return *index == PROGRAM_TOP ? NULL : &card->program->steps[*index];
}

const struct json *step_inputs(struct session *session, const struct card *card, const struct step_view *step,
                               uint32_t logical, bool *rendered)
{
    struct cli *cli = session->cli;
    struct error err = {0};
    uint32_t index;
    const struct program_step *declared = find_step(card, step->id, &index);
    struct json *out = ARENA_NEW(&cli->io.arena, struct json), borrowed;
    *rendered = false;
    if (!declared || !out) return NULL;
    struct rendering r = {.session = session, .step = step->id, .logical = logical, .at = card->view.last_seq};
    r.run = run_new(card->program, &card->head.ids);
    const struct kernel_env env = {.context = session, .blob = read_blob};
    if (r.run) r.run->env = &env;
    const struct run_ids *ids = &card->head.ids;
    *rendered = r.run && store_replay(session->store, ids->tenant, ids->run, fold_until, &r, &err) == OK &&
                kernel_render(r.run, index, &env, &cli->io.arena, &borrowed, &err) == OK &&
                json_copy(&cli->io.arena, &borrowed, out); // a lone reference is a value of the run
    if (r.run) run_free(r.run);
    return *rendered ? out : &declared->with;
}

// ---- text

static void write_value(struct buf *out, const struct json *value)
{
    struct buf text;
    size_t lines = 0;
    buf_init(&text, TEXT_MAX);
    if (value->type == JSON_STRING)
        buf_add(&text, value->text);
    else
        yaml_write(&text, value);
    struct str rest = str_trim(buf_str(&text));
    while (rest.len > 0 && lines++ < VALUE_LINES) {
        buf_text(out, "  ");
        text_safe(out, str_cut(rest, '\n', &rest));
        buf_byte(out, '\n');
    }
    if (lines == 0) buf_text(out, "  (empty)\n");
    if (rest.len > 0) buf_printf(out, "  ... %zu bytes more: -o json\n", rest.len);
    buf_release(&text);
}

static void heading(struct buf *out, const struct term *term, const char *text)
{
    buf_byte(out, '\n');
    tone_text(out, term, TONE_BOLD, text);
    buf_byte(out, '\n');
}

static void write_attempt(struct cli *cli, struct buf *out, const struct term *term, const struct card *card,
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
    if (attempt->started_ms > 0 && until >= attempt->started_ms) duration_format(until - attempt->started_ms, took);
    buf_printf(out, "  %6s  ", took);
    if (attempt->started_ms > 0) time_text(out, &cli->io, attempt->started_ms);
    if (attempt->fault.code.len) {
        buf_text(out, "  ");
        fault_line(out, &attempt->fault);
    }
    if (superseded) buf_text(out, "  its engine died; it was started again");
    buf_byte(out, '\n');
}

static void write_log_tail(struct session *session, struct buf *out, const struct term *term, const struct card *card,
                           const struct step_view *step, uint32_t logical)
{
    struct logs logs;
    struct run_head head;
    struct log_source *source;
    struct tool_log_line line;
    struct buf tail[LOG_LINES];
    size_t count = 0;
    struct target target = {.head = card->head, .step = step->id, .attempt = logical, .at = TARGET_NOW};
    struct str dir;
    if (store_logs_dir(session->store, &card->head.ids, &session->cli->io.arena, &dir) || dir.len == 0) return;
    for (size_t i = 0; i < LOG_LINES; i++) buf_init(&tail[i], TEXT_MAX);
    if (logs_open(&logs, session, &target, false) == EXIT_OK && logs_refresh(&logs, &head) == EXIT_OK) {
        while (logs_next(&logs, &source, &line)) {
            if (card->past && line.at_ms > card->now_ms) continue;
            struct buf *slot = &tail[count++ % LOG_LINES];
            buf_clear(slot);
            text_safe(slot, line.text);
        }
    }
    if (count > 0) heading(out, term, count > LOG_LINES ? "log, last lines" : "log");
    for (size_t i = count > LOG_LINES ? count - LOG_LINES : 0; i < count; i++)
        buf_printf(out, "  %s\n", tail[i % LOG_LINES].ptr);
    for (size_t i = 0; i < LOG_LINES; i++) buf_release(&tail[i]);
    logs_close(&logs);
}

static void write_needs(struct buf *out, const struct term *term, const struct card *card, uint32_t index,
                        struct str path)
{
    const struct program_step *declared = &card->program->steps[index];
    size_t last = path.len; // steps that it needs are in its scope: the same path up to the last dot
    while (last > 0 && path.ptr[last - 1] != ']') last--;
    if (declared->dep_count == 0) return;
    card_label(out, term, "needs");
    for (uint32_t i = 0; i < declared->dep_count; i++) {
        struct str id = card->program->steps[declared->deps[i]].id;
        struct buf name;
        buf_init(&name, 1024);
        if (last) buf_printf(&name, "%.*s.", (int)last, path.ptr);
        buf_add(&name, id);
        const struct step_view *need = view_step(&card->view, buf_str(&name));
        if (i) buf_text(out, ", ");
        text_safe(out, id);
        buf_printf(out, " (%s)", look_word(need ? look_in_run(&card->view, need) : LOOK_WAITING));
        buf_release(&name);
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
    if (step->loop.told) {
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

static void write_refs(struct cli *cli, struct buf *out, const struct term *term, const struct step_view *step)
{
    if (step->child_run.len) {
        card_label(out, term, "child run");
        buf_printf(out, "%.*s   %s\n", STR_ARG(step->child_run),
                   cli_command(cli, "get %.*s", STR_ARG(step->child_run)));
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
        time_text(out, &cli->io, step->due_ms);
        buf_byte(out, '\n');
    }
}

static void write_next_steps(struct session *session, struct buf *out, const struct card *card,
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
        if (!command_find(str_from(verbs[i])) || (i == 0 && card->past)) continue;
        buf_printf(out, "%s%s\n", before,
                   cli_command(session->cli, "%s %.*s/%.*s", verbs[i], STR_ARG(card->head.ids.run), STR_ARG(step->id)));
        before = "        ";
    }
}

void step_card_write(struct session *session, struct buf *out, const struct term *term, const struct card *card,
                     const struct step_view *step, uint32_t attempt)
{
    struct cli *cli = session->cli;
    uint32_t index;
    const struct program_step *declared = find_step(card, step->id, &index);
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
    if (declared) write_needs(out, term, card, index, step->id);
    write_tasks(out, term, step);
    write_refs(cli, out, term, step);
    bool rendered;
    const struct json *inputs = step_inputs(session, card, step, attempt ? attempt : step->logical, &rendered);
    if (inputs && inputs->type == JSON_OBJECT && inputs->count > 0) {
        heading(out, term, rendered ? "inputs" : "inputs, as written");
        write_value(out, inputs);
    }
    bool last = !attempt || attempt == step->logical;
    if (last && (step->value.type || step->has_blob)) heading(out, term, "output");
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
            write_attempt(cli, out, term, card, step, &step->attempts[i]);
    if (step->attempt_count > 0) write_log_tail(session, out, term, card, step, attempt ? attempt : step->logical);
    if (term->tty) write_next_steps(session, out, card, step, declared);
}

// ---- data

static bool put_logs(struct session *session, const struct card *card, const struct step_view *step, uint32_t attempt,
                     struct json *out)
{
    struct cli *cli = session->cli;
    struct json files = json_array();
    struct str dir;
    if (store_logs_dir(session->store, &card->head.ids, &cli->io.arena, &dir)) return false;
    for (size_t i = 0; dir.len && i < step->attempt_count; i++) {
        char name[TOOL_LOG_NAME_SIZE];
        if (attempt && step->attempts[i].logical != attempt) continue;
        tool_log_name(step->id, step->attempts[i].logical, step->attempts[i].engine, name);
        struct str path = str_from(cli_format(cli, "%.*s/%s", STR_ARG(dir), name));
        json_append(&cli->io.arena, &files, json_string(path));
    }
    JSON_ADD(&cli->io.arena, out, {"logFiles", files});
    return json_ok(out);
}

bool step_card_json(struct session *session, const struct card *card, const struct step_view *step, uint32_t attempt,
                    struct json *out)
{
    struct cli *cli = session->cli;
    struct json run, found = {0};
    uint32_t index;
    bool rendered;
    const struct program_step *declared = find_step(card, step->id, &index);
    if (!view_json(&card->view, &cli->io.arena, &run)) return false;
    const struct json *steps = json_key(&run, "steps");
    for (uint32_t i = 0; i < steps->count; i++)
        if (str_eq(json_text(json_key(&steps->items[i], "stepId")), step->id)) found = steps->items[i];
    *out = json_object();
    for (uint32_t i = 0; found.type == JSON_OBJECT && i < found.count; i++)
        json_set(&cli->io.arena, out, found.members[i].key, found.members[i].value);
    const struct json *inputs = step_inputs(session, card, step, attempt ? attempt : step->logical, &rendered);
    struct json needs = json_array();
    for (uint32_t i = 0; declared && i < declared->dep_count; i++)
        json_append(&cli->io.arena, &needs, json_string(card->program->steps[declared->deps[i]].id));
    JSON_ADD(&cli->io.arena, out, {"runId", json_string(card->head.ids.run)},
             {"lastEventSeq", json_count(card->view.last_seq)},
             {"kind", declared ? json_word(step_kind_name(declared->kind)) : json_none()},
             {"dependsOn", json_when(declared, needs)}, {"inputs", json_ref(inputs)},
             {"inputsRendered", inputs ? json_bool(rendered) : json_none()});
    return put_logs(session, card, step, attempt, out);
}
