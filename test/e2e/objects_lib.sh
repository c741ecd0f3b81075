# For tests that need an object store: object_store.py, which checks every signature, on $place. Sourced.
. "$(dirname "${BASH_SOURCE[0]}")/serve_lib.sh"

object_store() {
    mkdir -p plans
    plan_text p '{"stepId":"a","kind":"noop"}' | jq -r . | tr -d '\n' >plans/plan.json
    for name in 'a b+c(1)~.json' busy-1.json busy-9.json secret-1.json; do cp plans/plan.json "plans/$name"; done
    python3 "$e2e/object_store.py" plans &
    objects=$!
    wait_for test -s port
    place=http://127.0.0.1:$(cat port)
    export S3_ID=AKIDTEST AZURE_SAS='sv=2021-08-06&sig=right'
    echo 'sec/ret+key' >s3.secret
    head -c 64 /dev/zero | tr '\0' k | base64 -w0 >azure.key
    head -c 32 /dev/zero | tr '\0' c | base64 -w0 >customer.key
}
