"""Small rules of the check of inputs that a slip in one word would break."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from plan_findings import findings, plan, step, thought

from planning.tools import Tool, ToolSpec
from planning.workflow import Capabilities

OUT = "${f.output.x}"


def take(_inputs: Any) -> None:
    """Takes whatever it is given."""


def answer(_query_type: str, _parameters: Any) -> None:
    """Answers no query."""


def told(parameters: dict[str, Any], **inputs: Any) -> list[tuple[str, str, str, str]]:
    """What is said of the inputs of a tool whose parameters are a JSON Schema, and of which text."""
    schema = {"type": "object", "properties": parameters, "additionalProperties": False}
    tools = Capabilities(tools=[Tool("take", "Takes what it is given.", take, parameters=schema)])
    source = plan(thought("f"), step("a", "f", name="take", inputs=inputs))
    text, found = json.dumps(source), findings(source, tools)
    starts = [(each.column or 0) - 1 for each in found]
    return [
        (each.code, each.message, each.hint, text[start : start + each.length])
        for each, start in zip(found, starts, strict=True)
    ]


QUOTED = (
    "number_as_text",
    "input count of take is a number in quotes",
    "send the number without quotes",
    '"5"',
)


@pytest.mark.parametrize("key", ["anyOf", "oneOf"])
def test_a_number_in_quotes_is_said_where_null_is_allowed_too(key: str) -> None:
    node = {key: [{"type": "integer"}, {"type": "null"}]}
    assert told({"count": node}, count="5") == [QUOTED]
    assert told({"count": {key: [{"type": "integer"}, {"type": "string"}]}}, count="5") == []


def test_beside_a_reference_for_a_short_text_a_wrong_literal_is_said() -> None:
    parameters = {"word": {"type": "string", "maxLength": 5}, "count": {"type": "integer"}}
    assert told(parameters, word=OUT, count="many") == [
        ("bad_input", "input count of take: expected an integer, got a string", "send an integer", '"many"')
    ]


def test_an_unknown_field_without_a_name_is_said_of_what_it_is_in() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    assert told({"inner": inner}, inner={"": 1}) == [
        ("bad_input", "input inner. of take: unknown field", "the fields are a", '{"": 1}')
    ]


@dataclass
class Numbered:
    key: int


@dataclass
class Named:
    key: str


@pytest.mark.parametrize(
    ("query_type", "found"),
    [
        ("numbered", [("number_as_text", "input parameters.key of facts is a number in quotes")]),
        ("named", []),
    ],
)
def test_the_parameters_of_a_query_are_those_of_its_type(
    query_type: str, found: list[tuple[str, str]]
) -> None:
    spec = ToolSpec("facts", {"numbered": Numbered, "named": Named}, "facts", function=answer)
    inputs = {"query_type": query_type, "parameters": {"key": "1"}}
    source = plan(step("a", name="facts", inputs=inputs))
    told = [(each.code, each.message) for each in findings(source, Capabilities(tools=[spec]))]
    assert told == found
