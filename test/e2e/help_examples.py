#!/usr/bin/env python3
"""Runs every example that `cairn help COMMAND` (and so the man page) shows, as a reader would who has the files and runs
that the examples speak of.

help_examples.py CAIRN EXAMPLES_DIR [COMMAND...]

The examples are read from the man page that the binary prints. Each line runs in bash, in a fresh copy of one directory
and one store, and must end with 0 unless EXITS says otherwise. STAGE brings a command's world into the state that its
examples assume (a run that waits for an approval, one that is held, ...); a command that is not named there gets the
world as it is. So the examples of a new command are run too.
"""
import os, re, shutil, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
CAIRN, EXAMPLES, ONLY = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
SECONDS = 20

# What examples end with that do not end with 0.
EXITS = {
    "cairn diff nightly-1 nightly-2": 20,
    "cairn diff @last-failed @last --steps": 20,
    "cairn diff 3f2a@12 3f2a": 20,
    "cairn diff 3f2a 77c1 --timing -o json": 20,
    "cairn log replay @last --plan changed.yaml": 20,
    "cairn login --server https://cairn.example.org": 7,  # there is no such server
    "cairn equiv release.yaml --on embedded,server,temporal=127.0.0.1:7233": 7,  # no Temporal server is there
    "cairn ui --server https://cairn.example.org": 4,
    "cairn whoami --server https://cairn.example.org": 4,  # and nobody signed in there
    "cairn retry @last-failed": 13,  # up to the approval
    "cairn reject @last/deploy --reason 'not on Friday'": 10,
}

# The server of the examples is empty, and knows none of these.
for _missing in ("token revoke 0ahg5k2m", "token rotate 0ahg5k2m --out ci-new.token", "alert ack 7d1f0c52",
                 "outbox rewind bus --set position=120 --reason 'the consumer lost a day'",
                 "dlq redrive --all bus --reason 'the consumer takes them again'",
                 "dlq drop bus.00000000000000000120 --reason 'a test event'"):
    EXITS["cairn " + _missing] = 5
EXITS['cairn definition approve nightly "$sha"'] = 4  # who brought it does not approve it

FILES = {
    # Two steps need a second try; `load` fails while there is a file named broken.
    "release.yaml": """name: release
inputs:
  env: staging
  rows: 7
nodes:
  - id: build
    retry: { max_attempts: 2, delay_ms: 1 }
    bash: |
      echo "building for $INPUTS.env" >&2
      [ "$CAIRN_ATTEMPT" -ge 2 ] || exit 1
      echo "{\\"status\\": \\"ok\\", \\"key\\": \\"$CAIRN_IDEMPOTENCY_KEY\\"}"
  - id: load
    depends_on: [build]
    retry: { max_attempts: 2, delay_ms: 1 }
    bash: '[ "$CAIRN_ATTEMPT" -ge 2 ] && [ ! -e broken ] && echo "$INPUTS.rows # $CAIRN_IDEMPOTENCY_KEY"'
  - id: poll
    depends_on: [load]
    loop_group:
      max_iterations: 3
      until_bash: test "$fetch.output" -ge 2
      nodes:
        - id: fetch
          bash: echo "$CAIRN_STEP_ID" | tr -dc 0-9
  - id: deploy
    depends_on: [poll]
    approval: { message: "Deploy to $INPUTS.env?" }
  - id: report
    depends_on: [deploy]
    bash: echo "$load.output rows"
""",
    "nightly.yaml": """name: nightly
inputs:
  day: monday
  nap: 0
nodes:
  - id: load
    bash: sleep $INPUTS.nap; echo "rows of $INPUTS.day"
  - id: report
    depends_on: [load]
    bash: echo "$load.output are in"
""",
    "flow.yaml": """name: flow
nodes:
  - id: extract
    bash: echo 7
  - id: load
    depends_on: [extract]
    bash: echo "loaded $extract.output"
""",
    "import.yaml": "name: import\ninputs:\n  env: staging\nnodes:\n" + "".join(
        f"  - id: {step}\n    bash: {command}\n" + (f"    depends_on: [{after}]\n" if after else "") for step, after, command in [
            ("count", "", "echo '{\"rows\":7}'"), ("load", "count", "echo $count.output.rows"), ("check", "load", "echo fine"),
            ("sort", "check", "echo sorted"), ("index", "sort", "echo indexed"), ("report", "index", "echo done")]),
    # Goes on as soon as there is a file named go (and does not outlive its directory).
    "slow.yaml": """name: slow
nodes:
  - id: load
    bash: echo up; touch started; until [ -e go ] || [ ! -e slow.yaml ]; do sleep 0.02; done
  - id: report
    depends_on: [load]
    bash: echo done
""",
    "held.json": """{"planId": "held", "planVersion": "1", "schemaVersion": "v1.2", "onStepFailure": "hold", "steps": [
 {"stepId": "load", "kind": "shell", "with": {"command": "test ! -e broken"}},
 {"stepId": "report", "kind": "echo", "with": {"message": "done"}, "dependsOn": ["load"]}]}
""",
    "plan.json": """{"planId": "plan", "planVersion": "1", "schemaVersion": "v1.2", "steps": [
 {"stepId": "a", "kind": "echo", "with": {"message": "hello"}}]}
""",
    "build.json": """{"planId": "build", "planVersion": "1", "schemaVersion": "v1.2", "steps": [
 {"stepId": "build", "kind": "shell", "with": {"command": "echo app > $ARTIFACTS_DIR/app.tar"},
  "artifacts": [{"path": "app.tar", "kind": "archive"}]},
 {"stepId": "report", "kind": "shell", "with": {"command": "echo fine > $ARTIFACTS_DIR/report.txt"},
  "artifacts": [{"path": "report.txt", "kind": "report"}], "dependsOn": ["build"]}]}
""",
    "release.test.yaml": """document: nightly.yaml
mocks:
  load: { output: rows of monday, idempotent: true }
  report: { output: all in, idempotent: true }
expect: { status: COMPLETED }
""",
    "flows/load.yaml": """name: load
nodes:
  - id: load
    retry: { max_attempts: 3, delay_ms: 1 }
    bash: echo 7
""",
    "flows/load.test.yaml": """document: load.yaml
cases:
  - name: fails twice
    mocks: { "load#1": { exit: 1 }, "load#2": { exit: 1 }, "load#3": { output: 7 } }
    expect: { status: COMPLETED, attempts: { load: 3 } }
""",
}

FILES["changed.yaml"] = FILES["release.yaml"].replace("[deploy]\n", "[deploy]\n    when: \"$INPUTS.env == 'prod'\"\n")
FILES["fixed.yaml"] = FILES["release.yaml"].replace(" && [ ! -e broken ]", "")

# The runs that examples name, oldest first. @last is a whole release, @last-failed one whose load failed.
BEGIN = """
cairn key new --out cairn
echo 'sum  file' >SHA256SUMS
cairn key sign SHA256SUMS --sign cairn.key
cairn run nightly.yaml --run-id nightly-1
cairn run nightly.yaml --run-id nightly-2 --set day=tuesday
cairn run nightly.yaml --run-id nightly-2026-02-11
cairn run flow.yaml --run-id a-run
cairn run flow.yaml --run-id b-run
cairn run nightly.yaml --run-id 91bc0000-1111-4222-8333-444455556666
cairn run nightly.yaml --run-id 77c10000-1111-4222-8333-444455556666 --set nap=0.2
cairn run release.yaml --run-id 3f2a0000-1111-4222-8333-444455556666 --approve-all
touch broken; ! cairn run release.yaml --run-id release-4; rm broken
cairn run release.yaml --run-id release-5 --approve-all
cairn log export @last --sign cairn.key --out release.cairn
cp release.cairn run.cairn
cairn store backup sqlite:./cairn.db
cairn run slow.yaml --run-id nightly-2026-02-11 --store files:./runs & pid=$!
until [ -e started ]; do sleep 0.02; done; kill -9 $pid; rm started
"""

WAITING = "cairn run release.yaml --run-id release-6 --exit-on-wait; [ $? = 13 ]"
HELD = "touch broken; cairn run held.json --run-id held-1 --exit-on-wait; rm broken"
RUNNING = "(cairn run slow.yaml --run-id slow-1 >/dev/null 2>&1 &); until [ -e started ]; do sleep 0.02; done"
# It goes on once the example is there beside it, or once it is paused.
GOES_ON = RUNNING + '; (until [ "$(pgrep -s 0 -xc cairn)" -ge 2 ]; do sleep 0.02; done; touch go) &'
PAUSED = RUNNING + "; (until cairn get slow-1 | grep -q PAUSED; do sleep 0.02; done; touch go) &"
# The example is ended once it has taken SIGTERM (15) into its own hands. The shell may have become the example.
ENDED = """(while :; do for p in $$ $(pgrep -P $$ -x cairn); do
    grep -qx cairn /proc/$p/comm && grep -qE '^Sig(Cgt|Blk):.*[4567c-f][0-9a-f]{3}$' /proc/$p/status && kill -TERM $p && exit
done; sleep 0.02; done) 2>/dev/null &"""
SERVED = """(cairn serve --listen unix:$PWD/s.sock --store sqlite:$PWD/served.db >served 2>&1 &)
until grep -q 'token of the first start' served; do sleep 0.02; done
export CAIRN_SERVER=unix:$PWD/s.sock CAIRN_TOKEN=$(cat served.db.token)
cairn queue set nightly --set maxRunning=1; """
SCHEDULED = SERVED + """cairn schedule add nightly nightly.yaml --cron @daily; """
DEFINED = SERVED + """cairn definition put nightly nightly.yaml; sha=$(cairn definition ls nightly -o name); """
STAGE = {
    **{name: SERVED for name in (
        "token ls", "token new", "token revoke", "token rotate", "queue ls", "queue get", "queue set", "queue pause", "queue resume", "queue rm",
        "limits get", "limits set", "limit ls", "limit set", "worker ls", "outbox ls", "outbox rewind", "dlq ls", "dlq redrive", "dlq drop", "alert ls", "alert ack",
        "definition put", "bulk", "event send", "event ls")},
    **{name: SERVED for name in ("schedule ls", "schedule add")},
    **{name: SERVED + "cairn limit set payments --set concurrency=2; " for name in ("limit get", "limit rm")},
    **{name: SCHEDULED for name in ("schedule get", "schedule next", "schedule ticks", "schedule pause", "schedule resume",
                                    "schedule rm", "schedule trigger", "schedule backfill")},
    **{name: DEFINED for name in ("definition ls", "definition get", "definition run", "definition approve")},
    "new": "rm nightly.yaml",
    "test record": "rm release.test.yaml",
    "recover": RUNNING.replace("&)", "& echo $! >pid)") + "; kill -9 $(cat pid); touch go",
    "ps": RUNNING,
    "inbox": WAITING,
    "watch": GOES_ON,
    "wait": GOES_ON,
    "cairn logs -f": GOES_ON,
    "cairn events -f": GOES_ON,
    "top": RUNNING,
    "artifacts ls": "cairn run build.json",
    "artifacts cat": "cairn run build.json",
    "artifacts get": "cairn run build.json",
    "pause": PAUSED,
    "resume": PAUSED + " cairn pause @last; wait",
    "cancel": RUNNING,
    "retry": HELD,
    "rerun": "cairn run import.yaml",
    "fork": "cairn run import.yaml",
    "skip": HELD,
    "approve": WAITING,
    "reject": WAITING,
    "cairn signal @last EMERGENCY_STOP": RUNNING,
    "cairn signal @last RETRY_STEP": HELD,
    "store restore": "cairn store backup $MNT/cairn.db; rm cairn.db*",
    "store copy": "rm -r runs",
    "context use": "mkdir -p .git; cairn context add prod --store sqlite:x.db; cairn context add staging --store sqlite:x.db --local",
    "context rm": "cairn context add prod --store sqlite:x.db",
    "context test": "cairn run build.json --store sqlite:$PWD/x.db; cairn context add prod --store sqlite:$PWD/x.db",
    "worker": "echo cairn_w_x >worker.token; " + ENDED,
    "serve": ENDED,
    "host conductor": "echo cairn_h_x >host.token; " + ENDED,
    "ui": ENDED,
    "config list": "cairn config set tenant acme --profile prod",
    "config unset": "cairn config set store files:./runs --local",
}

# On a terminal of their own: what must be seen, and the key that leaves then.
ON_TERMINAL = {"top": ("slow", "q"), "watch": None}

# Programs that examples call and that are not everywhere: they check what they are given.
PROGRAMS = {
    "dot": 'read -r first; [[ $first = digraph* ]] && cat',
    "ssh": 'shift; HOME=$MNT/other XDG_STATE_HOME= exec "$@"',
    "man": 'read -r first; [[ $first = .Dd* ]] && cat',
}


def examples():
    page = subprocess.run([CAIRN, "man"], capture_output=True, text=True, check=True).stdout
    for section in re.split(r"^\.Ss cairn ", page, flags=re.M)[1:]:
        name = section.split("\n", 1)[0]
        block = re.search(r"^Examples:\n\.Bd.*?\n(.*?)^\.Ed", section, re.S | re.M)
        yield name, block.group(1).replace("\\e", "\\").replace("\\&", "").splitlines() if block else []


class World:
    def __init__(self):
        memory = os.access("/dev/shm", os.W_OK)  # 150 worlds with their syncs: nothing here is about the disk
        self.top = tempfile.mkdtemp(prefix="cairn-help.", dir="/dev/shm" if memory else None)
        self.dir, self.kept = os.path.join(self.top, "world"), os.path.join(self.top, "kept")
        self.work = os.path.join(self.dir, "work")
        os.makedirs(os.path.join(self.work, "flows"))
        os.makedirs(os.path.join(self.dir, "bin"))
        os.makedirs(os.path.join(self.dir, "mnt", "other"))
        os.symlink(CAIRN, os.path.join(self.dir, "bin", "cairn"))
        for name, body in PROGRAMS.items():
            if name == "ssh" or not shutil.which(name):
                path = os.path.join(self.dir, "bin", name)
                with open(path, "w") as f:
                    f.write("#!/bin/bash\n" + body + "\n")
                os.chmod(path, 0o755)
        shutil.copytree(EXAMPLES, os.path.join(self.work, "examples"))
        for name, body in FILES.items():
            with open(os.path.join(self.work, name), "w") as f:
                f.write(body)
        self.environment = {
            "HOME": os.path.join(self.dir, "home"), "PATH": os.path.join(self.dir, "bin") + ":" + os.environ["PATH"],
            "LANG": "C.UTF-8", "TERM": "xterm", "EDITOR": "true", "MANPAGER": "cat", "MNT": os.path.join(self.dir, "mnt"),
            "CAIRN_BENCH_DIR": self.top}
        os.makedirs(self.environment["HOME"])
        done = self.bash("set -e" + BEGIN)
        if done.returncode != 0:
            self.close()
            raise SystemExit(f"not ok help_examples_world: exit {done.returncode}: {done.stdout[-600:]}")
        os.rename(self.dir, self.kept)

    def fresh(self):
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.copytree(self.kept, self.dir, symlinks=True)

    def bash(self, text, terminal=None):
        words = ["bash", "-c", text]
        if terminal is not None:
            words = [sys.executable, os.path.join(HERE, "terminal.py")] + terminal + ["--"] + words
        with open(os.path.join(self.top, "out"), "w+b") as out:
            # Of its own group: most of what the example leaves behind ends with it.
            child = subprocess.Popen(words, cwd=self.work, env=self.environment, stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=subprocess.STDOUT, start_new_session=True)
            try:
                child.wait(SECONDS)
                code = child.returncode
            except subprocess.TimeoutExpired:
                code = 124
            self.end(child)
            out.seek(0)
            return subprocess.CompletedProcess(words, code, out.read().decode("utf-8", "replace"))

    def end(self, child):
        try:
            os.killpg(child.pid, 9)
        except ProcessLookupError:
            pass
        child.wait()
        # What had a terminal was of another group; it is told of the end, and would write into the next world before it goes.
        while left := self.left():
            for pid in left:
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)

    def left(self):
        """Processes that live in this world, by their home."""
        home, found = f"HOME={self.environment['HOME']}".encode(), []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    if home in f.read().split(b"\0"):
                        found.append(int(pid))
            except OSError:
                pass
        return found

    def close(self):
        shutil.rmtree(self.top, ignore_errors=True)


def stage(name, line):
    for key, text in STAGE.items():
        if key == name or (key.startswith("cairn ") and line.startswith(key)):
            return text
    return ":"


def play(world, name, line):
    """None, or what went wrong."""
    world.fresh()
    line, terminal = line.replace("/mnt/backup", "$MNT"), None
    if name in ON_TERMINAL:
        keys = ON_TERMINAL[name]
        terminal = ["--size", "24x100"] + (["--when", keys[0], keys[1]] if keys else [])
    # A line for another shell: what bash can check is the part before it.
    if line.endswith("| source"):
        line = line[:-len("| source")] + "| grep -q complete"
    done = world.bash("{\n%s\n} >stage.log 2>&1 </dev/null\n%s" % (stage(name, line), line), terminal)
    want = EXITS.get(line, 7 if "postgres://" in line else 0)  # nobody answers at db.example, and the command says so
    if done.returncode == want or (name == "doctor" and done.returncode == 1):  # this machine may well have a problem
        return None
    with open(os.path.join(world.work, "stage.log"), errors="replace") as f:
        staged = f.read()
    print(f"--- {line}   (exit {done.returncode})\n{done.stdout[-1500:]}\n(before it: {staged[-800:]})", file=sys.stderr)
    words = " ".join(done.stdout.split())
    return f"`{line}` ended with {done.returncode}, not {want}: {words[:200]}"


def main():
    world = World()
    passed = failed = 0
    try:
        for name, lines in examples():
            if ONLY and name not in ONLY:
                continue
            wrong = [w for w in (play(world, name, line) for line in lines) if w] if lines else ["it has no examples"]
            label = "help_examples_of_" + name.replace(" ", "_")
            print(f"not ok {label}: {wrong[0]}" if wrong else f"ok {label}", flush=True)
            passed, failed = passed + (not wrong), failed + bool(wrong)
    finally:
        world.close()
    print(f"# help_examples: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or passed == 0 else 0


sys.exit(main())
