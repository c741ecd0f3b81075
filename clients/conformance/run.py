#!/usr/bin/env python3
"""What every client and worker must do, tried with real programs against real services: run.py [--later] CAIRN ADAPTER... [-- CASE...]

With --later the service is of a version to come: something between it and the client adds members, which nobody knows yet, to everything that it says.

ADAPTER is a command: "python3 adapter.py", "node adapter.mjs". Each case starts a service of its own. Prints "ok NAME" and "not ok NAME: why" as the other
tests do, with the last word of the adapter's file in the name. Adapters read {call, op, ...} a line and answer {call, value} or {call, code}.
"""
import concurrent.futures, http.client, http.server, json, os, pathlib, shlex, shutil, signal, subprocess, sys, tempfile, threading, time, traceback

PATIENCE = 120


def wait_for(what, condition):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError(f"waited {PATIENCE} s for {what}")


def equal(got, wanted, what=""):
    if got != wanted:
        raise AssertionError(f"{what or 'value'} is {json.dumps(got)[:300]}, not {json.dumps(wanted)[:300]}")


def plan(name, *steps):
    return {"metadata": {"planId": name, "planVersion": "1", "schemaVersion": "v1.2"}, "steps": list(steps)}


def step(name, kind, given=None, **more):
    return {"id": name, "kind": kind, "with": given or {}, **more}


class Adapter:
    """A program that has a client, driven by lines."""

    def __init__(self, world, command, url):
        self.process = subprocess.Popen([*shlex.split(command), "client", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=world.env, text=True)
        world.processes.append(self.process)
        self.count, self.answers, self.lock = 0, {}, threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            said = json.loads(line)
            with self.lock:
                self.answers[said["call"]] = said
                self.lock.notify_all()
        with self.lock:
            self.answers[None] = True
            self.lock.notify_all()

    def ask(self, op, **given):
        self.count += 1
        self.process.stdin.write(json.dumps({"call": self.count, "op": op, **given}) + "\n")
        self.process.stdin.flush()
        return self.count

    def answer(self, call):
        with self.lock:
            if not self.lock.wait_for(lambda: call in self.answers or None in self.answers, PATIENCE) or call not in self.answers:
                raise AssertionError("the adapter did not answer")
            return self.answers[call]

    def __call__(self, op, **given):
        said = self.answer(self.ask(op, **given))
        if "code" in said:
            raise AssertionError(f"{op}: {said}")
        return said["value"]

    def refusal(self, op, **given):
        return self.answer(self.ask(op, **given)).get("code")


NEW = {"ofALaterVersion": {"many": [1, {"kinds": None}]}}


class Later(http.server.BaseHTTPRequestHandler):
    """Hands on what is asked, and adds to what is answered."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def grown(self, value):
        if isinstance(value, list):
            return [self.grown(one) for one in value]
        if isinstance(value, dict):
            return {**{name: self.grown(one) if name in ("items", "tasks", "results") else one for name, one in value.items()}, **NEW}
        return value

    def hand_on(self):
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.behind(), timeout=PATIENCE)
        try:
            upstream.request(self.command, self.path, body, {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection", "accept-encoding")})
            answer = upstream.getresponse()
            kind = answer.headers.get("Content-Type", "")
            streams = kind.startswith("text/event-stream")
            data = None if streams else answer.read()
            if "json" in kind and data and not self.path.split("?")[0].endswith("/output"):
                data = json.dumps(self.grown(json.loads(data))).encode()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                    self.send_header(name, value)
            self.send_header("Of-A-Later-Version", "yes")
            self.send_header("Connection", "close")
            if not streams:
                self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            for line in answer if streams else [data]:
                if streams and line.startswith(b"data: {"):
                    line = b"data: " + json.dumps(self.grown(json.loads(line[6:]))).encode() + b"\n"
                self.wfile.write(line)
                self.wfile.flush()
        except (OSError, http.client.HTTPException):
            pass  # either end is gone, and the other sees it
        finally:
            upstream.close()

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = hand_on


class World:
    """A service with a store, in a directory that goes away with it."""

    def __init__(self, cairn, command, lease="30s", later=False):
        self.cairn, self.command, self.lease, self.processes = cairn, command, lease, []
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="cairn-clients-"))
        self.home.chmod(0o755)
        self.port = None
        self.env = {**os.environ, "HOME": str(self.home)}
        self.between = None
        self.serve()
        if later:
            self.between = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Later)
            self.between.daemon_threads, self.between.block_on_close, self.between.behind = True, False, lambda: self.port
            threading.Thread(target=self.between.serve_forever, daemon=True).start()
            self.url = self.asked
        self.client = Adapter(self, command, self.url)

    def serve(self):
        log = open(self.home / "serve.err", "w+")
        command = [self.cairn, "serve", "--store", f"sqlite:{self.home}/store.db", "--listen", f"127.0.0.1:{self.port or 0}", "--route", "*=default",
                   "--lease", self.lease]
        self.server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=self.env)
        self.processes.append(self.server)
        wait_for("the service", lambda: "the token of the first start" in (self.home / "serve.err").read_text() or self.server.poll() is not None)
        text = (self.home / "serve.err").read_text()
        assert self.server.poll() is None, text
        self.url = next(line.split()[-1] for line in text.splitlines() if line.startswith("listening on"))
        self.port = int(self.url.rsplit(":", 1)[1])
        self.url = self.asked
        self.env["CAIRN_TOKEN"] = (self.home / "store.db.token").read_text().strip()

    @property
    def asked(self):
        return f"http://127.0.0.1:{self.between.server_address[1] if self.between else self.port}"

    def kill_server(self):
        self.server.kill()
        self.server.wait()

    def worker(self, name):
        process = subprocess.Popen([*shlex.split(self.command), "worker", self.url, name], stdout=subprocess.PIPE, env=self.env, text=True)
        self.processes.append(process)
        assert process.stdout.readline().strip() == "ready"
        return process

    def mark(self, name):
        return str(self.home / name)

    def begun(self, mark):
        return (pathlib.Path(mark + ".begun").read_text().split() if os.path.exists(mark + ".begun") else [])

    def close(self):
        if self.between:
            self.between.shutdown()
            self.between.server_close()
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        shutil.rmtree(self.home, ignore_errors=True)


# ---- cases: what a client does

def starts_once_and_waits(world):
    document = plan("p", step("a", "noop"))
    equal(world.client("start", document=document, run="r1", key="k1"), "r1")
    equal(world.client("start", document=document, run="r1", key="k1"), "r1")
    equal(world.client("wait", run="r1"), "COMPLETED")
    equal(world.client.refusal("start", document=document, run="r1", key="k2"), "RUN_ALREADY_EXISTS")
    equal(world.client.refusal("status", run="nobody"), "NOT_FOUND")
    equal(world.client("start", document=json.dumps(document), run="r2"), "r2", "a document as text")


def failures_are_told(world):
    world.worker("w1")
    world.client("start", document=plan("p", step("a", "broken", retry={"maxAttempts": 3, "delay": 1})), run="r1")
    equal(world.client("wait-checked", run="r1"), "raised FAILED")
    equal(world.client("events", run="r1").count("StepFailed"), 1, "an error that is no use to try again is tried once")
    equal(world.client.refusal("start", document="steps: [", run="bad"), "INVALID_PLAN_SCHEMA")


def streams_every_event_once(world):
    world.worker("w1")
    mark = world.mark("go")
    world.client("start", document=plan("p", step("a", "slow", {"mark": mark}), step("b", "noop", dependsOn=["a"])), run="r1")
    reading = world.client.ask("events", run="r1")
    wait_for("the step", lambda: world.begun(mark))
    open(mark, "w").close()
    seen = world.client.answer(reading)["value"]
    equal(seen[:2], ["RunQueued", "RunStarted"])
    equal(seen[-1], "RunCompleted")
    equal(seen, world.client("events", run="r1"), "what a reader sees afterwards")
    equal(world.client("events", run="r1", after=2), seen[2:], "events behind the second")


def streams_go_on_after_a_restart(world):
    world.client("start", document=plan("p", step("a", "approval"), step("b", "noop", dependsOn=["a"])), run="r1")
    reading = world.client.ask("events", run="r1")
    wait_for("the wait", lambda: world.client("status", run="r1") in ("RUNNING", "PAUSED"))
    world.kill_server()
    world.serve()
    equal(world.client("signal", run="r1", type="APPROVE", step="a"), "ACCEPTED")
    seen = world.client.answer(reading)["value"]
    equal(seen, world.client("events", run="r1"), "what came over two services")
    equal(seen[-1], "RunCompleted")


def waits_over_a_restart(world):
    world.client("start", document=plan("p", step("a", "approval")), run="r1")
    waiting = world.client.ask("wait", run="r1")
    world.kill_server()
    world.serve()
    equal(world.client("signal", run="r1", type="APPROVE", step="a"), "ACCEPTED")
    equal(world.client.answer(waiting)["value"], "COMPLETED")


def signals_count_once(world):
    world.client("start", document=plan("p", step("a", "approval"), step("b", "noop", dependsOn=["a"])), run="r1")
    identity = "0b5fd2b4-8e6f-4c22-a2a1-0f6f4d1f2f10"
    equal(world.client("signal", run="r1", type="PAUSE", id=identity, reason="lunch"), "ACCEPTED")
    equal(world.client("signal", run="r1", type="PAUSE", id=identity, reason="lunch"), "ACCEPTED")
    wait_for("the pause", lambda: world.client("status", run="r1") == "PAUSED")
    equal(world.client("signal", run="r1", type="RESUME"), "ACCEPTED")
    equal(world.client("signal", run="r1", type="APPROVE", step="a"), "ACCEPTED")
    equal(world.client("wait", run="r1"), "COMPLETED")
    equal(world.client("events", run="r1").count("RunPaused"), 1)


def lists_all_pages(world):
    for number in range(8):
        world.client("start", document=plan("p", step("a", "noop")), run=f"r{number}")
    equal(sorted(world.client("runs", q="plan=p")), [f"r{number}" for number in range(8)])


def awaits(world):
    equal(world.client("async", document=plan("p", step("a", "noop"))), ["COMPLETED"] * 3 + ["RunCompleted"])


# ---- cases: what a worker does

EXACT = {"id": 761295407002419364, "big": 10 ** 30, "minus": -9223372036854775808, "tenth": 0.1, "text": "ä\u2028\U0001F600", "deep": [[{"a": None}]]}


def functions_are_steps(world):
    world.worker("w1")
    world.client("start", document=plan("p", step("a", "mirror", EXACT), step("b", "mirror", {"of": "$a.output"}, dependsOn=["a"])), run="r1")
    equal(world.client("wait", run="r1"), "COMPLETED")
    equal(world.client("output", run="r1", step="a"), EXACT, "numbers and texts, there and back")


def policies_of_the_document_try_again(world):
    world.worker("w1")
    retry = {"maxAttempts": 5, "delay": 1}
    world.client("start", document=plan("p", step("a", "flaky", retry=retry), step("b", "shaky", retry={"maxAttempts": 2, "delay": 1})), run="r1")
    equal(world.client("wait", run="r1"), "FAILED")
    equal(world.client("output", run="r1", step="a"), 3)
    equal(world.client("events", run="r1").count("StepFailed"), 4, "two of flaky, two of shaky")


def logs_of_functions_are_kept(world):
    world.worker("w1")
    mark = world.mark("go")
    open(mark, "w").close()
    world.client("start", document=plan("p", step("a", "slow", {"mark": mark})), run="r1")
    equal(world.client("wait", run="r1"), "COMPLETED")
    assert "slow in w1" in world.client("logs", run="r1", step="a")


def large_results_arrive_whole(world):
    world.worker("w1")
    world.client("start", document=plan("p", step("a", "big", {"bytes": 3_000_000}), step("b", "big", {"bytes": 40 << 20})), run="r1")
    equal(world.client("wait", run="r1"), "FAILED")
    equal(len(world.client("output", run="r1", step="a")), 3_000_000)


def what_is_no_json_fails_its_step(world):
    world.worker("w1")
    world.client("start", document=plan("p", step("a", "notjson")), run="r1")
    equal(world.client("wait", run="r1"), "FAILED")


def cancelled_steps_are_stopped(world):
    world.worker("w1")
    marks = [world.mark("one"), world.mark("two")]
    world.client("start", document=plan("p", step("a", "slow", {"mark": marks[0]}, dependsOn=[]), step("b", "waiting", {"mark": marks[1]}, dependsOn=[])), run="r1")
    wait_for("both steps", lambda: all(world.begun(mark) for mark in marks))
    equal(world.client("signal", run="r1", type="CANCEL", reason="enough"), "ACCEPTED")
    equal(world.client("wait", run="r1"), "CANCELLED")
    wait_for("the function to be cancelled", lambda: os.path.exists(marks[1] + ".cancelled"))


def timeouts_are_kept(world):
    world.worker("w1")
    world.client("start", document=plan("p", step("a", "waiting", {"mark": world.mark("never")}, timeoutMs=300)), run="r1")
    equal(world.client("wait", run="r1"), "FAILED")
    wait_for("the function to be cancelled", lambda: os.path.exists(world.mark("never") + ".cancelled"))


def a_dead_worker_s_task_goes_to_another(world):
    first = world.worker("w1")
    mark = world.mark("go")
    world.client("start", document=plan("p", step("a", "slow", {"mark": mark})), run="r1")
    wait_for("the first worker", lambda: world.begun(mark) == ["w1"])
    first.kill()
    world.worker("w2")
    wait_for("the second worker", lambda: "w2" in world.begun(mark))
    open(mark, "w").close()
    equal(world.client("wait", run="r1"), "COMPLETED")
    equal(world.client("output", run="r1", step="a"), "w2")
    assert "StepRedispatched" in world.client("events", run="r1")


def workers_outlive_their_server(world):
    world.worker("w1")
    mark = world.mark("go")
    world.client("start", document=plan("p", step("a", "slow", {"mark": mark}), step("b", "mirror", {"n": 1}, dependsOn=["a"])), run="r1")
    wait_for("the worker", lambda: world.begun(mark))
    world.kill_server()
    open(mark, "w").close()
    world.serve()
    equal(world.client("wait", run="r1"), "COMPLETED")
    equal(world.client("output", run="r1", step="b"), {"n": 1})


def a_worker_that_ends_finishes_first(world):
    worker = world.worker("w1")
    mark = world.mark("go")
    world.client("start", document=plan("p", step("a", "slow", {"mark": mark})), run="r1")
    wait_for("the worker", lambda: world.begun(mark))
    worker.send_signal(signal.SIGTERM)
    open(mark, "w").close()
    equal(world.client("wait", run="r1"), "COMPLETED")
    equal(worker.wait(PATIENCE), 0, "the exit code of the worker")
    equal(world.client("events", run="r1").count("StepRedispatched"), 0)


a_dead_worker_s_task_goes_to_another.lease = "2s"
CASES = [starts_once_and_waits, failures_are_told, streams_every_event_once, streams_go_on_after_a_restart, waits_over_a_restart, signals_count_once,
         lists_all_pages, awaits, functions_are_steps, policies_of_the_document_try_again, logs_of_functions_are_kept, large_results_arrive_whole,
         what_is_no_json_fails_its_step, cancelled_steps_are_stopped, timeouts_are_kept, a_dead_worker_s_task_goes_to_another,
         workers_outlive_their_server, a_worker_that_ends_finishes_first]


def attempt(cairn, command, case, later=False):
    """What to print of a case that was tried."""
    language = {"adapter.py": "python", "adapter.mjs": "typescript"}.get(os.path.basename(shlex.split(command)[-1]), command)
    name, world = f"{language}_{case.__name__}", None
    try:
        world = World(cairn, command, getattr(case, "lease", "30s"), later)
        case(world)
        return f"ok {name}"
    except Exception as error:
        return f"not ok {name}: {str(error) or traceback.format_exc()}".replace("\n", " ")[:500]
    finally:
        if world:
            world.close()


def main():
    later = "--later" in sys.argv
    words = [word for word in sys.argv[1:] if word != "--later"]
    only = words[words.index("--") + 1:] if "--" in words else []
    cairn, *adapters = words[:words.index("--")] if "--" in words else words
    with concurrent.futures.ThreadPoolExecutor(4) as several:
        tries = [several.submit(attempt, cairn, command, case, later) for command in adapters for case in CASES if not only or case.__name__ in only]
        said = []
        for one in concurrent.futures.as_completed(tries):
            said.append(one.result())
            print(said[-1], flush=True)
    sys.exit(0 if said and all(line.startswith("ok ") for line in said) else 1)


main()
