// Notes, and the feed. How the feed stays in order: postgres_doors.c.
#include "store/postgres.h"

static int64_t clamp(uint64_t value)
{
    return value < INT64_MAX ? (int64_t)value : INT64_MAX;
}

enum code pg_note(struct store *base, struct str space, struct str key, struct arena *arena, struct note *out,
                  struct error *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *rows = NULL;
    pg_clear(store);
    pg_text(store, space);
    pg_bytes(store, key.ptr, key.len);
    pg_bool(store, arena != NULL);
    enum code rc = pg_query(store, PG_NOTE, "read a note", &rows, err);
    if (rc) return rc;
    if (PQntuples(rows) != 1) {
        rc = note_missing(space, key, err);
    } else {
        out->version = (uint64_t)pg_get_int(rows, 0, 0);
        if (arena) {
            out->space = arena_copy(arena, space);
            out->key = arena_copy(arena, key);
            bool copied = pg_copy(rows, 0, 1, arena, &out->value);
            if (!copied || !out->space.ptr || !out->key.ptr) rc = error_nomem(err);
        }
    }
    PQclear(rows);
    return rc;
}

enum code pg_notes(struct store *base, struct str space, struct str after, size_t limit, struct arena *arena,
                   struct notes *out, struct error *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *rows = NULL;
    pg_clear(store);
    pg_text(store, space);
    pg_bytes(store, after.ptr, after.len);
    pg_int(store, clamp(limit));
    enum code rc = pg_query(store, PG_NOTES, "read notes", &rows, err);
    if (rc) return rc;
    size_t count = (size_t)PQntuples(rows);
    struct str kept = arena_copy(arena, space);
    out->items = ARENA_ARRAY(arena, count + 1, struct note);
    if (!kept.ptr || !out->items) rc = error_nomem(err);
    for (size_t i = 0; i < count && !rc; i++) {
        struct note *note = &out->items[i];
        *note = (struct note){.space = kept, .version = (uint64_t)pg_get_int(rows, (int)i, 1)};
        if (!pg_copy(rows, (int)i, 0, arena, &note->key) || !pg_copy(rows, (int)i, 2, arena, &note->value))
            rc = error_nomem(err);
    }
    PQclear(rows);
    if (!rc) out->count = count;
    return rc;
}

enum code pg_next_space(struct store *base, struct str after, struct arena *arena, struct str *out, struct error *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *rows = NULL;
    pg_clear(store);
    pg_text(store, after);
    enum code rc = pg_query(store, PG_NEXT_SPACE, "read notes", &rows, err);
    if (rc) return rc;
    if (!pg_copy(rows, 0, 0, arena, out)) rc = error_nomem(err);
    PQclear(rows);
    return rc;
}

enum code pg_feed(struct store *base, uint64_t after, size_t limit, struct arena *arena, struct feed *out,
                  struct error *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *rows = NULL;
    pg_clear(store);
    pg_int(store, clamp(after));
    pg_int(store, clamp(limit));
    enum code rc = pg_query(store, PG_FEED, "read the feed", &rows, err);
    if (rc) return rc;
    size_t count = (size_t)PQntuples(rows);
    out->items = ARENA_ARRAY(arena, count + 1, struct feed_item);
    if (!out->items) rc = E_NOMEM;
    for (size_t i = 0; i < count && !rc; i++) {
        struct sql_row row = pg_row(rows, (int)i);
        rc = sql_take_item(&row, arena, &out->items[i]);
    }
    PQclear(rows);
    if (rc) return error_set(err, rc, "cannot read the feed: %s", code_text(rc));
    out->count = count;
    return OK;
}

enum code pg_feed_end(struct store *base, uint64_t *out, struct error *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *rows = NULL;
    pg_clear(store);
    enum code rc = pg_query(store, PG_FEED_END, "find the end of the feed", &rows, err);
    if (!rc) *out = (uint64_t)pg_get_int(rows, 0, 0);
    PQclear(rows);
    return rc;
}
