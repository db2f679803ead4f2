"""Handlers: a command and the plan in, the normalised command out, or a refusal with every problem.

They change nothing: reducers apply the commands that they accept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planning.errors import Problem, ToolValidationError, unknown_option
from planning.plan.commands import (
    AddStep,
    ClearPlan,
    Command,
    MarkStep,
    MarkSteps,
    MoveStep,
    NewPlanStep,
    ReadPlan,
    RemoveStep,
    SetupPlan,
    UpdateStep,
)
from planning.plan.model import (
    STEP_STATUSES,
    Plan,
    as_text,
    index_of,
    listed_ids,
    spelled_status,
    written_alike,
)
from planning.plan.reducers import allows, refusal
from planning.plan.text import ASCII, TextRule, TextRules

_NAMED = 3


def setup_plan(command: SetupPlan, plan: Plan | None, rules: TextRules = ASCII) -> SetupPlan:
    """Check an objective and its first steps; any plan may be replaced."""
    checks = _Checks(plan, SetupPlan)
    objective = checks.text("objective", command.objective, rules.objective)
    steps = checks.steps("initial_steps", command.initial_steps, rules)
    checks.refuse()
    return SetupPlan(objective, steps)


def add_step(command: AddStep, plan: Plan | None, rules: TextRules = ASCII) -> AddStep:
    """Check steps to append to an active plan."""
    checks = _Checks(plan, AddStep)
    steps = checks.steps("steps", command.steps, rules)
    checks.problems += _empty(command.steps)
    checks.refuse()
    return AddStep(steps)


def update_step(command: UpdateStep, plan: Plan | None, rules: TextRules = ASCII) -> UpdateStep:
    """Check a change of a step's title or details in an active plan; blank details are ``""``."""
    checks = _Checks(plan, UpdateStep)
    step_id = checks.step_id(command.step_id, rules)
    title = None if command.title is None else checks.text("title", command.title, rules.title)
    details = None if command.details is None else checks.text("details", command.details, rules.details)
    checks.problems += _unchanging(command.title, command.details)
    checks.refuse()
    return UpdateStep(step_id, title, details)


def mark_step(command: MarkStep, plan: Plan | None, rules: TextRules = ASCII) -> MarkStep:
    """Check a step's new status, and its note, in a plan that is not abandoned."""
    given: object = command.status
    if (  # it is normal already, as nearly always: asked in order, it would be 15 % of a mark
        plan is not None
        and type(command.step_id) is str
        and index_of(plan.steps, command.step_id) is not None
        and type(given) is str
        and given in STEP_STATUSES
        and (command.note is None or rules.note.judge(command.note)[0] is command.note)
        and allows(plan, MarkStep)
    ):
        return command
    checks = _Checks(plan, MarkStep)
    step_id = checks.step_id(command.step_id, rules)
    spelled = spelled_status(given)
    status = next((status for status in STEP_STATUSES if status is spelled), STEP_STATUSES[0])
    if status is not spelled:
        checks.problems.append(Problem(unknown_option(given, STEP_STATUSES), "status"))
    note = None if command.note is None else checks.text("note", command.note, rules.note)
    checks.refuse()
    return MarkStep(step_id, status, note)


def mark_steps(command: MarkSteps, plan: Plan | None, rules: TextRules = ASCII) -> MarkSteps:
    """Check several marks, each by itself."""
    problems: list[Problem] = []
    marks: list[MarkStep] = []
    for index, each in enumerate(command.marks):
        try:
            marks.append(mark_step(each, plan, rules))
        except ToolValidationError as refusal:
            problems += [problem.under(f"marks[{index}]") for problem in refusal.problems]
    if problems:
        raise ToolValidationError(problems)
    return MarkSteps(tuple(marks), command.is_last, command.is_report)


def mark(command: MarkStep | MarkSteps, plan: Plan | None, rules: TextRules = ASCII) -> MarkStep | MarkSteps:
    """Check one mark, or several."""
    if isinstance(command, MarkSteps):
        return mark_steps(command, plan, rules)
    return mark_step(command, plan, rules)


def remove_step(command: RemoveStep, plan: Plan | None, rules: TextRules = ASCII) -> RemoveStep:
    """Check which step is to go, in a plan that is not abandoned."""
    checks = _Checks(plan, MarkStep)
    step_id = checks.step_id(command.step_id, rules)
    checks.refuse()
    return RemoveStep(step_id)


def move_step(command: MoveStep, plan: Plan | None, rules: TextRules = ASCII) -> MoveStep:
    """Check which step is to move, and where to, in a plan that is not abandoned."""
    checks = _Checks(plan, MarkStep)
    step_id = checks.step_id(command.step_id, rules)
    last = 0 if plan is None else len(plan.steps) - 1
    if not checks.problems and not (type(command.index) is int and 0 <= command.index <= last):
        checks.problems.append(Problem(f"no such place; send 0 to {last}", "index"))
    checks.refuse()
    return MoveStep(step_id, command.index)


def clear_plan(command: ClearPlan, plan: Plan | None, _rules: TextRules = ASCII) -> ClearPlan:
    """Check that there is a plan to abandon."""
    _Checks(plan, ClearPlan).refuse()
    return command


def read_plan(command: ReadPlan, plan: Plan | None, _rules: TextRules = ASCII) -> ReadPlan:
    """Check that there is a plan to read."""
    _Checks(plan, ReadPlan).refuse()
    return command


def diagnose(
    command: type[Command], arguments: Mapping[str, Any], plan: Plan | None, rules: TextRules = ASCII
) -> list[Problem]:
    """The plan's problems with arguments that are too malformed to become a command."""
    checks = _Checks(plan, command)
    if isinstance(arguments.get("step_id"), str) and command in {UpdateStep, MarkStep}:
        checks.step_id(arguments["step_id"], rules)
    if command is AddStep:
        checks.problems += _empty(arguments.get("steps"))
    if command is UpdateStep:
        checks.problems += _unchanging(arguments.get("title"), arguments.get("details"))
    return checks.problems


class _Checks:
    """The problems of a command, collected while its parts are made normal."""

    def __init__(self, plan: Plan | None, command: type[Command]) -> None:
        reason = refusal(plan, command)
        self.problems = [] if reason is None else [Problem(reason)]
        self._plan = plan

    def refuse(self) -> None:
        if self.problems:
            raise ToolValidationError(self.problems)

    def text(self, path: str, value: object, rule: TextRule) -> str:
        """Text as the plan stores it; empty when it is blank or refused."""
        text, problems = rule.judge(value)
        self.problems += [Problem(problem, path) for problem in problems]
        return text or ""

    def steps(self, path: str, steps: object, rules: TextRules) -> tuple[NewPlanStep, ...]:
        if not isinstance(steps, (tuple, list)):
            wrong = f"expected a sequence of NewPlanStep, got {type(steps).__name__}"
            self.problems.append(Problem(wrong, path))
            return ()
        return tuple([self._step(f"{path}[{index}]", step, rules) for index, step in enumerate(steps)])

    def _step(self, place: str, step: object, rules: TextRules) -> NewPlanStep:
        if not isinstance(step, NewPlanStep):
            self.problems.append(Problem(f"expected a NewPlanStep, got {type(step).__name__}", place))
            return NewPlanStep("")
        title, details = self.text(f"{place}.title", step.title, rules.title), None
        if step.details is not None:
            details = self.text(f"{place}.details", step.details, rules.details) or None
        is_normal = title is step.title and details is step.details and type(step) is NewPlanStep
        return step if is_normal else NewPlanStep(title, details)

    def step_id(self, given: Any, rules: TextRules) -> str:
        """The id of the step that is meant, as the plan has it."""
        plan, already = self._plan, len(self.problems)
        step_id = self.text("step_id", as_text(given), rules.step_id)
        if len(self.problems) > already or plan is None or plan.status == "abandoned":
            return ""
        ids = [step.step_id for step in plan.steps]
        alike = written_alike(step_id, ids)
        if len(alike) == 1:
            return alike[0]
        if not ids:
            wrong = "the plan has no steps yet; add some with planning_add_step"
        elif alike:
            wrong = f"{step_id} may be {' or '.join(alike[:_NAMED])}; send one of these"
        else:
            steps = f"{'its steps are' if len(ids) > 1 else 'its only step is'} {listed_ids(ids)}"
            wrong = f"the plan has no step {step_id}; {steps}"
        self.problems.append(Problem(wrong, "step_id"))
        return ""


def _empty(steps: object) -> list[Problem]:
    return [Problem("empty; send at least one step", "steps")] if steps in ([], ()) else []


def _unchanging(title: object, details: object) -> list[Problem]:
    is_empty = title is None and details is None
    return [Problem("nothing to change; send a title or details")] if is_empty else []
