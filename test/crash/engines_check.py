#!/usr/bin/env python3
"""test/crash/engines_check.py RECORDS

The checker of engines_storm.py. It knows nothing of Cairn but the shape of its tables, and works from what was kept outside of it:

  history.jsonl   every call of a client that was answered, and what it was told
  effects         a line for each execution of a step
  delivered       ids of what came to the webhook, as it came
  events, signals, heads      the log as psql shows it in the end
  writes, head_moves, shard_moves     the witness: who wrote each event, and every move of a head and of a shard (pgcluster.py)

Each fault is (kind, what). No fault: nothing acknowledged is lost or changed, no effect is doubled, no run is stuck, epochs only rise, one
epoch has one owner, and whoever wrote an event owned its run, under the epoch that was the last one then.
"""
import hashlib, json, os, sys

from storming import check_run, check_starts, read_effects

QUERIES = {
    "heads": "select r.run_id,h.run_no,h.terminal,h.epoch,h.last_seq,h.status from run_heads h join runs r using(run_no) order by h.run_no",
    "events": "select r.run_id||' '||e.record_prefix||e.payload||e.record_suffix from runs r join workflow_events e using(run_no) order by r.run_no,e.sequence",
    "signals": "select r.run_id||' '||l.signal_id||' '||l.after_seq||' '||l.bytes from ledger l join runs r using(run_no) where l.signal_id is not null order by l.run_no,l.ledger_seq",
    "writes": "select run_no,sequence,writer,owner,epoch,holder from witness.writes order by id",
    "head_moves": "select run_no,epoch,owner,last_seq,terminal from witness.head_moves order by id",
    "shard_moves": "select shard,epoch,owner from witness.shard_moves order by id",
}


def keep_records(cluster, directory):
    for name, sql in QUERIES.items():
        with open(os.path.join(directory, name), "w") as out:
            out.writelines(line + "\n" for line in cluster.ask_while_shot(sql))


def digest(event):
    return hashlib.sha256(json.dumps(event, sort_keys=True).encode()).hexdigest()


class Records:
    def __init__(self, directory):
        path = lambda name: os.path.join(directory, name)
        rows = lambda name: [line.rstrip("\n").split("|") for line in open(path(name))]
        numbers = lambda name: [tuple(int(x == "t") if x in "tf" else int(x) for x in row) for row in rows(name)]
        self.history = [json.loads(line) for line in open(path("history.jsonl"))]
        self.effects = read_effects(path("effects"))
        self.heads = {row[0]: dict(no=int(row[1]), terminal=row[2] == "t", epoch=int(row[3]), last=int(row[4]), status=row[5]) for row in rows("heads")}
        self.texts, self.events = {run: [] for run in self.heads}, {run: [] for run in self.heads}
        for line in open(path("events")):
            run, text = line.rstrip("\n").split(" ", 1)
            self.texts.setdefault(run, []).append(text)
            self.events.setdefault(run, []).append(json.loads(text))
        self.delivered = [(run, int(number)) for run, number in (line.strip().rsplit(":", 1) for line in open(path("delivered")))]
        self.signals = {}
        for line in open(path("signals")):
            run, signal, after, _ = line.split(" ", 3)
            self.signals.setdefault(run, {})[signal] = int(after)
        self.writes, self.head_moves, self.shard_moves = numbers("writes"), numbers("head_moves"), numbers("shard_moves")


# ---- what clients were told
def check_history(records):
    starts = [(h["request"], "ok" if h["ok"] else f"refused {h['why']}", h["run"]) for h in records.history if h["call"] == "start"]
    yield from check_starts(starts, records.heads)
    for told in records.history:
        run = told.get("run")
        events = records.events.get(run, [])
        if told["call"] == "signal":
            if told["decision"] == "ACCEPTED" and told["signal"] not in records.signals.get(run, {}):
                yield "lost", f"{run}: a signal was acknowledged and lost: {told['signal']}"
            elif told.get("caused", 0) > len(events):
                yield "lost", f"{run}: event {told['caused']} was acknowledged with a signal and lost"
        elif told["call"] == "events":
            if len(events) < len(told["seen"]):
                yield "lost", f"{run}: {len(told['seen'])} events were shown to a client, {len(events)} are there"
            elif [digest(e) for e in events[: len(told["seen"])]] != told["seen"]:
                yield "changed", f"{run}: events are not those that were shown to a client"
        elif told["call"] == "refused":
            yield "refused", f"{run}: {told['why']}"
        elif told["call"] == "state" and told["last"] > len(events):
            yield "lost", f"{run}: a client was told of event {told['last']}, {len(events)} are there"


# ---- the log by itself
def check_log(records):
    effects = dict(records.effects)
    for run, head in records.heads.items():
        events = records.events.get(run, [])
        for kind, what in check_run(events, effects.pop(run, [])):
            yield kind, f"{run}: {what}"
        if head["last"] != len(events):
            yield "gap", f"{run}: the head counts {head['last']} events, {len(events)} are there"
        if not head["terminal"]:
            yield "stuck", f"{run}: {head['status']}"
        before = "0" * 64
        for text, event in zip(records.texts[run], events):
            if event["prevHash"] != before:
                yield "changed", f"{run}: the chain breaks at {event['runSeq']}"
            before = hashlib.sha256(text.encode()).hexdigest()
        keys = [e["idempotencyKey"] for e in events]
        if len(set(keys)) != len(keys):
            yield "doubled-effect", f"{run}: one key, two events"
    if effects:
        yield "lost", f"effects of runs that are not stored: {sorted(effects)[:3]}"


# ---- what the witness saw
def check_epochs(name, moves, what):
    """Epochs only rise, and one has one owner until it gives it back."""
    last, owners = {}, {}
    for key, epoch, owner in moves:
        if epoch < last.get(key, 0):
            yield "epoch-back", f"{what} {name.get(key, key)}: epoch {epoch} after {last[key]}"
        last[key] = max(epoch, last.get(key, 0))
        if owner and owners.setdefault((key, epoch), owner) != owner:
            yield "epoch-shared", f"{what} {name.get(key, key)}: epoch {epoch} is of engine {owners[(key, epoch)]} and of {owner}"


def check_witness(records):
    name = {head["no"]: run for run, head in records.heads.items()}
    yield from check_epochs(name, [move[:3] for move in records.head_moves], "run")
    yield from check_epochs({}, records.shard_moves, "shard")
    ended = {}
    for run, _epoch, _owner, last, terminal in records.head_moves:
        if ended.get(run, last) != last:
            yield "end", f"{name.get(run, run)}: went on after its end, to {last}"
        if terminal:
            ended.setdefault(run, last)
    epochs, written = {}, {}
    for run, sequence, writer, owner, epoch, holder in records.writes:
        if writer != owner:
            yield "foreign-write", f"{name.get(run, run)}: event {sequence} was written by engine {writer}, the run was of {owner}"
        if holder and sequence == 1 and writer != holder:
            yield "foreign-write", f"{name.get(run, run)}: was begun by engine {writer} in a shard of {holder}"
        if epoch < epochs.get(run, 0):
            yield "epoch-back", f"{name.get(run, run)}: event {sequence} under epoch {epoch}, one before it under {epochs[run]}"
        epochs[run] = max(epoch, epochs.get(run, 0))
        written[run] = written.get(run, 0) + 1
    for run, head in records.heads.items():
        if written.get(head["no"], 0) != len(records.events.get(run, [])):
            yield "lost", f"{run}: {written.get(head['no'], 0)} events were committed, {len(records.events.get(run, []))} are there"
    for run in set(written) - set(name):
        yield "lost", f"run number {run}: {written[run]} events were committed, and the run is not there"


# ---- what left
def check_delivered(records):
    """Each event at least once; the first time in the order of its run. An id that comes again is one event."""
    last, seen = {}, set(records.delivered)
    for run, number in dict.fromkeys(records.delivered):
        if number != last.get(run, 0) + 1:
            yield "order", f"{run}: event {number} was delivered after {last.get(run, 0)}"
        last[run] = number
    log = {(run, event["runSeq"]) for run, events in records.events.items() for event in events}
    for run, number in sorted(log - seen)[:5]:
        yield "lost", f"{run}: event {number} was not delivered"
    for run, number in sorted(seen - log)[:5]:
        yield "lost", f"{run}: event {number} was delivered, and is not there"


def check(records):
    yield from check_history(records)
    yield from check_log(records)
    yield from check_delivered(records)
    yield from check_witness(records)


def main():
    faults = list(check(Records(sys.argv[1])))
    for kind, what in faults:
        print(f"{kind}: {what}")
    print(f"{'not ok' if faults else 'ok'} engines_check: {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
