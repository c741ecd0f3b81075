#!/usr/bin/env bash
# docs/how-to/nginx.md as it stands: its settings in the service, its file in a real nginx, on ports of the test's own.
. "$(dirname "$0")/serve_lib.sh"

block() { awk -v begin="\`\`\`$1" '$0 == begin { on = 1; next } on && $0 == "```" { exit } on' "$root/docs/how-to/nginx.md"; }
through() { curl -s --cacert tls/cert --connect-to "cairn.example.com:443:127.0.0.1:$port" "$@"; }
proxied() {
    nginx=$(command -v nginx || ls /usr/sbin/nginx 2>/dev/null) || skip 'nginx is not installed'
    block toml >cairn.toml # --listen of the test is stronger
    grep -q 'proxies' cairn.toml || fail 'the guide has no settings'
    serve
    mkdir -p tls logs
    openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=cairn.example.com -addext subjectAltName=DNS:cairn.example.com -keyout tls/key -out tls/cert 2>/dev/null || fail openssl
    port=$(free_port)
    {
        printf 'daemon off; pid %s/nginx.pid; error_log %s/logs/error;\nevents {}\nhttp { access_log off; client_body_temp_path %s/a; proxy_temp_path %s/b; fastcgi_temp_path %s/c; uwsgi_temp_path %s/d; scgi_temp_path %s/e;\n' "$PWD" "$PWD" "$PWD" "$PWD" "$PWD" "$PWD" "$PWD"
        block nginx | sed "s|listen 443 ssl|listen 127.0.0.1:$port ssl|; s|/etc/ssl/cairn.pem|$PWD/tls/cert|; s|/etc/ssl/cairn.key|$PWD/tls/key|; s|http://127.0.0.1:7117|$url|"
        echo '}'
    } >nginx.conf
    [ "$(id -u)" != 0 ] || sed -i '1s/^/user root;/' nginx.conf
    "$nginx" -t -c "$PWD/nginx.conf" -e "$PWD/logs/error" >tested 2>&1 || fail "nginx does not take the guide's file: $(cat tested)"
    "$nginx" -c "$PWD/nginx.conf" -e "$PWD/logs/error" >said 2>&1 &
    proxy=$!
    trap 'kill $proxy 2>/dev/null; kill -9 ${server:-} 2>/dev/null' EXIT
    site=https://cairn.example.com
    wait_for through -f "$site/livez"
}

test_the_guide_s_nginx_carries_the_page_the_interface_and_streams() {
    proxied
    equal "$(through -o page -w '%{http_code}' "$site/")" 200
    grep -q '<html' page || fail 'no page'
    equal "$(through -o docs -w '%{http_code}' "$site/docs/")" 200
    echo '{"planId":"p","planVersion":"1","steps":[{"stepId":"a","kind":"noop"},{"stepId":"g","kind":"approval","dependsOn":["a"]}]}' >plan.json
    jq -n --rawfile d plan.json '{document: $d, runId: "r1"}' >start.json
    equal "$(through -o started -w '%{http_code}' -H "Authorization: Bearer $token" -H 'Content-Type: application/json' --data @start.json "$site/v1/runs")" 202
    # An event is there before the stream ends: the run waits for a person.
    through -N -H "Authorization: Bearer $token" -H 'Accept: text/event-stream' "$site/v1/runs/r1/events" >stream &
    local stream=$!
    wait_for grep -q StepCompleted stream
    kill -0 $stream 2>/dev/null || fail "the stream has ended: $(tail -n 3 stream)"
    kill $stream
}
test_the_guide_s_settings_know_the_client_behind_nginx_and_refuse_other_names() {
    proxied
    equal "$(through -o other -w '%{http_code}' -H 'Host: evil.example' "$site/v1/auth")" 421
    # The page signs in: the origin is the service's own, and the cookie is Secure.
    jq -n --arg t "$token" '{token: $t}' >session.json
    equal "$(through -D headers -o session -w '%{http_code}' -H "Origin: $site" -H 'Content-Type: application/json' --data @session.json "$site/v1/session")" 201
    grep -i '^set-cookie:' headers | grep -q Secure || fail "the cookie: $(cat headers)"
}
run_tests "$@"
