#include "cli/at_server.h"

#include "cli/drive.h"
#include "cli/hosting.h"
#include "cli/watch.h"
#include "http/http.h"
#include "os/os.h"

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
    char id[UUID_SIZE];
    entropy_uuid(os_entropy(), id);
    return str_from(cli_format(cli, "%s", id));
}

// `ref` instead of a document: of one that the server has.
static int start_body(struct cli *cli, const struct document *document, const struct json *ref, struct json *body)
{
    struct json inputs;
    struct str target;
    int code = hosting_target(cli, &target);
    if (!code) code = inputs_read(cli, document ? document->program : NULL, &inputs);
    if (code) return code;
    if (document) inputs_warn(cli, document->program, &inputs);
    if (document) code = inputs_env(cli, document->program, &inputs);
    if (code) return code;
    *body = json_object();
    if (document) code = put_document(cli, document, body);
    if (code) return code;
    if (ref) JSON_ADD(&cli->io.arena, body, {"planRef", *ref});
    JSON_ADD(&cli->io.arena, body, {"runId", json_some(args_text(&cli->args, FLAG_RUN_ID, ""))},
             {"projectId", json_some(args_text(&cli->args, FLAG_PROJECT, ""))},
             {"targetAdapter", json_some(target)},
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
                                     FLAG_CONTAINERS, FLAG_TOOLS, FLAG_NO_RUN, FLAG_RESULTS, FLAG_TEMPORAL, FLAG_NAMESPACE,
                                     FLAG_TASK_QUEUE};
    for (size_t i = 0; i < ARRAY_COUNT(here); i++) {
        if (!args_has(&cli->args, here[i])) continue;
        cli_fail(cli, EXIT_USAGE, "--%s is for runs in this process, and this one is a server's",
                 flag_info(here[i])->name);
        return cli_hint(cli, "what steps may do there is settled by `cairn serve` and `cairn worker`");
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
    // A document that asks for what is not there is refused as one is that is run here.
    return str_is(json_text(json_key(problem, "code")), "UNSUPPORTED") ? EXIT_INVALID : code;
}

static int made(struct cli *cli, enum code rc, const struct json *answer, struct str *run, const struct error *err)
{
    if (rc) return report(cli, err, answer);
    *run = arena_copy(&cli->io.arena, json_text(json_key(answer, "runId")));
    if (!run->ptr) return cli_nomem(cli);
    return run->len ? EXIT_OK : cli_fail(cli, EXIT_UNREACHABLE, "the server does not say which run it made");
}

// What is kept under a hash: the document, or with the files that it names the canonical JSON of all of them.
static enum code bytes_to_keep(struct cli *cli, const struct document *document, struct str *bytes, struct digest *sha,
                               struct error *err)
{
    struct json set = json_object();
    struct buf text = buf_of((size_t)64 << 20);
    *bytes = document->sources.items[0].text;
    *sha = document->program->sha256;
    if (document->sources.count == 1) return OK;
    if (put_document(cli, document, &set)) return error_set(err, E_INVALID, "the documents cannot be sent");
    json_canon(&text, &set);
    *bytes = buf_keep(&text, &cli->io.arena);
    *sha = sha256(*bytes);
    return bytes->ptr ? OK : error_nomem(err);
}

// Puts the document as a definition, and its reference into the request in its place.
static enum code by_reference(struct session *session, const struct document *document, const struct json *body,
                              struct json *rest, struct json *answer, struct error *err)
{
    struct cli *cli = session->cli;
    struct arena *arena = &cli->io.arena;
    const struct program *program = document->program;
    struct str bytes;
    struct digest digest;
    char hex[SHA256_HEX + 1];
    enum code rc = bytes_to_keep(cli, document, &bytes, &digest, err);
    if (rc) return rc;
    digest_hex(&digest, hex);
    struct str sha = arena_copy(arena, str_from(hex)), uri = arena_format(arena, "cairn://plans/%s", hex);
    struct buf path SCOPED(buf_release) = buf_of(4096);
    buf_text(&path, "/v1/definitions/");
    http_percent_encode_path(&path, program->plan_id);
    buf_printf(&path, "/versions/%.*s", STR_ARG(sha));
    struct server_call put = {.method = "PUT", .path = buf_str(&path), .bytes = bytes};
    rc = buf_ok(&path) && sha.ptr && uri.ptr ? store_server_call(session->store, &put, arena, answer, err) : error_nomem(err);
    if (rc) return rc;
    *rest = json_object();
    for (uint32_t i = 0; i < body->count; i++) {
        struct str key = body->members[i].key;
        if (str_is(key, "document") || str_is(key, "file") || str_is(key, "parts")) continue;
        if (!json_put(arena, rest, key, body->members[i].value)) return error_nomem(err);
    }
    struct str version = program->schema_version.len ? program->schema_version : STR("v1.2");
    JSON_ADD(arena, rest, {"planRef", JSON_OF(arena, {"planId", json_string(program->plan_id)},
                                              {"planVersion", json_string(program->plan_version)},
                                              {"schemaVersion", json_string(version)}, {"sha256", json_string(sha)},
                                              {"uri", json_string(uri)})});
    if (!json_ok(rest)) return error_nomem(err);
    cli_note(cli, "the server takes no documents in requests: this one is its definition %.*s", STR_ARG(program->plan_id));
    return OK;
}

enum code send_document(struct session *session, const struct document *document, struct server_call call,
                        struct json *answer, struct error *err)
{
    struct arena *arena = &session->cli->io.arena;
    struct json rest;
    enum code rc = store_server_call(session->store, &call, arena, answer, err);
    if (!rc || !document || !str_is(json_text(json_key(answer, "code")), "PLAN_INLINE_NOT_ALLOWED")) return rc;
    *err = (struct error){0};
    rc = by_reference(session, document, call.body, &rest, answer, err);
    if (rc) return rc;
    call.body = &rest;
    if (call.key.len > 0) call.key = fresh_key(session->cli); // it is another request
    return store_server_call(session->store, &call, arena, answer, err);
}

static int start(struct session *session, const struct document *document, const struct json *ref, struct str *run)
{
    struct cli *cli = session->cli;
    struct json body, answer = {0};
    struct error err = {0};
    int code = start_body(cli, document, ref, &body);
    if (code) return code;
    struct server_call call = {"POST", STR("/v1/runs"), &body, fresh_key(cli), {0}};
    enum code rc = send_document(session, document, call, &answer, &err);
    return made(cli, rc, &answer, run, &err);
}

int fork_at_server(struct session *session, struct str source, const char *how, const struct document *document,
                   struct json *body, struct str *run)
{
    struct cli *cli = session->cli;
    struct json answer = {0};
    struct error err = {0};
    int code = check_flags(cli);
    if (code) return code;
    struct buf path SCOPED(buf_release) = buf_of(4096);
    buf_text(&path, "/v1/runs/");
    http_percent_encode(&path, source);
    buf_printf(&path, "/%s", how);
    struct server_call call = {"POST", buf_str(&path), body, fresh_key(cli), {0}};
    enum code rc =
        buf_ok(&path) ? send_document(session, document, call, &answer, &err) : error_nomem(&err);
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
    struct buf text SCOPED(buf_release) = buf_of(1024);
    buf_printf(&text, "%.*s\n", STR_ARG(run));
    cli_print(session->cli, &text);
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
        return cli_hint(cli, "a run keeps the document it was started with; another --run-id starts this one");
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
    struct session session SCOPED(session_close) = {0};
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
        code = start(&session, document, NULL, &run);
        if (!code) code = follow_at_server(&session, run);
    }
    return code;
}

int run_reference_at_server(struct session *session, const struct json *ref)
{
    struct str run = {0};
    int code = check_flags(session->cli);
    if (!code) code = start(session, NULL, ref, &run);
    return code ? code : follow_at_server(session, run);
}
