#!/usr/bin/env python3
"""Whether the table of events should be in parts: bench/postgres_partition.py [--rows N]

Three tables with the columns and indexes of workflow_events, filled by the same batches (512 events of 256 runs in a transaction):

  whole   one table, as the store has it
  hash    16 parts by run_no: UNIQUE(run_no,sequence) holds, position is unique only because a sequence gives it
  range   parts of a quarter of the rows by position: PRIMARY KEY(position) holds, UNIQUE(run_no,sequence) cannot be kept

Prints a JSON object for each: rows per second, a run of 23 events read, a page of 1,000 of the feed read, the oldest tenth of the runs
deleted and vacuumed; for `range`, what dropping a part costs instead (it takes open runs with it: no run may live longer than its part).
Reads are those of pgbench with one client, round trip included.
"""
import argparse, json, os, sys, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pgcluster import Cluster

COLUMNS = "position bigint NOT NULL,run_no bigint NOT NULL,tenant_id text NOT NULL,run_id text NOT NULL,sequence bigint NOT NULL,event_type text NOT NULL,time text NOT NULL,payload text NOT NULL,prefix text NOT NULL,suffix text NOT NULL,key bytea NOT NULL"


def tables(rows):
    hash_parts = "".join(f"CREATE TABLE hash_{i} PARTITION OF hash FOR VALUES WITH (MODULUS 16, REMAINDER {i});" for i in range(16))
    step = rows // 4 + 1
    range_parts = "".join(f"CREATE TABLE range_{i} PARTITION OF range FOR VALUES FROM ({i * step}) TO ({(i + 1) * step});" for i in range(5))
    return [f"CREATE TABLE whole({COLUMNS},PRIMARY KEY(position),UNIQUE(run_no,sequence))",
            f"CREATE TABLE hash({COLUMNS},UNIQUE(run_no,sequence)) PARTITION BY HASH(run_no)", hash_parts, "CREATE INDEX ON hash(position)",
            f"CREATE TABLE range({COLUMNS},PRIMARY KEY(position)) PARTITION BY RANGE(position)", range_parts, "CREATE INDEX ON range(run_no,sequence)"]


# 256 runs at a time, two events of each in a batch; a run has 24 events, then the next 256 begin.
FILL = """CREATE PROCEDURE fill(a_table text,a_from int,a_to int) LANGUAGE plpgsql AS $$ BEGIN
 FOR b IN a_from..a_to-1 LOOP
  EXECUTE format('INSERT INTO %I SELECT $1*512+i+1,$1/12*256+i%%256,''default'',''run-''||($1/12*256+i%%256),$1%%12*2+i/256,''StepCompleted'',''2026-01-01T00:00:00.000Z'',repeat(''x'',200),repeat(''p'',300),repeat(''s'',100),decode(md5(($1*512+i)::text),''hex'') FROM generate_series(0,511) i',a_table) USING b;
  COMMIT;
 END LOOP; END $$"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1000000)
    args = parser.parse_args()
    batches = args.rows // 512
    cluster = Cluster(settings=("max_wal_size=4GB", "shared_buffers=512MB"))

    def timed(*sql, times=1):
        took = []
        for _ in range(times):
            began = time.monotonic()
            cluster.psql(*sql)
            took.append(time.monotonic() - began)
        return min(took)

    try:
        cluster.psql(*tables(args.rows), FILL)
        nothing = timed("SELECT 1", times=5)
        rates = {t: [] for t in ("whole", "hash", "range")}
        for part in range(8):  # in turn, so that all see the same machine
            for table in rates:
                rates[table].append((batches // 8 * 512) / timed(f"CALL fill('{table}',{batches // 8 * part},{batches // 8 * (part + 1)})"))
        cluster.psql("VACUUM ANALYZE")
        for table, per_second in rates.items():
            size = int(cluster.psql(f"SELECT coalesce((SELECT sum(pg_total_relation_size(relid)) FROM pg_partition_tree('{table}')),pg_total_relation_size('{table}'))"))
            last = int(cluster.psql(f"SELECT max(position) FROM {table}"))
            run = f"\\set k random(0, 999)\nSELECT count(payload) FROM (SELECT * FROM {table} WHERE run_no=:k ORDER BY sequence) x;\n"
            page = f"\\set k random(0, {last - 1000})\nSELECT count(payload) FROM (SELECT * FROM {table} WHERE position>:k ORDER BY position LIMIT 1000) x;\n"
            reads, pages = (1e6 / cluster.pgbench(script, 1, 3) for script in (run, page))
            runs = batches // 12 * 256
            figures = {"rows_per_s": round(sorted(per_second)[len(per_second) // 2]), "bytes_per_row": round(size / last), "read_run_us": round(reads), "feed_page_us": round(pages),
                       "delete_tenth_s": round(timed(f"DELETE FROM {table} WHERE run_no<{runs // 10}") - nothing, 2), "vacuum_s": round(timed(f"VACUUM {table}") - nothing, 2)}
            if table == "range":
                figures["drop_quarter_s"] = round(timed("DROP TABLE range_0") - nothing, 3)
            print(json.dumps({"bench": "partition", "table": table, **figures}), flush=True)
    finally:
        cluster.end()


if __name__ == "__main__":
    main()
