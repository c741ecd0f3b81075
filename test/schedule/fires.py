#!/usr/bin/env python3
"""fires.py TICKS RUNS: whether each second from the first tick to the last was decided once, and each STARTED one has its one run."""
import json
import re
import sys
from datetime import datetime, timedelta

ticks = [t for t in json.load(open(sys.argv[1])) if t["kind"] == "fire"]
runs = [r["runId"] for r in json.load(open(sys.argv[2]))]
faults = []
at = lambda text: datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")
decided = {}
for tick in ticks:
    moment, last = at(tick["time"]), at(tick.get("until", tick["time"]))
    while moment <= last:
        decided.setdefault(moment, []).append(tick)
        moment += timedelta(seconds=1)
moment = min(decided)
while moment <= max(decided):
    if len(decided.get(moment, [])) != 1:
        faults.append(f"{moment}: {len(decided.get(moment, []))} ticks")
    moment += timedelta(seconds=1)
started = [t["runId"] for t in ticks if t["outcome"] == "STARTED"]
fired = [r for r in runs if re.fullmatch(r"[\w.-]+:\d{8}T\d{6}Z", r)]
kept = {t["time"] for t in ticks}
if len(started) != len(set(started)):
    faults.append("a run is in two ticks")
if len(runs) != len(set(runs)):
    faults.append("a run is there twice")
plain = lambda time: re.sub(r"[-:]|\.\d+", "", time)
oldest, newest = (plain(end(t["time"] for t in ticks)) if ticks else "" for end in (min, max))
missing = set(started) - set(fired)
beside = {r for r in set(fired) - set(started) if oldest <= r.split(":")[1] <= newest} # ticks were read before runs: later ones may have come
faults += [f"no run: {r}" for r in sorted(missing)] + [f"no tick: {r}" for r in sorted(beside)]
print("\n".join(faults[:20]) or f"{len(ticks)} ticks, {len(fired)} runs")
sys.exit(bool(faults))
