"""Tool results: plain data for JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import attrs
import pytest

from planning import MarkStep, Plan
from planning.tools import ToolResult
from planning.tools.errors import ErrorKind


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
