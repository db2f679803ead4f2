"""Documents are read into drafts and workflows, and workflows are written as documents."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest

from planning.workflow import Workflow, WorkflowStep, dump_workflow, validate_workflow
from planning.workflow.drafts import Draft
from planning.workflow.wire.build import draft_steps, make_workflow
from planning.workflow.wire.form import form_of


def draft(step: dict[str, Any]) -> Draft:
    (made,) = draft_steps(form_of([step]))
    return made


def made(value: Any) -> Workflow:
    form = form_of(value)
    return make_workflow(form, draft_steps(form))


def test_a_draft_holds_everything_of_a_step_that_is_right() -> None:
    step = {
        "step_id": "a",
        "description": "d",
        "type": "handler",
        "name": "n",
        "inputs": {"x": 1},
        "outputs": ["o"],
        "depends_on": ["b"],
    }
    assert draft(step) == Draft(
        0, (0,), step, "a", "handler", "n", "name", {"x": 1}, "inputs", ["o"], ["b"], "depends_on"
    )


def test_a_draft_of_the_older_form_has_its_numbers_as_texts() -> None:
    step = {"step_id": 1.0, "tool": "t", "parameters": {"x": 1}, "dependencies": [2, 3.0, 2.5, "b", True]}
    assert draft(step) == Draft(
        0,
        (0,),
        step,
        "1",
        "tool",
        "t",
        "tool",
        {"x": 1},
        "parameters",
        None,
        ["2", "3", None, None, None],
        "dependencies",
    )


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({}, (None, None, None, "name")),
        ({"step_id": ""}, (None, None, None, "name")),
        ({"step_id": [], "type": [], "name": "n"}, (None, None, None, "name")),
        ({"step_id": "a", "type": "tool", "name": ""}, ("a", None, None, "name")),
        ({"step_id": "a", "type": "tool", "name": 1}, ("a", None, None, "name")),
        ({"step_id": "a", "type": "tol", "name": "n"}, ("a", None, None, "name")),
        ({"step_id": "a", "agent": "g"}, ("a", "agent", "g", "agent")),
        ({"step_id": "a", "agent": "g", "type": "tool"}, ("a", None, None, "name")),
        ({"step_id": 1}, ("1", None, None, "tool")),
        ({"step_id": 1, "tool": ""}, ("1", None, None, "tool")),
        ({"step_id": 1, "agent": "g"}, ("1", "agent", "g", "agent")),
        ({"step_id": 1, "agent": "g", "tool": None}, ("1", "agent", "g", "agent")),
        ({"step_id": 1, "agent": "g", "tool": "t"}, ("1", None, None, "agent")),
    ],
)
def test_a_draft_names_nothing_where_what_it_names_cannot_be_told(step: Any, expected: Any) -> None:
    read = draft(step)
    assert (read.step_id, read.type, read.name, read.name_field) == expected


@pytest.mark.parametrize("wrong", [None, 1, "x", {}, [1, "a"]])
def test_a_draft_leaves_out_what_has_the_wrong_type(wrong: Any) -> None:
    read = draft({"step_id": "a", "inputs": [wrong], "outputs": wrong, "depends_on": wrong})
    assert (read.inputs, read.outputs) == (None, None)
    assert list(read.depends_on) == ([None, "a"] if isinstance(wrong, list) else [])
    older = draft({"step_id": 1, "parameters": [wrong], "dependencies": wrong})
    assert (older.inputs, list(older.depends_on)) == (None, ["1", None] if isinstance(wrong, list) else [])


def test_what_is_no_step_is_left_out_and_the_others_keep_their_numbers() -> None:
    drafts = draft_steps(form_of([1, {"step_id": "a"}, None, {"step_id": "b"}]))
    assert [(each.number, each.path, each.step_id) for each in drafts] == [(1, (1,), "a"), (3, (3,), "b")]


def test_a_single_step_stands_where_the_document_does() -> None:
    (read,) = draft_steps(form_of({"plan": {"step_id": "a", "description": "d"}}))
    assert (read.number, read.path) == (0, ("plan",))


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
            inputs={"x": [1, {"y": None}]},
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
DOCUMENT = """\
{
  "schema_version": 2,
  "goal": "g",
  "status": "in_progress",
  "created_at": "2024",
  "completed_at": "2025",
  "owner": "kim",
  "can_modify": false,
  "steps": [
    {
      "step_id": "a",
      "description": "d",
      "type": "handler",
      "name": "n",
      "inputs": {
        "x": [
          1,
          {
            "y": null
          }
        ]
      },
      "outputs": [
        "o",
        "p"
      ],
      "depends_on": [
        "b"
      ],
      "expected_key": "k",
      "output_path": [
        "p",
        "q"
      ],
      "done_check": "True",
      "status": "failed",
      "completed_at": "2026",
      "skipped": true
    },
    {
      "step_id": "b",
      "description": "\\u00e9",
      "agent": "g",
      "outputs": []
    },
    {
      "step_id": "c",
      "description": "think"
    }
  ]
}
"""


def test_a_workflow_is_written_in_one_way() -> None:
    assert dump_workflow(FULL) == DOCUMENT
    assert made(json.loads(DOCUMENT)) == FULL


def test_an_empty_workflow_is_written_too() -> None:
    assert json.loads(dump_workflow(Workflow())) == {"schema_version": 2, "goal": "", "steps": []}


def test_the_older_form_and_version_1_are_the_same_workflow_as_version_2() -> None:
    older = {"step_id": 2, "description": "d", "tool": "t", "agent": None, "output_path": ["p"]}
    assert made([older]) == Workflow(
        steps=(WorkflowStep(step_id="2", description="d", type="tool", name="t", output_path=("p",)),)
    )
    assert made({"goal": "g", "steps": [{"step_id": 2, "description": "d", "agent": "x"}]}) == Workflow(
        goal="g", steps=(WorkflowStep(step_id="2", description="d", agent="x"),)
    )
    first = {"step_id": "a", "description": "d", "type": "tool", "name": "t", "inputs": {}, "depends_on": []}
    assert made([first]) == Workflow(
        steps=(WorkflowStep(step_id="a", description="d", type="tool", name="t"),)
    )


def test_mappings_and_tuples_within_inputs_are_written_as_json_has_them() -> None:
    step = WorkflowStep(
        step_id="a", description="d", inputs=MappingProxyType({"x": (1, MappingProxyType({"y": 2}))})
    )
    report = validate_workflow(dump_workflow(Workflow(steps=(step,))))
    assert report.parsed_plan == [{"step_id": "a", "description": "d", "inputs": {"x": [1, {"y": 2}]}}]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({1: 2}, "/steps/0/inputs: a field is named by a value of type int, not by a text"),
        ({"x": {1}}, "/steps/0/inputs/x: a value of type set is no value of JSON"),
        ({"x": float("inf")}, "/steps/0/inputs/x: inf is no value of JSON"),
        ({"a/b": ["\ud800"]}, "/steps/0/inputs/a~1b/0: half of a surrogate pair"),
    ],
)
def test_what_json_does_not_have_is_not_written(value: Any, told: str) -> None:
    with pytest.raises(ValueError) as caught:
        dump_workflow(Workflow(steps=(WorkflowStep(step_id="a", description="d", inputs=value),)))
    assert str(caught.value) == told
