// The floors: what one durable write costs on this machine, now. The only file of the command line that talks to SQLite.
#include "cli/bench.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD 400
#define FLOOR_SECONDS 1.0
#define SAMPLES_MAX 200000

static double append_floor(const char *path, bool prealloc, double *samples)
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
    for (double begin = bench_now(); bench_now() - begin < FLOOR_SECONDS && count < SAMPLES_MAX && offset < (16 << 20);) {
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

static double sqlite_floor(const char *path, int rows_per_commit, double *samples, double *rows_per_second)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *insert = NULL;
    char record[RECORD];
    memset(record, 'x', sizeof(record));
    size_t count = 0;
    bool ok = sqlite3_open(path, &db) == SQLITE_OK && run_sql(db, "PRAGMA journal_mode=WAL") && run_sql(db, "PRAGMA synchronous=FULL")
           && run_sql(db, "CREATE TABLE ev(id INTEGER PRIMARY KEY, wf INTEGER, seq INTEGER, body BLOB)")
           && sqlite3_prepare_v2(db, "INSERT INTO ev(wf,seq,body) VALUES(?,?,?)", -1, &insert, NULL) == SQLITE_OK;
    double begin = bench_now();
    while (ok && bench_now() - begin < FLOOR_SECONDS && count < SAMPLES_MAX) {
        double before = bench_now();
        ok = run_sql(db, "BEGIN");
        for (int i = 0; ok && i < rows_per_commit; i++) {
            sqlite3_bind_int64(insert, 1, (sqlite3_int64)count);
            sqlite3_bind_int64(insert, 2, i);
            sqlite3_bind_blob(insert, 3, record, sizeof(record), SQLITE_STATIC);
            ok = sqlite3_step(insert) == SQLITE_DONE && sqlite3_reset(insert) == SQLITE_OK;
        }
        ok = ok && run_sql(db, "COMMIT");
        samples[count++] = bench_now() - before;
    }
    *rows_per_second = (double)count * rows_per_commit / (bench_now() - begin);
    sqlite3_finalize(insert);
    sqlite3_close(db);
    unlink(path);
    return ok && count > 0 ? bench_percentile(samples, count, 0.5) * 1e6 : 0;
}

int bench_floors(struct bench *bench)
{
    double *samples = calloc(SAMPLES_MAX, sizeof(*samples));
    if (!samples) return cli_nomem(bench->cli);
    char path[320];
    double ignored;
    snprintf(path, sizeof(path), "%s/floor", bench->dir);
    bench->floors.append_us = append_floor(path, false, samples);
    bench->floors.prealloc_us = append_floor(path, true, samples);
    bench->floors.sqlite_us = sqlite_floor(path, 1, samples, &ignored);
    (void)sqlite_floor(path, 256, samples, &bench->floors.sqlite_group_rows);
    free(samples);
    struct bench_line line;
    bench_line(bench, &line, "floor", "");
    bench_number(&line, "append_fdatasync_p50_us", bench->floors.append_us, 1);
    bench_number(&line, "prealloc_fdatasync_p50_us", bench->floors.prealloc_us, 1);
    bench_number(&line, "sqlite_commit_p50_us", bench->floors.sqlite_us, 1);
    bench_number(&line, "sqlite_group256_rows_per_s", bench->floors.sqlite_group_rows, 0);
    bench_print(bench, &line);
    return EXIT_OK;
}
