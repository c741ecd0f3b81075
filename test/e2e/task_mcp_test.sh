#!/usr/bin/env bash
# Kind mcp: a strict server over HTTP and as a program (mcp_server.py), and `cairn mcp` itself.
. "$(dirname "$0")/serve_lib.sh"

book() { printf 'apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: %s, path: %s}\nkeychain: [{name: api, kind: credential}]\nworkflow:\n  - step: start\n    tool:\n%s\n' "$1" "$1" "$2" >"$1.yaml"; }
played() { # NAME: runs it, whatever comes of it; its first step is in the file out
    "$CAIRN" run "$1.yaml" "${store[@]}" --run-id "$1" --progress none --credentials credentials.yaml "${@:2}" >run.out 2>run.err
    "$CAIRN" get "$1/start" "${store[@]}" -o json >out || fail "$1: $(cat run.err)"
}
says() { equal "$(jq -c "$1" out)" "$2" "$(cat out)"; }
fails() { played "$1" && equal "$("$CAIRN" events "$1" "${store[@]}" -o jsonl | jq -r 'select(.event_type=="task.attempt.failed") | .payload.error | "\(.kind)/\(.code)"' | tail -n 1)" "$2" "$(cat out)"; }
credentials() { printf 'api: {token: correct-horse-battery}\nwrong: {token: something-else}\n' >credentials.yaml; }
over_http() {
    credentials
    python3 "$e2e/mcp_server.py" http &
    wait_for test -s port
    at="url: 'http://127.0.0.1:$(cat port)/mcp', auth: api"
}
program="command: [python3, $e2e/mcp_server.py, stdio]"

test_tools_of_a_server_over_http() {
    over_http
    book add "      - {name: a, kind: mcp, server: sums, $at, method: tools/call, tool: add, arguments: {a: 2, b: 40}}"
    played add
    says '[.result.text, .result.server, .result.method, .result.tool, .result.arguments, .result.result.content[0].type, .result.initialize.serverInfo.name]' '["42","sums","tools/call","add",{"a":2,"b":40},"text","strict"]'
    equal "$(tail -n 1 heard)" 'session ended True'
    book list "      - {name: a, kind: mcp, $at, method: tools/list}"
    played list; says '[.result.result.tools[].name]' '["add","fail","env"]'
    book bad "      - {name: a, kind: mcp, $at, tool: fail}"; fails bad client_error/TOOL_FAILED
    book no "      - {name: a, kind: mcp, $at, method: prompts/get}"; fails no client_error/MCP_ERROR
    book who "      - {name: a, kind: mcp, $at, tool: add}"; sed -i 's/auth: api/auth: wrong/' who.yaml; fails who auth/HTTP_401
    book what "      - {name: a, kind: mcp, $at}"; fails what client_error/TOOL_MISSING
    book text "      - {name: a, kind: mcp, $at, tool: add, arguments: 7}"; fails text client_error/ARGUMENTS_INVALID
    ! grep -rqa correct-horse-battery store.db* || fail 'the token is in the store'
}

test_tools_of_a_program() {
    credentials
    book add "      - {name: a, kind: mcp, $program, tool: add, arguments: {a: 2, b: 40}}"
    played add; says .result.text '"42"'
    has heard '{"jsonrpc": "2.0", "id": "p", "result": {}}'
    has heard '"id": "s", "error": {"code": -32601'
    equal "$(tail -n 1 heard)" 'input ended'
    has <("$CAIRN" logs add/start "${store[@]}") 'ready to be spoken to'
    book list "      - {name: a, kind: mcp, $program, method: tools/list}"; played list; says '[.result.result.tools[].name]' '["add","fail","env"]'
    book env "      - {name: a, kind: mcp, $program, tool: env, arguments: {which: THE_TOKEN}, env: {THE_TOKEN: '{{ keychain.api.token }}'}}"
    played env; says .result.text '"***"'
    book args "      - {name: a, kind: mcp, command: python3, args: [$e2e/mcp_server.py, stdio, '{{ keychain.api.token }}'], tool: add}"; fails args client_error/SECRET_IN_ARGUMENT
    book none "      - {name: a, kind: mcp, command: no-such-program, tool: add}"; fails none not_found/COMMAND_NOT_FOUND
    book chat "      - {name: a, kind: mcp, command: [echo, hello], tool: add}"; fails chat parse/RESULT_INVALID
    book dead "      - {name: a, kind: mcp, command: ['true'], tool: add}"; fails dead connection/MCP_SERVER_ENDED
    ! grep -rqa correct-horse-battery store.db* || fail 'the token is in the store'
}

test_a_program_that_does_not_answer_ends_with_its_task() {
    credentials
    book slow "      - {name: a, kind: mcp, $program, tool: add, arguments: {a: 999, b: 1}, timeout_seconds: 1}"; fails slow timeout/TIMEOUT
    sed -i 's/, timeout_seconds: 1//' slow.yaml
    : >heard
    "$CAIRN" run slow.yaml "${store[@]}" --run-id gone --progress none >run.out 2>&1 &
    wait_for grep -q 999 heard
    "$CAIRN" cancel gone "${store[@]}" >cancel.out 2>&1 || fail "$(cat cancel.out)"
    wait $! && fail 'it ended well'
    wait_for bash -c "! grep -lsaz 'CAIRN_RUN_ID=gone' /proc/[0-9]*/environ"
}

test_cairn_itself_is_a_server_of_tools() {
    credentials
    book hello "      - {name: a, kind: python, code: 'result = 1'}"; played hello
    book look "      - {name: a, kind: mcp, command: [$CAIRN, mcp, --store, 'sqlite:$PWD/store.db'], tool: get_run, arguments: {run: hello}}"
    played look
    has <(jq -r .result.text out) COMPLETED
}

test_in_a_service_a_server_is_where_the_configuration_allows_and_a_program_has_walls() {
    over_http
    cat >cairn.toml <<END
[serve.fetch]
allow = [{ uri = "http://127.0.0.1:$(cat port)/mcp", allowPrivate = true }]
[serve.credentials]
api = { token = "correct-horse-battery" }
END
    serve
    here() { # NAME TASK: at the server; what its task gave or failed with
        book "$1" "$2"
        CAIRN_TOKEN=$token "$CAIRN" run "$1.yaml" --server "$url" --run-id "$1" --progress none >/dev/null 2>&1
        CAIRN_TOKEN=$token "$CAIRN" get "$1/start" --server "$url" -o json | jq -r '.error.code // .result.text'
    }
    equal "$(here fine "      - {name: a, kind: mcp, $at, tool: add, arguments: {a: 1, b: 2}}")" 3
    equal "$(here away "      - {name: a, kind: mcp, url: 'http://127.0.0.1:9/mcp', auth: api, tool: add}")" URL_NOT_ALLOWED
    cat >spy.py <<'P'
import json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    try: open("/etc/cairn-mcp-test", "w"); wrote = "wrote"
    except OSError: wrote = "walls"
    r = {"protocolVersion": "2025-06-18"} if m["method"] == "initialize" else {"content": [{"type": "text", "text": wrote + str(len([k for k in os.environ if "TOKEN" in k]))}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
P
    equal "$(here spy "      - {name: a, kind: mcp, command: [python3, -c, $(jq -Rs . spy.py)], tool: x, arguments: {name: api, key: api}}")" walls0
    stop_serving
}

run_tests "$@"
