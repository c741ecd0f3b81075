# What people who run `cairn serve` need: configuration, signs of life, metrics, alerts, signals, one service a store.
. "$(dirname "$0")/serve_lib.sh"

noop='{"stepId":"a","kind":"noop"}'
shell() { jq -nc --arg id "$1" --arg c "$2" '{stepId: $id, kind: "shell", with: {command: $c}}'; }
start() { ask POST /v1/runs "{\"document\":$1,\"runId\":\"$2\"}" "${3:-Prefer: wait=20}"; }
# A number of /metrics: metric 'cairn_events_total'
metric() { ask GET /metrics && awk -v name="$1" '$1 == name { print $2 }' body; }

test_serve_takes_its_settings_from_config_files() {
    mkdir here && cd here
    cat >cairn.toml <<TOML
store = "sqlite:./store.db"
[serve]
listen = ["127.0.0.1:0", "unix:$PWD/sock"]
tokenFile = "$PWD/first.token"
drainSeconds = 1
readers = 1
processes = 4
[serve.stateStore]
writeLatencyBudgetMs = 2000
[serve.confinement]
level = "basic"
[serve.http]
streamsPerToken = 2
TOML
    "$CAIRN" serve >serve.out 2>serve.err &
    server=$!
    wait_for grep -q 'token of the first start' serve.err
    url=$(sed -n 's/^listening on //p' serve.err | head -n 1)
    token=$(cat first.token)
    ask GET /v1/whoami && answers 200
    equal "$(curl -s --unix-socket sock -o /dev/null -w '%{http_code}' http://localhost/livez)" 200 'over the Unix socket'
    # basic confinement begins with an empty environment
    SECRET_OF_SERVER=1 start "$(plan_text p "$(shell a 'env')")" r1 && answers 200
    ask GET /v1/runs/r1/steps/a/logs && hasnt body XDG_STATE_HOME
    stop_serving
    cairn_is 0 config list -o json
    equal "$(jq -r '.[] | select(.name == "serve.readers") | .value' out)" 1 'shown by config'
}

test_a_wrong_setting_of_serve_is_refused_with_its_place() {
    printf '[serve]\nreaders = 2\nlisten = "127.0.0.1:0"\nlisen = "x"\n[serve.http]\nconnections = 0\n' >cairn.toml
    cairn_is 2 serve
    has err "cairn.toml:4:1: there is no \"lisen\" in serve"
    has err 'did you mean listen?'
    has err 'cairn.toml:6:15: http.connections: must be a whole number from 1 to 1000000'
    for bad in 'routes = [{pol = "x"}]' 'tls = {certificate = "a", key = "b"}' 'confinement = {level = "most"}' \
        'fetch = {alow = []}' 'stateStore = {failOpenForEventClass = ["StepCompleted"]}' 'secrets = {providers = 1}' 'drainSeconds = -1'; do
        printf '[serve]\n%s\n' "$bad" >cairn.toml
        cairn_is 2 serve
        has err 'cairn.toml:2:'
    done
    cairn_is 0 ls # others are not kept from their work
}

# The lock is there before the result is, and goes when the budget is known to be over: nothing here leans on a time.
test_a_result_that_waits_for_a_locked_store_fails_its_attempt_with_an_alert_ES_5c() {
    unconfined
    printf '[serve.stateStore]\nwriteLatencyBudgetMs = 1000\nneverFailOpen = ["StepCompleted", "StepFailed"]\n' >cairn.toml
    serve
    start "$(plan_text p "$(shell a "cd $PWD; touch began; until [ -e locked ]; do sleep 0.01; done; echo done")")" r1 "Prefer: wait=0"
    answers 202
    wait_for test -e began
    python3 - <<'PY' &
import os, sqlite3, time
db = sqlite3.connect("store.db", isolation_level=None, timeout=30)
db.execute("BEGIN IMMEDIATE")
open("locked", "w").close()
while not os.path.exists("release"): time.sleep(0.01)
db.execute("ROLLBACK")
PY
    locker=$!
    wait_for grep -q 'not stored in time" code=STATE_STORE_WRITE_BUDGET_EXCEEDED mode=closed run=r1' serve.err
    touch release
    wait "$locker"
    failed() { ask GET /v1/runs/r1 && [ "$(jq -r .status body)" = FAILED ]; }
    wait_for failed
    equal "$(jq -r '.steps[0].error.code' body)" STATE_STORE_WRITE_BUDGET_EXCEEDED
    ask GET /v1/runs/r1/events && equal "$(jq -r '[.items[].eventType] | map(select(startswith("Step"))) | join(" ")' body)" 'StepStarted StepFailed'
    alarmed() { ask GET /v1/alerts && [ "$(jq -r '[.items[]|select(.name == "STATE_STORE_WRITE_BUDGET_EXCEEDED" and .runId)|.runId + (.text|split(":")[0])] | join(" ")' body)" = 'r1fail closed' ]; }
    wait_for alarmed
    stop_serving
    "$CAIRN" log verify --all --store "sqlite:$PWD/store.db" || fail "the log"
}

# Each run has a step that goes on; its pause is over its time as soon as the setting says so, which five minutes would not be.
test_drain_timeout_of_a_pause_is_configured_by_plan_start_and_service_ES_6_6a() {
    unconfined
    held() { shell a "cd $PWD; touch began.$1; until [ -e end ]; do sleep 0.01; done"; }
    timed_out() { ask GET /v1/alerts && [ "$(jq -r --arg r "$1" '[.items[]|select(.name == "PAUSE_DRAIN_TIMEOUT" and .runId == $r)] | length' body)" = 1 ]; }
    pause() {
        wait_for test -e "began.$1"
        ask POST "/v1/runs/$1/signals" "{\"signalId\":\"$(cat /proc/sys/kernel/random/uuid)\",\"signalType\":\"PAUSE\"}"; answers 202
        wait_for timed_out "$1"
        ask GET "/v1/runs/$1/status" && equal "$(jq -r '.status + " " + (.substatus // "")' body)" 'PAUSED ' "$1"
    }
    serve
    plan() { plan_text p "$(held "$1")" | jq -c --argjson m "$2" 'fromjson | .metadata += ($m + {targetAdapter: "conductor"}) | tojson'; }
    ask POST /v1/runs "{\"runId\":\"plan\",\"document\":$(plan plan '{"drainTimeout":"1ms"}')}"; answers 202
    pause plan
    ask POST /v1/runs "{\"runId\":\"start\",\"drainTimeoutMs\":1,\"document\":$(plan start '{"drainTimeout":"1h"}')}"; answers 202
    pause start
    ask POST /v1/runs "{\"runId\":\"bad\",\"drainTimeoutMs\":0,\"document\":$(plan bad '{}')}"; answers 400
    touch end
    stop_serving
    rm end
    printf '[serve.pause]\ndrainTimeoutMs = 1\n' >cairn.toml
    serve
    ask POST /v1/runs "{\"runId\":\"service\",\"document\":$(plan service '{}')}"; answers 202
    pause service
    touch end
    stop_serving
}

# In the profile temporal a pause may stop what is in flight, by its plan, its start and its service; the stronger one says no, too. What was stopped
# runs again after the resume, as the same logical attempt.
test_cancel_on_pause_is_configured_by_plan_start_and_service_C_17() {
    unconfined
    step() { shell a "cd $PWD; echo \$CAIRN_ENGINE_ATTEMPT >>began.$1; until [ -e end ]; do sleep 0.01; done"; }
    plan() { plan_text p "$(step "$1")" | jq -c --argjson m "$2" 'fromjson | .metadata += ($m + {targetAdapter: "temporal"}) | tojson'; }
    pid_of() { grep -lsa "CAIRN_RUN_ID=$1" /proc/[0-9]*/environ | head -n 1; }
    begun() { [ "$(wc -l <"began.$1")" = "$2" ]; }
    signal() { ask POST "/v1/runs/$1/signals" "{\"signalId\":\"$(cat /proc/sys/kernel/random/uuid)\",\"signalType\":\"$2\"}"; answers 202; }
    gone() { [ -z "$(pid_of "$1")" ]; }
    stops() { # RUN: paused, its process ended, and begun again as engine attempt 2 of the same logical attempt
        wait_for test -s "began.$1"
        signal "$1" PAUSE
        wait_for gone "$1"
        signal "$1" RESUME
        wait_for begun "$1" 2
        equal "$(tr '\n' ' ' <"began.$1")" '1 2 ' "$1"
        ask GET "/v1/runs/$1" && equal "$(jq -r '.steps[0] | "\(.status) \(.logicalAttemptId)"' body)" 'RUNNING 1' "$1"
    }
    goes_on() {
        wait_for test -s "began.$1"
        signal "$1" PAUSE
        [ -n "$(pid_of "$1")" ] || fail "$1 was stopped"
        signal "$1" RESUME
    }
    serve
    ask POST /v1/runs "{\"runId\":\"plan\",\"document\":$(plan plan '{"cancelOnPause":true}')}"; answers 202
    stops plan
    ask POST /v1/runs "{\"runId\":\"start\",\"cancelOnPause\":true,\"document\":$(plan start '{"cancelOnPause":false}')}"; answers 202
    stops start
    ask POST /v1/runs "{\"runId\":\"not\",\"cancelOnPause\":false,\"document\":$(plan not '{"cancelOnPause":true}')}"; answers 202
    goes_on not
    touch end
    done_all() { for run in "$@"; do ask GET "/v1/runs/$run/status" && [ "$(jq -r .status body)" = COMPLETED ] || return 1; done; }
    wait_for done_all plan start not
    equal "$(cat began.not)" 1 'a run that goes on'
    stop_serving
    rm end
    printf '[serve.pause]\ncancelOnPause = true\n' >cairn.toml
    serve
    ask POST /v1/runs "{\"runId\":\"service\",\"document\":$(plan service '{}')}"; answers 202
    stops service
    ask POST /v1/runs "{\"runId\":\"but\",\"document\":$(plan but '{"cancelOnPause":false}')}"; answers 202
    goes_on but
    touch end
    wait_for done_all service but
    stop_serving
    cairn_is 0 log verify --all --store "sqlite:$PWD/store.db"
}

test_one_service_a_store() {
    serve
    cairn_is 6 serve --store "sqlite:$PWD/store.db" --listen 127.0.0.1:0
    has err "process $server serves this store already"
    kill -9 $server
    wait $server 2>/dev/null
    serve
    ask GET /v1/whoami && answers 200
}

test_another_writer_of_the_audit_ends_the_service() {
    serve
    real=$token
    token=wrong
    ask GET /v1/runs && answers 401
    notes() { sqlite3 -cmd '.timeout 5000' store.db "$1"; }
    written() { [ "$(notes "select count(*) from notes where space = 'audit'")" = 1 ]; }
    wait_for written
    # as if a second service had written the next record
    notes "insert into notes(space, key, version, value) select space, replace(key, '00001', '00002'), version, value from notes where space = 'audit'"
    ask GET /v1/runs && answers 401
    wait_for eval '! kill -0 $server'
    wait $server && fail "the service ended well"
    has serve.err 'another process writes to this store'
}

test_the_audit_is_verified_here_and_at_a_server() {
    serve
    keep=$token token=wrong
    for i in 1 2 3 4; do ask GET /v1/runs && answers 401; done
    token=$keep
    for i in $(seq 1 5); do ask POST /v1/tokens "{\"name\": \"t$i\", \"roles\": [\"operator\"]}" && answers 201; done
    operator=$(jq -r .token body)
    ask GET /v1/audit:verify && answers 200
    equal "$(jq -c '[.intact, .records, .fault, (.headHash|length)]' body)" '[true,5,null,64]'
    CAIRN_TOKEN=$token cairn_is 0 audit verify --server "$url"
    has out '5 records intact, the last is'
    token=$operator
    ask GET /v1/audit:verify && answers 403
    stop_serving
    cairn_is 0 audit verify --store "sqlite:$PWD/store.db" -o json
    equal "$(jq -c '[.intact, .tenantId]' out)" '[true,"default"]'
    cairn_is 0 audit verify --store "sqlite:$PWD/store.db" --tenant nobody
    has out '0 records intact'
    # What the store refuses to do is done behind its back.
    python3 - "$PWD/store.db" <<'PY'
import shutil, sqlite3, sys
def spoil(name, sql):
    copy = sys.argv[1].replace("store.db", name + ".db")
    shutil.copy(sys.argv[1], copy)
    db = sqlite3.connect(copy)
    for (trigger,) in db.execute("select name from sqlite_master where type = 'trigger'").fetchall():
        db.execute(f"drop trigger {trigger}")
    for one in sql: assert db.execute(one).rowcount >= 1, one
    db.commit()
mine = "space = 'audit' and key like 'default/%"
spoil("changed", [f"update notes set value = cast(replace(value, 'token.create', 'token.list') as blob) where {mine}3'"])
spoil("gone", [f"delete from notes where {mine}2'"])
spoil("cut", [f"delete from notes where {mine}5'", f"delete from notes where {mine}6'"])
spoil("added", [f"insert into notes(space, key, version, value) select space, replace(key, '00006', '00007'), version, value from notes where {mine}6'"])
spoil("bad", [f"update notes set value = x'78' where {mine}1'"])
spoil("swapped", [f"update notes set key = 'default/x' where {mine}1'", f"update notes set key = replace(key, '0002', '0001') where {mine}2'",
                  "update notes set key = 'default/0000000000000002' where key = 'default/x'"])
spoil("headless", ["delete from notes where space = 'audit.head' and key = 't/default'"])
PY
    while read -r name seq what; do
        cairn_is 8 audit verify --store "sqlite:$PWD/$name.db" -o json
        equal "$(jq -r '"\(.fault.seq) \(.fault.what)"' out)" "$seq $what" "$name"
    done <<'END'
changed 4 changed
gone 2 missing
cut 5 missing
added 7 changed
bad 1 malformed
swapped 1 order
headless 1 changed
END
    cairn_is 8 audit verify --store "sqlite:$PWD/gone.db"
    has out '1 record intact, record 2: missing'
}

test_requests_have_names_of_their_own_after_a_restart() {
    for i in 1 2; do
        serve
        ask GET /v1/whoami && sed -n 's/^Cairn-Request-Id: //p' head >>ids
        ask GET /v1/whoami && sed -n 's/^Cairn-Request-Id: //p' head >>ids
        stop_serving
    done
    equal "$(grep -cE '^[0-9a-f]{16}' ids) $(sort -u ids | wc -l)" '4 4' 'names'
}

test_readyz_tells_of_real_writes() {
    serve
    token_kept=$token token=
    ask GET '/readyz?verbose' && answers 200 && equal "$(cat body)" ok 'without a token'
    ask GET /startupz && answers 200
    token=$token_kept
    ask GET '/readyz?verbose' && answers 200
    equal "$(jq -r '[.ready, .checks[].ok] | all' body)" true checks
    equal "$(jq -r '[.checks[].name] | join(" ")' body)" 'engine store open projector' names
    kill -STOP $server
    wait_for is_stopped $server
    kill -CONT $server
    ask GET '/readyz' && answers 200
}

test_readyz_tells_no_more_to_a_revoked_token() {
    serve
    owner=$token
    ask POST /v1/tokens '{"roles":["Operator"],"name":"x"}' && answers 201
    token=$(jq -r .token body) id=$(jq -r .id body)
    ask GET '/readyz?verbose' && answers 200 && equal "$(jq -r .ready body)" true 'before'
    revoked=$token token=$owner
    ask DELETE "/v1/tokens/$id" && answers 204
    token=$revoked
    ask GET '/readyz?verbose' && answers 200 && equal "$(cat body)" ok 'after'
    stop_serving
}

test_es_1_4d_metrics_are_fed() {
    serve
    start "$(plan_text good "$noop")" r1 && answers 200
    start "$(plan_text bad "$(shell a 'exit 3')")" r2 && answers 200
    start "$(plan_text slow "$(shell a 'sleep 20')")" r3 'X-None: 1' && answers 202
    wait_for eval 'ask GET /v1/runs/r3/status && [ "$(jq -r .status body)" = RUNNING ]'
    equal "$(metric 'cairn_runs_total{plan="good",status="COMPLETED"}')" 1
    equal "$(metric 'cairn_runs_total{plan="bad",status="FAILED"}')" 1
    equal "$(metric 'cairn_runs_active{plan="slow",status="RUNNING"}')" 1
    equal "$(metric 'cairn_run_errors_total{plan="bad",code="EXIT_NONZERO"}')" 1
    equal "$(metric 'cairn_run_duration_seconds_count{plan="good"}')" 1
    equal "$(metric 'cairn_http_requests_total{method="POST",route="/v1/runs",status="200"}')" 2
    [ "$(metric cairn_append_seconds_count)" -ge 3 ] || fail "appends are not counted"
    [ "$(metric cairn_events_total)" -ge 10 ] || fail "events are not counted"
    ask GET /metrics && has head 'text/plain' && has body 'cairn_build_info{version="'
    ask GET /metrics '' 'Accept: application/openmetrics-text; version=1.0.0' && has head 'openmetrics-text'
    equal "$(tail -n 1 body)" '# EOF'
    token=
    ask GET /metrics && answers 401
}

test_a_token_has_so_many_streams() {
    serve
    start "$(plan_text p "$(shell a 'sleep 20')")" r1 'X-None: 1' && answers 202
    for i in $(seq 16); do
        curl -sN -m 20 -H "Authorization: Bearer $token" -H 'Accept: text/event-stream' "$url/v1/runs/r1/events" >"stream.$i" &
    done
    for i in $(seq 16); do wait_for grep -q '^id: 2' "stream.$i"; done
    ask GET /v1/runs/r1/events '' 'Accept: text/event-stream' && answers 429 && code_is TOO_MANY_STREAMS && has head 'Retry-After: 5'
    ask GET '/v1/runs/r1/steps/a/logs?follow=true' && answers 429 && code_is TOO_MANY_STREAMS && has head 'Retry-After: 5'
    kill %2
    wait_for eval 'curl -sN -m 1 -H "Authorization: Bearer $token" -H "Accept: text/event-stream" "$url/v1/runs/r1/events" | grep -q "^id: 1"'
}

test_the_service_manager_is_told() {
    cat >manager.py <<'PY'
import os, socket, subprocess, sys, time
path = os.path.abspath('notify')
box = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
box.bind(path)
box.settimeout(15)
env = dict(os.environ, NOTIFY_SOCKET=path, WATCHDOG_USEC='200000')
server = subprocess.Popen(sys.argv[1:], env=env, stderr=open('serve.err', 'w'))
def until(word):
    while True:
        text = box.recv(4096).decode()
        print(text, flush=True)
        if word in text: return
until('READY=1')
until('WATCHDOG=1')
until('WATCHDOG=1')
server.send_signal(1)
until('RELOADING=1')
until('READY=1')
server.terminate()
until('STOPPING=1')
sys.exit(server.wait())
PY
    python3 manager.py "$CAIRN" serve --store "sqlite:$PWD/store.db" --listen 127.0.0.1:0 >told || fail "$(cat told serve.err)"
    has told 'STATUS=serving sqlite:'
    has serve.err 'tokens are read again'
}

test_sighup_takes_up_a_new_certificate() {
    new_certificate() { openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj "/CN=$1" -addext subjectAltName=IP:127.0.0.1 2>/dev/null; }
    name() { openssl s_client -connect "${url#https://}" </dev/null 2>/dev/null | openssl x509 -noout -subject; }
    new_certificate one
    serve --tls-cert cert.pem --tls-key key.pem
    case $(name) in *one*) ;; *) fail "certificate: $(name)" ;; esac
    # one that cannot be read leaves the old one in force, and is not called a success
    echo nothing >cert.pem
    kill -HUP $server
    wait_for grep -q 'tokens are read again, certificates are not' serve.err
    has serve.err 'certificate not read again, the old one stays'
    hasnt serve.err 'certificates and tokens are read again'
    case $(name) in *one*) ;; *) fail "certificate after a failed reload: $(name)" ;; esac
    new_certificate two
    kill -HUP $server
    wait_for eval 'name | grep -q two'
    wait_for grep -q 'certificates and tokens are read again' serve.err
    stop_serving
}

test_logs_of_a_service_are_objects() {
    CAIRN_LOG=json "$CAIRN" serve --store "sqlite:$PWD/store.db" --listen 127.0.0.1:0 >serve.out 2>serve.err &
    server=$!
    wait_for grep -q 'token of the first start' serve.err
    kill -TERM $server
    wait $server
    jq -e .msg serve.err >msgs || fail "not JSON: $(cat serve.err)"
    has msgs 'listening on http://127.0.0.1:'
}

signal() { ask POST "/v1/runs/$1/signals" "$(jq -nc --arg t "$2" --arg id "$(cat /proc/sys/kernel/random/uuid)" --argjson p "$3" '{signalId: $id, signalType: $t, payload: $p}')"; }

test_es_3_12_alerts_outlive_the_service_with_who_saw_them() {
    serve
    start "$(plan_text p "$(shell a 'sleep 20')")" r1 'X-None: 1' && answers 202
    # escalations are internal: no caller from outside may send them, what has the store may
    "$CAIRN" signal r1 ESCALATE_ALERT --json '{"level":"CRITICAL","note":"look"}' "${store[@]}" >out 2>err || true
    wait_for eval 'ask GET /v1/alerts && [ "$(jq ".items | length" body)" = 1 ]'
    signal r1 EMERGENCY_STOP '{"reason":"fire"}' && answers 202
    wait_for eval 'ask GET /v1/alerts && [ "$(jq ".items | length" body)" = 2 ]'
    equal "$(jq -r '[.items[] | .name + " " + .priority] | sort | join(",")' body)" 'ALERT_ESCALATED P1,DESTRUCTIVE_SIGNAL P1'
    has body 'CRITICAL: look'
    equal "$(metric 'cairn_alerts_open{priority="P1"}')" 2
    ask GET /v1/alerts
    id=$(jq -r '.items[] | select(.name == "DESTRUCTIVE_SIGNAL").id' body)
    ask POST "/v1/alerts/$id:ack" '{}' && answers 200
    equal "$(jq -r .state body)" closed
    who=$(jq -r .acknowledgedBy body)
    CAIRN_SERVER=$url CAIRN_TOKEN=$token cairn_is 0 alert ls -o table; has_line out "DESTRUCTIVE_SIGNAL +closed +$who"
    CAIRN_SERVER=$url CAIRN_TOKEN=$token cairn_is 0 alert ack "${id:0:12}"; has out "$id"
    ask POST '/v1/alerts/00000000000000000000000000000000:ack' '{}' && answers 404
    kill -9 $server
    wait $server 2>/dev/null
    serve
    ask GET '/v1/alerts?state=open' && equal "$(jq -r '[.items[].name] | join(",")' body)" ALERT_ESCALATED
    ask GET '/v1/alerts'
    equal "$(jq -r '.items[] | select(.name == "DESTRUCTIVE_SIGNAL") | .acknowledgedBy' body)" "$(ask GET /v1/whoami && jq -r .id body)"
    ask GET /v1/audit && has body alert.ack
}

# A server that notes what it gets: collector FILE [STATUS...]; each status is given once, the last for ever. $collector is its port.
collector() {
    cat >collector.py <<'PY'
import http.server, json, sys
out, codes = sys.argv[1], [int(c) for c in sys.argv[2:]] or [200]
class Door(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        code = codes.pop(0) if len(codes) > 1 else codes[0]
        with open(out, 'a') as f: f.write(json.dumps({'status': code, 'path': self.path, 'key': self.headers.get('X-Key'), 'body': body.decode()}) + '\n')
        self.send_response(code)
        self.send_header('Content-Length', '0')
        self.end_headers()
    def log_message(self, *a): pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Door)
open('port', 'w').write(str(server.server_port))
server.serve_forever()
PY
    rm -f port
    python3 collector.py "$@" &
    wait_for test -s port
    collector=$(cat port)
}

test_traces_of_ended_runs_reach_a_collector() {
    collector traces 503 200
    echo s3cret >key && chmod 600 key
    printf '[serve.otlp]\nurl = "http://127.0.0.1:%s"\nheaders = { X-Key = { file = "%s/key" } }\n' "$collector" "$PWD" >cairn.toml
    serve
    start "$(plan_text p "$(shell a 'echo hi')")" r1 && answers 200
    wait_for grep -q '"status": 200' traces
    equal "$(jq -r 'select(.status == 200) | .path + " " + .key' traces)" '/v1/traces s3cret'
    jq -r 'select(.status == 200) | .body' traces | jq -S . >got
    "$CAIRN" trace r1 "${store[@]}" -o json | jq -S . >wanted
    cmp got wanted || fail "not the trace of the run: $(diff got wanted | head -n 5)"
    # after a restart it goes on behind what was posted
    wait_for eval '[ -n "$(sqlite3 store.db "select value from notes where space = '"'otlp'"'")" ]'
    stop_serving
    serve
    start "$(plan_text p "$(shell a 'echo hi')")" r2 && answers 200
    wait_for eval '[ "$(wc -l <traces)" = 3 ]'
    kill %1
}

test_es_4_sinks_of_the_configuration() {
    collector hooks 400
    cat >cairn.toml <<TOML
[serve.fetch]
allow = [{ uri = "http://127.0.0.1:$collector/", allowPrivate = true }]
[[serve.sinks]]
name = "copy"
type = "file"
path = "$PWD/events.jsonl"
[[serve.sinks]]
name = "hook"
type = "webhook"
url = "http://127.0.0.1:$collector/in"
types = ["RunCompleted"]
TOML
    serve
    start "$(plan_text p "$noop")" r1 && answers 200
    wait_for eval 'grep -q RunCompleted events.jsonl'
    wait_for eval 'ask GET /v1/dlq && [ "$(jq ".items | length" body)" = 1 ]'
    id=$(jq -r '.items[0].id' body)
    ask GET /v1/outbox && equal "$(jq -r '[.items[].name] | join(" ")' body)" 'copy hook'
    wait_for eval 'ask GET /v1/alerts && grep -q EVENT_BUS_DELIVERY_FAILED body'
    one_letter() { [ "$(metric 'cairn_dlq_size{sink="hook"}')" = 1 ]; }
    wait_for one_letter
    ask POST "/v1/dlq/$id:redrive" '{"reason":"mended"}' && answers 200 && equal "$(jq .count body)" 1
    wait_for eval '[ "$(wc -l <hooks)" -ge 2 ]'
    wait_for eval 'ask GET /v1/dlq && [ "$(jq ".items | length" body)" = 1 ]'
    ask DELETE "/v1/dlq/$id?reason=old" && answers 200
    ask GET /v1/dlq && equal "$(jq '.items | length' body)" 0
    ask DELETE "/v1/dlq/$id?reason=old" && answers 404
    wait_for eval 'ask GET "/v1/alerts?state=open" && [ "$(jq ".items | length" body)" = 0 ]'
    lines=$(grep -vc "^{\"alert\"" events.jsonl)
    ask POST '/v1/outbox/copy:rewind' '{"position":0,"reason":"lost"}' && answers 200
    wait_for eval '[ "$(wc -l <events.jsonl)" -ge $((lines * 2)) ]'
    ask POST '/v1/outbox/nobody:rewind' '{"position":0,"reason":"lost"}' && answers 404 && has body nobody
    ask POST /v1/dlq:redrive '{"sink":"copy","reason":"none there"}' && answers 200 && equal "$(jq -c . body)" '{"count":0}'
    ask POST /v1/dlq:redrive '{"sink":"nobody","reason":"none there"}' && answers 404 && has body nobody
    ask GET /v1/audit && has body dlq.replay && has body outbox.rewind && has body mended
    stop_serving
    printf '[[serve.sinks]]\nname = "copy"\ntype = "pigeon"\n' >cairn.toml
    cairn_is 2 serve "${store[@]}" --listen 127.0.0.1:0
    has err serve.sinks
    kill %1
}

# A receiver of webhooks: answers what the file `code` says (gone: nobody listens), and writes down what it took with 200.
receiver() {
    cat >receiver.py <<'PY'
import http.server, json, sys
class Door(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_POST(self):
        body, code = self.rfile.read(int(self.headers['Content-Length'])).decode(), int(open('code').read())
        with open(f'took.{code}', 'a') as f: f.write(json.dumps({'id': self.headers.get('webhook-id'), 'type': self.headers.get('ce-type')}) + '\n')
        self.send_response(code)
        self.send_header('Content-Length', '0')
        self.end_headers()
    def log_message(self, *a): pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Door)
open('port', 'w').write(str(server.server_port))
server.serve_forever()
PY
    rm -f port
    python3 receiver.py "${1:-0}" &
    receiver=$!
    wait_for test -s port
    port=$(cat port)
}
hook() { # SETTING...: a sink that is tried at once and again
    printf '[serve.fetch]\nallow = [{ uri = "http://127.0.0.1:%s/", allowPrivate = true }]\n[[serve.sinks]]\nname = "hook"\ntype = "webhook"\nurl = "http://127.0.0.1:%s/in"\nmode = "binary"\nbackoffMs = 1\nprobeMaxMs = 50\n' "$port" "$port"
    printf '%s\n' "$@"
}

# What a sink does not take is in the store, and nowhere else: a service that dies with SIGKILL while nobody listens has lost nothing of it.
test_events_of_a_publish_that_failed_are_in_the_store_for_who_tries_again_ES_4c() {
    receiver
    kill $receiver; wait $receiver 2>/dev/null # the port is known, and nobody is there
    hook 'alerts = false' >cairn.toml
    serve
    for run in r1 r2 r3; do start "$(plan_text p "$noop" "${noop/\"a\"/\"b\"}")" $run && answers 200; done
    owed=$(sqlite3 store.db 'select count(*) from workflow_events')
    failing() { ask GET /v1/outbox && [ "$(jq -r '.items[0] | "\(.circuit) \(.waiting) \(.lastError != null)"' body)" = "open $owed true" ]; }
    wait_for failing
    kill -9 $server; wait $server 2>/dev/null
    # The rows: the log itself, behind a cursor that has not moved over any of them.
    cursor=$(sqlite3 store.db "select coalesce(max(json_extract(cast(value as text), '\$.position')), 0) from notes where space = 'sink' and key = 'hook'")
    equal "$(sqlite3 store.db "select count(*) from workflow_events where position > ${cursor:-0}")" "$owed" 'events behind the cursor'
    echo 200 >code
    receiver "$port"
    serve
    delivered() { ask GET /v1/outbox && [ "$(jq -r '.items[0] | "\(.circuit) \(.waiting)"' body)" = 'closed 0' ]; }
    wait_for delivered
    sqlite3 store.db "select run_id || ':' || sequence from workflow_events" | sort >wanted
    jq -r .id took.200 | sort -u | diff - wanted || fail 'not every event came'
    for run in r1 r2 r3; do jq -r .id took.200 | grep "^$run:" | awk '!seen[$0]++' >order; sort -t: -k2n order | cmp - order || fail "$run came out of order"; done
    ask GET /v1/dlq && equal "$(jq '.items | length' body)" 0 'silence is no refusal'
    kill $receiver
}

# A letter is an alert of the first priority by its name, which no time and no success of others ends: a person does.
test_a_dead_letter_is_an_alert_of_the_first_priority_that_a_person_ends_ES_4k() {
    echo 500 >code
    receiver
    hook 'maxAttempts = 3' 'types = ["RunCompleted"]' 'alerts = false' >cairn.toml
    serve
    start "$(plan_text p "$noop")" bad && answers 200
    letters() { ask GET /v1/dlq && [ "$(jq -r '[.items[].runId] | join(" ")' body)" = "$1" ]; }
    wait_for letters bad
    equal "$(jq -r '.items[0].attempts' body) $(wc -l <took.500)" '3 3' 'attempts before it is one'
    open_alert() { ask GET '/v1/alerts?state=open' && jq -r '[.items[] | .name + " " + .priority] | join(" ")' body; }
    wait_for eval '[ "$(open_alert)" = "EVENT_BUS_DELIVERY_FAILED P1" ]'
    CAIRN_TOKEN=$token cairn_is 0 alert ls --server "$url" && has out EVENT_BUS_DELIVERY_FAILED && has out P1
    # The receiver is well again: what comes later is taken, and the letter stays where it is.
    echo 200 >code
    start "$(plan_text p "$noop")" good && answers 200
    wait_for test -s took.200
    equal "$(jq -r .id took.200)" 'good:5'
    stop_serving
    serve # nor does a new process end it
    letters bad || fail "the letter is gone: $(cat body)"
    equal "$(open_alert)" 'EVENT_BUS_DELIVERY_FAILED P1'
    CAIRN_TOKEN=$token cairn_is 0 dlq redrive --all hook --server "$url" --reason mended
    wait_for letters ''
    equal "$(jq -r .id took.200 | tr '\n' ' ')" 'good:5 bad:5 '
    wait_for eval '[ "$(open_alert)" = "" ]'
    kill $receiver
}

test_sinks_letters_and_alerts_are_shown_and_moved_by_those_whose_they_are() {
    local platform acme globex blue id seen
    collector hooks 400
    cat >cairn.toml <<TOML
[serve.fetch]
allow = [{ uri = "http://127.0.0.1:$collector/", allowPrivate = true }]
[[serve.sinks]]
name = "ours"
type = "webhook"
url = "http://127.0.0.1:$collector/in"
types = ["RunCompleted"]
tenants = ["acme"]
[[serve.sinks]]
name = "shared"
type = "file"
path = "$PWD/events.jsonl"
TOML
    serve
    platform=$token
    of() { ask POST /v1/tokens "$1" && answers 201 && jq -r .token body; }
    acme=$(of '{"roles":["Admin","Engineer"],"tenantId":"acme"}') globex=$(of '{"roles":["Admin","Engineer"],"tenantId":"globex"}')
    token=$acme blue=$(token=$acme && of '{"roles":["Operator","Engineer","Admin"],"projects":["blue"]}')
    token=$acme
    for place in red blue; do
        ask POST /v1/runs "{\"document\":$(plan_text p "$noop"),\"runId\":\"$place\",\"projectId\":\"$place\"}" 'Prefer: wait=20' && answers 200
    done
    wait_for eval 'ask GET /v1/dlq && [ "$(jq ".items | length" body)" = 2 ]'
    wait_for eval 'ask GET /v1/alerts && [ "$(jq ".items | length" body)" -ge 1 ]'
    id=$(ask GET /v1/dlq && jq -r '.items[] | select(.runId == "red") | .id' body)
    # another tenant: the sink is not there
    token=$globex
    ask GET /v1/outbox && equal "$(jq -r '[.items[].name] | join(" ")' body)" shared
    ask POST /v1/outbox/ours:rewind '{"position":0,"reason":"mischief"}' && answers 404
    ask POST /v1/dlq:redrive '{"sink":"ours","reason":"mischief"}' && answers 404 && sed s/ours/none/ body >ours
    ask POST /v1/dlq:redrive '{"sink":"none","reason":"mischief"}' && equal "$(jq .detail ours)" "$(jq .detail body)" 'of a sink that is another tenant'"'"'s, and of none'
    ask GET /v1/dlq && equal "$(jq '.items | length' body)" 0
    # a sink of all tenants goes back for each of them, and skips events for none
    wait_for grep -q RunCompleted events.jsonl
    ask POST /v1/outbox/shared:rewind '{"position":0,"reason":"again"}' && answers 200
    ask POST /v1/outbox/ours:rewind '{"reason":"on again"}' && answers 404
    # a token of one project sees what is of that project
    token=$blue
    ask GET /v1/dlq && equal "$(jq -r '[.items[].runId] | join(" ")' body)" blue
    ask GET /v1/alerts && equal "$(jq -r '[.items[] | .runId // "none"] | unique - ["blue"] | join(" ")' body)" ''
    ask GET /v1/outbox && equal "$(jq -c '[.items[] | has("delivered") or has("lastError")] | unique' body)" '[false]'
    ask POST "/v1/dlq/$id:redrive" '{"reason":"not mine"}' && answers 404
    ask POST /v1/dlq:redrive '{"sink":"ours","reason":"all"}' && answers 404
    ask POST /v1/dlq:redrive '{"sink":"ours","runId":"red","reason":"all"}' && answers 404
    ask POST /v1/dlq:redrive '{"sink":"ours","runId":"blue","reason":"mine"}' && answers 200
    token=$platform
    stop_serving
    kill %1
}

test_doctor_explains_a_broken_service() {
    printf '[serve]\nlisten = "127.0.0.1:7999"\nreders = 1\n' >cairn.toml
    cairn_is 1 doctor serve "${store[@]}"
    has err 'cairn.toml:3:1: there is no "reders" in serve' && has err 'did you mean readers?'
    rm cairn.toml
    serve
    port=${url##*:}
    chmod 644 store.db.token
    cairn_is 1 doctor serve "${store[@]}"
    has err 'others can read the token' && has err 'chmod 600'
    chmod 600 store.db.token
    cairn_is 0 doctor serve "${store[@]}"
    # how the running one is
    cairn_is 0 doctor server --server "$url" --token-file store.db.token
    echo cairn_wrong >wrong
    cairn_is 1 doctor server --server "$url" --token-file wrong
    HOME=/nowhere XDG_STATE_HOME=/nowhere "$CAIRN" doctor server --server "$url" 2>err && fail 'without a token'
    equal "$(grep -c 'there is no token for' err)" 1 'said once'
    # another store, the same address
    printf '[serve]\nlisten = "127.0.0.1:%s"\n' "$port" >cairn.toml
    cairn_is 0 run --store "sqlite:$PWD/other.db" "$root/examples/hello.json"
    cairn_is 1 doctor serve --store "sqlite:$PWD/other.db"
    has err "127.0.0.1:$port"
    printf '[serve]\ntls = { certificate = "/nowhere.pem", key = "/nowhere.key" }\nlisten = "127.0.0.1:0"\n' >cairn.toml
    cairn_is 1 doctor serve --store "sqlite:$PWD/other.db"
    has err nowhere
    rm cairn.toml
    stop_serving
    cairn_is 0 doctor server "${store[@]}" # none runs: nothing to say
    # the token is lost
    rm store.db.token
    printf '[serve]\nlisten = "127.0.0.1:0"\n' >cairn.toml
    cairn_is 1 doctor serve "${store[@]}"
    has err 'the token of the first start is not at'
}

test_doctor_sees_what_is_missing_at_a_server() {
    collector hooks 400
    cat >cairn.toml <<TOML
[serve]
localSteps = false
[serve.fetch]
allow = [{ uri = "http://127.0.0.1:$collector/", allowPrivate = true }]
[[serve.sinks]]
name = "hook"
type = "webhook"
url = "http://127.0.0.1:$collector/in"
TOML
    serve
    start "$(plan_text p "$(shell a true)")" r1 'X-None: 1' && answers 202
    wait_for eval '! "$CAIRN" doctor server --server "$url" --token-file store.db.token 2>err && grep -q "wait for a worker" err && grep -q "dead letters" err'
    has err 'sink hook has'
    kill %1
}

test_steps_of_a_service_are_confined_without_a_word() {
    serve
    secret=$PWD/outside
    echo hidden >"$secret"
    ask POST /v1/runs "{\"document\":$(plan_text p "$(jq -nc --arg c "cat $secret; cat $PWD/store.db.token; env; true" '{stepId: "a", kind: "shell", with: {command: $c}}')"),\"runId\":\"r1\"}" 'Prefer: wait=20'
    answers 200
    ask GET /v1/runs/r1/steps/a/output
    hasnt body "$(basename "$HOME")/state"
    hasnt body XDG_STATE_HOME
    printf 'name: n\nnodes:\n  - {id: a, bash: "true"}\n' >n.yaml
    if "$CAIRN" run n.yaml --confine files --store memory: --progress none >/dev/null 2>&1; then # the kernel has Landlock
        hasnt body hidden
        hasnt body cairn_
    fi
}

run_tests "$@"
