"""The session's Plan as the mirror of a run: set up and marked through the same commands as by anybody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from planning import handlers
from planning.commands import MarkStep, MarkSteps, NewPlanStep, SetupPlan
from planning.errors import ToolError, show
from planning.model import Plan, StepStatus
from planning.step_ids import format_id
from planning.suite import carry_out, register_plan
from planning.text import DETAILS, OBJECTIVE, OUTCOME, TITLE, fitted
from planning.workflow.model import Workflow, WorkflowStep
from planning.workflow.run.records import WorkflowRun
from session import Session
from session.transaction import Transaction

__all__ = ["Mark", "PlanMirror", "id_in_plan"]

Mark = tuple[str, StepStatus, str | None]
"""A workflow step's id, its status in the plan, and a note."""

_NAMELESS = "Run a workflow"
_LISTED = 8
_FOREIGN = "the session has another active plan, which is left alone; the plan does not show this run"
_STOPPED = "the plan was replaced by someone else while the workflow ran; it shows the run no more"


class PlanMirror:
    """Keeps a session's Plan in step with a run: one step of the plan for each step of the workflow.

    It gives the same commands as an agent's tools, through the same handlers, within the transaction in
    which the step changes: that has an event of its own, so that a command has none.

    An active plan that is not the engine's is left alone, whether it is there first or comes later; then
    ``warnings`` says so. A text that ASCII cannot spell is not shown, and they say that too.
    """

    def __init__(self, session: Session, workflow: Workflow, user_prompt: str) -> None:
        """Take a workflow; nothing is changed yet."""
        register_plan(session)
        self._workflow = workflow
        self._prompt = user_prompt
        self._ids = {step.step_id: format_id(number) for number, step in enumerate(workflow.steps, start=1)}
        self._plan: Plan | None = None
        self._problem: str | None = None
        self._unspelled: dict[str, None] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the plan does not show of the run, and why."""
        names = list(self._unspelled)
        if not names:
            return () if self._problem is None else (self._problem,)
        listed = ", ".join(names[:_LISTED])
        if len(names) > _LISTED:
            listed += f" and {len(names) - _LISTED} more"
        told = f"the plan takes only ASCII text, so it does not show {listed}; it shows step ids instead"
        return (told,) if self._problem is None else (self._problem, told)

    def begin(
        self,
        transaction: Transaction,
        marks: Mapping[str, tuple[StepStatus, str | None]],
        ended: Iterable[WorkflowRun] = (),
        live: Iterable[WorkflowRun] = (),
        *,
        is_new: bool,
    ) -> None:
        """Set the plan up, or go on with the one that an earlier part of the run left.

        Args:
            transaction: The session's, open.
            marks: By id of a workflow step, the status and the note of those that are not pending.
            ended: The session's runs that are over or stopped: the plan of one of these may be replaced.
            live: Its other runs that are going on: the plan of one of these is left alone.
            is_new: Whether the run begins now.
        """
        plan = transaction.latest(Plan)
        is_own = plan is not None and _mirrors(plan, self._workflow, self._prompt)
        if plan is not None and plan.status == "active":
            is_ours = is_own or any(_mirrors(plan, run.workflow, run.user_prompt) for run in ended)
            if not is_ours or any(_mirrors(plan, run.workflow, run.user_prompt) for run in live):
                self._problem = _FOREIGN
                return
        self._note_unspelled()
        if plan is None or is_new or not is_own:
            _, self._plan = carry_out(
                transaction, "the workflow", handlers.setup_plan, _setup_of(self._workflow, self._prompt)
            )
            plan = None
        else:
            self._plan = plan
        old = {} if plan is None else {step.step_id: step.status for step in plan.steps}
        found = ((step_id, *marks.get(step_id, ("pending", None))) for step_id in self._ids)
        self.mark(transaction, [mark for mark in found if old.get(self._ids[mark[0]], "pending") != mark[1]])

    def mark(self, transaction: Transaction, marks: Iterable[Mark]) -> None:
        """Set the statuses of steps, and say what came of them, as one change."""
        if not self._is_shown(transaction):
            return
        ids = self._ids
        told = tuple(
            [
                MarkStep(ids[step_id], status, None if note is None else self._fitted(step_id, status, note))
                for step_id, status, note in marks
            ]
        )
        if told:
            self._carry_out(transaction, MarkSteps(told))

    def finish(self, transaction: Transaction) -> None:
        """End the plan of a run that is completed; steps that others added to it may keep it open."""
        if not self._is_shown(transaction) or self._plan is None or self._plan.status != "active":
            return
        if all(step.status == "done" for step in self._plan.steps[len(self._ids) :]):
            self._carry_out(transaction, MarkSteps((), is_last=True))

    def _is_shown(self, transaction: Transaction) -> bool:
        """Whether the plan shows the run; what others added to it or marked in it stays."""
        if self._problem is not None:
            return False
        plan = transaction.latest(Plan)
        if plan is not self._plan:
            if plan is None or not _mirrors(plan, self._workflow, self._prompt):
                self._problem = _STOPPED
                return False
            self._plan = plan
        return True

    def _carry_out(self, transaction: Transaction, command: MarkSteps) -> None:
        try:
            _, self._plan = carry_out(transaction, "the workflow", handlers.mark_steps, command)
        except ToolError:  # its reducers are another's
            self._problem = _STOPPED

    def _fitted(self, step_id: str, status: StepStatus, note: str) -> str | None:
        found = fitted(note, OUTCOME)
        if found or not note.strip():
            return found or None
        self._unspelled[f"the outcome of step {show(step_id)}"] = None
        return "Done" if status == "done" else fitted(note.partition(":")[0], OUTCOME) or None

    def _note_unspelled(self) -> None:
        goal = self._workflow.goal
        name, text = ("goal", goal) if goal.strip() else ("prompt", self._prompt)
        if text.strip() and not fitted(text, OBJECTIVE):
            self._unspelled[f"the {name}"] = None
        for step in self._workflow.steps:
            if step.description.strip() and not fitted(step.description, TITLE):
                self._unspelled[f"the description of step {show(step.step_id)}"] = None


def id_in_plan(step_id: str, number_id: str) -> str:
    """A workflow step's id as the plan shows it; the plan's own id where ASCII cannot spell it."""
    return fitted(step_id, DETAILS) or number_id


def _mirrors(plan: Plan, workflow: Workflow, prompt: str) -> bool:
    """Whether a plan is the mirror of a workflow, whatever else was added to it or marked in it."""
    return (
        plan.status != "abandoned"
        and len(plan.steps) >= len(workflow.steps)
        and plan.objective == _objective(workflow, prompt)
        and all(
            (step.title, step.details) == (new.title, new.details)
            for step, new in zip(plan.steps, _plan_steps(workflow), strict=False)
        )
    )


def _setup_of(workflow: Workflow, prompt: str) -> SetupPlan:
    return SetupPlan(_objective(workflow, prompt), tuple(_plan_steps(workflow)))


def _objective(workflow: Workflow, prompt: str) -> str:
    return fitted(workflow.goal, OBJECTIVE) or fitted(prompt, OBJECTIVE) or _NAMELESS


def _plan_steps(workflow: Workflow) -> Iterable[NewPlanStep]:
    return (_plan_step(step, format_id(number)) for number, step in enumerate(workflow.steps, start=1))


def _plan_step(step: WorkflowStep, number_id: str) -> NewPlanStep:
    called = f", {step.type} {step.name}" if step.name else f", agent {step.agent}" if step.agent else ""
    shown = id_in_plan(step.step_id, number_id)
    title = fitted(step.description, TITLE) or fitted(shown, TITLE)
    details = fitted(f"step {shown}{called}", DETAILS) or fitted(f"step {shown}", DETAILS)
    return NewPlanStep(title, details)
