"""world.py URL TOKEN PID: makes two tenants with everything that the matrix asks for, then asks for all of it (test/e2e/matrix).

Every request must have a route of the server's, and every signal a type that it knows."""
import json, os, sys, time, uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "matrix"))
import expect as matrix, kit, requests

# Conditions that cannot hold for a caller who has only a token: nobody approved the plan, nobody holds a task or agreed.
UNMET = ["approved_plan", "own_task", "two_person"]
PLACES = {"own": ("acme", "web", "prod"), "own_limited": ("acme", "web", "prod"), "other_project": ("acme", "shop", "prod"),
          "other_environment": ("acme", "web", "dev"), "other_tenant": ("rival", "web", "prod"), "absent": ("acme", "web", "prod")}
SOON_MS = 3000


def in_ms(ms):
    t = time.time() + ms / 1000
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(t)) + ".%03dZ" % (t % 1 * 1000)


class Maker:
    def __init__(self, door):
        self.door = door

    def must(self, method, path, body, token=None, want=(200, 201, 202, 204)):
        status, _, text = self.door.ask(method, path, body, token=token)
        if status not in want:
            raise SystemExit(f"{method} {path}: {status} {text[:300]}")
        return json.loads(text) if text else {}

    def token(self, roles, tenant="acme", **more):
        made = self.must("POST", "/v1/tokens", {"roles": roles, "tenantId": tenant, **more})
        return made["token"], made["id"]

    def states(self, role, **more):
        if role in ("worker", "host"):
            more["pool"] = "gpu"
        made = {"valid": self.token([role], **more)[0], "expired": self.token([role], expiresAt=in_ms(SOON_MS), **more)[0],
                "wrong_audience": self.token([role], audience="elsewhere", **more)[0]}
        made["revoked"], self.last = self.token([role], **more)
        self.must("DELETE", "/v1/tokens/" + self.last, None, token=self.admin)
        return made

    def place(self, name):
        tenant, project, environment = PLACES[name]
        here = f"/v1/t/{tenant}/p/{project}/e/{environment}"
        ids = {"tenant": tenant, "project": project, "environment": environment, "step": "first", "approval": "first", "pool": "gpu"}
        for word in ("task", "queue", "sink", "dlq", "alert"):
            ids[word] = "none-" + word
        if name == "absent":
            return {**ids, "run": "absent", "schedule": "absent", "event": "absent", "plan": "absent", "sha256": "0" * 64, "token": "0123456789abcdef"}
        engineer = self.token(["engineer"], tenant)[0]
        run = self.must("POST", here + "/runs", {"document": kit.plan([kit.shell("first", "echo hi"), kit.shell("then", "exec sleep 300", ["first"])])}, engineer)["runId"]
        text = kit.plan([{"stepId": name, "kind": "noop"}], "kept")
        sha = __import__("hashlib").sha256(text.encode()).hexdigest()
        self.must("PUT", f"{here}/definitions/kept/versions/{sha}", text, engineer)
        self.must("PUT", f"{here}/schedules/{name}", {"document": text, "schedule": {"cron": "@yearly"}}, engineer)
        self.must("POST", here + "/events", {"name": "matrix", "id": name}, engineer)
        spare = self.token(["operator"], tenant, projects=[project], environments=[environment])[1]
        return {**ids, "run": run, "schedule": name, "event": name, "plan": "kept", "sha256": sha, "token": spare}

    def world(self):
        self.admin = self.token(["admin", "platform"])[0]
        limits = {"projects": ["web"], "environments": ["prod"]}
        tokens = {}
        for role in matrix.PRINCIPALS[1:]:
            free, limited = self.states(role), self.states(role, **limits)
            tokens[role] = {"any": free, **{p: limited for p in ("own_limited", "other_project", "other_environment")}}
        made = {"tokens": tokens, "places": {name: self.place(name) for name in PLACES}, "unmet": UNMET}
        made["places"]["own_limited"] = dict(made["places"]["own"], token=made["places"]["own_limited"]["token"])
        return made


def unknown_to(door):
    """Operations that the server has no door for: no route by its own description, or a signal of a type that it does not know."""
    absent = set(requests.without_door(json.loads(door.ask("GET", "/openapi.json")[2]), requests.routes()))
    for name, route in requests.routes().items():
        if route and route["path"].endswith("/signals") and route["method"] == "POST":
            body = requests.fill(route["body"], {"uuid": uuid.uuid4(), "step": "first", "approval": "first"})
            status, _, text = door.ask("POST", "/v1/runs/none/signals", requests.with_reason(route, "", body, "why")[1])
            if status == 400 and json.loads(text).get("code") == "SIGNAL_INVALID_PAYLOAD" and "signalType" in text.decode():
                absent.add(name)
    return absent


def main(url, token, pid):
    door = kit.Door(url, token, pid)
    absent = unknown_to(door)
    if absent:
        raise SystemExit(f"no such door: {sorted(absent)}")
    made = Maker(door).world()
    time.sleep(SOON_MS / 1000 + 0.1) # counted from the last token that was made
    json.dump(made, open("world.json", "w"))
    right = requests.drive(made, url, set())
    for place in ("own", "other_project", "other_environment", "other_tenant"):
        door.ask("POST", f"/v1/runs/{made['places'][place]['run']}/signals", {"signalType": "CANCEL", "signalId": str(uuid.uuid4()), "payload": {}})
    sys.exit(0 if right else 1)


main(*sys.argv[1:4])
