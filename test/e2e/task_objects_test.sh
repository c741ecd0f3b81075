#!/usr/bin/env bash
# Kinds s3, gcs and azure: objects of a store that works every signature out for itself (object_store.py).
. "$(dirname "$0")/objects_lib.sh"

# book NAME TASKS (YAML list, indented by six)
book() { printf 'apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: %s, path: %s}\nworkflow:\n  - step: start\n    tool:\n%s\n' "$1" "$1" "$2" >"$1.yaml"; }
# played NAME: runs it, whatever comes of it; the outcome of its first step is in the file out
played() {
    "$CAIRN" run "$1.yaml" "${store[@]}" --run-id "$1" --progress none --credentials credentials.yaml >run.out 2>run.err
    "$CAIRN" get "$1/start" "${store[@]}" -o json >out || fail "$1: $(cat run.err)"
}
says() { equal "$(jq -c "$1" out)" "$2" "$(cat out)"; }
fails() { # NAME KIND/CODE: its task ends so
    played "$1"
    equal "$("$CAIRN" events "$1" "${store[@]}" -o jsonl | jq -r 'select(.event_type=="task.attempt.failed") | .payload.error | "\(.kind)/\(.code)"' | tail -n 1)" "$2" "$1"
}
known() {
    object_store
    openssl genrsa -out google.pem 2048 2>/dev/null && openssl rsa -in google.pem -pubout -out google.pub 2>/dev/null || skip 'openssl is not installed'
    jq -n --rawfile key google.pem --arg uri "$place/token" '{type: "service_account", client_email: "robot@example.org", private_key: $key, token_uri: $uri}' >robot.json
    cat >credentials.yaml <<END
lake: { type: s3, endpoint: "$place", access_key_id: AKIDTEST, secret_access_key: { secret: "file:$PWD/s3.secret" } }
wrong: { type: s3, endpoint: "$place", access_key_id: AKIDTEST, secret_access_key: hunter2hunter2 }
goods: { type: gcs_hmac, endpoint: "$place", access_key_id: AKIDTEST, secret_access_key: { secret: "file:$PWD/s3.secret" } }
robot: { type: gcs_service_account, endpoint: "$place", service_account_json: { secret: "file:$PWD/robot.json" } }
blobs: { type: azure, endpoint: "$place", account_key: { secret: "file:$PWD/azure.key" } }
shared: { type: azure, endpoint: "$place", sas: { secret: "env:AZURE_SAS" } }
END
}

test_objects_of_s3_are_put_read_listed_and_deleted() {
    known
    book keep "      - {name: a, kind: s3, operation: put, auth: lake, uri: 's3://plans/out/a.json', data: {n: 1.10}, metadata: {owner: ada}, content_type: application/json}
      - {name: b, kind: s3, operation: put, auth: lake, bucket: plans, key: 'out/b & c.txt', data: plain}
      - {name: c, kind: s3, operation: put, auth: lake, bucket: plans, key: out/d.txt, data: more}
      - {name: e, kind: s3, operation: put, auth: lake, bucket: plans, key: other.txt, data: more}
      - {name: all, kind: s3, operation: list, auth: lake, bucket: plans, prefix: out/}"
    played keep
    says '[.result.count, .result.truncated, [.result.items[] | .key, .size]]' '[3,false,["out/a.json",9,"out/b & c.txt",5,"out/d.txt",4]]'
    equal "$(grep -c ' /plans/.*continuation-token' asked)" 1 'pages of two'
    book read "      - {name: a, kind: s3, auth: lake, uri: 's3://plans/out/a.json'}"
    played read
    says '[.result.data.n, .result.key, .result.size, .result.content_type]' '[1.1,"out/a.json",9,"application/json"]'
    book some "      - {name: a, kind: s3, operation: list, auth: lake, bucket: plans, max: 2}"
    played some; says '[.result.count, .result.truncated]' '[2,true]'
    book gone "      - {name: a, kind: s3, operation: delete, auth: lake, uri: 's3://plans/out/d.txt'}
      - {name: b, kind: s3, operation: delete, auth: lake, uri: 's3://plans/out/d.txt'}
      - {name: c, kind: s3, operation: exists, auth: lake, uri: 's3://plans/out/d.txt'}"
    played gone; says .result.exists false
    book there "      - {name: a, kind: s3, operation: exists, auth: lake, uri: 's3://plans/out/b%20%26%20c.txt'}"
    played there; says '[.result.exists, .result.size]' '[true,5]'
    ! grep -rq 'sec/ret+key' store.db* || fail 'the key is in the store'
}

test_files_and_bytes_are_objects_too() {
    known
    printf 'a\xffb' >bytes.bin
    book up "      - {name: a, kind: gcs, credential: goods, source: bytes.bin, destination: 'gs://goods/raw/'}
      - {name: b, kind: gcs, operation: get, credential: goods, uri: 'gs://goods/raw/bytes.bin'}"
    sed -i 's|gs://goods/raw/bytes.bin|gs://goods/bytes.bin|; s|gs://goods/raw/.}|gs://goods/'"'"'}|' up.yaml
    played up; says '[.result.base64, .result.size]' '["Yf9i",3]'
    book down "      - {name: a, kind: gcs, operation: get, credential: goods, uri: 'gs://goods/bytes.bin', file: back.bin}"
    played down; says '[.result.file, .result.data]' '["back.bin",null]'
    cmp bytes.bin back.bin || fail 'other bytes came back'
}

test_a_service_account_of_google_gets_a_token_once() {
    known
    book gg "      - {name: a, kind: gcs, operation: put, auth: robot, uri: 'gs://goods/x.json', data: [1, 2], if_absent: true}
      - {name: b, kind: gcs, operation: list, auth: robot, bucket: goods}"
    played gg; says '[.result.items[].key]' '["x.json"]'
    equal "$(grep -c 'POST /token' asked)" 1 'tokens asked for'
    ! grep -rq 'google-access-token' store.db* || fail 'the token is in the store'
    openssl genrsa -out google.pem 2048 2>/dev/null
    jq --rawfile key google.pem '.private_key = $key' robot.json >r && mv r robot.json
    book no "      - {name: b, kind: gcs, operation: list, auth: robot, bucket: goods}"
    fails no auth/TOKEN_REFUSED
}

test_blobs_of_azure_by_key_and_by_shared_access_signature() {
    known
    for auth in blobs:account shared:shared; do
        name=az-${auth%:*} account=${auth#*:}
        book $name "      - {name: a, kind: azure, operation: put, auth: ${auth%:*}, account: $account, container: container, key: x/1.txt, data: one}
      - {name: b, kind: azure, operation: put, auth: ${auth%:*}, uri: 'azure://$account/container/x/2.txt', data: two}
      - {name: c, kind: azure, operation: put, auth: ${auth%:*}, uri: 'azure://$account/container/x/3.txt', data: two}
      - {name: d, kind: azure, operation: delete, auth: ${auth%:*}, uri: 'azure://$account/container/x/2.txt'}
      - {name: e, kind: azure, operation: delete, auth: ${auth%:*}, uri: 'azure://$account/container/x/2.txt'}
      - {name: l, kind: azure, operation: list, auth: ${auth%:*}, account: $account, container: container, prefix: x/}"
        played $name; says '[.result.items[].key]' '["x/1.txt","x/3.txt"]'
        book get-$name "      - {name: a, kind: azure, auth: ${auth%:*}, uri: 'azure://$account/container/x/1.txt'}"
        played get-$name; says .result.data '"one"'
    done
}

test_what_a_store_refuses_is_said() {
    known
    book absent "      - {name: a, kind: s3, auth: lake, uri: 's3://plans/nothing.txt'}"
    fails absent not_found/OBJECT_NOT_FOUND
    book denied "      - {name: a, kind: s3, auth: wrong, operation: list, bucket: plans}"
    fails denied auth/STORAGE_DENIED
    has out SignatureDoesNotMatch; hasnt out hunter2hunter2
    book twice "      - {name: a, kind: s3, auth: lake, operation: put, if_absent: true, uri: 's3://plans/once', data: 1}
      - {name: b, kind: s3, auth: lake, operation: put, if_absent: true, uri: 's3://plans/once', data: 2}"
    fails twice client_error/OBJECT_EXISTS
    book busy "      - {name: a, kind: s3, auth: lake, uri: 's3://plans/busy-9.json'}"
    fails busy server_error/STORAGE_REFUSED
    book what "      - {name: a, kind: s3, auth: lake, operation: rename, uri: 's3://plans/x'}"
    fails what client_error/OPERATION_UNKNOWN
    book where "      - {name: a, kind: s3, auth: lake, operation: get}"
    fails where client_error/OBJECT_MISSING
    book dots "      - {name: a, kind: s3, auth: lake, bucket: plans, key: ../europe/plan.json}"
    fails dots client_error/URL_NOT_ALLOWED
    book none "      - {name: a, kind: s3, auth: nobody, uri: 's3://plans/x'}"
    fails none auth/SECRET_NOT_FOUND
}

test_in_a_service_the_configuration_says_where_a_store_is() {
    known
    cat >cairn.toml <<END
[serve.fetch]
allow = ["s3://plans/prod/"]
s3 = { endpoint = "$place", allowPrivate = true, accessKeyId = { env = "S3_ID" }, secretAccessKey = { file = "$PWD/s3.secret" } }
[serve.credentials]
lake = { type = "s3", access_key_id = "AKIDTEST", secret_access_key = { secret = "file:$PWD/s3.secret" } }
own = { type = "s3", endpoint = "http://127.0.0.1:9", access_key_id = "AKIDTEST", secret_access_key = "x-x-x-x-x" }
theirs = { type = "s3", tenant = "other", access_key_id = "AKIDTEST", secret_access_key = "x-x-x-x-x" }
END
    serve
    # here NAME TASK: at the server; what its task failed with is on standard output
    here() {
        book "$1" "$2"
        CAIRN_TOKEN=$token "$CAIRN" run "$1.yaml" --server "$url" --run-id "$1" --progress none >/dev/null 2>&1
        CAIRN_TOKEN=$token "$CAIRN" events "$1" --server "$url" -o jsonl | jq -r 'select(.event_type=="task.attempt.failed").payload.error.code' | tail -n 1
    }
    equal "$(here fine "      - {name: a, kind: s3, operation: put, auth: lake, uri: 's3://plans/prod/a.txt', data: a}
      - {name: b, kind: s3, operation: list, auth: lake, uri: 's3://plans/prod/'}")" ''
    equal "$(CAIRN_TOKEN=$token "$CAIRN" get fine/start --server "$url" -o json | jq -c '[.result.items[].key]')" '["prod/a.txt"]'
    : >asked
    equal "$(here other "      - {name: a, kind: s3, operation: put, auth: lake, uri: 's3://plans/secret.txt', data: a}")" URL_NOT_ALLOWED
    equal "$(here whole "      - {name: a, kind: s3, operation: list, auth: lake, bucket: plans}")" URL_NOT_ALLOWED
    equal "$(here else "      - {name: a, kind: s3, operation: list, auth: lake, bucket: europe}")" URL_NOT_ALLOWED
    equal "$(here keyless "      - {name: a, kind: s3, uri: 's3://plans/prod/a.txt'}")" CREDENTIAL_NEEDED
    equal "$(here endpoint "      - {name: a, kind: s3, auth: lake, endpoint: 'http://127.0.0.1:9', uri: 's3://plans/prod/a.txt'}")" ENDPOINT_NOT_ALLOWED
    equal "$(here endpoint2 "      - {name: a, kind: s3, auth: own, uri: 's3://plans/prod/a.txt'}")" ENDPOINT_NOT_ALLOWED
    equal "$(here tenant "      - {name: a, kind: s3, auth: theirs, uri: 's3://plans/prod/a.txt'}")" SECRET_NOT_FOUND
    equal "$(here file "      - {name: a, kind: s3, operation: put, auth: lake, source: $PWD/s3.secret, uri: 's3://plans/prod/b.txt'}")" FILE_NOT_ALLOWED
    equal "$(cat asked)" '' 'what was asked of the store'
    stop_serving
}

# Of a listing's names those that no rule allows are left out: a rule for prod does not show prodigal.
test_names_that_no_rule_allows_are_not_listed() {
    known
    book fill "      - {name: a, kind: s3, operation: put, auth: lake, uri: 's3://plans/prod', data: a}
      - {name: b, kind: s3, operation: put, auth: lake, uri: 's3://plans/prod/x', data: a}
      - {name: c, kind: s3, operation: put, auth: lake, uri: 's3://plans/prodigal', data: a}"
    played fill; says .status '"SUCCESS"'
    cat >cairn.toml <<END
[serve.fetch]
allow = ["s3://plans/prod"]
s3 = { endpoint = "$place", allowPrivate = true }
[serve.credentials]
lake = { type = "s3", access_key_id = "AKIDTEST", secret_access_key = { secret = "file:$PWD/s3.secret" } }
END
    serve
    book l "      - {name: l, kind: s3, operation: list, auth: lake, uri: 's3://plans/prod'}"
    CAIRN_TOKEN=$token "$CAIRN" run l.yaml --server "$url" --run-id l --progress none >/dev/null 2>err || fail "$(cat err)"
    equal "$(CAIRN_TOKEN=$token "$CAIRN" get l/start --server "$url" -o json | jq -c '[.result.items[].key]')" '["prod","prod/x"]'
    stop_serving
}

run_tests "$@"
