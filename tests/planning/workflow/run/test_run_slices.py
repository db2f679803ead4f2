"""What a session keeps of runs, and what its bus tells of them."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from run_cases import called, capable, flow, plain_tool, plan_notes, plan_of, thought, told

from planning import Plan
from planning.tools import ToolError
from planning.workflow import Workflow, arun_workflow, run_workflow
from planning.workflow.run.records import RunChanged, StepChanged, StepRecord, WorkflowRun
from session import Session

MARKS = {"pending": "pending", "in_progress": "in_progress", "completed": "done", "failed": "blocked"}


def test_from_another_thread_the_workflow_agrees_with_the_plan_at_any_moment() -> None:
    session = Session()
    over = threading.Event()
    wrong: list[Any] = []
    looks: list[int] = []

    def watch() -> None:
        while not over.is_set():
            with session.transaction():
                workflow, plan = session.select_latest(Workflow), session.select_latest(Plan)
            if workflow is not None and plan is not None:
                looks.append(1)
                if [MARKS[step.status] for step in workflow.steps] != [step.status for step in plan.steps]:
                    wrong.append((workflow, plan))

    async def work() -> int:
        for _ in range(3):
            await asyncio.sleep(0)
        return 1

    watcher = threading.Thread(target=watch)
    watcher.start()
    steps = [called(f"s{number}", *([f"s{number - 1}"] if number % 3 else [])) for number in range(200)]
    result = run_workflow(flow(*steps), capable(work=work), session=session)
    over.set()
    watcher.join(10)
    assert (result.status, wrong, len(looks) > 0) == ("completed", [], True)


def test_a_step_that_holds_the_event_loop_has_the_times_at_which_it_began_and_ended() -> None:
    session = Session()

    async def hold() -> None:
        time.sleep(0.01)

    run_workflow(
        flow(called("a", tool="hold"), called("b", tool="hold")), capable(hold=hold), session=session
    )
    events = session.select_all(StepChanged)
    times = {(event.record.step_id, event.record.status): event.created_at for event in events}
    assert [event.record.at for event in events] == [at.isoformat() for at in times.values()]
    ended = [times["a", "completed"], times["b", "completed"]]
    assert min(ended[0] - times["a", "in_progress"], ended[1] - ended[0]) >= timedelta(milliseconds=9)


@pytest.mark.parametrize("goals", [("one", "two"), ("one", "one")], ids=["unlike", "alike"])
def test_two_runs_in_one_session_both_complete_and_the_plan_shows_the_one_that_was_first(goals: Any) -> None:
    session = Session()

    async def work() -> str:
        await asyncio.sleep(0)
        return "worked"

    async def scene() -> Any:
        flows = [flow(called("a"), called("b", "a"), goal=goal) for goal in goals]
        runs = [
            arun_workflow(each, capable(work=work), session=session, inputs={"x": number})
            for number, each in enumerate(flows)
        ]
        return await asyncio.gather(*runs)

    foreign = "the session has another active plan, which does not show this run"
    both = {"a": "worked", "b": "worked"}
    assert [(each.status, each.outputs, each.warnings) for each in asyncio.run(scene())] == [
        ("completed", both, ()),
        ("completed", both, (foreign,)),
    ]
    assert len({run.run_id for run in session.select_all(WorkflowRun)}) == 2
    plan = plan_of(session)
    assert (plan.objective, plan.status, plan_notes(session)) == (
        "one",
        "completed",
        [("done", ("worked",))] * 2,
    )


@dataclass(frozen=True)
class Note:
    text: str


def test_what_a_tool_publishes_is_reduced_in_its_call_and_a_refusal_fails_its_step_alone() -> None:
    def keep(notes: tuple[Note, ...], note: Note) -> tuple[Note, ...]:
        if note.text == "bad":
            raise ToolError("not in my session")
        return (*notes, note)

    session = Session()
    session.register_reducer(Note, keep)
    write = plain_tool("write", lambda note: note, parameters=Note, publishes="value")
    steps = [called(text, tool="write", inputs={"text": text}) for text in ("good", "bad", "more")]
    result = run_workflow(flow(*steps), capable(write), session=session, max_parallel=1)
    assert dict(result.errors) == {"bad": told("not in my session", "tool", "not in my session")}
    assert session.select_all(Note) == (Note("good"), Note("more"))
    assert result.outputs == {"good": {"text": "good"}, "more": {"text": "more"}}


def test_a_run_has_a_token_until_it_ends_which_is_not_shown() -> None:
    session, runs = Session(), list[WorkflowRun]()

    def hear(event: RunChanged) -> None:
        runs.append(event.run)

    session.bus.subscribe(RunChanged, hear)
    run_workflow(flow(), capable(), session=session)
    began, ended = runs
    assert (began.token == "", began.token in repr(began), ended.token) == (False, False, "")


def test_a_run_in_a_run_in_one_session_disturbs_neither() -> None:
    session = Session()

    def nested() -> str:
        inner = run_workflow(
            flow(thought("x", expected_key="inner"), goal="inner"), capable(), session=session
        )
        return inner.status

    workflow = flow(called("a", tool="nested"), thought("b", "a", expected_key="outer"))
    result = run_workflow(workflow, capable(nested=nested), session=session)
    assert (result.status, result.outputs["a"]) == ("completed", "completed")
    assert [(run.workflow.goal, run.status) for run in session.select_all(WorkflowRun)] == [
        ("inner", "completed"),
        ("Find it out", "completed"),
    ]
    assert session.select_latest(Workflow) == result.workflow


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
