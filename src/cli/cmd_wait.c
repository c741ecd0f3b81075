// Waiting for runs that other processes drive. The store is looked at with growing pauses; nothing is written.
#include "cli/commands.h"
#include "cli/drive.h"
#include "cli/follow.h"
#include "cli/select.h"

#include "base/civil.h"

static const struct column columns[] = {
    {"runId", "RUN", CELL_RUN, false, 36},     {"status", "STATUS", CELL_STATUS, false, 0},
    {"substatus", "", CELL_TEXT, false, 0},    {"planId", "PLAN", CELL_TEXT, false, 32},
    {"durationMs", "TOOK", CELL_MS, false, 0}, {"cause", "CAUSE", CELL_TEXT, false, 60},
    {"met", "MET", CELL_TEXT, true, 0},
};

struct waited {
    struct run_head head; // strings live in the command's arena
    struct follow follow;
    uint64_t seen_seq, seen_ledger;
    bool looked, done;
    int code;
};

struct wait {
    struct session *session;
    struct select condition; // of --for
    bool conditional;
    struct waited *runs;
    size_t count, left;
    struct list list;
};

static int print_run(struct wait *wait, const struct waited *run, bool met)
{
    struct cli *cli = wait->session->cli;
    const struct run_summary *s = &run->head.summary;
    int64_t until = s->ended_ms ? s->ended_ms : os_now().wall_ms;
    struct json rows = json_array();
    struct json row = JSON_OF(&cli->io.arena, {"runId", json_string(run->head.ids.run)},
                              {"status", json_word(run_status_name(s->status))},
                              {"substatus", json_or_null(str_from(s->substatus))},
                              {"planId", json_string(run->head.ids.plan_id)},
                              {"durationMs", s->started_ms ? json_int(until - s->started_ms) : json_null()},
                              {"cause", json_or_null(str_from(s->cause))}, {"met", json_bool(met)});
    json_append(&cli->io.arena, &rows, row);
    if (!json_ok(&rows)) return cli_nomem(cli);
    list_page(&wait->list, &rows);
    return EXIT_OK;
}

static int finish(struct wait *wait, struct waited *run, bool met, int code)
{
    run->done = true;
    run->code = code;
    wait->left--;
    return print_run(wait, run, met);
}

static int ended(struct wait *wait, struct waited *run)
{
    struct cli *cli = wait->session->cli;
    int code = exit_of_status(run->head.summary.status);
    if (!wait->conditional) return finish(wait, run, true, code);
    cli_note(cli, "%.*s has ended %s: what was waited for cannot come any more", STR_ARG(run->head.ids.run),
             run_status_name(run->head.summary.status));
    return finish(wait, run, false, code ? code : EXIT_CONFLICT);
}

// Takes what changes in a head; its names stay where they are.
static void take_head(struct waited *run, const struct run_head *head)
{
    run->head.summary = head->summary;
    run->head.terminal = head->terminal;
    run->head.owned = head->owned;
    run->head.owner_pid = head->owner_pid;
    run->head.updated_ms = head->updated_ms;
    run->head.last_seq = head->last_seq;
    run->head.last_ledger_seq = head->last_ledger_seq;
}

static int look(struct wait *wait, struct waited *run, bool *moved, bool *stuck)
{
    struct cli *cli = wait->session->cli;
    struct error err = {0};
    struct run_head head;
    const struct run_ids *ids = &run->head.ids;
    struct arena scratch SCOPED(arena_release) = arena_of(4096, 1 << 20);
    enum code rc = store_head(wait->session->store, ids->tenant, ids->run, &scratch, &head, &err);
    if (!rc) take_head(run, &head);
    if (rc) return cli_error(cli, &err);
    bool changed = !run->looked || run->seen_seq != run->head.last_seq || run->seen_ledger != run->head.last_ledger_seq;
    run->looked = true;
    run->seen_seq = run->head.last_seq;
    run->seen_ledger = run->head.last_ledger_seq;
    *moved = *moved || changed;
    if (changed && wait->conditional && select_meets(&wait->condition, &run->head))
        return finish(wait, run, true, EXIT_OK);
    if (run->head.terminal) return ended(wait, run);
    if (follow_need(&run->follow, &run->head) == NEED_NOTHING) *stuck = false;
    return EXIT_OK;
}

static int exit_code(const struct wait *wait, int otherwise)
{
    for (size_t i = 0; i < wait->count; i++)
        if (wait->runs[i].done && wait->runs[i].code) return wait->runs[i].code;
    return otherwise;
}

static int wait_loop(struct wait *wait, int64_t until_ms)
{
    struct cli *cli = wait->session->cli;
    bool any = args_has(&cli->args, FLAG_ANY), patient = !args_has(&cli->args, FLAG_EXIT_ON_WAIT);
    struct follow pace;
    follow_init(&pace, wait->session);
    for (;;) {
        bool moved = false, stuck = true;
        for (size_t i = 0; i < wait->count; i++) {
            int code = wait->runs[i].done ? EXIT_OK : look(wait, &wait->runs[i], &moved, &stuck);
            if (code) return code;
            if (any && wait->runs[i].done) return wait->runs[i].code;
        }
        if (wait->left == 0) return exit_code(wait, EXIT_OK);
        if (stuck && !patient) return EXIT_WAITING;
        if (os_now().mono_ms >= until_ms) {
            cli_fail(cli, EXIT_TIMEOUT, "%zu run%s still going", wait->left, wait->left == 1 ? " is" : "s are");
            return EXIT_TIMEOUT;
        }
        follow_sleep(&pace, moved, until_ms);
    }
}

// "step/load=done" is "step.load=done".
static struct str condition_text(struct cli *cli)
{
    struct str part;
    struct buf text = buf_of(1 << 20);
    for (size_t cursor = 0; args_next(&cli->args, FLAG_FOR, &cursor, &part);) {
        bool step = str_starts(part, STR("step/"));
        buf_printf(&text, "%s(%s%.*s)", text.len ? " " : "", step ? "step." : "",
                   STR_ARG(str_slice(part, step ? 5 : 0, part.len)));
    }
    struct str copy = buf_keep(&text, &cli->io.arena);
    return copy.ptr ? copy : STR("");
}

static int prepare(struct wait *wait, struct session *session, int64_t *until_ms)
{
    struct cli *cli = session->cli;
    struct str text = args_text(&cli->args, FLAG_TIMEOUT, "");
    int64_t timeout = 0;
    if (text.len > 0 && !duration_parse(text, &timeout)) {
        cli_fail(cli, EXIT_USAGE, "--timeout cannot be %.*s", STR_ARG(text));
        return cli_hint(cli, "30s, 5m, 2h");
    }
    *until_ms = args_has(&cli->args, FLAG_TIMEOUT) ? os_now().mono_ms + timeout : INT64_MAX;
    wait->conditional = args_has(&cli->args, FLAG_FOR);
    int code = selection_open(&wait->condition, session, condition_text(cli));
    wait->count = wait->left = cli->args.word_count;
    wait->runs = ARENA_ARRAY(&cli->io.arena, wait->count, struct waited);
    if (!code && !wait->runs) code = cli_nomem(cli);
    for (size_t i = 0; !code && i < wait->count; i++) {
        struct target target;
        code = target_find(session, cli->args.words[i], 0, &target);
        wait->runs[i].head = target.head;
        follow_init(&wait->runs[i].follow, session);
    }
    if (!code && !list_open(&wait->list, cli, columns, ARRAY_COUNT(columns), "runId")) code = EXIT_USAGE;
    return code;
}

int command_wait(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct wait wait = {0};
    int64_t until_ms = INT64_MAX;
    int code = session_open(&session, cli, STORE_READ);
    if (code) return code;
    wait.session = &session;
    code = prepare(&wait, &session, &until_ms);
    if (!code) {
        code = wait_loop(&wait, until_ms);
        list_close(&wait.list);
    }
    select_close(&wait.condition);
    return code;
}
