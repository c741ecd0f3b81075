# What waits for a place says so: for a slot, for a worker, in a queue; with its number, who holds the places, and from when the work counts.
. "$(dirname "$0")/serve_lib.sh"

shell() { jq -nc --arg id "$1" --arg c "$2" '{stepId: $id, kind: "shell", with: {command: $c}}'; }
until_file() { shell "$1" "until [ -e $PWD/$2 ]; do sleep 0.02; done"; }
start() { ask POST /v1/runs "{\"document\":$(plan_text p "$2"),\"runId\":\"$1\"${3:+,$3}}" && answers 202; }
place() { ask GET "/v1/runs/$1/places" && [ "$(jq -r "$2" body)" = "$3" ]; }
why() { "$CAIRN" why "$@" --server "$url" >why.out 2>why.err; }
ended() { ask GET "/v1/runs/$1/status" && [ "$(jq -r .status body)" = "$2" ]; }
here() { export CAIRN_TOKEN=$token; }

test_a_step_without_a_slot_is_queued_and_names_who_has_it() {
    serve --concurrency 1
    here
    start r1 "$(until_file first go1)"
    wait_for place r1 '.attempts[0].state' EXECUTING
    start r2 "$(until_file second go2)"
    wait_for place r2 '.attempts[0] | [.state, .position, .slots] | join(" ")' 'QUEUED 1 1'
    equal "$(jq -c '.attempts[0].holders | map([.runId, .stepId])' body)" '[["r1","first"]]'
    ask GET /v1/runs/r2/steps/second/why && equal "$(jq -r '[.state, .reason] | join(" ")' body)" 'queued NO_SLOT'
    has body 'it waits for a slot as number 1; the 1 (--concurrency) is taken, held by r1/first'
    ask GET /v1/runs/r2/why && equal "$(jq -r .reason body)" STEPS_QUEUED
    ask GET /v1/runs/r2 && equal "$(jq -r '.steps[0].place.state' body)" QUEUED
    ! grep -qi '^etag' head || fail 'an answer that changes without an event has an ETag'
    why r2/second && has why.out 'held by r1/first' && has why.out 'queued'
    "$CAIRN" get r2 --server "$url" >get.out && has get.out 'queued   second'
    "$CAIRN" ps --server "$url" >ps.out && has ps.out 'queued second'
    # Beside the store, too, while the service drives it.
    unset CAIRN_TOKEN
    "$CAIRN" why r2/second --store "sqlite:$PWD/store.db" >why.out && has why.out 'held by r1/first'
    touch go1
    wait_for ended r1 COMPLETED
    wait_for place r2 '.attempts[0].state' EXECUTING
    touch go2
    wait_for ended r2 COMPLETED
}

test_durations_count_from_the_start_of_the_work() {
    serve --concurrency 1
    here
    start r1 "$(until_file first go)"
    wait_for place r1 '.attempts[0].state' EXECUTING
    start r2 "$(shell second true)"
    wait_for place r2 '.attempts[0] | .state == "QUEUED" and (.since[:19] + "Z" | fromdate) < now - 2.1' true
    touch go
    wait_for ended r2 COMPLETED
    ask GET /v1/runs/r2
    took=$(jq '.steps[0].durationMs' body)
    [ "$took" -lt 1000 ] || fail "the wait for a slot counts as work: $took ms"
    equal "$(jq '.steps[0].attempts[0].durationMs' body)" "$took" 'of the attempt'
    ask GET /v1/runs/r2/steps/second/why && equal "$(jq '.attempts[0].durationMs' body)" "$took" 'why'
    "$CAIRN" trace r2 --server "$url" >trace.json
    span=$(jq '[.. | .spans? // empty | .[]] | map(select(.name == "second"))[0]
        | ((.endTimeUnixNano | tonumber) - (.startTimeUnixNano | tonumber)) / 1000000 | round' trace.json)
    equal "$span" "$took" 'of the span'
    waited=$(jq -r '[.. | .spans? // empty | .[]] | map(select(.name == "second"))[0].attributes[] | select(.key == "cairn.step.queued_ms").value.intValue' trace.json)
    [ "$waited" -ge 1000 ] || fail "the span says that it waited $waited ms"
}

test_a_pool_without_workers_is_named_and_so_are_busy_ones() {
    serve --route '*=gpu' --drain 0
    here
    start r1 "$(until_file a go)"
    wait_for place r1 '.attempts[0] | [.state, .pool, .workers] | join(" ")' 'QUEUED gpu 0'
    ask GET /v1/runs/r1/steps/a/why && equal "$(jq -r '[.state, .reason] | join(" ")' body)" 'queued NO_WORKER'
    has body 'it waits for a worker of pool gpu as number 1; no worker serves this pool'
    ask POST /v1/tokens '{"name":"w","roles":["Worker"],"pool":"gpu"}'
    worker_token=$(jq -r .token body)
    CAIRN_TOKEN=$worker_token "$CAIRN" worker --server "$url" --pool gpu --name w1 --concurrency 1 >w1.out 2>w1.err &
    wait_for place r1 '.attempts[0] | [.state, .worker] | join(" ")' 'EXECUTING w1'
    start r2 "$(until_file b go)"
    wait_for place r2 '.attempts[0] | [.state, .workers, .slots] | join(" ")' 'QUEUED 1 1'
    ask GET /v1/runs/r2/steps/b/why && equal "$(jq -r .reason body)" WORKERS_BUSY
    has body 'held by r1/a'
    touch go
    wait_for ended r2 COMPLETED
}

test_a_run_in_a_queue_knows_its_number_and_what_it_waits_for() {
    serve --max-runs 5
    here
    ask PUT /v1/queues/pay '{"maxRunning":1}' && answers 200
    start r1 "$(until_file a go)" '"queue":"pay"'
    start r2 "$(shell a true)" '"queue":"pay"'
    start r3 "$(shell a true)" '"queue":"pay"'
    place r3 '.queue | [.name, .position, .waiting, .limitedBy, .limit] | join(" ")' 'pay 2 2 QUEUE 1' || fail "$(cat body)"
    why r3 && has why.out 'waits in queue pay as number 2 of 2; its 1 place (maxRunning) is taken, held by r1'
    ask GET /v1/runs/r3/steps/a/why && has body 'which waits in queue pay as number 2 of 2'
    ask POST /v1/queues/pay/pause && answers 200
    why r3 && has why.out 'the queue is paused'
    ask POST /v1/queues/pay/resume && answers 200
    ask PUT /v1/queues/pay '{"maxRunning":5}' && answers 200
    wait_for ended r3 COMPLETED
    ask PUT /v1/limits '{"runsInFlight":1}' && answers 200
    start r4 "$(shell a true)"
    why r4 && has why.out 'that the tenant may have in flight (runsInFlight)'
    touch go
    wait_for ended r4 COMPLETED
}

test_holders_of_other_tenants_have_no_names_and_operators_see_the_wait() {
    serve --concurrency 1
    start r1 "$(until_file first go)"
    wait_for place r1 '.attempts[0].state' EXECUTING
    start r2 "$(shell second true)"
    wait_for place r2 '.attempts[0].state' QUEUED
    first=$token
    ask POST /v1/tokens '{"name":"op","roles":["Operator"]}' && token=$(jq -r .token body)
    here
    why r2/second || fail "$(cat why.err)"
    has why.out 'number 1 for a slot' && has why.out 'held by r1/first'
    token=$first
    ask POST /v1/tokens '{"name":"other","roles":["Engineer"],"tenantId":"other"}'
    if [ "$status" = 201 ]; then
        token=$(jq -r .token body)
        start r3 "$(shell third true)"
        wait_for place r3 '.attempts[0].state' QUEUED
        equal "$(jq -c '.attempts[0] | [.holders, .others]' body)" '[null,1]' 'what another tenant sees'
    fi
    touch go
    token=$first
    wait_for ended r2 COMPLETED
}

run_tests "$@"
