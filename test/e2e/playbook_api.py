"""The services that playbooks talk to, as far as they do: an API with pages, one that counts who is in it, an echo, one that fails so many
times, tokens, jobs."""
import base64
import http.server
import json
import os
import sys
import threading
import time
import urllib.parse

lock = threading.Lock()
counts = {}
stats = {"started": 0, "completed": 0, "active": 0, "max_active": 0}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, value, status=200, headers=(), kind="application/json"):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in (("Content-Type", kind), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    def count(self, key):
        with lock:
            counts[key] = counts.get(key, 0) + 1
            return counts[key]

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

    def assessments(self, query):
        page, size = int(query.get("page") or 1), int(query.get("pageSize") or 10)
        first = (page - 1) * size
        items = [{"id": i + 1, "name": f"it's {i + 1}"} for i in range(first, min(first + size, 35))]
        self.answer({"data": items, "paging": {"page": page, "hasMore": first + size < 35}})

    def flaky(self, query):
        tries, fails = self.count("flaky " + query["key"]), int(query["fail"])
        self.answer({"error": "not yet"} if tries <= fails else {"ok": True, "tries": tries}, 503 if tries <= fails else 200)

    def rate(self, query):
        if self.count("rate " + query["key"]) == 1:
            self.answer({"error": "too many"}, 429, [("Retry-After", "1")])
        else:
            self.answer({"ok": True})

    def offset(self, query):
        first = int(query["offset"])
        self.answer({"results": list(range(first, min(first + int(query["limit"]), 25))), "total": 25})

    def cursor(self, query):
        first = int(query.get("cursor") or 0)
        self.answer({"events": [{"id": i} for i in range(first, min(first + 10, 35))], "next_cursor": str(first + 10) if first + 10 < 35 else None})

    def authorized(self, is_right, refusal):
        right = is_right(self.headers.get("Authorization") or "")
        self.answer({"ok": right}, 200 if right else refusal)

    def job(self, _):
        polls = self.count("job")
        self.answer({"state": "done" if polls >= 3 else "running"})

    def echo(self, query, body=b""):
        is_json = (self.headers.get("Content-Type") or "").startswith("application/json")
        headers = {name.lower(): text for name, text in self.headers.items()}
        self.answer({"query": query, "headers": headers, "json": json.loads(body) if is_json else None, "text": body.decode()})

    PLACES = {
        "/api/v1/assessments": assessments,
        "/flaky": flaky,
        "/rate": rate,
        "/offset": offset,
        "/cursor": cursor,
        "/job/j1": job,
        "/echo": echo,
        "/deny": lambda self, query: self.answer({"error": "no"}, 401),
        "/secure": lambda self, query: self.authorized(lambda given: given.startswith("Bearer tok-cid"), 403),
        "/basic": lambda self, query: self.authorized(lambda given: given == "Basic " + base64.b64encode(b"ann:pw-of-ann").decode(), 401),
        "/patient": lambda self, query: self.answer({"data": {"id": int(query["patientId"]), "name": "P" + query["patientId"]}}),
        "/weather": lambda self, query: self.answer({"current": {"temperature_2m": {"Kyiv": 31.5, "Oslo": 12.0, "Lima": 22.25}[query["city"]]}, "city": query["city"]}),
        "/list": lambda self, query: self.answer([{"userId": 1, "id": i, "title": f"t{i}", "body": "b'q"} for i in range(1, 6)]),
        "/big": lambda self, query: self.answer(b'{"id": 9007199254740993, "price": 19.90, "huge": 123456789012345678901234567890}'),
        "/text": lambda self, query: self.answer(b"plain words\n", kind="text/plain"),
        "/empty": lambda self, query: self.answer(b"", 204),
        "/slow": lambda self, query: time.sleep(60),
        "/hello.py": lambda self, query: self.answer(b"result = {'status': 'success', 'hello': name, 'count': count}\n", kind="text/x-python"),
        "/q.sql": lambda self, query: self.answer(b"SELECT 40 + 2 AS answer;\n", kind="text/plain"),
    }

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
        elif url.path in self.PLACES:
            self.PLACES[url.path](self, query)
        else:
            self.answer({"error": "no such thing"}, 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path.endswith("/concurrency/reset"):
            with lock:
                stats.update(started=0, completed=0, active=0, max_active=0)
            self.answer({"status": "reset"})
        elif self.path == "/echo":
            self.echo({}, body)
        elif self.path == "/job":
            self.answer({"job_id": "j1", "state": "queued"}, 202)
        elif self.path == "/oauth/token":
            asked = dict(urllib.parse.parse_qsl(body.decode()))
            self.answer({"access_token": f"tok-{asked['client_id']}-{self.count('token')}-abcdef", "token_type": "Bearer", "expires_in": 3600})
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
