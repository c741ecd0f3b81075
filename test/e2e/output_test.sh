# Outputs above the limit: they fail their step with the size, or become what the document says of them (A2).
. "$(dirname "$0")/serve_lib.sh"

store() { store=(--store "sqlite:$PWD/store.db"); }
big='head -c 3000000 /dev/zero | tr "\\0" x' # of the limit of 1048576
plan() { # plan NAME [ON_OVERFLOW]: a long output, and a step that reads what came of it
    jq -n --arg c "$big" --arg o "${2:-}" '{planId: "p", planVersion: "1", steps: [
        {stepId: "a", kind: "shell", with: {command: $c}} + if $o == "" then {} else {output: {on_overflow: $o}} end,
        {stepId: "b", kind: "shell", dependsOn: ["a"], with: {command: "echo \"$ARTIFACTS_DIR\"; wc -c <\"$ARTIFACTS_DIR/$a.output.name\""}}]}' >"$1"
}
node() { printf 'name: w\nnodes:\n  - id: a\n    bash: %s\n%s' "$(jq -nr --arg c "$big" '$c|@json')" "${2:+    output: {on_overflow: $2\}$'\n'}" >"$1"; }
playbook() {
    printf 'apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: pb, path: pb}\nworkflow:\n  - step: start\n    tool:\n      kind: shell\n      cmds: [%s]\n%s' \
        "$(jq -nr '"head -c 9000000 /dev/zero | tr \"\\\\0\" x"|@json')" "${2:+      output: {on_overflow: $2\}$'\n'}" >"$1"
}
value() { "$CAIRN" get "$1" "${store[@]}" -o json | jq -c ".steps[0].result$2"; }

test_output_above_the_limit_fails_the_step_with_its_size() {
    store
    plan p.json; node w.yaml; playbook pb.yaml
    cairn_is 10 run p.json "${store[@]}" --run-id p; has err 'PAYLOAD_TOO_LARGE: its output has 3000000 bytes, above the limit of 1048576'
    cairn_is 10 run w.yaml "${store[@]}" --run-id w; has err 'its output has 3000000 bytes, above the limit of 1048576'
    cairn_is 10 run pb.yaml "${store[@]}" --run-id pb; has err 'its output has 9000000 bytes, above the limit of 8388608'
    cairn_is 0 why p/a "${store[@]}"; has out 'above the limit of 1048576'; has out 'on_overflow: artifact'
    cairn_is 0 get pb "${store[@]}"; has out 'on_overflow: artifact'
    cairn_is 0 help PAYLOAD_TOO_LARGE; has out on_overflow
    equal "$("$CAIRN" get p "${store[@]}" -o json | jq -r '.steps[1].status')" SKIPPED 'the step behind it'
}
test_artifact_keeps_all_of_it_and_gives_a_reference() {
    store
    plan p.json artifact; node w.yaml artifact; playbook pb.yaml artifact
    cairn_is 0 run p.json "${store[@]}" --run-id p
    equal "$(value p '|[.kind,.name,.sizeBytes]')" '["output","outputs/a.1.1.txt",3000000]'
    equal "$(value p .sha256)" "\"$(head -c 3000000 /dev/zero | tr '\0' x | sha256sum | cut -d' ' -f1)\""
    equal "$("$CAIRN" get p "${store[@]}" -o json | jq -r '.steps[1].result' | tail -n 1)" 3000000 'what the next step reads'
    cairn_is 0 artifacts ls p "${store[@]}"; has out outputs/a.1.1.txt
    cairn_is 0 artifacts get p outputs/a.1.1.txt "${store[@]}"; equal "$(wc -c <a.1.1.txt)" 3000000
    cairn_is 0 run w.yaml "${store[@]}" --run-id w; equal "$(value w .sizeBytes)" 3000000
    cairn_is 0 run pb.yaml "${store[@]}" --run-id pb; equal "$(value pb '|[.stdout,.artifact.sizeBytes]')" '["",9000000]'
    cairn_is 0 artifacts ls pb "${store[@]}" -o json; equal "$(jq -c '.[]|[.stepId,.kind,.sizeBytes,.state]' out)" '["start","output",9000000,"ok"]'
    cairn_is 0 artifacts cat pb "$(jq -r '.[0].name' out)" "${store[@]}"; equal "$(wc -c <out)" 9000000
    cairn_is 0 artifacts ls pb/start "${store[@]}"; has out outputs/
    sed 's/  - step: start/&\n    loop: {in: "{{ [1, 2] }}", iterator: it}/' pb.yaml >loop.yaml # each iteration has its own
    cairn_is 0 run loop.yaml "${store[@]}" --run-id loop
    cairn_is 0 artifacts ls loop "${store[@]}" -o json; equal "$(jq -c '[.[].sizeBytes], ([.[].name]|unique|length)' out | tr '\n' ' ')" '[9000000,9000000] 2 '
    intact
}
test_truncate_keeps_the_beginning_with_a_mark() {
    store
    plan p.json truncate; node w.yaml truncate; playbook pb.yaml truncate
    cairn_is 10 run p.json "${store[@]}" --run-id p # its second step finds no name in a text
    kept() { "$CAIRN" get "$1" "${store[@]}" -o json | jq -c '.steps[0]|[.truncated,.resultRef.sizeBytes]'; }
    has err 'output_cut_to=1048579'
    cairn_is 0 get p/a "${store[@]}"; has out 'output cut: 1048579 bytes of it are kept'
    [ "$(wc -c <out)" -lt 5000 ] || fail "get p/a prints $(wc -c <out) bytes"; has out 'bytes more: cairn logs'
    cairn_is 0 why p/a "${store[@]}"; has out 'output cut: 1048579 bytes of it are kept'
    equal "$(kept p)" '[true,1048579]' # as JSON: two quotes, and the newline of the mark has two characters
    cairn_is 0 run w.yaml "${store[@]}" --run-id w; equal "$(kept w)" '[true,1048579]'
    cairn_is 0 run pb.yaml "${store[@]}" --run-id pb; equal "$(kept pb)" '[null,8388664]'
}
test_output_settings_are_checked() {
    node w.yaml artefact
    cairn_is 3 validate w.yaml; has err artifact
    printf 'name: w\nnodes:\n  - {id: a, wait: 1s, output: {on_overflow: artifact}}\n' >w.yaml
    cairn_is 0 validate w.yaml; has err E0219
    cairn_is 3 validate --strict w.yaml
    printf 'name: w\nsandbox: true\nnodes:\n  - {id: a, bash: "true"}\n' >w.yaml # A6
    cairn_is 0 validate w.yaml; has err '"sandbox" has no effect'; cairn_is 3 validate --strict w.yaml
}
test_workers_keep_long_outputs_as_documents_say() {
    store
    serve --route '*=default' --lease 30s --drain 0
    ask POST /v1/tokens '{"name":"w","roles":["Worker"],"pool":"default"}'
    CAIRN_TOKEN=$(jq -r .token body) "$CAIRN" worker --server "$url" --name w1 -v >w.out 2>w.err &
    plan fail.json; plan art.json artifact
    for way in fail art; do ask POST /v1/runs "{\"document\":$(jq -c tojson $way.json),\"runId\":\"$way\"}" && [ "$status" -lt 300 ] || fail "$(cat body)"; done
    ended() { ask GET "/v1/runs/$1/status" && jq -e '.status|IN("COMPLETED","FAILED")' body >/dev/null; }
    wait_for ended fail; wait_for ended art
    ask GET /v1/runs/fail; has body 'its output has 3000000 bytes, above the limit of 1048576'
    ask GET /v1/runs/art; equal "$(jq -c '.steps[0].result|[.name,.sizeBytes]' body)" '["outputs/a.1.1.txt",3000000]'
    ask GET "/v1/runs/art/artifacts/content?name=outputs/a.1.1.txt" && [ "$status" = 200 ] || fail "$status $(head -c 300 body)"; equal "$(wc -c <body)" 3000000
    stop_serving
}

run_tests "$@"
