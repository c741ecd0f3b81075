#!/usr/bin/env python3
"""test/crash/engines_proof.py RECORDS      (and engines_storm.py --prove, which plants into a live database before)

Is the checker any good? Records of a storm that were found sound are tampered with, one way at a time, and the checker must report each,
under the right name. With a database at hand bugs are planted into its functions, and what the engines make of it must be reported.
"""
import copy, json, re, shutil, sys, threading, time, uuid

from engines_check import Records, check


# ---- records that lie
def some_run(records):
    """One that a client was shown the events of, with a signal when there is one."""
    shown = [h["run"] for h in records.history if h["call"] == "events" and h["seen"]]
    return shown[0]


def lost_run(r):
    run = some_run(r)
    for table in (r.heads, r.events, r.texts, r.effects):
        table.pop(run, None)


def lost_event(r):
    """The last one, everywhere but in what the client was told."""
    shown = next(h for h in r.history if h["call"] == "events" and h["seen"] and r.heads[h["run"]]["terminal"])
    run, keep = shown["run"], len(shown["seen"]) - 1
    r.events[run], r.texts[run] = r.events[run][:keep], r.texts[run][:keep]
    r.heads[run].update(last=keep, terminal=False)
    number = r.heads[run]["no"]
    r.writes = [w for w in r.writes if w[0] != number or w[1] <= keep]


def dropped_commit(r):
    """One that the witness saw, and nobody else."""
    r.writes.append((r.heads[some_run(r)]["no"], 99, *r.writes[-1][2:]))


def changed_event(r):
    run = some_run(r)
    r.events[run][0]["emittedAt"] = "1970-01-01T00:00:00.000Z"
    r.texts[run][0] = json.dumps(r.events[run][0])


def lost_signal(r):
    run = some_run(r)
    r.history.append(dict(call="signal", run=run, signal=str(uuid.uuid4()), decision="ACCEPTED", caused=1))


def doubled_run(r):
    other = next(run for run in r.heads if run != some_run(r))
    request = next(h["request"] for h in r.history if h["call"] == "start" and h["run"] == some_run(r))
    r.history.append(dict(call="start", request=request, ok=True, run=other, why=None))


def doubled_effect(r):
    run = some_run(r)
    r.effects[run].append(r.effects[run][0])


def effect_without_event(r):
    r.effects[some_run(r)].append(("a", 1, 77))


def effect_forgotten(r):
    run = some_run(r)
    r.effects[run] = [e for e in r.effects[run] if e[0] != "a"]


def completed_twice(r):
    run = some_run(r)
    done = next(e for e in r.events[run] if e["eventType"] == "StepCompleted")
    r.events[run].insert(-1, copy.deepcopy(done))


def stuck(r):
    r.heads[some_run(r)]["terminal"] = False


def no_end(r):
    run = some_run(r)
    r.events[run].pop()


def shard_epoch_back(r):
    shard, epoch, owner = r.shard_moves[-1]
    r.shard_moves.append((shard, epoch - 1, owner + 1))


def run_epoch_back(r):
    number, sequence, *who = r.writes[-1]
    r.writes += [(number, sequence, who[0], who[1], 9, who[3]), (number, sequence, who[0], who[1], 8, who[3])]


def epoch_shared(r):
    shard, epoch, owner = next(move for move in r.shard_moves if move[2])
    r.shard_moves.append((shard, epoch, owner + 100))
    r.shard_moves.sort(key=lambda move: move[1])


def foreign_write(r):
    number, sequence, writer, *rest = r.writes[0]
    r.writes[0] = (number, sequence, writer + 100, *rest)


def went_on(r):
    number, epoch, owner, last, _ = next(move for move in r.head_moves if move[4])
    r.head_moves.append((number, epoch, owner, last + 1, 1))


def undelivered(r):
    last = r.delivered[-1]
    r.delivered = [one for one in r.delivered if one != last]


def delivered_out_of_order(r):
    run = some_run(r)
    r.delivered = [one for one in r.delivered if one != (run, 3)] + [(run, 3)]


LIES = [(lost_run, "lost"), (lost_event, "lost"), (dropped_commit, "lost"), (changed_event, "changed"), (lost_signal, "lost"), (doubled_run, "doubled-run"),
        (doubled_effect, "doubled-effect"), (effect_without_event, "effect-without-event"), (effect_forgotten, "lost-effect"), (completed_twice, "doubled-effect"),
        (stuck, "stuck"), (no_end, "stuck"), (shard_epoch_back, "epoch-back"), (run_epoch_back, "epoch-back"), (epoch_shared, "epoch-shared"),
        (foreign_write, "foreign-write"), (went_on, "end"), (undelivered, "lost"), (delivered_out_of_order, "order")]


def verdict(name, kind, faults):
    kinds = sorted({k for k, _what in faults})
    good = kind in kinds
    print(f"{'ok' if good else 'not ok'} checker_reports_{name}{'' if good else f': not {kind}, but {kinds}'}")
    return good


def prove_lies(directory):
    sound = Records(directory)
    good = not list(check(sound))
    if not good:
        print("not ok checker_finds_nothing_in_sound_records: " + str(list(check(sound))[:3]))
    for lie, kind in LIES:
        records = copy.deepcopy(sound)
        lie(records)
        good &= verdict(lie.__name__, kind, list(check(records)))
    return good


# ---- a database that lies
class Planted:
    """A function of the store with something left out, for a while. What is not found there any more is an error: the plant has withered."""

    def __init__(self, cluster, function, *changes):
        self.cluster = cluster
        self.sound = "\n".join(cluster.ask(f"select pg_get_functiondef(p.oid) from pg_proc p join pg_namespace n on n.oid=p.pronamespace where n.nspname='cairn' and p.proname='{function}'"))
        self.broken = self.sound
        for pattern, instead in changes:
            self.broken, count = re.subn(pattern, instead, self.broken)
            if not count:
                raise SystemExit(f"not ok engines_proof: {function}() has no /{pattern}/ any more")

    def __enter__(self):
        self.cluster.ask(self.broken)

    def __exit__(self, *_):
        self.cluster.ask(self.sound)


def no_fence(storm):
    """append() compares neither the engine nor the epoch: a batch that comes late is stored."""
    with Planted(storm.cluster, "append", (r" IF NOT FOUND THEN RAISE EXCEPTION 'engine % is gone',a_engine USING ERRCODE='CA004'; END IF;", ""), (r" AND h\.epoch=u\.epoch AND h\.owner=a_engine", "")):
        storm.delayed("planted")


def guessed_commit(storm):
    """token_of() says that a batch was stored when it was not: the engine acknowledges a run that there is not."""
    engine = storm.engines[-1]
    storm.spread()
    with Planted(storm.cluster, "token_of", (r"RETURN v_token;", "RETURN v_token+1;")):
        threading.Thread(target=engine.proxy.cut_appending, args=("drop", 5.0)).start()
        time.sleep(0.1)
        storm.begin_at(engine, storm.plan, f"guessed-{uuid.uuid4()}")


def epoch_set_back(storm):
    storm.cluster.ask("ALTER TABLE shards DISABLE TRIGGER shards_only_forward", "UPDATE shards SET epoch=epoch-1 WHERE shard_no=(SELECT max(shard_no) FROM shards WHERE epoch>1)")


def run_left_alone(storm):
    """A run that nobody will ever take up: its shard does not exist."""
    run = storm.begin_at(storm.engines[0], storm.slow, f"alone-{uuid.uuid4()}")
    storm.cluster.ask("ALTER TABLE run_heads DISABLE TRIGGER run_heads_only_forward", f"UPDATE run_heads SET epoch=epoch+1,owner=-1 WHERE run_no=(SELECT run_no FROM runs WHERE run_id='{run}')")


PLANTS = [(no_fence, "foreign-write"), (guessed_commit, "lost"), (epoch_set_back, "epoch-back"), (run_left_alone, "stuck")]


def prove(storm):
    """Of a storm whose engines still run and whose records were kept."""
    good = prove_lies(storm.dir)
    for plant, kind in PLANTS:
        plant(storm)
        storm.keep_records()
        storm.say(f"planted {plant.__name__}")
        good &= verdict(plant.__name__, kind, list(check(Records(storm.dir))))
    storm.end_all()
    if good and not storm.args.keep:
        shutil.rmtree(storm.dir)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(0 if prove_lies(sys.argv[1]) else 1)
