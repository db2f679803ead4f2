"""What the tests of stores share: the stores, and records to keep in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from postgres_server import store_for

from planning import Plan, PlanningToolsSection, Toolbox
from planning.commands import AddStep, MarkStep, NewPlanStep, SetupPlan
from session import Session
from session.events import SessionId
from session.stores import Checkpoint, MemoryStore, SqliteStore, Store, StoredChange, StoredSession
from session.stores.chain import refuse_copy, stale

Opener = Callable[[], Store]
NAMES = ["memory", "sqlite", "without a lock", pytest.param("postgres", marks=pytest.mark.postgres)]
"""The stores of ``openers``."""
SETUP = SetupPlan("Fix the login bug", (NewPlanStep("Reproduce it"), NewPlanStep("Write a test")))


class ListStore(Store):
    """A store without a lock, in sixty lines: writers are kept apart by ``expected`` alone."""

    def __init__(self, kept: dict[str, Any]) -> None:
        super().__init__()
        self.kept = kept

    def head(self, session_id: SessionId) -> StoredSession | None:
        found: StoredSession | None = self.kept.get(str(session_id), {}).get("head")
        return found

    def append(
        self,
        head: StoredSession,
        change: StoredChange | None,
        *,
        expected: int,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        known = self.head(head.session_id)
        version = 0 if known is None else known.version
        if version != expected:
            raise stale(expected, version)
        kept = self.kept.setdefault(str(head.session_id), {"changes": [], "checkpoints": []})
        kept["head"] = head
        kept["changes"] += [] if change is None else [change]
        kept["checkpoints"] += [] if checkpoint is None else [checkpoint]

    def changes(self, session_id: SessionId, first: int, last: int) -> Sequence[StoredChange]:
        changes: list[StoredChange] = self.kept.get(str(session_id), {}).get("changes", [])
        return changes[max(first - 1, 0) : last]

    def checkpoints(self, session_id: SessionId, last: int, most: int) -> Sequence[Checkpoint]:
        known: list[Checkpoint] = self.kept.get(str(session_id), {}).get("checkpoints", [])
        return [each for each in reversed(known) if each.version <= last][:most]

    def drop_checkpoints(self, session_id: SessionId) -> None:
        self.kept[str(session_id)]["checkpoints"].clear()

    def with_key(self, session_id: SessionId, key: str) -> Sequence[int]:
        changes = reversed(self.changes(session_id, 1, 10**9))
        return [each.version for each in changes if each.idempotency_key == key]

    def rewinds(self, session_id: SessionId) -> Sequence[tuple[int, int]]:
        changes = self.changes(session_id, 1, 10**9)
        return [(each.version, each.rewound_to) for each in changes if each.rewound_to is not None]

    def claim(self, session_id: SessionId, name: str) -> bool:
        claims: dict[str, int] = self.kept.setdefault(f"{session_id} claims", {})
        head, is_new = self.head(session_id), name not in claims
        claims.setdefault(name, 0 if head is None else head.version)
        return is_new

    def copy(self, source: SessionId, fork: StoredSession) -> None:
        old = self.kept[str(source)]
        refuse_copy(old["head"], fork, self.head(fork.session_id))
        checkpoints = [each for each in old["checkpoints"] if each.version <= fork.version]
        changes = old["changes"][: fork.version]
        self.kept[str(fork.session_id)] = {"head": fork, "changes": changes, "checkpoints": checkpoints}
        claims = self.kept.get(f"{source} claims", {})
        early = {name: version for name, version in claims.items() if version <= fork.version}
        self.kept[f"{fork.session_id} claims"] = early

    def sessions(self, most: int | None = None) -> Sequence[StoredSession]:
        heads = [kept["head"] for kept in self.kept.values() if "head" in kept]
        return sorted(heads, key=lambda head: head.changed_at, reverse=True)[:most]

    def delete(self, session_id: SessionId) -> bool:
        self.kept.pop(f"{session_id} claims", None)
        return self.kept.pop(str(session_id), None) is not None


def openers(folder: Path) -> dict[str, Opener]:
    """By name, what opens the same sessions anew, as another process would."""
    kept: dict[str, Any] = {}
    text: dict[str, Any] = {}

    def memory() -> Store:
        store = MemoryStore()
        store._kept, store._claims = text.setdefault("kept", {}), text.setdefault("claims", {})
        return store

    return {
        "memory": memory,
        "sqlite": lambda: SqliteStore(folder / "plans.db"),
        "postgres": lambda: store_for(folder),
        "without a lock": lambda: ListStore(kept),
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
