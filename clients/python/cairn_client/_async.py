"""The client for programs with an event loop: the same methods, awaited. Calls wait on threads, so that the loop never does."""
from __future__ import annotations

import asyncio
import concurrent.futures
from typing import Any, AsyncIterator, Callable, Iterator, Optional

from ._client import Client, Run

_END = object()


class AsyncRun:
    """A run of a service, by its id; as Run, awaited. `events` is an asynchronous iterator."""

    def __init__(self, owner: "AsyncClient", run: Run):
        self._owner, self._run = owner, run
        self.id = run.id

    def __repr__(self) -> str:
        return f"AsyncRun({self.id!r})"

    def events(self, after: Optional[int] = None, **filters: Any) -> AsyncIterator[Any]:
        return self._owner._iterate(lambda: self._run.events(after, **filters))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._run, name)
        if not callable(method):
            return method
        async def call(*given: Any, **named: Any) -> Any:
            return await self._owner._call(method, *given, **named)
        return call


class AsyncClient:
    """As Client, awaited: `await client.start(...)`, `await run.wait()`, `async for event in run.events()`."""

    def __init__(self, *given: Any, threads: int = 32, **named: Any):
        self._client = Client(*given, **named)
        self._threads = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="cairn-client")

    async def _call(self, act: Callable[..., Any], *given: Any, **named: Any) -> Any:
        loop = asyncio.get_running_loop()
        result = await loop.run_in_executor(self._threads, lambda: act(*given, **named))
        return AsyncRun(self, result) if isinstance(result, Run) else result

    async def _iterate(self, make: Callable[[], Iterator[Any]]) -> AsyncIterator[Any]:
        source = make()
        try:
            while True:
                item = await self._call(next, source, _END)
                if item is _END:
                    return
                yield item
        finally:
            # a generator that another thread is in cannot be closed; it ends with its connection
            if not getattr(source, "gi_running", False):
                getattr(source, "close", lambda: None)()

    def run(self, run_id: str) -> AsyncRun:
        return AsyncRun(self, self._client.run(run_id))

    def runs(self, q: Optional[str] = None, **filters: Any) -> AsyncIterator[Any]:
        return self._iterate(lambda: self._client.runs(q, **filters))

    def events(self, after: Optional[int] = None, **filters: Any) -> AsyncIterator[Any]:
        return self._iterate(lambda: self._client.events(after, **filters))

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)
        async def call(*given: Any, **named: Any) -> Any:
            return await self._call(method, *given, **named)
        return call

    async def close(self) -> None:
        self._threads.shutdown(wait=False)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()
