// The floor on Postgres: one row in a transaction of its own, and 256 of them, over one connection; what pgbench would measure with one
// client. Each workload has a schema of its own, dropped in the end.
#include "bench/inside.h"

#include "os/pq.h"

#include <postgresql/libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES = 20000 };

struct postgres_floor {
    PGconn *link;
    char schema[40];
};

static bool run_sql(PGconn *link, const char *sql)
{
    PGresult *result = PQexec(link, sql);
    ExecStatusType status = PQresultStatus(result);
    PQclear(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

// libpq refuses parameters that it does not know: those of the store are left out.
static void plain_url(struct str url, char *out, size_t size)
{
    static const char *const ours[] = {"schema=", "files=", "lease=", "tenant=", "unsafe="};
    struct str query, base = str_cut(url, '?', &query);
    size_t len = (size_t)snprintf(out, size, "%.*s", STR_ARG(base));
    for (char mark = '?'; query.len && len < size;) {
        struct str one = str_cut(query, '&', &query);
        bool skip = false;
        for (size_t i = 0; i < ARRAY_COUNT(ours); i++) skip = skip || str_starts(one, str_from(ours[i]));
        if (skip) continue;
        len += (size_t)snprintf(out + len, size - len, "%c%.*s", mark, STR_ARG(one));
        mark = '&';
    }
}

static void say_nothing(void *context UNUSED, const char *message UNUSED)
{
}

static PGconn *open_link(struct bench *bench)
{
    char url[1024];
    plain_url(bench->postgres, url, sizeof(url));
    struct error err = {0};
    if (pq_load(&err)) return NULL;
    PGconn *link = PQconnectdb(url);
    PQsetNoticeProcessor(link, say_nothing, NULL);
    if (PQstatus(link) == CONNECTION_OK && run_sql(link, "SET synchronous_commit=on")) return link;
    PQfinish(link);
    return NULL;
}

void bench_postgres_url(const struct bench *bench, const char *name, char *out, size_t size)
{
    char schema[40];
    snprintf(schema, sizeof(schema), "bench_%d_%s", (int)getpid(), name);
    for (char *c = schema; *c; c++)
        if (*c == '-') *c = '_';
    snprintf(out, size, "%.*s%cschema=%s", STR_ARG(bench->postgres),
             memchr(bench->postgres.ptr, '?', bench->postgres.len) ? '&' : '?', schema);
}

static double measure(PGconn *link, int rows, double seconds, double *samples, double *rows_per_second)
{
    char sql[200];
    size_t count = 0;
    snprintf(sql, sizeof(sql), "INSERT INTO ev(wf,seq,body) SELECT %d,i,repeat('x',400) FROM generate_series(1,%d) i",
             rows, rows);
    PGresult *prepared = PQprepare(link, "", sql, 0, NULL);
    bool ok = PQresultStatus(prepared) == PGRES_COMMAND_OK;
    PQclear(prepared);
    double begin = bench_now();
    while (ok && bench_now() - begin < seconds && count < SAMPLES) {
        double before = bench_now();
        PGresult *result = PQexecPrepared(link, "", 0, NULL, NULL, NULL, 0);
        ok = PQresultStatus(result) == PGRES_COMMAND_OK;
        PQclear(result);
        samples[count++] = bench_now() - before;
    }
    if (rows_per_second) *rows_per_second = (double)count * rows / (bench_now() - begin);
    return ok && count > 0 ? bench_percentile(samples, count, 0.5) * 1e6 : 0;
}

double bench_postgres_floor(struct bench *bench, int rows, double seconds, double *rows_per_second)
{
    double *samples = calloc(SAMPLES, sizeof(*samples));
    struct postgres_floor *floor = bench->postgres_floor;
    if (!floor && (floor = calloc(1, sizeof(*floor)))) {
        char sql[240];
        bench->postgres_floor = floor;
        snprintf(floor->schema, sizeof(floor->schema), "bench_%d_floor", (int)getpid());
        snprintf(sql, sizeof(sql),
                 "CREATE SCHEMA %s;SET search_path=%s;CREATE TABLE ev(id bigserial PRIMARY KEY,wf bigint,seq bigint,"
                 "body text)",
                 floor->schema, floor->schema);
        floor->link = open_link(bench);
        if (floor->link && !run_sql(floor->link, sql)) {
            PQfinish(floor->link);
            floor->link = NULL;
        }
    }
    double us = samples && floor && floor->link ? measure(floor->link, rows, seconds, samples, rows_per_second) : 0;
    free(samples);
    return us;
}

void bench_postgres_end(struct bench *bench)
{
    if (bench->postgres_floor && bench->postgres_floor->link) {
        char sql[400];
        snprintf(
            sql, sizeof(sql),
            "DO $$ DECLARE n text; BEGIN FOR n IN SELECT nspname FROM pg_namespace WHERE nspname LIKE 'bench\\_%d\\_%%'"
            " LOOP EXECUTE format('DROP SCHEMA %%I CASCADE',n); END LOOP; END $$",
            (int)getpid());
        if (!run_sql(bench->postgres_floor->link, sql))
            fprintf(stderr, "bench: cannot drop the schemas bench_%d_...\n", (int)getpid());
        PQfinish(bench->postgres_floor->link);
    }
    free(bench->postgres_floor);
    bench->postgres_floor = NULL;
}
