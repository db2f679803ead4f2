"""A declaration means the same in whichever of the five ways it is written."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest
from five_ways import GOOD, WAYS, WRONG, Colour, decode, plain, problems

each_way = pytest.mark.parametrize("way", WAYS)
each_wrong = pytest.mark.parametrize("case", WRONG)

# pydantic is as lax as it is configured to be, and by default it converts these: who uses it wants that.
CONVERTED: dict[str, dict[str, Any]] = {
    "true for a number": {"count": 1},
    "yes for true": {"loud": True},
    "1 for true": {"loud": True},
    "midnight for a day": {"day": datetime.date(2026, 1, 31)},
}
# To pydantic a number is a moment in seconds, and this one is no midnight: it says so in its own words.
OWN_WORDS = {
    "a number for a day": ["day: Datetimes provided to dates should have zero time - e.g. be exact dates"]
}


@each_way
@each_wrong
def test_the_same_mistake_is_the_same_list_of_problems(way: str, case: str) -> None:
    changes, expected = WRONG[case]["sent"], WRONG[case]["problems"]
    if way == "pydantic" and case in CONVERTED:
        value = plain(decode(WAYS[way], {**GOOD, **changes}))
        assert {name: value[name] for name in changes} == CONVERTED[case]
        return
    if way == "pydantic":
        expected = OWN_WORDS.get(case, expected)
    assert problems(WAYS[way], {**GOOD, **changes}) == expected


PART = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "size": {"type": "integer"}},
    "required": ["title"],
    "additionalProperties": False,
}
PUBLISHED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "What to call it"},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "ratio": {"type": "number"},
        "loud": {"type": "boolean"},
        "mode": {"type": "string", "enum": ["slow", "fast"]},
        "colour": {"type": "string", "enum": ["red", "green"]},
        "day": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "part": PART,
        "parts": {"type": "array", "items": PART},
        "note": {"type": ["string", "null"]},
    },
    "required": ["name", "count", "ratio", "loud", "mode", "colour", "day", "tags", "part"],
    "additionalProperties": False,
}


def unordered(schema: Any) -> Any:
    """The schema with the names of required fields sorted; their order means nothing."""
    if isinstance(schema, dict):
        return {
            key: sorted(value) if key == "required" else unordered(value) for key, value in schema.items()
        }
    return schema


@each_way
def test_the_published_schema_is_the_same(way: str) -> None:
    assert unordered(WAYS[way].schema()) == unordered(PUBLISHED)


@each_way
def test_the_values_decoded_are_the_same(way: str) -> None:
    expected = {**GOOD, "colour": Colour.RED, "day": datetime.date(2026, 1, 31)}
    assert plain(decode(WAYS[way], GOOD)) == expected
    assert plain(decode(WAYS[way], json.dumps(GOOD))) == expected


# What is sent beside the point -> what it is taken for.
MEANT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "2.0 for 2": ({"count": 2.0}, {"count": 2}),
    "a JSON text for an array": ({"tags": '["a", "b"]'}, {"tags": ["a", "b"]}),
    "a JSON text for a record": ({"part": '{"title": "t", "size": 2}'}, {"part": {"title": "t", "size": 2}}),
    "JSON texts for records": (
        {"parts": ['{"title": "t", "size": 2}']},
        {"parts": [{"title": "t", "size": 2}]},
    ),
    "2 for 2.0": ({"ratio": 2}, {"ratio": 2.0}),
    "a number as text": ({"count": "3"}, {"count": 3}),
    "a number with a point as text": ({"ratio": "-1.5e1"}, {"ratio": -15.0}),
    "a number as text in a record": (
        {"part": {"title": "t", "size": "7"}},
        {"part": {"title": "t", "size": 7}},
    ),
}


@each_way
@pytest.mark.parametrize("meant", MEANT)
def test_what_is_sent_beside_the_point_is_taken_for_the_same(way: str, meant: str) -> None:
    changes, expected = MEANT[meant]
    value = plain(decode(WAYS[way], {**GOOD, **changes}))
    assert {name: value[name] for name in changes} == expected


# A TypedDict has no defaults: a field that was not sent is not there. A function has its own.
DEFAULTS: dict[str, dict[str, Any]] = {
    "pydantic": {"part": {"title": "t", "size": 1}, "parts": [], "note": None},
    "dataclass": {"part": {"title": "t", "size": 1}, "parts": [], "note": None},
    "attrs": {"part": {"title": "t", "size": 1}, "parts": [], "note": None},
    "TypedDict": {"part": {"title": "t"}},
    "function": {"part": {"title": "t", "size": 1}},
}


@each_way
@pytest.mark.parametrize("omitted", [{}, {"parts": None, "note": None}], ids=["left out", "null"])
def test_an_optional_field_is_left_out_or_null(way: str, omitted: dict[str, None]) -> None:
    sent = {name: value for name, value in GOOD.items() if name not in {"parts", "note"}}
    value = plain(decode(WAYS[way], {**sent, "part": "t", **omitted}))
    # Null is a value of the note, which says so.
    expected = DEFAULTS[way] | {name: None for name in omitted if name == "note"}
    assert {name: value[name] for name in ("part", "parts", "note") if name in value} == expected
