"""A worker of Temporal's own SDK (PyPI: temporalio) that serves two functions of a plan. sdk_worker.py ADDRESS QUEUE; says "up" when it is."""
import asyncio
import sys

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker


@activity.defn(name="shout")
async def shout(value):
    return {"said": value["text"].upper()}


@activity.defn(name="refuse")
async def refuse(value):
    raise ApplicationError("not for " + value["text"], type="NOT_FOR_YOU", non_retryable=True)


async def main():
    client = await Client.connect(sys.argv[1])
    print("up", flush=True)
    await Worker(client, task_queue=sys.argv[2], activities=[shout, refuse]).run()


asyncio.run(main())
