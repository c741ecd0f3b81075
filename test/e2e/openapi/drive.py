#!/usr/bin/env python3
"""Holds a service against its own description: every route of /openapi.json is asked with requests made from the schemas
(right, with members missing, of other types, too long, unknown) and every answer is held against what is described.

    drive.py URL TOKEN RUN STEP      prints what does not fit; ends with 1 when there is something
"""
import http.client
import json
import re
import sys
import urllib.parse

LEAVE = ("engine:drain", ":shutdown")  # they end the service


class Checker:
    def __init__(self, document):
        self.document = document

    def resolve(self, schema):
        while isinstance(schema, dict) and "$ref" in schema:
            node = self.document
            for part in schema["$ref"][2:].split("/"):
                node = node[part]
            schema = node
        return schema

    def is_type(self, value, name):
        return {
            "object": isinstance(value, dict),
            "array": isinstance(value, list),
            "string": isinstance(value, str),
            "boolean": isinstance(value, bool),
            "null": value is None,
            "integer": isinstance(value, int) and not isinstance(value, bool),
            "number": isinstance(value, (int, float)) and not isinstance(value, bool),
        }[name]

    def check(self, value, schema, at=""):
        schema = self.resolve(schema)
        if schema is True or schema == {}:
            return []
        if schema is False:
            return [at + ": nothing may be here"]
        types = schema.get("type")
        if types is not None:
            types = types if isinstance(types, list) else [types]
            if not any(self.is_type(value, t) for t in types):
                return [f"{at}: {value!r:.60} is not {types}"]
        faults = []
        if "enum" in schema and value not in schema["enum"]:
            faults.append(f"{at}: {value!r:.60} is none of {schema['enum']}")
        if "const" in schema and value != schema["const"]:
            faults.append(f"{at}: {value!r:.60} is not {schema['const']!r}")
        for part in schema.get("allOf", []):
            faults += self.check(value, part, at)
        for word in ("anyOf", "oneOf"):
            if word in schema and all(self.check(value, part, at) for part in schema[word]):
                faults.append(f"{at}: fits none of {word}")
        if isinstance(value, str):
            faults += self.check_text(value, schema, at)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            if value < schema.get("minimum", value) or value > schema.get("maximum", value):
                faults.append(f"{at}: {value} is out of range")
        elif isinstance(value, list):
            for i, item in enumerate(value):
                faults += self.check(item, schema.get("items", True), f"{at}/{i}")
        elif isinstance(value, dict):
            faults += self.check_object(value, schema, at)
        return faults

    def check_text(self, value, schema, at):
        faults = []
        if len(value) < schema.get("minLength", 0) or len(value) > schema.get("maxLength", len(value)):
            faults.append(f"{at}: a text of {len(value)} characters")
        if "pattern" in schema and not re.search(schema["pattern"], value):
            faults.append(f"{at}: {value!r:.60} does not match {schema['pattern']}")
        if schema.get("format") == "date-time" and not re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", value):
            faults.append(f"{at}: {value!r:.60} is no time")
        return faults

    def check_object(self, value, schema, at):
        known = schema.get("properties", {})
        faults = [f"{at}: {name} is missing" for name in schema.get("required", []) if name not in value]
        for name, member in value.items():
            if name in known:
                faults += self.check(member, known[name], f"{at}/{name}")
            elif schema.get("additionalProperties", True) is not True:
                faults += self.check(member, schema["additionalProperties"], f"{at}/{name}")
        return faults

    # ---- making values

    def example(self, schema, full):
        schema = self.resolve(schema)
        if schema is True or not isinstance(schema, dict):
            return "x"
        for word in ("anyOf", "oneOf", "allOf"):
            if word in schema and "type" not in schema:
                return self.example(schema[word][0], full)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type", "string")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind == "object":
            wanted = schema.get("properties", {}) if full else {}
            wanted = {**wanted, **{n: schema.get("properties", {}).get(n, True) for n in schema.get("required", [])}}
            return {name: self.example(member, full) for name, member in wanted.items()}
        if kind == "array":
            return [self.example(schema.get("items", True), full)] if full or schema.get("minItems") else []
        if kind == "string":
            if schema.get("format") == "date-time":
                return "2030-01-01T00:00:00Z"
            if schema.get("format") == "uuid":
                return "11111111-1111-4111-8111-111111111111"
            if "64" in schema.get("pattern", ""):
                return "0" * 64
            return "x" * max(1, schema.get("minLength", 1))
        return {"integer": max(1, schema.get("minimum", 1)), "number": 1, "boolean": True, "null": None}[kind]

    def spoiled(self, schema):
        """(what, body) that do not fit."""
        schema = self.resolve(schema)
        good = self.example(schema, False)
        if schema.get("additionalProperties") is False:
            yield "an unknown member", {**good, "notKnownHere": 1}
        for name in schema.get("required", []):
            yield f"without {name}", {k: v for k, v in good.items() if k != name}
        for name, member in schema.get("properties", {}).items():
            member = self.resolve(member)
            for other in ({"a": {}}, [[]], 1.5, True, "x"):
                if self.check(other, member):
                    yield f"{name} of another type", {**good, name: other}
                    break
            limit = member.get("maxLength") if isinstance(member, dict) else None
            if limit and limit < 100000:
                yield f"{name} too long", {**good, name: "x" * (limit + 1)}
        yield "a list", [good]
        yield "a text", "x"


def structure(document, checker):
    faults = []
    if not document.get("openapi", "").startswith("3.1."):
        faults.append("it is not OpenAPI 3.1")
    for name in ("info", "paths", "components"):
        if not isinstance(document.get(name), dict):
            faults.append(f"{name} is missing")
    if not all(document.get("info", {}).get(n) for n in ("title", "version")):
        faults.append("info needs title and version")
    for path, item in document["paths"].items():
        names = set(re.findall(r"\{(\w+)\}", path))
        for method, operation in item.items():
            where = f"{method} {path}"
            if method not in ("get", "put", "post", "delete", "patch", "head", "options"):
                faults.append(f"{where}: no such method")
            said = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            if said != names:
                faults.append(f"{where}: the path has {sorted(names)}, described are {sorted(said)}")
            if any(p["in"] == "path" and p.get("required") is not True for p in operation.get("parameters", [])):
                faults.append(f"{where}: parameters of the path are required")
            if not operation.get("responses") or any(not r.get("description") for r in operation["responses"].values()):
                faults.append(f"{where}: answers need descriptions")
    text = json.dumps(document)
    for ref in set(re.findall(r'"\$ref": "([^"]+)"', text)):
        try:
            checker.resolve({"$ref": ref})
        except (KeyError, TypeError):
            faults.append(f"{ref} is nowhere")
    return faults


class Driver:
    def __init__(self, url, token, run, step):
        parts = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
        self.token = token
        self.names = {"run": run, "step": step, "n": "1", "sha256": "0" * 64}
        self.faults = []
        self.count = 0
        self.document = json.loads(self.ask("GET", "/openapi.json")[2])
        self.checker = Checker(self.document)
        self.faults += structure(self.document, self.checker)

    def ask(self, method, path, body=None):
        headers = {"Authorization": "Bearer " + self.token}
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(body)
        self.count += 1
        self.connection.request(method, path, body, headers)
        answer = self.connection.getresponse()
        return answer.status, answer.getheader("Content-Type", ""), answer.read()

    def hold(self, where, operation, path, method, body=None, refused=False):
        status, kind, raw = self.ask(method, path, body)
        where = f"{where}: {status}"
        if status >= 500:
            self.faults.append(f"{where} {raw[:200]!r}")
            return
        if refused and status < 400:
            self.faults.append(f"{where}, but it should be refused")
        described = operation["responses"].get("default")
        if status < 400:
            described = operation["responses"].get(str(status))
            if described is None:
                self.faults.append(f"{where} is not described")
        content = (described or {}).get("content", {})
        if status >= 400 and not kind.startswith("application/problem+json"):
            self.faults.append(f"{where}: a problem of type {kind}")
        elif status not in (204, 304) and kind.split(";")[0] in content:
            schema = content[kind.split(";")[0]]["schema"]
            value = json.loads(raw) if "json" in kind else raw.decode()
            self.faults += [f"{where}{fault}" for fault in self.checker.check(value, schema)]
        elif content and status not in (204, 304):
            self.faults.append(f"{where}: answered {kind}, described is {list(content)}")

    def paths(self, path):
        """The path with things that are there, that are not, and that cannot be."""
        names = re.findall(r"\{(\w+)\}", path)
        choices = [self.names, {}] + ([{"": "%C3%A9 x".replace(" ", "%20")}, {"": "x" * 300}] if names else [])
        for choice in choices if names else [self.names]:
            made = path
            for name in names:
                made = made.replace("{" + name + "}", choice.get(name, choice.get("", "none-" + name)))
            yield made

    def drive(self, path, method, operation):
        where = f"{method.upper()} {path}"
        schema = (operation.get("requestBody") or {}).get("content", {}).get("application/json", {}).get("schema")
        for made in self.paths(path):
            bodies = [None] if schema is None else [self.checker.example(schema, False), self.checker.example(schema, True)]
            for body in bodies:
                self.hold(f"{where} ({made[:80]})", operation, made, method.upper(), body)
        there = next(self.paths(path))
        for parameter in operation.get("parameters", []):
            if parameter["in"] != "query":
                continue
            for value in ("1", "x", "-1", "%00", "%zz", "99999999999999999999", "y" * 5000):
                name = parameter["name"]
                body = None if schema is None else self.checker.example(schema, False)
                self.hold(f"{where} with {name}={value[:20]}", operation, f"{there}?{name}={value}", method.upper(), body)
        if schema is not None and "/worker/" not in path:
            for what, body in self.checker.spoiled(schema):
                self.hold(f"{where} with {what}", operation, there, method.upper(), body, refused=True)

    def all(self):
        # What takes away comes last, so that the rest has something to look at.
        order = sorted((m == "delete", p, m) for p, item in self.document["paths"].items() for m in item)
        for _, path, method in order:
            if not any(word in path for word in LEAVE):
                self.drive(path, method, self.document["paths"][path][method])


def main():
    driver = Driver(*sys.argv[1:5])
    driver.all()
    for fault in driver.faults:
        print(fault)
    print(f"# {driver.count} requests, {len(driver.faults)} faults", file=sys.stderr)
    return 1 if driver.faults else 0


if __name__ == "__main__":
    sys.exit(main())
