#!/usr/bin/env python3
"""A person with a browser: opens the address, signs in as NAME, agrees to everything. browser.py ADDRESS NAME"""
import html.parser, http.cookiejar, sys, urllib.parse, urllib.request

class Forms(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.action, self.fields, self.text = None, {}, ""
    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        if tag == "form" and self.action is None: self.action = a.get("action", "")
        if tag == "input" and a.get("name") and a.get("name") not in ("abort",): self.fields[a["name"]] = a.get("value") or ""
    def handle_data(self, data): self.text += data

address, name = sys.argv[1:]
browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
answer = browser.open(address)
for step in range(12):
    page, body = Forms(), answer.read().decode()
    page.feed(body)
    print(f"--- {answer.url}: {' '.join(page.text.split())[:200]} {page.fields}")
    if page.action is None: break
    fields = {**page.fields}
    if "login" in fields: fields["login"] = name
    if "password" in fields: fields["password"] = "x"
    where = urllib.parse.urljoin(answer.url, page.action or answer.url)
    answer = browser.open(where, data=urllib.parse.urlencode(fields).encode())
