#include "cli/commands.h"
#include "cli/select.h"

#include "base/civil.h"

enum { PAGE_DEFAULT = 50, PAGE_MAX = 500 };

static const struct column columns[] = {
    {"runId", "RUN", CELL_TEXT, false, 36},         {"status", "STATUS", CELL_STATUS, false, 0},
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

static struct json time_json(struct cli *cli, int64_t ms)
{
    char text[CIVIL_SIZE];
    if (ms == 0) return json_null();
    civil_format(ms, text);
    return json_string(str_from(cli_format(cli, "%s", text)));
}

static struct json text_json(struct str text)
{
    return text.len ? json_string(text) : json_null();
}

static bool put(struct cli *cli, struct json *object, const char *key, struct json value)
{
    return json_put(&cli->arena, object, str_from(key), value);
}

static bool row_json(struct cli *cli, const struct run_head *head, struct json *out)
{
    const struct run_summary *s = &head->summary;
    uint32_t ended = s->counts.completed + s->counts.failed + s->counts.skipped;
    int64_t until = s->ended_ms ? s->ended_ms : cli->now_ms;
    int64_t took = s->started_ms && until >= s->started_ms ? until - s->started_ms : 0;
    *out = json_object();
    return put(cli, out, "runId", json_string(head->ids.run)) &&
           put(cli, out, "status", json_string(str_from(run_status_name(s->status)))) &&
           put(cli, out, "substatus", text_json(str_from(s->substatus))) &&
           put(cli, out, "planId", json_string(head->ids.plan_id)) &&
           put(cli, out, "planVersion", json_string(head->ids.plan_version)) &&
           put(cli, out, "name", text_json(head->name)) &&
           put(cli, out, "progress", json_string(str_from(cli_format(cli, "%u/%u", ended, s->counts.total)))) &&
           put(cli, out, "completed", json_int(s->counts.completed)) &&
           put(cli, out, "failed", json_int(s->counts.failed)) &&
           put(cli, out, "skipped", json_int(s->counts.skipped)) && put(cli, out, "total", json_int(s->counts.total)) &&
           put(cli, out, "running", json_int(s->running)) &&
           put(cli, out, "createdAt", time_json(cli, s->created_ms)) &&
           put(cli, out, "startedAt", time_json(cli, s->started_ms)) &&
           put(cli, out, "endedAt", time_json(cli, s->ended_ms)) &&
           put(cli, out, "durationMs", s->started_ms ? json_int(took) : json_null()) &&
           put(cli, out, "cause", text_json(str_from(cli_format(cli, "%s", s->cause)))) &&
           put(cli, out, "lastSeq", json_int((int64_t)head->last_seq)) &&
           put(cli, out, "tenantId", json_string(head->ids.tenant)) &&
           put(cli, out, "projectId", json_string(head->ids.project)) &&
           put(cli, out, "environmentId", json_string(head->ids.environment)) &&
           put(cli, out, "parentRunId", text_json(head->parent_run)) &&
           put(cli, out, "originalRunId", text_json(head->original_run)) &&
           put(cli, out, "ownerPid", head->owned ? json_int(head->owner_pid) : json_null());
}

static int print_pages(struct session *session, struct selection *selection, struct list *list, size_t limit)
{
    struct cli *cli = session->cli;
    size_t left = args_has(&cli->args, FLAG_ALL) ? SIZE_MAX : limit;
    struct arena command = cli->arena; // pages live one after the other in an arena of their own
    int code = EXIT_OK;
    arena_init(&cli->arena, 64 * 1024, (size_t)1 << 30);
    do {
        struct run_heads heads = {0};
        struct json rows = json_array();
        arena_reset(&cli->arena);
        code = selection_page(selection, left < PAGE_MAX ? left : PAGE_MAX, &cli->arena, &heads);
        for (size_t i = 0; !code && i < heads.count; i++) {
            struct json row;
            if (!row_json(cli, &heads.items[i], &row) || !json_push(&cli->arena, &rows, row)) code = cli_nomem(cli);
        }
        if (code) break;
        list_page(list, &rows);
        left -= heads.count < left ? heads.count : left;
    } while (left > 0 && selection->filter.before != 0 && !cli->out_closed);
    arena_release(&cli->arena);
    cli->arena = command;
    return code;
}

static void explain_end(struct session *session, const struct selection *selection, const struct list *list)
{
    struct cli *cli = session->cli;
    if (!cli->err.tty) return;
    if (list->row_count == 0)
        cli_note(cli, session->store ? "no such runs in %s" : "nothing has been run yet (%s)", session->url);
    else if (!args_has(&cli->args, FLAG_ALL) && !args_has(&cli->args, FLAG_LIMIT) && selection->filter.before != 0)
        cli_note(cli, "there are more: --limit N or --all");
}

int command_ls(struct cli *cli)
{
    struct session session;
    struct selection selection;
    struct list list;
    int64_t limit;
    int code = session_open(&session, cli, STORE_READ);
    if (code) return code;
    code = selection_open(&selection, &session, query_words(cli));
    if (!code && !args_int(&cli->args, FLAG_LIMIT, 1, INT32_MAX, PAGE_DEFAULT, &cli->arena, &limit))
        code = cli_usage(cli);
    if (!code && !list_open(&list, cli, columns, ARRAY_COUNT(columns), "runId")) code = EXIT_USAGE;
    if (!code) {
        code = print_pages(&session, &selection, &list, (size_t)limit);
        list_close(&list);
        if (!code) explain_end(&session, &selection, &list);
    }
    selection_close(&selection);
    session_close(&session);
    return code;
}
