# Events from outside, as people meet them: sent, kept, taken once, over a crash, as signed webhooks, and what waits for them (ADR 0047).
. "$(dirname "$0")/serve_lib.sh"

here() { export CAIRN_SERVER=$url CAIRN_TOKEN=$token; }
waits() { # NAME CORRELATION [MORE]
    cat >waits.yaml <<END
name: order
nodes:
  - id: paid
    event: {name: $1, correlation: '$2'}
$(printf '%s\n' "${3:-}")
  - id: ship
    depends_on: [paid]
    bash: echo "got \$paid.output.data.amount"
END
}
state_of() { "$CAIRN" event ls -o json | jq -r --arg id "$1" '.[] | select(.id == $id) | .state'; }
status_at() { [ "$("$CAIRN" get "$1" -o json 2>/dev/null | jq -r .status)" = "$2" ]; }
# The same store at the same address: its token stays.
serve_again() {
    "$CAIRN" serve --store "sqlite:$PWD/store.db" --listen "${url#http://}" >>serve.out 2>>serve.err &
    server=$!
    wait_for curl -sf -o /dev/null "$url/readyz"
}
is_state() { [ "$(state_of "$1")" = "$2" ]; }
is_waiting() { "$CAIRN" why "$1/paid" 2>&1 | grep -q 'waits for the event'; }
shipped() { "$CAIRN" logs "$1" 2>&1 | grep -q "got $2"; }

test_an_event_wakes_the_step_that_waits_for_it_and_no_other() {
    serve
    here
    waits payment.received order-1
    cairn_is 0 run waits.yaml --detach -o name
    one=$(cat out)
    waits payment.received order-2
    cairn_is 0 run waits.yaml --detach -o name
    two=$(cat out)
    wait_for is_waiting "$one"
    wait_for is_waiting "$two"
    "$CAIRN" why "$two/paid" >why 2>&1
    has why 'waits for the event payment.received of order-2: none has come'
    cairn_is 0 event send payment.received --correlation order-2 --json '{"amount": 12}' --id e2
    has err "taken by run $two, step paid"
    wait_for status_at "$two" COMPLETED
    shipped "$two" 12 || fail "the step had no data: $("$CAIRN" logs "$two")"
    is_waiting "$one" || fail "the other run was woken"
    # the same event again is the same event; another one under its id is refused
    cairn_is 0 event send payment.received --correlation order-2 --json '{"amount": 12}' --id e2
    ask POST /v1/events '{"id":"e2","name":"payment.received","correlation":"order-1"}' && answers 409
    code_is EVENT_DUPLICATE
    # what is delivered here is not sent as a signal by anybody else
    ask POST "/v1/runs/$one/signals" '{"signalId":"6b1f0a3e-0000-4000-8000-000000000001","signalType":"DELIVER_EVENT","payload":{"event":"payment.received","id":"x","correlation":"order-1"}}' && answers 400
}

test_an_event_is_kept_until_somebody_waits_also_over_a_crash() {
    serve
    here
    cairn_is 0 event send payment.received --correlation 'a|b' --json '{"amount": 7}' --id early
    has err 'nobody waits for it yet: it is kept'
    kill -KILL "$server"
    wait "$server" 2>/dev/null || true
    serve_again
    is_state early KEPT || fail "it was $(state_of early)"
    waits payment.received 'a|b'
    cairn_is 0 run waits.yaml --detach -o name
    wait_for status_at "$(cat out)" COMPLETED
    shipped "$(cat out)" 7 || fail "no data"
    wait_for is_state early DELIVERED
    # it is taken: the next run waits
    cairn_is 0 run waits.yaml --detach -o name
    wait_for is_waiting "$(cat out)"
}

test_a_wait_ends_with_its_timeout_and_is_skipped_by_hand() {
    serve
    here
    waits call x '    timeout: 200'
    cairn_is 0 run waits.yaml --detach -o name
    wait_for status_at "$(cat out)" FAILED
    cairn_is 0 why "$(cat out)"
    has out 'the event did not come within 200ms (its field timeout)'
    waits call y
    cairn_is 0 run waits.yaml --detach -o name
    run=$(cat out)
    wait_for is_waiting "$run"
    cairn_is 0 skip "$run/paid" --reason 'paid in cash'
    cairn_is 0 why "$run/paid"
    has out 'was skipped'
}

test_each_of_ten_events_is_taken_once_while_the_service_is_killed() {
    serve
    here
    for i in 1 2 3 4 5 6 7 8 9 10; do
        waits tick same
        "$CAIRN" run waits.yaml --detach -o name >>runs 2>/dev/null
    done
    for i in 1 2 3 4 5 6 7 8 9 10; do
        "$CAIRN" event send tick --correlation same --json "{\"amount\": $i}" --id "t$i" >/dev/null 2>&1 &
        senders="${senders:-} $!"
        if [ $((i % 3)) = 0 ]; then
            wait $senders || true
            senders=
            kill -KILL "$server"
            wait "$server" 2>/dev/null || true
            serve_again
        fi
    done
    wait $senders || true
    for i in 1 2 3 4 5 6 7 8 9 10; do cairn_is 0 event send tick --correlation same --json "{\"amount\": $i}" --id "t$i"; done
    while read -r run; do wait_for status_at "$run" COMPLETED; done <runs
    # a step that was cut short runs again, with the event that its run has
    while read -r run; do "$CAIRN" logs "$run" 2>&1 | grep -o 'got [0-9]*' | sort -u; done <runs | sort | uniq -c | awk '$1 != 1' >twice
    [ ! -s twice ] || fail "an event was taken twice: $(cat twice)"
    for i in 1 2 3 4 5 6 7 8 9 10; do wait_for is_state "t$i" DELIVERED; done
}

test_a_webhook_is_an_event_when_its_signature_fits() {
    printf 'hush-hush' >secret
    cat >cairn.toml <<END
[serve.events]
keep = "2d"
hooks = [
  { name = "github", event = "push", secret = { file = "$PWD/secret" }, correlation = "repository.id" },
  { name = "shop", event = "payment.received", secret = { env = "HOOK_SECRET" }, signature = "timed", id = "id", correlation = "order" },
]
END
    HOOK_SECRET=other serve
    here
    sign() { printf '%s' "$2" | openssl dgst -sha256 -hmac "$1" -r | cut -d' ' -f1; }
    body='{"repository":{"id":17},"ref":"main"}'
    token_kept=$token
    token=
    ask POST /v1/hooks/github "$body" "X-Hub-Signature-256: sha256=$(sign hush-hush "$body")" 'X-GitHub-Delivery: d-1' && answers 202
    equal "$(jq -r '.correlation + " " + .id + " " + .name' body)" '17 d-1 push'
    ask POST /v1/hooks/github "$body" "X-Hub-Signature-256: sha256=$(sign hush-hush "$body")" 'X-GitHub-Delivery: d-1' && answers 200
    ask POST /v1/hooks/github "$body" "X-Hub-Signature-256: sha256=$(sign wrong "$body")" && answers 401
    ask POST /v1/hooks/github "$body" && answers 401
    ask POST /v1/hooks/nobody "$body" && answers 404
    now=$(date +%s)
    body='{"id":"evt_1","order":"o-9","amount":3}'
    ask POST /v1/hooks/shop "$body" "X-Cairn-Signature: t=$now,v1=$(sign other "$now.$body")" && answers 202
    mv secret away
    for _ in 1 2 3 4 5; do ask POST /v1/hooks/github "$body" && answers 503; done
    mv away secret
    ask POST /v1/hooks/github "$body" && answers 401
    equal "$(grep -c 'secret of a hook' serve.err)" 1 'lines about a secret that cannot be read'
    old=$((now - 3600))
    ask POST /v1/hooks/shop "$body" "X-Cairn-Signature: t=$old,v1=$(sign other "$old.$body")" && answers 401
    token=$token_kept
    ask GET /v1/incoming && answers 200
    equal "$(jq '.items | length' body)" 2
}

# Anybody may send to a hook: a header of two thousand signatures made the thread of all connections read the body two thousand times.
# Ids are often small numbers, or easy to guess: who may send in one project must not take them away from a sender in another.
test_an_id_is_taken_in_its_own_place_alone_X4() {
    cat >cairn.toml <<END
[serve.events]
hooks = [{ name = "shop", event = "paid", secret = { env = "HOOK_SECRET" }, id = "id", project = "shop" }]
END
    HOOK_SECRET=hush serve
    local here=/v1/t/default/p/blog/e/default body='{"id":"17"}' of_all=$token
    ask POST /v1/tokens '{"roles":["Operator"],"projects":["blog"]}' && answers 201
    token=$(jq -r .token body)
    ask POST $here/events '{"name":"guess","id":"17"}' && answers 202
    equal "$(sed -n 's/^[Ll]ocation: \(.*\)\r$/\1/p' head)" "$here/incoming/17" location
    token='' ask POST /v1/hooks/shop "$body" "X-Hub-Signature-256: sha256=$(printf '%s' "$body" | openssl dgst -sha256 -hmac hush -r | cut -d' ' -f1)" && answers 202
    equal "$(jq -r .projectId body)" shop
    # each is the event of its place, and another under an id that is taken there is refused as ever
    ask GET /v1/incoming/17 && answers 200 && equal "$(jq -r .name body)" guess
    ask GET $here/incoming/17 && answers 200 && equal "$(jq -r .name body)" guess
    ask POST $here/events '{"name":"guess","id":"17"}' && answers 200
    ask POST $here/events '{"name":"other","id":"17"}' && answers 409
    ask POST $here/events '{"name":"paid","source":"hook:shop"}' && answers 400
    token=$of_all
    ask GET /v1/t/default/p/shop/e/default/incoming/17 && answers 200 && equal "$(jq -r .name body)" paid
    ask GET /v1/incoming && equal "$(jq '.items | length' body)" 2
    ask POST /v1/runs "{\"document\":$(plan_text w '{"stepId":"a","kind":"event","with":{"name":"paid"}}'),\"runId\":\"w\",\"projectId\":\"shop\"}" 'Prefer: wait=20' && answers 200
    equal "$(jq -r .status body)" COMPLETED
    ask GET /v1/t/default/p/shop/e/default/incoming/17 && equal "$(jq -r '.state + " " + .runId' body)" 'DELIVERED w'
    ask POST /v1/events '{"name":"x","projectId":"a/b"}' && answers 400
}

test_many_signatures_cost_no_more_than_one_X6() {
    printf 'hush-hush' >secret
    cat >cairn.toml <<END
[serve.events]
hooks = [
  { name = "timed", event = "e", secret = { file = "$PWD/secret" }, signature = "timed" },
  { name = "standard", event = "e", secret = { file = "$PWD/secret" }, signature = "standard" },
]
END
    serve
    ticks() { awk '{print $14 + $15}' "/proc/$server/stat"; }
    local began=$(ticks)
    python3 - "${url#http://}" <<'END' || fail 'the requests were not answered as they should be'
import http.client, sys, time
host, body, now = sys.argv[1], b"x" * 60000, str(int(time.time()))
for _ in range(15):
    for path, headers in (("timed", {"X-Cairn-Signature": "t=" + now + "," + "v1=," * 1900}),
                          ("timed", {"X-Cairn-Signature": ("t=" + now + ",v1=,") * 300}),
                          ("standard", {"webhook-id": "a", "webhook-timestamp": now, "webhook-signature": "v1, " * 1900})):
        connection = http.client.HTTPConnection(host, timeout=60)
        connection.request("POST", "/v1/hooks/" + path, body, {"Content-Type": "application/json", **headers})
        assert connection.getresponse().status == 401
        connection.close()
END
    local spent=$(($(ticks) - began))
    [ "$spent" -lt "$(getconf CLK_TCK)" ] || fail "45 requests took $spent ticks of the processor"
}

# What a tenant sends is looked through by the thread of all tenants: all of it at once, once a minute, and 128 of it went.
test_events_that_are_too_old_go_however_many_they_are_X6() {
    printf '[serve.events]\nkeep = "1s"\n' >cairn.toml
    serve
    here
    python3 - "${url#http://}" "$token" <<'END' || fail 'events were not taken'
import http.client, json, sys
connection = http.client.HTTPConnection(sys.argv[1], timeout=60)
for i in range(400):
    body = json.dumps({"name": "n%d" % i, "id": "e%d" % i, "data": {"x": "y" * (40000 if i < 20 else 10)}})
    connection.request("POST", "/v1/events", body, {"Content-Type": "application/json", "Authorization": "Bearer " + sys.argv[2]})
    answer = connection.getresponse()
    assert answer.status == 202, answer.read()
    answer.read()
END
    stop_serving
    outlast 1.1
    serve_again
    none_left() { ask GET '/v1/incoming?limit=10' && [ "$(jq '.items | length' body)" = 0 ]; }
    wait_for none_left
    stop_serving
    equal "$(python3 -c 'import sqlite3; print(sqlite3.connect("store.db").execute("select count(*) from notes where space like \"incoming%\"").fetchone()[0])')" 0
}

# Steps that wait and events that are kept are held against each other in parts, and none is left out.
test_events_reach_steps_among_many_that_fit_nothing() {
    serve
    here
    python3 - "${url#http://}" "$token" >run <<'END' || fail 'events were not taken'
import http.client, json, sys
connection = http.client.HTTPConnection(sys.argv[1], timeout=60)
def post(path, body):
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", "Authorization": "Bearer " + sys.argv[2]})
    answer = connection.getresponse()
    said = json.loads(answer.read())
    assert answer.status == 202, said
    return said
names = range(600)
for i in names: post("/v1/events", {"name": "kept%d" % i, "id": "k%d" % i})
nodes = "".join("  - {id: n%d, event: {name: waited%d}}\n" % (i, i) for i in names)
run = post("/v1/runs", {"document": "name: many\nnodes:\n" + nodes})["runId"]
for i in names[::60]: post("/v1/events", {"name": "waited%d" % i, "id": "w%d" % i})
print(run)
END
    all_taken() { for i in $(seq 0 60 599); do ask GET "/v1/incoming/w$i" && [ "$(jq -r .state body)" = DELIVERED ] || return 1; done; }
    wait_for all_taken
    ask GET /v1/incoming/k7 && equal "$(jq -r .state body)" KEPT
}

test_a_step_of_a_document_alone_is_answered_by_a_signal_and_by_a_test() {
    waits call x
    "$CAIRN" run waits.yaml --store sqlite:local.db --run-id alone >run.out 2>run.err &
    driver=$!
    awaits() { "$CAIRN" why alone/paid --store sqlite:local.db 2>&1 | grep -q 'waits for the event call of x'; }
    wait_for awaits
    cairn_is 0 signal alone DELIVER_EVENT --json '{"event":"call","id":"1","correlation":"x","data":{"amount":5}}' --store sqlite:local.db
    wait "$driver" || fail "it ended with $?: $(cat run.err)"
    cairn_is 0 crashtest waits.yaml
}

run_tests "$@"
