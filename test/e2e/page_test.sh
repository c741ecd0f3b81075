# The page that the service carries: what is where, in which form, and what is not swallowed by it.
. "$(dirname "$0")/serve_lib.sh"

html='Accept: text/html,application/xhtml+xml,*/*;q=0.8'
# As a browser asks, without a token.
get() {
    local path=$1
    shift
    token='' ask GET "$path" '' "$@"
}
header() { sed -n "s/^$1: \(.*\)\r/\1/p" head; }

test_the_page_is_carried_and_needs_nothing_else() {
    serve
    get / "$html" && answers 200
    equal "$(header Content-Type)" 'text/html; charset=utf-8'
    equal "$(header Cache-Control)" no-cache
    cp body index
    etag=$(header ETag)
    get / "$html" "If-None-Match: \"x\", W/$etag" && answers 304
    hasnt index 'http:' && hasnt index 'https:'
    hasnt index '<style' && hasnt index 'style=' && hasnt index 'onload'
    [ "$(grep -c '<script' index)" = "$(grep -c '<script type="module" src="/assets/' index)" ] || fail "a script that is not a file of ours"
    for path in $(grep -o '/assets/[^"]*' index); do
        get "$path" && answers 200
        equal "$(header Cache-Control)" 'public, max-age=31536000, immutable'
        case $path in *.js) type=text/javascript ;; *.css) type=text/css ;; *) fail "what is $path" ;; esac
        equal "$(header Content-Type)" "$type; charset=utf-8"
        cmp -s body "$root/web/dist$path" || fail "$path is not what was built"
        get "$path" 'Accept-Encoding: gzip;q=0.5, br' && equal "$(header Content-Encoding)" br
        cmp -s body "$root/web/dist$path.br" || fail "$path is not what was packed"
        get "$path" 'Accept-Encoding: br;q=0, gzip' && equal "$(header Content-Encoding)" gzip
        gunzip -c <body | cmp -s - "$root/web/dist$path" || fail "$path is not what was packed as gzip"
    done
}

test_the_page_has_a_strict_policy() {
    serve
    for path in / /favicon.svg "$(curl -s "$url/" | grep -o '/assets/main[^"]*js')"; do
        get "$path" "$html" && answers 200
        policy=$(header Content-Security-Policy)
        case $policy in *unsafe-inline* | *"'unsafe-eval'"* | *http* | *'*'* | *data:*) fail "$path: $policy" ;; esac
        for must in "default-src 'none'" "script-src 'self' 'wasm-unsafe-eval'" "frame-ancestors 'none'" "base-uri 'none'" "require-trusted-types-for 'script'"; do
            case $policy in *"$must"*) ;; *) fail "$path: $must is not in: $policy" ;; esac
        done
        equal "$(header X-Content-Type-Options)" nosniff
    done
}

test_the_guides_are_carried_below_docs() {
    serve
    get /docs && answers 308 && equal "$(header Location)" /docs/
    get /docs/ && answers 200 && has body 'first run'
    cp body plain
    get /docs/ 'Accept-Encoding: br, gzip' && equal "$(header Content-Encoding)" gzip # carried once
    gunzip -c <body | cmp -s - plain || fail 'packed and plain differ'
    for path in /docs/format/ /docs/tutorial/first-run.html /docs/reference/manual.html /docs/search.html; do
        get "$path" && answers 200 && equal "$(header Content-Type)" 'text/html; charset=utf-8'
        case $(header Content-Security-Policy) in *unsafe-inline* | '') fail "$path: no strict policy" ;; esac
        hasnt body '<style' && hasnt body 'style=' && hasnt body '<script>'
    done
    get /docs/search-index.js && answers 200 && has body crashtest
    for command in 'cairn run' 'cairn key verify'; do get /docs/reference/manual.html && has body ">$command</h3>"; done
    get /docs/reference/codes.html && has body '>RUN_ALREADY_EXISTS</h3>'
    get /docs/nothing.html "$html" && answers 404
    get /docs/../../etc/passwd "$html" && hasnt body root:
}
# The reference is made of the sources; what the program says of itself is what must be in it, no more and no less.
test_the_reference_of_the_guides_has_every_route_setting_event_and_code() {
    serve
    get /openapi.json && jq -r '.paths | to_entries[] | .key as $p | .value | keys[] | "\(ascii_upcase) \($p)"' body | sort >routes
    jq -r '.paths[][] | .operationId' body | sort >operations
    jq -r '.components.schemas | keys[]' body >schemas
    get /docs/reference/api.html && answers 200
    grep -oE '<h3 [^>]*>(GET|PUT|POST|DELETE) [^<]*' body | sed 's/.*>//' | sort | diff - routes || fail 'the routes differ'
    grep -oE 'operation: <code>[^<]*' body | sed 's/.*>//' | sort | diff - operations || fail 'the operations differ'
    while read -r one; do grep -q ">$one</h3>" body || fail "$one is not in it"; done <schemas
    "$CAIRN" config list -o json --no-config-file --no-config-env | jq -r '.[] | "\(.name) \(.variable)"' >settings
    get /docs/reference/settings.html && answers 200
    while read -r name variable; do has body "<td><code>$name</code></td><td><code>$variable</code></td>"; done <settings
    for name in listen readers stateStore http; do has body "<td><code>$name</code></td>"; done
    equal "$(grep -oE '<tr><td><code>[A-Za-z]+</code></td><td>[^<]+</td><td>' body | wc -l)" "$(grep -c '^    {"[A-Za-z]*", "' "$root/src/service/settings.c")" 'members of [serve]'
    get /docs/reference/events.html && answers 200
    "$CAIRN" schema | sed -nE 's/^(event|signal) //p' >events
    [ "$(wc -l <events)" -gt 50 ] || fail "only $(wc -l <events) events and signals"
    while read -r one; do has body ">$one</h3>"; done <events
    get /docs/reference/codes.html && has body '>E0203: an unknown field</h3>'
}
test_the_search_of_the_guides_finds_under_the_policy() {
    command -v chromium >/dev/null || skip 'chromium is not installed'
    serve
    timeout 120 chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --virtual-time-budget=5000 --dump-dom "$url/docs/search.html#crashtest" >dom 2>/dev/null
    grep -o '<ol id="found">.*' dom | grep -q 'href="format/crashtest.html' || fail "$(grep -o '<p id="count".*' dom | head -c 300)"
}
test_a_link_of_the_guides_that_leads_nowhere_fails_their_build() {
    mkdir -p tree/web
    ln -s "$root"/* tree/ 2>/dev/null
    rm tree/docs && cp -r "$root/docs" tree/ && cp -r "$root"/web/docs "$root"/web/docs.mjs "$root"/web/reference.mjs "$root"/web/README.md tree/web/
    node tree/web/docs.mjs site 2>err || fail "$(cat err)"
    [ -e site/images/runs.png ] && [ -e site/adr/index.html ] || fail 'pictures or decisions are missing'
    echo '[nowhere](format/plan.md#no-such-heading) and [gone](gone.md)' >>tree/docs/mcp.md
    ! node tree/web/docs.mjs site 2>err || fail 'the build went on'
    has err 'no such heading' && has err 'gone.md leads nowhere'
}

test_addresses_of_the_page_swallow_nothing_of_the_api() {
    serve
    for path in /runs /runs/3f2a/why /compare /definitions/a/b/source /metricsx; do
        get "$path" "$html" && answers 200
        equal "$(header Content-Type)" 'text/html; charset=utf-8'
        get "$path" && answers 401 # a program, which asked for no document
        token='' ask POST "$path" '{}' "$html" && answers 401
    done
    for path in /v1 /v1/ /v1/runs /v1/nothing /metrics /schemas/run-snapshot.json /v1/t/a/p/b/e/c/runs; do
        get "$path" "$html"
        [ "$status" = 401 ] || [ "$status" = 400 ] || fail "$path: $status"
        equal "$(header Content-Type)" application/problem+json
    done
    get /readyz "$html" && answers 200 && equal "$(cat body)" ok
    get /assets/main-0000.js "$html" && answers 404
    get /assets/ "$html" && [ "$status" != 200 ] || fail "a directory"
    ask GET /metrics && answers 200 && has body 'route="page"'
}

test_the_page_is_read_from_a_directory_during_development() {
    mkdir -p dist/assets
    echo '<p>one</p>' >dist/index.html
    echo 'let a' >dist/assets/a.js
    echo secret >secret
    ln -s ../secret dist/link.txt
    serve --page-dir dist
    get /runs "$html" && answers 200 && has body one
    echo '<p>two</p>' >dist/index.html
    get / && has body two
    get /assets/a.js && equal "$(header Content-Type)" 'text/javascript; charset=utf-8'
    equal "$(header Cache-Control)" no-cache
    get /link.txt && answers 401
    get /..%2fsecret "$html" && hasnt body secret
    stop_serving
    cairn_is 5 serve --store "sqlite:$PWD/store.db" --listen 127.0.0.1:0 --page-dir nowhere
    has err nowhere
}

# Signing in: sign_in [BODY [HEADER...]] sets $cookie and $key. with_session METHOD PATH [BODY [HEADER...]] asks with both halves.
sign_in() {
    local body=${1:-"{\"token\":\"$token\"}"}
    shift $(($# < 1 ? $# : 1))
    token='' ask POST /v1/session "$body" "$@"
    cookie=$(sed -n 's/^Set-Cookie: \([^;]*\).*/\1/p' head)
    key=$(jq -r '.key // empty' body)
}
with_session() {
    local method=$1 path=$2 body=${3:-}
    shift $(($# < 3 ? $# : 3))
    token='' ask "$method" "$path" "$body" "Cookie: a=b; $cookie; c=d" "Cairn-Session: $key" "$@"
}

test_a_token_becomes_a_session_of_two_halves() {
    serve
    sign_in && answers 201
    attributes=$(sed -n 's/^Set-Cookie: [^;]*\(.*\)\r/\1/p' head)
    case $attributes in '; Path=/; HttpOnly; SameSite=Strict; Max-Age='*) ;; *) fail "$attributes" ;; esac
    case $attributes in *Secure*) fail "Secure without TLS: no browser would keep it" ;; esac
    case $cookie in "cairn-${url##*:}="*) ;; *) fail "two servers of a machine would share $cookie" ;; esac
    hasnt body "$token" && hasnt head "${token##*_}"
    equal "$(jq -r '.principal.roles | contains(["Admin"])' body)" true
    with_session GET /v1/whoami && answers 200
    equal "$(jq -r '.operations | contains(["run.start", "run.get"])' body)" true
    equal "$(jq -r '.sessionExpiresAt | length > 10' body)" true
    # either half alone is nothing
    token='' ask GET /v1/runs '' "Cookie: $cookie" && answers 401
    token='' ask GET /v1/runs '' "Cairn-Session: $key" && answers 401
    key=${key%?}x with_session GET /v1/runs && answers 401
    other=$cookie
    sign_in && answers 201
    cookie=$other with_session GET /v1/runs && answers 401 # halves of two sessions
    flipped=${cookie%?????}AAAAA
    cookie=$flipped with_session GET /v1/runs && answers 401
    # a token that is shown counts, and a wrong one is not made good by a session
    with_session GET /v1/runs '' 'Authorization: Bearer cairn_wrong' && answers 401
    ask GET /v1/audit && equal "$(jq -r '[.items[].action] | contains(["session.open"])' body)" true
}

test_a_session_changes_things_only_from_the_page() {
    serve
    sign_in && answers 201
    start="{\"document\":$(plan_text p '{"stepId":"a","kind":"noop"}'),\"runId\":\"r1\"}"
    with_session POST /v1/runs "$start" && answers 401 # no origin: no browser sends that
    with_session POST /v1/runs "$start" 'Origin: http://evil.example' && answers 403
    with_session POST /v1/runs "$start" "Origin: ${url/127.0.0.1/localhost}" && answers 403
    with_session POST /v1/runs "$start" "Origin: $url" 'Sec-Fetch-Site: cross-site' && answers 403
    with_session POST /v1/runs "$start" 'Origin: null' && answers 403
    with_session GET /v1/runs '' 'Host: evil.example' && answers 421
    with_session GET /v1/runs '' "Host: 127.0.0.1:1" && answers 421
    # from another site nobody is signed in as someone else, either
    sign_in "{\"token\":\"$token\"}" 'Origin: http://evil.example' && answers 403
    sign_in '{"token":"x","ticket":"y"}' && answers 400
    sign_in '{}' && answers 400
    sign_in '{"token":"x"}' 'Content-Type: text/plain' && answers 400 # two types
    sign_in && with_session POST /v1/runs "$start" "Origin: $url" 'Sec-Fetch-Site: same-origin' 'Prefer: wait=20' && answers 200
}

test_a_session_ends_with_its_token_and_when_its_owner_signs_out() {
    serve
    first=$token
    ask POST /v1/tokens '{"name":"guest","roles":["operator"]}' && answers 201
    guest=$(jq -r .token body) id=$(jq -r .id body)
    token=$guest sign_in && answers 201
    equal "$(jq -r '.principal.operations | contains(["token.create"])' body)" false
    with_session POST /v1/tokens '{"name":"more","roles":["admin"]}' "Origin: $url" && answers 403
    with_session POST /v1/tickets '' "Origin: $url" && answers 403 && code_is AUTHZ_DENIED
    token=$first ask DELETE "/v1/tokens/$id" && answers 204
    with_session GET /v1/runs && answers 401
    token=$guest sign_in && answers 401
    # one that expires takes its sessions along
    ask POST /v1/tokens "{\"name\":\"brief\",\"roles\":[\"operator\"],\"expiresAt\":\"$(date -u -d '+90 seconds' +%FT%TZ)\"}" && answers 201
    token=$(jq -r .token body) sign_in && answers 201
    age=$(sed -n 's/.*Max-Age=\([0-9]*\).*/\1/p' head)
    [ "$age" -le 90 ] || fail "a cookie of $age seconds for a token of 90"
    # signing out
    token=$first sign_in && answers 201
    kept_cookie=$cookie kept_key=$key
    sign_in && answers 201
    with_session DELETE /v1/session '' "Origin: $url" && answers 204
    has head 'Max-Age=0'
    with_session GET /v1/runs && answers 401
    cookie=$kept_cookie key=$kept_key with_session GET /v1/runs && answers 200 # another browser stays
    ask DELETE /v1/session && answers 409
    gone_cookie=$cookie gone_key=$key
    stop_serving
    token=$first
    serve
    token=$first
    cookie=$gone_cookie key=$gone_key with_session GET /v1/runs && answers 401 # a restart forgets nothing
    stop_serving
}

test_streams_of_a_session_end_when_it_is_signed_out() {
    serve
    sign_in && answers 201
    curl -sN -H "Cookie: $cookie" -H "Cairn-Session: $key" -H 'Accept: text/event-stream' "$url/v1/events" >stream &
    reader=$!
    wait_for test -s stream || true
    with_session DELETE /v1/session '' "Origin: $url" && answers 204
    wait "$reader" || true
    has stream 'event: revoked'
}

test_a_ticket_opens_one_session_once() {
    serve
    ask POST /v1/tickets && answers 201
    ticket=$(jq -r .ticket body)
    equal "${#ticket}" 64 'length of a ticket'
    token='' ask POST /v1/tickets && answers 401
    sign_in "{\"ticket\":\"$ticket\"}" && answers 201
    with_session GET /v1/runs && answers 200
    sign_in "{\"ticket\":\"$ticket\"}" && answers 401
    sign_in "{\"ticket\":\"${ticket//[0-9]/a}\"}" && answers 401
    # a caller who buys many gives up its own, and nobody else's
    ask POST /v1/tickets && ticket=$(jq -r .ticket body)
    ask POST /v1/tokens '{"name":"buyer","roles":["operator"]}' && buyer=$(jq -r .token body)
    for i in $(seq 8); do token=$buyer ask POST /v1/tickets && answers 201; done
    sign_in "{\"ticket\":\"$ticket\"}" && answers 201
    # a ticket of a token that is revoked meanwhile opens nothing
    ask POST /v1/tokens '{"name":"guest","roles":["operator"]}' && id=$(jq -r .id body) guest=$(jq -r .token body)
    first=$token
    token=$guest ask POST /v1/tickets && ticket=$(jq -r .ticket body)
    token=$first ask DELETE "/v1/tokens/$id" && answers 204
    sign_in "{\"ticket\":\"$ticket\"}" && answers 401
    # guesses are counted
    for i in $(seq 40); do sign_in "{\"ticket\":\"guess$i\"}"; [ "$status" = 429 ] && break; done
    answers 429
    token=$first sign_in && answers 201 # and lock nobody out
}

test_sessions_behind_a_proxy_that_does_tls() {
    printf '[serve]\norigins = "https://cairn.example"\nproxies = "127.0.0.1"\n' >cairn.toml
    serve
    sign_in "{\"token\":\"$token\"}" 'Host: cairn.example' 'Origin: https://cairn.example' && answers 201
    has head '; Secure'
    case $cookie in __Host-cairn=*) ;; *) fail "$cookie" ;; esac
    with_session GET /v1/runs '' 'Host: cairn.example' && answers 200
    with_session DELETE /v1/session '' 'Host: cairn.example' 'Origin: http://cairn.example' && answers 403
    with_session DELETE /v1/session '' 'Host: cairn.example' 'Origin: https://cairn.example' && answers 204
}

test_moments_between_the_ledger_entries_of_an_event() {
    serve
    document=$(jq -Rs . <<'YAML'
name: again
nodes:
  - {id: a, bash: "printf '\\033[31mERROR\\033[0m in red\\n' >&2; exit 3", retry: {max_attempts: 2, delay_ms: 1}}
YAML
)
    ask POST /v1/runs "{\"document\":$document,\"file\":\"again.yaml\",\"runId\":\"r1\"}" 'Prefer: wait=30' && answers 200
    # the event with the most entries behind it, and how many these are
    "$CAIRN" events r1 --server "$url" --token-file store.db.token -o jsonl >events.jsonl || fail "events"
    ask GET /v1/store/runs/r1/ledger && answers 200
    read -r count event < <(grep -o '"after":[0-9]*\|"afterSeq":[0-9]*\|"seq":[0-9]*' body | grep -o '[0-9]*$' | sort -n | uniq -c | sort -rn | head -n 1)
    [ "${event:-0}" -gt 0 ] || fail "no entry of the ledger: $(head -c 300 body)"
    ask GET "/v1/runs/r1?at=$event" && answers 200 && cp body whole
    ask GET "/v1/runs/r1?at=$event.$count" && answers 200 && cmp -s body whole || fail "all $count entries of event $event are not all of it"
    ask GET "/v1/runs/r1?at=$event.0" && answers 200
    cmp -s body whole && fail "event $event without its entries is as with them"
    ask GET "/v1/runs/r1/why?at=$event.0" && answers 200
    for bad in 0 x 1.x 1. .1 -1 1.-1 1.1.1 99999; do
        ask GET "/v1/runs/r1?at=$bad" && answers 400
    done
    ask GET '/v1/runs?q=status=FAILED' && answers 200
    has body 'ERROR in red'
    hasnt body '[31m'
}

# A run of each state in one store. `ids` are their names.
states() {
    local red="printf 'more\\\\n\\\\033[31mno such table\\\\033[0m\\\\n' >&2; exit 3"
    start_nodes failed "{id: load, bash: \"$red\", retry: {max_attempts: 2, delay_ms: 1, on_error: all}}"
    start_nodes gate '{id: ship, approval: {message: "Ship it?", timeout: 4h}}'
    start_nodes again '{id: a, bash: "exit 1", retry: {max_attempts: 5, delay_ms: 60000, on_error: all}}, {id: b, bash: "sleep 600"}'
    start_nodes stopped '{id: a, bash: "true"}, {id: b, depends_on: [a], bash: "sleep 600"}'
    ask POST /v1/runs '{"document":{"metadata":{"planId":"held","planVersion":"1.0","schemaVersion":"v1.2","onStepFailure":"hold"},"steps":[{"stepId":"up","kind":"shell","with":{"command":"exit 4"}}]},"runId":"held"}'
    [ "$status" -lt 300 ] || fail "$(cat body)"
    ask POST /v1/runs "{\"document\":$(plan_text fine '{"stepId":"a","kind":"noop"}'),\"runId\":\"fine\"}" 'Prefer: wait=30' && answers 200
    wait_for row_is stopped '.completed == 1 and .running == 1'
    ask POST /v1/runs/stopped/signals '{"signalId":"00000000-0000-4000-8000-000000000001","signalType":"CANCEL","payload":{"reason":"wrong cluster"}}' && [ "$status" -lt 300 ] || fail "$(cat body)"
    for run in failed stopped; do wait_for row_is "$run" '.endedAt != null'; done
    wait_for row_is again '.headline.parts | length == 2'
    wait_for row_is held '.headline.state == "held"'
    wait_for row_is gate '.headline.state == "approval"'
}
who_am_i() { ask GET /v1/whoami && jq -r .id body; }
start_nodes() { # RUN NODES
    ask POST /v1/runs "$(jq -n --arg d "name: $1
nodes: [$2]" --arg r "$1" '{document: $d, file: ($r + ".yaml"), runId: $r}')"
    [ "$status" -lt 300 ] || fail "$1: $(cat body)"
}
row_is() { # RUN FILTER
    ask GET "/v1/runs?q=run=$1" && answers 200
    jq -e ".items[0] | $2" body >/dev/null
}

test_rows_of_lists_say_what_is_going_on_and_in_which_parts() {
    serve
    states
    me=$(who_am_i)
    ask GET '/v1/runs?limit=50' && answers 200
    jq -c '.items[] | [.runId, .headline.state, .headline.text, .headline.detail]' body | sort | sed "s/by $me/by ME/" >told
    diff told - <<'TOLD' >differ || fail "$(cat differ)"
["again","retrying","a is tried again; b runs","exit 1"]
["failed","failed","load failed at attempt 3 of 3","no such table"]
["fine",null,null,null]
["gate","approval","ship waits for a person",null]
["held","held","up failed and waits for a person","exit 4"]
["stopped","cancelled","cancelled by ME","wrong cluster"]
TOLD
    equal "$(jq -c '.items[] | select(.runId == "again").headline.parts | map([.state, .step, .attempt, .attempts, .due != null])' body)" '[["retrying","a",1,6,true],["running","b",null,null,false]]'
    equal "$(jq -c '.items[] | select(.runId == "gate").headline | [.role, .due != null]' body)" '["Operator",true]'
    equal "$(jq -c '.items[] | select(.runId == "failed").headline.parts' body)" '[{"state":"failed","step":"load","attempt":3,"attempts":3,"code":"EXIT_NONZERO"}]'
    # a step that was stopped with its run has not failed
    equal "$(jq -c '.items[] | select(.runId == "stopped") | [.completed, .failed, .progress]' body)" '[1,0,"1/2"]'
    ask GET /v1/runs/stopped && equal "$(jq -r .failedSteps body)" 0
    # a paused run says by whom, and what it would do
    ask POST /v1/runs/again/signals '{"signalId":"00000000-0000-4000-8000-000000000002","signalType":"PAUSE","payload":{"reason":"window"}}'
    wait_for row_is again '.headline.state == "paused"'
    equal "$(jq -r '.items[0].headline | .text + ": " + .detail' body)" "is being paused by $me; 1 in flight may end: window"
    # who asks for nothing of it does not pay for it, and what people wrote is not for every role
    ask GET '/v1/runs?fields=runId,headline.state' && equal "$(jq -c '.items | map(keys) | add | unique' body)" '["headline","runId"]'
    ask POST /v1/tokens '{"name":"op","roles":["operator"]}' && answers 201
    token=$(jq -r .token body)
    ask GET '/v1/runs?limit=50' && answers 200
    hasnt body 'no such table' && hasnt body 'wrong cluster' && hasnt body window
    equal "$(jq -r '.items[] | select(.runId == "failed").headline.text' body)" 'load failed at attempt 3 of 3'
}

test_a_verdict_is_told_in_parts_with_times_as_data() {
    serve
    states
    me=$(who_am_i)
    ask GET /v1/runs/failed/steps/load/why && answers 200
    equal "$(jq -c '.verdictParts | map(keys[0])' body)" '["step","text","code","text"]'
    equal "$(jq -r '[.verdictParts[] | to_entries[0].value] | join("")' body)" "$(jq -r .verdict body)"
    hasnt body '[31m no' && equal "$(jq -r .verdictParts[2].code body)" EXIT_NONZERO
    ask GET /v1/runs/again/steps/a/why && answers 200
    jq -e '.verdictParts | map(.due // empty) | length == 1 and (.[0] | fromdateiso8601? // test("^20.*Z$"))' body >/dev/null || fail "$(jq -c .verdictParts body)"
    ask GET /v1/runs/gate/steps/ship/why && jq -e '.verdictParts | any(has("since"))' body >/dev/null || fail "$(cat body)"
    ask GET /v1/runs/stopped/why && equal "$(jq -c '[.verdictParts[] | select(has("by") or has("said"))]' body)" "[{\"by\":\"$me\"},{\"said\":\"wrong cluster\"}]"
    equal "$(jq -r .counts.failed body)" 0
    ask POST /v1/tokens '{"name":"op","roles":["operator"]}' && token=$(jq -r .token body)
    ask GET /v1/runs/stopped/why && answers 200
    equal "$(jq -c '[.verdict, (.verdictParts | map(.said // empty))]' body)" '["(redacted)",["(redacted)"]]'
    jq -e '.verdictParts | any(.text == "run stopped was CANCELLED by ")' body >/dev/null || fail "$(jq -c .verdictParts body)"
}

test_why_tells_the_visits_of_a_step_apart() {
    serve
    document=$(jq -Rs . <<'YAML'
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: twice, path: twice}
workflow:
  - {step: start, tool: {kind: noop}, set: {ctx.at: 0}, next: {arcs: [{step: inner}]}}
  - step: inner
    tool: {kind: noop}
    set: {ctx.at: "{{ ctx.at + 1 }}"}
    next: {arcs: [{step: inner, when: "{{ ctx.at < 2 }}"}, {step: end}]}
  - {step: end, tool: {kind: noop}}
YAML
)
    ask POST /v1/runs "{\"document\":$document,\"runId\":\"v\"}" 'Prefer: wait=30' && answers 200
    ask GET /v1/runs/v && answers 200
    equal "$(jq -c '[.steps[] | select(.stepId | startswith("inner")) | [.stepId, .visit]]' body)" '[["inner",1],["inner:run:2",2]]'
    for visit in 1 2; do
        ask GET "/v1/runs/v/steps/inner:run:$visit/why" && answers 200
        equal "$(jq -c '[.visit, .visits, .state]' body)" "[$visit,2,\"done\"]"
        jq -r '.since, .arcs[0].seq, .attempts[0].seq' body >"told$visit"
    done
    cmp -s told1 told2 && fail "two visits are told alike: $(cat told1)"
    ask GET /v1/runs/v/steps/inner/why && equal "$(jq -r .visit body)" 2 # the last one
    ask GET /v1/runs/v/steps/inner:run:3/why && answers 404
}

test_the_audit_has_the_newest_first_where_that_is_asked_for() {
    serve
    for i in 1 2 3 4 5 6 7; do ask POST /v1/tokens "{\"name\":\"t$i\",\"roles\":[\"operator\"]}" && answers 201; done
    ask GET '/v1/audit?limit=500' && answers 200
    jq -c '[.items[].seq] | reverse' body >wanted
    cursor='' && : >found
    for page in 1 2 3 4 5 6; do
        ask GET "/v1/audit?sort=-timestamp&limit=3${cursor:+&cursor=$cursor}" && answers 200
        jq '.items[].seq' body >>found
        cursor=$(jq -r '.nextCursor // empty' body)
        [ -n "$cursor" ] || break
    done
    equal "$(jq -sc . found)" "$(cat wanted)"
    ask GET '/v1/audit?sort=seq' && answers 400
    ask GET '/v1/audit?sort=-timestamp&after=3' && answers 400
    ask GET '/v1/audit?sort=-timestamp&cursor=xyz' && answers 400
}

test_the_store_tells_its_size_and_growth_to_those_who_see_metrics() {
    serve
    ask POST /v1/runs "{\"document\":$(plan_text p '{"stepId":"a","kind":"noop"}'),\"runId\":\"r1\"}" 'Prefer: wait=20' && answers 200
    ask GET /v1/usage && answers 200
    equal "$(jq -c '[.kind, .runs, .status.COMPLETED, (.days | length), .days[29].runs, .biggest[0].runId]' body)" '["sqlite",1,1,30,1,"r1"]'
    jq -e '.usage | map(.bytes) | add > 4096' body >/dev/null || fail "$(cat body)"
    equal "$(jq -c '[.runs, .events, .days[29].events]' body)" "$("$CAIRN" store stat --store "sqlite:$PWD/store.db" -o json | jq -c '[.runs, .events, .days[29].events]')" 'what the terminal says'
    token='' ask GET /v1/usage && answers 401
}

test_what_a_step_was_given_stands_beside_what_is_written() {
    serve
    document='{"name":"given","inputs":{"day":"monday; touch no"},"nodes":[{"id":"a","bash":"echo $INPUTS.day"},{"id":"b","depends_on":["a"],"retry":{"max_attempts":2,"delay_ms":1,"on_error":"all"},"bash":"[ $CAIRN_ATTEMPT = 2 ] && echo $a.output"},{"id":"c","depends_on":["b"],"approval":{"message":"Go on after $b.output?"}}]}'
    ask POST /v1/runs "{\"document\":$(jq -Rs . <<<"$document"),\"runId\":\"given\"}" && answers 202
    waits() { ask GET /v1/runs/given && [ "$(jq -r '.steps[2].status' body)" = RUNNING ]; }
    wait_for waits
    ask GET /v1/runs/given/steps/b/inputs && answers 200
    equal "$(jq -r .source.command body)" '[ $CAIRN_ATTEMPT = 2 ] && echo $a.output'
    equal "$(jq -c '[.attempt, .env]' body)" '[2,{"CAIRN_REF_1":"monday; touch no"}]'
    case $(jq -r .rendered.command body) in *'"${CAIRN_REF_1}"'*) ;; *) fail "$(cat body)" ;; esac
    ask GET '/v1/runs/given/steps/b/inputs?attempt=1' && equal "$(jq .attempt body)" 1
    ask GET /v1/runs/given/steps/c/inputs && equal "$(jq -c '[.source.message, .rendered.message]' body)" '["Go on after $b.output?","Go on after monday; touch no?"]'
    # before it had begun: with what was known, and what is not known says so
    ask GET '/v1/runs/given/steps/b/inputs?at=1' && answers 200
    equal "$(jq -c '[.attempt, .rendered, (.why | length > 5)]' body)" '[null,null,true]'
    ask GET /v1/runs/given/steps/none/inputs && answers 404
    ask POST /v1/tokens '{"name":"op","roles":["operator"]}' && token=$(jq -r .token body)
    ask GET /v1/runs/given/steps/b/inputs && answers 403
}
test_what_tasks_of_a_playbook_were_given_is_one_answer() {
    serve
    playbook='apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: p, path: p}\nworkload: {days: [mon, tue]}\nworkflow:\n- step: each\n  loop: {in: "{{ days }}", iterator: day, spec: {mode: sequential}}\n  tool: {name: say, kind: shell, cmds: "echo {{ iter.day }}"}\n'
    ask POST /v1/runs "{\"document\":$(printf "$playbook" | jq -Rs .),\"runId\":\"p\"}" 'Prefer: wait=20' && answers 200
    ask GET /v1/runs/p/steps/each/inputs && equal "$(jq -c '[.given[].with.cmds]' body)" '["echo mon","echo tue"]'
    ask GET '/v1/runs/p/steps/each%5B2%5D/inputs' && equal "$(jq -c '[.given[] | [.iteration, .task]]' body)" '[[2,"say"]]'
}

test_engines_and_hosts_are_told_to_those_who_see_metrics() {
    serve
    ask GET /v1/engines && answers 200
    equal "$(jq -c '[.items, .count, .several, .ready, [.hosts[].kind]]' body)" '[[{"self":true,"duty":true}],1,false,true,["server","workers"]]'
    ask POST /v1/tokens '{"name":"w","roles":["worker"],"pool":"gpu"}' && answers 201
    worker=$(jq -r .token body)
    token=$worker ask POST /v1/worker/poll '{"worker":"w1","waitMs":0,"slots":2}' && answers 200
    ask GET /v1/engines && equal "$(jq -c '.hosts[1] | [.workers, .waiting, .leased]' body)" '[1,0,0]'
    equal "$(jq -c '[.hosts[1].pools[] | select(.name == "gpu") | .workers]' body)" '[1]'
    ask POST /v1/tokens '{"name":"op","roles":["operator"]}' && token=$(jq -r .token body)
    ask GET /v1/engines && answers 403
}

# What `cairn ui` prints: the address in $url, the ticket in $ticket.
ui_says() {
    wait_for grep -q '#ticket=' "$1"
    url=$(sed -n 's,^\(http://[^/]*\)/#ticket=.*,\1,p' "$1") ticket=$(sed -n 's,.*/#ticket=,,p' "$1")
}

test_cairn_ui_prints_an_address_with_a_ticket_and_opens_it() {
    mkdir bin
    printf '#!/bin/sh\necho "$@" >%s/opened.tmp\nmv %s/opened.tmp %s/opened\n' "$PWD" "$PWD" "$PWD" >bin/xdg-open
    chmod +x bin/xdg-open
    PATH=$PWD/bin:$PATH DISPLAY=:1 "$CAIRN" ui "${store[@]}" --listen 127.0.0.1:0 >ui.out 2>ui.err &
    server=$!
    ui_says ui.out
    wait_for test -e opened
    page=$(cat opened)
    case $page in *"$ticket"* | *ticket*) fail "other users read command lines: $page" ;; esac
    equal "$(stat -c %a "$page")" 600 'mode of the file that leads on'
    has "$page" "$url/#ticket=$ticket"
    sign_in "{\"ticket\":\"$ticket\"}" && answers 201
    with_session GET /v1/runs && answers 200
    # a second one for the same store opens the page of the first
    "$CAIRN" ui "${store[@]}" >second.out 2>second.err || fail "$(cat second.err)"
    first_url=$url
    ui_says second.out
    equal "$url" "$first_url" 'where the second one leads'
    sign_in "{\"ticket\":\"$ticket\"}" && answers 201
    # and so does one that is given a server
    "$CAIRN" ui --server "$url" --token-file store.db.token >third.out 2>third.err || fail "$(cat third.err)"
    ui_says third.out
    sign_in "{\"ticket\":\"$ticket\"}" && answers 201
    kill -TERM "$server"
    wait "$server" || fail "it ended with $?"
}

test_cairn_ui_of_a_store_that_a_run_holds_says_who_has_it() {
    cat >slow.yaml <<'YAML'
name: slow
nodes:
  - {id: a, bash: "touch began; while [ ! -e go ]; do sleep 0.05; done"}
YAML
    "$CAIRN" run slow.yaml --store "files:$PWD/f" --progress none >run.out 2>run.err &
    runner=$!
    wait_for test -e began
    rc=0
    "$CAIRN" ui --store "files:$PWD/f" >ui.out 2>ui.err </dev/null || rc=$?
    [ "$rc" != 0 ] || fail "it started"
    has ui.err "$runner"
    hasnt ui.out ticket
    touch go
    wait "$runner"
}

run_tests "$@"
