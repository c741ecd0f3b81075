# Several hosts over one Postgres, whose runs are workflows of one Temporal server: make live-temporal.
. "$(dirname "$0")/../e2e/postgres_lib.sh"
. "$(dirname "$0")/../e2e/temporal_lib.sh"

host_at() { engine "$1" "$CAIRN" --temporal "$temporal" --drain 0; } # settings: "$settings"
hosts() { # two of them; each has its half of the shards
    postgres_up
    temporal_server
    mkdir -p files
    host_at one
    host_at two
    wait_for test -s files.token
    wait_for shared_out
}
shared_out() { # each of the two has its half
    [ "$(pg_sql 'select count(*) from cairn.shards s join cairn.engines e on e.engine_no = s.owner where e.lease_until > clock_timestamp() group by owner' | sort | tr '\n' ' ')" = '32 32 ' ]
}
plan_of() { # NAME COUNT COMMAND
    jq -n --arg id "$1" --argjson n "$2" --arg c "$3" '{planId: $id, planVersion: "1", schemaVersion: "v1.2",
        steps: [range($n) | {stepId: "s\(.)", kind: "shell", dependsOn: (if . > 0 then ["s\(. - 1)"] else [] end), with: {command: $c}}]}' >"$1.json"
}
of_store() { "$CAIRN" "$1" "$2" --store "$pg&files=$PWD/files" "${@:3}"; }
whole() { "$CAIRN" log verify --all --store "$pg&files=$PWD/files" >verify.out 2>&1 || fail "log verify: $(tail -n 3 verify.out)"; }
completed_once() { # RUN STEPS
    equal "$(of_store events "$1" -o jsonl | jq -r 'select(.eventType=="StepCompleted").stepId' | sort | uniq -c | awk '$1 == 1' | wc -l)" "$2" "steps of $1 that completed once"
}

test_L12_hosts_share_the_runs_and_one_that_is_killed_is_replaced_by_the_others() {
    hosts
    temporal_worker w1
    plan_of shared 6 "echo \$CAIRN_RUN_ID \$CAIRN_STEP_ID \$CAIRN_ENGINE_ATTEMPT >>$PWD/ran; sleep 0.1; echo ok"
    for i in 1 2 3 4 5 6; do start_at one "a$i" shared.json; start_at two "b$i" shared.json; done
    queues=$(tctl workflow list -o json | jq -r '.[].taskQueue' | sort -u)
    grep -q '^cairn\.runs\.[0-9]' <<<"$queues" || fail "queues: $queues"
    wait_for test -s ran
    kill -9 "$(cat one/pid)"
    for run in a1 a2 a3 a4 a5 a6 b1 b2 b3 b4 b5 b6; do wait_for is_at two "$run" COMPLETED; done
    for run in a1 a6 b1 b6; do wait_for workflow_is "$run" COMPLETED; done
    kill -TERM "$(cat two/pid)"; wait "$(cat two/pid)"
    whole
    for run in a1 a2 a3 a4 a5 a6 b1 b2 b3 b4 b5 b6; do completed_once "$run" 6; done
    equal "$(sort ran | uniq -d)" '' 'attempts that ran twice'
}

test_L12_a_shard_moves_while_an_attempt_runs_and_the_next_host_claims_it() {
    postgres_up
    temporal_server
    mkdir -p files
    host_at one
    wait_for test -s files.token
    temporal_worker w1
    plan_of moves 2 "echo \$CAIRN_RUN_ID \$CAIRN_STEP_ID \$CAIRN_ENGINE_ATTEMPT >>$PWD/ran; until [ -e $PWD/go ]; do sleep 0.05; done; echo ok"
    for i in $(seq 8); do start_at one "m$i" moves.json; done
    slots=8 temporal_worker w2
    wait_for eval '[ "$(wc -l <ran)" = 8 ]'
    host_at two # takes half of the shards, with what runs of them
    wait_for shared_out
    touch go
    for i in $(seq 8); do wait_for is_at two "m$i" COMPLETED; done
    for i in $(seq 8); do wait_for workflow_is "m$i" COMPLETED; done
    for name in one two; do kill -TERM "$(cat $name/pid)"; wait "$(cat $name/pid)"; done
    whole
    for i in $(seq 8); do completed_once "m$i" 2; done
    equal "$(sort ran | uniq -d)" '' 'attempts that ran twice'
    equal "$(grep -cv ' 1$' ran)" 0 'attempts that were lost'
}
run_tests "$@"
