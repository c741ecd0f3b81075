# Shared by the shell tests. A test is a function test_NAME; run_tests runs each in a process, a directory and a home of its
# own, with a time limit, and prints "ok NAME", "not ok NAME: why" or "skip NAME: why" and a last line with the counts.
# Whatever a test has started ends with it, however it ends: its processes have CAIRN_TEST_CASE in their environment.
#
#   . "$(dirname "$0")/lib.sh"
#   test_version() { cairn_is 0 --version; has out 'cairn '; }
#   run_tests "$@"            arguments are name filters
set -u
e2e=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$e2e/../.." && pwd)
CAIRN=${CAIRN:-$root/build/cairn}
[[ $CAIRN = /* ]] || CAIRN=$PWD/$CAIRN
export CAIRN
script=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")

fail() { echo "FAIL: $*" >&2; exit 1; }
skip() { echo "SKIP: $*" >&2; exit 77; }

# Runs the binary; its output is in the files out and err.
cairn_is() {
    local want=$1 rc=0
    shift
    "$CAIRN" "$@" >out 2>err </dev/null || rc=$?
    [ "$rc" = "$want" ] || fail "cairn $* gave exit $rc, not $want: $(tail -n 3 err | tr '\n' ' ')"
}
has() { grep -qF -e "$2" "$1" || fail "$1 does not hold: $2 (it begins: $(head -c 300 "$1" | tr '\n' ' '))"; }
has_line() { grep -qE -e "$2" "$1" || fail "$1 has no line like: $2 (it begins: $(head -c 300 "$1" | tr '\n' ' '))"; }
hasnt() { ! grep -qF -e "$2" "$1" || fail "$1 holds: $2"; }
empty() { [ ! -s "$1" ] || fail "$1 is not empty: $(head -c 200 "$1")"; }
equal() { [ "$1" = "$2" ] || fail "${3:-value}: \"$1\" is not \"$2\""; }
# Waits until a command succeeds, at most a minute: a machine may be very busy.
wait_for() {
    local until=$((SECONDS + 60)) looks=0 pause=0.01
    while [ $SECONDS -lt $until ]; do
        "$@" >/dev/null 2>&1 && return 0
        sleep $pause # most of what is waited for is there in a moment, and a look may cost three processes
        case $((looks += 1)) in 10) pause=0.05 ;; 30) pause=0.15 ;; esac
    done
    fail "never came true: $*"
}
# What a test waits for instead of sleeping.
is_stopped() { grep -q '^State:.T' "/proc/$1/status"; }                       # by SIGSTOP
has_open() { ls -l "/proc/$1/fd" | grep -qF -e "$2"; }                         # PID FILE
is_connected() { awk -v port="$(printf ':%04X$' "$1")" '$3 ~ port && $4 == "01" {found = 1} END {exit !found}' /proc/net/tcp; } # somebody, to a PORT
differs() { [ "$("${@:2}")" != "$1" ]; }                                       # VALUE COMMAND: it says something else by now
outlast() { sleep "$1"; }                                                      # time itself is what the test is about
status_is() { [ "$("$CAIRN" get "$1" "${store[@]}" -o json 2>/dev/null | jq -r .status)" = "$2" ]; }
step_is() { [ "$("$CAIRN" get "$1" "${store[@]}" -o json 2>/dev/null | jq -r ".steps[]|select(.stepId==\"$2\").status")" = "$3" ]; }
events_of() { "$CAIRN" events "$1" "${store[@]}" -o jsonl | jq -r '.eventType // .event_type'; }
count_of() { events_of "$1" | grep -cx "$2"; }
intact() { "$CAIRN" log verify --all "${store[@]}" >verify 2>&1 || fail "the log does not verify: $(cat verify)"; }
# A plan of three steps that each write a line to ran/STEP and sleep; good for killing.
slow_plan() {
    mkdir -p ran
    cat >slow.json <<PLAN
{"planId":"slow","planVersion":"1","schemaVersion":"v1.2","steps":[
 {"stepId":"a","kind":"shell","with":{"command":"echo x >> ran/a; echo a-is-up; sleep ${1:-0.6}; echo A"}},
 {"stepId":"b","kind":"shell","with":{"command":"echo x >> ran/b; sleep ${1:-0.6}; echo B"}},
 {"stepId":"c","kind":"shell","with":{"command":"echo x >> ran/c; echo \$a.output \$b.output"}}]}
PLAN
}
# The same, without sleeping: the steps that are named wait until the file `go` is there, but not in engine attempt $held_until (2) or later.
held_plan() {
    slow_plan 0
    local step
    for step in "$@"; do
        sed -i "/\"stepId\":\"$step\"/s|sleep 0;|[ \$CAIRN_ENGINE_ATTEMPT -ge ${held_until:-2} ] \|\| until [ -e $PWD/go ]; do sleep 0.02; done;|" slow.json
    done
    rm -f go
}
times_ran() { [ -f "ran/$1" ] && wc -l <"ran/$1" || echo 0; }

# Ends every process that has NAME=VALUE in its environment, also those in sessions of their own and those that they start meanwhile.
processes_with() { grep -lsazxF -e "$1" /proc/[0-9]*/environ | cut -d / -f 3; }
end_processes_with() {
    local pids tries
    for ((tries = 0; tries < 100; tries++)); do
        pids=$(processes_with "$1")
        [ -n "$pids" ] || return 0
        kill -9 $pids 2>/dev/null
    done
}

run_tests() {
    if [ "${1:-}" = --one ]; then
        store=(--store "sqlite:$PWD/store.db")
        "$2"
        exit
    fi
    local name dir='' rc passed=0 failed=0 skipped=0
    trap '[ -z "$dir" ] || { end_processes_with "CAIRN_TEST_CASE=$dir"; rm -rf "$dir" "$dir.log"; }; exit 130' INT TERM HUP
    [ -x "$CAIRN" ] || { echo "not ok $(basename "$0"): $CAIRN is missing"; exit 1; }
    while read -r name; do
        [ $# -eq 0 ] || [[ " $* " = *" ${name#test_} "* ]] || continue
        dir=$(mktemp -d)
        rc=0
        # In the background, so that a signal to this script is heeded at once.
        (cd "$dir" && exec env --default-signal=INT,QUIT -u CAIRN_STORE -u NO_COLOR -u CLICOLOR_FORCE -u CI HOME="$dir/home" XDG_STATE_HOME="$dir/state" CAIRN_TEST_CASE="$dir" \
            LANG=C.UTF-8 LC_ALL= TERM=xterm timeout -k 5 "${E2E_SECONDS:-300}" bash "$script" --one "$name") >"$dir.log" 2>&1 </dev/null &
        wait $! || rc=$?
        end_processes_with "CAIRN_TEST_CASE=$dir"
        case $rc in
        0) echo "ok ${name#test_}"; passed=$((passed + 1)) ;;
        77) echo "skip ${name#test_}: $(sed -n 's/^SKIP: //p' "$dir.log" | head -n 1)"; skipped=$((skipped + 1)) ;;
        *)
            echo "not ok ${name#test_}: $(grep -m 1 -a '^FAIL: ' "$dir.log" | cut -c7-400 || true)$([ $rc = 124 ] && echo ' (took too long)')"
            cat "$dir.log" >&2
            failed=$((failed + 1))
            ;;
        esac
        chmod -R u+w "$dir" 2>/dev/null
        rm -rf "$dir" "$dir.log"
    done < <(sed -n 's/^\(test_[A-Za-z0-9_]*\)().*/\1/p' "$script")
    echo "# $(basename "$0" .sh): $passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
}
