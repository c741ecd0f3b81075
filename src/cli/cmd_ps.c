// Runs that have not ended: what each does now, which process drives it, and what helps when none does.
#include "cli/card.h"
#include "cli/commands.h"
#include "cli/follow.h"
#include "cli/select.h"

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

// "build 12s", "approval of deploy 4m", "load again in 3s", "load held: TIMEOUT".
static void describe(struct buf *out, const struct step_view *step, int64_t now_ms)
{
    char text[24];
    enum look look = look_of_step(step);
    if (look == LOOK_APPROVAL) buf_text(out, "approval of ");
    if (look == LOOK_QUEUED) buf_text(out, "queued ");
    buf_add(out, step->id);
    if (look == LOOK_HELD) buf_printf(out, " held: %.*s", STR_ARG(step->fault.code));
    if (look == LOOK_DELAYED) {
        duration_format(step->due_ms > now_ms ? step->due_ms - now_ms : 0, text);
        buf_printf(out, " again in %s", text);
    }
    bool busy = look == LOOK_APPROVAL || look == LOOK_RUNNING || look == LOOK_QUEUED;
    int64_t since = step->attempt_count ? step->attempts[step->attempt_count - 1].began_ms : step->began_ms;
    if (busy && since > 0 && now_ms >= since) {
        duration_format(now_ms - since, text);
        buf_printf(out, " %s", text);
    }
    if (busy && step->child_run.len) buf_text(out, " (child run)");
}

static bool is_busy(const struct step_view *step)
{
    enum look look = look_of_step(step);
    return look == LOOK_RUNNING || look == LOOK_QUEUED || look == LOOK_APPROVAL || look == LOOK_DELAYED || look == LOOK_HELD;
}

static struct json step_json(struct arena *arena, const struct step_view *step)
{
    return JSON_OF(arena, {"stepId", json_copied_or_null(arena, step->id)},
                   {"state", json_word(look_word(look_of_step(step)))}, {"attempt", json_int(step->logical)},
                   {"startedAt", json_time_or_null(arena, step->started_ms)},
                   {"childRunId", json_copied_or_null(arena, step->child_run)});
}

static void add_doing(struct cli *cli, const struct run_view *view, bool orphan, struct json *row)
{
    struct json steps = json_array();
    size_t busy = 0;
    struct buf text SCOPED(buf_release) = buf_of(1 << 16);
    if (orphan) buf_text(&text, "orphaned");
    if (view->status == RUN_STATUS_PENDING && view->start.requires_approval) buf_text(&text, "approval of the start");
    if (view->status == RUN_STATUS_PAUSED)
        buf_printf(&text, "paused%s%.*s", view->pause_reason.len ? ": " : "", STR_ARG(view->pause_reason));
    for (size_t i = 0; i < view->step_count; i++) {
        if (!is_busy(&view->steps[i])) continue;
        if (busy++ < NAMED_MAX) {
            if (text.len) buf_text(&text, orphan && busy == 1 ? " at " : ", ");
            describe(&text, &view->steps[i], cli->io.now_ms);
        }
        json_append(&cli->io.arena, &steps, step_json(&cli->io.arena, &view->steps[i]));
    }
    if (busy > NAMED_MAX) buf_printf(&text, " and %zu more", busy - NAMED_MAX);
    JSON_ADD(&cli->io.arena, row, {"doing", json_copied_or_null(&cli->io.arena, buf_str(&text))}, {"steps", steps});
}

static struct json row_json(struct session *session, const struct run_head *head, const struct run_view *view)
{
    struct cli *cli = session->cli;
    const struct run_summary *s = &head->summary;
    struct arena *arena = &cli->io.arena;
    int64_t from = s->started_ms ? s->started_ms : s->created_ms;
    uint32_t ended = s->counts.completed + s->counts.failed + s->counts.skipped;
    bool orphan = head_standing(head).need == NEED_OWNER;
    const char *owner = head->owned ? cli_format(cli, "pid %lld", (long long)head->owner_pid) : "nobody";
    struct json row = JSON_OF(arena, {"runId", json_copied_or_null(arena, head->ids.run)},
                              {"status", json_word(run_status_name(s->status))},
                              {"substatus", json_copied_or_null(arena, str_from(s->substatus))},
                              {"planId", json_copied_or_null(arena, head->ids.plan_id)},
                              {"progress", json_word(cli_format(cli, "%u/%u", ended, s->counts.total))},
                              {"startedAt", json_time(arena, from)},
                              {"elapsedMs", json_int(cli->io.now_ms > from ? cli->io.now_ms - from : 0)},
                              {"owner", json_word(owner)},
                              {"ownerPid", head->owned ? json_int(head->owner_pid) : json_null()},
                              {"orphaned", json_bool(orphan)});
    add_doing(cli, view, orphan, &row);
    JSON_ADD(arena, &row, {"next", json_copied_or_null(arena, str_from(need_command(cli, head)))},
             {"parentRunId", json_copied_or_null(arena, head->parent_run)});
    return row;
}

static int print_run(struct session *session, const struct run_head *head, struct json *rows)
{
    struct card card SCOPED(card_release) = {0};
    int code = card_load(session, head, TARGET_NOW, &card);
    if (!code) json_append(&session->cli->io.arena, rows, row_json(session, head, &card.view));
    return code || json_ok(rows) ? code : cli_nomem(session->cli);
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
            *orphans += head_standing(&heads.items[i]).need == NEED_OWNER;
        }
        if (!code) list_page(list, &rows);
    } while (!code && selection->filter.before != 0 && !cli->io.out_closed);
    arena_release(&cli->io.arena);
    cli->io.arena = command;
    return code;
}

int command_ps(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct select selection SCOPED(select_close) = {0};
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
    return code;
}
