#!/usr/bin/env python3
"""Attempts carried by a Conductor server, beside a plain worker of Conductor on the same server: bench/conductor.py CAIRN [--n1 N] [--n2 N] [--n3 N]

w1: runs of ten steps, one after the other. w2: the same, --conc at once. w3: one with n3 steps side by side. A JSON object per line: `cairn` is cairn serve and
cairn host conductor, whose steps are a function of a plugin; `cairn-mirror` the same with --delivery mirror; `plain` is $CONDUCTOR_PEER, a command that takes
PORT register, PORT w1 N, PORT w2 N CONC and PORT w3 N, is client and worker at once, and ends with a JSON object that has wall_ms and p50_ms. Without it there are
Cairn's lines alone. CPU is that of service and host (of the peer: of its process from its start, with what its runtime costs), in ms a step; the server's stands
beside it. Nothing is printed where Conductor's server was not fetched (tools/conductor-server)."""
import argparse, json, os, resource, shlex, shutil, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hosted import Cairn, measure, outside

parser = argparse.ArgumentParser()
parser.add_argument("cairn")
parser.add_argument("--n1", type=int, default=20)
parser.add_argument("--n2", type=int, default=200)
parser.add_argument("--n3", type=int, default=200)
parser.add_argument("--conc", type=int, default=64)
args = parser.parse_args()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
home = tempfile.mkdtemp(prefix="cairn-bench-conductor.")
pid, port = outside("conductor-server", f"{home}/conductor") or sys.exit(0)


def host(more):
    def words(side):
        token = side.ask("POST", "/v1/tokens", json.dumps({"name": "host", "roles": ["Host"], "pool": "conductor"}))["token"]
        return ["host", "conductor", "--server", f"http://127.0.0.1:{side.server.port}", "--conductor", f"http://127.0.0.1:{port}/api", "--pool", "conductor",
                "--site", f"bench{side.server.port}", *more], {"CAIRN_TOKEN": token}
    return words


class Plain:
    def __init__(self, command):
        self.command, self.used = shlex.split(command), 0.0
        self.tell("register")

    def tell(self, *words):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        said = subprocess.run([*self.command, str(port), *map(str, words)], stdout=subprocess.PIPE, text=True, cwd=home, check=True).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.used += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return said

    def cpu(self): return self.used

    def do(self, what, n, conc):
        answer = json.loads(self.tell(*([what, n, conc] if what == "w2" else [what, n])).splitlines()[-1])
        return answer["wall_ms"] / 1000, answer.get("p50_ms", answer["wall_ms"])

    def stop(self): pass


peer, sides = os.environ.get("CONDUCTOR_PEER"), []
try:
    for name, more in (("cairn", []), ("cairn-mirror", ["--delivery", "mirror"])):
        os.mkdir(f"{home}/{name}")
        sides.append((name, Cairn(os.path.abspath(args.cairn), f"{home}/{name}", ["--route", "*=conductor"], host(more))))
    if peer: sides.append(("plain", Plain(peer)))
    measure("conductor", sides, (("w2", 10, 4), ("w1", args.n1, 1), ("w2", args.n2, args.conc), ("w3", args.n3, 1)), pid)
finally:
    for _, side in sides: side.stop()
    os.kill(pid, signal.SIGKILL)
    shutil.rmtree(home, ignore_errors=True)
