#!/usr/bin/env python3
"""Hosts, the server of Cairn and the Conductor server are killed at random while runs go on; then everything must have ended, each step once.

storm.py CAIRN [--kills N] [--runs N] [--steps N] [--seed N]

What is checked: test/crash/hosts.py. And Conductor has no workflow of these runs open in the end. Nothing waits for progress between two deaths: an attempt whose
executors die one after the other rests ever longer (ADR 0027), so that it outlives a storm, and is not failed by it."""
import json, os, sys, time, urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crash"))
from hosts import Storm

storm = Storm("conductor", kills=100, runs=60, steps=10)
home = storm.home
token, api = "", ""


def conductor(part):
    global api
    api = f"http://127.0.0.1:{storm.outside(part, 'conductor-server')}/api"


def host(part): storm.spawn(part, "host", "conductor", "--server", f"unix:{home}/s.sock", "--conductor", api, "--pool", "conductor", "--site", "storm",
                            "--patience", "3s", "--silent", "4s", "--concurrency", "8", "--name", part.name, CAIRN_TOKEN=token)


storm.part("conductor", conductor)
storm.part("serve", lambda part: storm.serve(part, "--route", "*=conductor", "--lease", "3s"))
for part in storm.parts: part.start()
for _ in range(100):
    made = storm.tell("token", "new", "host", "--role", "Host", "--pool", "conductor")
    if made.returncode == 0: break
    time.sleep(0.1)
token = made.stdout.split()[-1] if made.returncode == 0 else sys.exit("no token: " + made.stderr)
for name in ("h1", "h2"):
    storm.part(name, host)
    storm.parts[-1].start()
storm.plan()
# Starting a Conductor takes most of a minute, so it is killed now and then; what else dies is drawn.
storm.rage(lambda: storm.parts[0] if storm.kills % 25 == 12 else storm.rng.choice(storm.parts[1:]), pause_s=1.5)
faults = storm.calm()


def still_open():
    """Workflows of these runs that have not ended in Conductor."""
    return sum(len(json.load(urllib.request.urlopen(f"{api}/workflow/running/{name}"))) for name in ("cairn_run", "cairn_attempt"))


deadline = time.time() + 120
while time.time() < deadline and still_open(): time.sleep(1)
if still_open(): faults.append(f"{still_open()} workflows are open in Conductor")
storm.finish(faults)
