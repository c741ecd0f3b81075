#!/usr/bin/env bash
# Every document of examples/ is run, with the result it promises; so are the demo and, when it is there, the corpus.
. "$(dirname "$0")/lib.sh"

examples=$root/examples
corpus=${CAIRN_CORPUS:-$root/../shared/corpus}
run() { local want=$1; shift; cairn_is "$want" run "$@" "${store[@]}" --progress none -o json; }
result() { jq -rc ".steps[]|select(.stepId==\"$1\").result" out; }
status() { jq -rc ".steps[]|select(.stepId==\"$1\").status" out; }

test_every_example_has_a_test() {
    for f in "$examples"/*.json "$examples"/*.yaml; do
        grep -q "$(basename "$f")" "$script" || fail "nobody runs $(basename "$f")"
        cairn_is 0 validate --strict "$f"
    done
}
test_hello() { run 0 "$examples/hello.json" --set who=you; equal "$(result greet)" 'Hello, you!'; equal "$(result shout)" 'HELLO, YOU!'; }
test_diamond() {
    run 0 "$examples/diamond.json"
    equal "$(jq -c '.steps[]|select(.stepId=="left").attempts|length' out)" 2 'attempts of left'
    equal "$(result bottom)" '{"left":"42","right":"forty-two"}'
}
# playbook.yaml, pages.yaml, sweep.yaml
test_playbooks() {
    run 0 "$examples/playbook.yaml" --set who=you; equal "$(result shout | jq -r .stdout)" 'HELLO, YOU!'
    run 0 "$examples/pages.yaml"; equal "$(result report | jq -c .count)" 5
    run 0 "$examples/sweep.yaml"; equal "$(result summary | jq -c .sum)" 55
}
test_fan_out() { run 0 "$examples/fan-out.yaml"; equal "$(result sum)" 4000; run 0 "$examples/fan-out.yaml" --set lines=40; equal "$(result sum)" 40; }
test_approval() {
    run 0 "$examples/approval.yaml" --approve deploy; equal "$(result release)" 'released v1.4.2'
    run 13 "$examples/approval.yaml" --exit-on-wait
    run 0 "$examples/approval.yaml"; equal "$(result deploy | jq -c .approved)" true
}
test_joins() {
    run 0 "$examples/joins.yaml"; equal "$(status not-taken)" SKIPPED; equal "$(result join)" 'joined after loading 7 rows'; equal "$(result report)" 'done after 3 rounds'
    run 0 "$examples/joins.yaml" --set env=production; equal "$(status not-taken)" SUCCESS
}
test_parent_and_child() {
    run 0 "$examples/parent.yaml" --run-id p-1; equal "$(status total)" SUCCESS
    equal "$("$CAIRN" get p-1.south.1 "${store[@]}" -o json | jq -r '.steps[]|select(.stepId=="result").result')" 'south: 50'
    run 0 "$examples/child.yaml" --set region=east; equal "$(result result)" 'east: 10'
}
test_pause() {
    "$CAIRN" run "$examples/pause.json" "${store[@]}" --run-id p-1 --progress none & pid=$!
    wait_for step_is p-1 one SUCCESS
    kill -INT $pid; rc=0; wait $pid || rc=$?; equal $rc 130 exit
    cairn_is 0 resume @last "${store[@]}"; status_is p-1 COMPLETED || fail "not COMPLETED"
}
test_hold() {
    run 13 "$examples/hold.json" --set gate="$PWD/gate" --exit-on-wait --run-id h-1
    touch gate
    cairn_is 0 retry @last --step load "${store[@]}"; status_is h-1 COMPLETED || fail "not COMPLETED"
}
test_runtimes() {
    command -v node >/dev/null || skip 'node is not installed'
    run 0 "$examples/runtimes.yaml"; equal "$(result report)" 'The Quick Brown Fox has 16 letters'; equal "$(result named)" 4
}
test_demo() {
    run 0 "$examples/demo.yaml"
    equal "$(jq -c '.steps[]|select(.stepId=="test").attempts|length' out)" 2; equal "$(status debug-build)" SKIPPED; equal "$(status ship)" SUCCESS
    run 0 "$examples/demo.yaml" --set channel=nightly --approve ship; equal "$(status debug-build)" SUCCESS
}
# The three commands that the demo ends with are pasted, as a reader would.
test_demo_script_and_its_next_commands() {
    mkdir tree && cp -r "$root/examples" "$root/tools" tree/ && cd tree
    CAIRN=$CAIRN sh tools/demo >../demo.out 2>../demo.err || fail "exit $?: $(tail -n 3 ../demo.err)"
    has ../demo.out '.cairn-demo/demo.db'
    grep '^  /' ../demo.out | sed 's/^  //' >commands
    equal "$(wc -l <commands)" 3 'commands to try'
    while read -r line; do bash -c "$line" >>output || fail "$line"; done <commands
    has output 'COMPLETED'; has output node_completed; has output intact
}
test_next_commands_of_run_can_be_pasted() {
    cairn_is 0 run "$examples/hello.json" "${store[@]}"
    bash -c "$(sed -n 's/^  look: //p' err)" >look || fail "look"
    has look COMPLETED
    echo '{"planId":"f","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":"test -e gate"}}]}' >f.json
    cairn_is 10 run f.json "${store[@]}"; touch gate
    bash -c "$(sed -n 's/^  next: //p' err)" >next 2>&1 || fail "next: $(cat next)"
    has next COMPLETED
}
test_corpus_plans() {
    [ -d "$corpus/plans" ] || skip 'no corpus here'
    for f in "$corpus"/plans/plan-*.json; do
        run 0 "$f" --run-id "$(basename "$f" .json)"
        equal "$(jq -r '.status' out)" COMPLETED "$f"
        equal "$(jq '[.steps[]|select(.status!="SUCCESS")]|length' out)" 0 "$f"
    done
    intact
}
test_corpus_joins() {
    [ -f "$corpus/workflows/e2e-joins.yaml" ] || skip 'no corpus here'
    run 0 "$corpus/workflows/e2e-joins.yaml"; equal "$(result verify)" 'ALL JOINS OK (loop ran 3 iterations)'
}
test_corpus_deterministic() {
    [ -f "$corpus/workflows/e2e-deterministic.yaml" ] || skip 'no corpus here'
    command -v node >/dev/null || skip 'node is not installed'
    mkdir -p proj/.archon/workflows proj/.archon/scripts
    cp "$corpus/workflows/e2e-deterministic.yaml" proj/.archon/workflows/
    echo 'console.log("args: " + process.argv.slice(2).join(" "));' >proj/.archon/scripts/echo-args.js
    echo 'print("python here")' >proj/.archon/scripts/echo-py.py
    run 0 proj/.archon/workflows/e2e-deterministic.yaml
    equal "$(jq -r '.steps[]|select(.stepId=="verify-all").result' out | tail -n 1)" 'PASS: all deterministic nodes produced output'
    equal "$(status branch-false)" SKIPPED; equal "$(result merge-node)" 'merge-ok: true=branch-true-ran false='
}
test_corpus_workflows_that_need_a_model_are_refused() {
    [ -d "$corpus/workflows" ] || skip 'no corpus here'
    for f in archon-release archon-validate-pr; do
        cairn_is 3 validate "$corpus/workflows/$f.yaml"; has_line err "$f.yaml:[0-9]+:[0-9]+: error\[E0216\].*AI provider"
    done
}

run_tests "$@"
