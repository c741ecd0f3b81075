#!/usr/bin/env bash
# Waits and the wall clock of the machine: moments long ago, a clock that is set forward during a wait, or back while nobody drives the run.
. "$(dirname "$0")/lib.sh"

# Three documents with one wait each: $1 its field, $2 what it waits for.
documents() {
    echo "{\"planId\":\"w\",\"planVersion\":\"1\",\"steps\":[{\"stepId\":\"nap\",\"kind\":\"wait\",\"with\":{\"$1\":\"$2\"}}]}" >plan.json
    printf 'name: w\nnodes:\n  - {id: nap, wait: {%s: "%s"}}\n' "$1" "$2" >nodes.yaml
    printf 'apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: w, path: w}\nworkflow:\n  - {step: start, tool: {kind: wait, %s: "%s"}}\n' "$1" "$2" >playbook.yaml
}
# By a file of its own, so that a reader never finds it empty.
set_clock() { echo "$1" >clock.new && mv clock.new clock; }
begin() {
    [ -f clock.so ] || "${CC:-cc}" -shared -fPIC -o clock.so "$root/test/e2e/clock_shim.c" -ldl || fail 'the shim does not compile'
    clocked=(env "LD_PRELOAD=$PWD/clock.so" "CLOCK_FILE=$PWD/clock")
    set_clock 0
    "${clocked[@]}" "$CAIRN" run "$1" "${store[@]}" --run-id "$2" --progress none >/dev/null 2>run.err </dev/null & pid=$!
    wait_for sh -c "'$CAIRN' events $2 ${store[*]} -o jsonl | grep -qE 'StepStarted|node_started|task.attempt.started'"
}

test_a_wait_for_a_moment_of_1970_is_over() {
    documents until 1970-01-01T00:00:00Z
    for doc in plan.json nodes.yaml playbook.yaml; do
        timeout 30 "$CAIRN" run $doc "${store[@]}" --run-id "w-${doc%%.*}" --progress none >out 2>err </dev/null || fail "$doc: $? $(cat err)"
        status_is "w-${doc%%.*}" COMPLETED || fail "$doc did not complete"
    done
    intact
}
test_a_wait_for_a_moment_ends_when_the_clock_is_set_forward() {
    documents until "$(date -u -d '+1 hour' +%FT%TZ)"
    for doc in plan.json nodes.yaml playbook.yaml; do
        begin $doc "f-${doc%%.*}"
        set_clock 3601
        wait $pid || fail "$doc: $? $(cat run.err)"
        status_is "f-${doc%%.*}" COMPLETED || fail "$doc did not complete"
    done
    intact
}
test_a_clock_set_back_after_a_kill_does_not_make_a_wait_longer() {
    documents duration 3s
    for doc in plan.json nodes.yaml playbook.yaml; do
        begin $doc "b-${doc%%.*}"
        kill -9 $pid; wait $pid 2>/dev/null
        set_clock -86400
        "${clocked[@]}" timeout 20 "$CAIRN" recover "${store[@]}" --progress none >out 2>err </dev/null || fail "$doc: $? $(cat err)"
        status_is "b-${doc%%.*}" COMPLETED || fail "$doc did not complete"
    done
    intact
}
run_tests "$@"
