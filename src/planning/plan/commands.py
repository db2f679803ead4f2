"""The commands: frozen requests for a change, one for each planning tool.

Field metadata holds the description of a field for the model, the rule for its text, and
under ``repair`` what turns a value of the wrong shape into the one that is meant.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from planning.plan.model import StepStatus, plain_status
from planning.plan.step_ids import as_text
from planning.plan.text import DETAILS, NOTE, OBJECTIVE, STEP_ID, TITLE

_STEP_ID = {**STEP_ID.about("S### id"), "repair": as_text}
_STATUS = {"description": "Its new status", "repair": plain_status}


@dataclass(slots=True, frozen=True)
class NewPlanStep:
    """A step to add."""

    title: str = field(metadata=TITLE.about("What to do, one line"))
    details: str | None = field(default=None, metadata=DETAILS.about("More, if needed"))


@dataclass(slots=True, frozen=True)
class SetupPlan:
    """Create the plan, or replace it."""

    objective: str = field(metadata=OBJECTIVE.about("The goal, one line"))
    initial_steps: tuple[NewPlanStep, ...] = field(
        default_factory=tuple, metadata={"description": "In order; may be empty"}
    )


@dataclass(slots=True, frozen=True)
class AddStep:
    """Append steps."""

    steps: tuple[NewPlanStep, ...] = field(metadata={"description": "In order", "min_items": 1})


@dataclass(slots=True, frozen=True)
class UpdateStep:
    """Change a step's title or details; None leaves a field as it is, and blank details clear them."""

    step_id: str = field(metadata=_STEP_ID)
    title: str | None = field(default=None, metadata=TITLE.about("New title"))
    details: str | None = field(default=None, metadata=DETAILS.about('New details; "" clears them'))


@dataclass(slots=True, frozen=True)
class MarkStep:
    """Set a step's status, and append a note."""

    step_id: str = field(metadata=_STEP_ID)
    status: StepStatus = field(metadata=_STATUS)
    note: str | None = field(default=None, metadata=NOTE.about("What was observed"))


@dataclass(slots=True, frozen=True)
class MarkSteps:
    """Several marks as one change: for programs that mark many steps; a model cannot send it.

    With ``is_last`` the plan is completed afterwards, also when steps of it are blocked or it has none: the
    work that it shows is over. With ``is_report`` they show what has happened: no policy refuses them.
    """

    marks: tuple[MarkStep, ...]
    is_last: bool = False
    is_report: bool = False


@dataclass(slots=True, frozen=True)
class ClearPlan:
    """Abandon the plan and drop its steps."""


@dataclass(slots=True, frozen=True)
class ReadPlan:
    """Read the current plan."""


@dataclass(slots=True, frozen=True)
class RemoveStep:
    """Remove a step; its id is not used again. Without an open step left, the plan is completed."""

    step_id: str = field(metadata=_STEP_ID)


@dataclass(slots=True, frozen=True)
class MoveStep:
    """Move a step to another place among the steps."""

    step_id: str = field(metadata=_STEP_ID)
    index: int = field(metadata={"description": "Its new place, from 0"})


@dataclass(slots=True, frozen=True)
class RenumberSteps:
    """Give the last steps other ids, so that those of removed steps are not used again; no one sends it.

    Attributes:
        count: How many steps, from the end.
        first: The number of the first of them.
    """

    count: int
    first: int


@dataclass(slots=True, frozen=True)
class ApprovePlan:
    """Approve the plan and the steps that wait, so that the work can begin."""


@dataclass(slots=True, frozen=True)
class RejectPlan:
    """Reject the plan with a reason; the agent must change it."""

    reason: str


Command = SetupPlan | AddStep | UpdateStep | MarkStep | ClearPlan | ReadPlan
