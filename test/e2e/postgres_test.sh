#!/usr/bin/env bash
# The command line over a real Postgres: runs, death and recovery, copies to and from other stores, the service, and what is wrong.
. "$(dirname "$0")/postgres_lib.sh"
. "$(dirname "$0")/serve_lib.sh"

plan() { echo '{"planId":"v","planVersion":"1","steps":[{"stepId":"a","kind":"echo","with":{"message":"hi"}},{"stepId":"b","kind":"shell","with":{"command":"echo there"}}]}' >v.json; }

# docs/operations-postgres.md, typed line by line: with this test's Postgres as the machine db, and directories of the test's own.
test_the_commands_of_the_guide_do_what_they_say() {
    postgres_up
    mkdir -p srv mnt
    export PGHOST=$pg_dir PGUSER=postgres PATH=$pg_bin:$PATH
    local line served=0 owner="postgres://owner@/workflows?host=$pg_dir"
    awk '$0 == "```sh in=postgres" { on = 1; next } on && $0 == "```" { on = 0 } on' "$root/docs/operations-postgres.md" |
        sed -E "s/ +#.*//; s|@(db\|a,b)/([a-z]+)\?|@/\2?host=$pg_dir\&|; s|@db/([a-z]+)|@/\1?host=$pg_dir|; s|/srv/cairn|$PWD/srv|; s|/mnt/|$PWD/mnt/|; s|^cairn |\"$CAIRN\" |" >lines
    [ "$(wc -l <lines)" -ge 14 ] || fail "only $(wc -l <lines) commands"
    while read -r line; do
        case $line in
            *' serve '*)
                bash -c "exec $line --listen 127.0.0.1:0" >/dev/null 2>serve.err &
                local server=$!
                wait_for grep -q '^listening on\|^error' serve.err; ! grep -q '^error' serve.err || fail "$line: $(cat serve.err)"
                served=$((served + 1))
                if [ $served = 1 ]; then
                    echo '{"planId":"v","planVersion":"1","steps":[{"stepId":"a","kind":"noop"}]}' >v.json
                    CAIRN_TOKEN=$(cat "$(sed -n 's/^the token of the first start is in //p' serve.err)") "$CAIRN" run v.json --run-id v-1 --server "$(sed -n 's/^listening on //p' serve.err)" >/dev/null 2>err || fail "a run: $(cat err)"
                    "$pg_bin/createdb" -T template0 restored # as Postgres would have brought it back
                    "$pg_bin/pg_dump" -n cairn workflows | "$pg_bin/psql" -q -X restored >/dev/null 2>&1
                fi
                kill "$server"; wait "$server" || fail "$line ended with $?: $(tail -n 2 serve.err)"
                ;;
            *) PGDATABASE=workflows bash -c "${line//URL/\"$owner\"}" >out 2>err </dev/null || fail "$line: exit $?: $(tail -n 2 err)" ;;
        esac
    done <lines
    equal $served 2
    cairn_is 0 log verify --all --store "$owner&schema=cairn2"; has out '1 run'
    cairn_is 0 log verify --all --store "files:$PWD/mnt/archive"; has out '1 run'
}

test_postgres_every_command_works() {
    postgres_up; plan
    cairn_is 0 run v.json "${store[@]}" --run-id v-1 --progress none
    cairn_is 0 run v.json "${store[@]}" --run-id v-2 --progress none
    cairn_is 0 ls "${store[@]}" -o name; equal "$(tr '\n' ' ' <out)" 'v-2 v-1 '
    equal "$(events_of v-1 | tr '\n' ' ')" 'RunQueued RunStarted StepStarted StepCompleted StepStarted StepCompleted RunCompleted '
    cairn_is 0 get v-1 "${store[@]}" -o json; equal "$(jq -r .status out)" COMPLETED
    cairn_is 0 logs v-1/b "${store[@]}"; has out there
    cairn_is 0 why v-1 "${store[@]}"
    cairn_is 0 log replay v-1 "${store[@]}"
    cairn_is 0 store stat "${store[@]}" -o json; equal "$(jq -r .events out)" 14
    cairn_is 0 log export v-1 "${store[@]}" --out v.cairn; cairn_is 0 log verify v.cairn
    echo '{"planId":"g","planVersion":"1","steps":[{"stepId":"g","kind":"approval"}]}' >g.json
    cairn_is 13 run g.json "${store[@]}" --run-id g-1 --exit-on-wait
    cairn_is 0 approve g-1 "${store[@]}"
    cairn_is 0 rerun v-1 "${store[@]}" --progress none
    cairn_is 0 store gc --keep 0s --yes "${store[@]}"; cairn_is 0 ls "${store[@]}" -o name; empty out
    intact
    equal "$(pg_sql "select count(*) from cairn.tombstones")" 4
    cairn_is 0 doctor "${store[@]}"
    cairn_is 0 store migrate --check "${store[@]}"; has err 'format 4, up to date'
    pg_sql 'alter table cairn.workflow_events disable trigger workflow_events_no_update'
    cairn_is 1 doctor "${store[@]}"; has err 'triggers of workflow_events are disabled'
}
test_postgres_a_killed_run_goes_on() {
    postgres_up
    held_plan b
    "$CAIRN" run slow.json "${store[@]}" --run-id k-1 --progress none >/dev/null 2>run.err </dev/null & pid=$!
    wait_for step_is k-1 b RUNNING
    kill -9 $pid; wait $pid 2>/dev/null
    cairn_is 0 get k-1 "${store[@]}"; has out 'nobody'
    cairn_is 0 recover "${store[@]}"; has err '1 completed'
    equal "$(times_ran a) $(times_ran b) $(times_ran c)" '1 2 1' 'times run'
    intact
}
test_postgres_an_orphan_is_found_through_another_spelling_of_the_url() {
    postgres_up
    echo '{"planId":"l","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":"echo x >> '"$PWD"'/tries; [ $(wc -l < '"$PWD"'/tries) -ge 2 ] && exit 0; (setsid sleep 40 & echo $! > '"$PWD"'/stray); sleep 40"}}]}' >stray.json
    "$CAIRN" run stray.json "${store[@]}" --run-id l-1 --progress none >/dev/null 2>run.err </dev/null & local pid=$!
    wait_for test -s stray
    kill -9 $pid; wait $pid 2>/dev/null
    alive() { [ -d "/proc/$1" ] && ! grep -q ') Z ' "/proc/$1/stat" 2>/dev/null; }
    alive "$(cat stray)" || fail 'nothing was left behind'
    cairn_is 0 recover --store "postgresql://app@/postgres?host=$pg_dir" --progress none
    ! alive "$(cat stray)" || fail 'what the first attempt left runs beside the second'
    equal "$(wc -l <tries)" 2
}
test_postgres_a_server_that_dies_under_a_run_loses_nothing() {
    postgres_up
    held_plan a
    "$CAIRN" run slow.json "${store[@]}" --run-id k-1 --progress none >/dev/null 2>run.err </dev/null & pid=$!
    wait_for step_is k-1 a RUNNING
    kill -QUIT "$pg_pid"; wait "$pg_pid" 2>/dev/null # as after a crash: recovery from the log at the next start
    postgres_run
    touch go
    local rc=0; wait $pid || rc=$?; [ $rc = 0 ] || fail "the run ended with $rc: $(tail -n 2 run.err)"
    status_is k-1 COMPLETED || fail "it did not end well"
    equal "$(times_ran a) $(times_ran b) $(times_ran c)" '1 1 1' 'times run'
    intact
}
test_postgres_copies_both_ways_are_the_same_bytes() {
    postgres_up; plan
    for i in 1 2 3; do cairn_is 0 run v.json --store "sqlite:$PWD/a.db" --run-id "v-$i" --progress none; done
    cairn_is 0 store copy "sqlite:$PWD/a.db" "$pg"
    cairn_is 0 store copy "$pg" "sqlite:$PWD/b.db"
    cairn_is 0 store copy "$pg" "files:$PWD/f"
    for i in 1 2 3; do
        "$CAIRN" events "v-$i" --store "sqlite:$PWD/a.db" -o jsonl >a
        for url in "$pg" "sqlite:$PWD/b.db" "files:$PWD/f"; do
            "$CAIRN" events "v-$i" --store "$url" -o jsonl >b; cmp a b || fail "v-$i is not the same in $url"
        done
    done
    intact
    cairn_is 0 run v.json "${store[@]}" --run-id more --progress none
    cairn_is 0 store copy "$pg" "sqlite:$PWD/b.db"
    cairn_is 0 log verify --all --store "sqlite:$PWD/b.db"
    cairn_is 0 store backup "files:$PWD/backup" "${store[@]}"
    cairn_is 0 store restore "files:$PWD/backup" --store "$pg&schema=again"
    cairn_is 0 ls --store "$pg&schema=again" -o name; equal "$(wc -l <out)" 4
}
test_postgres_serve() {
    postgres_up
    service_store=$pg serve
    ask POST /v1/runs "{\"runId\":\"s-1\",\"document\":$(plan_text p '{"stepId":"a","kind":"shell","with":{"command":"echo hi"}}')}"
    case $status in 20?) ;; *) fail "start: $status $(cat body)" ;; esac
    done_there() { ask GET /v1/runs/s-1; [ "$(jq -r .status body)" = COMPLETED ]; }
    wait_for done_there
    ask GET '/v1/runs/s-1/events'; answers 200
    kill -TERM "$server"; wait "$server" || fail "the server ended with $?: $(tail -n 3 serve.err)"
    intact
}
test_postgres_what_is_wrong_is_explained() {
    postgres_up
    cairn_is 7 ls --store "postgres:///postgres?host=/nowhere"; has err pg_isready
    cairn_is 7 ls --store "postgres:///nosuch?host=$pg_dir&user=app"; has err createdb
    cairn_is 5 ls --store "$pg&schema=none"; has err 'there is no store'
    cairn_is 1 doctor --store "postgres:///postgres?host=/nowhere"; has err pg_isready
    pg_sql "create role poor login" >/dev/null; plan
    cairn_is 4 run v.json --store "postgres:///postgres?host=$pg_dir&user=poor"; has err 'GRANT CREATE'
    cairn_is 4 ls --store "postgres://nobody:secret@/postgres?host=$pg_dir"; hasnt err secret

    pg_sql "alter system set fsync=off" >/dev/null; pg_sql "select pg_reload_conf()" >/dev/null
    fsync_is() { [ "$(pg_sql 'show fsync')" = "$1" ]; }
    wait_for fsync_is off
    cairn_is 1 doctor "${store[@]}"; has err 'fsync=off'
    pg_sql "alter system reset fsync" >/dev/null; pg_sql "select pg_reload_conf()" >/dev/null
}
run_tests "$@"
