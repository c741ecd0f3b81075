# A run in the page, in a browser: its views, its past, why, the proof of its log; and connections that are cut.
. "$(dirname "$0")/serve_lib.sh"
. "$(dirname "$0")/web_lib.sh"

test_a_run_in_a_browser_now_and_in_its_past() {
    in_a_browser run
}

test_a_browser_loses_nothing_when_the_stream_is_cut_and_the_server_dies() {
    in_a_browser cut
}

run_tests "$@"
