"""strangers.py URL TOKEN PID: callers without a token: what they may cost (A4, B3), and what time tells them about what they may not see."""
import json, statistics, sys, time

import kit

door, checks = kit.Door(*sys.argv[1:4]), kit.Checks()
before = door.rss()
for path in ("/v1/worker/complete", "/v1/runs", "/v1/worker/logs"):
    for size, want in ((60 << 10, (401,)), (3 << 20, (413,))):
        found, _ = door.send(door.head("POST", path, ["Connection: close", "Content-Type: application/json"], body=b"x" * size, token=False))
        checks.that(found and found[0] in want, path, size, "answers", found)
checks.that(door.rss() - before < 32, "strangers cost", door.rss() - before, "MiB")
audit = len(json.loads(door.ask("GET", "/v1/audit?limit=500")[2])["items"])
secret = door.token.rsplit("_", 1)[1]
answers = {}
for i in range(300):
    wrong = door.token[:-1] + ("0" if door.token[-1] != "0" else "1") if i % 2 else "cairn_" + "0123456789abcdef" + "_" + secret
    status, headers, text = door.ask("GET", "/v1/runs", token=wrong)
    problem = json.loads(text)
    answers.setdefault(status, set()).add((problem["code"], problem["detail"], "retry-after" in headers))
checks.that(set(answers) == {401, 429} and all(len(a) == 1 for a in answers.values()), "guesses answer", answers)
checks.that(door.ask("GET", "/v1/whoami")[0] == 200, "a good token suffers with the bad ones")
checks.that(door.ask("GET", "/v1/runs", token="")[0] == 401, "no token answers otherwise")
checks.that(secret not in json.dumps(json.loads(door.ask("GET", "/v1/audit?limit=500")[2])), "a secret in the audit")


def times(runs, token, count=150):
    """Medians, taken in turn: whatever else the machine does slows all of them."""
    all_times = {run: [] for run in runs}
    for _ in range(count):
        for run in runs:
            began = time.perf_counter()
            door.ask("GET", f"/v1/runs/{run}", token=token)
            all_times[run].append(time.perf_counter() - began)
    return [statistics.median(all_times[run]) for run in runs]


door.ask("POST", "/v1/runs", {"document": kit.plan(), "runId": "hidden"}, {"Prefer": "wait=10"}.items())
other = json.loads(door.ask("POST", "/v1/tokens", {"roles": ["Admin"], "tenantId": "rival"})[2])["token"]
foreign, absent = times(["hidden", "absent"], other)
checks.that(0.5 < foreign / absent < 2, "a foreign run takes", foreign, "an absent one", absent)
checks.end(10)
