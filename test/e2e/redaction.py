"""Plants a canary wherever a run takes what people or programs wrote, then reads every GET route as every role.
    redaction.py URL ADMIN_TOKEN [--shape]
Roles whose cells of the matrix say "redacted" must see none of the canaries; an Engineer must see each of them somewhere, so that
none is planted in vain. --shape prints the members of all answers, and in which of them the canaries are, for whoever extends
the table of open members."""
import http.client, json, sys, time, urllib.parse, uuid

url, admin = sys.argv[1], sys.argv[2]
host = url.split("://")[1]
NARROW = ["Operator", "Auditor", "System"]
canaries = []


def canary(what):
    canaries.append(f"canary{len(canaries):02d}{what}")
    return canaries[-1]


def number():
    canaries.append(str(73133700000 + len(canaries)))
    return int(canaries[-1])


def ask(method, path, token, body=None, headers={}, seconds=60):
    link = http.client.HTTPConnection(host, timeout=seconds)
    head = {"Authorization": "Bearer " + token, **headers}
    if body is not None:
        head["Content-Type"] = "application/json"
    link.request(method, path, None if body is None else json.dumps(body), head)
    answer = link.getresponse()
    if answer.getheader("Content-Type", "").startswith("text/event-stream"):
        link.sock.settimeout(1)
        text = b""
        try:
            while b"event: end" not in text and (piece := answer.read1(65536)):
                text += piece
        except TimeoutError:
            pass
    else:
        text = answer.read()
    link.close()
    return answer.status, text.decode(errors="replace")


def token_of(role):
    status, text = ask("POST", "/v1/tokens", admin, {"roles": [role]})
    assert status == 201, text
    return json.loads(text)["token"]


def start(run, document, wait=True, **more):
    status, text = ask("POST", "/v1/runs", admin, {"runId": run, "document": document, **more}, {"Prefer": "wait=30"} if wait else {})
    assert status in (200, 202), (run, status, text)


def until(run, what):
    for _ in range(300):
        status, text = ask("GET", f"/v1/runs/{run}", admin)
        if what(json.loads(text)):
            return
        time.sleep(0.1)
    raise SystemExit(f"run {run} did not get there: {text}")


def signal(run, **body):
    status, text = ask("POST", f"/v1/runs/{run}/signals", admin, {"signalId": str(uuid.uuid4()), "payload": {}, **body})
    assert status in (200, 202), (run, body, status, text)


def plan(*steps, **metadata):
    return json.dumps({"metadata": {"planId": "p", "planVersion": "1", "schemaVersion": "v1.2", **metadata}, "steps": list(steps)})


def shell(step, command, **more):
    return {"stepId": step, "kind": "shell", "with": {"command": command}, "dependsOn": more.pop("after", []), **more}


def plant():
    # a plan: what it was given, gave and wrote
    start("given", plan(shell("a", "echo $INPUTS.word $INPUTS.number; echo $INPUTS.loud >&2"), shell("b", "cat <<X\n$STEPS.a.output\nX", after=["a"])),
          inputs={"word": canary("input"), "number": number(), "loud": canary("stderr")})
    start("failed", plan(shell("a", f"echo $INPUTS.out; echo $INPUTS.err >&2; exit 3"), shell("b", "true", after=["a"])),
          inputs={"out": canary("failedout"), "err": canary("failederr")})
    start("retried", plan(shell("a", "echo $INPUTS.err >&2; exit 3", retryPolicy={"maxAttempts": 2})), inputs={"err": canary("retriederr")})
    start("held", plan(shell("a", "echo $INPUTS.err >&2; exit 3"), onStepFailure="hold"), wait=False, inputs={"err": canary("helderr")})
    until("held", lambda run: canaries[-1] in json.dumps(run))
    # nodes: conditions, gates, values that they compare
    start("gate", "name: g\nnodes:\n  - id: a\n    bash: echo $INPUTS.word\n  - id: ask\n    depends_on: [a]\n    approval: {message: 'Ship $a.output?', timeout: 1h}\n",
          wait=False, inputs={"word": canary("gate")})
    until("gate", lambda run: canaries[-1] in json.dumps(run))
    start("when", "name: w\nnodes:\n  - id: a\n    bash: echo $INPUTS.word\n  - id: b\n    depends_on: [a]\n    when: \"$a.output == 'other'\"\n    bash: echo never\n",
          inputs={"word": canary("atom")})
    # a playbook: workload, arguments, loops, what Python raised
    start("book", json.dumps({"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "b", "path": "b"}, "workload": {"items": [], "word": ""}, "workflow": [
        {"step": "start", "loop": {"in": "{{ items }}", "iterator": "item"}, "tool": {"kind": "python", "input": {"x": "{{ iter.item }}", "w": "{{ word }}"}, "code": "result = {'x': x, 'w': w}"},
         "next": {"arcs": [{"step": "bad", "when": "{{ event.name == 'loop.done' }}"}]}},
        {"step": "bad", "tool": {"kind": "python", "input": {"w": "{{ word }}"}, "code": "raise Exception('it was ' + w)"}}]}),
        inputs={"items": [canary("item"), number()], "word": canary("workload")})
    # an output that is a number, a loop of a plan, what a person was asked for
    start("number", plan(shell("a", "echo $INPUTS.n"), {"stepId": "b", "kind": "echo", "with": {"message": "$STEPS.a.output"}, "dependsOn": ["a"]}), inputs={"n": number()})
    start("skipped", plan(shell("a", "echo $INPUTS.err >&2; exit 3"), onStepFailure="hold"), wait=False, inputs={"err": canary("skippederr")})
    until("skipped", lambda run: canaries[-1] in json.dumps(run))
    signal("skipped", signalType="SKIP_STEP", payload={"stepId": "a", "reason": "known"})
    start("late", plan(shell("a", "echo $INPUTS.err >&2; exec sleep 60", timeout="1s")), inputs={"err": canary("lateerr")})
    start("sql", json.dumps({"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "c", "path": "c"}, "workload": {"word": ""}, "workflow": [
        {"step": "start", "tool": {"kind": "shell", "cmds": ["echo {{ word }} >&2; exit 4"]}}]}), inputs={"word": canary("shellerr")})
    start("policy", json.dumps({"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "d", "path": "d"}, "workload": {"word": ""}, "workflow": [
        {"step": "start", "tool": {"kind": "python", "input": {"w": "{{ word }}"}, "code": "result = {'w': w}"},
         "next": {"arcs": [{"step": "never", "when": "{{ start.w == 'other' }}"}, {"step": "then", "when": "{{ start.w != 'other' }}", "args": {"again": "{{ start.w }}"}}]}},
        {"step": "never", "tool": {"kind": "python", "code": "result = 1"}},
        {"step": "then", "tool": {"kind": "python", "code": "print(1)"}}]}), inputs={"word": canary("arc")})
    start("ended", "name: c\nnodes:\n  - id: a\n    bash: echo $INPUTS.word\n  - id: stop\n    depends_on: [a]\n    cancel: 'because $a.output'\n", inputs={"word": canary("cancel")})
    # a time that comes of an input, a code that a program chose
    canaries.append("2031-02-03T04:05:06")
    start("until", plan({"stepId": "a", "kind": "wait", "with": {"until": "$INPUTS.when"}}), wait=False, inputs={"when": "2031-02-03T04:05:06Z"})
    until("until", lambda run: canaries[-1] in json.dumps(run))
    start("raised", json.dumps({"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "r", "path": "r"}, "workload": {"word": ""}, "workflow": [
        {"step": "start", "tool": {"kind": "python", "input": {"w": "{{ word }}"}, "code": "raise type(w, (Exception,), {})('no')"}}]}), inputs={"word": canary("raised")})
    # what signals carry
    start("moved", plan(shell("a", "echo $INPUTS.old"), {"stepId": "g", "kind": "approval", "with": {"message": "on?"}, "dependsOn": ["a"]}, shell("b", "echo $INPUTS.new", after=["g"])),
          wait=False, inputs={"old": "x", "new": "y"})
    until("moved", lambda run: any(step["stepId"] == "g" and step["status"] not in ("PENDING", "READY") for step in run["steps"]))
    signal("moved", signalType="UPDATE_PARAMS", reason="better", payload={"params": {"new": canary("params")}})
    signal("moved", signalType="INJECT_OVERRIDE", reason="better", payload={"stepId": "b", "override": {"env": {"X": canary("override")}}})
    signal("moved", signalType="APPROVE", payload={"stepId": "g", "fields": {"x": canary("fields")}})
    until("moved", lambda run: run["status"] == "COMPLETED")


def values(text):
    """Objects of an answer, whatever form it has."""
    try:
        return [json.loads(text)]
    except ValueError:
        found = []
        for line in text.splitlines():
            try:
                found.append(json.loads(line.removeprefix("data: ")))
            except ValueError:
                pass
        return found


def walk(value, path, found):
    if isinstance(value, dict):
        for key, inner in value.items():
            walk(inner, f"{path}.{key}", found)
    elif isinstance(value, list):
        for inner in value:
            walk(inner, path + "[]", found)
    else:
        hit = any(word in json.dumps(value) for word in canaries)
        found[path] = found.get(path, False) or hit


def requests():
    document = json.loads(ask("GET", "/openapi.json", admin)[1])
    runs = json.loads(ask("GET", "/v1/runs?limit=100", admin)[1])["items"]
    for path, methods in document["paths"].items():
        if "get" not in methods or "{place}" in path or path.startswith(("/v1/t/", "/schemas", "/v1/worker/")):
            continue
        paths = [path]
        if "{run}" in path:
            paths = [path.replace("{run}", run["runId"]) for run in runs]
        for one in paths:
            run = one.split("/")[3] if "{run}" in path else None
            if "{step}" in one:
                steps = json.loads(ask("GET", f"/v1/runs/{run}", admin)[1])["steps"]
                ones = [one.replace("{step}", urllib.parse.quote(step["stepId"], safe="")).replace("{n}", "1") for step in steps]
            elif "{signal}" in one:
                records = json.loads(ask("GET", f"/v1/runs/{run}/signals", admin)[1])["items"]
                ones = [one.replace("{signal}", record["signalId"]) for record in records]
            else:
                ones = [one]
            for last in ones:
                if "{" in last:
                    continue
                yield last, {}
                if "events" in last:
                    for accept in ("application/x-ndjson", "text/event-stream"):
                        yield last, {"Accept": accept}
                    for vocabulary in ("run", "noetl", "nodes"):
                        yield last + "?as=" + vocabulary, {}
                if last.endswith(("/why", run or "/")):
                    yield last + "?at=3", {}


def main():
    plant()
    engineer, seen, faults, shape, count = token_of("Engineer"), set(), [], {}, 0
    narrow = {role: token_of(role) for role in NARROW}
    for path, headers in requests():
        status, text = ask("GET", path, engineer, None, headers)
        seen |= {word for word in canaries if word in text}
        for value in values(text) if status == 200 else []:
            walk(value, "", shape)
        for role, token in narrow.items():
            status, text = ask("GET", path, token, None, headers)
            count += 1
            found = [word for word in canaries if word in text]
            if found:
                inside = {}
                for value in values(text):
                    walk(value, "", inside)
                faults.append(f"{role} GET {path} {headers.get('Accept', '')}: {' '.join(found)} in {' '.join(p for p, hit in inside.items() if hit)}")
    # what changes a run answers with its status
    status, text = ask("POST", "/v1/runs/held/signals", narrow["Operator"], {"signalId": str(uuid.uuid4()), "signalType": "CANCEL", "payload": {}}, {"Prefer": "wait=10"})
    faults += [f"Operator CANCEL: {word}" for word in canaries if word in text]
    # a question whose answer is the value
    for query in ("input.word=canary*", "not input.word=x", "run=given and (plan=p or input.word~can)", "cause~canary"):
        for role, token in narrow.items():
            status, text = ask("GET", "/v1/runs?q=" + urllib.parse.quote(query), token)
            if status != 403:
                faults.append(f"{role} may ask {query}: {status}")
    # and what says how it went is still there
    shown = json.loads(ask("GET", "/v1/runs/failed", narrow["Operator"])[1])
    if (shown["status"], shown["rootCause"]["stepId"], shown["rootCause"]["error"]["code"][:1] > "") != ("FAILED", "a", True):
        faults.append(f"an Operator does not see how it went: {shown}")
    if "--shape" in sys.argv:
        for path in sorted(shape):
            print("HIT " if shape[path] else "    ", path)
        return
    faults += [f"{word}: nobody has seen it" for word in canaries if word not in seen]
    print("\n".join(faults))
    print(f"{count} requests, {len(canaries)} canaries, {len(faults)} faults", file=sys.stderr)
    sys.exit(1 if faults else 0)


main()
