"""Results: what a tool returned, as a result; plain data, bounded and valid text; events that keep it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum
from time import perf_counter
from typing import Any, NamedTuple

import attrs
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion
from tool_entries import NOW, Answer, in_async, made, piped, raising, returning, safely, through, told

from planning import MarkStep, Plan
from planning.tools import Tool, ToolError, ToolResult, ToolValidationError
from planning.tools.errors import ErrorKind
from planning.tools.guard import CircuitBreaker
from planning.tools.ledger import tool_calls
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from session import Session, SessionEvent, ToolInvoked, json_form

Colour = Enum("Colour", {"RED": "red"})
Point = attrs.make_class("Point", ["x", "parts"])


class Word(str):
    """Text of a kind of its own."""

    __slots__ = ()


class Stubborn:
    """Cannot be read."""

    def __str__(self) -> str:
        raise ValueError


class Struct:
    """As msgspec makes its classes: the names of the fields are all that is read."""

    __struct_fields__ = ("row", "cells")
    row, cells, hidden = 1, ("a",), 2


class Array:
    """As numpy makes its arrays and numbers."""

    def tolist(self) -> list[Any]:
        return [1, 0.5]


ENDLESS: list[Any] = [1]
ENDLESS.append({"again": ENDLESS})


VALUES: list[Any] = [
    *(None, MarkStep("S001", "done"), Point(1, (2, 3)), frozenset({1.5}), ENDLESS),
    {1: Colour.RED, "at": datetime(2026, 1, 2, tzinfo=UTC)},
    [timedelta(0), timedelta(days=1), timedelta(seconds=-90)],
    [Struct(), Array()],
    [Word("x"), Stubborn(), Plan],
]


def test_a_result_becomes_plain_data(snapshot: SnapshotAssertion) -> None:
    said = []
    for value in VALUES:
        told = ToolResult(True, "ok", value, elapsed=0.5).to_dict()
        assert json.loads(json.dumps(told)) == told
        said.append(repr(told))
    assert "\n".join(said) == snapshot
    stubborn: Any = Stubborn()
    assert type(ToolResult(False, "x", None, Word("x")).error) is str
    assert ToolResult(False, "x", None, FLOOD).error == CUT
    named = ToolResult(True, stubborn, Word("x"))  # a text of a kind of its own is plain text
    assert (named.message, type(named.to_dict()["value"])) == ("<Stubborn>", str)


def test_a_result_shows_what_is_in_it_and_a_private_one_does_not() -> None:
    private = ToolResult(False, "no", elapsed=0.5, code=ErrorKind.TOOL, is_private=True)
    assert repr(ToolResult(True, "x" * 1_001)).endswith(f"message='{'x' * 997}...')")
    assert [repr(result) for result in (ToolResult(True, "ok", [1], elapsed=0.5), private)] == [
        "ToolResult(success=True, code=None, message='ok')",
        "ToolResult(success=False, code='tool', private)",
    ]


# What a result holds can be sent on: bounded, valid Unicode, with a ``repr`` that never fails

MOST = 50_000
FLOOD = "x" * 10_000_000
CUT = "x" * 49_940 + "... (9950060 more characters; ask for less)"
MOST_TEXTS = ["message", "error", "user_message", "cause"]
TEXTS = ("message", "error", "user_message", "input_request", "cause")


def texts(result: ToolResult) -> dict[str, str]:
    return {name: getattr(result, name) for name in TEXTS if getattr(result, name) is not None}


@pytest.mark.parametrize(
    ("tool", "cut"),
    [
        (returning(FLOOD), ["message"]),
        (raising(ToolError(FLOOD)), MOST_TEXTS),
        (returning(ToolResult(False, FLOOD, None, FLOOD, FLOOD, 0.5, ErrorKind.TOOL, FLOOD, FLOOD)), TEXTS),
        (returning(ToolResult(True, FLOOD, None, None, FLOOD, 0.5)), ["message", "user_message"]),
    ],
)
def test_every_text_is_bounded_whoever_made_it(tool: Tool, cut: list[str]) -> None:
    assert texts(through("call", tool)) == dict.fromkeys(cut, CUT)


@pytest.mark.parametrize(
    ("text", "sent"),
    [("a\ud800b", r"a\ud800b"), ("\udfff", r"\udfff"), ("\U0001f600 \u00fc", "\U0001f600 \u00fc")],
)
def test_half_a_character_is_escaped_in_every_text(text: str, sent: str) -> None:
    every = ToolResult(False, text, None, text, text, 0.5, ErrorKind.TOOL, text, text)
    assert set(texts(every).values()) == {sent}
    for tool in (returning(text), raising(ToolError(text)), raising(ToolValidationError(text))):
        result = through("call", tool)
        assert result.message.removeprefix("t failed: ") == sent
        json.dumps(result.to_dict(), ensure_ascii=False).encode()
    named = through("call", returning({text: [text]}))
    assert (json.loads(named.message), named.value) == ({sent: [sent]}, {text: [text]})
    assert named.to_dict()["value"] == {sent: [sent]}


def test_a_value_that_repeats_itself_is_written_no_longer_than_a_message() -> None:
    value: Any = ["x"]
    for _ in range(60):
        value = [value, value]
    result = through("call", returning(value), {}, Session())
    assert (result.success, len(result.message) <= MOST) == (True, True)


def test_a_value_is_cut_where_it_repeats_too_many_parts_not_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_form, "_MOST_REPEATS", 10)
    one, cut = [1, 2], "... (cut: the values before repeat more than 10 parts)"
    value = {"rows": [[n] for n in range(50)], "ones": [one] * 6}
    expected = {"rows": value["rows"], "ones": [one] * 4 + [cut] * 2}
    assert ToolResult(True, "ok", value).to_dict()["value"] == expected


# What events keep of a call stays as it was, whatever the tool does to its own objects later


@dataclass
class Search:
    words: list[str] = field(default_factory=list)


Found = attrs.make_class("Found", ["rows"])
FoundModel = pydantic.create_model("FoundModel", rows=(list[Any], ...))


def invoked(session: Session) -> ToolInvoked:
    (event,) = session.select_all(ToolInvoked)
    return event


ENTRIES = ["call", "acall", "invoke", "ainvoke"]


def change(**arguments: Any) -> str:
    arguments["words"][:] = ["changed"]
    return "done"


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("tool", "arguments", "kept"),
    [
        (made(change), {"words": ["a"], "n": 1}, {"words": ["a"], "n": 1}),
        (made(in_async(change)), {"words": ["a", ["b"]]}, {"words": ["a", ["b"]]}),
        (made(lambda params: params.words.clear(), parameters=Search), {"words": ["a"]}, Search(["a"])),
    ],
)
def test_the_arguments_in_the_event_are_those_of_the_call(
    entry: str, tool: Any, arguments: Any, kept: Any, session: Session
) -> None:
    assert through(entry, tool, copy.deepcopy(arguments), session).success
    assert invoked(session).params == kept


CACHES: list[Callable[[list[Any]], Any]] = [
    lambda rows: rows,
    lambda rows: {"deep": [{"rows": rows}]},
    lambda rows: (1, rows),
    Found,
    lambda rows: FoundModel.model_construct(rows=rows),
    lambda rows: ToolResult(True, "done", {"rows": rows}, elapsed=0.5),
    lambda rows: {"success": False, "error": "no", "rows": rows},
]


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("make", CACHES)
def test_the_result_in_the_event_is_the_one_of_the_call(
    entry: str, make: Callable[[list[Any]], Any], session: Session
) -> None:
    rows: list[Any] = [[1]]
    outcome, as_it_was = make(rows), make([[1]])
    heard: list[SessionEvent] = []
    session.bus.subscribe(ToolInvoked, heard.append)
    result = through(entry, returning(outcome), {}, session)
    rows.append(2)
    rows[0].append(3)
    value = as_it_was.value if isinstance(as_it_was, ToolResult) else as_it_was
    assert invoked(session).result.value == value
    assert heard == [invoked(session)]
    assert result.value is (outcome.value if isinstance(outcome, ToolResult) else outcome)


def test_what_nothing_can_change_is_not_copied(session: Session) -> None:
    result = through("call", returning("x" * 100), {}, session)
    assert invoked(session).result is result


# What a tool returned, as a result


def call(outcome: Any) -> ToolResult:
    return through("call", returning(outcome))


def executed(outcome: Any) -> ToolResult:
    return through("call", Answer(outcome))


ASKS = {"success": False, "needs_user_input": True, "input_request": "Who?"}
OUTCOMES: list[dict[str, Any]] = [
    {"success": True, "data": {"a": 1}, "user_message": "Seen."},
    {"success": True},
    {"success": False, "error": "no luck", "user_message": "Sorry."},
    {"success": False, "data": 1},
    {"success": False, "error": " "},
    {"success": False, "error": "x", "needs_user_input": True},
    {"success": False, "error": "x", "input_request": "Who?"},
    ASKS,
    {**ASKS, "code": "storage"},
]


def test_an_outcome_is_a_success_a_failure_in_its_own_words_or_a_question(
    snapshot: SnapshotAssertion,
) -> None:
    said = []
    for outcome in OUTCOMES:
        said.append(f"{outcome}")
        for way, result in (("execute()", executed(outcome)), ("a function", call(outcome))):
            asked = (result.cause, result.needs_user_input, result.input_request)
            said.append(f"    {way}: {', '.join(map(repr, (*told(result), *asked)))}")
    assert "\n".join(said) == snapshot


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
    code: str | None = None


class SaidByTuple(NamedTuple):
    success: Any
    error: str | None = None


FORMS: list[Callable[..., Any]] = [
    lambda success, error=None: {"success": success, "error": error},
    Said,
    SaidByTuple,
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("success", NO, ids=repr)
def test_whatever_says_no_is_a_failure_in_every_form(success: Any, form: Callable[..., Any]) -> None:
    outcome = form(success, "no luck")
    assert told(call(outcome)) == (False, "no luck", outcome, "no luck", None, ErrorKind.TOOL)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("success", YES, ids=repr)
def test_anything_else_under_success_is_a_value(success: Any, form: Callable[..., Any]) -> None:
    outcome = form(success)
    assert told(call(outcome))[::2] == (True, outcome, None)


@pytest.mark.parametrize("success", [0, None])
def test_a_returned_failure_is_one_everywhere(success: Any, session: Session) -> None:
    breaker, outcome = CircuitBreaker(failures=2), {"success": success, "error": "no luck"}
    fails = returning(outcome, breaker=breaker)
    assert fails.execute()["error"] == "no luck"
    envelope = {"success": False, "data": outcome, "error": "no luck", "user_message": None, "code": "tool"}
    assert piped([fails], [{"tool": "t"}], session)["t"] == envelope
    assert [line.outcome for line in tool_calls(session)] == ["tool"]
    assert breaker.state == "open"
    step = WorkflowStep(step_id="a", description="A.", type="tool", name="t")
    run = run_workflow(Workflow(steps=(step,)), Capabilities(tools={"t": returning(outcome)}))
    assert (run.status, run.errors["a"].message) == ("failed", "no luck")


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("timeout", [None, 1_000_000])
@pytest.mark.parametrize(
    ("outcome", "tries"),
    [
        *(({"success": False, "code": code}, 3) for code in ("storage", "timeout")),
        (ToolResult(False, "later", code=ErrorKind.STORAGE), 3),
        ({"success": False}, 1),
        ({"success": True, "code": "storage"}, 1),
        ("storage", 1),
    ],
    ids=repr,
)
def test_a_returned_failure_is_tried_again_where_its_exception_would_be(
    outcome: Any, tries: int, timeout: float | None, is_async: bool
) -> None:
    count: list[int] = []

    def plain() -> Any:
        count.append(1)
        return outcome

    tried = made(in_async(plain) if is_async else plain, retry=NOW, timeout=timeout)
    assert (told(through("call", tried)), len(count)) == (told(call(outcome)), tries)


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
def test_a_returned_failure_opens_a_breaker_as_a_raised_one(outcome: Any, state: str, entry: str) -> None:
    breaker = CircuitBreaker(failures=1)
    made = returning(outcome, breaker=breaker)
    assert (through(entry, made).success, breaker.state) == (False, state)
    assert (through(entry, made).code == ErrorKind.CIRCUIT_OPEN) is (state == "open")


def test_a_tools_own_result_is_given_on_and_completed() -> None:
    own = ToolResult(True, "m", 1, elapsed=0.5)
    assert call(own) is own
    assert attrs.evolve(call(ToolResult(True, "m", 1)), elapsed=0.0) == ToolResult(True, "m", 1)
    assert call(ToolResult(False, "m")).code == ErrorKind.TOOL
    assert call(ToolResult(False, "m", code=ErrorKind.STORAGE)).code == ErrorKind.STORAGE


@pytest.mark.parametrize("outcome", [1, [1], {"success": False}, ToolResult(True, "m"), ValueError])
def test_a_result_has_the_seconds_that_the_call_took_and_no_more(outcome: Any) -> None:
    began = perf_counter()
    elapsed = call(outcome).elapsed
    assert 0 < elapsed <= perf_counter() - began


# The envelopes are views of one result, each with its own keys, and agree on what happened


WORDS = st.none() | st.text(max_size=5)
TIMES = st.floats(0.001, 1)
SUCCEEDED = st.builds(ToolResult, st.just(True), st.text(), st.integers(), user_message=WORDS, elapsed=TIMES)
SAID = [st.just(False), st.text(max_size=5), st.none() | st.integers(), WORDS, WORDS, TIMES]
FAILED = st.builds(ToolResult, *SAID, st.sampled_from(ErrorKind), WORDS, WORDS)


@given(SUCCEEDED | FAILED)
def test_all_envelopes_of_a_result_agree(result: ToolResult) -> None:
    executed = returning(result).execute()
    envelope = piped([returning(result)], [{"tool": "t"}])["t"]
    assert safely(Answer(result)) == envelope
    assert executed == {
        "success": result.success,
        "tool": "t",
        "result": result.value,
        "elapsed": result.elapsed,
        "error": None if result.success else result.cause or result.error or result.message,
    }
    expected = {
        "success": result.success,
        "data": result.value,
        "user_message": result.user_message,
        "error": None if result.success else result.error or result.message,
    }
    if not result.success:
        expected["code"] = result.code and result.code.value
        assert type(envelope["code"]) is str
    if result.input_request is not None:
        expected |= {"needs_user_input": True, "input_request": result.input_request}
    assert envelope == expected
    assert [*executed] == ["success", "tool", "result", "error", "elapsed"]
    assert [*envelope][:4] == ["success", "data", "error", "user_message"]


@pytest.mark.parametrize("tool", [Answer({}), returning(1)], ids=["BaseTool", "Tool"])
def test_the_answers_of_a_query_have_exactly_their_keys(tool: Any) -> None:
    core = {"query_type": "facts", "parameters": {"a": 1}, "results": [], "output_key": "t", "success": False}
    success = {**core, "total": 1, "results": [2], "success": True}
    assert tool.format_success_response("facts", {"a": 1}, [2], total=1) == success
    for kind in ("error", "warning"):
        failure = tool.format_error_response("facts", {"a": 1}, "no", kind=kind, total=0)
        assert failure == {"total": 0, **core, kind: "no"}
    assert tool.format_error_response("facts", {"a": 1}, "no") == {**core, "error": "no"}
    with pytest.raises(ValueError) as caught:
        tool.format_error_response("q", {}, "no", kind="success")
    assert str(caught.value) == "kind must be 'error' or 'warning', got 'success'"
