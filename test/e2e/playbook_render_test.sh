#!/usr/bin/env bash
# What the tasks of a playbook were given, are given and will be given: `cairn render` at any moment, and what of it was not defined.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/playbook_lib.sh"

render() { "$CAIRN" render "$@" "${store[@]}" -o json; }
steps() {
    book steps >steps.yaml <<'YAML'
workload: {n: 2, db: {host: "h-{{ n }}"}}
keychain: [{name: k, kind: static, map: {token: abcdefghij}}]
workflow:
  - step: start
    tool: {kind: python, input: {n: "{{ n }}", k: "{{ keychain.k.token }}"}, code: 'result = [n, n + 1]'}
    set: {ctx.total: "{{ start | sum }}"}
    next: {arcs: [{step: each}]}
  - step: each
    loop: {in: "{{ start }}", iterator: i}
    tool:
      - {name: one, kind: python, input: {i: "{{ iter.i }}", gone: "a{{ ctx.gone.x }}", list: ["{{ n }}", "{{ nope }}"]}, code: result = i}
      - {name: two, kind: shell, cmds: "echo {{ one }} of {{ ctx.total }}"}
    next: {arcs: [{step: again}]}
  - step: again
    tool: {kind: python, input: {v: "{{ (ctx.v | default(0)) + 1 }}"}, code: result = v}
    set: {ctx.v: "{{ again }}"}
    next: {arcs: [{step: again, when: "{{ ctx.v < 2 }}"}, {step: none}]}
  - step: none
    loop: {in: "{{ missing.rows }}", iterator: x}
    tool: {kind: noop}
YAML
}

test_a_step_is_rendered_at_any_moment() {
    steps
    runs steps
    equal "$(render steps/start | jq -c '.given[0].with.input')" '{"n":2,"k":"{{ keychain:k.token }}"}'
    ! render steps | grep -q abcdefghij || fail 'the secret is shown'
    equal "$(render steps/each | jq -c '[.given[] | [.task, .iteration, .with.input.i // .with.cmds]]')" '[["one",1,2],["two",1,"echo 2 of 5"],["one",2,3],["two",2,"echo 3 of 5"]]'
    equal "$(render 'steps/each[2]' | jq -c '[.given[] | .with.cmds // .with.input.i]')" '[3,"echo 3 of 5"]'
    # Before the second iteration, and before anything: what is known then.
    at=$("$CAIRN" events steps "${store[@]}" -o jsonl | jq -r 'select(.event_type=="loop.iteration.done").seq' | head -n 1)
    render "steps/each@$at" >then
    equal "$(jq -c '[.given[].iteration]' then)" '[1,1]'
    render steps/each@6 >before
    equal "$(jq -c '[.given, (.ahead[] | .with.cmds // .with.input.i)]' before)" '[null,"{{ iter.i }}","echo {{ one }} of {{ ctx.total }}"]'
    equal "$(jq -c '[.ahead[0].unknown[].path]' before)" '["input.i","input.gone","input.list[1]"]'
    # Of a step that was visited again, each visit.
    equal "$(render steps/again | jq -c '[.visit, .given[].with.input.v]')" '[2,2]'
    equal "$(render steps/again:run:1 | jq -c '[.visit, .given[].with.input.v]')" '[1,1]'
    equal "$(render steps | jq -c 'map(.stepId)')" '["start","each","again","none"]'
    cairn_is 5 render steps/eech "${store[@]}"
    has err 'did you mean each?'
}

is_slow() { [ "$(render turn/first | jq -c '[.given[].task]')" = '["quick","slow"]' ]; }
test_a_step_that_waits_for_its_turn_is_rendered_with_what_is_known() {
    book turn >turn.yaml <<'YAML'
workflow:
  - step: first
    tool:
      - {name: quick, kind: python, code: 'result = {"v": 1}'}
      - {name: slow, kind: shell, cmds: "until [ -e go ]; do sleep 0.1; done"}
      - {name: later, kind: python, input: {q: "{{ quick.v }}", s: "{{ slow.stdout }}"}, code: result = q}
    next: {arcs: [{step: last}]}
  - {step: last, tool: {kind: python, input: {f: "{{ first }}"}, code: result = f}}
YAML
    "$CAIRN" run turn.yaml "${store[@]}" --run-id turn --progress none >/dev/null 2>&1 &
    wait_for is_slow
    equal "$(render turn/first | jq -c '[.ahead[] | .task, .with.input]')" '["later",{"q":1,"s":"{{ slow.stdout }}"}]'
    touch go
    wait
    equal "$(render turn/first | jq -c '[.ahead, .given[2].with.input]')" '[null,{"q":1,"s":""}]'
}

test_why_names_what_was_not_defined() {
    steps
    runs steps
    "$CAIRN" why steps/each "${store[@]}" -o json | jq -c '[.undefined[] | [.task, .iteration, .path, .why]]' >told
    equal "$(cat told)" '[["one",1,"input.gone","ctx.gone is undefined, and a member of it is asked for"],["one",1,"input.list[1]","the value is undefined: nope"],["one",2,"input.gone","ctx.gone is undefined, and a member of it is asked for"],["one",2,"input.list[1]","the value is undefined: nope"]]'
    equal "$("$CAIRN" why steps/none "${store[@]}" -o json | jq -c '[.undefined[] | [.path, .text, .why]]')" '[["loop.in","{{ missing.rows }}","missing is undefined, and a member of it is asked for"]]'
    "$CAIRN" why steps/none "${store[@]}" >told
    has told 'undefined' 'loop.in: {{ missing.rows }}, missing is undefined'
    equal "$("$CAIRN" why steps/start "${store[@]}" -o json | jq .undefined)" null
}

test_a_document_is_rendered_before_it_runs() {
    steps
    "$CAIRN" render steps.yaml --set n=7 --result start='[4, 5]' --result 'each=["a"]' -o json >shown
    equal "$(jq -c 'map([.stepId, .ahead[0].with.input]) | .[0:2]' shown)" '[["start",{"n":7,"k":"{{ keychain:k.token }}"}],["each",{"i":"{{ iter.i }}","gone":"a{{ ctx.gone.x }}","list":[7,"{{ nope }}"]}]]'
    cairn_is 0 render steps.yaml --step each
    has out 'one  python  has not begun' 'unknown'
    sed 's/{n: 2, db: {host: "h-{{ n }}"}}/{n: "{{ m }}", m: "{{ n }}"}/' steps.yaml >ring.yaml
    cairn_is 3 render ring.yaml
    has err 'the workload needs itself'
}

run_tests "$@"
