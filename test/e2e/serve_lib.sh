# For tests of the service: a server of the test's own, on a free port, that ends with the test.
#
#   serve [FLAG...]                 starts it over store.db; $url and $token are set when it answers
#   ask METHOD PATH [BODY [HEADER...]]   status in $status, body in the file body, headers in the file head
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Servers of others, which a tool of ours has put outside of the tree, in the home of who runs the tests: TOOL WORD...
real_home=$(getent passwd "$(id -u)" | cut -d: -f6)
server_tool() { HOME=$real_home XDG_CACHE_HOME=${CAIRN_CACHE_HOME:-} "$root/tools/$1" "${@:2}"; }

# A service confines its steps, and so do those of the tests. For a test whose steps write where it looks:
unconfined() { export CAIRN_CONFINE=none; }
unset CAIRN_CONFINE

# Steps of a service that root started are another user, who sees nothing behind a closed directory. Steps of tests look for files beside
# the store, so its directory lets them pass; not so with closed_here=yes.
serve() {
    [ -n "${closed_here:-}" ] || chmod 711 .
    rm -f serve.out serve.err # what a server before it said is not what this one says
    "$CAIRN" serve --store "${service_store:-sqlite:$PWD/store.db}" --listen 127.0.0.1:0 "$@" >serve.out 2>serve.err &
    server=$!
    wait_for grep -q 'token of the first start' serve.err
    url=$(sed -n 's/^listening on //p' serve.err | head -n 1)
    token=$(cat "$(sed -n 's/^the token of the first start is in //p' serve.err)")
}
# The commands of a guide's blocks "sh in=WHERE", as a person types them in a directory and a home of their own: guide_typed FILE WHERE PORT [SED].
# What goes on until it is ended goes on in the background; the service has PORT instead of its usual one.
guide_lines() { awk -v begin="\`\`\`sh in=$2" '$0 == begin { on = 1; next } on && $0 == "```" { on = 0 } on' "$root/$1"; }
guide_typed() {
    mkdir -p home/bin
    ln -sf "$CAIRN" home/bin/cairn
    guide_lines "$1" "$2" | sed -E "s/ +#.*//; s/^(cairn serve .*)/\1 --listen 127.0.0.1:$3/; s/127.0.0.1:7117/127.0.0.1:$3/g; ${4:-}
        s/^cairn (serve|worker|host) .*/& \&/
        s/^cairn serve.*/&\nuntil curl -sf http:\/\/127.0.0.1:$3\/readyz; do sleep 0.1; done/" >typed.sh
    [ -s typed.sh ] || fail "$1 has no commands for $2"
    HOME=$PWD/home XDG_STATE_HOME= XDG_CONFIG_HOME= CAIRN_STORE= PATH=$PWD/home/bin:$PATH timeout 120 bash -e typed.sh >typed.out 2>typed.err || fail "$1: $(tail -n 4 typed.err)"
}
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
stop_serving() {
    kill -TERM "$server"
    wait "$server" || fail "the server ended with $?: $(tail -n 3 serve.err)"
}
ask() {
    local method=$1 path=$2 body=${3:-} more=()
    shift $(($# < 3 ? $# : 3))
    for header in "$@"; do more+=(-H "$header"); done
    [ -z "$body" ] || more+=(-H 'Content-Type: application/json' --data-binary "$body")
    status=$(curl -s -o body -D head -w '%{http_code}' -X "$method" ${token:+-H "Authorization: Bearer $token"} "${more[@]}" "$url$path")
}
answers() { [ "$status" = "$1" ] || fail "status $status, not $1: $(head -c 400 body)"; }
code_is() { equal "$(jq -r .code body)" "$1" code; }
# A plan as a JSON string: plan ID STEP...
plan_text() {
    local id=$1
    shift
    jq -n --arg id "$id" --argjson steps "[$(IFS=,; echo "$*")]" \
        '{metadata: {planId: $id, planVersion: "1", schemaVersion: "v1.2"}, steps: $steps} | tojson'
}
