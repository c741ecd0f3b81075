#!/usr/bin/env bash
# Limits of steps: so many attempts of a name work at once, so many begin in a time, over runs, engines and crashes (ADR 0052).
. "$(dirname "$0")/postgres_lib.sh"
. "$(dirname "$0")/serve_lib.sh"

# A step that tells when it begins and when it ends, in the file effects.
work() { echo "echo + $1 >>$PWD/effects; ${2:-sleep 0.05}; echo - $1 >>$PWD/effects"; }
most_at_once() { awk '$1 == "+" {n++} $1 == "-" {n--} n > m {m = n} END {print m + 0}' effects; }
began() { grep -c '^+' effects; }
until_file() { echo "until [ -e $PWD/$1 ]; do sleep 0.02; done"; }
# NAME LIMITS STEP=COMMAND...: a plan whose steps are under the limit `pay`.
limited() {
    local name=$1 limits=$2 steps=() step
    shift 2
    for step in "$@"; do
        steps+=("$(jq -nc --arg id "${step%%=*}" --arg c "${step#*=}" '{stepId: $id, kind: "shell", dependsOn: [], limit: "pay", with: {command: $c}}')")
    done
    jq -n --arg n "$name" --argjson l "$limits" --argjson steps "[$(IFS=,; echo "${steps[*]}")]" \
        '{planId: $n, planVersion: "1", schemaVersion: "v1.2", limits: {pay: $l}, steps: $steps}'
}
begin() { ask POST /v1/runs "$(limited p "$2" "${@:3}" | jq --arg r "$1" '{runId: $r, document: .}')" && answers 202; }
status_of() { ask GET "/v1/runs/$1/status" && [ "$(jq -r .status body)" = "$2" ]; }
why_of() { ask GET "/v1/runs/$1/steps/$2/why" && [ "$(jq -r "$3" body)" = "$4" ]; }
notes() { sqlite3 "${1:-store.db}" "select key from notes where space = 'permit' and key glob '*|p[0-9]*'" 2>/dev/null || python3 -c 'import sqlite3, sys
for row in sqlite3.connect(sys.argv[1]).execute("select key from notes where space = '"'permit'"' and key glob '"'*|p[0-9]*'"'"): print(row[0])' "${1:-store.db}"; }

test_no_more_attempts_work_at_once_than_a_limit_says_in_every_dialect() {
    for n in 1 2 3 4 5 6; do printf '  - {id: s%s, limit: pay, bash: "%s"}\n' $n "$(work s$n)"; done >nodes
    { printf 'name: n\nlimits: {pay: {concurrency: 2}}\nnodes:\n'; cat nodes; } >n.yaml
    limited p '{"concurrency": 2}' a="$(work a)" b="$(work b)" c="$(work c)" d="$(work d)" e="$(work e)" >p.json
    cat >b.yaml <<YAML
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: b}
limits: {pay: {concurrency: 2}}
workflow:
  - step: start
    loop: {in: [1, 2, 3, 4, 5, 6], iterator: i, spec: {mode: parallel, max_in_flight: 6}}
    tool: {kind: shell, command: "$(work 'each')", spec: {policy: {limit: pay}}}
YAML
    for file in n.yaml p.json b.yaml; do
        : >effects
        cairn_is 0 validate --strict "$file"
        cairn_is 0 run "$file" --store "sqlite:$PWD/store.db"
        [ "$(began)" -ge 5 ] || fail "$file: only $(began) began"
        equal "$(most_at_once)" 2 "$file: at once"
        equal "$(notes)" '' "$file: places that nobody gave back"
    done
}

test_a_limit_that_cannot_be_meant_is_refused_with_its_place() {
    printf 'name: n\nlimits: {pay: {concurrency: 2}}\nnodes:\n  - {id: a, bash: "true", limit: pya}\n' >a.yaml
    cairn_is 3 validate a.yaml; has err 'a.yaml:4:34: error[E0230] the document has no limit "pya"' && has err 'did you mean "pay"?'
    printf 'name: n\nlimits: {pay: {concurrency: -2}}\nnodes:\n  - {id: a, bash: "true"}\n' >b.yaml
    cairn_is 3 validate b.yaml && has err 'b.yaml:2:29: error[E0229] limit "pay": concurrency: must be a whole number from 0 to 1000'
    printf 'name: n\nlimits: {pay: {rate: 10/fortnight}}\nnodes:\n  - {id: a, bash: "true"}\n' >c.yaml
    cairn_is 3 validate c.yaml && has err 'must be so many in a time, as 10/s, 600/m or 5/30s'
    printf 'name: n\nlimits: {pay: {}}\nnodes:\n  - {id: a, wait: 1s, limit: pay}\n' >d.yaml
    cairn_is 3 validate d.yaml && has err '"limit" is not supported on this kind of step'
    printf 'name: n\nlimits: {pay: 5}\nnodes:\n  - {id: a, bash: "true"}\n' >e.yaml
    cairn_is 3 validate e.yaml && has err 'E0205'
    for code in E0229 E0230; do cairn_is 0 help $code; done
}

test_a_step_that_waits_is_queued_and_why_names_key_holders_and_position() {
    unconfined; serve
    export CAIRN_TOKEN=$token
    begin r1 '{"concurrency": 1}' first="$(until_file go)"
    wait_for why_of r1 first .state running
    begin r2 '{"concurrency": 1}' second="$(until_file go)"
    begin r3 '{"concurrency": 1}' third=true
    wait_for why_of r3 third '[.state, .reason] | join(" ")' 'queued LIMIT_FULL'
    has body 'it waits for limit pay as number 2; its 1 place (concurrency) is taken, held by r1/first'
    why_of r2 second .place.position 1 || fail "$(cat body)"
    cairn_is 0 why r2/second --server "$url"; has out 'limit pay as number 1'
    cairn_is 0 ps --server "$url"; has out 'queued second'
    cairn_is 0 get r2 --server "$url"; has out 'for limit pay'
    cairn_is 0 limit ls --server "$url" -o json; equal "$(jq -c '.[] | [.name, .inUse, .waiting]' out)" '["pay",1,2]'
    cairn_is 0 limit get pay --server "$url"; has out '"runId":"r1","since":'
    # The number goes down when one before it is cancelled, and nothing of that one begins.
    cairn_is 0 cancel r2 --server "$url"
    wait_for status_of r2 CANCELLED
    wait_for why_of r3 third .place.position 1
    touch go
    wait_for status_of r1 COMPLETED; wait_for status_of r3 COMPLETED
    ask GET /v1/runs/r2/events; hasnt body 'StepCompleted'
    equal "$(notes)" '' 'places that nobody gave back'
}

test_a_rate_holds_steps_back_and_what_the_service_says_stands_above_the_document() {
    unconfined; serve
    export CAIRN_TOKEN=$token
    begin r1 '{"rate": "2/h"}' a=true b=true c=true
    wait_for why_of r1 c '[.state, .reason] | join(" ")' 'queued LIMIT_RATE'
    has body 'its rate (2/h) is used up until'
    equal "$(notes)" '' 'a rate alone takes no place'
    cairn_is 0 limit set pay --set rate=none --set concurrency=1 --server "$url"
    wait_for status_of r1 COMPLETED
    : >effects
    begin r2 '{"concurrency": 0}' a="$(work a)" b="$(work b)" c="$(work c)" d="$(work d)"
    wait_for status_of r2 COMPLETED
    equal "$(most_at_once)" 1 'at once, with the word of the service'
    cairn_is 0 limit rm pay --server "$url"; cairn_is 5 limit get pay --server "$url"; has err 'there is no limit pay'
    cairn_is 5 limit rm pay --server "$url"
    ask PUT /v1/step-limits/pay '{"rate":"10/fortnight"}' && answers 400 && has body 'as 10/s'
    ask PUT /v1/step-limits/pay '{}' && answers 400
    ask PUT '/v1/step-limits/a%7Cb' '{"concurrency":1}' && answers 400
    # A limit that a document leaves to the service holds nobody back until it says something.
    ask PUT /v1/step-limits/pay '{"concurrency":0,"rate":"1/h"}' && answers 200
    begin r3 '{}' a=true b=true
    wait_for why_of r3 b .reason LIMIT_RATE
    ask PUT /v1/step-limits/pay '{"concurrency":0,"rate":"4/h"}' && answers 200
    wait_for status_of r3 COMPLETED
}

test_a_killed_engine_leaves_no_place_behind_and_takes_its_own_up_again() {
    limited p '{"concurrency": 1}' a="echo x >>$PWD/a; [ \$(wc -l <$PWD/a) -ge 2 ] || $(until_file never)" b="echo x >>$PWD/b" >p.json
    "$CAIRN" run p.json --run-id r1 --store "sqlite:$PWD/store.db" >run.out 2>run.err &
    local pid=$!
    wait_for test -s a
    kill -9 $pid; wait $pid 2>/dev/null
    [ -n "$(notes)" ] || fail 'the place is not in the store'
    cairn_is 0 recover r1 --store "sqlite:$PWD/store.db"
    equal "$(cat a b | wc -l)" 3 'a twice, b once'
    equal "$(notes)" '' 'places that nobody gave back'
    # One whose run has gone meanwhile is found by those who wait for it.
    rm -f a; "$CAIRN" run p.json --run-id r2 --store "sqlite:$PWD/store.db" >run.out 2>run.err &
    pid=$!
    wait_for test -s a
    kill -9 $pid; wait $pid 2>/dev/null
    [ -n "$(notes)" ] || fail 'the place is not in the store'
    cairn_is 0 cancel r2 --store "sqlite:$PWD/store.db"
    touch never; rm -f a
    cairn_is 0 run p.json --run-id r3 --store "sqlite:$PWD/store.db"
    equal "$(notes)" '' 'places that nobody gave back'
}

test_engines_that_share_a_store_share_the_limit_also_when_one_of_them_dies() {
    postgres_up; mkdir -p files; : >effects; chmod 666 effects # steps of a service are another user's
    engine one "$CAIRN"; engine two "$CAIRN"
    wait_for test -s files.token
    limited p '{"concurrency": 2}' a="$(work '$CAIRN_RUN_ID-a')" b="$(work '$CAIRN_RUN_ID-b')" c="$(work '$CAIRN_RUN_ID-c')" >p.json
    start_at one one-1 p.json; start_at two two-1 p.json
    for i in 2 3 4; do start_at one one-$i p.json; start_at two two-$i p.json; done
    for i in 1 2 3 4; do wait_for is_at one one-$i COMPLETED; wait_for is_at two two-$i COMPLETED; done
    equal "$(began)" 24; equal "$(most_at_once)" 2 'at once, of both engines'
    places() { pg_sql "select count(*) from cairn.notes where space = 'permit' and key like '%|p%'"; }
    equal "$(places)" 0 'places that nobody gave back'
    # Of a rate, too: two of both in an hour, and the others wait wherever they are.
    limited r '{"rate": "2/h"}' a="$(work '$CAIRN_RUN_ID-a' :)" | sed 's/"pay"/"rated"/g' >r.json
    : >effects
    for i in 1 2; do start_at one rate-one-$i r.json; start_at two rate-two-$i r.json; done
    waiting() { [ "$(for at in one two; do asks $at GET /v1/step-limits/rated; done | jq -s 'map(.waiting // 0) | add')" = 2 ]; }
    wait_for waiting
    equal "$(began)" 2 'began in the hour'
    # The engine that has the only place dies: the run that it had gets it again, at the other one, and then those behind it.
    limited d '{"concurrency": 1}' a="echo x >>$PWD/held; [ \$(wc -l <$PWD/held) -ge 2 ] || $(until_file never)" >d.json
    limited e '{"concurrency": 1}' a=true >e.json
    sed -i 's/"pay"/"dear"/g' d.json e.json
    start_at one dear-one d.json; wait_for test -s held
    start_at two dear-two e.json
    blocked() { [ "$(asks two GET /v1/runs/dear-two/steps/a/why | jq -r '[.state, .reason] | join(" ")')" = 'queued LIMIT_FULL' ]; }
    wait_for blocked
    asks two GET /v1/runs/dear-two/steps/a/why >why; has why 'held by dear-one/a'
    kill -9 "$(cat one/pid)"
    wait_for is_at two dear-one COMPLETED; wait_for is_at two dear-two COMPLETED
    none_left() { [ "$(places)" = 0 ]; }
    wait_for none_left
}

run_tests "$@"
