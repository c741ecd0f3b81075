#!/usr/bin/env bash
# Playbooks as users of NoETL write them, by theme: what each gives and which way it goes stands before it in playbooks/THEME.yaml.
. "$(dirname "$0")/postgres_lib.sh"
command -v python3 >/dev/null || { echo 'skip all: python3 is not installed'; exit 0; }

# theme NAME [FLAG...]
theme() {
    local name=$1
    shift
    python3 "$e2e/playbook_api.py" "$PWD/port" &
    api_pid=$!
    trap 'kill $api_pid 2>/dev/null; [ -z "${pg_dir:-}" ] || postgres_down' EXIT
    wait_for test -s port
    python3 "$e2e/playbook_themes.py" "$CAIRN" "$e2e/playbooks/$name.yaml" --set "api_url=http://127.0.0.1:$(cat port)" "$@" >told 2>&1 || fail "$(cat told)"
}

test_users_playbooks_with_pages() { theme pages; }
test_users_playbooks_with_http() {
    printf 'api_basic: {type: basic, data: {username: ann, password: pw-of-ann}}\n' >credentials.yaml
    theme http --credentials credentials.yaml
}
test_users_playbooks_with_sql() {
    postgres_up
    for name in pg_k8s pg_local pg_test; do
        printf '%s: {type: postgres, data: {db_host: "%s", db_user: postgres, db_name: postgres}}\n' "$name" "$pg_dir"
    done >credentials.yaml
    theme sql --credentials credentials.yaml
}
test_users_playbooks_with_loops() { theme loops; }
test_users_playbooks_with_arcs() { theme arcs; }
test_users_playbooks_with_children() { theme children; }
test_users_playbooks_with_values() { theme values; }

run_tests "$@"
