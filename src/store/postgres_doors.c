// The functions that write. Each is one transaction when it is called by itself, which is how the store calls them: a batch is one
// round trip, and the commit is part of it.
//
// Order (S4, S16). Numbers of a run are given under its head's row, which stays locked until the commit. Positions of the feed
// come from a sequence, and transactions that run beside each other may commit in another order than they took theirs. A lock on
// the sequence held until the commit would put all engines behind one disk write, so the reader waits instead: a transaction
// first notes, as a shared advisory lock, the last position given so far (its own will be larger) and then takes its positions.
// A reader (1) notes the last position given, (2) looks at those locks, (3) reads, in a snapshot taken after that, what is not
// above either. A batch with a position up to (1) had its lock by then: either it is still held in (2), and then the reader stays
// below it, or it was given back, which Postgres does after the commit has become visible, and then (3) sees it. No long
// transaction of anybody else holds the feed up, as it would if the horizon of transaction ids were asked.
//
// SQLSTATEs of our own: CA001 exists, CA002 fenced (DETAIL: place of the head in the call), CA003 note (DETAIL: its place), CA004
// the engine is gone, CA005 owned (DETAIL: pid and host), CA006 no such run, CA007 not ended, CA010 append-only.
#include "store/postgres.h"

// clang-format off
#define DOOR "LANGUAGE plpgsql SECURITY DEFINER SET search_path=@S@,pg_catalog,pg_temp"
#define LOCK_CLASS "('@S@'::regnamespace::oid::bigint<<32)"
// The low half of a key: the upper bit is 1 for engines, 0 for positions.
#define ENGINE_LOCK(engine) "(" LOCK_CLASS "|2147483648|(" engine "&2147483647))"
#define POSITION_LOCK(position) "(" LOCK_CLASS "|(" position "&2147483647))"
#define OUR_LOCKS                                                                                                      \
    "FROM pg_locks l WHERE l.locktype='advisory' AND l.objsubid=1 AND l.granted AND l.classid='@S@'::regnamespace::oid" \
    " AND l.database=(SELECT d.oid FROM pg_database d WHERE d.datname=current_database())"

static const char engines[] =
    "CREATE VIEW @S@.living_engines AS SELECT e.engine_no,e.engine_id,e.pid,e.host,e.lease_until FROM @S@.engines e"
    " WHERE e.lease_until>clock_timestamp() OR (e.lease_until IS NULL AND (e.engine_no&2147483647)|2147483648 IN"
    "  (SELECT l.objid::bigint " OUR_LOCKS "));"
    "CREATE FUNCTION @S@.hold_engine(a_engine bigint) RETURNS void " DOOR " AS $$ BEGIN"
    " PERFORM 1 FROM engines WHERE engine_no=a_engine;"
    " IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF;"
    " PERFORM pg_advisory_lock(" ENGINE_LOCK("a_engine") "); END $$;"
    // Those who died long ago are cleared away on the occasion.
    "CREATE FUNCTION @S@.join_engine(a_id text,a_pid bigint,a_host text,a_lease_ms bigint) RETURNS bigint " DOOR " AS $$"
    " DECLARE v_no bigint; BEGIN"
    " DELETE FROM engines e WHERE greatest(e.started_at,e.lease_until)<clock_timestamp()-interval '1 hour'"
    "  AND NOT EXISTS(SELECT 1 FROM living_engines l WHERE l.engine_no=e.engine_no);"
    " INSERT INTO engines(engine_id,pid,host,lease_until) VALUES(a_id,a_pid,a_host,"
    "  CASE WHEN a_lease_ms>0 THEN clock_timestamp()+a_lease_ms*interval '1 millisecond' END)"
    "  ON CONFLICT(engine_id) DO UPDATE SET pid=a_pid RETURNING engine_no INTO v_no;"
    " PERFORM pg_advisory_lock(" ENGINE_LOCK("v_no") "); RETURN v_no; END $$;"
    // By the clock of the database, like every comparison with it.
    "CREATE FUNCTION @S@.renew_engine(a_engine bigint,a_lease_ms bigint) RETURNS void " DOOR " AS $$ BEGIN"
    " UPDATE engines SET lease_until=clock_timestamp()+a_lease_ms*interval '1 millisecond' WHERE engine_no=a_engine;"
    " IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF; END $$;";

// Several engines (S17, ADR 0021). An engine is fenced by taking its row away, and every batch finds its row in its own transaction: a
// batch under way holds the row, and an engine that wants to take it waits, looks again and finds the lease renewed.
// After a start of the server nobody could renew for a while: everybody gets a lease's time to do so.
#define LEASE(ms) "clock_timestamp()+" ms "*interval '1 millisecond'"
#define IS_DEAD(e)                                                                                                     \
    "(" e ".lease_until IS NOT NULL AND greatest(" e ".lease_until,pg_postmaster_start_time()+" e ".lease_ms"          \
    "*interval '1 millisecond')<clock_timestamp())"
static const char shards[] =
    "CREATE FUNCTION @S@.shards_now(a_engine bigint,a_lease_ms bigint) RETURNS TABLE(shard int,holder bigint,ep bigint,"
    " free boolean,members bigint) " DOOR " AS $$ BEGIN"
    " UPDATE engines SET member=true,lease_ms=a_lease_ms,lease_until=" LEASE("a_lease_ms") " WHERE engine_no=a_engine;"
    " IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF;"
    " RETURN QUERY SELECT s.shard_no,s.owner,s.epoch,e.engine_no IS NULL OR " IS_DEAD("e") ","
    "  (SELECT count(*) FROM engines m WHERE m.member AND NOT " IS_DEAD("m") ")"
    "  FROM shards s LEFT JOIN engines e ON e.engine_no=s.owner ORDER BY 1; END $$;"
    "CREATE FUNCTION @S@.move_shards(a_engine bigint,a_lease_ms bigint,a_take int[],a_give int[]) RETURNS void " DOOR " AS $$"
    " DECLARE v record; BEGIN"
    " UPDATE engines SET lease_until=" LEASE("a_lease_ms") " WHERE engine_no=a_engine;"
    " IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF;"
    " FOR v IN SELECT * FROM shards WHERE shard_no=ANY(a_take||a_give) ORDER BY shard_no FOR UPDATE LOOP"
    "  IF v.owner=a_engine THEN IF v.shard_no=ANY(a_give) THEN UPDATE shards SET owner=0 WHERE shard_no=v.shard_no; END IF;"
    "  ELSIF v.shard_no=ANY(a_take) THEN"
    "   DELETE FROM engines e WHERE e.engine_no=v.owner AND " IS_DEAD("e") ";" // the fence, before anything is taken
    "   IF NOT EXISTS(SELECT 1 FROM engines e WHERE e.engine_no=v.owner) THEN"
    "    UPDATE shards SET owner=a_engine,epoch=epoch+1 WHERE shard_no=v.shard_no; END IF;"
    "  END IF; END LOOP; END $$;";

static const char claims[] =
    // Waits for a transaction of ours that is still under way somewhere.
    "CREATE FUNCTION @S@.token_of(a_engine bigint) RETURNS bigint " DOOR " AS $$ DECLARE v_token bigint; BEGIN"
    " SELECT commit_token INTO v_token FROM engines WHERE engine_no=a_engine FOR UPDATE; RETURN v_token; END $$;"
    "CREATE FUNCTION @S@.release_runs(a_engine bigint,a_runs bigint[],a_epochs bigint[]) RETURNS void " DOOR " AS $$ BEGIN"
    " IF cardinality(a_runs)>0 THEN UPDATE run_heads h SET owner=0 FROM (SELECT * FROM unnest(a_runs,a_epochs)"
    "  u(run_no,epoch) ORDER BY 1) u WHERE h.run_no=u.run_no AND h.epoch=u.epoch AND h.owner=a_engine; END IF; END $$;"
    "CREATE FUNCTION @S@.leave_engine(a_engine bigint,a_runs bigint[],a_epochs bigint[]) RETURNS void " DOOR " AS $$ BEGIN"
    " PERFORM release_runs(a_engine,a_runs,a_epochs); DELETE FROM engines WHERE engine_no=a_engine; END $$;"
    "CREATE FUNCTION @S@.claim_run(a_engine bigint,a_tenant text,a_run text,a_again boolean,a_runs bigint[],"
    " a_epochs bigint[]) RETURNS bigint " DOOR " AS $$ DECLARE v_no bigint; v_owner bigint; v_pid text; v_epoch bigint;"
    " v_shard int; v_holder bigint; v_member boolean; BEGIN"
    " SELECT member INTO v_member FROM engines WHERE engine_no=a_engine FOR SHARE;"
    " IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF;"
    " PERFORM release_runs(a_engine,a_runs,a_epochs);"
    " SELECT r.run_no,h.owner,h.shard INTO v_no,v_owner,v_shard FROM runs r JOIN run_heads h USING(run_no)"
    "  WHERE r.tenant_id=a_tenant AND r.run_id=a_run FOR UPDATE OF h;"
    " IF v_no IS NULL THEN RAISE EXCEPTION 'no run' USING ERRCODE='CA006'; END IF;"
    " IF v_shard>0 THEN SELECT owner INTO v_holder FROM shards WHERE shard_no=v_shard;"
    "  IF v_holder<>a_engine THEN SELECT l.pid||' '||l.host INTO v_pid FROM living_engines l WHERE l.engine_no=v_holder;"
    "   IF v_pid IS NULL AND v_member THEN v_pid:='0 '; END IF;" // it must take the shard first
    "   IF v_pid IS NOT NULL THEN RAISE EXCEPTION 'owned' USING ERRCODE='CA005',DETAIL=v_pid; END IF; END IF;"
    "  IF v_holder=a_engine THEN v_owner:=0; END IF; END IF;" // the owner before is fenced by the epoch
    " IF v_owner<>0 AND NOT (a_again AND v_owner=a_engine) THEN"
    "  SELECT l.pid||' '||l.host INTO v_pid FROM living_engines l WHERE l.engine_no=v_owner;"
    "  IF v_pid IS NOT NULL THEN RAISE EXCEPTION 'owned' USING ERRCODE='CA005',DETAIL=v_pid; END IF; END IF;"
    " UPDATE run_heads SET epoch=epoch+1,owner=a_engine WHERE run_no=v_no RETURNING epoch INTO v_epoch;"
    " RETURN v_epoch; END $$;"
    "CREATE FUNCTION @S@.post_signal(a_tenant text,a_run text,a_signal text,a_bytes bytea) RETURNS void " DOOR " AS $$ BEGIN"
    " INSERT INTO inbox(tenant_id,run_id,signal_id,bytes) SELECT a_tenant,a_run,a_signal,a_bytes"
    "  WHERE EXISTS(SELECT 1 FROM runs WHERE tenant_id=a_tenant AND run_id=a_run);"
    " IF NOT FOUND THEN RAISE EXCEPTION 'no run' USING ERRCODE='CA006'; END IF; END $$;";

#define APPEND_ARGUMENTS                                                                                               \
    "a_engine bigint,a_token bigint,a_lease_ms bigint,"                                                                \
    "h_run bigint[],h_epoch bigint[],h_expect bigint[],h_expect_ledger bigint[],h_last bigint[],h_ledger bigint[],"    \
    "h_head bytea[],h_ledger_head bytea[],h_updated bigint[],h_terminal boolean[],h_status text[],h_substatus text[]," \
    "h_total bigint[],h_completed bigint[],h_failed bigint[],h_skipped bigint[],h_running bigint[],h_created bigint[]," \
    "h_started bigint[],h_ended bigint[],h_cause text[],"                                                              \
    "r_tenant text[],r_run text[],r_project text[],r_environment text[],r_plan text[],r_plan_version text[],"          \
    "r_name text[],r_vocabulary text[],r_document bytea[],r_parent text[],r_original text[],r_shard bigint[],"         \
    "e_head int[],e_tenant text[],e_run text[],e_seq bigint[],e_type text[],e_time text[],e_payload text[],"           \
    "e_prefix text[],e_suffix text[],e_key bytea[],"                                                                   \
    "l_head int[],l_tenant text[],l_seq bigint[],l_after bigint[],l_kind text[],l_signal text[],l_bytes text[],"       \
    "l_hash bytea[],b_sha bytea[],b_bytes bytea[],i_done bigint[],"                                                    \
    "n_space text[],n_key bytea[],n_value bytea[],n_before bigint[],n_after bigint[],x_run bigint[],x_epoch bigint[]"
const char pg_append_sql[] =
    "SELECT append($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21,$22,$23,$24,$25,$26,$27,$28,"
    "$29,$30,$31,$32,$33,$34,$35,$36,$37,$38,$39,$40,$41,$42,$43,$44,$45,$46,$47,$48,$49,$50,$51,$52,$53,$54,$55,$56,$57,"
    "$58,$59,$60,$61,$62,$63,$64)";

// Heads come first: moving them is the fence (epoch, owner and both last numbers must be what the writer believes). Those of new
// runs stand before the others in the h_ arrays; h_run has only the others' numbers.
#define NEW_RUNS                                                                                                       \
    " IF v_new>0 THEN"                                                                                                 \
    "  IF EXISTS(SELECT 1 FROM unnest(r_shard) u(no) WHERE u.no>0 AND NOT EXISTS(SELECT 1 FROM shards s WHERE"         \
    "   s.shard_no=u.no AND s.owner=a_engine)) THEN RAISE EXCEPTION 'fenced' USING ERRCODE='CA002',DETAIL=1; END IF;"  \
    "  WITH n AS MATERIALIZED (SELECT nextval('run_no') AS no,u.* FROM unnest(r_tenant,r_run,r_project,r_environment," \
    "   r_plan,r_plan_version,r_name,r_vocabulary,r_document,r_parent,r_original) WITH ORDINALITY"                     \
    "   u(a,b,c,d,e,f,g,h,i,j,k,ord)), made AS (INSERT INTO runs SELECT no,a,b,c,d,e,f,g,h,i,j,k FROM n"               \
    "   ON CONFLICT (tenant_id,run_id) DO NOTHING RETURNING run_no)"                                                   \
    "  SELECT array_agg(n.no ORDER BY n.ord),(SELECT count(*) FROM made) INTO v_runs,v_count FROM n;"                  \
    "  IF v_count<>v_new THEN SELECT x.run_id INTO v_name FROM unnest(r_tenant,r_run) x(tenant_id,run_id)"             \
    "   JOIN runs r USING(tenant_id,run_id) WHERE r.run_no<>ALL(v_runs) LIMIT 1;"                                      \
    "   RAISE EXCEPTION 'exists' USING ERRCODE='CA001',DETAIL=coalesce(v_name,r_run[1]); END IF;"                      \
    "  INSERT INTO run_heads SELECT no,tenant,last,ledger,head,lhead,updated,terminal,epoch,a_engine,status,"        \
    "   substatus,total,completed,failed,skipped,running,created,started,ended,cause,shard FROM unnest(v_runs,r_tenant," \
    "   h_last[:v_new],h_ledger[:v_new],h_head[:v_new],h_ledger_head[:v_new],h_updated[:v_new],h_terminal[:v_new],"    \
    "   h_epoch[:v_new],h_status[:v_new],h_substatus[:v_new],h_total[:v_new],h_completed[:v_new],h_failed[:v_new],"    \
    "   h_skipped[:v_new],h_running[:v_new],h_created[:v_new],h_started[:v_new],h_ended[:v_new],h_cause[:v_new],r_shard)" \
    "   u(no,tenant,last,ledger,head,lhead,updated,terminal,epoch,status,substatus,total,completed,failed,skipped,"  \
    "   running,created,started,ended,cause,shard);"                                                                   \
    " END IF;"
#define OLD_RUNS                                                                                                       \
    " IF cardinality(h_run)>0 THEN"                                                                                    \
    "  UPDATE run_heads h SET last_seq=u.last,ledger_seq=u.ledger,head=u.head,ledger_head=u.lhead,"                    \
    "   updated_ms=u.updated,terminal=u.terminal,status=u.status,substatus=u.substatus,steps_total=u.total,"           \
    "   steps_completed=u.completed,steps_failed=u.failed,steps_skipped=u.skipped,steps_running=u.running,"            \
    "   created_ms=u.created,started_ms=u.started,ended_ms=u.ended,cause=u.cause"                                      \
    "  FROM (SELECT * FROM unnest(v_runs,h_epoch,h_expect,h_expect_ledger,h_last,h_ledger,h_head,h_ledger_head,"       \
    "   h_updated,h_terminal,h_status,h_substatus,h_total,h_completed,h_failed,h_skipped,h_running,h_created,"         \
    "   h_started,h_ended,h_cause) WITH ORDINALITY u(no,epoch,expect,expect_ledger,last,ledger,head,lhead,updated,"    \
    "   terminal,status,substatus,total,completed,failed,skipped,running,created,started,ended,cause,ord)"             \
    "   WHERE u.ord>v_new ORDER BY u.no) u"                                                                            \
    "  WHERE h.run_no=u.no AND h.epoch=u.epoch AND h.owner=a_engine AND h.last_seq=u.expect"                           \
    "   AND h.ledger_seq=u.expect_ledger AND (NOT h.terminal OR h.last_seq=u.last);"                                   \
    "  GET DIAGNOSTICS v_count=ROW_COUNT;"                                                                             \
    "  IF v_count<>cardinality(h_run) THEN SELECT u.ord INTO v_count FROM unnest(v_runs,h_epoch,h_last) WITH ORDINALITY" \
    "   u(no,epoch,last,ord) LEFT JOIN run_heads h ON h.run_no=u.no WHERE u.ord>v_new AND (h.epoch IS DISTINCT FROM"   \
    "   u.epoch OR h.owner<>a_engine OR h.last_seq<>u.last) ORDER BY u.ord LIMIT 1;"                                   \
    "   RAISE EXCEPTION 'fenced' USING ERRCODE='CA002',DETAIL=coalesce(v_count,v_new+1); END IF;"                      \
    " END IF;"
#define RECORDS                                                                                                        \
    " IF cardinality(e_head)>0 THEN"                                                                                   \
    "  PERFORM pg_advisory_xact_lock_shared(" POSITION_LOCK("f.last_value") ") FROM feed_position f;"                  \
    "  INSERT INTO workflow_events SELECT nextval('feed_position'),v_runs[u.head],u.tenant,u.run,u.seq,u.type,u.time," \
    "   u.payload,u.prefix,u.suffix,u.key FROM unnest(e_head,e_tenant,e_run,e_seq,e_type,e_time,e_payload,e_prefix,"   \
    "   e_suffix,e_key) u(head,tenant,run,seq,type,time,payload,prefix,suffix,key);"                                   \
    " END IF;"                                                                                                         \
    " IF cardinality(l_head)>0 THEN INSERT INTO ledger SELECT v_runs[u.head],u.tenant,u.seq,u.after,u.kind,u.signal,"  \
    "  u.bytes,u.hash FROM unnest(l_head,l_tenant,l_seq,l_after,l_kind,l_signal,l_bytes,l_hash)"                       \
    "  u(head,tenant,seq,after,kind,signal,bytes,hash); END IF;"
#define BESIDE                                                                                                         \
    " IF cardinality(b_sha)>0 THEN INSERT INTO blobs SELECT u.sha,u.bytes FROM unnest(b_sha,b_bytes) u(sha,bytes)"     \
    "  ORDER BY u.sha ON CONFLICT DO NOTHING; END IF;"                                                                 \
    " IF cardinality(i_done)>0 THEN DELETE FROM inbox WHERE id=ANY(i_done); END IF;"                                   \
    " IF cardinality(n_space)>0 THEN FOR v_note IN SELECT * FROM unnest(n_space,n_key,n_value,n_before,n_after)"       \
    "  WITH ORDINALITY u(space,key,value,before,after,ord) LOOP"                                                       \
    "  IF v_note.after=0 THEN DELETE FROM notes WHERE space=v_note.space AND key=v_note.key AND version=v_note.before;" \
    "  ELSIF v_note.before=0 THEN INSERT INTO notes VALUES(v_note.space,v_note.key,v_note.after,v_note.value)"         \
    "   ON CONFLICT DO NOTHING;"                                                                                       \
    "  ELSE UPDATE notes SET value=v_note.value,version=v_note.after"                                                  \
    "   WHERE space=v_note.space AND key=v_note.key AND version=v_note.before; END IF;"                                \
    "  GET DIAGNOSTICS v_count=ROW_COUNT;"                                                                             \
    "  IF v_count<>1 THEN RAISE EXCEPTION 'note' USING ERRCODE='CA003',DETAIL=v_note.ord; END IF;"                     \
    " END LOOP; END IF;"

static const char append_begin[] =
    "CREATE FUNCTION @S@.append(" APPEND_ARGUMENTS ") RETURNS bigint[] " DOOR " AS $$ DECLARE"
    " v_new int:=cardinality(r_run); v_runs bigint[]; v_count bigint; v_name text; v_note record; BEGIN"
    // Local to the transaction, for clients that come through a pooler that does not keep sessions apart.
    " IF current_setting('synchronous_commit') NOT IN ('on','remote_apply') THEN"
    "  PERFORM set_config('synchronous_commit','on',true); END IF;"
    " UPDATE engines SET commit_token=a_token,lease_until=CASE WHEN a_lease_ms>0 THEN"
    "  clock_timestamp()+a_lease_ms*interval '1 millisecond' END WHERE engine_no=a_engine;"
    " IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF;"
    " IF cardinality(x_run)>0 THEN PERFORM release_runs(a_engine,x_run,x_epoch); END IF;";
static const char append_new[] = NEW_RUNS " v_runs:=v_runs||h_run;";
static const char append_old[] = OLD_RUNS;
static const char append_records[] = RECORDS;
static const char append_beside[] = BESIDE " RETURN v_runs[:v_new]; END $$;";

static const char feed[] =
    "CREATE FUNCTION @S@.feed_horizon() RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path=@S@,pg_catalog,pg_temp"
    " AS $$ DECLARE v_last bigint; v_low bigint[]; v_now bigint; v_bound bigint; BEGIN"
    " IF pg_is_in_recovery() THEN RAISE EXCEPTION 'a standby does not know which transactions are under way'"
    "  USING ERRCODE='0A000'; END IF;"
    " SELECT last_value INTO v_last FROM feed_position;"
    " SELECT array_agg(l.objid::bigint) INTO v_low " OUR_LOCKS " AND l.objid::bigint<2147483648;"
    " SELECT last_value INTO v_now FROM feed_position;"
    " SELECT min(v_now-((v_now-u)&2147483647)) INTO v_bound FROM unnest(v_low) u;"
    " RETURN least(v_last,v_bound); END $$;"
    "CREATE FUNCTION @S@.feed(a_after bigint,a_limit bigint) RETURNS TABLE(sequence bigint,event_type text,"
    " \"timestamp\" text,payload text,record_prefix text,record_suffix text,key bytea,run_id text,\"position\" bigint,"
    " tenant_id text,vocabulary text) LANGUAGE plpgsql VOLATILE SET search_path=@S@,pg_catalog,pg_temp AS $$"
    " #variable_conflict use_column\n DECLARE v_horizon bigint:=feed_horizon(); BEGIN"
    " RETURN QUERY SELECT " PG_EVENT_COLUMNS ",e.position,e.tenant_id,r.vocabulary"
    " FROM workflow_events e JOIN runs r USING(run_no)"
    " WHERE e.position>a_after AND e.position<=v_horizon ORDER BY e.position LIMIT a_limit; END $$;"
    // Only what was committed: the last value of the sequence itself need not have reached the disk.
    "CREATE FUNCTION @S@.feed_end() RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path=@S@,pg_catalog,pg_temp AS $$"
    " DECLARE v_horizon bigint:=feed_horizon(); v_floor bigint; v_newest bigint; BEGIN"
    " SELECT position INTO v_floor FROM feed_floor;"
    " SELECT position INTO v_newest FROM workflow_events WHERE position<=v_horizon ORDER BY position DESC LIMIT 1;"
    " RETURN greatest(coalesce(v_newest,0),least(v_floor,v_horizon)); END $$;";

static const char removal[] =
    "CREATE FUNCTION @S@.remove_runs(a_tenants text[],a_runs text[],a_now bigint,a_reason text,a_engine bigint)"
    " RETURNS void " DOOR " AS $$ DECLARE v record; v_pid text; BEGIN"
    " FOR v IN SELECT u.tenant,u.run,u.ord,r.run_no FROM unnest(a_tenants,a_runs) WITH ORDINALITY u(tenant,run,ord)"
    "  LEFT JOIN runs r ON r.tenant_id=u.tenant AND r.run_id=u.run ORDER BY r.run_no LOOP"
    "  IF v.run_no IS NULL THEN RAISE EXCEPTION 'no run' USING ERRCODE='CA006',DETAIL=v.run; END IF;"
    "  PERFORM 1 FROM run_heads WHERE run_no=v.run_no FOR UPDATE;"
    "  SELECT l.pid||' '||l.host INTO v_pid FROM run_heads h JOIN living_engines l ON l.engine_no=h.owner"
    "   WHERE h.run_no=v.run_no AND h.owner<>a_engine;"
    "  IF v_pid IS NOT NULL THEN RAISE EXCEPTION 'owned' USING ERRCODE='CA005',DETAIL=v_pid; END IF;"
    "  INSERT INTO tombstones SELECT r.run_no,r.tenant_id,r.run_id,h.last_seq,h.ledger_seq,h.head,h.ledger_head,a_now,"
    "   a_reason FROM runs r JOIN run_heads h USING(run_no) WHERE r.run_no=v.run_no AND h.terminal;"
    "  IF NOT FOUND THEN RAISE EXCEPTION 'not ended' USING ERRCODE='CA007',DETAIL=v.run; END IF;"
    "  UPDATE feed_floor SET position=greatest(position,"
    "   (SELECT max(e.position) FROM workflow_events e WHERE e.run_no=v.run_no));"
    "  DELETE FROM inbox WHERE tenant_id=v.tenant AND run_id=v.run;"
    "  DELETE FROM workflow_events WHERE run_no=v.run_no;"
    "  DELETE FROM ledger WHERE run_no=v.run_no;"
    "  DELETE FROM run_heads WHERE run_no=v.run_no;"
    "  DELETE FROM runs WHERE run_no=v.run_no;"
    " END LOOP; END $$;"
    // An engine remembers which documents it has stored, and starts runs without storing them again. One that came since the
    // blobs were listed may have stored runs that refer to them; the lock keeps new ones out until this is over.
    "CREATE FUNCTION @S@.drop_blobs(a_blobs bytea[],a_engine bigint,a_seen bigint) RETURNS bigint " DOOR " AS $$"
    " DECLARE v_pid text; v_bytes bigint; BEGIN LOCK TABLE engines IN SHARE ROW EXCLUSIVE MODE;"
    " SELECT l.pid||' '||l.host INTO v_pid FROM living_engines l WHERE l.engine_no<>a_engine LIMIT 1;"
    " IF v_pid IS NOT NULL THEN RAISE EXCEPTION 'runs something' USING ERRCODE='CA005',DETAIL=v_pid; END IF;"
    " IF a_seen<>0 AND a_seen<>(SELECT last_value FROM engines_engine_no_seq) THEN"
    "  RAISE EXCEPTION 'stores something' USING ERRCODE='CA005',DETAIL=''; END IF;"
    " WITH gone AS (DELETE FROM blobs b WHERE b.sha256=ANY(a_blobs)"
    "  AND NOT EXISTS(SELECT 1 FROM runs r WHERE r.document=b.sha256) RETURNING length(b.bytes) AS size)"
    " SELECT coalesce(sum(size),0) INTO v_bytes FROM gone; RETURN v_bytes; END $$;";

// Who may do what. Nobody may write to a table; engines may call the doors, readers may look. `allow_tenant` binds a role that may
// look to one tenant, whatever its session says.
static const char rights[] =
    "CREATE FUNCTION @S@.allow_reader(a_role name) RETURNS void LANGUAGE plpgsql SET search_path=@S@,pg_catalog,pg_temp AS $$"
    " BEGIN EXECUTE format('GRANT USAGE ON SCHEMA @S@ TO %I',a_role);"
    " EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA @S@ TO %I',a_role);"
    " EXECUTE format('GRANT SELECT ON ALL SEQUENCES IN SCHEMA @S@ TO %I',a_role);"
    " EXECUTE format('GRANT EXECUTE ON FUNCTION @S@.feed_horizon(),@S@.feed(bigint,bigint),@S@.feed_end() TO %I',a_role);"
    " END $$;"
    "CREATE FUNCTION @S@.allow_engine(a_role name) RETURNS void LANGUAGE plpgsql SET search_path=@S@,pg_catalog,pg_temp AS $$"
    " BEGIN PERFORM allow_reader(a_role);"
    " EXECUTE format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA @S@ TO %I',a_role);"
    " EXECUTE format('REVOKE EXECUTE ON FUNCTION @S@.allow_reader(name),@S@.allow_engine(name),"
    "@S@.allow_tenant(name,text) FROM %I',a_role); END $$;"
    "CREATE FUNCTION @S@.allow_tenant(a_role name,a_tenant text) RETURNS void LANGUAGE plpgsql"
    " SET search_path=@S@,pg_catalog,pg_temp AS $$ DECLARE v_table text; BEGIN"
    " EXECUTE format('GRANT USAGE ON SCHEMA @S@ TO %I',a_role);"
    " FOREACH v_table IN ARRAY ARRAY['runs','run_heads','workflow_events','ledger','tombstones'] LOOP"
    "  EXECUTE format('GRANT SELECT ON @S@.%I TO %I',v_table,a_role);"
    "  EXECUTE format('CREATE POLICY %I ON @S@.%I AS RESTRICTIVE TO %I USING (tenant_id=%L)',"
    "   a_role||'_only',v_table,a_role,a_tenant);"
    " END LOOP; END $$;"
    "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA @S@ FROM PUBLIC;REVOKE ALL ON ALL TABLES IN SCHEMA @S@ FROM PUBLIC;";

const char *const pg_doors[] = {engines,        shards,
                                       claims,        append_begin, append_new, append_old, append_records, append_beside, feed,
                                removal,        rights,       NULL};

// Format 2. Runs of our shards, all in one transaction: an engine that takes up the runs of a dead engine does not wait for a disk write
// for each. Those that are ours already are left alone: this engine may be driving them.
static const char claims_2[] =
    "CREATE FUNCTION @S@.claim_runs(a_engine bigint,a_tenants text[],a_runs text[]) RETURNS TABLE(claimed bigint,ep bigint) "
    DOOR " AS $$ BEGIN"
    " PERFORM 1 FROM engines WHERE engine_no=a_engine AND member FOR SHARE;"
    " IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF;"
    " RETURN QUERY WITH mine AS MATERIALIZED (SELECT h.run_no FROM unnest(a_tenants,a_runs) u(tenant_id,run_id)"
    "   JOIN runs r ON r.tenant_id=u.tenant_id AND r.run_id=u.run_id JOIN run_heads h ON h.run_no=r.run_no"
    "   JOIN shards s ON s.shard_no=h.shard WHERE s.owner=a_engine AND h.owner<>a_engine AND NOT h.terminal"
    "   ORDER BY h.run_no FOR UPDATE OF h)"
    "  UPDATE run_heads h SET epoch=h.epoch+1,owner=a_engine FROM mine m WHERE h.run_no=m.run_no RETURNING h.run_no,h.epoch;"
    " END $$;"
    "REVOKE ALL ON FUNCTION @S@.claim_runs(bigint,text[],text[]) FROM PUBLIC;"
    // A role that may call the doors may call this one, too.
    "DO $$ DECLARE v_role text; BEGIN FOR v_role IN SELECT DISTINCT a.grantee::regrole::text FROM pg_proc p,"
    " aclexplode(p.proacl) a WHERE p.proname='claim_run' AND p.pronamespace='@S@'::regnamespace AND a.grantee<>0 LOOP"
    "  EXECUTE format('GRANT EXECUTE ON FUNCTION @S@.claim_runs(bigint,text[],text[]) TO %s',v_role);"
    " END LOOP; END $$;";

const char *const pg_doors_2[] = {claims_2, NULL};

// Format 3. The same, one run after the other in the order of their numbers: sessions of ours do without sorts, and to have the heads in
// order without one the server read all runs of the store for each page. The lists of names and numbers are in nobody's index.
static const char claims_3[] =
    "CREATE OR REPLACE FUNCTION @S@.claim_runs(a_engine bigint,a_tenants text[],a_runs text[])"
    " RETURNS TABLE(claimed bigint,ep bigint) " DOOR " AS $$ DECLARE v_runs bigint[]; v_no bigint; BEGIN"
    " PERFORM 1 FROM engines WHERE engine_no=a_engine AND member FOR SHARE;"
    " IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF;"
    " WITH named AS MATERIALIZED (SELECT (SELECT r.run_no FROM runs r WHERE r.tenant_id=u.tenant_id AND r.run_id=u.run_id) AS no"
    "   FROM unnest(a_tenants,a_runs) u(tenant_id,run_id))"
    "  SELECT array_agg(n.no ORDER BY n.no) INTO v_runs FROM named n WHERE n.no IS NOT NULL;"
    " FOREACH v_no IN ARRAY coalesce(v_runs,'{}') LOOP"
    "  RETURN QUERY UPDATE run_heads h SET epoch=h.epoch+1,owner=a_engine WHERE h.run_no=v_no AND h.owner<>a_engine"
    "   AND NOT h.terminal AND EXISTS(SELECT 1 FROM shards s WHERE s.shard_no=h.shard AND s.owner=a_engine)"
    "   RETURNING h.run_no,h.epoch;"
    " END LOOP; END $$;";

const char *const pg_doors_3[] = {claims_3, NULL};
// clang-format on
