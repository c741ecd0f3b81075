// Notes, and the feed: events in the order of their rows. A row's position is an INTEGER PRIMARY KEY, which VACUUM leaves alone, and
// feed_floor keeps those of removed rows from being given again.
#include "store/sqlite.h"

// A store of before they were invented, opened for reading.
static bool has_notes(struct sqlite_store *store)
{
    sqlite3_stmt *statement = NULL;
    bool there = sqlite3_prepare_v2(store->db, "SELECT 1 FROM notes,feed_floor", -1, &statement, NULL) == SQLITE_OK;
    sqlite3_finalize(statement);
    return there;
}

static bool is_older(struct sqlite_store *store, enum statement which)
{
    return !store->statements[which] && !has_notes(store);
}

// ---- writing

static enum code write_note(struct sqlite_store *store, const struct note_change *note, struct error *err)
{
    enum statement which = note->after == 0    ? STATEMENT_DROP_NOTE
                           : note->before == 0 ? STATEMENT_ADD_NOTE
                                               : STATEMENT_MOVE_NOTE;
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, which, &rc, err);
    if (!statement) return rc;
    sqlite_bind_str(statement, 1, note->space);
    sqlite_bind_str(statement, 2, note->key);
    if (which != STATEMENT_ADD_NOTE) sqlite3_bind_int64(statement, 3, (int64_t)note->before);
    if (which != STATEMENT_DROP_NOTE) {
        sqlite_bind_bytes(statement, 4, note->value.ptr, note->value.len);
        sqlite3_bind_int64(statement, 5, (int64_t)note->after);
    }
    struct error told = {0};
    rc = sqlite_step(store, statement, "keep a note", &told);
    if (rc == E_CONFLICT || (!rc && sqlite3_changes(store->db) != 1)) return note_conflict(note, err);
    return rc ? error_set(err, rc, "%s", told.message) : OK;
}

enum code sqlite_write_notes(struct sqlite_store *store, const struct commit *commit, struct error *err)
{
    enum code rc = OK;
    for (size_t i = 0; i < commit->note_count && !rc; i++) rc = write_note(store, &commit->notes[i], err);
    return rc;
}

// ---- reading

enum code sqlite_note(struct store *base, struct str space, struct str key, struct arena *arena, struct note *out,
                      struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    if (is_older(store, STATEMENT_NOTE)) return note_missing(space, key, err);
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_NOTE, &rc, err);
    if (!statement) return rc;
    sqlite_bind_str(statement, 1, space);
    sqlite_bind_str(statement, 2, key);
    int got = sqlite3_step(statement);
    if (got == SQLITE_DONE) rc = note_missing(space, key, err);
    if (got != SQLITE_DONE && got != SQLITE_ROW) rc = sqlite_code(store, got, "read a note", err);
    if (!rc) {
        out->version = (uint64_t)sqlite3_column_int64(statement, 0);
        if (arena) {
            out->space = arena_copy(arena, space);
            out->key = arena_copy(arena, key);
            bool copied = sqlite_copy(statement, 1, arena, &out->value);
            if (!copied || !out->space.ptr || !out->key.ptr) rc = error_nomem(err);
        }
    }
    sqlite_done(statement);
    return rc;
}

enum code sqlite_notes(struct store *base, struct str space, struct str after, size_t limit, struct arena *arena,
                       struct notes *out, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    if (is_older(store, STATEMENT_NOTES)) return OK;
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_NOTES, &rc, err);
    if (!statement) return rc;
    sqlite_bind_str(statement, 1, space);
    sqlite_bind_str(statement, 2, after);
    sqlite3_bind_int64(statement, 3, limit < INT64_MAX ? (int64_t)limit : INT64_MAX);
    struct str kept = arena_copy(arena, space);
    if (!kept.ptr) rc = error_nomem(err);
    size_t capacity = 0;
    int got;
    while (!rc && (got = sqlite3_step(statement)) != SQLITE_DONE) {
        if (got != SQLITE_ROW) {
            rc = sqlite_code(store, got, "read notes", err);
            break;
        }
        if (!ARENA_ROOM(arena, out->items, out->count, &capacity)) {
            rc = error_nomem(err);
            break;
        }
        struct note *note = &out->items[out->count++];
        *note = (struct note){.space = kept, .version = (uint64_t)sqlite3_column_int64(statement, 1)};
        if (!sqlite_copy(statement, 0, arena, &note->key) || !sqlite_copy(statement, 2, arena, &note->value))
            rc = error_nomem(err);
    }
    sqlite_done(statement);
    return rc;
}

enum code sqlite_next_space(struct store *base, struct str after, struct arena *arena, struct str *out,
                            struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    *out = STR("");
    if (is_older(store, STATEMENT_NEXT_SPACE)) return OK;
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_NEXT_SPACE, &rc, err);
    if (!statement) return rc;
    sqlite_bind_str(statement, 1, after);
    int got = sqlite3_step(statement);
    if (got != SQLITE_ROW)
        rc = sqlite_code(store, got, "read notes", err);
    else if (!sqlite_copy(statement, 0, arena, out))
        rc = error_nomem(err);
    sqlite_done(statement);
    return rc;
}

enum code sqlite_feed(struct store *base, uint64_t after, size_t limit, struct arena *arena, struct feed *out,
                      struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    enum code rc;
    sqlite3_stmt *statement = sqlite_statement(store, STATEMENT_FEED, &rc, err);
    if (!statement) return rc;
    sqlite3_bind_int64(statement, 1, after < INT64_MAX ? (int64_t)after : INT64_MAX);
    sqlite3_bind_int64(statement, 2, limit < INT64_MAX ? (int64_t)limit : INT64_MAX);
    struct sql_row row = sqlite_row(statement);
    size_t capacity = 0;
    int got;
    while (!rc && (got = sqlite3_step(statement)) != SQLITE_DONE) {
        if (got != SQLITE_ROW) {
            rc = sqlite_code(store, got, "read the feed", err);
            break;
        }
        out->items = arena_grow(arena, out->items, out->count, out->count + 1, sizeof(*out->items), &capacity);
        rc = out->items ? sql_take_item(&row, arena, &out->items[out->count]) : E_NOMEM;
        if (rc) rc = error_set(err, rc, "cannot read the feed: %s", code_text(rc));
        out->count++;
    }
    sqlite_done(statement);
    return rc;
}

enum code sqlite_feed_end(struct store *base, uint64_t *out, struct error *err)
{
    struct sqlite_store *store = sqlite_of(base);
    const char *sql = has_notes(store) ? "SELECT max(ifnull((SELECT max(position) FROM workflow_events),0),"
                                         "(SELECT position FROM feed_floor))"
                                       : "SELECT ifnull(max(position),0) FROM workflow_events";
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) *out = (uint64_t)sqlite3_column_int64(statement, 0);
    enum code code = rc == SQLITE_ROW ? OK : sqlite_code(store, rc, "find the end of the feed", err);
    sqlite3_finalize(statement);
    return code;
}
