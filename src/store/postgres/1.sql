-- Format 1 of the store: tables, guards, the walls between tenants, and the functions that write. @S@ becomes the name of the schema.
--
-- Tables, guards, and the walls between tenants. Why it is laid out like this (docs/format/postgres.md has the numbers):
--  - The same columns as in the SQLite store, so that a question asked there is a question here.
--  - run_heads is what changes: nothing that changes with every batch is in an index, and a third of each page is left free, so
--    that a new version of a row goes beside the old one and no index is touched (HOT).
--  - tenant_id stands in every table, because the walls are asked row by row and must not have to look elsewhere.
--  - Nobody but the functions of the second half writes: they belong to the owner of the schema, others may only call them.

DO $$ BEGIN IF NOT EXISTS(SELECT 1 FROM pg_namespace WHERE nspname='@S@') THEN CREATE SCHEMA @S@; END IF; END $$;
CREATE TABLE @S@.migrations(version int PRIMARY KEY, needs int NOT NULL,
 taken_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE SEQUENCE @S@.run_no;
CREATE SEQUENCE @S@.feed_position;
CREATE TABLE @S@.runs(
 run_no bigint PRIMARY KEY,
 tenant_id text COLLATE "C" NOT NULL,
 run_id text COLLATE "C" NOT NULL,
 project_id text NOT NULL,
 environment_id text NOT NULL,
 plan_id text COLLATE "C" NOT NULL,
 plan_version text NOT NULL,
 name text NOT NULL,
 vocabulary text NOT NULL CHECK(vocabulary IN ('run','noetl','nodes')),
 document bytea NOT NULL CHECK(length(document)=32),
 parent_run text NOT NULL,
 original_run text NOT NULL,
 UNIQUE(tenant_id,run_id));
CREATE INDEX runs_by_plan ON @S@.runs(tenant_id,plan_id,run_no);
CREATE TABLE @S@.run_heads(
 run_no bigint PRIMARY KEY,
 tenant_id text COLLATE "C" NOT NULL,
 last_seq bigint NOT NULL,
 ledger_seq bigint NOT NULL,
 head bytea NOT NULL CHECK(length(head)=32),
 ledger_head bytea NOT NULL CHECK(length(ledger_head)=32),
 updated_ms bigint NOT NULL,
 terminal boolean NOT NULL,
 epoch bigint NOT NULL,
 owner bigint NOT NULL,
 status text COLLATE "C" NOT NULL,
 substatus text NOT NULL,
 steps_total bigint NOT NULL,
 steps_completed bigint NOT NULL,
 steps_failed bigint NOT NULL,
 steps_skipped bigint NOT NULL,
 steps_running bigint NOT NULL,
 created_ms bigint NOT NULL,
 started_ms bigint NOT NULL,
 ended_ms bigint NOT NULL,
 cause text NOT NULL,
 shard int NOT NULL CHECK(shard BETWEEN 0 AND 64)) WITH (fillfactor=65); -- 0 = none; for ever
CREATE INDEX run_heads_by_shard ON @S@.run_heads(shard,run_no) WHERE NOT terminal;
CREATE INDEX run_heads_by_status ON @S@.run_heads(tenant_id,status,run_no);
CREATE INDEX run_heads_unfinished ON @S@.run_heads(tenant_id,run_no) WHERE NOT terminal;
CREATE INDEX run_heads_unfinished_all ON @S@.run_heads(run_no) WHERE NOT terminal;
CREATE TABLE @S@.workflow_events(
 position bigint PRIMARY KEY,
 run_no bigint NOT NULL,
 tenant_id text COLLATE "C" NOT NULL,
 run_id text COLLATE "C" NOT NULL,
 sequence bigint NOT NULL,
 event_type text NOT NULL,
 "timestamp" text NOT NULL,
 payload text NOT NULL,
 record_prefix text NOT NULL,
 record_suffix text NOT NULL,
 key bytea NOT NULL,
 UNIQUE(run_no,sequence));
CREATE TABLE @S@.ledger(
 run_no bigint NOT NULL,
 tenant_id text COLLATE "C" NOT NULL,
 ledger_seq bigint NOT NULL,
 after_seq bigint NOT NULL,
 kind text NOT NULL,
 signal_id text COLLATE "C",
 bytes text NOT NULL,
 hash bytea NOT NULL CHECK(length(hash)=32),
 PRIMARY KEY(run_no,ledger_seq));
CREATE UNIQUE INDEX ledger_by_signal ON @S@.ledger(run_no,signal_id) WHERE signal_id IS NOT NULL;

CREATE TABLE @S@.tombstones(
 run_no bigint PRIMARY KEY,
 tenant_id text COLLATE "C" NOT NULL,
 run_id text COLLATE "C" NOT NULL,
 last_seq bigint NOT NULL,
 ledger_seq bigint NOT NULL,
 head bytea NOT NULL CHECK(length(head)=32),
 ledger_head bytea NOT NULL CHECK(length(ledger_head)=32),
 removed_ms bigint NOT NULL,
 reason text NOT NULL);
CREATE TABLE @S@.notes(
 space text COLLATE "C" NOT NULL,
 key bytea NOT NULL,
 version bigint NOT NULL,
 value bytea NOT NULL,
 PRIMARY KEY(space,key));
CREATE TABLE @S@.feed_floor(id int PRIMARY KEY CHECK(id=1), position bigint NOT NULL);
INSERT INTO @S@.feed_floor VALUES(1,0);
CREATE TABLE @S@.blobs(sha256 bytea PRIMARY KEY CHECK(length(sha256)=32), bytes bytea NOT NULL);
CREATE TABLE @S@.inbox(
 id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
 tenant_id text COLLATE "C" NOT NULL,
 run_id text COLLATE "C" NOT NULL,
 signal_id text NOT NULL,
 bytes bytea NOT NULL);
CREATE TABLE @S@.engines(
 engine_no bigserial PRIMARY KEY,
 engine_id text NOT NULL UNIQUE,
 pid bigint NOT NULL,
 host text NOT NULL,
 started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
 lease_until timestamptz, -- NULL: it lives as long as its session
 lease_ms bigint NOT NULL DEFAULT 0, -- of a member
 member boolean NOT NULL DEFAULT false, -- shares the runs with others (S17)
 commit_token bigint NOT NULL DEFAULT 0) WITH (fillfactor=50);
CREATE TABLE @S@.shards(
 shard_no int PRIMARY KEY CHECK(shard_no BETWEEN 1 AND 64),
 owner bigint NOT NULL DEFAULT 0, -- an engine; 0, or one without a row: nobody
 epoch bigint NOT NULL DEFAULT 0) WITH (fillfactor=50);
INSERT INTO @S@.shards(shard_no) SELECT generate_series(1,64);

-- For people with a shell and a question.
CREATE VIEW @S@.workflow_runs WITH (security_barrier) AS SELECT r.run_id, r.tenant_id, r.project_id,
 r.environment_id, r.plan_id, r.plan_version, r.name, h.status, h.substatus, h.last_seq AS last_sequence,
 h.steps_total, h.steps_completed, h.steps_failed, h.steps_skipped, h.steps_running, h.cause,
 to_timestamp(h.created_ms/1000.0) AS created, to_timestamp(h.updated_ms/1000.0) AS updated, r.run_no
 FROM @S@.runs r JOIN @S@.run_heads h USING(run_no);
CREATE VIEW @S@.workflow_records WITH (security_barrier) AS SELECT e.run_no, e.tenant_id, e.run_id, e.sequence,
 e.record_prefix||e.payload||e.record_suffix AS record FROM @S@.workflow_events e;

CREATE FUNCTION @S@.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
 RAISE EXCEPTION '%', TG_ARGV[0] USING ERRCODE='CA010'; END $$;
-- A run leaves whole, and only after its tombstone is there.
CREATE FUNCTION @S@.refuse_unburied() RETURNS trigger LANGUAGE plpgsql SET search_path=@S@,pg_catalog,pg_temp AS $$
 BEGIN IF NOT EXISTS(SELECT 1 FROM tombstones t WHERE t.run_no=OLD.run_no) THEN
 RAISE EXCEPTION 'EVENT_LOG_APPEND_ONLY: runs leave whole, when they have ended' USING ERRCODE='CA010'; END IF;
 RETURN OLD; END $$;
CREATE FUNCTION @S@.check_tombstone() RETURNS trigger LANGUAGE plpgsql SET search_path=@S@,pg_catalog,pg_temp AS $$
 BEGIN IF NOT EXISTS(SELECT 1 FROM runs r JOIN run_heads h USING(run_no) WHERE h.run_no=NEW.run_no AND h.terminal
  AND r.tenant_id=NEW.tenant_id AND r.run_id=NEW.run_id AND h.last_seq=NEW.last_seq AND h.head=NEW.head) THEN
 RAISE EXCEPTION 'EVENT_LOG_APPEND_ONLY: a tombstone is for a run that has ended' USING ERRCODE='CA010'; END IF;
 RETURN NEW; END $$;

CREATE TRIGGER workflow_events_no_update BEFORE UPDATE ON @S@.workflow_events FOR EACH ROW
 EXECUTE FUNCTION @S@.refuse('EVENT_LOG_APPEND_ONLY: stored events do not change');
CREATE TRIGGER ledger_no_update BEFORE UPDATE ON @S@.ledger FOR EACH ROW
 EXECUTE FUNCTION @S@.refuse('EVENT_LOG_APPEND_ONLY: stored events do not change');
CREATE TRIGGER runs_no_update BEFORE UPDATE ON @S@.runs FOR EACH ROW
 EXECUTE FUNCTION @S@.refuse('EVENT_LOG_APPEND_ONLY: the identity of a run does not change');
CREATE TRIGGER run_heads_only_forward BEFORE UPDATE ON @S@.run_heads FOR EACH ROW
 WHEN (NEW.epoch<OLD.epoch OR NEW.last_seq<OLD.last_seq OR NEW.ledger_seq<OLD.ledger_seq OR NEW.run_no<>OLD.run_no
  OR NEW.tenant_id<>OLD.tenant_id OR NEW.shard<>OLD.shard OR (OLD.terminal AND NOT NEW.terminal))
 EXECUTE FUNCTION @S@.refuse('EVENT_LOG_APPEND_ONLY: the head of a run does not go back');
CREATE TRIGGER workflow_events_no_delete BEFORE DELETE ON @S@.workflow_events FOR EACH ROW
 EXECUTE FUNCTION @S@.refuse_unburied();
CREATE TRIGGER workflow_events_no_truncate BEFORE TRUNCATE ON @S@.workflow_events FOR EACH STATEMENT
 EXECUTE FUNCTION @S@.refuse('EVENT_LOG_APPEND_ONLY: nothing is removed but whole ended runs');
CREATE TRIGGER ledger_no_delete BEFORE DELETE ON @S@.ledger FOR EACH ROW
 EXECUTE FUNCTION @S@.refuse_unburied();
CREATE TRIGGER ledger_no_truncate BEFORE TRUNCATE ON @S@.ledger FOR EACH STATEMENT
 EXECUTE FUNCTION @S@.refuse('EVENT_LOG_APPEND_ONLY: nothing is removed but whole ended runs');
CREATE TRIGGER runs_no_delete BEFORE DELETE ON @S@.runs FOR EACH ROW
 EXECUTE FUNCTION @S@.refuse_unburied();
CREATE TRIGGER runs_no_truncate BEFORE TRUNCATE ON @S@.runs FOR EACH STATEMENT
 EXECUTE FUNCTION @S@.refuse('EVENT_LOG_APPEND_ONLY: nothing is removed but whole ended runs');
CREATE TRIGGER run_heads_no_delete BEFORE DELETE ON @S@.run_heads FOR EACH ROW
 EXECUTE FUNCTION @S@.refuse_unburied();
CREATE TRIGGER run_heads_no_truncate BEFORE TRUNCATE ON @S@.run_heads FOR EACH STATEMENT
 EXECUTE FUNCTION @S@.refuse('EVENT_LOG_APPEND_ONLY: nothing is removed but whole ended runs');
CREATE TRIGGER tombstones_no_change BEFORE UPDATE OR DELETE ON @S@.tombstones FOR EACH ROW
 EXECUTE FUNCTION @S@.refuse('EVENT_LOG_APPEND_ONLY: what was removed stays removed');
CREATE TRIGGER tombstones_no_truncate BEFORE TRUNCATE ON @S@.tombstones FOR EACH STATEMENT
 EXECUTE FUNCTION @S@.refuse('EVENT_LOG_APPEND_ONLY: nothing is removed but whole ended runs');
CREATE TRIGGER tombstones_fit BEFORE INSERT ON @S@.tombstones FOR EACH ROW EXECUTE FUNCTION @S@.check_tombstone();

CREATE TRIGGER notes_audit_no_update BEFORE UPDATE ON @S@.notes FOR EACH ROW WHEN ('audit' IN (OLD.space,NEW.space))
 EXECUTE FUNCTION @S@.refuse('AUDIT_APPEND_ONLY: audit records are only added');
CREATE TRIGGER notes_audit_no_delete BEFORE DELETE ON @S@.notes FOR EACH ROW WHEN (OLD.space='audit')
 EXECUTE FUNCTION @S@.refuse('AUDIT_APPEND_ONLY: audit records are only added');
CREATE TRIGGER notes_no_truncate BEFORE TRUNCATE ON @S@.notes FOR EACH STATEMENT EXECUTE FUNCTION @S@.refuse('AUDIT_APPEND_ONLY: audit records are only added');
CREATE TRIGGER shards_only_forward BEFORE UPDATE ON @S@.shards FOR EACH ROW WHEN (NEW.epoch<OLD.epoch OR NEW.shard_no<>OLD.shard_no)
 EXECUTE FUNCTION @S@.refuse('epochs of shards only rise');
CREATE TRIGGER feed_floor_no_fall BEFORE UPDATE ON @S@.feed_floor FOR EACH ROW WHEN (NEW.position<OLD.position)
 EXECUTE FUNCTION @S@.refuse('EVENT_LOG_APPEND_ONLY: positions are not given again');
CREATE TRIGGER feed_floor_no_delete BEFORE DELETE ON @S@.feed_floor FOR EACH ROW
 EXECUTE FUNCTION @S@.refuse('EVENT_LOG_APPEND_ONLY: positions are not given again');
CREATE TRIGGER feed_floor_no_truncate BEFORE TRUNCATE ON @S@.feed_floor FOR EACH STATEMENT
 EXECUTE FUNCTION @S@.refuse('EVENT_LOG_APPEND_ONLY: nothing is removed but whole ended runs');

-- The session says whose rows it means; one that says nothing sees none. FORCE: the owner of the tables is held to it too.
ALTER TABLE @S@.runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE @S@.runs FORCE ROW LEVEL SECURITY;
CREATE POLICY runs_by_tenant ON @S@.runs USING (current_setting('cairn.tenant',true)='*'
 OR tenant_id=current_setting('cairn.tenant',true));
ALTER TABLE @S@.run_heads ENABLE ROW LEVEL SECURITY;
ALTER TABLE @S@.run_heads FORCE ROW LEVEL SECURITY;
CREATE POLICY run_heads_by_tenant ON @S@.run_heads USING (current_setting('cairn.tenant',true)='*'
 OR tenant_id=current_setting('cairn.tenant',true));
ALTER TABLE @S@.workflow_events ENABLE ROW LEVEL SECURITY;
ALTER TABLE @S@.workflow_events FORCE ROW LEVEL SECURITY;
CREATE POLICY workflow_events_by_tenant ON @S@.workflow_events USING (current_setting('cairn.tenant',true)='*'
 OR tenant_id=current_setting('cairn.tenant',true));
ALTER TABLE @S@.ledger ENABLE ROW LEVEL SECURITY;
ALTER TABLE @S@.ledger FORCE ROW LEVEL SECURITY;
CREATE POLICY ledger_by_tenant ON @S@.ledger USING (current_setting('cairn.tenant',true)='*'
 OR tenant_id=current_setting('cairn.tenant',true));
ALTER TABLE @S@.tombstones ENABLE ROW LEVEL SECURITY;
ALTER TABLE @S@.tombstones FORCE ROW LEVEL SECURITY;
CREATE POLICY tombstones_by_tenant ON @S@.tombstones USING (current_setting('cairn.tenant',true)='*'
 OR tenant_id=current_setting('cairn.tenant',true));
ALTER TABLE @S@.inbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE @S@.inbox FORCE ROW LEVEL SECURITY;
CREATE POLICY inbox_by_tenant ON @S@.inbox USING (current_setting('cairn.tenant',true)='*'
 OR tenant_id=current_setting('cairn.tenant',true));
ALTER TABLE @S@.notes ENABLE ROW LEVEL SECURITY;
ALTER TABLE @S@.notes FORCE ROW LEVEL SECURITY;
CREATE POLICY notes_of_all ON @S@.notes USING (current_setting('cairn.tenant',true)='*');

-- The functions that write. Each is one transaction when it is called by itself, which is how the store calls them: a batch is one
-- round trip, and the commit is part of it.
--
-- Order (S4, S16). Numbers of a run are given under its head's row, which stays locked until the commit. Positions of the feed
-- come from a sequence, and transactions that run beside each other may commit in another order than they took theirs. A lock on
-- the sequence held until the commit would put all engines behind one disk write, so the reader waits instead: a transaction
-- first notes, as a shared advisory lock, the last position given so far (its own will be larger) and then takes its positions.
-- A reader (1) notes the last position given, (2) looks at those locks, (3) reads, in a snapshot taken after that, what is not
-- above either. A batch with a position up to (1) had its lock by then: either it is still held in (2), and then the reader stays
-- below it, or it was given back, which Postgres does after the commit has become visible, and then (3) sees it. No long
-- transaction of anybody else holds the feed up, as it would if the horizon of transaction ids were asked.
--
-- SQLSTATEs of our own: CA001 exists, CA002 fenced (DETAIL: place of the head in the call), CA003 note (DETAIL: its place), CA004
-- the engine is gone, CA005 owned (DETAIL: pid and host), CA006 no such run, CA007 not ended, CA010 append-only.
--
-- Advisory locks: the upper half of a key is the schema; the upper bit of the lower half is 1 for engines, 0 for positions.
CREATE VIEW @S@.living_engines AS SELECT e.engine_no,e.engine_id,e.pid,e.host,e.lease_until FROM @S@.engines e
 WHERE e.lease_until>clock_timestamp() OR (e.lease_until IS NULL AND (e.engine_no&2147483647)|2147483648 IN
  (SELECT l.objid::bigint FROM pg_locks l WHERE l.locktype='advisory' AND l.objsubid=1 AND l.granted AND l.classid='@S@'::regnamespace::oid
 AND l.database=(SELECT d.oid FROM pg_database d WHERE d.datname=current_database())));
CREATE FUNCTION @S@.hold_engine(a_engine bigint) RETURNS void
 LANGUAGE plpgsql SECURITY DEFINER SET search_path=@S@,pg_catalog,pg_temp AS $$ BEGIN
 PERFORM 1 FROM engines WHERE engine_no=a_engine;
 IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF;
 PERFORM pg_advisory_lock((('@S@'::regnamespace::oid::bigint<<32)|2147483648|(a_engine&2147483647))); END $$;
-- Those who died long ago are cleared away on the occasion.
CREATE FUNCTION @S@.join_engine(a_id text,a_pid bigint,a_host text,a_lease_ms bigint) RETURNS bigint
 LANGUAGE plpgsql SECURITY DEFINER SET search_path=@S@,pg_catalog,pg_temp AS $$
 DECLARE v_no bigint; BEGIN
 DELETE FROM engines e WHERE greatest(e.started_at,e.lease_until)<clock_timestamp()-interval '1 hour'
  AND NOT EXISTS(SELECT 1 FROM living_engines l WHERE l.engine_no=e.engine_no);
 INSERT INTO engines(engine_id,pid,host,lease_until) VALUES(a_id,a_pid,a_host,
  CASE WHEN a_lease_ms>0 THEN clock_timestamp()+a_lease_ms*interval '1 millisecond' END)
  ON CONFLICT(engine_id) DO UPDATE SET pid=a_pid RETURNING engine_no INTO v_no;
 PERFORM pg_advisory_lock((('@S@'::regnamespace::oid::bigint<<32)|2147483648|(v_no&2147483647))); RETURN v_no; END $$;
-- By the clock of the database, like every comparison with it.
CREATE FUNCTION @S@.renew_engine(a_engine bigint,a_lease_ms bigint) RETURNS void
 LANGUAGE plpgsql SECURITY DEFINER SET search_path=@S@,pg_catalog,pg_temp AS $$ BEGIN
 UPDATE engines SET lease_until=clock_timestamp()+a_lease_ms*interval '1 millisecond' WHERE engine_no=a_engine;
 IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF; END $$;

-- Several engines (S17, ADR 0021). An engine is fenced by taking its row away, and every batch finds its row in its own transaction: a
-- batch under way holds the row, and an engine that wants to take it waits, looks again and finds the lease renewed.
-- After a start of the server nobody could renew for a while: everybody gets a lease's time to do so.
CREATE FUNCTION @S@.shards_now(a_engine bigint,a_lease_ms bigint) RETURNS TABLE(shard int,holder bigint,ep bigint,
 free boolean,members bigint)
 LANGUAGE plpgsql SECURITY DEFINER SET search_path=@S@,pg_catalog,pg_temp AS $$ BEGIN
 UPDATE engines SET member=true,lease_ms=a_lease_ms,lease_until=clock_timestamp()+a_lease_ms*interval '1 millisecond' WHERE engine_no=a_engine;
 IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF;
 RETURN QUERY SELECT s.shard_no,s.owner,s.epoch,e.engine_no IS NULL OR (e.lease_until IS NOT NULL
    AND greatest(e.lease_until,pg_postmaster_start_time()+e.lease_ms*interval '1 millisecond')<clock_timestamp()),
  (SELECT count(*) FROM engines m WHERE m.member AND NOT (m.lease_until IS NOT NULL
    AND greatest(m.lease_until,pg_postmaster_start_time()+m.lease_ms*interval '1 millisecond')<clock_timestamp()))
  FROM shards s LEFT JOIN engines e ON e.engine_no=s.owner ORDER BY 1; END $$;
CREATE FUNCTION @S@.move_shards(a_engine bigint,a_lease_ms bigint,a_take int[],a_give int[]) RETURNS void
 LANGUAGE plpgsql SECURITY DEFINER SET search_path=@S@,pg_catalog,pg_temp AS $$
 DECLARE v record; BEGIN
 UPDATE engines SET lease_until=clock_timestamp()+a_lease_ms*interval '1 millisecond' WHERE engine_no=a_engine;
 IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF;
 FOR v IN SELECT * FROM shards WHERE shard_no=ANY(a_take||a_give) ORDER BY shard_no FOR UPDATE LOOP
  IF v.owner=a_engine THEN IF v.shard_no=ANY(a_give) THEN UPDATE shards SET owner=0 WHERE shard_no=v.shard_no; END IF;
  ELSIF v.shard_no=ANY(a_take) THEN
   DELETE FROM engines e WHERE e.engine_no=v.owner AND (e.lease_until IS NOT NULL
    AND greatest(e.lease_until,pg_postmaster_start_time()+e.lease_ms*interval '1 millisecond')<clock_timestamp()); -- the fence, before anything is taken
   IF NOT EXISTS(SELECT 1 FROM engines e WHERE e.engine_no=v.owner) THEN
    UPDATE shards SET owner=a_engine,epoch=epoch+1 WHERE shard_no=v.shard_no; END IF;
  END IF; END LOOP; END $$;

-- Waits for a transaction of ours that is still under way somewhere.
CREATE FUNCTION @S@.token_of(a_engine bigint) RETURNS bigint
 LANGUAGE plpgsql SECURITY DEFINER SET search_path=@S@,pg_catalog,pg_temp AS $$ DECLARE v_token bigint; BEGIN
 SELECT commit_token INTO v_token FROM engines WHERE engine_no=a_engine FOR UPDATE; RETURN v_token; END $$;
CREATE FUNCTION @S@.release_runs(a_engine bigint,a_runs bigint[],a_epochs bigint[]) RETURNS void
 LANGUAGE plpgsql SECURITY DEFINER SET search_path=@S@,pg_catalog,pg_temp AS $$ BEGIN
 IF cardinality(a_runs)>0 THEN UPDATE run_heads h SET owner=0 FROM (SELECT * FROM unnest(a_runs,a_epochs)
  u(run_no,epoch) ORDER BY 1) u WHERE h.run_no=u.run_no AND h.epoch=u.epoch AND h.owner=a_engine; END IF; END $$;
CREATE FUNCTION @S@.leave_engine(a_engine bigint,a_runs bigint[],a_epochs bigint[]) RETURNS void
 LANGUAGE plpgsql SECURITY DEFINER SET search_path=@S@,pg_catalog,pg_temp AS $$ BEGIN
 PERFORM release_runs(a_engine,a_runs,a_epochs); DELETE FROM engines WHERE engine_no=a_engine; END $$;
CREATE FUNCTION @S@.claim_run(a_engine bigint,a_tenant text,a_run text,a_again boolean,a_runs bigint[],
 a_epochs bigint[]) RETURNS bigint
 LANGUAGE plpgsql SECURITY DEFINER SET search_path=@S@,pg_catalog,pg_temp AS $$ DECLARE v_no bigint; v_owner bigint; v_pid text; v_epoch bigint;
 v_shard int; v_holder bigint; v_member boolean; BEGIN
 SELECT member INTO v_member FROM engines WHERE engine_no=a_engine FOR SHARE;
 IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF;
 PERFORM release_runs(a_engine,a_runs,a_epochs);
 SELECT r.run_no,h.owner,h.shard INTO v_no,v_owner,v_shard FROM runs r JOIN run_heads h USING(run_no)
  WHERE r.tenant_id=a_tenant AND r.run_id=a_run FOR UPDATE OF h;
 IF v_no IS NULL THEN RAISE EXCEPTION 'no run' USING ERRCODE='CA006'; END IF;
 IF v_shard>0 THEN SELECT owner INTO v_holder FROM shards WHERE shard_no=v_shard;
  IF v_holder<>a_engine THEN SELECT l.pid||' '||l.host INTO v_pid FROM living_engines l WHERE l.engine_no=v_holder;
   IF v_pid IS NULL AND v_member THEN v_pid:='0 '; END IF; -- it must take the shard first
   IF v_pid IS NOT NULL THEN RAISE EXCEPTION 'owned' USING ERRCODE='CA005',DETAIL=v_pid; END IF; END IF;
  IF v_holder=a_engine THEN v_owner:=0; END IF; END IF; -- the owner before is fenced by the epoch
 IF v_owner<>0 AND NOT (a_again AND v_owner=a_engine) THEN
  SELECT l.pid||' '||l.host INTO v_pid FROM living_engines l WHERE l.engine_no=v_owner;
  IF v_pid IS NOT NULL THEN RAISE EXCEPTION 'owned' USING ERRCODE='CA005',DETAIL=v_pid; END IF; END IF;
 UPDATE run_heads SET epoch=epoch+1,owner=a_engine WHERE run_no=v_no RETURNING epoch INTO v_epoch;
 RETURN v_epoch; END $$;
CREATE FUNCTION @S@.post_signal(a_tenant text,a_run text,a_signal text,a_bytes bytea) RETURNS void
 LANGUAGE plpgsql SECURITY DEFINER SET search_path=@S@,pg_catalog,pg_temp AS $$ BEGIN
 INSERT INTO inbox(tenant_id,run_id,signal_id,bytes) SELECT a_tenant,a_run,a_signal,a_bytes
  WHERE EXISTS(SELECT 1 FROM runs WHERE tenant_id=a_tenant AND run_id=a_run);
 IF NOT FOUND THEN RAISE EXCEPTION 'no run' USING ERRCODE='CA006'; END IF; END $$;

-- Heads come first: moving them is the fence (epoch, owner and both last numbers must be what the writer believes). Those of new
-- runs stand before the others in the h_ arrays; h_run has only the others' numbers.
CREATE FUNCTION @S@.append(a_engine bigint,a_token bigint,a_lease_ms bigint,
h_run bigint[],h_epoch bigint[],h_expect bigint[],h_expect_ledger bigint[],h_last bigint[],h_ledger bigint[],
h_head bytea[],h_ledger_head bytea[],h_updated bigint[],h_terminal boolean[],h_status text[],h_substatus text[],
h_total bigint[],h_completed bigint[],h_failed bigint[],h_skipped bigint[],h_running bigint[],h_created bigint[],
h_started bigint[],h_ended bigint[],h_cause text[],
r_tenant text[],r_run text[],r_project text[],r_environment text[],r_plan text[],r_plan_version text[],
r_name text[],r_vocabulary text[],r_document bytea[],r_parent text[],r_original text[],r_shard bigint[],
e_head int[],e_tenant text[],e_run text[],e_seq bigint[],e_type text[],e_time text[],e_payload text[],
e_prefix text[],e_suffix text[],e_key bytea[],
l_head int[],l_tenant text[],l_seq bigint[],l_after bigint[],l_kind text[],l_signal text[],l_bytes text[],
l_hash bytea[],b_sha bytea[],b_bytes bytea[],i_done bigint[],
n_space text[],n_key bytea[],n_value bytea[],n_before bigint[],n_after bigint[],x_run bigint[],x_epoch bigint[]) RETURNS bigint[]
 LANGUAGE plpgsql SECURITY DEFINER SET search_path=@S@,pg_catalog,pg_temp AS $$ DECLARE
 v_new int:=cardinality(r_run); v_runs bigint[]; v_count bigint; v_name text; v_note record; BEGIN
-- Local to the transaction, for clients that come through a pooler that does not keep sessions apart.
 IF current_setting('synchronous_commit') NOT IN ('on','remote_apply') THEN
  PERFORM set_config('synchronous_commit','on',true); END IF;
 UPDATE engines SET commit_token=a_token,lease_until=CASE WHEN a_lease_ms>0 THEN
  clock_timestamp()+a_lease_ms*interval '1 millisecond' END WHERE engine_no=a_engine;
 IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF;
 IF cardinality(x_run)>0 THEN PERFORM release_runs(a_engine,x_run,x_epoch); END IF;
 IF v_new>0 THEN
  IF EXISTS(SELECT 1 FROM unnest(r_shard) u(no) WHERE u.no>0 AND NOT EXISTS(SELECT 1 FROM shards s WHERE
   s.shard_no=u.no AND s.owner=a_engine)) THEN RAISE EXCEPTION 'fenced' USING ERRCODE='CA002',DETAIL=1; END IF;
  WITH n AS MATERIALIZED (SELECT nextval('run_no') AS no,u.* FROM unnest(r_tenant,r_run,r_project,r_environment,
   r_plan,r_plan_version,r_name,r_vocabulary,r_document,r_parent,r_original) WITH ORDINALITY
   u(a,b,c,d,e,f,g,h,i,j,k,ord)), made AS (INSERT INTO runs SELECT no,a,b,c,d,e,f,g,h,i,j,k FROM n
   ON CONFLICT (tenant_id,run_id) DO NOTHING RETURNING run_no)
  SELECT array_agg(n.no ORDER BY n.ord),(SELECT count(*) FROM made) INTO v_runs,v_count FROM n;
  IF v_count<>v_new THEN SELECT x.run_id INTO v_name FROM unnest(r_tenant,r_run) x(tenant_id,run_id)
   JOIN runs r USING(tenant_id,run_id) WHERE r.run_no<>ALL(v_runs) LIMIT 1;
   RAISE EXCEPTION 'exists' USING ERRCODE='CA001',DETAIL=coalesce(v_name,r_run[1]); END IF;
  INSERT INTO run_heads SELECT no,tenant,last,ledger,head,lhead,updated,terminal,epoch,a_engine,status,
   substatus,total,completed,failed,skipped,running,created,started,ended,cause,shard FROM unnest(v_runs,r_tenant,
   h_last[:v_new],h_ledger[:v_new],h_head[:v_new],h_ledger_head[:v_new],h_updated[:v_new],h_terminal[:v_new],
   h_epoch[:v_new],h_status[:v_new],h_substatus[:v_new],h_total[:v_new],h_completed[:v_new],h_failed[:v_new],
   h_skipped[:v_new],h_running[:v_new],h_created[:v_new],h_started[:v_new],h_ended[:v_new],h_cause[:v_new],r_shard)
   u(no,tenant,last,ledger,head,lhead,updated,terminal,epoch,status,substatus,total,completed,failed,skipped,
   running,created,started,ended,cause,shard);
 END IF; v_runs:=v_runs||h_run;
 IF cardinality(h_run)>0 THEN
  UPDATE run_heads h SET last_seq=u.last,ledger_seq=u.ledger,head=u.head,ledger_head=u.lhead,
   updated_ms=u.updated,terminal=u.terminal,status=u.status,substatus=u.substatus,steps_total=u.total,
   steps_completed=u.completed,steps_failed=u.failed,steps_skipped=u.skipped,steps_running=u.running,
   created_ms=u.created,started_ms=u.started,ended_ms=u.ended,cause=u.cause
  FROM (SELECT * FROM unnest(v_runs,h_epoch,h_expect,h_expect_ledger,h_last,h_ledger,h_head,h_ledger_head,
   h_updated,h_terminal,h_status,h_substatus,h_total,h_completed,h_failed,h_skipped,h_running,h_created,
   h_started,h_ended,h_cause) WITH ORDINALITY u(no,epoch,expect,expect_ledger,last,ledger,head,lhead,updated,
   terminal,status,substatus,total,completed,failed,skipped,running,created,started,ended,cause,ord)
   WHERE u.ord>v_new ORDER BY u.no) u
  WHERE h.run_no=u.no AND h.epoch=u.epoch AND h.owner=a_engine AND h.last_seq=u.expect
   AND h.ledger_seq=u.expect_ledger AND (NOT h.terminal OR h.last_seq=u.last);
  GET DIAGNOSTICS v_count=ROW_COUNT;
  IF v_count<>cardinality(h_run) THEN SELECT u.ord INTO v_count FROM unnest(v_runs,h_epoch,h_last) WITH ORDINALITY
   u(no,epoch,last,ord) LEFT JOIN run_heads h ON h.run_no=u.no WHERE u.ord>v_new AND (h.epoch IS DISTINCT FROM
   u.epoch OR h.owner<>a_engine OR h.last_seq<>u.last) ORDER BY u.ord LIMIT 1;
   RAISE EXCEPTION 'fenced' USING ERRCODE='CA002',DETAIL=coalesce(v_count,v_new+1); END IF;
 END IF;
 IF cardinality(e_head)>0 THEN
  PERFORM pg_advisory_xact_lock_shared((('@S@'::regnamespace::oid::bigint<<32)|(f.last_value&2147483647))) FROM feed_position f;
  INSERT INTO workflow_events SELECT nextval('feed_position'),v_runs[u.head],u.tenant,u.run,u.seq,u.type,u.time,
   u.payload,u.prefix,u.suffix,u.key FROM unnest(e_head,e_tenant,e_run,e_seq,e_type,e_time,e_payload,e_prefix,
   e_suffix,e_key) u(head,tenant,run,seq,type,time,payload,prefix,suffix,key);
 END IF;
 IF cardinality(l_head)>0 THEN INSERT INTO ledger SELECT v_runs[u.head],u.tenant,u.seq,u.after,u.kind,u.signal,
  u.bytes,u.hash FROM unnest(l_head,l_tenant,l_seq,l_after,l_kind,l_signal,l_bytes,l_hash)
  u(head,tenant,seq,after,kind,signal,bytes,hash); END IF;
 IF cardinality(b_sha)>0 THEN INSERT INTO blobs SELECT u.sha,u.bytes FROM unnest(b_sha,b_bytes) u(sha,bytes)
  ORDER BY u.sha ON CONFLICT DO NOTHING; END IF;
 IF cardinality(i_done)>0 THEN DELETE FROM inbox WHERE id=ANY(i_done); END IF;
 IF cardinality(n_space)>0 THEN FOR v_note IN SELECT * FROM unnest(n_space,n_key,n_value,n_before,n_after)
  WITH ORDINALITY u(space,key,value,before,after,ord) LOOP
  IF v_note.after=0 THEN DELETE FROM notes WHERE space=v_note.space AND key=v_note.key AND version=v_note.before;
  ELSIF v_note.before=0 THEN INSERT INTO notes VALUES(v_note.space,v_note.key,v_note.after,v_note.value)
   ON CONFLICT DO NOTHING;
  ELSE UPDATE notes SET value=v_note.value,version=v_note.after
   WHERE space=v_note.space AND key=v_note.key AND version=v_note.before; END IF;
  GET DIAGNOSTICS v_count=ROW_COUNT;
  IF v_count<>1 THEN RAISE EXCEPTION 'note' USING ERRCODE='CA003',DETAIL=v_note.ord; END IF;
 END LOOP; END IF; RETURN v_runs[:v_new]; END $$;

CREATE FUNCTION @S@.feed_horizon() RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path=@S@,pg_catalog,pg_temp
 AS $$ DECLARE v_last bigint; v_low bigint[]; v_now bigint; v_bound bigint; BEGIN
 IF pg_is_in_recovery() THEN RAISE EXCEPTION 'a standby does not know which transactions are under way'
  USING ERRCODE='0A000'; END IF;
 SELECT last_value INTO v_last FROM feed_position;
 SELECT array_agg(l.objid::bigint) INTO v_low FROM pg_locks l WHERE l.locktype='advisory' AND l.objsubid=1 AND l.granted AND l.classid='@S@'::regnamespace::oid
 AND l.database=(SELECT d.oid FROM pg_database d WHERE d.datname=current_database()) AND l.objid::bigint<2147483648;
 SELECT last_value INTO v_now FROM feed_position;
 SELECT min(v_now-((v_now-u)&2147483647)) INTO v_bound FROM unnest(v_low) u;
 RETURN least(v_last,v_bound); END $$;
CREATE FUNCTION @S@.feed(a_after bigint,a_limit bigint) RETURNS TABLE(sequence bigint,event_type text,
 "timestamp" text,payload text,record_prefix text,record_suffix text,key bytea,run_id text,"position" bigint,
 tenant_id text,vocabulary text) LANGUAGE plpgsql VOLATILE SET search_path=@S@,pg_catalog,pg_temp AS $$
 #variable_conflict use_column
 DECLARE v_horizon bigint:=feed_horizon(); BEGIN
 RETURN QUERY SELECT e.sequence,e.event_type,e."timestamp",e.payload,e.record_prefix,e.record_suffix,e.key,e.run_id,e.position,e.tenant_id,r.vocabulary
 FROM workflow_events e JOIN runs r USING(run_no)
 WHERE e.position>a_after AND e.position<=v_horizon ORDER BY e.position LIMIT a_limit; END $$;
-- Only what was committed: the last value of the sequence itself need not have reached the disk.
CREATE FUNCTION @S@.feed_end() RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path=@S@,pg_catalog,pg_temp AS $$
 DECLARE v_horizon bigint:=feed_horizon(); v_floor bigint; v_newest bigint; BEGIN
 SELECT position INTO v_floor FROM feed_floor;
 SELECT position INTO v_newest FROM workflow_events WHERE position<=v_horizon ORDER BY position DESC LIMIT 1;
 RETURN greatest(coalesce(v_newest,0),least(v_floor,v_horizon)); END $$;

CREATE FUNCTION @S@.remove_runs(a_tenants text[],a_runs text[],a_now bigint,a_reason text,a_engine bigint)
 RETURNS void
 LANGUAGE plpgsql SECURITY DEFINER SET search_path=@S@,pg_catalog,pg_temp AS $$ DECLARE v record; v_pid text; BEGIN
 FOR v IN SELECT u.tenant,u.run,u.ord,r.run_no FROM unnest(a_tenants,a_runs) WITH ORDINALITY u(tenant,run,ord)
  LEFT JOIN runs r ON r.tenant_id=u.tenant AND r.run_id=u.run ORDER BY r.run_no LOOP
  IF v.run_no IS NULL THEN RAISE EXCEPTION 'no run' USING ERRCODE='CA006',DETAIL=v.run; END IF;
  PERFORM 1 FROM run_heads WHERE run_no=v.run_no FOR UPDATE;
  SELECT l.pid||' '||l.host INTO v_pid FROM run_heads h JOIN living_engines l ON l.engine_no=h.owner
   WHERE h.run_no=v.run_no AND h.owner<>a_engine;
  IF v_pid IS NOT NULL THEN RAISE EXCEPTION 'owned' USING ERRCODE='CA005',DETAIL=v_pid; END IF;
  INSERT INTO tombstones SELECT r.run_no,r.tenant_id,r.run_id,h.last_seq,h.ledger_seq,h.head,h.ledger_head,a_now,
   a_reason FROM runs r JOIN run_heads h USING(run_no) WHERE r.run_no=v.run_no AND h.terminal;
  IF NOT FOUND THEN RAISE EXCEPTION 'not ended' USING ERRCODE='CA007',DETAIL=v.run; END IF;
  UPDATE feed_floor SET position=greatest(position,
   (SELECT max(e.position) FROM workflow_events e WHERE e.run_no=v.run_no));
  DELETE FROM inbox WHERE tenant_id=v.tenant AND run_id=v.run;
  DELETE FROM workflow_events WHERE run_no=v.run_no;
  DELETE FROM ledger WHERE run_no=v.run_no;
  DELETE FROM run_heads WHERE run_no=v.run_no;
  DELETE FROM runs WHERE run_no=v.run_no;
 END LOOP; END $$;
-- An engine remembers which documents it has stored, and starts runs without storing them again. One that came since the
-- blobs were listed may have stored runs that refer to them; the lock keeps new ones out until this is over.
CREATE FUNCTION @S@.drop_blobs(a_blobs bytea[],a_engine bigint,a_seen bigint) RETURNS bigint
 LANGUAGE plpgsql SECURITY DEFINER SET search_path=@S@,pg_catalog,pg_temp AS $$
 DECLARE v_pid text; v_bytes bigint; BEGIN LOCK TABLE engines IN SHARE ROW EXCLUSIVE MODE;
 SELECT l.pid||' '||l.host INTO v_pid FROM living_engines l WHERE l.engine_no<>a_engine LIMIT 1;
 IF v_pid IS NOT NULL THEN RAISE EXCEPTION 'runs something' USING ERRCODE='CA005',DETAIL=v_pid; END IF;
 IF a_seen<>0 AND a_seen<>(SELECT last_value FROM engines_engine_no_seq) THEN
  RAISE EXCEPTION 'stores something' USING ERRCODE='CA005',DETAIL=''; END IF;
 WITH gone AS (DELETE FROM blobs b WHERE b.sha256=ANY(a_blobs)
  AND NOT EXISTS(SELECT 1 FROM runs r WHERE r.document=b.sha256) RETURNING length(b.bytes) AS size)
 SELECT coalesce(sum(size),0) INTO v_bytes FROM gone; RETURN v_bytes; END $$;

-- Who may do what. Nobody may write to a table; engines may call the doors, readers may look. `allow_tenant` binds a role that may
-- look to one tenant, whatever its session says.
CREATE FUNCTION @S@.allow_reader(a_role name) RETURNS void LANGUAGE plpgsql SET search_path=@S@,pg_catalog,pg_temp AS $$
 BEGIN EXECUTE format('GRANT USAGE ON SCHEMA @S@ TO %I',a_role);
 EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA @S@ TO %I',a_role);
 EXECUTE format('GRANT SELECT ON ALL SEQUENCES IN SCHEMA @S@ TO %I',a_role);
 EXECUTE format('GRANT EXECUTE ON FUNCTION @S@.feed_horizon(),@S@.feed(bigint,bigint),@S@.feed_end() TO %I',a_role);
 END $$;
CREATE FUNCTION @S@.allow_engine(a_role name) RETURNS void LANGUAGE plpgsql SET search_path=@S@,pg_catalog,pg_temp AS $$
 BEGIN PERFORM allow_reader(a_role);
 EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA @S@ TO %I',a_role);
 EXECUTE format('REVOKE EXECUTE ON FUNCTION @S@.allow_reader(name),@S@.allow_engine(name),
@S@.allow_tenant(name,text) FROM %I',a_role); END $$;
CREATE FUNCTION @S@.allow_tenant(a_role name,a_tenant text) RETURNS void LANGUAGE plpgsql
 SET search_path=@S@,pg_catalog,pg_temp AS $$ DECLARE v_table text; BEGIN
 EXECUTE format('GRANT USAGE ON SCHEMA @S@ TO %I',a_role);
 FOREACH v_table IN ARRAY ARRAY['runs','run_heads','workflow_events','ledger','tombstones'] LOOP
  EXECUTE format('GRANT SELECT ON @S@.%I TO %I',v_table,a_role);
  EXECUTE format('CREATE POLICY %I ON @S@.%I AS RESTRICTIVE TO %I USING (tenant_id=%L)',
   a_role||'_only',v_table,a_role,a_tenant);
 END LOOP; END $$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA @S@ FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA @S@ FROM PUBLIC;
