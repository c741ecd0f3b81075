#!/usr/bin/env python3
"""Host, workers and the Temporal server are killed at random while runs go on; then everything must have ended, each step once.

storm.py CAIRN [--kills N] [--runs N] [--steps N] [--seed N]

What is checked: test/crash/hosts.py."""
import os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crash"))
from hosts import Storm

storm = Storm("temporal", kills=300, runs=200, steps=20)
address = ""


def server(part):
    global address
    address = f"127.0.0.1:{storm.outside(part, 'temporal-server')}"


def worker(part): storm.spawn(part, "worker", "--temporal", address, "--concurrency", "8", "--name", part.name)


open(f"{storm.home}/cairn.toml", "w").write('[serve.temporal]\naddress = "127.0.0.1:1"\nheartbeatSeconds = 3\nhistoryEvents = 60\n')
storm.part("server", server)
storm.part("host", lambda part: storm.serve(part, "--temporal", address))
for name in ("w1", "w2"): storm.part(name, worker)
for part in storm.parts: part.start()
storm.plan(lambda i: "head -c 40000 /dev/zero | tr '\\0' x" if i % 5 == 4 else "echo ok")  # some go by digest
storm.rage(lambda: storm.rng.choices(storm.parts, [1, 3, 2, 2])[0], pause_s=1.0)
storm.finish(storm.calm())
