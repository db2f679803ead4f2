"""A field under another name is one error, and what follows from it alone is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.workflow import Capabilities, validate_workflow

KNOWN = Capabilities(tools={"search": lambda q: q}, handlers=["say"], agents=["writer"])
FORM = 'write {"schema_version": 2, "goal": "...", "steps": [...]}'
OTHERS = {
    "step_id": ["id", "ID", "stepId", "step-id", "step", "key", "uid", "identifier", "task_id"],
    "description": ["task", "title", "desc", "instruction", "descripton"],
    "inputs": ["args", "arguments", "params", "parameters", "input", "tool_input", "kwargs"],
    "depends_on": ["dependencies", "dependsOn", "depends", "requires", "needs", "deps", "after"],
    "outputs": ["output", "returns", "expected_outputs"],
}


def step(step_id: str, *depends_on: str, **fields: Any) -> dict[str, Any]:
    inputs = {"q": "".join(f"${{{each}.output.found}}" for each in depends_on)}
    return {
        "step_id": step_id,
        "description": "d",
        "type": "tool",
        "name": "search",
        "inputs": inputs,
        "outputs": ["found"],
        "depends_on": list(depends_on),
        **fields,
    }


STEPS = [step("a"), step("b", "a"), step("c", "a", "b")]


def renamed(fields: dict[str, Any], **names: str) -> dict[str, Any]:
    """An object with other names for some of its fields."""
    return {names.get(name, name): value for name, value in fields.items()}


def errors(document: object) -> list[tuple[str, str, str]]:
    report = validate_workflow(document, KNOWN)
    return [(each.code, each.pointer, each.hint) for each in report.errors]


def at(*pointers: str, hint: str) -> list[tuple[str, str, str]]:
    """An error for a field that is unknown at each of these places."""
    return [("unknown_field", pointer, hint) for pointer in pointers]


@pytest.mark.parametrize(("field", "other"), [(field, each) for field in OTHERS for each in OTHERS[field]])
def test_another_name_of_a_field_is_one_error_in_each_step_and_no_other_follows(
    field: str, other: str
) -> None:
    steps = [renamed(each, **{field: other}) for each in STEPS]
    hint = f"did you mean {field}?"
    assert errors(steps) == at(*(f"/{index}/{other}" for index in range(3)), hint=hint)
    document = {"schema_version": 2, "goal": "g", "steps": [STEPS[0], steps[1], STEPS[2]]}
    assert errors(document) == at(f"/steps/1/{other}", hint=hint)


@pytest.mark.parametrize("other", ["tool", "tool_name", "toolName", "function", "action"])
@pytest.mark.parametrize("without", [("name",), ("type", "name"), ("type",)], ids=" ".join)
def test_a_tool_under_another_name_is_type_and_name_together(other: str, without: tuple[str, ...]) -> None:
    steps = [{name: each[name] for name in each if name not in without} | {other: "search"} for each in STEPS]
    hint = 'write "type": "tool" and "name" instead'
    assert errors(steps) == at(*(f"/{index}/{other}" for index in range(3)), hint=hint)


@given(st.data())
def test_each_name_that_is_wrong_is_one_error_whatever_other_ones_are(data: st.DataObject) -> None:
    steps, count = [], 0
    for each in STEPS:
        fields = data.draw(st.sets(st.sampled_from(sorted(OTHERS))))
        names = {field: data.draw(st.sampled_from(OTHERS[field])) for field in sorted(fields)}
        steps.append(renamed(each, **names))
        count += len(names)
    assert [code for code, _, _ in errors(steps)] == ["unknown_field"] * count


def test_what_else_is_wrong_is_said_too() -> None:
    steps = [renamed(step("a"), step_id="id") | {"id": 1}, step("b", "1"), step("c", "z", name="serch")]
    assert errors(steps) == [
        *at("/0/id", hint="did you mean step_id?"),
        ("unknown_tool", "/2/name", "did you mean search?"),
        ("unknown_dependency", "/2/depends_on/0", "the step ids are b, c"),
        ("unknown_reference", "/2/inputs/q", "the step ids are b, c"),
    ]


def test_a_field_that_is_there_already_is_not_meant_by_another_name() -> None:
    fields = "step_id, description, type, name, inputs, outputs, depends_on"
    assert errors([{**STEPS[0], "id": "x"}]) == at("/0/id", hint=f"remove it; the fields are {fields}")
    assert errors([{**STEPS[0], "tool": "x"}]) == at("/0/tool", hint=f"remove it; the fields are {fields}")


@pytest.mark.parametrize("name", ["tasks", "nodes", "todos", "Steps", "dag", "result"])
@pytest.mark.parametrize("around", [{}, {"goal": "g"}, {"schema_version": 2, "goal": "g"}], ids=len)
def test_steps_under_another_name_are_one_error_with_the_right_form(
    name: str, around: dict[str, Any]
) -> None:
    assert errors({**around, name: STEPS}) == at(f"/{name}", hint=FORM)
    assert errors({**around, name: {"goal": "g", "steps": STEPS}}) == at(f"/{name}", hint=FORM)


def test_a_single_step_may_have_other_names() -> None:
    assert errors(renamed(STEPS[0], step_id="id")) == at("/id", hint="did you mean step_id?")
