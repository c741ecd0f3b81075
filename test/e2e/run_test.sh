#!/usr/bin/env bash
# cairn run: exit codes by end, inputs, ids that go on, progress in its four forms, live terminals.
. "$(dirname "$0")/lib.sh"

plan() { printf '{"planId":"%s","planVersion":"1","schemaVersion":"v1.2","steps":[%s]}' "$1" "$2" >"$1.json"; }

test_exit_code_follows_the_end() {
    plan ok '{"stepId":"a","kind":"noop"}'
    plan bad '{"stepId":"a","kind":"shell","with":{"command":"exit 7"}}'
    printf 'name: stop\nnodes:\n  - {id: a, cancel: "nothing to do"}\n' >stop.yaml
    plan gate '{"stepId":"g","kind":"approval","with":{"message":"go?"}}'
    cairn_is 0 run ok.json "${store[@]}"
    cairn_is 10 run bad.json "${store[@]}"; has err 'exit 7'; has err 'FAILED'
    cairn_is 11 run stop.yaml "${store[@]}"; has err 'nothing to do'
    cairn_is 13 run gate.json "${store[@]}" --exit-on-wait; has err 'WAITING_APPROVAL'
    intact
}
test_a_run_in_which_all_was_skipped_says_so_everywhere() {
    printf 'name: kid\ninputs: {go: 0}\nnodes:\n  - {id: a, noop: true, when: "$INPUTS.go == 1"}\n' >kid.yaml
    printf 'name: dad\nnodes:\n  - {id: c, workflow: kid.yaml}\n  - {id: f, workflow: kid.yaml, fan_out: {items: [1]}}\n' >dad.yaml
    cairn_is 10 run kid.yaml "${store[@]}" --run-id kid-1; has_line err '^failed  *NO_STEP_COMPLETED: every step was skipped'
    cairn_is 0 get kid-1 "${store[@]}" -o json; equal "$(jq -r .message out)" 'failed: NO_STEP_COMPLETED every step was skipped'
    cairn_is 0 ls "${store[@]}" -o json; equal "$(jq -r '.[0].cause' out)" 'failed: NO_STEP_COMPLETED every step was skipped'
    cairn_is 10 run dad.yaml "${store[@]}" --progress none -o json
    equal "$(jq -r '.steps[0].error.message' out | sed 's/[^ ]*[.]c[.]1 //')" 'child run failed: every step was skipped'
    equal "$(jq -r '.steps[1].result[0].error' out)" 'the child run failed: every step was skipped'
    intact
}
test_a_skip_tells_the_value_of_its_condition_cut_between_characters() {
    printf 'name: v\nnodes:\n  - {id: a, bash: "printf x%%.0s {1..79}; echo éé"}\n  - {id: b, depends_on: [a], when: "$a.output == 1", noop: true}\n' >v.yaml
    cairn_is 0 run v.yaml "${store[@]}" --run-id v-1 --progress none
    equal "$("$CAIRN" events v-1 "${store[@]}" -o jsonl | jq -r 'select(.event_type == "node_skipped").payload | .expr + "; " + .detail')" \
        "\$a.output == 1; \$a.output = '$(printf 'x%.0s' {1..79})'"
    intact
}
test_stdout_is_only_data() {
    plan ok '{"stepId":"a","kind":"echo","with":{"message":"hi"}}'
    for p in plain tree none; do cairn_is 0 run ok.json "${store[@]}" --progress $p; empty out; done
    cairn_is 0 run ok.json "${store[@]}" -o json; equal "$(jq -r .status out)" COMPLETED; has err COMPLETED
    cairn_is 0 run ok.json "${store[@]}" -o name --progress none; empty err; equal "$("$CAIRN" get "$(cat out)" "${store[@]}" -o name)" "$(cat out)"
    cairn_is 0 run ok.json "${store[@]}" --progress json
    jq -se 'length == 5 and all(.[]; .specversion == "1.0" and (.id|length) > 0 and (.type|startswith("dev.cairn.")) and .data != null) and .[-1].type == "dev.cairn.run.completed.v1"' out >/dev/null || fail "not CloudEvents: $(head -c 300 out)"
    equal "$(jq -r .sequence out | sort -c && echo sorted)" sorted 'sequence'
    cairn_is 0 run ok.json "${store[@]}" --progress json -o json; equal "$(wc -l <out)" 6 'one object a line'; tail -n 1 out | jq -e '.status == "COMPLETED"' >/dev/null || fail "no snapshot"
}
test_snapshot_holds_results() {
    plan r '{"stepId":"a","kind":"echo","with":{"message":{"n":1}},"dependsOn":[]},{"stepId":"b","kind":"shell","with":{"command":"echo $a.output.n; echo no >&2"},"dependsOn":["a"]}'
    cairn_is 0 run r.json "${store[@]}" --progress none -o json
    equal "$(jq -c '[.steps[] | [.stepId, .status, .result]]' out)" '[["a","SUCCESS",{"n":1}],["b","SUCCESS","1"]]'
}
test_inputs_from_flags_and_files() {
    printf '{"planId":"i","planVersion":"1","inputs":{"a":1,"b":"two","c":[3],"d":null},"steps":[{"stepId":"x","kind":"echo","with":{"message":["$INPUTS.a","$INPUTS.b","$INPUTS.c","$INPUTS.d"]}}]}' >i.json
    result() { jq -c '.steps[0].result' out; }
    cairn_is 0 run i.json "${store[@]}" --progress none -o json; equal "$(result)" '[1,"two",[3],null]'
    cairn_is 0 run i.json "${store[@]}" --progress none -o json --set a=5 --set b=word --set 'c={"k":[1,2]}' --set d=true; equal "$(result)" '[5,"word",{"k":[1,2]},true]'
    cairn_is 0 run i.json "${store[@]}" --progress none -o json --set b='"5"' --set 'd=a=b c'; equal "$(result)" '[1,"5",[3],"a=b c"]'
    echo '{"a": 9, "b": "file"}' >in.json
    cairn_is 0 run i.json "${store[@]}" --progress none -o json --input in.json --set b=flag; equal "$(result)" '[9,"flag",[3],null]'
    cairn_is 2 run i.json "${store[@]}" --set nothing; has err '--set takes NAME=VALUE'
    echo '[1]' >in.json; cairn_is 2 run i.json "${store[@]}" --input in.json; has err 'inputs are an object'
    echo '{"a":' >in.json; cairn_is 2 run i.json "${store[@]}" --input in.json; has_line err 'in.json:[0-9]+:[0-9]+'
    cairn_is 5 run i.json "${store[@]}" --input none.json
}
test_arguments() {
    printf 'name: w\nnodes:\n  - {id: a, bash: "echo \\"[$ARGUMENTS]\\""}\n' >w.yaml
    cairn_is 0 run w.yaml "${store[@]}" --progress none -o json --arguments 'minor --dry-run'; equal "$(jq -r '.steps[0].result' out)" '[minor --dry-run]'
    cairn_is 0 run w.yaml "${store[@]}" --progress none -o json -- minor --dry-run 'x $(id)'; equal "$(jq -r '.steps[0].result' out)" '[minor --dry-run x $(id)]'
}
test_run_id_runs_once() {
    plan once '{"stepId":"a","kind":"shell","with":{"command":"echo x >> ran"}}'
    cairn_is 0 run once.json "${store[@]}" --run-id job-1 --progress plain
    cairn_is 0 run once.json "${store[@]}" --run-id job-1 --progress plain; has err 'already ended'; has err COMPLETED
    equal "$(wc -l <ran)" 1 'times run'
    plan once '{"stepId":"a","kind":"shell","with":{"command":"echo y >> ran"}}'
    cairn_is 6 run once.json "${store[@]}" --run-id job-1; has err 'another document'; has err 'hint:'
    equal "$(wc -l <ran)" 1 'times run'
    for id in ../x 'a b' '' .x "$(printf 'x%.0s' $(seq 129))"; do cairn_is 2 run once.json "${store[@]}" --run-id "$id"; has err 'cannot be used as an id'; done
    cairn_is 0 run once.json "${store[@]}" --run-id job-1 --tenant other --progress none
    equal "$(wc -l <ran)" 2 'times run'
}
test_failed_run_keeps_its_exit_code_when_asked_again() {
    plan f '{"stepId":"a","kind":"shell","with":{"command":"echo x >> ran; exit 1"}}'
    cairn_is 10 run f.json "${store[@]}" --run-id f-1
    cairn_is 10 run f.json "${store[@]}" --run-id f-1; has err 'already ended'
    equal "$(wc -l <ran)" 1 'times run'
}
test_running_run_is_not_taken_twice() {
    held_plan a
    "$CAIRN" run slow.json "${store[@]}" --run-id s-1 --progress none & pid=$!
    wait_for step_is s-1 a RUNNING
    cairn_is 6 run slow.json "${store[@]}" --run-id s-1; has err "process $pid"
    cairn_is 0 recover "${store[@]}"; has err '1 owned by'
    touch go; wait $pid || fail "exit $?"
    equal "$(times_ran a) $(times_ran b) $(times_ran c)" '1 1 1'
    intact
}
test_retry_with_backoff() {
    plan r '{"stepId":"a","kind":"shell","with":{"command":"echo x >> tries; test $(wc -l < tries) -ge 3"},"retry":{"maxAttempts":5,"delay":"50ms","backoff":"exponential"}}'
    cairn_is 0 run r.json "${store[@]}" --run-id r-1
    equal "$(wc -l <tries)" 3 tries
    equal "$(count_of r-1 StepFailed) $(count_of r-1 StepDelayed) $(count_of r-1 StepStarted) $(count_of r-1 StepCompleted)" '2 2 3 1'
    has_line err 'step=a status=FAILED attempt=1 exit=1'
    has_line err 'step=a status=DELAYED attempt=2 again_in=50ms'
    has_line err 'step=a status=DELAYED attempt=3 again_in=100ms'
}
test_retry_gives_up() {
    plan r '{"stepId":"a","kind":"shell","with":{"command":"echo why not >&2; exit 4"},"retry":{"maxAttempts":2,"delay":"1ms"}},{"stepId":"b","kind":"noop"}'
    cairn_is 10 run r.json "${store[@]}" --run-id r-1
    has err 'failed at a: EXIT_NONZERO exit 4'; has err 'why not'; has err 'retry r-1'
    equal "$(count_of r-1 StepStarted)" 2; step_is r-1 b SKIPPED || fail "b was not skipped"
}
test_retries_are_counted_for_people_ES_1_3g() {
    plan r '{"stepId":"a","kind":"shell","with":{"command":"test $CAIRN_ATTEMPT -ge 3"},"retry":{"maxAttempts":3,"delay":"1ms"}},{"stepId":"b","kind":"noop"}'
    cairn_is 0 run r.json "${store[@]}" --run-id r-1
    cairn_is 0 get r-1 "${store[@]}"; has_line out 'a .*Retry #2'
    ! grep -qE ' b .*Retry' out || fail "b was tried once: $(cat out)"
}
test_timeout_fails_a_step() {
    plan t '{"stepId":"a","kind":"shell","with":{"command":"sleep 30"},"timeout":"200ms"}'
    cairn_is 10 run t.json "${store[@]}"; has err TIMEOUT
}
test_approvals_beforehand() {
    plan g '{"stepId":"g1","kind":"approval","dependsOn":[]},{"stepId":"g2","kind":"approval","dependsOn":["g1"]},{"stepId":"z","kind":"noop","dependsOn":["g2"]}'
    cairn_is 0 run g.json "${store[@]}" --approve g1 --approve g2
    cairn_is 0 run g.json "${store[@]}" --approve-all
    cairn_is 13 run g.json "${store[@]}" --approve g1 --exit-on-wait --run-id g-1; has err 'approve g-1/g2'
    printf '{"planId":"p","planVersion":"1","metadata":{"requiresApproval":true},"steps":[{"stepId":"a","kind":"noop"}]}' >p.json
    cairn_is 13 run p.json "${store[@]}" --exit-on-wait --run-id p-1; status_is p-1 PENDING || fail "not PENDING"
    cairn_is 0 run p.json "${store[@]}" --approve-all
    cairn_is 0 approve p-1 "${store[@]}"; status_is p-1 COMPLETED || fail "not COMPLETED"
}
test_approval_timeouts() {
    for answer in approve:0 reject:10 fail:10; do
        plan g "{\"stepId\":\"g\",\"kind\":\"approval\",\"with\":{\"timeout\":\"150ms\",\"onTimeout\":\"${answer%:*}\"}}"
        cairn_is "${answer#*:}" run g.json "${store[@]}"
    done
}
test_plain_lines_are_one_per_event() {
    plan ok '{"stepId":"a b","kind":"noop"}'; cairn_is 3 validate ok.json
    plan ok '{"stepId":"a","kind":"noop"}'
    cairn_is 0 run ok.json "${store[@]}" --run-id x-1 --progress plain
    equal "$(grep -cE '^20[0-9-]+T[0-9:.]+Z x-1 ' err)" "$("$CAIRN" events x-1 "${store[@]}" -o jsonl | wc -l)" lines
    has_line err ' x-1 step=a status=SUCCESS attempt=1 took='
    hasnt err $'\x1b'
    plan v '{"stepId":"a","kind":"shell","with":{"command":"echo to-out; echo to-err >&2"}}'
    cairn_is 0 run v.json "${store[@]}" --progress plain -v; has err 'stream=stdout | to-out'; has err 'stream=stderr | to-err'
    cairn_is 0 run v.json "${store[@]}" --progress plain; hasnt err to-out
}
test_tree_on_a_terminal() {
    plan t '{"stepId":"one","kind":"shell","with":{"command":"echo hello-line; until [ -e '"$PWD"'/go ]; do sleep 0.02; done"},"dependsOn":[]},{"stepId":"two","kind":"noop","dependsOn":["one"]},{"stepId":"three","kind":"noop","dependsOn":["one"],"when":"$one.output == '"'x'"'"}'
    python3 "$e2e/terminal.py" --touch-when '│ hello-line' go -- "$CAIRN" run t.json "${store[@]}" >tty || fail "exit $?"
    has tty '● running'; has tty '◌ waiting'; has tty 'needs one'; has tty '│ hello-line'; has tty '✓ done'; has tty '⊘ skipped'
    has tty $'\x1b['; has tty '[##########]  2/3 done'
    for quiet in CI=1 CAIRN_NO_ANIMATION=1 TERM=dumb; do
        env $quiet python3 "$e2e/terminal.py" -- "$CAIRN" run t.json "${store[@]}" >tty || fail "exit $?"
        has tty 'step=one status=SUCCESS'; hasnt tty '[##########]'
    done
}
test_tree_taller_than_the_screen() {
    steps='{"stepId":"s0","kind":"noop","dependsOn":[]}'
    for i in $(seq 60); do steps="$steps,{\"stepId\":\"s$i\",\"kind\":\"noop\",\"dependsOn\":[\"s$((i - 1))\"]}"; done
    plan tall "$steps,{\"stepId\":\"boom\",\"kind\":\"shell\",\"with\":{\"command\":\"until [ -e $PWD/go ]; do sleep 0.02; done; exit 3\"},\"dependsOn\":[\"s60\"]}"
    rc=0; python3 "$e2e/terminal.py" --size 12x70 --touch-when '● running' go -- "$CAIRN" run tall.json "${store[@]}" >tty || rc=$?
    equal $rc 10 exit
    python3 - <<'PY' || fail "the tree does not fit"
import re
data = open("tty", "rb").read().decode()
# No cursor jump is higher than the screen, no line of the tree is wider than it.
jumps = [int(n) for n in re.findall(r"\x1b\[(\d+)A", data)]
assert jumps and max(jumps) < 12, jumps
tree = data[:data.rindex("\x1b[J")]
widths = [len(re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line).rstrip("\r")) for line in tree.replace("\r\n", "\n").split("\n")]
assert max(widths) <= 70, max(widths)
assert "boom" in tree.split("\x1b[J")[-1]
PY
}
test_tree_survives_a_resize() {
    plan r '{"stepId":"a-long-name-for-a-step","kind":"shell","with":{"command":"for i in 1 2 3 4 5 6; do echo a-rather-long-line-of-output-that-fills-the-terminal-$i; sleep 0.15; done"}}'
    python3 "$e2e/terminal.py" --size 20x100 --resize-when terminal-2 10x40 --resize-when terminal-4 30x120 -- "$CAIRN" run r.json "${store[@]}" >tty || fail "exit $?"
    has tty 'COMPLETED'
}
test_signals_of_a_step_stay_its_own() {
    # A step in its own session: what it does to its group does not reach the engine.
    plan k '{"stepId":"a","kind":"shell","with":{"command":"kill -TERM 0"}}'
    cairn_is 10 run k.json "${store[@]}"; has err 'KILLED_BY_SIGNAL'
}
test_large_outputs_reach_the_shell_whole() {
    cat >n.yaml <<'NODES'
name: n
nodes:
  - {id: a, bash: "head -c 700000 /dev/zero | tr '\\0' x; echo é"}
  - {id: b, depends_on: [a], bash: "v=$a.output; echo ${#v} $(printf %s $a.output | wc -c); env | wc -c"}
  - {id: c, depends_on: [a], runtime: sh, script: "v=$a.output; echo ${#v}; date >/dev/null"}
NODES
    cairn_is 0 run n.yaml "${store[@]}" --run-id n-1
    "$CAIRN" get n-1/b "${store[@]}" -o json | jq -r .result >b
    equal "$(sed -n '1s/.* //p' b)" 700002
    [ "$(sed -n 2p b)" -lt 10000 ] || fail "programs that the script starts get it too"
}
test_subrun_has_a_log_of_its_own() {
    printf 'name: child\ninputs: {n: 1}\nnodes:\n  - {id: x, bash: "echo $((2 * $INPUTS.n))"}\n' >child.yaml
    printf 'name: parent\nnodes:\n  - {id: s, workflow: child, with: {n: 21}}\n  - {id: z, bash: "echo $s.output", depends_on: [s]}\n' >parent.yaml
    cairn_is 0 run parent.yaml "${store[@]}" --run-id par-1
    status_is par-1.s.1 COMPLETED || fail "no child run"
    cairn_is 0 ls "${store[@]}" -o json; equal "$(jq -r '.[]|select(.runId=="par-1.s.1").parentRunId' out)" par-1
    cairn_is 0 get @last "${store[@]}" -o name; equal "$(cat out)" par-1 '@last is a root'
    intact
}
test_waiting_inside_a_child_run() {
    printf 'name: child\nnodes:\n  - {id: g, approval: "go?"}\n' >child.yaml
    printf 'name: parent\nnodes:\n  - {id: s, workflow: child}\n  - {id: z, noop: true, depends_on: [s]}\n' >parent.yaml
    cairn_is 13 run parent.yaml "${store[@]}" --run-id par-1 --exit-on-wait; has err 'get par-1.s.1'
    cairn_is 0 approve par-1.s.1 "${store[@]}"
    cairn_is 0 recover "${store[@]}"; status_is par-1 COMPLETED || fail "not COMPLETED"
    cairn_is 0 run parent.yaml "${store[@]}" --run-id par-2 --approve g
    intact
}
test_inputs_from_stdin() {
    printf '{"planId":"i","planVersion":"1","inputs":{"a":1},"steps":[{"stepId":"x","kind":"echo","with":{"message":"$INPUTS.a"}}]}' >i.json
    rc=0; echo '{"a": [2]}' | "$CAIRN" run i.json "${store[@]}" --progress none -o json --input - >out || rc=$?
    equal $rc 0; equal "$(jq -c '.steps[0].result' out)" '[2]'
}
test_memory_store() {
    plan ok '{"stepId":"a","kind":"noop"}'
    cairn_is 0 run ok.json --store memory: -o json; equal "$(jq -r .status out)" COMPLETED
}
test_foreign_directory() {
    mkdir -p proj/flows proj/scripts proj/.git elsewhere
    echo 'print("from scripts")' >proj/scripts/say.py
    printf 'name: child\nnodes:\n  - {id: x, bash: pwd}\n' >proj/flows/child.yaml
    printf 'name: w\nnodes:\n  - {id: a, script: say, runtime: python3}\n  - {id: b, workflow: child}\n  - {id: c, bash: pwd}\n' >proj/flows/w.yaml
    cd elsewhere
    cairn_is 0 run ../proj/flows/w.yaml --store sqlite:../proj/store.db --run-id w-1 --progress none -o json
    equal "$(jq -r '.steps[0].result' out)" 'from scripts'; equal "$(jq -r '.steps[2].result' out)" "$PWD"
    cd /
    equal "$("$CAIRN" get w-1 --store "sqlite:$OLDPWD/../proj/store.db" -o json | jq -r .status)" COMPLETED
}
test_missing_script_lists_places() {
    printf 'name: w\nnodes:\n  - {id: a, script: nosuch, runtime: node}\n' >w.yaml
    cairn_is 3 run w.yaml "${store[@]}"; has_line err '^w.yaml:3:[0-9]+: error\[E0218\].*nosuch'
}
test_undeclared_input_is_a_warning() {
    cat >i.yaml <<'DOC'
name: i
inputs: { env: staging, day: { type: string, required: true } }
nodes:
  - { id: a, echo: $INPUTS.env }
DOC
    cairn_is 0 run i.yaml "${store[@]}" --set day=mon --set evn=prod; has err 'warning: input "evn" is not declared'
    cairn_is 0 run i.yaml "${store[@]}" --set day=mon --set env=prod; hasnt err warning
}
test_cut_output_can_be_referred_to() {
    cat >cut.yaml <<'DOC'
name: cut
nodes:
  - { id: big, bash: "head -c 1048575 /dev/zero | tr '\\0' x; echo ééé", output: { on_overflow: truncate } }
  - { id: same, depends_on: [big], echo: $big.output }
DOC
    cairn_is 0 run cut.yaml "${store[@]}" --run-id c-1
    step_is c-1 same SUCCESS || fail "the cut output could not be referred to"
}
test_plain_progress_tells_whom_it_waits_for() {
    echo '{"planId":"h","planVersion":"1","onStepFailure":"hold","steps":[{"stepId":"a","kind":"shell","with":{"command":"exit 1"}}]}' >h.json
    cairn_is 13 run h.json "${store[@]}" --run-id h-1 --exit-on-wait; has_line err 'step=a status=FAILED .* next="[^"]*cairn retry h-1/a '
    printf 'name: p\nnodes:\n  - { id: ok, approval: Sure? }\n' >p.yaml
    cairn_is 13 run p.yaml "${store[@]}" --run-id p-1 --exit-on-wait; has_line err 'step=ok .* next="[^"]*cairn approve p-1/ok '
    cairn_is 0 run p.yaml "${store[@]}" --run-id p-2 --approve-all; hasnt err 'next='
}
test_completed_run_has_no_cause() {
    echo '{"planId":"h","planVersion":"1","onStepFailure":"hold","steps":[{"stepId":"a","kind":"shell","with":{"command":"exit 1"}}]}' >h.json
    cairn_is 13 run h.json "${store[@]}" --run-id h-1 --exit-on-wait
    cairn_is 0 ls "${store[@]}" -o json; has out 'failed at a'
    cairn_is 0 skip h-1/a "${store[@]}"
    cairn_is 0 ls "${store[@]}" -o json; equal "$(jq -r '.[0].cause' out)" null cause
}

# Half of the steps hang on a gate that waits for a file.
many_steps() {
    python3 - "$1" >many.json <<'SCRIPT'
import json, sys
count = int(sys.argv[1])
steps = [{"stepId": f"s{i}", "kind": "noop", "dependsOn": [f"s{i - 100}"] if i >= 100 else []} for i in range(count)]
steps[count // 2] |= {"kind": "shell", "with": {"command": "until [ -e go ]; do sleep 0.02; done"}}
for i in range(count // 2 + 1, count // 2 + 100): steps[i]["dependsOn"] = [f"s{count // 2}"]
print(json.dumps({"planId": "many", "planVersion": "1", "steps": steps}))
SCRIPT
}
test_max_steps_is_a_setting_and_50000_steps_run_and_recover() {
    many_steps 50000
    cairn_is 3 validate many.json; has err 'too many values (limit 100000)'; has err '--max-steps N allows more'
    cairn_is 2 validate many.json --max-steps 100001; has err 'from 1 to 100000'
    cairn_is 2 run many.json "${store[@]}" --max-steps many
    cairn_is 0 validate many.json --max-steps 50000
    cairn_is 3 validate many.json --max-steps 49999; has err 'the plan has 50000 steps; 49999 are allowed'; has err '--max-steps N allows more'
    CAIRN_MAX_STEPS=50000 cairn_is 0 validate many.json
    echo 'max-steps = 50000' >cairn.toml; cairn_is 0 validate many.json
    rm cairn.toml; cairn_is 0 config set max-steps 50000 --local; cairn_is 0 validate many.json; rm cairn.toml
    "$CAIRN" run many.json "${store[@]}" --run-id m-1 --max-steps 50000 --progress none 2>run.err &
    pid=$!
    half_done() { [ "$("$CAIRN" get m-1 "${store[@]}" -o json | jq '[.steps[] | select(.status == "SUCCESS")] | length')" = 25000 ]; }
    wait_for half_done
    kill -9 $pid; wait $pid 2>/dev/null; touch go
    # What was accepted goes on wherever it is taken up.
    cairn_is 0 recover "${store[@]}" --progress none
    cairn_is 0 get m-1 "${store[@]}" -o json; equal "$(jq -r '.status, (.steps | length)' out | tr '\n' ' ')" 'COMPLETED 50000 '
    equal "$(count_of m-1 StepCompleted)" 50000 'steps that completed'
    intact
}

run_tests "$@"
