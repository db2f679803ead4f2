"""The difference between two plans: as data, as a sentence, and as a patch."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from planning.errors import cut, listed
from planning.plan.model import Plan, PlanStatus, PlanStep, StepStatus
from planning.plan.text import as_data

_NAMED = 8
_LONGEST = 240


@dataclass(frozen=True, slots=True)
class StepAdded:
    """A step that only the second plan has.

    Attributes:
        step: The step.
        index: Its place in the second plan, from 0.
    """

    step: PlanStep
    index: int


@dataclass(frozen=True, slots=True)
class StepMoved:
    """A step in another place among the others.

    Attributes:
        step_id: The step.
        index: Its place in the second plan, from 0.
    """

    step_id: str
    index: int


@dataclass(frozen=True, slots=True)
class StepRetitled:
    """A step with a new title."""

    step_id: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class StepDetailed:
    """A step with other details."""

    step_id: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class StepMarked:
    """A step with a new status."""

    step_id: str
    before: StepStatus
    after: StepStatus


@dataclass(frozen=True, slots=True)
class StepNoted:
    """A step with other notes.

    Attributes:
        step_id: The step.
        added: The notes at the end that are new.
        removed: How many notes at the end are gone; 0 when notes were only added.
    """

    step_id: str
    added: tuple[str, ...]
    removed: int = 0


@dataclass(frozen=True, slots=True)
class PlanDiff:
    """The differences between two plans; false if there are none.

    Attributes:
        objective: The objective before and after, when it differs; None means no plan.
        status: The plan's status before and after, when it differs; None means no plan.
        added: Steps that only the second plan has.
        removed: The ids of the steps that only the first plan has.
        moved: Steps that changed places, as few as explain the new order.
        retitled: Steps with a new title.
        detailed: Steps with other details.
        marked: Steps with a new status.
        noted: Steps with other notes.
    """

    objective: tuple[str | None, str | None] | None = None
    status: tuple[PlanStatus | None, PlanStatus | None] | None = None
    added: tuple[StepAdded, ...] = ()
    removed: tuple[str, ...] = ()
    moved: tuple[StepMoved, ...] = ()
    retitled: tuple[StepRetitled, ...] = ()
    detailed: tuple[StepDetailed, ...] = ()
    marked: tuple[StepMarked, ...] = ()
    noted: tuple[StepNoted, ...] = ()

    def __bool__(self) -> bool:
        return self != PlanDiff()

    def __str__(self) -> str:
        return " ".join(_sentences(self)) or "Nothing changed."

    def apply(self, before: Plan | None) -> Plan | None:
        """Return the second plan, given the first.

        Raises:
            ValueError: The plan is not the one that the difference starts from.
        """
        if not self:
            return before
        if self.status is not None and self.status[1] is None:
            return None
        if before is None and (self.objective is None or self.status is None):
            raise ValueError("the difference starts from a plan, and there is none")
        base = Plan("", "active") if before is None else before
        objective = base.objective if self.objective is None else self.objective[1]
        status = base.status if self.status is None else self.status[1]
        if objective is None or status is None:
            raise ValueError("the difference has an objective without a status")
        return Plan(objective, status, tuple(self._steps(base.steps)))

    def _steps(self, before: tuple[PlanStep, ...]) -> Iterator[PlanStep]:
        steps = {step.step_id: step for step in before}
        moved, gone = {each.step_id for each in self.moved}, set(self.removed)
        unknown = [each for each in (*gone, *moved) if each not in steps]
        for changes in (self.retitled, self.detailed, self.marked, self.noted):
            unknown += [each.step_id for each in changes if each.step_id not in steps]
        if unknown:
            raise ValueError(f"the plan has no step {unknown[0]}: the difference starts from another plan")
        edits: dict[str, Any] = {"title": self.retitled, "details": self.detailed, "status": self.marked}
        for field, edited in edits.items():
            for edit in edited:
                steps[edit.step_id] = replace(steps[edit.step_id], **{field: edit.after})
        for noted in self.noted:
            notes = steps[noted.step_id].notes
            kept = notes[: len(notes) - noted.removed]
            steps[noted.step_id] = replace(steps[noted.step_id], notes=(*kept, *noted.added))
        placed = {each.index: each.step for each in self.added}
        placed |= {each.index: steps[each.step_id] for each in self.moved}
        left = moved | gone
        rest = [steps[step.step_id] for step in before if step.step_id not in left]
        staying = iter(rest)
        for index in range(len(rest) + len(placed)):
            yield placed[index] if index in placed else next(staying)


def diff_plans(before: Plan | None, after: Plan | None) -> PlanDiff:
    """The difference between two plans, in time linear in the number of their steps.

    Steps are the same step when their ids are equal. A plan with a new objective, and without a step with
    both the id and the title of an earlier one, is a new plan: all steps of the first are removed.

    Args:
        before: The first plan; None for no plan.
        after: The second plan; None for no plan.
    """
    if before == after:
        return PlanDiff()
    objectives = (None if before is None else before.objective, None if after is None else after.objective)
    statuses = (None if before is None else before.status, None if after is None else after.status)
    old = () if before is None else before.steps
    new = () if after is None else after.steps
    objective = objectives if objectives[0] != objectives[1] else None
    status = statuses if statuses[0] != statuses[1] else None
    known, wanted = {step.step_id: step for step in old}, {step.step_id for step in new}
    is_new = objective is not None and not any(_is_same(step, known.get(step.step_id)) for step in new)
    if is_new or len(known) < len(old) or len(wanted) < len(new):
        added = tuple(StepAdded(step, index) for index, step in enumerate(new))
        return PlanDiff(objective, status, added, tuple(dict.fromkeys(step.step_id for step in old)))
    kept = [(step, known[step.step_id]) for step in new if step.step_id in known]
    pairs = [(now, then) for now, then in kept if now is not then]
    return PlanDiff(
        objective,
        status,
        tuple(StepAdded(step, index) for index, step in enumerate(new) if step.step_id not in known),
        tuple(step.step_id for step in old if step.step_id not in wanted),
        _find_moves(old, new, known.keys() & wanted),
        tuple(StepRetitled(n.step_id, t.title, n.title) for n, t in pairs if n.title != t.title),
        tuple(StepDetailed(n.step_id, t.details, n.details) for n, t in pairs if n.details != t.details),
        tuple(StepMarked(n.step_id, t.status, n.status) for n, t in pairs if n.status != t.status),
        tuple(_diff_notes(n, t) for n, t in pairs if n.notes != t.notes),
    )


def _is_same(step: PlanStep, earlier: PlanStep | None) -> bool:
    return earlier is not None and earlier.title == step.title


def _diff_notes(now: PlanStep, then: PlanStep) -> StepNoted:
    kept = 0
    for one, other in zip(now.notes, then.notes, strict=False):
        if one != other:
            break
        kept += 1
    return StepNoted(now.step_id, now.notes[kept:], len(then.notes) - kept)


def _find_moves(
    old: Sequence[PlanStep], new: Sequence[PlanStep], common: Iterable[str]
) -> tuple[StepMoved, ...]:
    """The steps outside of a longest run that kept its order (patience sorting)."""
    both = set(common)
    if [each.step_id for each in old if each.step_id in both] == [
        each.step_id for each in new if each.step_id in both
    ]:
        return ()  # as nearly always: it takes a tenth of the time of what follows
    place = {step.step_id: index for index, step in enumerate(old)}
    order = [(index, step.step_id) for index, step in enumerate(new) if step.step_id in both]
    ends, chain, previous = list[int](), list[int](), dict[int, int]()
    for position, (_, step_id) in enumerate(order):
        length = bisect_left(ends, place[step_id])
        ends[length : length + 1] = [place[step_id]]
        chain[length : length + 1] = [position]
        if length:
            previous[position] = chain[length - 1]
    stays, last = set[int](), chain[-1] if chain else None
    while last is not None:
        stays.add(last)
        last = previous.get(last)
    return tuple(StepMoved(step_id, index) for at, (index, step_id) in enumerate(order) if at not in stays)


def _sentences(diff: PlanDiff) -> Iterator[str]:
    is_gone = diff.status is not None and diff.status[1] in {None, "abandoned"}
    edits = (diff.moved, diff.retitled, diff.detailed, diff.marked, diff.noted)
    is_new = False
    if diff.objective is not None and diff.objective[1] is not None:
        is_new = diff.objective[0] is None or (bool(diff.removed) and not any(edits))
        yield _quote(f"{'New plan' if is_new else 'New objective'}: ", diff.objective[1])
    yield from _marks_and_notes(diff)
    for titled in diff.retitled:
        yield _quote(f"{titled.step_id} retitled: ", titled.after)
    if diff.detailed:
        yield f"Details of {_names([each.step_id for each in diff.detailed])} changed."
    if diff.added:
        yield f"Added {_names([each.step.step_id for each in diff.added])}."
    if diff.removed and not is_gone and not is_new:
        yield f"{_names(diff.removed)} {'was' if len(diff.removed) == 1 else 'were'} removed."
    if diff.moved:
        yield f"Moved {_names([each.step_id for each in diff.moved])}."
    if diff.status is not None:
        yield from _status(*diff.status, is_new=diff.objective is not None)


def _marks_and_notes(diff: PlanDiff) -> Iterator[str]:
    notes = {each.step_id: " ".join(each.added) for each in diff.noted if each.added}
    marked = {each.step_id: each.after for each in diff.marked}
    for step_id, status in marked.items():
        if step_id in notes:
            yield _quote(f"{step_id} {status}: ", notes[step_id])
    for status in dict.fromkeys(marked.values()):
        plain = [step_id for step_id in marked if marked[step_id] == status and step_id not in notes]
        if plain:
            yield f"{_names(plain)} {status}."
    for step_id, text in notes.items():
        if step_id not in marked:
            yield _quote(f"{step_id} noted: ", text)
    dropped = [each.step_id for each in diff.noted if not each.added]
    if dropped:
        yield f"Notes of {_names(dropped)} removed."


def _status(before: PlanStatus | None, after: PlanStatus | None, *, is_new: bool) -> Iterator[str]:
    if after is None:
        yield "Plan removed."
    elif after != "active":
        yield f"Plan {after}."
    elif before == "completed" or (before == "abandoned" and not is_new):
        yield "Plan reopened."


def _names(step_ids: Sequence[str]) -> str:
    return listed(step_ids, _NAMED)


def _quote(prefix: str, text: str) -> str:
    """A sentence that ends with a string of the plan."""
    text = prefix + as_data(cut(" ".join(text.split()), _LONGEST - len(prefix)))
    return text if text.endswith((".", "!", "?")) else f"{text}."
