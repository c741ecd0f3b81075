#!/usr/bin/env bash
# The clients in clients/: one suite for each language, against services of this tree; and that they know the interface as it is.
. "$(dirname "$0")/serve_lib.sh"

# CAIRN_BEFORE, where it is set, is the binary of the version before: its service must do for these clients, too.
suite() {
    local cairn
    for cairn in "$CAIRN" ${CAIRN_BEFORE:+"$CAIRN_BEFORE"}; do
        python3 "$root/clients/conformance/run.py" "$cairn" "$1" >log 2>warnings || fail "$(grep '^not ok' log | head -n 3 | tr '\n' ' ') $(tail -n 3 warnings)"
        [ "$(grep -c '^ok ' log)" -ge 18 ] || fail "only $(grep -c '^ok ' log) cases"
    done
}
# Members that a version to come adds are passed over, in answers, in events and in tasks of workers.
against_a_later_version() {
    python3 "$root/clients/conformance/run.py" --later "$CAIRN" "$1" -- starts_once_and_waits streams_every_event_once signals_count_once lists_all_pages functions_are_steps \
        logs_of_functions_are_kept workers_outlive_their_server >log 2>warnings || fail "$(grep '^not ok' log | head -n 3 | tr '\n' ' ') $(tail -n 3 warnings)"
    equal "$(grep -c '^ok ' log)" 7
}
test_the_python_client_works_with_a_later_service() { against_a_later_version "python3 $root/clients/conformance/adapter.py"; }
test_the_typescript_client_works_with_a_later_service() {
    [ -x "$root/web/node_modules/.bin/esbuild" ] || skip 'the tools of the page are not installed'
    "$root/web/node_modules/.bin/esbuild" "$root/clients/conformance/adapter.ts" --bundle --platform=node --format=esm --outfile=adapter.mjs --log-level=warning || fail esbuild
    against_a_later_version "node $PWD/adapter.mjs"
}
test_the_python_client_and_worker_conform() { suite "python3 $root/clients/conformance/adapter.py"; }
test_the_typescript_client_and_worker_conform() {
    [ -x "$root/web/node_modules/.bin/esbuild" ] || skip 'the tools of the page are not installed'
    "$root/web/node_modules/.bin/esbuild" "$root/clients/conformance/adapter.ts" --bundle --platform=node --format=esm --outfile=adapter.mjs --log-level=warning || fail esbuild
    suite "node $PWD/adapter.mjs"
}
test_the_typescript_client_has_no_wrong_type() {
    [ -x "$root/web/node_modules/.bin/tsc" ] || skip 'the tools of the page are not installed'
    "$root/web/node_modules/.bin/tsc" -p "$root/clients/typescript" --noEmit >log || fail "$(head -n 5 log)"
}
test_the_clients_know_the_interface_as_it_is() {
    serve
    ask GET /openapi.json
    answers 200
    python3 "$root/clients/generate.py" body --check 2>err || fail "$(cat err)"
}
# What a client of a released version sends is taken, and what it reads is there (docs/how-to/upgrade.md).
test_clients_of_released_versions_find_their_interface() {
    serve
    ask GET /openapi.json
    answers 200
    for released in "$root"/clients/conformance/released/*.json; do
        python3 "$root/clients/conformance/compatible.py" "$released" body >breaks || fail "$(basename "$released" .json): $(head -n 5 breaks)"
    done
    while read -r wanted edit; do # each break is noticed
        jq "$edit" body >changed.json
        python3 "$root/clients/conformance/compatible.py" "$released" changed.json >breaks && fail "passed: $edit"
        grep -q "$wanted" breaks || fail "$edit: $(cat breaks)"
    done <<'PLANTED'
gone del(.paths["/v1/runs"].post)
called .paths["/v1/runs"].post.operationId="other"
inputs del(.components.schemas.StartRun.properties.inputs)
required .components.schemas.StartRun.required+=["queue"]
required .paths["/v1/runs"].get.parameters+=[{in:"query",name:"new",required:true}]
lastEventSeq del(.components.schemas.RunStatus.properties.lastEventSeq)
missing .components.schemas.RunStatus.required=["runId"]
string .components.schemas.RunStatus.properties.runId.type="integer"
string .components.schemas.StartRun.properties.document.type="object"
json del(.paths["/v1/runs"].post.responses["202"].content)
PLANTED
    jq '.components.schemas.RunStatus.properties.more={"type":"string"} | .components.schemas.StartRun.properties.more={"type":"string"} | .paths["/v1/more"]=.paths["/v1/runs"] |
        .components.schemas.RunStatus.properties.status.enum+=["LATER"]' body >changed.json
    python3 "$root/clients/conformance/compatible.py" "$released" changed.json >breaks || fail "what was added counts as a break: $(cat breaks)"
}
test_a_function_of_the_server_s_workers_is_started_from_the_command_line() {
    serve --route 'mirror=default'
    export CAIRN_TOKEN=$token
    echo '{"metadata":{"planId":"p","planVersion":"1","schemaVersion":"v1.2"},"steps":[{"id":"a","kind":"mirror","with":{"n":1}}]}' >p.json
    python3 "$root/clients/conformance/adapter.py" worker "$url" w1 >/dev/null 2>&1 &
    cairn_is 0 run p.json --server "$url" --run-id r1
    sed -i s/mirror/miror/ p.json
    cairn_is 3 run p.json --server "$url" --run-id r2
    has err miror
}
# What clients/python/README.md and clients/typescript/README.md tell their readers to write and type, in a place where only the packages are.
block() { awk -v begin="\`\`\`$2" -v nth="$3" '$0 == begin { seen++; on = seen == nth; next } $0 == "```" { on = 0 } on' "$root/clients/$1/README.md"; }
serve_as_the_readme_says() {
    serve $(guide_lines "clients/$1/README.md" clients | sed -n 's/^cairn serve *\([^#]*\).*/\1/p')
    export CAIRN_TOKEN=$token
    block "$1" yaml 1 >order.yaml
}
test_the_programs_of_the_python_readme_work_with_the_wheel() {
    "$root/tools/wheel" "$root/clients/python" . >/dev/null || fail tools/wheel
    guide_lines clients/python/README.md clients | grep -qF "pip install $(ls cairn_client-*.whl)" || fail 'the wheel has another name'
    python3 -m zipfile -e cairn_client-*.whl site
    serve_as_the_readme_says python
    export PYTHONPATH=site
    block python python 1 | sed "s|http://127.0.0.1:7117|$url|" >client.py
    block python python 2 | sed "s|http://127.0.0.1:7117|$url|" >worker.py
    python3 -W error worker.py >worker.log 2>&1 &
    local worker=$!
    timeout 60 python3 -W error client.py >out 2>err || fail "client: $(tail -n 3 err; tail -n 3 worker.log)"
    has out RunStarted; has out COMPLETED; has out "{'receipt': 'receipt-"
    kill -TERM "$worker"; wait "$worker" || fail "the worker ended with $?: $(tail -n 3 worker.log)"
}
test_the_programs_of_the_typescript_readme_work_with_the_package() {
    [ -x "$root/web/node_modules/.bin/tsc" ] || skip 'the tools of the page are not installed'
    mkdir -p node_modules/cairn-client
    "$root/web/node_modules/.bin/tsc" -p "$root/clients/typescript" --outDir "$PWD/node_modules/cairn-client/dist" || fail tsc
    cp "$root/clients/typescript/package.json" node_modules/cairn-client/
    guide_lines clients/typescript/README.md clients | grep -qF "npm install ./cairn-client-$(jq -r .version node_modules/cairn-client/package.json).tgz" || fail 'the package has another name'
    # what @types/node says of the two names of Node that the programs use
    echo 'declare module "node:fs" { export function readFileSync(path: string, encoding: "utf8"): string; } declare const process: { env: Record<string, string | undefined> };' >node.d.ts
    serve_as_the_readme_says typescript
    block typescript ts 1 | sed "s|http://127.0.0.1:7117|$url|" >client.mts
    block typescript ts 2 | sed "s|http://127.0.0.1:7117|$url|" >worker.mts
    "$root/web/node_modules/.bin/tsc" --strict --target es2022 --module nodenext --skipLibCheck node.d.ts client.mts worker.mts >types 2>&1 || fail "types: $(head -n 5 types)"
    node worker.mjs >worker.log 2>&1 &
    local worker=$!
    timeout 60 node client.mjs >out 2>err || fail "client: $(tail -n 3 err; tail -n 3 worker.log)"
    has out RunStarted; has out COMPLETED; has out "receipt: 'receipt-"
    kill -TERM "$worker"; wait "$worker" || fail "the worker ended with $?: $(tail -n 3 worker.log)"
}
# A wheel is what a user installs: it is put where nothing of this tree can be seen.
test_the_wheel_of_the_client_works_where_it_is_installed() {
    "$root/tools/wheel" "$root/clients/python" . >/dev/null || fail tools/wheel
    cp cairn_client-*.whl first.whl
    "$root/tools/wheel" "$root/clients/python" . >/dev/null
    cmp -s first.whl cairn_client-*.whl || fail 'two wheels of the same sources differ'
    python3 -m zipfile -e first.whl site
    serve
    cat >use.py <<'PY'
import sys
from cairn_client import Client
with Client(sys.argv[1], sys.argv[2]) as client:
    run = client.start({"metadata": {"planId": "p", "planVersion": "1", "schemaVersion": "v1.2"}, "steps": [{"id": "a", "kind": "noop"}]})
    print(run.wait()["status"])
PY
    equal "$(PYTHONPATH=site python3 -W error use.py "$url" "$token")" COMPLETED
}
run_tests "$@"
