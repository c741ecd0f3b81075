"""A bundle whose author wants more than to be read: forge.py FROM TO RUN DIRECTORY. The runs of FROM under the name RUN, and the directory of its
artifacts is DIRECTORY; keys, chains and sums are made to fit, as everybody can who knows the format."""
import hashlib, json, sys, tarfile

source, target, run, directory = sys.argv[1:5]
archive = tarfile.open(source)
members = [(m.name, archive.extractfile(m).read()) for m in archive.getmembers() if not m.name.startswith("SHA256SUMS")]
head_form = open(source, "rb").read(512)


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def place(value, before):
    if isinstance(value, dict):
        return {k: directory if k == "artifactsDir" else place(v, before) for k, v in value.items()}
    if isinstance(value, list):
        return [place(v, before) for v in value]
    return value.replace("file://" + before, "file://" + directory) if isinstance(value, str) else value


def events(text):
    previous, lines, before = "0" * 64, [], None
    for line in text.splitlines():
        event = json.loads(line)
        before = before or event["payload"]["artifactsDir"]
        event = place(event, before)
        event.update(runId=run, prevHash=previous)
        facts = (run, event.get("stepId") or "RUN", str(event["logicalAttemptId"]), event["eventType"], event["planVersion"])
        event["idempotencyKey"] = hashlib.sha256("|".join(facts).encode()).hexdigest()
        lines.append(canonical(event))
        previous = hashlib.sha256(lines[-1]).hexdigest()
    return b"\n".join(lines) + b"\n", previous


text, last = events(dict(members)["runs/1/events.jsonl"])
heads = canonical({**json.loads(dict(members)["runs.jsonl"]), "runId": run, "head": last}) + b"\n"
members = [(n, text if n == "runs/1/events.jsonl" else heads if n == "runs.jsonl" else b) for n, b in members]
sums = "".join(f"{hashlib.sha256(b).hexdigest()}  {n}\n" for n, b in members).encode()
with open(target, "wb") as out:
    for name, data in [("SHA256SUMS", sums)] + members:
        form = bytearray(head_form)
        form[0:100] = name.encode().ljust(100, b"\0")
        form[124:136] = b"%011o\0" % len(data)
        form[148:156] = b" " * 8
        form[148:156] = b"%06o\0 " % sum(form)
        out.write(bytes(form) + data + b"\0" * (-len(data) % 512))
    out.write(b"\0" * 1024)
