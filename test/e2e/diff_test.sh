#!/usr/bin/env bash
# cairn diff, through the binary: exit codes, formats, runs and moments.
. "$(dirname "$0")/lib.sh"

differ() { cairn_is "$@" "${store[@]}"; }
workflow() {
    cat >w.yaml <<'W'
name: w
inputs: {env: staging}
nodes:
  - {id: build, bash: 'echo "{\"size\": 7, \"env\": \"$INPUTS.env\"}"'}
  - {id: extra, bash: 'echo extra', depends_on: [build], when: "$INPUTS.env == 'prod'"}
  - {id: end, bash: 'echo done', depends_on: [build, extra], trigger_rule: all_done}
W
}

test_same_runs_are_the_same() {
    workflow
    for r in one-1 one-2; do cairn_is 0 run w.yaml "${store[@]}" --run-id $r --progress none; done
    differ 0 diff one-1 one-2; has_line out 'result +same'
    differ 0 diff one-1 one-2 -o json
    equal "$(jq -c '[.same,.document.same,.inputs.same,.path.same,.outputs.same,.parting]' out)" '[true,true,true,true,true,null]'
    differ 0 diff one-1 one-1@7
}
test_another_input_changes_path_and_outputs() {
    workflow
    cairn_is 0 run w.yaml "${store[@]}" --run-id two-1 --progress none
    cairn_is 0 run w.yaml "${store[@]}" --run-id two-2 --progress none --set env=prod
    differ 20 diff two-1 two-2
    has out 'env  "staging" → "prod"'; has_line out 'extra +skipped \(CONDITION_FALSE\) → done'; has_line out 'result +they differ in inputs, path, outputs'
    differ 20 diff two-1 two-2 -o json
    equal "$(jq -c '.outputs.steps[0].changes[0]' out)" '{"path":"env","a":"\"staging\"","b":"\"prod\""}'
    equal "$(jq -c '[.parting.a.step,.parting.a.event]' out)" '["build","node_completed"]'
    differ 20 diff two-1 two-2 --steps -o json
    equal "$(jq -c '[.parting.a.step,.parting.b.event,(.outputs|type)]' out)" '["extra","node_started","null"]'
    differ 20 diff two-1 two-2 --outputs; hasnt out 'document'
}
test_document_that_was_edited() {
    workflow
    cairn_is 0 run w.yaml "${store[@]}" --run-id doc-1 --progress none
    sed -i 's/echo done/echo finished/' w.yaml
    cairn_is 0 run w.yaml "${store[@]}" --run-id doc-2 --progress none
    differ 20 diff doc-1 doc-2; has_line out '~ end +with'
}
test_moments_of_one_run() {
    workflow
    cairn_is 0 run w.yaml "${store[@]}" --run-id mom-1 --progress none
    differ 20 diff mom-1@2 mom-1; has_line out 'build +running → done'; has_line out 'part at +nothing +\| +event 3 node_completed build'
    differ 0 diff mom-1@2 mom-1@2
}
test_retried_run_takes_results_over() {
    printf '{"planId":"p","planVersion":"1","schemaVersion":"v1.2","steps":[{"stepId":"a","kind":"echo","with":{"message":"x"}},{"stepId":"b","kind":"shell","with":{"command":"test -e go"},"dependsOn":["a"]}]}' >p.json
    cairn_is 10 run p.json "${store[@]}" --run-id u-1 --progress none
    touch go
    cairn_is 0 retry u-1 "${store[@]}" --progress none -o name
    new=$(head -n 1 out)
    differ 20 diff u-1 "$new" -o json
    equal "$(jq -c '[.path.steps[].step]' out)" '["b"]'
}
test_terminal_of_60_columns() {
    workflow
    cairn_is 0 run w.yaml "${store[@]}" --run-id ter-1 --progress none
    cairn_is 0 run w.yaml "${store[@]}" --run-id ter-2 --progress none --set env="$(printf 'x%.0s' $(seq 100))"
    python3 "$e2e/terminal.py" --size 24x60 -- "$CAIRN" diff ter-1 ter-2 "${store[@]}" >screen
    sed 's/\x1b\[[0-9;]*m//g; s/\r//' screen | python3 -c 'import sys; sys.exit(any(len(l.rstrip("\n")) > 60 for l in sys.stdin))' || fail "wider than 60: $(cat screen)"
}
test_mistakes() {
    workflow
    cairn_is 0 run w.yaml "${store[@]}" --run-id mis-1 --progress none
    differ 2 diff mis-1
    differ 5 diff mis-1 nope-1
    differ 2 diff mis-1/build mis-1; has err 'takes a run'
    differ 2 diff mis-1@99 mis-1
}

run_tests "$@"
