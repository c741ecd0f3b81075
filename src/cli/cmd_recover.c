// Unfinished runs whose process is gone: take all of them over, drive them together, report what became of each.
#include "cli/commands.h"
#include "cli/drive.h"

#include <string.h>

enum { PAGE = 500 };

enum fate { FATE_DRIVEN = 1, FATE_OWNED, FATE_BROKEN };

struct found {
    struct str run;
    enum fate fate;
    struct str problem;
};

struct recovery {
    struct session session;
    struct drive drive;
    struct found *runs;
    size_t count, capacity;
};

static bool add(struct recovery *recovery, const struct run_head *head)
{
    if (!ARENA_ROOM(&recovery->session.cli->io.arena, recovery->runs, recovery->count, &recovery->capacity))
        return false;
    enum fate fate = head->owned ? FATE_OWNED : FATE_DRIVEN;
    recovery->runs[recovery->count++] =
        (struct found){.run = head->ids.run, .fate = fate};
    return true;
}

static int collect_all(struct recovery *recovery)
{
    struct cli *cli = recovery->session.cli;
    struct error err = {0};
    size_t imported = 0;
    struct run_filter filter = {.tenant = recovery->session.tenant, .unfinished = true, .limit = PAGE};
    do {
        struct run_heads heads = {0};
        if (store_list(recovery->session.store, &filter, &cli->io.arena, &heads, &err)) return cli_error(cli, &err);
        for (size_t i = 0; i < heads.count; i++) {
            // It came from elsewhere and may still be running there.
            bool foreign = strcmp(heads.items[i].summary.substatus, STANDING_IMPORTED) == 0;
            imported += foreign;
            if (!foreign && !add(recovery, &heads.items[i])) return cli_nomem(cli);
        }
        filter.before = heads.next;
    } while (filter.before != 0);
    if (imported)
        cli_note(cli, "%zu imported run%s left alone; name one to go on with it here", imported,
                 imported == 1 ? " is" : "s are");
    return EXIT_OK;
}

static int collect_named(struct recovery *recovery)
{
    struct cli *cli = recovery->session.cli;
    for (size_t i = 0; i < cli->args.word_count; i++) {
        struct target target;
        int code = target_find(&recovery->session, cli->args.words[i], 0, &target);
        if (code) return code;
        if (target.head.terminal)
            cli_note(cli, "run %.*s has ended: %s", STR_ARG(target.head.ids.run),
                     run_status_name(target.head.summary.status));
        else if (!add(recovery, &target.head))
            return cli_nomem(cli);
    }
    return EXIT_OK;
}

// Oldest first, so that parents come before the runs they started.
static void adopt_all(struct recovery *recovery)
{
    struct cli *cli = recovery->session.cli;
    for (size_t i = recovery->count; i > 0; i--) {
        struct found *found = &recovery->runs[i - 1];
        struct error err = {0};
        if (found->fate != FATE_DRIVEN || engine_run(recovery->drive.engine, recovery->session.tenant, found->run))
            continue;
        enum code rc = drive_adopt(&recovery->drive, found->run, &err);
        if (rc == E_LOCKED) {
            found->fate = FATE_OWNED;
        } else if (rc && rc != E_TERMINAL) {
            found->fate = FATE_BROKEN;
            found->problem = str_from(cli_format(cli, "%s", err.message));
            cli_warn(cli, "run %.*s cannot go on: %s", STR_ARG(found->run), err.message);
            if (rc == E_UNSUPPORTED) cli_hint(cli, "give the plugin that has it: --plugin FILE");
        }
    }
}

static bool row_json(struct recovery *recovery, const struct found *found, struct json *out)
{
    static const char *const fates[] = {"", "recovered", "owned", "broken"};
    struct cli *cli = recovery->session.cli;
    const struct driven *driven = drive_find(&recovery->drive, found->run);
    const char *substatus = engine_substatus(recovery->drive.engine, recovery->session.tenant, found->run);
    bool left = found->fate == FATE_DRIVEN && driven && !driven->ended;
    *out = JSON_OF(&cli->io.arena, {"runId", json_or_null(found->run)},
                   {"result", json_or_null(str_from(left ? "left" : fates[found->fate]))},
                   {"status", json_or_null(str_from(driven ? run_status_name(driven->status) : ""))},
                   {"substatus", json_or_null(str_from(substatus))},
                   {"cause", json_or_null(driven && driven->cause.len ? driven->cause : found->problem)});
    return json_ok(out);
}

static int print_rows(struct recovery *recovery)
{
    static const struct column columns[] = {
        {"runId", "RUN", CELL_TEXT, false, 0},       {"result", "RESULT", CELL_TEXT, false, 0},
        {"status", "STATUS", CELL_STATUS, false, 0}, {"substatus", "", CELL_TEXT, false, 0},
        {"cause", "CAUSE", CELL_TEXT, false, 80},
    };
    struct cli *cli = recovery->session.cli;
    struct json rows = json_array();
    struct list list;
    if (!args_has(&cli->args, FLAG_OUTPUT)) return EXIT_OK;
    for (size_t i = recovery->count; i > 0; i--) {
        struct json row;
        if (!row_json(recovery, &recovery->runs[i - 1], &row) || !json_push(&cli->io.arena, &rows, row))
            return cli_nomem(cli);
    }
    if (!list_open(&list, cli, columns, ARRAY_COUNT(columns), "runId")) return EXIT_USAGE;
    list_page(&list, &rows);
    list_close(&list);
    return EXIT_OK;
}

struct tally {
    size_t completed, failed, cancelled, left, owned, broken;
};

static void say_left(struct recovery *recovery, const struct driven *driven)
{
    struct session *session = &recovery->session;
    const char *detail = engine_substatus(recovery->drive.engine, session->tenant, driven->run);
    const char *verb = driven->status == RUN_STATUS_PAUSED       ? "resume"
                       : strcmp(detail, "WAITING_APPROVAL") == 0 ? "approve"
                                                                 : "get";
    cli_note(session->cli, "left: %.*s  %s %s   %s", STR_ARG(driven->run), run_status_name(driven->status), detail,
             cli_command(session->cli, "%s %.*s", verb, STR_ARG(driven->run)));
}

static struct tally count(struct recovery *recovery, bool say)
{
    struct tally tally = {0};
    struct cli *cli = recovery->session.cli;
    for (size_t i = recovery->count; i > 0; i--) {
        const struct found *found = &recovery->runs[i - 1];
        const struct driven *driven = drive_find(&recovery->drive, found->run);
        tally.owned += found->fate == FATE_OWNED;
        tally.broken += found->fate == FATE_BROKEN;
        if (found->fate != FATE_DRIVEN || !driven) continue;
        tally.left += !driven->ended;
        tally.completed += driven->ended && driven->status == RUN_STATUS_COMPLETED;
        tally.cancelled += driven->ended && driven->status == RUN_STATUS_CANCELLED;
        tally.failed += driven->ended && driven->status == RUN_STATUS_FAILED;
        if (driven->ended && driven->status == RUN_STATUS_FAILED)
            cli_warn(cli, "run %.*s FAILED at %.*s", STR_ARG(driven->run), STR_ARG(driven->cause));
        if (say && !driven->ended) say_left(recovery, driven);
    }
    return tally;
}

static void say_tally(struct recovery *recovery, const struct tally *t)
{
    const struct {
        size_t count;
        const char *words;
    } parts[] = {{t->completed, "completed"},
                 {t->failed, "failed"},
                 {t->cancelled, "cancelled"},
                 {t->left, "left for a person"},
                 {t->owned, "owned by living processes"},
                 {t->broken, "broken"}};
    struct buf line SCOPED(buf_release) = buf_of(1024);
    buf_printf(&line, "%zu unfinished run%s", recovery->count, recovery->count == 1 ? "" : "s");
    for (size_t i = 0, shown = 0; i < ARRAY_COUNT(parts); i++)
        if (parts[i].count > 0) buf_printf(&line, "%s%zu %s", shown++ ? ", " : ": ", parts[i].count, parts[i].words);
    cli_note(recovery->session.cli, "%s", line.ptr);
}

static int report(struct recovery *recovery, bool say)
{
    struct tally t = count(recovery, say);
    if (say) say_tally(recovery, &t);
    if (recovery->drive.interrupt) return 128 + recovery->drive.interrupt;
    return t.broken ? EXIT_INTEGRITY : t.failed ? EXIT_RUN_FAILED : EXIT_OK;
}

static int recover(struct recovery *recovery)
{
    struct cli *cli = recovery->session.cli;
    enum progress_mode mode = progress_mode_of(cli);
    bool say = mode != PROGRESS_NONE && mode != PROGRESS_JSON;
    int code = cli->args.word_count ? collect_named(recovery) : collect_all(recovery);
    if (code) return code;
    code = drive_open(&recovery->drive, &recovery->session, mode);
    if (code) return code;
    recovery->drive.exit_on_wait = recovery->drive.patient = true;
    adopt_all(recovery);
    code = drive_loop(&recovery->drive);
    progress_close(&recovery->drive.progress);
    recovery->drive.progress.mode = PROGRESS_NONE;
    if (!code) code = print_rows(recovery);
    int end = report(recovery, say);
    drive_shut(&recovery->drive);
    return code ? code : end;
}

int command_recover(struct cli *cli)
{
    struct recovery recovery = {0};
    int code = session_open(&recovery.session, cli, STORE_READ);
    bool nothing = !code && !recovery.session.store;
    session_close(&recovery.session);
    if (nothing) cli_note(cli, "nothing has been run yet (%s)", recovery.session.url);
    if (code || nothing) return code;
    code = session_open(&recovery.session, cli, STORE_WRITE);
    if (!code) code = recover(&recovery);
    session_close(&recovery.session);
    return code;
}
