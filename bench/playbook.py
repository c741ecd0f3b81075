#!/usr/bin/env python3
"""Playbooks, on this machine: bench/playbook.py CAIRN [--iterations N] [--requests N] [--delay-ms N] [--seconds N] [--only a,b]

Prints a JSON object per line, as `cairn bench` does.
  loop       iterations of a task that does nothing, durable in sqlite, beside the floor of the same run: the same bytes in rows of a plain
             SQLite, as many to a transaction as the engine has in a turn
  template   simple expressions on one core, beside Jinja2 on the same ones (bench/template, bench/templates.json)
  http       a parallel loop of requests, 100 at once, against a server here that takes its time, beside what wrk gets of the same server with
             as many connections
"""
import argparse, asyncio, json, os, re, shutil, sqlite3, subprocess, sys, tempfile, threading, time

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: bench, path: bench, version: '1'}\nworkflow:\n"
TURN = 2048  # moments of one turn (NET_MOMENTS_MAX)


def row(**figures):
    print(json.dumps(figures), flush=True)


def run(cairn, directory, name, text):
    """Seconds from the first event of the run to its last, and its records."""
    document = os.path.join(directory, name + ".yaml")
    with open(document, "w") as out:
        out.write(HEAD + text)
    store = ["--store", f"sqlite:{directory}/{name}.db"]
    done = subprocess.run([cairn, "run", document, *store, "--run-id", name, "--progress", "none"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    told = subprocess.run([cairn, "events", name, *store, "-o", "json"], capture_output=True, text=True, check=True).stdout
    records = [json.dumps(event) for event in json.loads(told)]
    first, last = json.loads(records[0]), json.loads(records[-1])
    seconds = lambda record: time.mktime(time.strptime(record["timestamp"][:19], "%Y-%m-%dT%H:%M:%S")) + float("0" + record["timestamp"][19:-1])
    return max(seconds(last) - seconds(first), 0.001), records


def plain_sqlite(directory, records):
    db = sqlite3.connect(os.path.join(directory, "floor.db"), isolation_level=None)
    db.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE e (run TEXT, seq INTEGER, record TEXT, PRIMARY KEY (run, seq)) WITHOUT ROWID;")
    began = time.monotonic()
    for at in range(0, len(records), TURN):
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO e VALUES ('loop', ?, ?)", enumerate(records[at : at + TURN], at))
        db.execute("COMMIT")
    return time.monotonic() - began


def loop(options, directory):
    text = "  - step: each\n    loop: {in: \"{{ range(%d) | list }}\", iterator: n, spec: {mode: sequential}}\n    tool: {kind: noop}\n" % options.iterations
    seconds, records = run(options.cairn, directory, "loop", text)
    floor = plain_sqlite(directory, records)
    row(bench="playbook_loop", iterations=options.iterations, events=len(records), seconds=round(seconds, 3), iterations_per_s=round(options.iterations / seconds),
        floor="the same rows in a plain SQLite", floor_seconds=round(floor, 3), times_the_floor=round(seconds / floor, 2))


def template(options, _):
    here = os.path.dirname(os.path.abspath(__file__))
    program = os.path.join(here, "..", "build", "bench", "template")
    file = os.path.join(here, "templates.json")
    ours = json.loads(subprocess.run([program, file, str(options.seconds)], capture_output=True, text=True, check=True).stdout)["rate"]
    figures = dict(bench="playbook_template", expressions_per_s_per_core=ours)
    try:
        import jinja2
    except ImportError:
        return row(**figures, jinja2="not here")
    given = json.load(open(file))
    compiled = [jinja2.Environment().from_string(text) for text in given["templates"]]
    rendered, began = 0, time.perf_counter()
    while time.perf_counter() - began < options.seconds:
        for _ in range(20):
            for one in compiled:
                one.render(given["scope"])
        rendered += 20 * len(compiled)
    theirs = rendered / (time.perf_counter() - began)
    row(**figures, jinja2=jinja2.__version__, jinja2_per_s=round(theirs), times_jinja2=round(ours / theirs, 1))


class Slow:
    """Answers every request after a while, on as many connections as come."""

    def __init__(self, delay):
        self.delay, self.ready, self.port = delay, threading.Event(), 0
        threading.Thread(target=lambda: asyncio.run(self.serve()), daemon=True).start()
        self.ready.wait(10)

    async def serve(self):
        server = await asyncio.start_server(self.client, "127.0.0.1", 0, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        await server.serve_forever()

    async def client(self, reader, writer):
        answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"ok\":true}"
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                await asyncio.sleep(self.delay)
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()


def http(options, directory):
    server = Slow(options.delay_ms / 1000)
    url = f"http://127.0.0.1:{server.port}/"
    text = ("  - step: each\n    loop: {in: \"{{ range(%d) | list }}\", iterator: n, spec: {mode: parallel, max_in_flight: 100}}\n"
            "    tool: {kind: http, method: GET, url: \"%s?n={{ iter.n }}\"}\n" % (options.requests, url))
    seconds, _ = run(options.cairn, directory, "http", text)
    figures = dict(bench="playbook_http", requests=options.requests, at_once=100, server_takes_ms=options.delay_ms, requests_per_s=round(options.requests / seconds))
    if not shutil.which("wrk"):
        return row(**figures, wrk="not here")
    told = subprocess.run(["wrk", "-t1", "-c100", f"-d{max(1, int(options.seconds))}s", url], capture_output=True, text=True, check=True).stdout
    rate = float(re.search(r"Requests/sec:\s+([0-9.]+)", told).group(1))
    row(**figures, wrk_per_s=round(rate), of_the_server=round(options.requests / seconds / rate, 2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cairn")
    parser.add_argument("--iterations", type=int, default=10000)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--delay-ms", type=float, default=50)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--only", default="loop,template,http")
    options = parser.parse_args()
    options.cairn = os.path.abspath(options.cairn)
    wanted = options.only.split(",")
    for bench in (loop, template, http):
        if bench.__name__ in wanted:
            with tempfile.TemporaryDirectory(prefix="cairn-bench.") as directory:
                bench(options, directory)


main()
