"""A stored session and a workflow for the tests of runs in stored sessions."""

from __future__ import annotations

from collections.abc import Callable

from run_cases import called, capable, flow, plain_tool

from planning.workflow import Capabilities, WorkflowResult, run_workflow
from session import Session
from session.stores import SqliteStore, Store

Opened = Callable[..., SqliteStore]


def nightly(store: Store) -> Session:
    return Session(session_id="nightly", store=store)


STEPS = flow(called("a"), called("b", "a", tool="hold"), called("c", "b"), called("m", "b", tool="mail"))


class Bench:
    """Tools that count their calls; ``hold`` does something to the store."""

    def __init__(self, disturb: Callable[[], None]) -> None:
        self.calls: list[str] = []
        self._disturb = disturb

    def run(self, session: Session) -> WorkflowResult:
        return run_workflow(STEPS, self.tools(), session=session, max_parallel=1)

    def tools(self) -> Capabilities:
        def hold() -> str:
            self.calls.append("hold")
            self._disturb()
            return "held"

        def mail() -> str:
            self.calls.append("mail")
            return "sent"

        def work() -> str:
            self.calls.append("work")
            return "worked"

        return capable(plain_tool("mail", mail, idempotent=False), work=work, hold=hold)
