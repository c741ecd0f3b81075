// Questions of sql.h, and heads.
#include "store/sqlite.h"

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

enum code sqlite_head(struct store *base, struct str tenant, struct str run, struct arena *arena, struct run_head *out,
                      struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_HEAD, &rc, err);
    if (!statement) return rc;
    sqlite_bind_str(statement, 1, tenant);
    sqlite_bind_str(statement, 2, run);
    int got = sqlite3_step(statement);
    if (got == SQLITE_ROW)
        rc = sqlite_take_head(store, statement, arena, out, err);
    else
        rc = got == SQLITE_DONE ? run_missing(run, err) : sqlite_code(store, got, "read a run", err);
    sqlite_done(statement);
    return rc;
}

// ---- questions

static const enum statement statements[] = {
#define X(name) [SQL_##name] = STATEMENT_##name,
    SQL_QUERIES(X)
#undef X
};

static sqlite3_stmt *statement_of(const struct sql_ask *ask)
{
    return (sqlite3_stmt *)(uintptr_t)ask->row.answer;
}

// A store of before notes and tombstones were invented, opened for reading, has none.
static bool is_older(struct sqlite_store *store, enum statement which)
{
    bool tombstones = which == STATEMENT_TOMBSTONES;
    bool newer = tombstones || which == STATEMENT_NOTE || which == STATEMENT_NOTES || which == STATEMENT_NEXT_SPACE ||
                 which == STATEMENT_FEED_END;
    if (!newer || store->statements[which]) return false;
    return !sqlite_has(store, tombstones ? "tombstones" : "notes,feed_floor");
}

static void begin(struct sql_ask *ask)
{
    struct sqlite_store *store = sqlite_of(ask->store);
    enum statement which = statements[ask->which];
    ask->none = is_older(store, which);
    if (ask->none && which == STATEMENT_FEED_END) {
        which = STATEMENT_OLD_FEED_END;
        ask->none = false;
    }
    if (!ask->none) ask->row = sqlite_row(sqlite_statement(store, which, &ask->rc, ask->err));
}

static void text(struct sql_ask *ask, struct str text)
{
    if (!ask->none) sqlite_bind_str(statement_of(ask), ++ask->arguments, text);
}

static void blob(struct sql_ask *ask, struct str bytes)
{
    sqlite_bind_bytes(statement_of(ask), ++ask->arguments, bytes.ptr, bytes.len);
}

static void number(struct sql_ask *ask, int64_t number)
{
    if (!ask->none) sqlite3_bind_int64(statement_of(ask), ++ask->arguments, number);
}

static bool next(struct sql_ask *ask)
{
    int got = ask->none ? SQLITE_DONE : sqlite3_step(statement_of(ask));
    if (got != SQLITE_ROW && got != SQLITE_DONE)
        ask->rc = sqlite_code(sqlite_of(ask->store), got, ask->what, ask->err);
    return got == SQLITE_ROW;
}

static void end(struct sql_ask *ask)
{
    if (ask->row.answer) sqlite_done(statement_of(ask));
}

const struct sql_ops sqlite_asking = {
    .begin = begin, .text = text, .blob = blob, .number = number, .next = next, .end = end};
