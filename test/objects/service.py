#!/usr/bin/env python3
"""service.py CAIRN S3_PORT AZURE_PORT [MOTO_PORT]: plans that `cairn serve` fetches from these servers, which check signatures.

Right and wrong keys, objects that are not there. LIVE_KEY_ID, LIVE_SECRET and LIVE_ACCOUNT_KEY are the right ones; MOTO_KEY_ID and
MOTO_SECRET those of the third, which may encrypt with the customer's key."""
import base64, email.utils, hashlib, hmac, json, os, subprocess, sys, tempfile, time, urllib.error, urllib.request

cairn, s3, azure = sys.argv[1:4]
moto = sys.argv[4] if len(sys.argv) > 4 else None
plan = b'{"metadata":{"planId":"p","planVersion":"1","schemaVersion":"v1.2"},"steps":[{"stepId":"a","kind":"noop"}]}'
customer = base64.b64encode(b"c" * 32).decode()
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
failed = 0


def say(good, what):
    global failed
    failed += not good
    print(("ok " if good else "not ok ") + what)


def request(method, url, body=None, headers={}):
    try:
        with opener.open(urllib.request.Request(url, data=body, method=method, headers=headers)) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read()


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def put_s3(port, key_id, secret, path, body, more={}):
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    headers = dict({"host": f"127.0.0.1:{port}", "x-amz-date": stamp, "x-amz-content-sha256": hashlib.sha256(body).hexdigest()}, **more)
    names = ";".join(sorted(headers))
    canonical = "\n".join(["PUT", path, "", "".join(f"{n}:{headers[n]}\n" for n in sorted(headers)), names, headers["x-amz-content-sha256"]])
    scope = stamp[:8] + "/us-east-1/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = mac(mac(mac(mac(("AWS4" + secret).encode(), stamp[:8]), "us-east-1"), "s3"), "aws4_request")
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    headers["Authorization"] = f"AWS4-HMAC-SHA256 Credential={key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    return request("PUT", f"http://127.0.0.1:{port}{path}", body, dict(headers, **{"Content-Type": ""}))[0]


def put_azure(path, body):
    headers = {"x-ms-blob-type": "BlockBlob", "x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    own = "".join(f"{n}:{headers[n]}\n" for n in sorted(headers))
    text = f"PUT\n\n\n{len(body)}\n\napplication/json\n\n\n\n\n\n\n{own}/account{path}"
    signature = base64.b64encode(mac(base64.b64decode(os.environ["LIVE_ACCOUNT_KEY"]), text)).decode()
    return request("PUT", f"http://127.0.0.1:{azure}{path}", body,
                   dict(headers, **{"Content-Type": "application/json", "Authorization": "SharedKey account:" + signature}))[0]


class Service:
    def __init__(self, port, key_id, secret, account_key, more=""):
        self.place = tempfile.mkdtemp()
        environment = dict(os.environ, ID=key_id, SECRET=secret, ACCOUNT=account_key, CUSTOMER=customer)
        reach = f'endpoint = "http://127.0.0.1:{port}", allowPrivate = true, accessKeyId = {{ env = "ID" }}, secretAccessKey = {{ env = "SECRET" }}'
        with open(self.place + "/cairn.toml", "w") as out:
            out.write('[serve.fetch]\nallow = ["s3://plans/", "gs://plans/", "azure://account/container/"]\n'
                      f's3 = {{ {reach}{more} }}\ngs = {{ {reach}, region = "us-east-1" }}\n'
                      f'azure = {{ endpoint = "http://127.0.0.1:{azure}", allowPrivate = true, accounts = {{ account = {{ key = {{ env = "ACCOUNT" }} }} }} }}\n')
        self.err = open(self.place + "/err", "w+")
        self.process = subprocess.Popen([cairn, "serve", "--store", f"sqlite:{self.place}/s.db", "--listen", "127.0.0.1:0"],
                                        cwd=self.place, env=environment, stderr=self.err)
        lines = ""
        while "token of the first start" not in lines:
            if self.process.poll() is not None:
                sys.exit("not ok objects: the service ended: " + lines)
            time.sleep(0.05)
            lines = open(self.place + "/err").read()
        self.url = next(line.split()[-1] for line in lines.splitlines() if line.startswith("listening on "))
        self.token = open(next(line.split(" is in ")[1] for line in lines.splitlines() if "token of the first start" in line)).read().strip()
        self.runs = 0

    def start(self, uri):
        self.runs += 1
        ref = {"uri": uri, "sha256": hashlib.sha256(plan).hexdigest(), "schemaVersion": "v1.2", "planId": "p", "planVersion": "1"}
        status, body = request("POST", self.url + "/v1/runs", json.dumps({"planRef": ref, "runId": f"r{self.runs}"}).encode(),
                               {"Authorization": "Bearer " + self.token, "Content-Type": "application/json", "Prefer": "wait=30"})
        body = json.loads(body)
        return f"{status} {body.get('code') or body.get('status')}"

    def stop(self):
        self.process.terminate()
        self.process.wait()


def expect(service, uri, want, what):
    came = service.start(uri)
    say(came == want, f"{what}: {uri}" + ("" if came == want else f": {came}, not {want}"))


key_id, secret, account_key = (os.environ[name] for name in ("LIVE_KEY_ID", "LIVE_SECRET", "LIVE_ACCOUNT_KEY"))
say(put_s3(s3, key_id, secret, "/plans/plan.json", plan) == 200, "s3rver takes the plan")
say(put_azure("/account/container/plan.json", plan) == 201, "azurite takes the plan")
right = Service(s3, key_id, secret, account_key)
for uri in "s3://plans/plan.json", "gs://plans/plan.json", "azure://account/container/plan.json":
    expect(right, uri, "200 COMPLETED", "right keys")
    expect(right, uri.replace("plan.json", "nowhere.json"), "422 PLAN_NOT_FOUND", "no such object")
right.stop()
wrong = Service(s3, key_id, "hunter2", base64.b64encode(b"hunter2").decode())
expect(wrong, "azure://account/container/plan.json", "422 PLAN_ACCESS_DENIED", "wrong keys")  # s3rver takes any secret: moto does not
wrong.stop()
if moto:
    key_id, secret = os.environ["MOTO_KEY_ID"], os.environ["MOTO_SECRET"]
    say(put_s3(moto, key_id, secret, "/plans/plan.json", plan) == 200, "moto takes the plan")
    right = Service(moto, key_id, secret, account_key)
    expect(right, "s3://plans/plan.json", "200 COMPLETED", "right keys, moto")
    expect(right, "gs://plans/plan.json", "200 COMPLETED", "right keys, moto")
    expect(right, "s3://plans/nowhere.json", "422 PLAN_NOT_FOUND", "no such object, moto")
    right.stop()
    for name, fake_id, fake in ("wrong secret", key_id, "hunter2"), ("unknown id", "AKIAXXXXXXXXXXXXXXXX", secret):
        wrong = Service(moto, fake_id, fake, account_key)
        for uri in "s3://plans/plan.json", "gs://plans/plan.json":
            expect(wrong, uri, "422 PLAN_ACCESS_DENIED", name + ", moto")
        wrong.stop()
    keyed = Service(moto, key_id, secret, account_key, ', customerKey = { env = "CUSTOMER" }')
    expect(keyed, "s3://plans/plan.json", "200 COMPLETED", "the customer's key is signed with the rest, moto")
    keyed.stop()
sys.exit(failed > 0)
