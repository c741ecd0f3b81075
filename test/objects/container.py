#!/usr/bin/env python3
"""container.py PORT ACCOUNT KEY NAME makes a container in a blob server of this machine."""
import base64, email.utils, hashlib, hmac, sys, urllib.request

port, account, key, name = sys.argv[1:]
headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
text = "PUT" + "\n" * 12 + "".join(f"{k}:{v}\n" for k, v in sorted(headers.items())) + f"/{account}/{account}/{name}\nrestype:container"
mac = base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()
request = urllib.request.Request(f"http://127.0.0.1:{port}/{account}/{name}?restype=container", method="PUT",
                                 headers=dict(headers, Authorization=f"SharedKey {account}:{mac}"))
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request)
