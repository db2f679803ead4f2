"""The fields of record types: seen alike, whatever they are declared with."""

from __future__ import annotations

import dataclasses
from dataclasses import KW_ONLY, InitVar, dataclass
from typing import Annotated, Any, ClassVar, Generic, NotRequired, Optional, Required, TypedDict, TypeVar

import attrs
import msgspec
import pytest
import typing_extensions

from planning.tools.parameters.fields import Field, fields_of, is_record, nested_records

T = TypeVar("T")


@dataclass(frozen=True)
class Base:
    first: Annotated[int, "The first"]


@dataclass(frozen=True, slots=True)
class Derived(Base):
    _: KW_ONLY
    shared: ClassVar[int] = 4
    second: str = dataclasses.field(default="", metadata={"description": "The second", "max_length": 3})
    third: list[int] = dataclasses.field(default_factory=list)


def test_a_dataclass_has_its_fields_and_those_of_its_base() -> None:
    assert fields_of(Derived) == (
        Field("first", Annotated[int, "The first"], True, {"description": "The first"}),
        Field("second", str, False, {"description": "The second", "max_length": 3}),
        Field("third", list[int], False),
    )


@dataclass
class WithoutInit:
    given: int
    is_admin: bool = dataclasses.field(init=False, default=False)


@attrs.define
class AttrsWithoutInit:
    given: int
    is_admin: bool = attrs.field(init=False, default=False)


@pytest.mark.parametrize("kind", [WithoutInit, AttrsWithoutInit])
def test_a_field_that_the_constructor_does_not_take_is_no_field_of_the_arguments(kind: type) -> None:
    assert fields_of(kind) == (Field("given", int, True),)


@attrs.define
class Attrs:
    _private: int
    other: str = attrs.field(default="", alias="alias", metadata={"description": "Something"})


def test_an_attrs_class_has_its_attributes_by_their_own_names() -> None:
    assert fields_of(Attrs) == (
        Field("_private", int, True),
        Field("other", str, False, {"description": "Something"}),
    )


def test_an_attribute_without_a_type_may_be_anything() -> None:
    kind = attrs.make_class("Made", {"size": attrs.field(default=1)})
    assert fields_of(kind) == (Field("size", Any, False),)


class Half(TypedDict, total=False):
    needed: Required[int]
    left_out: str


class Whole(Half):
    said: NotRequired[Annotated[int, "What it is"]]
    fixed: Required[typing_extensions.ReadOnly[Annotated[int, "For good"]]]
    plain: typing_extensions.ReadOnly[int]


class Closed(typing_extensions.TypedDict, closed=True):
    only: int


def test_a_typed_dict_has_the_fields_that_its_qualifiers_say() -> None:
    assert {field.name: field for field in fields_of(Whole)} == {
        "needed": Field("needed", int, True),
        "left_out": Field("left_out", str, False),
        "said": Field("said", Annotated[int, "What it is"], False, {"description": "What it is"}),
        "fixed": Field("fixed", Annotated[int, "For good"], True, {"description": "For good"}),
        "plain": Field("plain", int, True),
    }
    assert fields_of(Closed) == (Field("only", int, True),)


class Struct(msgspec.Struct, rename="camel"):
    first_name: str
    size: int = 1


def test_a_struct_has_the_names_that_are_sent() -> None:
    assert fields_of(Struct) == (Field("firstName", str, True), Field("size", int, False))


@dataclass
class Lost:
    where: Nowhere  # type: ignore[name-defined]  # noqa: F821 - what the test is about


def test_a_type_hint_that_names_nothing_is_told_with_what_to_do() -> None:
    with pytest.raises(TypeError) as caught:
        fields_of(Lost)
    assert str(caught.value) == (
        "Lost has a type hint that cannot be read: name 'Nowhere' is not defined; import the name at the top "
        "of its module"
    )


def test_a_local_type_cannot_be_read_from_a_hint() -> None:
    @dataclass
    class Inner:
        size: int

    @dataclass
    class Outer:
        inner: Inner

    with pytest.raises(TypeError) as caught:
        fields_of(Outer)
    assert str(caught.value) == (
        "Outer has a type hint that cannot be read: name 'Inner' is not defined; import the name at the top "
        "of its module"
    )


@dataclass
class Box(Generic[T]):
    content: T


@dataclass
class Later:
    now: int
    later: InitVar[int] = 1


@pytest.mark.parametrize("kind", [Base, Derived, Attrs, Half, Closed, Struct, Box, Later])
def test_these_are_records(kind: object) -> None:
    assert is_record(kind)


@pytest.mark.parametrize("kind", [int, dict, list[int], None, 3, "Base", Base(1), Struct("x"), Any])
def test_these_are_none(kind: object) -> None:
    assert not is_record(kind)


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (int, []),
        (Base, [Base]),
        (Optional[Base], [Base]),  # noqa: UP045 - as users write it
        (dict[str, list[Base | Struct | None]], [Base, Struct]),
        (Annotated[tuple[Base, Half], "both"], [Base, Half]),
    ],
)
def test_the_records_in_a_hint_are_found(hint: object, expected: list[type]) -> None:
    assert list(nested_records(hint)) == expected
