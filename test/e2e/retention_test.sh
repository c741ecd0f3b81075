# Files that steps leave are kept as long as the policy of their kind says: the log says until when, reading after that is answered, the
# service and `cairn store gc` remove them, and the log stays as it is.
. "$(dirname "$0")/serve_lib.sh"

leaves='{"stepId":"a","kind":"shell","with":{"command":"mkdir -p $ARTIFACTS_DIR/sub; echo r >$ARTIFACTS_DIR/sub/r.txt; echo k >$ARTIFACTS_DIR/k.txt"},"artifacts":[{"path":"sub/r.txt","kind":"report"},{"path":"k.txt","kind":"audit"}]}'
gate='{"stepId":"g","kind":"approval","dependsOn":["a"]}'
start() { ask POST /v1/runs "{\"document\":$(plan_text p "${@:2}"),\"runId\":\"$1\"}" && answers 202; }
state_is() { ask GET "/v1/runs/$1/status" && [ "$(jq -r .status body)" = "$2" ]; }
file_of() { find . -name "$1" -path '*artifacts*'; }
gone() { [ -z "$(file_of "$1")" ]; }
ms_of() { date -d "$1" +%s%3N; }

test_retention_of_a_kind_is_said_enforced_and_removed_by_the_service_ES_2c() {
    cat >cairn.toml <<'T'
[serve.artifacts]
retention = { report = "1500ms", audit = "never", default = "30d" }
sweepSeconds = 1
T
    serve
    start r1 "$leaves"
    wait_for state_is r1 COMPLETED
    ask GET '/v1/runs/r1/events?limit=500'
    jq -c '.items[] | select(.eventType == "StepCompleted")' body >completed
    until=$(jq -r '.payload.artifacts[] | select(.kind == "report").expiresAt' completed)
    equal $(($(ms_of "$until") - $(ms_of "$(jq -r .emittedAt completed)"))) 1500 'time it is kept'
    equal "$(jq -r '.payload.artifacts[] | select(.kind == "audit").expiresAt' completed)" null
    wait_for gone r.txt
    [ "$(date +%s%3N)" -ge "$(ms_of "$until")" ] || fail 'it went before its time'
    ask GET '/v1/runs/r1/artifacts/content?name=sub/r.txt' && answers 410 && code_is ARTIFACT_EXPIRED
    has body "$until"
    ask GET '/v1/runs/r1/artifacts/content?name=k.txt' && answers 200 && equal "$(cat body)" k
    ask GET /v1/runs/r1/artifacts
    equal "$(jq -r '.items[] | .name + " " + .state + " " + (.expiresAt // "-")' body | tr '\n' ';')" "sub/r.txt expired $until;k.txt ok -;"
    stop_serving
    store=(--store "sqlite:$PWD/store.db")
    intact
    cairn_is 0 artifacts ls r1 "${store[@]}" && has out expired
    cairn_is 5 artifacts cat r1 sub/r.txt "${store[@]}" && has err "sub/r.txt expired at $until"
    cairn_is 0 artifacts get r1 --out got "${store[@]}" && has err 'sub/r.txt expired at' && equal "$(ls got)" k.txt
    cairn_is 0 log replay r1 "${store[@]}"
}
test_retention_files_of_a_run_that_goes_on_stay_until_it_ends_ES_2c() {
    printf '[serve.artifacts]\nretention = { default = "1ms" }\nsweepSeconds = 1\n' >cairn.toml
    serve
    start r1 "$leaves" "$gate" && start r2 "$leaves"
    wait_for state_is r2 COMPLETED
    # r1 left its files before r2 was gone: a sweep that took those of r2 has seen both.
    wait_for eval 'ask GET /v1/runs/r1/steps/a && [ "$(jq -r .status body)" = SUCCESS ]'
    start r3 "$leaves" && wait_for state_is r3 COMPLETED
    wait_for eval '[ "$(file_of k.txt | wc -l)" = 1 ]'
    ask GET '/v1/runs/r1/artifacts/content?name=k.txt' && answers 410 && code_is ARTIFACT_EXPIRED
    ask POST /v1/runs/r1/signals '{"signalId":"3f0f1b6e-6f0e-4a2c-9d8f-1f2e3d4c5b6a","type":"CANCEL","reason":"test"}' && answers 202
    wait_for gone k.txt
}
test_retention_at_the_command_line_and_store_gc_ES_2c() {
    plan_text p "$leaves" | jq -r . >p.json
    printf 'artifact-retention = "report=1ms,default=30d"\n' >cairn.toml
    cairn_is 0 run p.json "${store[@]}" --run-id r1 --progress none
    cairn_is 0 artifacts ls r1 "${store[@]}" -o json && equal "$(jq -r 'map(.name + " " + .state) | join(" ")' out)" 'sub/r.txt expired k.txt ok'
    [ -n "$(file_of r.txt)" ] || fail 'nobody had removed it yet'
    cairn_is 20 store gc --expired --check "${store[@]}" && has out 'would remove 1 expired artifact of 1 run'
    [ -n "$(file_of r.txt)" ] || fail 'a look has removed it'
    cairn_is 0 store gc --keep 30d "${store[@]}" -o json && equal "$(jq -r '"\(.runs) \(.expiredArtifacts) \(.expiredBytes)"' out)" '0 1 2'
    gone r.txt || fail "$(file_of r.txt)"
    cairn_is 0 store gc --expired --check "${store[@]}"
    # A copy, a backup and a bundle are whole without it, and say the same of it.
    cairn_is 0 store backup "files:$PWD/b" "${store[@]}"
    cairn_is 0 log export r1 --out r1.cairn "${store[@]}"
    cairn_is 0 log verify r1.cairn
    cairn_is 5 artifacts cat r1 r.txt --store "files:$PWD/b" && has err 'expired at'
    intact
    # What another run has written anew in the same directory is not what this one left.
    cairn_is 0 run p.json "${store[@]}" --run-id r2 --progress none
    touch -d '+1 hour' "$(file_of r.txt)"
    cairn_is 0 store gc --expired "${store[@]}" && has out 'removed 0 expired artifacts'
    ! gone r.txt || fail 'it is newer than what the log tells of'
    cairn_is 2 run p.json "${store[@]}" --artifact-retention report --progress none && has err 'is not like report=7d'
    cairn_is 2 run p.json "${store[@]}" --artifact-retention report=soon --progress none && has err 'an age such as 7d'
    printf '[serve.artifacts]\nretention = { report = 7 }\n' >cairn.toml
    cairn_is 2 serve "${store[@]}" && has err report
}
run_tests "$@"
