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

test_forks_begin_where_they_are_told_and_say_before_what_they_will_do() {
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

run_tests "$@"
