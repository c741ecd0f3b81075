"""What the storms of hosts have in common (test/temporal/storm.py, test/conductor/storm.py): processes that are killed and started again while
runs of a chain of steps go on, and what must hold in the end. Standard library only.

Checked from the logs and from what the steps left behind, not by the engine: every run COMPLETED and its log verifies; every step has one StepCompleted; no
attempt (step, logical, engine) that a log does not name has run; none has run twice."""
import argparse, atexit, collections, json, os, random, shutil, signal, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENDS = ("COMPLETED", "FAILED", "CANCELLED")
START_S, END_S = 60, 600


class Part:
    """A process that is killed and started again."""
    def __init__(self, name, start): self.name, self.begin, self.process, self.pid, self.kills = name, start, None, 0, 0
    def start(self): self.begin(self)
    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        if self.process: self.process.wait()
        else:
            while os.path.exists(f"/proc/{self.pid}") and open(f"/proc/{self.pid}/stat").read().split()[2] != "Z": time.sleep(0.01)
        self.kills += 1


class Storm:
    def __init__(self, name, kills, runs, steps):
        parser = argparse.ArgumentParser()
        parser.add_argument("cairn")
        for option, value in (("kills", kills), ("runs", runs), ("steps", steps), ("seed", int(time.time()))):
            parser.add_argument(f"--{option}", type=int, default=value)
        self.args = parser.parse_args()
        self.rng, self.cairn = random.Random(self.args.seed), os.path.abspath(self.args.cairn)
        self.home = tempfile.mkdtemp(prefix=f"cairn-{name}-storm.")
        self.parts, self.began, self.kills, self.begun = [], time.time(), 0, 0
        atexit.register(self.end_all)
        print(f"seed {self.args.seed}, in {self.home}", flush=True)

    # ---- processes
    def part(self, name, start): self.parts.append(Part(name, start))

    def outside(self, part, tool, *flags):
        """A server that is not ours, of a tool that starts it in a directory. Gives its port."""
        said = subprocess.run([f"{ROOT}/tools/{tool}", "start", f"{self.home}/{part.name}", *flags], capture_output=True, text=True, check=True).stdout.split()
        part.pid = int(said[0])
        return said[1]

    def spawn(self, part, *words, **env):
        log = open(f"{self.home}/{part.name}.log", "a")
        part.process = subprocess.Popen([self.cairn, *words], stdout=log, stderr=log, cwd=self.home, env=dict(os.environ, HOME=self.home, CAIRN_CONFINE="none", **env))
        part.pid = part.process.pid

    def serve(self, part, *words):
        """cairn serve at a socket. It does not start while what it needs is away, so it is started again."""
        until = time.time() + START_S
        while True:
            if os.path.exists(f"{self.home}/s.sock"): os.unlink(f"{self.home}/s.sock")
            self.spawn(part, "serve", "--listen", f"unix:{self.home}/s.sock", "--store", f"sqlite:{self.home}/s.db", "--token-file", f"{self.home}/token", "--drain", "0", *words)
            while part.process.poll() is None and not (os.path.exists(f"{self.home}/s.sock") and os.path.exists(f"{self.home}/token")): time.sleep(0.05)
            if part.process.poll() is None: return
            if time.time() > until: sys.exit(f"{part.name} does not start: " + open(f"{self.home}/{part.name}.log").read()[-500:])
            time.sleep(0.5)

    def end_all(self):
        for part in self.parts[::-1]:
            if part.process and part.process.poll() is None: part.process.kill(), part.process.wait()
            elif part.pid and not part.process and os.path.exists(f"/proc/{part.pid}"): os.kill(part.pid, signal.SIGKILL)

    def tell(self, *words):
        return subprocess.run([self.cairn, *words, "--server", f"unix:{self.home}/s.sock", "--token-file", f"{self.home}/token"], capture_output=True, text=True, cwd=self.home)

    # ---- runs
    def plan(self, gives=lambda i: "echo ok"):
        """A chain. Each step leaves a line of which attempt of which run it was."""
        steps = [{"stepId": f"s{i}", "kind": "shell", "dependsOn": [f"s{i - 1}"] if i else [],
                  "with": {"command": f'echo "$CAIRN_RUN_ID $CAIRN_STEP_ID $CAIRN_ATTEMPT $CAIRN_ENGINE_ATTEMPT" >> {self.home}/ran; ' + gives(i)}} for i in range(self.args.steps)]
        json.dump({"planId": "storm", "planVersion": "1", "schemaVersion": "v1.2", "steps": steps}, open(f"{self.home}/plan.json", "w"))
        open(f"{self.home}/ran", "w").close()

    def begin(self):
        for _ in range(200):
            said = self.tell("run", f"{self.home}/plan.json", "--run-id", f"r{self.begun}", "--detach")
            if said.returncode == 0 or "exists" in said.stderr.lower():
                self.begun += 1
                return
            time.sleep(0.3)
        sys.exit(f"r{self.begun} cannot be started: {said.stderr}")

    def statuses(self):
        out = subprocess.run([self.cairn, "ls", "--all", "--limit", "100000", "--store", f"sqlite:{self.home}/s.db", "-o", "jsonl"], capture_output=True, text=True).stdout
        return collections.Counter(json.loads(line)["status"] for line in out.splitlines())

    def rage(self, choose, pause_s):
        """Runs begin evenly over the kills; `choose` says which part dies, after a pause of pause_s at most."""
        want = self.args
        while self.kills < want.kills or self.begun < want.runs:
            if self.begun < want.runs and (self.kills >= want.kills or self.begun * want.kills <= self.kills * want.runs):
                self.begin()
                continue
            time.sleep(self.rng.uniform(0.1, pause_s))
            part = choose()
            part.kill()
            time.sleep(self.rng.uniform(0, 0.3))
            part.start()
            self.kills += 1
            if self.kills % 20 == 0: print(f"{self.kills} kills, {self.begun} runs begun, {time.time() - self.began:.0f} s", flush=True)

    # ---- the end
    def calm(self):
        """Until every run has ended. What was not able to start is started again. Gives the faults."""
        until = time.time() + END_S
        while time.time() < until and sum(self.statuses()[word] for word in ENDS) < self.args.runs:
            for part in self.parts:
                if part.process and part.process.poll() is not None: part.start()
            time.sleep(1)
        found = self.statuses()
        return [] if found == {"COMPLETED": self.args.runs} else [f"not all have completed: {dict(found)}"]

    def ask(self, *words): return subprocess.run([self.cairn, *words, "--store", f"sqlite:{self.home}/s.db"], capture_output=True, text=True)

    def events(self, run): return [json.loads(line) for line in self.ask("events", run, "-o", "jsonl").stdout.splitlines()]

    def finish(self, faults):
        self.end_all()
        ran = collections.Counter(open(f"{self.home}/ran").read().splitlines())
        faults += [f"ran {times} times: {line}" for line, times in ran.items() if times > 1]
        left = collections.defaultdict(set)
        for line in ran:
            run, step, logical, engine = line.split()
            left[run].add((step, int(logical), int(engine)))
        for n in range(self.args.runs):
            events = self.events(f"r{n}")
            done = collections.Counter(e["stepId"] for e in events if e["eventType"] == "StepCompleted")
            if len(done) != self.args.steps or any(c != 1 for c in done.values()): faults.append(f"r{n}: completed steps {dict(done)}")
            named = {(e["stepId"], e["logicalAttemptId"], e["engineAttemptId"]) for e in events if e["eventType"] in ("StepStarted", "StepRedispatched")}
            faults += [f"no log names what ran: r{n} {attempt}" for attempt in sorted(left[f"r{n}"] - named)]
            faults += [f"r{n}: {e['stepId']} failed: {e['payload'].get('errorCode')}" for e in events if e["eventType"] == "StepFailed"]
        verify = self.ask("log", "verify", "--all")
        if verify.returncode: faults.append("log verify: " + verify.stdout[-300:] + verify.stderr[-300:])
        again = sum(1 for line in ran if not line.endswith(" 1"))
        print(f"{self.args.runs} runs of {self.args.steps} steps, {self.kills} kills ({', '.join(f'{p.name} {p.kills}' for p in self.parts)}), "
              f"{again} attempts run again, {time.time() - self.began:.0f} s")
        for fault in faults[:20]: print("FAULT:", fault)
        if not faults: shutil.rmtree(self.home, ignore_errors=True)
        sys.exit(bool(faults))
