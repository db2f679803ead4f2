"""What the tests of stores share: the stores, and records to keep in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from examples.folder_store import FolderStore
from postgres_server import store_for

from planning import Plan, PlanningToolsSection, Toolbox
from planning.plan.commands import AddStep, MarkStep, NewPlanStep, SetupPlan
from session import Session
from session.stores import MemoryStore, SqliteStore, Store

Opener = Callable[[], Store]
NAMES = ["memory", "sqlite", "without a lock", pytest.param("postgres", marks=pytest.mark.postgres)]
"""The stores of ``openers``."""
SETUP = SetupPlan("Fix the login bug", (NewPlanStep("Reproduce it"), NewPlanStep("Write a test")))


def openers(folder: Path) -> dict[str, Opener]:
    """By name, what opens the same sessions anew, as another process would."""
    text: dict[str, Any] = {}

    def memory() -> Store:
        store = MemoryStore()
        store._kept, store._claims = text.setdefault("kept", {}), text.setdefault("claims", {})
        return store

    return {
        "memory": memory,
        "sqlite": lambda: SqliteStore(folder / "plans.db"),
        "without a lock": lambda: FolderStore(folder),
        "postgres": lambda: store_for(folder),
    }


@contextmanager
def opened(opener: Opener, session_id: str = "run-7") -> Iterator[tuple[Session, Toolbox]]:
    """A session with a plan's tools."""
    store = opener()
    session = Session(session_id=session_id, store=store)
    section = PlanningToolsSection(session=session)
    yield session, Toolbox(section.tools(), session=session)
    store.close()


def plans_of(session: Session) -> list[Plan | None]:
    """The plan at every version."""
    return [session.at(version).select_latest(Plan) for version in range(session.version + 1)]


def busy(session: Session, toolbox: Toolbox) -> list[Plan | None]:
    """Change a session in every way; returns the plan after each change."""
    plans: list[Plan | None] = [None]

    def note() -> None:
        plans.append(session.select_latest(Plan))

    toolbox.invoke("planning_setup_plan", SETUP)
    note()
    by = {"call_id": "1", "idempotency_key": "1"}
    toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done"}, context=by)
    note()
    toolbox.call("planning_mark_step", {"step_id": "S009", "status": "done"})
    note()
    toolbox.call("planning_read_plan", {})
    note()
    session.dispatch(AddStep((NewPlanStep("Ship it"),)))
    note()
    snapshot = session.snapshot()
    session.rewind(2, actor="host")
    note()
    with session.transaction(actor="host", call_id="2") as transaction:
        transaction.dispatch(MarkStep("S002", "blocked"))
        transaction.dispatch(MarkStep("S001", "pending"))
    note()
    session.rollback(snapshot)
    note()
    session.reset()
    note()
    session.rewind(7)
    note()
    return plans


@dataclass(frozen=True, slots=True)
class Note:
    """A record of a test."""

    text: str
    tags: tuple[str, ...] = ()
