#!/usr/bin/env python3
"""What a Conductor server does with the calls that the host makes, told without ids and times: conductor_facts.py URL.
The fake of the tests and a real server must say the same, line by line."""
import http.client, json, sys, threading, time, urllib.parse, uuid

url = urllib.parse.urlparse(sys.argv[1])
mark = uuid.uuid4().hex[:8]


def call(method, path, body=None, read=True):
    c = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
    data = None if body is None else body if isinstance(body, str) else json.dumps(body)
    c.request(method, url.path + path, data, {"Content-Type": "application/json", "Accept": "*/*"})
    if not read:
        time.sleep(0.2)
        c.sock.close()
        return None, None
    r = c.getresponse()
    text = r.read().decode()
    c.close()
    try:
        return r.status, json.loads(text) if text else None
    except ValueError:
        return r.status, text


def say(what, *values):
    print("%-60s %s" % (what, " ".join(str(v) for v in values)), flush=True)


def taskdef(name, **more):
    return dict(name=name, ownerEmail="c@example.org", retryCount=0, retryDelaySeconds=0, timeoutSeconds=0, responseTimeoutSeconds=60, timeoutPolicy="RETRY", **more)


def wfdef(name, *tasks, **more):
    return dict(name=name, version=1, schemaVersion=2, ownerEmail="c@example.org", timeoutSeconds=0, timeoutPolicy="ALERT_ONLY", tasks=list(tasks), **more)


def simple(name, ref, **more):
    return dict(name=name, taskReferenceName=ref, type="SIMPLE", inputParameters={"x": "${workflow.input.x}"}, **more)


def start(name, **more):
    return call("POST", "/workflow", dict(name=name, version=1, input={"x": 1}, **more))[1]


def wf(i):
    return call("GET", "/workflow/%s?includeTasks=true" % i)[1]


def brief(i):
    w = wf(i)
    return w["status"], [(t["referenceTaskName"], t["status"], t["retryCount"]) for t in w["tasks"]]


def poll(kind, count=1, timeout=1000, domain=None):
    return call("GET", "/tasks/poll/batch/%s?count=%d&timeout=%d&workerid=w%s" % (kind, count, timeout, "&domain=" + domain if domain else ""))[1]


def tell(t, status, output=None, **more):
    return call("POST", "/tasks", dict(workflowInstanceId=t["workflowInstanceId"], taskId=t["taskId"], status=status, outputData=output or {}, workerId="w", **more))


A, B, W, TWO = "a_" + mark, "b_" + mark, "w_" + mark, "two_" + mark
say("task definitions", call("POST", "/metadata/taskdefs", [taskdef(A), taskdef(B)])[0])
say("a task definition that is not there", call("GET", "/metadata/taskdefs/none" + mark)[0])
say("a response timeout longer than the timeout", call("POST", "/metadata/taskdefs", [dict(taskdef("bad"), timeoutSeconds=5)])[0])
say("a workflow", call("POST", "/metadata/workflow", wfdef(W, simple(A, "a")))[0])
say("the same again", call("POST", "/metadata/workflow", wfdef(W, simple(A, "a")))[0])
say("the same again, over it", call("POST", "/metadata/workflow?overwrite=true", wfdef(W, simple(A, "a")))[0])
say("one without tasks", call("POST", "/metadata/workflow", wfdef("empty"))[0])
say("two tasks", call("POST", "/metadata/workflow", wfdef(TWO, simple(A, "a"), simple(B, "b")))[0])
say("a workflow that is not there", call("GET", "/metadata/workflow/none%s?version=1" % mark)[0])
say("start of one that is not there", call("POST", "/workflow", dict(name="none" + mark, version=1, input={}))[0])
keys = [call("POST", "/workflow", dict(name=W, version=1, correlationId="c/" + mark, input={"x": 1}, idempotencyKey=mark, idempotencyStrategy="FAIL")) for _ in range(2)]
say("one idempotency key, two starts", [k[0] for k in keys], "different" if keys[0][1] != keys[1][1] else "same")
say("correlated, with a slash in the path", call("GET", "/workflow/%s/correlated/%s" % (W, urllib.parse.quote("c/" + mark, safe="")))[0])
found = call("POST", "/workflow/%s/correlated?includeClosed=false&includeTasks=false" % W, ["c/" + mark])
say("correlated, in the body", found[0], sorted(w["workflowId"] for w in found[1]["c/" + mark]) == sorted(k[1] for k in keys))
say("listed as running", sorted(call("GET", "/workflow/running/" + W)[1]) == sorted(k[1] for k in keys))
got = poll(A, 2)
say("both are polled", len(got), sorted(set(t["status"] for t in got)), [t["inputData"] for t in got])
say("completed", tell(got[0], "COMPLETED", {"n": 1})[0], brief(got[0]["workflowInstanceId"]))
say("completed again, otherwise", tell(got[0], "FAILED", {"n": 2})[0], brief(got[0]["workflowInstanceId"]), wf(got[0]["workflowInstanceId"])["tasks"][0]["outputData"])
say("an unknown task", call("POST", "/tasks", dict(workflowInstanceId=got[0]["workflowInstanceId"], taskId=str(uuid.uuid4()), status="COMPLETED"))[0])
say("pause, resume, terminate of a completed one", [call(m, "/workflow/%s%s" % (got[0]["workflowInstanceId"], p))[0] for m, p in (("PUT", "/pause"), ("PUT", "/resume"), ("DELETE", "?reason=x"))])
i = got[1]["workflowInstanceId"]
say("failed", tell(got[1], "FAILED_WITH_TERMINAL_ERROR", reasonForIncompletion="boom")[0], brief(i), "boom" in wf(i)["reasonForIncompletion"])
say("retried", call("POST", "/workflow/%s/retry" % i)[0], brief(i), "keeps its end" if wf(i)["endTime"] else "forgets its end")
say("retried while it runs", call("POST", "/workflow/%s/retry" % i)[0])
t = wf(i)["tasks"][-1]
say("completed by id, never polled", tell(t, "COMPLETED")[0], brief(i))
say("rerun", call("POST", "/workflow/%s/rerun" % i, dict(reRunFromWorkflowId=i))[0], brief(i), "keeps its end" if wf(i)["endTime"] else "forgets its end")
tell(wf(i)["tasks"][-1], "COMPLETED")
t = wf(i)["tasks"][-1]["taskId"]
say("rerun from a task", call("POST", "/workflow/%s/rerun" % i, dict(reRunFromWorkflowId=i, reRunFromTaskId=t))[0], brief(i), "same id" if wf(i)["tasks"][-1]["taskId"] == t else "new id")
tell(wf(i)["tasks"][-1], "COMPLETED")
made = wf(i)["createTime"]
say("restarted", call("POST", "/workflow/%s/restart" % i)[0], brief(i), "keeps its end" if wf(i)["endTime"] else "forgets its end", "new age" if wf(i)["createTime"] != made else "same age")
say("restarted while it runs", call("POST", "/workflow/%s/restart" % i)[0])
say("terminated", call("DELETE", "/workflow/%s?reason=%s" % (i, urllib.parse.quote("by hand")))[0], brief(i), wf(i)["reasonForIncompletion"])
say("terminated again", call("DELETE", "/workflow/%s?reason=again" % i)[0], wf(i)["reasonForIncompletion"])
i = start(TWO)
t = poll(A)[0]
say("parked", tell(t, "IN_PROGRESS", {"p": 1}, callbackAfterSeconds=86400, reasonForIncompletion="waits")[0], brief(i), wf(i)["tasks"][0]["outputData"], wf(i)["tasks"][0]["reasonForIncompletion"])
say("not polled any more", poll(A, 1, 300))
say("paused, and again", call("PUT", "/workflow/%s/pause" % i)[0], call("PUT", "/workflow/%s/pause" % i)[0], wf(i)["status"])
say("parked once more while paused", tell(t, "IN_PROGRESS", {"p": 2}, callbackAfterSeconds=86400)[0], brief(i), wf(i)["tasks"][0]["outputData"])
say("found as paused", i in [w["workflowId"] for w in call("GET", "/workflow/search?start=0&size=1000&query=" + urllib.parse.quote("workflowType IN (%s) AND status IN (PAUSED)" % TWO))[1]["results"]])
say("listed as running all the same", i in call("GET", "/workflow/running/" + TWO)[1])
say("completed while paused: nothing next", tell(t, "COMPLETED")[0], brief(i))
say("resumed, and again", call("PUT", "/workflow/%s/resume" % i)[0], call("PUT", "/workflow/%s/resume" % i)[0], brief(i))
call("PUT", "/workflow/%s/pause" % i)
t = poll(B, 1, 2000)
say("polled while paused", len(t), brief(i))
call("DELETE", "/workflow/%s?reason=x" % i)
i = start(W, taskToDomain={A: "home"})
say("a domain: others do not see it", poll(A, 1, 300), poll(A, 1, 300, "away"))
began = time.time()
got = poll(A, 5, 2000, "home")
say("a poll for five waits although one is there", len(got), time.time() - began > 1.5)
say("completed by reference", call("POST", "/tasks/%s/a/COMPLETED?workerid=w" % i, {"r": 1})[0], brief(i))
say("and again", call("POST", "/tasks/%s/a/COMPLETED?workerid=w" % i, {"r": 2})[0], wf(i)["tasks"][0]["outputData"])
say("a poll of more than five seconds", call("GET", "/tasks/poll/batch/%s?count=1&timeout=5001&workerid=w" % A)[0])
say("who polls", sorted(str(p.get("domain")) for p in call("GET", "/tasks/queue/polldata?taskType=" + A)[1]))
ghost = threading.Thread(target=lambda: call("GET", "/tasks/poll/batch/%s?count=1&timeout=4000&workerid=ghost&domain=home" % A, read=False))
ghost.start()
ghost.join()
i = start(W, taskToDomain={A: "home"})
time.sleep(1)
say("a poll whose client is gone takes it", brief(i))
say("it is completed by reference", call("POST", "/tasks/%s/a/COMPLETED" % i, {})[0], brief(i))
say("a log", call("POST", "/tasks/%s/log" % t[0]["taskId"], "hello")[0], [l["log"] for l in call("GET", "/tasks/%s/log" % t[0]["taskId"])[1]])
D = "dyn_" + mark
call("POST", "/metadata/workflow", wfdef(D, dict(name="execute", taskReferenceName="execute", type="DYNAMIC", dynamicTaskNameParam="taskType", optional=True,
     inputParameters={"taskType": "${workflow.input.type}", "input": "${workflow.input.x}"}),
     dict(name=B, taskReferenceName="report", type="SIMPLE", inputParameters={"status": "${execute.status}", "output": "${execute.output}", "why": "${execute.reasonForIncompletion}"})))
for status in ("COMPLETED", "FAILED_WITH_TERMINAL_ERROR"):
    i = call("POST", "/workflow", dict(name=D, version=1, input={"type": A, "x": {"q": 1}}))[1]
    t = poll(A, 1, 3000)
    tell(t[0], status, {"rows": 1}, reasonForIncompletion="why" if status != "COMPLETED" else None)
    t = poll(B, 1, 3000)
    say("a dynamic task " + status, sorted(t[0]["inputData"].items()) if t else None)
    call("DELETE", "/workflow/%s?reason=x" % i)
i = start(W)
t = poll(A, 1, 3000)[0]
say("an output of 4 MiB", tell(t, "COMPLETED", {"x": "y" * (4 << 20)})[0], "elsewhere" if wf(i)["tasks"][0].get("externalOutputPayloadStoragePath") else "inside")
i = start(W)
t = poll(A, 1, 3000)[0]
say("an output of 12 MiB", tell(t, "COMPLETED", {"x": "y" * (12 << 20)})[0], brief(i))
i = call("POST", "/workflow", dict(name=D, version=1, input={"type": A, "x": 1}))[1]
t = poll(A, 1, 3000)
tell(t[0], "COMPLETED", {"x": "y" * (4 << 20)})
time.sleep(0.5)
t = poll(B, 1, 3000)
say("what comes after an output of 4 MiB", sorted(t[0]["inputData"].items()), "elsewhere" if t[0].get("externalInputPayloadStoragePath") else "inside")
call("DELETE", "/workflow/%s?reason=x" % i)
i = call("POST", "/workflow", dict(name=W, version=1, input={"x": "y" * (6 << 20)}))
say("a start with 6 MiB", i[0], len(wf(i[1])["input"]), "elsewhere" if wf(i[1]).get("externalInputPayloadStoragePath") else "inside")
call("DELETE", "/workflow/%s?reason=x" % i[1])
say("a start with 12 MiB", call("POST", "/workflow", dict(name=W, version=1, input={"x": "y" * (12 << 20)}))[0])
L = "lives_" + mark
call("POST", "/metadata/workflow", wfdef(L, dict(name="count", taskReferenceName="count", type="JSON_JQ_TRANSFORM", inputParameters={"lives": "${workflow.variables.lives}", "queryExpression": "(.lives // 0) + 1"}),
     dict(name="remember", taskReferenceName="remember", type="SET_VARIABLE", inputParameters={"lives": "${count.output.result}"}), simple(A, "a")))
i = start(L)
say("a workflow that counts how often it began", wf(i)["variables"], [x["status"] for x in wf(i)["tasks"]])
tell(wf(i)["tasks"][-1], "COMPLETED")
call("POST", "/workflow/%s/restart" % i)
say("a restart forgets its end, and no variables", wf(i)["variables"], "keeps its end" if wf(i)["endTime"] else "forgets its end")
tell(wf(i)["tasks"][-1], "FAILED_WITH_TERMINAL_ERROR")
call("POST", "/workflow/%s/retry" % i)
say("a retry begins the last task alone", wf(i)["variables"], [(x["referenceTaskName"], x["status"]) for x in wf(i)["tasks"]])
call("DELETE", "/workflow/%s?reason=x" % i)
say("definitions as a list, one of them wrong", call("PUT", "/metadata/workflow", [wfdef("new" + mark, simple(A, "a")), wfdef("empty")])[0], call("GET", "/metadata/workflow/new%s?version=1" % mark)[0])
say("a poll for one, none there", call("GET", "/tasks/poll/%s?workerid=w&domain=nowhere" % A))
say("a task of a type that nobody defined", call("POST", "/metadata/workflow", wfdef("undef_" + mark, simple("undefined_" + mark, "u")))[0])
i = start("undef_" + mark)
say("is polled all the same", len(poll("undefined_" + mark, 1, 2000)))
call("DELETE", "/workflow/%s?reason=x" % i)
say("members that nobody knows", call("POST", "/workflow", dict(name=W, version=1, input={}, moon="full"))[0])
say("skip of what was scheduled", call("PUT", "/workflow/%s/skiptask/a" % start(W))[0])
# Definitions with retries, and leases.
R, S = "retry_" + mark, "short_" + mark
call("POST", "/metadata/taskdefs", [dict(taskdef(R), retryCount=1, retryDelaySeconds=1), dict(taskdef(S), responseTimeoutSeconds=1, timeoutPolicy="TIME_OUT_WF")])
for n in (R, S):
    call("POST", "/metadata/workflow", wfdef("w" + n, simple(n, "a")))
i = start("w" + R)
began = time.time()
tell(poll(R, 1, 3000)[0], "FAILED")
again = poll(R, 1, 4000)
say("a task that may be tried again comes after its delay", len(again), time.time() - began >= 0.9, again[0]["retryCount"], bool(again[0].get("retriedTaskId")))
tell(again[0], "FAILED")
say("and no more than so often", brief(i))
i = start("w" + S)
t = poll(S, 1, 3000)
for _ in range(100):
    if wf(i)["status"] != "RUNNING":
        break
    time.sleep(0.1)
say("a lease that ran out", brief(i))
i = start("w" + S)
poll(S, 1, 3000)
call("PUT", "/workflow/%s/pause" % i)
time.sleep(3)
say("no lease is looked at while it is paused", brief(i))
call("PUT", "/workflow/%s/resume" % i)
for _ in range(100):
    if wf(i)["status"] != "RUNNING":
        break
    time.sleep(0.1)
say("but at once when it goes on", brief(i))
# Heartbeats beside a completion: of many, some are taken back.
taken = 0
for _ in range(30):
    i = start(W)
    t = poll(A, 1, 3000)[0]
    beats = [threading.Thread(target=lambda: call("POST", "/tasks", dict(workflowInstanceId=i, taskId=t["taskId"], status="IN_PROGRESS", extendLease=True))) for _ in range(4)]
    for b in beats:
        b.start()
    tell(t, "COMPLETED")
    for b in beats:
        b.join()
    taken += wf(i)["tasks"][0]["status"] == "IN_PROGRESS"
    call("DELETE", "/workflow/%s?reason=x" % i)
say("heartbeats beside a completion take it back", "sometimes" if taken else "never")
i = start(W)
t = poll(A, 1, 3000)[0]
done = [threading.Thread(target=lambda n=n: tell(t, "COMPLETED", {"n": n})) for n in range(8)]
for d in done:
    d.start()
for d in done:
    d.join()
say("of eight completions at once one counts", brief(i), len(wf(i)["tasks"][0]["outputData"]))
