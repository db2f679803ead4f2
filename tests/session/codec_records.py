"""Record types with every kind of field that a snapshot can carry, and some that it cannot."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union
from uuid import UUID

import attrs

T = TypeVar("T")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Mood(StrEnum):
    CALM = "calm"


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


@attrs.frozen
class Box:
    corner: Point
    _hidden: str = "h"
    points: tuple[Point, ...] = ()


@dataclass(frozen=True)
class Tree:
    name: str
    children: tuple[Tree, ...] = ()
    parent: Tree | None = None


@dataclass(frozen=True)
class Everything:
    text: str
    whole: int
    real: float
    flag: bool
    nothing: None
    when: datetime
    identity: UUID
    colour: Colour
    level: Level
    mood: Mood
    word: Literal["on", "off", 1]
    maybe: int | None
    old_maybe: Optional[str]  # noqa: UP045 - both spellings occur
    old_either: Union[int, str]  # noqa: UP007 - older code is written so
    record_or_text: Point | str
    pair: tuple[int, str]
    many: tuple[int, ...]
    bare: tuple  # type: ignore[type-arg]
    items: list[Point] = field(hash=False)
    sequence: Sequence[int] = field(hash=False)
    table: dict[str, tuple[int, ...]] = field(hash=False)
    mapping: Mapping[str, Point] = field(hash=False)
    bare_table: dict = field(hash=False)  # type: ignore[type-arg]
    noted: Annotated[int, "a note"] = 0
    typing_tuple: typing.Tuple[int, ...] = ()  # noqa: UP006 - older code is written so
    anything: Any = None
    thing: object = None
    nested: tuple[dict[str, tuple[Point | None, ...]], ...] = ()


@dataclass(frozen=True)
class Empty:
    pass


@dataclass(frozen=True)
class Holder(Generic[T]):
    item: T


@dataclass(frozen=True)
class Loose:
    """A field that may hold anything."""

    item: Any


@dataclass(frozen=True)
class Positive:
    """A record that checks itself."""

    number: int

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError(f"{self.number} is not positive")


@dataclass(frozen=True)
class Either:
    """Two members of a union that look alike on paper."""

    item: Point | Twin


@dataclass(frozen=True)
class Twin:
    x: int
    y: int = 0


@dataclass(frozen=True)
class Private:
    """A field with a leading underscore, which a dataclass keeps in its constructor."""

    _number: int


@attrs.frozen
class Renamed:
    """A field that the constructor calls by another name."""

    number: int = attrs.field(alias="y")


@dataclass(frozen=True)
class Derived:
    """A field that the constructor does not take."""

    number: int
    double: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "double", 2 * self.number)


@dataclass(frozen=True)
class Unresolved:
    """A type hint that nobody can resolve."""

    item: Nowhere  # type: ignore[name-defined]  # noqa: F821


class Handmade(Point):
    """A record whose subclass builds itself."""

    def __init__(self, x: int, y: int = 0) -> None:
        raise AssertionError(f"built from {x} and {y}")


@dataclass(frozen=True)
class Measure:
    value: float
