"""What the bus says of the plan, and of the frameworks that rewind it."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

import attrs

from planning.diff import PlanDiff, diff_plans
from planning.model import Plan
from session import Commit, Session, SessionEvent, SessionId

__all__ = ["MOST_PLACES", "FrameworkTurn", "PlanChanged", "announce_plan"]

MOST_PLACES = 1_000
"""The most places in frameworks of which a session keeps the last turn."""


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


@attrs.frozen(kw_only=True, slots=False)
class FrameworkTurn(SessionEvent):
    """A framework begins to change the session, or went back in it.

    Attributes:
        place: Where in the framework: its name, the thread and the agent in the thread.
        turn: Which turn there; calls of one turn share it.
        base: The version of the position that the turn started from.
        version: The version of this event itself.
        start: The version of the session when the place began to use it.
        began: When that was.
    """

    place: str
    turn: str
    base: int
    version: int
    start: int
    began: datetime


def _last_turns(turns: tuple[FrameworkTurn, ...], turn: FrameworkTurn) -> tuple[FrameworkTurn, ...]:
    """The last turn of each place, of the places that had one last."""
    others = tuple(each for each in turns if each.place != turn.place)
    return (*others[1 - MOST_PLACES :], turn)


def announce_plan(session: Session) -> None:
    """Let a session publish ``PlanChanged``, and keep turns of frameworks; once or more often is the same."""
    session.announce(Plan, PlanChanged, _changed)
    session.register_reducer(FrameworkTurn, _last_turns)


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
