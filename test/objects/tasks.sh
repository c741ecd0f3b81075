#!/usr/bin/env bash
# The kinds s3, gcs and azure of playbooks against servers of other people: tasks.sh CAIRN S3_URL KEY_ID SECRET BUCKET AZURE_URL ACCOUNT KEY
# CONTAINER. Part of test/objects/run.
set -u
cairn=$1 s3=$2 id=$3 secret=$4 bucket=$5 blobs=$6 account=$7 key=$8 container=$9
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
rc=0
cat >credentials.yaml <<END
lake: { endpoint: "$s3", access_key_id: "$id", secret_access_key: "$secret" }
wrong: { endpoint: "$s3", access_key_id: "$id", secret_access_key: "another-secret-than-that" }
blobs: { endpoint: "$blobs", account_key: "$key" }
other: { endpoint: "$blobs", account_key: "YW5vdGhlciBrZXkgdGhhbiB0aGF0" }
END
failure() { "$cairn" events "$1" --store sqlite:s.db -o jsonl | jq -r 'select(.event_type == "task.attempt.failed") | .payload.error | "\(.code): \(.message)"' | tail -n 1; }
# walk KIND AUTH FIELDS: put, get, list in pages, delete, presence; the last step tells all
walk() {
    local kind=$1 auth=$2 where=$3
    cat >"$kind.yaml" <<END
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: $kind, path: $kind }
workflow:
  - step: start
    tool:
      - { name: a, kind: $kind, operation: put, auth: $auth, $where, key: "walk/a b&c(1)~.json", data: { n: [1, 2] }, metadata: { owner: ada } }
      - { name: b, kind: $kind, operation: put, auth: $auth, $where, key: walk/b.txt, data: plain }
      - { name: c, kind: $kind, operation: put, auth: $auth, $where, key: walk/c.txt, data: gone }
      - { name: d, kind: $kind, operation: delete, auth: $auth, $where, key: walk/c.txt }
      - { name: back, kind: $kind, operation: get, auth: $auth, $where, key: "walk/a b&c(1)~.json" }
      - { name: all, kind: $kind, operation: list, auth: $auth, $where, prefix: walk/ }
      - { name: one, kind: $kind, operation: list, auth: $auth, $where, prefix: walk/, max: 1 }
      - { name: there, kind: $kind, operation: exists, auth: $auth, $where, key: walk/b.txt }
      - { name: not_there, kind: $kind, operation: exists, auth: $auth, $where, key: walk/c.txt }
      - name: told
        kind: python
        input: { back: "{{ back.data }}", all: "{{ all['items'] }}", one: "{{ one.truncated }}", there: "{{ there.exists }}", size: "{{ there.size }}", gone: "{{ not_there.exists }}" }
        code: 'result = {"told": [back, [o["key"] for o in all], one, there, size, gone]}'
END
    "$cairn" run "$kind.yaml" --store sqlite:s.db --run-id "$kind" --progress none --credentials credentials.yaml >out 2>err
    got=$("$cairn" get "$kind/start" --store sqlite:s.db -o json | jq -c .result.told)
    want='[{"n":[1,2]},["walk/a b&c(1)~.json","walk/b.txt"],true,true,5,false]'
    if [ "$got" = "$want" ]; then echo "ok objects_of_tasks_at_$kind"; else echo "not ok objects_of_tasks_at_$kind: $got: $(failure "$kind")"; rc=1; fi
}
walk s3 lake "bucket: $bucket"
walk gcs lake "bucket: $bucket"
[ -z "$blobs" ] || walk azure blobs "account: $account, container: $container"
# s3rver takes a wrong signature for none; azurite and moto do not.
if [ -n "$blobs" ]; then sed 's/auth: blobs/auth: other/' azure.yaml >no.yaml; else sed 's/auth: lake/auth: wrong/' s3.yaml >no.yaml; fi
"$cairn" run no.yaml --store sqlite:s.db --run-id no --progress none --credentials credentials.yaml >out 2>err
case $(failure no) in *STORAGE_DENIED*) echo 'ok wrong_keys_of_tasks_are_refused' ;; *) echo "not ok wrong_keys_of_tasks_are_refused: $(failure no)"; rc=1 ;; esac
exit $rc
