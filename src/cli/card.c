// What is read for the cards of a run and of a step.
#include "cli/card.h"
#include "cli/logs.h"
#include "cli/present.h"
#include "term/text.h"

#include "engine/engine.h"
#include "reading/reading.h"

int card_load(struct session *session, const struct run_head *head, uint64_t at, struct card *out)
{
    struct cli *cli = session->cli;
    struct error err = {0};
    struct folded folded;
    enum code rc = reading_fold(session->store, head, at, &cli->io.arena, &folded, &err);
    if (folded.unreadable.code) cli_warn(cli, "the document of the run cannot be read: %s", folded.unreadable.message);
    *out = (struct card){.head = folded.head, .view = folded.view, .program = folded.program, .past = folded.past};
    out->url = session->url;
    out->memory = session_is_memory(session);
    if (!rc && !out->past) view_present(&out->view, run_present(session, head));
    out->now_ms = out->past ? out->view.updated_ms : cli->io.now_ms;
    return rc ? cli_error(cli, &err) : EXIT_OK;
}

void card_release(struct card *card)
{
    if (card->program) program_release(card->program);
    card->program = NULL;
}

int explained_load(struct session *session, const struct run_head *head, uint64_t at, struct str step, bool whole,
                   struct explained_run *out)
{
    struct error err = {0};
    enum code rc = reading_explain(session->store, head, at, step, whole, &session->cli->io.arena, out, &err);
    if (!rc && at == TARGET_NOW) explain_present(out->explain, run_present(session, head));
    return rc ? cli_error(session->cli, &err) : EXIT_OK;
}

bool card_has_step(struct session *session, const struct card *card, struct str step)
{
    struct cli *cli = session->cli;
    const struct run_view *view = &card->view;
    if (view_step(view, step)) return true;
    const char **names = ARENA_ARRAY(&cli->io.arena, view->step_count, const char *);
    for (size_t i = 0; names && i < view->step_count; i++) {
        struct str id = view->steps[i].id;
        if (str_starts(id, step) && (id.ptr[step.len] == '[' || id.ptr[step.len] == ':')) return true;
        names[i] = id.ptr;
    }
    const char *near = names ? nearest_name(step, names, view->step_count) : NULL;
    cli_fail(cli, EXIT_NOT_FOUND, "run %.*s has no step %.*s", STR_ARG(view->ids.run), STR_ARG(step));
    if (near) cli_hint(cli, "did you mean %s?", near);
    cli_next(cli, "get %.*s", STR_ARG(view->ids.run));
    return false;
}

// ---- what it was given

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
    struct step_given given;
    const struct given_asked asked = {.step = step->id, .logical = logical, .at = card->view.last_seq};
    struct json *out = ARENA_NEW(&cli->io.arena, struct json);
    *rendered = false;
    if (!card->program || !out) return NULL;
    if (reading_given(session->store, &card->head, card->program, &asked, &cli->io.arena, &given, &err) && !given.step) return NULL;
    *rendered = given.with.type != 0;
    *out = given.with;
    return *rendered ? out : &given.step->with;
}

enum { TAIL_LINE_MAX = 400 }; // bytes of a line; the rest of it is for `cairn logs`

// The end of the log of an attempt, up to the moment of the card.
static void read_tail(struct session *session, const struct card *card, const struct step_view *step, uint32_t logical,
                      struct step_facts *out)
{
    struct logs logs;
    struct run_head head;
    struct log_source *source;
    struct tool_log_line line;
    struct buf tail[STEP_TAIL];
    size_t count = 0;
    struct target target = {.head = card->head, .step = step->id, .attempt = logical, .at = TARGET_NOW};
    struct str dir;
    if (store_logs_dir(session->store, &card->head.ids, &session->cli->io.arena, &dir) || dir.len == 0) return;
    for (size_t i = 0; i < STEP_TAIL; i++) buf_init(&tail[i], TEXT_MAX);
    if (logs_open(&logs, session, &target, false) == EXIT_OK && logs_refresh(&logs, &head) == EXIT_OK) {
        while (logs_next(&logs, &source, &line)) {
            if (card->past && line.at_ms > card->now_ms) continue;
            struct buf *slot = &tail[count++ % STEP_TAIL];
            buf_clear(slot);
            struct str shown = str_head(line.text, TAIL_LINE_MAX);
            text_safe(slot, shown);
            if (shown.len < line.text.len) buf_printf(slot, " ... %zu bytes more: cairn logs", line.text.len - shown.len);
        }
    }
    out->tail_cut = count > STEP_TAIL;
    for (size_t i = out->tail_cut ? count - STEP_TAIL : 0; i < count; i++) {
        struct str kept = arena_copy(&session->cli->io.arena, buf_str(&tail[i % STEP_TAIL]));
        out->tail[out->tail_count++] = kept.ptr ? kept.ptr : "";
    }
    for (size_t i = 0; i < STEP_TAIL; i++) buf_release(&tail[i]);
    logs_close(&logs);
}

void step_facts_read(struct session *session, const struct card *card, const struct step_view *step, uint32_t attempt,
                     struct step_facts *out)
{
    uint32_t index, logical = attempt ? attempt : step->logical;
    *out = (struct step_facts){.declared = find_step(card, step->id, &index)};
    out->inputs = step_inputs(session, card, step, logical, &out->rendered);
    if (step->attempt_count > 0) read_tail(session, card, step, logical, out);
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
    *out = json_joined(&cli->io.arena, &found, NULL);
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
