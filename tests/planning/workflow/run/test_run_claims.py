"""One run and several callers: one of them resumes it, and the others are refused."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from run_cases import called, capable, flow, plain_tool, states, thought

from planning.tools import ToolError
from planning.workflow import Workflow, WorkflowError, WorkflowResult, arun_workflow, run_workflow
from planning.workflow.run.records import StepRecord, WorkflowRun
from session import Session

RUNNING = (
    "this workflow is already running in this session; wait until that run has ended, or use another session"
)
STEPS = flow(called("a", tool="broken"), called("m", "a", tool="mail"))


class Meeting(Session):
    """A session in which threads that look for a run wait for each other, as far as they can."""

    meeting: threading.Barrier | None = None

    def select_all(self, slice_type: type[Any], /) -> tuple[Any, ...]:
        found = super().select_all(slice_type)
        if slice_type is WorkflowRun and self.meeting is not None:
            with suppress(threading.BrokenBarrierError):
                self.meeting.wait(0.3)
        return found


class Office:
    """A broken tool, and one that must not be called twice for a step and takes until others are refused."""

    def __init__(self, others: int = 0) -> None:
        self.mails: list[str] = []
        self.is_broken = True
        self._refused = threading.Semaphore(0)
        self._others = others

    def broken(self) -> str:
        if self.is_broken:
            raise ToolError("not yet")
        return "mended"

    def mail(self) -> str:
        self.mails.append("sent")
        for _ in range(self._others):
            self._refused.acquire(timeout=2)
        return "sent"

    def run(self, session: Session, workflow: Workflow = STEPS) -> WorkflowResult | WorkflowError:
        tools = plain_tool("mail", self.mail, idempotent=False), plain_tool("broken", self.broken)
        try:
            return run_workflow(workflow, capable(*tools), session=session)
        except WorkflowError as error:
            self._refused.release()
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


def told(outcomes: list[WorkflowResult | WorkflowError]) -> list[str]:
    return sorted(each.status if isinstance(each, WorkflowResult) else str(each) for each in outcomes)


FIRST = flow(thought("t"), called("a", "t", tool="broken"), called("m", "a", tool="mail"))


@pytest.mark.parametrize(
    ("first", "versions"),
    [(STEPS, [STEPS, STEPS]), (FIRST, [flow(*FIRST.steps, thought(name)) for name in ("x", "y")])],
    ids=["unchanged", "edited"],
)
def test_of_two_threads_that_resume_a_run_at_the_same_moment_one_wins_and_the_other_is_refused(
    first: Workflow, versions: list[Workflow]
) -> None:
    office, session = Office(others=1), Meeting()
    office.run(session, first)
    office.is_broken = False
    session.meeting = threading.Barrier(2)
    outcomes = office.run_in_threads(session, *versions)
    assert (told(outcomes), office.mails) == (["completed", RUNNING], ["sent"])
    assert len(session.select_all(WorkflowRun)) == 1


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads that take turns after each few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_however_threads_take_turns_no_run_calls_what_must_not_be_called_twice() -> None:
    for _ in range(60):
        office, session = Office(), Session()
        office.run(session)
        office.is_broken = False
        office.run_in_threads(session, STEPS, STEPS, STEPS)
        runs = session.select_all(WorkflowRun)
        begun = [
            record.run_id
            for record in session.select_all(StepRecord)
            if (record.step_id, record.status, record.called) == ("m", "in_progress", True)
        ]
        assert len(office.mails) == len(begun) == len(set(begun)) == len(runs)


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_workflow_that_is_running_is_refused_to_a_second_task(idempotent: bool) -> None:
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
    assert (first.status, str(second), calls) == ("completed", RUNNING, [1])


def test_a_tool_that_runs_its_own_workflow_is_refused() -> None:
    session, calls = Session(), list[int]()
    workflow = flow(called("a", tool="again"))

    def again() -> str:
        calls.append(1)
        return run_workflow(workflow, capable(again=again), session=session).status if len(calls) < 3 else "?"

    result = run_workflow(workflow, capable(again=again), session=session)
    assert result.errors["a"].message == RUNNING


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


def ends(work: Callable[[], object]) -> list[str]:
    """What a run in a session comes to, and a second one in the same session."""
    session, outcomes = Session(), list[str]()
    for _ in range(2):
        try:
            outcomes.append(run_workflow(flow(called("a")), capable(work=work), session=session).status)
        except BaseException as error:  # noqa: BLE001 - whatever ends a run
            outcomes.append(type(error).__name__)
    return outcomes


def broken() -> None:
    raise ToolError("It broke")


def leave() -> None:
    raise SystemExit


@pytest.mark.parametrize(
    ("work", "outcome"), [(dict, "completed"), (broken, "failed"), (leave, "SystemExit")]
)
def test_however_a_run_ends_the_next_one_is_not_refused(work: Callable[[], object], outcome: str) -> None:
    assert ends(work) == [outcome, outcome]


def test_a_run_in_a_clone_is_another_run() -> None:
    session = Session()
    office = Office()
    office.run(session)
    office.is_broken = False
    outcomes = [office.run(each) for each in (session, session.clone())]
    assert [states(each.workflow) for each in outcomes if isinstance(each, WorkflowResult)] == [
        {"a": "completed", "m": "completed"}
    ] * 2
