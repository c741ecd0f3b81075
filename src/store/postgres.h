// Private to the Postgres store. docs/format/postgres.md is the normative description of what is in the database.
//
//   postgres.c         opening, the URL, what a session is set to, closing
//   postgres_link.c    parameters, statements, errors, and a connection that was lost
//   postgres_schema.c  migrations: which there are, and taking them
//   postgres/N.sql     their texts; 1.sql has the tables, and the functions that are the only way in
//   postgres_commit.c  the one call of an append
//   postgres_read.c    heads, lists, questions (sql.h)
//   postgres_lease.c   engines, claims, inbox
//   postgres_shards.c  several engines
//   postgres_remove.c  removing runs, and where the bytes are
//   postgres_advise.c  what is wrong with the server although it works
#ifndef CAIRN_STORE_POSTGRES_H
#define CAIRN_STORE_POSTGRES_H

#include "base/buf.h"
#include "store/sql.h"

#include "os/pq.h"

#include <postgresql/libpq-fe.h>

// SQL_HEAD_COLUMNS, and the shard.
#define PG_HEAD_COLUMNS SQL_HEAD_COLUMNS ",h.shard::int8"
// workflow_events as e, in the order that sql_take_event expects.
#define PG_EVENT_COLUMNS                                                                                               \
    "e.sequence,e.event_type,e.\"timestamp\",e.payload,e.record_prefix,e.record_suffix,e.key,e.run_id"

// Each list walks an index that is in the order of the answer, newest first; several states are several such walks, merged. So a
// page costs what it returns, unless plan, prefix or time filter many rows away. The planner does not know that: it would rather walk
// all runs than those of a state, or sort. Where the order is that of an index of several columns, all of them are in the order and
// in the bounds, so that no other index will do; and sorting is forbidden where there is another way (set_session).
#define PG_LIST_RANGE "h.run_no<$2::int8 AND h.run_no>=$11::int8 AND "
#define PG_LIST_FILTER                                                                                                 \
    "($3::text='' OR r.plan_id=$3) AND ($4::int8=0 OR h.created_ms>=$4) "                                              \
    "AND ($5::int8=0 OR h.created_ms<=$5) AND (NOT $6::bool OR NOT h.terminal) AND (NOT $7::bool OR r.parent_run='') " \
    "AND starts_with(r.run_id,$8::text) AND (cardinality($9::text[])=0 OR h.status=ANY($9))"
#define PG_LIST_HEADS(where)                                                                                           \
    "SELECT " PG_HEAD_COLUMNS " FROM run_heads h JOIN runs r USING(run_no) WHERE ($1::text='' OR h.tenant_id=$1) "     \
    "AND " where PG_LIST_RANGE PG_LIST_FILTER " ORDER BY h.run_no DESC LIMIT $10::int8"
// `two`: the columns of an index before run_no; `values`: what they must be.
#define PG_LIST_WALK(from, two, no, values)                                                                            \
    "SELECT " PG_HEAD_COLUMNS " FROM " from " USING(run_no) WHERE (" two "," no ")<(" values ",$2::int8) "             \
    "AND (" two "," no ")>=(" values ",$11::int8) AND "

// X(NAME, SQL): prepared at first use on each connection.
#define PG_STATEMENTS(X)                                                                                               \
    X(APPEND, NULL)                                                                                                    \
    X(TOKEN, "SELECT token_of($1::int8)")                                                                              \
    X(HEAD, "SELECT " PG_HEAD_COLUMNS " FROM runs r JOIN run_heads h USING(run_no) "                                   \
            "WHERE r.tenant_id=$1::text AND r.run_id=$2::text")                                                        \
    X(READ, "SELECT " PG_EVENT_COLUMNS " FROM workflow_events e WHERE e.run_no=$1::int8 AND e.sequence>$2::int8 "      \
            "ORDER BY e.sequence LIMIT $3::int8")                                                                      \
    X(READ_LEDGER, "SELECT ledger_seq,after_seq,kind,signal_id,bytes,hash FROM ledger "                                \
                   "WHERE run_no=$1::int8 AND ledger_seq>$2::int8 ORDER BY ledger_seq LIMIT $3::int8")                 \
    X(FIND_RUN, "SELECT run_no FROM runs WHERE tenant_id=$1::text AND run_id=$2::text")                                \
    X(NEWEST_RUN, "SELECT run_no FROM runs ORDER BY run_no DESC LIMIT 1")                                              \
    X(LIST, PG_LIST_HEADS(""))                                                                                         \
    X(LIST_UNFINISHED, PG_LIST_HEADS("NOT h.terminal AND "))                                                           \
    X(LIST_OF_SHARDS, PG_LIST_HEADS("NOT h.terminal AND h.shard=ANY($12::int8[]) AND "))                               \
    X(SHARDS, "SELECT shard::int8,holder,ep,free,members,(SELECT max(needs) FROM migrations)::int8 "                   \
              "FROM shards_now($1::int8,$2::int8)")                                                                    \
    X(MOVE, "SELECT move_shards($1::int8,$2::int8,$3::int8[]::int4[],$4::int8[]::int4[])")                             \
    X(LIST_BY_STATUS,                                                                                                  \
      "SELECT x.* FROM unnest($12::text[]) s(status) CROSS JOIN LATERAL (" PG_LIST_WALK(                               \
          "run_heads h JOIN runs r", "h.tenant_id,h.status", "h.run_no", "$1::text,s.status") PG_LIST_FILTER           \
      " ORDER BY h.tenant_id DESC,h.status DESC,h.run_no DESC LIMIT $10::int8) x ORDER BY x.run_no DESC LIMIT $10")    \
    X(LIST_BY_PLAN, PG_LIST_WALK("runs r JOIN run_heads h", "r.tenant_id,r.plan_id", "r.run_no", "$1::text,$3::text")  \
                        PG_LIST_FILTER " ORDER BY r.tenant_id DESC,r.plan_id DESC,r.run_no DESC LIMIT $10::int8")      \
    X(LIST_BY_PREFIX,                                                                                                  \
      "WITH found AS MATERIALIZED (SELECT run_no FROM runs WHERE tenant_id=$1::text AND run_id>=$8::text "             \
      "AND run_id<$8||chr(1114111)) SELECT " PG_HEAD_COLUMNS " FROM found f JOIN runs r USING(run_no) "                \
      "JOIN run_heads h USING(run_no) WHERE " PG_LIST_RANGE PG_LIST_FILTER " ORDER BY f.run_no DESC LIMIT $10::int8")  \
    X(BLOB, "SELECT bytes FROM blobs WHERE sha256=$1::bytea")                                                          \
    X(BLOBS, "SELECT sha256 FROM blobs ORDER BY sha256")                                                               \
    X(NOTE, "SELECT version,CASE WHEN $3::int8<>0 THEN value ELSE ''::bytea END FROM notes "                           \
            "WHERE space=$1::text AND key=$2::bytea")                                                                  \
    X(NOTES, "SELECT key,version,value FROM notes WHERE space=$1::text AND key>$2::bytea ORDER BY key LIMIT $3::int8") \
    X(NEXT_SPACE, "SELECT coalesce(min(space),'') FROM notes WHERE space>$1::text")                                    \
    X(FEED, "SELECT * FROM feed($1::int8,$2::int8)")                                                                   \
    X(FEED_END, "SELECT feed_end()")                                                                                   \
    X(JOIN, "SELECT join_engine($1::text,$2::int8,$3::text,$4::int8)")                                                 \
    X(HOLD, "SELECT hold_engine($1::int8)")                                                                            \
    X(LEAVE, "SELECT leave_engine($1::int8,$2::int8[],$3::int8[])")                                                    \
    X(RENEW, "SELECT renew_engine($1::int8,$2::int8)")                                                                 \
    X(LIVING, "SELECT engine_no,pid,host,lease_until IS NULL FROM living_engines")                                     \
    X(CLAIM, "SELECT claim_run($1::int8,$2::text,$3::text,$4::bool,$5::int8[],$6::int8[])")                            \
    X(CLAIM_AHEAD, "SELECT claimed,ep FROM claim_runs($1::int8,$2::text[],$3::text[])")                                \
    X(RELEASE, "SELECT release_runs($1::int8,$2::int8[],$3::int8[])")                                                  \
    X(POST, "SELECT post_signal($1::text,$2::text,$3::text,$4::bytea)")                                                \
    X(INBOX, "SELECT i.id,i.tenant_id,i.run_id,i.signal_id,i.bytes FROM inbox i JOIN runs r USING(tenant_id,run_id) "  \
             "JOIN run_heads h USING(run_no) WHERE h.owner=$1::int8 OR (h.terminal AND "                               \
             "(h.shard=0 OR EXISTS(SELECT 1 FROM shards s WHERE s.shard_no=h.shard AND s.owner=$1))) ORDER BY i.id")   \
    X(REMOVE, "SELECT remove_runs($1::text[],$2::text[],$3::int8,$4::text,$5::int8)")                                  \
    X(TOMBSTONES, "SELECT run_no,tenant_id,run_id,last_seq,ledger_seq,head,ledger_head,removed_ms,reason "             \
                  "FROM tombstones ORDER BY run_no")                                                                   \
    X(MISSING, SQL_MISSING_RUNS)                                                                                       \
    X(ENGINES_SEEN, "SELECT last_value,(SELECT count(*) FROM living_engines WHERE engine_no<>$1::int8) "               \
                    "FROM engines_engine_no_seq")                                                                      \
    X(DROP_BLOBS, "SELECT drop_blobs($1::bytea[],$2::int8,$3::int8)")                                                  \
    X(ADVISE, NULL)                                                                                                    \
    X(USAGE, "SELECT 'database',pg_database_size(current_database()),0::int8 UNION ALL "                               \
             "SELECT 'blobs',coalesce(sum(length(bytes)),0)::int8,count(*) FROM blobs UNION ALL "                      \
             "SELECT 'signals waiting',0::int8,count(*) FROM inbox UNION ALL "                                         \
             "SELECT 'table '||c.relname,pg_total_relation_size(c.oid),greatest(c.reltuples,0)::int8 FROM pg_class c " \
             "WHERE c.relnamespace=$1::text::regnamespace AND c.relkind='r'")

enum pg_statement {
#define X(name, text) PG_##name,
    PG_STATEMENTS(X)
#undef X
        PG_STATEMENT_COUNT
};

enum { PG_PARAMETERS_MAX = 80 };

// The parameters of one call, all in binary form, one after the other.
struct pg_args {
    struct buf bytes;
    size_t at[PG_PARAMETERS_MAX];
    int len[PG_PARAMETERS_MAX]; // -1 = NULL
    int count;
    size_t array;      // where the array under way begins
    uint32_t elements; // of it
};

struct pg_place {   // what the URL says beyond what libpq understands
    char *hosts;    // when the URL names several
    char *conninfo; // for libpq, without our own parameters
    char *schema;   // as given, "cairn" when it is not
    char *files;    // directory for artifacts and logs
    char *tenant;   // the only one this handle may see, or NULL
    int64_t lease_ms;
    bool unsafe; // servers that lose what they acknowledged are accepted (tests)
};

// A plan is made for the size that the tables have at that moment, and kept: one that was made when they were empty reads them whole for
// ever after. So plans are made anew whenever what this handle has stored has doubled, and after 2, 4, 8 ... 64 seconds.
struct pg_plans {
    size_t rows, rows_next;
    int64_t next_ms, pause_ms;
};

struct pg_store {
    struct store base;
    struct pg_place place;
    PGconn *link;
    bool prepared[PG_STATEMENT_COUNT]; // on this connection
    struct pg_plans plans;
    int64_t lock_timeout_ms; // as the session has it
    bool posting;       // a handle for reading is leaving a signal
    bool warned;        // the server said more than its answers
    char where[200];    // database and host, for people
    char id[UUID_SIZE]; // of this handle, in application_name: the backend of a lost connection is known by it
    char host[80];      // what distinguishes process numbers of machines
    struct pg_args args;
    // Leases
    int64_t engine; // our number; 0 = not an engine yet
    bool several;   // it is one among others (S17): when its row is gone it is fenced, and joins anew
    int64_t token;  // of the last call of append; the engine's row has that of the last one that was committed
    int64_t renew_at_ms;
    int64_t patient_until_ms; // the server was away: until then no engine is taken for dead
    bool impatient; // its owner asks whether the server is away, and does not want to wait for it
    int64_t away_since_ms, away_try_ms; // the connection is known to have ended (store_away), 0 = it is not; when to try the next one
    struct sql_released_list released;
    struct sql_released *ahead; // claimed in the store, and not yet handed to an engine of this process
    size_t ahead_count;
    int64_t
        blobs_engine;    // last number given to an engine when the blobs were listed; -1 = others lived, 0 = not listed
    uint32_t idle_polls; // looks into the inbox since the last commit
};

struct pg_store *pg_of(const struct store *store);

// ---- postgres_link.c
void pg_clear(struct pg_store *store); // no parameters
void pg_int(struct pg_store *store, int64_t value);
void pg_bool(struct pg_store *store, bool value);
void pg_text(struct pg_store *store, struct str value);
void pg_bytes(struct pg_store *store, const void *bytes, size_t size);
void pg_array(struct pg_store *store, Oid type); // then its elements, then pg_array_end
void pg_array_int(struct pg_store *store, int64_t value);
void pg_array_int4(struct pg_store *store, int32_t value);
void pg_array_bool(struct pg_store *store, bool value);
void pg_array_text(struct pg_store *store, struct str value);                    // bytes too
void pg_runs(struct pg_store *store, const struct run_name *runs, size_t count); // their tenants, their ids
void pg_array_null(struct pg_store *store);
void pg_array_end(struct pg_store *store);
enum { PG_BOOL = 16, PG_BYTEA = 17, PG_INT8 = 20, PG_INT4 = 23, PG_TEXT = 25 }; // Oids of the types, fixed for ever

// Connects and sets the session up. E_UNREACHABLE (no such database, too), E_DENIED, E_VERSION, E_UNSUPPORTED.
enum code pg_connect(struct pg_store *store, struct error *err) MUST_CHECK;
// Runs a statement with the parameters that were put together; *out must be PQclear'ed when OK. One that only reads, or that
// may be done twice, is tried again on a new connection when the old one was lost. E_IO: no server answers.
enum code pg_query(struct pg_store *store, enum pg_statement which, const char *what, PGresult **out,
                   struct error *err) MUST_CHECK;
// For those whose answer does not matter.
enum code pg_call(struct pg_store *store, enum pg_statement which, const char *what, struct error *err) MUST_CHECK;
// The same once, without another try. *lost: the connection is gone, and the call may or may not have been carried out.
enum code pg_once(struct pg_store *store, enum pg_statement which, const char *what, PGresult **out, bool *lost,
                  struct error *err) MUST_CHECK;
// A text of many statements without parameters.
enum code pg_run(struct pg_store *store, const char *sql, const char *what, struct error *err) MUST_CHECK;
// A new connection instead of the lost one, waited for as long as for a lock; the backend of the old one has ended by then.
enum code pg_reconnect(struct pg_store *store, struct error *err) MUST_CHECK;
bool pg_away(struct store *store); // store_away
// The same for what may be asked again later: E_AWAY at once where the owner of the handle asks whether the server is away.
enum code pg_connect_anew(struct pg_store *store, struct error *err) MUST_CHECK;
bool pg_comes_back(struct pg_store *store, int64_t wait_ms); // false: it is away for all of that time
bool pg_state_is(const PGresult *result, const char *state);
enum code pg_code(struct pg_store *store, const PGresult *result, const char *what, struct error *err);
void pg_pause(int64_t ms);
int64_t pg_wait_ms(const struct pg_store *store);

int64_t pg_get_int(const PGresult *result, int row, int column);
bool pg_get_bool(const PGresult *result, int row, int column);
struct str pg_get(const PGresult *result, int row, int column); // lives as long as the result
bool pg_copy(const PGresult *result, int row, int column, struct arena *arena, struct str *out) MUST_CHECK;

// ---- postgres_schema.c
#define PG_FORMAT 4
// The newest format that this program knows. Tests make it an older program (CAIRN_PG_FORMAT).
int64_t pg_known_format(void);
enum code pg_too_new(const struct pg_store *store, int64_t format, struct error *err); // E_VERSION
// Whether the schema is there, of a format that this program may use. E_VERSION, E_CORRUPT.
enum code pg_check_schema(struct pg_store *store, bool *fresh, int64_t *format, struct error *err) MUST_CHECK;
// Makes it, or brings it up to date. Any number of processes may do so at once.
enum code pg_migrate(struct pg_store *store, struct error *err) MUST_CHECK;
extern const char pg_advise_sql[];

// ---- the operations
enum code pg_commit(struct store *, struct commit *, struct arena *turn, struct error *);
extern const struct sql_ops pg_asking; // postgres_read.c
enum code pg_head(struct store *, struct str tenant, struct str run, struct arena *, struct run_head *, struct error *);
enum code pg_list(struct store *, const struct run_filter *, struct arena *, struct run_heads *, struct error *);
enum code pg_become_engine(struct pg_store *store, struct error *err) MUST_CHECK; // no-op when it is one
enum code pg_settle(struct pg_store *store, struct error *err) MUST_CHECK;
// After a new connection: the lock that shows that we live, again.
enum code pg_hold_engine(struct pg_store *store, struct error *err) MUST_CHECK;
// Owners of these runs (numbers, 0 = no owner) that live: sets owned and owner_pid.
enum code pg_mark_owned(struct pg_store *store, struct run_head *heads, const int64_t *owners, size_t count,
                        struct error *err) MUST_CHECK;
enum code pg_claim(struct store *, struct str tenant, struct str run, struct run_head *, struct arena *,
                   int64_t *backend_id, struct error *);
enum code pg_claim_ahead(struct store *, const struct run_name *, size_t count, struct error *);
void pg_release(struct store *, struct run_log *);
enum code pg_shards(struct store *, int64_t lease_ms, int64_t now_ms, struct shard_map *, struct error *);
enum code pg_move(struct store *, uint64_t take, uint64_t give, int64_t now_ms, struct shard_map *, struct error *);
enum code pg_fenced(struct pg_store *store, struct error *err); // our row is gone: the next look joins anew
void pg_released_args(struct pg_store *store);                  // two arrays: numbers of runs, epochs
void pg_leave(struct pg_store *store);
enum code pg_post(struct store *, struct str tenant, struct str run, struct str signal_id, struct str bytes,
                  struct error *);
enum code pg_inbox(struct store *, struct arena *, struct inbox_item **, size_t *, struct error *);
enum code pg_remove(struct store *, const struct run_name *, size_t count, int64_t now_ms, struct str reason,
                    struct error *);
enum code pg_blobs(struct store *, struct arena *, struct digests *, struct error *);
enum code pg_drop_blobs(struct store *, const struct digest *, size_t count, uint64_t *bytes, struct error *);
enum code pg_restoring(struct store *, bool begun, struct error *);
enum code pg_format(struct store *, struct store_format *, struct error *);
enum code pg_advise(struct store *, struct arena *, struct advices *, struct error *);
enum code pg_usage(struct store *, struct arena *, struct usages *, struct error *);

#endif
