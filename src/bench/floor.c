// The floors: what one durable write costs on this machine, now. The only file of the command line that talks to SQLite.
#include "bench/inside.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD 400
#define SAMPLES_MAX 200000

static double append_floor(const char *path, bool prealloc, double seconds, double *samples)
{
    int fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) return 0;
    char record[RECORD];
    memset(record, 'x', sizeof(record));
    static char zeros[1 << 20];
    for (int i = 0; prealloc && i < 16; i++)
        if (write(fd, zeros, sizeof(zeros)) < 0) break;
    if (prealloc) (void)!fsync(fd);
    size_t count = 0;
    off_t offset = 0;
    for (double begin = bench_now(); bench_now() - begin < seconds && count < SAMPLES_MAX && offset < (16 << 20);) {
        double before = bench_now();
        if (pwrite(fd, record, sizeof(record), offset) < 0 || fdatasync(fd) < 0) break;
        samples[count++] = bench_now() - before;
        offset += RECORD;
    }
    close(fd);
    unlink(path);
    return count > 0 ? bench_percentile(samples, count, 0.5) * 1e6 : 0;
}

static bool run_sql(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

// A database that stays open: after the first thousand pages its write-ahead log is written over, as in a store that has
// been in use for a while. `rows` per commit.
struct floor_db {
    sqlite3 *db;
    sqlite3_stmt *insert;
};

static bool floor_open(struct floor_db *floor, const char *path)
{
    return sqlite3_open(path, &floor->db) == SQLITE_OK && run_sql(floor->db, "PRAGMA journal_mode=WAL") &&
           run_sql(floor->db, "PRAGMA synchronous=FULL") &&
           run_sql(floor->db,
                   "CREATE TABLE IF NOT EXISTS ev(id INTEGER PRIMARY KEY, wf INTEGER, seq INTEGER, body BLOB)") &&
           sqlite3_prepare_v2(floor->db, "INSERT INTO ev(wf,seq,body) VALUES(?,?,?)", -1, &floor->insert, NULL) ==
               SQLITE_OK;
}

static void floor_close(struct floor_db *floor)
{
    sqlite3_finalize(floor->insert);
    sqlite3_close(floor->db);
}

static double sqlite_floor(struct floor_db *floor, int rows, double seconds, double *samples, double *rows_per_second)
{
    char record[RECORD];
    memset(record, 'x', sizeof(record));
    size_t count = 0;
    bool ok = true;
    double begin = bench_now();
    while (ok && bench_now() - begin < seconds && count < SAMPLES_MAX) {
        double before = bench_now();
        ok = run_sql(floor->db, "BEGIN");
        for (int i = 0; ok && i < rows; i++) {
            sqlite3_bind_int64(floor->insert, 1, (sqlite3_int64)count);
            sqlite3_bind_int64(floor->insert, 2, i);
            sqlite3_bind_blob(floor->insert, 3, record, sizeof(record), SQLITE_STATIC);
            ok = sqlite3_step(floor->insert) == SQLITE_DONE && sqlite3_reset(floor->insert) == SQLITE_OK;
        }
        ok = ok && run_sql(floor->db, "COMMIT");
        samples[count++] = bench_now() - before;
    }
    *rows_per_second = (double)count * rows / (bench_now() - begin);
    return ok && count > 0 ? bench_percentile(samples, count, 0.5) * 1e6 : 0;
}

double bench_floor_now(struct bench *bench, const char *kind, double seconds)
{
    double *samples = calloc(SAMPLES_MAX, sizeof(*samples));
    char path[320];
    double us = 0, ignored;
    if (strcmp(kind, "postgres") == 0) {
        free(samples);
        return bench_postgres_floor(bench, 1, seconds, NULL);
    }
    snprintf(path, sizeof(path), "%s/floor-%s", bench->dir, kind);
    if (samples && strcmp(kind, "sqlite") != 0) {
        us = append_floor(path, false, seconds, samples);
    } else if (samples) {
        if (!bench->floor) bench->floor = calloc(1, sizeof(*bench->floor));
        if (bench->floor && (bench->floor->db || floor_open(bench->floor, path)))
            us = sqlite_floor(bench->floor, 1, seconds, samples, &ignored);
    }
    free(samples);
    return us;
}

void bench_floor_end(struct bench *bench)
{
    if (bench->floor) floor_close(bench->floor);
    free(bench->floor);
    bench->floor = NULL;
}

int bench_floors(struct bench *bench)
{
    double *samples = calloc(SAMPLES_MAX, sizeof(*samples));
    if (!samples) return console_nomem(bench->console);
    char path[320];
    double ignored;
    struct floor_db floor = {0};
    snprintf(path, sizeof(path), "%s/floor-append", bench->dir);
    bench->floors.append_us = append_floor(path, false, 1.0, samples);
    bench->floors.prealloc_us = append_floor(path, true, 1.0, samples);
    snprintf(path, sizeof(path), "%s/floor-group", bench->dir);
    if (floor_open(&floor, path)) {
        (void)sqlite_floor(&floor, 256, 1.0, samples, &bench->floors.sqlite_group_rows);
        bench->floors.sqlite_us = sqlite_floor(&floor, 1, 1.0, samples, &ignored);
    }
    floor_close(&floor);
    free(samples);
    if (bench->postgres.len) {
        (void)bench_postgres_floor(bench, 256, 1.0, &bench->floors.postgres_group_rows);
        bench->floors.postgres_us = bench_postgres_floor(bench, 1, 1.0, NULL);
        if (bench->floors.postgres_us <= 0)
            return console_fail(bench->console, EXIT_ERROR,
                                "bench: the database cannot be measured; `cairn doctor --store URL` tells why");
    }
    struct bench_line line;
    bench_line(bench, &line, "floor", "");
    bench_number(&line, "append_fdatasync_p50_us", bench->floors.append_us, 1);
    bench_number(&line, "prealloc_fdatasync_p50_us", bench->floors.prealloc_us, 1);
    bench_number(&line, "sqlite_commit_p50_us", bench->floors.sqlite_us, 1);
    bench_number(&line, "sqlite_group256_rows_per_s", bench->floors.sqlite_group_rows, 0);
    if (bench->postgres.len) {
        bench_number(&line, "postgres_commit_p50_us", bench->floors.postgres_us, 1);
        bench_number(&line, "postgres_group256_rows_per_s", bench->floors.postgres_group_rows, 0);
    }
    bench_print(bench, &line);
    return EXIT_OK;
}
