"""Results: plain data, bounded and valid text, and events that keep them as they were."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import attrs
import pydantic
import pytest
from tool_entries import in_async, raising, returning, through

from planning import MarkStep, Plan
from planning.tools import Tool, ToolError, ToolResult, ToolValidationError
from planning.tools.errors import ErrorKind
from session import Session, SessionEvent, ToolInvoked, json_form


class Colour(Enum):
    RED = "red"


@attrs.frozen
class Point:
    x: int
    parts: tuple[int, ...] = ()


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (MarkStep("S001", "done"), {"step_id": "S001", "status": "done", "note": None}),
        (Point(1, (2, 3)), {"x": 1, "parts": [2, 3]}),
        (
            {1: Colour.RED, "when": datetime(2026, 1, 2, tzinfo=UTC)},
            {"1": "red", "when": "2026-01-02 00:00:00+00:00"},
        ),
        (frozenset({1.5}), [1.5]),
    ],
)
def test_a_result_becomes_plain_data(value: Any, plain: Any) -> None:
    result = ToolResult(True, "ok", value, elapsed=0.5)
    assert result.to_dict() == {
        "success": True,
        "message": "ok",
        "value": plain,
        "error": None,
        "user_message": None,
        "elapsed": 0.5,
    }
    assert json.loads(json.dumps(result.to_dict()))["value"] == plain


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

    def __init__(self) -> None:
        self.row, self.cells, self.hidden = 1, ["a"], 2


class Array:
    """As numpy makes its arrays and numbers."""

    def tolist(self) -> list[Any]:
        return [1, 0.5]


def test_the_fields_of_a_struct_and_the_items_of_an_array_are_its_form() -> None:
    value = ToolResult(True, "ok", [Struct(), Array()]).to_dict()["value"]
    assert value == [{"row": 1, "cells": ["a"]}, [1, 0.5]]


def test_a_value_that_contains_itself_is_cut_there() -> None:
    endless: list[Any] = [1]
    endless.append({"again": endless})
    assert ToolResult(True, "ok", endless).to_dict()["value"] == [1, {"again": "... (cut: contains itself)"}]


def test_text_of_a_kind_of_its_own_is_text_and_what_cannot_be_read_is_named_by_its_type() -> None:
    stubborn: Any = Stubborn()
    told = ToolResult(True, stubborn, [Word("x"), stubborn, Plan])
    value = told.to_dict()["value"]
    assert (told.message, value) == ("<Stubborn>", ["x", "<Stubborn>", "<class 'planning.plan.model.Plan'>"])
    assert type(value[0]) is str


def test_a_result_shows_what_is_in_it_and_a_private_one_does_not() -> None:
    assert (
        repr(ToolResult(True, "ok", [1], elapsed=0.5)) == "ToolResult(success=True, code=None, message='ok')"
    )
    assert repr(ToolResult(False, "no", elapsed=0.5, code=ErrorKind.TOOL, is_private=True)) == (
        "ToolResult(success=False, code='tool', private)"
    )


# What a result holds can be sent on: bounded, valid Unicode, with a ``repr`` that never fails

MOST = 50_000
FLOOD = "x" * 10_000_000
CUT = "x" * 49_940 + "... (9950060 more characters; ask for less)"


def texts(result: ToolResult) -> dict[str, str]:
    given = (result.message, result.error, result.user_message, result.input_request, result.cause)
    names = ("message", "error", "user_message", "input_request", "cause")
    return {name: text for name, text in zip(names, given, strict=True) if text is not None}


@pytest.mark.parametrize(
    ("tool", "cut"),
    [
        (returning(FLOOD), {"message": CUT}),
        (raising(ToolError(FLOOD)), {"message": CUT, "error": CUT, "user_message": CUT, "cause": CUT}),
        (
            returning(ToolResult(False, FLOOD, None, FLOOD, FLOOD, 0.5, ErrorKind.TOOL, FLOOD, FLOOD)),
            dict.fromkeys(("message", "error", "user_message", "input_request", "cause"), CUT),
        ),
        (returning(ToolResult(True, FLOOD, None, None, FLOOD, 0.5)), {"message": CUT, "user_message": CUT}),
        (
            returning({"success": False, "error": FLOOD, "user_message": FLOOD}),
            {"message": CUT, "error": CUT, "user_message": CUT, "cause": CUT},
        ),
    ],
)
def test_every_text_is_bounded_whoever_made_it(tool: Tool, cut: dict[str, str]) -> None:
    assert texts(through("call", tool)) == cut


@pytest.mark.parametrize(
    ("text", "sent"),
    [("a\ud800b", r"a\ud800b"), ("\udfff", r"\udfff"), ("\U0001f600 \u00fc", "\U0001f600 \u00fc")],
)
def test_half_a_character_is_escaped_in_every_text(text: str, sent: str) -> None:
    every = ToolResult(False, text, None, text, text, 0.5, ErrorKind.TOOL, text, text)
    assert set(texts(every).values()) == {sent}
    for tool in (returning(text), raising(ToolError(text)), raising(ToolValidationError(text))):
        result = through("call", tool)
        told = result.message.removeprefix("t failed: ")
        assert told == sent
        json.dumps(result.to_dict(), ensure_ascii=False).encode()
    named = through("call", returning({text: [text]}))
    assert (json.loads(named.message), named.value) == ({sent: [sent]}, {text: [text]})
    assert named.to_dict()["value"] == {sent: [sent]}


def doubled(times: int) -> Any:
    value: Any = ["x"]
    for _ in range(times):
        value = [value, value]
    return value


def test_a_value_that_repeats_itself_is_written_no_longer_than_a_message() -> None:
    result = through("call", returning(doubled(60)), {}, Session())
    assert (result.success, len(result.message) <= MOST) == (True, True)


def test_a_value_is_cut_where_it_repeats_too_many_parts_and_not_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json_form, "_MOST_REPEATS", 10)
    one, cut = [1, 2], "... (cut: the values before repeat more than 10 parts)"
    value = {"rows": [[n] for n in range(50)], "ones": [one] * 6}
    expected = {"rows": value["rows"], "ones": [one] * 4 + [cut] * 2}
    assert ToolResult(True, "ok", value).to_dict()["value"] == expected


# What events keep of a call stays as it was, whatever the tool does to its own objects later


@dataclass
class Search:
    words: list[str] = field(default_factory=list)


@attrs.define
class Found:
    rows: list[Any]


class FoundModel(pydantic.BaseModel):
    rows: list[Any]


def invoked(session: Session) -> ToolInvoked:
    (event,) = session.select_all(ToolInvoked)
    return event


ENTRIES = ["call", "acall", "invoke", "ainvoke"]


def pop_all(**arguments: Any) -> str:
    arguments["words"].clear()
    arguments["words"].append("changed")
    return "done"


apop_all = in_async(pop_all)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("tool", "arguments", "kept"),
    [
        (Tool("t", "T.", pop_all), {"words": ["a"], "n": 1}, {"words": ["a"], "n": 1}),
        (Tool("t", "T.", apop_all), {"words": ["a", ["b"]]}, {"words": ["a", ["b"]]}),
        (Tool("t", "T.", pop_all, timeout=20.0), {"words": ["a"]}, {"words": ["a"]}),
        (
            Tool("t", "T.", lambda params: params.words.clear(), parameters=Search),
            {"words": ["a"]},
            Search(["a"]),
        ),
    ],
)
def test_the_arguments_in_the_event_are_those_of_the_call(
    entry: str, tool: Any, arguments: Any, kept: Any, session: Session
) -> None:
    assert through(entry, tool, copy.deepcopy(arguments), session).success
    assert invoked(session).params == kept


CACHES: list[Callable[[list[Any]], Any]] = [
    lambda rows: rows,
    lambda rows: {"rows": rows},
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
    result = through(entry, Tool("t", "T.", lambda: outcome), {}, session)
    rows.append(2)
    rows[0].append(3)
    value = as_it_was.value if isinstance(as_it_was, ToolResult) else as_it_was
    assert invoked(session).result.value == value
    assert heard == [invoked(session)]
    assert result.value is (outcome.value if isinstance(outcome, ToolResult) else outcome)


def test_what_nothing_can_change_is_not_copied(session: Session) -> None:
    result = through("call", returning("x" * 100), {}, session)
    assert invoked(session).result is result
