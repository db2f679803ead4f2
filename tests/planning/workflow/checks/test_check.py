"""The names, ids, dependencies, references and inputs of steps against what exists."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_findings import findings, findings_text, plan, step, stored, thought
from pydantic import Field
from syrupy.assertion import SnapshotAssertion

from laws import work_of
from planning.errors import show
from planning.tools import Tool, ToolSpec
from planning.workflow import Capabilities, validate_workflow

KNOWN = Capabilities(tools=["search", "fetch_page"], handlers=["notify"], agents=["writer"])


def test_the_names_and_ids_of_steps(snapshot: SnapshotAssertion) -> None:
    assert findings_text(stored(snapshot), KNOWN) == snapshot


@pytest.mark.parametrize(
    "capabilities", [None, Capabilities(tools=None), Capabilities(tools=None, handlers=["search"])]
)
def test_names_of_a_kind_that_is_not_known_are_not_checked(capabilities: Capabilities | None) -> None:
    assert findings(plan(step("a", name="anything")), capabilities) == []


def test_when_everything_is_wrong_only_the_first_names_are_compared_with_all() -> None:
    many = Capabilities(tools=[f"look_{number}" for number in range(15_000)])
    first, second = findings(plan(step("a", name="lok_7"), step("b", name="lokk_8")), many)
    listed = f"the tools are {', '.join(f'look_{number}' for number in range(20))} and 14,980 more"
    assert (first.hint, second.hint) == ("did you mean look_7?", listed)


LONG = "i" * 100_000
LARGE: dict[str, object] = {
    "a cycle of ten thousand": plan(*(step(f"{at}", f"{(at + 1) % 10_000}") for at in range(10_000))),
    "ids that are long or odd": plan(step(LONG), step("a", f"{LONG}x"), step("b\n", "b \n")),
}


def test_what_steps_depend_on(snapshot: SnapshotAssertion) -> None:
    assert findings_text(stored(snapshot)) == snapshot
    assert findings_text(LARGE) == snapshot(name="large")


# References

CASES: dict[str, list[Any]] = json.loads((Path(__file__).parents[1] / "references.json").read_text())


def malformed(text: str) -> list[tuple[str, str, str]]:
    """What is said of a text in the inputs of a step that depends on three."""
    before = step("fetch"), step("a.b"), step("caf\u00e9"), step("X")
    now = step("now", "fetch", "a.b", inputs={"x": text})
    return [(each.code, each.message, each.hint) for each in findings(plan(*before, now))]


@pytest.mark.parametrize(("text", "right"), CASES["malformed"])
def test_the_hint_for_a_malformed_reference_is_its_right_form(text: str, right: str) -> None:
    wrong = ("malformed_reference", f"'{text}' is not a reference", f"write {right}")
    assert malformed(text) == [wrong]
    assert malformed(f"Top secret: {text}{text}") == [wrong, wrong]


@pytest.mark.parametrize(("text", "right"), CASES["foreign"])
def test_a_reference_in_a_foreign_notation_gets_the_right_form(text: str, right: str) -> None:
    warning = ("foreign_reference", f"{show(text)} names a step, but is plain text here", f"write {right}")
    assert malformed(text) == [warning]
    assert malformed(f"Read {text} now") == [warning]


@pytest.mark.parametrize("text", CASES["quiet"])
def test_prose_and_code_with_braces_is_quiet(text: str) -> None:
    assert malformed(text) == []


def test_references_in_the_inputs_of_steps(snapshot: SnapshotAssertion) -> None:
    assert findings_text(stored(snapshot)) == snapshot


REFERENCE = "${f.output.x}"


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
        if data.get("old") == 2:
            raise ValueError("too old")
        data.pop("old", None)
        data["deep"]["more"] = 1
        return {"a": len(data.pop("deep"))}


def grow(x: Annotated[Any, pydantic.AfterValidator(lambda x: x[0]["y"].append(1))]) -> None: ...


class Bounds(pydantic.BaseModel):
    names: Annotated[list[str], Field(min_length=2, max_length=3)]
    count: Annotated[int, Field(gt=4, lt=9)]
    word: Annotated[str, Field(min_length=20, max_length=30)]
    codes: list[Annotated[str, Field(pattern="^[A-Z]{2}$")]] = []
    place: Place | None = None
    kind: Literal[7] = 7


def tool(name: str, parameters: Any, **options: Any) -> Tool:
    return Tool(name, "A tool.", lambda given: None, parameters=parameters, **options)


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
        grow,
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


RIGHT = {"names": [REFERENCE, "b"], "count": 5, "word": "x" * 20}


def test_the_inputs_of_steps(snapshot: SnapshotAssertion) -> None:
    assert findings_text(stored(snapshot), TOOLS) == snapshot


@pytest.mark.parametrize(
    ("name", "inputs"), [("meddler", {"old": 1, "deep": {}}), ("grow", {"x": [{"y": []}]})]
)
def test_a_validator_that_changes_what_it_is_given_does_not_change_the_plan(name: str, inputs: Any) -> None:
    report = validate_workflow(calling(name, **inputs), TOOLS)
    assert report.errors == ()
    assert report.parsed_plan[1]["inputs"] == inputs


def test_what_must_pass_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        findings(calling("raising", a="stop"), TOOLS)


def test_the_work_grows_with_the_number_of_places_with_references() -> None:
    def keep(by_name: dict[str, int]) -> None: ...

    capabilities = Capabilities(tools=[keep])

    def work(size: int) -> int:
        given = calling("keep", by_name={f"name {number}": REFERENCE for number in range(size)})
        assert findings(given, capabilities) == []
        return work_of(lambda: findings(given, capabilities))

    assert work(1_600) < 4.5 * work(400)


DISC = {"kind": "disc", "side": "s", "radius": 2}
SEARCH = {"query": "a", "limit": 5, "day": "2026-01-31", "order": "old", "tags": ["x"], "options": {"a": [1]}}
GOOD: list[tuple[str, dict[str, Any]]] = [
    ("search", SEARCH),
    ("letter", {"to": {"street": "a", "number": 1}, "copies": [{"street": "b", "number": 2}]}),
    ("bounds", RIGHT | {"names": ["a", "b"], "codes": ["AB"], "place": None, "kind": 7}),
    ("facts", {"query_type": "place", "parameters": {"street": "a", "number": 1}}),
    ("draw", {"shape": DISC, "more": [{"kind": "square", "side": 1}, DISC]}),
]


def referring(data: st.DataObject, value: Any) -> Any:
    """A value with references in place of any of its parts."""
    if data.draw(st.integers(0, 3)) == 0:
        return REFERENCE
    if isinstance(value, dict):
        return {name: referring(data, each) for name, each in value.items()}
    return [referring(data, each) for each in value] if isinstance(value, list) else value


@given(st.sampled_from(GOOD), st.data())
def test_references_in_place_of_any_parts_fit(good: tuple[str, dict[str, Any]], data: st.DataObject) -> None:
    name, inputs = good
    given_now = {each: referring(data, value) for each, value in inputs.items()}
    assert findings(calling(name, **inputs), TOOLS) == []
    assert findings(calling(name, **given_now), TOOLS) == []
