#!/usr/bin/env bash
# Runs of playbooks are lived again from their logs: every decision (admission, policies, loops, arcs) is asked once more, of the same
# document and of others.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/playbook_lib.sh"

# One of each: an admission that refuses, retries of failures and of good answers, jumps, loops of both modes, a result beside the log.
deciding() {
    book deciding <<'YAML'
workload: {limit: 3, ok: true}
workflow:
  - step: start
    tool:
      - name: poll
        kind: python
        code: |
          import os
          n = int(open("n").read()) + 1 if os.path.exists("n") else 1
          open("n", "w").write(str(n))
          result = {"n": n}
        spec: {policy: {rules: [{when: "{{ output.data.n < 3 }}", then: {do: retry, attempts: 5, delay: 0.01}}, {else: {then: {do: continue}}}]}}
      - name: large
        kind: python
        code: 'result = {"text": "x" * 200000, "k": 7}'
      - name: shaky
        kind: python
        code: |
          import os
          if not os.path.exists("once"): open("once", "w"); raise ValueError("not yet")
          result = 1
        spec: {policy: {rules: [{when: "{{ output.status == 'error' }}", then: {do: retry, attempts: 3, delay: 0.01}}, {else: {then: {do: continue, set: {ctx.large: "{{ large.k }}"}}}}]}}
    next: {spec: {mode: inclusive}, arcs: [{step: each, when: "{{ workload.ok }}"}, {step: closed}]}
  - step: closed
    spec: {policy: {admit: {rules: [{when: "{{ ctx.large == 7 }}", then: {allow: false}}, {else: {then: {allow: true}}}]}}}
    tool: {kind: noop}
  - step: each
    loop: {in: "{{ range(workload.limit) | list }}", iterator: i, spec: {mode: parallel, max_in_flight: 2}}
    tool: {kind: python, input: {i: "{{ iter.i }}"}, code: 'result = input_data["i"] * 2'}
    next: {arcs: [{step: again, when: "{{ event.name == 'loop.done' }}"}]}
  - step: again
    loop: {in: "{{ each.results }}", iterator: r}
    tool:
      - {name: look, kind: noop, spec: {policy: {rules: [{when: "{{ iter.r == 2 }}", then: {do: jump, to: last}}, {else: {then: {do: break}}}]}}}
      - {name: never, kind: python, code: raise ValueError("passed over")}
      - {name: last, kind: python, code: result = "was two"}
    next: {arcs: [{step: end, when: "{{ again.stats.success == 3 }}"}, {step: closed}]}
  - {step: end, tool: {kind: wait, seconds: 0.01}}
YAML
}

test_every_decision_of_a_playbook_is_asked_again() {
    deciding >deciding.yaml
    runs deciding
    cairn_is 0 log replay deciding "${store[@]}" -o json
    jq -e '.same and .stateSame and .difference == null and .unasked == 2 and .decided > 80' out >/dev/null || fail "it says: $(cat out)"
    cairn_is 0 log replay deciding "${store[@]}"
    has out 'moments came out as recorded; 2 outcomes are taken as recorded, because their results are not kept'
}

# Where another document would have gone another way.
goes() { # WHAT SED
    sed "$2" deciding.yaml >other.yaml
    cmp -s deciding.yaml other.yaml && fail "$2 changes nothing"
    cairn_is 20 log replay deciding --plan other.yaml "${store[@]}"
    has out 'from here on it would go another way'
    has out "$1"
}
test_another_document_differs_where_it_decides_otherwise() {
    deciding >deciding.yaml
    runs deciding
    cairn_is 0 log replay deciding --plan deciding.yaml "${store[@]}"
    goes 'ADMIT_EVALUATED closed' 's/ctx.large == 7/ctx.large == 8/'
    goes 'LOOP_STARTED each' 's/range(workload.limit)/range(workload.limit + 1)/'
    goes 'TASK_DECIDED again' 's/iter.r == 2/iter.r == 4/'
    goes 'ROUTED again' 's/again.stats.success == 3/again.stats.success == 4/'
    goes 'TASK_STARTED each' 's/i: "{{ iter.i }}"/i: "{{ iter.i + 1 }}"/'
    goes 'RUN_STARTED' 's/limit: 3/limit: 2/'
    goes 'recorded  TASK_DECIDED start, attempt 1, task shaky' 's/attempts: 3, delay/attempts: 1, delay/'
}

test_pauses_crashes_and_stops_are_lived_again() {
    book slow >slow.yaml <<'YAML'
workflow:
  - step: start
    loop: {in: [1, 2, 3], iterator: i}
    tool: {kind: shell, command: 'touch up; while [ ! -e "go" ]; do sleep 0.02; done; echo {{ iter.i }}'}
    next: [late]
  - step: late
    spec: {policy: {lifecycle: {timeout_s: 0.2}}}
    tool: {kind: wait, seconds: 60}
    next: {arcs: [{step: end, when: "{{ event.name == 'step.failed' }}"}]}
  - {step: end, tool: {kind: shell, command: echo done}}
YAML
    "$CAIRN" run slow.yaml "${store[@]}" --run-id slow --progress none >/dev/null 2>&1 &
    local pid=$!
    wait_for test -e up
    "$CAIRN" pause slow "${store[@]}" >/dev/null
    wait_for status_is slow PAUSED
    kill -9 $pid; wait $pid 2>/dev/null
    touch go
    cairn_is 0 resume slow "${store[@]}"
    cairn_is 0 recover "${store[@]}" --progress none
    status_is slow COMPLETED || fail 'it is not COMPLETED'
    cairn_is 0 run slow.yaml "${store[@]}" --run-id two --progress none
    rm go
    "$CAIRN" run slow.yaml "${store[@]}" --run-id stopped --progress none >/dev/null 2>&1 &
    wait_for step_is stopped start RUNNING
    cairn_is 0 cancel stopped --reason enough "${store[@]}"
    wait_for status_is stopped CANCELLED
    wait
    intact
}

# One input leads to so many decisions at most. What is decidable then, and who goes on with it: the engine that was there, one that took
# the run over, or a fork.
test_large_loops_that_others_went_on_with_are_lived_again() {
    [ -n "${CAIRN_FAULTY:-}" ] || skip 'no binary that can be killed at a write'
    store=(--store "files:$PWD/runs")
    book large >large.yaml <<'YAML'
workflow:
  - step: each
    loop: {in: "{{ range(900) | list }}", iterator: i, spec: {mode: parallel, max_in_flight: 50}}
    tool: {kind: noop, set: {iter.v: "{{ iter.i }}"}}
YAML
    local n taken=0
    for n in $(seq 10 2 40); do
        local rc=0
        CAIRN_CRASH_AT=$n "$CAIRN_FAULTY" run large.yaml "${store[@]}" --run-id "r$n" --progress none >/dev/null 2>&1 || rc=$?
        [ $rc = 0 ] || "$CAIRN" get "r$n" "${store[@]}" >/dev/null 2>&1 || continue
        [ $rc = 0 ] || taken=$((taken + 1))
        cairn_is 0 recover "${store[@]}" --progress none
        "$CAIRN" log replay "r$n" "${store[@]}" >replay 2>&1 || fail "r$n: $(cat replay)"
    done
    [ $taken -gt 2 ] || fail "only $taken runs were taken over on their way"
    cairn_is 0 run large.yaml "${store[@]}" --run-id whole --progress none
    for n in 700 2100 4000; do
        cairn_is 0 fork "whole@$n" "${store[@]}" --run-id "fork$n" --progress none
        "$CAIRN" log replay "fork$n" "${store[@]}" >replay 2>&1 || fail "fork$n: $(cat replay)"
    done
}

run_tests "$@"
