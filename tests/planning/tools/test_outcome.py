"""Outcomes: what a tool returned or raised, as a result."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from planning.tools import BaseTool, ErrorKind, Tool, Toolbox, ToolResult, UserInputNeeded
from planning.tools.envelopes import pipeline_envelope
from planning.tools.outcome import is_cancelling, redacted


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


def test_a_mapping_that_only_looks_like_a_failure_is_a_value() -> None:
    for value in ({"success": 0}, {"success": None}, {"success": "False"}, {"successful": False}):
        assert call(value).value == value


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
