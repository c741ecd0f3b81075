"""browser.py URL TOKEN PID: what a page that an operator has open could make a browser send (H2-H5), and headers of every answer."""
import json, sys

import kit

door, checks = kit.Door(*sys.argv[1:4]), kit.Checks()
port = door.port
GOOD = [f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"]
EVIL = ["evil.example", f"evil.example:{port}", f"0.0.0.0:{port}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.:{port}", f"127.1:{port}", f"2130706433:{port}",
        f"0x7f.1:{port}", f"localhost.evil.example:{port}", f"evil.example:{port}@127.0.0.1", f"127.0.0.1:{port}.evil.example", f"[::]:{port}",
        f"[::ffff:127.0.0.1]:{port}", f"localhost:{port}:80", "", "[", f"127.0.0.1:0{port}", f"127.0.0.1:{port} ", f"a.localhost:{port}", "xn--80ak6aa92e.com"]
for host in GOOD:
    checks.that(door.send(door.head("GET", "/v1/whoami", ["Connection: close"], host=host))[0] == [200], "host", host, "is refused")
for host in EVIL:
    for path in ("/livez", "/v1/whoami", "/nothing"):
        found, _ = door.send(door.head("GET", path, ["Connection: close"], host=host))
        good = host == f"127.0.0.1:{port} "  # blanks around a value are not part of it
        checks.that(found == [200 if path != "/nothing" else 404] if good else found and found[0] in (400, 421), "host", repr(host), path, "answers", found)
body = json.dumps({"document": kit.plan()}).encode()
STARTS = {
    "form": ["Content-Type: application/x-www-form-urlencoded"], "text": ["Content-Type: text/plain"], "multipart": ["Content-Type: multipart/form-data; boundary=x"],
    "none": [], "text with json": ["Content-Type: text/plain; application/json"], "json of another site": ["Content-Type: application/json", "Origin: http://evil.example"],
    "null origin": ["Content-Type: application/json", "Origin: null"], "no-cors": ["Content-Type: application/json", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors"],
    "same site": ["Content-Type: application/json", "Sec-Fetch-Site: same-site"], "other port": ["Content-Type: application/json", "Origin: http://127.0.0.1:1"],
    "other scheme": ["Content-Type: application/json", f"Origin: https://127.0.0.1:{port}"], "two origins": ["Content-Type: application/json", f"Origin: http://127.0.0.1:{port}", "Origin: x"],
    "suffix": ["Content-Type: application/json", f"Origin: http://127.0.0.1:{port}.evil.example"],
}
for name, headers in STARTS.items():
    found, got = door.send(door.head("POST", "/v1/runs", ["Connection: close"] + headers, body=body))
    checks.that(found and found[0] in (400, 403, 415), name, "answers", found, got[:100])
found, got = door.send(door.head("POST", "/v1/runs", ["Connection: close", "Content-Type: application/json"], body=body, token=False) )
checks.that(found == [401], "without a token", found)
found, got = door.send(door.head("POST", "/v1/runs", ["Connection: close", "Content-Type: application/json", "Cookie: token=" + door.token], body=body, token=False))
checks.that(found == [401], "a cookie is taken for a token", found)
found, got = door.send(door.head("GET", "/v1/whoami?token=" + door.token + "&access_token=" + door.token, ["Connection: close"], token=False))
checks.that(found == [401], "a token in a query is taken", found)
for headers in (["Access-Control-Request-Method: POST", "Origin: http://evil.example"], ["Access-Control-Request-Private-Network: true", "Access-Control-Request-Method: GET"]):
    found, got = door.send(door.head("OPTIONS", "/v1/runs", ["Connection: close"] + headers))
    checks.that(found and found[0] >= 400 and b"access-control-allow" not in got.lower(), "preflight", found)
checks.that(not json.loads(door.ask("GET", "/v1/runs")[2])["items"], "a run was started")

WANTED = {"content-security-policy": "default-src 'none'", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer",
          "cross-origin-opener-policy": "same-origin", "cross-origin-resource-policy": "same-origin", "cache-control": "no-store"}
described = json.loads(door.ask("GET", "/openapi.json")[2])["paths"]
asked = [(m.upper(), p.replace("{", "").replace("}", "")) for p, methods in described.items() for m in methods if m in ("get", "post", "put", "delete", "patch")]
asked += [("TRACE", "/v1/runs"), ("PATCH", "/v1/runs"), ("BREW", "/v1/runs"), ("GET", "/nothing/at/all"), ("GET", "/"), ("OPTIONS", "/v1/runs"), ("HEAD", "/v1/runs")]
for method, path in asked:
    if path.endswith(":drain") or path.endswith("/config"):
        continue
    for token in (door.token, ""):
        status, headers, text = door.ask(method, path, "{}" if method in ("POST", "PUT", "PATCH") else None, token=token)
        for name, value in WANTED.items():
            if (path, name) == ("/", "cache-control"):  # the page holds no data: it may be kept, and is asked about each time
                value = "no-cache"
            checks.that(headers.get(name, "").startswith(value), method, path, status, "has no", name)
        checks.that("server" not in headers and "x-powered-by" not in headers, method, path, "tells what it is")
        checks.that(b"/tmp/" not in text and b"sqlite" not in text.lower() and b".c:" not in text, method, path, "tells of files", text[:200]) if status >= 400 else None
        checks.that(token == door.token or status in (401, 501) or path in ("/", "/livez", "/readyz", "/startupz", "/v1/auth", "/openapi.json") or (method, path, status) == ("POST", "/v1/session", 400) or (path.startswith("/v1/hooks/") and status == 404), method, path, "answers", status, "without a token")
for method in ("TRACE", "BREW", "PROPFIND", "PATCH", "OPTIONS"):
    status, headers, _ = door.ask(method, "/v1/whoami")
    checks.that(status in (400, 405, 501), method, "answers", status)
    checks.that(status != 405 or "GET" in headers.get("allow", ""), method, "405 without Allow")
checks.end(300)
