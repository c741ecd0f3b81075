# Runs as workflows of a real Temporal server: what users see first. Everything else: test/temporal/live_test.sh (make live-temporal).
. "$(dirname "$0")/temporal_lib.sh"

test_a_plan_a_playbook_and_a_node_workflow_run_on_temporal_and_leave_the_log_of_the_embedded_engine() {
    temporal_server
    host
    temporal_worker w1
    cat >chain.json <<'PLAN'
{"planId":"chain","planVersion":"1","schemaVersion":"v1.2","steps":[
 {"stepId":"a","kind":"shell","with":{"command":"echo one"}},
 {"stepId":"b","kind":"shell","dependsOn":["a"],"with":{"command":"echo $a.output two"}},
 {"stepId":"c","kind":"shell","dependsOn":["b"],"retry":{"maxAttempts":2},"with":{"command":"[ $CAIRN_ATTEMPT = 2 ] || { echo no >&2; exit 3; }; echo $b.output three"}}]}
PLAN
    "$CAIRN" validate chain.json >/dev/null 2>err || fail "$(cat err)"
    start_file chain chain.json
    start_file nodes "$root/examples/parent.yaml"
    start_file book "$root/examples/playbook.yaml"
    ask GET /v1/capabilities # what the host does, and what the engine does on it as anywhere
    equal "$(jq -c '.hosts[0] | [.provider, .namespace, .taskQueue, ([.capabilities[] | select(.by == "host").capability] | join(" ")), (.capabilities | length)]' body)" \
        '["temporal","default","cairn","basic-execution cancel.cooperative cancel.forced workflow.continue.as.new",16]'
    for run in chain nodes book; do wait_for ended $run COMPLETED; done
    for run in chain nodes book; do wait_for workflow_is $run COMPLETED; done
    equal "$(jq -r '.workflowExecutionInfo.type.name' described)" cairn.run.v1
    ask GET /v1/runs/chain && equal "$(jq -r '.steps[2].result' body)" 'one two three'
    stop_serving
    intact

    same_as_embedded chain chain.json
    same_as_embedded book "$root/examples/playbook.yaml"
    "$CAIRN" events chain "${store[@]}" -o jsonl | jq -r 'select(.eventType=="RunStarted").payload.engineType' >out && has out temporal
}
# A task of Temporal that cannot be answered comes back for ever: who may signal a workflow there could stop its run for good.
test_signals_that_are_none_stop_no_run_X6() {
    temporal_server; host; temporal_worker w
    start r1 "$(shell a 'sleep 600')"
    wait_for workflow_is r1 RUNNING
    for size in 20000 300000 1500000; do
        jq -nc --argjson n "$size" '{reason: ("x" * $n)}' >large.json
        tctl workflow signal -w default/r1 --name PAUSE --input-file large.json >/dev/null || fail 'no signal'
    done
    tctl workflow signal -w default/r1 --name ESCALATE_ALERT --input '{"payload":{"alertCode":"x"}}' >/dev/null || fail 'no signal'
    tctl workflow signal -w default/r1 --name CANCEL --input '{"reason":"enough"}' >/dev/null || fail 'no signal'
    wait_for ended r1 CANCELLED
    ask GET /v1/runs/r1/events; hasnt body PAUSE; hasnt body ESCALATE; has body enough
}

run_tests "$@"
