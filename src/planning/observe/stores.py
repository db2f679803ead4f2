"""A stored session as it was, and as it is: opened so that its plan and its workflow runs can be read."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from planning.suite.tools import register_plan
from planning.workflow.run.records import register_workflow
from session import Session, StoreError
from session.address import database_of, is_address
from session.events import SessionId
from session.locks import ProcessLock
from session.stores import SqliteStore, Store, StoredSession

_MOMENT: Final = 0.1  # seconds


class ShownStore(Store):
    """A store whose sessions can be opened as they were; the store itself is mixed in behind it."""

    name: str
    shown: StoredSession | None = None

    def head(self, session_id: SessionId) -> StoredSession | None:
        """The record of a session, or the version that is shown."""
        return self.shown or self.newest(session_id)

    def newest(self, session_id: SessionId) -> StoredSession | None:
        """The record of a session."""
        return super().head(session_id)  # type: ignore[safe-super]  # of the store that is mixed in

    def another(self) -> ShownStore:
        """The same place, with a state of its own for each session."""
        other = copy.copy(self)
        other.states, other.opening, other.shown = WeakValueDictionary(), ProcessLock(), None
        return other

    def require(self) -> None:
        """Refuse a place that is gone, where to open it would begin a new one."""

    def stamp(self) -> object | None:
        """A stamp that differs when the place has changed; None while that cannot be known."""
        return None


class PastStore(ShownStore, SqliteStore):
    """A file."""

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        self.name = str(path)
        self._file_path = Path(path).absolute()

    def another(self) -> ShownStore:
        """The same file by connections of its own, so that readers do not wait for each other."""
        return PastStore(self.name)

    def require(self) -> None:
        """Refuse a file that is gone; see ``ShownStore.require``."""
        if not self._file_path.exists():
            raise StoreError(f"the store {self._file_path} is gone")

    def stamp(self) -> object | None:
        """A stamp that differs when the file has changed; see ``ShownStore.stamp``."""
        path = self._file_path
        wal = path.with_name(f"{path.name}-wal")  # it is there while a program writes
        try:
            found = [path.stat(), *([wal.stat()] if wal.exists() else [])]
        except OSError:
            return None
        # A file system may give two changes of one moment the same time.
        is_known = all(abs(time.time() - each.st_mtime) > _MOMENT for each in found)
        return [(each.st_ino, each.st_size, each.st_mtime_ns) for each in found] if is_known else None


def open_store(place: str) -> ShownStore:
    """Open a store, or begin a file."""
    if not is_address(place):
        return PastStore(place)
    address, schema = database_of(place)
    from session.stores import PostgresStore  # noqa: PLC0415 - it needs psycopg

    class PastDatabase(ShownStore, PostgresStore):
        """A database, whose connections are shared by all that are open in this process."""

    return PastDatabase(address, schema=schema)


def open_session(store: Store, identity: SessionId, tags: Mapping[str, str] | None = None) -> Session:
    """Open a session so that its plan and its workflow runs can be read."""
    session = Session(session_id=identity, store=store, tags=tags)
    register_plan(session)
    register_workflow(session)
    return session
