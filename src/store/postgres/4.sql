-- Format 4. The last guard of an append, whatever an owner believes. What is there already is looked at, too: the migration says which run.
DO $$ DECLARE twice record; BEGIN
 SELECT run_id,min(sequence) AS a,max(sequence) AS b INTO twice FROM @S@.workflow_events
  GROUP BY run_no,run_id,key HAVING count(*)>1 LIMIT 1;
 IF FOUND THEN RAISE EXCEPTION 'run %: events % and % have one key; cairn log verify', twice.run_id, twice.a, twice.b
  USING ERRCODE='XX001'; END IF; END $$;
CREATE UNIQUE INDEX workflow_events_by_key ON @S@.workflow_events(run_no,key);
