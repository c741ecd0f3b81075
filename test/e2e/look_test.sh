#!/usr/bin/env bash
# Looking at runs: queries, moments, steps, who drives what, waiting for it.
. "$(dirname "$0")/lib.sh"

plan() { printf '{"planId":"%s","planVersion":"1","schemaVersion":"v1.2",%s"steps":[%s]}' "$1" "${3:-}" "$2" >"$1.json"; }
names() { "$CAIRN" ls "${store[@]}" --all -o name "$@" 2>err | sort | tr '\n' ' '; }

test_queries_find_runs() {
    plan release '{"stepId":"load","kind":"shell","with":{"command":"exit ${code:-0}","env":{"code":"$INPUTS.code"}}}' '"inputs":{"code":0,"env":"dev"},"metadata":{"tags":["nightly"]},'
    plan other '{"stepId":"a","kind":"shell","with":{"command":"sleep 9"},"timeout":"50ms"}'
    cairn_is 0 run release.json "${store[@]}" --run-id r-ok --set env=prod --progress none
    cairn_is 10 run release.json "${store[@]}" --run-id r-bad --set code=3 --progress none
    cairn_is 10 run other.json "${store[@]}" --run-id o-slow --progress none
    equal "$(names)" 'o-slow r-bad r-ok '
    equal "$(names status=FAILED)" 'o-slow r-bad '
    equal "$(names status=FAILED plan~REL)" 'r-bad '
    equal "$(names 'not status=COMPLETED' '(error=TIMEOUT or input.code>2)')" 'o-slow r-bad '
    equal "$(names error=TIMEOUT)" 'o-slow '
    equal "$(names step=load)" 'r-bad r-ok '
    equal "$(names step.load=FAILED)" 'r-bad '
    equal "$(names input.env=prod)" 'r-ok '
    equal "$(names --tag nightly)" 'r-bad r-ok '
    equal "$(names --tag nightly status=FAILED or plan=other)" 'r-bad '
    equal "$(names tag!=nightly)" 'o-slow '
    equal "$(names 'started>1h took<10s')" 'o-slow r-bad r-ok '
    equal "$(names 'started<1h')" ''
    equal "$(names --status failed plan=release)" 'r-bad '
    equal "$(names --status failed status=COMPLETED)" ''
    equal "$(names 'run=r-*' --since 1h)" 'r-bad r-ok '
    equal "$(names slow)" 'o-slow '
    cairn_is 2 ls 'plan=x staus=FAILED' "${store[@]}"; has err 'no field staus'; has_line err '^           \^\^\^\^\^$'; has err 'did you mean status?'
    cairn_is 2 ls 'took>5' "${store[@]}"; has err 'not a duration'
    cairn_is 0 help query; has out 'step.NAME'
}
test_pages_of_a_query_are_whole() {
    plan p '{"stepId":"a","kind":"noop"}'; plan q '{"stepId":"a","kind":"noop"}'
    for i in $(seq 1 7); do
        cairn_is 0 run p.json "${store[@]}" --run-id "p-$i" --progress none
        cairn_is 0 run q.json "${store[@]}" --run-id "q-$i" --progress none
    done
    for limit in 1 2 3 6 7 8; do
        equal "$("$CAIRN" ls step=a plan~p --limit $limit "${store[@]}" -o name | wc -l)" $((limit < 7 ? limit : 7)) "rows of $limit"
    done
    equal "$("$CAIRN" ls plan~p "${store[@]}" -o name | tr '\n' ' ')" 'p-7 p-6 p-5 p-4 p-3 p-2 p-1 '
    equal "$("$CAIRN" ls plan~p "${store[@]}" -o json | jq length)" 7
}
run_tests "$@"
