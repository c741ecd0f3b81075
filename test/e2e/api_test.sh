# What the service offers beyond starting and looking: forks, definitions, artifacts, bundles, removal; and that it does what its
# description says.
. "$(dirname "$0")/serve_lib.sh"

shell() { jq -nc --arg id "$1" --arg c "$2" --argjson after "${3:-[]}" \
    '{stepId: $id, kind: "shell", with: {command: $c}} + (if $after == [] then {} else {dependsOn: $after} end)'; }
start() { # RUN STEP...: and waits for its end
    local run=$1
    shift
    ask POST /v1/runs "{\"document\":$(plan_text p "$@"),\"runId\":\"$run\"}" 'Prefer: wait=20'
    answers 200
}
ended() { wait_for eval "ask GET /v1/runs/$1/status && jq -e '.completedAt' body >/dev/null"; }
# A token of another role: as ROLE; `admin` has the first one.
as() {
    token=$admin
    ask POST /v1/tokens "{\"roles\":[\"$1\"],\"name\":\"$1\"}" && answers 201
    token=$(jq -r .token body)
}
serve_as_admin() {
    serve "$@"
    admin=$token
}

test_a_call_that_waits_for_an_event_is_answered_when_that_is_there_and_not_before() {
    unconfined
    serve_as_admin
    ask POST /v1/runs "{\"document\":$(plan_text p "$(shell a "until [ -e $PWD/go ]; do sleep 0.05; done")" "$(shell b true '["a"]')"),\"runId\":\"r1\"}" && answers 202
    started() { ask GET /v1/runs/r1/events && grep -q StepStarted body; }
    wait_for started
    seen=$(jq '[.items[].runSeq] | max' body)
    curl -s -o waited -H "Authorization: Bearer $token" "$url/v1/runs/r1/events?after=$((seen + 2))&wait=50" & # beyond the two that come next
    waits=$!
    touch go
    wait "$waits" || fail 'no answer'
    equal "$(jq -r '.items[0].runSeq' waited)" "$((seen + 3))" 'what it was answered with'
    ended r1
    ask GET "/v1/runs/r1/events?after=1000&wait=50" && answers 200 && equal "$(jq '.items | length' body)" 0 # nothing more will come
}

test_forks_begin_where_they_are_told_and_say_before_what_they_will_do() {
    unconfined
    serve_as_admin
    start r1 "$(shell a "echo x >>$PWD/a; echo one")" "$(shell b "echo x >>$PWD/b; false" '["a"]')"
    equal "$(jq -r .status body)" FAILED
    ask POST /v1/runs/r1/forks/preview '{"from":["b"]}' && answers 200
    equal "$(jq -r '.how, .source.runId, (.steps[] | .stepId + " " + .fate)' body | tr '\n' ,)" 'fork,r1,a kept,b again,'
    "$CAIRN" fork r1 --from b --dry-run -o json --store "sqlite:$PWD/store.db" >offline || fail "cairn fork"
    equal "$(jq -S . body)" "$(jq -S . offline)" 'the same as the command line tells'
    ask GET /v1/runs && equal "$(jq '.items | length' body)" 1 'a preview makes no run'
    ask POST /v1/runs/r1/forks '{"from":["b"],"runId":"r2","reason":"again"}' && answers 202
    has head 'Location: /v1/runs/r2'
    ended r2
    equal "$(wc -l <a) $(wc -l <b)" '1 2' 'a was kept, b ran again'
    ask POST /v1/runs/r1/retry '{"stepId":"b","runId":"r3"}' 'Prefer: wait=20' && answers 200
    equal "$(wc -l <a) $(wc -l <b)" '1 3'
    ask POST /v1/runs/r1/rerun '{"runId":"r4"}' 'Prefer: wait=20' && answers 200
    equal "$(wc -l <a) $(wc -l <b)" '2 4'
    ask POST /v1/runs/r1/forks '{"outputs":{"b":"given"},"runId":"r5"}' 'Prefer: wait=20' && answers 200
    equal "$(jq -r .status body)" COMPLETED
    ask GET /v1/audit && equal "$(jq '[.items[] | select(.action == "run.fork")] | length' body)" 4 audited
    stop_serving
    intact
}

test_es_3f_the_same_fork_is_made_once() {
    serve_as_admin
    start r1 "$(shell a true)"
    ask POST /v1/runs/r1/rerun '{"reason":"x"}' 'Idempotency-Key: "k1"' && answers 202
    run=$(jq -r .runId body)
    ended "$run"
    ask POST /v1/runs/r1/rerun '{"reason":"x"}' 'Idempotency-Key: "k1"' && answers 200
    has head 'Idempotency-Replayed: true'
    equal "$(jq -r .runId body)" "$run"
    ask POST /v1/runs/r1/rerun '{"reason":"y"}' 'Idempotency-Key: "k1"' && answers 422 && code_is IDEMPOTENCY_KEY_REUSED
    ask GET /v1/runs && equal "$(jq '.items | length' body)" 2 runs
}

test_forks_that_cannot_be_are_refused() {
    serve_as_admin
    start r1 "$(shell a true)"
    ask POST /v1/runs/r1/forks '{"from":["nothing"]}' && answers 422 && code_is STEP_NOT_FOUND
    ask POST /v1/runs/r1/forks '{"fromSeq":99}' && answers 422 && code_is FORK_INVALID
    ask POST /v1/runs/none/forks '{}' && answers 404
    ask POST /v1/runs/r1/forks '{"runId":"r1"}' && answers 409 && code_is RUN_ALREADY_EXISTS
    ask POST /v1/runs/r1/retry '{}' && answers 400 && has body stepId
    ask POST /v1/runs/r1/forks '{"fromSeq":"1"}' && answers 400 && equal "$(jq -r '.errors[0].pointer' body)" /fromSeq
    ask POST /v1/runs/r1/forks '{"form":["a"]}' && answers 400 && has body form
    as Operator
    ask POST /v1/runs/r1/forks '{}' && answers 403 && code_is AUTHZ_DENIED
    ask POST /v1/runs/r1/forks/preview '{}' && answers 403
}

document() { plan_text "$@" | jq -j .; } # as a file
test_we_3_1_definitions_are_kept_by_their_hash_and_started_by_reference() {
    serve_as_admin
    document etl "$(shell a 'echo out')" >plan.json
    sha=$(sha256sum plan.json | cut -c1-64)
    ask PUT "/v1/definitions/etl/versions/$sha" @plan.json && answers 201
    equal "$(jq -r .uri body)" "cairn://plans/$sha"
    ask PUT "/v1/definitions/etl/versions/$sha" @plan.json && answers 200 && has head 'Idempotency-Replayed: true'
    ask PUT "/v1/definitions/other/versions/$sha" @plan.json && answers 422 && code_is PLAN_REF_MISMATCH
    ask PUT "/v1/definitions/etl/versions/${sha%?}$(printf %x $((0x${sha: -1} ^ 1)))" @plan.json
    answers 422 && code_is PLAN_INTEGRITY_VALIDATION_FAILED
    echo '{"metadata":{}}' >bad.json
    ask PUT "/v1/definitions/etl/versions/$(sha256sum bad.json | cut -c1-64)" @bad.json && answers 422
    ask GET /v1/definitions && equal "$(jq -r '.items[].sha256' body)" "$sha" 'what was refused is not kept'
    ask GET "/v1/definitions/etl/versions/$sha/document" && cmp body plan.json
    ref=$(jq -nc --arg s "$sha" '{uri: "cairn://plans/\($s)", sha256: $s, schemaVersion: "v1.2", planId: "etl", planVersion: "1"}')
    ask POST /v1/runs "{\"planRef\":$ref,\"runId\":\"r1\"}" 'Prefer: wait=20' && answers 200
    ask GET '/v1/runs/r1/events?limit=1' && equal "$(jq -r '.items[0].payload.planRef.uri' body)" "cairn://plans/$sha" 'C-38'
    ask POST /v1/runs "{\"planRef\":$(jq -c '.planVersion = "2"' <<<"$ref")}" && answers 422 && code_is PLAN_REF_MISMATCH
    start r2 "$(shell b true)"
    ask GET '/v1/runs/r2/events?limit=1' && direct=$(jq -c '.items[0].payload.planRef' body)
    ask POST /v1/runs "{\"planRef\":$direct,\"runId\":\"r3\"}" 'Prefer: wait=20' && answers 200
    none=$(jq -c --arg s "$(printf '%064d' 0)" '.sha256 = $s | .uri = "cairn://plans/\($s)"' <<<"$ref")
    ask POST /v1/runs "{\"planRef\":$none}" && answers 422 && code_is PLAN_NOT_FOUND
}

test_operators_start_what_another_person_approved() {
    serve_as_admin
    as Engineer && engineer=$token
    document etl "$(shell a true)" >plan.json
    sha=$(sha256sum plan.json | cut -c1-64)
    ask PUT "/v1/definitions/etl/versions/$sha" @plan.json && answers 201
    ask POST "/v1/definitions/etl/versions/$sha:approve" '{}' && answers 403
    as Operator && operator=$token
    ref=$(jq -nc --arg s "$sha" '{uri: "cairn://plans/\($s)", sha256: $s, schemaVersion: "v1.2", planId: "etl", planVersion: "1"}')
    ask POST /v1/runs "{\"planRef\":$ref}" && answers 403 && code_is AUTHZ_DENIED
    token=$admin
    ask POST "/v1/definitions/etl/versions/$sha:approve" '{}' && answers 200
    ask POST "/v1/definitions/etl/versions/$sha:approve" '{}' && answers 200 && has head 'Idempotency-Replayed: true'
    token=$operator
    ask POST /v1/runs "{\"planRef\":$ref}" && answers 202
    ask POST /v1/runs "{\"document\":$(jq -Rs . <plan.json)}" && answers 202
    ask POST /v1/runs "{\"document\":$(plan_text etl "$(shell a false)")}" && answers 403
    token=$engineer
    document etl "$(shell a false)" >other.json
    sha=$(sha256sum other.json | cut -c1-64)
    ask PUT "/v1/definitions/etl/versions/$sha" @other.json && answers 201
    token=$admin
    ask POST "/v1/definitions/etl/versions/$sha:approve" '{}' && answers 409 && code_is PLAN_VERSION_TAKEN
    document mine "$(shell a true)" >mine.json
    sha=$(sha256sum mine.json | cut -c1-64)
    ask PUT "/v1/definitions/mine/versions/$sha" @mine.json && answers 201
    ask POST "/v1/definitions/mine/versions/$sha:approve" '{}' && answers 403 && has body 'AUTHZ_DENIED'
    stop_serving
    serve
    token=$operator
    ask POST /v1/runs "{\"planRef\":$ref}" && answers 202
}

test_paths_with_a_place_stay_in_it() {
    serve_as_admin
    here=/v1/t/default/p/blue/e/prod
    ask POST $here/runs "{\"document\":$(plan_text p "$(shell a true)"),\"runId\":\"r1\"}" 'Prefer: wait=20' && answers 200
    start r2 "$(shell a true)"
    ask GET $here/runs && equal "$(jq -r '.items[].runId' body)" r1
    ask GET $here/runs/r1 && answers 200 && equal "$(jq -r '.projectId + "/" + .environmentId' body)" blue/prod
    ask GET $here/runs/r2 && answers 404
    ask GET /v1/t/other/p/blue/e/prod/runs && answers 404
    ask GET /v1/t/other/p/blue/e/prod/runs/r1 && answers 404
    ask GET /v1/t/default/p/blue/runs && answers 404
    ask POST $here/runs "{\"document\":$(plan_text p "$(shell a true)"),\"projectId\":\"red\"}" && answers 400
}

test_bodies_with_members_that_are_not_the_callers_to_say_are_refused() {
    serve_as_admin
    ask POST /v1/runs '{"document":{"metadata":{"planId":"p","planVersion":"1","schemaVersion":"v1.2"},"steps":[{"stepId":"a","kind":"noop"}]},"runId":"r1"}' 'Prefer: wait=20'
    answers 200
    id=11111111-1111-4111-8111-111111111111
    ask POST /v1/runs/r1/signals "{\"signalId\":\"$id\",\"signalType\":\"RETRY_RUN\",\"payload\":{},\"actorId\":\"somebody\"}"
    answers 400 && code_is SIGNAL_INVALID_PAYLOAD && has body actorId
    ask POST /v1/tokens '{"roles":["Operator"],"id":"mine"}' && answers 400 && has body '"id'
    ask POST /v1/runs '{"document":"x","status":"COMPLETED"}' && answers 400 && has body status
    ask POST /v1/plans:validate '{"document":"x","strict":true}' && answers 400
    ask GET /v1/runs && equal "$(jq '.items | length' body)" 1
}

test_parameters_that_no_route_knows_are_refused() {
    serve_as_admin
    start r1 "$(shell a true)"
    ask GET '/v1/runs?statu=FAILED' && answers 400 && code_is INVALID_REQUEST
    equal "$(jq -r .detail body)" 'there is no parameter "statu" here; there are: q status plan tag startedAfter startedBefore sort limit cursor fields count'
    ask GET '/v1/runs?status=FAILED&status=COMPLETED' && answers 400 && has body 'given more than once'
    ask GET '/v1/whoami?x=1' && answers 400 && has body 'there are none'
    ask GET '/v1/t/default/p/default/e/default/runs?limit=1&' && answers 200
    ask GET '/livez?probe=1' && answers 200
}

test_cursors_are_sealed() {
    serve_as_admin
    for i in 1 2 3; do start r$i "$(shell a true)"; done
    ask GET '/v1/runs?limit=2' && answers 200
    cursor=$(jq -r .nextCursor body)
    ask GET "/v1/runs?limit=2&cursor=$cursor" && equal "$(jq -r '.items[].runId, .nextCursor' body | tr '\n' ' ')" 'r1 null '
    ask GET "/v1/runs?limit=2&cursor=${cursor%?}" && answers 400 && code_is INVALID_CURSOR
    ask GET "/v1/runs?limit=2&cursor=$(tr 0-9 1-90 <<<"$cursor")" && answers 400
    ask GET "/v1/definitions?cursor=$cursor" && answers 400
    ask POST /v1/tokens '{"roles":["Admin"],"tenantId":"default"}' && answers 201
    token=$(jq -r .token body)
    ask GET "/v1/runs?limit=2&cursor=$cursor" && answers 200
    ask GET '/v1/audit?limit=2' && answers 200
    ask GET "/v1/audit?limit=2&cursor=$(jq -r .nextCursor body)" && equal "$(jq -r '.items[0].seq // .items[0].sequence' body)" 3
}

test_nothing_tells_where_files_are_on_the_server_H8() {
    serve
    left='{"stepId":"a","kind":"shell","with":{"command":"echo one >$ARTIFACTS_DIR/one.txt"},"artifacts":[{"path":"one.txt","kind":"text"}]}'
    uses='{"stepId":"b","kind":"shell","dependsOn":["a"],"with":{"command":"cat $ARTIFACTS_DIR/one.txt && test -e ok"}}'
    uses=${uses/test -e ok/test -e $PWD\/ok}
    ask POST /v1/runs "{\"document\":$(plan_text p "$left" "$(jq -c 'del(.dependsOn)' <<<"${left//one/two}" | sed 's/"a"/"c"/')" "$uses"),\"runId\":\"r1\"}" 'Prefer: wait=20' && answers 200
    equal "$(jq -r .status body)" FAILED
    touch ok
    ask POST /v1/runs/r1/retry '{"stepId":"b","runId":"r2"}' 'Prefer: wait=20' && answers 200 && equal "$(jq -r .status body)" COMPLETED
    for run in r1 r2; do
        for path in '' /status '/events?limit=500' /steps /steps/a /why /artifacts /store; do
            [ "$path" = /store ] && ask GET "/v1/store/runs/$run/records?after=0&limit=100" || ask GET "/v1/runs/$run$path"
            sed "s|test -e $PWD/ok||g" body >shown # which the plan itself says
            hasnt shown "$PWD"
        done
        ask GET "/v1/runs/$run/artifacts" && equal "$(jq -r '[.items[] | .name + " " + .state] | sort | join(",")' body)" 'one.txt ok,two.txt ok'
        ask GET "/v1/runs/$run/artifacts/content?name=one.txt" && equal "$(cat body)" one
        CAIRN_TOKEN=$token cairn_is 0 artifacts cat $run one.txt --server "$url" && equal "$(cat out)" one
    done
    ask GET '/v1/runs/r1/events?limit=500'
    equal "$(jq -r '.items[] | select(.eventType == "RunStarted").payload.artifactsDir' body)" run:r1
    equal "$(jq -r '.items[] | select(.eventType == "StepCompleted").payload.artifacts[0].uri' body | sort | head -n 1)" cairn://artifacts/r1/one.txt
    stop_serving
    cairn_is 0 artifacts ls r2 "${store[@]}" && has out one.txt
    cairn_is 0 artifacts cat r1 two.txt "${store[@]}" && equal "$(cat out)" two
    cairn_is 0 fork r1 --from b "${store[@]}" --run-id r3
    cairn_is 0 artifacts cat r3 one.txt "${store[@]}" && equal "$(cat out)" one
    cairn_is 0 rerun r1 "${store[@]}" --run-id r4
    cairn_is 0 artifacts ls r4 "${store[@]}" && has out two.txt
}

test_operators_see_how_steps_are_and_not_what_they_gave_C_39() {
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p '{"stepId":"a","kind":"echo","with":{"message":"a canary"}}'),\"runId\":\"r1\"}" 'Prefer: wait=20' && answers 200
    ask GET /v1/runs/r1/steps && has body 'a canary'
    ask POST /v1/tokens '{"name": "op", "roles": ["operator"]}' && answers 201
    token=$(jq -r .token body)
    ask GET /v1/runs/r1/steps && answers 200
    equal "$(jq -r '.items[] | .stepId + " " + .status' body)" 'a SUCCESS'
    hasnt body canary
    ask GET /v1/runs/r1/steps/a && answers 200 && hasnt body canary
    ask GET /v1/runs/r1/steps/a/output && answers 403
}

test_files_that_steps_left_are_listed_and_downloaded_in_parts() {
    serve_as_admin
    step=$(jq -nc '{stepId: "a", kind: "shell", with: {command: "printf 0123456789 >$ARTIFACTS_DIR/out.txt"}, artifacts: [{path: "out.txt", kind: "text"}]}')
    ask POST /v1/runs "{\"document\":$(plan_text p "$step"),\"runId\":\"r1\"}" 'Prefer: wait=20' && answers 200
    equal "$(jq -r .status body)" COMPLETED
    ask GET /v1/runs/r1/artifacts && answers 200
    equal "$(jq -r '.items[] | .name + " " + .state + " " + (.sizeBytes | tostring)' body)" 'out.txt ok 10'
    ask GET '/v1/runs/r1/artifacts/content?name=out.txt' && answers 200 && equal "$(cat body)" 0123456789
    has head 'Content-Disposition: attachment; filename="out.txt"'
    ask GET '/v1/runs/r1/artifacts/content?name=out.txt' '' 'Range: bytes=3-5' && answers 206 && equal "$(cat body)" 345
    has head 'Content-Range: bytes 3-5/10'
    ask GET '/v1/runs/r1/artifacts/content?name=out.txt' '' 'Range: bytes=-2' && answers 206 && equal "$(cat body)" 89
    ask GET '/v1/runs/r1/artifacts/content?name=out.txt' '' 'Range: bytes=10-' && answers 416
    ask GET '/v1/runs/r1/artifacts/content?name=..%2F..%2Fstore.db.token' && answers 404
    dir=$(dirname "$(find . -name out.txt)")
    echo 9876543210 >"$dir/out.txt"
    ask GET '/v1/runs/r1/artifacts/content?name=out.txt' && answers 409 && code_is ARTIFACT_CHANGED
    ln -sf "$PWD/store.db.token" "$dir/out.txt"
    ask GET '/v1/runs/r1/artifacts/content?name=out.txt' && answers 404 && code_is ARTIFACT_MISSING
    ask GET /v1/runs/r1/artifacts && equal "$(jq -r '.items[].state' body)" missing
    as Operator
    ask GET /v1/runs/r1/artifacts && answers 403
    ask GET /v1/runs/r1/payload && answers 403
}

test_what_runs_were_given_and_gave_can_be_read() {
    serve_as_admin
    ask POST /v1/runs "{\"document\":$(plan_text p "$(shell a 'echo out')" "$(shell b 'exit 3')"),\"runId\":\"r1\"}" 'Prefer: wait=20'
    ask GET /v1/runs/r1/payload && answers 200 && equal "$(jq -c .inputs body)" '{}'
    ask GET /v1/runs/r1/steps/a/output && answers 200 && equal "$(jq -r .result body)" out
    ask GET /v1/runs/r1/steps/b/output && answers 404 && code_is OUTPUT_NOT_FOUND
    ask GET /v1/runs/r1/steps/b/attempts && equal "$(jq -r '.items[].error.exitCode' body)" 3
    ask GET /v1/runs/r1/steps/b/attempts/1 && answers 200 && equal "$(jq -r .error.code body)" EXIT_NONZERO
    ask GET /v1/runs/r1/steps/b/attempts/2 && answers 404 && code_is ATTEMPT_NOT_FOUND
}

test_bundles_and_proofs_are_signed_by_the_installation() {
    serve_as_admin
    start r1 "$(shell a 'echo eulav-terces | rev')"
    ask GET /v1/runs/r1/proof && answers 200 && equal "$(jq -r .verified body)" true
    jq -r .publicKey body >key.pem
    jq -cjS .checkpoint body >signed
    jq -r .signature body | xxd -r -p >signature
    openssl pkeyutl -verify -pubin -inkey key.pem -rawin -in signed -sigfile signature >/dev/null || fail "the signature does not fit"
    ask GET /v1/runs/r1/bundle && answers 200 && cp body r1.cairn
    "$CAIRN" log verify r1.cairn --pubkey key.pem >verified || fail "the bundle does not verify: $(cat verified)"
    ask GET '/v1/runs/r1/bundle?redact=true' && answers 200 && ! grep -qa secret-value body || fail 'not redacted'
    as Operator
    ask GET /v1/runs/r1/bundle && answers 403
}

test_runs_are_removed_by_two_people() {
    serve_as_admin
    ask POST /v1/tokens '{"roles":["Admin"],"name":"second"}' && second=$(jq -r .token body)
    start r1 "$(shell a 'echo x')"
    start r2 "$(shell a 'echo x')"
    ask DELETE /v1/runs/r1 && answers 403 && code_is AUTHZ_REASON_REQUIRED
    ask DELETE '/v1/runs/r1?reason=old' && answers 403 && code_is AUTHZ_APPROVAL_REQUIRED
    ask DELETE '/v1/runs/r1?reason=old' && answers 403 && code_is AUTHZ_APPROVAL_REQUIRED
    ask GET /v1/runs/r1 && answers 200
    token=$second
    ask DELETE '/v1/runs/r1?reason=agreed' && answers 204
    ask GET /v1/runs/r1 && answers 404
    ask DELETE '/v1/runs/r1?reason=agreed' && answers 404
    ask GET /v1/runs && equal "$(jq -r '.items[].runId' body)" r2
    [ ! -e store.db-logs/r1 ] || fail 'its logs are still there'
    [ -e store.db-logs/r2 ] || fail "another run's logs are gone"
    ask POST /v1/runs "{\"document\":$(plan_text p "$(shell a 'sleep 30')"),\"runId\":\"r3\"}" && answers 202
    ask DELETE '/v1/runs/r3?reason=x' && answers 409 && code_is RUN_NOT_TERMINAL
    ask GET /v1/audit && equal "$(jq '[.items[] | select(.action == "run.delete" and .decision == "GRANTED")] | length' body)" 1
    ask POST /v1/runs/r3/signals '{"signalType":"CANCEL","payload":{},"signalId":"31111111-1111-4111-8111-111111111111"}'
    ended r3
    stop_serving
    intact
}

test_a_reader_waits_for_what_it_has_not_seen() {
    serve_as_admin
    ask POST /v1/runs "{\"document\":$(plan_text p "$(shell a "while [ ! -e $PWD/go ]; do sleep 0.05; done")"),\"runId\":\"r1\"}"
    wait_for eval 'ask GET /v1/runs/r1 && [ "$(jq -r ".steps[0].status" body)" = RUNNING ]'
    seq=$(sed -n 's/^ETag: "r-\(.*\)"\r/\1/p' head)
    ask GET /v1/runs/r1/status '' "If-None-Match: \"r-$seq\"" && answers 304
    (wait_for is_connected "${url##*:}"; touch go) &
    ask GET /v1/runs/r1 '' "If-None-Match: \"r-$seq\"" 'Prefer: wait=20' && answers 200
    [ "$(jq .lastEventSeq body)" -gt "$seq" ] || fail "nothing had happened"
    ask GET /v1/runs/r1/status '' "Cairn-Min-Seq: $((seq + 1))" && answers 200
    ended r1
    ask GET /v1/runs/r1/status '' 'Cairn-Min-Seq: 9999' && answers 412 && code_is MIN_SEQ_NOT_REACHED
}

test_headers_mean_what_http_says_they_mean() {
    serve_as_admin
    start r1 "$(shell a 'echo hi')"
    ask GET /v1/runs/r1 && end=$(sed -n 's/^ETag: "r-\(.*\)"\r/\1/p' head)
    type_is() { grep -qi "^content-type: $1" head || fail "not $1 for $2: $(cat head)"; }
    # which form
    ask GET /v1/runs/r1/events '' 'Accept: text/event-stream;q=0.1, application/json' && type_is application/json 'less wanted'
    ask GET /v1/runs/r1/events '' 'Accept: text/event-stream;q=0' && type_is application/json 'not wanted'
    ask GET /v1/runs/r1/events '' 'Accept: TEXT/Event-Stream, */*' && type_is text/event-stream named
    ask GET /v1/runs/r1/events '' 'Accept: application/json;q=0.5' 'Accept: application/x-ndjson' && type_is application/x-ndjson 'two lines'
    ask GET /metrics '' 'Accept: text/plain;q=0.9, application/openmetrics-text;q=0.2' && type_is text/plain Prometheus
    # what was seen
    for tags in "\"x\", \"r-$end\"" '*' "W/\"r-$end\""; do
        ask GET /v1/runs/r1 '' "If-None-Match: $tags" && answers 304
    done
    ask GET '/v1/runs/r1?at=2' '' "If-None-Match: \"r-$end\"" && answers 200 && has head 'ETag: "r-2"'
    ask GET '/v1/runs/r1?at=2' '' 'If-None-Match: "r-2"' && answers 304
    for path in /v1/runs/r1 /v1/runs/r1/why /v1/runs/r1/steps /v1/runs/r1/steps/a /v1/runs/r1/steps/a/why; do
        ask GET "$path?at=999" && answers 400 && has body "the log ends at event $end"
    done
    ask GET /v1/runs/r1/status '' 'Cairn-Min-Seq: soon' && answers 400
    # who cannot be understood is not taken for somebody who said nothing
    pause='{"signalType":"PAUSE","payload":{},"signalId":"41111111-1111-4111-8111-111111111111"}'
    for tag in '"abc"' r-1 '"r-x"'; do ask POST /v1/runs/r1/signals "$pause" "If-Match: $tag" && answers 400; done
    ask POST /v1/runs/r1/signals "$pause" 'If-Match: "r-1", "r-2"' && answers 412 && code_is RUN_HAS_MOVED
    ask GET /v1/runs/r1/signals && equal "$(jq -c .items body)" '[]' decisions
    body="{\"document\":$(plan_text p "$(shell a true)")}"
    ask POST /v1/runs "$body" 'Idempotency-Key: "a"' 'Idempotency-Key: "b"' && answers 400
    ask POST /v1/runs "$body" 'Idempotency-Key: ""' && answers 400
    ask POST /v1/runs/r1/rerun '{}' 'Idempotency-Key: ""' && answers 400
    ask GET /v1/runs && equal "$(jq '.items | length' body)" 1 runs
    send() { status=$(curl -s -o body -w '%{http_code}' -H "Authorization: Bearer $token" -H "Content-Type: $1" --data-binary "$body" "$url/v1/runs"); }
    send 'Application/JSON; Charset="UTF-8"' && answers 202
    send 'application/json; charset=latin1' && answers 415 && code_is UNSUPPORTED_MEDIA_TYPE
    ask POST /v1/runs "$body" 'Content-Encoding: gzip' && answers 415
    ask POST /v1/runs "{\"planRef\":{\"uri\":\"x\",\"sha256\":\"x\",\"schemaVersion\":\"v1.2\",\"planId\":\"p\",\"planVersion\":\"1\"},${body#?}" && answers 400 && has body 'one of them'
    ask PUT /v1/runs '{}' && answers 405 && has head 'Allow: GET, HEAD, POST'
    # what is preferred may stand on two lines
    ask POST /v1/runs "{\"document\":$(plan_text p "$(shell a 'sleep 0.2')"),\"runId\":\"r2\"}" 'Prefer: respond-async' 'Prefer: wait=20'
    equal "$(jq -r .status body)" COMPLETED 'waited for'
}

test_answers_have_the_fields_and_counts_that_were_asked_for() {
    serve_as_admin
    for i in 1 2 3; do start r$i "$(shell a 'echo one; echo two >&2')"; done
    ask GET '/v1/runs?limit=2&fields=runId,status&count=exact' && answers 200
    equal "$(jq -c '[.items[0], .total, .totalIs]' body)" '[{"runId":"r3","status":"COMPLETED"},3,"exact"]'
    ask GET '/v1/runs?q=status%20%3D%20FAILED&count=estimate' && equal "$(jq -c '[.items, .total]' body)" '[[],0]'
    ask GET '/v1/runs?count=about' && answers 400
    ask GET '/v1/runs/r1?fields=status,steps.stepId' && equal "$(jq -c . body)" '{"status":"COMPLETED","steps":[{"stepId":"a"}]}'
    ask GET '/v1/runs/r1?fields=statos' && answers 400 && has body statos
    ask GET '/v1/runs?fields=runId,steps.stepId' && answers 400
    ask GET /v1/runs/r1/steps/a/logs '' 'Accept: application/x-ndjson'
    equal "$(jq -r '.stream + ":" + .text' body | sort | tr '\n' ' ')" 'end:exit 0 stderr:two stdout:one '
    ask GET /v1/runs/r1/steps/a/logs '' 'Range: bytes=0-2' && answers 206
}

test_logs_can_be_followed_as_they_come() {
    serve_as_admin
    step=$(shell a "echo one; while [ ! -e $PWD/go ]; do sleep 0.05; done; echo two")
    ask POST /v1/runs "{\"document\":$(plan_text p "$step"),\"runId\":\"r1\"}" && answers 202
    timeout 20 curl -sN -H "Authorization: Bearer $token" "$url/v1/runs/r1/steps/a/logs?follow=true" >text &
    followed=$!
    timeout 20 curl -sN -H "Authorization: Bearer $token" -H 'Accept: text/event-stream' "$url/v1/runs/r1/steps/a/logs" >sse &
    wait_for grep -q one text
    ! grep -q two text || fail 'it cannot be known yet'
    touch go
    wait $followed || fail "following did not end: $(cat text)"
    equal "$(cat text)" "$(printf 'one\ntwo')"
    wait_for grep -q 'event: end' sse
    equal "$(sed -n 's/^data: //p' sse | jq -r '.text // empty' | tr '\n' ' ')" 'one two exit 0 '
    stop_serving
}

test_of_many_who_saw_the_same_one_acts() {
    serve_as_admin
    cat >together.py <<'PY'
import http.client, json, sys, urllib.parse, uuid
url, token, run, tag = sys.argv[1:]
lines = [http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=30) for _ in range(12)]
headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json", "If-Match": tag}
body = json.dumps({"signalType": "PAUSE", "payload": {}})
for line in lines: line.connect()
for line in lines: line.request("PUT", f"/v1/runs/{run}/signals/{uuid.uuid4()}", body, headers)
print(*sorted(line.getresponse().status for line in lines))
PY
    for i in 1 2 3 4; do
        ask POST /v1/runs "{\"document\":$(plan_text p "$(shell a "while [ ! -e $PWD/go ]; do sleep 0.1; done")"),\"runId\":\"r$i\"}" && answers 202
        wait_for eval "ask GET /v1/runs/r$i && [ \"\$(jq -r '.steps[0].status' body)\" = RUNNING ]"
        equal "$(python3 together.py "$url" "$token" r$i "$(sed -n 's/^ETag: \(.*\)\r/\1/p' head)")" "202$(printf ' 412%.0s' 1 2 3 4 5 6 7 8 9 10 11)" "answers"
    done
    touch go
}

test_who_waits_misses_nothing_that_happens_while_it_begins_to_wait() {
    serve_as_admin
    ask POST /v1/runs "{\"document\":$(plan_text p "$(shell a "while [ ! -e $PWD/go ]; do sleep 0.1; done")"),\"runId\":\"r1\"}" && answers 202
    wait_for eval "ask GET /v1/runs/r1 && [ \"\$(jq -r '.steps[0].status' body)\" = RUNNING ]"
    cat >poll.py <<'PY'
import http.client, json, sys, time, urllib.parse, uuid
url, token = sys.argv[1:]
lines = [http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=40) for _ in range(2)]
head = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
def answer(line):
    got = line.getresponse()
    return got.status, got.headers["ETag"], json.loads(got.read() or "{}")
def tag():
    lines[0].request("GET", "/v1/runs/r1/status", headers=head)
    return answer(lines[0])[1]
longest = 0
for i in range(40):
    seen = tag()
    body = json.dumps({"signalType": "RESUME" if i % 2 else "PAUSE", "payload": {}})
    lines[1].request("PUT", f"/v1/runs/r1/signals/{uuid.uuid4()}", body, head)
    time.sleep(i % 8 / 5000)  # the store takes its time: it is asked while the signal is on its way into the log
    lines[0].request("GET", "/v1/runs/r1/status", headers={**head, "If-None-Match": seen, "Prefer": "wait=30"})
    began = time.monotonic()
    assert answer(lines[1])[0] == 202
    assert answer(lines[0])[0] == 200
    longest = max(longest, time.monotonic() - began)
print("missed" if longest > 20 else "ok")
PY
    equal "$(python3 poll.py "$url" "$token")" ok
    touch go
}

# sse PATH [LAST-EVENT-ID]: the stream, in the file sse, to its end.
sse() { timeout 30 curl -sN ${2:+-H "Last-Event-ID: $2"} -H "Authorization: Bearer $token" -H 'Accept: text/event-stream' "$url$1" >sse || fail "the stream of $1 did not end"; }

test_who_comes_back_behind_the_end_of_a_stream_is_told_that_nothing_comes() {
    serve_as_admin
    start r1 "$(shell a 'echo one; echo two')"
    sse /v1/runs/r1/events && equal "$(sed -n 's/^id: //p' sse | tr '\n' ' ')" '1 2 3 4 5 '
    ask GET /v1/runs/r1/events '' 'Accept: text/event-stream' 'Last-Event-ID: 5' && answers 204 && empty body
    sse '/v1/runs/r1/events?after=5' && has sse 'event: end' # a first look is answered as it is asked for
    sse '/v1/runs/r1/events?types=StepStarted' && equal "$(grep -A 1 '^id' sse | tr '\n' ' ')" 'id: 3 event: StepStarted -- id: 5 event: end '
    ask GET '/v1/runs/r1/events?types=StepStarted' '' 'Accept: text/event-stream' 'Last-Event-ID: 5' && answers 204
    ask GET /v1/runs/r1/events '' 'Last-Event-ID: 5' && answers 200 # a page is none
    sse /v1/runs/r1/events 6 && has sse 'event: resync'
    # of everything there is no end, but there may be less than was seen
    curl -sN -m 30 -H 'Last-Event-ID: 99' -H "Authorization: Bearer $token" -H 'Accept: text/event-stream' "$url/v1/events" >all &
    wait_for grep -q 'event: resync' all && kill $!
    ask GET '/v1/events?limit=2&types=Run*' '' 'Accept: application/x-ndjson' && has head 'Link: </v1/events?after=2&limit=2&types=Run%2A>; rel="next"'
    ask GET '/v1/events?after=5' && hasnt head Link
    sse /v1/runs/r1/steps/a/logs && equal "$(tail -n 4 sse | tr '\n' ' ')" 'id: 1.1.end event: end data: {}  ' && has sse 'retry: 2000'
    behind_one=$(sed -n 's/^id: //p' sse | head -n 1)
    sse /v1/runs/r1/steps/a/logs "$behind_one" && equal "$(sed -n 's/^data: //p' sse | jq -r '.text // empty' | tr '\n' ' ')" 'two exit 0 '
    ask GET /v1/runs/r1/steps/a/logs '' 'Accept: text/event-stream' 'Last-Event-ID: 1.1.end' && answers 204
    for other in 1.2.end 1.1.7 2.1.30; do # of another attempt, or no place between lines: from the beginning
        sse /v1/runs/r1/steps/a/logs $other && equal "$(grep -c '^data: {"at' sse)" 3 "$other"
    done
    for bad in 5 a.b.c 1.1. 0.1.end 1.1.-2 1.1.end.3; do
        ask GET /v1/runs/r1/steps/a/logs '' 'Accept: text/event-stream' "Last-Event-ID: $bad" && answers 400
    done
}

test_a_long_log_is_followed_to_its_end_however_slowly() {
    serve_as_admin
    start r1 "$(shell a 'yes 0123456789012345678901234567890123456789012345678901234567890123456789 | head -n 60000')"
    for form in text/event-stream application/x-ndjson; do
        timeout 50 curl -sN --limit-rate 20M -H "Authorization: Bearer $token" -H "Accept: $form" "$url/v1/runs/r1/steps/a/logs?follow=true" >long || fail "$form: it was cut"
        equal "$(grep -c 0123456789 long)" 60000 "$form"
    done
}

test_flags_are_true_or_false() {
    serve_as_admin
    start r1 "$(shell a 'echo one')"
    for path in '/v1/runs/r1/bundle?redact=maybe' '/v1/runs/r1/steps/a/logs?follow=maybe' '/readyz?verbose=maybe'; do
        ask GET "$path" && answers 400 && has body 'must be true or false'
    done
    ask GET /v1/runs/r1/bundle && cp body whole
    for yes in redact redact=1 redact=true; do
        ask GET "/v1/runs/r1/bundle?$yes" && answers 200 && ! cmp -s body whole || fail "$yes takes nothing out"
    done
    ask GET '/v1/runs/r1/steps/a/logs?follow=0' && answers 200 && equal "$(cat body)" one
    ask GET /v1/runs/r1/artifacts/content && answers 400 && has body 'parameter name is needed'
    for follow in '' '?follow=true'; do ask GET "/v1/runs/r1/steps/zz/logs$follow" && answers 404 && code_is STEP_NOT_FOUND; done
}

test_the_description_needs_no_token_and_names_every_operation_once() {
    serve
    token='' ask GET /openapi.json && answers 200
    equal "$(jq -r '.servers[0].url' body)" /
    jq -r '.paths[][].operationId' body >names
    equal "$(wc -l <names)" "$(jq '[.paths[][]] | length' body)"
    equal "$(sort -u names | wc -l)" "$(wc -l <names)" 'names that are there once'
    ! grep -vqx '[a-z][A-Za-z0-9]*' names || fail "$(grep -vx '[a-z][A-Za-z0-9]*' names | head -3)"
    equal "$(jq -r '.paths["/v1/runs/{run}/why"].get.operationId' body)" getRunsByRunWhy
    equal "$(jq -c '[.paths["/v1/runs"].post.parameters[] | select(.in == "header").name] | sort' body)" '["Idempotency-Key","Prefer"]'
    equal "$(jq -c '.paths["/openapi.json"].get.security' body)" '[]'
}

test_the_service_does_what_its_description_says() {
    serve_as_admin
    start r1 "$(shell a 'echo hi')"
    python3 "$(dirname "$0")/openapi/drive.py" "$url" "$token" r1 a >faults 2>counted || fail "$(head -n 5 faults)"
    [ "$(sed -n 's/^# \([0-9]*\) requests.*/\1/p' counted)" -gt 300 ] || fail "too little was asked: $(cat counted)"
    ask GET /livez && answers 200
    stop_serving
    intact
}

test_a_large_body_is_for_those_who_may_do_what_it_asks_for() {
    serve && admin=$token
    head -c 300000 /dev/zero | tr '\0' x | jq -Rc '{document: .}' >large
    send() { status=$(curl -s -o body -w '%{http_code}' -H "Authorization: Bearer $token" -H 'Content-Type: application/json' --data-binary @large "$url$1"); }
    as Engineer && send /v1/plans:validate && answers 422
    for role in Operator Auditor; do
        as $role
        for path in /v1/plans:validate /v1/runs/r1/forks /v1/tokens; do
            send $path && answers 413
        done
    done
    token=nobody send /v1/runs && answers 413
    token=$admin
    stop_serving
}

# A client that does not read has as much before it as the server keeps for it. It gets none of that once its token is revoked.
test_streams_of_a_revoked_token_are_cut_off() {
    cat >revoked.py <<'PYTHON'
import http.client, json, select, socket, sys, time
port, admin, path, accept = int(sys.argv[1]), *sys.argv[2:]
def ask(method, path, body=None):
    http_ = http.client.HTTPConnection("127.0.0.1", port)
    http_.request(method, path, body and json.dumps(body), {"Authorization": "Bearer " + admin, "Content-Type": "application/json"})
    return http_.getresponse().read()
made = json.loads(ask("POST", "/v1/tokens", {"roles": ["Engineer"]}))
client = socket.socket()
client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
client.connect(("127.0.0.1", port))
client.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {made['token']}\r\nAccept: {accept}\r\n\r\n".encode())
assert client.recv(15) == b"HTTP/1.1 200 OK"
ask("DELETE", "/v1/tokens/" + made["id"])
poll = select.poll()
poll.register(client, select.POLLRDHUP)
print("cut" if poll.poll(15000) else "goes on")
PYTHON
    serve
    start r1 "$(shell a 'yes 123456789 | head -c 9000000')"
    for accept in text/plain text/event-stream; do
        equal "$(python3 revoked.py "${url##*:}" "$token" '/v1/runs/r1/steps/a/logs?follow=true' $accept)" cut "$accept"
    done
    stop_serving
}

run_tests "$@"
