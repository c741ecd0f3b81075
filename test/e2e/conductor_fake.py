#!/usr/bin/env python3
"""A Conductor server for tests: the calls that the host makes, with what is surprising about the real one.

conductor_fake.py DB [PORT]: state lives in the file DB and survives kill -9; prints the port when it answers.
What is surprising: no idempotent start; a batch poll holds what it has until there are as many as were asked for; a poll whose client is gone
takes a task all the same; updates answer 200 whether or not they change anything; a heartbeat beside a completion takes it back; scheduled tasks
are handed out while their workflow is paused, when no lease is looked at; a lease that ran out while it was away is over; `rerun` uses the id of a
task again; `restart` forgets everything but variables; resume of what is not paused is 500; a name with a slash in a path is 400; large payloads go
to a place that is new at each start. test/e2e/conductor_facts.py shows that it says what a real server says.
POST /fake/late {}: the next update is taken, and what follows from it comes two seconds later. Everything else that goes wrong on the way is
test/e2e/http_proxy.py's. GET /fake/seen: counts of calls. """
import json, os, re, sqlite3, sys, threading, time, urllib.parse, uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

lock = threading.RLock()
db = {"taskdefs": {}, "workflowdefs": {}, "logs": {}, "polls": {}}
workflows, opened, touched = {}, set(), set()  # by id; that have not ended; that are not written yet
file, seen, late = sys.argv[1], {}, []
ENDED = ("COMPLETED", "FAILED", "TERMINATED", "TIMED_OUT")
DONE = ("COMPLETED", "COMPLETED_WITH_ERRORS", "FAILED", "FAILED_WITH_TERMINAL_ERROR", "TIMED_OUT", "CANCELED", "SKIPPED")
COUNT = "(.lives // 0) + 1"  # the one query that it knows
INLINE, ALLOWED, START_INLINE = 3072 << 10, 10240 << 10, 5120 << 10  # bytes of payloads


def now():
    return int(time.time() * 1000)


def touch(wf):
    touched.add(wf["workflowId"])
    (opened.discard if wf["status"] in ENDED else opened.add)(wf["workflowId"])


def save():
    rows = [(wid, json.dumps(workflows[wid])) for wid in touched] + [("", json.dumps(db))]
    touched.clear()
    with store:
        store.executemany("INSERT OR REPLACE INTO row VALUES (?, ?)", rows)


def load():
    global store
    store = sqlite3.connect(file, check_same_thread=False)
    store.execute("PRAGMA journal_mode=WAL")
    store.execute("PRAGMA synchronous=OFF")  # it is killed, not its machine
    store.execute("CREATE TABLE IF NOT EXISTS row (id TEXT PRIMARY KEY, value TEXT)")
    for wid, text in store.execute("SELECT id, value FROM row"):
        if wid:
            workflows[wid] = json.loads(text)
            if workflows[wid]["status"] not in ENDED:
                opened.add(wid)
        else:
            db.update(json.loads(text))


def outside(value, limit):
    """What is shown of a payload, and where the rest is."""
    return (value, None) if len(json.dumps(value)) <= limit else ({}, "%s.json" % uuid.uuid4())


class Refused(Exception):
    def __init__(self, status, message, retryable=False):
        self.status, self.message, self.retryable = status, message, retryable


def value_of(text, wf):
    """${workflow.input.x}, ${ref.output.x}, ${ref.status}: null when it is not there."""
    if isinstance(text, dict):
        return {k: value_of(v, wf) for k, v in text.items()}
    if isinstance(text, list):
        return [value_of(v, wf) for v in text]
    m = re.fullmatch(r"\$\{([^}]*)\}", text) if isinstance(text, str) else None
    if not m:
        return text
    first, *rest = m.group(1).split(".")
    if first == "workflow":
        at = {"input": wf["input"], "output": wf["output"], "variables": wf["variables"], "correlationId": wf.get("correlationId")}
    else:
        found = [t for t in wf["tasks"] if t["referenceTaskName"] == first]
        at = {"output": found[-1].get("whole") or found[-1]["outputData"], "status": found[-1]["status"], "reasonForIncompletion": found[-1].get("reasonForIncompletion")} if found else {}
    for name in rest:
        at = at.get(name) if isinstance(at, dict) else None
    return at


def schedule(wf, index, retry=0, task_id=None, retried=None, delay=0):
    spec = wf["workflowDefinition"]["tasks"][index]
    given = value_of(spec.get("inputParameters", {}), wf)
    kind = spec["name"]
    touch(wf)
    if spec.get("type") == "DYNAMIC":
        kind = given.get(spec["dynamicTaskNameParam"])
        if not kind:
            return finish(wf, "FAILED", "Cannot map a dynamic task based on the parameter and input")
    tdef = db["taskdefs"].get(kind, {})
    given, elsewhere = outside(given, INLINE)
    task = {
        "taskId": task_id or str(uuid.uuid4()), "taskType": kind, "taskDefName": kind, "referenceTaskName": spec["taskReferenceName"],
        "workflowInstanceId": wf["workflowId"], "workflowType": wf["workflowName"], "status": "SCHEDULED", "inputData": given, "outputData": {},
        "retryCount": retry, "retriedTaskId": retried, "pollCount": 0, "scheduledTime": now(), "updateTime": now(), "callbackAfterSeconds": 0,
        "domain": wf["taskToDomain"].get(kind) or wf["taskToDomain"].get("*"), "index": index, "visible": now() + 1000 * delay,
        "responseTimeoutSeconds": tdef.get("responseTimeoutSeconds", 3600), "optional": bool(spec.get("optional"))}
    if elsewhere:
        task["externalInputPayloadStoragePath"] = elsewhere
    wf["tasks"].append(task)
    if spec.get("type") == "JSON_JQ_TRANSFORM":
        if given.get("queryExpression") != COUNT:
            return finish(wf, "FAILED", "this query is not known here")
        task.update(status="COMPLETED", outputData={"result": (given.get("lives") or 0) + 1})
        decide(wf)
    elif spec.get("type") == "SET_VARIABLE":
        wf["variables"].update(given)
        task["status"] = "COMPLETED"
        decide(wf)


def finish(wf, status, why=None):
    wf["status"], wf["endTime"], wf["updateTime"] = status, now(), now()
    touch(wf)
    if why is not None:
        wf["reasonForIncompletion"] = why
    wf["output"] = value_of(wf["workflowDefinition"].get("outputParameters"), wf) if wf["workflowDefinition"].get("outputParameters") else (
        wf["tasks"][-1]["outputData"] if wf["tasks"] else {})
    for t in wf["tasks"]:
        if t["status"] not in DONE:
            t["status"] = "CANCELED"


def decide(wf):
    """What comes next. A paused workflow schedules nothing."""
    if wf["status"] != "RUNNING" or not wf["tasks"]:
        return
    t = wf["tasks"][-1]
    if t["status"] in ("COMPLETED", "COMPLETED_WITH_ERRORS"):
        if t["index"] + 1 < len(wf["workflowDefinition"]["tasks"]):
            schedule(wf, t["index"] + 1)
        else:
            finish(wf, "COMPLETED")
    elif t["status"] in ("FAILED", "FAILED_WITH_TERMINAL_ERROR", "TIMED_OUT"):
        tdef = db["taskdefs"].get(t["taskType"], {})
        if t["status"] == "FAILED" and t["retryCount"] < tdef.get("retryCount", 3):
            return schedule(wf, t["index"], t["retryCount"] + 1, retried=t["taskId"], delay=tdef.get("retryDelaySeconds", 60))
        if t["optional"]:
            t["status"] = "COMPLETED_WITH_ERRORS"
            return decide(wf)
        finish(wf, "TIMED_OUT" if t["status"] == "TIMED_OUT" else "FAILED", t.get("reasonForIncompletion"))


def leases():
    """Task leases: not looked at while the workflow is paused. Also what was late."""
    for wid in list(opened):
        wf = workflows[wid]
        if wf["status"] != "RUNNING" or not wf["tasks"]:
            continue
        if wf.get("late", 0) and now() > wf["late"]:
            del wf["late"]
            decide(wf)
            continue
        t = wf["tasks"][-1]
        if t["status"] == "IN_PROGRESS" and now() > t["updateTime"] + 1000 * (t["responseTimeoutSeconds"] + t["callbackAfterSeconds"]):
            t["status"], t["reasonForIncompletion"] = "TIMED_OUT", "responseTimeout"
            touch(wf)
            decide(wf)


def watch():
    while True:
        time.sleep(0.5)
        with lock:
            leases()
            if touched:
                save()


def the(wid):
    if wid not in workflows:
        raise Refused(404, "No such workflow found by id: " + wid)
    return workflows[wid]


def the_task(tid):
    for wf in list(workflows.values()):
        for t in wf["tasks"]:
            if t["taskId"] == tid:
                return wf, t
    raise Refused(404, "No such task found by id: " + str(tid))


def start(body):
    name, version = body.get("name"), body.get("version") or 1
    wdef = body.get("workflowDef") or db["workflowdefs"].get("%s/%s" % (name, version))
    if not wdef:
        raise Refused(404, "No such workflow found by name: %s, version: %s" % (name, version))
    if len(json.dumps(body.get("input", {}))) > ALLOWED:
        raise Refused(500, "The input payload size is greater than the permissible limit")
    wid = str(uuid.uuid4())
    given, elsewhere = outside(body.get("input") or {}, START_INLINE)
    wf = workflows[wid] = {
        "workflowId": wid, "workflowName": name, "workflowVersion": version, "status": "RUNNING", "createTime": now(), "startTime": now(),
        "updateTime": now(), "endTime": 0, "lastRetriedTime": 0, "input": given, "output": {}, "variables": {}, "tasks": [],
        "correlationId": body.get("correlationId"), "taskToDomain": body.get("taskToDomain") or {}, "workflowDefinition": wdef}
    if elsewhere:
        wf["externalInputPayloadStoragePath"] = elsewhere
    touch(wf)
    schedule(wf, 0)
    return wid


def poll(kind, count, timeout, worker, domain):
    if timeout > 5000:
        raise Refused(400, "Long Poll Timeout value cannot be more than 5 seconds")
    got, until = [], time.time() + timeout / 1000
    with lock:
        db["polls"]["%s|%s" % (kind, domain)] = {"queueName": kind, "domain": domain, "workerId": worker, "lastPollTime": now()}
    while True:
        with lock:
            for wid in list(opened) if len(got) < count else ():
                wf = workflows[wid]
                for t in wf["tasks"]:
                    if len(got) < count and t["taskType"] == kind and t["status"] == "SCHEDULED" and t["visible"] <= now() and t["domain"] == domain:
                        t.update(status="IN_PROGRESS", workerId=worker, pollCount=t["pollCount"] + 1, updateTime=now())
                        t.setdefault("startTime", now())
                        touch(wf)
                        got.append(shown(t))
            if got:
                save()
        if len(got) >= count or time.time() >= until:
            return got
        time.sleep(0.1)


def update(wf, t, status, output, why=None, callback=0, worker=None):
    """Whatever it changes, it answers 200."""
    if t["status"] in DONE or wf["status"] in ENDED:
        return
    if status not in ("IN_PROGRESS", "COMPLETED", "FAILED", "FAILED_WITH_TERMINAL_ERROR"):
        raise Refused(400, "Validation failed, check below errors for detail.")
    touch(wf)
    t["updateTime"] = wf["updateTime"] = now()
    if len(json.dumps(output or {})) > ALLOWED:
        t["status"], t["reasonForIncompletion"] = "FAILED_WITH_TERMINAL_ERROR", "The payload size is greater than the permissible limit"
        return decide(wf)
    t["whole"] = output or {}
    t["outputData"], elsewhere = outside(output or {}, INLINE)
    if elsewhere:
        t["externalOutputPayloadStoragePath"] = elsewhere
    if why is not None:
        t["reasonForIncompletion"] = why
    if status == "IN_PROGRESS":
        t.update(status="SCHEDULED", callbackAfterSeconds=callback, visible=now() + 1000 * callback)
        return
    t["status"] = status
    if late:
        wf["late"] = now() + late.pop()
    else:
        decide(wf)


def extend(tid):
    """A lease is extended by writing the row as it was read: without a lock."""
    with lock:
        wf, t = the_task(tid)
        row = dict(t)
        if t["status"] in DONE:
            return
    time.sleep(0.05)
    with lock:
        t.update(row, updateTime=now())
        touch(wf)
        save()


def shown(t):
    return {k: v for k, v in t.items() if k not in ("whole", "visible", "index")}


def rerun(wf, body):
    if wf["status"] not in ENDED:
        raise Refused(409, "not ended")
    tid = body.get("reRunFromTaskId")
    at = [t["taskId"] for t in wf["tasks"]].index(tid) if tid in [t["taskId"] for t in wf["tasks"]] else None
    if tid and at is None:
        raise Refused(400, "no such task")
    index = wf["tasks"][at]["index"] if tid else 0
    wf["tasks"], wf["status"], wf["updateTime"] = wf["tasks"][:at or 0], "RUNNING", now()
    wf.pop("reasonForIncompletion", None)
    schedule(wf, index, task_id=tid)
    return wf["workflowId"]


def control(method, parts, query, body):
    """/workflow/{id}/..."""
    wf = the(parts[0])
    verb = parts[1] if len(parts) > 1 else ""
    if method == "GET" and verb == "":
        return 200, dict(wf, tasks=[shown(t) for t in wf["tasks"]] if query.get("includeTasks") != "false" else [])
    if method == "GET" and verb == "status":
        return 200, {"workflowId": wf["workflowId"], "correlationId": wf["correlationId"], "status": wf["status"]}
    if method == "PUT" and verb == "pause":
        if wf["status"] in ENDED:
            raise Refused(409, "Workflow %s is in terminal state" % wf["workflowId"])
        wf["status"], wf["updateTime"] = "PAUSED", now()
        touch(wf)
        return 200, None
    if method == "PUT" and verb == "resume":
        if wf["status"] != "PAUSED":
            raise Refused(500, "The workflow %s is not PAUSED so cannot resume" % wf["workflowId"])
        wf["status"], wf["updateTime"], wf["lastRetriedTime"] = "RUNNING", now(), now()
        touch(wf)
        leases()
        decide(wf)
        return 200, None
    if method == "DELETE" and verb == "":
        if wf["status"] == "COMPLETED":
            raise Refused(409, "Cannot terminate a COMPLETED workflow.")
        if wf["status"] != "TERMINATED":
            finish(wf, "TERMINATED", query.get("reason"))
        return 200, None
    if method == "POST" and verb == "retry":
        if wf["status"] not in ENDED or wf["status"] == "COMPLETED":
            raise Refused(404, "Workflow is in a non-terminal state")
        last = wf["tasks"][-1]
        wf["status"], wf["lastRetriedTime"], wf["updateTime"] = "RUNNING", now(), now()
        wf.pop("reasonForIncompletion", None)
        schedule(wf, last["index"], last["retryCount"] + 1, retried=last["taskId"])
        return 204, None
    if method == "POST" and verb == "rerun":
        return 200, rerun(wf, body)
    if method == "POST" and verb == "restart":
        if wf["status"] not in ENDED:
            raise Refused(409, "Workflow is not in a terminal state")
        wf.update(tasks=[], status="RUNNING", createTime=now(), startTime=now(), updateTime=now(), endTime=0, lastRetriedTime=0, output={})
        wf.pop("reasonForIncompletion", None)
        schedule(wf, 0)
        return 204, None
    if method == "PUT" and verb == "skiptask":
        raise Refused(500, "The task referenced by name is not in the workflow, or was scheduled")
    raise Refused(404, "No static resource")


def workflow_call(method, parts, query, body):
    if method == "POST" and not parts:
        return 200, start(body)
    if method == "GET" and parts[0] == "running":
        return 200, [w for w in opened if workflows[w]["workflowName"] == parts[1]]
    if method == "PUT" and parts[0] == "decide":
        decide(the(parts[1]))
        return 200, None
    if method == "GET" and parts[0] == "search":
        kinds = re.search(r"workflowType IN \(([^)]*)\)", query.get("query", ""))
        states = re.search(r"status IN \(([^)]*)\)", query.get("query", ""))
        rows = [{"workflowId": w["workflowId"], "status": w["status"], "correlationId": w["correlationId"]} for w in list(workflows.values())
                if (not kinds or w["workflowName"] in kinds.group(1).split(",")) and (not states or w["status"] in states.group(1).split(","))]
        return 200, {"totalHits": len(rows), "results": rows[int(query.get("start", 0)):][: int(query.get("size", 100))]}
    if len(parts) > 1 and parts[1] == "correlated":
        names = body if method == "POST" else [parts[2]]
        rows = {n: [dict(w, tasks=[]) for w in list(workflows.values()) if w["workflowName"] == parts[0] and w["correlationId"] == n and
                    (query.get("includeClosed") == "true" or w["status"] not in ENDED)] for n in names}
        return 200, rows if method == "POST" else rows[names[0]]
    return control(method, parts, query, body)


def task_call(method, parts, query, body):
    if method == "GET" and parts[:2] == ["queue", "polldata"]:
        return 200, [p for p in db["polls"].values() if p["queueName"] == query.get("taskType")]
    if method == "POST" and not parts:
        wf, t = the_task(body.get("taskId"))
        update(wf, t, body["status"], body.get("outputData"), body.get("reasonForIncompletion"), body.get("callbackAfterSeconds", 0), body.get("workerId"))
        return 200, t["taskId"]
    if method == "POST" and len(parts) == 3:
        wf = the(parts[0])
        found = [t for t in wf["tasks"] if t["referenceTaskName"] == parts[1] and t["status"] not in DONE]
        if found:
            update(wf, found[-1], parts[2], body)
        return 200, found[-1]["taskId"] if found else None
    if len(parts) == 2 and parts[1] == "log":
        logs = db["logs"].setdefault(parts[0], [])
        if method == "GET":
            return 200, logs
        logs.append({"log": body, "taskId": parts[0], "createdTime": now()})
        return 200, None
    if method == "GET" and len(parts) == 1:
        return 200, shown(the_task(parts[0])[1])
    raise Refused(404, "No static resource")


def metadata_call(method, parts, query, body):
    kind = parts[0]
    if kind == "taskdefs" and method == "POST":
        for d in body:
            if not d.get("name") or (d.get("timeoutSeconds") and d.get("responseTimeoutSeconds", 3600) > d["timeoutSeconds"]):
                raise Refused(400, "Validation failed, check below errors for detail.")
            db["taskdefs"][d["name"]] = d
        return 200, None
    if kind == "taskdefs" and method == "GET":
        if parts[1] not in db["taskdefs"]:
            raise Refused(404, "No such taskType found by name: " + parts[1])
        return 200, db["taskdefs"][parts[1]]
    if kind == "workflow" and method == "GET":
        key = "%s/%s" % (parts[1], query.get("version", "1"))
        if key not in db["workflowdefs"]:
            raise Refused(404, "No such workflow found by name: " + parts[1])
        return 200, db["workflowdefs"][key]
    if kind == "workflow" and method == "PUT":
        if not all(d.get("tasks") and d.get("schemaVersion", 2) == 2 for d in body):
            raise Refused(400, "Validation failed, check below errors for detail.")
        db["workflowdefs"].update({"%s/%s" % (d["name"], d.get("version", 1)): d for d in body})
        return 200, {"bulkErrorResults": {}, "bulkSuccessfulResults": [d["name"] for d in body]}
    if kind == "workflow" and method == "POST":
        key = "%s/%s" % (body.get("name"), body.get("version", 1))
        if not body.get("tasks") or body.get("schemaVersion", 2) != 2:
            raise Refused(400, "Validation failed, check below errors for detail.")
        if key in db["workflowdefs"] and query.get("overwrite") != "true":
            raise Refused(409, "Workflow with %s.%s already exists!" % (body["name"], body.get("version", 1)))
        db["workflowdefs"][key] = body
        return 200, None
    raise Refused(404, "No static resource")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes: the second does not wait for the first to be acknowledged
    timeout = 60

    def log_message(self, *args):
        pass

    def answer(self, status, value):
        text = value.encode() if isinstance(value, str) else b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(value, str) else "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def go(self, method):
        size = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(size).decode()
        path, _, text = self.path.partition("?")
        query = {k: v[0] for k, v in urllib.parse.parse_qs(text, keep_blank_values=True).items()}
        if "%2F" in path.upper():
            return self.answer(400, "Bad Request")
        parts = [urllib.parse.unquote(p) for p in path.strip("/").split("/")]
        if parts == ["health"]:
            return self.answer(200, {"healthy": True})
        if parts[0] == "fake":
            return self.fake(parts[1], raw)
        self.call(method, parts[1:], query, raw)

    def fake(self, what, raw):
        with lock:
            if what == "late":
                late.append(2000)
            self.answer(200, dict(seen))

    def call(self, method, parts, query, raw):
        name = "%s %s" % (method, "/".join(parts[:1] + [p for p in parts[1:3] if not re.fullmatch(r"[0-9a-f-]{36}", p)]))
        with lock:
            seen[name] = seen.get(name, 0) + 1
        try:
            body = None
            if raw:
                try:
                    body = json.loads(raw)
                except ValueError:
                    if not (parts[0] == "tasks" and parts[-1] == "log"):
                        raise Refused(500, "JSON parse error")
                    body = raw
            if parts[:3] == ["tasks", "poll", "batch"]:
                self.answer(200, poll(parts[3], int(query.get("count", 1)), int(query.get("timeout", 100)), query.get("workerid"), query.get("domain")))
            elif parts[:2] == ["tasks", "poll"]:
                got = poll(parts[2], 1, 0, query.get("workerid"), query.get("domain"))
                self.answer(200, got[0]) if got else self.answer(204, None)
            elif parts == ["tasks"] and method == "POST" and body.get("extendLease"):
                seen["extendLease"] = seen.get("extendLease", 0) + 1
                extend(body.get("taskId"))
                self.answer(200, body.get("taskId"))
            else:
                with lock:
                    kind = {"workflow": workflow_call, "tasks": task_call, "metadata": metadata_call}.get(parts[0])
                    if not kind:
                        raise Refused(404, "No static resource")
                    status, value = kind(method, parts[1:], query, body)
                    if method != "GET":
                        save()
                self.answer(status, value)
        except Refused as e:
            self.answer(e.status, {"status": e.status, "message": e.message, "instance": "fake", "retryable": e.retryable})

    def do_GET(self):
        self.go("GET")

    def do_POST(self):
        self.go("POST")

    def do_PUT(self):
        self.go("PUT")

    def do_DELETE(self):
        self.go("DELETE")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # its client is gone


load()
threading.Thread(target=watch, daemon=True).start()
server = Server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
