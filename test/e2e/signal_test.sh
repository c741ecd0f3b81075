#!/usr/bin/env bash
# Signals: from a second process, to runs that nobody owns, at most once, with their decision records; and ^C.
. "$(dirname "$0")/lib.sh"

start() { "$CAIRN" run "$@" "${store[@]}" --progress plain >run.out 2>run.err </dev/null & pid=$!; }
ends() { local rc=0; wait $pid || rc=$?; equal "$rc" "$1" "exit of the run ($(tail -n 2 run.err | tr '\n' ' '))"; }
hold_plan() {
    cat >hold.json <<'PLAN'
{"planId":"hold","planVersion":"1","metadata":{"onStepFailure":"hold"},"steps":[
 {"stepId":"a","kind":"shell","with":{"command":"echo x >> a.ran; test -e gate"},"dependsOn":[]},
 {"stepId":"b","kind":"echo","with":{"message":"b"},"dependsOn":["a"],"triggerRule":"all_done"}]}
PLAN
}
gate_plan() { echo '{"planId":"gate","planVersion":"1","steps":[{"stepId":"g","kind":"approval","dependsOn":[]},{"stepId":"h","kind":"approval","dependsOn":["g"]},{"stepId":"z","kind":"noop","dependsOn":["h"]}]}' >gate.json; }

test_pause_and_resume_from_another_process_twice_RE_4_3d() {
    slow_plan 0.5; sed -i '/"a"/s/sleep 0.5/until [ -e ga ]; do sleep 0.02; done/; /"b"/s/sleep 0.5/until [ -e gb ]; do sleep 0.02; done/' slow.json
    start slow.json --run-id s-1
    wait_for step_is s-1 a RUNNING
    cairn_is 0 pause s-1 "${store[@]}" --reason 'out for lunch'; has_line out 'PAUSE accepted: run s-1, event [0-9]+'
    cairn_is 0 get s-1 "${store[@]}"; has out 'PAUSED'; has out 'out for lunch'
    touch ga
    wait_for step_is s-1 a SUCCESS
    cairn_is 0 get s-1 "${store[@]}"; hasnt out DRAINING
    equal "$(times_ran b)" 0 'b while paused'
    cairn_is 0 resume s-1 "${store[@]}" --reason 'back from lunch'; has out 'RESUME accepted'
    wait_for step_is s-1 b RUNNING
    cairn_is 0 pause s-1 "${store[@]}"
    touch gb
    wait_for step_is s-1 b SUCCESS
    equal "$(times_ran c)" 0 'c while paused'
    cairn_is 0 resume s-1 "${store[@]}"
    ends 0
    equal "$(count_of s-1 RunPaused) $(count_of s-1 RunResumed) $(count_of s-1 SignalAccepted)" '2 2 4'
    cairn_is 0 events s-1 "${store[@]}" -o jsonl
    equal "$(jq -r 'select(.eventType | test("Run(Paused|Resumed)")) | .payload.reason // "-"' out | tr '\n' ,)" 'out for lunch,back from lunch,-,-,'
    intact
}
test_draining_shows_how_many_steps_are_in_flight() {
    echo '{"planId":"d","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":"until [ -e go ]; do sleep 0.02; done"},"dependsOn":[]},{"stepId":"b","kind":"shell","with":{"command":"until [ -e go ]; do sleep 0.02; done"},"dependsOn":[]},{"stepId":"c","kind":"noop","dependsOn":["a","b"]}]}' >d.json
    start d.json --run-id d-1
    wait_for step_is d-1 b RUNNING
    cairn_is 0 pause d-1 "${store[@]}"
    cairn_is 0 get d-1 "${store[@]}"; has out 'DRAINING: 2 steps in flight'
    cairn_is 0 ls "${store[@]}" -o json; equal "$(jq -r '.[0].substatus' out)" DRAINING
    touch go
    wait_for step_is d-1 a SUCCESS; wait_for step_is d-1 b SUCCESS
    cairn_is 0 get d-1 "${store[@]}"; hasnt out DRAINING
    cairn_is 0 resume d-1 "${store[@]}"; ends 0
}
test_pause_of_a_paused_run_is_rejected() {
    held_plan a
    start slow.json --run-id s-1
    wait_for step_is s-1 a RUNNING
    cairn_is 0 pause s-1 "${store[@]}"
    cairn_is 6 pause s-1 "${store[@]}"; has err 'RUN_ALREADY_PAUSED'
    cairn_is 0 resume s-1 "${store[@]}"
    cairn_is 6 resume s-1 "${store[@]}"; has err 'RUN_NOT_PAUSED'
    touch go; ends 0
    cairn_is 6 pause s-1 "${store[@]}"; has err 'RUN_TERMINAL'
    cairn_is 5 pause nosuch "${store[@]}"
    intact
}
test_cancel_from_another_process() {
    slow_plan 20
    start slow.json --run-id s-1
    wait_for step_is s-1 a RUNNING
    cairn_is 0 cancel s-1 "${store[@]}" --reason 'wrong branch'
    ends 11
    has run.err 'wrong branch'; status_is s-1 CANCELLED || fail "not CANCELLED"
    equal "$(count_of s-1 RunCancelled)" 1
    cairn_is 6 cancel s-1 "${store[@]}"; has err RUN_TERMINAL; has err 'retry s-1'
    intact
}
test_cancel_of_a_run_that_nobody_owns() {
    gate_plan
    cairn_is 13 run gate.json "${store[@]}" --run-id g-1 --exit-on-wait
    cairn_is 0 cancel g-1 "${store[@]}"; status_is g-1 CANCELLED || fail "not CANCELLED"
}
test_emergency_stop_needs_a_reason() {
    slow_plan 20
    start slow.json --run-id s-1
    wait_for step_is s-1 a RUNNING
    cairn_is 2 signal s-1 EMERGENCY_STOP "${store[@]}"; has err '--reason'
    cairn_is 2 cancel s-1 --emergency "${store[@]}"; has err '--reason'
    cairn_is 0 signal s-1 EMERGENCY_STOP --reason 'wrong cluster' "${store[@]}"
    ends 11
    status_is s-1 CANCELLED || fail "not CANCELLED"
}
test_hold_then_retry_the_step() {
    hold_plan
    cairn_is 13 run hold.json "${store[@]}" --run-id h-1 --exit-on-wait; has err RETRYING; has err 'retry h-1/a'
    cairn_is 0 get h-1 "${store[@]}"; has out '◆ held'
    cairn_is 13 retry h-1 --step a "${store[@]}"; equal "$(wc -l <a.ran)" 2
    touch gate
    cairn_is 0 retry h-1/a "${store[@]}" --reason 'it is back'; has out 'RETRY_STEP accepted'; has err COMPLETED
    cairn_is 0 events h-1 "${store[@]}" --ledger -o jsonl
    equal "$(jq -r 'select(.signalType == "RETRY_STEP" and .audit) | .audit.reason // "-"' out | tr '\n' ,)" '-,it is back,'
    equal "$(wc -l <a.ran)" 3; status_is h-1 COMPLETED || fail "not COMPLETED"
    intact
}
test_hold_then_skip_the_step() {
    hold_plan
    cairn_is 13 run hold.json "${store[@]}" --run-id h-1 --exit-on-wait
    cairn_is 2 skip h-1 "${store[@]}"; has err 'needs a step'
    cairn_is 0 skip h-1/a --reason 'by hand' "${store[@]}"; status_is h-1 COMPLETED || fail "not COMPLETED"
    cairn_is 0 get h-1 "${store[@]}"; has out 'by hand'
    intact
}
test_hold_is_answered_while_it_runs() {
    hold_plan
    start hold.json --run-id h-1
    wait_for grep -q 'step=a status=FAILED' run.err
    touch gate
    cairn_is 0 retry h-1 --step a "${store[@]}"; ends 0
}
test_retry_of_an_ended_run_is_a_new_run() {
    echo '{"planId":"r","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":"echo x >> a.ran; echo A"}},{"stepId":"b","kind":"shell","with":{"command":"echo x >> b.ran; test -e gate && echo $a.output"}}]}' >r.json
    cairn_is 10 run r.json "${store[@]}" --run-id r-1
    cairn_is 10 retry r-1 "${store[@]}"
    touch gate
    cairn_is 0 retry r-1 "${store[@]}"; has out 'new run'
    new=$(sed -n 's/.*new run \([^ ]*\).*/\1/p' out)
    status_is "$new" COMPLETED || fail "$new is not COMPLETED"; status_is r-1 FAILED || fail "the old run changed"
    equal "$(wc -l <a.ran) $(wc -l <b.ran)" '1 3' 'a was reused'
    cairn_is 0 get "$new" "${store[@]}"; has out 'again of  r-1'; has out 'reused from r-1'
    cairn_is 0 retry r-1 "${store[@]}" -o name --progress none; status_is "$(cat out)" COMPLETED || fail "-o name is not the new run"
    intact
}
test_approve_and_reject() {
    gate_plan
    cairn_is 13 run gate.json "${store[@]}" --run-id g-1 --exit-on-wait; has err 'approve g-1/g'
    cairn_is 5 approve g-1/nosuch "${store[@]}"; has err STEP_NOT_FOUND
    cairn_is 6 approve g-1/h "${store[@]}"; has err STEP_NOT_RUNNING
    cairn_is 13 approve g-1 "${store[@]}" --reason fine --field ticket=OPS-1 --field n=3; has err WAITING_APPROVAL
    equal "$("$CAIRN" get g-1 "${store[@]}" -o json | jq -c '.steps[0].result.fields, .steps[0].result.reason')" $'{"n":3,"ticket":"OPS-1"}\n"fine"'
    cairn_is 10 reject g-1/h "${store[@]}" --reason 'not on Friday'; status_is g-1 FAILED || fail "not FAILED"; has err 'not on Friday'
    cairn_is 6 approve g-1 "${store[@]}"; has err RUN_TERMINAL
    intact
}
test_approve_while_it_waits() {
    gate_plan
    start gate.json --run-id g-1
    wait_for step_is g-1 g RUNNING
    cairn_is 0 approve g-1/g "${store[@]}"
    wait_for step_is g-1 h RUNNING
    cairn_is 0 approve g-1 "${store[@]}"
    ends 0
}
test_the_words_of_an_answer_are_the_output_when_they_are_captured() {
    printf 'name: n\nnodes:\n  - {id: g, approval: {message: "go?", capture_response: true}}\n  - {id: z, depends_on: [g], when: "$g.output == '"'ship it'"'", bash: "printf %%s $g.output"}\n' >n.yaml
    cairn_is 13 run n.yaml "${store[@]}" --run-id n-1 --exit-on-wait
    cairn_is 0 approve n-1/g --reason 'ship it' "${store[@]}"
    cairn_is 0 get n-1/z "${store[@]}" -o json; equal "$(jq -r .result out)" 'ship it'
}
test_no_run_only_records() {
    gate_plan
    cairn_is 13 run gate.json "${store[@]}" --run-id g-1 --exit-on-wait
    cairn_is 0 approve g-1 "${store[@]}" --no-run; has out accepted
    step_is g-1 g SUCCESS || fail "not decided"; status_is g-1 RUNNING || fail "it went on"
}
test_a_signal_id_is_decided_once() {
    gate_plan
    id=11111111-2222-4333-8444-555555555555
    cairn_is 13 run gate.json "${store[@]}" --run-id g-1 --exit-on-wait
    cairn_is 13 approve g-1/g --id $id "${store[@]}"
    before=$("$CAIRN" events g-1 "${store[@]}" -o jsonl | wc -l)
    "$CAIRN" approve g-1/g --id $id "${store[@]}" >out 2>err
    equal "$("$CAIRN" events g-1 "${store[@]}" -o jsonl | wc -l)" "$before" events
    equal "$("$CAIRN" events g-1 "${store[@]}" --ledger -o jsonl | jq -rs "[.[]|select(.signalId==\"$id\")]|length")" 1 'decision records'
    cairn_is 6 reject g-1/g --id $id "${store[@]}"; has err SIGNAL_DUPLICATE
    cairn_is 2 approve g-1 --id nonsense "${store[@]}"; has err 'not a UUID'
}
test_decision_record_as_json() {
    held_plan a
    start slow.json --run-id s-1
    wait_for step_is s-1 a RUNNING
    cairn_is 0 pause s-1 "${store[@]}" --reason why -o json
    jq -e '.decision == "ACCEPTED" and .signalType == "PAUSE" and .audit.reason == "why" and .audit.actorRole == "Operator" and .seq > 0 and (.signalDecisionId|length) == 36' out >/dev/null || fail "record: $(cat out)"
    seq=$(jq .seq out)
    equal "$("$CAIRN" events s-1 "${store[@]}" -o jsonl | jq -r "select(.runSeq==$seq).eventType")" RunPaused 'what it caused'
    cairn_is 6 pause s-1 "${store[@]}" -o json; jq -e '.decision == "REJECTED" and .engineResult.errorCode == "RUN_ALREADY_PAUSED"' out >/dev/null || fail "record: $(cat out)"
    cairn_is 0 resume s-1 "${store[@]}"; touch go; ends 0
}
test_signals_are_checked_before_they_are_sent() {
    gate_plan
    cairn_is 13 run gate.json "${store[@]}" --run-id g-1 --exit-on-wait
    cairn_is 2 signal g-1 PAUS "${store[@]}"; has err 'did you mean PAUSE?'
    cairn_is 2 signal g-1 NONSENSE "${store[@]}"; has err 'there is no signal NONSENSE'
    cairn_is 2 signal g-1 PAUSE --json '{"colour":1}' "${store[@]}"; has err SIGNAL_INVALID_PAYLOAD
    cairn_is 2 signal g-1 PAUSE --json '[1]' "${store[@]}"; has err 'object'
    cairn_is 2 signal g-1 RETRY_STEP "${store[@]}"; has err 'needs a step'
    cairn_is 2 pause g-1/g "${store[@]}"; has err 'for runs'
    cairn_is 2 pause g-1 --reason "$(printf 'x%.0s' $(seq 501))" "${store[@]}"; has err SIGNAL_INVALID_PAYLOAD
    cairn_is 13 signal g-1 APPROVE --json '{"stepId":"g"}' "${store[@]}"; has out 'APPROVE accepted'
}
test_first_interrupt_pauses_and_resume_goes_on() {
    held_plan a
    start slow.json --run-id s-1
    wait_for step_is s-1 a RUNNING
    kill -INT $pid; wait_for grep -q 'status=PAUSED' run.err; touch go; ends 130
    has run.err 'PAUSED'; has run.err 'resume s-1'
    status_is s-1 PAUSED || fail "not PAUSED"; step_is s-1 a SUCCESS || fail "the step did not finish"
    equal "$(times_ran b)" 0
    cairn_is 0 resume s-1 "${store[@]}"; equal "$(times_ran a) $(times_ran b) $(times_ran c)" '1 1 1'
    intact
}
test_sigterm_pauses_and_the_same_run_id_goes_on() {
    held_plan a
    start slow.json --run-id s-1
    wait_for step_is s-1 a RUNNING
    kill -TERM $pid; wait_for grep -q 'status=PAUSED' run.err; touch go; ends 143
    cairn_is 0 run slow.json "${store[@]}" --run-id s-1; equal "$(times_ran a) $(times_ran b) $(times_ran c)" '1 1 1'
}
# timeout(1) sends its signal to its child, and then to the group. This leader of a group does the same, and lets cairn handle the first
# one before it sends the second: were both pending at once, they would be one. A pair that took too long proves nothing and is repeated.
test_a_signal_that_timeout_sends_twice_pauses() {
    held_plan a
    cat >leader.py <<'SCRIPT'
import os, signal, subprocess, sys, time
def pending(pid):
    return any(int(line.split()[1], 16) for line in open(f"/proc/{pid}/status") if line.startswith(("SigPnd", "ShdPnd")))
def wait_until(true):
    while not true(): time.sleep(0.001)
os.setpgid(0, 0)
number = getattr(signal, sys.argv[1])
signal.signal(number, signal.SIG_IGN)
run = subprocess.Popen(sys.argv[2:], stderr=open("run.err", "w"), preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
wait_until(lambda: os.path.exists("ran/a"))
begin = time.monotonic()
os.kill(run.pid, number)
wait_until(lambda: not pending(run.pid))
os.kill(0, number)
wait_until(lambda: not pending(run.pid))
in_time = time.monotonic() - begin < 0.9
wait_until(lambda: "status=PAUSED" in open("run.err").read() or run.poll() is not None)
open("go", "w").close()
code = run.wait()
os.remove("go"); os.remove("ran/a")
sys.exit(code if in_time else 77)
SCRIPT
    local signal n=0 rc
    for signal in SIGTERM SIGINT; do
        rc=77
        while [ $rc = 77 ]; do
            n=$((n + 1)) rc=0
            python3 leader.py $signal "$CAIRN" run slow.json "${store[@]}" --run-id t-$n --progress plain >run.out || rc=$?
        done
        equal $rc $((128 + $(kill -l ${signal#SIG}))) "exit after $signal"
        status_is t-$n PAUSED || fail "not PAUSED after $signal"
    done
    intact
}
# Neither a pause nor a cancel can be recorded then; the process ends all the same, and the log goes on when there is space.
test_interrupt_ends_it_also_when_the_disk_is_full_I9() {
    unshare -rm true 2>/dev/null || skip 'no mounts of its own'
    echo '{"planId":"f","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":"touch a.on; until [ -e a.go ]; do sleep 0.02; done; head -c 300000 /dev/zero | tr \\\\0 x"}},{"stepId":"b","kind":"noop"}]}' >f.json
    mkdir small
    cat >full.sh <<'SCRIPT'
mount -t tmpfs -o size=2m tmpfs small || exit 77
"$CAIRN" run f.json --store sqlite:small/s.db --run-id f-1 --progress none 2>run.err &
until [ -e a.on ]; do sleep 0.02; done
cat /dev/zero >small/fill 2>/dev/null
touch a.go
until grep -q 'put off' run.err; do sleep 0.02; done
kill -TERM $!
wait $!
echo $? >rc
rm small/fill
"$CAIRN" recover --store sqlite:small/s.db 2>recover.err
echo $? >>rc
"$CAIRN" log verify --all --store sqlite:small/s.db >verify
SCRIPT
    unshare -rm bash full.sh || skip 'no tmpfs'
    equal "$(tr '\n' ' ' <rc)" '143 0 '; has run.err 'the store takes nothing'; has recover.err '1 completed'; has verify intact
    equal "$(grep -c 'put off' run.err)" 1 'times it was said'
}
test_second_interrupt_cancels() {
    slow_plan 20
    start slow.json --run-id s-1
    wait_for step_is s-1 a RUNNING
    kill -INT $pid; wait_for grep -q 'status=PAUSED' run.err
    kill -INT $pid; ends 11
    status_is s-1 CANCELLED || fail "not CANCELLED"; intact
}
test_third_interrupt_kills() {
    # The step ignores SIGTERM, so only a kill ends it before its grace is over.
    echo '{"planId":"k","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":"trap \"\" TERM INT; echo $$ > pid; while :; do sleep 0.2; done"}}]}' >k.json
    start k.json --run-id k-1
    wait_for test -s pid
    kill -INT $pid; wait_for grep -q 'status=PAUSED' run.err
    kill -INT $pid; wait_for grep -q 'CANCEL decision=ACCEPTED' run.err
    kill -INT $pid; ends 130
    wait_for sh -c "! kill -0 $(cat pid)"
    intact
}
test_interrupts_from_a_terminal() {
    held_plan a
    (wait_for status_is t-1 PAUSED; touch go) &
    rc=0; python3 "$e2e/terminal.py" --when a-is-up '\x03' -- "$CAIRN" run slow.json "${store[@]}" --run-id t-1 >tty || rc=$?
    equal $rc 130 exit; has tty 'pausing'; has tty 'PAUSED'
    equal "$(times_ran a) $(times_ran b)" '1 0'
    slow_plan 20
    rc=0; python3 "$e2e/terminal.py" --when a-is-up '\x03' --when pausing '\x03' -- "$CAIRN" run slow.json "${store[@]}" --run-id t-2 >tty || rc=$?
    equal $rc 11 exit; has tty 'cancelling'
}
test_on_interrupt() {
    slow_plan 20
    start slow.json --run-id s-1 --on-interrupt cancel
    wait_for step_is s-1 a RUNNING; kill -INT $pid; ends 11
    start slow.json --run-id s-2 --on-interrupt kill
    wait_for step_is s-2 a RUNNING; kill -INT $pid; ends 130
    status_is s-2 CANCELLED || fail "not CANCELLED"
}
test_interrupt_while_waiting_for_a_person() {
    gate_plan
    start gate.json --run-id g-1
    wait_for step_is g-1 g RUNNING
    kill -INT $pid; ends 130
    cairn_is 13 resume g-1 "${store[@]}"; cairn_is 13 approve g-1/g "${store[@]}"; cairn_is 0 approve g-1 "${store[@]}"
    intact
}
test_interrupt_pauses_child_runs_too() {
    printf 'name: child\nnodes:\n  - {id: x, bash: "echo x >> x.ran; until [ -e go ]; do sleep 0.02; done"}\n  - {id: y, bash: "echo x >> y.ran", depends_on: [x]}\n' >child.yaml
    printf 'name: parent\nnodes:\n  - {id: s, workflow: child}\n' >parent.yaml
    start parent.yaml --run-id p-1
    wait_for test -s x.ran
    kill -INT $pid; wait_for status_is p-1.s.1 PAUSED; touch go; ends 130
    [ ! -e y.ran ] || fail "the child went on"
    cairn_is 0 get p-1.s.1 "${store[@]}"; has out PAUSED
    cairn_is 0 resume p-1 "${store[@]}"
    equal "$(wc -l <x.ran) $(wc -l <y.ran)" '1 1'
    intact
}
test_signals_with_a_files_store() {
    store=(--store "files:$PWD/fstore")
    held_plan a
    start slow.json --run-id s-1
    wait_for step_is s-1 a RUNNING
    cairn_is 0 pause s-1 "${store[@]}"
    cairn_is 0 get s-1 "${store[@]}"; has out PAUSED
    cairn_is 0 resume s-1 "${store[@]}"; touch go; ends 0
    gate_plan
    cairn_is 13 run gate.json "${store[@]}" --run-id g-1 --exit-on-wait
    cairn_is 13 approve g-1 "${store[@]}"; cairn_is 10 reject g-1 "${store[@]}"
    intact
}
test_get_of_a_paused_run_names_resume() {
    printf 'name: p\nnodes:\n  - { id: ok, approval: Sure? }\n' >p.yaml
    cairn_is 13 run p.yaml "${store[@]}" --run-id p-1 --exit-on-wait
    cairn_is 0 pause p-1 "${store[@]}"
    cairn_is 0 get p-1 "${store[@]}"; has_line out '^owner +nobody: `cairn resume`'
}

run_tests "$@"
