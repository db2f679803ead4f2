"""Values of every kind of record that a tool may give, with a list inside."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import attrs
import pydantic


@dataclass(frozen=True)
class Row:
    name: str
    tags: list[int] = field(default_factory=list)


@attrs.define
class Part:
    name: str
    parts: list[int] = attrs.field(factory=list)


class Page(pydantic.BaseModel):
    title: str
    lines: list[int] = []


class Pair(NamedTuple):
    first: list[int]
    second: int
