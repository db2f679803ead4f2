"""Documents are read into workflows, and workflows are written as documents."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest
from plan_findings import findings_text, plan
from syrupy.assertion import SnapshotAssertion

from planning.workflow import Capabilities, Workflow, WorkflowStep, dump_workflow, validate_workflow

STEPS: list[dict[str, Any]] = [
    {"step_id": ""},
    {"step_id": [], "type": [], "name": "n"},
    {"step_id": "a", "type": "tool", "name": ""},
    {"step_id": "a", "type": "tol", "name": "n"},
    {"step_id": 1.0, "tool": "t", "parameters": {"x": 1}, "dependencies": [2, 3.0, 2.5, "b", True]},
    {"step_id": 1, "tool": ""},
    {"step_id": True, "tool": "t"},
    {"step_id": 1, "agent": "g"},
    {"step_id": 1, "agent": "g", "tool": "t"},
]
FIELDS: list[Any] = [None, 1, "x", {}, [1, "a"]]
ODD: dict[str, object] = {
    **{f"a step {fields}": [{"description": "d", **fields}] for fields in STEPS},
    "an agent": plan({"step_id": "a", "description": "d", "agent": "g"}),
    "an agent beside a type": plan({"step_id": "a", "description": "d", "agent": "g", "type": "tool"}),
    "items that are not steps": [1, {"step_id": "a"}, None, {"step_id": "b"}],
    "a single step": {"plan": {"step_id": "a", "description": "d", "depends_on": ["b"]}},
    **{
        f"fields that are {wrong!r}": [
            {"step_id": "a", "inputs": [wrong], "outputs": wrong, "depends_on": wrong},
            {"step_id": 1, "parameters": [wrong], "dependencies": wrong},
        ]
        for wrong in FIELDS
    },
}
"""By name, documents with steps that are wrong in themselves: only what is certain is reported."""


def test_what_cannot_be_read_of_a_step_is_not_guessed(snapshot: SnapshotAssertion) -> None:
    assert findings_text(ODD, Capabilities()) == snapshot


FULL = Workflow(
    goal="g",
    status="in_progress",
    created_at="2024",
    completed_at="2025",
    owner="kim",
    can_modify=False,
    steps=(
        WorkflowStep(
            step_id="a",
            description="d",
            type="handler",
            name="n",
            inputs={"x": (1, MappingProxyType({"y": None}))},
            outputs=("o", "p"),
            depends_on=("b",),
            expected_key="k",
            output_path=("p", "q"),
            done_check="True",
            status="failed",
            completed_at="2026",
            skipped=True,
        ),
        WorkflowStep(step_id="b", description="é", agent="g", outputs=()),
        WorkflowStep(step_id="c", description="think"),
    ),
)


def test_a_workflow_is_written_in_one_way(snapshot: SnapshotAssertion) -> None:
    text = dump_workflow(FULL)
    assert text == snapshot
    assert dump_workflow(validate_workflow(json.loads(text)).workflow) == text


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({1: 2}, "/steps/0/inputs: a field name is a value of type int, not a string"),
        ({"x": {1}}, "/steps/0/inputs/x: a value of type set is not a JSON value"),
        ({"x": float("inf")}, "/steps/0/inputs/x: inf is not a JSON value"),
        ({"a/b": ["\ud800"]}, "/steps/0/inputs/a~1b/0: half of a surrogate pair"),
    ],
)
def test_what_json_does_not_have_is_not_written(value: Any, told: str) -> None:
    with pytest.raises(ValueError) as caught:
        dump_workflow(Workflow(steps=(WorkflowStep(step_id="a", description="d", inputs=value),)))
    assert str(caught.value) == told
