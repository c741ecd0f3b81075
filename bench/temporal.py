#!/usr/bin/env python3
"""Runs on a Temporal server, beside a worker of Temporal's Go SDK on the same server: bench/temporal.py CAIRN [--n1 N] [--n2 N] [--n3 N]

w1: workflows of ten steps, one after the other. w2: the same, 64 and 256 at once. w3: one with n3 steps side by side. A JSON object per line: `cairn` is
cairn serve and cairn worker, whose steps are a function of a plugin; `go` is $TEMPORAL_PEER, a program that says '@{"ev":"ready"}' as `worker ADDRESS` and as
`client ADDRESS`, and as a client answers {"cmd":"w1"|"w2"|"w3","n":..,"conc":..}. Without it there are Cairn's lines alone. CPU is that of host and workers,
in ms a step; the server's stands beside it. Nothing is printed where Temporal's server was not built (tools/temporal-server)."""
import argparse, json, os, shutil, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hosted import Cairn, cpu, measure, outside

parser = argparse.ArgumentParser()
parser.add_argument("cairn")
parser.add_argument("--n1", type=int, default=30)
parser.add_argument("--n2", type=int, default=300)
parser.add_argument("--n3", type=int, default=500)
args = parser.parse_args()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
home = tempfile.mkdtemp(prefix="cairn-bench-temporal.")
found = outside("temporal-server", f"{home}/temporal") or sys.exit(0)
pid, address = found[0], f"127.0.0.1:{found[1]}"


class Go:
    def __init__(self, program): self.worker, self.client = [self.begin(program, role) for role in ("worker", "client")]

    def begin(self, program, role):
        process = subprocess.Popen([program, role, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=home)
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


peer, sides = os.environ.get("TEMPORAL_PEER"), []
try:
    sides.append(("cairn", Cairn(os.path.abspath(args.cairn), home, ["--temporal", address], lambda _: (["worker", "--temporal", address], {}))))
    if peer: sides.append(("go", Go(peer)))
    measure("temporal", sides, (("w2", 10, 4), ("w1", args.n1, 1), ("w2", args.n2, 64), ("w2", args.n2, 256), ("w3", args.n3, 1)), pid)
finally:
    for _, side in sides: side.stop()
    os.kill(pid, signal.SIGKILL)
    shutil.rmtree(home, ignore_errors=True)
