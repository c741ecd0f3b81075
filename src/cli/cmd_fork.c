// New runs that take over from another one. All of them say what they keep and what they run before they do it.
#include "cli/at_server.h"
#include "cli/commands.h"
#include "cli/document.h"
#include "cli/drive.h"
#include "cli/fork.h"
#include "cli/inputs.h"
#include "term/fork_preview.h"
#include "term/text.h"
#include "reading/reading.h"

#include <string.h>

struct wish {
    struct cli *cli;
    const char *how; // "fork", "rerun", "retry"
    struct target target;
    struct fork_request request; // strings in the command's arena
    struct changes changes;
    struct document document;
    struct program *program; // --plan FILE; NULL: the source's
};

// ---- what is wanted
static int read_plan(struct wish *wish)
{
    struct cli *cli = wish->cli;
    struct str file = args_text(&cli->args, FLAG_PLAN, "same");
    if (str_is(file, "same")) return EXIT_OK;
    int code = document_load(cli, file, &wish->document);
    if (code) return code;
    document_report(cli, &wish->document);
    wish->program = wish->document.program;
    if (wish->program) return EXIT_OK;
    cli_hint(cli, "`cairn help CODE` explains a code; no run was made");
    return EXIT_INVALID;
}

static int read_from(struct wish *wish)
{
    struct cli *cli = wish->cli;
    size_t cursor = 0, count = args_count(&cli->args, FLAG_FROM);
    struct str *from = ARENA_ARRAY(&cli->io.arena, count + 1, struct str);
    struct str step;
    if (!from) return cli_nomem(cli);
    wish->request.from = from;
    while (args_next(&cli->args, FLAG_FROM, &cursor, &step)) from[wish->request.from_count++] = step;
    return EXIT_OK;
}

static void hint_step(struct cli *cli, const struct program *program, struct str run, struct str wrong)
{
    const char **names = ARENA_ARRAY(&cli->io.arena, (size_t)program->top_count + 1, const char *);
    if (!names) return;
    for (uint32_t i = 0; i < program->top_count; i++) names[i] = cli_format(cli, "%.*s", STR_ARG(program->steps[i].id));
    const char *near = nearest_name(wrong, names, program->top_count);
    if (near)
        cli_hint(cli, "did you mean %s?", near);
    else
        cli_next(cli, "get %.*s", STR_ARG(run));
}

static bool has_step(const struct program *program, struct str id)
{
    return program_find(program, PROGRAM_TOP, id) != PROGRAM_TOP;
}

// Names that the document does not have, reported before anything is planned with them.
static int check_steps(struct wish *wish, const struct program *program)
{
    struct cli *cli = wish->cli;
    size_t count = wish->request.from_count + wish->changes.count;
    for (size_t i = 0; i < count; i++) {
        bool from = i < wish->request.from_count;
        struct str id = from ? wish->request.from[i] : wish->changes.outputs[i - wish->request.from_count].step;
        if (has_step(program, id)) continue;
        cli_fail(cli, EXIT_NOT_FOUND, "the document has no step \"%.*s\"", STR_ARG(id));
        if (str_find(id, '[', 0) < id.len)
            cli_hint(cli, "steps inside a loop run again with their loop: name the loop");
        else
            hint_step(cli, program, wish->target.head.ids.run, id);
        return EXIT_NOT_FOUND;
    }
    return EXIT_OK;
}

static int report(struct wish *wish, const struct error *err)
{
    struct cli *cli = wish->cli;
    struct str run = wish->target.head.ids.run;
    int code = cli_error(cli, err);
    if (err->code == E_CONFLICT && wish->target.head.vocabulary == VOCABULARY_NOETL)
        cli_hint(cli, "begin it anew: %s", cli_command(cli, "rerun %.*s", STR_ARG(run)));
    else if (err->code == E_CONFLICT && wish->changes.count > 0)
        cli_hint(cli, "fork at a later event, when what it depends on has ended: %s",
                 cli_command(cli, "events %.*s", STR_ARG(run)));
    return code;
}

static int plan(struct wish *wish, struct session *session, struct fork **out)
{
    struct error err = {0};
    wish->request.now_ms = os_now().wall_ms;
    return fork_open(session->store, &wish->request, out, &err) ? report(wish, &err) : EXIT_OK;
}

// The source as it is, then what is to be different.
static int read_changes(struct wish *wish, struct session *session, bool *nothing)
{
    struct cli *cli = wish->cli;
    struct fork *base = NULL;
    struct fork_request plain = wish->request;
    struct error err = {0};
    plain.from_count = 0;
    plain.results_only = false; // whatever has ended may be edited
    plain.now_ms = os_now().wall_ms;
    bool playbook = wish->target.head.vocabulary == VOCABULARY_NOETL; // nothing of it may be edited but its inputs
    if (wish->request.at == 0) plain.at = strcmp(wish->how, "fork") == 0 || playbook ? 0 : UINT64_MAX;
    if (fork_open(session->store, &plain, &base, &err)) return report(wish, &err);
    int code = changes_read(cli, base, &wish->changes);
    if (!code) code = changes_edit(cli, base, &wish->changes, nothing);
    if (!code) code = check_steps(wish, base->program);
    if (!code) inputs_warn(cli, base->program, &wish->changes.inputs);
    wish->request.inputs = wish->changes.inputs;
    wish->request.outputs = wish->changes.outputs;
    wish->request.output_count = wish->changes.count;
    fork_close(base);
    return code;
}

// ---- what would come of it
static int show_preview(struct wish *wish, const struct fork *fork)
{
    struct cli *cli = wish->cli;
    bool dry = args_has(&cli->args, FLAG_DRY_RUN);
    enum format format = format_of(cli, FORMAT_TEXT);
    struct json json;
    if (dry && (format == FORMAT_JSON || format == FORMAT_YAML)) {
        if (!reading_fork(fork, wish->how, &cli->io.arena, &json)) return cli_nomem(cli);
        print_json(&cli->io, format, &json);
        return EXIT_OK;
    }
    struct buf text SCOPED(buf_release) = buf_of((size_t)64 << 20);
    preview_write(&cli->io, &text, dry ? &cli->io.out : &cli->io.err, fork, wish->how);
    if (dry)
        cli_print(cli, &text);
    else if (!cli->io.quiet)
        cli_talk(cli, &text);
    if (run_status_terminal(fork->run->status)) {
        cli_note(cli, "nothing runs: everything had ended there, and the new run ends at once");
        cli_hint(cli, "an earlier event, --from STEP, --set NAME=VALUE or --plan FILE leave something to run");
    }
    return EXIT_OK;
}

// ---- doing it
static int tell_made(struct wish *wish, struct session *session, const struct fork *fork, struct str run)
{
    struct cli *cli = wish->cli;
    struct error err = {0};
    struct run_head head;
    if (store_head(session->store, session->tenant, run, &cli->io.arena, &head, &err)) return cli_error(cli, &err);
    if (format_of(cli, FORMAT_TEXT) != FORMAT_TEXT || cli->io.quiet) return EXIT_OK;
    struct buf out SCOPED(buf_release) = buf_of(4096);
    tone_text(&out, &cli->io.out, TONE_GOOD, look_glyph(LOOK_DONE, cli->io.out.utf8));
    buf_printf(&out, " %s of %.*s", wish->how, STR_ARG(fork->head.ids.run));
    if (!fork->results_only) buf_printf(&out, "@%llu", (unsigned long long)fork->at);
    buf_printf(&out, ": run %.*s, event %llu\n", STR_ARG(run), (unsigned long long)head.last_seq);
    cli_print(cli, &out);
    return EXIT_OK;
}

// ---- doing it at a server

static struct json outputs_json(struct arena *arena, const struct fork_request *request)
{
    struct json outputs = json_object();
    for (size_t i = 0; i < request->output_count; i++)
        json_set(arena, &outputs, request->outputs[i].step, request->outputs[i].value);
    return json_filled(outputs);
}

static int act_there(struct wish *wish, struct session *session, const struct fork *fork)
{
    struct cli *cli = wish->cli;
    struct json body = json_object();
    struct str run = {0};
    bool is_fork = strcmp(wish->how, "fork") == 0;
    int code = wish->program ? put_document(cli, &wish->document, &body) : EXIT_OK;
    if (code) return code;
    const struct fork_request *request = &wish->request;
    struct arena *arena = &cli->io.arena;
    bool one = strcmp(wish->how, "retry") == 0;
    JSON_ADD(arena, &body, {"stepId", one ? json_string(request->from[0]) : json_none()},
             {"from", one ? json_none() : json_filled(json_texts(arena, request->from, request->from_count))},
             {"outputs", outputs_json(arena, request)}, {"fromSeq", json_when(is_fork, json_count(fork->at))},
             {"inputs", json_filled(wish->changes.inputs)},
             {"runId", json_some(args_text(&cli->args, FLAG_RUN_ID, ""))},
             {"reason", json_some(args_text(&cli->args, FLAG_REASON, ""))});
    if (!json_ok(&body)) return cli_nomem(cli);
    code = fork_at_server(session, fork->head.ids.run, is_fork ? "forks" : wish->how,
                          wish->program ? &wish->document : NULL, &body, &run);
    if (!code && !args_has(&cli->args, FLAG_DETACH)) code = tell_made(wish, session, fork, run);
    return code ? code : follow_at_server(session, run);
}

static int drive_new_run(struct wish *wish, struct drive *drive, struct fork *fork, char run[129], bool *made)
{
    struct cli *cli = wish->cli;
    struct error err = {0};
    bool idle = args_has(&cli->args, FLAG_NO_RUN);
    struct fork_start start = {.run = args_text(&cli->args, FLAG_RUN_ID, ""),
                               .triggered_by = user_name(cli),
                               .reason = args_text(&cli->args, FLAG_REASON, ""),
                               .how = wish->how,
                               .idle = idle};
    enum code rc = engine_fork(drive->engine, fork, &start, run, &err);
    if (rc == E_EXISTS) {
        int code = cli_fail(cli, EXIT_CONFLICT, "there is a run %.*s already", STR_ARG(start.run));
        cli_hint(cli, "give another --run-id, or none");
        return code;
    }
    if (rc) return cli_error(cli, &err);
    drive->awaited = str_from(run);
    int code = drive_loop(drive);
    if (code) return code;
    *made = drive_find(drive, str_from(run)) != NULL;
    if (!*made) return drive_exit_code(drive, str_from(run)); // interrupted before it was stored
    if (drive->progress.tree) tree_erase(drive->progress.tree);
    drive->awaited = STR("");
    code = tell_made(wish, drive->session, fork, str_from(run));
    if (code || idle) return code;
    code = drive_loop(drive);
    return code ? code : drive_exit_code(drive, str_from(run));
}

static int act(struct wish *wish, struct session *session)
{
    struct cli *cli = wish->cli;
    struct fork *fork = NULL;
    struct drive drive;
    char run[129] = "";
    bool made = false;
    int code = plan(wish, session, &fork); // again, over the store that is written
    if (code) return code;
    enum progress_mode mode = args_has(&cli->args, FLAG_NO_RUN) ? PROGRESS_NONE : progress_mode_of(cli);
    code = drive_open(&drive, session, mode);
    if (!code) {
        code = drive_new_run(wish, &drive, fork, run, &made);
        drive_close(&drive);
    }
    fork_close(fork);
    if (!made) return code;
    code = drive_finish(session, str_from(run), mode, code);
    if (args_has(&cli->args, FLAG_NO_RUN) && !code) cli_next(cli, "recover %s", run);
    return code;
}

// Reads, plans, shows; then, unless it is a dry run, does it.
static int carry_out(struct wish *wish, struct session *session)
{
    struct cli *cli = wish->cli;
    struct fork *fork = NULL;
    bool nothing = false;
    int code = read_changes(wish, session, &nothing);
    if (!code && nothing) {
        cli_note(cli, "nothing was changed: no run was made");
        return EXIT_OK;
    }
    if (!code) code = plan(wish, session, &fork);
    if (code) return code;
    wish->request.at = fork->at; // what is shown is what is done, however far the source has come meanwhile
    code = show_preview(wish, fork);
    if (!code && session->remote && !args_has(&cli->args, FLAG_DRY_RUN)) {
        code = act_there(wish, session, fork);
        fork_close(fork);
        return code;
    }
    fork_close(fork);
    session_close(session);
    if (code || args_has(&cli->args, FLAG_DRY_RUN)) return code;
    code = session_open(session, cli, STORE_WRITE);
    return code ? code : act(wish, session);
}

static int check_usage(struct cli *cli)
{
    struct str id = args_text(&cli->args, FLAG_RUN_ID, "");
    if (args_has(&cli->args, FLAG_RUN_ID) && !run_id_valid(id)) {
        cli_fail(cli, EXIT_USAGE, "--run-id %.*s cannot be used as an id", STR_ARG(id));
        return cli_hint(cli, "letters, digits, '.', '_', ':' and '-', up to 128, beginning with a letter or digit");
    }
    if (args_has(&cli->args, FLAG_EDIT) && args_has(&cli->args, FLAG_EDIT_FILE))
        return cli_fail(cli, EXIT_USAGE, "--edit and --edit-file exclude each other");
    return EXIT_OK;
}

static int begin(struct wish *wish, struct session *session, unsigned parts)
{
    struct cli *cli = wish->cli;
    int code = check_usage(cli);
    if (!code) code = read_plan(wish);
    if (!code) code = session_open(session, cli, STORE_READ);
    if (!code) code = target_find(session, cli->args.words[0], parts, &wish->target);
    if (!code) code = read_from(wish);
    wish->request.tenant = wish->target.head.ids.tenant;
    wish->request.source = wish->target.head.ids.run;
    wish->request.program = wish->program;
    wish->request.at = UINT64_MAX;
    return code;
}

static int end(struct wish *wish, struct session *session, int code)
{
    session_close(session);
    if (wish->program) program_release(wish->program);
    return code;
}

int command_fork(struct cli *cli)
{
    struct wish wish = {.cli = cli, .how = "fork"};
    struct session session = {0};
    int code = begin(&wish, &session, TARGET_MOMENT);
    if (!code && wish.target.has_at) wish.request.at = wish.target.at;
    if (!code) code = carry_out(&wish, &session);
    return end(&wish, &session, code);
}

int command_rerun(struct cli *cli)
{
    struct wish wish = {.cli = cli, .how = "rerun"};
    struct session session = {0};
    int code = begin(&wish, &session, 0);
    wish.request.results_only = true;
    if (wish.request.from_count == 0) wish.request.at = 0;
    if (!code) code = carry_out(&wish, &session);
    return end(&wish, &session, code);
}

// ---- retry
static const char *not_held(enum node_state state)
{
    switch (state) {
    case NODE_WAITING:
        return "it has not begun";
    case NODE_RUNNING:
    case NODE_DELAYED:
        return "it has not ended";
    case NODE_SUCCESS:
    case NODE_FAILED:
    case NODE_SKIPPED:
    case NODE_HELD:
        break;
    }
    return "it has ended, others have begun on it, and the run is still going";
}

// A held failure has passed nothing on yet: the signal gives the step another attempt, and what hangs on it follows.
static int retry_live(struct wish *wish, struct session *session, struct str step, bool *signal)
{
    struct cli *cli = wish->cli;
    struct fork *fork = NULL;
    struct str run = wish->target.head.ids.run;
    int code = plan(wish, session, &fork);
    if (code) return code;
    uint32_t index = program_find(fork->before, PROGRAM_TOP, step);
    enum node_state state = kernel_state(fork->source, index);
    if (state == NODE_HELD) {
        *signal = !args_has(&cli->args, FLAG_DRY_RUN);
        code = show_preview(wish, fork);
    } else {
        code = cli_fail(cli, EXIT_CONFLICT, "step %.*s of run %.*s cannot be tried again in place: %s", STR_ARG(step),
                        STR_ARG(run), not_held(state));
        cli_hint(cli, "a new run can begin from it: %s",
                 cli_command(cli, "fork %.*s --from %.*s", STR_ARG(run), STR_ARG(step)));
    }
    fork_close(fork);
    return code;
}

static int retry_from(struct wish *wish, struct session *session, bool *signal)
{
    struct cli *cli = wish->cli;
    struct str *step = ARENA_NEW(&cli->io.arena, struct str);
    if (!step) return cli_nomem(cli);
    *step = args_has(&cli->args, FLAG_STEP) ? args_text(&cli->args, FLAG_STEP, "") : wish->target.step;
    if (step->len == 0) {
        cli_fail(cli, EXIT_USAGE, "--downstream needs a step");
        return cli_hint(cli, "cairn retry RUN/STEP --downstream, or --step STEP");
    }
    wish->request.from = step;
    wish->request.from_count = 1;
    struct program *program = NULL;
    struct error err = {0};
    if (engine_program(session->store, &wish->target.head, &program, &err)) return cli_error(cli, &err);
    int code = check_steps(wish, program);
    program_release(program);
    if (code) return code;
    if (!wish->target.head.terminal) return retry_live(wish, session, *step, signal);
    wish->request.results_only = true;
    return carry_out(wish, session);
}

// What RETRY_RUN will take over, shown beforehand.
static int preview_retry(struct wish *wish, struct session *session, bool *signal)
{
    struct cli *cli = wish->cli;
    struct fork *fork = NULL;
    *signal = !args_has(&cli->args, FLAG_DRY_RUN);
    wish->request.results_only = true;
    if (args_has(&cli->args, FLAG_FORCE)) wish->request.at = 0;
    int code = plan(wish, session, &fork);
    if (code) return code;
    code = show_preview(wish, fork);
    fork_close(fork);
    return code;
}

int command_retry(struct cli *cli)
{
    struct wish wish = {.cli = cli, .how = "retry"};
    struct session session = {0};
    bool signal = false;
    bool downstream = args_has(&cli->args, FLAG_DOWNSTREAM);
    int code = begin(&wish, &session, TARGET_STEP);
    bool step = args_has(&cli->args, FLAG_STEP) || wish.target.step.len > 0;
    if (!code && downstream)
        code = retry_from(&wish, &session, &signal);
    else if (!code && wish.target.head.terminal && !step)
        code = preview_retry(&wish, &session, &signal);
    else if (!code && args_has(&cli->args, FLAG_DRY_RUN))
        code =
            cli_fail(cli, EXIT_USAGE, "--dry-run shows what a new run would take over; this retries a step in place");
    else
        signal = true;
    end(&wish, &session, code);
    return code || !signal ? code : command_signal(cli);
}
