#!/usr/bin/env bash
# The log of playbooks through the binary: which events there are, in which order, and what they say.
. "$(dirname "$0")/lib.sh"

head_of() {
    printf 'apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: %s, path: tests/%s}\n' "$1" "$1"
}
run() { cairn_is "$1" run "$2" "${store[@]}" --run-id e --progress none; "$CAIRN" events e "${store[@]}" -o jsonl >log; }
types() { jq -r .event_type log; }
of() { jq -c "select(.event_type==\"$1\")" log; }
is() { equal "$(jq -rs "$1" log)" "$2" "$1"; }
# before A B: the first A stands before the first B
before() { [ "$(types | grep -nx "$1" | head -1 | cut -d: -f1)" -lt "$(types | grep -nx "$2" | head -1 | cut -d: -f1)" ] || fail "$1 is not before $2"; }

plain() {
    { head_of plain; cat <<'P'; } >p.yaml
workload: {n: 2}
workflow:
  - step: start
    tool:
      - name: one
        kind: noop
    next:
      arcs: [{step: each}]
  - step: each
    loop: {in: [1, 2], iterator: item}
    tool:
      - name: body
        kind: noop
    next:
      arcs: [{step: end}]
  - step: end
    tool:
      - name: last
        kind: noop
P
}
test_events_of_a_run_in_their_order_NX_3_1a_NX_3_1e_NX_3_1f_NX_3_2a_NX_3_2b_NX_3_3a_NX_3_3b_NX_3_3c_NX_5_1() {
    plain
    run 0 p.yaml
    equal "$(types | head -7 | tr '\n' ' ')" 'playbook.execution.requested playbook.request.evaluated playbook.started workflow.started policy.admit.evaluated step.scheduled step.started '
    equal "$(types | tail -4 | tr '\n' ' ')" 'next.evaluated workflow.finished playbook.finished playbook.processed '
    before step.scheduled step.started; before step.started step.done
    is '[.[]|select(.event_type|test("^step[.]"))|.source+" "+.event_type]|group_by(.)|map("\(.[0]) \(length)")|join(", ")' 'server step.scheduled 3, worker step.done 3, worker step.started 3'
    is '[.[]|select(.event_type|startswith("playbook."))|.source+" "+.event_type]|join(" ")' 'server playbook.execution.requested server playbook.request.evaluated server playbook.started server playbook.finished server playbook.processed'
    is '[.[]|.seq]|[.[0],.[-1]]|tojson' "[1,$(wc -l <log)]"
    is '[.[]|select(.source=="worker")|.event_type]|unique|map(select(test("^(playbook|workflow|next)[.]|scheduled$|admit")))|length' 0
    intact
}
test_one_final_outcome_of_each_task_run_NX_0e_NX_3_4a_NX_3_4b_NX_3_4c_NX_3_4e() {
    plain
    run 0 p.yaml
    is '[.[]|select(.event_type=="task.started")|.step_run_id+.task_run_id]|[length,(unique|length)]|tojson' '[4,4]'
    is '[.[]|select(.event_type|test("^task[.](done|failed)$"))|.event_type+.step_run_id+.task_run_id]|[length,(unique|length)]|tojson' '[4,4]'
    is '[.[]|select(.event_type=="task.done")]|length' 4
    is '[.[]|select(.event_type=="task.attempt.started")]|length' 4
    is '[.[]|select(.event_type=="task.attempt.done")]|length' 4
    is '[.[]|select(.event_type|startswith("task."))|.source]|unique|tojson' '["worker"]'
    before task.started task.attempt.started; before task.attempt.started task.attempt.done; before task.attempt.done task.done
}
test_items_of_a_loop_NX_3_5b_NX_3_5c_NX_3_5d_NX_3_5f_NX_2n() {
    plain
    run 0 p.yaml
    is '[.[]|select(.event_type|startswith("loop.iteration."))|"\(.event_type)\(.iteration)"]|join(" ")' 'loop.iteration.scheduled0 loop.iteration.started0 loop.iteration.done0 loop.iteration.scheduled1 loop.iteration.started1 loop.iteration.done1'
    is '.[]|select(.event_type=="loop.done")|.payload.counts|tojson' '{"completed":2,"failed":0,"skipped":0,"total":2}'
    is '[.[]|select(.event_type|test("(done|failed|finished)$"))|has("duration_ms")]|all' true
    equal "$(types | tail -20 | grep -n 'loop.done' | wc -l)" 1
}
test_routing_is_the_servers_over_arcs_NX_0f_NX_3_6a_NX_3_6c() {
    plain
    run 0 p.yaml
    is '[.[]|select(.event_type=="next.evaluated")|[.source,.entity_id,(.payload.selected|map(.step)|join(","))]|join(" ")]|join("; ")' 'server step:start each; server step:each end; server step:end '
    is '[.[]|select(.event_type=="policy.admit.evaluated")]|length' 3
    is '[.[]|select(.event_type=="step.scheduled")|.source]|unique|tojson' '["server"]'
}
test_a_task_that_is_tried_again_NX_0c_NX_3_4d_NX_3_6b_NX_3_4n1_NX_2p() {
    { head_of again; cat <<'P'; } >p.yaml
workflow:
  - step: start
    tool:
      - name: flaky
        kind: shell
        cmds: 'echo x >> tries; [ "$(wc -l < tries)" -ge 2 ]'
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' }}"
                then: {do: retry, attempts: 3, delay: 0.01}
              - else: {then: {do: continue}}
P
    run 0 p.yaml
    is '[.[]|select(.event_type|startswith("task.attempt"))|"\(.event_type):\(.attempt)"]|join(" ")' 'task.attempt.started:1 task.attempt.failed:1 task.attempt.started:2 task.attempt.done:2'
    is '[.[]|select(.task_run_id)|.task_run_id]|unique|tojson' '["task:flaky:step:start:run:1:run:1"]'
    is '[.[]|select(.event_type=="policy.task.evaluated")|.payload.action.do]|join(" ")' 'retry continue'
    is '.[]|select(.event_type=="task.attempt.failed")|[.status,.payload.outcome.status,(.payload.error|has("code"))]|tojson' '["error","error",true]'
    equal "$(types | grep -c retry)" 0
}
test_a_step_that_fails_NX_3_3d_NX_3_4f_NX_2r() {
    { head_of fails; cat <<'P'; } >p.yaml
workflow:
  - step: start
    tool:
      - name: bad
        kind: shell
        cmds: exit 3
P
    run 10 p.yaml
    is '[.[]|select(.status=="error")|.event_type]|join(" ")' 'task.attempt.failed task.failed step.failed workflow.finished playbook.finished'
    is '[.[]|select(.status=="error" and .source=="worker")|.event_type]|join(" ")' 'task.attempt.failed task.failed step.failed'
    is '[.[]|select(.event_type|test("^(task|step)[.]done$"))]|length' 0
    is '.[-1].event_type' playbook.processed
    is '.[-2].payload|[(.error|has("code")),.meta.failed_step]|tojson' '[true,"start"]'
}
test_inputs_are_recorded_as_rendered_unless_they_are_large_NX_2o() {
    { head_of inputs; cat <<'P'; } >p.yaml
workload: {n: 2}
workflow:
  - step: start
    tool:
      - name: small
        kind: python
        args: {n: "{{ workload.n }}", greeting: "hi {{ workload.n }}"}
        code: |
          result = {"text": "x" * 200000}
      - name: large
        kind: python
        args: {n: 7, text: "{{ small.text }}"}
        code: |
          result = {"n": n, "len": len(text)}
P
    run 0 p.yaml
    is '.[]|select(.event_type=="task.started" and .entity_id=="small")|.payload.inputs|tojson' '{"greeting":"hi 2","n":2}'
    is '.[]|select(.event_type=="task.started" and .entity_id=="large")|.payload|[has("inputs"),.meta.truncated]|tojson' '[false,true]'
    is '.[]|select(.event_type=="task.done" and .entity_id=="large")|.payload.outcome.result|tojson' '{"len":200000,"n":7}'
    [ "$(wc -L <log)" -lt 70000 ] || fail 'an event is large'
}
test_a_loop_of_large_results_lists_them_NX_3_7b() {
    { head_of pages; cat <<'P'; } >p.yaml
workflow:
  - step: start
    loop: {in: [0, 1, 2], iterator: item}
    tool:
      - name: page
        kind: python
        args: {item: "{{ item }}"}
        code: |
          result = {"text": "x" * (200000 if item != 1 else 1), "item": item}
P
    run 0 p.yaml
    is '[.[]|select(.event_type=="result.manifest.updated")]|length' 1
    is '.[]|select(.event_type=="result.manifest.updated")|[.entity_type,.parent_id,.payload.manifest.kind,.payload.manifest.total_parts]|tojson' '["result","step:start:run:1","manifest",2]'
    is '.[]|select(.event_type=="result.manifest.updated")|.payload.manifest|[.parts[]|.index,.bytes>200000]|tojson' '[0,true,2,true]'
    before result.manifest.updated loop.done
}
test_a_large_result_is_a_reference_NX_2p_NX_2u_NX_3_7n1() {
    { head_of large; cat <<'P'; } >p.yaml
workflow:
  - step: start
    tool:
      - name: big
        kind: python
        code: |
          result = {"text": "x" * 200000, "page": 1}
      - name: small
        kind: python
        code: |
          result = {"page": 2}
P
    run 0 p.yaml
    is '[.[]|select(.event_type=="result.stored")]|length' 1
    is '.[]|select(.event_type=="task.done" and .entity_id=="small")|.payload|has("result_ref"),.outcome.result.page' $'false\n2'
    is '.[]|select(.event_type=="task.done" and .entity_id=="big")|.payload|[.result_ref.kind,(.result_ref.meta.bytes>200000),(.outcome|has("result"))]|tojson' '["result_ref",true,false]'
    [ "$(wc -L <log)" -lt 70000 ] || fail 'an event is large'
    intact
}
test_a_paused_run_goes_on_NX_3_1d() {
    { head_of slow; cat <<'P'; } >p.yaml
workflow:
  - step: start
    tool:
      - name: slow
        kind: shell
        cmds: 'while [ ! -e go ]; do sleep 0.05; done'
    next:
      arcs: [{step: end}]
  - step: end
    tool:
      - name: last
        kind: noop
P
    "$CAIRN" run p.yaml "${store[@]}" --run-id e --progress none >/dev/null 2>&1 & local pid=$!
    wait_for step_is e start RUNNING
    cairn_is 0 pause e "${store[@]}"
    wait_for status_is e PAUSED
    touch go
    wait_for eval '[ "$(count_of e task.attempt.done)" = 1 ]'
    cairn_is 0 resume e "${store[@]}"
    wait $pid || fail "the run ended with $?"
    "$CAIRN" events e "${store[@]}" -o jsonl >log
    is '[.[]|select(.event_type=="playbook.paused")|[.source,.status]]|tojson' '[["server","paused"]]'
    is '[.[]|select(.event_type=="playbook.request.evaluated")|.payload.meta.resume//false]|tojson' '[false,true]'
    is '[.[]|select(.event_type=="playbook.started")]|length' 1
}
test_a_job_elsewhere_is_submitted_and_polled_NX_8() {
    { head_of job; cat <<'P'; } >p.yaml
workflow:
  - step: start
    tool:
      - name: submit
        kind: shell
        cmds: 'echo job-17'
      - name: poll
        kind: shell
        cmds: 'echo x >> polls; [ "$(wc -l < polls)" -ge 3 ] && echo finished || { echo pending; exit 4; }'
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' }}"
                then: {do: retry, attempts: 5, delay: 0.01}
P
    run 0 p.yaml
    is '[.[]|select(.event_type=="task.done")|.entity_id]|join(" ")' 'submit poll'
    is '[.[]|select(.event_type=="task.attempt.failed")|.attempt]|tojson' '[1,2]'
    is '.[]|select(.event_type=="task.done" and .entity_id=="submit")|.payload|tojson|test("job-17")' true
}
test_other_words_for_a_playbook_and_for_a_plan_C_65_C_31() {
    plain
    run 0 p.yaml
    equal "$("$CAIRN" events e "${store[@]}" --as run -o jsonl | jq -r .eventType | tr '\n' ' ')" 'RunStarted StepStarted StepCompleted StepStarted StepCompleted StepStarted StepCompleted RunCompleted '
    "$CAIRN" events e "${store[@]}" --as run -o jsonl | head -1 >first
    equal "$(jq -r '.payload|[.documentKind,(.planRef.sha256|length)]|tojson' first)" '["playbook",64]'
    cairn_is 0 run "$root/examples/hello.json" "${store[@]}" --run-id p --progress none
    equal "$("$CAIRN" events p "${store[@]}" --as noetl -o jsonl | jq -r .event_type | head -2 | tr '\n' ' ')" 'playbook.started step.started '
    cairn_is 0 get e "${store[@]}"; has out '2 of 2 items'
    cairn_is 0 why e/each "${store[@]}"; hasnt out differently
    equal "$("$CAIRN" get e "${store[@]}" -o json | jq -r '.steps[]|select(.stepId=="each")|.tasks[0]|[.label,.runs,.done]|tojson')" '["body",2,2]'
}
run_tests "$@"
