"""Many writers at once: threads and asyncio tasks on one session."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from planning import AddStep, NewPlanStep, Plan, SetupPlan, Toolbox
from planning.plan.reducers import REDUCERS
from planning.tools import ToolResult
from planning.tools.pipeline import PATIENCE
from session import Session, ToolInvoked

WRITERS, ROUNDS = 8, 15


@pytest.fixture(autouse=True)
def switch_often() -> Iterator[None]:
    """Let threads take turns far more often than they do by themselves."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def replayed(session: Session) -> Plan | None:
    """The plan that the session's accepted commands lead to, one after another in the order of the log."""
    slice_: tuple[Plan, ...] = ()
    for event in session.select_all(ToolInvoked):
        reducer = REDUCERS.get(type(event.value))
        slice_ = slice_ if reducer is None else reducer(slice_, event.value)
    return slice_[-1] if slice_ else None


def latest(session: Session) -> Plan:
    plan = session.select_latest(Plan)
    assert plan is not None
    return plan


def accepted(result: ToolResult) -> ToolResult:
    assert result.success, result.message
    return result


def counted(number: int) -> list[str]:
    return [f"S{place:03d}" for place in range(1, number + 1)]


def test_no_update_of_many_writers_is_lost(toolbox: Toolbox, session: Session) -> None:
    toolbox.invoke("planning_setup_plan", SetupPlan("Many hands"))

    def writer(name: str) -> None:
        for turn in range(ROUNDS):
            title = f"{name} {turn}"
            added = accepted(toolbox.call("planning_add_step", {"steps": [{"title": title}]}))
            step_id = added.message.removeprefix("Added ").removesuffix(".")
            assert {step.title for step in latest(session).steps if step.step_id == step_id} == {title}
            mark = {"step_id": step_id, "status": "done", "note": title}
            accepted(toolbox.call("planning_mark_step", mark))
            seen = latest(session).steps[int(step_id[1:]) - 1]
            assert (seen.step_id, seen.status, seen.notes) == (step_id, "done", (title,))
            # The plan is complete whenever all steps are done just then; reopened, it takes more.
            toolbox.call("planning_mark_step", {"step_id": "S001", "status": "pending"})

    # One step stays open until the end, so that no writer finds the plan completed.
    toolbox.invoke("planning_add_step", AddStep((NewPlanStep("Keep open"),)))
    with ThreadPoolExecutor(WRITERS) as pool:
        for begun in [pool.submit(writer, f"writer {number}") for number in range(WRITERS)]:
            begun.result()

    plan = latest(session)
    assert [step.step_id for step in plan.steps] == counted(WRITERS * ROUNDS + 1)
    titles = [step.title for step in plan.steps[1:]]
    assert sorted(titles) == sorted(f"writer {n} {turn}" for n in range(WRITERS) for turn in range(ROUNDS))
    assert all(step.status == "done" and step.notes == (step.title,) for step in plan.steps[1:])
    assert len(session.select_all(ToolInvoked)) == 2 + 3 * WRITERS * ROUNDS
    assert replayed(session) == plan


def test_many_tasks_lose_no_update(toolbox: Toolbox, session: Session) -> None:
    async def write(name: str) -> dict[str, str]:
        added = {}
        for turn in range(ROUNDS):
            arguments = {"steps": [{"title": f"{name} {turn}"}]}
            added[f"{name} {turn}"] = accepted(await toolbox.acall("planning_add_step", arguments)).message
            read = accepted(await toolbox.acall("planning_read_plan")).value
            assert read is latest(session)
        return added

    async def main() -> list[dict[str, str]]:
        await toolbox.acall("planning_setup_plan", {"objective": "Many hands"})
        return await asyncio.gather(*[write(f"task {number}") for number in range(WRITERS)])

    messages = {title: message for each in asyncio.run(main()) for title, message in each.items()}
    plan = latest(session)
    assert [step.step_id for step in plan.steps] == counted(WRITERS * ROUNDS)
    assert messages == {step.title: f"Added {step.step_id}." for step in plan.steps}
    assert replayed(session) == plan


def test_a_change_waits_for_another_thread_that_changes_the_plan(toolbox: Toolbox, session: Session) -> None:
    begun = threading.Event()

    def hold() -> None:
        with session.transaction() as transaction:
            begun.set()
            time.sleep(2 * PATIENCE)
            transaction.dispatch(SetupPlan("Held", (NewPlanStep("Look"),)))

    holder = threading.Thread(target=hold)
    holder.start()
    assert begun.wait(20)
    message = toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done"}).message
    holder.join()
    assert message == "S001 done. Plan completed."
