"""The words for what is wrong: what was expected, in a few words, and where."""

from __future__ import annotations

from typing import Any

import pytest

from planning.tools import Tool, Toolbox

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
RECORD: dict[str, Any] = {
    "type": "object",
    "properties": {"title": TEXT, "size": WHOLE},
    "required": ["title"],
    "additionalProperties": False,
}


def told(node: dict[str, Any], arguments: dict[str, Any], **options: Any) -> list[str]:
    """The problems of arguments for a tool of one parameter, x; the schema is as its author wrote it."""
    schema = {"type": "object", "properties": {"x": node}, "required": ["x"], "additionalProperties": False}
    result = Toolbox([Tool("t", "T.", print, parameters=schema, **options)]).call("t", arguments)
    return result.message.removeprefix("Refused, nothing changed. ").split("\n- ")


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({}, "a value"),
        ({"type": "null"}, "null"),
        ({"type": "string", "minLength": 1}, "a string of at least 1 character"),
        ({"type": "string", "maxLength": 3}, "a string of 0 to 3 characters"),
        ({"type": "string", "minLength": 1, "maxLength": 3}, "a string of 1 to 3 characters"),
        ({"type": "string", "pattern": "^a"}, "a string that matches ^a"),
        ({"type": "integer", "minimum": 1}, "an integer of at least 1"),
        (
            {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            "a number of more than 0 and less than 1",
        ),
        ({"type": "integer", "multipleOf": 3}, "an integer of a multiple of 3"),
        ({"type": "array", "minItems": 1, "maxItems": 2}, "an array of at least 1 item and at most 2 items"),
        ({"type": "object", "minProperties": 2}, "an object of at least 2 fields"),
        ({"type": "string", "format": "uuid"}, "a UUID"),
        ({"type": "string", "format": "of-its-own"}, "a string"),
        ({"const": "cat"}, "cat"),
        ({"enum": ["a", 1]}, "one of a, 1"),
        ({"enum": ["a"]}, "a"),
        (RECORD, "an object with title, size"),
        ({"type": "object", "properties": {}}, "an object with no fields"),
        ({"anyOf": [TEXT, WHOLE, TEXT]}, "a string or an integer"),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, "a or b"),
    ],
)
def test_what_a_schema_asks_for_is_said_in_a_few_words(node: dict[str, Any], expected: str) -> None:
    assert told(node, {}) == [f"x: missing; send {expected}"]


@pytest.mark.parametrize(
    ("node", "value", "expected"),
    [
        ({"minimum": 1}, 0, "x: expected at least 1, got 0"),
        ({"maximum": 1}, 10**15, "x: expected at most 1, got a number"),
        ({"exclusiveMinimum": 0}, 0.0, "x: expected more than 0, got 0.0"),
        ({"exclusiveMaximum": 1}, 1, "x: expected less than 1, got 1"),
        ({"multipleOf": 3}, 4, "x: expected a multiple of 3, got 4"),
        ({"minLength": 1}, "", "x: expected at least 1 character, got 0 characters"),
        ({"maxLength": 1}, "ab", "x: expected at most 1 character, got 2 characters"),
        ({"minItems": 2}, ["a"], "x: expected at least 2 items, got 1 item"),
        ({"maxItems": 0}, ["a", "b"], "x: expected at most 0 items, got 2 items"),
        ({"minProperties": 1}, {}, "x: expected at least 1 field, got an object"),
        ({"pattern": "^a"}, "b", "x: expected text that matches ^a, got other text"),
        ({"uniqueItems": True}, [1, 1], "x: expected a value, got an array"),
        ({"enum": ["a", "b"]}, "dog", "x: 'dog' is unknown; send one of a, b"),
        ({"const": "cat"}, "dog", "x: 'dog' is unknown; send one of cat"),
        (
            {"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]},
            "dog",
            "x: 'dog' is unknown; send one of a, b",
        ),
        ({"type": "object", "properties": {}, "additionalProperties": False}, {"z": 1},
         "x.z: unknown field; send no fields"),
        ({"anyOf": [RECORD, WHOLE]}, {"title": "a", "sizes": 1},
         "x.sizes: unknown field; did you mean size?"),
        (RECORD, {"title": "a", "b\nb": 1}, "x.b\\nb: unknown field; the fields are title, size"),
        (RECORD, {"title": "a", "z" * 61: 1}, f"x.{'z' * 60}: unknown field; the fields are title, size"),
    ],
)  # fmt: skip
def test_a_broken_limit_is_told_with_what_was_sent(
    node: dict[str, Any], value: object, expected: str
) -> None:
    assert told(node, {"x": value}) == [expected]
