// Migrations: numbered, forward only, each in one transaction under a lock that all who open the store ask for. The table
// `migrations` says which were taken and, for each, the lowest format that a program must know to go on using the store: an older
// program goes on beside a newer one until a migration says that it may not.
#include "store/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Their texts are postgres/1.sql and so on. 2: claims of many runs at once. 3: which cost what they claim. 4: one event a key. Who knows
// format 1 only goes on beside them.
static const int needs[PG_FORMAT] = {1, 1, 1, 1};

int64_t pg_known_format(void)
{
#ifdef CAIRN_FAULTS
    const char *older = getenv("CAIRN_PG_FORMAT"); // tests: this program is one of an earlier version
    if (older && older[0]) return strtoll(older, NULL, 10);
#endif
    return PG_FORMAT;
}

enum code pg_too_new(const struct pg_store *store, int64_t format, struct error *err)
{
    return error_set(err, E_VERSION, "%s has format %lld, this version of Cairn knows up to %lld; use a newer Cairn",
                     store->where, (long long)format, (long long)pg_known_format());
}

enum code pg_check_schema(struct pg_store *store, bool *fresh, int64_t *format, struct error *err)
{
    char sql[320];
    *fresh = false;
    *format = 0;
    snprintf(sql, sizeof(sql),
             "SELECT NOT EXISTS(SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid=c.relnamespace "
             "WHERE n.nspname='%s' AND c.relname='migrations')",
             store->place.schema);
    PGresult *result = PQexec(store->link, sql);
    if (PQresultStatus(result) == PGRES_TUPLES_OK) {
        *fresh = PQgetvalue(result, 0, 0)[0] == 't';
        PQclear(result);
        if (*fresh) return OK;
        snprintf(sql, sizeof(sql),
                 "SELECT max(version),max(needs),EXISTS(SELECT 1 FROM %s.notes WHERE space='store' AND "
                 "key='restoring') FROM %s.migrations",
                 store->place.schema, store->place.schema);
        result = PQexec(store->link, sql);
    }
    enum code rc = OK;
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        rc = pg_code(store, result, "look at the schema", err);
    } else {
        *format = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
        if (strtoll(PQgetvalue(result, 0, 1), NULL, 10) > pg_known_format())
            rc = pg_too_new(store, *format, err);
        else if (*format < 1)
            rc = error_set(err, E_CORRUPT, "%s: schema %s has no format", store->where, store->place.schema);
        else if (PQgetvalue(result, 0, 2)[0] == 't')
            rc = store_found_restoring(&store->base, err);
    }
    PQclear(result);
    return rc;
}

enum code pg_format(struct store *base, struct store_format *out, struct error *err)
{
    bool fresh;
    out->newest = pg_known_format();
    return pg_check_schema(pg_of(base), &fresh, &out->have, err);
}

enum code pg_restoring(struct store *base, bool begun, struct error *err)
{
    INVARIANT(base->options.mode == STORE_WRITE);
    struct note_put note = {
        .space = STR("store"), .key = STR("restoring"), .value = STR("begun"), .remove = !begun, .expect = NOTE_ANY};
    struct store_batch batch = {.notes = &note, .note_count = 1};
    struct arena turn SCOPED(arena_release) = arena_of(4096, SIZE_MAX);
    return store_append(base, &batch, 0, &turn, err);
}

// @S@ becomes the schema.
static enum code take(struct pg_store *store, int64_t number, struct error *err)
{
    INVARIANT(number >= 1 && number <= PG_FORMAT);
    struct buf text SCOPED(buf_release) = buf_of(1024 * 1024);
    char name[64];
    snprintf(name, sizeof(name), "src/store/postgres/%lld.sql", (long long)number);
    const char *rest = sql_file(name).ptr;
    for (const char *mark; (mark = strstr(rest, "@S@")); rest = mark + strlen("@S@")) {
        buf_add(&text, (struct str){rest, (size_t)(mark - rest)});
        buf_text(&text, store->place.schema);
    }
    buf_printf(&text, "%sINSERT INTO %s.migrations VALUES(%lld,%d)", rest, store->place.schema, (long long)number,
               needs[number - 1]);
    return buf_ok(&text) ? pg_run(store, text.ptr, "bring the schema up to date", err) : error_nomem(err);
}

enum code pg_migrate(struct pg_store *store, struct error *err)
{
    // The transaction begins when the lock is there: one that was begun before would go on believing what it knew of the schema.
    char lock[200], unlock[200];
    snprintf(lock, sizeof(lock), "SELECT pg_advisory_lock(hashtextextended('cairn migrations %s',0))",
             store->place.schema);
    snprintf(unlock, sizeof(unlock), "SELECT pg_advisory_unlock(hashtextextended('cairn migrations %s',0))",
             store->place.schema);
    bool fresh = false;
    int64_t format = 0;
    enum code rc = pg_run(store, lock, "wait for a migration", err);
    if (rc) return rc;
    rc = pg_run(store, "BEGIN", "bring the schema up to date", err);
    // Another process may have done it while we waited.
    if (!rc) rc = pg_check_schema(store, &fresh, &format, err);
    for (int64_t number = format + 1; number <= pg_known_format() && !rc; number++) rc = take(store, number, err);
    if (!rc) rc = pg_run(store, "COMMIT", "bring the schema up to date", err);
    if (rc) PQclear(PQexec(store->link, "ROLLBACK"));
    PQclear(PQexec(store->link, unlock));
    return rc;
}
