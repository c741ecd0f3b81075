#!/usr/bin/env bash
# `cairn equiv`: one document on several hosts; what is the same, what is not, and how that is told.
. "$(dirname "$0")/lib.sh"

build=${CAIRN_BUILD:-$root/build/test}
[[ $build = /* ]] || build=$root/$build
planted() { export CAIRN=$build/cairn CAIRN_EQUIV_PLANT=$1; } # only builds for tests have that

flow() {
    cat >flow.yaml <<'DOC'
name: flow
nodes:
  - id: load
    bash: load
    retry: {max_attempts: 2, delay_ms: 1000, on_error: all}
  - id: check
    bash: check
  - id: gate
    depends_on: [load]
    approval: {message: go on}
  - id: end
    depends_on: [gate, check]
    echo: "got $load.output"
DOC
    cat >flow.test.yaml <<'DOC'
document: flow.yaml
mocks:
  load#1: {exit: 1, takes: 2s}
  load#2: {output: seven, lost: 1}
  check: {output: fine, takes: 1h}
cases:
  - name: the gate opens
    approvals: {gate: yes}
  - name: somebody pauses
    approvals: {gate: {answer: no, takes: 1h}}
    signals: [{after: load completed, send: pause}, {after: run paused, wait: 30s, send: resume}]
DOC
}

test_cases_of_a_test_file_are_the_same_on_every_host() {
    flow
    cairn_is 0 equiv flow.test.yaml --on embedded,sqlite,files,mock
    has_line out '^✓ flow.test.yaml  the gate opens  COMPLETED, [0-9]+ records, 1h00m'
    has_line out '^✓ flow.test.yaml  somebody pauses  FAILED'
    has_line out '^2 the same, 0 different'
}
test_a_document_alone_is_played_as_the_seed_draws_it() {
    flow
    cairn_is 0 equiv flow.yaml --on embedded,sqlite --cases 3 --seed 7
    has out 'everything succeeds'; has out 'seed 7'; has out 'seed 9'; has_line out '^4 the same'
}
test_killed_hosts_come_to_the_same_end() {
    flow
    cairn_is 0 equiv flow.test.yaml --filter opens --on embedded,sqlite,files --faults 4
    has_line out '1 the same, 0 different, [0-9]+ kills'
}
test_a_difference_is_shown_side_by_side_with_its_cause() {
    flow
    planted sqlite:output
    cairn_is 20 equiv flow.test.yaml --filter opens --on embedded,sqlite,files
    has out 'sqlite differs from embedded at load (changed): event 6 node_completed'
    has_line out '^ +embedded +"seven"$'; has_line out 'sqlite +"\\"planted\\""'
    has_line out '^      why$'; has out 'load is done'; hasnt out 'files differs'
    cairn_is 20 equiv flow.test.yaml --filter opens --on embedded,sqlite -o json
    equal "$(jq -c '[.same, .different, .cases[0].differences[0].host, .cases[0].differences[0].what, .cases[0].differences[0].at]' out)" '[0,1,"sqlite","changed","load"]'
    cairn_is 20 equiv flow.test.yaml --on embedded,sqlite -o junit
    has out '<testsuite name="cairn equiv" tests="2" failures="2"'; has out '<failure message="sqlite: changed">'
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' out || fail 'no XML'
}
test_a_run_that_has_been_is_played_again() {
    export CAIRN_STORE=sqlite:$PWD/store.db
    cairn_is 0 run "$root/examples/hello.json" --run-id one --progress none
    cairn_is 0 equiv --like one --on embedded,files
    has_line out 'like one  COMPLETED'
}
test_what_is_wrong_is_said_with_a_way_on() {
    flow
    cairn_is 2 equiv flow.yaml --on embedded,moon; has err 'there is no host "moon"'; has err 'hosts are embedded'
    cairn_is 2 equiv flow.yaml --on embedded; has err 'at least two hosts'
    cairn_is 2 equiv flow.yaml --on embedded,embedded; has err 'is there twice'
    cairn_is 2 equiv flow.yaml --on embedded,postgres; has err 'needs a place'
    cairn_is 2 equiv; has err 'a document or a test file is wanted'
    cairn_is 5 equiv flow.test.yaml --filter nothing --on embedded,files; has err 'no case has "nothing"'
    echo 'nodes: 3' >broken.yaml
    cairn_is 3 equiv broken.yaml
}

# Documents of all three kinds out of seeds, against a model that knows the contract and not the engine; `make equiv-soak` has 10,000.
test_drawn_documents_do_what_an_independent_model_says() {
    for kind in plan nodes playbook; do
        python3 "$root/test/equiv/soak.py" "$CAIRN" 100 --kind "$kind" >said 2>&1 || fail "$(head -c 1500 said)"
        has_line said '^100 documents of [0-9]+ drawn: the engine and the model say the same$'
    done
}
test_a_model_that_is_wrong_is_found_and_the_document_is_made_small() {
    for kind in plan playbook; do
        python3 "$root/test/equiv/soak.py" "$CAIRN" 100 --kind "$kind" --lie >said 2>&1 && fail "nothing differs: $(cat said)"
        has_line said "^seed [0-9]+ \\($kind\\) differs: "; has_line said '^--- small.json$'
        [ "$(sed -n '/^--- small.json$/{n;p}' said | jq '.steps // .workflow | length')" -le 3 ] || fail "not small: $(cat said)"
    done
}
run_tests "$@"
