#!/usr/bin/env bash
# Limits of queues and tenants where several engines share one Postgres: they hold for all of them together (ADR 0024).
. "$(dirname "$0")/postgres_lib.sh"

knows() { [ "$(asks "$1" GET "/v1/queues/$2" | jq -r .maxRunning)" = "$3" ]; }
queue() { # NAME BODY, and both know it
    asks one PUT "/v1/queues/$1" "$2" | jq -e .name >/dev/null || fail "queue $1"
    wait_for knows two "$1" "$(jq .maxRunning <<<"$2")"
}
# A run whose step tells when it begins and when it ends: begin ENGINE RUN QUEUE; status and body are in RUN.code and RUN.said.
effect_plan() { jq -n --arg e "$PWD/effects" --arg wait "$1" '{planId: "p", planVersion: "1", steps: [{stepId: "a", kind: "shell",
    with: {command: "echo + $CAIRN_RUN_ID >>\($e); \($wait); echo - $CAIRN_RUN_ID >>\($e)"}}]}'; }
begin() {
    jq -n --arg r "$2" --arg q "$3" --rawfile d "${4:-p.json}" '{runId: $r, queue: $q, document: $d}' |
        curl -s -o "$2.said" -D "$2.head" -w '%{http_code}' -H "Authorization: Bearer $(cat files.token)" -H 'Content-Type: application/json' --data-binary @- "$(cat "$1/url")/v1/runs" >"$2.code"
}
# The most runs with a name that begins so that had begun and not ended at one moment: by the log, in commit order, and by what the steps say.
most_in_log() { pg_sql "select max(s) from (select sum(case event_type when 'RunStarted' then 1 else -1 end) over (order by position) s
    from cairn.workflow_events where event_type in ('RunStarted','RunCompleted') and run_id like '$1-%') t"; }
most_in_effects() { grep -E "^[+-] $1-" effects | awk '$1 == "+" {n++} $1 == "-" {n--} n > m {m = n} END {print m}'; }
completed() { [ "$(pg_sql "select count(*) from cairn.workflow_events where event_type='RunCompleted' and run_id like '$1-%'")" = "$2" ]; }
two_engines() {
    postgres_up; mkdir -p files; : >effects; chmod 666 effects
    engine one "$CAIRN"; engine two "$CAIRN"
    wait_for test -s files.token
    effect_plan 'sleep 0.03' >p.json
    has_shards() { begin "$1" "warm-$1" default && [ "$(cat "warm-$1.code")" = 202 ]; }
    wait_for has_shards one; wait_for has_shards two
}

test_limits_hold_over_all_engines_and_nobody_starves_ES_3a_ES_3b_ES_3c() {
    two_engines
    queue q1 '{"policy":"QUEUE","maxRunning":1}'
    queue q3 '{"policy":"QUEUE","maxRunning":3}'
    effect_plan "while [ ! -e $PWD/all ]; do sleep 0.02; done" >first.json
    effect_plan "while [ ! -e $PWD/all ]; do sleep 0.02; done; sleep 0.2" >long.json
    begin two q1-00-two q1 first.json
    for i in $(seq 10 15); do begin one "q1-$i-one" q1; begin two "q1-$i-two" q1; begin two "q3-$i-two" q3 long.json; begin one "q3-$i-one" q3 long.json; done
    hasnt q1-14-one.said '"code"'
    # What is asked at either is said of both, when they have told each other.
    says() { [ "$(asks "$1" GET "/v1/queues/$2" | jq -c '[.running, .queued]')" = "$3" ]; }
    for at in one two; do wait_for says $at q1 '[1,12]'; wait_for says $at q3 '[3,9]'; done
    touch all
    wait_for completed q1 13; wait_for completed q3 12
    equal "$(most_in_log q1)" 1 'at once, by the log'; equal "$(most_in_effects q1)" 1 'at once, by effects'
    equal "$(most_in_log q3)" 3 'at once, by the log'; [ "$(most_in_effects q3)" -le 3 ] || fail "$(most_in_effects q3) of q3 at once, by effects"
    # Oldest first, wherever it waits: among the first half of those that began are some of both.
    for name in one two; do
        [ "$(grep '^+ q1-' effects | head -n 6 | grep -c -- "-$name")" -ge 1 ] || fail "those of $name starve: $(grep '^+ q1-' effects | tr '\n' ' ')"
    done
    equal "$(sort effects | uniq -d)" '' 'effects that are there twice'

    # REJECT: as many as may be are let in, and the answer is right at once when one has ended elsewhere.
    queue r2 '{"policy":"REJECT","maxRunning":2}'
    effect_plan "while [ ! -e $PWD/go ]; do sleep 0.02; done" >held.json
    local begun=()
    for i in 1 2 3 4; do for at in one two; do begin $at "r2-$i-$at" r2 held.json & begun+=($!); done; done
    wait "${begun[@]}"
    equal "$(cat r2-*.code | grep -o 202 | wc -l)" 2 'let in'
    equal "$(cat r2-*.code | grep -o 429 | wc -l)" 6 refused
    has "$(grep -l OVERLOADED r2-*.said | head -n 1)" '"retryAfterMs":1000'
    touch go
    for run in $(grep -l 202 r2-*.code); do wait_for is_at one "${run%.code}" COMPLETED; done
    begin two r2-again r2; equal "$(cat r2-again.code)" 202 'right after an end elsewhere'
    wait_for completed r2 3
    # A limit of the tenant counts the same way; and the rate is divided among the engines.
    asks one PUT /v1/limits '{"runsInFlight":2}' >/dev/null
    tenant_limit() { [ "$(asks two GET /v1/limits | jq .runsInFlight)" = 2 ]; }
    wait_for tenant_limit
    for i in 1 2 3; do begin one "t-$i-one" default; begin two "t-$i-two" default; done
    wait_for completed t 6
    [ "$(most_in_log t)" -le 2 ] || fail "$(most_in_log t) runs of the tenant at once"
    # What is removed at one is removed at the other.
    asks one DELETE /v1/queues/r2 >/dev/null
    removed() { [ "$(asks two GET /v1/queues/r2 | jq -r .code)" = QUEUE_NOT_FOUND ]; }
    wait_for removed
    nothing_held() { [ "$(pg_sql "select count(*) from cairn.notes where space='slot'")" = 0 ]; }
    wait_for nothing_held
    for name in one two; do kill -TERM "$(cat $name/pid)"; wait "$(cat $name/pid)" || fail "engine $name ended with $?: $(tail -n 3 $name/serve.err)"; done
    cairn_is 0 log verify --all "${store[@]}"
}

test_limits_of_a_killed_engine_are_free_when_its_runs_have_ended_elsewhere_ES_3h_I28() {
    two_engines
    queue q2 '{"policy":"QUEUE","maxRunning":2}'
    effect_plan "while [ ! -e $PWD/go ]; do sleep 0.02; done" >held.json
    begin one q2-held-1 q2 held.json; begin one q2-held-2 q2 held.json
    wait_for is_at two q2-held-2 RUNNING
    for i in 1 2 3; do begin one "q2-$i-one" q2; begin two "q2-$i-two" q2; done
    equal "$(cat q2-?-*.said | jq -r .status | sort -u)" PENDING 'those that wait'
    kill -9 "$(cat one/pid)"; wait "$(cat one/pid)" 2>/dev/null
    # Its runs go on at the other, with what they held: nobody goes beside them.
    taken_over() { [ "$(pg_sql "select count(*) from cairn.workflow_events where event_type='StepRedispatched' and run_id like 'q2-held-%'")" = 2 ]; }
    wait_for taken_over
    for i in 1 2 3; do begin two "free-$i" default; wait_for completed free "$i"; done # the other has looked at its queues since
    equal "$(most_in_log q2)" 2 'at once'; equal "$(grep -c '^+ q2-[0-9]' effects)" 0 'of those that wait have begun'
    touch go
    wait_for completed q2 8
    equal "$(most_in_log q2)" 2 'at once'
    nothing_held() { [ "$(pg_sql "select count(*) from cairn.notes where space='slot'")" = 0 ]; }
    wait_for nothing_held
    kill -TERM "$(cat two/pid)"; wait "$(cat two/pid)"
}
run_tests "$@"
