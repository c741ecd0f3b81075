"""framing.py URL TOKEN PID: messages that two readers could take for different ones (H1), whole and in pieces. Each carries a second
request that starts a run: it must never be carried out, the connection must end, and the server must go on."""
import json, sys

import kit

door, checks = kit.Door(*sys.argv[1:4]), kit.Checks()
HOST = f"Host: {door.host}:{door.port}\r\n"
AUTH = f"Authorization: Bearer {door.token}\r\n"
BODY = json.dumps({"document": kit.plan()})
STOWAWAY = f"POST /v1/runs HTTP/1.1\r\n{HOST}{AUTH}Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n{BODY}"


def post(headers, body="", line="POST /v1/plans:validate HTTP/1.1\r\n", host=HOST):
    return f"{line}{host}{AUTH}Content-Type: application/json\r\n{headers}\r\n{body}"


CHUNKED = "Transfer-Encoding: chunked\r\n"
BAD = {
    "CL.TE": post("Content-Length: 6\r\n" + CHUNKED, "0\r\n\r\nX"), "TE.CL": post(CHUNKED + "Content-Length: 4\r\n", "5c\r\n"),
    "TE.TE": post(CHUNKED + "Transfer-Encoding: x\r\n", "0\r\n\r\n"), "TE twice": post(CHUNKED + CHUNKED, "0\r\n\r\n"),
    "two CL": post("Content-Length: 0\r\nContent-Length: 5\r\n"), "same CL twice": post("Content-Length: 0\r\nContent-Length: 0\r\n"),
    "CL list": post("Content-Length: 0, 0\r\n"), "LF only": post("Content-Length: 0\r\n").replace("\r\n", "\n"),
    "CR only": post("Content-Length: 0\r\n").replace("\r\n", "\r"), "bare CR": post("X: a\rb\r\nContent-Length: 0\r\n"),
    "bare LF": post("X: a\nContent-Length: 5\r\n"), "NUL": post("X: a\0b\r\nContent-Length: 0\r\n"),
    "fold": post("X: a\r\n b\r\nContent-Length: 0\r\n"), "fold of TE": post("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"),
    "blank before colon": post("Content-Length : 0\r\n"), "tab before colon": post("Content-Length\t: 0\r\n"),
    "no name": post(": x\r\n"), "no colon": post("Content-Length 0\r\n"), "blank before name": post(" Content-Length: 0\r\n"),
    "no host": post("Content-Length: 0\r\n", host=""), "two hosts": post("Content-Length: 0\r\n" + HOST),
    "empty host": post("Content-Length: 0\r\n", host="Host:\r\n"), "host with a path": post("Content-Length: 0\r\n", host="Host: a/b\r\n"),
    "0.9": "GET /v1/runs\r\n\r\n", "1.0 and TE": post(CHUNKED, "0\r\n\r\n", line="POST /v1/plans:validate HTTP/1.0\r\n"),
    "version 2": post("", line="POST / HTTP/2.0\r\n"), "version 1.2": post("", line="POST / HTTP/1.2\r\n"),
    "version word": post("", line="POST / http/1.1\r\n"), "preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "two blanks": post("", line="POST  / HTTP/1.1\r\n"), "tab in line": post("", line="POST\t/ HTTP/1.1\r\n"),
    "blank at the end": post("", line="POST / HTTP/1.1 \r\n"), "no target": post("", line="POST HTTP/1.1\r\n"),
    "other host": post("", line="GET http://elsewhere/v1/runs HTTP/1.1\r\n"), "authority": post("", line="CONNECT a:1 HTTP/1.1\r\n"),
    "star": post("", line="OPTIONS * HTTP/1.1\r\n"), "fragment": post("", line="GET /v1/runs#x HTTP/1.1\r\n"),
    "control": post("", line="GET /v1/\x01 HTTP/1.1\r\n"), "high": post("", line="GET /v1/\xff HTTP/1.1\r\n"),
    "dots": post("", line="GET /v1/../livez HTTP/1.1\r\n"), "coded dots": post("", line="GET /v1/%2e%2e/livez HTTP/1.1\r\n"),
    "coded slash": post("", line="GET /v1%2fruns HTTP/1.1\r\n"), "two slashes": post("", line="GET //v1/runs HTTP/1.1\r\n"),
    "bad escape": post("", line="GET /v1/%zz HTTP/1.1\r\n"), "coded NUL": post("", line="GET /v1/%00 HTTP/1.1\r\n"),
    "trailer without colon": post(CHUNKED, "0\r\nContent-Length 5\r\n\r\n"), "huge chunk": post(CHUNKED, "ffffffffffffffff\r\nx"),
    "chunk overflow": post(CHUNKED, "10000000000000000\r\nx"), "chunk sign": post(CHUNKED, "-1\r\nx"), "chunk 0x": post(CHUNKED, "0x1\r\nx\r\n0\r\n\r\n"),
    "chunk blank": post(CHUNKED, " 1\r\nx\r\n0\r\n\r\n"), "chunk LF": post(CHUNKED, "1\nx\n0\n\n"), "chunk long": post(CHUNKED, "1\r\nxy\r\n0\r\n\r\n"),
    "chunk without end": post(CHUNKED, "1\r\nx0\r\n\r\n"), "chunk extension": post(CHUNKED, "1;" + "a" * 300 + "\r\nx\r\n0\r\n\r\n"),
    "method": post("", line="G@T / HTTP/1.1\r\n"), "lower": post("", line="get\0 / HTTP/1.1\r\n"), "quoted": post("", line="\"GET\" / HTTP/1.1\r\n"),
}
for text in ("+0", "-0", " 0x0", "0x0", "0 0", "1e1", "", "0.0", "18446744073709551616", "99999999999999999999999999", "0;", "zero", "\t0\t1", "٠"):
    BAD["CL " + repr(text)] = post(f"Content-Length: {text}\r\n".encode().decode("latin-1"))
for text in ("chunked, chunked", "chunked, identity", "gzip, chunked", "identity", "xchunked", "chunked;a=b", "chunked,", ",chunked", "\x0bchunked", "chu nked",
             '"chunked"', "chunked\x00", "CHUNKED, gzip"):
    BAD["TE " + repr(text)] = post(f"Transfer-Encoding: {text}\r\n", "0\r\n\r\n")

sent = 0
for name, message in BAD.items():
    data = (message + STOWAWAY).encode("latin-1")
    borders = [None] + [[at] for at in range(1, len(message), max(1, len(message) // 4))]
    for pieces in borders:
        found, got = door.send(data, pieces)
        sent += 1
        checks.that(found and found[-1] >= 400 and len(found) <= 1, name, pieces, "answers", found, got[:80])
runs = json.loads(door.ask("GET", "/v1/runs")[2])["items"]
checks.that(not runs, len(runs), "runs were started by stowaways")
checks.that(door.alive(), "the server is gone")
print(f"{len(BAD)} messages, {sent} times")
checks.end(300)
