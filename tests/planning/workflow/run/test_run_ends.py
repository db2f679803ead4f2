"""Ctrl-C during a run, and tools that end the process: the run stops cleanly and can go on."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from run_cases import MAYBE, Slow, called, capable, flow, plain_tool, states, thought, tool_threads

from planning.tools.parameters.model import FreeModel
from planning.workflow import Workflow, run_workflow
from planning.workflow.run.records import WorkflowRun
from session import Session


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
