// Removing runs: the tombstone first, which is what the triggers ask for, then everything of the run, in one transaction.
#include "store/sqlite.h"

#include <sys/stat.h>

static enum code prepare(struct sqlite_store *store, const char *sql, sqlite3_stmt **out, struct error *err)
{
    int rc = sqlite3_prepare_v2(store->db, sql, -1, out, NULL);
    return rc == SQLITE_OK ? OK : sqlite_code(store, rc, "use the store", err);
}

enum { STEPS = 7 };

static const char *const removal[STEPS] = {
    ("INSERT INTO tombstones SELECT run_no,r.tenant_id,run_id,last_seq,ledger_seq,head,ledger_head,?2,?3 "
     "FROM runs r JOIN run_heads h USING(run_no) WHERE run_no=?1 AND terminal=1"),
    "UPDATE feed_floor SET position=max(position,(SELECT max(position) FROM workflow_events)) WHERE ?1=?1",
    "DELETE FROM inbox WHERE (tenant_id,run_id)=(SELECT tenant_id,run_id FROM runs WHERE run_no=?1)",
    "DELETE FROM workflow_events WHERE run_no=?1",
    "DELETE FROM ledger WHERE run_no=?1",
    "DELETE FROM run_heads WHERE run_no=?1",
    "DELETE FROM runs WHERE run_no=?1",
};

static enum code remove_one(struct sqlite_store *store, sqlite3_stmt *steps[STEPS], int64_t run_no, int64_t now_ms,
                            struct str reason, struct error *err)
{
    INVARIANT(run_no > 0);
    enum code rc = OK;
    for (size_t i = 0; i < STEPS && !rc; i++) {
        sqlite3_bind_int64(steps[i], 1, run_no);
        if (i == 0) {
            sqlite3_bind_int64(steps[i], 2, now_ms);
            sqlite_bind_str(steps[i], 3, reason);
        }
        rc = sqlite_step(store, steps[i], "remove a run", err);
        if (!rc && i == 0 && sqlite3_changes(store->db) != 1) rc = error_set(err, E_CONFLICT, "the run has not ended");
    }
    return rc;
}

enum code sqlite_remove(struct store *base, const struct run_name *runs, size_t count, int64_t now_ms,
                        struct str reason, struct error *err)
{
    INVARIANT(base->options.mode == STORE_WRITE && count > 0);
    struct sqlite_store *store = sqlite_of(base);
    sqlite3_stmt *steps[STEPS] = {NULL};
    enum code rc = OK;
    sqlite_guards(store, true);
    for (size_t i = 0; i < STEPS && !rc; i++) rc = prepare(store, removal[i], &steps[i], err);
    if (!rc) rc = sqlite_begin(store, err);
    bool begun = rc == OK;
    store->above_floor = false;
    for (size_t i = 0; i < count && !rc; i++) {
        int64_t run_no = 0;
        rc = sql_find_run(base, runs[i].tenant, runs[i].run, &run_no, err);
        if (!rc) rc = remove_one(store, steps, run_no, now_ms, reason, err);
    }
    for (size_t i = 0; i < STEPS; i++) sqlite3_finalize(steps[i]);
    if (!rc)
        rc = sqlite_commit_now(store, err);
    else if (begun)
        sqlite_rollback(store);
    sqlite_guards(store, false);
    return rc;
}

bool sqlite_has(struct sqlite_store *store, const char *tables)
{
    char sql[128];
    sqlite3_stmt *statement = NULL;
    sqlite3_snprintf(sizeof(sql), sql, "SELECT 1 FROM %s", tables);
    bool there = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) == SQLITE_OK;
    sqlite3_finalize(statement);
    return there;
}

// Numbers of runs are given one after the other, and those of removed runs are on their tombstones: a gap is a run that is gone.
static const char gaps[] = "WITH given(run_no) AS (SELECT run_no FROM runs UNION SELECT run_no FROM run_heads UNION "
                           "SELECT run_no FROM tombstones UNION SELECT 0) SELECT g.run_no+1,'',0 FROM given g "
                           "WHERE g.run_no<(SELECT max(run_no) FROM given) AND g.run_no+1 NOT IN given "
                           "AND NOT EXISTS(SELECT 1 FROM workflow_events e WHERE e.run_no=g.run_no+1) "
                           "AND NOT EXISTS(SELECT 1 FROM ledger l WHERE l.run_no=g.run_no+1) ORDER BY 1 LIMIT 1000";

enum code sqlite_missing(struct store *base, struct arena *arena, struct faults *out, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    sqlite3_stmt *row = NULL;
    int got = SQLITE_DONE;
    enum code rc = sql_missing(base, arena, out, err);
    if (rc || !sqlite_has(store, "tombstones")) return rc;
    rc = prepare(store, gaps, &row, err);
    while (!rc && (got = sqlite3_step(row)) == SQLITE_ROW) {
        struct sql_row at = sqlite_row(row);
        if (sql_take_missing(&at, arena, out)) rc = error_nomem(err);
    }
    if (!rc && got != SQLITE_DONE) rc = sqlite_code(store, got, "look for missing runs", err);
    sqlite3_finalize(row);
    return rc;
}

static int64_t number(struct sqlite_store *store, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int64_t value = 0;
    if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
        value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return value;
}

// Changes with every commit of another connection, and with none of ours.
static int64_t version_of(struct sqlite_store *store)
{
    return number(store, "PRAGMA data_version");
}

enum code sqlite_blobs(struct store *base, struct arena *arena, struct digests *out, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    store->blobs_version = version_of(store);
    return sql_blobs(base, arena, out, err);
}

enum code sqlite_drop_blobs(struct store *base, const struct digest *blobs, size_t count, uint64_t *bytes,
                            struct error *err)
{
    INVARIANT(count > 0);
    struct sqlite_store *store = sqlite_of(base);
    sqlite3_stmt *size = NULL, *drop = NULL;
    enum code rc = prepare(store, "SELECT length(bytes) FROM blobs WHERE sha256=?1", &size, err);
    if (!rc)
        rc = prepare(store, "DELETE FROM blobs WHERE sha256=?1 AND NOT EXISTS(SELECT 1 FROM runs WHERE document=?1)",
                     &drop, err);
    if (!rc) rc = sqlite_begin(store, err);
    bool begun = rc == OK;
    // An engine remembers which documents it has stored, and starts runs without storing them again. One that came and went
    // since the blobs were listed may have stored runs that refer to them.
    bool moved = begun && store->blobs_version != 0 && version_of(store) != store->blobs_version;
    if (moved || (begun && !sqlite_alone(store)))
        rc = error_set(err, E_LOCKED, "blobs are kept while another process %s in %s",
                       moved ? "stores something" : "runs something", store->path);
    for (size_t i = 0; i < count && !rc; i++) {
        sqlite_bind_bytes(size, 1, blobs[i].b, SHA256_SIZE);
        int64_t len = sqlite3_step(size) == SQLITE_ROW ? sqlite3_column_int64(size, 0) : 0;
        sqlite_done(size);
        sqlite_bind_bytes(drop, 1, blobs[i].b, SHA256_SIZE);
        rc = sqlite_step(store, drop, "remove a blob", err);
        if (!rc && sqlite3_changes(store->db) > 0) *bytes += (uint64_t)len;
    }
    sqlite3_finalize(size);
    sqlite3_finalize(drop);
    if (!rc) return sqlite_commit_now(store, err);
    if (begun) sqlite_rollback(store);
    return rc;
}

// ---- space

static uint64_t file_size(const struct sqlite_store *store, const char *end)
{
    char path[4200];
    struct stat status;
    sqlite3_snprintf(sizeof(path), path, "%s%s", store->path, end);
    return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

// By table, when SQLite was built with dbstat.
static bool add_tables(struct sqlite_store *store, struct arena *arena, struct usages *out)
{
    sqlite3_stmt *row = NULL;
    bool ok = true;
    static const char sql[] = "SELECT 'table '||ifnull(m.tbl_name,d.name),sum(d.pgsize),max(d.ncell) FROM dbstat d "
                              "LEFT JOIN sqlite_schema m ON m.name=d.name WHERE d.aggregate=TRUE GROUP BY 1 "
                              "ORDER BY 2 DESC";
    if (sqlite3_prepare_v2(store->db, sql, -1, &row, NULL) == SQLITE_OK)
        while (ok && sqlite3_step(row) == SQLITE_ROW)
            ok = usage_add(out, arena, (const char *)sqlite3_column_text(row, 0),
                           (uint64_t)sqlite3_column_int64(row, 1), 0);
    sqlite3_finalize(row);
    return ok;
}

enum code sqlite_usage(struct store *base, struct arena *arena, struct usages *out, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    uint64_t page = (uint64_t)number(store, "PRAGMA page_size");
    bool ok = usage_add(out, arena, "database", file_size(store, ""), (uint64_t)number(store, "PRAGMA page_count")) &&
              usage_add(out, arena, "free pages", (uint64_t)number(store, "PRAGMA freelist_count") * page,
                        (uint64_t)number(store, "PRAGMA freelist_count")) &&
              usage_add(out, arena, "write-ahead log", file_size(store, "-wal"), 0) &&
              usage_add(out, arena, "blobs", (uint64_t)number(store, "SELECT sum(length(bytes)) FROM blobs"),
                        (uint64_t)number(store, "SELECT count(*) FROM blobs")) &&
              usage_add(out, arena, "signals waiting", 0, (uint64_t)number(store, "SELECT count(*) FROM inbox")) &&
              add_tables(store, arena, out);
    return ok ? OK : error_nomem(err);
}
