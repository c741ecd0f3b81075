#!/usr/bin/env python3
"""Host, workers and the Temporal server are killed at random while runs go on; then everything must have ended, each step once.

storm.py CAIRN [--kills N] [--runs N] [--steps N] [--seed N]

Checked from the logs and from what the steps left behind, not by the engine: every run COMPLETED and its log verifies; every step has one StepCompleted; no
attempt (step, logical, engine) that a log does not name has run; none has run twice."""
import argparse, collections, json, os, random, shutil, signal, subprocess, sys, tempfile, time, urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
parser = argparse.ArgumentParser()
parser.add_argument("cairn")
parser.add_argument("--kills", type=int, default=300)
parser.add_argument("--runs", type=int, default=200)
parser.add_argument("--steps", type=int, default=20)
parser.add_argument("--seed", type=int, default=int(time.time()))
args = parser.parse_args()
rng = random.Random(args.seed)
home = tempfile.mkdtemp(prefix="cairn-temporal-storm.")
cairn = os.path.abspath(args.cairn)
print(f"seed {args.seed}, in {home}", flush=True)


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


def server(part):
    said = subprocess.run([f"{ROOT}/tools/temporal-server", "start", f"{home}/temporal"], capture_output=True, text=True, check=True).stdout.split()
    part.pid, port = int(said[0]), said[1]
    global address
    address = f"127.0.0.1:{port}"


def spawn(part, words):
    log = open(f"{home}/{part.name}.log", "a")
    part.process = subprocess.Popen([cairn] + words, stdout=log, stderr=log, cwd=home, env=dict(os.environ, HOME=home, CAIRN_CONFINE="none"))
    part.pid = part.process.pid


def host(part):
    for _ in range(60):
        if os.path.exists(f"{home}/s.sock"): os.unlink(f"{home}/s.sock")
        spawn(part, ["serve", "--listen", f"unix:{home}/s.sock", "--store", f"sqlite:{home}/s.db", "--temporal", address, "--token-file", f"{home}/token", "--drain", "0"])
        while part.process.poll() is None and not os.path.exists(f"{home}/s.sock"): time.sleep(0.05)
        if part.process.poll() is None: return
        time.sleep(0.5)  # the Temporal server is away just now
    sys.exit("the host does not start: " + open(f"{home}/{part.name}.log").read()[-500:])


def worker(part): spawn(part, ["worker", "--temporal", address, "--concurrency", "8", "--name", part.name])


def tell(*words): return subprocess.run([cairn, *words, "--server", f"unix:{home}/s.sock", "--token-file", f"{home}/token"], capture_output=True, text=True, cwd=home)


open(f"{home}/cairn.toml", "w").write('[serve.temporal]\naddress = "127.0.0.1:1"\nheartbeatSeconds = 3\nhistoryEvents = 60\n')
parts = [Part("server", server), Part("host", host), Part("w1", worker), Part("w2", worker)]
for part in parts: part.start()
steps = [{"stepId": f"s{i}", "kind": "shell", "dependsOn": [f"s{i - 1}"] if i else [],
          "with": {"command": f'echo "$CAIRN_RUN_ID $CAIRN_STEP_ID $CAIRN_ATTEMPT $CAIRN_ENGINE_ATTEMPT" >> {home}/ran; '
                              + ("head -c 40000 /dev/zero | tr '\\0' x" if i % 5 == 4 else "echo ok")}} for i in range(args.steps)]  # some go by digest
json.dump({"planId": "storm", "planVersion": "1", "schemaVersion": "v1.2", "steps": steps}, open(f"{home}/plan.json", "w"))


def begin(n):
    for _ in range(200):
        said = tell("run", f"{home}/plan.json", "--run-id", f"r{n}", "--detach")
        if said.returncode == 0 or "exists" in said.stderr.lower(): return
        time.sleep(0.3)
    sys.exit(f"r{n} cannot be started: {said.stderr}")


kills, begun, began = 0, 0, time.time()
while kills < args.kills or begun < args.runs:
    if begun < args.runs and (kills >= args.kills or begun * args.kills <= kills * args.runs):
        begin(begun)
        begun += 1
        continue
    time.sleep(rng.uniform(0.1, 1.0))
    part = rng.choices(parts, [1, 3, 2, 2])[0]
    part.kill()
    time.sleep(rng.uniform(0, 0.3))
    part.start()
    kills += 1
    if kills % 20 == 0: print(f"{kills} kills, {begun} runs begun, {time.time() - began:.0f} s", flush=True)


def statuses():
    out = subprocess.run([cairn, "ls", "--all", "--limit", "100000", "--store", f"sqlite:{home}/s.db", "-o", "jsonl"], capture_output=True, text=True).stdout
    return collections.Counter(json.loads(line)["status"] for line in out.splitlines())


deadline = time.time() + 600
while time.time() < deadline and statuses().get("COMPLETED", 0) < args.runs:
    for part in parts[1:]:
        if part.process.poll() is not None: part.start()  # a host whose Temporal server was away when it started
    time.sleep(1)
faults = []
if statuses() != {"COMPLETED": args.runs}: faults.append(f"not all have completed: {dict(statuses())}")
for part in parts[::-1]:
    if part.process: part.process.kill(), part.process.wait()
ran = collections.Counter(open(f"{home}/ran").read().splitlines())
for line, times in ran.items():
    if times > 1: faults.append(f"ran {times} times: {line}")
for n in range(args.runs):
    out = subprocess.run([cairn, "events", f"r{n}", "--store", f"sqlite:{home}/s.db", "-o", "jsonl"], capture_output=True, text=True).stdout
    events = [json.loads(line) for line in out.splitlines()]
    done = collections.Counter(e["stepId"] for e in events if e["eventType"] == "StepCompleted")
    if len(done) != args.steps or any(c != 1 for c in done.values()): faults.append(f"r{n}: completed steps {dict(done)}")
    named = {(e["stepId"], e["logicalAttemptId"], e["engineAttemptId"]) for e in events if e["eventType"] in ("StepStarted", "StepRedispatched")}
    for line in ran:
        run, step, logical, engine = line.split()
        if run == f"r{n}" and (step, int(logical), int(engine)) not in named: faults.append(f"no log names what ran: {line}")
verify = subprocess.run([cairn, "log", "verify", "--all", "--store", f"sqlite:{home}/s.db"], capture_output=True, text=True)
if verify.returncode: faults.append("log verify: " + verify.stdout[-300:] + verify.stderr[-300:])
os.kill(parts[0].pid, signal.SIGKILL)
again = sum(1 for line in ran if not line.endswith(" 1"))
print(f"{args.runs} runs of {args.steps} steps, {kills} kills ({', '.join(f'{p.name} {p.kills}' for p in parts)}), {again} attempts run again, {time.time() - began:.0f} s")
for fault in faults[:20]: print("FAULT:", fault)
if not faults: shutil.rmtree(home, ignore_errors=True)
sys.exit(bool(faults))
