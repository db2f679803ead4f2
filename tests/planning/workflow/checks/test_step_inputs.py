"""The inputs of steps against the parameters of their tools."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pydantic
import pytest
from drafting import draft, found, older, step
from input_tools import TOOLS, Bounds, tool

from planning.workflow.capabilities import Capabilities
from planning.workflow.checks.steps import check_steps

OUT = "${f.output.x}"
IN_TEXT = "from ${f.output.x} on"


def problems(name: str, **inputs: Any) -> list[tuple[Any, ...]]:
    """The message and the hint of each finding about a step's inputs, and its place below them."""
    plan = ({"step_id": "f"}, step("a", "f", name=name, inputs=inputs))
    findings = found(*plan, capabilities=TOOLS)
    assert {(each.code, each.path[:3], each.step_id) for each in findings} <= {
        ("bad_input", ("steps", 1, "inputs"), "a")
    }
    return [(each.message, each.hint, *each.path[3:]) for each in findings]


def test_inputs_that_the_tool_takes_have_no_findings() -> None:
    assert problems("search", query="a", limit=5, day="2026-01-31", tags=["x"], options={"a": [1]}) == []


def test_each_literal_that_the_tool_refuses_is_told_at_its_place() -> None:
    place = {"street": "Main", "number": "five", "zip": 1}
    assert problems("letter", copies=[place, {"street": 1, "number": 2}], text=None, Text="") == [
        ("input to of letter is missing", "send an object with street, number"),
        ("input Text of letter: unknown field", "did you mean text?", "Text"),
        (
            "input copies[0].number of letter: expected an integer, got a string",
            "send an integer",
            "copies",
            0,
            "number",
        ),
        ("input copies[0].zip of letter: unknown field", "the fields are street, number", "copies", 0, "zip"),
        (
            "input copies[1].street of letter: expected a string, got a number",
            "send a string",
            "copies",
            1,
            "street",
        ),
    ]


def test_an_unknown_field_is_told_at_its_name() -> None:
    findings = found(step("a", inputs={"query": 5, "qeury": "x"}), capabilities=TOOLS)
    assert [(each.path[3:], each.at_key) for each in findings] == [(("qeury",), True), (("query",), False)]


@pytest.mark.parametrize("given", [OUT, IN_TEXT, "${f.output.x} ${user_prompt}"])
@pytest.mark.parametrize("name", ["query", "limit", "day", "order", "tags", "options"])
def test_a_value_with_a_reference_may_be_anything(name: str, given: str) -> None:
    assert problems("search", **({"query": "a"} | {name: given})) == []


def test_references_are_looked_over_at_any_depth() -> None:
    assert (
        problems("letter", to={"street": OUT, "number": OUT}, copies=[OUT, {"street": "a", "number": OUT}])
        == []
    )
    assert problems("letter", to=OUT, copies=OUT) == []
    assert problems("search", query="a", tags=[OUT, "b"], options={"a": {"b": OUT}}) == []


def test_beside_references_literals_are_still_checked() -> None:
    assert problems("letter", to={"street": OUT}, copies=[{"street": OUT, "number": "q"}], txt=OUT) == [
        (
            "input copies[0].number of letter: expected an integer, got a string",
            "send an integer",
            "copies",
            0,
            "number",
        ),
        ("input to.number of letter is missing", "send an integer", "to"),
        ("input txt of letter: unknown field", "did you mean text?", "txt"),
    ]
    assert problems("search", query=5, limit=OUT) == [
        ("input query of search: expected a string, got a number", "send a string", "query")
    ]


def test_a_container_that_is_wrong_whatever_its_references_give_is_told() -> None:
    right = {"count": 5, "share": 0.5, "word": "x" * 20}
    wanted = "an array of at least 2 items and at most 3 items"
    assert problems("bounds", **right, names={"a": OUT}) == [
        (
            f"input names of bounds: expected {wanted}, got an object",
            f"send {wanted}",
            "names",
        )
    ]
    assert problems("bounds", **right, names=[OUT]) == [
        ("input names of bounds: expected at least 2 items, got 1 item", "send at least 2 items", "names")
    ]
    assert problems("bounds", **right, names=[OUT, "b"]) == []


def test_for_a_reference_stands_a_value_that_the_tool_takes() -> None:
    names = [field.name for field in msgspec.structs.fields(Bounds)]
    assert problems("bounds", **dict.fromkeys(names, OUT)) == []
    assert problems("bounds", **dict.fromkeys(names, OUT), more=1) == [
        ("input more of bounds: unknown field", f"the fields are {', '.join(names)}", "more")
    ]


def test_what_a_tools_own_validator_says_is_told_in_ascii() -> None:
    assert problems("dates", start="2026", end="2026-01-01") == [
        (
            r"input start of dates: a date in YYYY-MM-DD form, s'il vous pla\xeet",
            "send what dates takes",
            "start",
        )
    ]


def test_a_validator_that_looks_at_a_reference_in_another_field_is_not_believed() -> None:
    assert problems("dates", start=OUT, end="2026-01-01") == []
    assert problems("range", low=OUT, high=-5) == []
    assert problems("range", low=3, high=OUT) == []
    assert problems("range", low=3, high=2) == [
        ("input high of range: high is under low", "send what range takes", "high")
    ]


def test_a_validator_that_changes_what_it_is_given_does_not_change_the_plan() -> None:
    inputs = {"old": 1, "deep": {}}
    assert check_steps([draft(0, step("a", name="meddler", inputs=inputs))], TOOLS) == []
    assert inputs == {"old": 1, "deep": {}}


def test_a_validator_that_fails_says_nothing_of_the_plan() -> None:
    assert problems("raising", a="x") == []


def test_what_must_pass_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        problems("raising", a="stop")


@pytest.mark.parametrize("name", ["open", "free", "unreadable"])
def test_a_tool_that_declares_nothing_takes_anything(name: str) -> None:
    plan = step("a", name=name, inputs={"anything": 5})
    assert found(plan, plan | {"step_id": "b"}, capabilities=TOOLS) == []


def test_a_tool_with_query_types_is_checked_by_the_type() -> None:
    assert problems("facts", query_type="dates", parameters={"start": "a-b-c", "end": "b"}) == []
    assert problems("facts", query_type="range", parameters={"low": OUT, "high": "q"}) == [
        (
            "input parameters.high of facts: expected an integer, got a string",
            "send an integer",
            "parameters",
            "high",
        )
    ]
    assert problems("facts", query_type="raneg", parameters={}) == [
        (
            "input query_type of facts: query type 'raneg' is not supported",
            "send one of dates, range",
            "query_type",
        )
    ]
    assert problems("facts", parameters=OUT, more=1) == [
        ("input query_type of facts is missing", "send one of dates, range"),
        ("input more of facts: unknown field", "the fields are query_type, parameters", "more"),
    ]


@pytest.mark.parametrize(
    "inputs",
    [
        {"query_type": OUT, "parameters": {"start": 5}},
        {"query_type": "range", "parameters": OUT},
        {"query_type": OUT, "parameters": OUT},
        {"query_type": "range", "parameters": {"low": OUT, "high": OUT}},
    ],
)
def test_references_in_a_query_may_be_anything(inputs: dict[str, Any]) -> None:
    assert problems("facts", **inputs) == []


def test_a_query_type_without_a_parameter_model_is_the_tools_fault() -> None:
    assert problems("broken", query_type="odd", parameters={"a": OUT}) == []


def test_of_a_tool_with_private_data_no_value_is_told() -> None:
    assert problems("secret", to={"street": 5, "number": 1, "Main Road 5": 1}, copies="Main Road") == [
        ("input copies of secret: expected an array, got a string", "send an array", "copies"),
        ("input to of secret: refused", "send an object with street, number", "to", "Main Road 5"),
        ("input to.street of secret: expected a string, got a number", "send a string", "to", "street"),
    ]


def test_odd_names_are_found_again() -> None:
    long = "x\n" + "y" * 90
    assert problems("letter", to={"street": "a", "number": 1, long: 1}, copies=[], **{"a.b[0]": 1}) == [
        ("input a.b[0] of letter: unknown field", "the fields are to, copies, text", "a.b[0]"),
        (rf"input to.x\n{'y' * 57} of letter: unknown field", "the fields are street, number", "to", long),
    ]
    assert problems("facts", query_type="range", parameters={"low": 1, "high": 2}, **{"z" * 60: 1}) == [
        (f"input {'z' * 37}... of facts: unknown field", "the fields are query_type, parameters", "z" * 60)
    ]


def test_inputs_that_are_no_object_or_not_there_are_told_at_the_step() -> None:
    assert found(step("a", inputs="x"), capabilities=TOOLS) == []
    (finding,) = found(step("a"), capabilities=TOOLS)
    assert (finding.message, finding.path) == ("input query of search is missing", ("steps", 0))


def test_a_step_of_the_older_form_is_told_of_its_parameters() -> None:
    fields = {"step_id": 1, "tool": "search", "parameters": {"query": 5}}
    (finding,) = check_steps([older(0, fields)], TOOLS)
    assert finding.path == ("steps", 0, "parameters", "query")


def test_json_within_a_text_is_told_at_the_text() -> None:
    assert problems("letter", to='{"street": 1, "number": 2}', copies=[]) == [
        ("input to.street of letter: expected a string, got a number", "send a string", "to")
    ]


def test_a_long_message_is_cut() -> None:
    class Long(pydantic.BaseModel):
        a: int

        @pydantic.field_validator("a")
        @classmethod
        def _refuse(cls, a: int) -> int:
            raise ValueError("x" * 500)

    capabilities = Capabilities(tools={"long": tool("long", Long)})
    (finding,) = found(step("a", name="long", inputs={"a": 1}), capabilities=capabilities)
    assert finding.message == f"input a of long: {'x' * 280}..."


def test_a_container_whose_type_is_open_may_be_wrong_because_of_its_references() -> None:
    class Pair(pydantic.BaseModel):
        both: list[str] | dict[str, str] = pydantic.Field(min_length=1)

        @pydantic.field_validator("both")
        @classmethod
        def _differ(cls, both: Any) -> Any:
            raise ValueError("they are the same")

    capabilities = Capabilities(tools={"pair": tool("pair", Pair)})
    plan = ({"step_id": "f"}, step("a", "f", name="pair", inputs={"both": [OUT, "a"]}))
    assert found(*plan, capabilities=capabilities) == []
    plan[1]["inputs"] = {"both": ["b", "a"]}
    assert [each.message for each in found(*plan, capabilities=capabilities)] == [
        "input both of pair: they are the same"
    ]


def test_many_places_with_references_are_checked_like_few() -> None:
    def keep(by_name: dict[str, int]) -> None: ...

    capabilities = Capabilities(tools=[keep])
    for start in (0, 1_500):
        inputs = {"by_name": {f"name {number}": OUT for number in range(start, start + 1_500)}}
        plan = ({"step_id": "f"}, step("a", "f", name="keep", inputs=inputs))
        assert found(*plan, capabilities=capabilities) == []


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
    steps = ({"step_id": "f"}, step("a", "f", name="said", inputs={"kind": OUT, "code": OUT}))
    assert found(*steps, capabilities=capabilities) == []
