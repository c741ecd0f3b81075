// The connection: parameters, statements, what an error means, and what happens when it is lost.
//
// Everything goes over one connection, one call at a time. A call that was under way when the connection was lost may have been
// done: what only reads is asked again, an append finds out (postgres_commit.c). The backend of the lost connection may still be
// at work, so the server gets a request to end it, and it is waited for before anything else is done.
#include "store/postgres.h"

#include <arpa/inet.h>
#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WAIT_LIMIT_MS = 30 * 1000, TRIES_MAX = 10, RESULT_BINARY = 1 };

// The parameters are those of postgres_commit.c.
static const char append_sql[] =
    "SELECT "
    "append($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21,$22,$23,$24,$25,$26,$27,$28,"
    "$29,$30,$31,$32,$33,$34,$35,$36,$37,$38,$39,$40,$41,$42,$43,$44,$45,$46,$47,$48,$49,$50,$51,$52,$53,$54,$55,$56,$"
    "57,"
    "$58,$59,$60,$61,$62,$63,$64)";

static const char *const statement_text[] = {
#define X(name, text) text,
    PG_STATEMENTS(X)
#undef X
};

struct pg_store *pg_of(const struct store *store)
{
    return CONTAINER_OF((void *)(uintptr_t)store, struct pg_store, base);
}

int64_t pg_wait_ms(const struct pg_store *store)
{
    return store->base.options.lock_wait_ms > 0 ? store->base.options.lock_wait_ms : WAIT_LIMIT_MS;
}

void pg_pause(int64_t ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

// ---- parameters

void pg_clear(struct pg_store *store)
{
    buf_clear(&store->args.bytes);
    store->args.count = 0;
}

static void put32(struct buf *buf, uint32_t value)
{
    uint32_t wire = htonl(value);
    buf_add(buf, (struct str){(const char *)&wire, sizeof(wire)});
}

static void put64(struct buf *buf, int64_t value)
{
    uint64_t wire = htobe64((uint64_t)value);
    buf_add(buf, (struct str){(const char *)&wire, sizeof(wire)});
}

static void begin(struct pg_args *args)
{
    INVARIANT(args->count < PG_PARAMETERS_MAX);
    args->at[args->count] = args->bytes.len;
}

static void end(struct pg_args *args)
{
    args->len[args->count] = (int)(args->bytes.len - args->at[args->count]);
    args->count++;
}

void pg_int(struct pg_store *store, int64_t value)
{
    begin(&store->args);
    put64(&store->args.bytes, value);
    end(&store->args);
}

void pg_bool(struct pg_store *store, bool value)
{
    begin(&store->args);
    buf_byte(&store->args.bytes, value);
    end(&store->args);
}

void pg_text(struct pg_store *store, struct str value)
{
    begin(&store->args);
    buf_add(&store->args.bytes, value);
    end(&store->args);
}

void pg_bytes(struct pg_store *store, const void *bytes, size_t size)
{
    pg_text(store, (struct str){bytes, size});
}

// Dimensions, whether there are NULLs (Postgres ignores what is said), type, count, lower bound; then length and bytes of each.
enum { ARRAY_COUNT_AT = 12 };

void pg_array(struct pg_store *store, Oid type)
{
    struct pg_args *args = &store->args;
    begin(args);
    args->array = args->bytes.len;
    args->elements = 0;
    put32(&args->bytes, 1);
    put32(&args->bytes, 0);
    put32(&args->bytes, type);
    put32(&args->bytes, 0);
    put32(&args->bytes, 1);
}

void pg_array_int(struct pg_store *store, int64_t value)
{
    put32(&store->args.bytes, sizeof(value));
    put64(&store->args.bytes, value);
    store->args.elements++;
}

void pg_array_int4(struct pg_store *store, int32_t value)
{
    put32(&store->args.bytes, sizeof(value));
    put32(&store->args.bytes, (uint32_t)value);
    store->args.elements++;
}

void pg_array_bool(struct pg_store *store, bool value)
{
    put32(&store->args.bytes, 1);
    buf_byte(&store->args.bytes, value);
    store->args.elements++;
}

void pg_array_text(struct pg_store *store, struct str value)
{
    put32(&store->args.bytes, (uint32_t)value.len);
    buf_add(&store->args.bytes, value);
    store->args.elements++;
}

void pg_array_null(struct pg_store *store)
{
    put32(&store->args.bytes, UINT32_MAX);
    store->args.elements++;
}

void pg_array_end(struct pg_store *store)
{
    struct pg_args *args = &store->args;
    if (buf_ok(&args->bytes)) {
        uint32_t count = htonl(args->elements);
        memcpy(args->bytes.ptr + args->array + ARRAY_COUNT_AT, &count, sizeof(count));
        if (args->elements == 0) { // an array without elements has no dimension
            memset(args->bytes.ptr + args->array, 0, sizeof(count));
            args->bytes.len = args->array + ARRAY_COUNT_AT;
            args->bytes.ptr[args->bytes.len] = '\0';
        }
    }
    end(args);
}

void pg_runs(struct pg_store *store, const struct run_name *runs, size_t count)
{
    pg_array(store, PG_TEXT);
    for (size_t i = 0; i < count; i++) pg_array_text(store, runs[i].tenant);
    pg_array_end(store);
    pg_array(store, PG_TEXT);
    for (size_t i = 0; i < count; i++) pg_array_text(store, runs[i].run);
    pg_array_end(store);
}

// ---- results

int64_t pg_get_int(const PGresult *result, int row, int column)
{
    uint64_t wire = 0;
    if (PQgetlength(result, row, column) != sizeof(wire)) return 0;
    memcpy(&wire, PQgetvalue(result, row, column), sizeof(wire));
    return (int64_t)be64toh(wire);
}

bool pg_get_bool(const PGresult *result, int row, int column)
{
    return PQgetlength(result, row, column) == 1 && *PQgetvalue(result, row, column) == 1;
}

struct str pg_get(const PGresult *result, int row, int column)
{
    return (struct str){PQgetvalue(result, row, column), (size_t)PQgetlength(result, row, column)};
}

bool pg_copy(const PGresult *result, int row, int column, struct arena *arena, struct str *out)
{
    *out = arena_copy(arena, pg_get(result, row, column));
    return out->ptr != NULL;
}

// ---- errors

bool pg_state_is(const PGresult *result, const char *state)
{
    const char *got = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    return got && strcmp(got, state) == 0;
}

static bool class_is(const char *state, const char *class)
{
    return strncmp(state, class, 2) == 0;
}

// 57P01 admin_shutdown, 57P02 crash_shutdown, 57P03 cannot_connect_now, 57P05 idle_session_timeout: the backend has gone. A failure
// without a state is not from the server: after a write that failed libpq believes for a while that the connection is good.
static bool pg_is_lost(const struct pg_store *store, const PGresult *result)
{
    if (PQstatus(store->link) == CONNECTION_BAD) return true;
    const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    return !state || class_is(state, "08") || strncmp(state, "57P0", 4) == 0;
}

struct meaning {
    const char *state; // five characters, or two for a class
    enum code code;
    const char *text;
};
static const struct meaning meanings[] = {
    {"53100", E_FULL, "no space left on the server"},
    {"53200", E_FULL, "the server is out of memory"},
    {"53300", E_UNREACHABLE,
     "the server has no connection left (max_connections, or a limit of the role or the database)"},
    {"25006", E_DENIED, "the server takes no writes (a standby, or default_transaction_read_only)"},
    {"42501", E_DENIED, "the role lacks a right"},
    {"28", E_DENIED, "the server does not let this role in"},
    {"3D000", E_UNREACHABLE, "there is no such database"},
    {"55P03", E_LOCKED, "another session holds a lock"},
    {"57014", E_LOCKED, "the server cancelled it (statement_timeout?)"},
    {"40", E_LOCKED, "other sessions were in the way, again and again"},
    {"57P", E_UNREACHABLE, "the server is starting or stopping"},
    {"08", E_UNREACHABLE, "the connection failed"},
    {"22021", E_INVALID, "a text that is not UTF-8"},
    {"22P05", E_INVALID, "a text that cannot be stored"},
    {"54", E_LIMIT, "too big"},
    {"53", E_FULL, "the server lacks a resource"},
    {"XX001", E_CORRUPT, "the server found damaged data"},
    {"XX002", E_CORRUPT, "the server found a damaged index"},
    {"23", E_CONFLICT, "what is stored does not allow it"},
    {"CA0", E_CONFLICT, "the state has changed meanwhile"},
    {"42P01", E_CORRUPT, "a table of the store is missing"},
    {"42883", E_CORRUPT, "a function of the store is missing"},
    {"0A000", E_UNSUPPORTED, "not supported"},
};

enum code pg_code(struct pg_store *store, const PGresult *result, const char *what, struct error *err)
{
    const char *state = result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    const char *primary = result ? PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY) : NULL;
    if (!primary) primary = PQerrorMessage(store->link);
    struct str text = str_trim(str_from(primary));
    size_t line = str_find(text, '\n', 0);
    text.len = line < text.len ? line : text.len;
    for (size_t i = 0; state && i < ARRAY_COUNT(meanings); i++)
        if (strncmp(state, meanings[i].state, strlen(meanings[i].state)) == 0)
            return error_set(err, meanings[i].code, "cannot %s: %s: %s: %.*s (SQLSTATE %s)", what, store->where,
                             meanings[i].text, STR_ARG(text), state);
    return error_set(err, E_IO, "cannot %s: %s: %.*s%s%s", what, store->where, STR_ARG(text),
                     state ? ", SQLSTATE " : "", state ? state : "");
}

// ---- calls

static PGresult *prepare(struct pg_store *store, enum pg_statement which)
{
    char name[16];
    snprintf(name, sizeof(name), "s%d", (int)which);
    const char *text = which == PG_APPEND ? append_sql : which == PG_ADVISE ? pg_advise_sql : statement_text[which];
    PGresult *result = PQprepare(store->link, name, text, 0, NULL);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) return result;
    PQclear(result);
    store->prepared[which] = true;
    return NULL;
}

static void plan_anew(struct pg_store *store)
{
    enum { ROWS_FIRST = 128, PAUSE_FIRST_MS = 2000, PAUSE_MAX_MS = 64000 };
    struct pg_plans *plans = &store->plans;
    int64_t now_ms = os_now().mono_ms;
    bool first = plans->pause_ms == 0;
    if (!first && plans->rows < plans->rows_next && now_ms < plans->next_ms) return;
    // Nothing depends on it: the next call finds a connection that is lost.
    if (!first) PQclear(PQexec(store->link, "DISCARD PLANS"));
    plans->rows_next = plans->rows < ROWS_FIRST ? ROWS_FIRST : plans->rows * 2;
    plans->pause_ms = first ? PAUSE_FIRST_MS : plans->pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : plans->pause_ms * 2;
    plans->next_ms = now_ms + plans->pause_ms;
}

static PGresult *execute(struct pg_store *store, enum pg_statement which)
{
    plan_anew(store);
    struct pg_args *args = &store->args;
    const char *values[PG_PARAMETERS_MAX];
    int formats[PG_PARAMETERS_MAX];
    for (int i = 0; i < args->count; i++) {
        values[i] = args->bytes.ptr + args->at[i];
        formats[i] = RESULT_BINARY;
    }
    if (!store->prepared[which]) {
        PGresult *failed = prepare(store, which);
        if (failed) return failed;
    }
    char name[16];
    snprintf(name, sizeof(name), "s%d", (int)which);
    return PQexecPrepared(store->link, name, args->count, values, args->len, formats, RESULT_BINARY);
}

// A commit waits for its standbys. A person who cancels the wait (pg_cancel_backend) makes the server answer as if it had come to its end,
// with a warning beside it: what was written is in the log of this machine alone. Standbys get the log in its order, so a later
// transaction that waited to its end says that they have all of it. The text of the warning is in the language of the server.
static bool wait_for_standbys(struct pg_store *store)
{
    while (store->warned) {
        store->warned = false;
        PGresult *result = PQexec(store->link, "SELECT pg_logical_emit_message(true,'cairn','')");
        bool done = PQresultStatus(result) == PGRES_TUPLES_OK;
        PQclear(result);
        if (!done) return false;
    }
    return true;
}

enum code pg_once(struct pg_store *store, enum pg_statement which, const char *what, PGresult **out, bool *lost,
                  struct error *err)
{
    *out = NULL;
    *lost = false;
    if (!buf_ok(&store->args.bytes)) return error_nomem(err);
    store->warned = false;
    PGresult *result = execute(store, which);
    ExecStatusType status = PQresultStatus(result);
    *out = result;
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        bool writes = store->base.options.mode == STORE_WRITE || store->posting;
        if (!writes || wait_for_standbys(store)) return OK;
        *lost = true; // whether it will last is not known
        return error_set(err, E_UNREACHABLE, "cannot %s: %s: a standby has not got it", what, store->where);
    }
    *lost = pg_is_lost(store, result);
    return pg_code(store, result, what, err);
}

enum code pg_query(struct pg_store *store, enum pg_statement which, const char *what, PGresult **out, struct error *err)
{
    int64_t until_ms = 0; // of tries after the connection was lost
    if (store->away_since_ms != 0 && pg_away(&store->base))
        return error_set(err, E_AWAY, "cannot %s: %s is away", what, store->where);
    for (int tries = 0;; tries++) {
        bool lost;
        struct error local = {0};
        enum code rc = pg_once(store, which, what, out, &lost, &local);
        if (rc == OK) return OK;
        bool again = tries < TRIES_MAX && (pg_state_is(*out, "40001") || pg_state_is(*out, "40P01"));
        if (lost && until_ms == 0) until_ms = os_now().mono_ms + pg_wait_ms(store);
        if (lost ? os_now().mono_ms > until_ms : !again) {
            PQclear(*out);
            *out = NULL;
            return error_set(err, lost && store->impatient ? E_AWAY : rc, "%s", local.message);
        }
        PQclear(*out);
        *out = NULL;
        rc = lost ? pg_connect_anew(store, err) : OK;
        if (rc) return rc;
    }
}

enum code pg_call(struct pg_store *store, enum pg_statement which, const char *what, struct error *err)
{
    PGresult *result = NULL;
    enum code rc = pg_query(store, which, what, &result, err);
    PQclear(result);
    return rc;
}

enum code pg_run(struct pg_store *store, const char *sql, const char *what, struct error *err)
{
    PGresult *result = PQexec(store->link, sql);
    ExecStatusType status = PQresultStatus(result);
    enum code rc = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? OK : pg_code(store, result, what, err);
    PQclear(result);
    return rc;
}

// ---- a lost connection

// Whatever the old backend was doing has been done, or never will be.
static enum code end_old_backend(struct pg_store *store, int64_t until_ms, struct error *err)
{
    char sql[320];
    snprintf(sql, sizeof(sql),
             "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name='cairn %s' "
             "AND datname=current_database() AND pid<>pg_backend_pid()",
             store->id);
    for (;;) {
        PGresult *result = PQexec(store->link, sql);
        bool good = PQresultStatus(result) == PGRES_TUPLES_OK;
        int left = good ? PQntuples(result) : 0;
        enum code rc = good ? OK : pg_code(store, result, "end a lost session", err);
        PQclear(result);
        if (rc || left == 0) return rc;
        if (os_now().mono_ms > until_ms)
            return error_set(err, E_IO, "%s: the session of a lost connection does not end", store->where);
        pg_pause(5);
    }
}

static enum code connect_again(struct pg_store *store, int64_t until_ms, struct error *err)
{
    enum code rc = pg_connect(store, err);
    if (!rc) rc = end_old_backend(store, until_ms, err);
    if (!rc && store->engine) rc = pg_hold_engine(store, err);
    return rc;
}

static bool may_come_back(enum code rc)
{
    return rc == E_UNREACHABLE || rc == E_IO || rc == E_LOCKED;
}

// The parameters of the call that failed are kept for the next try.
static enum code try_again(struct pg_store *store, int64_t until_ms, struct error *err)
{
    struct pg_args kept = store->args;
    buf_init(&store->args.bytes, SIZE_MAX / 4);
    enum code rc = connect_again(store, until_ms, err);
    buf_release(&store->args.bytes);
    store->args = kept;
    return rc;
}

static void is_back(struct pg_store *store, int64_t lost_ms)
{
    int64_t now_ms = os_now().mono_ms, lease_ms = store->place.lease_ms;
    if (now_ms - lost_ms > lease_ms / 4) store->patient_until_ms = now_ms + lease_ms;
    store->away_since_ms = 0;
}

enum code pg_reconnect(struct pg_store *store, struct error *err)
{
    int64_t lost_ms = os_now().mono_ms, until_ms = lost_ms + pg_wait_ms(store);
    enum code rc;
    struct error local;
    for (int64_t pause_ms = 10;; pause_ms = pause_ms < 500 ? pause_ms * 2 : 500) {
        local = (struct error){0};
        rc = try_again(store, until_ms, &local);
        if (rc == OK || os_now().mono_ms + pause_ms > until_ms || !may_come_back(rc)) break;
        pg_pause(pause_ms);
    }
    if (rc == OK) is_back(store, lost_ms);
    if (rc == OK) return OK;
    // Nobody knows what became of the call: whatever the reason, the handle has come to its end (S10).
    return error_set(err, E_IO, "the connection was lost, and there is no new one: %s", local.message);
}

// ---- a server that is away

// Whether the connection has ended, as far as this side can know without asking: the last words of a server, and the end of the stream, are
// there to be read.
static bool has_ended(const struct pg_store *store)
{
    for (int looks = 0; looks < 3 && PQstatus(store->link) == CONNECTION_OK; looks++) {
        struct pollfd one = {.fd = PQsocket(store->link), .events = POLLIN};
        if (poll(&one, 1, 0) <= 0 || !PQconsumeInput(store->link)) break;
    }
    return PQstatus(store->link) != CONNECTION_OK;
}

static void is_lost(struct pg_store *store)
{
    os_log(LOG_WARN, "the connection to the store was lost where=\"%s\"", store->where);
    store->away_since_ms = os_now().mono_ms;
    store->away_try_ms = 0;
}

bool pg_away(struct store *base)
{
    enum { TRY_MS = 200 };
    struct pg_store *store = pg_of(base);
    store->impatient = true;
    if (store->away_since_ms == 0) {
        if (!has_ended(store)) return false;
        is_lost(store);
    }
    int64_t now_ms = os_now().mono_ms;
    if (now_ms < store->away_try_ms) return true;
    int64_t since_ms = store->away_since_ms;
    store->away_since_ms = 0; // for what is asked on the new connection
    struct error local = {0};
    enum code rc = try_again(store, now_ms + TRY_MS, &local);
    store->away_try_ms = os_now().mono_ms + TRY_MS;
    if (may_come_back(rc)) {
        store->away_since_ms = since_ms;
        return true;
    }
    if (rc == OK) os_log(LOG_INFO, "the store is back ms=%lld", (long long)(os_now().mono_ms - since_ms));
    is_back(store, since_ms); // or it refuses all sessions: the next call says why
    return false;
}

enum code pg_connect_anew(struct pg_store *store, struct error *err)
{
    if (!store->impatient) return pg_reconnect(store, err);
    if (store->away_since_ms == 0) is_lost(store);
    if (pg_away(&store->base)) return error_set(err, E_AWAY, "%s is away", store->where);
    return PQstatus(store->link) == CONNECTION_OK ? OK : pg_reconnect(store, err);
}

bool pg_comes_back(struct pg_store *store, int64_t wait_ms)
{
    int64_t until_ms = os_now().mono_ms + wait_ms;
    while (pg_away(&store->base)) {
        if (os_now().mono_ms >= until_ms) return false;
        pg_pause(20);
    }
    return true;
}
