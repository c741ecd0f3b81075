#include "cli/session.h"

#include "cli/server.h"

#include "os/os.h"
#include "store/server.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_LENGTH_MAX 4096

const char *session_default(struct cli *cli)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && state[0] == '/') return cli_format(cli, "sqlite:%s/cairn/cairn.db", state);
    if (!home || home[0] != '/') {
        const struct passwd *user = getpwuid(getuid());
        home = user ? user->pw_dir : "/tmp";
    }
    return cli_format(cli, "sqlite:%s/.local/state/cairn/cairn.db", home);
}

static bool is_postgres(const char *url)
{
    return strncmp(url, "postgres:", 9) == 0 || strncmp(url, "postgresql:", 11) == 0;
}

// "sqlite:./x.db" -> "sqlite:/home/me/x.db", links in the directory resolved.
static const char *absolute_url(struct cli *cli, const char *url)
{
    char directory[PATH_LENGTH_MAX], real[PATH_LENGTH_MAX];
    const char *colon = strchr(url, ':');
    if (!colon || !colon[1] || strncmp(url, "memory", 6) == 0 || strncmp(url, "http", 4) == 0 || is_postgres(url))
        return url;
    const char *path = colon + 1;
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/') len--;
    size_t cut = len;
    while (cut > 0 && path[cut - 1] != '/') cut--;
    if (len >= sizeof(directory)) return url;
    memcpy(directory, cut ? path : ".", cut ? cut : 1);
    directory[cut ? cut : 1] = '\0';
    if (!realpath(directory, real)) {
        if (path[0] == '/' || !getcwd(real, sizeof(real))) return url;
        return cli_format(cli, "%.*s%s/%.*s", (int)(path - url), url, real, (int)len, path);
    }
    return cli_format(cli, "%.*s%s/%.*s", (int)(path - url), url, strcmp(real, "/") == 0 ? "" : real, (int)(len - cut),
                      path + cut);
}

static enum code make_parent(struct cli *cli, const char *url, struct error *err)
{
    const char *path = strchr(url, ':');
    if (!path || strncmp(url, "memory", 6) == 0 || is_postgres(url)) return OK;
    path++;
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return OK;
    return os_make_kept_dirs(cli_format(cli, "%.*s", (int)(slash - path), path), err);
}

int session_contract(struct session *session)
{
    struct error err = {0};
    if (session->contract) return EXIT_OK;
    return contract_open(&session->cli->io.arena, &session->contract, &err) ? cli_error(session->cli, &err) : EXIT_OK;
}

// What may stand on a screen or in a log.
static const char *shown(struct cli *cli, const char *url)
{
    char text[2048];
    if (!is_postgres(url)) return url;
    store_hide_password(str_from(url), text, sizeof(text));
    return cli_format(cli, "%s", text);
}

static bool is_plain_word(const char *text)
{
    return text[strcspn(text, " '\"\\$&|;<>()*?[]#~`!{}\t\n")] == '\0';
}

static const char *quoted(struct cli *cli, const char *text)
{
    const char *quote = is_plain_word(text) ? "" : "'";
    return cli_format(cli, "%s%s%s", quote, text, quote);
}

// " --store X" of the flags that were given, so that a command to paste means the same place.
static const char *flag_again(struct cli *cli, enum flag flag)
{
    if (!args_has(&cli->args, flag)) return "";
    return cli_format(cli, " --%s %s", flag_info(flag)->name,
                      quoted(cli, shown(cli, args_text(&cli->args, flag, "").ptr)));
}

static int choose(struct session *session, struct cli *cli)
{
    struct str named = args_text(&cli->args, FLAG_STORE, "");
    const char *server;
    *session = (struct session){.cli = cli, .tenant = args_text(&cli->args, FLAG_TENANT, "default")};
    int code = server_choose(cli, &server);
    session->address = server ? server : named.len ? named.ptr : session_default(cli);
    session->url = shown(cli, session->address);
    session->remote = url_is_server(session->url);
    cli->io.tail = cli_format(cli, "%s%s%s%s%s%s", flag_again(cli, FLAG_STORE), flag_again(cli, FLAG_SERVER),
                              session->remote ? flag_again(cli, FLAG_TOKEN_FILE) : "",
                              session->remote ? flag_again(cli, FLAG_CA_FILE) : "", flag_again(cli, FLAG_TENANT),
                              session->remote ? "" : flag_again(cli, FLAG_RESULTS));
    return code;
}

int session_url(struct cli *cli, const char **out)
{
    struct session session;
    struct error err = {0};
    int code = choose(&session, cli);
    *out = absolute_url(cli, session.address);
    if (!code && session.remote)
        code = cli_fail(cli, EXIT_USAGE, "`cairn %s` needs a store of its own, and %s is a server",
                        cli->args.command->name, session.url);
    if (code) return code;
    return make_parent(cli, *out, &err) ? cli_error(cli, &err) : EXIT_OK;
}

static int report_missing(struct session *session)
{
    struct cli *cli = session->cli;
    cli_fail(cli, EXIT_NOT_FOUND, "there is no store at %s", session->url);
    if (str_starts(str_from(session->url), STR("bundle:")))
        cli_hint(cli, "`cairn log export RUN --out FILE` makes a bundle");
    else
        cli_hint(cli, "`%s` makes it", cli_command(cli, "run FILE"));
    return EXIT_NOT_FOUND;
}

// ---- servers

// Commands that are about a store itself, its files or its owner.
static bool needs_store(const char *command)
{
    static const char *const names[] = {"recover",      "store stat",    "store gc",  "store copy",
                                        "store backup", "store restore", "log import"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (strcmp(command, names[i]) == 0) return true;
    return false;
}

static int refuse_server(struct session *session)
{
    struct cli *cli = session->cli;
    const char *name = cli->args.command->name;
    cli_fail(cli, EXIT_USAGE, "`cairn %s` works on a store, and %s is a server, which alone has its own", name,
             session->url);
    if (strcmp(name, "recover") == 0)
        cli_hint(cli, "a server goes on by itself with every run that has not ended; `%s` shows them",
                 cli_command(cli, "ps"));
    else
        cli_hint(cli, "on the machine that has the store: cairn %s with --store sqlite:PATH or files:DIR", name);
    return EXIT_USAGE;
}

static int report_server(struct session *session, const struct error *err, const struct server_access *access)
{
    struct cli *cli = session->cli;
    const char *url = session->url;
    int code = cli_error(cli, err);
    bool untrusted = strstr(err->message, "certificate"), later = strstr(err->message, "; try again in ");
    // A server answered, with a problem or with what is none of ours.
    bool answered = strchr(err->message, '(') || strstr(err->message, "the server answers") ||
                    strstr(err->message, "the answer is");
    if (err->code == E_DENIED && untrusted)
        cli_hint(cli, "--ca-file names who signed its certificate; its name must be in it");
    else if (err->code == E_DENIED)
        cli_hint(cli, "the token came from %s; it may be of another server, expired or revoked", access->token_from);
    else if (err->code == E_NOT_FOUND || (err->code == E_UNREACHABLE && answered && !later))
        cli_hint(cli, "something answers there: `curl %s/readyz` tells whether it is a `cairn serve` that is well",
                 url);
    else if (err->code == E_UNREACHABLE && !later)
        cli_hint(cli, "is `cairn serve` running there? `curl %s/livez` tells", url);
    return code;
}

// The token says whose runs they are.
static int take_tenant(struct session *session)
{
    struct cli *cli = session->cli;
    struct str mine = store_tenant(session->store), wanted = args_text(&cli->args, FLAG_TENANT, "");
    session->tenant = mine;
    if (wanted.len == 0 || str_eq(wanted, mine)) return EXIT_OK;
    cli_fail(cli, EXIT_DENIED, "the token is for tenant %.*s, not for %.*s", STR_ARG(mine), STR_ARG(wanted));
    session_close(session);
    return EXIT_DENIED;
}

// Commands that are about what runs were given and what steps made of it. Of records without values they would show nonsense.
static const char *payload_need(const char *command)
{
    static const struct {
        const char *command, *operation;
    } needs[] = {
        {"logs", "step.logs"},          {"artifacts ls", "artifact.get"}, {"artifacts cat", "artifact.get"},
        {"artifacts get", "artifact.get"}, {"render", "run.payload"},     {"diff", "step.output"},
        {"test record", "step.output"}, {"log replay", "store.read"},     {"log export", "run.bundle"},
        {"rerun", "run.fork"},          {"fork", "run.fork"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(needs); i++)
        if (strcmp(command, needs[i].command) == 0) return needs[i].operation;
    return NULL;
}

static int check_payloads(struct session *session)
{
    struct cli *cli = session->cli;
    const char *operation = payload_need(cli->args.command->name);
    if (!operation || !store_server_redacted(session->store)) return EXIT_OK;
    cli_fail(cli, EXIT_DENIED, "no role of this token allows `cairn %s`: it needs the operation %s",
             cli->args.command->name, operation);
    cli_hint(cli, "an engineer or an admin of the tenant may; the token sees how runs went, not what they were about");
    session_close(session);
    return EXIT_DENIED;
}

static int open_server(struct session *session, enum store_mode mode)
{
    struct cli *cli = session->cli;
    struct server_access access;
    struct error err = {0};
    struct str store = args_text(&cli->args, FLAG_STORE, "");
    const char *here = store.len && !url_is_server(store.ptr) ? store.ptr : session_default(cli);
    if (mode == STORE_WRITE || needs_store(cli->args.command->name)) return refuse_server(session);
    int code = server_access(cli, session->url, here, &access);
    if (code) return code;
    struct store_options options = {
        .mode = STORE_READ, .contract = session->contract, .token = access.token, .ca_file = access.ca_file};
    if (store_open(str_from(absolute_url(cli, session->address)), &options, &session->store, &err))
        return report_server(session, &err, &access);
    code = take_tenant(session);
    return code ? code : check_payloads(session);
}

int session_where(struct cli *cli, bool *remote)
{
    struct session session;
    int code = choose(&session, cli);
    *remote = session.remote;
    return code;
}

// ---- opening

// What to do about a database server that does not let us in, or that we must not trust.
static const char *postgres_hint(const struct error *err)
{
    static const struct {
        enum code code;
        const char *word, *hint;
    } hints[] = {
        {E_UNREACHABLE, "database \"", "`createdb NAME` on the server makes it (UTF8)"},
        {E_UNREACHABLE, "too many",
         "raise max_connections or the limit of the role, or end sessions: pg_stat_activity"},
        {E_UNREACHABLE, "", "is the server running, and is that its host, port or socket? `pg_isready` tells"},
        {E_DENIED, "takes no writes", "give the primary, or target_session_attrs=read-write with all hosts"},
        {E_DENIED, "role \"", "`createuser NAME` on the server, or another user in the URL"},
        {E_DENIED, "lacks a right",
         "as the owner of the store: SELECT cairn.allow_engine('ROLE'); for a new one: GRANT CREATE ON DATABASE"},
        {E_DENIED, "",
         "the password comes from ~/.pgpass, PGPASSFILE or PGPASSWORD; who may come in, from pg_hba.conf"},
        {E_UNSUPPORTED, "=off",
         "ALTER SYSTEM RESET it, then SELECT pg_reload_conf(); what was lost meanwhile stays lost"},
        {E_VERSION, "newer Cairn", "every process that shares a store must know its format: upgrade this one"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(hints); i++)
        if (hints[i].code == err->code && strstr(err->message, hints[i].word)) return hints[i].hint;
    return NULL;
}

static int report_store(const struct session *session, const struct error *err)
{
    int code = cli_error(session->cli, err);
    const char *hint = is_postgres(session->url) ? postgres_hint(err) : NULL;
    if (hint) cli_hint(session->cli, "%s", hint);
    return code;
}

static int open_store(struct session *session, enum store_mode mode, struct error *err, enum code *rc)
{
    struct cli *cli = session->cli;
    if (session->remote) return open_server(session, mode);
    const char *url = absolute_url(cli, session->address);
    int code = results_open(cli, &session->keep);
    if (code) return code;
    struct store_options options = {
        .mode = mode, .create = mode == STORE_WRITE, .entropy = os_entropy(), .keep = session->keep};
    if (mode == STORE_WRITE) {
        code = session_contract(session);
        if (code) return code;
        *rc = make_parent(cli, url, err);
        url = absolute_url(cli, session->address);
    }
    options.contract = session->contract;
    options.restoring = mode == STORE_WRITE && strcmp(cli->args.command->name, "store restore") == 0;
    if (!*rc) *rc = store_open(str_from(url), &options, &session->store, err);
    if (*rc) session_close(session);
    return EXIT_OK;
}

int session_open(struct session *session, struct cli *cli, enum store_mode mode)
{
    struct error err = {0};
    enum code rc = OK;
    int code = choose(session, cli);
    if (!code) code = open_store(session, mode, &err, &rc);
    if (code || rc == OK) return code;
    if (rc != E_NOT_FOUND || mode == STORE_WRITE) return report_store(session, &err);
    return args_text(&cli->args, FLAG_STORE, "").len > 0 ? report_missing(session) : EXIT_OK;
}

int session_open_write(struct session *session, struct cli *cli, const struct contract *contract, bool *locked)
{
    struct error err = {0};
    enum code rc = OK;
    *locked = false;
    int code = choose(session, cli);
    session->contract = contract;
    if (!code) code = open_store(session, STORE_WRITE, &err, &rc);
    *locked = !code && rc == E_LOCKED;
    return code || rc == OK || *locked ? code : report_store(session, &err);
}

int session_open_url(struct session *session, struct cli *cli, const char *url, enum store_mode mode)
{
    struct error err = {0};
    enum code rc = OK;
    *session = (struct session){.cli = cli, .tenant = args_text(&cli->args, FLAG_TENANT, "default"), .address = url};
    session->url = shown(cli, url);
    session->remote = url_is_server(url);
    int code = open_store(session, mode, &err, &rc);
    return code || rc == OK ? code : report_store(session, &err);
}

void session_close(struct session *session)
{
    if (session->store) store_close(session->store);
    keep_close(session->keep);
    session->store = NULL;
    session->keep = NULL;
}

bool session_is_memory(const struct session *session)
{
    return strncmp(session->url, "memory", 6) == 0;
}
