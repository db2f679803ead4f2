"""One run and several callers: the last one has it, and the others end."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from run_cases import called, capable, flow, plain_tool, thought

from planning.tools import ToolError
from planning.workflow import Workflow, WorkflowError, WorkflowResult, arun_workflow, run_workflow
from planning.workflow.run.records import StepRecord, WorkflowRun
from session import Session

TAKEN = (
    "another caller has resumed this run, or the session was rewound to before it began; it stopped here, "
    "and the session has what it did until then"
)
STEPS = flow(called("a", tool="broken"), called("m", "a", tool="mail"))


class Office:
    """A broken tool, and one that must not be called twice for a step."""

    def __init__(self) -> None:
        self.mails: list[str] = []
        self.is_broken = True

    def broken(self) -> str:
        if self.is_broken:
            raise ToolError("not yet")
        return "mended"

    def mail(self) -> str:
        self.mails.append("sent")
        return "sent"

    def run(self, session: Session, workflow: Workflow = STEPS) -> WorkflowResult | WorkflowError:
        tools = plain_tool("mail", self.mail, idempotent=False), plain_tool("broken", self.broken)
        try:
            return run_workflow(workflow, capable(*tools), session=session)
        except WorkflowError as error:
            return error

    def run_in_threads(self, session: Session, *workflows: Workflow) -> list[WorkflowResult | WorkflowError]:
        outcomes: list[WorkflowResult | WorkflowError] = []
        start = threading.Barrier(len(workflows))

        def run(workflow: Workflow) -> None:
            start.wait(10)
            outcomes.append(self.run(session, workflow))

        threads = [threading.Thread(target=run, args=(each,)) for each in workflows]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        return outcomes


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads that take turns after each few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_however_threads_take_turns_the_last_one_has_the_run_and_nothing_is_called_twice() -> None:
    for _ in range(60):
        office, session = Office(), Session()
        office.run(session)
        office.is_broken = False
        outcomes = office.run_in_threads(session, STEPS, STEPS, STEPS)
        assert {str(each) for each in outcomes if isinstance(each, WorkflowError)} <= {TAKEN}
        assert any(isinstance(each, WorkflowResult) for each in outcomes)
        runs = session.select_all(WorkflowRun)
        begun = [
            record.run_id
            for record in session.select_all(StepRecord)
            if (record.step_id, record.status, record.called) == ("m", "in_progress", True)
        ]
        assert len(office.mails) == len(begun) == len(set(begun)) <= len(runs)


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_second_task_takes_over_a_run_and_the_first_one_ends(idempotent: bool) -> None:
    calls: list[int] = []

    async def work() -> None:
        calls.append(1)
        await asyncio.sleep(0)

    async def scene() -> list[Any]:
        capabilities = capable(plain_tool("work", work, idempotent=idempotent))
        runs = [
            arun_workflow(flow(thought("z"), called("a", "z")), capabilities, session=session) for _ in "12"
        ]
        return await asyncio.gather(*runs, return_exceptions=True)

    session = Session()
    first, second = asyncio.run(scene())
    assert (str(first), second.status, calls) == (TAKEN, "completed", [1])
    assert [run.status for run in session.select_all(WorkflowRun)] == ["completed"]


def test_workflows_that_only_number_their_steps_alike_run_at_the_same_time() -> None:
    async def scene() -> list[str]:
        async def work() -> str:
            await asyncio.sleep(0)
            return "worked"

        session = Session()
        flows = [
            flow(called("1", description=name), called("2", "1", description=name), goal="") for name in "ab"
        ]
        runs = [arun_workflow(each, capable(work=work), session=session) for each in flows]
        return [result.status for result in await asyncio.gather(*runs)]

    assert asyncio.run(scene()) == ["completed", "completed"]
