"""Strict twins: they take what the record type takes, and no field besides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, TypedDict, TypeVar

import msgspec
import pytest

from planning.tools.parameters.strict import strict_twin

T = TypeVar("T")


@dataclass
class Inner:
    size: int
    word: str = ""


@dataclass
class Outer:
    one: Inner
    maybe: Inner | None = None
    several: list[Inner] = field(default_factory=list)
    named: dict[str, Inner] = field(default_factory=dict)
    pair: tuple[int, Inner] | None = None
    said: Annotated[list[Inner], "Some"] = field(default_factory=list)
    mode: Literal["a", "b"] = "a"
    numbers: list[int] = field(default_factory=list)


ONE = {"size": 1}
MORE = {"size": 1, "more": 2}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"maybe": None},
        {"maybe": ONE},
        {"several": [ONE, ONE]},
        {"named": {"a": ONE, "b": ONE}},
        {"pair": [1, ONE]},
        {"said": [ONE]},
        {"mode": "b", "numbers": [1]},
    ],
)
def test_what_the_type_takes_its_twin_takes(more: dict[str, Any]) -> None:
    twin = strict_twin(Outer)
    assert twin is not None
    msgspec.convert({"one": ONE, **more}, twin)


@pytest.mark.parametrize(
    "wrong",
    [
        {"one": MORE},
        {"one": ONE, "more": 1},
        {"one": ONE, "maybe": MORE},
        {"one": ONE, "several": [ONE, MORE]},
        {"one": ONE, "named": {"a": MORE}},
        {"one": ONE, "pair": [1, MORE]},
        {"one": ONE, "said": [MORE]},
    ],
)
def test_an_unknown_field_is_refused_at_every_depth(wrong: dict[str, Any]) -> None:
    twin = strict_twin(Outer)
    assert twin is not None
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, twin)


class Struct(msgspec.Struct):
    size: int


@dataclass
class WithStruct:
    inner: Struct


@dataclass
class Endless:
    again: Endless | None = None


@dataclass
class Two:
    either: Inner | Outer


@dataclass
class Box(Generic[T]):
    content: T


@dataclass
class WithBox:
    box: Box[int]


@dataclass
class Dunder:
    __hidden: int = 0


NoIdentifier = TypedDict("NoIdentifier", {"a-b": int})


@pytest.mark.parametrize("kind", [Struct, WithStruct, Endless, NoIdentifier])
def test_a_type_of_which_no_twin_can_be_made_has_none(kind: type) -> None:
    assert strict_twin(kind) is None


def test_a_union_of_two_records_has_no_twin() -> None:
    assert strict_twin(Two) is None


def test_a_generic_record_has_no_twin_that_lets_fields_through() -> None:
    twin = strict_twin(WithBox)
    if twin is not None:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"box": {"content": 1, "more": 2}}, twin)


def test_a_name_that_no_struct_can_have_has_no_twin() -> None:
    kind = TypedDict("kind", {"__y": int})
    assert strict_twin(kind) is None


def test_an_open_type_has_no_twin() -> None:
    assert strict_twin(Inner, is_open=True) is None
