"""What the storms have in common: the plan that they run and the marks that its steps leave outside, calls over HTTP, and what must hold
for every run, whatever was shot while it ran. Standard library only."""
import http.client, json, shutil, sys

from sinks import free_port  # noqa: F401, for whoever storms

# A line for each execution of a step, written where nothing of Cairn can change it.
MARK = 'echo "$CAIRN_RUN_ID $CAIRN_STEP_ID $CAIRN_ATTEMPT $CAIRN_ENGINE_ATTEMPT" >> "%s"'
GONE = (OSError, http.client.HTTPException, json.JSONDecodeError)
BUSY = (429, 503, 504)  # asked again
ENDS = ("RunCompleted", "RunFailed", "RunCancelled")
STEPS = "abcd"
# A result that waits for its store for longer than the write budget fails its attempt, and the retry policy goes on from there (ES-5c). That
# happens when a database is shot on a busy machine: steps may be tried again, and what else fails them is a fault.
AGAIN = {"retry": {"maxAttempts": 5, "delay": "5ms"}}
FAILURES = ("EXIT_NONZERO", "STATE_STORE_WRITE_BUDGET_EXCEEDED")


def call(host, port, token, method, path, body, timeout=30, headers=None):
    connection = http.client.HTTPConnection(host, port, timeout=timeout)
    try:
        connection.request(method, path, json.dumps(body), {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text[:1] in (b"{", b"[") else None
    finally:
        connection.close()


# ---- plans
def document(name, steps):
    return json.dumps({"metadata": {"planId": name, "planVersion": "1", "schemaVersion": "v1.2"}, "steps": steps})


def shell(effects, step, command, deps, **more):
    return {"stepId": step, "kind": "shell", "with": {"command": MARK % effects + "; " + command}, "dependsOn": deps, **more}


def storm_plan(effects):
    """One step before two others, one of which fails once, and a step that gathers them."""
    return document("storm", [
        shell(effects, "a", "sleep 0.05; echo one", [], **AGAIN),
        shell(effects, "b", "test $CAIRN_ATTEMPT -ge 2", ["a"], **AGAIN),
        shell(effects, "c", "test $a.output = one", ["a"], **AGAIN),
        {"stepId": "d", "kind": "merge", "dependsOn": ["b", "c"]}])


# ---- what must hold
def read_effects(path):
    """Executions by run: (step, logical attempt, attempt of the engine)."""
    effects = {}
    for line in open(path):
        run, step, logical, engine = line.split()
        effects.setdefault(run, []).append((step, int(logical), int(engine)))
    return effects


def check_starts(history, runs):
    """history: (request, what, run). Every acknowledged start is one run, and no run came from nowhere. Yields (kind, what)."""
    started, seen = {}, {}
    for request, what, run in history:
        if what != "ok":
            yield "refused", f"{request}: {what}"
        elif run is None or run not in runs:
            yield "lost", f"acknowledged and lost: {request} {run}"
        elif started.setdefault(request, run) != run:
            yield "doubled-run", f"one request, two runs: {request}"
        elif seen.setdefault(run, request) != request:
            yield "doubled-run", f"two requests, one run: {run}"
    if len(runs) != len(seen):  # a start whose answer was lost is answered when it is asked again
        yield "doubled-run", f"{len(runs)} runs were stored, {len(seen)} acknowledged"


def check_run(events, effects, steps=STEPS):
    """One run that must have completed. Yields (kind, what)."""
    if [e["runSeq"] for e in events] != list(range(1, len(events) + 1)):
        yield "gap", "numbers have gaps"
    ends = [e["eventType"] for e in events if e["eventType"] in ENDS]
    if not ends:
        yield "stuck", "has not ended"
    elif ends != ["RunCompleted"] or events[-1]["eventType"] != "RunCompleted":
        yield "end", f"ended as {ends}"
    ordered = {(e["stepId"], e["logicalAttemptId"], e["engineAttemptId"]) for e in events if e["eventType"] in ("StepStarted", "StepRedispatched")}
    if not set(effects) <= ordered:
        yield "effect-without-event", f"ran without an event: {sorted(set(effects) - ordered)} (I11)"
    if len(set(effects)) != len(effects):
        yield "doubled-effect", f"one attempt ran twice: {sorted(effects)} (I13)"
    for e in events:
        if e["eventType"] == "StepFailed" and e["payload"].get("errorCode") not in FAILURES:
            yield "end", f"{e['stepId']} failed: {e['payload'].get('errorCode')}"
    for step in steps:
        mine = [e for e in events if e.get("stepId") == step]
        done = [i for i, e in enumerate(mine) if e["eventType"] == "StepCompleted"]
        if ends and (len(done) != 1 or done[0] != len(mine) - 1):
            yield "doubled-effect" if len(done) > 1 else "end", f"{step} completed {len(done)} times, or went on (I12)"
        outcomes = [e["logicalAttemptId"] for e in mine if e["eventType"] in ("StepCompleted", "StepFailed", "StepSkipped")]
        if len(set(outcomes)) != len(outcomes):
            yield "doubled-effect", f"two outcomes of one attempt of {step} (I14)"
        if done and step != "d" and not [e for e in effects if e[0] == step]:
            yield "lost-effect", f"{step} completed and never ran"


def tell(name, faults, told, directory, keep, needed=False):
    """The verdict. needed: whoever called goes on with the directory, and removes it."""
    for fault in faults[:20]:
        print("  " + fault, file=sys.stderr)
    print(f"{'not ok' if faults else 'ok'} {name}{': ' + str(len(faults)) + ' faults' if faults else ''} ({told})")
    if faults or keep:
        print("  kept: " + directory, file=sys.stderr)
    elif not needed:
        shutil.rmtree(directory)
    return 1 if faults else 0
