#include "cli/commands.h"
#include "cli/select.h"

enum { PAGE_DEFAULT = 50, PAGE_MAX = 500 };

static const struct column columns[] = {
    {"runId", "RUN", CELL_RUN, false, 36},          {"status", "STATUS", CELL_STATUS, false, 0},
    {"substatus", "", CELL_TEXT, false, 0},         {"planId", "PLAN", CELL_TEXT, false, 32},
    {"progress", "STEPS", CELL_TEXT, false, 0},     {"createdAt", "CREATED", CELL_TIME, false, 0},
    {"durationMs", "TOOK", CELL_MS, false, 0},      {"cause", "CAUSE", CELL_TEXT, false, 60},
    {"planVersion", "VERSION", CELL_TEXT, true, 0}, {"name", "NAME", CELL_TEXT, true, 0},
    {"running", "RUNNING", CELL_NUMBER, true, 0},   {"startedAt", "STARTED", CELL_TIME, true, 0},
    {"endedAt", "ENDED", CELL_TIME, true, 0},       {"lastSeq", "EVENTS", CELL_NUMBER, true, 0},
    {"projectId", "PROJECT", CELL_TEXT, true, 0},   {"environmentId", "ENVIRONMENT", CELL_TEXT, true, 0},
    {"parentRunId", "PARENT", CELL_TEXT, true, 0},  {"originalRunId", "RETRY OF", CELL_TEXT, true, 0},
    {"ownerPid", "OWNER", CELL_NUMBER, true, 0},
};

static int print_pages(struct session *session, struct select *selection, struct list *list, size_t limit)
{
    struct cli *cli = session->cli;
    size_t left = args_has(&cli->args, FLAG_ALL) ? SIZE_MAX : limit;
    struct arena command = cli->io.arena; // pages live one after the other in an arena of their own
    int code = EXIT_OK;
    arena_init(&cli->io.arena, 64 * 1024, (size_t)1 << 30);
    do {
        struct run_heads heads = {0};
        struct json rows = json_array();
        arena_reset(&cli->io.arena);
        code = selection_page(session, selection, left < PAGE_MAX ? left : PAGE_MAX, &cli->io.arena, &heads);
        for (size_t i = 0; !code && i < heads.count; i++) {
            struct json row;
            if (!reading_row(&heads.items[i], cli->io.now_ms, &cli->io.arena, &row) ||
                !json_push(&cli->io.arena, &rows, row))
                code = cli_nomem(cli);
        }
        if (code) break;
        list_page(list, &rows);
        left -= heads.count < left ? heads.count : left;
    } while (left > 0 && selection->filter.before != 0 && !cli->io.out_closed);
    arena_release(&cli->io.arena);
    cli->io.arena = command;
    return code;
}

static void explain_end(struct session *session, const struct select *selection, const struct list *list)
{
    struct cli *cli = session->cli;
    if (!cli->io.err.tty) return;
    if (list->row_count == 0)
        cli_note(cli, session->store ? "no such runs in %s" : "nothing has been run yet (%s)", session->url);
    else if (!args_has(&cli->args, FLAG_ALL) && !args_has(&cli->args, FLAG_LIMIT) && selection->filter.before != 0)
        cli_note(cli, "there are more: --limit N or --all");
}

int command_ls(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct select selection SCOPED(select_close) = {0};
    struct list list;
    int64_t limit;
    int code = session_open(&session, cli, STORE_READ);
    if (code) return code;
    code = selection_open(&selection, &session, query_words(cli));
    if (!code && !args_int(&cli->args, FLAG_LIMIT, 1, INT32_MAX, PAGE_DEFAULT, &cli->io.arena, &limit))
        code = cli_usage(cli);
    if (!code && !list_open(&list, cli, columns, ARRAY_COUNT(columns), "runId")) code = EXIT_USAGE;
    if (!code) {
        code = print_pages(&session, &selection, &list, (size_t)limit);
        list_close(&list);
        if (!code) explain_end(&session, &selection, &list);
    }
    return code;
}
