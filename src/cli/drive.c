#include "cli/confine.h"
#include "cli/document.h"
#include "cli/drive.h"
#include "cli/hosting.h"
#include "cli/interrupt.h"
#include "cli/mirror.h"
#include "cli/plugins.h"

#include "base/map.h"
#include "cli/tasking.h"
#include "lib/functions.h"
#include "temporal/host.h"

#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { TICK_MS = 100, LOOK_MS = 50, KILL_MS = 1500, STALL_MS = 2000, PATIENCE_MS = 60000 };

struct str user_name(struct cli *cli)
{
    const char *name = getenv("USER");
    if (!name || !name[0]) {
        const struct passwd *user = getpwuid(getuid());
        name = user ? user->pw_name : "unknown";
    }
    return str_from(cli_format(cli, "%.64s", name));
}

void signal_prepare(struct cli *cli, enum signal_type type, struct str step, struct str reason, struct signal *out)
{
    char id[UUID_SIZE];
    entropy_uuid(os_entropy(), id);
    *out =
        (struct signal){.type = type, .step = step, .reason = reason, .role = str_from(signal_rule(type)->least_role)};
    out->id = str_from(cli_format(cli, "%s", id));
    out->actor = user_name(cli);
}

// ---- what the engine reports
static struct driven *find(const struct drive *drive, struct str run)
{
    uint32_t at = map_get(&drive->index, run);
    return at == MAP_NONE ? NULL : &drive->runs[at];
}

const struct driven *drive_find(const struct drive *drive, struct str run)
{
    return find(drive, run);
}

static struct driven *add_run(struct drive *drive, const struct run *run)
{
    struct arena *arena = &drive->cli->io.arena;
    struct driven *known = find(drive, run->ids.run);
    if (known) return known;
    struct str id = arena_copy(arena, run->ids.run);
    if (!id.ptr || !ARENA_ROOM(arena, drive->runs, drive->run_count, &drive->run_capacity)) return NULL;
    drive->runs[drive->run_count] = (struct driven){.run = id, .child = run->start.parent_run.len > 0};
    if (!map_put(&drive->index, id, (uint32_t)drive->run_count, NULL)) return NULL;
    return &drive->runs[drive->run_count++];
}

static void keep_cause(struct drive *drive, struct driven *driven, const struct run *run)
{
    if (run->status == RUN_STATUS_CANCELLED)
        driven->cause = str_from(cli_format(drive->cli, "%.*s", STR_ARG(run->cancel_reason)));
    else if (run->status == RUN_STATUS_FAILED)
        driven->cause = str_from(cli_format(drive->cli, "%.*s%s%.*s", STR_ARG(run->failed_step),
                                            run->failed_step.len ? ": " : "", STR_ARG(run->fault.code)));
}

static void on_event(void *context, const struct engine_event *event)
{
    struct drive *drive = context;
    bool known = find(drive, event->run) != NULL;
    struct driven *driven = add_run(drive, event->state);
    drive->changed = true;
    if (drive->host) temporal_host_event(drive->host, event);
    if (driven) {
        driven->status = event->state->status;
        if (moment_is_terminal(event->moment->kind) && !driven->ended) {
            driven->ended = true;
            keep_cause(drive, driven, event->state);
        }
    }
    // What another run had done is shown as it stands, not as if it happened now.
    if (event->past && !known) progress_attach(&drive->progress, event->state);
    if (event->past) return;
    progress_event(&drive->progress, event);
    // Not our own interrupt: another process paused it, and this process waits without a word.
    if (event->moment->kind == MOMENT_RUN_PAUSED && drive->level == 0 && driven && !driven->child)
        progress_say(&drive->progress, "run %.*s was paused from elsewhere; `%s` goes on", STR_ARG(event->run),
                     cli_command(drive->cli, "resume %.*s", STR_ARG(event->run)));
}

static struct str copy(struct drive *drive, struct str text)
{
    struct str out = arena_copy(&drive->cli->io.arena, text);
    return out.ptr ? out : STR("");
}

static void on_decision(void *context, const struct engine_decision *decision)
{
    struct drive *drive = context;
    if (drive->wanted.len == 0 || !str_eq(decision->signal_id, drive->wanted)) return;
    drive->decided = true;
    drive->decision = *decision;
    drive->decision.run = copy(drive, decision->run);
    drive->decision.signal_id = drive->wanted;
    drive->decision.decision_id = copy(drive, decision->decision_id);
    drive->decision.error_code = copy(drive, decision->error_code);
    drive->decision.error_message = copy(drive, decision->error_message);
    drive->decision.new_run = copy(drive, decision->new_run);
}

static void on_output(void *context, struct str run, struct str step, bool is_stderr, struct str line)
{
    struct drive *drive = context;
    progress_output(&drive->progress, run, step, is_stderr, line);
}

// ---- interrupts
static void send(struct drive *drive, struct str run, enum signal_type type, struct str step, const char *reason,
                 bool force)
{
    struct signal signal;
    struct error err = {0};
    signal_prepare(drive->cli, type, step, str_from(reason), &signal);
    signal.force = force;
    if (engine_signal(drive->engine, drive->session->tenant, run, &signal, &err))
        cli_warn(drive->cli, "%s", err.message);
}

static const char *signal_words(int number)
{
    return number == SIGINT ? "interrupted (^C)" : number == SIGTERM ? "SIGTERM" : "SIGHUP";
}

// Passes the level on to every run that has not heard of it: also to those that begin later. Cancelling a parent cancels
// its children; pausing does not.
static void pass_on(struct drive *drive)
{
    static const enum signal_type types[] = {SIGNAL_NONE, SIGNAL_PAUSE, SIGNAL_CANCEL, SIGNAL_EMERGENCY_STOP};
    for (size_t i = 0; i < drive->run_count; i++) {
        struct driven *driven = &drive->runs[i];
        bool meant = drive->level == 1 ? driven->status == RUN_STATUS_RUNNING : !driven->child;
        if (driven->ended || driven->asked >= drive->level || !meant) continue;
        driven->asked = drive->level;
        send(drive, driven->run, types[drive->level], STR(""), signal_words(drive->interrupt), drive->level == 3);
    }
}

static void escalate(struct drive *drive, int level, int64_t mono_ms)
{
    size_t busy = engine_activity(drive->engine).in_flight;
    if (level > 3 || level <= drive->level) return;
    drive->level = level;
    drive->pausing = level == 1;
    if (level == 1 && busy > 0)
        progress_say(&drive->progress, "pausing: %zu step%s still running; ^C again cancels the run", busy,
                     busy == 1 ? " is" : "s are");
    if (level == 2) progress_say(&drive->progress, "cancelling; ^C again kills what still runs");
    if (level == 3) {
        drive->kill_at_ms = mono_ms + KILL_MS;
        progress_say(&drive->progress, "killing");
    }
}

// A store without space can record neither a pause nor a cancel: a command that was asked to stop must stop all the same, once
// nothing runs (or at the second word). The log is as it was, and recovery goes on from it.
static void leave_if_stalled(struct drive *drive)
{
    struct engine_activity activity = engine_activity(drive->engine);
    if (drive->stop || activity.stalled_ms < STALL_MS || (activity.in_flight > 0 && drive->level < 2)) return;
    cli_warn(drive->cli, "the store takes nothing; the run stays as the log has it");
    cli_hint(drive->cli, "%s", cli_command(drive->cli, "recover"));
    drive->stop = true;
}

static void look_at_interrupts(struct drive *drive, int64_t mono_ms)
{
    struct str mode = args_text(&drive->cli->args, FLAG_ON_INTERRUPT, "pause");
    int offset = str_is(mode, "kill") ? 2 : str_is(mode, "cancel") ? 1 : 0;
    int count = interrupts_count();
    if (count > drive->interrupts_seen && !drive->interrupt) drive->interrupt = interrupts_number();
    while (drive->interrupts_seen < count) {
        drive->interrupts_seen++;
        escalate(drive, drive->interrupts_seen + offset, mono_ms);
    }
    if (drive->level > 0) {
        pass_on(drive);
        leave_if_stalled(drive);
    }
    if (drive->kill_at_ms != 0 && mono_ms >= drive->kill_at_ms) drive->stop = true;
}

// ---- waiting
static bool answers_itself(const struct run *run, int64_t wall_ms)
{
    for (uint32_t i = 0; i < run->program->step_count; i++) {
        if (kernel_state(run, i) != NODE_RUNNING || run->program->steps[i].kind != STEP_APPROVAL) continue;
        int64_t due_ms = kernel_attempt(run, i).due_ms;
        if (due_ms > 0 && due_ms - wall_ms < PATIENCE_MS) return true;
    }
    return false;
}

// Nothing of this run will happen in this process unless a person acts.
static bool waits(const struct drive *drive, const struct run *run, int64_t wall_ms)
{
    if (run->status == RUN_STATUS_PAUSED || run->status == RUN_STATUS_PENDING) return true;
    struct standing_in in = run_standing_in(run);
    if (standing_of(&in).need != NEED_PERSON) return false;
    if (in.held > 0) return in.busy + in.delayed == 0;
    return !(drive->patient && answers_itself(run, wall_ms));
}

// All that runs in it is for others to end: persons and child runs.
static bool depends_on_others(const struct run *run)
{
    if (run->delayed > 0 || run->status != RUN_STATUS_RUNNING) return false;
    for (uint32_t i = 0; i < run->program->step_count; i++) {
        enum step_kind kind = run->program->steps[i].kind;
        if (kernel_state(run, i) == NODE_RUNNING && kind != STEP_APPROVAL && kind != STEP_SUBRUN && kind != STEP_LOOP)
            return false;
    }
    return true;
}

static bool all_wait(struct drive *drive, struct moment_in_time now)
{
    if (engine_activity(drive->engine).in_flight > 0) return false;
    size_t count = 0;
    for (size_t i = 0; i < drive->run_count; i++) {
        if (drive->runs[i].ended) continue;
        const struct run *run = engine_run(drive->engine, drive->session->tenant, drive->runs[i].run);
        if (!run) continue;
        bool waiting = drive->pausing ? run->status != RUN_STATUS_RUNNING : waits(drive, run, now.wall_ms);
        if (!waiting && (drive->pausing || !depends_on_others(run))) return false;
        count += waiting;
    }
    return count > 0;
}

// ---- children of runs that were taken over
static void meet_child(struct drive *drive, struct str id)
{
    const struct run *child = engine_run(drive->engine, drive->session->tenant, id);
    if (!child || find(drive, id)) return;
    struct driven *driven = add_run(drive, child);
    if (driven) driven->status = child->status;
    progress_attach(&drive->progress, child);
}

static void meet_children(struct drive *drive, const struct run *run)
{
    for (uint32_t i = 0; i < run->program->step_count; i++) {
        if (kernel_state(run, i) != NODE_RUNNING || run->program->steps[i].kind != STEP_SUBRUN) continue;
        for (uint32_t k = kernel_fans_out(run, i); k <= kernel_members(run, i); k++) { // 0: the only one
            struct str id = kernel_child(run, i, k, &drive->progress.scratch);
            if (id.ptr) meet_child(drive, id);
        }
    }
}

static void look_after_children(struct drive *drive)
{
    arena_reset(&drive->progress.scratch);
    for (size_t i = 0; i < drive->run_count; i++) { // grows while it is walked: children have children
        if (drive->runs[i].ended) continue;
        const struct run *run = engine_run(drive->engine, drive->session->tenant, drive->runs[i].run);
        if (run) meet_children(drive, run);
        struct driven *driven = &drive->runs[i];
        if (drive->resume_children && driven->child && driven->status == RUN_STATUS_PAUSED && !driven->resumed) {
            driven->resumed = true;
            send(drive, driven->run, SIGNAL_RESUME, STR(""), "", false);
        }
    }
}

// ---- approvals given beforehand
static bool approved_beforehand(const struct drive *drive, struct str step, struct str path)
{
    size_t cursor = 0;
    struct str name;
    if (drive->approve_all) return true;
    while (args_next(&drive->cli->args, FLAG_APPROVE, &cursor, &name))
        if (str_eq(name, step) || str_eq(name, path)) return true;
    return false;
}

static bool answer_gates(struct drive *drive, struct str id, const struct run *run)
{
    bool answered = run->status == RUN_STATUS_PENDING && drive->approve_all && run->start.requires_approval;
    if (answered) send(drive, id, SIGNAL_APPROVE, STR(""), "approved beforehand", false);
    for (uint32_t i = 0; run->in_flight > 0 && i < run->program->step_count; i++) {
        if (kernel_state(run, i) != NODE_RUNNING || run->program->steps[i].kind != STEP_APPROVAL) continue;
        struct str path = kernel_path(run, i, &drive->progress.scratch);
        if (!path.ptr || !approved_beforehand(drive, run->program->steps[i].id, path)) continue;
        send(drive, id, SIGNAL_APPROVE, path, "approved beforehand", false);
        answered = true;
    }
    return answered;
}

static void tick(void *context, struct engine *engine, struct moment_in_time now)
{
    struct drive *drive = context;
    look_at_interrupts(drive, now.mono_ms);
    if (drive->decided && drive->stop_when_decided) drive->stop = true;
    if (drive->awaited.len > 0 && find(drive, drive->awaited)) drive->stop = true;
    bool approves = drive->progress.approves;
    if (approves && drive->changed) arena_reset(&drive->progress.scratch);
    for (size_t i = 0; approves && drive->changed && i < drive->run_count; i++) {
        const struct run *run =
            drive->runs[i].ended ? NULL : engine_run(engine, drive->session->tenant, drive->runs[i].run);
        if (run && answer_gates(drive, drive->runs[i].run, run))
            drive->looked_ms = now.mono_ms; // let it be decided before asking who waits
    }
    drive->changed = false;
    bool stops = (drive->exit_on_wait || drive->pausing) && drive->level < 2;
    if ((stops || drive->adopted) && now.mono_ms - drive->looked_ms >= LOOK_MS) {
        drive->looked_ms = now.mono_ms;
        if (stops && all_wait(drive, now)) drive->stop = true;
        if (drive->adopted && drive->level == 0) look_after_children(drive);
    }
    progress_places(&drive->progress, engine);
    progress_tick(&drive->progress, now.wall_ms);
}

// ---- opening, driving, ending
static void on_refused(void *context, const struct engine_refusal *refusal)
{
    struct drive *drive = context;
    if (refusal->parent.len == 0 && drive->refused.code == OK) drive->refused = *refusal->why; // a child's is its parent's affair
}

// Nobody else is there to go on with it.
static int check_detach(struct cli *cli)
{
    bool interrupt =
        args_has(&cli->args, FLAG_ON_INTERRUPT) && str_is(args_text(&cli->args, FLAG_ON_INTERRUPT, ""), "detach");
    bool queue = args_has(&cli->args, FLAG_QUEUE);
    if (!interrupt && !queue && !args_has(&cli->args, FLAG_DETACH)) return EXIT_OK;
    cli_fail(cli, EXIT_USAGE, "%s is for runs of a server; this one goes on in this process",
             interrupt ? "--on-interrupt detach" : queue ? "--queue" : "--detach");
    return cli_hint(cli, "`cairn serve` runs what it is given, watched or not: --server URL");
}

int drive_open(struct drive *drive, struct session *session, enum progress_mode mode)
{
    struct cli *cli = session->cli;
    struct error err = {0};
    *drive = (struct drive){.cli = cli, .session = session, .changed = true};
    drive->approve_all = args_has(&cli->args, FLAG_APPROVE_ALL);
    drive->exit_on_wait = args_has(&cli->args, FLAG_EXIT_ON_WAIT);
    map_init(&drive->index, &cli->io.arena);
    int refused = check_detach(cli);
    if (refused) return refused;
    if (!progress_open(&drive->progress, &cli->io, mode)) return cli_nomem(cli);
    drive->progress.approves = drive->approve_all || args_has(&cli->args, FLAG_APPROVE);
    bool lines = mode == PROGRESS_TREE || (mode == PROGRESS_PLAIN && cli->io.verbose > 0);
    struct engine_options options = {
        .store = session->store,
        .contract = session->contract,
        .entropy = os_entropy(),
        .limits = engine_limits_default,
        .only_signals = args_has(&cli->args, FLAG_NO_RUN),
        .observer = {.context = drive,
                     .event = on_event,
                     .decision = on_decision,
                     .output = lines ? on_output : NULL,
                     .refused = on_refused},
    };
    int code = steps_max_read(cli, &options.limits.steps_max);
    if (!code) code = limits_read(cli, &options.limits, NULL);
    if (!code) code = retention_read(cli, &options.retention);
    int64_t at_once = options.limits.process_max;
    if (!code && !args_int(&cli->args, FLAG_CONCURRENCY, 1, 10000, at_once, &cli->io.arena, &at_once))
        code = cli_usage(cli);
    options.limits.process_max = (uint32_t)at_once;
    if (!code) code = plugins_open(cli);
    if (!code) code = confine_open(cli, &options, true);
    if (code) return code;
    if (cli->functions)
        options.host = (struct engine_host){
            .tools = functions_tools(cli->functions), .context = cli->functions, .knows = functions_know};
    code = tasking_read(cli, &drive->task);
    if (code) return code;
    options.task = &drive->task;
    code = hosting_open(session, &drive->host);
    if (code) return code;
    if (drive->host) hosting_join(drive->host, &options);
    interrupts_catch();
    if (engine_open(&options, &drive->engine, &err)) return cli_error(cli, &err);
    if (cli->functions) functions_attach(cli->functions, drive->engine);
    return EXIT_OK;
}

int drive_begin(struct drive *drive, struct str run)
{
    return drive->host ? hosting_begin(drive->cli, drive->host, drive->engine, run) : EXIT_OK;
}

void drive_close(struct drive *drive)
{
    progress_close(&drive->progress);
    drive_shut(drive);
}

void drive_shut(struct drive *drive)
{
    if (drive->cli->functions) functions_attach(drive->cli->functions, NULL);
    if (drive->host) hosting_end(drive->cli, drive->host);
    engine_close(drive->engine);
    drive->engine = NULL;
    temporal_host_free(drive->host);
    drive->host = NULL;
}

static void on_past(void *context, const struct engine_event *event)
{
    struct drive *drive = context;
    tree_event(drive->progress.tree, event);
}

// What a run that is taken over has lived through so far: the tree shows times and reasons of steps that ended before.
static void recall(struct drive *drive, struct str run)
{
    struct mirror mirror;
    struct run_head head;
    struct error err = {0};
    bool changed;
    if (!drive->progress.tree ||
        store_head(drive->session->store, drive->session->tenant, run, &drive->cli->io.arena, &head, &err))
        return;
    mirror_open(&mirror, drive->session);
    mirror.context = drive;
    mirror.event = on_past;
    if (mirror_add(&mirror, &head) == EXIT_OK) (void)mirror_poll(&mirror, &changed);
    mirror_close(&mirror);
}

enum code drive_adopt(struct drive *drive, struct str run, struct error *err)
{
    enum code rc = engine_adopt(drive->engine, drive->session->tenant, run, err);
    if (rc) return rc;
    const struct run *state = engine_run(drive->engine, drive->session->tenant, run);
    struct driven *driven = state ? add_run(drive, state) : NULL;
    if (!driven) return OK;
    driven->status = state->status;
    drive->adopted = true;
    if (drive->host) temporal_host_adopted(drive->host, drive->session->tenant, run);
    recall(drive, run);
    progress_attach(&drive->progress, state);
    return OK;
}

int drive_loop(struct drive *drive)
{
    struct error err = {0};
    struct engine_loop loop = {.stop = &drive->stop, .tick = tick, .context = drive, .tick_ms = TICK_MS};
    drive->stop = false;
    enum code rc = engine_loop(drive->engine, &loop, &err);
    if (!rc && drive->refused.code != OK) {
        err = drive->refused;
        rc = err.code;
    }
    if (!rc) return EXIT_OK;
    if (drive->progress.tree) tree_erase(drive->progress.tree);
    int code = cli_error(drive->cli, &err);
    if (rc == E_EXISTS) cli_hint(drive->cli, "another process has just started it; `cairn ls` shows how it goes");
    return code;
}

int exit_of_status(enum run_status status)
{
    switch (status) {
    case RUN_STATUS_COMPLETED:
        return EXIT_OK;
    case RUN_STATUS_FAILED:
        return EXIT_RUN_FAILED;
    case RUN_STATUS_CANCELLED:
        return EXIT_RUN_CANCELLED;
    case RUN_STATUS_PENDING:
    case RUN_STATUS_APPROVED:
    case RUN_STATUS_RUNNING:
    case RUN_STATUS_PAUSED:
        return EXIT_WAITING;
    }
    return EXIT_ERROR;
}

int drive_exit_code(const struct drive *drive, struct str run)
{
    const struct driven *driven = drive_find(drive, run);
    if (drive->kill_at_ms != 0 || (drive->interrupt && !(driven && driven->ended))) return 128 + drive->interrupt;
    return driven ? exit_of_status(driven->status) : EXIT_ERROR;
}
