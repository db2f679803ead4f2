"""The result of a run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

import attrs

from planning.tools.result import plain
from planning.workflow.failures import StepError
from planning.workflow.model import Workflow
from planning.workflow.run.records import StepRecord, WorkflowRun, workflow_of
from planning.workflow.wire.build import document_of
from session import Session


@attrs.frozen(kw_only=True, eq=False)
class WorkflowResult:
    """The result of a run.

    Attributes:
        status: ``completed``, or ``failed`` when a step failed whose failure the workflow does not tolerate,
            or when not every step could be run.
        outputs: The output of each completed step, by step id; that of a thinking step is its description.
        memory: The newest value under each key.
        errors: Why steps failed, by step id, also where the workflow tolerates the failure.
        warnings: Problems that did not stop the run.
        session: Where the state is: its snapshot continues the run.
    """

    status: Literal["completed", "failed"]
    outputs: Mapping[str, Any] = attrs.field(repr=False)
    memory: Mapping[str, Any] = attrs.field(repr=False)
    errors: Mapping[str, StepError]
    warnings: tuple[str, ...] = ()
    session: Session = attrs.field(repr=False)
    _run: WorkflowRun = attrs.field(repr=False)
    _states: Mapping[str, StepRecord] = attrs.field(repr=False)

    @cached_property
    def workflow(self) -> Workflow:
        """The workflow with the statuses and times of its steps."""
        return workflow_of(self._run, self._states)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain dictionaries and lists, ready for JSON."""
        errors = {
            step_id: {"message": error.message, "user_message": error.user_message, "code": error.code}
            for step_id, error in self.errors.items()
        }
        return {
            "status": self.status,
            "workflow": plain(document_of(self.workflow)),
            "outputs": {step_id: plain(output) for step_id, output in self.outputs.items()},
            "memory": {key: plain(value) for key, value in self.memory.items()},
            "errors": errors,
            "warnings": list(self.warnings),
        }
