"""Functions of this program as steps of a service: a worker polls for tasks, calls the functions, and hands in what came out.

The protocol is docs/format/worker.md. A worker decides nothing: whether a step is tried again is decided by its document.
"""
from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import os
import queue
import signal
import socket
import threading
import time
import traceback
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Type, Union

from ._http import Problem, Transport, Unreachable, encode, quoted

log = logging.getLogger("cairn_client.worker")
BATCH = 256  # elements of a call
LOG_CHUNK = 64 * 1024
_current: "contextvars.ContextVar[Task]" = contextvars.ContextVar("cairn_task")


class StepError(Exception):
    """Raised by a function to fail its attempt with a code of its own. `retryable`: None leaves it to the document."""

    def __init__(self, message: str, *, code: str = "STEP_FAILED", retryable: Optional[bool] = None, category: Optional[str] = None):
        super().__init__(message)
        self.code, self.retryable, self.category = code, retryable, category


class Permanent(StepError):
    """Trying again would not help."""

    def __init__(self, message: str, *, code: str = "STEP_FAILED", category: Optional[str] = "business"):
        super().__init__(message, code=code, retryable=False, category=category)


class Retryable(StepError):
    """The next attempt may go better: the policy of the step says when and how often."""

    def __init__(self, message: str, *, code: str = "STEP_FAILED", category: Optional[str] = "infrastructure"):
        super().__init__(message, code=code, retryable=True, category=category)


class Cancelled(Exception):
    """Raised by Task.check(): the service wants this attempt to end."""


class Task:
    """One attempt of a step, in the hands of this worker."""

    def __init__(self, link: "_Link", given: Dict[str, Any], lease_until: float):
        self.given = given
        self.run: str = given["run"]
        self.step: str = given["step"]
        self.tenant: str = given.get("tenant", "")
        self.kind: str = given["kind"]
        self.attempt: int = given["attempt"]
        self.engine_attempt: int = given["engineAttempt"]
        self.key: str = given["idempotencyKey"]  # the same for all engine attempts: give it to what must not happen twice
        self.input: Any = given.get("input")
        self.timeout: Optional[float] = given["timeoutMs"] / 1000 if given.get("timeoutMs") else None
        self._link, self._lease_until = link, lease_until
        self._lease = given["leaseMs"] / 1000
        self._stop, self._why = threading.Event(), ""
        self._answered = threading.Lock()
        self._reported = False
        self._begun = time.monotonic()
        self._text: Dict[str, List[str]] = {"stdout": [], "stderr": []}
        self._sent: Dict[str, int] = {"stdout": 0, "stderr": 0}
        self._left: int = given.get("logMax", 1 << 24)
        self._log_lock = threading.Lock()
        self._on_stop: List[Callable[[], None]] = []

    @property
    def name(self) -> Dict[str, Any]:
        return {"token": self.given["token"], "epoch": self.given["epoch"]}

    # ---- for the function

    @property
    def cancelled(self) -> bool:
        """The service wants the attempt to end: its run was cancelled, its time is over, or another worker has it."""
        return self._stop.is_set()

    def check(self) -> None:
        """Raises Cancelled when the attempt is to end."""
        if self._stop.is_set():
            raise Cancelled(self._why)

    def sleep(self, seconds: float) -> None:
        """Sleeps, and raises Cancelled as soon as the attempt is to end."""
        self._stop.wait(seconds)
        self.check()

    def log(self, text: str, stream: str = "stdout") -> None:
        """A line of the step's log, as `cairn logs RUN/STEP` shows it."""
        if stream not in self._text:
            raise ValueError("stdout or stderr")
        with self._log_lock:
            self._text[stream].append(text if text.endswith("\n") else text + "\n")

    def put_artifact(self, path: str, content: bytes) -> None:
        """A file that the step declares in its document."""
        where = "/".join(quoted(part) for part in path.split("/"))
        self._link.transport.request("PUT", f"/v1/worker/artifacts/{quoted(self.given['token'])}/{where}", content=content,
                                     kind="application/octet-stream")

    # ---- for the worker

    def _end(self, why: str) -> None:
        if self._stop.is_set():
            return
        self._why = why
        self._stop.set()
        for act in list(self._on_stop):
            act()

    def _chunks(self) -> List[Dict[str, Any]]:
        """What was logged since it was asked last. Lines beyond the limit of the step are dropped, as the service would."""
        chunks: List[Dict[str, Any]] = []
        with self._log_lock:
            for stream, lines in self._text.items():
                text = "".join(lines)
                lines.clear()
                while text and self._left > 0:
                    part, text = text[:LOG_CHUNK], text[LOG_CHUNK:]
                    size = len(part.encode("utf-8", "replace"))
                    chunks.append({**self.name, "stream": stream, "offset": self._sent[stream], "text": part.encode("utf-8", "replace").decode()})
                    self._sent[stream] += size
                    self._left -= size
        return chunks

    def _report(self, result: Dict[str, Any]) -> None:
        """The first word counts: what comes after a timeout or a cancellation is dropped."""
        with self._answered:
            if self._reported:
                return
            self._reported = True
        result = {**self.name, **result, "durationMs": max(0, int((time.monotonic() - self._begun) * 1000))}
        if result.get("lost"):
            del result["durationMs"]
        self._link.hand_in(self, result)


def current_task() -> Task:
    """The task of the function that calls this."""
    return _current.get()


class _Step:
    def __init__(self, function: Callable[..., Any], retry_on: Tuple[Type[BaseException], ...], no_retry_on: Tuple[Type[BaseException], ...]):
        self.function, self.retry_on, self.no_retry_on = function, retry_on, no_retry_on
        self.is_async = inspect.iscoroutinefunction(function)
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self.wants = len([one for one in inspect.signature(function).parameters.values() if one.kind in kinds])
        if self.wants > 2:
            raise TypeError(f"{function.__name__} takes {self.wants} arguments: a step takes its input, and the task if it wants to")

    def call(self, task: Task) -> Any:
        return self.function(*(task.input, task)[:self.wants])

    def fault(self, error: BaseException) -> Dict[str, Any]:
        message = str(error) or type(error).__name__
        if isinstance(error, StepError):
            fault: Dict[str, Any] = {"code": error.code[:64] or "STEP_FAILED", "message": message}
            retryable, fault["category"] = error.retryable, error.category
        else:
            fault = {"code": type(error).__name__[:64], "message": message, "category": None}
            fault["detail"] = "".join(traceback.format_exception(type(error), error, error.__traceback__))[-8000:]
            retryable = True if isinstance(error, self.retry_on) else False if isinstance(error, self.no_retry_on) else None
        fault["retryable"] = retryable
        return {name: value for name, value in fault.items() if value is not None}


class Worker:
    """Serves functions to one service, or to all engines that share a store.

        worker = Worker("http://127.0.0.1:7117", pool="default")

        @worker.step("charge")
        def charge(order, task):
            return {"receipt": pay(order["amount"], key=task.key)}

        worker.run()            # until SIGTERM or ^C; what is at hand is finished first

    A step of kind `charge` in a document is then this function: its input comes in, what it returns is the step's output. `async def` works
    as well. The service needs a route for the kind: `cairn serve --route charge=default`.
    """

    def __init__(self, server: Union[str, Sequence[str], None] = None, token: Optional[str] = None, *, pool: Optional[str] = None,
                 concurrency: int = 8, name: Optional[str] = None, ca: Optional[str] = None,
                 cert: Optional[Union[str, Tuple[str, str]]] = None):
        servers = [server] if isinstance(server, str) else list(server or os.environ.get("CAIRN_SERVER", "").split(","))
        if not servers or not all(servers):
            raise ValueError("which service? Worker(\"http://127.0.0.1:7117\"), or $CAIRN_SERVER")
        if concurrency < 1:
            raise ValueError("concurrency is at least 1")
        self.name = name or f"py-{socket.gethostname()}-{os.getpid()}"
        self.pool, self.concurrency = pool, concurrency
        self._steps: Dict[str, _Step] = {}
        self._free = concurrency
        self._room = threading.Condition()
        self._stopping = threading.Event()
        self._fatal: Optional[BaseException] = None
        self._links = [_Link(self, Transport(one, token, patience=0, ca=ca, cert=cert)) for one in servers]

    def step(self, kind: str, *, retry_on: Sequence[Type[BaseException]] = (), no_retry_on: Sequence[Type[BaseException]] = ()) -> Callable[..., Any]:
        """Makes a function the step kind `kind`. Exceptions fail the attempt; those of `retry_on` say that trying again may help, those of
        `no_retry_on` that it does not; of all others the document decides alone."""
        def keep(function: Callable[..., Any]) -> Callable[..., Any]:
            if kind in self._steps:
                raise ValueError(f"{kind} is {self._steps[kind].function.__name__} already")
            self._steps[kind] = _Step(function, tuple(retry_on), tuple(no_retry_on))
            return function
        return keep

    # ---- life

    def run(self, *, signals: bool = True) -> None:
        """Serves until `stop`, SIGTERM or SIGINT; then finishes what is at hand. A second signal gives it back instead."""
        if signals and threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, self._signalled)
        self.start()
        while not self._stopping.wait(0.5):
            pass
        self.join()

    def start(self) -> None:
        """Serves on threads of its own."""
        if not self._steps:
            raise ValueError("a worker without steps: @worker.step(KIND)")
        for link in self._links:
            link.start()

    def stop(self) -> None:
        """Takes no more tasks. `join` waits for those at hand."""
        self._stopping.set()
        with self._room:
            self._room.notify_all()

    def join(self, timeout: Optional[float] = None) -> None:
        """Waits until the last task is handed in; those that are not after `timeout` seconds are given back."""
        until = None if timeout is None else time.monotonic() + timeout
        for link in self._links:
            link.join(until)
        if self._fatal:
            raise self._fatal

    def __enter__(self) -> "Worker":
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()
        self.join()

    def _signalled(self, *_: Any) -> None:
        if self._stopping.is_set():
            for link in self._links:
                link.give_back()
        self.stop()

    # ---- slots: one a task, whichever engine it came from

    def _take(self) -> int:
        """Waits for a slot; how many this poll may ask for. 0: the worker stops."""
        with self._room:
            while self._free < 1 and not self._stopping.is_set():
                self._room.wait(1)
            if self._stopping.is_set():
                return 0
            count = max(1, min(self._free // len(self._links), BATCH))
            self._free -= count
            return count

    def _give(self, count: int) -> None:
        with self._room:
            self._free += count
            self._room.notify_all()


class _Link:
    """One engine: polls it, renews leases, sends logs, hands in results. What was taken from an engine is said to that engine."""

    def __init__(self, worker: Worker, transport: Transport):
        self.worker, self.transport = worker, transport
        self._tasks: Dict[str, Task] = {}
        self._lock = threading.Lock()
        self._changed = threading.Event()
        self._results: "queue.Queue[Optional[Tuple[Task, Dict[str, Any]]]]" = queue.Queue()
        self._threads: List[threading.Thread] = []
        self._over = threading.Event()

    def _post(self, call: str, body: Dict[str, Any], wait: float = 0.0) -> Dict[str, Any]:
        body = {"worker": self.worker.name, **body}
        if self.worker.pool is not None:
            body["pool"] = self.worker.pool
        # a refusal that all elements share has the status of the refusal, and its elements all the same
        answer = self.transport.request("POST", f"/v1/worker/{call}", body=body, wait=wait, accept=(400, 403, 409, 503))
        try:
            parsed = answer.json()
        except ValueError:
            parsed = {}
        if answer.status >= 400 and not (isinstance(parsed, dict) and "results" in parsed):
            raise Problem(answer.status, parsed if isinstance(parsed, dict) else {})
        return parsed

    # ---- threads

    def start(self) -> None:
        for act in (self._poll, self._renew, self._write, self._send):
            thread = threading.Thread(target=act, name=f"cairn-{act.__name__[1:]}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def join(self, until: Optional[float]) -> None:
        poll, renew, write, send = self._threads
        _join(poll, until)
        while self._busy() and (until is None or time.monotonic() < until):
            time.sleep(0.02)
        if self._busy():
            self.give_back()
        self._results.put(None)
        send.join(10)
        self._over.set()
        self._changed.set()
        for thread in (renew, write):
            thread.join(10)

    def give_back(self) -> None:
        for task in self._at_hand():
            task._report({"lost": True})
            task._end("the worker ends")

    def _at_hand(self) -> List[Task]:
        with self._lock:
            return list(self._tasks.values())

    def _busy(self) -> bool:
        with self._lock:
            return bool(self._tasks)

    def _poll(self) -> None:
        pause = 0.1
        while True:
            count = self.worker._take()
            if count == 0:
                return
            used = 0
            try:
                asked = _boot()
                answer = self._post("poll", {"kinds": sorted(self.worker._steps), "max": count, "waitMs": 10000, "slots": self.worker.concurrency}, wait=10)
                pause = 0.1
                for given in answer.get("tasks", []):
                    until = asked + (answer.get("waitedMs", 0) + given["leaseMs"]) / 1000
                    if _boot() >= until:
                        continue  # the machine slept: another worker may have it
                    self._begin(Task(self, given, until))
                    used += 1
            except Problem as refused:
                if refused.status in (401, 403):
                    self.worker._fatal = refused
                    self.worker.stop()
                else:
                    log.warning("%s: %s", self.transport.url, refused)
                self.worker._stopping.wait(pause)
                pause = min(pause * 2, 5.0)
            except Unreachable as fault:
                log.warning("%s", fault)
                self.worker._stopping.wait(pause)
                pause = min(pause * 2, 5.0)
            finally:
                self.worker._give(count - used)

    def _begin(self, task: Task) -> None:
        with self._lock:
            self._tasks[task.given["token"]] = task
        self._changed.set()
        threading.Thread(target=self._execute, args=(task,), name=f"cairn-{task.step}", daemon=True).start()

    def _execute(self, task: Task) -> None:
        step = self.worker._steps[task.kind]
        timer: Optional[threading.Timer] = None
        if task.timeout:
            timer = threading.Timer(task.timeout, self._overdue, (task,))
            timer.daemon = True
            timer.start()
        _current.set(task)
        try:
            value = _await(step, task) if step.is_async else step.call(task)
        except (Cancelled, asyncio.CancelledError):
            task._report({"error": {"code": "CANCELLED", "message": task._why or "cancelled"}})
        except BaseException as error:  # what a function raises fails its attempt, never the worker
            task._report({"error": step.fault(error)})
        else:
            try:
                encode(value)
            except (TypeError, ValueError) as error:
                fault = {"code": "RESULT_NOT_JSON", "message": f"what {task.kind} returned is no JSON: {error}", "retryable": False}
                task._report({"error": fault})
            else:
                task._report({"value": value})
        finally:
            if timer:
                timer.cancel()
            self.worker._give(1)

    def _overdue(self, task: Task) -> None:
        task._end("its time is over")
        fault = {"code": "TIMEOUT", "message": f"took longer than {task.timeout:g} s", "category": "timeout", "retryable": True}
        task._report({"error": fault})

    def _renew(self) -> None:
        """Heartbeats. The answer waits for news, so that a cancellation arrives at once."""
        while not self._over.is_set():
            tasks = [task for task in self._at_hand() if not task._reported][:BATCH * 16]
            if not tasks:
                self._changed.wait(1)
                self._changed.clear()
                continue
            third = min(task._lease for task in tasks) / 3
            try:
                for first in range(0, len(tasks), BATCH):
                    part = tasks[first:first + BATCH]
                    last = first + BATCH >= len(tasks)
                    wait = int(third * 500) if last else 0
                    answer = self._post("heartbeat", {"tasks": [task.name for task in part], "waitMs": wait}, wait=third)
                    for task, state in zip(part, answer.get("results", [])):
                        if state.get("state") == "cancel":
                            self._stop(task, state.get("graceMs", 0) / 1000)
                        elif state.get("state") in ("stale", "denied"):
                            task._end("the attempt is over")
                            self._forget(task)
            except (Problem, Unreachable) as fault:
                log.warning("%s: heartbeat: %s", self.transport.url, fault)
                self._over.wait(min(1.0, third / 2))
            self._over.wait(min(0.05, third / 10))

    def _stop(self, task: Task, grace: float) -> None:
        if task.cancelled:
            return
        task._end("the run was cancelled, or the step is to stop")
        fault = {"code": "CANCELLED", "message": "did not end when it was asked to"}
        timer = threading.Timer(max(grace, 0.05), task._report, ({"error": fault},))
        timer.daemon = True
        timer.start()

    def _write(self) -> None:
        """Logs, a few times a second."""
        while not self._over.wait(0.25):
            self._write_now(self._at_hand())

    def _write_now(self, tasks: List[Task]) -> None:
        chunks = [chunk for task in tasks for chunk in task._chunks()]
        for first in range(0, len(chunks), 32):
            for _ in range(5):
                try:
                    self._post("logs", {"chunks": chunks[first:first + 32]})
                    break
                except (Problem, Unreachable) as fault:
                    log.warning("%s: logs: %s", self.transport.url, fault)
                    if isinstance(fault, Problem) and fault.status < 500:
                        break
                    time.sleep(0.2)

    # ---- results

    def hand_in(self, task: Task, result: Dict[str, Any]) -> None:
        self._results.put((task, result))

    def _forget(self, task: Task) -> None:
        with self._lock:
            self._tasks.pop(task.given["token"], None)

    def _send(self) -> None:
        """Hands in what came out until the service has said that it is durable, or that it does not count."""
        ending, waiting = False, []  # type: Tuple[bool, List[Tuple[Task, Dict[str, Any]]]]
        pause = 0.05
        while not ending or waiting:
            while len(waiting) < BATCH:
                try:
                    one = self._results.get(block=not waiting and not ending)
                except queue.Empty:
                    break
                if one is None:
                    ending = True
                else:
                    waiting.append(one)
            if not waiting:
                continue
            batch = _fitting(waiting)
            self._write_now([task for task, _ in batch])
            try:
                answer = self._post("complete", {"results": [result for _, result in batch]})
                states = answer.get("results", [])
                pause = 0.05
            except (Problem, Unreachable) as fault:
                if isinstance(fault, Problem) and fault.status in (400, 413):
                    states = [{"state": "invalid", "detail": str(fault)}] * len(batch)
                else:
                    log.warning("%s: results: %s", self.transport.url, fault)
                    if ending and all(_boot() > task._lease_until + 60 for task, _ in waiting):
                        return
                    time.sleep(pause)
                    pause = min(pause * 2, 2.0)
                    continue
            left = []
            for (task, result), state in zip(batch, states):
                if state.get("state") == "again":
                    left.append((task, result))
                elif state.get("state") == "invalid" and "error" not in result and not result.get("lost"):
                    fault = {"code": "RESULT_REFUSED", "message": str(state.get("detail") or "the service does not take this result"), "retryable": False}
                    left.append((task, {**task.name, "error": fault}))
                else:
                    if state.get("state") not in ("ok", None):
                        log.info("%s/%s: %s", task.run, task.step, state.get("state"))
                    self._forget(task)
            if left:
                time.sleep(0.05)
            waiting = left + waiting[len(batch):]


def _fitting(waiting: List[Tuple[Task, Dict[str, Any]]]) -> List[Tuple[Task, Dict[str, Any]]]:
    """As many as one call may carry: some large results travel alone."""
    batch, size = [], 0
    for one in waiting[:BATCH]:
        size += len(encode(one[1]))
        if batch and size > 4 << 20:
            break
        batch.append(one)
    return batch


def _await(step: _Step, task: Task) -> Any:
    """Calls an `async def` on a loop of its own; a cancellation cancels it."""
    async def main() -> Any:
        loop, own = asyncio.get_running_loop(), asyncio.current_task()
        assert own is not None
        task._on_stop.append(lambda: loop.call_soon_threadsafe(own.cancel))
        if task.cancelled:
            raise Cancelled(task._why)
        return await step.call(task)
    return asyncio.run(main())


def _boot() -> float:
    """Seconds that go on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _join(thread: threading.Thread, until: Optional[float]) -> None:
    thread.join(None if until is None else max(0.0, until - time.monotonic()))
