"""A TCP proxy between an engine and Postgres that cuts connections where it hurts: after any byte, in either direction; after a batch was
committed and before anybody hears of it; after the engine has given up and before the server gets the batch.

It reads the protocol as far as it must: where messages begin, which prepared statement is the append, what the server says in the end."""
import random, socket, struct, threading, time

CHUNK = 65536
LINGER_NONE = struct.pack("ii", 1, 0)  # close with a reset
NOT_TYPED = (80877103, 80877104)  # SSLRequest, GSSENCRequest: the startup packet comes again after them


class Frames:
    """Cuts a stream into messages, whatever pieces it comes in. Keeps the beginning of each body only."""

    KEEP = 65536

    def __init__(self, startup):
        self.startup = startup  # messages without a type come first
        self.head, self.body, self.left = b"", b"", 0
        self.type = b""

    def feed(self, data):
        """Yields (where the message ends in data, type, beginning of its body)."""
        at = 0
        while at < len(data):
            if self.left == 0:
                need = (4 if self.startup else 5) - len(self.head)
                self.head += data[at : at + need]
                at += min(need, len(data) - at)
                if len(self.head) < (4 if self.startup else 5):
                    return
                self.type = b"" if self.startup else self.head[:1]
                self.left = struct.unpack(">I", self.head[-4:])[0] - 4
                self.body = b""
            part = data[at : at + self.left]
            self.body += part[: self.KEEP - len(self.body)]
            self.left -= len(part)
            at += len(part)
            if self.left == 0:
                if self.startup and struct.unpack(">I", self.body[:4])[0] not in NOT_TYPED:
                    self.startup = False
                self.head = b""
                yield at, self.type, self.body


class Link:
    """One connection: two threads that carry bytes."""

    def __init__(self, proxy, client):
        self.proxy, self.client = proxy, client
        self.lock = threading.Lock()
        self.appends = set()  # names of prepared statements
        self.left = {"up": None, "down": None}  # bytes until it is cut
        self.mode, self.committed, self.ended = None, False, threading.Event()
        self.wanted = b""  # only batches with these bytes are meant
        self.held, self.let_go = threading.Event(), threading.Event()
        self.server = socket.socket(socket.AF_UNIX)
        self.server.connect(proxy.target)
        for carry in (self.carry_up, self.carry_down):
            threading.Thread(target=carry, daemon=True).start()

    def cut(self, *which):
        for one in which or (self.client, self.server):
            try:
                if one is self.client and self.proxy.rng.random() < 0.5:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NONE)
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            try:
                one.close()
            except OSError:
                pass
        if not which or self.server in which:
            self.ended.set()
            self.proxy.forget(self)

    def limited(self, way, data):
        """As much of data as goes through before the cut that is due, and whether it is due."""
        with self.lock:
            left = self.left[way]
            if left is None:
                return data, False
            self.left[way] = left - len(data)
            return data[:left], left <= len(data)

    def is_append(self, kind, body):
        """A batch is on its way: our function, or a COMMIT in plain text."""
        if kind == b"P":
            name, query = body.split(b"\0", 2)[:2]
            if b"append(" in query:
                self.appends.add(name)
            return False
        if kind == b"Q":
            return body.strip(b"\0 ;").upper() == b"COMMIT"
        return kind == b"B" and body.split(b"\0", 2)[1] in self.appends and self.wanted in body

    def carry_up(self):
        frames, after = Frames(True), False
        try:
            while True:
                data = self.client.recv(CHUNK)
                if not data:
                    break
                for _end, kind, body in frames.feed(data):
                    after = after or self.is_append(kind, body)
                    if kind in (b"S", b"Q") and after:
                        after = False
                        with self.lock:
                            if self.mode == "withhold":
                                self.mode = "swallow"
                            mode = self.mode
                        if mode in ("late", "hold"):
                            return self.deliver_late(data)
                        if mode == "drop":
                            return self.cut()
                part, due = self.limited("up", data)
                self.server.sendall(part)
                if due:
                    break
        except OSError:
            pass
        if self.mode != "delivering":
            self.cut()

    def deliver_late(self, data):
        """late: the engine is cut off first. hold: it waits, until somebody lets the batch go."""
        mode, self.mode = self.mode, "delivering"
        if mode == "late":
            self.cut(self.client)
            time.sleep(self.proxy.rng.uniform(0, 0.2))
        else:
            self.held.set()
            self.let_go.wait()
        try:
            self.server.sendall(data)
            self.ended.wait(2)
        except OSError:
            pass
        self.cut()

    def carry_down(self):
        frames = Frames(False)
        ready = False
        try:
            while True:
                data = self.server.recv(CHUNK)
                if not data:
                    break
                if not ready and data[:1] == b"N" and len(data) == 1:  # no SSL
                    self.client.sendall(data)
                    continue
                ready = True
                done = False
                for _end, kind, _body in frames.feed(data):
                    if kind == b"C":
                        self.committed = self.mode in ("swallow", "delivering")
                    done = done or (kind == b"Z" and self.mode in ("swallow", "delivering"))
                if self.mode in ("swallow", "delivering"):
                    if done:
                        break
                    continue
                part, due = self.limited("down", data)
                self.client.sendall(part)
                if due:
                    break
        except OSError:
            pass
        self.cut()


class Proxy:
    def __init__(self, host, target, seed=0):
        self.target = target
        self.rng = random.Random(seed)
        self.links, self.lock = set(), threading.Lock()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((host, 0))
        self.listener.listen(64)
        self.host, self.port = self.listener.getsockname()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                link = Link(self, client)
            except OSError:
                client.close()
                continue
            with self.lock:
                if not link.ended.is_set():
                    self.links.add(link)

    def forget(self, link):
        with self.lock:
            self.links.discard(link)

    def living(self, appending=False):
        with self.lock:
            return [link for link in self.links if not appending or link.appends]

    def any_link(self, appending, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            links = self.living(appending)
            if links:
                return self.rng.choice(links)
            time.sleep(0.02)
        return None

    # ---- each is one cut; True when it came about
    def cut_somewhere(self, seconds=0.5):
        link = self.any_link(False, seconds)
        if not link:
            return False
        with link.lock:
            way = self.rng.choice(("up", "down"))
            link.left[way] = int(2 ** self.rng.uniform(0, 12)) - 1
        if not link.ended.wait(self.rng.uniform(0.05, seconds)):
            link.cut()  # an idle one
        return True

    def cut_appending(self, mode, seconds=2.0):
        """withhold: stored, and nobody hears of it. late: the engine has gone before the server gets it. drop: the server never gets it.
        True when it was stored."""
        link = self.any_link(True, seconds)
        if not link:
            return False
        with link.lock:
            link.mode = mode
        if not link.ended.wait(seconds):
            with link.lock:
                if link.mode == mode:
                    link.mode = None
            return False
        return link.committed

    def hold_append(self, wanted, seconds):
        """The next batch of this engine that has these bytes stays with us. Gives the link when it has one."""
        link = self.any_link(True, seconds)
        if link:
            with link.lock:
                link.mode, link.wanted = "hold", wanted
            if link.held.wait(seconds):
                return link
        return None

    def url(self):
        return f"postgres://postgres@{self.host}:{self.port}/postgres?sslmode=disable&gssencmode=disable"
