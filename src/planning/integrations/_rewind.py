"""The plan goes back with a framework's own state: what that state holds, and when a session is rewound.

The framework keeps a *position* in its state: the session's id and version, and for a session in memory also
what it holds. In the session, each change of a framework's agent carries a ``FrameworkChange``. Losing what
others did is worse than not going back: a session is rewound only over changes of the same place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar, get_args

from planning.errors import show
from planning.plan.diff import diff_plans
from planning.plan.model import STEP_STATUSES, Plan, PlanStatus, PlanStep
from planning.suite.events import FrameworkChange, framework, last_change, sign
from session import Change, Session, Snapshot, SnapshotError, VersionError

T = TypeVar("T")
Position = Mapping[str, Any]
"""Plain JSON values, so that every framework can keep them."""


@contextmanager
def setting(variable: ContextVar[T], value: T) -> Iterator[None]:
    """A block in which a context variable has another value."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def settle(session: Session, position: Position | None) -> None:
    """Check that a framework's state is about a session; an empty one in memory takes over what it holds."""
    is_stored = session.store is not None
    if is_stored:
        session.refresh()  # other processes may have changed it
    if position is None:
        return
    if not is_of(position, session):
        if is_stored or "plan" not in position:
            raise VersionError(_other(position, session))
        if session.version == 0:
            with session.transaction() as transaction:
                session.rollback(restored(position))
                sign(transaction)
        return
    if position["version"] > session.version:
        raise VersionError(
            f"the agent's state is of version {position['version']} of session {session.session_id}, which "
            f"has the versions 0 to {session.version}: its store is a different one, or has lost changes"
        )


def is_older(session: Session, position: Position | None, last: FrameworkChange) -> bool:
    """True if a position is from before the last change of its place."""
    return position is None or not is_of(position, session) or position["version"] < last.version


def go_back(session: Session, position: Position | None, last: FrameworkChange, since: str = "") -> None:
    """Restore what a session was at a position, unless others than one place have changed it since."""
    actor = last.place.partition(":")[0]
    with suppress(VersionError), session.transaction(actor=actor) as transaction:
        is_own = position is None or is_of(position, session)
        version = last.start if position is None else position["version"] if is_own else 0
        changes = session.history(after=version)  # a VersionError when they are not all kept
        if last_change(session, last.place) != last or not all(_is_by(each, last, since) for each in changes):
            return
        if position is None or is_own:
            session.rewind(version)
        else:
            session.rollback(restored(position))
        sign(transaction)


def take_back(session: Session, position: Position | None, place: str, undone: Collection[str]) -> None:
    """Restore what a session was before runs of a place that the place's framework has taken back.

    The session stays as it is where anything else has changed it after them, or between them.
    """
    last = last_change(session, place)
    if last is None or last.at not in undone:
        return
    actor, is_own = place.partition(":")[0], position is None or is_of(position, session)
    with suppress(VersionError), session.transaction(actor=actor) as transaction:
        before = last.start if position is None else position["version"] if is_own else 0
        changes = [each for each in session.history(after=before) if each.changed]
        at = [_at(each, place) for each in changes]
        kept = max((number for number, each in enumerate(at, 1) if each not in undone), default=0)
        is_mixed = kept > 0 and at[kept - 1] is None and any(each in undone for each in at[:kept])
        if kept == len(changes) or is_mixed:
            return
        if is_own or kept or position is None:
            session.rewind(changes[kept].version - 1)
        else:
            session.rollback(restored(position))
        sign(transaction)


def _is_by(change: Change, last: FrameworkChange, since: str) -> bool:
    """True if a change was made by a place since it was somewhere, or left the slices as they were."""
    at = _at(change, last.place)
    return not change.changed or (at is not None and at >= since)


def _at(change: Change, place: str) -> str | None:
    """The version at which a place made a change; None if it did not."""
    signed = (each for each in change.events if isinstance(each, FrameworkChange))
    return next((each.at for each in signed if each.place == place), None)


def news(session: Session, position: Position) -> str:
    """One sentence for the model when the plan differs from that at its position; else an empty string."""
    try:
        if "seen" in position or "plan" not in position:
            before = session.at(position.get("seen", position["version"])).select_latest(Plan)
        else:
            before = plan_from(position)
    except VersionError:  # a session in memory may keep a part of its history
        return ""
    difference = diff_plans(before, session.select_latest(Plan))
    return f"The plan has changed since your last turn: {difference}" if difference else ""


def is_current(session: Session, position: Position | None) -> bool:
    """True if a position is the session's last one, and the model has read what was new in it."""
    is_last = position is not None and position["version"] == session.version and is_of(position, session)
    return is_last and position is not None and "seen" not in position


def calling(session: Session | None, place: str | None, at: str) -> AbstractContextManager[None]:
    """Let changes of a session, in this context, carry where in a framework they were made, if anywhere."""
    made = None if session is None or place is None else (session.session_id, place, at)
    return setting(framework, made)


def is_of(position: Position, session: Session) -> bool:
    """True if a position is one of this session, whichever process opened it.

    A store has nothing of a session before its first change: until then each opening is another beginning.
    """
    own = (str(session.session_id), session.created_at.isoformat())
    return (position["session_id"], position["since"] if position["version"] else own[1]) == own


def _other(position: Position, session: Session) -> str:
    if position["session_id"] == str(session.session_id):
        return (
            f"the agent's state is of another session named {session.session_id}, which began at another time"
        )
    return (
        f"the agent's state is of session {position['session_id'][:128]}, and the session of this call is "
        f"{session.session_id}: let each thread keep its session"
    )


# Positions


def checked(value: object) -> Position | None:
    """The position in a framework's state; anything else is a SnapshotError."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        version = value.get("version")
        is_text = isinstance(value.get("session_id"), str) and isinstance(value.get("since"), str)
        if is_text and type(version) is int and version >= 0:
            return value
    raise SnapshotError(
        f"planning in the agent's state is not a position of a session, but {show(value)}: remove it, or go "
        "back to an earlier checkpoint"
    )


def position_of(session: Session, before: Position | None = None, step: str = "") -> dict[str, Any]:
    """The position of a session as it is, where the state had another before.

    What tells the framework's steps apart is ``step``: positions of one step are merged.
    """
    version = session.version  # read first: once it is not 0, created_at is that of the store
    position: dict[str, Any] = {
        "session_id": str(session.session_id),
        "since": session.created_at.isoformat(),
        "version": version,
    }
    if session.store is None:
        slices = dict(session.snapshot().slices)
        plans = slices.pop(Plan, ())
        position["plan"] = _plain(plans[-1]) if plans else None
        position["slices"] = Snapshot(slices, session.session_id).to_json() if any(slices.values()) else None
        position["changed"] = any(position[name] != (before or {}).get(name) for name in ("plan", "slices"))
        position["step"] = step
    return position


def merge(old: object, new: object) -> Position | None:
    """The position of a state to which several tasks wrote one: the latest.

    A session in memory that was restored while its calls were half done is a VersionError: each position
    lacks what the other has.
    """
    one, other = checked(old), checked(new)
    if one is None or other is None:
        return one if other is None else other
    is_one = one["since"] == other["since"] or 0 in {one["version"], other["version"]}  # as in is_of
    if is_one and one["session_id"] == other["session_id"]:
        return max(other, one, key=lambda position: position["version"])
    if one.get("step") != other.get("step") or not one.get("changed"):
        return other
    if not other.get("changed"):
        return one
    raise VersionError(
        "the process ended between calls of one turn, and the session was in memory: go back to an earlier "
        "checkpoint, or open the session with a store"
    )


def restored(position: Position) -> Snapshot:
    """The data of a session in memory that a position holds."""
    plan, text = plan_from(position), position.get("slices")
    slices: dict[type, tuple[Any, ...]] = dict(Snapshot.from_json(text).slices) if text else {}
    return Snapshot({**slices, Plan: () if plan is None else (plan,)}, position["session_id"])


def plan_from(position: Position) -> Plan | None:
    """The plan in the position of a session in memory."""
    if "plan" not in position:
        raise SnapshotError(
            f"the agent's state is of session {show(position['session_id'])}, which is in a store: give that "
            "session to the integration"
        )
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
    given = [status, *(step.status for step in steps if step.status not in STEP_STATUSES)]
    if status in _PLAN_STATUSES:
        del given[0]
    if given:
        raise SnapshotError(f"the plan in the agent's state has an unknown status: {show(given[0])}")
    return plan


_PLAN_STATUSES = get_args(PlanStatus)


def _plain(plan: Plan) -> list[Any]:
    rows = [[step.step_id, step.title, step.details, step.status, list(step.notes)] for step in plan.steps]
    return [plan.objective, plan.status, rows]
