#!/usr/bin/env bash
# Two versions of Cairn on one Postgres at the same time. The older one is the test build told that it knows format 1 only.
. "$(dirname "$0")/postgres_lib.sh"

old() { CAIRN_PG_FORMAT=1 "${CAIRN_FAULTY:-$CAIRN}" "$@"; }
needs_faulty() { CAIRN_PG_FORMAT=1 "${CAIRN_FAULTY:-/nonexistent}" version >/dev/null 2>&1 || skip 'no build with seams for tests'; }
noop() { echo '{"planId":"v","planVersion":"1","steps":[{"stepId":"a","kind":"noop"}]}' >v.json; }
formats() { pg_sql "select string_agg(version::text,',' order by version) from cairn.migrations"; }

test_upgrade_both_versions_work_on_one_store() {
    needs_faulty; postgres_up; noop
    mkdir -p files
    echo '{"planId":"g","planVersion":"1","steps":[{"stepId":"g","kind":"approval"}]}' >g.json
    engine old CAIRN_PG_FORMAT=1 "${CAIRN_FAULTY:-$CAIRN}"
    equal "$(formats)" 1
    wait_for test -s files.token
    start_at old waits g.json
    engine new "$CAIRN"
    equal "$(formats)" 1,2,3,4
    start_at new n-1 v.json; start_at old o-1 v.json
    wait_for is_at new n-1 COMPLETED; wait_for is_at new o-1 COMPLETED
    wait_for is_at old n-1 COMPLETED
    # The newer one shoots nobody: the older one goes on until it is replaced, and its open runs go on at the newer one.
    kill -0 "$(cat old/pid)" || fail "the older engine has ended: $(tail -n 3 old/serve.err)"
    kill -9 "$(cat old/pid)"
    asks new POST /v1/runs/waits/signals '{"signalId":"3f0f1b6e-6f0e-4a2c-9d8f-1f2e3d4c5b6a","type":"CANCEL","reason":"test"}' >signal
    wait_for is_at new waits CANCELLED
    kill -TERM "$(cat new/pid)"; wait "$(cat new/pid)" || fail "the newer engine ended with $?"
    cairn_is 0 log verify --all "${store[@]}"
}
test_upgrade_an_older_version_refuses_a_newer_format() {
    needs_faulty; postgres_up; noop
    old run v.json "${store[@]}" --run-id o-1 --progress none >/dev/null 2>err || fail "run: $(cat err)"
    cairn_is 20 store migrate --check "${store[@]}"; has err 'format 1, to be brought to 4'
    pg_sql "insert into cairn.workflow_events select nextval('cairn.feed_position'),run_no,tenant_id,run_id,99,event_type,timestamp,payload,record_prefix,record_suffix,key from cairn.workflow_events where sequence=2"
    "$CAIRN" store migrate "${store[@]}" >out 2>err && fail 'two events of one key were migrated'
    has err 'run o-1: events 2 and 99 have one key'; equal "$(formats)" 1
    pg_sql "set session_replication_role=replica; delete from cairn.workflow_events where sequence=99"
    cairn_is 0 store migrate "${store[@]}"; has err 'format 4, up to date'
    old run v.json "${store[@]}" --run-id o-2 --progress none >/dev/null 2>err || fail "format 4 may be used by version 1: $(cat err)"
    pg_sql "insert into cairn.migrations values(5,5)" >/dev/null
    for program in old "$CAIRN"; do
        "$program" ls "${store[@]}" >out 2>err && fail "$program uses a format that it does not know"
        has err 'use a newer Cairn'
    done
    equal "$(pg_sql "select count(*) from cairn.runs")" 2
}
run_tests "$@"
