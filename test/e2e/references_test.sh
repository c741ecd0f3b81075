# EngineRunRef: what a start returns names the run in every operation of IWorkflowEngine, over HTTP, at the command line and in the
# library, and nothing else does.
. "$(dirname "$0")/serve_lib.sh"

noop='{"stepId":"a","kind":"noop"}'
gate='{"stepId":"a","kind":"approval"}'
start() { # RUN ADAPTER STEP
    ask POST /v1/runs "{\"document\":$(plan_text p "$3"),\"context\":{\"tenantId\":\"default\",\"projectId\":\"shop\",\"environmentId\":\"prod\",\"runId\":\"$1\"${2:+,\"targetAdapter\":\"$2\"}}}"
    answers 202
}
pause='{"signalType":"PAUSE","payload":{},"signalId":"11111111-1111-4111-8111-111111111111"}'
engine() { printf '[serve.engine]\n%s\n' "$1" >cairn.toml; }

test_a_start_returns_the_reference_of_its_profile_WE_2_1a_WE_2_1_1a_WE_2_1_1b_WE_2_1_1f() {
    engine 'conductorUrl = "https://conductor.example/api"'
    serve
    start r1 temporal "$gate"
    equal "$(jq -Sc .ref body)" '{"namespace":"default","provider":"temporal","runId":"r1","taskQueue":"default","workflowId":"r1"}'
    equal "$(jq -r .engineRunRef body)" temporal://default/p/r1/r1
    start r2 conductor "$gate"
    equal "$(jq -Sc .ref body)" '{"conductorUrl":"https://conductor.example/api","provider":"conductor","runId":"r2","workflowId":"r2"}'
    equal "$(jq -r .engineRunRef body)" conductor://conductor.example/p/r2/r2
    start r3 mock "$gate"
    equal "$(jq -Sc .ref body)" '{"provider":"mock","runId":"r3","workflowId":"r3"}'
    start r4 '' "$gate"
    equal "$(jq -Sc .ref body)" '{"provider":"cairn","runId":"r4","workflowId":"r4"}'
    for run in r1:temporal r2:conductor r3:mock r4:cairn; do
        ask GET "/v1/runs/${run%:*}/events?limit=500"
        equal "$(jq -r '[.items[] | select(.payload.engineType) | .payload.engineType] | unique | join(" ")' body)" "${run#*:}"
        equal "$(jq -r '.items[] | select(.eventType == "RunStarted") | .payload.engineRunRef' body | cut -d: -f1)" "${run#*:}"
        ask GET "/v1/runs/${run%:*}/status" && equal "$(jq -r .ref.provider body)" "${run#*:}"
        ask GET "/v1/runs/${run%:*}" && equal "$(jq -r .engineRunRef body | cut -d: -f1)" "${run#*:}"
    done
}

test_status_signal_and_cancel_take_a_reference_WE_2_1b_WE_2_1c_WE_2_1d_WE_2_1_3g_WE_2_1_3j() {
    serve
    start r1 temporal "$gate"
    ref=$(jq -c .ref body) text=$(jq -c .engineRunRef body)
    for given in "$ref" "$text" '{"provider":"cairn","workflowId":"r1","runId":"r1"}'; do
        ask POST /v1/runs:status "{\"ref\":$given}" && answers 200
        equal "$(jq -r '.runId + " " + .status' body)" 'r1 RUNNING'
    done
    ask POST /v1/runs:signal "{\"ref\":$ref,\"signal\":$pause}" && answers 202
    equal "$(jq -r .decision body)" ACCEPTED
    ask POST /v1/runs:status "{\"ref\":$text}" && equal "$(jq -r .status body)" PAUSED
    ask POST /v1/runs:cancel "{\"ref\":$text,\"reason\":\"enough\",\"signalId\":\"21111111-1111-4111-8111-111111111111\"}" && answers 202
    wait_for eval 'ask POST /v1/runs:status "{\"ref\":$ref}" && [ "$(jq -r .status body)" = CANCELLED ]'
    ask GET '/v1/runs/r1/events?limit=500'
    equal "$(jq -r '[.items[] | .projectId + "/" + .environmentId] | unique | join(" ")' body)" shop/prod
    equal "$(jq -r '.items[] | select(.eventType == "RunCancelled") | .payload.reason' body)" enough
    # The audit says where it was, of allowed operations and of refused ones.
    ask GET '/v1/audit?limit=500'
    equal "$(jq -r '[.items[] | select(.resource.id == "r1") | .projectId + "/" + .environmentId] | unique | join(" ")' body)" shop/prod
    ask GET /v1/audit:verify && equal "$(jq -r .intact body)" true
    ask GET /v1/runs/r1/signals && equal "$(jq -r '[.items[].audit.projectId] | unique | join(" ")' body)" shop
}

# Of a run its execution, of a step the attempt that it had: both counters, as in the events that follow. What is decided before anybody looks at the
# run has neither.
test_the_audit_says_of_which_attempt_an_operation_was_WE_2_1_3d_RE_5e() {
    unconfined
    serve
    flaky=$(jq -nc --arg c "echo x >>$PWD/ran; [ \$(wc -l <$PWD/ran) -gt 2 ]" '{stepId: "a", kind: "shell", with: {command: $c}, onStepFailure: "hold"}')
    ask POST /v1/runs "{\"document\":$(plan_text p "$flaky"),\"runId\":\"r1\"}" && answers 202
    for attempt in 1 2; do
        held() { ask GET /v1/runs/r1 && [ "$(jq -r '.steps[0] | "\(.status) \(.logicalAttemptId)"' body)" = "FAILED $attempt" ]; }
        wait_for held
        ask POST /v1/runs:signal "{\"ref\":{\"provider\":\"cairn\",\"workflowId\":\"r1\",\"runId\":\"r1\"},\"signal\":{\"signalType\":\"RETRY_STEP\",\"payload\":{\"stepId\":\"a\"},\"signalId\":\"11111111-1111-4111-8111-11111111111$attempt\"}}" && answers 202
    done
    ended() { ask GET /v1/runs/r1 && [ "$(jq -r .status body)" = COMPLETED ]; }
    wait_for ended
    ask GET '/v1/audit?limit=500'
    equal "$(jq -r '.items[] | select(.resource.id == "r1" and .decision == "GRANTED" and .engineAttemptId) | "\(.action) \(.engineAttemptId) \(.logicalAttemptId)"' body)" \
        "$(printf 'run.start 1 1\nsignal.retry_step 1 1\nsignal.retry_step 1 2')"
    ask GET "/v1/runs/r1/events?limit=500" && equal "$(jq '[.items[] | select((.engineAttemptId | not) or (.logicalAttemptId | not))] | length' body)" 0
    ask GET /v1/audit:verify && equal "$(jq -r .intact body)" true
    stop_serving
    cairn_is 0 audit verify "${store[@]}"
}

test_a_reference_that_is_wrong_in_one_member_names_nothing_WE_2_1_1c_WE_2_1_1d_WE_2_1_1e() {
    engine 'conductorUrl = "https://conductor.example/api"'
    serve
    start r1 temporal "$gate"
    temporal=$(jq -c .ref body)
    start r2 conductor "$gate"
    conductor=$(jq -c .ref body)
    for given in "$(jq -c '.namespace = "other"' <<<"$temporal")" "$(jq -c '.workflowId = "r2"' <<<"$temporal")" \
        "$(jq -c '.taskQueue = "fast"' <<<"$temporal")" '"temporal://other/p/r1/r1"' '"mock:///p/r1/r1"' \
        "$(jq -c '.conductorUrl = "https://conductor.example/v2"' <<<"$conductor")" '"conductor://elsewhere/p/r2/r2"' \
        '{"provider":"conductor","workflowId":"r1","runId":"r1","conductorUrl":"https://conductor.example/api"}'; do
        ask POST /v1/runs:status "{\"ref\":$given}" && answers 404
        hasnt body '  here' # it is the reference that names no run, not an id that nobody gave
        ask POST /v1/runs:cancel "{\"ref\":$given}" && answers 404
        ask POST /v1/runs:signal "{\"ref\":$given,\"signal\":$pause}" && answers 404
    done
    for given in "$(jq -c 'del(.namespace)' <<<"$temporal")" "$(jq -c 'del(.conductorUrl)' <<<"$conductor")" "$(jq -c 'del(.runId)' <<<"$temporal")" '"r1"'; do
        for verb in status cancel; do
            ask POST /v1/runs:$verb "{\"ref\":$given}" && answers 400 && code_is ADAPTER_INVALID_RUN_REF
        done
        ask POST /v1/runs:signal "{\"ref\":$given,\"signal\":$pause}" && answers 400 && code_is ADAPTER_INVALID_RUN_REF
    done
    for run in r1 r2; do ask GET /v1/runs/$run/status && equal "$(jq -r .status body)" RUNNING; done
    ask GET '/v1/audit?limit=500' && equal "$(jq '[.items[] | select(.decision == "DENIED" and (.resource.id // "" | test(" ")))] | length' body)" 0
    equal "$(jq '[.items[] | select(.decision == "DENIED" and (.resource.id // "" | startswith("temporal://other/")))] | length > 0' body)" true
}

test_the_command_line_takes_references_WE_2_1b_WE_2_1c() {
    plan_text p "$gate" | jq -r '. | fromjson | .metadata.targetAdapter = "temporal"' >p.json
    "$CAIRN" run p.json "${store[@]}" --run-id r1 >running 2>&1 &
    owner=$!
    wait_for eval '"$CAIRN" get r1 "${store[@]}" >/dev/null 2>&1'
    cairn_is 0 get temporal://default/p/r1/r1 "${store[@]}"
    has out r1
    cairn_is 5 get temporal://other/p/r1/r1 "${store[@]}"
    cairn_is 5 cancel temporal://other/p/r1/r1 "${store[@]}" --reason no
    cairn_is 0 pause '{"provider":"temporal","namespace":"default","workflowId":"r1","runId":"r1"}' "${store[@]}"
    cairn_is 0 cancel temporal://default/p/r1/r1 "${store[@]}" --reason enough
    wait $owner || true
    equal "$("$CAIRN" get r1 "${store[@]}" -o json | jq -r .status)" CANCELLED
}

test_the_strict_mode_knows_the_providers_of_the_contract_alone_C_07() {
    engine 'strictSchema = true'
    serve
    start r1 '' "$gate"
    equal "$(jq -r .ref.provider body)" temporal
    ask GET '/v1/runs/r1/events?limit=500'
    equal "$(jq -r '[.items[] | select(.payload.engineType) | .payload.engineType] | unique | join(" ")' body)" temporal
    jq -c '.items[] | .payload |= del(.planRef.uri)' body >events && hasnt events cairn
    ask GET /v1/runs/r1/status && hasnt body cairn
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop"),\"runId\":\"r2\",\"targetAdapter\":\"cairn\"}" && answers 422 && code_is INVALID_TARGET_ADAPTER
    ask GET /v1/capabilities && hasnt body '"cairn"'
    stop_serving
    engine 'strictSchema = true
adapter = "cairn"'
    cairn_is 2 serve "${store[@]}"
    engine 'strictSchema = true
adapter = "conductor"'
    serve
    start r3 '' "$gate"
    equal "$(jq -r .ref.provider body)" conductor
}

# The documents of the other two kinds, as JSON strings.
nodes_text() { jq -n --arg run "$1" '"name: n\nnodes:\n  - id: a\n    bash: \($run)\n  - id: b\n    bash: exit 3\n    depends_on: [a]\n  - id: c\n    bash: echo c\n    depends_on: [b]\n"'; }
playbook_text() { jq -n --arg run "$1" '"apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: p, path: demo/p, version: \"1\"}\nworkflow:\n  - step: a\n    tool: {kind: shell, cmds: \"\($run)\"}\n    next: {arcs: [{step: b}]}\n  - step: b\n    loop: {in: \"{{ [1, 2] }}\", iterator: i}\n    tool: {kind: shell, cmds: \"echo {{ iter.i }}\"}\n"'; }
start_text() { # RUN DOCUMENT
    ask POST /v1/runs "{\"document\":$2,\"context\":{\"tenantId\":\"default\",\"projectId\":\"shop\",\"environmentId\":\"prod\",\"runId\":\"$1\"}}"
    answers 202
}
has_ended() { ask GET "/v1/runs/$1/status" && [ "$(jq -r '.completedAt // ""' body)" ]; }
# Of every event: TENANT/PROJECT/ENVIRONMENT, each once.
places_of() {
    ask GET "/v1/runs/$1/events?limit=500"
    [ "$(jq '.items | length' body)" -ge 5 ] || fail "few events: $(jq -c '.items | length' body)"
    jq -r '[.items[] | (if .runSeq then . elif .run_id then .payload else .payload.meta end)
        | (.tenantId // .tenant_id) + "/" + (.projectId // .project_id) + "/" + (.environmentId // .environment_id)] | unique | join(" ")' body
}

test_every_event_of_every_document_says_whose_it_is_WE_2_1_3j() {
    serve
    start_text n1 "$(nodes_text 'echo a')" && start_text p1 "$(playbook_text 'echo a')" && start r1 '' "$noop"
    for run in n1 p1 r1; do
        wait_for has_ended $run
        equal "$(places_of $run)" default/shop/prod "events of $run"
    done
    ask GET '/v1/runs/n1/events?limit=500'
    equal "$(jq -r '[.items[].event_type] | unique | length' body)" 6 'types of records'
    # One that is stopped and one that pauses say it too, and so does what the audit has of them.
    start_text n2 "$(nodes_text 'sleep 60')" && start_text p2 "$(playbook_text 'sleep 60')"
    for run in n2 p2; do
        ask POST /v1/runs:signal "{\"ref\":\"cairn://local/x/$run/$run\",\"signal\":$pause}" && answers 202
        ask POST /v1/runs:cancel "{\"ref\":{\"provider\":\"cairn\",\"workflowId\":\"$run\",\"runId\":\"$run\"},\"reason\":\"enough\"}" && answers 202
        wait_for has_ended $run
        ask GET "/v1/runs/$run/status" && equal "$(jq -r .status body)" CANCELLED
    done
    equal "$(places_of p2)" default/shop/prod
    ask GET '/v1/runs/n2/events?limit=500'
    equal "$(jq -r '.items[-1] | .event_type + " " + .payload.project_id + " " + .payload.environment_id' body)" 'workflow_cancelled shop prod'
    ask GET '/v1/audit?limit=500'
    for run in n1 p1 n2 p2; do
        equal "$(jq -r --arg run $run '[.items[] | select(.resource.id == $run) | .projectId + "/" + .environmentId] | unique | join(" ")' body)" shop/prod
    done
    stop_serving
    store=(--store "sqlite:$PWD/store.db") && intact
}
# Written by the release that said it in the first event only; old-n was killed while b was running.
test_logs_that_say_it_once_verify_and_go_on_WE_2_1_3j() {
    mkdir s && tar -xzf "$root/test/golden/stores/ids-in-the-first-event.tar.gz" -C s || fail 'the store'
    store=(--store files:s)
    cp -r s/old-p/events.jsonl before
    intact
    cairn_is 0 recover "${store[@]}"
    cmp before s/old-p/events.jsonl || fail 'a log that had ended has changed'
    status_is old-n COMPLETED || fail "$("$CAIRN" get old-n "${store[@]}")"
    equal "$("$CAIRN" events old-n "${store[@]}" -o jsonl | jq -r '.payload.project_id // "-"' | tr '\n' ' ')" 'default - - - default default default '
    intact
    for run in old-n old-p; do cairn_is 0 log replay $run "${store[@]}"; done
    rm -rf /tmp/cairn-first # where its artifacts were
}

test_the_strict_mode_is_one_for_all_documents_C_07() {
    serve
    start r0 '' "$noop"
    stop_serving
    engine 'strictSchema = true'
    serve
    start_text n1 "$(nodes_text 'echo a')" && start_text p1 "$(playbook_text 'echo a')" && start r1 '' "$noop"
    for run in n1 p1 r1; do
        wait_for has_ended $run
        equal "$(jq -r '.ref.provider + " " + .engineRunRef' body | cut -d: -f1)" 'temporal temporal'
        hasnt body cairn
        ask GET "/v1/runs/$run" && jq -c 'walk(if type == "object" then del(.uri) else . end)' body >told && hasnt told cairn
        ask GET "/v1/runs/$run/events?limit=500" && jq -c 'walk(if type == "object" then del(.uri) else . end)' body >told && hasnt told '"cairn'
        for given in '"cairn://local/p/'$run/$run'"' "{\"provider\":\"cairn\",\"workflowId\":\"$run\",\"runId\":\"$run\"}"; do
            for verb in status cancel; do
                ask POST /v1/runs:$verb "{\"ref\":$given}" && answers 400 && code_is ADAPTER_INVALID_RUN_REF
            done
        done
        ask POST "/v1/runs/$run/rerun" '{}' && equal "$(jq -r .ref.provider body)" temporal "a run made from $run"
    done
    ask POST /v1/runs/r0/rerun '{}' && equal "$(jq -r .ref.provider body)" temporal 'a run made from one of before'
    ask GET /openapi.json && equal "$(jq -c '.components.schemas.Capabilities.properties.provider.enum | sort' body)" '["conductor","mock","temporal"]'
}

run_tests "$@"
