"""Refusals that a slip in one word of the code would change: of options and of unions with tags."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from decoding import problems


def tagged(tag: str, **properties: Any) -> dict[str, Any]:
    """One object of a union that a tag tells apart."""
    properties = {"kind": {"const": tag}, **properties}
    return {"type": "object", "properties": properties, "required": [*properties]}


INTEGER = {"type": "integer"}
DRAWING = {
    "type": "object",
    "properties": {
        "shape": {"anyOf": [tagged("circle", size=INTEGER), tagged("square", size=INTEGER)]},
        "mode": {"enum": ["slow", "fast"]},
        "exact": {"const": "yes"},
        "open": {"type": "object", "required": ["x"]},
    },
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({"shape": {"kind": "circle", "size": "big"}}, ["shape.size: expected an integer, got a string"]),
        (
            {"shape": {"kind": "sqare", "size": 1}},
            ["shape.kind: 'sqare' is unknown; send one of circle, square"],
        ),
        (
            {"shape": {}},
            ["shape.kind: missing; send circle or square", "shape.size: missing; send an integer"],
        ),
        ({"shape": 5}, ["shape: expected an object with kind, size, got a number"]),
        ({"mode": "fats"}, ["mode: 'fats' is unknown; send one of slow, fast"]),
        ({"exact": "no"}, ["exact: 'no' is unknown; send one of yes"]),
        ({"open": "text"}, ["open: expected an object, got a string"]),
    ],
)
def test_a_plain_json_schema_says_what_is_wrong_by_the_option_that_is_meant(
    sent: dict[str, Any], expected: list[str]
) -> None:
    assert problems(DRAWING, sent) == expected


OPERAND = {"$ref": "#/$defs/e"}
RECURSIVE = {
    "type": "object",
    "properties": {"x": OPERAND},
    "$defs": {"e": {"anyOf": [*(tagged(name, left=OPERAND, right=OPERAND) for name in "abc"), INTEGER]}},
}


@dataclass
class Left:
    kind: str
    left: Left | Right | int = 1


@dataclass
class Right:
    kind: str
    left: Left | Right | int = 1
    right: int = 1


@dataclass
class Holding:
    x: Left | Right | int


@pytest.mark.parametrize("kind", [RECURSIVE, Holding])
def test_a_union_within_a_union_is_tried_no_deeper_than_takes_an_instant(kind: Any) -> None:
    deep: Any = "no number"
    for levels in range(40):
        if levels == 3:
            told = problems(kind, {"x": deep})[0]
            assert "number" in told or "integer" in told
        deep = {"kind": "a", "left": deep, "right": 1}
    for sent in (deep, json.dumps(deep)):
        assert problems(kind, {"x": sent}) == ["nested more than 8 levels; send a flatter object"]
