"""Steps, tools and sessions for the tests of running workflows."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest
from hypothesis import strategies as st

from planning import Plan
from planning.tools import Tool
from planning.workflow import Capabilities, Workflow, WorkflowResult, WorkflowStep, run_workflow
from planning.workflow.failures import StepFailure
from planning.workflow.run.records import StepChanged, StepRecord
from session import Session, Snapshot

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    SCALARS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
"""What JSON can say."""

Kind = type[Exception]
SORRY = "I ran into a problem looking that up. Could you try again?"


def thought(step_id: str, *depends_on: str, **fields: Any) -> WorkflowStep:
    said = {"description": f"Do {step_id}", **fields}
    return WorkflowStep(step_id=step_id, depends_on=depends_on, **said)


def called(step_id: str, *depends_on: str, tool: str = "work", **fields: Any) -> WorkflowStep:
    return thought(step_id, *depends_on, type="tool", name=tool, **fields)


def flow(*steps: WorkflowStep, goal: str = "Find it out", **fields: Any) -> Workflow:
    return Workflow(goal=goal, steps=steps, **fields)


def plain_tool(name: str, function: Callable[..., Any], **options: Any) -> Tool:
    return Tool(name, "", function, **options)


def capable(*tools: Any, **functions: Callable[..., Any]) -> Capabilities:
    """Capabilities with these tools, and these functions as tools by name."""
    return Capabilities(tools=[*tools, *(plain_tool(name, each) for name, each in functions.items())])


def told(
    message: str, code: str = "missing_value", user_message: str = SORRY, cause: str | None = None
) -> Any:
    return StepFailure(message, user_message, code, cause)


def states(workflow: Workflow | None) -> dict[str, str]:
    """The status of each step, and whether it was skipped."""
    assert workflow is not None
    return {it.step_id: f"{it.status}, skipped" if it.skipped else it.status for it in workflow.steps}


def plan_of(session: Session) -> Plan:
    plan = session.select_latest(Plan)
    assert plan is not None
    return plan


def plan_states(session: Session) -> list[str]:
    return [step.status for step in plan_of(session).steps]


def plan_notes(session: Session) -> list[tuple[str, tuple[str, ...]]]:
    return [(step.status, step.notes) for step in plan_of(session).steps]


def restored(session: Session) -> Session:
    """Another session with what a snapshot's JSON keeps of this one."""
    other = Session()
    other.rollback(Snapshot.from_json(session.snapshot().to_json()))
    return other


def heard(session: Session) -> list[StepRecord]:
    """What the bus tells of steps from now on."""
    records: list[StepRecord] = []
    session.bus.subscribe(StepChanged, lambda event: records.append(event.record))
    return records


def refusal(kind: Kind | tuple[Kind, ...], call: Callable[..., object], *given: Any, **options: Any) -> str:
    """The message of the error that a call raises."""
    with pytest.raises(kind) as refused:
        call(*given, **options)
    return str(refused.value)


class Bench:
    """Tools by their names that note their calls; ``mail`` must not be called twice."""

    def __init__(self, **functions: Callable[..., Any]) -> None:
        self.calls: list[Any] = []
        self.functions = {"work": lambda: "worked", "mail": lambda: "sent", **functions}

    @property
    def tools(self) -> Capabilities:
        functions = self.functions.items()
        made = (plain_tool(name, self._noting(name, it), idempotent=name != "mail") for name, it in functions)
        return capable(*made)

    def _noting(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(**inputs: Any) -> Any:
            self.calls.append((name, *inputs.values()) if inputs else name)
            return function(**inputs)

        return call

    def run(self, workflow: Workflow, session: Session, **options: Any) -> WorkflowResult:
        return run_workflow(workflow, self.tools, session=session, **options)

    def took(self) -> list[Any]:
        """The calls since the last time."""
        calls, self.calls = self.calls, []
        return calls


TAKEN = (
    "another caller has resumed this run, or the session was rewound to before it began; this caller "
    "stopped, and the session has its changes until then"
)
MAYBE = told("It was interrupted and may have taken effect. Check before you continue.", "interrupted")


def tool_threads(*tools: str) -> list[str]:
    """The threads of these tools that do not end; those of other tests may run on."""
    names = [f"tool {tool}" for tool in tools]
    found = [each for each in threading.enumerate() if each.name in names]
    for each in found:
        each.join(5)
    return [each.name for each in found if each.is_alive()]


async def cancelled(task: asyncio.Task[Any]) -> None:
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}


class Slow:
    """Tools that run until they are let, here or in threads."""

    def __init__(self) -> None:
        self.begun = threading.Semaphore(0)
        self.may_end = threading.Event()
        self.told: list[str] = []
        self.was_awaited: list[bool] = []

    def plain(self) -> str:
        self.begun.release()
        assert self.may_end.wait(10)
        self.told.append("plain")
        return "from a thread"

    async def later(self) -> str:
        self.begun.release()
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            self.told.append("cancelled")
            raise
        return "never"

    async def careful(self) -> str:
        """Must not be called twice, and takes its time."""
        self.begun.release()
        while not self.may_end.is_set():
            await asyncio.sleep(0)
        self.told.append("careful")
        return "carefully"

    async def until_begun(self, number: int) -> None:
        for _ in range(number):
            while not self.begun.acquire(blocking=False):
                await asyncio.sleep(0)
