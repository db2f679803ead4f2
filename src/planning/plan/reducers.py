"""The lifecycle of a plan, and its reducers: the only code that builds a new plan.

``TRANSITIONS`` is the one table of the commands that each status allows, and of the next status. Handlers
refuse by it, reducers move by it, and ``specs/PLANNING.md`` shows it.

Reducers are pure functions of a slice and a command. The plan slice holds one plan. Untouched steps are the
same objects in the next plan. A command that the plan cannot take leaves the slice as it was: handlers have
refused it before, with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
from planning.plan.model import STEP_STATUSES, Plan, PlanStatus, PlanStep, format_id, highest_number, index_of
from planning.plan.text import DETAILS, NOTE, OBJECTIVE, STEP_ID, TITLE

Transitions = Mapping[tuple[PlanStatus | None, type[Command]], tuple[PlanStatus, ...]]

_REFUSED: Final[tuple[PlanStatus, ...]] = ()

# (status, or None without a plan; command) -> the statuses that the plan may have next;
# none: refused. A mark gives ``completed`` when every step is done, ``active`` otherwise.
_TABLE: Final[Transitions] = {
    (None, SetupPlan): ("active",),
    (None, AddStep): _REFUSED,
    (None, UpdateStep): _REFUSED,
    (None, MarkStep): _REFUSED,
    (None, ClearPlan): _REFUSED,
    (None, ReadPlan): _REFUSED,
    ("active", SetupPlan): ("active",),
    ("active", AddStep): ("active",),
    ("active", UpdateStep): ("active",),
    ("active", MarkStep): ("active", "completed"),
    ("active", ClearPlan): ("abandoned",),
    ("active", ReadPlan): ("active",),
    ("completed", SetupPlan): ("active",),
    ("completed", AddStep): _REFUSED,
    ("completed", UpdateStep): _REFUSED,
    ("completed", MarkStep): ("active", "completed"),
    ("completed", ClearPlan): ("abandoned",),
    ("completed", ReadPlan): ("completed",),
    ("abandoned", SetupPlan): ("active",),
    ("abandoned", AddStep): _REFUSED,
    ("abandoned", UpdateStep): _REFUSED,
    ("abandoned", MarkStep): _REFUSED,
    ("abandoned", ClearPlan): _REFUSED,
    ("abandoned", ReadPlan): ("abandoned",),
}  # fmt: skip
TRANSITIONS: Final[Transitions] = MappingProxyType(_TABLE)
_TAKEN: Final = {
    kind: {status: bool(after) for (status, command), after in _TABLE.items() if command is kind}
    for _, kind in _TABLE
}

_REFUSALS: Final[Mapping[PlanStatus | None, str]] = MappingProxyType({
    None: "no plan yet; call planning_setup_plan first",
    "completed": "the plan is completed; reopen a step with planning_mark_step, "
    "or start a new plan with planning_setup_plan",
    "abandoned": "the plan was abandoned; start a new one with planning_setup_plan",
})  # fmt: skip


def allows(plan: Plan | None, command: type[Command]) -> bool:
    """True if a plan, or the lack of one, takes a command.

    A plan in a status that the table does not know, put there past the tools, counts as none.
    """
    taken = _TAKEN[command]
    return taken[None] if plan is None else taken.get(plan.status, taken[None])


def refusal(plan: Plan | None, command: type[Command]) -> str | None:
    """Why a plan does not take a command, and what to do instead; None when it takes it."""
    if allows(plan, command):
        return None
    return _REFUSALS.get(None if plan is None else plan.status, _REFUSALS[None])


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
    plan = _latest(plans, MarkStep)
    index = None if plan is None else index_of(plan.steps, command.step_id)
    status, note = command.status, command.note
    if plan is None or index is None or status not in STEP_STATUSES:
        return plans
    old, steps = plan.steps[index], plan.steps
    if note is not None or old.status != status:
        steps = _with_step(steps, index, _mark(old, command))
    next_status: PlanStatus = "completed" if status == "done" and _all_done(steps) else "active"
    if steps is plan.steps and next_status == plan.status:
        return plans
    return (Plan(plan.objective, next_status, steps),)


def mark_steps(plans: Plans, command: MarkSteps) -> Plans:
    """Make several marks, all or none: what they make one after the other, with one copy of the steps."""
    plan = _latest(plans, MarkStep)
    if plan is None:
        return plans
    steps, changed = list(plan.steps), False
    for mark in command.marks:
        index = index_of(steps, mark.step_id)
        if index is None or mark.status not in STEP_STATUSES:
            return plans
        if mark.note is not None or steps[index].status != mark.status:
            steps[index], changed = _mark(steps[index], mark), True
    status = plan.status
    if command.marks:
        is_done = command.marks[-1].status == "done" and _all_done(steps)
        status = "completed" if is_done else "active"
    status = "completed" if command.is_last else status
    if not changed and status == plan.status:
        return plans
    return (Plan(plan.objective, status, tuple(steps)),)


def clear_plan(plans: Plans, _command: ClearPlan) -> Plans:
    """Abandon the plan: the objective stays, the steps go."""
    plan = _latest(plans, ClearPlan)
    return plans if plan is None else (replace(plan, status="abandoned", steps=()),)


def remove_step(plans: Plans, command: RemoveStep) -> Plans:
    """Remove one step; the plan is completed when steps are left and all of them are done."""
    plan, index = _find(plans, command.step_id)
    if plan is None or index is None:
        return plans
    steps = plan.steps[:index] + plan.steps[index + 1 :]
    completed = plan.status == "completed" or (bool(steps) and _all_done(steps))
    return (Plan(plan.objective, "completed" if completed and steps else "active", steps),)


def move_step(plans: Plans, command: MoveStep) -> Plans:
    """Move one step to another place, from 0; the last place where the index is higher."""
    plan, index = _find(plans, command.step_id)
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
    """True if a command that a plan can take leaves it as it is."""
    kind = type(command)
    if kind is MarkStep:  # seen at one glance: models mark more than they do anything else
        index = None if command.note is not None else index_of(plan.steps, command.step_id)
        if index is None or plan.steps[index].status != command.status:
            return False
    reducer = REDUCERS.get(kind)
    return kind is ReadPlan or (reducer is not None and reducer((plan,), command)[-1] is plan)


def check_command(command: Any) -> None:
    """Refuse what no plan can hold, in a command that a program dispatches without its handler."""
    match command:
        case MarkStep(step_id=str(), note=None):
            pass  # nearly every mark
        case MarkStep():
            _check_mark(command, "")
        case MarkSteps():
            for index, mark in enumerate(command.marks):
                _check_mark(mark, f"marks[{index}].")
        case SetupPlan():
            OBJECTIVE.require(command.objective, "objective")
            _check_steps(command.initial_steps, "initial_steps")
        case AddStep() if command.steps:
            _check_steps(command.steps, "steps")
        case UpdateStep():
            _check_id(command.step_id)
            if command.title is not None:
                TITLE.require(command.title, "title")
            if command.details not in {None, ""}:
                DETAILS.require(command.details, "details")
        case RemoveStep() | MoveStep():
            _check_id(command.step_id)
            index = getattr(command, "index", 0)
            if type(index) is not int or index < 0:
                raise ValueError("index: expected a whole number of at least 0")


def _check_mark(mark: MarkStep, place: str) -> None:
    _check_id(mark.step_id)
    if mark.note is not None:
        NOTE.require(mark.note, f"{place}note")


def _check_id(step_id: object) -> None:
    if not isinstance(step_id, str):  # any text may be an id that the plan has
        STEP_ID.require(step_id, "step_id")


def _check_steps(steps: object, place: str) -> None:
    if not isinstance(steps, (tuple, list)) or not all(isinstance(step, NewPlanStep) for step in steps):
        raise ValueError(f"{place}: expected a tuple of NewPlanStep")
    for index, step in enumerate(steps):
        TITLE.require(step.title, f"{place}[{index}].title")
        if step.details is not None:
            DETAILS.require(step.details, f"{place}[{index}].details")


def _find(plans: Plans, step_id: str) -> tuple[Plan | None, int | None]:
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


def _mark(step: PlanStep, mark: MarkStep) -> PlanStep:
    # ``replace`` takes 3 us more, a quarter of a mark. A test holds every other field to what it was.
    notes = step.notes if mark.note is None else (*step.notes, mark.note)
    return PlanStep(step.step_id, step.title, step.details, mark.status, notes)


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
