#!/usr/bin/env bash
# What each role may do, it can do from the command line.
. "$(dirname "$0")/serve_lib.sh"

test_every_command_works_for_every_role_that_the_matrix_allows_it() {
    serve
    python3 "$(dirname "$0")/roles.py" "$CAIRN" "$url" "$token" "$(dirname "$0")/../.." >faults 2>counted ||
        fail "$(cat counted) $(head -n 8 faults)"
    stop_serving
}

run_tests "$@"
