#!/usr/bin/env bash
# One run id, wanted by many processes at the same moment: one of them has it, and its step runs once. The others are refused (exit 6), or
# find that the run has ended and say so (exit 0). None of them dies of it.
. "$(dirname "$0")/postgres_lib.sh"
. "$(dirname "$0")/serve_lib.sh"

once() { echo '{"planId":"once","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":"echo x >>'"$PWD"'/ran.$WORKFLOW_ID"}}]}' >once.json; }
wants() { "$CAIRN" run once.json "${store[@]}" --run-id "$1" --progress none >/dev/null 2>"$2" </dev/null; echo "$?" >"$2.code"; }
# race ROUNDS: in each of them eight processes want the same id; all wait at one gate before.
race() {
    local round i
    once
    mkfifo gate
    exec 9<>gate
    for ((round = 1; round <= $1; round++)); do
        for i in 1 2 3 4 5 6 7 8; do (read -r _ <&9; wants "r-$round" "said.$round.$i" 9>&-) & racers[i]=$!; done
        printf '\n\n\n\n\n\n\n\n' >&9
        wait "${racers[@]}"
        equal "$(cat "ran.r-$round")" x 'what the step wrote'
    done
    equal "$(sort -u said.*.code | grep -vx '[06]')" '' 'exit codes besides 0 and 6'
    "$CAIRN" ls "${store[@]}" -o json | jq -e "length == $1 and all(.[]; .status == \"COMPLETED\")" >/dev/null || fail "runs: $("$CAIRN" ls "${store[@]}" -o json)"
    intact
}

test_one_of_many_processes_has_a_run_id_sqlite_I24() { race 6; }
test_one_of_many_processes_has_a_run_id_files_I24() {
    store=(--store "files:$PWD/runs")
    race 3
}
test_one_of_many_processes_has_a_run_id_postgres_I24() {
    postgres_up
    race 4
}
# The service lives on, whoever was first.
test_a_service_and_processes_beside_it_want_the_same_run_ids_I24() {
    local i k body
    unconfined # its steps write beside the store
    serve
    once
    body=$(jq -n --rawfile document once.json '{document: $document}')
    for ((i = 1; i <= 10; i++)); do
        for k in 1 2 3 4; do
            (ask POST /v1/runs "$(jq -c --arg id "s-$i" '. + {runId: $id}' <<<"$body")"; echo "$status" >"asked.$i.$k") & racers[k]=$!
            wants "s-$i" "said.$i.$k" & racers[k + 4]=$!
        done
        wait "${racers[@]}"
        wait_for status_is "s-$i" COMPLETED
        equal "$(cat "ran.s-$i")" x 'what the step wrote'
    done
    equal "$(sort -u said.*.code | grep -vx '[06]')" '' 'exit codes besides 0 and 6'
    equal "$(sort -u asked.* | grep -vx '20[012]\|409')" '' 'answers besides 200, 201, 202 and 409'
    ask GET /readyz
    answers 200
    intact
    stop_serving
}

run_tests "$@"
