"""Requests over HTTP/1.1 with the standard library: one kept connection for each thread, patience, and problems as exceptions."""
from __future__ import annotations

import http.client
import json
import os
import random
import socket
import ssl
import threading
import time
import urllib.parse
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple, Union


class CairnError(Exception):
    """Everything that goes wrong with a service."""


class Unreachable(CairnError):
    """The service did not answer within the patience of the client."""


class Problem(CairnError):
    """The service refused. `code` does not change between versions; `cairn help CODE` explains it."""

    def __init__(self, status: int, body: Mapping[str, Any]):
        self.status, self.body = status, dict(body)
        self.code: str = str(body.get("code", f"HTTP_{status}"))
        self.detail: str = str(body.get("detail") or body.get("title") or "")
        self.hint: str = str(body.get("hint") or "")
        self.errors = list(body.get("errors") or [])
        lines = [f"{self.code}: {self.detail}" if self.detail else self.code]
        lines += [f"  {one.get('pointer', '')} {one.get('message', '')}".rstrip() for one in self.errors if isinstance(one, dict)]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        super().__init__("\n".join(lines))


class Answer:
    """A whole answer."""

    def __init__(self, status: int, headers: Mapping[str, str], content: bytes):
        self.status, self.content = status, content
        self.headers = {name.lower(): value for name, value in headers.items()}

    def json(self) -> Any:
        return json.loads(self.content) if self.content else None


def encode(value: Any) -> bytes:
    """JSON as the service reads it. NaN and infinities are no JSON."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def problem_of(answer: Answer) -> Problem:
    try:
        body = json.loads(answer.content)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {"detail": answer.content[:200].decode("utf-8", "replace")}
    return Problem(answer.status, body)


class Transport:
    """One service. Any thread may use it.

    `patience` is how many seconds a request that may be sent again is sent again for, while the service is away or busy.
    """

    def __init__(self, url: str, token: Optional[str] = None, *, timeout: float = 60.0, patience: float = 30.0,
                 ca: Optional[str] = None, cert: Optional[Union[str, Tuple[str, str]]] = None):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address of a service: http://HOST:PORT")
        self.url = url.rstrip("/")
        self._host, self._port = parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
        self._prefix = parts.path.rstrip("/")
        self._token = token if token is not None else os.environ.get("CAIRN_TOKEN", "")
        self._timeout, self.patience = timeout, patience
        self._tls: Optional[ssl.SSLContext] = None
        if parts.scheme == "https":
            self._tls = ssl.create_default_context(cafile=ca)
            if cert:
                self._tls.load_cert_chain(*((cert, None) if isinstance(cert, str) else cert))
        self._local = threading.local()

    # ---- connections

    def _dial(self, timeout: float) -> http.client.HTTPConnection:
        if self._tls:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _head(self, headers: Optional[Mapping[str, Any]], content: Optional[bytes], kind: str) -> Dict[str, str]:
        head = {"Accept": "application/json", "User-Agent": "cairn-client-python"}
        if self._token:
            head["Authorization"] = f"Bearer {self._token}"
        if content is not None:
            head["Content-Type"] = kind
        for name, value in (headers or {}).items():
            if value is not None:
                head[name] = str(value)
        return head

    def _once(self, method: str, path: str, content: Optional[bytes], head: Dict[str, str], timeout: float) -> Answer:
        connection = getattr(self._local, "connection", None)
        kept = connection is not None
        while True:
            if connection is None:
                connection = self._dial(timeout)
            elif connection.sock is not None:
                connection.sock.settimeout(timeout)
            try:
                connection.request(method, self._prefix + path, content, head)
                response = connection.getresponse()
                answer = Answer(response.status, dict(response.getheaders()), response.read())
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                connection.close()
                self._local.connection = connection = None
                # The service had closed a connection that was kept too long, before it read anything of this request.
                if not kept or method not in ("GET", "PUT", "DELETE"):
                    raise
                kept = False
                continue
            except BaseException:
                connection.close()
                self._local.connection = None
                raise
            self._local.connection = None if response.will_close else connection
            if response.will_close:
                connection.close()
            return answer

    def close(self) -> None:
        """Closes the connection of this thread."""
        connection = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is not None:
            connection.close()

    # ---- requests

    def request(self, method: str, path: str, *, body: Any = None, content: Optional[bytes] = None, kind: str = "application/json",
                headers: Optional[Mapping[str, Any]] = None, again: Optional[bool] = None, wait: float = 0.0,
                accept: Tuple[int, ...] = ()) -> Answer:
        """Sends until there is an answer. `again`: it may be sent twice (GET, PUT and DELETE may). `wait`: seconds that the service may take
        on purpose. Raises Problem for 4xx and 5xx that are not in `accept`."""
        if body is not None:
            content = encode(body)
        head = self._head(headers, content, kind)
        again = method in ("GET", "PUT", "DELETE") if again is None else again
        until, pause = time.monotonic() + self.patience, 0.05
        while True:
            left: Optional[float] = None
            try:
                answer = self._once(method, path, content, head, self._timeout + wait)
            except (OSError, http.client.HTTPException) as fault:
                if not again or time.monotonic() >= until:
                    raise Unreachable(f"{self.url}: {fault or type(fault).__name__}") from fault
            else:
                if answer.status < 400 or answer.status in accept:
                    return answer
                refused = problem_of(answer)
                if answer.status not in (429, 502, 503, 504) or not again or time.monotonic() >= until:
                    raise refused
                left = _retry_after(answer.headers.get("retry-after"))
            time.sleep(min(left if left is not None else random.uniform(pause / 2, pause), max(0.0, until - time.monotonic()) + 0.01))
            pause = min(pause * 2, 2.0)

    def stream(self, path: str, headers: Mapping[str, Any]) -> Iterator[Tuple[str, str, str]]:
        """Server-sent events as (event, id, data), over a connection of their own; ends when the service ends the answer. A 204 has none."""
        connection = self._dial(self._timeout)
        try:
            connection.request("GET", self._prefix + path, None, self._head({**headers, "Accept": "text/event-stream"}, None, ""))
            response = connection.getresponse()
            if response.status == 204:
                return
            if response.status >= 400:
                raise problem_of(Answer(response.status, dict(response.getheaders()), response.read()))
            event, place, data = "message", "", []
            while True:
                line = response.readline(1 << 26)
                if not line.endswith(b"\n"):
                    return  # cut: what was not whole comes again
                text = line.decode("utf-8", "replace").rstrip("\r\n")
                if not text:
                    if data:
                        yield event, place, "\n".join(data)
                    event, data = "message", []
                    continue
                field, _, value = text.partition(":")
                value = value[1:] if value.startswith(" ") else value
                if field == "event":
                    event = value
                elif field == "id":
                    place = value
                elif field == "data":
                    data.append(value)
        finally:
            connection.close()


def _retry_after(text: Optional[str]) -> Optional[float]:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None


def quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def several(text: str) -> str:
    """Names of plans and steps may hold slashes: they are several segments of a path."""
    return urllib.parse.quote(text, safe="/")


def query_of(pairs: Mapping[str, Any]) -> str:
    given = [(name, str(value).lower() if isinstance(value, bool) else str(value)) for name, value in pairs.items() if value is not None]
    return "?" + urllib.parse.urlencode(given) if given else ""
