#!/usr/bin/env bash
# Numbers are what they were: the same text before and after kill -9, in every document and store (docs/format/events.md, Numbers).
. "$(dirname "$0")/postgres_lib.sh"
. "$(dirname "$0")/serve_lib.sh"

# As written, and as it must come out. Values of one document, a line each.
written=(9223372036854775807 -9223372036854775808 9223372036854775808 -9223372036854775809 9007199254740991 9007199254740993
    761295407002419364 1000000000000000000000000000000 0.1 1e400 -0.0 1.0 1e2 1.10 0.1000000000000000055511151231257827 1e999999999)
canonical=(9223372036854775807 -9223372036854775808 9223372036854775808 -9223372036854775809 9007199254740991 9007199254740993
    761295407002419364 1000000000000000000000000000000 0.1 1e+400 -0.0 1.0 100.0 1.1 0.1000000000000000055511151231257827 1e+999999999)
list() { local IFS=,; echo "[$*]"; }
one() { list "$@" | tr -d '[]' | tr , ' '; }
# {"v0": ..., "deep": {"list": [[...]]}}
object() { local i=0 text=''; for v in "$@"; do text+="\"v$i\":$v,"; i=$((i + 1)); done; echo "{${text}\"deep\":{\"a\":[[$(list "$@")]]}}"; }
refs() { local i text=''; for i in "${!written[@]}"; do text+="$1v$i$2 "; done; echo "${text% }"; }
gate='while [ ! -e go ]; do sleep 0.05; done'

plan() {
    cat <<PLAN
{"planId":"p","planVersion":"1","schemaVersion":"v1.2","inputs":{"n":{"type":"object","default":$(object "${written[@]}")}},"steps":[
 {"stepId":"a","kind":"echo","with":{"message":$(object "${written[@]}")}},
 {"stepId":"gate","kind":"shell","dependsOn":["a"],"with":{"command":"echo up >up; $gate"}},
 {"stepId":"show","kind":"shell","dependsOn":["gate"],"with":{"command":"echo $(refs '$INPUTS.n.' ''); echo $(refs '$a.output.' '')"}},
 {"stepId":"again","kind":"echo","dependsOn":["gate"],"with":{"message":{"in":"\$INPUTS.n","out":"\$a.output"}}}]}
PLAN
}
nodes() {
    cat <<NODES
name: n
inputs: {n: {type: object, default: $(object "${written[@]}")}}
nodes:
  - {id: a, echo: $(object "${written[@]}")}
  - {id: gate, depends_on: [a], bash: "echo up >up; $gate"}
  - {id: show, depends_on: [gate], bash: "echo $(refs '$INPUTS.n.' ''); echo $(refs '$a.output.' '')"}
  - {id: again, depends_on: [gate], echo: {in: \$INPUTS.n, out: \$a.output}}
NODES
}
playbook() {
    cat <<BOOK
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: b, path: b}
workload: {n: $(object "${written[@]}")}
workflow:
  - step: start
    tool: {kind: python, code: "result = n", input: {n: "{{ workload.n }}"}}
    next: {arcs: [{step: gate, args: {seen: "{{ start }}"}}]}
  - step: gate
    tool: {kind: shell, cmds: ["echo up >up; $gate"]}
    next: {arcs: [{step: show}]}
  - step: show
    tool: {kind: shell, cmds: ["echo '$(refs '{{ workload.n.' ' }}')'; echo '$(refs '{{ start.' ' }}')'"]}
    next: {arcs: [{step: again}]}
  - step: again
    tool: {kind: python, code: "result = {'in': a, 'out': b, 'next': a['v7'] + 1}", input: {a: "{{ workload.n }}", b: "{{ start }}"}}
BOOK
}
wanted_texts() { for _ in 1 2; do one "${canonical[@]}"; done; }
results() { "$CAIRN" events "$1" "${store[@]}" -o jsonl; }

# NAME FILE: runs FILE to its end, and killed in the middle; both say what must come out, and verify.
both_ways() {
    rm -f up go
    touch go
    cairn_is 0 run "$2" "${store[@]}" --run-id "$1-live" --progress none
    rm -f up go
    "$CAIRN" run "$2" "${store[@]}" --run-id "$1-killed" --progress none >/dev/null 2>run.err </dev/null & pid=$!
    wait_for test -s up
    kill -9 $pid
    wait $pid 2>/dev/null
    touch go
    cairn_is 0 recover "${store[@]}"
    local deep run
    deep=$(list "${canonical[@]}")
    for run in "$1-live" "$1-killed"; do
        results "$run" >events
        grep -aqF "$(one "${canonical[@]}")\\n$(one "${canonical[@]}")" events || fail "$run: the texts are others: $(grep -a '"show"' events | grep -aoE '(result|stdout)":"[^"]*' | tail -n 1)"
        # in and out of the last step, each with its list
        equal "$(tail -n 8 events | grep -aoF "{\"deep\":{\"a\":[[$deep]]},\"v0\":${canonical[0]},\"v1\":" | wc -l | awk '{print ($1 >= 2)}')" 1 "$run: values of the last step"
    done
    [ "$1" != b ] || has events '"next":1000000000000000000000000000001'
    intact
}
each_document() {
    plan >p.json
    nodes >n.yaml
    playbook >b.yaml
    both_ways p p.json
    both_ways n n.yaml
    both_ways b b.yaml
}
test_numbers_live_through_a_kill_in_sqlite() { each_document; }
test_numbers_live_through_a_kill_in_files() { store=(--store "files:$PWD/f"); each_document; }
test_numbers_live_through_a_kill_in_postgres() { postgres_up; each_document; }

test_commands_and_copies_show_the_same_digits() {
    touch go
    plan >p.json
    cairn_is 0 run p.json "${store[@]}" --run-id p --progress none
    for v in "${canonical[@]}"; do
        cairn_is 0 get p "${store[@]}" -o json; has out "$v"
        cairn_is 0 get p/again "${store[@]}"; has out "$v"
    done
    cairn_is 0 log export p "${store[@]}" --out p.bundle
    cairn_is 0 log import p.bundle --store "files:$PWD/copy"
    cairn_is 0 log verify p --store "files:$PWD/copy"
    equal "$("$CAIRN" events p --store "files:$PWD/copy" -o jsonl | sha256sum)" "$(results p | sha256sum)" 'the copy'
    cairn_is 0 fork p "${store[@]}" --run-id p2 --from gate
    cairn_is 0 get p2 "${store[@]}" -o json; has out 0.1000000000000000055511151231257827; has out 9007199254740993
    cairn_is 0 ls "${store[@]}" 'input.n.v6=761295407002419364'; has out p
    cairn_is 0 ls "${store[@]}" 'input.n.v6=761295407002419365'; hasnt out COMPLETED
    cairn_is 0 ls "${store[@]}" 'input.n.v6>761295407002419363 input.n.v6<761295407002419365'; has out COMPLETED
}
test_a_service_and_its_clients_keep_the_digits() {
    unconfined
    plan >p.json
    serve
    ask POST /v1/runs "{\"runId\":\"s\",\"document\":$(jq -Rs . <p.json),\"inputs\":{\"n\":$(object "${written[@]}"),\"more\":[$(list "${written[@]}")]}}"
    answers 202
    wait_for test -s up
    kill -9 "$server"
    wait "$server" 2>/dev/null
    touch go
    serve
    wait_for status_is s COMPLETED
    ask GET /v1/runs/s/events
    answers 200
    has body "\"more\":[$(list "${canonical[@]}")]"
    has body "$(one "${canonical[@]}")\\n$(one "${canonical[@]}")"
    "$CAIRN" events s --server "$url" --token-file store.db.token -o jsonl >there
    results s >here
    cmp there here || fail 'the client reads other digits'
    cairn_is 0 run p.json --server "$url" --token-file store.db.token --run-id s2 --input <(echo "{\"more\":[$(list "${written[@]}")]}")
    results s2 >here
    has here "\"more\":[$(list "${canonical[@]}")]"
}
test_conditions_compare_exactly() {
    cat >w.json <<'PLAN'
{"planId":"w","planVersion":"1","inputs":{"id":9007199254740993,"one":1.0,"big":{"type":"integer","default":1000000000000000000000000000000}},"steps":[
 {"stepId":"gt","kind":"echo","dependsOn":[],"when":"$INPUTS.id > 9007199254740992","with":{"message":1}},
 {"stepId":"eq","kind":"echo","dependsOn":[],"when":"$INPUTS.id == 9007199254740992","with":{"message":1}},
 {"stepId":"one","kind":"echo","dependsOn":[],"when":"$INPUTS.one == 1","with":{"message":1}},
 {"stepId":"real","kind":"echo","dependsOn":[],"when":"$INPUTS.one == 1.0","with":{"message":1}},
 {"stepId":"big","kind":"echo","dependsOn":[],"when":"$INPUTS.big >= 1000000000000000000000000000001","with":{"message":1}}]}
PLAN
    cairn_is 0 run w.json "${store[@]}" --run-id w --progress none
    equal "$("$CAIRN" get w "${store[@]}" -o json | jq -r '[.steps[].status]|join(" ")')" 'SUCCESS SKIPPED SUCCESS SUCCESS SKIPPED'
}
test_what_is_too_long_is_refused_at_once() {
    local digits
    digits=$(head -c 4000000 /dev/zero | tr '\0' 7)
    printf '{"planId":"l","planVersion":"1","inputs":{"n":%s},"steps":[{"stepId":"a","kind":"noop"}]}' "$digits" >l.json
    cairn_is 3 validate l.json; has err 'number'
    cairn_is 3 run l.json "${store[@]}"; has err 'number'
    printf '{"planId":"e","planVersion":"1","inputs":{"n":1e1000000000},"steps":[{"stepId":"a","kind":"noop"}]}' >e.json
    cairn_is 3 validate e.json; has err 'exponent'
    printf '{"planId":"s","planVersion":"1","steps":[{"stepId":"a","kind":"noop"}]}' >s.json
    printf '{"n":%s}' "$digits" >in.json
    "$CAIRN" run s.json "${store[@]}" --input in.json >out 2>err; [ $? != 0 ] || fail 'such an input was taken'
}
test_an_amount_may_have_zeros_in_front() {
    for n in 007 00 00.5; do
        printf 'apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: z, path: z}\nworkload: {n: "%s"}\nworkflow:\n  - step: start\n    tool: {kind: shell, cmds: "echo hi", timeout: "{{ workload.n }}", spec: {policy: {rules: [{else: {then: {do: continue}}}]}}}\n' $n >z.yaml
        cairn_is 0 run z.yaml "${store[@]}" --run-id "z-$n" --progress none
    done
}
test_vectors_are_those_of_the_reference() {
    command -v python3 >/dev/null || skip 'python3 is not installed'
    python3 "$root/test/golden/numbers/canonical.py" | cmp - "$root/test/golden/numbers/canonical.json" || fail 'canonical.json is not what canonical.py writes'
}
run_tests "$@"
