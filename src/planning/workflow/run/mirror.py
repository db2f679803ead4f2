"""The session's Plan as a mirror of a run: one plan step for each step of the workflow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

from planning.plan.commands import NewPlanStep, SetupPlan
from planning.plan.model import Plan, StepStatus, format_id
from planning.plan.text import ALPHABETS, TextRules, fitted
from planning.suite.kept import rules_of
from planning.suite.mirror import FOREIGN, PlanMirror, shows
from planning.workflow.model import Workflow, WorkflowStep
from planning.workflow.run.records import WorkflowRun
from session import Session
from session.transaction import Transaction

StepMark = tuple[str, StepStatus, str | None]
"""A workflow step's id, its status in the plan, and a note."""

_NAMELESS = "Run a workflow"
_PENDING: tuple[StepStatus, str | None] = ("pending", None)
_UNSPELLED = "the plan allows only ASCII text; it shows step ids in place of other text"


class RunMirror:
    """Shows a run in its session's Plan, and collects warnings about what the plan does not show.

    It follows the policy of the session in this process: without ``text="unicode"``, text that ASCII cannot
    spell is not shown, and the plan shows the step's id instead.
    """

    def __init__(self, session: Session, workflow: Workflow, user_prompt: str | None) -> None:
        self._rules = rules = rules_of(session)
        setup = _setup_of(workflow, user_prompt, rules)
        self._mirror = PlanMirror(session, "the workflow", setup)
        self._places = {step.step_id: index for index, step in enumerate(workflow.steps)}
        texts = [(workflow.goal.strip() or user_prompt or "", rules.objective)]
        texts += [
            (step.description, rules.title)
            for step, shown in zip(workflow.steps, setup.initial_steps, strict=True)
            if step.description != shown.title
        ]
        self._is_spelled = all(not text.strip() or fitted(text, rule) for text, rule in texts)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The part of the run that the plan does not show, and why."""
        if self._mirror.problem is not None:
            return (self._mirror.problem,)
        return () if self._is_spelled else (_UNSPELLED,)

    def begin(
        self,
        transaction: Transaction,
        marks: Mapping[str, tuple[StepStatus, str | None]],
        runs: Iterable[WorkflowRun],
        run_id: str,
    ) -> None:
        """Set the plan up, or keep the one that an earlier part of the run left."""

        def shown(plan: Plan, *, is_live: bool) -> bool:
            return any(
                shows(plan, _setup_of(run.workflow, run.user_prompt, self._rules))
                for run in runs
                if (bool(run.token) and run.run_id != run_id) is is_live
            )

        is_new = all(run.run_id != run_id for run in runs)
        plan = transaction.latest(Plan)
        if plan is not None and plan.status == "active" and shown(plan, is_live=True):
            self._mirror.problem = FOREIGN
        elif self._mirror.begin(transaction, partial(shown, is_live=False), is_new=is_new):
            steps = () if self._mirror.plan is None else self._mirror.plan.steps
            wanted = (marks.get(step_id, _PENDING) for step_id in self._places)
            each = zip(self._places, wanted, steps, strict=False)
            self.mark(
                transaction, [(step_id, *mark) for step_id, mark, step in each if step.status != mark[0]]
            )

    def mark(self, transaction: Transaction, marks: Iterable[StepMark]) -> None:
        """Set the statuses of steps, with notes on their outcomes, as one change."""
        if self._mirror.problem is not None:
            return
        fits = [
            (self._places[step_id], status, None if note is None else self._fit(status, note))
            for step_id, status, note in marks
        ]
        self._mirror.mark(transaction, fits)

    def finish(self, transaction: Transaction) -> None:
        """Complete the plan of a run that is completed; open steps that others added keep it active."""
        self._mirror.finish(transaction)

    def _fit(self, status: StepStatus, note: str) -> str | None:
        fits = fitted(note, self._rules.outcome)
        if fits or not note.strip():
            return fits or None
        self._is_spelled = False
        return "Done" if status == "done" else fitted(note.partition(":")[0], self._rules.outcome) or None


def own_ids(plan: Plan | None, run: WorkflowRun | None) -> Mapping[str, str]:
    """The ids that a workflow has for the steps of the plan that shows its run, by their ids in the plan."""
    if plan is None or run is None:
        return {}
    setups = (_setup_of(run.workflow, run.user_prompt, rules) for rules in ALPHABETS)
    if not any(shows(plan, setup) for setup in setups):
        return {}
    both = zip(plan.steps, run.workflow.steps, strict=False)
    return {step.step_id: own.step_id for step, own in both}


def _setup_of(workflow: Workflow, prompt: str | None, rules: TextRules) -> SetupPlan:
    """The plan that shows a workflow."""
    objective = fitted(workflow.goal, rules.objective) or fitted(prompt or "", rules.objective) or _NAMELESS
    steps = workflow.steps
    ids = [fitted(step.step_id, rules.details) for step in steps]
    shown = [each or format_id(number) for number, each in enumerate(ids, start=1)]
    titles = [fitted(step.description, rules.title) for step in steps]
    details = [
        fitted(f"step {each}{_name_call(step)}", rules.details)
        for each, step in zip(shown, steps, strict=True)
    ]
    made = [
        NewPlanStep(title or fitted(each, rules.title), detail or fitted(f"step {each}", rules.details))
        for each, title, detail in zip(shown, titles, details, strict=True)
    ]
    return SetupPlan(objective, tuple(made))


def _name_call(step: WorkflowStep) -> str:
    return f", {step.type} {step.name}" if step.name else f", agent {step.agent}" if step.agent else ""
