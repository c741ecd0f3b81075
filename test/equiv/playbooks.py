"""Playbooks out of a seed, and what they do, from docs/format/playbook.md alone: nets without meeting branches, pipelines of tasks, rules (retry,
continue, break, fail), loops in order, arcs of both modes with conditions on the workload and on how the step ended."""
import random

from generate import ATTEMPTS, FAULTS, takes
from model import World

DO = ["retry", "retry", "retry", "continue", "break", "fail"]
CONDITIONS = {"done": "{{ event.name == 'step.done' }}", "failed": "{{ event.name == 'step.failed' }}", "a": "{{ x == 'a' }}", "b": "{{ x == 'b' }}"}


class Drawn:
    kind = "playbook"

    def __init__(self, seed):
        self.r = r = random.Random(seed)
        self.mocks, self.gates, self.files = {}, {}, {}
        self.inputs = {"x": r.choice(["a", "b"])}
        count = r.randrange(1, 7)
        self.steps = [{"id": f"s{n}", "arcs": [], "mode": r.choice(["exclusive", "inclusive"]), "tasks": self.tasks(n)} for n in range(count)]
        for s in self.steps:
            if r.random() < 0.25:
                s["loop"] = r.randrange(1, 4)
        for n in range(1, count):
            when = r.choice([None, "done", "done", "failed", "a", "b"])
            self.steps[r.randrange(n)]["arcs"].append({"to": f"s{n}", "when": when})

    def tasks(self, n):
        out = []
        for k in range(self.r.randrange(1, 4)):
            task = {"id": f"t{n}_{k}", "rules": []}
            for _ in range(self.r.randrange(3) if self.r.random() < 0.7 else 0):
                rule = {"on": self.r.choice(["error", "ok", None]), "do": self.r.choice(DO)}
                if rule["do"] == "retry":
                    rule.update(on="error", attempts=self.r.randrange(2, ATTEMPTS + 1), delay=self.r.randrange(1, 60), backoff=self.r.choice(["none", "linear", "exponential"]))
                task["rules"].append(rule)
            out.append(task)
        return out

    def document(self, name):
        return {"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "b", "path": "b"}, "workload": {"x": "a"},
                "workflow": [self.step(s) for s in self.steps]}

    def step(self, s):
        out = {"step": s["id"], "tool": [self.task(t) for t in s["tasks"]]}
        if "loop" in s:
            out["loop"] = {"in": list(range(s["loop"])), "iterator": "item", "spec": {"mode": "sequential"}}
        if s["arcs"]:
            arcs = [{"step": a["to"], **({"when": CONDITIONS[a["when"]]} if a["when"] else {})} for a in s["arcs"]]
            out["next"] = {"spec": {"mode": s["mode"]}, "arcs": arcs}
        return out

    @staticmethod
    def task(t):
        out = {"name": t["id"], "kind": "python", "code": "result = 1"}
        rules = []
        for r in t["rules"]:
            then = {"do": r["do"], **({k: r[k] for k in ("attempts", "delay", "backoff")} if r["do"] == "retry" else {})}
            rules.append({**({"when": f"{{{{ output.status == '{r['on']}' }}}}"} if r["on"] else {}), "then": then})
        if rules:
            out["spec"] = {"policy": {"rules": rules}}
        return out

    def script(self, document, golden):
        return {"document": document, "golden": golden, "inputs": self.inputs,
                "mocks": {k: {**v, "takes": f"{v['takes']}ms"} for k, v in self.mocks.items()}}

    def keys(self):
        for s in self.steps:
            for t in s["tasks"]:
                yield f"{s['id']}[*]/{t['id']}" if "loop" in s else f"{s['id']}/{t['id']}"

    def outcomes(self):
        """Drawn when the document is whole, and only for keys that have none: so a smaller document keeps those of the larger one."""
        r, known = self.r, set(self.keys())
        for key in sorted(known):
            for attempt in range(1, ATTEMPTS + 1):
                if f"{key}#{attempt}" not in self.mocks:
                    mock = {"takes": takes(r)}
                    if r.random() < 0.4:
                        code, retryable = r.choice(FAULTS)
                        mock["fail"] = {"code": code, "retryable": retryable}
                    else:
                        mock["output"] = {"n": 1}
                    self.mocks[f"{key}#{attempt}"] = mock
        self.mocks = {k: v for k, v in self.mocks.items() if k.split("#")[0] in known}


class Net(World):
    def __init__(self, drawn):
        super().__init__(drawn)
        self.by = {s["id"]: s for s in drawn.steps}
        self.running, self.failed = 0, False

    def told(self, s, what, attempt=1, detail=None):
        self.events.setdefault(s["id"], []).append((what, attempt, detail))

    def visit(self, s):
        self.running += 1
        self.told(s, "started")
        self.task(s, 1, 0, 1)

    def task(self, s, item, index, attempt):
        t = s["tasks"][index]
        self.told(s, "try", attempt)
        mock = self.drawn.mocks[(f"{s['id']}[*]/{t['id']}" if "loop" in s else f"{s['id']}/{t['id']}") + f"#{attempt}"]
        self.after(mock["takes"], lambda: self.answered(s, item, index, attempt, mock))

    def answered(self, s, item, index, attempt, mock):
        t, bad = s["tasks"][index], "fail" in mock
        code = mock["fail"]["code"] if bad else None
        self.told(s, "bad" if bad else "ok", attempt, code)
        rule = next((r for r in t["rules"] if r["on"] in (None, "error" if bad else "ok")), None)
        do = rule["do"] if rule else "fail" if bad and not t["rules"] else "continue"
        if do == "retry" and attempt < rule["attempts"]:
            factor = {"none": 1, "linear": attempt, "exponential": 2 ** (attempt - 1)}[rule["backoff"]]
            self.after(rule["delay"] * 1000 * factor, lambda: self.task(s, item, index, attempt + 1))
            return
        if do in ("retry", "fail"):
            self.ended(s, True)
        elif do == "continue" and index + 1 < len(s["tasks"]):
            self.task(s, item, index + 1, 1)
        elif item < s.get("loop", 1):
            self.task(s, item + 1, 0, 1)
        else:
            self.ended(s, False)

    def ended(self, s, bad):
        self.told(s, "failed" if bad else "completed")
        taken = [a for a in s["arcs"] if a["when"] in (None, "failed" if bad else "done", self.drawn.inputs["x"])]
        if s["mode"] == "exclusive":
            taken = taken[:1]
        if bad and not any(a["when"] for a in taken):
            self.failed = True  # nothing was asked about the failure
        for arc in taken:
            self.visit(self.by[arc["to"]])
        self.running -= 1

    def play(self):
        self.visit(self.drawn.steps[0])
        self.run_out()
        self.status = "FAILED" if self.failed else "COMPLETED"
        return self


def play(drawn):
    drawn.outcomes()
    return Net(drawn).play()
