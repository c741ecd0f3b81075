// What a server has besides runs: queues, limits, workers, sinks, dead letters, alerts, definitions. Each is a list, and calls that change
// one of its rows; which call a command is, a table says.
#include "cli/at_server.h"
#include "cli/at_service.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "http/http.h"
#include "base/civil.h"
#include "base/sha256.h"
#include "store/server.h"
#include "term/text.h"
#include "view/alerts.h"

#include <string.h>

// ---- lists

static const struct column token_columns[] = {
    {"id", "TOKEN", CELL_TEXT, false, 24},          {"name", "NAME", CELL_TEXT, false, 24},
    {"state", "STATE", CELL_TEXT, false, 0},
    {"roles", "ROLES", CELL_TEXT, false, 40},       {"pool", "POOL", CELL_TEXT, true, 0},
    {"createdAt", "MADE", CELL_TIME, false, 0},     {"expiresAt", "ENDS", CELL_TIME, false, 0},
    {"revokedAt", "REVOKED", CELL_TIME, false, 0},  {"createdBy", "BY", CELL_TEXT, true, 24},
    {"projects", "PROJECTS", CELL_TEXT, true, 0},   {"environments", "ENVIRONMENTS", CELL_TEXT, true, 0},
    {"tenantId", "TENANT", CELL_TEXT, true, 0},     {"audience", "AUDIENCE", CELL_TEXT, true, 0},
};
static const struct column queue_columns[] = {
    {"name", "QUEUE", CELL_TEXT, false, 24},      {"running", "RUNNING", CELL_NUMBER, false, 0},
    {"maxRunning", "OF", CELL_NUMBER, false, 0},  {"queued", "QUEUED", CELL_NUMBER, false, 0},
    {"policy", "POLICY", CELL_TEXT, false, 0},    {"paused", "PAUSED", CELL_TEXT, false, 0},
    {"oldestQueuedAt", "OLDEST", CELL_TIME, false, 0}, {"maxQueued", "QUEUED AT MOST", CELL_NUMBER, true, 0},
    {"delayMs", "DELAY", CELL_MS, true, 0},       {"priority", "PRIORITY", CELL_NUMBER, true, 0},
};
static const struct column worker_columns[] = {
    {"worker", "WORKER", CELL_TEXT, false, 32},      {"pool", "POOL", CELL_TEXT, false, 16},
    {"leases", "STEPS", CELL_NUMBER, false, 0},      {"slots", "SLOTS", CELL_NUMBER, false, 0},
    {"silentMs", "SILENT FOR", CELL_MS, false, 0},   {"draining", "DRAINING", CELL_TEXT, false, 0},
    {"tenant", "TENANT", CELL_TEXT, true, 0},
};
static const struct column sink_columns[] = {
    {"name", "SINK", CELL_TEXT, false, 24},           {"type", "TYPE", CELL_TEXT, false, 0},
    {"state", "STATE", CELL_TEXT, false, 0},          {"position", "AT", CELL_NUMBER, false, 0},
    {"end", "OF", CELL_NUMBER, false, 0},             {"waiting", "WAITING", CELL_NUMBER, false, 0},
    {"lagMs", "BEHIND", CELL_MS, false, 0},           {"deadLetters", "DEAD", CELL_NUMBER, false, 0},
    {"delivered", "DELIVERED", CELL_NUMBER, true, 0}, {"nextTryAt", "NEXT TRY", CELL_TIME, true, 0},
    {"lastError", "WHY", CELL_TEXT, true, 60},
};
static const struct column letter_columns[] = {
    {"id", "LETTER", CELL_TEXT, false, 40},        {"sink", "SINK", CELL_TEXT, true, 0},
    {"eventType", "EVENT", CELL_TEXT, false, 20},  {"runId", "RUN", CELL_RUN, false, 0},
    {"class", "CLASS", CELL_TEXT, false, 0},       {"attempts", "TRIES", CELL_NUMBER, false, 0},
    {"lastAt", "LAST", CELL_TIME, false, 0},       {"error", "WHY", CELL_TEXT, true, 60},
};
static const struct column alert_columns[] = {
    {"priority", "PRIO", CELL_TEXT, false, 0},  {"name", "ALERT", CELL_TEXT, false, 28},
    {"state", "STATE", CELL_TEXT, false, 0},    {"acknowledgedBy", "SEEN BY", CELL_TEXT, false, 24},
    {"runId", "RUN", CELL_RUN, false, 0},       {"id", "ID", CELL_TEXT, false, 36},
    {"count", "TIMES", CELL_NUMBER, true, 0},   {"lastAt", "LAST", CELL_TIME, false, 0},
    {"text", "TEXT", CELL_TEXT, true, 0},
};
static const struct column definition_columns[] = {
    {"name", "DEFINITION", CELL_TEXT, false, 28},     {"planVersion", "VERSION", CELL_TEXT, false, 16},
    {"createdAt", "MADE", CELL_TIME, false, 0},       {"approvedBy", "APPROVED BY", CELL_TEXT, false, 20},
    {"sha256", "SHA256", CELL_TEXT, false, 0},        {"createdBy", "BY", CELL_TEXT, true, 24},
    {"sizeBytes", "BYTES", CELL_NUMBER, true, 0},     {"uri", "URI", CELL_TEXT, true, 0},
    {"projectId", "PROJECT", CELL_TEXT, true, 0},     {"environmentId", "ENVIRONMENT", CELL_TEXT, true, 0},
};

static const struct column limit_columns[] = {
    {"name", "LIMIT", CELL_TEXT, false, 28},        {"inUse", "IN USE", CELL_NUMBER, false, 0},
    {"concurrency", "OF", CELL_NUMBER, false, 0},   {"waiting", "WAITING", CELL_NUMBER, false, 0},
    {"rate", "RATE", CELL_TEXT, false, 0},          {"startsInRate", "STARTED", CELL_NUMBER, false, 0},
    {"set", "SET HERE", CELL_TEXT, true, 0},
};

#define COLUMNS(list) list, ARRAY_COUNT(list)
static const struct listing {
    const char *command, *path, *word_path; // word_path: with a word
    const struct column *columns;
    size_t count;
    const char *name;
} listings[] = {
    {"token ls", "/v1/tokens", NULL, COLUMNS(token_columns), "id"},
    {"queue ls", "/v1/queues", NULL, COLUMNS(queue_columns), "name"},
    {"limit ls", "/v1/step-limits", NULL, COLUMNS(limit_columns), "name"},
    {"worker ls", "/v1/workers", NULL, COLUMNS(worker_columns), "worker"},
    {"outbox ls", "/v1/outbox", NULL, COLUMNS(sink_columns), "name"},
    {"dlq ls", "/v1/dlq", "/v1/dlq?sink={}", COLUMNS(letter_columns), "id"},
    {"alert ls", "/v1/alerts", "/v1/alerts?run={}", COLUMNS(alert_columns), "id"},
    {"definition ls", "/v1/definitions", "/v1/definitions/{}/versions", COLUMNS(definition_columns), "sha256"},
};

static const struct listing *listing_of(const struct cli *cli)
{
    for (size_t i = 0; i < ARRAY_COUNT(listings); i++)
        if (strcmp(cli->args.command->name, listings[i].command) == 0) return &listings[i];
    return NULL;
}

// Whether a token opens anything, in a word: its times may be cut off on a narrow screen.
static bool tokens_told(struct cli *cli, struct json *rows)
{
    for (uint32_t i = 0; i < rows->count; i++) {
        struct json *row = &rows->items[i];
        int64_t ends;
        bool over = civil_parse(json_text(json_key(row, "expiresAt")), &ends) && ends <= os_now().wall_ms;
        JSON_ADD(&cli->io.arena, row, {"state", json_word(json_key(row, "revokedAt") ? "revoked" : over ? "expired" : "good")});
        if (!json_ok(row)) return false;
    }
    return true;
}

int command_service_list(struct cli *cli)
{
    const struct listing *of = listing_of(cli);
    struct session session;
    struct list list;
    struct json rows;
    INVARIANT(of);
    if (!list_open(&list, cli, of->columns, of->count, of->name)) return EXIT_USAGE;
    int code = server_open(&session, cli);
    if (!code) {
        code = server_all(&session, cli->args.word_count > 0 ? of->word_path : of->path, &rows);
        if (!code && of->columns == token_columns && !tokens_told(cli, &rows)) code = cli_nomem(cli);
        if (!code) list_page(&list, &rows);
        if (!code && rows.count == 0 && cli->io.err.tty) cli_note(cli, "there are none");
        session_close(&session);
    }
    list_close(&list);
    return code;
}

// ---- calls

enum body { BODY_NONE = 0, BODY_EMPTY, BODY_SET, BODY_REASON, BODY_SET_REASON };

static const struct service_call {
    const char *command, *method, *path;
    enum body body;
} calls[] = {
    {"queue get", "GET", "/v1/queues/{}", BODY_NONE},
    {"queue set", "PUT", "/v1/queues/{}", BODY_SET},
    {"queue pause", "POST", "/v1/queues/{}/pause", BODY_NONE},
    {"queue resume", "POST", "/v1/queues/{}/resume", BODY_NONE},
    {"queue rm", "DELETE", "/v1/queues/{}", BODY_NONE},
    {"limits get", "GET", "/v1/limits", BODY_NONE},
    {"limits set", "PUT", "/v1/limits", BODY_SET},
    {"limit get", "GET", "/v1/step-limits/{}", BODY_NONE},
    {"limit set", "PUT", "/v1/step-limits/{}", BODY_SET},
    {"limit rm", "DELETE", "/v1/step-limits/{}", BODY_NONE},
    {"outbox rewind", "POST", "/v1/outbox/{}:rewind", BODY_SET_REASON},
    {"dlq redrive", "POST", "/v1/dlq/{}:redrive", BODY_REASON},
    {"dlq drop", "DELETE", "/v1/dlq/{}", BODY_NONE},
    {"alert ack", "POST", "/v1/alerts/{}:ack", BODY_EMPTY},
    {"definition get", "GET", "/v1/definitions/{}/versions/{}", BODY_NONE},
    {"definition approve", "POST", "/v1/definitions/{}/versions/{}:approve", BODY_EMPTY},
};

// Commands whose last word may be the beginning of an id, and the list that has the whole ones.
static int whole_id(struct session *session)
{
    static const struct {
        const char *command, *path, *key;
        size_t size;
    } of[] = {{"alert ack", "/v1/alerts", "id", ALERT_ID_SIZE - 1},
              {"definition get", "/v1/definitions/{}/versions", "sha256", SHA256_HEX},
              {"definition approve", "/v1/definitions/{}/versions", "sha256", SHA256_HEX}};
    for (size_t i = 0; i < ARRAY_COUNT(of); i++)
        if (strcmp(session->cli->args.command->name, of[i].command) == 0)
            return server_whole_id(session, of[i].path, of[i].key, of[i].size);
    return EXIT_OK;
}

static const struct service_call *call_of(const struct cli *cli)
{
    for (size_t i = 0; i < ARRAY_COUNT(calls); i++)
        if (strcmp(cli->args.command->name, calls[i].command) == 0) return &calls[i];
    return NULL;
}

static int body_of(struct cli *cli, enum body kind, struct json *out)
{
    size_t cursor = 0;
    struct str pair, key, reason = args_text(&cli->args, FLAG_REASON, "");
    int code = EXIT_OK;
    *out = json_object();
    while (!code && (kind == BODY_SET || kind == BODY_SET_REASON) && args_next(&cli->args, FLAG_SET, &cursor, &pair)) {
        struct json value;
        code = inputs_pair(cli, NULL, pair, &key, &value);
        if (!code) code = inputs_put(cli, out, key, value);
    }
    if (!code && kind == BODY_SET && out->count == 0) {
        cli_fail(cli, EXIT_USAGE, "nothing is to be changed");
        return cli_hint(cli, "--set NAME=VALUE, as often as there are fields: `cairn help %s`",
                        cli->args.command->name);
    }
    if (!code && (kind == BODY_REASON || kind == BODY_SET_REASON) && reason.len)
        JSON_ADD(&cli->io.arena, out, {"reason", json_string(reason)});
    return code || json_ok(out) ? code : cli_nomem(cli);
}

// An object as lines of names and values. What was done without an answer is said in the words of the command.
static void show(struct cli *cli, const struct json *answer)
{
    struct buf out SCOPED(buf_release) = buf_of(TEXT_MAX), value SCOPED(buf_release) = buf_of(TEXT_MAX);
    enum format format = format_of(cli, FORMAT_TEXT);
    if (format != FORMAT_TEXT) {
        struct json nothing = json_object();
        print_json(&cli->io, format, answer->type ? answer : &nothing);
    } else if (!json_is(answer, JSON_OBJECT) || answer->count == 0) {
        buf_printf(&out, "%s %s", cli->args.command->name, cli->args.word_count ? cli->args.words[0].ptr : "");
        text_safe(&value, str_trim(buf_str(&out)));
        cli_note(cli, "done: %s", value.ptr);
        buf_clear(&out);
    }
    for (uint32_t i = 0; format == FORMAT_TEXT && json_is(answer, JSON_OBJECT) && i < answer->count; i++) {
        const struct json *member = &answer->members[i].value;
        buf_clear(&value);
        if (member->type == JSON_STRING)
            buf_add(&value, json_text(member));
        else
            json_write(&value, member);
        buf_printf(&out, "%-18.*s ", STR_ARG(answer->members[i].key));
        text_safe(&out, buf_str(&value));
        buf_byte(&out, '\n');
    }
    if (out.len) cli_print(cli, &out);
}

// `dlq redrive --all SINK`: all letters of a sink in one call.
static int call_path(struct cli *cli, const struct service_call *call, struct str *path, struct json *body)
{
    bool all = args_has(&cli->args, FLAG_ALL);
    *path = server_path(cli, all ? "/v1/dlq:redrive" : call->path);
    if (!path->ptr) return EXIT_ERROR;
    if (all) JSON_ADD(&cli->io.arena, body, {"sink", json_string(cli->args.words[0])});
    struct str reason = args_text(&cli->args, FLAG_REASON, "");
    if (call->body == BODY_NONE && reason.len) { // of DELETE
        struct buf with = buf_of(8192);
        buf_add(&with, *path);
        buf_text(&with, "?reason=");
        http_percent_encode(&with, reason);
        *path = buf_keep(&with, &cli->io.arena);
    }
    return path->ptr && json_ok(body) ? EXIT_OK : cli_nomem(cli);
}

int command_service_call(struct cli *cli)
{
    const struct service_call *call = call_of(cli);
    struct session session SCOPED(session_close) = {0};
    struct json body, answer = {0};
    struct str path;
    INVARIANT(call);
    int code = body_of(cli, call->body, &body);
    if (!code) code = server_open(&session, cli);
    if (code) return code;
    code = whole_id(&session);
    if (!code) code = call_path(cli, call, &path, &body);
    if (!code)
        code = server_ask(&session, call->method, path, call->body == BODY_NONE ? NULL : &body, &answer);
    bool always = !code && strcmp(call->command, "queue rm") == 0 && str_is(cli->args.words[0], "default");
    if (always && format_of(cli, FORMAT_TEXT) == FORMAT_TEXT)
        cli_note(cli, "the queue default cannot be removed: its settings are the first ones again");
    else if (!code)
        show(cli, &answer);
    return code;
}

// ---- definitions

// PUT of a document under the hash of its bytes.
int command_definition_put(struct cli *cli)
{
    enum { DOCUMENT_MAX = 8 << 20 };
    struct session session SCOPED(session_close) = {0};
    struct error err = {0};
    struct json answer;
    struct str text;
    char hex[SHA256_HEX + 1];
    if (os_read_file(cli->args.words[1].ptr, DOCUMENT_MAX, &cli->io.arena, &text, &err)) return cli_error(cli, &err);
    struct digest digest = sha256(text);
    digest_hex(&digest, hex);
    struct str path = server_path(cli, cli_format(cli, "/v1/definitions/{}/versions/%s", hex));
    if (!path.ptr) return EXIT_ERROR;
    int code = server_open(&session, cli);
    if (code) return code;
    struct server_call call = {.method = "PUT", .path = path, .bytes = text};
    if (store_server_call(session.store, &call, &cli->io.arena, &answer, &err))
        code = cli_error(cli, &err);
    else
        show(cli, &answer);
    return code;
}

// VERSION is what a version calls itself, or the beginning of its hash; none: the newest.
static int choose_version(struct cli *cli, const struct json *versions, struct str name, struct str version,
                          const struct json **out)
{
    const struct json *found = NULL;
    for (uint32_t i = 0; i < versions->count; i++) {
        const struct json *row = &versions->items[i];
        struct str sha = json_text(json_key(row, "sha256")), at = json_text(json_key(row, "createdAt"));
        bool meant = version.len == 0 || str_eq(version, json_text(json_key(row, "planVersion"))) ||
                     (version.len >= 4 && str_starts(sha, version));
        if (!meant) continue;
        if (found && version.len > 0) {
            cli_fail(cli, EXIT_USAGE, "definition %.*s has several versions %.*s", STR_ARG(name), STR_ARG(version));
            return cli_hint(cli, "`cairn definition ls %.*s` has their hashes: %.*s@SHA256", STR_ARG(name), STR_ARG(name));
        }
        if (!found || str_cmp(at, json_text(json_key(found, "createdAt"))) > 0) found = row;
    }
    *out = found;
    if (found) return EXIT_OK;
    if (version.len > 0)
        cli_fail(cli, EXIT_NOT_FOUND, "there is no version %.*s of definition %.*s here", STR_ARG(version), STR_ARG(name));
    else
        cli_fail(cli, EXIT_NOT_FOUND, "there is no definition %.*s here", STR_ARG(name));
    return cli_hint(cli, "`cairn definition ls%s%.*s` shows those that there are", version.len ? " " : "",
                    STR_ARG(version.len ? name : STR("")));
}

int command_definition_run(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct str version, name = str_cut(cli->args.words[0], '@', &version);
    struct json versions;
    const struct json *chosen;
    int code = server_open(&session, cli);
    if (code) return code;
    cli->at_server = true;
    cli->args.words[0] = arena_copy(&cli->io.arena, name);
    if (!cli->args.words[0].ptr) return cli_nomem(cli);
    code = server_all(&session, "/v1/definitions/{}/versions", &versions);
    if (!code) code = choose_version(cli, &versions, name, version, &chosen);
    if (code) return code;
    struct str schema = json_text(json_key(chosen, "schemaVersion")), sha = json_text(json_key(chosen, "sha256"));
    struct json ref = JSON_OF(&cli->io.arena, {"planId", json_ref(json_key(chosen, "planId"))},
                              {"planVersion", json_ref(json_key(chosen, "planVersion"))},
                              {"schemaVersion", json_string(schema.len ? schema : STR("v1.2"))}, {"sha256", json_string(sha)},
                              {"uri", json_ref(json_key(chosen, "uri"))});
    return json_ok(&ref) ? run_reference_at_server(&session, &ref) : cli_nomem(cli);
}
