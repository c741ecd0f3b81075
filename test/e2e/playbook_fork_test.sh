#!/usr/bin/env bash
# Forks and reruns of playbooks: they begin with what another run recorded, and go on from there.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/playbook_lib.sh"

# Each step leaves a line in `ran` when it runs. `mid` is visited twice.
walk() {
    book walk <<'YAML'
workload: {name: ann, tone: soft, turns: 2}
workflow:
  - step: start
    tool: {kind: python, code: 'open("ran", "a").write("start\n"); result = {"n": 1}'}
    set: {ctx.n: "{{ start.n }}"}
    next: [each]
  - step: each
    loop: {in: "{{ [1, 2, 3] }}", iterator: i}
    tool:
      - {name: one, kind: python, input: {i: "{{ iter.i }}"}, code: 'open("ran", "a").write("one\n"); result = i * 10'}
      - {name: two, kind: python, input: {v: "{{ one }}"}, code: 'open("ran", "a").write("two\n"); result = v + 1', set: {ctx.last: "{{ output }}"}}
    next: [mid]
  - step: mid
    tool: {kind: python, input: {n: "{{ ctx.n }}", who: "{{ workload.name }}"}, code: 'open("ran", "a").write("mid\n"); result = {"n": n + 1, "who": who}'}
    set: {ctx.n: "{{ mid.n }}"}
    next: {arcs: [{step: mid, when: "{{ ctx.n <= workload.turns }}"}, {step: end}]}
  - step: end
    tool: {kind: python, input: {all: "{{ each.results }}", n: "{{ ctx.n }}", last: "{{ ctx.last }}", tone: "{{ workload.tone }}", who: "{{ mid.who }}"}, code: 'open("ran", "a").write("end\n"); result = [all, n, last, tone, who]'}
YAML
}
ran() { sort ran | uniq -c | awk '{printf "%s%s:%s", sep, $2, $1; sep = " "}'; }
whole='[[11,21,31],3,31,"soft","ann"]'
# forks_at EVENT: the run goes on from there and ends as the other one did
forks_at() {
    : >ran
    cairn_is 0 fork "walk@$1" "${store[@]}" --run-id "at$1" --progress none
    equal "$(result "at$1" end)" "$whole" "what the fork at $1 gave"
    cairn_is 0 log replay "at$1" "${store[@]}"
}

test_a_fork_of_a_playbook_goes_on_from_any_event() {
    walk >walk.yaml
    runs walk
    equal "$(result walk end)" "$whole"
    equal "$(ran)" 'end:1 mid:2 one:3 start:1 two:3'
    local last at
    last=$("$CAIRN" get walk "${store[@]}" -o json | jq -r .lastEventSeq)
    for ((at = 0; at <= last; at += ${STRIDE:-7})); do [ "$at" = 0 ] || forks_at "$at"; done
    # At the end of the loop nothing of it runs again.
    at=$("$CAIRN" events walk "${store[@]}" -o jsonl | jq -r 'select(.event_type == "loop.done") | .sequence // .seq' | head -n 1)
    forks_at $((at + 1))
    equal "$(ran)" 'end:1 mid:2'
    cairn_is 0 fork walk@$((at + 1)) "${store[@]}" --dry-run
    has_line out 'kept +start, each'
    intact
}

test_other_inputs_go_back_to_the_first_step_that_reads_them() {
    walk >walk.yaml
    runs walk
    : >ran
    cairn_is 0 fork walk "${store[@]}" --set tone=loud --run-id loud --progress none
    equal "$(result loud end)" '[[11,21,31],3,31,"loud","ann"]'
    equal "$(ran)" 'end:1'
    : >ran
    cairn_is 0 fork walk "${store[@]}" --set name=bob --run-id bob --progress none
    equal "$(result bob end)" '[[11,21,31],3,31,"soft","bob"]'
    equal "$(ran)" 'end:1 mid:2'
    sed 's/v + 1/v + 2/' walk.yaml >other.yaml
    : >ran
    cairn_is 0 fork walk "${store[@]}" --plan other.yaml --run-id other --progress none
    equal "$(result other end)" '[[12,22,32],3,32,"soft","ann"]'
    equal "$(ran)" 'end:1 mid:2 one:3 two:3'
    intact
}

test_a_rerun_from_a_step_takes_over_what_was_before_it() {
    walk >walk.yaml
    runs walk
    : >ran
    cairn_is 0 rerun walk --from mid "${store[@]}" --run-id again --progress none
    equal "$(result again end)" "$whole"
    equal "$(ran)" 'end:1 mid:2'
    : >ran
    cairn_is 0 rerun walk "${store[@]}" --run-id anew --progress none
    equal "$(ran)" 'end:1 mid:2 one:3 start:1 two:3'
    cairn_is 6 fork walk "${store[@]}" --set start.output=1 --run-id given
    has err 'cannot be given'
    intact
}

test_a_failed_step_is_tried_again_in_a_new_run() {
    book frail >frail.yaml <<'YAML'
workflow:
  - {step: start, tool: {kind: shell, command: echo x >>ran; echo 1}, next: [weak]}
  - {step: weak, tool: {kind: shell, command: test -e "fixed"}, next: [end]}
  - {step: end, tool: {kind: shell, command: echo done}}
YAML
    cairn_is 10 run frail.yaml "${store[@]}" --run-id frail --progress none
    touch fixed
    cairn_is 0 retry frail/weak --downstream "${store[@]}" --progress none
    equal "$(wc -l <ran)" 1 'times that the step before ran'
    status_is @last COMPLETED || fail 'the retry is not COMPLETED'
    cairn_is 10 fork frail "${store[@]}" --run-id same --progress none # nothing is left to do: it ends as it did
    equal "$(wc -l <ran)" 1 'times that the step before ran'
    intact
}

# What is in flight at the event is of the new run: a child has a name of its own, a wait has left what was left of it.
test_children_and_waits_in_flight_go_on_in_the_new_run() {
    book inner >inner.yaml <<'YAML'
workload: {x: 0}
workflow: [{step: start, tool: {kind: python, input: {x: "{{ x }}"}, code: 'open("ran", "a").write("inner\n"); result = x + 1'}}]
YAML
    book outer >outer.yaml <<'YAML'
workflow:
  - {step: start, spec: {policy: {lifecycle: {timeout_s: 60}}}, tool: [{name: nap, kind: wait, seconds: 0.3}, {name: call, kind: playbook, path: inner, input: {x: 4}}], next: [end]}
  - {step: end, tool: {kind: python, input: {v: "{{ start }}"}, code: result = v}}
YAML
    runs outer
    local gave children at
    gave=$(result outer end)
    for at in $("$CAIRN" events outer "${store[@]}" -o jsonl | jq -r 'select(.event_type == "task.attempt.started") | .sequence // .seq'); do
        cairn_is 0 fork "outer@$at" "${store[@]}" --run-id "out$at" --progress none
        equal "$(result "out$at" end)" "$gave" "what the fork at $at gave"
    done
    children=$("$CAIRN" events outer "${store[@]}" -o jsonl | jq -r '.payload.meta.child_execution_id // empty' | sort -u)
    [ -n "$children" ] || fail 'no child is named'
    equal "$("$CAIRN" events out$at "${store[@]}" -o jsonl | jq -r '.payload.meta.child_execution_id // empty' | grep -cxF "$children")" 1 'children of the source in a fork after it ended'
    intact
}

run_tests "$@"
