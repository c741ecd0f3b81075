# The page in a browser (Debian's Chromium), against the service itself; and what the API gives for it.
. "$(dirname "$0")/serve_lib.sh"
. "$(dirname "$0")/web_lib.sh"

test_the_graph_of_a_run_is_its_document_as_steps_and_ways() {
    serve
    plan=$(plan_text graph '{"stepId":"a","kind":"noop"}' '{"stepId":"b","kind":"noop","dependsOn":["a"],"when":"$INPUTS.x == 1"}' '{"stepId":"c","kind":"noop","dependsOn":["a","b"],"triggerRule":"all_done"}')
    ask POST /v1/runs "{\"document\": $plan, \"runId\": \"g1\"}" && [ "$status" -lt 300 ] || fail "$(cat body)"
    ask GET /v1/runs/g1/graph && answers 200
    equal "$(jq -c '[.documentKind, [.steps[].stepId], [.arcs[] | .from + ">" + .to]]' body)" '["plan",["a","b","c"],["a>b","a>c","b>c"]]'
    equal "$(jq -r '.steps[1].when + " " + .steps[2].triggerRule' body)" '$INPUTS.x == 1 all_done'
    playbook='apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: p, path: p}\nworkflow:\n- step: one\n  loop: {in: [1, 2], iterator: n}\n  tool: {kind: noop}\n  next: {arcs: [{step: two, when: \"{{ true }}\"}]}\n- step: two\n  tool: {kind: noop}\n'
    ask POST /v1/runs "{\"document\": \"$playbook\", \"runId\": \"g2\"}" && [ "$status" -lt 300 ] || fail "$(cat body)"
    ask GET /v1/runs/g2/graph && answers 200
    equal "$(jq -c '[.documentKind, .steps[0].loop, .steps[0].tasks[0].kind, .arcs]' body)" '["playbook",true,"noop",[{"from":"one","to":"two","when":"{{ true }}"}]]'
    # the same of a document that has not run
    cp body ran && ask POST /v1/plans:graph "{\"document\": \"$playbook\"}" && answers 200
    cmp body ran || fail "$(cat body)"
    ask POST /v1/plans:graph "{\"document\": $(plan_text graph '{"stepId":"a","kind":"noop","dependsOn":["b"]}')}" && answers 422
    [ "$(jq '.errors | length' body)" -gt 0 ] || fail "$(cat body)"
    token='' ask POST /v1/plans:graph '{"document": "x"}' && answers 401
    token='' ask GET /v1/runs/g1/graph && answers 401
    ask GET /v1/runs/none/graph && answers 404
}

# Among them a substatus that nobody knows, which is shown as it was sent.
test_each_view_in_a_browser_without_complaint_or_barrier_WE_2_1_2i() {
    in_a_browser views hostile
}

# Types come from the description that this binary gives; beside a copy of the sources, so that the checkout stays as it is.
test_the_types_of_the_page_fit_what_the_api_says_of_itself() {
    local packages=$root/web/node_modules
    [ -x "$packages/.bin/tsc" ] || skip "built without the page (PAGE=no)"
    serve
    ask GET /openapi.json && answers 200
    cp -r "$root/web/src" "$root/web/tsconfig.json" . && ln -s "$packages" node_modules && mkdir -p src/gen
    "$packages/.bin/openapi-typescript" body -o src/gen/api.d.ts >made.log 2>&1 || fail "$(tail -n 5 made.log)"
    "$packages/.bin/tsc" --noEmit -p . >types.log 2>&1 || fail "$(head -n 10 types.log)"
}

test_colours_can_be_told_apart_and_read() {
    node "$root/web/test/colours.mjs" >out || fail "$(head -c 600 out)"
}

run_tests "$@"
