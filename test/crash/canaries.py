#!/usr/bin/env python3
"""test/crash/canaries.py CAIRN [--runs N] [--keep]

Runs whose steps print their secrets in every way they can, with values of all kinds of providers, in the server and at a worker. Everything that
is kept, sent or shown is caught: the database, step logs, diagnostics, events to a file and to webhooks, traces, streams, answers of
the interface, metrics, and what commands print. No value may be in any of it, whole or in part, in any encoding (RE-5b, ES-2b).
"""
import argparse, base64, http.client, json, os, random, shutil, signal, subprocess, sys, tempfile, threading, time

from sinks import Receiver, free_port

HEAD, TAIL = "KanarienvogelImKaefig", "SingtNiemalsEinLied42"  # both are multiples of three bytes: their base64 is the same anywhere in a group
SECRETS = 40  # of each provider that keeps them

PRINT = """printf '%s\\n' "$S"; printf 'token=%s;' "$S"; echo; printf '{"token":"%s"}\\n' "$S"; for i in 1 2 3; do printf '%s' "${S:0:20}"; printf '%s\\n' "${S:20}"; done; echo "err $S" >&2"""
ENCODE = """printf '%s' "$S" | base64; printf '%s' "$S" | base64 -w 20; printf '%s' "$S" | od -An -v -tx1 | tr -d ' \\n'; echo; printf '%s\\n' "$S" | sed 's/./&/g' >&2"""
FAIL = """echo "failed with $S" >&2; exit 3"""


def plan(provider, name, encode, fails):
    ref = [{"name": "S", "ref": f"secret://{provider}/{name}"}]
    steps = [
        {"stepId": "print", "kind": "shell", "secrets": ref, "with": {"command": PRINT + ("; " + ENCODE if encode else "")}},
        {"stepId": "use", "kind": "echo", "dependsOn": ["print"], "with": {"message": "got $print.output"}},
    ]
    if fails:
        steps.append({"stepId": "fail", "kind": "shell", "dependsOn": ["use"], "secrets": ref, "with": {"command": FAIL}})
    return {"metadata": {"planId": "canary", "planVersion": "1", "schemaVersion": "v1.2"}, "steps": steps}


class Canaries:
    def __init__(self, args):
        self.args = args
        self.dir = tempfile.mkdtemp(prefix="cairn-canaries-")
        self.seen = os.path.join(self.dir, "seen")  # what is searched
        self.vault = os.path.join(self.dir, "vault")  # where the values are
        for path in (self.seen, self.vault):
            os.mkdir(path, 0o700)
        self.port = free_port()
        self.hooks, self.traces = Receiver(os.path.join(self.seen, "hooks")), Receiver(os.path.join(self.seen, "traces"))
        self.lock, self.counts, self.faults = threading.Lock(), {}, []
        self.environment = dict(os.environ, CAIRN_LOG="json", CAIRN_CONFINE="none")
        self.make_secrets()

    @staticmethod
    def value():
        return HEAD + "%030x" % random.getrandbits(120) + TAIL

    def make_secrets(self):
        credentials = os.path.join(self.vault, "credentials")
        os.mkdir(credentials)
        self.environment["CREDENTIALS_DIRECTORY"] = credentials
        for place in ("here", "there"):
            os.makedirs(f"{self.vault}/files/default/{place}")
            for i in range(SECRETS):
                self.environment[f"CANARY_{place}_n{i}"] = self.value()
                for path in (f"{credentials}/{place}_n{i}", f"{self.vault}/files/default/{place}/n{i}"):
                    with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as out:
                        out.write(self.value())
        fetch = os.path.join(self.vault, "fetch")
        with open(fetch, "w") as out:  # a value of its own for each call; told on stderr too, and then it may fail
            out.write(f"#!/bin/bash\nv={HEAD}$(od -An -N15 -tx1 /dev/urandom | tr -d ' \\n'){TAIL}\necho \"cannot keep $v\" >&2\n[ \"$CAIRN_SECRET_NAME\" != broken ] || exit 1\necho $v\n")
        os.chmod(fetch, 0o700)
        providers = [{"name": "files", "type": "file", "path": self.vault + "/files"}, {"name": "vault", "type": "exec", "argv": [fetch], "timeoutMs": 10000}]
        for place in ("here", "there"):
            providers.append({"name": "vars", "type": "env", "tenant": "default", "environment": place, "prefix": f"CANARY_{place}_"})
            providers.append({"name": "creds", "type": "systemd", "tenant": "default", "environment": place, "prefix": place + "_"})
        self.providers = os.path.join(self.dir, "providers.json")
        with open(os.open(self.providers, os.O_CREAT | os.O_WRONLY, 0o600), "w") as out:
            json.dump({"providers": providers}, out)
        with open(os.path.join(self.seen, "cairn.toml"), "w") as out:
            out.write(f"""
[serve]
routes = [{{ environment = "there", pool = "default" }}]
sinks = [
  {{ name = "lines", type = "file", path = "{self.seen}/lines.jsonl" }},
  {{ name = "hook", type = "webhook", url = "http://127.0.0.1:{self.hooks.port}/in" }},
]
otlp = {{ url = "http://127.0.0.1:{self.traces.port}" }}
[serve.fetch]
allow = [{{ uri = "http://127.0.0.1:{self.hooks.port}/", allowPrivate = true }}, {{ uri = "http://127.0.0.1:{self.traces.port}/", allowPrivate = true }}]
""")

    # ---- processes
    def start(self):
        self.hooks.up()
        self.traces.up()
        command = [self.args.cairn, "serve", "--store", f"sqlite:{self.seen}/store.db", "--listen", f"127.0.0.1:{self.port}", "--secrets", self.providers]
        self.server = subprocess.Popen(command, cwd=self.seen, env=self.environment, stdout=open(self.seen + "/serve.out", "w"), stderr=open(self.seen + "/serve.err", "w"))
        until = time.monotonic() + 30
        while not os.path.exists(self.seen + "/store.db.token") or "listening" not in open(self.seen + "/serve.err").read():
            if time.monotonic() > until or self.server.poll() is not None:
                sys.exit("not ok canaries: the server does not start: " + open(self.seen + "/serve.err").read()[-500:])
            time.sleep(0.05)
        self.token = open(self.seen + "/store.db.token").read().strip()
        self.worker = subprocess.Popen([self.args.cairn, "worker", "--server", f"http://127.0.0.1:{self.port}", "--concurrency", "4", "--secrets", self.providers, "-v"], cwd=self.seen, env=dict(self.environment, CAIRN_TOKEN=self.token), stdout=open(self.seen + "/worker.out", "w"), stderr=open(self.seen + "/worker.err", "w"))

    def stop(self):
        for process in (self.worker, self.server):
            process.send_signal(signal.SIGTERM)
            process.wait(60)

    # ---- calls; every answer is kept
    def call(self, connection, method, path, body=None, headers=()):
        connection.request(method, path, json.dumps(body) if body is not None else None, {"Authorization": "Bearer " + self.token, "Content-Type": "application/json", **dict(headers)})
        answer = connection.getresponse()
        data = answer.read()
        with self.lock:
            self.answers.write(f"{method} {path} {answer.status}\n{answer.headers}".encode() + data + b"\n")
        return answer.status, data

    def client(self, numbers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        for i in numbers:
            provider = ("vars", "creds", "files", "vault")[i % 4]
            place = "there" if i % 8 >= 4 else "here"
            name = "broken" if i % 40 == 3 else f"n{i % SECRETS}"
            run = f"canary-{i}"
            body = {"document": json.dumps(plan(provider, name, i % 10 == 0, i % 5 == 0)), "runId": run, "environmentId": place}
            if i % 20 == 0:
                self.call(connection, "POST", "/v1/runs", body)
                self.call(http.client.HTTPConnection("127.0.0.1", self.port, timeout=120), "GET", f"/v1/runs/{run}/events", headers=[("Accept", "text/event-stream")])
                status, data = self.call(connection, "GET", f"/v1/runs/{run}/status", headers=[("Prefer", "wait=60")])
            else:
                status, data = self.call(connection, "POST", "/v1/runs", body, [("Prefer", "wait=60")])
            if status not in (200, 202):
                self.faults.append(f"{run}: {status} {data[:200]}")
                continue
            ended = json.loads(data).get("status")
            wanted = "FAILED" if i % 5 == 0 or name == "broken" else "COMPLETED"
            if ended in ("COMPLETED", "FAILED") and ended != wanted:
                self.faults.append(f"{run} ended as {ended}, not {wanted}")
            with self.lock:
                self.counts[(provider, place, ended)] = self.counts.get((provider, place, ended), 0) + 1
            if i % 10 == 0:
                self.look(connection, run)

    def look(self, connection, run):
        for path in ("", "/events", "/steps", "/why", "/steps/print/logs", "/steps/print/attempts", "/bundle"):
            self.call(connection, "GET", f"/v1/runs/{run}{path}")
        self.call(connection, "GET", f"/v1/runs/{run}/events", headers=[("Accept", "application/x-ndjson")])

    def commands(self, runs):
        store = ["--store", f"sqlite:{self.seen}/store.db"]
        with open(self.seen + "/commands", "wb") as out:
            for run in runs:
                for words in (["get", run, "-o", "json"], ["get", run], ["logs", run], ["events", run, "-o", "jsonl"], ["why", run], ["trace", run], ["ls", "-o", "json"]):
                    done = subprocess.run([self.args.cairn, *words, *store], capture_output=True)
                    out.write(done.stdout + done.stderr)

    # ---- the search
    def needles(self):
        words = {}
        for word in (HEAD, TAIL):
            raw = word.encode()
            words[word] = raw
            words[word + " as hex"] = raw.hex().encode()
            words[word + " in capitals of hex"] = raw.hex().upper().encode()
            words[word + " in UTF-16"] = word.encode("utf-16-le")
            for shift in range(3):  # wherever it begins in a group of three bytes
                words[f"{word} in base64, {shift}"] = base64.b64encode(b"\0" * shift + raw)[4 if shift else 0 : 24]
        return words

    def search(self):
        needles, files = self.needles(), 0
        for directory, _, names in os.walk(self.seen):
            for name in names:
                path = os.path.join(directory, name)
                files += 1
                data = open(path, "rb").read()
                for what, needle in needles.items():
                    at = data.find(needle)
                    if at >= 0:
                        self.faults.append(f"{os.path.relpath(path, self.seen)} has {what}: ...{data[max(0, at - 60):at + 60]!r}")
        return files

    def prove_the_search(self):
        """A search that finds nothing must be able to find something."""
        path = os.path.join(self.seen, "planted")
        for form in (lambda v: v, lambda v: base64.b64encode(v), lambda v: base64.b64encode(b"x" + v), lambda v: v.hex().encode(), lambda v: v[5:], lambda v: v[:30]):
            with open(path, "wb") as out:
                out.write(form(self.value().encode()))
            before = len(self.faults)
            self.search()
            if len(self.faults) == before:
                self.faults.append("a planted value is not found")
            else:
                del self.faults[before:]
        os.unlink(path)

    def run(self):
        self.answers = open(self.seen + "/answers", "wb")
        self.start()
        numbers = [list(range(k, self.args.runs, self.args.clients)) for k in range(self.args.clients)]
        threads = [threading.Thread(target=self.client, args=(part,)) for part in numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        for path in ("/metrics", "/v1/alerts", "/v1/outbox", "/v1/dlq?sink=hook", "/v1/audit", "/v1/runs?limit=500", "/readyz?verbose"):
            self.call(connection, "GET", path)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            status, data = self.call(connection, "GET", "/v1/outbox")
            if all(sink["waiting"] == 0 for sink in json.loads(data)["items"]):
                break
            time.sleep(0.1)
        self.commands([f"canary-{i}" for i in range(0, min(self.args.runs, 60), 7)])
        self.stop()
        self.answers.close()
        self.hooks.keep.flush()
        self.traces.keep.flush()
        for name, kept in (("hooks", self.hooks), ("traces", self.traces)):
            if not kept.ids:
                self.faults.append(f"nothing came to the {name}")
        masked = sum(open(os.path.join(d, n), "rb").read().count(b"***") for d, _, ns in os.walk(self.seen) for n in ns)
        if masked < self.args.runs:
            self.faults.append(f"only {masked} masks: the values were not printed")
        kinds = {(provider, place) for provider, place, ended in self.counts}
        if len(kinds) < 8:
            self.faults.append(f"not every provider served both places: {sorted(kinds)}")
        if not self.faults:
            self.prove_the_search()
        files = self.search()
        for fault in self.faults[:20]:
            print("  " + fault, file=sys.stderr)
        told = f"{self.args.runs} runs, {files} files searched, {masked} masks, {len(self.hooks.ids)} webhooks, {len(self.traces.ids)} posts of traces"
        print(f"{'not ok' if self.faults else 'ok'} {self.args.name}{': ' + str(len(self.faults)) + ' faults' if self.faults else ''} ({told})")
        if self.faults or self.args.keep:
            print("  kept: " + self.dir, file=sys.stderr)
        else:
            shutil.rmtree(self.dir)
        return 1 if self.faults else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cairn", type=os.path.abspath)
    parser.add_argument("--runs", type=int, default=10000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--name", default="no_secret_leaves_its_step_RE_5b_ES_2b")
    parser.add_argument("--keep", action="store_true")
    sys.exit(Canaries(parser.parse_args()).run())


main()
