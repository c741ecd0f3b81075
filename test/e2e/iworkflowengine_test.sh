# The operations of IWorkflowEngine over HTTP, by their ids.
. "$(dirname "$0")/serve_lib.sh"

noop='{"stepId":"a","kind":"noop"}'
sleeper='{"stepId":"a","kind":"shell","with":{"command":"sleep 30"}}'
event() { ask GET "/v1/runs/$1/events?limit=500" && jq -c ".items[] | select(.eventType == \"$2\")" body; }
# Serves the directory `plans` on a free port: $plans is its URL.
host_plans() {
    mkdir -p plans
    python3 - <<'PY' &
import functools, http.server, os
handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory="plans")
server = http.server.HTTPServer(("127.0.0.1", 0), handler)
open("port.new", "w").write(str(server.server_port))
os.rename("port.new", "port")
server.serve_forever()
PY
    host=$!
    wait_for test -s port
    plans=http://127.0.0.1:$(cat port)
    printf '[serve.fetch]\nallow = [{ uri = "%s/", allowPrivate = true }]\n' "$plans" >cairn.toml
}
ref() { jq -nc --arg u "$plans/$1" --arg s "$2" '{uri: $u, sha256: $s, schemaVersion: "v1.2", planId: "p", planVersion: "1"}'; }
sha() { sha256sum <"$1" | cut -d' ' -f1; }

test_start_status_signal_and_cancel_are_operations_WE_2_1a_WE_2_1d() {
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p "$sleeper"),\"runId\":\"r1\"}" && answers 202
    has_line body '"engineRunRef":'
    ask GET /v1/runs/r1/status && equal "$(jq -r '.status, has("completedAt")' body | tr '\n' ' ')" 'RUNNING false '
    ask POST /v1/runs/r1/signals '{"signalType":"PAUSE","payload":{},"signalId":"11111111-1111-4111-8111-111111111111"}' && answers 202
    ask POST /v1/runs/r1/signals '{"signalType":"CANCEL","payload":{"reason":"enough"},"signalId":"21111111-1111-4111-8111-111111111111"}' && answers 202
    wait_for eval 'ask GET /v1/runs/r1/status && [ "$(jq -r .status body)" = CANCELLED ]'
    jq -e .completedAt body >/dev/null || fail "it has ended and does not say when"
}

test_the_context_goes_into_every_event_WE_2_1e_WE_2_1_3g() {
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p "$sleeper"),\"context\":{\"tenantId\":\"default\",\"projectId\":\"shop\",\"environmentId\":\"prod\",\"runId\":\"r1\"}}"
    answers 202
    # Only the run's id is named from here on: where it belongs is looked up.
    ask POST /v1/runs/r1/signals '{"signalType":"CANCEL","payload":{},"signalId":"11111111-1111-4111-8111-111111111111"}' && answers 202
    wait_for eval 'ask GET /v1/runs/r1/status && [ "$(jq -r .status body)" = CANCELLED ]'
    ask GET '/v1/runs/r1/events?limit=500'
    equal "$(jq -r '[.items[] | .tenantId + "/" + .projectId + "/" + .environmentId] | unique | join(" ")' body)" default/shop/prod
    event r1 RunCancelled | grep -q '"projectId":"shop"' || fail "RunCancelled does not say where"
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop"),\"context\":{\"tenant\":\"default\"}}" && answers 400
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop"),\"context\":{\"targetAdapter\":\"airflow\"}}" && answers 422 && code_is INVALID_TARGET_ADAPTER
}

test_a_plan_is_started_by_reference_and_only_that_is_kept_WE_3_1a_WE_1j_WE_1k() {
    host_plans
    plan_text p "$noop" '{"stepId":"b","kind":"echo","with":{"message":"a canary that is nowhere in the log"}}' | jq -r . | tr -d '\n' >plans/p.json
    serve
    ask POST /v1/runs "{\"planRef\":$(ref p.json "$(sha plans/p.json)"),\"runId\":\"r1\"}" 'Prefer: wait=20' && answers 200
    equal "$(jq -r .status body)" COMPLETED
    event r1 RunStarted >started
    equal "$(jq -r '.payload.planRef.sha256' started)" "$(sha plans/p.json)"
    # Where it came from is in the log, the audit and what the run says of itself; what is behind a question mark may be a signature.
    equal "$(jq -r '.payload.planRef.uri' started)" "$plans/p.json" 'RunStarted'
    ask GET /v1/runs/r1 && equal "$(jq -r .planRef.uri body)" "$plans/p.json"
    ask GET '/v1/audit?limit=500'
    equal "$(jq -r '.items[] | select(.resource.id == "r1" and .action == "run.start") | .details.planRef.uri' body)" "$plans/p.json"
    signed=$(ref p.json "$(sha plans/p.json)" | jq -c '.uri += "?signature=abc"')
    ask POST /v1/runs "{\"planRef\":$signed,\"runId\":\"r2\"}" 'Prefer: wait=20' && answers 200
    equal "$(event r2 RunStarted | jq -r .payload.planRef.uri)" "$plans/p.json"
    ask POST /v1/runs/r1/rerun '{"runId":"r3"}' 'Prefer: wait=10'
    equal "$(event r3 RunStarted | jq -r .payload.planRef.uri)" "$plans/p.json" 'rerun'
    hasnt started canary
    kill $host
    stop_serving
    serve # what cancel, status and signal need is stored with the run; the place the plan came from is gone
    ask GET /v1/runs/r1/status && answers 200
    equal "$(jq -r .status body)" COMPLETED
}

# Several documents at one address: the run says what its reference said, everywhere, and goes on without that address.
test_a_set_at_an_address_is_what_its_reference_says_WE_3_1a_WE_3_1i() {
    unconfined
    host_plans
    printf 'name: parent\nnodes:\n  - {id: g, approval: {message: on}}\n  - {id: w, workflow: child.yaml, depends_on: [g]}\n' >parent.yaml
    jq -nc --rawfile d parent.yaml '{document: $d, file: "parent.yaml", parts: [{from: "parent.yaml", request: "child.yaml", file: "child.yaml",
        text: "name: child\nnodes:\n  - {id: c, bash: echo from the child}\n"}]}' | tr -d '\n' >plans/set.json
    set=$(sha plans/set.json)
    serve
    given=$(jq -nc --arg u "$plans/set.json" --arg s "$set" --arg v "$(sha parent.yaml | cut -c1-12)" '{uri: $u, sha256: $s, schemaVersion: "v1.2", planId: "parent", planVersion: $v}')
    says() { # RUN
        ask GET "/v1/runs/$1" && equal "$(jq -r '.planRef.uri + " " + .planRef.sha256 + " " + .documentSha256' body)" "$plans/set.json $set $(sha parent.yaml)" "$1"
        ask GET "/v1/runs/$1/events?limit=1" && equal "$(jq -r '.items[0].payload | .plan_uri + " " + .plan_sha256 + " " + .document_sha256' body)" "$plans/set.json $set $(sha parent.yaml)" "$1"
    }
    ask POST /v1/runs "{\"planRef\":$given,\"runId\":\"r1\"}" && answers 202
    waits() { ask GET "/v1/runs/$1/status" && [ "$(jq -r .substatus body)" = WAITING_APPROVAL ]; }
    wait_for waits r1
    says r1
    ask GET '/v1/audit?limit=500'
    equal "$(jq -r '.items[] | select(.resource.id == "r1" and .action == "run.start") | .details.planRef.sha256' body)" "$set"
    ask POST /v1/runs/r1/rerun '{"runId":"r2"}' && answers 202
    wait_for waits r2
    says r2
    # A file in it is another by now: the hash of all says so.
    sed -i 's/from the child/from somebody else/' plans/set.json
    ask POST /v1/runs "{\"planRef\":$given,\"runId\":\"r3\"}" && answers 422 && code_is PLAN_INTEGRITY_VALIDATION_FAILED
    ask GET /v1/runs/r3 && equal "$(jq -r '.status + " " + .planRef.uri + " " + .planRef.sha256' body)" "FAILED $plans/set.json $set" 'the reference that was meant'
    kill $host
    kill -9 "$server"; wait "$server" 2>/dev/null
    serve
    says r1
    CAIRN_TOKEN=$token cairn_is 0 approve r1/g --server "$url"
    done_r1() { ask GET /v1/runs/r1/status && [ "$(jq -r .status body)" = COMPLETED ]; }
    wait_for done_r1
    stop_serving
    cairn_is 0 log verify --all "${store[@]}"
    cairn_is 0 log replay r1 "${store[@]}"
}

test_a_changed_plan_is_not_executed_and_alarms_WE_3_1j_WE_3_1k_C_37() {
    host_plans
    plan_text p "$noop" | jq -r . | tr -d '\n' >plans/p.json
    promised=$(sha plans/p.json)
    echo ' ' >>plans/p.json
    changed=$(sha plans/p.json)
    serve
    ask POST /v1/runs "{\"planRef\":$(ref p.json "$promised"),\"runId\":\"r1\"}" && answers 422 && code_is PLAN_INTEGRITY_VALIDATION_FAILED
    hasnt body "$changed"
    equal "$(jq -r .runId body)" r1
    ask GET /v1/runs/r1 && answers 200 && equal "$(jq -r '.status + " " + .rootCause.error.code' body)" 'FAILED PLAN_INTEGRITY_VALIDATION_FAILED'
    ask GET '/v1/runs/r1/events?limit=500' && equal "$(jq -r '[.items[].eventType] | join(" ")' body)" 'RunQueued RunFailed'
    equal "$(jq -r '.items[0].payload.refusal | .code + " " + .uri + " " + .sha256' body)" "PLAN_INTEGRITY_VALIDATION_FAILED $plans/p.json $promised"
    hasnt body "$changed"
    # The same request gets the same answer, whatever stands there now.
    truncate -s -2 plans/p.json
    ask POST /v1/runs "{\"planRef\":$(ref p.json "$promised"),\"runId\":\"r1\"}" && answers 422 && code_is PLAN_INTEGRITY_VALIDATION_FAILED
    has head 'dempotency-Replayed: true'
    ask POST /v1/runs/r1/rerun '{"runId":"again"}' 'Prefer: wait=10'
    ask GET /v1/runs/again/status && hasnt body COMPLETED # nothing can be made of it
    ask GET /v1/alerts && equal "$(jq -r '.items[] | select(.name == "PLAN_INTEGRITY_VALIDATION_FAILED") | .priority' body | tr -d P)" 1 priority
    ask GET /v1/audit
    equal "$(jq -r '.items[] | select(.details.actualSha256) | .details.expectedSha256 + " " + .details.actualSha256' body | head -n 1)" "$promised $changed" 'what the audit says'
    kill $host
}

test_a_reference_that_comes_to_nothing_is_a_failed_run_C_37_WE_4d() {
    host_plans
    plan_text p "$noop" | jq -r . | tr -d '\n' >plans/p.json
    plan_text p "$noop" | jq -c 'fromjson | .metadata.requiresCapabilities = ["workflow.child.workflows"] | .metadata.targetAdapter = "conductor"' | tr -d '\n' >plans/asks.json
    plan_text other "$noop" | jq -r . | tr -d '\n' >plans/other.json
    echo -n '{"steps": 7}' >plans/bad.json
    serve
    while read -r run file code; do
        sum=$( [ -f "plans/$file" ] && sha "plans/$file" || sha plans/p.json)
        ask POST /v1/runs "{\"planRef\":$(ref "$file" "$sum"),\"runId\":\"$run\"}" && answers 422
        [[ $(jq -r .code body) =~ ^($code)$ ]] || fail "$run: $(cat body)"
        refused=$(jq -r .code body)
        ask GET "/v1/runs/$run/events?limit=500"
        equal "$(jq -r '[.items[].eventType] | join(" ")' body)" 'RunQueued RunFailed' "$run"
        equal "$(jq -r '.items[1].payload.errorCode // .items[1].payload.error.code // .items[1].payload.code' body)" "$refused" "$run"
    done <<'END'
gone nowhere.json PLAN_NOT_FOUND
asks asks.json .*CAPABILIT.*
other other.json PLAN_REF_MISMATCH
bad bad.json INVALID_.*
END
    ask POST /v1/runs "{\"planRef\":$(ref asks.json "$(sha plans/asks.json)"),\"runId\":\"r9\"}"
    jq -e .validationReport body >/dev/null || fail "no report: $(cat body)"
    # What is seen without the plan stores nothing.
    old=$(ref p.json "$(sha plans/p.json)" | jq -c '.expiresAt = "2020-01-01T00:00:00Z"')
    ask POST /v1/runs "{\"planRef\":$old,\"runId\":\"old\"}" && answers 422 && code_is PLAN_REF_EXPIRED
    elsewhere=$(ref p.json "$(sha plans/p.json)" | jq -c '.uri = "https://elsewhere.example/p.json"')
    ask POST /v1/runs "{\"planRef\":$elsewhere,\"runId\":\"away\"}" && answers 422 && code_is PLAN_URI_NOT_ALLOWED
    for run in old away; do ask GET /v1/runs/$run && answers 404; done
    stop_serving
    cairn_is 0 log verify --all "${store[@]}"
    cairn_is 0 log replay asks "${store[@]}"
    cairn_is 0 log export gone "${store[@]}" --out gone.cairn
    kill $host
}

test_a_document_in_the_request_becomes_a_reference_WE_3_2a() {
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop"),\"runId\":\"r1\"}" 'Prefer: wait=20' && answers 200
    uri=$(event r1 RunStarted | jq -r .payload.planRef.uri)
    sha=$(event r1 RunStarted | jq -r .payload.planRef.sha256)
    equal "$uri" "cairn://plans/$sha"
    equal "$(plan_text p "$noop" | jq -j . | sha256sum | cut -d' ' -f1)" "$sha"
}

test_documents_in_requests_are_taken_as_the_setting_says_WE_3_2a() {
    printf '[serve.plans]\ninline = "deny"\n' >cairn.toml
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop"),\"runId\":\"r1\"}" && answers 403 && code_is PLAN_INLINE_NOT_ALLOWED
    ask GET /v1/runs/r1 && answers 404
    # The command puts the document as a definition first, and starts that.
    plan_text p "$noop" | jq -j . >p.json
    CAIRN_TOKEN=$token cairn_is 0 run p.json --server "$url" --run-id r2
    equal "$(event r2 RunStarted | jq -r .payload.planRef.uri)" "cairn://plans/$(sha p.json)"
    ask GET "/v1/definitions/p/versions/$(sha p.json)" && answers 200
    ask POST /v1/runs/r2/forks "{\"runId\":\"r3\",\"document\":$(plan_text p "$noop" "$noop")}" && answers 403
    stop_serving
    rm cairn.toml # of this machine alone: over a Unix socket and loopback
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop"),\"runId\":\"r4\"}" && answers 202
    ask GET '/v1/audit?limit=500'
    equal "$(jq -r '.items[] | select(.resource.id == "r4" and .action == "run.start") | .details.inline' body)" true
    stop_serving
    # A client elsewhere, as a proxy names it.
    printf '[serve]\nproxies = ["127.0.0.1"]\n' >cairn.toml
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop"),\"runId\":\"r5\"}" 'X-Forwarded-For: 203.0.113.7' && answers 403 && code_is PLAN_INLINE_NOT_ALLOWED
    stop_serving
    printf '[serve]\nproxies = ["127.0.0.1"]\n[serve.plans]\ninline = "allow"\n' >cairn.toml
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p "$noop"),\"runId\":\"r5\"}" 'X-Forwarded-For: 203.0.113.7' && answers 202
}

# Whatever the document is: it names other files, or its name has slashes. What comes in pieces is denied, too.
test_every_document_starts_where_requests_have_none_WE_3_2a() {
    printf '[serve.plans]\ninline = "deny"\n' >cairn.toml
    unconfined
    serve
    export CAIRN_TOKEN=$token
    printf 'name: child\nnodes:\n  - {id: c, bash: echo from the child}\n' >child.yaml
    printf 'name: parent\nnodes:\n  - {id: w, workflow: child.yaml}\n  - {id: g, approval: {message: on}, depends_on: [w]}\n' >parent.yaml
    printf 'apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: p, path: demo/team/p, version: "1"}\nworkflow:\n  - step: in/a\n    tool: {kind: shell, cmds: "echo p"}\n' >play.yaml
    cairn_is 0 run play.yaml --server "$url" --run-id p1
    ask GET /v1/definitions/demo/team/p/versions && answers 200 && equal "$(jq -r '.items[].name' body)" demo/team/p
    ask GET "/v1/definitions/demo/team/p/versions/$(sha play.yaml)" && answers 200
    ask GET "/v1/definitions/demo/team/p/versions/$(sha play.yaml)/document" && cmp body play.yaml
    ask GET /v1/definitions/demo/versions && equal "$(jq -c .items body)" '[]' 'of a name that begins alike'
    ask POST /v1/definitions/demo/team/p/versions '{}' && answers 405
    ask GET /v1/runs/p1/steps/in/a && answers 200 && equal "$(jq -r '.status' body)" SUCCESS
    ask GET /v1/runs/p1/steps/in/a/attempts/1 && answers 200
    ask GET /v1/runs/p1/steps/in/a/why && answers 200 && has body in/a
    ask GET /v1/runs/p1/steps/in%2Fa && answers 400
    cairn_is 0 definition get demo/team/p "$(sha play.yaml)" --server "$url"
    cairn_is 0 run parent.yaml --server "$url" --run-id r1 --detach
    waits() { ask GET /v1/runs/r1/status && [ "$(jq -r .substatus body)" = WAITING_APPROVAL ]; }
    wait_for waits
    ask GET /v1/definitions/parent/versions && set=$(jq -r '.items[0].sha256' body)
    ask GET '/v1/audit?limit=500'
    equal "$(jq -r '.items[] | select(.resource.id == "r1" and .action == "run.start") | "\(.details.inline // false) \(.details.planRef.uri)"' body)" "false cairn://plans/$set"
    ask GET /v1/runs/r1 && equal "$(jq -r '.planRef.uri + " " + .planRef.sha256 + " " + .documentSha256' body)" "cairn://plans/$set $set $(sha parent.yaml)"
    ask GET "/v1/definitions/parent/versions/$set/document" && equal "$(sha body)" "$set" && equal "$(jq -r '.parts[].text' body)" "$(cat child.yaml)"
    # It goes on from its own store, and a person may approve it as a whole.
    kill -9 "$server"; wait "$server" 2>/dev/null
    serve
    cairn_is 0 approve r1/g --server "$url"
    done_r1() { ask GET /v1/runs/r1/status && [ "$(jq -r .status body)" = COMPLETED ]; }
    wait_for done_r1
    # What a run says of its reference starts another one like it.
    own=$(ask GET /v1/runs/r1 && jq -c '.planRef + {schemaVersion: "v1.2"}' body)
    ask POST /v1/runs "{\"planRef\":$own,\"runId\":\"again\"}" && answers 202
    # A piece that is none, and one that is there twice and not the same: nobody knows which of them was approved.
    put_set() {
        jq -nc --rawfile d parent.yaml --argjson p "$1" '{document: $d, file: "parent.yaml", parts: $p}' | tr -d '\n' >bad
        status=$(curl -s -o body -w '%{http_code}' -X PUT -H "Authorization: Bearer $token" --data-binary @bad "$url/v1/definitions/parent/versions/$(sha bad)")
    }
    part='{"from":"parent.yaml","request":"child.yaml","file":"child.yaml","text":"name: child\nnodes:\n  - {id: c, bash: echo 1}\n"}'
    for parts in '["x"]' "[$part,7]" "[$part,$(jq -c '.text = 5' <<<"$part")]" "[$(jq -c 'del(.file)' <<<"$part")]" "[$part,$(jq -c '.text += " "' <<<"$part")]"; do
        put_set "$parts" && answers 422 && code_is INVALID_PLAN_SCHEMA && has body /parts/
    done
    put_set "[$part,$part]" && answers 201
    # A set that is none, and one whose pieces come in the request.
    echo -n '{"document":"x","file":"f","parts":[],"more":1}' >bad
    status=$(curl -s -o body -w '%{http_code}' -X PUT -H "Authorization: Bearer $token" --data-binary @bad "$url/v1/definitions/parent/versions/$(sha bad)")
    answers 422 && code_is INVALID_PLAN_SCHEMA
    ref="{\"uri\":\"cairn://plans/$set\",\"sha256\":\"$set\",\"schemaVersion\":\"v1.2\",\"planId\":\"parent\",\"planVersion\":\"$(sha parent.yaml | cut -c1-12)\"}"
    ask POST /v1/runs "{\"planRef\":$ref,\"runId\":\"r2\",\"parts\":[{\"from\":\"parent.yaml\",\"request\":\"child.yaml\",\"file\":\"child.yaml\",\"text\":\"x\"}]}" && answers 403 && code_is PLAN_INLINE_NOT_ALLOWED
    ask POST /v1/runs "{\"planRef\":$ref,\"runId\":\"r2\"}" && answers 202
    stop_serving
    cairn_is 0 log verify --all "${store[@]}"
    cairn_is 0 log replay r1 "${store[@]}"
}

# What is made from a run, and what a schedule starts, comes by reference as a start does: no door is left that takes documents alone.
test_forks_reruns_and_schedules_come_by_reference_where_requests_have_no_documents_WE_3_2a() {
    printf '[serve.plans]\ninline = "deny"\n' >cairn.toml
    unconfined
    serve
    export CAIRN_TOKEN=$token
    printf 'name: child\nnodes:\n  - {id: c, bash: echo from the child}\n' >child.yaml
    printf 'name: parent\nnodes:\n  - {id: w, bash: echo alone}\n' >parent.yaml
    cairn_is 0 run parent.yaml --server "$url" --run-id r1
    printf 'name: parent\nnodes:\n  - {id: w, bash: echo other}\n' >other.yaml
    cairn_is 0 fork r1@1 --plan other.yaml --server "$url" --run-id f1
    ask GET /v1/runs/f1 && equal "$(jq -r '.planRef.uri' body)" "cairn://plans/$(sha other.yaml)"
    # With the files that it names: what the run says is the set, in its log and when it is run again.
    printf 'name: parent\nnodes:\n  - {id: w, workflow: child.yaml}\n' >parent.yaml
    cairn_is 0 rerun r1 --plan parent.yaml --server "$url" --run-id f2
    ask GET /v1/runs/f2 && set=$(jq -r '.planRef.uri' body) && [ "$set" != "cairn://plans/$(sha parent.yaml)" ] || fail "no set: $set"
    cairn_is 0 rerun f2 --server "$url" --run-id f3
    ask GET /v1/runs/f3 && equal "$(jq -r '.planRef.uri' body)" "$set"
    cairn_is 0 schedule add nightly parent.yaml --cron '0 3 * * *' --server "$url"
    ask GET /v1/schedules/nightly && equal "$(jq -r .plan.uri body)" "$set"
    ask PUT /v1/schedules/nightly '{"schedule":{"every":"6h"}}' && answers 200 && equal "$(jq -r .plan.uri body)" "$set" 'changed without its document'
    ask POST /v1/schedules/nightly/trigger '{}' 'Prefer: wait=20'
    fired=$(jq -r .runId body)
    ended() { ask GET "/v1/runs/$fired" && [ "$(jq -r .status body)" = COMPLETED ]; }
    wait_for ended
    equal "$(jq -r .planRef.uri body)" "$set"
    ask GET '/v1/audit?limit=500'
    equal "$(jq -r --arg run "$fired" '.items[] | select(.resource.id == $run and .action == "run.start") | .details.inline // false' body)" false
    # Documents, and pieces of them, are refused; references that say something else than what is there, too.
    text=$(jq -Rs . other.yaml) other=$(sha other.yaml)
    ref() { echo "{\"uri\":\"cairn://plans/$1\",\"sha256\":\"$1\",\"schemaVersion\":\"v1.2\",\"planId\":\"$2\",\"planVersion\":\"$(echo "$1" | cut -c1-12)\"}"; }
    for door in 'POST /v1/runs/r1/forks' 'POST /v1/runs/r1/rerun' 'PUT /v1/schedules/new'; do
        ask $door "{\"document\":$text}" && answers 403 && code_is PLAN_INLINE_NOT_ALLOWED
        ask $door "{\"document\":$text,\"planRef\":$(ref "$other" parent)}" && answers 400
        ask $door "{\"parts\":[],\"planRef\":$(ref "$other" parent)}" && answers 400
        ask $door "{\"planRef\":$(ref "$(echo none | sha256sum | cut -d' ' -f1)" parent)}" && answers 422 && code_is PLAN_NOT_FOUND
        ask $door "{\"planRef\":$(ref "$other" somebody)}" && answers 422 && code_is PLAN_REF_MISMATCH
        ask $door "{\"planRef\":$(ref "$other" parent | sed 's|cairn://plans|https://elsewhere.example|')}" && answers 422 && code_is PLAN_URI_NOT_ALLOWED
    done
    ask POST /v1/runs/r1/rerun/preview "{\"planRef\":$(ref "$other" parent)}" && answers 200
    stop_serving
    cairn_is 0 log verify --all "${store[@]}"
}

test_steps_are_checked_by_their_kind_before_anything_runs_WE_3_2c_WE_3_2d_WE_3_2e() {
    serve
    for steps in '{"kind":"noop"}' '{"stepId":"a","kind":"shell","with":{"command":"true","colour":1}}' '{"stepId":"a","kind":"noop","colour":1}' \
        '{"stepId":"a","kind":"exec","with":{"argv":"ls"}}'; do
        ask POST /v1/runs "{\"document\":$(plan_text p "$steps"),\"runId\":\"r1\"}" && answers 422
        has_line body 'INVALID_(STEP|PLAN)_SCHEMA'
        ask GET /v1/runs/r1 && answers 404
    done
    # What the plan asks of the engine is the engine's own question.
    document=$(plan_text p "$noop" | jq -c 'fromjson | .metadata.requiresCapabilities = ["no.such.thing"] | tojson')
    ask POST /v1/runs "{\"document\":$document,\"runId\":\"r1\"}" && answers 422
    has_line body 'CAPABILIT'
}

run_tests "$@"
