"""waiters.py URL TOKEN PID: leaves calls of every kind that waits, makes the file `waiting`, and wants each of them to come to an end."""
import json, sys, threading

import kit

door, checks = kit.Door(*sys.argv[1:4]), kit.Checks()
_, _, made = door.ask("POST", "/v1/tokens", {"roles": ["Worker"], "pool": "p"})
worker = json.loads(made)["token"]
door.ask("POST", "/v1/runs", {"document": kit.plan([kit.shell("a", "sleep 1")]), "runId": "r"})
WAITING = [("GET", "/v1/runs/r/events?after=50&wait=1", b"", [], door.token)] * 3
WAITING += [("GET", "/v1/runs/r/events", b"", ["Accept: text/event-stream"], door.token)] * 3
WAITING += [("GET", "/v1/events", b"", ["Accept: text/event-stream"], door.token)] * 3
WAITING += [("POST", "/v1/worker/poll", json.dumps({"worker": "w", "waitMs": 1000, "max": 1}).encode(), ["Content-Type: application/json"], worker)] * 3
WAITING += [("POST", "/v1/runs", json.dumps({"document": kit.plan([kit.shell("a", "sleep 1")])}).encode(),
             ["Content-Type: application/json", "Prefer: wait=1"], door.token)] * 3
started = threading.Barrier(len(WAITING) + 1)


def wait(method, path, body, headers, token):
    s = kit.Door(sys.argv[1], token).connect(60)
    s.sendall(kit.Door(sys.argv[1], token).head(method, path, headers, body=body))
    started.wait()
    try:
        while s.recv(65536):
            pass
        checks.that(True)
    except ConnectionError:
        checks.that(True)
    except TimeoutError:
        checks.that(False, method, path, "is still waiting")


threads = [threading.Thread(target=wait, args=w) for w in WAITING]
for t in threads:
    t.start()
started.wait()
threading.Event().wait(0.5)
open("waiting", "w").close()
for t in threads:
    t.join()
checks.end(len(WAITING))
