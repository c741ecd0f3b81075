#!/usr/bin/env python3
"""What grows with the store, on Postgres: bench/postgres_scale.py CAIRN [--events N] [--open N] [--keep]

Fills a database (of a cluster of its own) with runs that the engine has executed: first a tenth, then all of --events, with as many --open
runs that wait for a person; after each filling it measures, and prints a JSON object per line:

  start     a `cairn serve` from its begin until it listens: must not depend on what is stored
  list      the first page of `cairn ls`, of all and of the open ones: nor must these
  recovery  until it has taken up all open runs, alone: so much for each run that it takes up
  takeover  of two engines one is shot: until the other has all its runs, less the lease

Full size (10,000,000 events, 100,000 open runs) needs about 15 GB below /var/tmp and half an hour.
"""
import argparse, json, os, re, signal, subprocess, sys, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pgcluster import Cluster, free_port

STEPS, EVENTS_OF_ENDED, EVENTS_OF_OPEN, LEASE_S = 10, 23, 3, 4


def tell(name, **figures):
    print(json.dumps({"bench": name, **figures}), flush=True)


class Serve:
    def __init__(self, args, cluster, number):
        directory = os.path.join(cluster.dir, f"engine-{number}")
        os.makedirs(directory, exist_ok=True)
        with open(os.path.join(directory, "cairn.toml"), "w") as out:
            out.write(f"[serve]\nengineLeaseSeconds = {LEASE_S}\n")
        log = os.path.join(directory, "serve.err")
        began = time.monotonic()
        self.process = subprocess.Popen([args.cairn, "serve", "--store", cluster.url(), "--listen", f"127.0.0.1:{free_port()}", "--confine", "none"], stdout=subprocess.DEVNULL, stderr=open(log, "w"), cwd=directory)
        while "listening on" not in open(log).read():
            if self.process.poll() is not None or time.monotonic() > began + 300:
                raise SystemExit("the server does not start: " + open(log).read())
            time.sleep(0.01)
        self.start_ms = round(1000 * (time.monotonic() - began))

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(120)


def owned(cluster):
    """Open runs by the engine that has them now."""
    rows = cluster.psql("SELECT h.owner,count(*) FROM cairn.run_heads h JOIN cairn.engines e ON e.engine_no=h.owner WHERE NOT h.terminal GROUP BY 1").splitlines()
    return {int(a): int(b) for a, b in (row.split("|") for row in rows)}


def wait_until(what, seconds, pause=0.1):
    began = time.monotonic()
    while not what():
        if time.monotonic() > began + seconds:
            raise SystemExit("it takes too long")
        time.sleep(pause)
    return time.monotonic() - began


def timed(command):
    best = None
    for _ in range(5):
        began = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        took = 1000 * (time.monotonic() - began)
        best = took if best is None or took < best else best
    return round(best, 1)


def measure(args, cluster, events, opened):
    stored = int(cluster.psql("SELECT count(*) FROM cairn.workflow_events"))
    size = int(cluster.psql("SELECT pg_database_size('postgres')"))
    tell("scale-size", events=stored, open=opened, bytes=size, bytes_per_event=round(size / stored))
    ls = [args.cairn, "ls", "--limit", "50", "-o", "name", "--store", cluster.url()]
    tell("scale-list", events=stored, first_page_ms=timed(ls), first_page_of_open_ms=timed(ls + ["--status", "RUNNING"]), nothing_ms=timed([args.cairn, "version"]))
    began = time.monotonic()
    first = Serve(args, cluster, 1)
    wait_until(lambda: sum(owned(cluster).values()) >= opened, 1800)
    took = time.monotonic() - began
    tell("scale-recovery", events=stored, open=opened, start_ms=first.start_ms, all_taken_up_s=round(took, 2), us_per_run=round(1e6 * took / opened))
    second = Serve(args, cluster, 2)
    fair = lambda: len(owned(cluster)) == 2 and min(owned(cluster).values()) > opened * 0.4 and sum(owned(cluster).values()) >= opened
    spread = wait_until(fair, 1800, 0.3)
    mine = cluster.psql("SELECT min(engine_no) FROM cairn.engines")
    lost = owned(cluster)[int(mine)]
    first.end(signal.SIGKILL)
    took = wait_until(lambda: len(owned(cluster)) == 1 and sum(owned(cluster).values()) >= opened, 1800)
    tell("scale-takeover", events=stored, runs=lost, spread_s=round(spread, 1), lease_s=LEASE_S, taken_over_s=round(took, 2), us_per_run_beyond_lease=round(1e6 * max(0, took - LEASE_S) / lost))
    second.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cairn")
    parser.add_argument("--events", type=int, default=10000000)
    parser.add_argument("--open", type=int, default=100000)
    parser.add_argument("--keep", action="store_true", help="leave the cluster's directory")
    args = parser.parse_args()
    args.cairn = os.path.abspath(args.cairn)
    fill = os.path.join(os.path.dirname(args.cairn), "bench", "fill")
    cluster = Cluster(settings=("max_wal_size=4GB", "shared_buffers=512MB", "checkpoint_timeout=15min"))
    try:
        had_events = had_open = 0
        for share in (10, 1):
            opened = args.open // share - had_open
            ended = (args.events // share - had_events - opened * EVENTS_OF_OPEN) // EVENTS_OF_ENDED
            began = time.monotonic()
            subprocess.run([fill, cluster.url(), str(ended + opened), str(opened), str(STEPS)], check=True, stdout=subprocess.DEVNULL)
            tell("scale-fill", runs=ended + opened, seconds=round(time.monotonic() - began, 1), steps_per_s=round(ended * STEPS / (time.monotonic() - began)))
            had_events, had_open = args.events // share, args.open // share
            cluster.psql("CHECKPOINT")
            measure(args, cluster, had_events, had_open)
    finally:
        if args.keep:
            print(cluster.dir, file=sys.stderr)
            cluster.process.send_signal(signal.SIGINT)
        else:
            cluster.end()


if __name__ == "__main__":
    main()
