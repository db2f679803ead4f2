"""A field under another name is one error, and what follows from it alone is none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.workflow import Capabilities, Report, validate_workflow

KNOWN = Capabilities(tools={"search": lambda q="": q}, handlers=["say"], agents=["writer"])
FORM = 'write {"schema_version": 2, "goal": "...", "steps": [...]}'
OTHERS = {
    "step_id": ["id", "ID", "stepId", "step-id", "step", "key", "uid", "identifier", "task_id"],
    "description": ["task", "title", "desc", "instruction", "descripton"],
    "inputs": ["args", "arguments", "params", "parameters", "input", "tool_input", "kwargs"],
    "depends_on": ["dependencies", "dependsOn", "depends", "requires", "needs", "deps", "after"],
    "outputs": ["output", "returns", "expected_outputs"],
}
OLDER = {
    "step_id": OTHERS["step_id"],
    "description": OTHERS["description"],
    "tool": ["tool_name", "function", "action", "name"],
    "parameters": ["args", "inputs", "params", "input"],
    "dependencies": ["depends_on", "dependsOn", "requires", "deps"],
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
OLDER_STEP = {"step_id": 1, "description": "d", "tool": "search", "parameters": {}, "dependencies": []}
OLDER_STEPS = [
    OLDER_STEP,
    {**OLDER_STEP, "step_id": 2, "parameters": {"q": "${1.output}"}, "dependencies": [1]},
]


def renamed(fields: dict[str, Any], **names: str) -> dict[str, Any]:
    """An object with other names for some of its fields."""
    return {names.get(name, name): value for name, value in fields.items()}


def whole(steps: list[Any]) -> dict[str, Any]:
    return {"schema_version": 2, "goal": "g", "steps": steps}


def errors(document: object) -> list[tuple[str, str, str]]:
    return said(validate_workflow(document, KNOWN))


def said(report: Report) -> list[tuple[str, str, str]]:
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
    assert errors(whole(steps)) == at(*(f"/steps/{index}/{other}" for index in range(3)), hint=hint)
    one = [STEPS[0], steps[1], STEPS[2]]
    assert errors(one) == at(f"/1/{other}", hint=hint)


@pytest.mark.parametrize(("field", "other"), [(field, each) for field in OLDER for each in OLDER[field]])
def test_the_older_form_is_recognized_under_other_names(field: str, other: str) -> None:
    steps = [renamed(each, **{field: other}) for each in OLDER_STEPS]
    expected = at(f"/0/{other}", f"/1/{other}", hint=f"did you mean {field}?")
    assert errors(steps) == expected


@pytest.mark.parametrize("other", ["tool", "tool_name", "toolName", "function", "action"])
@pytest.mark.parametrize("without", [("name",), ("type", "name"), ("type",)], ids=" ".join)
def test_a_tool_under_another_name_is_type_and_name_together(other: str, without: tuple[str, ...]) -> None:
    steps = [{name: each[name] for name in each if name not in without} | {other: "search"} for each in STEPS]
    if without == ("type",):
        steps = [{**each, "name": "Find it"} for each in steps]  # a title
    hint = 'write "type": "tool" and "name" instead'
    assert errors(steps) == at(*(f"/{index}/{other}" for index in range(3)), hint=hint)
    assert errors([{**steps[0], other: "serch"}]) == [
        *at(f"/0/{other}", hint=hint),
        ("unknown_tool", f"/0/{other}", "did you mean search?"),
    ]


@given(st.data())
def test_each_name_that_is_wrong_is_one_error_whatever_other_ones_are(data: st.DataObject) -> None:
    steps, count = [], 0
    for each in STEPS:
        fields = data.draw(st.sets(st.sampled_from(sorted(OTHERS))))
        names = {field: data.draw(st.sampled_from(OTHERS[field])) for field in sorted(fields)}
        steps.append(renamed(each, **names))
        count += len(names)
    name = data.draw(st.sampled_from(["steps", "tasks", "nodes"]))
    found = errors({"schema_version": 2, "goal": "g", name: steps})
    assert [code for code, _, _ in found] == ["unknown_field"] * (count + (name != "steps"))


def test_what_else_is_wrong_is_said_too_at_the_names_that_were_given() -> None:
    steps = [
        renamed(step("a", "c"), step_id="id", depends_on="after"),
        renamed(step("c", "a"), step_id="id"),
        renamed(step("d", "z", inputs={"x": 1}), inputs="args", depends_on="deps"),
    ]
    report = validate_workflow(steps, KNOWN)
    others = {each for each in said(report) if each[0] != "unknown_field"}
    assert others == {
        ("dependency_cycle", "/0/after/0", "remove one of these dependencies from depends_on"),
        ("unknown_dependency", "/2/deps/0", "the step ids are a, c, d"),
        ("bad_input", "/2/args/x", "the fields are q"),
    }
    assert len(report.errors) == 8
    assert report.parsed_plan == steps
    twins = [renamed(step("a"), step_id="id"), renamed(step("a"), step_id="id")]
    assert errors(twins)[2:] == [("duplicate_step_id", "/1/id", "give it another id")]


def test_a_number_as_an_id_under_another_name_is_one_error_and_others_may_name_it() -> None:
    steps = [renamed(step("a"), step_id="id") | {"id": 1}, step("b", "1")]
    assert errors(steps) == at("/0/id", hint="did you mean step_id?")


def test_a_field_that_is_there_already_is_not_meant_by_another_name() -> None:
    fields = "step_id, description, type, name, inputs, outputs, depends_on"
    assert errors([{**STEPS[0], "id": "x"}]) == at("/0/id", hint=f"remove it; the fields are {fields}")
    assert errors([{**STEPS[0], "tool": "x"}]) == at("/0/tool", hint=f"remove it; the fields are {fields}")


@pytest.mark.parametrize(
    "name", ["tasks", "nodes", "actions", "plan_steps", "todos", "items", "stages", "Steps", "dag", "result"]
)
@pytest.mark.parametrize("around", [{}, {"goal": "g"}, {"schema_version": 2, "goal": "g"}], ids=len)
def test_steps_under_another_name_are_told_the_right_form_and_are_checked(
    name: str, around: dict[str, Any]
) -> None:
    expected = at(f"/{name}", hint=FORM)
    assert errors({**around, name: STEPS}) == expected
    assert errors({**around, name: {"goal": "g", "steps": STEPS}}) == expected
    wrong = [STEPS[0], renamed(step("b", "z"), step_id="id")]
    report = validate_workflow({**around, name: wrong}, KNOWN)
    assert said(report) == [
        *expected,
        *at(f"/{name}/1/id", hint="did you mean step_id?"),
        ("unknown_dependency", f"/{name}/1/depends_on/0", "the step ids are a, b"),
        ("unknown_reference", f"/{name}/1/inputs/q", "the step ids are a, b"),
    ]
    assert report.parsed_plan == wrong


def test_tasks_that_are_no_steps_are_errors_of_their_own() -> None:
    texts = [("wrong_type", f"/tasks/{index}", "send an object") for index in range(2)]
    assert errors({"tasks": ["look", "say"]}) == [*at("/tasks", hint=FORM), *texts]
    assert errors({"tasks": []}) == at("/tasks", hint=FORM)
    by_id = {"a": STEPS[0]}
    assert errors({"tasks": by_id}) == [*at("/tasks", hint=FORM), ("wrong_type", "/tasks", "send an array")]


def test_a_single_step_may_have_other_names() -> None:
    assert errors(renamed(STEPS[0], step_id="id")) == at("/id", hint="did you mean step_id?")


def test_only_so_many_wrong_names_are_listed() -> None:
    found = errors([renamed(step(f"s{index}"), step_id="id") for index in range(2_000)])
    assert [code for code, _, _ in found] == [*["unknown_field"] * 1000, "too_many_errors"]
