"""What I12, I13, I14 and I15 promise, held against logs of runs and the effects of their steps: check_world.py [EVENTS EFFECTS RUN]...
Says what the first that does not hold is, as "EVENTS: why", and ends with 1."""
import json, sys


def check(events, effects):
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


for log, done, run in zip(*[iter(sys.argv[1:])] * 3):
    with open(log) as lines:
        events = [json.loads(line) for line in lines]
    with open(done) as lines:
        effects = [tuple(line.split()[1:]) for line in lines if line.split()[0] == run]
    try:
        check(events, effects)
    except (AssertionError, KeyError, IndexError) as why:
        sys.exit(f"{log}: {why}")
