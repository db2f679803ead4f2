"""Record types with every kind of field that a snapshot can carry, and some that it cannot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Generic, Literal, NewType, Required, TypedDict, TypeVar
from uuid import UUID

import attrs
import typing_extensions

from session import Snapshot

T = TypeVar("T")
UserId = NewType("UserId", str)
Amount = typing_extensions.TypeAliasType("Amount", Decimal | None)

IDENTITY = UUID("00000000-0000-4000-8000-000000000001")
WHEN = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=timezone(timedelta(hours=2)))

DOCUMENT: dict[str, Any] = {
    "version": 2,
    "session_id": "00000000-0000-4000-8000-000000000001",
    "created_at": "2024-05-06T07:08:09.123456+02:00",
    "tags": {"run": "7"},
    "slices": {},
}


def snapshot_of(*values: object) -> Snapshot:
    slices: dict[type, tuple[object, ...]] = {}
    for value in values:
        slices[type(value)] = (*slices.get(type(value), ()), value)
    return Snapshot(slices=slices, session_id=IDENTITY, created_at=WHEN, tags={"run": "7"})


def text_of(name: str, *rows: object) -> str:
    return json.dumps({**DOCUMENT, "slices": {name: rows}})


class Colour(Enum):
    RED = "red"
    BLUE = ("b", 2)


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Mood(StrEnum):
    CALM = "calm"


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


@dataclass(frozen=True)
class Size:
    width: int


class Paper(Size, Enum):
    NARROW = 1
    WIDE = 2


@dataclass(frozen=True)
class Sheet:
    size: Size
    paper: Paper | str


@dataclass(frozen=True)
class Line:
    text: str
    mood: Literal["glad", "sad"]
    words: tuple[str, ...] = field(default_factory=tuple)


@dataclass(frozen=True, init=False)
class Turned(Size):
    """A record whose constructor takes its fields in another order."""

    height: int

    def __init__(self, height: int, width: int) -> None:
        object.__setattr__(self, "height", height)
        object.__setattr__(self, "width", width)


@dataclass(frozen=True)
class Page:
    lines: tuple[Line, ...] = ()
    sizes: tuple[Turned, ...] = ()
    gaps: tuple[Empty, ...] = ()


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


Spot = typing_extensions.TypeAliasType("Spot", Point | None)


class TypedPoint(TypedDict):
    x: int
    y: typing_extensions.NotRequired[Decimal]


class TypedLoose(TypedDict, total=False):
    name: Required[str]
    days: set[date]


class TypedTree(TypedDict):
    corner: Point
    under: list[TypedTree]


TYPED: list[tuple[Any, Any]] = [
    (str, "t\n\u00e9\ud800"),
    (int, -(10**30)),
    (float, 0.1),
    (bool, True),
    (None, None),
    (datetime, WHEN),
    (time, time(7, 8, 9, 10, tzinfo=UTC)),
    (Decimal, Decimal("1.50")),
    (Amount, Decimal("-0.1e-7")),
    (UUID, IDENTITY),
    (UserId, UserId("u1")),
    (Colour, Colour.BLUE),
    (Level, Level.HIGH),
    (Mood, Mood.CALM),
    (Literal["on", "off", 1], 1),
    (int | None, None),
    (Point | str, Point(1)),
    (Point | datetime, Point(1)),
    (Point | datetime, WHEN),
    (Spot, Point(4)),
    (tuple[int, str], (1, "a")),
    (tuple[int, ...], (1, 2)),
    (list[Point], [Point(1)]),
    (frozenset[date], frozenset({date(2024, 5, 6), date(1, 1, 1)})),
    (set[str], {"b", "a", "\u00e9"}),
    (dict[str, tuple[int, ...]], {"a": (1,)}),
    (Mapping[str, Point], {"p": Point(3)}),
    (TypedPoint, TypedPoint(x=1, y=Decimal("2.0"))),
    (TypedLoose, TypedLoose(name="n", days={date(2024, 5, 6)})),
    (TypedTree, TypedTree(corner=Point(1), under=[TypedTree(corner=Point(2), under=[])])),
    (dict[int, str], {1: "a", -20: "b", 10**30: "c"}),
    (Mapping[date, TypedPoint], {date(2024, 5, 6): TypedPoint(x=1)}),
    (dict[UUID, int], {IDENTITY: 1}),
    (dict[Colour, int], {Colour.RED: 1, Colour.BLUE: 2}),
    (dict[int | None, int], {1: 1, None: 2}),
    (Annotated[int, "a note"], 0),
    (Any, {"free": [1.5, True]}),
    (tuple[dict[str, tuple[Point | None, ...]], ...], ({"a": (None, Point(7))},)),
]


@dataclass(frozen=True)
class Empty:
    pass


@dataclass(frozen=True)
class Holder(Generic[T]):
    item: T


@dataclass(frozen=True)
class Loose:
    item: Any


@dataclass(frozen=True)
class Positive:
    number: int

    def __post_init__(self) -> None:
        if self.number < 1:
            raise ValueError(f"{self.number} is not positive")


@dataclass(frozen=True)
class Private:
    _number: int


@attrs.frozen
class Renamed:
    number: int = attrs.field(alias="y")


@dataclass(frozen=True)
class Derived:
    number: int
    double: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "double", 2 * self.number)


@dataclass(frozen=True)
class Unresolved:
    item: Nowhere  # type: ignore[name-defined]  # noqa: F821


class Handmade(Point):
    def __init__(self, x: int, y: int = 0) -> None:
        raise AssertionError(f"built from {x} and {y}")


@dataclass(frozen=True)
class Checked:
    number: int

    @staticmethod
    def check_slice(items: tuple[Checked, ...]) -> None:
        for item in items:
            if item.number < 1:
                raise ValueError(f"{item.number} is not positive")


class Outer:
    class Inner(Point):
        """A record inside a class."""
