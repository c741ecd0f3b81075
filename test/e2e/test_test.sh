#!/usr/bin/env bash
# `cairn test` and `cairn test record`: what passes, what fails and where it says so, and that a recorded run plays again.
. "$(dirname "$0")/lib.sh"

examples=$root/examples

document() {
    cat >flow.yaml <<'DOC'
name: flow
inputs: {env: staging}
nodes:
  - id: load
    bash: curl -f https://example.test/rows
    retry: {max_attempts: 2, delay_ms: 60000}
  - id: check
    depends_on: [load]
    when: "$load.output.rows > 2"
    bash: check
  - id: gate
    depends_on: [check]
    approval: {message: go on}
  - id: nap
    depends_on: [gate]
    wait: 500h
  - id: again
    depends_on: [nap]
    loop_group:
      max_iterations: 5
      until_bash: test done
      nodes:
        - id: tick
          bash: tick
DOC
}
passing() {
    cat >flow.test.yaml <<'TEST'
document: flow.yaml
mocks:
  load#1: {fail: {code: EXIT_NONZERO, exit: 7, message: no route}, takes: 30s}
  load#2: {output: {rows: 3}}
  check: {output: fine}
  again[*].tick: {output: x}
  again[*].again.until: {exit: 1}
  again[3].again.until: {exit: 0}
approvals: {gate: {answer: yes, by: ann, fields: {ticket: 7}, takes: 2h}}
expect:
  status: COMPLETED
cases:
  - name: all of it
    expect:
      path: [load, check, gate, nap, again, "again[3].tick"]
      ran: [load, check, gate, nap, again]
      skipped: []
      attempts: {load: 2}
      outputs: {load: {rows: 3}, gate: {by: ann, fields: {ticket: 7}}}
      outputs_exactly: {check: fine}
      events: {order: [node_started load, node_completed nap], count: {node_failed: 0, node_started again: 1}}
      duration: {min: 502h, max: 503h}
    golden: flow.golden.jsonl
  - name: too few rows
    mocks: {load#2: {output: {rows: 2}}}
    expect: {skipped: [check, gate, nap, again], reasons: {check: CONDITION_FALSE}}
  - name: rejected
    approvals: {gate: no}
    expect: {status: FAILED, failed: [gate], errors: {gate: APPROVAL_REJECTED}}
  - name: paused for lunch
    signals:
      - {after: load#1 failed, send: pause, reason: lunch}
      - {after: run paused, wait: 1h, send: resume}
      - {after: run resumed, send: resume, rejected: RUN_NOT_PAUSED}
    expect: {attempts: {load: 2}, duration: {min: 503h}}
  - name: nobody there
    approvals: {gate: {answer: yes, takes: 999h}}
    signals: [{at: 600h, send: cancel, reason: enough}]
    expect: {status: CANCELLED}
TEST
}

test_passing_cases_take_no_time() {
    document; passing
    cairn_is 0 test --update; has err 'wrote flow.golden.jsonl'
    start=$(date +%s%N)
    cairn_is 0 test; has out '5 passed, 0 failed'; has_line out 'of virtual time'
    [ $((($(date +%s%N) - start) / 1000000)) -lt 30000 ] || fail 'hundreds of virtual hours took long'
    cp flow.golden.jsonl first; cairn_is 0 test --update; cmp flow.golden.jsonl first || fail 'the golden log is not stable'
    cairn_is 5 test --filter rejekted; has err 'no test has "rejekted"'
    cairn_is 0 test --filter rejected; has out '1 passed, 0 failed'
    cairn_is 0 test flow.test.yaml -o json; equal "$(jq -c '[.passed,.failed,.invalid]' out)" '[5,0,0]'
    sed -i 's/name: flow/name: flow # a comment/' flow.yaml; cairn_is 0 test
}
test_failures_name_their_place() {
    document; passing
    cairn_is 20 test; has out 'golden'; has out '`cairn test --update` writes it'
    cat >bad.test.yaml <<'TEST'
document: flow.yaml
mocks: {load: {output: {rows: 1}, takes: 2s}}
expect:
  status: FAILED
  path: [load, check]
  attempts: {load: 2}
  outputs: {load: {rows: 3}}
  events: [node_failed load]
  duration: 5s
signals:
  - {after: check started, send: pause}
  - {at: 1s, send: resume}
TEST
    cairn_is 20 test bad.test.yaml
    has_line out 'bad.test.yaml:4:11: status'; has_line out 'expected +FAILED'; has_line out 'got +COMPLETED'
    has_line out 'bad.test.yaml:5:9: path'; has_line out 'got +load$'
    has_line out 'bad.test.yaml:6:20: attempts.load'
    has_line out 'bad.test.yaml:7:19: outputs.load'; has out 'rows: expected 3, got 1'
    has_line out 'bad.test.yaml:8:12: events'; has_line out 'bad.test.yaml:9:13: duration'
    has_line out 'bad.test.yaml:11:5: signals'; has out 'never sent'
    has_line out 'bad.test.yaml:12:5: signals'; has out 'RUN_NOT_PAUSED'
    cairn_is 20 test bad.test.yaml -o junit; has out '<testsuite name="cairn" tests="1" failures="1" errors="0">'; has out '<failure message="status">'
    python3 -c 'import sys,xml.dom.minidom as m; m.parse("out")' || fail 'not XML'
}
test_a_changed_log_differs_from_its_golden() {
    document; passing
    cairn_is 0 test --update
    sed -i 's/output: fine/output: finer/' flow.test.yaml; sed -i 's/check: fine}/check: finer}/' flow.test.yaml
    cairn_is 20 test --filter 'all of it'; has_line out 'golden flow.golden.jsonl:[0-9]+'; has out '"value":"finer"'
}
test_a_step_without_a_mock_fails_the_test() {
    document
    printf 'document: flow.yaml\nexpect: {status: COMPLETED}\n' >flow.test.yaml
    cairn_is 20 test; has out 'a mock for load'; has out 'add `load: {output: ...}` to `mocks`'
    printf 'document: flow.yaml\ndefaults: {"*": {}}\n' >flow.test.yaml
    cairn_is 0 test
}
test_an_invalid_file_is_told_with_its_place() {
    document
    cat >flow.test.yaml <<'TEST'
document: flow.yaml
mock: {load: {}}
mocks:
  laod: {output: x}
  nap: {takes: 1h}
  tick: {}
  load: {takes: soon, output: x, fail: TIMEOUT}
approvals: {load: yes}
signals: [{after: load exploded, send: pause}, {send: jump, at: 1s}]
expect: {status: DONE, path: load}
TEST
    cairn_is 3 test
    has_line err 'flow.test.yaml:2:1: error\[E0203\].*"mock"'; has err 'did you mean `mocks`?'
    has_line err 'flow.test.yaml:7:17: error\[E0206\].*takes'; has_line err 'flow.test.yaml:7:40: error\[E0207\]'
    has_line err 'flow.test.yaml:9:19: error\[E0206\]'; has_line err 'flow.test.yaml:9:5[0-9]: error\[E0206\]'
    has_line err 'flow.test.yaml:10:18: error\[E0206\]'; has_line err 'flow.test.yaml:10:30: error\[E0205\]'
    has out '1 file invalid'
    printf 'document: flow.yaml\nmocks:\n  laod: {}\n  nap: {}\n  tick: {}\napprovals: {load: yes}\n' >flow.test.yaml
    cairn_is 3 test
    has_line err 'flow.test.yaml:3:3: error\[E0701\]'; has err 'did you mean "load"?'
    has_line err 'flow.test.yaml:4:3: error\[E0702\]'; has_line err 'flow.test.yaml:5:3: error\[E0701\]'; has err '"again[*].tick"'
    has_line err 'flow.test.yaml:6:13: error\[E0702\]'
    printf 'document: none.yaml\n' >flow.test.yaml; cairn_is 3 test; has err 'none.yaml'; has err 'flow.test.yaml:1:11'
}
test_real_steps_really_run() {
    printf 'name: r\nnodes:\n  - {id: a, bash: "echo $((6*7)); echo ran >> proof"}\n  - {id: b, depends_on: [a], bash: "exit 3"}\n' >r.yaml
    printf 'document: r.yaml\ndefaults: {shell: {real: true}}\nexpect: {status: FAILED, outputs: {a: "42"}, errors: {b: EXIT_NONZERO}}\n' >r.test.yaml
    cairn_is 0 test; equal "$(cat proof)" ran
}
test_nothing_is_left_behind() {
    document; passing; mkdir tmp
    TMPDIR=$PWD/tmp cairn_is 0 test --update; equal "$(ls tmp | wc -l)" 0
}
# Every example is run for real, recorded, and played: it passes at once and takes the same path.
test_record_round_trip_over_all_examples() {
    command -v node >/dev/null || skip 'node is not installed'
    touch gate
    for f in "$examples"/*.json "$examples"/*.yaml; do
        grep -q '^kind: Playbook' "$f" && continue
        n=$(basename "${f%.*}"); extra=()
        [ "$n" = hold ] && extra=(--set "gate=$PWD/gate")
        "$CAIRN" run "$f" "${store[@]}" --run-id "run-$n" --progress none --approve-all "${extra[@]}" >/dev/null 2>&1 &
    done
    wait
    "$CAIRN" run "$examples/pages.yaml" "${store[@]}" --run-id run-pages --progress none >/dev/null 2>&1
    cairn_is 0 test record run-pages "${store[@]}" --out pages.test.yaml
    for f in "$examples"/*.json "$examples"/*.yaml; do
        grep -q '^kind: Playbook' "$f" && continue
        n=$(basename "${f%.*}")
        status_is "run-$n" COMPLETED || fail "run $n"
        cairn_is 0 test record "run-$n" "${store[@]}" --out "$n.test.yaml"
        cairn_is 0 test record "run-$n" "${store[@]}" --redact --out "$n-redacted.test.yaml"
        hasnt "$n-redacted.test.yaml" published
        equal "$(sed -n 's/^  completed: //p' "$n.test.yaml" | sed 's/^\[//; s/\]$//' | tr ',' '\n' | tr -d ' ' | grep -v '[/"]' | sort | tr '\n' ' ')" \
            "$("$CAIRN" get "run-$n" "${store[@]}" -o json | jq -r '.steps[]|select(.status=="SUCCESS").stepId' | grep -v '\[' | sort | tr '\n' ' ')" "path of $n"
    done
    cairn_is 0 test; has out ' 0 failed'
    cairn_is 0 test record run-hello "${store[@]}"; has out 'document: '; has out 'status: COMPLETED'
}
test_record_keeps_pauses_retries_and_changed_documents() {
    cp "$examples/pause.json" p.json
    "$CAIRN" run p.json "${store[@]}" --run-id p-1 --progress none >/dev/null 2>&1 & pid=$!
    wait_for step_is p-1 one SUCCESS
    kill -INT $pid; wait $pid
    cairn_is 0 resume p-1 "${store[@]}"
    cairn_is 0 test record p-1 "${store[@]}" --out p.test.yaml; has p.test.yaml 'send: pause'; has p.test.yaml 'send: resume'
    cairn_is 0 test p.test.yaml
    sed -i 's/0.5/0.6/' p.json
    cairn_is 6 test record p-1 "${store[@]}"; has err '--out'
    cairn_is 0 test record p-1 "${store[@]}" --out q.test.yaml; has q.test.yaml 'q.document.json'; cairn_is 0 test q.test.yaml
    cairn_is 2 test record p-1 "${store[@]}" --out q.yaml; has err '.test.yaml'
    "$CAIRN" run "$examples/hold.json" "${store[@]}" --run-id h-1 --set gate="$PWD/gate" --exit-on-wait --progress none >/dev/null 2>&1
    cairn_is 0 test record h-1 "${store[@]}" --out h.test.yaml; has h.test.yaml 'status: RUNNING'; cairn_is 0 test h.test.yaml
    touch gate; cairn_is 0 retry h-1 --step load "${store[@]}"
    cairn_is 0 test record h-1 "${store[@]}" --out h.test.yaml; has h.test.yaml 'send: retry'; cairn_is 0 test h.test.yaml
}
# A playbook that ran is recorded task by task and attempt by attempt, played again, and crashed at every boundary.
test_record_play_and_crash_a_playbook() {
    cat >b.yaml <<'YAML'
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: b, path: b}
workflow:
  - {step: a, tool: {kind: shell, cmds: "echo 5"}, next: {arcs: [{step: each, when: "{{ a.stdout == '5' }}"}]}}
  - step: each
    loop: {in: [1, 2, 3], iterator: n, spec: {mode: parallel}}
    tool: {name: say, kind: shell, cmds: "echo {{ iter.n }}"}
    next: {arcs: [{step: flaky}]}
  - step: flaky
    tool: {name: try, kind: shell, cmds: "test -e flag || { touch flag; exit 3; }", spec: {policy: {rules: [{when: "{{ output.status == 'error' }}", then: {do: retry, attempts: 3, delay: 0.1}}]}}}
    next: {arcs: [{step: bad}]}
  - {step: bad, tool: {kind: shell, cmds: "exit 4"}, next: {arcs: [{step: end, when: "{{ event.name == 'step.failed' }}"}]}}
  - {step: end, tool: {kind: noop}}
YAML
    cairn_is 0 run b.yaml "${store[@]}" --run-id b-1 --progress none
    cairn_is 0 test record b-1 "${store[@]}" --out b.test.yaml
    has b.test.yaml '"each[2]/say": {outcome: '; has b.test.yaml '"flaky/try#2"'; has b.test.yaml 'failed: [bad]'
    rm -f flag; cairn_is 0 test b.test.yaml; [ ! -e flag ] || fail 'a mocked task ran'
    cairn_is 0 crashtest b.test.yaml
    has out 'nothing lost'; has out 'shell: echo 5'
    sed -i 's/"stdout":"5"/"stdout":"6"/' b.test.yaml
    cairn_is 20 test b.test.yaml; has out 'completed'
    sed -i 's/each\[2\]\/say/each[2]\/sy/' b.test.yaml
    cairn_is 3 test b.test.yaml; has err 'E0701'
}
test_no_test_is_a_hint() { cairn_is 5 test; has err 'test record'; }

# A pattern like flows/*.yaml names tests too: they are checked against their documents, and laid out by nobody.
test_tests_beside_documents_are_validated_too() {
    printf 'name: load\nnodes:\n  - id: load\n    bash: echo 7\n' >load.yaml
    printf 'document: load.yaml\nmocks: {load: {output: 7}}\nexpect: {status: COMPLETED}\n' >load.test.yaml
    cairn_is 0 validate *.yaml; empty err; has out 'load.test.yaml: test of load, 1 case'
    cairn_is 0 fmt --check *.yaml; has err 'load.test.yaml is a test and left as it is'
    sed -i s/load:/lode:/ load.test.yaml
    cairn_is 3 validate *.yaml; has_line err 'load.test.yaml:2:9: error\[E0701\]'; has err '1 error, 0 warnings'
    cairn_is 3 validate *.yaml -o json; empty err
    equal "$(jq -c 'map([.file, .line, .id])' out)" '[["load.test.yaml",2,"E0701"]]'
    printf 'name: load\nnodes: 7\n' >load.yaml
    cairn_is 3 validate load.test.yaml -o json; empty err; jq -e 'any(.[]; .file == "load.yaml")' out >/dev/null || fail "$(cat out)"
}

run_tests "$@"
