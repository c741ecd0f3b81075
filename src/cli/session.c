#include "cli/session.h"

#include "os/os.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH_LENGTH_MAX 4096

static const char *default_url(struct cli *cli)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && state[0] == '/') return cli_format(cli, "sqlite:%s/cairn/cairn.db", state);
    if (!home || home[0] != '/') {
        const struct passwd *user = getpwuid(getuid());
        home = user ? user->pw_dir : "/tmp";
    }
    return cli_format(cli, "sqlite:%s/.local/state/cairn/cairn.db", home);
}

// "sqlite:./x.db" -> "sqlite:/home/me/x.db", links in the directory resolved.
static const char *absolute_url(struct cli *cli, const char *url)
{
    char directory[PATH_LENGTH_MAX], real[PATH_LENGTH_MAX];
    const char *colon = strchr(url, ':');
    if (!colon || !colon[1] || strncmp(url, "memory", 6) == 0) return url;
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
    if (!path || strncmp(url, "memory", 6) == 0) return OK;
    path++;
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path) return OK;
    return os_make_dirs(cli_format(cli, "%.*s", (int)(slash - path), path), err);
}

int session_contract(struct session *session)
{
    struct error err = {0};
    if (session->contract) return EXIT_OK;
    return contract_open(&session->cli->arena, &session->contract, &err) ? cli_error(session->cli, &err) : EXIT_OK;
}

static bool is_plain_word(const char *text)
{
    return text[strcspn(text, " '\"\\$&|;<>()*?[]#~`!{}\t\n")] == '\0';
}

static void choose(struct session *session, struct cli *cli)
{
    struct str flag = args_has(&cli->args, FLAG_STORE) ? args_text(&cli->args, FLAG_STORE, "") : STR("");
    struct str named = args_text(&cli->args, FLAG_STORE, "");
    *session = (struct session){.cli = cli, .tenant = args_text(&cli->args, FLAG_TENANT, "default")};
    session->url = named.len ? named.ptr : default_url(cli);
    const char *quote = is_plain_word(session->url) ? "" : "'";
    const char *store = flag.len ? cli_format(cli, " --store %s%s%s", quote, session->url, quote) : "";
    bool tenant = args_has(&cli->args, FLAG_TENANT);
    cli->tail = cli_format(cli, "%s%s%.*s", store, tenant ? " --tenant " : "", tenant ? (int)session->tenant.len : 0,
                           session->tenant.ptr);
}

int session_url(struct cli *cli, const char **out)
{
    struct session session;
    struct error err = {0};
    choose(&session, cli);
    *out = absolute_url(cli, session.url);
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

static int open_store(struct session *session, enum store_mode mode, struct error *err, enum code *rc)
{
    struct cli *cli = session->cli;
    const char *url = absolute_url(cli, session->url);
    struct store_options options = {.mode = mode, .create = mode == STORE_WRITE, .entropy = os_entropy()};
    if (mode == STORE_WRITE) {
        int code = session_contract(session);
        if (code) return code;
        *rc = make_parent(cli, url, err);
        url = absolute_url(cli, session->url);
    }
    options.contract = session->contract;
    if (!*rc) *rc = store_open(str_from(url), &options, &session->store, err);
    return EXIT_OK;
}

int session_open(struct session *session, struct cli *cli, enum store_mode mode)
{
    struct error err = {0};
    enum code rc = OK;
    choose(session, cli);
    int code = open_store(session, mode, &err, &rc);
    if (code || rc == OK) return code;
    if (rc != E_NOT_FOUND || mode == STORE_WRITE) return cli_error(cli, &err);
    return args_text(&cli->args, FLAG_STORE, "").len > 0 ? report_missing(session) : EXIT_OK;
}

int session_open_write(struct session *session, struct cli *cli, const struct contract *contract, bool *locked)
{
    struct error err = {0};
    enum code rc = OK;
    *locked = false;
    choose(session, cli);
    session->contract = contract;
    int code = open_store(session, STORE_WRITE, &err, &rc);
    *locked = !code && rc == E_LOCKED;
    return code || rc == OK || *locked ? code : cli_error(cli, &err);
}

int session_open_url(struct session *session, struct cli *cli, const char *url, enum store_mode mode)
{
    struct error err = {0};
    enum code rc = OK;
    *session = (struct session){.cli = cli, .tenant = args_text(&cli->args, FLAG_TENANT, "default"), .url = url};
    int code = open_store(session, mode, &err, &rc);
    return code || rc == OK ? code : cli_error(cli, &err);
}

void session_close(struct session *session)
{
    if (session->store) store_close(session->store);
    session->store = NULL;
}

bool session_is_memory(const struct session *session)
{
    return strncmp(session->url, "memory", 6) == 0;
}
