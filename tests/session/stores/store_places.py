"""The stores that the tests run against, and the sessions that they keep there."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from weakref import WeakValueDictionary

import pytest
from examples.folder_store import FolderStore
from postgres_server import store_for
from session_records import Count, Note, Ping

from planning import Plan, PlanningToolsSection, Toolbox
from planning.tools import ToolResult
from session import EventBus, Session, SessionId, SessionView, append, select_all, select_latest
from session.locks import ProcessLock
from session.stores import MemoryStore, SqliteStore, Store, StoreError

PLAN = ("planning_setup_plan", {"objective": "Ship it", "initial_steps": ["Build", "Test", "Release"]})


class Place:
    """A place that keeps sessions, which several processes may open."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "plans.db"
        self._store: Store | None = None

    def begin(self) -> Store:
        raise NotImplementedError

    def open(self) -> Store:
        """A store as another process has it: it shares no state with those that were opened before."""
        if self._store is None:
            self._store = self.begin()
            return self._store
        other = copy.copy(self._store)
        other.states = WeakValueDictionary()
        other.opening = ProcessLock()
        return other


class MemoryPlace(Place):
    """A store in memory."""

    def begin(self) -> Store:
        return MemoryStore(timeout=0.2)


class FolderPlace(Place):
    """A store without a lock."""

    def open(self) -> Store:
        return FolderStore(self.path.with_name("plans"))


class SqlitePlace(Place):
    """A file."""

    def open(self) -> Store:
        return SqliteStore(self.path, timeout=0.2)


class PostgresPlace(Place):
    """A schema of a database."""

    def open(self) -> Store:
        return store_for(self.path, timeout=1.0)


every_store = pytest.mark.parametrize(
    "place_type",
    [MemoryPlace, SqlitePlace, FolderPlace, pytest.param(PostgresPlace, marks=pytest.mark.postgres)],
)


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
    """A session, that has all reducers of the tests."""
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


def call(session: Session, name: str, arguments: Mapping[str, object], **context: str) -> ToolResult:
    """The result of a planning tool, as a model calls it."""
    tools = PlanningToolsSection(session=session).tools()
    return Toolbox(tools, session=session).call(name, dict(arguments), context=context or None)


def mark(session: Session, step: str, status: str = "done", **context: str) -> ToolResult:
    """The result of marking a step."""
    return call(session, "planning_mark_step", {"step_id": step, "status": status}, **context)


def state_of(source: Session | SessionView) -> tuple[object, ...]:
    """The slices of a session or of a version, without the events."""
    return select_latest(source, Plan), select_all(source, Note), select_all(source, Count)


def states_of(session: Session) -> list[tuple[object, ...]]:
    """The slices of each version, from the first to the last."""
    return [state_of(session.at(version)) for version in range(session.version + 1)]


def refused(work: object) -> str:
    """The message with which a store refuses."""
    assert callable(work)
    with pytest.raises(StoreError) as error:
        work()
    return str(error.value)


def numbered(source: Session | SessionView) -> list[int]:
    """The numbers of the pings that a session holds."""
    return [event.number for event in select_all(source, Ping)]


def store_of(session: Session) -> SqliteStore:
    assert isinstance(session.store, SqliteStore)
    return session.store
