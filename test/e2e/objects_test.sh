#!/usr/bin/env bash
# Plans from object stores: s3, gs and azure, by a server that checks every signature (object_store.py). `make objects` does the same with
# other people's servers.
. "$(dirname "$0")/objects_lib.sh"

sha() { sha256sum <"$1" | cut -d' ' -f1; }
ref() { jq -nc --arg u "$1" --arg s "$(sha plans/plan.json)" '{uri: $u, sha256: $s, schemaVersion: "v1.2", planId: "p", planVersion: "1"}'; }
start() { ask POST /v1/runs "{\"planRef\":$(ref "$2"),\"runId\":\"$1\"}" 'Prefer: wait=30'; }
# What came of the last start, in a word; a plan that was not to be had for a moment leaves nothing behind.
completes() { start "$1" "$2" && answers 200 && equal "$(jq -r .status body)" COMPLETED "$2"; ask GET "/v1/runs/$1" && equal "$(jq -r .planRef.uri body)" "$2"; }
comes_to() { start "$1" "$2" && answers "$3" && code_is "$4"; }

configure() {
    cat >cairn.toml <<END
[serve.fetch]
allow = ["s3://plans/", "s3://europe/", "s3://moved/", "gs://goods/", "azure://account/container/", "azure://shared/container/"]
s3 = { endpoint = "$place", allowPrivate = true, accessKeyId = { env = "S3_ID" }, secretAccessKey = { file = "$PWD/s3.secret" }${1:-} }
gs = { endpoint = "$place", allowPrivate = true, accessKeyId = { env = "S3_ID" }, secretAccessKey = { file = "$PWD/s3.secret" } }
azure = { endpoint = "$place", allowPrivate = true, accounts = { account = { key = { file = "$PWD/azure.key" }${2:-} }, shared = { sas = { env = "AZURE_SAS" } } } }
END
}
test_plans_come_from_servers_that_check_signatures_WE_3_1b() {
    object_store; configure; serve
    completes r1 s3://plans/prod/plan.json
    completes r2 's3://plans/prod/a%20b+c(1)~.json'
    completes r3 gs://goods/plan.json
    completes r4 azure://account/container/prod/plan.json
    completes r5 azure://shared/container/plan.json
    # A bucket of another region says so, and is asked there; nobody is followed elsewhere.
    completes r6 s3://europe/plan.json
    equal "$(grep -c ' /europe/' asked)" 2
    comes_to r7 s3://moved/plan.json 422 PLAN_URI_NOT_ALLOWED
    equal "$(tail -n 1 asked)" '307 /moved/plan.json' 'it was followed'
    stop_serving
    cairn_is 0 log verify --all --store "sqlite:$PWD/store.db"
}
test_what_a_store_answers_decides_the_code() {
    object_store; configure; serve
    comes_to no-1 s3://plans/nowhere.json 422 PLAN_NOT_FOUND
    comes_to no-2 azure://account/container/nowhere.json 422 PLAN_NOT_FOUND
    for scheme in s3://plans azure://account/container; do
        comes_to "late-${scheme%%:*}" "$scheme/busy-1.json" 503 PLAN_UNAVAILABLE
        has head 'etry-After: '
        ask GET "/v1/runs/late-${scheme%%:*}" && answers 404 # nothing is recorded of it, and the same request is made again
        completes "late-${scheme%%:*}" "$scheme/busy-1.json"
    done
    # Keys are read whenever a request is signed: wrong ones are refused by the server, and neither they nor the right ones are told.
    cp s3.secret right; echo 'hunter2' >s3.secret; cp azure.key azure.right; echo aHVudGVyMg== >azure.key
    comes_to wrong-1 s3://plans/plan.json 422 PLAN_ACCESS_DENIED; hasnt body hunter2
    comes_to wrong-2 gs://goods/plan.json 422 PLAN_ACCESS_DENIED
    comes_to wrong-3 azure://account/container/plan.json 422 PLAN_ACCESS_DENIED; hasnt body aHVudGVyMg
    mv right s3.secret; mv azure.right azure.key
    completes right-1 s3://plans/plan.json; completes right-2 azure://account/container/plan.json
    rm s3.secret
    comes_to none-1 s3://plans/plan.json 503 PLAN_UNAVAILABLE
    hasnt serve.err hunter2; hasnt serve.err sec/ret
    stop_serving
}
test_objects_that_a_customer_encrypted_are_had_with_the_key() {
    object_store; configure; serve
    comes_to s-1 s3://plans/secret-1.json 422 PLAN_URI_NOT_ALLOWED
    stop_serving
    configure ", customerKey = { file = \"$PWD/customer.key\" }" ", customerKey = { file = \"$PWD/customer.key\" }"; serve
    completes s-2 s3://plans/secret-1.json
    completes s-3 azure://account/container/secret-1.json
    echo 'c2hvcnQ=' >customer.key
    start s-4 s3://plans/secret-1.json; [ "$status" -ge 400 ] || fail "a short key was sent"
    hasnt body c2hvcnQ
    stop_serving
    sed -i 's/allowPrivate = true, accessKeyId/addresses = ["127.0.0.0\/8"], accessKeyId/; s/http:\/\/127.0.0.1/http:\/\/store.example/' cairn.toml
    cairn_is 2 serve --store "sqlite:$PWD/other.db" --listen 127.0.0.1:0; has err customerKey
}
blobs() { python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("select count(*) from blobs where sha256=?", (bytes.fromhex(sys.argv[2]),)).fetchone()[0])' store.db "$1"; }
state() { ask GET "/v1/runs/$1/status" && [ "$(jq -r .status body)" = "$2" ]; }
approve() { ask POST "/v1/runs/$1/signals" "{\"signalType\":\"APPROVE\",\"payload\":{\"stepId\":\"gate\",\"reason\":\"fine\"},\"signalId\":\"$2\"}" && answers 202; }
killed() { kill -9 "$server"; wait "$server" 2>/dev/null; }
test_bodies_of_plans_are_apart_from_the_log_and_fetched_again_C_38_WE_1j() {
    object_store; configure
    plan_text p '{"stepId":"gate","kind":"approval"}' | jq -r . | tr -d '\n' >plans/plan.json
    printf '[serve.plans]\ninline = "allow"\n' >>cairn.toml # bodies are apart unless it is said otherwise
    sum=$(sha plans/plan.json)
    serve
    for run in a b c; do start $run s3://plans/plan.json & done; wait $!; wait_for state a RUNNING; wait_for state b RUNNING; wait_for state c RUNNING
    equal "$(blobs "$sum")" 0 'the body is in the store'
    cmp "store.db-plans/$sum" plans/plan.json || fail 'it is nowhere'
    killed
    # Removing it touches no log.
    rm -r store.db-plans
    cairn_is 0 log verify --all --store "sqlite:$PWD/store.db"
    : >asked
    serve
    wait_for state a RUNNING
    approve a 11111111-1111-4111-8111-111111111111; wait_for state a COMPLETED
    equal "$(cat asked)" '200 /plans/plan.json' 'it was fetched again, once'
    cmp "store.db-plans/$sum" plans/plan.json || fail 'it was not kept again'
    killed
    # One that is another now is not executed; the run waits, and goes on when the right one is there.
    rm -r store.db-plans
    cp plans/plan.json right.json; echo ' ' >>plans/plan.json
    serve
    wait_for grep -q 'run not taken up" run=b' serve.err
    wait_for eval 'ask GET /v1/alerts && jq -e "[.items[] | select(.name == \"PLAN_INTEGRITY_VALIDATION_FAILED\" and (.priority | tostring | ltrimstr(\"P\")) == \"1\")] | length > 0" body >/dev/null'
    ask GET /v1/runs/b && answers 200 && equal "$(jq -r .status body)" RUNNING
    # What it waits for is said: by its status, and to who asks why.
    wait_for eval 'ask GET /v1/runs/b/status && jq -r .message body | grep -q "the body of its plan is not here, and s3://plans/plan.json does not give it"'
    equal "$(jq -r .substatus body)" RECOVERING
    ask GET /v1/runs/b/why; [ "$status" -ge 400 ] || fail "why of a run without its plan: $status"
    has body 's3://plans/plan.json does not give it'
    cp right.json plans/plan.json
    wait_for grep -q 'run taken up after all" run=b' serve.err
    approve b 21111111-1111-4111-8111-111111111111; wait_for state b COMPLETED
    # A link or a pipe in its place is neither followed nor waited for.
    echo precious >decoy
    rm "store.db-plans/$sum"; ln -s "$PWD/decoy" "store.db-plans/$sum"
    ask GET /v1/runs/c/graph && answers 200
    equal "$(cat decoy)" precious 'what the link led to'
    rm "store.db-plans/$sum"; mkfifo "store.db-plans/$sum"
    ask GET /v1/runs/c/graph && answers 200
    # A document that came with its request can be had from nowhere else.
    ask POST /v1/runs "{\"document\":$(jq -Rs . right.json),\"runId\":\"d\"}"; wait_for state d RUNNING
    equal "$(blobs "$sum")" 1
    stop_serving
    cairn_is 0 log verify --all --store "sqlite:$PWD/store.db"
}
# The address takes the call and says nothing: the engine goes on all the same, and so does the start of the service.
test_a_plan_that_does_not_come_holds_nobody_up_C_38() {
    object_store; configure
    plan_text p '{"stepId":"gate","kind":"approval"}' | jq -r . | tr -d '\n' >plans/plan.json
    printf '[serve.plans]\ninline = "allow"\n' >>cairn.toml
    serve
    start a s3://plans/plan.json; wait_for state a RUNNING
    killed
    rm -r store.db-plans
    kill -STOP "$objects"
    serve
    before=$(date +%s%3N)
    for run in x y z; do
        ask POST /v1/runs "{\"document\":$(plan_text q '{"stepId":"n","kind":"noop"}'),\"runId\":\"$run\"}" && answers 202
        wait_for state $run COMPLETED
    done
    [ $(($(date +%s%3N) - before)) -lt 8000 ] || fail 'the engine waited for the address'
    ask GET /v1/runs/a/status
    has body 'the body of its plan is fetched again from s3://plans/plan.json'
    kill -CONT "$objects"
    wait_for grep -q 'run taken up after all" run=a' serve.err
    approve a 11111111-1111-4111-8111-111111111111; wait_for state a COMPLETED
}
test_stores_with_bodies_apart_are_copied_whole_and_kept_small_C_38() {
    object_store; configure
    plan_text p '{"stepId":"n","kind":"noop"}' | jq -r . | tr -d '\n' >plans/plan.json
    sum=$(sha plans/plan.json)
    serve; start a s3://plans/plan.json; wait_for state a COMPLETED; stop_serving
    store=(--store "sqlite:$PWD/store.db")
    equal "$(blobs "$sum")" 0
    # What leaves the store takes the body along.
    cairn_is 0 store backup "files:$PWD/b" "${store[@]}"; cairn_is 0 log verify --all --store "files:$PWD/b"
    cairn_is 0 log replay a --store "files:$PWD/b"
    cairn_is 0 store restore "files:$PWD/b" --store "sqlite:$PWD/again.db"; cairn_is 0 log replay a --store "sqlite:$PWD/again.db"
    cairn_is 0 log export a --out a.cairn "${store[@]}"; cairn_is 0 log verify a.cairn
    cairn_is 0 log replay a "${store[@]}"
    # Without the body the log is whole, and what needs it says where it was.
    mv store.db-plans aside
    cairn_is 0 log verify --all "${store[@]}"
    cairn_is 0 get a "${store[@]}"
    cairn_is 0 events a "${store[@]}"
    "$CAIRN" log replay a "${store[@]}" >out 2>err && fail 'replayed without its plan'
    has err 's3://plans/plan.json'
    mv aside store.db-plans
    # A body that no run refers to goes with the runs.
    cairn_is 0 store gc --keep 0s --yes "${store[@]}"
    [ ! -e "store.db-plans/$sum" ] || fail 'the body of a removed run is still there'
}
run_tests "$@"
