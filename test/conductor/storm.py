#!/usr/bin/env python3
"""Hosts, the server of Cairn and the Conductor server are killed at random while runs go on; then everything must have ended, each step once.

storm.py CAIRN [--kills N] [--runs N] [--steps N] [--seed N]

Checked from the logs and from what the steps left behind, not by the engine: every run COMPLETED and its log verifies; every step has one StepCompleted; no
attempt (step, logical, engine) that a log does not name has run; none has run twice. Conductor has no workflow of these runs open in the end."""
import argparse, atexit, collections, json, os, random, shutil, signal, subprocess, sys, tempfile, time, urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
parser = argparse.ArgumentParser()
parser.add_argument("cairn")
parser.add_argument("--kills", type=int, default=100)
parser.add_argument("--runs", type=int, default=60)
parser.add_argument("--steps", type=int, default=10)
parser.add_argument("--seed", type=int, default=int(time.time()))
args = parser.parse_args()
rng = random.Random(args.seed)
home = tempfile.mkdtemp(prefix="cairn-conductor-storm.")
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


def conductor(part):
    said = subprocess.run([f"{ROOT}/tools/conductor-server", "start", f"{home}/conductor"], capture_output=True, text=True, check=True).stdout.split()
    part.pid = int(said[0])
    global api
    api = f"http://127.0.0.1:{said[1]}/api"


def spawn(part, words, **env):
    log = open(f"{home}/{part.name}.log", "a")
    part.process = subprocess.Popen([cairn] + words, stdout=log, stderr=log, cwd=home, env=dict(os.environ, HOME=home, CAIRN_CONFINE="none", **env))
    part.pid = part.process.pid


def serve(part):
    if os.path.exists(f"{home}/s.sock"): os.unlink(f"{home}/s.sock")
    spawn(part, ["serve", "--listen", f"unix:{home}/s.sock", "--store", f"sqlite:{home}/s.db", "--route", "*=conductor", "--lease", "3s",
                 "--token-file", f"{home}/token", "--drain", "0"])
    while not (os.path.exists(f"{home}/s.sock") and os.path.exists(f"{home}/token")):
        if part.process.poll() is not None: sys.exit("cairn serve does not start: " + open(f"{home}/{part.name}.log").read()[-500:])
        time.sleep(0.05)


def host(part): spawn(part, ["host", "conductor", "--server", f"unix:{home}/s.sock", "--conductor", api, "--pool", "conductor", "--site", "storm",
                             "--patience", "3s", "--silent", "4s", "--concurrency", "8", "--name", part.name], CAIRN_TOKEN=token)


def tell(*words): return subprocess.run([cairn, *words, "--server", f"unix:{home}/s.sock", "--token-file", f"{home}/token"], capture_output=True, text=True, cwd=home)


parts = [Part("conductor", conductor), Part("serve", serve), Part("h1", host), Part("h2", host)]
def end_all():
    for part in parts[::-1]:
        if part.process and part.process.poll() is None: part.process.kill(), part.process.wait()
    if parts[0].pid and os.path.exists(f"/proc/{parts[0].pid}"): os.kill(parts[0].pid, signal.SIGKILL)


atexit.register(end_all)
for part in parts[:2]: part.start()
for _ in range(100):
    made = tell("token", "new", "host", "--role", "Host", "--pool", "conductor")
    if made.returncode == 0: break
    time.sleep(0.1)
token = made.stdout.split()[-1] if made.returncode == 0 else sys.exit("no token: " + made.stderr)
for part in parts[2:]: part.start()
steps = [{"stepId": f"s{i}", "kind": "shell", "dependsOn": [f"s{i - 1}"] if i else [],
          "with": {"command": f'echo "$CAIRN_RUN_ID $CAIRN_STEP_ID $CAIRN_ATTEMPT $CAIRN_ENGINE_ATTEMPT" >> {home}/ran; echo ok'}} for i in range(args.steps)]
json.dump({"planId": "storm", "planVersion": "1", "schemaVersion": "v1.2", "steps": steps}, open(f"{home}/plan.json", "w"))


def begin(n):
    for _ in range(200):
        said = tell("run", f"{home}/plan.json", "--run-id", f"r{n}", "--detach")
        if said.returncode == 0 or "exists" in said.stderr.lower(): return
        time.sleep(0.3)
    sys.exit(f"r{n} cannot be started: {said.stderr}")


def progress():
    """Steps go on between two deaths: an attempt that is lost twenty times fails its step (WORKER_LOST), which is no fault of this kind."""
    before, until = os.path.getsize(f"{home}/ran"), time.time() + 60
    while begun and os.path.getsize(f"{home}/ran") == before and time.time() < until and statuses().get("RUNNING", 0): time.sleep(0.2)


def statuses():
    out = subprocess.run([cairn, "ls", "--all", "--limit", "100000", "--store", f"sqlite:{home}/s.db", "-o", "jsonl"], capture_output=True, text=True).stdout
    return collections.Counter(json.loads(line)["status"] for line in out.splitlines())


kills, begun, began = 0, 0, time.time()
open(f"{home}/ran", "w").close()
while kills < args.kills or begun < args.runs:
    if begun < args.runs and (kills >= args.kills or begun * args.kills <= kills * args.runs):
        begin(begun)
        begun += 1
        continue
    time.sleep(rng.uniform(0.1, 1.5))
    # Starting a Conductor takes most of a minute, so it is killed now and then; what else dies is drawn.
    part = parts[0] if kills % 25 == 12 else rng.choice(parts[1:])
    part.kill()
    time.sleep(rng.uniform(0, 0.3))
    part.start()
    kills += 1
    progress()
    if kills % 10 == 0: print(f"{kills} kills, {begun} runs begun, {time.time() - began:.0f} s", flush=True)


def still_open():
    """Workflows of these runs that have not ended in Conductor."""
    return sum(len(json.load(urllib.request.urlopen(f"{api}/workflow/running/{name}?version=1"))) for name in ("cairn_run", "cairn_attempt"))


deadline = time.time() + 600
while time.time() < deadline and sum(statuses().get(word, 0) for word in ("COMPLETED", "FAILED", "CANCELLED")) < args.runs: time.sleep(1)
faults = []
if statuses() != {"COMPLETED": args.runs}: faults.append(f"not all have completed: {dict(statuses())}")
deadline = time.time() + 120
while time.time() < deadline and still_open(): time.sleep(1)
if still_open(): faults.append(f"{still_open()} workflows are open in Conductor")
end_all()
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
again = sum(1 for line in ran if not line.endswith(" 1"))
print(f"{args.runs} runs of {args.steps} steps, {kills} kills ({', '.join(f'{p.name} {p.kills}' for p in parts)}), {again} attempts run again, {time.time() - began:.0f} s")
for fault in faults[:20]: print("FAULT:", fault)
if not faults: shutil.rmtree(home, ignore_errors=True)
sys.exit(bool(faults))
