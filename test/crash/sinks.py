"""Sinks for storms and benches: a real nats-server that can be shot, read by a client that knows nothing of Cairn, and a receiver of webhooks
that can leave and come back. Standard library only."""
import json, os, shutil, signal, socket, subprocess, threading, time


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# ---- NATS
class Nats:
    STREAM = "events"

    def __init__(self, directory):
        self.program = shutil.which("nats-server") or "/usr/sbin/nats-server"
        self.port = free_port()
        self.config = os.path.join(directory, "nats.conf")
        self.log = os.path.join(directory, "nats.log")
        with open(self.config, "w") as out:
            out.write(f'listen: 127.0.0.1:{self.port}\njetstream {{ store_dir: "{directory}/jetstream" }}\n')
        self.process = None

    @staticmethod
    def there():
        return bool(shutil.which("nats-server")) or os.access("/usr/sbin/nats-server", os.X_OK)

    def start(self):
        log = open(self.log, "a")
        self.process = subprocess.Popen([self.program, "-c", self.config], stdout=log, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(20)

    def make_stream(self):
        ask = {"name": self.STREAM, "subjects": ["cairn.events.>"], "retention": "limits", "storage": "file", "num_replicas": 1, "duplicate_window": 1200 * 10**9}
        until = time.monotonic() + 20
        while True:
            try:
                with NatsClient(self.port) as client:
                    answer = client.ask(f"$JS.API.STREAM.CREATE.{self.STREAM}", ask)
                if "error" not in answer:
                    return
                why = answer["error"]
            except OSError as e:
                why = e
            if time.monotonic() > until:
                raise RuntimeError(f"no stream: {why}")
            time.sleep(0.05)

    def read_all(self):
        """Headers of every message of the stream, in its order."""
        with NatsClient(self.port) as client:
            made = client.ask(f"$JS.API.CONSUMER.CREATE.{self.STREAM}", {"stream_name": self.STREAM, "config": {"ack_policy": "none", "deliver_policy": "all", "mem_storage": True}})
            name, pending = made["name"], made["num_pending"]
            got = []
            while len(got) < pending:
                client.publish(f"$JS.API.CONSUMER.MSG.NEXT.{self.STREAM}.{name}", {"batch": 500, "no_wait": True})
                wanted = min(500, pending - len(got))
                while wanted:
                    subject, headers, _body = client.next()
                    if subject.startswith("cairn.events."):
                        got.append(headers)
                        wanted -= 1
            return got


class NatsClient:
    INBOX = "_INBOX.reader"

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.file = self.socket.makefile("rb")
        self.socket.sendall(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB ' + self.INBOX.encode() + b" 1\r\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def publish(self, subject, body):
        data = json.dumps(body).encode()
        self.socket.sendall(f"PUB {subject} {self.INBOX} {len(data)}\r\n".encode() + data + b"\r\n")

    def next(self):
        """Subject, headers and body of the next message; of one without headers an empty dictionary."""
        while True:
            line = self.file.readline()
            if not line:
                raise OSError("nats-server has closed")
            words = line.split()
            if words and words[0] == b"PING":
                self.socket.sendall(b"PONG\r\n")
            if not words or words[0] not in (b"MSG", b"HMSG"):
                continue
            data = self.file.read(int(words[-1]) + 2)[:-2]
            headers = {}
            if words[0] == b"HMSG":
                size = int(words[-2])
                lines = data[:size].decode().split("\r\n")
                headers = {name: value.strip() for name, _, value in (text.partition(":") for text in lines[1:] if text)}
                headers[""] = lines[0]
                data = data[size:]
            return words[1].decode(), headers, data

    def ask(self, subject, body):
        self.publish(subject, body)
        _subject, headers, data = self.next()
        if headers.get("", "").startswith("NATS/1.0 503"):
            raise OSError("nobody answers yet")
        return json.loads(data)


# ---- webhooks
class Receiver:
    """Answers 204 to everything, and remembers ids in the order of their arrival; with `keep` (a path) every byte that came. A connection is a
    thread; it may be kept."""

    def __init__(self, keep=None, host="127.0.0.1"):
        self.host = host
        self.keep = open(keep, "ab") if keep else None
        self.port = free_port()
        self.lock = threading.Lock()
        self.ids, self.accepted = [], 0
        self.listener, self.connections = None, set()

    def up(self):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((self.host, self.port))
        listener.listen(64)
        self.listener = listener
        threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def down(self):
        listener, self.listener = self.listener, None
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        with self.lock:
            connections = list(self.connections)
        for connection in connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.accepted += 1
                self.connections.add(connection)
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        data = b""
        try:
            while True:
                while b"\r\n\r\n" not in data:
                    more = connection.recv(1 << 16)
                    if not more:
                        return
                    data += more
                head, _, data = data.partition(b"\r\n\r\n")
                headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:])}
                length = int(headers.get(b"content-length", 0))
                while len(data) < length:
                    more = connection.recv(1 << 16)
                    if not more:  # its sender was shot
                        return
                    data += more
                with self.lock:
                    self.ids.append(headers.get(b"webhook-id", b"").decode())
                    if self.keep:
                        self.keep.write(head + b"\n\n" + data[:length] + b"\n")
                data = data[length:]
                connection.sendall(b"HTTP/1.1 204 No Content\r\n" + (b"Connection: close\r\n\r\n" if headers.get(b"connection") == b"close" else b"\r\n"))
                if headers.get(b"connection") == b"close":
                    return
        except OSError:
            pass
        finally:
            with self.lock:
                self.connections.discard(connection)
            connection.close()
