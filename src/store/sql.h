// Private to store/: what the two stores in SQL have in common. They ask in different ways, and get the same rows.
#ifndef CAIRN_STORE_SQL_H
#define CAIRN_STORE_SQL_H

#include "store/backend.h"

// runs as r, run_heads as h, in the order that sql_take_head expects.
#define SQL_HEAD_COLUMNS                                                                                               \
    "r.run_no,r.tenant_id,r.run_id,r.project_id,r.environment_id,r.plan_id,r.plan_version,r.name,r.vocabulary,"        \
    "r.document,r.parent_run,r.original_run,h.last_seq,h.ledger_seq,h.head,h.ledger_head,h.updated_ms,h.terminal,"     \
    "h.epoch,h.owner,h.status,h.substatus,h.steps_total,h.steps_completed,h.steps_failed,h.steps_skipped,"             \
    "h.steps_running,h.created_ms,h.started_ms,h.ended_ms,h.cause"
enum { SQL_HEAD_END = 31 }; // the first column after them

// Numbers of runs of which something speaks (events, ledger entries, a row, a head) and that lack their row or their head: number, name
// as far as it is known, whether there is a row. The tables are walked from number to number.
#define SQL_MISSING_RUNS                                                                                               \
    "WITH RECURSIVE logged(run_no) AS (SELECT min(run_no) FROM workflow_events UNION ALL SELECT (SELECT min(e.run_no) "  \
    "FROM workflow_events e WHERE e.run_no>logged.run_no) FROM logged WHERE logged.run_no IS NOT NULL),"                     \
    "entered(run_no) AS (SELECT min(run_no) FROM ledger UNION ALL SELECT (SELECT min(l.run_no) FROM ledger l WHERE "   \
    "l.run_no>entered.run_no) FROM entered WHERE entered.run_no IS NOT NULL),"                                         \
    "known(run_no) AS (SELECT run_no FROM logged UNION SELECT run_no FROM entered UNION SELECT run_no FROM runs UNION "  \
    "SELECT run_no FROM run_heads) "                                                                                   \
    "SELECT k.run_no,coalesce((SELECT r.run_id FROM runs r WHERE r.run_no=k.run_no),(SELECT e.run_id FROM "            \
    "workflow_events e WHERE e.run_no=k.run_no ORDER BY e.sequence LIMIT 1),''),"                                      \
    "CAST(CASE WHEN EXISTS(SELECT 1 FROM runs r WHERE r.run_no=k.run_no) THEN 1 ELSE 0 END AS bigint) FROM known k "   \
    "WHERE k.run_no IS NOT NULL AND NOT EXISTS(SELECT 1 FROM runs r JOIN run_heads h ON h.run_no=r.run_no WHERE "      \
    "r.run_no=k.run_no) ORDER BY k.run_no LIMIT 1000"

// The text of a file, "src/store/sqlite.sql", that must be there. A NUL is behind it.
struct str sql_file(const char *name);

// A row of an answer. What it points to lives until the answer goes on.
struct sql_row {
    struct str (*bytes)(const struct sql_row *row, int column); // of a text or a blob
    int64_t (*number)(const struct sql_row *row, int column);   // of a boolean, too; 0: it is none
    const void *answer;
    int index; // in it
};

bool sql_take_digest(const struct sql_row *row, int column, struct digest *out) MUST_CHECK;
// *owner is the engine's number, dead or alive; whether that owns the run is for the store to say.
enum code sql_take_head(const struct sql_row *row, struct arena *arena, struct run_head *out, int64_t *owner,
                        struct error *err) MUST_CHECK;
// sequence, event_type, timestamp, payload, record_prefix, record_suffix, key, run_id. E_NOMEM.
enum code sql_take_event(const struct sql_row *row, struct arena *arena, struct record *out) MUST_CHECK;
// ledger_seq, after_seq, kind, signal_id, bytes, hash. E_NOMEM, E_CORRUPT.
enum code sql_take_entry(const struct sql_row *row, struct arena *arena, struct record *out) MUST_CHECK;
// An event, and its position, tenant and vocabulary. E_NOMEM, E_CORRUPT.
enum code sql_take_item(const struct sql_row *row, struct arena *arena, struct feed_item *out) MUST_CHECK;

// SQL_MISSING_RUNS. E_NOMEM.
enum code sql_take_missing(const struct sql_row *row, struct arena *arena, struct faults *out) MUST_CHECK;

// ---- questions that both ask, each in its own words (STATEMENT_..., PG_... of the same names)
#define SQL_QUERIES(X)                                                                                                 \
    X(FIND_RUN)                                                                                                        \
    X(NEWEST_RUN)                                                                                                      \
    X(READ)                                                                                                            \
    X(READ_LEDGER)                                                                                                     \
    X(BLOB)                                                                                                            \
    X(BLOBS)                                                                                                           \
    X(NOTE)                                                                                                            \
    X(NOTES)                                                                                                           \
    X(NEXT_SPACE)                                                                                                      \
    X(FEED)                                                                                                            \
    X(FEED_END)                                                                                                        \
    X(TOMBSTONES)                                                                                                      \
    X(MISSING)                                                                                                         \
    X(INBOX)
enum sql_query {
#define X(name) SQL_##name,
    SQL_QUERIES(X)
#undef X
};

// One question: its arguments in their order, its rows one by one. What fails is kept in it, and what follows does nothing.
struct sql_ask {
    struct store *store;
    enum sql_query which;
    const char *what; // "read a note"
    struct error *err;
    enum code rc;
    struct sql_row row; // where it stands; the backend's until the first
    int arguments;
    bool none; // an older store, which has no table of the kind
};
struct sql_ops {
    void (*begin)(struct sql_ask *ask);
    void (*text)(struct sql_ask *ask, struct str text); // lives until the end
    void (*blob)(struct sql_ask *ask, struct str bytes);
    void (*number)(struct sql_ask *ask, int64_t number);
    bool (*next)(struct sql_ask *ask);
    void (*end)(struct sql_ask *ask); // also after what failed
};
void sql_begin(struct sql_ask *ask, struct store *store, enum sql_query which, const char *what, struct error *err);
void sql_text(struct sql_ask *ask, struct str text);
void sql_digest(struct sql_ask *ask, const struct digest *digest);
void sql_number(struct sql_ask *ask, int64_t number);
bool sql_next(struct sql_ask *ask);                // false: there is no further row, or it failed
void sql_heed(struct sql_ask *ask, enum code rc);  // what became of a row
enum code sql_end(struct sql_ask *ask) MUST_CHECK; // always

// Methods of both.
enum code sql_find_run(struct store *, struct str tenant, struct str run, int64_t *run_no, struct error *) MUST_CHECK;
enum code sql_newest_run(struct store *, int64_t *run_no, struct error *) MUST_CHECK; // 0: there is none
enum code sql_read(struct store *, const struct record_range *, struct arena *, struct records *, struct error *);
enum code sql_blob(struct store *, const struct digest *, struct arena *, struct str *, struct error *);
enum code sql_blobs(struct store *, struct arena *, struct digests *, struct error *);
enum code sql_note(struct store *, struct str space, struct str key, struct arena *, struct note *, struct error *);
enum code sql_notes(struct store *, struct str space, struct str after, size_t limit, struct arena *, struct notes *,
                    struct error *);
enum code sql_next_space(struct store *, struct str after, struct arena *, struct str *, struct error *);
enum code sql_feed(struct store *, uint64_t after, size_t limit, struct arena *, struct feed *, struct error *);
enum code sql_feed_end(struct store *, uint64_t *, struct error *);
int64_t sql_clamp(uint64_t value); // INT64_MAX at most
#define NOTES_BY_SQL {.note = sql_note, .notes = sql_notes, .next_space = sql_next_space}
#define FEED_BY_SQL {.read = sql_feed, .end = sql_feed_end}
enum code sql_tombstones(struct store *, struct arena *, struct tombstones *, struct error *);
enum code sql_missing(struct store *, struct arena *, struct faults *, struct error *);
// What waits for the runs of an engine (0: none), and for ended ones.
enum code sql_inbox(struct store *, int64_t engine, struct arena *, struct inbox_item **, size_t *, struct error *);

// A record is prefix, payload, suffix: the payload stands in a column of its own and nothing is stored twice.
struct sql_record {
    struct str prefix, payload, suffix;
};
struct sql_record sql_record(const struct encoded *encoded);

// ---- leases given back in memory, not yet in the store
struct sql_released {
    int64_t run_no;
    uint64_t epoch;
};
struct sql_released_list {
    struct sql_released *items;
    size_t count, capacity;
};
// Without memory it is not added: the run stays ours until we end.
void sql_release(struct sql_released_list *list, int64_t run_no, uint64_t epoch);

#endif
