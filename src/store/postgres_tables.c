// Tables, guards, and the walls between tenants. Why it is laid out like this (docs/format/postgres.md has the numbers):
//  - The same columns as in the SQLite store, so that a question asked there is a question here.
//  - run_heads is what changes: nothing that changes with every batch is in an index, and a third of each page is left free, so
//    that a new version of a row goes beside the old one and no index is touched (HOT).
//  - tenant_id stands in every table, because the walls are asked row by row and must not have to look elsewhere.
//  - Nobody but the functions of postgres_doors.c writes: they belong to the owner of the schema, others may only call them.
#include "store/postgres.h"

// clang-format off
static const char tables[] =
    "CREATE SEQUENCE @S@.run_no;"
    "CREATE SEQUENCE @S@.feed_position;"
    "CREATE TABLE @S@.runs("
    " run_no bigint PRIMARY KEY,"
    " tenant_id text COLLATE \"C\" NOT NULL,"
    " run_id text COLLATE \"C\" NOT NULL,"
    " project_id text NOT NULL,"
    " environment_id text NOT NULL,"
    " plan_id text COLLATE \"C\" NOT NULL,"
    " plan_version text NOT NULL,"
    " name text NOT NULL,"
    " vocabulary text NOT NULL CHECK(vocabulary IN ('run','noetl','nodes')),"
    " document bytea NOT NULL CHECK(length(document)=32),"
    " parent_run text NOT NULL,"
    " original_run text NOT NULL,"
    " UNIQUE(tenant_id,run_id));"
    "CREATE INDEX runs_by_plan ON @S@.runs(tenant_id,plan_id,run_no);"
    "CREATE TABLE @S@.run_heads("
    " run_no bigint PRIMARY KEY,"
    " tenant_id text COLLATE \"C\" NOT NULL,"
    " last_seq bigint NOT NULL,"
    " ledger_seq bigint NOT NULL,"
    " head bytea NOT NULL CHECK(length(head)=32),"
    " ledger_head bytea NOT NULL CHECK(length(ledger_head)=32),"
    " updated_ms bigint NOT NULL,"
    " terminal boolean NOT NULL,"
    " epoch bigint NOT NULL,"
    " owner bigint NOT NULL,"
    " status text COLLATE \"C\" NOT NULL,"
    " substatus text NOT NULL,"
    " steps_total bigint NOT NULL,"
    " steps_completed bigint NOT NULL,"
    " steps_failed bigint NOT NULL,"
    " steps_skipped bigint NOT NULL,"
    " steps_running bigint NOT NULL,"
    " created_ms bigint NOT NULL,"
    " started_ms bigint NOT NULL,"
    " ended_ms bigint NOT NULL,"
    " cause text NOT NULL,"
    " shard int NOT NULL CHECK(shard BETWEEN 0 AND 64)) WITH (fillfactor=65);" // 0 = none; for ever
    "CREATE INDEX run_heads_by_shard ON @S@.run_heads(shard,run_no) WHERE NOT terminal;"
    "CREATE INDEX run_heads_by_status ON @S@.run_heads(tenant_id,status,run_no);"
    "CREATE INDEX run_heads_unfinished ON @S@.run_heads(tenant_id,run_no) WHERE NOT terminal;"
    "CREATE INDEX run_heads_unfinished_all ON @S@.run_heads(run_no) WHERE NOT terminal;"
    "CREATE TABLE @S@.workflow_events("
    " position bigint PRIMARY KEY,"
    " run_no bigint NOT NULL,"
    " tenant_id text COLLATE \"C\" NOT NULL,"
    " run_id text COLLATE \"C\" NOT NULL,"
    " sequence bigint NOT NULL,"
    " event_type text NOT NULL,"
    " \"timestamp\" text NOT NULL,"
    " payload text NOT NULL,"
    " record_prefix text NOT NULL,"
    " record_suffix text NOT NULL,"
    " key bytea NOT NULL,"
    " UNIQUE(run_no,sequence));"
    "CREATE TABLE @S@.ledger("
    " run_no bigint NOT NULL,"
    " tenant_id text COLLATE \"C\" NOT NULL,"
    " ledger_seq bigint NOT NULL,"
    " after_seq bigint NOT NULL,"
    " kind text NOT NULL,"
    " signal_id text COLLATE \"C\","
    " bytes text NOT NULL,"
    " hash bytea NOT NULL CHECK(length(hash)=32),"
    " PRIMARY KEY(run_no,ledger_seq));"
    "CREATE UNIQUE INDEX ledger_by_signal ON @S@.ledger(run_no,signal_id) WHERE signal_id IS NOT NULL;";

static const char tables_beside[] =
    "CREATE TABLE @S@.tombstones("
    " run_no bigint PRIMARY KEY,"
    " tenant_id text COLLATE \"C\" NOT NULL,"
    " run_id text COLLATE \"C\" NOT NULL,"
    " last_seq bigint NOT NULL,"
    " ledger_seq bigint NOT NULL,"
    " head bytea NOT NULL CHECK(length(head)=32),"
    " ledger_head bytea NOT NULL CHECK(length(ledger_head)=32),"
    " removed_ms bigint NOT NULL,"
    " reason text NOT NULL);"
    "CREATE TABLE @S@.notes("
    " space text COLLATE \"C\" NOT NULL,"
    " key bytea NOT NULL,"
    " version bigint NOT NULL,"
    " value bytea NOT NULL,"
    " PRIMARY KEY(space,key));"
    "CREATE TABLE @S@.feed_floor(id int PRIMARY KEY CHECK(id=1), position bigint NOT NULL);"
    "INSERT INTO @S@.feed_floor VALUES(1,0);"
    "CREATE TABLE @S@.blobs(sha256 bytea PRIMARY KEY CHECK(length(sha256)=32), bytes bytea NOT NULL);"
    "CREATE TABLE @S@.inbox("
    " id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " tenant_id text COLLATE \"C\" NOT NULL,"
    " run_id text COLLATE \"C\" NOT NULL,"
    " signal_id text NOT NULL,"
    " bytes bytea NOT NULL);"
    "CREATE TABLE @S@.engines("
    " engine_no bigserial PRIMARY KEY,"
    " engine_id text NOT NULL UNIQUE,"
    " pid bigint NOT NULL,"
    " host text NOT NULL,"
    " started_at timestamptz NOT NULL DEFAULT clock_timestamp(),"
    " lease_until timestamptz," // NULL: it lives as long as its session
    " lease_ms bigint NOT NULL DEFAULT 0," // of a member
    " member boolean NOT NULL DEFAULT false," // shares the runs with others (S17)
    " commit_token bigint NOT NULL DEFAULT 0) WITH (fillfactor=50);"
    "CREATE TABLE @S@.shards("
    " shard_no int PRIMARY KEY CHECK(shard_no BETWEEN 1 AND 64),"
    " owner bigint NOT NULL DEFAULT 0," // an engine; 0, or one without a row: nobody
    " epoch bigint NOT NULL DEFAULT 0) WITH (fillfactor=50);"
    "INSERT INTO @S@.shards(shard_no) SELECT generate_series(1,64);";

// For people with a shell and a question.
static const char views[] =
    "CREATE VIEW @S@.workflow_runs WITH (security_barrier) AS SELECT r.run_id, r.tenant_id, r.project_id,"
    " r.environment_id, r.plan_id, r.plan_version, r.name, h.status, h.substatus, h.last_seq AS last_sequence,"
    " h.steps_total, h.steps_completed, h.steps_failed, h.steps_skipped, h.steps_running, h.cause,"
    " to_timestamp(h.created_ms/1000.0) AS created, to_timestamp(h.updated_ms/1000.0) AS updated, r.run_no"
    " FROM @S@.runs r JOIN @S@.run_heads h USING(run_no);"
    "CREATE VIEW @S@.workflow_records WITH (security_barrier) AS SELECT e.run_no, e.tenant_id, e.run_id, e.sequence,"
    " e.record_prefix||e.payload||e.record_suffix AS record FROM @S@.workflow_events e;";

static const char guard_functions[] =
    "CREATE FUNCTION @S@.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE='CA010'; END $$;"
    // A run leaves whole, and only after its tombstone is there.
    "CREATE FUNCTION @S@.refuse_unburied() RETURNS trigger LANGUAGE plpgsql SET search_path=@S@,pg_catalog,pg_temp AS $$"
    " BEGIN IF NOT EXISTS(SELECT 1 FROM tombstones t WHERE t.run_no=OLD.run_no) THEN"
    " RAISE EXCEPTION 'EVENT_LOG_APPEND_ONLY: runs leave whole, when they have ended' USING ERRCODE='CA010'; END IF;"
    " RETURN OLD; END $$;"
    "CREATE FUNCTION @S@.check_tombstone() RETURNS trigger LANGUAGE plpgsql SET search_path=@S@,pg_catalog,pg_temp AS $$"
    " BEGIN IF NOT EXISTS(SELECT 1 FROM runs r JOIN run_heads h USING(run_no) WHERE h.run_no=NEW.run_no AND h.terminal"
    "  AND r.tenant_id=NEW.tenant_id AND r.run_id=NEW.run_id AND h.last_seq=NEW.last_seq AND h.head=NEW.head) THEN"
    " RAISE EXCEPTION 'EVENT_LOG_APPEND_ONLY: a tombstone is for a run that has ended' USING ERRCODE='CA010'; END IF;"
    " RETURN NEW; END $$;";

#define REFUSE(table, name, events, when, why)                                                                         \
    "CREATE TRIGGER " table "_" name " BEFORE " events " ON @S@." table " FOR EACH ROW " when                          \
    " EXECUTE FUNCTION @S@.refuse('" why "');"
#define REFUSE_TRUNCATE(table)                                                                                         \
    "CREATE TRIGGER " table "_no_truncate BEFORE TRUNCATE ON @S@." table " FOR EACH STATEMENT"                         \
    " EXECUTE FUNCTION @S@.refuse('EVENT_LOG_APPEND_ONLY: nothing is removed but whole ended runs');"
#define REFUSE_DELETE(table)                                                                                           \
    "CREATE TRIGGER " table "_no_delete BEFORE DELETE ON @S@." table " FOR EACH ROW"                                   \
    " EXECUTE FUNCTION @S@.refuse_unburied();" REFUSE_TRUNCATE(table)
#define KEPT "EVENT_LOG_APPEND_ONLY: stored events do not change"
#define BURIED "EVENT_LOG_APPEND_ONLY: what was removed stays removed"
#define AUDIT "AUDIT_APPEND_ONLY: audit records are only added"

static const char guards[] =
    REFUSE("workflow_events", "no_update", "UPDATE", "", KEPT)
    REFUSE("ledger", "no_update", "UPDATE", "", KEPT)
    REFUSE("runs", "no_update", "UPDATE", "", "EVENT_LOG_APPEND_ONLY: the identity of a run does not change")
    REFUSE("run_heads", "only_forward", "UPDATE", "WHEN (NEW.epoch<OLD.epoch OR NEW.last_seq<OLD.last_seq"
           " OR NEW.ledger_seq<OLD.ledger_seq OR NEW.run_no<>OLD.run_no OR NEW.tenant_id<>OLD.tenant_id OR NEW.shard<>OLD.shard"
           " OR (OLD.terminal AND NOT NEW.terminal))", "EVENT_LOG_APPEND_ONLY: the head of a run does not go back")
    REFUSE_DELETE("workflow_events") REFUSE_DELETE("ledger") REFUSE_DELETE("runs") REFUSE_DELETE("run_heads")
    REFUSE("tombstones", "no_change", "UPDATE OR DELETE", "", BURIED) REFUSE_TRUNCATE("tombstones")
    "CREATE TRIGGER tombstones_fit BEFORE INSERT ON @S@.tombstones FOR EACH ROW EXECUTE FUNCTION @S@.check_tombstone();";

static const char note_guards[] =
    REFUSE("notes", "audit_no_update", "UPDATE", "WHEN ('" NOTE_AUDIT "' IN (OLD.space,NEW.space))", AUDIT)
    REFUSE("notes", "audit_no_delete", "DELETE", "WHEN (OLD.space='" NOTE_AUDIT "')", AUDIT)
    "CREATE TRIGGER notes_no_truncate BEFORE TRUNCATE ON @S@.notes FOR EACH STATEMENT EXECUTE FUNCTION @S@.refuse('" AUDIT "');"
    REFUSE("shards", "only_forward", "UPDATE", "WHEN (NEW.epoch<OLD.epoch OR NEW.shard_no<>OLD.shard_no)",
           "epochs of shards only rise")
    REFUSE("feed_floor", "no_fall", "UPDATE", "WHEN (NEW.position<OLD.position)",
           "EVENT_LOG_APPEND_ONLY: positions are not given again")
    REFUSE("feed_floor", "no_delete", "DELETE", "", "EVENT_LOG_APPEND_ONLY: positions are not given again")
    REFUSE_TRUNCATE("feed_floor");

// The session says whose rows it means; one that says nothing sees none. FORCE: the owner of the tables is held to it too.
#define WALL(table)                                                                                                    \
    "ALTER TABLE @S@." table " ENABLE ROW LEVEL SECURITY;ALTER TABLE @S@." table " FORCE ROW LEVEL SECURITY;"          \
    "CREATE POLICY " table "_by_tenant ON @S@." table " USING (current_setting('cairn.tenant',true)='*'"               \
    " OR tenant_id=current_setting('cairn.tenant',true));"
#define WALL_ALL(table)                                                                                                \
    "ALTER TABLE @S@." table " ENABLE ROW LEVEL SECURITY;ALTER TABLE @S@." table " FORCE ROW LEVEL SECURITY;"          \
    "CREATE POLICY " table "_of_all ON @S@." table " USING (current_setting('cairn.tenant',true)='*');"
static const char walls[] =
    WALL("runs") WALL("run_heads") WALL("workflow_events") WALL("ledger") WALL("tombstones") WALL("inbox")
    WALL_ALL("notes");

// The last guard of an append, whatever an owner believes. What is there already is looked at, too: the migration says which run.
static const char keys[] =
    "DO $$ DECLARE twice record; BEGIN"
    " SELECT run_id,min(sequence) AS a,max(sequence) AS b INTO twice FROM @S@.workflow_events"
    "  GROUP BY run_no,run_id,key HAVING count(*)>1 LIMIT 1;"
    " IF FOUND THEN RAISE EXCEPTION 'run %: events % and % have one key; cairn log verify', twice.run_id, twice.a, twice.b"
    "  USING ERRCODE='XX001'; END IF; END $$;"
    "CREATE UNIQUE INDEX workflow_events_by_key ON @S@.workflow_events(run_no,key);";
const char *const pg_keys[] = {keys, NULL};

const char *const pg_tables[] = {tables, tables_beside, views, guard_functions, guards, note_guards, walls, NULL};
// clang-format on
