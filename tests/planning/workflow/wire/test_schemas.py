"""The schema files of the package are schemas, refer to nothing outside, and are what validates."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from planning.workflow import Report, schema_text, validate_workflow
from planning.workflow.wire import form

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
NUMBERED = {"step_id": 1, "description": "d", "parameters": {}, "dependencies": [], **CARE}
OLDER_FIELDS = ("step_id", "description", "type", "name", "inputs", "outputs", "depends_on")
STEPS = {
    "version 1": (1, {name: TOOL[name] for name in OLDER_FIELDS}),
    "a thought": (2, THOUGHT),
    "a tool": (2, TOOL),
    "an agent": (2, AGENT),
    "an older step with a tool": (2, {**NUMBERED, "tool": "t"}),
    "an older step with an agent": (2, {**NUMBERED, "agent": "t"}),
}
WHOLE = {"schema_version": 2, "goal": "g", "steps": [TOOL], "status": "failed", "created_at": "2024-05-06",
         "completed_at": "2024-05-06", "owner": "o", "can_modify": False}  # fmt: skip


def fields_of(version: int, step: dict[str, Any]) -> list[str]:
    """The fields that a step of this form may have, whether or not it has them."""
    part = "numbered_step" if type(step["step_id"]) is int else "step"
    return list(form.schema(version)["$defs"][part]["properties"])


def document(version: int, step: dict[str, Any]) -> Any:
    return [step] if version == 1 else {"schema_version": 2, "goal": "g", "steps": [step]}


def is_published(version: int, value: Any) -> bool:
    """Whether a document is valid by the published schema, on which two libraries agree."""
    is_valid = bool(Draft202012Validator(json.loads(schema_text(version))).is_valid(value))
    assert jsonschema_rs.is_valid(json.loads(schema_text(version)), value) is is_valid
    return is_valid


def findings(report: Report) -> list[tuple[str, str, str]]:
    return [(each.code, each.message, each.pointer) for each in (*report.errors, *report.warnings)]


@pytest.mark.parametrize("version", form.VERSIONS)
def test_a_schema_file_is_a_schema_of_its_draft_and_refers_to_itself_alone(
    version: int,
) -> None:
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


@given(st.sampled_from(sorted(STEPS)), st.data())
def test_a_field_of_a_step_that_is_null_is_absent_for_the_schema_and_for_the_validator(
    name: str, data: st.DataObject
) -> None:
    version, step = STEPS[name]
    fields = fields_of(version, step)
    nulls = data.draw(st.sets(st.sampled_from(fields), min_size=1))
    null = document(version, {**step, **dict.fromkeys(nulls)})
    absent = document(version, {field: step[field] for field in step if field not in nulls})
    assert is_published(version, null) is is_published(version, absent)
    assert is_published(version, null) is not any(
        error.category == "schema" for error in validate_workflow(null).errors
    )
    assert findings(validate_workflow(null)) == findings(validate_workflow(absent))


@pytest.mark.parametrize("field", WHOLE)
def test_a_field_of_a_document_that_is_null_is_absent_for_the_schema_and_for_the_validator(
    field: str,
) -> None:
    null, absent = {**WHOLE, field: None}, {name: WHOLE[name] for name in WHOLE if name != field}
    assert is_published(2, null) is (field not in {"schema_version", "goal", "steps"})
    assert is_published(2, null) is is_published(2, absent)
    assert findings(validate_workflow(null)) == findings(validate_workflow(absent))
    if field != "schema_version":  # which the validator assumes, with a warning
        assert validate_workflow(null).ok is is_published(2, null)
