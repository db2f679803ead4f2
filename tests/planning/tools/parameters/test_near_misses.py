"""Refusals that a slip in one word of the code would change: of options and of unions with tags."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any, Literal

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


@dataclass
class Plain:
    kind: Literal["default"]
    size: int


@dataclass
class Other:
    kind: Literal["config"]
    size: int


@dataclass
class Drawing:
    shape: Plain | Other
    at: datetime.time | None = None


SIZE = "shape.size: expected an integer, got a boolean"


@pytest.mark.parametrize("kind", ["default", "config"])
def test_every_option_of_a_tagged_union_is_strict_whatever_its_tag(kind: str) -> None:
    assert refusal(Drawing, {"shape": {"kind": kind, "size": True}}) == SIZE


def test_a_text_for_an_object_that_requires_a_field_it_does_not_describe_is_refused() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object", "required": ["x"]}}}
    assert refusal(schema, {"a": "text"}) == "a: expected an object, got a string"
