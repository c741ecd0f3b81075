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

test_the_commands_of_docs_temporal_md_bring_a_run() {
    temporal_server
    mkdir -p home/bin
    printf '#!/bin/sh\nexec "%s" "$@" --address %s\n' "$temporal_binary" "$temporal" >home/bin/temporal
    chmod 755 home/bin/temporal
    trap 'kill $(cat home/.local/state/cairn/cairn.db.serve 2>/dev/null | head -n 1) $(cat worker.pid 2>/dev/null) ${temporal_pid:-} 2>/dev/null' EXIT
    guide_typed docs/temporal.md temporal "$(free_port)" "/^temporal server/d; s/127.0.0.1:7233/$temporal/g; s/^(cairn worker .*)/\\1 \& echo \$! >worker.pid/"
    equal "$(grep -c COMPLETED typed.err)" 2
    has typed.out cairn.run.v1
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

# A process that knows the history of a run is sent only what is new of it; one that has forgotten it asks for all.
tasks_for_one() { tctl workflow show -w "default/$1" -o json | jq '[.events[].workflowTaskScheduledEventAttributes.taskQueue | select(.kind == "TASK_QUEUE_KIND_STICKY")] | length'; }
test_histories_are_cached_up_to_a_bound_and_read_again_beyond_it() {
    settings <<<'[serve.temporal]
address = "127.0.0.1:1"
cachedRuns = 2'
    temporal_server
    host
    slots=8 temporal_worker w1
    chain known 6 'echo $CAIRN_STEP_ID'
    for i in 1 2 3 4 5; do start_file "known$i" known.json; done
    for i in 1 2 3 4 5; do wait_for ended "known$i" COMPLETED; done
    for i in 1 2 3 4 5; do wait_for workflow_is "known$i" COMPLETED; done
    [ "$(tasks_for_one known1)" -ge 2 ] || fail "tasks for the process that knows it: $(tasks_for_one known1)"
    stop_serving
    intact
    for i in 1 5; do same_as_embedded "known$i" known.json; done
}

test_search_attributes_find_workflows_and_must_be_there() {
    settings <<<'[serve.temporal]
address = "127.0.0.1:1"
historyEvents = 20
searchAttributes = true'
    temporal_server
    host
    temporal_worker w1
    chain found 8 'echo $CAIRN_STEP_ID'
    start_file found found.json
    wait_for workflow_is found COMPLETED
    wait_for eval '[ "$(tctl workflow list -q "planId = '"'found'"' AND tenantId = '"'default'"'" -o json --limit 100 | jq length)" -ge 2 ]' # of those that it was continued as, too
    stop_serving
    tctl operator namespace create -n bare >/dev/null || fail 'no namespace'
    wait_for eval 'tctl operator namespace describe -n bare >/dev/null'
    "$CAIRN" serve --temporal "$temporal" --namespace bare "${store[@]}" --listen 127.0.0.1:0 >out 2>err && fail 'served without its attributes'
    has err 'no search attribute tenantId'
    sed -i "s/127.0.0.1:1/$temporal/; \$a namespace = \"bare\"" cairn.toml
    "$CAIRN" doctor temporal "${store[@]}" >out 2>&1 && fail 'nothing wrong'
    has out 'search-attribute create'
    intact
}

# Without a service: the process of the command drives its run, and another one goes on when it is killed.
test_run_target_temporal_drives_its_own_run_and_the_same_command_goes_on_after_a_kill() {
    temporal_server
    temporal_worker w1
    run_there() { "$CAIRN" run "$1" --target temporal --temporal "$temporal" "${store[@]}" --run-id "$2" --progress none "${@:3}"; }
    chain own 5 "echo \$CAIRN_STEP_ID \$CAIRN_ENGINE_ATTEMPT >>$PWD/ran; [ \$CAIRN_STEP_ID != s2 ] || until [ -e $PWD/go ]; do sleep 0.05; done; echo ok"
    "$CAIRN" run own.json --target temporal --temporal "$temporal" "${store[@]}" --run-id own --progress none >/dev/null 2>err &
    runner=$!
    wait_for grep -q '^s2' ran
    kill -9 $runner
    wait $runner 2>/dev/null
    touch go
    run_there own.json own -o json >ended.json 2>err || fail "exit $?: $(cat err)"
    equal "$(jq -r .status ended.json)" COMPLETED
    workflow_is own COMPLETED || fail 'the workflow is open'
    equal "$(sort ran | uniq -d)" '' 'attempts that ran twice'
    equal "$(cut -d' ' -f2 ran | sort -u)" 1 'attempts: the one in flight was claimed'
    large_plan large
    run_there large.json large >/dev/null 2>err || fail "exit $?: $(cat err)"
    equal "$(values)" 0 'values of a run that has ended'
    intact
    same_as_embedded large large.json
    cairn_is 2 run own.json --target nobody; has err 'no such adapter'
    cairn_is 2 run own.json --target temporal; has err '--temporal HOST:PORT'
    cairn_is 2 run own.json --target temporal --temporal "$temporal" --store memory:; has err 'store in memory'
    # Profiles of the engine itself need no server.
    "$CAIRN" run own.json --target conductor --run-id profile "${store[@]}" --progress none >/dev/null 2>err || fail "$(cat err)"
    equal "$("$CAIRN" events profile "${store[@]}" -o jsonl | jq -r 'select(.eventType=="RunStarted").payload.engineType')" conductor
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
    wait_for grep -q 'once more stops at once' w1.err # two signals of a kind at once may be one
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
    wait_for steps_done steered 1 # what was in flight drains
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

functions_are_served_by() { # COMMAND...: a worker of an SDK
    temporal_server
    host --route shout=own --route refuse=own
    temporal_worker w1
    "$@" "$temporal" cairn.own >sdk.out 2>&1 &
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
test_L13_functions_of_a_plan_are_served_by_a_worker_of_temporals_python_sdk() {
    python=${TEMPORAL_PYTHON:-$root/build/temporal-sdk/bin/python}
    "$python" -c 'import temporalio' 2>/dev/null || skip 'the Python package temporalio is not there ($TEMPORAL_PYTHON)'
    functions_are_served_by "$python" "$root/test/temporal/sdk_worker.py"
}
test_L13_functions_of_a_plan_are_served_by_a_worker_of_temporals_go_sdk() {
    worker=${TEMPORAL_GO:-$root/build/temporal-sdk/go-worker}
    [ -x "$worker" ] || skip 'the worker of the Go SDK was not built ($TEMPORAL_GO)'
    functions_are_served_by "$worker"
}

# How often the server was asked, and how often it said that this was too much.
asked() { curl -s "http://127.0.0.1:$(cut -d' ' -f3 temporal/ports)/metrics" | awk '/^service_requests\{/ && /service_name="frontend"/ {n += $NF} END {printf "%d\n", n}'; }
throttled() { curl -s "http://127.0.0.1:$(cut -d' ' -f3 temporal/ports)/metrics" | awk '/^service_errors_resource_exhausted\{/ || /^service_error_with_type\{.*ResourceExhausted/ {n += $NF} END {printf "%d\n", n}'; }
test_L11_a_server_that_has_had_enough_is_asked_less_and_the_run_ends_all_the_same() {
    temporal_server --dynamic-config-value frontend.namespaceRPS=4 --dynamic-config-value 'frontend.namespaceRPS.visibility=2' --dynamic-config-value frontend.rps=4
    host
    temporal_worker w1
    chain slow 3 'echo $CAIRN_STEP_ID'
    start_file slow slow.json
    wait_for ended slow COMPLETED
    wait_for eval '[ "$(throttled)" -gt 0 ]' # or nothing was shown
    before=$(asked)
    outlast 10
    after=$(asked)
    [ $((after - before)) -le 300 ] || fail "$((after - before)) calls in ten seconds in which nothing happens"
    stop_serving
    intact
    same_as_embedded slow slow.json
}

# A run that this host cannot drive: its task is refused once, with the reason, and not again and again.
test_L11_a_task_that_cannot_be_done_is_refused_once() {
    temporal_server
    host
    start other "$(shell a "until [ -e $PWD/go ]; do sleep 0.05; done")"
    wait_for workflow_is other RUNNING
    tctl workflow start --type cairn.run.v1 --task-queue cairn.runs -w 'no run of ours' --input '"no"' >/dev/null || fail 'not started'
    failures() { tctl workflow show -w 'no run of ours' -o json | jq '[.events[] | select(.eventType == "EVENT_TYPE_WORKFLOW_TASK_FAILED")] | length'; }
    closed() { ! tctl workflow describe -w 'no run of ours' -o json | jq -e '.workflowExecutionInfo.status == "WORKFLOW_EXECUTION_STATUS_RUNNING"' >/dev/null; }
    wait_for eval '[ "$(failures)" -ge 1 ] || closed'
    before=$(asked)
    outlast 5
    [ "$(failures)" -le 1 ] || fail "refused $(failures) times"
    [ $(($(asked) - before)) -le 150 ] || fail "$(($(asked) - before)) calls in five seconds in which nothing happens"
}
run_tests "$@"
