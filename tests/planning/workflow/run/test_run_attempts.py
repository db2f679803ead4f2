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
from run_cases import called, capable, changes, flow, heard, plain_tool, plan_of, thought, told

from planning.tools import StorageUnavailable, ToolError, ToolResult
from planning.tools.errors import RateLimitExceeded
from planning.tools.guard import CircuitBreaker
from planning.workflow import Capabilities, run_workflow
from planning.workflow.run.records import StepRecord
from session import Session

GIVEN_UP = "work took longer than 0.01 s and was given up; call it again, or go on without it"


@pytest.fixture(autouse=True)
def _at_once() -> Iterator[None]:
    """Retries that do not wait, and are as many as they are."""
    with stamina.set_testing(True, attempts=1000, cap=True):
        yield


class Flaky:
    """Fails in these ways, one after the other, then gives how often it was called."""

    def __init__(self, *failures: Any) -> None:
        self.failures = list(failures)
        self.calls = 0

    def __call__(self) -> Any:
        self.calls += 1
        failure = self.failures.pop(0) if self.failures else None
        if isinstance(failure, BaseException):
            raise failure
        return self.calls if failure is None else failure

    async def later(self) -> Any:
        return self()


PASSING = [
    ConnectionError("reset"),
    TimeoutError("slow"),
    StorageUnavailable("down"),
    RateLimitExceeded("too often"),
    {"success": False, "error": "down", "code": "storage"},
    {"success": False, "error": "slow", "code": "timeout"},
    ToolResult(False, "too often", code="rate_limit"),  # type: ignore[arg-type] # tools give plain words too
]
LASTING = [
    ValueError("wrong"),
    ToolError("refused"),
    OSError("no such file"),
    {"success": False, "error": "no", "code": "data_not_found"},
    {"success": False, "error": "no"},
]


def run(flaky: Flaky, retries: int, is_async: bool = False, **options: Any) -> tuple[Any, list[StepRecord]]:
    session = Session()
    records = heard(session)
    tool = plain_tool("work", flaky.later if is_async else flaky, **options)
    result = run_workflow(flow(called("a", retries=retries)), capable(tool), session=session)
    return {**result.outputs, **result.errors}["a"], records


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("failure", PASSING)
def test_what_may_pass_by_itself_is_tried_again(failure: Any, is_async: bool) -> None:
    flaky = Flaky(failure, failure)
    assert run(flaky, 2, is_async)[0] == 3


@pytest.mark.parametrize("failure", LASTING)
def test_what_does_not_pass_is_not_tried_again(failure: Any) -> None:
    flaky = Flaky(failure)
    output, _ = run(flaky, 5)
    assert (flaky.calls, output.user_message != "") == (1, True)


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_after_the_last_attempt_the_last_failure_is_the_error(retries: int) -> None:
    flaky = Flaky(*(ConnectionError(str(number)) for number in range(10)))
    output, _ = run(flaky, retries)
    message = "work cannot reach its data now. Try again later, or go on without it."
    assert (flaky.calls, output) == (1 + retries, told(message, "storage", cause=str(retries)))


def test_every_attempt_is_recorded_and_shown_in_the_plan() -> None:
    session = Session()
    records = heard(session)
    flaky = Flaky(ConnectionError(), ConnectionError())
    run_workflow(flow(called("a", retries=3)), capable(work=flaky), session=session)
    assert [(each.status, each.attempt, each.called) for each in records] == [
        ("in_progress", 1, True),
        ("in_progress", 2, True),
        ("in_progress", 3, True),
        ("completed", 3, True),
    ]
    plan = plan_of(session)
    assert plan.steps[0].notes == ("3",)


@pytest.mark.parametrize("failure", [ConnectionError("x"), {"success": False, "code": "storage"}])
def test_a_step_whose_tool_is_not_idempotent_is_never_tried_again(failure: Any) -> None:
    flaky = Flaky(failure)
    output, records = run(flaky, 5, idempotent=False)
    assert (flaky.calls, output.code) == (1, "storage")
    assert [(each.status, each.attempt, each.called) for each in records] == [
        ("in_progress", 1, False),
        ("in_progress", 1, True),
        ("failed", 1, True),
    ]


def test_a_breaker_that_opens_is_not_got_round_by_trying_again() -> None:
    flaky = Flaky(ConnectionError(), ConnectionError(), ConnectionError())
    breaker = CircuitBreaker(failures=2)
    output, _ = run(flaky, 3, breaker=breaker)
    assert (flaky.calls, output.code) == (2, "circuit_open")


# Timeouts


class Hanging:
    """A tool that hangs, here or in a thread, and what became of it."""

    def __init__(self) -> None:
        self.calls = 0
        self.ended: list[str] = []
        self.let = threading.Event()

    def plain(self) -> str:
        self.calls += 1
        self.let.wait(10)
        return "late"

    async def later(self) -> None:
        self.calls += 1
        try:
            await asyncio.sleep(5)
        finally:
            self.ended.append("cancelled")


def hang(step: Any, options: dict[str, Any], tool_options: dict[str, Any], *, is_async: bool = True) -> Any:
    hanging = Hanging()
    tool = plain_tool("work", hanging.later if is_async else hanging.plain, **tool_options)
    result = run_workflow(flow(step, thought("b")), capable(tool), **options)
    hanging.let.set()
    assert result.outputs.get("b") == "Do b"
    return hanging, result.errors["a"]


@pytest.mark.parametrize(
    ("step", "run_options", "tool_options"),
    [
        pytest.param(called("a", timeout=0.01), {}, {}, id="of the step"),
        pytest.param(called("a"), {"timeout": 0.01}, {}, id="of the run"),
        pytest.param(called("a"), {}, {"timeout": 0.01}, id="of the tool"),
        pytest.param(called("a", timeout=0.01), {"timeout": 60}, {"timeout": 60}, id="the step's goes first"),
        pytest.param(called("a"), {"timeout": 60}, {"timeout": 0.01}, id="the tool's goes before the run's"),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
def test_a_tool_that_hangs_is_given_up(
    step: Any, run_options: Any, tool_options: Any, is_async: bool
) -> None:
    hanging, error = hang(step, run_options, tool_options, is_async=is_async)
    assert error == told(GIVEN_UP, "timeout")
    assert hanging.ended == (["cancelled"] if is_async else [])


@pytest.mark.parametrize(
    ("options", "is_async", "calls"),
    [({}, True, 3), ({"idempotent": False}, True, 1), ({"idempotent": False}, False, 1)],
)
def test_each_attempt_has_the_whole_time_and_a_call_that_must_not_be_repeated_is_not(
    options: dict[str, Any], is_async: bool, calls: int
) -> None:
    hanging, error = hang(called("a", timeout=0.01, retries=2), {}, options, is_async=is_async)
    assert (hanging.calls, error) == (calls, told(GIVEN_UP, "timeout"))
    assert hanging.ended == ["cancelled"] * (calls if is_async else 0)


def test_steps_of_every_kind_have_timeouts_of_their_own_also_with_one_tool() -> None:
    later = Hanging().later

    async def quick() -> str:
        await asyncio.sleep(0)
        return "in time"

    steps = [called("a", timeout=0.01), called("b", timeout=0.02), called("c", timeout=30, tool="quick")]
    steps += [
        thought("d", timeout=0.03, type="handler", name="work"),
        thought("e", timeout=0.04, agent="work"),
    ]
    tools = [plain_tool("work", later), plain_tool("quick", quick)]
    capabilities = Capabilities(tools=tools, handlers={"work": later}, agents={"work": later})
    result = run_workflow(flow(*steps), capabilities, timeout=60)
    message = "work took longer than {} s and was given up; call it again, or go on without it"
    times = {"a": 0.01, "b": 0.02, "d": 0.03, "e": 0.04}
    assert dict(result.errors) == {
        each: told(message.format(time), "timeout") for each, time in times.items()
    }
    assert dict(result.outputs) == {"c": "in time"}


def test_a_timeout_error_of_the_tools_own_is_no_timeout_of_the_step() -> None:
    output, records = run(Flaky(TimeoutError("socket")), 0)
    message = "work did not answer in time. Call it again, or go on without it."
    assert output == told(message, "timeout", cause="socket")
    assert changes(records) == [("a", "in_progress"), ("a", "failed")]


def test_a_library_that_is_missing_is_said_before_anything_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    find: Callable[..., Any] = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, "stamina", None)
    monkeypatch.setattr(
        "planning.tools.guard.find_spec", lambda name: None if name == "stamina" else find(name)
    )
    message = "retrying needs stamina: pip install 'session-planning[retry]'"
    session = Session()
    before = session.snapshot()
    with pytest.raises(ImportError) as refused:
        run_workflow(
            flow(thought("z"), called("a", "z", retries=1)), capable(work=lambda: 1), session=session
        )
    assert (str(refused.value), session.snapshot()) == (message, before)
