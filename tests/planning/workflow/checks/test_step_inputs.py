"""The inputs of steps against the parameters of their tools."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_findings import findings, findings_text, older, plan, step, thought
from pydantic import Field
from syrupy.assertion import SnapshotAssertion

from laws import work_of
from planning.tools import Tool, ToolSpec
from planning.workflow import Capabilities, validate_workflow

OUT = "${f.output.x}"


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
    word: Annotated[str, Field(min_length=20, max_length=30)]
    codes: list[Annotated[str, Field(pattern="^[A-Z]{2}$")]] = []
    place: Place | None = None
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


class Square(pydantic.BaseModel):
    kind: Literal["square"]
    side: int


class Disc(pydantic.BaseModel):
    kind: Literal["disc"]
    side: str
    radius: int = 1


def draw(shape: Square | Disc, more: list[Square | Disc] | None = None) -> None: ...


TOOLS = Capabilities(
    tools=[
        search,
        draw,
        tool("letter", Letter),
        tool("dates", Dates),
        tool("meddler", Meddler),
        tool("bounds", Bounds),
        tool("raising", Raising),
        tool("secret", Letter, returns_private_data=True),
        Tool("open", "Takes all.", lambda **given: None),
        ToolSpec("facts", {"dates": Dates, "place": Place}, "facts", function=lambda query, given: None),
    ]
)


def calling(name: str, **inputs: Any) -> dict[str, Any]:
    """A plan whose second step calls a tool, with references to the output of the first."""
    return plan(thought("f"), step("a", "f", name=name, inputs=inputs))


RIGHT = {"names": [OUT, "b"], "count": 5, "word": "x" * 20}
LONG = "x\n" + "y" * 90
INPUTS: dict[str, object] = {
    "literals that the tool takes": calling(
        "search", query="a", limit=5, day="2026-01-31", tags=["x"], options={"a": [1]}
    ),
    "literals that the tool refuses": calling(
        "letter",
        copies=[{"street": "Main", "number": "five", "zip": 1}, {"street": 1, "number": 2}],
        text=None,
        Text="",
    ),
    "wrong literals beside references": calling(
        "letter", to={"street": OUT}, copies=[{"street": OUT, "number": "q"}], txt=OUT
    ),
    "references among items with a pattern": calling(
        "bounds", **RIGHT, codes=[OUT, "no", "OK", f"{OUT} and more"]
    ),
    "an object in place of a list, with a reference": calling("bounds", **RIGHT | {"names": {"a": OUT}}),
    "a list that is too short whatever its reference gives": calling("bounds", **RIGHT | {"names": [OUT]}),
    "the message of a tool's validator, in ASCII": calling("dates", start="2026", end="2026-01-01"),
    "a validator that compares with a reference": calling("dates", start=OUT, end="2026-01-01"),
    "a validator that changes what it is given": calling("meddler", old=1, deep={}),
    "a validator that fails": calling("raising", a="x"),
    "a tool that takes all": calling("open", anything=5),
    "a query": calling("facts", query_type="dates", parameters={"start": "a-b-c", "end": "b"}),
    "a query with a wrong parameter": calling(
        "facts", query_type="place", parameters={"street": OUT, "number": "q"}
    ),
    "a query without a type": calling("facts", parameters=OUT, more=1),
    "private data": calling("secret", to={"street": 5, "number": 1, "Main Road 5": 1}, copies="Main Road"),
    "odd names": calling("letter", to={"street": "a", "number": 1, LONG: 1}, copies=[], **{"a.b[0]": 1}),
    "inputs that are null": plan(step("a", inputs=None)),
    "missing inputs": plan(thought("a", type="tool", name="search")),
    "the older form": [older(1, parameters={"query": 5}), older(2)],
    "an unknown field of a union, which no option has": calling(
        "draw", shape={"kind": OUT, "side": 1, "radius": 1, "size": 1}
    ),
    "JSON within a text": calling("letter", to='{"street": 1, "number": 2}', copies=[]),
}
"""By name, plans whose steps call tools with inputs, correctly or not."""


def test_the_inputs_of_steps(snapshot: SnapshotAssertion) -> None:
    assert findings_text(INPUTS, TOOLS) == snapshot


def test_a_validator_that_changes_what_it_is_given_does_not_change_the_plan() -> None:
    report = validate_workflow(calling("meddler", old=1, deep={}), TOOLS)
    assert report.errors == ()
    assert report.parsed_plan[1]["inputs"] == {"old": 1, "deep": {}}


def test_what_must_pass_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        findings(calling("raising", a="stop"), TOOLS)


def test_the_work_grows_with_the_number_of_places_with_references() -> None:
    def keep(by_name: dict[str, int]) -> None: ...

    capabilities = Capabilities(tools=[keep])

    def work(size: int) -> int:
        given = calling("keep", by_name={f"name {number}": OUT for number in range(size)})
        assert findings(given, capabilities) == []
        return work_of(lambda: findings(given, capabilities))

    assert work(1_600) < 4.5 * work(400)


DISC = {"kind": "disc", "side": "s", "radius": 2}
GOOD: list[tuple[str, dict[str, Any]]] = [
    (
        "search",
        {"query": "a", "limit": 5, "day": "2026-01-31", "order": "old", "tags": ["x"], "options": {"a": [1]}},
    ),
    ("letter", {"to": {"street": "a", "number": 1}, "copies": [{"street": "b", "number": 2}]}),
    (
        "bounds",
        {"names": ["a", "b"], "count": 5, "word": "x" * 20, "codes": ["AB"], "place": None, "kind": 7},
    ),
    ("facts", {"query_type": "place", "parameters": {"street": "a", "number": 1}}),
    ("draw", {"shape": DISC, "more": [{"kind": "square", "side": 1}, DISC]}),
]


def referring(data: st.DataObject, value: Any) -> Any:
    """A value with references in place of any of its parts."""
    if data.draw(st.integers(0, 3)) == 0:
        return OUT
    if isinstance(value, dict):
        return {name: referring(data, each) for name, each in value.items()}
    return [referring(data, each) for each in value] if isinstance(value, list) else value


@given(st.sampled_from(GOOD), st.data())
def test_references_in_place_of_any_parts_of_right_inputs_are_right(
    good: tuple[str, dict[str, Any]], data: st.DataObject
) -> None:
    name, inputs = good
    given_now = {each: referring(data, value) for each, value in inputs.items()}
    assert findings(calling(name, **inputs), TOOLS) == []
    assert findings(calling(name, **given_now), TOOLS) == []
