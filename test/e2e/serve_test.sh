# The service as a user meets it: started, asked, stopped, killed.
. "$(dirname "$0")/serve_lib.sh"

noop='{"stepId":"a","kind":"noop"}'
shell() { jq -nc --arg id "$1" --arg c "$2" '{stepId: $id, kind: "shell", with: {command: $c}}'; }

test_serve_needs_a_token_even_on_this_machine() {
    serve
    equal "$(stat -c %a store.db.token)" 600 "mode of the token"
    real=$token
    token=
    ask GET /v1/runs && answers 401 && code_is AUTHN_REQUIRED
    ask GET /nothing/here && answers 401
    ask GET /livez && answers 200
    token=${real%?}x
    ask GET /v1/runs && answers 401
    token=$real
    ask GET /v1/whoami && answers 200
    equal "$(jq -r .tenantId body)" default tenant
    has head "Cairn-Version: $("$CAIRN" version | cut -d' ' -f2)"
}

test_serve_refuses_to_be_reached_from_elsewhere_without_tls() {
    cairn_is 2 serve --store "sqlite:$PWD/store.db" --listen 0.0.0.0:0
    has err '--tls-cert'
}

test_start_a_run_and_read_it_back_WE_2_1_2a() {
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop" "$(shell b 'echo hello')"),\"runId\":\"r1\"}" 'Prefer: wait=20'
    answers 200
    equal "$(jq -r .status body)" COMPLETED
    has head 'Location: /v1/runs/r1'
    ask GET /v1/runs/r1/status && answers 200
    equal "$(jq -r '.status, (.completedAt != null)' body | tr '\n' ' ')" 'COMPLETED true ' 'WE-2.1.2a'
    ask GET /v1/runs/r1 && equal "$(jq -r '.steps[1].result' body)" hello
    etag=$(sed -n 's/^ETag: \(.*\)\r/\1/p' head)
    ask GET /v1/runs/r1 '' "If-None-Match: $etag" && answers 304
    ask GET /v1/runs/r1/steps/b/logs && equal "$(cat body)" hello log
    ask GET /v1/runs/r1/steps/b/why && equal "$(jq -r .state body)" done
    ask GET "/v1/runs/r1/events?limit=2" && equal "$(jq '.items | length' body)" 2
    ask GET '/v1/runs/r1/events' '' 'Accept: application/x-ndjson' && equal "$(wc -l <body)" 7 lines
    ask GET /v1/runs && equal "$(jq -r '.items[0].runId' body)" r1
    stop_serving
    status_is r1 COMPLETED || fail "the store says otherwise"
    intact
}

test_the_same_request_starts_one_run_ES_3f_WE_2_1f() {
    serve
    body="{\"document\":$(plan_text p "$noop"),\"runRequestId\":\"q-1\"}"
    ask POST /v1/runs "$body" 'Prefer: wait=20' && answers 200
    run=$(jq -r .runId body)
    ask POST /v1/runs "$body" && answers 200
    equal "$(jq -r .runId body)" "$run"
    has head 'Idempotency-Replayed: true'
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop" "$(shell b true)"),\"runRequestId\":\"q-1\",\"inputs\":{}}"
    answers 422 && code_is IDEMPOTENCY_KEY_REUSED
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop")}" 'Idempotency-Key: "q-1"' && answers 200
    ask GET /v1/runs && equal "$(jq '.items | length' body)" 1 runs
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop"),\"runId\":\"$run\"}" && answers 409 && code_is RUN_ALREADY_EXISTS
}

test_refusals_store_nothing() {
    serve
    ask POST /v1/runs '{"planRef":{"uri":"file:///etc/passwd","sha256":"0","schemaVersion":"v1.2","planId":"p","planVersion":"1"}}'
    answers 422 && code_is PLAN_URI_NOT_ALLOWED
    ask POST /v1/runs '{"document":"{}"}' && answers 422
    ask POST /v1/runs '{"dokument":"x"}' && answers 400 && has body 'dokument'
    ask POST /v1/runs '{"document":' && answers 400
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop"),\"runId\":\"a|b\"}" && answers 400 && code_is INVALID_RUN_ID
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop"),\"context\":{\"tenantId\":\"other\"}}" && answers 404
    ask GET /v1/runs && equal "$(jq '.items | length' body)" 0 runs
    ask GET '/v1/audit' && has body AUTHZ_TENANT_FORBIDDEN
}

test_signals_are_decided_and_remembered() {
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p "$(shell a 'sleep 30')" "$noop" | sed 's/"a\\",\\"kind\\":\\"noop/"z\\",\\"kind\\":\\"noop/'),\"runId\":\"r1\"}"
    answers 202
    id=11111111-1111-4111-8111-111111111111
    ask PUT /v1/runs/r1/signals/$id '{"signalType":"PAUSE","payload":{"reason":"lunch"}}' && answers 202
    equal "$(jq -r .decision body)" ACCEPTED
    first=$(jq -cS . body)
    ask PUT /v1/runs/r1/signals/$id '{"signalType":"PAUSE","payload":{"reason":"lunch"}}' && answers 200
    has head 'Idempotency-Replayed: true'
    equal "$(jq -cS . body)" "$first" 'the same signal again: the answer of the first time'
    ask PUT /v1/runs/r1/signals/$id '{"signalType":"PAUSE","payload":{"reason":"lunch"}}' 'If-Match: "r-3"' && answers 200
    ask PUT /v1/runs/r1/signals/$id '{"signalType":"PAUSE","payload":{"reason":"dinner"}}'
    answers 409 && code_is SIGNAL_DUPLICATE
    ask GET /v1/runs/r1/status && equal "$(jq -r '.status + "/" + .substatus' body)" PAUSED/DRAINING 'ES-6-5'
    ask GET /v1/runs/r1 && equal "$(jq -r .message body)" 'waiting for 1 step in flight' 'ES-6-5'
    ask POST /v1/runs/r1/signals '{"signalType":"PAUSE","payload":{"colour":1},"signalId":"21111111-1111-4111-8111-111111111111"}'
    answers 400 && code_is SIGNAL_INVALID_PAYLOAD
    ask POST /v1/runs/r1/signals '{"signalType":"PAUSE","payload":{}}' && answers 400 && has body '"the signal lacks the property'
    ask POST /v1/runs/r1/signals '{"signalType":"CANCEL","payload":{},"signalId":"31111111-1111-4111-8111-111111111111"}' && answers 202
    wait_for eval 'ask GET /v1/runs/r1/status && [ "$(jq -r .status body)" = CANCELLED ]'
    ask POST /v1/runs/r1/signals '{"signalType":"PAUSE","payload":{},"signalId":"41111111-1111-4111-8111-111111111111"}'
    answers 409 && code_is RUN_TERMINAL
    ask POST /v1/runs/r1/signals '{"signalType":"PAUSE","payload":{},"signalId":"41111111-1111-4111-8111-111111111111"}'
    answers 409 && code_is RUN_TERMINAL && has head 'Idempotency-Replayed: true'
    ask GET /v1/runs/r1/signals/$id && equal "$(jq -r '.decision + " " + .audit.reason' body)" 'ACCEPTED lunch'
    policy=$(jq -r .policyDecisionId body)
    ask GET /v1/runs/r1/signals/$policy && equal "$(jq -r .signalId body)" $id
    ask GET /v1/runs/r1/signals && equal "$(jq '.items | length' body)" 3 records
}

test_a_run_between_two_attempts_is_retrying_WE_2_1_2c() {
    local again='{"stepId":"a","kind":"shell","with":{"command":"exit 1"},"retry":{"maxAttempts":2,"delay":"10m"},"dependsOn":[]}'
    local other='{"stepId":"b","kind":"shell","with":{"command":"sleep 600"},"dependsOn":[]}' gate='{"stepId":"g","kind":"approval","dependsOn":[]}'
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p "$again"),\"runId\":\"r1\"}"
    answers 202
    wait_for eval 'ask GET /v1/runs/r1/status && [ "$(jq -r .substatus body)" = RETRYING ]'
    equal "$(jq -r '.status + ": " + .message' body)" 'RUNNING: a step waits for its next attempt'
    ask GET /v1/runs/r1 && equal "$(jq -r '.substatus + ": " + .message' body)" 'RETRYING: step a will be tried again'
    ask POST /v1/runs "{\"document\":$(plan_text p "$again" "$other" "$gate"),\"runId\":\"r2\"}" && answers 202 # also while others run
    wait_for eval 'ask GET /v1/runs/r2/status && [ "$(jq -r .substatus body)" = RETRYING ]'
    ask GET '/v1/runs?q=substatus%3DRETRYING' && equal "$(jq -c '[.items[].runId]' body)" '["r2","r1"]'
    export CAIRN_TOKEN=$token
    cairn_is 0 inbox --server "$url" -o name # a question is seen whatever else its run does
    equal "$(cat out)" r2/g
    # No person is needed for what goes on by itself.
    cairn_is 12 wait r1 --server "$url" --exit-on-wait --timeout 1s; hasnt err 'waits for a person'
    kill -9 "$server"; wait "$server" 2>/dev/null
    cairn_is 0 ps --store "sqlite:$PWD/store.db" -o json; equal "$(jq -c '[.[] | select(.runId == "r1") | .next | contains("recover r1")]' out)" '[true]'
}

test_events_stream_resumes_where_it_stopped() {
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p "$(shell a "until [ -e $PWD/go ]; do sleep 0.05; done")"),\"runId\":\"r1\"}" && answers 202
    (wait_for grep -q '^id: 3' stream; touch go) &
    timeout 20 curl -sN -H "Authorization: Bearer $token" -H 'Accept: text/event-stream' "$url/v1/runs/r1/events" >stream
    equal "$(sed -n 's/^id: //p' stream | tr '\n' ' ')" '1 2 3 4 5 '
    timeout 20 curl -sN -H "Authorization: Bearer $token" -H 'Accept: text/event-stream' -H 'Last-Event-ID: 3' "$url/v1/runs/r1/events" >rest
    equal "$(sed -n 's/^id: //p' rest | tr '\n' ' ')" '4 5 '
    has rest 'event: RunCompleted'
}

test_the_stream_of_a_run_that_is_not_there_is_refused() {
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop"),\"runId\":\"r1\"}" 'Prefer: wait=20' && answers 200
    for path in /v1/runs/r2 /v1/t/default/p/other/e/default/runs/r1; do
        status=$(curl -s -m 5 -o body -w '%{http_code}' -H "Authorization: Bearer $token" -H 'Accept: text/event-stream' "$url$path/events")
        answers 404 && code_is NOT_FOUND
    done
}

test_logs_are_those_of_the_last_attempt_unless_another_is_named() {
    unconfined
    serve
    retried='{"stepId":"a","kind":"shell","retry":{"maxAttempts":3,"delay":"1ms"},"with":{"command":"echo try >>'$PWD'/tries; echo $(wc -l <'$PWD'/tries); [ $(wc -l <'$PWD'/tries) = 3 ]"}}'
    ask POST /v1/runs "{\"document\":$(plan_text p "$retried"),\"runId\":\"r1\"}" 'Prefer: wait=20' && answers 200
    ask GET /v1/runs/r1/steps/a/logs && equal "$(cat body)" 3
    ask GET '/v1/runs/r1/steps/a/logs?attempt=2' && equal "$(cat body)" 2
    ask GET '/v1/runs/r1/steps/a/logs?attempt=9' && answers 404
}

test_runs_are_listed_by_tag() {
    serve
    tagged() { jq -nc --arg t "$1" '{metadata: {planId: "p", planVersion: "1", schemaVersion: "v1.2", tags: [$t]}, steps: [{stepId: "a", kind: "noop"}]} | tojson'; }
    ask POST /v1/runs "{\"document\":$(tagged nightly),\"runId\":\"r1\"}" 'Prefer: wait=20' && answers 200
    ask POST /v1/runs "{\"document\":$(tagged "it's"),\"runId\":\"r2\"}" 'Prefer: wait=20' && answers 200
    ask GET '/v1/runs?tag=nightly&sort=-createdAt' && equal "$(jq -r '[.items[].runId] | join(" ")' body)" r1
    ask GET '/v1/runs?tag=it%27s&q=status=COMPLETED' && equal "$(jq -r '[.items[].runId] | join(" ")' body)" r2
    ask GET '/v1/runs?tag=it%27s&q=status=FAILED%20or%20plan=none' && equal "$(jq '.items | length' body)" 0
    ask GET '/v1/runs?tag=x&q=stauts=1' && answers 400 && has body 'at character 1: there is no field stauts'
    ask GET '/v1/runs?sort=name' && answers 400
}

types_of() { ask GET "/v1/runs/r1/events?$1" && equal "$(jq -r '[.items[] | .eventType // .event_type] | join(" ")' body)" "$2" "$1"; }
test_events_are_chosen_by_type_and_by_step() {
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop" "$(shell b 'echo hello')"),\"runId\":\"r1\"}" 'Prefer: wait=20' && answers 200
    types_of 'step=b' 'StepStarted StepCompleted'
    types_of 'types=Step*&step=a' 'StepStarted StepCompleted'
    types_of 'types=Run*,StepStarted' 'RunQueued RunStarted StepStarted StepStarted RunCompleted'
    types_of 'as=nodes&types=node_*' 'node_started node_completed node_started node_completed'
    ask GET '/v1/runs/r1/events?limit=5' && next=$(jq -r .nextCursor body)
    types_of "limit=5&cursor=$next" 'StepCompleted RunCompleted'
    ask GET '/v1/runs/r1/events?types=Step*&step=b&as=run&limit=4' && has head 'after=4&limit=4&types=Step%2A&step=b&as=run>'
    ask GET '/v1/runs/r1/events?step=b&as=nodes' '' 'Accept: text/event-stream'
    equal "$(sed -n 's/^event: //p' body | tr '\n' ' ')" 'node_started node_completed end '
}

test_a_reader_ahead_of_the_log_is_told_to_read_again() {
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p "$(shell a "until [ -e $PWD/go ]; do sleep 0.1; done")"),\"runId\":\"r1\"}" && answers 202
    wait_for eval 'ask GET /v1/runs/r1/status && [ "$(jq -r .lastEventSeq body)" = 3 ]'
    timeout 20 curl -sN -H "Authorization: Bearer $token" -H 'Accept: text/event-stream' -H 'Last-Event-ID: 99' "$url/v1/runs/r1/events" >stream &
    reader=$!
    wait_for grep -q resync stream
    touch go
    wait $reader
    equal "$(sed -n 's/^\(event\|id\): //p' stream | tr '\n' ' ')" '3 resync 4 StepCompleted 5 RunCompleted end '
}

test_the_context_stands_beside_the_document_or_in_an_object() {
    serve
    plan=$(plan_text p "$noop")
    ask POST /v1/runs "{\"document\":$plan,\"context\":{\"projectId\":\"x\"},\"runId\":\"r1\"}" 'Prefer: wait=20'
    answers 200 && equal "$(jq -r .runId body)" r1
    ask GET /v1/runs/r1 && equal "$(jq -r .projectId body)" x
    ask POST /v1/runs "{\"document\":$plan,\"context\":{\"runId\":\"r2\"},\"runId\":\"r3\"}" && answers 400 && has body 'context.runId differ'
    ask POST /v1/runs '[]' && answers 400 && has body '"the body must be an object"'
}

test_server_killed_in_the_middle_goes_on() {
    unconfined
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p "$(shell a "echo x >>$PWD/a; [ \$CAIRN_ENGINE_ATTEMPT -ge 2 ] || sleep 60")" "$(shell b "echo x >>$PWD/b")"),\"runId\":\"r1\"}"
    answers 202
    wait_for test -s a
    kill -9 $server
    wait $server 2>/dev/null
    serve
    wait_for eval 'ask GET /v1/runs/r1/status && [ "$(jq -r .status body)" = COMPLETED ]'
    equal "$(wc -l <b)" 1 'b ran'
    stop_serving
    intact
}

test_tokens_are_made_used_and_revoked() {
    serve
    admin=$token
    ask POST /v1/tokens '{"roles":["Operator"],"name":"ops"}' && answers 201
    id=$(jq -r .id body) secret=$(jq -r .token body)
    token=$secret
    ask GET /v1/whoami && equal "$(jq -r '.roles[0]' body)" Operator
    ask GET /v1/tokens && answers 403 && code_is AUTHZ_DENIED
    token=$admin
    ask DELETE /v1/tokens/$id && answers 204
    token=$secret
    ask GET /v1/whoami && answers 401
    token=$admin
    ask GET /v1/audit && has body token.revoke
    stop_serving
    ! grep -qF "${secret##*_}" store.db store.db-wal serve.err 2>/dev/null || fail "the secret is stored"
}

test_a_token_that_ends_makes_none_that_lasts_longer() {
    local end later
    serve
    end=$(date -u -d '+1 hour' +%Y-%m-%dT%H:%M:%SZ) later=$(date -u -d '+2 hours' +%Y-%m-%dT%H:%M:%SZ)
    ask POST /v1/tokens "{\"roles\":[\"Admin\"],\"expiresAt\":\"$end\"}" && answers 201
    token=$(jq -r .token body)
    ask POST /v1/tokens "{\"roles\":[\"Admin\"],\"expiresAt\":\"$later\"}" && answers 403 && code_is AUTHZ_DENIED
    ask POST /v1/tokens '{"roles":["Operator"],"name":"child"}' && answers 201
    ask GET /v1/tokens && equal "$(jq -r '.items[] | select(.name == "child") | .expiresAt' body | cut -c1-19)" "${end%Z}"
    stop_serving
}

test_behind_a_tls_proxy_its_public_origin_and_the_proxys_clients_count() {
    printf '[serve]\norigins = "https://cairn.example"\nproxies = "127.0.0.1"\n' >cairn.toml
    serve
    ask POST /v1/tokens '{"roles":["Operator"]}' 'Host: cairn.example' 'Origin: https://cairn.example' 'X-Forwarded-For: 9.9.9.9, 192.0.2.7' && answers 201
    ask GET /v1/audit && equal "$(jq -r '.items[] | select(.action == "token.create") | .context.ip' body)" 192.0.2.7
    ask POST /v1/tokens '{"roles":["Operator"]}' 'Host: cairn.example' 'Origin: https://evil.example' && answers 403
    ask GET /v1/tokens '' 'Host: evil.example' && answers 421
    stop_serving
}

test_the_token_goes_where_it_is_to_go_and_nobody_else_reads_it() {
    touch theirs && chmod 666 theirs && ln -s theirs store.db.token
    serve
    empty theirs
    [ ! -L store.db.token ] || fail "the token was written through a link"
    equal "$(stat -c %a store.db.token)" 600
    stop_serving
    rm -f store.db* && touch store.db.token && chmod 644 store.db.token
    serve
    equal "$(stat -c %a store.db.token)" 600
    stop_serving
}
test_a_store_where_everybody_may_write_is_refused() {
    mkdir open && chmod 777 open
    for kind in sqlite:$PWD/open/store.db files:$PWD/open; do
        code=0
        "$CAIRN" serve --store "$kind" --listen 127.0.0.1:0 >out 2>err </dev/null || code=$?
        equal "$code" 4 "exit code"
        has err 'everybody may write to the directory' && has err 'sharedDirectory = true'
    done
    printf '[serve]\nsharedDirectory = true\n' >cairn.toml
    service_store=sqlite:$PWD/open/store.db serve
    stop_serving
}

# A request of which the store takes nothing on a full disk: its document is larger than what a journal may have left over.
large() { # MEMBER
    printf '{"document":"{\\"metadata\\":{\\"planId\\":\\"l\\",\\"planVersion\\":\\"1\\",\\"schemaVersion\\":\\"v1.2\\"},\\"steps\\":[{\\"stepId\\":\\"a\\",\\"kind\\":\\"noop\\"}]%600000s}",%s}' "" "$1" >large.json
}
same_is_answered() { ask POST /v1/runs @large.json 'Prefer: wait=20' && [ "$status" = 200 ]; }
on_a_full_disk() {
    mount -t tmpfs -o size=8m tmpfs small || skip 'no tmpfs'
    service_store=sqlite:$PWD/small/store.db serve
    cat /dev/zero >small/fill 2>/dev/null
    large '"runId":"r1"'
    ask POST /v1/runs @large.json 'Prefer: wait=1' && answers 503 && code_is START_NOT_STORED
    hasnt head Location
    ask GET /v1/runs/r1 && answers 404
    ask POST /v1/runs @large.json 'Prefer: wait=1' && answers 409 && code_is REQUEST_IN_PROGRESS
    large '"runRequestId":"q1"'
    ask POST /v1/runs @large.json 'Prefer: wait=1' && answers 503 && code_is START_NOT_STORED
    ask POST /v1/runs @large.json 'Prefer: wait=1' && answers 503 && code_is START_NOT_STORED
    ask GET /v1/runs && equal "$(jq '.items | length' body)" 0 'runs that are there'
    rm small/fill
    wait_for same_is_answered
    large '"runId":"r1"'
    wait_for same_is_answered
    ask GET /v1/runs && equal "$(jq '.items | length' body)" 2 'runs, one for each request'
    stop_serving
}
test_a_run_that_the_store_has_not_taken_is_not_answered_as_started() {
    unshare -rm true 2>/dev/null || skip 'no mounts of its own'
    mkdir small
    unshare -rm bash "$script" --one on_a_full_disk || exit
}

# What a start is answered with is the run as it was stored, up to its last event.
test_the_first_answer_has_the_number_of_the_last_event_it_tells_of() {
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p "$(shell a 'sleep 60')" "$(shell b 'sleep 60')"),\"runId\":\"r1\"}" && answers 202
    seq=$(jq .lastEventSeq body)
    ask GET /v1/runs/r1/status && equal "$(jq .lastEventSeq body)" "$seq" lastEventSeq
    stop_serving
}

# Over a database that is served already, by whatever name it is reached and whatever became of the file beside it.
test_a_second_service_over_a_database_is_refused() {
    serve
    ln -s store.db link.db
    cairn_is 6 serve --store "sqlite:$PWD/link.db" --listen 127.0.0.1:0; has err 'serves this store already'
    cairn_is 6 serve --store sqlite:link.db --listen 127.0.0.1:0; has err 'serves this store already'
    cairn_is 6 serve --store sqlite:store.db --listen 127.0.0.1:0; has err "process $server serves this store already"
    rm store.db.serve
    cairn_is 6 serve --store "sqlite:$PWD/store.db" --listen 127.0.0.1:0; has err 'another process serves this store already'
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop")}" 'Prefer: wait=20' && answers 200
    stop_serving
    serve
    stop_serving
    intact
}

run_tests "$@"
