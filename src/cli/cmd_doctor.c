// Looks for what would hurt later. A check that finds nothing says nothing.
#include "cli/commands.h"
#include "cli/config.h"
#include "cli/doctor.h"
#include "cli/follow.h"
#include "cli/mirror.h"
#include "term/text.h"

#include "base/civil.h"
#include "tool/tool.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/timex.h>
#include <unistd.h>

enum {
    RUNS_LOOKED_AT = 200, // newest unfinished ones that are folded
    RUNS_VERIFIED = 20,   // newest ones whose chain is read
    LISTED_MAX = 5,       // runs named per problem
    SYNC_ROUNDS = 8,
    SYNC_MIN_US = 15, // no medium that keeps bytes without power answers faster
    CLOCK_SKEW_MS = 5000,
    FILES_MIN = 256,
};

#define SPACE_MIN ((uint64_t)1 << 30)
#define WAL_MAX ((uint64_t)256 << 20)

void doctor_problem(struct doctor *d, const char *hint, const char *format, ...)
{
    char text[1024];
    struct arena *arena = &d->cli->io.arena;
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    d->problem_count++;
    json_append(arena, &d->problems,
                JSON_OF(arena, {"check", json_word(d->check)}, {"problem", json_copied(arena, str_from(text))},
                        {"hint", hint ? json_word(hint) : json_null()}));
    if (format_of(d->cli, FORMAT_TEXT) == FORMAT_JSON) return;
    cli_warn(d->cli, "%s: %s", d->check, text);
    if (hint) cli_hint(d->cli, "%s", hint);
}

// ---- checks
static void check_config(struct doctor *d)
{
    const struct config *config = d->cli->config;
    for (size_t i = 0; config && i < config->fault_count; i++)
        doctor_problem(d, config->faults[i].hint, "%.*s", STR_ARG(config->faults[i].text));
}

static const char *remote_name(uint32_t type)
{
    switch (type) {
    case 0x6969:
        return "NFS";
    case 0x517B:
    case 0xFF534D42:
    case 0xFE534D42:
        return "SMB";
    case 0x01021997:
        return "9p";
    case 0x65735546:
        return "FUSE";
    default:
        return NULL;
    }
}

static void check_place(struct doctor *d)
{
    struct statfs about;
    if (!d->directory || statfs(d->directory, &about) != 0) return;
    const char *remote = remote_name((uint32_t)about.f_type);
    if (remote)
        doctor_problem(d, "put the store on a local disk",
                       "%s is on %s: its locks and syncs promise less than a durable log needs", d->directory, remote);
    if ((uint32_t)about.f_type == 0x01021994)
        doctor_problem(d, "put the store on a disk", "%s is in memory (tmpfs): a reboot loses every run", d->directory);
    uint64_t unit = (uint64_t)about.f_bsize, free_bytes = (uint64_t)about.f_bavail * unit;
    uint64_t all = (uint64_t)about.f_blocks * unit;
    if (free_bytes < SPACE_MIN || (all > 0 && free_bytes < all / 50))
        doctor_problem(d, "make room, or `cairn store gc` removes old runs", "%s has %llu MiB left (%llu %%)",
                       d->directory, (unsigned long long)(free_bytes >> 20),
                       (unsigned long long)(all ? free_bytes * 100 / all : 0));
    if (about.f_files > 0 && about.f_ffree < about.f_files / 50)
        doctor_problem(d, "the files store takes two inodes a run; sqlite takes none",
                       "%s is short of inodes: %llu left", d->directory, (unsigned long long)about.f_ffree);
    if (access(d->directory, W_OK) != 0)
        doctor_problem(d, "runs cannot be started here", "%s cannot be written to", d->directory);
}

// A sync that returns at once has not reached anything that survives a power cut.
static void check_sync(struct doctor *d)
{
    char path[4096];
    int64_t best = INT64_MAX;
    if (!d->directory || access(d->directory, W_OK) != 0) return;
    snprintf(path, sizeof(path), "%s/.cairn-doctor-XXXXXX", d->directory);
    int fd = mkstemp(path);
    if (fd < 0) return;
    unlink(path);
    for (int i = 0; i < SYNC_ROUNDS; i++) {
        int64_t from = os_mono_us();
        if (write(fd, path, 512) != 512 || fdatasync(fd) != 0) {
            doctor_problem(d, "check the disk before anything else", "writing and syncing 512 bytes failed");
            break;
        }
        int64_t took = os_mono_us() - from;
        if (took < best) best = took;
    }
    close(fd);
    struct statfs about;
    bool memory = statfs(d->directory, &about) == 0 && (uint32_t)about.f_type == 0x01021994;
    if (best < SYNC_MIN_US && !memory)
        doctor_problem(d, "look for a write cache without a battery, a mount with nobarrier, or eatmydata",
                       "a sync takes %lld us: what it says to be durable is not", (long long)best);
    const char *preload = getenv("LD_PRELOAD");
    if (preload && strstr(preload, "eatmydata"))
        doctor_problem(d, "unset LD_PRELOAD", "libeatmydata is loaded: syncs do nothing");
}

static void check_store(struct doctor *d)
{
    const struct store_recovery *recovered = d->session.store ? store_recovered(d->session.store) : NULL;
    struct stat wal;
    if (recovered && recovered->quarantined_runs > 0)
        doctor_problem(d, "`cairn log verify --all` names the records",
                       "%llu runs are quarantined: their files were damaged",
                       (unsigned long long)recovered->quarantined_runs);
    if (strncmp(d->session.url, "sqlite:", 7) == 0 &&
        stat(cli_format(d->cli, "%s-wal", d->session.url + 7), &wal) == 0 && (uint64_t)wal.st_size > WAL_MAX)
        doctor_problem(d, "a reader that never ends keeps it from being checkpointed: end it",
                       "the WAL has grown to %llu MiB", (unsigned long long)wal.st_size >> 20);
}

static void check_advice(struct doctor *d)
{
    struct advices advices = {0};
    struct error err = {0};
    if (!d->session.store || d->session.remote) return;
    if (store_advise(d->session.store, &d->cli->io.arena, &advices, &err)) doctor_problem(d, "", "%s", err.message);
    for (size_t i = 0; i < advices.count; i++)
        doctor_problem(d, advices.items[i].hint.ptr, "%s", advices.items[i].what.ptr);
}

static void check_clock(struct doctor *d)
{
    struct error err = {0};
    struct run_heads heads = {0};
    struct run_filter filter = {.tenant = d->session.tenant, .limit = 1};
    struct timex clock = {0};
    int64_t now = os_now().wall_ms;
    if (d->session.store && store_list(d->session.store, &filter, &d->cli->io.arena, &heads, &err) == OK &&
        heads.count > 0 && heads.items[0].updated_ms > now + CLOCK_SKEW_MS) {
        char ahead[24];
        duration_format(heads.items[0].updated_ms - now, ahead);
        doctor_problem(d, "the clock went back since then: timers and times of new events will be off",
                       "the newest run was last written %s from now", ahead);
    }
    if (now < INT64_C(1735689600000)) doctor_problem(d, "set the clock", "the clock stands before 2025");
    if (adjtimex(&clock) == TIME_ERROR && d->cli->io.verbose > 0)
        cli_note(d->cli, "clock: the kernel does not know whether it is synchronised (normal in containers)");
}

static void check_limits(struct doctor *d)
{
    struct rlimit files, processes;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < FILES_MIN)
        doctor_problem(d, "ulimit -n 1024", "only %llu open files are allowed", (unsigned long long)files.rlim_cur);
    if (getrlimit(RLIMIT_NPROC, &processes) == 0 && processes.rlim_cur != RLIM_INFINITY && processes.rlim_cur < 64)
        doctor_problem(d, "ulimit -u 1024", "only %llu processes are allowed", (unsigned long long)processes.rlim_cur);
    if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur != RLIM_INFINITY && files.rlim_cur < SPACE_MIN)
        doctor_problem(d, "ulimit -f unlimited", "files may not grow beyond %llu MiB",
                       (unsigned long long)files.rlim_cur >> 20);
}

static bool in_path(const char *name)
{
    char path[4096];
    struct str rest = str_from(getenv("PATH"));
    while (rest.len > 0) {
        struct str part = str_cut(rest, ':', &rest);
        snprintf(path, sizeof(path), "%.*s/%s", STR_ARG(part), name);
        if (access(path, X_OK) == 0) return true;
    }
    return false;
}

static void check_runtimes(struct doctor *d)
{
    if (!in_path("bash")) doctor_problem(d, "install bash", "there is no bash: steps of kind shell cannot run");
}

// ---- runs
static void check_unfinished(struct doctor *d)
{
    struct error err = {0};
    size_t orphans = 0;
    struct run_filter filter = {.tenant = d->session.tenant, .unfinished = true, .limit = RUNS_LOOKED_AT};
    if (!d->session.store) return;
    if (store_list(d->session.store, &filter, &d->cli->io.arena, &d->unfinished, &err)) {
        doctor_problem(d, NULL, "%s", err.message);
        return;
    }
    for (size_t i = 0; i < d->unfinished.count; i++) {
        const struct run_head *head = &d->unfinished.items[i];
        if (head_standing(head).need != NEED_OWNER || head->parent_run.len > 0) continue;
        if (++orphans <= LISTED_MAX)
            doctor_problem(d, need_command(d->cli, head), "run %.*s has not ended and no process drives it",
                           STR_ARG(head->ids.run));
    }
    if (orphans > LISTED_MAX)
        doctor_problem(d, cli_command(d->cli, "recover"), "%zu further runs have not ended and no process drives them",
                       orphans - LISTED_MAX);
}

// What the kernel promises of every run that has not ended (K2): something is in flight, due, held, paused or asked.
static bool is_stuck(const struct run *run)
{
    if (run->status != RUN_STATUS_RUNNING) return false;
    return run->in_flight == 0 && run->delayed == 0 && run->held == 0;
}

static void check_states(struct doctor *d)
{
    struct mirror mirror;
    bool changed;
    if (!d->session.store) return;
    for (size_t i = 0; i < d->unfinished.count; i++) {
        mirror_open(&mirror, &d->session);
        if (mirror_add(&mirror, &d->unfinished.items[i]) == EXIT_OK && mirror_poll(&mirror, &changed) == EXIT_OK) {
            const struct mirrored *root = &mirror.runs[0];
            if (is_stuck(root->state))
                doctor_problem(d, "please report this: it should be impossible",
                               "run %.*s is RUNNING and has nothing in flight, due, held or asked", STR_ARG(root->run));
            if (root->state->status != root->head.summary.status)
                doctor_problem(d, cli_command(d->cli, "log verify %.*s", STR_ARG(root->run)),
                               "run %.*s is listed as %s, but its log says %s", STR_ARG(root->run),
                               run_status_name(root->head.summary.status), run_status_name(root->state->status));
        }
        mirror_close(&mirror);
    }
}

static void check_chain(struct doctor *d)
{
    struct error err = {0};
    struct run_heads heads = {0};
    struct run_filter filter = {.tenant = d->session.tenant, .limit = RUNS_VERIFIED};
    if (!d->session.store || store_list(d->session.store, &filter, &d->cli->io.arena, &heads, &err)) return;
    for (size_t i = 0; i < heads.count; i++) {
        struct verify_report report = {0};
        const struct run_ids *ids = &heads.items[i].ids;
        if (store_verify(d->session.store, ids->tenant, ids->run, &d->cli->io.arena, &report, &err))
            doctor_problem(d, NULL, "run %.*s: %s", STR_ARG(ids->run), err.message);
        for (size_t f = 0; f < report.fault_count && f < LISTED_MAX; f++)
            doctor_problem(d, cli_command(d->cli, "log verify %.*s", STR_ARG(ids->run)), "run %.*s, %s %llu: %.*s",
                           STR_ARG(ids->run), report.faults[f].ledger ? "ledger entry" : "event",
                           (unsigned long long)report.faults[f].seq, STR_ARG(report.faults[f].what));
    }
}

struct orphans {
    struct doctor *doctor;
    bool fix;
    size_t count;
};

static bool see_orphan(void *context, struct str tenant, struct str run, struct str step)
{
    struct orphans *orphans = context;
    struct doctor *d = orphans->doctor;
    struct error err = {0};
    struct run_head head;
    enum code rc = store_head(d->session.store, tenant.len ? tenant : d->session.tenant, run, &d->cli->io.arena, &head, &err);
    if (rc == OK && head.owned) return false; // its engine lives
    if (rc != OK && rc != E_NOT_FOUND) return false;
    if (!orphans->fix && ++orphans->count <= LISTED_MAX)
        doctor_problem(d, "`cairn doctor --fix` kills it; so does `cairn recover` before the step runs again",
                       "a process of step %.*s of run %.*s still runs, but its engine is gone", STR_ARG(step),
                       STR_ARG(run));
    return orphans->fix;
}

static void check_orphans(struct doctor *d)
{
    struct engine_mark mark;
    struct orphans orphans = {.doctor = d, .fix = args_has(&d->cli->args, FLAG_FIX)};
    if (!d->session.store || d->session.remote) return;
    engine_mark(d->session.store, false, &mark);
    size_t killed = tool_sweep_orphans(&(struct tool_mark){mark.store, mark.file, mark.url}, see_orphan, &orphans);
    if (killed == 0) return;
    d->fixed_count++;
    cli_note(d->cli, "orphans: killed %zu process%s whose engine was gone", killed, killed == 1 ? "" : "es");
}

static const struct {
    const char *name, *what;
    void (*run)(struct doctor *doctor);
} checks[] = {
    {"config", "config files can be read and every setting is known", check_config},
    {"place", "the store is on a local disk with room", check_place},
    {"sync", "a sync reaches the disk", check_sync},
    {"store", "the store opened cleanly and its WAL is small", check_store},
    {"database", "the database server is set up for what the store promises", check_advice},
    {"clock", "the clock has not gone back", check_clock},
    {"limits", "open files, processes and file sizes are not limited too much", check_limits},
    {"runtimes", "what steps need is installed", check_runtimes},
    {"serve", "the configuration of the service fits, its doors can be opened", check_serve},
    {"server", "the service answers, is ready, and has workers and sinks", check_server},
    {"temporal", "the Temporal server that runs are workflows of answers, and has the namespace", check_temporal},
    {"runs", "every unfinished run has a process that drives it or a person who is asked", check_unfinished},
    {"states", "no run is in an impossible state", check_states},
    {"orphans", "no process of a dead engine is left", check_orphans},
    {"chain", "the hash chain of the newest runs is whole", check_chain},
};

// ---- the command
static void find_directory(struct doctor *d)
{
    const char *path = strchr(d->session.url, ':');
    if (!path || session_is_memory(&d->session) || d->session.remote) return;
    path++;
    bool file = strncmp(d->session.url, "sqlite:", 7) == 0;
    const char *slash = strrchr(path, '/');
    d->directory = !file           ? path
                   : !slash        ? "."
                   : slash == path ? "/"
                                   : cli_format(d->cli, "%.*s", (int)(slash - path), path);
    if (!os_is_dir(d->directory)) d->directory = NULL;
}

static bool wanted(const struct cli *cli, const char *name)
{
    for (size_t i = 0; i < cli->args.word_count; i++)
        if (str_is(cli->args.words[i], name)) return true;
    return cli->args.word_count == 0;
}

static int unknown_check(struct cli *cli)
{
    const char *names[ARRAY_COUNT(checks)];
    for (size_t i = 0; i < ARRAY_COUNT(checks); i++) names[i] = checks[i].name;
    for (size_t i = 0; i < cli->args.word_count; i++) {
        bool known = false;
        for (size_t c = 0; c < ARRAY_COUNT(checks); c++) known = known || str_is(cli->args.words[i], names[c]);
        if (known) continue;
        const char *near = nearest_name(cli->args.words[i], names, ARRAY_COUNT(names));
        cli_fail(cli, EXIT_USAGE, "there is no check %.*s", STR_ARG(cli->args.words[i]));
        if (near)
            cli_hint(cli, "did you mean %s?", near);
        else
            cli_hint(cli, "`cairn doctor -v` names every check");
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

int command_doctor(struct cli *cli)
{
    struct doctor d = {.cli = cli, .problems = json_array(), .check = "store"};
    size_t done = 0;
    int code = unknown_check(cli);
    if (code) return code;
    d.unopened = session_open(&d.session, cli, STORE_READ) != EXIT_OK;
    d.problem_count += d.unopened;
    find_directory(&d);
    for (size_t i = 0; i < ARRAY_COUNT(checks); i++) {
        size_t before = d.problem_count;
        if (!wanted(cli, checks[i].name)) continue;
        d.check = checks[i].name;
        checks[i].run(&d);
        done++;
        if (cli->io.verbose > 0 && d.problem_count == before)
            cli_note(cli, "ok  %-9s %s", checks[i].name, checks[i].what);
    }
    session_close(&d.session);
    if (format_of(cli, FORMAT_TEXT) == FORMAT_JSON) print_json(&cli->io, FORMAT_JSON, &d.problems);
    if (d.problem_count == 0) cli_note(cli, "%zu check%s, nothing wrong", done, done == 1 ? "" : "s");
    return d.problem_count ? EXIT_ERROR : EXIT_OK;
}
