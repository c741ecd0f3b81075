// What only the present knows of a run, asked of the service that drives it (docs/format/why.md, "Now").
#include "cli/card.h"
#include "cli/present.h"
#include "cli/server.h"

#include "http/http.h"
#include "os/os.h"
#include "store/server.h"

#include <unistd.h>

static const struct json *ask(struct cli *cli, struct store *store, struct str run)
{
    struct error err = {0};
    struct buf path SCOPED(buf_release) = buf_of(4096);
    struct json *out = ARENA_NEW(&cli->io.arena, struct json);
    buf_text(&path, "/v1/runs/");
    http_percent_encode(&path, run);
    buf_text(&path, "/places");
    struct server_call call = {.method = "GET", .path = buf_str(&path)};
    bool told = out && buf_ok(&path) && store_server_call(store, &call, &cli->io.arena, out, &err) == OK;
    return told ? out : NULL;
}

// Where the process is that serves the store, as it noted beside it, and the token that it left there. NULL: no process, or not for us.
static const char *noted(struct cli *cli, const char *path, struct str *token)
{
    struct str text, rest;
    struct error err = {0};
    if (os_read_file(cli_format(cli, "%s.serve", path), 4096, &cli->io.arena, &text, &err)) return NULL;
    str_cut(text, '\n', &rest);
    struct str url = str_cut(rest, '\n', &rest);
    if (url.len == 0 || os_read_file(cli_format(cli, "%s.token", path), 4096, &cli->io.arena, &text, &err)) return NULL;
    *token = str_trim(text);
    return cli_format(cli, "%.*s", STR_ARG(url));
}

static struct store *service_of(struct session *session)
{
    struct cli *cli = session->cli;
    struct error err = {0};
    struct str token, path;
    struct store *store = NULL;
    str_cut(str_from(session->address), ':', &path);
    const char *url = path.len ? noted(cli, cli_format(cli, "%.*s", STR_ARG(path)), &token) : NULL;
    struct store_options options = {.mode = STORE_READ, .token = token};
    if (!url || !url_is_here(url)) return NULL;
    return store_open(str_from(url), &options, &store, &err) ? NULL : store;
}

const struct json *run_present(struct session *session, const struct run_head *head)
{
    if (!session->store || head->terminal) return NULL;
    if (session->remote) return ask(session->cli, session->store, head->ids.run);
    if (!head->owned) return NULL;
    struct store *store = service_of(session);
    const struct json *out = store ? ask(session->cli, store, head->ids.run) : NULL;
    if (store) store_close(store);
    return out;
}
