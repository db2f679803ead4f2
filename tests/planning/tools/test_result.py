"""Tool results: plain data for JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import attrs
import pytest

from planning import MarkStep, Plan, PlanStep
from planning.tools import ToolResult


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
        (
            Plan("x", "active", (PlanStep("S001", "a", None, "pending", ("n",)),)),
            {
                "objective": "x",
                "status": "active",
                "steps": [
                    {"step_id": "S001", "title": "a", "details": None, "status": "pending", "notes": ["n"]}
                ],
            },
        ),
        (Point(1, (2, 3)), {"x": 1, "parts": [2, 3]}),
        (
            {1: Colour.RED, "when": datetime(2026, 1, 2, tzinfo=UTC)},
            {"1": "red", "when": "2026-01-02 00:00:00+00:00"},
        ),
        (frozenset({1.5}), [1.5]),
        (True, True),
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


def test_a_class_is_named_and_not_taken_apart() -> None:
    assert ToolResult(True, "ok", Plan).to_dict()["value"] == "<class 'planning.model.Plan'>"
