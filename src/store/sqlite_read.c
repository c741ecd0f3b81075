#include "store/sqlite.h"

#include <stdio.h>
#include <string.h>

static enum code out_of_memory(struct error *err)
{
    return error_set(err, E_NOMEM, "out of memory");
}

static enum code no_run(struct str run, struct error *err)
{
    return error_set(err, E_NOT_FOUND, "there is no run %.*s", STR_ARG(run));
}

// ---- heads

static bool take_digest(sqlite3_stmt *row, int column, struct digest *out)
{
    const void *bytes = sqlite3_column_blob(row, column);
    if (!bytes || sqlite3_column_bytes(row, column) != SHA256_SIZE) return false;
    memcpy(out->b, bytes, SHA256_SIZE);
    return true;
}

static void take_text(sqlite3_stmt *row, int column, char *out, size_t size)
{
    const unsigned char *text = sqlite3_column_text(row, column);
    snprintf(out, size, "%s", text ? (const char *)text : "");
}

static struct str column_str(sqlite3_stmt *row, int column)
{
    const void *bytes = sqlite3_column_blob(row, column);
    return (struct str){bytes ? bytes : "", (size_t)sqlite3_column_bytes(row, column)};
}

static bool take_identity(sqlite3_stmt *row, struct arena *arena, struct run_head *out)
{
    struct str *const texts[] = {&out->ids.tenant,  &out->ids.run,          &out->ids.project, &out->ids.environment,
                                 &out->ids.plan_id, &out->ids.plan_version, &out->name};
    for (int i = 0; i < (int)ARRAY_COUNT(texts); i++)
        if (!sqlite_copy(row, i + 1, arena, texts[i])) return false;
    return sqlite_copy(row, 10, arena, &out->parent_run) && sqlite_copy(row, 11, arena, &out->original_run);
}

static void take_summary(sqlite3_stmt *row, struct run_summary *out)
{
    out->status = run_status_parse(column_str(row, 20));
    take_text(row, 21, out->substatus, sizeof(out->substatus));
    out->counts.total = (uint32_t)sqlite3_column_int64(row, 22);
    out->counts.completed = (uint32_t)sqlite3_column_int64(row, 23);
    out->counts.failed = (uint32_t)sqlite3_column_int64(row, 24);
    out->counts.skipped = (uint32_t)sqlite3_column_int64(row, 25);
    out->running = (uint32_t)sqlite3_column_int64(row, 26);
    out->created_ms = sqlite3_column_int64(row, 27);
    out->started_ms = sqlite3_column_int64(row, 28);
    out->ended_ms = sqlite3_column_int64(row, 29);
    take_text(row, 30, out->cause, sizeof(out->cause));
}

enum code sqlite_take_head(struct sqlite_store *store, sqlite3_stmt *row, struct arena *arena, struct run_head *out,
                           int64_t *owner, struct error *err)
{
    *out = (struct run_head){0};
    if (!take_identity(row, arena, out)) return out_of_memory(err);
    out->position = (uint64_t)sqlite3_column_int64(row, 0);
    out->vocabulary = vocabulary_parse(column_str(row, 8));
    out->last_seq = (uint64_t)sqlite3_column_int64(row, 12);
    out->last_ledger_seq = (uint64_t)sqlite3_column_int64(row, 13);
    out->updated_ms = sqlite3_column_int64(row, 16);
    out->terminal = sqlite3_column_int(row, 17) != 0;
    out->epoch = (uint64_t)sqlite3_column_int64(row, 18);
    take_summary(row, &out->summary);
    if (!out->vocabulary || !out->summary.status || !take_digest(row, 9, &out->document) ||
        !take_digest(row, 14, &out->head) || !take_digest(row, 15, &out->ledger_head))
        return error_set(err, E_CORRUPT, "run %.*s: its row is damaged", STR_ARG(out->ids.run));
    int64_t engine = sqlite3_column_int64(row, 19);
    out->owned = engine && sqlite_alive(store, engine, &out->owner_pid);
    if (owner) *owner = engine;
    return OK;
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
        rc = sqlite_take_head(store, statement, arena, out, NULL, err);
    else if (got == SQLITE_DONE)
        rc = no_run(run, err);
    else
        rc = sqlite_code(store, got, "read a run", err);
    sqlite_done(statement);
    return rc;
}

// ---- records

static enum code find_run(struct sqlite_store *store, struct str tenant, struct str run, int64_t *run_no,
                          struct error *err)
{
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_FIND_RUN, &rc, err);
    if (!statement) return rc;
    sqlite_bind_str(statement, 1, tenant);
    sqlite_bind_str(statement, 2, run);
    int got = sqlite3_step(statement);
    if (got == SQLITE_ROW)
        *run_no = sqlite3_column_int64(statement, 0);
    else if (got == SQLITE_DONE)
        rc = no_run(run, err);
    else
        rc = sqlite_code(store, got, "read a run", err);
    sqlite_done(statement);
    return rc;
}

enum code sqlite_take_event(sqlite3_stmt *row, struct arena *arena, struct record *out)
{
    const struct str parts[] = {column_str(row, 4), column_str(row, 3), column_str(row, 5)};
    struct record_columns *columns = ARENA_NEW(arena, struct record_columns);
    char *bytes = arena_alloc(arena, parts[0].len + parts[1].len + parts[2].len + 1);
    if (!columns || !bytes) return E_NOMEM;
    char *to = bytes;
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        memcpy(to, parts[i].ptr, parts[i].len);
        to += parts[i].len;
    }
    columns->payload = (struct str){bytes + parts[0].len, parts[1].len};
    *out = (struct record){
        .seq = (uint64_t)sqlite3_column_int64(row, 0),
        .bytes = {bytes, (size_t)(to - bytes)},
        .columns = columns,
    };
    bool copied = sqlite_copy(row, 1, arena, &out->type) && sqlite_copy(row, 2, arena, &columns->timestamp) &&
                  sqlite_copy(row, 6, arena, &columns->key) && sqlite_copy(row, 7, arena, &columns->run);
    return copied ? OK : E_NOMEM;
}

static enum code take_entry(sqlite3_stmt *row, struct arena *arena, struct record *out)
{
    *out = (struct record){
        .seq = (uint64_t)sqlite3_column_int64(row, 1),
        .ledger_seq = (uint64_t)sqlite3_column_int64(row, 0),
    };
    if (!take_digest(row, 5, &out->hash)) return E_CORRUPT;
    bool copied = sqlite_copy(row, 2, arena, &out->type) && sqlite_copy(row, 3, arena, &out->signal_id) &&
                  sqlite_copy(row, 4, arena, &out->bytes);
    return copied ? OK : E_NOMEM;
}

static enum code read_page(struct sqlite_store *store, enum statement which, int64_t run_no, uint64_t after,
                           size_t limit, struct arena *arena, struct records *out, struct error *err)
{
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, which, &rc, err);
    if (!statement) return rc;
    sqlite3_bind_int64(statement, 1, run_no);
    sqlite3_bind_int64(statement, 2, after < INT64_MAX ? (int64_t)after : INT64_MAX);
    sqlite3_bind_int64(statement, 3, limit < INT64_MAX ? (int64_t)limit : INT64_MAX);
    size_t capacity = 0;
    int got;
    while (!rc && (got = sqlite3_step(statement)) != SQLITE_DONE) {
        if (got != SQLITE_ROW) {
            rc = sqlite_code(store, got, "read events", err);
            break;
        }
        out->items = arena_grow(arena, out->items, out->count, out->count + 1, sizeof(*out->items), &capacity);
        rc = !out->items               ? E_NOMEM
             : which == STATEMENT_READ ? sqlite_take_event(statement, arena, &out->items[out->count])
                                       : take_entry(statement, arena, &out->items[out->count]);
        if (rc) rc = error_set(err, rc, "cannot read events: %s", code_text(rc));
        out->count++;
    }
    sqlite_done(statement);
    return rc;
}

enum code sqlite_read(struct store *base, struct str tenant, struct str run, uint64_t after, size_t limit,
                      struct arena *arena, struct records *out, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    int64_t run_no = 0;
    enum code rc = find_run(store, tenant, run, &run_no, err);
    return rc ? rc : read_page(store, STATEMENT_READ, run_no, after, limit, arena, out, err);
}

enum code sqlite_read_ledger(struct store *base, struct str tenant, struct str run, uint64_t after, size_t limit,
                             struct arena *arena, struct records *out, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    int64_t run_no = 0;
    enum code rc = find_run(store, tenant, run, &run_no, err);
    return rc ? rc : read_page(store, STATEMENT_READ_LEDGER, run_no, after, limit, arena, out, err);
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
        rc = sqlite_copy(statement, 0, arena, out) ? OK : out_of_memory(err);
    else if (got == SQLITE_DONE)
        rc = error_set(err, E_NOT_FOUND, "there is no such blob");
    else
        rc = sqlite_code(store, got, "read a blob", err);
    sqlite_done(statement);
    return rc;
}
