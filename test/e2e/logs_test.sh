#!/usr/bin/env bash
# cairn logs: kept per attempt, by time or grouped, while the run goes on in another process and after its engine was killed.
. "$(dirname "$0")/lib.sh"

plan() { printf '{"planId":"%s","planVersion":"1","schemaVersion":"v1.2","steps":[%s]}' "$1" "$2" >"$1.json"; }
shell() { printf '{"stepId":"%s","kind":"shell","with":{"command":"%s"},"dependsOn":[%s]%s}' "$1" "$2" "${3:-}" "${4:-}"; }

test_lines_of_all_steps_come_by_time() {
    # a line is behind another one when that one is in its log
    seen() { echo "until grep -rqsw $1 $PWD/store.db-logs; do sleep 0.03; done"; }
    plan p "$(shell build "echo b1; $(seen t1); echo b2; $(seen b2); echo bad >&2"),$(shell test "$(seen b1); echo t1" '' ''),{\"stepId\":\"n\",\"kind\":\"noop\"}"
    cairn_is 0 run p.json "${store[@]}" --run-id r1 --progress none
    cairn_is 0 logs r1 "${store[@]}"; empty err
    equal "$(cat out)" "$(printf 'build │ b1\ntest  │ t1\nbuild │ b2\nbuild ! bad')"
    cairn_is 0 logs r1 "${store[@]}" --ascii --stream stderr; equal "$(cat out)" 'build ! bad'
    cairn_is 0 logs r1 "${store[@]}" --tail 2 --stream stdout; equal "$(cat out)" "$(printf 'test  │ t1\nbuild │ b2')"
    cairn_is 0 logs r1 "${store[@]}" --grouped; equal "$(cat out)" "$(printf '== build\nb1\nb2\nbad\n\n== test\nt1')"
    cairn_is 0 logs r1 "${store[@]}" --grouped --tail 1; equal "$(cat out)" "$(printf '== build\nbad\n\n== test\nt1')"
    cairn_is 0 logs r1 "${store[@]}" --time iso --tail 1; has_line out '^20..-..-..T..:..:......Z build ! bad$'
    cairn_is 0 logs r1 "${store[@]}" --since 2999-01-01T00:00:00Z; empty out; has err 'nothing was written'
    cairn_is 0 logs r1/n "${store[@]}"; empty out
    cairn_is 5 logs r1/tset "${store[@]}"; has err 'did you mean test?'
    cairn_is 5 logs r1/test#2 "${store[@]}"; has err 'no attempt 2'
    cairn_is 2 logs r1 -f --grouped "${store[@]}"
}
test_one_step_is_printed_byte_for_byte() {
    plan p "$(shell a 'printf \"x%.0s\" $(seq 20000); printf \"\\nlast\"')"
    cairn_is 0 run p.json "${store[@]}" --run-id r1 --progress none
    cairn_is 0 logs r1/a "${store[@]}"
    (printf 'x%.0s' $(seq 20000); printf '\nlast') | cmp - out || fail 'not the same bytes'
    cairn_is 0 logs r1 -o jsonl "${store[@]}"
    jq -se 'map(select(.text)) | length == 4 and all(.[]; .stepId == "a" and .stream == "stdout" and .runId == "r1")' out >/dev/null || fail "$(cut -c1-200 out)"
    equal "$(tail -n 1 out | jq -c '[.state,.lines]')" '["complete",4]'
}
test_attempts_are_kept_apart() {
    plan p "$(shell a 'echo try $CAIRN_ATTEMPT; [ $CAIRN_ATTEMPT = 2 ]' '' ',"retry":{"maxAttempts":3,"delay":"1ms"}')"
    cairn_is 0 run p.json "${store[@]}" --run-id r1 --progress none
    cairn_is 0 logs r1/a#1 "${store[@]}"; equal "$(cat out)" 'try 1'
    cairn_is 0 logs r1/a#2 "${store[@]}"; equal "$(cat out)" 'try 2'
    cairn_is 0 logs r1/a "${store[@]}"; equal "$(cat out)" "$(printf 'a   │ try 1\na#2 │ try 2')"
}
test_follow_a_run_of_another_process() {
    plan p "$(shell a 'echo one; until [ -e go ]; do sleep 0.02; done; echo two'),$(shell b 'echo three; exit 3' '"a"')"
    "$CAIRN" run p.json "${store[@]}" --run-id r1 --progress none 2>/dev/null &
    wait_for test -e store.db-logs/r1/a.1.1.log
    "$CAIRN" logs -f r1 "${store[@]}" >followed 2>err & local follower=$!
    wait_for grep -q one followed
    hasnt followed two
    touch go
    local rc=0; wait $follower || rc=$?
    equal $rc 10 'exit code of the run'
    equal "$(cat followed)" "$(printf 'a │ one\na │ two\nb │ three')"
    wait
}
test_killed_engine_leaves_a_log_that_is_told_lost() {
    plan p "$(shell a 'echo up $CAIRN_ENGINE_ATTEMPT; until [ -e go ]; do sleep 0.02; done; echo done')"
    for url in sqlite:$PWD/k.db files:$PWD/kf; do
        rm -f go; store=(--store "$url")
        "$CAIRN" run p.json "${store[@]}" --run-id r1 --progress none 2>/dev/null & local pid=$!
        wait_for grep -rqs 'out up 1' kf/r1/logs k.db-logs/r1
        wait_for sh -c "'$CAIRN' logs r1/a --store $url | grep -q up"
        equal "$("$CAIRN" logs r1 "${store[@]}" -o jsonl | tail -n 1 | jq -r .state)" live
        kill -9 $pid; wait $pid 2>/dev/null
        cairn_is 0 logs r1/a "${store[@]}"; equal "$(cat out)" 'up 1'; has err 'not whole: the process that ran it is gone'
        "$CAIRN" logs -f r1 "${store[@]}" >followed 2>told & local follower=$!
        wait_for grep -q 'recover r1' told
        has told 'nobody drives it'
        touch go
        cairn_is 0 recover r1 "${store[@]}"
        wait $follower || fail "the follower gave $?"
        equal "$(cat followed)" "$(printf 'a │ up 1\na#1.2 │ up 2\na#1.2 │ done')"
        has told 'not whole: the engine died'
        cairn_is 0 logs r1 "${store[@]}" -o jsonl
        equal "$(jq -c 'select(.state) | [.engineAttempt,.state]' out | tr '\n' ' ')" '[1,"lost"] [2,"complete"] '
    done
}
test_children_are_shown_when_asked_for() {
    printf 'name: child\nnodes:\n  - {id: c, bash: "echo from below"}\n' >child.yaml
    plan p '{"stepId":"up","kind":"shell","with":{"command":"echo from above"}},{"stepId":"kid","kind":"subrun","with":{"document":"child.yaml"}}'
    "$CAIRN" run p.json "${store[@]}" --run-id r1 --progress none 2>err || skip "no such subrun: $(cat err)"
    cairn_is 0 logs r1 "${store[@]}"; hasnt out below
    cairn_is 0 logs r1 --children "${store[@]}"; has out 'kid/c │ from below'; has out 'from above'
}
test_limit_is_told() {
    plan p "$(shell a 'yes abcdefghijklmnopqrstuvwxyz012345678901234567890 | head -n 400000; echo the end >&2' '' ',"output":{"on_overflow":"truncate"}')"
    cairn_is 0 run p.json "${store[@]}" --run-id r1 --progress none
    [ "$(stat -c %s store.db-logs/r1/a.1.1.log)" -le 16777216 ] || fail 'too large'
    cairn_is 0 logs r1/a --tail 1 "${store[@]}"; has err 'was cut at 167'; has out abcdef
}
test_memory_keeps_none_and_disk_full_stops_nothing() {
    plan p "$(shell a 'echo hi')"
    cairn_is 0 run p.json --store memory: --progress none
    mkdir store.db-logs; chmod 500 store.db-logs; [ -w store.db-logs ] && rmdir store.db-logs && touch store.db-logs
    cairn_is 0 run p.json "${store[@]}" --run-id r1 --progress none -o json; equal "$(jq -r '.steps[0].result' out)" hi
    has err 'log of a step is lost'
}
test_control_characters_do_not_reach_a_terminal() {
    plan p "$(shell a 'printf \"\\\\033[31mred\\\\007\\\\n\"')"
    cairn_is 0 run p.json "${store[@]}" --run-id r1 --progress none
    cairn_is 0 logs r1/a "${store[@]}"; equal "$(od -An -c out | tr -d ' \n')" '033[31mred\a\n'
    python3 "$e2e/terminal.py" -- "$CAIRN" logs r1/a "${store[@]}" >screen; has screen '\x1b[31mred\x07'
}
run_tests "$@"
