#!/usr/bin/env bash
# Requirements that show from outside only: what sqlite3, jq, grep and a killed process see of a store.
. "$(dirname "$0")/lib.sh"

need_sqlite() { command -v sqlite3 >/dev/null || skip 'sqlite3 is not installed'; }
start() { "$CAIRN" run "$@" "${store[@]}" --progress none >run.out 2>run.err </dev/null & pid=$!; }
# Two steps, then a person: rests in the middle of its life.
gate_plan() {
    cat >gate.json <<'PLAN'
{"planId":"gate","planVersion":"1","steps":[
 {"stepId":"a","kind":"shell","with":{"command":"echo x >> a.ran; echo A"}},
 {"stepId":"g","kind":"approval"},
 {"stepId":"z","kind":"shell","with":{"command":"echo $a.output; echo x >> z.ran"}}]}
PLAN
}
nodes() {
    cat >n.yaml <<'NODES'
name: n
nodes:
  - { id: a, bash: "echo 'one \"quoted\"'; echo two; sleep 0.2" }
  - { id: b, bash: "sleep 0.2; echo B", depends_on: [a] }
  - { id: c, bash: "exit 1", depends_on: [b] }
  - { id: d, bash: "echo never", depends_on: [c] }
NODES
}
dump() {
    sqlite3 store.db "select * from workflow_events order by position; select * from ledger order by position;
        select hex(document),run_id,tenant_id,plan_id from runs" | sha256sum
}

test_stored_events_are_not_changed_by_sql_EL_1e() {
    need_sqlite
    gate_plan
    cairn_is 13 run gate.json "${store[@]}" --run-id g-1 --exit-on-wait
    cairn_is 0 approve g-1 "${store[@]}"
    intact
    local before sql head='run_no,run_id' tail='record_prefix,record_suffix,key'
    before=$(dump)
    [ "$(sqlite3 store.db 'select count(*) from workflow_events')" -ge 10 ] || fail 'too few events to tamper with'
    [ "$(sqlite3 store.db 'select count(*) from ledger')" -ge 1 ] || fail 'no ledger to tamper with'
    while read -r sql; do
        sql=${sql//EVENT/$head,sequence,event_type,timestamp,payload,$tail}
        sql=${sql//HEAD/$head} sql=${sql//TAIL/$tail}
        sqlite3 store.db "$sql" >sql.out 2>sql.err && fail "accepted: $sql"
        has sql.err EVENT_LOG_APPEND_ONLY
        equal "$(dump)" "$before" "the log after $sql"
    done <<'SQL'
update workflow_events set payload='{}' where sequence=3
update workflow_events set event_type='RunFailed'
update or replace workflow_events set sequence=1 where sequence=2
update or ignore workflow_events set timestamp='2000-01-01T00:00:00.000Z'
delete from workflow_events where sequence=3
delete from workflow_events
insert or replace into workflow_events select * from workflow_events where sequence=3
insert or replace into workflow_events(EVENT) select HEAD,sequence,event_type,timestamp,'{}',TAIL from workflow_events where sequence=3
replace into workflow_events select * from workflow_events where sequence=3
replace into workflow_events(EVENT) select EVENT from workflow_events where sequence=3
insert or ignore into workflow_events(EVENT) select HEAD,99,event_type,timestamp,payload,TAIL from workflow_events where sequence=3
insert into workflow_events(EVENT) select EVENT from workflow_events where sequence=3 on conflict do update set payload='{}'
begin; delete from workflow_events where sequence=1; commit
update ledger set bytes='{}'
delete from ledger
replace into ledger select * from ledger
update runs set run_id='other'
delete from runs
SQL
    intact
}
test_columns_of_the_table_EL_4e() {
    need_sqlite
    nodes
    cairn_is 10 run n.yaml "${store[@]}" --run-id n-1 --progress none
    local name
    sqlite3 store.db 'pragma table_info(workflow_events)' | cut -d'|' -f2,3,4 >columns
    for name in 'run_id|TEXT|1' 'sequence|INTEGER|1' 'event_type|TEXT|1' 'timestamp|TEXT|1' 'payload|TEXT|1'; do
        grep -qxF "$name" columns || fail "no column $name in: $(tr '\n' ' ' <columns)"
    done
    # They say what the records say.
    "$CAIRN" events n-1 "${store[@]}" -o jsonl | jq -cS '[.run_id,.sequence,.event_type,.timestamp,.payload]' >of_records
    sqlite3 -json store.db "select run_id,sequence,event_type,timestamp,payload from workflow_events where run_id='n-1' order by sequence" |
        jq -cS '.[]|[.run_id,.sequence,.event_type,.timestamp,(.payload|fromjson)]' >of_columns
    [ -s of_records ] || fail 'no records'
    cmp of_records of_columns || fail 'columns and records differ'
}
test_one_file_per_run_EL_4c() {
    store=(--store "files:$PWD/f")
    nodes; gate_plan
    cairn_is 10 run n.yaml "${store[@]}" --run-id n-1 --progress none
    cairn_is 13 run gate.json "${store[@]}" --run-id g-1 --exit-on-wait --progress none
    equal "$(cd f && find . -name events.jsonl | sort | tr '\n' ' ')" './g-1/events.jsonl ./n-1/events.jsonl '
    equal "$(jq -r .run_id f/n-1/events.jsonl | sort -u)" n-1
    equal "$(jq -r .runId f/g-1/events.jsonl | sort -u)" g-1
    equal "$(jq -r .event_type f/n-1/events.jsonl | tr '\n' ' ')" \
        'workflow_started node_started node_completed node_started node_completed node_started node_failed node_skipped workflow_failed '
}
test_one_object_a_line_that_stays_EL_4d_EL_1b() {
    store=(--store "files:$PWD/f")
    nodes
    sed -i 's/sleep 0.2" }/until [ -e seen.1 ]; do sleep 0.02; done" }/; s/sleep 0.2; echo B/until [ -e seen.2 ]; do sleep 0.02; done; echo B/' n.yaml
    start n.yaml --run-id n-1
    local looks=0 size last=0 line
    wait_for test -s f/n-1/events.jsonl
    : >kept
    while kill -0 $pid 2>/dev/null; do
        cp f/n-1/events.jsonl now
        size=$(stat -c %s kept)
        cmp -s -n "$size" kept now || fail 'bytes that were there have changed'
        [ "$(stat -c %s now)" -gt "$size" ] && looks=$((looks + 1)) && touch "seen.$looks" # what it waits for to go on
        mv now kept
    done
    wait $pid
    cmp -s -n "$(stat -c %s kept)" kept f/n-1/events.jsonl || fail 'bytes that were there have changed at the end'
    [ $looks -ge 2 ] || fail "it was seen growing $looks times only"
    while IFS= read -r line; do
        equal "$(jq -c type <<<"$line")" '"object"' "line $((last + 1))"
        equal "$(jq .sequence <<<"$line")" $((last += 1)) 'sequence'
    done <f/n-1/events.jsonl
    equal "$last" 9 'lines'
    equal "$(tail -c 1 f/n-1/events.jsonl | od -An -c | tr -d ' ')" '\n' 'the last byte'
    intact
}
# What is done to the file of a run from outside is found, wherever in it, and named.
test_a_file_that_somebody_changed_is_found_EL_1e_I7() {
    store=(--store "files:$PWD/f")
    nodes
    cairn_is 10 run n.yaml "${store[@]}" --run-id n-1 --progress none
    intact
    cp -a f whole
    local change
    for change in 3p '$d' 4d '3{h;d};4G' '5s/"node_/"nope_/' '$a{}' '$p' '2s/:1,/:2,/'; do
        rm -r f; cp -a whole f
        sed -i "$change" f/n-1/events.jsonl
        cairn_is 8 log verify --all "${store[@]}"; has out 'run n-1'
    done
    rm -r f; cp -a whole f
    printf half >>f/n-1/events.jsonl
    cairn_is 8 log verify n-1 "${store[@]}"; has out 'run n-1 event 10: 4 bytes stand here'
    rm -r f; cp -a whole f
    find f/.cairn/blobs -type f -delete
    cairn_is 8 log verify n-1 "${store[@]}"; has out 'run n-1: its document'
}
# The summaries that lists show, the index, the engine's memory: all gone. What is left is the log, and it is enough.
test_state_is_made_again_from_the_log_ES_1a_WE_1h() {
    need_sqlite
    held_plan b
    start slow.json --run-id s-1
    wait_for step_is s-1 b RUNNING
    kill -9 $pid; wait $pid 2>/dev/null
    "$CAIRN" get s-1 "${store[@]}" -o json >before || fail 'get'
    sqlite3 store.db "update run_heads set status='PENDING',substatus='',steps_total=0,steps_completed=0,steps_failed=7,
        steps_running=0,started_ms=0,created_ms=0,cause='nonsense'" || fail 'cannot wipe'
    "$CAIRN" get s-1 "${store[@]}" -o json >after || fail 'get'
    cmp before after || fail 'the state depends on the summary'
    equal "$(jq -r '.status+" "+(.steps|map(.status)|join(","))' after)" 'RUNNING SUCCESS,RUNNING,PENDING'
    cairn_is 0 recover "${store[@]}"
    status_is s-1 COMPLETED || fail 'not COMPLETED'
    equal "$(times_ran a) $(times_ran b) $(times_ran c)" '1 2 1' 'times that a, b and c ran'
    cairn_is 0 ls "${store[@]}" -o json; equal "$(jq -r '.[0].status' out)" COMPLETED
    touch go
    store=(--store "files:$PWD/f")
    for i in 1 2 3; do cairn_is 0 run slow.json "${store[@]}" --run-id "f-$i" --progress none; done
    cairn_is 0 ls "${store[@]}" -o json; mv out listed
    "$CAIRN" get f-2 "${store[@]}" -o json >before
    rm f/.cairn/index || fail 'there is no index'
    cairn_is 0 run slow.json "${store[@]}" --run-id f-4 --progress none
    cairn_is 0 ls "${store[@]}" -o json; equal "$(jq -c '.[1:]' out)" "$(jq -c . listed)" 'the list'
    "$CAIRN" get f-2 "${store[@]}" -o json >after; cmp before after || fail 'get differs without the index'
    intact
}
# A type from a later version, put into the log as that version would: kept, shown, chained, and otherwise passed over.
test_unknown_types_are_kept_for_audits_ES_1_5_6c() {
    need_sqlite
    gate_plan
    cairn_is 13 run gate.json "${store[@]}" --run-id g-1 --exit-on-wait
    "$CAIRN" get g-1 "${store[@]}" -o json | jq 'del(.lastEventSeq)' >before
    python3 - <<'PY' || fail 'cannot write the event'
import hashlib, json, sqlite3
db = sqlite3.connect("store.db")
run, seq = db.execute("select run_no,last_seq from run_heads").fetchone()
last = db.execute("select record from workflow_records where run_no=? and sequence=?", (run, seq)).fetchone()[0]
record = json.loads(last)
key = hashlib.sha256(b"g-1|RUN|1|FooBar|1").hexdigest()
record.pop("stepId", None)
record.update(eventType="FooBar", runSeq=seq + 1, prevHash=hashlib.sha256(last.encode()).hexdigest(), idempotencyKey=key,
              payload={"what": "nobody knows"}, eventId="00000000-0000-4000-8000-00000000f00b", logicalAttemptId=1)
text = json.dumps(record, sort_keys=True, separators=(",", ":"))
payload = '{"what":"nobody knows"}'
prefix, suffix = text.split(payload)
db.execute("update run_heads set last_seq=?, head=? where run_no=?", (seq + 1, hashlib.sha256(text.encode()).digest(), run))
width = len(db.execute("select key from workflow_events limit 1").fetchone()[0])
db.execute("insert into workflow_events(run_no,run_id,sequence,event_type,timestamp,payload,record_prefix,record_suffix,key)"
           " values(?,?,?,?,?,?,?,?,?)",
           (run, "g-1", seq + 1, "FooBar", record["persistedAt"], payload, prefix, suffix, bytes.fromhex(key)[:width]))
db.commit()
PY
    "$CAIRN" get g-1 "${store[@]}" -o json >after || fail 'get'
    equal "$(jq .lastEventSeq after)" 6
    jq 'del(.lastEventSeq)' after | cmp - before || fail 'an unknown type changed the state'
    cairn_is 0 events g-1 "${store[@]}" -o table; has_line out '6 .*FooBar'
    cairn_is 0 events g-1 "${store[@]}" -o jsonl --type FooBar; equal "$(jq -r .payload.what out)" 'nobody knows'
    intact
    cairn_is 0 approve g-1 "${store[@]}"
    status_is g-1 COMPLETED || fail 'not COMPLETED'
    equal "$(events_of g-1 | tail -n +6 | tr '\n' ' ')" 'FooBar SignalAccepted StepCompleted StepStarted StepCompleted RunCompleted '
    intact
}
secret_plan() {
    cat >secret.json <<'PLAN'
{"planId":"secret","planVersion":"1","steps":[
 {"stepId":"fetch","kind":"shell",
  "with":{"command":"printf %s \"$TOKEN\" | wc -c; echo \"$TOKEN\"; echo \"$TOKEN\" >&2; echo $TOKEN | base64"},
  "secrets":[{"name":"TOKEN","ref":"env:ORDERS_TOKEN"}]},
 {"stepId":"fail","kind":"shell","with":{"command":"echo \"bad login $TOKEN\" >&2; exit 1"},
  "secrets":[{"name":"TOKEN","ref":"env:ORDERS_TOKEN"}]}]}
PLAN
}
test_plans_hold_references_and_values_are_nowhere_ES_2a_WE_1i() {
    local value='hunter2-Zq8vT41x' kind
    cat >inline.json <<PLAN
{"planId":"p","planVersion":"1","steps":[{"stepId":"a","kind":"noop","secrets":[{"name":"TOKEN","value":"$value"}]}]}
PLAN
    cairn_is 3 validate inline.json; has err E0213; hasnt err "$value"; hasnt out "$value"
    cairn_is 3 run inline.json "${store[@]}"; hasnt err "$value"
    secret_plan
    for kind in sqlite files; do
        store=(--store "$kind:$PWD/secret-$kind")
        ORDERS_TOKEN=$value cairn_is 10 run secret.json "${store[@]}" --run-id s-1 --progress plain
        hasnt out "$value"; hasnt err "$value"
        cairn_is 0 events s-1 "${store[@]}" -o jsonl; has out '16\n***'; has out 'bad login ***'
        cairn_is 0 get s-1 "${store[@]}" -o json; hasnt out "$value"
    done
    rm inline.json
    grep -rlaF -e "$value" -e "$(printf %s "$value" | base64 | cut -c1-20)" . >leaks && fail "the value is in: $(tr '\n' ' ' <leaks)"
    grep -rlaF 'env:ORDERS_TOKEN' secret-files >/dev/null || fail 'the reference is not in the store'
}
# The value does not exist when the run starts, is another one for each attempt, and its absence fails the step alone.
test_secrets_are_fetched_by_the_worker_at_each_start_ES_2b() {
    cat >late.json <<PLAN
{"planId":"late","planVersion":"1","steps":[
 {"stepId":"make","kind":"shell","with":{"command":"printf first > $PWD/token"}},
 {"stepId":"use","kind":"shell","retry":{"maxAttempts":2,"delay":"1ms"},"secrets":[{"name":"T","ref":"file:$PWD/token"}],
  "with":{"command":"printf %s \"\$T\" | sha256sum >> used; printf second > $PWD/token; test \$CAIRN_ATTEMPT = 2"}},
 {"stepId":"other","kind":"shell","with":{"command":"test -z \"\${T+set}\" && echo none"}}]}
PLAN
    cairn_is 0 run late.json "${store[@]}" --run-id l-1 --progress none
    for v in first second; do printf %s $v | sha256sum; done >wanted
    cmp used wanted || fail "the attempts saw other values"
    cairn_is 0 events l-1 "${store[@]}" -o jsonl
    equal "$(jq -r 'select(.stepId=="other" and .eventType=="StepCompleted").payload.result' out)" none
    sed -e "s|$PWD/token|$PWD/nowhere|g" -e 's/"make","kind":"shell","with":{[^}]*}/"make","kind":"noop"/' late.json >never.json
    cairn_is 10 run never.json "${store[@]}" --run-id l-2 --progress none
    cairn_is 0 events l-2 "${store[@]}" -o jsonl
    equal "$(jq -r 'select(.eventType=="StepFailed").payload.errorCode' out | sort -u)" SECRET_NOT_FOUND
    equal "$(wc -l <used)" 2 'times that the command ran'
}
# Eight processes want to start the same run and one of them does; whoever has a run is killed and one of four takes over.
test_a_run_starts_once_ES_3h_WE_2_1f() {
    slow_plan 0.3
    local i pids=() started=0
    cairn_is 0 run slow.json "${store[@]}" --run-id zero --progress none
    rm -r ran; slow_plan 0.3
    for i in 1 2 3 4 5 6 7 8; do
        "$CAIRN" run slow.json "${store[@]}" --run-id one --progress none >"out.$i" 2>"err.$i" </dev/null & pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i" && started=$((started + 1)); done
    equal "$started" 1 'starters that succeeded'
    equal "$(count_of one RunQueued) $(count_of one RunStarted) $(times_ran a) $(times_ran c)" '1 1 1 1'
    held_plan a
    start slow.json --run-id two
    wait_for step_is two a RUNNING
    kill -9 $pid; wait $pid 2>/dev/null
    for i in 1 2 3 4; do "$CAIRN" recover "${store[@]}" >"rec.$i" 2>&1 </dev/null & pids[i]=$!; done
    for i in 1 2 3 4; do wait "${pids[i]}"; done
    status_is two COMPLETED || fail "two is not COMPLETED"
    equal "$(count_of two RunStarted) $(count_of two RunCompleted) $(count_of two StepRedispatched)" '1 1 1'
    intact
}

test_contract_versions_are_told_RE_0a() {
    cairn_is 0 version -o json
    equal "$(jq -c '[.contracts.runEvents,.contracts.executionSemantics,.contracts.eventLog,.keyFormula]' out)" '["1.1","1.1","1.0","v1"]'
}

run_tests "$@"
