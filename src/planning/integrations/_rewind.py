"""The plan rewinds with a framework's own state: what that state holds, and what the session keeps.

The framework keeps a *position* in its state: the session's id and version, and for a session in memory
also what the session held. The session keeps a ``FrameworkTurn`` for each place in the framework, such as a
thread, that uses it. A position that is older than the place's last turn means that the framework went back,
and the session is rewound. Changes that others made since are no reason to rewind.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, get_args

from planning.errors import show
from planning.events import FrameworkTurn
from planning.model import STEP_STATUSES, Plan, PlanStatus, PlanStep
from session import Session, Snapshot, SnapshotError, VersionError

__all__ = [
    "began",
    "calls_made",
    "Position",
    "follow",
    "is_current",
    "merge",
    "plan_from",
    "position_of",
    "restored",
]

Position = Mapping[str, Any]
"""Plain JSON values, so that every framework can keep them."""


def follow(
    session: Session,
    position: Position | None,
    place: str,
    turn: str,
    *,
    calls: bool,
    restarts: bool = False,
) -> None:
    """Bring the session to where the framework's state is, and note the turn.

    Args:
        session: The session of the run, after ``register_plan``.
        position: What the framework's state holds; None when it holds nothing.
        place: See ``FrameworkTurn``.
        turn: See ``FrameworkTurn``; empty when the framework keeps positions with the results of calls alone.
        calls: Whether calls follow now. Otherwise the turn is noted only when others changed the session, so
            that the position that is kept next is a later one.
        restarts: Whether a state without a position is one from before the place's first turn.

    Raises:
        VersionError: The position is not one of this session.
        SnapshotError: What it holds of the session cannot be restored.
    """
    if not calls and position is not None and is_current(session, position):
        return
    if _is_stored(session) and position is not None and position["version"] > session.version:
        session.refresh()  # another process was further
    actor = place.partition(":")[0]
    with session.transaction(actor=actor) as transaction:
        last = _last(session, place)
        start = session.version if last is None else last.start
        base = start if position is None else position["version"]
        if last is not None and last.turn == turn != "":
            return  # calls of one turn start from one position
        is_there = last is not None and last.turn == "" and last.base == base
        went_back = not is_there and _go_back(session, position, place, last, restarts=restarts)
        if calls or went_back or (turn and position is not None and base != session.version):
            version, began = session.version + 1, datetime.now(UTC) if last is None else last.began
            transaction.publish(
                FrameworkTurn(
                    place=place, turn=turn, base=base, version=version, start=start, began=began, actor=actor
                )
            )


def calls_made(session: Session, place: str, turn: str) -> set[str | None]:
    """The ids of the calls that a turn has made."""
    last = _last(session, place)
    if last is None or last.turn != turn:
        return set()
    try:
        return {change.call_id for change in session.history(after=last.version)}
    except VersionError:  # the session keeps a part of its history alone
        return set()


def is_current(session: Session, position: Position) -> bool:
    """Whether a position is the session's last one."""
    return identity_of(position) == identity_of(_position(session))


def _is_of(position: Position, session: Session) -> bool:
    """Whether a position is one of this session as it was opened."""
    return identity_of(position)[:2] == identity_of(_position(session))[:2]


def began(session: Session, place: str) -> datetime | None:
    """When a place began to change the session; None if it did not yet."""
    last = _last(session, place)
    return None if last is None else last.began


def _last(session: Session, place: str) -> FrameworkTurn | None:
    turns = reversed(session.select_all(FrameworkTurn))
    return next((turn for turn in turns if turn.place == place), None)


def _go_back(
    session: Session, position: Position | None, place: str, last: FrameworkTurn | None, *, restarts: bool
) -> bool:
    """Rewind or restore the session if the position is an older one. Within a transaction."""
    if position is None:
        if last is not None and restarts:
            session.rewind(last.start)
        return restarts
    if not _is_of(position, session):
        if "plan" not in position:
            raise VersionError(_other(position, session))
        if last is not None:
            with suppress(VersionError):  # the ids of calls that are taken back are free again
                session.rewind(last.start)
        session.rollback(restored(position))
        return True
    version = position["version"]
    if version > session.version:
        raise VersionError(
            f"the agent's state is of version {version} of session {session.session_id}, which has the "
            f"versions 0 to {session.version}: its store is another one, or has lost changes"
        )
    turns: tuple[FrameworkTurn, ...] = () if last is None else (last,)
    if last is None and not place.endswith(":"):
        turns = session.select_all(FrameworkTurn)  # an agent within others has its position from theirs
    if all(version >= each.version for each in turns):
        return False
    try:
        session.rewind(version)
    except VersionError:  # a session in memory may keep a part of its history
        if "plan" not in position:
            raise
        session.rollback(restored(position))
    return True


def _other(position: Position, session: Session) -> str:
    if position["session_id"] == str(session.session_id):
        return (
            f"the agent's state is of another session named {session.session_id}, which began at another time"
        )
    return (
        f"the agent's state is of session {position['session_id']}, and the session of this call is "
        f"{session.session_id}: let each thread keep its session"
    )


# Positions


def position_of(session: Session, before: Position | None) -> dict[str, Any]:
    """The position of a session as it is.

    Args:
        session: The session.
        before: The position that the state had before, if any.

    Raises:
        SnapshotError: The session is in memory, and holds something that has no JSON form.
    """
    position = _position(session)
    if before is not None:
        position["after"] = identity_of(before)
    if not _is_stored(session):
        slices = dict(session.snapshot().slices)
        plans = slices.pop(Plan, ())
        position["plan"] = _plain(plans[-1]) if plans else None
        position["slices"] = Snapshot(slices, session.session_id).to_json() if any(slices.values()) else None
        position["changed"] = any(position[name] != (before or {}).get(name) for name in ("plan", "slices"))
    return position


def _is_stored(session: Session) -> bool:
    return session.store is not None


def _position(session: Session) -> dict[str, Any]:
    since = session.created_at.isoformat()
    return {"session_id": str(session.session_id), "since": since, "version": session.version}


def identity_of(position: Position) -> list[Any]:
    """What tells positions apart: the session, when it was opened, and its version."""
    return [position["session_id"], position["since"], position["version"]]


def merge(old: Position | None, new: Position | None) -> Position | None:
    """The position of a state to which several tasks wrote one: the latest.

    Raises:
        VersionError: A session in memory was restored while its calls were half done, so that each position
            lacks what the other has.
    """
    if old is None or new is None or new.get("after") == identity_of(old):
        return old if new is None else new
    if identity_of(old)[:2] == identity_of(new)[:2]:
        return max(new, old, key=lambda position: position["version"])
    if not new.get("changed"):
        return old
    if not old.get("changed"):
        return new
    raise VersionError(
        "the process ended between calls of one turn, and the session was in memory: go back to an earlier "
        "checkpoint, or open the session with a store"
    )


def restored(position: Position) -> Snapshot:
    """What a position holds of a session in memory.

    Raises:
        SnapshotError: It cannot be read.
    """
    text = position.get("slices")
    slices: dict[type, tuple[Any, ...]] = dict(Snapshot.from_json(text).slices) if text else {}
    plan = plan_from(position)
    return Snapshot({**slices, Plan: () if plan is None else (plan,)}, position["session_id"])


def plan_from(position: Position) -> Plan | None:
    """The plan in the position of a session in memory.

    Raises:
        SnapshotError: It is not a plan.
    """
    written = position["plan"]
    if written is None:
        return None
    try:
        objective, status, rows = written
        steps = tuple(
            PlanStep(name, title, more, state, tuple(notes)) for name, title, more, state, notes in rows
        )
        plan = Plan(objective, status, steps)
        Plan.check_slice((plan,))
    except (ValueError, TypeError, AttributeError) as error:
        raise SnapshotError(f"the plan in the agent's state cannot be read: {error}") from error
    unknown = {status} - _PLAN_STATUSES or {step.status for step in steps} - _STATUSES
    if unknown:
        raise SnapshotError(f"the plan in the agent's state has an unknown status: {show(min(unknown))}")
    return plan


_PLAN_STATUSES = frozenset(get_args(PlanStatus))
_STATUSES = frozenset(STEP_STATUSES)


def _plain(plan: Plan) -> list[Any]:
    rows = [[step.step_id, step.title, step.details, step.status, list(step.notes)] for step in plan.steps]
    return [plan.objective, plan.status, rows]
