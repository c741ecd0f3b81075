#!/usr/bin/env bash
# cairn why, through the binary: every state a step can be in, at every event of the log, after a kill, in terminals.
. "$(dirname "$0")/lib.sh"

why() { cairn_is 0 why "$@" "${store[@]}"; }
field() { "$CAIRN" why "$1" "${store[@]}" -o json | jq -rc "$2"; }
is() { equal "$(field "$1" "$2")" "$3" "$1 $2"; }
# Every step of the run at every event: an answer, and deciding again gives what is recorded.
always_reproduced() {
    local run=$1 last step seq
    last=$("$CAIRN" events "$run" "${store[@]}" -o jsonl | wc -l)
    for step in "" $("$CAIRN" get "$run" "${store[@]}" -o json | jq -r '.steps[].stepId'); do
        for seq in $(seq 0 "$last"); do
            "$CAIRN" why "$run${step:+/$step}@$seq" "${store[@]}" -o json || fail "no answer for $run/$step@$seq"
        done
    done >answers
    jq -c 'select((.reproduced and (.verdict | length > 8) and (.reason | length > 2)) | not)' answers >odd
    empty odd
}

test_waiting_running_done_at_every_event() {
    cairn_is 0 run "$root/examples/joins.yaml" "${store[@]}" --run-id joins --progress none
    why joins/not-taken; has out 'was skipped: its condition is false'; has out "→ false"; has out 'proof'
    is joins/not-taken .when.result false
    is joins/join '.rule|[.name,.passes]|tojson' '["none_failed_min_one_success",true]'
    always_reproduced joins
}
test_retry_delay_then_given_up() {
    cat >p.json <<'P'
{"planId":"p","planVersion":"1","schemaVersion":"v1.2","steps":[
 {"stepId":"load","kind":"shell","with":{"command":"echo no luck >&2; exit 7"},"retry":{"maxAttempts":2,"delay":"1h"}},
 {"stepId":"use","kind":"echo","with":{"message":"x"},"dependsOn":["load"]}]}
P
    "$CAIRN" run p.json "${store[@]}" --run-id r-1 --progress none >/dev/null 2>&1 & pid=$!
    is_retrying() { [ "$(field r-1/load .state 2>/dev/null)" = retrying ]; }
    wait_for is_retrying
    is r-1/load .retry.next.attempt 2
    is r-1/use .cause.step load
    is r-1/load .owner.pid $pid
    kill -9 $pid; wait $pid 2>/dev/null
    sed -i 's/"1h"/"1ms"/' p.json
    cairn_is 10 run p.json --store "sqlite:$PWD/second.db" --run-id r-1 --progress none
    store=(--store "sqlite:$PWD/second.db")
    is r-1/load '[.state,.reason,(.attempts|length),.attempts[1].error.exitCode]|tojson' '["failed","MAX_ATTEMPTS",2,7]'
    why r-1/load; has out 'all 2 attempts are used up'; has out '| no luck'
    is r-1/use '[.state,.reason,.cause.step]|tojson' '["skipped","DEPENDENCY_FAILED","load"]'
    why r-1; has out 'FAILED at load: EXIT_NONZERO exit 7'
    always_reproduced r-1
}
test_killed_in_the_middle_nobody_owns_it_then_redispatched() {
    held_plan a
    setsid "$CAIRN" run slow.json "${store[@]}" --run-id k-1 --progress none >/dev/null 2>&1 & pid=$!
    wait_for step_is k-1 a RUNNING
    kill -9 -- -$pid; wait $pid 2>/dev/null
    is k-1/a '[.state,.owner.alive]|tojson' '["running",false]'
    why k-1/a; has out 'nobody: no process drives this run now'; has_line out 'next +.*cairn recover k-1'
    why k-1; has_line out 'recover k-1'
    cairn_is 0 recover "${store[@]}" --progress none
    is k-1/a '.attempts[0]|[.attempt,.redispatched]|tojson' '[1,1]'
    why k-1/a; has out 'dispatched again 1 time after a crash'
    is k-1/a .owner null
    always_reproduced k-1
}
test_held_then_skipped_by_a_person() {
    cairn_is 13 run "$root/examples/hold.json" "${store[@]}" --set gate="$PWD/none" --run-id h-1 --exit-on-wait --progress none
    is h-1/load '[.state,.reason]|tojson' '["held","ON_FAILURE_HOLD"]'
    why h-1/report; has out 'report waits for load (held).'; has out 'because'
    "$CAIRN" why h-1/load "${store[@]}" | sed -n 's/^ *next *//p' >next
    has_line next 'retry h-1/load'
    cairn_is 0 skip h-1/load "${store[@]}" --reason 'loaded by hand' --progress none
    why h-1/load; has out 'loaded by hand'; has_line out 'person +SKIP_STEP of load accepted'
    is h-1/load '.signals[0]|[.type,.decision,(.decisionId|length)]|tojson' '["SKIP_STEP","ACCEPTED",36]'
    is h-1/load@"$(field h-1/load '.attempts[0].endSeq')" .state held
    always_reproduced h-1
}
test_approval_waiting_and_answered() {
    cairn_is 13 run "$root/examples/approval.yaml" "${store[@]}" --run-id a-1 --exit-on-wait --progress none
    is a-1/deploy '[.state,.gate.role]|tojson' '["approval","Operator"]'
    why a-1; has out 'waits for a person to answer deploy'
    # The command it names works as it stands.
    next=$("$CAIRN" why a-1/deploy "${store[@]}" | sed -n 's/^ *next *//p'); [[ $next = *"approve a-1/deploy"* ]] || fail "next is $next"
    bash -c "$next --progress none" >out 2>err || fail "$next: $(cat err)"
    is a-1/deploy '[.state,.reason,.gate.answer.approved]|tojson' '["done","APPROVED",true]'
}
test_paused_and_cancelled() {
    held_plan a
    "$CAIRN" run slow.json "${store[@]}" --run-id c-1 --progress none >/dev/null 2>&1 & pid=$!
    wait_for step_is c-1 a RUNNING
    cairn_is 0 pause c-1 "${store[@]}" --reason 'disk is full'
    is c-1 '[.reason,.pause.inFlight,.pause.reason]|tojson' '["DRAINING",1,"disk is full"]'
    cairn_is 0 cancel c-1 "${store[@]}" --reason 'wrong branch'
    wait $pid
    is c-1/a '[.state,.reason]|tojson' '["cancelled","RUN_CANCELLED"]'
    is c-1/c .state cancelled
    why c-1/c; has out 'wrong branch'
}
test_loop_child_in_past_rounds() {
    cat >l.yaml <<'P'
name: l
nodes:
  - id: poll
    loop_group:
      max_iterations: 4
      until_bash: '[ "$(cat n)" -ge 3 ]'
      nodes:
        - {id: fetch, bash: 'echo x >> t; wc -l < t > n; cat n'}
        - {id: big, bash: 'echo big', depends_on: [fetch], when: "$fetch.output >= 3"}
P
    cairn_is 0 run l.yaml "${store[@]}" --run-id l-1 --progress none
    is 'l-1/poll[1].big' '[.state,.when.atoms[0].left,.when.result]|tojson' '["skipped","1",false]'
    is 'l-1/poll[3].big' '[.state,.when.atoms[0].left]|tojson' '["done","3"]'
    is 'l-1/poll[4].big' '[.state,.reason]|tojson' '["not_run","LOOP_ENDED"]'
    is l-1/poll '[.state,.loop.iteration,.loop.until.holds]|tojson' '["done",3,true]'
    cairn_is 5 why l-1/big "${store[@]}"; has err 'inside a loop'; has err 'poll[3].big'
    cairn_is 5 why l-1/pol "${store[@]}"; has err 'did you mean poll?'
    always_reproduced l-1
}
test_child_run_is_pointed_to() {
    printf 'name: kid\nnodes:\n  - {id: boom, bash: "exit 3"}\n' >kid.yaml
    printf 'name: top\nnodes:\n  - {id: call, workflow: kid.yaml}\n  - {id: end, bash: x, depends_on: [call]}\n' >top.yaml
    cairn_is 10 run top.yaml "${store[@]}" --run-id t-1 --progress none
    why t-1/call; has out 'child run   t-1.call.1'; has_line out 'why t-1\.call\.1'
    why t-1.call.1; has out 'FAILED at boom: EXIT_NONZERO exit 3'
}
test_reused_results_name_their_run() {
    printf '{"planId":"p","planVersion":"1","schemaVersion":"v1.2","steps":[{"stepId":"a","kind":"echo","with":{"message":"x"}},{"stepId":"b","kind":"shell","with":{"command":"test -e go"},"dependsOn":["a"]}]}' >p.json
    cairn_is 10 run p.json "${store[@]}" --run-id u-1 --progress none
    touch go
    cairn_is 0 retry u-1 "${store[@]}" --progress none -o name
    new=$(head -n 1 out)
    is "$new/a" '[.state,.reusedFrom]|tojson' '["reused","u-1"]'
    always_reproduced "$new"
    is u-1 '.signals[0].type' RETRY_RUN
}
# A terminal of 60 columns has no wider line, but for commands to paste; without colours and UTF-8 it is plain ASCII.
test_terminals() {
    cairn_is 0 run "$root/examples/joins.yaml" "${store[@]}" --run-id joins --progress none
    python3 "$e2e/terminal.py" --size 24x60 -- "$CAIRN" why joins/join "${store[@]}" >screen
    grep -q $'\x1b\\[' screen || fail 'a terminal gets colours'
    sed 's/\x1b\[[0-9;]*m//g; s/\r//' screen | grep -v ' next ' | awk 'length($0) > 60 { exit 1 }' || fail "wider than 60: $(cat screen)"
    NO_COLOR=1 LC_ALL=C python3 "$e2e/terminal.py" --size 24x200 -- "$CAIRN" why joins/not-taken "${store[@]}" >screen
    LC_ALL=C grep -q '[^ -~[:space:]]' screen && fail "not plain ASCII: $(cat -v screen)"
    has screen '- skipped'; has screen "-> 'staging' == 'production' -> false"
}
test_formats_and_mistakes() {
    cairn_is 0 run "$root/examples/hello.json" "${store[@]}" --run-id hello --progress none
    why hello/greet -o yaml; has out 'state: done'
    cairn_is 2 why hello@99 "${store[@]}"; has err 'the log ends at event'
    cairn_is 2 why 'hello/greet#1' "${store[@]}"
    cairn_is 5 why nope/x "${store[@]}"
    why hello@0; has out 'has not started'
}

run_tests "$@"
