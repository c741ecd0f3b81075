#!/usr/bin/env python3
"""Checks every block of the documents that is no transcript (those are typed by tools/transcript).

docs_blocks.py CAIRN FILE.md...

A block says in its first line what it is:
  console        typed and compared by tools/transcript
  yaml, json     a whole document, a test, a record, a signal or an entry of the ledger: validated
  yaml in=WHERE  members of a plan (plan) or of a step (step), or items of `nodes` (nodes): put there, then validated
  sh             each line is run; of `make` the targets must exist
  sh in=WHERE    typed elsewhere, by a test that takes the lines from the document: in=package, tarball, image (test/package), postgres, conductor, temporal
  nginx, ts      taken from the document by nginx_test and clients_test
  c, python      compiled and run by library_test and python_test, which must name the file
  text           pictures, grammars and examples of data: counted, not checked. A line that begins as a command does is a mistake there
A block without a word is sh when it looks like it. Anything else is a mistake, so nothing is left out by accident.
"""
import json, os, re, shutil, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CAIRN = os.path.abspath(sys.argv[1])
PLAN = "planId: p\nplanVersion: '1'\n"
WHERE = {  # what is around a fragment, and how deep it is
    "plan": (PLAN + "steps:\n  - { stepId: a, kind: noop }\n", ""),
    "step": (PLAN + "steps:\n  - stepId: a\n    kind: shell\n    with: { command: 'true' }\n", "    "),
    "nodes": ("name: n\nnodes:\n  - id: seed\n    bash: 'true'\n", "  "),
}

# Who types the commands of a document that cannot be typed here: such a test must name the document.
ELSEWHERE = {"package": "test/package/deb_test", "tarball": "test/package/release_test", "image": "test/package/release_test",
             "postgres": "test/e2e/postgres_test.sh", "conductor": "test/e2e/conductor_test.sh", "temporal": "test/temporal/live_test.sh", "clients": "test/e2e/clients_test.sh"}
COMMAND = re.compile(r"^\$? ?(cairn|apt|apt-get|sudo|systemctl|podman|docker|tar|sha256sum|make|pip|pip3|npm|npx|node|python3|curl|wget|git|temporal|export|nginx)\b( [^:=|]|$)", re.M)


def run(words, cwd, **more):
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, **more)


def targets():
    # Not `make -n`: that runs every line with $(MAKE) in it.
    database = run(["make", "-qp", "no-such-target"], ROOT).stdout
    return set(re.findall(r"^([\w-]+):", database, re.M))


class Doc:
    def __init__(self, path):
        self.path, self.dir = path, tempfile.mkdtemp(prefix="cairn-docs.")
        self.environment = {**os.environ, "HOME": self.dir, "XDG_STATE_HOME": self.dir + "/state",
                            "PATH": self.dir + "/bin:" + os.environ["PATH"]}
        self.environment.pop("CAIRN_STORE", None)
        os.mkdir(self.dir + "/bin")
        os.symlink(CAIRN, self.dir + "/bin/cairn")
        shutil.copytree(ROOT + "/examples", self.dir + "/examples")
        for name in ("greet.c", "greet.yaml"):
            shutil.copy(ROOT + "/examples/plugin/" + name, self.dir)
        self.text = open(path, encoding="utf-8").read()
        for _, body in self.blocks():
            name = re.match(r"(?:#|//) ([\w.-]+\.\w+)\n", body)
            if name:
                open(os.path.join(self.dir, name.group(1)), "w", encoding="utf-8").write(body)

    def blocks(self):
        for m in re.finditer(r"^```(.*)\n((?:.*\n)*?)^```$", self.text, re.M):
            yield m.group(1).strip(), m.group(2)

    def validate(self, body, suffix, flags=("--strict",)):
        name = "block" + suffix
        open(os.path.join(self.dir, name), "w", encoding="utf-8").write(body)
        for script in re.findall(r"^ *script: ([\w-]+)$", body, re.M):  # named scripts lie in scripts/
            os.makedirs(self.dir + "/scripts", exist_ok=True)
            open(f"{self.dir}/scripts/{script}.py", "w").close()
        done = run([CAIRN, "validate", *flags, name], self.dir, env=self.environment)
        return None if done.returncode == 0 else done.stdout + done.stderr

    def check_yaml(self, body, where):
        if where:
            around, indent = WHERE[where]
            return self.validate(around + "".join(indent + line + "\n" if line else "\n" for line in body.splitlines()), ".yaml")
        if re.search(r"^document:", body, re.M):
            return self.validate(body, ".test.yaml")
        # Functions of a host are known to the host only.
        told = self.validate(body, ".yaml")
        if told and ("use:" in body or os.path.relpath(self.path, ROOT).startswith("clients/")):
            told = None if set(re.findall(r"error\[(E\d+)\]", told)) == {"E0206"} else told
        return told

    def check_json(self, body):
        value = json.loads(body)
        kind = value.get("eventType") or value.get("event_type")
        if kind:
            return self.fits(value, ["event", kind])
        if "signalType" in value:
            return self.fits(value["payload"], ["signal", value["signalType"]])
        if "moment" in value:
            return None if re.search(rf"^\| {value['moment']} \|", self.text, re.M) else "there is no such moment"
        if "how" in value:  # of a fork
            return None if set(value) <= {"audit", "how", "inputsChanged", "source", "steps"} else "another member"
        return self.validate(body, ".json")

    def fits(self, value, words):
        done = run([CAIRN, "schema", *words, "-o", "json"], self.dir, env=self.environment)
        if done.returncode:
            return done.stderr
        schema = json.loads(done.stdout)
        known = set(schema.get("properties", {}))
        missing = set(schema.get("required", [])) - set(value)
        return f"missing {missing}, unknown {set(value) - known}" if missing or set(value) - known else None

    def check_sh(self, body):
        run([CAIRN, "run", "examples/hello.json"], self.dir, env=self.environment)  # a @last
        for line in body.splitlines():
            line = line.split(" #")[0].strip()
            if not line:
                continue
            cwd = self.dir
            if line.startswith("make"):
                unknown = [word for word in line.split()[1:] if "=" not in word and word not in targets()]
                if unknown:
                    return f"make has no target {unknown[0]}"
                continue
            if line.startswith("cc app.c"):  # library_test links it
                continue
            elif "unittest discover -s tests" in line:  # python_test runs them, with a library that is built
                line, cwd = "test -f tests/__init__.py", os.path.dirname(self.path)
            elif line.startswith("tools/"):  # of the checkout
                cwd = ROOT
            line = line.replace("$(pkg-config --cflags cairn)", f"-I{ROOT}/include")
            done = run(["bash", "-c", line], cwd, env=self.environment)
            if done.returncode:
                return f"`{line}` ended with {done.returncode}: {done.stdout[-300:]}{done.stderr[-300:]}"
        return None

    def check_toml(self, body):
        """Settings: what the file says is in force, and nothing in it is unknown."""
        with open(os.path.join(self.dir, "cairn.toml"), "w") as out:
            out.write(body)
        done = run([CAIRN, "config", "list", "-o", "json"], self.dir, env=self.environment)
        os.remove(os.path.join(self.dir, "cairn.toml"))
        return f"cairn config list: {done.stderr[-300:]}" if done.returncode or done.stderr else None

    def names(self, test, what=None):
        """The test says in its text that it takes its commands or programs from this document."""
        named = (what or os.path.relpath(self.path, ROOT)) in open(os.path.join(ROOT, test)).read()
        return None if named else f"{test} does not run it"

    def check_program(self, body, test):
        name = re.match(r"(?:#|//) ([\w-]+\.\w+)\n", body)
        return self.names("test/e2e/" + test, name and name.group(1))

    def check(self, info, body):
        """None: fine."""
        language, _, where = info.partition(" in=")
        if language == "" and all(re.match(r"(make|cairn|cc)\b", line) for line in body.splitlines()):
            language = "sh"
        if language in ("yaml", "json") and where in ("", *WHERE):
            return self.check_yaml(body, where) if language == "yaml" else self.check_json(body)
        if language == "sh" and where:
            return self.names(ELSEWHERE[where]) if where in ELSEWHERE else f"where is {where}? see docs_blocks.py"
        if language == "sh":
            return self.check_sh(body)
        if language in ("nginx", "ts"):
            return self.names("test/e2e/" + ("nginx_test.sh" if language == "nginx" else "clients_test.sh"))
        if language == "toml":
            return self.check_toml(body)
        if language in ("c", "python"):
            client = os.path.relpath(self.path, ROOT).startswith("clients/")
            return self.check_program(body, "clients_test.sh" if client else "library_test.sh" if language == "c" else "python_test.sh")
        command = COMMAND.search(body) if info == "text" else None
        if command:
            return f"`{command.group(0).strip()}` is a command, and a block of text is not typed"
        return None if info in ("console", "text") else f"what is a block of \"{info}\"? see docs_blocks.py"

    def close(self):
        shutil.rmtree(self.dir, ignore_errors=True)


def main():
    passed = failed = 0
    for path in sys.argv[2:]:
        if "\n```" not in open(path, encoding="utf-8").read():
            continue
        doc, name = Doc(os.path.abspath(path)), re.sub(r"\W+", "_", os.path.relpath(path, ROOT))
        counts, wrong = {}, []
        for info, body in doc.blocks():
            try:
                told = doc.check(info, body)
            except ValueError as why:
                told = str(why)
            if told:
                wrong.append(f"{info} {body.strip().splitlines()[0][:60]}: {' '.join(told.split())[:300]}")
            counts[info.split()[0] if info else "sh"] = counts.get(info.split()[0] if info else "sh", 0) + 1
        doc.close()
        # Lines that Markdown shows as code because they are indented would be blocks that nobody looks at.
        outside = re.sub(r"^( *)```.*\n(?:.*\n)*?\1```$", "", doc.text, flags=re.M)
        indented = re.search(r"\n\n(?:    | {6})(?![-*\d] )(\S.*)", outside)
        if indented:
            wrong.append(f"an indented block, `{indented.group(1)[:40]}`: put it between fences")
        told = ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))
        print(f"not ok docs_blocks_{name}: {wrong[0]}" if wrong else f"ok docs_blocks_{name} ({told})")
        for line in wrong:
            print(f"{path}: {line}", file=sys.stderr)
        passed, failed = passed + (not wrong), failed + bool(wrong)
    print(f"# docs_blocks: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or passed == 0 else 0


sys.exit(main())
