# Queues, limits, approvals and capabilities of the service, as callers meet them.
. "$(dirname "$0")/serve_lib.sh"

noop='{"stepId":"a","kind":"noop"}'
# A step that goes on until the file NAME is there.
held() { jq -nc --arg c "while [ ! -e $PWD/$1 ]; do sleep 0.02; done" '{stepId: "a", kind: "shell", with: {command: $c}}'; }
start() { # RUN STEP [MEMBERS]
    ask POST /v1/runs "{\"document\":$(plan_text p "$2"),\"runId\":\"$1\"${3:+,$3}}" "${@:4}"
}
queue() { ask PUT "/v1/queues/$1" "$2" && answers 200; }
state() { ask GET "/v1/runs/$1/status" && jq -r '.status' body; }
becomes() { wait_for in_state "$1" "$2"; }
in_state() { [ "$(state "$1")" = "$2" ]; }
types() { ask GET "/v1/runs/$1/events" && jq -r '[.items[].eventType] | join(" ")' body; }
header_is() { grep -qi "^$1: $2"$'\r*$' head || fail "no header $1: $2 in $(cat head)"; }

test_reject_answers_429_with_a_time_to_come_back_ES_3a_C_54() {
    serve
    queue fast '{"policy":"REJECT","maxRunning":1}'
    start r1 "$(held go)" '"queue":"fast"' && answers 202
    start r2 "$noop" '"queue":"fast"' && answers 429 && code_is OVERLOADED
    equal "$(jq -r '.retryable, .retryAfterMs' body | tr '\n' ' ')" 'true 1000 '
    header_is Retry-After 1
    header_is RateLimit-Policy '"runs";q=1'
    header_is RateLimit '"runs";r=0;t=1'
    start r1 "$noop" '"queue":"fast","runRequestId":"other"' && answers 409 && code_is RUN_ALREADY_EXISTS
    ask GET /v1/runs/r2/status && answers 404
    start r3 "$noop" '"queue":"nowhere"' && answers 422 && code_is QUEUE_NOT_FOUND
    start r4 "$noop" '' 'Prefer: wait=20' && answers 200
    touch go
    becomes r1 COMPLETED
    start r2 "$noop" '"queue":"fast"' 'Prefer: wait=20' && answers 200
}

test_queue_keeps_runs_pending_in_order_ES_3b_WE_2_2d_WE_2_2e() {
    serve
    queue q '{"policy":"QUEUE","maxRunning":1,"maxQueued":2}'
    start r1 "$(held go)" '"queue":"q"' && answers 202
    start r2 "$(held go2)" '"queue":"q"' && answers 202
    equal "$(jq -r '.status, .message' body | tr '\n' ' ')" 'PENDING in the queue '
    start r3 "$noop" '"queue":"q"' && answers 202
    start r4 "$noop" '"queue":"q"' && answers 429 && code_is RUN_QUEUE_FULL
    ask GET /v1/runs/r2/events && equal "$(jq -c '[.items[] | [.eventType, .emittedBy, .payload.queue, .payload.admission]]' body)" \
        '[["RunQueued","engine","q","QUEUE"]]'
    ask GET /v1/queues/q && equal "$(jq -c '[.running, .queued, .oldestQueuedAt != null]' body)" '[1,2,true]'
    touch go
    becomes r2 RUNNING
    equal "$(state r3)" PENDING
    touch go2
    becomes r3 COMPLETED
    equal "$(types r2 | grep -o RunStarted | wc -l)" 1
    ask GET /v1/queues/q && equal "$(jq -c '[.running, .queued]' body)" '[0,0]'
}

test_delay_starts_and_holds_back_the_steps_ES_3c() {
    serve
    queue q '{"policy":"DELAY","maxRunning":1,"delayMs":400}'
    start r1 "$(held go)" '"queue":"q"' && answers 202
    start r2 "$noop" '"queue":"q"' 'Prefer: wait=20' && answers 200
    ask GET /v1/runs/r2/events
    equal "$(jq -c '[.items[].eventType]' body)" '["RunQueued","RunStarted","StepDelayed","StepStarted","StepCompleted","RunCompleted"]'
    jq -e '[.items[] | select(.eventType == "StepDelayed") | .payload.notBefore | length] == [24]' body >/dev/null || fail "no notBefore: $(cat body)"
}

test_the_reconciler_tells_what_it_started_and_starts_it_once_ES_3d_ES_3e() {
    serve
    queue q '{"policy":"QUEUE","maxRunning":2}'
    ask POST /v1/queues/q/pause && answers 200 && equal "$(jq .paused body)" true
    for r in r1 r2 r3; do start $r "$noop" '"queue":"q"' && answers 202; done
    ask POST /v1/queues:reconcile && answers 200 && equal "$(jq -c .items body)" '[]'
    ask DELETE /v1/queues/q && answers 409 && code_is QUEUE_NOT_EMPTY
    ask POST /v1/queues/q/resume && answers 200
    callers=()
    for i in 1 2 3; do
        curl -s -o "told$i" -X POST -H "Authorization: Bearer $token" "$url/v1/queues:reconcile" &
        callers+=($!)
    done
    wait "${callers[@]}"
    for r in r1 r2 r3; do becomes $r COMPLETED; equal "$(types $r | grep -o RunStarted | wc -l)" 1 "$r starts"; done
    ask POST /v1/queues:reconcile && answers 200 && cp body told4
    equal "$(cat told? | jq -sc '[.[].items[]|.runId + " " + .status] | sort')" '["r1 STARTED","r2 STARTED","r3 STARTED"]' 'each in one answer'
    ask POST /v1/queues:reconcile && equal "$(jq -c .items body)" '[]'
    ask DELETE /v1/queues/q && answers 204
    ask GET /v1/queues/q && answers 404
    ask GET /v1/queues && equal "$(jq -c '[.items[].name]' body)" '["default"]'
}

test_after_kill_9_nothing_is_forgotten_and_nothing_starts_twice_ES_3h() {
    unconfined
    serve
    queue q '{"policy":"QUEUE","maxRunning":1}'
    start r1 "$(held go)" '"queue":"q"' && answers 202
    for r in r2 r3 r4; do start $r "$(jq -nc --arg c "echo $r >>$PWD/order" '{stepId:"a",kind:"shell",with:{command:$c}}')" '"queue":"q"' && answers 202; done
    for _ in 1 2; do
        kill -9 "$server"
        wait "$server" 2>/dev/null || true
        serve
        ask GET /v1/queues/q && equal "$(jq -c '[.policy, .maxRunning, .running, .queued]' body)" '["QUEUE",1,1,3]'
    done
    touch go
    becomes r4 COMPLETED
    for r in r1 r2 r3 r4; do equal "$(types $r | grep -o RunStarted | wc -l)" 1 "$r starts"; done
    equal "$(tr '\n' ' ' <order)" 'r2 r3 r4 ' order
    stop_serving
    intact
}

test_limits_of_a_tenant_and_of_the_service() {
    serve --max-runs 2
    ask PUT /v1/limits '{"runsInFlight":1}' && answers 200
    start r1 "$(held go)" && answers 202
    start r2 "$(held go)" && answers 202 && equal "$(jq -r .status body)" PENDING
    ask GET /v1/limits && equal "$(jq -c . body)" '{"runsInFlight":1,"startsPerSecond":0,"runsNow":1}'
    ask PUT /v1/limits '{"runsInFlight":0,"startsPerSecond":1000}' && answers 200
    becomes r2 RUNNING
    start r3 "$noop" && answers 202 && equal "$(jq -r .status body)" PENDING
    ask PUT /v1/limits '{"runsInFlight":-1}' && answers 400
    ask PUT /v1/limits '{"runs":1}' && answers 400 && has body 'unknown property'
    ask PUT /v1/queues/q '{"policy":"LATER"}' && answers 400
    ask PUT '/v1/queues/a%7Cb' '{}' && answers 400
    touch go
    becomes r3 COMPLETED
    ask PUT /v1/limits '{"startsPerSecond":1}' && answers 200
    limited=0
    for i in 1 2 3 4 5 6; do
        start "s$i" "$noop"
        [ "$status" = 202 ] || { answers 429 && code_is OVERLOADED && header_is RateLimit-Policy '"starts";q=1;w=1'; limited=1; }
    done
    equal $limited 1 'starts beyond the limit'
}

test_signals_of_a_run_are_limited() {
    serve
    start r1 "$(held go)" && answers 202
    for i in $(seq 60); do
        printf 'url = "%s/v1/runs/r1/signals"\nheader = "Authorization: Bearer %s"\nheader = "Content-Type: application/json"\ndata = "{\\"signalId\\":\\"00000000-0000-4000-8000-0000000000%02d\\",\\"signalType\\":\\"RESUME\\",\\"payload\\":{}}"\nwrite-out = "%%{http_code}\\n"\noutput = /dev/null\n' "$url" "$token" "$i"
        [ "$i" = 60 ] || echo next
    done >calls
    curl -s -K calls >codes
    ! grep -q 429 codes || fail "refused too early: $(sort codes | uniq -c)"
    ask POST /v1/runs/r1/signals '{"signalId":"00000000-0000-4000-8000-000000000099","signalType":"PAUSE","payload":{}}'
    answers 429 && code_is SIGNAL_RATE_LIMITED
    header_is RateLimit-Policy '"signals";q=60;w=60'
    grep -qi '^Retry-After: [1-9]' head || fail 'no Retry-After'
    touch go
}

# It is a decision like any other: with a record, an event, ids to ask for it by, and no effect.
test_es_1_2i_that_a_sender_may_not_is_recorded_with_the_run() {
    serve
    admin=$token
    ask POST /v1/tokens '{"roles":["Operator"]}' && operator=$(jq -r .token body)
    start r1 "$(held go)" && becomes r1 RUNNING
    params() { ask POST /v1/runs/r1/signals "{\"signalId\":\"$1\",\"signalType\":\"UPDATE_PARAMS\",\"payload\":{\"params\":{\"x\":1}}$2}"; }
    first=51111111-1111-4111-8111-111111111111 second=52222222-2222-4222-8222-222222222222 third=53333333-3333-4333-8333-333333333333
    token=$operator
    params $first ',"reason":"now"' && answers 403 && code_is AUTHZ_DENIED
    equal "$(jq -r .decision body)" REJECTED && decided=$(jq -r .policyDecisionId body)
    for id in $first "$decided"; do
        ask GET "/v1/runs/r1/signals/$id" && answers 200
        equal "$(jq -r '[.decision, .engineResult.errorCode, .audit.actorRole] | join(" ")' body)" 'REJECTED AUTHZ_DENIED Operator'
    done
    ask GET '/v1/runs/r1/events?types=Signal*&limit=500' && equal "$(jq -r '[.items[] | .eventType + ":" + .payload.errorCode] | join(" ")' body)" SignalRejected:AUTHZ_DENIED
    token=$admin
    params $second '' && answers 403 && code_is AUTHZ_REASON_REQUIRED && equal "$(jq -r .signalId body)" $second
    params $third ',"reason":"now"' && answers 202
    token=$operator
    params $third ',"reason":"now"' && answers 403 && equal "$(jq -r .decision body)" null 'what another one was told'
    for i in $(seq 70); do params "$(cat /proc/sys/kernel/random/uuid)" ',"reason":"now"'; answers 403; done
    equal "$(jq -r .decision body)" null 'beyond the measure'
    token=$admin # whose signals that did not use up
    params "$(cat /proc/sys/kernel/random/uuid)" ',"reason":"now"' && answers 202
    ask POST /v1/runs/nobody/signals "{\"signalId\":\"$first\",\"signalType\":\"PAUSE\",\"payload\":{}}" && answers 404
    touch go && becomes r1 COMPLETED
}

test_a4_guessed_tokens_are_limited_and_right_ones_are_not() {
    serve
    real=$token
    digit=$([ "${real:23:1}" = 7 ] && echo 8 || echo 7)
    for i in $(seq 12); do
        token=${real:0:23}$digit${real:24}
        ask GET /v1/whoami
        [ "$status" = 429 ] && break
        answers 401
    done
    answers 429 && code_is AUTHN_RATE_LIMITED
    equal "$i" 11 'guesses until it is refused'
    token=$real
    ask GET /v1/whoami && answers 200
}

gated() { jq -n --argjson s "$noop" '{metadata: {planId: "p", planVersion: "1", schemaVersion: "v1.2", requiresApproval: true}, steps: [$s]} | tojson'; }
approve() { ask POST "/v1/runs/$1/signals" "{\"signalId\":\"$2\",\"signalType\":\"APPROVE\",\"payload\":{}}"; }

test_a_run_waits_for_its_approval_then_for_its_place_WE_2_1_2e() {
    serve
    admin=$token
    ask POST /v1/tokens '{"roles":["Operator"],"name":"op"}' && answers 201
    operator=$(jq -r .token body)
    queue q '{"policy":"QUEUE","maxRunning":1}'
    start r1 "$(held go)" '"queue":"q"' && answers 202
    ask POST /v1/runs "{\"document\":$(gated),\"runId\":\"g1\",\"queue\":\"q\"}" && answers 202
    equal "$(jq -r '.status, .substatus' body | tr '\n' ' ')" 'PENDING WAITING_APPROVAL '
    token=$operator
    approve g1 11111111-1111-4111-8111-111111111111 && answers 202
    token=$admin
    becomes g1 APPROVED
    touch go
    becomes g1 COMPLETED
    equal "$(types g1 | cut -d' ' -f1-4)" 'RunQueued SignalAccepted RunApproved RunStarted'
    ask POST /v1/runs "{\"document\":$(gated),\"runId\":\"g2\"}" && answers 202
    approve g2 22222222-2222-4222-8222-222222222222 && answers 202
    becomes g2 COMPLETED
}

capable() { # ADAPTER FALLBACK CAPABILITY
    jq -n --arg a "$1" --arg f "$2" --arg c "$3" --argjson s "$noop" \
        '{metadata: {planId: "p", planVersion: "1", schemaVersion: "v1.2", targetAdapter: $a, fallbackBehavior: $f, requiresCapabilities: [$c]}, steps: [$s]} | tojson'
}

test_what_a_plan_requires_is_checked_before_it_starts_WE_4a_WE_4b_WE_4d_C_20() {
    serve
    ask POST /v1/runs "{\"document\":$(capable conductor reject workflow.child.workflows),\"runId\":\"r1\"}"
    answers 422 && code_is CAPABILITY_NOT_SUPPORTED
    equal "$(jq -r '.title, .validationReport.status, .validationReport.errors[0].capability' body | tr '\n' ' ')" \
        'PlanValidationError ERRORS workflow.child.workflows '
    ask GET /v1/runs/r1/status && answers 404
    ask POST /v1/plans:validate "{\"document\":$(plan_text p '{"stepId":"a","kind":"shel"}')}" && answers 422 && code_is UNSUPPORTED # as a start
    ask POST /v1/plans:validate "{\"document\":$(capable conductor emulate signal.pause.native)}" && answers 200
    equal "$(jq -r '.status, .planId, .warnings[0].code' body | tr '\n' ' ')" 'WARNINGS p CAPABILITY_EMULATED '
    ask POST /v1/plans:validate "{\"document\":$(capable any reject signal.pause.native),\"targetAdapter\":\"conductor\"}" && answers 200
    equal "$(jq -r .status body)" ERRORS
}

test_warnings_go_with_the_run_and_the_matrix_is_told_WE_4e_WE_4f_C_07() {
    serve
    ask POST /v1/runs "{\"document\":$(capable conductor degrade workflow.child.workflows),\"runId\":\"r1\"}" 'Prefer: wait=20' && answers 200
    ask GET /v1/runs/r1/events
    equal "$(jq -c '.items[] | select(.eventType == "RunStarted") | .payload | [.degraded, .profile, .warnings[0].code]' body)" \
        '[true,"conductor","CAPABILITY_DEGRADED"]'
    ask GET /v1/capabilities && answers 200 && equal "$(jq -c .documents body)" '["plan","nodes","playbook"]'
    equal "$(jq -c '.providers, (.capabilities[] | select(.capability == "signal.pause.native") | [.cairn, .conductor])' body | tr '\n' ' ')" \
        '["cairn","temporal","conductor","mock"] ["native","emulated"] '
    equal "$(jq -c .hosts body)" '[]' 'what carries runs here'
}

test_there_is_no_adapter_auto_WE_2_1g() {
    serve
    start r1 "$noop" '"targetAdapter":"auto"' && answers 422 && code_is INVALID_TARGET_ADAPTER
    ask POST /v1/runs "{\"document\":$(capable temporal reject basic-execution),\"targetAdapter\":\"conductor\"}" && answers 422 && code_is TARGET_ADAPTER_MISMATCH
    start r1 "$noop" '"targetAdapter":"temporal"' 'Prefer: wait=20' && answers 200
}

test_references_are_looked_up_and_never_called_WE_2_1_1c_WE_2_1_1d_WE_2_1_3e_WE_2_1_3f_WE_2_1_3h() {
    serve
    start r1 "$noop" '"targetAdapter":"temporal"' 'Prefer: wait=20' && answers 200
    ref=$(jq .engineRunRef body)
    ask POST /v1/runs:resolve "{\"ref\":${ref/default/elsewhere}}" && answers 404
    ask POST /v1/runs:resolve "{\"ref\":$ref}" && answers 200
    equal "$(jq -r '.runId, .tenantId, .projectId, .environmentId, .planId' body | tr '\n' ' ')" 'r1 default default default p '
    temporal='{"provider":"temporal","namespace":"default","workflowId":"r1","runId":"r1"}'
    ask POST /v1/runs:resolve "{\"ref\":$temporal}" && answers 200
    ask POST /v1/runs:resolve "{\"ref\":$(jq -c 'del(.namespace)' <<<"$temporal")}" && answers 400 && code_is ADAPTER_INVALID_RUN_REF
    conductor='{"provider":"conductor","workflowId":"r1","runId":"r1","conductorUrl":"http://127.0.0.1:1/"}'
    ask POST /v1/runs:resolve "{\"ref\":$conductor}" && answers 404
    ask POST /v1/runs:resolve "{\"ref\":$(jq -c 'del(.conductorUrl)' <<<"$conductor")}" && answers 400 && code_is ADAPTER_INVALID_RUN_REF
    ask POST /v1/runs:resolve '{"ref":{"provider":"cairn","workflowId":"r1"}}' && answers 400 # WE-2.1.1e
    ask POST /v1/runs:resolve '{"ref":{"provider":"cairn","workflowId":"r9","runId":"r9"}}' && answers 404
    ask POST /v1/runs:resolve '{"ref":{"provider":"cairn","workflowId":"other","runId":"r1"}}' && answers 404
}

run_tests "$@"
