#!/usr/bin/env python3
"""A worker for a Cairn server in 60 lines of the standard library: python3 worker.py http://127.0.0.1:7117 [POOL]
Executes shell, exec and script steps one at a time. The protocol is in docs/format/worker.md. $CAIRN_TOKEN is the credential."""
import json, os, socket, subprocess, sys, tempfile, threading, time, urllib.error, urllib.request

server, pool = sys.argv[1].rstrip("/"), sys.argv[2] if len(sys.argv) > 2 else "default"
name = f"py-{socket.gethostname()}-{os.getpid()}"
def send(method, path, data):
    head = {"Authorization": "Bearer " + os.environ.get("CAIRN_TOKEN", ""), "Content-Type": "application/json"}
    try:
        request = urllib.request.Request(server + "/v1/worker/" + path, data, head, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read()

def call(path, **body):
    while True:  # a server that is away or busy comes back: the same is said again
        try:
            status, text = send("POST", path, json.dumps({"worker": name, "pool": pool, **body}).encode())
            if status in (401, 403) and path == "poll": sys.exit(f"{name}: {json.loads(text).get('detail')}")
            if status < 500 and status != 429: return json.loads(text)
        except OSError as error:
            print(f"{name}: {error}", file=sys.stderr)
        time.sleep(1)

def watch(task, process, over):  # renews the lease; a cancelled or stale task is stopped
    while not over.wait(task["leaseMs"] / 3000):
        answer = call("heartbeat", tasks=[{"token": task["token"], "epoch": task["epoch"]}])
        if answer.get("results", [{}])[0].get("state") != "ok": process.terminate()

def execute(task):
    run = tempfile.TemporaryDirectory()
    env = {**os.environ, **dict(task["env"]), "ARTIFACTS_DIR": run.name, "CAIRN_RUN_ID": task["run"],
           "CAIRN_STEP_ID": task["step"], "CAIRN_IDEMPOTENCY_KEY": task["idempotencyKey"]}
    for variable, place in task["secrets"]:  # env:NAME or file:/path
        kind, where = place.split(":", 1)
        env[variable] = os.environ[where] if kind == "env" else open(where).read().rstrip("\n")
    process = subprocess.Popen(task["argv"], env=env, text=True, errors="replace", stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    over = threading.Event()
    threading.Thread(target=watch, args=(task, process, over), daemon=True).start()
    try:
        out, err = process.communicate(task.get("stdin"), timeout=task["timeoutMs"] / 1000 or None)
    except subprocess.TimeoutExpired:
        process.kill()
        return {"error": {"code": "TIMEOUT", "message": "took too long", "category": "timeout", "retryable": True}}
    finally:
        over.set()
    if err: call("logs", chunks=[{"token": task["token"], "epoch": task["epoch"], "stream": "stderr", "offset": 0, "text": err}])
    for path in task.get("artifacts", []) if process.returncode == 0 else []:
        send("PUT", f"artifacts/{task['token']}/{path}", open(os.path.join(run.name, path), "rb").read())
    if process.returncode == 0: return {"output": out.rstrip("\n")[:task["outputMax"]]}
    return {"error": {"code": "EXIT_NONZERO", "message": f"exit {process.returncode}", "exitCode": process.returncode}}

while True:
    asked = time.clock_gettime(time.CLOCK_BOOTTIME)
    answer = call("poll", kinds=["shell", "exec", "script"], max=1, waitMs=20000)
    for task in answer.get("tasks", []):
        if time.clock_gettime(time.CLOCK_BOOTTIME) > asked + (answer["waitedMs"] + task["leaseMs"]) / 1000: continue  # it slept
        try: result = execute(task)
        except (OSError, KeyError) as error: result = {"error": {"code": "SPAWN_FAILED", "message": repr(error), "retryable": True}}
        print(name, task["run"], task["step"], call("complete", results=[{"token": task["token"], "epoch": task["epoch"], **result}]))
