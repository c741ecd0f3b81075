#!/usr/bin/env python3
"""A schedule of every second while its servers are killed.

usage: storm.py CAIRN --kills N              one server on SQLite, killed N times at random moments
       storm.py CAIRN --kills N --store URL  two servers on one Postgres, one of them killed each time

At the end each second from the first time to the last has exactly one run, every run of the schedule ended well, and the ticks that are kept
are of these runs. A time is lost when its second has no run; it is doubled when its step ran under two runs.
"""
import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from datetime import datetime, timedelta

PLAN = {"metadata": {"planId": "tick", "planVersion": "1", "schemaVersion": "v1.2"}, "inputs": {"at": ""}, "steps": [{"stepId": "a", "kind": "noop"}]}


class Server:
    def __init__(self, cairn, store, place, name):
        self.words = [cairn, "serve", "--store", store, "--listen", "127.0.0.1:0", "--token-file", f"{place}/token"]
        self.place = f"{place}/{name}"
        os.makedirs(self.place, exist_ok=True)
        open(f"{self.place}/cairn.toml", "w").write("[serve]\nengineLeaseSeconds = 2\n")

    def begin(self):
        self.log = open(f"{self.place}/log", "w")
        self.process = subprocess.Popen(self.words, stderr=self.log, stdout=subprocess.DEVNULL, cwd=self.place)
        until = time.time() + 60
        while time.time() < until:
            found = re.search(r"^listening on (\S+)", open(f"{self.place}/log").read(), re.M)
            if found:
                self.url = found.group(1)
                return
            if self.process.poll() is not None:
                sys.exit(f"storm: the server ended: {open(f'{self.place}/log').read()[-500:]}")
            time.sleep(0.02)
        sys.exit("storm: the server does not listen")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def ask(server, token, method, path, body=None):
    request = urllib.request.Request(server.url + path, method=method, data=None if body is None else json.dumps(body).encode(),
                                     headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read() or b"null")


def patiently(do, what):
    until, last = time.time() + 60, ""
    while time.time() < until:
        try:
            return do()
        except Exception as problem:  # a server that was just started refuses for a moment
            last = problem
            time.sleep(0.2)
    sys.exit(f"storm: {what}: {last}")


def all_runs(server, token):
    runs, cursor = [], ""
    while True:
        page = patiently(lambda: ask(server, token, "GET", f"/v1/runs?limit=500{cursor}"), "list")
        runs += page["items"]
        if not page["nextCursor"]:
            return runs
        cursor = "&cursor=" + urllib.parse.quote(page["nextCursor"])


def main():
    flags = argparse.ArgumentParser()
    flags.add_argument("cairn")
    flags.add_argument("--kills", type=int, default=500)
    flags.add_argument("--store", default="")
    flags.add_argument("--seed", type=int, default=int(time.time()))
    given = flags.parse_args()
    chance = random.Random(given.seed)
    place = tempfile.mkdtemp(prefix="cairn-storm-")
    store = given.store + (("&" if "?" in given.store else "?") + f"files={place}/files" if given.store else "") or f"sqlite:{place}/store.db"
    servers = [Server(os.path.abspath(given.cairn), store, place, name) for name in (("one", "two") if given.store else ("one",))]
    for server in servers:
        server.begin()
    patiently(lambda: open(f"{place}/token").read(), "token")
    token = open(f"{place}/token").read().strip()
    patiently(lambda: ask(servers[0], token, "PUT", "/v1/schedules/s",
                          {"document": PLAN, "schedule": {"cron": "* * * * * *", "overlap": "allow", "inputs": {"at": "${schedule.time}"}}}), "put")
    for number in range(given.kills):
        time.sleep(chance.random() * 1.5)
        victim = chance.choice(servers)
        victim.kill()
        if len(servers) > 1 and chance.random() < 0.5:
            time.sleep(chance.random() * 3)  # long enough to be taken for dead, or not
        victim.begin()
        if number % 50 == 49:
            print(f"{number + 1} kills", flush=True)
    patiently(lambda: ask(servers[0], token, "POST", "/v1/schedules/s/pause", {}), "pause")
    time.sleep(8)  # what was missed is made up for, and others have read the pause
    faults = []
    runs = {r["runId"]: r for r in all_runs(servers[0], token)}
    times = sorted(datetime.strptime(r.split(":")[1], "%Y%m%dT%H%M%SZ") for r in runs)
    moment = times[0]
    while moment <= times[-1]:
        if times.count(moment) != 1:
            faults.append(f"{moment}: {times.count(moment)} runs")
        moment += timedelta(seconds=1)
    unfinished = [r for r in runs if runs[r]["status"] != "COMPLETED"]
    faults += [f"{r}: {runs[r]['status']}" for r in unfinished]
    ticks = patiently(lambda: ask(servers[0], token, "GET", "/v1/schedules/s/ticks?limit=1000"), "ticks")["items"]
    started = [t["runId"] for t in ticks if t["outcome"] == "STARTED"]
    faults += [f"a tick without its run: {r}" for r in started if r not in runs]
    faults += [f"not started: {t}" for t in ticks if t["outcome"] not in ("STARTED",) and t.get("reasonCode") != "PAUSED"]
    for server in servers:
        server.kill()
    print("\n".join(faults[:30]))
    print(f"{given.kills} kills (seed {given.seed}), {len(servers)} server(s): {len(times)} seconds, {len(runs)} runs, {len(started)} ticks kept, {len(faults)} faults")
    subprocess.run(["rm", "-rf", place] if not faults else ["echo", f"kept in {place}"])
    sys.exit(bool(faults))


main()
