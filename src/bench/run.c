// W1 latency, W2 throughput, W3 fan-out, and how cost grows with the size of a plan and of the store.
#include "bench/inside.h"

#include <stdio.h>
#include <stdlib.h>

enum { STEPS = BENCH_STEPS, W2_RUNS = 2000 };

// ---- documents
struct program *bench_chain(struct bench *bench, unsigned steps)
{
    struct buf text SCOPED(buf_release) = buf_of((size_t)8 << 20);
    struct json list = json_array();
    struct arena arena SCOPED(arena_release) = arena_of(1 << 16, (size_t)64 << 20);
    for (unsigned i = 0; i < steps; i++)
        json_append(&arena, &list, JSON_OF(&arena, {"stepId", json_text_made(arena_format(&arena, "s%u", i))},
                                           {"kind", json_word("noop")}));
    struct json document =
        JSON_OF(&arena, {"metadata", JSON_OF(&arena, {"planId", json_word("bench")}, {"planVersion", json_word("1")},
                                             {"schemaVersion", json_word("v1.2")})},
                {"steps", list});
    json_write(&text, &document);
    return buf_ok(&text) ? bench_program(bench, text.ptr) : NULL;
}

static struct program *fan(struct bench *bench, unsigned width)
{
    struct buf text SCOPED(buf_release) = buf_of((size_t)1 << 20);
    buf_text(&text, "name: fan\nnodes:\n");
    for (unsigned i = 0; i < width; i++) buf_printf(&text, "  - {id: n%u, noop: true}\n", i);
    buf_text(&text, "  - id: join\n    merge: true\n    depends_on: [");
    for (unsigned i = 0; i < width; i++) buf_printf(&text, "%sn%u", i ? ", " : "", i);
    buf_text(&text, "]\n");
    return buf_ok(&text) ? bench_program(bench, text.ptr) : NULL;
}

enum code bench_flood(struct engine *engine, const struct program *program, size_t runs, size_t outstanding,
                      struct error *err)
{
    size_t started = 0;
    enum code rc = OK;
    while (!rc) {
        while (!rc && started < runs && engine_resident(engine) < outstanding) {
            rc = bench_start(engine, program, (struct str){0}, err);
            started++;
        }
        if (rc || (started == runs && engine_resident(engine) == 0)) break;
        rc = bench_turn(engine, err);
    }
    return rc;
}

// ---- W1
struct latency {
    double last;
    double *steps;
    size_t count, capacity;
};

static void latency_event(void *context, const struct engine_event *event)
{
    struct latency *latency = context;
    if (event->moment->kind != MOMENT_STEP_COMPLETED) return;
    double now = bench_now();
    if (latency->count < latency->capacity) latency->steps[latency->count++] = now - latency->last;
    latency->last = now;
}

// Rounds of runs, each between two looks at the floor; the ratio of each round is taken with its own floor.
enum { W1_ROUNDS = 7, W1_ROUND = 30 };

struct w1 {
    struct latency latency;
    double runs[W1_ROUNDS * W1_ROUND], ratios[W1_ROUNDS], floors[W1_ROUNDS];
    double steps[W1_ROUNDS * W1_ROUND * STEPS];
    double all[W1_ROUNDS * W1_ROUND * STEPS];
    size_t all_count;
};

static enum code w1_round(struct bench *bench, const char *kind, struct engine *engine, const struct program *program,
                          struct w1 *w1, size_t round, struct error *err)
{
    enum code code = OK;
    w1->latency.count = 0;
    double before = bench_floor_now(bench, kind, 0.15);
    for (size_t i = 0; !code && i < W1_ROUND; i++) {
        double begin = w1->latency.last = bench_now();
        code = bench_start(engine, program, (struct str){0}, err);
        while (!code && engine_resident(engine) > 0) code = bench_turn(engine, err);
        w1->runs[round * W1_ROUND + i] = bench_now() - begin;
    }
    w1->floors[round] = (before + bench_floor_now(bench, kind, 0.15)) / 2;
    for (size_t i = 0; i < w1->latency.count; i++) w1->all[w1->all_count++] = w1->latency.steps[i];
    if (!code)
        w1->ratios[round] = bench_percentile(w1->latency.steps, w1->latency.count, 0.5) * 1e6 / w1->floors[round];
    return code;
}

static int w1_all(struct bench *bench, const char *kind, const struct program *program, struct w1 *w1)
{
    w1->latency.steps = w1->steps;
    w1->latency.capacity = ARRAY_COUNT(w1->steps);
    struct engine_observer observer = {.context = &w1->latency, .event = latency_event};
    struct bench_store target;
    struct error err = {0};
    int rc = bench_open(bench, &target, kind, "w1", &observer);
    if (rc) return rc;
    // Both logs are warm, not growing, before anything counts.
    (void)bench_floor_now(bench, kind, 1.0);
    enum code code = bench_flood(target.engine, program, 800, 1, &err);
    for (size_t round = 0; !code && round < W1_ROUNDS; round++)
        code = w1_round(bench, kind, target.engine, program, w1, round, &err);
    bench_close(&target);
    return code ? console_error(bench->console, &err) : EXIT_OK;
}

int bench_w1(struct bench *bench, const char *kind)
{
    struct w1 *w1 = calloc(1, sizeof(*w1));
    if (!w1) return console_nomem(bench->console);
    struct program *program = bench_chain(bench, STEPS);
    int rc = program ? w1_all(bench, kind, program, w1) : console_nomem(bench->console);
    if (!rc) {
        struct bench_line line;
        bench_line(bench, &line, "w1", kind);
        bench_number(&line, "step_p50_us", bench_percentile(w1->all, w1->all_count, 0.5) * 1e6, 1);
        bench_number(&line, "step_p99_us", bench_percentile(w1->all, w1->all_count, 0.99) * 1e6, 1);
        bench_number(&line, "run_p50_ms", bench_percentile(w1->runs, ARRAY_COUNT(w1->runs), 0.5) * 1e3, 3);
        bench_number(&line, "floor_us", bench_percentile(w1->floors, W1_ROUNDS, 0.5), 1);
        bench_number(&line, "step_over_floor", bench_percentile(w1->ratios, W1_ROUNDS, 0.5), 2);
        bench_print(bench, &line);
    }
    program_release(program);
    free(w1);
    return rc;
}

// ---- W2
// A pass takes half a second, in which a shared machine may be slow or quick: the median of some is what it does.
enum { W2_PASSES = 5 };

struct w2 {
    double steps_per_s[W2_PASSES], cpu_us[W2_PASSES];
};

static enum code w2_pass(struct engine *engine, const struct program *program, size_t outstanding, struct w2 *w2,
                         size_t pass, struct error *err)
{
    double steps = (double)W2_RUNS * STEPS, begin = bench_now(), cpu = bench_cpu();
    enum code code = bench_flood(engine, program, W2_RUNS, outstanding, err);
    w2->steps_per_s[pass] = steps / (bench_now() - begin);
    w2->cpu_us[pass] = (bench_cpu() - cpu) * 1e6 / steps;
    return code;
}

static void w2_print(struct bench *bench, const char *kind, size_t outstanding, struct w2 *w2)
{
    struct bench_line line;
    double rate = bench_percentile(w2->steps_per_s, W2_PASSES, 0.5); // sorts them
    bench_line(bench, &line, "w2", kind);
    bench_number(&line, "outstanding", (double)outstanding, 0);
    bench_number(&line, "steps_per_s", rate, 0);
    bench_number(&line, "steps_per_s_min", w2->steps_per_s[0], 0);
    bench_number(&line, "steps_per_s_max", w2->steps_per_s[W2_PASSES - 1], 0);
    bench_number(&line, "runs_per_s", rate / STEPS, 0);
    bench_number(&line, "cpu_us_per_step", bench_percentile(w2->cpu_us, W2_PASSES, 0.5), 2);
    bench_number(&line, "steps_per_s_over_floor", rate * bench_floor_us(bench, kind) * 1e-6, 2);
    bench_print(bench, &line);
}

static int w2_at(struct bench *bench, const char *kind, size_t outstanding)
{
    struct program *program = bench_chain(bench, STEPS);
    struct bench_store target;
    struct error err = {0};
    struct w2 w2 = {0};
    char name[32];
    snprintf(name, sizeof(name), "w2-%zu", outstanding);
    if (!program) return console_nomem(bench->console);
    int rc = bench_open(bench, &target, kind, name, NULL);
    enum code code = OK;
    for (size_t pass = 0; !rc && !code && pass < W2_PASSES; pass++)
        code = w2_pass(target.engine, program, outstanding, &w2, pass, &err);
    if (!rc) bench_close(&target);
    program_release(program);
    if (rc || code) return rc ? rc : console_error(bench->console, &err);
    w2_print(bench, kind, outstanding, &w2);
    return EXIT_OK;
}

int bench_w2(struct bench *bench, const char *kind)
{
    int rc = w2_at(bench, kind, 64);
    return rc ? rc : w2_at(bench, kind, 256);
}

// ---- W3
int bench_w3(struct bench *bench, const char *kind)
{
    enum { TRIES = 9 };
    double walls[TRIES];
    struct program *program = fan(bench, 1000);
    struct bench_store target;
    struct error err = {0};
    if (!program) return console_nomem(bench->console);
    int rc = bench_open(bench, &target, kind, "w3", NULL);
    enum code code = OK;
    for (size_t i = 0; !rc && !code && i < TRIES; i++) {
        double begin = bench_now();
        code = bench_start(target.engine, program, (struct str){0}, &err);
        while (!code && engine_activity(target.engine).resident > 0) code = bench_turn(target.engine, &err);
        walls[i] = bench_now() - begin;
    }
    if (!rc) bench_close(&target);
    program_release(program);
    if (rc || code) return rc ? rc : console_error(bench->console, &err);
    struct bench_line line;
    bench_line(bench, &line, "w3", kind);
    bench_number(&line, "fan_out", 1000, 0);
    bench_number(&line, "wall_p50_ms", bench_percentile(walls, TRIES, 0.5) * 1e3, 2);
    bench_print(bench, &line);
    return EXIT_OK;
}

// ---- growth
static int chain_cost(struct bench *bench, const char *kind, unsigned steps, unsigned runs, double *us_per_step)
{
    struct program *program = bench_chain(bench, steps);
    struct bench_store target;
    struct error err = {0};
    char name[32];
    snprintf(name, sizeof(name), "scale-%u", steps);
    if (!program) return console_nomem(bench->console);
    int rc = bench_open(bench, &target, kind, name, NULL);
    if (rc) return rc;
    double begin = bench_now();
    enum code code = bench_flood(target.engine, program, runs, 1, &err);
    *us_per_step = (bench_now() - begin) * 1e6 / ((double)steps * runs);
    bench_close(&target);
    program_release(program);
    return code ? console_error(bench->console, &err) : EXIT_OK;
}

int bench_scale(struct bench *bench, const char *kind)
{
    double small = 0, large = 0;
    int rc = chain_cost(bench, kind, 10, 300, &small);
    if (!rc) rc = chain_cost(bench, kind, 10000, 1, &large);
    if (rc) return rc;
    struct bench_line line;
    bench_line(bench, &line, "scale", kind);
    bench_number(&line, "us_per_step_of_10", small, 1);
    bench_number(&line, "us_per_step_of_10000", large, 1);
    bench_number(&line, "ratio", large / small, 2);
    bench_print(bench, &line);
    return EXIT_OK;
}

int bench_list(struct bench *bench, const char *kind)
{
    enum { RUNS = 45000, TRIES = 21 }; // 22 events and more each: a million
    struct program *program = bench_chain(bench, STEPS);
    struct bench_store target;
    struct error err = {0};
    double walls[TRIES];
    if (!program) return console_nomem(bench->console);
    int rc = bench_open(bench, &target, kind, "list", NULL);
    if (rc) return rc;
    enum code code = bench_flood(target.engine, program, RUNS, 1024, &err);
    size_t seen = 0;
    for (size_t i = 0; !code && i < TRIES; i++) {
        struct arena arena SCOPED(arena_release) = arena_of(1 << 16, (size_t)16 << 20);
        double begin = bench_now();
        struct store_options options = {.mode = STORE_READ, .contract = bench->contract, .entropy = os_entropy()};
        struct store *reader = NULL;
        struct run_filter filter = {.tenant = STR("default"), .limit = 50};
        struct run_heads heads = {0};
        code = store_open(str_from(target.url), &options, &reader, &err);
        if (!code) code = store_list(reader, &filter, &arena, &heads, &err);
        walls[i] = bench_now() - begin;
        seen = heads.count;
        if (reader) store_close(reader);
    }
    bench_close(&target);
    program_release(program);
    if (code) return console_error(bench->console, &err);
    struct bench_line line;
    bench_line(bench, &line, "list", kind);
    bench_number(&line, "events", (double)RUNS * (2 * STEPS + 3), 0);
    bench_number(&line, "rows", (double)seen, 0);
    bench_number(&line, "open_and_first_page_p50_ms", bench_percentile(walls, TRIES, 0.5) * 1e3, 2);
    bench_print(bench, &line);
    return EXIT_OK;
}
