"""The plan as data, frozen and made only of strings and tuples, and the ids of its steps.

An id is ``S`` and a number of at least three digits, counted up and never reused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, get_args

from planning.plan.text import DETAILS, NOTE, OBJECTIVE, STEP_ID, TITLE

PlanStatus = Literal["active", "completed", "abandoned"]
StepStatus = Literal["pending", "in_progress", "blocked", "done"]

STEP_STATUSES: Final[tuple[StepStatus, ...]] = get_args(StepStatus)
_SPELLED = {status.replace("_", ""): status for status in STEP_STATUSES}
_SEPARATORS = re.compile(r"[\s_-]+")
_SHORT_ID = 10
_LONGEST = 4_000  # Python turns longer digits into a number only when asked to
_DIGITS = "0123456789"
_SHAPE = re.compile(r"[Ss]?([0-9]+)")
_LISTED = 20
_MOST = 10**9  # no plan has as many steps


def _setters(kind: type) -> tuple[Callable[[object, object], None], ...]:
    """A setter for each slot of a frozen class: so the two of a mark are made in 0.7 us instead of 1.3."""
    return tuple([vars(kind)[name].__set__ for name in vars(kind)["__slots__"]])


@dataclass(slots=True, frozen=True, init=False)
class PlanStep:
    """One thing to do.

    Attributes:
        step_id: ``S###``, assigned by the reducers, unique in its plan.
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


_SET_STEP = _setters(PlanStep)


@dataclass(slots=True, frozen=True, init=False)
class Plan:
    """The plan of an agent: one per session.

    Attributes:
        objective: The goal, in one line.
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
        """The number of steps that are done, and of all steps."""
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
        """Refuse what no session can contain. Text need not be ASCII: that rule is for models.

        Raises:
            ValueError: There are several plans, a step id occurs twice, a part has the wrong type, or text
                is blank, too long or not printable.
        """
        if len(plans) > 1:
            raise ValueError(f"a session has one plan, got {len(plans)}")
        for plan in plans:
            _require_type(plan, Plan, "plan")
            OBJECTIVE.require(plan.objective, "objective")
            _require_type(plan.status, str, "status")
            _require_type(plan.steps, tuple, "steps")
            ids: set[str] = set()
            for index, step in enumerate(plan.steps):
                place = f"steps[{index}]"
                _require_type(step, PlanStep, place)
                STEP_ID.require(step.step_id, f"{place}.step_id")
                if step.step_id in ids:
                    raise ValueError(f"{place}.step_id: {step.step_id} appears twice")
                ids.add(step.step_id)
                TITLE.require(step.title, f"{place}.title")
                if step.details is not None:
                    DETAILS.require(step.details, f"{place}.details")
                _require_type(step.status, str, f"{place}.status")
                _require_type(step.notes, tuple, f"{place}.notes")
                for number, note in enumerate(step.notes):
                    NOTE.require(note, f"{place}.notes[{number}]")


_SET_PLAN = _setters(Plan)


def _require_type(value: object, kind: type, place: str) -> None:
    if not isinstance(value, kind):
        message = f"{place}: expected {kind.__name__}, got {type(value).__name__}"
        raise ValueError(message)  # noqa: TRY004 - documented, as the other refusals


def format_id(number: int) -> str:
    """``S007`` for 7, ``S1000`` for 1000."""
    return f"S{number:03d}"


def number_of(step_id: str) -> int | None:
    """The number at the end of an id; None when there is none, or when it is too long to be one."""
    digits = step_id[len(step_id.rstrip(_DIGITS)) :]
    return int(digits) if digits and len(digits) <= _LONGEST else None


def highest_number(step_ids: Iterable[str]) -> int:
    """The highest number among the ids; 0 when none has one."""
    return max((number for step_id in step_ids if (number := number_of(step_id)) is not None), default=0)


def as_text(step_id: Any) -> Any:
    """The number of a step as text, also where JSON has it as 1.0; anything else as it is."""
    is_whole = type(step_id) is int or (type(step_id) is float and step_id.is_integer())
    return str(int(step_id)) if is_whole and 0 <= step_id < _MOST else step_id


def written_alike(step_id: str, ids: Sequence[str]) -> list[str]:
    """The id itself if it is among ids, else those that differ only in case, in zeros or by the S."""
    text = " ".join(ids)
    if step_id in text and step_id in ids:
        return [step_id]
    number = _SHAPE.fullmatch(step_id)
    if number is None:
        meant = step_id.casefold()
        return [one for one in ids if one.casefold() == meant]
    digits = number[1].lstrip("0")
    similar = [one for one in ids if digits in one] if digits in text else []
    return [one for one in similar if (digital := _SHAPE.fullmatch(one)) and digital[1].lstrip("0") == digits]


def alike_key(step_id: str) -> str:
    """The same for ids that are written alike: ``1`` for ``S001``."""
    number = _SHAPE.fullmatch(step_id)
    return step_id.casefold() if number is None else number[1].lstrip("0")


def listed_ids(step_ids: Sequence[str]) -> str:
    """Ids in order, those in an unbroken row as one: ``S001, S004 to S006``."""
    start = number_of(step_ids[0]) if len(step_ids) > 1 else None
    if start is not None and " ".join(step_ids) == _row(start, len(step_ids)):
        return f"{step_ids[0]} to {step_ids[-1]}"  # as nearly always
    runs: list[list[str]] = []
    for step_id in step_ids:
        before = number_of(runs[-1][-1]) if runs else None
        if before is not None and number_of(step_id) == before + 1:
            runs[-1].append(step_id)
        else:
            runs.append([step_id])
    shown = [run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs[:_LISTED]]
    more = sum(map(len, runs[_LISTED:]))
    return ", ".join(shown) + (f" and {more} more" if more else "")


@lru_cache(maxsize=4)
def _row(first: int, count: int) -> str:
    """Ids in an unbroken row: of a refusal's 85 us with 100 steps, 25 were to make them."""
    return " ".join(map(format_id, range(first, first + count)))


def index_of(steps: Sequence[PlanStep], step_id: str) -> int | None:
    """The index of the step with an id, or None.

    Steps are numbered from 1 in order, so it looks there first.
    """
    guess = _read_number(step_id) if len(step_id) <= _SHORT_ID else -1
    if 0 <= guess < len(steps) and steps[guess].step_id == step_id:
        return guess
    return next((index for index, step in enumerate(steps) if step.step_id == step_id), None)


@lru_cache(maxsize=1_024)  # a mark asks three times: 0.2 us of its 11
def _read_number(step_id: str) -> int:
    """The place of a step in a plan that no step was removed from; -1 where its id has no number."""
    return int(step_id[1:]) - 1 if step_id[1:].isdecimal() else -1


def spelled_status(value: Any) -> Any:
    """The status that a string spells differently, such as ``Done`` or ``in progress``; else the value."""
    if not isinstance(value, str):
        return value
    spelled = _SEPARATORS.sub("", str.__str__(value))  # of a string enum, its value
    return _SPELLED.get(spelled.lower(), value)
