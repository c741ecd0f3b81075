#!/usr/bin/env bash
# Large results in an object store of NATS: a real server, which is killed, emptied and lied to; and a Cairn that is killed at every
# point of the way.
. "$(dirname "$0")/serve_lib.sh"

# A server of the test's own; started again it has the same port and what it had.
nats_up() {
    command -v nats-server >/dev/null || skip 'nats-server is not installed'
    mkdir -p js
    rm -f nats-server_*.ports
    cat >js.py <<'P'
import json, socket, sys
port, subject = int(sys.argv[1]), sys.argv[2]
body = sys.argv[3].encode() if len(sys.argv) > 3 else sys.stdin.buffer.read()
s = socket.create_connection(("127.0.0.1", port), 5)
f = s.makefile("rb")
f.readline()
s.sendall(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB _INBOX.t 1\r\n')
s.sendall(b"PUB %s _INBOX.t %d\r\n%s\r\n" % (subject.encode(), len(body), body))
while True:
    line = f.readline().split()
    if line[0] == b"PING": s.sendall(b"PONG\r\n")
    if line[0] == b"HMSG": sys.exit("nobody answers")
    if line[0] == b"MSG": print(f.read(int(line[-1])).decode()); break
P
    nats-server -js -sd "$PWD/js" -a 127.0.0.1 -p "${nats_port:--1}" --ports_file_dir "$PWD" >>nats.log 2>&1 &
    nats=$!
    wait_for bash -c 'ls nats-server_*.ports'
    nats_port=$(jq -r '.nats[0]' nats-server_*.ports | sed 's/.*://')
    results=(--results "nats://127.0.0.1:$nats_port/res")
    wait_for js STREAM.NAMES ''
}
nats_down() { kill -9 "$nats"; wait "$nats" 2>/dev/null; rm -f nats-server_*.ports; }
# js VERB[.STREAM] BODY: asks JetStream; say SUBJECT publishes what it reads.
js() { python3 js.py "$nats_port" "\$JS.API.$1" "$2"; }
say() { python3 js.py "$nats_port" "$1"; }
messages() { js STREAM.INFO.OBJ_res '' | jq .state.messages; }
stored() { "$CAIRN" events "$1" "${store[@]}" -o jsonl | jq -c 'select(.event_type == "result.stored")'; }
hash_of() { stored "$1" | jq -r .payload.result_ref.meta.sha256; }
# What the bucket says about an object.
described() { js STREAM.MSG.GET.OBJ_res "{\"last_by_subj\":\"\$O.res.M.$(printf %s "$1" | base64 -w0 | tr +/ -_)\"}" | jq -r .message.data | base64 -d; }

# big.yaml: `make` gives so many bytes and asks for a place; `read` reads them, and is reached when an arc has read them, too.
big() {
    cat >big.yaml <<Y
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: big, path: big}
workflow:
- step: make
  tool:
    kind: shell
    command: echo x >> made; printf '{"n":7,"text":"%0$1d"}' 0
    spec: {result: {store: {kind: ${2:-object}}, select: [n]}}
  next:
    arcs: [{step: hold, when: "{{ make.stdout | length > 0 }}"}]
- step: hold
  tool: {kind: shell, command: "${3:-true}"}
  next:
    arcs: [{step: read, when: "{{ make.stdout | length > $1 }}"}]
- step: read
  tool:
    kind: python
    args: {text: "{{ make.stdout }}", where: "{{ make._store }}"}
    code: |
      result = {"length": len(text), "where": where}
    spec:
      policy:
        rules:
        - when: "{{ outcome.status == 'error' }}"
          then: {do: retry, attempts: ${4:-1}, delay: 0.2}
        - else: {then: {do: continue}}
Y
}
read_is() { "$CAIRN" get "$1" "${store[@]}" -o json | jq -c '.steps[]|select(.stepId=="read").result' | grep -qx "$2" || fail "read gave $("$CAIRN" get "$1" "${store[@]}" -o json | jq -c '.steps[]|{stepId,status,result,error}')"; }

test_nx_7_3_a_result_is_in_the_object_store_and_read_back() {
    nats_up
    big 300000
    cairn_is 0 run big.yaml "${store[@]}" "${results[@]}" --run-id r1 --progress none
    equal "$(stored r1 | jq -c '[.payload.result_ref.store, .payload.extracted, (.payload.meta | keys)]')" '["nats_object",{},["environment_id","project_id","tenant_id"]]'
    read_is r1 '{"length":300017,"where":"nats_object"}'
    hash=$(hash_of r1)
    # Another client finds it by its name, whole and with its digest.
    described "$hash" >meta
    equal "$(jq -r '[.name, .bucket, .options.max_chunk_size] | @csv' meta)" "\"$hash\",\"res\",131072"
    equal "$(jq -r .digest meta)" "SHA-256=$(printf %s "$hash" | xxd -r -p | base64 -w0 | tr +/ -_)"
    equal "$(messages)" $(($(jq .chunks meta) + 1)) "messages in the bucket"
    # The store has no copy, verifies through it, and takes it along.
    cairn_is 0 log verify r1 "${store[@]}" "${results[@]}"
    cairn_is 7 log verify r1 "${store[@]}"
    has err 'is kept in nats_object res, which is not configured here'
    cairn_is 0 log export r1 --out r1.cairn "${store[@]}" "${results[@]}"
    cairn_is 0 log verify r1 --store bundle:r1.cairn
    cairn_is 7 store backup "sqlite:$PWD/half.db" "${store[@]}"
    cairn_is 0 store backup "sqlite:$PWD/copy.db" "${store[@]}" "${results[@]}"
    cairn_is 0 log verify r1 --store "sqlite:$PWD/copy.db"
    cairn_is 0 store gc --keep-last 0 --yes --store "sqlite:$PWD/copy.db" "${results[@]}" # what is there is not the copy's
    cairn_is 0 log verify r1 "${store[@]}" "${results[@]}"
}

test_nx_7_3_a_task_reads_it_by_reference() {
    nats_up
    big 300000
    sed -i '/^- step: read/,$d' big.yaml
    sed -i 's/step: read/step: fetch/' big.yaml
    cat >>big.yaml <<'Y'
- step: fetch
  tool: {kind: artifact, action: get, result_ref: "{{ make._ref }}"}
Y
    cairn_is 0 run big.yaml "${store[@]}" "${results[@]}" --run-id r1 --progress none
    cairn_is 0 events r1 "${store[@]}" -o jsonl
    equal "$(jq -c 'select(.event_type=="task.done" and .entity_id=="fetch_task")|.payload.result_ref.meta.bytes > 300000' out)" true
}

test_auto_is_by_size_and_other_places_are_the_store_of_the_run() {
    nats_up
    cat >large.yaml <<'Y'
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: large, path: large}
workflow:
- step: make
  tool: {kind: python, code: "result = {'list': ['x' * 100000] * 12}"}
Y
    cairn_is 0 run large.yaml "${store[@]}" "${results[@]}" --run-id large --progress none
    equal "$(stored large | jq -r .payload.result_ref.store)" nats_object
    big 200000 auto
    cairn_is 0 run big.yaml "${store[@]}" "${results[@]}" --run-id small --progress none
    equal "$(stored small | jq -c '[.payload.result_ref.store, (.payload.meta | keys)]')" '["object",["environment_id","project_id","tenant_id"]]'
    big 200000 s3
    cairn_is 0 run big.yaml "${store[@]}" "${results[@]}" --run-id s3 --progress none
    has err 'E0219'
    equal "$(stored s3 | jq -r .payload.result_ref.store)" object
    cairn_is 2 run big.yaml "${store[@]}" --results http://127.0.0.1/res
    has err 'results.url: must be nats:// or tls://'
}

test_what_is_asked_for_and_not_there_is_kept_here_and_says_so() {
    nats_up
    big 200000
    cairn_is 0 run big.yaml "${store[@]}" --run-id none --progress none
    equal "$(stored none | jq -r '[.payload.result_ref.store, .payload.meta.reason] | @csv')" '"object","not in nats_object: no object store is configured (--results)"'
    nats_down
    cairn_is 0 run big.yaml "${store[@]}" "${results[@]}" --run-id away --progress none
    equal "$(stored away | jq -r .payload.result_ref.store)" object
    stored away | jq -r .payload.meta.reason >why
    has why 'not in nats_object: cannot reach 127.0.0.1'
    read_is away '{"length":200017,"where":"object"}'
    intact # without NATS: it is all here
    equal "$(wc -l <made)" 2 "times that the tasks ran"
}

# Nothing is decided while it cannot be read, and a task that needs it says so and may try again.
test_nx_7_3_while_nats_is_away_runs_wait_and_tasks_say_what_is_missing() {
    nats_up
    big 200000 object 'while [ ! -e go ]; do sleep 0.05; done' 50
    "$CAIRN" run big.yaml "${store[@]}" "${results[@]}" --run-id r1 --progress none >/dev/null 2>&1 &
    wait_for step_is r1 hold RUNNING
    kill -9 $! && wait $! 2>/dev/null
    nats_down
    touch go
    "$CAIRN" recover r1 "${store[@]}" "${results[@]}" >recover.out 2>recover.err &
    engine=$!
    wait_for grep -q 'run waits for a result' recover.err
    step_is r1 hold RUNNING || fail "it decided without the result: $("$CAIRN" get r1 "${store[@]}" -o json | jq -c .steps)"
    nats_up
    wait $engine || fail "recover gave $?: $(tail -n 3 recover.err)"
    read_is r1 '{"length":200017,"where":"nats_object"}'
    # Nobody waits any more who only reads: a step that is about to begin.
    sed -i 's/, when: "{{ make.stdout | length > 200000 }}"//' big.yaml
    rm go
    "$CAIRN" run big.yaml "${store[@]}" "${results[@]}" --run-id r2 --progress none >/dev/null 2>&1 &
    wait_for step_is r2 hold RUNNING
    kill -9 $! && wait $! 2>/dev/null
    nats_down
    touch go
    "$CAIRN" recover r2 "${store[@]}" "${results[@]}" >/dev/null 2>&1 &
    engine=$!
    failed() { "$CAIRN" events r2 "${store[@]}" -o jsonl | jq -c 'select(.event_type=="task.attempt.failed").payload.error|[.code,.retryable]' | grep -q '"REFERENCE_NOT_AVAILABLE",true'; }
    wait_for failed
    nats_up
    wait $engine || fail "recover gave $?"
    read_is r2 '{"length":200017,"where":"nats_object"}'
}

# A server that accepts connections and says nothing: the run that needs it waits, and no other does.
test_nx_7_3_while_nats_does_not_answer_a_service_starts_other_runs() {
    unconfined
    nats_up
    big 200000 object 'while [ ! -e go ]; do sleep 0.05; done' 50
    "$CAIRN" run big.yaml "${store[@]}" "${results[@]}" --run-id r1 --progress none >/dev/null 2>&1 &
    wait_for step_is r1 hold RUNNING
    kill -9 $! && wait $! 2>/dev/null
    kill -STOP "$nats"
    jq -n --arg url "nats://127.0.0.1:$nats_port" '{url: $url, bucket: "res", timeoutMs: 60000}' >results.json
    serve --results results.json
    trap 'kill -9 $nats $server 2>/dev/null' EXIT
    touch go
    wait_for grep -q 'run waits for a result' serve.err
    for i in 1 2 3; do
        ask POST /v1/runs "{\"document\":$(plan_text p '{"stepId":"a","kind":"noop","dependsOn":[]}'),\"runId\":\"s$i\"}" 'Prefer: wait=30'
        answers 200
        equal "$(jq -r .status body)" COMPLETED "run s$i"
    done
    step_is r1 hold RUNNING || fail "it decided without the result: $("$CAIRN" get r1 "${store[@]}" -o json | jq -c .steps)"
    kill -CONT "$nats"
    wait_for status_is r1 COMPLETED
    read_is r1 '{"length":200017,"where":"nats_object"}'
    stop_serving
    kill -9 "$nats"
}

test_nx_7_3_an_object_that_is_not_what_was_stored_is_not_available() {
    nats_up
    big 200000 object 'while [ ! -e go ]; do sleep 0.05; done'
    sed -i 's/, when: "{{ make.stdout | length > 200000 }}"//' big.yaml
    "$CAIRN" run big.yaml "${store[@]}" "${results[@]}" --run-id r1 --progress none >/dev/null 2>&1 &
    wait_for step_is r1 hold RUNNING
    kill -9 $! && wait $! 2>/dev/null
    hash=$(hash_of r1)
    described "$hash" >meta
    nuid=$(jq -r .nuid meta)
    js STREAM.PURGE.OBJ_res "{\"filter\":\"\$O.res.C.$nuid\"}" >/dev/null
    head -c "$(jq .size meta)" /dev/zero | tr '\0' y | say "\$O.res.C.$nuid" >/dev/null
    touch go
    cairn_is 10 recover r1 "${store[@]}" "${results[@]}"
    cairn_is 0 events r1 "${store[@]}" -o jsonl
    jq -r 'select(.event_type=="task.failed").payload.error|"\(.code): \(.message)"' out >why
    has why 'REFERENCE_NOT_AVAILABLE: result '
    has why 'does not have the digest'
    cairn_is 8 log verify r1 "${store[@]}" "${results[@]}"
    has out 'does not have the digest'
}

# Killed at every write, recovered, killed again: the same end, once.
test_a_kill_anywhere_between_put_and_log_loses_and_doubles_nothing() {
    [ -x "${CAIRN_FAULTY:-}" ] || skip "no build with fault seams"
    nats_up
    big 150000
    sed -i '/^- step: read/,$d; s/arcs: \[{step: read.*/arcs: []/' big.yaml
    local n rc died=0
    store=(--store files:killed)
    for n in $(seq 1 3 200); do
        rm -rf killed made
        rc=0
        CAIRN_CRASH_AT=$n "$CAIRN_FAULTY" run big.yaml "${store[@]}" "${results[@]}" --run-id r1 --progress none >/dev/null 2>&1 || rc=$?
        [ $rc = 137 ] || break
        died=$((died + 1))
        rc=0
        "$CAIRN" run big.yaml "${store[@]}" "${results[@]}" --run-id r1 --progress none >out 2>err || rc=$?
        equal $rc 0 "after call $n: $(tail -n 2 err)"
        cairn_is 0 log verify r1 "${store[@]}" "${results[@]}" # reads it, too
        cairn_is 0 events r1 "${store[@]}" -o jsonl
        equal "$(jq -rs '[(map(select(.event_type == "task.done")) | length), (.[] | select(.event_type == "result.stored").payload.result_ref.store)] | @csv' out)" \
            '2,"nats_object"' "after call $n"
    done
    [ $died -gt 5 ] || fail "it died only $died times"
    equal "$(messages)" "$(($(described "$(hash_of r1)" | jq .chunks) + 1))" "messages in the bucket, after $died lives and more"
}

test_gc_takes_what_nobody_refers_to() {
    nats_up
    big 200000
    cairn_is 0 run big.yaml "${store[@]}" "${results[@]}" --run-id old --progress none
    cairn_is 0 run big.yaml "${store[@]}" "${results[@]}" --run-id young --progress none # the same result
    equal "$(hash_of old)" "$(hash_of young)"
    big 300000
    cairn_is 0 run big.yaml "${store[@]}" "${results[@]}" --run-id other --progress none
    local all
    all=$(messages)
    cairn_is 0 store gc --keep-last 1 --dry-run "${store[@]}" "${results[@]}" -o json
    equal "$(jq -c '[.runs, .objects, .objectsKept]' out)" '[2,1,false]'
    equal "$(messages)" "$all"
    cairn_is 0 store gc --keep-last 1 "${store[@]}" -o json # it cannot ask there
    equal "$(jq -c '[.runs, .objects, .objectsKept]' out)" '[2,0,true]'
    cairn_is 0 store gc --keep-last 1 "${store[@]}" "${results[@]}" -o json
    equal "$(jq -c '[.runs, .objects, .objectsKept]' out)" '[0,1,false]'
    equal "$(messages)" "$(($(described "$(hash_of other)" | jq .chunks) + 1))" "messages of the one that stays"
    cairn_is 0 log verify --all "${store[@]}" "${results[@]}"
    cairn_is 0 store gc --keep-last 0 --yes "${store[@]}" "${results[@]}"
    has out 'in 1 object elsewhere'
    equal "$(messages)" 0
}

test_a_service_puts_and_gives_what_is_elsewhere() {
    nats_up
    big 200000
    serve "${results[@]}"
    echo "$token" >token
    cairn_is 0 run big.yaml --server "$url" --token-file token --run-id r1 --progress none
    ask GET /v1/runs/r1/steps/make/output
    answers 200
    equal "$(jq '.result.stdout | length' body)" 200017
    kill -TERM "$server"
    wait "$server"
    nats_down
    rm serve.err # or the address of the one before is read from it
    "$CAIRN" serve --store "sqlite:$PWD/store.db" --listen 127.0.0.1:0 "${results[@]}" >serve.out 2>serve.err &
    server=$!
    wait_for grep -q '^listening on ' serve.err
    url=$(sed -n 's/^listening on //p' serve.err | head -n 1)
    ask GET /v1/runs/r1/steps/make/output
    answers 503
    code_is REFERENCE_NOT_AVAILABLE
    nats_up
    there() { ask GET /v1/runs/r1/steps/make/output && [ "$status" = 200 ]; }
    wait_for there
}

# A worker knows nothing of NATS: the service puts what it gives, and reads what it asks for.
test_nx_2q_a_worker_gives_and_reads_what_is_elsewhere() {
    nats_up
    cat >big.yaml <<'Y'
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: big, path: big}
workflow:
  - step: make
    tool: {kind: python, code: "result = {'rows': ['x' * 1000] * 100}", spec: {result: {store: object}}}
    next: {arcs: [{step: load}]}
  - step: load
    tool: {kind: artifact, action: get, input: {result_ref: "{{ make._ref }}"}}
    next: {arcs: [{step: count}]}
  - step: count
    tool: {kind: python, input: {data: "{{ load.data }}"}, code: "result = {'rows': len(data['rows'])}"}
Y
    serve --route '*=default' --drain 0 "${results[@]}"
    ask POST /v1/tokens '{"name":"w","roles":["Worker"],"pool":"default"}'
    CAIRN_TOKEN=$(jq -r .token body) "$CAIRN" worker --server "$url" --name w1 >w1.out 2>w1.err &
    worker=$!
    echo "$token" >token
    cairn_is 0 run big.yaml --server "$url" --token-file token --run-id r1 --progress none
    ask GET /v1/runs/r1/steps/count/output
    equal "$(jq -c .result body)" '{"rows":100}'
    equal "$(stored r1 | jq -r 'select(.entity_id | contains("make")).payload.result_ref.store')" nats_object
}

# What a result may be, a record may hold, and be read again.
test_deep_results_and_many_keys_are_read_again() {
    cat >deep.yaml <<'YAML'
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: d, path: d}
workflow:
  - step: start
    tool:
      - name: deep
        kind: python
        code: |
          def main():
              x = 1
              for i in range(100): x = [x]
              return x
      - name: keys
        kind: python
        code: |
          def main():
              return {hex(i)[2:]: 1 for i in range(11000)}
YAML
    jq -n '{planId: "m", planVersion: "1", steps: ([{stepId: "m0", kind: "echo", with: {message: 1}, dependsOn: []}] +
        [range(1; 80) | {stepId: "m\(.)", kind: "merge", dependsOn: ["m\(. - 1)"]}])}' >merge.json
    local file words
    for file in deep.yaml merge.json; do
        cairn_is 0 run $file "${store[@]}" --run-id ${file%.*} --progress none
        for words in 'get -o json' 'events -o jsonl' 'log verify' 'log replay' "log export --out $file.bundle"; do
            set -- $words
            case $1 in log) cairn_is 0 log $2 ${file%.*} "${store[@]}" "${@:3}" ;; *) cairn_is 0 $1 ${file%.*} "${store[@]}" "${@:2}" ;; esac
        done
        cairn_is 0 get ${file%.*} --store "bundle:$PWD/$file.bundle"
    done
}

run_tests "$@"
