#!/usr/bin/env python3
"""Holds the interface of a service against that of a released version: compatible.py RELEASED NOW

Both are /openapi.json. What a client of the released version sends must be taken, and what it reads must be there: no operation, parameter or member is
gone, nothing more is required of requests, a request takes every value that it took, and an answer has no type that it had not. Members may be added.
Values of an enumeration may be added to answers: clients pass over what they do not know. Prints each break, and ends with 1 when there is one.
compatible.py --keep NOW FILE writes NOW as the interface of a release, without what is for readers.
"""
import json, sys


def resolved(document, schema, seen=()):
    """A schema with its $ref followed; one that leads back to itself is taken for anything."""
    while isinstance(schema, dict) and "$ref" in schema:
        if schema["$ref"] in seen:
            return {}, seen
        seen = (*seen, schema["$ref"])
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return (schema if isinstance(schema, dict) else {}), seen


def types(schema):
    kind = schema.get("type")
    found = set(kind if isinstance(kind, list) else [kind] if kind else ["any"])
    return found | {"integer"} if "number" in found else found


def compare(before, now, old, new, sent, place, breaks, seen_old=(), seen_new=()):
    """sent: a client writes it (a request); otherwise a client reads it."""
    old, seen_old = resolved(before, old, seen_old)
    new, seen_new = resolved(now, new, seen_new)
    if not old or not new:
        return
    had, has = types(old), types(new)
    narrower, wider = (has, had) if sent else (had, has)
    if "any" not in narrower and not wider <= narrower:
        breaks.append(f"{place}: was {'/'.join(sorted(had))}, is {'/'.join(sorted(has))}")
    if sent and "enum" in new and ("enum" not in old or not set(map(json.dumps, old["enum"])) <= set(map(json.dumps, new["enum"]))):
        breaks.append(f"{place}: values are not taken any more")
    must, may = (new, old) if sent else (old, new)
    for name in sorted(set(must.get("required", [])) - set(may.get("required", []))):
        breaks.append(f"{place}.{name}: is required now" if sent else f"{place}.{name}: may be missing now")
    for name, schema in old.get("properties", {}).items():
        if name not in new.get("properties", {}):
            if not sent or new.get("additionalProperties") is False:
                breaks.append(f"{place}.{name}: is gone")
        else:
            compare(before, now, schema, new["properties"][name], sent, f"{place}.{name}", breaks, seen_old, seen_new)
    if isinstance(old.get("items"), dict) and isinstance(new.get("items"), dict):
        compare(before, now, old["items"], new["items"], sent, place + "[]", breaks, seen_old, seen_new)
    for word in ("oneOf", "anyOf"):
        for number, schema in enumerate(old.get(word, [])):
            if number < len(new.get(word, [])):
                compare(before, now, schema, new[word][number], sent, f"{place}({number})", breaks, seen_old, seen_new)
            elif sent:
                breaks.append(f"{place}: a form of it is gone")


def bodies(what):
    return {kind: one.get("schema", {}) for kind, one in what.get("content", {}).items()}


def holds(before, now):
    breaks = []
    for path, operations in before["paths"].items():
        for method, old in operations.items():
            new, place = now["paths"].get(path, {}).get(method), f"{method.upper()} {path}"
            if not new:
                breaks.append(f"{place}: is gone")
                continue
            if new.get("operationId") != old.get("operationId"):
                breaks.append(f"{place}: is called {new.get('operationId')}, was {old.get('operationId')}")
            had, has = ({(p["in"], p["name"]): p for p in one.get("parameters", [])} for one in (old, new))
            for key in had:
                if key not in has:
                    breaks.append(f"{place}: parameter {key[1]} is gone")
            for key, one in has.items():
                if one.get("required") and not had.get(key, {}).get("required"):
                    breaks.append(f"{place}: parameter {key[1]} is required now")
            if new.get("requestBody", {}).get("required") and not old.get("requestBody", {}).get("required"):
                breaks.append(f"{place}: a body is required now")
            for kind, schema in bodies(old.get("requestBody", {})).items():
                if kind not in bodies(new.get("requestBody", {})):
                    breaks.append(f"{place}: {kind} is not taken any more")
                else:
                    compare(before, now, schema, bodies(new["requestBody"])[kind], True, place, breaks)
            for status, answer in old.get("responses", {}).items():
                for kind, schema in bodies(answer).items():
                    if kind not in bodies(new.get("responses", {}).get(status, {})):
                        breaks.append(f"{place}: {status} has no {kind} any more")
                    else:
                        compare(before, now, schema, bodies(new["responses"][status])[kind], False, f"{place} {status}", breaks)
    return breaks


def for_programs(value):
    if isinstance(value, dict):
        return {name: for_programs(one) if name != "properties" else {n: for_programs(o) for n, o in one.items()} for name, one in value.items()
                if not (name in ("description", "summary") and isinstance(one, str)) and name not in ("examples", "example")}
    return [for_programs(one) for one in value] if isinstance(value, list) else value


def main():
    if sys.argv[1] == "--keep":
        with open(sys.argv[2]) as read, open(sys.argv[3], "w") as out:
            json.dump(for_programs(json.load(read)), out, separators=(",", ":"), sort_keys=True)
            out.write("\n")
        return 0
    with open(sys.argv[1]) as one, open(sys.argv[2]) as other:
        breaks = holds(json.load(one), json.load(other))
    for line in sorted(set(breaks)):
        print(line)
    return 1 if breaks else 0


if __name__ == "__main__":
    sys.exit(main())
