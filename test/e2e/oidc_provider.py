#!/usr/bin/env python3
"""A small identity provider for tests: it does what it is told, also what none should. Nothing but the standard library and openssl.

    oidc_provider.py serve DIR          serves DIR/jwks.json and DIR/discovery.json as they stand; the address is in DIR/issuer
    oidc_provider.py key DIR KIND KID   makes a key (rsa2048, rsa1024, p256, p384, ed25519) in DIR/KID.pem; prints its JWK
    oidc_provider.py sign DIR KID ALG CLAIMS [HEADER]     prints a token; ALG is what is done, HEADER (JSON) overrides what it says
    oidc_provider.py forge ...          as sign, CLAIMS as raw text, not parsed

While DIR/away is there it answers 503. DIR/count has a line for each time that keys were asked for. Device grants are approved by
DIR/approved; then DIR/id_token is handed out, and DIR/id_token.next for a refresh. DIR/device.json and DIR/token.json change what these answers
say. It is also a server of Cairn that says what none should: DIR/auth.json and DIR/whoami.json are its /v1/auth and /v1/whoami. DIR/gets has a
line for each GET, DIR/posts for each POST. POST /sign with a form of kid, alg, claims and header prints a token as `sign` does: no process a token.
"""
import base64, hashlib, hmac, http.server, json, os, subprocess, sys, urllib.parse

def b64(b): return base64.urlsafe_b64encode(b).rstrip(b"=").decode()
def openssl(*args, given=None): return subprocess.run(["openssl", *args], input=given, capture_output=True, check=True).stdout

def make_key(folder, kind, kid):
    path = f"{folder}/{kid}.pem"
    how = {"rsa": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:" + kind[3:]], "p25": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
           "p38": ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"], "ed2": ["-algorithm", "ED25519"]}[kind[:3]]
    openssl("genpkey", *how, "-out", path)
    der = openssl("pkey", "-in", path, "-pubout", "-outform", "DER")
    if kind.startswith("rsa"):
        n = bytes.fromhex(openssl("rsa", "-in", path, "-noout", "-modulus").decode().strip().split("=")[1])
        return {"kty": "RSA", "kid": kid, "use": "sig", "n": b64(n), "e": "AQAB"}
    if kind == "ed25519": return {"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": b64(der[-32:])}
    size = 32 if kind == "p256" else 48
    return {"kty": "EC", "crv": "P-256" if size == 32 else "P-384", "kid": kid, "x": b64(der[-2 * size:-size]), "y": b64(der[-size:])}

def signature(folder, kid, alg, text):
    path = f"{folder}/{kid}.pem"
    if alg == "none": return b""
    if alg == "zero": return b"\0" * 64
    if alg == "HS256": return hmac.new(openssl("pkey", "-in", path, "-pubout"), text, hashlib.sha256).digest()
    if alg == "EdDSA":
        open(f"{folder}/.text", "wb").write(text)
        return openssl("pkeyutl", "-sign", "-rawin", "-inkey", path, "-in", f"{folder}/.text")
    raw = openssl("dgst", "-sha256", "-sign", path, *(["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:32"] if alg == "PS256" else []), given=text)
    if alg != "ES256": return raw
    at, out = 2 if raw[1] < 128 else 3, b""  # SEQUENCE of two INTEGERs
    for _ in range(2):
        size = raw[at + 1]
        out += raw[at + 2:at + 2 + size].lstrip(b"\0").rjust(32, b"\0")
        at += 2 + size
    return out

def sign(folder, kid, alg, claims, header="{}"):
    head = {"alg": alg if alg != "zero" else "ES256", "kid": kid, "typ": "JWT", **json.loads(header)}
    text = b64(json.dumps(head).encode()) + "." + b64(claims.encode())
    return text + "." + b64(signature(folder, kid, alg, text.encode()))

class Provider(http.server.BaseHTTPRequestHandler):
    folder = ""
    def log_message(self, *_): pass
    def tell(self, status, body):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def file(self, name): return open(f"{self.folder}/{name}", "rb").read()
    def has(self, name): return os.path.exists(f"{self.folder}/{name}")
    def changed(self, answer, name): return {**answer, **(json.loads(self.file(name)) if self.has(name) else {})}
    def do_GET(self):
        open(f"{self.folder}/gets", "a").write(self.path + "\n")
        if self.path in ("/v1/auth", "/v1/whoami") and self.has(self.path[4:] + ".json"): return self.tell(200, self.file(self.path[4:] + ".json"))
        if self.path == "/jwks": open(f"{self.folder}/count", "a").write("x\n")
        if self.has("away"): return self.tell(503, {})
        if self.path == "/.well-known/openid-configuration": return self.tell(200, self.file("discovery.json"))
        if self.path == "/jwks": return self.tell(200, self.file("jwks.json"))
        self.tell(404, {})
    def do_POST(self):
        form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()))
        if self.path == "/sign": return self.tell(200, sign(self.folder, **form).encode())
        open(f"{self.folder}/posts", "a").write(self.path + " " + json.dumps(form) + "\n")
        grant = form.get("grant_type", "")
        if self.path == "/device":
            return self.tell(200, self.changed({"device_code": "dc", "user_code": "ABCD-EFGH", "verification_uri": self.headers["Host"], "interval": 1, "expires_in": 600}, "device.json"))
        if self.path == "/revoke": return self.tell(200, {})
        if self.path != "/token": return self.tell(404, {})
        if grant.endswith("device_code"):
            if self.has("denied"): return self.tell(400, {"error": "access_denied"})
            if not self.has("approved"): return self.tell(400, {"error": "authorization_pending"})
            return self.tell(200, self.changed({"id_token": self.file("id_token").decode().strip(), "access_token": "opaque", "refresh_token": "r1", "expires_in": 3600}, "token.json"))
        if grant == "refresh_token" and form.get("refresh_token") == "r1" and self.has("id_token.next"):
            return self.tell(200, {"id_token": self.file("id_token.next").decode().strip(), "access_token": "opaque", "expires_in": 3600})
        self.tell(400, {"error": "invalid_grant"})

def serve(folder):
    Provider.folder = folder
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    issuer = f"http://127.0.0.1:{server.server_address[1]}"
    json.dump({"issuer": issuer, "jwks_uri": issuer + "/jwks", "token_endpoint": issuer + "/token", "device_authorization_endpoint": issuer + "/device",
               "revocation_endpoint": issuer + "/revoke"}, open(f"{folder}/discovery.json", "w"))
    open(f"{folder}/issuer.new", "w").write(issuer)
    os.rename(f"{folder}/issuer.new", f"{folder}/issuer")
    server.serve_forever()

if __name__ == "__main__":
    what, folder, *rest = sys.argv[1:]
    if what == "serve": serve(folder)
    elif what == "key": print(json.dumps(make_key(folder, *rest)))
    else: print(sign(folder, *rest))
