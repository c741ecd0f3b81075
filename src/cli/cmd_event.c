// Events from outside: sent to a server, which keeps them until a step takes them.
#include "cli/at_server.h"
#include "cli/at_service.h"
#include "cli/commands.h"
#include "http/http.h"
#include "store/server.h"

#include <time.h>

enum { LOOK_MS = 50 };

static const struct column event_columns[] = {
    {"id", "EVENT", CELL_TEXT, false, 36},           {"name", "NAME", CELL_TEXT, false, 24},
    {"correlation", "OF", CELL_TEXT, false, 24},     {"state", "STATE", CELL_TEXT, false, 0},
    {"runId", "RUN", CELL_TEXT, false, 24},          {"stepId", "STEP", CELL_TEXT, false, 16},
    {"receivedAt", "RECEIVED", CELL_TIME, false, 0}, {"source", "SOURCE", CELL_TEXT, true, 24},
    {"receivedBy", "BY", CELL_TEXT, true, 24},       {"projectId", "PROJECT", CELL_TEXT, true, 16},
    {"environmentId", "ENVIRONMENT", CELL_TEXT, true, 16},
};

int command_event_ls(struct cli *cli)
{
    struct session session;
    struct list list;
    struct json rows;
    int64_t limit;
    if (!args_int(&cli->args, FLAG_LIMIT, 1, 1000, 50, &cli->io.arena, &limit)) return cli_usage(cli);
    if (!list_open(&list, cli, event_columns, ARRAY_COUNT(event_columns), "id")) return EXIT_USAGE;
    int code = server_open(&session, cli);
    if (!code) {
        const char *path = cli_format(cli, "/v1/incoming?limit=%d", (int)limit);
        if (cli->args.word_count > 0) path = cli_format(cli, "%s&name={}", path);
        code = server_all(&session, path, &rows);
        if (!code) list_page(&list, &rows);
        if (!code && rows.count == 0 && cli->io.err.tty) cli_note(cli, "there are none");
        session_close(&session);
    }
    list_close(&list);
    return code;
}

static int read_data(struct cli *cli, struct json *out)
{
    struct error err = {0};
    *out = json_none();
    if (!args_has(&cli->args, FLAG_JSON)) return EXIT_OK;
    if (json_parse(args_text(&cli->args, FLAG_JSON, ""), &json_limits_default, &cli->io.arena, out, &err))
        return cli_fail(cli, EXIT_USAGE, "--json: %s", err.message);
    return EXIT_OK;
}

static void tell(struct cli *cli, const struct json *event)
{
    enum format format = format_of(cli, FORMAT_TEXT);
    struct str id = json_text(json_key(event, "id")), run = json_text(json_key(event, "runId"));
    struct buf out SCOPED(buf_release) = buf_of(4096);
    if (format != FORMAT_TEXT && format != FORMAT_NAME) {
        print_json(&cli->io, format, event);
        return;
    }
    buf_printf(&out, "%.*s\n", STR_ARG(id));
    cli_print(cli, &out);
    if (run.len > 0)
        cli_note(cli, "taken by run %.*s, step %.*s", STR_ARG(run), STR_ARG(json_text(json_key(event, "stepId"))));
    else
        cli_note(cli, "nobody waits for it yet: it is kept");
}

// Who takes it is known a moment later, when the run has decided.
static void wait_taken(struct session *session, struct json *event)
{
    struct cli *cli = session->cli;
    struct buf text = buf_of(1024);
    buf_text(&text, "/v1/incoming/");
    http_percent_encode(&text, json_text(json_key(event, "id")));
    struct str path = buf_keep(&text, &cli->io.arena);
    for (int i = 0; path.ptr && i < 20 && !str_is(json_text(json_key(event, "state")), "DELIVERED"); i++) {
        struct json answer;
        struct error err = {0};
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
        struct server_call call = {.method = "GET", .path = path};
        if (store_server_call(session->store, &call, &cli->io.arena, &answer, &err)) break; // it may be sent and not be looked at
        *event = answer;
    }
}

int command_event_send(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct json answer, data;
    char key[UUID_SIZE];
    int code = read_data(cli, &data);
    if (!code) code = server_open(&session, cli);
    if (code) return code;
    entropy_uuid(os_entropy(), key);
    struct json body = JSON_OF(&cli->io.arena, {"name", json_string(cli->args.words[0])},
                               {"id", json_string(args_text(&cli->args, FLAG_ID, key))},
                               {"correlation", json_some(args_text(&cli->args, FLAG_CORRELATION, ""))}, {"data", data},
                               {"projectId", json_some(args_text(&cli->args, FLAG_PROJECT, ""))},
                               {"environmentId", json_some(args_text(&cli->args, FLAG_ENVIRONMENT, ""))});
    if (!json_ok(&body)) return cli_nomem(cli);
    code = server_ask(&session, "POST", STR("/v1/events"), &body, &answer);
    if (!code) wait_taken(&session, &answer);
    if (!code) tell(cli, &answer);
    return code;
}
