// Tokens of a server: made, exchanged, revoked; and the way back in for the owner of the store when all were lost.
#include "cli/at_service.h"
#include "cli/commands.h"
#include "auth/auth.h"
#include "base/civil.h"
#include "service/service.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

// The text of a token is shown once: on stdout, or in a file that only its owner can read.
static int hand_out(struct cli *cli, const struct json *answer)
{
    struct str text = json_text(json_key(answer, "token")), id = json_text(json_key(answer, "id"));
    struct str file = args_text(&cli->args, FLAG_OUT, "");
    struct error err = {0};
    struct buf out SCOPED(buf_release) = buf_of(4096);
    int code = EXIT_OK;
    buf_add(&out, text);
    buf_byte(&out, '\n');
    if (file.len) {
        if (os_write_secret(file.ptr, buf_str(&out), &err)) code = cli_error(cli, &err);
        if (!code) cli_note(cli, "token %.*s is in %s", STR_ARG(id), file.ptr);
    } else if (format_of(cli, FORMAT_TEXT) != FORMAT_TEXT) {
        print_json(&cli->io, format_of(cli, FORMAT_TEXT), answer);
    } else {
        cli_print(cli, &out);
        cli_note(cli, "this is token %.*s; its text is shown this once", STR_ARG(id));
    }
    return code;
}

// Before a token is made: what is in the file of --out may be the only copy of another one.
static int check_out(struct cli *cli)
{
    struct str file = args_text(&cli->args, FLAG_OUT, "");
    struct stat status;
    struct error err = {0};
    if (!file.len || (lstat(file.ptr, &status) && errno == ENOENT)) return EXIT_OK;
    (void)error_set(&err, E_EXISTS, "%s is there already, and may hold a token that is good: no token was made", file.ptr);
    int code = cli_error(cli, &err);
    cli_hint(cli, "--out another file, or move this one away first");
    return code;
}

static struct json texts_of(struct cli *cli, enum flag flag)
{
    struct json list = json_array();
    struct str text;
    size_t cursor = 0;
    while (args_next(&cli->args, flag, &cursor, &text))
        json_append(&cli->io.arena, &list, json_string(text));
    return json_filled(list);
}

// Roles in either spelling: "engineer", as documents write it, and "Engineer". One that is unknown is for the server to refuse.
static struct json roles_of(struct cli *cli)
{
    struct json list = json_array();
    struct str text;
    size_t cursor = 0;
    while (args_next(&cli->args, FLAG_ROLE, &cursor, &text)) {
        enum role role = role_parse(text);
        json_append(&cli->io.arena, &list, role ? json_word(role_word(role)) : json_string(text));
    }
    return json_filled(list);
}

// --expires: a duration from now, or a moment.
static int expiry(struct cli *cli, struct json *out)
{
    struct str text = args_text(&cli->args, FLAG_EXPIRES, "");
    int64_t ms;
    *out = json_none();
    if (!text.len) return EXIT_OK;
    if (duration_parse(text, &ms))
        ms += os_now().wall_ms;
    else if (!civil_parse(text, &ms))
        return cli_fail(cli, EXIT_USAGE, "--expires %s is neither a duration (90d, 12h) nor a time like 2027-02-11T17:00:00Z",
                        text.ptr);
    *out = json_time(&cli->io.arena, ms);
    return EXIT_OK;
}

int command_token_new(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct json answer, expires, roles = roles_of(cli);
    if (!roles.type) {
        cli_fail(cli, EXIT_USAGE, "what may the token do?");
        return cli_hint(cli, "--role Operator, Engineer, Admin, System, Worker, Host or Auditor (repeat)");
    }
    int code = expiry(cli, &expires);
    if (!code) code = check_out(cli);
    if (!code) code = server_open(&session, cli);
    if (code) return code;
    struct str pool = args_has(&cli->args, FLAG_POOL) ? args_text(&cli->args, FLAG_POOL, "") : STR("");
    struct json body = JSON_OF(&cli->io.arena, {"name", json_string(cli->args.words[0])}, {"roles", roles},
                               {"pool", json_some(pool)}, {"expiresAt", expires},
                               {"projects", texts_of(cli, FLAG_PROJECT)},
                               {"environments", texts_of(cli, FLAG_ENVIRONMENT)});
    code = json_ok(&body) ? server_ask(&session, "POST", STR("/v1/tokens"), &body, &answer) : cli_nomem(cli);
    if (!code) code = hand_out(cli, &answer);
    return code;
}

int command_token_revoke(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    int code = server_open(&session, cli);
    if (code) return code;
    code = server_whole_id(&session, "/v1/tokens", "id", TOKEN_ID_SIZE);
    struct str path = server_path(cli, "/v1/tokens/{}");
    if (!code) code = path.ptr ? server_ask(&session, "DELETE", path, NULL, NULL) : EXIT_ERROR;
    if (!code) cli_note(cli, "token %s is revoked", cli->args.words[0].ptr);
    return code;
}

static const struct json *find_token(const struct json *rows, struct str id)
{
    for (uint32_t i = 0; i < rows->count; i++)
        if (str_eq(json_text(json_key(&rows->items[i], "id")), id)) return &rows->items[i];
    return NULL;
}

// The same rights under a new secret: the server makes the one and ends the other at once, or does neither.
static int rotate(struct session *session)
{
    static const char *const kept[] = {"name", "roles", "pool", "audience", "projects", "environments", "expiresAt"};
    struct cli *cli = session->cli;
    struct json rows, answer, body = json_object(), expires;
    int code = server_all(session, "/v1/tokens", &rows);
    if (!code) code = expiry(cli, &expires);
    if (code) return code;
    const struct json *old = find_token(&rows, cli->args.words[0]);
    if (!old || json_key(old, "revokedAt")) {
        cli_fail(cli, EXIT_NOT_FOUND, "token %s is %s", cli->args.words[0].ptr, old ? "revoked" : "none of this tenant");
        return cli_next(cli, "token ls");
    }
    for (size_t i = 0; i < ARRAY_COUNT(kept); i++) {
        const struct json *value = json_key(old, kept[i]);
        bool newer = expires.type && strcmp(kept[i], "expiresAt") == 0;
        if (newer || value) JSON_ADD(&cli->io.arena, &body, {kept[i], newer ? expires : *value});
    }
    JSON_ADD(&cli->io.arena, &body, {"replaces", json_string(cli->args.words[0])});
    code = json_ok(&body) ? server_ask(session, "POST", STR("/v1/tokens"), &body, &answer) : cli_nomem(cli);
    if (code) return code;
    cli_note(cli, "token %s is revoked", cli->args.words[0].ptr);
    code = hand_out(cli, &answer);
    if (code) { // the old one is gone, and this is the only copy of the new one
        struct buf out SCOPED(buf_release) = buf_of(4096);
        buf_printf(&out, "%.*s\n", STR_ARG(json_text(json_key(&answer, "token"))));
        cli_print(cli, &out);
        cli_note(cli, "the new token could not be written: its text is shown this once");
    }
    return code;
}

int command_token_rotate(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    int code = check_out(cli);
    if (!code) code = server_open(&session, cli);
    if (code) return code;
    code = server_whole_id(&session, "/v1/tokens", "id", TOKEN_ID_SIZE);
    if (!code) code = rotate(&session);
    return code;
}

int command_token_bootstrap(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct error err = {0};
    struct str path, id, file = args_text(&cli->args, FLAG_OUT, "");
    bool locked;
    int code = session_open_write(&session, cli, NULL, &locked);
    if (code) return code;
    if (locked) {
        cli_fail(cli, EXIT_CONFLICT, "another process has %s", session.url);
        return cli_hint(cli, "stop `cairn serve`, make the token, and start it again; runs go on where they stopped");
    }
    if (service_token_bootstrap(session.store, file, &cli->io.arena, &path, &id, &err)) {
        code = cli_error(cli, &err);
    } else {
        struct buf out SCOPED(buf_release) = buf_of(8192);
        buf_printf(&out, "%.*s\n", STR_ARG(path));
        cli_print(cli, &out);
        cli_note(cli, "token %.*s is in that file: all rights of the tenant default", STR_ARG(id));
        cli_hint(cli, "a service that runs takes it after SIGHUP: `kill -HUP PID`");
    }
    return code;
}
