"""Calls that are written down, carried out elsewhere, and read again."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import executor_tools as tools
import pytest
from executor_tools import Own, failure, step
from run_cases import capable, flow

from planning.tools import StorageUnavailable, Tool, tool
from planning.workflow import run_workflow
from planning.workflow.executors import open_executor

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
    def fail() -> None:
        raise make()

    return Tool("fail", "", fail)


GREET = tools.Greet("Hello")
NUMBER = 7


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
        (Tool("twice", "", tools.twice), {"a": 3}, 6),
        (Tool("closed", "", lambda a: a + NUMBER), {"a": 1}, 8),
        (Tool("inner", "", tools.Outer.inner), {"a": 3}, 3),
        (local(), {"a": 1}, 2),
        (placed_in(None), {"a": 4}, 4),
        (tools.ADD_PAIR, {"a": 1, "b": 2}, 3),
        (tools.FACTS, {"query_type": "pair", "parameters": {"a": 1, "b": 2}}, ["pair", 1, "s"]),
        (GREET, {"who": "Ann"}, "Hello Ann"),
    ],
    ids=range(10),
)
def test_a_tool_of_any_form_can_be_carried_elsewhere(called: Any, inputs: Any, output: Any) -> None:
    assert carried(called, inputs) == output


class Closed(StorageUnavailable):
    def __init__(self) -> None:
        super().__init__("closed today")
        self.lock = threading.Lock()


class Turning(Exception):
    def __reduce__(self) -> Any:
        return ValueError, ("something else",)


async def give_up() -> None:
    raise asyncio.CancelledError


NOT_SENT: list[tuple[Any, dict[str, Any], str]] = [
    (Tool("bound", "", threading.Lock().acquire), {},
     "bound cannot be sent to another process (cannot pickle '_thread.lock' object); " + DEFINE),
    (tools.give_unreadable, {},
     "the result cannot be read here (this does not come back); let the tool return plain values"),
]  # fmt: skip
RAISED: list[tuple[Callable[[], BaseException], Any]] = [
    (lambda: ValueError("no", 3), failure(FAILED, cause="('no', 3)")),
    (lambda: Turning("turned"), failure(FAILED, cause="Turning: turned")),
    (lambda: ConnectionError("gone"), failure(NO_DATA, "storage", "gone")),
    (lambda: FileNotFoundError("gone"), failure("fail found nothing.", "data_not_found", "gone")),
    (Closed, failure("closed today", "storage")),
    (tools.NeverMade, failure("NeverMade", "tool")),
    (tools.Talking, failure("fail ended with Talking", "interrupted")),
    *(
        (each, failure(f"fail ended with {each.__name__}", "interrupted"))
        for each in (SystemExit, KeyboardInterrupt, asyncio.CancelledError)
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


def test_a_function_that_travels_whole_shares_nothing_with_the_next_call() -> None:
    seen: list[int] = []

    def note() -> int:
        seen.append(1)
        return len(seen)

    result = run_workflow(
        flow(step("1", "note"), step("2", "note", "1")), capable(Tool("note", "", note)), executor=Own()
    )
    assert (dict(result.outputs), seen) == ({"1": 1, "2": 1}, [])


def test_a_lambda_needs_cloudpickle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    message = carried(Tool("twice", "", tools.twice), {"a": 1}).message
    assert message.startswith("twice cannot be sent to another process (Can't pickle <function <lambda> at")
    assert message.endswith(DEFINE)


STEPS = flow(step("1", "add", inputs={"a": 1, "b": 2}))


@pytest.mark.parametrize("name", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_a_name_opens_its_executor(name: str) -> None:
    with open_executor(name, 2) as executor:
        assert run_workflow(STEPS, capable(tools.add), executor=executor).outputs == {"1": 3}
    again = run_workflow(STEPS, capable(tools.add), executor=executor)
    assert again.status == "failed"


@pytest.mark.parametrize("name", ["gpu", "Threads", "dask://host", "dask://host:x", "threads "])
def test_an_unknown_name_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(ValueError, match=r"^Unknown executor ") as caught:
        open_executor(name, 2)
    assert str(caught.value) == f"Unknown executor '{name}'. Use threads, processes or dask://HOST:PORT."


class Failing(Executor):
    def __init__(self, error: Exception) -> None:
        self.error = error

    def submit(self, _function: Any, /, *_args: Any, **_kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(self.error)
        return future


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (LookupError("no such module"), "the executor could not run add (no such module)", "not_sent"),
        (
            TimeoutError(),
            "add took longer than 5 s and was given up; call it again, or go on without it",
            "timeout",
        ),
    ],
)
def test_what_the_future_fails_with_is_the_error_of_the_step(
    error: Exception, message: str, code: str
) -> None:
    result = run_workflow(
        flow(step("1", "add", inputs={"a": 1, "b": 2}, timeout=5)),
        capable(tools.add),
        executor=Failing(error),
    )
    assert result.errors == {"1": failure(message, code)}
