#!/usr/bin/env python3
"""test/crash/engines_storm.py CAIRN [--engines N] [--kills N] [--stops N] [--restarts N] [--keep]

Several engines on one Postgres under fire: kill -9, SIGSTOP for longer than their lease, immediate restarts of the database, while
clients start runs at any engine and signal them through any other. Every call that was answered is kept in a history, every
execution of a step leaves a line outside; at the end both are held against the log, read by psql and not by Cairn.

What must hold: every acknowledged start is one run and has ended; no request became two runs; every execution has its event, and
none ran twice; one terminal event, dense numbers; epochs of shards only rose; no run is stuck; the chains verify. A stopped engine
that wakes up says that it was fenced. Before the storm: the runs of an engine that is shot, and of one that is stopped, go on elsewhere
within its lease and two seconds.
"""
import argparse, glob, http.client, json, os, pwd, random, shutil, signal, subprocess, sys, tempfile, threading, time, uuid

LEASE_S = 2
MARK = 'echo "$CAIRN_RUN_ID $CAIRN_STEP_ID $CAIRN_ATTEMPT $CAIRN_ENGINE_ATTEMPT" >> "%s"'
GONE = (OSError, http.client.HTTPException, json.JSONDecodeError)


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Cluster:
    """A Postgres of our own, reached through a Unix socket. It does not run as root."""

    def __init__(self, directory):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda p: int(p.split("/")[4]))
        self.bin = os.path.dirname(found[-1]) if found else None
        self.dir = os.path.join(directory, "pg")
        self.process = None

    def as_user(self):
        if os.geteuid() != 0:
            return {}
        user = pwd.getpwnam("postgres")
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def make(self):
        os.mkdir(self.dir)
        os.chmod(os.path.dirname(self.dir), 0o755)
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.dir, user.pw_uid, user.pw_gid)
        subprocess.run([self.bin + "/initdb", "-D", self.dir + "/data", "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C"], check=True, stdout=subprocess.DEVNULL, cwd="/", **self.as_user())
        self.start()

    def start(self):
        log = open(self.dir + "/../postgres.log", "a")
        self.process = subprocess.Popen([self.bin + "/postgres", "-D", self.dir + "/data", "-k", self.dir, "-c", "listen_addresses=", "-c", "max_connections=200"], stdout=log, stderr=log, cwd="/", **self.as_user())
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if subprocess.run([self.bin + "/pg_isready", "-q", "-h", self.dir], cwd="/").returncode == 0:
                return
            time.sleep(0.05)
        raise SystemExit("not ok engines_storm: Postgres does not start")

    def stop(self, how):
        self.process.send_signal(how)
        self.process.wait(60)

    def url(self):
        return f"postgres://postgres@/postgres?host={self.dir}"

    def ask(self, sql):
        out = subprocess.run([self.bin + "/psql", "-h", self.dir, "-U", "postgres", "-AtX", "-c", "SET search_path=cairn", "-c", sql], check=True, capture_output=True, text=True, cwd="/").stdout
        return out.splitlines()[1:]


class Engine:
    def __init__(self, storm, number):
        self.storm, self.number, self.port = storm, number, free_port()
        self.process = None
        self.log = os.path.join(storm.dir, f"engine-{number}.err")

    def start(self):
        log = open(self.log, "a")
        self.process = subprocess.Popen([self.storm.args.cairn, "serve", "--store", self.storm.url, "--listen", f"127.0.0.1:{self.port}", "--confine", "none"], stdout=log, stderr=log, cwd=self.storm.dir)

    def call(self, method, path, body, timeout=30):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, json.dumps(body), {"Authorization": "Bearer " + self.storm.token, "Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text[:1] in b"{[" and text else None
        finally:
            connection.close()

    def wait_up(self, seconds=60):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.process.poll() is not None:
                self.start()  # the database was away, or it was told that it is dead: whoever watches it starts it again
                self.storm.restarted += 1
            try:
                if not self.storm.token and os.path.exists(self.storm.token_file):
                    self.storm.token = open(self.storm.token_file).read().strip()
                if self.storm.token and self.call("GET", "/livez", None, 2)[0] == 200:
                    return
            except GONE:
                pass
            time.sleep(0.05)
        self.storm.give_up(f"engine {self.number} does not come up: " + open(self.log).read()[-1500:])


class Storm:
    def __init__(self, args):
        self.args = args
        self.dir = tempfile.mkdtemp(prefix="cairn-engines-", dir=args.dir)
        self.effects = os.path.join(self.dir, "effects")
        open(self.effects, "w").close()
        self.token_file = os.path.join(self.dir, "token")
        self.cluster = Cluster(self.dir)
        self.stop, self.lock, self.calm = threading.Event(), threading.Lock(), threading.Event()
        self.history, self.token, self.restarted = [], None, 0
        self.count = {"kill": 0, "stop": 0, "restart": 0}
        self.told = []
        mark = MARK % self.effects
        shell = lambda step, command, deps, **more: {"stepId": step, "kind": "shell", "with": {"command": mark + "; " + command}, "dependsOn": deps, **more}
        self.plan = self.document("storm", [
            shell("a", "sleep 0.05; echo one", []),
            shell("b", "test $CAIRN_ATTEMPT -ge 2", ["a"], retry={"maxAttempts": 5, "delay": "5ms"}),
            shell("c", "test $a.output = one", ["a"]),
            {"stepId": "d", "kind": "merge", "dependsOn": ["b", "c"]}])
        self.slow = self.document("slow", [shell("a", "sleep ${SLOW:-1}; echo one", []), shell("b", "true", ["a"]), shell("c", "true", ["a"]), {"stepId": "d", "kind": "merge", "dependsOn": ["b", "c"]}])
        with open(os.path.join(self.dir, "cairn.toml"), "w") as out:
            out.write(f'[serve]\nengineLeaseSeconds = {LEASE_S}\ntokenFile = "{self.token_file}"\n')

    @staticmethod
    def document(name, steps):
        return json.dumps({"metadata": {"planId": name, "planVersion": "1", "schemaVersion": "v1.2"}, "steps": steps})

    def give_up(self, why):
        print("not ok engines_storm: " + why)
        for engine in getattr(self, "engines", []):
            if engine.process:
                engine.process.kill()
        if self.cluster.process:
            self.cluster.process.kill()
        os._exit(1)

    # ---- clients
    def anywhere(self, method, path, body, good, tries=600):
        """Asks some engine, and another one when that one is not there."""
        for _ in range(tries):
            engine = random.choice(self.engines)
            try:
                status, answer = engine.call(method, path, body)
                if status in good:
                    return status, answer
                if status not in (409, 429, 503, 504):
                    return status, answer
            except GONE:
                pass
            time.sleep(0.05)
        return 0, "nobody answers"

    def begin(self, document, request, engine=None):
        body = {"document": document, "runRequestId": request}
        status, answer = engine.call("POST", "/v1/runs", body) if engine else self.anywhere("POST", "/v1/runs", body, (200, 202))
        with self.lock:
            self.history.append((request, "ok" if status in (200, 202) else f"refused {status} {answer}", (answer or {}).get("runId") if isinstance(answer, dict) else None))
        return self.history[-1][2]

    def client(self, seed):
        rng = random.Random(seed)
        while not self.stop.is_set():
            run = self.begin(self.plan, f"q-{seed}-{uuid.uuid4()}")
            if run and rng.random() < 0.1:
                for kind in ("PAUSE", "RESUME"):
                    self.anywhere("PUT", f"/v1/runs/{run}/signals/{uuid.uuid4()}", {"signalType": kind, "payload": {}}, (200, 202, 409), 100)
            time.sleep(rng.random() * 0.1)

    def open_runs(self):
        return int(self.cluster.ask("select count(*) from run_heads where not terminal")[0])

    def settle(self, seconds=120):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.open_runs() == 0:
                return True
            time.sleep(0.2)
        return False

    # ---- one engine shot, one stopped, each with work in flight
    def spread(self):
        """Shards spread over all engines that are there."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            have = [int(n) for n in self.cluster.ask("select count(*) from shards s join engines e on e.engine_no=s.owner where e.lease_until>clock_timestamp() group by owner")]
            if len(have) == len(self.engines) and sum(have) == 64 and max(have) - min(have) <= 64 // len(self.engines):
                return have
            time.sleep(0.1)
        self.give_up("shards are not spread: " + str(have))

    def takeover(self, how):
        victim = self.engines[0]
        runs = [self.begin(self.slow, f"{how}-{uuid.uuid4()}", victim) for _ in range(6)]
        time.sleep(0.3)
        before = time.monotonic()
        if how == "kill":
            victim.process.kill()
            victim.process.wait()
        else:
            victim.process.send_signal(signal.SIGSTOP)
        names = ",".join(f"'{run}'" for run in runs)
        limit = LEASE_S + self.args.slack
        while True:
            again = int(self.cluster.ask(f"select count(distinct run_id) from workflow_events where event_type='StepRedispatched' and run_id in ({names})")[0])
            took = time.monotonic() - before
            if again == len(runs):
                break
            if took > limit + 20:
                self.give_up(f"after {how}: {again} of {len(runs)} runs went on elsewhere after {took:.1f} s")
            time.sleep(0.05)
        self.told.append(f"{how}: runs went on after {took:.1f} s")
        faults = [f"{how}: runs went on only after {took:.1f} s"] if took > limit else []
        if how == "stop":
            size = os.path.getsize(victim.log)
            victim.process.send_signal(signal.SIGCONT)
            until = time.monotonic() + 20
            while "fenced" not in open(victim.log).read()[size:]:
                if time.monotonic() > until or victim.process.poll() is not None:
                    faults.append("the engine that woke up does not say that it was fenced")
                    break
                time.sleep(0.05)
        else:
            victim.start()
        victim.wait_up()
        return faults

    # ---- a run of one engine, seen and steered from the others
    def elsewhere(self):
        first, second, third = self.engines[0], self.engines[1], self.engines[-1]
        run = self.begin(self.slow, f"elsewhere-{uuid.uuid4()}", first)
        took = []
        for engine, kind, state in ((second, "PAUSE", "PAUSED"), (third, "RESUME", None)):
            before = time.monotonic()
            status, body = engine.call("PUT", f"/v1/runs/{run}/signals/{uuid.uuid4()}", {"signalType": kind, "payload": {}})
            took.append(time.monotonic() - before)
            if status != 202 or body.get("decision") != "ACCEPTED":
                yield f"{kind} through another engine: {status} {body}"
        self.told.append(f"signals elsewhere took {max(took) * 1000:.0f} ms")
        # The same request at two engines at once is one run.
        request, answers = f"both-{uuid.uuid4()}", []
        ask = lambda engine: answers.append(engine.call("POST", "/v1/runs", {"document": self.plan, "runRequestId": request}))
        threads = [threading.Thread(target=ask, args=(engine,)) for engine in (first, second, third)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if len({body.get("runId") for status, body in answers if status in (200, 202)}) != 1 or len(answers) != 3:
            yield f"one request at three engines: {answers}"
        self.history.append((request, "ok", answers[0][1].get("runId")))
        status, page = second.call("GET", "/v1/audit?limit=500", None)
        engines = len({item["seq"] for item in page["items"]}), len(page["items"])
        if status != 200 or engines[1] <= engines[0]:
            yield f"the audit shows one chain only: {engines}"
        status, body = third.call("GET", "/v1/audit:verify", None)
        if status != 200 or not body.get("intact") or body["records"] < 3:
            yield f"audit: {status} {body}"

    # ---- fire
    def fire(self):
        rng = random.Random(self.args.seed)
        acts = ["kill"] * self.args.kills + ["stop"] * self.args.stops + ["restart"] * self.args.restarts
        rng.shuffle(acts)
        for act in acts:
            time.sleep(rng.uniform(0.05, 0.5))
            engine = rng.choice(self.engines)
            self.count[act] += 1
            if act == "kill":
                engine.process.kill()
                engine.process.wait()
                engine.start()
            elif act == "stop":
                engine.process.send_signal(signal.SIGSTOP)
                time.sleep(LEASE_S * rng.uniform(0.5, 2))
                engine.process.send_signal(signal.SIGCONT)
            else:
                self.cluster.stop(signal.SIGQUIT)
                self.cluster.start()
            for one in self.engines:
                if one.process.poll() is not None:
                    one.start()
                    self.restarted += 1

    def run(self):
        self.cluster.make()
        self.url = self.cluster.url()
        self.engines = [Engine(self, i + 1) for i in range(self.args.engines)]
        self.engines[0].start()
        self.engines[0].wait_up()
        for engine in self.engines[1:]:
            engine.start()
        for engine in self.engines:
            engine.wait_up()
        have = self.spread()
        self.told.append(f"shards {have}")
        self.begin(self.plan, "first")
        faults = list(self.elsewhere())
        for how in ("kill", "stop"):
            self.spread()
            faults += self.takeover(how)
        clients = [threading.Thread(target=self.client, args=(i,)) for i in range(self.args.clients)]
        for thread in clients:
            thread.start()
        self.fire()
        for engine in self.engines:
            engine.wait_up()
        self.stop.set()
        for thread in clients:
            thread.join()
        if not self.settle():
            faults.append(f"{self.open_runs()} runs are stuck")
        for engine in self.engines:
            engine.process.send_signal(signal.SIGTERM)
        for engine in self.engines:
            engine.process.wait(60)
        return self.check(faults)

    # ---- the checker: history and effects against the log as SQL shows it
    def check(self, faults):
        runs = {}
        for line in self.cluster.ask("select r.run_id||' '||coalesce(e.record_prefix||e.payload||e.record_suffix,'') from runs r left join workflow_events e using(run_no) order by r.run_no,e.sequence"):
            run, text = line.split(" ", 1)
            runs.setdefault(run, []).append(json.loads(text))
        started, seen = {}, {}
        for request, what, run in self.history:
            if what != "ok":
                faults.append(f"{request}: {what}")
            elif run is None or run not in runs:
                faults.append(f"acknowledged and lost: {request} {run}")
            elif started.setdefault(request, run) != run:
                faults.append(f"one request, two runs: {request}")
            elif seen.setdefault(run, request) != request:
                faults.append(f"two requests, one run: {run}")
        if len(runs) != len(seen):
            faults.append(f"{len(runs)} runs were stored, {len(seen)} acknowledged")
        effects = {}
        for line in open(self.effects):
            run, step, logical, engine = line.split()
            effects.setdefault(run, []).append((step, int(logical), int(engine)))
        again = 0
        for run, events in runs.items():
            faults += [f"{run}: {fault}" for fault in self.check_run(events, effects.pop(run, []))]
            again += sum(e["eventType"] == "StepRedispatched" for e in events)
        if effects:
            faults.append(f"effects of runs that are not stored: {sorted(effects)[:3]}")
        verify = subprocess.run([self.args.cairn, "log", "verify", "--all", "--store", self.url], capture_output=True, text=True, cwd=self.dir)
        if verify.returncode:
            faults.append("log verify: " + (verify.stdout + verify.stderr)[-300:])
        epochs = [int(n) for n in self.cluster.ask("select max(epoch) from shards")]
        self.cluster.stop(signal.SIGINT)
        for fault in faults[:20]:
            print("  " + fault, file=sys.stderr)
        fenced = sum(open(engine.log).read().count("joins again") for engine in self.engines)
        told = f"{len(self.engines)} engines: {self.count['kill']} kills, {self.count['stop']} stops, {self.count['restart']} restarts of Postgres; {len(runs)} runs, {again} attempts begun again, {fenced} fenced, {self.restarted} started again, shard epochs up to {epochs[0]}; " + ", ".join(self.told)
        print(f"{'not ok' if faults else 'ok'} engines_storm_I27_I28{': ' + str(len(faults)) + ' faults' if faults else ''} ({told})")
        if faults or self.args.keep:
            print("  kept: " + self.dir, file=sys.stderr)
        else:
            shutil.rmtree(self.dir)
        return 1 if faults else 0

    def check_run(self, events, effects):
        if [e["runSeq"] for e in events] != list(range(1, len(events) + 1)):
            yield "numbers have gaps"
        ends = [e["eventType"] for e in events if e["eventType"] in ("RunCompleted", "RunFailed", "RunCancelled")]
        if ends != ["RunCompleted"] or events[-1]["eventType"] != "RunCompleted":
            yield f"ended as {ends}"
        ordered = {(e["stepId"], e["logicalAttemptId"], e["engineAttemptId"]) for e in events if e["eventType"] in ("StepStarted", "StepRedispatched")}
        if not set(effects) <= ordered:
            yield f"ran without an event: {sorted(set(effects) - ordered)} (I11)"
        if len(set(effects)) != len(effects):
            yield f"one attempt ran twice: {sorted(effects)} (I13)"
        for step in "abcd":
            mine = [e for e in events if e.get("stepId") == step]
            done = [i for i, e in enumerate(mine) if e["eventType"] == "StepCompleted"]
            if len(done) != 1 or done[0] != len(mine) - 1:
                yield f"{step} completed {len(done)} times, or went on (I12)"
            outcomes = [e["logicalAttemptId"] for e in mine if e["eventType"] in ("StepCompleted", "StepFailed", "StepSkipped")]
            if len(set(outcomes)) != len(outcomes):
                yield f"two outcomes of one attempt of {step} (I14)"
            if step != "d" and not [e for e in effects if e[0] == step]:
                yield f"{step} completed and never ran"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cairn", type=os.path.abspath)
    parser.add_argument("--engines", type=int, default=3)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--stops", type=int, default=200)
    parser.add_argument("--restarts", type=int, default=200)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--slack", type=float, default=2.0, help="seconds beyond the lease until runs must go on")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--dir")
    args = parser.parse_args()
    storm = Storm(args)
    if not storm.cluster.bin:
        print("skip engines_storm: Postgres is not installed")
        sys.exit(0)
    sys.exit(storm.run())


main()
