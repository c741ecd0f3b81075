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
#define SQL_MISSING                                                                                                    \
    "WITH RECURSIVE told(run_no) AS (SELECT min(run_no) FROM workflow_events UNION ALL SELECT (SELECT min(e.run_no) "  \
    "FROM workflow_events e WHERE e.run_no>told.run_no) FROM told WHERE told.run_no IS NOT NULL),"                     \
    "entered(run_no) AS (SELECT min(run_no) FROM ledger UNION ALL SELECT (SELECT min(l.run_no) FROM ledger l WHERE "   \
    "l.run_no>entered.run_no) FROM entered WHERE entered.run_no IS NOT NULL),"                                         \
    "known(run_no) AS (SELECT run_no FROM told UNION SELECT run_no FROM entered UNION SELECT run_no FROM runs UNION "  \
    "SELECT run_no FROM run_heads) "                                                                                   \
    "SELECT k.run_no,coalesce((SELECT r.run_id FROM runs r WHERE r.run_no=k.run_no),(SELECT e.run_id FROM "            \
    "workflow_events e WHERE e.run_no=k.run_no ORDER BY e.sequence LIMIT 1),''),"                                      \
    "CAST(CASE WHEN EXISTS(SELECT 1 FROM runs r WHERE r.run_no=k.run_no) THEN 1 ELSE 0 END AS bigint) FROM known k "   \
    "WHERE k.run_no IS NOT NULL AND NOT EXISTS(SELECT 1 FROM runs r JOIN run_heads h ON h.run_no=r.run_no WHERE "      \
    "r.run_no=k.run_no) ORDER BY k.run_no LIMIT 1000"

// A row of an answer. What it points to lives until the answer goes on.
struct sql_row {
    struct str (*bytes)(const struct sql_row *row, int column); // of a text or a blob
    int64_t (*number)(const struct sql_row *row, int column);   // of a boolean, too; 0: it is none
    const void *answer;
    int index; // in it
};

// *owner is the engine's number, dead or alive; whether that owns the run is for the store to say.
enum code sql_take_head(const struct sql_row *row, struct arena *arena, struct run_head *out, int64_t *owner,
                        struct error *err) MUST_CHECK;
// sequence, event_type, timestamp, payload, record_prefix, record_suffix, key, run_id. E_NOMEM.
enum code sql_take_event(const struct sql_row *row, struct arena *arena, struct record *out) MUST_CHECK;
// ledger_seq, after_seq, kind, signal_id, bytes, hash. E_NOMEM, E_CORRUPT.
enum code sql_take_entry(const struct sql_row *row, struct arena *arena, struct record *out) MUST_CHECK;
// An event, and its position, tenant and vocabulary. E_NOMEM, E_CORRUPT.
enum code sql_take_item(const struct sql_row *row, struct arena *arena, struct feed_item *out) MUST_CHECK;

// SQL_MISSING. E_NOMEM.
enum code sql_take_missing(const struct sql_row *row, struct arena *arena, struct faults *out) MUST_CHECK;

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
