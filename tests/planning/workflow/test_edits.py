"""Edits of workflows: new ones come out, and a locked one takes none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from run_cases import refusal
from syrupy.assertion import SnapshotAssertion

from planning.workflow import Workflow, WorkflowError, WorkflowLocked, WorkflowStep
from planning.workflow.edits import add_step, remove_step, replace_step

A = WorkflowStep(step_id="a", description="First")
B = WorkflowStep(step_id="b", description="Second", depends_on=("a",))
C = WorkflowStep(step_id="c", description="Third", depends_on=("b",))
AB = Workflow(goal="G", steps=(A, B))


def test_steps_are_added_at_the_end_replaced_where_they_stand_and_removed() -> None:
    changed = replace(A, description="Changed")
    assert add_step(AB, C) == Workflow(goal="G", steps=(A, B, C))
    assert replace_step(AB, changed) == Workflow(goal="G", steps=(changed, B))
    assert remove_step(AB, "b") == Workflow(goal="G", steps=(A,))


@pytest.mark.parametrize(
    "edit", [lambda w: add_step(w, C), lambda w: replace_step(w, A), lambda w: remove_step(w, "b")]
)
def test_a_locked_workflow_refuses_every_edit(edit: Callable[[Workflow], Workflow]) -> None:
    locked = replace(AB, can_modify=False)
    message = "the workflow may not be changed: its can_modify is False; change a copy"
    assert refusal(WorkflowLocked, edit, locked) == message


BREAKING: list[Callable[[Workflow], Workflow]] = [
    lambda w: add_step(w, A),
    lambda w: remove_step(w, "z"),
    lambda w: replace_step(Workflow(), A),
    lambda w: remove_step(w, "a"),
    lambda w: add_step(w, replace(C, depends_on=("x",))),
    lambda w: replace_step(w, replace(A, depends_on=("a",))),
    lambda w: replace_step(replace(w, steps=(replace(A, status="completed"), B)), A),
]


def test_an_edit_that_would_break_the_workflow_is_refused(snapshot: SnapshotAssertion) -> None:
    assert "".join(f"{refusal(WorkflowError, edit, AB)}\n" for edit in BREAKING) == snapshot
