"""The inputs of steps against the parameters of their tools."""

from __future__ import annotations

from typing import Any, Literal

import pydantic
import pytest
from input_tools import TOOLS, Bounds, tool
from plan_findings import findings, findings_text, older, plan, step, thought
from syrupy.assertion import SnapshotAssertion

from planning.workflow import Capabilities, validate_workflow

OUT = "${f.output.x}"
IN_TEXT = "from ${f.output.x} on"


def calling(name: str, **inputs: Any) -> dict[str, Any]:
    """A plan whose second step calls a tool, with references to the output of the first."""
    return plan(thought("f"), step("a", "f", name=name, inputs=inputs))


RIGHT = {"names": [OUT, "b"], "count": 5, "share": 0.5, "word": "x" * 20}
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
    "an unknown input and a wrong one": calling("search", query=5, qeury="x"),
    "references at any depth": calling(
        "letter", to={"street": OUT, "number": OUT}, copies=[OUT, {"street": "a", "number": OUT}]
    ),
    "references for the whole of containers": calling("letter", to=OUT, copies=OUT),
    "references in lists and free objects": calling(
        "search", query="a", tags=[OUT, "b"], options={"a": {"b": OUT}}
    ),
    "wrong literals beside references": calling(
        "letter", to={"street": OUT}, copies=[{"street": OUT, "number": "q"}], txt=OUT
    ),
    "a wrong literal beside a reference": calling("search", query=5, limit=OUT),
    "a wrong item beside a reference in a list": calling("letter", to=OUT, copies=[OUT, {"street": 1}]),
    "references among items with a pattern": calling(
        "bounds", **RIGHT, codes=[OUT, "no", "OK", f"{OUT} and more"]
    ),
    "references in a list that is long enough": calling("bounds", **RIGHT),
    "an object in place of a list, with a reference": calling("bounds", **RIGHT | {"names": {"a": OUT}}),
    "a list that is too short whatever its reference gives": calling("bounds", **RIGHT | {"names": [OUT]}),
    "references for everything": calling("bounds", **dict.fromkeys(Bounds.model_fields, OUT)),
    "references for everything, and an unknown input": calling(
        "bounds", **dict.fromkeys(Bounds.model_fields, OUT), more=1
    ),
    "the message of a tool's validator, in ASCII": calling("dates", start="2026", end="2026-01-01"),
    "a validator that compares with a reference": calling("dates", start=OUT, end="2026-01-01"),
    "a validator whose field is compared with a reference": calling("range", low=OUT, high=-5),
    "a validator whose own field is a reference": calling("range", low=3, high=OUT),
    "a validator without references": calling("range", low=3, high=2),
    "a validator that changes what it is given": calling("meddler", old=1, deep={}),
    "a validator that fails": calling("raising", a="x"),
    "a tool that takes all": calling("open", anything=5),
    "a query": calling("facts", query_type="dates", parameters={"start": "a-b-c", "end": "b"}),
    "a query with a wrong parameter": calling(
        "facts", query_type="range", parameters={"low": OUT, "high": "q"}
    ),
    "a query of an unknown type": calling("facts", query_type="raneg", parameters={}),
    "a query without a type": calling("facts", parameters=OUT, more=1),
    "a query whose type is a reference": calling("facts", query_type=OUT, parameters={"start": 5}),
    "a query whose parameters are a reference": calling("facts", query_type="range", parameters=OUT),
    "a query all of references": calling("facts", query_type=OUT, parameters=OUT),
    "private data": calling("secret", to={"street": 5, "number": 1, "Main Road 5": 1}, copies="Main Road"),
    "odd names": calling("letter", to={"street": "a", "number": 1, LONG: 1}, copies=[], **{"a.b[0]": 1}),
    "a long name beside a query": calling(
        "facts", query_type="range", parameters={"low": 1, "high": 2}, **{"z" * 60: 1}
    ),
    "inputs that are not an object": plan(step("a", inputs="x")),
    "inputs that are null": plan(step("a", inputs=None)),
    "missing inputs": plan(thought("a", type="tool", name="search")),
    "missing inputs in version 1": [thought("a", type="tool", name="search")],
    "inputs under another name": plan(thought("a", type="tool", name="search", input={"query": "x"})),
    "the older form": [older(1, parameters={"query": 5}), older(2)],
    "JSON within a text": calling("letter", to='{"street": 1, "number": 2}', copies=[]),
}
"""By name, plans whose steps call tools with inputs, correctly or not."""


def test_the_inputs_of_steps(snapshot: SnapshotAssertion) -> None:
    assert findings_text(INPUTS, TOOLS) == snapshot


@pytest.mark.parametrize("given", [OUT, IN_TEXT, "${f.output.x} ${user_prompt}"])
@pytest.mark.parametrize("name", ["query", "limit", "day", "order", "tags", "options"])
def test_a_value_with_a_reference_may_be_anything(name: str, given: str) -> None:
    assert findings(calling("search", **({"query": "a"} | {name: given})), TOOLS) == []


def test_a_validator_that_changes_what_it_is_given_does_not_change_the_plan() -> None:
    source = calling("meddler", old=1, deep={})
    assert validate_workflow(source, TOOLS).errors == ()
    assert source["steps"][1]["inputs"] == {"old": 1, "deep": {}}


def test_what_must_pass_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        findings(calling("raising", a="stop"), TOOLS)


def test_a_long_message_is_cut() -> None:
    class Long(pydantic.BaseModel):
        a: int

        @pydantic.field_validator("a")
        @classmethod
        def _refuse(cls, a: int) -> int:
            raise ValueError("x" * 500)

    capabilities = Capabilities(tools={"long": tool("long", Long)})
    (finding,) = findings(calling("long", a=1), capabilities)
    assert finding.message == f"input a of long: {'x' * 280}..."


def test_a_container_whose_type_is_open_may_be_wrong_because_of_its_references() -> None:
    class Pair(pydantic.BaseModel):
        both: list[str] | dict[str, str] = pydantic.Field(min_length=1)

        @pydantic.field_validator("both")
        @classmethod
        def _differ(cls, both: Any) -> Any:
            raise ValueError("they are the same")

    capabilities = Capabilities(tools={"pair": tool("pair", Pair)})
    assert findings(calling("pair", both=[OUT, "a"]), capabilities) == []
    (wrong,) = findings(calling("pair", both=["b", "a"]), capabilities)
    assert wrong.message == "input both of pair: they are the same"


def test_many_places_with_references_are_checked_like_few() -> None:
    def keep(by_name: dict[str, int]) -> None: ...

    capabilities = Capabilities(tools=[keep])
    for start in (0, 1_500):
        by_name = {f"name {number}": OUT for number in range(start, start + 1_500)}
        assert findings(calling("keep", by_name=by_name), capabilities) == []


def test_for_a_reference_stands_the_one_value_or_an_example_where_the_schema_names_it() -> None:
    class Said(pydantic.BaseModel):
        kind: Literal["a"]
        code: int = pydantic.Field(examples=[7])

        @pydantic.field_validator("code")
        @classmethod
        def _seven(cls, code: int) -> int:
            if code != 7:
                raise ValueError("seven alone will do")
            return code

    capabilities = Capabilities(tools={"said": tool("said", Said)})
    assert findings(calling("said", kind=OUT, code=OUT), capabilities) == []
