"""Handlers: a command and the plan in, the normalised command out, or a refusal with every problem.

They change nothing: reducers carry out the commands that they accept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from planning.plan.lifecycle import allows, refusal
from planning.plan.model import STEP_STATUSES, Plan, StepStatus, index_of, plain_status
from planning.plan.step_ids import as_text, listed_ids, written_alike
from planning.plan.text import ASCII, TextRule, TextRules

_NAMED = 3


def setup_plan(command: SetupPlan, plan: Plan | None, rules: TextRules = ASCII) -> SetupPlan:
    """Check an objective and its first steps; any plan may be replaced.

    Raises:
        ToolValidationError: A text breaks its rule.
    """
    problems = _lifecycle(plan, type(command))
    problems += _text("objective", command.objective, rules.objective)
    problems += _steps("initial_steps", command.initial_steps, rules)
    _refuse(problems)
    return SetupPlan(_clean(rules.objective, command.objective), _clean_steps(command.initial_steps, rules))


def add_step(command: AddStep, plan: Plan | None, rules: TextRules = ASCII) -> AddStep:
    """Check steps to append to an active plan.

    Raises:
        ToolValidationError: No active plan, no steps, or text that breaks its rule.
    """
    problems = _lifecycle(plan, type(command))
    problems += _steps("steps", command.steps, rules) or _empty(command.steps)
    _refuse(problems)
    return AddStep(_clean_steps(command.steps, rules))


def update_step(command: UpdateStep, plan: Plan | None, rules: TextRules = ASCII) -> UpdateStep:
    """Check a change of a step's title or details in an active plan; blank details are ``""``.

    Raises:
        ToolValidationError: No active plan, no such step, nothing to change, or text that breaks its
            rule.
    """
    step_id, wrong = _step_id(command.step_id, plan, rules)
    problems = _lifecycle(plan, type(command)) + wrong
    problems += [] if command.title is None else _text("title", command.title, rules.title)
    problems += [] if command.details is None else _text("details", command.details, rules.details)
    problems += _unchanging(command.title, command.details)
    _refuse(problems)
    title = None if command.title is None else rules.title.clean(command.title)
    details = None if command.details is None else rules.details.clean(command.details) or ""
    return UpdateStep(step_id, title, details)


def mark_step(command: MarkStep, plan: Plan | None, rules: TextRules = ASCII) -> MarkStep:
    """Check a step's new status, and its note, in a plan that is not abandoned.

    Raises:
        ToolValidationError: No such plan or step, an unknown status, or the note breaks its rule.
    """
    given: object = command.status
    if (  # it fits the plan and is normal already: what models send nearly always
        plan is not None
        and type(command.step_id) is str
        and index_of(plan.steps, command.step_id) is not None
        and type(given) is str
        and given in STEP_STATUSES
        and (command.note is None or rules.note.keeps(command.note))
        and allows(plan, MarkStep)
    ):
        return command
    step_id, wrong = _step_id(command.step_id, plan, rules)
    problems = _lifecycle(plan, type(command)) + wrong
    status = _status(command.status)
    if status is None:
        problems.append(Problem(unknown_option(command.status, STEP_STATUSES), "status"))
    problems += [] if command.note is None else _text("note", command.note, rules.note)
    _refuse(problems)
    assert status is not None  # noqa: S101 - refused a line ago; for the type checker
    note = None if command.note is None else _clean(rules.note, command.note)
    return MarkStep(step_id, status, note)


def mark_steps(command: MarkSteps, plan: Plan | None, rules: TextRules = ASCII) -> MarkSteps:
    """Check several marks, each by itself.

    Raises:
        ToolValidationError: One or more are refused, each with its place.
    """
    problems: list[Problem] = []
    marks: list[MarkStep] = []
    for index, each in enumerate(command.marks):
        try:
            marks.append(mark_step(each, plan, rules))
        except ToolValidationError as refusal:
            problems += [problem.under(f"marks[{index}]") for problem in refusal.problems]
    _refuse(problems)
    return MarkSteps(tuple(marks), command.is_last, command.is_report)


def mark(command: MarkStep | MarkSteps, plan: Plan | None, rules: TextRules = ASCII) -> MarkStep | MarkSteps:
    """Check one mark, or several.

    Raises:
        ToolValidationError: One is refused.
    """
    if isinstance(command, MarkSteps):
        return mark_steps(command, plan, rules)
    return mark_step(command, plan, rules)


def remove_step(command: RemoveStep, plan: Plan | None, rules: TextRules = ASCII) -> RemoveStep:
    """Check which step is to go, in a plan that is not abandoned.

    Raises:
        ToolValidationError: No such plan or step.
    """
    step_id, wrong = _step_id(command.step_id, plan, rules)
    _refuse(_lifecycle(plan, MarkStep) + wrong)
    return RemoveStep(step_id)


def move_step(command: MoveStep, plan: Plan | None, rules: TextRules = ASCII) -> MoveStep:
    """Check which step is to move, and where to, in a plan that is not abandoned.

    Raises:
        ToolValidationError: No such plan, step or place.
    """
    step_id, wrong = _step_id(command.step_id, plan, rules)
    problems = _lifecycle(plan, MarkStep) + wrong
    last = 0 if plan is None else len(plan.steps) - 1
    if not problems and not (type(command.index) is int and 0 <= command.index <= last):
        problems.append(Problem(f"no such place; send 0 to {last}", "index"))
    _refuse(problems)
    return MoveStep(step_id, command.index)


def clear_plan(command: ClearPlan, plan: Plan | None, _rules: TextRules = ASCII) -> ClearPlan:
    """Check that there is a plan to abandon.

    Raises:
        ToolValidationError: No plan, or one that is abandoned already.
    """
    _refuse(_lifecycle(plan, type(command)))
    return command


def read_plan(command: ReadPlan, plan: Plan | None, _rules: TextRules = ASCII) -> ReadPlan:
    """Check that there is a plan to read.

    Raises:
        ToolValidationError: No plan.
    """
    _refuse(_lifecycle(plan, type(command)))
    return command


def diagnose(
    command: type[Command], arguments: Mapping[str, Any], plan: Plan | None, rules: TextRules = ASCII
) -> list[Problem]:
    """The plan's problems with arguments that are too malformed to become a command."""
    reason = refusal(plan, command)
    problems = [] if reason is None else [Problem(reason)]
    if isinstance(arguments.get("step_id"), str) and command in {UpdateStep, MarkStep}:
        problems += _step_id(arguments["step_id"], plan, rules)[1]
    if command is AddStep:
        problems += _empty(arguments.get("steps"))
    if command is UpdateStep:
        problems += _unchanging(arguments.get("title"), arguments.get("details"))
    return problems


def _refuse(problems: Sequence[Problem]) -> None:
    if problems:
        raise ToolValidationError(problems)


def _lifecycle(plan: Plan | None, command: type[Command]) -> list[Problem]:
    reason = refusal(plan, command)
    return [] if reason is None else [Problem(reason)]


def _text(path: str, value: object, rule: TextRule) -> list[Problem]:
    return [] if rule.keeps(value) else [Problem(message, path) for message in rule.problems(value)]


def _step_id(given: Any, plan: Plan | None, rules: TextRules) -> tuple[str, list[Problem]]:
    """The id of the step that is meant, as the plan has it, or what is wrong with the one that was given."""
    given = as_text(given)
    problems = _text("step_id", given, rules.step_id)
    if problems or plan is None or plan.status == "abandoned":
        return "", problems
    if not plan.steps:
        return "", [Problem("the plan has no steps yet; add some with planning_add_step", "step_id")]
    step_id = _clean(rules.step_id, given)
    known = [step.step_id for step in plan.steps]
    alike = written_alike(step_id, known)
    if len(alike) == 1:
        return alike[0], []
    if alike:
        return "", [Problem(f"{step_id} may be {' or '.join(alike[:_NAMED])}; send one of these", "step_id")]
    steps = f"{'its steps are' if len(known) > 1 else 'its only step is'} {listed_ids(known)}"
    return "", [Problem(f"the plan has no step {step_id}; {steps}", "step_id")]


def _steps(path: str, steps: object, rules: TextRules) -> list[Problem]:
    if not isinstance(steps, (tuple, list)):
        return [Problem(f"expected a sequence of NewPlanStep, got {type(steps).__name__}", path)]
    problems = []
    for index, step in enumerate(steps):
        place = f"{path}[{index}]"
        if isinstance(step, NewPlanStep):
            problems += _text(f"{place}.title", step.title, rules.title)
            problems += [] if step.details is None else _text(f"{place}.details", step.details, rules.details)
        else:
            problems.append(Problem(f"expected a NewPlanStep, got {type(step).__name__}", place))
    return problems


def _empty(steps: object) -> list[Problem]:
    return [Problem("empty; send at least one step", "steps")] if steps in ([], ()) else []


def _unchanging(title: object, details: object) -> list[Problem]:
    is_empty = title is None and details is None
    return [Problem("nothing to change; send a title or details")] if is_empty else []


def _status(value: object) -> StepStatus | None:
    """The status that a value spells, also when it is a member of a string enum."""
    plain = plain_status(value)
    return next((status for status in STEP_STATUSES if status is plain), None)


def _clean(rule: TextRule, value: str) -> str:
    text = rule.clean(value)
    assert text is not None  # noqa: S101 - blank text was refused before; for the type checker
    return text


def _clean_steps(steps: Sequence[NewPlanStep], rules: TextRules) -> tuple[NewPlanStep, ...]:
    return tuple([_clean_step(step, rules) for step in steps])


def _clean_step(step: NewPlanStep, rules: TextRules) -> NewPlanStep:
    title = _clean(rules.title, step.title)
    details = None if step.details is None else rules.details.clean(step.details)
    is_clean = title is step.title and details is step.details and type(step) is NewPlanStep
    return step if is_clean else NewPlanStep(title, details)
