# For tests that run playbooks of their own; sourced after lib.sh, or a library that builds on it.
#
#   book NAME [PATH] <TEXT    a playbook of that name, its head before the text
#   runs NAME [FLAG...]       NAME.yaml to its good end, under the id NAME
#   result RUN STEP           what the step gave
#   relives                   every run of the store, children too, decides again what it decided
store=(--store "sqlite:runs.db")
command -v python3 >/dev/null || { echo 'skip all: python3 is not installed'; exit 0; }

book() { printf 'apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: %s, path: %s}\n' "$1" "${2:-$1}"; cat; }
runs() { local name=$1; shift; cairn_is 0 run "$name.yaml" "${store[@]}" --run-id "$name" --progress none "$@"; }
result() { "$CAIRN" events "$1" "${store[@]}" -o jsonl | jq -c "select(.event_type==\"step.done\" and .entity_id==\"$2\").payload.outcome.result" | tail -n 1; }
relives() {
    local run
    for run in $("$CAIRN" ls --all -o name "${store[@]}"); do
        "$CAIRN" log replay "$run" "${store[@]}" >replay 2>&1 || fail "run $run lived again: $(cat replay)"
    done
}
intact() { "$CAIRN" log verify --all "${store[@]}" >verify 2>&1 || fail "the log does not verify: $(cat verify)"; relives; }
