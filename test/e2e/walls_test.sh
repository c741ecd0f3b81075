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
    serve --route charge=gpu # so that runs are of the pool of the host
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

test_max_steps_of_the_service_and_one_more() {
    printf '[serve]\nmaxSteps = 50000\n' >cairn.toml
    serve
    local steps
    for steps in 50000 50001; do
        jq -nc --argjson n $steps '{document: {planId: "p", planVersion: "1", steps: [range($n) | {stepId: "s\(.)", kind: "noop"}]}}' >many.json
        ask POST /v1/plans:validate @many.json
        equal $status "$([ $steps = 50000 ] && echo 200 || echo 422)" "$steps steps"
    done
    still_serves
}

test_messages_that_could_mean_two_things_start_nothing_H1() {
    serve
    hostile framing
    still_serves
}

test_browsers_of_other_sites_are_refused_H2_H3_H4_H5() {
    serve
    hostile browser
    still_serves
}

test_limits_hold_at_their_edge_and_memory_with_them() {
    serve
    hostile limits
    still_serves
}

test_identifiers_that_are_none_reach_no_file_P2_P3() {
    serve
    hostile names "$PWD"
    still_serves
}

test_strangers_cost_little_and_learn_nothing_A4() {
    serve
    hostile strangers
    still_serves
}

test_slow_clients_hold_up_nobody() {
    serve
    hostile slow
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
