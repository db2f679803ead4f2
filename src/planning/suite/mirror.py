"""The mirror: a session's Plan that shows work whose state is kept elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from planning.errors import ToolError
from planning.plan.commands import MarkStep, MarkSteps, SetupPlan
from planning.plan.model import Plan, StepStatus
from planning.suite.tools import carry_out, register_plan
from session import Session
from session.transaction import Transaction

FOREIGN = "the session has another active plan, which does not show this run"
_STOPPED = "other code replaced the plan while the workflow ran; it no longer shows this run"
_REFUSED = "the session refused a change of the plan, which no longer shows this run: {}"

Mark = tuple[int, StepStatus, str | None]
"""A step of a mirrored plan by its index, its new status, and a note."""


class PlanMirror:
    """A session's Plan that shows work whose state is kept elsewhere: a workflow's run, an agent's graph.

    It sends the same commands as an agent's tools. Their text must be normal, as ``fitted`` leaves it: no
    handler makes it so. An active plan that shows something else, from the start or later, is not
    changed.

    Attributes:
        plan: The plan as the mirror last saw it; None before ``begin``.
        problem: Why the plan shows the work no longer; None while it does.
    """

    def __init__(self, session: Session, name: str, setup: SetupPlan) -> None:
        """Register the plan with a session; the plan does not change yet."""
        register_plan(session)
        self.plan: Plan | None = None
        self.problem: str | None = None
        self._ids: list[str] = []
        self._name = name
        self._setup = setup

    def begin(self, transaction: Transaction, may_replace: Callable[[Plan], bool], *, is_new: bool) -> bool:
        """Set the plan up, or keep the one that shows the same work already.

        Raises:
            ToolError: The session's reducers did not take the plan.
        """
        plan = transaction.latest(Plan)
        is_shown = plan is not None and shows(plan, self._setup)
        if plan is not None and plan.status == "active" and not is_shown and not may_replace(plan):
            self.problem = FOREIGN
            return False
        self.problem = None
        if plan is None or is_new or not is_shown:
            plan = carry_out(transaction, self._name, self._setup, plan)
        self._take(plan)
        return True

    def mark(self, transaction: Transaction, marks: Iterable[Mark]) -> bool:
        """Mark steps, as one change."""
        plan = self._latest(transaction)
        if plan is None:
            return False
        commands = [MarkStep(self._ids[index], status, note) for index, status, note in marks]
        return not commands or self._carry_out(transaction, MarkSteps(tuple(commands), is_report=True))

    def finish(self, transaction: Transaction) -> bool:
        """Complete the plan, unless steps that others added are open."""
        plan = self._latest(transaction)
        if plan is None:
            return False
        added = plan.steps[len(self._setup.initial_steps) :]
        if plan.status != "active" or any(step.status != "done" for step in added):
            return True
        return self._carry_out(transaction, MarkSteps((), is_last=True))

    def _latest(self, transaction: Transaction) -> Plan | None:
        """The plan, with what others added or marked; None if it shows the work no longer."""
        plan = transaction.latest(Plan)
        if self.problem is None and plan is not self.plan:
            if plan is None or not shows(plan, self._setup):
                self.problem = _STOPPED
            else:
                self._take(plan)
        return plan if self.problem is None else None

    def _take(self, plan: Plan) -> None:
        self.plan = plan
        self._ids = [step.step_id for step in plan.steps]

    def _carry_out(self, transaction: Transaction, command: MarkSteps) -> bool:
        try:
            self.plan = carry_out(transaction, self._name, command, self.plan)
        except ToolError as error:  # a guard or the reducers of other code
            self.problem = _REFUSED.format(error.message)
            return False
        return True


def shows(plan: Plan, setup: SetupPlan) -> bool:
    """True if a plan is what a setup made, with whatever was added to it or marked in it since."""
    return (
        plan.status != "abandoned"
        and plan.objective == setup.objective
        and len(plan.steps) >= len(setup.initial_steps)
        and all(
            step.title == new.title and step.details == new.details
            for step, new in zip(plan.steps, setup.initial_steps, strict=False)
        )
    )
