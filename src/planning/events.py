"""What the bus says of the plan."""

from __future__ import annotations

from functools import cached_property

import attrs

from planning.diff import PlanDiff, diff_plans
from planning.model import Plan
from session import Commit, Session, SessionId

__all__ = ["PlanChanged", "announce_plan"]


@attrs.frozen
class PlanChanged:
    """A commit changed the plan; published once for each, whichever way the change came.

    It is not in the history and in no log: both plans are there already.

    Attributes:
        before: The plan before; None when there was none.
        after: The plan now; None when there is none any more.
        version: The version that the commit made.
        actor: Who made the change, when it is known.
        call_id: The id that the provider gave the call, when there is one.
        origin: ``session``; ``store`` for a change that another process made.
        session_id: The session.
    """

    before: Plan | None
    after: Plan | None
    version: int
    actor: str | None
    call_id: str | None
    origin: str
    session_id: SessionId

    @cached_property
    def diff(self) -> PlanDiff:
        """What changed; computed when it is first read."""
        return diff_plans(self.before, self.after)


def announce_plan(session: Session) -> None:
    """Let a session publish ``PlanChanged``; once or more often is the same."""
    session.announce(Plan, PlanChanged, _changed)


def _changed(commit: Commit[Plan]) -> PlanChanged | None:
    if commit.before == commit.after:
        return None  # such as a mark that says what was so
    return PlanChanged(
        commit.before,
        commit.after,
        commit.version,
        commit.actor,
        commit.call_id,
        commit.origin,
        commit.session_id,
    )
