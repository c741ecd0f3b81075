// Why a step or a run is in the state it is in. The answer is made in src/explain; here it is found and shown.
#include "cli/card.h"
#include "cli/commands.h"
#include "term/why.h"

#include "http/http.h"
#include "reading/reading.h"
#include "store/server.h"

#include <inttypes.h>

enum { LISTED_MAX = 8 };

static bool is_inside(struct str path, struct str id)
{
    return path.len > id.len && str_ends(path, id) && path.ptr[path.len - id.len - 1] == '.';
}

static int no_such_step(struct session *session, const struct explained_run *explained, struct str step)
{
    struct cli *cli = session->cli;
    struct str path, inside = {0}, near = {0};
    size_t best = step.len / 3 + 1;
    cli_fail(cli, EXIT_NOT_FOUND, "run %.*s has no step %.*s", STR_ARG(explained->head.ids.run), STR_ARG(step));
    for (size_t cursor = 0; (path = explain_path(explained->explain, &cursor, &cli->io.arena)).ptr;) {
        size_t distance = str_distance(path, step, best);
        if (!inside.ptr && is_inside(path, step)) inside = path;
        if (distance < best) {
            best = distance;
            near = path;
        }
    }
    if (inside.ptr)
        cli_hint(cli, "it runs inside a loop, once a round: %.*s", STR_ARG(inside));
    else if (near.ptr)
        cli_hint(cli, "did you mean %.*s?", STR_ARG(near));
    cli_next(cli, "get %.*s", STR_ARG(explained->head.ids.run));
    return EXIT_NOT_FOUND;
}

// What only the present knows: who drives the run. It is not in the log.
static bool add_owner(struct cli *cli, const struct run_head *head, struct json *answer)
{
    struct arena *arena = &cli->io.arena;
    if (head->terminal) return true;
    JSON_ADD(arena, answer, {"owner", JSON_OF(arena, {"alive", json_bool(head->owned)},
                                              {"pid", json_when(head->owned, json_int(head->owner_pid))})});
    if (!json_ok(answer)) return false;
    bool waits = head->summary.status == RUN_STATUS_PAUSED || head->summary.status == RUN_STATUS_PENDING;
    if (head->owned || waits) return true;
    struct json *next = NULL, line = json_string(str_from(cli_format(cli, "recover %.*s", STR_ARG(head->ids.run))));
    for (uint32_t i = 0; i < answer->count; i++)
        if (str_is(answer->members[i].key, "next")) next = &answer->members[i].value;
    if (next) return json_push(arena, next, line);
    struct json list = json_array();
    json_append(arena, &list, line);
    JSON_ADD(arena, answer, {"next", list});
    return json_ok(answer);
}

static int show(struct cli *cli, const struct target *target, struct json *out)
{
    if (!target->has_at && !add_owner(cli, &target->head, out)) return cli_nomem(cli);
    enum format format = format_of(cli, FORMAT_TEXT);
    if (format != FORMAT_TEXT) {
        print_json(&cli->io, format, out);
        return EXIT_OK;
    }
    struct buf text SCOPED(buf_release) = buf_of((size_t)64 << 20);
    why_write(&cli->io, &text, &cli->io.out, out, target->has_at ? target->head.last_seq : 0);
    cli_print(cli, &text);
    return EXIT_OK;
}

static int answer(struct session *session, const struct target *target, const struct explained_run *explained)
{
    struct cli *cli = session->cli;
    struct error err = {0};
    struct json out;
    int64_t now = target->has_at ? 0 : cli->io.now_ms;
    enum code rc = target->step.len ? explain_step(explained->explain, target->step, now, &cli->io.arena, &out, &err)
                                    : explain_run(explained->explain, now, &cli->io.arena, &out, &err);
    if (rc == E_NOT_FOUND) return no_such_step(session, explained, target->step);
    return rc ? cli_error(cli, &err) : show(cli, target, &out);
}

// Who may not see what conditions were about cannot ask the kernel again. The server does it, and leaves the values out.
static int answer_of_server(struct session *session, const struct target *target)
{
    struct cli *cli = session->cli;
    struct buf path SCOPED(buf_release) = buf_of(16 * 1024);
    struct error err = {0};
    struct json out;
    buf_text(&path, "/v1/runs/");
    http_percent_encode(&path, target->head.ids.run);
    if (target->step.len) {
        buf_text(&path, "/steps/");
        http_percent_encode_path(&path, target->step);
    }
    buf_text(&path, "/why");
    if (target->has_at) buf_printf(&path, "?at=%" PRIu64, target->at);
    struct server_call call = {.method = "GET", .path = buf_str(&path)};
    enum code rc = buf_ok(&path) ? store_server_call(session->store, &call, &cli->io.arena, &out, &err) : E_NOMEM;
    int code = rc == E_NOMEM       ? cli_nomem(cli)
               : rc == E_NOT_FOUND ? cli_fail(cli, EXIT_NOT_FOUND, "run %.*s has no step %.*s",
                                              STR_ARG(target->head.ids.run), STR_ARG(target->step))
               : rc                ? cli_error(cli, &err)
                                   : show(cli, target, &out);
    return code;
}

int command_why(struct cli *cli)
{
    struct session session SCOPED(session_close) = {0};
    struct target target = {0};
    struct explained_run explained SCOPED(explained_release) = {0};
    int code = session_open(&session, cli, STORE_READ);
    if (!code) code = target_find(&session, cli->args.words[0], TARGET_STEP | TARGET_MOMENT, &target);
    if (!code && session.store && store_server_redacted(session.store))
        code = answer_of_server(&session, &target);
    else if (!code)
        code = explained_load(&session, &target.head, target.at, target.step, false, &explained);
    if (!code && explained.explain) code = answer(&session, &target, &explained);
    return code;
}
