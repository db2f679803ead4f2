"""The plan's lifecycle: which commands each status allows, and the next status.

``TRANSITIONS`` is the one table. Handlers refuse by it, reducers move by it, and
``specs/PLANNING.md`` shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from planning.plan.commands import AddStep, ClearPlan, Command, MarkStep, ReadPlan, SetupPlan, UpdateStep
from planning.plan.model import Plan, PlanStatus

Transitions = Mapping[tuple[PlanStatus | None, type[Command]], tuple[PlanStatus, ...]]

_REFUSED: Final[tuple[PlanStatus, ...]] = ()

# (status, or None where there is no plan; command) -> the statuses that the plan may have next;
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
    """Whether a plan, or the lack of one, takes a command.

    A plan in a status that the table does not know, put there past the tools, counts as none.
    """
    taken = _TAKEN[command]
    return taken[None] if plan is None else taken.get(plan.status, taken[None])


def refusal(plan: Plan | None, command: type[Command]) -> str | None:
    """Why a plan does not take a command, and what to do instead; None when it takes it."""
    if allows(plan, command):
        return None
    return _REFUSALS.get(None if plan is None else plan.status, _REFUSALS[None])
