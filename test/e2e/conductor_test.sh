# Attempts carried by Conductor: on a fake that has the traps of the real one, and with CAIRN_CONDUCTOR_URL on a real server (make live-conductor).
. "$(dirname "$0")/conductor_lib.sh"

test_steps_run_when_conductor_brings_them_and_the_log_is_that_of_the_embedded_engine() {
    conductor
    between
    site
    host h1
    cat >ten.json <<'PLAN'
{"planId":"ten","planVersion":"1","schemaVersion":"v1.2","steps":[
 {"stepId":"a","kind":"shell","with":{"command":"echo one"}},
 {"stepId":"b","kind":"shell","dependsOn":["a"],"with":{"command":"echo $a.output two"}},
 {"stepId":"c","kind":"shell","dependsOn":["b"],"retry":{"maxAttempts":2},"with":{"command":"[ $CAIRN_ATTEMPT = 2 ] || { echo no >&2; exit 3; }; echo $b.output three"}},
 {"stepId":"d","kind":"shell","dependsOn":["c"],"with":{"command":"printf '%s' \"$CAIRN_IDEMPOTENCY_KEY\""}}]}
PLAN
    ask POST /v1/runs "{\"document\":$(jq -Rs . ten.json),\"runId\":\"ten-$x\"}"
    wait_for ended "ten-$x" COMPLETED
    wait_for states_are cairn_run "ten-$x" '1 COMPLETED'
    wait_for states_are cairn_attempt "ten-$x" '4 COMPLETED, 1 FAILED'
    workflows cairn_attempt "ten-$x" | jq -r '.[].input.key' | sort >keys
    printf 'default/ten-%s:%s\n' "$x" a:1:1 "$x" b:1:1 "$x" c:1:1 "$x" c:2:1 "$x" d:1:1 >want
    diff want keys || fail 'one workflow an attempt'
    equal "$(workflows cairn_run "ten-$x" | jq -c '.[0].output.cairn.counts')" '{"total":4,"done":4,"running":0,"failed":0,"skipped":0}'
    equal "$(workflows cairn_run "ten-$x" | jq -r '.[0].output.cairn.steps[]|select(.step=="c")|"\(.status) \(.attempt)"')" 'SUCCESS 2'
    equal "$(way seen | jq '.extendLease // 0')" 0 'heartbeats to Conductor'
    kill -TERM "$host" && wait "$host" || fail "the host ended with $?"
    has h1.err '5 results handed in'
    stop_serving
    intact
    events_of "ten-$x" >here
    "$CAIRN" run ten.json --run-id ten-embedded --store "sqlite:$PWD/other.db" --progress none >/dev/null 2>&1
    store=(--store "sqlite:$PWD/other.db")
    events_of ten-embedded >embedded
    diff embedded here || fail 'the log differs from that of the embedded engine'
}

test_the_commands_of_docs_conductor_md_bring_a_run() {
    conductor
    # They end by their numbers: what the guide starts goes on.
    trap 'pkill -P $$ 2>/dev/null; kill $(cat home/.local/state/cairn/cairn.db.serve 2>/dev/null | head -n 1) $(cat host.pid 2>/dev/null) 2>/dev/null; kill -9 ${conductor_pid:-} 2>/dev/null' EXIT
    guide_typed docs/conductor.md conductor "$(free_port)" "s|http://127.0.0.1:8080/api|$api|; s/^(cairn host .*)/\\1 --site guide-$x \& echo \$! >host.pid/"
    has typed.err 'COMPLETED'
}

test_a_fan_out_runs_side_by_side_and_each_step_once() {
    conductor
    site
    host h1 --concurrency 32
    steps=()
    for i in $(seq 100); do steps+=("$(shell "s$i" "echo $i >>$PWD/ran")"); done
    start "fan-$x" "${steps[@]}"
    wait_for ended "fan-$x" COMPLETED
    sort -n ran | diff - <(seq 100) || fail 'not each step once'
    wait_for states_are cairn_attempt "fan-$x" '100 COMPLETED'
    wait_for states_are cairn_run "fan-$x" '1 COMPLETED'
}

test_a_pause_in_cairn_drains_and_counts_down_on_cairn_run_and_a_step_that_is_late_changes_nothing() {
    conductor
    site
    host h1
    hold_step() { shell "$1" "touch $PWD/up-$1; until [ -e $PWD/go-$1 ]; do sleep 0.02; done" "${2:-[]}"; }
    start "p-$x" "$(hold_step a)" "$(hold_step b)" "$(hold_step c)" "$(hold_step d '["a","b","c"]')" "$(shell e "touch $PWD/e" '["d"]')"
    wait_for test -e up-a -a -e up-b -a -e up-c
    wait_for shows "p-$x" .status RUNNING
    signal "p-$x" PAUSE '{"reason":"lunch"}'; answers 202
    wait_for shows "p-$x" '"\(.status) \(.substatus): \(.message)"' 'PAUSED DRAINING: waiting for 3 steps in flight'
    wait_for states_are cairn_run "p-$x" '1 PAUSED'
    reason() { there GET "/workflow/$(run_there "p-$x")?includeTasks=true" | jq -r '.tasks[-1].reasonForIncompletion'; }
    equal "$(reason)" 'waiting for 3 steps in flight' 'the reason of the task'
    touch go-a
    wait_for shows "p-$x" '"\(.substatus): \(.message)"' 'DRAINING: waiting for 2 steps in flight'
    touch go-b
    wait_for shows "p-$x" '"\(.substatus): \(.message)"' 'DRAINING: waiting for 1 step in flight'
    touch go-c
    wait_for is "p-$x" PAUSED
    wait_for shows "p-$x" '"\(.status) \(.substatus) \(.message)"' 'PAUSED null null'
    wait_for states_are cairn_attempt "p-$x" '3 COMPLETED'
    [ ! -e up-d ] || fail 'a step began while the run was paused'
    signal "p-$x" RESUME; answers 202
    wait_for test -e up-d
    # A second time.
    signal "p-$x" PAUSE; answers 202
    wait_for shows "p-$x" '"\(.substatus): \(.message)"' 'DRAINING: waiting for 1 step in flight'
    touch go-d
    wait_for shows "p-$x" '"\(.status) \(.substatus)"' 'PAUSED null'
    counted "p-$x" RunPaused 2 || fail 'not paused twice'
    signal "p-$x" RESUME; answers 202
    wait_for ended "p-$x" COMPLETED
    wait_for states_are cairn_run "p-$x" '1 COMPLETED'
    # The step does not end before the drain timeout, and what it gives later is recorded all the same.
    ask POST /v1/runs "{\"document\":$(plan_text q "$(hold_step l)" "$(shell m 'echo m' '["l"]')"),\"runId\":\"l-$x\",\"drainTimeoutMs\":1000}"; answers 202
    wait_for test -e up-l
    wait_for shows "l-$x" .status RUNNING
    signal "l-$x" PAUSE; answers 202
    wait_for states_are cairn_run "l-$x" '1 PAUSED'
    wait_for is "l-$x" PAUSED # without DRAINING, and the step is still at it
    touch go-l
    wait_for counted "l-$x" StepCompleted 1
    is "l-$x" PAUSED || fail "a late result changed the run: $(cat body)"
    wait_for shows "l-$x" '"\(.status) \(.substatus)"' 'PAUSED null'
    signal "l-$x" RESUME; answers 202
    wait_for ended "l-$x" COMPLETED
}

test_a_cancel_in_cairn_ends_the_steps_and_the_workflows() {
    conductor
    site
    host h1
    start "c-$x" "$(shell a "touch $PWD/up; exec sleep 600")"
    wait_for test -e up
    wait_for shows "c-$x" .status RUNNING
    signal "c-$x" CANCEL '{"reason":"enough"}'; answers 202
    wait_for ended "c-$x" CANCELLED
    wait_for states_are cairn_run "c-$x" '1 TERMINATED'
    wait_for states_are cairn_attempt "c-$x" '1 TERMINATED'
}

test_what_people_do_in_conductor_becomes_signals_once_each() {
    conductor
    site
    host h1
    start "h-$x" "$(shell a "touch $PWD/up; until [ -e $PWD/go ]; do sleep 0.02; done")" "$(shell b 'echo b' '["a"]')"
    wait_for test -e up
    wait_for shows "h-$x" .status RUNNING
    wid=$(run_there "h-$x")
    for cycle in 1 2; do
        there PUT "/workflow/$wid/pause"
        there PUT "/workflow/$wid/pause"
        wait_for is "h-$x" PAUSED DRAINING
        wait_for shows "h-$x" .status PAUSED
        there PUT "/workflow/$wid/resume"
        wait_for is "h-$x" RUNNING
        wait_for shows "h-$x" .status RUNNING
    done
    counted "h-$x" RunPaused 2 || fail "paused otherwise than twice"
    counted "h-$x" RunResumed 2 || fail "resumed otherwise than twice"
    touch go
    wait_for ended "h-$x" COMPLETED
    wait_for states_are cairn_run "h-$x" '1 COMPLETED'

    start "t-$x" "$(shell a "touch $PWD/up2; exec sleep 600")"
    wait_for test -e up2
    wait_for shows "t-$x" .status RUNNING
    wid=$(run_there "t-$x")
    there DELETE "/workflow/$wid?reason=by%20hand"
    there DELETE "/workflow/$wid?reason=again"
    wait_for ended "t-$x" CANCELLED
    ask GET "/v1/runs/t-$x/events" && has body 'terminated in Conductor: by hand'
    counted "t-$x" SignalAccepted 1 || fail 'not one signal'
}

test_retry_rerun_and_restart_of_an_ended_run_make_one_new_run_each() {
    conductor
    site
    host h1
    start "e-$x" "$(shell a "[ -e $PWD/fine ]")"
    wait_for ended "e-$x" FAILED
    wait_for states_are cairn_run "e-$x" '1 FAILED'
    wid=$(run_there "e-$x")
    touch fine
    new_runs() { ask GET /v1/runs && jq '[.items[]|select(.runId != "e-'"$x"'")]|length' body; }
    there POST "/workflow/$wid/retry"
    there POST "/workflow/$wid/retry" # what runs is not retried: an error there, nothing here
    wait_for states_are cairn_run "e-$x" '1 COMPLETED'
    equal "$(new_runs)" 1 'new runs'
    there GET "/workflow/$wid?includeTasks=true" >out && has out 'the run goes on as newRun'
    there POST "/workflow/$wid/rerun" "{\"reRunFromWorkflowId\":\"$wid\"}" >/dev/null
    wait_for eval '[ "$(new_runs)" = 2 ]'
    wait_for states_are cairn_run "e-$x" '1 COMPLETED'
    there POST "/workflow/$wid/restart"
    wait_for eval '[ "$(new_runs)" = 3 ]'
    wait_for states_are cairn_run "e-$x" '1 COMPLETED'
    equal "$(new_runs)" 3 'new runs'
    done_all() { ask GET /v1/runs && [ "$(jq -r '[.items[]|select(.status=="COMPLETED")]|length' body)" = 3 ]; }
    wait_for done_all
}

test_a_terminated_attempt_runs_again_as_the_next_engine_attempt() {
    conductor
    site
    host h1
    start "k-$x" "$(shell a "echo x >>$PWD/ran; [ \$CAIRN_ENGINE_ATTEMPT = 1 ] || exit 0; exec sleep 600")"
    wait_for test -s ran
    wait_for states_are cairn_attempt "k-$x" '1 RUNNING'
    there DELETE "/workflow/$(workflows cairn_attempt "k-$x" | jq -r '.[0].workflowId')?reason=stuck"
    wait_for ended "k-$x" COMPLETED
    equal "$(wc -l <ran)" 2 'executions'
    counted "k-$x" StepRedispatched 1 || fail 'not one more engine attempt'
    wait_for states_are cairn_attempt "k-$x" '1 COMPLETED, 1 TERMINATED'
}

test_a_retried_attempt_is_retry_step_when_the_step_is_held_and_is_told_when_it_is_refused() {
    conductor
    site
    host h1
    hold=$(plan_text p "$(shell a "[ -e $PWD/fine ]")" | jq 'fromjson | .metadata.onStepFailure = "hold" | tojson')
    ask POST /v1/runs "{\"document\":$hold,\"runId\":\"s-$x\"}"; answers 202
    wait_for states_are cairn_attempt "s-$x" '1 FAILED'
    wid=$(workflows cairn_attempt "s-$x" | jq -r '.[0].workflowId')
    touch fine
    there POST "/workflow/$wid/retry"
    wait_for ended "s-$x" COMPLETED
    wait_for states_are cairn_attempt "s-$x" '2 COMPLETED'
    start "f-$x" "$(shell a 'exit 3')"
    wait_for ended "f-$x" FAILED
    wait_for states_are cairn_attempt "f-$x" '1 FAILED'
    wid=$(workflows cairn_attempt "f-$x" | jq -r '.[0].workflowId')
    there POST "/workflow/$wid/retry"
    wait_for states_are cairn_attempt "f-$x" '1 FAILED'
    refusal_told() { there GET "/tasks/$(there GET "/workflow/$wid?includeTasks=true" | jq -r '.tasks[-1].taskId')/log" | grep -q 'RETRY_STEP was refused: RUN_TERMINAL'; }
    wait_for refusal_told
}

test_a_poll_that_swallowed_a_task_costs_seconds_not_the_step() {
    conductor
    site
    host h1
    start "warm-$x" "$(shell a true)"
    wait_for ended "warm-$x" COMPLETED
    domain=$(workflows cairn_attempt "warm-$x" | jq -r '.[0].input.host')
    kill -STOP "$host" # while it sleeps somebody takes its task
    wait_for is_stopped "$host"
    curl -s "$api/tasks/poll/batch/cairn_attempt?count=1&timeout=4000&workerid=ghost&domain=$domain" >ghost &
    ghost=$!
    start "gone-$x" "$(shell a "echo x >>$PWD/ran")"
    kill -CONT "$host"
    wait "$ghost"
    wait_for ended "gone-$x" COMPLETED
    equal "$(wc -l <ran)" 1 'executions'
    wait_for states_are cairn_attempt "gone-$x" '1 COMPLETED'
}
test_a_host_that_is_killed_leaves_its_step_to_the_next_engine_attempt_and_its_workflows_to_another_host() {
    conductor
    site 2s
    host h1 --silent 2s
    start "dead-$x" "$(shell a "echo \$CAIRN_ENGINE_ATTEMPT >>$PWD/ran; [ \$CAIRN_ENGINE_ATTEMPT -gt 1 ] || exec sleep 600")" "$(shell b 'echo b' '["a"]')"
    wait_for test -s ran
    kill -9 "$host"
    host h2 --silent 2s
    wait_for ended "dead-$x" COMPLETED
    equal "$(tr '\n' ' ' <ran)" '1 2 ' 'engine attempts'
    wait_for states_are cairn_attempt "dead-$x" '2 COMPLETED, 1 TERMINATED'
    wait_for states_are cairn_run "dead-$x" '1 COMPLETED'
    intact
}

test_of_two_hosts_one_is_stopped_past_its_lease_and_its_result_counts_nothing() {
    conductor
    site 2s
    host h1
    start "late-$x" "$(shell a "echo \$CAIRN_ENGINE_ATTEMPT >>$PWD/ran; [ \$CAIRN_ENGINE_ATTEMPT -gt 1 ] || until [ -e $PWD/go ]; do sleep 0.02; done; echo from \$CAIRN_ENGINE_ATTEMPT")"
    wait_for test -s ran
    stopped=$host
    kill -STOP "$stopped"
    host h2
    wait_for ended "late-$x" COMPLETED
    touch go
    kill -CONT "$stopped"
    wait_for grep -qE 'could not be renewed|STALE|is over' h1.err
    start "next-$x" "$(shell b 'echo b')" # it goes on as a host all the same
    wait_for ended "next-$x" COMPLETED
    equal "$(tr '\n' ' ' <ran)" '1 2 ' 'engine attempts'
    ask GET "/v1/runs/late-$x" && equal "$(jq -r '.steps[0].result' body)" 'from 2'
    wait_for states_are cairn_attempt "late-$x" '1 COMPLETED, 1 TERMINATED'
    intact
}

test_a_server_that_is_killed_finds_the_step_running_and_its_host_waiting() {
    conductor
    site 2s --listen "unix:$PWD/s.sock"
    url="unix:$PWD/s.sock" host h1
    start "down-$x" "$(shell a "echo \$CAIRN_ENGINE_ATTEMPT >>$PWD/ran; until [ -e $PWD/go ]; do sleep 0.02; done")" "$(shell b 'echo b' '["a"]')"
    wait_for test -s ran
    kill -9 "$server"
    wait "$server" 2>/dev/null
    rm s.sock
    serve --route "*=conductor" --lease 2s --drain 0 --listen "unix:$PWD/s.sock"
    touch go
    wait_for ended "down-$x" COMPLETED
    wait_for states_are cairn_run "down-$x" '1 COMPLETED'
    nothing_open() { ! states cairn_attempt "down-$x" | grep -q RUNNING; }
    wait_for nothing_open
    counted "down-$x" StepCompleted 2 || fail 'not each step once'
    intact
}

# A worker of the user's own: one task of that type, ended as it is told.
users_worker() { # TYPE STATUS OUTPUT
    local task
    wait_for eval "there GET '/tasks/poll/batch/$1?count=1&timeout=1000&workerid=mine' >task && jq -e '.[0].taskId' task"
    task=$(jq -c '.[0]' task)
    there POST /tasks "$(jq -nc --argjson t "$task" --arg s "$2" --argjson o "$3" '{taskId: $t.taskId, workflowInstanceId: $t.workflowInstanceId, status: $s, outputData: $o, reasonForIncompletion: "as told"}')" >/dev/null
}
test_workers_of_the_user_execute_steps_of_their_kind() {
    conductor
    site
    host h1 --task-type "sql=acme_$x"
    start "own-$x" '{"stepId":"a","kind":"sql","with":{"query":"select 7"}}' "$(shell b 'echo got $a.output.rows' '["a"]')"
    users_worker "acme_$x" COMPLETED '{"rows":7}'
    jq -e '.[0].inputData | .step == "a" and .input.query == "select 7" and (.idempotencyKey | length > 0)' task >/dev/null || fail "input: $(cat task)"
    wait_for ended "own-$x" COMPLETED
    ask GET "/v1/runs/own-$x" && equal "$(jq -r '.steps[1].result' body)" 'got 7'
    wait_for states_are cairn_attempt_ext "own-$x" '1 COMPLETED'
    start "bad-$x" '{"stepId":"a","kind":"sql","with":{"query":"select 8"}}'
    users_worker "acme_$x" FAILED_WITH_TERMINAL_ERROR '{}'
    wait_for ended "bad-$x" FAILED
    ask GET "/v1/runs/bad-$x/events" && equal "$(jq -r '.items[]|select(.eventType=="StepFailed").payload.errorCode' body)" CONDUCTOR_TASK_FAILED
    intact
}

test_in_mirror_mode_steps_begin_at_once_and_are_shown() {
    conductor
    site
    host h1 --delivery mirror
    start "mirror-$x" "$(shell a 'echo a')" "$(shell b 'exit 3' '["a"]')"
    wait_for ended "mirror-$x" FAILED
    wait_for states_are cairn_attempt "mirror-$x" '1 COMPLETED, 1 FAILED'
    wait_for states_are cairn_run "mirror-$x" '1 FAILED'
    intact
}

test_a_run_whose_workflow_was_terminated_is_shown_again_where_the_host_says_so() {
    conductor
    site
    host h1 --on-terminate recover
    start "again-$x" "$(shell a "touch $PWD/up; until [ -e $PWD/go ]; do sleep 0.02; done")"
    wait_for test -e up
    wait_for shows "again-$x" .status RUNNING
    there DELETE "/workflow/$(run_there "again-$x")?reason=oops"
    wait_for states_are cairn_run "again-$x" '1 RUNNING, 1 TERMINATED'
    touch go
    wait_for ended "again-$x" COMPLETED
    wait_for states_are cairn_run "again-$x" '1 COMPLETED, 1 TERMINATED'
}

test_large_outputs_long_names_and_secrets_stay_out_of_conductor() {
    conductor
    site
    host h1
    long=$(printf 'n%.0s' $(seq 128))
    canary=canary-$RANDOM$RANDOM$RANDOM
    start "large-$x" "$(shell "$long" "head -c 700000 /dev/zero | tr '\\0' x")" "$(shell b "echo $canary >/dev/null; printf '%s' $canary" "[\"$long\"]")"
    wait_for ended "large-$x" COMPLETED
    wait_for states_are cairn_run "large-$x" '1 COMPLETED'
    wait_for states_are cairn_attempt "large-$x" '2 COMPLETED'
    for name in cairn_run cairn_attempt; do
        for id in $(workflows $name "large-$x" | jq -r '.[].workflowId'); do there GET "/workflow/$id?includeTasks=true"; done
    done >all
    hasnt all "$canary"
    hasnt all xxxxxxxxxxxxxxxx
    has all "$long"
    has all 700000
    [ "$(wc -c <all)" -lt 100000 ] || fail "$(wc -c <all) bytes"
}

# Runs that wait for people or for a time have a workflow there all the same. $CONDUCTOR_PARKED: how many (make live-conductor has 1,000).
test_many_runs_that_wait_are_listed_in_one_call_and_slow_nobody() {
    conductor own
    [ -n "$live" ] || between # calls are counted on the way to the fake
    site
    host h1
    start "warm-$x" "$(shell a true)"
    wait_for ended "warm-$x" COMPLETED
    kill -9 "$host" # the runs of a host that is gone are the next one's
    local parked=${CONDUCTOR_PARKED:-200} share calls lists
    cat >park.py <<'PY'
import http.client, json, sys, urllib.parse
service, token, api, count, x = sys.argv[1:]
plan = json.dumps({"metadata": {"planId": "p", "planVersion": "1", "schemaVersion": "v1.2"}, "steps": [{"stepId": "nap", "kind": "wait", "with": {"duration": "100h"}}]})
def line(url): return http.client.HTTPConnection(urllib.parse.urlparse(url).netloc, timeout=60)
here, there = line(service), line(api)
for n in range(int(count)):
    run = f"park{n}-{x}"
    given = {"name": "cairn_run", "version": 2, "correlationId": "default/" + run, "input": {"tenant": "default", "run": run, "host": "gone", "site": "site-" + x}}
    for at, path, body in ((here, "/v1/runs", {"document": plan, "runId": run}), (there, "/api/workflow", given)):
        at.request("POST", path, json.dumps(body), {"Content-Type": "application/json", "Authorization": "Bearer " + token})
        answer = at.getresponse()
        text = answer.read()
        if answer.status >= 300: sys.exit(f"{path}: {answer.status} {text}")
PY
    python3 park.py "$url" "$token" "$api" "$parked" "$x" || fail 'not parked'
    there PUT "/workflow/$(run_there "park0-$x")/pause" # a person, before any host has shown that run
    host h2
    start "fresh-$x" "$(shell a 'echo a')" "$(shell b 'echo b' '["a"]')"
    wait_for ended "fresh-$x" COMPLETED # while those are looked at one by one
    for share in 1 2 3 4 5; do # as long as the test may take: there may be very many
        until shows "park$((parked * share / 5 - 1))-$x" .hosts.there RUNNING; do sleep 0.2; done
    done
    there PUT "/workflow/$(run_there "park7-$x")/pause"
    for run in park0 park7; do wait_for ended "$run-$x" PAUSED; done
    lists_them() { [ "$(there GET /workflow/running/cairn_run | jq length)" = "$parked" ]; }
    wait_for lists_them
    [ -z "$live" ] || return 0
    seen() { way seen | jq "[to_entries[] | select(.key | test(\"$1\")) | .value] | add // 0"; }
    calls=$(seen .) lists=$(seen '^GET /workflow/running/cairn_run$')
    ten_lists() { [ $(($(seen '^GET /workflow/running/cairn_run$') - lists)) -ge 10 ]; }
    wait_for ten_lists
    calls=$(($(seen .) - calls)) lists=$(($(seen '^GET /workflow/running/cairn_run$') - lists))
    [ "$calls" -le $((lists * 100)) ] || fail "$calls calls while $parked runs that wait were listed $lists times"
}

# What is compared with what is one clock's time: Conductor's, or one host's own since it began.
test_hosts_whose_clocks_are_days_apart_do_the_same() {
    conductor
    "${CC:-cc}" -shared -fPIC -o clock.so "$root/test/e2e/clock_shim.c" -ldl || fail 'the shim does not compile'
    site 2s
    host_at() { echo "$2" >"clock.$1"; LD_PRELOAD=$PWD/clock.so CLOCK_FILE=$PWD/clock.$1 host "$1" --silent 2s; }
    host_at h1 86400
    start "skew-$x" "$(shell a "echo a\$CAIRN_ENGINE_ATTEMPT >>$PWD/ran; [ \$CAIRN_ENGINE_ATTEMPT -gt 1 ] || exec sleep 600")" \
        "$(shell b "echo b\$CAIRN_ENGINE_ATTEMPT >>$PWD/ran; until [ -e $PWD/go ]; do sleep 0.02; done" '["a"]')" "$(shell c true '["b"]')"
    wait_for test -s ran
    wait_for shows "skew-$x" .status RUNNING
    first=$host
    host_at h2 -172800
    kill -9 "$first" # the other one, three days before it, ends what it left
    wait_for grep -q b1 ran
    wait_for states_are cairn_attempt "skew-$x" '1 COMPLETED, 1 RUNNING, 1 TERMINATED'
    for cycle in 1 2; do
        there PUT "/workflow/$(run_there "skew-$x")/pause"
        wait_for is "skew-$x" PAUSED DRAINING
        wait_for shows "skew-$x" .status PAUSED
        there PUT "/workflow/$(run_there "skew-$x")/resume"
        wait_for is "skew-$x" RUNNING
        wait_for shows "skew-$x" .status RUNNING
    done
    touch go
    wait_for ended "skew-$x" COMPLETED
    equal "$(tr '\n' ' ' <ran)" 'a1 a2 b1 ' 'executions'
    counted "skew-$x" RunPaused 2 || fail 'paused otherwise than twice'
    wait_for states_are cairn_run "skew-$x" '1 COMPLETED'
    wait_for states_are cairn_attempt "skew-$x" '3 COMPLETED, 1 TERMINATED'
    # And an ended run that a person begins anew is begun anew once.
    there POST "/workflow/$(run_there "skew-$x")/restart"
    new_runs() { ask GET /v1/runs && jq -e '[.items[]|select(.runId != "skew-'"$x"'")]|length == 1' body; }
    wait_for new_runs
    wait_for states_are cairn_run "skew-$x" '1 COMPLETED'
    new_runs || fail "other than one new run: $(jq -c '[.items[].runId]' body)"
    intact
}
run_tests "$@"
