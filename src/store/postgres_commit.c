// The one call of an append: everything of the batch goes to the server as arrays and is stored by one function, in one
// transaction, in one round trip (`append` in postgres/1.sql).
//
// When the connection is lost meanwhile, no answer says whether the transaction was committed. It wrote its number into our
// engine's row, so the row tells: on a new connection, after the backend of the old one has ended, the number is there or it is
// not. Then the batch is stored, or tried again. Only when no connection can be had does the caller learn E_IO (S10).
#include "base/civil.h"
#include "store/postgres.h"

#include <stdlib.h>

enum { KEY_SIZE = 16, TRIES_MAX = 10 };

// Created runs first, as the function wants them.
static struct commit_head **order_heads(const struct commit *commit, struct arena *turn, size_t *created)
{
    struct commit_head **heads = ARENA_ARRAY(turn, commit->head_count + 1, struct commit_head *);
    size_t at = 0;
    for (size_t i = 0; heads && i < commit->head_count; i++)
        if (commit->heads[i].create) heads[at++] = &commit->heads[i];
    *created = at;
    for (size_t i = 0; heads && i < commit->head_count; i++)
        if (!commit->heads[i].create) heads[at++] = &commit->heads[i];
    return heads;
}

struct heads {
    struct commit_head **items;
    size_t count, created;
    uint32_t *places; // by log->touched
};

// An array of one field of every head.
#define HEADS(put, type, field)                                                                                        \
    do {                                                                                                               \
        pg_array(store, type);                                                                                         \
        for (size_t i = 0; i < heads->count; i++) {                                                                    \
            const struct commit_head *head = heads->items[i];                                                          \
            put(store, field);                                                                                         \
        }                                                                                                              \
        pg_array_end(store);                                                                                           \
    } while (0)
#define HEAD_INT(field) HEADS(pg_array_int, PG_INT8, (int64_t)head->field)
#define HEAD_TEXT(text) HEADS(pg_array_text, PG_TEXT, text)
#define HEAD_DIGEST(field) HEADS(pg_array_text, PG_BYTEA, ((struct str){(const char *)head->field.b, SHA256_SIZE}))

static void head_args(struct pg_store *store, const struct heads *heads)
{
    pg_array(store, PG_INT8);
    for (size_t i = heads->created; i < heads->count; i++) pg_array_int(store, heads->items[i]->log->backend_id);
    pg_array_end(store);
    HEAD_INT(log->epoch);
    HEAD_INT(expect_seq);
    HEAD_INT(expect_ledger_seq);
    HEAD_INT(last_seq);
    HEAD_INT(ledger_seq);
    HEAD_DIGEST(head);
    HEAD_DIGEST(ledger_head);
    HEAD_INT(updated_ms);
    HEADS(pg_array_bool, PG_BOOL, head->terminal);
    HEAD_TEXT(str_from(run_status_name(head->summary.status)));
    HEAD_TEXT(str_from(head->summary.substatus));
    HEAD_INT(summary.counts.total);
    HEAD_INT(summary.counts.completed);
    HEAD_INT(summary.counts.failed);
    HEAD_INT(summary.counts.skipped);
    HEAD_INT(summary.running);
    HEAD_INT(summary.created_ms);
    HEAD_INT(summary.started_ms);
    HEAD_INT(summary.ended_ms);
    HEAD_TEXT(str_from(head->summary.cause));
}

static struct str run_text(const struct run_log *log, size_t which)
{
    const struct str texts[] = {log->ids.tenant,
                                log->ids.run,
                                log->ids.project,
                                log->ids.environment,
                                log->ids.plan_id,
                                log->ids.plan_version,
                                log->name,
                                str_from(vocabulary_name(log->vocabulary)),
                                {(const char *)log->document.b, SHA256_SIZE},
                                log->parent_run,
                                log->original_run};
    return texts[which];
}

static void run_args(struct pg_store *store, const struct heads *heads)
{
    enum { TEXTS = 11, DOCUMENT = 8 };
    for (size_t which = 0; which < TEXTS; which++) {
        pg_array(store, which == DOCUMENT ? PG_BYTEA : PG_TEXT);
        for (size_t i = 0; i < heads->created; i++) pg_array_text(store, run_text(heads->items[i]->log, which));
        pg_array_end(store);
    }
    pg_array(store, PG_INT8);
    for (size_t i = 0; i < heads->created; i++) pg_array_int(store, heads->items[i]->log->shard);
    pg_array_end(store);
}

#define ITEMS(list, put, type, field)                                                                                  \
    do {                                                                                                               \
        pg_array(store, type);                                                                                         \
        for (size_t i = 0; i < commit->list##_count; i++) put(store, field);                                           \
        pg_array_end(store);                                                                                           \
    } while (0)

static void event_args(struct pg_store *store, const struct commit *commit, const struct heads *heads)
{
#define EVENT (&commit->events[i])
    ITEMS(event, pg_array_int4, PG_INT4, (int32_t)heads->places[EVENT->log->touched]);
    ITEMS(event, pg_array_text, PG_TEXT, EVENT->log->ids.tenant);
    ITEMS(event, pg_array_text, PG_TEXT, EVENT->log->ids.run);
    ITEMS(event, pg_array_int, PG_INT8, (int64_t)EVENT->seq);
    ITEMS(event, pg_array_text, PG_TEXT, EVENT->encoded.type);
    pg_array(store, PG_TEXT);
    char time[CIVIL_SIZE];
    int64_t time_ms = INT64_MIN;
    for (size_t i = 0; i < commit->event_count; i++) {
        if (EVENT->persisted_ms != time_ms) civil_format(time_ms = EVENT->persisted_ms, time);
        pg_array_text(store, (struct str){time, CIVIL_SIZE - 1});
    }
    pg_array_end(store);
    ITEMS(event, pg_array_text, PG_TEXT, sql_record(&EVENT->encoded).payload);
    ITEMS(event, pg_array_text, PG_TEXT, sql_record(&EVENT->encoded).prefix);
    ITEMS(event, pg_array_text, PG_TEXT, sql_record(&EVENT->encoded).suffix);
    ITEMS(event, pg_array_text, PG_BYTEA, ((struct str){(const char *)EVENT->encoded.key.b, KEY_SIZE}));
#undef EVENT
}

static void put_signal(struct pg_store *store, struct str signal_id)
{
    if (signal_id.len)
        pg_array_text(store, signal_id);
    else
        pg_array_null(store);
}

static void ledger_args(struct pg_store *store, const struct commit *commit, const struct heads *heads)
{
#define ENTRY (&commit->ledger[i])
    ITEMS(ledger, pg_array_int4, PG_INT4, (int32_t)heads->places[ENTRY->log->touched]);
    ITEMS(ledger, pg_array_text, PG_TEXT, ENTRY->log->ids.tenant);
    ITEMS(ledger, pg_array_int, PG_INT8, (int64_t)ENTRY->ledger_seq);
    ITEMS(ledger, pg_array_int, PG_INT8, (int64_t)ENTRY->after_seq);
    ITEMS(ledger, pg_array_text, PG_TEXT, ENTRY->kind);
    ITEMS(ledger, put_signal, PG_TEXT, ENTRY->signal_id);
    ITEMS(ledger, pg_array_text, PG_TEXT, ENTRY->bytes);
    ITEMS(ledger, pg_array_text, PG_BYTEA, ((struct str){(const char *)ENTRY->hash.b, SHA256_SIZE}));
#undef ENTRY
}

static void beside_args(struct pg_store *store, const struct commit *commit)
{
    ITEMS(blob, pg_array_text, PG_BYTEA, ((struct str){(const char *)commit->blobs[i].sha256.b, SHA256_SIZE}));
    ITEMS(blob, pg_array_text, PG_BYTEA, commit->blobs[i].bytes);
    ITEMS(inbox, pg_array_int, PG_INT8, commit->inbox_done[i]);
    ITEMS(note, pg_array_text, PG_TEXT, commit->notes[i].space);
    ITEMS(note, pg_array_text, PG_BYTEA, commit->notes[i].key);
    ITEMS(note, pg_array_text, PG_BYTEA, commit->notes[i].value);
    ITEMS(note, pg_array_int, PG_INT8, (int64_t)commit->notes[i].before);
    ITEMS(note, pg_array_int, PG_INT8, (int64_t)commit->notes[i].after);
}

static void append_args(struct pg_store *store, const struct commit *commit, const struct heads *heads)
{
    pg_clear(store);
    pg_int(store, store->engine);
    pg_int(store, ++store->token);
    pg_int(store, store->place.lease_ms);
    head_args(store, heads);
    run_args(store, heads);
    event_args(store, commit, heads);
    ledger_args(store, commit, heads);
    beside_args(store, commit);
    pg_released_args(store);
}

// ---- answers

static int64_t detail(const PGresult *result)
{
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    return text ? strtoll(text, NULL, 10) : 0;
}

static enum code refusal(struct pg_store *store, const struct commit *commit, const struct heads *heads,
                         const PGresult *result, struct error *err)
{
    int64_t place = detail(result);
    if (pg_state_is(result, "CA001"))
        return error_set(err, E_EXISTS, "run %s exists", PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL));
    if (pg_state_is(result, "CA002") && place > 0 && (size_t)place <= heads->count)
        return error_set(err, E_CONFLICT, "run %.*s belongs to another owner now",
                         STR_ARG(heads->items[place - 1]->log->ids.run));
    if (pg_state_is(result, "CA003") && place > 0 && (size_t)place <= commit->note_count)
        return note_conflict(&commit->notes[place - 1], err);
    if (pg_state_is(result, "CA004") && store->several) return pg_fenced(store, err);
    if (pg_state_is(result, "CA004"))
        return error_set(err, E_IO, "%s: this engine was declared dead; it must begin again", store->where);
    return pg_code(store, result, "store a batch", err);
}

// The numbers of the created runs: an array of int8 in binary form.
static bool take_numbers(const PGresult *result, const struct heads *heads)
{
    enum { HEAD = 20, EACH = 12 };
    struct str bytes = pg_get(result, 0, 0);
    if (heads->created == 0) return true;
    if (bytes.len != HEAD + EACH * heads->created) return false;
    for (size_t i = 0; i < heads->created; i++) {
        uint64_t number = 0;
        const unsigned char *from = (const unsigned char *)bytes.ptr + HEAD + EACH * i + 4;
        for (size_t k = 0; k < 8; k++) number = number << 8 | from[k];
        heads->items[i]->backend_id = (int64_t)number;
    }
    return true;
}

// After a lost connection: whether the transaction with our last number was committed.
static enum code find_out(struct pg_store *store, bool *stored, struct error *err)
{
    PGresult *result = NULL;
    pg_clear(store);
    pg_int(store, store->engine);
    enum code rc = pg_query(store, PG_TOKEN, "find out what was stored", &result, err);
    if (rc) return rc;
    *stored = pg_get_int(result, 0, 0) == store->token;
    PQclear(result);
    return OK;
}

static enum code find_numbers(struct pg_store *store, const struct heads *heads, struct error *err)
{
    enum code rc = OK;
    for (size_t i = 0; i < heads->created && !rc; i++) {
        PGresult *result = NULL;
        pg_clear(store);
        pg_text(store, heads->items[i]->log->ids.tenant);
        pg_text(store, heads->items[i]->log->ids.run);
        rc = pg_query(store, PG_FIND_RUN, "find out what was stored", &result, err);
        if (!rc && PQntuples(result) == 1) heads->items[i]->backend_id = pg_get_int(result, 0, 0);
        PQclear(result);
    }
    return rc;
}

// How long the server lets the append wait for a lock. Said again only when it changes.
static void set_patience(struct pg_store *store, int64_t wait_ms)
{
    char sql[64];
    if (wait_ms <= 0 || wait_ms > pg_wait_ms(store)) wait_ms = pg_wait_ms(store);
    if (wait_ms == store->lock_timeout_ms) return;
    snprintf(sql, sizeof(sql), "SET lock_timeout=%lld", (long long)wait_ms);
    PGresult *result = PQexec(store->link, sql);
    if (PQresultStatus(result) == PGRES_COMMAND_OK) store->lock_timeout_ms = wait_ms;
    PQclear(result); // a lost connection is found by what follows
}

static enum code send(struct pg_store *store, const struct commit *commit, const struct heads *heads, struct error *err)
{
    int64_t began_ms = os_now().mono_ms;
    for (int tries = 0;; tries++) {
        // Known before anything was sent: nothing of it is stored.
        if (commit->wait_ms > 0 && !pg_comes_back(store, commit->wait_ms))
            return error_set(err, E_LOCKED, "cannot store a batch: %s is away", store->where);
        if (store->base.fenced) return pg_fenced(store, err);
        set_patience(store, commit->wait_ms);
        PGresult *result = NULL;
        struct error local = {0};
        bool lost, stored = false;
        append_args(store, commit, heads);
        enum code rc = pg_once(store, PG_APPEND, "store a batch", &result, &lost, &local);
        if (!rc && !take_numbers(result, heads))
            rc = error_set(err, E_CORRUPT, "%s: append gave no numbers", store->where);
        bool again = pg_state_is(result, "40001") || pg_state_is(result, "40P01");
        if (rc && !lost && !(again && tries < TRIES_MAX)) rc = refusal(store, commit, heads, result, err);
        PQclear(result);
        if (!lost && !(rc && again && tries < TRIES_MAX)) return rc;
        if (!lost) continue;
        rc = pg_reconnect(store, err);
        // With our row went the number: the batch may be stored, and the engine that has its runs now goes on from there. So do we, as
        // after any fence: nothing of ours counts any more, and the caller asks again.
        if (!rc && store->base.fenced) return pg_fenced(store, err);
        if (!rc) rc = find_out(store, &stored, err);
        if (!rc && stored) rc = find_numbers(store, heads, err);
        if (rc) return error_set(err, E_IO, "cannot tell whether a batch was stored: %s", local.message);
        if (stored) return OK;
        if (commit->wait_ms > 0 && os_now().mono_ms - began_ms > commit->wait_ms)
            return error_set(err, E_LOCKED, "cannot store a batch: %s was away for longer than it may be waited for",
                             store->where);
    }
}

enum code pg_commit(struct store *base, struct commit *commit, struct arena *turn, struct error *err)
{
    INVARIANT(base->options.mode == STORE_WRITE);
    struct pg_store *store = pg_of(base);
    enum code rc = pg_become_engine(store, err);
    if (rc) return rc;
    struct heads heads = {.count = commit->head_count};
    heads.items = order_heads(commit, turn, &heads.created);
    uint32_t last = 0;
    for (size_t i = 0; i < commit->head_count; i++)
        last = commit->heads[i].log->touched > last ? commit->heads[i].log->touched : last;
    heads.places = ARENA_ARRAY(turn, (size_t)last + 1, uint32_t);
    if (!heads.items || !heads.places) return error_nomem(err);
    for (size_t i = 0; i < heads.count; i++) {
        heads.items[i]->backend_id = heads.items[i]->log->backend_id;
        heads.places[heads.items[i]->log->touched] = (uint32_t)i + 1;
    }
    rc = send(store, commit, &heads, err);
    if (rc) return rc;
    store->released.count = 0;
    store->idle_polls = 0;
    store->plans.rows += commit->event_count + commit->ledger_count;
    store->renew_at_ms = os_now().mono_ms + store->place.lease_ms / 3;
    return OK;
}
