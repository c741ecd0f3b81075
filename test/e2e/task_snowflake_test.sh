#!/usr/bin/env bash
# Kind snowflake against a strict fake of Snowflake's SQL API (snowflake_server.py). Nothing here is Snowflake's own.
. "$(dirname "$0")/serve_lib.sh"

book() { printf 'apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: %s, path: %s}\nworkflow:\n  - step: start\n    tool:\n%s\n' "$1" "$1" "$2" >"$1.yaml"; }
played() { # NAME: runs it, whatever comes of it; its first step is in the file out
    "$CAIRN" run "$1.yaml" "${store[@]}" --run-id "$1" --progress none --credentials credentials.yaml >run.out 2>run.err
    "$CAIRN" get "$1/start" "${store[@]}" -o json >out || fail "$1: $(cat run.err)"
}
says() { equal "$(jq -c "$1" out)" "$2" "$(cat out)"; }
fails() { played "$1" && equal "$("$CAIRN" events "$1" "${store[@]}" -o jsonl | jq -r 'select(.event_type=="task.attempt.failed") | .payload.error | "\(.kind)/\(.code)"' | tail -n 1)" "$2" "$(cat out)"; }
api_up() {
    openssl genrsa -out key.pem 2048 2>/dev/null && openssl rsa -in key.pem -pubout -out snowflake.pub 2>/dev/null || skip 'openssl is not installed'
    openssl pkcs8 -topk8 -in key.pem -passout pass:open-sesame -out locked.pem 2>/dev/null
    python3 "$e2e/snowflake_server.py" &
    wait_for test -s port
    cat >credentials.yaml <<END
wh: { type: snowflake, account: acme.eu-west-1, user: ada, private_key: { secret: "file:$PWD/key.pem" }, warehouse: WH, database: DB, schema: S, role: ANALYST, url: "http://127.0.0.1:$(cat port)" }
locked: { account: acme, user: ada, private_key: { secret: "file:$PWD/locked.pem" }, private_key_passphrase: open-sesame, warehouse: WH, database: DB, role: ANALYST, url: "http://127.0.0.1:$(cat port)" }
password: { account: acme, user: ada, password: hunter2hunter2, url: "http://127.0.0.1:$(cat port)" }
END
}

test_results_of_snowflake_s_api_come_in_parts_with_their_types() {
    api_up
    book types "      - {name: a, kind: snowflake, auth: wh, command: select types}"
    played types
    says .result.command_0.row_count 4
    says '.result.command_0.rows[3] | del(.I, .R, .D)' '{"AT":"01:01:01.5","B":true,"DAY":"2020-01-01","LTZ":"2020-01-01T00:00:05Z","N":null,"NTZ":"2020-01-01T00:00:05.12","T":"é\"x","TZ":"2020-01-01T01:00:05+01:00","V":{"a":[1]}}'
    "$CAIRN" get types/start "${store[@]}" -o json | grep -q '"I": 123456789012345678901234567890' || fail 'a long number is not exact'
    says '.result.command_0.rows[0] | .R == 15000000000 and .D == 12.3' true
    equal "$(grep -c 'partition=' asked)" 2
    book bound "      - {name: a, kind: snowflake, auth: locked, command: \"select :n -- :n\", params: {n: 7}}"
    played bound; says '.result.command_0.rows[0].C1' '"FIXED=7"'
    book list "      - {name: a, kind: snowflake, auth: wh, commands: ['select %s, %s, %s', \"insert into t values ('a;b')\"], params: [true, 1.5, x]}"
    played list; says '[.result.command_0.rows[0], .result.command_1.row_count]' '[{"C1":"BOOLEAN=true","C2":"REAL=1.5","C3":"TEXT=x"},1]'
    ! grep -rqa 'BEGIN PRIVATE KEY\|BEGIN RSA' store.db* || fail 'the key is in the store'
}

test_a_statement_that_nobody_answered_is_asked_for_again_under_its_id() {
    api_up
    book lost "      - {name: a, kind: snowflake, auth: wh, commands: [lost one, count]}"
    played lost
    says '.result.command_1.rows[0].N' 2 # the lost one, once, and this one
    equal "$(grep -c 'retry=true' asked)" 1
    equal "$(grep -o 'requestId=[^& ]*' asked | head -n 2 | sort -u | wc -l)" 1 'ids of one statement'
    book busy "      - {name: a, kind: snowflake, auth: wh, command: busy}"
    played busy; says .status '"SUCCESS"'
}

test_a_long_statement_is_waited_for_and_cancelled_with_its_task() {
    api_up
    book long "      - {name: a, kind: snowflake, auth: wh, command: wait}"
    "$CAIRN" run long.yaml "${store[@]}" --run-id long --progress none --credentials credentials.yaml >run.out 2>&1 &
    wait_for grep -q '^GET /api/v2/statements/' asked
    touch go
    wait $! || fail "$(cat run.out)"
    rm go
    "$CAIRN" run long.yaml "${store[@]}" --run-id late --progress none --credentials credentials.yaml >run.out 2>&1 &
    : >asked
    wait_for grep -q '^GET /api/v2/statements/' asked
    "$CAIRN" cancel late "${store[@]}" >cancel.out 2>&1 || fail "$(cat cancel.out)"
    wait $! && fail 'it ended well'
    grep -q '^POST /api/v2/statements/.*/cancel' asked || fail "the statement was not cancelled: $(cat asked)"
}

test_what_the_api_refuses_is_said() {
    api_up
    book bad "      - {name: a, kind: snowflake, auth: wh, command: bad}"; fails bad schema/001003
    has out "unexpected 'bad'"
    book password "      - {name: a, kind: snowflake, auth: password, command: count}"; fails password auth/CREDENTIAL_INCOMPLETE
    hasnt out hunter2
    book none "      - {name: a, kind: snowflake, command: count}"; fails none auth/CREDENTIAL_NEEDED
    book whole "      - {name: a, kind: snowflake, auth: wh, transaction: true, command: count}"; fails whole client_error/TRANSACTION_UNSUPPORTED
    book empty "      - {name: a, kind: snowflake, auth: wh}"; fails empty client_error/SQL_MISSING
    openssl genrsa -out key.pem 2048 2>/dev/null
    book key "      - {name: a, kind: snowflake, auth: wh, command: count}"; fails key auth/390144
    echo nonsense >key.pem; sed 's/path: key/path: key2/; s/name: key/name: key2/' key.yaml >key2.yaml; fails key2 auth/KEY_INVALID
}

test_in_a_service_the_api_is_where_the_configuration_allows() {
    api_up
    printf '[serve.credentials]\nwh = { account = "acme", user = "ada", private_key = { secret = "file:%s/key.pem" }, url = "http://127.0.0.1:%s" }\n' "$PWD" "$(cat port)" >cairn.toml
    serve
    book away "      - {name: a, kind: snowflake, auth: wh, command: count}"
    CAIRN_TOKEN=$token "$CAIRN" run away.yaml --server "$url" --run-id away --progress none >/dev/null 2>&1 && fail 'it went there'
    has <(CAIRN_TOKEN=$token "$CAIRN" get away --server "$url") URL_NOT_ALLOWED
    [ ! -e asked ] || fail 'something was asked'
    stop_serving
}

run_tests "$@"
