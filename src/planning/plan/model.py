"""The plan as data: frozen, hashable, comparable, made only of strings and tuples."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from planning.plan.text import DETAILS, NOTE, OBJECTIVE, STEP_ID, TITLE, TextRule

PlanStatus = Literal["active", "completed", "abandoned"]
StepStatus = Literal["pending", "in_progress", "blocked", "done"]

STEP_STATUSES: Final[tuple[StepStatus, ...]] = get_args(StepStatus)
_SPELLED = {status.replace("_", ""): status for status in STEP_STATUSES}
_SEPARATORS = re.compile(r"[\s_-]+")
_SHORT_ID = 10


def setters(kind: type) -> tuple[Callable[[object, object], None], ...]:
    """What sets each slot of a frozen class: its ``__init__`` is twice as fast with these."""
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


_SET_STEP = setters(PlanStep)


_MOST_CHANGES = 4  # and marks, for each step: a run makes two marks of it, in two changes at most


class _Marks:
    """Changes of a plan's steps, one after the other, none of which copies the others.

    The steps of the newest plan are in ``now``. Those of an earlier one are made of the first plan's again.
    """

    __slots__ = ("_changes", "_first", "_last", "_size", "now")

    def __init__(self, steps: tuple[PlanStep, ...]) -> None:
        self.now = list(steps)
        self._first = steps
        self._changes: dict[int, Mapping[int, PlanStep]] = {}  # by their number
        self._size = 0  # of all of them, and how many they are
        self._last = len(steps) - 1  # the steps after it are done

    def is_open(self, count: int) -> bool:
        """Whether the plan after so many changes is the newest, and there are not too many of them."""
        return count not in self._changes and self._size <= _MOST_CHANGES * len(self.now)

    def add(self, count: int, steps: Mapping[int, PlanStep]) -> bool:
        """Make a change after so many others; False where another thread made one after the same."""
        if self._changes.setdefault(count, steps) is not steps:
            return False
        self._size += 1 + len(steps)
        for index, step in steps.items():
            self.now[index] = step
            if step.status != "done":
                self._last = max(self._last, index)
        return True

    def are_done(self) -> bool:
        """Whether all steps of the newest plan are."""
        while self._last >= 0 and self.now[self._last].status == "done":
            self._last -= 1
        return self._last < 0

    def after(self, count: int) -> tuple[PlanStep, ...]:
        """The steps after so many changes."""
        steps = tuple(self.now)
        if count in self._changes:  # looked up after the copy: ``add`` notes a change before it makes it
            then = list(self._first)
            for number in range(count):
                for index, step in self._changes[number].items():
                    then[index] = step
            steps = tuple(then)
        return steps


class _Marked:
    """The slot of the changes that made a plan, and of their number; it is not a field."""

    __slots__ = ("_marks",)


@dataclass(slots=True, frozen=True, init=False)
class Plan(_Marked):
    """What the agent tracks: one per session.

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

    if not TYPE_CHECKING:  # where types are checked, every name would be an attribute

        def __getattr__(self, name: str) -> Any:
            """The steps of a plan that ``with_steps`` made, on first use."""
            if name != "steps":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            marks, count = self._marks
            steps = marks.after(count)
            _SET_PLAN[2](self, steps)
            return steps

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
        """Refuse what no session can contain. Text need not be ASCII: that rule is for models.

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
(_SET_MARKS,) = setters(_Marked)


def with_steps(
    plan: Plan,
    change: Callable[[Sequence[PlanStep]], Mapping[int, PlanStep] | None],
    *,
    is_last: bool = False,
) -> Plan | None:
    """A plan with other steps at some places; the rest is copied on first use.

    Args:
        plan: The plan before.
        change: Says what replaces which of the steps that it is given, by index; None to change nothing.
        is_last: Whether the plan is completed even so.
    """
    known: tuple[_Marks, int] | None = getattr(plan, "_marks", None)
    marks, count = known if known is not None and known[0].is_open(known[1]) else (_Marks(plan.steps), 0)
    while (steps := change(marks.now)) is not None and not marks.add(count, steps):
        marks, count = _Marks(plan.steps), 0
    if steps is None:
        return None
    made = Plan.__new__(Plan)
    set_objective, set_status, _ = _SET_PLAN
    set_objective(made, plan.objective)
    set_status(made, "completed" if is_last or marks.are_done() else "active")
    _SET_MARKS(made, (marks, count + 1))
    return made


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
    """Refuse steps that no plan holds."""
    known: set[str] = set()
    for index, step in enumerate(steps):
        _require_type(step, PlanStep, "steps[{}]", index)
        require_text(step.step_id, STEP_ID, "steps[{}].step_id", index)
        if step.step_id in known:
            raise ValueError(f"steps[{index}].step_id: {step.step_id} appears twice")
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
    guess = _numbered(step_id) if len(step_id) <= _SHORT_ID else -1
    if 0 <= guess < len(steps) and steps[guess].step_id == step_id:
        return guess
    return next((index for index, step in enumerate(steps) if step.step_id == step_id), None)


@lru_cache(maxsize=1_024)  # a mark asks three times: 0.2 us of its 11
def _numbered(step_id: str) -> int:
    """The place of a step in a plan that no step was removed from; -1 where its id has no number."""
    return int(step_id[1:]) - 1 if step_id[1:].isdecimal() else -1


def plain_status(value: Any) -> Any:
    """The status that a string spells differently, such as ``Done`` or ``in progress``; else the value."""
    if not isinstance(value, str):
        return value
    spelled = _SEPARATORS.sub("", str.__str__(value))  # of a string enum, its value
    return _SPELLED.get(spelled.lower(), value)
