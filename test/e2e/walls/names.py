"""names.py URL TOKEN PID ROOT: identifiers that are none (P2), in every place where one is taken; nothing appears outside ROOT, nothing answers 5xx,
headers stay headers, log lines stay lines."""
import itertools, json, os, sys, urllib.parse

import kit

door, checks = kit.Door(*sys.argv[1:4]), kit.Checks()
root = sys.argv[4]
ODD = ["..", "../x", "..%2fx", "%2e%2e/", "%252e%252e%252f", "..\\x", "....//", "/abs", "a/b", "a\0b", ".", "", "~", "-rf", "CON", "a:b", "a" * 256,
       "a" * 5000, "\u002e\u002e", "．．／", "é", "e\u0301", "A", "a.", "a ", " a", "a\nb", "a\tb", "a\r\nSet-Cookie: x=1", "events.jsonl", "lost+found", "a|b",
       "RUN", "😀", "\u202eabc", "\ufeffa", "\u0000", "\x1b[2J", "\x1b]0;t\x07", "/proc/self/root", "a'b", 'a"b', "a;b", "$(id)", "`id`", "{{7*7}}", "%n%s", "<b>",
       "__proto__", "../../store.db", "store.db.token", "journal", "a\u0085b", "a\u2028b"]
PATHS = ["/v1/runs/{}", "/v1/runs/{}/status", "/v1/runs/{}/events", "/v1/runs/r/steps/{}", "/v1/runs/r/steps/{}/logs", "/v1/runs/r/steps/{}/why",
         "/v1/runs/r/signals/{}", "/v1/tokens/{}", "/v1/runs/r/artifacts/{}", "/v1/definitions/{}/versions", "/v1/t/{}/p/default/e/default/runs",
         "/v1/t/default/p/{}/e/default/runs", "/schemas/{}", "/v1/worker/artifacts/{}/x", "/v1/worker/artifacts/x/{}"]


def files():
    """Whatever is beside the store, which has its own directories and files."""
    inside = os.path.join(root, "store.db")
    return {os.path.join(top, n) for top, _, names in os.walk(root) for n in names if not os.path.join(top, n).startswith(inside)}


door.ask("POST", "/v1/runs", {"document": kit.plan(), "runId": "r"}, {"Prefer": "wait=10"}.items())
seen = files()
for name in ODD:
    coded = {urllib.parse.quote(name, safe=""), urllib.parse.quote(name, safe="/%.")}
    for pattern, text in itertools.product(PATHS, coded):
        method = "PUT" if "worker/artifacts" in pattern else "GET"
        found, got = door.send(door.head(method, pattern.format(text), ["Connection: close"]))
        checks.that(len(found) == 1 and found[0] < 500, method, pattern, repr(name)[:40], "answers", found, got[-200:])
        head = got.partition(b"\r\n\r\n")[0]
        checks.that(b"Set-Cookie" not in head and b"root:" not in got, pattern, repr(name)[:40], "gets into the head")
    for field in ("runId", "tenantId", "projectId", "environmentId", "queue", "targetAdapter", "file", "runRequestId"):
        status, headers, text = door.ask("POST", "/v1/runs", {"document": kit.plan(), field: name})
        checks.that(status < 500, field, repr(name)[:40], "answers", status, text[:200])
        checks.that(status < 300 or "code" in json.loads(text), field, repr(name)[:40], "is refused without a code")
        where = headers.get("location", "")
        checks.that(all(32 < ord(c) < 127 for c in where) and ".." not in where and "set-cookie" not in headers, field, repr(name)[:40], "in Location", where)
        if status < 300 and field in ("runId", "projectId", "environmentId") and name:
            checks.that(name.replace(".", "").replace("-", "").replace("_", "").replace(":", "").isascii() and len(name) <= 128, "run id", repr(name)[:40], "is taken")
    for field in ("tenantId", "pool", "name"):
        status, _, text = door.ask("POST", "/v1/tokens", {"roles": ["Operator"], field: name})
        checks.that(status < 500, "token", field, repr(name)[:40], status)
        if status == 201 and field != "name" and name:
            checks.that(name.isascii() and "/" not in name and ".." not in name and len(name) <= 128, "token", field, repr(name)[:40], "is taken")
    step = {"stepId": name, "kind": "noop"}
    status, _, text = door.ask("POST", "/v1/plans:validate", {"document": kit.plan([step])})
    checks.that(status < 500, "step", repr(name)[:40], status)
checks.that(files() == seen, "files appeared:", files() - seen)
for text in (door.ask("GET", p)[2].decode() for p in ("/v1/audit?limit=500", "/v1/runs?limit=500", "/v1/tokens")):
    json.loads(text)
log = open(os.path.join(root, "serve.err"), "rb").read()
checks.that(all(c == 10 or c >= 32 for c in log), "control characters in the log")
checks.that(b"Set-Cookie" not in log, "lines of callers in the log")
checks.end(1000)
