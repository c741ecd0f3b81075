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

# check STORE RUN: what I12, I13, I14 and the chain promise. Prints the first thing that does not hold.
check() {
    "$CAIRN" log verify "$2" --store "$1" >"$work/verify" 2>&1 || { echo "log verify: $(head -n 1 "$work/verify")"; return 1; }
    "$CAIRN" events "$2" --store "$1" -o jsonl >"$work/events" 2>"$work/err" || { echo "events: $(head -n 1 "$work/err")"; return 1; }
    python3 - "$work/events" "$EFFECTS" "$2" <<'PY'
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
effects = [tuple(line.split()[1:]) for line in open(sys.argv[2]) if line.split()[0] == sys.argv[3]]
assert [e["runSeq"] for e in events] == list(range(1, len(events) + 1)), "numbers have gaps"
assert len({e["idempotencyKey"] for e in events}) == len(events), "a key twice (ES-1.1e)"
ends = [e for e in events if e["eventType"] in ("RunCompleted", "RunFailed", "RunCancelled")]
assert len(ends) == 1 and events[-1] is ends[0], "not exactly one terminal event at the end (I15)"
assert ends[0]["eventType"] == "RunCompleted", ends[0]["eventType"]
ordered = {(e["stepId"], str(e["logicalAttemptId"]), str(e["engineAttemptId"])) for e in events if e["eventType"] in ("StepStarted", "StepRedispatched")}
assert set(effects) <= ordered, f"ran without an event: {set(effects) - ordered} (I11)"
assert len(set(effects)) == len(effects), "one attempt ran twice (I13)"
for step in "abcd":
    outcomes = [(e["logicalAttemptId"]) for e in events if e.get("stepId") == step and e["eventType"] in ("StepCompleted", "StepFailed", "StepSkipped")]
    assert len(set(outcomes)) == len(outcomes), f"two outcomes of one attempt of {step} (I14)"
    done = [i for i, e in enumerate(events) if e.get("stepId") == step and e["eventType"] == "StepCompleted"]
    assert len(done) == 1, f"{step} completed {len(done)} times (I12)"
    assert not [e for e in events[done[0] + 1:] if e.get("stepId") == step], f"{step} went on after it completed (I12)"
PY
}
