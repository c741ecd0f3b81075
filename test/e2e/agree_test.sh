#!/usr/bin/env bash
# What one command says about a run, the others say too.
. "$(dirname "$0")/lib.sh"

plan() { printf '{"planId":"%s","planVersion":"1","schemaVersion":"v1.2",%s"steps":[%s]}' "$1" "${3:-}" "$2" >"$1.json"; }
# The word for the state of a step, by get, by graph and by why.
word_of_get() { "$CAIRN" get "$1" "${store[@]}" | sed -n "s/^  [^ ]* \(done\|failed\|skipped\|cancelled\|not run\|retrying\|waiting\) * $2\( .*\)\?\$/\1/p"; }
word_of_graph() { "$CAIRN" graph "$1" "${store[@]}" -o mermaid | sed -n "s/.*\[\"$2<br.*:::\(.*\)/\1/p" | tr _ ' '; }
word_of_why() { "$CAIRN" why "$1/$2" "${store[@]}" -o json | jq -r .state | tr _ ' '; }
agree() {
    equal "$(word_of_why "$1" "$2")" "$3" "why $1/$2"
    equal "$(word_of_get "$1" "$2")" "$3" "get $1: $2"
    equal "$(word_of_graph "$1" "$2")" "$3" "graph $1: $2"
}

test_steps_that_the_end_left_behind_have_one_name() {
    plan failing '{"stepId":"a","kind":"shell","with":{"command":"sleep 0.3"},"dependsOn":[]},{"stepId":"f","kind":"shell","with":{"command":"exit 1"},"dependsOn":[]},{"stepId":"b","kind":"noop","dependsOn":["a"]},{"stepId":"c","kind":"noop","dependsOn":["b"]}'
    cairn_is 10 run failing.json "${store[@]}" --run-id failing --progress none
    agree failing a done; agree failing f failed; agree failing b 'not run'; agree failing c 'not run'
    cairn_is 0 get failing "${store[@]}"; has out '1 done, 1 failed, 2 not run of 4'
    cat >cancelled.yaml <<'W'
name: cancelled
nodes:
  - { id: again, bash: exit 9, retry: { max_attempts: 1, delay_ms: 30000 } }
  - { id: long, bash: sleep 30 }
  - { id: next, depends_on: [long], bash: echo }
W
    "$CAIRN" run cancelled.yaml "${store[@]}" --run-id stopped --progress none -q &
    wait_for step_is stopped again FAILED
    cairn_is 0 cancel stopped --reason 'no more' "${store[@]}"
    wait
    agree stopped again cancelled; agree stopped long cancelled; agree stopped next cancelled
    cairn_is 0 get stopped "${store[@]}"; has out '3 cancelled of 3'; has_line out 'cancelled again .*EXIT_NONZERO exit 9'
}

test_a_child_that_failed_took_its_time() {
    printf 'name: kid\nnodes:\n  - { id: work, bash: "sleep 0.2; exit 4" }\n' >kid.yaml
    printf 'name: par\nnodes:\n  - { id: k, workflow: kid }\n' >par.yaml
    cairn_is 10 run par.yaml "${store[@]}" --run-id par --progress none
    took=$("$CAIRN" events par "${store[@]}" -o jsonl | jq 'select(.event_type=="node_failed").payload.duration_ms')
    [ "$took" -ge 200 ] || fail "the child took $took ms"
}
run_tests "$@"
