// Runs that have not ended: what each does now, who drives it, and what helps when nobody does.
#include "cli/card.h"
#include "cli/commands.h"
#include "cli/follow.h"
#include "cli/select.h"
#include "term/text.h"

#include "base/civil.h"

enum { PAGE = 100, NAMED_MAX = 3 };

static const struct column columns[] = {
    {"runId", "RUN", CELL_RUN, false, 36},         {"status", "STATUS", CELL_STATUS, false, 0},
    {"planId", "PLAN", CELL_TEXT, false, 24},      {"progress", "STEPS", CELL_TEXT, false, 0},
    {"elapsedMs", "FOR", CELL_MS, false, 0},       {"owner", "OWNER", CELL_TEXT, false, 0},
    {"doing", "DOING", CELL_TEXT, false, 60},      {"next", "NEXT", CELL_TEXT, true, 0},
    {"startedAt", "STARTED", CELL_TIME, true, 0},  {"substatus", "SUBSTATUS", CELL_TEXT, true, 0},
    {"parentRunId", "PARENT", CELL_TEXT, true, 0},
};

static bool put(struct cli *cli, struct json *object, const char *key, struct json value)
{
    return json_put(&cli->io.arena, object, str_from(key), value);
}

static struct json text_json(struct cli *cli, struct str text)
{
    struct str copy = text.len ? arena_copy(&cli->io.arena, text) : (struct str){0};
    return copy.ptr ? json_string(copy) : json_null();
}

// "build 12s", "approval of deploy 4m", "load again in 3s", "load held: TIMEOUT".
static void describe(struct buf *out, const struct step_view *step, int64_t now_ms)
{
    char text[24];
    enum look look = look_of_step(step);
    if (look == LOOK_APPROVAL) buf_text(out, "approval of ");
    buf_add(out, step->id);
    if (look == LOOK_HELD) buf_printf(out, " held: %.*s", STR_ARG(step->fault.code));
    if (look == LOOK_DELAYED) {
        duration_format(step->due_ms > now_ms ? step->due_ms - now_ms : 0, text);
        buf_printf(out, " again in %s", text);
    }
    bool busy = look == LOOK_APPROVAL || look == LOOK_RUNNING;
    int64_t since = step->attempt_count ? step->attempts[step->attempt_count - 1].started_ms : step->started_ms;
    if (busy && since > 0 && now_ms >= since) {
        duration_format(now_ms - since, text);
        buf_printf(out, " %s", text);
    }
    if (busy && step->child_run.len) buf_text(out, " (child run)");
}

static bool is_busy(const struct step_view *step)
{
    enum look look = look_of_step(step);
    return look == LOOK_RUNNING || look == LOOK_APPROVAL || look == LOOK_DELAYED || look == LOOK_HELD;
}

static bool add_step(struct cli *cli, struct json *steps, const struct step_view *step)
{
    struct json entry = json_object();
    char time[CIVIL_SIZE] = "";
    if (step->started_ms) civil_format(step->started_ms, time);
    return put(cli, &entry, "stepId", text_json(cli, step->id)) &&
           put(cli, &entry, "state", json_string(str_from(look_word(look_of_step(step))))) &&
           put(cli, &entry, "attempt", json_int(step->logical)) &&
           put(cli, &entry, "startedAt", text_json(cli, str_from(time))) &&
           put(cli, &entry, "childRunId", text_json(cli, step->child_run)) && json_push(&cli->io.arena, steps, entry);
}

static bool doing_json(struct cli *cli, const struct run_view *view, bool orphan, struct json *row)
{
    struct json steps = json_array();
    struct buf text;
    size_t busy = 0;
    bool ok = true;
    buf_init(&text, 1 << 16);
    if (orphan) buf_text(&text, "orphaned");
    if (view->status == RUN_STATUS_PENDING && view->start.requires_approval) buf_text(&text, "approval of the start");
    if (view->status == RUN_STATUS_PAUSED)
        buf_printf(&text, "paused%s%.*s", view->pause_reason.len ? ": " : "", STR_ARG(view->pause_reason));
    for (size_t i = 0; ok && i < view->step_count; i++) {
        if (!is_busy(&view->steps[i])) continue;
        if (busy++ < NAMED_MAX) {
            if (text.len) buf_text(&text, orphan && busy == 1 ? " at " : ", ");
            describe(&text, &view->steps[i], cli->io.now_ms);
        }
        ok = add_step(cli, &steps, &view->steps[i]);
    }
    if (busy > NAMED_MAX) buf_printf(&text, " and %zu more", busy - NAMED_MAX);
    ok = ok && put(cli, row, "doing", text_json(cli, buf_str(&text))) && put(cli, row, "steps", steps);
    buf_release(&text);
    return ok;
}

static bool row_json(struct session *session, const struct run_head *head, const struct run_view *view,
                     struct json *row)
{
    struct cli *cli = session->cli;
    const struct run_summary *s = &head->summary;
    char time[CIVIL_SIZE] = "";
    int64_t from = s->started_ms ? s->started_ms : s->created_ms;
    uint32_t ended = s->counts.completed + s->counts.failed + s->counts.skipped;
    bool orphan = run_need(head) == NEED_OWNER;
    const char *owner = head->owned ? cli_format(cli, "pid %lld", (long long)head->owner_pid) : "nobody";
    civil_format(from, time);
    *row = json_object();
    return put(cli, row, "runId", text_json(cli, head->ids.run)) &&
           put(cli, row, "status", json_string(str_from(run_status_name(s->status)))) &&
           put(cli, row, "substatus", text_json(cli, str_from(s->substatus))) &&
           put(cli, row, "planId", text_json(cli, head->ids.plan_id)) &&
           put(cli, row, "progress", json_string(str_from(cli_format(cli, "%u/%u", ended, s->counts.total)))) &&
           put(cli, row, "startedAt", text_json(cli, str_from(time))) &&
           put(cli, row, "elapsedMs", json_int(cli->io.now_ms > from ? cli->io.now_ms - from : 0)) &&
           put(cli, row, "owner", json_string(str_from(owner))) &&
           put(cli, row, "ownerPid", head->owned ? json_int(head->owner_pid) : json_null()) &&
           put(cli, row, "orphaned", json_bool(orphan)) && doing_json(cli, view, orphan, row) &&
           put(cli, row, "next", text_json(cli, str_from(need_command(cli, head)))) &&
           put(cli, row, "parentRunId", text_json(cli, head->parent_run));
}

static int print_run(struct session *session, const struct run_head *head, struct json *rows)
{
    struct card card;
    struct json row;
    int code = card_load(session, head, TARGET_NOW, &card);
    bool ok = !code && row_json(session, head, &card.view, &row) && json_push(&session->cli->io.arena, rows, row);
    card_release(&card);
    return code || ok ? code : cli_nomem(session->cli);
}

static int print_pages(struct session *session, struct select *selection, struct list *list, size_t *orphans)
{
    struct cli *cli = session->cli;
    struct arena command = cli->io.arena; // of one page
    int code = EXIT_OK;
    selection->filter.unfinished = true;
    selection->filter.roots = !args_has(&cli->args, FLAG_CHILDREN);
    arena_init(&cli->io.arena, 64 * 1024, (size_t)4 << 30);
    do {
        struct run_heads heads;
        struct json rows = json_array();
        arena_reset(&cli->io.arena);
        code = selection_page(session, selection, PAGE, &cli->io.arena, &heads);
        for (size_t i = 0; !code && i < heads.count; i++) {
            code = print_run(session, &heads.items[i], &rows);
            *orphans += run_need(&heads.items[i]) == NEED_OWNER;
        }
        if (!code) list_page(list, &rows);
    } while (!code && selection->filter.before != 0 && !cli->io.out_closed);
    arena_release(&cli->io.arena);
    cli->io.arena = command;
    return code;
}

int command_ps(struct cli *cli)
{
    struct session session;
    struct select selection;
    struct list list;
    size_t orphans = 0;
    int code = session_open(&session, cli, STORE_READ);
    if (code) return code;
    code = selection_open(&selection, &session, query_words(cli));
    if (!code && !list_open(&list, cli, columns, ARRAY_COUNT(columns), "runId")) code = EXIT_USAGE;
    if (!code) {
        code = print_pages(&session, &selection, &list, &orphans);
        list_close(&list);
        if (!code && list.row_count == 0 && cli->io.err.tty) cli_note(cli, "nothing is under way in %s", session.url);
        if (!code && orphans > 0) {
            cli_warn(cli, "%zu run%s driven by nobody: %s process is gone", orphans, orphans == 1 ? " is" : "s are",
                     orphans == 1 ? "its" : "their");
            cli_next(cli, "recover");
        }
    }
    select_close(&selection);
    session_close(&session);
    return code;
}
