#include "cli/login.h"

#include "cli/commands.h"
#include "cli/server.h"
#include "cli/session.h"
#include "auth/jwt.h"
#include "fetch/fetch.h"
#include "os/os.h"
#include "store/server.h"
#include "term/text.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { KEPT_MAX = 128 * 1024, ANSWER_MAX = 256 * 1024, RENEW_MS = 60 * 1000, POLL_S = 5, POLL_MAX_S = 60, EXPIRES_S = 600 };
enum { CODE_MAX_S = 3600, TOKEN_MAX_S = 366 * 86400 }; // for how long codes and tokens are good at most, whatever a provider says

// ---- the file

static const char *login_path(struct cli *cli, const char *url)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    struct digest name = sha256(str_from(url));
    char hex[2 * SHA256_SIZE + 1];
    digest_hex(&name, hex);
    if (!home || home[0] != '/') {
        const struct passwd *user = getpwuid(getuid());
        home = user ? user->pw_dir : "/tmp";
    }
    if (state && state[0] == '/') return cli_format(cli, "%s/cairn/login/%.32s.json", state, hex);
    return cli_format(cli, "%s/.local/state/cairn/login/%.32s.json", home, hex);
}

static bool is_use(struct str text)
{
    return str_is(text, "id_token") || str_is(text, "access_token");
}

// Of the members that must be texts the first that is none; NULL: they all are.
static const char *missing_text(const struct json *object, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!json_text(json_key(object, names[i])).len) return names[i];
    return NULL;
}

enum kept { KEPT_NONE, KEPT_GOOD, KEPT_DAMAGED };

static enum kept login_read(struct cli *cli, const char *url, const char *path, struct json *out)
{
    static const char *const texts[] = {"issuer", "clientId", "use", "tokenEndpoint", "token"};
    struct error err = {0};
    struct str text;
    *out = (struct json){0};
    if (os_read_file(path, KEPT_MAX, &cli->io.arena, &text, &err)) return KEPT_NONE;
    if (json_parse(text, NULL, &cli->io.arena, out, &err)) return KEPT_DAMAGED;
    struct str server = json_text(json_key(out, "server"));
    // One that was moved here from another server's name is not this server's.
    if (server.len && !str_is(server, url)) return KEPT_NONE;
    bool good = server.len && !missing_text(out, texts, ARRAY_COUNT(texts)) && is_use(json_text(json_key(out, "use"))) &&
                json_is_integer(json_key(out, "expiresAt"));
    return good ? KEPT_GOOD : KEPT_DAMAGED;
}

static int login_write(struct cli *cli, const char *path, const struct json *login)
{
    struct error err = {0};
    struct buf out SCOPED(buf_release) = buf_of(KEPT_MAX);
    const char *slash = strrchr(path, '/');
    json_write(&out, login);
    buf_byte(&out, '\n');
    enum code rc = json_ok(login) && buf_ok(&out) ? OK : error_nomem(&err);
    if (!rc) rc = os_make_kept_dirs(cli_format(cli, "%.*s", (int)(slash - path), path), &err);
    if (!rc) rc = os_write_secret(path, buf_str(&out), &err);
    return rc ? cli_error(cli, &err) : EXIT_OK;
}

// ---- calls to the provider

// May a token, or a code that becomes one, be sent to `endpoint`? `issuer` is the provider's, `url` the server that named it.
// A provider speaks https. One of this machine, for a server of this machine, may speak http; nobody vouches for the document that
// lists its endpoints, so they are on the issuer's own host.
static enum code check_endpoint(const char *url, struct str issuer, struct str endpoint, struct error *err)
{
    struct fetch_place from, to;
    if (fetch_place_parse(issuer, &from, err) || fetch_place_parse(endpoint, &to, err)) return err->code;
    if (!from.secure && !(from.here && url_is_here(url)))
        return error_set(err, E_DENIED, "the issuer %.*s is not https: what is sent there could be read on its way", STR_ARG(issuer));
    if (!to.secure && (from.secure || !to.here))
        return error_set(err, E_DENIED, "%.*s is not https: a token that is sent there could be read on its way", STR_ARG(endpoint));
    if (!from.secure && strcmp(from.host, to.host) != 0)
        return error_set(err, E_DENIED, "%.*s is not on the host of the issuer %.*s", STR_ARG(endpoint), STR_ARG(issuer));
    return OK;
}

static void add_field(struct buf *form, const char *name, struct str value)
{
    buf_printf(form, "%s%s=", form->len ? "&" : "", name);
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if (char_is_alnum((char)c) || strchr("-._~", c))
            buf_byte(form, (char)c);
        else
            buf_printf(form, "%%%02X", c);
    }
}

// GET, or with a form POST. The answer is JSON whatever its status; without one *out is null. `url` has passed check_endpoint.
static enum code ask_provider(struct cli *cli, struct str url, struct str form, int *status, struct json *out,
                              struct error *err)
{
    static const struct http_header headers[] = {{{"Content-Type", 12}, {"application/x-www-form-urlencoded", 33}},
                                                 {{"Accept", 6}, {"application/json", 16}}};
    struct fetch_link *link = NULL;
    struct fetch_answer answer;
    const char *text = cli_format(cli, "%.*s", STR_ARG(url));
    const char *host = strstr(text, "://"), *path = host ? strchr(host + 3, '/') : NULL;
    *status = 0;
    *out = (struct json){0};
    struct fetch_link_options options = {.url = {text, path ? (size_t)(path - text) : strlen(text)},
                                         .ca_file = args_text(&cli->args, FLAG_CA_FILE, ""),
                                         .body_max = ANSWER_MAX};
    struct fetch_call call = {.method = form.len ? STR("POST") : STR("GET"),
                              .uri = path ? str_from(path) : STR("/"),
                              .headers = form.len ? headers : &headers[1],
                              .header_count = form.len ? 2 : 1,
                              .body = form};
    enum code rc = fetch_link_open(&options, &link, err);
    if (!rc) rc = fetch_link_call(link, &call, &cli->io.arena, &answer, err);
    fetch_link_close(link);
    if (rc) return rc;
    *status = answer.status;
    struct error why = {0};
    if (json_parse(answer.body, NULL, &cli->io.arena, out, &why) == OK) return OK;
    *out = (struct json){0};
    return error_set(err, E_IO, "%s answers %d, and not with JSON", text, answer.status);
}

// Why a provider refuses, in its own words.
static const char *refusal_of(struct cli *cli, int status, const struct json *answer)
{
    struct str said = json_text(json_key(answer, "error"));
    if (said.len) return cli_format(cli, "the provider says %.*s", STR_ARG(said));
    return cli_format(cli, "the provider answers %d without a reason", status);
}

static struct str form_text_of(struct cli *cli, struct buf *form)
{
    struct str text = buf_keep(form, &cli->io.arena);
    return text.ptr ? text : STR("");
}

// ---- what a sign-in gives

// A number of seconds that a provider gave, within bounds.
static int64_t seconds_of(const struct json *value, int64_t otherwise, int64_t max)
{
    int64_t seconds = json_integer(value, otherwise);
    return seconds < 1 ? 1 : seconds < max ? seconds : max;
}

// When the token says that it is over; what the provider says beside it is only asked where the token is not readable.
static int64_t expiry_of(struct cli *cli, struct str token, const struct json *answer)
{
    struct jwt jwt;
    struct error err = {0};
    if (jwt_read(token, &cli->io.arena, &jwt, &err) == OK) {
        double seconds;
        const struct json *expires = json_key(&jwt.claims, "exp");
        if (expires && json_double(expires, &seconds) && seconds > 0 && seconds < 1e11) return (int64_t)(seconds * 1000);
    }
    return os_now().wall_ms + seconds_of(json_key(answer, "expires_in"), EXPIRES_S, TOKEN_MAX_S) * 1000;
}

// A new answer of the token endpoint into what is kept.
static bool take_tokens(struct cli *cli, const struct json *answer, const struct json *before, struct json *out)
{
    struct arena *arena = &cli->io.arena;
    struct str use = json_text(json_key(before, "use")), token = json_text(json_get(answer, use));
    struct str refresh = json_text(json_key(answer, "refresh_token"));
    if (!token.len) return false;
    if (!refresh.len) refresh = json_text(json_key(before, "refreshToken"));
    *out = JSON_OF(arena, {"server", json_string(json_text(json_key(before, "server")))},
                   {"issuer", json_string(json_text(json_key(before, "issuer")))},
                   {"clientId", json_string(json_text(json_key(before, "clientId")))}, {"use", json_string(use)},
                   {"tokenEndpoint", json_string(json_text(json_key(before, "tokenEndpoint")))},
                   {"revocationEndpoint", json_some(json_text(json_key(before, "revocationEndpoint")))},
                   {"token", json_string(token)}, {"refreshToken", json_some(refresh)},
                   {"expiresAt", json_int(expiry_of(cli, token, answer))});
    return json_ok(out);
}

static bool is_over(const struct json *login, int64_t margin_ms)
{
    return os_now().wall_ms + margin_ms >= json_integer(json_key(login, "expiresAt"), 0);
}

static int sign_in_again(struct cli *cli, const char *url, const char *why)
{
    cli_fail(cli, EXIT_DENIED, "the sign-in at %s is over: %s", url, why);
    return cli_hint(cli, "`cairn login --server %s` begins a new one", url);
}

static int renew(struct cli *cli, const char *url, const char *path, struct json *login)
{
    struct error err = {0};
    struct json answer = {0}, fresh;
    struct buf form = buf_of(64 * 1024);
    int status = 0;
    struct str refresh = json_text(json_key(login, "refreshToken"));
    if (!refresh.len) return is_over(login, 0) ? sign_in_again(cli, url, "its provider gave nothing to renew it with") : EXIT_OK;
    add_field(&form, "grant_type", STR("refresh_token"));
    add_field(&form, "client_id", json_text(json_key(login, "clientId")));
    add_field(&form, "refresh_token", refresh);
    struct str place = json_text(json_key(login, "tokenEndpoint"));
    enum code rc = check_endpoint(url, json_text(json_key(login, "issuer")), place, &err);
    struct str text = form_text_of(cli, &form);
    if (!rc) rc = ask_provider(cli, place, text, &status, &answer, &err);
    if (!rc && status == 200 && take_tokens(cli, &answer, login, &fresh)) {
        *login = fresh;
        return login_write(cli, path, login);
    }
    if (!is_over(login, 0)) return EXIT_OK; // it is good for a while, and the next command tries again
    return sign_in_again(cli, url, rc ? err.message : refusal_of(cli, status, &answer));
}

static int damaged(struct cli *cli, const char *url, const char *path)
{
    cli_fail(cli, EXIT_DENIED, "the sign-in at %s that is kept in %s is damaged", url, path);
    return cli_hint(cli, "`cairn login --server %s` begins a new one", url);
}

// One at a time changes what is kept: a provider may give each refresh token once, and what was removed must stay so. The file of the lock
// stays. Below 0 where it cannot be made; then there is nothing to keep either.
static int login_lock(struct cli *cli, const char *path)
{
    int lock = open(cli_format(cli, "%s.lock", path), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock >= 0) flock(lock, LOCK_EX);
    return lock;
}

int login_token(struct cli *cli, const char *url, struct str *token, const char **from)
{
    const char *path = login_path(cli, url);
    struct json login;
    int code = EXIT_OK;
    *token = (struct str){0};
    enum kept kept = login_read(cli, url, path, &login);
    if (kept == KEPT_GOOD && is_over(&login, RENEW_MS)) {
        int lock = login_lock(cli, path);
        kept = login_read(cli, url, path, &login);
        if (kept == KEPT_GOOD && is_over(&login, RENEW_MS)) code = renew(cli, url, path, &login);
        if (lock >= 0) close(lock);
    }
    if (kept == KEPT_NONE) return EXIT_OK;
    if (kept == KEPT_DAMAGED) return damaged(cli, url, path);
    *token = json_text(json_key(&login, "token"));
    *from = "`cairn login`";
    return code;
}

// ---- cairn login

struct signing {
    struct cli *cli;
    const char *url;
    struct json method, provider, device; // of the server; of the provider; of the grant
};

// What the server says of its provider decides where tokens are asked for and which of them it gets: nothing of it is taken unread.
static int check_method(struct signing *signing)
{
    static const char *const texts[] = {"issuer", "clientId", "token"};
    struct cli *cli = signing->cli;
    const struct json *method = &signing->method;
    const char *missing = missing_text(method, texts, ARRAY_COUNT(texts));
    struct str use = json_text(json_key(method, "token"));
    if (!missing && !json_is(json_key(method, "scopes"), JSON_STRING)) missing = "scopes"; // which may be empty
    if (missing) return cli_fail(cli, EXIT_DENIED, "%s/v1/auth names a provider without %s", signing->url, missing);
    if (is_use(use)) return EXIT_OK;
    return cli_fail(cli, EXIT_DENIED, "%s/v1/auth asks for %.*s, which is neither id_token nor access_token", signing->url, STR_ARG(use));
}

static int ask_server(struct signing *signing)
{
    struct cli *cli = signing->cli;
    struct fetch_link *link = NULL;
    struct fetch_answer answer = {0};
    struct json body = {0};
    struct error err = {0};
    struct fetch_link_options options = {.url = str_from(signing->url), .ca_file = args_text(&cli->args, FLAG_CA_FILE, "")};
    struct fetch_call call = {.uri = STR("/v1/auth"), .body_max = ANSWER_MAX};
    enum code rc = fetch_link_open(&options, &link, &err);
    if (!rc) rc = fetch_link_call(link, &call, &cli->io.arena, &answer, &err);
    if (!rc && answer.status == 200) rc = json_parse(answer.body, NULL, &cli->io.arena, &body, &err);
    fetch_link_close(link);
    if (rc == E_IO || rc == E_TIMEOUT) return cli_fail(cli, EXIT_UNREACHABLE, "%s", err.message);
    if (rc) return cli_error(cli, &err);
    if (answer.status != 200) return cli_fail(cli, EXIT_DENIED, "%s/v1/auth answers %d", signing->url, answer.status);
    const struct json *methods = json_key(&body, "methods");
    for (uint32_t i = 0; json_is(methods, JSON_ARRAY) && i < methods->count; i++) {
        signing->method = methods->items[i];
        const struct json *client = json_key(&signing->method, "clientId");
        if (str_is(json_text(json_key(&signing->method, "type")), "oidc") && client && !json_is(client, JSON_NULL))
            return check_method(signing);
    }
    cli_fail(cli, EXIT_DENIED, "%s has no identity provider that a person can sign in with", signing->url);
    return cli_hint(cli, "[[serve.oidc]] with a clientId names one; tokens are made by POST /v1/tokens");
}

// Every endpoint is looked at before the first of them is used.
static int check_provider(struct signing *signing, struct str issuer)
{
    static const char *const names[] = {"device_authorization_endpoint", "token_endpoint", "revocation_endpoint"};
    struct cli *cli = signing->cli;
    struct error err = {0};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        struct str place = json_text(json_key(&signing->provider, names[i]));
        if (!place.len && i == 2) continue;
        if (!place.len) return cli_fail(cli, EXIT_DENIED, "%.*s gives no grants to devices (RFC 8628)", STR_ARG(issuer));
        if (check_endpoint(signing->url, issuer, place, &err))
            return cli_fail(cli, EXIT_DENIED, "%s of the provider cannot be used: %s", names[i], err.message);
    }
    return EXIT_OK;
}

static int ask_issuer(struct signing *signing)
{
    struct cli *cli = signing->cli;
    struct error err = {0};
    int status = 0;
    struct str issuer = json_text(json_key(&signing->method, "issuer")), place = issuer;
    if (check_endpoint(signing->url, issuer, issuer, &err))
        return cli_fail(cli, EXIT_DENIED, "the provider cannot be used: %s", err.message);
    if (str_ends(place, STR("/"))) place.len--;
    struct str url = str_from(cli_format(cli, "%.*s/.well-known/openid-configuration", STR_ARG(place)));
    if (ask_provider(cli, url, (struct str){0}, &status, &signing->provider, &err)) return cli_error(cli, &err);
    if (status != 200 || !str_eq(json_text(json_key(&signing->provider, "issuer")), issuer))
        return cli_fail(cli, EXIT_DENIED, "%.*s does not say that it is the issuer", STR_ARG(url));
    return check_provider(signing, issuer);
}

static int ask_grant(struct signing *signing)
{
    struct cli *cli = signing->cli;
    struct error err = {0};
    struct buf form = buf_of(64 * 1024);
    int status = 0;
    add_field(&form, "client_id", json_text(json_key(&signing->method, "clientId")));
    add_field(&form, "scope", json_text(json_key(&signing->method, "scopes")));
    if (ask_provider(cli, json_text(json_key(&signing->provider, "device_authorization_endpoint")),
                     form_text_of(cli, &form), &status, &signing->device, &err))
        return cli_error(cli, &err);
    struct str whole = json_text(json_key(&signing->device, "verification_uri_complete"));
    struct str page = json_text(json_key(&signing->device, "verification_uri"));
    struct str code = json_text(json_key(&signing->device, "user_code"));
    if (status != 200 || !page.len || !code.len || !json_text(json_key(&signing->device, "device_code")).len)
        return cli_fail(cli, EXIT_DENIED, "the sign-in cannot begin: %s", refusal_of(cli, status, &signing->device));
    cli_note(cli, "issuer: %.*s", STR_ARG(json_text(json_key(&signing->method, "issuer"))));
    cli_note(cli, "client: %.*s", STR_ARG(json_text(json_key(&signing->method, "clientId"))));
    cli_note(cli, "scopes: %.*s", STR_ARG(json_text(json_key(&signing->method, "scopes"))));
    cli_note(cli, "open %.*s", STR_ARG(whole.len ? whole : page));
    cli_note(cli, "and enter the code %.*s, when it asks for one", STR_ARG(code));
    return EXIT_OK;
}

// Until the person has said yes or no, or the grant is over.
static int wait_for_grant(struct signing *signing, struct json *answer)
{
    struct cli *cli = signing->cli;
    struct error err = {0};
    int64_t pause = seconds_of(json_key(&signing->device, "interval"), POLL_S, POLL_MAX_S);
    int64_t until = os_now().mono_ms + seconds_of(json_key(&signing->device, "expires_in"), EXPIRES_S, CODE_MAX_S) * 1000;
    struct buf form = buf_of(64 * 1024);
    add_field(&form, "grant_type", STR("urn:ietf:params:oauth:grant-type:device_code"));
    add_field(&form, "client_id", json_text(json_key(&signing->method, "clientId")));
    add_field(&form, "device_code", json_text(json_key(&signing->device, "device_code")));
    struct str text = form_text_of(cli, &form);
    do { // once at least, however short the code is good
        int status = 0;
        struct timespec rest = {.tv_sec = pause < POLL_MAX_S ? pause : POLL_MAX_S};
        nanosleep(&rest, NULL);
        if (ask_provider(cli, json_text(json_key(&signing->provider, "token_endpoint")), text, &status, answer, &err))
            return cli_error(cli, &err);
        struct str said = json_text(json_key(answer, "error"));
        if (status == 200) return EXIT_OK;
        if (str_is(said, "slow_down")) pause += POLL_S;
        if (!str_is(said, "slow_down") && !str_is(said, "authorization_pending"))
            return cli_fail(cli, EXIT_DENIED, "%s", refusal_of(cli, status, answer));
    } while (os_now().mono_ms < until);
    return cli_fail(cli, EXIT_DENIED, "the code was not entered in time");
}

static int which_server(struct cli *cli, const char **url)
{
    int code = server_choose(cli, url);
    if (!code && !*url) {
        code = cli_fail(cli, EXIT_USAGE, "which server? --server is missing");
        cli_hint(cli, "https://HOST or http://HOST:PORT; $CAIRN_SERVER and `cairn context use` do as well");
    }
    return code;
}

int command_login(struct cli *cli)
{
    struct signing signing = {.cli = cli};
    struct json answer = {0}, login;
    struct arena *arena = &cli->io.arena;
    int code = which_server(cli, &signing.url);
    if (!code && strncmp(signing.url, "http:", 5) == 0 && !url_is_here(signing.url)) {
        code = cli_fail(cli, EXIT_DENIED, "%s is not https: any machine on the way could choose the provider and read the token",
                        signing.url);
        cli_hint(cli, "https://HOST; on this machine http://localhost:PORT and unix:PATH do as well");
    }
    if (!code) code = ask_server(&signing);
    if (!code) code = ask_issuer(&signing);
    if (!code) code = ask_grant(&signing);
    if (!code) code = wait_for_grant(&signing, &answer);
    if (code) return code;
    struct json begun = JSON_OF(
        arena, {"server", json_string(str_from(signing.url))}, {"issuer", json_string(json_text(json_key(&signing.method, "issuer")))},
        {"clientId", json_string(json_text(json_key(&signing.method, "clientId")))},
        {"use", json_string(json_text(json_key(&signing.method, "token")))},
        {"tokenEndpoint", json_string(json_text(json_key(&signing.provider, "token_endpoint")))},
        {"revocationEndpoint", json_some(json_text(json_key(&signing.provider, "revocation_endpoint")))});
    if (!json_ok(&begun)) return cli_nomem(cli);
    if (!take_tokens(cli, &answer, &begun, &login))
        return cli_fail(cli, EXIT_DENIED, "the provider gave no %.*s", STR_ARG(json_text(json_key(&begun, "use"))));
    code = login_write(cli, login_path(cli, signing.url), &login);
    return code ? code : command_whoami(cli);
}

int command_logout(struct cli *cli)
{
    const char *url;
    struct json login;
    struct error err = {0};
    int code = which_server(cli, &url);
    if (code) return code;
    const char *path = login_path(cli, url);
    int lock = login_lock(cli, path);
    bool there = login_read(cli, url, path, &login) != KEPT_NONE;
    bool removed = !there || unlink(path) == 0;
    if (!removed) os_errno(&err, "remove", path);
    if (lock >= 0) close(lock);
    if (!removed) return cli_error(cli, &err);
    if (!there) {
        cli_note(cli, "nobody is signed in at %s", url);
        return EXIT_OK;
    }
    struct str place = json_text(json_key(&login, "revocationEndpoint")), refresh = json_text(json_key(&login, "refreshToken"));
    if (place.len && refresh.len && check_endpoint(url, json_text(json_key(&login, "issuer")), place, &err) == OK) {
        struct buf form = buf_of(64 * 1024);
        struct json answer;
        int status = 0;
        add_field(&form, "client_id", json_text(json_key(&login, "clientId")));
        add_field(&form, "token", refresh);
        // Many providers answer with nothing at all; that they were asked is what counts.
        (void)!ask_provider(cli, place, form_text_of(cli, &form), &status, &answer, &err);
    }
    cli_note(cli, "signed out of %s", url);
    return EXIT_OK;
}

// ---- cairn whoami

int command_whoami(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct json who = {0};
    struct error err = {0};
    struct buf line SCOPED(buf_release) = buf_of(TEXT_MAX), out SCOPED(buf_release) = buf_of(TEXT_MAX);
    int code = session_open(&session, cli, STORE_READ);
    if (code) return code;
    struct server_call call = {"GET", STR("/v1/whoami"), NULL, STR(""), {0}};
    if (!session.remote)
        code = cli_fail(cli, EXIT_USAGE, "%s is a store: who may what is a question for a server", session.url);
    else if (store_server_call(session.store, &call, &cli->io.arena, &who, &err))
        code = cli_error(cli, &err);
    if (!code) {
        const struct json *roles = json_key(&who, "roles");
        struct str until = json_text(json_key(&who, "expiresAt"));
        buf_printf(&line, "%.*s at %s: tenant %.*s, as", STR_ARG(json_text(json_key(&who, "id"))), session.url,
                   STR_ARG(json_text(json_key(&who, "tenantId"))));
        for (uint32_t i = 0; json_is(roles, JSON_ARRAY) && i < roles->count; i++)
            buf_printf(&line, "%s %.*s", i ? "," : "", STR_ARG(json_text(&roles->items[i])));
        if (until.len) buf_printf(&line, ", until %.*s", STR_ARG(until));
        text_safe(&out, buf_str(&line));
        buf_byte(&out, '\n');
        cli_print(cli, &out);
    }
    return code;
}
