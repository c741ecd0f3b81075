#!/usr/bin/env python3
"""Writes what the clients know of the HTTP interface from its own description: python3 generate.py OPENAPI.json [--check]

OPENAPI.json is what a service answers at /openapi.json. Written are python/cairn_client/_api.py and typescript/src/api.ts: the answers as types, and a
method for each operation. With --check nothing is written, and the exit code is 1 where a file is not what would be written.
"""
import json, keyword, pathlib, re, sys

HERE = pathlib.Path(__file__).resolve().parent
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "object": "Dict[str, Any]"}

HEAD = '''"""The operations and the answers of the HTTP interface, made by clients/generate.py from its own description. Do not edit."""
from __future__ import annotations

from typing import Any, Dict, List, Literal, Mapping, Optional, TypedDict, Union

'''


def name_of(ref):
    return ref.rsplit("/", 1)[1]


def kind_of(schema):
    """The type, or the types where one of several is meant and each is nothing but that."""
    ways = schema.get("oneOf", [])
    plain = ways and all(set(way) <= {"type", "minLength", "maxLength"} for way in ways)
    return [way["type"] for way in ways] if plain else schema.get("type")


def type_of(schema):
    """What Python calls the values of a schema."""
    if not isinstance(schema, dict):
        return "Any"
    if "$ref" in schema:
        return f'"{name_of(schema["$ref"])}"'
    if "enum" in schema and all(isinstance(value, str) for value in schema["enum"]):
        return "Literal[" + ", ".join(json.dumps(value) for value in schema["enum"]) + "]"
    kind = kind_of(schema)
    if isinstance(kind, list):
        parts = sorted({SCALARS.get(one, "List[Any]" if one == "array" else "Any") for one in kind})
        return f"Union[{', '.join(parts)}]" if len(parts) > 1 else parts[0]
    if kind == "array":
        return f"List[{type_of(schema.get('items'))}]"
    return SCALARS.get(kind, "Any")


def is_record(schema):
    return isinstance(schema, dict) and schema.get("type") == "object" and schema.get("properties") and "oneOf" not in schema


def snake(text):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()


def argument(name):
    word = snake(re.sub(r"[^A-Za-z0-9]+", "_", name))
    return word + "_" if keyword.iskeyword(word) else word


def record(name, schema):
    """One answer or body, as functional TypedDicts: members need not be names of Python. Those that must be there come first."""
    wanted = set(schema.get("required", []))
    rows = [(key, type_of(value)) for key, value in schema["properties"].items()]

    def block(title, rows, total):
        lines = "".join(f"    {json.dumps(key)}: {kind},\n" for key, kind in rows)
        return f"{title} = TypedDict({json.dumps(title)}, {{\n{lines}}}, total={total})\n"

    must, may = [row for row in rows if row[0] in wanted], [row for row in rows if row[0] not in wanted]
    if must and may:
        text = block(f"_{name}", must, True)
        lines = "".join(f"    {key}: {kind}\n" for key, kind in may)
        if all(key.isidentifier() and not keyword.iskeyword(key) for key, _ in may):
            return text + f"\n\nclass {name}(_{name}, total=False):\n{lines}"
    return block(name, rows, not may)


def method(path, verb, operation):
    parameters = operation.get("parameters", [])
    places = [p for p in parameters if p["in"] == "path"]
    queries = [p for p in parameters if p["in"] == "query"]
    headers = [p for p in parameters if p["in"] == "header"]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    raw = operation.get("requestBody") and not body
    answers = [answer.get("content", {}).get("application/json", {}).get("schema") for code, answer in operation["responses"].items() if code < "3"]
    returns = next((type_of(schema) for schema in answers if schema), "bytes")
    head = [f"{argument(p['name'])}: str" for p in places]
    if body:
        head.append(f"body: {type_of(body['schema'])}")
    if raw:
        head.append("content: bytes")
    rest = [f"{argument(p['name'])}: Optional[Union[str, int, bool]] = None" for p in queries + headers]
    signature = ", ".join(["self", *head, *(["*", *rest] if rest else [])])

    def pairs(of):
        return "{" + ", ".join(f"{json.dumps(p['name'])}: {argument(p['name'])}" for p in of) + "}"

    call = [json.dumps(verb.upper()), json.dumps(path), pairs(places)]
    if queries:
        call.append("query=" + pairs(queries))
    if headers:
        call.append("headers=" + pairs(headers))
    if body:
        call.append("body=body")
    if raw:
        call.append("content=content")
    summary = operation.get("summary", "").rstrip(".")
    doc = f'        """{summary}."""\n' if summary else ""
    return (f"    def {snake(operation['operationId'])}({signature}) -> {returns}:\n{doc}"
            f"        return self._operation({', '.join(call)})\n")


def generated(described):
    schemas, text = described["components"]["schemas"], HEAD
    for name, schema in schemas.items():
        text += "\n" + record(name, schema) if is_record(schema) else f"\n{name} = {type_of(schema)}\n"
    text += '''

class Operations:
    """One method for each operation; what they have in common is `_operation` of the client."""

    def _operation(self, method: str, path: str, places: Mapping[str, str], *, query: Optional[Mapping[str, Any]] = None,
                   headers: Optional[Mapping[str, Any]] = None, body: Any = None, content: Optional[bytes] = None) -> Any:
        raise NotImplementedError
'''
    for path, operations in described["paths"].items():
        for verb in ("get", "put", "post", "delete", "patch"):
            if verb in operations:
                text += "\n" + method(path, verb, operations[verb])
    return text


# ---- TypeScript

TS_SCALARS = {"string": "string", "integer": "Integer", "number": "number", "boolean": "boolean", "null": "null", "object": "Record<string, unknown>"}
TS_HEAD = """// The operations and the answers of the HTTP interface, made by clients/generate.py from its own description. Do not edit.

/** A whole number; beyond 2^53 a bigint, so that no digit is lost. */
export type Integer = number | bigint;
"""


def ts_type(schema):
    if not isinstance(schema, dict):
        return "unknown"
    if "$ref" in schema:
        return name_of(schema["$ref"])
    if "enum" in schema and all(isinstance(value, str) for value in schema["enum"]):
        return " | ".join(json.dumps(value) for value in schema["enum"])
    kind = kind_of(schema)
    if isinstance(kind, list):
        return " | ".join(sorted({TS_SCALARS.get(one, "unknown[]" if one == "array" else "unknown") for one in kind}))
    if kind == "array":
        return f"Array<{ts_type(schema.get('items'))}>"
    return TS_SCALARS.get(kind, "unknown")


def ts_members(pairs):
    return "".join(f"    {json.dumps(key) if not key.isidentifier() else key}{'' if must else '?'}: {kind};\n" for key, kind, must in pairs)


def ts_record(name, schema):
    wanted = set(schema.get("required", []))
    return f"\nexport interface {name} {{\n" + ts_members((key, ts_type(value), key in wanted) for key, value in schema["properties"].items()) + "}\n"


def ts_method(path, verb, operation):
    parameters = operation.get("parameters", [])
    places = [p["name"] for p in parameters if p["in"] == "path"]
    options = [p for p in parameters if p["in"] != "path"]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    answers = [answer.get("content", {}).get("application/json", {}).get("schema") for code, answer in operation["responses"].items() if code < "3"]
    returns = next((ts_type(schema) for schema in answers if schema), "Uint8Array | null")
    head = [f"{name}: string" for name in places]
    if body:
        head.append(f"body: {ts_type(body['schema'])}")
    elif operation.get("requestBody"):
        head.append("content: Uint8Array")
    if options:
        members = "; ".join(f"{json.dumps(p['name']) if not p['name'].isidentifier() else p['name']}?: string | number | boolean" for p in options)
        head.append(f"options: {{ {members} }} = {{}}")
    call = [json.dumps(verb.upper()), json.dumps(path), "{ " + ", ".join(places) + " }" if places else "{}"]
    more = []
    for where in ("query", "header"):
        names = [p["name"] for p in options if p["in"] == where]
        if names:
            more.append(f"{'query' if where == 'query' else 'headers'}: pick(options, {json.dumps(names)})")
    if body:
        more.append("body")
    elif operation.get("requestBody"):
        more.append("content")
    if more:
        call.append("{ " + ", ".join(more) + " }")
    summary = operation.get("summary", "").rstrip(".")
    return f"\n    /** {summary}. */\n    {operation['operationId']}({', '.join(head)}): Promise<{returns}> {{\n        return this.operation({', '.join(call)});\n    }}\n"


def typescript(described):
    text = TS_HEAD
    for name, schema in described["components"]["schemas"].items():
        text += ts_record(name, schema) if is_record(schema) else f"\nexport type {name} = {ts_type(schema)};\n"
    text += """
export interface Request {
    query?: Record<string, unknown>;
    headers?: Record<string, unknown>;
    body?: unknown;
    content?: Uint8Array;
}

function pick(options: Record<string, unknown>, names: string[]): Record<string, unknown> {
    return Object.fromEntries(names.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]));
}

/** One method for each operation; what they have in common is `operation` of the client. */
export abstract class Operations {
    protected abstract operation<T>(method: string, path: string, places: Record<string, string>, request?: Request): Promise<T>;
"""
    for path, operations in described["paths"].items():
        for verb in ("get", "put", "post", "delete", "patch"):
            if verb in operations:
                text += ts_method(path, verb, operations[verb])
    return text + "}\n"


def main():
    words = [word for word in sys.argv[1:] if word != "--check"]
    if len(words) != 1:
        sys.exit(__doc__)
    described = json.loads(pathlib.Path(words[0]).read_text(encoding="utf-8"))
    for place, text in (("python/cairn_client/_api.py", generated(described)), ("typescript/src/api.ts", typescript(described))):
        target = HERE / place
        if "--check" not in sys.argv[1:]:
            target.write_text(text, encoding="utf-8")
        elif target.read_text(encoding="utf-8") != text:
            sys.exit(f"clients/{place} is not what the description says: python3 clients/generate.py OPENAPI.json")


main()
