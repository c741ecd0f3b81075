// Private to the benchmark.
#ifndef CAIRN_BENCH_INSIDE_H
#define CAIRN_BENCH_INSIDE_H

#include "bench/bench.h"
#include "engine/engine.h"

struct floors {
    double append_us;         // p50 of a 400-byte append + fdatasync, growing file
    double prealloc_us;       // the same into a preallocated file
    double sqlite_us;         // p50 of one 400-byte row per transaction
    double sqlite_group_rows; // rows/s at 256 rows per transaction
    double postgres_us, postgres_group_rows;
};

struct floor_db;
struct postgres_floor;

struct bench {
    struct console *console;
    char dir[256]; // scratch, removed afterwards
    const struct contract *contract;
    struct floors floors;
    struct floor_db *floor; // open between looks at the floor
    struct str postgres;    // URL, when that is what is measured
    struct postgres_floor *postgres_floor;
};

// One store kind in a scratch place of its own.
struct bench_store {
    char url[1100];
    struct store *store;
    struct engine *engine;
};

// URL of the store of a workload; a place of its own.
void bench_url(const struct bench *bench, const char *kind, const char *name, char *out, size_t size);
// bench_postgres.c
void bench_postgres_url(const struct bench *bench, const char *name, char *out, size_t size);
double bench_postgres_floor(struct bench *bench, int rows, double seconds, double *rows_per_second);
void bench_postgres_end(struct bench *bench);

int bench_open(struct bench *bench, struct bench_store *target, const char *kind, const char *name,
               const struct engine_observer *observer);
void bench_close(struct bench_store *target);
double bench_floor_us(const struct bench *bench, const char *kind);
// One durable write of that kind, p50, measured now: the disk's mood changes from second to second.
double bench_floor_now(struct bench *bench, const char *kind, double seconds);
void bench_floor_end(struct bench *bench);
struct program *bench_program(struct bench *bench, const char *text);
// Turns until nothing is resident or `stop` becomes true.
enum code bench_turn(struct engine *engine, struct error *err);
enum code bench_start(struct engine *engine, const struct program *program, struct str id, struct error *err);
double bench_now(void);        // seconds
double bench_cpu(void);        // seconds of this process, user and system
double bench_rss_kib(int pid); // 0 = this process

// A line: workload, store, then name/value pairs.
struct bench_line {
    struct json object;
    struct arena *arena;
};
void bench_line(struct bench *bench, struct bench_line *line, const char *workload, const char *store);
void bench_number(struct bench_line *line, const char *name, double value, int digits);
void bench_print(struct bench *bench, struct bench_line *line);
double bench_percentile(double *samples, size_t count, double share); // sorts

enum { BENCH_STEPS = 10 };                                        // of the plan of most workloads
struct program *bench_chain(struct bench *bench, unsigned steps); // steps that do nothing, one after the other
// Keeps `outstanding` runs going until `runs` have ended.
enum code bench_flood(struct engine *engine, const struct program *program, size_t runs, size_t outstanding,
                      struct error *err);

int bench_floors(struct bench *bench);
int bench_w1(struct bench *bench, const char *kind);
int bench_w2(struct bench *bench, const char *kind);
int bench_w3(struct bench *bench, const char *kind);
int bench_w4(struct bench *bench, const char *kind);
int bench_w5(struct bench *bench, const char *kind);
int bench_w6(struct bench *bench, const char *kind);
int bench_scale(struct bench *bench, const char *kind); // 10-step against 10,000-step plans
int bench_list(struct bench *bench, const char *kind);  // ls on a store with 1,000,000 events
// bench_load.c
int bench_load(struct bench *bench, const char *kind);    // appends at 70 % of what the store can take
int bench_engines(struct bench *bench, const char *kind); // two engines on one store against one; Postgres only

#endif
