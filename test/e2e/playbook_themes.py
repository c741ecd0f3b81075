"""playbook_themes.py CAIRN FILE [FLAG...]: runs every playbook of a file (documents apart by ---) to its end in a store of its own,
and holds it against the comments before it:

  # expect: STEP EXPRESSION    what the step gave last is `r`; of RUN it is the list of steps that began, in their order
  # exit: CODE                 of the run, 0 when not said
  # child                      is run by another one of the file

Each is then lived again (`cairn log replay`). Prints what is not so."""
import json
import os
import re
import subprocess
import sys

cairn, path, flags = sys.argv[1], sys.argv[2], sys.argv[3:]
store = ["--store", "sqlite:runs.db"]


def call(*words):
    return subprocess.run([cairn, *words, *store], capture_output=True, text=True)


def given(events, step):
    if step == "RUN":
        return [event["entity_id"] for event in events if event["event_type"] == "step.started"]
    ended = [event for event in events if event["event_type"] in ("step.done", "step.failed") and event["entity_id"] == step]
    return ended[-1]["payload"].get("outcome", {}).get("result") if ended else "the step did not end"


def faults_of(text, name):
    code = int((re.search(r"^# exit: (\d+)", text, re.M) or [0, 0])[1])
    ran = call("run", name + ".yaml", "--progress", "none", "-o", "json", *flags)
    run = json.loads(ran.stdout)["runId"] if ran.stdout else ""
    if ran.returncode != code:
        yield f"exit {ran.returncode} instead of {code}: {ran.stderr} {call('get', run).stdout[:400]}"
    events = [json.loads(line) for line in call("events", run, "-o", "jsonl").stdout.splitlines()]
    for step, expression in re.findall(r"^# expect: (\S+) (.*)", text, re.M):
        r = given(events, step)
        try:
            held = eval(expression, {"r": r})
        except Exception as fault:
            held = repr(fault)
        if held is not True:
            yield f"{step}: {expression}: {held}, it gave {json.dumps(r)[:600]}"
    again = call("log", "replay", run)
    if again.returncode:
        yield f"lived again: {again.stdout[-400:]} {again.stderr[-400:]}"


documents = {}
for text in re.split(r"^---\n", open(path).read(), flags=re.M):
    documents[re.search(r"name: (\w+)", text)[1]] = text
for name, text in documents.items():
    with open(name + ".yaml", "w") as out:
        out.write(text)
bad = 0
for name, text in documents.items():
    if "# child" not in text:
        for fault in faults_of(text, name):
            bad += 1
            print(f"{name}: {fault}")
print(f"{len(documents)} playbooks")
sys.exit(bad > 0)
