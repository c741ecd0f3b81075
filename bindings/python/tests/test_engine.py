"""The binding against the real library: $CAIRN_LIBRARY names it when it is not installed."""
import asyncio
import decimal
import gc
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
import weakref

import cairn
from cairn import _engine

PLAN = {"planId": "p", "planVersion": "1"}


def plan(*steps, **more):
    return {**PLAN, "steps": list(steps), **more}


def call(step, kind, depends=(), **more):
    inputs = more.pop("inputs", {})
    return {"stepId": step, "kind": kind, "with": inputs, "dependsOn": list(depends), **more}


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory()
        self.addCleanup(self.dir.cleanup)
        self.url = f"sqlite:{self.dir.name}/store.db"

    def engine(self, url=None, **more):
        engine = cairn.Engine(url or "memory:", **more)
        self.addCleanup(engine.close, drain=False, timeout=1.0)
        return engine


class Steps(Case):
    def test_functions_are_steps(self):
        engine = self.engine()

        @engine.step("add")
        def add(a, b=1):
            return {"sum": a + b}

        @engine.step("shout")
        def shout(inputs):
            return [text.upper() for text in inputs["texts"]]

        run = engine.run(plan(call("x", "add", inputs={"a": "$INPUTS.n"}),
                              call("y", "shout", ["x"], inputs={"texts": ["sum is $x.output.sum", "grüße 🎉"]})), {"n": 41}, "r1")
        self.assertEqual(run.wait(10), cairn.Status.COMPLETED)
        self.assertEqual(run.output("x"), {"sum": 42})
        self.assertEqual(run.output("y"), ["SUM IS 42", "GRÜSSE 🎉"])
        self.assertEqual(run.result(), {"x": {"sum": 42}, "y": ["SUM IS 42", "GRÜSSE 🎉"]})
        self.assertEqual(add(1), {"sum": 2})  # still a function

    def test_node_workflows_use_them(self):
        engine = self.engine()
        engine.register("double", lambda n: n * 2)
        run = engine.run("name: w\nnodes:\n  - id: a\n    use: double\n    with: { n: 21 }\n")
        self.assertEqual(run.result(10), {"a": 42})

    def test_documents_come_from_files(self):
        engine = self.engine()
        engine.register("double", lambda n: n * 2)
        path = os.path.join(self.dir.name, "w.yaml")
        with open(path, "w") as out:
            out.write("nodes:\n  - id: a\n    use: double\n    with: { n: 4 }\n")
        self.assertEqual(engine.run(path).result(10), {"a": 8})
        with self.assertRaises(cairn.CairnError) as caught:
            engine.run(path + ".missing")
        self.assertEqual(caught.exception.code, "NOT_FOUND")

    def test_attempt_tells_what_is_called(self):
        engine, seen = self.engine(), []
        engine.register("look", lambda: seen.append(cairn.attempt()))
        engine.run(plan(call("a", "look", timeout="5s")), run_id="r1").wait(10)
        self.assertEqual((seen[0].run, seen[0].step, seen[0].kind, seen[0].key), ("r1", "a", "look", "r1:a:1"))
        self.assertEqual((seen[0].logical, seen[0].engine, seen[0].timeout), (1, 1, 5.0))
        with self.assertRaises(RuntimeError):
            cairn.attempt()

    def test_exceptions_are_faults_with_the_name_of_their_type(self):
        told = []
        engine = self.engine(on_exception=lambda name, error: told.append((name, str(error))))

        @engine.step("fail")
        def fail():
            raise KeyError("süß")

        run = engine.run(plan(call("a", "fail")), run_id="r1")
        with self.assertRaises(cairn.RunFailed) as caught:
            run.result(10)
        self.assertIn("KeyError", caught.exception.cause)
        self.assertIn("süß", caught.exception.cause)
        self.assertEqual(caught.exception.status, cairn.Status.FAILED)
        self.assertEqual(told, [("fail", "'süß'")])

    def test_retry_and_permanent_decide_about_trying_again(self):
        engine, calls = self.engine(), {"retry": 0, "permanent": 0}

        @engine.step("retry")
        def retry():
            calls["retry"] += 1
            if calls["retry"] < 3:
                raise cairn.Retry("busy", code="BUSY")
            return cairn.attempt().logical

        @engine.step("permanent")
        def permanent():
            calls["permanent"] += 1
            raise cairn.Permanent("no such card", code="CARD_UNKNOWN")

        policy = {"maxAttempts": 5, "delay": 1}
        self.assertEqual(engine.run(plan(call("a", "retry", retry=policy))).result(10), {"a": 3})
        with self.assertRaises(cairn.RunFailed) as caught:
            engine.run(plan(call("a", "permanent", retry=policy))).result(10)
        self.assertIn("CARD_UNKNOWN", caught.exception.cause)
        self.assertEqual(calls, {"retry": 3, "permanent": 1})

    def test_outputs_that_json_cannot_hold_fail(self):
        engine = self.engine()
        engine.register("bad", lambda: {1, 2})
        engine.register("nan", lambda: float("nan"))
        for kind in ("bad", "nan"):
            self.assertEqual(engine.run(plan(call("a", kind))).wait(10), cairn.Status.FAILED)

    def test_big_outputs_travel(self):
        engine = self.engine(self.url)
        engine.register("big", lambda: {"text": "ü" * 300_000})
        engine.register("size", lambda text: len(text))
        run = engine.run(plan(call("a", "big"), call("b", "size", ["a"], inputs={"text": "$a.output.text"})))
        self.assertEqual(run.result(20)["b"], 300_000)

    def test_coroutines_are_steps(self):
        engine = self.engine()

        @engine.step("slowly")
        async def slowly(n):
            await asyncio.sleep(0.01)
            return n + cairn.attempt().logical

        self.assertEqual(engine.run(plan(call("a", "slowly", inputs={"n": 1}))).result(10), {"a": 2})

    def test_answers_may_come_later_from_another_thread(self):
        engine, kept = self.engine(), []

        @engine.step("later")
        def later():
            kept.append(cairn.attempt().later())
            return kept[-1]

        run = engine.run(plan(call("a", "later")))
        while not kept:
            time.sleep(0.005)
        threading.Timer(0.02, kept[0].complete, [{"ok": "spät"}]).start()
        self.assertEqual(run.result(10), {"a": {"ok": "spät"}})
        with self.assertRaises(cairn.CairnError) as caught:
            kept[0].complete(1)
        self.assertEqual(caught.exception.code, "CONFLICT")
        run = engine.run(plan(call("a", "later")))
        while len(kept) < 2:
            time.sleep(0.005)
        kept[1].fail(ValueError("nope"))
        self.assertEqual(run.wait(10), cairn.Status.FAILED)

    def test_steps_see_that_they_are_cancelled(self):
        engine, stopped, begun = self.engine(), threading.Event(), threading.Event()

        @engine.step("long")
        def long():
            begun.set()
            while not cairn.attempt().cancelled:
                time.sleep(0.002)
            stopped.set()

        run = engine.run(plan(call("a", "long")))
        begun.wait(10)
        self.assertTrue(run.cancel("enough").accepted)
        self.assertEqual(run.wait(10), cairn.Status.CANCELLED)
        self.assertTrue(stopped.wait(1))


class Runs(Case):
    def test_mistakes_are_told(self):
        engine = self.engine()
        with self.assertRaises(cairn.CairnError) as caught:
            engine.run("nodes:\n  - id: a\n    use: nobody\n")
        self.assertEqual((caught.exception.code, caught.exception.line), ("INVALID", 3))
        self.assertTrue(caught.exception.hint)
        self.assertIn("nobody", engine.check("nodes:\n  - id: a\n    use: nobody\n"))
        self.assertEqual(engine.check(plan(call("a", "noop"))), "")
        with self.assertRaises(cairn.CairnError):
            engine.register("shell", print)
        with self.assertRaises(cairn.CairnError) as caught:
            engine.get("nobody").wait(0)
        self.assertEqual(caught.exception.code, "NOT_FOUND")
        with self.assertRaises(ValueError):
            engine.get("no\0body").wait(0)

    def test_starting_twice_is_starting_once(self):
        engine, calls = self.engine(self.url), []
        engine.register("count", lambda: calls.append(1))
        first = engine.run(plan(call("a", "count")), run_id="once")
        second = engine.run(plan(call("a", "count")), run_id="once")
        self.assertEqual((first.wait(10), second.wait(10)), (cairn.Status.COMPLETED,) * 2)
        self.assertEqual(len(calls), 1)
        with self.assertRaises(cairn.CairnError) as caught:
            engine.run(plan(call("b", "count")), run_id="once")
        self.assertEqual(caught.exception.code, "CONFLICT")

    def test_events_views_and_lists(self):
        engine = self.engine(self.url)
        engine.register("one", lambda: 1)
        for i in range(5):
            engine.run(plan(call("a", "one")), run_id=f"r{i}").wait(10)
        events = list(engine.get("r0").events())
        self.assertEqual([e.seq for e in events], list(range(1, len(events) + 1)))
        self.assertEqual((events[0].type, events[-1].type), ("RunQueued", "RunCompleted"))
        self.assertEqual(events[0].data["runId"], "r0")
        self.assertEqual([e.seq for e in engine.get("r0").events(after=3)], [e.seq for e in events[3:]])
        self.assertEqual(engine.get("r0").view()["status"], "COMPLETED")
        self.assertNotEqual(engine.get("r0").view(at=1)["status"], "COMPLETED")
        self.assertEqual([info.run for info in engine.runs()], ["r4", "r3", "r2", "r1", "r0"])
        self.assertEqual([info.run for info in engine.runs(prefix="r3")], ["r3"])
        self.assertEqual(list(engine.runs(unfinished=True)), [])
        info = next(engine.runs(status=cairn.Status.COMPLETED))
        self.assertEqual((info.plan, info.steps, info.completed), ("p", 1, 1))

    def test_what_was_given_and_what_is_left(self):
        engine = self.engine(self.url)

        def report(path):
            with open(os.path.join(cairn.attempt().artifacts_dir, path), "w") as file:
                file.write("fine")

        engine.register("report", report)
        step = call("a", "report", inputs={"path": "r.txt"}, artifacts=[{"path": "r.txt", "kind": "report"}])
        run = engine.run(plan(step), run_id="r1", inputs={"day": 1})
        run.wait(20)
        self.assertEqual(run.payload(), {"runId": "r1", "inputs": {"day": 1}})
        self.assertEqual([(a["name"], a["stepId"], a["state"]) for a in run.artifacts()], [("r.txt", "a", "ok")])
        self.assertEqual(run.artifact("r.txt"), b"fine")
        self.assertEqual(run.artifact("r.txt", step="a"), b"fine")
        with self.assertRaises(cairn.CairnError):
            run.artifact("r.txt", step="b")
        proof = run.proof()
        self.assertTrue(proof["verified"])
        self.assertEqual(proof["checkpoint"]["runId"], "r1")

    def test_signals_are_answered(self):
        engine = self.engine()
        run = engine.run(plan({"stepId": "gate", "kind": "approval"}))
        with self.assertRaises(TimeoutError):
            run.wait(0.02)
        self.assertEqual(run.status, cairn.Status.RUNNING)
        self.assertFalse(run.signal("RETRY_STEP", "gate").accepted)
        self.assertTrue(engine.signal(run.id, "APPROVE", "gate", "fine").accepted)
        self.assertEqual(run.wait(10), cairn.Status.COMPLETED)
        self.assertEqual(run.cancel().code, "RUN_TERMINAL")

    def test_many_runs_at_once(self):
        engine = self.engine(self.url, workers=8)
        engine.register("square", lambda n: n * n)
        runs = []

        def start(first):
            for n in range(first, first + 25):
                runs.append((n, engine.run(plan(call("a", "square", inputs={"n": "$INPUTS.n"})), {"n": n}, f"r{n}")))

        threads = [threading.Thread(target=start, args=(k * 25,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(runs), 100)
        for n, run in runs:
            self.assertEqual(run.result(20), {"a": n * n})

    def test_output_and_log_are_told(self):
        lines = []
        engine = self.engine(output=lambda run, step, line: lines.append((run, step, line)))
        engine.register("talk", lambda: cairn.attempt().log("hälfte"))
        engine.run(plan(call("a", "talk")), run_id="r1").wait(10)
        for _ in range(200):
            if lines:
                break
            time.sleep(0.005)
        self.assertEqual(lines, [("r1", "a", "hälfte")])

    def test_processes_may_be_off(self):
        engine = self.engine(processes=False)
        with self.assertRaises(cairn.CairnError) as caught:
            engine.run(plan({"stepId": "s", "kind": "shell", "with": {"command": "true"}}))
        self.assertEqual(caught.exception.code, "UNSUPPORTED")


class Await(Case):
    def test_runs_can_be_awaited_together(self):
        engine = self.engine(self.url)
        engine.register("square", lambda n: n * n)

        async def main():
            runs = [engine.run(plan(call("a", "square", inputs={"n": n})), run_id=f"r{n}") for n in range(40)]
            return await asyncio.gather(*runs)

        self.assertEqual(asyncio.run(main()), [{"a": n * n} for n in range(40)])

    def test_failures_are_raised_and_timeouts_cancel_nothing(self):
        engine = self.engine()
        engine.register("fail", lambda: 1 / 0)

        async def main():
            with self.assertRaises(cairn.RunFailed) as caught:
                await engine.run(plan(call("a", "fail")))
            self.assertIn("ZeroDivisionError", caught.exception.cause)
            gate = engine.run(plan({"stepId": "gate", "kind": "approval"}))
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(_awaited(gate), 0.05)
            gate.approve("gate")
            return await gate

        self.assertIn("gate", asyncio.run(main()))


async def _awaited(run):
    return await run


class Life(Case):
    def test_context_manager_drains(self):
        done = []
        with cairn.Engine(self.url) as engine:
            engine.register("slow", lambda: (time.sleep(0.05), done.append(1))[1])
            engine.run(plan(call("a", "slow"), call("b", "slow", ["a"])), run_id="r1")
            while not list(engine.runs(unfinished=True)):
                pass
            time.sleep(0.01)
        self.assertEqual(len(done), 1)  # b was not begun
        with self.assertRaises(cairn.CairnError):
            engine.run(plan(call("a", "slow")))
        engine.close()
        with cairn.Engine(self.url) as engine:
            engine.register("slow", lambda: done.append(2))
            self.assertEqual(engine.recover(), 1)
            self.assertEqual(engine.get("r1").wait(10), cairn.Status.COMPLETED)
        self.assertEqual(done, [1, 2])

    def test_callbacks_live_as_long_as_they_are_needed_and_no_longer(self):
        before = len(_engine._registered)

        def scope():
            engine = cairn.Engine("memory:")
            engine.register("make", lambda: [1] * 1000)  # nobody here keeps the function
            gc.collect()
            for _ in range(20):
                self.assertEqual(len(engine.run(plan(call("a", "make"))).result(10)["a"]), 1000)
            held = list(_engine._registered.values())[-1]
            for _ in range(200):  # the last one is let go a moment after its result was taken
                if not held.held:
                    break
                time.sleep(0.005)
            self.assertEqual(held.held, {})  # every output was let go
            return weakref.ref(engine)

        dead = scope()
        gc.collect()
        self.assertIsNone(dead())  # closed by its end of life
        for _ in range(200):
            if len(_engine._registered) == before:
                break
            time.sleep(0.005)
        self.assertEqual(len(_engine._registered), before)

    def test_a_function_that_never_returns_does_not_hold_the_end_up(self):
        release = threading.Event()
        engine = cairn.Engine("memory:")
        engine.register("stuck", lambda: release.wait(30))
        engine.run(plan(call("a", "stuck")))
        begun = time.monotonic()
        engine.close(timeout=0.1)
        self.assertLess(time.monotonic() - begun, 5)
        release.set()

    def test_kill_9_loses_nothing_and_repeats_nothing_that_was_done(self):
        script = textwrap.dedent("""
            import os, sys, time
            import cairn
            url, notes = sys.argv[1:3]
            engine = cairn.Engine(url)

            def note(line):
                with open(notes, "a") as out:
                    out.write(line + "\\n")

            @engine.step("first")
            def first(n):
                note(f"first {n}")
                return {"n": n + 1}

            @engine.step("second")
            def second(n):
                me = cairn.attempt()
                note(f"second {n} {me.logical}.{me.engine} {me.key}")
                if me.engine == 1:
                    print("ready", flush=True)
                    time.sleep(60)
                return n * 2

            document = {"planId": "p", "planVersion": "1", "steps": [
                {"stepId": "a", "kind": "first", "with": {"n": 20}},
                {"stepId": "b", "kind": "second", "with": {"n": "$a.output.n"}, "dependsOn": ["a"]}]}
            print(engine.run(document, run_id="r1").result(), flush=True)
            engine.close()
        """)
        notes = os.path.join(self.dir.name, "notes")
        command = [sys.executable, "-c", script, self.url, notes]
        first = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.assertEqual(first.stdout.readline(), "ready\n")
        first.send_signal(signal.SIGKILL)
        first.wait()
        first.stdout.close()
        second = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=30, check=True)
        self.assertEqual(second.stdout.strip(), "{'a': {'n': 21}, 'b': 42}")
        with open(notes) as lines:
            self.assertEqual(lines.read().splitlines(), ["first 20", "second 21 1.1 r1:b:1", "second 21 1.2 r1:b:1"])

    def test_closing_sends_waiting_threads_away(self):
        engine, codes = cairn.Engine(self.url), []
        run = engine.run(plan({"stepId": "gate", "kind": "approval"}), run_id="r1")

        def wait():
            try:
                run.wait()
            except cairn.CairnError as error:
                codes.append(error.code)

        threads = [threading.Thread(target=wait) for _ in range(5)]
        for thread in threads:
            thread.start()
        time.sleep(0.02)
        engine.close()
        for thread in threads:
            thread.join(10)
        self.assertEqual(codes, ["CONFLICT"] * 5)

    def test_a_program_that_just_ends_is_no_crash(self):
        script = ("import cairn, sys, time\n"
                  "engine = cairn.Engine('memory:')\n"
                  "engine.register('fast', lambda: 1)\n"
                  "engine.register('slow', lambda: time.sleep(0.05))\n"
                  "for kind in ['fast', 'slow'] * 10:\n"
                  "    engine.run({'planId': 'p', 'planVersion': '1', 'steps': [{'stepId': 'a', 'kind': kind}]})\n"
                  "sys.exit(3)\n")
        for _ in range(3):
            self.assertEqual(subprocess.run([sys.executable, "-c", script], timeout=30).returncode, 3)

    def test_a_forked_child_must_not_use_it(self):
        engine = self.engine()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                engine.run(plan(call("a", "noop")))
            except cairn.CairnError as error:
                code = 0 if error.code == "UNSUPPORTED" else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_numbers_are_exact(self):
        numbers = [2 ** 63, -2 ** 63 - 1, 10 ** 30, 0.1, 1.0, 100.0]
        engine = self.engine()
        engine.register("same", lambda n: n)
        run = engine.run(plan({"stepId": "a", "kind": "same", "with": {"n": numbers}}))
        self.assertEqual(run.result()["a"], numbers)
        self.assertEqual([type(n) for n in run.output("a")], [type(n) for n in numbers])
        huge = engine.run('{"planId":"h","planVersion":"1","steps":[{"stepId":"a","kind":"echo","with":{"message":1e400}}]}')
        huge.wait()
        self.assertEqual(huge.output("a"), decimal.Decimal("1e400"))

    def test_version(self):
        self.assertEqual(cairn.version(), cairn.__version__)


if __name__ == "__main__":
    unittest.main()
