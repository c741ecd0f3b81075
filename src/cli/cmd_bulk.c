// One signal to every run that a query means: looked at first, sent so many a second, each once however often the command is given.
#include "cli/commands.h"
#include "cli/decision.h"
#include "cli/select.h"
#include "base/uuid.h"
#include "term/text.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 200, RUNS_MAX = 10000, RATE_USUAL = 10, RATE_MAX = 1000 };

struct bulk {
    struct session session;
    struct run_head *heads;
    size_t count, capacity;
    enum signal_type type;
    struct str id; // of all of it: the ids of its signals follow from this
    int64_t rate;
    size_t accepted, again, refused;
    struct json rows;
};

static const struct column bulk_columns[] = {
    {"runId", "RUN", CELL_RUN, false, 36},      {"status", "STATUS", CELL_STATUS, false, 0},
    {"planId", "PLAN", CELL_TEXT, false, 32},   {"createdAt", "CREATED", CELL_TIME, false, 0},
    {"decision", "DECISION", CELL_TEXT, false, 0}, {"errorCode", "WHY", CELL_TEXT, false, 32},
    {"newRunId", "NEW RUN", CELL_TEXT, false, 36}, {"cause", "CAUSE", CELL_TEXT, true, 60},
};

static int type_of(struct cli *cli, enum signal_type *out)
{
    static const struct {
        const char *name;
        enum signal_type type;
    } types[] = {{"pause", SIGNAL_PAUSE}, {"resume", SIGNAL_RESUME},   {"cancel", SIGNAL_CANCEL},
                 {"retry", SIGNAL_RETRY_RUN}, {"skip", SIGNAL_SKIP_STEP}, {"approve", SIGNAL_APPROVE},
                 {"reject", SIGNAL_REJECT}};
    struct str step = args_text(&cli->args, FLAG_STEP, "");
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        if (!str_is(cli->args.words[0], types[i].name)) continue;
        *out = types[i].type == SIGNAL_RETRY_RUN && step.len > 0 ? SIGNAL_RETRY_STEP : types[i].type;
        if (*out == SIGNAL_SKIP_STEP && step.len == 0) {
            cli_fail(cli, EXIT_USAGE, "skip needs --step STEP");
            return cli_hint(cli, "the step of that name is skipped in each of the runs");
        }
        return EXIT_OK;
    }
    *out = signal_parse(cli->args.words[0]);
    if (*out != SIGNAL_NONE && !signal_rule(*out)->destructive) return EXIT_OK;
    cli_fail(cli, EXIT_USAGE, *out ? "%.*s is sent to one run at a time" : "%.*s is no signal", STR_ARG(cli->args.words[0]));
    return cli_hint(cli, "retry, cancel, pause, resume, skip, approve or reject");
}

// All of them before the first is sent: what is done changes what the query means.
static int find_runs(struct bulk *bulk, struct str query, size_t max)
{
    struct cli *cli = bulk->session.cli;
    struct select selection SCOPED(select_close) = {0};
    int code = selection_open(&selection, &bulk->session, query);
    while (!code && bulk->count < max) {
        struct run_heads page = {0};
        code = selection_page(&bulk->session, &selection, PAGE, &cli->io.arena, &page);
        for (size_t i = 0; !code && i < page.count && bulk->count < max; i++) {
            if (!ARENA_ROOM(&cli->io.arena, bulk->heads, bulk->count, &bulk->capacity)) return cli_nomem(cli);
            bulk->heads[bulk->count++] = page.items[i];
        }
        if (selection.filter.before == 0) break;
    }
    return code;
}

static int add_row(struct bulk *bulk, const struct run_head *head, const char *word, const struct signal_decision *decision)
{
    struct cli *cli = bulk->session.cli;
    struct json row;
    if (!reading_row(head, cli->io.now_ms, &cli->io.arena, &row)) return cli_nomem(cli);
    JSON_ADD(&cli->io.arena, &row, {"decision", json_word(word)},
             {"errorCode", decision ? json_some(decision->error_code) : json_none()},
             {"newRunId", decision ? json_some(decision->new_run) : json_none()});
    json_append(&cli->io.arena, &bulk->rows, row);
    return json_ok(&bulk->rows) ? EXIT_OK : cli_nomem(cli);
}

// The id follows from that of the whole, the run and the step: given again, nothing is done twice.
static void name_signal(const struct bulk *bulk, const struct run_head *head, struct str step, char out[UUID_SIZE])
{
    char text[1024];
    snprintf(text, sizeof(text), "bulk|%.*s|%.*s|%.*s", STR_ARG(bulk->id), STR_ARG(head->ids.run), STR_ARG(step));
    uuid_named(str_from(text), out);
}

static int send_one(struct bulk *bulk, const struct run_head *head)
{
    struct cli *cli = bulk->session.cli;
    struct signal signal;
    struct signal_decision decision = {0};
    struct error err = {0};
    struct str step = args_text(&cli->args, FLAG_STEP, "");
    char id[UUID_SIZE];
    name_signal(bulk, head, step, id);
    signal_prepare(cli, bulk->type, step, args_text(&cli->args, FLAG_REASON, ""), &signal);
    signal.id = str_from(id);
    signal.payload = json_object();
    enum code rc = decision_post(&bulk->session, head, &signal, &decision, &err);
    if (rc == E_UNREACHABLE || rc == E_DENIED) return cli_error(cli, &err);
    if (rc) decision.error_code = arena_copy(&cli->io.arena, str_from(err.message));
    bool accepted = !rc && decision.accepted;
    bulk->again += accepted && decision.again;
    bulk->accepted += accepted;
    bulk->refused += !accepted;
    return add_row(bulk, head, accepted ? decision.again ? "BEFORE" : "ACCEPTED" : "REFUSED", &decision);
}

static void rest(const struct bulk *bulk, int64_t began_ms, size_t sent)
{
    int64_t due_ms = began_ms + (int64_t)sent * 1000 / bulk->rate, left_ms = due_ms - os_now().mono_ms;
    if (left_ms > 0)
        nanosleep(&(struct timespec){.tv_sec = (time_t)(left_ms / 1000), .tv_nsec = (long)(left_ms % 1000) * 1000000}, NULL);
}

static int agree(struct bulk *bulk)
{
    struct cli *cli = bulk->session.cli;
    char answer[8] = "";
    bool person = isatty(STDIN_FILENO) && cli->io.err.tty;
    if (args_has(&cli->args, FLAG_YES)) return EXIT_OK;
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX);
    buf_printf(&out, "%s to %zu run%s, %lld a second%s", signal_name(bulk->type), bulk->count, bulk->count == 1 ? "" : "s",
               (long long)bulk->rate, person ? ". Go on? [y/N] " : "\n");
    cli_talk(cli, &out);
    if (person && fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y')) return EXIT_OK;
    cli_fail(cli, EXIT_USAGE, person ? "nothing was sent" : "nothing was sent: many runs want --yes");
    return cli_hint(cli, "--dry-run lists them, --yes sends without asking");
}

static int send_all(struct bulk *bulk)
{
    struct cli *cli = bulk->session.cli;
    int64_t began_ms = os_now().mono_ms;
    int code = bulk->count > 0 ? agree(bulk) : EXIT_OK;
    for (size_t i = 0; !code && i < bulk->count; i++) {
        rest(bulk, began_ms, i);
        code = send_one(bulk, &bulk->heads[i]);
    }
    if (code && bulk->accepted + bulk->refused > 0)
        cli_note(cli, "it ended after %zu of %zu; the same command with --id %.*s goes on, and does nothing twice",
                 bulk->accepted + bulk->refused, bulk->count, STR_ARG(bulk->id));
    return code;
}

static int look(struct bulk *bulk)
{
    int code = EXIT_OK;
    for (size_t i = 0; !code && i < bulk->count; i++) code = add_row(bulk, &bulk->heads[i], "", NULL);
    return code;
}

static int begin(struct bulk *bulk, struct cli *cli)
{
    char id[UUID_SIZE];
    int64_t max;
    if (!args_int(&cli->args, FLAG_RATE, 1, RATE_MAX, RATE_USUAL, &cli->io.arena, &bulk->rate) ||
        !args_int(&cli->args, FLAG_LIMIT, 1, RUNS_MAX, RUNS_MAX, &cli->io.arena, &max))
        return cli_usage(cli);
    entropy_uuid(os_entropy(), id);
    bulk->id = arena_copy(&cli->io.arena, args_text(&cli->args, FLAG_ID, id));
    if (!bulk->id.ptr) return cli_nomem(cli);
    int code = type_of(cli, &bulk->type);
    if (!code) code = session_open(&bulk->session, cli, STORE_READ);
    if (!code && !bulk->session.remote) {
        cli_fail(cli, EXIT_USAGE, "many runs at once are for a server: --server URL");
        return cli_hint(cli, "here: cairn ls QUERY -o name | xargs -n 1 cairn %.*s", STR_ARG(cli->args.words[0]));
    }
    struct str all = query_words(cli), query;
    str_cut(all, ' ', &query);
    return code ? code : find_runs(bulk, str_trim(query), (size_t)max);
}

int command_bulk(struct cli *cli)
{
    struct bulk bulk = {.rows = json_array()};
    struct list list;
    bool dry = args_has(&cli->args, FLAG_DRY_RUN);
    if (!list_open(&list, cli, bulk_columns, ARRAY_COUNT(bulk_columns), "runId")) return EXIT_USAGE;
    int code = begin(&bulk, cli);
    if (!code) code = dry ? look(&bulk) : send_all(&bulk);
    if (bulk.rows.count > 0) list_page(&list, &bulk.rows);
    list_close(&list);
    if (!code && dry)
        cli_note(cli, "%zu run%s would get %s", bulk.count, bulk.count == 1 ? "" : "s", signal_name(bulk.type));
    else if (!code)
        cli_note(cli, "%s: %zu accepted (%zu of them before), %zu refused", signal_name(bulk.type), bulk.accepted, bulk.again,
                 bulk.refused);
    session_close(&bulk.session);
    return code ? code : bulk.refused > 0 ? EXIT_CONFLICT : EXIT_OK;
}
