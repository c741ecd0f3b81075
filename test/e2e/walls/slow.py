"""slow.py URL TOKEN PID: clients that send or read as slowly as they can, many at once; others are served meanwhile."""
import json, socket, sys, time

import kit

door, checks = kit.Door(*sys.argv[1:4]), kit.Checks()
steps = [kit.shell("a", "head -c 60000 /dev/zero | tr '\\0' x")] + [{"stepId": f"n{i}", "kind": "echo", "with": {"message": "y" * 30000}} for i in range(100)]
status, _, answer = door.ask("POST", "/v1/runs", {"document": kit.plan(steps), "runId": "big"}, {"Prefer": "wait=30"}.items())
checks.that(status == 200 and json.loads(answer)["status"] == "COMPLETED", "a document of 3 MiB is not run:", status, answer[:300])
before = door.rss()
half_open = [door.connect() for _ in range(100)]
for s in half_open[:50]:
    s.sendall(b"GET /v1/whoami HTTP/1.1\r\nHost: ")
for s in half_open[50:]:
    s.sendall(door.head("POST", "/v1/runs", ["Content-Type: application/json"], body=b"x" * 1000)[:-900])
lazy = socket.socket()
lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
lazy.connect((door.host, door.port))
lazy.sendall(door.head("GET", "/v1/runs/big/events", ["Accept: text/event-stream"]))
began = time.monotonic()
for _ in range(50):
    checks.that(door.ask("GET", "/v1/whoami")[0] == 200, "others are not served")
checks.that(time.monotonic() - began < 20, "others wait for the slow", time.monotonic() - began)
eager = door.connect(20)
eager.sendall(door.head("GET", "/v1/runs/big/events", ["Accept: text/event-stream"]))
whole = b""
while b"event: end" not in whole:
    piece = eager.recv(65536)
    if not piece:
        break
    whole += piece
checks.that(b"event: end" in whole, "a reader that reads does not get to the end:", len(whole), "bytes")
checks.that(whole.count(b"\nid: ") > 200, "a reader that reads misses events:", whole.count(b"\nid: "))
# The slow one gets everything as well, in its time.
lazy.settimeout(20)
slowly = b""
while b"event: end" not in slowly:
    piece = lazy.recv(16384)
    if not piece:
        break
    slowly += piece
checks.that(b"event: end" in slowly and slowly.count(b"\nid: ") == whole.count(b"\nid: "), "a slow reader loses events:", slowly.count(b"\nid: "), whole.count(b"\nid: "))
checks.that(door.rss() - before < 64, "slow clients cost", door.rss() - before, "MiB")
# Heads and bodies that never come are given up after five seconds.
half_open[0].settimeout(9)
half_open[60].settimeout(9)
for s in (half_open[0], half_open[60]):
    try:
        checks.that(s.recv(100).startswith(b"HTTP/1.1 408"), "no 408")
    except TimeoutError:
        checks.that(False, "still waiting for the rest")
checks.end(10)
