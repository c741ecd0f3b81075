"""schemas/authorization.json as a table for docs/format/authorization.md.

table.py FILE.md            compares what stands between the marks with the data, as a test
table.py --update FILE.md   writes it there
"""
import json, os, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
ROLES = ["none", "operator", "engineer", "admin", "system", "worker", "host", "auditor", "platform"]


def load():
    return json.load(open(os.path.join(ROOT, "schemas/authorization.json")))


def cell(conditions):
    if conditions is None:
        return "–"
    return ", ".join(c.replace("_", " ") for c in conditions) or "yes"


def matrix(data):
    yield "| operation | scope | " + " | ".join(ROLES) + " |"
    yield "|---|---|" + "---|" * len(ROLES)
    for row in data["operations"]:
        yield f"| `{row['name']}` | {row['scope']} | " + " | ".join(cell(row["roles"].get(r)) for r in ROLES) + " |"


def meanings(words, what):
    yield f"| {what} | meaning |"
    yield "|---|---|"
    for name, meaning in words.items():
        yield f"| {name.replace('_', ' ')} | {meaning} |"


def blocks(data):
    return {"matrix": "\n".join(matrix(data)), "conditions": "\n".join(meanings(data["conditions"], "condition")),
            "scopes": "\n".join(meanings(data["scopes"], "scope"))}


def filled(text, data):
    for name, block in blocks(data).items():
        start, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
        before, found, rest = text.partition(start)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise SystemExit(f"no marks for {name}")
        text = before + start + block + end + after
    return text


if __name__ == "__main__":
    path = sys.argv[-1]
    old = open(path).read()
    new = filled(old, load())
    if "--update" in sys.argv:
        open(path, "w").write(new)
    elif new != old:
        raise SystemExit(f"{path} does not say what the table says: test/e2e/matrix/table.py --update {path}")
