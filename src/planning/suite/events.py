"""The events of plans, and of the frameworks that rewind them."""

from __future__ import annotations

from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING

import attrs

from planning.plan.model import Plan
from session import Commit, Session, SessionEvent, SessionId, Transaction

if TYPE_CHECKING:
    from planning.plan.diff import PlanDiff

MOST_PLACES = 1_000
"""The most places in frameworks for which a session keeps the last change."""


@attrs.frozen(slots=False)  # made in half the time
class PlanChanged:
    """A commit changed the plan; published once for each such commit.

    It is not in the history and in no log: both plans are there already.

    Attributes:
        before: The plan before; None when there was none.
        after: The plan now; None if there is none.
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
        """The differences; computed when they are first read."""
        from planning.plan.diff import diff_plans  # noqa: PLC0415 - few ask, and it has many classes

        return diff_plans(self.before, self.after)


@attrs.frozen(kw_only=True, slots=False)
class FrameworkChange(SessionEvent):
    """The change that carries this event was made by an agent of a framework that keeps its own state.

    Attributes:
        place: The framework, and its thread or conversation.
        at: Where in it: the id of the framework's checkpoint.
        version: The version of the change.
        start: The version of the session before the place's first change.
    """

    place: str
    at: str
    version: int
    start: int


framework: ContextVar[tuple[SessionId, str, str] | None] = ContextVar("framework", default=None)
"""The session that an agent of a framework is calling now, its ``place`` and its ``at``."""


def last_change(session: Session | Transaction, place: str) -> FrameworkChange | None:
    """The newest change that a place made; None if it made none."""
    changes = reversed(session.select_all(FrameworkChange))
    return next((change for change in changes if change.place == place), None)


def sign(transaction: Transaction) -> None:
    """Note in an open transaction which framework makes the change, if one does."""
    calling = framework.get()
    if calling is not None and calling[0] == transaction.session_id:
        _, place, at = calling
        last, version = last_change(transaction, place), transaction.version
        start = version if last is None else last.start
        transaction.publish(FrameworkChange(place=place, at=at, version=version + 1, start=start))


def _last_changes(
    changes: tuple[FrameworkChange, ...], change: FrameworkChange
) -> tuple[FrameworkChange, ...]:
    """The last change of each place, of the places that had one last."""
    others = tuple(each for each in changes if each.place != change.place)
    return (*others[1 - MOST_PLACES :], change)


def announce_plan(session: Session) -> None:
    """Let a session publish ``PlanChanged``, and keep frameworks' last changes; once or more is the same."""
    session.publish_on_change(Plan, PlanChanged, _make_changed)
    session.register_reducer(FrameworkChange, _last_changes)


def _make_changed(commit: Commit[Plan]) -> PlanChanged | None:
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
