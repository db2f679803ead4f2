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
from plan_findings import findings, findings_text, nested, older, plan, step, thought
from pydantic import Field
from syrupy.assertion import SnapshotAssertion

from laws import work_of
from planning.errors import show
from planning.tools import Tool, ToolSpec
from planning.workflow import Capabilities, validate_workflow

KNOWN = Capabilities(tools=["search", "fetch_page"], handlers=["notify"], agents=["writer"])

NAMES: dict[str, object] = {
    "everything is right": plan(
        step("find", inputs={"query": "${user_prompt}", "limit": 3}, outputs=["items", "count"]),
        step("read", "find", name="fetch_page", inputs={"urls": ["${find.output.items[0].url}", {"a": [1]}]}),
        step("tell", "find", type="handler", name="notify", inputs={"text": "${find.output.count} found"}),
        thought("write", "read", agent="writer", inputs={"text": "${read.output}"}),
        thought("think", "write"),
    ),
    "a tool with a letter too few": plan(step("find", name="serch")),
    "a tool in capitals": plan(step("a", name="SEARCH")),
    "a tool whose name is not similar to another": plan(step("a", name="mail")),
    "a tool in odd letters": plan(step("a", name="s\u00e9arch\n")),
    "a handler with a wrong letter": plan(step("a", type="handler", name="notyfy")),
    "an agent with a letter too few": plan(thought("a", agent="wrter")),
    "a handler named as a tool": plan(step("a", name="notify")),
    "a tool named as a handler": plan(step("a", type="handler", name="search")),
    "an agent named as a tool": plan(step("a", name="writer")),
    "a tool named as an agent": plan(thought("a", agent="search")),
    "a handler named as a tool in the older form": [older(1, tool="notify")],
    "an agent named as a tool in the older form": [older(1, tool="writer")],
    "a tool named as an agent in the older form": [older(1, agent="search")],
    "an unknown type": plan(step("a", type="robot")),
    "repeated ids": plan(*map(step, ["a", "b", "a", "A", "a", " a", "b"])),
    "steps without an id": plan(*map(step, [None, None, "", "", "a"])),
}
"""By name, plans of steps that name what they call, correctly or not, and the ids of steps."""


def test_the_names_and_ids_of_steps(snapshot: SnapshotAssertion) -> None:
    assert findings_text(NAMES, KNOWN) == snapshot


def test_where_there_are_none_of_a_kind_the_hint_says_so() -> None:
    steps = step("a"), step("b", type="handler"), thought("c", agent="x")
    assert [(each.code, each.message, each.hint) for each in findings(plan(*steps), Capabilities())] == [
        ("unknown_tool", "no tool is named 'search'", "there are no tools"),
        ("unknown_handler", "no handler is named 'search'", "there are no handlers"),
        ("unknown_agent", "no agent is named 'x'", "there are no agents"),
    ]


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


def in_a_cycle(size: int) -> dict[str, object]:
    return plan(*(step(str(number), str((number + 1) % size)) for number in range(size)))


LONG = "i" * 100_000
DEPENDENCIES: dict[str, object] = {
    "a dependency with a wrong letter": plan(step("fetch"), step("parse", "fetsh")),
    "a dependency that is not similar to an id": plan(step("fetch"), step("parse", "report")),
    "a dependency like the step's own id": plan(step("fetch"), step("parse", "pars")),
    "no step has an id": plan(step(None, "a")),
    "a step whose id is a number": [step(1), step("b", "1", inputs={"a": "${1.output}"}), step("c", "2")],
    "a step that depends on itself": plan(step("a", "a")),
    "repeated dependencies": plan(step("a"), step("b", "a", "a", None, None, "x", "a", "x")),
    "an id twice, and two that no step has": plan(step("a"), step("a"), step("b", "parse", "report")),
    "a cycle, reported from its earliest step": plan(
        step("z"), step("b", "z", "c"), step("a", "b"), step("c", "a")
    ),
    "two cycles": plan(step("a", "b"), step("b", "a"), step("c", "d", "a"), step("d", "c")),
    "a dependency on a later step": plan(step("a", "b"), step("b")),
    "a cycle of eight": in_a_cycle(8),
    "a cycle of nine": in_a_cycle(9),
    "a cycle of ten thousand": in_a_cycle(10_000),
    "a repeated id in a cycle": plan(step("a", "b"), step("b", "a"), step("a", "a")),
    "the older form": [older(1, dependencies=[2]), older(2, dependencies=[1, 1, 2, 9])],
    "a line break in an id of a cycle": plan(step("a\nb", "c"), step("c", "a\nb")),
    "ids that are long or odd": plan(step(LONG), step("a", f"{LONG}x"), step("b\n", "b \n")),
}
"""By name, plans whose steps depend on each other, correctly or not."""


def test_what_steps_depend_on(snapshot: SnapshotAssertion) -> None:
    assert findings_text(DEPENDENCIES) == snapshot


# References

GENERAL = "write ${user_prompt}, or ${STEP.output.FIELD} with the id of a step for STEP"
CASES: dict[str, list[Any]] = json.loads((Path(__file__).parents[1] / "references.json").read_text())
FETCH = step("fetch", outputs=["items", "title"])


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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((text, None) for text in ["${}", "${.}", "${anything else}", "${fetch..x}", "${ user_prompt }"]),
        ("${caf\u00e9}", r"${caf\xe9}"),
        ("${now.result}", None),
        ("${fetch.a\tb}", r"${fetch.a\tb}"),
        ("${fetch." + "x" * 200 + "}", "${fetch." + "x" * 29 + "..."),
    ],
)
def test_an_unclear_malformed_reference_gets_the_general_forms(text: str, shown: str | None) -> None:
    assert malformed(text) == [("malformed_reference", f"'{shown or text}' is not a reference", GENERAL)]


@pytest.mark.parametrize(("text", "right"), CASES["foreign"])
def test_a_reference_in_a_foreign_notation_gets_the_right_form(text: str, right: str) -> None:
    warning = ("foreign_reference", f"{show(text)} names a step, but is plain text here", f"write {right}")
    assert malformed(text) == [warning]
    assert malformed(f"Read {text} now") == [warning]


@pytest.mark.parametrize("text", ["{fetch}", "$(fetch)", "<fetch>", "$fetch"])
def test_a_name_alone_in_a_foreign_notation_counts_where_it_is_the_whole_text(text: str) -> None:
    assert [code for code, _, _ in malformed(text)] == ["foreign_reference"]
    assert malformed(f"Read {text} now") == []


@pytest.mark.parametrize("text", CASES["quiet"])
def test_prose_and_code_with_braces_is_quiet(text: str) -> None:
    assert malformed(text) == []


def test_a_key_with_a_dot_is_an_output_like_any_other() -> None:
    fetch = step("fetch", outputs=["a.b", "c"])
    text = """${fetch.output["a.b"]} ${fetch.output['c']} ${fetch.output["d"]} ${fetch.output.a.b}"""
    told = findings(plan(fetch, step("now", "fetch", inputs={"x": text})))
    assert [(each.code, each.message) for each in told] == [
        ("undeclared_output", "step 'fetch' declares no output 'd'"),
        ("undeclared_output", "step 'fetch' declares no output 'a'"),
    ]


def now(text: object, *depends_on: str, **fields: Any) -> dict[str, Any]:
    """A plan with a step ``fetch``, and one with this text that depends on these."""
    return plan(FETCH, step("now", *depends_on, inputs={"x": text}, **fields))


NESTED = {"a": [{"b": ["${x.output} and ${y.output}"]}], "c": "${user_prompt}", "d": {"${z.output}": 5}}
DOTTED = (step("a"), step("a.output", outputs=["b"]), step("a.b"))
OUT = {"x": "${fetch.output}"}
REFERENCES: dict[str, object] = {
    "a reference within another": now("${fetch.output.${fetch.output}}", "fetch"),
    "a reference that is not closed": now("see ${fetch.output and more", "fetch"),
    "several in one text, at any depth": plan(FETCH, step("now", inputs=NESTED)),
    "sixty levels deep": now(nested(59, ["${x.output}"])),
    "no such step, but a similar one": now("${fetsh.output.items}", "fetch"),
    "no such step, and no similar one": now("${nobody.output}", "fetch"),
    "no such step, but the id of the step itself is similar": now("${noww.output}", "fetch"),
    "its own output": plan(step("a", inputs={"x": "${a.output.b}"})),
    "a step that is not a dependency, three times": plan(
        FETCH,
        step("now", inputs={"x": "${fetch.output.items} ${fetch.output.title}", "y": "${fetch.output}"}),
    ),
    "a step that itself depends on this one": plan(
        step("a", inputs={"x": "${c.output}"}), step("b", "a"), step("c", "b")
    ),
    "a dependency of a dependency": plan(
        FETCH, step("b", "fetch"), step("c", "b", inputs={"x": "${fetch.output}"})
    ),
    "within a cycle": plan(step("a", "b"), step("b", "c"), step("c", "a", inputs={"x": "${b.output}"})),
    "the step that a wrong dependency means": now("${fetch.output}", "fetsh"),
    "declared outputs": now(
        "${fetch.output} ${fetch.output.items} ${fetch.output.items[0].x} ${fetch.output[0].x}", "fetch"
    ),
    "an output like a declared one": now("${fetch.output.titel[0].x}", "fetch"),
    "an output that is not similar to a declared one": now("${fetch.output.count[0].x}", "fetch"),
    "an output of a step that declares no outputs": plan(
        step("fetch", outputs=[]), step("now", "fetch", inputs={"x": "${fetch.output.count[0].x}"})
    ),
    "ids with dots, the longest of which is meant": plan(
        *DOTTED,
        step(
            "now",
            "a",
            "a.output",
            "a.b",
            inputs={"x": "${a.output.output.b} ${a.b.output.x} ${a.output} ${a.output.c}"},
        ),
    ),
    "an undeclared output of an id with dots": plan(
        *DOTTED, step("now", "a.output", inputs={"x": "${a.output.output.c}"})
    ),
    "of steps a and a.b the longer is meant": plan(
        step("a"), step("a.b"), step("c", "a", "a.b", inputs={"x": "${a.b.outpt.title}"})
    ),
    "an index that is not an ASCII digit": now("${fetch.output[\u0663]}", "fetch"),
    "the older form": [older(3), older(4, agent="x", parameters={"x": "${3.output.a}"})],
    "two references in a step without an id": plan(step(None, inputs={"b": "${x.output}", "a": "${"})),
    **{
        f"dependencies that are {shown!r}": plan(FETCH, step("now", inputs=OUT) | {"depends_on": shown})
        for shown in (None, [3, "x"])
    },
    "a step that only thinks": plan(FETCH, thought("now", "fetch", inputs={"x": "${fetch.output.items}"})),
}
"""By name, plans whose steps refer to outputs, correctly or not."""


def test_references_in_the_inputs_of_steps(snapshot: SnapshotAssertion) -> None:
    assert findings_text(REFERENCES) == snapshot


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
ODD = "x\n" + "y" * 90
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
        "letter", to={"street": REFERENCE}, copies=[{"street": REFERENCE, "number": "q"}], txt=REFERENCE
    ),
    "references among items with a pattern": calling(
        "bounds", **RIGHT, codes=[REFERENCE, "no", "OK", f"{REFERENCE} and more"]
    ),
    "an object in place of a list, with a reference": calling(
        "bounds", **RIGHT | {"names": {"a": REFERENCE}}
    ),
    "a list that is too short whatever its reference gives": calling(
        "bounds", **RIGHT | {"names": [REFERENCE]}
    ),
    "the message of a tool's validator, in ASCII": calling("dates", start="2026", end="2026-01-01"),
    "a validator that compares with a reference": calling("dates", start=REFERENCE, end="2026-01-01"),
    "a validator that changes what it is given": calling("meddler", old=1, deep={}),
    "a validator that refuses the whole": calling("meddler", old=2, deep={}),
    "a validator that fails": calling("raising", a="x"),
    "a tool that takes all": calling("open", anything=5),
    "a query": calling("facts", query_type="dates", parameters={"start": "a-b-c", "end": "b"}),
    "a query with a wrong parameter": calling(
        "facts", query_type="place", parameters={"street": REFERENCE, "number": "q"}
    ),
    "a query without a type": calling("facts", parameters=REFERENCE, more=1),
    "private data": calling("secret", to={"street": 5, "number": 1, "Main Road 5": 1}, copies="Main Road"),
    "odd names": calling("letter", to={"street": "a", "number": 1, ODD: 1}, copies=[], **{"a.b[0]": 1}),
    "inputs that are null": plan(step("a", inputs=None)),
    "missing inputs": plan(thought("a", type="tool", name="search")),
    "the older form": [older(1, parameters={"query": 5}), older(2)],
    "an unknown field of a union, which no option has": calling(
        "draw", shape={"kind": REFERENCE, "side": 1, "radius": 1, "size": 1}
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
