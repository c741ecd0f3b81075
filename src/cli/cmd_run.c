// Starts a run, or goes on with one: the same --run-id never starts twice.
#include "cli/card.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/drive.h"

#include <string.h>
#include <unistd.h>

static int add_input(struct cli *cli, struct json *inputs, struct str key, struct json value)
{
    for (uint32_t i = 0; i < inputs->count; i++)
        if (str_eq(inputs->members[i].key, key)) {
            inputs->members[i].value = value;
            return EXIT_OK;
        }
    return json_put(&cli->arena, inputs, key, value) ? EXIT_OK : cli_nomem(cli);
}

static int read_input_file(struct cli *cli, struct str path, struct json *inputs)
{
    struct error err = {0};
    struct str text;
    const char *file = str_is(path, "-") ? "/dev/stdin" : path.ptr;
    if (os_read_file(file, json_limits_default.size_max, &cli->arena, &text, &err)) return cli_error(cli, &err);
    if (json_parse(text, &json_limits_default, &cli->arena, inputs, &err)) {
        cli_fail(cli, EXIT_USAGE, "%s:%u:%u: %s", path.ptr, err.line, err.column, err.message);
        return EXIT_USAGE;
    }
    if (!json_is(inputs, JSON_OBJECT))
        return cli_fail(cli, EXIT_USAGE, "%s: inputs are a JSON object, this is %s", path.ptr,
                        json_type_name((enum json_type)inputs->type));
    return EXIT_OK;
}

// VALUE is JSON, or text. What is declared as a string is one, whatever it looks like: --set day=20260101.
static struct json set_value(struct cli *cli, const struct program *program, struct str name, struct str text)
{
    struct error err = {0};
    struct json value;
    if (json_parse(text, &json_limits_default, &cli->arena, &value, &err)) return json_string(text);
    bool takes_text = str_is(program_input_type(program, name), "string") && value.type != JSON_STRING;
    return takes_text ? json_string(text) : value;
}

int inputs_read(struct cli *cli, const struct program *program, struct json *inputs)
{
    struct str pair;
    size_t cursor = 0;
    *inputs = json_object();
    if (args_has(&cli->args, FLAG_INPUT)) {
        int code = read_input_file(cli, args_text(&cli->args, FLAG_INPUT, ""), inputs);
        if (code) return code;
    }
    while (args_next(&cli->args, FLAG_SET, &cursor, &pair)) {
        struct str text;
        struct str key = str_cut(pair, '=', &text);
        if (key.len == pair.len || key.len == 0) {
            cli_fail(cli, EXIT_USAGE, "--set takes NAME=VALUE, not %.*s", STR_ARG(pair));
            return EXIT_USAGE;
        }
        int code = add_input(cli, inputs, key, set_value(cli, program, key, text));
        if (code) return code;
    }
    return EXIT_OK;
}

struct str arguments_read(struct cli *cli)
{
    struct buf text;
    if (args_has(&cli->args, FLAG_ARGUMENTS)) return args_text(&cli->args, FLAG_ARGUMENTS, "");
    buf_init(&text, (size_t)1 << 20);
    for (size_t i = 0; i < cli->args.rest_count; i++) {
        buf_text(&text, i ? " " : "");
        buf_add(&text, cli->args.rest[i]);
    }
    struct str out = arena_copy(&cli->arena, buf_str(&text));
    buf_release(&text);
    return out.ptr ? out : STR("");
}

static int print_end(struct session *session, const struct card *card, enum progress_mode mode)
{
    struct cli *cli = session->cli;
    enum format format = format_of(cli, FORMAT_NONE);
    struct json json;
    struct buf text;
    if (mode == PROGRESS_TREE || mode == PROGRESS_PLAIN) card_summary(session, card);
    if (format == FORMAT_JSON || format == FORMAT_YAML) {
        if (!view_json(&card->view, &cli->arena, &json)) return cli_nomem(cli);
        bool lines = mode == PROGRESS_JSON && format == FORMAT_JSON;
        print_json(cli, lines ? FORMAT_JSONL : format, &json);
    } else if (format == FORMAT_NAME) {
        buf_init(&text, 1024);
        buf_printf(&text, "%.*s\n", STR_ARG(card->head.ids.run));
        cli_print(cli, &text);
        buf_release(&text);
    }
    return EXIT_OK;
}

// How it ended (or stands), for people and for programs. `code` unless that cannot be told.
static int finish(struct session *session, struct str run, enum progress_mode mode, int code)
{
    struct cli *cli = session->cli;
    struct error err = {0};
    struct run_head head;
    struct card card;
    if ((mode == PROGRESS_NONE || mode == PROGRESS_JSON) && !args_has(&cli->args, FLAG_OUTPUT)) return code;
    if (store_head(session->store, session->tenant, run, &cli->arena, &head, &err)) return cli_error(cli, &err);
    int failed = card_load(session, &head, TARGET_NOW, &card);
    if (!failed) failed = print_end(session, &card, mode);
    card_release(&card);
    return failed ? failed : code;
}

// A misspelt --set would otherwise leave the default in force without a word.
static void warn_undeclared(struct cli *cli, const struct program *program, const struct json *given)
{
    for (uint32_t i = 0; i < given->count; i++) {
        struct str name = given->members[i].key;
        if (json_get(&program->inputs, name)) continue;
        cli_warn(cli, "input \"%.*s\" is not declared in the document", STR_ARG(name));
    }
}

static int start(struct drive *drive, const struct program *program, char run_out[129])
{
    struct cli *cli = drive->cli;
    struct error err = {0};
    char directory[4096];
    struct start_request request = {
        .program = program,
        .tenant = drive->session->tenant,
        .project = args_text(&cli->args, FLAG_PROJECT, "default"),
        .environment = args_text(&cli->args, FLAG_ENVIRONMENT, "default"),
        .run = args_text(&cli->args, FLAG_RUN_ID, ""),
        .arguments = arguments_read(cli),
        .triggered_by = user_name(cli),
        .trigger_source = STR("manual"),
    };
    if (getcwd(directory, sizeof(directory))) request.work_dir = str_from(directory);
    int code = inputs_read(cli, program, &request.inputs);
    if (code) return code;
    warn_undeclared(cli, program, &request.inputs);
    return engine_start(drive->engine, &request, run_out, &err) ? cli_error(cli, &err) : EXIT_OK;
}

static int adopt(struct drive *drive, const struct run_head *head)
{
    struct cli *cli = drive->cli;
    struct error err = {0};
    enum code rc = drive_adopt(drive, head->ids.run, &err);
    if (rc == E_LOCKED) {
        cli_fail(cli, EXIT_CONFLICT, "run %.*s is being run by process %lld", STR_ARG(head->ids.run),
                 (long long)head->owner_pid);
        cli_next(cli, "get %.*s", STR_ARG(head->ids.run));
        return EXIT_CONFLICT;
    }
    if (rc) return cli_error(cli, &err);
    if (head->summary.status != RUN_STATUS_PAUSED) return EXIT_OK;
    struct signal signal;
    drive->resume_children = true;
    signal_prepare(cli, SIGNAL_RESUME, STR(""), STR(""), &signal);
    progress_say(&drive->progress, "run %.*s was paused: resuming it", STR_ARG(head->ids.run));
    return engine_signal(drive->engine, drive->session->tenant, head->ids.run, &signal, &err) ? cli_error(cli, &err)
                                                                                              : EXIT_OK;
}

static int drive_to_end(struct session *session, const struct program *program, const struct run_head *existing)
{
    struct drive drive;
    char run[129];
    enum progress_mode mode = progress_mode_of(session->cli);
    int code = drive_open(&drive, session, mode);
    if (code) return code;
    if (existing) {
        code = adopt(&drive, existing);
        memcpy(run, existing->ids.run.ptr, existing->ids.run.len);
        run[existing->ids.run.len] = '\0';
    } else {
        code = start(&drive, program, run);
    }
    if (!code) code = drive_loop(&drive);
    int end = drive_exit_code(&drive, str_from(run));
    drive_close(&drive);
    return code ? code : finish(session, str_from(run), mode, end);
}

static int go_on(struct session *session, const struct program *program, const struct run_head *head)
{
    struct cli *cli = session->cli;
    if (!digest_eq(&head->document, &program->sha256)) {
        cli_fail(cli, EXIT_CONFLICT, "run %.*s was started from another document (%.*s @ %.*s)", STR_ARG(head->ids.run),
                 STR_ARG(head->ids.plan_id), STR_ARG(head->ids.plan_version));
        cli_hint(cli,
                 "a run keeps the document it was started with: `%s` goes on with that one, another --run-id starts "
                 "this one",
                 cli_command(cli, "recover %.*s", STR_ARG(head->ids.run)));
        return EXIT_CONFLICT;
    }
    if (!head->terminal) return drive_to_end(session, program, head);
    cli_note(cli, "run %.*s has already ended; it is not run again", STR_ARG(head->ids.run));
    return finish(session, head->ids.run, progress_mode_of(cli), exit_of_status(head->summary.status));
}

static int run_program(struct cli *cli, const struct program *program)
{
    struct session session;
    struct run_head head;
    struct error err = {0};
    struct str id = args_text(&cli->args, FLAG_RUN_ID, "");
    int code = session_open(&session, cli, STORE_WRITE);
    if (code) return code;
    enum code rc = E_NOT_FOUND;
    if (id.len > 0) rc = store_head(session.store, session.tenant, id, &cli->arena, &head, &err);
    if (rc == OK)
        code = go_on(&session, program, &head);
    else if (rc == E_NOT_FOUND)
        code = drive_to_end(&session, program, NULL);
    else
        code = cli_error(cli, &err);
    session_close(&session);
    return code;
}

int command_run(struct cli *cli)
{
    struct document document;
    struct str id = args_text(&cli->args, FLAG_RUN_ID, "");
    if (args_has(&cli->args, FLAG_RUN_ID) && !run_id_valid(id)) {
        cli_fail(cli, EXIT_USAGE, "--run-id %.*s cannot be used as an id", STR_ARG(id));
        cli_hint(cli, "letters, digits, '.', '_', ':' and '-', up to 128, beginning with a letter or digit");
        return EXIT_USAGE;
    }
    int code = document_load(cli, cli->args.words[0], &document);
    if (code) return code;
    document_report(cli, &document);
    if (!document.program) {
        cli_hint(cli, "`cairn help CODE` explains a code; nothing was started");
        return EXIT_INVALID;
    }
    code = run_program(cli, document.program);
    program_release(document.program);
    return code;
}
