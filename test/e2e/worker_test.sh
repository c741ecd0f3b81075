# Steps in other processes: a server, workers, and what happens when one of them dies or sleeps in the middle.
. "$(dirname "$0")/serve_lib.sh"
unconfined

shell() { jq -nc --arg id "$1" --arg c "$2" '{stepId: $id, kind: "shell", with: {command: $c}}'; }
store() { store=(--store "sqlite:$PWD/store.db"); }
# A server whose shell steps go to workers, and a credential for them.
site() {
    store
    serve --route '*=default' --lease "${1:-2s}" --drain 0
    ask POST /v1/tokens '{"name":"w","roles":["Worker"],"pool":"default"}'
    [ "$status" = 201 ] || [ "$status" = 200 ] || fail "no token for the worker: $status $(cat body)"
    worker_token=$(jq -r .token body)
}
# worker NAME: $worker is its process
worker() {
    CAIRN_TOKEN=$worker_token "$CAIRN" worker --server "$url" --name "$1" --concurrency 4 -v >"$1.out" 2>"$1.err" &
    worker=$!
}
start() { ask POST /v1/runs "{\"document\":$(plan_text p "${@:2}"),\"runId\":\"$1\"}" && [ "$status" -lt 300 ] || fail "not started: $(cat body)"; }
ended() { ask GET "/v1/runs/$1/status" && [ "$(jq -r .status body)" = "$2" ]; }
counted() { ask GET "/v1/runs/$1/events" && [ "$(jq -r '.items[].eventType' body | grep -cx "$2")" = "$3" ]; }

test_worker_executes_what_the_server_orders_and_drains() {
    site 30s
    worker w1
    start r1 "$(shell a 'echo hello; echo oops >&2')" "$(shell b 'exit 3')"
    wait_for ended r1 FAILED
    ask GET /v1/runs/r1 && equal "$(jq -r '.steps[0].result' body)" hello
    ask GET /v1/runs/r1/steps/a/logs && has body oops
    ask GET /v1/workers && equal "$(jq -r '.items[0].worker' body)" w1
    start r2 "$(shell a "touch $PWD/up; until [ -e $PWD/go ]; do sleep 0.05; done; echo late")"
    wait_for test -e up
    kill -TERM "$worker"
    wait_for grep -q 'draining: 1 step at hand' w1.err
    touch go
    wait "$worker" || fail "the worker ended with $?"
    has w1.err '3 results handed in'
    wait_for ended r2 COMPLETED
    stop_serving
    intact
}

test_a_service_that_stops_takes_the_results_of_its_workers() {
    site 30s
    stop_serving
    serve --route '*=default' --lease 30s --drain 60
    worker w1
    start r1 "$(shell a "touch $PWD/up; while [ ! -e $PWD/go ]; do sleep 0.05; done; echo x >>$PWD/ran")"
    wait_for test -e up
    kill -TERM "$server"
    wait_for eval 'ask GET /readyz && [ "$status" = 503 ]'
    ask POST /v1/runs "{\"document\":$(plan_text p "$(shell a true)")}" && answers 503 && code_is SHUTTING_DOWN && has head 'Retry-After: 1'
    ask GET /v1/runs/r1/status && equal "$(jq -r .status body)" RUNNING
    touch go
    wait "$server" || fail "the server ended with $?: $(tail -n 3 serve.err)"
    equal "$(cat ran)" x 'what was done'
    "$CAIRN" events r1 "${store[@]}" -o json >events.json
    equal "$(jq -r '.[].eventType' events.json | grep -cx 'StepCompleted\|RunCompleted')" 2 'stored before it ended'
    ! grep -q StepRedispatched events.json || fail 'it was done twice'
}

test_a_second_signal_cuts_off_what_still_runs() {
    store
    serve --drain 3600
    start r1 "$(shell a "touch $PWD/up; sleep 600")"
    wait_for test -e up
    kill -TERM "$server"
    wait_for grep -q stopping serve.err
    kill -TERM "$server"
    wait "$server" || fail "the server ended with $?"
}

# The example of docs/format/serve.md: only a tenant that a route names waits for workers; the tasks and steps of all others are executed
# here, and a function that nobody has for them is refused at the start.
test_a_route_of_one_tenant_sends_nothing_of_the_others_to_workers() {
    store
    cat >cairn.toml <<'T'
[serve]
routes = [
  { kind = "shell", environment = "prod", pool = "prod" },
  { tenant = "acme", pool = "acme" },
]
T
    serve --drain 0
    token_of() { # token_of TENANT ROLE [POOL]
        ask POST /v1/tokens "$(jq -nc --arg t "$1" --arg r "$2" --arg p "${3:-}" '{tenantId: $t, roles: [$r]} + if $p == "" then {} else {pool: $p} end')"
        answers 201
        jq -r .token body
    }
    declare -A of
    for tenant in acme beta default; do of[$tenant]=$(token_of $tenant Engineer); done
    worker_token=$(token_of acme Worker acme)
    CAIRN_TOKEN=$worker_token "$CAIRN" worker --server "$url" --name w1 --pool acme -v >w1.out 2>w1.err &
    workers=$!
    cat >book.yaml <<'Y'
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: book, path: book}
workflow:
  - step: count
    tool: {kind: python, code: "result = {'rows': 1}"}
    next: {arcs: [{step: list}]}
  - step: list
    tool: {kind: shell, command: "echo 1"}
Y
    begin() { token=${of[$1]} ask POST /v1/runs "$(jq -nc --arg r "$2" --arg d "$3" '{runId: $r, document: $d}')"; }
    completed() { token=${of[$1]} ask GET "/v1/runs/$2/status" && [ "$(jq -r .status body)" = COMPLETED ]; }
    plan=$(plan_text p "$(shell a 'echo hello')" | jq -r .)
    charge=$(plan_text p '{"stepId":"a","kind":"charge","with":{}}' | jq -r .)
    for tenant in acme beta default; do
        begin $tenant book "$(cat book.yaml)" && answers 202
        begin $tenant plan "$plan" && answers 202
    done
    for tenant in acme beta default; do
        wait_for completed $tenant book
        wait_for completed $tenant plan
    done
    begin beta charge "$charge"; answers 422; has body 'function \"charge\"'
    begin acme charge "$charge"; answers 202
    kill -TERM "$workers"
    wait "$workers" || fail "the worker ended with $?"
    has w1.err '3 results handed in' # two tasks and a step of acme
}

test_what_a_killed_service_left_running_is_gone_before_its_step_runs_again() {
    store
    serve --drain 0
    start r1 "$(shell a "if [ \$CAIRN_ENGINE_ATTEMPT -ge 2 ]; then grep -q '^State:.[RSD]' /proc/\$(cat $PWD/pid)/status 2>/dev/null && echo both || echo alone; exit; fi; \
        setsid bash -c 'echo \$\$ >$PWD/pid.new; mv $PWD/pid.new $PWD/pid; exec sleep 600' & sleep 600")"
    wait_for test -e pid
    kill -9 "$server"
    wait "$server" 2>/dev/null
    [ -d "/proc/$(cat pid)" ] || fail 'it went with the service'
    serve --drain 0
    wait_for ended r1 COMPLETED
    ask GET /v1/runs/r1 && equal "$(jq -r '.steps[0].result' body)" alone
    stop_serving
    intact
}

# A result beside the log is read through the server, by the lease of the task that wants it.
test_worker_reads_stored_results_by_reference_NX_2q_and_only_with_a_lease() {
    site 30s
    worker w1
    cat >big.yaml <<'Y'
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: big, path: big}
workflow:
  - step: make
    tool: {kind: python, code: "result = {'rows': ['x' * 1000] * 100}"}
    next: {arcs: [{step: load}]}
  - step: load
    tool: {kind: artifact, action: get, input: {result_ref: "{{ make._ref }}"}}
    next: {arcs: [{step: count}]}
  - step: count
    tool: {kind: python, input: {data: "{{ load.data }}"}, code: "result = {'rows': len(data['rows'])}"}
Y
    ask POST /v1/runs "$(jq -nc --rawfile d big.yaml '{document: $d, runId: "big"}')" && [ "$status" -lt 300 ] || fail "not started: $(cat body)"
    wait_for ended big COMPLETED
    ask GET /v1/runs/big && equal "$(jq -c '.steps[]|select(.stepId=="count").result' body)" '{"rows":100}'
    ref=$("$CAIRN" events big "${store[@]}" -o jsonl | jq -rs "[..|.sha256? // empty][0]")
    kill -TERM "$worker"; wait "$worker"
    start r2 "$(shell a 'echo for me')"
    (token=$worker_token; ask POST /v1/worker/poll '{"worker":"mine","max":1,"waitMs":10000}'; cp body polled)
    lease=$(jq -r '.tasks[0].token' polled)
    token=$worker_token
    ask GET "/v1/worker/results/nothing?ref=$ref"; answers 403
    ask GET "/v1/worker/results/$lease?ref=$ref"; answers 404; code_is REFERENCE_NOT_AVAILABLE # of another run: a hash alone opens nothing
    ask GET "/v1/worker/results/$lease?ref=noetl://execution/big/step/make"; answers 200
    equal "$(jq '.rows|length' body)" 100
    ask GET "/v1/worker/results/$lease?ref=nonsense"; answers 404; code_is REFERENCE_NOT_AVAILABLE
}

# events TOKEN-OF-THE-CALLER EVENT...: reported for the task of the last poll
events() {
    local token=$1 task
    task=$(jq -c '.tasks[0]|{token, epoch}' polled)
    shift
    ask POST /v1/executions/r1/events "$(jq -nc --argjson t "$task" --argjson e "[$(IFS=,; echo "$*")]" '{worker: "mine", events: $e} + $t')"
}
# event TYPE [OUTCOME]: with an id of its own for each type
event() { jq -nc --arg t "$1" --argjson o "${2:-null}" '{event_id: "01JH-\($t)", execution_id: "r1", event_type: $t, timestamp: "2026-02-05T23:11:22Z", step_run_id: "step:a:run:1", payload: {outcome: $o}} | if $o then . else del(.payload) end'; }
# refused MESSAGE POINTER: the last call, for that place of its body
refused() { answers 400; code_is SCHEMA_VALIDATION_FAILED; equal "$(jq -r '.errors[0].pointer' body)" "$2" "$1"; }
test_every_door_of_workers_holds_its_body_against_its_schema() {
    site 30s
    start r1 "$(shell a 'echo never run here')"
    (token=$worker_token; ask POST /v1/worker/poll '{"worker":"mine","max":1,"waitMs":10000}'; cp body polled)
    local more where
    while IFS='|' read -r more where; do
        (token=$worker_token; ask POST /v1/worker/complete "$(jq -c --argjson m "$more" '{worker: "mine", results: [(.tasks[0]|{token, epoch}) + $m]}' polled)"
         refused "$more" "/results/0$where")
    done <<'FORMS'
{}|
{"value":1,"error":{"code":"X","message":"m"}}|
{"output":"x","value":1}|
{"output":7}|/output
{"value":1,"durationMs":-5}|/durationMs
{"value":1,"durationMs":"5"}|/durationMs
{"value":1,"durationMs":1180591620717411303424}|/durationMs
{"value":1,"hello":1}|/hello
{"value":1,"epoch":"1"}|/epoch
{"error":{}}|/error
{"error":{"code":"X","message":"m","retryable":"yes"}}|/error/retryable
{"error":{"code":"X","message":"m","category":"meh"}}|/error/category
{"error":{"code":"X","message":"m","exitCode":"1"}}|/error/exitCode
{"lost":"yes"}|/lost
FORMS
    while IFS='|' read -r more where; do
        events "$worker_token" "$(event task.done '{"status":"ok","result":7}' | jq -c --argjson m "$more" '. + $m')"
        refused "$more" "/events/0$where"
    done <<'FORMS'
{"payload":"x"}|/payload
{"payload":{"outcome":"ok"}}|/payload/outcome
{"payload":{"outcome":{"status":"meh"}}}|/payload/outcome/status
{"payload":{"outcome":{"status":"error"}}}|/payload/outcome
{"payload":{"meta":[]}}|/payload/meta
{"payload":{"error":"x"}}|/payload/error
{"status":"meh"}|/status
{"timestamp":"yesterday"}|/timestamp
{"timestamp":"2026-02-30T00:00:00Z"}|/timestamp
{"timestamp":7}|/timestamp
{"attempt":0}|/attempt
{"iteration":-1}|/iteration
{"duration_ms":-1}|/duration_ms
{"duration_ms":1180591620717411303424}|/duration_ms
{"source":"server"}|/source
{"entity_type":"case"}|/entity_type
{"event_id":""}|/event_id
{"event_id":7}|/event_id
{"hello":1}|/hello
FORMS
    (token=$worker_token
     ask POST /v1/worker/poll '{"worker":"mine","max":"x"}'; refused poll /max
     ask POST /v1/worker/poll '{"worker":"mi\u0000ne"}'; refused 'a name that is no text' /worker
     ask POST /v1/worker/heartbeat '{"worker":"mine","tasks":[{"token":"x"}]}'; refused heartbeat /tasks/0
     ask POST /v1/worker/logs '{"worker":"mine","chunks":[{"token":"x","epoch":1,"stream":"out","text":""}]}'; refused logs /chunks/0/stream)
    ask GET /v1/runs/r1 && equal "$(jq -r '.status' body)" RUNNING 'nothing of all that was done'
    ask GET /openapi.json && for name in WorkerPoll WorkerHeartbeat WorkerLogs WorkerResults WorkerResult WorkerFailure WorkerEvents WorkerEvent; do
        jq -e --arg n $name '.components.schemas[$n].properties' body >/dev/null || fail "$name is not published"
    done
}
# Names become values by the worker's own provider, which is told whose they are; the server has references alone: in its memory, its log and
# its files there is no value, nor in what the worker hands in.
test_the_worker_resolves_references_for_the_tenant_and_environment_and_the_server_sees_no_value_ES_2b() {
    cat >provider <<'P'
#!/bin/bash
printf 'v-%s' "$(printf '%s|%s|%s' "$CAIRN_SECRET_NAME" "$CAIRN_SECRET_TENANT" "$CAIRN_SECRET_ENVIRONMENT" | sha256sum | cut -c1-40)"
P
    chmod 755 provider
    jq -n --arg p "$PWD/provider" '{providers: [{name: "vault", type: "exec", argv: [$p]}]}' >secrets.json
    chmod 600 secrets.json
    value() { printf 'v-%s' "$(printf '%s|default|%s' "$1" "$2" | sha256sum | cut -c1-40)"; }
    site 30s
    CAIRN_TOKEN=$worker_token "$CAIRN" worker --server "$url" --name w1 --secrets secrets.json -v >w1.out 2>w1.err &
    worker=$!
    step=$(jq -nc '{stepId: "a", kind: "shell", secrets: [{name: "ONE", ref: "secret://vault/one"}, {name: "TWO", ref: "secret://vault/two"}],
        with: {command: "echo \"$ONE is shown\"; printf %s:%s \"$ONE\" \"$TWO\" | sha256sum | cut -c1-64 >&2; printf %s:%s \"$ONE\" \"$TWO\" | sha256sum | cut -c1-64"}}')
    for place in prod test; do
        ask POST /v1/runs "{\"document\":$(plan_text p "$step"),\"runId\":\"r-$place\",\"environmentId\":\"$place\"}"
        wait_for ended r-$place COMPLETED
        ask GET /v1/runs/r-$place/steps/a/output
        has body "$(printf %s:%s "$(value one $place)" "$(value two $place)" | sha256sum | cut -c1-64)" # both, by name, for this environment
        has body '*** is shown'
    done
    [ "$(value one prod)" != "$(value one test)" ] || fail 'one value for both'
    python3 - "$server" "secret://vault/one" "$(value one prod)" "$(value two prod)" "$(value one test)" <<'PY' || fail "values in the server: $(cat memory)"
import re, sys
pid, known, *values = sys.argv[1:]
found = {}
with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
    for line in maps:
        low, high, mode = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
        if mode[0] != "r" or "[v" in line: continue
        try: memory.seek(int(low, 16)); piece = memory.read(int(high, 16) - int(low, 16))
        except (OSError, ValueError): continue
        for word in [known] + values: found[word] = found.get(word, 0) + piece.count(word.encode())
open("memory", "w").write(repr(found))
sys.exit(not (found[known] > 0 and not any(found[v] for v in values)))
PY
    stop_serving
    for v in "$(value one prod)" "$(value two prod)" "$(value one test)"; do
        ! grep -rlqaF -e "$v" --exclude=memory . || fail "a value is in $(grep -rlaF -e "$v" --exclude=memory .)"
    done
    grep -qaF 'secret://vault/one' store.db* || fail 'the reference is not in the store'
}

# A worker may tell where it stored its result with the attempt, and leave result.stored and result.manifest.updated out; one that sends them
# is taken, too. What comes after reads the reference.
test_a_worker_embeds_its_reference_in_the_attempt_and_omits_the_events_of_results_NX_3_7n1() {
    site 30s
    cat >p.yaml <<'Y'
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: p, path: p}
workflow:
  - step: a
    tool: {kind: python, code: "never run here"}
    next: {arcs: [{step: b}]}
  - step: b
    tool: {kind: python, input: {where: "{{ a.ref }}"}, code: "never run here"}
Y
    polled() { (token=$worker_token; ask POST /v1/worker/poll '{"worker":"mine","max":1,"waitMs":10000}'; cp body polled); jq -e '.tasks[0]' polled >/dev/null; }
    ref='{"kind":"result_ref","ref":"s3://elsewhere/r1/a","store":"s3","meta":{"bytes":5000000000}}'
    ask POST /v1/runs "$(jq -n --rawfile d p.yaml '{document: $d, runId: "r1"}')"
    wait_for polled
    events "$worker_token" "$(event task.attempt.done '{"status":"ok"}' | jq -c --argjson r "$ref" '.payload.result_ref = $r')" && answers 200
    equal "$(jq -r '.results[0].state' body)" ok
    wait_for polled
    equal "$(jq -r '.tasks[0].input.with.input.where' polled)" s3://elsewhere/r1/a 'what the next task was given'
    lease=$(jq -c '.tasks[0]|{token, epoch}' polled)
    events "$worker_token" "$(event result.stored | jq -c --argjson r "$ref" '.step_run_id = "step:b:run:1" | .payload = {result_ref: $r}')" \
        "$(event task.done '{"status":"ok"}' | jq -c --argjson r "$ref" '.step_run_id = "step:b:run:1" | .payload.result_ref = $r')" && answers 200
    wait_for ended r1 COMPLETED
    ask GET '/v1/runs/r1/events?limit=200'
    equal "$(jq -r '[.items[] | select(.event_type | startswith("result."))] | length' body)" 0 'events of results'
    equal "$(jq -c '[.items[] | select(.event_type == "task.done") | .payload.outcome.result]' body)" "$(jq -nc --argjson r "$ref" '[$r, $r]' | jq -Sc .)"
    stop_serving
    cairn_is 0 log replay r1 "${store[@]}"
}

test_events_of_workers_are_kept_once_by_their_id_NX_2t() {
    site 30s
    start r1 "$(shell a 'echo never run here')"
    (token=$worker_token; ask POST /v1/worker/poll '{"worker":"mine","max":1,"waitMs":10000}'; cp body polled)
    events "$worker_token" "$(event task.started | jq -c '.payload = {meta: {host: "h7"}}')"; answers 200
    events "$worker_token" "$(event task.started | jq -c '.event_type = "task.done"')"; answers 200 # that id is taken: nothing
    ask GET /v1/runs/r1 && equal "$(jq -r '.status' body)" RUNNING
    events "$worker_token" "$(event case.evaluated)" "$(event task.done '{"status":"ok","result":7}')"; answers 200
    equal "$(jq -c '[.results[].state]' body)" '["denied","ok"]' 'one of them is not a worker'"'"'s to tell'
    wait_for ended r1 COMPLETED
    stop_serving
    serve --route '*=default' --lease 30s --drain 0 # another process has the ledger, and no lease
    events "$worker_token" "$(event task.done '{"status":"error"}' | jq -c '.event_type = "task.failed"')"; answers 200
    ask GET /v1/runs/r1 && equal "$(jq -r '.status' body)" COMPLETED
    ask GET /v1/store/runs/r1/ledger && cp body entries
    stop_serving
    equal "$(jq -sc '[.[]|select(.event_id)|[.event_id, .timestamp, .meta.host]]' entries)" \
        '[["01JH-task.started","2026-02-05T23:11:22Z","h7"],["01JH-task.done","2026-02-05T23:11:22Z",null]]'
    intact
}
test_worker_of_another_make_reports_in_events_NX_5_2_NX_5_3_NX_4b() {
    site 30s
    start r1 "$(shell a 'echo never run here')"
    (token=$worker_token; ask POST /v1/worker/poll '{"worker":"mine","max":1,"waitMs":10000}'; cp body polled)
    events "$worker_token" "$(event step.started)" "$(event case.evaluated)" "$(event task.started)" "$(event task.attempt.started)"; answers 200
    equal "$(jq -c '[.results[].state]' body)" '["ok","denied","ok","ok"]' 'each has a state'
    events "$worker_token" "$(event step.scheduled)"; answers 403; code_is EVENT_NOT_ALLOWED
    events "$worker_token" "$(event task.sang)"; answers 400; code_is EVENT_TYPE_UNKNOWN
    ask POST /v1/tokens '{"name":"o","roles":["Operator"]}'
    events "$(jq -r .token body)" "$(event task.done '{"status":"ok","result":7}')"; answers 403; code_is AUTHZ_DENIED
    events "$worker_token" "$(event tool.processed '{"status":"ok","result":7}')"; answers 200 # as it was called once
    events "$worker_token" "$(event task.done '{"status":"ok","result":7}')"; answers 200      # and the same again
    wait_for ended r1 COMPLETED
    ask GET /v1/runs/r1 && equal "$(jq -c '.steps[0].result' body)" '{"result":7,"status":"ok"}'
}
test_worker_that_is_killed_costs_a_lease_and_no_logical_attempt_RE_5c() {
    site 1s
    worker w1
    first=$worker
    start r1 "$(shell a "echo x >> $PWD/ran; [ \$CAIRN_ENGINE_ATTEMPT -ge 2 ] || sleep 60; echo \$CAIRN_ATTEMPT.\$CAIRN_ENGINE_ATTEMPT")"
    wait_for test -s ran
    kill -9 "$first"
    wait_for counted r1 StepRedispatched 1
    worker w2
    wait_for ended r1 COMPLETED
    ask GET /v1/runs/r1 && equal "$(jq -r '.steps[0].result' body)" 1.2
    equal "$(wc -l <ran)" 2 'starts'
    stop_serving
    intact
}

test_worker_that_sleeps_longer_than_its_lease_changes_nothing_when_it_wakes() {
    site 3s
    worker w1
    first=$worker
    start r1 "$(shell a "echo \$CAIRN_ENGINE_ATTEMPT >> $PWD/ran; [ \$CAIRN_ENGINE_ATTEMPT -ge 2 ] || until [ -e $PWD/go ]; do sleep 0.05; done; echo \$CAIRN_ENGINE_ATTEMPT")"
    wait_for test -s ran
    kill -STOP "$first"
    wait_for is_stopped "$first"
    wait_for counted r1 StepRedispatched 1
    worker w2
    wait_for ended r1 COMPLETED
    ask GET /v1/runs/r1 && equal "$(jq -r '.steps[0].result' body)" 2
    ask GET /v1/runs/r1/events && cp body before
    touch go
    kill -CONT "$first"
    start r2 "$(shell a 'echo again')"
    wait_for ended r2 COMPLETED
    kill -TERM "$first"
    wait "$first" || fail "the worker ended with $?"
    ask GET /v1/runs/r1/events && cmp -s before body || fail "the log of an ended run has changed"
    equal "$(sort ran | uniq -c | awk '{print $1}' | sort -u)" 1 'starts of each engine attempt'
    stop_serving
    intact
}

# The answer to its poll lies in the socket while the lease runs out, another worker completes the step, and the first one goes on.
test_worker_that_was_stopped_after_its_poll_does_not_begin_what_is_over() {
    site 3s
    worker w1
    first=$worker
    polls() { ask GET /v1/workers && [ "$(jq -r '.items[] | select(.worker == "w1").slots' body)" = 4 ]; }
    wait_for polls
    kill -STOP "$first"
    wait_for is_stopped "$first"
    start r1 "$(shell a "echo \$CAIRN_ENGINE_ATTEMPT >> $PWD/ran; echo \$CAIRN_ENGINE_ATTEMPT")"
    wait_for counted r1 StepRedispatched 1 # it was given to the first, whose lease is over
    worker w2
    wait_for ended r1 COMPLETED
    kill -TERM "$worker"
    wait "$worker" || fail "the second worker ended with $?"
    kill -CONT "$first"
    start r2 "$(shell a 'echo again')" # the first one asks for it after it has looked at the answer
    wait_for ended r2 COMPLETED
    kill -TERM "$first"
    wait "$first" || fail "the worker ended with $?"
    has w1.err 'the lease of r1/a was over before it could begin'
    equal "$(cat ran)" 2 'engine attempts that began'
    has w1.err '1 result handed in'
    stop_serving
    intact
}

test_worker_survives_a_server_that_is_killed() {
    site 2s
    worker w1
    port=${url##*:}
    start r1 "$(shell a "echo x >> $PWD/ran; until [ -e $PWD/go ]; do sleep 0.05; done; echo done")" "$(shell b 'echo more')"
    wait_for test -s ran
    kill -9 "$server"
    wait "$server" 2>/dev/null
    wait_for grep -q 'does not answer' w1.err
    touch go
    "$CAIRN" serve "${store[@]}" --listen "127.0.0.1:$port" --route '*=default' --lease 2s >serve.out 2>serve2.err &
    server=$!
    wait_for ended r1 COMPLETED
    ask GET /v1/runs/r1 && equal "$(jq -r '.steps[1].result' body)" more
    kill -TERM "$worker"
    wait "$worker" || fail "the worker ended with $?: $(tail -n 3 w1.err)"
    has w1.err 'answers again'
    stop_serving
    intact
}

test_worker_with_a_plugin_executes_its_functions_and_survives_kill_9() {
    ${CC:-cc} -shared -fPIC -I"$root/include" -o note.so "$e2e/note_plugin.c" || fail note_plugin.c
    store
    serve --route '*=default' --lease 3s --drain 0
    ask POST /v1/tokens '{"name":"w","roles":["Worker"],"pool":"default"}'
    worker_token=$(jq -r .token body)
    export NOTES=$PWD/notes
    step() { jq -nc --arg id "$1" '{stepId: $id, kind: "note", with: {n: 42}}'; }
    cairn_is 2 worker --server "$url" --plugin ./note.so --kinds nosuch
    CAIRN_TOKEN=$worker_token "$CAIRN" worker --server "$url" --name w1 --plugin ./note.so --kinds note --concurrency 600 >w1.out 2>w1.err &
    first=$!
    start r1 "$(step a)" "$(step b)"
    wait_for ended r1 COMPLETED
    ask GET /v1/runs/r1 && equal "$(jq -c '.steps[1].result' body)" '{"n":42}'
    equal "$(cat notes)" "$(printf 'a 1.1\nb 1.1')"
    mkfifo hold
    NOTES=$PWD/hold
    kill -TERM "$first" && wait "$first" || fail "the worker ended with $?"
    has w1.err '2 results handed in'
    CAIRN_TOKEN=$worker_token "$CAIRN" worker --server "$url" --name w2 --plugin ./note.so >w2.out 2>w2.err &
    first=$!
    start r2 "$(step c)" # its function waits for somebody to read
    leased() { ask GET /v1/workers && [ "$(jq '[.items[].leases] | add' body)" = 1 ]; }
    wait_for leased
    kill -9 "$first"
    wait_for counted r2 StepRedispatched 1
    NOTES=$PWD/notes
    CAIRN_TOKEN=$worker_token "$CAIRN" worker --server "$url" --name w3 --plugin ./note.so >w3.out 2>w3.err &
    second=$!
    wait_for ended r2 COMPLETED
    equal "$(tail -n 1 notes)" 'c 1.2'
    stop_serving
    kill -9 "$second"
    intact
}

# A function of a plugin and a kind of task may have one name: the step of a plan gets the function, the task of a playbook the task.
test_worker_tells_a_function_from_a_task_of_the_same_name() {
    sed 's/"note"/"python"/' "$e2e/note_plugin.c" >plugin.c
    ${CC:-cc} -shared -fPIC -I"$root/include" -o plugin.so plugin.c || fail plugin.c
    site 30s
    export NOTES=$PWD/notes
    CAIRN_TOKEN=$worker_token "$CAIRN" worker --server "$url" --name w1 --plugin ./plugin.so >w1.out 2>w1.err &
    start r1 '{"stepId":"a","kind":"python","with":{"n":42}}'
    wait_for ended r1 COMPLETED
    equal "$(cat notes)" 'a 1.1' 'the function'
    printf 'apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: b, path: b}\nworkflow:\n  - {step: b, tool: {kind: python, code: "result = 6 * 7"}}\n' >b.yaml
    ask POST /v1/runs "$(jq -nc --rawfile d b.yaml '{document: $d, runId: "r2"}')" && answers 202
    wait_for ended r2 COMPLETED
    ask GET /v1/runs/r2 && equal "$(jq -c '.steps[0].result' body)" 42
    equal "$(cat notes)" 'a 1.1' 'and nothing else'
    stop_serving
}

test_worker_without_a_credential_ends_and_says_why() {
    site
    worker_token=cairn_nobody_00000000000000000000000000000000
    CAIRN_TOKEN=$worker_token timeout 10 "$CAIRN" worker --server "$url" >out 2>err
    equal $? 4 'exit'
    has err 'refuses a poll'
    cairn_is 2 worker
    cairn_is 2 worker --server "$url" --kinds llm
}

test_worker_in_python_speaks_the_protocol() {
    site 30s
    # who is not let in says so and ends, and does not ask again and again
    CAIRN_TOKEN=cairn_wrong timeout 20 python3 "$root/examples/worker.py" "$url" >py.out 2>py.err && fail 'it worked'
    has py.err 'a token is needed'
    cairn_is 2 worker --server ftp://nowhere --token-file /dev/null; has err "the scheme is not allowed"
    CAIRN_TOKEN=$worker_token python3 "$root/examples/worker.py" "$url" >py.out 2>py.err &
    workers=$!
    start r1 "$(shell a 'echo hello')" "$(shell b 'echo oops >&2; exit 3')" \
        "$(jq -nc '{stepId: "c", kind: "shell", dependsOn: [], with: {command: "echo 42 > $ARTIFACTS_DIR/r.txt"}, artifacts: [{path: "r.txt"}]}')"
    wait_for ended r1 FAILED
    ask GET /v1/runs/r1 && equal "$(jq -r '.steps[0].result' body)" hello
    ask GET /v1/runs/r1/steps/b/logs && has body oops
    equal "$(jq -r '.steps[] | select(.stepId == "c").status' <("$CAIRN" get r1 "${store[@]}" -o json))" SUCCESS 'step with an artifact'
    stop_serving
}

# Its result is sent, whatever stands in place of the artifact, and so is that of the step beside it.
test_a_pipe_in_place_of_an_artifact_keeps_no_worker() {
    site 30s
    worker one
    start r1 "$(jq -nc '{stepId: "a", kind: "shell", dependsOn: [], with: {command: "mkfifo $ARTIFACTS_DIR/p"}, artifacts: [{path: "p"}]}')" \
        "$(jq -nc '{stepId: "b", kind: "shell", dependsOn: [], with: {command: "echo 42 > $ARTIFACTS_DIR/r"}, artifacts: [{path: "r"}]}')"
    wait_for ended r1 FAILED
    "$CAIRN" get r1 "${store[@]}" -o json >got
    equal "$(jq -r '[.steps[] | .stepId + " " + .status + " " + (.error.code // "")] | join(", ")' got)" 'a FAILED ARTIFACT_MISSING, b SUCCESS '
    stop_serving
}

run_tests "$@"
