#!/usr/bin/env python3
"""Every command that can be for a server, as every role of a tenant: it is denied (exit 4) exactly when the matrix denies what it needs,
and shows no canary to a role that may not see payloads.
    roles.py CAIRN URL ADMIN_TOKEN SOURCES
"""
import hashlib
import json
import os
import re
import subprocess
import sys
import urllib.request

CAIRN, URL, ADMIN, SOURCES = sys.argv[1:5]
CANARY = "canary7f31"
OK, USAGE, DENIED, MISSING, WAITS, FAILED = 0, 2, 4, 5, 13, 10
MATRIX = {row["name"]: row["roles"] for row in json.load(open(f"{SOURCES}/schemas/authorization.json"))["operations"]}
ROLES = ["operator", "engineer", "admin", "system", "auditor", "worker"]

# command: (arguments, operations that it needs, exit when they are allowed). RUN waits for an approval of its step "ask", DONE and
# FAILED have ended; each signal gets a run of its own.
COMMANDS = {
    "render": ("DONE/a", ["run.payload"], OK),
    "graph": ("RUN", ["run.events", "plan.get"], OK),
    "test record": ("DONE", ["step.output"], OK),
    "run": ("plan.json --detach", ["run.start"], OK),
    "recover": ("", None, USAGE),
    "ls": ("", ["run.list"], OK),
    "ps": ("", ["run.list", "run.events"], OK),
    "inbox": ("", ["run.list", "run.events"], OK),
    "get": ("RUN", ["run.get", "run.events"], OK),
    "logs": ("DONE", ["step.logs"], OK),
    "events": ("FAILED --raw --ledger", ["run.events"], OK),
    "trace": ("FAILED", ["run.events"], OK),
    "why": ("FAILED", ["run.why"], OK),
    "diff": ("DONE DONE", ["step.output"], OK),
    "watch": ("RUN --exit-on-wait --progress plain", ["run.events"], WAITS),
    "top": ("RUN", ["run.get"], USAGE),  # without a terminal
    "wait": ("DONE", ["run.get"], OK),
    "artifacts ls": ("DONE", ["artifact.get"], OK),
    "artifacts cat": ("DONE note.txt", ["artifact.get"], OK),
    "artifacts get": ("DONE --out copy --force", ["artifact.get"], OK),
    "pause": ("OWN", ["signal.pause"], OK),
    "resume": ("PAUSED", ["signal.resume"], OK),
    "cancel": ("OWN", ["signal.cancel"], OK),
    "cancel --emergency": ("OWN --reason x", ["signal.emergency_stop"], OK),
    "retry": ("HELD/b", ["signal.retry_step"], OK),
    "rerun": ("DONE --detach", ["run.fork"], OK),
    "fork": ("DONE@3 --detach", ["run.fork"], OK),
    "skip": ("HELD/b", ["signal.skip_step"], OK),
    "approve": ("OWN/ask", ["approval.decide"], OK),
    "reject": ("OWN/ask --reason x", ["approval.decide"], OK),
    "signal": ("OWN PAUSE", ["signal.pause"], OK),
    "log verify": ("FAILED", ["run.events"], OK),
    "audit verify": ("", ["audit.verify"], OK),
    "log replay": ("DONE", ["store.read"], OK),
    "log export": ("DONE --out bundle.ROLE", ["run.bundle"], OK),
    "log import": ("bundle", None, USAGE),
    "store stat": ("", None, USAGE),
    "store gc": ("--keep 1d", None, USAGE),
    "store backup": ("copy.db", None, USAGE),
    "store restore": ("copy.db", None, USAGE),
    "store migrate": ("", None, USAGE),
    "doctor": ("server", ["discovery"], OK),
    "config list": ("", [], OK),
    "context add": ("ROLE --server http://127.0.0.1:1", [], OK),
    "context test": ("", ["discovery"], OK),
    "whoami": ("", ["discovery"], OK),
    "token ls": ("", ["token.list"], OK),
    "token new": ("ROLE --role Operator", ["token.create"], OK),
    "token revoke": ("TOKEN", ["token.revoke"], OK),
    "token rotate": ("TOKEN", ["token.list", "token.create", "token.revoke"], OK),
    "schedule ls": ("", ["schedule.list"], OK),
    "schedule add": ("s plan.json --cron @daily", ["schedule.create"], OK),
    "schedule get": ("s", ["schedule.list"], OK),
    "schedule next": ("s", ["schedule.list"], OK),
    "schedule ticks": ("s", ["schedule.list"], OK),
    "schedule pause": ("s", ["schedule.create"], OK),
    "schedule resume": ("s", ["schedule.create"], OK),
    "schedule trigger": ("s", ["run.start"], OK),
    "schedule backfill": ("s --since 2026-02-01T00:00:00 --until 2026-02-02T00:00:00 --dry-run", ["schedule.create"], OK),
    "schedule rm": ("s", ["schedule.delete"], OK),
    "bulk": ("retry run=nobody --yes", ["run.list"], OK),
    "mcp": ("", [], OK),
    "event send": ("walk.of.roles", ["event.send"], OK),
    "event ls": ("", ["event.list"], OK),
    "queue ls": ("", ["queue.list"], OK),
    "queue get": ("default", ["queue.list"], OK),
    "queue set": ("q --set maxRunning=3", ["queue.change"], OK),
    "queue pause": ("q", ["queue.change"], OK),
    "queue resume": ("q", ["queue.change"], OK),
    "queue rm": ("q", ["queue.change"], OK),
    "limits get": ("", ["limit.list"], OK),
    "limits set": ("--set startsPerSecond=0", ["limit.change"], OK),
    "limit ls": ("", ["limit.list"], OK),
    "limit get": ("pay", ["limit.list"], MISSING),
    "limit set": ("pay --set concurrency=0", ["limit.change"], OK),
    "limit rm": ("pay", ["limit.change"], OK),
    "worker ls": ("", ["worker.list"], OK),
    "outbox ls": ("", ["outbox.list"], OK),
    "outbox rewind": ("s --set position=1 --reason x", ["outbox.rewind"], MISSING),
    "dlq ls": ("", ["dlq.list"], OK),
    "dlq redrive": ("--all s --reason x", ["dlq.replay"], MISSING),
    "dlq drop": ("s.1 --reason x", ["dlq.drop"], MISSING),
    "alert ls": ("", ["alert.list"], OK),
    "alert ack": ("none", ["alert.ack"], MISSING),
    "definition ls": ("", ["plan.list"], OK),
    "definition get": ("plan SHA", ["plan.get"], OK),
    "definition put": ("plan plan.json", ["plan.register"], OK),
    "definition run": ("plan --detach", ["plan.list", "run.start"], OK),
    "definition approve": ("plan SHA", ["plan.approve"], OK),
    "logout": ("", [], OK),
}
SPELLED = {"cancel --emergency"}  # rows for another operation of a command


def allowed(role, operations):
    """Whether the matrix lets the role do all of that to a run of its tenant that an admin started from a document nobody approved,
    and of which it holds no task."""
    return all(role in MATRIX[o] and not {"approved_plan", "own_task"} & set(MATRIX[o][role]) for o in operations)


def redacted(role):
    return "redacted" in MATRIX["run.get"].get(role, ["redacted"])


def new_token(role):
    body = {"roles": [role], **({"pool": "p"} if role == "worker" else {})}
    request = urllib.request.Request(f"{URL}/v1/tokens", json.dumps(body).encode(), {"Authorization": f"Bearer {ADMIN}", "Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))


def cairn(token, words):
    environment = {**os.environ, "CAIRN_SERVER": URL, "CAIRN_TOKEN": token}
    done = subprocess.run([CAIRN, *words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    return done.returncode, done.stdout.decode(errors="replace")


def must(words, *exits):
    code, said = cairn(ADMIN, words)
    if code not in (exits or (OK,)):
        sys.exit(f"cairn {' '.join(words)}: exit {code}: {said}")


def begin(document, run, until):
    must(["run", document, "--run-id", run, "--detach", "--set", f"word={CANARY}"])
    must(["wait", run, "--timeout", "60s", *until], OK, FAILED)


def documents():
    """What a document says is no payload (plan.get), so the canary comes with the inputs."""
    make = {"stepId": "a", "kind": "shell", "with": {"command": "echo $INPUTS.word; echo $INPUTS.word >$ARTIFACTS_DIR/note.txt"},
            "artifacts": [{"path": "note.txt", "kind": "text"}]}
    ask = {"stepId": "ask", "kind": "approval", "dependsOn": ["a"], "with": {"message": "Go with $a.output?"}}
    bad = {"stepId": "b", "kind": "shell", "dependsOn": ["a"], "with": {"command": "echo $a.output >&2; exit 3"}}
    for name, steps in {"done": [make], "waits": [make, ask], "plan": [make], "fails": [make, bad], "held": [make, {**bad, "onStepFailure": "hold"}]}.items():
        plan = {"metadata": {"planId": name, "planVersion": "1", "schemaVersion": "v1.2"}, "inputs": {"word": {"type": "string", "default": ""}}, "steps": steps}
        json.dump(plan, open(f"{name}.json", "w"))


def table_of_commands():
    """Names of the commands that take --server, from the table that the program is made of."""
    text = re.sub(r"//.*", "", open(f"{SOURCES}/src/cli/command_list.h").read())
    rows = re.findall(r'(?:COMMAND|SPELLING)\("\w*", \w+, "([^"]+)"(.*?)\)\n', text, re.S)
    return {name for name, rest in rows if re.search(r"STORE_FLAGS|SERVER_FLAGS|FLAG_SERVER", rest)}


def main():
    faults, walked = [], 0
    known = table_of_commands()
    listed = (set(COMMANDS) - SPELLED) | {"worker", "host conductor", "login", "ui", "equiv"}  # a worker and a host have calls of their own, equiv has stores of its own, who signs in has no role yet, a page has its own walk
    if known != listed:
        sys.exit(f"the walk is not the table of commands: {sorted(known ^ listed)}")
    documents()
    os.environ["XDG_CONFIG_HOME"] = os.getcwd()
    begin("done.json", "done", [])
    begin("fails.json", "failed", [])
    must(["log", "export", "done", "--out", "bundle"])
    begin("waits.json", "waits", ["--for", "step/ask=running"])
    must(["definition", "put", "plan", "plan.json"])
    sha = hashlib.sha256(open("plan.json", "rb").read()).hexdigest()
    for role in ROLES:
        token = new_token(role)["token"]
        for number, (command, (arguments, operations, good)) in enumerate(COMMANDS.items()):
            own = f"{role}-{number}"
            if "OWN" in arguments or "PAUSED" in arguments:
                begin("waits.json", own, ["--for", "step/ask=running"])
            if "PAUSED" in arguments:
                must(["pause", own])
            if "HELD" in arguments:
                begin("held.json", own, ["--for", "step/b=failed"])
            token_id = new_token("operator")["id"] if "TOKEN" in arguments else ""
            if command.startswith("schedule "):
                must(["schedule", "add", "s", "plan.json", "--cron", "@daily"])
            if command.startswith("queue "):
                must(["queue", "set", "q", "--set", "maxRunning=2"])
            for name, run in {"ROLE": role, "TOKEN": token_id, "SHA": sha, "RUN": "waits", "DONE": "done", "FAILED": "failed", "OWN": own, "PAUSED": own, "HELD": own}.items():
                arguments = re.sub(rf"\b{name}\b", run, arguments)
            code, said = cairn(token, command.split() + arguments.split())
            wanted = good if operations is None or allowed(role, operations) else DENIED
            walked += 1
            if code != wanted:
                faults.append(f"{role}: cairn {command} {arguments}: exit {code}, not {wanted}: {' '.join(said.split())[:300]}")
            if redacted(role) and CANARY in said:
                faults.append(f"{role}: cairn {command} {arguments} shows what the run was about: {' '.join(said.split())[:300]}")
    print("\n".join(faults))
    print(f"{walked} commands walked", file=sys.stderr)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
