"""Coercion: what is plainly meant is taken for it, and all else is left as it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.tools.parameters.coercion import coerced

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
NULL = {"type": "null"}
RECORD: dict[str, Any] = {
    "type": "object",
    "properties": {"title": TEXT, "size": WHOLE},
    "required": ["title"],
    "additionalProperties": False,
}
PAIR: dict[str, Any] = {
    "type": "array",
    "prefixItems": [WHOLE, RECORD],
    "minItems": 2,
    "maxItems": 2,
    "items": False,
}


@pytest.mark.parametrize(
    ("schema", "data", "expected"),
    [
        (WHOLE, 2.5, 2.5),
        (WHOLE, True, True),
        ({"type": "number"}, 2.0, 2.0),
        (RECORD, ' {"title": "a", "size": 2.0}', {"title": "a", "size": 2}),
        (RECORD, '{"title": ', '{"title": '),
        (RECORD, "[1]", {"title": "[1]"}),
        (RECORD, {"title": "a", "size": None}, {"title": "a"}),
        (RECORD, {"title": None, "other": None}, {"title": None, "other": None}),
        ({**RECORD, "required": []}, "a title", "a title"),
        ({**RECORD, "required": ["size"]}, "1", "1"),
        ({"type": "array", "items": WHOLE}, (1.0, "x"), [1, "x"]),
        ({"type": "array", "items": WHOLE}, '{"a": 1}', '{"a": 1}'),
        ({"type": "array", "items": RECORD}, ["a", 1], [{"title": "a"}, 1]),
        ({"type": "array"}, "[1]", [1]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": "object", "additionalProperties": RECORD}, {"a": "x"}, {"a": {"title": "x"}}),
        ({"type": "object", "properties": {"a": {"anyOf": [WHOLE, NULL]}}}, {"a": 2.0}, {"a": 2}),
        ({"anyOf": [RECORD, NULL]}, "a", {"title": "a"}),
        ({"anyOf": [RECORD, NULL]}, None, None),
        ({"anyOf": [TEXT, RECORD]}, '{"title": "a"}', '{"title": "a"}'),
        ({}, "[1]", "[1]"),
        (PAIR, "[1.0, {}]", [1, {}]),
        (PAIR, [1, "a", 2.0], [1, {"title": "a"}, 2.0]),
        (PAIR, "pair", "pair"),
    ],
)
def test_data_is_taken_for_what_it_means(schema: dict[str, Any], data: object, expected: object) -> None:
    assert repr(coerced(data, schema)) == repr(expected)  # as text, for 2 and 2.0 are not the same here


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text('[]{}"a1', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["title", "size", "x"]), inner)
    ),
    max_leaves=6,
)


@given(schema=st.sampled_from([TEXT, WHOLE, RECORD, PAIR, {"type": "array", "items": RECORD}, {}]), data=JSON)
def test_what_was_taken_once_stays(schema: dict[str, Any], data: object) -> None:
    once = coerced(data, schema)
    assert coerced(once, schema) == once
