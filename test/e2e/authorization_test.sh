#!/usr/bin/env bash
# The authorization matrix is data; what is written about it elsewhere must say the same.
. "$(dirname "$0")/serve_lib.sh"
matrix=$root/test/e2e/matrix

test_the_document_shows_the_table_C_39() {
    python3 "$matrix/table.py" "$root/docs/format/authorization.md" 2>why || fail "$(cat why)"
    sed 's/| `run.cancel` | item | – | own |/| `run.cancel` | item | – | – |/' "$root/docs/format/authorization.md" >changed.md
    ! cmp -s changed.md "$root/docs/format/authorization.md" || fail 'the edit did nothing'
    ! python3 "$matrix/table.py" changed.md 2>why || fail 'another table is taken for the same'
}

test_the_document_shows_the_rate_limits() {
    sed -n 's/^const struct rate_rule .* = {\(".*"\), \([0-9]*\), \([0-9]*\)};/\1 \2 \3/p' "$root/src/auth/rate.c" | tr -d '"' >rules
    equal "$(wc -l <rules)" 4 'rules'
    while read -r name quota window; do
        has_line "$root/docs/format/authorization.md" "^\| \`$name\` \| .* \| $quota \| $window s \|$"
    done <rules
}

test_every_operation_has_its_request() {
    python3 "$matrix/requests.py" check >out 2>err || fail "$(head -3 err)"
    read -r count _ <out
    [ "$count" -ge 3500 ] || fail "only $count requests"
}

test_every_request_has_its_door() {
    serve
    ask GET /openapi.json && answers 200
    python3 "$matrix/requests.py" doors body 2>err || fail "$(cat err)"
    for edit in 's#"/livez"#"/lives"#' 's#"DELETE", "path": "/v1/tokens#"PATCH", "path": "/v1/tokens#' 's#{place}/queues"#{place}/queues/a/b"#'; do
        sed "$edit" "$root/test/e2e/authorization_routes.json" >changed.json
        ! cmp -s changed.json "$root/test/e2e/authorization_routes.json" || fail "the edit $edit did nothing"
        ! python3 "$matrix/requests.py" doors body changed.json 2>err || fail "a route that does not exist is taken for one: $edit"
    done
    jq '.paths["/v1/spare/{x}"] = {get: {}}' body >more
    ! python3 "$matrix/requests.py" doors more 2>err || fail 'a route that nobody asks for is not missed'
    has err 'GET /v1/spare/{x}'
    stop_serving
}

# The driver itself: against a server that answers as the table wants, and against one that lets everybody in.
test_the_driver_sees_a_wrong_answer() {
    python3 - "$matrix" >out 2>err <<'PY' || fail "$(tail -3 err)"
import http.server, json, sys, threading
sys.path.insert(0, sys.argv[1])
import expect, requests
world = requests.pretended()
for place in world["places"]: world["places"][place] = {k: v + "-" + place for k, v in world["places"][place].items()}
for who, states in world["tokens"].items(): states["any"] = {s: f"cairn_{who}_{s}" for s in expect.TOKENS}
world["unmet"] = ["approved_plan"]
used = {"run.start", "run.get", "run.list", "signal.pause", "dlq.drop", "health"}
others = set(requests.routes()) - used | {"also"}
answers = {(r["method"], r["path"], r["token"]): r["want"] for r in requests.requests(world, others)}

class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body in one packet
    honest, talks = True, False
    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        want = answers[(self.command, self.path, token)]
        status = 200 if want["allowed"] or not Server.honest else want["status"][0]
        detail = f"{self.path} is not here" + (" but elsewhere" if Server.talks and "other_tenant" in self.path else "")
        body = json.dumps({"code": want.get("code") or "NOT_FOUND", "detail": detail}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = do_DELETE = answer
    def log_message(self, *words): pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"
if not requests.drive(world, url, others): sys.exit("an honest server is found wrong")
Server.talks = True
if requests.drive(world, url, others): sys.exit("a server that tells what is foreign is found right")
Server.honest = False
if requests.drive(world, url, others): sys.exit("a server that lets everybody in is found right")
PY
    has_line out '^[0-9]{4} requests, 0 wrong$'
    has out 'a foreign object does not answer like an absent one'
    has out 'run.get none own valid met: 200, not 401'
}

run_tests "$@"
