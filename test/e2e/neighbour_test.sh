#!/usr/bin/env bash
# What one tenant can take away from others: time of the threads that serve all, memory, room. Tried with bad intentions and with the
# settings that ship. Each case is an attack that has worked.
. "$(dirname "$0")/serve_lib.sh"
unset token

plan=$(plan_text p '{"stepId":"a","kind":"noop"}')
# schedule NAME SPEC [PLACE]
schedule() {
    echo "{\"document\":$plan,\"schedule\":$2}" >spec
    ask PUT "/v1${3:-}/schedules/$1" @spec
}
# token_of NAME MEMBERS: $token is a new one
token_of() {
    token=$platform
    ask POST /v1/tokens "{\"name\":\"$1\",$2}"; answers 201
    token=$(jq -r .token body)
}

# Times that the clock leaves out or shows twice, all of them: a thread looked for the next one for ever, and two requests were all readers.
test_a_schedule_without_times_stalls_nobody() {
    serve
    local i
    for i in 1 2 3; do
        schedule "never$i" '{"cron":"30 2 * 3 7L","zone":"Europe/Berlin","gap":"skip"}'; answers 422; code_is INVALID_SCHEDULE
        schedule "never$i" '{"cron":"30 2 * 10 7L","zone":"Europe/Berlin","fold":"skip"}'; answers 422
    done
    ask GET /v1/runs; answers 200
}

# Once each cost a megabyte of memory for ever, and all were read by the thread of all tenants at each change of any schedule.
test_backfills_of_a_tenant_have_a_limit() {
    serve
    schedule s '{"cron":"* * * * * *","from":"2099-01-01T00:00:00Z"}'; answers 201
    ask PUT /v1/limits '{"maxRunning":1}'
    local i many='{"from":"2099-01-01T00:00:00Z","to":"2099-01-01T02:46:40Z"}'
    for i in $(seq 10); do ask POST /v1/schedules/s/backfills "$many"; answers 201; done
    ask POST /v1/schedules/s/backfills "$many"; answers 422; code_is LIMIT_EXCEEDED; has body '100 backfills'
    ask POST /v1/schedules/s/backfills "${many/02:46:40/02:46:41}"; answers 422; has body 'ask for it in parts'
    # One that is ended makes room; one that has begun all of its times keeps their number, and takes no room.
    ask GET /v1/schedules/s/backfills; local first=$(jq -r '.items[0].id' body)
    ask DELETE "/v1/schedules/s/backfills/$first"; answers 204
    ask POST /v1/schedules/s/backfills '{"from":"2098-12-31T23:59:58Z","to":"2099-01-01T00:00:02Z"}'; answers 201
    local id=$(jq -r .id body)
    done_of() { ask GET /v1/schedules/s/backfills && [ "$(jq -c --arg id "$1" '.items[] | select(.id == $id) | [.count, .begun, .status]' body)" = '[2,2,"DONE"]' ]; }
    wait_for done_of "$id"
    kept() { python3 -c 'import sqlite3, sys; print(*sqlite3.connect("store.db").execute("select value from notes where space = ? and key like ?", ("backfill", "%" + sys.argv[1])).fetchone())' "$1" >kept && grep -q count kept; }
    wait_for kept "$id"; hasnt kept times
    stop_serving
    serve
    done_of "$id" || fail "after a restart: $(cat body)"
}

test_schedules_of_a_tenant_have_a_limit() {
    serve
    local big
    big=$(head -c 900000 /dev/zero | tr '\0' x)
    for i in 1 2 3 4; do schedule "s$i" "{\"every\":\"1h\",\"inputs\":{\"a\":\"$big\"}}" >/dev/null; answers 201; done
    schedule s5 "{\"every\":\"1h\",\"inputs\":{\"a\":\"$big\"}}"; answers 422; code_is LIMIT_EXCEEDED; has body '1000 schedules'
    schedule s4 "{\"every\":\"1h\",\"inputs\":{\"a\":\"$(printf '${schedule.%.0s' $(seq 70000))\"}}"; answers 200 # what is there counts once
    schedule s4 '{"every":"1h"}'; answers 200
    schedule s5 "{\"every\":\"1h\",\"inputs\":{\"a\":\"$big\"}}"; answers 201
}

# A schedule of another project is not there for a token of one project, also when its zone is gone from the machine.
test_a_schedule_whose_zone_is_gone_stays_in_its_project() {
    cp -r /usr/share/zoneinfo/Europe zones 2>/dev/null || skip 'no time zone database'
    mkdir tz; mv zones tz/Europe
    cp tz/Europe/Berlin tz/Europe/Here
    export TZDIR=$PWD/tz
    serve
    platform=$token
    schedule hidden '{"every":"1h","zone":"Europe/Here"}' /t/default/p/beta/e/prod; answers 201
    token_of alpha '"roles":["Admin"],"projects":["alpha"]'
    rm tz/Europe/Here
    ask GET /v1/schedules; answers 200; hasnt body hidden
    ask GET /v1/schedules/hidden; answers 404; hasnt body Europe; sed 's/hidden/nothing/g; s/"requestId.*//' body >first
    ask GET /v1/schedules/nothing; answers 404; sed 's/"requestId.*//' body | cmp -s first - || fail "they differ: $(cat first body)"
    ask POST /v1/schedules/hidden/pause '{"reason":"x"}'; answers 404
    ask PUT /v1/t/default/p/alpha/e/prod/schedules/hidden "{\"document\":$plan,\"schedule\":{\"every\":\"2h\"}}"; [ "$status" = 403 ] || [ "$status" = 404 ] || fail "it was taken over: $status $(cat body)"
    token=$platform
    ask GET /v1/schedules/hidden; answers 422; code_is TIME_ZONE_NOT_FOUND
}

# One step that names a large output thousands of times: each was read from the store and parsed again by the thread of all tenants.
test_references_to_a_large_output_stall_nobody() {
    serve
    jq -nc '{stepId: "a", kind: "shell", with: {command: "printf \u0027{\"k\":\"\u0027; head -c 900000 /dev/zero | tr \"\\0\" x; printf \u0027\"}\u0027"}}' >a
    jq -nc '{stepId: "b", kind: "shell", dependsOn: ["a"], with: {command: ([range(5000)] | map(": $a.output.k") | join("\n"))}}' >b
    echo "{\"document\":$(plan_text r1 "$(cat a)" "$(cat b)"),\"runId\":\"r1\"}" >start
    ask POST /v1/runs @start 'Prefer: wait=20'; answers 200; equal "$(jq -r .status body)" FAILED
    has body 'the references of this step read more than 128 MiB'
    # The whole output is read once, however often it is named.
    jq -nc '{stepId: "b", kind: "shell", dependsOn: ["a"], with: {command: ([range(500)] | map(": $a.output") | join("\n"))}}' >b
    echo "{\"document\":$(plan_text r2 "$(cat a)" "$(cat b)"),\"runId\":\"r2\"}" >start
    ask POST /v1/runs @start 'Prefer: wait=20'; answers 200; equal "$(jq -r .status body)" COMPLETED "$(cat body)"
}

run_tests "$@"
