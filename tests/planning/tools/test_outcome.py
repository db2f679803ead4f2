"""Outcomes: what a tool returned or raised, as a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_entries import NOW, Answer, in_async, piped, returning, safely, through

from planning.tools import Tool, ToolResult
from planning.tools.errors import ErrorKind
from planning.tools.guard import CircuitBreaker
from planning.tools.ledger import tool_calls
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from session import Session


def call(outcome: Any, **options: Any) -> ToolResult:
    return through("call", returning(outcome, **options))


def executed(outcome: Any) -> ToolResult:
    return through("call", Answer(outcome))


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
    result = executed(outcome)
    assert told(result) == (True, message, outcome.get("data"), None, user_message, None)


@pytest.mark.parametrize("is_executed", [False, True])
@pytest.mark.parametrize(
    ("outcome", "error", "user_message"),
    [
        ({"success": False, "error": "no luck", "user_message": "Sorry."}, "no luck", "Sorry."),
        ({"success": False, "data": 1}, "t reported a failure", None),
        ({"success": False, "error": " "}, "t reported a failure", None),
        ({"success": False, "error": "x", "needs_user_input": True}, "x", None),
        ({"success": False, "error": "x", "input_request": "Who?"}, "x", None),
    ],
)
def test_a_reported_failure_is_a_failure_with_its_own_words(
    outcome: dict[str, Any], error: str, user_message: str | None, is_executed: bool
) -> None:
    result = executed(outcome) if is_executed else call(outcome)
    value = outcome.get("data") if is_executed else outcome
    assert told(result) == (False, error, value, error, user_message, ErrorKind.TOOL)
    assert (result.cause, result.needs_user_input) == (error, False)


@pytest.mark.parametrize("is_executed", [False, True])
@pytest.mark.parametrize(("code", "kind"), [({}, "needs_user_input"), ({"code": "storage"}, "storage")])
def test_a_reported_question_waits_for_the_user(code: dict[str, str], kind: str, is_executed: bool) -> None:
    outcome = {"success": False, "needs_user_input": True, "input_request": "Who?", **code}
    result = executed(outcome) if is_executed else call(outcome)
    assert (result.code, result.needs_user_input, result.input_request) == (kind, True, "Who?")


class Ambiguous:
    """Like an array, neither true nor false."""

    def __bool__(self) -> bool:
        raise ValueError("ambiguous")

    def __repr__(self) -> str:
        return "Ambiguous()"


NO: list[Any] = [False, 0, None, "", [], Ambiguous()]
YES: list[Any] = [True, 1, "true", "Order 5 was placed", [1]]


@dataclass
class Said:
    success: Any
    error: str | None = None


class SaidByTuple(NamedTuple):
    success: Any
    error: str | None = None


def as_dict(success: Any, error: str | None = None) -> dict[str, Any]:
    return {"success": success, "error": error}


@attrs.frozen
class SaidWithCode:
    success: Any
    code: str


FORMS: list[Callable[..., Any]] = [as_dict, Said, SaidByTuple]


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


@pytest.mark.parametrize("success", [0, None])
def test_a_returned_failure_is_one_everywhere(success: Any, session: Session) -> None:
    breaker = CircuitBreaker(failures=2)
    fails = returning({"success": success, "error": "no luck"}, breaker=breaker)
    assert fails.execute()["error"] == "no luck"
    assert piped([fails], [{"tool": "t"}], session)["t"] == {
        "success": False,
        "data": {"success": success, "error": "no luck"},
        "error": "no luck",
        "user_message": None,
        "code": "tool",
    }
    assert [line.outcome for line in tool_calls(session)] == ["tool"]
    assert breaker.state == "open"
    step = WorkflowStep(step_id="a", description="A.", type="tool", name="t")
    capabilities = Capabilities(tools={"t": returning({"success": success, "error": "no luck"})})
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
        (SaidWithCode(False, "storage"), 3),
        ({"success": False}, 1),
        ({"success": True, "code": "storage"}, 1),
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

    function = in_async(plain) if is_async else plain
    tried = Tool("t", "T.", function, retry=NOW, timeout=timeout)
    got, expected = through("call", tried), through("call", Tool("t", "T.", function))
    assert (told(got), len(made)) == (told(expected), tries + 1)


@pytest.mark.parametrize("entry", ["call", "acall"])
@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        ({"success": False, "code": "storage"}, "open"),
        ({"success": False, "code": "data_not_found"}, "closed"),
        (ToolResult(False, "no"), "open"),
        (ValueError, "open"),
        ((each for each in [1]), "open"),
    ],
)
def test_a_returned_failure_opens_a_breaker_where_its_exception_would(
    outcome: Any, state: str, entry: str
) -> None:
    breaker = CircuitBreaker(failures=1)
    made = returning(outcome, breaker=breaker)
    assert (through(entry, made).success, breaker.state) == (False, state)
    assert (through(entry, made).code == ErrorKind.CIRCUIT_OPEN) is (state == "open")


def test_a_tools_own_result_is_given_on_and_completed() -> None:
    own = ToolResult(True, "m", 1, elapsed=0.5)
    assert call(own) is own
    measured = call(ToolResult(True, "m", 1))
    assert (attrs.evolve(measured, elapsed=0.0), measured.elapsed > 0) == (ToolResult(True, "m", 1), True)
    failed = call(ToolResult(False, "m"))
    assert (failed.code, failed.elapsed > 0) == (ErrorKind.TOOL, True)
    assert call(ToolResult(False, "m", code=ErrorKind.STORAGE)).code == ErrorKind.STORAGE


# The envelopes are views of one result, each with its own keys, and agree on what happened


TEXTS = st.none() | st.text(max_size=5)
TIMES = st.floats(0.001, 1)
SUCCEEDED = st.builds(ToolResult, st.just(True), st.text(), st.integers(), user_message=TEXTS, elapsed=TIMES)
FAILED = st.builds(
    ToolResult,
    st.just(False),
    st.text(max_size=5),
    st.none() | st.integers(),
    TEXTS,
    TEXTS,
    TIMES,
    st.sampled_from(ErrorKind),
    TEXTS,
    TEXTS,
)


@given(SUCCEEDED | FAILED)
def test_all_envelopes_of_a_result_agree(result: ToolResult) -> None:
    executed = returning(result).execute()
    told = piped([returning(result)], [{"tool": "t"}])["t"]
    assert safely(Answer(result)) == told
    assert executed == {
        "success": result.success,
        "tool": "t",
        "result": result.value,
        "error": None if result.success else result.cause or result.error or result.message,
        "elapsed": result.elapsed,
    }
    expected = {
        "success": result.success,
        "data": result.value,
        "error": None if result.success else result.error or result.message,
        "user_message": result.user_message,
    }
    if not result.success:
        expected["code"] = result.code and result.code.value
        assert type(told["code"]) is str
    if result.input_request is not None:
        expected |= {"needs_user_input": True, "input_request": result.input_request}
    assert told == expected
    assert [*executed] == ["success", "tool", "result", "error", "elapsed"]
    assert [*told][:4] == ["success", "data", "error", "user_message"]


every_kind = pytest.mark.parametrize("tool", [Answer({}), returning(1)], ids=["BaseTool", "Tool"])


@every_kind
def test_the_answers_of_a_query_have_exactly_their_keys(tool: Any) -> None:
    assert tool.format_success_response("facts", {"a": 1}, [2], total=1) == {
        "total": 1,
        "query_type": "facts",
        "parameters": {"a": 1},
        "results": [2],
        "output_key": "t",
        "success": True,
    }
    core = {"query_type": "facts", "parameters": {"a": 1}, "results": [], "output_key": "t", "success": False}
    for kind in ("error", "warning"):
        told = tool.format_error_response("facts", {"a": 1}, "no", kind=kind, total=0)
        assert told == {"total": 0, **core, kind: "no"}
    assert tool.format_error_response("facts", {"a": 1}, "no") == {**core, "error": "no"}


def test_an_unknown_kind_of_error_is_refused() -> None:
    with pytest.raises(ValueError) as caught:
        returning(1).format_error_response("q", {}, "no", kind="success")  # type: ignore[arg-type]  # what is tested
    assert str(caught.value) == "kind must be 'error' or 'warning', got 'success'"
