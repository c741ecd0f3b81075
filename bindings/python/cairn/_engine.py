"""Engines, runs, steps: the public names of the package."""
from __future__ import annotations

import asyncio
import atexit
import ctypes
import dataclasses
import decimal
import enum
import inspect
import json
import math
import os
import threading
import time
import traceback
import weakref
from types import TracebackType
from typing import Any, Callable, Iterator, Mapping, Optional, Type, TypeVar, Union

from . import _native as native
from ._native import lib

Json = Any
Document = Union[str, "os.PathLike[str]", Mapping[str, Any]]
Function = TypeVar("Function", bound=Callable[..., Any])


class Status(enum.IntEnum):
    """Of a run."""

    PENDING = 1
    APPROVED = 2
    RUNNING = 3
    PAUSED = 4
    COMPLETED = 5
    FAILED = 6
    CANCELLED = 7

    @property
    def ended(self) -> bool:
        return self >= Status.COMPLETED


class CairnError(Exception):
    """What the engine could not do. ``code`` is a word to branch on: NOT_FOUND, INVALID, LOCKED, TIMEOUT, ..."""

    def __init__(self, code: str, message: str, hint: str = "", line: int = 0, column: int = 0) -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.code, self.message, self.hint, self.line, self.column = code, message, hint, line, column


class RunFailed(Exception):
    """A run that was waited for with ``result`` or ``await`` ended FAILED or CANCELLED."""

    def __init__(self, run: str, status: Status, cause: str) -> None:
        super().__init__(f"run {run} {status.name}: {cause}" if cause else f"run {run} {status.name}")
        self.run, self.status, self.cause = run, status, cause


class Retry(Exception):
    """Raised in a step: it failed, and trying again may help. The step's ``retry`` policy decides. ``code`` is for programs."""

    def __init__(self, message: str = "", code: str = "RETRY") -> None:
        super().__init__(message)
        self.code = code


class Permanent(Exception):
    """Raised in a step: it failed, and trying again would not help."""

    def __init__(self, message: str = "", code: str = "PERMANENT") -> None:
        super().__init__(message)
        self.code = code


def version() -> str:
    """Of the library that was loaded."""
    return lib.cairn_version().decode()


def _check(code: int, error: native.Error) -> None:
    if code == native.OK:
        return
    raise CairnError(lib.cairn_code_name(code).decode(), error.message.decode("utf-8", "replace"),
                     error.hint.decode("utf-8", "replace"), error.line, error.column)


def _bytes(text: Optional[str]) -> Optional[bytes]:
    if text is None:
        return None
    if "\0" in text:
        raise ValueError("a text for Cairn holds no NUL")
    return text.encode()


def _real(text: str) -> "float | decimal.Decimal":
    """A float, as everywhere in Python; beyond its range a Decimal and not an infinity."""
    value = float(text)
    return value if math.isfinite(value) else decimal.Decimal(text)


def _load(text: bytes) -> Any:
    return json.loads(text, parse_float=_real)


def _dump(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _take(pointer: ctypes.c_void_p, size: int) -> bytes:
    try:
        return ctypes.string_at(pointer, size)
    finally:
        lib.cairn_free(pointer)


# ---- attempts

_current = threading.local()


@dataclasses.dataclass(frozen=True)
class Attempt:
    """What a step function is called for."""

    run: str
    step: str
    kind: str
    key: str  #: the same when the attempt is repeated after a crash: pass it on to whoever must not do it twice
    logical: int  #: 1, 2, ... rises when a policy or a person retries
    engine: int  #: 1, 2, ... rises when a process died and the same logical attempt runs again
    timeout: Optional[float]  #: seconds
    artifacts_dir: str
    _engine: "Engine" = dataclasses.field(repr=False)
    _token: int = dataclasses.field(repr=False)

    @property
    def cancelled(self) -> bool:
        """Stop: nobody waits for the result any more."""
        try:
            return bool(self._engine._call(lib.cairn_cancelled, self._token))
        except CairnError:
            return True

    def log(self, line: str) -> None:
        """A line for the ``output`` of the engine."""
        try:
            self._engine._call(lib.cairn_log, self._token, _bytes(line.replace("\0", "?")))
        except CairnError:
            pass  # nobody listens any more

    def later(self) -> "Later":
        """Return this from the function and complete it when the answer is there, from any thread."""
        return Later(self)


def attempt() -> Attempt:
    """The attempt that the calling step function is called for."""
    current: Optional[Attempt] = getattr(_current, "attempt", None)
    if current is None:
        raise RuntimeError("attempt() is for step functions, on the thread they are called on")
    return current


class Later:
    """An answer that comes later. Each of the methods raises CairnError CONFLICT when the attempt is over."""

    def __init__(self, owner: Attempt) -> None:
        self.attempt = owner

    def complete(self, output: Json = None) -> None:
        self._send(native.DONE, output=_dump(output))

    def fail(self, error: Union[BaseException, str]) -> None:
        """As if the function had raised it."""
        code, message, retryable = _fault(error if isinstance(error, BaseException) else Permanent(error))
        self._send(native.FAIL, code=code, message=message, retryable=retryable)

    def _send(self, answer: int, output: bytes = b"", code: bytes = b"", message: bytes = b"", retryable: bool = False) -> None:
        result = native.Result(size=ctypes.sizeof(native.Result), answer=answer, retryable=retryable)
        buffer = ctypes.create_string_buffer(output, len(output)) if output else None
        if buffer is not None:
            result.output, result.output_len = ctypes.addressof(buffer), len(output)
        if code:
            result.code, result.message = code, message
        error = native.Error()
        _check(self.attempt._engine._call(lib.cairn_complete, self.attempt._token, ctypes.byref(result), ctypes.byref(error)),
               error)


def _fault(error: BaseException) -> "tuple[bytes, bytes, bool]":
    """Code, message, whether trying again may help. The code of an exception is its type's name."""
    code = error.code if isinstance(error, (Retry, Permanent)) else type(error).__name__
    word = "".join(c if c.isascii() and (c.isalnum() or c in "_.-") else "_" for c in code)[:64] or "FUNCTION_FAILED"
    message = str(error).replace("\0", "?") or type(error).__name__
    return word.encode(), message.encode("utf-8", "replace"), not isinstance(error, Permanent)


_registered: "dict[int, _Step]" = {}  # callbacks that C may still call
_forget = native.RELEASE_FUNCTION(lambda step: _registered.pop(step, None) and None)


class _Step:
    """A registered function: calls it with what the document gives, and holds its last output until the engine copied it."""

    def __init__(self, engine: "Engine", name: str, function: Callable[..., Any]) -> None:
        self.engine = weakref.ref(engine)
        self.name, self.function = name, function
        parameters = list(inspect.signature(function).parameters.values())
        whole = len(parameters) == 1 and parameters[0].kind is not inspect.Parameter.VAR_KEYWORD and (
            parameters[0].annotation in (dict, "dict", Mapping, "Mapping") or parameters[0].name in ("inputs", "with_", "input"))
        self.whole = whole
        self.held: "dict[int, Any]" = {}
        self.lock = threading.Lock()
        self.release = native.RELEASE_FUNCTION(self._release)  # of one result
        self.kind = native.Kind(size=ctypes.sizeof(native.Kind), name=name.encode(), run=native.RUN_FUNCTION(self._run),
                                cancelled=native.CANCELLED_FUNCTION(), context=id(self), release=_forget)

    def _release(self, memory: Optional[int]) -> None:
        with self.lock:
            self.held.pop(memory or 0, None)

    def _hold(self, result: Any, buffers: "list[Any]") -> None:
        key = ctypes.addressof(buffers[0])
        with self.lock:
            self.held[key] = buffers
        result.memory, result.release = key, ctypes.cast(self.release, ctypes.c_void_p)

    def _run(self, _context: Optional[int], given: Any, result: Any) -> int:
        try:
            return self._call(given.contents, result.contents)
        except BaseException as error:  # noqa: BLE001 - an exception must not leave a callback
            code, message, retryable = _fault(error)
            owner = self.engine()
            if owner is not None:
                owner._tell_exception(self.name, error)
            texts = [ctypes.create_string_buffer(code), ctypes.create_string_buffer(message)]
            self._hold(result.contents, texts)
            result.contents.code = ctypes.addressof(texts[0])
            result.contents.message = ctypes.addressof(texts[1])
            result.contents.retryable = retryable
            return native.FAIL

    def _call(self, given: native.Attempt, result: native.Result) -> int:
        owner = self.engine()
        if owner is None:
            raise Retry("the engine is gone", code="ENGINE_GONE")
        inputs = _load(ctypes.string_at(given.input, given.input_len))
        _current.attempt = Attempt(run=given.run.decode(), step=given.step.decode(), kind=given.kind.decode(),
                                   key=given.key.decode(), logical=given.logical, engine=given.engine,
                                   timeout=given.timeout_ms / 1000 if given.timeout_ms else None,
                                   artifacts_dir=given.artifacts_dir.decode(), _engine=owner, _token=given.token)
        try:
            output = self.function(inputs) if self.whole else self.function(**inputs)
            if inspect.isawaitable(output):
                output = asyncio.run(_awaited(output))
        finally:
            _current.attempt = None
        if isinstance(output, Later):
            return native.PENDING
        text = _dump(output)
        buffer = ctypes.create_string_buffer(text, len(text))
        self._hold(result, [buffer])
        result.output, result.output_len = ctypes.addressof(buffer), len(text)
        return native.DONE


async def _awaited(value: Any) -> Any:
    return await value


# ---- runs

@dataclasses.dataclass(frozen=True)
class Event:
    """A record of the log."""

    seq: int
    type: str
    raw: bytes  #: exactly as stored: canonical JSON

    @property
    def data(self) -> "dict[str, Any]":
        return _load(self.raw)


@dataclasses.dataclass(frozen=True)
class RunInfo:
    """A run in a list."""

    run: str
    plan: str
    version: str
    name: str
    status: Status
    substatus: str
    cause: str
    parent: str
    owned: bool  #: a living process has it
    last_seq: int
    created_ms: int
    started_ms: int
    ended_ms: int
    steps: int
    completed: int
    failed: int
    skipped: int
    running: int


@dataclasses.dataclass(frozen=True)
class Decision:
    """The answer to a signal."""

    accepted: bool
    duplicate: bool
    code: str
    message: str
    seq: int
    new_run: str


class Run:
    """One run of an engine. Cheap: it is a name."""

    def __init__(self, engine: "Engine", run_id: str) -> None:
        self.engine, self.id = engine, run_id

    def __repr__(self) -> str:
        return f"<cairn.Run {self.id}>"

    def wait(self, timeout: Optional[float] = None) -> Status:
        """Until it has ended, wherever it runs. Raises TimeoutError."""
        status, error = ctypes.c_int(0), native.Error()
        limit = -1 if timeout is None else max(0, int(timeout * 1000))
        code = self.engine._call(lib.cairn_wait, _bytes(self.id), limit, ctypes.byref(status), ctypes.byref(error))
        if code == native.E_TIMEOUT:
            raise TimeoutError(error.message.decode("utf-8", "replace"))
        _check(code, error)
        return Status(status.value)

    @property
    def status(self) -> Status:
        try:
            return self.wait(0)
        except TimeoutError:
            return Status[self.view()["status"]]

    def _read(self, function: Any, *words: Any) -> bytes:
        pointer, size, error = ctypes.c_void_p(), ctypes.c_size_t(), native.Error()
        _check(self.engine._call(function, _bytes(self.id), *words, ctypes.byref(pointer), ctypes.byref(size), ctypes.byref(error)), error)
        return _take(pointer, size.value)

    def view(self, at: int = 0) -> "dict[str, Any]":
        """The snapshot of the run: now, or right after event ``at``."""
        return _load(self._read(lib.cairn_view, at))

    def output(self, step: str) -> Json:
        """What a step gave. CairnError NOT_FOUND: it has given nothing."""
        return _load(self._read(lib.cairn_output, _bytes(step)))

    def payload(self) -> "dict[str, Any]":
        """What the run was given: runId, inputs and, where there are some, arguments."""
        return _load(self._read(lib.cairn_payload))

    def artifacts(self) -> "list[dict[str, Any]]":
        """Files that its steps left: name, stepId, kind, sizeBytes, sha256, state (ok, changed, missing)."""
        return _load(self._read(lib.cairn_artifacts))

    def artifact(self, name: str, step: Optional[str] = None) -> bytes:
        """The bytes of one. CairnError NOT_FOUND: there is none; CORRUPT: it is not what the step left."""
        return self._read(lib.cairn_artifact, None if step is None else _bytes(step), _bytes(name))

    def proof(self) -> "dict[str, Any]":
        """Where the chains of its log end, and whether they hold: checkpoint, verified, faults."""
        return _load(self._read(lib.cairn_proof))

    def outputs(self) -> "dict[str, Json]":
        """Of every step that has succeeded."""
        return {step["stepId"]: self.output(step["stepId"]) for step in self.view()["steps"] if step["status"] == "SUCCESS"}

    def result(self, timeout: Optional[float] = None) -> "dict[str, Json]":
        """Waits and gives the outputs of all steps. RunFailed when the run did not complete."""
        status = self.wait(timeout)
        if status is not Status.COMPLETED:
            raise self._failure(status)
        return self.outputs()

    def _failure(self, status: Status) -> RunFailed:
        found = [info for info in self.engine.runs(prefix=self.id) if info.run == self.id]
        return RunFailed(self.id, status, found[0].cause if found else "")

    def events(self, after: int = 0) -> Iterator[Event]:
        """The log, from its beginning or after an event."""
        iterator, error, event = ctypes.c_void_p(), native.Error(), native.Event(size=ctypes.sizeof(native.Event))
        _check(self.engine._call(lib.cairn_events_open, _bytes(self.id), after, ctypes.byref(iterator), ctypes.byref(error)), error)
        try:
            while True:
                code = self.engine._guard(lib.cairn_events_next, iterator, ctypes.byref(event), ctypes.byref(error))
                if code == native.END:
                    return
                _check(code, error)
                yield Event(event.seq, event.type.decode(), ctypes.string_at(event.bytes, event.len))
        finally:
            lib.cairn_events_close(iterator)

    def signal(self, type: str, step: Optional[str] = None, reason: Optional[str] = None, *, id: Optional[str] = None,
               payload: Optional[Mapping[str, Any]] = None, force: bool = False) -> Decision:
        """PAUSE, RESUME, CANCEL, RETRY_STEP, SKIP_STEP, RETRY_RUN, EMERGENCY_STOP, APPROVE or REJECT, whoever has the run."""
        signal = native.Signal(size=ctypes.sizeof(native.Signal), type=_bytes(type), id=_bytes(id), step=_bytes(step),
                               reason=_bytes(reason), payload=None if payload is None else _dump(dict(payload)), force=force)
        decision, error = native.Decision(size=ctypes.sizeof(native.Decision)), native.Error()
        _check(self.engine._call(lib.cairn_signal, _bytes(self.id), ctypes.byref(signal), ctypes.byref(decision),
                                ctypes.byref(error)), error)
        return Decision(bool(decision.accepted), bool(decision.duplicate), decision.code.decode(),
                        decision.message.decode("utf-8", "replace"), decision.seq, decision.new_run.decode())

    def cancel(self, reason: Optional[str] = None) -> Decision:
        return self.signal("CANCEL", reason=reason)

    def approve(self, step: str, reason: Optional[str] = None) -> Decision:
        return self.signal("APPROVE", step, reason)

    def __await__(self) -> Any:
        """``await run`` is ``run.result()`` that blocks nobody."""
        return self._ended().__await__()

    async def _ended(self) -> "dict[str, Json]":
        status = await self.engine._end_of(self)
        if status is not Status.COMPLETED:
            raise await asyncio.get_running_loop().run_in_executor(None, self._failure, status)
        return await asyncio.get_running_loop().run_in_executor(None, self.outputs)


# ---- the engine

class Engine:
    """An engine on a store: ``sqlite:PATH``, ``files:DIR`` or ``memory:``. A context manager; ``close`` ends it.

    workers     threads that call step functions
    processes   False: documents with exec, shell and script steps are refused, and the process is no child subreaper
    log         called with (level, line) for diagnostics, from any thread; it must not call the engine
    output      called with (run, step, line) for what steps say
    max_steps   how many steps a document may have, up to 100,000; 0 is 10,000
    """

    def __init__(self, url: str, *, workers: int = 4, tenant: str = "default", actor: str = "python", processes: bool = True,
                 create: bool = True, log: Optional[Callable[[int, str], None]] = None,
                 output: Optional[Callable[[str, str, str], None]] = None,
                 on_exception: Optional[Callable[[str, BaseException], None]] = None, max_steps: int = 0) -> None:
        self._handle: Optional[int] = None
        self._lock = threading.Lock()
        self._calls = 0
        self._closing = False
        self._waiting: "dict[str, list[Callable[[Status], None]]]" = {}
        self._on_exception = on_exception
        self._pid = os.getpid()
        self._hooks = (
            native.LOG_FUNCTION(_quiet(lambda _c, level, line: log(level, line.decode("utf-8", "replace")))) if log
            else native.LOG_FUNCTION(),
            native.OUTPUT_FUNCTION(_quiet(lambda _c, run, step, _e, line: output(run.decode(), step.decode(),
                                                                                line.decode("utf-8", "replace")))) if output
            else native.OUTPUT_FUNCTION(),
            native.ENDED_FUNCTION(_quiet(_ender(weakref.ref(self)))),
        )
        options = native.Options(size=ctypes.sizeof(native.Options), workers=workers, tenant=_bytes(tenant), actor=_bytes(actor),
                                 flags=(0 if processes else native.NO_PROCESS_TOOLS) | (0 if create else native.NO_CREATE),
                                 log=self._hooks[0], output=self._hooks[1], ended=self._hooks[2], max_steps=max_steps)
        handle, error = ctypes.c_void_p(), native.Error()
        _check(lib.cairn_open(_bytes(url), ctypes.byref(options), ctypes.byref(handle), ctypes.byref(error)), error)
        self._handle = handle.value
        _open.add(self)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A C function with the handle, which is not freed meanwhile."""
        handle = self._enter()
        try:
            return function(handle, *arguments)
        finally:
            self._leave()

    def _guard(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The same for a function of an iterator, which has the handle."""
        self._enter()
        try:
            return function(*arguments)
        finally:
            self._leave()

    def _enter(self) -> int:
        with self._lock:
            if not self._handle:
                raise CairnError("CONFLICT", "the engine is closed")
            self._calls += 1
            return self._handle

    def _leave(self) -> None:
        with self._lock:
            self._calls -= 1

    # ---- steps

    def step(self, name: str) -> Callable[[Function], Function]:
        """Registers a function under the name that documents use. It gets ``with`` of the step as keyword arguments (or as one
        dict when its only parameter is called ``inputs`` or annotated ``dict``) and returns what JSON can hold. An exception
        fails the attempt with the name of its type; raise Retry or Permanent to say whether trying again may help. The
        function may be ``async``; it then gets an event loop of its own. Returning ``attempt().later()`` answers later."""

        def register(function: Function) -> Function:
            self.register(name, function)
            return function

        return register

    def register(self, name: str, function: Callable[..., Any]) -> None:
        """As ``step``, without a decorator."""
        step, error = _Step(self, name, function), native.Error()
        # Kept until C says that nothing of it runs any more: a function that does not return in time outlives the engine.
        _registered[id(step)] = step
        try:
            _check(self._call(lib.cairn_register, ctypes.byref(step.kind), ctypes.byref(error)), error)
        except BaseException:
            del _registered[id(step)]
            raise

    def load_plugin(self, file: "Union[str, os.PathLike[str]]") -> None:
        """Kinds of steps from a shared object."""
        error = native.Error()
        _check(self._call(lib.cairn_load_plugin, os.fsencode(file), ctypes.byref(error)), error)

    def _tell_exception(self, name: str, error: BaseException) -> None:
        if self._on_exception and not isinstance(error, (Retry, Permanent)):
            try:
                self._on_exception(name, error)
            except Exception:  # noqa: BLE001 - the step's own fault is what counts
                traceback.print_exc()

    # ---- runs

    def run(self, document: Document, inputs: Optional[Mapping[str, Any]] = None, run_id: Optional[str] = None, *,
            arguments: Optional[str] = None, work_dir: Optional[str] = None) -> Run:
        """Starts a document: a path, its text, or a dict. It is stored when this returns. With a ``run_id`` that is there already,
        of the same document, the run is taken up (or watched, or found ended) instead: calling it again is harmless."""
        start = _start_of(document)
        start.flags = native.ATTACH if run_id is not None else 0
        start.run, start.arguments, start.work_dir = _bytes(run_id), _bytes(arguments), _bytes(work_dir)
        start.inputs = None if inputs is None else _dump(dict(inputs))
        made, error = ctypes.create_string_buffer(native.RUN_SIZE), native.Error()
        _check(self._call(lib.cairn_start, ctypes.byref(start), made, ctypes.byref(error)), error)
        return Run(self, made.value.decode())

    def check(self, document: Document) -> str:
        """Every mistake of a document with its place; empty when there is none."""
        start, report, error = _start_of(document), ctypes.c_void_p(), native.Error()
        self._call(lib.cairn_check, ctypes.byref(start), ctypes.byref(report), ctypes.byref(error))
        if not report.value:
            _check(error.code or native.E_CONFLICT, error)
        text = ctypes.cast(report, ctypes.c_char_p).value or b""
        lib.cairn_free(report)
        return text.decode("utf-8", "replace")

    def get(self, run_id: str) -> Run:
        """A run by its id. It is looked for when it is used."""
        return Run(self, run_id)

    def recover(self, run_id: Optional[str] = None) -> int:
        """Takes up one run, or every unfinished one that no living process has. Gives how many. Register steps before."""
        count, error = ctypes.c_size_t(), native.Error()
        _check(self._call(lib.cairn_recover, _bytes(run_id), ctypes.byref(count), ctypes.byref(error)), error)
        return count.value

    def signal(self, run_id: str, type: str, step: Optional[str] = None, reason: Optional[str] = None, **more: Any) -> Decision:
        """``Run.signal`` by id."""
        return Run(self, run_id).signal(type, step, reason, **more)

    def runs(self, *, status: Optional[Status] = None, plan: Optional[str] = None, prefix: Optional[str] = None,
             unfinished: bool = False, roots: bool = False, since_ms: int = 0, until_ms: int = 0) -> Iterator[RunInfo]:
        """Runs, newest first."""
        wanted = native.Filter(size=ctypes.sizeof(native.Filter), statuses=0 if status is None else 1 << status,
                               unfinished=unfinished, roots=roots, plan=_bytes(plan), prefix=_bytes(prefix), since_ms=since_ms,
                               until_ms=until_ms)
        iterator, error, row = ctypes.c_void_p(), native.Error(), native.RunRow(size=ctypes.sizeof(native.RunRow))
        _check(self._call(lib.cairn_runs_open, ctypes.byref(wanted), ctypes.byref(iterator), ctypes.byref(error)), error)
        try:
            while True:
                code = self._guard(lib.cairn_runs_next, iterator, ctypes.byref(row), ctypes.byref(error))
                if code == native.END:
                    return
                _check(code, error)
                yield RunInfo(row.run.decode(), row.plan.decode(), row.version.decode(), row.name.decode(), Status(row.status),
                              row.substatus.decode(), row.cause.decode("utf-8", "replace"), row.parent.decode(),
                              bool(row.owned), row.last_seq, row.created_ms, row.started_ms, row.ended_ms, row.steps,
                              row.completed, row.failed, row.skipped, row.running)
        finally:
            lib.cairn_runs_close(iterator)

    # ---- ends, for await

    def _on_ended(self, run: str, status: Status) -> None:
        with self._lock:
            waiting = self._waiting.pop(run, [])
        for tell in waiting:
            tell(status)

    async def _end_of(self, run: Run) -> Status:
        """Told by the engine's hook; only runs of other processes are polled for."""
        loop = asyncio.get_running_loop()
        future: "asyncio.Future[Status]" = loop.create_future()

        def set_once(status: Status) -> None:
            if not future.done():
                future.set_result(status)

        def tell(status: Status) -> None:
            try:
                loop.call_soon_threadsafe(set_once, status)
            except RuntimeError:
                pass  # the loop is closed: nobody waits

        with self._lock:
            self._waiting.setdefault(run.id, []).append(tell)
        try:
            while True:  # it may have ended before, or end elsewhere
                try:
                    return await loop.run_in_executor(None, run.wait, 0)
                except TimeoutError:
                    pass
                try:
                    return await asyncio.wait_for(asyncio.shield(future), 2.0)
                except asyncio.TimeoutError:
                    pass
        finally:
            with self._lock:
                left = self._waiting.get(run.id, [])
                if tell in left:
                    left.remove(tell)
                if not left:
                    self._waiting.pop(run.id, None)

    # ---- the end

    def close(self, *, drain: bool = True, timeout: Optional[float] = 10.0) -> None:
        """Lets running steps finish (drain), begins no more, and closes the store. Unfinished runs go on with the next
        ``recover``. Not from a step function."""
        with self._lock:
            if self._closing or not self._handle:
                return
            self._closing = True
        limit = -1 if timeout is None else int(timeout * 1000)
        lib.cairn_shutdown(self._handle, native.DRAIN if drain else native.NOW, limit)
        with self._lock:
            handle, self._handle = self._handle, None  # whoever comes now is refused here
        while self._calls > 0:
            time.sleep(0.0005)
        lib.cairn_close(handle, native.NOW, 0)

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close(drain=kind is None)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and os.getpid() == self._pid:
            self.close(drain=False, timeout=1.0)



_open: "weakref.WeakSet[Engine]" = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Threads of an engine must not call into an interpreter that has ended."""
    for engine in list(_open):
        if os.getpid() == engine._pid:
            engine.close(drain=False, timeout=1.0)


def _ender(engine: "weakref.ReferenceType[Engine]") -> Callable[[Any, bytes, int], None]:
    def ended(_context: Any, run: bytes, status: int) -> None:
        owner = engine()
        if owner is not None:
            owner._on_ended(run.decode(), Status(status))

    return ended


def _quiet(function: Callable[..., None]) -> Callable[..., None]:
    """An exception must not leave a callback; it is shown, as threads do."""

    def safe(*arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception:  # noqa: BLE001
            traceback.print_exc()

    return safe


def _start_of(document: Document) -> native.Start:
    """A dict is the document, a path names it, a text with a line break or a brace is one."""
    start = native.Start(size=ctypes.sizeof(native.Start))
    if isinstance(document, Mapping):
        start.document = _dump(dict(document))
    elif isinstance(document, str) and ("\n" in document or document.lstrip().startswith("{")):
        start.document = _bytes(document)
    else:
        start.file = os.fsencode(document)
    return start
