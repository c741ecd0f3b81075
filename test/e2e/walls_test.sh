#!/usr/bin/env bash
# The walls of the service, from outside and with bad intentions (reliability.md §4).
. "$(dirname "$0")/serve_lib.sh"
walls=$root/test/e2e/walls

# hostile SCRIPT [WORD...]: a program of test/e2e/walls against the server; what it finds wrong is why the test fails
hostile() {
    python3 "$walls/$1.py" "$url" "$token" "$server" "${@:2}" >out 2>&1 || fail "$(tail -n 12 out)"
}
still_serves() {
    ask GET /livez && answers 200
    kill -0 "$server" || fail "the server has ended: $(tail -n 3 serve.err)"
}

test_every_cell_of_the_matrix_over_http_C_39() {
    serve
    hostile world
    count=$(sed -n 's/^\([0-9]*\) requests, 0 wrong$/\1/p' out)
    [ "${count:-0}" -ge 3500 ] || fail "only $count requests"
    still_serves
}

test_bodies_of_odd_shapes_are_answered() {
    serve
    hostile shapes
    still_serves
}

test_stopping_answers_those_who_wait() {
    serve
    hostile waiters &
    client=$!
    wait_for test -e waiting
    stop_serving
    wait $client || fail "$(tail -n 5 out)"
    hasnt serve.err 'Sanitizer'
}

run_tests "$@"
