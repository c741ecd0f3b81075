// What both stores in SQL answer with the same questions: records, blobs, notes, the feed, removed runs, the inbox.
#include "store/sql.h"

int64_t sql_clamp(uint64_t value)
{
    return value < INT64_MAX ? (int64_t)value : INT64_MAX;
}

// ---- a question

void sql_begin(struct sql_ask *ask, struct store *store, enum sql_query which, const char *what, struct error *err)
{
    *ask = (struct sql_ask){.store = store, .which = which, .what = what, .err = err};
    store->sql->begin(ask);
}

void sql_text(struct sql_ask *ask, struct str text)
{
    if (!ask->rc) ask->store->sql->text(ask, text);
}

void sql_digest(struct sql_ask *ask, const struct digest *digest)
{
    if (!ask->rc) ask->store->sql->blob(ask, (struct str){(const char *)digest->b, SHA256_SIZE});
}

void sql_number(struct sql_ask *ask, int64_t number)
{
    if (!ask->rc) ask->store->sql->number(ask, number);
}

bool sql_next(struct sql_ask *ask)
{
    return !ask->rc && ask->store->sql->next(ask);
}

void sql_heed(struct sql_ask *ask, enum code rc)
{
    if (rc && !ask->rc) ask->rc = error_set(ask->err, rc, "cannot %s: %s", ask->what, code_text(rc));
}

enum code sql_end(struct sql_ask *ask)
{
    ask->store->sql->end(ask);
    return ask->rc;
}

static void keep(struct sql_ask *ask, int column, struct arena *arena, struct str *out)
{
    *out = arena_copy(arena, ask->row.bytes(&ask->row, column));
    sql_heed(ask, out->ptr ? OK : E_NOMEM);
}

static uint64_t count_at(const struct sql_ask *ask, int column)
{
    return (uint64_t)ask->row.number(&ask->row, column);
}

// ---- records and blobs

enum code sql_find_run(struct store *store, struct str tenant, struct str run, int64_t *run_no, struct error *err)
{
    struct sql_ask ask;
    sql_begin(&ask, store, SQL_FIND_RUN, "read a run", err);
    sql_text(&ask, tenant);
    sql_text(&ask, run);
    bool found = sql_next(&ask);
    if (found) *run_no = ask.row.number(&ask.row, 0);
    enum code rc = sql_end(&ask);
    return rc || found ? rc : run_missing(run, err);
}

enum code sql_read(struct store *store, const struct record_range *range, struct arena *arena, struct records *out,
                   struct error *err)
{
    int64_t run_no = 0;
    size_t capacity = 0;
    struct sql_ask ask;
    enum code rc = sql_find_run(store, range->tenant, range->run, &run_no, err);
    if (rc) return rc;
    sql_begin(&ask, store, range->ledger ? SQL_READ_LEDGER : SQL_READ, "read events", err);
    sql_number(&ask, run_no);
    sql_number(&ask, sql_clamp(range->after));
    sql_number(&ask, sql_clamp(range->limit));
    while (sql_next(&ask)) {
        bool room = ARENA_ROOM(arena, out->items, out->count, &capacity);
        struct record *record = room ? &out->items[out->count++] : NULL;
        sql_heed(&ask, !room           ? E_NOMEM
                       : range->ledger ? sql_take_entry(&ask.row, arena, record)
                                       : sql_take_event(&ask.row, arena, record));
    }
    return sql_end(&ask);
}

enum code sql_blob(struct store *store, const struct digest *sha256, struct arena *arena, struct str *out,
                   struct error *err)
{
    struct sql_ask ask;
    sql_begin(&ask, store, SQL_BLOB, "read a blob", err);
    sql_digest(&ask, sha256);
    bool found = sql_next(&ask);
    if (found) keep(&ask, 0, arena, out);
    enum code rc = sql_end(&ask);
    return rc || found ? rc : error_set(err, E_NOT_FOUND, "there is no such blob");
}

enum code sql_blobs(struct store *store, struct arena *arena, struct digests *out, struct error *err)
{
    struct sql_ask ask;
    sql_begin(&ask, store, SQL_BLOBS, "list blobs", err);
    while (sql_next(&ask)) {
        struct digest digest;
        bool whole = sql_take_digest(&ask.row, 0, &digest);
        sql_heed(&ask, !whole ? E_CORRUPT : digest_add(out, arena, &digest) ? OK : E_NOMEM);
    }
    return sql_end(&ask);
}

// ---- notes and the feed

enum code sql_note(struct store *store, struct str space, struct str key, struct arena *arena, struct note *out,
                   struct error *err)
{
    struct sql_ask ask;
    sql_begin(&ask, store, SQL_NOTE, "read a note", err);
    sql_text(&ask, space);
    sql_text(&ask, key);
    sql_number(&ask, arena != NULL);
    bool found = sql_next(&ask);
    if (found) out->version = count_at(&ask, 0);
    if (found && arena) {
        out->space = arena_copy(arena, space);
        out->key = arena_copy(arena, key);
        keep(&ask, 1, arena, &out->value);
        sql_heed(&ask, out->space.ptr && out->key.ptr ? OK : E_NOMEM);
    }
    enum code rc = sql_end(&ask);
    return rc || found ? rc : note_missing(space, key, err);
}

enum code sql_notes(struct store *store, struct str space, struct str after, size_t limit, struct arena *arena,
                    struct notes *out, struct error *err)
{
    struct sql_ask ask;
    size_t capacity = 0;
    struct str kept = arena_copy(arena, space);
    if (!kept.ptr) return error_nomem(err);
    sql_begin(&ask, store, SQL_NOTES, "read notes", err);
    sql_text(&ask, space);
    sql_text(&ask, after);
    sql_number(&ask, sql_clamp(limit));
    while (sql_next(&ask)) {
        if (!ARENA_ROOM(arena, out->items, out->count, &capacity)) {
            sql_heed(&ask, E_NOMEM);
            break;
        }
        struct note *note = &out->items[out->count++];
        *note = (struct note){.space = kept, .version = count_at(&ask, 1)};
        keep(&ask, 0, arena, &note->key);
        keep(&ask, 2, arena, &note->value);
    }
    return sql_end(&ask);
}

enum code sql_next_space(struct store *store, struct str after, struct arena *arena, struct str *out, struct error *err)
{
    struct sql_ask ask;
    *out = STR("");
    sql_begin(&ask, store, SQL_NEXT_SPACE, "read notes", err);
    sql_text(&ask, after);
    if (sql_next(&ask)) keep(&ask, 0, arena, out);
    return sql_end(&ask);
}

enum code sql_feed(struct store *store, uint64_t after, size_t limit, struct arena *arena, struct feed *out,
                   struct error *err)
{
    struct sql_ask ask;
    size_t capacity = 0;
    sql_begin(&ask, store, SQL_FEED, "read the feed", err);
    sql_number(&ask, sql_clamp(after));
    sql_number(&ask, sql_clamp(limit));
    while (sql_next(&ask)) {
        bool room = ARENA_ROOM(arena, out->items, out->count, &capacity);
        sql_heed(&ask, room ? sql_take_item(&ask.row, arena, &out->items[out->count++]) : E_NOMEM);
    }
    return sql_end(&ask);
}

enum code sql_feed_end(struct store *store, uint64_t *out, struct error *err)
{
    struct sql_ask ask;
    sql_begin(&ask, store, SQL_FEED_END, "find the end of the feed", err);
    if (sql_next(&ask)) *out = count_at(&ask, 0);
    return sql_end(&ask);
}

// ---- what is gone, and what waits

enum code sql_tombstones(struct store *store, struct arena *arena, struct tombstones *out, struct error *err)
{
    struct sql_ask ask;
    size_t capacity = 0;
    sql_begin(&ask, store, SQL_TOMBSTONES, "read tombstones", err);
    while (sql_next(&ask)) {
        const struct sql_row *row = &ask.row;
        struct tombstone one = {.position = count_at(&ask, 0),
                                .tenant = row->bytes(row, 1),
                                .run = row->bytes(row, 2),
                                .last_seq = count_at(&ask, 3),
                                .last_ledger_seq = count_at(&ask, 4),
                                .removed_ms = row->number(row, 7),
                                .reason = row->bytes(row, 8)};
        bool whole = sql_take_digest(row, 5, &one.head) && sql_take_digest(row, 6, &one.ledger_head);
        sql_heed(&ask, !whole ? E_CORRUPT : tombstone_add(out, &capacity, arena, &one) ? OK : E_NOMEM);
    }
    return sql_end(&ask);
}

enum code sql_missing(struct store *store, struct arena *arena, struct faults *out, struct error *err)
{
    struct sql_ask ask;
    sql_begin(&ask, store, SQL_MISSING, "look for missing runs", err);
    while (sql_next(&ask)) sql_heed(&ask, sql_take_missing(&ask.row, arena, out));
    return sql_end(&ask);
}

enum code sql_inbox(struct store *store, int64_t engine, struct arena *arena, struct inbox_item **items, size_t *count,
                    struct error *err)
{
    struct sql_ask ask;
    size_t capacity = 0;
    sql_begin(&ask, store, SQL_INBOX, "look into the inbox", err);
    sql_number(&ask, engine ? engine : -1); // then only those of ended runs
    while (sql_next(&ask)) {
        if (!ARENA_ROOM(arena, *items, *count, &capacity)) {
            sql_heed(&ask, E_NOMEM);
            break;
        }
        struct inbox_item *item = &(*items)[(*count)++];
        *item = (struct inbox_item){.id = ask.row.number(&ask.row, 0)};
        struct str *const texts[] = {&item->tenant, &item->run, &item->signal_id, &item->bytes};
        for (int i = 0; i < (int)ARRAY_COUNT(texts); i++) keep(&ask, i + 1, arena, texts[i]);
    }
    return sql_end(&ask);
}

enum code sql_newest_run(struct store *store, int64_t *run_no, struct error *err)
{
    struct sql_ask ask;
    sql_begin(&ask, store, SQL_NEWEST_RUN, "list runs", err);
    *run_no = sql_next(&ask) ? ask.row.number(&ask.row, 0) : 0;
    return sql_end(&ask);
}
