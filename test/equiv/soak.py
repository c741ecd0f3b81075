#!/usr/bin/env python3
"""soak.py CAIRN COUNT [--seed N] [--kind plan|nodes|playbook] [--on HOSTS] [--lie]: so many drawn documents, on the engine and on the model; with --on also
on those hosts, by `cairn equiv`. The first document that differs is made as small as it can be and shown. Exit 1 then. --lie: the
model is wrong about a trigger rule and about arcs, so that a test can see that this is found."""
import argparse, copy, json, os, subprocess, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import generate, model, playbooks

WORDS = {"StepStarted": "started", "StepCompleted": "completed", "StepFailed": "failed", "StepSkipped": "skipped",
         "step.started": "started", "step.done": "completed", "step.failed": "failed", "task.attempt.started": "try",
         "task.attempt.done": "ok", "task.attempt.failed": "bad",
         "node_started": "started", "node_completed": "completed", "node_failed": "failed", "node_skipped": "skipped"}
ENDS = {"RunCompleted": "COMPLETED", "RunFailed": "FAILED", "workflow_completed": "COMPLETED", "workflow_failed": "FAILED"}


def paths(steps, prefix=""):
    """Every step that acts outside or asks, as the script names it."""
    for s in steps:
        path = prefix + s["id"]
        yield path
        if s["body"] == "child":
            yield from paths(s["steps"], path + "/")
        if s["body"] == "loop":
            yield from paths(s["steps"], path + "[*].")
            for n in range(1, s["max"] + 1):
                yield f"{path}[{n}].{s['id']}.until"


def play(drawn):
    return playbooks.play(drawn) if drawn.kind == "playbook" else model.play(drawn)


def draw(seed, kind):
    kind = kind or ["plan", "nodes", "playbook"][seed % 3]
    return playbooks.Drawn(seed) if kind == "playbook" else generate.Drawn(seed, kind)


def trim(drawn):
    """Without what is said of steps that are gone."""
    if drawn.kind == "playbook":
        return
    known = set(paths(drawn.steps))
    drawn.mocks = {k: v for k, v in drawn.mocks.items() if k.split("#")[0] in known}
    drawn.gates = {k: v for k, v in drawn.gates.items() if k in known}


def write(directory, name, drawn):
    drawn.files = {}
    trim(drawn)
    document = drawn.document(name)
    for file, child in drawn.files.items():
        with open(os.path.join(directory, file), "w") as out:
            json.dump(child, out)
    with open(os.path.join(directory, f"{name}.json"), "w") as out:
        json.dump(document, out)
    with open(os.path.join(directory, f"{name}.test.json"), "w") as out:
        json.dump(drawn.script(f"{name}.json", f"{name}.jsonl"), out)


def recorded(path):
    """Events of every step of a golden log, as the model tells them; and how the run ended."""
    events, status = {}, None
    for line in open(path):
        one = json.loads(line)
        run, word = one.get("run", ""), one.get("event") or one.get("ledger")
        if word in ENDS and not run:
            status = ENDS[word]
        if word == "playbook.finished" and not run:
            status = "FAILED" if "error" in one else "COMPLETED"
        what = WORDS.get(word) or {"ATTEMPT_FAILED": "failed"}.get(word)
        if not what or "step" not in one:
            continue
        detail = {"failed": one.get("error"), "bad": one.get("error"), "skipped": one.get("reason"), "completed": one.get("value")}.get(what)
        events.setdefault((run + "/" if run else "") + one["step"], []).append((what, one.get("attempt", 1), detail))
    return events, status


def same_detail(wanted, got):
    return wanted is None or wanted == "?" or wanted == got or (isinstance(wanted, dict) and got == json.dumps(wanted, separators=(",", ":"))) or str(wanted) == str(got)


def difference(wanted, path):
    events, status = recorded(path)
    if wanted.status != status:
        return f"the run: the model says {wanted.status}, the log {status}"
    for step in sorted(set(wanted.events) | set(events)):
        a = [("failed" if w == "again" else w, n, d) for w, n, d in wanted.events.get(step, [])]
        b = events.get(step, [])
        b = [e for i, e in enumerate(b) if not (e[0] == "started" and e in b[:i])]  # handed out again under the same attempt
        if len(a) != len(b) or any(x[:2] != y[:2] or not same_detail(x[2], y[2]) for x, y in zip(a, b)):
            return f"{step}: the model says {a}, the log {b}"
    return None


def run_engine(cairn, directory, names):
    files = [f"{n}.test.json" for n in names]
    done = subprocess.run([cairn, "test", "--update", "-q", *files], cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout


def judge(cairn, directory, name, drawn, on):
    """None: the same, or it has no one order. Else what differs."""
    try:
        wanted = play(drawn)
    except model.Ambiguous:
        return None
    write(directory, name, drawn)
    said = run_engine(cairn, directory, [name])
    golden = os.path.join(directory, f"{name}.jsonl")
    if not os.path.exists(golden):
        return f"it was not played: {said[-600:]}"
    return difference(wanted, golden) or equiv(cairn, directory, [name], on)


def equiv(cairn, directory, names, on):
    if not on:
        return None
    done = subprocess.run([cairn, "equiv", "-q", "--on", on, *[f"{n}.test.json" for n in names]], cwd=directory, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return None if done.returncode == 0 else done.stdout[-3000:]


def smaller_playbook(drawn):
    for i in range(1, len(drawn.steps)):
        less = copy.deepcopy(drawn)
        gone = {less.steps.pop(i)["id"]}
        for s in less.steps:
            s["arcs"] = [a for a in s["arcs"] if a["to"] not in gone]
        yield less
    for i, step in enumerate(drawn.steps):
        if "loop" in step:
            less = copy.deepcopy(drawn)
            del less.steps[i]["loop"]
            yield less
        for k in range(len(step["tasks"])):
            if len(step["tasks"]) > 1:
                less = copy.deepcopy(drawn)
                del less.steps[i]["tasks"][k]
                yield less
            for n in range(len(step["tasks"][k]["rules"])):
                less = copy.deepcopy(drawn)
                del less.steps[i]["tasks"][k]["rules"][n]
                yield less


def smaller(drawn):
    """Documents with one thing less."""
    if drawn.kind == "playbook":
        yield from smaller_playbook(drawn)
        return
    for i, gone in enumerate(drawn.steps):
        less = copy.deepcopy(drawn)
        del less.steps[i]
        for s in less.steps:
            s["deps"] = [d for d in s["deps"] if d != gone["id"]]
        if less.steps:
            yield less
    for i, step in enumerate(drawn.steps):
        for field in ("when", "retry", "timeout"):
            if field in step and not (field == "timeout" and step["body"] == "approval"):
                less = copy.deepcopy(drawn)
                del less.steps[i][field]
                yield less
        for k in range(len(step["deps"])):
            less = copy.deepcopy(drawn)
            del less.steps[i]["deps"][k]
            yield less
        if step["rule"] != "all_success":
            less = copy.deepcopy(drawn)
            less.steps[i]["rule"] = "all_success"
            yield less
        for k in range(len(step.get("steps", []))):
            less = copy.deepcopy(drawn)
            inner = less.steps[i]["steps"]
            gone = inner.pop(k)["id"]
            for s in inner:
                s["deps"] = [d for d in s["deps"] if d != gone]
            if inner:
                yield less
    for key, mock in drawn.mocks.items():
        for field in ("lost", "fail"):
            if field in mock:
                less = copy.deepcopy(drawn)
                del less.mocks[key][field]
                yield less


def shrink(drawn, differs):
    """The smallest document that still differs, by one thing less at a time."""
    shrunk = True
    while shrunk:
        shrunk = False
        for less in smaller(drawn):
            if differs(less):
                drawn, shrunk = less, True
                break
    return drawn


def show(cairn, drawn, on):
    with tempfile.TemporaryDirectory() as directory:
        small = shrink(drawn, lambda d: judge(cairn, directory, "small", d, on) is not None)
        what = judge(cairn, directory, "small", small, on)
        print(what)
        for file in sorted(os.listdir(directory)):
            if file.startswith("small") and file.endswith(".json"):
                print(f"--- {file}\n{json.dumps(json.load(open(os.path.join(directory, file))))}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cairn")
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=["plan", "nodes", "playbook"])
    parser.add_argument("--on", default="")
    parser.add_argument("--lie", action="store_true")
    args = parser.parse_args()
    if args.lie:
        right = model.passes
        model.passes = lambda rule, states: right("all_done" if rule == "one_success" else rule, states)
        playbooks.CONDITIONS["done"] = playbooks.CONDITIONS["failed"]
    cairn, compared, drawn_count, batch = os.path.abspath(args.cairn), 0, 0, 200
    while compared < args.count:
        with tempfile.TemporaryDirectory() as directory:
            cases = {}
            while len(cases) < min(batch, args.count - compared):
                seed = args.seed + drawn_count
                drawn_count += 1
                drawn = draw(seed, args.kind)
                try:
                    cases[f"d{seed}"] = (seed, drawn, play(drawn))
                except model.Ambiguous:
                    continue
                write(directory, f"d{seed}", drawn)
            said = run_engine(cairn, directory, list(cases))
            for name, (seed, drawn, wanted) in cases.items():
                golden = os.path.join(directory, f"{name}.jsonl")
                what = difference(wanted, golden) if os.path.exists(golden) else f"it was not played: {said[-800:]}"
                if what:
                    print(f"seed {seed} ({drawn.kind}) differs: {what}")
                    show(cairn, drawn, args.on)
                    return 1
            odd = equiv(cairn, directory, list(cases), args.on)
            if odd:
                print(f"hosts differ, seeds {args.seed + compared} and after: {odd}")
                return 1
            compared += len(cases)
    print(f"{compared} documents of {drawn_count} drawn: the engine and the model say the same" + (f", and so do {args.on}" if args.on else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
