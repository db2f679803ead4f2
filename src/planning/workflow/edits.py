"""Edits of a workflow: each returns a new one. A workflow whose ``can_modify`` is False cannot be edited."""

from __future__ import annotations

from dataclasses import replace

from planning.errors import show
from planning.workflow.failures import WorkflowError, WorkflowLocked
from planning.workflow.model import Workflow, WorkflowStep


def add_step(workflow: Workflow, step: WorkflowStep) -> Workflow:
    """The workflow with one more step at its end.

    Raises:
        WorkflowLocked: It may not be changed.
        WorkflowError: There is a step with this id, or none with an id that the step depends on.
    """
    _check_open(workflow)
    ids = {each.step_id for each in workflow.steps}
    if step.step_id in ids:
        raise WorkflowError(f"there is a step {show(step.step_id)} already; give the new one another id")
    return _change(workflow, (*workflow.steps, step))


def replace_step(workflow: Workflow, step: WorkflowStep) -> Workflow:
    """The workflow with a step in the place of the one with its id.

    Raises:
        WorkflowLocked: It may not be changed.
        WorkflowError: There is no such step, it is completed, or the new one depends on none of the others.
    """
    _check_open(workflow)
    place = _place(workflow, step.step_id)
    return _change(workflow, (*workflow.steps[:place], step, *workflow.steps[place + 1 :]))


def remove_step(workflow: Workflow, step_id: str) -> Workflow:
    """The workflow without a step.

    Raises:
        WorkflowLocked: It may not be changed.
        WorkflowError: There is no such step, it is completed, or another depends on it.
    """
    _check_open(workflow)
    place = _place(workflow, step_id)
    return _change(workflow, (*workflow.steps[:place], *workflow.steps[place + 1 :]))


def _check_open(workflow: Workflow) -> None:
    if not workflow.can_modify:
        raise WorkflowLocked("the workflow may not be changed: its can_modify is False; change a copy")


def _place(workflow: Workflow, step_id: str) -> int:
    """The index of a step, which must not be completed."""
    for place, step in enumerate(workflow.steps):
        if step.step_id == step_id:
            if step.status == "completed":
                raise WorkflowError(f"step {show(step_id)} is completed; add another step instead")
            return place
    listed = ", ".join(show(step.step_id)[1:-1] for step in workflow.steps[:8])
    raise WorkflowError(f"there is no step {show(step_id)}; the steps are {listed or 'none'}")


def _change(workflow: Workflow, steps: tuple[WorkflowStep, ...]) -> Workflow:
    ids = {step.step_id for step in steps}
    for step in steps:
        for other in step.depends_on:
            if other not in ids:
                message = f"step {show(step.step_id)} depends on {show(other)}, which would not exist"
                raise WorkflowError(f"{message}; change {show(step.step_id)} first")
            if other == step.step_id:
                raise WorkflowError(f"step {show(other)} depends on itself; remove that")
    return replace(workflow, steps=steps)
