"""What the benchmarks of hosts have in common (temporal.py, conductor.py): a service of Cairn whose steps are a function of a plugin and are carried
by a server of others, and the lines that are printed of it and of a worker that was made for that server."""
import concurrent.futures, http.client, json, os, subprocess, sys, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from service import Server, cpu

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
IDLE_S = 5  # a connection that was not used for so long may be closed by now
# As the peers have it. A server that is asked too much loses tasks on their way to a worker, and only this time limit tells.
AGAIN = {"timeout": "10s", "retry": {"maxAttempts": 20, "delay": "100ms"}}


def outside(tool, directory):
    """A server of others in that directory: its pid and its port. None: tools/TOOL has not got it."""
    if subprocess.run([f"{ROOT}/tools/{tool}", "path"], capture_output=True).returncode:
        print(f"tools/{tool} has no server: nothing is measured", file=sys.stderr)
        return None
    return [int(word) for word in subprocess.run([f"{ROOT}/tools/{tool}", "start", directory], capture_output=True, text=True, check=True).stdout.split()]


def plan(count, chained):
    return json.dumps({"planId": "bench", "planVersion": "1", "schemaVersion": "v1.2", "steps": [
        {"stepId": f"s{i}", "kind": "greet", "with": {"n": i}, "dependsOn": [f"s{i - 1}"] if chained and i else [], **AGAIN} for i in range(count)]})


class Cairn:
    """serve_words: for `cairn serve`; worker_words(server): the process that executes, and what it has in its environment."""
    def __init__(self, cairn, home, serve_words, worker_words):
        self.plugin = f"{home}/greet.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", f"-I{ROOT}/include", "-o", self.plugin, f"{ROOT}/examples/plugin/greet.c", "-lpthread"], check=True)
        self.server = Server(cairn, f"{home}/cairn", *serve_words, "--drain", "0")
        self.documents, self.ends, self.local = {}, {}, threading.local()
        words, env = worker_words(self)
        self.worker = subprocess.Popen([cairn, *words, "--concurrency", "500", "--plugin", self.plugin],
                                       stdout=subprocess.DEVNULL, stderr=open(f"{home}/worker.log", "w"), cwd=f"{home}/cairn", env=dict(os.environ, CAIRN_CONFINE="none", **env))

    def ask(self, method, path, body=None):
        if time.monotonic() - getattr(self.local, "used", 0) > IDLE_S: self.local.line = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=120)
        self.local.line.request(method, path, body, {"Authorization": "Bearer " + self.server.token, "Content-Type": "application/json"})
        answer = self.local.line.getresponse()
        text, self.local.used = answer.read(), time.monotonic()
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
        after = self.ends[key] - 1
        while True: # one call that waits for the last event: asking again and again would be work of the server's
            for event in self.ask("GET", f"/v1/runs/{run}/events?limit=1&wait=30&after={after}")["items"]:
                if event["eventType"] == "RunCompleted": return 1000 * (time.monotonic() - began)
                if event["eventType"] in ("RunFailed", "RunCancelled"): sys.exit(f"{run}: {event['eventType']}")
                after = event["runSeq"]  # a step of it was tried again

    def cpu(self): return cpu(self.server.process.pid) + cpu(self.worker.pid)

    def do(self, what, n, conc):
        began = time.monotonic()
        if what == "w3": took = [self.run(n, False)]
        else:
            with concurrent.futures.ThreadPoolExecutor(conc) as pool: took = list(pool.map(lambda _: self.run(10, True), range(n)))
        return time.monotonic() - began, sorted(took)[len(took) // 2]

    def stop(self):
        self.worker.kill(), self.worker.wait(), self.server.stop()


def measure(bench, sides, work, server_pid):
    """work: (what, how many, how many at once), the first of which warms up. Each side does the same, one after the other; a JSON object per line."""
    for index, (what, n, conc) in enumerate(work):
        for name, side in sides:
            steps, before, server = n if what == "w3" else 10 * n, side.cpu(), cpu(server_pid)
            wall, p50 = side.do(what, n, conc)
            if index == 0: continue
            print(json.dumps({"bench": bench, "on": name, "w": what, "conc": conc, "steps": steps, "steps_per_s": round(steps / wall, 1), "p50_ms": round(p50),
                              "cpu_ms_per_step": round(1000 * (side.cpu() - before) / steps, 3), "server_cpu_ms_per_step": round(1000 * (cpu(server_pid) - server) / steps, 2),
                              "load": round(os.getloadavg()[0], 1)}), flush=True)
