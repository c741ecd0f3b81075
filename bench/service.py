#!/usr/bin/env python3
"""The service under load, on this machine: bench/service.py CAIRN [--seconds N] [--stored N] [--clients N] [--only a,b]

Prints a JSON object per line, as `cairn bench` does. Needs wrk. Each figure stands beside the floor of the same run: what the
same server answers to /livez, where nothing is read, decided or stored.
"""
import argparse, json, os, re, select, shutil, signal, socket, subprocess, sys, tempfile, threading, time
from datetime import datetime, timezone

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "test", "crash"))
from sinks import Nats, Receiver

NOOP = {"metadata": {"planId": "bench", "planVersion": "1", "schemaVersion": "v1.2"}, "steps": [{"stepId": "a", "kind": "noop"}]}


def cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Server:
    def __init__(self, cairn, store, *flags, more=""):
        self.dir = store
        os.makedirs(store, exist_ok=True)
        with open(os.path.join(store, "cairn.toml"), "w") as out:  # one address is all that there is here
            out.write("[serve.http]\nconnectionsPerAddress = 4000\nstreamsPerToken = 4000\n" + more)
        self.log = open(os.path.join(store, "serve.err"), "w+")
        began = time.monotonic()
        self.process = subprocess.Popen([cairn, "serve", "--store", f"sqlite:{store}/bench.db", "--listen", "127.0.0.1:0", *flags], stderr=self.log, stdout=subprocess.DEVNULL, cwd=store)
        until = time.monotonic() + 60
        while True:
            text = open(self.log.name).read()
            if "listening on" in text and os.path.exists(f"{store}/bench.db.token"):
                break
            if time.monotonic() > until or self.process.poll() is not None:
                sys.exit("the server does not start: " + text)
            time.sleep(0.02)
        self.url = re.search(r"listening on (\S+)", text).group(1)
        self.port = int(self.url.rsplit(":", 1)[1])
        self.token = open(f"{store}/bench.db.token").read().strip()
        self.start_ms = round(1000 * (time.monotonic() - began))

    def rss_mib(self):
        for line in open(f"/proc/{self.process.pid}/status"):
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024

    def cpu(self):
        return cpu(self.process.pid)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()


def wrk(server, path, seconds, connections, body=None, headers=()):
    script = os.path.join(server.dir, "wrk.lua")
    with open(script, "w") as out:
        out.write(f'wrk.headers["Authorization"] = "Bearer {server.token}"\n')
        if body is not None:
            out.write('wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = [==[' + json.dumps(body) + "]==]\n")
        for name, value in headers:
            out.write(f'wrk.headers["{name}"] = "{value}"\n')
        out.write("function done(summary, latency, requests)\n"
                  '  io.write(string.format("RESULT %d %d %d %d %d %d\\n", summary.requests, summary.duration, summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout,'
                  " latency:percentile(50), latency:percentile(99), latency.max))\nend\n")
    before = server.cpu()
    text = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "-s", script, server.url + path], capture_output=True, text=True).stdout
    count, micros, errors, p50, p99, worst = (int(x) for x in re.search(r"RESULT (.*)", text).group(1).split())
    return {"perSecond": round(count / (micros / 1e6)), "errors": errors, "p50Ms": p50 / 1000, "p99Ms": p99 / 1000, "cpuUs": round((server.cpu() - before) * 1e6 / max(count, 1), 1)}


def request(server, method, path, body=None, headers=()):
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    all_headers = {"Authorization": "Bearer " + server.token, "Content-Type": "application/json", **dict(headers)}
    connection.request(method, path, json.dumps(body) if body is not None else None, all_headers)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, json.loads(data) if data else None


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else None


def tell(name, **figures):
    print(json.dumps({"workload": name, **figures}), flush=True)


def bench_start(server, seconds):
    for connections in (64, 256):
        figures = wrk(server, "/v1/runs", seconds, connections, {"document": json.dumps(NOOP)}, [("Prefer", "wait=30")])
        tell("http-start", connections=connections, **figures, rssMiB=round(server.rss_mib(), 1))


def bench_status(server, seconds, floor):
    status, answer = request(server, "POST", "/v1/runs", {"document": json.dumps(NOOP)}, [("Prefer", "wait=30")])
    figures = wrk(server, f"/v1/runs/{answer['runId']}/status", seconds, 64)
    tell("http-status", **figures, ofFloor=round(figures["perSecond"] / floor, 2))


def open_stream(server, run, after):
    s = socket.create_connection(("127.0.0.1", server.port))
    s.sendall(f"GET /v1/runs/{run}/events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {server.token}\r\nAccept: text/event-stream\r\nLast-Event-ID: {after}\r\n\r\n".encode())
    s.setblocking(False)
    return s


def listen(streams, seconds):
    """What every stream got, and when; looked at afterwards, so that this process is quick."""
    poll, got, done = select.epoll(), [], 0
    by_fd = {s.fileno(): s for s in streams}
    for fd in by_fd:
        poll.register(fd, select.EPOLLIN)
    until = time.monotonic() + seconds
    while done < len(streams) and time.monotonic() < until:
        for fd, _ in poll.poll(1):
            data = by_fd[fd].recv(1 << 16)
            got.append((time.time(), data))
            if not data or b"event: end" in data:
                poll.unregister(fd)
                done += 1
    return got, done


def bench_streams(server, clients):
    """`clients` streams over 50 runs that begin to move once everybody listens, one after the other."""
    runs = [f"stream-{i}" for i in range(min(clients, 50))]
    for i, run in enumerate(runs):
        steps = [{"stepId": "begin", "kind": "wait", "with": {"duration": f"{4000 + 37 * i}ms"}}]
        steps += [{"stepId": f"s{k}", "kind": "wait", "with": {"duration": f"{300 + 11 * i}ms"}} for k in range(5)]
        plan = {"metadata": {"planId": "stream", "planVersion": "1", "schemaVersion": "v1.2"}, "steps": steps}
        request(server, "POST", "/v1/runs", {"document": json.dumps(plan), "runId": run})
    streams = [open_stream(server, runs[i % len(runs)], 3) for i in range(clients)]
    got, done = listen(streams, 60)
    latencies = []
    for at, data in got:
        for text in re.findall(rb'"persistedAt":"([^"]+)"', data):
            latencies.append(at - datetime.strptime(text.decode(), "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc).timestamp())
    for s in streams:
        s.close()
    tell("sse", clients=clients, finished=done, events=len(latencies), p50Ms=round(1000 * (percentile(latencies, 0.5) or 0), 1), p99Ms=round(1000 * (percentile(latencies, 0.99) or 0), 1), rssMiB=round(server.rss_mib(), 1))


LISTS = {
    "plain": "limit=50",
    "status": "limit=50&status=COMPLETED",
    "rare status": "limit=50&q=status%3DFAILED",
    "several states": "limit=50&q=status%3Dactive,FAILED",
    "plan": "limit=50&q=plan%3Dbench",
    "rare plan": "limit=50&q=plan%3Dbench-42",
    "plan and rare status": "limit=50&q=plan%3Dbench-failing%20status%3DFAILED",
    "no such plan": "limit=50&q=plan%3Dnone",
    "created within": "limit=50&q=created%3E1s",
    "prefix": "limit=50&q=run%3D1234*",
    "short prefix": "limit=50&q=run%3D1*",
    "of a plan, none failed": "limit=50&q=plan%3Dbench%20status%3DFAILED",
    "text": "limit=50&q=name~42",
    "text that is nowhere": "limit=50&q=name~nowhere",
    "tag that is nowhere": "limit=50&q=tag%3Dnowhere",
    "error": "limit=50&q=error%3DTOOL_NOT_FOUND",
    "page of 500": "limit=500",
}


def deep_cursor(server, depth):
    cursor, seen = None, 0
    while seen < depth:
        status, page = request(server, "GET", "/v1/runs?limit=500" + (f"&cursor={cursor}" if cursor else ""))
        seen += len(page["items"])
        cursor = page.get("nextCursor")
        if not cursor:
            break
    return cursor, seen


def bench_list(server, stored, seconds, cairn):
    """Lists of a store that `fill` has made: by one client after the other, and while runs are started beside."""
    for name, query in LISTS.items():
        figures = wrk(server, "/v1/runs?" + query, seconds, 4)
        tell("list", list=name, stored=stored, **figures, ok=figures["p99Ms"] <= 50)
    cursor, seen = deep_cursor(server, stored // 10)
    if cursor:
        tell("list", list=f"page after {seen}", stored=stored, **wrk(server, f"/v1/runs?limit=50&cursor={cursor}", seconds, 4))
    beside = subprocess.Popen([sys.executable, os.path.abspath(__file__), cairn, "--beside", server.url, "--token", server.token, "--seconds", str(3 * seconds + 1)], stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    for name in ("plain", "rare status", "text that is nowhere"):
        figures = wrk(server, "/v1/runs?" + LISTS[name], seconds, 4)
        tell("list", list=name + ", runs are started beside", stored=stored, **figures, ok=figures["p99Ms"] <= 50)
    tell("list-beside", **json.loads(beside.communicate()[0]))
    tell("list-rss", rssMiB=round(server.rss_mib(), 1))


def start_beside(url, token, seconds):
    """A modest load of starts, from a process of its own: eight connections."""
    script = tempfile.mktemp(suffix=".lua")
    with open(script, "w") as out:
        out.write(f'wrk.headers["Authorization"] = "Bearer {token}"\nwrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = [==[' + json.dumps({"document": json.dumps(NOOP)}) + "]==]\n")
    text = subprocess.run(["wrk", "-t1", "-c8", f"-d{seconds}", "-s", script, url + "/v1/runs"], capture_output=True, text=True).stdout
    os.unlink(script)
    print(json.dumps({"startsPerSecond": float(re.search(r"Requests/sec:\s*([\d.]+)", text).group(1))}))


def fill(directory, stored):
    """A store with so many runs, made by the engine without HTTP."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "bench", "fill")
    os.makedirs(directory, exist_ok=True)
    print(subprocess.run([program, f"sqlite:{directory}/bench.db", str(stored)], check=True, capture_output=True, text=True).stdout, end="", flush=True)


def bench_worker(cairn, directory, seconds):
    """256 runs of ten functions each, executed by a worker of another process: what a durable step costs on both sides."""
    here, place = os.path.dirname(os.path.abspath(__file__)), os.path.join(directory, "worker")
    way = "unix:" + os.path.join(place, "sock")  # of the worker: connections of one address are counted
    server = Server(cairn, place, "--route", "bounce=default", "--listen", way)
    plugin = os.path.join(place, "bounce.so")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", f"-I{here}/../include", "-o", plugin, f"{here}/bounce.c"], check=True)
    status, made = request(server, "POST", "/v1/tokens", {"name": "bench", "roles": ["Worker"], "pool": "default"})
    worker = subprocess.Popen([cairn, "worker", "--server", way, "--concurrency", "256", "--plugin", plugin], env={**os.environ, "CAIRN_TOKEN": made["token"]}, stderr=open(os.path.join(place, "worker.err"), "w"))
    steps = [{"stepId": f"s{i}", "kind": "bounce", "with": {"n": i}} for i in range(10)]
    plan = {"metadata": {"planId": "remote", "planVersion": "1", "schemaVersion": "v1.2"}, "steps": steps}
    before = cpu(worker.pid)
    figures = wrk(server, "/v1/runs", seconds, 256, {"document": json.dumps(plan)}, [("Prefer", "wait=30")])
    count = max(figures["perSecond"] * seconds * len(steps), 1)
    tell("remote-worker", inFlight=256, stepsPerSecond=figures["perSecond"] * len(steps), serverUsPerStep=round(figures["cpuUs"] / len(steps), 1), workerUsPerStep=round((cpu(worker.pid) - before) * 1e6 / count, 1), **figures)
    worker.terminate()
    worker.wait(30)
    server.stop()


class Watch(threading.Thread):
    """The highest resident size of a server while something happens."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.top, self.over = server, 0, False
        self.start()

    def run(self):
        while not self.over:
            self.top = max(self.top, self.server.rss_mib() or 0)
            time.sleep(0.05)

    def end(self):
        self.over = True
        self.join()
        return round(self.top, 1)


def flood(server, path, seconds, connections, body, headers=()):
    """As wrk(), but answers are counted by status. One thread of wrk, so that its table is the only one."""
    script = os.path.join(server.dir, "flood.lua")
    with open(script, "w") as out:
        out.write(f'wrk.headers["Authorization"] = "Bearer {server.token}"\nwrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = [==[' + json.dumps(body) + "]==]\n")
        for name, value in headers:
            out.write(f'wrk.headers["{name}"] = "{value}"\n')
        out.write("""
counts = {}
function response(status, headers, body)
  counts[status] = (counts[status] or 0) + 1
  if status == 429 and not headers["Retry-After"] then counts[1] = (counts[1] or 0) + 1 end
  text = ""
  for k, v in pairs(counts) do text = text .. k .. "=" .. v .. " " end
end
local all = {}
function setup(thread) table.insert(all, thread) end
function done(summary, latency, requests)
  for _, thread in ipairs(all) do io.write("CODES " .. (thread:get("text") or "") .. "\\n") end
  io.write(string.format("TIME %d %d %d\\n", summary.duration, latency:percentile(50), latency:percentile(99)))
end
""")
    watch, before = Watch(server), server.cpu()
    text = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "--timeout", "30s", "-s", script, server.url + path], capture_output=True, text=True).stdout
    micros, p50, p99 = (int(x) for x in re.search(r"TIME (.*)", text).group(1).split())
    codes = {int(k): int(v) for k, v in (part.split("=") for part in re.search(r"CODES (.*)", text).group(1).split())}
    good = sum(count for code, count in codes.items() if 200 <= code < 300)
    return {"perSecond": round(good / (micros / 1e6)), "refused": codes.get(429, 0), "refusedWithoutRetryAfter": codes.pop(1, 0), "others": sum(count for code, count in codes.items() if code >= 300 and code != 429), "p50Ms": p50 / 1000, "p99Ms": p99 / 1000, "cpuUs": round((server.cpu() - before) * 1e6 / max(good, 1), 1), "rssMiB": watch.end()}


def bench_overload(cairn, directory, seconds):
    """Ten times as many clients as it takes to be busy; then runs that do not end, as fast as they can be started."""
    server = Server(cairn, os.path.join(directory, "overload"))
    body, wait = {"document": json.dumps(NOOP)}, [("Prefer", "wait=30")]
    flood(server, "/v1/runs", 1, 64, body, wait)
    peak = flood(server, "/v1/runs", 2 * seconds, 256, body, wait)
    tell("overload", clients=256, what="peak", **peak)
    flooded = flood(server, "/v1/runs", 3 * seconds, 2560, body, wait)
    tell("overload", clients=2560, what="ten times as many", **flooded, ofPeak=round(flooded["perSecond"] / max(peak["perSecond"], 1), 2))
    sleepy = {"metadata": {"planId": "sleepy", "planVersion": "1", "schemaVersion": "v1.2"}, "steps": [{"stepId": "a", "kind": "wait", "with": {"duration": "1h"}}]}
    kept = flood(server, "/v1/runs", 2 * seconds, 256, {"document": json.dumps(sleepy)})
    tell("overload", clients=256, what="runs that do not end", **kept)
    after = flood(server, "/v1/runs", seconds, 256, body, wait)
    tell("overload", clients=256, what="and others beside them", **after)
    server.stop()


def bench_sinks(cairn, directory):
    """25,000 events of a filled store, to a receiver of webhooks, to NATS, to a file: what delivering an event costs."""
    runs = 5000
    for kind in ("webhook", "nats", "file"):
        place = os.path.join(directory, "sinks-" + kind)
        fill(place, runs)
        receiver, nats = Receiver(), Nats(place)
        if kind == "webhook":
            receiver.up()
            sink = f'type = "webhook", url = "http://127.0.0.1:{receiver.port}/in"'
        elif kind == "nats":
            if not Nats.there():
                continue
            nats.start()
            nats.make_stream()
            sink = f'type = "nats", url = "nats://127.0.0.1:{nats.port}", stream = "{Nats.STREAM}"'
        else:
            sink = f'type = "file", path = "{place}/events.jsonl"'
        more = f'[serve]\nsinks = [{{ name = "bench", from = "start", {sink} }}]\n[serve.fetch]\nallow = [{{ uri = "http://127.0.0.1:{receiver.port}/", allowPrivate = true }}]\n'
        began = time.monotonic()
        server = Server(cairn, place, more=more)
        while time.monotonic() - began < 120:
            status, page = request(server, "GET", "/v1/outbox")
            if status == 200 and page["items"] and page["items"][0]["waiting"] == 0 and page["items"][0]["delivered"] > runs:
                break
            time.sleep(0.05)
        took, delivered = time.monotonic() - began, page["items"][0]["delivered"]
        tell("sink", sink=kind, events=delivered, perSecond=round(delivered / took), cpuUs=round(server.cpu() * 1e6 / max(delivered, 1), 1), connections=receiver.accepted)
        server.stop()
        nats.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cairn", type=os.path.abspath)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--stored", type=int, default=0, help="runs in the store before lists are measured")
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--only", default="start,status,sse,list,worker,sinks,overload")
    parser.add_argument("--dir", default=None)
    parser.add_argument("--store", default=None, help="directory with the bench.db of an earlier fill; it is kept")
    parser.add_argument("--beside", help=argparse.SUPPRESS)
    parser.add_argument("--token", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("wrk is needed (./setup installs it)")
    if args.beside:
        return start_beside(args.beside, args.token, args.seconds)
    only = args.only.split(",")
    directory = tempfile.mkdtemp(prefix="cairn-service-", dir=args.dir)
    place = args.store or os.path.join(directory, "main")
    if "list" in only and args.stored and not args.store:
        fill(place, args.stored)
    server = Server(args.cairn, place)
    try:
        floor = wrk(server, "/livez", args.seconds, 64)
        tell("http-floor", **floor)
        if "start" in only:
            bench_start(server, args.seconds)
        if "status" in only:
            bench_status(server, args.seconds, floor["perSecond"])
        if "sse" in only:
            bench_streams(server, args.clients)
        if "list" in only:
            tell("serve-start", stored=args.stored, ms=server.start_ms)
            bench_list(server, args.stored, args.seconds, args.cairn)
    finally:
        server.stop()
    if "worker" in only:
        bench_worker(args.cairn, directory, args.seconds)
    if "overload" in only:
        bench_overload(args.cairn, directory, args.seconds)
    if "sinks" in only:
        bench_sinks(args.cairn, directory)
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
