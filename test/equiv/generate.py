"""Documents and scripts out of a seed: plans and node workflows with every trigger rule, conditions, retries, time limits, waits, gates,
loops and child runs, and for each step that acts outside what comes of each attempt. Times are drawn so that two things seldom happen at once."""
import random

RULES = ["all_success", "one_success", "none_failed_min_one_success", "all_done", "all_failed", "one_failed", "none_failed",
         "none_skipped", "one_done", "all_skipped", "all_done_min_one_success", "always"]
FAULTS = [("EXIT_NONZERO", True), ("SPAWN_FAILED", True), ("COMMAND_NOT_FOUND", False), ("BROKEN_PIPE", True)]
ATTEMPTS = 4


def takes(r):
    return r.randrange(1, 9973) * 7 + r.randrange(7)


class Drawn:
    """A document of one kind, the script that goes with it, and further documents that it runs."""

    def __init__(self, seed, kind=None):
        self.r = random.Random(seed)
        self.kind = kind or self.r.choice(["plan", "nodes"])
        self.mocks, self.gates, self.files = {}, {}, {}
        self.inputs = {"x": self.r.choice(["a", "b"])}
        self.steps = self.scope(self.r.randrange(2, 9), "", 0)

    # ---- steps, as the model reads them: {id, body, deps, rule, when?, retry?, timeout?, ...}
    def scope(self, count, prefix, depth):
        steps = []
        for n in range(count):
            step = {"id": f"s{n}", "deps": sorted({f"s{self.r.randrange(n)}" for _ in range(self.r.randrange(4))} if n else [])}
            step["rule"] = self.r.choice(RULES) if self.r.random() < 0.6 else "all_success"
            if self.r.random() < 0.2:
                step["when"] = self.r.choice(["a", "b"])
            self.body(step, prefix, depth)
            steps.append(step)
        return steps

    def body(self, step, prefix, depth):
        r = self.r
        kinds = ["shell"] * 6 + ["echo", "noop", "merge", "wait", "approval", "approval"]
        if depth == 0:
            kinds += ["child", "child"] + (["loop", "loop"] if self.kind == "nodes" else [])
        step["body"] = r.choice(kinds)
        path = prefix + step["id"]
        if step["body"] == "shell":
            if r.random() < 0.5:
                step["retry"] = {"max": r.randrange(2, ATTEMPTS + 1), "delay": takes(r) // 3, "on": r.choice(["transient", "all"])}
                if self.kind == "plan":
                    step["retry"]["backoff"] = r.choice(["none", "linear", "exponential"])
                    if r.random() < 0.2:
                        step["retry"]["never"] = r.choice(FAULTS)[0]
                else:
                    step["retry"]["backoff"] = "exponential"
            if r.random() < 0.25:
                step["timeout"] = takes(r)
            self.outcomes(path)
        elif step["body"] == "echo":
            step["value"] = r.choice(["one", 2, True])
        elif step["body"] == "wait":
            step["takes"] = takes(r)
        elif step["body"] == "approval":
            if r.random() < 0.5:
                step["timeout"], step["late"] = takes(r), r.choice(["approve", "reject", "fail"])
            if r.random() < 0.8 or "timeout" not in step:
                self.gates[path] = {"answer": r.choice(["yes", "yes", "no"]), "takes": takes(r)}
        elif step["body"] == "child":
            step["steps"] = self.scope(r.randrange(1, 4), path + "/", 1)
        elif step["body"] == "loop":
            step["max"] = r.randrange(1, 4)
            step["until"] = r.random() < 0.7
            step["steps"] = self.scope(r.randrange(1, 4), path + "[*].", 1)
            if step["until"]:
                for n in range(1, step["max"] + 1):
                    self.mocks[f"{path}[{n}].{step['id']}.until"] = {"exit": 0 if r.random() < 0.4 else 1, "takes": takes(r)}

    def outcomes(self, path):
        for attempt in range(1, ATTEMPTS + 1):
            mock = {"takes": takes(self.r)}
            if self.r.random() < 0.4:
                code, retryable = self.r.choice(FAULTS)
                mock["fail"] = {"code": code, "retryable": retryable}
            else:
                mock["output"] = self.r.choice(["v", {"n": 1}, 7])
            if self.r.random() < 0.1:
                mock["lost"] = self.r.randrange(1, 3)
            self.mocks[f"{path}#{attempt}"] = mock

    # ---- as documents have it
    def document(self, name):
        return self.written(self.steps, name, self.kind)

    def written(self, steps, name, kind):
        if kind == "plan":
            return {"metadata": {"planId": "p", "planVersion": "1", "schemaVersion": "v1.2"}, "inputs": {"x": "a"},
                    "steps": [self.plan_step(s, name) for s in steps]}
        return {"name": "n", "inputs": {"x": "a"}, "nodes": [self.node(s, name) for s in steps]}

    def child(self, step, name):
        file = f"{name}-{step['id']}.json"
        self.files[file] = self.written(step["steps"], file, self.kind)
        return file

    def plan_step(self, s, name):
        out = {"stepId": s["id"], "dependsOn": s["deps"], "triggerRule": s["rule"]}
        body = {"shell": ("shell", {"command": "x"}), "noop": ("noop", None), "merge": ("merge", None), "echo": ("echo", {"message": s.get("value")}),
                "wait": ("wait", {"duration": s.get("takes")}), "child": ("subrun", None), "approval": ("approval", {"message": "m"})}[s["body"]]
        out["kind"], given = body
        if s["body"] == "child":
            given = {"document": self.child(s, name)}
        if s["body"] == "approval" and "timeout" in s:
            given.update(timeout=s["timeout"], onTimeout=s["late"])
        if given:
            out["with"] = given
        if "when" in s:
            out["when"] = f"$INPUTS.x == '{s['when']}'"
        if "retry" in s:
            out["retry"] = {"maxAttempts": s["retry"]["max"], "delay": s["retry"]["delay"], "backoff": s["retry"]["backoff"], "on": s["retry"]["on"]}
            if "never" in s["retry"]:
                out["retry"]["nonRetryable"] = [s["retry"]["never"]]
        if s["body"] == "shell" and "timeout" in s:
            out["timeout"] = s["timeout"]
        return out

    def node(self, s, name):
        out = {"id": s["id"], "depends_on": s["deps"], "trigger_rule": s["rule"]}
        if s["body"] == "shell":
            out["bash"] = "x"
        elif s["body"] in ("noop", "merge"):
            out[s["body"]] = True
        elif s["body"] == "echo":
            out["echo"] = s["value"]
        elif s["body"] == "wait":
            out["wait"] = {"duration_ms": s["takes"]}
        elif s["body"] == "approval":
            out["approval"] = {"message": "m", **({"timeout": s["timeout"], "on_timeout": s["late"]} if "timeout" in s else {})}
        elif s["body"] == "child":
            out["workflow"] = {"path": self.child(s, name)}
        else:
            out["loop_group"] = {"max_iterations": s["max"], "nodes": [self.node(i, name) for i in s["steps"]]}
            if s["until"]:
                out["loop_group"]["until_bash"] = "x"
        if "when" in s:
            out["when"] = f"$INPUTS.x == '{s['when']}'"
        if "retry" in s:
            out["retry"] = {"max_attempts": s["retry"]["max"] - 1, "delay_ms": s["retry"]["delay"], "on_error": s["retry"]["on"]}
        if s["body"] == "shell" and "timeout" in s:
            out["timeout"] = s["timeout"]
        return out

    def script(self, document, golden):
        return {"document": document, "golden": golden, "inputs": self.inputs,
                "mocks": {k: {**v, "takes": f"{v['takes']}ms"} for k, v in self.mocks.items()},
                "approvals": {k: {**v, "takes": f"{v['takes']}ms"} for k, v in self.gates.items()}}
