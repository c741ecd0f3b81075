#!/usr/bin/env python3
"""Runs on a Temporal server, beside a worker of Temporal's Go SDK on the same server: bench/temporal.py CAIRN [--n1 N] [--n2 N] [--n3 N]

w1: workflows of ten steps, one after the other. w2: the same, 64 and 256 at once. w3: one with n3 steps side by side. A JSON object per line: `cairn` is
cairn serve and cairn worker, whose steps are a function of a plugin; `go` is $TEMPORAL_PEER, a program that says '@{"ev":"ready"}' as `worker ADDRESS` and as
`client ADDRESS`, and as a client answers {"cmd":"w1"|"w2"|"w3","n":..,"conc":..}. Without it there are Cairn's lines alone. CPU is that of host and workers,
in ms a step; the server's stands beside it. Nothing is printed where Temporal's server was not built (tools/temporal-server)."""
import argparse, concurrent.futures, http.client, json, os, shutil, signal, subprocess, sys, tempfile, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import Server, cpu

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
parser = argparse.ArgumentParser()
parser.add_argument("cairn")
parser.add_argument("--n1", type=int, default=30)
parser.add_argument("--n2", type=int, default=300)
parser.add_argument("--n3", type=int, default=500)
args = parser.parse_args()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
tool = f"{ROOT}/tools/temporal-server"
if subprocess.run([tool, "path"], capture_output=True).returncode:
    print("bench/temporal.py: Temporal's server was not built: nothing is measured", file=sys.stderr)
    sys.exit(0)
home = tempfile.mkdtemp(prefix="cairn-bench-temporal.")
cairn, local = os.path.abspath(args.cairn), threading.local()
subprocess.run(["cc", "-shared", "-fPIC", "-O2", f"-I{ROOT}/include", "-o", f"{home}/greet.so", f"{ROOT}/examples/plugin/greet.c", "-lpthread"], check=True)
pid, port = (int(word) for word in subprocess.run([tool, "start", f"{home}/temporal"], capture_output=True, text=True, check=True).stdout.split())


def plan(count, chained):
    return json.dumps({"planId": "bench", "planVersion": "1", "schemaVersion": "v1.2", "steps": [
        {"stepId": f"s{i}", "kind": "greet", "with": {"n": i}, "dependsOn": [f"s{i - 1}"] if chained and i else []} for i in range(count)]})


class Cairn:
    def __init__(self):
        self.server = Server(cairn, f"{home}/cairn", "--temporal", f"127.0.0.1:{port}", "--drain", "0")
        self.worker = subprocess.Popen([cairn, "worker", "--temporal", f"127.0.0.1:{port}", "--concurrency", "500", "--plugin", f"{home}/greet.so"],
                                       stdout=subprocess.DEVNULL, stderr=open(f"{home}/worker.log", "w"), cwd=f"{home}/cairn", env=dict(os.environ, CAIRN_CONFINE="none"))
        self.documents, self.ends = {}, {}

    def ask(self, method, path, body=None):
        if not hasattr(local, "line"): local.line = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        local.line.request(method, path, body, {"Authorization": "Bearer " + self.server.token, "Content-Type": "application/json"})
        answer = local.line.getresponse()
        text = answer.read()
        if answer.status >= 300: sys.exit(f"{method} {path}: {answer.status} {text[:300]}")
        return json.loads(text)

    def run(self, count, chained):
        key = (count, chained)
        if key not in self.documents: self.documents[key] = plan(count, chained)
        began = time.monotonic()
        run = self.ask("POST", "/v1/runs", json.dumps({"document": self.documents[key]}))["runId"]
        while key not in self.ends: # of the first one: how many events such a run has
            status = self.ask("GET", f"/v1/runs/{run}/status")
            if status["status"] == "COMPLETED": self.ends[key] = status["lastEventSeq"]
            time.sleep(0.02)
        while True: # one call that waits for the last event: asking again and again would be work of the server's
            for event in self.ask("GET", f"/v1/runs/{run}/events?limit=1&wait=30&after={self.ends[key] - 1}")["items"]:
                if event["eventType"] != "RunCompleted": sys.exit(f"{run}: {event['eventType']}")
                return 1000 * (time.monotonic() - began)

    def cpu(self): return cpu(self.server.process.pid) + cpu(self.worker.pid)

    def do(self, what, n, conc):
        began = time.monotonic()
        if what == "w3": took = [self.run(n, False)]
        else:
            with concurrent.futures.ThreadPoolExecutor(conc) as pool: took = list(pool.map(lambda _: self.run(10, True), range(n)))
        return time.monotonic() - began, sorted(took)[len(took) // 2]

    def stop(self):
        self.worker.kill(), self.worker.wait(), self.server.stop()


class Go:
    def __init__(self, program): self.worker, self.client = [self.begin(program, role) for role in ("worker", "client")]

    def begin(self, program, role):
        process = subprocess.Popen([program, role, f"127.0.0.1:{port}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=home)
        while not process.stdout.readline().startswith("@"): pass
        return process

    def cpu(self): return cpu(self.worker.pid)

    def do(self, what, n, conc):
        began = time.monotonic()
        self.client.stdin.write(json.dumps({"cmd": what, "n": n, "conc": conc, "budget_ms": 600000}) + "\n")
        self.client.stdin.flush()
        answer = json.loads(self.client.stdout.readline()[1:])
        if answer.get("error"): sys.exit(f"{what} of the peer: {answer['error']}")
        return time.monotonic() - began, answer.get("wf_p50", answer.get("wall_ms"))

    def stop(self):
        for process in (self.client, self.worker): process.kill(), process.wait()


peer = os.environ.get("TEMPORAL_PEER")
sides = [("cairn", Cairn())] + ([("go", Go(peer))] if peer else [])
try:
    for what, n, conc in (("w2", 10, 4), ("w1", args.n1, 1), ("w2", args.n2, 64), ("w2", args.n2, 256), ("w3", args.n3, 1)):
        for name, side in sides:
            steps, before, server = n if what == "w3" else 10 * n, side.cpu(), cpu(pid)
            wall, p50 = side.do(what, n, conc)
            if n == 10: continue  # it warms up
            print(json.dumps({"bench": "temporal", "on": name, "w": what, "conc": conc, "steps": steps, "steps_per_s": round(steps / wall, 1), "p50_ms": round(p50),
                              "cpu_ms_per_step": round(1000 * (side.cpu() - before) / steps, 3), "server_cpu_ms_per_step": round(1000 * (cpu(pid) - server) / steps, 2),
                              "load": os.getloadavg()[0]}), flush=True)
finally:
    for _, side in sides: side.stop()
    os.kill(pid, signal.SIGKILL)
    shutil.rmtree(home, ignore_errors=True)
