-- Format 2. Runs of our shards, all in one transaction: an engine that takes up the runs of a dead engine does not wait for a disk write
-- for each. Those that are ours already are left alone: this engine may be driving them.
CREATE FUNCTION @S@.claim_runs(a_engine bigint,a_tenants text[],a_runs text[]) RETURNS TABLE(claimed bigint,ep bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path=@S@,pg_catalog,pg_temp AS $$ BEGIN
 PERFORM 1 FROM engines WHERE engine_no=a_engine AND member FOR SHARE;
 IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF;
 RETURN QUERY WITH mine AS MATERIALIZED (SELECT h.run_no FROM unnest(a_tenants,a_runs) u(tenant_id,run_id)
   JOIN runs r ON r.tenant_id=u.tenant_id AND r.run_id=u.run_id JOIN run_heads h ON h.run_no=r.run_no
   JOIN shards s ON s.shard_no=h.shard WHERE s.owner=a_engine AND h.owner<>a_engine AND NOT h.terminal
   ORDER BY h.run_no FOR UPDATE OF h)
  UPDATE run_heads h SET epoch=h.epoch+1,owner=a_engine FROM mine m WHERE h.run_no=m.run_no RETURNING h.run_no,h.epoch;
 END $$;
REVOKE ALL ON FUNCTION @S@.claim_runs(bigint,text[],text[]) FROM PUBLIC;
-- A role that may call the doors may call this one, too.
DO $$ DECLARE v_role text; BEGIN FOR v_role IN SELECT DISTINCT a.grantee::regrole::text FROM pg_proc p,
 aclexplode(p.proacl) a WHERE p.proname='claim_run' AND p.pronamespace='@S@'::regnamespace AND a.grantee<>0 LOOP
  EXECUTE format('GRANT EXECUTE ON FUNCTION @S@.claim_runs(bigint,text[],text[]) TO %s',v_role);
 END LOOP; END $$;
