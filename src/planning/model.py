"""The plan as data: frozen, hashable, comparable, made of nothing but strings and tuples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

__all__ = ["STEP_STATUSES", "Plan", "PlanStatus", "PlanStep", "StepStatus", "index_of"]

PlanStatus = Literal["active", "completed", "abandoned"]
StepStatus = Literal["pending", "in_progress", "blocked", "done"]

STEP_STATUSES: Final[tuple[StepStatus, ...]] = get_args(StepStatus)


@dataclass(slots=True, frozen=True)
class PlanStep:
    """One thing to do.

    Attributes:
        step_id: ``S###``, given out by the reducers, unique in its plan.
        title: What to do, in one line.
        details: More about it, or None.
        status: Where it stands.
        notes: What was observed, oldest first.
    """

    step_id: str
    title: str
    details: str | None
    status: StepStatus
    notes: tuple[str, ...] = field(default_factory=tuple)


@dataclass(slots=True, frozen=True)
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


def index_of(steps: Sequence[PlanStep], step_id: str) -> int | None:
    """Where the step with an id stands; None when there is none.

    Steps are numbered from 1 in order, so it looks there first.
    """
    try:
        guess = int(step_id[1:]) - 1
    except ValueError:
        guess = -1
    if 0 <= guess < len(steps) and steps[guess].step_id == step_id:
        return guess
    return next((index for index, step in enumerate(steps) if step.step_id == step_id), None)
