"""Rules of one's own: limits in metadata, validators, converters, ``__post_init__``."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import attrs
import pydantic
import pytest
from decoding import decode, problems

from planning.errors import Problem

Make = Callable[[str], BaseException]


def constructed(make: Make) -> type[Any]:
    @dataclass
    class Positive:
        size: int
        other: int = 0

        def __post_init__(self) -> None:
            if self.size < 0:
                raise make("Nothing is smaller than 0")

    return Positive


def validated(make: Make) -> type[Any]:
    def positive(_record: object, _attribute: object, value: int) -> None:
        if value < 0:
            raise make("Nothing is smaller than 0")

    other = attrs.field(type=int, default=0)
    return attrs.make_class("Positive", {"size": attrs.field(validator=positive, type=int), "other": other})


def converted(make: Make) -> type[Any]:
    def number(value: int) -> int:
        if value < 0:
            raise make("Nothing is smaller than 0")
        return value

    return attrs.make_class("Converted", {"size": attrs.field(converter=number, type=int)})


def by_pydantic(make: Make) -> type[Any]:
    class Refusing(pydantic.BaseModel):
        size: int

        @pydantic.field_validator("size")
        @classmethod
        def _refuse(cls, value: int) -> int:
            if value < 0:
                raise make("Nothing is smaller than 0")
            return value

    return Refusing


DECLARED: dict[Callable[[Make], type[Any]], str] = {
    constructed: "Nothing is smaller than 0",
    validated: "Nothing is smaller than 0",
    converted: "Nothing is smaller than 0",
    by_pydantic: "size: Nothing is smaller than 0",
}


@pytest.mark.parametrize("declare", DECLARED)
def test_a_check_refuses_with_a_value_error_and_fails_with_any_other(
    declare: Callable[[Make], type[Any]],
) -> None:
    assert problems(declare(ValueError), {"size": -1}) == [DECLARED[declare]]
    for failure in (KeyError, OSError, AssertionError):
        error = failure("dsn=postgres://u:hunter2@h")
        kind = declare(lambda _told, error=error: error)  # type: ignore[misc]  # bound now
        if declare is by_pydantic and failure is AssertionError:  # with these its validators refuse
            assert problems(kind, {"size": -1}) == ["size: dsn=postgres://u:hunter2@h"]
            continue
        with pytest.raises(failure) as caught:
            decode(kind, {"size": -1})
        assert caught.value is error


@attrs.define
class Ranged:
    low: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    high: int = attrs.field(default=9, validator=[attrs.validators.instance_of(int), attrs.validators.lt(10)])
    word: str = attrs.field(default="a", validator=attrs.validators.in_(["a", "b"]))

    def __attrs_post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


def checked(text: str) -> Iterator[str]:
    if "-" in text:
        yield "no dashes"


@dataclass
class Limited:
    text: str = field(default="ab", metadata={"min_length": 2, "max_length": 3})
    items: list[str] = field(default_factory=lambda: ["a"], metadata={"min_items": 1})
    free: str = field(default="", metadata={"check": checked})


def lowered(text: str) -> str:
    return text.lower()


@attrs.define
class Period:
    start: datetime.date = datetime.date(2026, 1, 2)
    end: datetime.date = attrs.field(default=datetime.date(2026, 1, 3))
    unit: str = attrs.field(default="day", converter=lowered, validator=attrs.validators.in_(["day"]))

    @end.validator
    def _later(self, _attribute: object, value: datetime.date) -> None:
        if value < self.start:
            raise ValueError("End is before start")
        if self.length() > 366:
            raise ValueError("Too long")

    def length(self) -> int:
        return (self.end - self.start).days


EARLY = {"start": "2026-01-02", "end": "2026-01-01"}
ASKED = "expected an integer, got a string"


@pytest.mark.parametrize(
    ("kind", "arguments", "expected"),
    [
        (Ranged, {"low": -1, "high": 10}, ["low: must be >= 0: -1"]),  # attrs stops at the first
        (Ranged, {"low": "x", "high": 10}, [f"low: {ASKED}"]),
        (Ranged, {"low": 5, "high": 4}, ["low is above high"]),
        (Ranged, {"low": 5, "high": 4, "word": "c"}, ["word: must be in ['a', 'b'] (got 'c')"]),
        (Limited, {"text": "abcd"}, ["text: expected at most 3 characters, got 4 characters"]),
        (Limited, {"items": []}, ["items: expected at least 1 item, got 0 items"]),
        (
            Limited,
            {"text": "a", "items": 1, "free": "-"},
            [
                "text: expected at least 2 characters, got 1 character",
                "items: expected an array of at least 1 item, got a number",
                "free: no dashes",
            ],
        ),
        # A validator sees what was sent, read and converted.
        (Period, {**EARLY, "unit": "Q"}, ["End is before start"]),
        (Period, {"unit": "Q"}, ["unit: must be in ['day'] (got 'q')"]),
        (Period, {**EARLY, "start": "x"}, ["start: expected a date such as 2026-01-31, got a string"]),
        (Period, {"end": "2028-01-01"}, ["Too long"]),
    ],
)
def test_a_rule_refuses_at_its_place_at_any_depth(
    kind: Any, arguments: dict[str, Any], expected: list[str]
) -> None:
    assert problems(kind, arguments) == expected
    places = {
        "one": kind | None,
        "several": list[kind],
        "named": dict[str, kind],
        "pair": tuple[int, kind],
        "deep": dict[str, list[list[kind]]],
    }
    holder = attrs.make_class("Holder", {name: attrs.field(type=hint) for name, hint in places.items()})
    sent = {
        "one": arguments,
        "several": [{}, arguments],
        "named": {"a": arguments},
        "pair": [1, arguments],
        "deep": {"a": [[], [arguments]]},
    }
    names = ("start", "end", "unit", "low:", "high", "word", "width", "text", "items", "free")
    assert problems(holder, sent) == [
        f"{place}{'.' if told.startswith(names) else ': '}{told}"
        for place in ("one", "several[1]", "named.a", "pair[1]", "deep.a[1][0]")
        for told in expected
    ]


def test_a_tool_that_diagnoses_checks_texts_itself_unless_there_are_problems() -> None:
    def diagnose(_arguments: Mapping[str, Any]) -> list[Problem]:
        return []

    assert decode(Limited, {"text": "a", "free": "-"}, diagnose) == Limited("a", free="-")
    assert decode(Limited, {"text": "abc", "free": "a"}) == Limited("abc", free="a")
