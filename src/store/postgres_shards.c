// Several engines on one database (S17): what the functions of postgres/1.sql tell and do.
#include "store/postgres.h"

enum code pg_fenced(struct pg_store *store, struct error *err)
{
    store->engine = 0;
    store->released.count = store->ahead_count = 0;
    if (err) *err = (struct error){0};
    return shard_fenced(&store->base, err);
}

// An engine that could not renew while the server was away, or while another took its place, is not dead for that: nobody is taken for
// dead here for a lease's time after we have found it again. (A server that was started says so itself; one that was a standby does not.)
static bool is_patient(const struct pg_store *store)
{
    return os_now().mono_ms < store->patient_until_ms;
}

static void take_map(struct pg_store *store, const PGresult *rows, struct shard_map *out)
{
    *out = (struct shard_map){.self = (uint64_t)store->engine};
    for (int i = 0; i < PQntuples(rows); i++) {
        size_t at = (size_t)(pg_get_int(rows, i, 0) - 1);
        if (at >= SHARD_COUNT) continue;
        out->owner[at] = (uint64_t)pg_get_int(rows, i, 1);
        out->epoch[at] = (uint64_t)pg_get_int(rows, i, 2);
        out->members = (uint32_t)pg_get_int(rows, i, 4);
        if (out->owner[at] == out->self)
            out->mine |= UINT64_C(1) << at;
        else if (pg_get_bool(rows, i, 3) && (out->owner[at] == 0 || !is_patient(store)))
            out->free |= UINT64_C(1) << at;
    }
}

// Both may be done twice, so a lost connection is no question: what was done is seen the next time.
static enum code ask(struct pg_store *store, enum pg_statement which, void (*args)(struct pg_store *, const void *),
                     const void *given, const char *what, PGresult **out, struct error *err)
{
    enum { TRIES_MAX = 10 };
    for (int tries = 0;; tries++) {
        struct error local = {0};
        bool lost;
        pg_clear(store);
        args(store, given);
        enum code rc = pg_once(store, which, what, out, &lost, &local);
        if (rc == OK) return OK;
        bool fenced = pg_state_is(*out, "CA004");
        bool again = pg_state_is(*out, "40P01") || pg_state_is(*out, "40001");
        PQclear(*out);
        *out = NULL;
        if (lost) rc = pg_connect_anew(store, err);
        if (fenced || (!rc && store->base.fenced)) return pg_fenced(store, err);
        if (rc && !lost && !(again && tries < TRIES_MAX)) return error_set(err, rc, "%s", local.message);
        if (rc && lost) return rc;
    }
}

static void look_args(struct pg_store *store, const void *given)
{
    (void)given;
    pg_int(store, store->engine);
    pg_int(store, store->place.lease_ms);
}

static enum code look(struct pg_store *store, struct shard_map *out, struct error *err)
{
    PGresult *rows = NULL;
    enum code rc = ask(store, PG_SHARDS, look_args, NULL, "look at the shards", &rows, err);
    if (rc) return rc;
    take_map(store, rows, out);
    // Another program has brought the store to a format that we may not write to: we end before we do harm.
    int64_t needs = PQntuples(rows) > 0 ? pg_get_int(rows, 0, 5) : 0;
    PQclear(rows);
    if (needs > pg_known_format()) return pg_too_new(store, needs, err);
    store->renew_at_ms = os_now().mono_ms + store->place.lease_ms / 3;
    return OK;
}

enum code pg_shards(struct store *base, int64_t lease_ms, int64_t now_ms UNUSED, struct shard_map *out,
                    struct error *err)
{
    struct pg_store *store = pg_of(base);
    store->place.lease_ms = lease_ms;
    store->several = true;
    enum code rc = pg_become_engine(store, err);
    return rc ? rc : look(store, out, err);
}

struct moving {
    uint64_t take, give;
};

static void shard_array(struct pg_store *store, uint64_t shards)
{
    pg_array(store, PG_INT8);
    for (unsigned i = 0; i < SHARD_COUNT; i++)
        if (shards >> i & 1) pg_array_int(store, (int64_t)i + 1);
    pg_array_end(store);
}

static void move_args(struct pg_store *store, const void *given)
{
    const struct moving *moving = given;
    look_args(store, NULL);
    shard_array(store, moving->take);
    shard_array(store, moving->give);
}

enum code pg_move(struct store *base, uint64_t take, uint64_t give, int64_t now_ms UNUSED, struct shard_map *out,
                  struct error *err)
{
    struct pg_store *store = pg_of(base);
    struct moving moving = {take, give};
    PGresult *result = NULL;
    enum code rc = ask(store, PG_MOVE, move_args, &moving, "move shards", &result, err);
    PQclear(result);
    return rc ? rc : look(store, out, err);
}
