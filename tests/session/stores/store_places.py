"""The stores that the tests run against, and the sessions that they keep there."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from weakref import WeakValueDictionary

import pytest
from examples.folder_store import FolderStore
from postgres_server import drop_schema, store_for
from session_records import Count, Note, Ping, words_of

from planning import NewPlanStep, Plan, PlanningToolsSection, SetupPlan, Toolbox
from planning.tools import ToolResult
from session import EventBus, Session, SessionId, SessionView, ToolInvoked, append, select_all, select_latest
from session.locks import ProcessLock
from session.stores import (
    Checkpoint,
    MemoryStore,
    SqliteStore,
    Store,
    StoredChange,
    StoredSession,
    StoreError,
)

PLAN = ("planning_setup_plan", {"objective": "Ship it", "initial_steps": ["Build", "Test", "Release"]})
SETUP = SetupPlan("Fix the login bug", (NewPlanStep("Reproduce it"), NewPlanStep("Write a test")))
BUSY = "another worker or program has been writing to the store for more than {} s: try again"


class Place:
    """A place that keeps sessions, which several processes may open."""

    timeout: float = 0.2

    def __init__(self, folder: Path) -> None:
        self.path = folder / "plans.db"

    def open(self) -> Store:
        """A store as another process has it: it shares no state with those that were opened before."""
        raise NotImplementedError


class MemoryPlace(Place):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.store = MemoryStore(timeout=self.timeout)

    def open(self) -> Store:
        other = copy.copy(self.store)
        other.states, other.warm, other.opening = WeakValueDictionary(), {}, ProcessLock()
        return other


class FolderPlace(Place):
    """A store without a lock."""

    def open(self) -> Store:
        return FolderStore(self.path.with_name("plans"))


class SqlitePlace(Place):
    def open(self) -> Store:
        return SqliteStore(self.path, timeout=self.timeout)


class PostgresPlace(Place):
    timeout = 1

    def open(self) -> Store:
        return store_for(self.path, timeout=self.timeout)

    def drop(self) -> None:
        drop_schema(self.path)


PLACES: dict[str, type[Place]] = {
    "memory": MemoryPlace,
    "sqlite": SqlitePlace,
    "folder": FolderPlace,
    "postgres": PostgresPlace,
}


class Counting(SqliteStore):
    """Counts the changes and checkpoints that are read, and how often the store is asked for a session."""

    read = asked = 0

    def head(self, session_id: SessionId) -> StoredSession | None:
        self.asked += 1
        return super().head(session_id)

    def changes(self, session_id: SessionId, first: int, last: int) -> Sequence[StoredChange]:
        found = super().changes(session_id, first, last)
        self.read += len(found)
        return found

    def checkpoints(self, session_id: SessionId, last: int, limit: int) -> Sequence[Checkpoint]:
        found = super().checkpoints(session_id, last, limit)
        self.read += len(found)
        return found


def open_session(
    store: Store | None,
    session_id: SessionId = "run-7",
    *,
    bus: EventBus | None = None,
    tags: Mapping[str, str] | None = None,
) -> Session:
    """A session with a plan, that appends notes and keeps one count."""
    session = Session(session_id=session_id, store=store, bus=bus, tags=tags)
    return registered(session)


def registered(session: Session) -> Session:
    PlanningToolsSection(session=session)
    session.register_reducer(Note, append)
    session.register_reducer(Count, total)
    session.register_types(Ping)
    return session


def total(slice_: tuple[Count, ...], count: Count) -> tuple[Count, ...]:
    """A reducer that adds up; a count of 0 changes nothing, and one of less is refused."""
    if count.total < 0:
        raise ValueError("no count is negative")
    return (Count(count.total + (slice_[-1].total if slice_ else 0)),) if count.total else slice_


def planned(store: Store, session_id: SessionId = "run-7") -> tuple[Session, Toolbox]:
    session = Session(session_id=session_id, store=store)
    return session, Toolbox(PlanningToolsSection(session=session).tools(), session=session)


def on_file(path: Path, session_id: str = "run-7", timeout: float = 0.2) -> tuple[Session, Toolbox]:
    """The same in a file that another process may have open."""
    return planned(SqliteStore(path, timeout=timeout), session_id)


def lived(session: Session) -> Session:
    """A session with a change of every kind, in 12 versions."""
    call(session, *PLAN, call_id="c1", actor="scout")
    mark(session, "S001", actor="scout", idempotency_key="k1")
    mark(session, "S009", call_id="c3")
    call(session, "planning_read_plan", {})
    session.dispatch(Note("one"))
    session.publish(Ping(5))
    session.publish(ToolInvoked("tool", {"a": (1, 2)}, {"b": [3]}, Count(3), actor="me"))
    taken = session.snapshot()
    session.reset()
    session.rollback(taken)
    mark(session, "S002", idempotency_key="k2")
    session.rewind(5, actor="host")
    with session.transaction(call_id="c9") as transaction:
        transaction.dispatch(Note("two"))
        with session.transaction(actor="both") as inner:
            inner.dispatch(Count(2))
            inner.publish(Ping(6))
    session.dispatch(Ellipsis)  # no reducer answers it
    with session.transaction():
        pass
    return session


def call(session: Session, name: str, arguments: Mapping[str, object], **context: str) -> ToolResult:
    tools = PlanningToolsSection(session=session).tools()
    return Toolbox(tools, session=session).call(name, dict(arguments), context=context or None)


def mark(session: Session, step: str, status: str = "done", **context: str) -> ToolResult:
    return call(session, "planning_mark_step", {"step_id": step, "status": status}, **context)


def state_of(source: Session | SessionView) -> tuple[object, ...]:
    """The slices of a session or of a version, without the events."""
    return select_latest(source, Plan), select_all(source, Note), select_all(source, Count)


def statuses(session: Session) -> list[str]:
    plan = session.select_latest(Plan)
    assert plan is not None
    return [step.status for step in plan.steps]


def states_of(session: Session) -> list[tuple[object, ...]]:
    return [state_of(session.at(version)) for version in range(session.version + 1)]


def refused(work: Callable[[], object]) -> str:
    return words_of(StoreError, work)


def outcome_of(work: Callable[[], object]) -> tuple[str, str]:
    """The message of the error that some work raises, and what has become of a change."""
    with pytest.raises(StoreError) as caught:
        work()
    return str(caught.value), caught.value.outcome


def numbered(source: Session | SessionView) -> list[int]:
    return [event.number for event in select_all(source, Ping)]


def traced(store: SqliteStore) -> list[str]:
    """The statements that a store runs from now on."""
    statements = list[str]()
    for link in (store._reader, store._writer):
        link.connected().set_trace_callback(statements.append)
    return statements


def store_of(session: Session) -> SqliteStore:
    assert isinstance(session.store, SqliteStore)
    return session.store
