"""The session's Plan as the mirror of a run: set up and marked through the same commands as by anybody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from planning import handlers
from planning.commands import MarkStep, MarkSteps, NewPlanStep, SetupPlan
from planning.errors import ToolError
from planning.model import Plan, StepStatus
from planning.step_ids import format_id
from planning.suite import carry_out, register_plan
from planning.text import DETAILS, OBJECTIVE, OUTCOME, TITLE, fitted
from planning.workflow.model import Workflow, WorkflowStep
from session import Session
from session.transaction import Transaction

__all__ = ["Mark", "PlanMirror"]

Mark = tuple[str, StepStatus, str | None]
"""A workflow step's id, its status in the plan, and a note."""

_STOPPED = "the plan was replaced by someone else while the workflow ran; it shows the run no more"


class PlanMirror:
    """Keeps a session's Plan in step with a run: one step of the plan for each step of the workflow.

    It gives the same commands as an agent's tools, through the same handlers, within the transaction in
    which the step changes: that has an event of its own, so that a command has none.

    When somebody puts another plan in its place, the mirror leaves that alone and says so.
    """

    def __init__(self, session: Session, workflow: Workflow, user_prompt: str) -> None:
        """Take a workflow; nothing is changed yet."""
        register_plan(session)
        self._objective = (
            fitted(workflow.goal, OBJECTIVE) or fitted(user_prompt, OBJECTIVE) or "Run a workflow"
        )
        self._steps = tuple(map(_plan_step, workflow.steps))
        self._ids = {step.step_id: format_id(number) for number, step in enumerate(workflow.steps, start=1)}
        self._plan: Plan | None = None
        self.warning: str | None = None

    def begin(
        self, transaction: Transaction, marks: Mapping[str, tuple[StepStatus, str | None]] | None
    ) -> None:
        """Set the plan up, or go on with the one that an earlier part of the run left.

        Args:
            transaction: The session's, open.
            marks: By id of a workflow step, the status and the note of those that are not pending; None for
                a plan of its own, whatever there is.
        """
        plan = None if marks is None else transaction.latest(Plan)
        marks = marks or {}
        if plan is None or not self._is_own(plan):
            command = SetupPlan(self._objective, self._steps)
            _, self._plan = carry_out(transaction, "the workflow", handlers.setup_plan, command)
            plan = None
        else:
            self._plan = plan
        old = {} if plan is None else {step.step_id: step.status for step in plan.steps}
        found = ((step_id, *marks.get(step_id, ("pending", None))) for step_id in self._ids)
        self.mark(transaction, [mark for mark in found if old.get(self._ids[mark[0]], "pending") != mark[1]])

    def mark(self, transaction: Transaction, marks: Iterable[Mark]) -> None:
        """Set the statuses of steps, and say what came of them, as one change."""
        if self.warning is not None:
            return
        plan = transaction.latest(Plan)
        if plan is not self._plan and not (plan and self._is_own(plan)):
            self.warning = _STOPPED
            return
        ids = self._ids
        told = tuple(
            [
                MarkStep(ids[step_id], status, None if note is None else fitted(note, OUTCOME) or None)
                for step_id, status, note in marks
            ]
        )
        if not told:
            return
        try:
            _, self._plan = carry_out(transaction, "the workflow", handlers.mark_steps, MarkSteps(told))
        except ToolError:  # its reducers are another's
            self.warning = _STOPPED

    def _is_own(self, plan: Plan) -> bool:
        """Whether a plan is the mirror, whatever else was added to it or marked in it."""
        return (
            plan.status != "abandoned"
            and plan.objective == self._objective
            and len(plan.steps) >= len(self._steps)
            and all(
                step.title == new.title and step.details == new.details
                for step, new in zip(plan.steps, self._steps, strict=False)
            )
        )


def _plan_step(step: WorkflowStep) -> NewPlanStep:
    called = f", {step.type} {step.name}" if step.name else f", agent {step.agent}" if step.agent else ""
    title = fitted(step.description, TITLE) or fitted(step.step_id, TITLE) or "?"
    return NewPlanStep(title, fitted(f"step {step.step_id.strip() or '?'}{called}", DETAILS))
