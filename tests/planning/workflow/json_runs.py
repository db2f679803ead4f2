"""Runs whose tools return drawn Python values, here and on executors: what each step gets and keeps."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, StrEnum
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from uuid import UUID

import attrs
import pydantic
from hypothesis import strategies as st
from run_cases import called, capable, flow, plain_tool, thought

from planning.workflow import Capabilities, Workflow, WorkflowResult


class Colour(Enum):
    RED = "red"
    DEEP = (1, "deep")


class Word(StrEnum):
    YES = "yes"


@dataclass(frozen=True)
class Row:
    name: str
    tags: Any = field(default_factory=list)


@attrs.frozen
class Part:
    name: str
    parts: Any = ()


class Page(pydantic.BaseModel):
    title: str
    lines: Any = None


class Pair(NamedTuple):
    first: Any
    second: Any


ATOMS: list[Any] = [
    None, True, 1, 1.0, 10**40, float("nan"), float("inf"), "text", "\u00fc \ud800", b"raw \xff", Colour.RED,
    Colour.DEEP, Word.YES, date(2024, 1, 2), datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), time(1, 2, 3),
    timedelta(days=-1, hours=3), UUID(int=5), Decimal("1.50"), PurePosixPath("/a/b"),
]  # fmt: skip
KEYS: list[Any] = ["a", "\u00fc", 1, 2.5, None, Word.YES, date(2024, 1, 2)]

atoms = st.sampled_from(ATOMS) | st.integers() | st.floats() | st.text()
hashable = atoms | st.tuples(atoms, atoms) | st.builds(Row, st.text(), atoms)


def _holders(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    return st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.sets(hashable, max_size=4),
        named,
        named.map(OrderedDict),
        st.builds(Row, st.text(max_size=2), inner),
        st.builds(Part, st.text(max_size=2), inner),
        st.builds(Pair, inner, inner),
        st.builds(Page, title=st.text(max_size=2).filter(str.isascii)),
    )


values = st.recursive(atoms, _holders, max_leaves=8)
"""What tools return: plain values and records, at any depth."""


@attrs.frozen
class Gives:
    """A tool's function that returns a value, in any process."""

    value: Any

    def __call__(self) -> Any:
        return self.value


def see(value: Any) -> list[Any]:
    """What a step gets: its ``repr``, which tells the types, and itself."""
    return [repr(value), value]


def passes() -> None:
    """The gate of a run that is not to fail there."""


CONDITIONS = ["x == 1", "x == 'red'", "len(x) > 1", "x[0] == 1", "x['name'] == 'a'", "x > 1", "x == [1, 2]"]
STEPS: Workflow = flow(
    called("a", tool="give", expected_key="x"),
    called("b", "a", tool="see", inputs={"value": "${a.output}"}),
    called("gate", "b", tool="gate"),
    called("c", "gate", tool="see", inputs={"value": {"a": "${a.output}", "b": ["${b.output}"]}}),
    called("d", "gate", tool="see", inputs={"value": "<${a.output}> ${b.output}"}),
    *(
        thought(each, "gate", done_check=each.replace("x", "memory['x']", 1), expected_key=f"of {each}")
        for each in CONDITIONS
    ),
)


def giving(value: Any, gate: Callable[[], None] = passes) -> Capabilities:
    return capable(plain_tool("give", Gives(value)), see=see, gate=gate)


def kept(result: WorkflowResult) -> str:
    assert dict(result.errors) == {}
    skipped = [step.step_id for step in result.workflow.steps if step.skipped]
    return repr((dict(result.outputs), dict(result.memory), skipped))
