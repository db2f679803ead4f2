"""What is rare: impossible steps, a stop between two attempts, a session that is rolled back meanwhile."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any

import pytest
from run_cases import called, capable, flow, plain_tool, states, thought

from planning.tools import Tool, ToolContext
from planning.tools.guard import Retry
from planning.workflow import MemoryItem, Workflow, WorkflowError, arun_workflow, run_workflow
from session import Session, Snapshot


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"retries": -1}, "step 'a': retries must be a whole number of at least 0, got -1"),
        ({"retries": True}, "step 'a': retries must be a whole number of at least 0, got True"),
        (
            {"timeout": 0},
            "step 'a': a timeout must be seconds of more than 0, at most 1000000, or None; got 0",
        ),
        (
            {"on_failure": "stop"},
            "step 'a': 'stop' is unknown; send one of fail, skip_dependents, continue",
        ),
    ],
)
def test_a_step_that_no_document_could_hold_is_refused(fields: dict[str, Any], message: str) -> None:
    session = Session()
    with pytest.raises(WorkflowError) as refused:
        run_workflow(flow(thought("a", **fields)), capable(), session=session)
    assert str(refused.value) == message
    assert session.snapshot().slices == {}


def test_a_tool_that_must_not_run_twice_takes_no_retry() -> None:
    with pytest.raises(ValueError) as refused:
        Tool("pay", "", lambda: None, retry=Retry(), idempotent=False)
    assert str(refused.value) == "a tool that is not idempotent is never called twice: leave its retry out"


def test_of_a_private_output_nothing_is_known_after_a_resume_and_the_remedy_is_said() -> None:
    private = plain_tool("private", lambda: {"pin": 1}, returns_private_data=True)

    def broken() -> None:
        raise ConnectionError

    workflow = flow(
        called("a", tool="private"),
        called("b", tool="broken"),
        called("c", "a", "b", tool="work", inputs={"x": "${a.output.pin}"}),
    )
    first = run_workflow(workflow, capable(private, broken=broken, work=lambda x: x))
    session = Session()
    session.rollback(Snapshot.from_json(first.session.snapshot().to_json()))
    again = run_workflow(workflow, capable(private, broken=lambda: 1, work=lambda x: x), session=session)
    assert again.errors["c"].message == (
        "'${a.output.pin}' has no value: what step a gave is not known; let a store it under an expected_key"
    )


def test_a_memory_that_is_rolled_back_meanwhile_is_read_anew() -> None:
    session = Session()
    before = session.snapshot()

    def forget(context: ToolContext) -> None:
        assert context.session is not None
        context.session.rollback(before)

    workflow = flow(
        thought("a", expected_key="key"),
        called("b", "a", tool="forget"),
        thought("c", "b", done_check="memory.get('key') is None"),
    )
    result = run_workflow(workflow, capable(forget=forget), session=session)
    assert result.outputs == {"a": "Do a", "b": None}
    assert result.memory == {}
    assert [item.type for item in session.select_all(MemoryItem)] == ["step_skipped"]


@pytest.mark.parametrize("is_in_the_wait", [True, False])
def test_a_run_that_is_stopped_between_two_attempts_makes_no_other(
    is_in_the_wait: bool, monkeypatch: pytest.MonkeyPatch
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
            raise ConnectionError

        run = asyncio.ensure_future(
            arun_workflow(flow(called("a", retries=2)), capable(work=work), session=session)
        )
        await tried.wait()
        if is_in_the_wait:
            go_on.set()
            await asyncio.sleep(0.1)
        run.cancel()
        loop.call_later(0.02, go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await run

    session = Session()
    asyncio.run(scene(session))
    assert calls == [1]
    assert states(session.select_latest(Workflow)) == {"a": "pending"}


def test_a_call_that_ends_at_the_moment_of_the_stop_is_done() -> None:
    async def scene(session: Session) -> None:
        runs: list[asyncio.Task[Any]] = []

        async def work() -> int:
            await asyncio.sleep(0)
            runs[0].cancel()
            return 1

        tool = plain_tool("work", work, idempotent=False)
        workflow = flow(called("a"), thought("b", "a"))
        runs.append(asyncio.ensure_future(arun_workflow(workflow, capable(tool), session=session)))
        with pytest.raises(asyncio.CancelledError):
            await runs[0]

    session = Session()
    asyncio.run(scene(session))
    assert states(session.select_latest(Workflow)) == {"a": "completed", "b": "pending"}
