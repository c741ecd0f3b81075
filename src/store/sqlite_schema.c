// The schema is sqlite.sql: made as a whole, or, in a store of an earlier version, the parts that it lacks.
#include "store/sqlite.h"

#include <string.h>

#define APPLICATION_ID 1130457458 // "Cair"
#define RESTORING_ID 1130457426   // "CaiR"
#define SCHEMA_VERSION 1
#define SCHEMA_FILE "src/store/sqlite.sql"

static enum code read_number(struct sqlite_store *store, const char *sql, int64_t *out, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) *out = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW ? OK : sqlite_code(store, rc, "read the store's version", err);
}

enum code sqlite_check_schema(struct sqlite_store *store, bool *fresh, struct error *err)
{
    int64_t application = 0;
    int64_t version = 0;
    int64_t objects = 0;
    // In this order: another process may be making the store right now, tables and marks in one commit. Tables that are
    // seen have their marks by the time those are read.
    enum code rc = read_number(store, "SELECT count(*) FROM sqlite_schema", &objects, err);
    if (!rc) rc = read_number(store, "PRAGMA application_id", &application, err);
    if (!rc) rc = read_number(store, "PRAGMA user_version", &version, err);
    if (rc) return rc;
    *fresh = application == 0 && objects == 0;
    if (*fresh) return OK;
    if (application == RESTORING_ID) {
        enum code restoring = store_found_restoring(&store->base, err);
        if (restoring) return restoring;
    } else if (application != APPLICATION_ID)
        return error_set(err, E_INVALID, "%s is a database of another program", store->path);
    if (version > SCHEMA_VERSION)
        return error_set(err, E_VERSION, "%s has format %lld, this version of Cairn reads up to %d; use a newer Cairn",
                         store->path, (long long)version, SCHEMA_VERSION);
    if (version < 1)
        return error_set(err, E_CORRUPT, "%s has format %lld, which never existed", store->path, (long long)version);
    return OK;
}

enum code sqlite_make_schema(struct sqlite_store *store, struct error *err)
{
    INVARIANT(store->base.options.mode == STORE_WRITE);
    enum code rc = sqlite_begin(store, err);
    if (rc) return rc;
    // Another process may have made it while we waited for the lock.
    bool fresh = false;
    rc = sqlite_check_schema(store, &fresh, err);
    if (!rc && fresh) {
        char marks[96];
        sqlite3_snprintf(sizeof(marks), marks, "PRAGMA application_id=%d;PRAGMA user_version=%d;", APPLICATION_ID,
                         SCHEMA_VERSION);
        rc = sqlite_run(store, sql_file(SCHEMA_FILE).ptr, err);
        if (!rc) rc = sqlite_run(store, marks, err);
    }
    if (!rc) return sqlite_commit_now(store, err);
    sqlite_rollback(store);
    return rc;
}

enum code sqlite_restoring(struct store *base, bool begun, struct error *err)
{
    INVARIANT(base->options.mode == STORE_WRITE);
    struct sqlite_store *store = sqlite_of(base);
    char sql[64];
    sqlite3_snprintf(sizeof(sql), sql, "PRAGMA application_id=%d", begun ? RESTORING_ID : APPLICATION_ID);
    enum code rc = sqlite_begin(store, err);
    if (!rc) rc = sqlite_run(store, sql, err);
    if (!rc) return sqlite_commit_now(store, err);
    sqlite_rollback(store);
    return rc;
}

// What came later: how to see whether it is there, what has to go first, and its parts.
struct addition {
    const char *look, *drop;
    const char *parts[2];
};
static const struct addition additions[] = {
    {"SELECT count(*) FROM sqlite_schema WHERE name='tombstones'",
     "DROP TRIGGER IF EXISTS workflow_events_no_delete;DROP TRIGGER IF EXISTS ledger_no_delete;"
     "DROP TRIGGER IF EXISTS runs_no_delete;DROP TRIGGER IF EXISTS run_heads_no_delete;",
     {"tombstones", "guard_removal"}},
    {"SELECT count(*) FROM sqlite_schema WHERE name='notes'", "", {"notes", "guard_notes"}},
    {"SELECT count(*) FROM sqlite_schema WHERE name='run_heads_by_time'", "", {"times"}},
    {"SELECT count(*) FROM sqlite_schema WHERE name='noetl_events'", "", {"playbook_view"}},
    {"SELECT count(*) FROM sqlite_schema WHERE name='workflow_events_by_key'",
     "DROP TRIGGER IF EXISTS workflow_events_no_replace;",
     {"keys", "guard_events"}},
    {"SELECT count(*) FROM pragma_table_info('engines') WHERE name='who'",
     "ALTER TABLE engines ADD COLUMN who TEXT",
     {0}},
};

// From the line that names it to the next part.
static enum code run_part(struct sqlite_store *store, const char *name, struct error *err)
{
    struct buf mark SCOPED(buf_release) = buf_of(128), text SCOPED(buf_release) = buf_of(64 * 1024);
    buf_printf(&mark, "--- part %s\n", name);
    const char *begin = strstr(sql_file(SCHEMA_FILE).ptr, mark.ptr);
    INVARIANT(begin);
    const char *end = strstr(begin + mark.len, "--- part ");
    buf_add(&text, end ? (struct str){begin, (size_t)(end - begin)} : str_from(begin));
    return buf_ok(&text) ? sqlite_run(store, text.ptr, err) : error_nomem(err);
}

static enum code is_complete(struct sqlite_store *store, bool *out, struct error *err)
{
    *out = true;
    for (size_t i = 0; i < ARRAY_COUNT(additions); i++) {
        int64_t there = 0;
        enum code rc = read_number(store, additions[i].look, &there, err);
        if (rc) return rc;
        *out = *out && there;
    }
    return OK;
}

// The format stays 1: readers that do not know of tombstones or notes see the same runs.
enum code sqlite_upgrade_schema(struct sqlite_store *store, struct error *err)
{
    INVARIANT(store->base.options.mode == STORE_WRITE);
    bool complete = false;
    enum code rc = is_complete(store, &complete, err);
    if (rc || complete) return rc;
    rc = sqlite_begin(store, err);
    if (rc) return rc;
    for (size_t i = 0; i < ARRAY_COUNT(additions) && !rc; i++) {
        int64_t there = 0;
        rc = read_number(store, additions[i].look, &there, err);
        if (!rc && !there) rc = sqlite_run(store, additions[i].drop, err);
        for (size_t k = 0; k < ARRAY_COUNT(additions[i].parts) && !rc && !there && additions[i].parts[k]; k++)
            rc = run_part(store, additions[i].parts[k], err);
    }
    if (!rc) return sqlite_commit_now(store, err);
    sqlite_rollback(store);
    if (rc != E_CONFLICT) return rc;
    COVER(two_events_of_one_key);
    if (err) *err = (struct error){0}; // what SQLite said of the index
    return error_set(err, E_CORRUPT, "%s holds two events of one run under one key; cairn log verify --all says where",
                     store->path);
}
