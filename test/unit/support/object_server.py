#!/usr/bin/env python3
"""An object store that keeps nothing and believes nothing: it works out the signature of every request on its own (AWS Signature
V4, Azure Shared Key, SAS) and answers 200 with the object's name, or 403 with what it signed. Prints its port; ends with its
standard input.

    KEY_ID, SECRET, TOKEN for buckets; ACCOUNT, ACCOUNT_KEY (base64), SAS for blobs, from the environment.
"""
import base64, datetime, email.utils, hashlib, hmac, http.server, os, sys, threading, urllib.parse

E = os.environ


def sha(data):
    return hashlib.sha256(data).hexdigest()


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def check_v4(req, body):
    """Reason for refusing, or None."""
    word, rest = req.headers["Authorization"].split(" ", 1)
    fields = dict(part.strip().split("=", 1) for part in rest.split(","))
    key_id, day, region, service, last = fields["Credential"].split("/")
    if (word, key_id, service, last) != ("AWS4-HMAC-SHA256", E["KEY_ID"], "s3", "aws4_request"): return "credential"
    names = fields["SignedHeaders"].split(";")
    for needed in ["host", "x-amz-date", "x-amz-content-sha256"] + [h.lower() for h in req.headers if h.lower().startswith("x-amz-")]:
        if needed not in names: return "not signed: " + needed
    if names != sorted(names): return "order"
    if req.headers["x-amz-content-sha256"] != sha(body): return "body"
    if E.get("TOKEN", "") != req.headers.get("x-amz-security-token", ""): return "token"
    stamp = req.headers["x-amz-date"]
    then = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    if abs((then - req.server.now()).total_seconds()) > 900 or not stamp.startswith(day): return "time"
    path, _, query = req.path.partition("?")
    path = urllib.parse.quote(urllib.parse.unquote_to_bytes(path), safe="/-_.~")
    pairs = sorted((urllib.parse.quote(k, safe="-_.~"), urllib.parse.quote(v, safe="-_.~"))
                   for k, v in urllib.parse.parse_qsl(query, keep_blank_values=True))
    canonical = "\n".join([req.command, path, "&".join(f"{k}={v}" for k, v in pairs)] +
                          [f"{n}:{' '.join(req.headers[n].split())}" for n in names] + ["", ";".join(names), sha(body)])
    scope = f"{day}/{region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, sha(canonical.encode())])
    key = ("AWS4" + E["SECRET"]).encode()
    for part in (day, region, "s3", "aws4_request"): key = mac(key, part)
    return None if mac(key, text).hex() == fields["Signature"] else "signature of:\n" + canonical


def check_shared_key(req, body):
    word, rest = req.headers["Authorization"].split(" ", 1)
    account, signature = rest.split(":", 1)
    if word != "SharedKey" or account != E["ACCOUNT"]: return "account"
    then = email.utils.parsedate_to_datetime(req.headers["x-ms-date"])
    if abs((then - req.server.now()).total_seconds()) > 900: return "time"
    if not req.headers.get("x-ms-version"): return "version"
    if req.command == "PUT" and req.headers.get("x-ms-blob-type") != "BlockBlob": return "blob type"
    standard = ["Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type", "Date", "If-Modified-Since",
                "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"]
    values = [req.headers.get(n, "") for n in standard]
    if values[2] == "0": values[2] = ""
    own = sorted((n.lower(), v.strip()) for n, v in req.headers.items() if n.lower().startswith("x-ms-"))
    path, _, query = req.path.partition("?")
    resource = "/" + account + path + "".join(f"\n{k.lower()}:{v}" for k, v in sorted(urllib.parse.parse_qsl(query, keep_blank_values=True)))
    text = "\n".join([req.command] + values) + "\n" + "".join(f"{n}:{v}\n" for n, v in own) + resource
    good = base64.b64encode(mac(base64.b64decode(E["ACCOUNT_KEY"]), text)).decode()
    return None if hmac.compare_digest(good, signature) else "signature of:\n" + text


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, status, text, **headers):
        self.send_response(status)
        for name, value in headers.items(): self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        if self.command != "HEAD": self.wfile.write(text.encode())

    def date_time_string(self, timestamp=None):
        return email.utils.format_datetime(self.server.now(), usegmt=True)

    def any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        name = urllib.parse.unquote(self.path.partition("?")[0])
        authorization = self.headers.get("Authorization", "")
        if "/other-region/" in self.path and "/us-east-1/" in authorization:
            return self.reply(301, "elsewhere", x_amz_bucket_region="eu-test-9")
        self.server.skew = datetime.timedelta(hours=7) if "/skewed/" in self.path else datetime.timedelta(0)
        if authorization.startswith("AWS4"): fault = check_v4(self, body)
        elif authorization: fault = check_shared_key(self, body)
        elif E["SAS"] in self.path: fault = None
        else: fault = "anonymous"
        self.reply(403 if fault else 200, fault or f"{self.command} {name} {len(body)}")

    do_GET = do_PUT = do_HEAD = do_DELETE = any

    def log_message(self, *words): pass


class Server(http.server.ThreadingHTTPServer):
    skew = datetime.timedelta(0)

    def now(self):
        return datetime.datetime.now(datetime.timezone.utc) + self.skew


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
