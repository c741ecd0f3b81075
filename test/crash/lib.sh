# Shared by the crash tests: the document, the effect recorder and what must hold after recovery.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
CAIRN=${CAIRN:-$PWD/build/cairn}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

passed=0 failed=0
ok() { passed=$((passed + 1)); echo "ok $1"; }
not_ok() { failed=$((failed + 1)); echo "not ok $1: $2"; }
finish() { echo "# $1: $passed passed, $failed failed, 0 skipped"; [ "$failed" -eq 0 ]; }

# Every execution of a step leaves a line outside: run step logical engine.
document() {
    cat >"$work/doc.json" <<'DOC'
{"planId": "crash", "planVersion": "1", "schemaVersion": "v1.2", "steps": [
  {"stepId": "a", "kind": "shell", "with": {"command": "echo $CAIRN_RUN_ID $CAIRN_STEP_ID $CAIRN_ATTEMPT $CAIRN_ENGINE_ATTEMPT >> \"$EFFECTS\"; echo one"}, "dependsOn": []},
  {"stepId": "n", "kind": "noop", "dependsOn": []},
  {"stepId": "b", "kind": "shell", "with": {"command": "echo $CAIRN_RUN_ID $CAIRN_STEP_ID $CAIRN_ATTEMPT $CAIRN_ENGINE_ATTEMPT >> \"$EFFECTS\"; test $CAIRN_ATTEMPT -ge 2"}, "dependsOn": ["a"], "retry": {"maxAttempts": 3, "delay": "2ms"}},
  {"stepId": "c", "kind": "shell", "with": {"command": "echo $CAIRN_RUN_ID $CAIRN_STEP_ID $CAIRN_ATTEMPT $CAIRN_ENGINE_ATTEMPT >> \"$EFFECTS\"; test $a.output = one"}, "dependsOn": ["a", "n"]},
  {"stepId": "d", "kind": "merge", "dependsOn": ["b", "c"]}]}
DOC
    export EFFECTS=$work/effects
    : >"$EFFECTS"
}

# keep_world STORE RUN NAME: verifies the log, and keeps what check_world.py needs as NAME.events and NAME.effects. Prints what does not hold.
keep_world() {
    "$CAIRN" log verify "$2" --store "$1" >"$work/verify" 2>&1 || { echo "log verify: $(head -n 1 "$work/verify")"; return 1; }
    "$CAIRN" events "$2" --store "$1" -o jsonl >"$3.events" 2>"$work/err" || { echo "events: $(head -n 1 "$work/err")"; return 1; }
    cp "$EFFECTS" "$3.effects"
}
# check STORE RUN: what I12, I13, I14 and the chain promise. Prints the first thing that does not hold.
check() { keep_world "$1" "$2" "$work/one" && python3 test/crash/check_world.py "$work/one.events" "$work/one.effects" "$2"; }
