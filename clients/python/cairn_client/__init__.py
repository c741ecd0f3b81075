"""A client of Cairn's service, and workers for it, with the standard library alone.

    from cairn_client import Client

    client = Client("http://127.0.0.1:7117")            # the token is $CAIRN_TOKEN
    run = client.start(pathlib.Path("order.yaml"), {"amount": 42})
    for event in run.events():
        print(event["eventType"])
    print(run.wait()["status"], run.output("charge"))

Worker is for functions of this program that are steps of the service's runs; AsyncClient is for programs with an event loop. Programs that
want an engine of their own, without a service, use the binding of libcairn instead (`import cairn`).
"""
from ._async import AsyncClient, AsyncRun
from ._client import Client, Run, RunFailed
from ._http import CairnError, Problem, Unreachable
from ._worker import Cancelled, Permanent, Retryable, StepError, Task, Worker, current_task

__all__ = ["AsyncClient", "AsyncRun", "CairnError", "Cancelled", "Client", "Permanent", "Problem", "Retryable", "Run", "RunFailed", "StepError",
           "Task", "Unreachable", "Worker", "current_task"]
__version__ = "0.1.0"
