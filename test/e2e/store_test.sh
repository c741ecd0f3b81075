#!/usr/bin/env bash
# The log from outside: stored bytes, tampering found, other vocabularies, both stores, append-only, concurrent readers.
. "$(dirname "$0")/lib.sh"

one_run() {
    echo '{"planId":"v","planVersion":"1","steps":[{"stepId":"a","kind":"echo","with":{"message":"hi"}},{"stepId":"b","kind":"shell","with":{"command":"echo there"}}]}' >v.json
    cairn_is 0 run v.json "${store[@]}" --run-id v-1 --progress none
}
tampered() { cairn_is 8 log verify --all "${store[@]}"; has_line out "run v-1 event $1"; cairn_is 8 log verify v-1 "${store[@]}" -o json; jq -e ".intact == false and (.faults|length) > 0 and .faults[0].runId == \"v-1\"" out >/dev/null || fail "report: $(cat out)"; }

test_events_are_the_stored_bytes() {
    store=(--store "files:$PWD/f"); one_run
    "$CAIRN" events v-1 "${store[@]}" -o jsonl >shown || fail "exit $?"
    cmp shown f/v-1/events.jsonl || cmp shown "$(find f -name events.jsonl | head -n 1)" || fail "not the bytes of events.jsonl"
    store=(--store "sqlite:$PWD/s.db"); one_run
    "$CAIRN" events v-1 "${store[@]}" -o jsonl >shown
    equal "$(jq -r .runSeq shown | tr '\n' ' ')" '1 2 3 4 5 6 7 '
    equal "$(jq -r .eventType shown | tr '\n' ' ')" 'RunQueued RunStarted StepStarted StepCompleted StepStarted StepCompleted RunCompleted '
}
test_events_filters() {
    one_run
    cairn_is 0 events v-1 "${store[@]}" -o jsonl --type 'Step*'; equal "$(wc -l <out)" 4
    cairn_is 0 events v-1 "${store[@]}" -o jsonl --step b; equal "$(wc -l <out)" 2
    cairn_is 0 events v-1/b "${store[@]}" -o jsonl; equal "$(wc -l <out)" 2
    cairn_is 0 events v-1 "${store[@]}" -o jsonl --after 5; equal "$(wc -l <out)" 2
    cairn_is 0 events v-1 "${store[@]}" -o jsonl --after 99; empty out
    cairn_is 0 events v-1 "${store[@]}" -o jsonl --limit 3; equal "$(wc -l <out)" 3
    cairn_is 0 events v-1 "${store[@]}" -o json; equal "$(jq length out)" 7
    cairn_is 0 events v-1 "${store[@]}" -o name; equal "$(tr '\n' ' ' <out)" '1 2 3 4 5 6 7 '
    cairn_is 0 events v-1 "${store[@]}" -o json --fields seq,type --limit 1; equal "$(jq -c . out)" '[{"seq":1,"type":"RunQueued"}]'
    cairn_is 2 events v-1 "${store[@]}" --after x
    cairn_is 5 events nosuch "${store[@]}"
}
test_events_in_other_vocabularies() {
    one_run
    cairn_is 0 events v-1 "${store[@]}" --as nodes -o jsonl; equal "$(jq -r .event_type out | tr '\n' ' ')" 'workflow_started node_started node_completed node_started node_completed workflow_completed '
    cairn_is 0 events v-1 "${store[@]}" --as noetl -o table; has out playbook.started
    cairn_is 2 events v-1 "${store[@]}" --as latin
}
test_ledger_holds_decisions() {
    echo '{"planId":"g","planVersion":"1","steps":[{"stepId":"g","kind":"approval"}]}' >g.json
    cairn_is 13 run g.json "${store[@]}" --run-id g-1 --exit-on-wait
    cairn_is 0 approve g-1 "${store[@]}"
    cairn_is 0 events g-1 "${store[@]}" --ledger -o jsonl; equal "$(jq -r 'select(.signalType).decision' out)" ACCEPTED
    cairn_is 0 events g-1 "${store[@]}" --ledger -o table; has out 'APPROVE ACCEPTED'
}
test_verify_finds_a_changed_record_in_files() {
    store=(--store "files:$PWD/f"); one_run; intact
    log=$(find f -name events.jsonl | head -n 1); cp "$log" whole
    sed -i '4s/hi/ho/' "$log"; tampered 4; cp whole "$log"; intact
    sed -i '3d' "$log"; cairn_is 8 log verify --all "${store[@]}"; has out v-1; cp whole "$log"
    sed -i '7d' "$log"; cairn_is 8 log verify --all "${store[@]}"; has out v-1; cp whole "$log"
    for lines in 1,3 5 4 6,7; do sed -n "${lines}p" whole; done >"$log"; cairn_is 8 log verify --all "${store[@]}"; has out v-1
}
test_verify_finds_a_changed_record_in_sqlite() {
    command -v sqlite3 >/dev/null || skip 'sqlite3 is not installed'
    one_run; intact
    # The store refuses; someone who drops its triggers is found out.
    for sql in "update workflow_events set payload='x' where sequence=4" "delete from workflow_events where sequence=4" \
        "insert or replace into workflow_events select * from workflow_events where sequence=4"; do
        sqlite3 store.db "$sql" 2>sql.err && fail "accepted: $sql"
    done
    intact
    for t in $(sqlite3 store.db "select name from sqlite_master where type='trigger'"); do sqlite3 store.db "drop trigger \"$t\""; done
    column=$(sqlite3 store.db "select name from pragma_table_info('workflow_events') where name in ('record','bytes','body','payload') order by name='payload'" | head -n 1)
    sqlite3 store.db "update workflow_events set $column=replace($column,'hi','ho') where sequence=4" || fail "cannot tamper"
    cairn_is 8 log verify --all "${store[@]}"; has_line out 'run v-1 event 4'
    cairn_is 8 log verify v-1 "${store[@]}" -o json; equal "$(jq -r '.faults[0].seq' out)" 4
}
# The chain says what was approved. A store that was made to name another document for the run does not get it executed.
test_a_document_that_was_exchanged_is_not_executed() {
    command -v sqlite3 >/dev/null || skip 'sqlite3 is not installed'
    echo '{"planId":"g","planVersion":"1","steps":[{"stepId":"g","kind":"approval"},{"stepId":"a","kind":"shell","dependsOn":["g"],"with":{"command":"touch good"}}]}' >g.json
    echo '{"planId":"g","planVersion":"1","steps":[{"stepId":"g","kind":"approval"},{"stepId":"a","kind":"shell","dependsOn":["g"],"with":{"command":"touch evil"}}]}' >e.json
    cairn_is 13 run g.json "${store[@]}" --run-id g-1 --exit-on-wait
    cairn_is 13 run e.json "${store[@]}" --run-id e-1 --exit-on-wait
    sqlite3 store.db "drop trigger runs_no_update; update runs set document=(select document from runs where run_id='e-1') where run_id='g-1'" || fail 'not changed'
    cairn_is 8 approve g-1 "${store[@]}"; has err PLAN_INTEGRITY_VALIDATION_FAILED
    rc=0; "$CAIRN" recover "${store[@]}" >out 2>err </dev/null || rc=$?
    [ ! -e evil ] && [ ! -e good ] || fail 'a step ran'
    cairn_is 8 log verify --all "${store[@]}"; has out 'names another document'
    cairn_is 8 log replay g-1 "${store[@]}"
    rc=0; "$CAIRN" doctor "${store[@]}" >out 2>err </dev/null || rc=$?
    [ "$rc" != 0 ] || fail "doctor found nothing: $(cat out)"
}
# What still speaks of a run that is gone is heard.
test_runs_that_are_gone_are_missed_in_sqlite() {
    command -v sqlite3 >/dev/null || skip 'sqlite3 is not installed'
    one_run
    cairn_is 0 run v.json "${store[@]}" --run-id v-2 --progress none; intact; cp store.db whole.db
    for sql in "delete from run_heads where run_no=1" "delete from runs where run_no=1" \
        "delete from workflow_events where run_no=1; delete from ledger where run_no=1; delete from run_heads where run_no=1; delete from runs where run_no=1"; do
        cp whole.db store.db
        sqlite3 store.db "drop trigger run_heads_no_delete; drop trigger runs_no_delete; drop trigger workflow_events_no_delete; drop trigger ledger_no_delete; $sql" || fail "not done: $sql"
        cairn_is 8 log verify --all "${store[@]}"; has out 'is missing'
    done
}
test_slots_that_are_cut_or_damaged_are_told_in_files() {
    store=(--store "files:$PWD/f"); one_run
    cairn_is 0 run v.json "${store[@]}" --run-id v-2 --progress none; intact; cp f/.cairn/runs whole
    truncate -s 512 f/.cairn/runs
    cairn_is 8 log verify --all "${store[@]}"; has_line out 'run v-2.*slot is missing'
    rm f/.cairn/journal; : >f/.cairn/journal; cp whole f/.cairn/runs; intact
    cp whole f/.cairn/runs; printf X | dd of=f/.cairn/runs bs=1 seek=700 conv=notrunc status=none
    cairn_is 0 ls --all "${store[@]}"; has out UNREADABLE
    cairn_is 8 log verify --all "${store[@]}"; has_line out 'unreadable-2.*slot is damaged'
}
test_verify_reports_what_it_read() {
    one_run
    cairn_is 0 log verify v-1 "${store[@]}"; has out '1 run, 7 events: intact'
    cairn_is 0 log verify --all "${store[@]}" -o json; equal "$(jq -c '[.runs,.events,.intact]' out)" '[1,7,true]'
    cairn_is 2 log verify v-1 --all "${store[@]}"
    cairn_is 5 log verify nosuch "${store[@]}"
}
test_sqlite_table_has_the_promised_columns() {
    command -v sqlite3 >/dev/null || skip 'sqlite3 is not installed'
    one_run
    equal "$(sqlite3 store.db "select group_concat(sequence||event_type,' ') from (select * from workflow_events where run_id='v-1' order by sequence limit 2)")" '1RunQueued 2RunStarted'
    sqlite3 store.db "select run_id, sequence, event_type, timestamp, payload from workflow_events limit 1" >/dev/null || fail "columns"
}
test_tenants_do_not_see_each_other() {
    one_run
    cairn_is 0 run v.json "${store[@]}" --run-id v-1 --tenant acme --progress none
    cairn_is 0 ls "${store[@]}" --tenant acme -o name; equal "$(cat out)" v-1
    cairn_is 0 ls "${store[@]}" --tenant nobody -o name; empty out
    cairn_is 5 get v-1 "${store[@]}" --tenant nobody
    cairn_is 5 pause v-1 "${store[@]}" --tenant nobody
    intact
}
test_defaults_of_ids() {
    one_run
    equal "$("$CAIRN" get v-1 "${store[@]}" -o json | jq -c '[.tenantId,.projectId,.environmentId]')" '["default","default","default"]'
    cairn_is 0 run v.json "${store[@]}" --run-id v-2 --progress none --project p --environment prod
    equal "$("$CAIRN" get v-2 "${store[@]}" -o json | jq -c '[.tenantId,.projectId,.environmentId]')" '["default","p","prod"]'
}
test_readers_while_it_is_written() {
    slow_plan 0.4
    "$CAIRN" run slow.json "${store[@]}" --run-id s-1 --progress none & pid=$!
    wait_for status_is s-1 RUNNING
    while kill -0 $pid 2>/dev/null; do
        "$CAIRN" ls "${store[@]}" >/dev/null && "$CAIRN" get s-1 "${store[@]}" >/dev/null && "$CAIRN" events s-1 "${store[@]}" -o jsonl >/dev/null || fail "a reader failed"
        "$CAIRN" log verify --all "${store[@]}" >/dev/null || fail "verify failed beside a writer"
    done
    wait $pid || fail "exit $?"
}
test_two_writers_in_one_sqlite_store() {
    slow_plan 0.3
    for i in 1 2 3 4 5 6; do "$CAIRN" run slow.json "${store[@]}" --run-id "w-$i" --progress none & pids[i]=$!; done
    for i in 1 2 3 4 5 6; do wait "${pids[i]}" || fail "writer $i: exit $?"; done
    cairn_is 0 ls "${store[@]}" --status COMPLETED -o name; equal "$(wc -l <out)" 6
    intact
}
test_files_store_names_its_holder() {
    store=(--store "files:$PWD/f")
    held_plan a
    "$CAIRN" run slow.json "${store[@]}" --run-id s-1 --progress none & pid=$!
    wait_for step_is s-1 a RUNNING
    cairn_is 6 run slow.json "${store[@]}" --run-id s-2; has err "$pid"
    cairn_is 0 ls "${store[@]}" -o name; equal "$(cat out)" s-1
    touch go; wait $pid || fail "exit $?"
}
test_store_path_with_blanks_can_be_pasted() {
    store=(--store "sqlite:$PWD/a b.db"); one_run
    cairn_is 0 run v.json "${store[@]}" --run-id v-2
    bash -c "$(sed -n 's/^  look: //p' err)" >look || fail "look: $(sed -n 's/^  look: //p' err)"
    has look COMPLETED
}
test_directory_is_no_sqlite_store() {
    echo '{"planId":"v","planVersion":"1","steps":[{"stepId":"a","kind":"noop"}]}' >v.json
    mkdir dir
    for command in ls 'run v.json'; do
        cairn_is 2 $command --store "sqlite:$PWD/dir"; has err 'is a directory'
    done
}
test_store_in_a_closed_directory_says_why() {
    echo '{"planId":"v","planVersion":"1","steps":[{"stepId":"a","kind":"noop"}]}' >v.json
    mkdir -m 500 closed
    [ "$(id -u)" != 0 ] || skip "root may write everywhere"
    for kind in sqlite files; do
        cairn_is 4 run v.json --store "$kind:$PWD/closed/x"; has err 'Permission denied'
    done
}

run_tests "$@"
