#include "cli/at_service.h"

#include "base/text.h"
#include "http/http.h"
#include "store/server.h"

enum { PATH_SIZE = 8192, PAGES_MAX = 1000 };

int server_open(struct session *session, struct cli *cli)
{
    bool remote;
    int code = session_where(cli, &remote);
    if (code) return code;
    if (!remote) {
        cli_fail(cli, EXIT_USAGE, "`cairn %s` asks a server, and a store is meant here", cli->args.command->name);
        cli_hint(cli, "--server URL, $CAIRN_SERVER, or a context of a server: `cairn context ls`");
        return EXIT_USAGE;
    }
    return session_open(session, cli, STORE_READ);
}

struct str server_path(struct cli *cli, const char *path)
{
    struct buf out = buf_of(PATH_SIZE);
    size_t word = 0;
    for (const char *at = path; *at; at++) {
        if (at[0] != '{' || at[1] != '}') {
            buf_byte(&out, *at);
            continue;
        }
        if (word < cli->args.word_count) http_percent_encode(&out, cli->args.words[word++]);
        at++;
    }
    struct str kept = buf_keep(&out, &cli->io.arena);
    if (!kept.ptr) cli_nomem(cli);
    return kept;
}

int server_ask(struct session *session, const char *method, struct str path, const struct json *body, struct json *out)
{
    struct cli *cli = session->cli;
    struct error err = {0};
    struct json answer;
    struct server_call call = {.method = method, .path = path, .body = body};
    enum code rc = store_server_call(session->store, &call, &cli->io.arena, &answer, &err);
    if (out) *out = answer;
    return rc ? cli_error(cli, &err) : EXIT_OK;
}

int server_all(struct session *session, const char *path, struct json *items)
{
    struct cli *cli = session->cli;
    struct str next = server_path(cli, path), first = next;
    int code = next.ptr ? EXIT_OK : EXIT_ERROR;
    *items = json_array();
    for (size_t pages = 0; !code && next.len > 0 && pages < PAGES_MAX; pages++) {
        struct json page;
        code = server_ask(session, "GET", next, NULL, &page);
        const struct json *list = code ? NULL : json_key(&page, "items");
        for (uint32_t i = 0; json_is(list, JSON_ARRAY) && i < list->count; i++)
            json_append(&cli->io.arena, items, list->items[i]);
        struct str cursor = code ? STR("") : json_text(json_key(&page, "nextCursor"));
        struct buf more = buf_of(PATH_SIZE);
        if (cursor.len > 0) {
            buf_add(&more, first);
            buf_text(&more, str_find(first, '?', 0) < first.len ? "&cursor=" : "?cursor=");
            http_percent_encode(&more, cursor);
        }
        next = buf_keep(&more, &cli->io.arena);
        if (!code && (!next.ptr || !json_ok(items))) code = cli_nomem(cli);
    }
    return code;
}
