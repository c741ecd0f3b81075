#!/usr/bin/env python3
"""A proxy that stands between a host and the server that it calls, and makes go wrong on the way what goes wrong on ways.

http_proxy.py URL [PORT]: prints its port when it answers; what it gets goes to URL.
POST /proxy/faults {"name": n}: the next n calls of that kind go wrong (-1: all of them):
  lose_start, lose_update       done there, and the answer never comes (POST /workflow, POST /tasks...)
  ignore_update                 an update is answered 200 and goes nowhere
  deliver_twice                 a poll that brought something is answered the same once more
  retryable_500, broken_500, unavailable   500 that says "again", 500 that does not, 503
  cut, slow                     an answer that breaks off; one that comes byte by byte
  away                          the connection ends before anything was sent
  moved, unauthorized, absent   302 to somewhere else, 401, 404
  garbage, other_type, huge, deep, silent, endless_head   answers that no server of that kind gives
  lie_ended, lie_listed, lie_id, lie_early     what Conductor says is not true
"only": "METHOD /path" beside them: a regular expression of the calls that they are about.
POST /proxy/hold {"call": REGEX, "when": "before" or "after"}: the next such call waits on this or on that side of the server ("brought": a poll that
  brings something). A call is "METHOD /path?query", and of a start or an update the name or status in it: "POST /workflow cairn_attempt".
POST /proxy/release: it goes on. GET /proxy/held: how many wait. GET /proxy/seen: how many calls there were of each name."""
import http.client, json, re, socket, sys, threading, time, urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

there = urllib.parse.urlparse(sys.argv[1])
lock, changed = threading.Lock(), threading.Condition()
faults, only, seen, holds, waiting, again = {}, [""], {}, [], [], []
held = 0


def fault(name, call):
    with lock:
        if not faults.get(name) or not re.search(only[0], call):
            return False
        faults[name] -= faults[name] > 0
        return True


def hold(call, when):
    global held
    with changed:
        found = next((h for h in holds if h["when"] == when and re.search(h["call"], call)), None)
        if not found:
            return
        holds.remove(found)
        waiting.append(found)
        held += 1
        while not found.get("released"):
            changed.wait(0.5)
        held -= 1


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes: the second does not wait for the first to be acknowledged
    timeout = 60

    def log_message(self, *args):
        pass

    def hang_up(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def answer(self, status, text, kind="application/json", cut=False, slow=False, more=()):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text) + (10 if cut else 0)))
        for name, value in more:
            self.send_header(name, value)
        self.end_headers()
        if slow:
            for i in range(len(text)):
                self.wfile.write(text[i:i + 1])
                self.wfile.flush()
                time.sleep(0.02)
        else:
            self.wfile.write(text)
        if cut:
            self.hang_up()

    def proxy(self, what, raw):
        if what == "faults":
            given = json.loads(raw)
            with lock:
                only[0] = given.pop("only", "")
                faults.update(given)
        elif what == "hold":
            with changed:
                holds.append(json.loads(raw))
        elif what == "release":
            with changed:
                holds.clear()
                for one in waiting:
                    one["released"] = True
                waiting.clear()
                changed.notify_all()
        self.answer(200, json.dumps(held if what == "held" else seen).encode())

    def forward(self, method, raw):
        c = http.client.HTTPConnection(there.hostname, there.port, timeout=60)
        headers = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection", "content-length")}
        c.request(method, there.path + self.path, raw or None, headers)
        r = c.getresponse()
        text, kind = r.read(), r.getheader("Content-Type") or "application/json"
        c.close()
        return r.status, text, kind

    def wrong(self, call):
        """Instead of the server. Whether it was answered."""
        if fault("away", call):
            self.hang_up()
        elif fault("retryable_500", call):
            self.answer(500, b'{"status":500,"message":"Error acquiring lock","retryable":true}')
        elif fault("broken_500", call):
            self.answer(500, b'{"status":500,"message":"NullPointerException","retryable":false}')
        elif fault("unavailable", call):
            self.answer(503, b'{"status":503,"message":"later"}')
        elif fault("moved", call):
            self.answer(302, b"", more=[("Location", "http://127.0.0.1:1/elsewhere")])
        elif fault("unauthorized", call):
            self.answer(401, b"who are you?", "text/plain")
        elif fault("absent", call):
            self.answer(404, b"<html>nothing here</html>", "text/html")
        elif fault("garbage", call):
            self.answer(200, bytes(range(256)) * 40)
        elif fault("other_type", call):
            self.answer(200, b'{"results":{"a":[1,{"tasks":"x","status":7,"workflowId":[]}]},"tasks":3,"status":{},"workflowId":9}')
        elif fault("huge", call):
            self.answer(200, b"[" + b"0," * (40 << 20) + b"0]")
        elif fault("deep", call):
            self.answer(200, b"[" * 200000)
        elif fault("silent", call):
            time.sleep(20)
            self.hang_up()
        elif fault("endless_head", call):
            try:
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                for n in range(200000):
                    self.wfile.write(b"X-%d: %s\r\n" % (n, b"y" * 100))
            except OSError:
                pass
            self.hang_up()
        else:
            return False
        return True

    def lie(self, call, status, text):
        if re.fullmatch(r"GET /workflow/[0-9a-f-]{36}\?.*", call) and fault("lie_ended", call):
            body = json.loads(text)
            body.update(status="TERMINATED", reasonForIncompletion="so they say", endTime=1)
            return json.dumps(body).encode()
        if re.match(r"GET /workflow/running/", call) and fault("lie_listed", call):
            return json.dumps(["../../../etc", "x" * 5000, "", 7, None, "a b\r\nX: y"] + ["%08d" % n for n in range(20000)]).encode()
        if re.match(r"POST /workflow ", call) and fault("lie_id", call):
            return b"../../tasks?x=\r\nX-Evil: 1"
        if re.match(r"GET /tasks/poll/batch/cairn_attempt", call) and fault("lie_early", call):
            return json.dumps([{"taskId": "t", "workflowInstanceId": "w", "inputData": {"key": "default/none:a:1:1"}}] * 50).encode()
        return text

    def go(self, method):
        size = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(size)
        if self.path.startswith("/proxy/"):
            return self.proxy(self.path.split("/")[2], raw.decode() or "{}")
        call = "%s %s" % (method, self.path)
        word = re.search(rb'"(?:name|status)":"(\w+)"', raw) if self.path in ("/workflow", "/tasks") else None
        call += " " + word.group(1).decode() if word else ""
        with lock:
            name = re.sub(r"[0-9a-f-]{36}", "ID", call.partition("?")[0])
            seen[name] = seen.get(name, 0) + 1
            if b'"extendLease":true' in raw:
                seen["extendLease"] = seen.get("extendLease", 0) + 1
        hold(call, "before")
        if self.wrong(call):
            return None
        update = method == "POST" and re.match(r"/tasks(/[^/]+/[^/]+/(COMPLETED|FAILED|FAILED_WITH_TERMINAL_ERROR|IN_PROGRESS))?(\?|$)", self.path)
        poll = self.path.startswith("/tasks/poll/batch/")
        if update and fault("ignore_update", call):
            return self.answer(200, b"00000000-0000-0000-0000-000000000000", "text/plain")
        if poll and again:
            return self.answer(200, again.pop())
        try:
            status, text, kind = self.forward(method, raw)
        except OSError:
            return self.hang_up()
        hold(call, "after")
        if poll and text not in (b"[]", b""):
            hold(call, "brought")
        if poll and text not in (b"[]", b"") and fault("deliver_twice", call):
            again.append(text)
        if (call.startswith("POST /workflow ") and fault("lose_start", call)) or (update and fault("lose_update", call)):
            return self.hang_up()
        return self.answer(status, self.lie(call, status, text), kind, fault("cut", call), fault("slow", call))

    def do_GET(self):
        self.go("GET")

    def do_POST(self):
        self.go("POST")

    def do_PUT(self):
        self.go("PUT")

    def do_DELETE(self):
        self.go("DELETE")


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # its client is gone


server = Server(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
