"""Calls that are written down, carried out elsewhere, and read again."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from functools import partial
from typing import Any

import executor_tools as tools
import pytest
from executor_tools import Own, capable, failure, flow, step

from planning.tools import StorageUnavailable, Tool, ToolContext, tool
from planning.tools.guard import Retry
from planning.workflow import run_workflow
from planning.workflow.executors.jobs import Job, run_job, unpack
from planning.workflow.failures import WorkerLost

FAILED = "fail failed. Call it again, or go on without it."
DEFINE = "define its function at the top of a module, give it plain values, or run it without an executor"
NO_DATA = "fail cannot reach its data now. Try again later, or go on without it."


def carried(called: Any, inputs: dict[str, Any] | None = None, **options: Any) -> Any:
    """What comes of a call that was written down: its output, or the error of its step."""
    result = run_workflow(
        flow(step("s", called.name, inputs=inputs, **options)), capable(called), executor=Own()
    )
    return {**result.outputs, **result.errors}["s"]


def raising(make: Callable[[], BaseException]) -> Tool:
    """A tool that raises what it makes itself."""

    def fail() -> None:
        raise make()

    return Tool("fail", "", fail)


GREET = tools.Greet("Hello")
NUMBER = 7


@tool
def keep(value: Any) -> Any:
    return value


def local() -> Tool:
    @tool
    def inner(a: int) -> int:
        return a + 1

    return inner


def placed_in(module: str | None) -> Tool:
    """A tool whose function says that it is of this module."""

    def here(a: int) -> int:
        return a

    here.__module__ = module  # type: ignore[assignment]  # what is made from source may have none
    return Tool("here", "", here)


@pytest.mark.parametrize(
    ("called", "inputs", "output"),
    [
        (tools.add, {"a": 1, "b": 2}, 3),
        (tools.add_later, {"a": 1, "b": 2}, 3),
        (Tool("times", "", tools.times), {"a": 3}, 6),
        (Tool("twice", "", tools.twice), {"a": 3}, 6),
        (Tool("closed", "", lambda a: a + NUMBER), {"a": 1}, 8),
        (Tool("inner", "", tools.Outer.inner), {"a": 3}, 3),
        (local(), {"a": 1}, 2),
        (placed_in("__main__"), {"a": 4}, 4),
        (placed_in(None), {"a": 4}, 4),
        (tools.ADD_PAIR, {"a": 1, "b": 2}, 3),
        (tools.FACTS, {"query_type": "pair", "parameters": {"a": 1, "b": 2}}, ["pair", 1, "s"]),
        (GREET, {"who": "Ann"}, "Hello Ann"),
    ],
    ids=range(12),
)
def test_a_tool_of_any_form_can_be_carried_elsewhere(called: Any, inputs: Any, output: Any) -> None:
    assert carried(called, inputs) == output


def test_a_decorated_tool_travels_by_its_name_alone() -> None:
    executor = Own()
    run_workflow(flow(step("s", "add", inputs={"a": 1, "b": 2})), capable(tools.add), executor=executor)
    (sent,) = executor.sent
    assert b"executor_tools" in sent
    assert len(sent) < 800


def test_the_retries_of_a_tool_happen_where_it_runs() -> None:
    calls = []

    def shaky() -> int:
        calls.append(1)
        if len(calls) < 3:
            raise StorageUnavailable("not yet")
        return len(calls)

    retry = Retry(attempts=3, wait_initial=0, wait_max=0, wait_jitter=0)
    assert carried(Tool("shaky", "", shaky, retry=retry)) == 3


class Closed(StorageUnavailable):
    """It cannot be carried."""

    def __init__(self) -> None:
        super().__init__("closed today")
        self.lock = threading.Lock()


class Local(Exception):
    """An exception of the test's own."""


class Turning(Exception):
    """An exception that comes back as another."""

    def __reduce__(self) -> Any:
        return ValueError, ("something else",)


async def give_up() -> None:
    raise asyncio.CancelledError


NOT_SENT: list[tuple[Any, dict[str, Any], str]] = [
    (Tool("bound", "", threading.Lock().acquire), {},
     "bound cannot be sent to another process (cannot pickle '_thread.lock' object); " + DEFINE),
    (keep, {"value": tools.Unwritable()},
     "keep cannot be sent to another process (this stays here); " + DEFINE),
    (keep, {"value": tools.Unreadable()},
     "a worker could not load what it is to run (this does not come back); its modules must be installed "
     "where the workers run"),
    (tools.give_unreadable, {},
     "what came back cannot be read here (this does not come back); let the tool return plain values"),
]  # fmt: skip
RAISED: list[tuple[Callable[[], BaseException], Any]] = [
    (lambda: ValueError("no", 3), failure(FAILED, cause="('no', 3)")),
    (lambda: Local("mine"), failure(FAILED, cause="mine")),
    (lambda: Turning("turned"), failure(FAILED, cause="Turning: turned")),
    (lambda: ConnectionError("gone"), failure(NO_DATA, "storage", "gone")),
    (lambda: FileNotFoundError("gone"), failure("fail found nothing.", "data_not_found", "gone")),
    (lambda: PermissionError("gone"), failure(FAILED, cause="gone")),
    (Closed, failure("closed today", "storage")),
    (tools.NeverMade, failure("NeverMade", "tool")),
    (CancelledError, failure(FAILED, "cancelled", "CancelledError")),
    (tools.Talking, failure("fail ended with Talking", "interrupted")),
    *(
        (each, failure(f"fail ended with {each.__name__}", "interrupted"))
        for each in (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)
    ),
]
ERRORS: list[tuple[Any, dict[str, Any], Any]] = [
    *((called, inputs, failure(message, "not_sent")) for called, inputs, message in NOT_SENT),
    *((raising(make), {}, error) for make, error in RAISED),
    (Tool("give_up", "", give_up), {}, failure("give_up ended with CancelledError", "interrupted")),
]


@pytest.mark.parametrize(("called", "inputs", "error"), ERRORS, ids=range(len(ERRORS)))
def test_a_failure_of_a_carried_call_keeps_its_message_and_its_code(
    called: Any, inputs: Any, error: Any
) -> None:
    assert carried(called, inputs) == error


@pytest.mark.parametrize("function", [tools.hang.function, tools.hang_async])
def test_a_call_has_its_time_where_it_runs(function: Any) -> None:
    told = "hang took longer than 0.05 s and was given up; call it again, or go on without it"
    assert carried(Tool("hang", "", function), timeout=0.05) == failure(told, "timeout")


def test_a_lambda_needs_cloudpickle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    message = carried(Tool("twice", "", tools.twice), {"a": 1}).message
    assert message.startswith("twice cannot be sent to another process (Can't pickle <function <lambda> at")
    assert message.endswith(DEFINE)


# Claims


def test_a_job_runs_only_where_its_claim_is_free(tmp_path: Any) -> None:
    calls = tmp_path / "calls"
    free, taken = (
        Job(tools.once, {"path": str(calls)}, ToolContext(), None).written(partial(bool, is_free))
        for is_free in (True, False)
    )
    assert (unpack(run_job(free)), tools.count(calls)) == ("done", 1)
    with pytest.raises(WorkerLost) as lost:
        unpack(run_job(taken))
    assert (lost.value.message, lost.value.code, tools.count(calls)) == (
        "the worker that ran once died; once may have taken effect, so it is not run again",
        "worker_lost",
        1,
    )
