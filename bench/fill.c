// Fills a store with runs that the engine has really executed, quickly: what lists, starts and recovery are measured on.
//
//   build/bench/fill URL COUNT [OPEN [STEPS]]
//
// One run in a thousand fails, 14 belong to another tenant, one in twenty is of one of 100 plans that are not the common one. The last
// OPEN (50) wait for a person, so that there is something to take up. The common plan has STEPS (1) steps. Where engines share runs, they
// are put into all shards.
#include "engine/engine.h"
#include "program/program.h"

#include <stdio.h>
#include <stdlib.h>

enum { OUTSTANDING = 1024, PLANS = 100, OPEN_RUNS = 50, STEPS_MAX = 50 };

struct fill {
    struct engine *engine;
    size_t open;
    struct program *common, *failing, *waiting, *others[PLANS];
};

static _Noreturn void give_up(const char *what, const struct error *err)
{
    fprintf(stderr, "fill: %s: %s\n", what, err->message);
    exit(1);
}

static struct program *plan(const char *name, const char *step, size_t steps)
{
    struct arena arena;
    struct diagnostics diagnostics;
    struct program *program = NULL;
    struct error err = {0};
    char text[160 + STEPS_MAX * 80];
    int len = snprintf(text, sizeof(text),
                       "{\"metadata\":{\"planId\":\"%s\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\"},\"steps\":[",
                       name);
    for (size_t i = 0; i < steps; i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len, "%s{\"stepId\":\"s%zu\",%s}", i ? "," : "", i, step);
    snprintf(text + len, sizeof(text) - (size_t)len, "]}");
    arena_init(&arena, 1 << 16, (size_t)64 << 20);
    diagnostics_init(&diagnostics, &arena);
    if (program_load(str_from(text), STR("fill"), NULL, &diagnostics, &program, &err)) {
        if (diagnostics.count) fprintf(stderr, "%.*s\n", STR_ARG(diagnostics.items[0].message));
        give_up(name, &err);
    }
    arena_release(&arena);
    return program;
}

static const struct program *choose(const struct fill *fill, size_t i, size_t count)
{
    if (i + fill->open >= count) return fill->waiting;
    if (i % 1000 == 500) return fill->failing;
    return i % 20 == 7 ? fill->others[i / 20 % PLANS] : fill->common;
}

static size_t busy(const struct fill *fill)
{
    struct engine_activity activity = engine_activity(fill->engine);
    return activity.resident - activity.parked;
}

static void take_shards(struct store *store, struct error *err)
{
    struct shard_map map;
    enum code rc = store_shards(store, 60000, os_now().wall_ms, &map, err);
    if (rc == E_UNSUPPORTED) return;
    if (!rc) rc = store_shards_move(store, map.free, 0, os_now().wall_ms, &map, err);
    if (rc) give_up("shards", err);
    store_place(store, map.mine);
}

static void run_all(struct fill *fill, size_t count, struct error *err)
{
    size_t started = 0;
    bool worked = true;
    while (started < count || busy(fill) > 0) {
        for (size_t now = busy(fill); started < count && now < OUTSTANDING; now++) {
            char run[129];
            struct start_request request = {.program = choose(fill, started, count), .triggered_by = STR("bench")};
            if (started % 1000 > 0 && started % 1000 < 15 && started % 20 != 7) request.tenant = STR("acme");
            if (engine_start(fill->engine, &request, run, err)) give_up("start", err);
            started++;
        }
        if (engine_turn(fill->engine, os_now(), &worked, err)) give_up("turn", err);
        if (!worked) engine_wait(fill->engine, os_now().mono_ms + 10);
    }
}

int main(int argc, char **argv)
{
    struct fill fill = {0};
    struct arena kept;
    const struct contract *contract;
    struct store *store;
    struct error err = {0};
    if (argc < 3 || argc > 5) return fprintf(stderr, "usage: fill URL COUNT [OPEN [STEPS]]\n"), 2;
    size_t count = strtoull(argv[2], NULL, 10), steps = argc > 4 ? strtoull(argv[4], NULL, 10) : 1;
    fill.open = argc > 3 ? strtoull(argv[3], NULL, 10) : OPEN_RUNS;
    if (steps < 1 || steps > STEPS_MAX) return fprintf(stderr, "fill: 1 to %d steps\n", STEPS_MAX), 2;
    arena_init(&kept, 1 << 16, SIZE_MAX);
    if (contract_open(&kept, &contract, &err)) give_up("contract", &err);
    struct store_options options = {.mode = STORE_WRITE, .create = true, .contract = contract, .entropy = os_entropy()};
    if (store_open(str_from(argv[1]), &options, &store, &err)) give_up(argv[1], &err);
    struct engine_options engine = {
        .store = store, .contract = contract, .entropy = os_entropy(), .limits = engine_limits_default};
    if (engine_open(&engine, &fill.engine, &err)) give_up("engine", &err);
    take_shards(store, &err);
    fill.common = plan("bench", "\"kind\":\"noop\"", steps);
    fill.failing = plan("bench-failing", "\"kind\":\"exec\",\"with\":{\"command\":\"/nonexistent\"}", 1);
    fill.waiting = plan("bench-waiting", "\"kind\":\"approval\"", 1);
    for (size_t i = 0; i < PLANS; i++) {
        char name[32];
        snprintf(name, sizeof(name), "bench-%zu", i);
        fill.others[i] = plan(name, "\"kind\":\"noop\"", steps);
    }
    int64_t before = os_mono_us();
    run_all(&fill, count, &err);
    double seconds = (double)(os_mono_us() - before) / 1e6;
    printf("{\"workload\":\"fill\",\"stored\":%zu,\"seconds\":%.1f,\"runsPerSecond\":%.0f}\n", count, seconds,
           (double)count / seconds);
    engine_close(fill.engine);
    store_close(store);
    struct program *all[] = {fill.common, fill.failing, fill.waiting};
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) program_release(all[i]);
    for (size_t i = 0; i < PLANS; i++) program_release(fill.others[i]);
    arena_release(&kept);
    return 0;
}
