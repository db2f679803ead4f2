"""A slice of parts of its events; and records that are written otherwise than they are held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import attrs

from session import Session, Snapshot, append_part


@dataclass(frozen=True)
class Part:
    name: str


@dataclass(frozen=True)
class Whole:
    part: Part


def as_text(value: Any) -> str:
    return str(value)


@attrs.frozen
class Told:
    value: Any = attrs.field(eq=as_text, metadata={"snapshot": as_text})


def test_a_field_is_written_as_its_metadata_says_and_compares_so() -> None:
    session = Session()
    session.register_reducer(Whole, append_part(Told), Told)
    session.dispatch(Whole(Part("a")))
    snapshot = session.snapshot()
    back = Snapshot.from_json(snapshot.to_json())
    assert back == snapshot
    assert back.select_latest(Told) == Told("Whole(part=Part(name='a'))")
