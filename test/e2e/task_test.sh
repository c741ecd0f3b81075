#!/usr/bin/env bash
# Tools of playbooks through the binary: in this process, in a service, at a worker.
. "$(dirname "$0")/serve_lib.sh"

playbook() { # NAME TASKS (YAML list, indented by six)
    printf 'apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: %s, path: %s}\nkeychain: [{name: api, kind: credential}]\nworkflow:\n  - step: start\n    tool:\n%s\n' "$1" "$1" "$2"
}
result() { "$CAIRN" get "$1/start" -o json "${@:2}" | jq -c .result; }

test_tasks_use_credentials_and_plug_ins_of_flags() {
    mkdir tools
    printf '#!/bin/sh\njq -c "{twice: (.with.n * 2), task: .task}"\n' >tools/double && chmod +x tools/double
    printf 'api: {token: {secret: "env:THE_TOKEN"}}\n' >credentials.yaml
    playbook p "      - {name: twice, kind: double, n: 21}
      - {name: show, kind: python, input: {n: '{{ twice.twice }}', t: '{{ keychain.api.token }}'}, code: 'result = {\"n\": n, \"t\": t, \"size\": len(t)}'}" >p.yaml
    export THE_TOKEN=correct-horse-battery
    local store=(--store "sqlite:$PWD/s.db")
    "$CAIRN" run p.yaml --run-id r "${store[@]}" --progress none --tools tools --credentials credentials.yaml || fail "the run failed"
    equal "$(result r "${store[@]}")" '{"n":42,"size":21,"t":"***"}' "what came out"
    ! grep -q correct-horse-battery s.db* -r s.db-logs || fail "the secret is in the store"
    "$CAIRN" run p.yaml "${store[@]}" --progress none 2>err && fail "it ran without its tool"
    grep -q double err || fail "it does not say which tool is missing: $(cat err)"
}

test_task_of_a_service_goes_where_its_configuration_allows() {
    serve
    playbook web "      - {name: get, kind: http, url: 'http://127.0.0.1:9/x'}" >web.yaml
    playbook py "      - {name: p, kind: python, code: 'result = 7'}" >py.yaml
    CAIRN_TOKEN=$token "$CAIRN" run web.yaml --server "$url" --run-id web --progress none 2>/dev/null && fail "it went out"
    CAIRN_TOKEN=$token "$CAIRN" get web --server "$url" | grep -q URL_NOT_ALLOWED || fail "not refused by the policy"
    CAIRN_TOKEN=$token "$CAIRN" run py.yaml --server "$url" --run-id py --progress none || fail "python failed: $(cat serve.err 2>/dev/null | tail -3)"
    equal "$(CAIRN_TOKEN=$token result py --server "$url")" 7 result
    stop_serving
}

test_tasks_that_a_route_names_run_at_a_worker() {
    unconfined
    serve --route python=default
    ask POST /v1/tokens '{"name":"w","roles":["Worker"],"pool":"default"}'
    local worker_token worker
    worker_token=$(jq -r .token body)
    playbook far "      - {name: a, kind: python, code: 'import os; result = os.environ.get(\"HERE\", \"\")'}
      - {name: b, kind: shell, cmds: 'echo {{ a }}-${HERE:-server}'}" >far.yaml
    HERE=worker CAIRN_TOKEN=$worker_token "$CAIRN" worker --server "$url" --kinds python >w.out 2>w.err &
    worker=$!
    CAIRN_TOKEN=$token timeout 50 "$CAIRN" run far.yaml --server "$url" --run-id far --progress none || fail "it failed: $(cat w.err)"
    equal "$(CAIRN_TOKEN=$token "$CAIRN" get far/start -o json --server "$url" | jq -r .result.stdout)" "worker-server" "who ran what"
    kill "$worker" && wait "$worker"
    stop_serving
}

run_tests "$@"
