#!/usr/bin/env bash
# A run of the profile temporal continues as new at its limits (ADR 0035), on every store, and is one run to everybody who reads it.
. "$(dirname "$0")/postgres_lib.sh"
. "$(dirname "$0")/serve_lib.sh"

# long ADAPTER STEPS: a chain
long() {
    jq -nc --arg adapter "$1" --argjson steps "$2" '{metadata: {planId: "long", planVersion: "1", schemaVersion: "v1.2", targetAdapter: $adapter},
        steps: [range($steps) | {stepId: "s\(.)", kind: "noop", dependsOn: (if . == 0 then [] else ["s\(. - 1)"] end)}]}' >long.json
}

# In whatever store: the run comes to its end in several segments, its numbers have no gap, and every reader takes it for one run.
rotates() {
    long temporal 200
    cairn_is 0 run long.json "${store[@]}" --run-id r1 --progress none --limits events=100
    cairn_is 0 get r1 "${store[@]}" -o json
    equal "$(jq -r '[.status, .lastEventSeq, .segment.number > 3, .segment.afterSeq > 300] | join(" ")' out)" 'COMPLETED 403 true true'
    after=$(jq .segment.afterSeq out); cairn_is 0 get r1 "${store[@]}"; has out "(continued as new after event $after)"
    cairn_is 0 events r1 "${store[@]}" -o jsonl
    equal "$(jq -s '[.[].runSeq] == [range(1; 404)]' out)" true 'runSeq has no gap'
    equal "$(jq -s '[.[].idempotencyKey] | unique | length' out)" 403 'keys'
    equal "$(jq -s 'last.engineAttemptId' out)" "$("$CAIRN" get r1 "${store[@]}" -o json | jq .segment.number)" 'execution of the last event'
    intact
    cairn_is 0 log replay r1 "${store[@]}"
    cairn_is 0 why r1 "${store[@]}"; has out 'same answers as recorded'
    cairn_is 0 fork r1@350 "${store[@]}" --run-id f1 --progress none --limits events=100
    cairn_is 0 get f1 "${store[@]}" -o json; equal "$(jq -r '.status' out)" COMPLETED
    cairn_is 0 log export r1 "${store[@]}" --out r1.cairn; cairn_is 0 log verify r1.cairn
    cairn_is 0 get r1 --store bundle:r1.cairn -o json; equal "$(jq -r '[.status, .lastEventSeq, .segment.number > 3] | join(" ")' out)" 'COMPLETED 403 true'
    intact
}
test_segments_are_parts_of_one_run_in_sqlite_ES_6a() { rotates; }
test_segments_are_parts_of_one_run_in_files_ES_6a() { store=(--store "files:$PWD/f"); rotates; }
test_segments_are_parts_of_one_run_in_postgres_ES_6a() { postgres_up; rotates; }

# Killed again and again, wherever that is: it comes to its end, and no step twice.
test_a_run_killed_between_segments_goes_on_once_ES_6a_RE_5c() {
    long temporal 2000
    "$CAIRN" run long.json "${store[@]}" --run-id r1 --progress none --limits events=100 >/dev/null 2>&1 </dev/null &
    pid=$!
    local i before=0
    moved() { local now; now=$("$CAIRN" get r1 "${store[@]}" -o json 2>/dev/null | jq -r .lastEventSeq); [ "${now:-0}" -gt "$before" ]; }
    for i in 1 2 3 4 5; do
        wait_for moved
        kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null
        before=$("$CAIRN" get r1 "${store[@]}" -o json | jq -r .lastEventSeq)
        [ "$("$CAIRN" get r1 "${store[@]}" -o json | jq -r .status)" = RUNNING ] || break
        "$CAIRN" recover "${store[@]}" --limits events=100 >/dev/null 2>&1 </dev/null &
        pid=$!
    done
    kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null
    "$CAIRN" recover "${store[@]}" --limits events=100 >/dev/null 2>&1 </dev/null
    status_is r1 COMPLETED || fail "r1 is $("$CAIRN" get r1 "${store[@]}" -o json | jq -r .status)"
    equal "$(count_of r1 StepCompleted)" 2000 'each step once'
    equal "$("$CAIRN" events r1 "${store[@]}" -o jsonl | jq -s '[.[].runSeq] == [range(1; length + 1)]')" true 'runSeq has no gap'
    intact
    cairn_is 0 log replay r1 "${store[@]}"
}

test_other_profiles_end_at_a_limit_that_names_itself_ES_6a() {
    long conductor 200
    cairn_is 10 run long.json "${store[@]}" --run-id r1 --progress none --limits events=100
    cairn_is 0 get r1 "${store[@]}"; has out RUN_LIMIT_EXCEEDED; has out 'limits.events allows 100'; hasnt out segment
    long temporal 200
    cairn_is 10 run long.json "${store[@]}" --run-id r2 --progress none --limits events=100,segments=2
    cairn_is 0 get r2 "${store[@]}"; has out 'limits.segments allows 2'
    cairn_is 2 run long.json "${store[@]}" --limits segments=0; has err segments
    cairn_is 2 run long.json "${store[@]}" --limits segmentEvents=1; has err segmentEvents
}

# The setting of a service; its answers validate against the contract, and an administrator reads the segment.
test_a_service_rotates_at_its_own_limit_WE_2_1_2d_ES_6a() {
    printf '[serve.limits]\nsegmentEvents = 100\nevents = 300\n' >cairn.toml
    serve
    long temporal 200
    ask POST /v1/runs "{\"document\":$(cat long.json),\"runId\":\"r1\"}" 'Prefer: wait=30' && answers 200
    equal "$(jq -r '[.status, .lastEventSeq] | join(" ")' body)" 'COMPLETED 403'
    ask GET /v1/runs/r1 && equal "$(jq -r '.segment.number > 3' body)" true
    long conductor 200
    ask POST /v1/runs "{\"document\":$(cat long.json),\"runId\":\"r2\"}" 'Prefer: wait=30' && answers 200
    equal "$(jq -r '.status' body)" FAILED
    stop_serving
    intact
}

run_tests "$@"
