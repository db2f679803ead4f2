"""A stored session as it was, and as it is: opened so that its plan and its workflow runs can be read."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from planning.suite import register_plan
from planning.workflow.run.records import register_workflow
from session import Session
from session.events import SessionId
from session.stores import SqliteStore, Store, StoredSession

__all__ = ["PastStore", "open_session"]

_MOMENT: Final = 0.1  # seconds


class PastStore(SqliteStore):
    """A store whose sessions can be opened as they were.

    Attributes:
        path: Its file.
        shown: The session as it is shown; None for as it is.
    """

    def __init__(self, path: str | Path) -> None:
        """Open a file, or begin one.

        Args:
            path: The file.

        Raises:
            StoreError: It cannot be opened, holds something else, or has a newer format.
        """
        super().__init__(path)
        self.path = Path(path).absolute()
        self.shown: StoredSession | None = None

    def stamp(self) -> object | None:
        """Something that is another when the file has changed; None while that cannot be known."""
        wal = self.path.with_name(f"{self.path.name}-wal")  # it is there while a program writes
        try:
            found = [self.path.stat(), *([wal.stat()] if wal.exists() else [])]
        except OSError:
            return None
        # A file system may give two changes of one moment the same time.
        is_known = all(abs(time.time() - each.st_mtime) > _MOMENT for each in found)
        return [(each.st_ino, each.st_size, each.st_mtime_ns) for each in found] if is_known else None

    def head(self, session_id: SessionId) -> StoredSession | None:
        """What there is of a session, or what is shown of it."""
        return self.shown or super().head(session_id)

    def newest(self, session_id: SessionId) -> StoredSession | None:
        """What there is of a session."""
        return super().head(session_id)


def open_session(store: Store, identity: SessionId, tags: Mapping[str, str] | None = None) -> Session:
    """Open a session so that its plan and its workflow runs can be read.

    Args:
        store: The store.
        identity: The session.
        tags: The tags of one that does not exist yet.

    Raises:
        StoreError: The store cannot be read.
    """
    session = Session(session_id=identity, store=store, tags=tags)
    register_plan(session)
    register_workflow(session)
    return session
