"""What changed from one plan to the next, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from planning.cli.printable import one_line
from planning.model import Plan, PlanStep

__all__ = ["plan_changes"]

_WHAT: Final = 22  # "in_progress -> blocked"


def plan_changes(before: Plan | None, after: Plan | None) -> Iterator[str]:
    """One line for each change of a step, and for each note; a new plan is told whole."""
    if after is None:
        return
    known = {} if before is None else {step.step_id: step for step in before.steps}
    for step in after.steps:
        yield from _changes(known.get(step.step_id), step)


def _changes(before: PlanStep | None, after: PlanStep) -> Iterator[str]:
    if before is None:
        yield _line(after.step_id, after.status, after.title)
    elif before.status != after.status:
        yield _line(after.step_id, f"{before.status} -> {after.status}", after.title)
    for note in after.notes[0 if before is None else len(before.notes) :]:
        yield _line(after.step_id, "note", note)


def _line(step_id: str, what: str, text: str) -> str:
    return f"{step_id}  {what:<{_WHAT}}  {one_line(text)}"
