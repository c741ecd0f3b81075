"""A client of several engines while their database fails over: starts runs until it is told to stop, reads what it can of them, and keeps what
it was told: a history. Then the history is held against the log that is left.

    standby_client.py work TOKEN DOCUMENT URL...     until the file `enough` is there; history on stdout, one JSON value a line
    standby_client.py check HISTORY TOKEN EFFECTS URL
"""
import collections, http.client, json, os, sys, threading, time, urllib.parse


def ask(url, token, method, path, body=None):
    """(status, answer), or (0, None) when nobody answered: then nobody knows."""
    link = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=40)
    try:
        link.request(method, path, json.dumps(body) if body else None, {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
        said = link.getresponse()
        return said.status, json.loads(said.read() or b"null")
    except (OSError, http.client.HTTPException, ValueError):
        return 0, None
    finally:
        link.close()


def events_of(url, token, run):
    status, said = ask(url, token, "GET", f"/v1/runs/{run}/events?limit=500")
    return [(e["runSeq"], e["eventId"], e["eventType"]) for e in said["items"]] if status == 200 else None


def work(token, document, *urls):
    """One thread for each engine; each reads its runs at another one."""
    text, lock = open(document).read(), threading.Lock()

    def tell(**what):
        with lock:
            print(json.dumps({"at": time.time(), **what}), flush=True)

    def one(number):
        here, elsewhere = urls[number], urls[(number + 1) % len(urls)]
        count = 0
        while not os.path.exists("enough"):
            count += 1
            run = f"r-{number}-{count}"
            for _ in range(200):  # the same request until it is answered
                status, said = ask(here, token, "POST", "/v1/runs", {"runId": run, "document": text})
                if status in (200, 202):
                    tell(kind="acknowledged", run=run, engine=number)
                    break
                if status == 422 or status == 400:
                    tell(kind="refused", run=run, said=said)
                    break
                time.sleep(0.05)
            for at in (elsewhere, here):
                for seq, event, kind in events_of(at, token, run) or []:
                    tell(kind="seen", run=run, seq=seq, event=event, type=kind)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(len(urls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check(history, token, effects, url):
    told = [json.loads(line) for line in open(history)]
    runs = sorted({t["run"] for t in told if t["kind"] == "acknowledged"})
    wrong = [f"refused: {t}" for t in told if t["kind"] == "refused"]
    until = time.monotonic() + 10
    logs = {}
    for run in runs:
        while True:
            logs[run] = {seq: (event, kind) for seq, event, kind in events_of(url, token, run) or []}
            if any(kind == "RunCompleted" for _, kind in logs[run].values()) or time.monotonic() > until:
                break
            time.sleep(0.02)
        if not logs[run]:
            wrong.append(f"{run} was acknowledged and is gone")
        elif not any(kind == "RunCompleted" for _, kind in logs[run].values()):
            wrong.append(f"{run} is stuck: {logs[run]}")
    for t in told:
        if t["kind"] == "seen" and t["run"] in logs and logs[t["run"]].get(t["seq"]) != (t["event"], t["type"]):
            wrong.append(f"{t['run']} event {t['seq']} was seen as {t['event']} and is {logs[t['run']].get(t['seq'])}")
    done = collections.Counter(open(effects).read().split())
    wrong += [f"effect {key} {n} times" for key, n in done.items() if n != 1]
    wrong += [f"effect {run}/{step} never" for run in runs for step in "ab" if done[f"{run}/{step}"] == 0]
    gaps = sorted(t["at"] for t in told if t["kind"] == "acknowledged")
    longest = max((b - a for a, b in zip(gaps, gaps[1:])), default=0)
    print(f"{len(runs)} runs, {sum(t['kind'] == 'seen' for t in told)} events seen, longest silence {longest:.1f} s")
    print("\n".join(wrong[:10]), file=sys.stderr)
    sys.exit(1 if wrong else 0)


{"work": work, "check": check}[sys.argv[1]](*sys.argv[2:])
