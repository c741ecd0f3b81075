#!/usr/bin/env bash
# What a retried run takes over from the run before: results, artifacts, across an approval and a kill -9.
. "$(dirname "$0")/lib.sh"

gated_plan() {
    cat >g.json <<'PLAN'
{"planId":"g","planVersion":"1","metadata":{"requiresApproval":true},"steps":[
 {"stepId":"make","kind":"shell","with":{"command":"echo x >> made; mkdir -p $ARTIFACTS_DIR; echo data > $ARTIFACTS_DIR/out.csv; echo A"},"artifacts":[{"path":"out.csv","kind":"table"}]},
 {"stepId":"use","kind":"shell","with":{"command":"test -e gate && cat $ARTIFACTS_DIR/out.csv"}}]}
PLAN
}
event() { "$CAIRN" events "$1" "${store[@]}" -o jsonl | jq -c "select(.eventType==\"$2\") | .payload$3"; }

test_retried_run_behind_an_approval_reuses_across_a_kill() {
    gated_plan
    cairn_is 10 run g.json "${store[@]}" --run-id g-1 --approve-all
    "$CAIRN" retry g-1 "${store[@]}" -o name --progress none --no-run >out 2>err </dev/null; new=$(cat out)
    status_is "$new" PENDING || fail "$new does not wait for its approval"
    equal "$(event "$new" RunQueued .reuse)" '["make"]' 'what it will reuse'
    # Somebody has it and is killed while it waits.
    "$CAIRN" run g.json "${store[@]}" --run-id "$new" --progress none >/dev/null 2>&1 & pid=$!
    wait_for sh -c "'$CAIRN' get $new ${store[*]} | grep -q 'process $pid'"
    kill -9 $pid; wait $pid 2>/dev/null
    touch gate
    cairn_is 0 approve "$new" "${store[@]}"; status_is "$new" COMPLETED || fail "not COMPLETED"
    equal "$(wc -l <made)" 1 'times made'
    intact
}
test_artifacts_of_reused_steps_are_told_again() {
    gated_plan
    cairn_is 10 run g.json "${store[@]}" --run-id g-1 --approve-all
    touch gate
    cairn_is 0 retry g-1 "${store[@]}" -o name --progress none --approve-all; new=$(cat out)
    first=$(event g-1 StepCompleted .artifacts | head -n 1)
    equal "$(jq -r '.[0].kind' <<<"$first")" table
    equal "$(event "$new" StepCompleted .artifacts | head -n 1)" "$first" 'artifacts of the reused step'
    equal "$("$CAIRN" get "$new" "${store[@]}" -o json | jq '.artifacts | length')" 1
}
test_cut_output_is_shown() {
    echo '{"planId":"c","planVersion":"1","steps":[{"stepId":"a","kind":"shell","output":{"onOverflow":"truncate"},"with":{"command":"head -c 1200000 /dev/zero | tr \"\\\\0\" x"}},{"stepId":"b","kind":"shell","with":{"command":"test -e gate"}}]}' >c.json
    cairn_is 10 run c.json "${store[@]}" --run-id c-1
    equal "$(event c-1 StepCompleted .truncated)" true
    cairn_is 0 get c-1 "${store[@]}"; has out 'output cut'
    equal "$("$CAIRN" get c-1 "${store[@]}" -o json | jq -c '[.steps[].truncated]')" '[true,null]'
    touch gate
    cairn_is 0 retry c-1 "${store[@]}" -o name --progress none
    equal "$(event "$(cat out)" StepCompleted .truncated | head -n 1)" true 'of the reused result'
}

run_tests "$@"
