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
        return cli_hint(cli, "--server URL, $CAIRN_SERVER, or a context of a server: `cairn context ls`");
    }
    return session_open(session, cli, STORE_READ);
}

struct str server_path(struct cli *cli, const char *path)
{
    struct buf out = buf_of(PATH_SIZE);
    size_t word = 0;
    bool wide = str_starts(str_from(path), STR("/v1/definitions/")); // names of plans may hold slashes, others are one segment
    for (const char *at = path; *at; at++) {
        if (at[0] != '{' || at[1] != '}') {
            buf_byte(&out, *at);
            continue;
        }
        if (word < cli->args.word_count)
            (wide ? http_percent_encode_path : http_percent_encode)(&out, cli->args.words[word++]);
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

// `quiet`: a list that this token may not read is none, and nothing is reported.
static int all_of(struct session *session, const char *path, bool quiet, struct json *items)
{
    struct cli *cli = session->cli;
    struct str next = server_path(cli, path), first = next;
    int code = next.ptr ? EXIT_OK : EXIT_ERROR;
    *items = json_array();
    for (size_t pages = 0; !code && next.len > 0 && pages < PAGES_MAX; pages++) {
        struct json page;
        struct error err = {0};
        struct server_call call = {.method = "GET", .path = next};
        enum code rc = store_server_call(session->store, &call, &cli->io.arena, &page, &err);
        if (rc) code = quiet ? EXIT_ERROR : cli_error(cli, &err);
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

int server_all(struct session *session, const char *path, struct json *items)
{
    return all_of(session, path, false, items);
}

int server_whole_id(struct session *session, const char *path, const char *key, size_t size)
{
    struct cli *cli = session->cli;
    struct str *word = &cli->args.words[cli->args.word_count - 1], found = {0};
    struct json rows;
    if (word->len == 0 || word->len >= size || all_of(session, path, true, &rows)) return EXIT_OK;
    for (uint32_t i = 0; i < rows.count; i++) {
        struct str id = json_text(json_key(&rows.items[i], key));
        if (str_eq(id, *word)) return EXIT_OK;
        if (!str_starts(id, *word) || str_eq(id, found)) continue;
        if (found.len)
            return cli_fail(cli, EXIT_USAGE, "%s is the beginning of %.*s and of %.*s: give more of it", word->ptr,
                            STR_ARG(found), STR_ARG(id));
        found = id;
    }
    if (!found.len) return EXIT_OK;
    *word = arena_copy(&cli->io.arena, found);
    return word->ptr ? EXIT_OK : cli_nomem(cli);
}
