"""An object store that checks what it is asked with: Signature V4, Shared Key, shared access signatures, keys of customers.

object_store.py DIRECTORY: serves its files on a free port, which is written to the file `port`, in the buckets plans, europe (of
another region), moved (elsewhere) and goods, and the containers of account and shared. busy-N.json gives 503 N times before it is
there; secret-1.json wants the key of the customer. Every request is a line of the file `asked`."""
import base64, hashlib, hmac, http.server, os, re, sys, urllib.parse

KEY_ID, SECRET, ACCOUNT_KEY = "AKIDTEST", "sec/ret+key", base64.b64encode(b"k" * 64).decode()
CUSTOMER = b"c" * 32
busy = {}


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
    canonical = "\n".join([request.command, path, query, lines, names, request.headers["x-amz-content-sha256"]])
    scope = "%s/%s/s3/aws4_request" % (day, said)
    text = "\n".join(["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = mac(mac(mac(mac(("AWS4" + SECRET).encode(), day), said), "s3"), "aws4_request")
    return None if hmac.compare_digest(hmac.new(key, text.encode(), hashlib.sha256).hexdigest(), signature) else "SignatureDoesNotMatch"


def shared_key_fault(request):
    path, _, query = request.path.partition("?")
    if query:  # a shared access signature: this one alone
        return None if query == "sv=2021-08-06&sig=right" else "AuthenticationFailed"
    own = sorted((name.lower(), value.strip()) for name, value in request.headers.items() if name.lower().startswith("x-ms-"))
    standard = [request.headers.get(name, "") for name in ("Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type",
                "Date", "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range")]
    text = "\n".join([request.command] + standard) + "\n" + "".join("%s:%s\n" % pair for pair in own) + "/account" + path
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


class Store(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body=b"", *headers):
        with open("asked", "a") as out:
            out.write("%d %s\n" % (status, self.path))
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, code, *headers):
        self.answer(status, b"<Error><Code>%s</Code></Error>" % code.encode(), *headers)

    def do_GET(self):
        path = urllib.parse.unquote(self.path.partition("?")[0])
        first, _, rest = path[1:].partition("/")
        azure = first in ("account", "shared")
        region = "eu-west-9" if first == "europe" else "auto" if first == "goods" else "us-east-1"
        if first == "moved":
            return self.refuse(307, "TemporaryRedirect", ("Location", "http://127.0.0.1:%d/plans/%s" % (self.server.server_port, rest)))
        fault = shared_key_fault(self) if azure else v4_fault(self, region)
        if fault == "AuthorizationHeaderMalformed":
            return self.refuse(301, "PermanentRedirect", ("x-amz-bucket-region", region))
        if fault:
            return self.refuse(403, fault)
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
