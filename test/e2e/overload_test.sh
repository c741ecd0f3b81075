#!/usr/bin/env bash
# Too much at once: what is refused, how, and what still gets through (docs/format/serve.md, limits).
. "$(dirname "$0")/serve_lib.sh"

settings() { printf '%s\n' "$@" >cairn.toml; }

test_no_more_runs_are_kept_in_memory_than_may_be() {
    settings '[serve]' 'runsInMemory = 3'
    serve
    local held run
    held=$(plan_text held '{"stepId":"a","kind":"approval"}')
    for run in r1 r2 r3; do
        ask POST /v1/runs "{\"document\":$held,\"runId\":\"$run\"}"
        answers 202
    done
    ask POST /v1/runs "{\"document\":$held,\"runId\":\"r4\"}"
    answers 429
    code_is OVERLOADED
    has_line head '^Retry-After: [1-9]'
    equal "$(jq -r .retryable body)" true retryable
    # The same request again is answered, signals get through, and an end makes room.
    ask POST /v1/runs "{\"document\":$held,\"runId\":\"r1\"}"
    answers 202
    ask PUT /v1/runs/r1/signals/11111111-1111-4111-8111-111111111111 '{"signalType":"CANCEL","payload":{"reason":"room"}}'
    [ "$status" = 200 ] || [ "$status" = 202 ] || fail "signal: $status $(cat body)"
    started() { ask POST /v1/runs "{\"document\":$held,\"runId\":\"r4\"}"; [ "$status" = 202 ]; }
    wait_for started
    stop_serving
}
test_starts_beyond_the_queue_get_429_and_signals_do_not() {
    settings '[serve.http]' 'waitingStarts = 1'
    serve
    python3 - "$url" "$token" <<'PY' || fail "see above"
import collections, http.client, json, sys, threading, uuid
url, token = sys.argv[1:]
host, headers = url.split("//")[1], {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
plan = {"metadata": {"planId": "p", "planVersion": "1", "schemaVersion": "v1.2"}, "steps": [{"stepId": "a", "kind": "noop"}]}
body = json.dumps({"document": json.dumps(plan)})
held = {"metadata": {"planId": "h", "planVersion": "1", "schemaVersion": "v1.2"}, "steps": [{"stepId": "a", "kind": "approval"}]}
seen, lock, over = collections.Counter(), threading.Lock(), threading.Event()

def call(connection, method, path, body):
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    data = answer.read()
    return answer.status, answer.headers, data

def start():
    connection = http.client.HTTPConnection(host, timeout=20)
    for _ in range(400):
        status, got, data = call(connection, "POST", "/v1/runs", body)
        with lock:
            seen[status] += 1
            if status == 429 and not (int(got["Retry-After"]) >= 1 and json.loads(data)["code"] == "OVERLOADED"):
                seen["odd"] += 1
            if seen[429] > 20 and seen[202] > 20:
                over.set()
        if over.is_set():
            return

first = http.client.HTTPConnection(host, timeout=20)
status, _, data = call(first, "POST", "/v1/runs", json.dumps({"document": json.dumps(held), "runId": "held"}))
assert status == 202, (status, data)
threads = [threading.Thread(target=start) for _ in range(32)]
for thread in threads:
    thread.start()
signals = collections.Counter()
for _ in range(20):
    for kind in ("PAUSE", "RESUME"):
        status, _, data = call(first, "PUT", f"/v1/runs/held/signals/{uuid.uuid4()}", json.dumps({"signalType": kind, "payload": {}}))
        signals[status] += 1
for thread in threads:
    thread.join()
print(dict(seen), dict(signals))
assert seen[202] > 20 and seen[429] > 20 and set(seen) <= {202, 429}, seen
assert signals[429] == 0 and signals[503] == 0, signals
PY
    stop_serving
}

run_tests "$@"
