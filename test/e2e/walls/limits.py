"""limits.py URL TOKEN PID: each limit of reliability §4.4 one below, at, one above it, and far above; memory stays within bounds."""
import json, socket, sys, time

import kit

door, checks = kit.Door(*sys.argv[1:4]), kit.Checks()
before = door.rss()
CLOSE = ["Connection: close"]


def status(data):
    found, _ = door.send(data)
    return found[0] if found else None


def edge(name, make, limit, fine, refused, far=1000):
    for size in (limit - 1, limit, limit + 1, limit * far):
        got = status(make(size))
        checks.that(got in (fine if size <= limit else refused), name, size, "answers", got)
    checks.that(door.rss() - before < 200, name, "costs", door.rss() - before, "MiB")


def line(size):
    return door.head("GET", "/v1/runs/" + "a" * (size - len("GET /v1/runs/ HTTP/1.1")), CLOSE)


def header(size):
    return door.head("GET", "/v1/whoami", CLOSE + ["X: " + "a" * (size - 3)])


def count(size):  # Host, Authorization and Connection are three
    return door.head("GET", "/v1/whoami", CLOSE + [f"X{i}: y" for i in range(size - 3)])


def block(size):
    fixed = len(door.head("GET", "/v1/whoami", CLOSE)) - 2
    pieces, left = [], size - fixed - 2
    while left > 0:
        take = min(left, 4000)
        if 0 < left - take < 6:
            take -= 6
        pieces.append("X: " + "a" * (take - 5))
        left -= take
    return door.head("GET", "/v1/whoami", CLOSE + pieces)


def body(path, size, method="POST"):
    text = b'{"x":"' + b"a" * (size - 8) + b'"}'
    return door.head(method, path, CLOSE + ["Content-Type: application/json"], body=text)


edge("request line", line, 8 * 1024, [404], [414], 10)
edge("one header", header, 8 * 1024, [200], [431], 10)
edge("headers", count, 64, [200], [431], 10)
edge("header block", block, 16 * 1024, [200, 431], [431], 10)
edge("body", lambda n: body("/v1/tokens", n), 1 << 20, [400], [413], 20)
edge("body of a signal", lambda n: body("/v1/runs/none/signals", n), 64 << 10, [400, 404], [413], 100)
edge("body of a start", lambda n: body("/v1/runs", n), 8 << 20, [400], [413], 2)


def start(text):
    return door.head("POST", "/v1/runs", CLOSE + ["Content-Type: application/json"], body=text.encode())


def shape(name, make, limit, far=10):
    # Inside the limit the body is read, and refused for what it says; beyond it, for what it is.
    for size in (limit - 1, limit, limit + 1, limit * far):
        got = door.send(start(make(size)))[1]
        over = b"too " in got or b"deep" in got or b"limit" in got.lower() or b"BODY_TOO_LARGE" in got
        checks.that(over == (size > limit), "JSON", name, size, got[-220:])
        checks.that(got[9:12] in (b"400", b"413"), "JSON", name, size, got[:30])


shape("depth", lambda n: '{"x":' + "[" * (n - 1) + "]" * (n - 1) + "}", 64, 1000)
shape("string", lambda n: '{"x":"' + "a" * n + '"}', 1 << 20, 4)
shape("keys", lambda n: "{" + ",".join(f'"k{i}":1' for i in range(n)) + "}", 10000, 5)
shape("number", lambda n: '{"x":0.' + "1" * n + "}", 4300)  # significant digits
shape("nodes", lambda n: '{"x":[' + ",".join("1" * (n - 2)) + "]}", 100000, 5)


def plan(steps, edges=0):
    made = [{"stepId": f"s{i}", "kind": "noop"} for i in range(steps)]
    for i in range(edges):
        made[steps - 1 - i // 250].setdefault("dependsOn", []).append(f"s{i % 250}")
    return json.dumps({"document": kit.plan(made)})


for steps, want in ((9999, (200,)), (10000, (200,)), (10001, (400, 413, 422))):
    got = status(door.head("POST", "/v1/plans:validate", CLOSE + ["Content-Type: application/json"], body=plan(steps).encode()))
    checks.that(got in want, steps, "steps answer", got)

# ---- connections of one address: 256, the next is turned away, and room comes back
held = [door.connect() for _ in range(256)]
held[-1].sendall(door.head("GET", "/livez"))
checks.that(held[-1].recv(100).startswith(b"HTTP/1.1 200"), "connection 256 is not served")  # and all before it were let in
extra = door.connect()
extra.sendall(door.head("GET", "/livez"))
checks.that(extra.recv(100).startswith(b"HTTP/1.1 429"), "connection 257 is let in")
extra.close()
held[0].sendall(door.head("GET", "/livez"))
checks.that(held[0].recv(100).startswith(b"HTTP/1.1 200"), "connection 1 is not served")
for s in held:
    s.close()
until = time.monotonic() + 30
while not door.alive() and time.monotonic() < until:
    time.sleep(0.02)
checks.that(door.alive(), "no room comes back")

# ---- streams of one token: 16, also when forty are asked for at once
streams = [door.connect() for _ in range(40)]
for s in streams:
    s.sendall(door.head("GET", "/v1/events", ["Accept: text/event-stream"]))
codes = [s.recv(200)[9:12] for s in streams]
checks.that(codes.count(b"200") == 16 and codes.count(b"429") == 24, "streams:", codes)
for s in streams:
    s.close()

# ---- ten thousand requests sent ahead on one connection: all answered, in order, within bounds
s = door.connect(60)
s.settimeout(60)
import threading
one = door.head("GET", "/livez")
threading.Thread(target=lambda: s.sendall(one * 9999 + door.head("GET", "/livez", CLOSE)), daemon=True).start()
got, size = 0, 0
tail = b""
while True:
    piece = s.recv(1 << 20)
    if not piece:
        break
    joined = tail + piece
    got += joined.count(b"HTTP/1.1 200 OK\r\n")
    tail = joined[-16:] if not joined.endswith(b"HTTP/1.1 200 OK\r\n") else b""
checks.that(got == 10000, "pipelined:", got)
checks.that(door.rss() - before < 200, "all of it costs", door.rss() - before, "MiB")
print("memory:", before, "MiB before,", door.rss(), "MiB after")
checks.end(60)
