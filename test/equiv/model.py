"""What a document does, from its contract (docs/format/plan.md, nodes.md, trigger-rules.md, events.md, ADR 0011) and nothing else: no line
of the engine is read or called here. It plays what generate.py drew and gives, for every step, the events that its log must have, in order."""
import heapq

NEAR = 25  # ms: two things so near to each other have no order that the contract promises
DELAY_MAX = 60000  # of node workflows


class Ambiguous(Exception):
    pass


def passes(rule, states):
    s, f, k = states.count("S"), states.count("F"), states.count("K")
    if not states:
        return True
    return {"all_success": s == len(states), "one_success": s > 0, "none_failed_min_one_success": f == 0 and s > 0, "all_done": True,
            "all_failed": f == len(states), "one_failed": f > 0, "none_failed": f == 0, "none_skipped": k == 0, "one_done": s + f > 0,
            "all_skipped": k == len(states), "all_done_min_one_success": s > 0, "always": True}[rule]


class Scope:
    """The steps of a document, or of one round of a loop."""

    def __init__(self, world, steps, prefix, key, run, ended):
        self.world, self.steps, self.prefix, self.key, self.run, self.ended = world, steps, prefix, key, run, ended
        self.state = {s["id"]: "P" for s in steps}  # Pending, Running, S, F, K
        self.blamed = {}  # skipped, and why: True = because of a failure
        self.cause = None

    def decide(self):
        moved = True
        while moved:
            moved = False
            for s in self.steps:
                if self.state[s["id"]] == "P" and all(self.state[d] in "SFK" for d in s["deps"]):
                    moved = self.consider(s) or moved
        if not any(v == "R" for v in self.state.values()) and self.ended:
            ended, self.ended = self.ended, None
            ended(self)

    def consider(self, s):
        states = [self.state[d] for d in s["deps"]]
        below = any(self.state[d] == "F" or self.blamed.get(d) for d in s["deps"])
        if self.run["plan"] and self.run["failed"] and not below:
            return False  # ADR 0011: nothing that is unrelated begins
        path = self.prefix + s["id"]
        if not passes(s["rule"], states):
            self.state[s["id"]], self.blamed[s["id"]] = "K", below
            self.world.say(self.run, path, "skipped", 1, "DEPENDENCY_FAILED" if below else "TRIGGER_RULE")
        elif "when" in s and s["when"] != self.world.drawn.inputs["x"] and not self.run["child"]:
            self.state[s["id"]] = "K"
            self.world.say(self.run, path, "skipped", 1, "CONDITION_FALSE")
        elif "when" in s and self.run["child"] and s["when"] != "a":  # its own inputs have their defaults
            self.state[s["id"]] = "K"
            self.world.say(self.run, path, "skipped", 1, "CONDITION_FALSE")
        else:
            self.state[s["id"]] = "R"
            self.begin(s, path, 1)
        return True

    def end(self, s, path, attempt, fault, value=None, compare=True):
        if fault:
            self.state[s["id"]] = "F"
            self.run["failed"] = True
            self.run["cause"] = self.run["cause"] or path
            self.world.say(self.run, path, "failed", attempt, fault if compare else None)
        else:
            self.state[s["id"]] = "S"
            self.world.say(self.run, path, "completed", attempt, value if compare else None)
        self.decide()

    def begin(self, s, path, attempt):
        w, full = self.world, self.key + s["id"]
        w.say(self.run, path, "started", attempt, None)
        body = s["body"]
        if body == "shell":
            self.execute(s, path, full, attempt, 0)
        elif body in ("echo", "noop", "merge"):
            w.now(lambda: self.end(s, path, 1, None, s.get("value"), body == "echo"))
        elif body == "wait":
            w.after(s["takes"], lambda: self.end(s, path, 1, None, None, False))
        elif body == "approval":
            self.ask(s, path, full)
        elif body == "child":
            run = {"id": self.run["id"] + path + "/", "plan": self.run["plan"], "failed": False, "cause": None, "child": True}
            w.now(lambda: w.start(run, s["steps"], full + "/", lambda ok: self.end(s, path, 1, None if ok else "?", None, False)))
        elif body == "loop":
            self.round(s, path, full, 1)

    def ask(self, s, path, full):
        w, gate = self.world, self.world.drawn.gates.get(full)
        if gate and not ("timeout" in s and s["timeout"] <= gate["takes"]):
            if "timeout" in s and s["timeout"] - gate["takes"] < NEAR:
                raise Ambiguous
            yes = gate["answer"] == "yes"
            w.after(gate["takes"], lambda: self.end(s, path, 1, None if yes else "APPROVAL_REJECTED", None, not yes))
        elif "timeout" in s:
            if gate and gate["takes"] - s["timeout"] < NEAR:
                raise Ambiguous
            fault = {"approve": None, "reject": "APPROVAL_REJECTED", "fail": "APPROVAL_TIMEOUT"}[s["late"]]
            w.after(s["timeout"], lambda: self.end(s, path, 1, fault, None, fault is not None))

    def execute(self, s, path, full, attempt, lost):
        w = self.world
        mock = w.drawn.mocks[f"{full}#{attempt}"]
        if lost < mock.get("lost", 0):  # nobody knows what came of it: handed out again, under the same attempt
            w.after(mock["takes"], lambda: self.execute(s, path, full, attempt, lost + 1))
            return
        late = "timeout" in s and mock["takes"] >= s["timeout"]
        fault = ("TIMEOUT", True) if late else (mock["fail"]["code"], mock["fail"]["retryable"]) if "fail" in mock else None
        w.after(s["timeout"] if late else mock["takes"], lambda: self.answered(s, path, full, attempt, fault, mock.get("output")))

    def answered(self, s, path, full, attempt, fault, value):
        retry = s.get("retry")
        again = fault and retry and attempt < retry["max"] and (retry["on"] == "all" or fault[1]) and fault[0] != retry.get("never")
        if not again:
            self.end(s, path, attempt, fault and fault[0], value)
            return
        self.world.say(self.run, path, "again", attempt, fault[0])
        delay = retry["delay"] * {"none": 1, "linear": attempt, "exponential": 2 ** (attempt - 1)}[retry["backoff"]]
        if not self.run["plan"]:
            delay = min(delay, DELAY_MAX)
        self.world.after(delay, lambda: self.begin(s, path, attempt + 1))

    # ---- loops
    def round(self, s, path, full, number):
        inner = Scope(self.world, s["steps"], f"{path}[{number}].", f"{full}[*].", {**self.run, "plan": False, "failed": False, "cause": None},
                      lambda scope: self.rounded(s, path, full, number, scope))
        inner.run["say"] = self.run.get("say", self.run)
        inner.decide()

    def rounded(self, s, path, full, number, scope):
        until = f"{path}[{number}].{s['id']}.until"
        if "F" in scope.state.values():
            if s["until"]:
                self.world.say(self.run, until, "skipped", 1, "DEPENDENCY_FAILED")
            self.end(s, path, 1, "?", None, False)
        elif s["until"]:
            mock = self.world.drawn.mocks[f"{full}[{number}].{s['id']}.until"]
            self.world.say(self.run, until, "started", 1, None)
            self.world.after(mock["takes"], lambda: self.asked(s, path, full, number, until, mock["exit"] == 0))
        else:
            self.again(s, path, full, number, number == s["max"])

    def asked(self, s, path, full, number, until, holds):
        self.world.say(self.run, until, "completed", 1, holds)
        if not holds and number == s["max"]:
            self.end(s, path, 1, "LOOP_EXHAUSTED")
        else:
            self.again(s, path, full, number, holds)

    def again(self, s, path, full, number, done):
        if done:
            self.end(s, path, 1, None, None, False)
        else:
            self.round(s, path, full, number + 1)


class World:
    def __init__(self, drawn):
        self.drawn, self.time, self.queue, self.count = drawn, 0, [], 0
        self.events, self.status = {}, None

    def say(self, run, path, what, attempt, detail):
        self.events.setdefault(run.get("say", run)["id"] + path, []).append((what, attempt, detail))

    def after(self, ms, act):
        self.count += 1
        heapq.heappush(self.queue, (self.time + ms, self.count, act))

    def now(self, act):
        self.after(0, act)

    def start(self, run, steps, key, ended):
        Scope(self, steps, "", key, run, lambda scope: self.finish(run, scope, ended)).decide()

    @staticmethod
    def finish(run, scope, ended):
        nothing = not run["plan"] and "S" not in scope.state.values()  # a node workflow of which nothing completed has failed
        ended(not run["failed"] and not nothing)

    def play(self):
        run = {"id": "", "plan": self.drawn.kind == "plan", "failed": False, "cause": None, "child": False}

        def over(ok):
            self.status = "COMPLETED" if ok else "FAILED"
        self.start(run, self.drawn.steps, "", over)
        self.run_out()
        return self

    def run_out(self):
        """Until nothing is left to do."""
        while self.queue:
            at, _, act = heapq.heappop(self.queue)
            if 0 < at - self.time < NEAR:
                raise Ambiguous
            self.time = at
            act()


def play(drawn):
    return World(drawn).play()
