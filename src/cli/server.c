#include "cli/server.h"

#include "cli/login.h"

#include "fetch/fetch.h"
#include "os/os.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOKEN_MAX = 4096 };

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

bool url_is_server(const char *url)
{
    return starts(url, "http:") || starts(url, "https:") || starts(url, "unix:");
}

int server_choose(struct cli *cli, const char **url)
{
    const struct args *args = &cli->args;
    const struct flag_default *store = &args->defaults[FLAG_STORE], *server = &args->defaults[FLAG_SERVER];
    bool store_flag = args_has(args, FLAG_STORE), server_flag = args_has(args, FLAG_SERVER);
    struct str named = args_text(args, FLAG_SERVER, "");
    *url = NULL;
    if (command_takes(args->command, FLAG_STORE) && !command_takes(args->command, FLAG_SERVER)) return EXIT_OK;
    if (store_flag && server_flag)
        return cli_fail(cli, EXIT_USAGE, "--store and --server are two places: which of them is meant?");
    if (store_flag || named.len == 0) return EXIT_OK;
    if (!server_flag && store->text.len && store->rank < server->rank) return EXIT_OK;
    if (!server_flag && store->text.len && store->rank == server->rank) {
        cli_fail(cli, EXIT_USAGE, "%s sets a store and %s a server: which of them is meant?", store->origin,
                 server->origin);
        return cli_hint(cli,
                        "--store or --server on the command line decides; a [profile.NAME] for each keeps them apart");
    }
    if (!url_is_server(named.ptr)) {
        cli_fail(cli, EXIT_USAGE, "%s is not the address of a server", named.ptr);
        return cli_hint(cli, "http://HOST:PORT, https://HOST or unix:PATH");
    }
    *url = named.ptr;
    return EXIT_OK;
}

bool url_is_here(const char *url)
{
    struct fetch_place place;
    struct error err = {0};
    return starts(url, "unix:") || (fetch_place_parse(str_from(url), &place, &err) == OK && place.here);
}

static int read_token(struct cli *cli, const char *path, const char *from, struct server_access *out)
{
    struct error err = {0};
    struct str text;
    if (os_read_file(path, TOKEN_MAX, &cli->io.arena, &text, &err)) {
        cli_fail(cli, EXIT_USAGE, "the token cannot be read (%s): %s", from, err.message);
        return EXIT_USAGE;
    }
    out->token = str_trim(text);
    out->token_from = from;
    return EXIT_OK;
}

static int no_token(struct cli *cli, const char *url)
{
    cli_fail(cli, EXIT_DENIED, "there is no token for %s", url);
    cli_hint(cli, "`cairn login --server %s`, where the server has an identity provider", url);
    cli_hint(cli, "--token-file FILE or $CAIRN_TOKEN; `cairn config set token-file FILE` keeps it");
    cli_hint(cli, "`cairn serve` says where the first one is; `cairn token new` makes more, `cairn token bootstrap` when all are lost");
    return EXIT_DENIED;
}

int server_access(struct cli *cli, const char *url, const char *store, struct server_access *out)
{
    const char *variable = args_has(&cli->args, FLAG_NO_CONFIG_ENV) ? NULL : getenv("CAIRN_TOKEN");
    struct str file = args_text(&cli->args, FLAG_TOKEN_FILE, "");
    const char *path = strchr(store, ':');
    *out = (struct server_access){.ca_file = args_text(&cli->args, FLAG_CA_FILE, "")};
    if (starts(url, "http:") && !url_is_here(url)) cli_warn(cli, "any machine between here and %s can read the token", url);
    if (args_has(&cli->args, FLAG_TOKEN_FILE))
        return read_token(cli, file.ptr, cli_format(cli, "--token-file %s", file.ptr), out);
    if (variable && variable[0]) {
        out->token = str_trim(str_from(variable));
        out->token_from = "$CAIRN_TOKEN";
        return EXIT_OK;
    }
    if (file.len > 0)
        return read_token(cli, file.ptr,
                          cli_format(cli, "token-file of %s", cli->args.defaults[FLAG_TOKEN_FILE].origin), out);
    int code = login_token(cli, url, &out->token, &out->token_from);
    if (code || out->token.len) return code;
    const char *left = path ? cli_format(cli, "%s.token", path + 1) : "";
    if (url_is_here(url) && left[0] && access(left, R_OK) == 0) return read_token(cli, left, left, out);
    return no_token(cli, url);
}
