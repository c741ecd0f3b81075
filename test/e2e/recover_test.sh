#!/usr/bin/env bash
# Death and recovery of the real binary: kill -9 in the middle, twice, during recovery; orphans; parked runs.
. "$(dirname "$0")/lib.sh"

start() { "$CAIRN" run "$@" "${store[@]}" --progress none >/dev/null 2>run.err </dev/null & pid=$!; }
kill_it() { kill -9 $pid; wait $pid 2>/dev/null; }
each_store() { for url in "sqlite:$PWD/s.db" "files:$PWD/f"; do store=(--store "$url"); "$@" "${url%%:*}"; rm -rf ran; done; }

finish_after_kill() {
    held_plan b
    start slow.json --run-id k-1
    wait_for step_is k-1 b RUNNING
    kill_it
    cairn_is 0 get k-1 "${store[@]}"; has out 'nobody'
    cairn_is 0 recover "${store[@]}"; has err '1 completed'
    equal "$(times_ran a) $(times_ran b) $(times_ran c)" '1 2 1' "$1: times run"
    equal "$("$CAIRN" get k-1 "${store[@]}" -o json | jq -r '.steps[2].result')" $'a-is-up\nA B' 'output from the log'
    equal "$("$CAIRN" events k-1 "${store[@]}" -o jsonl | jq -r 'select(.eventType=="StepRedispatched") | .engineAttemptId')" 2 'engineAttemptId'
    equal "$(count_of k-1 StepCompleted) $(count_of k-1 RunCompleted)" '3 1'
    intact
}
test_recover_finishes_a_killed_run() { each_store finish_after_kill; }
same_id_after_kill() {
    held_plan b
    start slow.json --run-id k-1
    wait_for step_is k-1 b RUNNING
    kill_it
    cairn_is 0 run slow.json "${store[@]}" --run-id k-1
    equal "$(times_ran a) $(times_ran b) $(times_ran c)" '1 2 1' "$1: times run"
    intact
}
test_same_run_id_finishes_a_killed_run() { each_store same_id_after_kill; }
killed_twice() {
    held_until=3 held_plan b
    start slow.json --run-id k-1
    wait_for step_is k-1 b RUNNING
    kill_it
    # Killed again while recovering, in the middle of the same step.
    "$CAIRN" recover "${store[@]}" --progress none & pid=$!
    wait_for sh -c '[ "$(wc -l < ran/b)" = 2 ]'
    kill_it
    cairn_is 0 recover "${store[@]}"
    equal "$(times_ran a) $(times_ran b) $(times_ran c)" '1 3 1' "$1: times run"
    equal "$("$CAIRN" events k-1 "${store[@]}" -o jsonl | jq -r 'select(.eventType=="StepRedispatched") | .engineAttemptId' | tr '\n' ' ')" '2 3 '
    intact
}
test_killed_again_during_recovery() { each_store killed_twice; }
test_killed_between_attempts() {
    echo '{"planId":"r","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":"echo x >> tries; test $(wc -l < tries) -ge 2"},"retry":{"maxAttempts":3,"delay":"1500ms"}}]}' >r.json
    start r.json --run-id r-1
    wait_for sh -c "'$CAIRN' events r-1 ${store[*]} -o jsonl | grep -q StepDelayed"
    kill_it
    cairn_is 0 recover "${store[@]}"
    equal "$(wc -l <tries)" 2; equal "$(count_of r-1 StepStarted) $(count_of r-1 StepRedispatched)" '2 0'
    intact
}
test_orphans_are_gone_before_their_step_runs_again() {
    # A child that ignores the death of its engine must not run beside its successor.
    echo '{"planId":"o","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":"mkdir lock || { echo two at once >&2; exit 1; }; trap \"rmdir lock; exit 1\" TERM; echo $$ >> pids; if [ $(wc -l < pids) -ge 2 ]; then rmdir lock; exit 0; fi; (setsid sleep 30 & echo $! >> strays); sleep 30 & wait"}}]}' >o.json
    start o.json --run-id o-1
    wait_for test -s strays
    kill_it
    rmdir lock 2>/dev/null
    cairn_is 0 recover "${store[@]}"
    # A dead process whose parent has not fetched its status yet (state Z) is gone for us.
    for p in $(cat strays) $(head -n 1 pids); do grep -qs ') [^Z] ' "/proc/$p/stat" && fail "process $p is still there"; done
    intact
}
test_parked_runs_are_listed_and_left() {
    echo '{"planId":"g","planVersion":"1","steps":[{"stepId":"g","kind":"approval"}]}' >g.json
    held_plan a
    cairn_is 13 run g.json "${store[@]}" --run-id gate-1 --exit-on-wait
    start slow.json --run-id paused-1
    wait_for step_is paused-1 a RUNNING
    kill -INT $pid; wait_for status_is paused-1 PAUSED; touch go; wait $pid
    held_plan b
    start slow.json --run-id dead-1
    wait_for step_is dead-1 b RUNNING
    kill_it
    cairn_is 0 recover "${store[@]}" -o json
    has err 'left: gate-1'; has err 'approve gate-1'; has err 'left: paused-1'; has err 'resume paused-1'
    equal "$(jq -c '[.[]|[.runId,.result,.status]]|sort' out)" '[["dead-1","recovered","COMPLETED"],["gate-1","left","RUNNING"],["paused-1","left","PAUSED"]]'
    status_is gate-1 RUNNING && status_is paused-1 PAUSED && status_is dead-1 COMPLETED || fail "states"
    cairn_is 0 recover "${store[@]}"; has err '2 left for a person'
    intact
}
test_recover_says_which_run_failed() {
    echo '{"planId":"f","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":"echo x >> tries; test $(wc -l < tries) -lt 2 || exit 1; sleep 20"}}]}' >f.json
    start f.json --run-id f-1
    wait_for test -s tries
    kill_it
    cairn_is 10 recover "${store[@]}"; has err 'run f-1 FAILED at a'
}
test_recover_named_runs_only() {
    held_plan a
    for id in x-1 x-2; do start slow.json --run-id $id; wait_for step_is $id a RUNNING; kill_it; done
    cairn_is 0 recover x-1 "${store[@]}"; status_is x-1 COMPLETED && status_is x-2 RUNNING || fail "states"
    cairn_is 0 recover x-2 "${store[@]}"; cairn_is 0 recover x-2 "${store[@]}"; has err 'has ended: COMPLETED'
    cairn_is 5 recover nosuch "${store[@]}"
}
test_recover_with_nothing_to_do() {
    echo '{"planId":"n","planVersion":"1","steps":[{"stepId":"a","kind":"noop"}]}' >n.json
    cairn_is 0 run n.json "${store[@]}" --progress none
    cairn_is 0 recover "${store[@]}"; has err '0 unfinished runs'
    cairn_is 0 recover
}
test_many_runs_are_recovered_together() {
    echo '{"planId":"m","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":"echo x >> ran-$WORKFLOW_ID; [ $CAIRN_ENGINE_ATTEMPT -ge 2 ] || sleep 60; echo x >> again-$WORKFLOW_ID; until [ $(ls again-* | wc -l) = 12 ]; do sleep 0.05; done"}},{"stepId":"b","kind":"noop"}]}' >m.json
    pids=
    for i in $(seq 12); do "$CAIRN" run m.json "${store[@]}" --run-id "m-$i" --progress none & pids="$pids $!"; done
    for i in $(seq 12); do wait_for test -s "ran-m-$i"; done
    kill -9 $pids; wait 2>/dev/null
    cairn_is 0 recover "${store[@]}"; has err '12 completed' # each of them waits for all the others
    intact
}
test_subruns_survive() {
    printf 'name: child\nnodes:\n  - {id: x, bash: "echo x >> x.ran; [ $CAIRN_ENGINE_ATTEMPT -ge 2 ] || sleep 60; echo deep"}\n  - {id: y, bash: "echo x >> y.ran; echo $x.output", depends_on: [x]}\n' >child.yaml
    printf 'name: parent\nnodes:\n  - {id: p, bash: "echo x >> p.ran"}\n  - {id: s, workflow: child, depends_on: [p]}\n  - {id: z, bash: "echo x >> z.ran", depends_on: [s]}\n' >parent.yaml
    start parent.yaml --run-id par-1
    wait_for test -s x.ran
    kill_it
    cairn_is 0 recover "${store[@]}"
    status_is par-1 COMPLETED && status_is par-1.s.1 COMPLETED || fail "states"
    equal "$(wc -l <p.ran) $(wc -l <x.ran) $(wc -l <y.ran) $(wc -l <z.ran)" '1 2 1 1'
    intact
}
test_the_same_bytes_after_the_files_changed() {
    echo 'import time; open("v","a").write("old\n"); time.sleep(60 if open("v").read().count("\n") < 2 else 0)' >s.py
    printf 'name: w\nnodes:\n  - {id: a, script: s.py, runtime: python3}\n  - {id: b, bash: "echo old > b", depends_on: [a]}\n' >w.yaml
    start w.yaml --run-id w-1
    wait_for test -s v
    kill_it
    echo 'open("v","a").write("new\n")' >s.py
    sed -i 's/echo old/echo new/' w.yaml
    cairn_is 6 run w.yaml "${store[@]}" --run-id w-1
    cairn_is 0 recover "${store[@]}"
    equal "$(tr '\n' ' ' <v)$(cat b)" 'old old old'
}
test_signals_posted_before_the_crash_are_decided_once() {
    held_plan a
    start slow.json --run-id s-1
    wait_for step_is s-1 a RUNNING
    cairn_is 0 pause s-1 "${store[@]}"
    kill_it
    cairn_is 0 recover "${store[@]}"; has err 'left: s-1'
    equal "$(count_of s-1 RunPaused)" 1
    cairn_is 0 resume s-1 "${store[@]}"
    equal "$(times_ran c)" 1; intact
}

# The step's parent is the engine: each one that takes the run up dies of it. Between two of them the clock goes on by half a minute, as
# long as a step rests at most.
test_a_step_that_kills_every_engine_fails_in_the_end() {
    "${CC:-cc}" -shared -fPIC -o clock.so "$root/test/e2e/clock_shim.c" -ldl || fail 'the shim does not compile'
    printf 'name: poison\nnodes:\n  - {id: a, bash: "echo >> ran; kill -9 $PPID; sleep 30"}\n' >poison.yaml
    start poison.yaml --run-id p-1
    wait $pid 2>/dev/null
    for k in $(seq 1 25); do
        echo $((k * 30)) >clock
        LD_PRELOAD=$PWD/clock.so CLOCK_FILE=$PWD/clock \
            "$CAIRN" recover "${store[@]}" --progress none >/dev/null 2>&1 && break
        status_is p-1 FAILED && break
    done
    status_is p-1 FAILED || fail "it goes on for ever"
    equal "$(wc -l <ran)" 20 'engines that died of it'
    equal "$("$CAIRN" get p-1 "${store[@]}" -o json | jq -r '.rootCause.error.code')" WORKER_LOST 'and the run says so'
    intact
}

told_rests() { "$CAIRN" events p-1 --ledger "${store[@]}" | grep -q ATTEMPT_RESTS; }
# An engine that lives and waits says why, and until when.
test_why_says_that_an_attempt_rests() {
    "${CC:-cc}" -shared -fPIC -o clock.so "$root/test/e2e/clock_shim.c" -ldl || fail 'the shim does not compile'
    printf 'name: poison\nnodes:\n  - {id: a, bash: "[ -e well ] || kill -9 $PPID; sleep 0.1"}\n' >poison.yaml
    start poison.yaml --run-id p-1
    wait $pid 2>/dev/null
    clocked=(env "LD_PRELOAD=$PWD/clock.so" "CLOCK_FILE=$PWD/clock" "$CAIRN" recover "${store[@]}" --progress none)
    for k in 1 2 3 4 5 6 7; do
        echo $((k * 30)) >clock
        "${clocked[@]}" >/dev/null 2>&1
    done
    touch well
    "${clocked[@]}" >/dev/null 2>&1 & pid=$! # the eighth loss is found: it rests for a quarter of a minute at least
    wait_for told_rests
    cairn_is 0 why p-1/a "${store[@]}"
    has out 'a rests: 8 engines or workers in a row were gone within a minute of beginning it; it runs again at '
    cairn_is 0 get p-1 "${store[@]}"
    has out 'redispatched 7 times, rests'
    echo 240 >clock # the end of the rest
    wait $pid
    status_is p-1 COMPLETED || fail 'it did not go on'
    intact
}

run_tests "$@"
