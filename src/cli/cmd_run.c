// Starts a run, or goes on with one: the same --run-id never starts twice.
#include "cli/at_server.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/drive.h"
#include "cli/hosting.h"

#include <string.h>
#include <unistd.h>

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
    int code = hosting_target(cli, &request.target_adapter);
    if (!code) code = inputs_read(cli, program, &request.inputs);
    if (code) return code;
    inputs_warn(cli, program, &request.inputs);
    code = inputs_env(cli, program, &request.inputs);
    if (code) return code;
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
        return cli_next(cli, "get %.*s", STR_ARG(head->ids.run));
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
    if (!code) code = drive_begin(&drive, str_from(run));
    if (!code) code = drive_loop(&drive);
    int end = drive_exit_code(&drive, str_from(run));
    drive_close(&drive);
    return code ? code : drive_finish(session, str_from(run), mode, end);
}

static int go_on(struct session *session, const struct program *program, const struct run_head *head)
{
    struct cli *cli = session->cli;
    if (!digest_eq(&head->document, &program->sha256)) {
        cli_fail(cli, EXIT_CONFLICT, "run %.*s was started from another document (%.*s @ %.*s)", STR_ARG(head->ids.run),
                 STR_ARG(head->ids.plan_id), STR_ARG(head->ids.plan_version));
        return cli_hint(
            cli,
            "a run keeps the document it was started with: `%s` goes on with that one, another --run-id starts "
            "this one",
            cli_command(cli, "recover %.*s", STR_ARG(head->ids.run)));
    }
    if (!head->terminal) return drive_to_end(session, program, head);
    cli_note(cli, "run %.*s has already ended; it is not run again", STR_ARG(head->ids.run));
    return drive_finish(session, head->ids.run, progress_mode_of(cli), exit_of_status(head->summary.status));
}

static int run_here(struct cli *cli, const struct program *program)
{
    struct session session SCOPED(session_close) = {0};
    struct run_head head;
    struct error err = {0};
    struct str id = args_text(&cli->args, FLAG_RUN_ID, "");
    int code = session_open(&session, cli, STORE_WRITE);
    if (code) return code;
    enum code rc = E_NOT_FOUND;
    if (id.len > 0) rc = store_head(session.store, session.tenant, id, &cli->io.arena, &head, &err);
    if (rc == OK)
        code = go_on(&session, program, &head);
    else if (rc == E_NOT_FOUND)
        code = drive_to_end(&session, program, NULL);
    else
        code = cli_error(cli, &err);
    return code;
}

int command_run(struct cli *cli)
{
    struct document document;
    struct str id = args_text(&cli->args, FLAG_RUN_ID, "");
    if (args_has(&cli->args, FLAG_RUN_ID) && !run_id_valid(id)) {
        cli_fail(cli, EXIT_USAGE, "--run-id %.*s cannot be used as an id", STR_ARG(id));
        return cli_hint(cli, "letters, digits, '.', '_', ':' and '-', up to 128, beginning with a letter or digit");
    }
    bool remote;
    int code = session_where(cli, &remote);
    cli->at_server = remote;
    if (!code) code = document_load(cli, cli->args.words[0], &document);
    if (code) return code;
    document_report(cli, &document);
    if (!document.program) {
        cli_hint(cli, "`cairn help CODE` explains a code; nothing was started");
        return EXIT_INVALID;
    }
    code = remote ? run_at_server(cli, &document) : run_here(cli, document.program);
    program_release(document.program);
    return code;
}
