#!/usr/bin/env bash
# Forms that playbooks are written in, each as an author would: what is read where, and what is told instead of it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/playbook_lib.sh"

test_what_failed_is_read_where_its_arc_leads_C_47() {
    book after >after.yaml <<'YAML'
workflow:
  - step: start
    tool:
      - {name: ask, kind: shell, cmds: ["echo '{\"v\": 7}'", "exit 3"]}
    next:
      arcs:
        - {step: wrong, when: "{{ output.data.exit_code != 3 }}"}
        - {step: told, when: "{{ event.name == 'call.error' and output.data.exit_code == 3 }}", args: {out: "{{ output.result.stdout }}", kind: "{{ output.error.kind }}"}}
  - {step: wrong, tool: {kind: noop}}
  - step: told
    tool: {kind: python, input: {a: "{{ args }}", c: "{{ start.exit_code }}", s: "{{ start.status }}", k: "{{ start.error.code }}"}, code: "result = [a, c, s, k]"}
    next: ruled
  - step: ruled
    tool:
      kind: python
      code: 'result = {"status": "error", "n": 5}'
      spec: {policy: {rules: [{when: "{{ output.data.n > 3 }}", then: {do: fail}}]}}
    next: {arcs: [{step: end, when: "{{ event.name == 'step.failed' and output.data.n == 5 }}"}]}
  - {step: end, tool: {kind: python, input: {n: "{{ ruled.n }}", k: "{{ ruled.error.code }}", m: "{{ ruled.meta is defined }}"}, code: result = input_data}}
YAML
    runs after
    equal "$(result after told)" '[{"kind":"unknown","out":"{\"v\": 7}"},3,"error","EXIT_NONZERO"]'
    equal "$(result after end)" '{"k":"POLICY_FAIL","m":false,"n":5}'
    cairn_is 0 why after "${store[@]}"
    ! grep -q different out || fail "it says: $(cat out)"
    intact
}

test_tasks_of_a_pipeline_are_read_by_name_after_it_C_47() {
    book piped >piped.yaml <<'YAML'
workflow:
  - step: start
    tool:
      - {name: one, kind: python, code: 'result = {"items": [1, 2]}'}
      - {name: large, kind: python, code: 'result = {"rows": list(range(30000))}'}
      - {name: stop, kind: noop, spec: {policy: {rules: [{then: {do: break}}]}}}
      - {name: never, kind: noop}
    next: {arcs: [{step: each, when: "{{ start.results.one.items | length == 2 }}"}]}
  - step: each
    loop: {in: "{{ start.results.one.items }}", iterator: n}
    tool: [{name: a, kind: python, input: {n: "{{ n }}"}, code: result = n}, {name: b, kind: noop}]
    next: own
  - step: own
    tool: [{name: a, kind: noop}, {name: b, kind: python, code: 'result = {"results": [7]}'}]
    next: end
  - step: end
    tool:
      kind: python
      input:
        a: "{{ start.results.large.rows | length }}"
        b: "{{ start.results.never is defined }}"
        c: "{{ each.results }}"
        d: "{{ own.results }}"
        e: "{{ start.results | list | sort | join(' ') }}"
        f: "{{ start.rows | length }}"
      code: result = input_data
YAML
    runs piped
    equal "$(result piped end)" '{"a":30000,"b":false,"c":[1,2],"d":[7],"e":"large one stop","f":30000}'
    cairn_is 0 why piped "${store[@]}"
    ! grep -q different out || fail "it says: $(cat out)"
    intact
}

test_kinds_of_clouds_are_valid_and_not_run() {
    book cloud >cloud.yaml <<'YAML'
workflow:
  - {step: start, tool: {kind: python, code: 'open("begun", "w")'}, next: [up]}
  - {step: up, tool: {kind: ducklake, action: upload}}
YAML
    cairn_is 0 validate cloud.yaml
    grep -q 'cloud.yaml:6:.*warning\[E0223\] there is no tool of kind "ducklake" here' out err || fail "it says: $(cat out err)"
    cairn_is 3 validate --strict cloud.yaml
    for kind in subscription auth sink; do
        sed "s/ducklake/$kind/" cloud.yaml >other.yaml
        cairn_is 0 validate other.yaml
        grep -q "warning\[E0223\] there is no tool of kind \"$kind\" here" out err || fail "$kind: $(cat out err)"
    done
    cairn_is 2 run cloud.yaml "${store[@]}" --run-id cloud
    grep -q 'needs the tool "ducklake", which is not there' err && [ ! -e begun ] || fail "it says: $(cat err)"
    mkdir tools && printf '#!/bin/sh\ncat >/dev/null; echo "{\\"status\\": \\"ok\\", \\"result\\": 1}"\n' >tools/ducklake && chmod +x tools/ducklake
    runs cloud --tools tools
    cairn_is 0 validate --tools tools cloud.yaml
    ! grep -q E0223 out err || fail "it says: $(cat out err)"
    book fork >fork.yaml <<'YAML'
workload: {to: disk}
workflow:
  - {step: start, tool: {kind: python, code: result = 1}, next: {arcs: [{step: up, when: "{{ workload.to == 'cloud' }}"}, {step: stay}]}}
  - {step: up, tool: {kind: ducklake, action: upload}}
  - {step: stay, tool: {kind: python, code: result = 'stayed'}}
YAML
    runs fork # a branch that is never taken refuses nothing
    equal "$(result fork stay)" '"stayed"'
    cairn_is 10 run fork.yaml "${store[@]}" --run-id taken --set to=cloud --progress none
    cairn_is 0 why taken/up "${store[@]}"
    has out 'nobody here executes "ducklake"'
    sed s/ducklake/iterator/ cloud.yaml >old.yaml
    cairn_is 3 validate old.yaml
    grep -q 'hint: a step with loop: {in: ..., iterator: ...}' out err || fail "it says: $(cat out err)"
}

test_the_input_of_a_task_is_read_in_its_other_fields() {
    book own >own.yaml <<'YAML'
workload: {uid: 5, n: 1}
workflow:
  - step: start
    input: {who: step, all: yes}
    tool:
      - {name: q, kind: sqlite, input: {id: "{{ uid }}", n: "{{ n + 1 }}"}, database: ":memory:", command: "SELECT {{ id }} AS a, {{ args.n }} AS b, '{{ input.who }}' AS c, {{ n }} AS d"}
      - {name: sh, kind: shell, args: {who: "w{{ q.rows[0].a }}", q: own}, cmds: ["echo {{ who }} {{ q }} {{ args.all }}"]}
      - {name: py, kind: python, input: {r: "{{ q.rows[0] }}", s: "{{ sh.stdout }}", w: "{{ who }}", n: "{{ n }}"}, code: result = input_data}
    next: {arcs: [{step: each}]}
  - step: each
    loop: {in: [1, 2], iterator: i}
    tool: {kind: sqlite, database: ":memory:", input: {m: "{{ iter.i * 2 }}"}, command: "SELECT {{ m }} AS m"}
    next: bad
  - step: bad
    tool: {kind: sqlite, input: {m: "{{ 1 + nobody }}"}, command: "SELECT {{ m }}"}
    next: {arcs: [{step: end, when: "{{ event.name == 'call.error' }}", set: {ctx.why: "{{ error.message }}"}}]}
  - {step: end, tool: {kind: python, input: {a: "{{ each.results | map(attribute='command_0.rows') | list }}", w: "{{ ctx.why }}"}, code: result = input_data}}
YAML
    runs own
    equal "$(result own start)" '{"all":"yes","n":1,"r":{"a":5,"b":2,"c":"step","d":2},"s":"w5 own yes","w":"step","who":"step"}'
    equal "$(result own end)" '{"a":[[{"m":2}],[{"m":4}]],"w":"input: m: template: nobody is undefined"}'
    equal "$("$CAIRN" events own "${store[@]}" -o jsonl | jq -c 'select(.event_type=="task.attempt.started" or .event_type=="task.started")|select(.entity_id=="q").payload.inputs//empty')" '{"id":5,"n":2}'
    cairn_is 0 why own "${store[@]}"
    ! grep -q different out || fail "it says: $(cat out)"
}

test_what_a_tool_does_not_look_at_is_told() {
    book strange >strange.yaml <<'YAML'
workflow:
  - step: start
    tool:
      - {name: a, kind: http, url: "http://h", pagination: {type: offset}, x-note: mine, timeout: 3}
      - {name: b, kind: sqlite, comand: SELECT 1, command: SELECT 2, save: {table: t}}
      - {name: c, kind: noop, whatever: 1}
YAML
    cairn_is 0 validate strange.yaml
    cat out err >told
    equal "$(grep -c 'warning\[E0219\]' told)" 3 'warnings'
    grep -q 'strange.yaml:7:.*the tool http does not look at "pagination"' told && grep -q 'hint: ask for the next page with a rule' told || fail "it says: $(cat told)"
    grep -q 'the tool sqlite does not look at "comand"' told && grep -q 'does not look at "save"' told || fail "it says: $(cat told)"
    book gone >gone.yaml <<'YAML'
workflow:
  - step: start
    tool: {kind: shell, args: {a: 1}, input: {b: 2}, cmds: "true", retry: [{when: x}]}
    next: {arcs: [{step: each, if: "{{ x }}"}]}
  - step: each
    loop: {in: [1], iterator: i, pagination: {}, while: x}
    tool: {kind: noop}
YAML
    cairn_is 3 validate gone.yaml
    cat out err >told
    grep -q '"args" is another name of "input", and both are given' told || fail "it says: $(cat told)"
    equal "$(grep -c 'error\[E0222\]' told)" 4 'constructs of before'
    equal "$(grep -c 'warning' told)" 1 'only how many there are'
}

test_what_an_arc_gives_is_input_of_the_step_it_leads_to_C_47() {
    book kid >kid.yaml <<<'workflow: [{step: end, tool: {kind: python, input: {q: "{{ q }}"}, code: result = q}}]'
    book passed >passed.yaml <<'YAML'
workload: {initial: 100}
workbook: [{name: greet, tool: {kind: python, code: 'result = "hi " + name'}}]
workflow:
  - {step: start, tool: {kind: noop}, next: {arcs: [{step: use, args: {test_var: "{{ initial }}", computed: 200}}]}}
  - step: use
    tool: {kind: python, code: 'result = {"sum": test_var + input_data.get("computed", 0)}'}
    next: {arcs: [{step: over, args: {a: arc, b: arc, c: arc}}]}
  - step: over
    args: {a: step, b: step, d: step}
    tool:
      - {name: one, kind: python, args: {a: task}, code: 'result = [a, b, c, d]'}
      - {name: two, kind: python, input: "{{ {'z': 1} }}", code: 'result = sorted(input_data)'}
      - {name: all, kind: python, code: "def main(b, c):\n    return [b, c]", set: {ctx.all: "{{ [one, two, output.data] }}"}}
    next: {arcs: [{step: each, args: {more: "{{ ctx.all }}"}}]}
  - step: each
    loop: {in: [1, 2], iterator: i, spec: {mode: parallel}}
    tool: {kind: python, input: {i: "{{ i }}"}, code: 'result = [i, len(more)]'}
    next: {arcs: [{step: book, args: {name: zed}}]}
  - {step: book, tool: {kind: workbook, name: greet}, next: {arcs: [{step: child, args: {q: 7}}]}}
  - {step: child, tool: {kind: playbook, path: kid}, next: [end]}
  - {step: end, tool: {kind: python, code: result = input_data}}
YAML
    runs passed
    equal "$(for s in use book child end; do result passed $s; done)" $'{"sum":300}\n"hi zed"\n7\n{}'
    equal "$("$CAIRN" events passed "${store[@]}" -o jsonl | jq -c 'select(.event_type=="step.scheduled" and .entity_id=="each").payload.inputs.more' | tail -n 1)" '[["task","arc","arc","step"],["z"],["arc","arc"]]'
    equal "$("$CAIRN" events passed "${store[@]}" -o jsonl | jq -c 'select(.event_type=="task.done" and .entity_id=="each_task").payload.outcome.result' | sort | tr -d '\n')" '[1,3][2,3]'
    equal "$("$CAIRN" events passed "${store[@]}" -o jsonl | jq -c 'select(.entity_id=="use_task").payload.inputs//empty' | sort -u)" '{"computed":200,"test_var":100}'
    cairn_is 0 why passed "${store[@]}"
    ! grep -q different out || fail "it says: $(cat out)"
    intact
}

test_code_finds_its_input_under_every_name() {
    book code >code.yaml <<'YAML'
workflow:
  - step: start
    tool:
      - {name: a, kind: python, args: {x: 1}, code: 'result = [args["x"], context.get("x"), input_data["x"], x]'}
      - {name: b, kind: python, args: {x: 2}, code: "args = args or {}\nreturn args.get('x')"}
      - {name: c, kind: python, input: {args: own, context: 3}, code: 'result = [args, context, sorted(input_data)]'}
      - {name: d, kind: python, code: 'result = [args, context]'}
      - {name: all, kind: python, input: {a: "{{ a }}", b: "{{ b }}", c: "{{ c }}", d: "{{ d }}"}, code: 'result = [a, b, c, d]'}
YAML
    runs code
    equal "$(result code start)" '[[1,1,1,1],2,["own",3,["args","context"]],[{},{}]]'
}

test_why_tells_which_arcs_a_step_leads_by_and_what_they_read() {
    book led >led.yaml <<'YAML'
workflow:
  - step: start
    tool: {kind: python, code: 'result = {"pad": "p" * 500, "rows": [{"n": 3}], "z": {"k": "v"}}'}
    next:
      arcs:
        - {step: many, when: "{{ start.rows[0].n > 5 and event.name == 'call.done' }}"}
        - {step: none, when: "{{ start.nothing.at.all }}"}
        - {step: end, when: "{{ start.z['k'] == 'v' }}"}
  - {step: many, tool: {kind: noop}}
  - {step: none, tool: {kind: noop}}
  - {step: end, tool: {kind: noop}}
YAML
    runs led
    cairn_is 0 why led/start "${store[@]}" -o json
    equal "$(jq -c '[.routes[]|[.to,.taken,.values]]' out)" \
        '[["many",false,{"start.rows[0].n":3,"event.name":"step.done"}],["none",false,null],["end",true,{"start.z['"'k'"']":"v"}]]'
    cairn_is 0 why led/start "${store[@]}"
    grep -q 'leads  *not to many' out && grep -q 'to end .*with start.z' out || fail "it says: $(cat out)"
    cairn_is 0 why led/end "${store[@]}"
    grep -q 'taken from start' out && ! grep -q leads out || fail "it says: $(cat out)"
}

test_policies_of_steps_come_from_every_spec_around_them() {
    book each >each.yaml <<'YAML'
workflow:
  - step: start
    spec: {policy: {failure: {mode: fail_fast}}}
    loop: {in: [1, 0, 2], iterator: i, spec: {policy: {failure: {mode: best_effort}}}}
    tool: {kind: python, input: {i: "{{ i }}"}, code: "result = 2 // i"}
    next: {arcs: [{step: end, when: "{{ event.name == 'loop.done' }}"}]}
  - {step: end, tool: {kind: python, input: {s: "{{ start.stats }}", r: "{{ start.results }}"}, code: "result = [s, r]"}}
YAML
    runs each
    equal "$(result each end)" '[{"failed":1,"success":2,"total":3},[2,null,1]]'
    sed -e 's/, spec: {policy: {failure: {mode: best_effort}}}//' -e '/fail_fast/d' \
        -e 's/^workflow/executor: {spec: {policy: {failure: {mode: best_effort}}}}\nworkflow/' each.yaml >around.yaml
    runs around
    equal "$(result around end)" '[{"failed":1,"success":2,"total":3},[2,null,1]]'
    book odd >odd.yaml <<'YAML'
workflow:
  - step: start
    spec: {retries: 3, policy: {lifecycle: {timeout_s: 9, grace: 1}}}
    loop: {in: [1], iterator: i, spec: {mode: parallel, max_inflight: 3, x-mine: 1}}
    tool: {kind: noop}
YAML
    cairn_is 0 validate odd.yaml
    cat out err >told
    equal "$(grep -c 'warning\[E0219\]' told)" 3 'warnings'
    grep -q 'did you mean "max_in_flight"' told || fail "it says: $(cat told)"
}

test_the_step_that_is_returned_may_be_a_template() {
    book kid >kid.yaml <<'YAML'
workflow:
  - {step: one, tool: {kind: python, code: result = 1}, next: two}
  - {step: two, tool: {kind: python, code: result = 2}, next: three}
  - {step: three, tool: {kind: python, code: result = 3}}
YAML
    book back >back.yaml <<'YAML'
workflow:
  - step: each
    loop: {in: [one, two, ""], iterator: name, spec: {mode: parallel}}
    tool: {kind: playbook, path: kid, return_step: "{{ iter.name }}"}
    next: {arcs: [{step: end, set: {ctx.back: two}}]}
  - {step: end, tool: {kind: playbook, path: kid, return_step: "{{ ctx.back }}"}, next: all}
  - {step: all, tool: {kind: python, input: {a: "{{ each.results }}", b: "{{ end }}"}, code: "result = [a, b]"}}
YAML
    cairn_is 0 validate --strict back.yaml
    runs back
    equal "$(result back all)" '[[1,2,3],2]'
}

run_tests "$@"
