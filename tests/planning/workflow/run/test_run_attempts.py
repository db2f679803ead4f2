"""Retries and timeouts: what is tried again, how often, and what is given up."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import stamina
from run_cases import called, capable, flow, heard, plain_tool, plan_of, thought, told

from planning.tools import StorageUnavailable, ToolError, ToolResult
from planning.tools.errors import RateLimitExceeded
from planning.workflow import run_workflow
from planning.workflow.run.records import StepRecord
from session import Session


@pytest.fixture(autouse=True)
def _at_once() -> Iterator[None]:
    """Retries that do not wait, and are as many as they are."""
    with stamina.set_testing(True, attempts=1000, cap=True):
        yield


PASSING = [
    ConnectionError("reset"),
    StorageUnavailable("down"),
    RateLimitExceeded("too often"),
    {"success": False, "error": "slow", "code": "timeout"},
    ToolResult(False, "too often", code="rate_limit"),  # type: ignore[arg-type] # tools give plain words too
]
LASTING = [ValueError("wrong"), ToolError("refused"), {"success": False, "error": "no"}]


def run(*failures: Any, retries: int, **options: Any) -> tuple[int, Any, list[StepRecord], tuple[str, ...]]:
    """Run a step whose tool fails in these ways, one after the other, and then returns its calls.

    Returns:
        How often it was called, the output or the error, the records of the step, and its notes in the plan.
    """
    session, calls = Session(), list[int]()

    def work() -> Any:
        calls.append(1)
        failure = failures[len(calls) - 1] if len(calls) <= len(failures) else len(calls)
        if isinstance(failure, BaseException):
            raise failure
        return failure

    records = heard(session)
    step = called("a", retries=retries)
    result = run_workflow(flow(step), capable(plain_tool("work", work, **options)), session=session)
    return len(calls), {**result.outputs, **result.errors}["a"], records, plan_of(session).steps[0].notes


@pytest.mark.parametrize("failure", PASSING)
def test_what_may_pass_by_itself_is_tried_again_and_every_attempt_is_recorded(failure: Any) -> None:
    calls, output, records, notes = run(failure, failure, retries=3)
    assert (calls, output, notes) == (3, 3, ("3",))
    assert [(each.status, each.attempt, each.called) for each in records] == [
        ("in_progress", 1, True),
        ("in_progress", 2, True),
        ("in_progress", 3, True),
        ("completed", 3, True),
    ]


@pytest.mark.parametrize("failure", LASTING)
def test_what_does_not_pass_is_not_tried_again(failure: Any) -> None:
    assert run(failure, retries=5)[0] == 1


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_after_the_last_attempt_the_last_failure_is_the_error(retries: int) -> None:
    calls, error, _, _ = run(*(ConnectionError(str(each)) for each in range(9)), retries=retries)
    message = "work cannot reach its data now. Try again later, or go on without it."
    assert (calls, error) == (1 + retries, told(message, "storage", cause=str(retries)))


@pytest.mark.parametrize("failure", [ConnectionError("x"), {"success": False, "code": "storage"}])
def test_a_step_whose_tool_is_not_idempotent_is_never_tried_again(failure: Any) -> None:
    calls, error, records, _ = run(failure, retries=5, idempotent=False)
    assert (calls, error.code) == (1, "storage")
    assert [(each.status, each.attempt, each.called) for each in records] == [
        ("in_progress", 1, False),
        ("in_progress", 1, True),
        ("failed", 1, True),
    ]


@pytest.mark.parametrize(
    ("step", "run_options", "tool_options"),
    [
        pytest.param(called("a", timeout=0.01), {}, {}, id="of the step"),
        pytest.param(called("a"), {"timeout": 0.01}, {}, id="of the run"),
        pytest.param(called("a"), {}, {"timeout": 0.01}, id="of the tool"),
        pytest.param(called("a", timeout=0.01), {"timeout": 60}, {"timeout": 60}, id="the step's goes first"),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
def test_a_tool_that_hangs_is_given_up(
    step: Any, run_options: Any, tool_options: Any, is_async: bool
) -> None:
    let, ended = threading.Event(), list[str]()

    async def later() -> None:
        try:
            await asyncio.sleep(5)
        finally:
            ended.append("cancelled")

    tool = plain_tool("work", later if is_async else lambda: let.wait(10), **tool_options)
    result = run_workflow(flow(step, thought("b")), capable(tool), **run_options)
    let.set()
    message = "work took longer than 0.01 s and was given up; call it again, or go on without it"
    assert dict(result.errors) == {"a": told(message, "timeout")}
    assert (dict(result.outputs), ended) == ({"b": "Do b"}, ["cancelled"] if is_async else [])


def test_a_library_that_is_missing_is_said_before_anything_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    find: Callable[..., Any] = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, "stamina", None)
    monkeypatch.setattr(
        "planning.tools.guard.find_spec", lambda name: None if name == "stamina" else find(name)
    )
    session = Session()
    before = session.snapshot()
    with pytest.raises(ImportError, match=r"^retrying needs stamina: pip install "):
        run_workflow(flow(called("a", retries=1)), capable(work=lambda: 1), session=session)
    assert session.snapshot() == before
