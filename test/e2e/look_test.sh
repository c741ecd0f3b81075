#!/usr/bin/env bash
# Looking at runs: queries, moments, steps, who drives what, waiting for it.
. "$(dirname "$0")/lib.sh"

plan() { printf '{"planId":"%s","planVersion":"1","schemaVersion":"v1.2",%s"steps":[%s]}' "$1" "${3:-}" "$2" >"$1.json"; }
names() { "$CAIRN" ls "${store[@]}" --all -o name "$@" 2>err | sort | tr '\n' ' '; }

test_queries_find_runs() {
    plan release '{"stepId":"load","kind":"shell","with":{"command":"exit ${code:-0}","env":{"code":"$INPUTS.code"}}}' '"inputs":{"code":0,"env":"dev"},"metadata":{"tags":["nightly"]},'
    plan other '{"stepId":"a","kind":"shell","with":{"command":"sleep 9"},"timeout":"50ms"}'
    cairn_is 0 run release.json "${store[@]}" --run-id r-ok --set env=prod --progress none
    cairn_is 10 run release.json "${store[@]}" --run-id r-bad --set code=3 --progress none
    cairn_is 10 run other.json "${store[@]}" --run-id o-slow --progress none
    equal "$(names)" 'o-slow r-bad r-ok '
    equal "$(names status=FAILED)" 'o-slow r-bad '
    equal "$(names status=FAILED plan~REL)" 'r-bad '
    equal "$(names 'not status=COMPLETED' '(error=TIMEOUT or input.code>2)')" 'o-slow r-bad '
    equal "$(names error=TIMEOUT)" 'o-slow '
    equal "$(names step=load)" 'r-bad r-ok '
    equal "$(names step.load=FAILED)" 'r-bad '
    equal "$(names input.env=prod)" 'r-ok '
    equal "$(names --tag nightly)" 'r-bad r-ok '
    equal "$(names --tag nightly status=FAILED or plan=other)" 'r-bad '
    equal "$(names tag!=nightly)" 'o-slow '
    equal "$(names 'started>1h took<10s')" 'o-slow r-bad r-ok '
    equal "$(names 'started<1h')" ''
    equal "$(names --status failed plan=release)" 'r-bad '
    equal "$(names --status failed status=COMPLETED)" ''
    equal "$(names 'run=r-*' --since 1h)" 'r-bad r-ok '
    equal "$(names slow)" 'o-slow '
    cairn_is 2 ls 'plan=x staus=FAILED' "${store[@]}"; has err 'no field staus'; has_line err '^           \^\^\^\^\^$'; has err 'did you mean status?'
    cairn_is 2 ls 'took>5' "${store[@]}"; has err 'not a duration'
    cairn_is 0 help query; has out 'step.NAME'
}
test_pages_of_a_query_are_whole() {
    plan p '{"stepId":"a","kind":"noop"}'; plan q '{"stepId":"a","kind":"noop"}'
    for i in $(seq 1 7); do
        cairn_is 0 run p.json "${store[@]}" --run-id "p-$i" --progress none
        cairn_is 0 run q.json "${store[@]}" --run-id "q-$i" --progress none
    done
    for limit in 1 2 3 6 7 8; do
        equal "$("$CAIRN" ls step=a plan~p --limit $limit "${store[@]}" -o name | wc -l)" $((limit < 7 ? limit : 7)) "rows of $limit"
    done
    equal "$("$CAIRN" ls plan~p "${store[@]}" -o name | tr '\n' ' ')" 'p-7 p-6 p-5 p-4 p-3 p-2 p-1 '
    equal "$("$CAIRN" ls plan~p "${store[@]}" -o json | jq length)" 7
}
# What a run looked like after its first N events, worked out from the events alone.
fold_first() {
    jq -sc --argjson n "$1" '
        .[0:$n] | reduce .[] as $e ({status: "PENDING", steps: {}};
            $e.eventType as $t
            | if $t == "RunStarted" or $t == "RunResumed" then .status = "RUNNING"
              elif $t == "RunPaused" then .status = "PAUSED" elif $t == "RunCompleted" then .status = "COMPLETED"
              elif $t == "RunFailed" then .status = "FAILED" elif $t == "RunCancelled" then .status = "CANCELLED"
              elif $t == "StepStarted" or $t == "StepRedispatched" then .steps[$e.stepId] = "RUNNING"
              elif $t == "StepCompleted" then .steps[$e.stepId] = "SUCCESS"
              elif $t == "StepFailed" then .steps[$e.stepId] = "FAILED"
              elif $t == "StepSkipped" then .steps[$e.stepId] = "SKIPPED" else . end)
        | [.status, (.steps | map(select(. == "SUCCESS")) | length), (.steps | map(select(. == "FAILED")) | length),
           (.steps | map(select(. == "RUNNING")) | length), (.steps | map(select(. == "SKIPPED")) | length),
           (.steps | to_entries | sort_by(.key) | map([.key, .value]))]' log.jsonl
}
shown_at() {
    "$CAIRN" get "$1" "${store[@]}" -o json | jq -c '[.status, .completedSteps, .failedSteps, .runningSteps, .skippedSteps,
        ([.steps[] | select(.status != "PENDING") | [.stepId, .status]] | sort)]'
}
test_every_moment_equals_a_fold_of_the_events_before_it() {
    plan tt '{"stepId":"a","kind":"shell","with":{"command":"[ $CAIRN_ATTEMPT = 2 ]"},"retry":{"maxAttempts":2,"delay":"1ms"}},{"stepId":"b","kind":"echo","with":{"message":"x"},"dependsOn":["a"]},{"stepId":"c","kind":"noop","dependsOn":["b"],"when":"$b.output == \u0027y\u0027"},{"stepId":"d","kind":"shell","with":{"command":"exit 4"},"dependsOn":["b"]}'
    cairn_is 10 run tt.json "${store[@]}" --run-id t1 --progress none
    "$CAIRN" events t1 "${store[@]}" --raw >log.jsonl
    local n count; count=$(wc -l <log.jsonl)
    [ "$count" -gt 10 ] || fail "only $count events"
    for n in $(seq 0 "$count"); do
        equal "$(shown_at "t1@$n")" "$(fold_first "$n")" "moment $n"
        cairn_is 0 get "t1@$n" "${store[@]}"
        [ "$n" = "$count" ] || has out "event $n of $count, "
        has out "$(fold_first "$n" | jq -r '.[0]')"
    done
    equal "$(shown_at t1)" "$(fold_first "$count")" 'now'
    cairn_is 2 get "t1@$((count + 1))" "${store[@]}"; has err "the log ends at event $count"
    cairn_is 0 get t1@4 "${store[@]}"; hasnt out 'exit 4'; hasnt out owner
}
test_one_step_with_its_inputs_attempts_and_log() {
    plan st '{"stepId":"a","kind":"echo","with":{"message":{"n":7}}},{"stepId":"b","kind":"exec","with":{"argv":["sh","-c","echo try $CAIRN_ATTEMPT; [ $CAIRN_ATTEMPT = 2 ]","$a.output.n"]},"dependsOn":["a"],"retry":{"maxAttempts":2,"delay":"1ms"}},{"stepId":"c","kind":"echo","with":{"message":"$b.output"},"dependsOn":["b"]}'
    cairn_is 0 run st.json "${store[@]}" --run-id s1 --progress none
    cairn_is 0 get s1/b "${store[@]}"
    for text in 'b  exec' 'a (done)' '- 7' 'try 2' '#1' 'EXIT_NONZERO exit 1' '#2'; do has out "$text"; done
    cairn_is 0 get s1/b#1 "${store[@]}"; has out 'try 1'; hasnt out 'try 2'; hasnt out '#2'
    cairn_is 0 get s1/b -o json "${store[@]}"
    jq -e '.status == "SUCCESS" and .inputs.argv[3] == 7 and .inputsRendered and .dependsOn == ["a"] and .kind == "exec" and (.attempts | length) == 2 and (.logFiles | length) == 2' out >/dev/null || fail "$(cat out)"
    [ -s "$(jq -r '.logFiles[0]' out)" ] || fail 'no such log file'
    cairn_is 0 get s1/c@4 "${store[@]}"; has out 'inputs, as written'; has out '$b.output'; has out 'waiting'
    cairn_is 0 get s1/b -o name "${store[@]}"; equal "$(cat out)" s1/b
    cairn_is 0 get s1 --fields status,planId "${store[@]}"; equal "$(cat out)" "$(printf 'status\tCOMPLETED\nplanId\tst')"
    cairn_is 0 get s1 --fields status -o json "${store[@]}"; equal "$(jq -c . out)" '{"status":"COMPLETED"}'
    cairn_is 0 get s1 -o wide "${store[@]}"; has out '= {"n":7}'
    cairn_is 2 get s1 --fields staus "${store[@]}"; has err 'did you mean status?'
    cairn_is 5 get s1/bb "${store[@]}"; cairn_is 5 get s1/b#3 "${store[@]}"; has err 'no attempt 3'
}
test_inputs_of_a_past_round_of_a_loop() {
    printf 'name: l\nnodes:\n  - id: loop\n    loop_group:\n      max_iterations: 2\n      nodes:\n        - {id: pre, bash: "echo x >> n; wc -l < n"}\n        - {id: tick, depends_on: [pre], echo: "round $pre.output"}\n' >l.yaml
    cairn_is 0 run l.yaml "${store[@]}" --run-id l1 --progress none
    for round in 1 2; do
        cairn_is 0 get "l1/loop[$round].tick" "${store[@]}"; has out "message: \"round $round\""; has out 'pre (done)'
    done
    cairn_is 0 logs l1/loop "${store[@]}"; equal "$(cat out)" "$(printf 'loop[1].pre │ 1\nloop[2].pre │ 2')"
}
test_events_up_to_a_moment_since_and_raw() {
    plan ev '{"stepId":"g","kind":"approval","with":{"message":"go?"}},{"stepId":"z","kind":"noop","dependsOn":["g"]}'
    cairn_is 13 run ev.json "${store[@]}" --run-id e1 --progress none --exit-on-wait
    cairn_is 0 approve e1/g --reason 'looks good' "${store[@]}" --progress none
    cairn_is 0 events e1@3 -o name "${store[@]}"; equal "$(tr '\n' ' ' <out)" '1 2 3 '
    cairn_is 0 events e1@3 --after 1 -o name "${store[@]}"; equal "$(tr '\n' ' ' <out)" '2 3 '
    cairn_is 0 events e1 --since 2999-01-01T00:00:00Z -o name "${store[@]}"; empty out
    cairn_is 0 events e1 --since 1h -o name "${store[@]}"; equal "$(wc -l <out)" "$("$CAIRN" events e1 "${store[@]}" -o name | wc -l)"
    cairn_is 0 events e1 "${store[@]}"; equal "$(head -n 1 out | cut -f1-4)" "$(printf 'seq\ttime\ttype\tstep')" 'header of the default when piped'
    cairn_is 0 events e1 --raw "${store[@]}"; cp out raw; cairn_is 0 events e1 -o jsonl "${store[@]}"; cmp raw out || fail 'raw differs from jsonl'
    cairn_is 0 events e1 --ledger -o csv "${store[@]}"; has out 'APPROVE ACCEPTED'; has out StepCompleted
    equal "$(tail -n +2 out | cut -d, -f1 | sort -nc && echo sorted)" sorted 'order with the ledger'
    cairn_is 0 events e1/z -o yaml --fields seq,type "${store[@]}"; has out 'type: StepStarted'
    cairn_is 2 events e1@3 -f "${store[@]}"; has err 'ends before it'
}
test_events_follow_another_process() {
    plan fo '{"stepId":"a","kind":"shell","with":{"command":"until [ -e go ]; do sleep 0.02; done; exit 2"}}'
    "$CAIRN" run fo.json "${store[@]}" --run-id f1 --progress none 2>/dev/null &
    wait_for step_is f1 a RUNNING
    "$CAIRN" events -f f1 -o jsonl "${store[@]}" >followed & local follower=$!
    wait_for grep -q StepStarted followed
    hasnt followed StepFailed
    touch go
    local rc=0; wait $follower || rc=$?
    equal $rc 10 'exit code'
    wait
    "$CAIRN" events f1 -o jsonl "${store[@]}" | cmp - followed || fail 'not the same log'
}
gate_plan() { plan gate '{"stepId":"a","kind":"echo","with":{"message":"v1.4"}},{"stepId":"deploy","kind":"approval","dependsOn":["a"],"with":{"message":"ship $a.output?","timeout":"1h"}}'; }
hold_plan() { plan hold '{"stepId":"x","kind":"shell","with":{"command":"until [ -e go ]; do sleep 0.02; done"}},{"stepId":"z","kind":"noop","dependsOn":["x"]}'; }
test_ps_tells_what_runs_do_and_who_drives_them() {
    gate_plan; hold_plan
    cairn_is 13 run gate.json "${store[@]}" --run-id g1 --exit-on-wait --progress none
    cairn_is 0 ps "${store[@]}" -o json; equal "$(jq -c '.[] | [.runId,.owner,.orphaned,.steps[0].state]' out)" '["g1","nobody",false,"approval"]'
    "$CAIRN" run hold.json "${store[@]}" --run-id s1 --progress none 2>/dev/null & local alive=$!
    "$CAIRN" run hold.json "${store[@]}" --run-id s2 --progress none 2>/dev/null & local dead=$!
    wait_for step_is s1 x RUNNING; wait_for step_is s2 x RUNNING
    kill -9 $dead; wait $dead 2>/dev/null
    cairn_is 0 ps "${store[@]}" -o json
    equal "$(jq -c '[.[] | [.runId,.owner,.orphaned]] | sort' out)" '[["g1","nobody",false],["s1","pid '$alive'",false],["s2","nobody",true]]'
    has err 'driven by nobody'; has err ' recover'
    cairn_is 0 ps "${store[@]}" -o table --fields runId,owner,doing,next
    has_line out '^s2 +nobody +orphaned at x .* recover s2'; has_line out "^s1 +pid $alive +x [0-9]"; has_line out '^g1 .* approval of deploy .* approve g1'
    cairn_is 0 ps owned=yes -o name "${store[@]}"; equal "$(cat out)" s1
    touch go; wait $alive
    cairn_is 0 ps -o name "${store[@]}"; equal "$(sort out | tr '\n' ' ')" 'g1 s2 '
}
test_a_run_is_a_trace() {
    plan t '{"stepId":"a","kind":"shell","with":{"command":"echo $TRACEPARENT; test $CAIRN_ATTEMPT -ge 2"},"retry":{"maxAttempts":2,"delay":"1ms"}},{"stepId":"b","kind":"noop","dependsOn":["a"]}'
    cairn_is 0 run t.json "${store[@]}" --run-id r-1
    cairn_is 0 trace r-1 "${store[@]}"; cp out first
    local trace; trace=$(printf r-1 | sha256sum | cut -c1-32)
    equal "$(jq -r '[.resourceSpans[0].scopeSpans[0].spans[].traceId] | unique | join(" ")' first)" "$trace"
    equal "$(jq -r '[.resourceSpans[0].scopeSpans[0].spans[].name] | join(" ")' first)" 'RUN t a a b'
    local second; second=$(printf 'r-1|a|2|1' | sha256sum | cut -c1-16)
    equal "$(jq -r '.resourceSpans[0].scopeSpans[0].spans[2].spanId' first)" "$second"
    equal "$(jq -r '.resourceSpans[0].scopeSpans[0].spans[2].links[0].spanId' first)" "$(jq -r '.resourceSpans[0].scopeSpans[0].spans[1].spanId' first)"
    jq -e '.resourceSpans[0].scopeSpans[0].spans | all((.endTimeUnixNano|tonumber) >= (.startTimeUnixNano|tonumber))' first >/dev/null || fail 'a span ends before it begins'
    equal "$("$CAIRN" get r-1/a "${store[@]}" -o json | jq -r '.result | tostring' | tr -d '\n')" "00-$trace-$second-01"
    cairn_is 0 trace r-1 "${store[@]}" -o jsonl; equal "$(wc -l <out)" 1
    equal "$(jq -c . first)" "$(cat out)"
    cairn_is 5 trace nothing "${store[@]}"
}
test_inbox_shows_questions_and_how_to_answer() {
    gate_plan
    plan asks '{"stepId":"a","kind":"noop"}' '"metadata":{"requiresApproval":true},'
    cairn_is 13 run gate.json "${store[@]}" --run-id g1 --exit-on-wait --progress none
    cairn_is 13 run asks.json "${store[@]}" --run-id p1 --exit-on-wait --progress none
    cairn_is 0 inbox "${store[@]}" -o json
    equal "$(jq -c '.[] | [.target,.message]' out | tr '\n' ' ')" '["g1/deploy","ship v1.4?"] ["p1","start of the plan"] '
    jq -e '.[0].deadline > .[0].since and (.[0].approve | contains("approve g1/deploy"))' out >/dev/null || fail "$(cat out)"
    cairn_is 0 inbox "${store[@]}" -o table; has out 'in 59m'
    bash -c "$(jq -r '.[1].approve' <("$CAIRN" inbox -o json "${store[@]}")) --progress none" >/dev/null 2>&1 || fail 'the command does not work'
    cairn_is 0 inbox -o name "${store[@]}"; equal "$(cat out)" g1/deploy
    cairn_is 10 reject g1/deploy --reason no --progress none "${store[@]}"
    cairn_is 0 inbox -o name "${store[@]}"; empty out
}
test_wait_for_runs_of_other_processes() {
    hold_plan; gate_plan
    "$CAIRN" run hold.json "${store[@]}" --run-id s1 --progress none 2>/dev/null & local one=$!
    wait_for step_is s1 x RUNNING
    cairn_is 12 wait s1 --timeout 100ms "${store[@]}"; has err 'still going'
    cairn_is 0 wait s1 --for step/x=RUNNING -o name "${store[@]}"; equal "$(cat out)" s1
    "$CAIRN" wait s1 "${store[@]}" -o json >waited 2>err & local waiter=$!
    wait_for has_open $waiter store.db; touch go
    wait $waiter || fail "wait gave $?"
    equal "$(jq -c '.[] | [.runId,.status,.met]' waited)" '["s1","COMPLETED",true]'
    wait $one
    cairn_is 0 wait s1 --for status=COMPLETED --for 'step.z=SUCCESS' "${store[@]}"
    cairn_is 6 wait s1 --for status=FAILED "${store[@]}"; has err 'cannot come any more'
    plan bad '{"stepId":"a","kind":"shell","with":{"command":"exit 3"}}'
    cairn_is 10 run bad.json "${store[@]}" --run-id b1 --progress none
    cairn_is 10 wait s1 b1 "${store[@]}"; equal "$(wc -l <out)" 3 'rows and a header'
    cairn_is 0 wait s1 b1 --any "${store[@]}" -o name; equal "$(cat out)" s1
    cairn_is 13 run gate.json "${store[@]}" --run-id g1 --exit-on-wait --progress none
    cairn_is 13 wait g1 --exit-on-wait "${store[@]}"; has err 'waits for a person'; has err 'approve g1'
    cairn_is 2 wait s1 --timeout soon "${store[@]}"; cairn_is 2 wait s1 --for staus=x "${store[@]}"; cairn_is 5 wait nowhere "${store[@]}"
}
test_wait_notices_a_dead_owner() {
    hold_plan
    "$CAIRN" run hold.json "${store[@]}" --run-id s1 --progress none 2>/dev/null & local owner=$!
    wait_for step_is s1 x RUNNING
    "$CAIRN" wait s1 "${store[@]}" >waited 2>told & local waiter=$!
    wait_for has_open $waiter store.db; kill -9 $owner; wait $owner 2>/dev/null
    wait_for grep -q 'recover s1' told
    has told 'nobody drives it'
    cairn_is 13 wait s1 --exit-on-wait "${store[@]}"
    touch go; cairn_is 0 recover s1 "${store[@]}"
    wait $waiter || fail "wait gave $? after the recovery"
}
test_nothing_waits_for_what_a_step_left_in_place_of_its_artifact() {
    for what in 'mkfifo $ARTIFACTS_DIR/a' 'ln -s /dev/zero $ARTIFACTS_DIR/a' 'mkdir $ARTIFACTS_DIR/a'; do
        plan odd "$(jq -nc --arg command "$what" '{stepId: "make", kind: "shell", with: {command: $command}, artifacts: [{path: "a"}]}')"
        cairn_is 10 run odd.json "${store[@]}"; has err 'declared artifact "a" was not written'
    done
    plan good '{"stepId":"make","kind":"shell","with":{"command":"echo hello > $ARTIFACTS_DIR/a"},"artifacts":[{"path":"a"}]}'
    cairn_is 0 run good.json "${store[@]}" --run-id g1 --progress none
    rm store.db-artifacts/g1/a && mkfifo store.db-artifacts/g1/a
    cairn_is 5 artifacts cat g1 a "${store[@]}"
    cairn_is 5 artifacts get g1 a --out res "${store[@]}"
}
test_artifacts_are_listed_checked_and_copied() {
    plan ar '{"stepId":"make","kind":"shell","with":{"command":"mkdir -p $ARTIFACTS_DIR/out; echo hello > $ARTIFACTS_DIR/out/a.txt; echo two > $ARTIFACTS_DIR/b.txt"},"artifacts":[{"path":"out/a.txt","kind":"text"},{"path":"b.txt","kind":"text"}]}'
    cairn_is 0 run ar.json "${store[@]}" --run-id r1 --progress none
    cairn_is 0 artifacts ls r1 "${store[@]}" -o json; equal "$(jq -c '.[] | [.name,.stepId,.sizeBytes,.state]' out | tr '\n' ' ')" '["out/a.txt","make",6,"ok"] ["b.txt","make",4,"ok"] '
    cairn_is 0 artifacts cat r1 a.txt b.txt "${store[@]}"; equal "$(cat out)" "$(printf 'hello\ntwo')"
    cairn_is 0 artifacts get r1/make --out res "${store[@]}"; equal "$(tr '\n' ' ' <out)" 'res/a.txt res/b.txt '; equal "$(cat res/a.txt)" hello
    cairn_is 6 artifacts get r1 b.txt --out res "${store[@]}"; has err '--force'
    cairn_is 0 artifacts get r1 b.txt --out res --force "${store[@]}"
    cairn_is 5 artifacts cat r1 c.txt "${store[@]}"; has err 'did you mean b.txt?'
    echo TWO >store.db-artifacts/r1/b.txt
    cairn_is 8 artifacts ls r1 "${store[@]}" -o name; cairn_is 8 artifacts cat r1 b.txt "${store[@]}"
    cairn_is 0 artifacts cat r1 b.txt --force "${store[@]}"; equal "$(cat out)" TWO
    rm store.db-artifacts/r1/b.txt; cairn_is 5 artifacts cat r1 b.txt "${store[@]}"; has err 'is gone'
    cairn_is 0 artifacts ls r1@2 "${store[@]}" -o name; empty out
}
run_tests "$@"
