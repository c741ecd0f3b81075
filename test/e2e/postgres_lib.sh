# A Postgres of the test's own: a cluster in a temporary directory, reached through a Unix socket there; it ends with the test.
#
#   postgres_up          starts it; $pg is the URL of a store in it, $pg_dir the directory of its socket
#   pg_sql SQL           asks it, as its superuser; the answer is on stdout
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pg_bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
as_postgres() { if [ "$(id -u)" = 0 ]; then setpriv --reuid="$pg_user" --regid="$(id -g "$pg_user")" --clear-groups -- "$@"; else "$@"; fi; }
postgres_run() {
    (cd "$pg_dir" && exec setsid $(as_postgres_words) "$pg_bin/postgres" -D "$pg_dir/data" -k "$pg_dir" -c listen_addresses= "$@" >>"$pg_dir/log" 2>&1 </dev/null) &
    pg_pid=$!
    wait_for "$pg_bin/pg_isready" -q -h "$pg_dir"
}
as_postgres_words() { [ "$(id -u)" != 0 ] || echo "setpriv --reuid=$pg_user --regid=$(id -g "$pg_user") --clear-groups --"; }
postgres_down() {
    pkill_children
    [ -z "${pg_pid:-}" ] || kill -QUIT "$pg_pid" 2>/dev/null && wait "$pg_pid" 2>/dev/null
    rm -rf "$pg_dir"
}
pkill_children() { for child in $(jobs -p); do [ "$child" = "${pg_pid:-}" ] || kill -9 "$child" 2>/dev/null; done; }
postgres_up() {
    [ -n "$pg_bin" ] || skip 'Postgres is not installed'
    pg_user=postgres
    id "$pg_user" >/dev/null 2>&1 || pg_user=nobody
    pg_dir=$(mktemp -d /tmp/cairn-pg-XXXXXX)
    chmod 755 "$pg_dir"
    [ "$(id -u)" != 0 ] || chown "$pg_user" "$pg_dir"
    trap postgres_down EXIT
    (cd "$pg_dir" && as_postgres "$pg_bin/initdb" -D "$pg_dir/data" -U postgres -A trust -E UTF8 --locale=C --no-sync) >"$PWD/initdb.log" 2>&1 || fail "initdb: $(tail -n 2 initdb.log)"
    postgres_run "$@"
    pg_sql 'create role app login; grant create on database postgres to app'
    pg="postgres:///postgres?host=$pg_dir&user=app"
    store=(--store "$pg")
}
pg_sql() { "$pg_bin/psql" -h "$pg_dir" -U postgres -X -q -A -t -v ON_ERROR_STOP=1 -d postgres -c "$1"; }

# engine NAME [VARIABLE=VALUE...] PROGRAM [FLAG...]: one of several servers over $pg, with a lease of two seconds and $settings, in the
# directory NAME; its URL is in NAME/url, its process in NAME/pid. asks, start_at, is_at ask one of them.
engine() {
    local name=$1 place=$PWD
    shift
    mkdir -p "$name"
    rm -f "$name/serve.err" # what one before it said is not what this one says
    # Steps are confined as shipped, and may write here, where tests look.
    printf '[serve]\nengineLeaseSeconds = 2\n%s\n[serve.confinement]\nwrite = ["%s"]\n' "${settings:-}" "$place" >"$name/cairn.toml"
    chmod 1777 .
    local words=()
    while [ $# -gt 0 ] && [ "${1#--}" = "$1" ]; do words+=("$1"); shift; done
    (cd "$name" && exec env "${words[@]}" serve --store "$pg&files=$place/files" --listen 127.0.0.1:0 "$@" >/dev/null 2>serve.err) &
    echo $! >"$name/pid"
    wait_for grep -q '^listening on' "$name/serve.err"
    sed -n 's/^listening on //p' "$name/serve.err" >"$name/url"
}
asks() { curl -s -X "$2" -H "Authorization: Bearer $(cat files.token)" -H 'Content-Type: application/json' ${4:+--data-binary "$4"} "$(cat "$1/url")$3"; }
started_at() { asks "$1" POST /v1/runs "{\"runId\":\"$2\",\"document\":$(jq -R -s . <"$3")}" >"$2.started"; [ "$(jq -r .runId "$2.started")" = "$2" ]; }
start_at() { wait_for started_at "$@"; } # one that has just joined has no shard yet
is_at() { [ "$(asks "$1" GET "/v1/runs/$2" | jq -r .status)" = "$3" ]; }
