"""Making parameters: what only constructors know, places in containers, names that look like numbers."""

from __future__ import annotations

import datetime
import enum
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, NewType, TypedDict, TypeVar

import attrs
import pydantic
import pytest
import typing_extensions
from five_ways import decode, problems

from planning.tools import Tool
from planning.tools.parameters.declared import model_of

T = TypeVar("T")


@dataclass
class Inner:
    size: int


@dataclass
class Box(Generic[T]):
    content: T


@dataclass
class Numbers(Box[int]):
    more: int = 1


@dataclass
class Boxes:
    box: Box[Inner]
    numbers: Numbers | None = None
    several: list[Box[str]] = field(default_factory=list)


def test_generic_records_hold_what_they_are_given() -> None:
    sent = {"box": {"content": {"size": 1}}, "numbers": {"content": 2}, "several": [{"content": "a"}]}
    assert decode(Boxes, sent) == Boxes(Box(Inner(1)), Numbers(2), [Box("a")])
    wrong = {
        "box": {"content": {"size": "x", "z": 1}},
        "numbers": {"content": "x"},
        "several": [{"content": 1}],
    }
    assert problems(Boxes, wrong) == [
        "box.content.size: expected an integer, got a string",
        "box.content.z: unknown field; the fields are size",
        "numbers.content: expected an integer, got a string",
        "several[0].content: expected a string, got a number",
    ]


Named = NewType("Named", Inner)
Alias = typing_extensions.TypeAliasType("Alias", list[Inner])
Generically = typing_extensions.TypeAliasType("Generically", list[T], type_params=(T,))


@dataclass
class ByNewType:
    one: Named


def test_a_new_type_is_what_it_stands_for() -> None:
    assert decode(ByNewType, {"one": {"size": 1}}) == ByNewType(Named(Inner(1)))
    assert problems(ByNewType, {"one": {"size": 1, "z": 2}}) == ["one.z: unknown field; the fields are size"]


class Fixed(TypedDict):
    around: Annotated[typing_extensions.ReadOnly[Inner], "What it holds"]


@dataclass
class WithFixed:
    fixed: list[Fixed]


def test_a_read_only_field_is_one_wherever_it_stands() -> None:
    assert decode(WithFixed, {"fixed": [{"around": {"size": 1}}]}) == WithFixed([{"around": Inner(1)}])
    assert problems(WithFixed, {"fixed": [{"around": {"size": 1, "z": 2}}]}) == [
        "fixed[0].around.z: unknown field; the fields are size"
    ]


def checked(text: str) -> list[str]:
    return ["no dashes"] if "-" in text else []


@dataclass
class Limited:
    text: str = field(metadata={"max_length": 3})
    free: str = field(default="", metadata={"check": checked})


@dataclass
class Nested:
    maps: dict[str, list[Limited]] | None = None
    lists: Annotated[list[list[Limited]], "Lists"] = field(default_factory=list)
    pair: tuple[Limited, Inner] | None = None


def test_limits_are_enforced_however_deep() -> None:
    long = {"text": "four"}
    told = "text: expected at most 3 characters, got 4 characters"
    assert problems(Nested, {"maps": {"a": [long]}, "lists": [[], [long]], "pair": [long, {"size": 1}]}) == [
        f"maps.a[0].{told}",
        f"lists[1][0].{told}",
        f"pair[0].{told}",
    ]
    assert problems(Nested, {"maps": {"a": [{"text": "a", "free": "-"}]}}) == ["maps.a[0].free: no dashes"]


class Level(enum.IntEnum):
    HIGH = 2
    LOW = 1


@dataclass
class Maps:
    by_level: dict[Level, Inner] = field(default_factory=dict)
    by_name: dict[str, int] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"by_level": {"2": {"size": 1}}}, []),
        ({"by_level": {"2": {"size": "x"}}}, ["by_level.2.size: expected an integer, got a string"]),
        ({"by_level": {"2": {"size": 1, "z": 1}}}, ["by_level.2.z: unknown field; the fields are size"]),
        ({"by_level": {"3": {"size": 1}}}, ["by_level.3: Input should be 2 or 1"]),
        ({"by_name": {"2": "x"}}, ["by_name.2: expected an integer, got a string"]),
        ({"by_name": {"02": "x"}}, ["by_name.02: expected an integer, got a string"]),
    ],
)
def test_a_name_of_digits_is_a_name(arguments: object, expected: list[str]) -> None:
    assert problems(Maps, arguments) == expected


Digits = TypedDict("Digits", {"1": Inner, "a-b": int})


def test_a_field_may_have_any_name() -> None:
    assert decode(Digits, {"1": {"size": 1}, "a-b": 2}) == {"1": Inner(1), "a-b": 2}
    assert problems(Digits, {"1": {"size": "x", "z": 1}, "a-b": 2}) == [
        "1.size: expected an integer, got a string",
        "1.z: unknown field; the fields are size",
    ]


@dataclass
class Cat:
    type: Literal["cat"]
    lives: int
    name: str | None = None


@dataclass
class Dog:
    type: Literal["dog"]
    sound: str
    name: str = ""


@dataclass
class Owner:
    pet: Cat | Dog
    colour: Literal["red", None] = None
    either: Literal["b", "a"] | int = 0
    since: datetime.date | None = None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pet": {}}, ["pet.type: missing; send cat or dog"]),
        ({"pet": {"type": "cow"}}, ["pet.type: 'cow' is unknown; send one of cat, dog"]),
        ({"pet": {"type": "cat"}}, ["pet.lives: missing; send an integer"]),
        ({"pet": {"type": "cat", "lives": 2.0, "name": None}}, []),
        ({"pet": '{"type": "cat", "lives": 2}'}, []),
        ({"pet": {"type": "dog", "sound": "w", "name": None}}, []),
        (
            {"pet": 3},
            [
                "pet: expected an object with type, lives, name or an object with type, sound, name, "
                "got a number"
            ],
        ),
        (
            {"pet": {"type": "cat", "lives": 9}, "colour": "blue"},
            ["colour: 'blue' is unknown; send one of red"],
        ),
        ({"pet": {"type": "cat", "lives": 9}, "either": "a"}, []),
        ({"pet": {"type": "cat", "lives": 9}, "either": "c"}, ["either: 'c' is unknown; send one of b, a"]),
        (
            {"pet": {"type": "cat", "lives": 9}, "either": 1.5},
            ["either: expected one of b, a or an integer, got a number"],
        ),
    ],
)
def test_the_option_that_is_meant_is_the_one_that_is_told(arguments: object, expected: list[str]) -> None:
    assert problems(Owner, arguments) == expected


def test_options_of_several_types_have_none_in_common() -> None:
    @dataclass
    class Mixed:
        mixed: Literal["b", 1, "a"]

    assert model_of(Mixed).schema()["properties"] == {"mixed": {"enum": ["b", 1, "a"]}}


def lowered(text: str) -> str:
    return text.lower()


def scaled(value: float, period: Any) -> float:
    return value * 2 if period.unit else value


scaling: Any = attrs.Converter(scaled, takes_self=True)


@attrs.define
class Period:
    start: datetime.date
    end: datetime.date = attrs.field()
    unit: str = attrs.field(default="day", converter=lowered, validator=attrs.validators.in_(["day"]))
    scale: float = attrs.field(default=1.0, converter=scaling)  # type: ignore[misc]  # mypy does not know such converters
    half: float = attrs.Factory(lambda self: self.scale / 2, takes_self=True)

    @end.validator
    def _later(self, _attribute: object, value: datetime.date) -> None:
        if value < self.start:
            raise ValueError("End is before start")
        if self.length() > 366:
            raise ValueError("Too long")

    def length(self) -> int:
        return (self.end - self.start).days


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"end": "2026-01-01"}, ["end: End is before start"]),
        (
            {"end": "2026-01-01", "unit": "q"},
            ["end: End is before start", "unit: must be in ['day'] (got 'q')"],
        ),
        ({"start": "x", "end": "2026-01-01"}, ["start: expected a date such as 2026-01-31, got a string"]),
        ({"end": "2028-01-01"}, ["Too long"]),
        ({"end": "2026-01-01", "scale": 2.0}, ["end: End is before start"]),
    ],
)
def test_a_validator_sees_the_other_fields_as_they_will_be(
    changes: dict[str, Any], expected: list[str]
) -> None:
    assert problems(Period, {"start": "2026-01-02", "end": "2026-01-03", **changes}) == expected


def test_validators_see_what_converters_made() -> None:
    made = decode(Period, {"start": "2026-01-02", "end": "2026-01-03", "unit": "DAY", "scale": 2.0})
    assert (made.unit, made.scale, made.half) == ("day", 4.0, 2.0)


def test_an_attribute_error_of_a_validator_is_a_failure_and_no_refusal() -> None:
    def check(_record: object, _attribute: object, value: Any) -> None:
        value.nothing_of_this_name  # noqa: B018 - what the test is about

    kind = attrs.make_class("Checked", {"size": attrs.field(validator=check, type=int)})
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        decode(kind, {"size": 1})


@dataclass(frozen=True)
class Point:
    x: int


@dataclass
class Sets:
    points: set[Point] = field(default_factory=set)
    made: bool = field(init=False, default=True)


def test_a_set_of_frozen_records_is_one() -> None:
    assert decode(Sets, {"points": [{"x": 1}, {"x": 1}]}) == Sets({Point(1)})


def test_the_hints_of_a_class_are_those_of_its_constructor() -> None:
    assert Tool("t", "d", Inner).parameters_schema()["properties"] == {"size": {"type": "integer"}}


def test_a_context_whose_hint_cannot_be_read_is_none() -> None:
    def run(params: Inner, other: Nowhere = None) -> object:  # type: ignore[name-defined]  # noqa: F821 - what the test is about
        return other

    assert Tool("t", "d", run, parameters=Inner).execute(size=1)["result"] is None


class Kitten(pydantic.BaseModel):
    kind: Literal["kitten"]
    lives: int


class Puppy(pydantic.BaseModel):
    kind: Literal["puppy"]
    sound: str


def _which(value: Any) -> str:
    return "k" if value.get("kind") == "kitten" else "?"


Chosen = Annotated[
    Annotated[Kitten, pydantic.Tag("k")] | Annotated[Puppy, pydantic.Tag("p")], pydantic.Discriminator(_which)
]


class Keeper(pydantic.BaseModel):
    pets: list[Annotated[Kitten | Puppy, pydantic.Field(discriminator="kind")]] = []
    chosen: Chosen | None = None
    either: list[int] | dict[str, int] = []
    counts: Annotated[dict[str, int], pydantic.Field(min_length=1)] = {"a": 1}
    price: Annotated[int, pydantic.Field(multiple_of=2)] = 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"pets": [{"kind": "puppy"}, {"kind": "x"}, {}]},
            [
                "pets[0].sound: missing; send a string",
                "pets[1].kind: 'x' is unknown; send one of kitten, puppy",
                "pets[2].kind: missing; send kitten or puppy",
            ],
        ),
        ({"pets": ['{"kind": "puppy", "sound": "w"}']}, []),
        (
            {"chosen": {}},
            ["chosen: Input tag '?' found using _which() does not match any of the expected tags: 'k', 'p'"],
        ),
        ({"either": ["x"]}, ["either[0]: expected an integer, got a string"]),
        ({"either": {"a": "x"}}, ["either.a: expected an integer, got a string"]),
        ({"either": 3}, ["either: expected an array or an object, got a number"]),
        ({"counts": {}}, ["counts: expected at least 1 field, got an object"]),
        ({"\ud800": 1}, ["Input should be a valid string, unable to parse raw data as a unicode string"]),
    ],
)
def test_the_unions_of_pydantic_are_told_as_others_are(arguments: object, expected: list[str]) -> None:
    assert problems(Keeper, arguments) == expected


def test_a_model_that_no_end_is_to_is_no_json() -> None:
    class Listening(pydantic.BaseModel):
        size: int

        @pydantic.field_validator("size", mode="before")
        @classmethod
        def _endless(cls, value: int) -> int:
            raise RecursionError

    assert problems(Listening, {"size": 1}) == [
        "arguments must hold JSON values only: text, numbers, booleans, null, arrays, objects"
    ]
