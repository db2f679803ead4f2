"""Documents of every form are read and written, as their schemas say; each violation has its message."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from plan_findings import findings, findings_text, stored
from run_cases import refusal
from syrupy.assertion import SnapshotAssertion

from planning.tools.parameters.schema import parts as parts_of
from planning.workflow import (
    Capabilities,
    Report,
    Workflow,
    WorkflowStep,
    dump_workflow,
    schema_text,
    validate_workflow,
)
from planning.workflow.wire import form
from planning.workflow.wire.form import MOST_ERRORS

STEP = {"step_id": "a", "description": "d", "type": "tool", "name": "search", "inputs": {}, "depends_on": []}


def first(**fields: Any) -> list[Any]:
    return [{**STEP, **fields}]


def test_the_form_of_a_document_and_its_deviations_are_reported(snapshot: SnapshotAssertion) -> None:
    forms = stored(snapshot)
    assert findings_text(forms) == snapshot
    reports = {name: validate_workflow(source) for name, source in forms.items()}
    written = {name: dump_workflow(each.workflow) for name, each in reports.items() if each.ok}
    assert "".join(f"# {name}\n{text}" for name, text in written.items()) == snapshot(name="workflows")


def test_every_schema_error_has_a_message_at_its_path(snapshot: SnapshotAssertion) -> None:
    assert findings_text(stored(snapshot)) == snapshot


def test_what_cannot_be_read_of_a_step_is_not_guessed(snapshot: SnapshotAssertion) -> None:
    assert findings_text(stored(snapshot), Capabilities()) == snapshot


def test_what_json_does_not_have_is_not_written(snapshot: SnapshotAssertion) -> None:
    values: tuple[Any, ...] = {1: 2}, {"x": {1}}, {"x": float("inf")}, {"a/b": ["\ud800"]}
    steps = (WorkflowStep(step_id="a", description="d", inputs=value) for value in values)
    refused = [refusal(ValueError, dump_workflow, Workflow(steps=(step,))) for step in steps]
    assert "\n".join(refused) == snapshot


def test_of_a_long_list_the_first_thousand_items_are_looked_at_one_by_one() -> None:
    wrong = [0, 999, 1000, 2500]
    items: list[Any] = ["b"] * 3000
    for at in wrong:
        items[at] = at
    found = [each.pointer for each in findings(first(depends_on=items)) if each.category == "schema"]
    assert found == ["/0/depends_on/0", "/0/depends_on/999"]
    late, _ = findings({"plan": first(outputs=["b"] * 1000 + [1])})
    assert (late.code, late.hint, late.pointer) == ("wrong_type", "send shorter lists", "/plan")
    assert late.message == "an item behind the first 1,000 of a list has the wrong type"


def test_what_may_be_a_field_of_the_step_is_not_guessed_to_be_an_input() -> None:
    """A bracket is missing: the last field may be the step's or the input's."""
    parts = [each for version in form.VERSIONS for each in parts_of(form.schema(version))]
    fields = {name for part in parts for name in part.get("properties", ())}
    text = '[{"step_id": "a", "inputs": {"x": {"y": 1}, "%": 1}]'
    found = {name: validate_workflow(text.replace("%", name)).errors for name in fields}
    assert {name for name in found if "ambiguous_bracket" in {each.code for each in found[name]}} == fields


@pytest.mark.parametrize("more", [0, 2])
def test_more_errors_than_are_written_out_are_one_error_more(more: int) -> None:
    found = findings({"plan": [1] * (MOST_ERRORS + more)})
    assert [each.code for each in found].count("wrong_type") == MOST_ERRORS
    assert [(each.hint, each.pointer) for each in found if each.code == "too_many_errors"] == [
        ("fix the errors above first", "/plan")
    ] * bool(more)


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
    said = {**STEP, "inputs": inputs, "outputs": ["found"], "depends_on": [*depends_on], **fields}
    return {**said, "step_id": step_id}


STEPS = [step("a"), step("b", "a"), step("c", "a", "b")]


def renamed(fields: dict[str, Any], **names: str) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in fields.items()}


def errors(document: object) -> list[tuple[str, str, str]]:
    report = validate_workflow(document, KNOWN)
    return [(each.code, each.pointer, each.hint) for each in report.errors]


def at(*pointers: str, hint: str) -> list[tuple[str, str, str]]:
    return [("unknown_field", pointer, hint) for pointer in pointers]


@pytest.mark.parametrize(("field", "other"), [(field, each) for field in OTHERS for each in OTHERS[field]])
def test_another_name_of_a_field_is_one_error_in_each_step(field: str, other: str) -> None:
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


@pytest.mark.parametrize("name", ["tasks", "nodes", "todos", "Steps", "dag", "result"])
@pytest.mark.parametrize("around", [{}, {"goal": "g"}, {"schema_version": 2, "goal": "g"}], ids=len)
def test_steps_under_another_name_are_one_error(name: str, around: dict[str, Any]) -> None:
    assert errors({**around, name: STEPS}) == at(f"/{name}", hint=FORM)
    assert errors({**around, name: {"goal": "g", "steps": STEPS}}) == at(f"/{name}", hint=FORM)


CARE = {
    "expected_key": "k",
    "output_path": ["p"],
    "done_check": "k > 1",
    "timeout": 1,
    "retries": 2,
    "on_failure": "continue",
    "status": "failed",
    "completed_at": "2024-05-06",
    "skipped": True,
}
THOUGHT: dict[str, Any] = {"step_id": "a", "description": "d", "outputs": ["x"], "depends_on": [], **CARE}
TOOL = {**THOUGHT, "type": "tool", "name": "t", "inputs": {"x": None}}
AGENT = {**THOUGHT, "agent": "t", "inputs": {}}
OLDER = {"step_id": 1, "description": "d", "parameters": {}, "dependencies": [], **CARE}
OLDER_FIELDS = ("step_id", "description", "type", "name", "inputs", "outputs", "depends_on")
FORM_STEPS = {
    "version 1": (1, {name: TOOL[name] for name in OLDER_FIELDS}),
    "a thought": (2, THOUGHT),
    "a tool": (2, TOOL),
    "an agent": (2, AGENT),
    "an older step with a tool": (2, {**OLDER, "tool": "t"}),
    "an older step with an agent": (2, {**OLDER, "agent": "t"}),
}
WHOLE = {"schema_version": 2, "goal": "g", "steps": [TOOL], "status": "failed", "created_at": "2024-05-06",
         "completed_at": "2024-05-06", "owner": "o", "can_modify": False}  # fmt: skip


def document(version: int, step: dict[str, Any]) -> Any:
    return [step] if version == 1 else {"schema_version": 2, "goal": "g", "steps": [step]}


def is_published(version: int, value: Any) -> bool:
    """Whether a document is valid by the published schema, on which two libraries agree."""
    is_valid = bool(Draft202012Validator(json.loads(schema_text(version))).is_valid(value))
    assert jsonschema_rs.is_valid(json.loads(schema_text(version)), value) is is_valid
    return is_valid


def told(report: Report) -> list[tuple[str, str, str]]:
    return [(each.code, each.message, each.pointer) for each in (*report.errors, *report.warnings)]


@pytest.mark.parametrize("version", form.VERSIONS)
def test_a_schema_file_is_of_its_draft_and_refers_to_itself_alone(version: int) -> None:
    parsed = json.loads(schema_text(version))
    assert parsed["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(parsed)
    assert form.schema(version) == parsed
    references = re.findall(r'"\$ref": "([^"]*)"', schema_text(version))
    assert all(each.startswith("#/$defs/") for each in references)


def test_what_a_schema_would_refer_to_outside_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    outside: Any = {"$ref": "https://example.org/step.json"}
    monkeypatch.setattr(form, "schema", lambda version: outside)
    form.validator.cache_clear()
    try:
        with pytest.raises(jsonschema_rs.ValidationError, match=r"step\.json, outside of itself"):
            form.validator(2)
    finally:
        form.validator.cache_clear()


@given(st.sampled_from(sorted(FORM_STEPS)), st.data())
def test_a_null_field_of_a_step_is_absent_for_schema_and_validator(name: str, data: st.DataObject) -> None:
    version, step = FORM_STEPS[name]
    part = "numbered_step" if type(step["step_id"]) is int else "step"
    fields = list(form.schema(version)["$defs"][part]["properties"])
    nulls = data.draw(st.sets(st.sampled_from(fields), min_size=1))
    null = document(version, {**step, **dict.fromkeys(nulls)})
    absent = document(version, {field: step[field] for field in step if field not in nulls})
    assert is_published(version, null) is is_published(version, absent)
    found = validate_workflow(null).errors
    assert is_published(version, null) is not any(each.category == "schema" for each in found)
    assert told(validate_workflow(null)) == told(validate_workflow(absent))


@pytest.mark.parametrize("field", WHOLE)
def test_a_null_field_of_a_document_is_absent_for_schema_and_validator(field: str) -> None:
    null, absent = {**WHOLE, field: None}, {name: WHOLE[name] for name in WHOLE if name != field}
    assert is_published(2, null) is (field not in {"schema_version", "goal", "steps"})
    assert is_published(2, null) is is_published(2, absent)
    assert told(validate_workflow(null)) == told(validate_workflow(absent))
    if field != "schema_version":  # which the validator assumes, with a warning
        assert validate_workflow(null).ok is is_published(2, null)


def test_a_workflow_is_written_in_one_way(snapshot: SnapshotAssertion) -> None:
    tool = {**TOOL, "inputs": {"x": [1, {"y": None}]}, "depends_on": ["b"]}
    agent = {**AGENT, "step_id": "b", "description": "é", "outputs": [], "expected_key": "other"}
    source = {**WHOLE, "steps": [tool, agent, {"step_id": "c", "description": "think"}]}
    text = dump_workflow(validate_workflow(source).workflow)
    assert text == snapshot
    assert dump_workflow(validate_workflow(json.loads(text)).workflow) == text
