#!/usr/bin/env python3
"""test/crash/engines_storm.py CAIRN [--engines N] [--kills N] [--stops N] [--restarts N] [--cuts N] [--withheld N] [--partitions N]
                                    [--minutes N] [--rounds N] [--prove] [--keep]

Several engines on one Postgres under fire, all at once: kill -9; SIGSTOP for longer than their lease; immediate restarts of the database;
connections cut after any byte by a proxy, some of them after a batch was committed and before the engine heard of it, some so that the
server gets the batch after the engine has gone; networks that lose what is sent, answered, or both. Clients start runs at any engine,
signal them through any other and read their events, and keep what they were told; every execution of a step leaves a line outside;
what is delivered to a webhook is kept as it comes; triggers of our own keep who wrote what. engines_check.py holds all of that against the log, read by psql and not by Cairn; `cairn log
verify` must agree.

After each round of fire it is calm for a moment and one engine is shot, or stopped: its runs must go on elsewhere within its lease and two
seconds. A stopped engine that wakes up says that it was fenced. A batch that is delivered when its engine has been taken for dead
already must be refused.

With --prove the checker is proven, too: a database whose append function does not compare, and records that were tampered with
(engines_proof.py).
"""
import argparse, json, os, random, signal, subprocess, sys, tempfile, threading, time, uuid

from engines_check import Records, check, digest, keep_records
from partitions import make_islands
from pgcluster import WITNESS, Cluster
from pgproxy import Proxy
from sinks import Receiver
from storming import AGAIN, BUSY, GONE, call, document, free_port, shell, storm_plan, tell

OPEN_MAX = 60  # what is shot at must be work in flight, not a queue
CALL_S = 4  # then another engine is asked
KINDS = ("kill", "stop", "restart", "cut", "withheld", "partition")


class Engine:
    def __init__(self, storm, number, island):
        self.storm, self.number, self.island = storm, number, island
        self.host, self.port = (island.host if island else "127.0.0.1"), free_port()
        self.proxy = Proxy(island.database if island else "127.0.0.1", storm.cluster.socket, number)
        self.process = None
        self.lock = threading.Lock()  # held by whoever shoots at it
        self.log = os.path.join(storm.dir, f"engine-{number}.err")
        self.dir = os.path.join(storm.dir, f"engine-{number}")
        self.configure(f"http://{island.outer if island else '127.0.0.1'}:{storm.receiver.port}/")

    def configure(self, receiver):
        os.mkdir(self.dir)
        with open(os.path.join(self.dir, "cairn.toml"), "w") as out:
            out.write(f"""
[serve]
engineLeaseSeconds = {self.storm.args.lease}
tokenFile = "{self.storm.token_file}"
hosts = ["{self.host}"]
sinks = [{{ name = "hook", type = "webhook", url = "{receiver}in", probeMaxMs = 500, alerts = false }}]
[serve.fetch]
allow = [{{ uri = "{receiver}", allowPrivate = true }}]
[serve.plans]
inline = "allow"
""")

    def start(self):
        with open(self.log, "a") as log:
            self.began = log.tell()
            inside = self.island.command() if self.island else []
            self.process = subprocess.Popen([*inside, self.storm.args.cairn, "serve", "--store", self.proxy.url(), "--listen", f"{self.host}:{self.port}", "--confine", "none", *(["--insecure"] if self.island else [])], stdout=log, stderr=log, cwd=self.dir)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def watch(self):
        """Whoever watches it starts it again: the database was not there when it began."""
        with self.lock:
            if self.process.poll() is not None:
                ended = self.listened()
                self.storm.count["ended" if ended else "not begun"] += 1
                if ended:  # the database is never away for so long that this would be right
                    self.storm.faults.append(f"engine {self.number} ended by itself: {open(self.log).read()[-400:]}")
                self.start()

    def listened(self):
        with open(self.log) as log:
            log.seek(self.began)
            return "listening on" in log.read()

    def call(self, method, path, body, timeout=30):
        return call(self.host, self.port, self.storm.token, method, path, body, timeout)

    def is_up(self):
        try:
            if not self.storm.token and os.path.exists(self.storm.token_file):
                self.storm.token = open(self.storm.token_file).read().strip()
            return bool(self.storm.token) and self.call("GET", "/livez", None, 2)[0] == 200
        except GONE:
            return False

    def wait_up(self, seconds=60):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.watch()
            if self.is_up():
                return
            time.sleep(0.05)
        self.storm.give_up(f"engine {self.number} does not come up: " + open(self.log).read()[-1500:])


class Storm:
    def __init__(self, args):
        self.args = args
        self.dir = tempfile.mkdtemp(prefix="cairn-engines-", dir=args.dir)
        self.effects = os.path.join(self.dir, "effects")
        open(self.effects, "w").close()
        self.history = open(os.path.join(self.dir, "history.jsonl"), "w")
        self.token_file, self.token = os.path.join(self.dir, "token"), None
        self.cluster = Cluster(self.dir)
        self.stop, self.lock = threading.Event(), threading.Lock()
        self.count = {**{kind: 0 for kind in KINDS}, "ended": 0, "not begun": 0, "late": 0}
        self.engines, self.islands, self.told, self.faults, self.failovers = [], [], [], [], []
        self.open, self.frozen = 0, set()
        self.plan = storm_plan(self.effects)
        self.slow = document("slow", [shell(self.effects, "a", "sleep 1; echo one", [], **AGAIN), shell(self.effects, "b", "true", ["a"], **AGAIN), shell(self.effects, "c", "true", ["a"], **AGAIN), {"stepId": "d", "kind": "merge", "dependsOn": ["b", "c"]}])

    def end_all(self):
        for engine in self.engines:
            if engine.process and engine.process.poll() is None:
                engine.process.kill()
                engine.process.wait()
        if self.cluster.process and self.cluster.process.poll() is None:
            self.cluster.process.send_signal(signal.SIGQUIT)
            self.cluster.process.wait()
        for island in self.islands:
            island.remove()

    def give_up(self, why):
        print("not ok engines_storm: " + why)
        print("  kept: " + self.dir, file=sys.stderr)
        sys.stdout.flush()
        self.end_all()
        os._exit(1)

    # ---- clients
    def keep(self, **what):
        with self.lock:
            self.history.write(json.dumps(what) + "\n")

    def anywhere(self, method, path, body, good, seconds=60):
        """Asks some engine, and another one when that one is not there."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                status, answer = random.choice(self.engines).call(method, path, body, CALL_S)
                again = status in BUSY or (isinstance(answer, dict) and answer.get("retryable"))
                if status in good or not again:
                    return status, answer
            except GONE:
                pass
            time.sleep(0.05)
        return 0, "nobody answers"

    def begin(self, plan, request, engine=None):
        body = {"document": plan, "runRequestId": request}
        status, answer = engine.call("POST", "/v1/runs", body) if engine else self.anywhere("POST", "/v1/runs", body, (200, 202), 300)
        ok = status in (200, 202)
        self.keep(call="start", request=request, ok=ok, run=answer["runId"] if ok else None, why=None if ok else f"{status} {answer}")
        if ok:
            self.keep(call="state", run=answer["runId"], last=answer.get("lastEventSeq", 0))
        return answer["runId"] if ok else None

    def send(self, run, kind):
        ident = str(uuid.uuid4())
        status, answer = self.anywhere("PUT", f"/v1/runs/{run}/signals/{ident}", {"signalType": kind, "payload": {}}, (200, 202), 60)
        if status in (200, 202):
            self.keep(call="signal", run=run, signal=ident, decision=answer["decision"], caused=answer.get("causedSeq", 0))
        elif "decision" not in (answer or ""):  # else it was rejected: the run has ended, or is paused already
            self.keep(call="refused", run=run, why=f"{kind}: {status} {answer}")

    def read(self, run):
        status, page = self.anywhere("GET", f"/v1/runs/{run}/events", None, (200,), 10)
        if status == 200:
            self.keep(call="events", run=run, seen=[digest(event) for event in page["items"]])
        elif status:
            self.keep(call="refused", run=run, why=f"reading: {status} {page}")

    def client(self, seed):
        rng, mine = random.Random(seed), []
        while not self.stop.is_set():
            run = self.begin(self.plan, f"q-{seed}-{uuid.uuid4()}")
            mine = (mine + [run])[-8:]
            if run and rng.random() < 0.1:
                self.send(run, "PAUSE")
                self.send(run, "RESUME")
            if run and rng.random() < 0.3:
                self.read(rng.choice(mine))
            self.stop.wait(rng.uniform(0, 2 * self.args.clients / self.args.rate))
            while self.open > OPEN_MAX and not self.stop.is_set():
                time.sleep(0.1)

    def open_runs(self):
        return int(self.cluster.ask_while_shot("select count(*) from run_heads where not terminal")[0])

    def look(self):
        """How much is open, so that clients hold back."""
        while not self.stop.is_set():
            self.open = self.open_runs()
            self.stop.wait(0.5)

    def settle(self, seconds=120):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.open_runs() == 0:
                return True
            time.sleep(0.1)
        return False

    def drained(self, seconds=60):
        """Everything was delivered, as the receiver sees it: what an engine says of it may be of another engine's duty."""
        until = time.monotonic() + seconds
        events = int(self.cluster.ask("select count(*) from workflow_events")[0])
        while time.monotonic() < until:
            if len(set(self.receiver.ids)) >= events:
                return True
            time.sleep(0.1)
        return False

    # ---- fire
    def pick(self, rng):
        """Some engine that nobody else shoots at just now, held; stopped ones are left to whoever wakes them."""
        while True:
            engine = rng.choice(self.engines)
            if engine.lock.acquire(timeout=0.2):
                if engine.number not in self.frozen:
                    return engine
                engine.lock.release()
            time.sleep(0.05)

    def kill(self, rng):
        engine = self.pick(rng)
        try:
            engine.kill()
            engine.start()
        finally:
            engine.lock.release()
        return True

    def freeze(self, rng):
        engine = self.pick(rng)
        self.frozen.add(engine.number)
        engine.lock.release()
        engine.process.send_signal(signal.SIGSTOP)
        time.sleep(self.args.lease * rng.uniform(1.1, 2))
        engine.process.send_signal(signal.SIGCONT)
        self.frozen.discard(engine.number)
        return True

    def restart(self, rng):
        self.cluster.stop(signal.SIGQUIT)
        time.sleep(rng.choice((0, 0, 0.3)))
        self.cluster.start()
        return True

    def cut(self, rng):
        proxy = rng.choice(self.engines).proxy
        if rng.random() < 0.1:
            self.count["late"] += proxy.cut_appending("late") or 0
            return True
        return proxy.cut_somewhere()

    def withhold(self, rng):
        return rng.choice(self.engines).proxy.cut_appending("withhold")

    def part(self, rng):
        island = rng.choice(self.islands)
        island.lose(rng.choice(("requests", "answers", "both")))
        time.sleep(self.args.lease * rng.uniform(0.2, 2.5))
        island.heal()
        return True

    def barrage(self, kind, act, times, seed):
        """Acts at their times, or as soon after them as can be; one that did not come about is tried again."""
        rng, began = random.Random(seed), time.monotonic()
        for at in sorted(rng.uniform(0, times[1]) for _ in range(times[0])):
            time.sleep(max(0, began + at - time.monotonic()))
            while not act(rng):
                time.sleep(0.02)
            with self.lock:
                self.count[kind] += 1

    def guard(self, over):
        while not over.is_set():
            for engine in self.engines:
                engine.watch()
            over.wait(0.2)

    def fire(self, number):
        rounds, args = self.args.rounds, self.args
        share = lambda all_of_them: all_of_them * (number + 1) // rounds - all_of_them * number // rounds
        seconds = args.minutes * 60 / rounds
        lanes = 3  # cuts in a row take longer than there is time
        plan = [("kill", self.kill, share(args.kills)), ("stop", self.freeze, share(args.stops)), ("restart", self.restart, share(args.restarts)), ("partition", self.part, share(args.partitions) if self.islands else 0)]
        for lane in range(lanes):
            part = lambda n: share(n) * (lane + 1) // lanes - share(n) * lane // lanes
            plan += [("cut", self.cut, part(max(0, args.cuts - args.withheld))), ("withheld", self.withhold, part(args.withheld))]
        threads = [threading.Thread(target=self.barrage, args=(kind, act, (count, seconds), args.seed * 1000 + number * 100 + i)) for i, (kind, act, count) in enumerate(plan)]
        over = threading.Event()
        guard = threading.Thread(target=self.guard, args=(over,))
        guard.start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        over.set()
        guard.join()

    # ---- calm: one engine shot, one stopped, each with work in flight
    def spread(self):
        """Shards spread over all engines that are there."""
        until, have = time.monotonic() + 60, None
        for engine in self.engines:
            engine.wait_up()
        while time.monotonic() < until:
            have = [int(n) for n in self.cluster.ask_while_shot("select count(*) from shards s join engines e on e.engine_no=s.owner where e.lease_until>clock_timestamp() group by owner")]
            if len(have) == len(self.engines) and sum(have) == 64 and max(have) - min(have) <= 64 // len(self.engines):
                return have
            time.sleep(0.1)
        self.give_up("shards are not spread: " + str(have))

    def begin_at(self, engine, plan, name):
        while True:  # an engine that was fenced a moment ago answers 503
            try:
                return self.begin_once(engine, plan, name)
            except GONE:
                time.sleep(0.05)

    def begin_once(self, engine, plan, name):
        status, answer = engine.call("POST", "/v1/runs", {"document": plan, "runRequestId": name})
        if status not in (200, 202):
            raise OSError(f"{status} {answer}")
        self.keep(call="start", request=name, ok=True, run=answer["runId"], why=None)
        return answer["runId"]

    def takeover(self, how):
        self.spread()
        victim = self.engines[len(self.failovers) % len(self.engines)]
        runs = [self.begin_at(victim, self.slow, f"{how}-{uuid.uuid4()}") for _ in range(6)]
        size, before = os.path.getsize(victim.log), time.monotonic()
        time.sleep(0.3)
        with victim.lock:
            before = time.monotonic()
            victim.kill() if how == "kill" else victim.process.send_signal(signal.SIGSTOP)
            took = self.went_on(how, runs, before)
            self.faults += [f"{how}: runs went on only after {t:.1f} s" for t in took if t > self.args.lease + self.args.slack][:1]
            self.failovers.append((how, took))
            self.say(f"{how}: {took[-1]:.1f} s")
            self.count[how] += 1
            victim.start() if how == "kill" else self.wake(victim, size)
        victim.wait_up()

    def went_on(self, how, runs, before):
        names, took = ",".join(f"'{run}'" for run in runs), {}
        while len(took) < len(runs):
            again = self.cluster.ask(f"select distinct run_id from workflow_events where event_type='StepRedispatched' and run_id in ({names})")
            now = time.monotonic() - before
            for run in again:
                took.setdefault(run, now)
            if now > self.args.lease + self.args.slack + 30:
                self.give_up(f"after {how}: {len(took)} of {len(runs)} runs went on elsewhere after {now:.1f} s")
            time.sleep(0.03)
        return sorted(took.values())

    def wake(self, victim, size):
        victim.process.send_signal(signal.SIGCONT)
        until = time.monotonic() + 20
        while "fenced" not in open(victim.log).read()[size:]:
            if time.monotonic() > until or victim.process.poll() is not None:
                self.faults.append("the engine that woke up does not say that it was fenced")
                return
            time.sleep(0.05)

    # ---- a batch that comes when its engine has been taken for dead
    def delayed(self, name):
        """Whether the database took it, which it must not, and the run that it was of."""
        self.spread()
        victim = self.engines[0]
        waits = document("waits", [shell(self.effects, "a", "test $CAIRN_ATTEMPT -ge 2 && echo one", [], retry={"maxAttempts": 3, "delay": "8s"}), shell(self.effects, "b", "true", ["a"]), shell(self.effects, "c", "true", ["a"]), {"stepId": "d", "kind": "merge", "dependsOn": ["b", "c"]}])
        run = self.begin_at(victim, waits, f"{name}-{uuid.uuid4()}")
        epoch_now = lambda: int(self.cluster.ask(f"select h.epoch from run_heads h join runs r using(run_no) where run_id='{run}'")[0])
        has = lambda event: self.cluster.ask(f"select 1 from workflow_events where run_id='{run}' and event_type='{event}'")
        while not has("StepDelayed"):  # failed, and waits for its second attempt
            time.sleep(0.05)
        epoch = epoch_now()
        signalling = threading.Thread(target=self.ignore, args=(victim, run))
        held = []
        holding = threading.Thread(target=lambda: held.append(victim.proxy.hold_append(b"RunPaused", 10)))
        holding.start()
        signalling.start()
        holding.join()
        with victim.lock:
            victim.process.send_signal(signal.SIGSTOP)
            until = time.monotonic() + self.args.lease + 20
            while epoch_now() == epoch and time.monotonic() < until:
                time.sleep(0.05)
            if not held[0] or epoch_now() == epoch:
                self.give_up(f"no batch was held ({held}), or nobody took the run over (epoch {epoch})")
            held[0].let_go.set()
            held[0].ended.wait(5)
            stored = bool(has("RunPaused"))
            victim.process.send_signal(signal.SIGCONT)
        return stored, run

    def ignore(self, engine, run):
        try:
            engine.call("PUT", f"/v1/runs/{run}/signals/{uuid.uuid4()}", {"signalType": "PAUSE", "payload": {}}, 20)
        except GONE:
            pass

    # ---- a run of one engine, seen and steered from the others
    def elsewhere(self):
        first, second, third = self.engines[0], self.engines[1], self.engines[-1]
        run = self.begin_at(first, self.slow, f"elsewhere-{uuid.uuid4()}")
        took = []
        for engine, kind in ((second, "PAUSE"), (third, "RESUME")):
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
        self.keep(call="start", request=request, ok=True, run=answers[0][1].get("runId"), why=None)
        status, page = second.call("GET", "/v1/audit?limit=500", None)
        engines = len({item["seq"] for item in page["items"]}), len(page["items"])
        if status != 200 or engines[1] <= engines[0]:
            yield f"the audit shows one chain only: {engines}"
        yield from self.audit(third)

    @staticmethod
    def audit(engine):
        status, body = engine.call("GET", "/v1/audit:verify", None)
        if status != 200 or not body.get("intact") or body["records"] < 3:
            yield f"audit: {status} {body}"

    # ---- all of it
    def say(self, what):
        if self.args.verbose:
            print(f"  {time.monotonic() - self.began:6.1f} s  {what}", file=sys.stderr, flush=True)

    def start(self):
        self.cluster.make()
        if self.args.partitions:
            self.islands, why = make_islands(self.args.engines)
            self.told += [f"partitions left out ({why})"] if why else []
        self.receiver = Receiver(host="0.0.0.0" if self.islands else "127.0.0.1")
        self.receiver.up()
        self.engines = [Engine(self, i + 1, self.islands[i] if self.islands else None) for i in range(self.args.engines)]
        self.engines[0].start()
        self.engines[0].wait_up()
        self.cluster.ask(WITNESS)
        for engine in self.engines[1:]:
            engine.start()
        self.told.append(f"shards {self.spread()}")
        self.say("begun")

    def storm(self):
        self.faults += list(self.elsewhere())
        stored, run = self.delayed("delayed")
        if stored:
            self.faults.append(f"{run}: a batch of an engine that was taken for dead was stored")
        self.say("a batch came late")
        clients = [threading.Thread(target=self.client, args=(i,)) for i in range(self.args.clients)] + [threading.Thread(target=self.look)]
        for thread in clients:
            thread.start()
        for number in range(self.args.rounds):
            self.fire(number)
            self.say(f"round {number + 1} of {self.args.rounds}: {self.count}")
            self.takeover(("stop", "kill")[number % 2])
        self.stop.set()
        for thread in clients:
            thread.join()
        self.send(run, "RESUME")  # the signal may have found its way to the new owner
        for engine in self.engines:
            engine.wait_up()
        if not self.settle():
            self.faults.append(f"{self.open_runs()} runs are stuck")
        if not self.drained():
            self.faults.append("events wait for the sink")
        self.say("settled")
        self.faults += list(self.audit(self.engines[-1]))

    def run(self):
        self.began = time.monotonic()
        self.start()
        self.storm()
        self.seconds = time.monotonic() - self.began
        status = self.check()
        if self.args.prove and not status:
            from engines_proof import prove
            status = prove(self)
        self.end_all()
        return status

    def keep_records(self):
        self.history.flush()
        with open(os.path.join(self.dir, "delivered"), "w") as out:
            out.writelines(name + "\n" for name in list(self.receiver.ids))
        keep_records(self.cluster, self.dir)

    def check(self):
        self.keep_records()
        records = Records(self.dir)
        faults = self.faults + [what for _kind, what in check(records)]
        verify = subprocess.run([self.args.cairn, "log", "verify", "--all", "--store", self.cluster.url()], capture_output=True, text=True, cwd=self.dir)
        if verify.returncode:
            faults.append("log verify: " + (verify.stdout + verify.stderr)[-300:])
        told = self.tell(records)
        return tell("engines_storm_I27_I28", faults, told, self.dir, self.args.keep, self.args.prove)

    def tell(self, records):
        took = sorted(t for _how, times in self.failovers for t in times)
        fenced = sum(open(engine.log).read().count("joins again") for engine in self.engines)
        again = sum(e["eventType"] == "StepRedispatched" for events in records.events.values() for e in events)
        count = self.count
        return (f"{self.seconds:.0f} s, {len(self.engines)} engines: {count['kill']} kills, {count['stop']} stops, {count['restart']} restarts of Postgres, "
                f"{count['cut'] + count['withheld']} connections cut, {count['withheld']} of them after a commit whose answer was withheld and {count['late']} before one, {count['partition']} partitions; "
                f"{len(records.heads)} runs, {sum(map(len, records.events.values()))} events, {again} attempts begun again, {len(records.delivered) - len(set(records.delivered))} deliveries repeated, {fenced} fenced, {count['ended']} engines ended by themselves, {count['not begun']} began before the database did, "
                f"shard epochs up to {max([move[1] for move in records.shard_moves], default=0)}; runs went on elsewhere after {took[int(len(took) * 0.99)]:.1f} s (p99), {took[-1]:.1f} s (max); " + ", ".join(self.told))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cairn", type=os.path.abspath)
    parser.add_argument("--engines", type=int, default=3)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--stops", type=int, default=200)
    parser.add_argument("--restarts", type=int, default=200)
    parser.add_argument("--cuts", type=int, default=5000, help="connections cut, those with a withheld answer among them")
    parser.add_argument("--withheld", type=int, default=500, help="cut when a batch was committed and nobody had heard of it")
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=24, help="of fire")
    parser.add_argument("--rounds", type=int, default=20, help="after each, one engine is shot or stopped while it is calm")
    parser.add_argument("--lease", type=int, default=2, help="of an engine, in seconds")
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--rate", type=float, default=12, help="runs that are started each second")
    parser.add_argument("--slack", type=float, default=2.0, help="seconds beyond the lease until runs must go on")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--prove", action="store_true", help="plant bugs afterwards: the checker must report each")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--dir")
    args = parser.parse_args()
    storm = Storm(args)
    if not storm.cluster.bin:
        print("skip engines_storm: Postgres is not installed")
        sys.exit(0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        status = storm.run()
    except BaseException:
        storm.end_all()
        raise
    sys.stdout.flush()
    os._exit(status)  # threads of the proxies may still wait for somebody


if __name__ == "__main__":
    main()
