// Why it is laid out like this (numbers: docs/format/sql.md):
//  - Events go to the end of one table; run_no comes first in its index, so runs of one time share pages.
//  - What changes with every batch (run_heads) is kept apart from what never changes (runs): four times fewer pages.
//  - Keys have a unique index, although the owner of a run checks them and nobody can insert an event that no head has made
//    room for (the head of a run is moved first, inside the transaction, and the trigger lets in only numbers up to it that
//    are not there yet): the last guard of an append is the store itself, whatever an owner believes.
//  - The handle that appends asks by itself what the triggers ask and leaves them off (sqlite_guards); every other connection
//    meets them. The indexes hold for all.
//  - RAISE(ROLLBACK) instead of ABORT in that trigger, because an ABORT would cost a statement journal for every row.
#include "store/sqlite.h"

#define APPLICATION_ID 1130457458 // "Cair"
#define RESTORING_ID 1130457426   // "CaiR"
#define SCHEMA_VERSION 1

// Made later in stores that are older than it.
#define TOMBSTONES                                                                                                     \
    "CREATE TABLE tombstones("                                                                                         \
    " run_no INTEGER PRIMARY KEY,"                                                                                     \
    " tenant_id TEXT NOT NULL,"                                                                                        \
    " run_id TEXT NOT NULL,"                                                                                           \
    " last_seq INTEGER NOT NULL,"                                                                                      \
    " ledger_seq INTEGER NOT NULL,"                                                                                    \
    " head BLOB NOT NULL CHECK(length(head)=32),"                                                                      \
    " ledger_head BLOB NOT NULL CHECK(length(ledger_head)=32),"                                                        \
    " removed_ms INTEGER NOT NULL,"                                                                                    \
    " reason TEXT NOT NULL) STRICT;"

// The same. A reader who has seen a position must never miss an event because a removed one had it before.
#define NOTES                                                                                                          \
    "CREATE TABLE notes("                                                                                              \
    " space TEXT NOT NULL,"                                                                                            \
    " key TEXT NOT NULL,"                                                                                              \
    " version INTEGER NOT NULL,"                                                                                       \
    " value BLOB NOT NULL,"                                                                                            \
    " PRIMARY KEY(space,key)) STRICT, WITHOUT ROWID;"                                                                  \
    "CREATE TABLE feed_floor(id INTEGER PRIMARY KEY CHECK(id=1), position INTEGER NOT NULL) STRICT;"                   \
    "INSERT INTO feed_floor VALUES(1,0);"

// The same: `created>2h` among a million runs.
#define TIMES "CREATE INDEX run_heads_by_time ON run_heads(tenant_id,created_ms);"

// The same: one event a key.
#define KEYS "CREATE UNIQUE INDEX workflow_events_by_key ON workflow_events(run_no,key);"

static const char schema[] =
    "CREATE TABLE runs("
    " run_no INTEGER PRIMARY KEY,"
    " tenant_id TEXT NOT NULL,"
    " run_id TEXT NOT NULL,"
    " project_id TEXT NOT NULL,"
    " environment_id TEXT NOT NULL,"
    " plan_id TEXT NOT NULL,"
    " plan_version TEXT NOT NULL,"
    " name TEXT NOT NULL,"
    " vocabulary TEXT NOT NULL CHECK(vocabulary IN ('run','noetl','nodes')),"
    " document BLOB NOT NULL CHECK(length(document)=32),"
    " parent_run TEXT NOT NULL,"
    " original_run TEXT NOT NULL,"
    " UNIQUE(tenant_id,run_id)) STRICT;"
    "CREATE INDEX runs_by_plan ON runs(tenant_id,plan_id,run_no);"
    "CREATE TABLE run_heads("
    " run_no INTEGER PRIMARY KEY REFERENCES runs,"
    " tenant_id TEXT NOT NULL,"
    " last_seq INTEGER NOT NULL,"
    " ledger_seq INTEGER NOT NULL,"
    " head BLOB NOT NULL CHECK(length(head)=32),"
    " ledger_head BLOB NOT NULL CHECK(length(ledger_head)=32),"
    " updated_ms INTEGER NOT NULL,"
    " terminal INTEGER NOT NULL CHECK(terminal IN (0,1)),"
    " epoch INTEGER NOT NULL,"
    " owner INTEGER NOT NULL,"
    " status TEXT NOT NULL,"
    " substatus TEXT NOT NULL,"
    " steps_total INTEGER NOT NULL,"
    " steps_completed INTEGER NOT NULL,"
    " steps_failed INTEGER NOT NULL,"
    " steps_skipped INTEGER NOT NULL,"
    " steps_running INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " started_ms INTEGER NOT NULL,"
    " ended_ms INTEGER NOT NULL,"
    " cause TEXT NOT NULL) STRICT;"
    "CREATE INDEX run_heads_by_status ON run_heads(tenant_id,status,run_no);"
    "CREATE INDEX run_heads_unfinished ON run_heads(tenant_id,run_no) WHERE terminal=0;" TIMES
    "CREATE TABLE workflow_events("
    " position INTEGER PRIMARY KEY,"
    " run_no INTEGER NOT NULL,"
    " run_id TEXT NOT NULL,"
    " sequence INTEGER NOT NULL,"
    " event_type TEXT NOT NULL,"
    " timestamp TEXT NOT NULL,"
    " payload TEXT NOT NULL,"
    " record_prefix TEXT NOT NULL,"
    " record_suffix TEXT NOT NULL,"
    " key BLOB NOT NULL) STRICT;"
    "CREATE UNIQUE INDEX workflow_events_by_run ON workflow_events(run_no,sequence);" KEYS
    "CREATE TABLE ledger("
    " position INTEGER PRIMARY KEY,"
    " run_no INTEGER NOT NULL,"
    " ledger_seq INTEGER NOT NULL,"
    " after_seq INTEGER NOT NULL,"
    " kind TEXT NOT NULL,"
    " signal_id TEXT,"
    " bytes TEXT NOT NULL,"
    " hash BLOB NOT NULL CHECK(length(hash)=32)) STRICT;"
    "CREATE UNIQUE INDEX ledger_by_run ON ledger(run_no,ledger_seq);"
    "CREATE UNIQUE INDEX ledger_by_signal ON ledger(run_no,signal_id) WHERE signal_id IS NOT NULL;" TOMBSTONES NOTES
    "CREATE TABLE blobs(sha256 BLOB PRIMARY KEY CHECK(length(sha256)=32), bytes BLOB NOT NULL) STRICT;"
    "CREATE TABLE inbox("
    " id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " tenant_id TEXT NOT NULL,"
    " run_id TEXT NOT NULL,"
    " signal_id TEXT NOT NULL,"
    " bytes TEXT NOT NULL) STRICT;"
    "CREATE TABLE engines("
    " engine_no INTEGER PRIMARY KEY AUTOINCREMENT,"
    " pid INTEGER NOT NULL,"
    " started_ms INTEGER NOT NULL,"
    " who TEXT) STRICT;";

#define REFUSE(table, event, why)                                                                                      \
    "CREATE TRIGGER " table "_no_" event " BEFORE " event " ON " table                                                 \
    " BEGIN SELECT RAISE(ABORT,'EVENT_LOG_APPEND_ONLY: " why "'); END;"
// A run leaves whole, and only after its tombstone is there.
#define REFUSE_DELETE(table, why)                                                                                      \
    "CREATE TRIGGER " table "_no_delete BEFORE DELETE ON " table                                                       \
    " WHEN NOT EXISTS(SELECT 1 FROM tombstones WHERE run_no=OLD.run_no)"                                               \
    " BEGIN SELECT RAISE(ABORT,'EVENT_LOG_APPEND_ONLY: " why "'); END;"
#define ROLL_BACK(why) " BEGIN SELECT RAISE(ROLLBACK,'EVENT_LOG_APPEND_ONLY: " why "'); END;"

// REPLACE removes whatever stands in its way, without asking the triggers of removal: so what would stand in its way is refused here.
#define EVENTS_NO_REPLACE                                                                                              \
    "CREATE TRIGGER workflow_events_no_replace BEFORE INSERT ON workflow_events"                                       \
    " WHEN EXISTS(SELECT 1 FROM workflow_events WHERE position=NEW.position"                                           \
    "   OR (run_no=NEW.run_no AND sequence=NEW.sequence) OR (run_no=NEW.run_no AND key=NEW.key))"                      \
    " OR NEW.sequence<1 OR NEW.sequence>ifnull((SELECT last_seq FROM run_heads WHERE run_no=NEW.run_no),0)"            \
    ROLL_BACK("only the owner of a run appends to it, and once for each key")

static const char guards[] = // clang-format off
    EVENTS_NO_REPLACE
    REFUSE("workflow_events", "update", "stored events do not change")
    REFUSE("ledger", "update", "ledger entries do not change")
    REFUSE("runs", "update", "the identity of a run does not change")
    "CREATE TRIGGER ledger_no_replace BEFORE INSERT ON ledger"
    " WHEN EXISTS(SELECT 1 FROM ledger WHERE position=NEW.position"
    "   OR (run_no=NEW.run_no AND ledger_seq=NEW.ledger_seq)"
    "   OR (run_no=NEW.run_no AND signal_id=NEW.signal_id))"
    " OR NEW.ledger_seq<1 OR NEW.ledger_seq>ifnull((SELECT ledger_seq FROM run_heads WHERE run_no=NEW.run_no),0)"
    ROLL_BACK("only the owner of a run appends to it")
    "CREATE TRIGGER runs_no_replace BEFORE INSERT ON runs"
    " WHEN EXISTS(SELECT 1 FROM runs WHERE run_no=NEW.run_no OR (tenant_id=NEW.tenant_id AND run_id=NEW.run_id))"
    ROLL_BACK("there is such a run")
    "CREATE TRIGGER run_heads_no_replace BEFORE INSERT ON run_heads"
    " WHEN EXISTS(SELECT 1 FROM run_heads WHERE run_no=NEW.run_no)"
    ROLL_BACK("there is such a run");

static const char removal_guards[] =
    REFUSE_DELETE("workflow_events", "stored events are not removed")
    REFUSE_DELETE("ledger", "ledger entries are not removed")
    REFUSE_DELETE("runs", "runs are not removed")
    REFUSE_DELETE("run_heads", "runs are not removed")
    REFUSE("tombstones", "update", "what was removed stays removed")
    REFUSE("tombstones", "delete", "what was removed stays removed")
    "CREATE TRIGGER tombstones_no_replace BEFORE INSERT ON tombstones"
    " WHEN NOT EXISTS(SELECT 1 FROM runs r JOIN run_heads h USING(run_no) WHERE h.run_no=NEW.run_no AND h.terminal=1"
    "   AND r.tenant_id=NEW.tenant_id AND r.run_id=NEW.run_id AND h.last_seq=NEW.last_seq AND h.head=NEW.head)"
    ROLL_BACK("a tombstone is for a run that has ended");

#define REFUSE_AUDIT(event, when) \
    "CREATE TRIGGER notes_audit_no_" event when \
    " BEGIN SELECT RAISE(ABORT,'AUDIT_APPEND_ONLY: audit records are only added'); END;"
#define REFUSE_FLOOR(event, when) \
    "CREATE TRIGGER feed_floor_no_" event when \
    " BEGIN SELECT RAISE(ABORT,'EVENT_LOG_APPEND_ONLY: positions are not given again'); END;"
static const char note_guards[] =
    REFUSE_AUDIT("update", " BEFORE UPDATE ON notes WHEN '" NOTE_AUDIT "' IN (OLD.space,NEW.space)")
    REFUSE_AUDIT("delete", " BEFORE DELETE ON notes WHEN OLD.space='" NOTE_AUDIT "'")
    REFUSE_AUDIT("replace", " BEFORE INSERT ON notes WHEN NEW.space='" NOTE_AUDIT "'"
                            " AND EXISTS(SELECT 1 FROM notes WHERE space=NEW.space AND key=NEW.key)")
    REFUSE_FLOOR("fall", " BEFORE UPDATE ON feed_floor WHEN NEW.position<OLD.position")
    REFUSE_FLOOR("delete", " BEFORE DELETE ON feed_floor");

static const char old_guards[] =
    "DROP TRIGGER IF EXISTS workflow_events_no_delete;DROP TRIGGER IF EXISTS ledger_no_delete;"
    "DROP TRIGGER IF EXISTS runs_no_delete;DROP TRIGGER IF EXISTS run_heads_no_delete;";
// clang-format on

// Events of playbooks by the names of their model. Entities are cut out of the bytes as they stand, so that an index on the same
// expressions serves the view; there is none by default, because it would double what an append costs (docs/format/sql.md).
#define PIECE(from, to)                                                                                                \
    "substr(e.record_prefix,instr(e.record_prefix,'" from "')+length('" from "'),"                                     \
    "instr(e.record_prefix,'" to "')-instr(e.record_prefix,'" from "')-length('" from "'))"
#define PLAYBOOK_VIEW                                                                                                  \
    "CREATE VIEW noetl_events AS SELECT e.run_no, r.tenant_id, e.run_id AS execution_id, e.sequence AS seq,"           \
    " e.event_type, e.timestamp, " PIECE("\"entity_id\":\"", "\",\"entity_type\":\"") " AS entity_id, " PIECE(         \
        ",\"entity_type\":\"",                                                                                         \
        "\",\"event_alias\":") " AS entity_type, e.payload,"                                                           \
                               " e.record_prefix||e.payload||e.record_suffix AS record"                                \
                               " FROM workflow_events e JOIN runs r USING(run_no) WHERE instr(e.event_type,'.')>0;"

// For people with a shell and a question.
static const char views[] =
    "CREATE VIEW workflow_runs AS SELECT r.run_id, r.tenant_id, r.project_id, r.environment_id, r.plan_id,"
    " r.plan_version, r.name, h.status, h.substatus, h.last_seq AS last_sequence, h.steps_total, h.steps_completed,"
    " h.steps_failed, h.steps_skipped, h.steps_running, h.cause,"
    " strftime('%Y-%m-%dT%H:%M:%fZ',h.created_ms/1000.0,'unixepoch') AS created,"
    " strftime('%Y-%m-%dT%H:%M:%fZ',h.updated_ms/1000.0,'unixepoch') AS updated,"
    " r.run_no FROM runs r JOIN run_heads h USING(run_no);"
    "CREATE VIEW workflow_records AS SELECT e.run_no, e.run_id, e.sequence,"
    " e.record_prefix||e.payload||e.record_suffix AS record FROM workflow_events e;" PLAYBOOK_VIEW;

static enum code read_number(struct sqlite_store *store, const char *sql, int64_t *out, struct error *err)
{
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW) *out = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return rc == SQLITE_ROW ? OK : sqlite_code(store, rc, "read the store's version", err);
}

enum code sqlite_check_schema(struct sqlite_store *store, bool *fresh, struct error *err)
{
    int64_t application = 0;
    int64_t version = 0;
    int64_t objects = 0;
    // In this order: another process may be making the store right now, tables and marks in one commit. Tables that are
    // seen have their marks by the time those are read.
    enum code rc = read_number(store, "SELECT count(*) FROM sqlite_schema", &objects, err);
    if (!rc) rc = read_number(store, "PRAGMA application_id", &application, err);
    if (!rc) rc = read_number(store, "PRAGMA user_version", &version, err);
    if (rc) return rc;
    *fresh = application == 0 && objects == 0;
    if (*fresh) return OK;
    if (application == RESTORING_ID) {
        enum code restoring = store_found_restoring(&store->base, err);
        if (restoring) return restoring;
    } else if (application != APPLICATION_ID)
        return error_set(err, E_INVALID, "%s is a database of another program", store->path);
    if (version > SCHEMA_VERSION)
        return error_set(err, E_VERSION, "%s has format %lld, this version of Cairn reads up to %d; use a newer Cairn",
                         store->path, (long long)version, SCHEMA_VERSION);
    if (version < 1)
        return error_set(err, E_CORRUPT, "%s has format %lld, which never existed", store->path, (long long)version);
    return OK;
}

enum code sqlite_make_schema(struct sqlite_store *store, struct error *err)
{
    INVARIANT(store->base.options.mode == STORE_WRITE);
    enum code rc = sqlite_begin(store, err);
    if (rc) return rc;
    // Another process may have made it while we waited for the lock.
    bool fresh = false;
    rc = sqlite_check_schema(store, &fresh, err);
    if (!rc && fresh) {
        char marks[96];
        sqlite3_snprintf(sizeof(marks), marks, "PRAGMA application_id=%d;PRAGMA user_version=%d;", APPLICATION_ID,
                         SCHEMA_VERSION);
        rc = sqlite_run(store, schema, err);
        if (!rc) rc = sqlite_run(store, guards, err);
        if (!rc) rc = sqlite_run(store, removal_guards, err);
        if (!rc) rc = sqlite_run(store, note_guards, err);
        if (!rc) rc = sqlite_run(store, views, err);
        if (!rc) rc = sqlite_run(store, marks, err);
    }
    if (!rc) return sqlite_commit_now(store, err);
    sqlite_rollback(store);
    return rc;
}

enum code sqlite_restoring(struct store *base, bool begun, struct error *err)
{
    INVARIANT(base->options.mode == STORE_WRITE);
    struct sqlite_store *store = sqlite_of(base);
    char sql[64];
    sqlite3_snprintf(sizeof(sql), sql, "PRAGMA application_id=%d", begun ? RESTORING_ID : APPLICATION_ID);
    enum code rc = sqlite_begin(store, err);
    if (!rc) rc = sqlite_run(store, sql, err);
    if (!rc) return sqlite_commit_now(store, err);
    sqlite_rollback(store);
    return rc;
}

// What came later: a table that shows whether it is there, and all that makes it.
struct addition {
    const char *look;
    const char *parts[3];
};
static const struct addition additions[] = {
    {"SELECT count(*) FROM sqlite_schema WHERE name='tombstones'", {TOMBSTONES, old_guards, removal_guards}},
    {"SELECT count(*) FROM sqlite_schema WHERE name='notes'", {NOTES, note_guards}},
    {"SELECT count(*) FROM sqlite_schema WHERE name='run_heads_by_time'", {TIMES}},
    {"SELECT count(*) FROM sqlite_schema WHERE name='noetl_events'", {PLAYBOOK_VIEW}},
    {"SELECT count(*) FROM sqlite_schema WHERE name='workflow_events_by_key'",
     {KEYS, "DROP TRIGGER IF EXISTS workflow_events_no_replace;", EVENTS_NO_REPLACE}},
    {"SELECT count(*) FROM pragma_table_info('engines') WHERE name='who'", {"ALTER TABLE engines ADD COLUMN who TEXT"}},
};

static enum code is_complete(struct sqlite_store *store, bool *out, struct error *err)
{
    *out = true;
    for (size_t i = 0; i < ARRAY_COUNT(additions); i++) {
        int64_t there = 0;
        enum code rc = read_number(store, additions[i].look, &there, err);
        if (rc) return rc;
        *out = *out && there;
    }
    return OK;
}

// The format stays 1: readers that do not know of tombstones or notes see the same runs.
enum code sqlite_upgrade_schema(struct sqlite_store *store, struct error *err)
{
    INVARIANT(store->base.options.mode == STORE_WRITE);
    bool complete = false;
    enum code rc = is_complete(store, &complete, err);
    if (rc || complete) return rc;
    rc = sqlite_begin(store, err);
    if (rc) return rc;
    for (size_t i = 0; i < ARRAY_COUNT(additions) && !rc; i++) {
        int64_t there = 0;
        rc = read_number(store, additions[i].look, &there, err);
        for (size_t k = 0; k < ARRAY_COUNT(additions[i].parts) && !rc && !there && additions[i].parts[k]; k++)
            rc = sqlite_run(store, additions[i].parts[k], err);
    }
    if (!rc) return sqlite_commit_now(store, err);
    sqlite_rollback(store);
    if (rc != E_CONFLICT) return rc;
    COVER(two_events_of_one_key);
    if (err) *err = (struct error){0}; // what SQLite said of the index
    return error_set(err, E_CORRUPT, "%s holds two events of one run under one key; cairn log verify --all says where",
                     store->path);
}
