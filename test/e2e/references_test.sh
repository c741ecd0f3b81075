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
        ask POST /v1/runs:cancel "{\"ref\":$given}" && answers 404
        ask POST /v1/runs:signal "{\"ref\":$given,\"signal\":$pause}" && answers 404
    done
    for given in "$(jq -c 'del(.namespace)' <<<"$temporal")" "$(jq -c 'del(.conductorUrl)' <<<"$conductor")" "$(jq -c 'del(.runId)' <<<"$temporal")" '"r1"'; do
        for verb in status cancel; do
            ask POST /v1/runs:$verb "{\"ref\":$given}" && answers 400 && code_is ADAPTER_INVALID_RUN_REF
        done
    done
    for run in r1 r2; do ask GET /v1/runs/$run/status && equal "$(jq -r .status body)" RUNNING; done
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

run_tests "$@"
