"""The words for what is wrong: what was expected, in a few words, and where."""

from __future__ import annotations

from typing import Any

import pytest

from planning.errors import Problem
from planning.tools.parameters import words

TEXT = {"type": "string"}
RECORD: dict[str, Any] = {
    "type": "object",
    "properties": {"title": TEXT, "size": {"type": "integer"}},
    "required": ["title"],
    "additionalProperties": False,
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": TEXT,
        "records": {"type": "array", "items": RECORD},
        "pair": {"type": "array", "prefixItems": [TEXT, RECORD], "items": False},
        "named": {"type": "object", "additionalProperties": RECORD},
        "either": {"anyOf": [RECORD, {"type": "integer"}, {"type": "null"}]},
        "pet": {"oneOf": [{**RECORD, "properties": {"kind": {"const": "cat"}}}]},
        "none": {"type": "object", "properties": {}},
    },
}


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({}, "a value"),
        ({"type": "integer"}, "an integer"),
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
        (RECORD, "an object with title, size"),
        ({"type": "object", "properties": {}}, "an object with no fields"),
        ({"anyOf": [TEXT, {"type": "integer"}, TEXT]}, "a string or an integer"),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, "a or b"),
    ],
)
def test_what_a_schema_asks_for_is_said_in_a_few_words(node: dict[str, Any], expected: str) -> None:
    assert words.expected(node) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, "a boolean"),
        (1, "a number"),
        (1.5, "a number"),
        ("", "a string"),
        ([], "an array"),
        ((), "an array"),
        ({}, "an object"),
        (None, "null"),
        ({1}, "a value of type set"),
        (b"", "a value of type bytes"),
    ],
)
def test_a_value_is_called_what_json_calls_it(value: object, expected: str) -> None:
    assert words.type_word(value) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ((), ""),
        (("title",), "title"),
        (("records", 1, "title"), "records[1].title"),
        ((0, "title"), "[0].title"),
        (("st\u00e9ps",), "st\\xe9ps"),
        (("a\nb",), "a\\nb"),
        (("x" * 61,), "x" * 60),
    ],
)
def test_a_path_is_spelled_as_code_would(path: tuple[str | int, ...], expected: str) -> None:
    assert words.spell(path) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ((), SCHEMA),
        (("records", 3), RECORD),
        (("records", 3, "title"), TEXT),
        (("pair", 0), TEXT),
        (("pair", 1, "title"), TEXT),
        (("pair", 2), {}),
        (("named", "anyone", "title"), TEXT),
        (("either", "title"), TEXT),
        (("pet", "kind"), {"const": "cat"}),
        (("title", "below"), {}),
        (("nobody", "below"), {}),
    ],
)
def test_the_schema_of_a_place_is_found(path: tuple[str | int, ...], expected: object) -> None:
    assert words.node_at(SCHEMA, path) == expected


@pytest.mark.parametrize(
    ("path", "name", "expected"),
    [
        ((), "titel", "titel: unknown field; did you mean title?"),
        (("records", 0), "zzz", "records[0].zzz: unknown field; the fields are title, size"),
        (("none",), "zzz", "none.zzz: unknown field; send no fields"),
        (("either",), "sizes", "either.sizes: unknown field; did you mean size?"),
        (("either",), "zzz", "either.zzz: unknown field; the fields are title, size"),
        (("pet",), "kinds", "pet.kinds: unknown field; did you mean kind?"),
    ],
)
def test_an_unknown_field_is_told_with_the_known_ones(
    path: tuple[str | int, ...], name: str, expected: str
) -> None:
    assert str(words.unknown_field(SCHEMA, path, name)) == expected


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"enum": ["a", "b"]}, "kind: 'dog' is unknown; send one of a, b"),
        ({"const": "cat"}, "kind: 'dog' is unknown; send one of cat"),
        ({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}, "kind: 'dog' is unknown; send one of a, b"),
    ],
)
def test_a_wrong_option_is_told_with_all_that_there_are(node: dict[str, Any], expected: str) -> None:
    schema = {"type": "object", "properties": {"kind": node}}
    assert str(words.wrong_option(schema, ("kind",), "dog")) == expected


@pytest.mark.parametrize(
    ("keyword", "limit", "value", "expected"),
    [
        ("minimum", 1, 0, "expected at least 1, got 0"),
        ("maximum", 1, 10**15, "expected at most 1, got a number"),
        ("exclusiveMinimum", 0, 0.0, "expected more than 0, got 0.0"),
        ("exclusiveMaximum", 1, 1, "expected less than 1, got 1"),
        ("multipleOf", 3, 4, "expected a multiple of 3, got 4"),
        ("minLength", 1, "", "expected at least 1 character, got 0 characters"),
        ("maxLength", 1, "ab", "expected at most 1 character, got 2 characters"),
        ("minItems", 2, ["a"], "expected at least 2 items, got 1 item"),
        ("maxItems", 0, ("a", "b"), "expected at most 0 items, got 2 items"),
        ("minProperties", 1, {}, "expected at least 1 field, got an object"),
        ("pattern", "^a", "b", "expected text that matches ^a, got other text"),
    ],
)
def test_a_broken_limit_is_told_with_what_was_sent(
    keyword: str, limit: object, value: object, expected: str
) -> None:
    assert words.out_of_bounds(("x",), keyword, limit, value) == Problem(expected, "x")


def test_a_keyword_that_is_no_limit_is_none() -> None:
    assert words.out_of_bounds((), "uniqueItems", limit=True, value=[1, 1]) is None


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (Problem("as it is", "title", tells=False), "title: as it is"),
        (Problem("secret", "title"), "title: refused; send a string"),
        (Problem("secret"), "refused; send an object with title, records, pair, named, either, pet, none"),
        (Problem("secret", "records[12].title"), "records[12].title: refused; send a string"),
        (Problem("secret", "records[12].secret"), "records[12]: refused; send an object with title, size"),
        (Problem("secret", "named.secret.title"), "named: refused; send an object"),
        (
            Problem("secret", "either.size"),
            "either.size: refused; send an integer",
        ),
        (
            Problem("secret", "secret.title"),
            "refused; send an object with title, records, pair, named, either, pet, none",
        ),
    ],
)
def test_what_was_sent_is_withheld_and_the_schemas_own_words_stay(problem: Problem, expected: str) -> None:
    held = words.withheld(problem, SCHEMA)
    assert (str(held), held.tells) == (expected, False)


def test_a_path_through_names_that_were_sent_may_tell_something() -> None:
    assert words.missing(SCHEMA, ("named", "secret", "title")).tells
    assert words.wrong_type(SCHEMA, ("named", "secret"), 1).tells
    assert not words.missing(SCHEMA, ("records", 0, "title")).tells
    assert not words.wrong_type(SCHEMA, ("either", "title"), 1).tells
