#!/usr/bin/env bash
# `cairn equiv` on hosts that are processes of their own: a server, a Temporal server (skipped by name where none was built), a Conductor (the
# fake of the tests, or the real one of $CAIRN_CONDUCTOR_URL). $EQUIV_DRAWN documents are drawn on each of the latter two; the live targets
# draw a hundred.
. "$(dirname "$0")/temporal_lib.sh"
. "$(dirname "$0")/conductor_lib.sh"
export E2E_SECONDS=${E2E_SECONDS:-300}

build=${CAIRN_BUILD:-$root/build/test}
[[ $build = /* ]] || build=$root/$build
drawn() { python3 "$root/test/equiv/soak.py" "$CAIRN" "$@" >said 2>&1 || fail "$(head -c 2000 said)"; has_line said 'the engine and the model say the same, and so do'; }
# A host that differs in one thing on purpose, in the build for tests: HOST=PLACE.
found_on() {
    local host=${1%%=*} kind word
    for kind in output:changed time:elsewhen; do
        word=${kind#*:}
        CAIRN=$build/cairn CAIRN_EQUIV_PLANT=$host:${kind%:*} cairn_is 20 equiv "$root/examples/diamond.json" --on "embedded,$1" --cases 0
        has out "$host differs from embedded"; has_line out "\\($word\\)"
    done
}
cases() { # HOST=PLACE HOW_MANY: plans, workflows and playbooks, with pauses, cancellations, answers and lost attempts
    local document
    for document in hello.json approval.yaml joins.yaml parent.yaml pause.json playbook.yaml; do
        cairn_is 0 equiv "$root/examples/$document" --on "embedded,$1" --cases "$2"
    done
}

test_a_server_records_what_the_engine_alone_does() {
    cases server 15
    drawn 60 --seed 20000 --on embedded,server
}
test_a_server_that_is_killed_comes_to_the_same_end() {
    cairn_is 0 equiv "$root/examples/parent.yaml" --on server --faults 2 --cases 3
    has_line out '4 the same, 0 different, [0-9]+ kills'
}
test_a_difference_of_a_server_is_found() { found_on server; }
test_a_server_ends_with_its_player_however_that_ends() {
    "$CAIRN" equiv "$root/examples/hello.json" --on embedded,server --cases 100000 >out 2>err &
    player=$!
    its_server() { pgrep -P "$player" >server.pid; }
    wait_for its_server
    kill -9 "$player"
    wait "$player" 2>/dev/null
    gone() { ! kill -0 "$(cat server.pid)" 2>/dev/null; }
    wait_for gone
}

# Both are servers of others: each is started, and is then a place of `cairn equiv`.
other_host() { # HOST: $place is where it is
    case $1 in
        temporal) temporal_server; place=$temporal ;;
        conductor) conductor; place=$api ;;
    esac
}
records_the_same_on() { # HOST CASES DRAWN SEED
    other_host "$1"
    cases "$1=$place" "$2"
    drawn "$3" --seed "$4" --on "embedded,$1=$place"
}
comes_to_the_same_end_on() { # HOST DOCUMENT CASES
    other_host "$1"
    cairn_is 0 equiv "$root/examples/$2" --on "$1=$place" --faults 1 --cases "$3"
}
differs_on() { other_host "$1"; found_on "$1=$place"; }

test_temporal_records_what_the_engine_alone_does() { records_the_same_on temporal 3 "${EQUIV_DRAWN:-10}" 30000; }
test_temporal_hosts_that_are_killed_come_to_the_same_end() { comes_to_the_same_end_on temporal hello.json "${EQUIV_KILLED:-0}"; }
test_a_difference_of_temporal_is_found() { differs_on temporal; }

test_conductor_records_what_the_engine_alone_does() { records_the_same_on conductor 2 "${EQUIV_DRAWN:-20}" 40000; }
test_conductor_hosts_that_are_killed_come_to_the_same_end() { comes_to_the_same_end_on conductor parent.yaml "${EQUIV_KILLED:-2}"; }
test_a_difference_of_conductor_is_found() { differs_on conductor; }

test_a_host_that_is_away_is_an_error_with_its_address() {
    cairn_is 7 equiv "$root/examples/hello.json" --on embedded,conductor=http://127.0.0.1:1/api; has err 'Conductor at http://127.0.0.1:1/api: cannot reach'
    cairn_is 2 equiv "$root/examples/hello.json" --on embedded,conductor; has err 'the host conductor needs a place: conductor=URL'
    cairn_is 2 equiv "$root/examples/hello.json" --on embedded,server=here; has err 'the host server has no place'
}
test_steps_that_really_run_are_refused_where_nothing_runs() {
    printf '{"planId":"p","planVersion":"1","schemaVersion":"v1.2","steps":[{"stepId":"a","kind":"shell","with":{"command":"true"}}]}' >p.json
    printf 'document: p.json\nmocks: {a: {real: true}}\n' >p.test.yaml
    cairn_is 20 equiv p.test.yaml --on embedded,server; has out 'are for hosts of this process'
}
run_tests "$@"
