"""What openapi-python-client writes, at work: PACKAGE URL TOKEN."""
import importlib, json, sys, time

package, url, token = sys.argv[1:]


def of(name):
    return importlib.import_module(f"{package}.{name}")


def call(operation, **arguments):
    for place in ("default", "runs", "step_limits"):
        try:
            module = of(f"api.{place}.{operation}")
        except ModuleNotFoundError:
            continue
        return module.sync_detailed(client=client, **arguments)
    raise SystemExit(f"there is no operation {operation}")


client = of("client").AuthenticatedClient(base_url=url, token=token)
models = of("models")
plan = {"planId": "p", "planVersion": "1", "steps": [{"stepId": "a", "kind": "noop"}]}
started = call("post_runs", body=models.StartRun.from_dict({"runId": "from-python", "document": json.dumps(plan)}))
assert started.status_code in (200, 202), started
assert started.parsed.run_id == "from-python", started.parsed
for _ in range(600):
    status = call("get_runs_by_run_status", run="from-python").parsed.status
    if str(status) == "COMPLETED":
        break
    time.sleep(0.1)
assert str(status) == "COMPLETED", status
limit = call("put_step_limits_by_limit", limit="py", body=models.StepLimitConfig.from_dict({"concurrency": 2}))
assert limit.parsed.concurrency == 2, limit
absent = call("get_runs_by_run", run="nobody")
assert absent.status_code == 404 and absent.parsed.code == "NOT_FOUND", absent
print("python: ok")
