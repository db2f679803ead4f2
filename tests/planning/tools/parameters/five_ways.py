"""One declaration, written in each of the five ways that a tool can declare its parameters."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
from dataclasses import dataclass
from pathlib import Path
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

# What is sent in place of a good value -> every problem that it is, in the order of the fields.
WRONG: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("wrong_arguments.json").read_text())


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
