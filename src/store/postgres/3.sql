-- Format 3. The same, one run after the other in the order of their numbers: sessions of ours do without sorts, and to have the heads in
-- order without one the server read all runs of the store for each page. The lists of names and numbers are in nobody's index.
CREATE OR REPLACE FUNCTION @S@.claim_runs(a_engine bigint,a_tenants text[],a_runs text[])
 RETURNS TABLE(claimed bigint,ep bigint)
 LANGUAGE plpgsql SECURITY DEFINER SET search_path=@S@,pg_catalog,pg_temp AS $$ DECLARE v_runs bigint[]; v_no bigint; BEGIN
 PERFORM 1 FROM engines WHERE engine_no=a_engine AND member FOR SHARE;
 IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF;
 WITH named AS MATERIALIZED (SELECT (SELECT r.run_no FROM runs r WHERE r.tenant_id=u.tenant_id AND r.run_id=u.run_id) AS no
   FROM unnest(a_tenants,a_runs) u(tenant_id,run_id))
  SELECT array_agg(n.no ORDER BY n.no) INTO v_runs FROM named n WHERE n.no IS NOT NULL;
 FOREACH v_no IN ARRAY coalesce(v_runs,'{}') LOOP
  RETURN QUERY UPDATE run_heads h SET epoch=h.epoch+1,owner=a_engine WHERE h.run_no=v_no AND h.owner<>a_engine
   AND NOT h.terminal AND EXISTS(SELECT 1 FROM shards s WHERE s.shard_no=h.shard AND s.owner=a_engine)
   RETURNING h.run_no,h.epoch;
 END LOOP; END $$;
