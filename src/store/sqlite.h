// Private to the SQLite store. docs/format/sql.md is the normative description of what is in the file.
//
//   sqlite.c         opening, pragmas, statements, errors
//   sqlite.sql       the schema; sqlite_schema.c makes it, and brings older ones up to date
//   sqlite_commit.c  the one transaction of an append
//   sqlite_ask.c     questions (sql.h), heads
//   sqlite_list.c    lists of runs
//   sqlite_lease.c   engines, claims, inbox
//   sqlite_remove.c  removing runs, and where the bytes are
//   sqlite_gather.c  the writes of a commit, put together
//   sqlite_wal.c     what a dead process left in the write-ahead log
#ifndef CAIRN_STORE_SQLITE_H
#define CAIRN_STORE_SQLITE_H

#include "store/sql.h"

#include <sqlite3.h>

// X(NAME, SQL): prepared at first use, kept until the store is closed.
#define SQLITE_STATEMENTS(X)                                                                                           \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                                        \
    X(COMMIT, "COMMIT")                                                                                                \
    X(ADD_RUN,                                                                                                         \
      "INSERT OR ROLLBACK INTO runs(run_no,tenant_id,run_id,project_id,environment_id,plan_id,plan_version,name,"      \
      "vocabulary,document,parent_run,original_run) VALUES(1+max(ifnull((SELECT max(run_no) FROM runs),0),"            \
      "ifnull((SELECT max(run_no) FROM tombstones),0)),?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)")                           \
    X(ADD_HEAD,                                                                                                        \
      "INSERT OR ROLLBACK INTO run_heads(run_no,tenant_id,last_seq,ledger_seq,head,ledger_head,updated_ms,substatus,"  \
      "steps_total,steps_completed,steps_failed,steps_skipped,steps_running,status,terminal,created_ms,"               \
      "started_ms,ended_ms,cause,epoch,owner) "                                                                        \
      "VALUES(?13,?22,?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?18,?12,?19,?20,?21,?23,?14,?15)")                            \
    X(MOVE_HEAD, "UPDATE run_heads SET last_seq=?1,ledger_seq=?2,head=?3,ledger_head=?4,updated_ms=?5,substatus=?6,"   \
                 "steps_total=?7,steps_completed=?8,steps_failed=?9,steps_skipped=?10,steps_running=?11 "              \
                 "WHERE run_no=?13 AND epoch=?14 AND owner=?15 AND last_seq=?16 AND ledger_seq=?17 "                   \
                 "AND (terminal=0 OR last_seq=?1)")                                                                    \
    X(CHANGE_HEAD, "UPDATE run_heads SET last_seq=?1,ledger_seq=?2,head=?3,ledger_head=?4,updated_ms=?5,substatus=?6," \
                   "steps_total=?7,steps_completed=?8,steps_failed=?9,steps_skipped=?10,steps_running=?11,"            \
                   "terminal=?12,status=?18,created_ms=?19,started_ms=?20,ended_ms=?21,cause=?23 "                     \
                   "WHERE run_no=?13 AND epoch=?14 AND owner=?15 AND last_seq=?16 AND ledger_seq=?17 "                 \
                   "AND (terminal=0 OR last_seq=?1)")                                                                  \
    X(ADD_EVENT, "INSERT OR ROLLBACK INTO workflow_events(run_no,run_id,sequence,event_type,timestamp,payload,"        \
                 "record_prefix,record_suffix,key) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)")                                \
    X(ADD_FIRST_EVENT,                                                                                                 \
      "INSERT OR ROLLBACK INTO workflow_events(run_no,run_id,sequence,event_type,timestamp,payload,"                   \
      "record_prefix,record_suffix,key,position) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,"                                   \
      "1+max(ifnull((SELECT max(position) FROM workflow_events),0),(SELECT position FROM feed_floor)))")               \
    X(ADD_LEDGER, "INSERT OR ROLLBACK INTO ledger(run_no,ledger_seq,after_seq,kind,signal_id,bytes,hash) "             \
                  "VALUES(?1,?2,?3,?4,?5,?6,?7)")                                                                      \
    X(ADD_BLOB, "INSERT OR IGNORE INTO blobs(sha256,bytes) VALUES(?1,?2)")                                             \
    X(ADD_NOTE, "INSERT OR ROLLBACK INTO notes(space,key,value,version) VALUES(?1,?2,?4,?5)")                          \
    X(MOVE_NOTE, "UPDATE notes SET value=?4,version=?5 WHERE space=?1 AND key=?2 AND version=?3")                      \
    X(DROP_NOTE, "DELETE FROM notes WHERE space=?1 AND key=?2 AND version=?3")                                         \
    X(NOTE, "SELECT version,CASE WHEN ?3 THEN value ELSE x'' END FROM notes WHERE space=?1 AND key=?2")                \
    X(NOTES, "SELECT key,version,value FROM notes WHERE space=?1 AND key>?2 ORDER BY key LIMIT ?3")                    \
    X(NEXT_SPACE, "SELECT min(space) FROM notes WHERE space>?1")                                                       \
    X(FEED, "SELECT e.sequence,e.event_type,e.timestamp,e.payload,e.record_prefix,e.record_suffix,e.key,e.run_id,"     \
            "e.position,r.tenant_id,r.vocabulary FROM workflow_events e CROSS JOIN runs r USING(run_no) "              \
            "WHERE e.position>?1 ORDER BY e.position LIMIT ?2")                                                        \
    X(DROP_INBOX, "DELETE FROM inbox WHERE id=?1")                                                                     \
    X(FIND_RUN, "SELECT run_no FROM runs WHERE tenant_id=?1 AND run_id=?2")                                            \
    X(HEAD, "SELECT " SQL_HEAD_COLUMNS " FROM runs r CROSS JOIN run_heads h USING(run_no) "                            \
            "WHERE r.tenant_id=?1 AND r.run_id=?2")                                                                    \
    X(READ, "SELECT sequence,event_type,timestamp,payload,record_prefix,record_suffix,key,run_id "                     \
            "FROM workflow_events WHERE run_no=?1 AND sequence>?2 ORDER BY sequence LIMIT ?3")                         \
    X(READ_LEDGER, "SELECT ledger_seq,after_seq,kind,signal_id,bytes,hash "                                            \
                   "FROM ledger WHERE run_no=?1 AND ledger_seq>?2 ORDER BY ledger_seq LIMIT ?3")                       \
    X(FEED_END, "SELECT max(ifnull((SELECT max(position) FROM workflow_events),0),(SELECT position FROM feed_floor))") \
    X(OLD_FEED_END, "SELECT ifnull(max(position),0) FROM workflow_events")                                             \
    X(BLOB, "SELECT bytes FROM blobs WHERE sha256=?1")                                                                 \
    X(BLOBS, "SELECT sha256 FROM blobs ORDER BY sha256")                                                               \
    X(TOMBSTONES, "SELECT run_no,tenant_id,run_id,last_seq,ledger_seq,head,ledger_head,removed_ms,reason "             \
                  "FROM tombstones ORDER BY run_no")                                                                   \
    X(MISSING, SQL_MISSING_RUNS)                                                                                       \
    X(ADD_ENGINE, "INSERT INTO engines(pid,started_ms,who) VALUES(?1,?2,?3)")                                          \
    X(ENGINE_PID, "SELECT pid FROM engines WHERE engine_no=?1")                                                        \
    X(CLAIM, "UPDATE run_heads SET epoch=epoch+1,owner=?2 WHERE run_no=?1")                                            \
    X(RELEASE, "UPDATE run_heads SET owner=0 WHERE run_no=?1 AND epoch=?2 AND owner=?3")                               \
    X(POST, "INSERT INTO inbox(tenant_id,run_id,signal_id,bytes) "                                                     \
            "SELECT ?1,?2,?3,?4 WHERE EXISTS(SELECT 1 FROM runs WHERE tenant_id=?1 AND run_id=?2)")                    \
    X(INBOX, "SELECT i.id,i.tenant_id,i.run_id,i.signal_id,i.bytes FROM inbox i CROSS JOIN runs r CROSS JOIN "         \
             "run_heads h WHERE r.tenant_id=i.tenant_id AND r.run_id=i.run_id AND h.run_no=r.run_no "                  \
             "AND (h.owner=?1 OR h.terminal=1) "                                                                       \
             "ORDER BY i.id")                                                                                          \
    X(LOOK, "BEGIN")                                                                                                   \
    X(LOOKED, "ROLLBACK")                                                                                              \
    X(NEWEST_RUN, "SELECT ifnull(max(run_no),0) FROM runs")                                                            \
    X(DATA_VERSION, "PRAGMA data_version")

enum statement {
#define X(name, text) STATEMENT_##name,
    SQLITE_STATEMENTS(X)
#undef X
        STATEMENT_COUNT
};

// Walks of a list that are open at once: one per status.
enum { SQLITE_WALKS_MAX = RUN_STATUS_CANCELLED };
// Ways to list, each an index in the order of the answer or a few rows that are sorted (sqlite_list.c).
enum list_way {
    LIST_EVERYTHING,
    LIST_EVERYTHING_OPEN,
    LIST_OPEN,
    LIST_BY_STATUS,
    LIST_BY_PLAN,
    LIST_BY_PREFIX,
    LIST_BY_TIME,
    LIST_WAY_COUNT
};

enum { WAL_HEADER_SIZE = 32, WAL_FRAME_HEADER_SIZE = 24 };

struct sqlite_gather {              // sqlite_gather.c
    sqlite3_io_methods methods;     // of the write-ahead log while COMMIT runs
    const sqlite3_io_methods *base; // its own
    sqlite3_file *file;             // the log, while COMMIT runs
    char *bytes;                    // written, not yet in the file: `used` of them, which belong at `at`
    int used;
    bool synced; // frames of this COMMIT are
    sqlite3_int64 at;
    // The last frame that this COMMIT wrote: where it stands, and its header. 0: it wrote none.
    sqlite3_int64 frame_at;
    unsigned char frame[WAL_FRAME_HEADER_SIZE];
};

struct sqlite_store {
    struct store base;
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    sqlite3_stmt *lists[LIST_WAY_COUNT][SQLITE_WALKS_MAX]; // made at first use, like the others
    sqlite3_stmt *weighings[LIST_WAY_COUNT];
    enum { TIMES_UNKNOWN, TIMES_INDEXED, TIMES_NOT_INDEXED } times; // whether there is run_heads_by_time
    int64_t append_wait_ms, wait_until_ms; // of the append that is under way, 0 = none; of the wait for a lock
    char *path;                                                     // absolute
    int wal_frames;                                                 // in the write-ahead log after the last commit
    int next_checkpoint;                                            // at so many of them
    int checkpoint_frames;                                          // between two checkpoints
    bool light;                                                     // commits are not synced, see sqlite_light
    struct sqlite_gather gather;
    struct file *mark; // sqlite_wal.c
    bool unmarked;     // it cannot be had
    // Leases. The lock file is held through `lock` and looked at through `probe`, so that our own locks show.
    struct disk *disk;
    struct file *lock, *probe;
    char probe_file[64]; // which file `probe` is; empty: not known
    int64_t engine; // our number; 0 = not an engine yet
    // Positions that removed events had lie below those that are there: known since our last commit of events, if nobody else
    // has written. The version of the pager tells.
    bool above_floor;
    unsigned pager_version;
    bool frozen;           // a transaction is open for as long as the handle is: it shows one moment
    int64_t blobs_version; // of the data when the blobs were listed; 0 = they were not
    struct sql_released_list released;
    // Inbox: looked at only when another connection wrote, we own more runs, or something is still waiting.
    int64_t data_version;
    bool inbox_stale;
    uint32_t idle_polls; // looks into the inbox since the last commit
};

struct sqlite_store *sqlite_of(const struct store *store);
// Opens the file that store->path names, as the options say, and nothing more.
enum code sqlite_connect(struct sqlite_store *store, struct error *err) MUST_CHECK;
void sqlite_guards(struct sqlite_store *store, bool on); // whether triggers fire for this handle
void sqlite_disconnect(struct sqlite_store *store); // everything that hangs on it
// WAL mode, and a sync for each commit.
enum code sqlite_pin_durability(struct sqlite_store *store, struct error *err) MUST_CHECK;
bool sqlite_has(struct sqlite_store *store, const char *tables); // an older store lacks some
// A statement ready to be bound; NULL after an error (in err). sqlite_done ends it.
sqlite3_stmt *sqlite_statement(struct sqlite_store *store, enum statement which, enum code *rc, struct error *err);
void sqlite_done(sqlite3_stmt *statement);
// What an SQLite result means for us. Not for SQLITE_OK, ROW, DONE.
enum code sqlite_code(struct sqlite_store *store, int rc, const char *what, struct error *err);
enum code sqlite_run(struct sqlite_store *store, const char *sql, struct error *err) MUST_CHECK;
enum code sqlite_step(struct sqlite_store *store, sqlite3_stmt *statement, const char *what,
                      struct error *err) MUST_CHECK;
// BEGIN IMMEDIATE; waits for other writers. Then exactly one of the other two. COMMIT returns when the batch is on the disk.
enum code sqlite_begin(struct sqlite_store *store, struct error *err) MUST_CHECK;
enum code sqlite_commit_now(struct sqlite_store *store, struct error *err) MUST_CHECK;
void sqlite_rollback(struct sqlite_store *store);
// For leases: between the two, COMMIT is atomic and visible, and durable with the next commit of events.
enum code sqlite_light(struct sqlite_store *store, bool light, struct error *err) MUST_CHECK;

// Around COMMIT: its writes to the write-ahead log reach the file together. The end returns an SQLite result.
void sqlite_gather(struct sqlite_store *store);
int sqlite_gather_end(struct sqlite_store *store, bool committed);
void sqlite_gather_free(struct sqlite_store *store);

void sqlite_bind_str(sqlite3_stmt *statement, int at, struct str s);
void sqlite_bind_bytes(sqlite3_stmt *statement, int at, const void *bytes, size_t size);

enum code sqlite_make_schema(struct sqlite_store *store, struct error *err) MUST_CHECK;
enum code sqlite_upgrade_schema(struct sqlite_store *store, struct error *err) MUST_CHECK;
enum code sqlite_check_schema(struct sqlite_store *store, bool *fresh, struct error *err) MUST_CHECK;

enum code sqlite_restoring(struct store *, bool begun, struct error *);

enum code sqlite_commit(struct store *, struct commit *, struct arena *turn, struct error *);

struct sql_row sqlite_row(sqlite3_stmt *statement); // that it stands at
// The row of a SELECT of SQL_HEAD_COLUMNS, and whether its owner lives.
enum code sqlite_take_head(struct sqlite_store *store, sqlite3_stmt *row, struct arena *arena, struct run_head *out,
                           struct error *err) MUST_CHECK;
enum code sqlite_head(struct store *, struct str tenant, struct str run, struct arena *, struct run_head *,
                      struct error *);
void sqlite_forget_lists(struct sqlite_store *store);
enum code sqlite_count(struct store *, const struct run_filter *, uint64_t *, struct error *);
enum code sqlite_list(struct store *, const struct run_filter *, struct arena *, struct run_heads *, struct error *);

extern const struct sql_ops sqlite_asking; // sqlite_ask.c
enum code sqlite_freeze(struct store *, struct error *);

enum code sqlite_claim(struct store *, struct str tenant, struct str run, struct run_head *, struct arena *,
                       int64_t *backend_id, struct error *);
void sqlite_release(struct store *, struct run_log *);
enum code sqlite_post(struct store *, struct str tenant, struct str run, struct str signal_id, struct str bytes,
                      struct error *);
enum code sqlite_inbox(struct store *, struct arena *, struct inbox_item **, size_t *, struct error *);
enum code sqlite_become_engine(struct sqlite_store *store, struct error *err) MUST_CHECK; // no-op when it is one
bool sqlite_alone(struct sqlite_store *store);                                            // no other engine lives
// sqlite_remove.c
enum code sqlite_remove(struct store *, const struct run_name *, size_t count, int64_t now_ms, struct str reason,
                        struct error *);
enum code sqlite_missing(struct store *, struct arena *, struct faults *, struct error *);
enum code sqlite_blobs(struct store *, struct arena *, struct digests *, struct error *);
enum code sqlite_drop_blobs(struct store *, const struct digest *, size_t count, uint64_t *bytes, struct error *);
enum code sqlite_usage(struct store *, struct arena *, struct usages *, struct error *);
// Inside a transaction: writes leases given back. They are forgotten by sqlite_forget_released after the commit.
enum code sqlite_write_released(struct sqlite_store *store, struct error *err) MUST_CHECK;
void sqlite_forget_released(struct sqlite_store *store);
void sqlite_leave(struct sqlite_store *store);
// PATH followed by `ending`. E_UNSUPPORTED: there is nothing beside the store (a VFS of the tests without a disk).
enum code sqlite_open_beside(struct sqlite_store *store, const char *ending, unsigned flags, struct file **out,
                             struct error *err) MUST_CHECK;
// After a COMMIT that was synced: remembers how far the log goes.
void sqlite_mark_log(struct sqlite_store *store);
// E_CORRUPT: the log ends before the place up to which it was synced.
enum code sqlite_check_log(struct sqlite_store *store, struct error *err) MUST_CHECK;
// Makes sure that the write-ahead log is on the disk as it is shown, when no living process has done so.
enum code sqlite_prove_log(struct sqlite_store *store, struct error *err) MUST_CHECK;
// Whether the engine lives, ourselves included; *pid gets its process.
enum liveness sqlite_liveness(struct sqlite_store *store, int64_t engine, int64_t *pid); // pid: 0 when it is dead
bool sqlite_alive(struct sqlite_store *store, int64_t engine, int64_t *pid);             // not known to be dead

#endif
