# The write budget of a service with a store that takes nothing (ES-5, ADR 0036): starts go on and are in the outbox, results fail closed.
. "$(dirname "$0")/serve_lib.sh"
. "$(dirname "$0")/postgres_lib.sh"

budget() { printf '[serve.stateStore]\nwriteLatencyBudgetMs = %s\nfailOpenForEventClass = %s\nneverFailOpen = ["StepCompleted", "StepFailed"]\n' "$1" "$2" >cairn.toml; }

# The text of the contract, word for word, and with other milliseconds.
contract_text() {
    cat <<'Y' | sed "s/3000/${1:-3000}/" >state-store.yaml
stateStore:
  writeLatencyBudgetMs: 3000
  failOpenForEventClass: ['StepStarted']
  neverFailOpen: ['StepCompleted', 'StepFailed']
Y
}

# sink NAME SETTING...: a file of that name
sink() {
    while [ $# -gt 0 ]; do
        printf '[[serve.sinks]]\nname = "%s"\ntype = "file"\npath = "%s"\n%s\n' "$1" "$PWD/$1" "$2" >>cairn.toml
        shift 2
    done
}
alerts_of() { [ ! -e "$1" ] || jq -c 'select(.alert)' "$1"; }

# A step that fails until somebody holds the store, and then goes on until it may end. $1: its policy
unlucky() {
    jq -nc --arg c "cd $PWD; [ -e locked ] || exit 1; echo x >>began; until [ -e end ]; do sleep 0.01; done; echo done" \
        '{stepId: "a", kind: "shell", with: {command: $c}, retry: {maxAttempts: 1000, delay: "300ms"}}'
}
start() { ask POST /v1/runs "{\"document\":$(plan_text p "$(unlucky)"),\"runId\":\"r1\"}" "Prefer: wait=0"; answers 202; }

# Another process holds the store from a moment in which an attempt has failed and the next is not begun, until the file release is there.
hold_store() {
    python3 - <<'PY' &
import os, sqlite3, time
db = sqlite3.connect("store.db", isolation_level=None, timeout=30)
while True:
    db.execute("BEGIN IMMEDIATE")
    words = [row[0] for row in db.execute("select event_type from workflow_events where run_id = 'r1' order by sequence desc limit 2")]
    if "StepFailed" in words and "StepStarted" not in words: break
    db.execute("ROLLBACK")
    time.sleep(0.005)
open("locked", "w").close()
while not os.path.exists("release"): time.sleep(0.01)
db.execute("ROLLBACK")
PY
    locker=$!
    wait_for test -e locked
}
words() { ask GET "/v1/runs/r1/events?limit=500" && jq -r '.items[] | "\(.runSeq) \(.eventType) \(.logicalAttemptId // 0).\(.engineAttemptId // 0)"' body; }
alert() { ask GET /v1/alerts && [ "$(jq -r --arg s "$1" '[.items[] | select(.name == "STATE_STORE_WRITE_BUDGET_EXCEEDED" and .subject == $s) | .state] | join(" ")' body)" = "$2" ]; }
completed() { ask GET /v1/runs/r1 && [ "$(jq -r .status body)" = COMPLETED ]; }
outbox_bytes() { cat store.db-outbox/*.outbox 2>/dev/null | wc -c; }
is_intact() {
    "$CAIRN" log verify --all --store "sqlite:$PWD/store.db" || fail "the log"
    # numbers without a gap, no event twice, every outcome behind its start
    equal "$(words | cut -d' ' -f1 | tr '\n' ' ')" "$(seq -s' ' 1 "$(words | wc -l)") " numbers
    equal "$(words | cut -d' ' -f2- | sort | uniq -d)" '' 'events twice'
}

test_a_start_goes_on_while_the_store_is_locked_and_is_logged_in_its_place_ES_5b() {
    unconfined
    budget 500 '["StepStarted"]'
    sink all '' ours 'tenants = ["default"]' theirs 'tenants = ["other"]' runs 'types = ["Run*"]' none 'alerts = false' ce 'format = "cloudevents"'
    serve
    start
    hold_store
    wait_for test -s began # by an attempt that no log knows of
    has serve.err 'code=STATE_STORE_WRITE_BUDGET_EXCEEDED mode=open run=r1 step=a'
    [ "$(outbox_bytes)" -gt 0 ] || fail 'nothing is in the outbox'
    wait_for alert outbox open
    ask GET /v1/alerts && equal "$(jq -r '.items[] | select(.subject == "outbox") | .text | split(":")[0]' body)" 'fail open'
    wait_for alert store open
    equal "$(words | tail -n 1 | cut -d' ' -f2)" StepDelayed 'readers see what the store has'
    touch release
    wait "$locker"
    wait_for alert outbox closed
    wait_for alert store closed
    equal "$(words | tail -n 1 | cut -d' ' -f2)" StepStarted 'reconciled while the attempt runs'
    equal "$(outbox_bytes)" 0 'the outbox'
    touch end
    wait_for completed
    equal "$(wc -l <began)" 1 'attempts that went on'
    equal "$(words | tail -n 3 | cut -d' ' -f2 | tr '\n' ' ')" 'StepStarted StepCompleted RunCompleted '
    is_intact
    # Each sink learns of what it may see, once, the end behind the beginning.
    four() { [ "$(alerts_of all | wc -l)" = 4 ] && [ "$(alerts_of ours | wc -l)" = 2 ] && [ "$(grep -c '"type":"cairn.alert' ce)" = 4 ]; }
    wait_for four
    equal "$(alerts_of all | jq -r 'select(.alert.runId) | "\(.eventType) \(.alert.name) \(.alert.tenantId) \(.alert.runId) \(.alert.subject) \(.id | split(":")[3])"')" \
        "$(printf 'AlertRaised STATE_STORE_WRITE_BUDGET_EXCEEDED default r1 outbox open\nAlertEnded STATE_STORE_WRITE_BUDGET_EXCEEDED default r1 outbox closed')"
    equal "$(alerts_of all | jq -r 'select(.alert.runId == null) | "\(.eventType) \(.alert.subject)"' | tr '\n' ' ')" 'AlertRaised store AlertEnded store '
    equal "$(alerts_of ours | jq -r '.alert.runId' | tr '\n' ' ')" 'r1 r1 ' 'a sink of one tenant'
    for name in theirs runs none; do equal "$(alerts_of $name | wc -l)" 0 $name; done
    has runs '"eventType":"RunCompleted"'
    equal "$(alerts_of all | jq -r .id | sort | uniq -d)" '' 'messages twice'
    wait_for grep -q 'alert=STATE_STORE_WRITE_BUDGET_EXCEEDED state=closed tenant=default run=r1' serve.err
    stop_serving
}

test_a_service_that_is_killed_finds_its_outbox_ES_5b() {
    unconfined
    contract_text 300
    serve --settings state-store.yaml
    start
    hold_store
    wait_for test -s began
    kill -9 $server
    wait $server 2>/dev/null
    [ "$(outbox_bytes)" -gt 0 ] || fail 'nothing is in the outbox'
    touch release
    wait "$locker"
    serve --settings state-store.yaml
    has serve.err 'starts of an engine that is gone were found in the outbox" run=r1'
    twice() { [ "$(wc -l <began)" = 2 ]; }
    wait_for twice
    equal "$(words | tail -n 2 | cut -d' ' -f2 | tr '\n' ' ')" 'StepStarted StepRedispatched '
    touch end
    wait_for completed
    is_intact
    emptied() { [ "$(outbox_bytes)" = 0 ]; }
    wait_for emptied
    stop_serving
}

# The old way: everything waits.
test_with_nothing_that_may_fail_open_a_start_waits_for_the_store_ES_5d() {
    unconfined
    budget 200 '[]'
    serve
    start
    hold_store
    wait_for alert store open
    ask GET /v1/alerts && hasnt body 'fail open'
    [ ! -e began ] || fail 'an attempt began that no event names'
    [ ! -e store.db-outbox ] || fail 'there is an outbox'
    touch release end
    wait "$locker"
    wait_for completed
    is_intact
    stop_serving
}

# Without a word about it the contract's defaults count: three seconds, and StepStarted fails open. Its own text says the same, over another setting.
test_the_defaults_of_the_budget_are_those_of_the_contract_ES_5d() { three_seconds; }
test_the_text_of_the_contract_is_a_file_of_settings_ES_5b_ES_5d() {
    budget 1 '[]'
    contract_text
    three_seconds --settings state-store.yaml
    sed -i 's/\[.StepStarted.\]/[StepCompleted]/' state-store.yaml
    cairn_is 2 serve --settings state-store.yaml
    has err 'state-store.yaml:3:27: stateStore.failOpenForEventClass: StepCompleted may not fail open: '
    echo 'stateStor: {}' >wrong.yaml
    cairn_is 2 serve --settings wrong.yaml && has err 'wrong.yaml:1:1: ' && has err 'did you mean stateStore?'
    for text in '- a' '{' ''; do
        echo "$text" >wrong.yaml
        cairn_is 2 serve --settings wrong.yaml && has err 'it is no JSON or YAML table of settings'
    done
    # Where it cannot be read, and why; never the line itself, which may hold a secret.
    printf 'drainSeconds: 3\ndrainSeconds: 4 # hunter2\n' >wrong.yaml
    cairn_is 2 serve --settings wrong.yaml && has_line err '^error: wrong.yaml:2:1: .*drainSeconds' && hasnt err hunter2
    echo '{"drainSeconds": 3,}' >wrong.yaml
    cairn_is 2 serve --settings wrong.yaml && has_line err '^error: wrong.yaml:1:20: '
    echo '{"stateStore":{"writeLatencyBudgetMs":"3s"}}' >wrong.yaml
    cairn_is 2 serve --settings wrong.yaml && has err 'wrong.yaml:1:39: stateStore.writeLatencyBudgetMs: must be a whole number from 1 to 3600000'
    cairn_is 2 serve --settings nowhere.yaml && has err nowhere.yaml
}
three_seconds() {
    unconfined
    serve "$@"
    start
    hold_store
    wait_for test -s began
    has serve.err 'mode=open run=r1 step=a'
    touch release end
    wait "$locker"
    wait_for completed
    is_intact
    stop_serving
}

test_a_class_that_may_not_fail_open_is_refused_with_the_reason_ES_5d() {
    for class in StepCompleted StepFailed RunCompleted SignalAccepted; do
        budget 300 "[\"StepStarted\", \"$class\"]"
        cairn_is 2 serve
        has err "failOpenForEventClass: $class may not fail open: "
        has err 'cairn.toml:'
    done
    budget 300 '["StepStarts"]'
    cairn_is 2 serve
    has err 'there is no event class "StepStarts"'
}

# ---- Postgres that is away, stopped as an operator stops it

serve_postgres() {
    postgres_up
    service_store="$pg&files=$PWD/files"
    contract_text 500
    printf '[serve]\nengineLeaseSeconds = 600\n' >cairn.toml # longer than any outage here: nobody may take the engine for dead
    unconfined
    serve --settings state-store.yaml
}
pg_stop() { as_postgres "$pg_bin/pg_ctl" stop -s -w -m fast -D "$pg_dir/data" && wait "$pg_pid"; }
# Steps: a fails until the database is stopped, b is under way all the time. $1: the command of b
start_two() {
    a=$(jq -nc --arg c "cd $PWD; echo x >>tried; [ -e stopped ] || exit 1; echo x >>began; until [ -e end ]; do sleep 0.01; done; echo done" \
        '{stepId: "a", kind: "shell", with: {command: $c}, retry: {maxAttempts: 1000, delay: "2s"}}')
    b=$(jq -nc --arg c "cd $PWD; $1" '{stepId: "b", kind: "shell", with: {command: $c}, retry: {maxAttempts: 9, delay: "1ms"}}')
    ask POST /v1/runs "{\"document\":$(plan_text p "$a"),\"runId\":\"r1\"}" "Prefer: wait=0"; answers 202
    ask POST /v1/runs "{\"document\":$(plan_text q "$b"),\"runId\":\"r2\"}" "Prefer: wait=0"; answers 202
}
tries() { cat tried 2>/dev/null | wc -l; }
delayed() { words | tail -n 1 | grep -q StepDelayed; }
# Stops the database in a moment in which the next attempt is not begun.
stop_between() {
    while true; do
        wait_for delayed
        seen=$(words | grep -c StepFailed)
        pg_stop
        [ "$(tries)" = "$seen" ] && break # nobody has seen the file of a stop that came too late
        postgres_run
    done
    touch stopped
}
pg_outbox() { cat "$PWD"/files*outbox/*.outbox 2>/dev/null | wc -c; }
ended() { ask GET /v1/runs/$1 && [ "$(jq -r .status body)" = COMPLETED ]; }

test_a_start_goes_on_while_postgres_is_stopped_and_results_fail_closed_ES_5b_ES_5c() {
    serve_postgres
    start_two '[ -e again ] || { touch again; until [ -e stopped ]; do sleep 0.01; done; }; echo b'
    wait_for test -e again
    stop_between
    wait_for test -s began # by an attempt that no log knows of, while nothing can be stored
    has serve.err 'code=STATE_STORE_WRITE_BUDGET_EXCEEDED mode=open run=r1 step=a'
    [ "$(pg_outbox)" -gt 0 ] || fail "nothing is in the outbox: $(ls)"
    wait_for grep -q 'mode=closed run=r2' serve.err # b has ended meanwhile, and it could not be stored in time
    kill -0 "$server" || fail 'the service has ended'
    postgres_run
    wait_for eval 'words | tail -n 1 | grep -q StepStarted'
    wait_for eval '[ "$(pg_outbox)" = 0 ]'
    touch end
    wait_for ended r1
    wait_for ended r2
    equal "$(wc -l <began)" 1 'attempts of a that went on'
    equal "$(words | tail -n 3 | cut -d' ' -f2 | tr '\n' ' ')" 'StepStarted StepCompleted RunCompleted '
    ask GET '/v1/runs/r2/events?limit=500'
    equal "$(jq -r '[.items[] | select(.eventType == "StepFailed") | .payload.errorCode] | join(" ")' body)" STATE_STORE_WRITE_BUDGET_EXCEEDED
    ask GET /v1/alerts
    equal "$(jq -r '[.items[] | select(.name == "STATE_STORE_WRITE_BUDGET_EXCEEDED" and .runId == "r2")] | length > 0' body)" true 'the alert of r2'
    stop_serving
    "$CAIRN" log verify --all --store "$service_store" || fail 'the log'
}

test_a_service_that_is_killed_while_postgres_is_stopped_finds_its_outbox_ES_5b() {
    serve_postgres
    start_two 'until [ -e end ]; do sleep 0.01; done'
    stop_between
    wait_for test -s began
    kill -9 "$server"
    wait "$server" 2>/dev/null
    [ "$(pg_outbox)" -gt 0 ] || fail 'nothing is in the outbox'
    postgres_run
    pg_sql "update cairn.engines set lease_until = clock_timestamp(), lease_ms = 1 where lease_until is not null" # it is over, and nobody renews it
    serve --settings state-store.yaml
    wait_for grep -q 'starts of an engine that is gone were found in the outbox" run=r1' serve.err
    wait_for eval '[ "$(wc -l <began)" = 2 ]'
    equal "$(words | tail -n 2 | cut -d' ' -f2 | tr '\n' ' ')" 'StepStarted StepRedispatched '
    touch end
    wait_for ended r1
    wait_for ended r2
    stop_serving
    "$CAIRN" log verify --all --store "$service_store" || fail 'the log'
}

run_tests "$@"
