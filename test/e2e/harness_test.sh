#!/usr/bin/env bash
# The harness of the shell tests itself: what a test starts ends with it, and a run that leaves something behind, or that has a test which
# passes only at the second try, fails.
. "$(dirname "$0")/lib.sh"

# script_of NAME BODY: a script of its own; its tests are called case_NAME here, so that they are not taken for tests of this one.
script_of() { printf '. "%s/lib.sh"\n%s\nrun_tests "$@"\n' "$e2e" "$2" | sed 's/^case_/test_/' >"$1_test.sh"; }
gone() { [ -z "$(processes_with "$1")" ]; }

test_processes_of_a_test_end_with_it_however_it_ends() {
    mkdir left
    export LEFT=$PWD/left
    script_of s '
leave() { "$CAIRN" serve --store "sqlite:$PWD/s.db" --listen 127.0.0.1:0 >/dev/null 2>&1 & setsid bash -c "echo \$CAIRN_TEST_CASE >$LEFT/$1.new; mv $LEFT/$1.new $LEFT/$1; exec sleep 600" & wait_for test -e "$LEFT/$1"; }
case_passes() { leave passes; }
case_fails() { leave fails; fail no; }
case_hangs() { leave hangs; wait; }'
    bash s_test.sh passes >out; has out 'ok passes'
    bash s_test.sh fails >out 2>err && fail 'it passed'
    has out 'not ok fails: no'
    # A test that hangs has come so far that it has left something; on a busy machine that takes its time.
    for seconds in 1 5 25 125; do
        E2E_SECONDS=$seconds bash s_test.sh hangs >out 2>err && fail 'it passed'
        [ ! -e left/hangs ] || break
    done
    has out '(took too long)'
    for name in passes fails hangs; do gone "CAIRN_TEST_CASE=$(cat left/$name)" || fail "$name has left processes"; done
}
test_processes_of_a_test_end_when_the_script_is_interrupted() {
    for signal in INT TERM; do
        script_of i '
case_hangs() { setsid sleep 600 & echo "$CAIRN_TEST_CASE" >"$LEFT.new"; mv "$LEFT.new" "$LEFT"; wait; }'
        LEFT=$PWD/left.$signal env --default-signal=INT bash i_test.sh >out 2>&1 & script=$!
        wait_for test -e "left.$signal"
        kill -$signal "$script"
        wait "$script" && fail "$signal was not heeded"
        gone "CAIRN_TEST_CASE=$(cat "left.$signal")" || fail "$signal: processes are left"
        [ ! -e "$(cat "left.$signal")" ] || fail "$signal: the directory is left"
    done
}
# A tree of its own, with run-tests and two scripts.
tree() {
    mkdir -p tree/tools tree/test/e2e tree/test/crash
    cp "$root/tools/run-tests" tree/tools/
    cp "$e2e/lib.sh" tree/test/e2e/
    printf '%s\n' "$1" | sed 's/^case_/test_/' >tree/test/e2e/a_test.sh
    printf 'echo "ok crash"\n' >tree/test/crash/b_test.sh
    run_tree() { (cd tree && CAIRN=$CAIRN tools/run-tests --scripts build) >out 2>err; }
}
test_a_process_that_outlives_the_tests_fails_them() {
    tree '"$CAIRN" serve --store "sqlite:'"$PWD"'/s.db" --listen 127.0.0.1:0 >/dev/null 2>&1 & echo $! >'"$PWD"'/pid; echo "ok a"'
    run_tree && fail 'it passed'
    has out 'not ok nothing_is_left_running: 1 process'
    has out 'cairn serve'
    ! grep -q '^State:.[RSDT]' "/proc/$(cat pid)/status" 2>/dev/null || fail 'and it is there still'
    tree 'echo "ok a"'
    run_tree || fail "clean ones fail: $(cat out)"
    has out '3 passed, 0 failed'
}
test_a_test_that_passes_at_the_second_try_fails_the_run() {
    tree '. "$(dirname "$0")/lib.sh"
case_shaky() { [ -e '"$PWD"'/once ] || { touch '"$PWD"'/once; fail first; }; }
case_firm() { true; }
run_tests "$@"'
    run_tree && fail 'it passed'
    has out 'unsteady'
    has out 'shaky: first'
    has out '3 passed, 1 failed' # firm, the script of crash tests, nothing_is_left_running
}

run_tests "$@"
