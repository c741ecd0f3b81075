#!/usr/bin/env bash
# Small promises of the command line: bounded waiting, exact words, help that says what happens.
. "$(dirname "$0")/lib.sh"

start() { "$CAIRN" run "$@" "${store[@]}" --progress plain >run.out 2>run.err </dev/null & pid=$!; }

stopped_owner() {
    mkdir "$2" && cd "$2" || exit 1
    store=(--store "$1$PWD/store")
    held_plan a
    start slow.json --run-id s-1
    wait_for step_is s-1 a RUNNING
    kill -STOP $pid
    local begin=$SECONDS
    cairn_is 7 pause s-1 --id 11111111-2222-4333-8444-555555555555 "${store[@]}"
    [ $((SECONDS - begin)) -le 40 ] || fail "waited $((SECONDS - begin)) s"
    has err "process $pid owns the run and is stopped"; has err 'stays posted'
    kill -CONT $pid
    wait_for status_is s-1 PAUSED
    touch go
    equal "$("$CAIRN" events s-1 "${store[@]}" -o jsonl | grep -c SignalAccepted)" 1 'decisions'
    # The same signal again finds its decision, and is no second one.
    "$CAIRN" pause s-1 --id 11111111-2222-4333-8444-555555555555 "${store[@]}" >out 2>err; has out 'PAUSE accepted'
    equal "$(count_of s-1 RunPaused)" 1
    wait_for grep -q 'was paused from elsewhere' run.err; has run.err 'resume s-1'
    cairn_is 0 resume s-1 "${store[@]}"
    wait $pid || fail "the run failed"
}
# Each of them waits for ten seconds: both at once.
test_signal_to_a_stopped_owner_is_told_and_stays_posted() {
    (stopped_owner sqlite: one) & first=$!
    (stopped_owner files: two) & second=$!
    wait $first && wait $second
}
test_store_that_stays_locked_is_given_up() {
    held_plan a
    start slow.json --run-id s-1
    wait_for step_is s-1 a RUNNING
    python3 -c "
import sqlite3, time
c = sqlite3.connect('$PWD/store.db', isolation_level=None); c.execute('BEGIN IMMEDIATE'); open('held', 'w'); time.sleep(600)" & holder=$!
    wait_for test -e held
    begin=$SECONDS
    cairn_is 7 pause s-1 "${store[@]}"; has err 'nothing was sent'
    [ $((SECONDS - begin)) -le 40 ] || fail "waited $((SECONDS - begin)) s"
    kill $holder
    cairn_is 0 cancel s-1 "${store[@]}"; wait $pid
    status_is s-1 CANCELLED || fail "not CANCELLED"
}
test_events_of_a_step_that_is_not_there() {
    slow_plan 0
    cairn_is 0 run slow.json "${store[@]}" --run-id s-1
    cairn_is 0 events s-1/a "${store[@]}"; cairn_is 0 events s-1 --step a "${store[@]}"
    cairn_is 5 events s-1/nosuch "${store[@]}"; has err 'run s-1 has no step nosuch'; empty out
    echo '{"planId":"p","planVersion":"1","steps":[{"stepId":"extract","kind":"noop"}]}' >p.json
    cairn_is 0 run p.json "${store[@]}" --run-id p-1
    cairn_is 5 events p-1/extrct "${store[@]}"; has err 'did you mean extract?'
    cairn_is 5 events p-1 --step extrct "${store[@]}"; has err 'did you mean extract?'
}
test_paused_run_with_an_open_approval_does_not_drain() {
    echo '{"planId":"g","planVersion":"1","steps":[{"stepId":"g","kind":"approval"}]}' >g.json
    cairn_is 13 run g.json "${store[@]}" --run-id g-1 --exit-on-wait
    cairn_is 0 pause g-1 "${store[@]}"
    cairn_is 0 get g-1 "${store[@]}"; has out WAITING_APPROVAL; hasnt out DRAINING
    cairn_is 0 ls "${store[@]}" -o json; equal "$(jq -r '.[0] | .status + " " + .substatus' out)" 'PAUSED WAITING_APPROVAL'
}
test_version_lists_are_lists() {
    cairn_is 0 version -o json
    equal "$(jq -c '[.planSchemaVersions, .stores]' out)" '[["v1.0","v1.1","v1.2"],["sqlite","files","postgres","memory"]]'
}
test_second_word_of_a_command_finds_it() {
    cairn_is 2 verify; has err 'did you mean `cairn log verify`?'
}
test_help_tells_when_13_comes() {
    cairn_is 0 help exit-codes; has out 'run --exit-on-wait'; has out 'skip, approve, reject'
    cairn_is 0 help resume; has out 'exit 13'
}
test_diagnostics_are_json_when_asked_P3() {
    echo '{"planId":"p","planVersion":"1","schemaVersion":"v1.2","steps":[{"stepId":"a","kind":"noop"}]}' >p.json
    cairn_is 0 run p.json --store files:s --run-id r-1
    printf '{"half' >>s/r-1/events.jsonl
    CAIRN_LOG=json cairn_is 0 run p.json --store files:s --run-id r-2
    equal "$(grep '^{' err | jq -r '[.level,.msg,.bytes]|join("|")')" 'warn|bytes after the last record were cut off|6'
    printf '{"half' >>s/r-1/events.jsonl
    cairn_is 0 run p.json --store files:s --run-id r-3
    has_line err '^level=warn msg="bytes after the last record were cut off" position=[0-9]+ bytes=6$'
}
run_tests "$@"
