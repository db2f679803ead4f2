"""Stopping a run: by cancelling its task, by a timeout around it, by what breaks around it."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
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
    plain_tool,
    plan_notes,
    states,
    thought,
    tool_threads,
)

from planning.tools import ToolError
from planning.tools.guard import Retry
from planning.tools.parameters.model import FreeModel
from planning.workflow import Capabilities, Workflow, arun_workflow, run_workflow
from planning.workflow.run.records import StepChanged, StepRecord, WorkflowRun
from session import Session


def stop(
    workflow: Workflow, capabilities: Capabilities, slow: Slow, *, begun: int = 1, times: int = 1
) -> Session:
    """Run in a session of its own, and cancel so many times as soon as so many calls have begun."""
    session = Session()

    async def scene() -> None:
        run = asyncio.create_task(arun_workflow(workflow, capabilities, session=session, max_parallel=3))
        await slow.until_begun(begun)
        for _ in range(times):
            run.cancel()
            for _ in range(20):
                await asyncio.sleep(0)
            slow.was_awaited.append(not run.done())
        if times == 1:
            slow.may_end.set()
        await cancelled(run)
        slow.may_end.set()

    asyncio.run(scene())
    return session


def test_running_async_steps_are_cancelled_and_the_rest_is_pending() -> None:
    slow = Slow()
    steps = [thought("a"), called("b", tool="later"), called("c", "b"), called("d", tool="later")]
    session = stop(flow(*steps), capable(later=slow.later, work=slow.later), slow, begun=2)
    assert slow.told == ["cancelled", "cancelled"]
    workflow = session.select_latest(Workflow)
    assert states(workflow) == {"a": "completed", "b": "pending", "c": "pending", "d": "pending"}
    assert workflow is not None
    assert (workflow.status, workflow.completed_at) == ("in_progress", None)
    stopped = ("pending", ("Stopped before it was done",))
    assert plan_notes(session) == [("done", ("Thought through",)), stopped, ("pending", ()), stopped]
    last = session.select_all(StepRecord)[-2:]
    assert sorted(changes(last)) == [("b", "pending"), ("d", "pending")]


def test_steps_in_threads_are_awaited_and_their_outputs_are_kept() -> None:
    slow = Slow()
    calls = [called(step_id, tool="plain") for step_id in "abc"]
    workflow = flow(*calls, thought("d", "a"), thought("e", "c"))
    session = stop(workflow, capable(plain=slow.plain), slow, begun=3)
    assert slow.was_awaited == [True]
    statuses = dict.fromkeys("abc", "completed") | dict.fromkeys("de", "pending")
    assert states(session.select_latest(Workflow)) == statuses
    assert tool_threads("plain") == []
    again = run_workflow(workflow, capable(plain=Slow().plain), session=session)
    outputs = dict.fromkeys("abc", "from a thread") | {"d": "Do d", "e": "Do e"}
    assert dict(again.outputs) == outputs


@pytest.mark.parametrize("tool", ["plain", "careful"])
def test_a_second_cancelling_waits_for_nothing(tool: str) -> None:
    slow = Slow()
    workflow = flow(called("a"), thought("b", "a"))
    work = plain_tool("work", getattr(slow, tool), idempotent=False)
    session = stop(workflow, capable(work), slow, times=2)
    assert slow.was_awaited[0] is True
    assert states(session.select_latest(Workflow)) == {"a": "failed", "b": "pending"}
    twice = plain_tool("work", lambda: "twice!", idempotent=False)
    again = run_workflow(workflow, capable(twice), session=session)
    assert (again.status, dict(again.errors), dict(again.outputs)) == ("failed", {"a": MAYBE}, {})


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_call_that_must_not_be_made_twice_or_does_not_let_itself_be_cancelled_is_awaited(
    idempotent: bool,
) -> None:
    slow = Slow()

    async def stubborn() -> str:
        with suppress(asyncio.CancelledError):
            await slow.later()
        return "nevertheless"

    work = plain_tool("work", stubborn if idempotent else slow.careful, idempotent=idempotent)
    session = stop(flow(called("a"), thought("b", "a")), capable(work), slow)
    assert slow.told == ["cancelled" if idempotent else "careful"]
    assert states(session.select_latest(Workflow)) == {"a": "completed", "b": "pending"}


@pytest.mark.parametrize(
    ("is_in_the_wait", "retries", "idempotent", "state"),
    [
        (True, 2, True, "pending"),
        (False, 2, True, "pending"),
        (False, 0, True, "failed"),
        (False, 2, False, "failed"),
    ],
)
def test_a_run_that_is_stopped_between_two_attempts_makes_no_other_and_keeps_the_last_failure(
    is_in_the_wait: bool, retries: int, idempotent: bool, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr("planning.workflow.run.calls.Retry", partial(Retry, wait_initial=60, wait_max=60))

    async def scene(session: Session) -> None:
        tried, go_on = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def work() -> None:
            calls.append(1)
            loop.call_soon_threadsafe(tried.set)
            go_on.wait(10)
            raise ConnectionError("reset")

        tools = capable(plain_tool("work", work, idempotent=idempotent))
        run = asyncio.create_task(arun_workflow(flow(called("a", retries=retries)), tools, session=session))
        await tried.wait()
        if is_in_the_wait:
            go_on.set()
            await asyncio.sleep(0.1)
        run.cancel()
        loop.call_later(0.02, go_on.set)
        await cancelled(run)

    session = Session()
    asyncio.run(scene(session))
    assert (calls, states(session.select_latest(Workflow))) == ([1], {"a": state})
    error = session.select_all(StepRecord)[-1].error
    assert (None if error is None else error.cause) == ("reset" if state == "failed" else None)


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
    assert slow.told == []
    assert states(session.select_latest(Workflow)) == {"a": "pending", "b": "pending"}


@pytest.fixture(autouse=True)
def errors_of_asyncio(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What asyncio says of tasks that were left behind fails the test."""
    with caplog.at_level(logging.ERROR, "asyncio"):
        yield
    assert [each.getMessage() for each in caplog.get_records("call") if each.name == "asyncio"] == []


def ended_by(run: Callable[[], object]) -> type[BaseException] | None:
    """What a run ended with; whatever it left behind is found now."""
    kind = None
    try:
        run()
    except BaseException as error:  # noqa: BLE001 - the end of the process is what is asked for
        kind = type(error)
    gc.collect()
    return kind


@pytest.mark.parametrize(("error", "is_async"), [(KeyboardInterrupt, True), (SystemExit, False)])
def test_a_tool_that_ends_the_process_ends_the_run_and_what_else_runs_is_cancelled(
    error: type[BaseException], is_async: bool
) -> None:
    slow = Slow()

    def work() -> None:
        raise error("now")

    async def later() -> None:
        work()

    steps = [called("a", tool="later"), called("b"), thought("c", "b")]
    session = Session()
    capabilities = capable(later=slow.later, work=later if is_async else work)
    assert ended_by(lambda: run_workflow(flow(*steps), capabilities, session=session)) is error
    assert slow.told == ["cancelled"]
    assert states(session.select_latest(Workflow)) == {"a": "pending", "b": "pending", "c": "pending"}
    assert tool_threads("later", "work") == []


def test_ctrl_c_stops_a_run_cleanly_and_it_can_go_on() -> None:
    import signal

    slow = Slow()

    async def work() -> str:
        signal.raise_signal(signal.SIGINT)
        return await slow.later()

    session = Session()
    workflow = flow(thought("a"), called("b", "a"), thought("c", "b"))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        ended = ended_by(lambda: run_workflow(workflow, capable(work=work), session=session))
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended is KeyboardInterrupt
    assert states(session.select_latest(Workflow)) == {"a": "completed", "b": "pending", "c": "pending"}
    result = run_workflow(workflow, capable(work=lambda: "again"), session=session)
    assert dict(result.outputs) == {"a": "Do a", "b": "again", "c": "Do c"}
    assert len(session.select_all(WorkflowRun)) == 1


@pytest.mark.parametrize(
    "options", [{}, {"parameters": FreeModel(), "publishes": "own"}], ids=["plain", "own"]
)
def test_a_tool_that_must_not_be_called_twice_and_ends_the_process_is_not_called_again(options: Any) -> None:
    calls: list[int] = []

    def work(_params: Any = None, _context: Any = None) -> None:
        calls.append(1)
        raise KeyboardInterrupt

    session = Session()
    capabilities = capable(plain_tool("work", work, idempotent=False, **options))
    assert (
        ended_by(lambda: run_workflow(flow(called("a")), capabilities, session=session)) is KeyboardInterrupt
    )
    assert states(session.select_latest(Workflow)) == {"a": "failed"}
    result = run_workflow(flow(called("a")), capabilities, session=session)
    assert (calls, dict(result.errors)) == ([1], {"a": MAYBE})
