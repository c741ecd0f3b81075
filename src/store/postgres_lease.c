// Who owns a run. Every writing handle is an engine with a number and a row of its own. It lives as long as its session, shown by
// an advisory lock that the server lets go of when the connection ends, however it ends; with a lease (lease= in the URL) it lives
// until the time in its row, which it moves on by the database's clock. A run of an engine that does not live is free.
//
// Neither is what keeps runs safe: a claim raises the epoch, and an append of an older one is refused inside its transaction.
#include "store/postgres.h"

#include <stdlib.h>
#include <unistd.h>

enum { IDLE_POLLS = 2 };

// ---- engines

enum code pg_become_engine(struct pg_store *store, struct error *err)
{
    if (store->engine) return OK;
    PGresult *rows = NULL;
    pg_clear(store);
    pg_text(store, str_from(store->id));
    pg_int(store, getpid());
    pg_text(store, str_from(store->host));
    pg_int(store, store->place.lease_ms);
    enum code rc = pg_query(store, PG_JOIN, "join the engines", &rows, err);
    if (rc) return rc;
    store->engine = pg_get_int(rows, 0, 0);
    store->renew_at_ms = os_now().mono_ms + store->place.lease_ms / 3;
    PQclear(rows);
    return OK;
}

enum code pg_hold_engine(struct pg_store *store, struct error *err)
{
    PGresult *result = NULL;
    bool lost;
    pg_clear(store);
    pg_int(store, store->engine);
    enum code rc = pg_once(store, PG_HOLD, "join the engines again", &result, &lost, err);
    // One among others was taken for dead meanwhile. The connection is good, and the next write on it returns the error.
    if (pg_state_is(result, "CA004") && store->several && pg_fenced(store, err) == E_CONFLICT) rc = OK;
    PQclear(result);
    return rc;
}

// A process that is gone leaves its session behind for a moment.
static bool lingers(const struct pg_store *store, struct str host, int64_t pid, unsigned *tries)
{
    return str_is(host, store->host) && os_lock_lingers(pid, tries);
}

// A batch that a process of this machine was storing when it died is stored or not by the time its session has ended: a process that opens
// the store after it sees the one or the other, and no change of mind.
enum code pg_settle(struct pg_store *store, struct error *err)
{
    unsigned tries = 0;
    for (bool again = true; again;) {
        PGresult *rows = NULL;
        pg_clear(store);
        enum code rc = pg_query(store, PG_LIVING, "look who lives", &rows, err);
        again = false;
        for (int i = 0; !rc && !again && i < PQntuples(rows); i++)
            again = pg_get_bool(rows, i, 3) && lingers(store, pg_get(rows, i, 2), pg_get_int(rows, i, 1), &tries);
        PQclear(rows);
        if (rc) return rc;
    }
    return OK;
}

static enum code look_for_living(struct pg_store *store, struct run_head *heads, const int64_t *owners, size_t count,
                                 bool *again, unsigned *tries, struct error *err)
{
    PGresult *rows = NULL;
    *again = false;
    pg_clear(store);
    enum code rc = pg_query(store, PG_LIVING, "look who lives", &rows, err);
    for (int row = 0; !rc && row < PQntuples(rows); row++)
        for (size_t i = 0; i < count && !*again; i++) {
            if (owners[i] != pg_get_int(rows, row, 0)) continue;
            heads[i].owned = true;
            heads[i].owner_pid = pg_get_int(rows, row, 1);
            *again = lingers(store, pg_get(rows, row, 2), heads[i].owner_pid, tries);
        }
    PQclear(rows);
    return rc;
}

enum code pg_mark_owned(struct pg_store *store, struct run_head *heads, const int64_t *owners, size_t count,
                        struct error *err)
{
    bool others = false, again;
    unsigned tries = 0;
    for (size_t i = 0; i < count; i++) others |= owners[i] && owners[i] != store->engine;
    do {
        for (size_t i = 0; i < count; i++) {
            heads[i].owned = owners[i] && owners[i] == store->engine;
            heads[i].owner_pid = heads[i].owned ? getpid() : 0;
        }
        enum code rc = others ? look_for_living(store, heads, owners, count, &again, &tries, err) : OK;
        if (rc) return rc;
    } while (others && again);
    return OK;
}

// ---- claims

void pg_released_args(struct pg_store *store)
{
    pg_array(store, PG_INT8);
    for (size_t i = 0; i < store->released.count; i++) pg_array_int(store, store->released.items[i].run_no);
    pg_array_end(store);
    pg_array(store, PG_INT8);
    for (size_t i = 0; i < store->released.count; i++) pg_array_int(store, (int64_t)store->released.items[i].epoch);
    pg_array_end(store);
}

// "123 host boot": whose process it is, and whether it may only linger.
static enum code owned_by(struct pg_store *store, const PGresult *result, struct str run, bool *again, unsigned *tries,
                          struct error *err)
{
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    struct str host, pid = str_cut(str_from(detail), ' ', &host);
    int64_t number = 0;
    (void)str_int64(pid, &number);
    *again = number && lingers(store, host, number, tries);
    if (*again) return OK;
    if (number == 0) return error_set(err, E_LOCKED, "run %.*s is of a shard that nobody has just now", STR_ARG(run));
    bool here = str_is(host, store->host);
    struct str name = str_cut(host, ' ', &(struct str){0});
    return error_set(err, E_LOCKED, "run %.*s is owned by process %lld%s%.*s", STR_ARG(run), (long long)number,
                     here ? "" : " on ", here ? 0 : (int)name.len, name.ptr);
}

static enum code claim(struct pg_store *store, struct str tenant, struct str run, struct error *err)
{
    unsigned tries = 0;
    bool again = false, lost = false;
    do {
        PGresult *result = NULL;
        struct error local = {0};
        bool was_lost = lost;
        pg_clear(store);
        pg_int(store, store->engine);
        pg_text(store, tenant);
        pg_text(store, run);
        pg_bool(store, was_lost);
        pg_released_args(store);
        again = false;
        enum code rc = pg_once(store, PG_CLAIM, "claim a run", &result, &lost, &local);
        if (lost) {
            rc = pg_reconnect(store, err);
            if (!rc && store->base.fenced) rc = pg_fenced(store, err);
        } else if (pg_state_is(result, "CA005"))
            rc = owned_by(store, result, run, &again, &tries, err);
        else if (pg_state_is(result, "CA006"))
            rc = run_missing(run, err);
        else if (pg_state_is(result, "CA004") && store->several)
            rc = pg_fenced(store, err);
        else if (pg_state_is(result, "40P01") || pg_state_is(result, "40001"))
            again = true;
        else if (rc)
            rc = error_set(err, rc, "%s", local.message);
        PQclear(result);
        if (rc && !again) return rc;
    } while (again || lost);
    return OK;
}

// Epochs only rise, and the engine that raises one becomes the owner: one that is still what we made it is ours.
static bool taken_ahead(struct pg_store *store, const struct run_head *head)
{
    for (size_t i = 0; i < store->ahead_count; i++) {
        struct sql_released *one = &store->ahead[i];
        if (one->run_no != (int64_t)head->position) continue;
        bool ours = one->epoch == head->epoch;
        *one = store->ahead[--store->ahead_count];
        return ours;
    }
    return false;
}

enum code pg_claim_ahead(struct store *base, const struct run_name *runs, size_t count, struct error *err)
{
    struct pg_store *store = pg_of(base);
    while (store->ahead_count > 0) {
        const struct sql_released *one = &store->ahead[--store->ahead_count];
        sql_release(&store->released, one->run_no, one->epoch);
    }
    if (count == 0 || !base->member || !store->engine) return OK;
    void *room = realloc(store->ahead, count * sizeof(*store->ahead));
    if (!room) return error_nomem(err);
    store->ahead = room;
    pg_clear(store);
    pg_int(store, store->engine);
    pg_runs(store, runs, count);
    PGresult *rows = NULL;
    struct error local = {0};
    bool lost;
    enum code rc = pg_once(store, PG_CLAIM_AHEAD, "claim runs", &rows, &lost, &local);
    for (int i = 0; !rc && i < PQntuples(rows) && store->ahead_count < count; i++)
        store->ahead[store->ahead_count++] =
            (struct sql_released){pg_get_int(rows, i, 0), (uint64_t)pg_get_int(rows, i, 1)};
    bool fenced = pg_state_is(rows, "CA004");
    PQclear(rows);
    if (lost) return pg_connect_anew(store, err);
    if (fenced) return pg_fenced(store, err);
    return OK; // whatever else it was: the claims that follow find out
}

enum code pg_claim(struct store *base, struct str tenant, struct str run, struct run_head *out, struct arena *arena,
                   int64_t *backend_id, struct error *err)
{
    INVARIANT(base->options.mode == STORE_WRITE);
    struct pg_store *store = pg_of(base);
    enum code rc = pg_become_engine(store, err);
    if (!rc && store->ahead_count > 0) {
        rc = pg_head(base, tenant, run, arena, out, err);
        *backend_id = (int64_t)out->position;
        if (rc || taken_ahead(store, out)) return rc;
    }
    if (!rc) rc = claim(store, tenant, run, err);
    if (rc) return rc;
    store->released.count = 0;
    rc = pg_head(base, tenant, run, arena, out, err);
    *backend_id = (int64_t)out->position;
    return rc;
}

// Written with the next batch, or when there is none for a while: the end of a run must not cost a transaction.
void pg_release(struct store *base, struct run_log *log)
{
    INVARIANT(log->epoch > 0);
    sql_release(&pg_of(base)->released, log->backend_id, log->epoch);
}

static enum code flush_released(struct pg_store *store, struct error *err)
{
    if (store->released.count == 0) return OK;
    pg_clear(store);
    pg_int(store, store->engine);
    pg_released_args(store);
    enum code rc = pg_call(store, PG_RELEASE, "release runs", err);
    if (!rc) store->released.count = 0;
    return rc;
}

void pg_leave(struct pg_store *store)
{
    if (!store->engine) return;
    PGresult *result = NULL;
    bool lost;
    pg_clear(store);
    pg_int(store, store->engine);
    pg_released_args(store);
    // What cannot be said is found out: the session ends with us.
    enum code rc = pg_once(store, PG_LEAVE, "leave", &result, &lost, NULL);
    if (rc == OK) store->engine = 0;
    PQclear(result);
}

static enum code renew(struct pg_store *store, int64_t now_ms, struct error *err)
{
    if (!store->engine || !store->place.lease_ms || now_ms < store->renew_at_ms) return OK;
    pg_clear(store);
    pg_int(store, store->engine);
    pg_int(store, store->place.lease_ms);
    PGresult *result = NULL;
    struct error local = {0};
    bool lost;
    enum code rc = pg_once(store, PG_RENEW, "renew the lease", &result, &lost, &local);
    if (pg_state_is(result, "CA004") && store->several) rc = pg_fenced(store, &local);
    PQclear(result);
    if (lost) return pg_connect_anew(store, err); // asked again with the next look
    if (rc) return error_set(err, rc, "%s", local.message);
    store->renew_at_ms = now_ms + store->place.lease_ms / 3;
    return OK;
}

// ---- inbox

static enum code post(struct pg_store *store, const struct run_name *name, struct str signal_id, struct str bytes,
                      struct error *err)
{
    pg_clear(store);
    pg_text(store, name->tenant);
    pg_text(store, name->run);
    pg_text(store, signal_id);
    pg_bytes(store, bytes.ptr, bytes.len);
    PGresult *result = NULL;
    struct error local = {0};
    bool lost;
    enum code rc = pg_once(store, PG_POST, "post a signal", &result, &lost, &local);
    bool missing = pg_state_is(result, "CA006");
    PQclear(result);
    // Posted twice it is decided once: a signal has an id.
    if (lost) {
        rc = pg_reconnect(store, err);
        return rc ? rc : pg_call(store, PG_POST, "post a signal", err);
    }
    if (missing) return run_missing(name->run, err);
    return rc ? error_set(err, rc, "%s", local.message) : OK;
}

// The session of a reader takes no writes but this one.
enum code pg_post(struct store *base, struct str tenant, struct str run, struct str signal_id, struct str bytes,
                  struct error *err)
{
    struct pg_store *store = pg_of(base);
    const struct run_name name = {tenant, run};
    if (base->options.mode == STORE_WRITE) return post(store, &name, signal_id, bytes, err);
    store->posting = true; // also for a session that takes the place of a lost one
    enum code rc = pg_run(store, "SET default_transaction_read_only=off", "post a signal", NULL);
    if (rc) rc = pg_reconnect(store, err);
    if (!rc) rc = post(store, &name, signal_id, bytes, err);
    store->posting = false;
    if (pg_run(store, "SET default_transaction_read_only=on", "post a signal", NULL) != OK)
        os_log(LOG_WARN, "a session for reading takes writes until it ends");
    return rc;
}

// The engine asks twenty times a second at most: a look at an index that is empty most of the time.
enum code pg_inbox(struct store *base, struct arena *arena, struct inbox_item **items, size_t *count, struct error *err)
{
    struct pg_store *store = pg_of(base);
    enum code rc = OK;
    if (++store->idle_polls >= IDLE_POLLS) rc = flush_released(store, err);
    if (!rc) rc = renew(store, os_now().mono_ms, err);
    return rc ? rc : sql_inbox(base, store->engine, arena, items, count, err);
}
