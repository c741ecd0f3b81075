#include "store/sqlite.h"

// ---- heads

static struct str row_bytes(const struct sql_row *row, int column)
{
    sqlite3_stmt *statement = (sqlite3_stmt *)(uintptr_t)row->answer;
    const void *bytes = sqlite3_column_blob(statement, column);
    return (struct str){bytes ? bytes : "", (size_t)sqlite3_column_bytes(statement, column)};
}

static int64_t row_number(const struct sql_row *row, int column)
{
    return sqlite3_column_int64((sqlite3_stmt *)(uintptr_t)row->answer, column);
}

struct sql_row sqlite_row(sqlite3_stmt *statement)
{
    return (struct sql_row){.bytes = row_bytes, .number = row_number, .answer = statement};
}

enum code sqlite_take_head(struct sqlite_store *store, sqlite3_stmt *row, struct arena *arena, struct run_head *out,
                           struct error *err)
{
    struct sql_row at = sqlite_row(row);
    int64_t engine;
    enum code rc = sql_take_head(&at, arena, out, &engine, err);
    if (!rc) out->owned = engine && sqlite_alive(store, engine, &out->owner_pid);
    return rc;
}

// A statement of tenant and run, standing at its one row: sqlite_done.
static enum code row_of(struct sqlite_store *store, enum statement which, struct str tenant, struct str run,
                        sqlite3_stmt **out, struct error *err)
{
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, which, &rc, err);
    if (!statement) return rc;
    sqlite_bind_str(statement, 1, tenant);
    sqlite_bind_str(statement, 2, run);
    int got = sqlite3_step(statement);
    *out = statement;
    if (got == SQLITE_ROW) return OK;
    rc = got == SQLITE_DONE ? run_missing(run, err) : sqlite_code(store, got, "read a run", err);
    sqlite_done(statement);
    return rc;
}

enum code sqlite_head(struct store *base, struct str tenant, struct str run, struct arena *arena, struct run_head *out,
                      struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    sqlite3_stmt *statement = NULL;
    enum code rc = row_of(store, STATEMENT_HEAD, tenant, run, &statement, err);
    if (rc) return rc;
    rc = sqlite_take_head(store, statement, arena, out, err);
    sqlite_done(statement);
    return rc;
}

// ---- records

static enum code find_run(struct sqlite_store *store, struct str tenant, struct str run, int64_t *run_no,
                          struct error *err)
{
    sqlite3_stmt *statement = NULL;
    enum code rc = row_of(store, STATEMENT_FIND_RUN, tenant, run, &statement, err);
    if (rc) return rc;
    *run_no = sqlite3_column_int64(statement, 0);
    sqlite_done(statement);
    return OK;
}

enum code sqlite_read(struct store *base, const struct record_range *range, struct arena *arena, struct records *out,
                      struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    int64_t run_no = 0;
    enum code rc = find_run(store, range->tenant, range->run, &run_no, err);
    if (rc) return rc;
    sqlite3_stmt *statement = sqlite_statement(store, range->ledger ? STATEMENT_READ_LEDGER : STATEMENT_READ, &rc, err);
    if (!statement) return rc;
    sqlite3_bind_int64(statement, 1, run_no);
    sqlite3_bind_int64(statement, 2, range->after < INT64_MAX ? (int64_t)range->after : INT64_MAX);
    sqlite3_bind_int64(statement, 3, range->limit < INT64_MAX ? (int64_t)range->limit : INT64_MAX);
    enum code (*take)(const struct sql_row *, struct arena *, struct record *) =
        range->ledger ? sql_take_entry : sql_take_event;
    struct sql_row row = sqlite_row(statement);
    size_t capacity = 0;
    int got;
    while (!rc && (got = sqlite3_step(statement)) != SQLITE_DONE) {
        if (got != SQLITE_ROW) {
            rc = sqlite_code(store, got, "read events", err);
            break;
        }
        out->items = arena_grow(arena, out->items, out->count, out->count + 1, sizeof(*out->items), &capacity);
        rc = out->items ? take(&row, arena, &out->items[out->count]) : E_NOMEM;
        if (rc) rc = error_set(err, rc, "cannot read events: %s", code_text(rc));
        out->count++;
    }
    sqlite_done(statement);
    return rc;
}

enum code sqlite_blob(struct store *base, const struct digest *sha256, struct arena *arena, struct str *out,
                      struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_BLOB, &rc, err);
    if (!statement) return rc;
    sqlite_bind_bytes(statement, 1, sha256->b, SHA256_SIZE);
    int got = sqlite3_step(statement);
    if (got == SQLITE_ROW)
        rc = sqlite_copy(statement, 0, arena, out) ? OK : error_nomem(err);
    else if (got == SQLITE_DONE)
        rc = error_set(err, E_NOT_FOUND, "there is no such blob");
    else
        rc = sqlite_code(store, got, "read a blob", err);
    sqlite_done(statement);
    return rc;
}
