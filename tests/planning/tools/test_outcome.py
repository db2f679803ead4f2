"""Outcomes: what a tool returned or raised, as a result."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from ipaddress import ip_address
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest

from planning.tools import (
    BaseTool,
    CircuitBreaker,
    ErrorKind,
    Retry,
    Tool,
    Toolbox,
    ToolError,
    ToolRegistry,
    ToolResult,
    UserInputNeeded,
    execute_tools,
    tool_calls,
)
from planning.tools.envelopes import pipeline_envelope
from planning.tools.outcome import is_cancelling, redacted
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from session import Session


def tool(outcome: Any, **options: Any) -> Tool:
    return Tool("t", "T.", lambda: outcome, **options)


def call(outcome: Any, **options: Any) -> ToolResult:
    return Toolbox([tool(outcome, **options)]).call("t")


def told(result: ToolResult) -> tuple[Any, ...]:
    return result.success, result.message, result.value, result.error, result.user_message, result.code


@pytest.mark.parametrize(
    ("outcome", "message", "user_message"),
    [
        ({"success": True, "data": {"a": 1}, "user_message": "Seen."}, '{"a":1}', "Seen."),
        ({"success": True}, "Done.", None),
        ({"success": True, "data": "text", "error": "none", "user_message": 5}, "text", None),
    ],
)
def test_an_outcome_that_says_success_is_its_data(
    outcome: dict[str, Any], message: str, user_message: str | None
) -> None:
    result = call(outcome, returns_outcome=True)
    assert told(result) == (True, message, outcome.get("data"), None, user_message, None)


@pytest.mark.parametrize("returns_outcome", [False, True])
@pytest.mark.parametrize(
    ("outcome", "error", "user_message"),
    [
        ({"success": False, "error": "no luck", "user_message": "Sorry."}, "no luck", "Sorry."),
        ({"success": False, "data": 1}, "t reported a failure", None),
        ({"success": False, "error": " "}, "t reported a failure", None),
        ({"success": False, "error": ValueError("x"), "user_message": 5}, "t reported a failure", None),
        ({"success": False, "error": "x", "needs_user_input": True}, "x", None),
        ({"success": False, "error": "x", "input_request": "Who?"}, "x", None),
    ],
)
def test_a_reported_failure_is_a_failure_with_its_own_words(
    outcome: dict[str, Any], error: str, user_message: str | None, returns_outcome: bool
) -> None:
    result = call(outcome, returns_outcome=returns_outcome)
    value = outcome.get("data") if returns_outcome else outcome
    assert told(result) == (False, error, value, error, user_message, ErrorKind.TOOL)
    assert (result.cause, result.needs_user_input) == (error, False)


def test_a_reported_question_is_put_to_the_user() -> None:
    outcome = {"success": False, "error": "x", "needs_user_input": True, "input_request": "Who?"}
    result = call(outcome, returns_outcome=True)
    assert (result.code, result.input_request, result.needs_user_input) == (
        ErrorKind.NEEDS_USER_INPUT,
        "Who?",
        True,
    )


@pytest.mark.parametrize("request_", [5, ["Who?"]])
def test_a_reported_question_that_is_no_text_is_no_question(request_: Any) -> None:
    outcome = {"success": False, "error": "x", "needs_user_input": True, "input_request": request_}
    result = call(outcome, returns_outcome=True)
    assert (result.code, result.input_request, result.needs_user_input) == (ErrorKind.TOOL, None, False)


class Ambiguous:
    """Like an array, neither true nor false."""

    def __bool__(self) -> bool:
        raise ValueError("ambiguous")

    def __repr__(self) -> str:
        return "Ambiguous()"


NO: list[Any] = [
    False, 0, 0.0, None, "", " ", "0", "false", "False", " FALSE\n", "no", "No", "none", "null", "off", "f",
    "n", "failed", "Failure", "error", [], {}, (), Ambiguous(),
]  # fmt: skip
YES: list[Any] = [True, 1, 5, -1, 0.5, "true", "yes", "Order 5 was placed", [1], {"a": 1}]


@dataclass
class Said:
    success: Any
    error: str | None = None


@attrs.frozen
class SaidFrozen:
    success: Any
    error: str | None = None


class SaidByPydantic(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    success: Any
    error: str | None = None


class SaidByStruct(msgspec.Struct):
    success: Any
    error: str | None = None


class SaidByTuple(NamedTuple):
    success: Any
    error: str | None = None


def as_dict(success: Any, error: str | None = None) -> dict[str, Any]:
    return {"success": success, "error": error}


def as_read_only(success: Any, error: str | None = None) -> Mapping[str, Any]:
    return MappingProxyType(as_dict(success, error))


@attrs.frozen
class SaidWithCode:
    success: Any
    code: str


def as_model(success: Any, error: str | None = None) -> SaidByPydantic:
    return SaidByPydantic(success=success, error=error)


FORMS: list[Callable[..., Any]] = [
    as_dict, as_read_only, Said, SaidFrozen, as_model, SaidByStruct, SaidByTuple,
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("success", NO, ids=repr)
def test_whatever_says_no_is_a_failure_in_every_form(success: Any, form: Callable[..., Any]) -> None:
    outcome = form(success, "no luck")
    result = call(outcome)
    assert told(result) == (False, "no luck", outcome, "no luck", None, ErrorKind.TOOL)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("success", YES, ids=repr)
def test_anything_else_under_success_is_a_value(success: Any, form: Callable[..., Any]) -> None:
    outcome = form(success)
    result = call(outcome)
    assert (result.success, result.value, result.error) == (True, outcome, None)


def test_a_mapping_without_success_is_a_value() -> None:
    assert call({"successful": False}).success


@pytest.mark.parametrize("success", NO, ids=repr)
def test_whatever_says_no_is_a_failure_of_execute_and_of_a_tools_own_result(success: Any) -> None:
    result = call({"success": success, "error": "no luck", "data": 1}, returns_outcome=True)
    assert told(result) == (False, "no luck", 1, "no luck", None, ErrorKind.TOOL)
    own = call(ToolResult(success, "no luck", elapsed=0.5))
    assert (own.success, own.message, own.elapsed, own.code) == (False, "no luck", 0.5, ErrorKind.TOOL)


@pytest.mark.parametrize("success", [0, None, "false"])
def test_a_returned_failure_is_one_everywhere(success: Any, session: Session) -> None:
    breaker = CircuitBreaker(failures=2)
    fails = tool({"success": success, "error": "no luck"}, breaker=breaker)
    assert fails.execute()["error"] == "no luck"
    state = {"tool_calls": [{"tool": "t"}]}
    piped = asyncio.run(execute_tools(state, registry=ToolRegistry([fails]), session=session))
    assert piped["tool_results"]["t"] == {
        "success": False,
        "data": {"success": success, "error": "no luck"},
        "error": "no luck",
        "user_message": None,
        "code": "tool",
    }
    assert [line.outcome for line in tool_calls(session)] == ["tool"]
    assert breaker.state == "open"
    step = WorkflowStep(step_id="a", description="A.", type="tool", name="t")
    capabilities = Capabilities(tools={"t": tool({"success": success, "error": "no luck"})})
    run = run_workflow(Workflow(steps=(step,)), capabilities)
    assert (run.status, run.errors["a"].message) == ("failed", "no luck")


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("timeout", [None, 20.0])
@pytest.mark.parametrize(
    ("outcome", "tries"),
    [
        ({"success": False, "code": "storage"}, 3),
        ({"success": 0, "code": "timeout"}, 3),
        (ToolResult(False, "later", code=ErrorKind.STORAGE), 3),
        (ToolResult(False, "later", code="timeout"), 3),  # type: ignore[arg-type]  # what is tested
        (SaidWithCode(False, "storage"), 3),
        ({"success": False}, 1),
        ({"success": False, "code": "data_not_found"}, 1),
        ({"success": True, "code": "storage"}, 1),
        (ToolResult(True, "done", code=ErrorKind.STORAGE), 1),
        ("storage", 1),
    ],
    ids=repr,
)
def test_a_returned_failure_is_tried_again_where_its_exception_would_be(
    outcome: Any, tries: int, timeout: float | None, is_async: bool
) -> None:
    made: list[int] = []

    def plain() -> Any:
        made.append(1)
        return outcome

    async def slow() -> Any:
        return plain()

    retry = Retry(attempts=3, wait_initial=0, wait_max=0, wait_jitter=0)
    tried = Tool("t", "T.", slow if is_async else plain, retry=retry, timeout=timeout)
    once = Tool("t", "T.", slow if is_async else plain)
    got, expected = Toolbox([tried]).call("t"), Toolbox([once]).call("t")
    assert (told(got), len(made)) == (told(expected), tries + 1)


def test_a_failure_that_passes_in_time_is_a_success() -> None:
    outcomes = [{"success": False, "code": "storage"}, "done"]
    retry = Retry(attempts=2, wait_initial=0, wait_max=0, wait_jitter=0)
    assert Tool("t", "T.", lambda: outcomes.pop(0), retry=retry).execute()["result"] == "done"


@pytest.mark.parametrize(
    ("code", "state"),
    [("tool", "open"), ("storage", "open"), ("data_not_found", "closed"), ("parameter", "closed")],
)
def test_a_returned_failure_opens_a_breaker_where_its_exception_would(code: str, state: str) -> None:
    breaker = CircuitBreaker(failures=1)
    Toolbox([tool({"success": False, "code": code}, breaker=breaker)]).call("t")
    assert breaker.state == state


VALUES: list[tuple[Any, str]] = [
    (UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
    (date(2026, 1, 31), '"2026-01-31"'),
    (Decimal("1.50"), '"1.50"'),
    (Fraction(1, 3), '"1/3"'),
    (PurePosixPath("/a/b"), '"/a/b"'),
    (ip_address("10.0.0.1"), '"10.0.0.1"'),
    (b"abc", '"abc"'),
    (b"\xff", '"\\\\xff"'),
    (Said(1, "x"), '{"success":1,"error":"x"}'),
    (SaidByPydantic(success=1, error="x"), '{"success":1,"error":"x"}'),
    (SaidByStruct(1, "x"), '{"success":1,"error":"x"}'),
    (SaidByTuple(1, "x"), '[1,"x"]'),
    (array("i", [1, 2]), "[1,2]"),
    ({1: 2, None: 3}, '{"1":2,"None":3}'),
    (10**3000, f"{10**3000}"),
    (10**5000, f'"{hex(10**5000)}"'),
]


@pytest.mark.parametrize(
    ("value", "message"), VALUES, ids=lambda value: repr(value)[:20] if value != 10**5000 else ""
)
def test_values_with_a_json_form_are_told_in_it(value: Any, message: str) -> None:
    result = call({"value": value})
    assert (result.success, result.message) == (True, f'{{"value":{message}}}')


def test_a_tools_own_result_is_given_on_and_completed() -> None:
    own = ToolResult(True, "m", 1, elapsed=0.5)
    assert call(own) is own
    measured = call(ToolResult(True, "m", 1))
    assert (attrs.evolve(measured, elapsed=0.0), measured.elapsed > 0) == (ToolResult(True, "m", 1), True)
    failed = call(ToolResult(False, "m"))
    assert (failed.code, failed.elapsed > 0) == (ErrorKind.TOOL, True)
    assert call(ToolResult(False, "m", code=ErrorKind.STORAGE)).code == ErrorKind.STORAGE


def test_a_subclass_of_a_result_is_a_result() -> None:
    class More(ToolResult):
        pass

    assert told(call(More(False, "no", error="no"))) == (False, "no", None, "no", None, ErrorKind.TOOL)


@pytest.mark.parametrize(("code", "kind"), [("storage", ErrorKind.STORAGE), ("zz", ErrorKind.TOOL)])
def test_a_code_that_a_tool_writes_as_text_is_a_code(code: Any, kind: ErrorKind) -> None:
    result = call(ToolResult(False, "no", code=code))
    assert result.code is kind
    assert result.to_dict()["code"] == pipeline_envelope(result)["code"] == kind.value


def test_a_base_tool_may_return_a_result_with_any_code() -> None:
    class Own(BaseTool):
        name = "own"
        description = "Own."

        async def execute(self, args: Any, context: dict[str, Any]) -> Any:
            return ToolResult(False, "no", code="zz")  # type: ignore[arg-type]  # what is tested

    assert asyncio.run(Own().safe_execute({}, {}))["code"] == "tool"


def test_a_private_result_shows_nothing_but_how_it_ended() -> None:
    for outcome in (
        "4711",
        ToolResult(True, "4711", "4711", elapsed=0.5),
        {"success": False, "error": "4711"},
    ):
        result = call(outcome, returns_private_data=True)
        shown = f"ToolResult(success={result.success!r}, code={result.code and result.code.value!r}"
        assert repr(result) == f"{shown}, elapsed={result.elapsed!r}, private)"
        assert result.is_private
        assert (result.cause is None) or type(outcome) is ToolResult
    assert call("4711", returns_private_data=True).message == "4711"


@pytest.mark.parametrize("is_private", [True, False])
@pytest.mark.parametrize("error", [ValueError("4711"), ToolError("4711"), UserInputNeeded("4711", "4711")])
def test_a_failure_is_private_where_its_tool_is(error: Exception, is_private: bool) -> None:
    def look() -> None:
        raise error

    result = Toolbox([Tool("t", "T.", look, returns_private_data=is_private)]).call("t")
    assert (result.success, result.is_private) == (False, is_private)


def test_what_events_carry_of_a_private_result_is_how_it_ended() -> None:
    done = redacted("t", ToolResult(True, "4711", "4711", None, "4711", 0.5))
    assert done == ToolResult(True, "t succeeded.", elapsed=0.5, is_private=True)
    failed = redacted("t", ToolResult(False, "4711", 1, "4711", "4711", 0.5, ErrorKind.TOOL, "4711", "4711"))
    assert (failed.message, failed.error, failed.code, failed.cause) == (
        "t reported a failure.",
        "Tool 't' reported a failure",
        ErrorKind.TOOL,
        None,
    )


def test_a_private_tool_that_needs_the_user_still_has_a_question_to_put() -> None:
    def look() -> None:
        raise UserInputNeeded("4711", "4711")

    made = Tool("t", "T.", look, returns_private_data=True, input_request="Which badge?")
    result = Toolbox([made]).call("t")
    assert (result.code, result.input_request) == (ErrorKind.NEEDS_USER_INPUT, "Which badge?")


def test_only_what_is_no_exception_cancels() -> None:
    import concurrent.futures

    assert is_cancelling(asyncio.CancelledError())
    assert is_cancelling(BaseExceptionGroup("x", [asyncio.CancelledError()]))
    assert not is_cancelling(concurrent.futures.CancelledError())
    assert not is_cancelling(KeyboardInterrupt())


def test_a_generator_that_ends_the_program_when_it_is_closed_does_so() -> None:
    def parts() -> Iterator[int]:
        try:
            yield 1
        finally:
            raise KeyboardInterrupt

    def begun() -> Iterator[int]:
        generator = parts()
        next(generator)
        return generator

    with pytest.raises(KeyboardInterrupt):
        Toolbox([Tool("t", "T.", begun)]).call("t")
