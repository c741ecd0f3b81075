// pause, resume, cancel, retry, skip, approve, reject, signal: one command in nine spellings.
#include "cli/at_server.h"
#include "cli/card.h"
#include "cli/commands.h"
#include "cli/decision.h"
#include "term/text.h"

#include <stdio.h>
#include <string.h>

struct request {
    struct target target;
    struct signal signal;
    struct signal_decision decision;
    bool drives; // goes on with the run after it is accepted
};

static enum signal_type type_of(const struct cli *cli, struct str step)
{
    const char *name = cli->args.command->name;
    static const struct {
        const char *name;
        enum signal_type type;
    } types[] = {{"pause", SIGNAL_PAUSE},    {"resume", SIGNAL_RESUME},   {"cancel", SIGNAL_CANCEL},
                 {"skip", SIGNAL_SKIP_STEP}, {"approve", SIGNAL_APPROVE}, {"reject", SIGNAL_REJECT}};
    if (args_has(&cli->args, FLAG_EMERGENCY)) return SIGNAL_EMERGENCY_STOP;
    for (size_t i = 0; i < ARRAY_COUNT(types); i++)
        if (strcmp(name, types[i].name) == 0) return types[i].type;
    if (strcmp(name, "retry") == 0) return step.len ? SIGNAL_RETRY_STEP : SIGNAL_RETRY_RUN;
    return signal_parse(cli->args.words[1]);
}

static int unknown_type(struct cli *cli)
{
    static const char *const names[] = {
#define X(name, role, destructive, apart, recorded) #name,
        SIGNAL_LIST(X)
#undef X
    };
    const char *near = nearest_name(cli->args.words[1], names, ARRAY_COUNT(names));
    cli_fail(cli, EXIT_USAGE, "there is no signal %.*s", STR_ARG(cli->args.words[1]));
    return cli_hint(cli,
                    near ? "did you mean %s?"
                         : "PAUSE, RESUME, CANCEL, RETRY_STEP, SKIP_STEP, RETRY_RUN, EMERGENCY_STOP, "
                           "APPROVE, REJECT, UPDATE_PARAMS, INJECT_OVERRIDE, UPDATE_TARGET, ESCALATE_ALERT, DELIVER_EVENT%s",
                    near ? near : "");
}

static int read_fields(struct cli *cli, struct json *payload)
{
    struct json fields = json_object();
    struct str pair;
    size_t cursor = 0;
    while (args_next(&cli->args, FLAG_FIELD, &cursor, &pair)) {
        struct str text;
        struct str key = str_cut(pair, '=', &text);
        struct error err = {0};
        struct json value;
        if (key.len == 0 || key.len == pair.len)
            return cli_fail(cli, EXIT_USAGE, "--field takes NAME=VALUE, not %.*s", STR_ARG(pair));
        if (json_parse(text, &json_limits_default, &cli->io.arena, &value, &err)) value = json_string(text);
        if (!json_put(&cli->io.arena, &fields, key, value)) return cli_nomem(cli);
    }
    if (fields.count > 0 && !json_put(&cli->io.arena, payload, STR("fields"), fields)) return cli_nomem(cli);
    return EXIT_OK;
}

static int read_payload(struct cli *cli, struct json *payload)
{
    struct error err = {0};
    *payload = json_object();
    if (args_has(&cli->args, FLAG_JSON)) {
        struct str text = args_text(&cli->args, FLAG_JSON, "");
        if (json_parse(text, &json_limits_default, &cli->io.arena, payload, &err))
            return cli_fail(cli, EXIT_USAGE, "--json: %s", err.message);
        if (!json_is(payload, JSON_OBJECT))
            return cli_fail(cli, EXIT_USAGE, "--json: the payload of a signal is an object");
    }
    return read_fields(cli, payload);
}

static int check(struct cli *cli, const struct signal *signal)
{
    enum signal_type type = signal->type;
    const char *name = cli->args.command->name;
    bool has_step = signal->step.len > 0 || json_key(&signal->payload, "stepId");
    bool has_reason = signal->reason.len > 0 || json_key(&signal->payload, "reason");
    if (signal_rule(type)->destructive && !has_reason) {
        cli_fail(cli, EXIT_USAGE, "%s needs --reason TEXT", signal_name(type));
        return cli_hint(cli, type == SIGNAL_EMERGENCY_STOP
                                 ? "it kills at once and is recorded with its reason"
                                 : "it changes what the run does and is recorded with its reason");
    }
    if ((type == SIGNAL_SKIP_STEP || type == SIGNAL_RETRY_STEP) && !has_step) {
        cli_fail(cli, EXIT_USAGE, "`cairn %s` needs a step", name);
        return cli_hint(cli, "cairn %s RUN/STEP, or --step STEP", name);
    }
    bool stepless = type == SIGNAL_PAUSE || type == SIGNAL_RESUME || type == SIGNAL_CANCEL ||
                    type == SIGNAL_EMERGENCY_STOP || type == SIGNAL_RETRY_RUN;
    if (stepless && has_step) return cli_fail(cli, EXIT_USAGE, "%s is for runs, not for steps", signal_name(type));
    return EXIT_OK;
}

// Encoded and decoded again, so that it is checked against its schema here and is the same wherever it is decided.
static int seal(struct session *session, struct signal *signal)
{
    struct cli *cli = session->cli;
    struct error err = {0};
    struct str bytes;
    int code = session_contract(session);
    if (code) return code;
    enum code rc = signal_encode(signal, &cli->io.arena, &bytes, &err);
    if (!rc) rc = signal_decode(session->contract, bytes, &cli->io.arena, signal, &err);
    return rc ? cli_fail(cli, EXIT_USAGE, "%s", err.message) : EXIT_OK;
}

static int build(struct session *session, struct request *request)
{
    struct cli *cli = session->cli;
    struct str step = args_has(&cli->args, FLAG_STEP) ? args_text(&cli->args, FLAG_STEP, "") : request->target.step;
    struct str id = args_text(&cli->args, FLAG_ID, "");
    enum signal_type type = type_of(cli, step);
    if (type == SIGNAL_NONE) return unknown_type(cli);
    signal_prepare(cli, type, step, args_text(&cli->args, FLAG_REASON, ""), &request->signal);
    request->signal.force = args_has(&cli->args, FLAG_FORCE) || args_has(&cli->args, FLAG_EMERGENCY);
    if (id.len > 0 && !uuid_valid(id)) return cli_fail(cli, EXIT_USAGE, "--id %.*s is not a UUID", STR_ARG(id));
    if (id.len > 0) request->signal.id = id;
    request->drives = type != SIGNAL_PAUSE && !args_has(&cli->args, FLAG_NO_RUN);
    int code = read_payload(cli, &request->signal.payload);
    if (!code) code = check(cli, &request->signal);
    return code ? code : seal(session, &request->signal);
}

// Stopped by SIGSTOP or a debugger: it holds what it has and does nothing.
static bool is_stopped(int64_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    FILE *file = fopen(path, "re");
    size_t got = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file) fclose(file);
    text[got] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' && (name_end[2] == 'T' || name_end[2] == 't');
}

static int report_locked(struct session *session, const struct error *err)
{
    cli_fail(session->cli, EXIT_UNREACHABLE, "%s", err->message);
    return cli_hint(session->cli, "nothing was sent; try again when that process has gone on or is gone");
}

static int report_timeout(struct session *session, const struct request *request)
{
    struct cli *cli = session->cli;
    const struct run_head *head = &request->target.head;
    long long pid = (long long)head->owner_pid;
    cli_fail(cli, EXIT_UNREACHABLE, "%s was sent to run %.*s, but nobody has decided it within 10 s",
             signal_name(request->signal.type), STR_ARG(head->ids.run));
    if (session->remote)
        cli_hint(cli, "the server has it, and does not turn");
    else if (head->owned && is_stopped(head->owner_pid))
        cli_hint(cli, "process %lld owns the run and is stopped: `kill -CONT %lld`, or `kill -9 %lld` and recover", pid,
                 pid, pid);
    else if (head->owned)
        cli_hint(cli, "process %lld owns the run and does not answer", pid);
    else
        cli_hint(cli, "another process holds the store");
    cli_hint(cli, "the signal stays posted and is decided once, as soon as a process takes the run up: %s",
             cli_command(cli, "events %.*s --ledger", STR_ARG(head->ids.run)));
    return EXIT_UNREACHABLE;
}

// EXIT_OK with *decided, EXIT_OK without it (the owner is gone: decide here), or what was reported.
static int ask_owner(struct session *session, struct request *request, bool *decided)
{
    struct error err = {0};
    *decided = false;
    enum code rc = decision_post(session, &request->target.head, &request->signal, &request->decision, &err);
    if (rc == E_CONFLICT) return EXIT_OK;
    if (rc == E_TIMEOUT) return report_timeout(session, request);
    if (rc == E_LOCKED) return report_locked(session, &err);
    if (rc) return cli_error(session->cli, &err);
    *decided = true;
    int code = decision_print(session, &request->target.head, &request->signal, &request->decision);
    if (code || request->decision.new_run.len == 0 || !request->drives || !session->remote) return code;
    return follow_at_server(session, request->decision.new_run);
}

// The run in this process: decided in the next turn, before anything of the run goes on.
static int decide_here(struct drive *drive, struct request *request)
{
    struct cli *cli = drive->cli;
    struct error err = {0};
    const struct run_head *head = &request->target.head;
    struct signal_decision *decision = &request->decision;
    if (engine_signal(drive->engine, drive->session->tenant, head->ids.run, &request->signal, &err))
        return cli_error(cli, &err);
    drive->wanted = request->signal.id;
    drive->stop_when_decided = true;
    int code = drive_loop(drive);
    if (code) return code;
    if (!drive->decided) return cli_fail(cli, EXIT_ERROR, "the signal was not decided");
    if (drive->progress.tree) tree_erase(drive->progress.tree);
    *decision = (struct signal_decision){.seq = drive->decision.seq, .new_run = drive->decision.new_run};
    if (decision_find(drive->session, head, request->signal.id, decision, &err))
        return cli_fail(cli, EXIT_ERROR, "the decision record cannot be read: %s", err.message);
    decision->again = drive->decision.duplicate;
    return decision_print(drive->session, head, &request->signal, decision);
}

static void summarize(struct session *session, struct str run)
{
    struct error err = {0};
    struct run_head head;
    struct card card SCOPED(card_release) = {0};
    if (store_head(session->store, session->tenant, run, &session->cli->io.arena, &head, &err) == OK &&
        card_load(session, &head, TARGET_NOW, &card) == EXIT_OK)
        card_summary(&session->cli->io, &card);
}

static bool ends_run(enum signal_type type)
{
    return type == SIGNAL_CANCEL || type == SIGNAL_EMERGENCY_STOP;
}

// The signal was accepted: with the run until it ends or waits. A cancelled run is brought to its end in any case.
static int go_on(struct drive *drive, struct str run)
{
    struct error err = {0};
    drive->stop_when_decided = false;
    enum code rc = drive_adopt(drive, run, &err);
    if (rc && rc != E_TERMINAL) return cli_error(drive->cli, &err);
    return drive_loop(drive);
}

static int take_over(struct session *session, struct request *request)
{
    struct cli *cli = session->cli;
    struct drive drive;
    struct run_head before = request->target.head;
    enum progress_mode mode = request->drives ? progress_mode_of(cli) : PROGRESS_NONE;
    int code = drive_open(&drive, session, mode);
    if (code) return code;
    drive.exit_on_wait = true;
    drive.resume_children = request->signal.type == SIGNAL_RESUME;
    code = decide_here(&drive, request);
    struct str run = request->decision.new_run.len ? request->decision.new_run : before.ids.run;
    const struct driven *driven = drive_find(&drive, run);
    bool applied = !code && request->decision.accepted && !drive.decision.duplicate;
    bool ends = ends_run(request->signal.type);
    if (applied && !(driven && driven->ended) && (request->drives || ends)) code = go_on(&drive, run);
    bool tells = applied && request->drives && !ends;
    if (!code && tells) code = drive_exit_code(&drive, run);
    drive_close(&drive);
    if (tells && (mode == PROGRESS_TREE || mode == PROGRESS_PLAIN)) summarize(session, run);
    return code;
}

int command_signal(struct cli *cli)
{
    struct session session;
    struct request request = {0};
    bool decided = false, locked = false;
    int code = session_open(&session, cli, STORE_READ);
    if (!code) code = target_find(&session, cli->args.words[0], TARGET_STEP, &request.target);
    if (!code) code = build(&session, &request);
    if (!code && (request.target.head.owned || session.remote)) code = ask_owner(&session, &request, &decided);
    const struct contract *contract = session.contract;
    session_close(&session);
    if (code || decided) return code;
    code = session_open_write(&session, cli, contract, &locked);
    if (!code && !locked) {
        code = take_over(&session, &request);
    } else if (!code) {
        code = session_open(&session, cli, STORE_READ);
        if (!code) code = ask_owner(&session, &request, &decided);
    }
    session_close(&session);
    return code;
}
