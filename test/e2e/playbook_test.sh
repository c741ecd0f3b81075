#!/usr/bin/env bash
# What helps to write playbooks: their faults, pictures, layout, schemas, and where others are found.
. "$(dirname "$0")/lib.sh"
ex=$root/examples
corpus=${CAIRN_CORPUS:-$root/../shared/corpus}

book() { printf 'apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: %s, path: %s}\nworkflow:\n' "$1" "$2"; cat; }

test_playbooks_of_the_corpus_are_valid_C_47() {
    [ -d "$corpus/playbooks" ] || skip 'no corpus here; set CAIRN_CORPUS'
    local f count=0
    for f in "$corpus"/playbooks/*.yaml; do
        case $(basename "$f") in
        broken_*) cairn_is 3 validate "$f"; has_line err 'tool.*required' ;;
        *) cairn_is 0 validate --strict "$f"; count=$((count + 1)) ;;
        esac
    done
    [ $count -ge 24 ] || fail "only $count playbooks"
}
test_unknown_kinds_are_refused_with_the_list() {
    book a a <<<'  - {step: a, tool: {kind: pyhton}}' >a.yaml
    cairn_is 3 validate a.yaml; has err 'a.yaml:5:28: error[E0223]'; has err 'did you mean "python"'; has err 'postgres'
    cairn_is 3 validate a.yaml -o json; equal "$(jq -r '.[0].id' out)" E0223
    cairn_is 0 help E0223; has out 'plug-ins'
}
test_old_playbooks_are_told_what_to_write() {
    book a a <<<'  - {step: a, when: x, sink: {}, tool: {kind: noop, eval: []}}' >a.yaml
    cairn_is 3 validate a.yaml; has err 'spec.policy.admit.rules'; has err 'a task of its own'; has err '3 errors'
}
test_graph_in_every_format() {
    cairn_is 0 graph "$ex/sweep.yaml"; has out 'waits for square, describe'; has out 'for each number in numbers'
    cairn_is 0 graph "$ex/pages.yaml" -o ascii; LC_ALL=C grep -q '[^ -~]' out && fail 'not ASCII'
    has out 'next_page: jumps to fetch'
    cairn_is 0 graph "$ex/sweep.yaml" -o dot; has out "n1 -> n3 [label=\"event.name == 'loop.done'\"]"
    ! command -v dot >/dev/null || dot -Tsvg out >/dev/null || fail 'graphviz does not take it'
    cairn_is 0 graph "$ex/sweep.yaml" -o mermaid; has out "n1 -->|\"event.name == 'loop.done'\"| n3"
    cairn_is 0 graph "$ex/sweep.yaml" -o svg; python3 -c 'import xml.dom.minidom as m; m.parse("out")' || fail 'not XML'
}
test_what_other_commands_say() {
    cairn_is 0 plan "$ex/sweep.yaml"; has out 'playbook, 4 steps in 3 layers'
    cairn_is 0 plan "$ex/sweep.yaml" -o json; equal "$(jq -c '[.steps[]|select(.stepId=="square")|.loop,.tasks[0].kind,.next[0].step]' out)" '["parallel","python","summary"]'
    cairn_is 3 convert "$ex/sweep.yaml" --to plan; has err 'E0801'; empty out
    cairn_is 3 plan "$ex/sweep.yaml" --out plan.json; has err 'a plan cannot say what the playbook does'; [ ! -e plan.json ] || fail 'written'
    cairn_is 0 render "$ex/sweep.yaml"; has out 'unknown    input.number: iter is undefined'; has_line out '^  input      {"count":5}$'
    cairn_is 0 fmt --check "$ex/sweep.yaml" "$ex/pages.yaml" "$ex/playbook.yaml"
    python3 -c 'import json,sys; json.dump({"workflow": [{"next": ["b"], "set": {"z": 1, "a": 2}, "step": "a"}, {"tool": {"kind": "noop"}, "step": "b"}],
        "metadata": {"path": "p", "name": "n"}, "kind": "Playbook", "apiVersion": "noetl.io/v2"}, sys.stdout)' >book.json
    cairn_is 0 fmt book.json; equal "$(jq -c keys_unsorted out)" '["apiVersion","kind","metadata","workflow"]'
    equal "$(jq -c '.workflow[0]' out)" '{"step":"a","set":{"z":1,"a":2},"next":["b"]}'
    cairn_is 0 schema playbook workflow.loop; has out 'iterator'
    cairn_is 0 schema; has_line out '^playbook$'; has out 'event task.attempt.failed'
}
test_soundness_finds_what_is_never_asked() {
    book a a <<'YAML' >a.yaml
  - step: a
    tool: {kind: noop, spec: {policy: {rules: [{then: {do: continue}}, {when: x, then: {do: fail}}]}}}
    next: [b, {step: b, when: x}]
  - {step: b, tool: {kind: noop}}
YAML
    cairn_is 0 validate a.yaml; empty err
    cairn_is 0 validate --sound a.yaml; has err 'the arc is never asked'; has err 'the rule is never asked'
}
test_new_playbook() {
    cairn_is 0 new flows/mine --template playbook; has flows/mine.yaml 'name: mine'; has flows/mine.yaml 'path: mine'
    cairn_is 0 validate --strict flows/mine.yaml
    cairn_is 0 init there; cmp there/schemas/playbook.json "$root/schemas/playbook.json" || fail 'another schema'
}
# Earlier generations of the language in one document, and what comes of them.
test_dialects_run_C_47() {
    command -v python3 >/dev/null || skip 'python3 is not installed'
    book old old >old.yaml <<'YAML'
  - step: start
    tool:
      - init:
          kind: python
          args: {n: 2}
          code: |
            def main(n):
                return {"n": n * 2}
          spec:
            policy:
              rules:
                - else:
                  then: {do: continue, set_ctx: {n: "{{ outcome.result.n }}"}, set_iter: {seen: true}}
      - second:
          kind: python
          spec:
            args: {prev: "{{ _prev }}", seen: "{{ iter.seen }}"}
            code: |
              return {"prev": prev, "seen": seen}
          set: {step.mark: "{{ output.data.prev.n }}"}
      - kind: python
        input: {mark: "{{ step.mark }}"}
        code: result = mark
    next:
      - {step: each, when: "{{ event.name == 'call.done' and ctx.n == 4 }}", args: {k: 2}}
      - {step: bad, when: "{{ event.name == 'call.error' }}"}
  - step: each
    loop: {in: [a, b], iterator: nm}
    tool: {kind: python, args: {nm: "{{ nm }}", k: "{{ args.k }}"}, code: result = nm * k}
    next: {arcs: [{step: end, when: "{{ event.name == 'step.exit' }}"}]}
  - step: end
    tool: {kind: python, input: {xs: "{{ each.results }}", mark: "{{ start }}"}, code: "result = {'all': '+'.join(xs), 'mark': mark}"}
  - step: bad
    tool: {kind: noop}
YAML
    cairn_is 0 validate --strict old.yaml
    cairn_is 0 run old.yaml "${store[@]}" --progress none -o json
    equal "$(jq -c '.steps[]|select(.stepId=="end").result' out)" '{"all":"aa+bb","mark":4}'
    intact
}
test_playbooks_run_by_others_are_found() {
    mkdir -p lib/books/deep odd
    book child lib/books/child <<<'  - {step: x, tool: {kind: noop}}' >lib/books/child.yaml
    book deep lib/books/deep <<<'  - {step: x, tool: {kind: noop}}' >lib/books/deep/deep.yaml
    book named catalog/of/its/own <<<'  - {step: x, tool: {kind: noop}}' >odd/file.yaml
    for path in lib/books/child /lib/books/child lib/books/deep catalog/of/its/own file; do
        book p p <<<"  - {step: a, tool: {kind: playbook, path: $path}}" >odd/parent.yaml
        cairn_is 0 validate --strict odd/parent.yaml
        cairn_is 0 plan odd/parent.yaml -o json; equal "$(jq '.files|length' out)" 1 "files for $path"
    done
    book p p <<<"  - {step: a, tool: {kind: playbook, path: no/such/one}}" >odd/parent.yaml
    cairn_is 0 validate odd/parent.yaml; has err 'warning[E0218]'; has err 'no/such/one'
    cairn_is 3 validate --strict odd/parent.yaml
}

test_logs_are_told_by_task_and_why_by_arc() {
    book told told >told.yaml <<'YAML'
  - step: start
    loop: {in: [1, 2], iterator: n}
    tool: {name: say, kind: shell, cmds: "echo number {{ iter.n }}"}
    next: {arcs: [{step: yes, when: "{{ start.count == 2 }}"}, {step: no}]}
  - {step: "yes", tool: {kind: noop}}
  - {step: "no", tool: {kind: noop}}
YAML
    cairn_is 0 run told.yaml "${store[@]}" --run-id t --progress none
    cairn_is 0 logs t "${store[@]}"
    has out 'start[2]/say'
    has out 'number 2'
    cairn_is 0 logs t/start "${store[@]}"
    has out 'number 1'
    cairn_is 0 why t/yes "${store[@]}"
    has out 'taken from start'
    has out 'with start.count = 2'
    cairn_is 0 why t/no "${store[@]}"
    has out 'no was never reached: start went another way first'
    cairn_is 0 log replay t "${store[@]}"
    has out 'came out as recorded'
    cairn_is 0 trace t "${store[@]}"; cp out first
    equal "$(jq -r '[.resourceSpans[].scopeSpans[].spans[]]|map(select(.name=="start"))[0].spanId as $s|map(select(.parentSpanId==$s).name)|sort|join(" ")' out)" 'start[1]/say start[2]/say'
    cairn_is 0 trace t "${store[@]}"; cmp -s out first || fail 'the same log gave another trace'
}
# What a step gave is read by its own arcs in the turn that stores it; arguments and variables are larger than an event.
test_large_values_are_passed_on_at_once_C_62() {
    book big big >big.yaml <<'YAML'
  - step: make
    tool: {kind: python, code: "result = {'text': 'x' * 300000, 'rows': ['y' * 1000] * 100, 'n': 5}"}
    set: {ctx.n: "{{ make.n }}"}
    next: {arcs: [{step: wrong, when: "{{ make.n != 5 }}"}, {step: each, args: {copy: "{{ make.text }}"}}]}
  - {step: wrong, tool: {kind: noop}}
  - step: each
    loop: {in: "{{ make.rows }}", iterator: r, spec: {mode: sequential}}
    tool: {kind: noop}
    next: {arcs: [{step: end, set: {ctx.big: "{{ args.copy }}"}}]}
  - step: end
    tool: {kind: python, input: {size: "{{ ctx.big | length }}", n: "{{ ctx.n }}"}, code: "result = [size, n]"}
YAML
    cairn_is 0 run big.yaml "${store[@]}" --run-id big --progress none -o json
    equal "$(jq -c '.steps[]|select(.stepId=="end").result' out)" '[300000,5]'
    cairn_is 0 events big "${store[@]}" -o json
    equal "$(jq '[.[]|tostring|length]|max < 65536' out)" true 'no event has all of it'
    cairn_is 0 why big/each "${store[@]}"; has out 'taken from make'
    cairn_is 0 log replay big "${store[@]}"
    intact
}
# What an arc would pass on cannot be had: the run fails for it, and says so.
test_an_arc_that_cannot_be_followed_fails_the_run() {
    book arc arc >arc.yaml <<'YAML'
  - {step: a, tool: {kind: noop}, next: {arcs: [{step: b, args: {x: "{{ 1 + none }}"}}]}}
  - {step: b, tool: {kind: noop}}
YAML
    cairn_is 10 run arc.yaml "${store[@]}" --run-id arc
    has err 'TEMPLATE_ERROR'
    intact
}
run_tests "$@"
