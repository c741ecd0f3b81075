"""What the hostile tests share: requests as bytes, answers read strictly, and how much memory the server has."""
import http.client, json, os, socket, time, urllib.parse


class Door:
    """One server: its address, a token, its process."""

    def __init__(self, url, token=None, pid=None):
        where = urllib.parse.urlsplit(url)
        self.host, self.port, self.token, self.pid = where.hostname, where.port, token, pid

    def connect(self, timeout=20):
        s = socket.create_connection((self.host, self.port), timeout)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s

    def head(self, method, target, headers=(), token=True, body=b"", host=None):
        """A well-formed request as bytes."""
        lines = [f"{method} {target} HTTP/1.1".encode("latin-1"), b"Host: " + (f"{self.host}:{self.port}" if host is None else host).encode()]
        if token and self.token:
            lines.append(b"Authorization: Bearer " + self.token.encode())
        if body or method in ("POST", "PUT", "PATCH"):
            lines.append(b"Content-Length: %d" % len(body))
        lines += [h if isinstance(h, bytes) else h.encode("latin-1") for h in headers]
        return b"\r\n".join(lines) + b"\r\n\r\n" + body

    def ask(self, method, target, body=None, headers=(), token=None):
        """(status, headers, body) by a connection of its own."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        token = self.token if token is None else token  # "": none at all
        more = {"Authorization": "Bearer " + token} if token else {}
        if body is not None:
            more["Content-Type"] = "application/json"
            body = body if isinstance(body, (bytes, str)) else json.dumps(body)
        connection.request(method, target, body, {**more, **dict(headers)})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, dict((k.lower(), v) for k, v in answer.getheaders()), text

    def send(self, data, pieces=None, timeout=20):
        """Sends bytes as they are (split at `pieces`), reads until the server closes; the statuses of the answers, and the bytes."""
        s = self.connect(timeout)
        try:
            try:
                at = 0
                for end in list(pieces or ()) + [len(data)]:
                    s.sendall(data[at:end])
                    if pieces:
                        time.sleep(0.0005)
                    at = end
                s.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            got = b""
            while True:
                try:
                    more = s.recv(65536)
                except ConnectionError:
                    break
                if not more:
                    break
                got += more
        finally:
            s.close()
        return statuses(got), got

    def rss(self):
        for line in open(f"/proc/{self.pid}/status"):
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) // 1024
        return 0

    def alive(self):
        return self.ask("GET", "/livez", token="")[0] == 200


def statuses(data):
    """The statuses of all answers in a row; 0 at the end for bytes that are none."""
    found = []
    while data:
        if not data.startswith(b"HTTP/1.1 "):
            return found + [0]
        head, _, rest = data.partition(b"\r\n\r\n")
        found.append(int(head[9:12]))
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            if name.lower() == b"transfer-encoding":
                return found
        if found[-1] in (100, 204, 304):
            length = 0
        data = rest[length:]
    return found


def plan(steps=None, plan_id="p"):
    steps = steps if steps is not None else [{"stepId": "a", "kind": "noop"}]
    return json.dumps({"metadata": {"planId": plan_id, "planVersion": "1", "schemaVersion": "v1.2"}, "steps": steps})


def shell(name, command, after=()):
    step = {"stepId": name, "kind": "shell", "with": {"command": command}}
    if after:
        step["dependsOn"] = list(after)
    return step


class Checks:
    """Counts, and tells what is wrong; at the end the process ends as it went."""

    def __init__(self):
        self.count, self.wrong = 0, []

    def that(self, fact, *words):
        self.count += 1
        if not fact:
            self.wrong.append(" ".join(str(w) for w in words))
        return fact

    def end(self, least=1):
        for text in self.wrong[:20]:
            print(text[:400])
        print(f"{self.count} checks, {len(self.wrong)} wrong")
        raise SystemExit(1 if self.wrong or self.count < least else 0)
