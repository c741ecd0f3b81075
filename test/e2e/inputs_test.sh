#!/usr/bin/env bash
# Inputs with declared types: what does not fit starts nothing and stores nothing.
. "$(dirname "$0")/lib.sh"

typed_nodes() {
    cat >typed.yaml <<'DOC'
name: typed
inputs:
  limit: { type: integer, default: 3 }
  ratio: { type: number }
  day: { type: string }
  dry: { type: boolean }
  options: { type: object }
  list: { type: array }
  free: { type: any }
nodes:
  - { id: show, bash: "echo $INPUTS.limit $INPUTS.day" }
DOC
}
refused() { cairn_is 2 run typed.yaml "${store[@]}" --run-id t-1 "${@:2}"; has err "$1"; cairn_is 5 get t-1 "${store[@]}"; }

test_value_of_another_type_starts_nothing() {
    typed_nodes
    refused 'input "limit" is declared as integer, and the value given is of type string' --set limit=many
    refused 'input "limit" is declared as integer, and the value given is of type number' --set limit=1.5
    refused 'input "ratio" is declared as number' --set ratio=true
    refused 'input "dry" is declared as boolean' --set dry=yes
    refused 'input "options" is declared as object' --set 'options=[]'
    refused 'input "list" is declared as array' --set 'list={}'
    echo '{"day": 5}' >in.json
    refused 'input "day" is declared as string, and the value given is of type integer' --input in.json
    cairn_is 0 ls "${store[@]}" -o json; equal "$(jq length out)" 0 'runs in the store'
}
test_values_that_fit() {
    typed_nodes
    cairn_is 0 run typed.yaml "${store[@]}" --run-id t-1 --set limit=7 --set ratio=2 --set dry=true --set day=20260101 \
        --set 'options={"a":1}' --set 'list=[1]' --set free=5
    equal "$("$CAIRN" get t-1 "${store[@]}" -o json | jq -r '.steps[0].result')" '7 20260101'
    equal "$("$CAIRN" events t-1 "${store[@]}" -o jsonl | jq -c '(.payload.inputs // .data.inputs // .inputs) | select(.) | [.day, .ratio, .free]' | head -n 1)" '["20260101",2,5]'
    cairn_is 0 run typed.yaml "${store[@]}" --run-id t-2 --set 'day="quoted"'
    equal "$("$CAIRN" get t-2 "${store[@]}" -o json | jq -r '.steps[0].result')" '3 quoted'
}
test_plans_too() {
    echo '{"planId":"p","planVersion":"1","inputs":{"n":{"type":"integer","required":true}},"steps":[{"stepId":"a","kind":"echo","with":{"message":"$INPUTS.n"}}]}' >p.json
    cairn_is 2 run p.json "${store[@]}" --run-id p-1; has err 'input "n" is required'
    cairn_is 2 run p.json "${store[@]}" --run-id p-1 --set n=x; has err 'declared as integer'
    cairn_is 0 run p.json "${store[@]}" --run-id p-1 --set n=4
}
test_child_that_is_given_another_type_does_not_start() {
    printf 'name: child\ninputs: { n: { type: integer } }\nnodes:\n  - { id: x, bash: "echo $INPUTS.n" }\n' >child.yaml
    printf 'name: parent\nnodes:\n  - { id: s, workflow: child, with: { n: many } }\n' >parent.yaml
    cairn_is 10 run parent.yaml "${store[@]}" --run-id p-1; has err CHILD_NOT_STARTED; has err 'declared as integer'
    cairn_is 5 get p-1.s.1 "${store[@]}"
}

run_tests "$@"
