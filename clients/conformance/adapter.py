"""The Python client as the conformance suite drives it: adapter.py client URL, adapter.py worker URL NAME."""
import asyncio, json, os, sys, threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../python"))
from cairn_client import AsyncClient, Client, Permanent, Problem, Retryable, RunFailed, Worker


def client(url):
    sync = Client(url)

    def answer(request):
        op, run = request["op"], sync.run(request.get("run", ""))
        if op == "start":
            started = sync.start(request["document"], request.get("inputs"), run_id=request.get("run"), key=request.get("key"))
            return started.id
        if op == "wait":
            return run.wait(request.get("timeout"), check=False)["status"]
        if op == "wait-checked":
            try:
                return run.wait()["status"]
            except RunFailed as failed:
                return "raised " + failed.snapshot["status"]
        if op == "status":
            return run.status()["status"]
        if op == "events":
            return [event["eventType"] for event in run.events(request.get("after"))]
        if op == "output":
            return run.output(request["step"])
        if op == "logs":
            return run.logs(request["step"])
        if op == "signal":
            return run.signal(request["type"], request.get("payload"), step=request.get("step"), reason=request.get("reason"), signal_id=request.get("id"))["decision"]
        if op == "runs":
            return [row["runId"] for row in sync.runs(request.get("q"), limit=3)]
        if op == "async":
            async def both():
                async with AsyncClient(url) as service:
                    runs = [await service.start(request["document"], {"n": n}) for n in range(3)]
                    ends = await asyncio.gather(*(one.wait() for one in runs))
                    seen = [event["eventType"] async for event in runs[0].events()]
                    return [end["status"] for end in ends] + [seen[-1]]
            return asyncio.run(both())
        raise ValueError(op)

    lock = threading.Lock()

    def serve(request):
        try:
            said = {"value": answer(request)}
        except Problem as refused:
            said = {"code": refused.code, "status": refused.status}
        except Exception as error:
            said = {"code": type(error).__name__, "detail": str(error)}
        with lock:
            print(json.dumps({"call": request["call"], **said}), flush=True)

    for line in sys.stdin:
        threading.Thread(target=serve, args=(json.loads(line),)).start()


def worker(url, name):
    served = Worker(url.split(","), name=name, concurrency=4)

    @served.step("mirror")
    def mirror(given):
        return given

    @served.step("big")
    def big(given):
        return "x" * given["bytes"]

    @served.step("slow")
    def slow(given, task):
        task.log(f"slow in {name}")
        open(given["mark"] + ".begun", "a").write(name + "\n")
        while not os.path.exists(given["mark"]):
            task.sleep(0.05)
        return name

    @served.step("waiting")
    async def waiting(given, task):
        task.log("waiting", "stderr")
        open(given["mark"] + ".begun", "a").write(name + "\n")
        try:
            while not os.path.exists(given["mark"]):
                await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            open(given["mark"] + ".cancelled", "a").write(name + "\n")
            raise
        return name

    @served.step("flaky", retry_on=[ConnectionError])
    def flaky(given, task):
        if task.attempt < 3:
            raise ConnectionError("not yet")
        return task.attempt

    @served.step("broken")
    def broken(given):
        raise Permanent("never", code="BROKEN")

    @served.step("shaky")
    def shaky(given):
        raise Retryable("not now", code="SHAKY")

    @served.step("notjson")
    def notjson(given):
        return {1, 2}

    print("ready", flush=True)
    served.run()


{"client": client, "worker": worker}[sys.argv[1]](*sys.argv[2:])
