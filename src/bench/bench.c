// `cairn bench`: runs the workloads one after the other in a scratch directory and prints a JSON object for each.
#include "bench/inside.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

double bench_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double bench_cpu(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

double bench_rss_kib(int pid)
{
    char path[64];
    snprintf(path, sizeof(path), pid ? "/proc/%d/statm" : "/proc/self/statm", pid);
    FILE *file = fopen(path, "re");
    long size = 0, resident = 0;
    if (file && fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
    if (file) fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static int compare(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

double bench_percentile(double *samples, size_t count, double share)
{
    qsort(samples, count, sizeof(*samples), compare);
    size_t index = (size_t)((double)(count - 1) * share);
    return samples[index];
}

double bench_floor_us(const struct bench *bench, const char *kind)
{
    if (strcmp(kind, "postgres") == 0) return bench->floors.postgres_us;
    return strcmp(kind, "sqlite") == 0 ? bench->floors.sqlite_us : bench->floors.append_us;
}

// ---- lines
static void put_text(struct bench_line *line, const char *name, const char *value)
{
    struct str copy = arena_copy(line->arena, str_from(value));
    INVARIANT(copy.ptr && json_put(line->arena, &line->object, str_from(name), json_string(copy)));
}

void bench_line(struct bench *bench, struct bench_line *line, const char *workload, const char *store)
{
    line->arena = &bench->console->arena;
    line->object = json_object();
    put_text(line, "bench", workload);
    if (store[0]) put_text(line, "store", store);
}

void bench_number(struct bench_line *line, const char *name, double value, int digits)
{
    char text[64];
    snprintf(text, sizeof(text), "%.*f", digits, value);
    struct str copy = arena_copy(line->arena, str_from(text));
    INVARIANT(copy.ptr && json_put(line->arena, &line->object, str_from(name), json_number(copy)));
}

void bench_print(struct bench *bench, struct bench_line *line)
{
    struct buf text SCOPED(buf_release) = buf_of(1 << 16);
    json_write(&text, &line->object);
    buf_byte(&text, '\n');
    console_print(bench->console, &text);
}

// ---- scratch stores
static int reopen(struct bench *bench, struct bench_store *target, const struct engine_observer *observer)
{
    struct error err = {0};
    struct store_options options = {
        .mode = STORE_WRITE, .create = true, .contract = bench->contract, .entropy = os_entropy()};
    if (store_open(str_from(target->url), &options, &target->store, &err) != OK)
        return console_error(bench->console, &err);
    struct engine_options engine = {
        .store = target->store, .contract = bench->contract, .entropy = os_entropy(), .limits = engine_limits_default};
    if (observer) engine.observer = *observer;
    if (engine_open(&engine, &target->engine, &err) != OK) return console_error(bench->console, &err);
    return EXIT_OK;
}

void bench_url(const struct bench *bench, const char *kind, const char *name, char *out, size_t size)
{
    if (strcmp(kind, "postgres") == 0)
        bench_postgres_url(bench, name, out, size);
    else
        snprintf(out, size, "%s:%s/%s-%s", kind, bench->dir, name, kind);
}

int bench_open(struct bench *bench, struct bench_store *target, const char *kind, const char *name,
               const struct engine_observer *observer)
{
    memset(target, 0, sizeof(*target));
    bench_url(bench, kind, name, target->url, sizeof(target->url));
    return reopen(bench, target, observer);
}

void bench_close(struct bench_store *target)
{
    engine_close(target->engine);
    store_close(target->store);
}

struct program *bench_program(struct bench *bench, const char *text)
{
    struct arena arena SCOPED(arena_release) = arena_of(1 << 16, (size_t)64 << 20);
    struct diagnostics diagnostics;
    diagnostics_init(&diagnostics, &arena);
    struct error err = {0};
    struct program *program = NULL;
    if (program_load(str_from(text), STR("bench"), NULL, &diagnostics, &program, &err) != OK) {
        console_fail(bench->console, EXIT_ERROR, "bench: %.*s",
                     STR_ARG(diagnostics.count ? diagnostics.items[0].message : str_from(err.message)));
        program = NULL;
    }
    return program;
}

enum code bench_start(struct engine *engine, const struct program *program, struct str id, struct error *err)
{
    char run[129];
    struct start_request request = {.program = program, .run = id, .triggered_by = STR("bench")};
    return engine_start(engine, &request, run, err);
}

enum code bench_turn(struct engine *engine, struct error *err)
{
    bool worked;
    return engine_turn(engine, os_now(), &worked, err);
}

// ---- all of it
struct workload {
    const char *name;
    int (*run)(struct bench *bench, const char *kind);
};

static const struct workload workloads[] = {
    {"w1", bench_w1},           {"w2", bench_w2},     {"w3", bench_w3},
    {"w4", bench_w4},           {"w5", bench_w5},     {"w6", bench_w6},
    {"scale", bench_scale},     {"list", bench_list}, {"load", bench_load},
    {"engines", bench_engines},
};

static bool wanted(struct str list, const char *name)
{
    if (list.len == 0) return true;
    while (list.len > 0) {
        struct str rest = {0};
        if (str_is(str_trim(str_cut(list, ',', &rest)), name)) return true;
        list = rest;
    }
    return false;
}

// ext4 without a journal passes over inodes that were deleted in the last minutes, one by one, whenever a file is made: after
// a bench or a test suite in the same place a new run costs four times as much. What is made in a top directory is put
// elsewhere on the disk, by its name. File systems that know no such thing do as they always do.
static void make_top(const char *path)
{
    int flags = 0, fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
        flags |= FS_TOPDIR_FL;
        (void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
    }
    close(fd);
}

int bench_run(struct console *console, struct str store, struct str only)
{
    struct bench bench = {.console = console};
    struct error err = {0};
    const char *base = getenv("CAIRN_BENCH_DIR");
    char top[200];
    if (!base || !base[0]) base = "/var/tmp";
    snprintf(top, sizeof(top), "%s/cairn-bench-XXXXXX", base);
    if (!mkdtemp(top)) return console_fail(console, EXIT_ERROR, "bench: cannot make a directory below %s", base);
    make_top(top);
    snprintf(bench.dir, sizeof(bench.dir), "%s/XXXXXX", top);
    if (!mkdtemp(bench.dir)) {
        os_remove_tree(top);
        return console_fail(console, EXIT_ERROR, "bench: cannot make a directory below %s", top);
    }
    int rc = contract_open(&console->arena, &bench.contract, &err) == OK ? EXIT_OK : console_error(console, &err);
    static const char *const kinds[] = {"sqlite", "files", "postgres"};
    if (str_starts(store, STR("postgres"))) bench.postgres = store;
    for (size_t k = 0; !rc && k < ARRAY_COUNT(kinds); k++) {
        bool postgres = strcmp(kinds[k], "postgres") == 0;
        if (postgres ? !bench.postgres.len : store.len > 0 && !str_is(store, kinds[k])) continue;
        rc = bench_floors(&bench);
        for (size_t i = 0; !rc && i < ARRAY_COUNT(workloads); i++)
            if (wanted(only, workloads[i].name)) rc = workloads[i].run(&bench, kinds[k]);
    }
    bench_floor_end(&bench);
    bench_postgres_end(&bench);
    os_remove_tree(top);
    return rc;
}
