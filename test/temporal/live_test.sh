# Runs on a real Temporal server while people steer them and everything is killed: make live-temporal. Each test has a server of its own.
. "$(dirname "$0")/../e2e/temporal_lib.sh"

settings() { cat >cairn.toml; }
steps_done() { [ "$("$CAIRN" events "$1" "${store[@]}" -o jsonl | grep -c '"eventType":"StepCompleted"')" -ge "$2" ]; }
chain() { # NAME COUNT COMMAND: a plan in the file NAME.json
    jq -n --arg id "$1" --argjson n "$2" --arg c "$3" '{planId: $id, planVersion: "1", schemaVersion: "v1.2",
        steps: [range($n) | {stepId: "s\(.)", kind: "shell", dependsOn: (if . > 0 then ["s\(. - 1)"] else [] end), with: {command: $c}}]}' >"$1.json"
}
has_started() { grep -q "$1" "$2"; }
activities() { tctl workflow show -w "default/$1" -o json | jq '[.events[] | select(.eventType == "EVENT_TYPE_ACTIVITY_TASK_SCHEDULED")] | length'; }
runs_of() { tctl workflow list -q "WorkflowId = 'default/$1'" -o json --limit 1000 | jq length; }

test_L1_a_long_chain_goes_through_workflows_that_are_continued_as_new() {
    settings <<<'[serve.temporal]
address = "127.0.0.1:1"
historyEvents = 30'
    temporal_server
    host
    temporal_worker w1
    chain long 60 'echo $CAIRN_STEP_ID'
    start_file long long.json
    wait_for ended long COMPLETED
    wait_for workflow_is long COMPLETED
    wait_for eval '[ "$(runs_of long)" -ge 8 ]' # of about seven steps each
    tctl workflow describe -w default/long -o json | jq -r '.workflowExecutionInfo.memo.fields | keys[]' >memo
    has memo planId # the last of them says whose it is, too
    stop_serving
    intact
    same_as_embedded long long.json
}

test_L1_many_steps_at_once_all_end() {
    temporal_server
    host
    slots=16 temporal_worker w1
    jq -n '{planId: "wide", planVersion: "1", schemaVersion: "v1.2", steps: ([range(250) | {stepId: "s\(.)", kind: "shell", with: {command: "echo $CAIRN_STEP_ID"}}]
        + [{stepId: "last", kind: "shell", dependsOn: [range(250) | "s\(.)"], with: {command: "echo done"}}])}' >wide.json
    start_file wide wide.json
    wait_for ended wide COMPLETED
    wait_for workflow_is wide COMPLETED
    equal "$(activities wide)" 251 'each step once'
    stop_serving
    intact
}

test_L2_the_same_start_again_is_the_same_workflow() {
    temporal_server
    host
    temporal_worker w1
    chain once 2 'echo x >>ran'
    for _ in 1 2 3; do ask POST /v1/runs "{\"document\":$(jq -Rs . <once.json),\"runId\":\"once\"}"; done
    wait_for ended once COMPLETED
    wait_for workflow_is once COMPLETED
    equal "$(activities once)" 2
    stop_serving
    intact
}

test_L3_an_engine_that_is_killed_goes_on_and_nothing_that_ended_runs_again() {
    temporal_server
    host
    temporal_worker w1
    chain killed 12 "echo \$CAIRN_STEP_ID >>$PWD/ran; sleep 0.1; echo ok"
    start_file killed killed.json
    for round in 1 2 3; do
        wait_for steps_done killed $((round * 2))
        kill -9 "$server"
        wait "$server" 2>/dev/null
        host
    done
    wait_for ended killed COMPLETED
    wait_for workflow_is killed COMPLETED
    stop_serving
    intact
    equal "$("$CAIRN" events killed "${store[@]}" -o jsonl | grep -c '"eventType":"StepCompleted"')" 12
    equal "$("$CAIRN" events killed "${store[@]}" -o jsonl | jq -r 'select(.eventType=="StepCompleted").stepId' | sort -u | wc -l)" 12
    # A step runs once for each of its engine attempts, and no more.
    wanted=$("$CAIRN" events killed "${store[@]}" -o jsonl | grep -cE '"eventType":"(StepStarted|StepRedispatched)"')
    [ "$(wc -l <ran)" -le "$wanted" ] || fail "ran $(wc -l <ran) times, ordered $wanted times"
}

test_L3_L8_a_worker_that_is_killed_loses_its_attempt_and_the_next_one_is_in_the_log_first() {
    settings <<<'[serve.temporal]
address = "127.0.0.1:1"
heartbeatSeconds = 2'
    temporal_server
    host
    temporal_worker w1
    start lost "$(shell a "echo \$CAIRN_ENGINE_ATTEMPT >>$PWD/ran; [ \$CAIRN_ENGINE_ATTEMPT -gt 1 ] || until [ -e $PWD/go ]; do sleep 0.05; done; echo done")"
    wait_for test -s ran
    kill -9 "$worker"
    temporal_worker w2
    wait_for ended lost COMPLETED
    touch go
    wait_for workflow_is lost COMPLETED
    stop_serving
    intact
    equal "$(tr '\n' ' ' <ran)" '1 2 '
    "$CAIRN" events lost "${store[@]}" -o jsonl >events.jsonl
    equal "$(jq -r 'select(.eventType=="StepCompleted").engineAttemptId' events.jsonl)" 2
    has events.jsonl StepRedispatched
}

# Its executor is no part of the engine: the attempt that goes on there is claimed by the next engine, under its number.
test_L3_an_attempt_outlives_twenty_five_engines_and_is_the_same_attempt() {
    temporal_server
    host
    temporal_worker w1
    start lasts "$(shell a "echo \$CAIRN_ENGINE_ATTEMPT >>$PWD/ran; until [ -e $PWD/go ]; do sleep 0.05; done; echo done")" "$(shell b 'echo $a.output' '["a"]')"
    wait_for test -s ran
    for _ in $(seq 25); do
        kill -9 "$server"
        wait "$server" 2>/dev/null
        host
    done
    touch go
    wait_for ended lasts COMPLETED
    wait_for workflow_is lasts COMPLETED
    stop_serving
    intact
    equal "$(cat ran)" 1
    "$CAIRN" events lasts "${store[@]}" -o jsonl >events.jsonl
    hasnt events.jsonl StepRedispatched
    equal "$(activities lasts)" 2
}

test_L3_a_worker_that_ends_gives_its_attempt_back_once() {
    temporal_server
    host
    temporal_worker w1
    start back "$(shell a "echo \$CAIRN_ENGINE_ATTEMPT >>$PWD/ran; [ \$CAIRN_ENGINE_ATTEMPT -gt 1 ] || sleep 1000; echo done")"
    wait_for test -s ran
    kill -TERM "$worker"
    kill -TERM "$worker"
    temporal_worker w2
    wait_for ended back COMPLETED
    equal "$(tr '\n' ' ' <ran)" '1 2 '
    stop_serving
    intact
}

test_what_a_run_waits_for_is_a_timer_in_temporal() {
    temporal_server
    host
    temporal_worker w1
    start waits '{"stepId":"nap","kind":"wait","with":{"duration":"1h"}}'
    timers() { tctl workflow show -w default/waits -o json | jq -r '.events[].timerStartedEventAttributes.timerId // empty'; }
    wait_for eval 'timers | grep -q "^wait:nap:1@"'
    kill -9 "$server" # the next engine finds the timer where it is
    wait "$server" 2>/dev/null
    host
    tctl workflow signal -w default/waits --name CANCEL >/dev/null
    wait_for ended waits CANCELLED
    wait_for workflow_is waits CANCELED
    equal "$(timers | wc -l)" 1
    stop_serving
    intact
}

test_a_worker_says_which_server_it_waits_for() {
    temporal_server
    kill -9 "$temporal_pid"
    temporal_worker w1
    wait_for grep -q "waiting for Temporal at $temporal: " w1.err
    temporal_server
    wait_for grep -q "Temporal at $temporal answers" w1.err
}

test_L4_a_server_that_is_killed_and_comes_back_ends_what_it_had() {
    temporal_server
    host
    temporal_worker w1
    chain away 8 "echo \$CAIRN_STEP_ID >>$PWD/ran; sleep 0.1; echo ok"
    start_file away away.json
    wait_for steps_done away 3
    kill -9 "$temporal_pid"
    wait_for eval '! kill -0 $temporal_pid'
    temporal_server
    wait_for ended away COMPLETED
    wait_for workflow_is away COMPLETED
    stop_serving
    intact
}

test_L5_connections_that_the_server_ends_every_two_seconds_lose_nothing() {
    temporal_server --dynamic-config-value 'frontend.keepAliveMaxConnectionAge="2s"'
    host
    temporal_worker w1
    chain moved 12 'sleep 0.4; echo ok'
    start_file moved moved.json
    wait_for ended moved COMPLETED
    wait_for workflow_is moved COMPLETED
    stop_serving
    intact
    same_as_embedded moved moved.json
}

test_L6_people_pause_resume_and_cancel_by_temporals_own_tools() {
    temporal_server
    host
    temporal_worker w1
    chain steered 3 "echo \$CAIRN_STEP_ID >>$PWD/ran; until [ -e $PWD/go ]; do sleep 0.05; done; echo ok"
    start_file steered steered.json
    wait_for test -s ran
    id=5e0c1a52-7f0a-4c1e-9d0c-0a4b3c2d1e0f
    for _ in 1 2 3; do
        tctl workflow signal -w default/steered --name PAUSE --input "{\"signalId\":\"$id\",\"reason\":\"lunch\"}" >/dev/null || fail 'no signal'
    done
    touch go
    wait_for ended steered PAUSED
    equal "$("$CAIRN" events steered "${store[@]}" -o jsonl | grep -c '"eventType":"RunPaused"')" 1 'however often it was sent'
    rm go
    tctl workflow signal -w default/steered --name RESUME >/dev/null
    wait_for grep -q s1 ran
    tctl workflow cancel -w default/steered >/dev/null
    wait_for ended steered CANCELLED
    wait_for workflow_is steered CANCELED
    "$CAIRN" events steered "${store[@]}" -o jsonl | jq -r 'select(.eventType=="RunCancelled").payload.reason' >out
    has out 'cancelled in Temporal'
    stop_serving
    intact
}

test_L7_a_cancelled_run_stops_what_its_workers_do() {
    temporal_server
    host
    temporal_worker w1
    start stopped "$(shell a "echo \$\$ >$PWD/pid; sleep 1000")" "$(shell b 'sleep 1000')"
    wait_for test -s pid
    ask POST /v1/runs/stopped/signals '{"signalId":"5e0c1a52-7f0a-4c1e-9d0c-0a4b3c2d1e11","signalType":"CANCEL","payload":{"reason":"enough"}}'
    [ "$status" -lt 300 ] || fail "not taken: $(cat body)"
    wait_for ended stopped CANCELLED
    wait_for workflow_is stopped CANCELED
    wait_for eval '! kill -0 $(cat pid)'
    stop_serving
    intact
}

test_L9_a_workflow_that_is_terminated_stops_its_run() {
    temporal_server
    host
    temporal_worker w1
    start gone "$(shell a "touch $PWD/up; sleep 1000")"
    wait_for test -e up
    tctl workflow terminate -w default/gone --reason 'by hand' >/dev/null
    wait_for ended gone CANCELLED
    "$CAIRN" events gone "${store[@]}" -o jsonl | jq -r 'select(.eventType=="RunCancelled").payload.reason' >out
    has out 'terminated in Temporal'
    stop_serving
    intact
}

test_L9_a_workflow_whose_run_ended_while_the_host_died_is_closed_by_the_next_one() {
    temporal_server
    host
    temporal_worker w1
    start left "$(shell a "until [ -e $PWD/go ]; do sleep 0.05; done; echo ok")"
    wait_for workflow_is left RUNNING
    kill -9 "$server"
    wait "$server" 2>/dev/null
    "$CAIRN" signal left CANCEL --reason 'while nobody looked' "${store[@]}" >/dev/null 2>&1 || "$CAIRN" cancel left --reason 'while nobody looked' "${store[@]}" >/dev/null 2>err || fail "$(cat err)"
    touch go
    wait_for status_is left CANCELLED
    host
    wait_for workflow_is left CANCELED
    stop_serving
    intact
}

large_plan() { # what is larger than a message of Temporal, in both directions: results of a step, and what a step is given
    cat >"$1.json" <<'PLAN'
{"planId":"large","planVersion":"1","schemaVersion":"v1.2","steps":[
 {"stepId":"a","kind":"shell","with":{"command":"head -c 900000 /dev/zero | tr '\\0' x"}},
 {"stepId":"b","kind":"shell","dependsOn":["a"],"with":{"command":"head -c 900000 /dev/zero | tr '\\0' y"}},
 {"stepId":"c","kind":"script","dependsOn":["a","b"],"with":{"runtime":"python3","code":"print(len('$a.output') + len('$b.output'))"}},
 {"stepId":"d","kind":"script","dependsOn":["c"],"with":{"runtime":"python3","code":"import sys\nsys.stderr.write('told\\n' * 400000)\nprint('fine')"}}]}
PLAN
}
values() { tctl workflow list -q "WorkflowType = 'cairn.value.v1'" -o json --limit 1000 | jq length; }
test_L10_what_no_message_of_temporal_carries_goes_by_digest() {
    temporal_server
    host
    temporal_worker w1
    large_plan large
    start_file large large.json
    wait_for ended large COMPLETED
    wait_for workflow_is large COMPLETED
    ask GET /v1/runs/large && equal "$(jq -r '.steps[2].result' body)" 1800000
    [ "$(values)" -ge 5 ] || fail "by digest went $(values) values"
    "$CAIRN" logs large/d "${store[@]}" >log 2>err || fail "no log: $(cat err)"
    equal "$(grep -c told log)" 400000 'lines of a step that ran at a worker'
    stop_serving
    intact
    same_as_embedded large large.json
    host # and with the run the values end
    wait_for eval '[ "$(values)" = 0 ]'
    stop_serving
}

test_L10_results_by_digest_that_an_engine_was_not_there_to_hear_are_heard_by_the_next() {
    temporal_server
    host
    temporal_worker w1
    start unheard "$(shell a "touch $PWD/up; until [ -e $PWD/go ]; do sleep 0.05; done; head -c 500000 /dev/zero | tr '\\0' x")" "$(shell b 'echo $CAIRN_STEP_ID' '["a"]')"
    wait_for test -e up
    kill -9 "$server"
    wait "$server" 2>/dev/null
    touch go
    wait_for eval '[ "$(values)" -ge 1 ]' # the worker needs no engine for it
    host
    wait_for ended unheard COMPLETED
    equal "$("$CAIRN" get unheard "${store[@]}" -o json | jq '.steps[0].resultRef.sizeBytes')" 500002
    stop_serving
    intact
}

test_files_of_a_run_go_with_its_steps_and_artifacts_come_back() {
    temporal_server
    host
    temporal_worker w1
    cat >files.json <<'PLAN'
{"planId":"files","planVersion":"1","schemaVersion":"v1.2","steps":[
 {"stepId":"a","kind":"shell","with":{"command":"cd $ARTIFACTS_DIR && mkdir -p deep/er && echo small >deep/er/small && head -c 3000000 /dev/urandom >large && printf '#!/bin/sh\\necho ran' >tool && chmod +x tool && sha256sum <large"},
  "artifacts":[{"path":"large"},{"path":"deep/er/small"}]},
 {"stepId":"b","kind":"shell","dependsOn":["a"],"with":{"command":"cd $ARTIFACTS_DIR && ./tool && cat deep/er/small && sha256sum <large"}},
 {"stepId":"missing","kind":"shell","dependsOn":["b"],"with":{"command":"true"},"artifacts":[{"path":"never"}]}]}
PLAN
    start_file files files.json
    wait_for ended files FAILED
    ask GET /v1/runs/files
    equal "$(jq -r '.steps[1].result' body)" "$(printf 'ran\nsmall\n%s' "$(jq -r '.steps[0].result' body)")"
    equal "$("$CAIRN" events files "${store[@]}" -o jsonl | jq -r 'select(.eventType=="StepCompleted" and .stepId=="a").payload.artifacts | length')" 2
    stop_serving
    intact
}

test_every_example_runs_on_temporal_and_leaves_the_log_of_the_embedded_engine() {
    temporal_server
    host
    slots=8 temporal_worker w1
    touch gate
    names=()
    for file in "$root"/examples/*.json "$root"/examples/*.yaml; do
        case $file in */runtimes.yaml) command -v node >/dev/null || continue ;; esac
        name=$(basename "${file%.*}")
        names+=("$name")
        files[${#names[@]}]=$file
        start_file "$name" "$file" $(flags_of "$name")
    done
    for name in "${names[@]}"; do wait_for ended "$name" COMPLETED; done
    for name in "${names[@]}"; do wait_for workflow_is "$name" COMPLETED; done
    stop_serving
    intact
    for i in "${!names[@]}"; do blur='s/sha256[^a-z]*[0-9a-f]{12}/sha256/g' same_as_embedded_unordered "${names[i]}" "${files[i + 1]}" $(flags_of "${names[i]}"); done
}
flags_of() { [ "$1" != hold ] || echo --set "gate=$PWD/gate"; }

test_L13_a_function_of_a_plan_is_served_by_a_worker_of_temporals_own_sdk() {
    python=${TEMPORAL_PYTHON:-python3}
    "$python" -c 'import temporalio' 2>/dev/null || skip 'the Python package temporalio is not there ($TEMPORAL_PYTHON)'
    temporal_server
    host --route shout=py --route refuse=py
    temporal_worker w1
    "$python" "$root/test/temporal/sdk_worker.py" "$temporal" cairn.py >sdk.out 2>&1 &
    wait_for grep -q up sdk.out
    start sdk "$(shell a 'echo hello')" '{"stepId":"b","kind":"shout","dependsOn":["a"],"with":{"text":"$a.output"}}' "$(shell c 'echo $b.output.said' '["b"]')"
    wait_for ended sdk COMPLETED
    ask GET /v1/runs/sdk && equal "$(jq -r '.steps[2].result' body)" HELLO
    start no '{"stepId":"b","kind":"refuse","with":{"text":"you"}}'
    wait_for ended no FAILED
    wait_for workflow_is no FAILED
    "$CAIRN" events no "${store[@]}" -o jsonl | jq -r 'select(.eventType=="StepFailed").payload | .errorCode, .errorMessage' >out
    has out NOT_FOR_YOU
    has out 'not for you'
    stop_serving
    intact
}
run_tests "$@"
