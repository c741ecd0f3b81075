"""A strict fake of Snowflake's SQL API, version 2: snowflake_server.py. Its port goes to the file `port`, every request is a line of `asked`.

It verifies the token of each request (RS256 by the key in snowflake.pub, issuer, subject, times), demands a User-Agent, a requestId that is a UUID and
bindings in their order, and executes a statement once for each requestId, whatever is asked again. Statements it knows:
  select types        every type of column, in three parts, of which the second and third are compressed
  select ?            what was bound
  insert into t ...   1 row; `count` tells how many were executed
  wait                runs until the file `go` is there
  lost                is executed, and its first answer never arrives (the connection breaks)
  busy                503 twice
  bad                 422, a syntax error"""
import base64, gzip, hashlib, http.server, json, os, re, subprocess, threading, time, urllib.parse

answers, executed, lock = {}, [], threading.Lock()
TYPES = [("I", "fixed", 0), ("D", "fixed", 2), ("R", "real", 0), ("T", "text", 0), ("B", "boolean", 0), ("DAY", "date", 0), ("AT", "time", 9),
         ("NTZ", "timestamp_ntz", 9), ("TZ", "timestamp_tz", 9), ("LTZ", "timestamp_ltz", 9), ("V", "variant", 0), ("N", "text", 0)]
ROW = ["123456789012345678901234567890", "12.30", "1.5e+10", "é\"x", "true", "18262", "3661.500000000", "1577836805.120000000", "1577836805.000000000 1500", "1577836805.000000000", "{\"a\": [1]}", None]


def unpad(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def token_fault(headers):
    if headers.get("X-Snowflake-Authorization-Token-Type") != "KEYPAIR_JWT":
        return "token type"
    head, claims, signature = headers.get("Authorization", "")[len("Bearer "):].split(".")
    with lock:
        with open("signature.bin", "wb") as out:
            out.write(unpad(signature))
        right = subprocess.run(["openssl", "dgst", "-sha256", "-verify", "snowflake.pub", "-signature", "signature.bin"], input=("%s.%s" % (head, claims)).encode(),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    said, now = json.loads(unpad(claims)), time.time()
    der = subprocess.run(["openssl", "pkey", "-pubin", "-in", "snowflake.pub", "-outform", "DER"], stdout=subprocess.PIPE).stdout
    issuer = "ACME.ADA.SHA256:" + base64.b64encode(hashlib.sha256(der).digest()).decode()
    if not right:
        return "signature"
    return None if said["iss"] == issuer and said["sub"] == "ACME.ADA" and said["iat"] <= now + 1 and now < said["exp"] <= said["iat"] + 3600 else "claims"


def meta(types, rows):
    return {"numRows": sum(rows), "format": "jsonv2", "partitionInfo": [{"rowCount": n} for n in rows],
            "rowType": [{"name": name, "type": type, "scale": scale, "nullable": True} for name, type, scale in types]}


class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, value, compressed=False):
        body = json.dumps(value).encode()
        body = gzip.compress(body) if compressed else body
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if compressed:
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def fail(self, status, code, message, state="42000"):
        self.reply(status, {"code": code, "sqlState": state, "message": message})

    def begin(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with open("asked", "a") as out:
            out.write("%s %s\n" % (self.command, self.path))
        if not self.headers.get("User-Agent"):
            return self.fail(400, "391903", "no User-Agent")
        fault = token_fault(self.headers)
        if fault:
            return self.fail(401, "390144", "JWT token is invalid: " + fault)
        return True

    def finished(self, handle):
        entry = answers[handle]
        text, rows = entry["statement"], [[str(len(executed))]]
        if text == "wait" and not os.path.exists("go"):
            return self.reply(202, {"code": "333334", "statementHandle": handle, "message": "Asynchronous execution in progress."})
        if text == "bad":
            return self.fail(422, "001003", "SQL compilation error: syntax error line 1 at position 0 unexpected 'bad'.")
        if text == "cancelled":
            return self.fail(422, "000604", "SQL execution canceled", "57014")
        types = [("N", "fixed", 0)]
        if text == "select types":
            return self.reply(200, {"resultSetMetaData": meta(TYPES, [1, 2, 1]), "data": [ROW], "statementHandle": handle})
        if text.startswith("select ?"):
            bound = entry["bindings"]
            types = [("C%s" % n, "text", 0) for n in bound]
            rows = [["%s=%s" % (b["type"], b["value"]) for b in bound.values()]]
        answer = {"resultSetMetaData": meta(types, [1]), "data": rows, "statementHandle": handle}
        if text.startswith("insert"):
            answer["stats"] = {"numRowsInserted": 1}
        self.reply(200, answer)

    def do_POST(self):
        if not self.begin():
            return
        path, _, query = self.path.partition("?")
        given = dict(urllib.parse.parse_qsl(query))
        if path.endswith("/cancel"):
            answers[path.split("/")[-2]]["statement"] = "cancelled"
            return self.reply(200, {"message": "successfully canceled"})
        id = given.get("requestId", "")
        said = json.loads(self.body)
        if path != "/api/v2/statements" or not re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", id):
            return self.fail(400, "390142", "requestId")
        if said.get("warehouse") != "WH" or said.get("role") != "ANALYST" or said.get("database") != "DB":
            return self.fail(400, "000606", "no active warehouse")
        text, bindings = said["statement"], said.get("bindings", {})
        if list(bindings) != [str(n + 1) for n in range(text.count("?"))]:
            return self.fail(422, "100132", "bindings")
        first = id not in answers
        if not first and given.get("retry") != "true":
            return self.fail(400, "390142", "the requestId was used")
        if first:
            answers[id] = {"statement": text, "bindings": bindings, "tries": 0}
            executed.append(text)
        entry = answers[id]
        entry["tries"] += 1
        if text == "busy" and entry["tries"] <= 2:
            return self.fail(503, "000000", "busy")
        if text.startswith("lost") and entry["tries"] == 1:
            return self.connection.close()
        self.finished(id)

    def do_GET(self):
        if not self.begin():
            return
        path, _, query = self.path.partition("?")
        part = int(dict(urllib.parse.parse_qsl(query)).get("partition", 0))
        if part:
            return self.reply(200, {"data": [ROW] * [1, 2, 1][part]}, compressed=True)
        self.finished(path.split("/")[-1])

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
open("port.new", "w").write(str(server.server_port))
os.rename("port.new", "port")
server.serve_forever()
