#!/usr/bin/env bash
# What authors of playbooks write, in every generation of the language, and what comes of it.
. "$(dirname "$0")/serve_lib.sh"
. "$(dirname "$0")/playbook_lib.sh"

test_what_was_written_before_v10_C_47() {
    book old >old.yaml <<'YAML'
workbook:
  - name: double
    type: python
    args: {n: 0}
    code: |
      def main(n):
          return {"n": n * 2}
workflow:
  - step: start
    tool: python
    args: {n: 20}
    code: |
      result = {"n": n + 1}
    vars: {got: "{{ result.n }}"}
    next:
      - when: "{{ start.n > 100 }}"
        then: [{step: small}]
      - else: [{step: each, data: {k: 3}}]
  - step: each
    tool: {kind: python, input: {x: "{{ x }}", k: "{{ k }}"}, code: result = x * k}
    loop: {collection: [1, 2], element: x}
    next: [twice, other]
  - step: twice
    tool: workbook
    name: double
    args: {n: "{{ vars.got }}"}
    next: [end]
  - {step: other, tool: noop, next: [end]}
  - {step: small, tool: noop}
  - step: end
    tool: python
    input: {a: "{{ each.results }}", b: "{{ twice.n }}", c: "{{ other is defined }}"}
    code: result = input_data
YAML
    cairn_is 0 validate --strict old.yaml
    runs old
    equal "$(result old end)" '{"a":[3,6],"b":42,"c":true}'
    equal "$(events_of old | grep -c '^step.started')" 5 'steps started, each once'
}
test_results_have_the_names_that_playbooks_use_C_47() {
    book names >names.yaml <<'YAML'
workflow:
  - step: start
    tool:
      - {name: first, kind: python, code: 'result = {"x": 5}'}
      - {name: then, kind: python, input: {a: "{{ first.data.x }}", b: "{{ _prev.result.x }}"}, code: result = input_data}
      - {name: last, kind: noop}
    set: {ctx.seen: "{{ output.data.a }}", ctx.status: "{{ outcome.status }}"}
    next: {arcs: [{step: b, when: "{{ event.payload.result.a == 5 and response.b == 5 }}", args: {c: "{{ result.a }}"}}]}
  - step: b
    tool:
      kind: python
      input: {a: "{{ start.a }}", d: "{{ start.data.a }}", r: "{{ start.result.b }}", o: "{{ start.output.a }}", n: "{{ start.none is defined }}",
              c: "{{ c }}", s: "{{ ctx.seen }}", t: "{{ ctx.status }}", y: "{{ now()[:2] }}", z: "{{ now().strftime('%Z') }}"}
      code: result = input_data
YAML
    runs names
    equal "$(result names b)" '{"a":5,"c":5,"d":5,"n":false,"o":5,"r":5,"s":5,"t":"ok","y":"20","z":"UTC"}'
}
test_a_pipeline_of_the_workbook_C_47() {
    book pipe >pipe.yaml <<'YAML'
workbook:
  - name: twice
    tool:
      - {name: first, kind: shell, cmds: "echo {{ n }}"}
      - {name: then, kind: python, input: {f: "{{ first.stdout }}"}, code: 'result = {"f": int(f), "n": n}'}
workflow:
  - {step: start, tool: {kind: workbook, name: twice, input: {n: 4}}, next: [each]}
  - step: each
    loop: {in: [1, 2], iterator: i}
    tool:
      - {name: got, kind: workbook, task: twice, input: {n: "{{ iter.i }}"}}
      - {name: last, kind: python, input: {got: "{{ got }}"}, code: result = got}
    input: {n: 7}
    next: [end]
  - {step: end, tool: {kind: python, input: {a: "{{ start }}", b: "{{ each.results }}"}, code: 'result = [a, b]'}}
YAML
    runs pipe
    equal "$(result pipe end)" '[{"f":4,"n":4},[{"f":7,"n":1},{"f":7,"n":2}]]'
}
test_the_input_of_a_step_with_a_loop_is_read_by_every_tool() {
    book each >each.yaml <<'YAML'
workflow:
  - {step: start, tool: noop, next: [{step: plain, args: {k: 9}}]}
  - step: plain
    loop: {in: [1, 2], iterator: i}
    input: {n: 7, k: 1}
    tool: {kind: shell, cmds: "echo {{ n }} {{ args.n }} {{ k }}{{ ' first' if iter._first }}{{ ' last' if iter._last }}"}
    next: [item]
  - step: item
    loop: {in: [{a: 1}, {a: 2}], iterator: i, spec: {mode: parallel}}
    input: {n: "{{ iter.i.a + 1 }}", plain: "{{ i.a }}"}
    tool: [{kind: shell, cmds: "echo {{ n }} {{ input.plain }}"}, {kind: python, code: 'result = [n, plain]'}]
    next: [end]
  - {step: end, tool: {kind: python, input: {a: "{{ plain.results | map(attribute='stdout') | list }}", b: "{{ item.results }}"}, code: 'result = [a, b]'}}
YAML
    runs each
    equal "$(result each end)" '[["7 7 9 first","7 7 9 last"],[[2,1],[3,2]]]'
    "$CAIRN" events each "${store[@]}" -o jsonl | jq -r 'select(.event_type=="task.done" and .entity_id=="task_0").payload.outcome.result.stdout' | sort >out
    equal "$(paste -sd, out)" '2 1,3 2'
}
test_numbers_come_of_what_the_run_was_started_with() {
    book numbers >numbers.yaml <<'YAML'
workload: {tries: 9, wait: 60, limit: 60}
workflow:
  - step: start
    tool:
      kind: shell
      cmds: 'echo x >>tried; false'
      spec: {policy: {rules: [{when: "{{ output.status == 'error' }}", then: {do: retry, attempts: "{{ workload.tries }}", delay: "{{ wait }}"}}]}}
    next: {arcs: [{step: slow, when: "{{ event.name == 'call.error' }}"}]}
  - {step: slow, tool: {kind: shell, cmds: sleep 30, timeout: "{{ limit }}"}}
YAML
    cairn_is 10 run numbers.yaml "${store[@]}" --run-id numbers --progress none --set tries=2 --set wait=0.01 --set limit=0.2
    equal "$(wc -l <tried)" 2 'tries'
    cairn_is 0 get numbers "${store[@]}"; has out TIMEOUT
    intact
}
test_env_is_read_once_and_recorded() {
    mkdir -p kids
    book kid kids/kid <<<'workflow: [{step: end, tool: {kind: python, input: {a: "{{ env[\"PB_KID\"] }}"}, code: result = a}}]' >kids/kid.yaml
    book envs >envs.yaml <<'YAML'
workload: {place: "{{ env.PB_PLACE }}", other: {env: {PB_NOT: x}}}
workflow:
  - step: start
    tool:
      - {name: kid, kind: playbook, path: kids/kid}
      - {name: all, kind: python, input: {a: "{{ env.PB_PLACE }}-{{ place }}", b: "{{ env.get('PB_NONE', 'none') }}", c: "{{ kid }}", d: "{{ other.env.PB_NOT }}", e: "{{ env.CAIRN_STORE }}"},
         code: 'import os; result = [a, b, c, d, e]'}
YAML
    PB_PLACE=here PB_KID=kid PB_NOT=no PB_SECRET=hidden runs envs
    has err 'asks for env.PB_NONE, which is not set'
    equal "$(result envs start)" '["here-here","none","kid","x",""]'
    "$CAIRN" events envs "${store[@]}" -o jsonl >log
    has log '"env":{"PB_KID":"kid","PB_PLACE":"here"}'; hasnt log hidden
    # A workload may have a value of that name.
    book own >own.yaml <<'YAML'
workload: {env: dev}
workflow: [{step: start, tool: {kind: python, input: {e: "{{ env }}"}, code: result = e}}]
YAML
    runs own; equal "$(result own start)" '"dev"'
    intact
}
test_a_workload_may_be_made_of_itself_and_arguments_of_one_value() {
    book itself >itself.yaml <<'YAML'
workload: {full: "{{ url }}?{{ job.uuid }}", url: "{{ workload.base }}/x", base: "{{ host }}:{{ port | int + 1 }}", host: h, port: "80", all: {u: "{{ workload.full }}"}, deep: "{{ all.u }}"}
workflow:
  - {step: start, tool: {kind: python, code: 'result = {"a": 1, "l": [1]}'}, next: {arcs: [{step: b, args: "{{ start }}"}]}}
  - {step: b, tool: {kind: python, input: {f: "{{ full }}", u: "{{ all.u }}", d: "{{ deep }}", a: "{{ args.a }}", b: "{{ a }}"}, code: result = input_data}}
YAML
    runs itself
    equal "$(result itself b)" '{"a":1,"b":1,"d":"h:81/x?itself","f":"h:81/x?itself","l":[1],"u":"h:81/x?itself"}'
    sed -i 's/{{ start }}/{{ start.l }}/' itself.yaml
    cairn_is 10 run itself.yaml "${store[@]}" --run-id list --progress none
    cairn_is 0 get list "${store[@]}"; has out 'the arguments of an arc are a mapping'
    intact
}
test_what_a_task_asserts_is_checked_C_47() {
    book says >says.yaml <<'YAML'
workbook:
  - name: score
    tool: {kind: python, input: {years: null}, assert: {expects: [years], returns: [score]}, code: 'result = {"score": years * 2} if years else {"other": 1}'}
workflow:
  - {step: start, tool: {kind: workbook, name: score, input: {years: 4}}, next: [none]}
  - step: none
    tool: {kind: workbook, name: score}
    next: {arcs: [{step: bare, when: "{{ event.name == 'call.error' }}", args: {e: "{{ error }}"}}]}
  - {step: bare, tool: {kind: shell, cmds: 'echo ran >>ran', assert: {expects: years}}}
YAML
    cairn_is 10 run says.yaml "${store[@]}" --run-id says --progress none
    equal "$(result says start)" '{"score":8}'
    "$CAIRN" events says "${store[@]}" -o jsonl | jq -r 'select(.event_type=="task.failed").payload.error | .code, .message' >out
    has out 'the result lacks what the task says it returns: score; its members are: other'
    has out 'the task expects inputs that it was not given: years; its inputs are: none'
    [ ! -e ran ] || fail 'it was started although it was not given what it needs'
    intact
}
test_a_failure_is_told_to_where_it_is_taken() {
    book bad >bad.yaml <<'YAML'
workflow:
  - step: start
    tool: {kind: python, code: 'raise ValueError("no")'}
    next:
      arcs:
        - {step: fine, when: "{{ event.name == 'call.done' }}"}
        - {step: mend, when: "{{ event.name == 'call.error' and output.error.code == 'ValueError' }}",
           args: {e: "{{ event.error.message }}", k: "{{ error.kind }}", p: "{{ event.payload.error.code }}"}}
  - {step: fine, tool: {kind: noop}}
  - step: mend
    tool: {kind: python, input: {e: "{{ e }}", k: "{{ k }}", p: "{{ p }}", s: "{{ start.status }}", m: "{{ start.error.message }}"}, code: result = input_data}
YAML
    runs bad
    equal "$(result bad mend)" '{"e":"no","k":"transform","m":"no","p":"ValueError","s":"error"}'
}
test_parts_of_large_results_under_other_names_NX_2v() {
    book large >large.yaml <<'YAML'
workflow:
  - step: start
    tool: {kind: python, code: 'result = {"rows": [{"i": i, "p": "x" * 100} for i in range(1000)], "n": 1000}'}
    output: {select: [n, {path: "$.rows[7].i", as: seventh}]}
    next: [b]
  - step: b
    tool:
      - {name: load, kind: artifact, action: get, input: {result_ref: "{{ start._ref.ref }}"}}
      - {name: count, kind: python, input: {n: "{{ start.n }}", i: "{{ start.seventh }}", rows: "{{ load.data.rows }}", r: "{{ start.__ref__.kind }}"},
         code: 'result = [n, i, len(rows), r]'}
YAML
    runs large
    equal "$(result large b)" '[1000,7,1000,"result_ref"]'
}
test_a_playbook_that_a_template_names() {
    mkdir -p kids
    book child kids/child <<<'workflow: [{step: end, tool: {kind: python, input: {n: "{{ n }}"}, code: result = n * 2}}]' >kids/child.yaml
    book parent >parent.yaml <<'YAML'
workload: {which: kids/child}
workflow:
  - step: start
    tool: {kind: playbook, path: "{{ which }}", input: {n: 4}}
    next: [each]
  - step: each
    loop: {in: [child], iterator: k}
    tool: {kind: playbook, path: "kids/{{ iter.k }}", input: {n: "{{ start }}"}}
    next: [end]
  - {step: end, tool: {kind: python, input: {r: "{{ each.results }}"}, code: result = r}}
YAML
    cairn_is 0 plan parent.yaml -o json; equal "$(jq -c '[.files[].file]' out)" '["kids/child.yaml"]'
    runs parent
    equal "$(result parent end)" '[16]'
    cairn_is 10 run parent.yaml "${store[@]}" --run-id none --progress none --set which=no/such
    events_of none >/dev/null
    "$CAIRN" events none "${store[@]}" -o jsonl | jq -r 'select(.event_type=="step.failed").payload.error.message' >out
    has out 'no/such'
    intact
}
test_a_playbook_that_runs_itself() {
    book self x/self >self.yaml <<'YAML'
workload: {n: 3}
workflow:
  - step: start
    next: {arcs: [{step: again, when: "{{ n > 0 }}"}, {step: end}]}
  - {step: again, tool: {kind: playbook, path: self.yaml, input: {n: "{{ n - 1 }}"}}, next: [end]}
  - {step: end, tool: {kind: python, input: {below: "{{ again | default(0) }}"}, code: result = below + 1}}
YAML
    runs self
    equal "$(result self end)" 4
    sed 's/n > 0/true/' self.yaml >on.yaml && mv on.yaml self.yaml
    cairn_is 10 run self.yaml "${store[@]}" --run-id deep --progress none
    cairn_is 0 get deep "${store[@]}"; has out 'more than 32 deep'
    intact
}
test_playbooks_of_a_tree_that_was_put_elsewhere_are_found() {
    mkdir -p here/a here/b
    book child fixtures/playbooks/b/child <<<'workflow: [{step: end, tool: {kind: python, input: {n: "{{ n }}"}, code: result = n}}]' >here/b/child.yaml
    book near other/b/near <<<'workflow: [{step: end, tool: {kind: noop}}]' >here/b/near.yaml
    book parent >here/a/parent.yaml <<'YAML'
workload: {base: 4, list: "{{ [workload.base, 5] | tojson }}"}
workflow:
  - step: start
    loop: {in: "{{ list }}", iterator: n, spec: {mode: fanout}}
    tool: {kind: playbook, path: fixtures/playbooks/b/child, payload: {n: "{{ iter.n }}"}}
    next: [end]
  - {step: end, tool: {kind: python, input: {r: "{{ start.results }}"}, code: result = r}}
YAML
    cairn_is 0 validate --strict here/a/parent.yaml
    cairn_is 0 run here/a/parent.yaml "${store[@]}" --run-id parent --progress none
    equal "$(result parent end)" '[4,5]'
    sed -i 's#b/child#b/near#' here/a/parent.yaml # one of that name that says that it is another
    cairn_is 3 validate --strict here/a/parent.yaml
}
test_children_of_templates_go_on_after_a_crash() {
    mkdir -p kids
    book child kids/child >kids/child.yaml <<'YAML'
workflow:
  - step: end
    tool: {kind: shell, cmds: ['echo $$ >child.pid', 'while [ ! -e go ]; do sleep 0.05; done', 'echo done']}
YAML
    book parent >parent.yaml <<'YAML'
workflow:
  - step: start
    loop: {in: [child], iterator: k}
    tool: {kind: playbook, path: "kids/{{ iter.k }}"}
    next: [end]
  - {step: end, tool: {kind: python, input: {r: "{{ start.results }}"}, code: 'result = r[0]["stdout"]'}}
YAML
    "$CAIRN" run parent.yaml "${store[@]}" --run-id parent --progress none >/dev/null 2>&1 &
    local pid=$!
    wait_for test -s child.pid
    kill -9 $pid; wait $pid 2>/dev/null
    touch go
    rm -r kids # what was started is kept with the run
    cairn_is 0 recover "${store[@]}"
    equal "$(result parent end)" '"done"'
    intact
}
# What a run may need is sent with it: a server looks for nothing among files.
test_a_server_runs_what_was_sent_with_the_playbook() {
    mkdir -p kids other
    book child kids/child <<<'workflow: [{step: end, tool: {kind: python, input: {n: "{{ n }}"}, code: result = n * 2}}]' >kids/child.yaml
    book secret other/secret <<<'workflow: [{step: end, tool: {kind: noop}}]' >other/secret.yaml
    book self x/self >self.yaml <<'YAML'
workload: {n: 2, which: kids/child, me: x/self}
workflow:
  - step: start
    next: {arcs: [{step: again, when: "{{ n > 0 }}"}, {step: end}]}
  - {step: again, tool: {kind: playbook, path: "{{ me }}", input: {n: "{{ n - 1 }}"}}, next: [end]}
  - {step: end, tool: {kind: playbook, path: "{{ which }}", input: {n: "{{ n }}"}}, next: [last]}
  - {step: last, tool: {kind: python, input: {below: "{{ again | default(0) }}", own: "{{ end }}"}, code: result = below + own}}
YAML
    serve
    cairn_is 0 run self.yaml --server "$url" --token-file store.db.token --run-id self --progress none
    equal "$(result self last)" 6
    cairn_is 10 run self.yaml --server "$url" --token-file store.db.token --run-id bad --progress none --set which=other/secret --set n=0
    cairn_is 0 get bad "${store[@]}"; has out 'not among the documents'
    intact
}
test_a_loop_over_a_cursor_takes_rows_until_there_are_none() {
    book queue >queue.yaml <<'YAML'
workflow:
  - step: make
    tool:
      kind: sqlite
      database: q.db
      commands: |
        create table q (id integer primary key, name text, status text default 'pending', made text);
        insert into q (name) values ('a'), ('b'), ('c'), ('d'), ('e');
    next: {arcs: [{step: work}]}
  - step: work
    loop:
      cursor:
        kind: sqlite
        database: q.db
        claim: |
          UPDATE q SET status = 'taken' WHERE id IN (SELECT id FROM q WHERE status = 'pending' ORDER BY id LIMIT {{ __frame_max_rows | default(1) }})
          RETURNING id, name
      iterator: row
      spec: {mode: cursor, max_in_flight: 1, frame: {max_rows: 2}}
    tool:
      - {name: calc, kind: python, input: {n: "{{ iter.row.name }}"}, code: result = n.upper()}
      - {name: save, kind: sqlite, database: q.db, command: "update q set status = 'done', made = '{{ calc }}' where id = {{ iter.row.id }}"}
    next: {spec: {mode: exclusive}, arcs: [{step: check, when: "{{ event.name == 'loop.done' }}"}]}
  - step: check
    tool: {kind: sqlite, database: q.db, query: "select group_concat(made, '') as s, count(*) as n from q where status = 'done'"}
    next: [end]
  - {step: end, tool: {kind: python, input: {r: "{{ check.command_0.rows[0] }}"}, code: result = r}}
YAML
    cairn_is 0 validate --strict queue.yaml
    runs queue
    equal "$(result queue end)" '{"n":5,"s":"ABCDE"}'
    equal "$(events_of queue | grep -c '^loop.started')" 4 'frames, the last one empty'
    intact
}
# What is decided about a large result is decided before it is stored.
test_arcs_and_patches_read_large_results_NX_2u() {
    book arcs >arcs.yaml <<'YAML'
workflow:
  - step: start
    tool:
      kind: python
      code: 'result = {"rows": ["x" * 100] * 2000, "n": 2000}'
      spec: {policy: {rules: [{else: {then: {do: continue, set: {ctx.ref: "{{ output.ref }}"}}}}]}}
    set: {ctx.address: "{{ output.ref.uri }}", ctx.n: "{{ start.n }}"}
    next: {arcs: [{step: many, when: "{{ start.n > 1000 }}", args: {first: "{{ start.rows[0] | length }}"}}, {step: few}]}
  - step: many
    tool:
      - {name: load, kind: artifact, action: get, input: {result_ref: "{{ ctx.ref }}"}}
      - {name: told, kind: python, input: {n: "{{ load.data.n }}", a: "{{ ctx.address }}", m: "{{ ctx.n }}", f: "{{ first }}"}, code: 'result = [n, m, f, a]'}
  - {step: few, tool: {kind: noop}}
YAML
    runs arcs
    equal "$(result arcs many)" '[2000,2000,100,"noetl://execution/arcs/step/start"]'
    intact
}
test_what_cannot_be_set_or_passed_on_fails_the_run() {
    for wrong in 'set: {ctx.x: "{{ 1 / 0 }}"}, next: [end]' 'next: {arcs: [{step: end, args: {x: "{{ 1 / 0 }}"}}]}'; do
        book wrong <<<"workflow: [{step: start, tool: {kind: noop}, $wrong}, {step: end, tool: {kind: noop}}]" >wrong.yaml
        rm -f store.db*
        cairn_is 10 run wrong.yaml "${store[@]}" --run-id wrong --progress none
        cairn_is 0 get wrong "${store[@]}"; has out 'division by zero'
    done
}
test_sql_that_stands_elsewhere() {
    mkdir -p deep/er
    echo 'select 41 + 1 as n;' >deep/q.sql
    book sql >deep/er/sql.yaml <<'YAML'
workbook: {tasks: {}}
workflow:
  - step: start
    tool: {kind: sqlite, command_b64: "c2VsZWN0IDEgYXMgYTsgc2VsZWN0IDIgYXMgYjs="}
    next: [b]
  - {step: b, tool: {kind: sqlite, script: {uri: q.sql, source: {type: file}}}, next: [c]}
  - {step: c, tool: {kind: sqlite, script: no.sql, spec: {policy: {rules: [{then: {do: continue}}]}}}, next: [d]}
  - step: d
    tool: {kind: python, input: {a: "{{ start.command_1.rows[0].b }}", b: "{{ b.rows[0].n }}", c: "{{ c.error.code }}", r: "{{ b.row_count }}"}, code: 'result = [a, b, c, r]'}
YAML
    cairn_is 0 run deep/er/sql.yaml "${store[@]}" --run-id sql --progress none
    equal "$(result sql d)" '[2,42,"FILE_NOT_READABLE",1]'
}
# A loop in a loop is a playbook with a loop, run by one.
test_nested_loops_see_the_iteration_around_them() {
    book inner >inner.yaml <<'YAML'
workload: {xs: []}
workflow:
  - step: start
    loop: {in: "{{ xs }}", iterator: x}
    tool: {kind: python, input: {v: "{{ iter.parent.row.name }}{{ iter.parent.index }}{{ iter.x }}{{ iter.index }}", up: "{{ iter.parent.parent.index | default('top') }}"},
           code: result = v + str(up)}
    next: [end]
  - {step: end, tool: {kind: python, input: {r: "{{ start.results }}", p: "{{ iter.parent.row.name }}"}, code: 'result = r + [p]'}}
YAML
    book middle >middle.yaml <<'YAML'
workload: {rows: [{name: a, xs: [1, 2]}, {name: b, xs: [3]}]}
workflow:
  - step: start
    loop: {in: "{{ rows }}", iterator: row}
    tool: {kind: playbook, path: inner.yaml, input: {xs: "{{ iter.row.xs }}"}}
    next: [end]
  - {step: end, tool: {kind: python, input: {r: "{{ start.results }}"}, code: result = r}}
YAML
    book outer >outer.yaml <<'YAML'
workflow:
  - step: start
    loop: {in: [only], iterator: o}
    tool: {kind: playbook, path: middle.yaml}
    next: [end]
  - {step: end, tool: {kind: python, input: {r: "{{ start.results[0] }}"}, code: result = r}}
YAML
    runs middle
    equal "$(result middle end)" '[["a010top","a021top","a"],["b130top","b"]]'
    runs outer
    equal "$(result outer end)" '[["a0100","a0210","a"],["b1300","b"]]'
    intact
}
test_a_failure_that_is_continued_with_keeps_its_result() {
    book go >go.yaml <<'YAML'
executor: {spec: {final_step: last}}
workflow:
  - step: start
    tool:
      - {name: bad, kind: shell, cmds: ["echo out", "exit 3"], spec: {policy: {rules: [{then: {do: continue}}]}}}
      - {name: after, kind: python, input: {c: "{{ bad.exit_code }}", o: "{{ bad.stdout }}", s: "{{ bad.status }}", k: "{{ bad.error.code }}"}, code: result = input_data}
    next: [gone]
  - {step: gone, tool: {kind: python, code: 'raise KeyError("x")'}}
  - {step: last, tool: {kind: python, script: scripts/hello.py, input: {name: "{{ start.c }}"}}}
YAML
    mkdir -p scripts deep/er && echo 'result = f"hello {name}"' >scripts/hello.py && mv go.yaml deep/er/go.yaml && mv scripts deep/
    cairn_is 10 run deep/er/go.yaml "${store[@]}" --run-id go --progress plain
    equal "$(result go start)" '{"c":3,"k":"EXIT_NONZERO","o":"out","s":"error"}'
    equal "$(result go last)" '"hello 3"' 'the final step'
    equal "$(grep -c 'step=gone status=FAILED' err)" 1 'lines of the failure'
    status_is go FAILED || fail 'it is not FAILED'
}
test_a_new_run_of_a_playbook_begins_anew() {
    book fails >fails.yaml <<'YAML'
workload: {ok: false}
workflow:
  - {step: start, tool: {kind: noop}, next: [mid]}
  - step: mid
    tool: {kind: python, input: {ok: "{{ ok }}"}, code: "assert ok\nresult = 1"}
    next: {arcs: [{step: never, when: "{{ mid == 7 }}"}, {step: end}]}
  - {step: never, tool: {kind: noop}}
  - {step: end, tool: {kind: noop}}
YAML
    cairn_is 10 run fails.yaml "${store[@]}" --run-id a --progress none
    cairn_is 6 rerun a --set mid.output=1 "${store[@]}" --progress none
    has err 'is of a playbook'; has err 'rerun a'
    cairn_is 0 ls "${store[@]}" -o name; equal "$(wc -l <out)" 1 runs
    cairn_is 0 rerun a "${store[@]}" --set ok=true --run-id b --progress none; has err 'to come   start, mid'
    cairn_is 10 retry a "${store[@]}" --progress none; hasnt err kept
    equal "$(events_of b | grep -c '^task.done')" 3 'tasks of the new run'
    cairn_is 0 why b/never "${store[@]}"; hasnt out retry; has out 'nothing was decided about it'
    cairn_is 6 retry a/mid "${store[@]}"; cairn_is 6 skip a/mid "${store[@]}"
    intact
}

test_steps_that_are_visited_again_count_once_everywhere() {
    book again >again.yaml <<'YAML'
workload: {}
workflow:
  - step: start
    tool: {kind: noop}
    next: {arcs: [{step: work}]}
  - step: work
    tool: {kind: python, args: {v: "{{ ctx.v | default(0) }}"}, code: "result = {'v': v + 1}"}
    set: {ctx.v: "{{ output.data.v }}"}
    next: {spec: {mode: exclusive}, arcs: [{step: work, when: "{{ ctx.v < 3 }}"}, {step: end}]}
  - {step: end, tool: {kind: noop}}
YAML
    cairn_is 0 run again.yaml "${store[@]}" --run-id again --progress plain; has err '3 done of 3, in 5 visits'
    cairn_is 0 get again "${store[@]}"; has out '3 done of 3, in 5 visits'; has out 'work:run:3'
    cairn_is 0 ls "${store[@]}" -o json; equal "$(jq -r '.[0].progress' out)" 3/3 progress
    equal "$("$CAIRN" events again "${store[@]}" -o jsonl | jq -c 'select(.event_type == "playbook.finished").payload.counts | [.completed, .total]')" '[3,3]'
}
run_tests "$@"
