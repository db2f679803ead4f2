"""Fixtures that all tests share."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser, chromium
from postgres_server import PostgresServer, programs, shared_server
from store_places import PLACES, Place
from syrupy.assertion import SnapshotAssertion

from planning import PlanningToolsSection, Toolbox
from planning.testing import TextFiles
from planning.tools import ToolRegistry
from planning.tools.rate_limit import DEFAULT_LIMITS
from planning.tools.registry import default_registry
from session import InProcessEventBus, Session
from session.stores import SqliteStore

AXE = Path(__file__).parent.parent / ".cache" / "axe-core" / "4.14.1.js"
SERVER = shutil.which("valkey-server") or shutil.which("redis-server")
SLOW = {"slow", "browser", "interrupting"}


@pytest.fixture
def snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Compares text with a stored file."""
    return snapshot.use_extension(TextFiles)


@pytest.fixture
def bus() -> InProcessEventBus:
    """A bus in memory."""
    return InProcessEventBus()


@pytest.fixture
def session(bus: InProcessEventBus) -> Session:
    """A session on the bus."""
    return Session(bus=bus)


@pytest.fixture
def section(session: Session) -> PlanningToolsSection:
    """The planning section of the session."""
    return PlanningToolsSection(session=session)


@pytest.fixture
def toolbox(section: PlanningToolsSection, session: Session) -> Toolbox:
    """The six planning tools in the name of the session."""
    return Toolbox(section.tools(), session=session)


@pytest.fixture
def own_default(monkeypatch: pytest.MonkeyPatch) -> ToolRegistry:
    """A default registry of the test's own: what others registered stays out of it, and it out of theirs."""
    registry = default_registry()
    monkeypatch.setattr(DEFAULT_LIMITS, "_limiter", None)
    monkeypatch.setattr(registry, "_declared", {})
    monkeypatch.setattr(registry, "_tools", {})
    return registry


@pytest.fixture
def store_file(tmp_path: Path) -> Path:
    """Where a store is."""
    return tmp_path / "plans.db"


@pytest.fixture
def path(store_file: Path) -> Path:
    """The same, for the tests of the file."""
    return store_file


@pytest.fixture(params=["memory", "sqlite", "folder", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A place of each kind, for a test that every store must pass."""
    return PLACES[request.param](tmp_path)


@pytest.fixture
def opened(store_file: Path) -> Iterator[Callable[..., SqliteStore]]:
    """Opens the store, as each process does for itself; all are closed at the end."""
    stores: list[SqliteStore] = []

    def opened(kind: type[SqliteStore] = SqliteStore, **options: Any) -> SqliteStore:
        stores.append(kind(store_file, **options))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


@pytest.fixture
def other(store_file: Path) -> Iterator[sqlite3.Connection]:
    """Another program that uses the file."""
    connection = sqlite3.connect(store_file, isolation_level=None, check_same_thread=False)
    yield connection
    connection.close()


@pytest.fixture(scope="session")
def server_program() -> str:
    """The server for tests marked ``server``; they run only where it is installed."""
    assert SERVER is not None
    return SERVER


@pytest.fixture(scope="session")
def postgres() -> PostgresServer:
    """The PostgreSQL server of this process, for tests marked ``postgres``; each asks it for a schema."""
    return shared_server()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests of a process."""
    program = chromium()
    assert program is not None, "chromium is not installed"
    browser = Browser(program, tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core."""
    assert AXE.exists(), "axe-core is not there; scripts/axe-core brings it"
    return AXE.read_text("utf-8")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files of slow tests: at the end, one processor would wait for the other.

    Faults at any moment come last: they may leave an exception that is being handled for good.
    """
    slow = {item.path for item in items if is_slow(item)}
    last = {item.path for item in items if item.get_closest_marker("interrupting") is not None}
    items.sort(key=lambda item: 2 if item.path in last else item.path not in slow)


def is_slow(item: pytest.Item) -> bool:
    return not SLOW.isdisjoint(mark.name for mark in item.iter_markers())


def pytest_collection_finish() -> None:
    """Keep what was collected out of garbage collections: many tests ask for one, over all that there is."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is not to run here: in this place, so that the summary has one line for each reason."""
    if SERVER is None and item.get_closest_marker("server") is not None:
        pytest.skip("no Valkey or Redis server: apt-get install redis-server, then make test")
    if item.get_closest_marker("postgres") is not None and programs() is None:
        pytest.skip("no PostgreSQL: apt-get install postgresql, then make test")
    if "CI" not in os.environ and is_slow(item):
        pytest.skip("slow, or in a browser: CI=true make test runs these too")


def pytest_unconfigure() -> None:
    """Let pytest's closing line be the last one.

    Tests of what hangs leave threads behind, and those keep modules alive. DuckDB's binding tells of its
    own at the very end, after everything else.
    """
    if "duckdb" in sys.modules:
        atexit.register(lambda: os.dup2(os.open(os.devnull, os.O_WRONLY), 2))
