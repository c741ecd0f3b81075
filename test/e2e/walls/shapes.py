"""shapes.py URL TOKEN PID: every member of the bodies that are taken, as every type that it is not: an answer each time, never a 5xx."""
import itertools, json, sys

import kit

door, checks = kit.Door(*sys.argv[1:4]), kit.Checks()
ODD = [None, True, 0, -1, 2**63, 1.5, "", "x", [], [1], [[]], [{}], {}, {"a": 1}, {"from": "x", "text": {}}]
BODIES = {
    ("POST", "/v1/runs"): (["document", "file", "parts", "planRef", "context", "inputs", "input", "arguments", "runRequestId", "queue",
                            "projectId", "environmentId", "runId", "targetAdapter", "tenantId", "triggerSource"], {"document": kit.plan()}),
    ("POST", "/v1/plans:validate"): (["document", "file", "parts"], {"document": kit.plan()}),
    ("POST", "/v1/plans:graph"): (["document", "file", "parts"], {"document": kit.plan()}),
    ("POST", "/v1/tokens"): (["name", "tenantId", "roles", "projects", "environments", "pool", "expiresAt"], {"roles": ["Operator"]}),
    ("POST", "/v1/runs/none/signals"): (["signalType", "signalId", "payload", "reason"], {"signalType": "PAUSE", "payload": {}}),
    ("POST", "/v1/worker/poll"): (["worker", "pool", "kinds", "max", "waitMs"], {}),
    ("POST", "/v1/worker/heartbeat"): (["worker", "pool", "tokens", "tasks"], {}),
    ("POST", "/v1/worker/complete"): (["worker", "results"], {}),
    ("POST", "/v1/worker/logs"): (["worker", "logs"], {}),
}
for (method, path), (members, whole) in BODIES.items():
    for member, value in itertools.product(members, ODD):
        status, _, text = door.ask(method, path, {**whole, member: value})
        checks.that(status < 500 and status != 0, method, path, member, json.dumps(value), "answers", status, text[:200])
        if status >= 400:
            checks.that("code" in json.loads(text), path, member, "is refused without a code")
    for body in (b"", b"[]", b"1", b"null", b'"x"', b"{", b'{"a":1,"a":2}', b"\xff", b'{"a":"\\ud800"}', b"{}" * 2, b"[" * 5000):
        status, _, text = door.ask(method, path, body)
        checks.that(400 <= status < 500, method, path, body[:20], "answers", status)
checks.end(500)
