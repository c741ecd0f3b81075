// sim exhaustive [--store S] [--workload W] [--worlds N]     every sequence of choices of small worlds
// sim seeded --seeds N [--from S] [--store S] [--workload W]  worlds drawn from seeds
// sim replay --store S [--seed N] [--vector V] [--calm] [--workload W] [--trace]
// sim all [--budget SECONDS]                                  what `make test` runs
//
// Each group of worlds runs in a process of its own, so that a broken INVARIANT is a failure like any other. A failing world
// is shrunk and printed with the command that runs it again. Every hundredth seed runs twice and must leave the same trace.
#include "sim/world.h"

#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VECTOR_MAX 65536u

enum mode { MODE_EXHAUSTIVE = 1, MODE_SEEDED };

struct group {
    enum mode mode;
    enum sim_store store;
    enum workload_id workload;
    uint64_t from, worlds;
};

// Between the process that runs a group and the one that waits for it.
struct board {
    struct group group;
    uint64_t seed; // of the world under way
    uint64_t worlds, crash_worlds, twice;
    struct world_result sum;
    bool complete; // exhaustive: every sequence was walked
    bool done, failed;
    char name[16], message[600];
    uint32_t count;
    uint32_t vector[VECTOR_MAX];
};

struct totals {
    uint64_t worlds[SIM_SHARDS + 1], crash_worlds[SIM_SHARDS + 1], crashes[SIM_SHARDS + 1], acts[SIM_SHARDS + 1], twice,
        checks;
    uint32_t passed, failed;
};

static double now_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static struct board *board_new(void)
{
    struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    INVARIANT(board != MAP_FAILED);
    return board;
}

static struct world_options options_of(const struct group *group, bool trace)
{
    return (struct world_options){
        .store = group->store, .workload = group->workload, .calm = group->mode == MODE_EXHAUSTIVE, .trace = trace};
}

static void group_name(const struct group *group, char out[96])
{
    const char *workload = group->workload < WORKLOAD_COUNT ? workload_at(group->workload)->name : "any";
    snprintf(out, 96, "%s_%s_%s", group->mode == MODE_EXHAUSTIVE ? "exhaustive" : "seeded",
             sim_store_name(group->store), workload);
}

// ---- running worlds (child processes only)

static void add_up(struct board *board, const struct world_result *result)
{
    board->worlds++;
    board->crash_worlds += result->crashes > 0;
    board->sum.acts += result->acts;
    board->sum.turns += result->turns;
    board->sum.crashes += result->crashes;
    board->sum.commits += result->commits;
    board->sum.starts += result->starts;
    board->sum.signals += result->signals;
    board->sum.forks += result->forks;
    board->sum.checks += result->checks;
}

static void note_failure(struct board *board, const char *name, const char *message)
{
    board->failed = true;
    snprintf(board->name, sizeof(board->name), "%s", name);
    snprintf(board->message, sizeof(board->message), "%s", message);
}

static void run_seeds(struct board *board, struct choice *choice, double until)
{
    const struct group *group = &board->group;
    struct world_options options = options_of(group, false);
    for (uint64_t i = 0; i < group->worlds && now_seconds() < until; i++) {
        struct world_result result, again;
        board->seed = group->from + i;
        choice_seeded(choice, board->seed);
        world_run(choice, &options, &result);
        add_up(board, &result);
        if (result.failed) {
            note_failure(board, result.failed, result.message);
            return;
        }
        if (i % 100 != 0) continue;
        choice_seeded(choice, board->seed);
        world_run(choice, &options, &again);
        board->twice++;
        if (again.trace_hash == result.trace_hash) continue;
        note_failure(board, "TWICE", "the same seed left two different traces");
        return;
    }
}

static void run_all_sequences(struct board *board, struct choice *choice, double until)
{
    struct world_options options = options_of(&board->group, false);
    choice_exhaustive(choice);
    do {
        struct world_result result;
        world_run(choice, &options, &result);
        add_up(board, &result);
        if (result.failed) {
            note_failure(board, result.failed, result.message);
            return;
        }
        if (board->worlds >= board->group.worlds || now_seconds() > until) return;
    } while (choice_next(choice));
    board->complete = true;
}

static _Noreturn void group_child(struct board *board, double until)
{
    struct choice choice;
    choice_init(&choice);
    choice.mirror = board->vector;
    choice.mirror_count = &board->count;
    choice.mirror_max = VECTOR_MAX;
    if (board->group.mode == MODE_SEEDED)
        run_seeds(board, &choice, until);
    else
        run_all_sequences(board, &choice, until);
    choice_release(&choice);
    workloads_release();
    board->done = true;
    exit(0);
}

// ---- shrinking

struct suspect {
    struct board *board; // a second one
    const struct board *first;
};

static _Noreturn void replay_child(struct board *board, const uint32_t *values, size_t count)
{
    struct choice choice;
    choice_init(&choice);
    choice_replay(&choice, board->seed, values, count);
    struct world_options options = options_of(&board->group, false);
    struct world_result result;
    FILE *quiet = freopen("/dev/null", "w", stderr);
    (void)quiet;
    world_run(&choice, &options, &result);
    if (result.failed) note_failure(board, result.failed, result.message);
    _exit(0);
}

static int wait_child(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) {
    }
    return status;
}

static bool still_fails(void *context, const uint32_t *values, size_t count)
{
    struct suspect *suspect = context;
    suspect->board->failed = false;
    fflush(NULL);
    pid_t pid = fork();
    INVARIANT(pid >= 0);
    if (pid == 0) {
        alarm(20);
        replay_child(suspect->board, values, count);
    }
    int status = wait_child(pid);
    if (WIFSIGNALED(status) && !suspect->board->failed)
        note_failure(suspect->board, "ABORT", strsignal(WTERMSIG(status)));
    return suspect->board->failed && strcmp(suspect->board->name, suspect->first->name) == 0;
}

static void print_failure(struct board *board, const char *name, bool shrink)
{
    printf("not ok %s: %s: %s\n", name, board->name, board->message);
    printf("#   world %" PRIu64 ", seed %" PRIu64 "\n", board->worlds + 1, board->seed);
    const struct group *group = &board->group;
    const char *calm = group->mode == MODE_EXHAUSTIVE ? " --calm" : "";
    char workload[64] = "";
    if (group->workload < WORKLOAD_COUNT)
        snprintf(workload, sizeof(workload), " --workload %s", workload_at(group->workload)->name);
    if (group->mode == MODE_SEEDED)
        printf("#   sim replay --store %s%s --seed %" PRIu64 " --trace\n", sim_store_name(group->store), workload,
               board->seed);
    if (!shrink || board->count == 0 || board->count >= VECTOR_MAX || strcmp(board->name, "TWICE") == 0) return;
    struct suspect suspect = {.board = board_new(), .first = board};
    suspect.board->group = *group;
    suspect.board->seed = board->seed;
    size_t count = board->count;
    uint32_t *values = calloc(count, sizeof(uint32_t));
    INVARIANT(values);
    memcpy(values, board->vector, count * sizeof(uint32_t));
    if (still_fails(&suspect, values, count)) count = choice_shrink(values, count, 600, still_fails, &suspect);
    struct buf text;
    buf_init(&text, (size_t)1 << 24);
    vector_write(&text, values, count);
    printf("#   vector %s\n", text.ptr);
    printf("#   sim replay --store %s%s%s --seed %" PRIu64 " --vector %s --trace\n", sim_store_name(group->store),
           workload, calm, board->seed, text.ptr);
    buf_release(&text);
    free(values);
    munmap(suspect.board, sizeof(*suspect.board));
}

// ---- groups

static bool run_group(const struct group *group, double seconds, bool shrink, struct totals *totals)
{
    struct board *board = board_new();
    board->group = *group;
    char name[96];
    group_name(group, name);
    fflush(NULL);
    pid_t pid = fork();
    INVARIANT(pid >= 0);
    if (pid == 0) group_child(board, now_seconds() + seconds);
    int status = wait_child(pid);
    if (!board->failed && (!board->done || !WIFEXITED(status) || WEXITSTATUS(status) != 0))
        note_failure(board, "ABORT", WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it ended early");
    bool ok = !board->failed;
    totals->passed += ok;
    totals->failed += !ok;
    totals->worlds[group->store] += board->worlds;
    totals->crash_worlds[group->store] += board->crash_worlds;
    totals->crashes[group->store] += board->sum.crashes;
    totals->acts[group->store] += board->sum.acts;
    totals->twice += board->twice;
    totals->checks += board->sum.checks;
    if (ok) {
        printf("ok %s\n", name);
        printf("#   %" PRIu64 " worlds%s, %" PRIu64 " crashes, %" PRIu64 " acts, %" PRIu64 " commits, %" PRIu64
               " starts, %" PRIu64 " signals, %" PRIu64 " forks, %" PRIu64 " checks\n",
               board->worlds, board->complete ? " (all there are)" : "", board->sum.crashes, board->sum.acts,
               board->sum.commits, board->sum.starts, board->sum.signals, board->sum.forks, board->sum.checks);
    } else {
        print_failure(board, name, shrink);
    }
    fflush(stdout);
    munmap(board, sizeof(*board));
    return ok;
}

static int finish(const struct totals *totals)
{
    uint64_t worlds = 0, crashed = 0;
    for (int i = SIM_MEMORY; i <= SIM_SHARDS; i++) {
        worlds += totals->worlds[i];
        crashed += totals->crash_worlds[i];
        if (totals->worlds[i] == 0) continue;
        printf("# %s: %" PRIu64 " worlds, %" PRIu64 " of them with crashes, %" PRIu64 " crashes, %" PRIu64 " acts\n",
               sim_store_name((enum sim_store)i), totals->worlds[i], totals->crash_worlds[i], totals->crashes[i],
               totals->acts[i]);
    }
    printf("# in all %" PRIu64 " worlds, %" PRIu64 " with crashes, %" PRIu64 " run twice, %" PRIu64 " checks\n", worlds,
           crashed, totals->twice, totals->checks);
    printf("# sim: %u passed, %u failed, 0 skipped\n", totals->passed, totals->failed);
    return totals->failed > 0;
}

static void run_workloads(enum mode mode, enum sim_store store, enum workload_id only, uint64_t from, uint64_t worlds,
                          double seconds, struct totals *totals)
{
    for (int i = 0; i < WORKLOAD_COUNT; i++) {
        if (only < WORKLOAD_COUNT && (int)only != i) continue;
        if (mode == MODE_EXHAUSTIVE && only == WORKLOAD_COUNT && !workload_at((enum workload_id)i)->small) continue;
        struct group group = {
            .mode = mode, .store = store, .workload = (enum workload_id)i, .from = from, .worlds = worlds};
        run_group(&group, seconds, true, totals);
    }
}

// Counts, not times: the same worlds on every machine. The time limit is there for a machine that is far too slow.
static int run_everything(uint64_t budget)
{
    struct totals totals = {0};
    double seconds = (double)budget;
    uint64_t unit = budget * 8; // worlds
    static const enum sim_store stores[] = {SIM_MEMORY, SIM_FILES, SIM_SQLITE, SIM_SHARDS};
    run_workloads(MODE_EXHAUSTIVE, SIM_MEMORY, WORKLOAD_COUNT, 0, unit * 40, seconds, &totals);
    run_workloads(MODE_EXHAUSTIVE, SIM_FILES, WORKLOAD_RETRY, 0, unit * 40, seconds, &totals);
    run_workloads(MODE_EXHAUSTIVE, SIM_FILES, WORKLOAD_INSTANT, 0, unit * 40, seconds, &totals);
    run_workloads(MODE_EXHAUSTIVE, SIM_SQLITE, WORKLOAD_SINGLE, 0, unit * 40, seconds, &totals);
    for (size_t i = 0; i < ARRAY_COUNT(stores); i++) {
        bool sqlite = stores[i] == SIM_SQLITE;
        if (!sqlite) run_workloads(MODE_SEEDED, stores[i], WORKLOAD_COUNT, 1, unit * 7 / 8, seconds, &totals);
        struct group any = {.mode = MODE_SEEDED,
                            .store = stores[i],
                            .workload = WORKLOAD_COUNT,
                            .from = 1000000,
                            .worlds = unit * 21 / 4};
        run_group(&any, seconds, true, &totals);
    }
    return finish(&totals);
}

// ---- command line

struct arguments {
    const char *mode;
    struct group group;
    bool has_store, trace, calm, no_shrink;
    uint64_t budget;
    struct str vector;
};

static int usage(void)
{
    fprintf(
        stderr,
        "usage: sim exhaustive|seeded|replay|all [--store memory|files|sqlite|shards] [--workload NAME] [--seeds N] "
        "[--from S]\n"
        "           [--worlds N] [--seed S] [--vector V] [--calm] [--trace] [--no-shrink] [--budget SECONDS]\n");
    return 2;
}

static bool read_number(const char *text, uint64_t *out)
{
    int64_t value;
    if (!text || !str_int64(str_from(text), &value) || value < 0) return false;
    *out = (uint64_t)value;
    return true;
}

static bool read_option(struct arguments *a, const char *name, const char *value, bool *took)
{
    *took = true;
    if (strcmp(name, "--store") == 0) {
        a->group.store = value ? sim_store_parse(str_from(value)) : (enum sim_store)0;
        a->has_store = true;
        return a->group.store != 0;
    }
    if (strcmp(name, "--workload") == 0) {
        a->group.workload = value ? workload_find(str_from(value)) : WORKLOAD_COUNT;
        return a->group.workload != WORKLOAD_COUNT || (value && strcmp(value, "any") == 0);
    }
    if (strcmp(name, "--vector") == 0) {
        a->vector = str_from(value);
        return value != NULL;
    }
    if (strcmp(name, "--seeds") == 0 || strcmp(name, "--worlds") == 0) return read_number(value, &a->group.worlds);
    if (strcmp(name, "--from") == 0 || strcmp(name, "--seed") == 0) return read_number(value, &a->group.from);
    if (strcmp(name, "--budget") == 0) return read_number(value, &a->budget);
    *took = false;
    if (strcmp(name, "--trace") == 0) return a->trace = true;
    if (strcmp(name, "--calm") == 0) return a->calm = true;
    if (strcmp(name, "--no-shrink") == 0) return a->no_shrink = true;
    return false;
}

static int replay(const struct arguments *a)
{
    struct group group = a->group;
    group.mode = a->calm ? MODE_EXHAUSTIVE : MODE_SEEDED;
    struct choice choice;
    choice_init(&choice);
    uint32_t *values = NULL;
    size_t count = 0;
    if (a->vector.len > 0 && !vector_parse(a->vector, &values, &count)) return usage();
    if (values)
        choice_replay(&choice, group.from, values, count);
    else
        choice_seeded(&choice, group.from);
    struct world_options options = options_of(&group, a->trace);
    struct world_result result;
    world_run(&choice, &options, &result);
    printf("%s %s\n# %" PRIu64 " acts, %" PRIu64 " crashes, trace %016" PRIx64 "\n",
           result.failed ? result.failed : "ok", result.message, result.acts, result.crashes, result.trace_hash);
    choice_release(&choice);
    free(values);
    return result.failed != NULL;
}

int main(int argc, char **argv)
{
    struct arguments a = {.mode = argc > 1 ? argv[1] : "",
                          .group = {.store = SIM_MEMORY, .workload = WORKLOAD_COUNT, .from = 1, .worlds = 1000},
                          .budget = 50};
    for (int i = 2; i < argc; i++) {
        bool took;
        if (!read_option(&a, argv[i], i + 1 < argc ? argv[i + 1] : NULL, &took)) return usage();
        i += took;
    }
    // Worlds come and go: memory given back to the system would be asked for again at once.
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 512 << 20);
    os_log_level(a.trace ? LOG_WARN : LOG_ERROR);
    setvbuf(stdout, NULL, _IOLBF, 0);
    workloads_load();
    struct totals totals = {0};
    int rc = 2;
    if (strcmp(a.mode, "all") == 0) {
        rc = run_everything(a.budget);
    } else if (strcmp(a.mode, "replay") == 0) {
        rc = replay(&a);
    } else if (strcmp(a.mode, "exhaustive") == 0) {
        for (int s = SIM_MEMORY; s <= SIM_SHARDS; s++)
            if (!a.has_store || (int)a.group.store == s)
                run_workloads(MODE_EXHAUSTIVE, (enum sim_store)s, a.group.workload, 0,
                              a.group.worlds == 1000 ? 500000 : a.group.worlds, 600, &totals);
        rc = finish(&totals);
    } else if (strcmp(a.mode, "seeded") == 0) {
        a.group.mode = MODE_SEEDED;
        run_group(&a.group, 1e9, !a.no_shrink, &totals);
        rc = finish(&totals);
    } else {
        rc = usage();
    }
    workloads_release();
    return rc;
}
