"""Stopping a run: by cancelling its task, by a timeout around it, by what breaks around it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from run_cases import (
    MAYBE,
    Slow,
    called,
    cancelled,
    capable,
    changes,
    flow,
    heard,
    plain_tool,
    plan_notes,
    states,
    thought,
    tool_threads,
)

from planning.tools import ToolError
from planning.workflow import (
    MemoryItem,
    RunChanged,
    StepChanged,
    Workflow,
    WorkflowRun,
    arun_workflow,
    run_workflow,
)
from session import Session, Snapshot


def test_running_async_steps_are_cancelled_and_the_rest_is_pending() -> None:
    async def scene(session: Session) -> list[str]:
        slow = Slow()
        steps = [thought("a"), called("b", tool="later"), called("c", "b"), called("d", tool="later")]
        run = asyncio.create_task(
            arun_workflow(flow(*steps), capable(later=slow.later, work=slow.later), session=session)
        )
        await slow.until_begun(2)
        run.cancel()
        await cancelled(run)
        return slow.told

    session = Session()
    records = heard(session)
    assert asyncio.run(scene(session)) == ["cancelled", "cancelled"]
    workflow = session.select_latest(Workflow)
    assert states(workflow) == {"a": "completed", "b": "pending", "c": "pending", "d": "pending"}
    assert workflow is not None
    assert (workflow.status, workflow.completed_at) == ("in_progress", None)
    assert plan_notes(session) == [
        ("done", ("Thought through",)),
        ("pending", ("Stopped before it was done",)),
        ("pending", ()),
        ("pending", ("Stopped before it was done",)),
    ]
    assert sorted(changes(records)[-2:]) == [("b", "pending"), ("d", "pending")]


def test_steps_in_threads_are_awaited_and_their_outputs_are_kept() -> None:
    async def scene(session: Session) -> None:
        slow = Slow()
        steps = [called("a", tool="plain"), called("b", tool="plain"), thought("c", "a"), thought("d")]
        run = asyncio.create_task(
            arun_workflow(flow(*steps), capable(plain=slow.plain), session=session, max_parallel=2)
        )
        await slow.until_begun(2)
        run.cancel()
        for _ in range(20):
            await asyncio.sleep(0)
        assert not run.done()
        slow.may_end.set()
        await cancelled(run)

    session = Session()
    asyncio.run(scene(session))
    assert states(session.select_latest(Workflow)) == {
        "a": "completed", "b": "completed", "c": "pending", "d": "pending",
    }  # fmt: skip
    assert tool_threads() == []
    again = run_workflow(flow(*again_steps()), capable(plain=Slow().plain), session=session)
    assert dict(again.outputs) == {"a": "from a thread", "b": "from a thread", "c": "Do c", "d": "Do d"}


def again_steps() -> list[Any]:
    return [called("a", tool="plain"), called("b", tool="plain"), thought("c", "a"), thought("d")]


@pytest.mark.parametrize("tool", ["plain", "careful"])
def test_a_second_cancelling_waits_for_nothing(tool: str) -> None:
    async def scene(session: Session) -> None:
        slow = Slow()
        work = plain_tool("work", getattr(slow, tool), idempotent=False)
        run = asyncio.create_task(
            arun_workflow(flow(called("a"), thought("b", "a")), capable(work), session=session)
        )
        await slow.until_begun(1)
        run.cancel()
        for _ in range(20):
            await asyncio.sleep(0)
        assert not run.done()
        run.cancel()
        await cancelled(run)
        slow.may_end.set()

    session = Session()
    asyncio.run(scene(session))
    assert states(session.select_latest(Workflow)) == {"a": "failed", "b": "pending"}
    again = run_workflow(
        flow(called("a"), thought("b", "a")),
        capable(plain_tool("work", lambda: "twice!", idempotent=False)),
        session=session,
    )
    assert (again.status, dict(again.errors), dict(again.outputs)) == ("failed", {"a": MAYBE}, {})


def test_a_call_that_must_not_be_made_twice_is_awaited_although_it_could_be_cancelled() -> None:
    async def scene(session: Session) -> list[str]:
        slow = Slow()
        work = plain_tool("work", slow.careful, idempotent=False)
        run = asyncio.create_task(arun_workflow(flow(called("a")), capable(work), session=session))
        await slow.until_begun(1)
        run.cancel()
        for _ in range(20):
            await asyncio.sleep(0)
        slow.may_end.set()
        await cancelled(run)
        return slow.told

    session = Session()
    assert asyncio.run(scene(session)) == ["careful"]
    assert states(session.select_latest(Workflow)) == {"a": "completed"}


def test_a_tool_that_does_not_let_itself_be_cancelled_completes_its_step() -> None:
    async def scene(session: Session) -> None:
        begun = asyncio.Event()

        async def stubborn() -> str:
            begun.set()
            try:
                await asyncio.sleep(5)
            except asyncio.CancelledError:
                return "nevertheless"
            return "never"

        steps = [called("a"), thought("b", "a")]
        run = asyncio.create_task(arun_workflow(flow(*steps), capable(work=stubborn), session=session))
        await begun.wait()
        run.cancel()
        await cancelled(run)

    session = Session()
    asyncio.run(scene(session))
    assert states(session.select_latest(Workflow)) == {"a": "completed", "b": "pending"}


def test_a_timeout_around_a_run_stops_it_like_a_cancelling() -> None:
    async def scene(session: Session) -> None:
        slow = Slow()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await arun_workflow(flow(called("a")), capable(work=slow.later), session=session)
        assert slow.told == ["cancelled"]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    session = Session()
    asyncio.run(scene(session))
    assert states(session.select_latest(Workflow)) == {"a": "pending"}


def test_a_run_that_is_cancelled_before_it_begins_leaves_the_session_untouched() -> None:
    async def scene(session: Session) -> None:
        run = asyncio.create_task(arun_workflow(flow(called("a")), capable(), session=session))
        run.cancel()
        await cancelled(run)

    session = Session()
    before = session.snapshot()
    asyncio.run(scene(session))
    assert session.snapshot() == before


def test_a_run_that_was_stopped_before_its_first_step_goes_on_and_keeps_its_inputs_once() -> None:
    session, texts = Session(), list[str]()

    def keep(_event: RunChanged) -> None:
        texts.append(session.snapshot().to_json())

    session.bus.subscribe(RunChanged, keep)
    run_workflow(flow(thought("a")), capable(), session=session, inputs={"key": 1})
    restored = Session()
    restored.rollback(Snapshot.from_json(texts[0]))
    result = run_workflow(flow(thought("a")), capable(), session=restored, inputs={"key": 1})
    assert (result.status, dict(result.memory)) == ("completed", {"key": 1})
    assert len(restored.select_all(WorkflowRun)) == 1
    assert [item.key for item in restored.select_all(MemoryItem)] == ["key"]


def test_a_run_whose_caller_heard_that_it_was_cancelled_is_not_completed_and_goes_on() -> None:
    calls: list[int] = []

    def work() -> None:
        calls.append(1)
        raise ToolError("It broke")

    workflow = flow(called("a", on_failure="skip_dependents"), thought("b", "a"))
    capabilities = capable(plain_tool("work", work, idempotent=False))

    async def scene(session: Session) -> None:
        run = asyncio.create_task(arun_workflow(workflow, capabilities, session=session))

        def stop(_event: StepChanged) -> None:
            run.cancel()

        session.bus.subscribe(StepChanged, stop)
        await cancelled(run)
        session.bus.unsubscribe(StepChanged, stop)

    session = Session()
    for _ in range(3):
        asyncio.run(scene(session))
    assert run_workflow(workflow, capabilities, session=session).status == "completed"
    assert (calls, len(session.select_all(WorkflowRun))) == ([1], 1)


def test_what_breaks_in_a_session_of_others_stops_the_run_and_leaves_nothing_running() -> None:
    def refuse(_slice: tuple[Any, ...], event: StepChanged) -> tuple[Any, ...]:
        if event.record.step_id == "b":
            raise RuntimeError("not in my session")
        return ()

    slow = Slow()
    session = Session()
    session.register_reducer(StepChanged, refuse, Slow)
    with pytest.raises(RuntimeError, match=r"^not in my session$"):
        run_workflow(flow(called("a"), thought("b")), capable(work=slow.later), session=session)
    assert slow.told in ([], ["cancelled"])
    assert states(session.select_latest(Workflow)) == {"a": "pending", "b": "pending"}


def test_subscribers_that_fail_disturb_nothing() -> None:
    session = Session()

    def fail(event: object) -> None:
        raise ValueError(event)

    for kind in (StepChanged, RunChanged):
        session.bus.subscribe(kind, fail)
    result = run_workflow(flow(thought("a"), called("b", "a")), capable(work=lambda: 1), session=session)
    assert (result.status, dict(result.outputs)) == ("completed", {"a": "Do a", "b": 1})
