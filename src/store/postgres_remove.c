// Removing runs through the one door for it, and where the bytes are.
#include "store/postgres.h"

static enum code refusal(struct pg_store *store, const PGresult *result, struct error *err)
{
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    struct str first = str_cut(str_from(detail), ' ', &(struct str){0});
    if (pg_state_is(result, "CA005")) return error_set(err, E_LOCKED, "a run is owned by process %.*s", STR_ARG(first));
    if (pg_state_is(result, "CA006")) return error_set(err, E_NOT_FOUND, "there is no run %s", detail);
    if (pg_state_is(result, "CA007")) return error_set(err, E_CONFLICT, "run %s has not ended", detail);
    return pg_code(store, result, "remove runs", err);
}

enum code pg_remove(struct store *base, const struct run_name *runs, size_t count, int64_t now_ms, struct str reason,
                    struct error *err)
{
    INVARIANT(base->options.mode == STORE_WRITE && count > 0);
    struct pg_store *store = pg_of(base);
    pg_clear(store);
    pg_runs(store, runs, count);
    pg_int(store, now_ms);
    pg_text(store, reason);
    pg_int(store, store->engine);
    PGresult *result = NULL;
    struct error local = {0};
    bool lost;
    enum code rc = pg_once(store, PG_REMOVE, "remove runs", &result, &lost, &local);
    if (lost)
        rc = error_set(err, E_IO, "%s", local.message);
    else if (rc)
        rc = refusal(store, result, err);
    PQclear(result);
    return rc;
}

// ---- blobs

static enum code note_engines(struct pg_store *store, struct error *err)
{
    PGresult *rows = NULL;
    pg_clear(store);
    pg_int(store, store->engine);
    enum code rc = pg_query(store, PG_ENGINES_SEEN, "look who lives", &rows, err);
    if (!rc) store->blobs_engine = pg_get_int(rows, 0, 1) > 0 ? -1 : pg_get_int(rows, 0, 0);
    PQclear(rows);
    return rc;
}

enum code pg_blobs(struct store *base, struct arena *arena, struct digests *out, struct error *err)
{
    struct pg_store *store = pg_of(base);
    // A handle that is going to drop some is an engine by then, so that it is not taken for another program.
    enum code rc = base->options.mode == STORE_WRITE ? pg_become_engine(store, err) : OK;
    if (!rc) rc = note_engines(store, err);
    return rc ? rc : sql_blobs(base, arena, out, err);
}

enum code pg_drop_blobs(struct store *base, const struct digest *blobs, size_t count, uint64_t *bytes,
                        struct error *err)
{
    struct pg_store *store = pg_of(base);
    enum code rc = pg_become_engine(store, err);
    if (rc) return rc;
    if (store->blobs_engine < 0)
        return error_set(err, E_LOCKED, "blobs are kept while another process runs something in %s", store->where);
    pg_clear(store);
    pg_array(store, PG_BYTEA);
    for (size_t i = 0; i < count; i++) pg_array_text(store, (struct str){(const char *)blobs[i].b, SHA256_SIZE});
    pg_array_end(store);
    pg_int(store, store->engine);
    pg_int(store, store->blobs_engine);
    PGresult *result = NULL;
    struct error local = {0};
    bool lost;
    rc = pg_once(store, PG_DROP_BLOBS, "drop blobs", &result, &lost, &local);
    if (!rc)
        *bytes += (uint64_t)pg_get_int(result, 0, 0);
    else if (pg_state_is(result, "CA005"))
        rc = error_set(err, E_LOCKED, "blobs are kept while another process %s in %s",
                       PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY), store->where);
    else
        rc = error_set(err, lost ? E_IO : rc, "%s", local.message);
    PQclear(result);
    return rc;
}

// ---- space

enum code pg_usage(struct store *base, struct arena *arena, struct usages *out, struct error *err)
{
    struct pg_store *store = pg_of(base);
    PGresult *rows = NULL;
    pg_clear(store);
    pg_text(store, str_from(store->place.schema));
    enum code rc = pg_query(store, PG_USAGE, "look at the space", &rows, err);
    for (int i = 0; !rc && i < PQntuples(rows); i++) {
        struct str what = arena_copy(arena, pg_get(rows, i, 0));
        if (!what.ptr ||
            !usage_add(out, arena, what.ptr, (uint64_t)pg_get_int(rows, i, 1), (uint64_t)pg_get_int(rows, i, 2)))
            rc = error_nomem(err);
    }
    PQclear(rows);
    return rc;
}
