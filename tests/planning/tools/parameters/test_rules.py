"""Rules of one's own: metadata, validators, converters, ``__post_init__``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import attrs
import pytest
from five_ways import decode, problems

from planning.errors import Problem


class OwnValueError(ValueError):
    """With more behind the text, as some have."""

    def __str__(self) -> str:
        return str(self.args[1])


REFUSALS: list[Callable[[str], Exception]] = [
    ValueError,
    TypeError,
    lambda told: ValueError(told, "and", "more"),
    lambda told: OwnValueError(2, told),
]
FAILURES = [KeyError, RuntimeError, AssertionError, LookupError, OSError]


def refused_by_itself(make: Callable[[str], Exception]) -> type[Any]:
    @dataclass
    class Positive:
        size: int

        def __post_init__(self) -> None:
            if self.size < 0:
                raise make("Nothing is smaller than 0")

    return Positive


def validated(make: Callable[[str], Exception]) -> type[Any]:
    def positive(_record: object, _attribute: object, value: int) -> None:
        if value < 0:
            raise make("Nothing is smaller than 0")

    return attrs.make_class(
        "Positive", {"size": attrs.field(validator=positive, type=int), "other": attrs.field(type=int)}
    )


def converted(make: Callable[[str], Exception]) -> type[Any]:
    def number(text: str) -> int:
        if not text.isdigit():
            raise make("digits, please")
        return int(text)

    return attrs.make_class("Converted", {"size": attrs.field(converter=number, type=str)})


@pytest.mark.parametrize("make", REFUSALS)
def test_a_record_refuses_itself_with_a_value_error_or_a_type_error(make: Callable[[str], Exception]) -> None:
    kind = refused_by_itself(make)
    assert decode(kind, {"size": 1}) == kind(1)
    assert problems(kind, {"size": -1}) == ["Nothing is smaller than 0"]


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize(
    ("declare", "arguments"),
    [
        (refused_by_itself, {"size": -1}),
        (validated, {"size": -1, "other": 1}),
        (converted, {"size": "many"}),
    ],
)
def test_any_other_exception_of_a_check_is_a_failure_and_no_refusal(
    declare: Any, arguments: dict[str, Any], failure: type[Exception]
) -> None:
    error = failure("dsn=postgres://u:hunter2@h")
    with pytest.raises(failure) as caught:
        decode(declare(lambda _told: error), arguments)
    assert caught.value is error


@pytest.mark.parametrize("failure", FAILURES)
def test_a_check_that_fails_hides_no_other_problem(failure: type[Exception]) -> None:
    kind = validated(failure)
    assert problems(kind, {"size": -1, "other": "x"}) == ["other: expected an integer, got a string"]


@pytest.mark.parametrize("make", REFUSALS)
def test_a_validator_refuses_with_a_value_error_or_a_type_error(make: Callable[[str], Exception]) -> None:
    kind = validated(make)
    assert problems(kind, {"size": -1, "other": "x"}) == [
        "size: Nothing is smaller than 0",
        "other: expected an integer, got a string",
    ]
    assert problems(kind, {"size": -1, "other": 1}) == ["size: Nothing is smaller than 0"]


@pytest.mark.parametrize("make", REFUSALS)
def test_a_converter_refuses_with_its_place(make: Callable[[str], Exception]) -> None:
    kind = converted(make)
    assert decode(kind, {"size": "3"}).size == 3
    assert problems(kind, {"size": "many"}) == ["size: digits, please"]


@dataclass
class Positive:
    size: int

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("less than nothing")


@dataclass
class Holder:
    one: Positive
    several: list[Positive] = field(default_factory=list)
    named: dict[str, Positive] = field(default_factory=dict)
    maybe: Positive | None = None
    pair: tuple[int, Positive] | None = None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"one": {"size": -1}}, ["one: less than nothing"]),
        (
            {"one": {"size": -1}, "several": [{"size": 1}, {"size": -1}], "maybe": {"size": -1}},
            ["one: less than nothing", "several[1]: less than nothing", "maybe: less than nothing"],
        ),
        ({"one": {"size": 1}, "named": {"a": {"size": -1}}}, ["named.a: less than nothing"]),
        (
            {"one": {"size": "x"}, "several": [{"size": -1}]},
            ["one.size: expected an integer, got a string", "several[0]: less than nothing"],
        ),
        ({"one": {"size": 1}, "pair": [1, {"size": -1}]}, ["pair[1]: less than nothing"]),
    ],
)
def test_a_nested_record_refuses_itself_at_its_place(arguments: object, expected: list[str]) -> None:
    assert problems(Holder, arguments) == expected


@attrs.define
class Ranged:
    low: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    high: int = attrs.field(default=9, validator=[attrs.validators.instance_of(int), attrs.validators.lt(10)])
    word: str = attrs.field(default="a", validator=attrs.validators.in_(["a", "b"]))

    def __attrs_post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


@attrs.define
class RangedHolder:
    ranges: list[Ranged]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"low": -1}, ["low: must be >= 0: -1"]),
        ({"low": -1, "high": 10}, ["low: must be >= 0: -1", "high: must be < 10: 10"]),
        ({"low": "x", "high": 10}, ["low: expected an integer, got a string", "high: must be < 10: 10"]),
        ({"word": "c"}, ["word: must be in ['a', 'b'] (got 'c')"]),
        ({"low": 5, "high": 4}, ["low is above high"]),
        ({"low": 5, "high": 4, "word": "c"}, ["word: must be in ['a', 'b'] (got 'c')"]),
    ],
)
def test_the_validators_of_attrs_are_told_field_by_field(
    arguments: dict[str, Any], expected: list[str]
) -> None:
    assert problems(Ranged, arguments) == expected
    assert problems(RangedHolder, {"ranges": [arguments]}) == [
        f"ranges[0]{'.' if ': ' in told and not told.startswith('low is') else ': '}{told}"
        for told in expected
    ]


@attrs.define
class Compared:
    size: int = attrs.field()
    low: int = 0

    @size.validator
    def _above(self, _attribute: object, value: int) -> None:
        if value < self.low:
            raise ValueError(f"must be at least {self.low}")


def test_a_validator_sees_the_other_fields_their_defaults_too() -> None:
    assert problems(Compared, {"size": 1, "low": 5}) == ["size: must be at least 5"]
    assert problems(Compared, {"size": -1}) == ["size: must be at least 0"]


@attrs.define
class Computed:
    size: int
    double: int = attrs.field(default=attrs.Factory(lambda self: self.size * 2, takes_self=True))
    triple: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.triple = self.size * 3


@dataclass
class Totalled:
    parts: list[Computed]
    total: int = field(init=False)

    def __post_init__(self) -> None:
        self.total = sum(part.double for part in self.parts)


def test_what_is_computed_from_other_fields_need_not_be_sent() -> None:
    made = decode(Totalled, {"parts": [{"size": 1}, {"size": 2, "double": 5}]})
    assert made == Totalled([Computed(1), Computed(2, 5)])
    assert (made.total, made.parts[1].triple) == (7, 6)
    assert problems(Totalled, {"parts": [], "total": 3}) == ["total: unknown field; the fields are parts"]


def trimmed(text: str) -> str:
    return text.strip()


@attrs.define
class Trimmed:
    text: str = attrs.field(converter=trimmed)
    fixed: int = attrs.field(init=False, default=3)


@dataclass
class TrimmedHolder:
    one: Trimmed
    several: tuple[Trimmed, ...] = ()
    listed: list[Trimmed] = field(default_factory=list)
    named: dict[str, Trimmed] = field(default_factory=dict)
    made: int = field(init=False, default=1)


def test_the_converters_of_attrs_are_applied_at_every_depth() -> None:
    sent = {"text": " a "}
    decoded = decode(TrimmedHolder, {"one": sent, "several": [sent], "listed": [sent], "named": {"x": sent}})
    assert decoded == TrimmedHolder(Trimmed("a"), (Trimmed("a"),), [Trimmed("a")], {"x": Trimmed("a")})


def checked(text: str) -> Iterator[str]:
    if "-" in text:
        yield "no dashes"


@dataclass
class Limited:
    text: str = field(default="ab", metadata={"min_length": 2, "max_length": 3})
    items: list[str] = field(default_factory=lambda: ["a"], metadata={"min_items": 1})
    free: str = field(default="", metadata={"check": checked})


@dataclass
class LimitedHolder:
    one: Limited = field(default_factory=Limited)
    several: list[Limited] = field(default_factory=list)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"text": "a"}, ["text: expected at least 2 characters, got 1 character"]),
        ({"text": "abcd"}, ["text: expected at most 3 characters, got 4 characters"]),
        ({"items": []}, ["items: expected at least 1 item, got 0 items"]),
        ({"free": "a-b"}, ["free: no dashes"]),
        (
            {"text": "a", "items": 1, "free": "-"},
            [
                "text: expected at least 2 characters, got 1 character",
                "items: expected an array of at least 1 item, got a number",
                "free: no dashes",
            ],
        ),
    ],
)
def test_the_limits_in_metadata_are_enforced(arguments: dict[str, Any], expected: list[str]) -> None:
    assert problems(Limited, arguments) == expected
    for wrong, place in (({"one": arguments}, "one"), ({"several": [{}, arguments]}, "several[1]")):
        assert problems(LimitedHolder, wrong) == [f"{place}.{told}" for told in expected]


def test_a_tool_that_diagnoses_checks_texts_itself_unless_there_are_problems() -> None:
    def diagnose(_arguments: Mapping[str, Any]) -> list[Problem]:
        return []

    assert decode(Limited, {"text": "a", "free": "-"}, diagnose) == Limited("a", free="-")
