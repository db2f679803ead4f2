"""The floor: the changed step and plan built by hand, with nothing around them."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.peers.contest import DONE, Door, Prepared, middle, title

__all__ = ["FLOOR"]


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
        # Through a list: of the three ways to replace one element of a tuple it copies least.
        changed = list(plan.steps)
        changed[index] = Step(old.step_id, old.title, old.details, DONE[n & 1], old.notes)
        plan = Plan(plan.objective, plan.status, tuple(changed))

    return Prepared(mark, lambda: [step.status for step in plan.steps])


FLOOR = Door(
    "floor",
    "two frozen dataclasses and a tuple built by hand; the index is known, nothing is checked, no event",
    _prepare,
)
