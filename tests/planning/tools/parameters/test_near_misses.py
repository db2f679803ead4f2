"""Refusals that a slip in one word of the code would change: of options and of unions with tags."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from planning import ToolValidationError
from planning.tools.parameters.declared import model_of


def refusal(kind: Any, arguments: dict[str, Any]) -> str:
    """What is said of arguments."""
    with pytest.raises(ToolValidationError) as refused:
        model_of(kind).convert(arguments)
    return str(refused.value)


def tagged(tag: str) -> dict[str, Any]:
    """One object of a union that a tag tells apart."""
    properties = {"kind": {"const": tag}, "size": {"type": "integer"}}
    return {"type": "object", "properties": properties, "required": ["kind", "size"]}


DRAWING = {
    "type": "object",
    "properties": {
        "shape": {"anyOf": [tagged("circle"), tagged("square")]},
        "mode": {"enum": ["slow", "fast"]},
        "exact": {"const": "yes"},
    },
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"shape": {"kind": "circle", "size": "big"}}, "shape.size: expected an integer, got a string"),
        (
            {"shape": {"kind": "sqare", "size": 1}},
            "shape.kind: 'sqare' is unknown; send one of circle, square",
        ),
        (
            {"shape": {}},
            "2 problems:\n- shape.kind: missing; send circle or square\n"
            "- shape.size: missing; send an integer",
        ),
        ({"shape": 5}, "shape: expected an object with kind, size, got a number"),
        ({"mode": "fats"}, "mode: 'fats' is unknown; send one of slow, fast"),
        ({"exact": "no"}, "exact: 'no' is unknown; send one of yes"),
    ],
)
def test_a_plain_json_schema_says_what_is_wrong_by_the_option_that_is_meant(
    arguments: dict[str, Any], message: str
) -> None:
    assert refusal(DRAWING, arguments) == message


def test_a_text_for_an_object_that_requires_a_field_it_does_not_describe_is_refused() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "required": ["x"]}}}
    assert refusal(schema, {"a": "text"}) == "a: expected an object, got a string"


def operation(name: str) -> dict[str, Any]:
    """An operation with two operands, each an operation or a number."""
    operand = {"$ref": "#/$defs/e"}
    properties = {"k": {"const": name}, "l": operand, "r": operand}
    return {"type": "object", "properties": properties, "required": ["k", "l", "r"]}


OPERATIONS = [operation(name) for name in "abc"]
RECURSIVE = {
    "type": "object",
    "properties": {"x": {"$ref": "#/$defs/e"}},
    "$defs": {"e": {"anyOf": [*OPERATIONS, {"type": "integer"}]}},
}


@dataclass
class Left:
    k: str
    l: Left | Right | int = 1  # noqa: E741 - as in the schema above


@dataclass
class Right:
    k: str
    l: Left | Right | int = 1  # noqa: E741 - as in the schema above
    r: int = 1


@dataclass
class Holding:
    x: Left | Right | int


@pytest.mark.parametrize("kind", [RECURSIVE, Holding])
def test_a_union_within_a_union_is_tried_no_deeper_than_takes_an_instant(kind: Any) -> None:
    deep: Any = "no number"
    for levels in range(40):
        if levels == 3:
            assert "number" in refusal(kind, {"x": deep}) or "integer" in refusal(kind, {"x": deep})
        deep = {"k": "a", "l": deep, "r": 1}
    for sent in (deep, json.dumps(deep)):
        assert refusal(kind, {"x": sent}) == "nested more than 8 levels; send a flatter object"
