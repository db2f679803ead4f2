"""Parameter models of record types: what users write, and what a model reads of its mistakes."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, Required, TypedDict, TypeVar

import attrs
import pydantic
import pytest
import typing_extensions
from five_ways import decode, problems

from planning.tools import tool
from planning.tools.parameters.declared import model_of

T = TypeVar("T")


@dataclass
class Inner:
    size: int
    word: str = ""


@dataclass
class Nested:
    maybe: Inner | None = None
    several: list[Inner] | None = None
    some: list[Inner | None] = field(default_factory=list)
    either: Inner | int = 0
    named: dict[str, Inner] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"maybe": {"size": "x"}}, ["maybe.size: expected an integer, got a string"]),
        (
            {"maybe": {"size": "x", "more": 1}},
            [
                "maybe.size: expected an integer, got a string",
                "maybe.more: unknown field; the fields are size, word",
            ],
        ),
        ({"maybe": {}}, ["maybe.size: missing; send an integer"]),
        ({"maybe": 3}, ["maybe: expected an object with size, word, got a number"]),
        ({"several": 3}, ["several: expected an array, got a number"]),
        ({"several": [{"size": "x"}]}, ["several[0].size: expected an integer, got a string"]),
        (
            {"some": [None, {"size": 1}, {"size": "x"}, {"sise": 1}]},
            [
                "some[2].size: expected an integer, got a string",
                "some[3].size: missing; send an integer",
                "some[3].sise: unknown field; did you mean size?",
            ],
        ),
        ({"either": {"size": "x"}}, ["either.size: expected an integer, got a string"]),
        (
            {"either": {"zzz": 1}},
            ["either.size: missing; send an integer", "either.zzz: unknown field; the fields are size, word"],
        ),
        ({"either": "x"}, ["either: expected an object with size, word or an integer, got a string"]),
        (
            {"named": {"a": {"size": "x"}, "b": {"more": 1}}},
            [
                "named.a.size: expected an integer, got a string",
                "named.b.size: missing; send an integer",
                "named.b.more: unknown field; the fields are size, word",
            ],
        ),
        ({"named": []}, ["named: expected an object, got an array"]),
    ],
)
def test_a_mistake_in_a_nested_record_is_found_at_its_place(arguments: object, expected: list[str]) -> None:
    assert problems(Nested, arguments) == expected


class Pair(NamedTuple):
    left: int
    right: str = "r"


@dataclass
class Several:
    pair: tuple[int, str] = (1, "a")
    records: tuple[int, Inner] | None = None
    numbers: tuple[int, ...] = ()
    unique: set[int] = field(default_factory=set)
    frozen: frozenset[str] = frozenset()
    sequence: Sequence[int] = ()
    counts: dict[str, int] = field(default_factory=dict)
    by_number: dict[int, str] = field(default_factory=dict)
    named: Pair = Pair(1)
    maybe: int | None = None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"pair": [2, "b"]}', Several(pair=(2, "b"))),
        ('{"records": [1, {"size": 2}]}', Several(records=(1, Inner(2)))),
        ('{"numbers": [1, 2.0]}', Several(numbers=(1, 2))),
        ('{"unique": [1, 2], "frozen": ["a"]}', Several(unique={1, 2}, frozen=frozenset("a"))),
        ('{"sequence": [1]}', Several(sequence=[1])),
        ('{"by_number": {"1": "a"}}', Several(by_number={1: "a"})),
        ('{"named": [2, "s"]}', Several(named=Pair(2, "s"))),
        ('{"named": [2]}', Several(named=Pair(2))),
        ('{"maybe": 2.0}', Several(maybe=2)),
        ('{"counts": {"a": 2.0}}', Several(counts={"a": 2})),
    ],
)
def test_collections_of_all_kinds_are_decoded(arguments: str, expected: Several) -> None:
    assert decode(Several, arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"pair": ["x", 1]},
            ["pair[0]: expected an integer, got a string", "pair[1]: expected a string, got a number"],
        ),
        ({"pair": [1]}, ["pair: expected at least 2 items, got 1 item"]),
        ({"pair": [1, "a", 2]}, ["pair: expected at most 2 items, got 3 items"]),
        ({"records": [1, {"size": "x"}]}, ["records[1].size: expected an integer, got a string"]),
        ({"numbers": ["x"]}, ["numbers[0]: expected an integer, got a string"]),
        ({"unique": ["x"]}, ["unique[0]: expected an integer, got a string"]),
        ({"sequence": [1, "x"]}, ["sequence[1]: expected an integer, got a string"]),
        ({"counts": {"a": "x", "b": 1}}, ["counts.a: expected an integer, got a string"]),
        ({"counts": {"a.b": "x"}}, ["counts.a.b: expected an integer, got a string"]),
        ({"named": ["x"]}, ["named[0]: expected an integer, got a string"]),
        ({"named": []}, ["named: expected at least 1 item, got 0 items"]),
    ],
)
def test_a_mistake_in_a_collection_is_told_once_at_its_place(arguments: object, expected: list[str]) -> None:
    assert problems(Several, arguments) == expected


class Number(enum.IntEnum):
    TWO = 2
    ONE = 1


class Letter(enum.StrEnum):
    Z = "z"
    A = "a"


@dataclass
class Words:
    mode: Literal["z", "a"] | None = None
    modes: list[Literal["z", "a"]] = field(default_factory=list)
    number: Number = Number.ONE
    letter: Letter | None = None
    letters: list[Letter] = field(default_factory=list)


def test_options_are_published_in_the_order_in_which_they_are_declared() -> None:
    assert model_of(Words).schema()["properties"] == {
        "mode": {"anyOf": [{"type": "string", "enum": ["z", "a"]}, {"type": "null"}]},
        "modes": {"type": "array", "items": {"type": "string", "enum": ["z", "a"]}},
        "number": {"type": "integer", "enum": [2, 1]},
        "letter": {"anyOf": [{"type": "string", "enum": ["z", "a"]}, {"type": "null"}]},
        "letters": {"type": "array", "items": {"type": "string", "enum": ["z", "a"]}},
    }


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"mode": "q"}, ["mode: 'q' is unknown; send one of z, a"]),
        ({"modes": ["a", "q"]}, ["modes[1]: 'q' is unknown; send one of z, a"]),
        ({"number": 3}, ["number: a value of type int is unknown; send one of 2, 1"]),
        ({"letter": "q"}, ["letter: 'q' is unknown; send one of z, a"]),
    ],
)
def test_a_wrong_option_is_told_with_all_options(arguments: object, expected: list[str]) -> None:
    assert problems(Words, arguments) == expected


def test_two_point_zero_is_the_member_two() -> None:
    assert decode(Words, {"number": 2.0}) == Words(number=Number.TWO)


@dataclass
class Formats:
    moment: datetime.datetime | None = None
    time: datetime.time | None = None
    length: datetime.timedelta | None = None
    number: uuid.UUID | None = None
    price: decimal.Decimal | None = None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("moment", "a date and time such as 2026-01-31T12:00:00Z"),
        ("time", "a time such as 12:00:00"),
        ("length", "a duration such as PT15M"),
        ("number", "a UUID"),
        ("price", 'a decimal number such as "1.50"'),
    ],
)
def test_a_text_of_the_wrong_form_is_told_with_the_right_one(name: str, expected: str) -> None:
    assert problems(Formats, {name: "x"}) == [f"{name}: expected {expected}, got a string"]


class Half(TypedDict, total=False):
    needed: Required[int]
    left_out: str


class Whole(Half):
    more: NotRequired[int]


def test_a_typed_dict_needs_what_its_qualifiers_say() -> None:
    assert problems(Half, {}) == ["needed: missing; send an integer"]
    assert problems(Whole, {"more": "x"}) == [
        "needed: missing; send an integer",
        "more: expected an integer, got a string",
    ]
    assert decode(Whole, {"needed": 1}) == {"needed": 1}


class Fixed(typing_extensions.TypedDict):
    size: typing_extensions.ReadOnly[int]


def test_a_read_only_field_is_a_field() -> None:
    assert decode(Fixed, {"size": 1}) == {"size": 1}
    assert problems(Fixed, {"size": "x"}) == ["size: expected an integer, got a string"]


@dataclass
class User:
    name: str
    is_admin: bool = field(init=False, default=False)


@attrs.define
class AttrsUser:
    name: str
    is_admin: bool = attrs.field(init=False, default=False)


@pytest.mark.parametrize("kind", [User, AttrsUser])
def test_a_field_that_the_constructor_does_not_take_cannot_be_sent(kind: type) -> None:
    assert problems(kind, {"name": "n", "is_admin": True}) == ["is_admin: unknown field; the fields are name"]
    assert model_of(kind).schema()["properties"] == {"name": {"type": "string"}}
    assert decode(kind, {"name": "n"}) == kind("n")


@dataclass
class Box(Generic[T]):
    content: T


@dataclass
class WithBox:
    box: Box[int]


def test_no_unknown_field_of_a_generic_record_is_lost() -> None:
    assert decode(WithBox, {"box": {"content": 1}}) == WithBox(Box(1))
    assert problems(WithBox, {"box": {"content": "x"}}) == ["box.content: expected an integer, got a string"]
    assert problems(WithBox, {"box": {"content": 1, "more": 2}}) == [
        "box.more: unknown field; the fields are content"
    ]


def test_an_attribute_without_a_type_takes_anything() -> None:
    kind = attrs.make_class("Made", {"size": attrs.field(default=1)})
    assert decode(kind, {"size": ["x"]}) == kind(["x"])
    assert problems(kind, {"other": 1}) == ["other: unknown field; the fields are size"]


@attrs.frozen
class Private:
    _size: int = attrs.field(alias="renamed")


def test_an_attrs_field_is_sent_by_its_own_name() -> None:
    assert decode(Private, {"_size": 1}) == Private(1)
    assert problems(Private, {"renamed": 1}) == [
        "_size: missing; send an integer",
        "renamed: unknown field; the fields are _size",
    ]


@dataclass
class Limited:
    text: Annotated[str, pydantic.Field(pattern="^a", min_length=1, max_length=3)] = "a"
    numbers: Annotated[list[Annotated[int, pydantic.Field(ge=0)]], pydantic.Field(max_length=2)] = field(
        default_factory=list
    )
    three: Annotated[int, pydantic.Field(multiple_of=3, gt=0, lt=10)] = 3
    named: Annotated[dict[str, int], pydantic.Field(min_length=1)] = field(default_factory=lambda: {"a": 1})
    maybe: Annotated[int, pydantic.Field(ge=5)] | None = None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"text": "b"}, ["text: expected text that matches ^a, got other text"]),
        ({"text": "aaaa"}, ["text: expected at most 3 characters, got 4 characters"]),
        ({"numbers": [1, 2, 3]}, ["numbers: expected at most 2 items, got 3 items"]),
        ({"numbers": [-1]}, ["numbers[0]: expected at least 0, got -1"]),
        ({"three": 4}, ["three: expected a multiple of 3, got 4"]),
        ({"three": 12}, ["three: expected less than 10, got 12"]),
        ({"named": {}}, ["named: expected at least 1 field, got an object"]),
        ({"maybe": 1}, ["maybe: expected at least 5, got 1"]),
    ],
)
def test_limits_in_annotated_are_enforced(arguments: object, expected: list[str]) -> None:
    assert problems(Limited, arguments) == expected


def test_an_open_model_lets_its_own_unknown_fields_through_and_no_others() -> None:
    def f(needed: int, maybe: Inner | None = None, **more: Any) -> None: ...

    model = tool(name="open")(f).model
    assert model.name == "open"
    assert model.schema()["additionalProperties"] is True
    assert decode(model, {"needed": 1, "more": 2}) == {"needed": 1, "more": 2}
    assert decode(model, {"needed": 1.0, "more": 2}) == {"needed": 1, "more": 2}
    assert problems(model, {"needed": 1, "maybe": {"size": 1, "more": 2}}) == [
        "maybe.more: unknown field; the fields are size, word"
    ]


@pytest.mark.parametrize("count", [49, 50, 5_000])
def test_at_most_fifty_problems_are_told_and_then_that_there_are_more(count: int) -> None:
    told = problems(Several, {"numbers": ["x"] * count})
    expected = [f"numbers[{place}]: expected an integer, got a string" for place in range(min(count, 50))]
    assert told == expected + ["more may be wrong; mend these first"] * (count >= 50)
