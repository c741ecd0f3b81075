"""fuzz.py URL TOKEN SECONDS [SEED]: everything at once against one server: runs, signals, streams, cancels, workers, tokens,
random bodies, paths and queries, connections cut at random bytes. Says nothing but what never came back."""
import json, random, socket, sys, threading, time, uuid

import kit

ROUTES = ["/v1/runs", "/v1/runs/{r}", "/v1/runs/{r}/status", "/v1/runs/{r}/events", "/v1/runs/{r}/why", "/v1/runs/{r}/steps",
          "/v1/runs/{r}/steps/a", "/v1/runs/{r}/steps/a/why", "/v1/runs/{r}/steps/a/logs", "/v1/runs/{r}/signals",
          "/v1/runs/{r}/signals/{u}", "/v1/events", "/v1/plans:validate", "/v1/workers", "/v1/worker/poll", "/v1/worker/heartbeat",
          "/v1/worker/logs", "/v1/worker/complete", "/v1/worker/fail", "/v1/worker/artifacts/{u}/x", "/v1/tokens", "/v1/tokens/{u}",
          "/v1/alerts", "/v1/audit", "/v1/whoami", "/v1/capabilities", "/metrics", "/openapi.json", "/schemas/plan.json", "/livez",
          "/v1/runs/{r}/forks", "/v1/queues", "/v1/limits", "/v1/outbox", "/v1/dlq", "/v1/definitions", "/v1/runs/{r}/artifacts",
          "/v1/schedules", "/v1/config", "/v1/debug", "/v1/runs/{r}/bundle", "/v1/runs/{r}/payload", "/v1/runs/{r}/proof",
          "/v1/t/default/p/default/e/default/runs", "/v1/queues/q:pause", "/v1/alerts/{u}:acknowledge", "/v1/audit:verify"]
QUERIES = ["", "?limit=1", "?after=1", "?after=-1", "?limit=99999999999999999999", "?q=status%20%3D%20RUNNING", "?q=%28%28%28",
           "?cursor=p1", "?cursor=zzz", "?at=1", "?at=0", "?at=9223372036854775807", "?as=nodes", "?as=run", "?types=RunStarted,,",
           "?wait=1", "?wait=-1", "?step=a", "?attempt=99", "?%00", "?a=%zz", "?status=RUNNING,FAILED", "?startedAfter=yesterday",
           "?limit=500&after=3&as=noetl", "?run=x&state=open", "?" + "a=b&" * 200]
TYPES = ["PAUSE", "RESUME", "CANCEL", "RETRY_STEP", "SKIP_STEP", "RETRY_RUN", "UPDATE_PARAMS", "INJECT_OVERRIDE", "UPDATE_TARGET",
         "EMERGENCY_STOP", "ESCALATE_ALERT", "APPROVE", "NONSENSE"]
RUNS = [f"f{i}" for i in range(24)] + ["none", "RUN", "..", "%2e%2e", "a%20b", "x" * 200]


def value(rnd, depth=0):
    kind = rnd.randrange(9 if depth < 4 else 6)
    if kind == 0:
        return None
    if kind == 1:
        return rnd.choice([True, False])
    if kind == 2:
        return rnd.choice([0, -1, 1, 2**31, 2**53, -(2**63), 10**30, 1.5, 1e300])
    if kind in (3, 4, 5):
        return rnd.choice(["", "a", "default", "x" * rnd.randrange(300), "é\u202e\u0000\n", str(uuid.uuid4()), "../../etc/passwd",
                           kit.plan(), "cairn://plans/" + "0" * 64, "2030-01-01T00:00:00Z"])
    if kind in (6, 7):
        return {key(rnd): value(rnd, depth + 1) for _ in range(rnd.randrange(5))}
    return [value(rnd, depth + 1) for _ in range(rnd.randrange(5))]


def key(rnd):
    return rnd.choice(["document", "file", "parts", "planRef", "context", "inputs", "input", "arguments", "runRequestId", "queue", "runId",
                       "tenantId", "projectId", "environmentId", "uri", "sha256", "signalType", "signalId", "payload", "reason", "stepId",
                       "force", "params", "override", "newTarget", "roles", "name", "pool", "expiresAt", "projects", "worker", "kinds",
                       "max", "waitMs", "results", "token", "epoch", "output", "value", "error", "code", "logs", "lines", "tokens", "from",
                       "request", "text", "fromSeq", "changes", "a", "seq", "data", "stream", "slots"])


def start_body(rnd):
    step = rnd.choice([[{"stepId": "a", "kind": "noop"}], [kit.shell("a", "echo hi; sleep 0.05")],
                       [kit.shell("a", "sleep 5"), {"stepId": "b", "kind": "noop", "dependsOn": ["a"]}],
                       [kit.shell("a", "exit 3")], [kit.shell("a", "head -c 70000 /dev/zero | tr '\\0' x")],
                       [{"stepId": c, "kind": "noop"} for c in "abcdefgh"]])
    body = {"document": kit.plan(step), "runId": rnd.choice(RUNS) if rnd.random() < 0.7 else None}
    if body["runId"] is None:
        del body["runId"]
    if rnd.random() < 0.3:
        body["runRequestId"] = rnd.choice(["q1", "q2", str(uuid.uuid4())])
    if rnd.random() < 0.2:
        body[key(rnd)] = value(rnd)
    return body


def signal_body(rnd):
    body = {"signalType": rnd.choice(TYPES), "signalId": rnd.choice([str(uuid.uuid4()), "11111111-1111-4111-8111-111111111111"]),
            "payload": rnd.choice([{}, {"stepId": "a"}, {"stepId": "a", "force": True}, {"params": {"x": 1}}, value(rnd)])}
    if rnd.random() < 0.5:
        body["reason"] = "fuzz"
    return body


def worker_body(rnd):
    return {"worker": rnd.choice(["w1", "w2"]), "pool": "gpu", "kinds": ["shell"], "max": rnd.choice([0, 1, 50]), "waitMs": rnd.choice([0, 50, 2000]),
            "tokens": [value(rnd)] * rnd.randrange(3), "results": [value(rnd)] * rnd.randrange(3), "logs": [value(rnd)], "slots": 3}


def request(door, rnd):
    path = rnd.choice(ROUTES).replace("{r}", rnd.choice(RUNS)).replace("{u}", rnd.choice([str(uuid.uuid4()), "x"])) + rnd.choice(QUERIES)
    method = rnd.choice(["GET", "GET", "GET", "POST", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"])
    headers, body = [], b""
    roll = rnd.random()
    if roll < 0.25:
        method, path, body = "POST", "/v1/runs", json.dumps(start_body(rnd)).encode()
    elif roll < 0.4:
        method, path, body = "POST", f"/v1/runs/{rnd.choice(RUNS[:24])}/signals", json.dumps(signal_body(rnd)).encode()
    elif roll < 0.5:
        method, path = "POST", "/v1/worker/" + rnd.choice(["poll", "heartbeat", "logs", "complete", "fail"])
        body = json.dumps(worker_body(rnd)).encode()
    elif roll < 0.55:
        method, path = "POST", "/v1/tokens"
        body = json.dumps({"roles": ["Operator"], "name": value(rnd), rnd.choice(["tenantId", "pool", "projects"]): value(rnd)}).encode()
    elif roll < 0.65:
        method, path, headers = "GET", rnd.choice(["/v1/events", f"/v1/runs/{rnd.choice(RUNS[:24])}/events"]), ["Accept: text/event-stream"]
    elif method in ("POST", "PUT", "PATCH"):
        body = json.dumps(value(rnd)).encode() if rnd.random() < 0.8 else rnd.randbytes(rnd.randrange(200))
    if body:
        headers.append(rnd.choice(["Content-Type: application/json"] * 9 + ["Content-Type: text/plain"]))
    if rnd.random() < 0.2:
        headers.append(rnd.choice(["Prefer: wait=1", "Prefer: wait=99999999999999999", "If-Match: \"r-3\"", "If-None-Match: \"r-5\"",
                                   "Last-Event-ID: 3", "Last-Event-ID: -7", "Idempotency-Key: \"q1\"", "Accept: application/x-ndjson"]))
    return door.head(method, path, headers, body=body, token=rnd.random() < 0.97)


def one(door, rnd):
    """A connection: some requests, perhaps pipelined, perhaps cut off in the middle. False: no answer came in time."""
    data = b"".join(request(door, rnd) for _ in range(rnd.choice([1, 1, 1, 2, 5])))
    if rnd.random() < 0.1:
        at = rnd.randrange(len(data))
        data = data[:at] + bytes([rnd.randrange(256)]) + data[at + 1:]
    s = door.connect(20)
    try:
        cut = rnd.random() < 0.25
        s.sendall(data[:rnd.randrange(len(data))] if cut else data)
        if cut:
            if rnd.random() < 0.5:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            return True
        s.settimeout(15)
        got = s.recv(65536)
        if b"text/event-stream" in got and rnd.random() < 0.8:
            s.settimeout(rnd.random() * 0.3)
            try:
                while s.recv(65536):
                    pass
            except TimeoutError:
                pass
        return True
    except TimeoutError:
        print("no answer to", data[:300])
        return False
    except OSError:
        return True
    finally:
        s.close()


def main(url, token, seconds, seed=None):
    door = kit.Door(url, token)
    seed = int(seed) if seed else random.randrange(1 << 30)
    end, silent, sent = time.monotonic() + float(seconds), [], [0]

    def work(number):
        rnd = random.Random(seed * 100 + number)
        while time.monotonic() < end:
            sent[0] += 1
            try:
                if not one(door, rnd):
                    silent.append(1)
            except ConnectionRefusedError:
                silent.append(1)
                print("nobody listens any more")
                return
            except ConnectionError:
                time.sleep(0.01)
            except OSError as e:
                silent.append(1)
                print("connect:", e)
                return

    threads = [threading.Thread(target=work, args=(n,)) for n in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print(f"seed {seed}: {sent[0]} connections, {len(silent)} without an answer")
    sys.exit(1 if silent else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
