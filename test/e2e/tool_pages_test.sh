#!/usr/bin/env bash
# The playbooks of docs/tools that need a server, run as they stand there against a real one. The others are console blocks,
# which docs_test types.
. "$(dirname "$0")/postgres_lib.sh"

# page NAME: the playbook of docs/tools/NAME.md is in NAME.yaml
page() { sed -n '/^```yaml$/,/^```$/p' "$root/docs/tools/$1.md" | sed '1d; /^```$/,$d' >"$1.yaml"; [ -s "$1.yaml" ] || fail "docs/tools/$1.md has no playbook"; }
# Runs it; what its first step gave is in the file out.
gives() {
    local name=$1
    shift
    cairn_is 0 run "$name.yaml" --store "sqlite:$PWD/own.db" --run-id "$name" --progress none "$@"
    cairn_is 0 get "$name" --store "sqlite:$PWD/own.db" -o json
    jq -c '.steps[0].result' out >result && mv result out
}

test_the_page_of_http_runs() {
    cat >server.py <<'P'
import http.server, json, sys
class Echo(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = json.dumps({"path": self.path, "got": json.loads(body)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    def log_message(self, *a): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Echo)
open("port.new", "w").write(str(server.server_port))
__import__("os").rename("port.new", "port")
server.serve_forever()
P
    python3 server.py &
    wait_for test -e port
    page http
    gives http --set "api=http://127.0.0.1:$(cat port)"
    equal "$(jq -c '[.status_code, .data.path, .data.got]' out)" '[200,"/items?page=2&tag=a&tag=b",{"name":"x"}]'
}

test_the_page_of_postgres_runs() {
    postgres_up
    echo "{\"pg_k8s\": {\"host\": \"$pg_dir\", \"user\": \"postgres\", \"dbname\": \"postgres\"}}" >credentials.json
    page postgres
    gives postgres --credentials credentials.json
    equal "$(jq -c '.command_2.rows' out)" '[{"n":1}]'
    equal "$(pg_sql 'select id, what from seen')" '7|{"a": [1, 2]}'
}

test_the_page_of_nats_runs() {
    command -v nats-server >/dev/null || skip 'nats-server is not installed'
    mkdir js
    nats-server -js -sd "$PWD/js" -a 127.0.0.1 -p -1 --ports_file_dir "$PWD" >nats.log 2>&1 &
    wait_for bash -c 'ls nats-server_*.ports'
    NATS_URL=$(jq -r '.nats[0]' nats-server_*.ports)
    export NATS_URL
    page nats
    gives nats
    equal "$(jq -c '[.key, .value]' out)" '["user.7",{"name":"Ada"}]'
}

# The same playbook over TLS: the server's certificate is verified, and a wrong password is refused by the server.
test_the_page_of_nats_runs_over_tls_with_a_password() {
    command -v nats-server >/dev/null || skip 'nats-server is not installed'
    command -v openssl >/dev/null || skip 'openssl is not installed'
    mkdir js
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>openssl.log || fail "no certificate: $(cat openssl.log)"
    cat >nats.conf <<C
listen: 127.0.0.1:-1
jetstream { store_dir: "$PWD/js" }
tls { cert_file: "$PWD/cert.pem", key_file: "$PWD/key.pem" }
authorization { user: ada, password: "s3cret-word" }
C
    nats-server -c nats.conf --ports_file_dir "$PWD" >nats.log 2>&1 &
    wait_for bash -c 'ls nats-server_*.ports'
    url=tls://127.0.0.1:$(jq -r '.nats[0]' nats-server_*.ports | sed 's/.*://')
    page nats
    sed -i 's/^\( *\)kind: nats$/&\n\1auth: bus/' nats.yaml
    echo "{\"bus\": {\"url\": \"$url\", \"user\": \"ada\", \"password\": \"s3cret-word\", \"ca_file\": \"$PWD/cert.pem\"}}" >good.json
    gives nats --credentials good.json
    equal "$(jq -c '[.key, .value]' out)" '["user.7",{"name":"Ada"}]'
    jq -c 'del(.bus.ca_file)' good.json >strange.json
    cairn_is 10 run nats.yaml --store "sqlite:$PWD/own.db" --run-id strange --progress none --credentials strange.json
    cairn_is 0 get strange --store "sqlite:$PWD/own.db" -o json
    has out "the server's certificate is not accepted"
    jq -c '.bus.password = "wrong-word"' good.json >wrong.json
    cairn_is 10 run nats.yaml --store "sqlite:$PWD/own.db" --run-id wrong --progress none --credentials wrong.json
    cairn_is 0 get wrong --store "sqlite:$PWD/own.db" -o json
    has out 'Authorization Violation'
    hasnt out wrong-word
}

test_the_page_of_duckdb_runs() {
    command -v duckdb >/dev/null || python3 -c 'import duckdb' 2>/dev/null || skip 'neither the program duckdb nor the module of python3 is installed'
    page duckdb
    gives duckdb
    equal "$(cat out)" '[{"age":30,"name":"Alice"}]'
}

run_tests "$@"
