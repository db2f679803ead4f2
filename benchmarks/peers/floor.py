"""The floor: the changed step and plan built by hand, with nothing around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.door import DONE, Door, Prepared, Takes, middle, title

__all__ = ["DOORS"]


@dataclass(frozen=True, slots=True)
class Step:
    """A plan step of the specified shape."""

    step_id: str
    title: str
    details: str | None
    status: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan of the specified shape."""

    objective: str
    status: str
    steps: tuple[Step, ...] = ()


def _prepare(steps: int) -> Prepared:
    index = middle(steps)
    plan = Plan(
        "Migrate", "active", tuple(Step(f"S{n + 1:03d}", title(n), None, "pending") for n in range(steps))
    )

    def mark(n: int) -> None:
        nonlocal plan
        old = plan.steps[index]
        # Through a list: of the three ways to replace one element of a tuple it copies least, so the
        # floor is as low as the language allows.
        changed = list(plan.steps)
        changed[index] = Step(old.step_id, old.title, old.details, DONE[n & 1], old.notes)
        plan = Plan(plan.objective, plan.status, tuple(changed))

    def statuses() -> Sequence[str]:
        return [step.status for step in plan.steps]

    return Prepared(mark, statuses)


DOORS = (
    Door(
        name="floor",
        package=None,
        takes=Takes.NONE,
        description=(
            "two frozen dataclasses with slots and one tuple built by hand; the index is known, "
            "nothing is checked, no event"
        ),
        prepare=_prepare,
    ),
)
