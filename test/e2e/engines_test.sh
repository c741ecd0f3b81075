#!/usr/bin/env bash
# Several engines on one Postgres, as those who run them see it: workers of several engines, and runs that leave for an archive.
. "$(dirname "$0")/postgres_lib.sh"

test_engines_a_worker_serves_several_of_them() {
    postgres_up; mkdir -p files
    echo '{"planId":"v","planVersion":"1","steps":[{"stepId":"a","kind":"shell","with":{"command":"echo $CAIRN_RUN_ID"}}]}' >v.json
    engine one "$CAIRN" --route '*=default'
    engine two "$CAIRN" --route '*=default'
    wait_for test -s files.token
    # Each tells of both: two shares that are all there is, one duty, and which of them answers.
    shares() { asks "$1" GET /v1/engines | jq -c '[.count, ([.items[].shards] | add), (.items | length), ([.items[] | select(.duty)] | length), ([.items[] | select(.self)] | length)]'; }
    for name in one two; do wait_for eval '[ "$(shares $name)" = "[2,64,2,1,1]" ]'; done
    equal "$(for name in one two; do asks $name GET /v1/engines | jq '.items[] | select(.self).number'; done | sort -u | wc -l)" 2 'numbers of the two'
    asks one POST /v1/tokens '{"name":"w","roles":["Worker"],"pool":"default"}' | jq -r .token >w.token
    knows_token() { [ "$(curl -s -o /dev/null -w '%{http_code}' -X POST -H "Authorization: Bearer $(cat w.token)" -H 'Content-Type: application/json' --data '{"worker":"w1","waitMs":0}' "$(cat two/url)/v1/worker/poll")" = 200 ]; }
    wait_for knows_token # others read tokens every two seconds
    CAIRN_TOKEN=$(cat w.token) "$CAIRN" worker --server "$(cat one/url),$(cat two/url)" --name w1 --concurrency 2 -v >/dev/null 2>w.err &
    local worker=$!
    start_at one r-1 v.json; start_at two r-2 v.json
    wait_for is_at one r-1 COMPLETED; wait_for is_at two r-2 COMPLETED
    # One that is away holds up nobody else.
    kill -9 "$(cat one/pid)"
    wait_for grep -q "$(cat one/url) does not answer" w.err
    start_at two r-3 v.json; wait_for is_at two r-3 COMPLETED
    kill -TERM $worker; wait $worker || fail "the worker ended with $?: $(tail -n 2 w.err)"
    has w.err '3 results handed in'
    kill -TERM "$(cat two/pid)"; wait "$(cat two/pid)"
    cairn_is 2 worker --server "$(printf 'http://127.0.0.1:1,%.0s' {1..17})"; has err 'more than 16 servers'
}
# A long step keeps a stopping engine alive; its run goes on elsewhere, and the step has run once.
test_engines_one_that_stops_lets_its_steps_finish() {
    postgres_up; mkdir -p files
    plan() { jq -n --arg a "$1" '{planId: "p", planVersion: "1", steps: [{stepId: "a", kind: "shell", with: {command: $a}},
        {stepId: "b", kind: "shell", dependsOn: ["a"], with: {command: "true"}}]}'; }
    plan "while [ ! -e $PWD/end ]; do sleep 0.05; done" >long.json
    engine one "$CAIRN" --drain 600; engine two "$CAIRN"
    wait_for test -s files.token
    start_at one long long.json
    # A sender that may not, at the engine that does not have the run: the one that has it keeps the record.
    asks one POST /v1/tokens '{"roles":["Operator"]}' | jq -r .token >o.token
    skips() { curl -s -H "Authorization: Bearer $(cat o.token)" -H 'Content-Type: application/json' "$(cat two/url)/v1/runs/long/signals" \
        --data '{"signalId":"61111111-1111-4111-8111-111111111111","signalType":"SKIP_STEP","payload":{"stepId":"b"}}' >skip.json; }
    wait_for eval 'skips && [ "$(jq -r .status skip.json)" = 403 ]'
    equal "$(jq -r .decision skip.json)" REJECTED
    equal "$(asks one GET "/v1/runs/long/signals/$(jq -r .policyDecisionId skip.json)" | jq -r .engineResult.errorCode)" AUTHZ_DENIED
    kill -TERM "$(cat one/pid)"
    wait_for eval '[ "$(curl -s -o /dev/null -w "%{http_code}" "$(cat one/url)/readyz")" = 503 ]'
    is_at two long RUNNING || fail 'the long one was not left alone'
    kill -0 "$(cat one/pid)" || fail 'it did not wait for the long one'
    touch end
    wait "$(cat one/pid)" || fail "it ended with $?: $(tail -n 2 one/serve.err)"
    wait_for is_at two long COMPLETED
    equal "$(asks two GET /v1/runs/long/events | jq '[.items[] | select(.stepId == "a" and .eventType == "StepStarted")] | length')" 1 'the long step began'
}
# Signals that saw the same event, sent to the engine that drives the run and to one that does not: the engine that decides compares.
test_engines_decide_one_of_the_signals_that_saw_the_same_event() {
    postgres_up; mkdir -p files
    echo '{"planId":"g","planVersion":"1","steps":[{"stepId":"a","kind":"approval","with":{"message":"?"}}]}' >g.json
    engine one "$CAIRN"; engine two "$CAIRN"
    wait_for test -s files.token
    start_at one held g.json; wait_for is_at two held RUNNING
    tag() { asks one GET /v1/runs/held | jq -r .lastEventSeq; }
    # sends ENGINE NUMBER SIGNAL SEQ: the answer is in sent.NUMBER
    sends() { curl -s -H "Authorization: Bearer $(cat files.token)" -H 'Content-Type: application/json' -H "If-Match: \"r-$4\"" "$(cat "$1/url")/v1/runs/held/signals" \
        --data "{\"signalId\":\"711111$2-1111-4111-8111-111111111111\",\"signalType\":\"$3\",\"payload\":{}}" >"sent.$2"; }
    seen=$(tag); [ "$seen" -gt 0 ] || fail "the run is at event $seen"
    for i in 0 1 2 3 4; do sends one "1$i" PAUSE "$seen" & senders+=" $!"; sends two "2$i" PAUSE "$seen" & senders+=" $!"; done
    wait $senders
    equal "$(jq -r .decision sent.?? | grep -c ACCEPTED)" 1 "of ten that saw the same: $(cat sent.??)"
    equal "$(jq -r .code sent.?? | grep -c RUN_HAS_MOVED)" 9 "the others, of either engine: $(cat sent.??)"
    equal "$(jq -r .status sent.?? | grep -c 412)" 9
    # What was refused is sent again after another look, under its own id.
    again=0
    for i in 10 11 20 21; do
        [ "$(jq -r .status "sent.$i")" = 412 ] || continue
        sends one "3$again" RESUME "$(tag)"; equal "$(jq -r .decision "sent.3$again")" ACCEPTED "going on: $(cat "sent.3$again")"
        at=one; [ $i -lt 20 ] || at=two
        sends $at $i PAUSE "$(tag)"; equal "$(jq -r .decision "sent.$i")" ACCEPTED "sent again at $at: $(cat "sent.$i")"
        again=$((again + 1))
    done
}
# Who watches an engine is answered while the database is away, whatever others are asking it.
test_engines_answer_for_themselves_while_the_database_is_away() {
    postgres_up; mkdir -p files
    echo '{"planId":"v","planVersion":"1","steps":[{"stepId":"a","kind":"noop"}]}' >v.json
    engine one "$CAIRN"
    wait_for test -s files.token
    start_at one r-1 v.json; wait_for is_at one r-1 COMPLETED
    kill -QUIT "$pg_pid"; wait "$pg_pid" 2>/dev/null
    asks one GET /v1/runs/r-1/status >late &
    local asked=$! port; port=$(sed 's/.*://' one/url)
    wait_for is_connected "$port"
    for i in 1 2 3 4 5; do
        equal "$(curl -s -m 10 -o /dev/null -w '%{http_code}' "$(cat one/url)/livez")" 200 'without the database'
    done
    ! [ -s late ] || fail "who could answer that? $(cat late)"
    postgres_run
    wait $asked; equal "$(jq -r .status late)" COMPLETED 'when it was back'
}
# Archive first, then remove: the tombstone has the head of the chain, and the archive is what it was the head of.
test_engines_ended_runs_leave_for_an_archive_and_stay_provable_I7() {
    postgres_up
    echo '{"planId":"v","planVersion":"1","steps":[{"stepId":"a","kind":"noop"}]}' >v.json
    for i in 1 2; do cairn_is 0 run v.json "${store[@]}" --run-id "v-$i" --progress none; done
    echo '{"planId":"g","planVersion":"1","steps":[{"stepId":"g","kind":"approval"}]}' >g.json
    cairn_is 13 run g.json "${store[@]}" --run-id open --exit-on-wait
    pg_sql "create role hand login; select cairn.allow_engine('hand')" >/dev/null
    local hand="postgres:///postgres?host=$pg_dir&user=hand"
    cairn_is 0 store backup "files:$PWD/archive" --store "$hand"
    cairn_is 0 log verify --all --store "files:$PWD/archive"
    pg_sql "select encode(head,'hex') from cairn.run_heads h join cairn.runs r using(run_no) where run_id='v-1'" >head
    # Who may run workflows removes ended runs by the one door for it, and nothing by hand.
    "$pg_bin/psql" -h "$pg_dir" -U hand -X -q -d postgres -c "set cairn.tenant='*'" -c "delete from cairn.workflow_events" >out 2>err && fail 'events were deleted by hand'
    has err 'permission denied'
    cairn_is 0 store gc --keep 0s --yes --reason archived --store "$hand"
    equal "$(pg_sql "select run_id||' '||reason||' '||(encode(head,'hex')='$(cat head)') from cairn.tombstones where run_id='v-1'")" 'v-1 archived true'
    equal "$(pg_sql 'select count(*) from cairn.workflow_events e join cairn.tombstones t using(run_no)')" 0
    cairn_is 0 ls "${store[@]}" -o name; equal "$(cat out)" open
    cairn_is 0 log verify --all "${store[@]}"
    # From the archive back into a store of its own, with the same hash.
    cairn_is 0 log export v-1 --store "files:$PWD/archive" --out v-1.cairn
    cairn_is 0 log verify v-1.cairn
    cairn_is 0 store copy "files:$PWD/archive" "$pg&schema=again"
    equal "$(pg_sql "select encode(head,'hex') from again.run_heads h join again.runs r using(run_no) where run_id='v-1'")" "$(cat head)"
}
# One engine carries what goes out. What waits, and why, is told by each of them, and each takes orders.
test_engines_tell_the_truth_of_the_outbox_wherever_they_are_asked_ES_4d_ES_4h() {
    postgres_up; mkdir -p files
    settings="sinks = [{ name = \"lines\", type = \"file\", path = \"$PWD/later/lines.jsonl\", cursorMs = 10, backoffMs = 50, probeMaxMs = 200 }]"
    echo '{"planId":"v","planVersion":"1","steps":[{"stepId":"a","kind":"noop"}]}' >v.json
    engine one "$CAIRN"; engine two "$CAIRN"
    wait_for test -s files.token
    start_at one r-1 v.json; start_at two r-2 v.json
    outbox() { asks "$1" GET /v1/outbox | jq -r "$2"; }
    said() { [ "$(outbox "$1" "$2")" = "$3" ]; }
    metric() { [ "$(curl -s -H "Authorization: Bearer $(cat files.token)" "$(cat "$1/url")/metrics" | sed -n "s/^cairn_outbox_waiting{sink=\"lines\"} //p")" = "$2" ]; }
    wait_for is_at one r-1 COMPLETED; wait_for is_at one r-2 COMPLETED
    local events; events=$(pg_sql 'select count(*) from cairn.workflow_events')
    for at in one two; do
        wait_for said $at '.items[0] | [.name, .circuit, .waiting] | join(" ")' "lines open $events"
        wait_for said $at '.items[0] | (.lastError | test("later")) and .lagMs > 0' true
        wait_for metric $at "$events"
    done
    carrier() { said one .carriedBy.engine "$(outbox two .carriedBy.engine)" && [ "$(outbox one .carriedBy.here)" != "$(outbox two .carriedBy.here)" ]; }
    wait_for carrier
    outbox one .carriedBy.engine | grep -qE '^[0-9]+$' || fail "who carries: $(outbox one .carriedBy)"
    local idle=one; [ "$(outbox one .carriedBy.here)" = false ] || idle=two
    mkdir later
    for at in one two; do wait_for said $at '.items[0] | [.circuit, .waiting, .delivered] | join(" ")' "closed 0 $events"; wait_for metric $at 0; done
    # An order to the one that does not carry.
    asks $idle POST /v1/outbox/lines:rewind '{"position":0,"reason":"again"}' >rewound
    twice() { [ "$(wc -l <later/lines.jsonl)" = $((2 * events)) ]; }
    wait_for twice
    wait_for said $idle '.items[0] | [.waiting, .delivered] | join(" ")' "0 $((2 * events))"
    # Who carries dies: the other does, and says so.
    local other=one; [ $idle = two ] || other=two
    kill -9 "$(cat $other/pid)"
    wait_for said $idle .carriedBy.here true
    start_at $idle r-3 v.json
    carried() { grep -q '"runId":"r-3".*RunCompleted\|RunCompleted.*"runId":"r-3"' later/lines.jsonl; }
    wait_for carried
    kill -TERM "$(cat $idle/pid)"; wait "$(cat $idle/pid)" || fail "it ended with $?: $(tail -n 2 $idle/serve.err)"
}
# The first ones on an empty database make the store, and what a service keeps in it, at the same moment.
test_several_first_engines_on_an_empty_database_all_serve() {
    postgres_up; mkdir -p files
    local name
    for round in 1 2; do
        pg_sql 'drop schema if exists cairn cascade'; rm -rf files files.token; mkdir -p files
        for name in a b c d; do
            mkdir -p "$name"; rm -f "$name/serve.err"; printf '[serve]\nengineLeaseSeconds = 2\n' >"$name/cairn.toml"
            (cd "$name" && exec "$CAIRN" serve --store "$pg&files=$PWD/../files" --listen 127.0.0.1:0 >/dev/null 2>serve.err) &
            echo $! >"$name/pid"
        done
        for name in a b c d; do
            wait_for sh -c "grep -q '^listening on' $name/serve.err || ! kill -0 $(cat "$name/pid")"
            grep -q '^listening on' "$name/serve.err" || fail "engine $name: $(tail -n 2 "$name/serve.err")"
        done
        for name in a b c d; do kill "$(cat "$name/pid")"; wait "$(cat "$name/pid")"; done
    done
}
run_tests "$@"
