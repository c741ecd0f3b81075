#!/usr/bin/env bash
# fan_out: one step of a node workflow, many child runs.
. "$(dirname "$0")/lib.sh"

store=(--store "sqlite:s.db")
start() { "$CAIRN" run "$@" "${store[@]}" --progress plain >run.out 2>run.err </dev/null & pid=$!; }
ends() { local rc=0; wait $pid || rc=$?; equal "$rc" "$1" "exit of the run ($(tail -n 2 run.err | tr '\n' ' '))"; }
kill_it() { kill -9 $pid; wait $pid 2>/dev/null; }
fan_child() { printf 'name: child\nnodes:\n  - id: x\n    bash: |\n      case "$ARGUMENTS" in fail-*) exit 1;; esac\n      %s\n      echo "ok: $ARGUMENTS"\n' "${1:-:}" >child.yaml; }
fan_parent() { printf 'name: parent\nnodes:\n  - {id: s, workflow: child, fan_out: {items: %s, max_parallel: 2%s}}\n  - {id: z, depends_on: [s], bash: "printf %%%%s $s.output"}\n' "$1" "${2:-}" >parent.yaml; }
output() { "$CAIRN" get "$1" "${store[@]}" -o json | jq -c .result; }
test_fan_out_runs_the_child_once_per_item() {
    fan_child; fan_parent '["one", "it'"'"'s 2", "fail-3", {k: [1]}]'
    cairn_is 0 run parent.yaml "${store[@]}" --run-id f-1
    equal "$(output f-1/s)" '["ok: one","ok: it'"'"'s 2",{"archon_failed":true,"error":"x: exit 1","status":"failed"},"ok: {\"k\":[1]}"]'
    equal "$("$CAIRN" ls parent=f-1 "${store[@]}" -o name | sort | tr '\n' ' ')" 'f-1.s.1.1 f-1.s.1.2 f-1.s.1.3 f-1.s.1.4 '
    fan_parent '["a", "fail-b", "c"]' ', join: all_success'
    cairn_is 10 run parent.yaml "${store[@]}" --run-id f-2; has err '1 of 3 children failed; item 2: x: exit 1'
    step_is f-2 z SKIPPED || fail "z"
    status_is f-2.s.1.3 COMPLETED || fail "the others do not suffer"
    fan_parent '[]'
    cairn_is 0 run parent.yaml "${store[@]}" --run-id f-3; equal "$(output f-3/s)" '[]'
    fan_parent '"not a list"'
    cairn_is 10 run parent.yaml "${store[@]}" --run-id f-4; has err INVALID_ITEMS
    printf 'name: parent\nnodes:\n  - {id: l, bash: "seq 7 | jq -sc ."}\n  - {id: s, depends_on: [l], workflow: child, with: {m: 1}, fan_out: {items: $l.output, as: n}}\n' >parent.yaml
    printf 'name: child\ninputs: {n: 0, m: 0}\nnodes:\n  - {id: x, bash: "echo $(( $INPUTS.n * $INPUTS.n + $INPUTS.m ))"}\n' >child.yaml
    cairn_is 0 run parent.yaml "${store[@]}" --run-id f-5; equal "$(output f-5/s)" '["2","5","10","17","26","37","50"]'
    equal "$("$CAIRN" get f-5/s "${store[@]}" -o json | jq -r .inputs.fanOut.items)" '[1,2,3,4,5,6,7]' 'a value that was referred to'
    intact
}
test_fan_out_goes_on_after_a_kill_and_ends_when_cancelled() {
    fan_child 'echo x >>ran-$ARGUMENTS; [ $ARGUMENTS != 4 ] || until [ -e go ]; do sleep 0.1; done'; fan_parent '[1, 2, 3, 4, 5]'
    at_4() { wait_for test -s ran-4; for child in 1 2 3; do wait_for status_is "$1.s.1.$child" COMPLETED; done; } # their ends are recorded
    start parent.yaml --run-id f-1
    at_4 f-1
    kill_it
    touch go
    cairn_is 0 recover "${store[@]}"
    equal "$(output f-1/s)" '["ok: 1","ok: 2","ok: 3","ok: 4","ok: 5"]'
    equal "$(cat ran-1 ran-2 ran-3 | wc -l) $(wc -l <ran-4)" '3 2'
    rm -f go ran-*
    start parent.yaml --run-id f-2
    at_4 f-2
    cairn_is 0 cancel f-2 "${store[@]}"; ends 11
    status_is f-2.s.1.1 COMPLETED && status_is f-2.s.1.4 CANCELLED || fail "children"
    rm -f ran-*
    start parent.yaml --run-id f-3
    wait_for test -s ran-4
    kill -INT $pid; wait_for grep -q 'status=PAUSED' run.err
    cairn_is 0 why f-3 "${store[@]}"; has out 'of the list s the child runs that have begun go on to their end'
    touch go; ends 130
    cairn_is 0 resume f-3 "${store[@]}"
    equal "$(output f-3/s)" '["ok: 1","ok: 2","ok: 3","ok: 4","ok: 5"]'
    intact
}
test_an_item_that_no_record_holds_fails_alone() {
    fan_child 'echo ok'; fan_parent "['a', '$(head -c 140000 /dev/zero | tr '\0' x)']" ', as: it'
    cairn_is 0 run parent.yaml "${store[@]}" --run-id f-4 --progress none
    "$CAIRN" get f-4/s "${store[@]}" -o json >got
    has got 'could not be stored: a record of'
}
# Written by the release before lists were recorded and killed while d was running; e and f, behind it, had ended.
test_a_list_that_an_older_release_began_goes_on() {
    mkdir s && tar -xzf "$root/test/golden/stores/list-not-recorded.tar.gz" -C s || fail "the store"
    store=(--store "files:s")
    cairn_is 0 recover "${store[@]}"
    equal "$(output old-1/s)" '["ok: a",{"archon_failed":true,"error":"x: exit 3","status":"failed"},"ok: c","ok: d","ok: e","ok: f"]'
    equal "$("$CAIRN" ls parent=old-1 "${store[@]}" -o name | wc -l)" 6 'no child begins again'
    intact
    cairn_is 0 log replay old-1 "${store[@]}"
    rm -rf /tmp/cairn-old # where its artifacts were
}
run_tests "$@"
