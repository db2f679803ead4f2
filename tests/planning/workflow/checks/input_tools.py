"""Tools of every kind, for the checks of steps' inputs."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import attrs
import pydantic
from pydantic import Field

from planning.tools import Tool, ToolSpec
from planning.workflow.capabilities import Capabilities


@dataclass
class Place:
    street: str
    number: int


@dataclass
class Letter:
    to: Place
    copies: list[Place]
    text: str = ""


def search(
    query: str,
    limit: int = 3,
    day: datetime.date | None = None,
    order: Literal["new", "old"] = "new",
    tags: tuple[str, ...] = (),
    options: dict[str, Any] | None = None,
) -> None: ...


class Dates(pydantic.BaseModel):
    start: str
    end: str
    pages: int = 1

    @pydantic.field_validator("start")
    @classmethod
    def _form(cls, start: str) -> str:
        if start.count("-") != 2:
            raise ValueError("a date in YYYY-MM-DD form, s'il vous pla\u00eet")
        return start

    @pydantic.field_validator("end")
    @classmethod
    def _order(cls, end: str, info: pydantic.ValidationInfo) -> str:
        if end < info.data.get("start", ""):
            raise ValueError("ends before it starts")
        return end


@attrs.frozen
class Range:
    low: int
    high: int = attrs.field()

    @high.validator
    def _order(self, _field: Any, high: int) -> None:
        if high < self.low:
            raise ValueError("high is under low")


class Meddler(pydantic.BaseModel):
    a: int = 0

    @pydantic.model_validator(mode="before")
    @classmethod
    def _meddle(cls, data: dict[str, Any]) -> dict[str, Any]:
        data.pop("old", None)
        data["deep"]["more"] = 1
        return {"a": len(data.pop("deep"))}


class Bounds(pydantic.BaseModel):
    names: Annotated[list[str], Field(min_length=2, max_length=3)]
    count: Annotated[int, Field(gt=4, lt=9)]
    share: Annotated[float, Field(le=0.5)]
    word: Annotated[str, Field(min_length=20, max_length=30)]
    code: Annotated[str, Field(pattern="^[a-z]+$")] = "a"
    codes: list[Annotated[str, Field(pattern="^[A-Z]{2}$")]] = []
    is_new: bool = False
    place: Place | None = None
    ratio: Annotated[float, Field(ge=1, multiple_of=0.5)] = 1
    low: Annotated[int, Field(lt=0)] = -1
    kind: Literal[7] = 7


def nothing(_parameters: Any) -> None: ...


def tool(name: str, parameters: Any, **options: Any) -> Tool:
    return Tool(name, "A tool.", nothing, parameters=parameters, **options)


class Raising(pydantic.BaseModel):
    a: str

    @pydantic.field_validator("a")
    @classmethod
    def _raise(cls, a: str) -> str:
        raise KeyboardInterrupt if a == "stop" else BaseException


TOOLS = Capabilities(
    tools=[
        search,
        tool("letter", Letter),
        tool("dates", Dates),
        tool("range", Range),
        tool("meddler", Meddler),
        tool("bounds", Bounds),
        tool("raising", Raising),
        tool("secret", Letter, returns_private_data=True),
        Tool("open", "Takes all.", lambda **given: None),
        ToolSpec("facts", {"dates": Dates, "range": Range}, "facts", function=lambda query, given: None),
    ]
)
