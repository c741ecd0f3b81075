# Schedules, as people meet them: on the command line, over HTTP, and after a crash.
. "$(dirname "$0")/serve_lib.sh"
. "$(dirname "$0")/postgres_lib.sh"

here() { export CAIRN_SERVER=$url CAIRN_TOKEN=$token; }
hello() { echo '{"metadata":{"planId":"hello","planVersion":"1","schemaVersion":"v1.2"},"inputs":{"day":"none"},"steps":[{"stepId":"a","kind":"noop"}]}' >hello.json; }
# One whose step goes on until the file NAME is there.
held() {
    jq -nc --arg c "while [ ! -e $PWD/$1 ]; do sleep 0.02; done" \
        '{metadata: {planId: "held", planVersion: "1", schemaVersion: "v1.2"}, steps: [{stepId: "a", kind: "shell", with: {command: $c}}]}' >held.json
}
ticks() { "$CAIRN" schedule ticks "$1" --limit 1000 -o json; }
outcomes() { ticks "$1" | jq -r '[.[] | select(.outcome == "'"$2"'")] | length'; }
at_least() { [ "$(outcomes "$1" "$2")" -ge "$3" ]; }

test_next_shows_times_in_both_zones_without_a_server() {
    cairn_is 0 schedule next '30 2 * * *' --zone Europe/Berlin --since 2026-03-28T00:00:00Z --limit 3
    has_line out '^2026-03-28T01:30:00.000Z  2026-03-28T02:30:00\+01:00$'
    has_line out '^2026-03-29T01:00:00.000Z  2026-03-29T03:00:00\+02:00  the clock is set forward'
    cairn_is 0 schedule next '30 2 * * *' --zone Europe/Berlin --fold twice --since 2026-10-24T12:00:00Z --limit 3 -o json
    equal "$(jq -r '[.items[].mark] | @csv' out)" '"first","second",'
    cairn_is 2 schedule next '61 * * * *'
    has err 'the minute field'
    cairn_is 5 schedule next '@daily' --zone Mars/Olympus
    has err 'no time zone Mars/Olympus'
    cairn_is 0 schedule next 15m --limit 2
    equal "$(wc -l <out)" 2
}

test_a_schedule_fires_and_tells_of_it() {
    serve
    here
    hello
    cairn_is 0 schedule add quick hello.json --cron '* * * * * *' --zone Asia/Kathmandu --set 'day=${schedule.date} ${schedule.time}' --overlap allow
    has out '+05:45'
    wait_for at_least quick STARTED 2
    run=$(ticks quick | jq -r '[.[] | select(.outcome == "STARTED")][-1].runId')
    wait_for status_at "$run" COMPLETED
    ask GET "/v1/runs/$run" && answers 200
    cairn_is 0 events "$run" --raw
    has out '"triggerSource":"schedule"'
    has out "\"triggeredBy\":\"schedule:quick@"
    has out "\"day\":\"20"
    cairn_is 0 why "$run"
    has out 'schedule quick'
    cairn_is 0 schedule pause quick --reason 'for a while'
    has_line out '^state +paused'
    wait_for at_least quick SKIPPED 1
    ticks quick | jq -e '[.[] | select(.outcome == "SKIPPED")][0].reasonCode == "PAUSED"' >/dev/null || fail "not PAUSED"
    cairn_is 0 schedule ls
    has out paused
    before=$(outcomes quick STARTED)
    cairn_is 0 schedule trigger quick
    run=$(cat out)
    wait_for status_at "$run" COMPLETED
    equal "$(outcomes quick STARTED)" $((before + 1))
    cairn_is 0 schedule resume quick
    wait_for at_least quick STARTED $((before + 2))
    cairn_is 0 schedule rm quick
    cairn_is 5 schedule get quick
    ask GET "/v1/runs/$run/status" && answers 200 # its runs stay
    cairn_is 0 audit verify
}
status_at() { [ "$("$CAIRN" get "$1" -o json 2>/dev/null | jq -r .status)" = "$2" ]; }

test_a_document_says_when() {
    serve
    here
    cat >doc.yaml <<'DOC'
name: greeting
schedule:
  cron: '@hourly'
  zone: Europe/Berlin
nodes:
  - id: a
    bash: echo hello
DOC
    cairn_is 0 validate doc.yaml
    cairn_is 0 schedule next doc.yaml --limit 1
    cairn_is 0 schedule add greeting doc.yaml
    has_line out '^when +@hourly'
    cairn_is 0 schedule trigger greeting
    wait_for status_at "$(cat out)" COMPLETED
    sed -i 's/@hourly/@often/' doc.yaml
    cairn_is 3 validate doc.yaml
    has err E0228
    has err 'doc.yaml:3'
    cairn_is 3 schedule add none doc.yaml
    ask PUT /v1/schedules/x '{"document":"{}","schedule":{"cron":"@daily"}}' && answers 422
    ask PUT /v1/schedules/x "{\"document\":$(plan_text p '{"stepId":"a","kind":"noop"}'),\"schedule\":{\"at\":\"2020-01-01T00:00:00Z\"}}" && answers 422 && code_is INVALID_SCHEDULE
    ask PUT /v1/schedules/x "{\"document\":$(plan_text p '{"stepId":"a","kind":"noop"}'),\"schedule\":{\"cron\":\"@daily\",\"zone\":\"Mars/Olympus\"}}" && answers 422 && code_is TIME_ZONE_NOT_FOUND
    ask PUT /v1/schedules/x%2Fy '{}' && answers 400
}

test_what_overlaps_is_skipped_queued_or_cancelled() {
    unconfined
    serve
    here
    held go
    cairn_is 0 schedule add s1 held.json --cron '* * * * * *'
    cairn_is 0 schedule add s2 held.json --cron '* * * * * *' --overlap queue
    cairn_is 0 schedule add s3 held.json --cron '* * * * * *' --overlap cancel
    wait_for at_least s1 SKIPPED 1
    ticks s1 | jq -e '[.[] | select(.outcome == "SKIPPED")][0] | .reasonCode == "OVERLAP" and (.detail | test("s1:"))' >/dev/null || fail "no reason"
    equal "$(outcomes s1 STARTED)" 1
    wait_for at_least s2 QUEUED 1
    equal "$(outcomes s2 STARTED)" 1
    wait_for at_least s3 STARTED 2 # the one before was cancelled
    first=$(ticks s3 | jq -r '[.[] | select(.outcome == "STARTED")][-1].runId')
    wait_for status_at "$first" CANCELLED
    cairn_is 0 schedule pause s1
    cairn_is 0 schedule pause s3
    touch go
    wait_for at_least s2 STARTED 3
}

test_a_range_is_filled_in_order() {
    serve
    here
    hello
    cairn_is 0 schedule add nightly hello.json --cron '30 2 * * *' --zone Europe/Berlin
    cairn_is 0 schedule backfill nightly --since 2026-03-27T00:00:00 --until 2026-03-31T00:00:00 --dry-run
    equal "$(wc -l <out)" 4
    has out '2026-03-29T01:00:00.000Z'
    ask GET /v1/schedules/nightly/backfills && equal "$(jq -c .items body)" '[]'
    cairn_is 0 schedule backfill nightly --since 2026-03-27T00:00:00 --until 2026-03-31T00:00:00 --order newest --limit 3
    wait_for at_least nightly STARTED 3
    equal "$(ticks nightly | jq -r '[.[] | [.decidedAt, .time]] | sort | [.[][1]] | join(" ")')" \
        '2026-03-30T00:30:00.000Z 2026-03-29T01:00:00.000Z 2026-03-28T01:30:00.000Z'
    ask GET /v1/schedules/nightly/backfills && equal "$(jq -c '.items[0] | [.count, .begun, .status]' body)" '[3,3,"DONE"]'
    cairn_is 2 schedule backfill nightly
}

# No time is lost and none runs twice, whatever is killed when: each second since the first has exactly one tick, each STARTED one run.
test_a_killed_server_loses_no_time_and_doubles_none() {
    service_store=${1:-sqlite:$PWD/store.db}
    serve
    here
    hello
    cairn_is 0 schedule add s hello.json --cron '* * * * * *' --overlap allow
    wait_for at_least s STARTED 1
    for _ in 1 2 3 4; do
        kill -9 "$server"
        wait "$server" 2>/dev/null
        serve
        here
        wait_for at_least s STARTED $((RANDOM % 2 + 1))
    done
    cairn_is 0 schedule pause s
    wait_for at_least s SKIPPED 1
    "$root/test/schedule/fires.py" <(ticks s) <("$CAIRN" ls --all -o json) || fail "times are lost or doubled"
}

# Two engines and one schedule: whoever has the duty is killed, and the other goes on where it was.
test_two_engines_fire_each_time_once() {
    postgres_up
    mkdir -p files
    hello
    engine one "$CAIRN"
    engine two "$CAIRN"
    wait_for test -s files.token
    put() { asks "$1" PUT /v1/schedules/s "{\"document\":$(jq -R -s . <hello.json),\"schedule\":{\"cron\":\"* * * * * *\",\"overlap\":\"allow\"}}" | jq -e '.name == "s"'; }
    wait_for put one
    count_at() { asks "$1" GET '/v1/schedules/s/ticks?limit=1000' | jq '[.items[] | select(.outcome == "STARTED")] | length'; }
    more_at() { [ "$(count_at "$1")" -ge "$2" ]; }
    wait_for more_at two 2
    for name in one two; do
        other=$([ $name = one ] && echo two || echo one)
        kill -9 "$(cat $name/pid)"
        wait "$(cat $name/pid)" 2>/dev/null
        wait_for more_at $other $(($(count_at $other) + 2))
        engine $name "$CAIRN"
    done
    wait_for more_at one $(($(count_at one) + 2))
    asks two GET '/v1/schedules/s/ticks?limit=1000' | jq .items >ticks
    asks two GET '/v1/runs?limit=500' | jq .items >runs
    "$root/test/schedule/fires.py" ticks runs || fail "times are lost or doubled: $("$root/test/schedule/fires.py" ticks runs)"
}

run_tests "$@"
