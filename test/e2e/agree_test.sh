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
    sed -i "s|sleep 0.3|until $CAIRN events failing ${store[*]} -o jsonl \| grep -q StepFailed; do sleep 0.05; done|" failing.json
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

test_a_step_of_the_last_round_is_compared_once() {
    cat >loop.yaml <<'W'
name: loop
nodes:
  - id: l
    loop_group:
      max_iterations: 4
      until_bash: test "$(cat "$ARTIFACTS_DIR/n")" -ge 2
      nodes:
        - id: inc
          bash: mkdir -p "$ARTIFACTS_DIR"; echo x >>"$ARTIFACTS_DIR/x"; wc -l <"$ARTIFACTS_DIR/x" | tee "$ARTIFACTS_DIR/n"
W
    cairn_is 0 run loop.yaml "${store[@]}" --run-id one --progress none
    cairn_is 0 run loop.yaml "${store[@]}" --run-id two --progress none
    cairn_is 0 diff one two "${store[@]}" -o json
    equal "$(jq -c '.path.sameSteps' out)" 5
    equal "$(jq -r '.timing.steps[].step' out | sort | uniq -d)" ''
    # A run that went round less often: the same differences from both sides.
    cairn_is 20 diff one@4 one "${store[@]}" -o json; jq -c '[.path.steps[].step]|sort' out >there
    cairn_is 20 diff one one@4 "${store[@]}" -o json; jq -c '[.path.steps[].step]|sort' out >back
    has there 'l[2].inc'; equal "$(cat there)" "$(cat back)"
}

# A time or a random number is no sign of a crash.
test_crashtest_knows_outputs_that_always_differ() {
    printf 'name: r\nnodes:\n  - { id: a, bash: "date +%%s%%N" }\n  - { id: b, depends_on: [a], bash: echo same }\n' >r.yaml
    cairn_is 0 crashtest r.yaml --sandbox --max 6 -o json
    equal "$(jq -c '[.failed // .[0].failed, .varying // .[0].varying]' out)" '[0,["a"]]'
    cairn_is 0 crashtest r.yaml --sandbox --max 2; has out 'differ undisturbed too: the outputs of a'
}

test_fmt_goes_on_after_a_bad_file() {
    printf 'nonsense: 1\n' >bad.yaml
    printf 'name:  x\nnodes:\n    - { id: a, bash: echo }\n' >ugly.yaml
    cairn_is 3 fmt --check bad.yaml ugly.yaml; has out '+name: x'; has err E0202
    cairn_is 3 fmt -w bad.yaml ugly.yaml; equal "$(head -1 ugly.yaml)" 'name: x'
    cairn_is 0 fmt --check ugly.yaml
}

test_targets_that_name_nothing() {
    printf 'name: x\nnodes:\n  - { id: a, echo: a }\n' >x.yaml
    cairn_is 0 run x.yaml "${store[@]}" --progress none
    cairn_is 2 get /x "${store[@]}"; has err 'begins with a run'
    cairn_is 5 graph nothing "${store[@]}"; has err 'no file of that name either'
}

test_a_fork_under_a_name_that_is_taken() {
    printf 'name: x\nnodes:\n  - { id: a, echo: a }\n' >x.yaml
    cairn_is 0 run x.yaml "${store[@]}" --run-id taken --progress none
    cairn_is 6 fork taken@1 --run-id taken "${store[@]}" --progress none; has err 'there is a run taken already'; has err 'another --run-id'
    cairn_is 5 get taken --store bundle:none.cairn; has err 'log export'; hasnt err 'run FILE'
}
run_tests "$@"
