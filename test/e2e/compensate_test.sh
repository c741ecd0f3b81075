# Undoing what was done (ADR 0050), as people meet it: `compensate` of plans and nodes, cancelling, an engine that is killed, retry, why.
. "$(dirname "$0")/lib.sh"

saga() { # COMMAND of the last step
    cat >saga.yaml <<END
metadata: {planId: saga, planVersion: "1"}
steps:
  - stepId: book
    kind: shell
    with: { command: "echo book >>trace; echo B1" }
    compensate: { kind: shell, with: { command: "echo unbook \$book.output >>trace" } }
  - stepId: charge
    kind: shell
    with: { command: "echo charge >>trace; echo C1" }
    compensate: { kind: shell, with: { command: "${2:-} echo refund \$charge.output >>trace" } }
  - stepId: ship
    kind: shell
    with: { command: "$1" }
END
}
traced() { [ "$(paste -sd, trace)" = "$1" ] || fail "the steps ran as $(paste -sd, trace)"; }
is_there() { [ -e "$1" ]; }

test_a_run_that_fails_is_undone_in_reverse() {
    saga 'exit 1'
    cairn_is 10 run saga.yaml --run-id r1
    traced book,charge,'refund C1,unbook B1'
    cairn_is 0 get r1 -o json
    jq -e '.status == "FAILED"' out >/dev/null || fail "$(cat out)"
    cairn_is 0 why r1/charge.undo
    cairn_is 0 log replay r1
    cairn_is 0 log verify r1
    rm trace
    cairn_is 10 retry r1
    traced book,charge,'refund C1,unbook B1'
}

test_a_run_that_comes_out_well_keeps_what_it_did() {
    saga true
    cairn_is 0 run saga.yaml --run-id r1
    traced book,charge
    cairn_is 0 why r1/book.undo
    grep -q 'came out well' out || fail "$(cat out)"
}

test_an_engine_that_is_killed_while_it_undoes_is_followed_by_the_next() {
    saga 'exit 1' 'touch undoing; [ -e go ] || sleep 600;'
    "$CAIRN" run saga.yaml --run-id r1 >/dev/null 2>&1 &
    engine=$!
    wait_for is_there undoing
    kill -9 "$engine"
    wait "$engine" 2>/dev/null
    touch go
    cairn_is 10 recover r1
    traced book,charge,'refund C1,unbook B1'
}

test_a_cancelled_workflow_is_undone() {
    cat >flow.yaml <<'END'
name: flow
nodes:
  - id: book
    bash: echo book >>trace
    compensate: { bash: echo unbook >>trace }
  - id: gate
    depends_on: [book]
    approval: { message: go on? }
END
    "$CAIRN" run flow.yaml --run-id r1 >/dev/null 2>&1 </dev/null &
    engine=$!
    wait_for is_waiting r1
    cairn_is 0 cancel r1 --reason 'no more'
    wait "$engine"
    traced book,unbook
    cairn_is 0 events r1 -o json
    grep -q '"workflow_cancelled"' out || fail "$(cat out)"
}
is_waiting() { "$CAIRN" why "$1/gate" 2>/dev/null | grep -qi 'approv'; }

test_what_cannot_be_undone_is_told() {
    printf 'name: a\nnodes:\n  - id: l\n    loop_group:\n      max_iterations: 1\n      nodes:\n        - {id: x, bash: "true", compensate: {bash: "true"}}\n' >a.yaml
    cairn_is 3 validate a.yaml
    grep -q 'not supported inside of a loop_group' out err || fail "$(cat out err)"
    printf 'name: a\nnodes:\n  - {id: x, bash: "true", compensate: {bash: "true", when: "true"}}\n' >a.yaml
    cairn_is 3 validate a.yaml
    grep -q '"when" cannot stand in "compensate"' out err || fail "$(cat out err)"
}

run_tests "$@"
