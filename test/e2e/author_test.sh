#!/usr/bin/env bash
# What helps to write documents: graph, soundness, layout, conversion, plans, rendering, schemas, templates.
. "$(dirname "$0")/lib.sh"
ex=$root/examples

test_graph_of_a_file_in_every_format() {
    cairn_is 0 graph "$ex/joins.yaml"; has out '┌'; has out 'countdown'; has out 'all_done'; empty err
    [ "$(LC_ALL=C.UTF-8 wc -L <out)" -le 80 ] || fail 'wider than 80 columns'
    cairn_is 0 graph "$ex/joins.yaml" -o ascii; LC_ALL=C grep -q '[^ -~]' out && fail 'not ASCII'
    cairn_is 0 graph "$ex/joins.yaml" --ascii; LC_ALL=C grep -q '[^ -~]' out && fail 'not ASCII'
    cairn_is 0 graph "$ex/joins.yaml" -o dot; has_line out '^digraph'
    ! command -v dot >/dev/null || dot -Tsvg out >/dev/null || fail 'graphviz does not take it'
    cairn_is 0 graph "$ex/joins.yaml" -o mermaid; has_line out '^flowchart TD'
    cairn_is 0 graph "$ex/joins.yaml" -o svg; python3 -c 'import sys, xml.dom.minidom as m; m.parse("out")' || fail 'not XML'
    "$CAIRN" graph - <"$ex/hello.json" | grep -q greet || fail 'not from stdin'
}
test_graph_of_a_run_shows_states() {
    cairn_is 0 run "$ex/joins.yaml" "${store[@]}" --progress none
    cairn_is 0 graph @last "${store[@]}"; has out '✓ done'; has out '⊘ skipped'
    cairn_is 0 graph @last@2 "${store[@]}"; has out '◌ waiting'; hasnt out 'skipped'
    cairn_is 0 graph @last -o svg "${store[@]}"; has out 'class="n done"'; has out 'prefers-color-scheme:dark'
    cairn_is 0 graph @last --color always "${store[@]}"; has out $'\e[32m'
}
test_graph_of_nothing() {
    cairn_is 5 graph nowhere.yaml; has err 'nowhere.yaml'
    cairn_is 5 graph nosuchrun "${store[@]}"
    echo 'nodes: [{id: a}]' >bad.yaml; cairn_is 3 graph bad.yaml; has err 'bad.yaml:1'
    cairn_is 2 graph x.yaml -o png; has err 'text|ascii|dot|mermaid|svg'
}

test_validate_sound() {
    cat >branches.yaml <<'Y'
name: branches
inputs: { env: test }
nodes:
  - { id: a, bash: "true", when: "$INPUTS.env == 'prod'" }
  - { id: b, bash: "true", when: "$INPUTS.env == 'test'" }
  - { id: go, approval: ship?, depends_on: [a, b] }
Y
    cairn_is 0 validate branches.yaml
    cairn_is 3 validate --sound branches.yaml; empty out
    has err 'branches.yaml:6:11: error[E0604] nobody is ever asked for the approval "go"'
    has err "note: when a succeeds (\$INPUTS.env = 'prod'), b is skipped"
    cairn_is 3 validate --sound -o json branches.yaml; jq -e 'any(.[]; .note | test("b is skipped"))' out >/dev/null || fail 'no note'
    cairn_is 0 help E0604; has out 'nobody is ever asked'
    cairn_is 0 validate --sound --strict "$ex"/*.json "$ex"/*.yaml; empty err
}

test_fmt() {
    printf '# why\nname:   f\nnodes:\n-   id: a   # first\n    bash:  echo\n' >f.yaml
    printf '{"steps":[{"kind":"noop","stepId":"a"}],"planVersion":"1","planId":"p"}' >p.json
    cairn_is 0 fmt f.yaml; has out '  - id: a   # first'; has out '# why'; has_line out '^    bash: echo$'
    cairn_is 20 fmt --check f.yaml p.json; has out '+++ f.yaml'; has out '+  - id: a'; has err '2 documents are not formatted'
    cp f.yaml before; cairn_is 20 fmt --check f.yaml; cmp f.yaml before || fail '--check wrote'
    chmod 640 f.yaml; cairn_is 0 fmt -w f.yaml p.json; has err 'formatted f.yaml'; equal "$(stat -c %a f.yaml)" 640
    cairn_is 0 fmt --check f.yaml p.json; empty out; empty err
    cairn_is 0 fmt -w f.yaml; empty err; equal "$(ls | grep -c fmt-)" 0
    equal "$(jq -c 'keys_unsorted' p.json)" '["planId","planVersion","steps"]'
    cairn_is 2 fmt -w --check f.yaml; cairn_is 2 fmt -w -
    echo 'nodes: [' >bad.yaml; cairn_is 3 fmt -w bad.yaml; equal "$(cat bad.yaml)" 'nodes: ['
    cairn_is 0 fmt --check "$ex"/*.yaml "$ex"/*.json
}

test_convert() {
    cairn_is 0 convert "$ex/pause.json" --to nodes; mv out pause.yaml; has err 'comments'
    cairn_is 0 validate pause.yaml; cairn_is 0 convert pause.yaml --to plan
    equal "$(jq -c '[.steps[].stepId]' out)" '["one","two","three","four","five"]'
    cairn_is 3 convert "$ex/joins.yaml" --to plan; empty out; has err 'joins.yaml:32:9: error[E0801] "countdown": plans have no loops'
    cairn_is 2 convert "$ex/pause.json" --to plan; has err 'already'
    cairn_is 2 convert "$ex/pause.json"; has err '--to plan or --to nodes'
    cairn_is 0 convert "$ex/approval.yaml" --to plan; mv out approval.json
    cairn_is 0 run "$ex/approval.yaml" "${store[@]}" --progress none; cairn_is 0 run approval.json "${store[@]}" --progress none -o json
    equal "$(jq -r '.steps[]|select(.stepId=="release").result' out)" 'released v1.4.2'
}

test_plan() {
    cairn_is 0 plan "$ex/demo.yaml"; has out 'demo @ '; has out 'layer 2   lint, test, compress, debug-build'
    has out 'asks      ship: Ship'; has out 'longest   collect → test → bundle → ship → publish'; has out 'no limit: 5.0s by timeouts'; has out 'what has none: collect, lint'
    cairn_is 0 plan "$ex/demo.yaml" -o json
    equal "$(jq -r '.planRef.sha256' out)" "$(sha256sum "$ex/demo.yaml" | cut -d' ' -f1)"
    equal "$(jq -c '[.layers, .first, .criticalPath.boundMs, (.steps|length)]' out)" '[5,["collect"],5000,8]'
    cairn_is 0 plan "$ex/fan-out.yaml" --out fan.json; has err 'wrote fan.json'; cairn_is 0 validate fan.json
    cairn_is 0 fmt --check fan.json
    cairn_is 0 plan "$ex/approval.yaml" --out approval.json; cairn_is 0 validate approval.json
    cairn_is 3 plan "$ex/joins.yaml" --out joins.json; [ ! -e joins.json ] || fail 'written'; has err 'plans have no loops'
    printf 'name: r\ninputs: { day: { required: true } }\nnodes: [{ id: a, exec: [x], secrets: [{ name: K, ref: "env:KEY" }] }]\n' >r.yaml
    cairn_is 0 plan r.yaml; has out 'day  has to be given'; has out 'K from env:KEY for a'; has out 'no timeouts are declared: a'
}
test_render() {
    cairn_is 0 render "$ex/joins.yaml" --result seed='{"status": "ok", "rows": 7}'
    has out "\$seed.output.rows > 5  → '7' → true"; has out 'echo "loading 7 rows"'; has out 'CAIRN_REF_1=<$taken.output>'
    has out "\$INPUTS.env == 'production'  → 'staging'  → false"
    cairn_is 0 render "$ex/joins.yaml" --step taken; has out 'not known yet'
    cairn_is 0 render "$ex/joins.yaml" --step taken --result seed=text; has out 'the step fails'
    cairn_is 0 render "$ex/child.yaml" --step load --set region='a b; rm' -o json
    equal "$(jq -r .referenceEnvironment.CAIRN_REF_1 out)" 'a b; rm'; jq -r .with.command out | grep -q 'rm' && fail 'a value became program text'
    printf 'nodes: [{ id: a, bash: "echo 1" }, { id: b, depends_on: [a], bash: "echo $(( $a.output + 1 ))" }]\n' >n.yaml
    cairn_is 0 render n.yaml --step b; has out 'echo $(( <$a.output> + 1 ))'; hasnt out fails
    cairn_is 0 render n.yaml --step b --result a=x; has out 'fails      $a.output stands where the shell computes'
    cairn_is 5 render "$ex/child.yaml" --step laod; has err 'did you mean load?'
    cairn_is 2 render "$ex/child.yaml" --result load
    printf 'nodes: [{ id: a, bash: "echo $K", secrets: [{ name: K, ref: "env:KEY" }] }]\n' >s.yaml
    KEY=hidden "$CAIRN" render s.yaml >out || fail 'does not render'; has out 'K=*** from env:KEY'; hasnt out hidden
    cairn_is 0 run "$ex/joins.yaml" "${store[@]}" --progress none
    cairn_is 0 render @last/join "${store[@]}"; has out 'CAIRN_REF_1=loading 7 rows'
    cairn_is 0 render @last/join@4 "${store[@]}"; has out '<$taken.output>'
}
# What a step puts out stays data in a script of any shell.
test_bash_scripts_get_values_as_data() {
    cat >inject.yaml <<'Y'
nodes:
  - { id: evil, bash: "echo '$(touch pwned)'" }
  - { id: use, depends_on: [evil], script: "echo got $evil.output\ntrue", runtime: bash }
Y
    cairn_is 0 run inject.yaml "${store[@]}" --progress none -o json; [ ! -e pwned ] || fail 'a value was executed'
    equal "$(jq -r '.steps[]|select(.stepId=="use").result' out)" 'got $(touch pwned)'
}

test_schema() {
    cairn_is 0 schema; has_line out '^plan$'; has_line out '^event StepFailed$'; has_line out '^event node_failed$'; has_line out '^signal PAUSE$'
    cairn_is 0 schema plan steps.retry.backoff; has out 'plan steps[].retry.backoff'; has out 'one of    none, linear, exponential'; has out 'default   none'
    cairn_is 0 schema plan steps.retry; has_line out 'maxAttempts +integer 1..1000, required'; has out 'example   {"maxAttempts":3'
    cairn_is 0 schema plan steps.with; has_line out 'command +string  of exec, shell \(required\)'
    cairn_is 0 schema nodes nodes.loop_group.nodes.when; has out 'nodes[].loop_group.nodes[].when'
    cairn_is 0 schema event StepFailed payload; has_line out 'willRetry +boolean'
    cairn_is 0 schema signal SKIP_STEP stepId; has out 'Path of a step'
    cairn_is 5 schema plan steps.rety; has err 'there is no "rety" in steps[]'; has err 'did you mean retry?'
    cairn_is 5 schema plann; has err 'did you mean plan?'
    cairn_is 5 schema event StepFaild; has err 'did you mean StepFailed?'
    cairn_is 0 schema plan -o json; cmp <(jq -S . out) <(jq -S . "$root/schemas/plan.json") || fail 'not the schema itself'
    cairn_is 0 schema plan steps.retry -o json; jq -e .properties.maxAttempts out >/dev/null || fail 'not the schema at the path'
    # Every field of plans and node workflows is explained.
    for d in plan nodes; do
        for f in $("$CAIRN" schema $d -o json | jq -r '.properties|keys[]') ; do
            "$CAIRN" schema $d "$f" >out || fail "$d $f"; [ "$(wc -l <out)" -ge 2 ] || fail "$d $f says nothing"
        done
    done
}

test_every_template_makes_a_valid_document() {
    cairn_is 0 example -o name; mv out ids
    equal "$(wc -l <ids)" "$(ls "$ex"/*.json "$ex"/*.yaml | wc -l)"
    cairn_is 0 example; grep -vE '^[a-z-]+ +[A-Z].{10}' out && fail 'a template does not say what it shows'
    cairn_is 0 example joins; cmp out "$ex/joins.yaml" || fail 'not the bytes of the example'
    while read -r id; do
        mkdir "d-$id"
        (cd "d-$id" && cairn_is 0 new "my-$id" --template "$id" && has err "cairn run my-$id" && cairn_is 0 validate --strict my-* &&
            cairn_is 0 plan my-* -o json && equal "$(jq -r .planRef.planId out)" "my-$id") || exit 1
    done <ids
}
test_new_never_overwrites() {
    cairn_is 0 new flows/first; has err 'wrote flows/first.json'; cp flows/first.json before
    cairn_is 6 new flows/first.json; has err 'exists, and is not overwritten'; cmp before flows/first.json || fail 'overwritten'
    cairn_is 5 new x --template jions; has err 'did you mean joins?'
    cairn_is 2 new 'a b'; cairn_is 2 new ''; cairn_is 2 new ../..
    echo mine >child.yaml; cairn_is 0 new p --template parent; has err 'kept child.yaml'; equal "$(cat child.yaml)" mine
}
test_init() {
    cairn_is 0 init proj; has err 'wrote proj/flows/hello.yaml'; cairn_is 0 validate --strict --sound proj/flows/hello.yaml
    cairn_is 0 fmt --check proj/flows/hello.yaml
    cmp proj/schemas/nodes.json "$root/schemas/nodes.json" || fail 'another schema'
    echo '# mine' >>proj/cairn.toml; cairn_is 0 init proj; has err 'kept proj/cairn.toml'; has proj/cairn.toml '# mine'
    cd proj && cairn_is 0 run flows/hello.yaml "${store[@]}" --progress none -o json
    equal "$(jq -r '.steps[1].result' out)" 'HELLO, WORLD!'
}
# What --help shows is what works.
test_author_examples_of_the_help_run() {
    cd "$root" && cp -r examples "$OLDPWD/" && cd "$OLDPWD"
    cairn_is 0 run examples/joins.yaml --progress none
    cp examples/joins.yaml flow.yaml; mkdir flows; cp examples/approval.yaml flows/
    for c in graph fmt plan render convert schema example new init; do
        "$CAIRN" $c --help | sed -n '/^Examples/,/^[A-Z]/s/^  cairn /cairn /p' >lines
        [ -s lines ] || fail "$c has no examples"
        while read -r line; do
            case $line in *'| dot '*) command -v dot >/dev/null || continue ;; *'convert flow.yaml'*) cp examples/approval.yaml flow.yaml ;; esac
            (eval "${line//cairn /\"\$CAIRN\" }") >out 2>err </dev/null || [ $? = 20 ] || fail "$line: $(tail -n 2 err)"
        done <lines
    done
}

run_tests "$@"
