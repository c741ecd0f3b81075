"""An object store that checks what it is asked with: Signature V4, Shared Key, shared access signatures, keys of customers.

object_store.py DIRECTORY: serves its files on a free port, which is written to the file `port`, in the buckets plans, europe (of
another region), moved (elsewhere) and goods, and the containers of account and shared. busy-N.json gives 503 N times before it is
there; secret-1.json wants the key of the customer. What is put is kept, with its metadata, and listed in pages of two. POST /token gives
Google's access token for an assertion that the key in google.pub has signed. Every request is a line of the file `asked`."""
import base64, hashlib, hmac, html, http.server, json, os, re, subprocess, sys, time, urllib.parse

KEY_ID, SECRET, ACCOUNT_KEY = "AKIDTEST", "sec/ret+key", base64.b64encode(b"k" * 64).decode()
CUSTOMER = b"c" * 32
busy = {}
kept = {}  # path -> (bytes, headers)
PAGE = 2


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def v4_fault(request, region):
    given = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})",
                         request.headers.get("Authorization", ""))
    if not given:
        return "AccessDenied"
    key_id, day, said, names, signature = given.groups()
    if key_id != KEY_ID:
        return "InvalidAccessKeyId"
    if said != region:
        return "AuthorizationHeaderMalformed"
    path, _, query = request.path.partition("?")
    signed = names.split(";")
    if not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(signed):
        return "AccessDenied"
    for name in request.headers:
        if name.lower().startswith("x-amz-") and name.lower() not in signed:
            return "AccessDenied"
    lines = "".join("%s:%s\n" % (name, " ".join(request.headers[name].split())) for name in signed)
    if request.headers["x-amz-content-sha256"] != hashlib.sha256(request.body).hexdigest():
        return "XAmzContentSHA256Mismatch"
    query = "&".join(sorted(part if "=" in part else part + "=" for part in query.split("&"))) if query else ""
    canonical = "\n".join([request.command, path, query, lines, names, request.headers["x-amz-content-sha256"]])
    scope = "%s/%s/s3/aws4_request" % (day, said)
    text = "\n".join(["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = mac(mac(mac(mac(("AWS4" + SECRET).encode(), day), said), "s3"), "aws4_request")
    return None if hmac.compare_digest(hmac.new(key, text.encode(), hashlib.sha256).hexdigest(), signature) else "SignatureDoesNotMatch"


def shared_key_fault(request):
    path, _, query = request.path.partition("?")
    if "sig=" in query or path.startswith("/shared/"):  # a shared access signature: this one alone
        return None if query == "sv=2021-08-06&sig=right" or query.endswith("&sv=2021-08-06&sig=right") else "AuthenticationFailed"
    own = sorted((name.lower(), value.strip()) for name, value in request.headers.items() if name.lower().startswith("x-ms-"))
    length = request.headers.get("Content-Length", "")
    standard = ["" if (name, length) == ("Content-Length", "0") else request.headers.get(name, "") for name in ("Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type",
                "Date", "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range")]
    text = "\n".join([request.command] + standard) + "\n" + "".join("%s:%s\n" % pair for pair in own) + "/account" + path
    text += "".join("\n%s:%s" % pair for pair in sorted(urllib.parse.parse_qsl(query, keep_blank_values=True)))
    right = base64.b64encode(hmac.new(base64.b64decode(ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()).decode()
    return None if request.headers.get("Authorization") == "SharedKey account:" + right else "AuthenticationFailed"


def customer_fault(request, azure):
    if azure:
        names, digest = ("x-ms-encryption-algorithm", "x-ms-encryption-key", "x-ms-encryption-key-sha256"), hashlib.sha256(CUSTOMER)
    else:
        whole = "x-amz-server-side-encryption-customer-"
        names, digest = (whole + "algorithm", whole + "key", whole + "key-MD5"), hashlib.md5(CUSTOMER)
    want = ("AES256", base64.b64encode(CUSTOMER).decode(), base64.b64encode(digest.digest()).decode())
    return None if tuple(request.headers.get(name) for name in names) == want else "InvalidRequest"


def google_fault(text):
    head, claims, signature = text.split(".")
    pad = lambda part: base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    with open("signature.bin", "wb") as out:
        out.write(pad(signature))
    right = subprocess.run(["openssl", "dgst", "-sha256", "-verify", "google.pub", "-signature", "signature.bin"],
                           input=("%s.%s" % (head, claims)).encode(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    said = json.loads(pad(claims))
    return not (right and json.loads(pad(head)) == {"alg": "RS256", "typ": "JWT"} and said["iss"] == "robot@example.org" and
                said["aud"].endswith("/token") and said["iat"] <= time.time() < said["exp"] <= said["iat"] + 3600)


class Store(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body=b"", *headers):
        with open("asked", "a") as out:
            out.write("%d %s%s\n" % (status, "" if self.command == "GET" else self.command + " ", self.path))
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name == "Content-Length" for name, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, code, *headers):
        self.answer(status, b"<Error><Code>%s</Code></Error>" % code.encode(), *headers)

    def list(self, first, rest, azure):
        query = dict(urllib.parse.parse_qsl(self.path.partition("?")[2]))
        top = "/%s/%s" % (first, rest.partition("/")[0] + "/" if azure else "")
        names = sorted(path[len(top):] for path in kept if path.startswith(top))
        names = [name for name in names if name.startswith(query.get("prefix", ""))]
        at = int(query.get("marker" if azure else "continuation-token", 0))
        page = names[at:at + min(PAGE, int(query["maxresults" if azure else "max-keys"]))]
        more = str(at + len(page)) if at + len(page) < len(names) else ""
        body = lambda name: kept[top + name][0]
        if azure:
            text = "<EnumerationResults ServiceEndpoint=\"x\"><Blobs>%s</Blobs><NextMarker>%s</NextMarker></EnumerationResults>" % ("".join(
                "<Blob><Name>%s</Name><Properties><Content-Length>%d</Content-Length></Properties></Blob>" % (html.escape(n), len(body(n))) for n in page), more)
        else:
            text = "<ListBucketResult xmlns=\"x\"><Prefix/>%s%s</ListBucketResult>" % ("".join(
                "<Contents><Key>%s</Key><Size>%d</Size><Owner><ID>7</ID></Owner></Contents>" % (html.escape(n), len(body(n))) for n in page),
                "<NextContinuationToken>%s</NextContinuationToken>" % more if more else "")
        self.answer(200, b"\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?>" + text.encode(), ("Content-Type", "application/xml"))

    def do_PUT(self):
        self.serve()

    def do_HEAD(self):
        self.serve()

    def do_DELETE(self):
        self.serve()

    def do_POST(self):
        said = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        if self.path != "/token" or said["grant_type"] != "urn:ietf:params:oauth:grant-type:jwt-bearer" or google_fault(said["assertion"]):
            return self.answer(401, b"{}")
        self.answer(200, b'{"access_token": "google-access-token", "expires_in": 3600}', ("Content-Type", "application/json"))

    def do_GET(self):
        self.serve()

    def serve(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = urllib.parse.unquote(self.path.partition("?")[0])
        first, _, rest = path[1:].partition("/")
        azure = first in ("account", "shared")
        region = "eu-west-9" if first == "europe" else "auto" if first == "goods" else "us-east-1"
        if first == "moved":
            return self.refuse(307, "TemporaryRedirect", ("Location", "http://127.0.0.1:%d/plans/%s" % (self.server.server_port, rest)))
        google = first == "goods" and self.headers.get("Authorization") == "Bearer google-access-token"
        fault = None if google else shared_key_fault(self) if azure else v4_fault(self, region)
        if fault == "AuthorizationHeaderMalformed":
            return self.refuse(301, "PermanentRedirect", ("x-amz-bucket-region", region))
        if fault:
            return self.refuse(403, fault)
        if "list-type=2" in self.path or "comp=list" in self.path:
            return self.list(first, rest, azure)
        if self.command == "PUT":
            if azure and self.headers.get("x-ms-blob-type") != "BlockBlob":
                return self.refuse(400, "MissingRequiredHeader")
            if path in kept and (self.headers.get("If-None-Match") == "*" or self.headers.get("x-goog-if-generation-match") == "0"):
                return self.refuse(*((409, "BlobAlreadyExists") if azure else (412, "PreconditionFailed")))
            own = [(n, v) for n, v in self.headers.items() if "-meta-" in n.lower() or n.lower() == "content-type"]
            kept[path] = (self.body, own + [("ETag", '"%s"' % hashlib.md5(self.body).hexdigest()), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")])
            return self.answer(201 if azure else 200, b"", kept[path][1][-2])
        if self.command == "DELETE":
            there = kept.pop(path, None)
            return self.answer(202 if azure else 204) if there or not azure else self.refuse(404, "BlobNotFound")
        if path in kept:
            body, own = kept[path]
            return self.answer(200, b"" if self.command == "HEAD" else body, *own, ("Content-Length", str(len(body))))
        if self.command == "HEAD":
            return self.answer(404)
        name = os.path.basename(path)
        if name.startswith("busy-"):
            busy[path] = busy.get(path, int(name[5])) - 1
            if busy[path] >= 0:
                return self.refuse(503, "SlowDown")
        if name.startswith("secret-") and customer_fault(self, azure):
            return self.refuse(400, "InvalidRequest")
        file = os.path.join(sys.argv[1], name)
        if not os.path.isfile(file):
            return self.refuse(404, "NoSuchKey")
        self.answer(200, open(file, "rb").read(), ("x-amz-server-side-encryption", "aws:kms"))

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
open("port.new", "w").write(str(server.server_port))
os.rename("port.new", "port")
server.serve_forever()
