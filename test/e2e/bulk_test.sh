# Many runs at once, and the commands as tools for an assistant.
. "$(dirname "$0")/serve_lib.sh"

here() { export CAIRN_SERVER=$url CAIRN_TOKEN=$token; }
status_at() { [ "$("$CAIRN" get "$1" -o json 2>/dev/null | jq -r .status)" = "$2" ]; }
flaky() { printf 'name: flaky\nnodes:\n  - id: a\n    bash: exit 3\n' >flaky.yaml; }
three_failed() {
    flaky
    for i in 1 2 3; do "$CAIRN" run flaky.yaml --run-id "f$i" --detach >/dev/null 2>&1; done
    for i in 1 2 3; do wait_for status_at "f$i" FAILED; done
}
count() { "$CAIRN" ls --all -o json | jq length; }

test_a_bulk_is_looked_at_first_and_does_nothing_twice() {
    serve
    here
    three_failed
    cairn_is 0 bulk retry status=FAILED --dry-run -o json
    equal "$(jq -r 'map(.runId) | sort | join(" ")' out)" 'f1 f2 f3'
    equal "$(count)" 3
    cairn_is 2 bulk retry status=FAILED
    has err 'nothing was sent'
    equal "$(count)" 3
    id=11111111-1111-4111-8111-111111111111
    cairn_is 0 bulk retry status=FAILED run=f1 --yes --id $id -o json
    equal "$(jq -r '.[].decision' out)" ACCEPTED
    equal "$(count)" 4
    # the same bulk over more runs: the one that was done is not done again
    cairn_is 0 bulk retry status=FAILED run=f* --yes --rate 100 --id $id -o json
    equal "$(jq -r 'sort_by(.runId) | map(.decision) | join(" ")' out)" 'BEFORE ACCEPTED ACCEPTED'
    equal "$(count)" 6
    cairn_is 6 bulk cancel run=f1 --yes --reason x -o json
    equal "$(jq -r '.[].errorCode' out)" RUN_TERMINAL
    cairn_is 2 bulk skip status=FAILED --yes
    has err 'skip needs --step'
    cairn_is 2 bulk UPDATE_PARAMS status=FAILED --yes
    has err 'one run at a time'
}

test_a_bulk_keeps_to_its_rate() {
    serve
    here
    three_failed
    began=$(date +%s%N)
    cairn_is 0 bulk retry 'run=f*' --yes --rate 2
    [ $((($(date +%s%N) - began) / 1000000)) -ge 1000 ] || fail 'three runs at two a second took less than a second'
}

request() { jq -nc --argjson id "$1" --arg m "$2" --argjson p "${3:-{\}}" '{jsonrpc: "2.0", id: $id, method: $m, params: $p}'; }
call() { request "$1" tools/call "$(jq -nc --arg n "$2" --argjson a "$3" '{name: $n, arguments: $a}')"; }
of() { jq -c --argjson id "$1" 'select(.id == $id)' answers; }

test_an_assistant_reads_and_changes_nothing_unless_it_is_allowed() {
    serve
    here
    three_failed
    {
        request 1 initialize '{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}'
        echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
        request 2 tools/list
        call 3 list_runs '{"query":"status=FAILED","limit":2}'
        call 4 explain '{"target":"f1/a"}'
        call 5 signal_run '{"run":"f1","type":"RETRY_RUN","reason":"x","confirm":true}'
        call 6 get_run '{"run":"--help"}'
        call 7 get_run '{}'
        call 8 get_run '{"run":"nobody"}'
        request 9 resources/list
        echo 'no json'
        request 10 ping
    } | "$CAIRN" mcp >answers || fail "mcp ended with $?"
    equal "$(of 1 | jq -r '.result.protocolVersion + " " + .result.serverInfo.name')" '2025-06-18 cairn'
    of 2 | jq -e '.result.tools | length >= 8 and all(.annotations.readOnlyHint and .inputSchema.type == "object")' >/dev/null || fail "$(of 2)"
    equal "$(of 3 | jq -r '.result.content[0].text | fromjson | length')" 2
    of 4 | jq -r '.result.content[0].text' | grep -q EXIT_NONZERO || fail "$(of 4)"
    equal "$(of 5 | jq .error.code)" -32602
    equal "$(of 6 | jq .error.code)" -32602
    equal "$(of 7 | jq .error.code)" -32602
    equal "$(of 8 | jq .result.isError)" true
    equal "$(of 9 | jq .error.code)" -32601
    equal "$(jq -c 'select(.id == null) | .error.code' answers)" -32700
    equal "$(of 10 | jq -c .result)" '{}'
    equal "$(count)" 3
    printf '%s\n' "$(call 1 signal_run '{"run":"f1","type":"RETRY_RUN","reason":"it is back","confirm":false}')" \
        "$(call 2 signal_run '{"run":"f1","type":"RETRY_RUN","reason":"it is back","confirm":true}')" \
        "$(call 3 start_run '{"file":"flaky.yaml","confirm":true}')" | "$CAIRN" mcp --allow signal --allow start >answers
    equal "$(of 1 | jq .result.isError)" true
    of 1 | grep -q 'Ask the person' || fail "$(of 1)"
    equal "$(of 2 | jq -r .result.isError)" false
    equal "$(of 3 | jq -r .result.isError)" false
    equal "$(count)" 5
}

# Each becomes two words of a command; more than had room were left out without a word, and one too many was written behind the list.
test_an_assistant_gives_many_inputs_and_not_too_many() {
    serve
    here
    jq -nc '[range(40)] | {metadata: {planId: "many", planVersion: "1", schemaVersion: "v1.2"}, steps: [{stepId: "a", kind: "shell", with: {command: "true"}}]}' >many.json
    inputs() { jq -nc --argjson n "$1" '{file: "many.json", confirm: true, inputs: ([range($n)] | map({key: "i\(.)", value: .}) | from_entries)}'; }
    printf '%s\n' "$(call 1 start_run "$(inputs 40)")" "$(call 2 start_run "$(inputs 101)")" "$(call 3 start_run "$(inputs 100)")" |
        "$CAIRN" mcp --allow start >answers || fail "mcp ended with $?"
    equal "$(of 1 | jq -r .result.isError)" false
    run=$(of 1 | jq -r '.result.content[0].text' | grep -vE '^(warning|  )' | head -n 1)
    "$CAIRN" events "$run" -o json | jq -c . | grep -q '"i39"' || fail "inputs are missing: $("$CAIRN" events "$run" -o json | head -c 500)"
    of 2 | jq -e '.error.message | test("more inputs than 100")' >/dev/null || fail "$(of 2)"
    equal "$(of 3 | jq -r .result.isError)" false
}

run_tests "$@"
