"""A client of a service: starts runs, waits for them, reads what happened, and steers them."""
from __future__ import annotations

import hashlib
import json
import os
import pathlib
import time
import uuid
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple, Union

from ._api import Decision, Operations, RunSnapshot, RunStatus, Why
from ._http import CairnError, Problem, Transport, Unreachable, query_of, quoted, several

ENDED = ("COMPLETED", "FAILED", "CANCELLED")
Document = Union[str, os.PathLike, Mapping[str, Any]]


class RunFailed(CairnError):
    """The run ended, and not well. `snapshot` is how."""

    def __init__(self, snapshot: RunSnapshot):
        self.snapshot = snapshot
        cause = (snapshot.get("rootCause") or {}).get("error") or {}
        text = f"run {snapshot['runId']} ended {snapshot['status']}"
        if cause.get("message"):
            text += f": {cause.get('code', '')} {cause['message']}".replace(":  ", ": ")
        super().__init__(text)


class Client(Operations):
    """A service at `url`. Any thread may use it.

    `token` is $CAIRN_TOKEN when it is not given. `patience` is how many seconds a request is sent again for while the service is away or
    busy; a start, a signal and everything that only reads may be sent twice and counts once. The methods of the HTTP interface are there
    by their names (`client.get_runs(q="status=FAILED")`); those below put several together.
    """

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, *, timeout: float = 60.0, patience: float = 30.0,
                 ca: Optional[str] = None, cert: Optional[Union[str, Tuple[str, str]]] = None):
        url = url or os.environ.get("CAIRN_SERVER")
        if not url:
            raise ValueError("which service? Client(\"http://127.0.0.1:7117\"), or $CAIRN_SERVER")
        self.transport = Transport(url, token, timeout=timeout, patience=patience, ca=ca, cert=cert)

    def _operation(self, method: str, path: str, places: Mapping[str, str], *, query: Optional[Mapping[str, Any]] = None,
                   headers: Optional[Mapping[str, Any]] = None, body: Any = None, content: Optional[bytes] = None) -> Any:
        for name, value in places.items():
            path = path.replace("{" + name + "}", several(value) if name in ("name", "step") else quoted(value))
        again = True if headers and headers.get("Idempotency-Key") else None
        answer = self.transport.request(method, path + query_of(query or {}), body=body, content=content, headers=headers, again=again)
        if "json" in answer.headers.get("content-type", ""):
            return answer.json()
        return answer.content if answer.content else None

    # ---- starting

    def start(self, document: Optional[Document] = None, inputs: Optional[Mapping[str, Any]] = None, *,
              plan_ref: Optional[Mapping[str, Any]] = None, run_id: Optional[str] = None, queue: Optional[str] = None,
              key: Optional[str] = None, **more: Any) -> "Run":
        """Starts a run of a document (its text, a path object, or a plan as a dict) or of what `plan_ref` names.

        `key` makes this start happen once: the same key and the same request give the same run. Without it one is made up, so that a
        start whose answer was lost is not a second run. A service that takes no documents in requests gets it as a definition.
        """
        body: Dict[str, Any] = {name: value for name, value in more.items() if value is not None}
        if run_id is not None:
            body["runId"] = run_id
        if inputs is not None:
            body["inputs"] = dict(inputs)
        if queue is not None:
            body["queue"] = queue
        key = key or str(uuid.uuid4())
        if plan_ref is not None:
            body["planRef"] = dict(plan_ref)
        elif document is None:
            raise ValueError("a document or a plan_ref")
        else:
            text, file = _text_of(document)
            body["document"] = text
            if file:
                body["file"] = file
        try:
            status = self._start(body, key)
        except Problem as refused:
            if refused.code != "PLAN_INLINE_NOT_ALLOWED" or plan_ref is not None:
                raise
            definition = self.define(document)
            for name in ("document", "file"):
                body.pop(name, None)
            body["planRef"] = {"planId": definition["planId"], "planVersion": definition["planVersion"],
                               "schemaVersion": definition.get("schemaVersion") or "v1.2", "sha256": definition["sha256"], "uri": definition["uri"]}
            status = self._start(body, key + "-ref")
        return Run(self, status["runId"], status)

    def _start(self, body: Mapping[str, Any], key: str) -> RunStatus:
        return self.transport.request("POST", "/v1/runs", body=body, headers={"Idempotency-Key": key}, again=True).json()

    def define(self, document: Document) -> Dict[str, Any]:
        """Keeps a document at the service, as a version of the plan that it is. Again with the same bytes: the same version."""
        text, file = _text_of(document)
        content = text.encode() if isinstance(text, str) else json.dumps(text).encode()
        report = self.transport.request("POST", "/v1/plans:validate", body={"document": content.decode(), **({"file": file} if file else {})},
                                        again=True).json()
        sha = hashlib.sha256(content).hexdigest()
        return self.transport.request("PUT", f"/v1/definitions/{several(report['planId'])}/versions/{sha}", content=content,
                                      kind="application/octet-stream").json()

    # ---- finding

    def run(self, run_id: str) -> "Run":
        """The run of that id. Nothing is asked yet."""
        return Run(self, run_id)

    def runs(self, q: Optional[str] = None, **filters: Any) -> Iterator[Dict[str, Any]]:
        """The runs that a query means (the language of `cairn ls`), newest first, page by page as they are needed."""
        cursor: Optional[str] = None
        while True:
            page = self.transport.request("GET", "/v1/runs" + query_of({"q": q, "cursor": cursor, **filters})).json()
            yield from page["items"]
            cursor = page.get("nextCursor")
            if not cursor:
                return

    def events(self, after: Optional[int] = None, **filters: Any) -> Iterator[Dict[str, Any]]:
        """What happens to all runs of the tenant, as it happens. Goes on for ever."""
        return self._follow("/v1/events", after, filters)

    def _follow(self, path: str, after: Optional[int], filters: Mapping[str, Any]) -> Iterator[Dict[str, Any]]:
        """A stream that survives cut connections and restarts of the service: it goes on behind the last event that came."""
        place = None if after is None else str(after)
        failures, pause = time.monotonic() + self.transport.patience, 0.05
        while True:
            try:
                for event, seen, data in self.transport.stream(path + query_of(filters), {"Last-Event-ID": place}):
                    failures, pause = time.monotonic() + self.transport.patience, 0.05
                    place = seen or place
                    if event == "end":
                        return
                    if event == "resync":
                        raise CairnError(f"{path}: the service has fewer events than were read ({data}): read the run again")
                    if event not in ("ping", "heartbeat"):
                        yield json.loads(data)
                if place is not None and self._over(path, place):
                    return
            except Problem as refused:
                if refused.status not in (429, 502, 503, 504) or time.monotonic() >= failures:
                    raise
            except (OSError, Unreachable) as fault:
                if time.monotonic() >= failures:
                    raise Unreachable(f"{self.transport.url}: {fault}") from fault
            time.sleep(pause)
            pause = min(pause * 2, 2.0)

    def _over(self, path: str, place: str) -> bool:
        """A stream that ended without a word: whether its run has ended, and all of it was read."""
        parts = path.split("/")
        if len(parts) < 4 or parts[2] != "runs" or parts[-1] != "events":
            return False
        status = self.transport.request("GET", "/".join(parts[:4]) + "/status").json()
        return status["status"] in ENDED and str(status.get("lastEventSeq")) == place

    def close(self) -> None:
        self.transport.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


class Run:
    """A run of a service, by its id."""

    def __init__(self, client: Client, run_id: str, status: Optional[RunStatus] = None):
        self.client, self.id, self.started = client, run_id, status
        self._path = f"/v1/runs/{quoted(run_id)}"

    def __repr__(self) -> str:
        return f"Run({self.id!r})"

    # ---- reading

    def status(self) -> RunStatus:
        return self.client.get_runs_by_run_status(self.id)

    def snapshot(self, at: Optional[Union[int, str]] = None) -> RunSnapshot:
        """The run with its steps; `at`: as it was after that event."""
        return self.client.get_runs_by_run(self.id, at=at)

    def wait(self, timeout: Optional[float] = None, *, check: bool = True) -> RunSnapshot:
        """Until the run has ended; TimeoutError after `timeout` seconds. Raises RunFailed unless it completed, or `check` is false."""
        until = None if timeout is None else time.monotonic() + timeout
        tag: Optional[str] = None
        while True:
            left = 20.0 if until is None else min(20.0, until - time.monotonic())
            if left < 0:
                raise TimeoutError(f"run {self.id} has not ended after {timeout} s")
            headers = {"If-None-Match": tag, "Prefer": f"wait={max(1, int(left))}" if tag else None}
            answer = self.client.transport.request("GET", self._path + "?fields=status,lastEventSeq", headers=headers, wait=20.0)
            tag = answer.headers.get("etag", tag)
            if answer.status == 200 and answer.json()["status"] in ENDED:
                break
        snapshot = self.snapshot()
        if check and snapshot["status"] != "COMPLETED":
            raise RunFailed(snapshot)
        return snapshot

    def output(self, step: str) -> Any:
        """What a step gave."""
        return self.client.get_runs_by_run_steps_by_step_output(self.id, step)["result"]

    def events(self, after: Optional[int] = None, **filters: Any) -> Iterator[Dict[str, Any]]:
        """The events of the run, from the first, or behind `after`; as they happen, until it has ended. Each comes once."""
        return self.client._follow(self._path + "/events", after, filters)

    def logs(self, step: str, *, attempt: Optional[int] = None) -> str:
        """What a step wrote, in its last attempt unless `attempt` names another."""
        path = f"{self._path}/steps/{several(step)}/logs" + query_of({"attempt": attempt})
        return self.client.transport.request("GET", path, headers={"Accept": "text/plain"}).content.decode("utf-8", "replace")

    def why(self, step: Optional[str] = None) -> Why:
        """Why the run, or a step of it, is as it is."""
        return self.client.get_runs_by_run_why(self.id) if step is None else self.client.get_runs_by_run_steps_by_step_why(self.id, step)

    # ---- steering

    def signal(self, kind: str, payload: Optional[Mapping[str, Any]] = None, *, step: Optional[str] = None, reason: Optional[str] = None,
               signal_id: Optional[str] = None, if_seq: Optional[int] = None) -> Decision:
        """Sends a signal, once however often it travels. `if_seq`: only if nothing has happened since that event."""
        signal_id = signal_id or str(uuid.uuid4())
        given = {"signalType": kind, "payload": None if payload is None else dict(payload), "stepId": step, "reason": reason}
        body = {name: value for name, value in given.items() if value is not None}
        headers = {"If-Match": None if if_seq is None else f'"r-{if_seq}"'}
        return self.client.transport.request("PUT", f"{self._path}/signals/{quoted(signal_id)}", body=body, headers=headers).json()

    def pause(self, reason: Optional[str] = None) -> Decision:
        return self.signal("PAUSE", reason=reason)

    def resume(self, reason: Optional[str] = None) -> Decision:
        return self.signal("RESUME", reason=reason)

    def cancel(self, reason: Optional[str] = None) -> Decision:
        return self.signal("CANCEL", reason=reason)

    def approve(self, step: str, payload: Optional[Mapping[str, Any]] = None, *, reason: Optional[str] = None) -> Decision:
        return self.signal("APPROVE", payload, step=step, reason=reason)

    def reject(self, step: str, reason: str) -> Decision:
        return self.signal("REJECT", step=step, reason=reason)

    def retry_step(self, step: str, reason: Optional[str] = None) -> Decision:
        return self.signal("RETRY_STEP", step=step, reason=reason)

    def skip_step(self, step: str, reason: str) -> Decision:
        return self.signal("SKIP_STEP", step=step, reason=reason)


def _text_of(document: Any) -> Tuple[Any, Optional[str]]:
    """The document as the request has it, and what messages call it."""
    if isinstance(document, os.PathLike):
        path = pathlib.Path(document)
        return path.read_text(encoding="utf-8"), path.name
    if isinstance(document, str):
        return document, None
    return dict(document), None
