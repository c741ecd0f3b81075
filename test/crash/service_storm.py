#!/usr/bin/env python3
"""test/crash/service_storm.py CAIRN [--kills N] [--stops N] [--keep]
   test/crash/service_storm.py CAIRN --nats-outage SECONDS [--keep]

A server and workers under fire: kill -9 of the server and of workers in turn, workers stopped for longer than their lease, while
clients start runs and signal them. Every call that was answered is kept in a history, every execution of a step leaves a line
outside; at the end both are held against the log, read from the database by SQL and not by Cairn.

What must hold: every acknowledged start is one run and ended; no request became two runs; every execution has its event, and none
ran twice; nothing of a step ran after its completion; one terminal event, dense numbers; no run is stuck; the chains verify.

With --nats-outage the sinks go instead: nats-server is killed and the receiver of webhooks leaves, for so long, while runs are started; halfway
the server itself is killed too. Runs must go on as quickly as before; when the sinks are back, every event of the log must be in the stream
once, and at the receiver, in the order of its run.
"""
import argparse, contextlib, http.client, json, os, random, signal, sqlite3, subprocess, sys, tempfile, threading, time, uuid

from sinks import Nats, Receiver
from storming import BUSY, GONE, call, check_run, check_starts, document, free_port, read_effects, storm_plan, tell


class Worn:
    """Steps in flight that were begun MANY times and more, by the events that were stored since it looked last."""
    MANY = 10

    def __init__(self):
        self.position, self.worn = 0, set()

    def read(self, db):
        for position, run, text in db.execute("select position, run_id, record_prefix || payload || record_suffix from workflow_events where position > ? and event_type in ('StepRedispatched', 'StepCompleted', 'StepFailed') order by position", (self.position,)):
            event, self.position = json.loads(text), position
            step = run, event["stepId"]
            if event["eventType"] != "StepRedispatched":
                self.worn.discard(step)
            elif event["engineAttemptId"] >= self.MANY:
                self.worn.add(step)


class Storm:
    def __init__(self, args):
        self.args = args
        self.dir = tempfile.mkdtemp(prefix="cairn-storm-", dir=args.dir)
        self.effects = os.path.join(self.dir, "effects")
        open(self.effects, "w").close()
        self.store = os.path.join(self.dir, "storm.db")
        self.port = free_port()
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.history = []  # (request, what, run)
        self.server, self.workers = None, {}
        self.token = None
        self.kills = {"server": 0, "worker": 0, "stop": 0}
        self.plan = storm_plan(self.effects)

    def give_up(self, why):
        print("not ok service_storm: " + why)
        os._exit(1)  # from any thread

    # ---- processes
    def start_server(self):
        log = open(os.path.join(self.dir, "server.err"), "a")
        flags = ["--route", "*=default"] if not self.args.local else []
        self.server = subprocess.Popen([self.args.cairn, "serve", "--store", "sqlite:" + self.store, "--listen", f"127.0.0.1:{self.port}", "--lease", "2s", "--confine", "none", *flags], stdout=log, stderr=log, cwd=self.dir)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if self.server.poll() is not None:
                self.give_up("the server ended by itself: " + open(log.name).read()[-2000:])
            try:
                if not self.token and os.path.exists(self.store + ".token"):
                    self.token = open(self.store + ".token").read().strip()
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
                connection.request("GET", "/livez")
                if connection.getresponse().status == 200 and self.token:
                    return
            except OSError:
                pass
            time.sleep(0.02)
        self.give_up("the server does not come up")

    def start_worker(self, name):
        log = open(os.path.join(self.dir, f"worker-{name}.err"), "a")
        environment = {**os.environ, "CAIRN_TOKEN": self.token}
        self.workers[name] = subprocess.Popen([self.args.cairn, "worker", "--server", f"http://127.0.0.1:{self.port}", "--name", name, "--concurrency", "8", "--confine", "none"], stdout=log, stderr=log, env=environment)

    # ---- clients
    def call(self, method, path, body):
        return call("127.0.0.1", self.port, self.token, method, path, body)

    def client(self, seed):
        rng = random.Random(seed)
        while not self.stop.is_set():
            request = f"q-{seed}-{uuid.uuid4()}"
            run = None
            while run is None:  # until it is acknowledged: the same request again never starts a second run
                try:
                    status, body = self.call("POST", "/v1/runs", {"document": self.plan, "runRequestId": request})
                    if status in (200, 202):
                        run = body["runId"]
                    elif status not in BUSY:
                        with self.lock:
                            self.history.append((request, f"refused {status} {body}", None))
                        break
                except GONE:
                    pass
                if run is None:
                    time.sleep(0.02)
            with self.lock:
                self.history.append((request, "ok", run))
            if run and rng.random() < 0.1:
                self.pause_and_resume(run)
            self.hold_back()
            time.sleep(rng.random() * 0.02)

    def hold_back(self):
        """So many runs and no more: what is shot at must be work in flight, not a queue."""
        while not self.stop.is_set():
            try:
                status, page = self.call("GET", "/v1/runs?limit=60&q=status%3Dactive", None)
                if status == 200 and len(page["items"]) < 60:
                    return
            except GONE:
                pass
            time.sleep(0.05)

    def pause_and_resume(self, run):
        for kind in ("PAUSE", "RESUME"):
            signal_id = str(uuid.uuid4())
            for _ in range(200):
                try:
                    status, _body = self.call("PUT", f"/v1/runs/{run}/signals/{signal_id}", {"signalType": kind, "payload": {}})
                    if status in (200, 202, 409):
                        break
                except GONE:
                    pass
                time.sleep(0.05)

    # ---- fire
    def let_worn_steps_end(self, seen):
        """A step whose executors were all lost, twenty in a row and each within a minute, is given up, and rightly so (C-34). Whether one comes
        near that is up to how busy this machine is: what was begun so often ends before the next shot."""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            with contextlib.closing(sqlite3.connect(f"file:{self.store}?mode=ro", uri=True, timeout=30)) as db:
                seen.read(db)
            if not seen.worn:
                return
            time.sleep(0.05)
        self.give_up(f"begun {Worn.MANY} times and more, and do not end although nobody shoots: {sorted(seen.worn)[:3]}")

    def fire(self):
        rng = random.Random(7)
        kills = 0
        seen = Worn()
        while kills < self.args.kills:
            time.sleep(rng.uniform(0.02, 0.25))
            self.let_worn_steps_end(seen)
            if kills % 2 == 0:
                self.server.kill()
                self.server.wait()
                self.start_server()
                self.kills["server"] += 1
            else:
                name = rng.choice(sorted(self.workers)) if self.workers else None
                if name:
                    self.workers[name].kill()
                    self.workers[name].wait()
                    self.start_worker(name)
                    self.kills["worker"] += 1
            kills += 1

    def freeze(self):
        rng = random.Random(11)
        for _ in range(self.args.stops):
            name = rng.choice(sorted(self.workers))
            process = self.workers[name]
            process.send_signal(signal.SIGSTOP)
            time.sleep(2.6)  # the lease is two seconds
            if self.workers[name] is process and process.poll() is None:
                process.send_signal(signal.SIGCONT)
            self.kills["stop"] += 1
            time.sleep(rng.uniform(0.05, 0.3))

    def settle(self, seconds=120):
        """Nobody shoots any more: everything that was begun must end by itself."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                status, page = self.call("GET", "/v1/runs?limit=1&q=status%3Dactive", None)
                if status == 200 and not page["items"]:
                    return True
            except GONE:
                pass
            time.sleep(0.2)
        return False

    def run(self):
        self.start_server()
        if not self.args.local:
            for name in ("w1", "w2", "w3"):
                self.start_worker(name)
        status, body = self.call("POST", "/v1/runs", {"document": self.plan, "runRequestId": "first"})
        self.history.append(("first", "ok", body.get("runId")))
        if not self.settle(20):
            self.give_up("not even an undisturbed run ends")
        clients = [threading.Thread(target=self.client, args=(i,)) for i in range(self.args.clients)]
        for thread in clients:
            thread.start()
        fire = [threading.Thread(target=self.fire)]
        if not self.args.local and self.args.stops:
            fire.append(threading.Thread(target=self.freeze))
        for thread in fire:
            thread.start()
        for thread in fire:
            thread.join()
        self.stop.set()
        for thread in clients:
            thread.join()
        settled = self.settle()
        self.server.send_signal(signal.SIGTERM)
        self.server.wait(60)
        for process in self.workers.values():
            process.kill()
            process.wait()
        return self.check(settled)

    # ---- the checker: history and effects against the log as SQL shows it
    def check(self, settled):
        faults = [] if settled else ["runs are stuck"]
        db = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)
        runs = dict(db.execute("select run_id, run_no from runs"))
        faults += [what for _kind, what in check_starts(self.history, runs)]
        effects = read_effects(self.effects)
        redispatched = 0
        for run, number in runs.items():
            events = [json.loads(text) for (text,) in db.execute("select record_prefix || payload || record_suffix from workflow_events where run_no = ? order by sequence", (number,))]
            faults += [f"{run}: {what}" for _kind, what in check_run(events, effects.pop(run, []))]
            redispatched += sum(e["eventType"] == "StepRedispatched" for e in events)
        if effects:
            faults.append(f"effects of runs that are not stored: {sorted(effects)[:3]}")
        verify = subprocess.run([self.args.cairn, "log", "verify", "--all", "--store", "sqlite:" + self.store], capture_output=True, text=True)
        if verify.returncode:
            faults.append("log verify: " + (verify.stdout + verify.stderr)[-300:])
        told = f"{self.kills['server']} kills of the server, {self.kills['worker']} of workers, {self.kills['stop']} stops; {len(runs)} runs, {redispatched} attempts begun again"
        return tell("service_storm", faults, told, self.dir, self.args.keep)


class Outage(Storm):
    """Sinks that are away while runs go on."""

    def __init__(self, args):
        super().__init__(args)
        args.local = True
        self.nats, self.receiver = Nats(self.dir), Receiver()
        self.plan = document("outage", [{"stepId": "a", "kind": "noop"}, {"stepId": "b", "kind": "echo", "with": {"message": "hello"}, "dependsOn": ["a"]}])
        self.times = {"before": [], "outage": [], "after": []}
        self.phase = "before"
        with open(os.path.join(self.dir, "cairn.toml"), "w") as out:
            out.write(f"""
[serve]
sinks = [
  {{ name = "nats", type = "nats", url = "nats://127.0.0.1:{self.nats.port}", stream = "{Nats.STREAM}", probeMaxMs = 500 }},
  {{ name = "hook", type = "webhook", url = "http://127.0.0.1:{self.receiver.port}/in", probeMaxMs = 500 }},
]
[serve.fetch]
allow = [{{ uri = "http://127.0.0.1:{self.receiver.port}/", allowPrivate = true }}]
""")

    def client(self, seed):
        """Starts runs one after the other and waits for the end of each; one connection, made anew when the server was shot."""
        connection, request = None, None
        while not self.stop.is_set():
            request = request or f"q-{seed}-{uuid.uuid4()}"
            began, phase = time.monotonic(), self.phase
            try:
                connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
                connection.request("POST", "/v1/runs", json.dumps({"document": self.plan, "runRequestId": request}), {"Authorization": "Bearer " + self.token, "Content-Type": "application/json", "Prefer": "wait=30"})
                answer = connection.getresponse()
                status, body = answer.status, json.loads(answer.read())
            except GONE:
                connection = None
                time.sleep(0.01)
                continue
            if status in BUSY:
                time.sleep(0.01)
                continue
            with self.lock:
                self.history.append((request, "ok" if status in (200, 202) else f"refused {status} {body}", body.get("runId")))
                self.times[phase].append(time.monotonic() - began)
            request = None

    def sinks(self):
        status, page = self.call("GET", "/v1/outbox", None)
        return page["items"] if status == 200 else []

    def drained(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                sinks = self.sinks()
                if len(sinks) == 2 and all(sink["waiting"] == 0 and not sink["deadLetters"] for sink in sinks):
                    return True
            except GONE:
                pass
            time.sleep(0.1)
        return False

    def run(self):
        seconds, calm = self.args.nats_outage, max(1.0, self.args.nats_outage / 6)
        self.nats.start()
        self.nats.make_stream()
        self.receiver.up()
        self.start_server()
        clients = [threading.Thread(target=self.client, args=(i,)) for i in range(self.args.clients)]
        for thread in clients:
            thread.start()
        time.sleep(calm)
        self.nats.kill()
        self.receiver.down()
        self.phase = "outage"
        time.sleep(seconds / 2)
        self.server.kill()
        self.server.wait()
        self.start_server()
        self.kills["server"] += 1
        time.sleep(seconds / 2)
        waiting = {sink["name"]: sink["waiting"] for sink in self.sinks()}
        self.phase = "after"
        self.nats.start()
        self.receiver.up()
        time.sleep(calm)
        self.stop.set()
        for thread in clients:
            thread.join()
        settled = self.settle() and self.drained(120)
        self.server.send_signal(signal.SIGTERM)
        self.server.wait(60)
        faults = [] if settled else ["runs or events are stuck"]
        faults += [f"{name}: nothing waited while it was away" for name in ("nats", "hook") if not waiting.get(name)]
        return self.tell(faults + list(self.check_all(calm, seconds)), waiting)

    def check_all(self, calm, seconds):
        yield from self.check_starts()
        db = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)
        log = [(run, seq) for run, seq in db.execute("select run_id, sequence from workflow_events order by position")]
        stream = [tuple(headers["Nats-Msg-Id"].rsplit(":", 1)) for headers in self.nats.read_all()]
        hook = [tuple(name.rsplit(":", 1)) for name in self.receiver.ids]
        self.nats.stop()
        yield from self.check_sink("nats", log, [(run, int(seq)) for run, seq in stream], 0)
        # What was on its way when the receiver, or we, went is sent again under the same id: one event each time.
        yield from self.check_sink("hook", log, [(run, int(seq)) for run, seq in hook], 2)
        self.events = len(log)
        rates = {phase: len(self.times[phase]) / (seconds if phase == "outage" else calm) for phase in self.times}
        if rates["outage"] < 0.6 * rates["before"] and seconds >= 10:  # a restart is among it, and this machine has other work
            yield f"runs were slower while sinks were away: {rates}"
        self.rates = rates

    def check_starts(self):
        db = sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)
        runs = {run for (run,) in db.execute("select run_id from runs")}
        ended = {run for (run,) in db.execute("select run_id from runs join run_heads using(run_no) where status = 'COMPLETED'")}
        seen = {}
        for request, what, run in self.history:
            if what != "ok":
                yield f"{request}: {what}"
            elif run not in ended:
                yield f"acknowledged and not completed: {request} {run}"
            elif seen.setdefault(run, request) != request:
                yield f"two requests, one run: {run}"
        # A client that was stopped between its request and the answer asks no more: at most one each.
        if len(runs) - len(seen) > self.args.clients:
            yield f"{len(runs)} runs were stored, {len(seen)} acknowledged"
        if runs != ended:
            yield f"{len(runs - ended)} runs have not completed"

    def check_sink(self, name, log, got, doubles_max):
        first, doubles = {}, 0
        last = {}
        for run, seq in got:
            if (run, seq) in first:
                doubles += 1
                continue
            first[(run, seq)] = True
            if seq != last.get(run, 0) + 1:
                yield f"{name}: {run}:{seq} came after {last.get(run, 0)}"
            last[run] = seq
        lost = set(log) - set(first)
        if lost:
            yield f"{name}: {len(lost)} of {len(log)} events are lost, {sorted(lost)[:3]}"
        if set(first) - set(log):
            yield f"{name}: events that no log has: {sorted(set(first) - set(log))[:3]}"
        if doubles > doubles_max:
            yield f"{name}: {doubles} events came twice"

    def tell(self, faults, waiting):
        rates = getattr(self, "rates", {})
        p99 = {phase: round(1000 * sorted(times)[int(len(times) * 0.99)], 1) for phase, times in self.times.items() if times}
        told = f"sinks away for {self.args.nats_outage} s, {getattr(self, 'events', 0)} events, {waiting} waited; runs/s {({k: round(v) for k, v in rates.items()})}, p99 ms {p99}"
        return tell("sink_outage", faults, told, self.dir, self.args.keep)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cairn", type=os.path.abspath)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--stops", type=int, default=100)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--local", action="store_true", help="steps run in the server; no workers")
    parser.add_argument("--nats-outage", type=float, default=0, help="seconds that sinks are away, instead of kills")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--dir")
    args = parser.parse_args()
    if args.nats_outage and not Nats.there():
        print("skip sink_outage: nats-server is not installed")
        sys.exit(0)
    sys.exit((Outage(args) if args.nats_outage else Storm(args)).run())


main()
