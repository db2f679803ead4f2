"""One declaration, written in each of the five ways that a tool can declare its parameters."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import attrs
import pydantic

from planning import ToolValidationError
from planning.tools import decode as decoding
from planning.tools import tool
from planning.tools.parameters.declared import model_of
from planning.tools.parameters.model import ParameterModel


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


Mode = Literal["slow", "fast"]
Count = Annotated[int, pydantic.Field(ge=1, le=9)]
SAID = "What to call it"


class PydanticPart(pydantic.BaseModel):
    title: str
    size: int = 1


class PydanticOrder(pydantic.BaseModel):
    name: str = pydantic.Field(description=SAID)
    count: int = pydantic.Field(ge=1, le=9)
    ratio: float
    loud: bool
    mode: Mode
    colour: Colour
    day: datetime.date
    tags: list[str]
    part: PydanticPart
    parts: list[PydanticPart] = []
    note: str | None = None


@dataclass
class DataclassPart:
    title: str
    size: int = 1


@dataclass
class DataclassOrder:
    name: Annotated[str, SAID]
    count: Count
    ratio: float
    loud: bool
    mode: Mode
    colour: Colour
    day: datetime.date
    tags: list[str]
    part: DataclassPart
    parts: list[DataclassPart] = dataclasses.field(default_factory=list)
    note: str | None = None


@attrs.define
class AttrsPart:
    title: str
    size: int = 1


@attrs.define
class AttrsOrder:
    name: str = attrs.field(metadata={"description": SAID})
    count: Count
    ratio: float
    loud: bool
    mode: Mode
    colour: Colour
    day: datetime.date
    tags: list[str]
    part: AttrsPart
    parts: list[AttrsPart] = attrs.field(factory=list)
    note: str | None = None


class TypedPart(TypedDict):
    title: str
    size: NotRequired[int]


class TypedOrder(TypedDict):
    name: Annotated[str, SAID]
    count: Count
    ratio: float
    loud: bool
    mode: Mode
    colour: Colour
    day: datetime.date
    tags: list[str]
    part: TypedPart
    parts: NotRequired[list[TypedPart]]
    note: NotRequired[str | None]


@tool
def order(
    name: str,
    count: Count,
    ratio: float,
    loud: bool,
    mode: Mode,
    colour: Colour,
    day: datetime.date,
    tags: list[str],
    part: DataclassPart,
    parts: list[DataclassPart] = [],  # noqa: B006 - as users write it
    note: str | None = None,
) -> dict[str, Any]:
    """Order a thing.

    Args:
        name: What to call it
    """
    return dict(locals())


WAYS: dict[str, ParameterModel] = {
    "pydantic": model_of(PydanticOrder),
    "dataclass": model_of(DataclassOrder),
    "attrs": model_of(AttrsOrder),
    "TypedDict": model_of(TypedOrder),
    "function": order.model,
}

GOOD: dict[str, Any] = {
    "name": "n",
    "count": 3,
    "ratio": 1.5,
    "loud": True,
    "mode": "slow",
    "colour": "red",
    "day": "2026-01-31",
    "tags": ["a"],
    "part": {"title": "t", "size": 2},
    "parts": [{"title": "u", "size": 3}],
    "note": "x",
}

FIELDS = "name, count, ratio, loud, mode, colour, day, tags, part, parts, note"
A_COUNT = "an integer of at least 1 and at most 9"
A_PART = "an object with title, size"

# What is sent in place of a good value -> every problem that it is, in the order of the fields.
WRONG: dict[str, tuple[dict[str, Any], list[str]]] = {
    "a misspelt field": ({"nmae": 1}, ["nmae: unknown field; did you mean name?"]),
    "a field of nobody": ({"zzzzzz": 1}, [f"zzzzzz: unknown field; the fields are {FIELDS}"]),
    "a number for text": ({"name": 3}, ["name: expected a string, got a number"]),
    "null for text": ({"name": None}, ["name: expected a string, got null"]),
    "text for a number": ({"count": "three"}, [f"count: expected {A_COUNT}, got a string"]),
    "a broken number": ({"count": 2.5}, [f"count: expected {A_COUNT}, got a number"]),
    "a hexadecimal number": ({"count": "0x3"}, [f"count: expected {A_COUNT}, got a string"]),
    "a sum for a number": ({"ratio": "1+1"}, ["ratio: expected a number, got a string"]),
    "true for a number": ({"count": True}, [f"count: expected {A_COUNT}, got a boolean"]),
    "too little": ({"count": 0}, ["count: expected at least 1, got 0"]),
    "too much": ({"count": 10}, ["count: expected at most 9, got 10"]),
    "text for a ratio": ({"ratio": "x"}, ["ratio: expected a number, got a string"]),
    "text for yes or no": ({"loud": "maybe"}, ["loud: expected a boolean, got a string"]),
    "yes for true": ({"loud": "yes"}, ["loud: expected a boolean, got a string"]),
    "1 for true": ({"loud": 1}, ["loud: expected a boolean, got a number"]),
    "no option": ({"mode": "slwo"}, ["mode: 'slwo' is unknown; send one of slow, fast"]),
    "null for an option": (
        {"mode": None},
        ["mode: a value of type NoneType is unknown; send one of slow, fast"],
    ),
    "no member": ({"colour": "blue"}, ["colour: 'blue' is unknown; send one of red, green"]),
    "a list for a member": (
        {"colour": ["red"]},
        ["colour: a value of type list is unknown; send one of red, green"],
    ),
    "no day": ({"day": "tomorrow"}, ["day: expected a date such as 2026-01-31, got a string"]),
    "a day that was not": ({"day": "2026-02-30"}, ["day: expected a date such as 2026-01-31, got a string"]),
    "midnight for a day": (
        {"day": "2026-01-31T00:00:00"},
        ["day: expected a date such as 2026-01-31, got a string"],
    ),
    "a number for a day": ({"day": 4}, ["day: expected a date such as 2026-01-31, got a number"]),
    "text for an array": ({"tags": "a"}, ["tags: expected an array, got a string"]),
    "wrong items": (
        {"tags": ["a", 1, None]},
        ["tags[1]: expected a string, got a number", "tags[2]: expected a string, got null"],
    ),
    "a number for a record": ({"part": 3}, [f"part: expected {A_PART}, got a number"]),
    "an empty record": ({"part": {}}, ["part.title: missing; send a string"]),
    "a misspelt inner field": (
        {"part": {"titel": "x"}},
        ["part.title: missing; send a string", "part.titel: unknown field; did you mean title?"],
    ),
    "a wrong inner field": (
        {"part": {"title": "x", "size": "big"}},
        ["part.size: expected an integer, got a string"],
    ),
    "a record for records": ({"parts": {"title": "x"}}, ["parts: expected an array, got an object"]),
    "wrong records": (
        {"parts": [{"title": "x"}, {"title": 1}, {}, 5, {"title": "x", "sise": 1}]},
        [
            "parts[1].title: expected a string, got a number",
            "parts[2].title: missing; send a string",
            f"parts[3]: expected {A_PART}, got a number",
            "parts[4].sise: unknown field; did you mean size?",
        ],
    ),
    "an array for optional text": ({"note": ["x"]}, ["note: expected a string, got an array"]),
    "everything at once": (
        {
            "nmae": "x",
            "count": 99,
            "ratio": "x",
            "loud": [],
            "mode": "?",
            "colour": "?",
            "day": "?",
            "tags": [1],
            "part": {"title": "x", "size": "?"},
            "parts": [{"titel": "?"}],
            "note": {},
        },
        [
            "count: expected at most 9, got 99",
            "ratio: expected a number, got a string",
            "loud: expected a boolean, got an array",
            "mode: '?' is unknown; send one of slow, fast",
            "colour: '?' is unknown; send one of red, green",
            "day: expected a date such as 2026-01-31, got a string",
            "tags[0]: expected a string, got a number",
            "part.size: expected an integer, got a string",
            "parts[0].title: missing; send a string",
            "parts[0].titel: unknown field; did you mean title?",
            "note: expected a string, got an object",
            "nmae: unknown field; did you mean name?",
        ],
    ),
}


def decode(kind: Any, arguments: object, diagnose: Any = None, *, is_private: bool = False) -> Any:
    """What a declaration makes of arguments."""
    return decoding.decode(model_of(kind, rules=diagnose is None), arguments, diagnose, is_private=is_private)


def problems(model: Any, arguments: object) -> list[str]:
    """Every problem, as a model reads it; empty where there is none."""
    try:
        decode(model, arguments)
    except ToolValidationError as error:
        return [str(problem) for problem in error.problems]
    return []


def plain(value: object) -> Any:
    """The value without the classes that it was declared with."""
    if isinstance(value, pydantic.BaseModel):
        return {name: plain(item) for name, item in value}
    if attrs.has(type(value)) or dataclasses.is_dataclass(value):
        names = type(value).__annotations__
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value
