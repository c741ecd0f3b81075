# For tests of `cairn host conductor`: a Conductor (the fake, or the real one of $CAIRN_CONDUCTOR_URL), a server of Cairn, hosts.
#
#   conductor [own]                $api is its address; live=yes when it is a real one. own: it is this test's alone, and may be killed
#   conductor_down, conductor_up   kill -9, and the same one again; conductor_forgets while it is down
#   between                        hosts call Conductor through a proxy from now on (http_proxy.py); faults JSON, hold CALL WHEN, release
#   site [LEASE [FLAG...]]         a server whose steps go to the pool conductor; $host_token is for hosts
#   host NAME [FLAG...]            $host is its process; NAME.err what it says
. "$(dirname "${BASH_SOURCE[0]}")/serve_lib.sh"
unconfined

conductor() {
    x=$(printf '%04x%04x' $RANDOM $RANDOM) # names of a test are its own on a server that all tests share
    live=${CAIRN_CONDUCTOR_URL:+yes} fake_port=0 silent=2s
    if [ -n "$live" ] && [ -z "${1:-}" ]; then
        api=$CAIRN_CONDUCTOR_URL
    else
        [ -z "$live" ] || server_tool conductor-server path >/dev/null || skip 'tools/conductor-server has fetched no server of its own'
        conductor_up
    fi
    carried=$api
}
conductor_up() {
    if [ -n "$live" ]; then
        read -r conductor_pid fake_port < <(server_tool conductor-server start "$PWD/conductor")
    else
        rm -f port
        python3 "$e2e/conductor_fake.py" "$PWD/conductor.db" "$fake_port" >port 2>fake.err &
        conductor_pid=$!
        wait_for test -s port
        fake_port=$(cat port)
    fi
    api=http://127.0.0.1:$fake_port/api
}
conductor_down() {
    kill -9 "$conductor_pid"
    is_gone() { ! grep -qs '^State:.[^Z]' "/proc/$conductor_pid/status"; }
    wait_for is_gone
}
conductor_forgets() { rm -rf conductor.db* conductor/conductor.db* conductor/tmp/*; }
proxy_to() { # URL NAME: its port in NAME.port
    python3 "$e2e/http_proxy.py" "$1" >"$2.port" 2>"$2.err" &
    wait_for test -s "$2.port"
}
between() {
    proxy_to "$api" way
    carried=http://127.0.0.1:$(cat way.port)
}
way() { curl -s -X POST "http://127.0.0.1:$(cat "${3:-way}.port")/proxy/$1" -d "${2:-{\}}"; }
faults() { way faults "$1" >/dev/null; }
hold() { way hold "$(jq -nc --arg c "$1" --arg w "$2" '{call: $c, when: $w}')" "${3:-way}" >/dev/null; } # CALL WHEN [PROXY]
held() { [ "$(way held '' "${1:-way}")" -gt 0 ]; }
there() { curl -s -X "$1" -H 'Content-Type: application/json' ${3:+--data-binary "$3"} "$api$2"; }
site() {
    store=(--store "sqlite:$PWD/store.db")
    serve --route "*=conductor" --lease "${1:-30s}" --drain 0 "${@:2}"
    host_token=$(jq -r .token <(ask POST /v1/tokens '{"name":"host","roles":["Host"],"pool":"conductor"}'; cat body))
}
host() {
    CAIRN_TOKEN=$host_token "$CAIRN" host conductor --server "$url" --conductor "$carried" --pool conductor --name "$1" --site "site-$x" \
        --concurrency 8 -v "${@:2}" >"$1.out" 2>>"$1.err" &
    host=$!
    wait_for grep -q 'carried by' "$1.err"
}
shell() { jq -nc --arg id "$1" --arg c "$2" --argjson d "${3:-[]}" '{stepId: $id, kind: "shell", with: {command: $c}, dependsOn: $d}'; }
start() { ask POST /v1/runs "{\"document\":$(plan_text p "${@:2}"),\"runId\":\"$1\"}" && [ "$status" -lt 300 ] || fail "not started: $(cat body)"; }
ended() { ask GET "/v1/runs/$1/status" && [ "$(jq -r .status body)" = "$2" ]; }
is() { ended "$1" "$2" && [ "$(jq -r '.substatus // ""' body)" = "${3:-}" ]; }
counted() { ask GET "/v1/runs/$1/events" && [ "$(jq -r '.items[].eventType' body | grep -cx "$2")" = "$3" ]; }
signal() { ask POST "/v1/runs/$1/signals" "{\"signalId\":\"$(cat /proc/sys/kernel/random/uuid)\",\"signalType\":\"$2\",\"payload\":${3:-{\}}}"; }
# The workflows of a run, the oldest first: NAME RUN, as [{workflowId, status, input, output, ...}].
workflows() { there POST "/workflow/$1/correlated?includeClosed=true&includeTasks=false" "[\"default/$2\"]" | jq -c '[.[]] | add // [] | sort_by(.createTime)'; }
states() { workflows "$1" "$2" | jq -r 'group_by(.status) | map("\(length) \(.[0].status)") | join(", ")'; }
states_are() { [ "$(states "$1" "$2")" = "$3" ]; }
run_there() { workflows cairn_run "$1" | jq -r '.[-1].workflowId'; } # the newest
shown() { there GET "/workflow/$(run_there "$1")?includeTasks=true" | jq -r ".tasks[-1].outputData | $2"; } # RUN FILTER: of its picture
shows() { [ "$(shown "$1" "$2")" = "$3" ]; }
