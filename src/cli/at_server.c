#include "cli/at_server.h"

#include "cli/drive.h"
#include "cli/watch.h"
#include "base/uuid.h"
#include "http/http.h"
#include "os/os.h"
#include "store/server.h"

// ---- what is sent

int put_document(struct cli *cli, const struct document *document, struct json *body)
{
    const struct sources *sources = &document->sources;
    struct json parts = json_array();
    for (size_t i = 0; i < sources->count; i++)
        if (!str_utf8(sources->items[i].text))
            return cli_fail(cli, EXIT_INVALID, "%.*s is not UTF-8: it cannot be sent", STR_ARG(sources->items[i].file));
    for (size_t i = 1; i < sources->count; i++) {
        const struct source *source = &sources->items[i];
        json_append(&cli->io.arena, &parts,
                    JSON_OF(&cli->io.arena, {"from", json_string(source->from)},
                            {"request", json_string(source->request)}, {"file", json_string(source->file)},
                            {"text", json_string(source->text)}));
    }
    JSON_ADD(&cli->io.arena, body, {"document", json_some(sources->items[0].text)},
             {"file", json_some(sources->items[0].file)}, {"parts", json_filled(parts)});
    return json_ok(body) ? EXIT_OK : cli_nomem(cli);
}

// Asked again after a connection broke, it is still the same request.
static struct str fresh_key(struct cli *cli)
{
    uint8_t random[16];
    char id[UUID_SIZE];
    os_entropy()->fill(os_entropy(), random, sizeof(random));
    uuid_format(random, id);
    return str_from(cli_format(cli, "%s", id));
}

static int start_body(struct cli *cli, const struct document *document, struct json *body)
{
    struct json inputs;
    int code = inputs_read(cli, document->program, &inputs);
    if (code) return code;
    inputs_warn(cli, document->program, &inputs);
    code = inputs_env(cli, document->program, &inputs);
    if (code) return code;
    *body = json_object();
    code = put_document(cli, document, body);
    if (code) return code;
    JSON_ADD(&cli->io.arena, body, {"runId", json_some(args_text(&cli->args, FLAG_RUN_ID, ""))},
             {"projectId", json_some(args_text(&cli->args, FLAG_PROJECT, ""))},
             {"environmentId", json_some(args_text(&cli->args, FLAG_ENVIRONMENT, ""))},
             {"arguments", json_some(arguments_read(cli))}, {"triggerSource", json_word("manual")},
             {"queue", json_some(args_text(&cli->args, FLAG_QUEUE, ""))},
             {"inputs", json_filled(inputs)});
    return json_ok(body) ? EXIT_OK : cli_nomem(cli);
}

// What only makes sense where steps run.
static int check_flags(struct cli *cli)
{
    static const enum flag here[] = {FLAG_PLUGIN, FLAG_LIMITS, FLAG_RETENTION, FLAG_CONFINE, FLAG_SECRETS, FLAG_CREDENTIALS,
                                     FLAG_TOOLS,  FLAG_NO_RUN,  FLAG_RESULTS};
    for (size_t i = 0; i < ARRAY_COUNT(here); i++) {
        if (!args_has(&cli->args, here[i])) continue;
        cli_fail(cli, EXIT_USAGE, "--%s is for runs in this process, and this one is a server's",
                 flag_info(here[i])->name);
        cli_hint(cli, "what steps may do there is settled by `cairn serve` and `cairn worker`");
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

// The mistakes that a problem lists, below its own words.
static int report(struct cli *cli, const struct error *err, const struct json *problem)
{
    const struct json *errors = json_key(problem, "errors");
    struct str hint = json_text(json_key(problem, "hint"));
    int code = cli_error(cli, err);
    for (uint32_t i = 0; json_is(errors, JSON_ARRAY) && i < errors->count; i++) {
        struct str message = json_text(json_key(&errors->items[i], "message"));
        if (message.len) cli_hint(cli, "%.*s", STR_ARG(message));
    }
    if (hint.len) cli_hint(cli, "%.*s", STR_ARG(hint));
    return code;
}

static int made(struct cli *cli, enum code rc, const struct json *answer, struct str *run, const struct error *err)
{
    if (rc) return report(cli, err, answer);
    *run = arena_copy(&cli->io.arena, json_text(json_key(answer, "runId")));
    if (!run->ptr) return cli_nomem(cli);
    return run->len ? EXIT_OK : cli_fail(cli, EXIT_UNREACHABLE, "the server does not say which run it made");
}

// A service that takes no documents in requests takes them as definitions, and starts them by their reference.
static enum code start_defined(struct session *session, const struct document *document, const struct json *body,
                               struct json *answer, struct error *err)
{
    struct cli *cli = session->cli;
    struct arena *arena = &cli->io.arena;
    const struct program *program = document->program;
    struct str sha = str_from(program->sha256_hex), uri = arena_format(arena, "cairn://plans/%.*s", STR_ARG(sha));
    if (document->sources.count > 1)
        return error_set(err, E_DENIED, "the server takes references alone, and one cannot hold the files that the document names");
    struct buf path = buf_of(4096);
    buf_text(&path, "/v1/definitions/");
    http_percent_encode(&path, program->plan_id);
    buf_printf(&path, "/versions/%.*s", STR_ARG(sha));
    struct server_call put = {.method = "PUT", .path = buf_str(&path), .bytes = document->sources.items[0].text};
    enum code rc = buf_ok(&path) && uri.ptr ? store_server_call(session->store, &put, arena, answer, err) : error_nomem(err);
    buf_release(&path);
    if (rc) return rc;
    struct json rest = json_object();
    for (uint32_t i = 0; i < body->count; i++) {
        struct str key = body->members[i].key;
        if (str_is(key, "document") || str_is(key, "file")) continue;
        if (!json_put(arena, &rest, key, body->members[i].value)) return error_nomem(err);
    }
    struct str version = program->schema_version.len ? program->schema_version : STR("v1.2");
    JSON_ADD(arena, &rest, {"planRef", JSON_OF(arena, {"planId", json_string(program->plan_id)},
                                              {"planVersion", json_string(program->plan_version)},
                                              {"schemaVersion", json_string(version)}, {"sha256", json_string(sha)},
                                              {"uri", json_string(uri)})});
    if (!json_ok(&rest)) return error_nomem(err);
    cli_note(cli, "the server takes no documents in requests: this one is its definition %.*s", STR_ARG(program->plan_id));
    struct server_call call = {"POST", STR("/v1/runs"), &rest, fresh_key(cli), {0}};
    return store_server_call(session->store, &call, arena, answer, err);
}

static int start(struct session *session, const struct document *document, struct str *run)
{
    struct cli *cli = session->cli;
    struct json body, answer = {0};
    struct error err = {0};
    int code = start_body(cli, document, &body);
    if (code) return code;
    struct server_call call = {"POST", STR("/v1/runs"), &body, fresh_key(cli), {0}};
    enum code rc = store_server_call(session->store, &call, &cli->io.arena, &answer, &err);
    if (rc && str_is(json_text(json_key(&answer, "code")), "PLAN_INLINE_NOT_ALLOWED")) {
        err = (struct error){0};
        rc = start_defined(session, document, &body, &answer, &err);
    }
    return made(cli, rc, &answer, run, &err);
}

int fork_at_server(struct session *session, struct str source, const char *how, struct json *body, struct str *run)
{
    struct cli *cli = session->cli;
    struct json answer = {0};
    struct error err = {0};
    int code = check_flags(cli);
    if (code) return code;
    struct buf path = buf_of(4096);
    buf_text(&path, "/v1/runs/");
    http_percent_encode(&path, source);
    buf_printf(&path, "/%s", how);
    struct server_call call = {"POST", buf_str(&path), body, fresh_key(cli), {0}};
    enum code rc =
        buf_ok(&path) ? store_server_call(session->store, &call, &cli->io.arena, &answer, &err) : error_nomem(&err);
    buf_release(&path);
    return made(cli, rc, &answer, run, &err);
}

// ---- following

static int leave(struct session *session, struct str run, int code)
{
    struct cli *cli = session->cli;
    cli_note(cli, "run %.*s goes on at %s", STR_ARG(run), session->url);
    cli_next(cli, "watch %.*s", STR_ARG(run));
    return code;
}

static int detach(struct session *session, struct str run)
{
    struct buf text = buf_of(1024);
    buf_printf(&text, "%.*s\n", STR_ARG(run));
    cli_print(session->cli, &text);
    buf_release(&text);
    return leave(session, run, EXIT_OK);
}

int follow_at_server(struct session *session, struct str run)
{
    struct cli *cli = session->cli;
    struct run_head head;
    struct error err = {0};
    struct str interrupt = args_text(&cli->args, FLAG_ON_INTERRUPT, "detach");
    struct watching watching = {
        .session = session,
        .mode = progress_mode_of(cli),
        .exit_on_wait = args_has(&cli->args, FLAG_EXIT_ON_WAIT),
        .approves = args_has(&cli->args, FLAG_APPROVE) || args_has(&cli->args, FLAG_APPROVE_ALL),
        .on_interrupt = str_is(interrupt, "detach") ? NULL : interrupt.ptr,
    };
    if (args_has(&cli->args, FLAG_DETACH)) return detach(session, run);
    int code = EXIT_OK;
    if (store_head(session->store, session->tenant, run, &cli->io.arena, &head, &err))
        code = cli_error(cli, &err);
    else
        code = watch_run(&watching, &head);
    if (watching.left) return leave(session, run, code);
    if (code != EXIT_UNREACHABLE) return drive_finish(session, run, watching.mode, code);
    cli_hint(cli, "run %.*s is the server's and goes on with it: %s", STR_ARG(run),
             cli_command(cli, "watch %.*s", STR_ARG(run)));
    return code;
}

// ---- cairn run

static int resume(struct session *session, const struct run_head *head)
{
    struct cli *cli = session->cli;
    struct signal signal;
    struct error err = {0};
    struct str bytes;
    if (head->summary.status != RUN_STATUS_PAUSED) return EXIT_OK;
    signal_prepare(cli, SIGNAL_RESUME, STR(""), STR(""), &signal);
    enum code rc = signal_encode(&signal, &cli->io.arena, &bytes, &err);
    if (!rc) rc = store_post(session->store, head->ids.tenant, head->ids.run, signal.id, bytes, &err);
    if (rc) return cli_error(cli, &err);
    cli_note(cli, "run %.*s was paused: resuming it", STR_ARG(head->ids.run));
    return EXIT_OK;
}

static int go_on(struct session *session, const struct program *program, const struct run_head *head)
{
    struct cli *cli = session->cli;
    if (!digest_eq(&head->document, &program->sha256)) {
        cli_fail(cli, EXIT_CONFLICT, "run %.*s was started from another document (%.*s @ %.*s)", STR_ARG(head->ids.run),
                 STR_ARG(head->ids.plan_id), STR_ARG(head->ids.plan_version));
        cli_hint(cli, "a run keeps the document it was started with; another --run-id starts this one");
        return EXIT_CONFLICT;
    }
    if (head->terminal) {
        cli_note(cli, "run %.*s has already ended; it is not run again", STR_ARG(head->ids.run));
        return drive_finish(session, head->ids.run, progress_mode_of(cli), exit_of_status(head->summary.status));
    }
    int code = resume(session, head);
    return code ? code : follow_at_server(session, head->ids.run);
}

int run_at_server(struct cli *cli, const struct document *document)
{
    struct session session;
    struct run_head head;
    struct error err = {0};
    struct str run = {0}, id = args_text(&cli->args, FLAG_RUN_ID, "");
    enum code rc = E_NOT_FOUND;
    int code = check_flags(cli);
    if (!code) code = session_open(&session, cli, STORE_READ);
    if (code) return code;
    if (id.len > 0) rc = store_head(session.store, session.tenant, id, &cli->io.arena, &head, &err);
    if (rc == OK) {
        code = go_on(&session, document->program, &head);
    } else if (rc != E_NOT_FOUND) {
        code = cli_error(cli, &err);
    } else {
        code = start(&session, document, &run);
        if (!code) code = follow_at_server(&session, run);
    }
    session_close(&session);
    return code;
}
