# Commands against a server do what they do against its store.
. "$(dirname "$0")/serve_lib.sh"

# Three runs in store.db: done (with child, log, artifact and a large result), failed, and a workflow of nodes.
make_runs() {
    cat >done.json <<'PLAN'
{"planId":"done","planVersion":"1","schemaVersion":"v1.2","steps":[
 {"stepId":"a","kind":"shell","with":{"command":"echo hello; echo oops >&2; echo '{\"x\":1}'"}},
 {"stepId":"big","kind":"shell","with":{"command":"head -c 100000 /dev/zero | tr '\\0' x"}},
 {"stepId":"file","kind":"shell","with":{"command":"mkdir $ARTIFACTS_DIR/out; echo kept > $ARTIFACTS_DIR/out/note.txt"},"artifacts":[{"path":"out/note.txt","kind":"text"}]}]}
PLAN
    cat >failed.json <<'PLAN'
{"planId":"failed","planVersion":"1","schemaVersion":"v1.2","steps":[
 {"stepId":"a","kind":"noop"},
 {"stepId":"b","kind":"shell","dependsOn":["a"],"with":{"command":"echo no; exit 3"}}]}
PLAN
    "$CAIRN" run done.json --run-id run-done "${store[@]}" --progress none -q || fail "done"
    "$CAIRN" run failed.json --run-id run-failed "${store[@]}" --progress none -q && fail "failed"
    "$CAIRN" example joins >joins.yaml
    "$CAIRN" run joins.yaml --run-id run-nodes "${store[@]}" --progress none -q || fail "nodes"
}
there() { export CAIRN_SERVER=$url CAIRN_TOKEN=$token; }
# The same words over the store and over the server: same output, same exit code.
agrees() {
    local here=0 far=0
    "$CAIRN" "$@" "${store[@]}" >out.here 2>err.here </dev/null || here=$?
    "$CAIRN" "$@" --server "$url" --token-file store.db.token >out.far 2>err.far </dev/null || far=$?
    equal "$far" "$here" "exit of cairn $*: $(tail -n 2 err.far)"
    sed -i "s|$url|PLACE|g; s|sqlite:$PWD/store.db|PLACE|g; s| --store PLACE||; s| --server PLACE --token-file store.db.token||" out.here out.far
    cmp -s out.here out.far || fail "cairn $* differs: $(diff out.here out.far | head -n 5 | tr '\n' ' ')"
}

test_client_reads_a_server_as_it_reads_the_store() {
    make_runs
    serve
    for run in run-done run-failed run-nodes; do
        agrees get $run -o json
        agrees events $run -o json
        agrees events $run --raw --ledger
        agrees events $run --as nodes
        agrees why $run -o json
        agrees logs $run
        agrees log verify $run
        agrees log replay $run
        agrees artifacts ls $run
        agrees graph $run
        agrees trace $run
    done
    agrees ls -o json
    agrees ls --status FAILED -o json --limit 1
    agrees ls --plan done -o name
    agrees ls --all -o csv
    agrees ls 'status = COMPLETED and plan = "done"' -o json
    agrees ps -o json
    agrees inbox -o json
    agrees get run-do -o json
    agrees get @last-failed -o json
    agrees get plan:done/a -o yaml --fields stepId
    agrees why run-failed/b
    agrees diff run-done run-failed -o json
    agrees wait run-done run-failed
    agrees watch run-failed --progress plain
    agrees log verify --all
    agrees get run-nothing
    agrees render run-done
    agrees artifacts cat run-done note.txt
    equal "$(cat out.far)" kept
    cairn_is 0 artifacts get run-done --out copy --server "$url" --token-file store.db.token
    equal "$(cat copy/note.txt)" kept
    echo other >store.db-artifacts/run-done/out/note.txt
    agrees artifacts ls run-done
    agrees artifacts cat run-done note.txt
    rm store.db-artifacts/run-done/out/note.txt
    ln -s /etc/passwd store.db-artifacts/run-done/out/note.txt
    cairn_is 8 artifacts ls run-done --server "$url" --token-file store.db.token -o json
    equal "$(jq -r '.[0].state' out)" missing 'a link of a step leads nowhere'
    stop_serving
}

test_client_reads_large_runs_page_by_page() {
    steps=$(for i in $(seq 300); do echo "{\"stepId\":\"s$i\",\"kind\":\"noop\"},"; done)
    echo "{\"planId\":\"many\",\"planVersion\":\"1\",\"schemaVersion\":\"v1.2\",\"steps\":[${steps%,}]}" >many.json
    "$CAIRN" run many.json --run-id many "${store[@]}" --progress none -q || fail many
    serve
    agrees events many --raw
    [ "$(wc -l <out.far)" -gt 600 ] || fail "only $(wc -l <out.far) events"
    agrees log verify many
    agrees log replay many
    for i in $(seq 12); do "$CAIRN" run done.json "${store[@]}" -q --progress none 2>/dev/null; done
    agrees ls --limit 5 -o name
    stop_serving
}

test_client_finds_what_was_changed_on_the_server() {
    make_runs
    sqlite3 store.db "DROP TRIGGER workflow_events_no_update; UPDATE workflow_events SET payload=replace(payload,'hello','hullo')" || skip "sqlite3 is not there"
    serve
    agrees log verify --all
    cairn_is 8 log verify --all --server "$url" --token-file store.db.token
}

test_client_takes_place_and_token_from_where_they_were_put() {
    make_runs
    serve
    cairn_is 4 ls --server "$url"
    has err 'there is no token'
    has err 'CAIRN_TOKEN'
    CAIRN_TOKEN=$token cairn_is 0 ls --server "$url" -o name
    equal "$(wc -l <out)" 3
    CAIRN_TOKEN=$token CAIRN_SERVER=$url cairn_is 0 ls -o name
    equal "$(wc -l <out)" 3
    cairn_is 0 ls --store "$url" --token-file store.db.token -o name
    equal "$(wc -l <out)" 3
    cairn_is 2 ls --store sqlite:x.db --server "$url"
    has err 'which of them is meant'
    cairn_is 2 ls --server ftp://x
    has err 'http://HOST:PORT'
    cairn_is 4 ls --server "$url" --token-file store.db.token --tenant other
    has err 'tenant default'
    cp store.db.token there.token
    printf 'store = "sqlite:./elsewhere.db"\n[profile.prod]\nserver = "%s"\ntoken-file = "there.token"\n' "$url" >cairn.toml
    cairn_is 0 ls -o name --profile prod
    equal "$(wc -l <out)" 3
    (mkdir -p deep && cd deep && "$CAIRN" --profile prod ls -o name) >out 2>err || fail "a relative token-file is not found: $(cat err)"
    cairn_is 0 config list --profile prod
    has_line out "^server\s+$url\s+.*cairn.toml:3"
    cairn_is 5 ls -o name
    has err elsewhere.db
    CAIRN_STORE=sqlite:$PWD/store.db cairn_is 0 ls -o name --profile prod # a variable beats a file
    printf 'store = "sqlite:./elsewhere.db"\nserver = "%s"\n' "$url" >cairn.toml
    cairn_is 2 ls
    has err 'which of them is meant'
    stop_serving
}

test_client_finds_the_token_of_a_server_of_this_machine() {
    mkdir -p "$XDG_STATE_HOME/cairn"
    service_store="sqlite:$XDG_STATE_HOME/cairn/cairn.db" serve
    cairn_is 0 ls --server "$url"
    cairn_is 4 ls --server http://192.0.2.1:7117 # never sent elsewhere
    has err 'there is no token'
    stop_serving
}

test_client_says_what_is_wrong_with_a_server() {
    serve
    echo "cairn_0000000000000000_$(printf '%043d' 0)" >wrong.token
    cairn_is 4 ls --server "$url" --token-file wrong.token
    has err 'wrong.token'
    cairn_is 2 ls --server "$url" --token-file nothing.token
    stop_serving
    cairn_is 7 ls --server "$url" --token-file store.db.token
    has err 'cannot reach'
    has err 'cairn serve'
    cairn_is 7 ls --server unix:$PWD/none.sock --token-file store.db.token
    has err none.sock
}

test_client_speaks_to_a_unix_socket() {
    make_runs
    "$CAIRN" serve "${store[@]}" --listen "unix:$PWD/s.sock" >serve.out 2>serve.err &
    server=$!
    trap 'kill -9 $server 2>/dev/null; wait $server 2>/dev/null' EXIT
    wait_for grep -q 'token of the first start' serve.err
    cairn_is 0 ls --server unix:s.sock --token-file store.db.token -o name
    equal "$(wc -l <out)" 3
}

run_tests "$@"
