"""The services that playbooks of the corpus talk to, as far as they do: an API with pages, one that counts who is in it, an echo."""
import http.server
import json
import os
import sys
import threading
import time
import urllib.parse

lock = threading.Lock()
stats = {"started": 0, "completed": 0, "active": 0, "max_active": 0}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, value, status=200):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def probe(self, delay):
        with lock:
            stats["started"] += 1
            stats["active"] += 1
            stats["max_active"] = max(stats["max_active"], stats["active"])
        time.sleep(delay)
        with lock:
            stats["active"] -= 1
            stats["completed"] += 1
        self.answer({"ok": True})

    def events(self, query):
        first = int(query.get("cursor") or 0)
        last = min(first + int(query.get("limit") or 10), 35)
        self.answer({"events": [{"id": i + 1} for i in range(first, last)], "next_cursor": str(last) if last < 35 else None})

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path == "/data":
            page = int(query.get("page") or 1)
            self.answer({"items": [page * 10 + i for i in range(3)], "paging": {"hasMore": page < 4, "page": page}})
        elif url.path.endswith("/concurrency/probe"):
            self.probe(float(query["delay_seconds"]))
        elif url.path.endswith("/concurrency/stats"):
            with lock:
                self.answer(dict(stats))
        elif url.path.endswith("/api/v1/events"):
            self.events(query)
        elif url.path == "/get":
            self.answer({"url": self.path})
        else:
            self.answer({"error": "no such thing"}, 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.endswith("/concurrency/reset"):
            with lock:
                stats.update(started=0, completed=0, active=0, max_active=0)
            self.answer({"status": "reset"})
        else:
            self.answer({"json": json.loads(body or b"null"), "url": self.path})


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


server = Server(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w") as out:
    out.write(str(server.server_address[1]))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
