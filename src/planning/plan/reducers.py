"""Reducers: the only code that builds a new plan. Pure functions of a slice and a command.

The plan slice holds one plan. Untouched steps are the same objects in the next plan. A command
that the plan cannot take leaves the slice as it was: handlers have refused it before, with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from types import MappingProxyType
from typing import Any, Final

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
    RenumberSteps,
    SetupPlan,
    UpdateStep,
)
from planning.plan.lifecycle import allows
from planning.plan.model import STEP_STATUSES, Plan, PlanStatus, PlanStep, index_of, require_text
from planning.plan.step_ids import format_id, highest_number
from planning.plan.text import DETAILS, NOTE, OBJECTIVE, STEP_ID, TITLE

Plans = tuple[Plan, ...]


def setup_plan(_plans: Plans, command: SetupPlan) -> Plans:
    """Replace whatever there is with an active plan whose steps count from S001."""
    return (Plan(command.objective, "active", _new_steps((), command.initial_steps)),)


def add_step(plans: Plans, command: AddStep) -> Plans:
    """Append pending steps; their ids continue from the highest number in the plan."""
    plan = _latest(plans, AddStep)
    if plan is None or not command.steps:
        return plans
    return (replace(plan, steps=plan.steps + _new_steps(plan.steps, command.steps)),)


def update_step(plans: Plans, command: UpdateStep) -> Plans:
    """Change the title, the details or both of one step; empty details become None."""
    plan = _latest(plans, UpdateStep)
    index = None if plan is None else index_of(plan.steps, command.step_id)
    if plan is None or index is None:
        return plans
    step = plan.steps[index]
    changed = replace(
        step,
        title=step.title if command.title is None else command.title,
        details=step.details if command.details is None else command.details or None,
    )
    if changed == step:
        return plans
    return (replace(plan, steps=_with_step(plan.steps, index, changed)),)


def mark_step(plans: Plans, command: MarkStep) -> Plans:
    """Set one step's status and append the note; the plan is completed once every step is done."""
    return _mark(plans, (command,))


def mark_steps(plans: Plans, command: MarkSteps) -> Plans:
    """Make several marks, all or none: what they would make one after the other."""
    return _mark(plans, command.marks, is_last=command.is_last)


def _mark(plans: Plans, marks: Sequence[MarkStep], *, is_last: bool = False) -> Plans:
    plan = _latest(plans, MarkStep)
    if plan is None or not (marks or is_last):
        return plans
    steps, is_same = list(plan.steps), True
    for mark in marks:
        index = index_of(steps, mark.step_id)
        if index is None or mark.status not in STEP_STATUSES:
            return plans
        old = steps[index]
        if mark.note is not None or old.status != mark.status:
            # ``replace`` takes three times as long. A test holds every other field to what it was.
            notes = old.notes if mark.note is None else (*old.notes, mark.note)
            steps[index] = PlanStep(old.step_id, old.title, old.details, mark.status, notes)
            is_same = False
    status: PlanStatus = "completed" if is_last or _all_done(steps) else "active"
    if is_same and status == plan.status:
        return plans
    return (Plan(plan.objective, status, tuple(steps)),)


def clear_plan(plans: Plans, _command: ClearPlan) -> Plans:
    """Abandon the plan: the objective stays, the steps go."""
    plan = _latest(plans, ClearPlan)
    return plans if plan is None else (replace(plan, status="abandoned", steps=()),)


def remove_step(plans: Plans, command: RemoveStep) -> Plans:
    """Remove one step; the plan is completed when steps are left and all of them are done."""
    plan, index = _found(plans, command.step_id)
    if plan is None or index is None:
        return plans
    steps = plan.steps[:index] + plan.steps[index + 1 :]
    completed = plan.status == "completed" or (bool(steps) and _all_done(steps))
    return (Plan(plan.objective, "completed" if completed and steps else "active", steps),)


def move_step(plans: Plans, command: MoveStep) -> Plans:
    """Move one step to another place, from 0; the last place where the index is higher."""
    plan, index = _found(plans, command.step_id)
    if plan is None or index is None:
        return plans
    steps = list(plan.steps)
    steps.insert(command.index, steps.pop(index))
    if steps[index] is plan.steps[index]:
        return plans
    return (replace(plan, steps=tuple(steps)),)


def renumber_steps(plans: Plans, command: RenumberSteps) -> Plans:
    """Give the last steps the ids from a number on."""
    plan = _latest(plans, AddStep)
    if plan is None:
        return plans
    start = len(plan.steps) - command.count
    if all(
        step.step_id == format_id(number) for number, step in enumerate(plan.steps[start:], command.first)
    ):
        return plans
    fresh = [
        replace(step, step_id=format_id(command.first + number))
        for number, step in enumerate(plan.steps[start:])
    ]
    return (replace(plan, steps=(*plan.steps[:start], *fresh)),)


REDUCERS: Final = MappingProxyType[type, Callable[[Plans, Any], Plans]]({
    SetupPlan: setup_plan,
    AddStep: add_step,
    UpdateStep: update_step,
    MarkStep: mark_step,
    MarkSteps: mark_steps,
    ClearPlan: clear_plan,
    RemoveStep: remove_step,
    MoveStep: move_step,
    RenumberSteps: renumber_steps,
})  # fmt: skip


def changes_nothing(command: Any, plan: Plan) -> bool:
    """Whether a command that a plan can take leaves it as it is."""
    kind = type(command)
    if kind is MarkStep:  # seen at one glance: models mark more than they do anything else
        index = None if command.note is not None else index_of(plan.steps, command.step_id)
        if index is None or plan.steps[index].status != command.status:
            return False
    reducer = REDUCERS.get(kind)
    return kind is ReadPlan or (reducer is not None and reducer((plan,), command)[-1] is plan)


def check_mark(mark: MarkStep) -> None:
    """Refuse what ``check_command`` refuses, of the command that models send most.

    Raises:
        ValueError: The id or the note is not text that a plan can contain.
    """
    step_id: object = mark.step_id
    if not isinstance(step_id, str):
        require_text(step_id, STEP_ID, "step_id")
    if mark.note is not None:
        require_text(mark.note, NOTE, "note")


def check_command(command: Any) -> None:
    """Refuse a command that would bring text into a plan which no plan holds; see ``Plan.check_slice``.

    A handler has refused more before. This is for what a program dispatches by itself.

    Raises:
        ValueError: It would.
    """
    match command:
        case MarkSteps(marks=marks):
            for index, mark in enumerate(marks):
                _check_id(mark.step_id)
                if mark.note is not None:
                    require_text(mark.note, NOTE, "marks[{}].note", index)
        case SetupPlan(objective=objective, initial_steps=steps):
            require_text(objective, OBJECTIVE, "objective")
            _check_steps(steps, "initial_steps")
        case AddStep(steps=steps) if steps:
            _check_steps(steps, "steps")
        case RemoveStep() | MoveStep():
            _check_target(command)
        case UpdateStep(step_id=step_id, title=title, details=details):
            _check_id(step_id)
            if title is not None:
                require_text(title, TITLE, "title")
            if details is not None and details != "":
                require_text(details, DETAILS, "details")


def _check_id(step_id: object) -> None:
    if not isinstance(step_id, str):
        require_text(step_id, STEP_ID, "step_id")


def _check_target(command: RemoveStep | MoveStep) -> None:
    _check_id(command.step_id)
    index: Any = getattr(command, "index", 0)
    if type(index) is not int or index < 0:
        raise ValueError("index: expected a whole number of at least 0")


def _check_steps(steps: object, place: str) -> None:
    if not isinstance(steps, (tuple, list)) or not all(isinstance(step, NewPlanStep) for step in steps):
        raise ValueError(f"{place}: expected a tuple of NewPlanStep")
    for index, step in enumerate(steps):
        require_text(step.title, TITLE, place + "[{}].title", index)
        if step.details is not None:
            require_text(step.details, DETAILS, place + "[{}].details", index)


def _found(plans: Plans, step_id: str) -> tuple[Plan | None, int | None]:
    """The plan, unless it is abandoned, and the index of a step of it."""
    plan = _latest(plans, MarkStep)
    return plan, None if plan is None else index_of(plan.steps, step_id)


def _latest(plans: Plans, command: type[Command]) -> Plan | None:
    plan = plans[-1] if plans else None
    return plan if allows(plan, command) else None


def _new_steps(steps: tuple[PlanStep, ...], added: Iterable[NewPlanStep]) -> tuple[PlanStep, ...]:
    taken = {step.step_id for step in steps}
    fresh = (
        step_id for number in count(highest_number(taken) + 1) if (step_id := format_id(number)) not in taken
    )
    return tuple(PlanStep(next(fresh), new.title, new.details, "pending") for new in added)


def _with_step(steps: tuple[PlanStep, ...], index: int, step: PlanStep) -> tuple[PlanStep, ...]:
    changed = list(steps)
    changed[index] = step
    return tuple(changed)


def _all_done(steps: Sequence[PlanStep]) -> bool:
    # From the end: work goes from the front, so what is left to do is found at once.
    for step in reversed(steps):  # noqa: SIM110 - a generator costs more than the one look it takes
        if step.status != "done":
            return False
    return True
