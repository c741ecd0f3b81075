#!/usr/bin/env bash
# Those who may know how a run went, but not what it was about: canaries in everything that a run takes, and every route read as every role.
. "$(dirname "$0")/serve_lib.sh"

test_no_role_without_payloads_sees_a_canary_on_any_route_C_39() {
    serve
    python3 "$(dirname "$0")/redaction.py" "$url" "$token" >faults 2>counted || fail "$(cat counted) $(head -n 5 faults)"
    stop_serving
}

run_tests "$@"
