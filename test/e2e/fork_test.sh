#!/usr/bin/env bash
# fork, rerun, retry --downstream: what is kept, what runs, what the log says; killed at every write; edited by hand.
. "$(dirname "$0")/lib.sh"

# build -> test, load -> report -> ship; each leaves a line in ran/STEP. load uses an input, report a file of load's.
chain() {
    mkdir -p ran
    cat >chain.json <<PLAN
{"planId":"chain","planVersion":"1","inputs":{"env":"dev"},"steps":[
 {"stepId":"build","kind":"shell","dependsOn":[],"with":{"command":"echo x >> ran/build; echo built"}},
 {"stepId":"test","kind":"shell","dependsOn":["build"],"with":{"command":"echo x >> ran/test; echo tested"}},
 {"stepId":"load","kind":"shell","dependsOn":["build"],"with":{"command":"echo x >> ran/load; echo f > \$ARTIFACTS_DIR/f; echo \$INPUTS.env"}},
 {"stepId":"report","kind":"shell","dependsOn":["test","load"],"with":{"command":"echo x >> ran/report; echo of \$load.output; cat \$ARTIFACTS_DIR/f"}},
 {"stepId":"ship","kind":"shell","dependsOn":["report"],"with":{"command":"echo x >> ran/ship; ${1:-exit 3}"}}]}
PLAN
}
ran() { echo "$(times_ran build) $(times_ran test) $(times_ran load) $(times_ran report) $(times_ran ship)"; }
result() { "$CAIRN" get "$1" "${store[@]}" -o json | jq -r ".steps[]|select(.stepId==\"$2\").result"; }
fate() { jq -r "[.steps[]|select(.fate==\"$1\").stepId]|join(\" \")" out; }
# The log verifies, and every run in it, lived again, comes out as recorded.
lived_again() {
    intact
    local run
    for run in $("$CAIRN" ls --all "${store[@]}" -o name); do cairn_is 0 log replay "$run" "${store[@]}"; done
}
failed_run() { chain; cairn_is 10 run chain.json "${store[@]}" --run-id r-1 --progress none; equal "$(ran)" '1 1 1 1 1'; }

test_fork_goes_on_from_an_event() {
    failed_run
    cairn_is 10 fork r-1@8 "${store[@]}" --run-id f-1 --progress plain
    has err 'fork of r-1@8: 3 kept, 2 to come'; has_line out 'fork of r-1@8: run f-1, event [0-9]+'
    hasnt err 'step=build' # not told as if it happened now
    equal "$(ran)" '1 1 1 2 2'; equal "$(result f-1 report)" $'of dev\nf'
    equal "$(events_of f-1 | head -n 8)" "$(events_of r-1 | head -n 8)" 'the prefix'
    "$CAIRN" events f-1 "${store[@]}" -o jsonl | head -n 1 >first
    equal "$(jq -c '[.payload.forkedFrom, .payload.originalRunId]' first)" '[{"runId":"r-1","runSeq":8},"r-1"]'
    cairn_is 0 get f-1 "${store[@]}"; has out 'fork of   r-1@8'; has out 'reused from r-1'
    cairn_is 0 get f-1 "${store[@]}" -o json; equal "$(jq -c .forkedFrom out)" '{"runId":"r-1","runSeq":8}'
    equal "$("$CAIRN" get r-1 "${store[@]}" -o json | jq .lastEventSeq)" 13 'the source is as it was'
    lived_again
}
test_fork_of_a_fork_names_the_run_where_a_step_ran() {
    failed_run
    cairn_is 10 fork r-1@8 "${store[@]}" --run-id f-1 --progress none
    cairn_is 10 fork f-1@10 "${store[@]}" --run-id f-2 --progress none
    equal "$("$CAIRN" get f-2 "${store[@]}" -o json | jq -c '[.steps[]|.reusedFrom]')" '["r-1","r-1","r-1","f-1",null]'
    lived_again
}
test_dry_run_does_nothing() {
    failed_run
    cairn_is 0 fork r-1 "${store[@]}" --set env=prod --dry-run -o json; empty err
    equal "$(fate kept) / $(fate again)" 'build test / load report ship'
    equal "$(jq -r '.steps[2]|"\(.why) \(.input)"' out)" 'input env'
    cairn_is 0 fork r-1 "${store[@]}" --dry-run; has out 'kept'; has err 'nothing runs'
    cairn_is 0 retry r-1 "${store[@]}" --dry-run; has out 'again     ship  has no result'
    cairn_is 0 rerun r-1 "${store[@]}" --from load --dry-run; has out 'again     load    as asked'
    equal "$(ran)" '1 1 1 1 1'; equal "$("$CAIRN" ls "${store[@]}" -o name)" r-1
}
test_set_runs_what_used_the_input_again() {
    failed_run
    cairn_is 10 fork r-1 "${store[@]}" --set env=prod --run-id f-1 --progress none
    equal "$(ran)" '1 1 2 2 2'; equal "$(result f-1 report)" $'of prod\nf'
    "$CAIRN" events f-1 "${store[@]}" --ledger -o jsonl >ledger
    equal "$(jq -c 'select(.how)|[.inputsChanged, .source.runSeq, (.steps.again|length)]' ledger)" '[["env"],13,3]'
    lived_again
}
test_given_output_is_recorded_with_who_gave_it() {
    failed_run
    cairn_is 10 fork r-1@10 "${store[@]}" --set 'load.output=by hand' --run-id f-1 --reason 'bad data' --progress none
    equal "$(ran)" '1 1 1 2 2'; equal "$(result f-1 report)" $'of by hand\nf'
    "$CAIRN" events f-1 "${store[@]}" -o jsonl | jq -c 'select(.stepId=="load" and .eventType=="StepCompleted")' >given
    equal "$(jq -r '.payload|"\(.actor|length > 0) \(.reusedFrom)"' given)" 'true null'
    equal "$("$CAIRN" events f-1 "${store[@]}" --ledger -o jsonl | jq -c 'select(.how)|[.steps.given, .audit.reason]')" '[["load"],"bad data"]'
    cairn_is 0 why f-1/load "${store[@]}" -o json; equal "$(jq -r '"\(.state) \(.reason) \(.givenBy|length > 0)"' out)" 'done GIVEN true'
    cairn_is 0 why f-1/load "${store[@]}"; has out 'was not run: its output was given by'
    cairn_is 20 diff r-1 f-1 "${store[@]}" -o json; equal "$(jq -c '.timing.steps[]|select(.step=="load")|.b' out)" null
    cairn_is 6 fork r-1@3 "${store[@]}" --set report.output=1; has err 'cannot be given'; has err hint
    cairn_is 5 fork r-1 "${store[@]}" --set lod.output=1; has err 'did you mean load?'
    lived_again
}
test_edit_opens_the_editor_and_takes_what_changed() {
    failed_run
    printf '#!/bin/sh\ncp "$1" seen.yaml; sed -i "s/env: dev/env: stage/; s/^  build: .*/  build: mended/" "$1"\n' >edit.sh
    chmod +x edit.sh
    EDITOR="$PWD/edit.sh" cairn_is 10 fork r-1 "${store[@]}" --edit --run-id f-1 --progress none
    has seen.yaml 'env: dev'; has seen.yaml 'build: built'
    equal "$(result f-1 build) $(result f-1 load)" 'mended stage'; equal "$(ran)" '1 2 2 2 2'
    EDITOR=true cairn_is 0 fork r-1 "${store[@]}" --edit; has err 'nothing was changed'
    EDITOR=false cairn_is 1 fork r-1 "${store[@]}" --edit; has err 'did not end well'
    printf 'inputs:\n  env: [1, 2\n' >broken.yaml
    cairn_is 3 fork r-1 "${store[@]}" --edit-file broken.yaml; has err 'broken.yaml:'
    echo '{"outputs":{"build":"from json"}}' >edit.json
    cairn_is 0 fork r-1 "${store[@]}" --edit-file edit.json --dry-run -o json; equal "$(fate given)" build
    echo '{"output":{}}' >edit.json
    cairn_is 3 fork r-1 "${store[@]}" --edit-file edit.json; has err 'there is no "output"'
    equal "$("$CAIRN" ls "${store[@]}" -o name | wc -l)" 2
}
test_plan_keeps_what_is_defined_as_before() {
    failed_run
    chain 'echo shipped'
    sed -i 's/]}$/, {"stepId":"tell","kind":"echo","dependsOn":["ship"],"with":{"message":"done"}}]}/' chain.json
    cairn_is 0 fork r-1 "${store[@]}" --plan chain.json --dry-run -o json
    equal "$(fate kept) / $(fate again) / $(fate new)" 'build test load report / ship / tell'
    cairn_is 0 fork r-1 "${store[@]}" --plan chain.json --run-id f-1 --progress none
    equal "$(ran)" '1 1 1 1 2'; equal "$(result f-1 tell)" 'done'
    cairn_is 0 rerun r-1 "${store[@]}" --plan chain.json --from test --run-id f-2 --progress none
    equal "$(ran)" '1 2 1 2 3'
    printf 'name: n\nnodes:\n  - id: a\n    bash: echo a\n' >n.yaml
    cairn_is 2 fork r-1 "${store[@]}" --plan n.yaml; has err 'nodes document'
    echo '{' >bad.json; cairn_is 3 fork r-1 "${store[@]}" --plan bad.json
    lived_again
}
test_rerun_from_a_step_and_from_the_start() {
    failed_run
    cairn_is 10 rerun r-1 "${store[@]}" --from load --run-id a-1 --progress none; has_line out 'rerun of r-1: run a-1, event [0-9]+'
    equal "$(ran)" '1 1 2 2 2'
    cairn_is 10 rerun r-1 "${store[@]}" --run-id a-2 --progress none
    equal "$(ran)" '2 2 3 3 3'; equal "$(events_of a-2)" "$(events_of r-1)"
    cairn_is 10 fork r-1@0 "${store[@]}" --run-id a-3 --progress none
    equal "$(events_of a-3)" "$(events_of a-2)" 'a fork at 0 is a rerun'
    cairn_is 6 rerun r-1 "${store[@]}" --run-id a-3; has err 'there is a run a-3 already'
    cairn_is 2 rerun r-1@3 "${store[@]}"
    lived_again
}
test_retry_downstream_of_an_ended_and_of_a_held_run() {
    failed_run
    cairn_is 10 retry r-1/report "${store[@]}" --downstream --progress none -o name; new=$(cat out)
    equal "$(ran)" '1 1 1 2 2'; equal "$("$CAIRN" get "$new" "${store[@]}" -o json | jq -r .originalRunId)" r-1
    cairn_is 2 retry r-1 "${store[@]}" --downstream; has err 'needs a step'
    echo '{"planId":"h","planVersion":"1","metadata":{"onStepFailure":"hold"},"steps":[{"stepId":"a","kind":"shell","with":{"command":"test -e gate"},"dependsOn":[]},{"stepId":"b","kind":"echo","with":{"message":"b"},"dependsOn":["a"]}]}' >hold.json
    cairn_is 13 run hold.json "${store[@]}" --run-id h-1 --exit-on-wait --progress none
    cairn_is 0 retry h-1/a "${store[@]}" --downstream --dry-run; has out 'to come   b'
    cairn_is 6 retry h-1/b "${store[@]}" --downstream; has err 'it has not begun'; has err 'fork h-1 --from b'
    touch gate
    cairn_is 0 retry h-1/a "${store[@]}" --downstream --progress none; has out 'RETRY_STEP accepted'
    lived_again
}
test_fork_lifts_pause_and_cancel() {
    held_plan a
    "$CAIRN" run slow.json "${store[@]}" --run-id s-1 --progress none 2>/dev/null & pid=$!
    wait_for step_is s-1 a RUNNING
    cairn_is 0 pause s-1 "${store[@]}"
    touch go
    wait_for step_is s-1 a SUCCESS
    cairn_is 0 fork s-1 "${store[@]}" --run-id f-1 --progress none
    equal "$(status_is f-1 COMPLETED && echo yes) $(times_ran a)" 'yes 1'
    cairn_is 0 cancel s-1 "${store[@]}"; wait $pid
    cairn_is 0 fork s-1 "${store[@]}" --run-id f-2 --progress none
    equal "$(status_is f-2 COMPLETED && echo yes) $(times_ran a) $(count_of f-2 RunCancelled)" 'yes 1 0'
    lived_again
}
test_no_run_only_records() {
    failed_run
    cairn_is 0 fork r-1@8 "${store[@]}" --no-run --run-id f-1; has err 'recover f-1'
    equal "$(ran)" '1 1 1 1 1'; equal "$("$CAIRN" get f-1 "${store[@]}" -o json | jq -r '"\(.status) \(.lastEventSeq)"')" 'RUNNING 8'
    cairn_is 10 recover f-1 "${store[@]}" --progress none; equal "$(ran)" '1 1 1 2 2'
    lived_again
}
test_children_and_loops_go_on() {
    mkdir -p ran
    echo '{"planId":"c","planVersion":"1","steps":[{"stepId":"x","kind":"shell","with":{"command":"echo x >> ran/x; echo 7"}}]}' >child.json
    echo '{"planId":"p","planVersion":"1","steps":[{"stepId":"sub","kind":"subrun","with":{"document":"child.json"}},{"stepId":"b","kind":"shell","with":{"command":"echo $sub.output.outputs; exit 1"}}]}' >parent.json
    cairn_is 10 run parent.json "${store[@]}" --run-id p-1 --progress none
    local done_at; done_at=$("$CAIRN" events p-1 "${store[@]}" -o jsonl | jq -r 'select(.eventType=="StepCompleted").runSeq')
    cairn_is 10 fork "p-1@$done_at" "${store[@]}" --run-id f-1 --progress none
    equal "$(times_ran x) $("$CAIRN" get f-1 "${store[@]}" -o json | jq -r '.steps[0].result.runId')" '1 p-1.sub.1' 'a finished child is referred to'
    cairn_is 10 fork "p-1@$((done_at - 1))" "${store[@]}" --run-id f-2 --progress none
    equal "$(times_ran x) $("$CAIRN" get f-2 "${store[@]}" -o json | jq -r '.steps[0].result.runId')" '2 f-2.sub.1' 'an unfinished one is begun anew'
    lived_again
}
# Killed before every write of a fork: there is no new run, or one that recovers; the source is as it was.
test_killed_at_every_write_of_a_fork() {
    [ -x "${CAIRN_FAULTY:-}" ] || skip 'no faulty binary'
    echo '{"planId":"k","planVersion":"1","steps":[{"stepId":"a","kind":"noop","dependsOn":[]},{"stepId":"b","kind":"noop","dependsOn":["a"]},{"stepId":"c","kind":"noop","dependsOn":["b"]}]}' >k.json
    store=(--store "files:$PWD/f")
    cairn_is 0 run k.json "${store[@]}" --run-id r-1 --progress none
    cp -r f before
    local n made=0 missing=0 rc
    for n in $(seq 1 100); do
        rm -rf f; cp -r before f; rc=0
        CAIRN_CRASH_AT=$n "$CAIRN_FAULTY" fork r-1@5 "${store[@]}" --run-id f-1 --progress none >/dev/null 2>&1 </dev/null || rc=$?
        [ $rc = 137 ] || break
        "$CAIRN" recover "${store[@]}" --progress none >/dev/null 2>&1 || fail "recovery after a kill at write $n"
        if status_is f-1 COMPLETED; then
            made=$((made + 1)); equal "$(count_of f-1 StepCompleted) $(count_of f-1 RunCompleted)" "3 1"; lived_again
        else
            missing=$((missing + 1)); equal "$("$CAIRN" ls "${store[@]}" -o name)" r-1 "runs after a kill at write $n"
        fi
    done
    [ $rc = 0 ] && [ $made -gt 2 ] && [ $missing -gt 2 ] || fail "$n writes: $made made, $missing not, exit $rc"
}
run_tests "$@"
