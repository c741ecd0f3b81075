"""Durable workflows in a Python program.

    import cairn

    engine = cairn.Engine("sqlite:orders.db")

    @engine.step("charge-card")
    def charge(amount: int) -> dict:
        return {"receipt": pay(amount, key=cairn.attempt().key)}

    with engine:
        run = engine.run("order.yaml", {"amount": 42}, run_id="order-4711")
        print(run.wait(), run.output("charge"))

A document (a plan or a node workflow) says what runs after what; Python functions are its steps. What happens is stored
before it has consequences: kill the process anywhere, start it again, call ``engine.recover()`` or ``engine.run`` with the
same id, and it goes on. A step that has completed is never called again.

Nothing but the standard library and ``libcairn.so.0`` is needed ($CAIRN_LIBRARY names another file).
"""
from ._engine import (Attempt, CairnError, Decision, Engine, Event, Later, Permanent, Retry, Run, RunFailed, RunInfo, Status,
                      attempt, version)

__all__ = ["Attempt", "CairnError", "Decision", "Engine", "Event", "Later", "Permanent", "Retry", "Run", "RunFailed", "RunInfo",
           "Status", "attempt", "version"]
__version__ = "0.1.0"
