"""What a session keeps of runs, and what its bus tells of them."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from run_cases import called, capable, changes, flow, plan_notes, plan_of, thought

from planning import Plan
from planning.workflow import Workflow, arun_workflow, run_workflow
from planning.workflow.run.records import StepChanged, StepRecord, WorkflowRun
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


def test_a_tool_sees_its_step_in_progress_and_all_that_it_depends_on_done_however_quick_it_is() -> None:
    session, seen = Session(), list[list[tuple[str, str]]]()

    async def look() -> None:
        records = session.select_all(StepRecord)
        seen.append(changes(records))
        plan = [step.status for step in plan_of(session).steps]
        assert [MARKS[status] for status in states_of_steps(records, 5)] == plan

    steps = [
        called(f"s{number}", *([f"s{number - 1}"] if number else []), tool="look") for number in range(5)
    ]
    run_workflow(flow(*steps), capable(look=look), session=session)
    every = [(f"s{number}", status) for number in range(5) for status in ("in_progress", "completed")]
    assert seen == [every[: 2 * number + 1] for number in range(5)]


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


def states_of_steps(records: tuple[StepRecord, ...], count: int) -> list[str]:
    """The status of each step by its records."""
    known = {f"s{number}": "pending" for number in range(count)}
    return list((known | {record.step_id: record.status for record in records}).values())


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

    foreign = "the session has another active plan, which is left alone; the plan does not show this run"
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
