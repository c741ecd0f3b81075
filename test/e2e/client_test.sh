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
    sed -i -E 's/just now|[0-9]+(ms|s|m) ago/SINCE/g' out.here out.far # the one was asked a moment after the other
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

test_client_keeps_places_as_contexts() {
    make_runs
    serve
    cairn_is 0 context ls
    has err 'context add'
    cairn_is 2 context add prod --server "$url" --store sqlite:x.db
    cairn_is 2 context add 'a b' --server "$url"
    cairn_is 0 context add prod --server "$url" --token-file store.db.token
    cairn_is 0 context add here --store "sqlite:$PWD/store.db"
    cairn_is 0 context test --profile prod
    has out 'tenant default, as'
    cairn_is 0 context test prod; has out 'tenant default, as'
    cairn_is 0 context test here; has out 'a store that can be read'
    cairn_is 5 context test nothing
    cairn_is 0 context add brief --store "sqlite:$PWD/store.db"; cairn_is 0 context use brief
    cairn_is 0 context rm brief; cairn_is 5 context rm brief
    cairn_is 0 context ls -o name; equal "$(tr '\n' ' ' <out)" 'prod here '; cairn_is 0 ls --store "sqlite:$PWD/store.db"
    cairn_is 5 context use nothing
    cairn_is 0 context use prod
    cairn_is 0 context ls -o json
    equal "$(jq -r '.[] | select(.current) | .name + " " + .place' out)" "prod $url"
    (mkdir -p deep && cd deep && "$CAIRN" ls -o name) >out 2>err || fail "from elsewhere: $(cat err)"
    equal "$(wc -l <out)" 3
    cairn_is 0 ls --profile here -o name
    equal "$(wc -l <out)" 3
    cairn_is 0 context use
    cairn_is 0 ls -o name
    empty out
    stop_serving
}

test_client_finds_the_token_of_a_server_of_this_machine() {
    mkdir -p "$XDG_STATE_HOME/cairn"
    service_store="sqlite:$XDG_STATE_HOME/cairn/cairn.db" serve
    cairn_is 0 ls --server "$url"
    cairn_is 4 ls --server http://192.0.2.1:7117 # never sent elsewhere
    has err 'can read the token'
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
    wait_for grep -q 'token of the first start' serve.err
    cairn_is 0 ls --server unix:s.sock --token-file store.db.token -o name
    equal "$(wc -l <out)" 3
}


# ---- runs at the server
far=()
at_server() { far=(--server "$url" --token-file "$PWD/store.db.token"); }
far_status() { [ "$("$CAIRN" get "$1" "${far[@]}" -o json 2>/dev/null | jq -r .status)" = "$2" ]; }
far_step() { [ "$("$CAIRN" get "$1" "${far[@]}" -o json 2>/dev/null | jq -r ".steps[]|select(.stepId==\"$2\").status")" = "$3" ]; }

test_client_runs_a_document_at_the_server_as_it_does_here() {
    mkdir -p flows
    echo 'echo "from a file: $INPUTS_who"' >flows/say.sh
    cat >flows/top.yaml <<'DOC'
name: top
nodes:
  - id: one
    bash: echo one
  - id: file
    depends_on: [one]
    script: say.sh
    runtime: sh
DOC
    serve && at_server
    cairn_is 0 run flows/top.yaml --run-id n1 "${far[@]}" --progress plain
    has err 'step=file'
    has err COMPLETED
    cairn_is 0 logs n1 "${far[@]}"
    has out 'from a file'
    make_runs
    cairn_is 10 run failed.json --run-id f1 "${far[@]}" --progress none -o json
    equal "$(jq -r .status out)" FAILED
    cairn_is 10 run failed.json --run-id f1 "${far[@]}" --progress none
    has err 'already ended'
    cairn_is 6 run done.json --run-id f1 "${far[@]}" --progress none
    has err 'another document'
    echo '{"planId":"x","planVersion":"1","steps":[{"stepId":"a","kind":"what"}]}' >bad.json
    cairn_is 3 run bad.json "${far[@]}"
    has err '"what"'
    cairn_is 2 run done.json "${far[@]}" --confine auto
    has err 'cairn worker'
    cairn_is 2 run done.json "${store[@]}" --detach
    has err '--server URL'
    cairn_is 0 run done.json "${far[@]}" --detach --run-id d1
    equal "$(cat out)" d1
    cairn_is 0 wait d1 "${far[@]}" --timeout 20s
    cairn_is 0 log verify --all "${far[@]}"
    stop_serving
    intact
}

test_client_sends_inputs_and_where_the_run_belongs() {
    echo '{"planId":"in","planVersion":"1","inputs":{"who":{"type":"string"}},"steps":[{"stepId":"a","kind":"echo","with":{"message":"hello $INPUTS.who, $ARGUMENTS"}}]}' >in.json
    serve && at_server
    cairn_is 0 run in.json --run-id i1 --set who=you --project p1 --environment e1 "${far[@]}" --progress none -- and others
    cairn_is 0 get i1 "${far[@]}" -o json
    equal "$(jq -r '.projectId, .environmentId, .steps[0].result' out | tr '\n' ' ')" 'p1 e1 hello you, and others '
    stop_serving
}

test_client_steers_runs_of_a_server() {
    held_plan a
    sed -i "s|ran/|$PWD/ran/|g" slow.json
    serve && at_server
    cairn_is 0 run slow.json --run-id s-1 "${far[@]}" --detach
    wait_for far_step s-1 a RUNNING
    cairn_is 0 pause s-1 "${far[@]}" --reason 'out for lunch'
    has_line out 'PAUSE accepted: run s-1, event [0-9]+'
    cairn_is 6 pause s-1 "${far[@]}"
    has err RUN_ALREADY_PAUSED
    touch go
    wait_for far_step s-1 a SUCCESS
    cairn_is 13 watch s-1 "${far[@]}" --exit-on-wait --progress plain
    cairn_is 0 resume s-1 "${far[@]}" -o json
    equal "$(jq -r .decision out)" ACCEPTED
    cairn_is 0 wait s-1 "${far[@]}" --timeout 20s
    cairn_is 6 cancel s-1 "${far[@]}"
    has err RUN_TERMINAL
    cairn_is 5 pause nosuch "${far[@]}"
    agrees events s-1 --ledger --raw
    stop_serving
    intact
}

test_client_answers_approvals_at_a_server() {
    echo '{"planId":"gate","planVersion":"1","steps":[{"stepId":"g","kind":"approval"},{"stepId":"h","kind":"approval","dependsOn":["g"]},{"stepId":"z","kind":"noop","dependsOn":["h"]}]}' >gate.json
    serve && at_server
    cairn_is 0 run gate.json --run-id g-1 "${far[@]}" --detach
    wait_for far_step g-1 g RUNNING
    agrees inbox -o name
    cairn_is 0 approve g-1/g "${far[@]}" --reason fine
    wait_for far_step g-1 h RUNNING
    cairn_is 0 reject g-1/h "${far[@]}" --reason 'not that'
    wait_for far_status g-1 FAILED
    cairn_is 0 run gate.json --run-id g-2 "${far[@]}" --approve g --approve h --progress plain
    cairn_is 0 run gate.json --run-id g-3 "${far[@]}" --approve-all --progress none
    cairn_is 13 run gate.json --run-id g-4 "${far[@]}" --exit-on-wait --progress none
    cairn_is 0 signal g-4 CANCEL "${far[@]}" --reason enough
    wait_for far_status g-4 CANCELLED
    stop_serving
    intact
}

test_client_makes_new_runs_of_old_ones_at_the_server() {
    echo '{"planId":"f","planVersion":"1","steps":[{"stepId":"a","kind":"echo","with":{"message":"one"}},{"stepId":"b","kind":"shell","dependsOn":["a"],"with":{"command":"test -e '"$PWD"'/ok && echo $a.output"}},{"stepId":"c","kind":"noop","dependsOn":["b"]}]}' >f.json
    serve && at_server
    cairn_is 10 run f.json --run-id f1 "${far[@]}" --progress none
    agrees fork f1 --from b --dry-run -o json
    agrees rerun f1 --dry-run -o json
    agrees retry f1/b --downstream --dry-run -o json
    cairn_is 10 retry f1 "${far[@]}" --progress none
    has_line out 'RETRY_RUN accepted: run f1.*new run'
    made=$(sed -n 's/.*new run \([0-9a-f-]*\).*/\1/p' out | head -n 1)
    equal "$("$CAIRN" events f1 "${far[@]}" --ledger -o jsonl | jq -r 'select(.signalType == "RETRY_RUN").engineResult.newRunId')" "$made" 'the run that the decision names'
    touch ok
    cairn_is 0 retry f1 "${far[@]}" --progress none
    cairn_is 0 retry f1/b --downstream "${far[@]}" --progress none -o name
    retried=$(cat out)
    cairn_is 0 fork f1 --from b --set a.output=two --run-id f-fork --reason 'to see' "${far[@]}" --progress none
    cairn_is 0 get f-fork/b "${far[@]}" -o json
    equal "$(jq -r .result out)" two
    cairn_is 0 rerun f1 --detach --run-id f-rerun "${far[@]}"
    equal "$(cat out)" f-rerun
    cairn_is 0 wait f-rerun "${far[@]}" --timeout 20s
    cairn_is 6 rerun f1 --run-id f-rerun "${far[@]}"
    cairn_is 2 fork f1 --from b --no-run "${far[@]}"
    equal "$("$CAIRN" get "$retried" "${far[@]}" -o json | jq -r .originalRunId)" f1
    stop_serving
    intact
}

test_client_that_is_interrupted_leaves_the_run_to_the_server() {
    held_plan a
    sed -i "s|ran/|$PWD/ran/|g" slow.json
    serve && at_server
    "$CAIRN" run slow.json --run-id s-1 "${far[@]}" --progress plain >run.out 2>run.err &
    pid=$!
    wait_for grep -q 'step=a status=RUNNING' run.err
    kill -INT $pid
    rc=0; wait $pid || rc=$?
    equal $rc 130 exit
    has run.err 'goes on at'
    has run.err 'watch s-1'
    touch go
    cairn_is 0 watch s-1 "${far[@]}" --progress plain
    sed -i "s|sleep 0; echo B|sleep 60; echo B|" slow.json
    rm go run.err # or the words of the first are taken for those of the second
    "$CAIRN" run slow.json --run-id s-2 "${far[@]}" --on-interrupt pause --progress plain >run.out 2>run.err &
    pid=$!
    wait_for grep -q 'step=a status=RUNNING' run.err
    kill -INT $pid
    wait_for far_status s-2 PAUSED
    touch go
    rc=0; wait $pid || rc=$?
    equal $rc 130 exit
    "$CAIRN" run slow.json --run-id s-2 "${far[@]}" --on-interrupt cancel --progress plain >run.out 2>run.err &
    pid=$!
    wait_for grep -q 'step=b status=RUNNING' run.err
    kill -INT $pid
    rc=0; wait $pid || rc=$?
    equal $rc 11 exit
    stop_serving
}

test_client_says_so_when_the_server_goes_away() {
    slow_plan 5
    sed -i "s|ran/|$PWD/ran/|g" slow.json
    serve && at_server
    "$CAIRN" run slow.json --run-id s-1 "${far[@]}" --progress plain >run.out 2>run.err &
    pid=$!
    wait_for grep -q 'step=a status=RUNNING' run.err
    kill -9 $server
    rc=0; wait $pid || rc=$?
    equal $rc 7 exit
    has run.err "is the server's"
    has run.err 'watch s-1'
    cairn_is 7 pause s-1 "${far[@]}"
}

test_client_says_what_an_answer_means_and_when_to_come_back() {
    cat >busy.py <<'PY'
import http.server
class Busy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, after, body = open("mode").read().split("|")
        self.send_response(int(status))
        if after: self.send_header("Retry-After", after)
        self.end_headers()
        self.wfile.write(body.encode())
    def log_message(self, *told): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Busy)
print(server.server_port, flush=True)
server.serve_forever()
PY
    python3 busy.py >port &
    wait_for test -s port
    export CAIRN_SERVER=http://127.0.0.1:$(cat port) CAIRN_TOKEN=cairn_x_y
    printf '429|60|{"detail":"too many","code":"BUSY"}' >mode
    cairn_is 7 ls; has err 'too many (BUSY); try again in 60 s'; hasnt err 'hint:'
    printf '503|30|' >mode
    cairn_is 7 ls; has err 'status 503; try again in 30 s'; hasnt err 'hint:'
    printf '502||<html>' >mode
    cairn_is 7 ls; has err 'status 502'; has err 'something answers there'; hasnt err 'running there'
    printf '401||{"detail":"a token is needed","code":"AUTHN_REQUIRED"}' >mode
    cairn_is 4 ls; has err 'the token came from $CAIRN_TOKEN'
    kill %1; wait %1 2>/dev/null
    cairn_is 7 ls; has err 'running there?'
}

test_client_trusts_only_certificates_that_it_was_told_to() {
    command -v openssl >/dev/null || skip "no openssl"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 \
        -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1,DNS:localhost >/dev/null 2>&1 || skip "openssl makes no certificate"
    serve --tls-cert cert.pem --tls-key key.pem && at_server
    [[ $url = https://* ]] || fail "$url"
    cairn_is 4 ls "${far[@]}"
    has err certificate; has err --ca-file
    cairn_is 0 ls "${far[@]}" --ca-file cert.pem
    printf '[profile.tls]\nserver = "%s"\ntoken-file = "store.db.token"\nca-file = "cert.pem"\n' "$url" >cairn.toml
    cairn_is 0 ls --profile tls
    stop_serving
}

test_client_sees_what_its_token_may() {
    make_runs
    serve && at_server
    for role in operator engineer; do
        ask POST /v1/tokens "{\"name\":\"$role\",\"roles\":[\"$role\"]}"
        [ "$status" = 201 ] || fail "no token for $role: $(cat body)"
        jq -r .token body >$role.token
    done
    far=(--server "$url" --token-file engineer.token)
    cairn_is 0 get run-done "${far[@]}"
    cairn_is 4 cancel run-done --emergency --reason x "${far[@]}"
    far=(--server "$url" --token-file operator.token)
    cairn_is 0 ls "${far[@]}" -o json
    equal "$(jq -r '.[] | select(.runId=="run-failed") | .cause' out)" null 'what steps said'
    cairn_is 0 get run-done "${far[@]}"
    cairn_is 0 log verify run-done "${far[@]}"
    has out 'intact by their hashes'
    cairn_is 4 logs run-done "${far[@]}"
    has err step.logs
    # A blob is told to those who read a run that refers to it.
    hash=$(sha256sum <done.json | cut -c1-64)
    ask GET "/v1/store/runs/run-done/blobs/$hash" && answers 200
    cmp -s body done.json || fail "other bytes"
    ask GET "/v1/store/runs/run-failed/blobs/$hash" && answers 404
    for name in ../../store.db ..%2f..%2fstore.db /etc/passwd ''; do
        ask GET "/v1/store/runs/run-done/file?what=artifacts&name=$name" && answers 404
    done
    ask GET '/v1/store/runs/run-done/file?what=secrets&name=x' && answers 400
    stop_serving
}

# Every command that takes --server either agrees with the store (above), or says in a sentence why not.
test_client_covers_every_command() {
    make_runs
    serve && at_server
    agree='artifacts_cat artifacts_get artifacts_ls audit_verify diff events get graph inbox log_replay log_verify logs ls ps render trace wait watch why'
    act='approve cancel fork pause reject rerun resume retry run signal skip worker'
    service='token_ls token_new token_revoke token_rotate queue_ls queue_get queue_set queue_pause queue_resume queue_rm limits_get limits_set limit_ls limit_get limit_set limit_rm worker_ls
        outbox_ls outbox_rewind dlq_ls dlq_redrive dlq_drop alert_ls alert_ack definition_ls definition_get definition_put definition_run definition_approve
        schedule_ls schedule_add schedule_get schedule_next schedule_ticks schedule_pause schedule_resume schedule_rm schedule_trigger
        schedule_backfill bulk event_send event_ls event_get' # service_test.sh, step_limits_test.sh, schedule_test.sh, bulk_test.sh, incoming_test.sh, roles_test.sh
    here='config_list context_add context_test doctor equiv log_export login logout mcp test_record top ui whoami' # people sign in: oidc_test.sh; equiv_test.sh
    refuse='log_import recover store_backup store_gc store_migrate store_restore store_stat'
    for name in $("$CAIRN" help | sed -n 's/^  \([a-z]\+\( [a-z]\+\)\?\)  .*/\1/p' | tr ' ' _); do
        "$CAIRN" ${name/_/ } --help | grep -q -- '^  *--server' || continue
        [[ " $agree $act $here $refuse ${service//$'\n'/ } " = *" $name "* ]] || fail "nobody has tried cairn ${name/_/ } with a server"
    done
    "$CAIRN" log export run-done run-nodes "${store[@]}" --out here.cairn >/dev/null
    for words in 'log import here.cairn' recover 'recover run-done' 'store backup b.db' 'store gc --keep 1d' 'store gc --keep 1d --dry-run' \
        'store migrate' 'store restore b.db' 'store stat'; do
        cairn_is 2 $words "${far[@]}"
        has err 'is a server'
        has err 'hint:'
    done
    cairn_is 2 store copy "$url" sqlite:c.db
    has err 'is a server'
    cairn_is 2 serve --store "$url"
    has err 'is a server'
    cairn_is 0 log export run-done run-nodes "${far[@]}" --out far.cairn
    cmp -s here.cairn far.cairn || fail "bundles differ"
    agrees test record run-done
    agrees audit verify
    agrees audit verify -o json
    cairn_is 0 doctor "${far[@]}"
    python3 "$e2e/terminal.py" --size 24x100 --when run-failed q -- "$CAIRN" top "${far[@]}" >tty || fail "top: exit $?"
    has tty run-failed
    cairn_is 0 complete -- get "${far[@]}" run-d
    has out run-done
    stop_serving
}

run_tests "$@"
