"""What was done before a run begins or resumes: completed steps, and steps that must not run again."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from planning.errors import show
from planning.workflow.failures import StepError, WorkflowError
from planning.workflow.model import Workflow, WorkflowStep
from planning.workflow.run.known import Known
from planning.workflow.run.records import StepRecord

__all__ = ["MAYBE", "Earlier", "said_by", "taken_over"]

MAYBE = StepError(
    "it was stopped while it ran and may have taken effect, so it is not run again; look whether it did, "
    "and go on without it",
    code="interrupted",
)


@attrs.frozen
class Earlier:
    """What was done before.

    Attributes:
        done: By step id, the records of completed steps.
        lost: By step id, the records of steps that did not complete and must not run again.
    """

    done: Mapping[str, StepRecord]
    lost: Mapping[str, StepRecord]


def said_by(given: Workflow, run_id: str, known: Known) -> dict[str, StepRecord]:
    """The steps that must not run again by the statuses in a workflow, where the session has no run of it.

    Raises:
        WorkflowError: Such a step is completed: its output is not known here.
    """
    said: dict[str, StepRecord] = {}
    for step in given.steps:
        tool = None if step.status == "pending" else known.tool_of(step)
        if tool is None or tool.idempotent:
            continue
        if step.status == "completed":
            raise WorkflowError(
                f"step {show(step.step_id)} is already completed, {tool.name} must not be called twice, and "
                "this session does not hold that run; resume it in its own session or snapshot, or set the "
                "status of the step to 'pending' to call it again"
            )
        said[step.step_id] = StepRecord(
            run_id=run_id, step_id=step.step_id, status=step.status, at="", called=True, error=MAYBE
        )
    return said


def taken_over(steps: Mapping[str, WorkflowStep], states: Mapping[str, StepRecord], known: Known) -> Earlier:
    """Find out what is done already, and what must not run again; the outputs of the former become known.

    Args:
        steps: The steps by id.
        states: The newest record of each.
        known: Where outputs are kept.
    """
    done: dict[str, StepRecord] = {}
    lost: dict[str, StepRecord] = {}
    withheld: dict[str, tuple[WorkflowStep, str]] = {}
    for step_id, step in steps.items():
        record = states.get(step_id)
        if record is None:
            continue
        if record.status == "completed":
            done[step_id] = record
            if record.is_withheld:
                withheld[step_id] = (step, record.at)
            else:
                known.keep(step, record.output)
        elif record.status in {"failed", "in_progress"} and record.called:
            tool = known.tool_of(step)
            if tool is not None and not tool.idempotent:
                lost[step_id] = record
    if withheld:
        known.remember_all(withheld)
    return Earlier(done, lost)
