// W4 parked runs, W5 recovery after kill -9, W6 cold start, size and idle memory.
#include "bench/inside.h"

#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PARKED "name: parked\nnodes:\n  - {id: w, wait: 1h}\n"

int bench_w4(struct bench *bench, const char *kind)
{
    enum { RUNS = 10000 };
    struct program *program = bench_program(bench, PARKED);
    struct bench_store target;
    struct error err = {0};
    if (!program) return console_nomem(bench->console);
    int rc = bench_open(bench, &target, kind, "w4", NULL);
    if (rc) return rc;
    // The first runs pay for buffers that stay; they are not part of the growth per run.
    enum code code = OK;
    for (int i = 0; !code && i < 200; i++) code = bench_start(target.engine, program, (struct str){0}, &err);
    while (!code && engine_activity(target.engine).resident < 200) code = bench_turn(target.engine, &err);
    if (!code) code = bench_turn(target.engine, &err);
    malloc_trim(0);
    double before = bench_rss_kib(0), begin = bench_now();
    for (int i = 0; !code && i < RUNS; i++) {
        code = bench_start(target.engine, program, (struct str){0}, &err);
        if (!code && i % 256 == 255) code = bench_turn(target.engine, &err);
    }
    if (!code) code = bench_turn(target.engine, &err);
    double wall = bench_now() - begin;
    malloc_trim(0);
    double growth = bench_rss_kib(0) - before;
    bench_close(&target);
    program_release(program);
    if (code) return console_error(bench->console, &err);
    struct bench_line line;
    bench_line(bench, &line, "w4", kind);
    bench_number(&line, "parked_runs", RUNS, 0);
    bench_number(&line, "kib_per_run", growth / RUNS, 2);
    bench_number(&line, "all_waiting_s", wall, 3);
    bench_print(bench, &line);
    return EXIT_OK;
}

// ---- W5
#define W5_RUNS 2000
#define W5_DOCUMENT                                                                                                    \
    "name: life\nnodes:\n  - {id: a, noop: true}\n  - {id: b, noop: true, depends_on: [a]}\n  - {id: c, noop: true, "  \
    "depends_on: [b]}\n"                                                                                               \
    "  - {id: d, noop: true, depends_on: [c]}\n  - {id: e, noop: true, depends_on: [d]}\n"

static _Noreturn void victim(struct bench *bench, struct bench_store *target, const struct program *program)
{
    struct error err = {0};
    char id[32];
    enum code code = OK;
    for (int i = 0; !code && i < W5_RUNS; i++) {
        snprintf(id, sizeof(id), "w5-%d", i);
        code = bench_start(target->engine, program, str_from(id), &err);
    }
    // Two turns: every run has begun and none has ended. Then die as a process dies of kill -9.
    for (int i = 0; !code && i < 3; i++) code = bench_turn(target->engine, &err);
    if (code) fprintf(stderr, "bench: %s\n", err.message);
    (void)bench;
    kill(getpid(), SIGKILL);
    abort();
}

static size_t count_lost(struct bench *bench, const char *url)
{
    struct store_options options = {.mode = STORE_READ, .contract = bench->contract, .entropy = os_entropy()};
    struct store *store;
    struct error err = {0};
    size_t completed = 0;
    struct arena arena SCOPED(arena_release) = arena_of(1 << 16, (size_t)256 << 20);
    if (store_open(str_from(url), &options, &store, &err) == OK) {
        struct run_filter filter = {.tenant = STR("default"), .status_mask = 1u << RUN_STATUS_COMPLETED, .limit = 500};
        struct run_heads heads;
        do {
            if (store_list(store, &filter, &arena, &heads, &err) != OK) break;
            completed += heads.count;
            filter.before = heads.next;
        } while (heads.next != 0);
        store_close(store);
    }
    return W5_RUNS > completed ? W5_RUNS - completed : 0;
}

static enum code adopt_all(struct bench_store *target, size_t *adopted, struct error *err)
{
    struct arena arena SCOPED(arena_release) = arena_of(1 << 16, (size_t)256 << 20);
    struct run_filter filter = {.tenant = STR("default"), .unfinished = true, .limit = 500};
    enum code code = OK;
    do {
        struct run_heads heads;
        code = store_list(target->store, &filter, &arena, &heads, err);
        for (size_t i = 0; !code && i < heads.count; i++, (*adopted)++)
            code = engine_adopt(target->engine, heads.items[i].ids.tenant, heads.items[i].ids.run, err);
        filter.before = code ? 0 : heads.next;
    } while (filter.before != 0);
    return code;
}

int bench_w5(struct bench *bench, const char *kind)
{
    struct program *program = bench_program(bench, W5_DOCUMENT);
    struct bench_store target;
    struct error err = {0};
    if (!program) return console_nomem(bench->console);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        if (bench_open(bench, &target, kind, "w5", NULL) == EXIT_OK) victim(bench, &target, program);
        _exit(1);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFSIGNALED(status))
        return console_fail(bench->console, EXIT_ERROR, "bench: w5 could not be set up");
    double begin = bench_now();
    int rc = bench_open(bench, &target, kind, "w5", NULL);
    if (rc) return rc;
    size_t adopted = 0;
    enum code code = adopt_all(&target, &adopted, &err);
    if (!code) code = bench_turn(target.engine, &err);
    double running = bench_now() - begin;
    while (!code && engine_activity(target.engine).resident > 0) code = bench_turn(target.engine, &err);
    double complete = bench_now() - begin;
    bench_close(&target);
    program_release(program);
    if (code) return console_error(bench->console, &err);
    struct bench_line line;
    bench_line(bench, &line, "w5", kind);
    bench_number(&line, "killed_runs", (double)adopted, 0);
    bench_number(&line, "running_again_s", running, 3);
    bench_number(&line, "all_complete_s", complete, 3);
    bench_number(&line, "lost_runs", (double)count_lost(bench, target.url), 0);
    bench_print(bench, &line);
    return EXIT_OK;
}

// ---- W6
static pid_t spawn_self(const char *const *argv)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);
    pid_t pid = -1;
    char *args[16];
    size_t count = 0;
    for (; count < ARRAY_COUNT(args) - 1 && argv[count]; count++) memcpy(&args[count], &argv[count], sizeof(char *));
    args[count] = NULL;
    if (posix_spawn(&pid, "/proc/self/exe", &actions, NULL, args, environ) != 0) pid = -1;
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

static bool write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    bool ok = file && fputs(text, file) >= 0;
    if (file) ok = fclose(file) == 0 && ok;
    return ok;
}

static double idle_memory(const char *document, const char *store)
{
    const char *argv[] = {"cairn", "run", document, "--store", store, "--progress", "none", NULL};
    pid_t pid = spawn_self(argv);
    if (pid < 0) return 0;
    struct timespec pause = {.tv_nsec = 400000000};
    nanosleep(&pause, NULL);
    double kib = bench_rss_kib(pid);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return kib;
}

int bench_w6(struct bench *bench, const char *kind)
{
    enum { TRIES = 21 };
    double walls[TRIES];
    char document[320], parked[320], store[1100];
    snprintf(document, sizeof(document), "%s/w6.yaml", bench->dir);
    snprintf(parked, sizeof(parked), "%s/w6-parked.yaml", bench->dir);
    bench_url(bench, kind, "w6", store, sizeof(store));
    if (!write_text(document, "name: one\nnodes:\n  - {id: a, noop: true}\n") || !write_text(parked, PARKED))
        return console_fail(bench->console, EXIT_ERROR, "bench: cannot write %s", document);
    const char *argv[] = {"cairn", "run", document, "--store", store, "--progress", "none", NULL};
    for (size_t i = 0; i < TRIES; i++) {
        double begin = bench_now();
        int status = 1;
        pid_t pid = spawn_self(argv);
        if (pid < 0 || waitpid(pid, &status, 0) < 0 || status != 0)
            return console_fail(bench->console, EXIT_ERROR, "bench: `cairn run` failed");
        walls[i] = bench_now() - begin;
    }
    struct stat st = {0};
    (void)stat("/proc/self/exe", &st);
    struct bench_line line;
    bench_line(bench, &line, "w6", kind);
    bench_number(&line, "first_run_ms", walls[0] * 1e3, 2); // makes the store, too
    bench_number(&line, "cold_run_p50_ms", bench_percentile(walls, TRIES, 0.5) * 1e3, 2);
    bench_number(&line, "binary_mb", (double)st.st_size / 1e6, 2);
    bench_number(&line, "idle_mib", idle_memory(parked, store) / 1024, 2);
    bench_print(bench, &line);
    return EXIT_OK;
}
