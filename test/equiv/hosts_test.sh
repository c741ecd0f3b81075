#!/usr/bin/env bash
# make equiv-soak: drawn documents on the engine against the model, and on every store against each other. EQUIV_COUNT and EQUIV_HOSTS say how many.
. "$(dirname "$0")/../e2e/postgres_lib.sh"
export E2E_SECONDS=${E2E_SECONDS:-3600} # one of these has an hour
soak() { python3 "$root/test/equiv/soak.py" "$CAIRN" "$@" >said 2>&1 || fail "$(head -c 3000 said)"; cat said; }

test_the_engine_does_what_the_model_says() { soak "${EQUIV_COUNT:-10000}" --seed "${EQUIV_SEED:-1}"; }
test_every_store_records_the_same() {
    postgres_up
    soak "${EQUIV_HOSTS:-500}" --seed "${EQUIV_SEED:-1}" --on "embedded,sqlite,files,mock,server,postgres=$pg&schema=equiv"
}
run_tests "$@"
