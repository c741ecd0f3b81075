#!/usr/bin/env bash
# Signals to a run whose process was killed in the middle of a step: decided, recorded, and nothing else happens until
# somebody drives the run (ADR 0013).
. "$(dirname "$0")/lib.sh"

# A step in flight, an approval that waits, a step after it; then kill -9.
orphan() {
    mkdir -p ran
    cat >o.json <<'PLAN'
{"planId":"o","planVersion":"1","steps":[
 {"stepId":"a","kind":"shell","with":{"command":"echo x >> ran/a; [ $(wc -l < ran/a) -ge 2 ] && exit; (setsid sleep 30 & echo $! > pids); sleep 30"},"dependsOn":[]},
 {"stepId":"g","kind":"approval","dependsOn":[]},
 {"stepId":"z","kind":"shell","with":{"command":"echo x >> ran/z"},"dependsOn":["g"]}]}
PLAN
    "$CAIRN" run o.json "${store[@]}" --run-id o-1 --progress none >/dev/null 2>&1 </dev/null & pid=$!
    wait_for test -s pids
    kill -9 $pid; wait $pid 2>/dev/null
}
untouched() { equal "$(times_ran a) $(times_ran z) $(count_of o-1 StepRedispatched) $(count_of o-1 StepStarted)" "1 0 0 2" "$1"; }
alive() { [ -d "/proc/$1" ] && ! grep -q ') Z ' "/proc/$1/stat" 2>/dev/null; }

test_pause_of_an_orphaned_run_starts_nothing() {
    orphan
    cairn_is 0 pause o-1 "${store[@]}"; has out 'PAUSE accepted'
    untouched 'after pause'
    cairn_is 0 recover "${store[@]}"; has err '1 left for a person'; untouched 'recover keeps a pause'
    cairn_is 13 resume o-1 "${store[@]}"; equal "$(times_ran a)" 2; step_is o-1 a SUCCESS || fail "a did not finish"
    cairn_is 0 approve o-1 "${store[@]}"; status_is o-1 COMPLETED || fail "not COMPLETED"
    intact
}
test_rejected_signal_to_an_orphaned_run_starts_nothing() {
    orphan
    cairn_is 6 resume o-1 "${store[@]}"; has err RUN_NOT_PAUSED
    cairn_is 5 approve o-1/nosuch "${store[@]}"; has err STEP_NOT_FOUND
    cairn_is 6 skip o-1/a "${store[@]}"; has err STEP_NOT_TERMINAL
    untouched 'after rejections'
    alive "$(cat pids)" || fail "a rejected signal killed what still ran"
    cairn_is 0 recover "${store[@]}"; equal "$(times_ran a)" 2
    intact
}
test_no_run_records_the_answer_and_starts_nothing() {
    orphan
    cairn_is 0 approve o-1 --no-run "${store[@]}"; has out 'APPROVE accepted'
    step_is o-1 g SUCCESS || fail "g was not answered"
    untouched 'after approve --no-run'
    cairn_is 0 recover "${store[@]}"; has err '1 completed'
    equal "$(times_ran a) $(times_ran z)" '2 1'
    intact
}
test_cancel_of_an_orphaned_run_kills_and_ends() {
    for url in "sqlite:$PWD/s.db" "files:$PWD/f"; do
        store=(--store "$url"); rm -rf ran pids
        orphan
        cairn_is 0 cancel o-1 "${store[@]}" --reason enough; has out 'CANCEL accepted'
        status_is o-1 CANCELLED || fail "not CANCELLED"
        alive "$(cat pids)" && fail "the step of the dead engine still runs"
        untouched "$url after cancel"; equal "$(count_of o-1 RunCancelled)" 1
        intact
    done
}
test_retry_of_an_ended_run_with_no_run_starts_nothing() {
    echo '{"planId":"r","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":"echo x >> ran; exit 1"}}]}' >r.json
    cairn_is 10 run r.json "${store[@]}" --run-id r-1
    cairn_is 0 retry r-1 --no-run "${store[@]}" -o name; new=$(cat out)
    equal "$(wc -l <ran)" 1; status_is "$new" RUNNING || fail "$new is not RUNNING"
    cairn_is 10 recover "${store[@]}"; equal "$(wc -l <ran)" 2
    intact
}

run_tests "$@"
