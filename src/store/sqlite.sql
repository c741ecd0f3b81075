-- The tables of the SQLite store, in parts: a store of an earlier version gets the parts that it lacks (sqlite_schema.c).
--
-- Why it is laid out like this (numbers: docs/format/sql.md):
--  - Events go to the end of one table; run_no comes first in its index, so runs of one time share pages.
--  - What changes with every batch (run_heads) is kept apart from what never changes (runs): four times fewer pages.
--  - Keys have a unique index, although the owner of a run checks them and nobody can insert an event that no head has made
--    room for (the head of a run is moved first, inside the transaction, and the trigger lets in only numbers up to it that
--    are not there yet): the last guard of an append is the store itself, whatever an owner believes.
--  - The handle that appends asks by itself what the triggers ask and leaves them off (sqlite_guards); every other connection
--    meets them. The indexes hold for all.
--  - RAISE(ROLLBACK) instead of ABORT in that trigger, because an ABORT would cost a statement journal for every row.

--- part tables
CREATE TABLE runs(
 run_no INTEGER PRIMARY KEY,
 tenant_id TEXT NOT NULL,
 run_id TEXT NOT NULL,
 project_id TEXT NOT NULL,
 environment_id TEXT NOT NULL,
 plan_id TEXT NOT NULL,
 plan_version TEXT NOT NULL,
 name TEXT NOT NULL,
 vocabulary TEXT NOT NULL CHECK(vocabulary IN ('run','noetl','nodes')),
 document BLOB NOT NULL CHECK(length(document)=32),
 parent_run TEXT NOT NULL,
 original_run TEXT NOT NULL,
 UNIQUE(tenant_id,run_id)) STRICT;
CREATE INDEX runs_by_plan ON runs(tenant_id,plan_id,run_no);
CREATE TABLE run_heads(
 run_no INTEGER PRIMARY KEY REFERENCES runs,
 tenant_id TEXT NOT NULL,
 last_seq INTEGER NOT NULL,
 ledger_seq INTEGER NOT NULL,
 head BLOB NOT NULL CHECK(length(head)=32),
 ledger_head BLOB NOT NULL CHECK(length(ledger_head)=32),
 updated_ms INTEGER NOT NULL,
 terminal INTEGER NOT NULL CHECK(terminal IN (0,1)),
 epoch INTEGER NOT NULL,
 owner INTEGER NOT NULL,
 status TEXT NOT NULL,
 substatus TEXT NOT NULL,
 steps_total INTEGER NOT NULL,
 steps_completed INTEGER NOT NULL,
 steps_failed INTEGER NOT NULL,
 steps_skipped INTEGER NOT NULL,
 steps_running INTEGER NOT NULL,
 created_ms INTEGER NOT NULL,
 started_ms INTEGER NOT NULL,
 ended_ms INTEGER NOT NULL,
 cause TEXT NOT NULL) STRICT;
CREATE INDEX run_heads_by_status ON run_heads(tenant_id,status,run_no);
CREATE INDEX run_heads_unfinished ON run_heads(tenant_id,run_no) WHERE terminal=0;
CREATE TABLE workflow_events(
 position INTEGER PRIMARY KEY,
 run_no INTEGER NOT NULL,
 run_id TEXT NOT NULL,
 sequence INTEGER NOT NULL,
 event_type TEXT NOT NULL,
 timestamp TEXT NOT NULL,
 payload TEXT NOT NULL,
 record_prefix TEXT NOT NULL,
 record_suffix TEXT NOT NULL,
 key BLOB NOT NULL) STRICT;
CREATE UNIQUE INDEX workflow_events_by_run ON workflow_events(run_no,sequence);
CREATE TABLE ledger(
 position INTEGER PRIMARY KEY,
 run_no INTEGER NOT NULL,
 ledger_seq INTEGER NOT NULL,
 after_seq INTEGER NOT NULL,
 kind TEXT NOT NULL,
 signal_id TEXT,
 bytes TEXT NOT NULL,
 hash BLOB NOT NULL CHECK(length(hash)=32)) STRICT;
CREATE UNIQUE INDEX ledger_by_run ON ledger(run_no,ledger_seq);
CREATE UNIQUE INDEX ledger_by_signal ON ledger(run_no,signal_id) WHERE signal_id IS NOT NULL;
CREATE TABLE blobs(sha256 BLOB PRIMARY KEY CHECK(length(sha256)=32), bytes BLOB NOT NULL) STRICT;
CREATE TABLE inbox(
 id INTEGER PRIMARY KEY AUTOINCREMENT,
 tenant_id TEXT NOT NULL,
 run_id TEXT NOT NULL,
 signal_id TEXT NOT NULL,
 bytes TEXT NOT NULL) STRICT;
CREATE TABLE engines(
 engine_no INTEGER PRIMARY KEY AUTOINCREMENT,
 pid INTEGER NOT NULL,
 started_ms INTEGER NOT NULL,
 who TEXT) STRICT;

--- part times
-- `created>2h` among a million runs.
CREATE INDEX run_heads_by_time ON run_heads(tenant_id,created_ms);

--- part keys
-- One event a key.
CREATE UNIQUE INDEX workflow_events_by_key ON workflow_events(run_no,key);

--- part tombstones
CREATE TABLE tombstones(
 run_no INTEGER PRIMARY KEY,
 tenant_id TEXT NOT NULL,
 run_id TEXT NOT NULL,
 last_seq INTEGER NOT NULL,
 ledger_seq INTEGER NOT NULL,
 head BLOB NOT NULL CHECK(length(head)=32),
 ledger_head BLOB NOT NULL CHECK(length(ledger_head)=32),
 removed_ms INTEGER NOT NULL,
 reason TEXT NOT NULL) STRICT;

--- part notes
-- A reader who has seen a position must never miss an event because a removed one had it before.
CREATE TABLE notes(
 space TEXT NOT NULL,
 key TEXT NOT NULL,
 version INTEGER NOT NULL,
 value BLOB NOT NULL,
 PRIMARY KEY(space,key)) STRICT, WITHOUT ROWID;
CREATE TABLE feed_floor(id INTEGER PRIMARY KEY CHECK(id=1), position INTEGER NOT NULL) STRICT;
INSERT INTO feed_floor VALUES(1,0);

--- part guard_events
-- REPLACE removes whatever stands in its way, without asking the triggers of removal: so what would stand in its way is refused here.
CREATE TRIGGER workflow_events_no_replace BEFORE INSERT ON workflow_events
 WHEN EXISTS(SELECT 1 FROM workflow_events WHERE position=NEW.position
   OR (run_no=NEW.run_no AND sequence=NEW.sequence) OR (run_no=NEW.run_no AND key=NEW.key))
 OR NEW.sequence<1 OR NEW.sequence>ifnull((SELECT last_seq FROM run_heads WHERE run_no=NEW.run_no),0)
 BEGIN SELECT RAISE(ROLLBACK,'EVENT_LOG_APPEND_ONLY: only the owner of a run appends to it, and once for each key'); END;

--- part guards
CREATE TRIGGER workflow_events_no_update BEFORE UPDATE ON workflow_events
 BEGIN SELECT RAISE(ABORT,'EVENT_LOG_APPEND_ONLY: stored events do not change'); END;
CREATE TRIGGER ledger_no_update BEFORE UPDATE ON ledger
 BEGIN SELECT RAISE(ABORT,'EVENT_LOG_APPEND_ONLY: ledger entries do not change'); END;
CREATE TRIGGER runs_no_update BEFORE UPDATE ON runs
 BEGIN SELECT RAISE(ABORT,'EVENT_LOG_APPEND_ONLY: the identity of a run does not change'); END;
CREATE TRIGGER ledger_no_replace BEFORE INSERT ON ledger
 WHEN EXISTS(SELECT 1 FROM ledger WHERE position=NEW.position
   OR (run_no=NEW.run_no AND ledger_seq=NEW.ledger_seq)
   OR (run_no=NEW.run_no AND signal_id=NEW.signal_id))
 OR NEW.ledger_seq<1 OR NEW.ledger_seq>ifnull((SELECT ledger_seq FROM run_heads WHERE run_no=NEW.run_no),0)
 BEGIN SELECT RAISE(ROLLBACK,'EVENT_LOG_APPEND_ONLY: only the owner of a run appends to it'); END;
CREATE TRIGGER runs_no_replace BEFORE INSERT ON runs
 WHEN EXISTS(SELECT 1 FROM runs WHERE run_no=NEW.run_no OR (tenant_id=NEW.tenant_id AND run_id=NEW.run_id))
 BEGIN SELECT RAISE(ROLLBACK,'EVENT_LOG_APPEND_ONLY: there is such a run'); END;
CREATE TRIGGER run_heads_no_replace BEFORE INSERT ON run_heads
 WHEN EXISTS(SELECT 1 FROM run_heads WHERE run_no=NEW.run_no)
 BEGIN SELECT RAISE(ROLLBACK,'EVENT_LOG_APPEND_ONLY: there is such a run'); END;

--- part guard_removal
-- A run leaves whole, and only after its tombstone is there.
CREATE TRIGGER workflow_events_no_delete BEFORE DELETE ON workflow_events
 WHEN NOT EXISTS(SELECT 1 FROM tombstones WHERE run_no=OLD.run_no)
 BEGIN SELECT RAISE(ABORT,'EVENT_LOG_APPEND_ONLY: stored events are not removed'); END;
CREATE TRIGGER ledger_no_delete BEFORE DELETE ON ledger
 WHEN NOT EXISTS(SELECT 1 FROM tombstones WHERE run_no=OLD.run_no)
 BEGIN SELECT RAISE(ABORT,'EVENT_LOG_APPEND_ONLY: ledger entries are not removed'); END;
CREATE TRIGGER runs_no_delete BEFORE DELETE ON runs
 WHEN NOT EXISTS(SELECT 1 FROM tombstones WHERE run_no=OLD.run_no)
 BEGIN SELECT RAISE(ABORT,'EVENT_LOG_APPEND_ONLY: runs are not removed'); END;
CREATE TRIGGER run_heads_no_delete BEFORE DELETE ON run_heads
 WHEN NOT EXISTS(SELECT 1 FROM tombstones WHERE run_no=OLD.run_no)
 BEGIN SELECT RAISE(ABORT,'EVENT_LOG_APPEND_ONLY: runs are not removed'); END;
CREATE TRIGGER tombstones_no_update BEFORE UPDATE ON tombstones
 BEGIN SELECT RAISE(ABORT,'EVENT_LOG_APPEND_ONLY: what was removed stays removed'); END;
CREATE TRIGGER tombstones_no_delete BEFORE DELETE ON tombstones
 BEGIN SELECT RAISE(ABORT,'EVENT_LOG_APPEND_ONLY: what was removed stays removed'); END;
CREATE TRIGGER tombstones_no_replace BEFORE INSERT ON tombstones
 WHEN NOT EXISTS(SELECT 1 FROM runs r JOIN run_heads h USING(run_no) WHERE h.run_no=NEW.run_no AND h.terminal=1
   AND r.tenant_id=NEW.tenant_id AND r.run_id=NEW.run_id AND h.last_seq=NEW.last_seq AND h.head=NEW.head)
 BEGIN SELECT RAISE(ROLLBACK,'EVENT_LOG_APPEND_ONLY: a tombstone is for a run that has ended'); END;

--- part guard_notes
CREATE TRIGGER notes_audit_no_update BEFORE UPDATE ON notes WHEN 'audit' IN (OLD.space,NEW.space)
 BEGIN SELECT RAISE(ABORT,'AUDIT_APPEND_ONLY: audit records are only added'); END;
CREATE TRIGGER notes_audit_no_delete BEFORE DELETE ON notes WHEN OLD.space='audit'
 BEGIN SELECT RAISE(ABORT,'AUDIT_APPEND_ONLY: audit records are only added'); END;
CREATE TRIGGER notes_audit_no_replace BEFORE INSERT ON notes WHEN NEW.space='audit' AND EXISTS(SELECT 1 FROM notes WHERE space=NEW.space AND key=NEW.key)
 BEGIN SELECT RAISE(ABORT,'AUDIT_APPEND_ONLY: audit records are only added'); END;
CREATE TRIGGER feed_floor_no_fall BEFORE UPDATE ON feed_floor WHEN NEW.position<OLD.position
 BEGIN SELECT RAISE(ABORT,'EVENT_LOG_APPEND_ONLY: positions are not given again'); END;
CREATE TRIGGER feed_floor_no_delete BEFORE DELETE ON feed_floor
 BEGIN SELECT RAISE(ABORT,'EVENT_LOG_APPEND_ONLY: positions are not given again'); END;

--- part views
-- For people with a shell and a question.
CREATE VIEW workflow_runs AS SELECT r.run_id, r.tenant_id, r.project_id, r.environment_id, r.plan_id,
 r.plan_version, r.name, h.status, h.substatus, h.last_seq AS last_sequence, h.steps_total, h.steps_completed,
 h.steps_failed, h.steps_skipped, h.steps_running, h.cause,
 strftime('%Y-%m-%dT%H:%M:%fZ',h.created_ms/1000.0,'unixepoch') AS created,
 strftime('%Y-%m-%dT%H:%M:%fZ',h.updated_ms/1000.0,'unixepoch') AS updated,
 r.run_no FROM runs r JOIN run_heads h USING(run_no);
CREATE VIEW workflow_records AS SELECT e.run_no, e.run_id, e.sequence,
 e.record_prefix||e.payload||e.record_suffix AS record FROM workflow_events e;

--- part playbook_view
-- Events of playbooks by the names of their model. Entities are cut out of the bytes as they stand, so that an index on the same
-- expressions serves the view; there is none by default, because it would double what an append costs (docs/format/sql.md).
CREATE VIEW noetl_events AS SELECT e.run_no, r.tenant_id, e.run_id AS execution_id, e.sequence AS seq,
 e.event_type, e.timestamp, substr(e.record_prefix,instr(e.record_prefix,'"entity_id":"')+length('"entity_id":"'),
instr(e.record_prefix,'","entity_type":"')-instr(e.record_prefix,'"entity_id":"')-length('"entity_id":"')) AS entity_id, substr(e.record_prefix,instr(e.record_prefix,',"entity_type":"')+length(',"entity_type":"'),
instr(e.record_prefix,'","event_alias":')-instr(e.record_prefix,',"entity_type":"')-length(',"entity_type":"')) AS entity_type, e.payload,
 e.record_prefix||e.payload||e.record_suffix AS record
 FROM workflow_events e JOIN runs r USING(run_no) WHERE instr(e.event_type,'.')>0;
