// How long an append takes when the store is not driven to its limit, and whether two engines on one store get more done than one.
#include "bench/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// ---- load

enum { CAPACITY_RUNS = 3000, IN_FLIGHT = 256, LOAD_SECONDS = 6, SAMPLES_MAX = 2000000 };
#define LOAD_SHARE 0.7

struct appends {
    double turn_began;
    double *samples; // of each event: from the beginning of its turn until it was durable
    size_t count;
};

static void append_event(void *context, const struct engine_event *event)
{
    struct appends *appends = context;
    if (event->moment && appends->samples && appends->count < SAMPLES_MAX)
        appends->samples[appends->count++] = bench_now() - appends->turn_began;
}

static void sleep_until(double when)
{
    double pause = when - bench_now();
    if (pause <= 0) return;
    struct timespec ts = {.tv_sec = (time_t)pause, .tv_nsec = (long)((pause - (double)(time_t)pause) * 1e9)};
    nanosleep(&ts, NULL);
}

// Starts come at their times whether or not what was started before has ended.
static enum code drive(struct engine *engine, const struct program *program, double runs_per_s, struct appends *appends,
                       size_t *backlog_max, struct error *err)
{
    double begin = bench_now(), every = 1 / runs_per_s;
    size_t started = 0, runs = (size_t)(runs_per_s * LOAD_SECONDS);
    enum code rc = OK;
    while (!rc && (started < runs || engine_resident(engine) > 0)) {
        double now = bench_now();
        for (; !rc && started < runs && begin + (double)started * every <= now; started++)
            rc = bench_start(engine, program, (struct str){0}, err);
        size_t resident = engine_resident(engine);
        if (resident > *backlog_max) *backlog_max = resident;
        if (resident == 0) {
            sleep_until(begin + (double)started * every);
            continue;
        }
        appends->turn_began = bench_now();
        if (!rc) rc = bench_turn(engine, err);
    }
    return rc;
}

static enum code load(struct bench_store *target, const struct program *program, struct appends *appends,
                      double *capacity, size_t *backlog, struct error *err)
{
    double *samples = appends->samples;
    appends->samples = NULL; // not those of the flood
    double begin = bench_now();
    enum code rc = bench_flood(target->engine, program, CAPACITY_RUNS, IN_FLIGHT, err);
    *capacity = CAPACITY_RUNS / (bench_now() - begin);
    appends->samples = samples;
    return rc ? rc : drive(target->engine, program, *capacity * LOAD_SHARE, appends, backlog, err);
}

int bench_load(struct bench *bench, const char *kind)
{
    struct program *program = bench_chain(bench, BENCH_STEPS);
    struct appends appends = {.samples = malloc(SAMPLES_MAX * sizeof(double))};
    struct engine_observer observer = {.context = &appends, .event = append_event};
    struct bench_store target = {0};
    struct error err = {0};
    double capacity = 0;
    size_t backlog = 0;
    int rc = program && appends.samples ? bench_open(bench, &target, kind, "load", &observer)
                                        : console_nomem(bench->console);
    if (!rc) {
        enum code code = load(&target, program, &appends, &capacity, &backlog, &err);
        bench_close(&target);
        if (code) rc = console_error(bench->console, &err);
    }
    if (!rc) {
        struct bench_line line;
        bench_line(bench, &line, "load", kind);
        bench_number(&line, "capacity_steps_per_s", capacity * BENCH_STEPS, 0);
        bench_number(&line, "load_steps_per_s", capacity * LOAD_SHARE * BENCH_STEPS, 0);
        bench_number(&line, "append_p50_ms", bench_percentile(appends.samples, appends.count, 0.5) * 1e3, 2);
        bench_number(&line, "append_p99_ms", bench_percentile(appends.samples, appends.count, 0.99) * 1e3, 2);
        bench_number(&line, "append_max_ms", bench_percentile(appends.samples, appends.count, 1) * 1e3, 2);
        bench_number(&line, "in_flight_max", (double)backlog, 0);
        bench_print(bench, &line);
    }
    program_release(program);
    free(appends.samples);
    return rc;
}

// ---- two engines

enum { ENGINES_MAX = 2, ENGINE_RUNS = 3000, ROUNDS = 3, LEASE_MS = 10000 };

struct engines {
    pid_t pids[ENGINES_MAX];
    int ready[2], go[2]; // pipes: a byte for each that is ready; closed when all shall begin
};

// Every second shard to each, as engines of one service have them.
static enum code join(struct store *store, size_t which, size_t count, struct error *err)
{
    struct shard_map map;
    uint64_t some = 0;
    for (size_t i = which; i < SHARD_COUNT; i += count) some |= UINT64_C(1) << i;
    enum code rc = store_shards(store, LEASE_MS, os_now().wall_ms, &map, err);
    if (!rc) rc = store_shards_move(store, some, 0, os_now().wall_ms, &map, err);
    if (!rc) store_place(store, map.mine);
    return rc;
}

static _Noreturn void one_engine(struct bench *bench, const char *name, const struct engines *engines, size_t which,
                                 size_t count, size_t in_flight)
{
    struct program *program = bench_chain(bench, BENCH_STEPS);
    struct bench_store target;
    struct error err = {0};
    char byte = 'r';
    close(engines->go[1]);
    if (!program || bench_open(bench, &target, "postgres", name, NULL)) _exit(1);
    enum code rc = join(target.store, which, count, &err);
    if (!rc && (write(engines->ready[1], &byte, 1) != 1 || read(engines->go[0], &byte, 1) != 0)) rc = E_IO;
    if (!rc) rc = bench_flood(target.engine, program, ENGINE_RUNS / count, in_flight, &err);
    if (rc) fprintf(stderr, "bench: engine %zu: %s\n", which, err.message);
    bench_close(&target);
    _exit(rc ? 1 : 0);
}

static bool hire(struct bench *bench, const char *name, struct engines *engines, size_t count, size_t in_flight)
{
    char byte;
    bool ok = true;
    for (size_t i = 0; i < count; i++) {
        engines->pids[i] = fork();
        if (engines->pids[i] == 0) one_engine(bench, name, engines, i, count, in_flight);
        ok = ok && engines->pids[i] > 0;
    }
    close(engines->ready[1]);
    close(engines->go[0]);
    for (size_t i = 0; ok && i < count; i++) ok = read(engines->ready[0], &byte, 1) == 1;
    return ok;
}

// Steps per second of so many engines together, 0 when something failed.
static double together(struct bench *bench, const char *name, size_t count, size_t in_flight)
{
    struct engines engines = {0};
    if (pipe(engines.ready)) return 0;
    if (pipe(engines.go)) {
        close(engines.ready[0]);
        close(engines.ready[1]);
        return 0;
    }
    bool ok = hire(bench, name, &engines, count, in_flight);
    double begin = bench_now();
    close(engines.go[1]);
    for (size_t i = 0; i < count; i++) {
        int status = 1;
        if (engines.pids[i] > 0) (void)waitpid(engines.pids[i], &status, 0);
        ok = ok && status == 0;
    }
    double wall = bench_now() - begin;
    close(engines.ready[0]);
    return ok ? ENGINE_RUNS * BENCH_STEPS / wall : 0;
}

int bench_engines(struct bench *bench, const char *kind)
{
    double one[ROUNDS], two[ROUNDS], full[ROUNDS];
    if (strcmp(kind, "postgres") != 0) return EXIT_OK;
    struct bench_store target;
    int rc = bench_open(bench, &target, kind, "engines", NULL); // makes the schema
    if (rc) return rc;
    bench_close(&target);
    for (size_t i = 0; i < ROUNDS; i++) {
        one[i] = together(bench, "engines", 1, IN_FLIGHT);
        two[i] = together(bench, "engines", 2, IN_FLIGHT / 2);
        full[i] = together(bench, "engines", 2, IN_FLIGHT);
        if (one[i] <= 0 || two[i] <= 0 || full[i] <= 0)
            return console_fail(bench->console, EXIT_ERROR, "bench: an engine failed");
    }
    double alone = bench_percentile(one, ROUNDS, 0.5);
    struct bench_line line;
    bench_line(bench, &line, "engines", kind);
    bench_number(&line, "one_steps_per_s", alone, 0);
    bench_number(&line, "two_steps_per_s", bench_percentile(two, ROUNDS, 0.5), 0);
    bench_number(&line, "two_with_256_each_steps_per_s", bench_percentile(full, ROUNDS, 0.5), 0);
    bench_number(&line, "two_over_one", bench_percentile(two, ROUNDS, 0.5) / alone, 2);
    bench_print(bench, &line);
    return EXIT_OK;
}
