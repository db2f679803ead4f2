"""One run and several callers: the last one has it, and the others end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from run_cases import called, capable, flow, plain_tool, thought

from planning.workflow import arun_workflow, run_workflow
from planning.workflow.run.records import StepRecord, WorkflowRun
from session import Session

TAKEN = (
    "another caller has resumed this run, or the session was rewound to before it began; this caller "
    "stopped, and the session has its changes until then"
)


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
        mails, session = list[str](), Session()
        mail = plain_tool("mail", lambda mails=mails: mails.append("sent"), idempotent=False)
        steps, tools = flow(called("a"), called("m", "a", tool="mail")), capable(mail, work=dict)
        with ThreadPoolExecutor(3) as threads:
            outcomes = [threads.submit(run_workflow, steps, tools, session=session) for _ in range(3)]
        errors = [str(each.exception()) for each in outcomes if each.exception() is not None]
        assert set(errors) <= {TAKEN}
        assert len(errors) < 3
        begun = {
            each.run_id
            for each in session.select_all(StepRecord)
            if (each.step_id, each.status, each.called) == ("m", "in_progress", True)
        }
        assert len(mails) == len(begun) <= len(session.select_all(WorkflowRun))


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
