"""The plan as data: frozen, hashable, comparable, made of nothing but strings and tuples."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from planning.text import DETAILS, NOTE, OBJECTIVE, STEP_ID, TITLE, TextRule

__all__ = [
    "STEP_STATUSES",
    "Plan",
    "PlanStatus",
    "PlanStep",
    "StepStatus",
    "index_of",
    "plain_status",
    "require_text",
    "setters",
]

PlanStatus = Literal["active", "completed", "abandoned"]
StepStatus = Literal["pending", "in_progress", "blocked", "done"]

STEP_STATUSES: Final[tuple[StepStatus, ...]] = get_args(StepStatus)
_SPELLED = {status.replace("_", ""): status for status in STEP_STATUSES}
_SEPARATORS = re.compile(r"[\s_-]+")


def setters(kind: type) -> tuple[Callable[[object, object], None], ...]:
    """What sets each slot of a frozen class: its ``__init__`` is twice as fast with these."""
    return tuple([vars(kind)[name].__set__ for name in vars(kind)["__slots__"]])


@dataclass(slots=True, frozen=True, init=False)
class PlanStep:
    """One thing to do.

    Attributes:
        step_id: ``S###``, given out by the reducers, unique in its plan.
        title: What to do, in one line.
        details: More about it, or None.
        status: Its progress.
        notes: What was observed, oldest first.
    """

    step_id: str
    title: str
    details: str | None
    status: StepStatus
    notes: tuple[str, ...] = field(default_factory=tuple)

    def __init__(
        self, step_id: str, title: str, details: str | None, status: StepStatus, notes: tuple[str, ...] = ()
    ) -> None:
        set_step_id, set_title, set_details, set_status, set_notes = _SET_STEP
        set_step_id(self, step_id)
        set_title(self, title)
        set_details(self, details)
        set_status(self, status)
        set_notes(self, notes)


_SET_STEP = setters(PlanStep)


@dataclass(slots=True, frozen=True, init=False)
class Plan:
    """What the agent tracks: one per session.

    Attributes:
        objective: What it is all for, in one line.
        status: ``active``; ``completed`` once every step is done; ``abandoned`` once cleared.
        steps: In the order of adding.
    """

    objective: str
    status: PlanStatus
    steps: tuple[PlanStep, ...] = field(default_factory=tuple)

    def __init__(self, objective: str, status: PlanStatus, steps: tuple[PlanStep, ...] = ()) -> None:
        set_objective, set_status, set_steps = _SET_PLAN
        set_objective(self, objective)
        set_status(self, status)
        set_steps(self, steps)

    @property
    def progress(self) -> tuple[int, int]:
        """How many steps are done, and how many there are."""
        return sum(step.status == "done" for step in self.steps), len(self.steps)

    @property
    def next_step(self) -> PlanStep | None:
        """The first step in progress, or else the first pending one; None when no step is open."""
        for status in ("in_progress", "pending"):
            for step in self.steps:
                if step.status == status:
                    return step
        return None

    @staticmethod
    def check_slice(plans: Sequence[Plan]) -> None:
        """Refuse what no session holds. Text need not be ASCII: that is a rule for what models send.

        Raises:
            ValueError: There are several plans, a step id occurs twice, a part is of another type, or a text
                is blank, too long or not printable.
        """
        if len(plans) > 1:
            raise ValueError(f"a session has one plan, got {len(plans)}")
        for plan in plans:
            _require_type(plan, Plan, "plan")
            require_text(plan.objective, OBJECTIVE, "objective")
            _require_type(plan.status, str, "status")
            _require_type(plan.steps, tuple, "steps")
            if not _are_plain(plan.steps):
                _require_steps(plan.steps)


_SET_PLAN = setters(Plan)


def _are_plain(steps: tuple[PlanStep, ...]) -> bool:
    """Whether steps are as nearly all are, of plain text: the fast way to know that nothing is wrong."""
    if {*map(type, steps)} - {PlanStep} or {type(step.notes) for step in steps} - {tuple}:
        return False
    ids = [step.step_id for step in steps]
    return (
        STEP_ID.keeps_all(ids)
        and len({*ids}) == len(ids)
        and TITLE.keeps_all([step.title for step in steps])
        and DETAILS.keeps_all([step.details for step in steps if step.details is not None])
        and NOTE.keeps_all([note for step in steps for note in step.notes])
        and {type(step.status) for step in steps} <= {str}
    )


def _require_steps(steps: tuple[PlanStep, ...]) -> None:
    """Refuse steps that no plan holds.

    Raises:
        ValueError: A step id occurs twice, a part is of another type, or a text is one that no plan holds.
    """
    known: set[str] = set()
    for index, step in enumerate(steps):
        _require_type(step, PlanStep, "steps[{}]", index)
        require_text(step.step_id, STEP_ID, "steps[{}].step_id", index)
        if step.step_id in known:
            raise ValueError(f"steps[{index}].step_id: {step.step_id} is there twice")
        known.add(step.step_id)
        require_text(step.title, TITLE, "steps[{}].title", index)
        if step.details is not None:
            require_text(step.details, DETAILS, "steps[{}].details", index)
        _require_type(step.status, str, "steps[{}].status", index)
        _require_type(step.notes, tuple, "steps[{}].notes", index)
        for number, note in enumerate(step.notes):
            require_text(note, NOTE, "steps[{}].notes[{}]", index, number)


def require_text(text: object, rule: TextRule, place: str, *indexes: int) -> None:
    """Refuse text that no plan holds.

    Raises:
        ValueError: It is blank, has blanks around it, is too long or is not printable; or it is not text.
    """
    if not rule.keeps(text) and (problem := rule.unkept(text)) is not None:
        raise ValueError(f"{place.format(*indexes)}: {problem}")


def _require_type(value: object, kind: type, place: str, *indexes: int) -> None:
    if not isinstance(value, kind):
        message = f"{place.format(*indexes)}: expected {kind.__name__}, got {type(value).__name__}"
        raise ValueError(message)  # noqa: TRY004 - documented, as the other refusals


def index_of(steps: Sequence[PlanStep], step_id: str) -> int | None:
    """The index of the step with an id, or None.

    Steps are numbered from 1 in order, so it looks there first.
    """
    try:
        guess = int(step_id[1:]) - 1
    except ValueError:
        guess = -1
    if 0 <= guess < len(steps) and steps[guess].step_id == step_id:
        return guess
    return next((index for index, step in enumerate(steps) if step.step_id == step_id), None)


def plain_status(value: Any) -> Any:
    """The status that a string spells differently, such as ``Done`` or ``in progress``; else the value."""
    if not isinstance(value, str):
        return value
    spelled = _SEPARATORS.sub("", str.__str__(value))  # of a string enum, its value
    return _SPELLED.get(spelled.lower(), value)
