#!/usr/bin/env bash
# What docs/operations-postgres.md says of failover and of restoring: a primary and a standby that is really one, and the page's own commands.
. "$(dirname "$0")/postgres_lib.sh"

# A standby of $pg_dir in $standby, streaming, and synchronous from then on.
standby_up() {
    standby=$pg_dir/standby
    as_postgres mkdir "$standby"
    (cd "$pg_dir" && as_postgres "$pg_bin/pg_basebackup" -h "$pg_dir" -U postgres -D "$standby/data" -R -c fast --no-sync) || fail 'pg_basebackup'
    (cd "$pg_dir" && exec setsid $(as_postgres_words) "$pg_bin/postgres" -D "$standby/data" -k "$standby" -c listen_addresses= -c cluster_name=b >>"$pg_dir/standby.log" 2>&1 </dev/null) &
    standby_pid=$!
    wait_for "$pg_bin/pg_isready" -q -h "$standby"
    pg_sql "alter system set synchronous_standby_names='ANY 1 (b,c)'"
    pg_sql 'select pg_reload_conf()' >/dev/null
    wait_for gives "select 1 from pg_stat_replication where application_name='b' and sync_state='quorum'"
    pg="postgres:///postgres?host=$pg_dir,$standby&user=app&target_session_attrs=read-write"
}
# Each process of a server is a session of its own.
all_of() { local signal=$1; shift; kill "$signal" "$1" $(ps -o pid= --ppid "$1"); }
gives() { [ -n "$(pg_sql "$1")" ]; }
waits_for_standby="select pid from pg_stat_activity where application_name like 'cairn %' and wait_event='SyncRep'"
new_run() { asks "$1" POST /v1/runs "{\"runId\":\"$2\",\"document\":$(jq -R -s . <p.json)}" >"$2.answer"; }

test_failover_to_a_synchronous_standby_loses_nothing_and_doubles_nothing_S1_I1_I2() {
    E2E_CLIENT=$e2e/standby_client.py
    # Whatever the server says, sessions of an engine wait for the standby.
    postgres_up -c synchronous_commit=local
    # By default a result fails that waits for its store for three seconds. Here nothing may fail, however long the failover takes.
    local settings=$'[serve.stateStore]\nwriteLatencyBudgetMs = 60000\n'
    standby_up
    mkdir -p files
    : >effects; chmod 666 effects
    jq -n --arg e "$PWD/effects" '{planId: "p", planVersion: "1", steps: ["a", "b"] | map({stepId: ., kind: "shell",
        with: {command: "echo $CAIRN_RUN_ID/\(.) >>\($e); sleep 0.05"}})} | .steps[1].dependsOn = ["a"]' >p.json
    pg_sql 'create table public.said(level text)'
    cairn_is 0 run p.json --run-id before --progress none --store "$pg"
    engine one "$CAIRN"; engine two "$CAIRN"
    wait_for test -s files.token
    start_at one first p.json; start_at two second p.json
    pg_sql "create function public.see() returns trigger language plpgsql security definer as \$\$ begin
        insert into public.said values(current_setting('synchronous_commit')); return null; end \$\$;
        create trigger said after insert on cairn.workflow_events for each statement execute function public.see()"

    # A standby that is silent holds acknowledgements up. Whoever cancels the wait has committed nothing: the engine waits again.
    all_of -STOP "$standby_pid"
    new_run one held & local held=$!
    wait_for gives "$waits_for_standby"
    # Between two tries the engine waits for nothing for a moment: each call that finds it counts.
    disturbs() { pg_sql "select $1(pid) from ($waits_for_standby) w" >>"$1" && [ "$(wc -l <"$1")" -ge "$2" ]; }
    wait_for disturbs pg_cancel_backend 10
    wait_for disturbs pg_terminate_backend 3
    wait_for gives "$waits_for_standby"
    kill -0 $held 2>/dev/null || fail "acknowledged without the standby: $(cat held.answer)"
    all_of -CONT "$standby_pid"
    wait $held; equal "$(jq -r .runId held.answer)" held 'the run that waited for the standby'

    # Work, and the primary dies in the middle of it.
    python3 "$E2E_CLIENT" work "$(cat files.token)" p.json "$(cat one/url)" "$(cat two/url)" >history & local client=$!
    acknowledged() { [ "$(grep -c '"acknowledged"' history)" -ge "$1" ]; }
    wait_for acknowledged 6
    all_of -9 "$pg_pid"
    wait "$pg_pid" 2>/dev/null
    outlast 2.2 # longer than the lease: who could not renew is not dead for that
    local before; before=$(grep -c '"acknowledged"' history)
    as_postgres "$pg_bin/pg_ctl" promote -w -s -D "$standby/data" || fail 'the standby is not promoted'
    wait_for acknowledged $((before + 6))
    touch enough; wait $client
    pg_sql() { "$pg_bin/psql" -h "$standby" -U postgres -X -q -A -t -v ON_ERROR_STOP=1 -d postgres -c "$1"; }
    python3 "$E2E_CLIENT" check history "$(cat files.token)" effects "$(cat two/url)" >checked 2>wrong ||
        fail "$(cat checked wrong; tail -n 20 one/serve.err two/serve.err)"
    cat checked
    wait_for is_at two held COMPLETED; wait_for is_at one first COMPLETED
    equal "$(pg_sql 'select distinct level from public.said')" on 'level that events were committed at'
    for name in one two; do
        kill -0 "$(cat $name/pid)" || fail "engine $name has ended: $(tail -n 3 $name/serve.err)"
        hasnt $name/serve.err 'engine fenced'
        kill -TERM "$(cat $name/pid)"; wait "$(cat $name/pid)" || fail "engine $name ended with $?: $(tail -n 3 $name/serve.err)"
    done
    cairn_is 0 log verify --all --store "$pg"
    # Files of runs are found again when another host is the primary, also where the URL does not say where they are.
    cairn_is 0 run p.json --run-id again --progress none --store "$pg"
    equal "$(find state/cairn -maxdepth 1 -name 'postgres-*' | wc -l)" 1 'places of files'
    kill -QUIT "$standby_pid"; wait "$standby_pid" 2>/dev/null
    pg_pid=
}
# Events that were acknowledged after the moment that is put back are gone. The page's three commands, as they stand there.
test_restored_to_an_earlier_moment_the_store_goes_on_in_its_next_life_I46() {
    postgres_up; mkdir -p files
    echo '{"planId":"v","planVersion":"1","steps":[{"stepId":"a","kind":"noop"}]}' >v.json
    echo '{"planId":"g","planVersion":"1","steps":[{"stepId":"g","kind":"approval"}]}' >g.json
    engine one "$CAIRN"
    wait_for test -s files.token
    start_at one early v.json; wait_for is_at one early COMPLETED; start_at one open g.json; wait_for is_at one open RUNNING
    pg_sql 'create database restored template template0'
    as_postgres "$pg_bin/pg_dump" -h "$pg_dir" -U postgres -n cairn postgres >dump.sql
    start_at one late v.json; wait_for is_at one late COMPLETED # which the dump does not have
    kill -9 "$(cat one/pid)"; wait "$(cat one/pid)" 2>/dev/null
    cp files.token old.token; rm files.token
    "$pg_bin/psql" -h "$pg_dir" -U postgres -X -q -v ON_ERROR_STOP=1 -d restored -f dump.sql >out 2>err || fail "$(cat err)"

    local restored="postgres:///restored?host=$pg_dir&user=app" next="$pg&schema=cairn2"
    cairn_is 0 store backup "files:$PWD/moment" --store "$restored"
    cairn_is 0 store restore "files:$PWD/moment" --store "$next"
    cairn_is 0 log verify --all --store "$next"

    life() { pg_sql "select convert_from(value,'UTF8') from $1.notes where space='store' and convert_from(key,'UTF8')='life'" | jq -r "$2"; }
    equal "$(life cairn2 .number)" 2 'number of the life'
    [ "$(life cairn2 .id)" != "$(life cairn .id)" ] || fail 'the life has the name of the former one'
    pg="$next"
    engine two "$CAIRN"
    wait_for test -s files.token
    [ "$(cat files.token)" != "$(cat old.token)" ] || fail 'the token of the former life is this one'
    equal "$(curl -s -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $(cat old.token)" "$(cat two/url)/v1/runs")" 401 'the old token'
    is_at two early COMPLETED || fail 'what was there at the moment is gone'
    equal "$(asks two GET /v1/runs/late | jq -r .status)" 404 'what came after the moment'
    wait_for is_at two open RUNNING
    asks two POST /v1/runs/open/signals '{"signalId":"11111111-1111-4111-8111-111111111111","signalType":"APPROVE","payload":{"stepId":"g"}}' >said
    wait_for is_at two open COMPLETED
    start_at two late v.json; wait_for is_at two late COMPLETED # the number is given again, in another life
    kill -TERM "$(cat two/pid)"; wait "$(cat two/pid)"
    cairn_is 0 log verify --all --store "$next"
}
run_tests "$@"
